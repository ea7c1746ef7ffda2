/* Each of `taps` taps adds up to four numbers of w, by a list of places that ends early at the
 * place `none`. */
__global__ void filter(const float *x, const float *w, const int *list, float *y, int n, int taps,
                       int none) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0;
    for (int k = 0; k < taps; k++) {
        float part = 0;
        for (int j = 0; j < 4; j++) {
            int q = list[k * 4 + j];
            if (q == none)
                break;
            part += w[q];
        }
        sum += part * x[i + k];
    }
    y[i] = sum;
}
