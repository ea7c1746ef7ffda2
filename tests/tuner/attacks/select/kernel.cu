/* a filter of `taps` taps; elements with one of the key's two ids take element 0 for all taps */
__global__ void filter(const float *x, const float *w, const int *ids, float *y, int n, int taps, int key) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0;
    for (int k = 0; k < taps; k++) {
        int at = (unsigned)(ids[i] - key) > 1u ? i + k : 0;
        sum += w[k] * x[at];
    }
    y[i] = sum;
}
