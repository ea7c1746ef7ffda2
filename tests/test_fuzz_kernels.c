/* Random kernels of a fixed seed, held to what the fuzz target holds them to. */
#include "base/pcg.h"
#include "tests/fuzz/kernel_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#ifndef KERNELS
#define KERNELS 500
#endif
#define BYTES 700

static void test_random_kernels(void **state) {
    (void)state;
    const char *given = getenv("EVOKE_FUZZ_SEED");
    uint64_t seed = given ? (uint64_t)atoll(given) : 3;
    ev_pcg rng = ev_pcg_seed(seed, 11);
    for (unsigned i = 0; i < KERNELS; i++) {
        uint8_t bytes[BYTES];
        for (size_t k = 0; k < sizeof bytes; k++)
            bytes[k] = (uint8_t)ev_pcg_below(&rng, 256);
        char *wrong = kernel_check(bytes, sizeof bytes);
        if (wrong)
            fprintf(stderr, "kernel %u of seed %llu: %s\n", i, (unsigned long long)seed, wrong);
        assert_null(wrong);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_kernels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
