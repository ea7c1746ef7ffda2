/* Data gradient of a block-circulant layer, by the direct sum.
 *
 * dX[b, j k + s] = sum over i and r of w[i, j, (r - s) mod k] dY[b, i k + r]: the transpose of
 * bc_fp's product. One element of dX a thread. k is a power of two. */
#include "evoke_cuda.h"

extern "C" __global__ void bc_bp_data(const float *dY, const float *w, float *dX, int batch, int p,
                                      int q, int k) {
    int o = blockIdx.x * blockDim.x + threadIdx.x, b = blockIdx.y;
    if (o >= q * k || b >= batch)
        return;
    int j = o / k, s = o & (k - 1);
    float sum = 0.0f;
    for (int i = 0; i < p; i++) {
        for (int r = 0; r < k; r++)
            sum += w[(i * q + j) * k + ((r - s) & (k - 1))] * dY[(b * p + i) * k + r];
    }
    dX[b * q * k + o] = sum;
}
