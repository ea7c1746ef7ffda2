/* Random numbers of the generators: functions of a key alone, made of operations that IEEE 754
 * fixes to the bit, so that a corpus is the same on every machine. Private to corpora/. */
#ifndef CORPORA_RANDOM_H
#define CORPORA_RANDOM_H

#include <stdint.h>
#include <string.h>

/* Mixes two words: SplitMix64's finaliser (Steele et al. 2014) over a Weyl step. In the header so
 * that the generators' loops can inline it. */
static inline uint64_t random_mix(uint64_t seed, uint64_t at) {
    uint64_t x = seed + (at + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Uniform in (0, 1), never either end, from the upper 52 bits. */
static inline double random_unit(uint64_t bits) {
    return ((double)(int64_t)(bits >> 12) + 0.5) * 0x1p-52;
}

/* Natural logarithm of a normal x > 0, within 1e-10 for x in (0, 1): 1 + f in [sqrt(1/2), sqrt(2))
 * by the exponent, then 2 artanh(f / (2 + f)) by its series. */
static inline double random_log(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint64_t shifted = bits - 0x3fe6a09e667f3bcdu; /* of sqrt(1/2) */
    int64_t exponent = (int64_t)shifted >> 52;
    bits -= (uint64_t)exponent << 52;
    double m;
    memcpy(&m, &bits, sizeof m);
    double s = (m - 1.0) / (m + 1.0), z = s * s;
    double series = 2.0 / 3 + z * (2.0 / 5 + z * (2.0 / 7 + z * (2.0 / 9 + z * (2.0 / 11))));
    return (double)exponent * 0.69314718055994531 + s * (2.0 + z * series);
}

double random_exp(double x); /* |x| up to 700, within 1e-13 relative */

/* The normal distribution's quantile at p in (0, 1), within 1e-6 relative. */
double random_normal_quantile(double p);

/* A standard normal number. */
static inline double random_normal(uint64_t bits) {
    return random_normal_quantile(random_unit(bits));
}

#endif
