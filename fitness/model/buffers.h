/* Buffers: finds the buffer of a launch that holds an address. Addresses are bytes of the device's
 * address space. A sector has 32 bytes, a line 128. */
#ifndef FITNESS_MODEL_BUFFERS_H
#define FITNESS_MODEL_BUFFERS_H

#include "fitness/model/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODEL_MAX_BUFFERS 32

typedef struct model_buffers {
    model_buffer list[MODEL_MAX_BUFFERS];
    uint64_t first[MODEL_MAX_BUFFERS]; /* number of its first line (model_buffers_line) */
    size_t count, last;                /* last: index of the buffer found last */
} model_buffers;

static inline bool model_buffer_has(const model_buffer *buffer, uint64_t first, uint64_t bytes) {
    uint64_t at = first - buffer->address;
    return at < buffer->bytes && at + bytes <= buffer->bytes;
}

/* The index of the buffer that holds the address; MODEL_MAX_BUFFERS: no buffer does. */
static inline size_t model_buffer_of(model_buffers *b, uint64_t address) {
    size_t i = b->last;
    for (size_t n = 0; n < b->count; n++, i = i + 1 == b->count ? 0 : i + 1) {
        if (address - b->list[i].address < b->list[i].bytes) {
            b->last = i;
            return i;
        }
    }
    return MODEL_MAX_BUFFERS;
}

/* The index of the buffer that holds any byte of the sector. The buffer may begin inside the
 * sector, so the sector's last byte is looked up, too. */
static inline size_t model_buffer_of_sector(model_buffers *b, uint64_t sector) {
    size_t at = model_buffer_of(b, sector * 32);
    return at == MODEL_MAX_BUFFERS ? model_buffer_of(b, sector * 32 + 31) : at;
}

/* Numbers the lines of the buffers, one buffer behind the other. */
static inline void model_buffers_number(model_buffers *b) {
    uint64_t next = 0;
    for (size_t i = 0; i < b->count; i++) {
        b->first[i] = next;
        next += b->list[i].bytes / 128 + 2; /* it may begin and end inside a line */
    }
}

/* The number of a line (address / 128). The number is the same wherever the device has placed the
 * buffers: a case that is made anew lies elsewhere, and has the same modelled time. A line of no
 * buffer keeps its own number. */
static inline uint64_t model_buffers_line(model_buffers *b, uint64_t line) {
    size_t at = model_buffer_of(b, line * 128 + 127);
    if (at == MODEL_MAX_BUFFERS)
        at = model_buffer_of(b, line * 128);
    return at == MODEL_MAX_BUFFERS ? line : b->first[at] + line - b->list[at].address / 128;
}

#endif
