/* Known faults of NVIDIA's assembler: where machine code by ptxas does otherwise than the PTX ISA,
 * and so than this machine. docs/gpu.md has the list. */
#include "fitness/ptx/ptx_load.h"

#include <string.h>

#define OLDER "ptxas 12.4 and 13.0 change the destination of this guarded "
#define NEWER "ptxas 13.0 changes the destination of this guarded "
#define CURE " also where the guard is false, so a GPU differs from this machine; "

/* The comparison has the guard, and the conversion of its result does not: -1 to 1.0, or 16 bits to
 * 32. */
static bool is_converted_set(const ptx_insn *in, const char *name) {
    bool from_half = ptx_type_bits((ptx_type)in->t) == 16;
    bool whole = in->u == PTX_T_u32 || in->u == PTX_T_s32;
    return strcmp(name, "set") == 0 && (in->u == PTX_T_f32 || (from_half && whole));
}

/* The same, and the result is a half. */
static bool is_half_set(const ptx_insn *in, const char *name) {
    return strcmp(name, "set") == 0 && (in->u == PTX_T_f16 || in->u == PTX_T_bf16);
}

/* Two dot products, neither of which has the guard. */
static bool is_sum_of_bytes(const ptx_insn *in, const char *name) {
    bool is_plain = in->t == PTX_T_u32 && in->u == PTX_T_u32 && in->op == PTX_M_PARTS_U32;
    return (strcmp(name, "vadd4") == 0 || strcmp(name, "vsub4") == 0) && is_plain &&
           in->rnd == PTX_M_SUMS && in->sat == 0;
}

static const char *fault_of(const ptx_insn *in) {
    const char *name = ptx_op_get(in->row)->name;
    if (in->guard == PTX_NONE)
        return NULL;
    if (is_converted_set(in, name))
        return OLDER "set" CURE "use setp and a guarded selp";
    if (is_half_set(in, name))
        return NEWER "set" CURE "use setp and a guarded selp";
    if (strcmp(name, "testp") == 0)
        return NEWER "testp" CURE "use testp without a guard, then and.pred";
    if (is_sum_of_bytes(in, name))
        return NEWER "sum of bytes" CURE "use it without a guard, then a guarded mov";
    return NULL;
}

uint32_t vm_module_ptxas_fault(const vm_module *m, const char **what) {
    *what = "";
    for (uint32_t pc = 0; pc < m->insn_count; pc++) {
        const char *fault = fault_of(&m->code[pc]);
        if (fault == NULL)
            continue;
        *what = fault;
        return m->cold[pc].line;
    }
    return 0;
}
