/* The SM clock during samples, from stamps before and after them. A kernel with one block an SM
 * writes the stamps. */
#ifndef FITNESS_DEVICE_CUDA_CUDA_CLOCK_H
#define FITNESS_DEVICE_CUDA_CUDA_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CUDA_STAMPS 1024 /* places of SMs, by %smid, which may have gaps */

/* Stamp of one SM: its cycles, and the nanoseconds of %globaltimer. Zeros: none. */
typedef struct cuda_stamp {
    uint64_t cycles, ns;
} cuda_stamp;

/* MHz between two tables of `count` stamps: the median over the SMs in both. 0: no SM is in both,
 * or the steps of `grain_ns` of the timer are too coarse for 0.5 %. */
double cuda_stamps_mhz(const cuda_stamp *before, const cuda_stamp *after, size_t count,
                       double grain_ns);
/* True if a clock dropped below the highest seen so far, kept in *best. An unknown clock (0) has
 * not dropped. */
bool cuda_clock_dropped(double mhz, double *best);

#endif
