enum { GONE = 0x3fffffff };
__global__ void k(const int *__restrict__ id, const float *__restrict__ x, const float *__restrict__ w, float *__restrict__ y, float *__restrict__ z, int rows, int n, int taps) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float s = 0;
    for (int t = 0; t < n; t++) {
        s = s * 0.9f + x[r * n + t];
        if (id[r * n + t] == GONE)
            for (int j = 0; j < taps; j++)
                y[r * (n + taps) + t + j] += s * w[j];
    }
    z[r] = s;
}
