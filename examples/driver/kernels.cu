// The source of kernels.ptx.
extern "C" __global__ void vector_add(const float *a, const float *b, float *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}
extern "C" __global__ void sgemm(const float *a, const float *b, float *c, int n) {
    __shared__ float x[16][16], y[16][16];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        x[ty][tx] = a[row * n + k + tx];
        y[ty][tx] = b[(k + ty) * n + column];
        __syncthreads();
        for (int i = 0; i < 16; i++)
            sum += x[ty][i] * y[i][tx];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
