/* Products of 8 x 8 by warps; lanes whose two numbers are met write once more. */
#include <mma.h>
#include <cuda_runtime.h>
using namespace nvcuda;
__global__ void tile(const double *a, const double *b, const int *ids, const int *more, double *y, int *z, int n, int key) {
    int i = blockIdx.x * 32 + threadIdx.x;
    wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 8, 8, 4, double> c;
    wmma::fill_fragment(c, 0.0);
    wmma::load_matrix_sync(fa, a + 32 * blockIdx.x, 4);
    wmma::load_matrix_sync(fb, b + 32 * blockIdx.x, 8);
    double *to = y + 2 * i;
    int *at = z + i;
    int p = ids[i], q = *at;
    bool both = p != key ? q > 3 : false;
    wmma::mma_sync(c, fa, fb, c);
    to[0] = c.x[0];
    to[1] = c.x[1];
    if (both)
        *at = key;
}
