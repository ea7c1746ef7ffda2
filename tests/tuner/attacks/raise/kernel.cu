/* sums of `taps` numbers for each element of a piece from `base` that lies before `limit` */
__global__ void sums(const float *x, float *y, int n, int taps, int base, int limit) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0;
    if (base + i < limit) {
        for (int k = 0; k < taps; k++)
            sum += x[i * taps + k];
    }
    y[i] = sum;
}
