/* Bundles of kernels whose launches run on several GPUs at once: what is written is read again, and
 * each manifest by which ranks would wait for ever, or write elsewhere, is refused by name. */
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

static void write_sample(const char *name, const sample *s) {
    ev_error err = {0};
    if (bundle_write(sample_path(name), &s->content, &err) != EV_OK)
        fail_msg("%s", err.text);
}

static void write_ranks(const char *name) {
    sample s;
    sample_fill(&s);
    sample_use_ranks(&s);
    write_sample(name, &s);
}

static void what_is_written_is_read(void **state) {
    (void)state;
    bundle *b = NULL;
    ev_error err = {0};
    sample s;
    ev_sha256 wanted, got;
    sample_fill(&s);
    sample_use_ranks(&s);
    write_sample("r.tar", &s);
    if (bundle_open(sample_path("r.tar"), &b, &err) != EV_OK)
        fail_msg("%s", err.text);
    const bundle_kernel *k = bundle_find(b, "add");
    assert_string_equal(k->ranks->count, "ranks");
    assert_true(k->ranks->begins_together && !k->ranks->ends_together);
    assert_string_equal(k->arguments[3].of, "stage");
    assert_string_equal(k->arguments[4].before, "(epoch - 1) * ranks");
    assert_true(bundle_is_peers(&k->arguments[3]) && bundle_is_rank(&k->arguments[7]));
    assert_true(k->arguments[2].by_rank && !k->arguments[1].by_rank);
    assert_true(bundle_is_scalar(&k->arguments[7]) && !bundle_is_scalar(&k->arguments[3]));
    assert_true(k->arguments[0].of == NULL && k->arguments[2].before == NULL);
    assert_true(bundle_is_resident(&k->variants[0], "get"));
    assert_false(bundle_is_resident(&k->variants[0], "put"));
    launch_plan read = *k->variants[0].plan;
    read.range_count = 0;
    assert_int_equal(launch_plan_sha256(s.variant.plan, &wanted, &err), EV_OK);
    assert_int_equal(launch_plan_sha256(&read, &got, &err), EV_OK);
    assert_string_equal(got.hex, wanted.hex);
    bundle_close(b);
}

static evoke_bundle *open_public(const char *name) {
    evoke_bundle *b = NULL;
    evoke_error error = {EVOKE_OK, ""};
    if (evoke_bundle_open(sample_path(name), &b, &error) != EVOKE_OK)
        fail_msg("%s", error.text);
    return b;
}

static void the_library_tells_of_ranks(void **state) {
    (void)state;
    char text[] = "N=10 ranks=3 epoch=1", many[] = "N=10 ranks=9 epoch=1";
    evoke_number numbers[3];
    evoke_shape shape;
    evoke_error error = {EVOKE_OK, ""};
    evoke_ranks ranks;
    evoke_shared shared;
    evoke_argument arguments[8];
    evoke_buffer buffers[8];
    size_t count = 0;
    write_ranks("r.tar");
    evoke_bundle *b = open_public("r.tar");
    assert_int_equal(evoke_shape_read(text, numbers, 3, &shape, &error), EVOKE_OK);
    assert_int_equal(evoke_bundle_ranks(b, "add", &shape, &ranks, &error), EVOKE_OK);
    assert_true(ranks.count == 3 && ranks.needs_barrier_before && !ranks.needs_barrier_after);
    assert_int_equal(evoke_bundle_buffers(b, "add", &shape, 8, arguments, buffers, &count, &error),
                     EVOKE_OK);
    assert_int_equal(count, 6);
    assert_true(arguments[3].kind == EVOKE_PEERS && buffers[3].bytes == 24);
    assert_int_equal(evoke_bundle_argument(b, "add", 7, &arguments[0], &error), EVOKE_OK);
    assert_true(arguments[0].kind == EVOKE_RANK && arguments[0].alignment == 1);
    assert_int_equal(evoke_bundle_shared(b, "add", 3, &shared, &error), EVOKE_OK);
    assert_string_equal(shared.of, "stage");
    assert_int_equal(evoke_bundle_shared(b, "add", 8, &shared, &error), EVOKE_BAD);
    assert_int_equal(evoke_bundle_shared(b, "sub", 0, &shared, &error), EVOKE_BAD);
    assert_int_equal(evoke_shape_read(many, numbers, 3, &shape, &error), EVOKE_OK);
    assert_int_equal(evoke_bundle_ranks(b, "add", &shape, &ranks, &error), EVOKE_BAD);
    assert_non_null(strstr(error.text, "add, ranks: expression \"ranks\" is 9"));
    evoke_bundle_close(b);
    sample s;
    sample_fill(&s);
    write_sample("one.tar", &s);
    b = open_public("one.tar");
    assert_int_equal(evoke_bundle_ranks(b, "add", &shape, &ranks, &error), EVOKE_OK);
    assert_true(ranks.count == 1 && !ranks.needs_barrier_before);
    evoke_bundle_close(b);
}

/* ---- what is refused ---- */

/* The first `from` of the sample's manifest is replaced. */
static void change_manifest(const char *from, const char *to) {
    char path[200], *text = NULL;
    size_t bytes = 0;
    ev_str made = EV_STR_EMPTY;
    ev_error err = {0};
    write_ranks("h");
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

static void broken_manifests_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *words;
    } rows[] = {
        {"\"scope\": \"sys\"", "\"scope\": \"gpu\"", "\"gpu\" is no scope of flags between GPUs"},
        {"\"before\"\n", "\"during\"\n", "a barrier stands before or after a launch"},
        {"\"before\"\n", "\"before\", \"before\"\n", "and each once"},
        {"\"count\": \"ranks\"", "\"count\": \"rank_s\"", "unknown name \"rank_s\""},
        {"\"count\": \"ranks\"", "\"number\": \"ranks\"", "number"},
        {"\"of\": \"stage\"", "\"of\": \"steps\"", "\"steps\" is no buffer among the arguments"},
        {"\"of\": \"stage\"", "\"of\": \"n\"", "\"n\" is no buffer among the arguments"},
        {"\"of\": \"stage\"", "\"of\": \"all_flags\"", "is no buffer among the arguments"},
        {"\"kind\": \"peers\"", "\"kind\": \"in\"", "says of which buffer it is (\"of\")"},
        {"\"kind\": \"rank\"", "\"kind\": \"peers\"", "says of which buffer it is (\"of\")"},
        {"\"kind\": \"rank\"", "\"kind\": \"ranks\"",
         "it is in, out, inout, scalar, rank or peers"},
        {"\"before\": \"(epoch - 1) * ranks\"", "\"before\": \"(epoch - 1\"",
         "expression \"(epoch - 1\""},
        {"\"before\": \"(epoch - 1) * ranks\"", "\"before\": \"turn\"", "unknown name \"turn\""},
        {"\"by_rank\": true", "\"by_rank\": 1", "by_rank"},
        {"\"of\": \"mine\"", "\"of\": \"all\"", "must be a scratch buffer before this one"},
        {"\"of\": \"mine\"", "\"of\": \"x\"", "must be a scratch buffer before this one"},
        {"\"resident\": [\n", "\"resident\": [\"get\",\n", "a kernel that the variant launches"},
        {"\"resident\": [\n", "\"resident\": [\"gone\",\n", "a kernel that the variant launches"},
        {"\"resident\": [\n", "\"resident\": [5,\n", "a kernel that the variant launches"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bundle *b = NULL;
        ev_error err = {0};
        change_manifest(rows[i].from, rows[i].to);
        if (bundle_open(sample_path("h"), &b, &err) != EV_BAD)
            fail_msg("%s is taken", rows[i].to);
        if (strstr(err.text, rows[i].words) == NULL || strstr(err.text, "manifest.json:") == NULL)
            fail_msg("'%s' lacks '%s'", err.text, rows[i].words);
    }
}

static void must_be_refused(const sample *s, const char *words) {
    bundle *b = NULL;
    ev_error err = {0};
    write_sample("bad.tar", s);
    assert_int_equal(bundle_open(sample_path("bad.tar"), &b, &err), EV_BAD);
    if (strstr(err.text, words) == NULL)
        fail_msg("'%s' lacks '%s'", err.text, words);
}

/* A launch on one GPU has no ranks. */
static void ranks_without_ranks_are_refused(void **state) {
    (void)state;
    sample s;
    sample_fill(&s);
    sample_use_ranks(&s);
    s.kernel.ranks = NULL;
    must_be_refused(&s, "are of a kernel with \"ranks\"");
    sample_fill(&s);
    s.variant.resident = (const char *const[]){"add"};
    s.variant.resident_count = 1;
    must_be_refused(&s, "it is of a kernel with \"ranks\", and has 1 to 64 members");
}

static void wrong_types_are_refused(void **state) {
    (void)state;
    static const struct {
        bundle_argument is;
        const char *words;
    } rows[] = {
        {{"t", "peers", "u32", "ranks", 16, false, 0, 0, "x", NULL, false}, "has the type u64"},
        {{"r", "rank", "f32", "0", 0, false, 0, 0, NULL, NULL, false}, "types u32, s32, u64"},
        {{"i", "in", "f32", "N", 4, false, 0, 0, NULL, "1", false}, "reads and writes"},
        {{"i", "in", "f32", "N", 4, false, 0, 0, NULL, NULL, true}, "that the kernel writes"},
        {{"p.r", "rank", "s32", "0", 0, true, 0, 16, NULL, NULL, false}, "and of no struct"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bundle_argument all[12];
        sample s;
        sample_fill(&s);
        sample_use_ranks(&s);
        memcpy(all, s.kernel.arguments, s.kernel.argument_count * sizeof *all);
        all[s.kernel.argument_count++] = rows[i].is;
        s.kernel.arguments = all;
        must_be_refused(&s, rows[i].words);
    }
}

/* GPUs that do not reach each other's memory; the variant is not even loaded. */
static void strangers_are_refused(void **state) {
    (void)state;
    char text[] = "N=10 ranks=2 epoch=1";
    evoke_number numbers[3];
    evoke_shape shape;
    evoke_error error = {EVOKE_OK, ""};
    evoke_choice choice;
    evoke_buffer buffers[6];
    evoke_rank ranks[2];
    CUcontext contexts[2];
    cu_driver cu;
    assert_int_equal(cu_driver_find(&cu, NULL), EV_OK);
    assert_int_equal(cu.cuInit(0), CUDA_SUCCESS);
    for (size_t i = 0; i < 6; i++)
        buffers[i] = (evoke_buffer){(i + 1) << 20, EVOKE_BYTES_UNKNOWN};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cu.cuCtxCreate_v2(&contexts[i], 0, i), CUDA_SUCCESS);
        ranks[i] = (evoke_rank){contexts[i], NULL, buffers, {(uintptr_t)1 << 30, 1 << 20}};
    }
    write_ranks("r.tar");
    evoke_bundle *b = open_public("r.tar");
    assert_int_equal(evoke_shape_read(text, numbers, 3, &shape, &error), EVOKE_OK);
    assert_int_equal(
        evoke_bundle_resolve(b, "add", &(evoke_gpu){"h200", 90, 132}, &shape, 0, &choice, &error),
        EVOKE_OK);
    assert_int_equal(evoke_variant_prepare_ranks(choice.variant, &shape, ranks, 2, 6, &error),
                     EVOKE_BAD);
    if (strstr(error.text, "the GPU of rank 0 has no access to the memory of rank 1's") == NULL)
        fail_msg("%s", error.text);
    evoke_bundle_close(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(the_library_tells_of_ranks),
        cmocka_unit_test(broken_manifests_are_refused),
        cmocka_unit_test(ranks_without_ranks_are_refused),
        cmocka_unit_test(wrong_types_are_refused),
        cmocka_unit_test(strangers_are_refused),
    };
    return cmocka_run_group_tests(tests, sample_make_folder, sample_remove_folder);
}
