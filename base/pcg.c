/* The PCG32 generator; constants and seeding are those of the reference's pcg_basic.c. */
#include "base/pcg.h"

#include "base/hash.h"

#include <assert.h>

#define PCG_MULTIPLIER 6364136223846793005u
#define GOLDEN_GAMMA 0x9e3779b97f4a7c15u /* 2^64 / golden ratio, odd (Steele et al. 2014) */

ev_pcg ev_pcg_seed(uint64_t seed, uint64_t stream) {
    ev_pcg rng = {.state = 0, .increment = (stream << 1) | 1u};
    (void)ev_pcg_next(&rng);
    rng.state += seed;
    (void)ev_pcg_next(&rng);
    return rng;
}

/* One chain of mixes over the four numbers; two chains with different starts give 128 bits, so that
 * two children of one search share neither state nor stream. */
static uint64_t child_chain(uint64_t start, uint64_t run_seed, uint64_t place, uint64_t child) {
    uint64_t x = ev_mix64(run_seed + start);
    x = ev_mix64((x ^ place) + GOLDEN_GAMMA);
    return ev_mix64((x ^ child) + GOLDEN_GAMMA);
}

ev_pcg ev_pcg_child(uint64_t run_seed, uint32_t island, uint32_t generation, uint32_t child) {
    uint64_t place = (uint64_t)island << 32 | generation;
    return ev_pcg_seed(child_chain(GOLDEN_GAMMA, run_seed, place, child),
                       child_chain(GOLDEN_GAMMA * 2, run_seed, place, child));
}

uint32_t ev_pcg_next(ev_pcg *rng) {
    uint64_t old = rng->state;
    rng->state = old * PCG_MULTIPLIER + rng->increment;
    uint32_t shifted = (uint32_t)(((old >> 18) ^ old) >> 27);
    uint32_t turn = (uint32_t)(old >> 59);
    return shifted >> turn | shifted << (-turn & 31u);
}

uint32_t ev_pcg_below(ev_pcg *rng, uint32_t bound) {
    assert(bound > 0);
    /* Draws below 2^32 mod bound would make the small remainders more likely. */
    uint32_t threshold = -bound % bound;
    uint32_t draw = ev_pcg_next(rng);
    while (draw < threshold)
        draw = ev_pcg_next(rng);
    return draw % bound;
}

double ev_pcg_unit(ev_pcg *rng) {
    uint64_t high = ev_pcg_next(rng) >> 5; /* 27 bits */
    uint64_t low = ev_pcg_next(rng) >> 6;  /* 26 bits */
    return (double)(high << 26 | low) * 0x1p-53;
}

/* Brown, "Random Number Generation with Arbitrary Strides", 1994: squares the step x -> a x + c. */
void ev_pcg_advance(ev_pcg *rng, uint64_t delta) {
    uint64_t step_a = PCG_MULTIPLIER, step_c = rng->increment;
    uint64_t all_a = 1, all_c = 0;
    for (; delta > 0; delta >>= 1) {
        if (delta & 1u) {
            all_a *= step_a;
            all_c = all_c * step_a + step_c;
        }
        step_c *= step_a + 1;
        step_a *= step_a;
    }
    rng->state = all_a * rng->state + all_c;
}
