/* Arms that no case takes (fitness/gates/arms.c, ir/arms.c): edits are drawn at random, and gate 6
 * of a task whose data take few arms is compared with a judge whose data take all. No variant that
 * the judge finds wrong is promoted, and an assumption lifts the refusal. */
#include "base/file.h"
#include "fitness/gates/fitness.h"
#include "ir/ir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ok.h"

#define FOLDER "tests/fitness/gates/arms/"
#define SPLITS_ALL ((1u << CORPUS_SPLIT_COUNT) - 1)
#define DRAWS 24 /* of each kind of edit */

static ev_error err;

/* The task as one file states it, with its baseline. */
typedef struct rig {
    task *t;
    device *d;
    fitness *f;
} rig;

/* The two bases of the source: the slow baseline, and the start of the variants. */
typedef struct bases {
    char *include;
    ir_base *slow, *fast;
} bases;

typedef struct variant {
    ir_genome *genome;
    ir_build *build;
    const ir_base *base;
    ev_str arms;
    candidate c;
    bool depends; /* the judge of arms was asked */
} variant;

static ir_base *load(const char *include, int slow) {
    const ir_macro macro = {"SLOW", slow};
    const ir_source source = {.path = FOLDER "arms.cu",
                              .entry = "arms",
                              .include = include,
                              .macros = &macro,
                              .macro_count = 1,
                              .sm = 90};
    ir_base *base = NULL;
    OK(ir_base_load(&source, &base, &err));
    return base;
}

static void open_bases(bases *b) {
    char *home = ev_path_home();
    assert_non_null(home);
    b->include = ev_path_join(home, "kernels/include");
    free(home);
    b->slow = load(b->include, 1);
    b->fast = load(b->include, 0);
}

static void close_bases(bases *b) {
    ir_base_free(b->slow);
    ir_base_free(b->fast);
    free(b->include);
}

static ev_status missed(void *context, const uint8_t *taken, ev_str *why, ev_error *error) {
    const variant *v = context;
    const ir_arms arms = {taken, v->c.start->assumed, v->c.start->assumed_count};
    return ir_arms_missed(v->base, v->genome, &arms, why, error);
}

/* Builds the genome, which the variant takes over. false: the build is refused. */
static bool build(variant *v, const ir_base *base, ir_genome *genome) {
    *v = (variant){.genome = genome, .base = base, .arms = EV_STR_EMPTY};
    OK(ir_build_new(base, genome, &v->build, &err));
    for (int stage = 0; stage < IR_STAGE_COUNT; stage++) {
        ev_status status = ir_build_run(v->build, (ir_stage)stage, &err);
        assert_int_not_equal(status, EV_INFRA);
        if (status != EV_OK)
            return false;
    }
    v->c.ptx = ir_build_ptx(v->build, &v->c.ptx_bytes);
    OK(ir_base_arms_ptx(base, &v->arms, &err));
    v->c.missed = missed;
    v->c.missed_context = v;
    return true;
}

static void free_variant(variant *v) {
    ir_build_free(v->build);
    ir_genome_free(v->genome);
    ev_str_free(&v->arms);
}

/* Gives the variant the start of a task, and asks for its arms there or not. */
static const candidate *at(variant *v, const rig *r, bool asks) {
    v->c.start = &r->t->starts[0];
    v->c.plan = v->c.start->plan;
    v->c.arms_ptx = asks ? ev_str_text(&v->arms) : NULL;
    v->c.arms_ptx_bytes = v->arms.length;
    v->c.arms_bytes = ir_base_arms_bytes(v->base);
    v->c.arms_variable = IR_ARMS_VARIABLE;
    return &v->c;
}

static void open_rig(rig *r, const bases *b, const char *file) {
    score s;
    variant slow;
    OK(task_load(file, &r->t, &err));
    OK(device_open("vm:h200", &r->d, &err));
    OK(fitness_open(r->t, r->d, NULL, &r->f, &err));
    assert_true(build(&slow, b->slow, ir_genome_new("plain")));
    OK(fitness_set_baseline(r->f, at(&slow, r, false), SPLITS_ALL, &s, &err));
    free_variant(&slow);
}

static void close_rig(rig *r) {
    fitness_close(r->f);
    device_close(r->d);
    task_free(r->t);
}

/* The gate that stops the variant; GATE_NONE: promoted. */
static gate stopped_by(const rig *r, variant *v, bool asks, score *s) {
    const candidate *c = at(v, r, asks);
    OK(fitness_score(r->f, c, s, &err));
    if (s->stopped == GATE_NONE)
        OK(fitness_promote(r->f, c, s, &err));
    return s->stopped;
}

static bool is_wrong(const rig *judge, variant *v) {
    fitness_verdict verdict;
    OK(fitness_check(judge->f, at(v, judge, false), task_find_case(judge->t, "more"), &verdict,
                     &err));
    return !verdict.ok;
}

typedef struct counts {
    int right, promoted, wrong, wrong_without, freed;
} counts;

static const ir_edit_kind kinds[] = {
    IR_EDIT_FORCE_CONDITION, IR_EDIT_OPERAND, IR_EDIT_CONSTANT,   IR_EDIT_DELETE, IR_EDIT_REPLACE,
    IR_EDIT_DROP_STORE,      IR_EDIT_SWAP,    IR_EDIT_FORWARD,    IR_EDIT_COPY,   IR_EDIT_MOVE,
    IR_EDIT_UNROLL,          IR_EDIT_NO_WRAP, IR_EDIT_MAX_THREADS};

static void try_one(const rig *own, const rig *assumed, const rig *judge, variant *v, counts *n) {
    score s;
    if (is_wrong(judge, v)) {
        bool passes = stopped_by(own, v, false, &s) == GATE_NONE;
        n->wrong_without += passes;
        if (!passes)
            return;
        if (stopped_by(own, v, true, &s) == GATE_NONE) {
            json_t *json = ir_genome_to_json(v->genome);
            char *text = json_dumps(json, JSON_COMPACT);
            ev_str words = EV_STR_EMPTY;
            OK(ir_describe_edit(v->base, v->genome, 0, &words, &err));
            print_error("promoted, and wrong: %s %s\n", text, ev_str_text(&words));
            ev_str_free(&words);
            free(text);
            json_decref(json);
            n->wrong++;
        } else if (strstr(s.reason, "\"assume\"") == NULL) {
            fail_msg("refused without a cure: %s", s.reason);
        }
        n->freed += stopped_by(assumed, v, true, &s) == GATE_NONE;
    } else {
        n->right += stopped_by(own, v, false, &s) == GATE_NONE;
        n->promoted += stopped_by(own, v, true, &s) == GATE_NONE;
    }
}

static void test_drawn_edits(void **state) {
    (void)state;
    bases b;
    rig own, assumed, judge;
    counts n = {0};
    open_bases(&b);
    open_rig(&own, &b, FOLDER "task.json");
    open_rig(&assumed, &b, FOLDER "assumed.json");
    open_rig(&judge, &b, FOLDER "judge.json");
    ir_genome *plain = ir_genome_new("plain");
    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++) {
        for (uint64_t seed = 0; seed < DRAWS; seed++) {
            ev_pcg rng = ev_pcg_seed(seed, kind);
            ir_genome *child = NULL;
            variant v;
            ev_error why = {0};
            if (ir_mutate(b.fast, plain, kinds[kind], NULL, &rng, &child, &why) != EV_OK)
                continue;
            if (build(&v, b.fast, child))
                try_one(&own, &assumed, &judge, &v, &n);
            free_variant(&v);
        }
    }
    print_message("%d of %d right ones promoted; %d wrong ones pass all other checks, %d of them "
                  "the arms, %d if assumed\n",
                  n.promoted, n.right, n.wrong_without, n.wrong, n.freed);
    assert_int_equal(n.wrong, 0);
    assert_true(n.wrong_without >= 15);
    assert_true(n.promoted >= 15);
    assert_true(n.freed >= 5);
    ir_genome_free(plain);
    close_rig(&own);
    close_rig(&assumed);
    close_rig(&judge);
    close_bases(&b);
}

/* A kernel of rounds.cu with an edit that rounds, and flags of its arms. */
typedef struct rounding {
    ir_base *base;
    ir_genome *narrow;
    uint8_t *taken;
    size_t bytes;
} rounding;

static rounding open_rounding(const char *entry) {
    char *home = ev_path_home(), *include = ev_path_join(home, "kernels/include");
    const ir_source source = {
        .path = FOLDER "rounds.cu", .entry = entry, .include = include, .sm = 90};
    rounding r = {0};
    OK(ir_base_load(&source, &r.base, &err));
    ir_genome *plain = ir_genome_new("plain");
    ev_pcg rng = ev_pcg_seed(1, 1);
    OK(ir_mutate(r.base, plain, IR_EDIT_NARROW, NULL, &rng, &r.narrow, &err));
    r.bytes = ir_base_arms_bytes(r.base);
    r.taken = calloc(r.bytes, 1);
    assert_non_null(r.taken);
    ir_genome_free(plain);
    free(include);
    free(home);
    return r;
}

static void close_rounding(rounding *r) {
    free(r->taken);
    ir_genome_free(r->narrow);
    ir_base_free(r->base);
}

static bool is_refused(const rounding *r) {
    const ir_arms arms = {.taken = r->taken};
    ev_str why = EV_STR_EMPTY;
    OK(ir_arms_missed(r->base, r->narrow, &arms, &why, &err));
    bool refused = why.length > 0;
    ev_str_free(&why);
    return refused;
}

/* An edit that rounds is refused in code that no case ran, and only there. */
static void test_rounding(void **state) {
    (void)state;
    rounding r = open_rounding("rounds");
    for (int seen = 0; seen < 2; seen++) {
        memset(r.taken, seen, r.bytes);
        assert_int_equal(is_refused(&r), !seen);
    }
    close_rounding(&r);
}

/* How many single flags refuse the edit where all others are set. */
static size_t count_refusing(const char *entry) {
    rounding r = open_rounding(entry);
    size_t count = 0;
    for (size_t i = 0; i < r.bytes; i++) {
        memset(r.taken, 1, r.bytes);
        r.taken[i] = 0;
        count += is_refused(&r);
    }
    close_rounding(&r);
    return count;
}

/* What an edit rounds is followed into arms: beside other uses, by shared memory, by a loop. One
 * flag is that of the edit's own block. */
static void test_rounding_elsewhere(void **state) {
    (void)state;
    static const char *const entries[] = {"mixed", "through", "around"};
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        size_t refusing = count_refusing(entries[i]);
        print_message("%s: %zu\n", entries[i], refusing);
        assert_true(refusing >= 2);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_rounding_elsewhere),
        cmocka_unit_test(test_drawn_edits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
