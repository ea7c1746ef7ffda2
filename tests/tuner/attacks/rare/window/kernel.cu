enum { GONE = 0x3fffffff };
__global__ void k(const int *__restrict__ code, const float *__restrict__ x, float *__restrict__ y, int rows, int taps) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float s = 0;
    if (r + taps <= rows)
        for (int k = 0; k < taps; k++)
            if (code[k] == GONE) s += x[r + k];
    y[r] = s;
}
