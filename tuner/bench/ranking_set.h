/* Ranking sets: measured times of many configurations of one kernel, read from CSV files.
 *
 * The first line has the names of the kernel's macros, and then one column NAME_ms for each GPU,
 * where NAME is the id of its description with '_' for '-'. Each further line is a configuration:
 * the macros' values, and milliseconds on each GPU (empty: not measured).
 * fitness/model/silicon/README.md explains the macros. */
#ifndef TUNER_BENCH_RANKING_SET_H
#define TUNER_BENCH_RANKING_SET_H

#include "base/hash.h"
#include "base/status.h"
#include "ir/ir.h"

#include <stddef.h>
#include <stdint.h>

#define RANKING_MACROS_MOST 14
#define RANKING_GPUS_MOST 4

/* A kernel that sets are of. */
typedef enum ranking_kernel { RANKING_CONVOLUTION, RANKING_GEMM, RANKING_KERNELS } ranking_kernel;

typedef struct ranking_config {
    ir_macro macros[RANKING_MACROS_MOST];
    double ms[RANKING_GPUS_MOST]; /* 0: not measured */
    ev_sha256 hash;               /* of the macros' values */
} ranking_config;

typedef struct ranking_set {
    ranking_kernel kernel;
    size_t macro_count, gpu_count, count;
    char gpus[RANKING_GPUS_MOST][40]; /* ids of descriptions */
    ranking_config *configs;          /* ranking_set_free */
} ranking_set;

const char *ranking_kernel_name(ranking_kernel kernel); /* also the entry, and the stem of files */
/* Threads a block, and blocks of the grid, of a configuration of that kernel. */
void ranking_launch(ranking_kernel kernel, const ir_macro *macros, uint32_t grid[3],
                    uint32_t block[3]);

/* EV_BAD "FILE:LINE: what is wrong": a first line that is no kernel's, a line with another number
 * of fields, a value that is no number. */
ev_status ranking_read(const char *path, ranking_set *out, ev_error *err) EV_CHECKED;
void ranking_set_free(ranking_set *set);

/* Chooses configurations that were measured on GPU `gpu` of the set: `by_hash` of them by the hash,
 * and the `fastest` ones. Writes their indices to `chosen` (room for all), ascending; returns how
 * many there are. */
size_t ranking_choose(const ranking_set *set, size_t gpu, size_t by_hash, size_t fastest,
                      size_t *chosen);

#endif
