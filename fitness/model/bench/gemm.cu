// One configuration of the product of fitness/model/silicon/gemm.csv: C = A B + C with A[k m + M],
// B[k n + N] and C[n m + M], in single precision. The columns of that file are the macros. A block
// makes a tile of MWG x NWG results from tiles of KWG rows of A and B; a thread makes MWI x NWI of
// them, in vectors of VWM along m and of VWN along n.
#include "evoke_cuda.h"

#define MWI (MWG / MDIMC)
#define NWI (NWG / NDIMC)
#define MVECTORS (MWI / VWM) /* of a thread */
#define NVECTORS (NWI / VWN)
#define THREADS (MDIMC * NDIMC)

/* The threads that load a tile together: MDIMA vectors wide. */
#define KDIMA (THREADS / MDIMA)
#define KDIMB (THREADS / NDIMB)
#define MWA (MWG / MDIMA / VWM) /* vectors, and rows of k, that a thread loads */
#define NWB (NWG / NDIMB / VWN)
#define KWA (KWG / KDIMA)
#define KWB (KWG / KDIMB)

/* Which vector of its tile is a thread's i-th: its vectors are neighbours, or strided. */
#define PLACE(strided, i, thread, threads, count)                                                  \
    ((strided) ? (thread) + (i) * (threads) : (i) + (thread) * (count))

/* A vector of `width` floats. One of eight is a struct of eight floats to nvcc (CLBlast's
 * opencl_to_cuda.h), and so eight accesses of four bytes. */
template <int width> static __device__ __forceinline__ void load(float *to, const float *from) {
    if (width == 1) {
        to[0] = *from;
    } else if (width == 2) {
        float2 v = *(const float2 *)from;
        to[0] = v.x, to[1] = v.y;
    } else if (width == 4) {
        float4 v = *(const float4 *)from;
        to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
    } else {
#pragma unroll
        for (int i = 0; i < width; i++)
            to[i] = from[i];
    }
}

template <int width> static __device__ __forceinline__ void store(float *to, const float *from) {
    if (width == 1) {
        *to = from[0];
    } else if (width == 2) {
        *(float2 *)to = make_float2(from[0], from[1]);
    } else if (width == 4) {
        *(float4 *)to = make_float4(from[0], from[1], from[2], from[3]);
    } else {
#pragma unroll
        for (int i = 0; i < width; i++)
            to[i] = from[i];
    }
}

template <int width> static __device__ __forceinline__ void copy(float *to, const float *from) {
    float v[width];
    load<width>(v, from);
    store<width>(to, v);
}

extern "C" __global__ void gemm(float *__restrict__ c, const float *__restrict__ a,
                                const float *__restrict__ b, int m, int n, int k) {
#if SA
    __shared__ __align__(16) float a_tile[KWG * MWG];
#endif
#if SB
    __shared__ __align__(16) float b_tile[KWG * NWG];
#endif
    int tx = threadIdx.x, ty = threadIdx.y;
    int left = blockIdx.x * MWG, top = blockIdx.y * NWG;
#if SA || SB
    int thread = tx + ty * MDIMC;
#endif
    float sum[NWI][MWI];
#pragma unroll
    for (int j = 0; j < NWI; j++) {
#pragma unroll
        for (int i = 0; i < MWI; i++)
            sum[j][i] = 0.0f;
    }

    for (int first = 0; first < k; first += KWG) {
#if SA
        int ax = thread % MDIMA, ay = thread / MDIMA;
#pragma unroll
        for (int i = 0; i < MWA; i++) {
#pragma unroll
            for (int r = 0; r < KWA; r++) {
                int x = PLACE(STRM, i, ax, MDIMA, MWA) * VWM, row = r + ay * KWA;
                copy<VWM>(&a_tile[row * MWG + x], &a[(first + row) * m + left + x]);
            }
        }
#endif
#if SB
        int bx = thread % NDIMB, by = thread / NDIMB;
#pragma unroll
        for (int i = 0; i < NWB; i++) {
#pragma unroll
            for (int r = 0; r < KWB; r++) {
                int x = PLACE(STRN, i, bx, NDIMB, NWB) * VWN, row = r + by * KWB;
                copy<VWN>(&b_tile[row * NWG + x], &b[(first + row) * n + top + x]);
            }
        }
#endif
#if SA || SB
        __syncthreads();
#endif
        for (int group = 0; group < KWG; group += KWI) {
#pragma unroll
            for (int in = 0; in < KWI; in++) {
                int row = group + in;
                float a_own[MWI], b_own[NWI];
#pragma unroll
                for (int i = 0; i < MVECTORS; i++) {
                    int x = PLACE(STRM, i, tx, MDIMC, MVECTORS) * VWM;
#if SA
                    load<VWM>(&a_own[i * VWM], &a_tile[row * MWG + x]);
#else
                    load<VWM>(&a_own[i * VWM], &a[(first + row) * m + left + x]);
#endif
                }
#pragma unroll
                for (int j = 0; j < NVECTORS; j++) {
                    int x = PLACE(STRN, j, ty, NDIMC, NVECTORS) * VWN;
#if SB
                    load<VWN>(&b_own[j * VWN], &b_tile[row * NWG + x]);
#else
                    load<VWN>(&b_own[j * VWN], &b[(first + row) * n + top + x]);
#endif
                }
#pragma unroll
                for (int j = 0; j < NWI; j++) {
#pragma unroll
                    for (int i = 0; i < MWI; i++)
                        sum[j][i] += a_own[i] * b_own[j];
                }
            }
        }
#if SA || SB
        __syncthreads();
#endif
    }

#pragma unroll
    for (int j = 0; j < NWI; j++) {
        int y = PLACE(STRN, j / VWN, ty, NDIMC, NVECTORS) * VWN + j % VWN;
#pragma unroll
        for (int i = 0; i < MVECTORS; i++) {
            int x = PLACE(STRM, i, tx, MDIMC, MVECTORS) * VWM;
            float *to = &c[(top + y) * m + left + x], old[VWM];
            load<VWM>(old, to);
#pragma unroll
            for (int v = 0; v < VWM; v++)
                old[v] += sum[j][i * VWM + v];
            store<VWM>(to, old);
        }
    }
}
