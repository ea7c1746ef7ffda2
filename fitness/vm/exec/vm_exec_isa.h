/* The executor, compiled once for each instruction set of the host. VM_ISA names the copy. Results
 * have the same bits in all copies: no contraction, fma through the builtin, canonical NaN. */
#include "base/hash.h"
#include "fitness/ptx/ptx_lists.h"
#include "fitness/vm/exec/exec_math.h"
#include "fitness/vm/vm_exec.h"
#include "fitness/vm/vm_texture.h"

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
#else /* uses the arguments that a tail call would pass on */
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

/* For loops that are worth unrolling only if their counts are constants. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

static const ptx_insn *division_by_zero(vm_warp *w, const ptx_insn *ip, unsigned lane);

#include "fitness/vm/exec/exec_alu.h"

#include "fitness/vm/exec/exec_float.h"

#include "fitness/vm/exec/exec_memory.h"

#include "fitness/vm/exec/exec_atomic.h"

#include "fitness/vm/exec/exec_rare.h"

#include "fitness/vm/exec/exec_video.h"

#include "fitness/vm/exec/exec_control.h"

#include "fitness/vm/exec/exec_tensor.h"

#include "fitness/vm/exec/exec_async.h"
#include "fitness/vm/exec/exec_matrix.h"

#include "fitness/vm/exec/exec_texture.h"

/* The handlers of all rows, by the column `handlers`. Handlers that serve all types of a row are
 * written out in exec_*.h. */
#define MAKE_TYPE(T, make, id, expr) make(T, id, expr)
#define MAKE_MOD MAKE_TYPE
#define MAKE_CMP MAKE_TYPE
#define MAKE_FROM MAKE_TYPE
#define MAKE_LOAD(T, make, id, expr)
#define MAKE_CONSTANT(T, make, id, expr)
#define MAKE_STORE(T, make, id, expr)
#define MAKE_ONE(T, make, id, expr)

#define PTX_OP(id, name, format, types, types2, pattern, pipe, ptx, sm, shape, handlers, expr)     \
    PTX_LIST_##types(MAKE_##handlers, H_##shape, id, expr)
#include "fitness/ptx/ptx_ops.def"
#undef PTX_OP

/* Finds the handler of a row by type and one more number: modifiers, comparison, second type or
 * space. */
#define CASE(T, x, fn)                                                                             \
    case PTX_T_##T * 64 + (x):                                                                     \
        return fn;
#define FIND_TYPE(T, one, id) CASE(T, 0, h_##id##_##T)
#define FIND_MOD(T, one, id) CASE(T, 0, h_##id##_##T) CASE(T, 1, h_##id##_##T##_mod)
#define FIND_COMPARISON(cmp, test, T, id) CASE(T, PTX_M_##cmp - PTX_M_EQ, h_##id##_##T##_##cmp)
#define FIND_CMP(T, one, id) COMPARISONS_##T(FIND_COMPARISON, T, id)
#define FIND_CONVERSION(S, T) CASE(T, PTX_T_##S, h_CVT_##T##_##S)
#define FIND_FROM(T, one, id) PTX_LIST2_CVT(FIND_CONVERSION, T)
#define FIND_LOAD(T, one, id)                                                                      \
    CASE(T, VM_SPACE_GENERIC, h_load_GENERIC)                                                      \
    CASE(T, VM_SPACE_GLOBAL, h_load_GLOBAL)                                                        \
    CASE(T, VM_SPACE_SHARED, h_load_SHARED)                                                        \
    CASE(T, VM_SPACE_LOCAL, h_load_LOCAL)                                                          \
    CASE(T, VM_SPACE_CONST, h_load_CONST)                                                          \
    CASE(T, VM_SPACE_PARAM, h_load_PARAM)                                                          \
    CASE(T, VM_SPACE_PARAM + 1, h_load_FRAME)                                                      \
    CASE(T, VM_SPACE_PARAM + 2, h_load_ENTRY)
#define FIND_CONSTANT(T, one, id)                                                                  \
    CASE(T, VM_SPACE_GENERIC, h_constant_GENERIC)                                                  \
    CASE(T, VM_SPACE_GLOBAL, h_constant_GLOBAL)
#define FIND_STORE(T, one, id)                                                                     \
    CASE(T, VM_SPACE_GENERIC, h_store_GENERIC)                                                     \
    CASE(T, VM_SPACE_GLOBAL, h_store_GLOBAL)                                                       \
    CASE(T, VM_SPACE_SHARED, h_store_SHARED)                                                       \
    CASE(T, VM_SPACE_LOCAL, h_store_LOCAL)                                                         \
    CASE(T, VM_SPACE_PARAM + 1, h_store_FRAME)
#define FIND_ONE(T, one, id) CASE(T, 0, one)

#define PTX_OP(id, name, format, types, types2, pattern, pipe, ptx, sm, shape, handlers, expr)     \
    static ptx_handler find_##id(unsigned key) {                                                   \
        switch (key) { PTX_LIST_##types(FIND_##handlers, h_##shape, id) default : return NULL; }   \
    }
#include "fitness/ptx/ptx_ops.def"
#undef PTX_OP

static ptx_handler (*const finders[PTX_OP_COUNT])(unsigned) = {
#define PTX_OP(id, ...) [PTX_OP_##id] = find_##id,
#include "fitness/ptx/ptx_ops.def"
#undef PTX_OP
};

/* Row PTX_OP_COUNT has the wrappers, by x: of guards, of polling instructions, of all instructions
 * where undefined bits travel. */
ptx_handler CAT(vm_find_handler_, VM_ISA)(unsigned row, unsigned t, unsigned x) {
    static const ptx_handler wrappers[] = {h_guard, h_poll, h_undefined};
    if (row == PTX_OP_COUNT)
        return wrappers[x];
    return finders[row](t * 64 + x);
}

void CAT(vm_run_set_, VM_ISA)(vm_warp *w) {
    w->run_pc = w->event_pc = w->pc;
    const ptx_insn *ip = w->code + w->pc;
    while (ip)
        ip = ip->fn(w, ip, w->regs, w->mask);
}
