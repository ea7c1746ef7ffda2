/* evoke list: the tasks that ship, or those that are named. */
#include "tuner/cli/cmd.h"

#include "base/table.h"
#include "kernels/task.h"

static json_t *value_json(const expr_value *value) {
    return value->is_real ? json_real(value->real) : json_integer(value->whole);
}

static json_t *case_json(const task_case *c) {
    json_t *shape = json_object();
    for (size_t i = 0; i < c->shape_count; i++)
        (void)json_object_set_new(shape, c->shape[i].name, value_json(&c->shape[i].value));
    return json_pack("{s:s, s:s, s:s, s:o}", "case", c->name, "split", corpus_split_name(c->split),
                     "use", task_case_use_name(c->use), "shape", shape);
}

static json_t *task_json(const task *t) {
    json_t *cases = json_array(), *starts = json_array();
    for (size_t i = 0; i < t->case_count; i++)
        (void)json_array_append_new(cases, case_json(&t->cases[i]));
    for (size_t i = 0; i < t->start_count; i++)
        (void)json_array_append_new(starts, json_string(t->starts[i].name));
    const char *paper = task_family_paper(t->family);
    json_t *json =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "kernel", t->name, "family",
                  t->family, "paper", paper != NULL ? paper : "", "doc", t->doc, "path", t->path,
                  "task_sha256", t->sha256.hex, "starts", starts, "cases", cases);
    if (t->ranks != NULL)
        (void)json_object_set_new(json, "ranks", json_integer(task_ranks_most(t)));
    return json;
}

/* "k=4 n=8" */
static void print_shape(const task_case *c, ev_str *out) {
    for (size_t i = 0; i < c->shape_count; i++) {
        const expr_value *v = &c->shape[i].value;
        ev_str_printf(out, "%s%s=", i > 0 ? " " : "", c->shape[i].name);
        if (v->is_real)
            ev_str_printf(out, "%g", v->real);
        else
            ev_str_printf(out, "%lld", (long long)v->whole);
    }
}

static ev_status print_task(const task *t, ev_str *out, ev_error *err) {
    static const char *const columns[] = {"  case", "split", "use", "shape", NULL};
    ev_str_printf(out, "%s (%s): %s\n  starts:", t->name, t->family, t->doc);
    for (size_t i = 0; i < t->start_count; i++)
        ev_str_printf(out, "%s %s%s", i > 0 ? "," : "", t->starts[i].name,
                      t->starts[i].is_reference ? " (reference)" : "");
    ev_str_append(out, "\n");
    if (t->ranks != NULL)
        ev_str_printf(out, "  ranks: up to %u in one launch\n", task_ranks_most(t));
    table *rows = table_new(columns);
    if (rows == NULL)
        return ev_fail_memory(err, 1);
    for (size_t i = 0; i < t->case_count; i++) {
        const task_case *c = &t->cases[i];
        ev_str shape = EV_STR_EMPTY;
        print_shape(c, &shape);
        table_cell(rows, "  %s", c->name);
        table_cell(rows, "%s", corpus_split_name(c->split));
        table_cell(rows, "%s", task_case_use_name(c->use));
        table_cell(rows, "%s", ev_str_text(&shape));
        ev_str_free(&shape);
    }
    ev_status status = table_print(rows, out, err);
    table_free(rows);
    return status;
}

static ev_status add_task(const char *name, json_t *list, bool first, ev_str *out, ev_error *err) {
    task *t = NULL;
    EV_TRY(task_open(name, &t, err));
    ev_status status = EV_OK;
    if (list != NULL) {
        (void)json_array_append_new(list, task_json(t));
    } else {
        ev_str_append(out, first ? "" : "\n");
        status = print_task(t, out, err);
    }
    task_free(t);
    return status;
}

ev_status cmd_list(cmd_context *c, ev_error *err) {
    char **paths = NULL;
    const char *const *names = c->args->operands;
    size_t count = c->args->operand_count;
    if (count == 0) {
        EV_TRY(task_list_shipped(&paths, &count, err));
        names = (const char *const *)paths;
    }
    json_t *list = cli_flag(c->args, CLI_OPT_JSON) ? json_array() : NULL;
    ev_status status = EV_OK;
    for (size_t i = 0; i < count && status == EV_OK; i++)
        status = add_task(names[i], list, i == 0, c->out, err);
    if (paths != NULL)
        task_list_free(paths, count);
    if (status == EV_OK && list != NULL)
        return cmd_print_json(c, json_pack("{s:o}", "tasks", list), err);
    json_decref(list);
    return status;
}
