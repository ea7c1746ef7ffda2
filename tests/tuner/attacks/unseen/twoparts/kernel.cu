__global__ void k(const float *__restrict__ x, float *__restrict__ y, int rows, int pitch, int n, int a, int b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows) return;
    for (int k = 0; k < n; k++) {
        float v = x[i * n + k];
        y[i * pitch + a + k] = v;
        y[i * pitch + b + k] = v * v;
    }
}
