/* The executor for x86-64-v4 (AVX-512). */
#define VM_ISA avx512
#include "fitness/vm/exec/vm_exec_isa.h"
