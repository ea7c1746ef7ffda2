/* Mutants on their way: built, scored at gates 2 to 5, judged, promoted at gate 6, and stressed, as
 * a run of `evoke tune` does it with what it promotes. */
#include "tests/tuner/judge/mutants.h"

#include "base/file.h"
#include "base/json.h"
#include "tests/tuner/judge/data.h"
#include "tuner/stress/stress.h"
#include "tuner/worker/bases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ok.h"

#define SM 90
#define DEVICE "vm:h200"
#define SPLITS_ALL ((1u << CORPUS_SPLIT_COUNT) - 1)
#define SHORT_STRESS 24 /* shapes, as in tuner/run/finish_stress.c */
#define GATES_SEED 1
#define JUDGE_SEED 7000
#define INPUTS_MOST (4 * JUDGE_MOODS)
#define FUEL_FACTOR 50
#define FUEL_SLACK 1000000
#define AGREE 2 /* times the tolerance: the starts agree */
#define WRONG 8 /* times the tolerance: a variant is wrong */

static ev_error err;

/* An input of the judge, and what the start makes of it. */
typedef struct judge_row {
    judge_input in;
    judge_output want;
} judge_row;

struct mutant_bench {
    const mutant_kernel *of;
    task *t;
    const task_start *start;
    bases *bases;
    const ir_base *base;
    ev_str origin_ptx, baseline_ptx;
    candidate origin, baseline;
    device *d, *judges;
    fitness *f;
    judge_kernel own;
    judge_row rows[INPUTS_MOST];
    size_t row_count;
};

/* ---- opening ---- */

/* Builds a genome with all stages; NULL: it is refused. */
static ir_build *build(const ir_base *base, const ir_genome *genome) {
    ir_build *b = NULL;
    OK(ir_build_new(base, genome, &b, &err));
    for (int stage = 0; stage < IR_STAGE_COUNT; stage++) {
        ev_status status = ir_build_run(b, (ir_stage)stage, &err);
        assert_int_not_equal(status, EV_INFRA);
        if (status != EV_OK) {
            ir_build_free(b);
            return NULL;
        }
    }
    return b;
}

static void emit(const ir_base *base, ev_str *out) {
    ir_genome *plain = ir_genome_new("");
    ir_build *b = build(base, plain);
    size_t bytes = 0;
    assert_non_null(b);
    const char *ptx = ir_build_ptx(b, &bytes);
    ev_str_append_n(out, ptx, bytes);
    ir_build_free(b);
    ir_genome_free(plain);
}

/* The baseline of a kernel with a single start: the same source, slower. */
static void emit_slow(const mutant_bench *b, ev_str *out) {
    char *home = ev_path_home(), *include = ev_path_join(home, "kernels/include");
    const ir_macro macro = {"SLOW", 1};
    const ir_source source = {.path = b->start->source,
                              .entry = launch_plan_entry(b->start->plan),
                              .include = include,
                              .macros = &macro,
                              .macro_count = 1,
                              .sm = SM};
    ir_base *base = NULL;
    OK(ir_base_load(&source, &base, &err));
    emit(base, out);
    ir_base_free(base);
    free(include);
    free(home);
}

static const ir_base *base_of(mutant_bench *b, const char *start) {
    const ir_base *base = NULL;
    ir_genome *plain = ir_genome_new(start);
    OK(bases_get(b->bases, plain, &base, &err));
    ir_genome_free(plain);
    return base;
}

static candidate unmodified(const ev_str *ptx, const task_start *start) {
    return (candidate){.ptx = ev_str_text(ptx),
                       .ptx_bytes = ptx->length,
                       .plan = start->plan,
                       .start = start,
                       .is_unmodified = true};
}

static void open_starts(mutant_bench *b) {
    const task_start *first = &b->t->starts[0];
    b->start = task_find_start(b->t, b->of->start);
    assert_non_null(b->start);
    OK(bases_new(b->t, SM, 2, &b->bases, &err));
    if (b->of->base != NULL) {
        assert_string_equal(first->name, b->of->base);
        emit(base_of(b, b->of->base), &b->baseline_ptx);
    } else {
        emit_slow(b, &b->baseline_ptx);
    }
    b->base = base_of(b, b->of->start);
    emit(b->base, &b->origin_ptx);
    b->baseline = unmodified(&b->baseline_ptx, first);
    b->origin = unmodified(&b->origin_ptx, b->start);
}

static void open_gates(mutant_bench *b) {
    score *s = calloc(1, sizeof *s);
    const candidate starts[] = {b->baseline, b->origin};
    size_t count = b->of->base != NULL ? 2 : 1;
    assert_non_null(s);
    OK(device_open(DEVICE, &b->d, &err));
    OK(fitness_open(b->t, b->d, NULL, &b->f, &err));
    OK(fitness_set_baseline(b->f, &b->baseline, SPLITS_ALL, s, &err));
    OK(fitness_draw_cases(b->f, DEVICE, starts, count, &err));
    for (size_t i = 0; i < count; i++)
        OK(fitness_add_reference(b->f, &starts[i], &err));
    free(s);
}

/* ---- the judge ---- */

/* NaN and NaN, the same infinity, or two finite numbers. */
static bool same_class(double a, double b) {
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    return isinf(a) || isinf(b) ? a == b : true;
}

/* Relative L2 of what is finite in both; infinite: a class or a whole number differs. */
static double distance(const judge_input *in, size_t i, const judge_output *a,
                       const judge_output *b) {
    ev_type type = in->t->arguments[i].type;
    double error = 0, size = 0;
    for (uint64_t k = 0; k < in->count[i]; k++) {
        double x = ev_type_get(type, a->data[i], k), y = ev_type_get(type, b->data[i], k);
        if (!same_class(x, y) || (!ev_type_is_float(type) && x != y))
            return INFINITY;
        if (isfinite(x)) {
            error += (x - y) * (x - y);
            size += x * x;
        }
    }
    return error == 0 ? 0 : sqrt(error / size);
}

static double apart(const judge_input *in, const judge_output *a, const judge_output *b) {
    double most = a->ran && b->ran ? 0 : INFINITY;
    for (size_t i = 0; i < in->t->argument_count && isfinite(most); i++) {
        if (judge_is_output(&in->t->arguments[i]))
            most = fmax(most, distance(in, i, a, b));
    }
    return most;
}

/* Adds an input, if both starts run there and agree. */
static void add_row(mutant_bench *b, const judge_kernel *baseline, const expr_name *shape,
                    size_t size_count, judge_mood mood) {
    judge_row *row = &b->rows[b->row_count];
    judge_output other;
    assert_true(judge_input_make(b->t, shape, size_count, &row->in));
    judge_fill(&row->in, mood, JUDGE_SEED + b->row_count);
    judge_run(b->judges, &b->own, &row->in, 0, &row->want);
    judge_run(b->judges, baseline, &row->in, 0, &other);
    double tolerance = AGREE * b->t->tolerance.relative_l2;
    bool agree = row->want.ran && apart(&row->in, &row->want, &other) <= tolerance;
    judge_output_free(&other);
    if (agree) {
        b->row_count++;
        return;
    }
    judge_output_free(&row->want);
    judge_input_free(&row->in);
}

static void open_judge(mutant_bench *b) {
    OK(device_open(DEVICE, &b->judges, &err));
    b->own = judge_kernel_load(b->judges, b->origin.ptx, b->origin.ptx_bytes, b->start, NULL);
    judge_kernel baseline = judge_kernel_load(b->judges, b->baseline.ptx, b->baseline.ptx_bytes,
                                              b->baseline.start, NULL);
    assert_true(b->own.loaded != NULL && baseline.loaded != NULL);
    for (size_t i = 0; i < 4 && b->of->shapes[i][0].name != NULL; i++) {
        size_t count = 0;
        while (count < JUDGE_SIZES && b->of->shapes[i][count].name != NULL)
            count++;
        for (int mood = 0; mood < JUDGE_MOODS; mood++)
            add_row(b, &baseline, b->of->shapes[i], count, (judge_mood)mood);
    }
    judge_kernel_free(&baseline);
    if (b->row_count < JUDGE_MOODS / 2)
        fail_msg("%s: the starts agree on %zu inputs only", b->t->name, b->row_count);
}

/* Whether an input refutes the kernel. */
static bool refutes(mutant_bench *b, const judge_row *row, const judge_kernel *k, ev_str *why) {
    judge_output got;
    judge_run(b->judges, k, &row->in, (uint64_t)(FUEL_FACTOR * row->want.instructions) + FUEL_SLACK,
              &got);
    double far = apart(&row->in, &row->want, &got);
    bool wrong = far > WRONG * b->t->tolerance.relative_l2;
    if (wrong)
        ev_str_printf(why, "judged at input %d: %s, error %.3g", (int)(row - b->rows),
                      got.ran ? "wrong" : "a trap", far);
    judge_output_free(&got);
    return wrong;
}

static bool is_refuted(mutant_bench *b, const candidate *c, ev_str *why) {
    judge_kernel k = judge_kernel_load(b->judges, c->ptx, c->ptx_bytes, b->start, NULL);
    bool wrong = k.loaded == NULL;
    for (size_t i = 0; i < b->row_count && !wrong; i++)
        wrong = refutes(b, &b->rows[i], &k, why);
    if (!wrong && b->of->small != NULL) {
        unsigned count = 0;
        ev_str first = EV_STR_EMPTY;
        (void)judged_compare(b->judges, b->t, b->of->small, &b->own, &k, 1, &count, &first);
        wrong = count > 0;
        if (wrong)
            ev_str_printf(why, "judged at %s", ev_str_text(&first));
        ev_str_free(&first);
    }
    judge_kernel_free(&k);
    return wrong;
}

mutant_bench *mutant_bench_open(const mutant_kernel *of) {
    mutant_bench *b = calloc(1, sizeof *b);
    assert_non_null(b);
    b->of = of;
    b->origin_ptx = b->baseline_ptx = EV_STR_EMPTY;
    OK(task_open(of->path, &b->t, &err));
    open_starts(b);
    open_gates(b);
    open_judge(b);
    return b;
}

void mutant_bench_close(mutant_bench *b) {
    for (size_t i = 0; i < b->row_count; i++) {
        judge_output_free(&b->rows[i].want);
        judge_input_free(&b->rows[i].in);
    }
    judge_kernel_free(&b->own);
    fitness_close(b->f);
    device_close(b->d);
    device_close(b->judges);
    bases_free(b->bases);
    ev_str_free(&b->origin_ptx);
    ev_str_free(&b->baseline_ptx);
    task_free(b->t);
    free(b);
}

const ir_base *mutant_base(const mutant_bench *b) {
    return b->base;
}

/* ---- one mutant ---- */

/* A genome with all that gate 6 needs (tuner/worker/worker_jobs.c). */
typedef struct mutant {
    mutant_bench *bench;
    const ir_genome *genome;
    ir_build *build, *checked;
    size_t bold;
    ev_str arms;
    candidate c;
    score s;
} mutant;

static ev_status divided(void *context, ev_str *ptx, ev_error *error) {
    const mutant_bench *b = context;
    ev_str_append_n(ptx, b->origin.ptx, b->origin.ptx_bytes);
    return ev_str_status(ptx, error);
}

static ev_status missed(void *context, const uint8_t *taken, ev_str *why, ev_error *error) {
    const mutant *m = context;
    const ir_arms arms = {taken, m->c.start->assumed, m->c.start->assumed_count};
    return ir_arms_missed(m->bench->base, m->genome, &arms, why, error);
}

static bool make(mutant *m) {
    mutant_bench *b = m->bench;
    m->build = build(b->base, m->genome);
    if (m->build == NULL)
        return false;
    m->bold = ir_build_bold(m->build);
    m->c = (candidate){.plan = b->start->plan,
                       .start = b->start,
                       .is_skeleton = ir_genome_is_skeleton(m->genome),
                       .origin = &b->origin,
                       .divided = divided,
                       .unmodified_context = b,
                       .may_alias = ir_base_may_alias(b->base),
                       .aligned = ir_genome_aligned(m->genome),
                       .aligned_to = IR_ARGUMENT_ALIGN};
    m->c.ptx = ir_build_ptx(m->build, &m->c.ptx_bytes);
    return m->c.ptx_bytes != b->origin.ptx_bytes ||
           memcmp(m->c.ptx, b->origin.ptx, m->c.ptx_bytes) != 0;
}

static void unmake(mutant *m) {
    ir_build_free(m->build);
    ir_build_free(m->checked);
    ev_str_free(&m->arms);
}

static bool passes_gates(mutant *m, ev_str *why) {
    bool wants = false;
    OK(fitness_score(m->bench->f, &m->c, &m->s, &err));
    if (m->s.stopped == GATE_NONE)
        OK(fitness_hold_writes(m->bench->f, &m->c, &m->s, &wants, &err));
    if (m->s.stopped != GATE_NONE)
        ev_str_printf(why, "%s: %s", gate_name(m->s.stopped), m->s.reason);
    return m->s.stopped == GATE_NONE;
}

static void add_arms(mutant *m) {
    if (m->bold == 0)
        return;
    OK(ir_base_arms_ptx(m->bench->base, &m->arms, &err));
    m->c.arms_ptx = ev_str_text(&m->arms);
    m->c.arms_ptx_bytes = m->arms.length;
    m->c.arms_bytes = ir_base_arms_bytes(m->bench->base);
    m->c.arms_variable = IR_ARMS_VARIABLE;
    m->c.missed = missed;
    m->c.missed_context = m;
}

/* The build with asserted facts as checks; false: it is refused, and so is the mutant. */
static bool add_checked(mutant *m) {
    if (!ir_genome_asserts(m->genome))
        return true;
    OK(ir_build_new(m->bench->base, m->genome, &m->checked, &err));
    ir_build_check_asserts(m->checked);
    for (int stage = 0; stage < IR_STAGE_COUNT; stage++) {
        if (ir_build_run(m->checked, (ir_stage)stage, &err) != EV_OK)
            return false;
    }
    m->c.checked_ptx = ir_build_ptx(m->checked, &m->c.checked_bytes);
    m->c.checked_mark = IR_ASSERT_MARK;
    return true;
}

static bool is_of_time(const score *s) {
    return strstr(s->reason, "not faster ") != NULL || strstr(s->reason, "its interval ") != NULL;
}

static bool stands_stress(const mutant *m, ev_str *why) {
    const mutant_bench *b = m->bench;
    const stress_subject subject = {.t = b->t,
                                    .device = DEVICE,
                                    .baseline = &b->baseline,
                                    .candidate = &m->c,
                                    .role = "variant"};
    const stress_limits limits = {.shapes = m->bold > 0 ? STRESS_SHAPES : SHORT_STRESS,
                                  .elements = STRESS_ELEMENTS,
                                  .seed = GATES_SEED};
    json_t *row = NULL;
    OK(stress_run(&subject, &limits, &row, &err));
    bool passed = strcmp(ev_json_text(row, "verdict", ""), "pass") == 0;
    if (!passed)
        ev_str_printf(why, "; stress: %s", ev_json_text(row, "reason", ""));
    json_decref(row);
    return passed;
}

static mutant_end promote(mutant *m, ev_str *why) {
    add_arms(m);
    if (!add_checked(m)) {
        ev_str_printf(why, "; the build with checks fails");
        return MUTANT_BY_GATE;
    }
    OK(fitness_promote(m->bench->f, &m->c, &m->s, &err));
    if (m->s.stopped != GATE_NONE) {
        ev_str_printf(why, "; gate 6: %s", m->s.reason);
        return is_of_time(&m->s) ? MUTANT_SLOW : MUTANT_BY_GATE;
    }
    return stands_stress(m, why) ? MUTANT_PASSED : MUTANT_BY_STRESS;
}

static mutant_end go(mutant *m, ev_str *why) {
    if (!passes_gates(m, why))
        return MUTANT_STOPPED;
    return is_refuted(m->bench, &m->c, why) ? promote(m, why) : MUTANT_UNREFUTED;
}

mutant_end mutant_try(mutant_bench *b, const ir_genome *genome, size_t *bold, ev_str *why) {
    mutant *m = calloc(1, sizeof *m);
    mutant_end end = MUTANT_NOT_BUILT;
    assert_non_null(m);
    *m = (mutant){.bench = b, .genome = genome, .arms = EV_STR_EMPTY};
    if (make(m))
        end = go(m, why);
    *bold = m->bold;
    unmake(m);
    free(m);
    return end;
}
