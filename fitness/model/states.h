/* States of warps, and what blocks of code make of them. */
#ifndef FITNESS_MODEL_STATES_H
#define FITNESS_MODEL_STATES_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct model_states model_states;

typedef struct model_step {
    uint32_t state, block; /* 0, none: empty */
    uint32_t memory;       /* where the times of its accesses are kept */
    uint32_t next;         /* state */
    uint32_t clock, wait;  /* what the warp's grow by */
    uint32_t *uses;        /* of the outcome, by kind of block; NULL: it is a wait */
} model_step;

ev_status model_states_make(model_states **out, ev_error *err) EV_CHECKED;
/* Forgets all. `words`: of a state's vector from now on. */
void model_states_begin(model_states *states, uint32_t words);
void model_states_free(model_states *states); /* NULL is fine */
/* Whether steps are found often enough. */
bool model_states_help(const model_states *states);
/* From 1; 0: there is no room for one more. */
uint32_t model_states_number(model_states *states, const uint64_t *vector);
const uint64_t *model_states_get(const model_states *states, uint32_t state);
/* `memory`: the times of the block's `count` accesses; NULL: not known. */
model_step *model_steps_find(model_states *states, uint32_t state, uint32_t block,
                             const uint64_t *memory, uint32_t count);
/* Where the times of all steps' accesses stand. */
const uint64_t *model_steps_memory(const model_states *states);
/* Whether this is the step; `kept`: model_steps_memory. */
static inline bool model_step_is(const uint64_t *kept, const model_step *step, uint32_t state,
                                 uint32_t block, const uint64_t *memory, uint32_t count) {
    if (step->state != state || step->block != block)
        return false;
    uint64_t differ = 0;
    for (uint32_t i = 0; i < count; i++)
        differ |= kept[step->memory + i] ^ memory[i];
    return differ == 0;
}
/* Of one that was not found. */
void model_steps_add(model_states *states, const model_step *step, const uint64_t *memory,
                     uint32_t count);
/* All steps; numbers of states stay. */
void model_steps_forget(model_states *states);

#endif
