/* Scores: names of the gates, and the JSON form there and back. */
#include "base/json.h"
#include "fitness/gates/score.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_names(void **state) {
    (void)state;
    for (int i = 0; i <= GATE_COUNT; i++) {
        gate found = GATE_SEEN;
        assert_true(gate_find(gate_name((gate)i), &found));
        assert_int_equal(found, i);
        assert_true(strlen(gate_meaning((gate)i)) > 3);
    }
    assert_string_equal(gate_name(GATE_NONE), "none");
    gate untouched = GATE_TIMED;
    assert_false(gate_find("fast", &untouched));
    assert_int_equal(untouched, GATE_TIMED);
}

static void fill(score *s) {
    memset(s, 0, sizeof *s);
    s->stopped = GATE_ACCURATE;
    (void)snprintf(s->reason, sizeof s->reason, "case x: \"quoted\" \\ and a \x01 byte");
    (void)snprintf(s->trap, sizeof s->trap, "race-shared");
    s->ns = 1234.56789;
    s->error = INFINITY;
    s->normalised = 0.1;
    s->registers = 255;
    s->occupancy = 1.0 / 3;
    s->thread_instructions = UINT64_C(1) << 60;
    s->case_count = 2;
    (void)snprintf(s->cases[0].name, sizeof s->cases[0].name, "first");
    s->cases[0].ns = 1e-3;
    s->cases[0].baseline_ns = 2e-3;
    s->cases[0].baseline_low_ns = 1.5e-3;
    s->cases[0].baseline_high_ns = 2.5e-3;
    s->cases[0].sm_mhz = 1980.5;
    s->cases[0].discarded = 11;
    s->cases[1].error = 5e-324;
    s->cases[1].normalised = INFINITY;
}

static void test_round_trip(void **state) {
    (void)state;
    score a, b;
    fill(&a);
    json_t *json = score_to_json(&a);
    assert_non_null(json);
    char *text = ev_json_print(json, true);
    json_decref(json);
    ev_json *doc = NULL;
    assert_int_equal(ev_json_parse(text, "score", &doc, NULL), EV_OK);
    assert_int_equal(score_from_json(doc->root, &b, NULL), EV_OK);
    json = score_to_json(&b);
    char *again = ev_json_print(json, true);
    assert_string_equal(text, again);
    assert_string_equal(a.reason, b.reason);
    assert_true(isinf(b.error) && isinf(b.cases[1].normalised));
    assert_true(a.occupancy == b.occupancy && a.cases[1].error == b.cases[1].error);
    assert_int_equal(a.thread_instructions, b.thread_instructions);
    json_decref(json);
    ev_json_free(doc);
    free(text);
    free(again);
}

/* Each key is needed, and of its kind. */
static void test_refused(void **state) {
    (void)state;
    score s, untouched;
    fill(&s);
    fill(&untouched);
    json_t *json = score_to_json(&s);
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(json, key, value) {
        json_t *broken = json_copy(json);
        json_object_del(broken, key);
        assert_int_equal(score_from_json(broken, &untouched, NULL), EV_BAD);
        json_object_set_new(broken, key, json_true());
        assert_int_equal(score_from_json(broken, &untouched, NULL), EV_BAD);
        json_decref(broken);
    }
    assert_memory_equal(&s, &untouched, sizeof s);
    assert_int_equal(score_from_json(json_object_get(json, "cases"), &s, NULL), EV_BAD);
    json_decref(json);
}

/* What a sketch's score has may be missing, and comes back where it is not. */
static void test_sketched(void **state) {
    (void)state;
    score s, back;
    fill(&s);
    s.sketch_ns = 12.5;
    s.whole_ns = 1e6 / 3;
    s.estimated = true;
    json_t *json = score_to_json(&s);
    assert_int_equal(score_from_json(json, &back, NULL), EV_OK);
    assert_true(back.estimated && back.whole_ns == s.whole_ns && back.sketch_ns == 12.5);
    json_object_del(json, "whole_ns");
    json_object_del(json, "estimated");
    assert_int_equal(score_from_json(json, &back, NULL), EV_OK);
    assert_true(!back.estimated && back.whole_ns == 0);
    json_object_set_new(json, "whole_ns", json_true());
    assert_int_equal(score_from_json(json, &back, NULL), EV_BAD);
    json_decref(json);
}

/* What only a measured score has may be missing, but not be of another kind. */
static void test_measured(void **state) {
    (void)state;
    score s, back;
    fill(&s);
    s.baseline_ns = 3;
    json_t *json = score_to_json(&s);
    assert_int_equal(score_from_json(json, &back, NULL), EV_OK);
    assert_true(back.baseline_ns == 3 && back.cases[0].sm_mhz == 1980.5);
    assert_true(back.cases[0].discarded == 11);
    assert_true(back.cases[0].baseline_high_ns == 2.5e-3 && back.cases[1].baseline_ns == 0);
    json_t *row = json_array_get(json_object_get(json, "cases"), 0);
    json_object_del(row, "sm_mhz");
    assert_int_equal(score_from_json(json, &back, NULL), EV_OK);
    json_object_set_new(row, "baseline_ns", json_true());
    assert_int_equal(score_from_json(json, &back, NULL), EV_BAD);
    json_decref(json);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measured), cmocka_unit_test(test_sketched),
        cmocka_unit_test(test_names),    cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
