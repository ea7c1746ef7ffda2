/* Scores: names of the gates, and the JSON form of a score. */
#include "fitness/gates/score.h"

#include "base/json.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct gate_row {
    const char *name;
    const char *meaning;
} gate_row;

static const gate_row GATES[] = {
#define GATE(number, id, name, meaning) [number] = {name, meaning},
#include "fitness/gates/gates.def"
#undef GATE
};

_Static_assert(sizeof GATES / sizeof GATES[0] == GATE_COUNT, "gates are numbered without a gap");

static const char *const NOT_STOPPED = "none";
static const char *const INFINITE = "infinite"; /* JSON has no infinity */

const char *gate_name(gate g) {
    assert((unsigned)g <= GATE_COUNT);
    return g == GATE_NONE ? NOT_STOPPED : GATES[g].name;
}

const char *gate_meaning(gate g) {
    assert((unsigned)g <= GATE_COUNT);
    return g == GATE_NONE ? "passed every gate" : GATES[g].meaning;
}

bool gate_find(const char *name, gate *out) {
    for (int i = 0; i <= GATE_COUNT; i++) {
        if (strcmp(gate_name((gate)i), name) == 0) {
            *out = (gate)i;
            return true;
        }
    }
    return false;
}

static json_t *real_to_json(double value) {
    return isfinite(value) ? json_real(value) : json_string(INFINITE);
}

/* The fields that are written only if they were measured. */
static void add_measured(json_t *object, const score_case *c) {
    const struct {
        const char *key;
        double value;
    } values[] = {{"baseline_ns", c->baseline_ns},
                  {"baseline_low_ns", c->baseline_low_ns},
                  {"baseline_high_ns", c->baseline_high_ns},
                  {"sm_mhz", c->sm_mhz},
                  {"discarded", c->discarded}};
    for (size_t i = 0; object != NULL && i < sizeof values / sizeof values[0]; i++) {
        if (values[i].value > 0)
            (void)json_object_set_new(object, values[i].key, real_to_json(values[i].value));
    }
}

static json_t *case_to_json(const score_case *c) {
    json_t *object =
        json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "name", c->name, "ns", real_to_json(c->ns),
                  "low_ns", real_to_json(c->low_ns), "high_ns", real_to_json(c->high_ns), "error",
                  real_to_json(c->error), "normalised", real_to_json(c->normalised));
    add_measured(object, c);
    return object;
}

static json_t *cases_to_json(const score *s) {
    json_t *list = json_array();
    if (list == NULL)
        return NULL;
    for (size_t i = 0; i < s->case_count; i++) {
        if (json_array_append_new(list, case_to_json(&s->cases[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

void score_take_sketch(score *s) {
    size_t kept = 0;
    for (size_t i = 0; i < s->case_count; i++) {
        if (s->cases[i].ns == 0)
            s->cases[kept++] = s->cases[i];
    }
    s->case_count = kept;
    s->sketch_ns = s->small_ns;
    s->small_ns = 0;
    s->whole_ns = s->ns;
    s->ns = 0;
}

void score_add_screening(score *s, const score *screening) {
    s->error = fmax(s->error, screening->error);
    s->normalised = fmax(s->normalised, screening->normalised);
    s->thread_instructions += screening->thread_instructions;
    s->small_ns = screening->small_ns;
    s->sketch_ns = screening->sketch_ns;
    s->first_ns = screening->first_ns;
    s->whole_ns = screening->whole_ns;
    s->sketch = screening->sketch;
    memcpy(s->fingerprint, screening->fingerprint, sizeof s->fingerprint);
}

small_run score_small_run(const score *s) {
    small_run run = {
        .sketch = s->sketch_ns, .built = s->small_ns, .first = s->first_ns, .whole = s->whole_ns};
    for (size_t i = 0; i < s->case_count; i++) {
        if (s->cases[i].ns == 0 && s->cases[i].error > run.error)
            run.error = s->cases[i].error;
    }
    return run;
}

bool score_out_of_reach(double ns, double error, double reach_ns, double reach_error) {
    return reach_ns > 0 && ns > reach_ns && error >= reach_error;
}

json_t *score_to_json(const score *s) {
    assert(s->case_count <= SCORE_MAX_CASES);
    json_t *json = json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:o, s:I, s:o, s:I, s:o, s:i, s:o}", "stopped",
        gate_name(s->stopped), "reason", s->reason, "trap", s->trap, "ns", real_to_json(s->ns),
        "error", real_to_json(s->error), "normalised", real_to_json(s->normalised), "registers",
        (json_int_t)s->registers, "occupancy", real_to_json(s->occupancy), "thread_instructions",
        (json_int_t)s->thread_instructions, "small_ns", real_to_json(s->small_ns), "filtered",
        (int)s->filtered, "cases", cases_to_json(s));
    if (json != NULL && s->baseline_ns > 0)
        (void)json_object_set_new(json, "baseline_ns", real_to_json(s->baseline_ns));
    if (json != NULL && s->sketch_ns > 0)
        (void)json_object_set_new(json, "sketch_ns", real_to_json(s->sketch_ns));
    if (json != NULL && s->first_ns > 0)
        (void)json_object_set_new(json, "first_ns", real_to_json(s->first_ns));
    if (json != NULL && s->whole_ns > 0)
        (void)json_object_set_new(json, "whole_ns", real_to_json(s->whole_ns));
    if (json != NULL && s->estimated)
        (void)json_object_set_new(json, "estimated", json_true());
    if (json != NULL && s->fingerprint[0] != '\0')
        (void)json_object_set_new(json, "likeness", json_string(s->fingerprint));
    if (json != NULL && s->recalled)
        (void)json_object_set_new(json, "recalled", json_true());
    if (json != NULL && s->sketch != SKETCH_NOTHING)
        (void)json_object_set_new(json, "sketch", json_integer((json_int_t)s->sketch));
    return json;
}

/* ---- reading ---- */

static bool get_real(const json_t *object, const char *key, double *out) {
    const json_t *value = json_object_get(object, key);
    if (json_is_string(value) && strcmp(json_string_value(value), INFINITE) == 0) {
        *out = INFINITY;
        return true;
    }
    *out = json_number_value(value);
    return json_is_number(value);
}

/* A number, 0 if the field is missing. */
static bool get_maybe(const json_t *object, const char *key, double *out) {
    *out = 0;
    return json_object_get(object, key) == NULL || get_real(object, key, out);
}

static bool get_text(const json_t *object, const char *key, char *out, size_t room) {
    const char *text = ev_json_text(object, key, NULL);
    if (text == NULL || strlen(text) >= room)
        return false;
    (void)snprintf(out, room, "%s", text);
    return true;
}

static bool get_count(const json_t *object, const char *key, uint64_t *out) {
    const json_t *value = json_object_get(object, key);
    json_int_t whole = json_integer_value(value);
    *out = (uint64_t)whole;
    return json_is_integer(value) && whole >= 0;
}

static bool get_case(const json_t *object, score_case *out) {
    return get_text(object, "name", out->name, sizeof out->name) &&
           get_real(object, "ns", &out->ns) && get_real(object, "low_ns", &out->low_ns) &&
           get_real(object, "high_ns", &out->high_ns) && get_real(object, "error", &out->error) &&
           get_real(object, "normalised", &out->normalised) &&
           get_maybe(object, "baseline_ns", &out->baseline_ns) &&
           get_maybe(object, "baseline_low_ns", &out->baseline_low_ns) &&
           get_maybe(object, "baseline_high_ns", &out->baseline_high_ns) &&
           get_maybe(object, "sm_mhz", &out->sm_mhz) &&
           get_maybe(object, "discarded", &out->discarded);
}

static bool get_cases(const json_t *object, score *out) {
    const json_t *list = json_object_get(object, "cases");
    if (!json_is_array(list) || json_array_size(list) > SCORE_MAX_CASES)
        return false;
    out->case_count = json_array_size(list);
    for (size_t i = 0; i < out->case_count; i++) {
        if (!get_case(json_array_get(list, i), &out->cases[i]))
            return false;
    }
    return true;
}

static bool get_score(const json_t *json, score *s) {
    char stopped[32];
    uint64_t registers = 0, filtered = 0;
    bool ok =
        get_text(json, "stopped", stopped, sizeof stopped) && gate_find(stopped, &s->stopped) &&
        get_text(json, "reason", s->reason, sizeof s->reason) &&
        get_text(json, "trap", s->trap, sizeof s->trap) && get_real(json, "ns", &s->ns) &&
        get_maybe(json, "baseline_ns", &s->baseline_ns) && get_real(json, "error", &s->error) &&
        get_real(json, "normalised", &s->normalised) &&
        get_real(json, "occupancy", &s->occupancy) && get_count(json, "registers", &registers) &&
        registers <= UINT32_MAX &&
        get_count(json, "thread_instructions", &s->thread_instructions) &&
        get_real(json, "small_ns", &s->small_ns) && get_count(json, "filtered", &filtered) &&
        get_maybe(json, "sketch_ns", &s->sketch_ns) && get_maybe(json, "first_ns", &s->first_ns) &&
        get_maybe(json, "whole_ns", &s->whole_ns) && filtered <= 1 && get_cases(json, s);
    json_int_t sketch = ev_json_integer(json, "sketch", SKETCH_NOTHING);
    bool known = sketch >= SKETCH_NOTHING && sketch <= SKETCH_IGNORED;
    ok = ok && known;
    s->sketch = known ? (score_sketch)sketch : SKETCH_NOTHING;
    s->filtered = filtered == 1;
    (void)get_text(json, "likeness", s->fingerprint, sizeof s->fingerprint);
    s->recalled = json_is_true(json_object_get(json, "recalled"));
    s->estimated = json_is_true(json_object_get(json, "estimated"));
    s->registers = (uint32_t)registers;
    return ok;
}

ev_status score_from_json(const json_t *json, score *out, ev_error *err) {
    score read;
    memset(&read, 0, sizeof read); /* clears the padding, too, so that equal scores are equal
                                      bytes */
    if (!json_is_object(json) || !get_score(json, &read))
        return ev_fail(err, EV_BAD,
                       "this is no score: a key is missing, of the wrong kind or too long; it was "
                       "written by another version, or changed by hand");
    *out = read;
    return EV_OK;
}
