// A depth that the launch says, longer than the rows of the first runs; half of a square.
__global__ void scores(const float *q, const float *k, float *s, int heads, int length, int depth, float scale) {
    int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y, h = blockIdx.z;
    if (i >= length || j >= length) return;
    float sum = 0.0f;
    if (j <= i)
        for (int d = 0; d < depth; d++) sum += q[(h * length + i) * depth + d] * k[(h * length + j) * depth + d];
    s[(h * length + i) * length + j] = j <= i ? sum * scale : -1e9f;
}
void run(const float *q, const float *k, float *s) {
    int heads = 8, length = 160, depth = 64;
    dim3 block(16, 16), grid((length + 15) / 16, (length + 15) / 16, heads);
    scores<<<grid, block>>>(q, k, s, heads, length, depth, 0.125f);
}
