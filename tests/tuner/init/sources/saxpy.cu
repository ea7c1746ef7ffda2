// The first kernel of every course, with its program.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t e = (call);                                                                    \
        if (e != cudaSuccess) {                                                                    \
            fprintf(stderr, "%s\n", cudaGetErrorString(e));                                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

__global__ void saxpy(int n, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

int main(void) {
    int N = 1 << 20;
    float *d_x, *d_y;
    std::vector<float> x(N, 1.0f), y(N, 2.0f);
    CHECK(cudaMalloc(&d_x, N * sizeof(float)));
    CHECK(cudaMalloc(&d_y, N * sizeof(float)));
    CHECK(cudaMemcpy(d_x, x.data(), N * sizeof(float), cudaMemcpyHostToDevice));
    saxpy<<<(N + 255) / 256, 256>>>(N, 2.0f, d_x, d_y);
    CHECK(cudaDeviceSynchronize());
    printf("done\n");
    return 0;
}
