/* Numbers of a GPU description that the driver knows. */
#include "fitness/device/cuda/cuda.h"

/* The key is the attribute's value times `scale`. */
static const struct {
    gpu_key key;
    cu_device_attribute attribute;
    double scale;
} NUMBERS[] = {
    {GPU_SM_COUNT, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1},
    {GPU_BOOST_MHZ, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1e-3},
    {GPU_MAX_WARPS, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1.0 / 32},
    {GPU_MAX_BLOCKS, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 1},
    {GPU_MAX_THREADS, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1},
    {GPU_SHARED_SM, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 1},
    {GPU_SHARED_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 1},
    {GPU_SHARED_RESERVED, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1},
    {GPU_REGISTERS_SM, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 1},
    {GPU_L2_SIZE, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 1},
};

static bool attribute_of(const cuda_device *c, cu_device_attribute which, double *out) {
    int value = 0;
    if (c->cu.cuDeviceGetAttribute(&value, (int)which, c->ordinal) != CUDA_SUCCESS || value <= 0)
        return false;
    *out = value;
    return true;
}

/* Two transfers a cycle of a bus so many bits wide; the attribute is in kHz. */
static bool dram_peak(const cuda_device *c, double *gbs) {
    double khz = 0, bits = 0;
    if (!attribute_of(c, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, &khz) ||
        !attribute_of(c, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &bits))
        return false;
    *gbs = 2 * khz * 1e3 * bits / 8 * 1e-9;
    return true;
}

bool cuda_number(const device *d, gpu_key key, double *out) {
    const cuda_device *c = cuda_of_const(d);
    if (key == GPU_DRAM_PEAK)
        return dram_peak(c, out);
    for (size_t i = 0; i < sizeof NUMBERS / sizeof NUMBERS[0]; i++) {
        if (NUMBERS[i].key == key && attribute_of(c, NUMBERS[i].attribute, out)) {
            *out *= NUMBERS[i].scale;
            return true;
        }
    }
    return false;
}
