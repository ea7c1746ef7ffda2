/* Bundles of variants of several launches: what is written is read again, what is launched is right
 * on the stand-in for the driver, and each broken sequence is refused by name, by the reader or
 * before the first launch. */
#include "base/cuda/driver.h"
#include "base/file.h"
#include "base/str.h"
#include "bundle/bundle.h"
#include "tests/bundle/sample.h"

#include <evoke/bundle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/asserts.h"

#define MOST SAMPLE_STEPS_MOST

static cu_driver cu;
static CUcontext context;

#define OK(call) assert_int_equal((call), CUDA_SUCCESS)

static void write_sample(const char *name) {
    sample s;
    ev_error err = {0};
    sample_fill(&s);
    sample_use_steps(&s);
    if (bundle_write(sample_path(name), &s.content, &err) != EV_OK)
        fail_msg("%s", err.text);
}

static int set_up(void **state) {
    ev_error err = {0};
    if (sample_make_folder(state) != 0 || cu_driver_find(&cu, &err) != EV_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    write_sample("s.tar");
    return cu.cuInit(0) != CUDA_SUCCESS || cu.cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS;
}

/* ---- reading ---- */

static void what_is_written_is_read(void **state) {
    (void)state;
    bundle *b = NULL;
    ev_error err = {0};
    ev_sha256 wanted, got;
    if (bundle_open(sample_path("s.tar"), &b, &err) != EV_OK)
        fail_msg("%s", err.text);
    const bundle_kernel *k = bundle_find(b, "add");
    launch_plan read = *k->variants[0].plan;
    assert_int_equal(read.range_count, 2);
    read.range_count = 0;
    assert_int_equal(launch_plan_sha256(&SAMPLE_STEPS, &wanted, &err), EV_OK);
    assert_int_equal(launch_plan_sha256(&read, &got, &err), EV_OK);
    assert_string_equal(got.hex, wanted.hex);
    bundle_close(b);
}

/* The sample's manifest with the first `from` replaced. */
static void change_manifest(const char *from, const char *to) {
    char path[200], *text = NULL;
    size_t bytes = 0;
    ev_str made = EV_STR_EMPTY;
    ev_error err = {0};
    write_sample("h");
    (void)snprintf(path, sizeof path, "%s/manifest.json", sample_path("h"));
    assert_int_equal(ev_file_read(path, &text, &bytes, &err), EV_OK);
    const char *place = strstr(text, from);
    if (place == NULL)
        fail_msg("no '%s' in %s", from, text);
    ev_str_append_n(&made, text, (size_t)(place - text));
    ev_str_append(&made, to);
    ev_str_append(&made, place + strlen(from));
    assert_int_equal(ev_file_write(path, ev_str_text(&made), made.length, &err), EV_OK);
    ev_str_free(&made);
    free(text);
}

typedef struct mistake {
    const char *from, *to, *words;
} mistake;

static void broken_sequences_are_refused(void **state) {
    (void)state;
    static const mistake rows[] = {
        {"\"steps\": [", "\"grid\": [\"1\", \"1\", \"1\"], \"steps\": [",
         "a launch with \"steps\" has no \"grid\": each step has its own"},
        {"\"arguments\": [\n                  \"x\"", "\"arguments\": [\"z\"",
         "\"z\" is neither an argument of the kernel nor a scratch "
         "buffer of the launch"},
        {"\"value\": \"1\"", "\"value\": \"k\"", "launch 0 (put), argument 3: "},
        {"\"value\": \"k + 1\"", "\"value\": \"k + j\"", "launch 1 (put), argument 3: "},
        {"\"type\": \"f32\",\n                    \"value\"",
         "\"type\": \"f33\",\n                    \"value\"", "\"f33\" is no type of elements"},
        {"\"counter\": \"k\"", "\"counter\": \"n\"", "counter: \"n\" is taken"},
        {"\"repeat\": \"R\"", "\"repeat\": \"Q\"", "loop 0, turns"},
        {"\"repeat\": \"R\"", "\"repeat\": 4", "repeat"},
        {"\"entry\": \"last\",\n                \"grid\"", "\"entry\": \"l-st\", \"grid\"",
         "entry: \"l-st\" is no name of a kernel in PTX"},
        {"\"name\": \"a\"", "\"name\": \"x\"", "another buffer or an argument is named x, too"},
        {"\"name\": \"a\"", "\"name\": \"b\"", "another buffer or an argument is named b, too"},
        {"\"name\": \"a\"", "\"name\": \"n\"", "another buffer or an argument is named n, too"},
        {"\"bytes\": \"4 * N\"", "\"bytes\": \"4 * M\"", "scratch buffer a, bytes"},
        {"\"bytes\": \"4 * N\"", "\"bytes\": \"0\"", "scratch"},
        {"\"bytes\": \"4 * N\"", "\"bytes\": \"1 / 0\"", "scratch"},
        {"\"b\"\n                  ]", "\"x\"\n                  ]",
         "\"x\" is an input, which no kernel writes"},
        {"\"b\"\n                  ]", "\"n\"\n                  ]", "\"n\" is a scalar"},
        {"\"b\"\n                  ]", "\"b\", \"a\"\n                  ]",
         "a swap is a pair of names"},
        {"\"b\"\n                  ]", "\"a\"\n                  ]", "loop 0, swap 0: a and a"},
        {"\"entry\": \"put\",\n          \"error\"", "\"entry\": \"other\", \"error\"",
         "no step launches the variant's entry other"},
        {"\"repeat\": \"R\",", "\"repeat\": \"R\", \"stranger\": 1,", "stranger"},
        {"\"steps\": [\n                  {", "\"steps\": [{\"repeat\": \"1\", \"steps\": []},{",
         "steps that repeat stand in no others that do"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bundle *b = NULL;
        ev_error err = {0};
        change_manifest(rows[i].from, rows[i].to);
        if (bundle_open_lazy(sample_path("h"), &b, &err) != EV_BAD ||
            strstr(err.text, rows[i].words) == NULL)
            fail_msg("row %zu: '%s' is not in: %s", i, rows[i].words, err.text);
    }
}

/* Lists have limits, and no launch at all is none. */
static void lengths_are_bounded(void **state) {
    (void)state;
    static const char step[] = "{\"entry\": \"put\", \"grid\": [\"1\", \"1\", \"1\"], \"block\": "
                               "[\"1\", \"1\", \"1\"], \"shared\": \"0\", \"arguments\": [\"x\"]},";
    static const char buffer[] = "{\"name\": \"c\", \"bytes\": \"4\"},";
    const struct {
        const char *at, *unit, *words;
        size_t times;
    } rows[] = {
        {"\"steps\": [\n", step, "it has 67 members, and takes 1 to 64", 64},
        {"\"steps\": [\n                  {", step, "it has 65 members, and takes 1 to 64", 0},
        {"\"scratch\": [\n", buffer, "it has 102 members, and takes 0 to 64", 100},
        {"\"arguments\": [\n                  \"x\"", ",\"x\"", "takes 1 to 128", 200},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bundle *b = NULL;
        ev_error err = {0};
        ev_str text = EV_STR_EMPTY;
        size_t times = rows[i].times > 0 ? rows[i].times : 64;
        bool inner = rows[i].times == 0;
        ev_str_append_n(&text, rows[i].at, strlen(rows[i].at) - inner);
        for (size_t k = 0; k < times; k++)
            ev_str_append(&text, rows[i].unit);
        ev_str_append(&text, inner ? "{" : "");
        change_manifest(rows[i].at, ev_str_text(&text));
        ev_str_free(&text);
        if (bundle_open_lazy(sample_path("h"), &b, &err) != EV_BAD ||
            strstr(err.text, rows[i].words) == NULL)
            fail_msg("row %zu: '%s' is not in: %s", i, rows[i].words, err.text);
    }
}

/* ---- launching ---- */

typedef struct rig {
    evoke_bundle *b;
    evoke_number numbers[2];
    evoke_shape shape;
    evoke_choice choice;
    evoke_buffer buffers[2], scratch;
    evoke_error error;
} rig;

static void rig_shape(rig *r, double n, double turns) {
    r->numbers[0] = (evoke_number){"N", n};
    r->numbers[1] = (evoke_number){"R", turns};
    r->shape = (evoke_shape){r->numbers, 2};
}

static void rig_open(rig *r, const char *name, unsigned flags) {
    evoke_gpu gpu;
    char text[256];
    *r = (rig){.scratch = {0, 8192}};
    rig_shape(r, MOST, 3);
    if (evoke_bundle_open(sample_path(name), &r->b, &r->error) != EVOKE_OK ||
        evoke_gpu_current(&gpu, text, &r->error) != EVOKE_OK ||
        evoke_bundle_resolve(r->b, "add", &gpu, &r->shape, flags, &r->choice, &r->error) !=
            EVOKE_OK)
        fail_msg("%s", r->error.text);
    float x[MOST];
    for (int i = 0; i < MOST; i++)
        x[i] = (float)i;
    CUdeviceptr at = 0;
    for (int i = 0; i < 2; i++) {
        OK(cu.cuMemAlloc_v2(&at, sizeof x));
        r->buffers[i] = (evoke_buffer){at, sizeof x};
    }
    OK(cu.cuMemcpyHtoD_v2(r->buffers[0].address, x, sizeof x));
    OK(cu.cuMemAlloc_v2(&at, r->scratch.bytes));
    r->scratch.address = at;
}

static void rig_close(rig *r) {
    for (int i = 0; i < 2; i++)
        OK(cu.cuMemFree_v2(r->buffers[i].address));
    OK(cu.cuMemFree_v2(r->scratch.address));
    evoke_bundle_close(r->b);
}

static evoke_status rig_launch(rig *r, CUstream stream) {
    OK(cu.cuMemsetD8_v2(r->buffers[1].address, 0, sizeof(float) * MOST));
    return evoke_variant_launch_scratch(r->choice.variant, &r->shape, r->buffers, 2, &r->scratch,
                                        stream, &r->error);
}

static bool is_right(const rig *r, int n, int turns) {
    float y[MOST];
    OK(cu.cuMemcpyDtoH_v2(y, r->buffers[1].address, sizeof y));
    float shift = 1;
    for (int k = 1; k <= turns; k++)
        shift += (float)k;
    for (int i = 0; i < MOST; i++) {
        if (y[i] != (i < n ? (float)i + shift : 0.0f))
            return false;
    }
    return true;
}

static void launches_run_in_order(void **state) {
    (void)state;
    static const struct {
        int n, turns;
    } shapes[] = {{MOST, 0}, {MOST, 1}, {MOST, 2}, {1, 3}, {65, 20}, {MOST, 0}};
    rig r;
    CUstream stream = NULL;
    rig_open(&r, "s.tar", 0);
    OK(cu.cuStreamCreate(&stream, 0));
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        evoke_step steps[32];
        size_t count = 0, bytes = 0;
        rig_shape(&r, shapes[i].n, shapes[i].turns);
        if (rig_launch(&r, stream) != EVOKE_OK)
            fail_msg("%s", r.error.text);
        OK(cu.cuStreamSynchronize(stream));
        if (!is_right(&r, shapes[i].n, shapes[i].turns))
            fail_msg("n %d, %d turns", shapes[i].n, shapes[i].turns);
        assert_int_equal(
            evoke_variant_steps(r.choice.variant, &r.shape, 32, steps, &count, &r.error), EVOKE_OK);
        assert_int_equal(count, shapes[i].turns + 2);
        assert_string_equal(steps[0].entry, "put");
        assert_string_equal(steps[count - 1].entry, "last");
        assert_int_equal(steps[0].geometry.grid[0], (shapes[i].n + 63) / 64);
        assert_int_equal(evoke_variant_scratch(r.choice.variant, &r.shape, &bytes, &r.error),
                         EVOKE_OK);
        assert_int_equal(bytes, 2 * ((shapes[i].n * 4 + 255) / 256 * 256));
    }
    rig_close(&r);
}

static void refused(rig *r, evoke_status status, evoke_status wanted, const char *words) {
    if (status != wanted || strstr(r->error.text, words) == NULL)
        fail_msg("status %d, '%s' is not in: %s", (int)status, words, r->error.text);
}

static void bad_launches_are_refused(void **state) {
    (void)state;
    rig r;
    evoke_geometry geometry;
    evoke_step steps[4];
    size_t count = 0;
    rig_open(&r, "s.tar", 0);
    const evoke_variant *v = r.choice.variant;
    const evoke_buffer memory = r.scratch;
    refused(&r, evoke_variant_launch(v, &r.shape, r.buffers, 2, NULL, &r.error), EVOKE_BAD,
            "add: the variant needs 8192 bytes of scratch memory at this shape");
    r.scratch.bytes--;
    refused(&r, rig_launch(&r, NULL), EVOKE_BAD, "the scratch memory has 8191 bytes");
    r.scratch.bytes++;
    r.scratch.address += 16;
    refused(&r, rig_launch(&r, NULL), EVOKE_BAD, "or no multiple of 256 bytes");
    r.scratch = memory;
    r.buffers[1].bytes--;
    refused(&r, rig_launch(&r, NULL), EVOKE_BAD, "the buffer of 'y' has 3999 bytes");
    r.buffers[1].bytes++;
    refused(&r, evoke_variant_geometry(v, &r.shape, &geometry, &r.error), EVOKE_BAD,
            "add: the variant has several launches; evoke_variant_steps tells the sizes of each");
    refused(&r, evoke_variant_steps(v, &r.shape, 4, steps, &count, &r.error), EVOKE_BAD,
            "add has 5 launches at this shape, and there is room for 4");
    rig_shape(&r, MOST, 1023);
    refused(&r, rig_launch(&r, NULL), EVOKE_BAD, "add: more than 1024 launches with all turns");
    rig_shape(&r, MOST, -1);
    refused(&r, rig_launch(&r, NULL), EVOKE_BAD, "launch 1 (put), turns: expression \"R\" is -1");
    rig_shape(&r, 0, 1);
    refused(&r, rig_launch(&r, NULL), EVOKE_BAD, "add");
    rig_close(&r);
}

/* A launch in the middle that fails is named; those before it are in the stream. */
static void a_failing_launch_is_named(void **state) {
    (void)state;
    rig r;
    rig_open(&r, "s.tar", 0);
    rig_shape(&r, MOST, 2);
    (void)setenv("EVOKE_STANDIN_FAIL", "cuLaunchKernel:3=memory", 1);
    refused(&r, rig_launch(&r, NULL), EVOKE_INFRA,
            "add, launch 3 of 4, kernel `put`: cuLaunchKernel: CUDA_ERROR_OUT_OF_MEMORY");
    (void)setenv("EVOKE_STANDIN_FAIL", "", 1);
    OK(cu.cuCtxSynchronize());
    assert_int_equal(rig_launch(&r, NULL), EVOKE_OK);
    OK(cu.cuCtxSynchronize());
    assert_true(is_right(&r, MOST, 2));
    rig_close(&r);
}

/* What only the shape shows. */
static void broken_sequences_are_not_launched(void **state) {
    (void)state;
    static const mistake rows[] = {
        {"\"bytes\": \"n * 4\"", "\"bytes\": \"n * 4 - 4\"",
         "add: its launches exchange a of 4000 bytes and b of 3996; buffers that change places are "
         "equally long"},
        {"\"bytes\": \"4 * N\"", "\"bytes\": \"4 * N - 4000\"", "scratch buffer a, bytes"},
        {"\"value\": \"k + 1\"", "\"value\": \"1 / k\"",
         "add, launch 2 of 5, kernel `put`: argument 4: "},
        {"\"ceil_div(n, TILE)\"", "\"n - 1000\"", "add: launch 0 (put), grid[0]"},
        {"\"block\": [\n                  \"TILE\"", "\"block\": [\"TILE * 40\"", "launch 0 (put)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rig r;
        change_manifest(rows[i].from, rows[i].to);
        rig_open(&r, "h", EVOKE_BASELINE); /* the first in the manifest */
        refused(&r, rig_launch(&r, NULL), EVOKE_BAD, rows[i].words);
        rig_close(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(broken_sequences_are_refused),
        cmocka_unit_test(lengths_are_bounded),
        cmocka_unit_test(launches_run_in_order),
        cmocka_unit_test(bad_launches_are_refused),
        cmocka_unit_test(a_failing_launch_is_named),
        cmocka_unit_test(broken_sequences_are_not_launched),
    };
    return cmocka_run_group_tests(tests, set_up, sample_remove_folder);
}
