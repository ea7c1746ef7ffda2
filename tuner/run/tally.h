/* Tally: reasons counted by their kind, that is, up to the numbers in them. */
#ifndef TUNER_RUN_TALLY_H
#define TUNER_RUN_TALLY_H

#include <stddef.h>
#include <stdint.h>

#define TALLY_KINDS 12 /* told apart; what comes later is counted alone */
#define TALLY_TEXT 260

typedef struct tally_kind {
    char first[TALLY_TEXT]; /* the first of the kind, as it was */
    uint64_t count;
} tally_kind;

typedef struct tally {
    tally_kind kinds[TALLY_KINDS];
    size_t kind_count;
    uint64_t others; /* of more kinds than are told apart */
} tally;

/* A tally begins as {0}. */
void tally_add(tally *t, const char *reason);

#endif
