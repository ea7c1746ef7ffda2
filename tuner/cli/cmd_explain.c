/* evoke explain: what a winner does, edit by edit, and how its IR and its PTX differ from its
 * start's.
 */
#include "tuner/cli/cmd.h"

#include "base/diff.h"
#include "base/file.h"
#include "base/json.h"
#include "base/table.h"
#include "bundle/bundle.h"
#include "fitness/gates/floor.h"
#include "ir/ir.h"
#include "tuner/report/ptx_lines.h"
#include "tuner/run/records.h"
#include "tuner/worker/bases.h"
#include "tuner/worker/isolate.h"
#include "tuner/worker/variant.h"

#include <stdlib.h>
#include <string.h>

#define DIFF_SECONDS 120

/* A time of a winner. */
typedef struct timed_case {
    const char *name;
    double ns, floor_ns; /* 0: not known */
} timed_case;

#define TIMED_MOST 32

/* One winner, from records or a bundle; all borrowed. */
typedef struct subject {
    const char *kernel, *task_path, *task_sha256, *gpu, *start, *genome, *ptx, *edits;
    int sm;
    bool promoted;
    const char *disabled; /* why, on the GPU it was tuned for; NULL: it is not */
    const char *gpu_id;   /* of the description that gives the floors; NULL: `timed` has them */
    timed_case timed[TIMED_MOST];
    size_t timed_count;
} subject;

/* ---- times ---- */

/* Sets the floors by the task's work. A GPU without a description has none. */
static ev_status set_floors(const task *t, subject *s, ev_error *err) {
    gpu *g = NULL;
    ev_error none;
    if (s->gpu_id == NULL || gpu_load(s->gpu_id, &g, &none) != EV_OK)
        return EV_OK;
    ev_status status = EV_OK;
    for (size_t i = 0; i < s->timed_count && status == EV_OK; i++) {
        const task_case *at = task_find_case(t, s->timed[i].name);
        case_floor floor = {0};
        if (at != NULL)
            status = floor_at(g, t, at, &floor, err);
        s->timed[i].floor_ns = floor.ns;
    }
    gpu_free(g);
    return status;
}

static void tell_times(const subject *s, ev_str *out) {
    if (s->timed_count > 0)
        ev_str_append(out, "\nIts times at held-out cases, beside the floor by the task's work:\n");
    for (size_t i = 0; i < s->timed_count; i++) {
        const timed_case *t = &s->timed[i];
        char ns[24], floor[24], share[24];
        table_time(t->ns, ns);
        table_time(t->floor_ns, floor);
        table_share(t->floor_ns / t->ns, share);
        if (t->floor_ns > 0)
            ev_str_printf(out, "  %s: %s, the floor is %s, %s of it\n", t->name, ns, floor, share);
        else
            ev_str_printf(out, "  %s: %s, no floor is known\n", t->name, ns);
    }
}

static json_t *times_json(const subject *s) {
    json_t *list = json_array();
    for (size_t i = 0; i < s->timed_count; i++) {
        const timed_case *t = &s->timed[i];
        json_t *one = json_pack("{s:s, s:f}", "case", t->name, "ns", t->ns);
        if (t->floor_ns > 0) {
            (void)json_object_set_new(one, "floor_ns", json_real(t->floor_ns));
            (void)json_object_set_new(one, "floor_share", json_real(t->floor_ns / t->ns));
        }
        (void)json_array_append_new(list, one);
    }
    return list;
}

static void add_time(subject *s, const char *name, double ns, double floor_ns) {
    if (ns > 0 && s->timed_count < TIMED_MOST)
        s->timed[s->timed_count++] = (timed_case){name, ns, floor_ns};
}

/* ---- IR ---- */

typedef struct diff_request {
    const task *t;
    const ir_genome *genome;
    int sm;
} diff_request;

/* In the child. */
static ev_status diff_ir_work(void *context, ev_str *out, ev_error *err) {
    const diff_request *request = context;
    bases *all = NULL;
    const ir_base *base = NULL;
    EV_TRY(bases_new(request->t, request->sm, 1, &all, err));
    ev_status status = bases_get(all, request->genome, &base, err);
    if (status == EV_OK)
        status = ir_diff(base, request->genome, out, err);
    bases_free(all);
    return status;
}

/* ---- PTX ---- */

static ev_status diff_ptx(const task *t, const subject *s, ev_str *out, ev_error *err) {
    const task_start *start = task_find_start(t, s->start);
    if (start == NULL)
        return ev_fail(err, EV_BAD, "the task %s has no start '%s' any more", t->name, s->start);
    ev_str before = EV_STR_EMPTY;
    ev_status status = variant_build_start(t, start, s->sm, &before, err);
    if (status == EV_OK)
        status =
            ev_diff(s->start, ev_str_text(&before), "variant", s->ptx, &ptx_lines_rules, out, err);
    ev_str_free(&before);
    return status;
}

/* ---- one winner ---- */

static void tell_edits(const subject *s, ev_str *out) {
    const char *line = s->edits;
    if (*line == '\0')
        ev_str_append(out, "  none: it is the start, unmodified\n");
    for (int number = 1; *line != '\0'; number++) {
        size_t length = strcspn(line, "\n");
        ev_str_printf(out, "  %2d. %.*s\n", number, (int)length, line);
        line += length + (line[length] == '\n');
    }
}

static json_t *lines_json(const char *text) {
    json_t *list = json_array();
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        (void)json_array_append_new(list, json_stringn(text, length));
        text += length + (text[length] == '\n');
    }
    return list;
}

static ev_status list_loaded(const subject *s, const char *ir, const char *ptx, json_t *list,
                             ev_error *err) {
    ev_json *genome = NULL;
    EV_TRY(ev_json_parse(s->genome, "a winner's genome", &genome, err));
    (void)json_array_append_new(list, json_pack("{s:s,s:s,s:i,s:s,s:b,s:s*,s:O,s:o,s:o,s:s,s:s}",
                                                "kernel", s->kernel, "gpu", s->gpu, "sm", s->sm,
                                                "start", s->start, "promoted", s->promoted,
                                                "disabled", s->disabled, "genome", genome->root,
                                                "edits", lines_json(s->edits), "times",
                                                times_json(s), "ir_diff", ir, "ptx_diff", ptx));
    ev_json_free(genome);
    return EV_OK;
}

static ev_status explain_loaded(cmd_context *c, const task *t, const subject *s, json_t *list,
                                ev_error *err) {
    ir_genome *genome = NULL;
    ev_str ir = EV_STR_EMPTY, ptx = EV_STR_EMPTY;
    EV_TRY(variant_genome(s->genome, s->kernel, &genome, err));
    diff_request request = {t, genome, s->sm};
    ev_status status = isolate_run(diff_ir_work, &request, DIFF_SECONDS, &ir, err);
    ir_genome_free(genome);
    if (status == EV_OK)
        status = diff_ptx(t, s, &ptx, err);
    if (status == EV_OK && list != NULL)
        status = list_loaded(s, ev_str_text(&ir), ev_str_text(&ptx), list, err);
    if (status == EV_OK && list == NULL) {
        ev_str_printf(c->out, "%s for %s (sm_%d), grown from the start '%s'%s\n", s->kernel, s->gpu,
                      s->sm, s->start, s->promoted ? "" : ", not promoted");
        if (s->disabled != NULL)
            ev_str_printf(c->out, "Disabled: %s\n", s->disabled);
        ev_str_append(c->out, "\nWhat it does:\n");
        tell_edits(s, c->out);
        tell_times(s, c->out);
        ev_str_printf(c->out, "\nIR, after the edits and before the passes:\n%s\nPTX:\n%s",
                      ev_str_text(&ir), ev_str_text(&ptx));
    }
    ev_str_free(&ir);
    ev_str_free(&ptx);
    return status;
}

static bool is_wanted(const cmd_context *c, const char *kernel) {
    return c->args->operand_count < 2 || strcmp(c->args->operands[1], kernel) == 0;
}

/* Opens the task of the run, or what stands at its path now. */
static ev_status open_task(const subject *s, task **out, ev_error *err) {
    ev_error why = {.status = EV_BAD};
    if (s->task_sha256 != NULL &&
        task_reopen(s->task_path, s->kernel, s->task_sha256, out, &why) == EV_OK)
        return EV_OK;
    if (why.status == EV_INFRA)
        return ev_fail(err, EV_INFRA, "%s", why.text);
    return task_load(s->task_path, out, err);
}

static ev_status explain_one(cmd_context *c, subject *s, json_t *list, size_t *told,
                             ev_error *err) {
    if (!is_wanted(c, s->kernel))
        return EV_OK;
    if (list == NULL && *told > 0)
        ev_str_char(c->out, '\n');
    task *t = NULL;
    EV_TRY(open_task(s, &t, err));
    ev_status status = set_floors(t, s, err);
    if (status == EV_OK)
        status = explain_loaded(c, t, s, list, err);
    task_free(t);
    *told += 1;
    return status;
}

/* ---- records and bundles ---- */

static ev_status explain_winner(cmd_context *c, const records_winner *w, json_t *list, size_t *told,
                                ev_error *err) {
    subject s = {.kernel = w->kernel,
                 .task_path = w->task_path,
                 .task_sha256 = w->task_sha256,
                 .gpu = w->gpu_name,
                 .start = w->start,
                 .genome = w->genome,
                 .ptx = w->ptx,
                 .edits = w->edits,
                 .sm = w->sm,
                 .promoted = w->promoted};
    ev_json *rows = NULL;
    EV_TRY(ev_json_parse(w->rows, "rows of a winner", &rows, err));
    for (size_t i = 0; i < json_array_size(rows->root); i++) {
        const json_t *row = json_array_get(rows->root, i);
        add_time(&s, ev_json_text(row, "case", ""), ev_json_number(row, "best_ns", 0),
                 ev_json_number(row, "floor_ns", 0));
    }
    ev_status status = explain_one(c, &s, list, told, err);
    ev_json_free(rows);
    return status;
}

static ev_status explain_records(cmd_context *c, const char *path, json_t *list, size_t *told,
                                 ev_error *err) {
    records *r = NULL;
    records_winner *winners = NULL;
    size_t count = 0;
    EV_TRY(records_open_read(path, &r, err));
    ev_status status = records_winners(r, &winners, &count, err);
    for (size_t i = 0; i < count && status == EV_OK; i++)
        status = explain_winner(c, &winners[i], list, told, err);
    records_winners_free(winners, count);
    records_close(r);
    return status;
}

static ev_status explain_variant(cmd_context *c, const bundle *b, const bundle_kernel *k,
                                 const bundle_variant *v, json_t *list, size_t *told,
                                 ev_error *err) {
    ev_str edits = EV_STR_EMPTY, path = EV_STR_EMPTY;
    const char *folder = NULL;
    EV_TRY(bundle_folder(b, &folder, err));
    for (size_t i = 0; i < v->edit_count; i++)
        ev_str_printf(&edits, "%s\n", v->edits[i]);
    ev_str_printf(&path, "%s/%s", folder, k->task);
    subject s = {.kernel = k->name,
                 .task_path = ev_str_text(&path),
                 .gpu = v->gpu_name,
                 .start = v->start,
                 .genome = v->genome,
                 .ptx = v->ptx,
                 .edits = ev_str_text(&edits),
                 .sm = v->sm,
                 .promoted = true,
                 .disabled = bundle_disabled(v, v->gpu_id),
                 .gpu_id = v->gpu_id};
    for (size_t i = 0; i < v->case_count; i++)
        add_time(&s, v->cases[i].name, v->cases[i].ns, 0);
    ev_status status = explain_one(c, &s, list, told, err);
    ev_str_free(&edits);
    ev_str_free(&path);
    return status;
}

static ev_status explain_bundle(cmd_context *c, const char *path, json_t *list, size_t *told,
                                ev_error *err) {
    bundle *b = NULL;
    EV_TRY(bundle_open(path, &b, err));
    ev_status status = EV_OK;
    for (size_t i = 0; i < bundle_kernel_count(b); i++) {
        const bundle_kernel *k = bundle_kernel_at(b, i);
        for (size_t v = 0; v < k->variant_count && status == EV_OK; v++)
            status = explain_variant(c, b, k, &k->variants[v], list, told, err);
    }
    bundle_close(b);
    return status;
}

ev_status cmd_explain(cmd_context *c, ev_error *err) {
    const char *path = c->args->operands[0];
    json_t *list = cli_flag(c->args, CLI_OPT_JSON) ? json_array() : NULL;
    size_t told = 0;
    ev_status status = ev_path_is_dir(path) || bundle_is_tar_name(path)
                           ? explain_bundle(c, path, list, &told, err)
                           : explain_records(c, path, list, &told, err);
    if (status == EV_OK && told == 0)
        status = c->args->operand_count > 1
                     ? ev_fail(err, EV_BAD, "%s has no tuned variant of '%s'", path,
                               c->args->operands[1])
                     : ev_fail(err, EV_BAD, "%s has no tuned variant yet", path);
    if (status == EV_OK && list != NULL)
        return cmd_print_json(c, json_pack("{s:o}", "variants", list), err);
    json_decref(list);
    return status;
}
