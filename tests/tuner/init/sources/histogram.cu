// Atomics in shared memory, whole numbers, a constant number of bins.
#define BINS 16
#define BLOCK_SIZE 256
__global__ void histogram(const unsigned int *keys, unsigned int *bins, int n) {
    __shared__ unsigned int local[BINS];
    for (int b = threadIdx.x; b < BINS; b += blockDim.x)
        local[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[keys[i] % BINS], 1u);
    __syncthreads();
    for (int b = threadIdx.x; b < BINS; b += blockDim.x)
        atomicAdd(&bins[b], local[b]);
}
void count(const unsigned int *k, unsigned int *b, int n) {
    int blocks = min((n + BLOCK_SIZE - 1) / BLOCK_SIZE, 1024);
    histogram<<<blocks, BLOCK_SIZE>>>(k, b, n);
}
