/* Sampled: draws and builds a group in a child. A candidate at which LLVM aborts is left out the
 * next time. */
#include "tuner/cli/sampled.h"

#include "ir/ir.h"
#include "tuner/worker/bases.h"
#include "tuner/worker/isolate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define TRIES 32 /* of a group; bits of `left_out` */
#define MOST_EDITS 12
#define GROUP_SECONDS 600

typedef struct group {
    const task *t;
    const task_start *start;
    int sm;
    uint64_t seed;
    size_t number;
    uint32_t threads; /* a block */
    uint32_t left_out;
    uint32_t *at; /* shared with the child: the try that it is at */
} group;

/* What goes before each text that the child gives. */
typedef struct frame {
    uint64_t bytes;
    bool is_sketch;
} frame;

/* ---- in the child ---- */

static ir_genome *genome_of(const group *g) {
    ev_pcg rng = ev_pcg_child(g->seed, 0, 1, (uint32_t)g->number);
    ir_genome *genome = ir_genome_new(g->start->name);
    ev_error ignored;
    if (genome == NULL)
        return NULL;
    ir_genome_set_optimised(genome, g->number % 4 == 3);
    for (size_t i = 0; i < g->start->macro_count; i++) {
        const task_macro *m = &g->start->macros[i];
        int64_t value = m->values[ev_pcg_below(&rng, (uint32_t)m->value_count)];
        if (value != m->otherwise && ir_genome_set_macro(genome, m->name, value, &ignored) != EV_OK)
            break;
    }
    return genome;
}

/* Takes `genome` over; what has no place is left out. */
static ir_genome *mutate(const ir_base *base, ir_genome *genome, ev_pcg *rng) {
    for (uint32_t edits = 1 + ev_pcg_below(rng, MOST_EDITS); edits > 0; edits--) {
        ir_genome *child = NULL;
        ev_error ignored;
        ir_edit_kind kind = (ir_edit_kind)ev_pcg_below(rng, IR_EDIT_LOCAL_COUNT);
        if (ir_mutate(base, genome, kind, NULL, rng, &child, &ignored) != EV_OK)
            continue;
        ir_genome_free(genome);
        genome = child;
    }
    return genome;
}

static void put(ev_str *out, const char *ptx, size_t bytes, bool is_sketch) {
    frame f = {.bytes = bytes, .is_sketch = is_sketch};
    ev_str_append_n(out, (const char *)&f, sizeof f);
    ev_str_append_n(out, ptx, bytes);
    ev_str_char(out, '\0');
}

static ev_status build(const ir_base *base, const ir_genome *genome, ev_str *out, ev_error *err) {
    ir_build *b = NULL;
    size_t bytes = 0;
    bool covered = false;
    EV_TRY(ir_build_new(base, genome, &b, err));
    ev_status status = EV_OK;
    for (int s = 0; s < IR_STAGE_COUNT && status == EV_OK; s++) {
        if (s == IR_STAGE_EMIT)
            status = ir_build_sketch(b, &covered, NULL);
        if (status == EV_OK)
            status = ir_build_run(b, (ir_stage)s, err);
    }
    if (status == EV_OK && covered) {
        const char *sketch = ir_build_sketch_ptx(b, &bytes);
        put(out, sketch, bytes, true);
    }
    if (status == EV_OK) {
        const char *ptx = ir_build_ptx(b, &bytes);
        put(out, ptx, bytes, false);
    }
    ir_build_free(b);
    return status;
}

static ev_status try_one(const group *g, const ir_base *base, const ir_genome *origin,
                         uint32_t number, ev_str *out, ev_error *err) {
    ev_pcg rng = ev_pcg_child(g->seed, 1, (uint32_t)g->number, number);
    ir_genome *genome = ir_genome_clone(origin);
    if (genome == NULL)
        return ev_fail_memory(err, 1);
    genome = mutate(base, genome, &rng);
    ev_status status = ir_genome_edit_count(genome) > 0 ? build(base, genome, out, err) : EV_BAD;
    ir_genome_free(genome);
    return status;
}

static ev_status group_work(void *context, ev_str *out, ev_error *err) {
    const group *g = context;
    bases *all = NULL;
    const ir_base *base = NULL;
    ir_genome *origin = genome_of(g);
    if (origin == NULL)
        return ev_fail_memory(err, 1);
    ev_status status = bases_new(g->t, g->sm, 1, &all, err);
    if (status == EV_OK)
        status = bases_get(all, origin, &base, err);
    size_t built = 0;
    for (uint32_t i = 0; i < TRIES && built < SAMPLED_GROUP && status == EV_OK; i++) {
        *g->at = i;
        if ((g->left_out >> i & 1) != 0)
            continue;
        status = try_one(g, base, origin, i, out, err);
        built += status == EV_OK;
        status = status == EV_BAD ? EV_OK : status;
    }
    *g->at = TRIES;
    bases_free(all);
    ir_genome_free(origin);
    return status;
}

/* ---- in the parent ---- */

static const task_case *timed_case(const task *t) {
    for (size_t i = 0; i < t->case_count; i++) {
        if (t->cases[i].use == TASK_TIME)
            return &t->cases[i];
    }
    return NULL;
}

static uint32_t threads_of(const group *g) {
    const task_case *c = timed_case(g->t);
    ir_genome *genome = genome_of(g);
    expr_name *macros = calloc(g->start->macro_count + 1, sizeof *macros);
    launch_geometry launch;
    ev_error ignored;
    uint32_t threads = 0;
    if (c != NULL && genome != NULL && macros != NULL && launch_plan_is_plain(g->start->plan)) {
        size_t count = ir_genome_macro_count(genome);
        for (size_t i = 0; i < count; i++)
            macros[i] = (expr_name){ir_genome_macro_name(genome, i),
                                    expr_of_whole(ir_genome_macro_value(genome, i))};
        if (task_launch_of(g->t, g->start, g->start->plan, macros, count, c, &launch, &ignored) ==
            EV_OK)
            threads = launch.block[0] * launch.block[1] * launch.block[2];
    }
    free(macros);
    ir_genome_free(genome);
    return threads;
}

static ev_status tell_all(const group *g, const ev_str *texts, sampled_fn *fn, void *context,
                          ev_error *err) {
    const char *at = ev_str_text(texts), *end = at + texts->length;
    while (at < end) {
        frame f;
        memcpy(&f, at, sizeof f);
        at += sizeof f;
        sampled s = {.start = g->start->name,
                     .threads = g->threads,
                     .ptx = at,
                     .bytes = f.bytes,
                     .is_sketch = f.is_sketch};
        EV_TRY(fn(context, &s, err));
        at += f.bytes + 1;
    }
    return EV_OK;
}

/* Until no candidate ends the child. A start that does not compile with these macros has none. */
static ev_status make_all(group *g, ev_str *texts, ev_error *err) {
    for (;;) {
        *g->at = TRIES;
        ev_str_clear(texts);
        ev_status status = isolate_run(group_work, g, GROUP_SECONDS, texts, err);
        if (status != EV_BAD)
            return status;
        ev_str_clear(texts);
        if (*g->at >= TRIES)
            return EV_OK;
        g->left_out |= UINT32_C(1) << *g->at;
    }
}

ev_status sampled_each(const task *t, int sm, uint64_t seed, size_t group_number, sampled_fn *fn,
                       void *context, ev_error *err) {
    group g = {.t = t,
               .start = &t->starts[group_number % t->start_count],
               .sm = sm,
               .seed = seed,
               .number = group_number};
    ev_str texts = EV_STR_EMPTY;
    g.threads = threads_of(&g);
    g.at = mmap(NULL, sizeof *g.at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (g.at == MAP_FAILED)
        return ev_fail_memory(err, sizeof *g.at);
    ev_status status = make_all(&g, &texts, err);
    (void)munmap(g.at, sizeof *g.at);
    if (status == EV_OK)
        status = tell_all(&g, &texts, fn, context, err);
    ev_str_free(&texts);
    return status;
}
