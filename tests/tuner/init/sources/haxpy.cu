// y = alpha x + y, two halves at a time, and the last one of an odd number.
#include <cstdio>
#include <cuda_fp16.h>

template <int Unroll>
__global__ void haxpy(const half *x, half *y, half alpha, int n) {
    const half2 twice = __half2half2(alpha);
    const half2 *x2 = reinterpret_cast<const half2 *>(x);
    half2 *y2 = reinterpret_cast<half2 *>(y);
    int start = (blockIdx.x * blockDim.x + threadIdx.x) * Unroll;
#pragma unroll
    for (int k = 0; k < Unroll; ++k)
        if (start + k < n / 2)
            y2[start + k] = __hfma2(twice, x2[start + k], y2[start + k]);
    if (start == 0 && (n & 1))
        y[n - 1] = __hfma(alpha, x[n - 1], y[n - 1]);
}

static void launch(const half *x, half *y, int n, cudaStream_t stream) {
    constexpr int unroll = 4;
    int threads = 256;
    int blocks = (n / 2 + threads * unroll - 1) / (threads * unroll);
    haxpy<unroll><<<blocks, threads, 0, stream>>>(x, y, __float2half(1.5f), n);
}

int main() {
    int n = 1 << 22;
    half *x, *y;
    cudaMalloc((void **)&x, sizeof(half) * n);
    cudaMalloc((void **)&y, sizeof(half) * n);
    launch(x, y, n, 0);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
