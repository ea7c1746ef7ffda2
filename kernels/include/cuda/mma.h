/* Stands in for NVIDIA's mma.h, which Evoke does not have. */
#error                                                                                             \
    "<mma.h> is not supported: Evoke has no nvcuda::wmma; use the wmma instructions of the PTX ISA by asm"
