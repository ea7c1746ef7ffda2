/* The inside of what follows a search, for finish*.c only. */
#ifndef TUNER_RUN_FINISH_INSIDE_H
#define TUNER_RUN_FINISH_INSIDE_H

#include "tuner/run/minimise.h"
#include "tuner/run/tune_inside.h"
#include "tuner/search/known.h"

#define FINISH_CANDIDATES (SEARCH_ARCHIVE + 256)
#define FINISH_TRANSFERS 16
#define FINISH_MINIMISE_BUDGET 240 /* trials for one candidate */

typedef struct candidate_entry {
    const ir_genome *genome;
    double ns;
    bool used, confirmed;
    bool untimed; /* its time is memoised or estimated */
    bool is_part; /* of one that was slow */
} candidate_entry;

/* What one of a base (a start at one setting of its macros) lost on the held-out cases, its others
 * are expected to lose too. */
typedef struct transfer {
    const ir_genome *genome; /* any of the base */
    double loss; /* held-out time over the best start's there, by the same on the search cases */
} transfer;

typedef enum verdict { PROMOTED = 1, WRONG, SLOW } verdict;

#define TALLY_KINDS 12 /* told apart; what comes later is counted alone */
#define TALLY_TEXT 260

typedef struct tally_kind {
    char first[TALLY_TEXT]; /* the first of the kind, as it was */
    uint64_t count;
} tally_kind;

/* Reasons of gate 6, counted by kind; a tally begins as {0}. */
typedef struct tally {
    tally_kind kinds[TALLY_KINDS];
    size_t kind_count;
    uint64_t others; /* of more kinds than are told apart */
} tally;

/* What was found out about one genome, or about one code. */
typedef struct memo_entry {
    double ns;
    verdict verdict;                /* 0: none */
    char ptx_sha256[EV_SHA256_HEX]; /* "": not reached */
} memo_entry;

/* A map from a hash to an entry; {0} is empty. */
typedef struct memo {
    known *index; /* numbers of entries */
    memo_entry *list;
    size_t count;
} memo;

typedef struct finish {
    course *c;
    candidate_entry candidates[FINISH_CANDIDATES];
    size_t candidate_count;
    transfer transfers[FINISH_TRANSFERS];
    size_t transfer_count;
    const ir_genome **wrong; /* genomes that gate 6 refused, each for its last edit (bisect.h) */
    size_t wrong_count;
    memo scored;   /* by genome: time on the search cases (0: stopped at a gate), hash of the PTX */
    memo judged;   /* by genome and by code: verdict of gate 6, time on the held-out cases */
    memo held_out; /* by genome: time on the held-out cases alone; 0: a case failed */
    tally refused; /* reasons of gate 6 */
    unsigned spent;  /* of the budget for promotions */
    unsigned parted; /* slow ones whose edits were left out one by one */
    double slow_ns;  /* on the held-out cases: what is above it is to blame; see learn_slow */
    fitness_bar bar; /* on the held-out cases; 0 ns: no unmodified start was promoted */
    double limit_ns; /* a candidate has to be below it on the search cases */
    winner kept;     /* the last that was promoted; no genome: none, or it was taken */
    winner winner;
    double winner_ns; /* on the search cases; 0: it is an unmodified start */
} finish;

/* ---- finish_candidates.c ---- */

/* Kept where it is faster than it has to be, else NULL; 0 ns: stopped at a gate. The entry is good
 * until the next is added. */
candidate_entry *finish_add(finish *f, const ir_genome *genome, double ns, bool is_part);
/* The one not used that is expected to be the fastest, the first added among equals; NULL: none. */
candidate_entry *finish_next(finish *f);
/* After a candidate that was slow: `ns` on the search cases, `held_out` there. */
void finish_note_transfer(finish *f, const ir_genome *genome, double ns, double held_out);
/* The genome without the edits that are to blame for a refusal: a new reference, the genome itself
 * where there are none of those; *out NULL: its base is to blame. */
ev_status finish_strip(const finish *f, const ir_genome *genome, const ir_genome **out,
                       ev_error *err) EV_CHECKED;

/* ---- finish_score.c ---- */

/* NULL: no entry. Borrowed until the next memo_put. */
const memo_entry *memo_find(const memo *m, const ev_sha256 *key);
/* Adds an entry, or replaces the one of this key. */
ev_status memo_put(memo *m, const ev_sha256 *key, const memo_entry *entry,
                   ev_error *err) EV_CHECKED;
void memo_free(memo *m);

/* Times of genomes on the search cases, each scored once: a minimise_score, its context a finish.
 */
ev_status finish_score(void *context, const ir_genome *const *genomes, size_t count, double *ns,
                       ev_error *err) EV_CHECKED;
/* The time that a genome's gain is counted from: its start's, unmodified; where that did not pass,
 * the baseline's. */
double finish_reference(const finish *f, const ir_genome *genome);

/* ---- finish_minimise.c ---- */

/* Takes the genome that was just promoted, with its time on the search cases, as the winner, and
 * then what is left of it when it is minimised. */
ev_status finish_win(finish *f, const ir_genome *genome, double ns, ev_error *err) EV_CHECKED;
bool finish_is_measured(const finish *f); /* times are, in place of modelled */

/* ---- finish_promote.c ---- */

/* What gate 6 said of a genome, or of another with the same code; *v 0: nothing so far.
 * `held_out`: its time on the held-out cases; 0: it is wrong. */
ev_status finish_verdict(const finish *f, const ir_genome *genome, verdict *v, double *held_out,
                         ev_error *err) EV_CHECKED;
/* Gate 6, and its record; `ns`: on the search cases; 0: not known. What was judged before is not
 * judged again, but that one that is PROMOTED is in f->kept afterwards. */
ev_status finish_promote(finish *f, const ir_genome *genome, double ns, verdict *v,
                         double *held_out, ev_error *err) EV_CHECKED;
/* Gate 6 to its end, for one that may be too slow before that; judged once as well. A bisect_test,
 * its context a finish. */
ev_status finish_is_wrong(void *context, const ir_genome *genome, bool *wrong,
                          ev_error *err) EV_CHECKED;
/* From now on its verdict is SLOW. */
ev_status finish_refuse(finish *f, const ir_genome *genome, double held_out,
                        ev_error *err) EV_CHECKED;
/* Moves f->kept. */
void finish_take(finish *f, winner *to);
/* Whether the budget pays for one more; some of it is left for the winner, when it is minimised. */
bool finish_may_promote(const finish *f, bool is_winner);
void tally_add(tally *t, const char *reason);
/* Tells the progress display what gate 6 refused; each refusal stands in the records. */
void finish_tell_refused(const finish *f);
void finish_clear_winner(winner *w);

#endif
