/* Search: the whole course of one task's search as a pure function of its settings and of what the
 * children turn out to be. It does no input, no output and no LLVM work.
 *
 * Child c is drawn from the state after the children up to c - SEARCH_LAG were committed, in order;
 * results are committed strictly in the order of the children. So the course depends neither on how
 * many workers there are nor on which of them is quicker, and it can be replayed from the records.
 *
 *     while work is left:
 *         draw as many as search_may_draw allows; have them evaluated, in any order
 *         commit what is next in order */
#ifndef TUNER_SEARCH_SEARCH_H
#define TUNER_SEARCH_SEARCH_H

#include "base/hash.h"
#include "base/status.h"
#include "fitness/gates/score.h"
#include "ir/genome.h"
#include "kernels/task.h"
#include "tuner/search/front.h"
#include "tuner/search/genomes.h"
#include "tuner/search/population.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEARCH_LAG 16 /* children on their way at most; bounds the workers that one task feeds */
#define SEARCH_ARCHIVE 96 /* the best by time that are kept for promotion */

typedef struct search search;

typedef enum strategy {
#define STRATEGY(id, name, meaning) STRATEGY_##id,
#include "tuner/search/strategies.def"
#undef STRATEGY
    STRATEGY_COUNT
} strategy;

const char *strategy_name(strategy s);
bool strategy_find(const char *name, strategy *out);

/* One start to grow from. All borrowed until the search is freed. */
typedef struct search_start {
    const task_start *start;
    size_t sites[IR_EDIT_COUNT]; /* places of each edit in its base module */
} search_start;

typedef struct search_settings {
    const search_start *starts;
    size_t start_count;
    uint64_t seed;
    uint64_t evaluations; /* 0: not known beforehand */
    strategy strategy;
    bool measured; /* times are, and so are never quite the same twice */
} search_settings;

ev_status search_new(const search_settings *settings, search **out, ev_error *err) EV_CHECKED;
void search_free(search *s); /* NULL is fine */

/* ---- drawing ---- */

bool search_may_draw(const search *s);
/* What the next child is to be made of. `message`: the `child` message for a worker, a new
 * reference. */
typedef struct search_recipe {
    uint64_t child;
    uint32_t island, generation;
    char parents[48]; /* "3,17" */
    json_t *message;
} search_recipe;

/* `let_through`: there is time to spare for timing, so this child is built and timed whatever a
 * sketch, the small cases or the model say of its speed. */
ev_status search_draw(search *s, bool let_through, search_recipe *out, ev_error *err) EV_CHECKED;
/* The same, or not, for the child that was drawn last: what the records say of it. */
void search_let_through(search *s, bool let_through);

/* ---- committing ---- */

/* By what a child may be known, in the order in which its worker asks. The first that says yes ends
 * the evaluation: a duplicate has the outcome of the child with that genome or code, and one that
 * ran the small cases alike (score.likeness) is new, and as fast and as accurate as the child that
 * did. */
typedef enum search_hash {
    SEARCH_BY_GENOME,
    SEARCH_BY_IR,      /* after LLVM's passes, of what has no sketch */
    SEARCH_BY_SKETCH,  /* the code made in haste */
    SEARCH_SKETCH_RAN, /* the likeness of that */
    SEARCH_BY_PTX,
    SEARCH_RAN, /* the likeness of what LLVM built */
    SEARCH_HASHES
} search_hash;

const char *search_hash_name(search_hash by); /* "genome", "IR", "sketch", ... */
bool search_is_exact(search_hash by); /* equal ones are the same variant, whatever is audited */
bool search_is_likeness(search_hash by);

/* How the score of a child was come by. Each value names the fields of a search_result and of a
 * search_verdict that are set; the others are zero. `hashes` are set as far as the child got. */
typedef enum search_origin {
    /* The gates judged the child. `stopped` is the gate that stopped it; GATE_NONE: `ns` and
     * `error` were timed. `small` is as far as the small cases ran. */
    SEARCH_TIMED,
    /* A committed child has the same genome or code. Result: nothing. Verdict: `same_as` names that
     * child, and the outcome (`stopped`, `ns`, `error`, `small`, `sketched`) is that child's. */
    SEARCH_DUPLICATE,
    /* The child is new and right, and a committed child has the same behavioural fingerprint.
     * Result: `stopped` is GATE_NONE. Verdict: as SEARCH_DUPLICATE. */
    SEARCH_MEMOISED,
    /* The fast code of the child gained nothing, so that LLVM did not build the child. `stopped` is
     * GATE_NONE; `ns` and `error` are search_estimate's; `small` has the times of the fast code. */
    SEARCH_ESTIMATED,
    /* The filter stopped the child: its small cases were slower than its parents'. `stopped` is
     * GATE_TIMED; `small` is set. A child of slower parents may pass with the same code. */
    SEARCH_FILTERED,
    /* The fast code of the child was wrong, so that LLVM did not build the child. `stopped` is the
     * gate that found the fault. */
    SEARCH_SCREENED
} search_origin;

/* SEARCH_DUPLICATE or SEARCH_MEMOISED: another child's outcome. */
bool search_is_known(search_origin origin);
/* The origin of a score that a worker sent: every value but SEARCH_DUPLICATE, which has no score.
 */
search_origin search_origin_of(const score *s);

/* What a worker found out about a child. Texts and genome are borrowed for the call. */
typedef struct search_result {
    const json_t *genome;              /* NULL: it was not drawn */
    const char *operators;             /* names of the arms that made it, commas between */
    const char *hashes[SEARCH_HASHES]; /* NULL or "": not reached; that of the genome is not read */
    search_origin origin;
    gate stopped;
    double ns, error;
    small_run small;
    bool screen_overruled; /* built although its fast code was wrong */
} search_result;

/* What an audit found out about a shortcut that would have ended the child and was not taken. */
typedef enum search_audit {
    AUDIT_NONE,      /* there was no audit, or the shortcut would not have ended the child */
    AUDIT_CONFIRMED, /* the shortcut would have been right */
    AUDIT_REFUTED    /* the shortcut would have been wrong */
} search_audit;

/* The same for an estimate, which may be wrong in two ways. */
typedef enum estimate_audit {
    ESTIMATE_NOT_AUDITED,
    ESTIMATE_MET,    /* the time is within the tolerance of the estimate */
    ESTIMATE_BEATEN, /* the child is faster */
    ESTIMATE_MISSED  /* the child is slower, or a gate stopped it */
} estimate_audit;

/* Audits of one child. A part of the children takes no shortcut, to learn what the shortcuts cost;
 * the tolerance of a modelled time is one part in a thousand, of a measured time two in a hundred.
 */
typedef struct search_audits {
    bool let_through;    /* as search_draw was told */
    search_audit filter; /* refuted (a regret): the child is as fast as its faster parent */
    search_audit memo;   /* of the hashes that are not exact; refuted: the outcome is another */
    search_audit screen; /* of wrong fast code; refuted: what LLVM built passed */
    estimate_audit estimate;
} search_audits;

/* What a child came to, in the course of the search. */
typedef struct search_verdict {
    search_origin origin;
    uint64_t same_as; /* of a known child; see search_origin */
    search_hash by;   /* what made it known; SEARCH_HASHES: it is not known */
    gate stopped;
    double ns, error;
    small_run small;
    sketched sketched;
    bool is_best; /* faster than each child before, and not by an estimate */
    search_audits audits;
} search_verdict;

/* Whether a committed child has this code. `sha256` is not looked at for SEARCH_BY_GENOME. */
bool search_knows(const search *s, const json_t *genome, search_hash by, const char *sha256,
                  uint64_t *same_as);
/* What a worker's question is answered by: whether `child`, drawn and not committed, is known by
 * this hash, or has the code of one that the filter stopped and would stop here too. Of an audited
 * child only genome, IR and PTX are asked. */
bool search_is_over(const search *s, uint64_t child, const json_t *genome, search_hash by,
                    const char *sha256, uint64_t *same_as);
/* Of a committed child: 0 where not known. */
void search_outcome(const search *s, uint64_t child, double *ns, double *error);
/* Time and error of a child, drawn and not committed, that was not built since its sketch gained
 * nothing: by as much as its sketch takes longer than its faster parent's it is slower itself, and
 * by as much as it is less accurate for the small cases it is so at all. */
void search_estimate(const search *s, uint64_t child, const small_run *small, double *ns,
                     double *error);
/* The next child in order. */
ev_status search_commit(search *s, const search_result *result, search_verdict *out,
                        ev_error *err) EV_CHECKED;
uint64_t search_drawn(const search *s);
uint64_t search_committed(const search *s);

/* ---- afterwards ---- */

typedef struct search_best {
    uint64_t child;
    const json_t *genome; /* borrowed */
    double ns, error;
    bool untimed; /* the time is memoised or estimated */
} search_best;

/* The best by time of all that were committed: fastest first, fewer edits first among equals. At
 * most SEARCH_ARCHIVE. */
size_t search_archive(const search *s, const search_best **out);
/* The two fronts of all that were committed: variants no less accurate than their unmodified start,
 * and those that pay with accuracy, within the task's tolerance. */
typedef enum search_front_kind { SEARCH_EXACT, SEARCH_TOLERANT, SEARCH_FRONTS } search_front_kind;
const front *search_front(const search *s, search_front_kind kind);
/* Time of an unmodified start; 0: it did not pass, or was not committed yet. */
double search_start_ns(const search *s, size_t start);
/* Draws and gains by arm so far: `tries` and `paid` have ARM_COUNT elements (tuner/search/draw.h).
 */
void search_arms(const search *s, uint64_t *tries, double *paid);

#endif
