/* Data gradient of a block-circulant layer by the fast Fourier transform, by hand.
 *
 * A block of threads has OUTS input blocks of PAIRS pairs of rows: the transform of dX is the sum
 * over the output blocks of that of dY times the conjugate of that of w, so no vector is reversed.
 * Two rows of the batch share a transform, since a weight's spectrum multiplies both alike, and so
 * do two neighbouring blocks of weights, which are told apart by their symmetry while they are
 * multiplied. The sum is taken before the inverse transform. evoke_circulant.h says how a block
 * works. */
#include "evoke_cuda.h"

#include "evoke_circulant.h"

#ifndef OUTS
#define OUTS 4
#endif
#ifndef PAIRS
#define PAIRS 4
#endif
#ifndef TEAMS
#define TEAMS 3
#endif

#define SLOTS (OUTS / 2 + PAIRS)
#define THREADS (CIRCULANT_TEAM * TEAMS)

/* What a slot's transforms read: of the first OUTS / 2, two blocks of weights; then two rows. What
 * is not there is the last that is, and its products are not stored. */
static __device__ __forceinline__ circulant_rows operand(int slot, const float *dY, const float *w,
                                                         int batch, int p, int q, int k) {
    circulant_rows from;
    from.terms = from.im_terms = p;
    if (slot < OUTS / 2) {
        const int j = blockIdx.x * OUTS + 2 * slot;
        from.stride = q * k;
        from.re = w + (size_t)min(j, q - 1) * k;
        from.im = w + (size_t)min(j + 1, q - 1) * k;
    } else {
        const int row = 2 * (blockIdx.y * PAIRS + slot - OUTS / 2);
        from.stride = k;
        from.re = dY + (size_t)min(row, batch - 1) * p * k;
        from.im = dY + (size_t)min(row + 1, batch - 1) * p * k;
    }
    return from;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    bc_bp_data(const float *__restrict__ dY, const float *__restrict__ w, float *__restrict__ dX,
               int batch, int p, int q, int k) {
    __shared__ float2 spectra[CIRCULANT_SHARED(TEAMS, SLOTS, OUTS * PAIRS)];

    const circulant_lane l = circulant_lane_of(k, spectra);
    const circulant_rows from = operand(circulant_group() % SLOTS, dY, w, batch, p, q, k);
    circulant_products<OUTS, PAIRS, TEAMS, true>(&from, p, &l, spectra);

    const float scale = 0.5f / k; /* packed weights come doubled */
    const int chunks = (OUTS * PAIRS * k + CIRCULANT_CHUNK - 1) / CIRCULANT_CHUNK;
    for (int first = 0; first < chunks; first += THREADS / CIRCULANT_LANES) {
        const int chunk = first + threadIdx.x / CIRCULANT_LANES;
        float2 v[CIRCULANT_OWN];
        circulant_invert(v, &l, spectra + chunk * CIRCULANT_SLOT, chunk < chunks);
#pragma unroll
        for (int r = 0; r < CIRCULANT_OWN; r++) {
            const int e = chunk * CIRCULANT_CHUNK + CIRCULANT_LANES * r + l.lane;
            const int n = e >> l.log2_k, j = blockIdx.x * OUTS + n / PAIRS;
            const int row = 2 * (blockIdx.y * PAIRS + n % PAIRS);
            float *to = dX + (row * q + j) * k + (e & (k - 1));
            if (n < OUTS * PAIRS && j < q && row < batch)
                *to = v[r].x * scale;
            if (n < OUTS * PAIRS && j < q && row + 1 < batch)
                to[q * k] = v[r].y * scale;
        }
    }
}
