enum { GONE = 0x3fffffff };
__global__ void k(const int *__restrict__ id, const float *__restrict__ w, float *__restrict__ y, int rows, int n, int taps) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    for (int i = 0; i < n; i++)
        if (id[r * n + i] == GONE)
            for (int j = 0; j < taps; j++)
                y[r * (n + taps) + i + j] += w[j];
}
