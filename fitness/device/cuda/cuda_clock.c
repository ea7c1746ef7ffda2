/* Clock stamps: what a GPU says of its SM clock between two moments, and whether that is a drop.
 *
 * %clock64 counts an SM's own cycles from a start of its own, so only stamps of the same SM can be
 * held against each other; %globaltimer is the same for all, in steps of 32 ns to a microsecond, so
 * the moments have to be two hundred steps apart (PTX ISA, Special Registers). */
#include "fitness/device/cuda/cuda_clock.h"

#include <stdlib.h>

#define CLOCK_DROP 0.95   /* of the highest */
#define GRAIN_SHARE 0.005 /* of the time between two moments that the timer's steps may be */

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double cuda_stamps_mhz(const cuda_stamp *before, const cuda_stamp *after, size_t count,
                       double grain_ns) {
    double mhz[CUDA_STAMPS];
    size_t known = 0;
    for (size_t i = 0; i < count && i < CUDA_STAMPS; i++) {
        bool both = before[i].ns != 0 && after[i].ns > before[i].ns;
        both = both && grain_ns <= GRAIN_SHARE * (double)(after[i].ns - before[i].ns);
        if (both && after[i].cycles > before[i].cycles)
            mhz[known++] = (double)(after[i].cycles - before[i].cycles) * 1e3 /
                           (double)(after[i].ns - before[i].ns);
    }
    if (known == 0)
        return 0;
    qsort(mhz, known, sizeof mhz[0], compare);
    return mhz[known / 2];
}

bool cuda_clock_dropped(double mhz, double *best) {
    if (mhz > *best)
        *best = mhz;
    return mhz > 0 && mhz < CLOCK_DROP * *best;
}
