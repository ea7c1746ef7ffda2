/* The inside of a search, for search*.c only. */
#ifndef TUNER_SEARCH_SEARCH_INSIDE_H
#define TUNER_SEARCH_SEARCH_INSIDE_H

#include "tuner/search/bandit.h"
#include "tuner/search/draw.h"
#include "tuner/search/known.h"
#include "tuner/search/links.h"
#include "tuner/search/population.h"
#include "tuner/search/search.h"
#include "tuner/search/tabu.h"

#define STOCK_MOST 48
#define GAINS_MOST 16
#define NICHES 6
#define SEARCH_MISSED 1e-3 /* of a modelled time: it is never another by chance */

/* An edit that alone did no harm, in the genome where it was tried. */
typedef struct stock_entry {
    const ir_genome *genome; /* a reference */
    size_t edit;
} stock_entry;

typedef struct island {
    size_t start;
    uint32_t generation; /* restarts so far */
    uint64_t idle;       /* committed children since its best got better */
    population members;
    /* The fastest of each setting of the macros, the fastest setting first: one that is ahead now
     * need not be the one with the most to gain. */
    member niches[NICHES];
    size_t niche_count;
    bandit arms;
    stock_entry stock[STOCK_MOST];
    size_t stock_count, stock_next;
    stock_entry gains[GAINS_MOST]; /* edits that made something faster, the oldest first: each is
                                      still to be tried on the fastest */
    size_t gain_count;
} island;

/* How the search opens: unmodified starts, then, where the strategy wants it, the starts with the
 * light pipeline, then with it their macros one at a time. */
typedef struct opening {
    const ir_genome *genome; /* a reference */
    size_t start;
    bool unmodified;
    bool light; /* the start with the light pipeline, and nothing else */
} opening;

/* What is remembered of a child between its drawing and its commitment. */
typedef struct draft {
    uint32_t island; /* of `evolve`; else the start's number */
    uint32_t start, generation;
    double parent_ns; /* the faster parent's; 0: its start's, not known yet */
    uint64_t parent;  /* the first parent's number */
    size_t parent_edits;
    small_run reach;                         /* the filter's limits; 0: none */
    sketched sketch;                         /* the faster parent's */
    double parent_error, parent_small_error; /* the same one's: of all cases, and small_run.error */
    bool probes;      /* what the filter would stop is let through, to know what it costs */
    bool audits;      /* so is what the fast code or a fingerprint would make known */
    bool let_through; /* both, since timers had nothing to do */
    bool single;      /* one parent and one step */
    size_t slot;      /* of `gevo`: which individual is being born */
} draft;

/* What is remembered of a committed child for ever. */
typedef struct outcome {
    double ns, error;
    small_run small;
    sketched sketched;
    gate stopped;
    bool filtered;
} outcome;

/* Hill climbing from one start: where it stands. */
typedef struct climber {
    member now; /* without a genome: at the start */
    uint64_t idle;
    uint32_t restarts;
} climber;

/* Generations of GEVO. */
typedef struct gevo {
    size_t size; /* of the population */
    member *parents,
        *children; /* [2 * size]; generation 0: children[i] without a genome is a start */
    size_t parent_count, child_count;
    uint64_t first; /* child that the generation begins with */
    uint32_t generation;
} gevo;

/* How one strategy draws and learns. */
typedef struct search_rules {
    bool opens_light;  /* children grow from the starts with the light pipeline */
    bool opens_macros; /* the opening tries each macro at each value */
    bool sketches;     /* what is wrong or like a known child is found so before it is built */
    bool estimates;    /* and what gains nothing at full shape is given its time without that */
    bool optimised;    /* the base that its edits are of (ir/genome.h) */
    ev_status (*begin)(search *s, ev_error *err);
    void (*end)(search *s);
    bool (*may_draw)(const search *s);
    /* Puts parents, steps and stock into the recipe, and fills the draft. */
    void (*draw)(search *s, recipe *r, draft *d, char lineage[48], ev_pcg *rng);
    /* Of each child in order, whatever became of it. */
    void (*settle)(search *s, const draft *d, const search_result *r, const search_verdict *v);
} search_rules;

extern const search_rules search_rules_evolve, search_rules_random, search_rules_hill,
    search_rules_gevo;

struct search {
    const search_rules *rules;
    bandit *even;      /* [start_count]: all arms alike, for strategies that pay nothing */
    climber *climbers; /* [start_count]; of `hill` */
    gevo gevo;         /* of `gevo` */
    uint64_t evaluations;
    const search_start *starts;
    size_t start_count;
    uint64_t seed;
    double missed;       /* relative change of time that an audit does not forgive */
    double *start_ns;    /* [start_count] */
    double *start_error; /* [start_count]; of the unmodified start */
    front fronts[SEARCH_FRONTS];
    const ir_genome **start_genomes; /* [start_count]; references */
    uint64_t *start_children;        /* which child a start is */
    opening *openings;
    size_t opening_count;
    island *islands;
    size_t island_count;
    known *filtered; /* by all hashes of the code: what the filter stopped */
    uint64_t drawn, committed;
    draft drafts[SEARCH_LAG];
    outcome *outcomes; /* [committed] */
    size_t outcome_capacity;
    known *known[SEARCH_HASHES];
    links links;               /* of `evolve` */
    arm_statistics statistics; /* of `evolve` */
    tabu_list tabu;            /* of `evolve` */
    search_best archive[SEARCH_ARCHIVE];
    size_t archive_edits[SEARCH_ARCHIVE];
    size_t archive_count;
    uint64_t tries[BANDIT_MOST];
    double paid[BANDIT_MOST];
};

static inline bool draft_probes(const draft *d) {
    return d->probes || d->let_through;
}

static inline bool draft_audits(const draft *d) {
    return d->audits || d->let_through;
}

/* ---- for the rules ---- */

/* One parent, or two (`mate` may be NULL); their numbers go to `lineage`. */
void recipe_parents(recipe *r, const member *first, const member *mate, char lineage[48]);
/* A start, unmodified, as the only parent. */
void recipe_start(recipe *r, const search *s, size_t start, char lineage[48]);
/* Replaces the parents by what was crossed of them; takes the reference. */
void recipe_cross(recipe *r, const ir_genome *crossed);
/* Adds a genome of one edit to the stock; takes the reference. NULL: out of memory. */
void recipe_stock(recipe *r, const ir_genome *genome);
/* `count` steps, each an arm of the bandit and what to take where that has no place. */
void recipe_steps(recipe *r, const bandit *arms, size_t count, ev_pcg *rng);
/* A bandit over the edits that have a place in the start, of one family or of all (NULL);
 * `statistics` as bandit_begin wants it. */
void search_open_arms(const search_start *start, const char *family,
                      const arm_statistics *statistics, bandit *out);
/* Borrows the genome. */
member member_of(const search *s, const search_result *r, const search_verdict *v);
bool search_passed(const search_verdict *v); /* new, and stopped by no gate */
/* As search_estimate. */
double search_estimate_of(const draft *d, const small_run *small);
/* The faster parent's time; its start's where it has no other. */
double search_parent_ns(const search *s, const draft *d);
/* ln(parent's time / child's), within bounds; 0: none. */
double search_gain(const search *s, const draft *d, const search_verdict *v);
void search_each_arm(const char *operators, void (*pay)(void *context, unsigned arm, double gain),
                     void *context, double gain);

#endif
