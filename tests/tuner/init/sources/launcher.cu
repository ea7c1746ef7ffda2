#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <float.h>
template <typename T> __device__ inline float tof(T v) { return (float)v; }
template <typename T, int THREADS>
__global__ void __launch_bounds__(THREADS) row_softmax(const T *__restrict__ in, T *__restrict__ out, int cols, float temperature) {
    const T *x = in + (size_t)blockIdx.x * cols;
    T *y = out + (size_t)blockIdx.x * cols;
    __shared__ float red[THREADS];
    float m = -FLT_MAX;
    for (int i = threadIdx.x; i < cols; i += THREADS) m = fmaxf(m, tof(x[i]));
    red[threadIdx.x] = m; __syncthreads();
    for (int s = THREADS / 2; s; s >>= 1) { if (threadIdx.x < s) red[threadIdx.x] = fmaxf(red[threadIdx.x], red[threadIdx.x + s]); __syncthreads(); }
    m = red[0]; __syncthreads();
    float sum = 0;
    for (int i = threadIdx.x; i < cols; i += THREADS) sum += __expf((tof(x[i]) - m) / temperature);
    red[threadIdx.x] = sum; __syncthreads();
    for (int s = THREADS / 2; s; s >>= 1) { if (threadIdx.x < s) red[threadIdx.x] += red[threadIdx.x + s]; __syncthreads(); }
    float inv = 1.0f / red[0];
    for (int i = threadIdx.x; i < cols; i += THREADS) y[i] = T(__expf((tof(x[i]) - m) / temperature) * inv);
}
template <typename T> void launch(const T *a, T *b, int rows, int cols) {
    constexpr int threads = 128;
    row_softmax<T, threads><<<rows, threads>>>(a, b, cols, 0.7f);
}
int main() { __half *a, *b; launch<__half>(a, b, 4096, 1000); }
