/* The inside of a search, for search*.c only. A search owns all that is in it; genomes are
 * references if a comment says so, else borrowed. Times are in modelled or measured ns, as the
 * device gives them. */
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
#define NICHES 8
#define SKELETON_DEPTHS                                                                            \
    6 /* with 0, 1, ... structural edits that open; the last: so many or more                      \
       */
#define SKELETONS_A_DEPTH 10
#define SKELETONS (SKELETON_DEPTHS * SKELETONS_A_DEPTH)
#define SEARCH_MISSED 1e-3 /* relative change; modelled times do not vary by chance */

/* An edit that did no harm alone, in the genome where it was tried. */
typedef struct stock_entry {
    const ir_genome *genome; /* a reference */
    size_t edit;
} stock_entry;

/* One island of a start. Members of the preserving field have no bold edit. Each preserving child
 * also joins an island of the other field, so that bold children grow from all that is known. */
typedef struct island {
    size_t start;
    search_field field;
    uint32_t generation; /* number of restarts so far */
    uint64_t idle;       /* committed children since the best member improved */
    population members;
    /* The fastest member of each setting of the macros, in order of time. The setting that is ahead
     * now need not be the one with the largest gain to come. */
    member niches[NICHES];
    size_t niche_count;
    bandit arms;
    stock_entry stock[STOCK_MOST];
    size_t stock_count, stock_next;
    stock_entry gains[GAINS_MOST]; /* edits that gained time, the oldest first; each waits for
                                      a try on the elite */
    size_t gain_count;
} island;

/* How much of late the children of one kind improved on the best time of their start, as faded
 * sums: logarithms of the improvements, and children. */
typedef struct effort {
    double gain, tries;
} effort;

/* Structural edits that made a skeleton faster than its parent. */
#define SKELETON_GAINS 24
typedef struct skeleton_gain {
    const ir_genome *edits; /* a reference: these edits alone, at the skeleton's macros */
    double gain;            /* logarithm of the parent's time over the child's */
    uint64_t mark;          /* of the edits and at_end */
    bool at_end;            /* they were the last ones of the skeleton */
} skeleton_gain;

/* The skeletons of one start: variants without local edits that passed, by time, the fastest first.
 * Structural edits are drawn on them alone, as local edits do not outlive a change of structure. */
typedef struct skeleton_pool {
    size_t swept;              /* children that have one edit that opens, and no other reason */
    member members[SKELETONS]; /* with references to the genomes */
    size_t count;
    bandit arms;    /* structural edits and the operators on skeletons */
    double best_ns; /* of the start's preserving variants; 0: none passed */
    bool has_limit; /* the start says how many registers a thread has: no limit applies */
    effort structure, local;
    skeleton_gain gains[SKELETON_GAINS]; /* the greatest first */
    size_t gain_count;
} skeleton_pool;

/* A child of the opening. The search opens with the unmodified starts and the genomes of earlier
 * runs. Then, if the strategy asks, come the starts with the light pipeline, and these with one
 * macro changed at a time. */
typedef struct opening {
    const ir_genome *genome; /* a reference */
    size_t start;
    bool unmodified;
    bool light;   /* the start with the light pipeline and no other change */
    bool earlier; /* of an earlier run */
} opening;

/* The data of a child that the search keeps between drawing and commitment. */
typedef struct draft {
    uint32_t island; /* for `evolve`; for others the start's number */
    uint32_t start, generation;
    double parent_ns; /* time of the faster parent; 0: use the start's time, which is not known
                         yet */
    uint64_t parent;  /* number of the first parent */
    size_t parent_edits;
    small_run reach;                         /* the filter's limits; 0: no limits */
    sketched sketch;                         /* fast-code figures of the faster parent */
    double parent_error, parent_small_error; /* errors of the faster parent: over all cases,
                                                and small_run.error */
    bool probes;      /* audit of the filter: a child that the filter would stop is built and
                         timed */
    bool audits;      /* audit of fast code and fingerprints: the child is built and timed
                         although they would end it */
    bool let_through; /* both audits, because timers were idle */
    bool single;      /* one parent and one step */
    bool skeleton;    /* drawn from the skeletons */
    bool limits;      /* the same, with a limit of registers */
    recipe_step steps[RECIPE_STEPS]; /* as in the recipe */
    unsigned step_count;
    size_t slot; /* for `gevo`: index of the individual */
} draft;

/* Hill climbing from one start: the current place. */
typedef struct climber {
    member now; /* without a genome: the start itself */
    uint64_t idle;
    uint32_t restarts;
} climber;

/* Generations of GEVO. */
typedef struct gevo {
    size_t size; /* size of the population */
    member *parents,
        *children; /* [2 * size]; in generation 0, children[i] without a genome is a start */
    size_t parent_count, child_count;
    uint64_t first; /* number of the generation's first child */
    uint32_t generation;
} gevo;

/* The fastest variants of one field and form, in order of time. */
typedef struct archive {
    search_best best[SEARCH_ARCHIVE]; /* with references to the genomes */
    size_t edits[SEARCH_ARCHIVE];     /* number of edits of each */
    size_t count;
} archive;

/* How one strategy draws and learns. */
typedef struct search_rules {
    bool opens_light;  /* children grow from the starts with the light pipeline */
    bool opens_macros; /* the opening tries each macro at each value */
    bool sketches;     /* fast code and fingerprints end wrong and known children before they
                          are built */
    bool estimates;    /* children whose fast code gains nothing at full shape get an estimated
                          time */
    bool optimised;    /* edits refer to the optimised base (ir/genome.h) */
    ev_status (*begin)(search *s, ev_error *err);
    void (*end)(search *s);
    bool (*may_draw)(const search *s);
    bool (*is_exhausted)(const search *s); /* no child is left to draw; NULL: some always is */
    /* Puts parents, steps and stock into the recipe, and fills the draft. */
    void (*draw)(search *s, recipe *r, draft *d, char lineage[48], ev_pcg *rng);
    /* Called for each committed child in order, whatever its result. */
    void (*settle)(search *s, const draft *d, const child_result *r, const search_verdict *v);
} search_rules;

extern const search_rules search_rules_evolve, search_rules_random, search_rules_hill,
    search_rules_gevo, search_rules_macros, search_rules_knobs;

struct search {
    const search_rules *rules;
    bandit *even;      /* [start_count]: equal odds for all arms, for strategies that do not
                          pay arms */
    climber *climbers; /* [start_count]; for `hill` */
    gevo gevo;         /* for `gevo` */
    uint64_t evaluations;
    const search_start *starts;
    size_t start_count;
    uint64_t seed;
    double missed;       /* an audit refutes a shortcut if the relative difference of the times
                            is larger */
    double *start_ns;    /* [start_count] */
    double *start_error; /* [start_count]: error of the unmodified start */
    front fronts[SEARCH_FRONTS];
    const ir_genome **start_genomes; /* [start_count]: references */
    uint64_t *start_children;        /* [start_count]: number of the start's child */
    opening *openings;
    size_t opening_count;
    island *islands;
    size_t island_count;
    skeleton_pool *pools; /* [start_count]; for `evolve` */
    known *filtered;      /* children that the filter stopped, by all hashes of their code */
    uint64_t drawn, committed;
    draft drafts[SEARCH_LAG];
    child_outcome *outcomes; /* [committed] */
    size_t outcome_capacity;
    known *known[SEARCH_HASHES];
    links links;               /* for `evolve` */
    arm_statistics statistics; /* for `evolve` */
    tabu_list tabu;            /* for `evolve` */
    wrong_list wrong;
    archive archives[SEARCH_FIELDS][SEARCH_FORMS];
    bool bold;          /* search_settings */
    uint64_t without;   /* recipe.without */
    const double *odds; /* the same; borrowed until the search began */
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

/* Sets one parent, or two (`mate` may be NULL). Their numbers go to `lineage`. */
void recipe_parents(recipe *r, const member *first, const member *mate, char lineage[48]);
/* Sets an unmodified start as the only parent. */
void recipe_start(recipe *r, const search *s, size_t start, char lineage[48]);
/* Replaces the parents by a genome that was made of them. Takes over the reference. */
void recipe_make(recipe *r, recipe_made made, const ir_genome *genome);
/* Adds a genome of one edit to the stock. Takes over the reference. NULL marks the recipe as
 * failed: out of memory. */
void recipe_stock(recipe *r, const ir_genome *genome);
/* Draws `count` steps: each is an arm of the bandit, with alternatives in case that arm has no
 * place; `most` arms in all. */
void recipe_steps(recipe *r, const bandit *arms, size_t count, size_t most, ev_pcg *rng);
/* Makes a bandit over the edits that have a place in the start: those of one family, or all (NULL).
 * `field`: the preserving one lacks the edits that are bold at every place. `statistics`: as for
 * bandit_begin. */
void search_open_arms(const search_start *start, const char *family, search_field field,
                      const arm_statistics *statistics, bandit *out);
/* ---- skeletons (search_skeletons.c) ---- */

ev_status skeletons_begin(search *s, ev_error *err) EV_CHECKED;
void skeletons_end(search *s);
/* Decides whether the next child of a start is drawn from its skeletons. */
bool skeletons_are_due(const search *s, size_t start, ev_pcg *rng);
/* Puts a skeleton, or two, and the steps into the recipe. */
void skeletons_draw(search *s, recipe *r, draft *d, char parents[48], ev_pcg *rng);
/* Adds the variant that all others of a start grow from: with the light pipeline or, where that
 * fails or is slower, without. The genome is borrowed. */
void skeletons_join(search *s, size_t start, const member *m);
/* Learns from a committed child of `evolve`. */
void skeletons_settle(search *s, const draft *d, const child_result *r, const search_verdict *v);

/* Whether the early sweep over the kinds of edits is done. */
bool skeletons_are_swept(const skeleton_pool *p);
/* The number of edits that open, SKELETON_DEPTHS - 1 at most. */
size_t skeleton_depth(const ir_genome *genome);
/* The arms that can change a skeleton at all. */
bandit skeleton_arms(const skeleton_pool *p, const member *m, ev_pcg *rng);
/* Fills the draft of a child of one skeleton, or of two of which `faster` is the faster. */
void skeleton_put_parent(draft *d, const member *first, const member *faster);
/* Puts the structural edits that were drawn on the recipe's parent before into its tabu list. */
void skeleton_put_tabu(recipe *r, const search *s);

/* ---- trials (search_trials.c) ---- */

/* Draws what is tried once on a skeleton; false: nothing, this time. */
bool trials_draw(search *s, skeleton_pool *p, recipe *r, draft *d, char parents[48], ev_pcg *rng);
/* Learns from a skeleton that gained so much on its parent (search_gain; 0: its time is estimated),
 * before it joins. */
void trials_learn(skeleton_pool *p, const member *parent, double gain, member *m);
void trials_end(skeleton_pool *p); /* frees what was learnt */

void archive_clear(archive *a); /* frees the genomes */
/* The start with the light pipeline, from the opening: the parent while no child was committed. Its
 * genome is borrowed, and it has no time. */
member search_light_start(const search *s, size_t start);
/* Makes a member of a result. The genome is borrowed. */
member member_of(const search *s, const child_result *r, const search_verdict *v);
bool search_passed(const search_verdict *v); /* whether the child is new and passed all gates */
/* As search_estimate, from a draft. */
double search_estimate_of(const draft *d, const small_run *small);
/* The faster parent's time; if not known, its start's time. */
double search_parent_ns(const search *s, const draft *d);
/* The gain ln(parent's time / child's time), clamped; 0: no gain. */
double search_gain(const search *s, const draft *d, const search_verdict *v);
void search_each_arm(const char *operators, void (*pay)(void *context, unsigned arm, double gain),
                     void *context, double gain);
/* Pays each of the named arms the gain. */
void search_pay_arms(bandit *arms, const char *operators, double gain);

#endif
