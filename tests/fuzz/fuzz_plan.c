/* libFuzzer target: any text either is a launch plan or is refused with a message. The JSON of a
 * plan that was read gives the same plan and hash again, and it evaluates or says why not. */
#include "base/launch_plan.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const NAME_TEXTS[] = {"M", "N", "TILE", "p"};
static const expr_names NAMES = {NAME_TEXTS, 4};

static void evaluate(const launch_plan *plan, int64_t whole, double real) {
    const expr_name rows[] = {{"M", expr_of_whole(whole)},
                              {"N", expr_of_whole(whole / 3)},
                              {"TILE", expr_of_whole(32)},
                              {"p", expr_of_real(real)}};
    const expr_scope values = {rows, 4};
    launch_geometry g;
    ev_error err = {.status = EV_OK};
    expr_value value;
    uint64_t bytes;
    for (size_t i = 0; i < plan->launch_count; i++) {
        if (launch_plan_geometry(plan, i, &values, &LAUNCH_LIMITS_CUDA, &g, &err) == EV_OK &&
            (uint64_t)g.block[0] * g.block[1] * g.block[2] - 1 >= LAUNCH_LIMITS_CUDA.threads)
            abort();
    }
    for (size_t i = 0; i < plan->scratch_count; i++)
        (void)!launch_plan_scratch(plan, i, &values, &bytes, &err);
    for (size_t i = 0; i < plan->hidden_count; i++)
        (void)!launch_plan_hidden(plan, i, &values, &value, &err);
    for (size_t i = 0; i < plan->range_count; i++)
        (void)launch_range_holds(&plan->ranges[i], real);
}

/* The printed plan, read again, has the same hash. */
static void read_again(const launch_plan *plan, ev_arena *arena) {
    json_t *object = NULL;
    const launch_plan *again = NULL;
    ev_sha256 one, two;
    if (launch_plan_encode(plan, &object, NULL) != EV_OK)
        abort();
    char *text = ev_json_print(object, false);
    ev_json *doc = NULL;
    if (text == NULL || ev_json_parse(text, "again.json", &doc, NULL) != EV_OK ||
        launch_plan_decode(doc, doc->root, "", &NAMES, arena, &again, NULL) != EV_OK ||
        launch_plan_sha256(plan, &one, NULL) != EV_OK ||
        launch_plan_sha256(again, &two, NULL) != EV_OK || !ev_sha256_equal(&one, &two))
        abort();
    ev_json_free(doc);
    free(text);
    json_decref(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ev_json *doc = NULL;
    ev_error err = {.status = EV_OK};
    const launch_plan *plan = NULL;
    ev_arena *arena = ev_arena_new();
    char *text = calloc(size + 1, 1);
    if (arena == NULL || text == NULL)
        abort();
    memcpy(text, data, size);
    if (ev_json_parse(text, "plan.json", &doc, &err) == EV_OK &&
        launch_plan_decode(doc, doc->root, "", &NAMES, arena, &plan, &err) == EV_OK) {
        read_again(plan, arena);
        evaluate(plan, 100, 0.5);
        evaluate(plan, INT64_MAX, 1e300);
        evaluate(plan, INT64_MIN, -0.0);
    } else if (err.text[0] == '\0' || memchr(err.text, '\0', sizeof err.text) == NULL) {
        abort();
    }
    ev_json_free(doc);
    ev_arena_free(arena);
    free(text);
    return 0;
}
