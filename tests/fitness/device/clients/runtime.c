/* A program for the CUDA runtime library, of the calls that nvcc makes of <<< >>> and of
 * __constant__ variables: linked as by nvcc -cudart shared, it runs on the stand-in.
 *
 *   client_runtime_13 KERNELS.ptx [THREADS]      with THREADS: one launch of saxpy, and the end
 *
 * KERNELS.ptx: tests/tuner/init/recorded/kernels.ptx. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct dim3 {
    unsigned x, y, z;
} dim3;
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;

/* As in crt/host_runtime.h and cuda_runtime_api.h. */
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *stub, const char *name,
                            int limit, void *tid, void *bid, dim3 *block, dim3 *grid, int *warp);
void __cudaRegisterVar(void **handle, char *host, char *address, const char *name, int is_extern,
                       size_t bytes, int is_constant, int is_global);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
int __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
int __cudaGetKernel(void **kernel, const void *host);
int __cudaLaunchKernel(void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                       cudaStream_t stream);
int cudaLaunchKernel(const void *host, dim3 grid, dim3 block, void **arguments, size_t shared,
                     cudaStream_t stream);
int cudaMalloc(void **out, size_t bytes);
int cudaMallocManaged(void **out, size_t bytes, unsigned flags);
int cudaMallocPitch(void **out, size_t *pitch, size_t width, size_t height);
int cudaFree(void *pointer);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
int cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                 size_t height, int kind);
int cudaMemcpyToSymbol(const void *variable, const void *from, size_t bytes, size_t offset,
                       int kind);
int cudaMemcpyFromSymbol(void *to, const void *variable, size_t bytes, size_t offset, int kind);
int cudaDeviceSynchronize(void);
int cudaDeviceReset(void);
int cudaGetDeviceCount(int *count);
int cudaSetDevice(int device);
int cudaGetLastError(void);
int cudaPeekAtLastError(void);
int cudaRuntimeGetVersion(int *version);
int cudaEventCreate(cudaEvent_t *out);
int cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
int cudaEventSynchronize(cudaEvent_t event);
int cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to);
const char *cudaGetErrorString(int error);
const char *cudaGetErrorName(int error);
int cudaGraphCreate(void *graph, unsigned flags);
#if RUNTIME_VERSION == 12
#define PROPERTIES cudaGetDeviceProperties_v2
enum { SMS_AT = 388, MAJOR_AT = 360 };
#else
#define PROPERTIES cudaGetDeviceProperties
enum { SMS_AT = 384, MAJOR_AT = 360 };
#endif
int PROPERTIES(void *properties, int device);

enum { TO_DEVICE = 1, TO_HOST = 2, BY_ADDRESS = 4, N = 1000 };

#define CHECK(call) check(call, #call)
#define EXPECT(what) expect(what, #what)

static void check(int result, const char *call) {
    if (result == 0)
        return;
    fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(result));
    exit(1);
}

static void expect(int holds, const char *what) {
    if (holds)
        return;
    fprintf(stderr, "it does not hold that %s\n", what);
    exit(2);
}

/* ---- what nvcc adds ---- */

static float taps[5]; /* the variable's place in the host's program */

static void saxpy(float a, const float *x, float *y, int n) {
    void *arguments[] = {&a, &x, &y, &n};
    dim3 grid, block;
    size_t shared = 0;
    cudaStream_t stream = NULL;
    CHECK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
    (void)cudaLaunchKernel((const void *)saxpy, grid, block, arguments, shared, stream);
}

/* As of nvcc 13. */
static void smooth(const double *in, double *out, int n) {
    void *arguments[] = {&in, &out, &n}, *kernel = NULL;
    dim3 grid, block;
    size_t shared = 0;
    cudaStream_t stream = NULL;
    CHECK(__cudaGetKernel(&kernel, (const void *)smooth));
    CHECK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
    (void)__cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

static void missing(void) {
    dim3 one = {1, 1, 1};
    expect(cudaLaunchKernel((const void *)missing, one, one, NULL, 0, NULL) == 98,
           "a function that is no kernel is refused");
}

static void put(unsigned char *to, size_t at, uint64_t value, size_t bytes) {
    memcpy(to + at, &value, bytes);
}

static void **registered;

static void unregister(void) {
    __cudaUnregisterFatBinary(registered);
}

/* A fat binary with a PTX text, and its wrapper. */
static void register_all(const char *path) {
    static struct {
        int magic, version;
        const void *container;
        void *none;
    } wrapper = {0x466243b1, 1, NULL, NULL};
    enum { HEADER = 16, ENTRY = 64, MOST = 1 << 20 };
    static unsigned char container[MOST];
    FILE *file = fopen(path, "rb");
    expect(file != NULL, "the PTX is there");
    size_t bytes = fread(container + HEADER + ENTRY, 1, MOST - HEADER - ENTRY - 8, file) + 1;
    (void)fclose(file);
    bytes = (bytes + 7) / 8 * 8;
    put(container, 0, 0xba55ed50, 4);
    put(container, 4, 1, 2);
    put(container, 6, HEADER, 2);
    put(container, 8, ENTRY + bytes, 8);
    put(container, HEADER, 1, 2);
    put(container, HEADER + 4, ENTRY, 4);
    put(container, HEADER + 8, bytes, 8);
    put(container, HEADER + 28, 70, 2);
    wrapper.container = container;
    void **handle = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(handle, (const char *)(const void *)saxpy, NULL, "_Z5saxpyfPKfPfi", -1,
                           NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(handle, (const char *)(const void *)smooth, NULL, "_Z6smoothPKdPdi", -1,
                           NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterVar(handle, (char *)taps, NULL, "taps", 0, sizeof taps, 1, 0);
    __cudaRegisterFatBinaryEnd(handle);
    registered = handle;
    (void)atexit(unregister);
}

/* ---- the program ---- */

/* Nothing waits for the launch but the end of the process. */
static void launch_and_leave(unsigned threads) {
    static float x[N], y[N];
    float *dx = NULL, *dy = NULL;
    for (int i = 0; i < N; i++)
        x[i] = y[i] = (float)(i % 17) - 8;
    CHECK(cudaMalloc((void **)&dx, sizeof x));
    CHECK(cudaMalloc((void **)&dy, sizeof y));
    CHECK(cudaMemcpy(dx, x, sizeof x, TO_DEVICE));
    CHECK(cudaMemcpy(dy, y, sizeof y, TO_DEVICE));
    dim3 grid = {(N + threads - 1) / threads, 1, 1}, block = {threads, 1, 1};
    if (__cudaPushCallConfiguration(grid, block, 0, NULL) == 0)
        saxpy(3, dx, dy, N);
}

static void launch_saxpy(unsigned threads) {
    static float x[N], y[N], got[N];
    float *dx = NULL, *dy = NULL, ms = 0;
    cudaEvent_t from, to;
    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
        y[i] = 1;
    }
    CHECK(cudaEventCreate(&from));
    CHECK(cudaEventCreate(&to));
    CHECK(cudaMalloc((void **)&dx, sizeof x));
    CHECK(cudaMalloc((void **)&dy, sizeof y));
    CHECK(cudaMemcpy(dx, x, sizeof x, TO_DEVICE));
    CHECK(cudaMemcpy(dy, y, sizeof y, BY_ADDRESS));
    CHECK(cudaEventRecord(from, NULL));
    dim3 grid = {(N + threads - 1) / threads, 1, 1}, block = {threads, 1, 1};
    if (__cudaPushCallConfiguration(grid, block, 0, NULL) == 0)
        saxpy(2, dx, dy, N);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(to, NULL));
    CHECK(cudaEventSynchronize(to));
    CHECK(cudaEventElapsedTime(&ms, from, to));
    CHECK(cudaMemcpy(got, dy, sizeof got, TO_HOST));
    for (int i = 0; i < N; i++)
        expect(fabsf(got[i] - (2 * x[i] + 1)) < 1e-6f, "y is a x + y");
    EXPECT(ms > 0);
    CHECK(cudaFree(dx));
    CHECK(cudaFree(dy));
    CHECK(cudaFree(NULL));
}

static void launch_smooth(void) {
    static const float weights[5] = {1, 2, 3, 4, 5};
    float back[2] = {0};
    double *in = NULL, *out = NULL;
    CHECK(cudaMallocManaged((void **)&in, N * sizeof *in, 1));
    CHECK(cudaMallocManaged((void **)&out, N * sizeof *out, 1));
    for (int i = 0; i < N; i++)
        in[i] = i;
    CHECK(cudaMemcpyToSymbol(taps, weights, sizeof weights, 0, TO_DEVICE));
    CHECK(cudaMemcpyFromSymbol(back, taps, sizeof back, 2 * sizeof back[0], TO_HOST));
    EXPECT(fabsf(back[0] - 3) + fabsf(back[1] - 4) < 1e-6f);
    EXPECT(cudaMemcpyToSymbol(weights, weights, 4, 0, TO_DEVICE) == 13);
    EXPECT(cudaMemcpyToSymbol(taps, weights, sizeof weights, 4, TO_DEVICE) == 1);
    EXPECT(cudaGetLastError() == 1);
    dim3 grid = {4, 1, 1}, block = {256, 1, 1};
    if (__cudaPushCallConfiguration(grid, block, 0, NULL) == 0)
        smooth(in, out, N);
    CHECK(cudaDeviceSynchronize());
    EXPECT(fabs(out[10] - (8 + 2 * 9 + 3 * 10 + 4 * 11 + 5 * 12)) < 1e-9);
}

static void ask_device(void) {
    unsigned char properties[2048];
    int count = 0, version = 0, number = 0;
    float rows[2][3] = {{1, 2, 3}, {4, 5, 6}}, back[2][3] = {{0}}, *pitched = NULL;
    size_t pitch = 0;
    memset(properties, 0, sizeof properties);
    CHECK(cudaGetDeviceCount(&count));
    EXPECT(count == 2);
    CHECK(cudaRuntimeGetVersion(&version));
    EXPECT(version == RUNTIME_VERSION * 1000);
    CHECK(PROPERTIES(properties, 0));
    EXPECT(strstr((const char *)properties, "A100") != NULL);
    memcpy(&number, properties + SMS_AT, sizeof number);
    EXPECT(number == 108);
    memcpy(&number, properties + MAJOR_AT, sizeof number);
    EXPECT(number == 8);
    EXPECT(cudaSetDevice(2) == 101);
    EXPECT(strcmp(cudaGetErrorName(101), "cudaErrorInvalidDevice") == 0);
    EXPECT(cudaPeekAtLastError() == 101 && cudaGetLastError() == 101 && cudaGetLastError() == 0);
    CHECK(cudaMallocPitch((void **)&pitched, &pitch, sizeof rows[0], 2));
    EXPECT(pitch >= sizeof rows[0]);
    CHECK(cudaMemcpy2D(pitched, pitch, rows, sizeof rows[0], sizeof rows[0], 2, TO_DEVICE));
    CHECK(cudaMemcpy2D(back, sizeof rows[0], pitched, pitch, sizeof rows[0], 2, TO_HOST));
    for (int i = 0; i < 6; i++)
        EXPECT(fabsf(rows[i / 3][i % 3] - back[i / 3][i % 3]) < 1e-6f);
    EXPECT(cudaMemcpy(back, pitched, 4, 9) == 21);
    EXPECT(cudaGraphCreate(back, 0) == 801);
    (void)cudaGetLastError();
    CHECK(cudaSetDevice(1)); /* the module is loaded there, too */
    launch_saxpy(64);
    CHECK(cudaSetDevice(0));
}

static void go_wrong(void) {
    float *nowhere = (float *)64; /* NOLINT(performance-no-int-to-ptr): an address of no buffer */
    dim3 one = {1, 1, 1}, many = {4096, 1, 1}, block = {32, 1, 1};
    if (__cudaPushCallConfiguration(one, many, 0, NULL) == 0)
        saxpy(1, nowhere, nowhere, 1);
    EXPECT(cudaGetLastError() == 9);
    if (__cudaPushCallConfiguration(one, block, 0, NULL) == 0)
        saxpy(1, nowhere, nowhere, 32);
    EXPECT(cudaDeviceSynchronize() == 700);
    EXPECT(strcmp(cudaGetErrorName(700), "cudaErrorIllegalAddress") == 0);
    CHECK(cudaDeviceReset());
    launch_saxpy(128);
    missing();
}

int main(int argc, char **argv) {
    register_all(argv[1]);
    if (argc > 2) {
        launch_and_leave((unsigned)atoi(argv[2]));
        return 0;
    }
    launch_saxpy(256);
    launch_smooth();
    ask_device();
    go_wrong();
    return 0;
}
