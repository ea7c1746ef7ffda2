/* Which copy of the executor runs: chosen by the processor, or by a test. */
#include "fitness/vm/vm_exec.h"

typedef struct isa_row {
    const char *name;
    ptx_handler (*find)(unsigned row, unsigned t, unsigned x);
    vm_run_fn run;
} isa_row;

static const isa_row isas[VM_ISA_COUNT] = {
    [VM_ISA_BASELINE] = {"baseline", vm_find_handler_baseline, vm_run_set_baseline},
#ifndef EVOKE_VM_BASELINE_ALONE /* the build has no other copy */
    [VM_ISA_AVX2] = {"avx2", vm_find_handler_avx2, vm_run_set_avx2},
    [VM_ISA_AVX512] = {"avx512", vm_find_handler_avx512, vm_run_set_avx512},
#endif
};

bool vm_isa_supported(unsigned isa) {
    if (!isas[isa].find)
        return false;
    __builtin_cpu_init();
    bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
              __builtin_cpu_supports("popcnt");
    bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
              __builtin_cpu_supports("avx512cd");
    return isa == VM_ISA_BASELINE || (isa == VM_ISA_AVX2 && v3) || (isa == VM_ISA_AVX512 && v4);
}

unsigned vm_isa_best(void) {
    unsigned best = VM_ISA_BASELINE;
    for (unsigned isa = 0; isa < VM_ISA_COUNT; isa++)
        if (vm_isa_supported(isa))
            best = isa;
    return best;
}

const char *vm_isa_name(void) {
    return isas[vm_isa_best()].name;
}
ptx_handler vm_isa_undefined(unsigned isa) {
    return isas[isa].find(PTX_OP_COUNT, 0, 2);
}
vm_run_fn vm_isa_run(unsigned isa) {
    return isas[isa].run;
}

unsigned ptx_handler_variant(const ptx_insn *in) {
    switch (ptx_op_get(in->row)->shape) {
    case PTX_S_FUN:
    case PTX_S_FBIN:
    case PTX_S_FTER:
    case PTX_S_APPROX1:
    case PTX_S_APPROX2:
        return in->ftz || in->sat || in->relu || (in->rnd != PTX_M_NONE && in->rnd != PTX_M_RN);
    case PTX_S_SETP:
    case PTX_S_SET:
        return (unsigned)in->op - PTX_M_EQ;
    case PTX_S_CVT:
        return in->u;
    case PTX_S_LD:
    case PTX_S_ST:
        if (in->space != VM_SPACE_PARAM)
            return in->space;
        if (in->a == PTX_NONE)
            return VM_SPACE_PARAM + 2u;
        if (in->op == 1)
            return VM_SPACE_PARAM + 1u;
        return (unsigned)VM_SPACE_PARAM;
    default:
        return 0;
    }
}

bool vm_isa_executes(const ptx_insn *in) {
    return isas[VM_ISA_BASELINE].find(in->row, in->t, ptx_handler_variant(in)) != NULL;
}

/* Shapes that look at their guard themselves, since lanes may part there. */
static bool guards_itself(uint8_t shape) {
    return shape == PTX_S_BRA || shape == PTX_S_BRX || shape == PTX_S_EXIT || shape == PTX_S_RET ||
           shape == PTX_S_CALL;
}

/* What kernels wait with: looking again and again until another thread has changed something. */
static bool polls(const ptx_insn *in) {
    uint8_t shape = ptx_op_get(in->row)->shape;
    return (shape == PTX_S_LD && in->strong) || shape == PTX_S_ATOM || in->row == PTX_OP_MB_TEST ||
           in->row == PTX_OP_MB_TEST_PARITY || in->row == PTX_OP_MB_TRY ||
           in->row == PTX_OP_MB_TRY_PARITY;
}

void vm_module_set_isa(vm_module *m, unsigned isa) {
    m->isa = isa;
    for (uint32_t pc = 0; pc < m->insn_count; pc++) {
        ptx_insn *in = &m->code[pc];
        in->body = isas[isa].find(in->row, in->t, ptx_handler_variant(in));
        bool wrap = in->guard != PTX_NONE && !guards_itself(ptx_op_get(in->row)->shape);
        in->fn = wrap || polls(in) ? isas[isa].find(PTX_OP_COUNT, 0, polls(in)) : in->body;
    }
}
