/* Makes the JSON of a variant's launches: one launch as grid, block and shared memory; several as
 * steps in the form of a task's, so that a loop stands around its launches. */
#include "bundle/manifest_steps.h"

#include <assert.h>

static json_t *texts_json(const char *const texts[3]) {
    return json_pack("[s, s, s]", texts[0], texts[1], texts[2]);
}

static json_t *given_json(const launch_given *g) {
    return g->name != NULL
               ? json_string(g->name)
               : json_pack("{s:s, s:s}", "type", ev_type_name(g->type), "value", g->value);
}

static json_t *step_json(const launch_rule *l) {
    json_t *arguments = json_array();
    for (size_t i = 0; i < l->given_count; i++)
        (void)json_array_append_new(arguments, given_json(&l->given[i]));
    return json_pack("{s:s, s:o, s:o, s:s, s:o}", "entry", l->entry, "grid", texts_json(l->grid),
                     "block", texts_json(l->block), "shared", l->shared, "arguments", arguments);
}

static json_t *loop_json(const launch_plan *plan, const launch_loop *loop) {
    json_t *steps = json_array(), *swaps = json_array();
    for (size_t i = 0; i < loop->count; i++)
        (void)json_array_append_new(steps, step_json(&plan->launches[loop->first + i]));
    for (size_t i = 0; i < loop->swap_count; i++)
        (void)json_array_append_new(
            swaps, json_pack("[s, s]", loop->swaps[i].names[0], loop->swaps[i].names[1]));
    json_t *object = json_pack("{s:s, s:o}", "repeat", loop->turns, "steps", steps);
    if (loop->counter != NULL)
        (void)json_object_set_new(object, "counter", json_string(loop->counter));
    if (loop->swap_count > 0)
        (void)json_object_set(object, "swap", swaps);
    json_decref(swaps);
    return object;
}

static json_t *steps_json(const launch_plan *plan) {
    json_t *array = json_array();
    for (size_t at = 0, loop = 0; at < plan->launch_count;) {
        bool begins = loop < plan->loop_count && plan->loops[loop].first == at;
        (void)json_array_append_new(array, begins ? loop_json(plan, &plan->loops[loop])
                                                  : step_json(&plan->launches[at]));
        at += begins ? plan->loops[loop].count : 1;
        loop += begins;
    }
    return array;
}

static json_t *scratch_json(const launch_plan *plan) {
    json_t *array = json_array();
    for (size_t i = 0; i < plan->scratch_count; i++) {
        const launch_scratch *s = &plan->scratch[i];
        json_t *object = json_pack("{s:s, s:s}", "name", s->name, "bytes", s->bytes);
        if (s->peers_of != NULL)
            (void)json_object_set_new(object, "of", json_string(s->peers_of));
        (void)json_array_append_new(array, object);
    }
    return array;
}

json_t *manifest_launch(const launch_plan *plan, json_t *macros) {
    const launch_rule *l = &plan->launches[0];
    if (launch_plan_is_plain(plan))
        return json_pack("{s:o, s:o, s:s, s:o}", "grid", texts_json(l->grid), "block",
                         texts_json(l->block), "shared", l->shared, "macros", macros);
    assert(plan->hidden_count == 0);
    json_t *object = json_pack("{s:o, s:o}", "steps", steps_json(plan), "macros", macros);
    if (plan->scratch_count > 0)
        (void)json_object_set_new(object, "scratch", scratch_json(plan));
    return object;
}
