/* Site profiles: where a start spends its time is where edits are drawn; and what of a base is made
 * once for all workers. */
#include "base/json.h"
#include "tuner/worker/worker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ok.h"

#define DRAWS 240
#define LOOP_FIRST 30 /* lines of kernels/lstm/sd_lstm_fp/textbook.cu */
#define LOOP_LAST 36

static ev_error err;

/* A worker with a task open, without the pipes. */
static void open_worker_by(worker *w, const char *task_name, const bases_shelf *shelf) {
    *w = (worker){0};
    OK(task_open(task_name, &w->t, &err));
    OK(device_open("vm:h200", &w->device, &err));
    OK(bases_new(w->t, 90, 2, &w->bases, &err));
    bases_use_shelf(w->bases, shelf);
    const fitness_options options = {0};
    OK(fitness_open(w->t, w->device, &options, &w->fitness, &err));
    worker_build b;
    score s;
    OK(worker_build_begin(w, ir_genome_new(w->t->starts[0].name), &b, &err));
    OK(worker_build_all(w, &b, &err));
    OK(fitness_set_baseline(w->fitness, &b.candidate, 0, &s, &err));
    worker_build_end(&b);
}

static void open_worker(worker *w, const char *task_name) {
    open_worker_by(w, task_name, NULL);
}

static bool in_loop(const ir_base *base, size_t number, uint32_t first, uint32_t last) {
    uint32_t line = ir_base_insn_line(base, number);
    return line >= first && line <= last;
}

/* Number of the base's instruction that the first edit of a genome is at; the count if it has none.
 */
static size_t place_of(const ir_base *base, const ir_genome *genome) {
    json_t *json = ir_genome_to_json(genome);
    const json_t *edit = json_array_get(json_object_get(json, "edits"), 0);
    const char *at = json_string_value(json_object_get(edit, "at"));
    size_t number = at && at[0] == 'i' ? strtoul(at + 1, NULL, 10) : ir_base_insn_count(base);
    json_decref(json);
    return number;
}

static size_t count_hot(const ir_base *base, const ir_genome *start, const double *heat,
                        const double *judge) {
    size_t hot = 0;
    for (uint32_t i = 0; i < DRAWS; i++) {
        ev_pcg rng = ev_pcg_child(5, 6, 7, i);
        ir_genome *child = NULL;
        OK(ir_mutate(base, start, IR_EDIT_OPERAND, &(ir_hints){.heat = heat}, &rng, &child, &err));
        size_t at = place_of(base, child);
        assert_true(at < ir_base_insn_count(base));
        hot += judge[at] > 1;
        ir_genome_free(child);
    }
    return hot;
}

/* The inner loop of the textbook start is hotter than the rest, and gets the more draws for it. */
static void hot_places_get_more_draws(void **state) {
    (void)state;
    worker w;
    open_worker(&w, "sd_lstm_fp");
    ir_genome *start = ir_genome_new("textbook");
    const ir_base *base = NULL;
    const double *heat = NULL, *again = NULL;
    OK(bases_get(w.bases, start, &base, &err));
    OK(worker_heat(&w, start, &heat, &err));
    assert_non_null(heat);
    size_t count = ir_base_insn_count(base), hot = 0;
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        assert_true(heat[i] >= 0.2 && heat[i] <= 16);
        hot += heat[i] > 1;
        sum += heat[i];
    }
    assert_true(hot > 0 && hot < count / 2); /* few take the most of it */
    assert_true(sum > 0.5 * (double)count);
    size_t with = count_hot(base, start, heat, heat), without = count_hot(base, start, NULL, heat);
    assert_true(with > without + without / 3 && with < DRAWS);
    OK(worker_heat(&w, start, &again, &err));
    assert_ptr_equal(heat, again);
    ir_genome_free(start);
    worker_close_task(&w);
}

/* The loop over the kept neurons, by its source lines, is what is hot. */
static void the_loop_is_what_is_hot(void **state) {
    (void)state;
    worker w;
    open_worker(&w, "sd_lstm_fp");
    ir_genome *start = ir_genome_new("textbook");
    const ir_base *base = NULL;
    const double *heat = NULL;
    OK(bases_get(w.bases, start, &base, &err));
    OK(worker_heat(&w, start, &heat, &err));
    double in = 0, out = 0;
    size_t in_count = 0, out_count = 0;
    for (size_t i = 0; i < ir_base_insn_count(base); i++) {
        bool inside = in_loop(base, i, LOOP_FIRST, LOOP_LAST);
        *(inside ? &in : &out) += heat[i];
        *(inside ? &in_count : &out_count) += 1;
    }
    assert_true(in_count > 0 && out_count > 0);
    assert_true(in / (double)in_count > 2 * out / (double)out_count);
    ir_genome_free(start);
    worker_close_task(&w);
}

/* ---- the shelf ---- */

static unsigned wanted, given;

static ev_status want(void *context, const char *key, json_t **value, ev_error *e) {
    (void)e;
    *value = json_incref(json_object_get(context, key));
    wanted++;
    given += *value != NULL;
    return EV_OK;
}

/* Through text, as between two processes. */
static ev_status made(void *context, const char *key, json_t *value, ev_error *e) {
    (void)e;
    char *text = ev_json_print(value, true);
    json_decref(value);
    assert_null(json_object_get(context, key));
    assert_int_equal(json_object_set_new(context, key, json_loads(text, JSON_DECODE_ANY, NULL)), 0);
    free(text);
    return EV_OK;
}

/* A worker that has no clang takes the code and the profile that another made: the same to the
 * bit. */
static void what_one_made_others_use(void **state) {
    (void)state;
    json_t *things = json_object();
    const bases_shelf shelf = {.context = things, .want = want, .made = made};
    worker one, other;
    ir_genome *start = ir_genome_new("textbook");
    const ir_base *base = NULL, *same = NULL;
    const double *heat = NULL, *again = NULL;
    wanted = given = 0;
    open_worker_by(&one, "sd_lstm_fp", &shelf);
    OK(bases_get(one.bases, start, &base, &err));
    OK(worker_heat(&one, start, &heat, &err));
    assert_true(wanted == 2 && given == 0 && json_object_size(things) == 2);
    char *path = strdup(getenv("PATH"));
    assert_int_equal(setenv("PATH", "/nowhere", 1), 0);
    open_worker_by(&other, "sd_lstm_fp", &shelf);
    OK(bases_get(other.bases, start, &same, &err));
    OK(worker_heat(&other, start, &again, &err));
    assert_true(wanted == 4 && given == 2 && json_object_size(things) == 2);
    ev_sha256 a = ir_base_sha256(base), b = ir_base_sha256(same);
    assert_true(ev_sha256_equal(&a, &b));
    assert_memory_equal(heat, again, ir_base_insn_count(base) * sizeof *heat);
    bases_use_shelf(other.bases, NULL);
    ir_genome *hand = ir_genome_new("hand");
    assert_int_equal(bases_get(other.bases, hand, &same, &err), EV_BAD); /* there is no clang */
    assert_int_equal(setenv("PATH", path, 1), 0);
    free(path);
    ir_genome_free(hand);
    ir_genome_free(start);
    worker_close_task(&one);
    worker_close_task(&other);
    json_decref(things);
}

static ev_status want_noise(void *context, const char *key, json_t **value, ev_error *e) {
    (void)key;
    (void)e;
    *value = json_incref(context);
    return EV_OK;
}

/* That is the machine's fault, not the kernel's. */
static void what_came_broken_is_no_code(void **state) {
    (void)state;
    json_t *const noise[] = {json_string("!"), json_integer(3), json_null(), json_string("Zm9v")};
    static const ev_status is[] = {EV_INFRA, EV_INFRA, EV_INFRA, EV_BAD};
    for (size_t i = 0; i < sizeof noise / sizeof noise[0]; i++) {
        const bases_shelf shelf = {.context = noise[i], .want = want_noise, .made = made};
        worker w = {0};
        OK(task_open("sd_lstm_fp", &w.t, &err));
        OK(bases_new(w.t, 90, 2, &w.bases, &err));
        bases_use_shelf(w.bases, &shelf);
        ir_genome *start = ir_genome_new("textbook");
        const ir_base *base = NULL;
        assert_int_equal(bases_get(w.bases, start, &base, &err), is[i]);
        assert_non_null(strstr(err.text, "textbook.cu"));
        ir_genome_free(start);
        worker_close_task(&w);
        json_decref(noise[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hot_places_get_more_draws),
        cmocka_unit_test(the_loop_is_what_is_hot),
        cmocka_unit_test(what_one_made_others_use),
        cmocka_unit_test(what_came_broken_is_no_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
