/* Comparison: rows of `evoke bench search --strategies`, one a search, made in this run or read
 * from files of --rows, and their tables.
 *
 * A table holds the searches with all edits. Where rows of searches without an edit (--without)
 * stand beside them, a second table holds each of them against the search of the same seed with all
 * edits. */
#ifndef TUNER_BENCH_COMPARISON_H
#define TUNER_BENCH_COMPARISON_H

#include "tuner/run/tune.h"

#include "base/status.h"
#include "base/str.h"

#include <jansson.h>

#define COMPARISON_STARTS 2
#define COMPARISON_MOST_SEEDS 32

extern const char *const comparison_starts[COMPARISON_STARTS];

/* One search. */
typedef struct comparison_row {
    strategy strategy;
    size_t start; /* in comparison_starts */
    uint64_t seed, evaluations, duplicates;
    double speedup;     /* over the start, held-out cases, geometric mean; above 0 */
    char kernel[96];    /* the task's name */
    char device[96];    /* "vm:h200"; "": a row of an earlier version, which did not say */
    char without[1024]; /* edits that were not drawn, "stage,unroll-loop"; "": none */
    json_t *genome;     /* of what was promoted, or the start; the row's reference; NULL: unknown */
} comparison_row;

typedef struct comparison {
    comparison_row *rows;
    size_t count, room;
} comparison;

/* Takes the row's genome, on a failure, too. */
ev_status comparison_add(comparison *m, comparison_row row, ev_error *err) EV_CHECKED;
json_t *comparison_row_json(const comparison_row *row);
/* Adds the rows of a file of --rows. EV_BAD with the file and the line: no row of a comparison. */
ev_status comparison_read(comparison *m, const char *path, ev_error *err) EV_CHECKED;
/* EV_BAD with the row: rows of two devices, the same search twice, or a search that is missing, so
 * that means would be of different sets. Each strategy of the first table needs all kernels, starts
 * and seeds. Each search without an edit needs the one with all edits. */
ev_status comparison_check(const comparison *m, ev_error *err) EV_CHECKED;

/* What comparison_check accepts, as a table or as JSON. */
ev_status comparison_print(const comparison *m, ev_str *out, ev_error *err) EV_CHECKED;
json_t *comparison_json(const comparison *m);
void comparison_free(comparison *m);

#endif
