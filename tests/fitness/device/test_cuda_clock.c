/* The SM clock from stamps: by hand-made tables of two moments. */
#include "fitness/device/cuda/cuda_clock.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define COUNT 8

typedef struct tables {
    cuda_stamp before[COUNT], after[COUNT];
} tables;

/* SM `i` counts from a start of its own, and runs `cycles` in `ns`. */
static void put(tables *t, size_t i, uint64_t start, uint64_t cycles, uint64_t ns) {
    t->before[i] = (cuda_stamp){start, 1000000};
    t->after[i] = (cuda_stamp){start + cycles, 1000000 + ns};
}

static double mhz_of(const tables *t) {
    return cuda_stamps_mhz(t->before, t->after, COUNT, 1);
}

static void test_mhz(void **state) {
    (void)state;
    tables t = {0};
    assert_true(mhz_of(&t) == 0); /* nobody said anything */
    put(&t, 3, UINT64_C(1) << 40, 198000, 100000);
    assert_float_equal(mhz_of(&t), 1980, 1e-9);
    put(&t, 0, 77, 198000, 100000);
    put(&t, 5, 5, 150000, 100000); /* the median of three */
    assert_float_equal(mhz_of(&t), 1980, 1e-9);
    put(&t, 6, 5, 150000, 100000);
    put(&t, 7, 5, 150000, 100000);
    assert_float_equal(mhz_of(&t), 1500, 1e-9);
}

/* What cannot be: no stamp at one of the two moments, no time between them, a counter that was set
 * back. */
static void test_nonsense(void **state) {
    (void)state;
    tables t = {0};
    t.after[0] = (cuda_stamp){500, 1000};
    t.before[1] = (cuda_stamp){500, 1000};
    put(&t, 2, 1000, 100, 0);
    put(&t, 3, 1000, 100, 1000);
    t.after[3].cycles = 999;
    assert_true(mhz_of(&t) == 0);
    put(&t, 4, 0, 1200, 1000);
    assert_float_equal(mhz_of(&t), 1200, 1e-9);
}

/* A timer in steps of a microsecond: two hundred steps tell, fewer don't. */
static void test_grain(void **state) {
    (void)state;
    tables t = {0};
    put(&t, 1, 0, 199 * 1500, 199000);
    assert_true(cuda_stamps_mhz(t.before, t.after, COUNT, 1000) == 0);
    assert_float_equal(cuda_stamps_mhz(t.before, t.after, COUNT, 32), 1500, 1e-9);
    assert_true(cuda_stamps_mhz(t.before, t.after, COUNT, INFINITY) == 0); /* not measured */
    put(&t, 2, 0, 200 * 1600, 200000);
    assert_float_equal(cuda_stamps_mhz(t.before, t.after, COUNT, 1000), 1600, 1e-9);
}

static void test_drop(void **state) {
    (void)state;
    double best = 0;
    assert_false(cuda_clock_dropped(0, &best)); /* not known */
    assert_false(cuda_clock_dropped(1500, &best));
    assert_false(cuda_clock_dropped(1980, &best));
    assert_false(cuda_clock_dropped(1900, &best));
    assert_true(cuda_clock_dropped(1500, &best));
    assert_false(cuda_clock_dropped(0, &best));
    assert_float_equal(best, 1980, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mhz),
        cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_grain),
        cmocka_unit_test(test_drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
