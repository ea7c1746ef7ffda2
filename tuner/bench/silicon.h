/* Silicon: measurements of real GPUs that the timing model is held against, read from CSV files.
 *
 * Two kinds, known by their first line:
 *   stream    gpu,kernel,threads_per_block,blocks_per_sm,gb_per_s
 *   strides   gpu,type,pattern,parameter,cycles_per_warp_load
 * See fitness/model/silicon/README.md for what they mean. */
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
    uint32_t threads, blocks; /* stream: a block, on an SM */
    uint32_t stride;          /* strides: elements between lanes */
    uint32_t line;            /* of the file */
    double measured;          /* GB/s; or cycles of an SM a warp-wide load */
    double modelled;          /* 0 until somebody sets it */
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

/* Of `count` points in a row: mean of |modelled / measured - 1| in percent, and Spearman's rank
 * correlation with mean ranks for ties (0 where one side is constant). */
double silicon_mape(const silicon_point *points, size_t count);
double silicon_spearman(const silicon_point *points, size_t count);
/* Kendall's tau-b: (pairs in the same order - pairs in the other) over the geometric mean of the
 * pairs that each side tells apart; 0 where one side is constant. Measured values that differ by no
 * more than the share `apart` count as the same. */
double silicon_kendall(const silicon_point *points, size_t count, double apart);

#endif
