/* a thread a column: takes items of weight x until `limit`; each adds its place's price */
__global__ void pack(const int *x, const float *price, float *y, int n, int columns) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= columns)
        return;
    int weight = 0;
    float sum = 0;
    for (int k = 0; k < n; k++) {
        weight += x[k * columns + c];
        if (weight > 100)
            break;
        sum += price[k];
    }
    y[c] = sum;
}
