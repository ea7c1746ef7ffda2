/* Which blocks of a timed case are run: grids of which most blocks are idle, and grids whose blocks
 * wait for others. Each PTX file says in its first line where it must be stopped. */
#include "base/file.h"
#include "fitness/gates/fitness.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/asserts.h"

#include "tests/ok.h"

#define FOLDER "tests/fitness/gates/"

static ev_error err;

typedef struct bench {
    task *t;
    device *d;
    fitness *f;
    char *baseline;
} bench;

static char *read_ptx(const char *folder, const char *name) {
    char path[256], *text = NULL;
    size_t bytes = 0;
    (void)snprintf(path, sizeof path, FOLDER "%s/%s.ptx", folder, name);
    OK(ev_file_read(path, &text, &bytes, &err));
    return text;
}

/* `macros`: NULL, or the one macro. */
static candidate candidate_of(const bench *b, const char *ptx, const expr_name *macros) {
    return (candidate){.ptx = ptx,
                       .ptx_bytes = strlen(ptx),
                       .plan = b->t->starts[0].plan,
                       .start = &b->t->starts[0],
                       .macros = macros,
                       .macro_count = macros != NULL ? 1 : 0};
}

/* `searched`: a held-out case that becomes one of the search; NULL: none. */
static void open_searching(bench *b, const char *folder, const char *searched) {
    char path[256];
    score s;
    (void)snprintf(path, sizeof path, FOLDER "%s/task.json", folder);
    memset(b, 0, sizeof *b);
    OK(task_load(path, &b->t, &err));
    if (searched != NULL)
        ((task_case *)task_find_case(b->t, searched))->split = CORPUS_SEARCH;
    OK(device_open("vm:h200", &b->d, &err));
    OK(fitness_open(b->t, b->d, NULL, &b->f, &err));
    b->baseline = read_ptx(folder, "baseline");
    candidate c = candidate_of(b, b->baseline, NULL);
    OK(fitness_set_baseline(b->f, &c, 1u << CORPUS_SEARCH, &s, &err));
    assert_true(s.ns > 0);
}

static void open_bench(bench *b, const char *folder) {
    open_searching(b, folder, NULL);
}

static void close_bench(bench *b) {
    fitness_close(b->f);
    device_close(b->d);
    task_free(b->t);
    free(b->baseline);
}

static const expr_name eight = {"BLOCK", {.whole = 8, .real = 8}};

/* ---- the unmodified start ---- */

typedef struct start_build {
    const char *ptx;
    int calls;
} start_build;

static ev_status give_start(void *context, ev_str *ptx, ev_error *why) {
    start_build *s = context;
    s->calls++;
    ev_str_append(ptx, s->ptx);
    return ev_str_status(ptx, why);
}

/* ---- cheats and their right twins ---- */

static void check_right(const bench *b, const candidate *c) {
    for (size_t i = 0; i < b->t->case_count; i++) {
        fitness_verdict v;
        OK(fitness_check(b->f, c, &b->t->cases[i], &v, &err));
        if (!v.ok)
            fail_msg("case %s: %s", b->t->cases[i].name, v.reason);
    }
}

static void check_file(const bench *b, const char *folder, const char *name,
                       const expr_name *macros) {
    char *ptx = read_ptx(folder, name), gate[32] = "", trap[64] = "";
    score s;
    assert_true(sscanf(ptx, "// expect: %31s%63[^\n]", gate, trap) >= 1);
    candidate c = candidate_of(b, ptx, macros);
    char *start = macros != NULL ? read_ptx(folder, "small_blocks") : NULL;
    start_build from = {.ptx = start};
    c.divided = macros != NULL ? give_start : NULL;
    c.unmodified_context = &from;
    OK(fitness_score(b->f, &c, &s, &err));
    if (strcmp(gate_name(s.stopped), gate) != 0)
        fail_msg("%s/%s: stopped at %s, expected %s (%s)", folder, name, gate_name(s.stopped), gate,
                 s.reason);
    assert_true(s.trap[0] == '\0' ? trap[0] == '\0' : strstr(trap, s.trap) != NULL);
    if (s.stopped == GATE_NONE)
        check_right(b, &c);
    free(start);
    free(ptx);
}

static void test_cheats_in_grids_of_idle_blocks_are_seen(void **state) {
    (void)state;
    static const char *const small[] = {"small_blocks", "small_split", "half_when_large",
                                        "off_when_large"};
    bench b;
    open_bench(&b, "gauss");
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++)
        check_file(&b, "gauss", small[i], &eight);
    check_file(&b, "gauss", "baseline", NULL);
    check_file(&b, "gauss", "half_of_16_when_large", NULL);
    close_bench(&b);
}

static void check_files(const char *const files[][2], size_t count) {
    for (size_t i = 0; i < count; i++) {
        bench b;
        open_bench(&b, files[i][0]);
        check_file(&b, files[i][0], files[i][1], NULL);
        close_bench(&b);
    }
}

static void test_cheats_in_grids_that_wait_are_seen(void **state) {
    (void)state;
    static const char *const files[][2] = {{"last", "baseline"},
                                           {"last", "by_fours"},
                                           {"last", "leaves_out_when_large"},
                                           {"last", "nobody_adds_when_large"},
                                           {"grid", "baseline"},
                                           {"grid", "by_atomic"},
                                           {"grid", "no_wait_when_large"}};
    check_files(files, sizeof files / sizeof files[0]);
}

/* All blocks of the baseline run, so nothing shows that a sample would write a part of the sum. A
 * right variant with more blocks passes nevertheless. */
static void test_sums_in_few_blocks_are_compared_whole(void **state) {
    (void)state;
    bench b;
    score s;
    open_bench(&b, "few");
    char *ptx = read_ptx("few", "at_once");
    candidate c = candidate_of(&b, ptx, NULL);
    launch_rule rule = c.plan->launches[0];
    rule.grid[0] = "ceil_div(n, 8)";
    rule.block[0] = "8";
    launch_plan plan = *c.plan;
    plan.launches = &rule;
    c.plan = &plan;
    c.structure = c.division = "a prefix";
    OK(fitness_score(b.f, &c, &s, &err));
    if (s.stopped != GATE_NONE)
        fail_msg("stopped at %s: %s", gate_name(s.stopped), s.reason);
    check_right(&b, &c);
    free(ptx);
    close_bench(&b);
}

/* A flag's read is no order for plain loads: an acquire fence has to come after it. */
static void test_dropped_fences_are_seen(void **state) {
    (void)state;
    static const char *const files[][2] = {
        {"last", "no_acquire"},        {"last", "no_release"},        {"last", "fence_of_all"},
        {"last", "volatile_parts"},    {"grid", "no_acquire"},        {"grid", "acquire_of_block"},
        {"grid", "fence_before_wait"}, {"grid", "fence_in_the_loop"}, {"grid", "acquire_load"}};
    check_files(files, sizeof files / sizeof files[0]);
}

/* A baseline without the fence is taken as it is, and so are its variants. */
static void test_a_baseline_may_lack_the_acquire_fence(void **state) {
    (void)state;
    bench b = {.baseline = NULL};
    score s;
    OK(task_load(FOLDER "last/task.json", &b.t, &err));
    OK(device_open("vm:h200", &b.d, &err));
    OK(fitness_open(b.t, b.d, NULL, &b.f, &err));
    b.baseline = read_ptx("last", "no_acquire");
    candidate c = candidate_of(&b, b.baseline, NULL);
    OK(fitness_set_baseline(b.f, &c, 1u << CORPUS_SEARCH, &s, &err));
    OK(fitness_score(b.f, &c, &s, &err));
    assert_int_equal(s.stopped, GATE_NONE);
    check_file(&b, "last", "fence_of_all", NULL);
    check_file(&b, "last", "no_release", NULL);
    close_bench(&b);
}

/* ---- the sample ---- */

static fitness_profile_data profile_of(const bench *b, const char *ptx, const expr_name *macros,
                                       const char *at) {
    fitness_profile_data p;
    candidate c = candidate_of(b, ptx, macros);
    OK(fitness_profile(b->f, &c, task_find_case(b->t, at), &p, &err));
    assert_true(p.outcome.ok);
    return p;
}

/* The time of the whole grid, on buffers of zeros: which blocks work depends on no data. */
static double time_of_all(const char *ptx, uint32_t n, uint32_t pivot) {
    struct {
        uint64_t factor, a;
        uint32_t n, pivot;
    } params = {.n = n, .pivot = pivot};
    device *d = NULL;
    device_kernel *kernel = NULL;
    device_buffer factor = 0, a = 0;
    device_outcome outcome;
    device_timing timing;
    OK(device_open("vm:h200", &d, &err));
    OK(device_alloc(d, (uint64_t)n * 4, VM_BUFFER_IN, "factor", &factor, &err));
    OK(device_alloc(d, (uint64_t)n * n * 4, VM_BUFFER_INOUT, "a", &a, &err));
    OK(device_load(d, ptx, strlen(ptx), "eliminate", &kernel, &err));
    params.factor = device_address(d, factor);
    params.a = device_address(d, a);
    device_launch l = {.grid = {n / 8, n / 8, 1}, .block = {8, 8, 1}, .params = &params};
    OK(device_time(d, kernel, &l, &outcome, &timing, &err));
    assert_true(outcome.ok);
    device_unload(kernel);
    device_close(d);
    return timing.ns;
}

static void test_a_grid_of_idle_blocks_is_timed_by_its_work(void **state) {
    (void)state;
    static const struct {
        const char *at;
        uint32_t n, pivot;
        fitness_grid grid; /* early, all but a twentieth of the blocks have work */
    } cases[] = {{"late", 512, 400, FITNESS_GRID_UNEVEN},
                 {"held-late", 768, 600, FITNESS_GRID_UNEVEN},
                 {"early", 1024, 30, FITNESS_GRID_EVEN}};
    bench b;
    open_bench(&b, "gauss");
    char *ptx = read_ptx("gauss", "small_blocks");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fitness_profile_data p = profile_of(&b, ptx, &eight, cases[i].at);
        double all = time_of_all(ptx, cases[i].n, cases[i].pivot);
        if (fabs(p.timing.ns - all) > 0.15 * all)
            fail_msg("case %s: sampled %.0f ns, all blocks %.0f ns", cases[i].at, p.timing.ns, all);
        assert_int_equal(p.grid, cases[i].grid);
        assert_true(p.timing.model.sampled_blocks <= 7);
        fitness_profile_free(&p);
    }
    free(ptx);
    close_bench(&b);
}

/* The sample at fixed places: as cheap as ever. */
static void test_an_even_grid_runs_two_blocks(void **state) {
    (void)state;
    bench b;
    open_bench(&b, ".");
    fitness_profile_data p = profile_of(&b, b.baseline, NULL, "large");
    assert_int_equal(p.grid, FITNESS_GRID_EVEN);
    assert_int_equal(p.timing.model.sampled_blocks, 2);
    fitness_profile_free(&p);
    close_bench(&b);
}

/* The modelled launch of all blocks of a grid of tiles of 32 x `high`, on buffers of zeros. */
static model_time model_of_all(const char *ptx, const char *entry, uint32_t width, uint32_t height,
                               uint32_t high) {
    struct {
        uint64_t x, y;
        uint32_t width, height;
    } params = {.width = width, .height = height};
    device *d = NULL;
    device_kernel *kernel = NULL;
    device_buffer x = 0, y = 0;
    device_outcome outcome;
    device_timing timing;
    OK(device_open("vm:t4", &d, &err));
    OK(device_alloc(d, (uint64_t)width * height * 4, VM_BUFFER_IN, "x", &x, &err));
    OK(device_alloc(d, (uint64_t)width * height * 4, VM_BUFFER_OUT, "y", &y, &err));
    OK(device_load(d, ptx, strlen(ptx), entry, &kernel, &err));
    params.x = device_address(d, x);
    params.y = device_address(d, y);
    device_launch l = {.grid = {(width + 31) / 32, (height + high - 1) / high, 1},
                       .block = {32, 8, 1},
                       .params = &params};
    OK(device_time(d, kernel, &l, &outcome, &timing, &err));
    assert_true(outcome.ok);
    device_unload(kernel);
    device_close(d);
    return timing.model;
}

static void assert_near(const char *what, double sampled, double all) {
    if (!(fabs(sampled / all - 1) <= 0.05))
        fail_msg("%s: sampled %.0f, all blocks %.0f", what, sampled, all);
}

/* A block that is cut off at the grid's edge stands for the edge, wherever blocks are taken. Where
 * 3 divides the rows of blocks, a third of the grid ends with a row. */
static void test_cut_off_blocks_stand_for_their_edge(void **state) {
    (void)state;
    static const struct {
        const char *task, *at;
        uint32_t width, height, high, most;
    } cases[] = {{"stencil", "search", 609, 577, 8, 3},
                 {"stencil", "promotion", 545, 768, 8, 4},
                 {"transpose", "search", 609, 577, 32, 3},
                 {"transpose", "promotion", 545, 768, 32, 4}};
    char *ptx = read_ptx("edges", "edges");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bench b = {.baseline = NULL};
        char path[256];
        score s;
        (void)snprintf(path, sizeof path, FOLDER "edges/%s.json", cases[i].task);
        OK(task_load(path, &b.t, &err));
        OK(device_open("vm:t4", &b.d, &err));
        OK(fitness_open(b.t, b.d, NULL, &b.f, &err));
        candidate c = candidate_of(&b, ptx, NULL);
        OK(fitness_set_baseline(b.f, &c, 1u << CORPUS_SEARCH, &s, &err));
        fitness_profile_data p = profile_of(&b, ptx, NULL, cases[i].at);
        model_time all =
            model_of_all(ptx, cases[i].task, cases[i].width, cases[i].height, cases[i].high);
        assert_near("bytes", p.timing.model.dram_bytes, all.dram_bytes);
        assert_near("sectors", p.timing.model.l2_bytes, all.l2_bytes);
        assert_near("time", p.timing.ns, all.ns);
        assert_true(p.timing.model.sampled_blocks <= cases[i].most);
        fitness_profile_free(&p);
        close_bench(&b);
    }
    free(ptx);
}

static void test_a_grid_that_waits_runs_whole(void **state) {
    (void)state;
    static const char *const folders[] = {"last", "grid"};
    for (size_t i = 0; i < 2; i++) {
        bench b;
        open_bench(&b, folders[i]);
        fitness_profile_data p = profile_of(&b, b.baseline, NULL, "large");
        assert_int_equal(p.grid, FITNESS_GRID_WAITS);
        assert_true(p.timing.model.sampled_blocks == p.timing.model.blocks);
        fitness_profile_free(&p);
        close_bench(&b);
    }
}

/* ---- whose paths ---- */

/* Candidates whose structural edits divide the work alike share a pass, and no others do. */
static void test_one_pass_for_each_division(void **state) {
    (void)state;
    static const char *const structures[][2] = {
        {"coarsen stage ", "coarsen "}, {"coarsen unroll ", "coarsen "}, {"split ", "split "}};
    bench b;
    score s[3];
    open_bench(&b, "gauss");
    char *start = read_ptx("gauss", "small_blocks"), *split = read_ptx("gauss", "small_split");
    start_build from = {.ptx = start};
    candidate c = candidate_of(&b, split, &eight);
    c.divided = give_start;
    c.unmodified_context = &from;
    for (int i = 0; i < 3; i++) {
        c.structure = structures[i][0];
        c.division = structures[i][1];
        OK(fitness_score(b.f, &c, &s[i], &err));
        assert_int_equal(s[i].stopped, GATE_NONE);
        assert_int_equal(from.calls, i < 2 ? 1 : 2);
    }
    assert_true(s[0].ns == s[1].ns);
    close_bench(&b);
    free(start);
    free(split);
}

/* The start's blocks stand for all variants of it, whichever comes first, and are found once. */
static void test_the_start_says_which_blocks(void **state) {
    (void)state;
    bench b;
    open_bench(&b, "gauss");
    char *start = read_ptx("gauss", "small_blocks"), *split = read_ptx("gauss", "small_split");
    start_build from = {.ptx = start};
    candidate own = candidate_of(&b, start, &eight), other = candidate_of(&b, split, &eight);
    score alone, first, again;
    own.is_unmodified = true;
    other.divided = give_start;
    other.unmodified_context = &from;
    OK(fitness_score(b.f, &other, &first, &err));
    OK(fitness_score(b.f, &other, &again, &err));
    assert_int_equal(from.calls, 1);
    OK(fitness_score(b.f, &own, &alone, &err));
    assert_true(first.stopped == GATE_NONE && first.ns == again.ns && alone.ns > 0);
    close_bench(&b);
    open_bench(&b, "gauss");
    own.plan = b.t->starts[0].plan;
    own.start = &b.t->starts[0];
    OK(fitness_score(b.f, &own, &again, &err));
    assert_true(alone.ns == again.ns);
    close_bench(&b);
    free(start);
    free(split);
}

/* Writes the baseline of task.json with so many turns of its loop in even blocks, and in odd ones.
 * The caller frees the text. */
static char *with_turns(const char *baseline, unsigned even, unsigned odd) {
    static const char before[] = "    mov.u32 %r6, 0;\n", compare[] = "%r6, 17;";
    const char *set = strstr(baseline, before), *turn = strstr(baseline, compare);
    char *text = malloc(strlen(baseline) + 256);
    assert_non_null(text);
    assert_true(set != NULL && turn != NULL && set < turn);
    (void)sprintf(text,
                  "%.*s    and.b32 %%r8, %%r2, 1;\n    setp.eq.u32 %%p3, %%r8, 0;\n"
                  "    selp.u32 %%r7, %u, %u, %%p3;\n%.*s%%r6, %%r7;%s",
                  (int)(set - baseline), baseline, even, odd, (int)(turn - set), set,
                  turn + sizeof compare - 1);
    return text;
}

/* The pass over a variant with structural edits is short where its start has like blocks. The pass
 * still sees that the variant's blocks are not alike. */
static void test_structure_may_make_blocks_unlike(void **state) {
    (void)state;
    static const struct {
        unsigned even, odd;
        fitness_grid grid;
    } forms[] = {{1500, 1500, FITNESS_GRID_EVEN}, {3000, 100, FITNESS_GRID_UNEVEN}};
    bench b;
    open_bench(&b, ".");
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        char *ptx = with_turns(b.baseline, forms[i].even, forms[i].odd);
        fitness_profile_data p;
        candidate c = candidate_of(&b, ptx, NULL);
        c.structure = c.division = "of another kind";
        OK(fitness_profile(b.f, &c, task_find_case(b.t, "large"), &p, &err));
        assert_true(p.outcome.ok);
        assert_int_equal(p.grid, forms[i].grid);
        fitness_profile_free(&p);
        free(ptx);
    }
    close_bench(&b);
}

/* A second timed case of the search has no pass of its own where blocks are alike at the first,
 * and has one where they are not. */
static void test_the_first_timed_case_decides_for_others(void **state) {
    (void)state;
    static const struct {
        unsigned even, odd;
        fitness_grid grid;
        int calls;
    } forms[] = {{1500, 1500, FITNESS_GRID_EVEN, 1}, {3000, 100, FITNESS_GRID_UNEVEN, 2}};
    bench b;
    open_searching(&b, ".", "held-large");
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        char *ptx = with_turns(b.baseline, forms[i].even, forms[i].odd);
        start_build from = {.ptx = ptx};
        candidate c = candidate_of(&b, ptx, NULL);
        c.structure = c.division = i == 0 ? "alike" : "unlike";
        c.divided = give_start;
        c.unmodified_context = &from;
        for (int turn = 0; turn < 2; turn++) {
            fitness_profile_data p;
            const char *at = turn == 0 ? "large" : "held-large";
            OK(fitness_profile(b.f, &c, task_find_case(b.t, at), &p, &err));
            assert_true(p.outcome.ok);
            assert_int_equal(p.grid, forms[i].grid);
            fitness_profile_free(&p);
        }
        assert_int_equal(from.calls, forms[i].calls);
        free(ptx);
    }
    close_bench(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cheats_in_grids_of_idle_blocks_are_seen),
        cmocka_unit_test(test_cheats_in_grids_that_wait_are_seen),
        cmocka_unit_test(test_sums_in_few_blocks_are_compared_whole),
        cmocka_unit_test(test_dropped_fences_are_seen),
        cmocka_unit_test(test_a_baseline_may_lack_the_acquire_fence),
        cmocka_unit_test(test_a_grid_of_idle_blocks_is_timed_by_its_work),
        cmocka_unit_test(test_an_even_grid_runs_two_blocks),
        cmocka_unit_test(test_cut_off_blocks_stand_for_their_edge),
        cmocka_unit_test(test_a_grid_that_waits_runs_whole),
        cmocka_unit_test(test_the_start_says_which_blocks),
        cmocka_unit_test(test_one_pass_for_each_division),
        cmocka_unit_test(test_structure_may_make_blocks_unlike),
        cmocka_unit_test(test_the_first_timed_case_decides_for_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
