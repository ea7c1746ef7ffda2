/* Stands in for NVIDIA's curand_kernel.h, which Evoke does not have. */
#error "<curand_kernel.h> is not supported: Evoke has no device-side generators of random numbers"
