/* Bases: what the drawn structural edits know of a task's cases. */
#include "kernels/task.h"
#include "tuner/worker/bases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ok.h"

static ev_error err;

/* Whether scalar `number` is `value`, or a multiple of it, at a case of this kind. */
static bool has_value(const task *t, size_t number, int64_t value, bool multiple,
                      bool timed_search) {
    for (size_t i = 0; i < t->case_count; i++) {
        const task_case *c = &t->cases[i];
        bool is_timed_search = c->use == TASK_TIME && c->split == CORPUS_SEARCH;
        expr_value at;
        if (is_timed_search != timed_search)
            continue;
        OK(task_argument_value_of(t, &t->arguments[number], c, &at, &err));
        if (multiple ? at.whole % value == 0 : at.whole == value)
            return true;
    }
    return false;
}

/* Draws one `specialise`, and checks it against the timed cases. Counts equal ones. */
static unsigned draw_one(const bases *b, const task *t, uint32_t seed) {
    ev_pcg rng = ev_pcg_child(11, 0, 0, seed);
    ir_genome *parent = ir_genome_new("textbook"), *child = NULL;
    assert_non_null(parent);
    OK(bases_draw_structure(b, parent, IR_EDIT_SPECIALISE, NULL, &rng, &child, &err));
    json_t *json = ir_genome_to_json(child);
    const json_t *edit = json_array_get(json_object_get(json, "edits"), 0);
    size_t number = strtoul(json_string_value(json_object_get(edit, "anchor")) + 1, NULL, 10);
    bool multiple = strcmp(json_string_value(json_object_get(edit, "form")), "multiple") == 0;
    int64_t option = json_integer_value(json_object_get(edit, "option"));
    assert_true(number < t->argument_count && t->arguments[number].kind == TASK_SCALAR);
    assert_true(has_value(t, number, option, multiple, true));
    json_decref(json);
    ir_genome_free(child);
    ir_genome_free(parent);
    return multiple ? 0 : 1;
}

/* What only a held-out, a check or an adversarial case has shapes no variant. */
static void test_specialise_takes_values_of_the_timed_cases_of_the_search(void **state) {
    (void)state;
    task *t = NULL;
    bases *b = NULL;
    unsigned equal = 0;
    OK(task_open("sd_lstm_fp", &t, &err));
    OK(bases_new(t, 90, 2, &b, &err));
    for (uint32_t seed = 0; seed < 24; seed++)
        equal += draw_one(b, t, seed);
    assert_true(equal >= 4);
    /* The hidden units of awd-lstm are no value of a timed case of the search. */
    assert_true(has_value(t, 9, 1150, false, false) && !has_value(t, 9, 1150, false, true));
    bases_free(b);
    task_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_specialise_takes_values_of_the_timed_cases_of_the_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
