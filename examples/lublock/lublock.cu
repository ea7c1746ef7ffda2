/* A step of a blocked LU decomposition: what the finished panels take from the rest of the matrix.
 * `left` has B columns below the diagonal block, `top` B rows right of it. */
template <typename T, int B>
__global__ void lublock(const T *left, const T *top, T *rest, int n) {
    __shared__ T rows[B][B], columns[B][B];
    int x = blockIdx.x * B + threadIdx.x, y = blockIdx.y * B + threadIdx.y;
    rows[threadIdx.y][threadIdx.x] = y < n ? left[y * B + threadIdx.x] : T(0);
    columns[threadIdx.y][threadIdx.x] = x < n ? top[threadIdx.y * n + x] : T(0);
    __syncthreads();
    T sum = T(0);
    for (int k = 0; k < B; k++)
        sum += rows[threadIdx.y][k] * columns[k][threadIdx.x];
    if (x < n && y < n)
        rest[y * n + x] -= sum;
}
