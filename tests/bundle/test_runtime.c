/* The library of evoke/bundle.h on the stand-in for the driver: what is launched is right,
 * everything that cannot be launched is refused before, and several GPUs and threads share a
 * bundle. */
#include "base/cuda/driver.h"
#include "base/file.h"
#include "bundle/bundle.h"
#include "tests/bundle/sample.h"

#include <evoke/bundle.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST 4096

static cu_driver cu;
static CUcontext contexts[2]; /* an H200, an A100 */

#define OK(call) assert_int_equal((call), CUDA_SUCCESS)

static int open_all(void **state) {
    ev_error err = {0};
    if (sample_make_folder(state) != 0 || sample_write(sample_path("b.tar"), &err) != EV_OK ||
        sample_write(sample_path("b"), &err) != EV_OK || cu_driver_find(&cu, &err) != EV_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    return cu.cuInit(0) != CUDA_SUCCESS || cu.cuCtxCreate_v2(&contexts[0], 0, 0) != CUDA_SUCCESS ||
           cu.cuCtxCreate_v2(&contexts[1], 0, 1) != CUDA_SUCCESS ||
           cu.cuCtxSetCurrent(contexts[0]) != CUDA_SUCCESS;
}

static evoke_bundle *open_sample(const char *name) {
    evoke_bundle *b = NULL;
    evoke_error error = {EVOKE_OK, ""};
    if (evoke_bundle_open(sample_path(name), &b, &error) != EVOKE_OK)
        fail_msg("%s", error.text);
    return b;
}

/* A choice for the current GPU, and buffers, at N = n. */
typedef struct rig {
    evoke_bundle *b;
    evoke_number number;
    evoke_shape shape;
    evoke_choice choice;
    evoke_buffer buffers[2];
    bool is_filled; /* the test fills the variable, or does not */
    evoke_error error;
} rig;

static void rig_resolve(rig *r, double n) {
    evoke_gpu gpu;
    char name[256];
    r->number = (evoke_number){"N", n};
    r->shape = (evoke_shape){&r->number, 1};
    if (evoke_gpu_current(&gpu, name, &r->error) != EVOKE_OK ||
        evoke_bundle_resolve(r->b, "add", &gpu, &r->shape, 0, &r->choice, &r->error) != EVOKE_OK)
        fail_msg("%s", r->error.text);
}

static void rig_open(rig *r, evoke_bundle *b, double n) {
    float x[MOST];
    *r = (rig){.b = b};
    rig_resolve(r, n);
    for (int i = 0; i < MOST; i++)
        x[i] = (float)i;
    for (int i = 0; i < 2; i++) {
        CUdeviceptr address = 0;
        OK(cu.cuMemAlloc_v2(&address, sizeof x));
        r->buffers[i] = (evoke_buffer){address, sizeof x};
    }
    OK(cu.cuMemcpyHtoD_v2(r->buffers[0].address, x, sizeof x));
    OK(cu.cuMemsetD8_v2(r->buffers[1].address, 0, sizeof x));
}

static void rig_close(rig *r) {
    for (int i = 0; i < 2; i++)
        OK(cu.cuMemFree_v2(r->buffers[i].address));
}

/* The sample's variable, in the current context; what fails shows at the launch. */
static void rig_fill(rig *r, float shift) {
    const float data[2] = {shift, 7};
    (void)evoke_variant_fill(r->choice.variant, "shift", &r->shape, data, sizeof data, &r->error);
}

static evoke_status rig_launch(rig *r, CUstream stream) {
    if (!r->is_filled)
        rig_fill(r, 0);
    return evoke_variant_launch(r->choice.variant, &r->shape, r->buffers, 2, stream, &r->error);
}

/* y = 2 x + shift below n, and 0 behind. */
static bool rig_is_right(const rig *r, int n, float shift) {
    float y[MOST];
    OK(cu.cuMemcpyDtoH_v2(y, r->buffers[1].address, sizeof y));
    for (int i = 0; i < MOST; i++) {
        if (y[i] != (i < n ? 2 * (float)i + shift : 0.0f))
            return false;
    }
    return true;
}

static void launches(void **state) {
    (void)state;
    static const int sizes[] = {64, 65 + 63, 4096};
    static const char *const names[] = {"b", "b.tar"};
    for (size_t i = 0; i < 6; i++) {
        evoke_bundle *b = open_sample(names[i % 2]);
        rig r;
        CUstream stream = NULL;
        int n = sizes[i / 2];
        rig_open(&r, b, n);
        OK(cu.cuStreamCreate(&stream, 0));
        if (rig_launch(&r, i < 4 ? stream : NULL) != EVOKE_OK)
            fail_msg("%s", r.error.text);
        OK(cu.cuCtxSynchronize());
        assert_true(rig_is_right(&r, n, 0));
        OK(cu.cuStreamDestroy_v2(stream));
        rig_close(&r);
        evoke_bundle_close(b);
    }
}

static void packs_structs(void **state) {
    (void)state;
    ev_error err = {0};
    sample s;
    rig r;
    sample_fill(&s);
    sample_use_struct(&s);
    if (bundle_write(sample_path("struct.tar"), &s.content, &err) != EV_OK)
        fail_msg("%s", err.text);
    evoke_bundle *b = open_sample("struct.tar");
    rig_open(&r, b, 100);
    if (rig_launch(&r, NULL) != EVOKE_OK)
        fail_msg("%s", r.error.text);
    OK(cu.cuCtxSynchronize());
    assert_true(rig_is_right(&r, 100, 0));
    rig_close(&r);
    evoke_bundle_close(b);
}

/* Fields that lie outside of their struct, or whose struct has two sizes. */
static void bad_structs_are_refused(void **state) {
    (void)state;
    static const bundle_argument bad[][2] = {
        {{"p.n", "scalar", "s32", "N", 0, true, 13, 16, NULL, NULL, false},
         {"y", "out", "f32", "N", 4, false, 0, 0, NULL, NULL, false}},
        {{"p.y", "out", "f32", "N", 4, true, 9, 16, NULL, NULL, false},
         {"x", "in", "f32", "N", 4, false, 0, 0, NULL, NULL, false}},
        {{"n", "scalar", "s32", "N", 0, true, 0, 16, NULL, NULL, false},
         {"y", "out", "f32", "N", 4, false, 0, 0, NULL, NULL, false}},
        {{"p.n", "scalar", "s32", "N", 0, true, 0, 16, NULL, NULL, false},
         {"p.y", "out", "f32", "N", 4, true, 8, 24, NULL, NULL, false}},
        {{"p.y", "out", "f32", "N", 4, true, 0, 5000, NULL, NULL, false},
         {"x", "in", "f32", "N", 4, false, 0, 0, NULL, NULL, false}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ev_error err = {0};
        evoke_error error = {EVOKE_OK, ""};
        evoke_bundle *b = NULL;
        sample s;
        sample_fill(&s);
        s.kernel.arguments = bad[i];
        s.kernel.argument_count = 2;
        if (bundle_write(sample_path("bad.tar"), &s.content, &err) != EV_OK)
            fail_msg("%s", err.text);
        assert_int_equal(evoke_bundle_open(sample_path("bad.tar"), &b, &error), EVOKE_BAD);
        assert_non_null(strstr(error.text, "struct"));
    }
}

static void describes_kernels_and_choices(void **state) {
    (void)state;
    evoke_bundle *b = open_sample("b.tar");
    evoke_error error;
    evoke_argument a;
    evoke_geometry at;
    uint64_t elements = 0;
    size_t count = 0;
    char text[300];
    rig r = {.b = b};
    assert_int_equal(evoke_bundle_kernel_count(b), 1);
    assert_string_equal(evoke_bundle_kernel_name(b, 0), "add");
    assert_null(evoke_bundle_kernel_name(b, 1));
    assert_int_equal(evoke_bundle_argument_count(b, "add", &count, &error), EVOKE_OK);
    assert_int_equal(count, 4);
    assert_int_equal(evoke_bundle_argument(b, "add", 1, &a, &error), EVOKE_OK);
    assert_string_equal(a.name, "y");
    assert_true(a.kind == EVOKE_OUT && a.element_bytes == 4 && a.alignment == 4);
    assert_int_equal(evoke_bundle_argument(b, "add", 4, &a, &error), EVOKE_BAD);
    assert_int_equal(evoke_bundle_argument(b, "sub", 0, &a, &error), EVOKE_BAD);
    assert_non_null(strstr(error.text, "it has add"));
    rig_resolve(&r, 128);
    assert_int_equal(evoke_bundle_elements(b, "add", 1, &r.shape, &elements, &error), EVOKE_OK);
    assert_int_equal(elements, 128);
    assert_int_equal(evoke_variant_geometry(r.choice.variant, &r.shape, &at, &error), EVOKE_OK);
    assert_true(at.grid[0] == 2 && at.block[0] == 64 && at.grid[2] == 1 && at.shared_bytes == 0);
    assert_int_equal(r.choice.rung, EVOKE_RUNG_EXACT);
    assert_true(r.choice.role == EVOKE_ROLE_VARIANT && r.choice.speedup == 2);
    assert_string_equal(evoke_bundle_explain(&r.choice, text, sizeof text),
                        "add: the variant of textbook for NVIDIA H200 SXM 141GB (exact-gpu), "
                        "2.00 x the baseline by modelled times");
    assert_int_equal(strlen(evoke_variant_sha256(r.choice.variant)), 64);
    OK(cu.cuCtxSetCurrent(contexts[1]));
    rig_resolve(&r, 128); /* an A100 takes what was made for a lower capability */
    OK(cu.cuCtxSetCurrent(contexts[0]));
    assert_int_equal(r.choice.rung, EVOKE_RUNG_PTX);
    assert_string_equal(evoke_rung_name(EVOKE_RUNG_SIZE), "same-size");
    assert_null(evoke_rung_name((evoke_rung)9));
    evoke_bundle_close(b);
}

static void symbols_are_found(void **state) {
    (void)state;
    static const float shift[2] = {0.5f, 7};
    evoke_bundle *b = open_sample("b");
    uint64_t address = 1;
    size_t bytes = 1;
    rig r;
    rig_open(&r, b, 64);
    assert_int_equal(evoke_variant_symbol(r.choice.variant, "shift", &address, &bytes, &r.error),
                     EVOKE_OK);
    assert_int_equal(bytes, sizeof shift);
    OK(cu.cuMemcpyHtoD_v2(address, shift, sizeof shift));
    r.is_filled = true; /* who has the address copies by himself */
    assert_int_equal(rig_launch(&r, NULL), EVOKE_OK);
    assert_true(rig_is_right(&r, 64, 0.5f));
    assert_int_equal(evoke_variant_symbol(r.choice.variant, "none", &address, &bytes, &r.error),
                     EVOKE_OK);
    assert_true(address == 0 && bytes == 0);
    rig_close(&r);
    evoke_bundle_close(b);
}

/* A launch waits for the data of each variable, in each context and after the module was forgotten.
 */
static void symbols_must_be_filled(void **state) {
    (void)state;
    static const char why[] = "add: the variable 'shift' (f32, \"2\" elements) of variant";
    evoke_bundle *b = open_sample("b");
    rig r;
    rig_open(&r, b, 64);
    r.is_filled = true; /* by a lie */
    assert_int_equal(rig_launch(&r, NULL), EVOKE_BAD);
    assert_non_null(strstr(r.error.text, why));
    assert_non_null(strstr(r.error.text, "call evoke_variant_fill"));
    assert_true(rig_is_right(&r, 0, 0)); /* nothing ran */
    rig_fill(&r, 0.25f);
    assert_int_equal(rig_launch(&r, NULL), EVOKE_OK);
    assert_true(rig_is_right(&r, 64, 0.25f));
    rig_fill(&r, 4);
    assert_int_equal(rig_launch(&r, NULL), EVOKE_OK);
    assert_true(rig_is_right(&r, 64, 4));
    assert_int_equal(evoke_bundle_forget(b, &r.error), EVOKE_OK);
    assert_int_equal(rig_launch(&r, NULL), EVOKE_BAD);
    assert_non_null(strstr(r.error.text, why));
    rig_close(&r);
    evoke_bundle_close(b);
}

static void bad_fills_are_refused(void **state) {
    (void)state;
    static const float data[4] = {0, 0, 0, 0};
    static const struct {
        const char *name;
        size_t bytes;
        const char *words;
    } rows[] = {
        {"none", 8, "add has no variable 'none' to fill; it has shift"},
        {"shift", 4, "4 bytes are given for the variable 'shift', and at this shape it has 8"},
        {"shift", 16, "16 bytes are given for the variable 'shift'"},
        {"shift", 0, "0 bytes are given"},
    };
    evoke_bundle *b = open_sample("b.tar");
    evoke_symbol symbol;
    size_t count = 0;
    rig r;
    rig_open(&r, b, 64);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        evoke_status status = evoke_variant_fill(r.choice.variant, rows[i].name, &r.shape, data,
                                                 rows[i].bytes, &r.error);
        if (status != EVOKE_BAD || strstr(r.error.text, rows[i].words) == NULL)
            fail_msg("row %zu: '%s' is not in: %s", i, rows[i].words, r.error.text);
    }
    r.is_filled = true;
    assert_int_equal(rig_launch(&r, NULL), EVOKE_BAD); /* none of them counts */
    assert_int_equal(evoke_bundle_symbol_count(b, "add", &count, &r.error), EVOKE_OK);
    assert_int_equal(count, 1);
    assert_int_equal(evoke_bundle_symbol(b, "add", 0, &symbol, &r.error), EVOKE_OK);
    assert_string_equal(symbol.name, "shift");
    assert_string_equal(symbol.type, "f32");
    assert_string_equal(symbol.expression, "2");
    assert_int_equal(symbol.element_bytes, 4);
    assert_int_equal(evoke_bundle_symbol(b, "add", 1, &symbol, &r.error), EVOKE_BAD);
    assert_int_equal(evoke_bundle_symbol_count(b, "sub", &count, &r.error), EVOKE_BAD);
    rig_close(&r);
    evoke_bundle_close(b);
}

/* ---- what is refused ---- */

static void bad_launches_are_refused(void **state) {
    (void)state;
    static const evoke_number none = {"M", 64};
    const struct {
        double n;
        size_t buffers;
        size_t at;      /* the buffer that is changed */
        int64_t offset; /* of its address */
        size_t bytes;   /* it has; 0: as allocated */
        const char *words;
    } rows[] = {
        {64, 1, 0, 0, 0, "add takes 2 buffers, and 1 are given"},
        {64, 2, 1, 0, 255, "the buffer of 'y' has 255 bytes, and the kernel uses 256"},
        {64, 2, 0, 2, 0, "of 'x' is no multiple of 4 bytes"},
        {64.5, 2, 0, 0, 0, "'N' of the shape is 64.5; it must be a whole number"},
        {1e300, 2, 0, 0, 0, "it must be a whole number"},
        {0, 2, 0, 0, 0, "it must be in [1, 2147483647] (N = 0, TILE = 64)"},
        {-64, 2, 0, 0, 0, "launch 0 (add), grid[0]"},
        {9007199254740992.0, 2, 0, 0, 0, "it must be in [1, 2147483647]"},
        {1e11, 2, 0, 0, 0, "and the kernel uses 400000000000"},
    };
    evoke_bundle *b = open_sample("b");
    rig r;
    rig_open(&r, b, 64);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rig changed = r;
        changed.number.value = rows[i].n;
        changed.shape.numbers = &changed.number;
        changed.buffers[rows[i].at].address += (uint64_t)rows[i].offset;
        if (rows[i].bytes > 0)
            changed.buffers[rows[i].at].bytes = rows[i].bytes;
        evoke_status status = evoke_variant_launch(
            r.choice.variant, &changed.shape, changed.buffers, rows[i].buffers, NULL, &r.error);
        if (status != EVOKE_BAD || strstr(r.error.text, rows[i].words) == NULL)
            fail_msg("row %zu: '%s' is not in: %s", i, rows[i].words, r.error.text);
    }
    r.shape = (evoke_shape){&none, 1};
    assert_int_equal(rig_launch(&r, NULL), EVOKE_BAD);
    assert_non_null(strstr(r.error.text, "the shape lacks 'N'"));
    r.shape = (evoke_shape){&r.number, 1};
    uint64_t kept = r.buffers[0].address;
    r.buffers[0].address = 0;
    assert_int_equal(rig_launch(&r, NULL), EVOKE_BAD);
    assert_non_null(strstr(r.error.text, "the address 0"));
    r.buffers[0].address = kept;
    assert_true(rig_is_right(&r, 0, 0)); /* nothing ran */
    rig_close(&r);
    evoke_bundle_close(b);
}

static void *without_context(void *argument) {
    rig *r = argument;
    evoke_gpu gpu;
    char name[256];
    bool told = rig_launch(r, NULL) == EVOKE_INFRA &&
                strstr(r->error.text, "no CUDA context is current in this thread") != NULL &&
                evoke_gpu_current(&gpu, name, &r->error) == EVOKE_INFRA;
    return told ? argument : NULL;
}

static void a_thread_without_a_context_is_told(void **state) {
    (void)state;
    evoke_bundle *b = open_sample("b");
    pthread_t thread;
    void *result = NULL;
    rig r;
    rig_open(&r, b, 64);
    assert_int_equal(pthread_create(&thread, NULL, without_context, &r), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, &r);
    rig_close(&r);
    evoke_bundle_close(b);
}

/* Loaded once in each context: the second compilation fails, and the second launch does not notice.
 */
static void modules_are_kept_by_context(void **state) {
    (void)state;
    evoke_bundle *b = open_sample("b");
    rig r;
    rig_open(&r, b, 64);
    (void)setenv("EVOKE_STANDIN_FAIL", "cuModuleLoadDataEx:2=218", 1);
    assert_int_equal(evoke_variant_load(r.choice.variant, &r.error), EVOKE_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(rig_launch(&r, NULL), EVOKE_OK);
    assert_true(rig_is_right(&r, 64, 0));
    OK(cu.cuCtxSetCurrent(contexts[1]));
    assert_int_equal(evoke_variant_load(r.choice.variant, &r.error), EVOKE_BAD);
    assert_non_null(strstr(r.error.text, "the driver does not load"));
    assert_non_null(strstr(r.error.text, "CUDA_ERROR_INVALID_PTX (218, a PTX JIT compilation"));
    assert_int_equal(evoke_variant_load(r.choice.variant, &r.error), EVOKE_OK);
    /* forgotten in one context, it is loaded again there, and kept in the other */
    assert_int_equal(evoke_bundle_forget(b, &r.error), EVOKE_OK);
    OK(cu.cuCtxSetCurrent(contexts[0]));
    (void)setenv("EVOKE_STANDIN_FAIL", "cuModuleLoadDataEx:1=2", 1);
    assert_int_equal(rig_launch(&r, NULL), EVOKE_OK);
    OK(cu.cuCtxSetCurrent(contexts[1]));
    assert_int_equal(evoke_variant_load(r.choice.variant, &r.error), EVOKE_INFRA);
    assert_non_null(strstr(r.error.text, "CUDA_ERROR_OUT_OF_MEMORY"));
    (void)unsetenv("EVOKE_STANDIN_FAIL");
    OK(cu.cuCtxSetCurrent(contexts[0]));
    rig_close(&r);
    evoke_bundle_close(b);
}

static void the_drivers_errors_are_told(void **state) {
    (void)state;
    evoke_bundle *b = open_sample("b");
    rig r;
    rig_open(&r, b, 64);
    (void)setenv("EVOKE_STANDIN_FAIL", "cuLaunchKernel:1=701", 1);
    assert_int_equal(rig_launch(&r, NULL), EVOKE_INFRA);
    (void)unsetenv("EVOKE_STANDIN_FAIL");
    assert_non_null(strstr(
        r.error.text,
        "add: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701, too many resources requested for launch)"));
    assert_int_equal(rig_launch(&r, NULL), EVOKE_OK);
    rig_close(&r);
    evoke_bundle_close(b);
}

/* A PTX that changed since it was exported is not launched. */
static void changed_ptx_is_not_loaded(void **state) {
    (void)state;
    char path[200];
    ev_error err = {0};
    evoke_bundle *b = NULL;
    rig r;
    assert_int_equal(sample_write(sample_path("changed"), &err), EV_OK);
    (void)snprintf(path, sizeof path, "%s/kernels/%s.ptx", sample_path("changed"),
                   ev_sha256_of(SAMPLE_PTX, strlen(SAMPLE_PTX)).hex);
    assert_int_equal(ev_file_write(path, SAMPLE_BASE_PTX, strlen(SAMPLE_BASE_PTX), &err), EV_OK);
    b = open_sample("changed");
    rig_open(&r, b, 64);
    assert_int_equal(rig_launch(&r, NULL), EVOKE_BAD);
    assert_non_null(strstr(r.error.text, "has the hash"));
    assert_int_equal(evoke_bundle_verify(b, &r.error), EVOKE_BAD);
    assert_true(rig_is_right(&r, 0, 0));
    rig_close(&r);
    evoke_bundle_close(b);
}

/* ---- machine code ---- */

/* The sample with machine code for an architecture. The stand-in takes PTX in its place. */
static void write_with_cubin(const char *name, const char *arch, const char *code) {
    ev_error err = {0};
    sample s;
    sample_fill(&s);
    bundle_cubin cubin = {.arch = arch,
                          .registers = 8,
                          .assembler = "ptxas V1.2.3",
                          .data = code,
                          .bytes = strlen(code)};
    s.variant.cubins = &cubin;
    s.variant.cubin_count = 1;
    if (bundle_write(sample_path(name), &s.content, &err) != EV_OK)
        fail_msg("%s", err.text);
}

/* The sample's PTX, which adds its factor instead of the shift: y = 2 x + 2. */
static char *other_code(void) {
    char *code = strdup(SAMPLE_PTX);
    char *at = code != NULL ? strstr(code, "%f1, %f2, %f4") : NULL;
    assert_non_null(at);
    at[strlen("%f1, %f2, %f")] = '2';
    return code;
}

static void expect_shift(const char *name, float shift) {
    evoke_bundle *b = open_sample(name);
    rig r;
    rig_open(&r, b, 64);
    if (rig_launch(&r, NULL) != EVOKE_OK)
        fail_msg("%s", r.error.text);
    OK(cu.cuCtxSynchronize());
    assert_true(rig_is_right(&r, 64, shift));
    rig_close(&r);
    evoke_bundle_close(b);
}

/* The code of the GPU's own architecture is launched; for another one, and where the driver does
 * not take it, the PTX is. */
static void machine_code_comes_first(void **state) {
    (void)state;
    char *code = other_code();
    write_with_cubin("exact.tar", "sm_90", code);
    expect_shift("exact.tar", 2);
    write_with_cubin("other.tar", "sm_80", code);
    expect_shift("other.tar", 0);
    write_with_cubin("refused.tar", "sm_90", "\177ELF and so on");
    expect_shift("refused.tar", 0);
    free(code);
}

static void changed_machine_code_is_not_loaded(void **state) {
    (void)state;
    char path[200];
    ev_error err = {0};
    char *code = other_code();
    write_with_cubin("damaged", "sm_90", code);
    (void)snprintf(path, sizeof path, "%s/kernels/%s.cubin", sample_path("damaged"),
                   ev_sha256_of(code, strlen(code)).hex);
    assert_int_equal(ev_file_write(path, SAMPLE_PTX, strlen(SAMPLE_PTX), &err), EV_OK);
    evoke_bundle *b = open_sample("damaged");
    rig r;
    rig_open(&r, b, 64);
    assert_int_equal(rig_launch(&r, NULL), EVOKE_BAD);
    assert_non_null(strstr(r.error.text, "has the hash"));
    rig_close(&r);
    evoke_bundle_close(b);
    free(code);
}

/* A driver that is too old for the PTX is named before the driver is asked. */
static void old_drivers_are_named(void **state) {
    (void)state;
    sample s;
    rig r;
    ev_error err = {0};
    char *ptx = strdup(SAMPLE_PTX);
    assert_non_null(ptx);
    char *version = strstr(ptx, "7.0");
    assert_non_null(version);
    version[0] = '8', version[2] = '5';
    sample_fill(&s);
    s.variant.ptx = ptx;
    assert_int_equal(bundle_write(sample_path("new"), &s.content, &err), EV_OK);
    version[0] = '9', version[2] = '9';
    assert_int_equal(bundle_write(sample_path("newer"), &s.content, &err), EV_OK);
    free(ptx);
    evoke_bundle *b = open_sample("new");
    rig_open(&r, b, 64);
    (void)setenv("EVOKE_STANDIN_DRIVER", "12.4", 1);
    assert_int_equal(rig_launch(&r, NULL), EVOKE_BAD);
    (void)unsetenv("EVOKE_STANDIN_DRIVER");
    assert_non_null(strstr(
        r.error.text, "add: the variant for NVIDIA H200 SXM 141GB needs a driver for CUDA 12.5 "
                      "or newer (branch 555), for PTX 8.5; this one is for CUDA 12.4"));
    assert_true(rig_is_right(&r, 0, 0));
    assert_int_equal(rig_launch(&r, NULL), EVOKE_OK);
    rig_close(&r);
    evoke_bundle_close(b);
    b = open_sample("newer");
    rig_open(&r, b, 64);
    assert_int_equal(rig_launch(&r, NULL), EVOKE_BAD);
    assert_non_null(strstr(r.error.text, "needs a driver for a newer CUDA, for PTX 9.9"));
    rig_close(&r);
    evoke_bundle_close(b);
}

/* A block that the GPU cannot have is refused in words, and shared memory beyond 48 KiB is allowed.
 */
static void resources_are_checked(void **state) {
    (void)state;
    static const struct {
        const char *tile, *shared;
        const char *words; /* NULL: it runs */
    } rows[] = {{"TILE", "100 * 1024", NULL},
                {"TILE", "232448", NULL},
                {"TILE", "N * 1024 * 1024", "it must be in [0, 232448]"},
                {"TILE * 32", "0", "it must be in [1, 1024]"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sample s;
        rig r;
        ev_error err = {0};
        const launch_rule rule = {
            "add", {"ceil_div(N, TILE)", "1", "1"}, {rows[i].tile, "1", "1"}, rows[i].shared, NULL,
            0};
        const launch_plan plan = {.launches = &rule, .launch_count = 1};
        sample_fill(&s);
        s.variant.plan = &plan;
        assert_int_equal(bundle_write(sample_path("large"), &s.content, &err), EV_OK);
        evoke_bundle *b = open_sample("large");
        rig_open(&r, b, 64);
        evoke_status status = rig_launch(&r, NULL);
        if ((status == EVOKE_OK) != (rows[i].words == NULL))
            fail_msg("row %zu: %s", i, r.error.text);
        if (rows[i].words != NULL && strstr(r.error.text, rows[i].words) == NULL)
            fail_msg("row %zu: '%s' is not in: %s", i, rows[i].words, r.error.text);
        rig_close(&r);
        evoke_bundle_close(b);
    }
}

/* ---- threads ---- */

static void *launch_often(void *argument) {
    evoke_bundle *b = argument;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int turn;
    float x[MOST], y[64];
    (void)pthread_mutex_lock(&lock);
    int own = turn++;
    (void)pthread_mutex_unlock(&lock);
    rig r = {.b = b};
    bool right = cu.cuCtxSetCurrent(contexts[own % 2]) == CUDA_SUCCESS;
    for (int i = 0; i < MOST; i++)
        x[i] = (float)(i + own);
    for (int i = 0; i < 2; i++) {
        CUdeviceptr address = 0;
        right = right && cu.cuMemAlloc_v2(&address, sizeof x) == CUDA_SUCCESS;
        r.buffers[i] = (evoke_buffer){address, sizeof x};
    }
    right = right && cu.cuMemcpyHtoD_v2(r.buffers[0].address, x, sizeof x) == CUDA_SUCCESS;
    for (int i = 0; i < 40 && right; i++) {
        evoke_gpu gpu;
        char name[256];
        r.number = (evoke_number){"N", 64};
        r.shape = (evoke_shape){&r.number, 1};
        right =
            evoke_gpu_current(&gpu, name, &r.error) == EVOKE_OK &&
            evoke_bundle_resolve(b, "add", &gpu, &r.shape, 0, &r.choice, &r.error) == EVOKE_OK &&
            rig_launch(&r, NULL) == EVOKE_OK && evoke_bundle_verify(b, &r.error) == EVOKE_OK &&
            cu.cuMemcpyDtoH_v2(y, r.buffers[1].address, sizeof y) == CUDA_SUCCESS;
        for (int k = 0; k < 64; k++)
            right = right && y[k] == 2 * (float)(k + own);
    }
    return right ? argument : NULL;
}

static void threads_and_gpus_share_a_bundle(void **state) {
    (void)state;
    pthread_t threads[6];
    evoke_bundle *b = open_sample("b.tar");
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, launch_often, b), 0);
    for (size_t i = 0; i < 6; i++) {
        void *result = NULL;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, b);
    }
    evoke_bundle_close(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches),
        cmocka_unit_test(packs_structs),
        cmocka_unit_test(bad_structs_are_refused),
        cmocka_unit_test(describes_kernels_and_choices),
        cmocka_unit_test(symbols_are_found),
        cmocka_unit_test(symbols_must_be_filled),
        cmocka_unit_test(bad_fills_are_refused),
        cmocka_unit_test(bad_launches_are_refused),
        cmocka_unit_test(a_thread_without_a_context_is_told),
        cmocka_unit_test(modules_are_kept_by_context),
        cmocka_unit_test(the_drivers_errors_are_told),
        cmocka_unit_test(changed_ptx_is_not_loaded),
        cmocka_unit_test(machine_code_comes_first),
        cmocka_unit_test(changed_machine_code_is_not_loaded),
        cmocka_unit_test(old_drivers_are_named),
        cmocka_unit_test(resources_are_checked),
        cmocka_unit_test(threads_and_gpus_share_a_bundle),
    };
    return cmocka_run_group_tests(tests, open_all, sample_remove_folder);
}
