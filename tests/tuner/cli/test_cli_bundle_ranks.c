/* Bundles of kernels with ranks, from the search to the launch: `evoke tune` writes one, `evoke
 * check` holds it, a scheduler launches from it. By the manifest alone, each variant runs on the
 * virtual machine through the device interface, and by the library on the stand-in for the driver,
 * two ranks on each of two GPUs; the sums are exact on all ranks, launch after launch on the same
 * flags. Manifests that lie are found out, and launches that would wait for ever are refused. */
#include "base/cuda/driver.h"
#include "base/file.h"
#include "base/str.h"
#include "bundle/bundle.h"
#include "fitness/device/device.h"
#include "tests/cli_run.h"

#include <evoke/bundle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/asserts.h"
#include "tests/tuner/cli/collective_rig.h"

enum { RANKS = 4, N = 301, MOST = 16 };

static const char *const bundles[] = {"one", "steps/two"}; /* of one launch; of two */

static cu_driver cu;
static CUcontext contexts[2];
static ev_error err;

#define OK(call) assert_int_equal((call), CUDA_SUCCESS)
#define FINE(call)                                                                                 \
    do {                                                                                           \
        if ((call) != EV_OK)                                                                       \
            fail_msg("%s", err.text);                                                              \
    } while (0)

static void tune(const char *task, const char *out) {
    char records[80];
    (void)snprintf(records, sizeof records, "%s.sqlite", out);
    ev_proc_result r =
        CLI_RUN("tune", cli_path(task), "--evaluations", "6", "--seed", "1", "--workers", "1",
                "--records", cli_path(records), "--out", cli_path(out));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
}

static int setup(void **state) {
    if (cli_setup(state) != 0 || ev_dir_make(cli_path("steps"), &err) != EV_OK ||
        cu_driver_find(&cu, &err) != EV_OK)
        return 1;
    cli_write("sum.cu", SUM_UP_SOURCE);
    cli_write("other.cu", SUM_UP_SOURCE);
    cli_write("sum.json", SUM_UP_TASK);
    cli_write("steps/sum.cu", SUM_UP_STEPS_SOURCE);
    cli_write("steps/sum.json", SUM_UP_STEPS_TASK);
    tune("sum.json", bundles[0]);
    tune("steps/sum.json", bundles[1]);
    return cu.cuInit(0) != CUDA_SUCCESS || cu.cuCtxCreate_v2(&contexts[0], 0, 0) != CUDA_SUCCESS ||
           cu.cuCtxCreate_v2(&contexts[1], 0, 1) != CUDA_SUCCESS;
}

/* Sums of these are exact in any order. */
static float input(uint32_t rank, size_t i) {
    return (float)(((size_t)rank * 37 + i * 11) % 64) / 8 - 4;
}

static void expect_sums(const float *got, uint32_t rank, unsigned epoch) {
    for (size_t i = 0; i < N; i++) {
        float want = 0;
        for (uint32_t r = 0; r < RANKS; r++)
            want += input(r, i);
        if (got[i] != want)
            fail_msg("launch %u, rank %u: element %zu is %g, and should be %g", epoch, rank, i,
                     (double)got[i], (double)want);
    }
}

/* ---- by the manifest alone, on the virtual machine ---- */

typedef struct world {
    const bundle_kernel *k;
    const bundle_variant *v;
    device *devices[RANKS];
    device_kernel *kernel;
    device_buffer buffers[MOST][RANKS], scratch[MOST][RANKS];
    expr_name names[32];
    expr_scope scope;
} world;

static void set_scope(world *w, unsigned epoch) {
    w->names[0] = (expr_name){"n", expr_of_whole(N)};
    w->names[1] = (expr_name){"ranks", expr_of_whole(RANKS)};
    w->names[2] = (expr_name){"epoch", expr_of_whole(epoch)};
    w->scope = (expr_scope){.names = w->names, .count = 3};
    for (size_t i = 0; i < w->k->argument_count; i++) {
        const bundle_argument *a = &w->k->arguments[i];
        expr_value value;
        if (!bundle_is_scalar(a) || expr_scope_find(&w->scope, a->name) != NULL)
            continue;
        FINE(expr_eval(a->expression, &w->scope, &value, &err));
        w->names[w->scope.count++] = (expr_name){a->name, value};
    }
    for (size_t i = 0; i < w->v->macro_count; i++)
        w->names[w->scope.count++] =
            (expr_name){w->v->macros[i].name, expr_of_whole((int64_t)w->v->macros[i].value)};
}

static uint64_t whole(const world *w, const char *expression) {
    int64_t value = 0;
    FINE(expr_eval_whole(expression, &w->scope, 0, INT64_MAX, &value, &err));
    return (uint64_t)value;
}

static size_t argument_named(const world *w, const char *name) {
    size_t i = 0;
    while (i < w->k->argument_count && strcmp(w->k->arguments[i].name, name) != 0)
        i++;
    return i;
}

static size_t scratch_named(const world *w, const char *name) {
    size_t i = 0;
    while (strcmp(w->v->plan->scratch[i].name, name) != 0)
        i++;
    return i;
}

static void fill_argument(world *w, size_t index, uint32_t rank) {
    const bundle_argument *a = &w->k->arguments[index];
    device *d = w->devices[rank];
    device_buffer to = w->buffers[index][rank];
    uint64_t count = whole(w, a->expression);
    if (bundle_is_peers(a)) {
        uint64_t addresses[RANKS];
        size_t of = argument_named(w, a->of);
        for (uint32_t i = 0; i < RANKS; i++)
            addresses[i] = device_address(w->devices[i], w->buffers[of][i]);
        FINE(device_write(d, to, 0, addresses, sizeof addresses, &err));
    } else if (strcmp(a->kind, "in") == 0) {
        float values[N];
        for (size_t i = 0; i < N; i++)
            values[i] = input(rank, i);
        FINE(device_write(d, to, 0, values, sizeof values, &err));
    } else if (strcmp(a->kind, "inout") == 0) {
        for (uint64_t i = 0; i < count; i++) { /* both inout arguments have words of 4 bytes */
            uint32_t word = a->before != NULL ? (uint32_t)whole(w, a->before) : 0;
            FINE(device_write(d, to, i * 4, &word, 4, &err));
        }
    }
}

static void make_buffers(world *w) {
    for (size_t i = 0; i < w->k->argument_count; i++) {
        const bundle_argument *a = &w->k->arguments[i];
        ev_type type = EV_F32;
        assert_true(ev_type_find(a->type, &type));
        vm_buffer_kind kind = strcmp(a->kind, "out") == 0 ? VM_BUFFER_OUT : VM_BUFFER_IN;
        kind = strcmp(a->kind, "inout") == 0 ? VM_BUFFER_INOUT : kind;
        for (uint32_t r = 0; r < RANKS && !bundle_is_scalar(a); r++)
            FINE(device_alloc(w->devices[r], whole(w, a->expression) * ev_type_bytes(type), kind,
                              a->name, &w->buffers[i][r], &err));
    }
    for (size_t i = 0; i < w->k->argument_count; i++)
        for (uint32_t r = 0; r < RANKS && !bundle_is_scalar(&w->k->arguments[i]); r++)
            fill_argument(w, i, r);
}

static void make_scratch(world *w) {
    const launch_plan *plan = w->v->plan;
    uint64_t addresses[RANKS];
    for (size_t i = 0; i < plan->scratch_count; i++) {
        const launch_scratch *s = &plan->scratch[i];
        for (uint32_t r = 0; r < RANKS; r++) {
            FINE(device_alloc(w->devices[r], whole(w, s->bytes),
                              s->peers_of != NULL ? VM_BUFFER_IN : VM_BUFFER_SCRATCH, s->name,
                              &w->scratch[i][r], &err));
            addresses[r] = device_address(w->devices[r], w->scratch[i][r]);
        }
        if (s->peers_of == NULL)
            continue;
        for (uint32_t r = 0; r < RANKS; r++)
            addresses[r] =
                device_address(w->devices[r], w->scratch[scratch_named(w, s->peers_of)][r]);
        for (uint32_t r = 0; r < RANKS; r++)
            FINE(device_write(w->devices[r], w->scratch[i][r], 0, addresses, sizeof addresses,
                              &err));
    }
}

static uint64_t argument_word(const world *w, size_t index, uint32_t rank) {
    const bundle_argument *a = &w->k->arguments[index];
    if (bundle_is_rank(a))
        return rank;
    return bundle_is_scalar(a) ? whole(w, a->expression)
                               : device_address(w->devices[rank], w->buffers[index][rank]);
}

static uint64_t given_word(const world *w, const launch_given *g, uint32_t rank) {
    if (g->name == NULL)
        return whole(w, g->value);
    size_t index = argument_named(w, g->name);
    return index < w->k->argument_count
               ? argument_word(w, index, rank)
               : device_address(w->devices[rank], w->scratch[scratch_named(w, g->name)][rank]);
}

static void pack(const world *w, size_t launch, const vm_entry *entry, uint32_t rank, char *block) {
    const launch_rule *rule = &w->v->plan->launches[launch];
    for (size_t i = 0; i < entry->param_count; i++) {
        uint64_t word = rule->given_count > 0 ? given_word(w, &rule->given[i], rank)
                                              : argument_word(w, i, rank);
        memcpy(block + entry->params[i].offset, &word, entry->params[i].bytes);
    }
}

static void run_step(const world *w, const launch_step *step, unsigned stream) {
    static char blocks[RANKS][512];
    device_kernel *kernel = device_kernel_of(w->kernel, step->launch);
    const device_kernel *kernels[RANKS];
    device_launch launches[RANKS];
    device_outcome outcomes[RANKS];
    launch_geometry at;
    FINE(launch_plan_geometry(w->v->plan, step->launch, &w->scope, &LAUNCH_LIMITS_CUDA, &at, &err));
    for (uint32_t r = 0; r < RANKS; r++) {
        pack(w, step->launch, device_kernel_entry(kernel), r, blocks[r]);
        kernels[r] = kernel;
        launches[r] = device_launch_of(&at);
        launches[r].params = blocks[r];
        launches[r].checks = VM_CHECK_ALL | VM_CHECK_BEGIN | VM_CHECK_END;
        launches[r].stream = stream;
    }
    FINE(device_run_ranks(w->devices, kernels, launches, RANKS, outcomes, &err));
    if (!outcomes[0].ok)
        fail_msg("%s", outcomes[0].fault.message);
}

static void run_launches(world *w, unsigned epoch) {
    launch_step *steps = NULL;
    size_t count = 0, out = argument_named(w, "output");
    float got[N];
    set_scope(w, epoch);
    for (uint32_t r = 0; r < RANKS; r++)
        memset(device_host(w->devices[r], w->buffers[out][r]), 0, sizeof got);
    FINE(launch_plan_steps(w->v->plan, &w->scope, &steps, &count, &err));
    for (size_t i = 0; i < count; i++)
        run_step(w, &steps[i],
                 (i > 0 ? VM_STREAM_FOLLOWS : 0) | (i + 1 < count ? VM_STREAM_GOES_ON : 0));
    free(steps);
    for (uint32_t r = 0; r < RANKS; r++) {
        FINE(device_read(w->devices[r], w->buffers[out][r], 0, got, sizeof got, &err));
        expect_sums(got, r, epoch);
    }
}

static void run_on_machine(const bundle_kernel *k, const bundle_variant *v) {
    world w = {.k = k, .v = v};
    set_scope(&w, 1);
    FINE(device_open_ranks("vm:h200", RANKS, w.devices, &err));
    FINE(device_load_plan(w.devices[0], v->ptx, v->ptx_bytes, v->plan, &w.kernel, &err));
    make_buffers(&w);
    make_scratch(&w);
    for (unsigned epoch = 1; epoch <= 3; epoch++)
        run_launches(&w, epoch);
    device_unload(w.kernel);
    for (uint32_t r = 0; r < RANKS; r++)
        device_close(w.devices[r]);
}

static void the_manifest_suffices(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        bundle *b = NULL;
        FINE(bundle_open(cli_path(bundles[i]), &b, &err));
        const bundle_kernel *k = bundle_kernel_at(b, 0);
        assert_int_equal(k->baselines[0].plan->launch_count, i + 1);
        assert_true(bundle_is_resident(&k->baselines[0], i == 0 ? "sum_up" : "get"));
        assert_int_equal(k->baselines[0].resident_count, 1);
        run_on_machine(k, &k->baselines[0]);
        for (size_t v = 0; v < k->variant_count; v++)
            run_on_machine(k, &k->variants[v]);
        bundle_close(b);
    }
}

static void the_bundles_are_right(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        ev_proc_result r = CLI_RUN("check", cli_path(bundles[i]));
        cli_expect(&r, 0);
        assert_non_null(strstr(ev_str_text(&r.out), "verdict: pass"));
        ev_proc_result_free(&r);
    }
}

/* A header has launches on one GPU. */
static void headers_leave_ranks_out(void **state) {
    (void)state;
    cli_expect_error(
        CLI_RUN("export", "--to", "c-header", cli_path("one"), "--out", cli_path("ranks.h")), 2,
        "or launches on several GPUs, which a C header does not have");
}

/* ---- by the library ---- */

typedef struct party {
    evoke_bundle *b;
    const evoke_variant *variant;
    char text[64];
    evoke_number numbers[3];
    evoke_shape shape;
    evoke_rank ranks[RANKS];
    evoke_buffer buffers[RANKS][MOST];
    size_t buffer_count, output;
    evoke_error error;
} party;

static void set_shape(party *p, unsigned n, unsigned epoch) {
    (void)snprintf(p->text, sizeof p->text, "n=%u ranks=%d epoch=%u", n, RANKS, epoch);
    assert_int_equal(evoke_shape_read(p->text, p->numbers, 3, &p->shape, &p->error), EVOKE_OK);
}

static void fill_input(void *context, const evoke_argument *a, void *data, size_t bytes) {
    const uint32_t *rank = context;
    for (size_t i = 0; a->kind == EVOKE_IN && i < bytes / 4; i++)
        ((float *)data)[i] = input(*rank, i);
}

static void open_rank(party *p, uint32_t r) {
    CUstream stream = NULL;
    CUdeviceptr scratch = 0;
    size_t bytes = 0;
    p->ranks[r] = (evoke_rank){.context = contexts[r % 2], .buffers = p->buffers[r]};
    OK(cu.cuCtxSetCurrent(contexts[r % 2]));
    OK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    p->ranks[r].stream = stream;
    if (evoke_variant_allocate(p->variant, &p->shape, fill_input, &r, MOST, p->buffers[r],
                               &p->buffer_count, &p->error) != EVOKE_OK ||
        evoke_variant_scratch(p->variant, &p->shape, &bytes, &p->error) != EVOKE_OK)
        fail_msg("%s", p->error.text);
    if (bytes > 0)
        OK(cu.cuMemAlloc_v2(&scratch, bytes));
    p->ranks[r].scratch = (evoke_buffer){scratch, bytes};
}

static void open_party(party *p, const char *name, unsigned flags) {
    evoke_choice choice;
    evoke_gpu gpu;
    char gpu_name[256];
    evoke_argument arguments[MOST];
    *p = (party){.b = NULL};
    set_shape(p, N, 1);
    OK(cu.cuCtxSetCurrent(contexts[0]));
    if (evoke_bundle_open(cli_path(name), &p->b, &p->error) != EVOKE_OK ||
        evoke_gpu_current(&gpu, gpu_name, &p->error) != EVOKE_OK ||
        evoke_bundle_resolve(p->b, "sum_up", &gpu, &p->shape, flags, &choice, &p->error) !=
            EVOKE_OK)
        fail_msg("%s", p->error.text);
    p->variant = choice.variant;
    assert_int_equal(evoke_bundle_buffers(p->b, "sum_up", &p->shape, MOST, arguments, p->buffers[0],
                                          &p->buffer_count, &p->error),
                     EVOKE_OK);
    while (strcmp(arguments[p->output].name, "output") != 0)
        p->output++;
    for (uint32_t r = 0; r < RANKS; r++)
        open_rank(p, r);
}

static void close_party(party *p) {
    for (uint32_t r = 0; r < RANKS; r++) {
        OK(cu.cuCtxSetCurrent(contexts[r % 2]));
        assert_int_equal(evoke_buffers_free(p->buffers[r], p->buffer_count, &p->error), EVOKE_OK);
        if (p->ranks[r].scratch.bytes > 0)
            OK(cu.cuMemFree_v2(p->ranks[r].scratch.address));
        OK(cu.cuStreamDestroy_v2(p->ranks[r].stream));
    }
    evoke_bundle_close(p->b);
}

static void clear_outputs(const party *p) {
    for (uint32_t r = 0; r < RANKS; r++) {
        OK(cu.cuCtxSetCurrent(contexts[r % 2]));
        OK(cu.cuMemsetD8_v2(p->buffers[r][p->output].address, 0, N * sizeof(float)));
        OK(cu.cuCtxSynchronize());
    }
}

static void expect_outputs(const party *p, unsigned epoch) {
    float got[N];
    for (uint32_t r = 0; r < RANKS; r++) {
        OK(cu.cuCtxSetCurrent(contexts[r % 2]));
        OK(cu.cuCtxSynchronize());
        OK(cu.cuMemcpyDtoH_v2(got, p->buffers[r][p->output].address, sizeof got));
        expect_sums(got, r, epoch);
    }
}

static void prepare(party *p) {
    if (evoke_variant_prepare_ranks(p->variant, &p->shape, p->ranks, RANKS, p->buffer_count,
                                    &p->error) != EVOKE_OK)
        fail_msg("%s", p->error.text);
}

static void launch(party *p, unsigned epoch) {
    set_shape(p, N, epoch);
    clear_outputs(p);
    if (evoke_variant_launch_ranks(p->variant, &p->shape, p->ranks, RANKS, p->buffer_count,
                                   &p->error) != EVOKE_OK)
        fail_msg("%s", p->error.text);
    expect_outputs(p, epoch);
}

/* Flags go on from launch to launch; what was prepared for a later one is right, too. */
static void the_library_launches(void **state) {
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        party p;
        open_party(&p, bundles[i % 2], i < 2 ? 0 : EVOKE_BASELINE);
        prepare(&p);
        for (unsigned epoch = 1; epoch <= 3; epoch++)
            launch(&p, epoch);
        set_shape(&p, N, 9);
        prepare(&p);
        launch(&p, 9);
        close_party(&p);
    }
}

/* As processes with a rank each do. */
static void ranks_are_launched_one_by_one(void **state) {
    (void)state;
    party p;
    open_party(&p, bundles[0], 0);
    prepare(&p);
    clear_outputs(&p);
    for (uint32_t r = 0; r < RANKS; r++)
        assert_int_equal(evoke_variant_launch_rank(p.variant, &p.shape, r, &p.ranks[r],
                                                   p.buffer_count, &p.error),
                         EVOKE_OK);
    expect_outputs(&p, 1);
    assert_int_equal(evoke_variant_launch_rank(p.variant, &p.shape, RANKS, &p.ranks[0],
                                               p.buffer_count, &p.error),
                     EVOKE_BAD);
    assert_non_null(strstr(p.error.text, "has 4 ranks at this shape, and none of the number 4"));
    close_party(&p);
    open_party(&p, bundles[1], EVOKE_BASELINE);
    assert_int_equal(
        evoke_variant_launch_rank(p.variant, &p.shape, 0, &p.ranks[0], p.buffer_count, &p.error),
        EVOKE_BAD);
    assert_non_null(strstr(p.error.text, "a table of addresses (all) in its scratch memory"));
    close_party(&p);
}

static void refuses(party *p, size_t count, const char *words) {
    clear_outputs(p);
    assert_int_equal(evoke_variant_launch_ranks(p->variant, &p->shape, p->ranks, count,
                                                p->buffer_count, &p->error),
                     EVOKE_BAD);
    if (strstr(p->error.text, words) == NULL)
        fail_msg("'%s' lacks '%s'", p->error.text, words);
    for (uint32_t r = 0; r < RANKS; r++) { /* nothing ran */
        float got[N];
        OK(cu.cuCtxSetCurrent(contexts[r % 2]));
        OK(cu.cuMemcpyDtoH_v2(got, p->buffers[r][p->output].address, sizeof got));
        for (size_t i = 0; i < N; i++)
            assert_true(got[i] == 0);
    }
}

static void launches_that_would_wait_are_refused(void **state) {
    (void)state;
    party p;
    CUcontext third = NULL;
    open_party(&p, bundles[0], 0);
    prepare(&p);
    assert_int_equal(
        evoke_variant_launch(p.variant, &p.shape, p.buffers[0], p.buffer_count, NULL, &p.error),
        EVOKE_BAD);
    assert_non_null(strstr(p.error.text, "call evoke_variant_launch_ranks"));
    refuses(&p, 3, "has 4 ranks at this shape, and 3 are given");
    void *stream = p.ranks[2].stream;
    p.ranks[2].stream = p.ranks[0].stream;
    refuses(&p, RANKS, "ranks 0 and 2 have one GPU and one stream");
    p.ranks[2].stream = NULL;
    refuses(&p, RANKS, "or the default stream");
    p.ranks[2].stream = stream;
    OK(cu.cuCtxCreate_v2(&third, 0, 0));
    p.ranks[2].context = third;
    refuses(&p, RANKS, "ranks 0 and 2 have two contexts of one GPU, whose kernels take turns");
    p.ranks[2].context = NULL;
    refuses(&p, RANKS, "rank 2: it has no context");
    p.ranks[2].context = contexts[0];
    size_t bytes = p.buffers[3][0].bytes;
    p.buffers[3][0].bytes = 4;
    refuses(&p, RANKS, "sum_up, rank 3: ");
    p.buffers[3][0].bytes = bytes;
    launch(&p, 1);
    assert_int_equal(evoke_bundle_forget(p.b, &p.error), EVOKE_OK);
    close_party(&p);
    OK(cu.cuCtxDestroy_v2(third));
}

/* Two ranks of a GPU have more blocks than there are places; nothing is launched. */
static void blocks_without_a_place_are_refused(void **state) {
    (void)state;
    static const unsigned sizes[] = {4u << 20, 150000}; /* too many for one rank; for two */
    party p;
    open_party(&p, bundles[0], EVOKE_BASELINE);
    for (size_t s = 0; s < 2; s++) {
        evoke_buffer large[MOST];
        set_shape(&p, sizes[s], 1);
        for (uint32_t r = 0; r < RANKS; r++) {
            for (size_t i = 0; i < p.buffer_count; i++)
                large[i] = (evoke_buffer){UINT64_C(1) << 40, EVOKE_BYTES_UNKNOWN};
            p.ranks[r].buffers = large;
        }
        refuses(&p, RANKS, "blocks that wait for each other have to be there together");
        for (uint32_t r = 0; r < RANKS; r++)
            p.ranks[r].buffers = p.buffers[r];
    }
    close_party(&p);
}

/* ---- lies ---- */

static const struct {
    const char *from, *to, *words;
} lies[] = {
    {"\"count\": \"ranks\"", "\"count\": \"ranks * 1\"", "ranks.count is \\\"ranks * 1"},
    {"\"scope\": \"sys\"", "\"scope\": \"sys\", \"barriers\": [\"after\"]",
     "a barrier after launches is 1, and should be 0"},
    {"\"before\": \"epoch - 1\"", "\"before\": \"epoch\"",
     "before of an argument is \\\"epoch\\\""},
    {"\"by_rank\": true,", "", "by_rank of an argument is 0, and should be 1"},
    {"\"of\": \"flags\"", "\"of\": \"stage\"", "the buffer of a table (of) is \\\"stage\\\""},
};

/* All in one manifest, each of which is told. */
static void lies_are_found(void **state) {
    (void)state;
    char command[600];
    (void)snprintf(command, sizeof command, "cp -r %s %s", cli_path("one"), cli_path("lying"));
    ev_proc_result r = cli_shell(command);
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++)
        cli_copy_changed("lying/manifest.json", "lying/manifest.json", lies[i].from, lies[i].to);
    r = CLI_RUN("check", cli_path("lying"), "--json");
    cli_expect(&r, 1);
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        if (strstr(ev_str_text(&r.out), lies[i].words) == NULL)
            fail_msg("%s: '%s' lacks '%s'", lies[i].to, ev_str_text(&r.out), lies[i].words);
    }
    ev_proc_result_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bundles_are_right),
        cmocka_unit_test(the_manifest_suffices),
        cmocka_unit_test(headers_leave_ranks_out),
        cmocka_unit_test(the_library_launches),
        cmocka_unit_test(ranks_are_launched_one_by_one),
        cmocka_unit_test(launches_that_would_wait_are_refused),
        cmocka_unit_test(blocks_without_a_place_are_refused),
        cmocka_unit_test(lies_are_found),
    };
    return cmocka_run_group_tests(tests, setup, cli_teardown);
}
