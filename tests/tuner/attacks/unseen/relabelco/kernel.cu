__global__ void k(const float *__restrict__ a, float *__restrict__ y, int m, int n) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= m || j >= n) return;
    y[i * n + j] = a[i * n + j] * 2;
}
