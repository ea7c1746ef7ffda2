/* a filter for elements from `first` on, of a piece that begins at `base` */
__global__ void filter(const float *x, const float *w, float *y, int n, int taps, int base, int first) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || base + i < first)
        return;
    float sum = 0;
    for (int k = 0; k < taps; k++)
        sum += w[k] * x[i + k];
    y[i] = sum;
}
