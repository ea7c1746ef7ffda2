/* What the good kernels of the zoo must give. */
#ifndef TESTS_FITNESS_VM_ZOO_GOOD_H
#define TESTS_FITNESS_VM_ZOO_GOOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ZOO_ANY INT32_MIN /* a word that may hold anything */

typedef enum zoo_source { ZOO_OLDER, ZOO_PATTERNS, ZOO_TEXT, ZOO_SOURCES } zoo_source;

typedef struct zoo_good {
    const char *name;
    /* Fills what the words of `out` and `both` must be; they are ZOO_ANY before. */
    void (*expect)(int32_t *out, int32_t *both);
    uint32_t shared; /* dynamic, bytes */
    float tolerance; /* 0: exact; else `out` holds floats, and this is relative */
} zoo_good;

/* The kernels of good.cu, good_patterns.cu or good_text.ptx. */
const zoo_good *zoo_good_list(zoo_source source, size_t *count);

#endif
