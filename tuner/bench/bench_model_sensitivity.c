/* How much the model's agreement with real GPUs hangs on the constants that no GPU's description
 * gives: each a fifth less and a fifth more. */
#include "tuner/bench/bench_model.h"

#include "base/file.h"
#include "base/table.h"
#include "tuner/bench/bench.h"

#include <stdlib.h>

static const gpu_key varied[] = {GPU_START_CLK,   GPU_DRAM_QUEUE,  GPU_DRAM_TURN,    GPU_JOIN_POWER,
                                 GPU_PIPES_POWER, GPU_L1_TAGS_CLK, GPU_L1_TAGS_START};
static const double factors[] = {0.8, 1.2};

typedef struct report {
    json_t *list;
    table *rows;
} report;

static void report_add(const report *r, const char *constant, double factor,
                       const silicon_point *points, size_t count, silicon_set set) {
    double mape = silicon_mape(points, count), spearman = silicon_spearman(points, count);
    table_cell(r->rows, "%s", constant);
    table_cell(r->rows, "x %.1f", factor);
    table_cell(r->rows, "%s", points[0].gpu);
    table_cell(r->rows, "%s", silicon_set_name(set));
    table_cell(r->rows, "%.1f %%", mape);
    table_cell(r->rows, "%.3f", spearman);
    (void)json_array_append_new(r->list, json_pack("{s:s, s:f, s:s, s:s, s:f, s:f}", "constant",
                                                   constant, "factor", factor, "gpu", points[0].gpu,
                                                   "set", silicon_set_name(set), "mape", mape,
                                                   "spearman", spearman));
}

static ev_status run_all(model_rig *rig, const gpu *g, silicon_point *points, size_t count,
                         ev_error *err) {
    for (size_t i = 0; i < count; i++)
        EV_TRY(model_rig_run(rig, g, &points[i], err));
    return EV_OK;
}

static ev_status vary(const report *r, model_rig *rig, gpu *g, silicon_set set,
                      silicon_point *points, size_t count, ev_error *err) {
    EV_TRY(run_all(rig, g, points, count, err));
    report_add(r, "none", 1, points, count, set);
    for (size_t i = 0; i < sizeof varied / sizeof varied[0]; i++) {
        double was = g->numbers[varied[i]].value;
        for (size_t f = 0; f < sizeof factors / sizeof factors[0]; f++) {
            g->numbers[varied[i]].value = was * factors[f];
            EV_TRY(run_all(rig, g, points, count, err));
            report_add(r, gpu_key_name(varied[i]), factors[f], points, count, set);
        }
        g->numbers[varied[i]].value = was;
    }
    return EV_OK;
}

static ev_status each_gpu(void *context, gpu *g, silicon_set set, silicon_point *points,
                          size_t count, ev_error *err) {
    model_rig *rig = NULL;
    EV_TRY(model_rig_new(g, set, &rig, err));
    ev_status status = vary(context, rig, g, set, points, count, err);
    model_rig_free(rig);
    return status;
}

ev_status bench_model_sensitivity(cmd_context *c, ev_error *err) {
    static const char *const columns[] = {"constant", ">factor", "gpu", "set",
                                          ">error",   ">rank",   NULL};
    report r = {json_array(), table_new(columns)};
    ev_status status = r.list == NULL || r.rows == NULL ? ev_fail_memory(err, 1) : EV_OK;
    if (status == EV_OK)
        status = bench_model_each(c->args, each_gpu, &r, err);
    if (status == EV_OK && cli_flag(c->args, CLI_OPT_JSON))
        status = cmd_print_json(
            c,
            json_pack("{s:s, s:s, s:O}", "bench", "model", "part", "sensitivity", "rows", r.list),
            err);
    else if (status == EV_OK)
        status = table_print(r.rows, c->out, err);
    json_decref(r.list);
    table_free(r.rows);
    return status;
}
