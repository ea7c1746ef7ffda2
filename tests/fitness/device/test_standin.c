/* The stand-in for the CUDA driver, called as programs call it: handles and their misuse, memory,
 * modules and their logs, launches, traps as sticky errors, streams, events, peers, injected
 * errors. The library comes through dlopen, each function by its row of driver.def. */
#include "tests/fitness/device/driver_rig.h"

#include <pthread.h>

static int open_driver(void **state) {
    (void)state;
    rig_open_driver("h200,a100");
    return 0;
}

/* ---- before and around cuInit ---- */

static void test_init(void **state) {
    (void)state;
    int count = 0, version = 0;
    const char *text = NULL;
    CUdeviceptr p = 0;
    IS(NOT_INITIALIZED, cu.cuDeviceGetCount(&count));
    OK(cu.cuDriverGetVersion(&version));
    assert_true(version >= 12000);
    IS(INVALID_VALUE, cu.cuInit(1));
    OK(cu.cuInit(0));
    OK(cu.cuInit(0));
    OK(cu.cuDeviceGetCount(&count));
    assert_int_equal(count, 2);
    IS(INVALID_CONTEXT, cu.cuMemAlloc_v2(&p, 16));
    OK(cu.cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
    assert_string_equal(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
    OK(cu.cuGetErrorString(CUDA_SUCCESS, &text));
    assert_string_equal(text, "no error");
    IS(INVALID_VALUE, cu.cuGetErrorName((CUresult)12345, &text));
    assert_null(text);
}

static void test_devices(void **state) {
    (void)state;
    char name[64];
    int value = 0, major = 0, minor = 0;
    size_t bytes = 0;
    CUdevice d = 7;
    IS(INVALID_DEVICE, cu.cuDeviceGet(&d, 2));
    IS(INVALID_DEVICE, cu.cuDeviceGet(&d, -1));
    OK(cu.cuDeviceGet(&d, 1));
    OK(cu.cuDeviceGetName(name, sizeof name, d));
    assert_non_null(strstr(name, "A100"));
    OK(cu.cuDeviceComputeCapability(&major, &minor, d));
    assert_int_equal(major * 10 + minor, 80);
    OK(cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, d));
    assert_int_equal(value, 108);
    OK(cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, d));
    assert_int_equal(value, 166912);
    IS(INVALID_VALUE, cu.cuDeviceGetAttribute(&value, 0, d));
    IS(INVALID_DEVICE, cu.cuDeviceGetAttribute(&value, 1, 9));
    OK(cu.cuDeviceTotalMem_v2(&bytes, 0));
    assert_true(bytes > 100000000000u);
    OK(cu.cuDeviceCanAccessPeer(&value, 0, 1));
    assert_int_equal(value, 1);
    OK(cu.cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, 0, 1));
    assert_int_equal(value, 1);
    IS(INVALID_DEVICE,
       cu.cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 1, 1));
    IS(INVALID_VALUE, cu.cuDeviceGetP2PAttribute(&value, 9, 0, 1));
    CUuuid a, b;
    OK(cu.cuDeviceGetUuid_v2(&a, 0));
    OK(cu.cuDeviceGetUuid_v2(&b, 1));
    assert_memory_not_equal(&a, &b, sizeof a);
    OK(cu.cuDeviceGetPCIBusId(name, sizeof name, 1));
    OK(cu.cuDeviceGetByPCIBusId(&d, name));
    assert_int_equal(d, 1);
}

static void test_look_up(void **state) {
    (void)state;
    void *got = NULL;
    int status = -1;
    OK(cu.cuGetProcAddress_v2("cuMemAlloc", &got, 12000, 0, &status));
    void *want = NULL;
    memcpy(&want, &cu.cuMemAlloc_v2, sizeof want);
    assert_ptr_equal(got, want);
    assert_int_equal(status, 0);
    OK(cu.cuGetProcAddress_v2("cuCtxCreate", &got, 13000, 0, NULL));
    memcpy(&want, &cu.cuCtxCreate_v4, sizeof want);
    assert_ptr_equal(got, want);
    OK(cu.cuGetProcAddress("cuCtxCreate", &got, 11000, 0));
    memcpy(&want, &cu.cuCtxCreate_v2, sizeof want);
    assert_ptr_equal(got, want);
    OK(cu.cuGetProcAddress_v2("cuNothing", &got, 13000, 0, &status));
    assert_int_equal(status, 1);
    assert_null(got);
    OK(cu.cuGetProcAddress_v2("cuLibraryLoadData", &got, 11000, 0, &status));
    assert_int_equal(status, 2);
    assert_null(got);
    IS(NOT_FOUND, cu.cuGetProcAddress("cuNothing", &got, 13000, 0));
    IS(INVALID_VALUE, cu.cuGetProcAddress_v2("cuMemAlloc", &got, 99000, 0, &status));
}

/* ---- contexts ---- */

static void test_contexts(void **state) {
    (void)state;
    CUcontext a = context_of(0), b = context_of(1), got = NULL;
    CUdevice d = -1;
    OK(cu.cuCtxGetDevice(&d));
    assert_int_equal(d, 1);
    OK(cu.cuCtxPopCurrent_v2(&got));
    assert_ptr_equal(got, b);
    OK(cu.cuCtxGetCurrent(&got));
    assert_ptr_equal(got, a);
    OK(cu.cuCtxDestroy_v2(b));
    IS(INVALID_CONTEXT, cu.cuCtxDestroy_v2(b));
    IS(INVALID_CONTEXT, cu.cuCtxPushCurrent_v2(b));
    IS(INVALID_CONTEXT, cu.cuCtxSetCurrent((CUcontext)(void *)&d));
    OK(cu.cuCtxDestroy_v2(a));
    IS(INVALID_CONTEXT, cu.cuCtxGetDevice(&d));
    OK(cu.cuCtxSetCurrent(NULL));
    int active = -1;
    unsigned flags = 0;
    OK(cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_int_equal(active, 0);
    OK(cu.cuDevicePrimaryCtxRetain(&a, 0));
    OK(cu.cuDevicePrimaryCtxRetain(&b, 0));
    assert_ptr_equal(a, b);
    OK(cu.cuDevicePrimaryCtxRelease_v2(0));
    OK(cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_int_equal(active, 1);
    OK(cu.cuDevicePrimaryCtxRelease_v2(0));
    OK(cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_int_equal(active, 0);
    IS(INVALID_CONTEXT, cu.cuDevicePrimaryCtxRelease_v2(0));
}

/* ---- memory ---- */

static void test_memory(void **state) {
    (void)state;
    CUcontext c = context_of(1);
    CUdeviceptr a = 0, b = 0, base = 0;
    size_t left = 0, total = 0, now = 0, bytes = 0;
    OK(cu.cuMemGetInfo_v2(&left, &total));
    OK(cu.cuMemAlloc_v2(&a, 1000));
    OK(cu.cuMemAlloc_v2(&b, 1000));
    OK(cu.cuMemGetInfo_v2(&now, NULL));
    assert_int_equal(left - now, 2000);
    IS(INVALID_VALUE, cu.cuMemAlloc_v2(&base, 0));
    IS(OUT_OF_MEMORY, cu.cuMemAlloc_v2(&base, total));
    unsigned char in[1000], out[1000];
    for (int i = 0; i < 1000; i++)
        in[i] = (unsigned char)(i * 7);
    OK(cu.cuMemcpyHtoD_v2(a, in, 1000));
    OK(cu.cuMemcpyDtoD_v2(b, a, 1000));
    OK(cu.cuMemsetD32_v2(b + 8, 0x01020304, 2));
    OK(cu.cuMemsetD16_v2(b + 2, 0xabcd, 1));
    OK(cu.cuMemsetD8_v2(b, 9, 1));
    OK(cu.cuMemcpyDtoH_v2(out, b, 1000));
    assert_memory_equal(out + 16, in + 16, 984);
    assert_memory_equal(out + 8, "\4\3\2\1\4\3\2\1", 8);
    assert_memory_equal(out, "\x09\x07\xcd\xab", 4);
    IS(INVALID_VALUE, cu.cuMemcpyHtoD_v2(a + 1, in, 1000));
    IS(INVALID_VALUE, cu.cuMemcpyDtoH_v2(out, 1234, 8));
    IS(INVALID_VALUE, cu.cuMemcpyHtoD_v2(a, NULL, 8));
    IS(INVALID_VALUE, cu.cuMemsetD32_v2(a + 2, 0, 1));
    IS(INVALID_VALUE, cu.cuMemsetD32_v2(a, 0, SIZE_MAX / 2));
    OK(cu.cuMemGetAddressRange_v2(&base, &bytes, a + 500));
    assert_true(base == a && bytes == 1000);
    IS(INVALID_VALUE, cu.cuMemFree_v2(a + 8));
    OK(cu.cuMemFree_v2(a));
    IS(INVALID_VALUE, cu.cuMemFree_v2(a));
    OK(cu.cuMemFree_v2(0));
    OK(cu.cuMemFreeAsync(b, NULL));
    OK(cu.cuCtxSynchronize());
    OK(cu.cuMemGetInfo_v2(&now, NULL));
    assert_int_equal(now, left);
    OK(cu.cuMemAllocPitch_v2(&a, &bytes, 100, 3, 4));
    assert_int_equal(bytes, 512);
    OK(cu.cuCtxDestroy_v2(c)); /* takes its memory along */
}

static void test_host_memory(void **state) {
    (void)state;
    CUcontext c = context_of(0);
    void *host = NULL;
    CUdeviceptr seen = 0;
    unsigned type = 0;
    char text[16] = "";
    OK(cu.cuMemHostAlloc(&host, 64, CU_MEMHOSTALLOC_DEVICEMAP));
    OK(cu.cuMemHostGetDevicePointer_v2(&seen, (char *)host + 4, 0));
    memcpy((char *)host + 4, "hello", 6);
    OK(cu.cuMemcpyDtoH_v2(text, seen, 6));
    assert_string_equal(text, "hello");
    OK(cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, seen));
    assert_int_equal(type, CU_MEMORYTYPE_HOST);
    IS(INVALID_VALUE, cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 99));
    IS(INVALID_VALUE, cu.cuMemFree_v2(seen - 4));
    IS(INVALID_VALUE, cu.cuMemFreeHost(text));
    OK(cu.cuMemFreeHost(host));
    IS(INVALID_VALUE, cu.cuMemFreeHost(host));
    OK(cu.cuMemHostRegister_v2(text, sizeof text, 0));
    OK(cu.cuMemHostUnregister(text));
    OK(cu.cuCtxDestroy_v2(c));
}

/* ---- modules ---- */

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

/* out[i] = total + step, and total grows by the threads; dies as `how` says: 1 out of bounds,
 * 2 misaligned, 3 trap, 4 for ever */
static const char TEXT[] =
    HEAD ".global .u32 total = 40;\n.const .u32 step = 2;\n"
         ".visible .entry go(.param .u64 out, .param .u32 how)\n{\n"
         ".reg .pred %p<8>;\n.reg .b32 %r<8>;\n.reg .b64 %d<8>;\n"
         "ld.param.u64 %d1, [out];\nld.param.u32 %r7, [how];\nld.const.u32 %r2, [step];\n"
         "mov.u64 %d2, total;\natom.global.add.u32 %r1, [%d2], 1;\nadd.u32 %r1, %r1, %r2;\n"
         "mov.u32 %r3, %tid.x;\nmul.wide.u32 %d3, %r3, 4;\nadd.u64 %d1, %d1, %d3;\n"
         "st.global.u32 [%d1], %r1;\n"
         "setp.eq.u32 %p1, %r7, 1;\n@%p1 st.global.u32 [%d1+4096], %r1;\n"
         "setp.eq.u32 %p2, %r7, 2;\n@%p2 st.global.u32 [%d1+1], %r1;\n"
         "setp.eq.u32 %p3, %r7, 3;\n@%p3 trap;\n"
         "setp.eq.u32 %p4, %r7, 4;\nAGAIN:\n@%p4 bra AGAIN;\nret;\n}\n";

typedef struct work {
    CUcontext context;
    CUmodule module;
    CUfunction go;
    CUdeviceptr out;
} work;

static work work_on(CUdevice device) {
    work w = {.context = context_of(device)};
    OK(cu.cuModuleLoadData(&w.module, TEXT));
    OK(cu.cuModuleGetFunction(&w.go, w.module, "go"));
    OK(cu.cuMemAlloc_v2(&w.out, 256));
    return w;
}

static CUresult go(const work *w, unsigned threads, int how, CUstream stream) {
    CUdeviceptr out = w->out;
    void *params[] = {&out, &how};
    return cu.cuLaunchKernel(w->go, 1, 1, 1, threads, 1, 1, 0, stream, params, NULL);
}

static unsigned first_of(CUdeviceptr at) {
    unsigned value = 0;
    OK(cu.cuMemcpyDtoH_v2(&value, at, sizeof value));
    return value;
}

static void test_modules(void **state) {
    (void)state;
    work w = work_on(1);
    CUdeviceptr total = 0, step = 0, other = 0;
    CUmodule second = NULL;
    CUfunction f = NULL;
    size_t bytes = 0;
    int value = 0;
    unsigned ten = 10;
    IS(NOT_FOUND, cu.cuModuleGetFunction(&f, w.module, "stop"));
    OK(cu.cuModuleGetGlobal_v2(&total, &bytes, w.module, "total"));
    assert_int_equal(bytes, 4);
    OK(cu.cuModuleGetGlobal_v2(&step, NULL, w.module, "step"));
    IS(NOT_FOUND, cu.cuModuleGetGlobal_v2(&step, NULL, w.module, "stride"));
    OK(cu.cuModuleLoadData(&second, TEXT)); /* variables of its own */
    OK(cu.cuModuleGetGlobal_v2(&other, NULL, second, "total"));
    assert_true(other != total);
    OK(go(&w, 1, 0, NULL));
    OK(go(&w, 1, 0, NULL));
    assert_int_equal(first_of(w.out), 43);
    assert_int_equal(first_of(total), 42);
    assert_int_equal(first_of(other), 40);
    OK(cu.cuMemcpyHtoD_v2(step, &ten, sizeof ten));
    OK(go(&w, 1, 0, NULL));
    assert_int_equal(first_of(w.out), 52);
    OK(cu.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, w.go));
    assert_true(value >= 8 && value <= 64);
    OK(cu.cuModuleUnload(w.module));
    IS(INVALID_HANDLE, go(&w, 1, 0, NULL));
    IS(INVALID_HANDLE, cu.cuModuleUnload(w.module));
    OK(cu.cuCtxDestroy_v2(w.context));
}

static CUresult jit(const char *text, char *info, char *error, size_t room) {
    CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER,  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_LOG_VERBOSE,      CU_JIT_WALL_TIME};
    void *values[] = {info, (void *)room, error, (void *)room, (void *)1, NULL};
    CUmodule module = NULL;
    info[0] = error[0] = '\0';
    CUresult result = cu.cuModuleLoadDataEx(&module, text, 6, options, values);
    assert_int_equal((size_t)values[result == CUDA_SUCCESS ? 1 : 3],
                     strlen(result == CUDA_SUCCESS ? info : error));
    return result;
}

static void test_jit_logs(void **state) {
    (void)state;
    CUcontext c = context_of(1);
    char info[4096], error[4096];
    OK(jit(TEXT, info, error, sizeof info));
    assert_non_null(strstr(info, "Compiling entry function 'go' for 'sm_80'"));
    assert_non_null(strstr(info, "Used "));
    OK(jit(TEXT, info, error, 20));
    assert_int_equal(strlen(info), 19);
    IS(INVALID_PTX, jit(HEAD ".entry k() {\nfoo.u32 %r1;\n}\n", info, error, sizeof error));
    assert_non_null(strstr(error, "line 5; error"));
    IS(INVALID_PTX, jit(".version 8.0\n.target sm_90\n.address_size 64\n.entry k() { ret; }\n",
                        info, error, sizeof error));
    assert_non_null(strstr(error, "sm_90"));
    CUmodule module = NULL;
    IS(NO_BINARY_FOR_GPU, cu.cuModuleLoadData(&module, "\177ELF\2\1\1"));
    IS(FILE_NOT_FOUND, cu.cuModuleLoad(&module, "nowhere.ptx"));
    IS(INVALID_VALUE, cu.cuModuleLoadData(&module, NULL));
    CUlinkState link = NULL;
    void *image = NULL;
    OK(cu.cuLinkCreate_v2(0, NULL, NULL, &link));
    OK(cu.cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)TEXT, sizeof TEXT, "t", 0,
                           NULL, NULL));
    OK(cu.cuLinkComplete(link, &image, NULL));
    OK(cu.cuModuleLoadData(&module, image));
    OK(cu.cuLinkDestroy(link));
    CUlibrary library = NULL;
    CUkernel kernel = NULL;
    CUfunction f = NULL;
    OK(cu.cuLibraryLoadData(&library, TEXT, NULL, NULL, 0, NULL, NULL, 0));
    OK(cu.cuLibraryGetKernel(&kernel, library, "go"));
    OK(cu.cuKernelGetFunction(&f, kernel));
    OK(cu.cuLibraryUnload(library));
    OK(cu.cuCtxDestroy_v2(c));
}

/* ---- launches ---- */

static void test_launches(void **state) {
    (void)state;
    work w = work_on(0);
    CUdeviceptr out = w.out;
    int how = 0, value = 0, grid = 0, block = 0;
    void *params[] = {&out, &how};
    struct {
        CUdeviceptr out;
        int how;
    } packed = {w.out, 0};
    size_t bytes = sizeof packed;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    OK(cu.cuLaunchKernel(w.go, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
    OK(cu.cuCtxSynchronize());
    bytes = 8;
    IS(INVALID_VALUE, cu.cuLaunchKernel(w.go, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
    IS(INVALID_VALUE, cu.cuLaunchKernel(w.go, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    IS(INVALID_VALUE, cu.cuLaunchKernel(w.go, 1, 1, 1, 32, 1, 1, 0, NULL, params, extra));
    IS(INVALID_VALUE, cu.cuLaunchKernel(w.go, 1, 1, 1, 1025, 1, 1, 0, NULL, params, NULL));
    IS(INVALID_VALUE, cu.cuLaunchKernel(w.go, 0, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    IS(INVALID_VALUE, cu.cuLaunchKernel(w.go, 1, 1, 1, 32, 1, 1, 60000, NULL, params, NULL));
    OK(cu.cuFuncSetAttribute(w.go, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000));
    OK(cu.cuLaunchKernel(w.go, 1, 1, 1, 32, 1, 1, 60000, NULL, params, NULL));
    IS(INVALID_VALUE,
       cu.cuFuncSetAttribute(w.go, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 20));
    IS(INVALID_HANDLE, go(&w, 1, 0, (CUstream)(void *)&how));
    IS(INVALID_HANDLE, cu.cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    CUlaunchConfig config = {1, 1, 1, 32, 1, 1, 0, NULL, NULL, 0};
    OK(cu.cuLaunchKernelEx(&config, w.go, params, NULL));
    config.numAttrs = 1;
    IS(INVALID_VALUE, cu.cuLaunchKernelEx(&config, w.go, params, NULL));
    OK(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, w.go, 1024, 0));
    assert_int_equal(value, 2);
    OK(cu.cuOccupancyMaxPotentialBlockSize(&grid, &block, w.go, NULL, 0, 0));
    assert_true(block >= 64 && grid % 132 == 0);
    OK(cu.cuCtxSynchronize());
    OK(cu.cuCtxDestroy_v2(w.context));
}

static void dies(int how, CUresult error) {
    work w = work_on(0);
    CUdeviceptr p = 0;
    OK(go(&w, 32, how, NULL));
    assert_int_equal(cu.cuCtxSynchronize(), error);
    assert_int_equal(cu.cuMemAlloc_v2(&p, 4), error); /* and stays */
    assert_int_equal(go(&w, 32, 0, NULL), error);
    CUcontext fresh = context_of(0); /* others live */
    OK(cu.cuMemAlloc_v2(&p, 4));
    OK(cu.cuCtxDestroy_v2(fresh));
    OK(cu.cuCtxDestroy_v2(w.context));
}

static void test_traps(void **state) {
    (void)state;
    dies(1, CUDA_ERROR_ILLEGAL_ADDRESS);
    dies(2, CUDA_ERROR_MISALIGNED_ADDRESS);
    dies(3, CUDA_ERROR_ILLEGAL_INSTRUCTION);
    dies(4, CUDA_ERROR_LAUNCH_TIMEOUT);
}

/* ---- streams and events ---- */

static const char SPIN[] =
    HEAD ".visible .entry spin(.param .u64 flag)\n{\n.reg .pred %p<2>;\n.reg .b32 %r<2>;\n"
         ".reg .b64 %d<2>;\nld.param.u64 %d1, [flag];\nAGAIN:\nld.volatile.global.u32 %r1, [%d1];\n"
         "setp.eq.u32 %p1, %r1, 0;\n@%p1 bra AGAIN;\nret;\n}\n";

/* A kernel that waits for the host: what is given after it has not begun. */
static void test_streams(void **state) {
    (void)state;
    work w = work_on(0);
    CUmodule module = NULL;
    CUfunction spin = NULL;
    CUstream stream = NULL;
    CUevent begin = NULL, end = NULL, plain = NULL;
    volatile unsigned *flag = NULL;
    CUdeviceptr seen = 0;
    float ms = -1;
    OK(cu.cuModuleLoadData(&module, SPIN));
    OK(cu.cuModuleGetFunction(&spin, module, "spin"));
    OK(cu.cuMemHostAlloc((void **)&flag, 64, CU_MEMHOSTALLOC_DEVICEMAP));
    OK(cu.cuMemHostGetDevicePointer_v2(&seen, (void *)(uintptr_t)flag, 0));
    OK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cu.cuEventCreate(&begin, 0));
    OK(cu.cuEventCreate(&end, 0));
    OK(cu.cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
    OK(cu.cuEventQuery(begin)); /* never recorded */
    IS(INVALID_HANDLE, cu.cuEventElapsedTime(&ms, begin, end));
    void *params[] = {&seen};
    OK(cu.cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
    OK(cu.cuEventRecord(begin, stream));
    OK(go(&w, 32, 0, stream));
    OK(cu.cuEventRecord(end, stream));
    OK(cu.cuEventRecord(plain, stream));
    IS(NOT_READY, cu.cuEventQuery(end));
    IS(NOT_READY, cu.cuStreamQuery(stream));
    IS(NOT_READY, cu.cuEventElapsedTime(&ms, begin, end));
    *flag = 1;
    OK(cu.cuEventSynchronize(end));
    OK(cu.cuEventElapsedTime(&ms, begin, end));
    assert_true(ms > 0.001f && ms < 0.1f); /* modelled: some microseconds */
    IS(INVALID_HANDLE, cu.cuEventElapsedTime(&ms, begin, plain));
    OK(cu.cuStreamWaitEvent(NULL, end, 0));
    OK(cu.cuStreamSynchronize(stream));
    OK(cu.cuStreamQuery(stream));
    OK(cu.cuEventDestroy_v2(begin));
    IS(INVALID_HANDLE, cu.cuEventDestroy_v2(begin));
    IS(INVALID_HANDLE, cu.cuEventRecord(begin, stream));
    OK(cu.cuStreamDestroy_v2(stream));
    IS(INVALID_HANDLE, cu.cuStreamQuery(stream));
    OK(cu.cuCtxDestroy_v2(w.context));
}

/* A kernel waits for one that is launched after it, in another stream; then a third one, behind an
 * event of the first stream. */
static void test_side_by_side(void **state) {
    (void)state;
    work w = work_on(0);
    CUmodule module = NULL;
    CUfunction spin = NULL;
    CUstream waits = NULL, sets = NULL;
    CUevent end = NULL;
    OK(cu.cuModuleLoadData(&module, SPIN));
    OK(cu.cuModuleGetFunction(&spin, module, "spin"));
    OK(cu.cuStreamCreate(&waits, 0));
    OK(cu.cuStreamCreate(&sets, 0));
    OK(cu.cuEventCreate(&end, 0));
    OK(cu.cuMemsetD32_v2(w.out, 0, 64));
    OK(cu.cuCtxSynchronize());
    void *params[] = {&w.out};
    OK(cu.cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, waits, params, NULL));
    OK(cu.cuEventRecord(end, waits));
    IS(NOT_READY, cu.cuStreamQuery(waits));
    OK(go(&w, 32, 0, sets));
    OK(cu.cuStreamWaitEvent(sets, end, 0));
    OK(go(&w, 1, 0, sets));
    OK(cu.cuStreamSynchronize(sets));
    OK(cu.cuEventQuery(end));
    assert_int_equal(first_of(w.out), 40 + 32 + 2);
    /* one fault ends all kernels of the context */
    OK(cu.cuMemsetD32_v2(w.out, 0, 64));
    OK(cu.cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, waits, params, NULL));
    OK(go(&w, 1, 2, sets));
    IS(MISALIGNED_ADDRESS, cu.cuStreamSynchronize(waits));
    OK(cu.cuCtxDestroy_v2(w.context));
}

static void add_one(void *data) {
    ++*(int *)data;
}

static void *launch_often(void *data) {
    const work *w = data;
    bool ok = cu.cuCtxSetCurrent(w->context) == CUDA_SUCCESS;
    for (int i = 0; ok && i < 20; i++)
        ok = go(w, 32, 0, NULL) == CUDA_SUCCESS;
    return ok && cu.cuCtxSynchronize() == CUDA_SUCCESS ? data : NULL;
}

static void test_threads(void **state) {
    (void)state;
    work w = work_on(0);
    pthread_t threads[3];
    void *ended = NULL;
    int calls = 0;
    CUdeviceptr total = 0;
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, launch_often, &w), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], &ended), 0);
        assert_non_null(ended);
    }
    OK(cu.cuModuleGetGlobal_v2(&total, NULL, w.module, "total"));
    assert_int_equal(first_of(total), 40 + 3 * 20 * 32);
    OK(cu.cuLaunchHostFunc(NULL, add_one, &calls));
    OK(cu.cuCtxSynchronize());
    assert_int_equal(calls, 1);
    OK(cu.cuCtxDestroy_v2(w.context));
}

/* ---- two devices ---- */

static void test_peers(void **state) {
    (void)state;
    work far = work_on(1), near = work_on(0);
    OK(cu.cuMemcpyPeer(far.out, far.context, near.out, near.context, 64));
    IS(PEER_ACCESS_NOT_ENABLED, cu.cuCtxDisablePeerAccess(far.context));
    IS(INVALID_DEVICE, cu.cuCtxEnablePeerAccess(near.context, 0));
    OK(cu.cuCtxEnablePeerAccess(far.context, 0));
    IS(PEER_ACCESS_ALREADY_ENABLED, cu.cuCtxEnablePeerAccess(far.context, 0));
    near.out = far.out;
    OK(go(&near, 32, 0, NULL));
    OK(cu.cuCtxSynchronize());
    OK(cu.cuCtxDisablePeerAccess(far.context));
    OK(go(&near, 32, 0, NULL));
    IS(ILLEGAL_ADDRESS, cu.cuCtxSynchronize());
    OK(cu.cuCtxDestroy_v2(near.context));
    OK(go(&far, 32, 0, NULL)); /* the other device goes on */
    OK(cu.cuCtxSynchronize());
    OK(cu.cuCtxDestroy_v2(far.context));
}

/* ---- injected errors ---- */

static void test_injected(void **state) {
    (void)state;
    work w = work_on(0);
    CUdeviceptr p = 0;
    CUmodule module = NULL;
    float ms = 0;
    (void)setenv("EVOKE_STANDIN_FAIL",
                 "cuMemAlloc_v2:0+=2;cuModuleLoadData:0+=jit;launch:0+=timeout;"
                 "cuEventElapsedTime:0+=CUDA_ERROR_UNKNOWN",
                 1);
    IS(OUT_OF_MEMORY, cu.cuMemAlloc_v2(&p, 4));
    IS(INVALID_PTX, cu.cuModuleLoadData(&module, TEXT));
    IS(UNKNOWN, cu.cuEventElapsedTime(&ms, NULL, NULL));
    OK(go(&w, 32, 0, NULL));
    IS(LAUNCH_TIMEOUT, cu.cuCtxSynchronize());
    (void)unsetenv("EVOKE_STANDIN_FAIL");
    IS(LAUNCH_TIMEOUT, cu.cuCtxSynchronize());
    OK(cu.cuCtxDestroy_v2(w.context));
    w = work_on(0);
    (void)setenv("EVOKE_STANDIN_FAIL", "cuCtxSynchronize:0+=lost", 1);
    IS(DEVICE_UNAVAILABLE, cu.cuCtxSynchronize());
    (void)unsetenv("EVOKE_STANDIN_FAIL");
    IS(DEVICE_UNAVAILABLE, cu.cuMemAlloc_v2(&p, 4)); /* for good: the last test */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_init),     cmocka_unit_test(test_devices),
        cmocka_unit_test(test_look_up),  cmocka_unit_test(test_contexts),
        cmocka_unit_test(test_memory),   cmocka_unit_test(test_host_memory),
        cmocka_unit_test(test_modules),  cmocka_unit_test(test_jit_logs),
        cmocka_unit_test(test_launches), cmocka_unit_test(test_traps),
        cmocka_unit_test(test_streams),  cmocka_unit_test(test_side_by_side),
        cmocka_unit_test(test_threads),  cmocka_unit_test(test_peers),
        cmocka_unit_test(test_injected),
    };
    return cmocka_run_group_tests(tests, open_driver, NULL);
}
