/* Needs: what a variant's PTX asks of a driver, and its launches of a block. */
#ifndef BUNDLE_NEEDS_H
#define BUNDLE_NEEDS_H

#include "bundle/reader_types.h"

#define NEEDS_TARGET 24

/* The first two directives of a PTX module (PTX ISA, "PTX Module Directives"). */
typedef struct needs_head {
    int version;               /* .version x 10; 0: not there */
    char target[NEEDS_TARGET]; /* the first word of .target; "": not there */
} needs_head;

/* `ptx` need not end in a NUL. */
needs_head needs_of_ptx(const char *ptx, size_t bytes);

/* Whether a text is a PTX version such as "7.8"; *out is 78. */
bool needs_version(const char *text, int *out);
/* The number of a target such as "sm_90", "sm_90a" or "sm_100f"; 0: it is none. */
int needs_target(const char *text);

/* Most dynamic shared memory of a block at the variant's cases. A case whose launch cannot be
 * evaluated counts as 0. */
uint32_t needs_shared(const bundle_kernel *k, const bundle_variant *v);

#endif
