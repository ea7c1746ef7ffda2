/* Known faults of NVIDIA's assembler: where machine code by ptxas does otherwise than the PTX ISA,
 * and so than this machine. docs/gpu.md has the list. */
#include "fitness/ptx/ptx_load.h"

#include <string.h>

/* ptxas 12.4 and 13.0 compare under the guard, into the destination, and convert that without the
 * guard: -1 to 1.0, or 16 bits to 32. */
static bool is_converted_set(const ptx_insn *in) {
    bool from_half = ptx_type_bits((ptx_type)in->t) == 16;
    bool whole = in->u == PTX_T_u32 || in->u == PTX_T_s32;
    return in->guard != PTX_NONE && strcmp(ptx_op_get(in->row)->name, "set") == 0 &&
           (in->u == PTX_T_f32 || (from_half && whole));
}

uint32_t vm_module_ptxas_fault(const vm_module *m, const char **what) {
    *what = "";
    for (uint32_t pc = 0; pc < m->insn_count; pc++) {
        if (!is_converted_set(&m->code[pc]))
            continue;
        *what = "ptxas 12.4 and 13.0 change the destination of this guarded set also where the "
                "guard is "
                "false, so a GPU differs from this machine; use setp and a guarded selp";
        return m->cold[pc].line;
    }
    return 0;
}
