/* The stand-in for the CUDA runtime library as a library of its own: what is registered goes when
 * it is unregistered, and a NULL where an answer belongs is an error, as with CUDA. */
#include "tests/fitness/device/driver_rig.h"

#include <stddef.h>
#include <stdint.h>

typedef struct dim3 {
    unsigned x, y, z;
} dim3;

enum { INVALID_VALUE = 1, INVALID_SYMBOL = 13, INVALID_FUNCTION = 98 };
enum { HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, BY_ADDRESS };

/* As in crt/host_runtime.h and cuda_runtime_api.h. */
static struct {
    void **(*__cudaRegisterFatBinary)(void *wrapper);
    void (*__cudaUnregisterFatBinary)(void **handle);
    void (*__cudaRegisterFunction)(void **handle, const char *host, char *stub, const char *name,
                                   int limit, void *tid, void *bid, dim3 *block, dim3 *grid,
                                   int *warp);
    void (*__cudaRegisterVar)(void **handle, char *host, char *address, const char *name,
                              int is_extern, size_t bytes, int is_constant, int is_global);
    unsigned (*__cudaGetKernel)(void **kernel, const void *host);
    unsigned (*cudaLaunchKernel)(const void *host, dim3 grid, dim3 block, void **arguments,
                                 size_t shared, void *stream);
    unsigned (*cudaMalloc)(void **out, size_t bytes);
    unsigned (*cudaMallocManaged)(void **out, size_t bytes, unsigned flags);
    unsigned (*cudaMallocPitch)(void **out, size_t *pitch, size_t width, size_t height);
    unsigned (*cudaMallocAsync)(void **out, size_t bytes, void *stream);
    unsigned (*cudaMallocHost)(void **out, size_t bytes);
    unsigned (*cudaHostGetDevicePointer)(void **out, void *host, unsigned flags);
    unsigned (*cudaFree)(void *pointer);
    unsigned (*cudaMemcpy)(void *to, const void *from, size_t bytes, int kind);
    unsigned (*cudaMemcpyAsync)(void *to, const void *from, size_t bytes, int kind, void *stream);
    unsigned (*cudaMemcpy2D)(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                             size_t width, size_t height, int kind);
    unsigned (*cudaGetSymbolAddress)(void **out, const void *variable);
    unsigned (*cudaGetSymbolSize)(size_t *out, const void *variable);
    unsigned (*cudaFuncGetAttributes)(void *out, const void *host);
    unsigned (*cudaStreamCreate)(void **out);
    unsigned (*cudaEventCreate)(void **out);
    unsigned (*cudaGetDevice)(int *out);
    unsigned (*cudaGetDeviceCount)(int *out);
    unsigned (*cudaDeviceGetAttribute)(int *out, int attribute, int device);
    unsigned (*cudaRuntimeGetVersion)(int *out);
    unsigned (*cudaDriverGetVersion)(int *out);
    unsigned (*cudaSetDevice)(int device);
    unsigned (*cudaDeviceSynchronize)(void);
    unsigned (*cudaDeviceReset)(void);
    unsigned (*cudaGetLastError)(void);
} rt;

static void *library;

static void find(const char *symbol, void *to) {
    void *found = dlsym(library, symbol);
    if (found == NULL)
        fail_msg("libcudart has no %s", symbol);
    memcpy(to, &found, sizeof found);
}

#define FIND(symbol) find(#symbol, &rt.symbol)

static int open_runtime(void **state) {
    (void)state;
    rig_open_driver("h200,v100");
    library = dlopen(EVOKE_BINARY_DIR "/standin/libcudart.so.12", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        fail_msg("%s", dlerror());
    FIND(__cudaRegisterFatBinary), FIND(__cudaUnregisterFatBinary), FIND(__cudaRegisterFunction);
    FIND(__cudaRegisterVar), FIND(__cudaGetKernel), FIND(cudaLaunchKernel), FIND(cudaMalloc);
    FIND(cudaMallocManaged), FIND(cudaMallocPitch), FIND(cudaMallocAsync), FIND(cudaMallocHost);
    FIND(cudaHostGetDevicePointer), FIND(cudaFree), FIND(cudaMemcpy), FIND(cudaMemcpyAsync);
    FIND(cudaMemcpy2D), FIND(cudaGetSymbolAddress), FIND(cudaGetSymbolSize);
    FIND(cudaFuncGetAttributes), FIND(cudaStreamCreate), FIND(cudaEventCreate);
    FIND(cudaGetDevice), FIND(cudaGetDeviceCount);
    FIND(cudaDeviceGetAttribute), FIND(cudaRuntimeGetVersion), FIND(cudaDriverGetVersion);
    FIND(cudaSetDevice), FIND(cudaDeviceSynchronize), FIND(cudaDeviceReset), FIND(cudaGetLastError);
    return 0;
}

/* A kernel that stores its module's number, and a variable that begins with it. */
#define MODULE(number)                                                                             \
    ".version 7.0\n.target sm_70\n.address_size 64\n.global .align 4 .u32 own = " #number ";\n"    \
    ".visible .entry tell(.param .u64 p) {\n  .reg .u64 %rd<2>; .reg .u32 %r<2>;\n"                \
    "  ld.param.u64 %rd1, [p]; mov.u32 %r1, " #number "; st.global.u32 [%rd1], %r1; ret;\n}\n"

static char first[] = MODULE(11), second[] = MODULE(22);
/* Addresses of a kernel's stub and of a variable in the host's program. */
static char stub[1], own[4];

static void **register_all(char *module) {
    void **handle = rt.__cudaRegisterFatBinary(module);
    assert_non_null(handle);
    rt.__cudaRegisterFunction(handle, stub, stub, "tell", -1, NULL, NULL, NULL, NULL, NULL);
    rt.__cudaRegisterVar(handle, own, own, "own", 0, sizeof own, 0, 1);
    return handle;
}

static unsigned launch(uint32_t *told) {
    void *p = NULL;
    void *arguments[] = {&p};
    const dim3 one = {1, 1, 1};
    assert_int_equal(rt.cudaMalloc(&p, sizeof *told), 0);
    unsigned result = rt.cudaLaunchKernel(stub, one, one, arguments, 0, NULL);
    if (result == 0)
        result = rt.cudaMemcpy(told, p, sizeof *told, DEVICE_TO_HOST);
    assert_int_equal(rt.cudaFree(p), 0);
    return result;
}

static unsigned begin_of_variable(uint32_t *value) {
    void *address = NULL;
    unsigned result = rt.cudaGetSymbolAddress(&address, own);
    return result == 0 ? rt.cudaMemcpy(value, address, sizeof *value, DEVICE_TO_HOST) : result;
}

/* dlclose unregisters a library's code; another library may then have its addresses. */
static void code_goes_with_its_library(void **state) {
    (void)state;
    uint32_t told = 0;
    int now = -1;
    void **handle = register_all(first);
    assert_int_equal(launch(&told), 0);
    assert_int_equal(told, 11);
    assert_int_equal(begin_of_variable(&told), 0);
    assert_int_equal(told, 11);
    assert_int_equal(rt.cudaSetDevice(1), 0);
    assert_int_equal(launch(&told), 0); /* a module of the other device */
    rt.__cudaUnregisterFatBinary(handle);
    assert_int_equal(rt.cudaGetDevice(&now), 0);
    assert_int_equal(now, 1);
    CUcontext context = NULL;
    CUdevice device = -1;
    OK(cu.cuCtxGetCurrent(&context));
    OK(cu.cuCtxGetDevice(&device));
    assert_int_equal(device, 1);
    assert_int_equal(launch(&told), INVALID_FUNCTION);
    assert_int_equal(begin_of_variable(&told), INVALID_SYMBOL);
    handle = register_all(second);
    assert_int_equal(launch(&told), 0);
    assert_int_equal(told, 22);
    assert_int_equal(begin_of_variable(&told), 0);
    assert_int_equal(told, 22);
    assert_int_equal(rt.cudaSetDevice(0), 0);
    assert_int_equal(launch(&told), 0);
    assert_int_equal(told, 22);
    rt.__cudaUnregisterFatBinary(handle);
    rt.__cudaUnregisterFatBinary(NULL);
}

/* Other code stays. */
static void other_code_stays(void **state) {
    (void)state;
    uint32_t told = 0;
    void **handle = register_all(first);
    void **other = rt.__cudaRegisterFatBinary(second);
    static char other_stub[1];
    rt.__cudaRegisterFunction(other, other_stub, other_stub, "tell", -1, NULL, NULL, NULL, NULL,
                              NULL);
    rt.__cudaUnregisterFatBinary(other);
    assert_int_equal(launch(&told), 0);
    assert_int_equal(told, 11);
    assert_int_equal(rt.cudaDeviceReset(), 0);
    assert_int_equal(launch(&told), 0); /* loaded again */
    assert_int_equal(told, 11);
    rt.__cudaUnregisterFatBinary(handle);
}

#define REFUSED(call)                                                                              \
    do {                                                                                           \
        assert_int_equal(call, INVALID_VALUE);                                                     \
        assert_int_equal(rt.cudaGetLastError(), INVALID_VALUE);                                    \
        assert_int_equal(rt.cudaGetLastError(), 0);                                                \
    } while (0)

static void answers_need_a_place(void **state) {
    (void)state;
    size_t pitch = 0;
    char here[64] = {0};
    void *there = NULL, *host = NULL;
    void **handle = register_all(first);
    assert_int_equal(rt.cudaMalloc(&there, sizeof here), 0);
    assert_int_equal(rt.cudaMallocHost(&host, sizeof here), 0);
    REFUSED(rt.cudaMalloc(NULL, 16));
    REFUSED(rt.cudaMallocManaged(NULL, 16, 1));
    REFUSED(rt.cudaMallocPitch(NULL, &pitch, 16, 16));
    REFUSED(rt.cudaMallocPitch(&host, NULL, 16, 16));
    REFUSED(rt.cudaMallocAsync(NULL, 16, NULL));
    REFUSED(rt.cudaMallocHost(NULL, 16));
    REFUSED(rt.cudaHostGetDevicePointer(NULL, host, 0));
    REFUSED(rt.cudaGetSymbolAddress(NULL, own));
    REFUSED(rt.cudaGetSymbolSize(NULL, own));
    REFUSED(rt.cudaFuncGetAttributes(NULL, stub));
    REFUSED(rt.cudaStreamCreate(NULL));
    REFUSED(rt.cudaEventCreate(NULL));
    REFUSED(rt.cudaGetDevice(NULL));
    REFUSED(rt.cudaGetDeviceCount(NULL));
    REFUSED(rt.cudaDeviceGetAttribute(NULL, 1, 0));
    REFUSED(rt.cudaRuntimeGetVersion(NULL));
    REFUSED(rt.cudaDriverGetVersion(NULL));
    REFUSED(rt.__cudaGetKernel(NULL, stub));
    assert_int_equal(rt.cudaFree(there), 0);
    rt.__cudaUnregisterFatBinary(handle);
}

static void copies_need_both_sides(void **state) {
    (void)state;
    char here[64] = {0};
    void *there = NULL;
    assert_int_equal(rt.cudaMalloc(&there, sizeof here), 0);
    for (int kind = HOST_TO_HOST; kind <= BY_ADDRESS; kind++) {
        bool to_device = kind == HOST_TO_DEVICE || kind == DEVICE_TO_DEVICE;
        bool from_device = kind == DEVICE_TO_HOST || kind == DEVICE_TO_DEVICE;
        void *to = to_device ? there : here;
        const void *from = from_device ? there : here + 32;
        REFUSED(rt.cudaMemcpy(NULL, from, 16, kind));
        REFUSED(rt.cudaMemcpy(to, NULL, 16, kind));
        REFUSED(rt.cudaMemcpyAsync(NULL, from, 16, kind, NULL));
        REFUSED(rt.cudaMemcpyAsync(to, NULL, 16, kind, NULL));
        REFUSED(rt.cudaMemcpy2D(NULL, 8, from, 8, 8, 2, kind));
        REFUSED(rt.cudaMemcpy2D(to, 8, NULL, 8, 8, 2, kind));
        assert_int_equal(rt.cudaMemcpy(NULL, NULL, 0, kind), 0);
        assert_int_equal(rt.cudaMemcpy2D(NULL, 8, NULL, 8, 8, 0, kind), 0);
    }
    assert_int_equal(rt.cudaFree(there), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_goes_with_its_library),
        cmocka_unit_test(other_code_stays),
        cmocka_unit_test(answers_need_a_place),
        cmocka_unit_test(copies_need_both_sides),
    };
    return cmocka_run_group_tests(tests, open_runtime, NULL);
}
