/* PCG32: the published streams, jump-ahead against stepping, and an independent slow generator. */
#include "base/pcg.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The paper's section 6.3 once more, written from its definition in 128-bit arithmetic and without
 * shifts, so that it shares no expression with base/pcg.c. */
typedef struct slow_pcg {
    unsigned __int128 state;
    unsigned __int128 increment;
} slow_pcg;

static const unsigned __int128 TWO_64 = (unsigned __int128)1 << 64;

static void slow_step(slow_pcg *rng) {
    rng->state = (rng->state * 6364136223846793005u + rng->increment) % TWO_64;
}

static slow_pcg slow_seed(uint64_t seed, uint64_t stream) {
    slow_pcg rng = {0, ((unsigned __int128)stream * 2 + 1) % TWO_64};
    slow_step(&rng);
    rng.state = (rng.state + seed) % TWO_64;
    slow_step(&rng);
    return rng;
}

static uint32_t slow_next(slow_pcg *rng) {
    uint64_t old = (uint64_t)rng->state;
    slow_step(rng);
    uint64_t mixed = (old / 262144u) ^ old; /* 2^18 */
    uint32_t word = (uint32_t)(mixed / 134217728u % 4294967296u);
    unsigned turn = (unsigned)(old / 576460752303423488u); /* 2^59 */
    for (unsigned i = 0; i < turn; i++)
        word = word / 2 + (word % 2) * 2147483648u;
    return word;
}

static void test_published_stream(void **state) {
    (void)state;
    /* pcg32-demo of the reference implementation, seed 42, stream 54, round 1 */
    static const uint32_t golden[] = {0xa15c02b7, 0x7b47f409, 0xba1d3330,
                                      0x83d2f293, 0xbfa4784b, 0xcbed606e};
    ev_pcg rng = ev_pcg_seed(42, 54);
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++)
        assert_int_equal(ev_pcg_next(&rng), golden[i]);
}

static void test_against_slow_path(void **state) {
    (void)state;
    static const uint64_t seeds[] = {0, 1, 42, 0x123456789abcdef0u, UINT64_MAX, UINT64_MAX / 3};
    for (size_t s = 0; s < 6; s++) {
        for (size_t t = 0; t < 6; t++) {
            ev_pcg rng = ev_pcg_seed(seeds[s], seeds[t]);
            slow_pcg slow = slow_seed(seeds[s], seeds[t]);
            for (int i = 0; i < 2000; i++)
                assert_int_equal(ev_pcg_next(&rng), slow_next(&slow));
        }
    }
}

static void test_advance_is_stepping(void **state) {
    (void)state;
    static const uint64_t deltas[] = {0, 1, 2, 3, 7, 64, 1000, 65537};
    for (size_t d = 0; d < sizeof deltas / sizeof deltas[0]; d++) {
        ev_pcg jumped = ev_pcg_seed(7, 11);
        ev_pcg stepped = jumped;
        ev_pcg_advance(&jumped, deltas[d]);
        for (uint64_t i = 0; i < deltas[d]; i++)
            (void)ev_pcg_next(&stepped);
        assert_true(jumped.state == stepped.state);
        assert_int_equal(ev_pcg_next(&jumped), ev_pcg_next(&stepped));
    }
}

/* The period is 2^64: going -n is going 2^64 - n, and 2^63 twice comes back. */
static void test_advance_wraps(void **state) {
    (void)state;
    ev_pcg start = ev_pcg_seed(3, 5);
    ev_pcg rng = start;
    for (int i = 0; i < 12345; i++)
        (void)ev_pcg_next(&rng);
    ev_pcg_advance(&rng, (uint64_t)0 - 12345u);
    assert_true(rng.state == start.state);
    ev_pcg_advance(&rng, UINT64_MAX);
    (void)ev_pcg_next(&rng);
    assert_true(rng.state == start.state);
    ev_pcg_advance(&rng, UINT64_C(1) << 63);
    assert_true(rng.state != start.state);
    ev_pcg_advance(&rng, UINT64_C(1) << 63);
    assert_true(rng.state == start.state);
}

/* Bounds that divide 2^32 badly: every draw must come from the accepted range, in order. */
static void test_below_rejects(void **state) {
    (void)state;
    static const uint32_t bounds[] = {1, 2, 3, 6, 1000, 0x80000001u, 0xfffffffbu, UINT32_MAX};
    for (size_t b = 0; b < sizeof bounds / sizeof bounds[0]; b++) {
        uint64_t bound = bounds[b];
        uint64_t refused = (UINT64_C(1) << 32) % bound;
        ev_pcg rng = ev_pcg_seed(99, b);
        slow_pcg slow = slow_seed(99, b);
        for (int i = 0; i < 500; i++) {
            uint64_t draw = slow_next(&slow);
            while (draw < refused)
                draw = slow_next(&slow);
            assert_int_equal(ev_pcg_below(&rng, bounds[b]), draw % bound);
        }
    }
}

/* Chi-squared over six faces, 60,000 throws, five degrees of freedom: 20.5 is the 0.1 % point. */
static void test_below_is_even(void **state) {
    (void)state;
    ev_pcg rng = ev_pcg_seed(2024, 1);
    double counts[6] = {0};
    for (int i = 0; i < 60000; i++)
        counts[ev_pcg_below(&rng, 6)] += 1;
    double sum = 0;
    for (int i = 0; i < 6; i++)
        sum += (counts[i] - 10000) * (counts[i] - 10000) / 10000;
    assert_true(sum < 20.5);
}

static void test_unit_range(void **state) {
    (void)state;
    ev_pcg rng = ev_pcg_seed(1, 1);
    ev_pcg same = rng;
    double sum = 0;
    for (int i = 0; i < 100000; i++) {
        double u = ev_pcg_unit(&rng);
        uint64_t high = ev_pcg_next(&same) / 32u, low = ev_pcg_next(&same) / 64u;
        assert_true(u == (double)high / 134217728.0 + (double)low / 9007199254740992.0);
        assert_true(u >= 0 && u < 1);
        sum += u;
    }
    assert_true(sum > 49500 && sum < 50500);
}

static bool same_child(ev_pcg a, ev_pcg b) {
    return a.state == b.state && a.increment == b.increment;
}

static void test_children(void **state) {
    (void)state;
    ev_pcg child = ev_pcg_child(5, 1, 2, 3);
    assert_true(same_child(child, ev_pcg_child(5, 1, 2, 3)));
    assert_false(same_child(child, ev_pcg_child(6, 1, 2, 3)));
    assert_false(same_child(child, ev_pcg_child(5, 2, 1, 3)));
    assert_false(same_child(child, ev_pcg_child(5, 1, 3, 2)));
    assert_false(same_child(child, ev_pcg_child(5, 0, 2, 3)));
    /* Neighbours share no first draw more often than chance: 2^16 draws of 32 bits collide about
     * half a time in the mean; forty would be a broken mix. */
    enum { COUNT = 1 << 16 };
    static unsigned char seen[(UINT64_C(1) << 32) / 8 / 4096]; /* a 20-bit filter of 2^32 */
    int repeats = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        ev_pcg rng = ev_pcg_child(5, 0, i / 256, i % 256);
        uint32_t slot = ev_pcg_next(&rng) >> 12;
        repeats += seen[slot / 8] >> (slot % 8) & 1;
        seen[slot / 8] |= (unsigned char)(1u << (slot % 8));
    }
    /* 2^16 balls in 2^20 boxes: 2^20 (e^-a - 1 + a), a = 1/16, is 2006 repeats, deviation 45. */
    assert_in_range(repeats, 1780, 2230);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_stream),    cmocka_unit_test(test_against_slow_path),
        cmocka_unit_test(test_advance_is_stepping), cmocka_unit_test(test_advance_wraps),
        cmocka_unit_test(test_below_rejects),       cmocka_unit_test(test_below_is_even),
        cmocka_unit_test(test_unit_range),          cmocka_unit_test(test_children),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
