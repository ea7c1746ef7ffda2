/* The device side of cuRAND: random numbers in kernels.
 *
 * Two generators, by their papers:
 * - Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a number
 *   is a function of a key and a counter. cuRAND's manual says what they are: the seed is the key,
 *   the subsequence is the upper half of the counter, and offset / 4 the lower half.
 * - XORWOW (Marsaglia, "Xorshift RNGs", J. Stat. Soft. 8(14), 2003): a shift register and a Weyl
 *   sequence. cuRAND's manual does not say how a seed becomes a state, so curand_init is refused. A
 *   kernel may read states that another program made: their layout is cuRAND's.
 *
 * Uniform numbers are in (0, 1], and normal ones are Box and Muller's, a sine and then a cosine. In
 * uint32 and in uniform numbers the sequences are those of cuRAND bit by bit; normal numbers are
 * within the errors of logf, sinf and cosf. The other generators and distributions of cuRAND are
 * refused by name. */
#ifndef EVOKE_CUDA_CURAND_KERNEL_H
#define EVOKE_CUDA_CURAND_KERNEL_H

#include "evoke_cuda.h"

#define EVOKE_CURAND_CALL static inline __device__ __attribute__((always_inline))
#define EVOKE_CURAND_REFUSED(reason) __attribute__((unavailable(reason)))

/* Layouts are cuRAND's. `spare` is the second number of a pair: normal, or log-normal by the mean
 * and deviation of its first. */
struct curandStatePhilox4_32_10 {
    uint4 counter, output;
    uint2 key;
    unsigned int used; /* of the four numbers of `output` */
    int spare_kind, spare_kind_double;
    float spare;
    double spare_double;
};
struct curandStateXORWOW {
    unsigned int d, v[5];
    int spare_kind, spare_kind_double;
    float spare;
    double spare_double;
};
typedef struct curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;
typedef struct curandStateXORWOW curandStateXORWOW_t;
typedef struct curandStateXORWOW curandState_t;
typedef struct curandStateXORWOW curandState;

struct evoke_no_curand_state {};
#define EVOKE_CURAND_OTHER(name)                                                                   \
    typedef struct evoke_no_curand_state name EVOKE_CURAND_REFUSED(                                \
        "of cuRAND's generators, Evoke has curandStatePhilox4_32_10_t and curandState (XORWOW)")
EVOKE_CURAND_OTHER(curandStateMRG32k3a);
EVOKE_CURAND_OTHER(curandStateMRG32k3a_t);
EVOKE_CURAND_OTHER(curandStateMtgp32);
EVOKE_CURAND_OTHER(curandStateMtgp32_t);
EVOKE_CURAND_OTHER(curandStateSobol32);
EVOKE_CURAND_OTHER(curandStateSobol32_t);
EVOKE_CURAND_OTHER(curandStateScrambledSobol32);
EVOKE_CURAND_OTHER(curandStateScrambledSobol32_t);
EVOKE_CURAND_OTHER(curandStateSobol64);
EVOKE_CURAND_OTHER(curandStateSobol64_t);
EVOKE_CURAND_OTHER(curandStateScrambledSobol64);
EVOKE_CURAND_OTHER(curandStateScrambledSobol64_t);

/* ---- Philox4x32-10 ---- */

EVOKE_CURAND_CALL uint4 evoke_philox(uint4 counter, uint2 key) {
    for (int round = 0; round < 10; round++) {
        unsigned int high0 = __umulhi(0xD2511F53u, counter.x), low0 = 0xD2511F53u * counter.x;
        unsigned int high1 = __umulhi(0xCD9E8D57u, counter.z), low1 = 0xCD9E8D57u * counter.z;
        counter = make_uint4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
        key.x += 0x9E3779B9u;
        key.y += 0xBB67AE85u;
    }
    return counter;
}

EVOKE_CURAND_CALL unsigned int evoke_philox_word(uint4 from, unsigned int index) {
    return index == 0 ? from.x : index == 1 ? from.y : index == 2 ? from.z : from.w;
}

EVOKE_CURAND_CALL void evoke_philox_add(uint4 *counter, unsigned long long blocks) {
    unsigned long long low = counter->x | (unsigned long long)counter->y << 32;
    unsigned long long high = counter->z | (unsigned long long)counter->w << 32;
    high += low + blocks < low;
    low += blocks;
    *counter = make_uint4((unsigned int)low, (unsigned int)(low >> 32), (unsigned int)high,
                          (unsigned int)(high >> 32));
}

EVOKE_CURAND_CALL void skipahead(unsigned long long n, curandStatePhilox4_32_10_t *state) {
    unsigned int used = state->used + (unsigned int)(n & 3);
    evoke_philox_add(&state->counter, (n >> 2) + (used >> 2));
    state->used = used & 3;
    state->output = evoke_philox(state->counter, state->key);
}

EVOKE_CURAND_CALL void skipahead_sequence(unsigned long long n, curandStatePhilox4_32_10_t *state) {
    unsigned long long high = state->counter.z | (unsigned long long)state->counter.w << 32;
    high += n;
    state->counter.z = (unsigned int)high;
    state->counter.w = (unsigned int)(high >> 32);
    state->output = evoke_philox(state->counter, state->key);
}

EVOKE_CURAND_CALL void curand_init(unsigned long long seed, unsigned long long subsequence,
                                   unsigned long long offset, curandStatePhilox4_32_10_t *state) {
    state->key = make_uint2((unsigned int)seed, (unsigned int)(seed >> 32));
    state->counter = make_uint4(0, 0, (unsigned int)subsequence, (unsigned int)(subsequence >> 32));
    state->used = 0;
    state->spare_kind = state->spare_kind_double = 0;
    state->spare = 0.0f;
    state->spare_double = 0.0;
    skipahead(offset, state);
}

EVOKE_CURAND_CALL unsigned int curand(curandStatePhilox4_32_10_t *state) {
    unsigned int word = evoke_philox_word(state->output, state->used++);
    if (state->used == 4) {
        evoke_philox_add(&state->counter, 1);
        state->output = evoke_philox(state->counter, state->key);
        state->used = 0;
    }
    return word;
}

EVOKE_CURAND_CALL uint4 curand4(curandStatePhilox4_32_10_t *state) {
    uint4 now = state->output;
    unsigned int used = state->used;
    evoke_philox_add(&state->counter, 1);
    uint4 next = state->output = evoke_philox(state->counter, state->key);
    if (used == 0)
        return now;
    if (used == 1)
        return make_uint4(now.y, now.z, now.w, next.x);
    if (used == 2)
        return make_uint4(now.z, now.w, next.x, next.y);
    return make_uint4(now.w, next.x, next.y, next.z);
}

/* ---- XORWOW ---- */

EVOKE_CURAND_REFUSED(
    "cuRAND does not document how XORWOW's seed becomes a state, so Evoke cannot make "
    "the numbers of cuRAND: use curandStatePhilox4_32_10_t, or let another kernel "
    "make the states")
EVOKE_CURAND_CALL void curand_init(unsigned long long seed, unsigned long long subsequence,
                                   unsigned long long offset, curandStateXORWOW *state) {
    (void)seed, (void)subsequence, (void)offset, (void)state;
}

EVOKE_CURAND_CALL unsigned int curand(curandStateXORWOW *state) {
    unsigned int t = state->v[0] ^ state->v[0] >> 2;
    for (int i = 0; i < 4; i++)
        state->v[i] = state->v[i + 1];
    state->v[4] = (state->v[4] ^ state->v[4] << 4) ^ (t ^ t << 1);
    state->d += 362437;
    return state->v[4] + state->d;
}

/* ---- from words to numbers ---- */

EVOKE_CURAND_CALL float evoke_uniform(unsigned int x) {
    return __fmaf_rn((float)x, 0x1p-32f, 0x1p-33f);
}

/* 53 bits: the lower 21 of y are the upper ones. */
EVOKE_CURAND_CALL double evoke_uniform_double(unsigned int x, unsigned int y) {
    unsigned long long bits = x ^ (unsigned long long)y << 21;
    return __fma_rn((double)bits, 0x1p-53, 0x1p-54);
}

EVOKE_CURAND_CALL float2 evoke_box_muller(unsigned int x, unsigned int y) {
    float radius = sqrtf(-2.0f * logf(evoke_uniform(x)));
    float turn = __fmaf_rn((float)y, 0x1.921fb6p-30f, 0x1.921fb6p-31f), sine, cosine;
    sincosf(turn, &sine, &cosine);
    return make_float2(radius * sine, radius * cosine);
}

EVOKE_CURAND_CALL double2 evoke_box_muller_double(uint4 words) {
    double radius = sqrt(-2.0 * log(evoke_uniform_double(words.x, words.y))), sine, cosine;
    sincospi(2.0 * evoke_uniform_double(words.z, words.w), &sine, &cosine);
    return make_double2(radius * sine, radius * cosine);
}

EVOKE_CURAND_CALL float2 evoke_exp(float2 z, float mean, float deviation) {
    return make_float2(expf(mean + deviation * z.x), expf(mean + deviation * z.y));
}

EVOKE_CURAND_CALL double2 evoke_exp(double2 z, double mean, double deviation) {
    return make_double2(exp(mean + deviation * z.x), exp(mean + deviation * z.y));
}

EVOKE_CURAND_CALL uint4 evoke_four_words(curandStatePhilox4_32_10_t *state) {
    return curand4(state);
}

EVOKE_CURAND_CALL uint4 evoke_four_words(curandStateXORWOW *state) {
    uint4 words;
    words.x = curand(state);
    words.y = curand(state);
    words.z = curand(state);
    words.w = curand(state);
    return words;
}

/* ---- distributions of both generators ---- */

/* One number of a pair; the other is kept for the next call of the same kind. */
#define EVOKE_CURAND_ONE(number, kind, pair, extra)                                                \
    if (state->spare_kind##extra == kind) {                                                        \
        state->spare_kind##extra = 0;                                                              \
        return state->spare##extra;                                                                \
    }                                                                                              \
    number##2 made = pair;                                                                         \
    state->spare_kind##extra = kind;                                                               \
    state->spare##extra = made.y;                                                                  \
    return made.x

#define EVOKE_CURAND_DISTRIBUTIONS(type)                                                           \
    EVOKE_CURAND_CALL float curand_uniform(type *state) {                                          \
        return evoke_uniform(curand(state));                                                       \
    }                                                                                              \
    EVOKE_CURAND_CALL float2 curand_normal2(type *state) {                                         \
        unsigned int x = curand(state);                                                            \
        return evoke_box_muller(x, curand(state));                                                 \
    }                                                                                              \
    EVOKE_CURAND_CALL double2 curand_normal2_double(type *state) {                                 \
        return evoke_box_muller_double(evoke_four_words(state));                                   \
    }                                                                                              \
    EVOKE_CURAND_CALL float2 curand_log_normal2(type *state, float mean, float deviation) {        \
        return evoke_exp(curand_normal2(state), mean, deviation);                                  \
    }                                                                                              \
    EVOKE_CURAND_CALL double2 curand_log_normal2_double(type *state, double mean,                  \
                                                        double deviation) {                        \
        return evoke_exp(curand_normal2_double(state), mean, deviation);                           \
    }                                                                                              \
    EVOKE_CURAND_CALL float curand_normal(type *state) {                                           \
        EVOKE_CURAND_ONE(float, 1, curand_normal2(state), );                                       \
    }                                                                                              \
    EVOKE_CURAND_CALL double curand_normal_double(type *state) {                                   \
        EVOKE_CURAND_ONE(double, 1, curand_normal2_double(state), _double);                        \
    }                                                                                              \
    EVOKE_CURAND_CALL float curand_log_normal(type *state, float mean, float deviation) {          \
        EVOKE_CURAND_ONE(float, 2, curand_log_normal2(state, mean, deviation), );                  \
    }                                                                                              \
    EVOKE_CURAND_CALL double curand_log_normal_double(type *state, double mean,                    \
                                                      double deviation) {                          \
        EVOKE_CURAND_ONE(double, 2, curand_log_normal2_double(state, mean, deviation), _double);   \
    }
EVOKE_CURAND_DISTRIBUTIONS(curandStatePhilox4_32_10_t)
EVOKE_CURAND_DISTRIBUTIONS(curandStateXORWOW)

/* One word makes the double of Philox, two that of XORWOW. */
EVOKE_CURAND_CALL double curand_uniform_double(curandStatePhilox4_32_10_t *state) {
    return __fma_rn((double)curand(state), 0x1p-32, 0x1p-32);
}

EVOKE_CURAND_CALL double curand_uniform_double(curandStateXORWOW *state) {
    unsigned int x = curand(state);
    return evoke_uniform_double(x, curand(state));
}

/* ---- several numbers at once, of Philox alone ---- */

EVOKE_CURAND_CALL float4 curand_uniform4(curandStatePhilox4_32_10_t *state) {
    uint4 w = curand4(state);
    return make_float4(evoke_uniform(w.x), evoke_uniform(w.y), evoke_uniform(w.z),
                       evoke_uniform(w.w));
}

EVOKE_CURAND_CALL float4 curand_normal4(curandStatePhilox4_32_10_t *state) {
    uint4 w = curand4(state);
    float2 a = evoke_box_muller(w.x, w.y), b = evoke_box_muller(w.z, w.w);
    return make_float4(a.x, a.y, b.x, b.y);
}

EVOKE_CURAND_CALL float4 curand_log_normal4(curandStatePhilox4_32_10_t *state, float mean,
                                            float deviation) {
    float4 z = curand_normal4(state);
    float2 a = evoke_exp(make_float2(z.x, z.y), mean, deviation);
    float2 b = evoke_exp(make_float2(z.z, z.w), mean, deviation);
    return make_float4(a.x, a.y, b.x, b.y);
}

EVOKE_CURAND_CALL double2 curand_uniform2_double(curandStatePhilox4_32_10_t *state) {
    uint4 w = curand4(state);
    return make_double2(evoke_uniform_double(w.x, w.y), evoke_uniform_double(w.z, w.w));
}

EVOKE_CURAND_CALL double4 curand_uniform4_double(curandStatePhilox4_32_10_t *state) {
    double2 a = curand_uniform2_double(state), b = curand_uniform2_double(state);
    return make_double4(a.x, a.y, b.x, b.y);
}

EVOKE_CURAND_CALL double4 curand_normal4_double(curandStatePhilox4_32_10_t *state) {
    double2 a = curand_normal2_double(state), b = curand_normal2_double(state);
    return make_double4(a.x, a.y, b.x, b.y);
}

EVOKE_CURAND_CALL double4 curand_log_normal4_double(curandStatePhilox4_32_10_t *state, double mean,
                                                    double deviation) {
    double2 a = curand_log_normal2_double(state, mean, deviation);
    double2 b = curand_log_normal2_double(state, mean, deviation);
    return make_double4(a.x, a.y, b.x, b.y);
}

/* ---- refused ---- */

#define EVOKE_CURAND_NO(result, name)                                                              \
    template <typename... Arguments>                                                               \
    EVOKE_CURAND_REFUSED(                                                                          \
        "of cuRAND's distributions, Evoke has the uniform, the normal and the log-normal one")     \
    EVOKE_CURAND_CALL result                                                                       \
    name(Arguments...) {                                                                           \
        return result{};                                                                           \
    }
EVOKE_CURAND_NO(unsigned, curand_poisson)
EVOKE_CURAND_NO(uint4, curand_poisson4)
EVOKE_CURAND_NO(unsigned, curand_discrete)
EVOKE_CURAND_NO(uint4, curand_discrete4)

#undef EVOKE_CURAND_ONE
#undef EVOKE_CURAND_DISTRIBUTIONS
#undef EVOKE_CURAND_OTHER
#undef EVOKE_CURAND_NO
#endif
