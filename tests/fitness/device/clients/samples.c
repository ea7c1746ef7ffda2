/* The calls of the toolkit's driver samples: a query of each device (deviceQueryDrv), vectors added
 * from a fat binary in a context with zeroed parameters (vectorAddDrv), a tiled product with its
 * arguments packed (matrixMulDrv), contexts that go from thread to thread (threadMigration), and
 * the error of a kernel that writes to nowhere.
 *
 *   samples kernels.ptx */
#include "tests/fitness/device/clients/client.h"

#include <math.h>
#include <pthread.h>

#define N 1000
#define SIDE 64
#define THREADS 4

/* ---- queries ---- */

static void query(CUdevice device, int devices) {
    char name[256];
    int major = 0, minor = 0, value = 0, can = 0;
    size_t bytes = 0;
    CHECK(cuDeviceGetName(name, sizeof name, device));
    CHECK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
    CHECK(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
    CHECK(cuDeviceTotalMem_v2(&bytes, device));
    for (int i = 1; i <= 120; i++)
        CHECK(cuDeviceGetAttribute(&value, i, device));
    for (CUdevice peer = 0; peer < devices; peer++) {
        if (peer != device)
            CHECK(cuDeviceCanAccessPeer(&can, device, peer));
    }
    MUST(bytes > 0 && major >= 7, "a device has no memory, or no capability");
    printf("%s: %d.%d, %zu bytes\n", name, major, minor, bytes);
}

/* ---- a fat binary, as nvcc lays one out: a header of 16 bytes, an entry of 64, the text ---- */

static void put(char *to, unsigned long long value, unsigned bytes) {
    memcpy(to, &value, bytes); /* little-endian */
}

static const char *fatbin_of(const char *text, size_t bytes, int sm) {
    static char made[1 << 16];
    size_t payload = (bytes + 1 + 7) / 8 * 8;
    char *entry = made + 16;
    MUST(payload <= sizeof made - 16 - 64, "the text is too long");
    put(made, 0xba55ed50, 4);
    put(made + 4, 1, 2);
    put(made + 6, 16, 2);
    put(made + 8, 64 + payload, 8);
    put(entry, 1, 2); /* PTX */
    put(entry + 2, 0x0101, 2);
    put(entry + 4, 64, 4);
    put(entry + 8, payload, 8);
    put(entry + 28, (unsigned)sm, 4);
    memcpy(entry + 64, text, bytes);
    return made;
}

static void add_vectors(const char *text, size_t bytes) {
    CUctxCreateParams params = {0};
    CUcontext context = NULL;
    CUmodule module = NULL;
    CUfunction add = NULL;
    CUdeviceptr d[3];
    static float a[N], b[N], c[N];
    const char *image = fatbin_of(text, bytes, 80);
    fill(a, N, 1);
    fill(b, N, 2);
    CHECK(cuCtxCreate_v4(&context, &params, 0, 0));
    CHECK(cuModuleLoadData(&module, image));
    CHECK(cuModuleGetFunction(&add, module, "vector_add"));
    for (int i = 0; i < 3; i++)
        CHECK(cuMemAlloc_v2(&d[i], sizeof a));
    CHECK(cuMemcpyHtoD_v2(d[0], a, sizeof a));
    CHECK(cuMemcpyHtoD_v2(d[1], b, sizeof b));
    int n = N;
    void *args[] = {&d[0], &d[1], &d[2], &n};
    CHECK(cuLaunchKernel(add, (N + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, args, NULL));
    CHECK(cuCtxSynchronize());
    CHECK(cuMemcpyDtoH_v2(c, d[2], sizeof c));
    check_sums(a, b, c, N);
    for (int i = 0; i < 3; i++)
        CHECK(cuMemFree_v2(d[i]));
    CHECK(cuCtxDestroy_v2(context));
    printf("vectors: right\n");
}

/* ---- a product, its arguments packed ---- */

static void check_product(const float *a, const float *b, const float *c) {
    for (int i = 0; i < SIDE * SIDE; i++) {
        double sum = 0;
        for (int k = 0; k < SIDE; k++)
            sum += (double)a[i / SIDE * SIDE + k] * (double)b[k * SIDE + i % SIDE];
        MUST(fabs(sum - (double)c[i]) < 1e-3, "a product is wrong");
    }
}

static void multiply(const char *text) {
    CUcontext context = NULL;
    CUmodule module = NULL;
    CUfunction sgemm = NULL;
    static float a[SIDE * SIDE], b[SIDE * SIDE], c[SIDE * SIDE];
    struct {
        CUdeviceptr a, b, c;
        int n;
    } args = {.n = SIDE};
    size_t bytes = offsetof(__typeof__(args), n) + sizeof args.n;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    fill(a, SIDE * SIDE, 3);
    fill(b, SIDE * SIDE, 4);
    CHECK(cuCtxCreate_v4(&context, NULL, 0, 0));
    CHECK(cuModuleLoadDataEx(&module, text, 0, NULL, NULL));
    CHECK(cuModuleGetFunction(&sgemm, module, "sgemm"));
    CHECK(cuMemAlloc_v2(&args.a, sizeof a));
    CHECK(cuMemAlloc_v2(&args.b, sizeof b));
    CHECK(cuMemAlloc_v2(&args.c, sizeof c));
    CHECK(cuMemcpyHtoD_v2(args.a, a, sizeof a));
    CHECK(cuMemcpyHtoD_v2(args.b, b, sizeof b));
    CHECK(cuLaunchKernel(sgemm, SIDE / 16, SIDE / 16, 1, 16, 16, 1, 0, NULL, NULL, extra));
    CHECK(cuMemcpyDtoH_v2(c, args.c, sizeof c));
    check_product(a, b, c);
    CHECK(cuCtxDestroy_v2(context));
    printf("product: right\n");
}

/* ---- contexts that go from thread to thread ---- */

typedef struct migrant {
    CUcontext context;
    CUfunction add;
    CUdeviceptr d[3];
} migrant;

static migrant settle(const char *text) {
    migrant m = {0};
    CUmodule module = NULL;
    CUcontext popped = NULL;
    CHECK(cuCtxCreate_v4(&m.context, NULL, 0, 0));
    CHECK(cuModuleLoadData(&module, text));
    CHECK(cuModuleGetFunction(&m.add, module, "vector_add"));
    for (int i = 0; i < 3; i++)
        CHECK(cuMemAlloc_v2(&m.d[i], N * sizeof(float)));
    CHECK(cuCtxPopCurrent_v2(&popped));
    MUST(popped == m.context, "another context was popped");
    return m;
}

static void *visit(void *data) {
    migrant *m = data;
    float a[N], b[N], c[N];
    int n = N;
    void *args[] = {&m->d[0], &m->d[1], &m->d[2], &n};
    fill(a, N, 5);
    fill(b, N, 6);
    must_be(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize(), "a thread has a context by birth");
    CHECK(cuCtxPushCurrent_v2(m->context));
    CHECK(cuMemcpyHtoD_v2(m->d[0], a, sizeof a));
    CHECK(cuMemcpyHtoD_v2(m->d[1], b, sizeof b));
    CHECK(cuLaunchKernel(m->add, (N + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, args, NULL));
    CHECK(cuMemcpyDtoH_v2(c, m->d[2], sizeof c));
    CHECK(cuCtxPopCurrent_v2(NULL));
    check_sums(a, b, c, N);
    return data;
}

static void migrate(const char *text) {
    pthread_t threads[THREADS];
    migrant own[THREADS], shared = settle(text);
    for (int i = 0; i < THREADS; i++) {
        own[i] = settle(text);
        MUST(pthread_create(&threads[i], NULL, visit, &own[i]) == 0, "no thread");
    }
    for (int i = 0; i < THREADS; i++)
        MUST(pthread_join(threads[i], NULL) == 0, "a thread is lost");
    for (int i = 0; i < THREADS; i++) { /* one context, one thread after another */
        MUST(pthread_create(&threads[0], NULL, visit, &shared) == 0, "no thread");
        MUST(pthread_join(threads[0], NULL) == 0, "a thread is lost");
        CHECK(cuCtxDestroy_v2(own[i].context));
    }
    CHECK(cuCtxDestroy_v2(shared.context));
    printf("contexts from thread to thread: right\n");
}

/* ---- an error ---- */

static void go_wrong(const char *text) {
    migrant m = settle(text);
    CUdeviceptr nowhere = 64;
    int n = N;
    const char *name = NULL;
    void *args[] = {&nowhere, &nowhere, &nowhere, &n};
    CHECK(cuCtxPushCurrent_v2(m.context));
    CHECK(cuLaunchKernel(m.add, 1, 1, 1, 256, 1, 1, 0, NULL, args, NULL));
    must_be(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize(), "the wait");
    must_be(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemFree_v2(m.d[0]), "the next call");
    CHECK(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &name));
    MUST(strcmp(name, "CUDA_ERROR_ILLEGAL_ADDRESS") == 0, "the error has another name");
    CHECK(cuCtxDestroy_v2(m.context));
    printf("an access to nowhere: 700\n");
}

int main(int argc, char **argv) {
    int version = 0, devices = 0;
    size_t bytes = 0;
    char *text = read_text(argc > 1 ? argv[1] : "kernels.ptx", &bytes);
    CHECK(cuInit(0));
    CHECK(cuDriverGetVersion(&version));
    CHECK(cuDeviceGetCount(&devices));
    for (CUdevice device = 0; device < devices; device++)
        query(device, devices);
    add_vectors(text, bytes);
    multiply(text);
    migrate(text);
    go_wrong(text);
    free(text);
    return 0;
}
