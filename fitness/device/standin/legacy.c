/* Launches as before CUDA 4: the block, the shared memory and the arguments are set one by one, and
 * the function keeps them. */
#include "fitness/device/standin/standin.h"

#include <string.h>

CUresult sd_cuFuncSetBlockShape(CUfunction function, int x, int y, int z) {
    sd_function *f = sd_find(function, SD_FUNCTION);
    if (f == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (x <= 0 || y <= 0 || z <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    f->kept.block[0] = (unsigned)x;
    f->kept.block[1] = (unsigned)y;
    f->kept.block[2] = (unsigned)z;
    return CUDA_SUCCESS;
}

CUresult sd_cuFuncSetSharedSize(CUfunction function, unsigned bytes) {
    sd_function *f = sd_find(function, SD_FUNCTION);
    if (f == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    f->kept.shared = bytes;
    return CUDA_SUCCESS;
}

CUresult sd_cuParamSetSize(CUfunction function, unsigned bytes) {
    sd_function *f = sd_find(function, SD_FUNCTION);
    if (f == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (bytes > sizeof f->kept.arguments)
        return CUDA_ERROR_INVALID_VALUE;
    f->kept.bytes = bytes;
    return CUDA_SUCCESS;
}

CUresult sd_cuParamSetv(CUfunction function, int offset, void *from, unsigned bytes) {
    sd_function *f = sd_find(function, SD_FUNCTION);
    if (f == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (from == NULL || offset < 0 || bytes > sizeof f->kept.arguments ||
        (unsigned)offset > sizeof f->kept.arguments - bytes)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(f->kept.arguments + offset, from, bytes);
    return CUDA_SUCCESS;
}

CUresult sd_cuParamSeti(CUfunction function, int offset, unsigned value) {
    return sd_cuParamSetv(function, offset, &value, sizeof value);
}

CUresult sd_cuParamSetf(CUfunction function, int offset, float value) {
    return sd_cuParamSetv(function, offset, &value, sizeof value);
}

CUresult sd_cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
    sd_function *f = sd_find(function, SD_FUNCTION);
    if (f == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (width <= 0 || height <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    size_t bytes = f->kept.bytes;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, f->kept.arguments, CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &bytes, CU_LAUNCH_PARAM_END};
    return sd_cuLaunchKernel(function, (unsigned)width, (unsigned)height, 1, f->kept.block[0],
                             f->kept.block[1], f->kept.block[2], f->kept.shared, stream, NULL,
                             extra);
}

CUresult sd_cuLaunchGrid(CUfunction function, int width, int height) {
    return sd_cuLaunchGridAsync(function, width, height, NULL);
}

CUresult sd_cuLaunch(CUfunction function) {
    return sd_cuLaunchGrid(function, 1, 1);
}
