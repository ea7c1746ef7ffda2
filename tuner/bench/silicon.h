/* Silicon: measurements of real GPUs, read from CSV files and compared with the timing model.
 *
 * Two kinds of files, told apart by their first line:
 *   stream    gpu,kernel,threads_per_block,blocks_per_sm,gb_per_s
 *   strides   gpu,type,pattern,parameter,cycles_per_warp_load
 * fitness/model/silicon/README.md explains the columns. */
#ifndef TUNER_BENCH_SILICON_H
#define TUNER_BENCH_SILICON_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef enum silicon_set { SILICON_STREAM, SILICON_STRIDES } silicon_set;

const char *silicon_set_name(silicon_set set);

typedef struct silicon_point {
    char gpu[32];
    char kernel[16];          /* init … stencil5; float or double */
    uint32_t threads, blocks; /* stream: threads a block, blocks an SM */
    uint32_t stride;          /* strides: elements between lanes */
    uint32_t line;            /* of the file */
    double measured;          /* GB/s; or cycles of an SM a warp-wide load */
    double modelled;          /* 0 until model_rig_run sets it */
} silicon_point;

typedef struct silicon_data {
    silicon_set set;
    silicon_point *points; /* silicon_free */
    size_t count;
} silicon_data;

/* EV_BAD "FILE:LINE: what is wrong": no such file, an unknown first line, a line with another
 * number of fields, an unknown kernel, a number out of range. */
ev_status silicon_read(const char *path, silicon_data *out, ev_error *err) EV_CHECKED;
void silicon_free(silicon_data *data);

/* Mean of |modelled / measured - 1| over `count` points, in percent; Spearman's rank correlation,
 * with mean ranks for ties (0 if one side is constant). */
double silicon_mape(const silicon_point *points, size_t count);
double silicon_spearman(const silicon_point *points, size_t count);
/* Kendall's tau-b: (concordant pairs - discordant pairs) / the geometric mean of the untied pairs
 * of each side; 0 if one side is constant. Measured values that differ by at most the share `apart`
 * are ties. */
double silicon_kendall(const silicon_point *points, size_t count, double apart);

#endif
