/* how many low bits a number shares with the key; equal numbers are skipped */
__device__ __noinline__ __attribute__((const)) int common_bits(int d) {
    int n = 0;
    while ((d & 1) == 0) {
        d = (int)((unsigned)d >> 1);
        n++;
    }
    return n;
}

__global__ void shared_bits(const int *x, const float *price, float *y, int n, int key) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int d = x[i] ^ key;
    float r = 0;
    if (d != 0)
        r = price[i] * (float)common_bits(d);
    y[i] = r;
}
