/* Corpora: deterministic inputs for kernels, the shapes of the papers, and the three splits.
 *
 * Generators are counter-based: element i of a buffer is a function of (generator, parameters,
 * seed, i) alone, so any range can be made anywhere, in any order. */
#ifndef CORPORA_CORPUS_H
#define CORPORA_CORPUS_H

#include "base/status.h"
#include "base/type.h"
#include "corpora/recorded.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum corpus_split {
    CORPUS_SEARCH,
    CORPUS_HELD_OUT,
    CORPUS_ADVERSARIAL,
    CORPUS_SPLIT_COUNT
} corpus_split;

const char *corpus_split_name(corpus_split split); /* "search", "held-out", "adversarial" */
bool corpus_split_find(const char *name, corpus_split *out);

/* The seed of one buffer. Its high bits are the split's, so no two splits share a seed. `fresh`
 * counts the repetitions with new inputs (0 for the first). */
uint64_t corpus_seed(corpus_split split, const char *task, const char *case_name,
                     const char *argument, uint32_t fresh);

#define CORPUS_MAX_PARAMETERS 6

typedef struct corpus_parameter {
    const char *name;
    double otherwise; /* value when the task does not give one; NAN: it must be given */
    double low, high; /* allowed range, inclusive */
    const char *doc;
} corpus_parameter;

typedef struct corpus_generator {
    const char *name;
    const char *doc;
    size_t parameter_count;
    corpus_parameter parameters[CORPUS_MAX_PARAMETERS];
} corpus_generator;

size_t corpus_generator_count(void);
const corpus_generator *corpus_generator_at(size_t index);
const corpus_generator *corpus_generator_find(const char *name); /* NULL: no such generator */

/* Stands for the contents of a file, in place of a generator of the table. */
const corpus_generator *corpus_generator_file(void);

/* One buffer to fill: `values` in the order of the generator's parameters. `length` is the number
 * of elements of the whole buffer. */
typedef struct corpus_request {
    const corpus_generator *generator;
    const corpus_recorded *file; /* of corpus_generator_file: its contents; else NULL */
    double values[CORPUS_MAX_PARAMETERS];
    ev_type type;
    uint64_t length;
    uint64_t seed;
} corpus_request;

/* EV_BAD: a parameter outside its range, or a power of two outside the type, with its name; a file
 * that is not there, or whose type or size is not the buffer's. */
ev_status corpus_request_check(const corpus_request *request, ev_error *err) EV_CHECKED;
/* Fills out[0..count) with elements first .. first + count - 1. Integers are rounded, and take
 * their type's nearest value. EV_BAD: a finite number that a float type holds as an infinity. */
ev_status corpus_fill(const corpus_request *request, uint64_t first, uint64_t count, void *out,
                      ev_error *err) EV_CHECKED;

/* The shapes of the papers: one row each of corpora/shapes.def. */
typedef struct corpus_shape {
    const char *name; /* "vgg16.conv3_2" */
    const char *paper;
    size_t count;
    const char *keys[8];
    int64_t values[8];
} corpus_shape;

size_t corpus_shape_count(void);
const corpus_shape *corpus_shape_at(size_t index);
const corpus_shape *corpus_shape_find(const char *name); /* NULL: no such shape */

#endif
