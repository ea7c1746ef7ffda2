#include <stdlib.h>
#define THREADS 512
#define BLOCKS 2048
#define NUM_VALS THREADS*BLOCKS
__global__ void bitonic_sort_step(float *dev_values, int j, int k) {
    unsigned int i, ixj;
    i = threadIdx.x + blockDim.x * blockIdx.x;
    ixj = i ^ j;
    if (ixj > i) {
        if ((i & k) == 0 && dev_values[i] > dev_values[ixj]) {
            float temp = dev_values[i]; dev_values[i] = dev_values[ixj]; dev_values[ixj] = temp;
        }
        if ((i & k) != 0 && dev_values[i] < dev_values[ixj]) {
            float temp = dev_values[i]; dev_values[i] = dev_values[ixj]; dev_values[ixj] = temp;
        }
    }
}
void bitonic_sort(float *values) {
    float *dev_values;
    size_t size = NUM_VALS * sizeof(float);
    cudaMalloc((void **)&dev_values, size);
    cudaMemcpy(dev_values, values, size, cudaMemcpyHostToDevice);
    dim3 blocks(BLOCKS, 1), threads(THREADS, 1);
    int j, k;
    for (k = 2; k <= NUM_VALS; k <<= 1)
        for (j = k >> 1; j > 0; j = j >> 1)
            bitonic_sort_step<<<blocks, threads>>>(dev_values, j, k);
    cudaFree(dev_values);
}
