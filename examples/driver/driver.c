/* A program for the CUDA Driver API of the kind a user would write: adds vectors, multiplies
 * matrices on two streams between events, and shows what an error of a kernel looks like. It knows
 * nothing of Evoke. With a GPU it runs on that; with none, LD_LIBRARY_PATH=build/standin runs it
 * unchanged on the stand-in.
 *
 *   cc -DWITH_CUDA_H driver.c -lcuda -lm      with NVIDIA's header
 *   cc driver.c -lcuda -lm                    with the few declarations below
 *   ./a.out kernels.ptx */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef WITH_CUDA_H
#include <cuda.h>
#else
#include <stddef.h>
typedef int CUresult, CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
enum { CUDA_SUCCESS = 0, CUDA_ERROR_ILLEGAL_ADDRESS = 700, CU_STREAM_NON_BLOCKING = 1 };
#define cuMemAlloc cuMemAlloc_v2
#define cuMemFree cuMemFree_v2
#define cuMemcpyHtoD cuMemcpyHtoD_v2
#define cuMemcpyDtoH cuMemcpyDtoH_v2
#define cuMemcpyDtoHAsync cuMemcpyDtoHAsync_v2
#define cuMemcpyHtoDAsync cuMemcpyHtoDAsync_v2
#define cuEventDestroy cuEventDestroy_v2
#define cuStreamDestroy cuStreamDestroy_v2
#define cuDevicePrimaryCtxRelease cuDevicePrimaryCtxRelease_v2
#define cuDevicePrimaryCtxReset cuDevicePrimaryCtxReset_v2
CUresult cuInit(unsigned flags);
CUresult cuGetErrorString(CUresult error, const char **text);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGetName(char *name, int length, CUdevice device);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease(CUdevice device);
CUresult cuDevicePrimaryCtxReset(CUdevice device);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxSynchronize(void);
CUresult cuModuleLoad(CUmodule *module, const char *path);
CUresult cuModuleUnload(CUmodule module);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes);
CUresult cuMemFree(CUdeviceptr address);
CUresult cuMemHostAlloc(void **host, size_t bytes, unsigned flags);
CUresult cuMemFreeHost(void *host);
CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes);
CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuStreamCreate(CUstream *stream, unsigned flags);
CUresult cuStreamDestroy(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuEventCreate(CUevent *event, unsigned flags);
CUresult cuEventDestroy(CUevent event);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end);
CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params,
                        void **extra);
#endif

#define CHECK(call)                                                                                \
    do {                                                                                           \
        CUresult result_ = (call);                                                                 \
        if (result_ != CUDA_SUCCESS)                                                               \
            stop(#call, result_);                                                                  \
    } while (0)

static void stop(const char *call, CUresult result) {
    const char *text = NULL;
    (void)cuGetErrorString(result, &text);
    fprintf(stderr, "%s: %d %s\n", call, (int)result, text != NULL ? text : "");
    exit(1);
}

static CUdeviceptr upload(const float *host, size_t count) {
    CUdeviceptr device = 0;
    CHECK(cuMemAlloc(&device, count * sizeof *host));
    if (host != NULL)
        CHECK(cuMemcpyHtoD(device, host, count * sizeof *host));
    return device;
}

static void fill(float *to, int count, unsigned seed) {
    for (int i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        to[i] = (float)(seed >> 8) / 16777216.0f - 0.5f;
    }
}

#define LENGTH 100000

static int add_vectors(CUfunction add) {
    static float a[LENGTH], b[LENGTH], c[LENGTH];
    int n = LENGTH;
    fill(a, n, 1);
    fill(b, n, 2);
    CUdeviceptr x = upload(a, LENGTH), y = upload(b, LENGTH), z = upload(NULL, LENGTH);
    void *params[] = {&x, &y, &z, &n};
    CHECK(cuLaunchKernel(add, (LENGTH + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
    CHECK(cuMemcpyDtoH(c, z, sizeof c));
    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += c[i] != a[i] + b[i];
    CHECK(cuMemFree(y));
    CHECK(cuMemFree(x));
    CHECK(cuMemFree(z));
    printf("vector add of %d: %s\n", n, wrong == 0 ? "right" : "WRONG");
    return wrong != 0;
}

static double product_at(const float *a, const float *b, int n, int row, int column) {
    double sum = 0;
    for (int k = 0; k < n; k++)
        sum += (double)a[row * n + k] * (double)b[k * n + column];
    return sum;
}

typedef struct work {
    CUstream stream;
    CUevent begin, end;
    float *a, *b, *c; /* pinned */
    CUdeviceptr x, y, z;
} work;

static void start_product(work *w, CUfunction sgemm, int n, unsigned seed) {
    size_t bytes = (size_t)n * (size_t)n * sizeof(float);
    CHECK(cuStreamCreate(&w->stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&w->begin, 0));
    CHECK(cuEventCreate(&w->end, 0));
    CHECK(cuMemHostAlloc((void **)&w->a, bytes, 0));
    CHECK(cuMemHostAlloc((void **)&w->b, bytes, 0));
    CHECK(cuMemHostAlloc((void **)&w->c, bytes, 0));
    fill(w->a, n * n, seed);
    fill(w->b, n * n, seed + 1);
    CHECK(cuMemAlloc(&w->x, bytes));
    CHECK(cuMemAlloc(&w->y, bytes));
    CHECK(cuMemAlloc(&w->z, bytes));
    CHECK(cuMemcpyHtoDAsync(w->x, w->a, bytes, w->stream));
    CHECK(cuMemcpyHtoDAsync(w->y, w->b, bytes, w->stream));
    void *params[] = {&w->x, &w->y, &w->z, &n};
    unsigned blocks = (unsigned)n / 16;
    CHECK(cuEventRecord(w->begin, w->stream));
    CHECK(cuLaunchKernel(sgemm, blocks, blocks, 1, 16, 16, 1, 0, w->stream, params, NULL));
    CHECK(cuEventRecord(w->end, w->stream));
    CHECK(cuMemcpyDtoHAsync(w->c, w->z, bytes, w->stream));
}

static int end_product(work *w, int n) {
    float ms = 0;
    double worst = 0;
    CHECK(cuStreamSynchronize(w->stream));
    CHECK(cuEventSynchronize(w->end));
    CHECK(cuEventElapsedTime(&ms, w->begin, w->end));
    for (int i = 0; i < n * n; i += 37) {
        double off = fabs((double)w->c[i] - product_at(w->a, w->b, n, i / n, i % n));
        worst = off > worst ? off : worst;
    }
    CHECK(cuMemFree(w->x));
    CHECK(cuMemFree(w->y));
    CHECK(cuMemFree(w->z));
    CHECK(cuMemFreeHost(w->a));
    CHECK(cuMemFreeHost(w->b));
    CHECK(cuMemFreeHost(w->c));
    CHECK(cuEventDestroy(w->begin));
    CHECK(cuEventDestroy(w->end));
    CHECK(cuStreamDestroy(w->stream));
    printf("sgemm of %d: %s, %s\n", n, worst < 1e-3 ? "right" : "WRONG",
           ms > 0 ? "timed" : "WITHOUT A TIME");
    return !(worst < 1e-3 && ms > 0);
}

static int multiply_matrices(CUfunction sgemm, int n) {
    work two[2];
    start_product(&two[0], sgemm, n, 10);
    start_product(&two[1], sgemm, n / 2, 20);
    return end_product(&two[0], n) + end_product(&two[1], n / 2);
}

/* A kernel that writes where nothing is: the error comes with the next wait, and stays until the
 * context is made anew. */
static int go_wrong(CUfunction add, CUdevice device) {
    CUdeviceptr nowhere = 64;
    int n = 256;
    void *params[] = {&nowhere, &nowhere, &nowhere, &n};
    CHECK(cuLaunchKernel(add, 1, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
    CUresult first = cuCtxSynchronize();
    CUdeviceptr more = 0;
    CUresult second = cuMemAlloc(&more, 64);
    CHECK(cuDevicePrimaryCtxReset(device));
    int as_told = first == CUDA_ERROR_ILLEGAL_ADDRESS && second == CUDA_ERROR_ILLEGAL_ADDRESS;
    printf("an access to nowhere: %s\n", as_told ? "refused" : "NOT NOTICED");
    return !as_told;
}

int main(int argc, char **argv) {
    CUdevice device = 0;
    CUcontext context = NULL;
    CUmodule module = NULL;
    CUfunction add = NULL, sgemm = NULL;
    char name[128];
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDeviceGetName(name, sizeof name, device));
    printf("%s\n", name);
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoad(&module, argc > 1 ? argv[1] : "kernels.ptx"));
    CHECK(cuModuleGetFunction(&add, module, "vector_add"));
    CHECK(cuModuleGetFunction(&sgemm, module, "sgemm"));
    int wrong = add_vectors(add) + multiply_matrices(sgemm, 128);
    wrong += go_wrong(add, device);
    CHECK(cuDevicePrimaryCtxRelease(device));
    return wrong != 0;
}
