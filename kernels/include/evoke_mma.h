/* Products of 16-bit tiles on tensor cores (PTX ISA, mma.sync and ldmatrix; bfloat16 from sm_80 on,
 * halves from sm_75 on), for starts that lay their tiles out themselves. A warp has 32 lanes,
 * g = lane / 4, t = lane % 4.
 *
 * sum += A B. A is 16 x 16: a[0] is elements (g, 2t) and (g, 2t + 1), a[1] those of row g + 8; a[2]
 * and a[3] are eight columns further. B is 16 x 8: b0 is elements (2t, g) and (2t + 1, g), b1 eight
 * rows further. The sum's elements are (g, 2t), (g, 2t + 1), then those of row g + 8. */
#ifndef KERNELS_INCLUDE_EVOKE_MMA_H
#define KERNELS_INCLUDE_EVOKE_MMA_H

#if __CUDA_ARCH__ >= 750
static __device__ __forceinline__ void mma_f16(float (&sum)[4], const unsigned int (&a)[4],
                                               unsigned int b0, unsigned int b1) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(b0));
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[2]), "r"(a[3]), "r"(b1));
#endif
}

/* The lower halves of two pairs, and the upper ones. */
static __device__ __forceinline__ unsigned int low_halves(unsigned int first, unsigned int second) {
    return __byte_perm(first, second, 0x5410);
}

static __device__ __forceinline__ unsigned int high_halves(unsigned int first,
                                                           unsigned int second) {
    return __byte_perm(first, second, 0x7632);
}
#endif

#if __CUDA_ARCH__ >= 800
static __device__ __forceinline__ void mma_bf16(float (&sum)[4], const unsigned int (&a)[4],
                                                unsigned int b0, unsigned int b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Four 8 x 8 matrices from shared memory, transposed: `row` is where row lane % 8 of matrix
 * lane / 8 begins, a multiple of 16 bytes. to[i] is elements (2t, g) and (2t + 1, g) of matrix i.
 */
static __device__ __forceinline__ void load_transposed(unsigned int (&to)[4], const void *row) {
#ifdef __NVCC__
    const unsigned int at = (unsigned int)__cvta_generic_to_shared(row);
#else
    const unsigned int at =
        (unsigned int)(size_t)(const __attribute__((address_space(3))) void *)row;
#endif
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
}
#endif

#endif
