/* The executor for x86-64-v3 (AVX2, FMA). */
#define VM_ISA avx2
#include "fitness/vm/exec/vm_exec_isa.h"
