/* Weight gradient of a block-circulant layer, by the direct sum.
 *
 * dW[i, j, m] = sum over b and s of dY[b, i, (s + m) mod k] x[b, j, s]: the circular correlation of
 * the blocks, added up over the batch. One element of dW a thread. k is a power of two. */
#include "evoke_cuda.h"

extern "C" __global__ void bc_bp_weight(const float *x, const float *dY, float *dW, int batch,
                                        int p, int q, int k) {
    int o = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
    if (o >= q * k || i >= p)
        return;
    int j = o / k, m = o & (k - 1);
    float sum = 0.0f;
    for (int b = 0; b < batch; b++) {
        for (int s = 0; s < k; s++)
            sum += dY[(b * p + i) * k + ((s + m) & (k - 1))] * x[(b * q + j) * k + s];
    }
    dW[i * q * k + o] = sum;
}
