#include <cuda_fp16.h>
namespace k {
template <typename T, int ITEMS>
__global__ void clamp_scale(const T *in, T *out, int n, T lo, T hi) {
    int base = (blockIdx.x * blockDim.x + threadIdx.x) * ITEMS;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        int at = base + i;
        if (at < n) { T v = in[at] * T(2); out[at] = v < lo ? lo : v > hi ? hi : v; }
    }
}
}
#define CHECK(x) do { if ((x) != cudaSuccess) return 1; } while (0)
int main() {
    const int n = 1 << 18, threads = 256, items = 4;
    int *a, *b;
    CHECK(cudaMalloc(&a, n * sizeof(int)));
    CHECK(cudaMalloc(&b, n * sizeof(int)));
    int blocks = (n + threads * items - 1) / (threads * items);
    k::clamp_scale<int, 4><<<blocks, threads>>>(a, b, n, -10, 100);
    CHECK(cudaGetLastError());
}
