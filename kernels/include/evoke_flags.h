/* Flags between ranks, with scope .sys: what is stored before a flag is set is there for those who
 * have read the flag (PTX ISA, Memory Consistency Model: release and acquire patterns). */
#ifndef EVOKE_FLAGS_H
#define EVOKE_FLAGS_H

static __device__ __forceinline__ void flag_set(unsigned *flag, unsigned value) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

static __device__ __forceinline__ unsigned flag_read(const unsigned *flag) {
    unsigned value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    return value;
}

/* Tells all ranks `value` of the block's piece, and waits until all have told as much. */
static __device__ __forceinline__ void meet(unsigned *flags, unsigned *const *all_flags, int ranks,
                                            int rank, unsigned value) {
    __syncthreads();
    int peer = threadIdx.x;
    if (peer < ranks) {
        __threadfence_system();
        *(volatile unsigned *)&all_flags[peer][blockIdx.x * ranks + rank] = value;
        while ((int)(*(volatile unsigned *)&flags[blockIdx.x * ranks + peer] - value) < 0)
            ;
        __threadfence_system();
    }
    __syncthreads();
}

#endif
