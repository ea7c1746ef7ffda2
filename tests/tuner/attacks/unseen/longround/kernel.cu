__global__ void k(const float *__restrict__ x, float *__restrict__ z, int rows, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows) return;
    float s = 0;
    for (int k = 0; k < n; k += 1024) s += x[k >> 10] * (i + 1);
    z[i] = s;
}
