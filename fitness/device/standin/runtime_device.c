/* What a device is, in the layouts of cudaDeviceProp.
 *
 * Source: the headers of CUDA 12 (driver_types.h, as cudaGetDeviceProperties_v2 fills it) and of
 * CUDA 13, which left the clocks and what else a question for an attribute answers out. */
#include "fitness/device/standin/runtime.h"

#include <string.h>

#if RUNTIME_VERSION == 12
#define ONLY_12(x) x
#define PROPERTIES cudaGetDeviceProperties_v2
#else
#define ONLY_12(x)
#define PROPERTIES cudaGetDeviceProperties
#endif

typedef struct properties {
    char name[256];
    CUuuid uuid;
    char luid[8];
    unsigned luid_mask;
    size_t total_global, shared_block;
    int registers_block, warp;
    size_t pitch;
    int threads_block, threads_dim[3], grid[3];
    ONLY_12(int clock_khz;)
    size_t total_const;
    int major, minor;
    size_t texture_alignment, texture_pitch_alignment;
    ONLY_12(int overlap;)
    int sms;
    ONLY_12(int timeout;)
    int integrated, maps_host;
    ONLY_12(int compute_mode;)
    int texture_1d, texture_1d_mipmap;
    ONLY_12(int texture_1d_linear;)
    int textures[2 + 2 + 3 + 2 + 3 + 3 + 1 + 2 + 3 + 2];
    int surfaces[1 + 2 + 3 + 2 + 3 + 1 + 2];
    size_t surface_alignment;
    int concurrent, ecc, bus, slot, domain, tcc, engines, unified;
    ONLY_12(int memory_khz;)
    int bus_width, l2, l2_persisting, threads_sm, priorities, l1_global, l1_local;
    size_t shared_sm;
    int registers_sm, managed, multi_board, board_group, host_atomics;
    ONLY_12(int single_to_double;)
    int pageable, concurrent_managed, preemption, registered, cooperative;
    ONLY_12(int cooperative_multi;)
    size_t shared_optin;
    int pageable_tables, direct_managed, blocks_sm, window;
    size_t shared_reserved;
    int host_register, sparse, host_register_readonly, semaphores, pools, rdma;
    unsigned rdma_flush;
    int rdma_order;
    unsigned pool_handles;
    int deferred, ipc_events, clusters;
} properties;

#if RUNTIME_VERSION == 13
_Static_assert(offsetof(properties, sms) == 384, "as in the header of 13.0");
_Static_assert(offsetof(properties, surface_alignment) == 552, "as in the header of 13.0");
_Static_assert(offsetof(properties, shared_sm) == 624, "as in the header of 13.0");
_Static_assert(offsetof(properties, shared_reserved) == 696, "as in the header of 13.0");
_Static_assert(offsetof(properties, clusters) == 748, "as in the header of 13.0");
#endif

RT_EXPORT rt_error PROPERTIES(properties *out, int device);

static int attribute(CUdevice_attribute which, int device) {
    int value = 0;
    return cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

#define GET(name) attribute(CU_DEVICE_ATTRIBUTE_##name, device)

static rt_error fill(properties *p, int device) {
    rt_error result = cuDeviceGetName(p->name, sizeof p->name, device);
    if (result == CUDA_SUCCESS)
        result = cuDeviceGetUuid_v2(&p->uuid, device);
    if (result == CUDA_SUCCESS)
        result = cuDeviceTotalMem_v2(&p->total_global, device);
    p->shared_block = (size_t)GET(MAX_SHARED_MEMORY_PER_BLOCK);
    p->registers_block = GET(MAX_REGISTERS_PER_BLOCK);
    p->warp = GET(WARP_SIZE);
    p->pitch = (size_t)GET(MAX_PITCH);
    p->threads_block = GET(MAX_THREADS_PER_BLOCK);
    for (int i = 0; i < 3; i++) {
        p->threads_dim[i] =
            attribute((CUdevice_attribute)(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i), device);
        p->grid[i] =
            attribute((CUdevice_attribute)(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i), device);
    }
    ONLY_12(p->clock_khz = GET(CLOCK_RATE);)
    ONLY_12(p->memory_khz = GET(MEMORY_CLOCK_RATE);)
    p->total_const = (size_t)GET(TOTAL_CONSTANT_MEMORY);
    p->major = GET(COMPUTE_CAPABILITY_MAJOR);
    p->minor = GET(COMPUTE_CAPABILITY_MINOR);
    p->texture_alignment = (size_t)GET(TEXTURE_ALIGNMENT);
    p->sms = GET(MULTIPROCESSOR_COUNT);
    p->maps_host = GET(CAN_MAP_HOST_MEMORY);
    p->concurrent = GET(CONCURRENT_KERNELS);
    p->unified = GET(UNIFIED_ADDRESSING);
    p->managed = GET(MANAGED_MEMORY);
    p->cooperative = GET(COOPERATIVE_LAUNCH);
    p->engines = GET(ASYNC_ENGINE_COUNT);
    p->bus = GET(PCI_BUS_ID);
    p->bus_width = GET(GLOBAL_MEMORY_BUS_WIDTH);
    p->l2 = GET(L2_CACHE_SIZE);
    p->threads_sm = GET(MAX_THREADS_PER_MULTIPROCESSOR);
    p->shared_sm = (size_t)GET(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    p->registers_sm = GET(MAX_REGISTERS_PER_MULTIPROCESSOR);
    p->shared_optin = (size_t)GET(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    p->blocks_sm = GET(MAX_BLOCKS_PER_MULTIPROCESSOR);
    p->shared_reserved = (size_t)GET(RESERVED_SHARED_MEMORY_PER_BLOCK);
    return result;
}

rt_error PROPERTIES(properties *out, int device) {
    rt_error result = out != NULL ? rt_ready() : CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return rt_keep(result);
    memset(out, 0, sizeof *out);
    return rt_keep(fill(out, device));
}
