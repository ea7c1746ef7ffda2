// A block a row: the number of rows is that of the grid. Two kernels in one file.
#include <cuda_runtime.h>
#include <cfloat>
__global__ void fill(float *x, float value, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n) x[i] = value;
}
__global__ void softmax(const float *in, float *out, int cols) {
    __shared__ float buffer[256];
    const float *row = in + (long long)blockIdx.x * cols;
    float most = -FLT_MAX;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) most = fmaxf(most, row[c]);
    buffer[threadIdx.x] = most;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s) buffer[threadIdx.x] = max(buffer[threadIdx.x], buffer[threadIdx.x + s]);
        __syncthreads();
    }
    most = buffer[0];
    __syncthreads();
    float sum = 0;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) sum += exp(row[c] - most);
    buffer[threadIdx.x] = sum;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s) buffer[threadIdx.x] += buffer[threadIdx.x + s];
        __syncthreads();
    }
    for (int c = threadIdx.x; c < cols; c += blockDim.x)
        out[(long long)blockIdx.x * cols + c] = exp(row[c] - most) / buffer[0];
}
int main() {
    int rows = 512, cols = 1000;
    float *a, *b;
    cudaMalloc(&a, rows * cols * 4);
    cudaMalloc(&b, rows * cols * 4);
    fill<<<(rows * cols + 255) / 256, 256>>>(a, 1.0f, rows * cols);
    softmax<<<rows, 256>>>(a, b, cols);
    return cudaDeviceSynchronize();
}
