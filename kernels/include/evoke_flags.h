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

#endif
