/* States of warps, and what blocks of code make of them.
 *
 * A state is all that later instructions may wait for, relative to the warp's clock; each distinct
 * one is kept once and has a number. A step is what a block of code, whose memory accesses take
 * given times, makes of a state: the next state, and the cycles between. Warps in loops go round
 * the same few states, so a step is mostly found, and then costs the same however many registers
 * there are: a deterministic automaton that is built as it is used. */
#include "fitness/model/scoreboard.h"

#include <stdlib.h>
#include <string.h>

#define STATES 2048 /* the most that are kept; a power of two */
#define PLACES (2 * STATES)
#define STEPS 8192 /* a power of two */
#define PROBES 8
#define STATE_WORDS (1u << 18)  /* of all states together */
#define MEMORY_WORDS (1u << 16) /* of all steps together */
#define TRIED_OFTEN 2048        /* so many tries with less than half found: give up */

struct model_states {
    uint32_t words; /* of a state */
    uint32_t count;
    uint64_t *vectors;
    uint32_t places[PLACES]; /* number; 0: empty */
    model_step steps[STEPS];
    uint16_t taken[STEPS]; /* places of steps */
    uint32_t taken_count;
    uint64_t *memory;
    size_t memory_used;
    uint64_t tries, hits;
};

/* Two streams beside each other, multiplied and folded. */
static uint64_t hash_words(const uint64_t *words, size_t count, uint64_t seed) {
    const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t a = seed * odd, b = ~seed;
    for (size_t i = 0; i + 1 < count; i += 2) {
        a = (a ^ words[i]) * odd;
        b = (b ^ words[i + 1]) * odd;
        a ^= a >> 29;
        b ^= b >> 31;
    }
    if (count & 1)
        a = (a ^ words[count - 1]) * odd;
    a = (a ^ b >> 7) * odd;
    return a ^ a >> 32;
}

_Static_assert(STEPS <= 1 << 16, "a place is a number of 16 bits");

ev_status model_states_make(model_states **out, ev_error *err) {
    model_states *s = calloc(1, sizeof *s);
    if (s != NULL) {
        s->vectors = malloc(STATE_WORDS * sizeof *s->vectors);
        s->memory = malloc(MEMORY_WORDS * sizeof *s->memory);
    }
    *out = s;
    if (s != NULL && s->vectors != NULL && s->memory != NULL)
        return EV_OK;
    model_states_free(s);
    *out = NULL;
    return ev_fail_memory(err, sizeof *s);
}

void model_states_begin(model_states *s, uint32_t words) {
    model_steps_forget(s);
    memset(s->places, 0, sizeof s->places);
    s->words = words;
    s->count = 0;
    s->tries = s->hits = 0;
}

void model_states_free(model_states *s) {
    if (s == NULL)
        return;
    free(s->vectors);
    free(s->memory);
    free(s);
}

bool model_states_help(const model_states *s) {
    return s->tries < TRIED_OFTEN || s->hits > s->tries / 2;
}

const uint64_t *model_states_get(const model_states *s, uint32_t state) {
    return s->vectors + (size_t)(state - 1) * s->words;
}

uint32_t model_states_number(model_states *s, const uint64_t *vector) {
    uint32_t at = (uint32_t)hash_words(vector, s->words, 1) & (PLACES - 1);
    for (; s->places[at] != 0; at = (at + 1) & (PLACES - 1))
        if (memcmp(model_states_get(s, s->places[at]), vector, s->words * sizeof *vector) == 0)
            return s->places[at];
    if (s->count == STATES || (size_t)(s->count + 1) * s->words > STATE_WORDS)
        return 0;
    s->places[at] = ++s->count;
    memcpy(s->vectors + (size_t)(s->count - 1) * s->words, vector, s->words * sizeof *vector);
    return s->count;
}

const uint64_t *model_steps_memory(const model_states *s) {
    return s->memory;
}

static inline uint64_t hash_step(uint32_t state, uint32_t block, const uint64_t *memory,
                                 uint32_t count) {
    return hash_words(memory, count, (uint64_t)state << 32 | block);
}

model_step *model_steps_find(model_states *s, uint32_t state, uint32_t block,
                             const uint64_t *memory, uint32_t count) {
    uint64_t hash = hash_step(state, block, memory, count);
    s->tries++;
    for (uint32_t i = 0; i < PROBES; i++) {
        model_step *step = &s->steps[(hash + i) & (STEPS - 1)];
        if (model_step_is(s->memory, step, state, block, memory, count)) {
            s->hits++;
            return step;
        }
        if (step->state == 0)
            return NULL;
    }
    return NULL;
}

void model_steps_add(model_states *s, const model_step *step, const uint64_t *memory,
                     uint32_t count) {
    uint64_t hash = hash_step(step->state, step->block, memory, count);
    uint32_t i = 0;
    while (i < PROBES && s->steps[(hash + i) & (STEPS - 1)].state != 0)
        i++;
    if (i == PROBES || s->memory_used + count > MEMORY_WORDS)
        return;
    model_step *place = &s->steps[(hash + i) & (STEPS - 1)];
    s->taken[s->taken_count++] = (uint16_t)(place - s->steps);
    *place = *step;
    place->memory = (uint32_t)s->memory_used;
    memcpy(s->memory + s->memory_used, memory, count * sizeof *memory);
    s->memory_used += count;
}

void model_steps_forget(model_states *s) {
    for (uint32_t i = 0; i < s->taken_count; i++)
        s->steps[s->taken[i]] = (model_step){0};
    s->taken_count = 0;
    s->memory_used = 0;
}
