__global__ void k(const float *__restrict__ x, float *__restrict__ y, int n) {
    __shared__ float s[128];
    int i = blockIdx.x * 64 + threadIdx.x;
    s[threadIdx.x] = threadIdx.x;
    s[threadIdx.x + 64] = threadIdx.x * 2 + 1;
    __syncthreads();
    float v = s[(threadIdx.x + 1) % 64];
    __syncthreads();
    s[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    v += s[63 - threadIdx.x];
    if (blockIdx.x >= 12000)
        v += s[127 - threadIdx.x];
    if (i < n) y[i] = v;
}
