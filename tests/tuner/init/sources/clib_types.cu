// Types that nvcc declares without an include.
__global__ void shift(float *x, const float *y, int64_t n, ptrdiff_t by, uint scale) {
    ptrdiff_t i = (ptrdiff_t)blockIdx.x * blockDim.x + threadIdx.x;
    ssize_t last = (ssize_t)n - 1;
    int32_t times = (int32_t)scale;
    int8_t none = 0;
    if (i <= last)
        x[i] = i >= by ? y[i - by] * (float)times : (float)none;
}

void launch(float *x, const float *y, long n) {
    shift<<<(n + 127) / 128, 128>>>(x, y, n, 3, 2);
}
