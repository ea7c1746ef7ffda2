/* NumPy's file format for arrays: `.npy`, little-endian, C order.
 *
 * Source: NumPy Enhancement Proposal 1, "A Simple File Format for NumPy Arrays" (R. Kern, 2007). A
 * header is a magic string, a version, a length, and a Python dictionary as text: the elements'
 * type
 * ("descr"), the order, the shape. Versions 1.0, 2.0 and 3.0 are read, 1.0 is written.
 *
 * NumPy has no bf16: its bits are stored as whole numbers of 16 bits ("<u2"). */
#ifndef CORPORA_NPY_H
#define CORPORA_NPY_H

#include "base/status.h"
#include "base/str.h"
#include "base/type.h"

#include <stdint.h>

/* Bytes that hold every header of an array of few dimensions. */
#define NPY_HEADER_MOST 4096

/* The type as files have it: "<f4" for f32, "<f2" for f16, "<u2" for bf16. */
const char *npy_descr(ev_type type);

typedef struct npy_header {
    size_t offset;  /* of the first element in the file */
    uint64_t count; /* elements: the product of the shape */
} npy_header;

/* Reads the header from the first `length` bytes of a file. `path` is for messages. EV_BAD: no such
 * file, cut off, other bytes than the type's, column-major, big-endian. */
ev_status npy_header_read(const char *path, const void *bytes, size_t length, ev_type type,
                          npy_header *out, ev_error *err) EV_CHECKED;
/* Appends the header of a one-dimensional array. The elements follow. */
void npy_header_write(ev_type type, uint64_t count, ev_str *out);
/* Writes a one-dimensional array. Errors as of ev_file_write. */
ev_status npy_write(const char *path, ev_type type, uint64_t count, const void *data,
                    ev_error *err) EV_CHECKED;

#endif
