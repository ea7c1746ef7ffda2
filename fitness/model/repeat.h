/* Repeat: blocks that do again what an earlier block did, at shifted addresses. */
#ifndef FITNESS_MODEL_REPEAT_H
#define FITNESS_MODEL_REPEAT_H

#include "fitness/model/buffers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct model_log model_log; /* the batches of a block */

/* A block's position in a log, and its shift of addresses. Zero it at the begin. */
typedef struct model_repeat {
    size_t batch;
    uint64_t known;                        /* a bit a buffer */
    uint64_t shift[MODEL_MAX_BUFFERS + 1]; /* in sectors */
} model_repeat;

/* Room for a batch that was read back; freed by the owner. */
typedef struct model_copy {
    uint64_t *sectors;
    size_t room;
} model_copy;

model_log *model_log_new(void);
void model_log_free(model_log *log);  /* NULL is fine */
void model_log_clear(model_log *log); /* empties it, and keeps its memory */
void model_log_add(model_log *log, model_buffers *buffers, const vm_batch *batch);
/* A sector that the block stored to for the first time. */
void model_log_store(model_log *log, model_buffers *buffers, uint64_t sector);
/* A sector that an atomic of the block updated; each time. */
void model_log_update(model_log *log, model_buffers *buffers, uint64_t sector);
void model_log_end(model_log *log);
/* True if the next batch of a block equals the log's next, shifted; false: they differ. */
bool model_log_fits(const model_log *log, model_repeat *at, const vm_batch *batch);
/* True if the block ended with the log, and its shifted accesses stayed within the buffers. */
bool model_log_ends(const model_log *log, const model_repeat *at, model_buffers *buffers);
/* Batch `index` of those that fitted, with the block's addresses. *out borrows from the log and the
 * copy. False: out of memory. */
bool model_log_read(const model_log *log, const model_repeat *at, size_t index, uint32_t block,
                    model_copy *copy, vm_batch *out);
size_t model_log_updated_count(const model_log *log);
uint64_t model_log_updated(const model_log *log, const model_repeat *at, size_t index);
size_t model_log_stored_count(const model_log *log);
uint64_t model_log_stored(const model_log *log, const model_repeat *at, size_t index);

#endif
