/* The executor, compiled once for each instruction set: VM_ISA names the copy. Bits of results do
 * not depend on the copy: no contraction, fma through the builtin, NaN made canonical. */
#include "fitness/ptx/ptx_lists.h"
#include "fitness/vm/exec/exec_math.h"
#include "fitness/vm/vm_exec.h"

#ifdef __clang__
#if !__has_feature(address_sanitizer)
#define TAIL_CALLS 1
#endif
#endif
#ifdef TAIL_CALLS
#define NEXT_AT(at)                                                                                \
    do {                                                                                           \
        const ptx_insn *next_insn = (at);                                                          \
        __attribute__((musttail)) return next_insn->fn(w, next_insn, w->regs, w->mask);            \
    } while (0)
#else /* uses what the tail call passes on */
#define NEXT_AT(at) return (void)w, (void)regs, (void)mask, (at)
#endif
#define NEXT NEXT_AT(ip + 1)

#ifdef __clang__
#pragma clang diagnostic ignored "-Wconversion"
#pragma clang diagnostic ignored "-Wpass-failed"
#else
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wfloat-conversion"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wunused-variable"
#endif

/* For loops that are worth it only where their counts are constants. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

static const ptx_insn *division_by_zero(vm_warp *w, const ptx_insn *ip, unsigned lane);

#include "fitness/vm/exec/exec_alu.h"

#include "fitness/vm/exec/exec_float.h"

#include "fitness/vm/exec/exec_memory.h"

#include "fitness/vm/exec/exec_atomic.h"

#include "fitness/vm/exec/exec_control.h"

#include "fitness/vm/exec/exec_tensor.h"

#include "fitness/vm/exec/exec_async.h"
#include "fitness/vm/exec/exec_matrix.h"

/* Shapes whose handlers do not depend on the row or type. */
#define H_LD(T, id, expr)
#define H_ST(T, id, expr)
#define H_SHFL(T, id, expr)
#define H_VOTE(T, id, expr)
#define H_ELECT(T, id, expr)
#define H_ACTIVEMASK(T, id, expr)
#define H_BARWARP(T, id, expr)
#define H_BARSYNC(T, id, expr)
#define H_BARRED(T, id, expr)
#define H_FENCE(T, id, expr)
#define H_BRA(T, id, expr)
#define H_BRX(T, id, expr)
#define H_CALL(T, id, expr)
#define H_RET(T, id, expr)
#define H_EXIT(T, id, expr)
#define H_TRAP(T, id, expr)
#define H_SLEEP(T, id, expr)
#define H_NOTHING(T, id, expr)
#define H_FALL(T, id, expr)
#define H_ALLOCA(T, id, expr)
#define H_STACKSAVE(T, id, expr)
#define H_STACKRESTORE(T, id, expr)
#define H_MOVMATRIX(T, id, expr)
#define H_STMATRIX(T, id, expr)
#define H_LDMATRIX(T, id, expr)
#define H_WMMA_STORE(T, id, expr)
#define H_WMMA_LOAD(T, id, expr)
#define H_MMA_BITS(T, id, expr)
#define H_MMA_INT(T, id, expr)
#define H_MMA_F64(T, id, expr)
#define H_MMA_TF32(T, id, expr)
#define H_MMA_BF16(T, id, expr)
#define H_MMA_F16(T, id, expr)
#define H_MMA_QUADS(T, id, expr)
#define H_CPASYNC(T, id, expr)
#define H_CPCOMMIT(T, id, expr)
#define H_CPWAIT(T, id, expr)
#define H_MBPENDING(T, id, expr)

/* All handlers of the table. */
#define PTX_OP(id, name, format, types, types2, pattern, pipe, ptx, sm, shape, expr)               \
    PTX_LIST_##types(H_##shape, id, expr)
#include "fitness/ptx/ptx_ops.def"
#undef PTX_OP

#define CASE(T, x, fn)                                                                             \
    case PTX_T_##T * 64 + (x):                                                                     \
        return fn;
#define C_PLAIN(T, id) CASE(T, 0, h_##id##_##T)
#define C_UN C_PLAIN
#define C_BIN C_PLAIN
#define C_BIN16X2 C_PLAIN
#define C_TER C_PLAIN
#define C_WIDE C_PLAIN
#define C_WIDE3 C_PLAIN
#define C_CARRY C_PLAIN
#define C_CARRY3 C_PLAIN
#define C_DIVIDE C_PLAIN
#define C_COUNT C_PLAIN
#define C_EXTRACT C_PLAIN
#define C_INSERT C_PLAIN
#define C_MASKBITS C_PLAIN
#define C_EXTEND C_PLAIN
#define C_DP4A C_PLAIN
#define C_DP2A C_PLAIN
#define C_PREDICATE C_PLAIN
#define C_LOP3 C_PLAIN
#define C_LOP3P C_PLAIN
#define C_SHIFT C_PLAIN
#define C_FUNNEL C_PLAIN
#define C_PRMTMODE C_PLAIN
#define C_FSIGN C_PLAIN
#define C_FMINMAX C_PLAIN
#define C_TESTP C_PLAIN
#define C_COPYSIGN C_PLAIN
#define C_SELECT C_PLAIN
#define C_SLCT C_PLAIN
#define C_MOVE C_PLAIN
#define C_CVTA C_PLAIN
#define C_ISSPACEP C_PLAIN
#define C_CVTPACK C_PLAIN
#define C_CVTTF32 C_PLAIN
#define C_ATOM C_PLAIN
#define C_RED C_PLAIN
#define C_MATCH C_PLAIN
#define C_REDUX C_PLAIN
#define C_SREG C_PLAIN
#define C_LOCALADDR C_PLAIN
#define C_PACK C_PLAIN
#define C_UNPACK C_PLAIN
#define C_FUN(T, id) CASE(T, 0, h_##id##_##T) CASE(T, 1, h_##id##_##T##_mod)
#define C_FBIN C_FUN
#define C_FTER C_FUN
#define C_COMPARE(cmp, test, T, id) CASE(T, PTX_M_##cmp - PTX_M_EQ, h_##id##_##T##_##cmp)
#define C_SETP(T, id) COMPARISONS_##T(C_COMPARE, T, id)
#define C_SET C_SETP
#define C_CVT(T, id) PTX_LIST2_CVT(C_CVT_ONE, T)
#define C_CVT_ONE(S, T) CASE(T, PTX_T_##S, h_CVT_##T##_##S)
#define C_LD(T, id)                                                                                \
    CASE(T, VM_SPACE_GENERIC, h_load_GENERIC)                                                      \
    CASE(T, VM_SPACE_GLOBAL, h_load_GLOBAL)                                                        \
    CASE(T, VM_SPACE_SHARED, h_load_SHARED)                                                        \
    CASE(T, VM_SPACE_LOCAL, h_load_LOCAL)                                                          \
    CASE(T, VM_SPACE_CONST, h_load_CONST)                                                          \
    CASE(T, VM_SPACE_PARAM, h_load_PARAM)                                                          \
    CASE(T, VM_SPACE_PARAM + 1, h_load_FRAME)                                                      \
    CASE(T, VM_SPACE_PARAM + 2, h_load_ENTRY)
#define C_ST(T, id)                                                                                \
    CASE(T, VM_SPACE_GENERIC, h_store_GENERIC)                                                     \
    CASE(T, VM_SPACE_GLOBAL, h_store_GLOBAL)                                                       \
    CASE(T, VM_SPACE_SHARED, h_store_SHARED)                                                       \
    CASE(T, VM_SPACE_LOCAL, h_store_LOCAL)                                                         \
    CASE(T, VM_SPACE_PARAM + 1, h_store_FRAME)
#define C_SHFL(T, id) CASE(T, 0, h_SHFL)
#define C_VOTE(T, id) CASE(T, 0, h_VOTE)
#define C_ELECT(T, id) CASE(T, 0, h_ELECT)
#define C_ACTIVEMASK(T, id) CASE(T, 0, h_ACTIVEMASK)
#define C_BARWARP(T, id) CASE(T, 0, h_BARWARP)
#define C_BARSYNC(T, id) CASE(T, 0, h_BARSYNC)
#define C_BARRED(T, id) CASE(T, 0, h_BARSYNC)
#define C_FENCE(T, id) CASE(T, 0, h_FENCE)
#define C_BRA(T, id) CASE(T, 0, h_BRA)
#define C_BRX(T, id) CASE(T, 0, h_BRX)
#define C_CALL(T, id) CASE(T, 0, h_CALL)
#define C_RET(T, id) CASE(T, 0, h_RET)
#define C_EXIT(T, id) CASE(T, 0, h_EXIT)
#define C_TRAP(T, id) CASE(T, 0, h_TRAP)
#define C_SLEEP(T, id) CASE(T, 0, h_SLEEP)
#define C_NOTHING(T, id) CASE(T, 0, h_NOTHING)
#define C_FALL(T, id) CASE(T, 0, h_FALL)
#define C_ALLOCA(T, id) CASE(T, 0, h_ALLOCA)
#define C_STACKSAVE(T, id) CASE(T, 0, h_STACKSAVE)
#define C_STACKRESTORE(T, id) CASE(T, 0, h_STACKRESTORE)
#define C_MOVMATRIX(T, id) CASE(T, 0, h_MOVMATRIX)
#define C_STMATRIX(T, id) CASE(T, 0, h_STMATRIX)
#define C_LDMATRIX(T, id) CASE(T, 0, h_LDMATRIX)
#define C_WMMA_STORE(T, id) CASE(T, 0, h_WMMA_STORE)
#define C_WMMA_LOAD(T, id) CASE(T, 0, h_WMMA_LOAD)
#define C_MMA_BITS(T, id) CASE(T, 0, h_MMA_BITS)
#define C_MMA_INT(T, id) CASE(T, 0, h_MMA_INT)
#define C_MMA_F64(T, id) CASE(T, 0, h_MMA_F64)
#define C_MMA_TF32(T, id) CASE(T, 0, h_MMA_TF32)
#define C_MMA_BF16(T, id) CASE(T, 0, h_MMA_BF16)
#define C_MMA_F16(T, id) CASE(T, 0, h_MMA_F16)
#define C_MMA_QUADS(T, id) CASE(T, 0, h_MMA_QUADS)
#define C_CPASYNC(T, id) CASE(T, 0, h_CPASYNC)
#define C_CPCOMMIT(T, id) CASE(T, 0, h_CPCOMMIT)
#define C_CPWAIT(T, id) CASE(T, 0, h_CPWAIT)
#define C_MBARRIER C_PLAIN
#define C_MBPENDING(T, id) CASE(T, 0, h_MBPENDING)

#define PTX_OP(id, name, format, types, types2, pattern, pipe, ptx, sm, shape, expr)               \
    static ptx_handler find_##id(unsigned key) {                                                   \
        switch (key) { PTX_LIST_##types(C_##shape, id) default : return NULL; }                    \
    }
#include "fitness/ptx/ptx_ops.def"
#undef PTX_OP

static ptx_handler (*const finders[PTX_OP_COUNT])(unsigned) = {
#define PTX_OP(id, ...) [PTX_OP_##id] = find_##id,
#include "fitness/ptx/ptx_ops.def"
#undef PTX_OP
};

/* Row PTX_OP_COUNT is the guard's wrapper, or with x the wrapper of what kernels wait with. */
ptx_handler CAT(vm_find_handler_, VM_ISA)(unsigned row, unsigned t, unsigned x) {
    if (row == PTX_OP_COUNT)
        return x ? h_poll : h_guard;
    return finders[row](t * 64 + x);
}

void CAT(vm_run_set_, VM_ISA)(vm_warp *w) {
    w->run_pc = w->event_pc = w->pc;
    const ptx_insn *ip = w->code + w->pc;
    while (ip)
        ip = ip->fn(w, ip, w->regs, w->mask);
}
