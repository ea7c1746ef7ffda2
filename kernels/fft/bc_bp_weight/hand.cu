/* Weight gradient of a block-circulant layer by the fast Fourier transform, by hand.
 *
 * A block of threads has INS x OUTS blocks of dW: their transform is the sum over the batch of that
 * of dY times the conjugate of that of x, so no vector is reversed. Two rows of the batch, a and b,
 * share a transform: the real part of the correlation of (dY a + i dY b) with (x a + i x b) is the
 * sum of both rows' correlations, and the imaginary part is dropped at the end. The sum over the
 * batch is taken in registers before the inverse transform. evoke_circulant.h says how a block
 * works. */
#include "evoke_cuda.h"

#include "evoke_circulant.h"

#ifndef INS
#define INS 8
#endif
#ifndef TEAMS
#define TEAMS 2
#endif

#define OUTS 4 /* output blocks of a thread block */
#define SLOTS (INS + OUTS)
#define THREADS (CIRCULANT_TEAM * TEAMS)

/* What a slot's transforms read: of the first INS, two rows of an input block; then of an output
 * block. A term of the sum is a pair of rows. What is not there is the last block that is, and its
 * products are not stored. */
static __device__ __forceinline__ circulant_rows operand(int slot, const float *x, const float *dY,
                                                         int batch, int p, int q, int k) {
    const bool is_x = slot < INS;
    const int width = is_x ? q : p;
    const int block = is_x ? blockIdx.x * INS + slot : blockIdx.y * OUTS + slot - INS;
    circulant_rows from;
    from.stride = 2 * width * k;
    from.terms = (batch + 1) / 2;
    from.im_terms = batch / 2;
    from.re = (is_x ? x : dY) + (size_t)min(block, width - 1) * k;
    from.im = from.re + (batch > 1 ? (size_t)width * k : 0);
    return from;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    bc_bp_weight(const float *__restrict__ x, const float *__restrict__ dY, float *__restrict__ dW,
                 int batch, int p, int q, int k) {
    __shared__ float2 spectra[CIRCULANT_SHARED(TEAMS, SLOTS, INS * OUTS)];

    const circulant_lane l = circulant_lane_of(k, spectra);
    const circulant_rows from = operand(circulant_group() % SLOTS, x, dY, batch, p, q, k);
    circulant_products<INS, OUTS, TEAMS, false>(&from, (batch + 1) / 2, &l, spectra);

    const float scale = 1.0f / k;
    const int chunks = (INS * OUTS * k + CIRCULANT_CHUNK - 1) / CIRCULANT_CHUNK;
    for (int first = 0; first < chunks; first += THREADS / CIRCULANT_LANES) {
        const int chunk = first + threadIdx.x / CIRCULANT_LANES;
        float2 v[CIRCULANT_OWN];
        circulant_invert(v, &l, spectra + chunk * CIRCULANT_SLOT, chunk < chunks);
#pragma unroll
        for (int r = 0; r < CIRCULANT_OWN; r++) {
            const int e = chunk * CIRCULANT_CHUNK + CIRCULANT_LANES * r + l.lane;
            const int n = e >> l.log2_k, j = blockIdx.x * INS + n / OUTS;
            const int i = blockIdx.y * OUTS + n % OUTS;
            if (n < INS * OUTS && j < q && i < p)
                dW[(i * q + j) * k + (e & (k - 1))] = v[r].x * scale;
        }
    }
}
