// Monte-Carlo with an LCG: iterations and a seed
#include <cstdio>
#include <cuda_runtime.h>

__device__ unsigned lcg(unsigned &state) {
    state = state * 1664525u + 1013904223u;
    return state;
}

__global__ void estimate_pi(float *out, int trials, unsigned seed) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned state = seed ^ (i * 747796405u);
    int hits = 0;
    for (int t = 0; t < trials; t++) {
        float x = lcg(state) * 2.3283064e-10f;
        float y = lcg(state) * 2.3283064e-10f;
        hits += x * x + y * y < 1.0f;
    }
    out[i] = 4.0f * hits / trials;
}

int main() {
    float *d;
    cudaMalloc(&d, 65536 * sizeof(float));
    estimate_pi<<<256, 256>>>(d, 1000, 42);
    cudaDeviceSynchronize();
    printf("done\n");
    return 0;
}
