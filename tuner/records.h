/* Records: one SQLite file with all of a run: every evaluation, its genome, lineage, gate and
 * score; and the winners with their PTX. The only place that knows SQLite. */
#ifndef TUNER_RECORDS_H
#define TUNER_RECORDS_H

#include "base/hash.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORDS_VERSION 1

typedef struct records records;

/* A finished task of a run: all that a bundle needs. Texts are borrowed when written, and belong to
 * the list when read. */
typedef struct records_winner {
    const char *kernel;
    const char *task_path;
    const char *task_sha256;
    const char *device;   /* "vm:h200" */
    const char *gpu_name; /* "NVIDIA H200 SXM 141GB" */
    int sm;
    const char *start;
    const char *genome; /* JSON */
    const char *genome_sha256;
    const char *ptx; /* the winner's */
    const char *ptx_sha256;
    const char *entry;
    const char *baseline_ptx; /* the first start, unchanged */
    const char *baseline_entry;
    const char *rows;     /* JSON array of the final table's rows */
    const char *score;    /* JSON of the promoting score */
    const char *edits;    /* the minimised edit list in words, a line each */
    const char *versions; /* JSON: evoke, llvm, records */
    uint64_t seed;
    bool promoted;
} records_winner;

/* Opens for reading (must exist) or creates. EV_BAD: not a records file, or of another version. */
ev_status records_open_read(const char *path, records **out, ev_error *err) EV_CHECKED;
void records_close(records *r); /* NULL is fine */

ev_status records_winners(records *r, records_winner **out, size_t *count,
                          ev_error *err) EV_CHECKED;
void records_winners_free(records_winner *winners, size_t count);

#endif
