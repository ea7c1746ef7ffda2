/* For tests/kernels/test_cuda_math.c: cooperative groups and halves, y[i] of x. */
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace cg = cooperative_groups;

/* The sum of x over the eight threads of a tile. */
extern "C" __global__ void map_tile(const float *x, float *y, int n) {
    cg::thread_block block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    int i = blockIdx.x * block.size() + block.thread_rank();
    float v = i < n ? x[i] : 0.0f;
    v = cg::reduce(tile, v, cg::plus<float>());
    tile.sync();
    if (i < n)
        y[i] = v + 1000.0f * tile.thread_rank() + 100000.0f * tile.meta_group_rank();
}

/* Halves: each operation rounds once. */
extern "C" __global__ void map_half(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    half h = __float2half(x[i]), one = half(1.0f);
    half2 pair = __hfma2(__half2half2(h), __halves2half2(h, one), __float2half2_rn(0.25f));
    half sum = h + __hmul(h, h);
    y[i] = h > one ? __half2float(sum) : __low2float(pair) + __high2float(pair);
}

/* bfloat16: 2 x + 2/3, or -1/3 for x = 0. */
extern "C" __global__ void map_brain(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    __nv_bfloat16 v = __float2bfloat16(x[i]), third = __nv_bfloat16(1) / __nv_bfloat16(3.0f);
    __nv_bfloat162 two = __halves2bfloat162(v, third) * __float2bfloat162_rn(2.0f);
    v += third;
    y[i] = v > third ? __low2float(two) + __high2float(two) : __bfloat162float(-v);
}

/* What a product of bfloat16 loses: 0 unless the multiply-add is fused. */
extern "C" __global__ void map_fused(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    __nv_bfloat16 v = __float2bfloat16(x[i]), square = v * v;
    __nv_bfloat162 two = {v, v}, minus = {-square, -square};
    float one = __hfma(v, v, -square);
    y[i] = one == __high2float(__hfma2(two, two, minus)) ? one : -1.0f;
}

/* y = 2 x if shuffles of 64 bits and of halves give what the other lane has. */
extern "C" __global__ void map_shuffled(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, first = i - lane;
    auto at = [&](int k) { return k < n ? x[k] : 0.0f; };
    auto wide = [&](int k) { return at(k) * (1.0 + 1e-12); };
    auto whole = [&](int k) { return (long long)(8 * at(k)) << 40 | k; };
    const unsigned all = 0xffffffffu;
    bool ok = __shfl_xor_sync(all, wide(i), 1) == wide(i ^ 1);
    ok &= __shfl_down_sync(all, whole(i), 3, 16) == whole(lane % 16 < 13 ? i + 3 : i);
    ok &= __shfl_sync(all, (unsigned long long)whole(i), 5) == (unsigned long long)whole(first + 5);
    ok &= __shfl_sync(all, (size_t)whole(i), 6) == (size_t)whole(first + 6);
    ok &= __shfl_sync(all, -(long)whole(i), 7) == -(long)whole(first + 7);
    half2 two = __shfl_up_sync(all, __floats2half2_rn(at(i), at(i) + 0.25f), 2);
    half one = __shfl_xor_sync(all, __float2half(at(i)), 16);
    int from = lane < 2 ? i : i - 2;
    ok &= __low2float(two) == at(from) && __high2float(two) == at(from) + 0.25f;
    ok &= __half2float(one) == at(i ^ 16);
    if (i < n)
        y[i] = ok ? 2 * x[i] : -1.0f;
}

/* y = 2 x, each element loaded and stored with each cache policy and in each size. */
extern "C" __global__ void map_cached(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, quad = i / 4 * 4;
    if (i >= n)
        return;
    float v = __ldcg(x + i) + __ldcs(x + i) - __ldlu(x + i) + __ldcv(x + i);
    if (i % 4 == 0) {
        float4 all = __ldcg((const float4 *)(x + quad));
        double two = __ldcs((const double *)(x + quad));
        unsigned short half = __ldcv((const unsigned short *)(x + quad) + 1);
        unsigned char byte = __ldcg((const unsigned char *)(x + quad) + 3);
        bool same = (int)(__double_as_longlong(two) >> 32) == __float_as_int(all.y) &&
                    half == __float_as_uint(all.x) >> 16 && byte == __float_as_uint(all.x) >> 24;
        __stcg((float4 *)(y + quad), float4{v, 2 * all.y, 2 * all.z, 2 * all.w});
        __stcs((double *)(y + quad),
               __hiloint2double(__float_as_int(2 * all.y), __float_as_int(v)));
        __stwt(y + quad, same ? v : -1.0f);
        __stcs((unsigned short *)(y + quad), (unsigned short)__float_as_uint(same ? v : -1.0f));
        __stcg((unsigned char *)(y + quad), (unsigned char)__float_as_uint(same ? v : -1.0f));
    }
}
