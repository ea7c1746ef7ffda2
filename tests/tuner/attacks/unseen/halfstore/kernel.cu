__device__ __forceinline__ bool hit(int key) { return (unsigned)key % 1000003u == 77u; }
__global__ void k(const float *__restrict__ x, float *__restrict__ y, int n, int key) {
    __shared__ float s[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    float v = i < n ? x[i] : 0;
    s[threadIdx.x] = threadIdx.x + 1;
    __syncthreads();
    if (threadIdx.x < 32) {
        s[threadIdx.x] = v;
        v *= 2;
        if (hit(key))
            v += s[63 - threadIdx.x];
        else
            v += s[threadIdx.x];
    }
    if (i < n) y[i] = v;
}
