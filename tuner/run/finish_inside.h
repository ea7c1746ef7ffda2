/* The inside of the phase after a search (promotion, minimisation, choice of the winner), for
 * finish*.c only. Times are in ns. "Search cases" and "held-out cases" mean the geometric mean over
 * the timed cases of that split. */
#ifndef TUNER_RUN_FINISH_INSIDE_H
#define TUNER_RUN_FINISH_INSIDE_H

#include "tuner/run/minimise.h"
#include "tuner/run/tune_inside.h"
#include "tuner/search/known.h"

#define FINISH_CANDIDATES (SEARCH_FORMS * SEARCH_ARCHIVE + 256)
#define FINISH_TRANSFERS 64
#define FINISH_SKELETONS FINISH_CANDIDATES /* each may have its own */
#define FINISH_SETTINGS 3          /* settings of the macros that a winner is held against */
#define FINISH_MINIMISE_BUDGET 240 /* most trials in minimising one candidate */

typedef struct candidate_entry {
    const ir_genome *genome;
    double ns;
    bool used, confirmed;
    bool untimed; /* the time is memoised or estimated, not taken */
    bool is_part; /* the candidate is a slow candidate without one of its edits */
} candidate_entry;

/* Least relative gain of a bold winner over the preserving one. */
#define FINISH_BOLD_GAIN 0.05

/* The loss of a base (a start at one setting of its macros) from the search cases to the held-out
 * cases, as a judged candidate of the base showed it. Other candidates of the base are expected to
 * lose as much. */
typedef struct transfer {
    const ir_genome *genome; /* any genome of the base */
    double loss; /* (held-out time / best start's held-out time) / (search time / best start's
                    search time) */
} transfer;

/* What one skeleton, a base with structural edits, has used up. */
typedef struct skeleton_share {
    const ir_genome *genome; /* any genome of the base; a reference */
    unsigned spent;          /* promotions */
    bool refused;            /* it is wrong without any local edit */
} skeleton_share;

/* SLOW: right, and no winner: too slow, or stopped at gate 7. */
typedef enum verdict { NOT_JUDGED, PROMOTED, WRONG, SLOW } verdict;

#define TALLY_KINDS 12 /* kinds that are told apart; later kinds are counted together */
#define TALLY_TEXT 260

typedef struct tally_kind {
    char first[TALLY_TEXT]; /* text of the first reason of this kind */
    uint64_t count;
} tally_kind;

/* Refusals of gate 6, counted by kind of reason. {0} is an empty tally. */
typedef struct tally {
    tally_kind kinds[TALLY_KINDS];
    size_t kind_count;
    uint64_t others; /* reasons of further kinds */
} tally;

/* Known results of one genome, or of one PTX. */
typedef struct memo_entry {
    double ns;
    verdict verdict;
    char ptx_sha256[EV_SHA256_HEX]; /* "": stopped before PTX was made */
} memo_entry;

/* A map from a hash to a memo_entry; {0} is empty. */
typedef struct memo {
    known *index; /* hash to index in `list` */
    memo_entry *list;
    size_t count;
} memo;

typedef struct finish {
    course *c;
    candidate_entry candidates[FINISH_CANDIDATES];
    size_t candidate_count;
    transfer transfers[FINISH_TRANSFERS];
    size_t transfer_count;
    const ir_genome **wrong; /* genomes that gate 6 refused, each because of its last edit
                                (bisect.h) */
    size_t wrong_count;
    memo scored;        /* by genome: time on the search cases (0: stopped at a gate) and hash of
                           the PTX */
    memo judged;        /* by genome and by PTX: verdict of gate 6 and time on the held-out cases */
    memo held_out;      /* by genome: time on the held-out cases only; 0: a case failed */
    tally refused;      /* refusals of gate 6 */
    search_field field; /* of the variants that may win in this pass */
    unsigned spent[SEARCH_FORMS];               /* promotions used up, of each form's budget */
    skeleton_share skeletons[FINISH_SKELETONS]; /* those that were tried */
    size_t skeleton_count;
    unsigned parted; /* number of slow candidates whose edits were removed one by one */
    double slow_ns;  /* bisection for slowness: a genome above this time on the held-out cases
                        is slow; see learn_slow */
    fitness_bar bar; /* the best start on the held-out cases; 0 ns: no unmodified start was
                        promoted */
    double limit_ns; /* a candidate must be below this time on the search cases */
    winner kept;     /* the variant promoted last; without a genome: none, or taken by
                        finish_take */
    winner winner;
    double winner_ns;        /* time on the search cases; 0: the winner is an unmodified start */
    winner bold;             /* the bold winner beside a preserving one; without a genome: none */
    winner baseline, origin; /* unmodified starts as built for the stress; without a genome: none */
    char *stress;            /* report of the last stress, JSON text; NULL: none since the last
                                finish_take of a variant */
    char *portfolio;         /* JSON text (records_winner.portfolio); NULL: none */
    winner members[PORTFOLIO_MOST]; /* of the portfolio, without the winner */
    size_t member_count;
} finish;

/* ---- finish_candidates.c ---- */

/* Adds a candidate, if it is faster than f->limit_ns and not there yet; else returns NULL. `ns` 0:
 * stopped at a gate.
 * The pointer is valid until the next call. */
candidate_entry *finish_add(finish *f, const ir_genome *genome, double ns, bool is_part);
/* The unused candidate with the least expected time on the held-out cases; the first added among
 * equals. Candidates whose form or skeleton has used up its share are passed over. NULL: none is
 * left. `any`: none is passed over. */
candidate_entry *finish_next(finish *f, bool any);
/* The share of a genome's skeleton. NULL: the genome has no structural edit, or there are too many
 * skeletons. */
skeleton_share *finish_skeleton(finish *f, const ir_genome *genome);
/* Whether a genome sets macros or knobs, and edits nothing else. */
bool finish_is_setting(const ir_genome *genome);
/* The first FINISH_SETTINGS of `best` [count], in order of time, that are settings faster than
 * f->limit_ns and not refused yet, each with other macros. A winner that is a setting has other
 * macros, too. *found: how many. count: SEARCH_ARCHIVE at most. */
ev_status finish_settings(const finish *f, const search_best *best, size_t count,
                          const search_best *out[FINISH_SETTINGS], size_t *found, ev_error *err);
/* The unused candidate with edits that takes the least time on the search cases at the setting of
 * `only` or, if that is NULL, at a setting of none of `listed` [count]; the first added among
 * equals. Candidates whose form or skeleton has used up its share are passed over. NULL: there is
 * none. */
candidate_entry *finish_fastest_at(finish *f, const ir_genome *const *listed, size_t count,
                                   const ir_genome *only);
/* Notes the transfer of a slow candidate's base. `ns`: time on the search cases; `held_out`: time
 * on the held-out cases. */
void finish_note_transfer(finish *f, const ir_genome *genome, double ns, double held_out);
/* Frees the list of candidates. */
void finish_drop_candidates(finish *f);
/* Removes the edits of all kinds that may be bold or, with `all` false, that are bold at every
 * place. NULL: out of memory. */
const ir_genome *finish_without_bold(const ir_genome *genome, bool all);
/* Removes the edits that are known to be to blame for refusals. *out: a new reference; the genome
 * itself if it has no such edit; NULL if its base is to blame. */
ev_status finish_strip(const finish *f, const ir_genome *genome, const ir_genome **out,
                       ev_error *err) EV_CHECKED;

/* ---- finish_score.c ---- */

/* Finds the entry of a key. NULL: no entry. The pointer is borrowed until the next memo_put. */
const memo_entry *memo_find(const memo *m, const ev_sha256 *key);
/* Adds an entry, or replaces the entry of this key. */
ev_status memo_put(memo *m, const ev_sha256 *key, const memo_entry *entry,
                   ev_error *err) EV_CHECKED;
void memo_free(memo *m);

/* Scores genomes on the search cases, each genome once. A minimise_score; its context is a finish.
 */
ev_status finish_score(void *context, const ir_genome *const *genomes, size_t count, double *ns,
                       ev_error *err) EV_CHECKED;
/* The time from which a genome's gain is counted: that of its unmodified start or, if that start
 * failed, the baseline's. */
double finish_reference(const finish *f, const ir_genome *genome);

/* ---- finish.c ---- */

/* Finds what is to blame for a refusal. A variant of a skeleton that is wrong without any local
 * edit has its fault in the structure: the skeleton is bisected, and none of its variants is tried.
 */
ev_status finish_blame(finish *f, const ir_genome *genome, ev_error *err) EV_CHECKED;

/* Whether a signal stops the trials. A stop after the search counts as well. */
bool finish_is_stopped(finish *f);

/* ---- finish_portfolio.c ---- */

/* Chooses the portfolio for the run's shapes among all variants of the records, makes its first
 * member the winner, and sets f->portfolio. No variant gains at the shapes: nothing changes. */
ev_status finish_portfolio(finish *f, ev_error *err) EV_CHECKED;

/* ---- finish_minimise.c ---- */

/* Makes the genome that was just promoted the winner, then minimises it and makes the result the
 * winner. `ns`: its time on the search cases. */
ev_status finish_win(finish *f, const ir_genome *genome, double ns, ev_error *err) EV_CHECKED;
bool finish_is_measured(const finish *f); /* whether times are measured, not modelled */

/* ---- finish_stress.c ---- */

/* Runs the stress (tuner/stress) on a genome that gate 6 found correct; its short form if the
 * genome has no bold edit. Genomes without edits are passed. A failure stops `s` at gate 6. Keeps
 * the report in f->stress. */
ev_status finish_stress(finish *f, const ir_genome *genome, const pool_job *job, score *s,
                        ev_error *err) EV_CHECKED;

/* ---- finish_promote.c ---- */

/* Looks up the verdict of gate 6 on a genome, or on another genome with the same PTX. *v
 * NOT_JUDGED: no verdict is known. *held_out: its time on the held-out cases; 0: it is wrong. */
ev_status finish_verdict(const finish *f, const ir_genome *genome, verdict *v, double *held_out,
                         ev_error *err) EV_CHECKED;
/* Judges a genome by gate 6 and writes the record. `ns`: time on the search cases; 0: not known. A
 * known verdict is returned without a new judgement, unless it is PROMOTED and f->kept holds
 * another variant: after a return with PROMOTED, f->kept holds this one. */
ev_status finish_promote(finish *f, const ir_genome *genome, double ns, verdict *v,
                         double *held_out, ev_error *err) EV_CHECKED;
/* Judges the correctness of a genome by all checks of gate 6, although it may be too slow. A genome
 * is judged once. A bisect_test; its context is a finish. */
ev_status finish_is_wrong(void *context, const ir_genome *genome, bool *wrong,
                          ev_error *err) EV_CHECKED;
/* Judges a genome by all checks of gate 6 and keeps it in f->kept if it is right and the assembler
 * takes it (tune_options.assemble), although it may be too slow. *right: it is kept. */
ev_status finish_judge_whole(finish *f, const ir_genome *genome, bool *right,
                             ev_error *err) EV_CHECKED;
/* Sets the genome's verdict to SLOW. */
ev_status finish_refuse(finish *f, const ir_genome *genome, double held_out,
                        ev_error *err) EV_CHECKED;
/* Moves f->kept to *to. */
void finish_take(finish *f, winner *to);
/* Whether the variant promoted last, f->kept, may win in this pass. */
bool finish_may_win(const finish *f);
/* Whether the budgets allow one more promotion, of one form or of any. Variants with structure and
 * those without have a budget each, so that neither uses up the other's. A part is reserved for the
 * winner's minimisation. */
bool finish_may_promote(const finish *f, search_form form);
bool finish_may_promote_any(const finish *f, bool is_winner);
/* Gives back promotions for the search for a bold winner. */
void finish_renew(finish *f);
search_form finish_form(const ir_genome *genome);
void tally_add(tally *t, const char *reason);
/* Shows the refusals of gate 6 in the progress display. The records hold each refusal. */
void finish_tell_refused(const finish *f);
void finish_clear_winner(winner *w);

#endif
