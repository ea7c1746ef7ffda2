/* The greatest value of each class by a compare-and-swap that begins with a plain load, as CUDA's
 * guide has it, and a flag that all threads raise which find an infinite gradient. */
__device__ void raise(float *a, float v) {
    int *p = (int *)a;
    int old = *p, seen;
    do {
        seen = old;
        if (__int_as_float(seen) >= v)
            return;
        old = atomicCAS(p, seen, __float_as_int(v));
    } while (seen != old);
}
__global__ void unscale(const float *x, float *y, float *most, float *found, int n, int classes,
                        int rows) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float best = 0;
    for (int k = 0; k < rows; k++) {
        float v = x[k * n + i] * 0.125f;
        if (v > 0.4f)
            *found = 1.0f;
        y[k * n + i] = v;
        best = fmaxf(best, v);
    }
    raise(&most[i % classes], best);
}
