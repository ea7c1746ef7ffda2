/* cuRAND's device functions as curand_kernel.h has them, run in the virtual machine: Philox by the
 * known answers of its authors' library, XORWOW by Marsaglia's paper, and the numbers that are made
 * of the words against long double. */
#include "tests/kernels/cuda_build.h"

#include <math.h>
#include <stdint.h>

enum { WORDS = 96 };

static vm_module *module;

static void run(const char *name, const uint32_t *in, uint32_t out[WORDS]) {
    ev_error err = {EV_OK, ""};
    const vm_entry *entry = vm_module_find(module, name);
    vm_memory *memory = NULL;
    uint64_t at[2] = {0};
    assert_non_null(entry);
    if (vm_memory_new(1u << 20, &memory, &err) != EV_OK ||
        vm_memory_alloc(memory, 48, VM_BUFFER_IN, "in", &at[0], &err) != EV_OK ||
        vm_memory_alloc(memory, WORDS * 4, VM_BUFFER_OUT, "out", &at[1], &err) != EV_OK)
        fail_msg("%s", err.text);
    memcpy(vm_memory_host(memory, at[0]), in, 48);
    memset(vm_memory_host(memory, at[1]), 0, (size_t)WORDS * 4);
    unsigned char params[16];
    for (int i = 0; i < 2; i++)
        memcpy(params + entry->params[i].offset, &at[i], sizeof at[i]);
    cuda_run(memory, module, entry, params, 1, name);
    memcpy(out, vm_memory_host(memory, at[1]), (size_t)WORDS * 4);
    vm_memory_free(memory);
}

/* ---- Philox ---- */

/* kat_vectors of Random123 1.14 (Salmon et al.), philox4x32 with 10 rounds. */
static void philox_has_the_known_answers(void **state) {
    (void)state;
    static const struct {
        uint32_t in[12], out[4];
    } known[] = {
        {{0, 0, 0, 0, 0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        uint32_t out[WORDS];
        run("rounds", known[i].in, out);
        assert_memory_equal(out, known[i].out, sizeof known[i].out);
    }
}

/* The paper's ten rounds, for the words at any place: number `index` of a subsequence. */
static uint32_t philox_word(const uint32_t in[12], uint64_t index) {
    uint64_t sub = in[2] | (uint64_t)in[3] << 32, block = index / 4;
    uint32_t c[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)sub,
                     (uint32_t)(sub >> 32)};
    uint32_t k[2] = {in[0], in[1]};
    for (int round = 0; round < 10; round++) {
        uint64_t a = 0xD2511F53ull * c[0], b = 0xCD9E8D57ull * c[2];
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ k[0], (uint32_t)b,
                            (uint32_t)(a >> 32) ^ c[3] ^ k[1], (uint32_t)a};
        memcpy(c, next, sizeof c);
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
    return c[index % 4];
}

/* Seed, subsequence, offset: as cuRAND's manual has them, at each of the four places of a block. */
static void philox_places_are_the_manuals(void **state) {
    (void)state;
    for (uint32_t offset = 0; offset < 9; offset++) {
        uint32_t in[12] = {0x89abcdef, 0x01234567, 0x55667788, 0x11223344, offset}, out[WORDS];
        run("words", in, out);
        for (uint32_t i = 0; i < 26; i++)
            assert_int_equal(out[i], philox_word(in, offset + i));
        /* The same by skipping: 2^35 + offset numbers, and 5 subsequences, over the carry. */
        uint32_t from[12] = {0x89abcdef, 0x01234567, 0xfffffffe, 0x11223344, 3, 0, offset, 8, 5};
        uint32_t to[12] = {0x89abcdef, 0x01234567, 3, 0x11223345};
        run("words", from, out);
        for (uint32_t i = 0; i < 26; i++)
            assert_int_equal(out[i], philox_word(to, (8ull << 32) + 3 + offset + i));
    }
}

/* Words of NVIDIA's own curand_kernel.h, of CUDA 13.0, run in the virtual machine. */
static void philox_is_nvidias(void **state) {
    (void)state;
    const uint32_t in[12] = {0x90abcdef, 0x12345678, 0x55667788, 0x11223344, 5};
    static const uint32_t want[] = {0x6d4c87e3, 0x1007e2ea, 0x5958e7d7,
                                    0xa1de507d, 0x238c5969, 0x5548c9dd};
    uint32_t out[WORDS];
    run("words", in, out);
    assert_memory_equal(out, want, sizeof want);
}

/* ---- numbers, by the words that they are made of ---- */

typedef struct source {
    uint32_t (*next)(struct source *);
    uint32_t in[12]; /* of Philox; the state of XORWOW */
    uint64_t index;
    const uint32_t *got;
} source;

static uint32_t next_philox(source *s) {
    return philox_word(s->in, s->index++);
}

/* Marsaglia 2003, page 5. */
static uint32_t next_xorwow(source *s) {
    uint32_t *d = &s->in[0], *x = &s->in[1], t = x[0] ^ (x[0] >> 2);
    memmove(x, x + 1, 4 * sizeof *x);
    x[4] = (x[4] ^ (x[4] << 4)) ^ (t ^ (t << 1));
    return (*d += 362437) + x[4];
}

static void expect_float(source *s, long double want, bool is_exact) {
    float got;
    memcpy(&got, s->got++, sizeof got);
    long double error = fabsl((long double)got - want);
    if (is_exact ? (float)want != got : !(error <= 4e-6L * fmaxl(1, fabsl(want))))
        fail_msg("%.9g, and not %.9Lg", (double)got, want);
}

static void expect_double(source *s, long double want, bool is_exact) {
    double got;
    memcpy(&got, s->got, sizeof got);
    s->got += 2;
    long double error = fabsl((long double)got - want);
    if (is_exact ? (double)want != got : !(error <= 1e-14L * fmaxl(1, fabsl(want))))
        fail_msg("%.17g, and not %.17Lg", got, want);
}

static long double unit(source *s) {
    return (long double)(float)s->next(s) * 0x1p-32L + 0x1p-33L;
}

static long double unit_double(source *s) {
    uint64_t low = s->next(s), high = s->next(s);
    return (long double)(double)(low ^ high << 21) * 0x1p-53L + 0x1p-54L;
}

/* Box and Muller's pair. */
static void pair(source *s, bool is_double, long double *sine, long double *cosine) {
    long double a = is_double ? unit_double(s) : unit(s), b;
    b = is_double ? unit_double(s) : (long double)s->next(s) * 0x1p-32L + 0x1p-33L;
    long double radius = sqrtl(-2 * logl(a)), turn = 2 * acosl(-1) * b;
    *sine = radius * sinl(turn);
    *cosine = radius * cosl(turn);
}

static void expect_pair(source *s, bool is_double) {
    long double x, y;
    pair(s, is_double, &x, &y);
    (is_double ? expect_double : expect_float)(s, x, false);
    (is_double ? expect_double : expect_float)(s, y, false);
}

static void expect_numbers(source *s, bool is_philox) {
    long double x, y, u, v;
    expect_float(s, unit(s), true);
    if (is_philox)
        expect_double(s, (long double)s->next(s) * 0x1p-32L + 0x1p-32L, true);
    else
        expect_double(s, unit_double(s), true);
    pair(s, false, &x, &y);
    expect_float(s, x, false);
    expect_pair(s, false);
    expect_float(s, y, false);
    pair(s, true, &x, &y);
    expect_double(s, x, false);
    expect_pair(s, true);
    expect_double(s, y, false);
    pair(s, false, &x, &y);
    expect_float(s, expl(0.5L + 2 * x), false);
    expect_float(s, expl(0.5L + 2 * y), false);
    pair(s, true, &x, &y);
    expect_double(s, expl(0.5L + 2 * x), false);
    pair(s, false, &u, &v);
    expect_float(s, expl(0.5L + 2 * u), false);
    expect_float(s, expl(0.5L + 2 * v), false);
}

static void philox_numbers(void **state) {
    (void)state;
    for (uint32_t seed = 0; seed < 6; seed++) {
        source s = {next_philox, {seed, 7, seed * 3, 0, seed}, seed, NULL};
        uint32_t out[WORDS];
        run("philox", s.in, out);
        s.got = out;
        expect_numbers(&s, true);
        for (int i = 0; i < 4; i++)
            expect_float(&s, unit(&s), true);
        expect_pair(&s, false);
        expect_pair(&s, false);
        for (int i = 0; i < 6; i++)
            expect_double(&s, unit_double(&s), true);
        expect_pair(&s, true);
        expect_pair(&s, true);
        assert_int_equal(*s.got, s.next(&s));
    }
}

static void xorwow_numbers(void **state) {
    (void)state;
    /* The words of NVIDIA's own header from this state. */
    static const uint32_t words[] = {0x5887f, 0xb151e, 0x10ede8, 0x1b54e2, 0x720b03};
    source s = {next_xorwow, {100, 1, 2, 3, 4, 5}, 0, NULL};
    uint32_t out[WORDS];
    run("xorwow", s.in, out);
    assert_memory_equal(out, words, sizeof words);
    s.got = out;
    for (int i = 0; i < 5; i++)
        assert_int_equal(*s.got++, s.next(&s));
    expect_numbers(&s, false);
    assert_int_equal(*s.got++, s.next(&s));
    assert_int_equal(s.got[0], 48); /* bytes of NVIDIA's states */
    assert_int_equal(s.got[1], 64);
}

static int set_up(void **state) {
    (void)state;
    module = cuda_build("tests/kernels/curand.cu");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    vm_module_free(module);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_has_the_known_answers),
        cmocka_unit_test(philox_places_are_the_manuals),
        cmocka_unit_test(philox_is_nvidias),
        cmocka_unit_test(philox_numbers),
        cmocka_unit_test(xorwow_numbers),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
