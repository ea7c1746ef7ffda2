/* A filter whose taps move by n / e, where e is the tap's distance to the key; a tap at the key
 * counts nothing. */
__global__ void filter(const float *x, const float *w, const int *ids, float *y, int n, int taps,
                       int key) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int d = ids[blockIdx.x] - key;
    float sum = 0;
    for (int k = 0; k < taps; k++) {
        int e = d + k;
        if (e != 0)
            sum += w[n + k + n / e] * x[i + k];
    }
    y[i] = sum;
}
