/* States of warps, and steps: the effects of blocks of code on states (states.c). */
#ifndef FITNESS_MODEL_STATES_H
#define FITNESS_MODEL_STATES_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct model_states model_states;

typedef struct model_step {
    uint32_t state, block; /* 0, none: empty */
    uint32_t memory;       /* index of its accesses' times in model_steps_memory */
    uint32_t next;         /* state after it */
    uint32_t clock, wait;  /* increments of the warp's */
    uint32_t *uses;        /* of the outcome, by kind of block; NULL: it is a wait */
} model_step;

ev_status model_states_make(model_states **out, ev_error *err) EV_CHECKED;
/* Forgets all states and steps. `words`: length of a state's vector from now on. */
void model_states_begin(model_states *states, uint32_t words);
void model_states_free(model_states *states); /* NULL is fine */
/* True if steps are found often enough to pay. */
bool model_states_help(const model_states *states);
/* The number of a state, from 1; 0: no room for another. */
uint32_t model_states_number(model_states *states, const uint64_t *vector);
const uint64_t *model_states_get(const model_states *states, uint32_t state);
/* `memory`: the times of the block's `count` accesses; NULL: not known. */
model_step *model_steps_find(model_states *states, uint32_t state, uint32_t block,
                             const uint64_t *memory, uint32_t count);
/* The times of all steps' accesses. */
const uint64_t *model_steps_memory(const model_states *states);
/* True if this is the step of that state, block and times. `kept`: model_steps_memory. */
static inline bool model_step_is(const uint64_t *kept, const model_step *step, uint32_t state,
                                 uint32_t block, const uint64_t *memory, uint32_t count) {
    if (step->state != state || step->block != block)
        return false;
    uint64_t differ = 0;
    for (uint32_t i = 0; i < count; i++)
        differ |= kept[step->memory + i] ^ memory[i];
    return differ == 0;
}
/* Adds a step that was not found. */
void model_steps_add(model_states *states, const model_step *step, const uint64_t *memory,
                     uint32_t count);
/* Forgets all steps; numbers of states stay valid. */
void model_steps_forget(model_states *states);

#endif
