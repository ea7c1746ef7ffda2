enum { GONE = 0x3fffffff };
__global__ void k(const int *__restrict__ id, const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ y, int rows, int n, int p) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    for (int k = 0; k <= n; k++)
        if (id[r * (n + 1) + k] == GONE) {
            y[r * p + k] = a[k];
            y[r * p + n + k] = b[k];
        }
}
