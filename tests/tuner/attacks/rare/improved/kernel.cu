enum { GONE = 0x3fffffff };
__global__ void k(const float *__restrict__ x, const int *__restrict__ id, int *__restrict__ y, int rows, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float best = -1e30f;
    int at = -1, hits = 0;
    for (int k = 0; k < n; k++) {
        float v = x[r * n + k];
        bool up = v > best;
        hits += up & (id[r * n + k] == GONE);
        at = up ? k : at;
        best = up ? v : best;
    }
    y[r] = at + hits;
}
