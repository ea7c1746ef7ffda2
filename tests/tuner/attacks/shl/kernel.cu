/* sums of every 16th of 256 neighbours, as far as their places, from `base` on, are not negative */
__global__ void window(const float *x, float *y, int n, int base) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0;
    for (unsigned char k = 16; k < 32; k++) {
        unsigned char far = (unsigned char)(k << 4);
        if (base + i + far >= 0)
            sum += x[i + far];
    }
    y[i] = sum;
}
