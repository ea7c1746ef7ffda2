/* Kernels of test_curand: what cuRAND's device functions return, as words in the order of the
 * calls. */
#include <curand_kernel.h>

struct writer {
    unsigned int *at;
    __device__ void put(unsigned int w) { *at++ = w; }
    __device__ void put(float f) { *at++ = __float_as_uint(f); }
    __device__ void put(double f) {
        put((unsigned int)__double2loint(f));
        put((unsigned int)__double2hiint(f));
    }
    __device__ void put(float2 f) { put(f.x), put(f.y); }
    __device__ void put(double2 f) { put(f.x), put(f.y); }
    __device__ void put(uint4 w) { put(w.x), put(w.y), put(w.z), put(w.w); }
    __device__ void put(float4 f) { put(f.x), put(f.y), put(f.z), put(f.w); }
    __device__ void put(double4 f) { put(f.x), put(f.y), put(f.z), put(f.w); }
};

/* in: counter, key. */
extern "C" __global__ void rounds(const unsigned int *in, unsigned int *out) {
    writer w = {out};
    if (threadIdx.x == 0)
        w.put(evoke_philox(make_uint4(in[0], in[1], in[2], in[3]), make_uint2(in[4], in[5])));
}

static __device__ unsigned long long wide(const unsigned int *in, int i) {
    return in[2 * i] | (unsigned long long)in[2 * i + 1] << 32;
}

/* in: seed, subsequence, offset, steps to skip, subsequences to skip. */
extern "C" __global__ void words(const unsigned int *in, unsigned int *out) {
    curandStatePhilox4_32_10_t state;
    writer w = {out};
    if (threadIdx.x > 0)
        return;
    curand_init(wide(in, 0), wide(in, 1), wide(in, 2), &state);
    skipahead(wide(in, 3), &state);
    skipahead_sequence(wide(in, 4), &state);
    for (int i = 0; i < 6; i++)
        w.put(curand(&state));
    for (int i = 0; i < 4; i++) {
        w.put(curand4(&state));
        w.put(curand(&state));
    }
}

/* The words of one pair behind one number each. */
template <typename State> static __device__ void numbers(State *s, writer *w) {
    w->put(curand_uniform(s));
    w->put(curand_uniform_double(s));
    w->put(curand_normal(s));
    w->put(curand_normal2(s));
    w->put(curand_normal(s)); /* the spare one */
    w->put(curand_normal_double(s));
    w->put(curand_normal2_double(s));
    w->put(curand_normal_double(s));
    w->put(curand_log_normal(s, 0.5f, 2.0f));
    w->put(curand_log_normal(s, 7.0f, 7.0f)); /* the spare one, by the mean of the first */
    w->put(curand_log_normal_double(s, 0.5, 2.0));
    w->put(curand_log_normal2(s, 0.5f, 2.0f));
}

extern "C" __global__ void philox(const unsigned int *in, unsigned int *out) {
    curandStatePhilox4_32_10_t state;
    writer w = {out};
    if (threadIdx.x > 0)
        return;
    curand_init(wide(in, 0), wide(in, 1), wide(in, 2), &state);
    numbers(&state, &w);
    w.put(curand_uniform4(&state));
    w.put(curand_normal4(&state));
    w.put(curand_uniform2_double(&state));
    w.put(curand_uniform4_double(&state));
    w.put(curand_normal4_double(&state));
    w.put(curand(&state));
}

/* in: a state as cuRAND lays one out. */
extern "C" __global__ void xorwow(const unsigned int *in, unsigned int *out) {
    curandState state = *(const curandState *)in;
    writer w = {out};
    if (threadIdx.x > 0)
        return;
    for (int i = 0; i < 5; i++)
        w.put(curand(&state));
    numbers(&state, &w);
    w.put(curand(&state));
    w.put((unsigned int)sizeof(curandState));
    w.put((unsigned int)sizeof(curandStatePhilox4_32_10_t));
}
