/* Recorded launches of the stand-in: the bytes before and after, the bounds, and what is left when
 * a launch fails. */
#include "tests/fitness/device/driver_rig.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

/* Doubles each element, and adds the variable. */
static const char TEXT[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                           ".visible .global .align 4 .u32 more = 5;\n"
                           ".visible .entry twice(.param .u64 data, .param .u32 least) {\n"
                           ".reg .b32 %r<6>;\n.reg .b64 %d<4>;\n.reg .pred %p<2>;\n"
                           "ld.param.u64 %d1, [data];\nmov.u32 %r1, %tid.x;\n"
                           "mul.wide.u32 %d2, %r1, 4;\nadd.u64 %d3, %d1, %d2;\n"
                           "ld.global.u32 %r2, [%d3];\nld.global.u32 %r3, [more];\n"
                           "mad.lo.u32 %r4, %r2, 2, %r3;\nst.global.u32 [%d3], %r4;\nret;\n}\n";

static int open_driver(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/evoke-record-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return 1;
    (void)setenv("EVOKE_STANDIN_RECORD", folder, 1);
    (void)setenv("EVOKE_STANDIN_RECORD_LAUNCHES", "2", 1);
    (void)setenv("EVOKE_STANDIN_RECORD_MB", "1", 1);
    rig_open_driver("h200");
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    char line[128];
    snprintf(line, sizeof line, "rm -rf %s", folder);
    return system(line); /* NOLINT(cert-env33-c): a name of this test's own */
}

static const char *path_of(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/1/%s", folder, name);
    return path;
}

static bool exists(const char *name) {
    return access(path_of(name), F_OK) == 0;
}

/* Up to 4095 bytes of a file, NUL-terminated. */
static const char *text_of(const char *name) {
    static char text[4096];
    FILE *file = fopen(path_of(name), "rb");
    if (file == NULL)
        fail_msg("there is no %s", name);
    memset(text, 0, sizeof text);
    (void)!fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    return text;
}

static void expect_words(const char *name, unsigned first, unsigned second) {
    unsigned words[2];
    memcpy(words, text_of(name), sizeof words);
    assert_int_equal(words[0], first);
    assert_int_equal(words[1], second);
}

static CUfunction find(CUcontext *context) {
    CUmodule module = NULL;
    CUfunction f = NULL;
    *context = context_of(0);
    OK(cu.cuModuleLoadData(&module, TEXT));
    OK(cu.cuModuleGetFunction(&f, module, "twice"));
    return f;
}

static void launch(CUfunction f, CUdeviceptr data, unsigned threads, CUresult result) {
    int least = 3;
    void *params[] = {&data, &least};
    OK(cu.cuLaunchKernel(f, 1, 1, 1, threads, 1, 1, 0, NULL, params, NULL));
    assert_int_equal(cu.cuCtxSynchronize(), result);
}

static void test_launches(void **state) {
    (void)state;
    const unsigned words[2] = {10, 20};
    CUcontext c = NULL;
    CUdeviceptr data = 0, large = 0;
    OK(cu.cuInit(0));
    CUfunction f = find(&c);
    OK(cu.cuMemAlloc_v2(&data, sizeof words));
    OK(cu.cuMemcpyHtoD_v2(data, words, sizeof words));
    for (int i = 0; i < 3; i++)
        launch(f, data, 2, CUDA_SUCCESS);
    expect_words("1/0.before", 10, 20);
    expect_words("1/0.after", 25, 45);
    expect_words("2/0.before", 25, 45);
    expect_words("2/0.after", 55, 95);
    assert_memory_equal(text_of("1/1.before"), "\5\0\0\0", 4);
    const char *json = text_of("1/launch.json");
    assert_non_null(strstr(json, "{\"kernel\": \"twice\", \"number\": 1, \"result\": 0,"));
    assert_non_null(strstr(json, "\"grid\": [1, 1, 1], \"block\": [2, 1, 1], \"shared\": 0"));
    assert_non_null(strstr(json, "\"parameters\": [[0, 8], [8, 4]]"));
    assert_non_null(strstr(json, "03000000\",")); /* `least`, behind the address */
    assert_non_null(strstr(json, "\"bytes\": 4, \"variable\": \"more\"}]"));
    assert_false(exists("3")); /* two of a geometry */
    launch(f, data, 1, CUDA_SUCCESS);
    assert_true(exists("3/launch.json")); /* another geometry */
    assert_string_equal(text_of("kernels"), "twice\n");

    OK(cu.cuMemAlloc_v2(&large, 600000));
    OK(cu.cuMemsetD32_v2(large, 1, 150000));
    launch(f, large, 32, CUDA_SUCCESS);
    assert_false(exists("4"));
    assert_non_null(strstr(text_of("left"), "launch 5 (twice) is not recorded: its buffers before "
                                            "and after have 1.2 MB"));

    launch(f, data, 4, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_non_null(strstr(text_of("4/launch.json"), "\"result\": 700"));
    assert_non_null(strstr(text_of("said"), "out-of-bounds"));
    OK(cu.cuCtxDestroy_v2(c));
}

/* Names of C++: the length is part of the name. */
static void test_filter(void **state) {
    (void)state;
    CUcontext c = NULL;
    CUdeviceptr data = 0;
    CUfunction f = find(&c);
    OK(cu.cuMemAlloc_v2(&data, 1024));
    (void)setenv("EVOKE_STANDIN_RECORD_KERNEL", "wice", 1);
    launch(f, data, 96, CUDA_SUCCESS);
    assert_false(exists("5"));
    (void)setenv("EVOKE_STANDIN_RECORD_KERNEL", "twice", 1);
    launch(f, data, 96, CUDA_SUCCESS);
    assert_true(exists("5/launch.json"));
    OK(cu.cuCtxDestroy_v2(c));
}

static void test_tables(void **state) {
    (void)state;
    const void *table = NULL;
    const CUuuid id = {.bytes = "0123456789abcde"};
    assert_false(exists("tables"));
    IS(NOT_FOUND, cu.cuGetExportTable(&table, &id));
    assert_string_equal(text_of("tables"), "30313233343536373839616263646500\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launches),
        cmocka_unit_test(test_filter),
        cmocka_unit_test(test_tables),
    };
    return cmocka_run_group_tests(tests, open_driver, remove_folder);
}
