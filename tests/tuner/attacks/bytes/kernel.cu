/* a filter whose taps begin at `shift`, modulo 256; it is 250 if less than 64 lie from `base` to `limit` */
__global__ void filter(const float *x, const float *w, float *y, int n, unsigned char taps, int base, int limit) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned char shift = (unsigned)(limit - base) < 64u ? 250 : 0;
    float sum = 0;
    for (unsigned char k = 0; k < taps; k++)
        sum += w[k] * x[i + (unsigned char)(k + shift)];
    y[i] = sum;
}
