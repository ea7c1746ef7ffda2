/* PCG32: XSH-RR 64/32 (O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good
 * Algorithms for Random Number Generation", 2014), with streams and jump-ahead. */
#ifndef BASE_PCG_H
#define BASE_PCG_H

#include <stdint.h>

typedef struct ev_pcg {
    uint64_t state;
    uint64_t increment; /* odd; selects the stream */
} ev_pcg;

/* Seeds as the reference's pcg32_srandom_r(seed, stream). */
ev_pcg ev_pcg_seed(uint64_t seed, uint64_t stream);

/* The stream of one child of a search: it depends on these four alone, not on which worker draws.
 */
ev_pcg ev_pcg_child(uint64_t run_seed, uint32_t island, uint32_t generation, uint32_t child);

uint32_t ev_pcg_next(ev_pcg *rng);
uint32_t ev_pcg_below(ev_pcg *rng, uint32_t bound); /* uniform in [0, bound), unbiased; bound > 0 */
double ev_pcg_unit(ev_pcg *rng);                    /* uniform in [0, 1), 53 bits (two draws) */
void ev_pcg_advance(ev_pcg *rng, uint64_t delta);   /* as `delta` calls of next, in O(log delta) */

#endif
