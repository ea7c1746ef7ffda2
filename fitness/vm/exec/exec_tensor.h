/* Handlers of mma and wmma.mma: a warp's product of small matrices, D = A B + C.
 *
 * Fragments (PTX ISA, "Matrix Fragments for mma"). Lane = 4 * group + t. A register of A holds the
 * elements of row `group` of a core: 8 rows of 4 * p columns, with p elements in a register. So the
 * 32 lanes of one register, in order, are the core in row-major order. The cores of A are numbered
 * down the rows first, then along k. The registers of B hold parts of columns, and the cores of B
 * are numbered along k first. An accumulator's registers 2q and 2q + 1 hold the columns 2t and 2t +
 * 1 of an 8 x 8 core; as f16, one register holds both. Only m8n8k4 of f16 has a form of its own
 * (mma_quads).
 *
 * The ISA leaves the fragments of wmma open. Here they use the same cores: down the rows first in
 * A, C and D, along k first in B, so that eight columns of the product are one run of registers.
 * f16 factors always take eight registers; if fewer are needed, the registers repeat.
 *
 * Numbers. The ISA leaves the order and precision of sums open ("at least single precision"),
 * except for f64. Here:
 *   f16, bf16, tf32: products are exact. Sums are in double, in order of k, beginning with C. The
 *   sum is rounded to D's type once, to nearest even. Subnormals are kept. tf32 takes the upper
 *   19 bits of a register and ignores the rest.
 *   f64: fma in order of k, beginning with C, each with the rounding of the instruction.
 *   integers: exact; then D wraps, or with .satfinite saturates at the bounds of s32.
 *   b1: the number of ones in a ^ b or a & b, plus C.
 * NaN results are canonical. */

/* Handles a warp of which some lanes are missing: waits for the live lanes, unless a guard excludes
 * some for good. */
static __attribute__((noinline)) const ptx_insn *part_of_warp(vm_warp *w, const ptx_insn *ip,
                                                              uint32_t mask) {
    uint32_t off = w->mask & ~mask;
    if (!off && w->live & ~mask)
        return wait_for(w, ip, mask, w->live);
    return inactive(w, ip, (unsigned)__builtin_ctz(mask),
                    (unsigned)__builtin_ctz(off ? off : ~mask));
}
#define WHOLE_WARP                                                                                 \
    do {                                                                                           \
        if (__builtin_expect(mask != VM_FULL, 0))                                                  \
            return part_of_warp(w, ip, mask);                                                      \
    } while (0)

/* The slots of an operand. 0: d, 1: a, 2: b, 3: c. */
static inline const uint32_t *fragment(const vm_warp *w, const ptx_insn *ip, unsigned operand) {
    return w->state->module->fragments + ip->v[operand];
}
#define REGISTER(slot) ((const uint32_t *)(const void *)(regs + (slot)))

/* Products of factors narrower than f64 are exact in double, so fused and separate operations give
 * the same bits. */
#ifdef __clang__
#define FUSED _Pragma("clang fp contract(fast)")
#else
#define FUSED
#endif

/* ---- one register of a factor, as a core of 8 rows or columns */

typedef void (*widen_fn)(const uint8_t *from, double *core);

#if defined(__clang__) && defined(__F16C__) /* the host converts, with the same bits as the C      \
                                               code */
static ALWAYS_INLINE void widen_f16(const uint8_t *from, double *core) {
    typedef _Float16 halves8 __attribute__((ext_vector_type(8), aligned(2)));
    typedef float floats8 __attribute__((ext_vector_type(8)));
    typedef double doubles8 __attribute__((ext_vector_type(8), aligned(8)));
    for (unsigned i = 0; i < 64; i += 8) {
        halves8 h = *(const halves8 *)(const void *)(from + (size_t)2 * i);
        floats8 f = __builtin_convertvector(h, floats8);
        *(doubles8 *)(void *)(core + i) = __builtin_convertvector(f, doubles8);
    }
}
#else
static ALWAYS_INLINE void widen_f16(const uint8_t *from, double *core) {
    const uint16_t *h = (const uint16_t *)(const void *)from;
    VECTORS for (unsigned i = 0; i < 64; i++) core[i] = f16_to_double(h[i]);
}
#endif
static ALWAYS_INLINE void widen_bf16(const uint8_t *from, double *core) {
    const uint16_t *h = (const uint16_t *)(const void *)from;
    VECTORS for (unsigned i = 0; i < 64; i++) core[i] = bf16_to_double(h[i]);
}
static ALWAYS_INLINE void widen_tf32(const uint8_t *from, double *core) {
    const uint32_t *bits = (const uint32_t *)(const void *)from;
    VECTORS for (unsigned i = 0; i < 32; i++) core[i] = f32_of_bits(bits[i] & 0xffffe000);
}
static ALWAYS_INLINE void widen_f64(const uint8_t *from, double *core) {
    memcpy(core, from, 32 * sizeof *core);
}

/* Transposes an 8 x 8 matrix of 16-bit elements. */
static inline void transpose8(uint8_t *to, const uint8_t *from) {
    typedef uint16_t matrix __attribute__((vector_size(128), aligned(2)));
    matrix m = *(const matrix *)(const void *)from;
    *(matrix *)(void *)to = __builtin_shufflevector(
        m, m, 0, 8, 16, 24, 32, 40, 48, 56, 1, 9, 17, 25, 33, 41, 49, 57, 2, 10, 18, 26, 34, 42, 50,
        58, 3, 11, 19, 27, 35, 43, 51, 59, 4, 12, 20, 28, 36, 44, 52, 60, 5, 13, 21, 29, 37, 45, 53,
        61, 6, 14, 22, 30, 38, 46, 54, 62, 7, 15, 23, 31, 39, 47, 55, 63);
}

/* Unpacks the factors to matrices: a is m x k, b is k x n, both row-major. `width`: columns of a
 * core of a. */
#define FACTORS(real)                                                                              \
    static ALWAYS_INLINE void place_a(real)(real * a, const real *core, unsigned row,              \
                                            unsigned column, unsigned k, unsigned width) {         \
        for (unsigned g = 0; g < 8; g++)                                                           \
            for (unsigned j = 0; j < width; j++)                                                   \
                a[(row + g) * k + column + j] = core[g * width + j];                               \
    }                                                                                              \
    static ALWAYS_INLINE void place_b(real)(real * b, const real *core, unsigned row,              \
                                            unsigned column, unsigned n, unsigned width) {         \
        for (unsigned j = 0; j < width; j++)                                                       \
            for (unsigned g = 0; g < 8; g++)                                                       \
                b[(row + j) * n + column + g] = core[g * width + j];                               \
    }
#define place_a(real) CAT(place_a_, real)
#define place_b(real) CAT(place_b_, real)
FACTORS(double)
FACTORS(float)

static ALWAYS_INLINE void read_a(const uint8_t *regs, const uint32_t *slots, unsigned m, unsigned k,
                                 unsigned width, widen_fn to_core, double *a) {
    double core[64];
    for (unsigned j = 0; j < k; j += width)
        for (unsigned i = 0; i < m; i += 8) {
            to_core(regs + *slots++, core);
            place_a_double(a, core, i, j, k, width);
        }
}
static ALWAYS_INLINE void read_b(const uint8_t *regs, const uint32_t *slots, unsigned k, unsigned n,
                                 unsigned width, widen_fn to_core, double *b) {
    double core[64];
    uint8_t turned[128];
    for (unsigned i = 0; i < n; i += 8)
        for (unsigned j = 0; j < k; j += width) {
            if (width == 8) { /* elements of 16 bits */
                transpose8(turned, regs + *slots++);
                to_core(turned, core);
                place_a_double(b, core, j, i, n, 8);
            } else {
                to_core(regs + *slots++, core);
                place_b_double(b, core, j, i, n, width);
            }
        }
}

/* ---- accumulators */

/* Calls a function for each element with its register's slot, lane, bit position of a half, and
 * index in c. */
#define EACH_SUM(m, n, halves, body)                                                               \
    for (unsigned col_ = 0; col_ < (n); col_ += 8)                                                 \
        for (unsigned row_ = 0; row_ < (m); row_ += 8)                                             \
            for (unsigned two_ = 0; two_ < 2; two_++) {                                            \
                uint32_t slot = slots[(halves) ? 0 : two_];                                        \
                unsigned shift = (halves) ? 16 * two_ : 0;                                         \
                unsigned at_ = row_ * (n) + col_ + two_;                                           \
                (void)shift;                                                                       \
                VECTORS for (unsigned lane = 0; lane < 32; lane++) {                               \
                    unsigned at = at_ + ((n) == 8 ? 2 * lane : lane / 4 * (n) + lane % 4 * 2);     \
                    body;                                                                          \
                }                                                                                  \
                slots += two_ ? ((halves) ? 1 : 2) : 0;                                            \
            }

static ALWAYS_INLINE void read_c(const uint8_t *regs, const uint32_t *slots, unsigned m, unsigned n,
                                 unsigned type, double *c) {
    if (type == PTX_T_f32)
        EACH_SUM(m, n, false, c[at] = f32_of_bits(REGISTER(slot)[lane]))
    else
        EACH_SUM(m, n, true, c[at] = f16_to_double(REGISTER(slot)[lane] >> shift & 0xffff))
}
static ALWAYS_INLINE void write_d(uint8_t *regs, const uint32_t *slots, unsigned m, unsigned n,
                                  unsigned type, const double *d) {
    if (type == PTX_T_f32)
        EACH_SUM(m, n, false, SLOT(uint32_t, slot)[lane] = PUT_f32(d[at]))
    else
        EACH_SUM(m, n, true, uint32_t *out = SLOT(uint32_t, slot) + lane;
                 *out = double_to_f16(d[at]) << shift | (shift ? *out : 0))
}

static inline unsigned c_type(const ptx_insn *ip) {
    return ip->u != PTX_T_none ? ip->u : ip->t;
}

/* ---- floats */

static ALWAYS_INLINE void multiply(const double *a, const double *b, double *c, unsigned m,
                                   unsigned n, unsigned k) {
    FUSED
    for (unsigned i = 0; i < m; i++) {
        double sum[32];
        for (unsigned x = 0; x < n; x++)
            sum[x] = c[i * n + x];
        for (unsigned j = 0; j < k; j++)
            for (unsigned x = 0; x < n; x++)
                sum[x] += a[i * k + j] * b[j * n + x];
        for (unsigned x = 0; x < n; x++)
            c[i * n + x] = sum[x];
    }
}

static ALWAYS_INLINE void multiply_floats(const vm_warp *w, const ptx_insn *ip, uint8_t *regs,
                                          unsigned m, unsigned n, unsigned k, unsigned width,
                                          widen_fn to_core) {
    double a[32 * 16], b[16 * 32], c[16 * 16];
    read_a(regs, fragment(w, ip, 1), m, k, width, to_core, a);
    read_b(regs, fragment(w, ip, 2), k, n, width, to_core, b);
    read_c(regs, fragment(w, ip, 3), m, n, c_type(ip), c);
    multiply(a, b, c, m, n, k);
    write_d(regs, fragment(w, ip, 0), m, n, ip->t, c);
}

#define FLOAT_TILE(type, m, n, k, width)                                                           \
    static __attribute__((noinline)) void mma_##type##_##m##_##n##_##k(                            \
        const vm_warp *w, const ptx_insn *ip, uint8_t *regs) {                                     \
        multiply_floats(w, ip, regs, m, n, k, width, widen_##type);                                \
    }
#define TILE_CASE(type, m, n, k)                                                                   \
    case PTX_M_M##m##N##n##K##k:                                                                   \
        mma_##type##_##m##_##n##_##k(w, ip, regs);                                                 \
        break;
/* f16 and bf16 have the same tiles. */
#define EACH_HALF_TILE(each, type)                                                                 \
    each(type, 16, 8, 8) each(type, 16, 8, 16) each(type, 16, 16, 16) each(type, 32, 8, 16)        \
        each(type, 8, 32, 16)
#define HALF_TILE(type, m, n, k) FLOAT_TILE(type, m, n, k, 8)
#define HALF_HANDLER(name, type)                                                                   \
    EACH_HALF_TILE(HALF_TILE, type)                                                                \
    HANDLER(name) {                                                                                \
        WHOLE_WARP;                                                                                \
        switch (ip->op) {                                                                          \
            EACH_HALF_TILE(TILE_CASE, type)                                                        \
        default:                                                                                   \
            break;                                                                                 \
        }                                                                                          \
        NEXT;                                                                                      \
    }
HALF_HANDLER(MMA_F16, f16)
HALF_HANDLER(MMA_BF16, bf16)

FLOAT_TILE(tf32, 16, 8, 4, 4)
FLOAT_TILE(tf32, 16, 8, 8, 4)
FLOAT_TILE(tf32, 16, 16, 8, 4)
HANDLER(MMA_TF32) {
    WHOLE_WARP;
    switch (ip->op) {
        TILE_CASE(tf32, 16, 8, 4)
        TILE_CASE(tf32, 16, 8, 8)
        TILE_CASE(tf32, 16, 16, 8)
    default:
        break;
    }
    NEXT;
}

/* ---- f64 */

static ALWAYS_INLINE void multiply_f64(const vm_warp *w, const ptx_insn *ip, uint8_t *regs,
                                       unsigned m, unsigned k) {
    enum { n = 8 };
    double a[16 * 16], b[16 * n], c[16 * n];
    read_a(regs, fragment(w, ip, 1), m, k, 4, widen_f64, a);
    read_b(regs, fragment(w, ip, 2), k, n, 4, widen_f64, b);
    const uint32_t *slots = fragment(w, ip, 3);
    EACH_SUM(m, n, false, c[at] = CSLOT(double, slot)[lane])
    unsigned mode = csr_mode(ip->rnd), old = round_enter(mode);
    for (unsigned i = 0; i < m; i++)
        for (unsigned j = 0; j < k; j++)
            for (unsigned x = 0; x < n; x++)
                c[i * n + x] = __builtin_fma(a[i * k + j], b[j * n + x], c[i * n + x]);
    round_leave(mode, old);
    slots = fragment(w, ip, 0);
    EACH_SUM(m, n, false, SLOT(uint64_t, slot)[lane] = PUT_f64(c[at]))
}
#define F64_TILE(m, k)                                                                             \
    static __attribute__((noinline)) void mma_f64_##m##_8_##k(const vm_warp *w,                    \
                                                              const ptx_insn *ip, uint8_t *regs) { \
        multiply_f64(w, ip, regs, m, k);                                                           \
    }
F64_TILE(8, 4)
F64_TILE(16, 4)
F64_TILE(16, 8)
F64_TILE(16, 16)
HANDLER(MMA_F64) {
    WHOLE_WARP;
    switch (ip->op) {
        TILE_CASE(f64, 8, 8, 4)
        TILE_CASE(f64, 16, 8, 4)
        TILE_CASE(f64, 16, 8, 8)
        TILE_CASE(f64, 16, 8, 16)
    default:
        break;
    }
    NEXT;
}

/* ---- integers: sums of products are below 2^24, and so exact in single precision */

static void widen_integers(const uint8_t *regs, uint32_t slot, unsigned type, float *core) {
    uint8_t bytes[128];
    memcpy(bytes, regs + slot, sizeof bytes);
    switch (type) {
    case PTX_T_u8:
        for (unsigned i = 0; i < 128; i++)
            core[i] = (float)bytes[i];
        return;
    case PTX_T_s8:
        for (unsigned i = 0; i < 128; i++)
            core[i] = (float)(int8_t)bytes[i];
        return;
    case PTX_T_u4:
        for (unsigned i = 0; i < 256; i++)
            core[i] = (float)(bytes[i / 2] >> i % 2 * 4 & 15);
        return;
    default:
        for (unsigned i = 0; i < 256; i++)
            core[i] = (float)(((bytes[i / 2] >> i % 2 * 4 & 15) ^ 8) - 8);
    }
}

static ALWAYS_INLINE void multiply_integers(const vm_warp *w, const ptx_insn *ip, uint8_t *regs,
                                            unsigned m, unsigned n, unsigned k, unsigned width) {
    float a[16 * 64], b[64 * 32], core[256];
    int32_t d[16 * 16];
    const uint32_t *slots = fragment(w, ip, 1);
    for (unsigned j = 0; j < k; j += width)
        for (unsigned i = 0; i < m; i += 8) {
            widen_integers(regs, *slots++, ip->t, core);
            place_a_float(a, core, i, j, k, width);
        }
    slots = fragment(w, ip, 2);
    for (unsigned i = 0; i < n; i += 8)
        for (unsigned j = 0; j < k; j += width) {
            widen_integers(regs, *slots++, c_type(ip), core);
            place_b_float(b, core, j, i, n, width);
        }
    for (unsigned i = 0; i < m; i++) {
        float sum[32] = {0};
        for (unsigned j = 0; j < k; j++)
            for (unsigned x = 0; x < n; x++)
                sum[x] += a[i * k + j] * b[j * n + x];
        for (unsigned x = 0; x < n; x++)
            d[i * n + x] = (int32_t)sum[x];
    }
    slots = fragment(w, ip, 3);
    bool sat = ip->sat;
    EACH_SUM(m, n, false, int32_t c = (int32_t)REGISTER(slot)[lane];
             d[at] = sat ? ptx_sat_s32((int64_t)d[at] + c) : d[at] + c)
    slots = fragment(w, ip, 0);
    EACH_SUM(m, n, false, SLOT(uint32_t, slot)[lane] = (uint32_t)d[at])
}

#define INTEGER_TILE(m, n, k, width)                                                               \
    static __attribute__((noinline)) void mma_x##width##_##m##_##n##_##k(                          \
        const vm_warp *w, const ptx_insn *ip, uint8_t *regs) {                                     \
        multiply_integers(w, ip, regs, m, n, k, width);                                            \
    }
INTEGER_TILE(8, 8, 16, 16)
INTEGER_TILE(16, 8, 16, 16)
INTEGER_TILE(16, 8, 32, 16)
INTEGER_TILE(16, 16, 16, 16)
INTEGER_TILE(32, 8, 16, 16)
INTEGER_TILE(8, 32, 16, 16)
INTEGER_TILE(8, 8, 32, 32)
INTEGER_TILE(16, 8, 32, 32)
INTEGER_TILE(16, 8, 64, 32)

HANDLER(MMA_INT) {
    WHOLE_WARP;
    if (ip->t == PTX_T_u4 || ip->t == PTX_T_s4)
        switch (ip->op) {
            TILE_CASE(x32, 8, 8, 32)
            TILE_CASE(x32, 16, 8, 32)
            TILE_CASE(x32, 16, 8, 64)
        default:
            break;
        }
    else
        switch (ip->op) {
            TILE_CASE(x16, 8, 8, 16)
            TILE_CASE(x16, 16, 8, 16)
            TILE_CASE(x16, 16, 8, 32)
            TILE_CASE(x16, 16, 16, 16)
            TILE_CASE(x16, 32, 8, 16)
            TILE_CASE(x16, 8, 32, 16)
        default:
            break;
        }
    NEXT;
}

/* Elements of one bit: a register is one element of a core of 8 x 4 words. */
HANDLER(MMA_BITS) {
    WHOLE_WARP;
    ptx_tile s = ptx_tile_of((ptx_mod)ip->op);
    unsigned words = s.k / 32u;
    uint32_t a[16 * 8], b[8 * 8], d[16 * 8];
    const uint32_t *slots = fragment(w, ip, 1);
    for (unsigned j = 0; j < words; j += 4)
        for (unsigned i = 0; i < s.m; i += 8, slots++)
            for (unsigned lane = 0; lane < 32; lane++)
                a[(i + lane / 4) * words + j + lane % 4] = REGISTER(*slots)[lane];
    slots = fragment(w, ip, 2);
    for (unsigned j = 0; j < words; j += 4, slots++)
        for (unsigned lane = 0; lane < 32; lane++)
            b[lane / 4 * words + j + lane % 4] = REGISTER(*slots)[lane];
    slots = fragment(w, ip, 3);
    EACH_SUM(s.m, 8, false, d[at] = REGISTER(slot)[lane])
    for (unsigned i = 0; i < s.m; i++)
        for (unsigned x = 0; x < 8; x++)
            for (unsigned j = 0; j < words; j++) {
                uint32_t l = a[i * words + j], r = b[x * words + j];
                d[i * 8 + x] += ptx_popc(ip->bool_op == PTX_M_BXOR ? l ^ r : l & r);
            }
    slots = fragment(w, ip, 0);
    EACH_SUM(s.m, 8, false, SLOT(uint32_t, slot)[lane] = d[at])
    NEXT;
}

/* ---- m8n8k4 of f16: the lanes 4q..4q+3 and 16+4q..16+4q+3 compute the q-th of four products */

/* The lane of a quad pair that holds row or column `index` of a factor, and the element's position
 * in it. */
static inline uint32_t quad_element(const uint8_t *regs, const uint32_t *slots, unsigned quad,
                                    unsigned index, unsigned k, bool along_k) {
    unsigned lane = along_k ? index % 4 + index / 4 * 16 : k + index / 4 * 16;
    unsigned element = along_k ? k : index % 4;
    return REGISTER(slots[element / 2])[4 * quad + lane] >> element % 2 * 16 & 0xffff;
}

/* Element i of `lane`: its position in the product's 8 x 8 accumulator. */
static inline unsigned quad_sum(unsigned lane, unsigned i, bool halves) {
    unsigned row = halves ? lane % 4 : (lane & 1) + (i & 2);
    unsigned column = halves ? i : (i & 4) + (lane & 2) + (i & 1);
    return (row + lane / 16 * 4) * 8 + column;
}

HANDLER(MMA_QUADS) {
    WHOLE_WARP;
    double sum[4][64];
    const uint32_t *a = fragment(w, ip, 1), *b = fragment(w, ip, 2), *c = fragment(w, ip, 3);
    bool c_halves = c_type(ip) == PTX_T_f16, d_halves = ip->t == PTX_T_f16;
    for (unsigned lane = 0; lane < 32; lane++)
        for (unsigned i = 0; i < 8; i++)
            sum[lane / 4 % 4][quad_sum(lane, i, c_halves)] =
                c_halves ? f16_to_double(REGISTER(c[i / 2])[lane] >> i % 2 * 16 & 0xffff)
                         : (double)f32_of_bits(REGISTER(c[i])[lane]);
    for (unsigned q = 0; q < 4; q++)
        for (unsigned at = 0; at < 64; at++)
            for (unsigned k = 0; k < 4; k++) {
                bool rows = !(ip->target & PTX_TENSOR_COL), columns = ip->target & PTX_TENSOR_BCOL;
                double l = f16_to_double(quad_element(regs, a, q, at / 8, k, rows));
                double r = f16_to_double(quad_element(regs, b, q, at % 8, k, columns));
                sum[q][at] += l * r;
            }
    const uint32_t *d = fragment(w, ip, 0);
    for (unsigned lane = 0; lane < 32; lane++)
        for (unsigned i = 0; i < 8; i++) {
            double v = sum[lane / 4 % 4][quad_sum(lane, i, d_halves)];
            uint32_t *out = SLOT(uint32_t, d[d_halves ? i / 2 : i]) + lane;
            if (!d_halves)
                *out = PUT_f32(v);
            else if (i % 2)
                *out |= double_to_f16(v) << 16;
            else
                *out = double_to_f16(v);
        }
    NEXT;
}
