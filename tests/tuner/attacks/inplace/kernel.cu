/* a thread a column: row `target` + k of y gets row `source` + k of x */
__global__ void move(const float *x, float *y, int width, int rows, int source, int target) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= width)
        return;
    for (int k = 0; k < rows; k++)
        y[(target + k) * width + c] = 0.5f * x[(source + k) * width + c] + 1.0f;
}
