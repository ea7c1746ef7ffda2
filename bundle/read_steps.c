/* Reads the launches of a variant: one of grid, block and shared memory, or steps with their loops
 * and scratch buffers. launch_plan_check holds expressions, counts and kernels' names against the
 * rules of all plans; this file adds what only the kernel knows: which names are buffers. */
#include "bundle/read.h"

#include "bundle/manifest.h"

#include <stdio.h>
#include <string.h>

/* A plan under way. */
typedef struct plan_reading {
    const reading *r;
    const bundle_kernel *k;
    const char *where; /* of the launch */
    launch_plan *plan;
    launch_rule *launches; /* of the plan, LAUNCH_PLAN_MOST each */
    launch_loop *loops;
    launch_scratch *scratch;
} plan_reading;

static json_t *get(const json_t *object, const char *key) {
    return json_object_get(object, key);
}

static ev_status read_three(const plan_reading *p, const json_t *object, const char *where,
                            const char *key, const char *out[3]) {
    const json_t *array = get(object, key);
    for (size_t i = 0; i < 3; i++) {
        out[i] = json_string_value(json_array_get(array, i));
        if (out[i] == NULL || json_array_size(array) != 3)
            return ev_json_fail(p->r->doc, reading_join(p->r, where, key), p->r->err,
                                "must have 3 expressions as texts, one an axis");
    }
    return EV_OK;
}

static ev_status check_most(const plan_reading *p, const char *where, const char *key, size_t count,
                            size_t least, size_t most) {
    if (count >= least && count <= most)
        return EV_OK;
    return ev_json_fail(p->r->doc, reading_join(p->r, where, key), p->r->err,
                        "it has %zu members, and takes %zu to %zu", count, least, most);
}

/* ---- names of buffers ---- */

static const bundle_argument *find_argument(const bundle_kernel *k, const char *name) {
    for (size_t i = 0; i < k->argument_count; i++) {
        if (strcmp(k->arguments[i].name, name) == 0)
            return &k->arguments[i];
    }
    return NULL;
}

static bool is_scratch(const launch_plan *plan, const char *name) {
    for (size_t i = 0; i < plan->scratch_count; i++) {
        if (strcmp(plan->scratch[i].name, name) == 0)
            return true;
    }
    return false;
}

static ev_status check_buffer(const plan_reading *p, const char *where, const char *name) {
    if (find_argument(p->k, name) != NULL || is_scratch(p->plan, name))
        return EV_OK;
    return ev_json_fail(p->r->doc, where, p->r->err,
                        "\"%.100s\" is neither an argument of the kernel nor a scratch buffer of "
                        "the launch",
                        name);
}

/* Who exchanges an input would have the kernels write it. */
static ev_status check_swapped(const plan_reading *p, const char *where, const char *name) {
    const bundle_argument *a = find_argument(p->k, name);
    EV_TRY(check_buffer(p, where, name));
    if (a == NULL || strcmp(a->kind, "out") == 0 || strcmp(a->kind, "inout") == 0)
        return EV_OK;
    return ev_json_fail(p->r->doc, where, p->r->err,
                        "\"%.100s\" is %s, which no kernel writes; swap scratch buffers and "
                        "outputs",
                        name, bundle_is_scalar(a) ? "a scalar" : "an input");
}

/* ---- launches ---- */

static ev_status read_given(const plan_reading *p, const json_t *value, const char *where,
                            launch_given *out) {
    if (json_is_string(value)) {
        out->name = json_string_value(value);
        return check_buffer(p, where, out->name);
    }
    EV_TRY(manifest_check(p->r->doc, MANIFEST_VALUE, value, where, p->r->err));
    out->value = ev_json_text(value, "value", "");
    if (ev_type_find(ev_json_text(value, "type", ""), &out->type))
        return EV_OK;
    return ev_json_fail(p->r->doc, reading_join(p->r, where, "type"), p->r->err,
                        "\"%.100s\" is no type of elements", ev_json_text(value, "type", ""));
}

static ev_status read_step(plan_reading *p, const json_t *object, const char *where) {
    if (get(object, "steps") != NULL)
        return ev_json_fail(p->r->doc, where, p->r->err,
                            "steps that repeat stand in no others that do");
    EV_TRY(manifest_check(p->r->doc, MANIFEST_STEP, object, where, p->r->err));
    if (p->plan->launch_count == LAUNCH_PLAN_MOST)
        return ev_json_fail(p->r->doc, where, p->r->err, "a variant has at most %d launches",
                            LAUNCH_PLAN_MOST);
    launch_rule *rule = &p->launches[p->plan->launch_count++];
    const json_t *arguments = get(object, "arguments");
    size_t count = json_array_size(arguments);
    EV_TRY(check_most(p, where, "arguments", count, 1, BUNDLE_GIVEN_MOST));
    launch_given *given = EV_NEW_ARRAY(p->r->arena, launch_given, count);
    if (given == NULL)
        return ev_fail_memory(p->r->err, count * sizeof *given);
    rule->entry = ev_json_text(object, "entry", "");
    rule->shared = ev_json_text(object, "shared", "0");
    rule->given = given;
    rule->given_count = count;
    for (size_t i = 0; i < count; i++)
        EV_TRY(read_given(p, json_array_get(arguments, i),
                          reading_member(p->r, where, "arguments", i), &given[i]));
    EV_TRY(read_three(p, object, where, "grid", rule->grid));
    return read_three(p, object, where, "block", rule->block);
}

static ev_status read_swaps(const plan_reading *p, const json_t *object, const char *where,
                            launch_loop *loop) {
    const json_t *list = get(object, "swap");
    size_t count = json_array_size(list);
    EV_TRY(check_most(p, where, "swap", count, 0, LAUNCH_PLAN_MOST));
    launch_pair *swaps = EV_NEW_ARRAY(p->r->arena, launch_pair, count + 1);
    if (swaps == NULL)
        return ev_fail_memory(p->r->err, (count + 1) * sizeof *swaps);
    for (size_t i = 0; i < count; i++) {
        const char *at = reading_member(p->r, where, "swap", i);
        const json_t *pair = json_array_get(list, i);
        for (size_t side = 0; side < 2; side++) {
            swaps[i].names[side] = json_string_value(json_array_get(pair, side));
            if (json_array_size(pair) != 2 || swaps[i].names[side] == NULL)
                return ev_json_fail(p->r->doc, at, p->r->err,
                                    "a swap is a pair of names, [\"a\", \"b\"]");
            EV_TRY(check_swapped(p, at, swaps[i].names[side]));
        }
    }
    loop->swaps = swaps;
    loop->swap_count = count;
    return EV_OK;
}

static ev_status read_loop(plan_reading *p, const json_t *object, const char *where) {
    EV_TRY(manifest_check(p->r->doc, MANIFEST_LOOP, object, where, p->r->err));
    const json_t *steps = get(object, "steps");
    size_t count = json_array_size(steps);
    EV_TRY(check_most(p, where, "steps", count, 1, LAUNCH_PLAN_MOST));
    launch_loop *loop = &p->loops[p->plan->loop_count++];
    *loop = (launch_loop){.first = p->plan->launch_count,
                          .count = count,
                          .turns = ev_json_text(object, "repeat", ""),
                          .counter = ev_json_text(object, "counter", NULL)};
    EV_TRY(read_swaps(p, object, where, loop));
    for (size_t i = 0; i < count; i++)
        EV_TRY(read_step(p, json_array_get(steps, i), reading_member(p->r, where, "steps", i)));
    return EV_OK;
}

/* An expression finds a scalar by its name, so only buffers' names are left to compare. */
static ev_status read_scratch(plan_reading *p, const json_t *launch) {
    const json_t *list = get(launch, "scratch");
    EV_TRY(check_most(p, p->where, "scratch", json_array_size(list), 0, LAUNCH_PLAN_MOST));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *object = json_array_get(list, i);
        const char *at = reading_member(p->r, p->where, "scratch", i);
        launch_scratch *s = &p->scratch[i];
        EV_TRY(manifest_check(p->r->doc, MANIFEST_SCRATCH, object, at, p->r->err));
        *s = (launch_scratch){.name = ev_json_text(object, "name", ""),
                              .bytes = ev_json_text(object, "bytes", ""),
                              .peers_of = ev_json_text(object, "of", NULL)};
        if (find_argument(p->k, s->name) != NULL || is_scratch(p->plan, s->name))
            return ev_json_fail(p->r->doc, reading_join(p->r, at, "name"), p->r->err,
                                "another buffer or an argument is named %.100s, too", s->name);
        EV_TRY(reading_rank_scratch(p->r, p->k, at, p->scratch, i));
        p->plan->scratch_count++;
    }
    return EV_OK;
}

static ev_status read_steps(plan_reading *p, const json_t *launch) {
    const json_t *steps = get(launch, "steps");
    for (size_t i = 0; i < p->k->argument_count; i++) {
        if (p->k->arguments[i].is_field)
            return ev_json_fail(p->r->doc, reading_join(p->r, p->where, "steps"), p->r->err,
                                "steps take no struct by value (%.100s)", p->k->arguments[i].name);
    }
    EV_TRY(check_most(p, p->where, "steps", json_array_size(steps), 1, LAUNCH_PLAN_MOST));
    EV_TRY(read_scratch(p, launch));
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *step = json_array_get(steps, i);
        const char *at = reading_member(p->r, p->where, "steps", i);
        EV_TRY(get(step, "steps") != NULL ? read_loop(p, step, at) : read_step(p, step, at));
    }
    return EV_OK;
}

/* The launch that matters most is the first one of the variant's own kernel. */
static ev_status find_main(const plan_reading *p, const char *entry) {
    for (size_t i = 0; i < p->plan->launch_count; i++) {
        if (strcmp(p->plan->launches[i].entry, entry) == 0) {
            p->plan->main = i;
            return EV_OK;
        }
    }
    return ev_json_fail(p->r->doc, reading_join(p->r, p->where, "steps"), p->r->err,
                        "no step launches the variant's entry %.200s", entry);
}

static ev_status read_single(plan_reading *p, const json_t *launch, const char *entry) {
    static const char *const needed[] = {"grid", "block", "shared"};
    launch_rule *rule = &p->launches[p->plan->launch_count++];
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (get(launch, needed[i]) == NULL)
            return ev_json_fail(p->r->doc, p->where, p->r->err,
                                "missing key \"%s\"; a launch has \"grid\", \"block\" and "
                                "\"shared\", or several have \"steps\"",
                                needed[i]);
    }
    if (get(launch, "scratch") != NULL)
        return ev_json_fail(p->r->doc, reading_join(p->r, p->where, "scratch"), p->r->err,
                            "scratch buffers stand beside \"steps\" alone");
    rule->entry = entry;
    rule->shared = ev_json_text(launch, "shared", "0");
    EV_TRY(read_three(p, launch, p->where, "grid", rule->grid));
    return read_three(p, launch, p->where, "block", rule->block);
}

static ev_status read_several(plan_reading *p, const json_t *launch, const char *entry) {
    static const char *const beside[] = {"grid", "block", "shared"};
    for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++) {
        if (get(launch, beside[i]) != NULL)
            return ev_json_fail(p->r->doc, reading_join(p->r, p->where, beside[i]), p->r->err,
                                "a launch with \"steps\" has no \"%s\": each step has its own",
                                beside[i]);
    }
    EV_TRY(read_steps(p, launch));
    return find_main(p, entry);
}

ev_status reading_launches(const reading *r, const bundle_kernel *k, const json_t *launch,
                           const char *where, const char *entry, launch_plan *out) {
    size_t room = get(launch, "steps") != NULL ? LAUNCH_PLAN_MOST : 1;
    plan_reading p = {.r = r,
                      .k = k,
                      .where = where,
                      .plan = out,
                      .launches = EV_NEW_ARRAY(r->places, launch_rule, room),
                      .loops = EV_NEW_ARRAY(r->places, launch_loop, room),
                      .scratch = EV_NEW_ARRAY(r->places, launch_scratch, room)};
    if (p.launches == NULL || p.loops == NULL || p.scratch == NULL)
        return ev_fail_memory(r->err, room * sizeof *p.launches);
    *out = (launch_plan){.launches = p.launches, .loops = p.loops, .scratch = p.scratch};
    EV_TRY(room > 1 ? read_several(&p, launch, entry) : read_single(&p, launch, entry));
    /* as many as there are */
    out->launches = ev_arena_copy(r->arena, p.launches, out->launch_count * sizeof *p.launches);
    out->loops = ev_arena_copy(r->arena, p.loops, out->loop_count * sizeof *p.loops);
    out->scratch = ev_arena_copy(r->arena, p.scratch, out->scratch_count * sizeof *p.scratch);
    if (out->launches == NULL || out->loops == NULL || out->scratch == NULL)
        return ev_fail_memory(r->err, out->launch_count * sizeof *p.launches);
    return EV_OK;
}
