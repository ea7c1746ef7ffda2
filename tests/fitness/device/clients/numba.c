/* The calls of Numba's driver layer, in its order: each name looked up at its first call, with _v2
 * behind it if there is such a one; the primary context; texts that LLVM made, with logs, and once
 * more through the linker; a launch between events in a stream.
 *
 *   numba kernels.ptx */
#include "tests/fitness/device/clients/client.h"

#include <dlfcn.h>

#define N 700
#define TEXT_BYTES 2000

static void *library;

static void *find(const char *name) {
    char longer[80];
    (void)snprintf(longer, sizeof longer, "%s_v2", name);
    void *found = dlsym(library, longer);
    if (found == NULL)
        found = dlsym(library, name);
    MUST(found != NULL, name);
    return found;
}

/* Calls the newest ABI of a name with the arguments of `type`, which is one of driver.def. */
#define CALL(type, name, ...) CHECK(((__typeof__(type) *)find(#name))(__VA_ARGS__))

/* It asks before each piece of work which context is current, by the ABI of one argument: what a
 * second one holds is chance. */
static void look_at_context(CUcontext want) {
    CUcontext current = NULL;
    CUdevice device = -1;
    CALL(cuCtxGetCurrent, cuCtxGetCurrent, &current);
    MUST(current == want, "another context is current");
    CALL(cuCtxGetDevice_v2, cuCtxGetDevice, &device, (CUcontext)(void *)&device);
    MUST(device == 0, "another device is current");
}

static CUcontext start(void) {
    CUcontext context = NULL;
    CUdevice device = -1;
    int version = 0, count = 0, major = 0, minor = 0;
    char name[128];
    CUuuid uuid;
    size_t left = 0, total = 0;
    CALL(cuInit, cuInit, 0);
    CALL(cuDriverGetVersion, cuDriverGetVersion, &version);
    CALL(cuDeviceGetCount, cuDeviceGetCount, &count);
    CALL(cuCtxGetCurrent, cuCtxGetCurrent, &context);
    MUST(context == NULL && count > 0, "a context before there is one");
    CALL(cuDeviceGet, cuDeviceGet, &device, 0);
    CALL(cuDeviceGetAttribute, cuDeviceGetAttribute, &major, 75, device);
    CALL(cuDeviceGetAttribute, cuDeviceGetAttribute, &minor, 76, device);
    CALL(cuDeviceGetName, cuDeviceGetName, name, sizeof name, device);
    CALL(cuDeviceGetUuid_v2, cuDeviceGetUuid, &uuid, device);
    CALL(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, &context, device);
    CALL(cuCtxPushCurrent_v2, cuCtxPushCurrent, context);
    CALL(cuMemGetInfo_v2, cuMemGetInfo, &left, &total);
    printf("%s: %d.%d, driver %d\n", name, major, minor, version);
    return context;
}

static CUfunction load(const void *image) {
    CUmodule module = NULL;
    CUfunction f = NULL;
    char info[TEXT_BYTES] = "", error[TEXT_BYTES] = "";
    int value = 0;
    CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_LOG_VERBOSE};
    void *values[] = {info, (void *)sizeof info, error, (void *)sizeof error, (void *)1};
    CALL(cuModuleLoadDataEx, cuModuleLoadDataEx, &module, image, 5, options, values);
    MUST(strstr(info, "vector_add") != NULL, "the info log is empty");
    CALL(cuModuleGetFunction, cuModuleGetFunction, &f, module, "vector_add");
    for (int i = 0; i < 5; i++)
        CALL(cuFuncGetAttribute, cuFuncGetAttribute, &value, i, f);
    return f;
}

static CUfunction link(char *text, size_t bytes) {
    CUlinkState state = NULL;
    void *image = NULL;
    size_t size = 0;
    char info[TEXT_BYTES], error[TEXT_BYTES];
    CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {info, (void *)sizeof info, error, (void *)sizeof error};
    CALL(cuLinkCreate_v2, cuLinkCreate, 4, options, values, &state);
    CALL(cuLinkAddData_v2, cuLinkAddData, state, CU_JIT_INPUT_PTX, text, bytes + 1, "a.ptx", 0,
         NULL, NULL);
    CALL(cuLinkComplete, cuLinkComplete, state, &image, &size);
    MUST(size > 0 && (size_t)values[1] < sizeof info, "the linker's logs have no length");
    CUfunction f = load(image);
    CALL(cuLinkDestroy, cuLinkDestroy, state);
    return f;
}

static void launch(CUcontext context, CUfunction add) {
    static float a[N], b[N], c[N];
    CUdeviceptr d[3];
    CUstream stream = NULL;
    CUevent begin = NULL, end = NULL;
    float ms = 0;
    int n = N;
    void *args[] = {&d[0], &d[1], &d[2], &n};
    fill(a, N, 1);
    fill(b, N, 2);
    for (int i = 0; i < 3; i++) {
        look_at_context(context);
        CALL(cuMemAlloc_v2, cuMemAlloc, &d[i], sizeof a);
        CALL(cuMemcpyHtoD_v2, cuMemcpyHtoD, d[i], i == 0 ? a : b, sizeof a);
    }
    CALL(cuStreamCreate, cuStreamCreate, &stream, 0);
    CALL(cuEventCreate, cuEventCreate, &begin, 0);
    CALL(cuEventCreate, cuEventCreate, &end, 0);
    CALL(cuEventRecord, cuEventRecord, begin, stream);
    CALL(cuLaunchKernel, cuLaunchKernel, add, (N + 127) / 128, 1, 1, 128, 1, 1, 0, stream, args,
         NULL);
    CALL(cuEventRecord, cuEventRecord, end, stream);
    CALL(cuStreamSynchronize, cuStreamSynchronize, stream);
    CALL(cuEventElapsedTime_v2, cuEventElapsedTime, &ms, begin, end);
    look_at_context(context);
    CALL(cuMemcpyDtoH_v2, cuMemcpyDtoH, c, d[2], sizeof c);
    check_sums(a, b, c, N);
    MUST(ms > 0, "a launch takes no time");
    for (int i = 0; i < 3; i++)
        CALL(cuMemFree_v2, cuMemFree, d[i]);
}

int main(int argc, char **argv) {
    size_t bytes = 0;
    char *text = read_text(argc > 1 ? argv[1] : "kernels.ptx", &bytes);
    library = dlopen("libcuda.so.1", RTLD_NOW);
    MUST(library != NULL, "there is no libcuda.so.1");
    CUcontext context = start();
    launch(context, load(text));
    launch(context, link(text, bytes));
    CALL(cuCtxSynchronize_v2, cuCtxSynchronize, (CUcontext)(void *)text); /* chance again */
    CALL(cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease, 0);
    free(text);
    printf("Numba's order of calls: right\n");
    return 0;
}
