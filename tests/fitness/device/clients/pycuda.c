/* The calls of PyCUDA: all names that its extension module binds are bound when this program is
 * loaded; contexts are made, popped and detached; functions are launched with packed arguments, and
 * as before CUDA 4; a text that does not load is explained by the logs.
 *
 *   pycuda kernels.ptx */
#include "tests/fitness/device/clients/client.h"

#define N 500

#define NAME(symbol) extern const char bound_##symbol[] __asm__(#symbol);
#include "tests/fitness/device/pycuda_names.def"
#undef NAME

static const char *const bound[] = {
#define NAME(symbol) bound_##symbol,
#include "tests/fitness/device/pycuda_names.def"
#undef NAME
};

static void check_bound(void) {
    size_t count = sizeof bound / sizeof bound[0];
    for (size_t i = 0; i < count; i++)
        MUST(bound[i] != NULL, "a name is not bound");
    printf("%zu names: bound\n", count);
}

static CUresult load(const char *text, CUmodule *module, char *error, size_t room) {
    char info[4096] = "";
    CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {info, (void *)sizeof info, error, (void *)room};
    CUresult result = cuModuleLoadDataEx(module, text, 4, options, values);
    MUST((size_t)values[1] == strlen(info), "the info log has another length");
    MUST((size_t)values[3] == strlen(error), "the error log has another length");
    return result;
}

typedef struct vectors {
    float a[N], b[N], c[N];
    CUdeviceptr d[3];
    int n;
} vectors;

static void make(vectors *v) {
    v->n = N;
    fill(v->a, N, 1);
    fill(v->b, N, 2);
    for (int i = 0; i < 3; i++)
        CHECK(cuMemAlloc_v2(&v->d[i], sizeof v->a));
    CHECK(cuMemcpyHtoD_v2(v->d[0], v->a, sizeof v->a));
    CHECK(cuMemcpyHtoD_v2(v->d[1], v->b, sizeof v->b));
}

static void check(vectors *v, const char *what) {
    memset(v->c, 0, sizeof v->c);
    CHECK(cuMemcpyDtoH_v2(v->c, v->d[2], sizeof v->c));
    check_sums(v->a, v->b, v->c, N);
    CHECK(cuMemsetD8_v2(v->d[2], 0, sizeof v->c));
    printf("%s: right\n", what);
}

static void call(CUfunction add, vectors *v) {
    char packed[28];
    size_t bytes = sizeof packed;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    memcpy(packed, v->d, 24);
    memcpy(packed + 24, &v->n, 4);
    CHECK(cuLaunchKernel(add, 2, 1, 1, 256, 1, 1, 0, NULL, NULL, extra));
    check(v, "a call");
}

static void call_as_before_4(CUfunction add, vectors *v) {
    CUstream stream = NULL;
    CHECK(cuFuncSetBlockShape(add, 256, 1, 1));
    CHECK(cuFuncSetSharedSize(add, 0));
    CHECK(cuParamSetv(add, 0, v->d, 24));
    CHECK(cuParamSeti(add, 24, (unsigned)v->n));
    CHECK(cuParamSetSize(add, 28));
    CHECK(cuLaunchGrid(add, 2, 1));
    check(v, "a call as before CUDA 4");
    CHECK(cuStreamCreate(&stream, 0));
    CHECK(cuLaunchGridAsync(add, 2, 1, stream));
    CHECK(cuStreamSynchronize(stream));
    check(v, "a call as before CUDA 4, in a stream");
    CHECK(cuStreamDestroy_v2(stream));
}

int main(int argc, char **argv) {
    CUdevice device = 0;
    CUcontext context = NULL, attached = NULL, popped = NULL;
    CUmodule module = NULL;
    CUfunction add = NULL;
    char error[4096] = "";
    size_t bytes = 0;
    static vectors v;
    char *text = read_text(argc > 1 ? argv[1] : "kernels.ptx", &bytes);
    check_bound();
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuCtxCreate_v2(&context, 0, device));
    CHECK(load(text, &module, error, sizeof error));
    CHECK(cuModuleGetFunction(&add, module, "vector_add"));
    make(&v);
    call(add, &v);
    call_as_before_4(add, &v);
    must_be(CUDA_ERROR_INVALID_PTX, load("what is this", &module, error, sizeof error), "nonsense");
    MUST(strstr(error, "line 1") != NULL, "the error log does not say where");
    CHECK(cuCtxAttach(&attached, 0));
    CHECK(cuCtxDetach(attached));
    CHECK(cuCtxPopCurrent_v2(&popped));
    MUST(popped == context, "another context was popped");
    CHECK(cuCtxDetach(context));
    must_be(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent_v2(context), "a context that is gone");
    free(text);
    return 0;
}
