/* A filter of `taps` taps; elements from `first` + `more` on, counted from `base`, take element 0.
 */
__global__ void filter(const float *x, const float *w, float *y, int n, int taps, int base,
                       int first, int more) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int at = base + i < first + more ? i : 0;
    float sum = 0;
    for (int k = 0; k < taps; k++)
        sum += w[k] * x[at + k];
    y[i] = sum;
}
