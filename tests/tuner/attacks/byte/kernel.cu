/* sums of 200 neighbours, as far as they lie before `limit` */
__global__ void window(const float *x, float *y, int n, int base, int limit) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0;
    unsigned char k = 0;
    do {
        if (base + i + k < limit)
            sum += x[i + k];
        k++;
    } while (k < 200);
    y[i] = sum;
}
