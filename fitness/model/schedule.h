/* Schedule: the order in which the assembler would put the instructions. */
#ifndef FITNESS_MODEL_SCHEDULE_H
#define FITNESS_MODEL_SCHEDULE_H

#include "fitness/model/insns.h"
#include "fitness/model/rows.h"

#include <stdint.h>

typedef struct model_schedule {
    const uint32_t *block_end, *next; /* model_blocks' */
    uint32_t *order; /* in [first, end) of a block: its pcs in the order of issue */
} model_schedule;

typedef struct model_schedule_options {
    uint32_t window;       /* instructions looked ahead; at most MODEL_WINDOW_MOST */
    uint32_t load_latency; /* assumed latency of a load, in cycles */
} model_schedule_options;

ev_status model_schedule_make(const model_schedule_options *options, const model_insns *insns,
                              const model_rows *rows, model_schedule *out,
                              ev_error *err) EV_CHECKED;
/* Orders anew the block that begins at the pc `first`, by these options. `room`: of
 * model_schedule_room() bytes; what it held is lost. */
void model_schedule_block(const model_schedule_options *options, const model_insns *insns,
                          const model_rows *rows, uint32_t first, void *room,
                          model_schedule *schedule);
size_t model_schedule_room(const model_insns *insns);
void model_schedule_free(model_schedule *schedule);

#endif
