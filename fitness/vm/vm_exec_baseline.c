/* The executor for any x86-64. */
#define VM_ISA baseline
#include "fitness/vm/vm_exec_isa.h"
