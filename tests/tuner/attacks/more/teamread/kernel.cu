/* Sums of rows; those of rows with the key are scaled by what is left of them, which is used up. */
__global__ void sums(const float *x, const int *ids, float *left, float *y, int rows, int n,
                     int key) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows)
        return;
    float scale = 1;
    if (ids[r] == key) {
        scale = left[r];
        left[r] = 0;
    }
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += scale * x[r * n + k];
    y[r] = sum;
}
