/* The executor for any x86-64. */
#define VM_ISA baseline
#include "fitness/vm/exec/vm_exec_isa.h"
