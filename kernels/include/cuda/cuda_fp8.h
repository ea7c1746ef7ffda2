/* Stands in for NVIDIA's cuda_fp8.h, which Evoke does not have. */
#error "<cuda_fp8.h> is not supported: Evoke has no 8-bit floating-point types for CUDA C"
