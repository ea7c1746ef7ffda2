/* Stands in for NVIDIA's cuda_pipeline.h, which Evoke does not have. */
#error                                                                                             \
    "<cuda_pipeline.h> is not supported: Evoke has no __pipeline_memcpy_async; use cp.async by asm"
