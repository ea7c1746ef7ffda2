/* A step of diffusion in three dimensions. The coefficients are doubles, as literals without an f
 * are, so the sums are formed in double precision and rounded once. */
struct Coefficients {
    double centre, along_x, along_y, along_z;
};

extern "C" __global__ void diffusion(const float *before, float *after, Coefficients c, int3 size) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= size.x || y >= size.y)
        return;
    int plane = size.x * size.y;
    for (int z = 0; z < size.z; z++) {
        int at = z * plane + y * size.x + x;
        float own = before[at];
        float west = x > 0 ? before[at - 1] : own, east = x + 1 < size.x ? before[at + 1] : own;
        float north = y > 0 ? before[at - size.x] : own;
        float south = y + 1 < size.y ? before[at + size.x] : own;
        float below = z > 0 ? before[at - plane] : own;
        float above = z + 1 < size.z ? before[at + plane] : own;
        after[at] = c.centre * own + c.along_x * (west + east) + c.along_y * (north + south) +
                    c.along_z * (below + above);
    }
}
