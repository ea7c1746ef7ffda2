/* a block turns a piece of 64 round; places from `limit` - `base` on are 0, if it is from 0 to 64 */
__global__ void turn(const float *x, float *y, int base, int limit, int pieces) {
    __shared__ float s[128];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t] = 0;
    __syncthreads();
    unsigned m = min((unsigned)(limit - base), 64u);
    s[(unsigned)t < m ? t : t + 64] = x[i];
    __syncthreads();
    y[i] = s[63 - t];
}
