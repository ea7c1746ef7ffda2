/* Kernels that are right: the patterns of parallel programs. tests/fitness/vm/zoo_good.c computes what each must
 * give. Floats travel as bits in int buffers; their values are such that every order of summation
 * gives the same, or the host allows for rounding. */
#include "kernels/include/evoke_cuda.h"

#define KERNEL extern "C" __global__ void
#define ARGS const int *in, int *out, int *both, int n
#define I ((int)(blockIdx.x * blockDim.x + threadIdx.x))
#define T ((int)threadIdx.x)
#define B ((int)blockIdx.x)
#define ALL 0xffffffff

static __device__ __forceinline__ void put(int *to, float v) { *to = __float_as_int(v); }

KERNEL sum_two_level(ARGS) { // shuffles, then one warp over the warps' sums
    __shared__ int s[2];
    int v = in[I];
    for (int k = 16; k > 0; k /= 2)
        v += __shfl_down_sync(ALL, v, k);
    if (T % 32 == 0)
        s[T / 32] = v;
    __syncthreads();
    out[I] = s[0] + s[1];
}
KERNEL sum_atomic(ARGS) { // every thread adds to one word
    atomicAdd(&both[0], in[I]);
    out[I] = 0;
}
KERNEL sum_ticket(ARGS) { // two levels over blocks; the last block to finish sums up
    __shared__ int s[64];
    __shared__ int last;
    s[T] = in[I];
    __syncthreads();
    for (int k = 32; k > 0; k /= 2) {
        if (T < k)
            s[T] += s[T + k];
        __syncthreads();
    }
    if (T == 0) {
        both[16 + B] = s[0];
        __threadfence();
        last = atomicAdd(&both[0], 1) == (int)gridDim.x - 1;
    }
    __syncthreads();
    if (last) {
        __threadfence();
        if (T == 0) {
            int sum = 0;
            for (int k = 0; k < (int)gridDim.x; k++)
                sum += both[16 + k];
            both[1] = sum;
        }
    }
    out[I] = s[0];
}
KERNEL scan_blelloch(ARGS) { // exclusive, work-efficient
    __shared__ int s[64];
    s[T] = in[I];
    int d = 1;
    for (int k = 32; k > 0; k /= 2, d *= 2) {
        __syncthreads();
        if (T < k)
            s[d * (2 * T + 2) - 1] += s[d * (2 * T + 1) - 1];
    }
    if (T == 0)
        s[63] = 0;
    for (int k = 1; k < 64; k *= 2) {
        d /= 2;
        __syncthreads();
        if (T < k) {
            int a = d * (2 * T + 1) - 1, b = d * (2 * T + 2) - 1, t = s[a];
            s[a] = s[b];
            s[b] += t;
        }
    }
    __syncthreads();
    out[I] = s[T];
}
KERNEL scan_shuffle(ARGS) { // inclusive, by warp
    int v = in[I];
    for (int k = 1; k < 32; k *= 2) {
        int u = __shfl_up_sync(ALL, v, k);
        if (T % 32 >= k)
            v += u;
    }
    out[I] = v;
}
KERNEL scan_look_back(ARGS) { // decoupled look-back: state words 0 none, 1 sum, 2 prefix
    __shared__ int s[64];
    __shared__ int before;
    volatile int *state = both;
    volatile int *value = both + 16, *prefix = both + 32;
    s[T] = in[I];
    __syncthreads();
    for (int k = 1; k < 64; k *= 2) {
        int v = T >= k ? s[T - k] : 0;
        __syncthreads();
        s[T] += v;
        __syncthreads();
    }
    if (T == 63) {
        int sum = 0;
        value[B] = s[63];
        __threadfence();
        state[B] = 1;
        for (int k = B - 1; k >= 0;) {
            int seen = state[k];
            if (seen == 0)
                continue;
            __threadfence();
            if (seen == 2) {
                sum += prefix[k];
                break;
            }
            sum += value[k--];
        }
        prefix[B] = sum + s[63];
        __threadfence();
        state[B] = 2;
        before = sum;
    }
    __syncthreads();
    out[I] = s[T] + before;
}
KERNEL histogram_private(ARGS) { // a copy a warp, then merged
    __shared__ int h[2][16];
    if (T < 32)
        h[T / 16][T % 16] = 0;
    __syncthreads();
    atomicAdd(&h[T / 32][in[I] & 15], 1);
    __syncthreads();
    if (T < 16)
        atomicAdd(&both[T], h[0][T] + h[1][T]);
    out[I] = 0;
}
KERNEL histogram_global(ARGS) {
    atomicAdd(&both[in[I] & 15], 1);
    out[I] = 0;
}
KERNEL transpose_padded(ARGS) { // a block turns a tile of 16 x 4
    __shared__ int tile[4][17];
    tile[T / 16][T % 16] = in[I];
    __syncthreads();
    out[I] = tile[T % 4][T / 4];
}
KERNEL product_tiled(ARGS) { // C = A A for a 16 x 16 matrix; a block makes four rows
    __shared__ int a[4][16], b[4][16];
    int row = T / 16, column = T % 16, sum = 0;
    for (int k = 0; k < 16; k += 4) {
        if (column < 4)
            a[row][column] = in[(B * 4 + row) * 16 + k + column];
        b[row][column] = in[(k + row) * 16 + column];
        __syncthreads();
        for (int j = 0; j < 4; j++)
            sum += a[row][j] * b[j][column];
        __syncthreads();
    }
    out[I] = sum;
}
KERNEL product_double_buffer(ARGS) { // the same, loading the next tile while this one is used
    __shared__ int b[2][4][16];
    int row = T / 16, column = T % 16, sum = 0;
    b[0][row][column] = in[T];
    for (int k = 0; k < 4; k++) {
        __syncthreads();
        if (k < 3)
            b[(k + 1) & 1][row][column] = in[(k + 1) * 64 + T];
        for (int j = 0; j < 4; j++)
            sum += in[(B * 4 + row) * 16 + k * 4 + j] * b[k & 1][j][column];
    }
    out[I] = sum;
}
KERNEL stencil_2d(ARGS) { // five points on 16 x 16, a halo of one row each side
    __shared__ int s[6][16];
    int row = T / 16, x = T % 16, y = B * 4 + row;
    s[row + 1][x] = in[I];
    if (row == 0)
        s[0][x] = y > 0 ? in[I - 16] : 0;
    if (row == 3)
        s[5][x] = y < 15 ? in[I + 16] : 0;
    __syncthreads();
    out[I] = s[row][x] + s[row + 2][x] + s[row + 1][x] + (x > 0 ? s[row + 1][x - 1] : 0) +
             (x < 15 ? s[row + 1][x + 1] : 0);
}
KERNEL stencil_persistent(ARGS) { // four sweeps, a flag a block and sweep instead of launches
    int *now = both, *flags = both + 192;
    int b = B, blocks = (int)gridDim.x;
    if (T < 32)
        now[b * 32 + T] = in[b * 32 + T];
    for (int sweep = 0; sweep < 3; sweep++) {
        __threadfence();
        __syncthreads();
        if (T == 0) {
            atomicAdd(&flags[0], 1);
            while (atomicAdd(&flags[0], 0) < blocks * (2 * sweep + 1))
                ;
        }
        __syncthreads();
        __threadfence();
        int at = b * 32 + T, v = 0;
        if (T < 32)
            v = (at > 0 ? now[at - 1] : 0) + now[at] + (at < blocks * 32 - 1 ? now[at + 1] : 0);
        __threadfence();
        __syncthreads();
        if (T == 0) {
            atomicAdd(&flags[0], 1);
            while (atomicAdd(&flags[0], 0) < blocks * (2 * sweep + 2))
                ;
        }
        __syncthreads();
        __threadfence();
        if (T < 32)
            now[at] = v;
    }
    out[I] = T < 32 ? now[b * 32 + T] : 0;
}
KERNEL warp_bitonic(ARGS) { // each warp sorts its 32, by shuffles
    int v = in[I], lane = T % 32;
    for (int k = 2; k <= 32; k *= 2)
        for (int j = k / 2; j > 0; j /= 2) {
            int u = __shfl_xor_sync(ALL, v, j);
            bool up = (lane & k) == 0 || k == 32, low = (lane & j) == 0;
            v = (low == up) == (u < v) ? u : v;
        }
    out[I] = v;
}
KERNEL block_bitonic(ARGS) { // each block sorts its 64, in shared memory
    __shared__ int s[64];
    s[T] = in[I];
    for (int k = 2; k <= 64; k *= 2)
        for (int j = k / 2; j > 0; j /= 2) {
            __syncthreads();
            int other = T ^ j;
            if (other > T && (s[T] > s[other]) == ((T & k) == 0)) {
                int t = s[T];
                s[T] = s[other];
                s[other] = t;
            }
        }
    __syncthreads();
    out[I] = s[T];
}
KERNEL radix_pass(ARGS) { // stable by the lowest bit: zeros first, in each block
    __shared__ int zeros[2];
    int v = in[I], lane = T % 32, warp = T / 32;
    unsigned ones = __ballot_sync(ALL, v & 1);
    if (lane == 0)
        zeros[warp] = 32 - __popc(ones);
    __syncthreads();
    int before = __popc(ones & ((1u << lane) - 1));
    int all_zeros = zeros[0] + zeros[1];
    int zeros_before = lane - before + (warp ? zeros[0] : 0);
    int to = v & 1 ? all_zeros + before + (warp ? 32 - zeros[0] : 0) : zeros_before;
    out[B * 64 + to] = v;
}
KERNEL spmv_csr(ARGS) { // row r has r % 5 entries, column (r + 7 k) % n, value k + 1
    int r = I, sum = 0;
    for (int k = 0; k < r % 5; k++)
        sum += (k + 1) * in[(r + 7 * k) % n];
    out[I] = sum;
}
KERNEL spmv_ell(ARGS) { // four entries a row, padded with column -1
    int sum = 0;
    for (int k = 0; k < 4; k++) {
        int column = k < I % 5 ? (I + 3 * k) % n : -1;
        if (column >= 0)
            sum += (k + 1) * in[column];
    }
    out[I] = sum;
}
KERNEL spmv_coo(ARGS) { // one thread an entry, sums by atomics
    atomicAdd(&both[(I * 5) % 64], in[I] * 2);
    out[I] = 0;
}
KERNEL softmax(ARGS) { // a warp a row of 32
    float x = (float)in[I] * 0.0625f, most = x;
    for (int k = 16; k > 0; k /= 2)
        most = fmaxf(most, __shfl_xor_sync(ALL, most, k));
    float e = expf(x - most), sum = e;
    for (int k = 16; k > 0; k /= 2)
        sum += __shfl_xor_sync(ALL, sum, k);
    put(&out[I], e / sum);
}
KERNEL layer_norm(ARGS) { // a block a row of 64
    __shared__ float s[2];
    float x = (float)in[I], sum = x;
    for (int k = 16; k > 0; k /= 2)
        sum += __shfl_xor_sync(ALL, sum, k);
    if (T % 32 == 0)
        s[T / 32] = sum;
    __syncthreads();
    float mean = (s[0] + s[1]) / 64.0f, d = x - mean, square = d * d;
    __syncthreads();
    for (int k = 16; k > 0; k /= 2)
        square += __shfl_xor_sync(ALL, square, k);
    if (T % 32 == 0)
        s[T / 32] = square;
    __syncthreads();
    put(&out[I], d * rsqrtf((s[0] + s[1]) / 64.0f + 0.00001f));
}
KERNEL lstm_cell(ARGS) {
    float x = (float)in[I] * 0.01f, c = (float)in[(I + 1) % n] * 0.02f;
    float i = 1.0f / (1.0f + expf(-x)), f = 1.0f / (1.0f + expf(-(x + 0.5f)));
    float g = tanhf(x - 0.25f), o = 1.0f / (1.0f + expf(-(0.5f - x)));
    put(&out[I], o * tanhf(f * c + i * g));
}
KERNEL fft_butterflies(ARGS) { // Walsh-Hadamard over 64: the butterflies of an FFT, exactly
    __shared__ int s[64];
    s[T] = in[I];
    for (int k = 1; k < 64; k *= 2) {
        __syncthreads();
        int a = s[T & ~k], b = s[T | k];
        __syncthreads();
        s[T] = T & k ? a - b : a + b;
    }
    out[I] = s[T];
}
KERNEL convolution(ARGS) { // 1-D, seven taps, edges clamped
    int sum = 0;
    for (int k = -3; k <= 3; k++) {
        int at = I + k < 0 ? 0 : I + k >= n ? n - 1 : I + k;
        sum += (4 - (k < 0 ? -k : k)) * in[at];
    }
    out[I] = sum;
}
KERNEL all_reduce_flags(ARGS) { // a block is a rank: publishes, waits for all, sums
    volatile int *flag = both;
    int *data = both + 16;
    int ranks = (int)gridDim.x;
    if (T < 16)
        data[B * 16 + T] = in[B * 64 + T];
    __threadfence();
    __syncthreads();
    if (T == 0)
        flag[B] = 1;
    if (T < ranks)
        while (flag[T] == 0)
            ;
    __threadfence();
    __syncthreads();
    int sum = 0;
    for (int r = 0; r < ranks; r++)
        sum += data[r * 16 + T % 16];
    out[I] = sum;
}
KERNEL grid_stride(ARGS) { // half the blocks' worth of threads do all
    int step = 32 * (int)gridDim.x;
    if (T < 32)
        for (int k = B * 32 + T; k < n; k += step)
            out[k] = in[k] * 3 + 1;
}
KERNEL ticket_lock(ARGS) { // fair lock, one holder a warp at a time
    if (T % 32 == 0) {
        int mine = atomicAdd(&both[0], 1);
        while (atomicAdd(&both[1], 0) != mine)
            ;
        __threadfence();
        both[2] += in[I];
        __threadfence();
        atomicAdd(&both[1], 1);
    }
    out[I] = 0;
}
KERNEL wide_atomics(ARGS) { // 64 bits: sum, maximum
    unsigned long long *wide = (unsigned long long *)both;
    atomicAdd(&wide[0], (unsigned long long)in[I] << 32);
    unsigned long long old, mine = (unsigned long long)in[I] << 20;
    __asm__ volatile("atom.max.u64 %0, [%1], %2;" : "=l"(old) : "l"(&wide[1]), "l"(mine) : "memory");
    out[I] = 0;
}
KERNEL packed_bytes(ARGS) { // four bytes at a time: absolute differences, permutations, dot
    unsigned a = (unsigned)in[I] * 0x01010101u, b = (unsigned)in[(I + 1) % n] * 0x01010101u;
    unsigned sum = 0;
    for (int k = 0; k < 4; k++) {
        int x = (int)(a >> 8 * k & 255), y = (int)(b >> 8 * k & 255);
        sum += (unsigned)(x > y ? x - y : y - x);
    }
    out[I] = (int)(sum + (__byte_perm(a, b, 0x5140) & 255));
}
KERNEL half_math(ARGS) { // sums of small integers are exact in 11 bits
    _Float16 x = (_Float16)(float)in[I], y = (_Float16)(float)in[(I + 3) % n];
    _Float16 z = x * (_Float16)2.0f + y;
    put(&out[I], (float)z);
}
KERNEL early_exit_loop(ARGS) { // threads leave a loop with barriers one after another
    __shared__ int s[64];
    s[T] = in[I];
    __syncthreads();
    int v = 0;
    for (int k = 0; k < 64; k += 8) {
        v += s[k];
        if (T < k) {
            out[I] = v;
            return;
        }
        __syncthreads();
    }
    out[I] = v;
}
KERNEL bytes_as_flags(ARGS) { // a byte a thread says that its word is there
    __shared__ unsigned char there[64];
    __shared__ int s[64];
    there[T] = 0;
    __syncthreads();
    if (in[I] & 1) {
        s[T] = in[I];
        there[T] = 1;
    }
    __syncthreads();
    out[I] = there[63 - T] ? s[63 - T] : -1;
}
struct pair {
    int x, y;
};
static __device__ __noinline__ pair turned(pair p) { return pair{p.y, p.x + 1}; }
KERNEL struct_values(ARGS) { // a struct goes by value and comes back
    pair p = turned(pair{in[I], I});
    out[I] = p.x * 1000 + p.y;
}
static __device__ __noinline__ int ackermann(int m, int k) {
    return m == 0 ? k + 1 : ackermann(m - 1, k == 0 ? 1 : ackermann(m, k - 1));
}
KERNEL deep_recursion(ARGS) { out[I] = ackermann(in[I] & 1, in[I] & 15); }
KERNEL local_stack(ARGS) { // an explicit stack in local memory: sums a tree of n = in & 15
    int stack[16], top = 0, sum = 0;
    stack[top++] = (in[I] & 15) + 1;
    while (top) {
        int k = stack[--top];
        sum += k;
        if (k > 1) {
            stack[top++] = k / 2;
            if (k > 2)
                stack[top++] = (k - 1) / 2;
        }
    }
    out[I] = sum;
}
KERNEL match_groups(ARGS) { // lanes of a warp that hold the same value elect one
    unsigned same;
    __asm__ volatile("match.any.sync.b32 %0, %1, -1;" : "=r"(same) : "r"(in[I] & 7));
    out[I] = __popc(same) * 32 + __ffs((int)same) - 1;
}
KERNEL reduce_min_max(ARGS) {
    int least = __nvvm_redux_sync_min(in[I], -1), most = __nvvm_redux_sync_max(in[I], -1);
    out[I] = least * 1000 + most;
}
KERNEL compare_and_swap_float_sum(ARGS) { // an atomic that the hardware has not
    int old = atomicAdd(&both[0], 0);
    for (;;) {
        int sum = __float_as_int(__int_as_float(old) + (float)in[I]);
        int seen = atomicCAS(&both[0], old, sum);
        if (seen == old)
            break;
        old = seen;
    }
    out[I] = 0;
}
