/* Stands in for NVIDIA's cuda_bf16.h, which Evoke does not have. */
#error                                                                                             \
    "<cuda_bf16.h> is not supported: Evoke has no bfloat16 type for CUDA C; keep the bits in an unsigned short"
