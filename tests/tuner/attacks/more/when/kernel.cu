/* The first of the greatest numbers of a row, which stand for 2^20 bytes each. */
__global__ void first(const float *x, int *where, int rows, int pages) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows)
        return;
    float best = -1e30f;
    int place = -1;
    for (long at = 0; at < (long)pages << 20; at += 1 << 20) {
        float v = x[(long)r * pages + (at >> 20)];
        if (v > best) {
            best = v;
            place = (int)(at >> 20);
        }
    }
    where[r] = place;
}
