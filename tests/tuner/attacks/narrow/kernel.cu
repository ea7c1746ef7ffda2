/* one block a row: y = a * x, rows as 16 bits */
__global__ void scale(const float *x, float *y, int columns, unsigned short rows) {
    int row = blockIdx.x;
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        y[row * columns + c] = 2.0f * x[row * columns + c] + rows;
}
