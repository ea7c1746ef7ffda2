/* A histogram of bytes: each block counts its share in shared memory, and writes bins of its own. A
 * second kernel adds the bins of all blocks up. */
#define BINS 256

extern "C" __global__ void histogram(const unsigned char *bytes, unsigned *bins, int each) {
    __shared__ unsigned own[BINS];
    for (int i = threadIdx.x; i < BINS; i += blockDim.x)
        own[i] = 0;
    __syncthreads();
    const unsigned char *share = bytes + (size_t)blockIdx.x * each;
    for (int i = threadIdx.x; i < each; i += blockDim.x)
        atomicAdd(&own[share[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < BINS; i += blockDim.x)
        bins[blockIdx.x * BINS + i] = own[i];
}
