/* Recorded data: the contents of a buffer from a file, `.npy` or raw little-endian elements. */
#ifndef CORPORA_RECORDED_H
#define CORPORA_RECORDED_H

#include "base/hash.h"
#include "base/status.h"
#include "base/type.h"

#include <stdint.h>

typedef struct corpus_recorded {
    const char *path;
    ev_sha256 sha256; /* of the file when the task was loaded */
} corpus_recorded;

/* Holds the file's size, and the header of a `.npy`, against type and count. Reads no elements.
 * EV_BAD: names the file, what it has and what it must have. */
ev_status recorded_check(const char *path, ev_type type, uint64_t count, ev_error *err) EV_CHECKED;
/* Sets the hash. */
ev_status recorded_hash(corpus_recorded *file, ev_error *err) EV_CHECKED;
/* Copies elements first .. first + count - 1 of `length` to out. EV_BAD: as above; the file is
 * another since it was hashed. */
ev_status recorded_fill(const corpus_recorded *file, ev_type type, uint64_t length, uint64_t first,
                        uint64_t count, void *out, ev_error *err) EV_CHECKED;

#endif
