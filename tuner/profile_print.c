/* Prints a profile: time and its bound, occupancy, terms, stalls, counters, hottest lines. */
#include "tuner/profile.h"

#include "tuner/launch.h"
#include "tuner/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- hottest lines ---- */

typedef struct hot_line {
    uint32_t line;
    double stall;
    uint64_t executions; /* of warps */
} hot_line;

/* Most stalled first; among equals most executed, then by line. */
static int compare_lines(const void *a, const void *b) {
    const hot_line *x = a, *y = b;
    if (x->stall != y->stall)
        return x->stall > y->stall ? -1 : 1;
    if (x->executions != y->executions)
        return x->executions > y->executions ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

/* One a PTX line that was executed, hottest first; *out is malloc'ed. */
static ev_status hot_lines(const profile *p, hot_line **out, size_t *count, ev_error *err) {
    size_t insns = vm_module_insn_count(p->module);
    hot_line *lines = calloc(insns + 1, sizeof *lines);
    if (lines == NULL)
        return ev_fail_memory(err, insns * sizeof *lines);
    *count = 0;
    for (size_t pc = 0; pc < insns; pc++) {
        vm_insn_info info;
        if (p->executions[pc] == 0)
            continue;
        vm_module_info(p->module, (uint32_t)pc, &info);
        bool same = *count > 0 && lines[*count - 1].line == info.line;
        hot_line *at = &lines[same ? *count - 1 : (*count)++];
        at->line = info.line;
        at->stall += p->stalls[pc];
        at->executions += p->executions[pc];
    }
    qsort(lines, *count, sizeof *lines, compare_lines);
    *out = lines;
    return EV_OK;
}

/* The line without the blanks around it; malloc'ed. */
static char *line_text(const vm_module *module, uint32_t line) {
    ev_str text = EV_STR_EMPTY;
    size_t bytes = 0;
    const char *at = vm_module_line(module, line, &bytes);
    while (bytes > 0 && (*at == ' ' || *at == '\t')) {
        at++;
        bytes--;
    }
    for (size_t i = 0; i < bytes; i++)
        ev_str_char(&text, at[i] == '\t' ? ' ' : at[i]);
    ev_str_append(&text, "");
    return ev_str_take(&text);
}

/* ---- JSON ---- */

static json_t *triple(const uint32_t at[3]) {
    return json_pack("[I, I, I]", (json_int_t)at[0], (json_int_t)at[1], (json_int_t)at[2]);
}

static json_t *occupancy_json(const model_occupancy *o) {
    return json_pack("{s:I, s:I, s:I, s:I, s:s}", "registers", (json_int_t)o->registers,
                     "shared_bytes", (json_int_t)o->shared_bytes, "blocks_per_sm",
                     (json_int_t)o->blocks_per_sm, "warps_per_sm", (json_int_t)o->warps_per_sm,
                     "limiter", model_limiter_name(o->limiter));
}

static json_t *by_term(const double values[MODEL_TERM_COUNT]) {
    json_t *object = json_object();
    for (size_t i = 0; i < MODEL_TERM_COUNT; i++)
        (void)json_object_set_new(object, model_term_name((model_term)i), json_real(values[i]));
    return object;
}

static ev_status lines_json(const profile *p, size_t most, json_t *array, ev_error *err) {
    hot_line *lines = NULL;
    size_t count = 0;
    EV_TRY(hot_lines(p, &lines, &count, err));
    for (size_t i = 0; i < count && i < most; i++) {
        char *text = line_text(p->module, lines[i].line);
        (void)json_array_append_new(
            array, json_pack("{s:I, s:f, s:I, s:s}", "line", (json_int_t)lines[i].line,
                             "stall_share", lines[i].stall, "executions",
                             (json_int_t)lines[i].executions, "text", text != NULL ? text : ""));
        free(text);
    }
    free(lines);
    return EV_OK;
}

static ev_status print_json(cmd_context *c, const profile *p, ev_error *err) {
    const model_time *m = &p->timing->model;
    json_t *lines = json_array();
    ev_status status = lines_json(p, cli_count(c->args, CLI_OPT_LINES, 0), lines, err);
    if (status != EV_OK) {
        json_decref(lines);
        return status;
    }
    json_t *launch = json_pack("{s:o, s:o, s:I}", "grid", triple(p->grid), "block",
                               triple(p->block), "shared", (json_int_t)p->dynamic_shared);
    json_t *all = json_pack(
        "{s:s, s:s, s:s, s:s, s:f, s:f, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I}", "status",
        "ok", "kernel", p->kernel, "device", p->device->id, "time_kind",
        p->device->modelled ? "modelled" : "measured", "ns", p->timing->ns, "floor_ns", m->floor_ns,
        "bound_by", model_term_name(m->bound_by), "launch", launch, "occupancy",
        occupancy_json(&m->occupancy), "term_ns", by_term(m->term_ns), "stall_share",
        by_term(m->stall_share), "counters", counters_to_json(&p->outcome->counters), "lines",
        lines, "blocks", (json_int_t)m->blocks, "sampled_blocks", (json_int_t)m->sampled_blocks);
    if (p->at != NULL)
        (void)json_object_set_new(all, "case", json_string(p->at));
    return cmd_print_json(c, all, err);
}

/* ---- text ---- */

static void print_head(const profile *p, ev_str *out) {
    char ns[24], floor[24];
    const model_time *m = &p->timing->model;
    table_time(p->timing->ns, ns);
    table_time(m->floor_ns, floor);
    ev_str_printf(out, "%s%s%s on %s (%s)\n", p->kernel, p->at != NULL ? ", case " : "",
                  p->at != NULL ? p->at : "", p->device->id, p->device->name);
    ev_str_printf(out, "launch     grid %u,%u,%u  block %u,%u,%u  dynamic shared %u B\n",
                  p->grid[0], p->grid[1], p->grid[2], p->block[0], p->block[1], p->block[2],
                  p->dynamic_shared);
    ev_str_printf(out, "time       %s %s, bound by %s; speed-of-light floor %s\n", ns,
                  p->device->modelled ? "modelled" : "measured", model_term_name(m->bound_by),
                  floor);
    ev_str_printf(
        out, "occupancy  %u warps an SM in %u blocks, limited by %s; %u registers, %u B shared\n",
        m->occupancy.warps_per_sm, m->occupancy.blocks_per_sm,
        model_limiter_name(m->occupancy.limiter), m->occupancy.registers,
        m->occupancy.shared_bytes);
    ev_str_printf(out, "sample     %" PRIu64 " of %" PRIu64 " blocks were executed\n\n",
                  m->sampled_blocks, m->blocks);
}

static ev_status print_terms(const model_time *m, ev_str *out, ev_error *err) {
    static const char *const columns[] = {"term", ">time alone", ">share of stalls", NULL};
    table *rows = table_new(columns);
    if (rows == NULL)
        return ev_fail_memory(err, 1);
    for (size_t i = 0; i < MODEL_TERM_COUNT; i++) {
        char ns[24];
        table_time(m->term_ns[i], ns);
        table_cell(rows, "%s", model_term_name((model_term)i));
        table_cell(rows, "%s", ns);
        table_cell(rows, "%.1f %%", m->stall_share[i] * 100);
    }
    ev_status status = table_print(rows, out, err);
    table_free(rows);
    ev_str_char(out, '\n');
    return status;
}

static ev_status print_lines(const profile *p, size_t most, ev_str *out, ev_error *err) {
    static const char *const columns[] = {">line", ">stalls", ">warps", "PTX", NULL};
    hot_line *lines = NULL;
    size_t count = 0;
    EV_TRY(hot_lines(p, &lines, &count, err));
    table *rows = table_new(columns);
    for (size_t i = 0; rows != NULL && i < count && i < most; i++) {
        char *text = line_text(p->module, lines[i].line);
        table_cell(rows, "%u", lines[i].line);
        table_cell(rows, "%.1f %%", lines[i].stall * 100);
        table_cell(rows, "%" PRIu64, lines[i].executions);
        table_cell(rows, "%.90s", text != NULL ? text : "");
        free(text);
    }
    free(lines);
    if (rows == NULL)
        return ev_fail_memory(err, 1);
    ev_str_char(out, '\n');
    ev_status status = table_print(rows, out, err);
    table_free(rows);
    return status;
}

static ev_status print_trap(cmd_context *c, const profile *p, ev_error *err) {
    ev_str text = EV_STR_EMPTY;
    trap_print(&p->outcome->fault, p->path, p->module, &text);
    (void)fprintf(stderr, "evoke: %s", ev_str_text(&text));
    ev_str_free(&text);
    c->exit_code = 1;
    if (!cli_flag(c->args, CLI_OPT_JSON))
        return EV_OK;
    return cmd_print_json(
        c, json_pack("{s:s, s:o}", "status", "trap", "trap", trap_to_json(&p->outcome->fault)),
        err);
}

ev_status profile_print(cmd_context *c, const profile *p, ev_error *err) {
    if (!p->outcome->ok)
        return print_trap(c, p, err);
    if (cli_flag(c->args, CLI_OPT_JSON))
        return print_json(c, p, err);
    print_head(p, c->out);
    EV_TRY(print_terms(&p->timing->model, c->out, err));
    EV_TRY(counters_print(&p->outcome->counters, c->out, err));
    return print_lines(p, cli_count(c->args, CLI_OPT_LINES, 0), c->out, err);
}
