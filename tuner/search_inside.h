/* The inside of a search, for search*.c only. */
#ifndef TUNER_SEARCH_INSIDE_H
#define TUNER_SEARCH_INSIDE_H

#include "tuner/bandit.h"
#include "tuner/draw.h"
#include "tuner/known.h"
#include "tuner/population.h"
#include "tuner/search.h"

#define STOCK_MOST 48

/* An edit that alone did no harm, in the genome where it was tried. */
typedef struct stock_entry {
    json_t *genome;
    size_t edit;
} stock_entry;

typedef struct island {
    size_t start;
    uint32_t generation; /* restarts so far */
    uint64_t idle;       /* committed children since its best got better */
    population members;
    bandit arms;
    stock_entry stock[STOCK_MOST];
    size_t stock_count, stock_next;
} island;

/* How the search opens: unmodified starts, then their macros one at a time. */
typedef struct opening {
    json_t *genome;
    size_t start;
    bool unmodified;
} opening;

/* What is remembered of a child between its drawing and its commitment. */
typedef struct draft {
    uint32_t island;
    double parent_ns; /* the faster parent's; 0: its start's, not known yet */
    size_t parent_edits;
    bool single; /* one parent and one step */
} draft;

/* What is remembered of a committed child for ever. */
typedef struct outcome {
    double ns, error;
    gate stopped;
} outcome;

struct search {
    const search_start *starts;
    size_t start_count;
    uint64_t seed;
    double *start_ns; /* [start_count] */
    json_t **start_genomes;
    uint64_t *start_children; /* which child a start is */
    opening *openings;
    size_t opening_count;
    island *islands;
    size_t island_count;
    uint64_t drawn, committed;
    draft drafts[SEARCH_LAG];
    outcome *outcomes; /* [committed] */
    size_t outcome_capacity;
    known *known[SEARCH_HASHES];
    search_best archive[SEARCH_ARCHIVE];
    size_t archive_edits[SEARCH_ARCHIVE];
    size_t archive_count;
    uint64_t tries[BANDIT_MOST];
    double paid[BANDIT_MOST];
};

size_t genome_edit_count(const json_t *genome);
/* Same start, same macros: edits of one make sense in the other. */
bool genome_same_base(const json_t *a, const json_t *b);

#endif
