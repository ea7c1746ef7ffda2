/* Bases: what the drawn structural edits know of a task's cases. */
#include "kernels/task.h"
#include "tuner/worker/bases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* ---- names of arguments ---- */

static const char divides_cu[] =
    "#include \"evoke_cuda.h\"\n"
    "extern \"C\" __global__ void divides(const float *x, float *y, int n, int w) {\n"
    "    int at = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (at < n)\n"
    "        y[at] = x[at] * (float)(at % w) + (float)(at / w);\n"
    "}\n";

static const char divides_json[] =
    "{\"name\": \"divides\", \"family\": \"tests\", \"doc\": \"rows and columns\",\n"
    " \"arguments\": [\n"
    "  {\"name\": \"x\", \"kind\": \"in\", \"type\": \"f32\", \"count\": \"n\",\n"
    "   \"data\": {\"generator\": \"normal\"}},\n"
    "  {\"name\": \"y\", \"kind\": \"out\", \"type\": \"f32\", \"count\": \"n\"},\n"
    "  {\"name\": \"n\", \"kind\": \"scalar\", \"type\": \"s32\"},\n"
    "  {\"name\": \"w\", \"kind\": \"scalar\", \"type\": \"s32\", \"value\": \"%s\"}],\n"
    " \"starts\": [{\"name\": \"textbook\", \"source\": \"divides.cu\",\n"
    "  \"grid\": \"ceil_div(n, 128)\", \"block\": 128}],\n"
    " \"oracle\": \"baseline\", \"tolerance\": {\"relative_l2\": 1e-6},\n"
    " \"cases\": [\n"
    "  {\"name\": \"smoke\", \"split\": \"search\", \"use\": \"smoke\",\n"
    "   \"shape\": {\"n\": 64, \"w\": 8}},\n"
    "  {\"name\": \"odd\", \"split\": \"search\", \"use\": \"check\",\n"
    "   \"shape\": {\"n\": 301, \"w\": 7}},\n"
    "  {\"name\": \"time\", \"split\": \"search\", \"use\": \"time\",\n"
    "   \"shape\": {\"n\": 65536, \"w\": 64}}]}\n";

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

/* How many of ten draws of `delinearize` find a place, where w has this value. */
static unsigned count_places(const char *value) {
    char folder[] = "/tmp/evoke-bases-XXXXXX", path[64], json[2048];
    unsigned places = 0;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/divides.cu", folder);
    write_file(path, divides_cu);
    (void)snprintf(json, sizeof json, divides_json, value);
    (void)snprintf(path, sizeof path, "%s/task.json", folder);
    write_file(path, json);
    task *t = NULL;
    bases *b = NULL;
    OK(task_open(path, &t, &err));
    OK(bases_new(t, 90, 2, &b, &err));
    for (uint32_t seed = 0; seed < 10; seed++) {
        ev_pcg rng = ev_pcg_child(12, 0, 0, seed);
        ir_genome *parent = ir_genome_new("textbook"), *child = NULL;
        places +=
            bases_draw_structure(b, parent, IR_EDIT_DELINEARIZE, NULL, &rng, &child, &err) == EV_OK;
        ir_genome_free(child);
        ir_genome_free(parent);
    }
    bases_free(b);
    task_free(t);
    assert_int_equal(remove(path), 0);
    (void)snprintf(path, sizeof path, "%s/divides.cu", folder);
    assert_int_equal(remove(path), 0);
    assert_int_equal(rmdir(folder), 0);
    return places;
}

/* In the launch plan, w is the shape's; a kernel that gets another value of that name divides by
 * what the plan does not know. */
static void test_a_hidden_argument_has_no_name(void **state) {
    (void)state;
    assert_true(count_places("w") > 0);
    assert_int_equal(count_places("w * 2"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_specialise_takes_values_of_the_timed_cases_of_the_search),
        cmocka_unit_test(test_a_hidden_argument_has_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
