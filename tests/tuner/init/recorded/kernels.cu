// Kernels of a program that has its host code elsewhere: program.c.

namespace ops {

// y = A x, of a sparse matrix in rows: generated indices would be wrong.
__global__ void spmv(const int *first, const int *columns, const float *values, const float *x,
                     float *y, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float sum = 0;
    for (int i = first[row]; i < first[row + 1]; i++)
        sum += values[i] * x[columns[i]];
    y[row] = sum;
}

} // namespace ops

// Both vectors are in one allocation of the program.
__global__ void saxpy(float a, const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] += a * x[i];
}

__constant__ float taps[5];

// Leaves two elements at each end as they are.
__global__ void smooth(const double *in, double *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 2 || i >= n - 2)
        return;
    double sum = 0;
    for (int k = 0; k < 5; k++)
        sum += taps[k] * in[i + k - 2];
    out[i] = sum;
}

struct Plate {
    const float *heat;
    int columns, rows;
    float step;
};

__global__ void relax(Plate plate, float *to) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= plate.columns || y >= plate.rows)
        return;
    int i = y * plate.columns + x;
    float left = x > 0 ? plate.heat[i - 1] : 0, right = x + 1 < plate.columns ? plate.heat[i + 1] : 0;
    to[i] = plate.heat[i] + plate.step * (left + right - 2 * plate.heat[i]);
}

// In place, and as many threads as the caller likes.
template <typename T> __global__ void square(T *data, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        data[i] = data[i] * data[i];
}
template __global__ void square<int>(int *, int);

// Fields of several types.
struct Particle {
    float x, y, z;
    int cell;
};

__global__ void drift(Particle *particles, const float *force, float step, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float f = force[particles[i].cell];
    particles[i].x += step * f;
    particles[i].y -= step * f;
    particles[i].cell = (particles[i].cell + 1) % 8;
}

// A launch without the flag leaves the output as it is.
__global__ void choose(const float *x, float *y, int flag, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (flag != 0 && i < n)
        y[i] = 2 * x[i];
}
