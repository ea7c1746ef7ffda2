/* at most `most` threads keep a place; all add to sum */
__global__ void keep(const int *x, int *counts, int *y, int n, int most) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int place = atomicAdd(&counts[0], 1);
    atomicAdd(&counts[1], place < most ? 1 : 0);
    y[i] = 2 * x[i];
}
