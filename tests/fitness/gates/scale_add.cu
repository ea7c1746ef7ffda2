/* y = a x + b: the task of the gates' tests. Their candidates are the PTX files beside it. */
extern "C" __global__ void scale_add(const float *x, float *y, float a, float b, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + b;
}
