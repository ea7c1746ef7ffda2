/* Launch plans as JSON: one form for each plan, so that its hash names it. */
#include "base/launch_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- key tables --------------------------------------------------------------------------------
 */

static const ev_json_key PLAN_KEYS[] = {
    {"launches", EV_JSON_ARRAY, true, "in order, at least one"},
    {"main", EV_JSON_INTEGER, false, "the number of the main launch; 0"},
    {"loops", EV_JSON_ARRAY, false, "launches that are run again and again"},
    {"scratch", EV_JSON_ARRAY, false, "buffers that live for the launches alone"},
    {"hidden", EV_JSON_ARRAY, false, "parameters behind the task's own"},
    {"ranges", EV_JSON_ARRAY, false, "values for which the plan was validated"},
};

static const ev_json_key LAUNCH_KEYS[] = {
    {"entry", EV_JSON_STRING, true, "the kernel's name in the PTX"},
    {"grid", EV_JSON_ARRAY, true, "three expressions"},
    {"block", EV_JSON_ARRAY, true, "three expressions"},
    {"shared", EV_JSON_STRING, true, "bytes of dynamic shared memory, an expression"},
    {"given", EV_JSON_ARRAY, false, "its parameters: names, or values"},
};

static const ev_json_key GIVEN_KEYS[] = {
    {"type", EV_JSON_STRING, true, "element type"},
    {"value", EV_JSON_STRING, true, "an expression"},
};

static const ev_json_key LOOP_KEYS[] = {
    {"first", EV_JSON_INTEGER, true, "the number of its first launch"},
    {"count", EV_JSON_INTEGER, true, "how many launches it has"},
    {"turns", EV_JSON_STRING, true, "an expression"},
    {"counter", EV_JSON_STRING, false, "the name of the turn"},
    {"swaps", EV_JSON_ARRAY, false, "pairs of names"},
};

static const ev_json_key SCRATCH_KEYS[] = {
    {"name", EV_JSON_STRING, true, "name"},
    {"bytes", EV_JSON_STRING, true, "an expression"},
    {"peers_of", EV_JSON_STRING, false, "a table of that buffer's address at each rank"},
};

static const ev_json_key HIDDEN_KEYS[] = {
    {"name", EV_JSON_STRING, true, "name"},
    {"type", EV_JSON_STRING, true, "element type"},
    {"value", EV_JSON_STRING, true, "an expression"},
};

static const ev_json_key RANGE_KEYS[] = {
    {"name", EV_JSON_STRING, true, "name"},
    {"low", EV_JSON_NUMBER, true, "least value"},
    {"high", EV_JSON_NUMBER, true, "greatest value"},
    {"multiple", EV_JSON_INTEGER, false, "whole numbers: must divide the value"},
};

/* ---- encoding ----------------------------------------------------------------------------------
 */

/* Takes `value` over; false: no memory, or one of the two is NULL. */
static bool put(json_t *object, const char *key, json_t *value) {
    return json_object_set_new(object, key, value) == 0;
}

static json_t *keep_if(bool ok, json_t *value) {
    if (ok)
        return value;
    json_decref(value);
    return NULL;
}

static json_t *texts_json(const char *const texts[3]) {
    json_t *array = json_array();
    bool ok = array != NULL;
    for (int i = 0; i < 3 && ok; i++)
        ok = json_array_append_new(array, json_string(texts[i])) == 0;
    return keep_if(ok, array);
}

static json_t *given_json(const launch_given *g) {
    if (g->name != NULL)
        return json_string(g->name);
    json_t *object = json_object();
    bool ok = object != NULL && put(object, "type", json_string(ev_type_name(g->type))) &&
              put(object, "value", json_string(g->value));
    return keep_if(ok, object);
}

static bool put_given(json_t *object, const launch_rule *l) {
    if (l->given_count == 0)
        return true;
    json_t *array = json_array();
    bool ok = array != NULL;
    for (size_t i = 0; i < l->given_count && ok; i++)
        ok = json_array_append_new(array, given_json(&l->given[i])) == 0;
    return put(object, "given", keep_if(ok, array));
}

static bool put_swaps(json_t *object, const launch_loop *l) {
    if (l->swap_count == 0)
        return true;
    json_t *array = json_array();
    bool ok = array != NULL;
    for (size_t i = 0; i < l->swap_count && ok; i++)
        ok = json_array_append_new(
                 array, json_pack("[s, s]", l->swaps[i].names[0], l->swaps[i].names[1])) == 0;
    return put(object, "swaps", keep_if(ok, array));
}

static json_t *loop_json(const launch_loop *l) {
    json_t *object = json_object();
    bool ok = object != NULL && put(object, "first", json_integer((json_int_t)l->first)) &&
              put(object, "count", json_integer((json_int_t)l->count)) &&
              put(object, "turns", json_string(l->turns)) &&
              (l->counter == NULL || put(object, "counter", json_string(l->counter))) &&
              put_swaps(object, l);
    return keep_if(ok, object);
}

static json_t *launch_json(const launch_rule *l) {
    json_t *object = json_object();
    bool ok = object != NULL && put(object, "entry", json_string(l->entry)) &&
              put(object, "grid", texts_json(l->grid)) &&
              put(object, "block", texts_json(l->block)) &&
              put(object, "shared", json_string(l->shared)) && put_given(object, l);
    return keep_if(ok, object);
}

static json_t *scratch_json(const launch_scratch *s) {
    json_t *object = json_object();
    bool ok = object != NULL && put(object, "name", json_string(s->name)) &&
              put(object, "bytes", json_string(s->bytes)) &&
              (s->peers_of == NULL || put(object, "peers_of", json_string(s->peers_of)));
    return keep_if(ok, object);
}

static json_t *hidden_json(const launch_hidden *h) {
    json_t *object = json_object();
    bool ok = object != NULL && put(object, "name", json_string(h->name)) &&
              put(object, "type", json_string(ev_type_name(h->type))) &&
              put(object, "value", json_string(h->value));
    return keep_if(ok, object);
}

static json_t *number_json(bool is_real, double value) {
    return is_real ? json_real(value) : json_integer((json_int_t)value);
}

json_t *launch_range_encode(const launch_range *r) {
    json_t *object = json_object();
    bool ok = object != NULL && put(object, "name", json_string(r->name)) &&
              put(object, "low", number_json(r->is_real, r->low)) &&
              put(object, "high", number_json(r->is_real, r->high)) &&
              (r->is_real || put(object, "multiple", json_integer(r->multiple)));
    return keep_if(ok, object);
}

/* Sets `key` to the list of `count` values that `member` makes of the plan; none: no key. */
static bool put_list(json_t *object, const char *key, const launch_plan *plan, size_t count,
                     json_t *(*member)(const launch_plan *, size_t)) {
    if (count == 0)
        return true;
    json_t *array = json_array();
    bool ok = array != NULL;
    for (size_t i = 0; i < count && ok; i++)
        ok = json_array_append_new(array, member(plan, i)) == 0;
    return put(object, key, keep_if(ok, array));
}

static json_t *launch_at(const launch_plan *plan, size_t i) {
    return launch_json(&plan->launches[i]);
}
static json_t *loop_at(const launch_plan *plan, size_t i) {
    return loop_json(&plan->loops[i]);
}
static json_t *scratch_at(const launch_plan *plan, size_t i) {
    return scratch_json(&plan->scratch[i]);
}
static json_t *hidden_at(const launch_plan *plan, size_t i) {
    return hidden_json(&plan->hidden[i]);
}
static json_t *range_at(const launch_plan *plan, size_t i) {
    return launch_range_encode(&plan->ranges[i]);
}

ev_status launch_plan_encode(const launch_plan *plan, json_t **out, ev_error *err) {
    json_t *object = json_object();
    bool ok = object != NULL && put_list(object, "launches", plan, plan->launch_count, launch_at) &&
              (plan->main == 0 || put(object, "main", json_integer((json_int_t)plan->main))) &&
              put_list(object, "loops", plan, plan->loop_count, loop_at) &&
              put_list(object, "scratch", plan, plan->scratch_count, scratch_at) &&
              put_list(object, "hidden", plan, plan->hidden_count, hidden_at) &&
              put_list(object, "ranges", plan, plan->range_count, range_at);
    if (!ok) {
        json_decref(object);
        return ev_fail_memory(err, sizeof *plan);
    }
    *out = object;
    return EV_OK;
}

ev_status launch_plan_sha256(const launch_plan *plan, ev_sha256 *out, ev_error *err) {
    json_t *object = NULL;
    EV_TRY(launch_plan_encode(plan, &object, err));
    char *text = ev_json_print(object, true);
    json_decref(object);
    if (text == NULL)
        return ev_fail_memory(err, sizeof *plan);
    *out = ev_sha256_of(text, strlen(text));
    free(text);
    return EV_OK;
}

/* ---- decoding ----------------------------------------------------------------------------------
 */

#define WHERE_BYTES 256

typedef struct decoder {
    const ev_json *doc;
    const char *where; /* of the plan */
    ev_arena *arena;
    ev_error *err;
} decoder;

static void where_of(const char *at, const char *key, size_t index, char where[WHERE_BYTES]) {
    (void)snprintf(where, WHERE_BYTES, "%.200s%s%s[%zu]", at, at[0] != '\0' ? "." : "", key, index);
}

static const char *keep(const decoder *d, const json_t *object, const char *key) {
    return ev_arena_strdup(d->arena, ev_json_text(object, key, ""));
}

static ev_status decode_texts(const decoder *d, const json_t *object, const char *where,
                              const char *key, const char *out[3]) {
    const json_t *array = json_object_get(object, key);
    char at[WHERE_BYTES + 16];
    (void)snprintf(at, sizeof at, "%s.%s", where, key);
    if (json_array_size(array) != 3)
        return ev_json_fail(d->doc, at, d->err, "must have 3 expressions, one an axis");
    for (size_t i = 0; i < 3; i++) {
        const char *text = json_string_value(json_array_get(array, i));
        if (text == NULL)
            return ev_json_fail(d->doc, at, d->err, "an expression must be text");
        out[i] = ev_arena_strdup(d->arena, text);
    }
    return EV_OK;
}

static ev_status decode_type(const decoder *d, const json_t *object, const char *where,
                             ev_type *out) {
    const char *type = ev_json_text(object, "type", "");
    if (ev_type_find(type, out))
        return EV_OK;
    return ev_json_fail(d->doc, where, d->err,
                        "unknown type \"%.40s\"; there are u8 s8 u16 s16 u32 s32 u64 s64 f16 "
                        "bf16 f32 f64",
                        type);
}

static ev_status decode_given(const decoder *d, const json_t *value, const char *where, void *out) {
    launch_given *g = out;
    if (json_is_string(value)) {
        g->name = ev_arena_strdup(d->arena, json_string_value(value));
        return EV_OK;
    }
    EV_TRY(ev_json_check(d->doc, value, where, GIVEN_KEYS, sizeof GIVEN_KEYS / sizeof *GIVEN_KEYS,
                         d->err));
    g->value = keep(d, value, "value");
    return decode_type(d, value, where, &g->type);
}

static ev_status decode_pair(const decoder *d, const json_t *value, const char *where, void *out) {
    launch_pair *pair = out;
    for (size_t i = 0; i < 2; i++) {
        const char *name = json_string_value(json_array_get(value, i));
        if (name == NULL || json_array_size(value) != 2)
            return ev_json_fail(d->doc, where, d->err, "a swap is two names");
        pair->names[i] = ev_arena_strdup(d->arena, name);
    }
    return EV_OK;
}

/* The list `key` of members of `size` bytes, in the arena. `at`: the place of the list. */
static ev_status
decode_list(const decoder *d, const json_t *object, const char *at, const char *key, size_t size,
            ev_status (*member)(const decoder *, const json_t *, const char *, void *), void **out,
            size_t *count) {
    const json_t *array = json_object_get(object, key);
    char where[WHERE_BYTES];
    size_t members = json_array_size(array);
    if (members > LAUNCH_PLAN_MOST) {
        where_of(at, key, LAUNCH_PLAN_MOST, where);
        return ev_json_fail(d->doc, where, d->err, "a launch plan has at most %d %s",
                            LAUNCH_PLAN_MOST, key);
    }
    unsigned char *list = ev_arena_array(d->arena, members, size);
    if (list == NULL)
        return ev_fail_memory(d->err, members * size);
    for (size_t i = 0; i < members; i++) {
        where_of(at, key, i, where);
        EV_TRY(member(d, json_array_get(array, i), where, list + i * size));
    }
    *out = list;
    *count = members;
    return EV_OK;
}

static ev_status decode_launch(const decoder *d, const json_t *object, const char *where,
                               void *out) {
    launch_rule *l = out;
    EV_TRY(ev_json_check(d->doc, object, where, LAUNCH_KEYS,
                         sizeof LAUNCH_KEYS / sizeof *LAUNCH_KEYS, d->err));
    void *given = NULL;
    l->entry = keep(d, object, "entry");
    l->shared = keep(d, object, "shared");
    EV_TRY(decode_list(d, object, where, "given", sizeof(launch_given), decode_given, &given,
                       &l->given_count));
    l->given = given;
    EV_TRY(decode_texts(d, object, where, "grid", l->grid));
    return decode_texts(d, object, where, "block", l->block);
}

static ev_status decode_scratch(const decoder *d, const json_t *object, const char *where,
                                void *out) {
    launch_scratch *s = out;
    EV_TRY(ev_json_check(d->doc, object, where, SCRATCH_KEYS,
                         sizeof SCRATCH_KEYS / sizeof *SCRATCH_KEYS, d->err));
    s->name = keep(d, object, "name");
    s->bytes = keep(d, object, "bytes");
    if (json_object_get(object, "peers_of") != NULL)
        s->peers_of = keep(d, object, "peers_of");
    return EV_OK;
}

static ev_status decode_hidden(const decoder *d, const json_t *object, const char *where,
                               void *out) {
    launch_hidden *h = out;
    EV_TRY(ev_json_check(d->doc, object, where, HIDDEN_KEYS,
                         sizeof HIDDEN_KEYS / sizeof *HIDDEN_KEYS, d->err));
    h->name = keep(d, object, "name");
    h->value = keep(d, object, "value");
    return decode_type(d, object, where, &h->type);
}

static ev_status decode_range(const decoder *d, const json_t *object, const char *where,
                              void *out) {
    launch_range *r = out;
    EV_TRY(ev_json_check(d->doc, object, where, RANGE_KEYS, sizeof RANGE_KEYS / sizeof *RANGE_KEYS,
                         d->err));
    r->name = keep(d, object, "name");
    r->low = ev_json_number(object, "low", 0);
    r->high = ev_json_number(object, "high", 0);
    r->is_real = json_object_get(object, "multiple") == NULL;
    r->multiple = ev_json_integer(object, "multiple", 0);
    return EV_OK;
}

static ev_status decode_loop(const decoder *d, const json_t *object, const char *where, void *out) {
    launch_loop *l = out;
    void *swaps = NULL;
    EV_TRY(ev_json_check(d->doc, object, where, LOOP_KEYS, sizeof LOOP_KEYS / sizeof *LOOP_KEYS,
                         d->err));
    json_int_t first = ev_json_integer(object, "first", 0),
               count = ev_json_integer(object, "count", 0);
    l->first = first >= 0 && first < LAUNCH_PLAN_MOST ? (size_t)first : LAUNCH_PLAN_MOST;
    l->count = count > 0 && count <= LAUNCH_PLAN_MOST ? (size_t)count : 0;
    l->turns = keep(d, object, "turns");
    if (json_object_get(object, "counter") != NULL)
        l->counter = keep(d, object, "counter");
    EV_TRY(decode_list(d, object, where, "swaps", sizeof(launch_pair), decode_pair, &swaps,
                       &l->swap_count));
    l->swaps = swaps;
    return EV_OK;
}

static ev_status decode_lists(const decoder *d, const json_t *object, launch_plan *plan) {
    void *launches = NULL, *loops = NULL, *scratch = NULL, *hidden = NULL, *ranges = NULL;
    EV_TRY(decode_list(d, object, d->where, "launches", sizeof(launch_rule), decode_launch,
                       &launches, &plan->launch_count));
    EV_TRY(decode_list(d, object, d->where, "loops", sizeof(launch_loop), decode_loop, &loops,
                       &plan->loop_count));
    EV_TRY(decode_list(d, object, d->where, "scratch", sizeof(launch_scratch), decode_scratch,
                       &scratch, &plan->scratch_count));
    EV_TRY(decode_list(d, object, d->where, "hidden", sizeof(launch_hidden), decode_hidden, &hidden,
                       &plan->hidden_count));
    EV_TRY(decode_list(d, object, d->where, "ranges", sizeof(launch_range), decode_range, &ranges,
                       &plan->range_count));
    json_int_t main_launch = ev_json_integer(object, "main", 0);
    plan->main =
        main_launch >= 0 && main_launch < LAUNCH_PLAN_MOST ? (size_t)main_launch : LAUNCH_PLAN_MOST;
    plan->launches = launches;
    plan->loops = loops;
    plan->scratch = scratch;
    plan->hidden = hidden;
    plan->ranges = ranges;
    return EV_OK;
}

ev_status launch_plan_decode(const ev_json *doc, const json_t *object, const char *where,
                             const expr_names *names, ev_arena *arena, const launch_plan **out,
                             ev_error *err) {
    decoder d = {doc, where, arena, err};
    EV_TRY(ev_json_check(doc, object, where, PLAN_KEYS, sizeof PLAN_KEYS / sizeof *PLAN_KEYS, err));
    launch_plan *plan = EV_NEW(arena, launch_plan);
    if (plan == NULL)
        return ev_fail_memory(err, sizeof *plan);
    EV_TRY(decode_lists(&d, object, plan));
    if (ev_arena_failed(arena))
        return ev_fail_memory(err, ev_arena_bytes(arena));
    ev_error why = {.status = EV_OK};
    ev_status status = launch_plan_check(plan, names, &why);
    if (status == EV_BAD)
        return ev_json_fail(doc, where, err, "%s", why.text);
    if (status != EV_OK)
        return ev_fail(err, status, "%s", why.text);
    *out = plan;
    return EV_OK;
}
