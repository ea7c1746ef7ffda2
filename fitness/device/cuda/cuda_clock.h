/* The SM clock while samples were taken, from stamps that a kernel of one block an SM leaves before
 * and after them. */
#ifndef FITNESS_DEVICE_CUDA_CUDA_CLOCK_H
#define FITNESS_DEVICE_CUDA_CUDA_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CUDA_STAMPS 1024 /* SMs that have a place: by %smid, which may have gaps */

/* What one SM said: its own cycles, and nanoseconds that all SMs share; zeros: it said nothing. */
typedef struct cuda_stamp {
    uint64_t cycles, ns;
} cuda_stamp;

/* MHz between two tables of `count` stamps: the median over the SMs that are in both; 0: none is,
 * or the timer, which counts in steps of `grain_ns`, cannot tell their distance to 0.5 %. */
double cuda_stamps_mhz(const cuda_stamp *before, const cuda_stamp *after, size_t count,
                       double grain_ns);
/* Whether a clock has dropped against the highest seen so far, which is kept in *best; an unknown
 * one (0) has not. */
bool cuda_clock_dropped(double mhz, double *best);

#endif
