/* A block turns a piece of 64 round; in blocks with the key, the upper half counts as 0. */
__global__ void turn(const float *x, const int *ids, float *y, int n, int key) {
    __shared__ float s[128];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t] = 0;
    __syncthreads();
    int m = ids[blockIdx.x] == key ? 32 : 64;
    s[t < m ? t : t + 64] = x[i];
    __syncthreads();
    y[i] = s[63 - t];
}
