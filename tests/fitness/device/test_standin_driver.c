/* The stand-in as the driver that other programs expect: all names of it, processes that fork,
 * versions and what they take, contexts by every ABI, fat binaries, logs of failed loads,
 * attributes of launches, launches as before CUDA 4, rectangles, callbacks, and what kernels print.
 */
#include "tests/fitness/device/driver_rig.h"

#include "base/base64.h"
#include "tests/fitness/device/fatbins.h"

#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static int open_driver(void **state) {
    (void)state;
    rig_open_driver("h200,v100");
    return 0;
}

/* ---- names ---- */

typedef CUresult bare(void);

static bare *name_of(const char *symbol) {
    bare *f = NULL;
    rig_find(symbol, &f);
    return f;
}

static const char *const PYCUDA[] = {
#define NAME(symbol) #symbol,
#include "tests/fitness/device/pycuda_names.def"
#undef NAME
};

static void test_pycuda_names(void **state) {
    (void)state;
    size_t count = sizeof PYCUDA / sizeof PYCUDA[0];
    assert_int_equal(count, 156);
    for (size_t i = 0; i < count; i++)
        (void)name_of(PYCUDA[i]);
}

typedef struct other_name {
    const char *symbol, *body; /* NULL: none */
} other_name;

static const other_name OTHERS[] = {
#define CU_NAME(symbol, name, since) {#symbol, NULL},
#define CU_ALIAS(symbol, name, since, body) {#symbol, #body},
#include "fitness/device/standin/names.def"
#undef CU_NAME
#undef CU_ALIAS
};

enum {
    WITH_BODY = 0
#define CU_FN(symbol, name, since, scope, need, params, args) +1
#include "base/cuda/driver.def"
#undef CU_FN
};

static void test_all_names(void **state) {
    (void)state;
    size_t count = sizeof OTHERS / sizeof OTHERS[0];
    assert_int_equal(count + WITH_BODY, 672); /* of the 13.0 driver */
    for (size_t i = 0; i < count; i++) {
        bare *f = name_of(OTHERS[i].symbol);
        if (OTHERS[i].body != NULL)
            assert_ptr_equal(f, name_of(OTHERS[i].body));
        else
            IS(NOT_SUPPORTED, f());
    }
}

static void test_look_up(void **state) {
    (void)state;
    void *got = NULL, *want = NULL;
    int status = -1;
    OK(cu.cuGetProcAddress_v2("cuArrayCreate", &got, 13000, 0, &status));
    rig_find("cuArrayCreate_v2", &want);
    assert_ptr_equal(got, want);
    OK(cu.cuGetProcAddress_v2("cuArrayCreate", &got, 2000, 0, &status));
    rig_find("cuArrayCreate", &want);
    assert_ptr_equal(got, want);
    OK(cu.cuGetProcAddress_v2("cuMemcpy3D", &got, 13000, 2, &status));
    rig_find("cuMemcpy3D_v2_ptds", &want);
    assert_ptr_equal(got, want);
    OK(cu.cuGetProcAddress_v2("cuMemcpy3D", &got, 13000, 0, &status));
    rig_find("cuMemcpy3D_v2", &want);
    assert_ptr_equal(got, want);
}

static void test_export_table(void **state) {
    (void)state;
    const CUuuid id = {"0123456789abcde"};
    const void *table = &id;
    IS(NOT_FOUND, cu.cuGetExportTable(&table, &id));
    assert_null(table);
    IS(INVALID_VALUE, cu.cuGetExportTable(NULL, &id));
}

/* ---- before cuInit, and forks ---- */

static unsigned in_child(CUresult (*call)(void)) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit((int)call());
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return (unsigned)WEXITSTATUS(status);
}

static CUresult init(void) {
    return cu.cuInit(0);
}

static CUresult count_devices(void) {
    int count = 0;
    return cu.cuDeviceGetCount(&count);
}

static CUresult free_memory(void) {
    return cu.cuMemFree_v2(0);
}

static CUresult name_errors(void) {
    const char *text = NULL;
    return cu.cuGetErrorName(CUDA_SUCCESS, &text);
}

static void test_forks(void **state) {
    (void)state;
    IS(NOT_INITIALIZED, count_devices());
    assert_int_equal(in_child(init), CUDA_SUCCESS); /* the parent has not */
    OK(cu.cuInit(0));
    assert_int_equal(in_child(init), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(in_child(count_devices), CUDA_ERROR_NOT_INITIALIZED);
    CUcontext c = context_of(0);
    assert_int_equal(in_child(free_memory), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(in_child(name_errors), CUDA_SUCCESS);
    OK(cu.cuCtxDestroy_v2(c)); /* the parent is well */
}

/* ---- versions ---- */

static CUresult load_log(const void *image, char *info, char *error, size_t room) {
    CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {info, (void *)room, error, (void *)room};
    CUmodule module = NULL;
    memset(info, '?', room);
    memset(error, '?', room);
    CUresult result = cu.cuModuleLoadDataEx(&module, image, 4, options, values);
    assert_int_equal((size_t)values[1], strlen(info));
    assert_int_equal((size_t)values[3], strlen(error));
    assert_true(result != CUDA_SUCCESS || error[0] == '\0');
    return result;
}

#define NEW "/* made by\n hand */ // 9.9\n.version 8.5\n.target sm_70\n.address_size 64\n"

static void test_versions(void **state) {
    (void)state;
    const struct {
        const char *setting;
        int cuda;
        bool takes_85;
    } drivers[] = {{"12.4", 12040, false},
                   {"550", 12040, false},
                   {"12.5", 12050, true},
                   {"560", 12060, true},
                   {"", 13000, true}};
    CUcontext c = context_of(0);
    char info[400], error[400];
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++) {
        int version = 0;
        (void)setenv("EVOKE_STANDIN_DRIVER", drivers[i].setting, 1);
        OK(cu.cuDriverGetVersion(&version));
        assert_int_equal(version, drivers[i].cuda);
        CUresult result = load_log(NEW ".entry k() { ret; }\n", info, error, sizeof info);
        assert_int_equal(result,
                         drivers[i].takes_85 ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    }
    (void)setenv("EVOKE_STANDIN_DRIVER", "12.4", 1);
    IS(UNSUPPORTED_PTX_VERSION, load_log(NEW "what is this\n", info, error, sizeof info));
    assert_non_null(strstr(error, "line 3"));
    assert_non_null(strstr(error, "Unsupported .version 8.5; current version is '8.4'"));
    assert_non_null(strstr(info, "ptxas info"));
    void *got = NULL;
    IS(INVALID_VALUE, cu.cuGetProcAddress_v2("cuMemAlloc", &got, 13000, 0, NULL));
    (void)unsetenv("EVOKE_STANDIN_DRIVER");
    OK(cu.cuCtxDestroy_v2(c));
}

static CUresult init_wrongly(void) {
    (void)setenv("EVOKE_STANDIN_DRIVER", "7.0", 1);
    return cu.cuInit(0) == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

static void test_no_such_version(void **state) {
    (void)state;
    assert_int_equal(in_child(init_wrongly), CUDA_SUCCESS);
}

/* The linker's logs are those it was made with: Numba reads them there. */
static void test_link_logs(void **state) {
    (void)state;
    CUcontext c = context_of(0);
    char info[300] = "", error[300] = "", wrong[] = NEW "what is this\n";
    CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {info, (void *)sizeof info, error, (void *)sizeof error};
    CUlinkState link = NULL;
    OK(cu.cuLinkCreate_v2(4, options, values, &link));
    IS(INVALID_PTX,
       cu.cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, wrong, sizeof wrong, "w", 0, NULL, NULL));
    assert_non_null(strstr(error, "line 6"));
    assert_int_equal((size_t)values[3], strlen(error));
    IS(FILE_NOT_FOUND, cu.cuLinkAddFile_v2(link, CU_JIT_INPUT_PTX, "nowhere", 0, NULL, NULL));
    OK(cu.cuLinkDestroy(link));
    OK(cu.cuCtxDestroy_v2(c));
}

/* ---- contexts ---- */

static void test_contexts(void **state) {
    (void)state;
    CUcontext c = NULL, same = NULL;
    CUctxCreateParams zero = {0}, some = {.affinity_count = 1};
    OK(cu.cuCtxCreate_v4(&c, &zero, 0, 0));
    OK(cu.cuCtxDestroy_v2(c));
    OK(cu.cuCtxCreate_v4(&c, NULL, 0, 0));
    OK(cu.cuCtxDestroy_v2(c));
    OK(cu.cuCtxCreate_v3(&c, NULL, 0, 0, 0));
    OK(cu.cuCtxDestroy_v2(c));
    IS(NOT_SUPPORTED, cu.cuCtxCreate_v4(&c, &some, 0, 0));
    IS(NOT_SUPPORTED, cu.cuCtxCreate_v3(&c, &some, 1, 0, 0));
    IS(INVALID_VALUE, cu.cuCtxCreate_v3(&c, NULL, 1, 0, 0));
    c = context_of(0);
    OK(cu.cuCtxAttach(&same, 0));
    assert_ptr_equal(same, c);
    IS(INVALID_VALUE, cu.cuCtxAttach(&same, 1));
    OK(cu.cuCtxDetach(c));
    OK(cu.cuCtxSynchronize()); /* still there */
    CUcontext far = context_of(1);
    CUdevice d = -1;
    OK(cu.cuCtxGetDevice_v2(&d, c));
    assert_int_equal(d, 0);
    OK(cu.cuCtxGetDevice_v2(&d, NULL));
    assert_int_equal(d, 1);
    OK(cu.cuCtxGetDevice_v2(&d, (CUcontext)(void *)&d)); /* what a register held by chance */
    assert_int_equal(d, 1);
    OK(cu.cuCtxSynchronize_v2(c));
    OK(cu.cuStreamGetCtx_v2(NULL, &same, NULL));
    assert_ptr_equal(same, far);
    OK(cu.cuCtxDestroy_v2(far));
    OK(cu.cuCtxDetach(c));
    IS(INVALID_CONTEXT, cu.cuCtxDetach(c));
    IS(INVALID_CONTEXT, cu.cuCtxSynchronize());
    OK(cu.cuCtxSetCurrent(NULL));
}

/* ---- fat binaries ---- */

static ev_str unpacked(const char *base64) {
    ev_str bytes = EV_STR_EMPTY;
    ev_error err;
    if (ev_base64_decode(base64, &bytes, &err) != EV_OK)
        fail_msg("%s", err.text);
    return bytes;
}

/* What `set` of a module stores, given 40. */
static unsigned set_40(CUmodule module) {
    CUfunction set = NULL;
    CUdeviceptr out = 0;
    unsigned value = 40, got = 0;
    void *params[] = {&out, &value};
    OK(cu.cuModuleGetFunction(&set, module, "set"));
    OK(cu.cuMemAlloc_v2(&out, 4));
    OK(cu.cuLaunchKernel(set, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cu.cuMemcpyDtoH_v2(&got, out, 4));
    OK(cu.cuMemFree_v2(out));
    return got;
}

typedef struct wrapper {
    uint32_t magic, version;
    const void *container, *unused;
} wrapper;

static void load_all_ways(CUdevice device, const void *image, unsigned want) {
    CUcontext c = context_of(device);
    const wrapper around = {0x466243b1, 1, image, NULL};
    CUmodule modules[3] = {NULL};
    CUlibrary library = NULL;
    OK(cu.cuModuleLoadData(&modules[0], image));
    OK(cu.cuModuleLoadFatBinary(&modules[1], image));
    OK(cu.cuModuleLoadData(&modules[2], &around));
    for (int i = 0; i < 3; i++)
        assert_int_equal(set_40(modules[i]), want);
    OK(cu.cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
    OK(cu.cuLibraryGetModule(&modules[0], library));
    assert_int_equal(set_40(modules[0]), want);
    OK(cu.cuCtxDestroy_v2(c));
}

static void test_fatbins(void **state) {
    (void)state;
    const char *const texts[] = {FATBIN_PLAIN, FATBIN_LZ4, FATBIN_ZSTD};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        ev_str image = unpacked(texts[i]);
        load_all_ways(0, image.data, 41); /* h200: the text for sm_80, not the one for sm_120 */
        load_all_ways(1, image.data, 40); /* v100 */
        ev_str_free(&image);
    }
}

/* Every byte of the first entry spoilt: an answer, whatever it is. */
static void test_bad_fatbins(void **state) {
    (void)state;
    CUcontext c = context_of(0);
    char info[400], error[400];
    CUmodule module = NULL;
    ev_str image = unpacked(FATBIN_LZ4);
    for (size_t i = 16; i < 400; i++) {
        char old = image.data[i];
        image.data[i] = (char)(old ^ 0x41);
        CUresult result = cu.cuModuleLoadData(&module, image.data);
        if (result == CUDA_SUCCESS)
            OK(cu.cuModuleUnload(module));
        image.data[i] = old;
    }
    image.data[28 + 16] = image.data[248 + 80 + 28 + 16] = (char)100; /* both are for sm_100 now */
    IS(NO_BINARY_FOR_GPU, load_log(image.data, info, error, sizeof info));
    assert_non_null(strstr(error, "no PTX text for this device"));
    char top = image.data[15];
    image.data[15] = (char)0xff; /* longer than any memory */
    IS(INVALID_IMAGE, cu.cuModuleLoadData(&module, image.data));
    image.data[15] = top;
    image.data[8]++; /* longer than its entries */
    IS(INVALID_IMAGE, load_log(image.data, info, error, sizeof info));
    assert_non_null(strstr(error, "malformed"));
    IS(INVALID_IMAGE, cu.cuModuleLoadFatBinary(&module, "text"));
    IS(NO_BINARY_FOR_GPU, load_log("\177ELF\2\1\1", info, error, sizeof info));
    assert_non_null(strstr(error, "machine code"));
    ev_str_free(&image);
    OK(cu.cuCtxDestroy_v2(c));
}

static void test_fatbin_file(void **state) {
    (void)state;
    CUcontext c = context_of(0);
    char path[] = "/tmp/test_standin_fatbin_XXXXXX";
    CUmodule module = NULL;
    ev_str image = unpacked(FATBIN_LZ4);
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, image.data, image.length), (long)image.length);
    OK(cu.cuModuleLoad(&module, path));
    assert_int_equal(set_40(module), 41);
    for (long bytes = 300; bytes > 3; bytes -= 37) {
        assert_int_equal(ftruncate(file, bytes), 0);
        IS(INVALID_IMAGE, cu.cuModuleLoad(&module, path));
    }
    assert_int_equal(close(file) + unlink(path), 0);
    ev_str_free(&image);
    OK(cu.cuCtxDestroy_v2(c));
}

/* ---- launches ---- */

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

/* out[thread] = value, and prints both by `printf("%d of %d\n", thread, value)` */
static const char PRINTS[] = HEAD
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
    ".global .align 1 .b8 text[10] = {37, 100, 32, 111, 102, 32, 37, 100, 10, 0};\n"
    ".global .align 4 .u32 table[4] = {5, 6, 7, 8};\n"
    ".global .align 8 .v2 .u32 pairs[2] = {{10, 20}, {30, 40}};\n"
    ".visible .entry go(.param .u64 out, .param .u32 value)\n{\n"
    ".local .align 8 .b8 args[8];\n.reg .b32 %r<8>;\n.reg .b64 %d<8>;\n"
    "ld.param.u64 %d1, [out];\nld.param.u32 %r1, [value];\nmov.u32 %r2, %tid.x;\n"
    "mul.wide.u32 %d2, %r2, 4;\nadd.u64 %d1, %d1, %d2;\nst.global.u32 [%d1], %r1;\n"
    "mov.u64 %d3, args;\nst.local.u32 [%d3], %r2;\nst.local.u32 [%d3+4], %r1;\n"
    "cvta.local.u64 %d3, %d3;\nmov.u64 %d4, text[0];\ncvta.global.u64 %d4, %d4;\n"
    "{\n.param .b64 f;\nst.param.b64 [f], %d4;\n.param .b64 a;\nst.param.b64 [a], %d3;\n"
    ".param .b32 r;\ncall.uni (r), vprintf, (f, a);\n}\nret;\n}\n"
    ".visible .entry third(.param .u64 out, .param .u32 value)\n{\n"
    ".reg .b32 %r<4>;\n.reg .b64 %d<4>;\nld.param.u64 %d1, [out];\n"
    "mov.u64 %d2, table[2];\nld.global.u32 %r1, [%d2];\nst.global.u32 [%d1], %r1;\n"
    "mov.u64 %d2, pairs[1];\nld.global.u32 %r1, [%d2];\nst.global.u32 [%d1+4], %r1;\nret;\n}\n";

typedef struct work {
    CUcontext context;
    CUfunction go, third;
    CUdeviceptr out;
} work;

static work work_of(void) {
    work w = {.context = context_of(0)};
    CUmodule module = NULL;
    OK(cu.cuModuleLoadData(&module, PRINTS));
    OK(cu.cuModuleGetFunction(&w.go, module, "go"));
    OK(cu.cuModuleGetFunction(&w.third, module, "third"));
    OK(cu.cuMemAlloc_v2(&w.out, 4096));
    return w;
}

static unsigned value_at(CUdeviceptr at) {
    unsigned value = 0;
    OK(cu.cuMemcpyDtoH_v2(&value, at, sizeof value));
    return value;
}

/* stdout from here on goes to a file, until it is read. */
typedef struct capture {
    int old;
    FILE *file;
} capture;

static capture begin_capture(void) {
    (void)fflush(stdout);
    capture c = {.old = dup(1), .file = tmpfile()};
    if (c.old < 0 || c.file == NULL)
        abort();
    assert_int_equal(dup2(fileno(c.file), 1), 1);
    return c;
}

static size_t captured(const capture *c) {
    (void)fflush(stdout);
    return (size_t)lseek(fileno(c->file), 0, SEEK_END);
}

static void end_capture(capture *c, char *text, size_t room) {
    (void)fflush(stdout);
    ssize_t length = pread(fileno(c->file), text, room - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    assert_int_equal(dup2(c->old, 1), 1);
    (void)close(c->old);
    (void)fclose(c->file);
}

static void test_prints(void **state) {
    (void)state;
    work w = work_of();
    unsigned value = 9;
    char text[100], long_text[40000];
    void *params[] = {&w.out, &value};
    capture c = begin_capture();
    OK(cu.cuLaunchKernel(w.go, 1, 1, 1, 3, 1, 1, 0, NULL, params, NULL));
    OK(cu.cuLaunchKernel(w.go, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    bool early = captured(&c) > 0;
    OK(cu.cuCtxSynchronize());
    end_capture(&c, text, sizeof text);
    assert_false(early);
    assert_string_equal(text, "0 of 9\n1 of 9\n2 of 9\n0 of 9\n");
    /* of more than the limit, the end */
    OK(cu.cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 1024));
    c = begin_capture();
    for (int i = 0; i < 4; i++)
        OK(cu.cuLaunchKernel(w.go, 1, 1, 1, 1000, 1, 1, 0, NULL, params, NULL));
    OK(cu.cuCtxDestroy_v2(w.context)); /* waits, too */
    end_capture(&c, long_text, sizeof long_text);
    assert_int_equal(strlen(long_text), 1024);
    assert_string_equal(long_text + 1024 - 9, "999 of 9\n");
}

static void test_index(void **state) {
    (void)state;
    work w = work_of();
    unsigned value = 0;
    void *params[] = {&w.out, &value};
    OK(cu.cuLaunchKernel(w.third, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    assert_int_equal(value_at(w.out), 7);
    assert_int_equal(value_at(w.out + 4), 20); /* scalars are counted, as ptxas 13.0 does */
    OK(cu.cuCtxDestroy_v2(w.context));
}

static void test_attributes(void **state) {
    (void)state;
    work w = work_of();
    unsigned value = 1;
    void *params[] = {&w.out, &value};
    CUlaunchAttribute hints[] = {
        {.id = CU_LAUNCH_ATTRIBUTE_IGNORE},
        {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, .value.cooperative = 1},
        {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY},
        {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.cluster = {1, 1, 1}},
        {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1},
    };
    CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, NULL, hints, 5};
    OK(cu.cuLaunchKernelEx(&config, w.third, params, NULL));
    assert_int_equal(value_at(w.out), 7);
    config.gridDimX = 1 << 20;
    IS(COOPERATIVE_LAUNCH_TOO_LARGE, cu.cuLaunchKernelEx(&config, w.third, params, NULL));
    IS(COOPERATIVE_LAUNCH_TOO_LARGE,
       cu.cuLaunchCooperativeKernel(w.third, 1 << 20, 1, 1, 1, 1, 1, 0, NULL, params));
    OK(cu.cuLaunchCooperativeKernel(w.third, 1, 1, 1, 1, 1, 1, 0, NULL, params));
    config.gridDimX = 2;
    hints[3].value.cluster[0] = 2;
    IS(NOT_SUPPORTED, cu.cuLaunchKernelEx(&config, w.third, params, NULL));
    hints[3].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
    IS(NOT_SUPPORTED, cu.cuLaunchKernelEx(&config, w.third, params, NULL));
    OK(cu.cuCtxDestroy_v2(w.context));
}

/* As PyCUDA prepares calls. */
static void test_legacy_launches(void **state) {
    (void)state;
    work w = work_of();
    CUfunction f = w.third;
    CUdeviceptr out = w.out;
    IS(INVALID_VALUE, cu.cuLaunch(f)); /* no block yet */
    OK(cu.cuFuncSetBlockShape(f, 1, 1, 1));
    IS(INVALID_VALUE, cu.cuFuncSetBlockShape(f, 0, 1, 1));
    OK(cu.cuFuncSetSharedSize(f, 64));
    OK(cu.cuParamSetv(f, 0, &out, sizeof out));
    OK(cu.cuParamSeti(f, 8, 3));
    OK(cu.cuParamSetSize(f, 8));
    IS(INVALID_VALUE, cu.cuLaunch(f)); /* one argument too few */
    OK(cu.cuParamSetSize(f, 12));
    OK(cu.cuLaunch(f));
    assert_int_equal(value_at(out), 7);
    out += 8;
    OK(cu.cuParamSetv(f, 0, &out, sizeof out));
    OK(cu.cuLaunchGrid(f, 2, 2));
    assert_int_equal(value_at(out), 7);
    OK(cu.cuParamSetf(f, 8, 1.5f));
    OK(cu.cuLaunchGridAsync(f, 1, 1, NULL));
    IS(INVALID_VALUE, cu.cuLaunchGrid(f, 0, 1));
    IS(INVALID_VALUE, cu.cuParamSeti(f, 4093, 1));
    IS(INVALID_VALUE, cu.cuParamSetv(f, 0, &out, 5000));
    IS(INVALID_HANDLE, cu.cuLaunch(NULL));
    OK(cu.cuCtxSynchronize());
    OK(cu.cuCtxDestroy_v2(w.context));
}

static const char ASSERTS[] =
    HEAD ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, "
         ".param .b64 e);\n.visible .entry go()\n{\n"
         "{\n.param .b64 a;\nst.param.b64 [a], 0;\n.param .b64 b;\nst.param.b64 [b], 0;\n"
         ".param .b32 c;\nst.param.b32 [c], 7;\n.param .b64 d;\nst.param.b64 [d], 0;\n"
         ".param .b64 e;\nst.param.b64 [e], 1;\n"
         "call.uni __assertfail, (a, b, c, d, e);\n}\nret;\n}\n";

static void test_asserts(void **state) {
    (void)state;
    CUcontext c = context_of(0);
    CUmodule module = NULL;
    CUfunction go = NULL;
    OK(cu.cuModuleLoadData(&module, ASSERTS));
    OK(cu.cuModuleGetFunction(&go, module, "go"));
    OK(cu.cuLaunchKernel(go, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    IS(ASSERT, cu.cuCtxSynchronize());
    OK(cu.cuCtxDestroy_v2(c));
}

/* ---- rectangles, callbacks, libraries ---- */

static void test_rectangles(void **state) {
    (void)state;
    work w = work_of();
    char from[6][8], to[4][4], want[4][4];
    for (int i = 0; i < 48; i++)
        from[i / 8][i % 8] = (char)i;
    for (int i = 0; i < 16; i++)
        want[i / 4][i % 4] = from[1 + i / 4][2 + i % 4];
    CUmemcpy2D c = {.srcXInBytes = 2,
                    .srcY = 1,
                    .srcMemoryType = CU_MEMORYTYPE_HOST,
                    .srcHost = from,
                    .srcPitch = 8,
                    .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                    .dstDevice = w.out,
                    .dstPitch = 512,
                    .WidthInBytes = 4,
                    .Height = 4};
    OK(cu.cuMemcpy2D_v2(&c));
    c = (CUmemcpy2D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                     .srcDevice = w.out,
                     .srcPitch = 512,
                     .dstMemoryType = CU_MEMORYTYPE_HOST,
                     .dstHost = to,
                     .WidthInBytes = 4,
                     .Height = 4};
    OK(cu.cuMemcpy2DAsync_v2(&c, NULL));
    OK(cu.cuCtxSynchronize());
    assert_memory_equal(to, want, sizeof want);
    c.srcPitch = 2;
    IS(INVALID_VALUE, cu.cuMemcpy2DUnaligned_v2(&c));
    c.srcMemoryType = CU_MEMORYTYPE_ARRAY; /* without one */
    IS(INVALID_HANDLE, cu.cuMemcpy2D_v2(&c));
    OK(cu.cuCtxDestroy_v2(w.context));
}

static void keep_status(CUstream stream, CUresult status, void *data) {
    (void)stream;
    *(CUresult *)data = status;
}

static void await_flag(void *flag) {
    while (!atomic_load((atomic_bool *)flag))
        (void)usleep(100);
}

/* One behind a fault is told of it, where it was given before that. */
static void test_callbacks(void **state) {
    (void)state;
    work w = work_of();
    atomic_bool all_given = false;
    CUresult told = CUDA_ERROR_UNKNOWN;
    CUdeviceptr nowhere = 64;
    unsigned value = 0;
    void *params[] = {&nowhere, &value};
    OK(cu.cuStreamAddCallback(NULL, keep_status, &told, 0));
    OK(cu.cuCtxSynchronize());
    OK(told);
    IS(INVALID_VALUE, cu.cuStreamAddCallback(NULL, NULL, &told, 0));
    OK(cu.cuLaunchHostFunc(NULL, await_flag, &all_given));
    OK(cu.cuLaunchKernel(w.third, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cu.cuStreamAddCallback(NULL, keep_status, &told, 0));
    atomic_store(&all_given, true);
    IS(ILLEGAL_ADDRESS, cu.cuCtxSynchronize());
    IS(ILLEGAL_ADDRESS, told);
    OK(cu.cuCtxDestroy_v2(w.context));
}

static void test_libraries(void **state) {
    (void)state;
    CUcontext c = context_of(0);
    CUlibrary library = NULL;
    CUkernel kernel = NULL;
    CUdeviceptr table = 0;
    unsigned count = 0;
    size_t bytes = 0;
    int value = 0;
    const char *name = NULL;
    OK(cu.cuLibraryLoadData(&library, PRINTS, NULL, NULL, 0, NULL, NULL, 0));
    OK(cu.cuLibraryGetKernelCount(&count, library));
    assert_int_equal(count, 2);
    OK(cu.cuLibraryGetGlobal(&table, &bytes, library, "table"));
    assert_int_equal(bytes, 16);
    assert_int_equal(value_at(table + 4), 6);
    OK(cu.cuLibraryGetKernel(&kernel, library, "third"));
    OK(cu.cuKernelGetName(&name, kernel));
    assert_string_equal(name, "third");
    OK(cu.cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 0));
    assert_int_equal(value, 1024);
    IS(INVALID_DEVICE, cu.cuKernelSetAttribute(0, 1, kernel, 9));
    OK(cu.cuCtxDestroy_v2(c));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_such_version),
        cmocka_unit_test(test_forks), /* starts the driver */
        cmocka_unit_test(test_pycuda_names),
        cmocka_unit_test(test_all_names),
        cmocka_unit_test(test_look_up),
        cmocka_unit_test(test_export_table),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_link_logs),
        cmocka_unit_test(test_contexts),
        cmocka_unit_test(test_fatbins),
        cmocka_unit_test(test_bad_fatbins),
        cmocka_unit_test(test_fatbin_file),
        cmocka_unit_test(test_prints),
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_legacy_launches),
        cmocka_unit_test(test_asserts),
        cmocka_unit_test(test_rectangles),
        cmocka_unit_test(test_callbacks),
        cmocka_unit_test(test_libraries),
    };
    return cmocka_run_group_tests(tests, open_driver, NULL);
}
