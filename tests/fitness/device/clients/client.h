/* What the clients share: the driver's functions as they are linked or looked up, a call that must
 * succeed, and the example's kernels (examples/driver/kernels.ptx: vector_add, sgemm). */
#ifndef TESTS_FITNESS_DEVICE_CLIENTS_CLIENT_H
#define TESTS_FITNESS_DEVICE_CLIENTS_CLIENT_H

#include "base/cuda/driver_types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CU_FN(symbol, name, since, scope, need, params, args) CUresult symbol params;
#include "base/cuda/driver.def"
#undef CU_FN

static inline void must_be(CUresult want, CUresult got, const char *call) {
    if (got == want)
        return;
    (void)fprintf(stderr, "%s: %d, and not %d\n", call, (int)got, (int)want);
    exit(1);
}

#define CHECK(call) must_be(CUDA_SUCCESS, (call), #call)
#define MUST(condition, words)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)fprintf(stderr, "%s\n", words);                                                  \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* The file's text with a NUL behind it; to be freed. */
static inline char *read_text(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    MUST(file != NULL && text != NULL, path);
    *bytes = fread(text, 1, (1 << 20) - 1, file);
    (void)fclose(file);
    return text;
}

static inline void fill(float *to, int count, unsigned seed) {
    for (int i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        to[i] = (float)(seed >> 8) / 16777216.0f - 0.5f;
    }
}

static inline void check_sums(const float *a, const float *b, const float *c, int n) {
    for (int i = 0; i < n; i++)
        MUST(c[i] == a[i] + b[i], "a sum is wrong");
}

#endif
