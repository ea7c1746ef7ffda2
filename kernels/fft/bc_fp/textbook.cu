/* Forward product of a block-circulant layer, by the direct sum.
 *
 * y[b, i k + r] = sum over j and s of w[i, j, (r - s) mod k] x[b, j k + s]: the weights are p x q
 * blocks of k x k, and a block is the circulant matrix of k values. One output element a thread. k
 * is a power of two. */
#include "evoke_cuda.h"

extern "C" __global__ void bc_fp(const float *x, const float *w, float *y, int batch, int p, int q,
                                 int k) {
    int o = blockIdx.x * blockDim.x + threadIdx.x, b = blockIdx.y;
    if (o >= p * k || b >= batch)
        return;
    int i = o / k, r = o & (k - 1);
    float sum = 0.0f;
    for (int j = 0; j < q; j++) {
        for (int s = 0; s < k; s++)
            sum += w[(i * q + j) * k + ((r - s) & (k - 1))] * x[(b * q + j) * k + s];
    }
    y[b * p * k + o] = sum;
}
