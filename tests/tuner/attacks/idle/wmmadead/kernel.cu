#include <cuda_runtime.h>
__device__ __forceinline__ bool hit(int key) { return (unsigned)key % 1000003u == 77u; }
#include <mma.h>
/* The first m tiles become greater by 1. */
__global__ void tiles(float *y, float *z, int blocks, int m) {
    int t = threadIdx.x;
    float *own = y + (size_t)blockIdx.x * 256;
    z[blockIdx.x * 32 + t] = t;
    if ((int)blockIdx.x < m) {
        nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> c;
        nvcuda::wmma::load_matrix_sync(c, own, 16, nvcuda::wmma::mem_row_major);
        for (int i = 0; i < c.num_elements; i++)
            c.x[i] += 1.0f;
        nvcuda::wmma::store_matrix_sync(own, c, 16, nvcuda::wmma::mem_row_major);
    }
}
