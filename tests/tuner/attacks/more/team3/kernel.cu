/* Sums of rows of a piece that begins at `base`, from the row `first` + `more` on. */
__global__ void sums(const float *x, float *y, int n, int width, int base, int first, int more) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || base + i < first + more)
        return;
    float sum = 0;
    for (int k = 0; k < width; k++)
        sum += x[i * width + k];
    y[i] = sum;
}
