/* The functions of the generators, by their table. Private to corpora/. */
#ifndef CORPORA_GENERATORS_H
#define CORPORA_GENERATORS_H

#include "corpora/corpus.h"

/* Prepares the state of a fill. The fill owns *state, and frees it with free() after its last
 * chunk. */
typedef ev_status corpus_begin_fn(const corpus_request *request, void **state, ev_error *err);
/* Writes elements first .. first + count - 1. Chunks of one fill come in ascending order. */
typedef void corpus_chunk_fn(const corpus_request *request, void *state, uint64_t first,
                             size_t count, double *out);

#define CORPUS_GENERATOR(name, begin, check, doc, ...) corpus_chunk_fn name##_chunk;
#include "corpora/generators.def"
#undef CORPUS_GENERATOR

corpus_begin_fn relu_mask_begin, gradient_begin, dropout_indices_begin, row_offsets_begin,
    image_begin;

#endif
