/* Random kernels for fuzzing, made out of the instruction table. */
#ifndef TESTS_FUZZ_KERNEL_TEXT_H
#define TESTS_FUZZ_KERNEL_TEXT_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KERNEL_THREADS 40 /* a warp, and a part of one */
#define KERNEL_BLOCKS 2
#define KERNEL_BYTES 1024 /* of each buffer: in, out, both */
#define KERNEL_MOST 48    /* statements */

/* The text before the statements: version, target, variables, a function to call, registers, and
 * the addresses that statements use. Then the statements, one a line, decided by the bytes; the
 * same bytes give the same text. Not every statement is one the loader takes. */
typedef struct kernel_text {
    ev_str head;
    char *lines[KERNEL_MOST + 8];
    bool left_out[KERNEL_MOST + 8];
    size_t count;
} kernel_text;

/* Free with kernel_text_free, whatever comes of it. */
kernel_text kernel_text_make(const uint8_t *data, size_t size);
void kernel_text_free(kernel_text *k);
/* Head, statements that are not left out (an empty line for those that are), "ret" and "}". The
 * text is the caller's. */
ev_str kernel_text_join(const kernel_text *k);
/* The line of the joined text, from 1, where statement 0 stands. */
unsigned kernel_text_first_line(const kernel_text *k);

#endif
