/* Search: the course of one task's search, a pure function of its settings and of the children's
 * results. A search does no input, no output and no LLVM work.
 *
 * Results are committed strictly in the order of the children, and child c is drawn when child
 * c - SEARCH_LAG was committed. The course therefore depends neither on the number of workers nor
 * on their speed, and can be replayed from the records.
 *
 *     while work is left:
 *         draw children while search_may_draw; have them evaluated, in any order
 *         commit the next child in order
 *
 * Functions that return no status cannot fail. Those that do fail by EV_INFRA for want of memory,
 * and for what is said beside them. */
#ifndef TUNER_SEARCH_SEARCH_H
#define TUNER_SEARCH_SEARCH_H

#include "base/hash.h"
#include "base/status.h"
#include "fitness/gates/score.h"
#include "ir/genome.h"
#include "kernels/task.h"
#include "tuner/search/front.h"
#include "tuner/search/population.h"
#include "tuner/search/recipe.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEARCH_LAG 16     /* most children under way; bounds the workers that one task can feed */
#define SEARCH_ARCHIVE 96 /* most variants of one form that are kept for promotion, the fastest */

typedef struct search search;

typedef enum strategy {
#define STRATEGY(id, name, meaning) STRATEGY_##id,
#include "tuner/search/strategies.def"
#undef STRATEGY
    STRATEGY_COUNT
} strategy;

const char *strategy_name(strategy s);
bool strategy_find(const char *name, strategy *out);

/* A start that the search grows from. Borrowed until the search is freed. */
typedef struct search_start {
    const task_start *start;
    size_t sites[IR_EDIT_COUNT]; /* number of places for each edit in the base module */
} search_start;

typedef struct search_settings {
    const search_start *starts;
    size_t start_count;
    uint64_t seed;
    uint64_t evaluations; /* budget; 0: not known beforehand */
    strategy strategy;
    bool measured; /* times are measured, with noise, and not modelled */
    bool bold;     /* all children may be bold; else 3 of 4 are drawn in the preserving field */
    /* [ARM_COUNT] (tuner/search/draw.h): the share of an arm's children that are expected to be new
     * and right, for `evolve`; NULL: nothing is known. Borrowed until search_new returns. */
    const double *odds;
    const bool *without; /* [IR_EDIT_COUNT]: edits that are not drawn; NULL: all are. Borrowed. */
    /* Genomes of earlier runs, the best first, that the search opens with behind the starts.
     * Borrowed until search_new returns. */
    const ir_genome *const *earlier;
    size_t earlier_count;
} search_settings;

ev_status search_new(const search_settings *settings, search **out, ev_error *err) EV_CHECKED;
void search_free(search *s); /* NULL is fine */

/* ---- drawing ---- */

bool search_may_draw(const search *s);
/* Whether the strategy has drawn all that there is. */
bool search_is_exhausted(const search *s);
/* Draws the recipe of the next child, which the caller frees (recipe_free); search_may_draw must
 * hold. `let_through`: timers are idle, so that this child is built and timed without any shortcut
 * for its speed. */
ev_status search_draw(search *s, bool let_through, recipe *out, ev_error *err) EV_CHECKED;
/* Sets `let_through` of the child that was drawn last, when the records say another value. */
void search_let_through(search *s, bool let_through);

/* ---- committing ---- */

/* Deduplication keys in lookup order; the first hit ends the evaluation. A hit by genome or code
 * makes a SEARCH_DUPLICATE, a hit by a behavioural fingerprint (score.fingerprint) a
 * SEARCH_MEMOISED.
 */
typedef enum search_hash {
    SEARCH_BY_GENOME,
    SEARCH_BY_IR,      /* IR after LLVM's passes, where the fast code generation does not apply */
    SEARCH_BY_SKETCH,  /* PTX by the fast code generation */
    SEARCH_SKETCH_RAN, /* fingerprint of the fast code */
    SEARCH_BY_PTX,     /* PTX by LLVM */
    SEARCH_RAN,        /* fingerprint of the PTX by LLVM */
    SEARCH_HASHES
} search_hash;

const char *search_hash_name(search_hash by); /* "genome", "IR", "sketch", ... */
bool search_is_exact(search_hash by); /* equal hashes prove the same variant: never audited */
bool search_is_fingerprint(search_hash by);

/* How the score of a child was come by. Each value names the fields of a child_outcome that are set
 * in a child_result and in a search_verdict; the others are zero. */
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

#define CHILD_OPERATORS (9 * 32) /* of two parents and eight steps, with the longest names */

typedef struct child_outcome {
    search_origin origin;
    gate stopped;
    double ns, error;   /* relative L2 */
    uint32_t registers; /* of a thread; 0: not known */
    small_run small;
    sketched sketched; /* set by search_commit */
} child_outcome;

/* The result of a child. The pool fills it as the worker tells it, the course adds the estimate and
 * commits it, and the records keep it. */
typedef struct child_result {
    const ir_genome *genome;                   /* a reference; NULL: it was not drawn */
    char operators[CHILD_OPERATORS];           /* names of the arms that made it, commas between */
    char hashes[SEARCH_HASHES][EV_SHA256_HEX]; /* "": not reached; that of the genome is for the
                                                  records alone */
    child_outcome outcome;
    uint64_t bold;         /* number of bold edits (ir/edits.def); 0 also if it was not built */
    bool screen_overruled; /* built although its fast code was wrong */
    char reason[600];      /* the reason of the gate that stopped it, or the child that it
                              equals; "": neither */
} child_result;

void child_result_free(child_result *r); /* leaves a zeroed one */
/* Fills in outcome, screen_overruled and reason by a worker's score, which has no time of a child
 * that is memoised or estimated. */
void child_result_take_score(child_result *r, const score *s);

/* The finding of an audit: whether a shortcut that was not taken would have ended the child
 * rightly. */
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
    search_audit screen; /* of wrong fast code; refuted: the code by LLVM passed */
    estimate_audit estimate;
} search_audits;

/* The result of a child's commitment. */
typedef struct search_verdict {
    child_outcome outcome;
    uint64_t same_as; /* of a known child; see search_origin */
    search_hash by;   /* the key that made the child known; SEARCH_HASHES: it is not known */
    bool is_best;     /* faster than each child before, and not by an estimate */
    search_audits audits;
} search_verdict;

/* The key of code: its hash with start and macros, which determine the launch. */
ev_sha256 search_code_key(const ir_genome *genome, const char *sha256);
/* Whether a committed child has this key. `sha256` is ignored for SEARCH_BY_GENOME. False: *same_as
 * is not set. */
bool search_knows(const search *s, const ir_genome *genome, search_hash by, const char *sha256,
                  uint64_t *same_as);
/* Answers a worker's question: whether the evaluation of `child`, drawn and not committed, ends at
 * this key. The key is that of a committed child, or that of a filtered child that the filter would
 * stop again. An audited child ends at exact keys alone. */
bool search_is_over(const search *s, uint64_t child, const ir_genome *genome, search_hash by,
                    const char *sha256, uint64_t *same_as);
/* Time and error of a committed child; 0 where not known. */
void search_outcome(const search *s, uint64_t child, double *ns, double *error);
/* Estimates a child, drawn and not committed, whose fast code gained nothing. Its time is the
 * faster parent's, scaled by the ratio of the times of their fast code; its error is that parent's,
 * scaled by the ratio of the errors on the small cases. */
void search_estimate(const search *s, uint64_t child, const small_run *small, double *ns,
                     double *error);
/* Commits the next child in order. EV_INFRA: a worker dropped the child as known, and no committed
 * child has its key. */
ev_status search_commit(search *s, const child_result *result, search_verdict *out,
                        ev_error *err) EV_CHECKED;
uint64_t search_drawn(const search *s);
uint64_t search_committed(const search *s);

/* ---- afterwards ---- */

typedef struct search_best {
    uint64_t child;
    const ir_genome *genome; /* borrowed */
    double ns, error;
    uint64_t bold; /* number of bold edits */
    bool untimed;  /* the time is memoised or estimated */
} search_best;

/* Preserving: all edits of the variant preserve the meaning of its start, up to rounding. Any: bold
 * or not (ir/edits.def). */
typedef enum search_field { SEARCH_PRESERVING, SEARCH_ANY, SEARCH_FIELDS } search_field;

/* Plain: without structural edits. Structured: with them. Each form has its own archive, so that
 * neither crowds out the other. */
typedef enum search_form { SEARCH_PLAIN, SEARCH_STRUCTURED, SEARCH_FORMS } search_form;

/* The fastest committed variants of a field and form, fewer edits first among equals, at most
 * SEARCH_ARCHIVE. Borrowed until the next commit. */
size_t search_archive(const search *s, search_field field, search_form form,
                      const search_best **out);
/* The two fronts over all committed variants. Exact: no less accurate than the unmodified start.
 * Tolerant: less accurate, within the task's tolerance. */
typedef enum search_front_kind { SEARCH_EXACT, SEARCH_TOLERANT, SEARCH_FRONTS } search_front_kind;
const front *search_front(const search *s, search_front_kind kind);
/* The settings of macros at which an unmodified start failed a gate, in the order of their
 * commitment. Borrowed until the next commit. Returns their number. */
size_t search_wrong(const search *s, const wrong_setting **out);
/* Whether a child is a genome of an earlier run, with which the search opened. */
bool search_is_earlier(const search *s, uint64_t child);
/* Time of an unmodified start in ns; 0: it did not pass, or is not committed yet. */
double search_start_ns(const search *s, size_t start);
/* Children and gains by arm so far: `tries` and `paid` have ARM_COUNT elements
 * (tuner/search/draw.h). */
void search_arms(const search *s, uint64_t *tries, double *paid);

#endif
