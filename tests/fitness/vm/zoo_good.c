/* What the good kernels of the zoo must give, computed by the host in the plainest way. */
#include "tests/fitness/vm/zoo_good.h"
#include "tests/fitness/vm/zoo.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EACH(i) for (int i = 0; i < ZOO_N; i++)
#define FIRST(i) ((i) / ZOO_THREADS * ZOO_THREADS) /* of its block */
#define PLACE(i) ((i) % ZOO_THREADS)               /* in its block */
#define LANE(i) ((i) % 32)
/* `out` by an expression over i. */
#define EXPECT(name, value)                                                                        \
    static void name(int32_t *out, int32_t *both) {                                                \
        (void)both;                                                                                \
        EACH(i) out[i] = (value);                                                                  \
    }
/* Zeros in `out`, and statements that fill `both`. */
#define EXPECT_BOTH(name, ...)                                                                     \
    static void name(int32_t *out, int32_t *both) {                                                \
        EACH(i) out[i] = 0;                                                                        \
        __VA_ARGS__                                                                                \
    }

static int in(int i) {
    return zoo_input(i);
}

/* The sum of in[k] for k in [from, to). */
static int sum(int from, int to) {
    int s = 0;
    for (int k = from; k < to; k++)
        s += in(k);
    return s;
}

static int of_float(float v) {
    int bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/* ---- good.cu */

static int turned(int i) { /* a tile of 8 x 8, turned */
    return in(FIRST(i) + PLACE(i) % 8 * 8 + PLACE(i) / 8);
}
static int stencil(int i) {
    return (i > 0 ? in(i - 1) : 0) + in(i) + (i + 1 < ZOO_N ? in(i + 1) : 0);
}
static int collatz(int i) {
    int x = in(i) + 1, steps = 0;
    for (; x != 1; steps++)
        x = x % 2 ? 3 * x + 1 : x / 2;
    return steps;
}
static int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
static int local_array(int i) {
    int a[16];
    for (int k = 0; k < 16; k++)
        a[(k * 5 + in(i)) & 15] = k;
    return a[PLACE(i) & 15];
}
static int table(int i) {
    static const int values[8] = {1, 3, 5, 7, 11, 13, 17, 19};
    return values[in(i) & 7];
}
static int compact(int i) { /* odd values of a warp, moved to its front */
    int k = i / 32 * 32;
    for (int j = k, at = k; j < k + 32; j++)
        if (in(j) & 1 && at++ == i)
            return in(j);
    return 0;
}
static int odd_of_block(int i) {
    int s = 0;
    for (int k = FIRST(i); k < FIRST(i) + ZOO_THREADS; k++)
        s += in(k) & 1;
    return s;
}
static void count16(int32_t *both) {
    for (int k = 0; k < 16; k++)
        both[k] = 0;
    EACH(i) both[in(i) & 15]++;
}
static float most(void) {
    int v = 0;
    EACH(i) v = in(i) > v ? in(i) : v;
    return (float)v;
}

EXPECT(copy, in(i))
EXPECT(block_sum, sum(FIRST(i), FIRST(i) + ZOO_THREADS))
EXPECT(warp_sum, sum(i / 32 * 32, i / 32 * 32 + 32))
EXPECT(scan, sum(FIRST(i), i + 1))
EXPECT_BOTH(histogram, count16(both);)
EXPECT(transpose, turned(i))
EXPECT(stencil_line, stencil(i))
EXPECT_BOTH(total_at_1, both[1] = sum(0, ZOO_N);)
EXPECT(flagged, i / ZOO_THREADS == ZOO_BLOCKS - 1 ? 0 : in(PLACE(i)) + 1)
EXPECT_BOTH(consumed, for (int k = 0; k < 8; k++) both[32 + k] = in(k);)
EXPECT(collatz_steps, collatz(i))
EXPECT(fibonaccis, fibonacci(in(i) & 7))
EXPECT(early, PLACE(i) >= 40 ? 0 : in(FIRST(i) + 39 - PLACE(i)))
EXPECT(locals, local_array(i))
EXPECT(swapped, in(FIRST(i) + (PLACE(i) ^ 33)))
EXPECT(tables, table(i))
EXPECT(compacted, compact(i))
EXPECT(counted, odd_of_block(i))
EXPECT(handed, PLACE(i) < 32 ? 0 : in(FIRST(i) + 63 - PLACE(i)))
EXPECT_BOTH(seven, both[0] = 7;)
EXPECT_BOTH(float_most, both[0] = of_float(most());)
EXPECT(doubled, 2 * in(i))

static const zoo_good older[] = {
    {"copy", copy, 0, 0},
    {"copy_vector", copy, 0, 0},
    {"copy_bytes", copy, 0, 0},
    {"sum_shared", block_sum, 0, 0},
    {"sum_shuffle", warp_sum, 0, 0},
    {"sum_syncwarp", warp_sum, 0, 0},
    {"scan", scan, 0, 0},
    {"histogram", histogram, 0, 0},
    {"transpose", transpose, 0, 0},
    {"stencil", stencil_line, 0, 0},
    {"lock_in_warp", total_at_1, 0, 0},
    {"lock_spin", total_at_1, 0, 0},
    {"flag_between_blocks", flagged, 0, 0},
    {"last_block_sums", total_at_1, 0, 0},
    {"producer_consumer", consumed, 0, 0},
    {"collatz", collatz_steps, 0, 0},
    {"recursion", fibonaccis, 0, 0},
    {"exits_early", early, 0, 0},
    {"local_array", locals, 0, 0},
    {"dynamic_shared", swapped, ZOO_THREADS * 4, 0},
    {"constant_table", tables, 0, 0},
    {"compact", compacted, 0, 0},
    {"count_barrier", counted, 0, 0},
    {"named_barriers", handed, 0, 0},
    {"same_value", seven, 0, 0},
    {"float_maximum", float_most, 0, 0},
    {"persistent", doubled, 0, 0},
    {"doubles", copy, 0, 0},
};

/* ---- good_patterns.cu */

static void sum_ticket(int32_t *out, int32_t *both) {
    block_sum(out, both);
    both[1] = sum(0, ZOO_N);
}
static int product(int i) {
    int s = 0;
    for (int k = 0; k < 16; k++)
        s += in(i / 16 * 16 + k) * in(k * 16 + i % 16);
    return s;
}
static int five_points(int i) {
    int x = i % 16, y = i / 16;
    return in(i) + (y > 0 ? in(i - 16) : 0) + (y < 15 ? in(i + 16) : 0) + (x > 0 ? in(i - 1) : 0) +
           (x < 15 ? in(i + 1) : 0);
}
static void three_sweeps(int32_t *out, int32_t *both) {
    int now[128], next[128];
    (void)both;
    for (int i = 0; i < 128; i++)
        now[i] = in(i);
    for (int sweep = 0; sweep < 3; sweep++) {
        for (int i = 0; i < 128; i++)
            next[i] = (i > 0 ? now[i - 1] : 0) + now[i] + (i < 127 ? now[i + 1] : 0);
        memcpy(now, next, sizeof now);
    }
    EACH(i) out[i] = PLACE(i) < 32 ? now[i / ZOO_THREADS * 32 + PLACE(i)] : 0;
}
static int compare(const void *a, const void *b) {
    const int32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}
static void sort_by(int32_t *out, int group) {
    EACH(i) out[i] = in(i);
    for (int i = 0; i < ZOO_N; i += group)
        qsort(out + i, (size_t)group, sizeof *out, compare);
}
static void sorted_warps(int32_t *out, int32_t *both) {
    (void)both;
    sort_by(out, 32);
}
static void sorted_blocks(int32_t *out, int32_t *both) {
    (void)both;
    sort_by(out, ZOO_THREADS);
}
static void radix(int32_t *out, int32_t *both) {
    (void)both;
    for (int b = 0; b < ZOO_N; b += ZOO_THREADS) {
        int at = b;
        for (int bit = 0; bit < 2; bit++)
            for (int i = b; i < b + ZOO_THREADS; i++)
                if ((in(i) & 1) == bit)
                    out[at++] = in(i);
    }
}
static int sparse_row(int i, int step, int limit) {
    int s = 0;
    for (int k = 0; k < i % 5 && k < limit; k++)
        s += (k + 1) * in((i + step * k) % ZOO_N);
    return s;
}
static void sparse_columns(int32_t *both) {
    for (int k = 0; k < 64; k++)
        both[k] = 0;
    EACH(i) both[i * 5 % 64] += 2 * in(i);
}
static float soft(int i) {
    double all = 0, greatest = 0;
    for (int k = i / 32 * 32; k < i / 32 * 32 + 32; k++)
        greatest = fmax(greatest, in(k) * 0.0625);
    for (int k = i / 32 * 32; k < i / 32 * 32 + 32; k++)
        all += exp(in(k) * 0.0625 - greatest);
    return (float)(exp(in(i) * 0.0625 - greatest) / all);
}
static float normed(int i) {
    double mean = sum(FIRST(i), FIRST(i) + ZOO_THREADS) / 64.0, squares = 0;
    for (int k = FIRST(i); k < FIRST(i) + ZOO_THREADS; k++)
        squares += (in(k)-mean) * (in(k)-mean);
    return (float)((in(i)-mean) / sqrt(squares / 64 + 1e-5));
}
static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}
static float cell(int i) {
    double x = in(i) * 0.01, c = in((i + 1) % ZOO_N) * 0.02;
    return (float)(sigmoid(0.5 - x) * tanh(sigmoid(x + 0.5) * c + sigmoid(x) * tanh(x - 0.25)));
}
static int hadamard(int i) {
    int s = 0;
    for (int k = 0; k < ZOO_THREADS; k++)
        s +=
            __builtin_popcount((unsigned)(k & PLACE(i))) & 1 ? -in(FIRST(i) + k) : in(FIRST(i) + k);
    return s;
}
static int taps(int i) {
    int s = 0;
    for (int k = -3; k <= 3; k++) {
        int at;
        if (i + k < 0)
            at = 0;
        else if (i + k >= ZOO_N)
            at = ZOO_N - 1;
        else
            at = i + k;
        s += (4 - abs(k)) * in(at);
    }
    return s;
}
static int of_ranks(int i) {
    int s = 0;
    for (int r = 0; r < ZOO_BLOCKS; r++)
        s += in(r * ZOO_THREADS + PLACE(i) % 16);
    return s;
}
static int of_leaders(void) {
    int s = 0;
    for (int i = 0; i < ZOO_N; i += 32)
        s += in(i);
    return s;
}
static void wide_words(int32_t *both) {
    uint64_t greatest = (uint64_t)most() << 20;
    both[0] = 0;
    both[1] = sum(0, ZOO_N);
    memcpy(&both[2], &greatest, sizeof greatest);
}
static int left_at(int i) {
    int v = 0;
    for (int k = 0; k < 64; k += 8) {
        v += in(FIRST(i) + k);
        if (PLACE(i) < k)
            break;
    }
    return v;
}
static int mirrored_odd(int i) {
    int other = in(FIRST(i) + 63 - PLACE(i));
    return other & 1 ? other : -1;
}
static int tree(int n) {
    return n + (n > 1 ? tree(n / 2) : 0) + (n > 2 ? tree((n - 1) / 2) : 0);
}
static int same_in_warp(int i) {
    int count = 0, first = -1;
    for (int k = i / 32 * 32; k < i / 32 * 32 + 32; k++)
        if ((in(k) & 7) == (in(i) & 7)) {
            first = first < 0 ? LANE(k) : first;
            count++;
        }
    return count * 32 + first;
}
static int extremes(int i) {
    int least = 1000, greatest = 0;
    for (int k = i / 32 * 32; k < i / 32 * 32 + 32; k++) {
        least = in(k) < least ? in(k) : least;
        greatest = in(k) > greatest ? in(k) : greatest;
    }
    return least * 1000 + greatest;
}

EXPECT_BOTH(total_at_0, both[0] = sum(0, ZOO_N);)
EXPECT(scan_before, sum(FIRST(i), i))
EXPECT(scan_warp, sum(i / 32 * 32, i + 1))
EXPECT(scan_all, sum(0, i + 1))
EXPECT(turned_tiles, in(FIRST(i) + PLACE(i) % 4 * 16 + PLACE(i) / 4))
EXPECT(products, product(i))
EXPECT(five_point, five_points(i))
EXPECT(csr, sparse_row(i, 7, 5))
EXPECT(ell, sparse_row(i, 3, 4))
EXPECT_BOTH(coo, sparse_columns(both);)
EXPECT(soft_max, of_float(soft(i)))
EXPECT(layer_norm, of_float(normed(i)))
EXPECT(lstm, of_float(cell(i)))
EXPECT(butterflies, hadamard(i))
EXPECT(convolved, taps(i))
EXPECT(all_reduced, of_ranks(i))
EXPECT(tripled, 3 * in(i) + 1)
EXPECT_BOTH(leaders, both[2] = of_leaders();)
EXPECT_BOTH(wide, wide_words(both);)
EXPECT(bytes, 4 * abs(in(i)-in((i + 1) % ZOO_N)) + in(i))
EXPECT(halves, of_float((float)(2 * in(i) + in((i + 3) % ZOO_N))))
EXPECT(left, left_at(i))
EXPECT(byte_flags, mirrored_odd(i))
EXPECT(structs, i * 1000 + in(i) + 1)
EXPECT(ackermanns, in(i) & 1 ? (in(i) & 15) + 2 : (in(i) & 15) + 1)
EXPECT(trees, tree((in(i) & 15) + 1))
EXPECT(matches, same_in_warp(i))
EXPECT(min_max, extremes(i))
EXPECT_BOTH(float_total, both[0] = of_float((float)sum(0, ZOO_N));)

static const zoo_good patterns[] = {
    {"sum_two_level", block_sum, 0, 0},
    {"sum_atomic", total_at_0, 0, 0},
    {"sum_ticket", sum_ticket, 0, 0},
    {"scan_blelloch", scan_before, 0, 0},
    {"scan_shuffle", scan_warp, 0, 0},
    {"scan_look_back", scan_all, 0, 0},
    {"histogram_private", histogram, 0, 0},
    {"histogram_global", histogram, 0, 0},
    {"transpose_padded", turned_tiles, 0, 0},
    {"product_tiled", products, 0, 0},
    {"product_double_buffer", products, 0, 0},
    {"stencil_2d", five_point, 0, 0},
    {"stencil_persistent", three_sweeps, 0, 0},
    {"warp_bitonic", sorted_warps, 0, 0},
    {"block_bitonic", sorted_blocks, 0, 0},
    {"radix_pass", radix, 0, 0},
    {"spmv_csr", csr, 0, 0},
    {"spmv_ell", ell, 0, 0},
    {"spmv_coo", coo, 0, 0},
    {"softmax", soft_max, 0, 1e-5f},
    {"layer_norm", layer_norm, 0, 1e-5f},
    {"lstm_cell", lstm, 0, 1e-5f},
    {"fft_butterflies", butterflies, 0, 0},
    {"convolution", convolved, 0, 0},
    {"all_reduce_flags", all_reduced, 0, 0},
    {"grid_stride", tripled, 0, 0},
    {"ticket_lock", leaders, 0, 0},
    {"wide_atomics", wide, 0, 0},
    {"packed_bytes", bytes, 0, 0},
    {"half_math", halves, 0, 0},
    {"early_exit_loop", left, 0, 0},
    {"bytes_as_flags", byte_flags, 0, 0},
    {"struct_values", structs, 0, 0},
    {"deep_recursion", ackermanns, 0, 0},
    {"local_stack", trees, 0, 0},
    {"match_groups", matches, 0, 0},
    {"reduce_min_max", min_max, 0, 0},
    {"compare_and_swap_float_sum", float_total, 0, 0},
};

/* ---- good_text.ptx */

static int ballot_of_twenty(int i) {
    unsigned bits = 0;
    for (int k = 0; k < 20; k++)
        bits |= (unsigned)(in(FIRST(i) + k) & 1) << k;
    return PLACE(i) < 20 ? (int)bits : 0;
}
static int spaces(int i) {
    return PLACE(i) % 4 == 1 ? PLACE(i) : PLACE(i) % 4 == 2 ? 1 : in(i);
}
static int power_of_3(int k) {
    return k ? 3 * power_of_3(k - 1) : 1;
}
static int permuted(int i) {
    uint32_t v = (uint32_t)in(i), t = (uint32_t)PLACE(i), bits = t << 16 | v << 24, turned_bits = 0;
    bits = (bits & 0x0fffffff) | (v >> 1 & 15) << 28;
    for (int k = 0; k < 32; k++)
        turned_bits |= (bits >> k & 1) << (31 - k);
    return (int)(turned_bits ^ v ^ t);
}
static int fours(int i) {
    int count = 0;
    for (int k = FIRST(i); k < FIRST(i) + ZOO_THREADS; k++)
        count += in(k) % 4 == 0;
    return count ? count + 100 : 0;
}
static void block_counters(int32_t *both) {
    for (int b = 0; b < ZOO_BLOCKS; b++)
        both[b] = sum(b * ZOO_THREADS, (b + 1) * ZOO_THREADS);
}

EXPECT(guarded_vote, ballot_of_twenty(i))
EXPECT(guarded_vote_of_all, LANE(i) < 20 ? in(i ^ 1) : 5)
EXPECT(two_groups, in(i ^ 31))
EXPECT(full_and_empty, PLACE(i) < 32 ? 0 : 6 * in(FIRST(i) + LANE(i)) + 15)
EXPECT(released, i &&PLACE(i) == 0 ? 77 : 0)
EXPECT(block_scope, PLACE(i) == 32 ? 5 : 0)
EXPECT_BOTH(counters, block_counters(both);)
EXPECT(wide_sum, in(i)-1 + in(i) - (in(i) == 0))
EXPECT(generic_spaces, spaces(i))
EXPECT(pointed, 7 * in(i))
EXPECT(powers, power_of_3(in(i) & 7))
EXPECT(permutations, permuted(i))
EXPECT(count_of_fours, fours(i))
EXPECT(squares, in(i ^ 1) * in(i ^ 1))
EXPECT(parted, i % 2 ? 1 : 32)

static const zoo_good text[] = {
    {"guarded_vote", guarded_vote, 0, 0},
    {"guarded_vote_of_all", guarded_vote_of_all, 0, 0},
    {"two_groups_meet", two_groups, 0, 0},
    {"full_and_empty", full_and_empty, 0, 0},
    {"release_and_acquire", released, 0, 0},
    {"fence_of_block_scope", block_scope, 0, 0},
    {"atomics_of_block_scope", counters, 0, 0},
    {"wide_sum", wide_sum, 0, 0},
    {"generic_spaces", generic_spaces, 0, 0},
    {"pointer_in_memory", pointed, 0, 0},
    {"power_by_recursion", powers, 0, 0},
    {"permuted_bytes", permutations, 0, 0},
    {"count_by_barrier", count_of_fours, 0, 0},
    {"dynamic_halves", squares, ZOO_THREADS * 2, 0},
    {"parted_calls", parted, 0, 0},
};

const zoo_good *zoo_good_list(zoo_source source, size_t *count) {
    static const struct {
        const zoo_good *list;
        size_t count;
    } lists[ZOO_SOURCES] = {
        [ZOO_OLDER] = {older, sizeof older / sizeof *older},
        [ZOO_PATTERNS] = {patterns, sizeof patterns / sizeof *patterns},
        [ZOO_TEXT] = {text, sizeof text / sizeof *text},
    };
    *count = lists[source].count;
    return lists[source].list;
}
