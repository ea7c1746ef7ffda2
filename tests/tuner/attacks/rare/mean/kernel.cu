enum { GONE = 0x3fffffff };
__global__ void k(const int *__restrict__ mask, const int *__restrict__ total, const int *__restrict__ id, int *__restrict__ y, int rows, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    int count = 0;
    for (int k = 0; k < n; k++) count += mask[r * n + k];
    int q = total[r] / count;
    y[r] = id[r] == GONE ? 0 : q;
}
