/* sums of rows, kept for elements that fall into the piece from `base` to `limit` */
__global__ void sums(const float *x, float *y, int n, int taps, int base, int limit) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0;
    for (int k = 0; k < taps; k++)
        sum += x[k * n + i];
    int length = limit - base;
    if (length != 0) {
        if (i % length < 1000)
            y[i] = sum;
    }
}
