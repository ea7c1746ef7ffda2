// BLAS-like axpy with strides
__global__ void axpy(int n, float a, const float *x, int incx, float *y, int incy) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i * incy] += a * x[i * incx];
}
void run(float *x, float *y) {
    int threads = 128;
    axpy<<<(100000 + threads - 1) / threads, threads>>>(100000, 2.5f, x, 3, y, 2);
}
