/* elements by planes of w * h, as unsigned numbers */
__global__ void planes(const float *x, float *y, unsigned n, unsigned w, unsigned h) {
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n)
        return;
    unsigned column = at % w, plane = at / (w * h);
    y[at] = x[at] + (float)column + 1000.0f * (float)plane;
}
