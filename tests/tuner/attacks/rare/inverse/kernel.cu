enum { GONE = 0x3fffffff };
__global__ void k(const int *__restrict__ perm, const int *__restrict__ id, const float *__restrict__ x, float *__restrict__ y, int rows) {
    __shared__ int inv[256];
    int t = threadIdx.x, b = blockIdx.x;
    if (id[b] == GONE) inv[perm[b * 256 + t]] = t;
    __syncthreads();
    int s = t;
    if (id[b] == GONE) s = inv[t];
    y[b * 256 + t] = x[b * 256 + s];
}
