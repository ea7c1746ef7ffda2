/* A program with host code for the CUDA Driver API, whose launches test_from_run records. It knows
 * nothing of Evoke.
 *
 *   program KERNELS.ptx MODE [COUNT] */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
CUresult cuInit(unsigned flags);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, int device);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxSynchronize(void);
CUresult cuModuleLoad(CUmodule *module, const char *path);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module,
                              const char *name);
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared, void *stream, void **params,
                        void **extra);
CUresult cuGetExportTable(const void **table, const void *id);
CUresult cuGraphCreate(void);

static CUmodule module;

#define CHECK(call) check(call, #call)

static void check(CUresult result, const char *call) {
    if (result == 0)
        return;
    fprintf(stderr, "%s: error %d\n", call, result);
    exit(4);
}

static void start(const char *path) {
    CUcontext context = NULL;
    CHECK(cuInit(0));
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoad(&module, path));
}

static CUfunction find(const char *name) {
    CUfunction function = NULL;
    CHECK(cuModuleGetFunction(&function, module, name));
    return function;
}

/* A number from 0 to 1, the next of a fixed sequence. */
static double next(void) {
    static unsigned state = 1;
    state = state * 1664525u + 1013904223u;
    return (state >> 8) / 16777216.0;
}

static CUdeviceptr give(const void *data, size_t bytes) {
    CUdeviceptr address = 0;
    CHECK(cuMemAlloc_v2(&address, bytes));
    if (data != NULL)
        CHECK(cuMemcpyHtoD_v2(address, data, bytes));
    return address;
}

static CUdeviceptr give_floats(size_t count, double low, double high) {
    float *data = calloc(count, sizeof *data);
    if (data == NULL)
        exit(5);
    for (size_t i = 0; i < count; i++)
        data[i] = (float)(low + next() * (high - low));
    CUdeviceptr address = give(data, count * sizeof *data);
    free(data);
    return address;
}

static void launch(const char *name, unsigned gx, unsigned gy, unsigned bx, unsigned by,
                   void **params) {
    CHECK(cuLaunchKernel(find(name), gx, gy, 1, bx, by, 1, 0, NULL, params, NULL));
    CHECK(cuCtxSynchronize());
}

/* Five elements in each row, at columns that grow. */
static void spmv(int rows) {
    int *first = calloc((size_t)rows + 1, sizeof *first);
    int *columns = calloc((size_t)rows * 5, sizeof *columns);
    if (first == NULL || columns == NULL)
        exit(5);
    for (int i = 0; i < rows; i++) {
        first[i + 1] = 5 * (i + 1);
        for (int k = 0; k < 5; k++)
            columns[5 * i + k] = (int)((k + next()) * rows / 5);
    }
    CUdeviceptr f = give(first, ((size_t)rows + 1) * sizeof *first);
    CUdeviceptr c = give(columns, (size_t)rows * 5 * sizeof *columns);
    CUdeviceptr v = give_floats((size_t)rows * 5, -1, 1), x = give_floats((size_t)rows, 1, 2);
    CUdeviceptr y = give(NULL, (size_t)rows * sizeof(float));
    void *params[] = {&f, &c, &v, &x, &y, &rows};
    launch("_ZN3ops4spmvEPKiS1_PKfS3_Pfi", ((unsigned)rows + 63) / 64, 1, 64, 1, params);
    free(first);
    free(columns);
}

/* x and y are one allocation; y begins at an address of 4 bytes. */
static void saxpy(int n, int times) {
    CUdeviceptr pool = give_floats((size_t)n * 2 + 1, -3, 5), x = pool;
    CUdeviceptr y = pool + ((size_t)n + 1) * sizeof(float);
    for (int i = 0; i < times; i++) {
        float a = 0.5f + (float)i;
        void *params[] = {&a, &x, &y, &n};
        launch("_Z5saxpyfPKfPfi", ((unsigned)n + 127) / 128, 1, 128, 1, params);
    }
}

static void smooth(int n) {
    static const float taps[5] = {0.0625f, 0.25f, 0.375f, 0.25f, 0.0625f};
    CUdeviceptr address = 0;
    size_t bytes = 0;
    double *data = calloc((size_t)n, sizeof *data);
    if (data == NULL)
        exit(5);
    CHECK(cuModuleGetGlobal_v2(&address, &bytes, module, "taps"));
    CHECK(cuMemcpyHtoD_v2(address, taps, sizeof taps));
    for (int i = 0; i < n; i++)
        data[i] = next();
    CUdeviceptr in = give(data, (size_t)n * sizeof *data);
    CUdeviceptr out = give(data, (size_t)n * sizeof *data);
    void *params[] = {&in, &out, &n};
    launch("_Z6smoothPKdPdi", ((unsigned)n + 255) / 256, 1, 256, 1, params);
    free(data);
}

static void relax(int columns, int rows) {
    struct {
        CUdeviceptr heat;
        int columns, rows;
        float step;
    } plate = {give_floats((size_t)columns * (size_t)rows, 0, 100), columns, rows, 0.1f};
    CUdeviceptr to = give(NULL, (size_t)columns * (size_t)rows * sizeof(float));
    void *params[] = {&plate, &to};
    launch("_Z5relax5PlatePf", ((unsigned)columns + 15) / 16, ((unsigned)rows + 7) / 8, 16, 8,
           params);
}

/* A grid of the caller's choice, and a buffer that is longer than what is used of it. */
static void square(int n) {
    int *data = calloc((size_t)n + 1000, sizeof *data);
    if (data == NULL)
        exit(5);
    for (int i = 0; i < n + 1000; i++)
        data[i] = (int)(next() * 100);
    CUdeviceptr in = give(data, ((size_t)n + 1000) * sizeof *data);
    void *params[] = {&in, &n};
    launch("_Z6squareIiEvPT_i", 7, 1, 64, 1, params);
    free(data);
}

static void drift(int n) {
    typedef struct particle {
        float x, y, z;
        int cell;
    } particle;
    particle *data = calloc((size_t)n, sizeof *data);
    float step = 0.25f;
    if (data == NULL)
        exit(5);
    for (int i = 0; i < n; i++)
        data[i] = (particle){(float)next(), (float)next(), (float)next(), i % 8};
    CUdeviceptr particles = give(data, (size_t)n * sizeof *data), force = give_floats(8, -2, 2);
    for (int i = 0; i < 2; i++) {
        void *params[] = {&particles, &force, &step, &n};
        launch("_Z5driftP8ParticlePKffi", ((unsigned)n + 63) / 64, 1, 64, 1, params);
    }
    free(data);
}

/* The first launch leaves y as it is. */
static void choose(int n) {
    CUdeviceptr x = give_floats((size_t)n, 1, 2), y = give_floats((size_t)n, 0, 1);
    for (int flag = 0; flag < 2; flag++) {
        void *params[] = {&x, &y, &flag, &n};
        launch("_Z6choosePKfPfii", ((unsigned)n + 127) / 128, 1, 128, 1, params);
    }
}

/* As the CUDA runtime library begins, and gives up. */
static int ask_tables(void) {
    static const char id[16] = "some private one";
    const void *table = NULL;
    CHECK(cuInit(0));
    return cuGetExportTable(&table, id) == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
    const char *mode = argc > 2 ? argv[2] : "";
    int count = argc > 3 ? atoi(argv[3]) : 1000;
    if (strcmp(mode, "nothing") == 0)
        return 0;
    if (strcmp(mode, "tables") == 0)
        return ask_tables();
    start(argv[1]);
    if (strcmp(mode, "graph") == 0)
        (void)cuGraphCreate();
    if (strcmp(mode, "spmv") == 0) {
        spmv(count);
        spmv(count / 3);
    }
    if (strcmp(mode, "saxpy") == 0)
        saxpy(count, 4);
    if (strcmp(mode, "smooth") == 0)
        smooth(count);
    if (strcmp(mode, "relax") == 0) {
        relax(count, 40);
        relax(count / 2, 24);
    }
    if (strcmp(mode, "square") == 0)
        square(count);
    if (strcmp(mode, "drift") == 0)
        drift(count);
    if (strcmp(mode, "choose") == 0)
        choose(count);
    if (strcmp(mode, "fail") == 0) {
        saxpy(count, 1);
        fprintf(stderr, "the answer is wrong\n");
        return 3;
    }
    return 0;
}
