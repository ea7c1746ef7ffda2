/* Handlers of atomics. Lanes are served one after another, in ascending order. */

typedef void (*atomic_fn)(uint8_t *at, const ptx_insn *ip, uint8_t *regs, unsigned lane,
                          bool give_old);

/* In global memory, sums of single precision flush subnormal operands and results; in shared memory
 * they do not (PTX ISA, atom). */
static void add_flushed(uint8_t *at, const ptx_insn *ip, uint8_t *regs, unsigned lane,
                        bool give_old) {
    uint32_t raw = LOAD_AS(uint32_t, at);
    float old = flush_f32(f32_of_bits(raw));
    float b = flush_f32(f32_of_bits(CSLOT(uint32_t, ip->b)[lane]));
    STORE_AS(uint32_t, at, bits_of_f32(flush_f32(canonical_f32(old + b))));
    if (give_old)
        SLOT(uint32_t, ip->d)[lane] = raw;
}

static inline bool atomic_on(vm_warp *w, const ptx_insn *ip, uint8_t *regs, uint32_t mask,
                             vm_access *x, atomic_fn one, bool give_old) {
    if (!locate(w, ip, x, mask))
        return false;
    if (x->space != VM_SPACE_GLOBAL && x->space != VM_SPACE_SHARED) {
        out_of_bounds(w, ip, x, (unsigned)__builtin_ctz(mask));
        stop_trap(w);
        return false;
    }
    uint64_t change = w->state->last_change;
    if (!race_atomic(w, ip, x, mask) || !check_initialised(w, ip, x, mask) ||
        !note_write(w, ip, x, mask)) {
        stop_trap(w);
        return false;
    }
    uint64_t sum = 0, kept[VM_LANES];
    const uint64_t *addr = x->addr;
    if (give_old && addr == CSLOT(uint64_t, ip->d)) /* the old values go over the addresses */
        x->addr = memcpy(kept, addr, sizeof kept);
    if (ip->t == PTX_T_f32 && x->space == VM_SPACE_GLOBAL)
        one = add_flushed;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint8_t *p = lane_host(w, x, i);
        uint64_t before = load_element(p, x->bytes, false);
        one(p, ip, regs, i, give_old);
        sum |= before ^ load_element(p, x->bytes, false);
    }
    if (!sum) /* unchanged values, as in tries at a taken lock, are no progress */
        w->state->last_change = change;
    w->state->result->counters.atomics += (unsigned)__builtin_popcount(mask);
    if (x->space == VM_SPACE_SHARED)
        count_shared(w, ip, x, mask, count_turns(x, mask));
    else
        count_access(w, ip, x, mask, true);
    x->addr = addr;
    return true;
}

#define ATOMIC_HANDLER(T, id, expr, give)                                                          \
    static void one_##id##_##T(uint8_t *at, const ptx_insn *ip, uint8_t *regs, unsigned lane,      \
                               bool give_old) {                                                    \
        MT_##T raw = LOAD_AS(MT_##T, at);                                                          \
        CT_##T old = GET_##T(raw), b = GET_##T(CSLOT(LT(T), ip->b)[lane]);                         \
        CT_##T c = ip->c == PTX_NONE ? b : GET_##T(CSLOT(LT(T), ip->c)[lane]);                     \
        (void)old, (void)b, (void)c;                                                               \
        STORE_AS(MT_##T, at, PUT_##T(expr));                                                       \
        if (give_old)                                                                              \
            SLOT(LT(T), ip->d)[lane] = raw;                                                        \
    }                                                                                              \
    static bool each_##id##_##T(vm_warp *w, const ptx_insn *ip, uint8_t *regs, uint32_t mask,      \
                                vm_access *x) {                                                    \
        return atomic_on(w, ip, regs, mask, x, one_##id##_##T, give);                              \
    }                                                                                              \
    HANDLER(id##_##T) {                                                                            \
        uint64_t space[32];                                                                        \
        vm_access x = {.addr = addresses(ip, regs, space),                                         \
                       .bytes = sizeof(MT_##T),                                                    \
                       .space = ip->space,                                                         \
                       .bias = (uint64_t)ip->imm - space_origin(ip->space)};                       \
        bool ok = ip->space == VM_SPACE_GENERIC                                                    \
                      ? each_space(w, ip, regs, mask, &x, each_##id##_##T)                         \
                      : each_##id##_##T(w, ip, regs, mask, &x);                                    \
        if (!ok)                                                                                   \
            return NULL;                                                                           \
        NEXT;                                                                                      \
    }
#define MT_b16 uint16_t
#define MT_u32 uint32_t
#define MT_s32 uint32_t
#define MT_b32 uint32_t
#define MT_u64 uint64_t
#define MT_s64 uint64_t
#define MT_b64 uint64_t
#define MT_f32 uint32_t
#define MT_f64 uint64_t
#define MT_f16 uint16_t
#define MT_bf16 uint16_t
#define MT_f16x2 uint32_t
#define MT_bf16x2 uint32_t
/* Packed atomics add the two halves separately. */
typedef struct pair {
    double lo, hi;
} pair;
#define ATOMIC_PAIR(T, H, id, give)                                                                \
    static void one_##id##_##T(uint8_t *at, const ptx_insn *ip, uint8_t *regs, unsigned lane,      \
                               bool give_old) {                                                    \
        uint32_t raw = LOAD_AS(uint32_t, at), b = CSLOT(uint32_t, ip->b)[lane];                    \
        uint32_t lo = PUT_##H(GET_##H(raw) + GET_##H(b));                                          \
        uint32_t hi = PUT_##H(GET_##H(raw >> 16) + GET_##H(b >> 16));                              \
        STORE_AS(uint32_t, at, lo | hi << 16);                                                     \
        if (give_old)                                                                              \
            SLOT(uint32_t, ip->d)[lane] = raw;                                                     \
    }                                                                                              \
    static bool each_##id##_##T(vm_warp *w, const ptx_insn *ip, uint8_t *regs, uint32_t mask,      \
                                vm_access *x) {                                                    \
        return atomic_on(w, ip, regs, mask, x, one_##id##_##T, give);                              \
    }                                                                                              \
    HANDLER(id##_##T) {                                                                            \
        uint64_t space[32];                                                                        \
        vm_access x = {.addr = addresses(ip, regs, space),                                         \
                       .bytes = 4,                                                                 \
                       .space = ip->space,                                                         \
                       .bias = (uint64_t)ip->imm - space_origin(ip->space)};                       \
        bool ok = ip->space == VM_SPACE_GENERIC                                                    \
                      ? each_space(w, ip, regs, mask, &x, each_##id##_##T)                         \
                      : each_##id##_##T(w, ip, regs, mask, &x);                                    \
        if (!ok)                                                                                   \
            return NULL;                                                                           \
        NEXT;                                                                                      \
    }
#define ATOM_u32(id, expr, give) ATOMIC_HANDLER(u32, id, expr, give)
#define ATOM_s32(id, expr, give) ATOMIC_HANDLER(s32, id, expr, give)
#define ATOM_b16(id, expr, give) ATOMIC_HANDLER(b16, id, expr, give)
#define ATOM_b32(id, expr, give) ATOMIC_HANDLER(b32, id, expr, give)
#define ATOM_u64(id, expr, give) ATOMIC_HANDLER(u64, id, expr, give)
#define ATOM_s64(id, expr, give) ATOMIC_HANDLER(s64, id, expr, give)
#define ATOM_b64(id, expr, give) ATOMIC_HANDLER(b64, id, expr, give)
#define ATOM_f32(id, expr, give) ATOMIC_HANDLER(f32, id, expr, give)
#define ATOM_f64(id, expr, give) ATOMIC_HANDLER(f64, id, expr, give)
#define ATOM_f16(id, expr, give) ATOMIC_HANDLER(f16, id, expr, give)
#define ATOM_bf16(id, expr, give) ATOMIC_HANDLER(bf16, id, expr, give)
#define ATOM_f16x2(id, expr, give) ATOMIC_PAIR(f16x2, f16, id, give)
#define ATOM_bf16x2(id, expr, give) ATOMIC_PAIR(bf16x2, bf16, id, give)
#define H_ATOM(T, id, expr) ATOM_##T(id, expr, true)
#define H_RED(T, id, expr) ATOM_##T(id, expr, false)
