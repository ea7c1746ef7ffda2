/* Launch plans: checks without values, evaluation at values, copies. */
#include "base/launch_plan.h"

#include "base/str.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRATCH_MOST (INT64_C(1) << 40)
#define WHOLE_MOST 9007199254740992.0 /* 2^53: whole numbers are exact in a double up to here */
#define PLACE_BYTES 320

const launch_limits LAUNCH_LIMITS_CUDA = {.grid = {INT32_MAX, 65535, 65535},
                                          .block = {1024, 1024, 64},
                                          .threads = 1024,
                                          .shared = 232448};

/* ---- fields ------------------------------------------------------------------------------------
 */

static const struct {
    const char *name;
    int axes;
} FIELDS[] = {
    [LAUNCH_GRID] = {"grid", 3}, [LAUNCH_BLOCK] = {"block", 3}, [LAUNCH_SHARED] = {"shared", 1}};

static const char *text_of(const launch_rule *rule, launch_field field, int axis) {
    assert(axis >= 0 && axis < FIELDS[field].axes);
    if (field == LAUNCH_GRID)
        return rule->grid[axis];
    return field == LAUNCH_BLOCK ? rule->block[axis] : rule->shared;
}

static int64_t least_of(launch_field field) {
    return field == LAUNCH_SHARED ? 0 : 1;
}

static int64_t most_of(const launch_limits *limits, launch_field field, int axis) {
    if (field == LAUNCH_GRID)
        return limits->grid[axis];
    return field == LAUNCH_BLOCK ? limits->block[axis] : limits->shared;
}

/* "launch 0 (lstm_fp), grid[1]" */
static void place_of(const launch_plan *plan, size_t index, launch_field field, int axis,
                     char place[PLACE_BYTES]) {
    int used = snprintf(place, PLACE_BYTES, "launch %zu (%.200s), %s", index,
                        plan->launches[index].entry, FIELDS[field].name);
    if (FIELDS[field].axes > 1 && used > 0 && used < PLACE_BYTES)
        (void)snprintf(place + used, PLACE_BYTES - (size_t)used, "[%d]", axis);
}

/* Puts the place in front of the message of `text`, and the values of its names behind. */
static ev_status fail_at(const char *place, const char *text, const expr_scope *values,
                         ev_status status, ev_error *err) {
    ev_str shown = EV_STR_EMPTY;
    expr_print_values(text, values, &shown);
    if (shown.length > 0 && err != NULL)
        (void)ev_fail(err, status, "%.1000s (%.300s)", err->text, ev_str_text(&shown));
    ev_str_free(&shown);
    return ev_wrap(err, status, "%s", place);
}

/* ---- evaluation --------------------------------------------------------------------------------
 */

ev_status launch_plan_eval(const launch_plan *plan, size_t index, launch_field field, int axis,
                           const expr_scope *values, const launch_limits *limits, uint32_t *out,
                           ev_error *err) {
    assert(index < plan->launch_count);
    const char *text = text_of(&plan->launches[index], field, axis);
    int64_t value = 0;
    ev_status status =
        expr_eval_whole(text, values, least_of(field), most_of(limits, field, axis), &value, err);
    if (status != EV_OK) {
        char place[PLACE_BYTES];
        place_of(plan, index, field, axis, place);
        return fail_at(place, text, values, status, err);
    }
    *out = (uint32_t)value;
    return EV_OK;
}

static ev_status check_threads(const launch_plan *plan, size_t index, const launch_geometry *at,
                               const expr_scope *values, const launch_limits *limits,
                               ev_error *err) {
    const launch_rule *rule = &plan->launches[index];
    uint64_t threads = (uint64_t)at->block[0] * at->block[1] * at->block[2];
    if (threads <= limits->threads)
        return EV_OK;
    (void)ev_fail(
        err, EV_BAD, "a block of %u x %u x %u is %llu threads; the most is %u, so make it smaller",
        at->block[0], at->block[1], at->block[2], (unsigned long long)threads, limits->threads);
    char place[PLACE_BYTES], all[512];
    (void)snprintf(place, sizeof place, "launch %zu (%.200s), block", index, rule->entry);
    (void)snprintf(all, sizeof all, "%.160s, %.160s, %.160s", rule->block[0], rule->block[1],
                   rule->block[2]);
    return fail_at(place, all, values, EV_BAD, err);
}

ev_status launch_plan_geometry(const launch_plan *plan, size_t index, const expr_scope *values,
                               const launch_limits *limits, launch_geometry *out, ev_error *err) {
    launch_geometry made = {.shared_bytes = 0};
    for (int i = 0; i < 3; i++) {
        EV_TRY(launch_plan_eval(plan, index, LAUNCH_GRID, i, values, limits, &made.grid[i], err));
        EV_TRY(launch_plan_eval(plan, index, LAUNCH_BLOCK, i, values, limits, &made.block[i], err));
    }
    EV_TRY(
        launch_plan_eval(plan, index, LAUNCH_SHARED, 0, values, limits, &made.shared_bytes, err));
    EV_TRY(check_threads(plan, index, &made, values, limits, err));
    *out = made;
    return EV_OK;
}

ev_status launch_plan_scratch(const launch_plan *plan, size_t index, const expr_scope *values,
                              uint64_t *bytes, ev_error *err) {
    assert(index < plan->scratch_count);
    const launch_scratch *s = &plan->scratch[index];
    int64_t value = 0;
    ev_status status = expr_eval_whole(s->bytes, values, 1, SCRATCH_MOST, &value, err);
    if (status != EV_OK) {
        char place[PLACE_BYTES];
        (void)snprintf(place, sizeof place, "scratch buffer %.200s, bytes", s->name);
        return fail_at(place, s->bytes, values, status, err);
    }
    *bytes = (uint64_t)value;
    return EV_OK;
}

ev_status launch_plan_hidden(const launch_plan *plan, size_t index, const expr_scope *values,
                             expr_value *out, ev_error *err) {
    assert(index < plan->hidden_count);
    const launch_hidden *h = &plan->hidden[index];
    ev_status status = expr_eval_as(h->value, h->type, values, out, err);
    if (status != EV_OK) {
        char place[PLACE_BYTES];
        (void)snprintf(place, sizeof place, "hidden parameter %.200s, value", h->name);
        return fail_at(place, h->value, values, status, err);
    }
    return EV_OK;
}

bool launch_range_holds(const launch_range *range, double value) {
    if (!(value >= range->low && value <= range->high))
        return false;
    if (range->is_real)
        return true;
    if (value != floor(value))
        return false;
    return range->multiple == 0 || fmod(value, (double)range->multiple) == 0;
}

const char *launch_plan_entry(const launch_plan *plan) {
    assert(plan->main < plan->launch_count);
    return plan->launches[plan->main].entry;
}

bool launch_plan_is_plain(const launch_plan *plan) {
    return plan->launch_count == 1 && plan->loop_count == 0 && plan->scratch_count == 0 &&
           plan->hidden_count == 0 && plan->launches[0].given_count == 0;
}

/* ---- steps -------------------------------------------------------------------------------------
 */

/* The steps made so far. */
typedef struct step_list {
    launch_step *all;
    size_t count, room;
    uint64_t swapped;
} step_list;

static ev_status fail_steps(ev_error *err) {
    return ev_fail(err, EV_BAD, "more than %d launches with all turns; launch fewer",
                   LAUNCH_STEPS_MOST);
}

static ev_status make_room(step_list *list, ev_error *err) {
    enum { ROOM_FIRST = 4 };
    if (list->count == LAUNCH_STEPS_MOST)
        return fail_steps(err);
    if (list->count < list->room)
        return EV_OK;
    size_t room = list->room > 0 ? 2 * list->room : ROOM_FIRST;
    launch_step *more = realloc(list->all, room * sizeof *more);
    if (more == NULL)
        return ev_fail_memory(err, room * sizeof *more);
    list->all = more;
    list->room = room;
    return EV_OK;
}

/* Adds one turn of a loop's launches, or one launch without a loop. */
static ev_status add_turn(const launch_loop *loop, size_t first, size_t end, int64_t turn,
                          step_list *list, ev_error *err) {
    for (size_t i = first; i < end; i++) {
        EV_TRY(make_room(list, err));
        list->all[list->count++] =
            (launch_step){.launch = i, .loop = loop, .turn = turn, .swapped = list->swapped};
    }
    return EV_OK;
}

static ev_status add_loop(const launch_plan *plan, size_t index, const expr_scope *values,
                          step_list *list, ev_error *err) {
    const launch_loop *loop = &plan->loops[index];
    int64_t turns = 0;
    ev_status status = expr_eval_whole(loop->turns, values, 0, LAUNCH_STEPS_MOST, &turns, err);
    if (status != EV_OK) {
        char place[PLACE_BYTES];
        (void)snprintf(place, sizeof place, "launch %zu (%.200s), turns", loop->first,
                       plan->launches[loop->first].entry);
        return fail_at(place, loop->turns, values, status, err);
    }
    for (int64_t turn = 0; turn < turns; turn++) {
        EV_TRY(add_turn(loop, loop->first, loop->first + loop->count, turn, list, err));
        if (loop->swap_count > 0)
            list->swapped ^= UINT64_C(1) << index;
    }
    return EV_OK;
}

static ev_status add_steps(const launch_plan *plan, const expr_scope *values, step_list *list,
                           ev_error *err) {
    for (size_t at = 0, loop = 0; at < plan->launch_count;) {
        bool begins = loop < plan->loop_count && plan->loops[loop].first == at;
        EV_TRY(begins ? add_loop(plan, loop, values, list, err)
                      : add_turn(NULL, at, at + 1, 0, list, err));
        at += begins ? plan->loops[loop].count : 1;
        loop += begins;
    }
    if (list->count == 0)
        return ev_fail(err, EV_BAD, "no launch is left: each is in a loop of 0 turns");
    return EV_OK;
}

ev_status launch_plan_steps(const launch_plan *plan, const expr_scope *values, launch_step **out,
                            size_t *count, ev_error *err) {
    step_list list = {.all = NULL};
    ev_status status = add_steps(plan, values, &list, err);
    if (status != EV_OK) {
        free(list.all);
        return status;
    }
    *out = list.all;
    *count = list.count;
    return EV_OK;
}

expr_scope launch_step_scope(const launch_step *step, expr_name *names, size_t count) {
    if (step->loop != NULL && step->loop->counter != NULL)
        names[count++] = (expr_name){step->loop->counter, expr_of_whole(step->turn)};
    return (expr_scope){names, count};
}

static const char *partner_of(const launch_loop *loop, const char *name) {
    for (size_t i = 0; i < loop->swap_count; i++) {
        for (int side = 0; side < 2; side++) {
            if (strcmp(loop->swaps[i].names[side], name) == 0)
                return loop->swaps[i].names[1 - side];
        }
    }
    return name;
}

/* The last exchange is undone first. */
const char *launch_step_buffer(const launch_plan *plan, const launch_step *step, const char *name) {
    for (size_t i = plan->loop_count; i-- > 0;) {
        if ((step->swapped >> i & 1) != 0)
            name = partner_of(&plan->loops[i], name);
    }
    return name;
}

/* ---- checks without values ---------------------------------------------------------------------
 */

static const expr_scope NO_VALUES = {NULL, 0};

/* PTX ISA, "Identifiers". */
static bool is_entry(const char *text) {
    bool led = isalpha((unsigned char)*text) || (*text != '\0' && strchr("_$%", *text) != NULL);
    if (!led || (!isalpha((unsigned char)*text) && text[1] == '\0'))
        return false;
    for (text++; *text != '\0'; text++) {
        if (!isalnum((unsigned char)*text) && strchr("_$", *text) == NULL)
            return false;
    }
    return true;
}

static ev_status check_given(const launch_plan *plan, size_t index, const expr_names *names,
                             ev_error *err) {
    const launch_rule *rule = &plan->launches[index];
    for (size_t i = 0; i < rule->given_count; i++) {
        const launch_given *g = &rule->given[i];
        bool constant = false;
        ev_status status = EV_OK;
        if (g->name == NULL)
            status = expr_check(g->value, names, &constant, err);
        else if (!expr_is_name(g->name))
            status = ev_fail(err, EV_BAD, "\"%.200s\" is no name", g->name);
        if (status != EV_OK)
            return ev_wrap(err, status, "launch %zu (%.200s), argument %zu", index, rule->entry, i);
    }
    return EV_OK;
}

static ev_status check_launch(const launch_plan *plan, size_t index, const expr_names *names,
                              ev_error *err) {
    const launch_rule *rule = &plan->launches[index];
    if (!is_entry(rule->entry))
        return ev_fail(err, EV_BAD, "launch %zu, entry: \"%.200s\" is no name of a kernel in PTX",
                       index, rule->entry);
    for (int field = LAUNCH_GRID; field <= LAUNCH_SHARED; field++) {
        for (int axis = 0; axis < FIELDS[field].axes; axis++) {
            const char *text = text_of(rule, (launch_field)field, axis);
            bool constant = false;
            uint32_t value = 0;
            char place[PLACE_BYTES];
            place_of(plan, index, (launch_field)field, axis, place);
            ev_status status = expr_check(text, names, &constant, err);
            if (status != EV_OK)
                return ev_wrap(err, status, "%s", place);
            if (constant)
                EV_TRY(launch_plan_eval(plan, index, (launch_field)field, axis, &NO_VALUES,
                                        &LAUNCH_LIMITS_CUDA, &value, err));
        }
    }
    return check_given(plan, index, names, err);
}

static bool is_listed(const expr_names *names, const char *name) {
    for (size_t i = 0; names != NULL && i < names->count; i++) {
        if (strcmp(names->items[i], name) == 0)
            return true;
    }
    return false;
}

/* A new name: neither one of the task's nor one that stands before it in the plan. */
static ev_status check_new_name(const launch_plan *plan, const expr_names *names, const char *what,
                                const char *name, size_t scratch, size_t hidden, ev_error *err) {
    if (!expr_is_name(name))
        return ev_fail(err, EV_BAD,
                       "%s, name: \"%.200s\" is no name; use letters, digits and _, not a digit "
                       "first",
                       what, name);
    bool taken = is_listed(names, name);
    for (size_t i = 0; i < scratch; i++)
        taken |= strcmp(plan->scratch[i].name, name) == 0;
    for (size_t i = 0; i < hidden; i++)
        taken |= strcmp(plan->hidden[i].name, name) == 0;
    if (taken)
        return ev_fail(err, EV_BAD, "%s, name: the name %.200s is taken; choose another one", what,
                       name);
    return EV_OK;
}

static ev_status check_scratch(const launch_plan *plan, size_t index, const expr_names *names,
                               ev_error *err) {
    const launch_scratch *s = &plan->scratch[index];
    char what[48];
    bool constant = false, is_known = s->peers_of == NULL;
    uint64_t bytes = 0;
    (void)snprintf(what, sizeof what, "scratch buffer %zu", index);
    EV_TRY(check_new_name(plan, names, what, s->name, index, 0, err));
    for (size_t i = 0; i < index && !is_known; i++)
        is_known =
            plan->scratch[i].peers_of == NULL && strcmp(plan->scratch[i].name, s->peers_of) == 0;
    if (!is_known)
        return ev_fail(
            err, EV_BAD,
            "scratch buffer %s, peers of: \"%.200s\" is no scratch buffer before it; list "
            "the buffer before its table",
            s->name, s->peers_of);
    ev_status status = expr_check(s->bytes, names, &constant, err);
    if (status != EV_OK)
        return ev_wrap(err, status, "scratch buffer %s, bytes", s->name);
    return constant ? launch_plan_scratch(plan, index, &NO_VALUES, &bytes, err) : EV_OK;
}

static ev_status check_hidden(const launch_plan *plan, size_t index, const expr_names *names,
                              ev_error *err) {
    const launch_hidden *h = &plan->hidden[index];
    char what[48];
    bool constant = false;
    expr_value value;
    (void)snprintf(what, sizeof what, "hidden parameter %zu", index);
    EV_TRY(check_new_name(plan, names, what, h->name, plan->scratch_count, index, err));
    ev_status status = expr_check(h->value, names, &constant, err);
    if (status != EV_OK)
        return ev_wrap(err, status, "hidden parameter %s, value", h->name);
    return constant ? launch_plan_hidden(plan, index, &NO_VALUES, &value, err) : EV_OK;
}

/* ---- loops */

static bool has_name(const launch_loop *loop, size_t pairs, const char *name) {
    for (size_t i = 0; i < pairs; i++) {
        if (strcmp(loop->swaps[i].names[0], name) == 0 ||
            strcmp(loop->swaps[i].names[1], name) == 0)
            return true;
    }
    return false;
}

static ev_status check_swaps(const launch_loop *loop, size_t index, ev_error *err) {
    for (size_t i = 0; i < loop->swap_count; i++) {
        const char *const *names = loop->swaps[i].names;
        bool are_names = expr_is_name(names[0]) && expr_is_name(names[1]);
        if (!are_names || strcmp(names[0], names[1]) == 0 || has_name(loop, i, names[0]) ||
            has_name(loop, i, names[1]))
            return ev_fail(err, EV_BAD,
                           "loop %zu, swap %zu: %.200s and %.200s; name two buffers that are in no "
                           "other pair",
                           index, i, names[0], names[1]);
    }
    return EV_OK;
}

static ev_status check_loop(const launch_plan *plan, size_t index, const expr_names *names,
                            ev_error *err) {
    const launch_loop *loop = &plan->loops[index], *before = index > 0 ? loop - 1 : NULL;
    size_t least = before != NULL ? before->first + before->count : 0;
    bool constant = false;
    if (loop->first < least || loop->count == 0 || loop->first >= plan->launch_count ||
        loop->count > plan->launch_count - loop->first)
        return ev_fail(err, EV_BAD,
                       "loop %zu: launches %zu to %zu; the launches of a loop follow those of the "
                       "loop before and end with the plan's",
                       index, loop->first, loop->first + loop->count - 1);
    ev_status status = expr_check(loop->turns, names, &constant, err);
    if (status != EV_OK)
        return ev_wrap(err, status, "loop %zu, turns", index);
    if (loop->counter != NULL && (!expr_is_name(loop->counter) || is_listed(names, loop->counter)))
        return ev_fail(err, EV_BAD, "loop %zu, counter: \"%.200s\" is taken, or no name", index,
                       loop->counter);
    return check_swaps(loop, index, err);
}

/* The loop's launches know its counter beside the names of the plan. */
static ev_status check_looped(const launch_plan *plan, const launch_loop *loop,
                              const expr_names *names, ev_error *err) {
    size_t count = names != NULL ? names->count : 0;
    const char **all = calloc(count + 1, sizeof *all);
    if (all == NULL)
        return ev_fail_memory(err, (count + 1) * sizeof *all);
    for (size_t i = 0; i < count; i++)
        all[i] = names->items[i];
    if (loop->counter != NULL)
        all[count++] = loop->counter;
    const expr_names known = {all, count};
    ev_status status = EV_OK;
    for (size_t i = loop->first; i < loop->first + loop->count && status == EV_OK; i++)
        status = check_launch(plan, i, names != NULL ? &known : NULL, err);
    free(all);
    return status;
}

static ev_status check_launches(const launch_plan *plan, const expr_names *names, ev_error *err) {
    for (size_t at = 0, loop = 0; at < plan->launch_count;) {
        bool begins = loop < plan->loop_count && plan->loops[loop].first == at;
        EV_TRY(begins ? check_looped(plan, &plan->loops[loop], names, err)
                      : check_launch(plan, at, names, err));
        at += begins ? plan->loops[loop].count : 1;
        loop += begins;
    }
    return EV_OK;
}

static bool is_whole(double value) {
    return value == floor(value) && fabs(value) <= WHOLE_MOST;
}

static ev_status check_range(const launch_plan *plan, size_t index, const expr_names *names,
                             ev_error *err) {
    const launch_range *r = &plan->ranges[index];
    if (!expr_is_name(r->name) || (names != NULL && !is_listed(names, r->name)))
        return ev_fail(err, EV_BAD, "range %zu, name: unknown name \"%.200s\"", index, r->name);
    for (size_t i = 0; i < index; i++) {
        if (strcmp(plan->ranges[i].name, r->name) == 0)
            return ev_fail(err, EV_BAD, "range %zu, name: a second range of %s", index, r->name);
    }
    if (!isfinite(r->low) || !isfinite(r->high) || r->low > r->high)
        return ev_fail(err, EV_BAD, "range of %s: from %.17g to %.17g there is nothing", r->name,
                       r->low, r->high);
    bool whole = is_whole(r->low) && is_whole(r->high) && r->multiple >= 0;
    if (r->is_real ? r->multiple != 0 : !whole)
        return ev_fail(err, EV_BAD,
                       "range of %s: low and high must be whole numbers up to 2^53 and multiple at "
                       "least 0; a range of reals has no multiple",
                       r->name);
    return EV_OK;
}

static ev_status check_count(const char *what, size_t count, size_t least, ev_error *err) {
    if (count >= least && count <= LAUNCH_PLAN_MOST)
        return EV_OK;
    return ev_fail(err, EV_BAD, "%zu %s; a launch plan has %zu to %d", count, what, least,
                   LAUNCH_PLAN_MOST);
}

ev_status launch_plan_check(const launch_plan *plan, const expr_names *names, ev_error *err) {
    EV_TRY(check_count("launches", plan->launch_count, 1, err));
    EV_TRY(check_count("scratch buffers", plan->scratch_count, 0, err));
    EV_TRY(check_count("hidden parameters", plan->hidden_count, 0, err));
    EV_TRY(check_count("ranges", plan->range_count, 0, err));
    if (plan->main >= plan->launch_count)
        return ev_fail(err, EV_BAD, "the main launch is number %zu of %zu", plan->main,
                       plan->launch_count);
    EV_TRY(check_count("loops", plan->loop_count, 0, err));
    for (size_t i = 0; i < plan->loop_count; i++)
        EV_TRY(check_loop(plan, i, names, err));
    EV_TRY(check_launches(plan, names, err));
    for (size_t i = 0; i < plan->scratch_count; i++)
        EV_TRY(check_scratch(plan, i, names, err));
    for (size_t i = 0; i < plan->hidden_count; i++)
        EV_TRY(check_hidden(plan, i, names, err));
    for (size_t i = 0; i < plan->range_count; i++)
        EV_TRY(check_range(plan, i, names, err));
    return EV_OK;
}

/* ---- copies ------------------------------------------------------------------------------------
 */

/* A copy of a list, so that its texts can be replaced by copies; NULL: out of memory. */
#define COPY_LIST(arena, type, items, count)                                                       \
    ((type *)ev_arena_copy((arena), (items), (count) * sizeof(type)))

static const char *copy_text(ev_arena *arena, const char *text) {
    return text != NULL ? ev_arena_strdup(arena, text) : NULL;
}

static void copy_given(ev_arena *arena, launch_rule *rule) {
    launch_given *given = COPY_LIST(arena, launch_given, rule->given, rule->given_count);
    for (size_t i = 0; given != NULL && i < rule->given_count; i++) {
        given[i].name = copy_text(arena, given[i].name);
        given[i].value = copy_text(arena, given[i].value);
    }
    rule->given = given;
}

static void copy_loop(ev_arena *arena, launch_loop *loop) {
    launch_pair *swaps = COPY_LIST(arena, launch_pair, loop->swaps, loop->swap_count);
    for (size_t i = 0; swaps != NULL && i < loop->swap_count; i++) {
        swaps[i].names[0] = ev_arena_strdup(arena, swaps[i].names[0]);
        swaps[i].names[1] = ev_arena_strdup(arena, swaps[i].names[1]);
    }
    loop->swaps = swaps;
    loop->turns = ev_arena_strdup(arena, loop->turns);
    loop->counter = copy_text(arena, loop->counter);
}

static void copy_rule(ev_arena *arena, launch_rule *rule) {
    copy_given(arena, rule);
    rule->entry = ev_arena_strdup(arena, rule->entry);
    for (int i = 0; i < 3; i++) {
        rule->grid[i] = ev_arena_strdup(arena, rule->grid[i]);
        rule->block[i] = ev_arena_strdup(arena, rule->block[i]);
    }
    rule->shared = ev_arena_strdup(arena, rule->shared);
}

ev_status launch_plan_clone(const launch_plan *from, ev_arena *arena, const launch_plan **out,
                            ev_error *err) {
    launch_plan *made = ev_arena_copy(arena, from, sizeof *from);
    launch_rule *launches = COPY_LIST(arena, launch_rule, from->launches, from->launch_count);
    launch_loop *loops = COPY_LIST(arena, launch_loop, from->loops, from->loop_count);
    launch_scratch *scratch = COPY_LIST(arena, launch_scratch, from->scratch, from->scratch_count);
    launch_hidden *hidden = COPY_LIST(arena, launch_hidden, from->hidden, from->hidden_count);
    launch_range *ranges = COPY_LIST(arena, launch_range, from->ranges, from->range_count);
    if (made == NULL || launches == NULL || loops == NULL || scratch == NULL || hidden == NULL ||
        ranges == NULL)
        return ev_fail_memory(err, sizeof *from);
    for (size_t i = 0; i < from->launch_count; i++)
        copy_rule(arena, &launches[i]);
    for (size_t i = 0; i < from->loop_count; i++)
        copy_loop(arena, &loops[i]);
    for (size_t i = 0; i < from->scratch_count; i++) {
        scratch[i].name = ev_arena_strdup(arena, scratch[i].name);
        scratch[i].bytes = ev_arena_strdup(arena, scratch[i].bytes);
        if (scratch[i].peers_of != NULL)
            scratch[i].peers_of = ev_arena_strdup(arena, scratch[i].peers_of);
    }
    for (size_t i = 0; i < from->hidden_count; i++) {
        hidden[i].name = ev_arena_strdup(arena, hidden[i].name);
        hidden[i].value = ev_arena_strdup(arena, hidden[i].value);
    }
    for (size_t i = 0; i < from->range_count; i++)
        ranges[i].name = ev_arena_strdup(arena, ranges[i].name);
    made->launches = launches;
    made->loops = loops;
    made->scratch = scratch;
    made->hidden = hidden;
    made->ranges = ranges;
    if (ev_arena_failed(arena))
        return ev_fail_memory(err, sizeof *from);
    *out = made;
    return EV_OK;
}
