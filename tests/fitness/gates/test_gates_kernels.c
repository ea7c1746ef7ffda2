/* The shipped kernels: the textbook start of each agrees with its oracle on every case, and the
 * hand-tuned one passes every gate. */
#include "base/file.h"
#include "fitness/gates/floor.h"
#include "ir/ir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ok.h"

#define SPLITS_ALL ((1u << CORPUS_SPLIT_COUNT) - 1)

static ev_error err;

/* The PTX of a start as it is, and all that it stands on. */
typedef struct built {
    ir_base *base;
    ir_genome *genome;
    ir_build *build;
    candidate c, sketch;
    bool covered;
} built;

static void build_start(const task_start *start, int sm, built *b) {
    char *home = ev_path_home();
    assert_non_null(home);
    char *include = ev_path_join(home, "kernels/include");
    ir_source source = {.path = start->source,
                        .entry = launch_plan_entry(start->plan),
                        .include = include,
                        .sm = sm};
    OK(ir_base_load(&source, &b->base, &err));
    b->genome = ir_genome_new(start->name);
    assert_non_null(b->genome);
    OK(ir_build_new(b->base, b->genome, &b->build, &err));
    b->c = (candidate){.plan = start->plan, .start = start};
    b->sketch = b->c;
    b->sketch.is_sketch = true;
    for (int stage = 0; stage < IR_STAGE_COUNT; stage++) {
        if (stage == IR_STAGE_EMIT)
            OK(ir_build_sketch(b->build, &b->covered, &err));
        OK(ir_build_run(b->build, (ir_stage)stage, &err));
    }
    assert_true(b->covered);
    b->sketch.ptx = ir_build_sketch_ptx(b->build, &b->sketch.ptx_bytes);
    b->c.ptx = ir_build_ptx(b->build, &b->c.ptx_bytes);
    free(include);
    free(home);
}

static void free_start(built *b) {
    ir_build_free(b->build);
    ir_genome_free(b->genome);
    ir_base_free(b->base);
}

/* What is right is right as a sketch too, and that is other code. */
static void check_sketch(fitness *f, const built *b) {
    score s;
    assert_true(b->sketch.ptx_bytes != b->c.ptx_bytes);
    OK(fitness_score(f, &b->sketch, &s, &err));
    if (s.stopped != GATE_NONE)
        fail_msg("%s, as a sketch: stopped at %s: %s", b->c.start->name, gate_name(s.stopped),
                 s.reason);
    assert_true(s.ns == 0 && s.small_ns > 0 && s.fingerprint[0] && s.normalised <= 1 &&
                s.thread_instructions > 0);
}

/* A start that is no baseline: through the gates, then every case of every split. */
static void check_start(fitness *f, const task *t, const built *b) {
    score s;
    OK(fitness_score(f, &b->c, &s, &err));
    if (s.stopped != GATE_NONE)
        fail_msg("%s, %s: stopped at %s: %s", t->name, b->c.start->name, gate_name(s.stopped),
                 s.reason);
    assert_true(s.ns > 0 && s.occupancy > 0 && s.occupancy <= 1 && s.normalised <= 1);
    for (size_t i = 0; i < t->case_count; i++) {
        fitness_verdict v;
        OK(fitness_check(f, &b->c, &t->cases[i], &v, &err));
        if (!v.ok)
            fail_msg("%s, %s: %s", t->name, b->c.start->name, v.reason);
        assert_true(v.ns > 0 || t->cases[i].use != TASK_TIME);
    }
}

/* No time is below the floor of its case, by the work that the task declares. */
static void check_floors(const fitness *f, const task *t) {
    for (size_t i = 0; i < t->case_count; i++) {
        const task_case *at = &t->cases[i];
        case_floor floor;
        OK(fitness_floor(f, at, &floor, &err));
        double ns = fitness_baseline_ns(f, at->name);
        if (at->use == TASK_TIME && !(floor.ns > floor.launch_ns && floor.ns <= ns))
            fail_msg("%s, %s: %g ns, and the floor is %g", t->name, at->name, ns, floor.ns);
    }
}

static void check_task(const char *path) {
    task *t = NULL;
    device *d = NULL;
    fitness *f = NULL;
    built baseline;
    score s;
    OK(task_load(path, &t, &err));
    OK(device_open("vm:h200", &d, &err));
    OK(fitness_open(t, d, NULL, &f, &err));
    build_start(&t->starts[0], device_properties_of(d)->sm, &baseline);
    OK(fitness_set_baseline(f, &baseline.c, SPLITS_ALL, &s, &err));
    check_sketch(f, &baseline);
    check_floors(f, t);
    for (size_t i = 1; i < t->start_count; i++) {
        built other;
        build_start(&t->starts[i], device_properties_of(d)->sm, &other);
        check_sketch(f, &other);
        check_start(f, t, &other);
        free_start(&other);
    }
    free_start(&baseline);
    fitness_close(f);
    device_close(d);
    task_free(t);
}

static void test_shipped(void **state) {
    (void)state;
    char **paths = NULL;
    size_t count = 0;
    OK(task_list_leads(&paths, &count, &err));
    assert_int_equal(count, 4);
    for (size_t i = 0; i < count; i++)
        check_task(paths[i]);
    task_list_free(paths, count);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shipped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
