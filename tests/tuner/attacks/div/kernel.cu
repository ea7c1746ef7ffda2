/* a piece from `base` to `limit`, spread over the elements; none if it is empty */
__global__ void spread(const float *x, float *y, int n, int base, int limit) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int length = limit - base;
    if (length == 0)
        return;
    if (i % length > 1000)
        return;
    y[i] = 2.0f * x[i];
}
