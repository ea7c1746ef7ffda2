/* Merging bundles: of two variants for one GPU model the better one is kept, ties are told, and
 * what is made for two GPU models resolves on three devices of the stand-in for the driver. */
#include "base/cuda/driver.h"
#include "base/file.h"
#include "bundle/bundle.h"
#include "bundle/merge.h"
#include "tests/bundle/sample.h"

#include <evoke/bundle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const bundle_number at_64[] = {{"N", false, 64}};
static const bundle_number at_1024[] = {{"N", false, 1024}};

/* A bundle of one variant, with times at N = 64 and N = 1024, where the baseline takes 100. */
typedef struct one {
    const char *ptx, *gpu;
    int sm, sms;
    double small, large;
    bool is_measured;
    const char *task_sha256, *file;
    double tile;             /* the macro's value; 0: the sample's */
    const char *rejected_on; /* a GPU on which the variant is wrong; on another one it is right */
} one;

#define ONE(ptx, gpu, sm, sms, small, large, is_measured)                                          \
    {ptx, gpu, sm, sms, small, large, is_measured, NULL, NULL, 0, NULL}
#define H200(ptx, small, large) ONE(ptx, "h200", 90, 132, small, large, false)
#define TILED(ptx, small, large, tile)                                                             \
    {ptx, "h200", 90, 132, small, large, false, NULL, NULL, tile, NULL}
#define WRONG_ON(gpu, ptx, small, large)                                                           \
    {ptx, "h200", 90, 132, small, large, false, NULL, NULL, 0, gpu}
#define A100_(ptx, small, large) ONE(ptx, "a100", 80, 108, small, large, false)

/* The text made for another GPU than the sample's. `room` holds the result. */
static const char *retarget(const char *ptx, int sm, char room[4096]) {
    static const char made_for[] = ".version 7.0\n.target sm_70";
    const char *at = strstr(ptx, made_for);
    if (at == NULL)
        return ptx;
    (void)snprintf(room, 4096, "%.*s.version 8.0\n.target sm_%d%s", (int)(at - ptx), ptx, sm,
                   at + strlen(made_for));
    return room;
}

/* The variant is wrong on the one GPU, and right on a B200. */
static void reject(ev_arena *arena, bundle_variant *v, const char *gpu) {
    const bundle_qualified both[] = {
        {.gpu_id = gpu,
         .gpu_name = gpu,
         .driver = "",
         .verdict = BUNDLE_VERDICT_WRONG,
         .reason = "it is wrong"},
        {.gpu_id = "b200", .gpu_name = "b200", .driver = "", .reason = ""}};
    ev_error err = {0};
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(bundle_qualify(arena, v, &both[i], &err), EV_OK);
}

static bundle *open_one(const char *name, const one *o) {
    bundle_case cases[2] = {
        {"small", "search", at_64, 1, o->small, o->small, o->small, 100, 0, 0, 0},
        {"large", "held-out", at_1024, 1, o->large, o->large, o->large, 100, 0, 0, 0}};
    sample s;
    bundle *b = NULL;
    ev_error err = {0};
    sample_fill(&s);
    bundle_variant *both[] = {&s.variant, &s.baseline};
    for (size_t i = 0; i < 2; i++) {
        both[i]->gpu_id = o->gpu;
        both[i]->gpu_name =
            strcmp(o->gpu, "h200") == 0 ? "NVIDIA H200 SXM 141GB" : "NVIDIA A100 SXM4 80GB";
        both[i]->sm = o->sm;
        both[i]->sms = o->sms;
    }
    s.variant.cases = cases;
    char room[2][4096];
    s.variant.ptx = retarget(o->ptx, o->sm, room[0]);
    s.variant.ptx_bytes = strlen(s.variant.ptx);
    s.baseline.ptx = retarget(s.baseline.ptx, o->sm, room[1]);
    s.baseline.ptx_bytes = strlen(s.baseline.ptx);
    s.variant.modelled = !o->is_measured;
    const bundle_number macro = {"TILE", false, o->tile};
    if (o->tile > 0)
        s.variant.macros = &macro;
    ev_arena *arena = ev_arena_new();
    if (o->rejected_on != NULL)
        reject(arena, &s.variant, o->rejected_on);
    if (o->task_sha256 != NULL)
        s.kernel.task_sha256 = o->task_sha256;
    if (o->file != NULL) {
        s.file.data = o->file;
        s.file.bytes = strlen(o->file);
    }
    if (bundle_write(sample_path(name), &s.content, &err) != EV_OK ||
        bundle_open(sample_path(name), &b, &err) != EV_OK)
        fail_msg("%s", err.text);
    ev_arena_free(arena);
    return b;
}

/* What is made for different models is kept; what is made for one competes. */
static void the_better_variant_wins(void **state) {
    (void)state;
    static const struct {
        one a, b;
        size_t kept;
        const char *ptx; /* of the first that is kept, where one is */
        size_t rows;
        merge_reason why;
    } rows[] = {
        {H200("// a\n", 50, 50), A100_("// b\n", 60, 60), 2, NULL, 0, 0},
        {H200("// a\n", 50, 50), ONE("// b\n", "h200", 90, 78, 60, 60, false), 2, NULL, 0, 0},
        {H200("// a\n", 50, 50), H200("// b\n", 60, 50), 1, "// a\n", 1, MERGE_SLOWER},
        {H200("// a\n", 50, 61), H200("// b\n", 50, 60), 1, "// b\n", 1, MERGE_SLOWER},
        {H200("// a\n", 50, 61), H200("// b\n", 51, 60), 2, NULL, 0, 0},
        {H200("// a\n", 50, 60), H200("// b\n", 50, 60), 1, "// a\n", 1, MERGE_TIE},
        {H200("// a\n", 50, 60), H200("// a\n", 50, 60), 1, "// a\n", 1, MERGE_SAME},
        {H200("// a\n", 50, 60), ONE("// b\n", "h200", 90, 132, 70, 70, true), 1, "// b\n", 1,
         MERGE_MEASURED},
        /* one text, and a block's size in the launch alone */
        {TILED("// a\n", 60, 60, 32), TILED("// a\n", 50, 50, 128), 1, "// a\n", 1, MERGE_SLOWER},
        {TILED("// a\n", 60, 50, 32), TILED("// a\n", 50, 60, 128), 2, NULL, 0, 0},
        /* the faster one is wrong somewhere, where the slower one is handed out */
        {WRONG_ON("h200", "// a\n", 50, 50), H200("// b\n", 60, 60), 2, NULL, 0, 0},
        {WRONG_ON("h100", "// a\n", 50, 50), H200("// b\n", 60, 60), 2, NULL, 0, 0},
        {WRONG_ON("h100", "// a\n", 50, 50), WRONG_ON("h100", "// b\n", 60, 60), 1, "// a\n", 1,
         MERGE_SLOWER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bundle *both[] = {open_one("a", &rows[i].a), open_one("b.tar", &rows[i].b)};
        ev_arena *arena = ev_arena_new();
        ev_error err = {0};
        merged m;
        if (bundle_merge(both, 2, arena, &m, &err) != EV_OK)
            fail_msg("%s", err.text);
        const bundle_kernel *k = &m.content.kernels[0];
        if (m.content.kernel_count != 1 || k->variant_count != rows[i].kept ||
            m.row_count != rows[i].rows ||
            (rows[i].ptx != NULL && strcmp(k->variants[0].ptx, rows[i].ptx) != 0) ||
            (m.row_count > 0 && m.rows[0].reason != rows[i].why))
            fail_msg("row %zu: %zu kept, %zu rows", i, k->variant_count, m.row_count);
        ev_arena_free(arena);
        bundle_close(both[0]);
        bundle_close(both[1]);
    }
}

static void different_tasks_are_refused(void **state) {
    (void)state;
    static const one rows[] = {{"// b\n", "a100", 80, 108, 60, 60, false, "22", NULL, 0, NULL},
                               {"// b\n", "a100", 80, 108, 60, 60, false, NULL, "{ }\n", 0, NULL}};
    static const char *const words[] = {"different tasks named 'add'",
                                        "tasks/add/task.json differs between the bundles"};
    for (size_t i = 0; i < 2; i++) {
        const one first = H200("// a\n", 50, 50);
        bundle *both[] = {open_one("a", &first), open_one("b", &rows[i])};
        ev_arena *arena = ev_arena_new();
        ev_error err = {0};
        merged m;
        assert_int_equal(bundle_merge(both, 2, arena, &m, &err), EV_BAD);
        if (strstr(err.text, words[i]) == NULL)
            fail_msg("'%s' is not in: %s", words[i], err.text);
        ev_arena_free(arena);
        bundle_close(both[0]);
        bundle_close(both[1]);
    }
}

static void write_merged(const char *name) {
    const one h200 = H200(SAMPLE_PTX, 50, 50);
    const one a100 = A100_(SAMPLE_BASE_PTX, 60, 60);
    bundle *both[] = {open_one("a", &h200), open_one("b", &a100)};
    ev_arena *arena = ev_arena_new();
    ev_error err = {0};
    merged m;
    if (bundle_merge(both, 2, arena, &m, &err) != EV_OK ||
        bundle_write(sample_path(name), &m.content, &err) != EV_OK)
        fail_msg("%s", err.text);
    ev_arena_free(arena);
    bundle_close(both[0]);
    bundle_close(both[1]);
}

/* Merged again with one of its parts, a bundle stays the same, byte for byte. */
static void merging_again_changes_nothing(void **state) {
    (void)state;
    ev_error err = {0};
    bundle *b[2] = {NULL, NULL};
    ev_arena *arena = ev_arena_new();
    merged m;
    write_merged("m.tar");
    assert_int_equal(bundle_open(sample_path("m.tar"), &b[0], &err), EV_OK);
    assert_int_equal(bundle_open(sample_path("b"), &b[1], &err), EV_OK);
    assert_int_equal(bundle_merge(b, 2, arena, &m, &err), EV_OK);
    assert_int_equal(m.row_count, 1);
    assert_int_equal(bundle_write(sample_path("again.tar"), &m.content, &err), EV_OK);
    char *texts[2] = {NULL, NULL};
    size_t bytes[2] = {0, 0};
    assert_int_equal(ev_file_read(sample_path("m.tar"), &texts[0], &bytes[0], &err), EV_OK);
    assert_int_equal(ev_file_read(sample_path("again.tar"), &texts[1], &bytes[1], &err), EV_OK);
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(texts[0], texts[1], bytes[0]);
    free(texts[0]);
    free(texts[1]);
    ev_arena_free(arena);
    bundle_close(b[0]);
    bundle_close(b[1]);
}

/* Two models merged; the third device, an RTX A6000 (8.6), takes what is made for 8.0. */
static void three_devices_resolve(void **state) {
    (void)state;
    static const struct {
        evoke_rung rung;
        const char *made_for;
    } rows[] = {{EVOKE_RUNG_EXACT, "NVIDIA H200 SXM 141GB"},
                {EVOKE_RUNG_EXACT, "NVIDIA A100 SXM4 80GB"},
                {EVOKE_RUNG_PTX, "NVIDIA A100 SXM4 80GB"}};
    static const evoke_number number = {"N", 64};
    const evoke_shape shape = {&number, 1};
    cu_driver cu;
    ev_error err = {0};
    evoke_bundle *b = NULL;
    evoke_error error;
    write_merged("m.tar");
    assert_int_equal(cu_driver_find(&cu, &err), EV_OK);
    assert_int_equal(cu.cuInit(0), CUDA_SUCCESS);
    assert_int_equal(evoke_bundle_open(sample_path("m.tar"), &b, &error), EVOKE_OK);
    for (int i = 0; i < 3; i++) {
        CUcontext context = NULL;
        CUdeviceptr x = 0, y = 0;
        evoke_gpu gpu;
        evoke_choice choice;
        char name[256];
        float in[64], out[64];
        assert_int_equal(cu.cuCtxCreate_v2(&context, 0, i), CUDA_SUCCESS);
        assert_int_equal(evoke_gpu_current(&gpu, name, &error), EVOKE_OK);
        assert_int_equal(evoke_bundle_resolve(b, "add", &gpu, &shape, 0, &choice, &error),
                         EVOKE_OK);
        assert_int_equal(choice.rung, rows[i].rung);
        assert_string_equal(evoke_variant_gpu(choice.variant), rows[i].made_for);
        for (int k = 0; k < 64; k++)
            in[k] = (float)(k + i);
        assert_int_equal(cu.cuMemAlloc_v2(&x, sizeof in), CUDA_SUCCESS);
        assert_int_equal(cu.cuMemAlloc_v2(&y, sizeof in), CUDA_SUCCESS);
        assert_int_equal(cu.cuMemcpyHtoD_v2(x, in, sizeof in), CUDA_SUCCESS);
        const evoke_buffer buffers[] = {{x, sizeof in}, {y, sizeof in}};
        const float shift[2] = {0, 0};
        assert_int_equal(
            evoke_variant_fill(choice.variant, "shift", &shape, shift, sizeof shift, &error),
            EVOKE_OK);
        if (evoke_variant_launch(choice.variant, &shape, buffers, 2, NULL, &error) != EVOKE_OK)
            fail_msg("%s", error.text);
        assert_int_equal(cu.cuMemcpyDtoH_v2(out, y, sizeof out), CUDA_SUCCESS);
        for (int k = 0; k < 64; k++)
            assert_true(out[k] == 2 * in[k]);
    }
    evoke_bundle_close(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_better_variant_wins),
        cmocka_unit_test(different_tasks_are_refused),
        cmocka_unit_test(merging_again_changes_nothing),
        cmocka_unit_test(three_devices_resolve),
    };
    return cmocka_run_group_tests(tests, sample_make_folder, sample_remove_folder);
}
