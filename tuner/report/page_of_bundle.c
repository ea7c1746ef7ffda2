/* Report, page of a bundle: results of the tuned variants, their edits, where their time goes, and
 * what evoke qualify found on each GPU. A bundle has nothing of the search. */
#include "tuner/report/report.h"

#include "base/json.h"
#include "base/table.h"
#include "bundle/reader.h"
#include "tuner/report/inside.h"
#include "tuner/run/shipped.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHORT_SHA 12 /* digits that name a variant */

/* ---- times of a variant ---- */

static const char *kind_of(bool modelled) {
    return modelled ? "modelled" : "measured";
}

/* Time of the fastest unmodified start at a case, on the variant's GPU and of its kind of times,
 * but for the baseline's start; 0: none. */
static double start_ns(const bundle_kernel *k, const bundle_variant *v, const char *at) {
    const bundle_variant *baseline = bundle_baseline_of(k, v);
    double best = 0;
    for (size_t i = 0; i < k->start_count; i++) {
        const bundle_variant *start = &k->starts[i];
        bool is_other = baseline == NULL || strcmp(start->start, baseline->start) != 0;
        if (!is_other || strcmp(start->gpu_id, v->gpu_id) != 0 || start->modelled != v->modelled)
            continue;
        for (size_t c = 0; c < start->case_count; c++) {
            double ns = start->cases[c].ns;
            if (ns > 0 && strcmp(start->cases[c].name, at) == 0 && (best == 0 || ns < best))
                best = ns;
        }
    }
    return best;
}

/* A row as the records of a run keep it. */
static json_t *row_of(const bundle_kernel *k, const bundle_variant *v, const bundle_case *c) {
    json_t *row = json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:s}", "kernel", k->name, "case",
                            c->name, "split", c->split, "baseline_ns", c->baseline_ns, "hand_ns",
                            start_ns(k, v, c->name), "best_ns", c->ns, "tolerance", v->tolerance,
                            "time_kind", kind_of(v->modelled));
    if (c->error >= 0)
        (void)json_object_set_new(row, "error", json_real(c->error));
    return row;
}

static ev_status make_rows(const bundle_kernel *k, const bundle_variant *v, ev_json **out,
                           ev_error *err) {
    json_t *list = json_array();
    for (size_t i = 0; i < v->case_count; i++) {
        if (v->cases[i].ns > 0)
            (void)json_array_append_new(list, row_of(k, v, &v->cases[i]));
    }
    char *text = json_dumps(list, JSON_COMPACT);
    json_decref(list);
    ev_status status = text != NULL ? ev_json_parse(text, "rows of a bundle", out, err)
                                    : ev_fail_memory(err, v->case_count);
    free(text);
    return status;
}

/* ---- results ---- */

/* Columns that not every bundle needs. */
typedef struct result_columns {
    bool starts; /* some start was timed */
    bool gpus;   /* the variants are for several GPUs */
} result_columns;

static void note_variant(const bundle_kernel *k, const bundle_variant *v, const char **gpu,
                         result_columns *out) {
    out->gpus = out->gpus || (*gpu != NULL && strcmp(*gpu, v->gpu_name) != 0);
    *gpu = v->gpu_name;
    for (size_t c = 0; c < v->case_count; c++)
        out->starts = out->starts || (v->cases[c].ns > 0 && start_ns(k, v, v->cases[c].name) > 0);
}

/* *gpu: the name of the GPU that the last variant was tuned for. */
static result_columns columns_of(const bundle *b, const char **gpu) {
    result_columns columns = {false, false};
    *gpu = NULL;
    for (size_t i = 0; i < bundle_kernel_count(b); i++) {
        const bundle_kernel *k = bundle_kernel_at(b, i);
        for (size_t n = 0; n < k->variant_count; n++)
            note_variant(k, &k->variants[n], gpu, &columns);
    }
    return columns;
}

static void ratio_cell(double before, double after, ev_str *out) {
    if (before > 0 && after > 0)
        report_real_cell(out, before / after, "%.2fx");
    else
        report_number_cell(out, 0, "-");
}

/* `error` negative: not known. */
static void error_cell(double error, ev_str *out) {
    if (error >= 0)
        report_real_cell(out, error, "%.2g");
    else
        report_number_cell(out, 0, "-");
}

static void result_row(const bundle_kernel *k, const bundle_variant *v, const bundle_case *c,
                       const result_columns *columns, ev_str *out) {
    ev_str_append(out, "<tr><td class=\"t\"><a href=\"#");
    report_escape(out, k->name);
    ev_str_append(out, "\">");
    report_escape(out, k->name);
    ev_str_append(out, "</a></td>");
    report_text_cell(out, c->name);
    report_time_cell(out, c->baseline_ns);
    if (columns->starts)
        report_time_cell(out, start_ns(k, v, c->name));
    report_time_cell(out, c->ns);
    ratio_cell(c->baseline_ns, c->ns, out);
    error_cell(c->error, out);
    report_real_cell(out, v->tolerance, "%.2g");
    report_text_cell(out, kind_of(v->modelled));
    report_text_cell(out, c->split);
    report_text_cell(out, bundle_disabled(v, v->gpu_id) != NULL ? "yes" : "no");
    if (columns->gpus)
        report_text_cell(out, v->gpu_name);
    ev_str_append(out, "</tr>\n");
}

static void begin_results(const result_columns *columns, ev_str *out) {
    const char *titles[13] = {"kernel", "case", ">baseline"};
    static const char *const others[] = {">tuned",    ">speed-up", ">error",  ">tolerance",
                                         "times are", "split",     "disabled"};
    size_t count = 3;
    if (columns->starts)
        titles[count++] = ">hand-tuned";
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        titles[count++] = others[i];
    if (columns->gpus)
        titles[count++] = "GPU";
    report_begin_table(out, "Results", titles);
}

static void results(const bundle *b, ev_str *out) {
    const char *gpu = NULL;
    const result_columns columns = columns_of(b, &gpu);
    begin_results(&columns, out);
    for (size_t i = 0; i < bundle_kernel_count(b); i++) {
        const bundle_kernel *k = bundle_kernel_at(b, i);
        for (size_t n = 0; n < k->variant_count; n++) {
            const bundle_variant *v = &k->variants[n];
            for (size_t c = 0; c < v->case_count; c++) {
                if (v->cases[c].ns > 0)
                    result_row(k, v, &v->cases[c], &columns, out);
            }
        }
    }
    report_end_table(out);
    ev_str_append(out,
                  "<p class=\"soft\">The search did not see the held-out cases. Speed-up: the "
                  "baseline, the task's first start unchanged, over the tuned variant. Error: "
                  "relative L2 against the oracle. Disabled: evoke qualify found a reason not to "
                  "hand the variant out on that GPU; the kernel's section has it. Modelled times "
                  "come from the timing model, not from a GPU.</p>\n");
}

/* ---- what evoke qualify found ---- */

/* A time with its interval, where it has one. */
static void interval_cell(const bundle_time *t, ev_str *out) {
    char ns[24], low[24], high[24], text[80];
    table_time(t->ns, ns);
    table_time(t->low_ns, low);
    table_time(t->high_ns, high);
    if (t->low_ns < t->high_ns)
        (void)snprintf(text, sizeof text, "%s [%s, %s]", ns, low, high);
    else
        (void)snprintf(text, sizeof text, "%s", ns);
    report_number_cell(out, t->ns, text);
}

static void trial_row(const bundle_trial *t, bool shows_starts, ev_str *out) {
    ev_str_append(out, "<tr>");
    report_text_cell(out, t->name);
    report_text_cell(out, bundle_verdict_name(t->verdict));
    interval_cell(&t->baseline, out);
    interval_cell(&t->variant, out);
    ratio_cell(t->baseline.ns, t->variant.ns, out);
    if (shows_starts) {
        report_text_cell(out, t->start_name != NULL ? t->start_name : "-");
        interval_cell(&t->start, out);
        interval_cell(&t->beside_start, out);
    }
    error_cell(t->error, out);
    ev_str_append(out, "</tr>\n");
}

/* Cases that were timed or did not pass; the others are counted. */
static void trials(const bundle_qualified *q, ev_str *out) {
    static const char *const plain[] = {"case",      "verdict", ">baseline", ">variant",
                                        ">speed-up", ">error",  NULL};
    static const char *const with_starts[] = {
        "case",        "verdict",   ">baseline",          ">variant", ">speed-up",
        "other start", ">its time", ">variant beside it", ">error",   NULL};
    bool shows_starts = false;
    size_t untimed = 0, shown = 0;
    for (size_t i = 0; i < q->trial_count; i++) {
        const bundle_trial *t = &q->trials[i];
        untimed += t->verdict == BUNDLE_VERDICT_PASS && t->variant.ns <= 0;
        shows_starts = shows_starts || t->start_name != NULL;
    }
    shown = q->trial_count - untimed;
    if (shown > 0)
        report_begin_table(out, "Qualification", shows_starts ? with_starts : plain);
    for (size_t i = 0; i < q->trial_count; i++) {
        const bundle_trial *t = &q->trials[i];
        if (t->verdict != BUNDLE_VERDICT_PASS || t->variant.ns > 0)
            trial_row(t, shows_starts, out);
    }
    if (shown > 0)
        report_end_table(out);
    if (untimed > 0)
        ev_str_printf(out, "<p class=\"soft\">%zu %scase%s passed and %s not timed.</p>\n", untimed,
                      shown > 0 ? "more " : "", untimed == 1 ? "" : "s",
                      untimed == 1 ? "is" : "are");
}

static void qualification(const bundle_variant *v, const bundle_qualified *q, ev_str *out) {
    bool passed = q->verdict == BUNDLE_VERDICT_PASS;
    ev_str_append(out, "<p><strong>");
    report_escape(out, q->gpu_name);
    ev_str_append(out, "</strong>");
    if (*q->driver != '\0') {
        ev_str_append(out, ", driver ");
        report_escape(out, q->driver);
    }
    ev_str_printf(out, ", %s times: <strong>%s</strong>", kind_of(q->modelled),
                  bundle_verdict_name(q->verdict));
    if (!passed) {
        ev_str_append(out, ", so the variant is disabled there: ");
        report_escape(out, *q->reason != '\0' ? q->reason : bundle_verdict_meaning(q->verdict));
    }
    ev_str_append(out, bundle_qualification(v, q->gpu_id) != q
                           ? ". Another entry of this GPU counts in its place.</p>\n"
                           : "</p>\n");
    trials(q, out);
}

static void qualifications(const bundle_variant *v, ev_str *out) {
    if (v->qualified_count == 0)
        return;
    ev_str_append(out, "<h3>What evoke qualify found</h3>\n");
    for (size_t i = 0; i < v->qualified_count; i++)
        qualification(v, &v->qualified[i], out);
    for (size_t i = 0; i < v->qualified_count; i++) {
        if (!v->qualified[i].modelled) {
            ev_str_append(out, "<p class=\"soft\">In brackets: the interval of 95 %.</p>\n");
            return;
        }
    }
}

/* ---- a variant ---- */

static void variant_head(const bundle_variant *v, ev_str *out) {
    ev_str_append(out, "<h3>Tuned for ");
    report_escape(out, v->gpu_name);
    ev_str_printf(out, " (sm_%d)</h3>\n<p>Variant %.*s, grown from the start '", v->sm, SHORT_SHA,
                  v->sha256.hex);
    report_escape(out, v->start);
    ev_str_printf(out,
                  "', seed %" PRIu64 "; %" PRIu32 " registers a thread. Its worst error over %zu "
                  "cases is %.2g, and the tolerance is %.2g.",
                  v->seed, v->registers, v->case_count, v->error, v->tolerance);
    if (v->tried.shapes > 0) {
        ev_str_printf(out, " It was also tried on %" PRIu32 " drawn shapes in %" PRIu32 " runs (",
                      v->tried.shapes, v->tried.runs);
        report_escape(out, v->tried.device);
        ev_str_append(out, ").");
    }
    ev_str_append(out, "</p>\n");
    if (v->disabled != NULL) {
        ev_str_append(out, "<p><strong>Disabled on every GPU:</strong> ");
        report_escape(out, v->disabled);
        ev_str_append(out, "</p>\n");
    }
    if (!v->is_bold)
        return;
    ev_str_printf(out,
                  "<p>Bold, handed out %s: these edits change what the kernel means.</p>\n<ul>",
                  v->is_default ? "to every caller" : "to callers that allow bold variants");
    for (size_t i = 0; i < v->change_count; i++) {
        ev_str_append(out, "<li>");
        report_escape(out, v->changes[i]);
        ev_str_append(out, "</li>");
    }
    ev_str_append(out, "</ul>\n");
}

/* The variant as the winner of a run. `t` is the task of the kernel, or NULL, and `why` tells then
 * why. */
static ev_status show_variant(const bundle_kernel *k, const bundle_variant *v, task *t,
                              const char *why, ev_str *out, ev_error *err) {
    ev_str edits = EV_STR_EMPTY, device = EV_STR_EMPTY;
    const bundle_variant *baseline = bundle_baseline_of(k, v);
    for (size_t i = 0; i < v->edit_count; i++)
        ev_str_printf(&edits, "%s\n", v->edits[i]);
    ev_str_printf(&device, "vm:%s", v->gpu_id);
    const records_winner winner = {.kernel = k->name,
                                   .task_sha256 = k->task_sha256,
                                   .device = ev_str_text(&device),
                                   .gpu_name = v->gpu_name,
                                   .sm = v->sm,
                                   .start = v->start,
                                   .genome = v->genome,
                                   .ptx = v->ptx,
                                   .baseline_ptx = baseline != NULL ? baseline->ptx : "",
                                   .edits = ev_str_text(&edits),
                                   .seed = v->seed,
                                   .promoted = true};
    report_task as = {.kernel = k->name, .winner = &winner, .task = t};
    (void)snprintf(as.why, sizeof as.why, "%s", why);
    variant_head(v, out);
    qualifications(v, out);
    ev_status status = make_rows(k, v, &as.rows, err);
    if (status == EV_OK)
        status = report_show_winner(&as, out, err);
    as.task = NULL; /* the caller's */
    report_task_free(&as);
    ev_str_free(&edits);
    ev_str_free(&device);
    return status;
}

/* ---- a kernel ---- */

/* A task that does not load is no failure: `why` has the reason. An oracle in C that came with the
 * bundle is not built. */
static ev_status open_task(const bundle *b, const bundle_kernel *k, task **out, char why[512],
                           ev_error *err) {
    static const shipped_trust trust = {0};
    ev_error bad;
    *out = NULL;
    why[0] = '\0';
    ev_status status = shipped_task(b, k, &trust, NULL, out, &bad);
    if (status == EV_BAD)
        (void)snprintf(why, 512, "%s", bad.text);
    if (status == EV_OK || status == EV_BAD)
        return EV_OK;
    *err = bad;
    return status;
}

static ev_status kernel_of_bundle(const bundle *b, const bundle_kernel *k, ev_str *out,
                                  ev_error *err) {
    task *t = NULL;
    char why[512];
    ev_str_append(out, "<section><h2 id=\"");
    report_escape(out, k->name);
    ev_str_append(out, "\">");
    report_escape(out, k->name);
    ev_str_append(out, "</h2>\n<p>");
    report_escape(out, k->doc);
    ev_str_append(out, "</p>\n");
    if (k->variant_count == 0)
        ev_str_append(out, "<p>The bundle has no tuned variant of this kernel.</p>\n");
    EV_TRY(open_task(b, k, &t, why, err));
    ev_status status = EV_OK;
    for (size_t i = 0; i < k->variant_count && status == EV_OK; i++)
        status = show_variant(k, &k->variants[i], t, why, out, err);
    task_free(t);
    ev_str_append(out, "</section>\n");
    return status;
}

/* ---- the page ---- */

static size_t tuned_count(const bundle *b) {
    size_t count = 0;
    for (size_t i = 0; i < bundle_kernel_count(b); i++)
        count += bundle_kernel_at(b, i)->variant_count;
    return count;
}

static size_t disabled_count(const bundle *b) {
    size_t count = 0;
    for (size_t i = 0; i < bundle_kernel_count(b); i++) {
        const bundle_kernel *k = bundle_kernel_at(b, i);
        for (size_t n = 0; n < k->variant_count; n++)
            count += bundle_disabled(&k->variants[n], k->variants[n].gpu_id) != NULL;
    }
    return count;
}

static void tell_bundle(const bundle *b, ev_str *out) {
    const char *gpu = NULL;
    const result_columns columns = columns_of(b, &gpu);
    size_t kernels = bundle_kernel_count(b), tuned = tuned_count(b), disabled = disabled_count(b);
    ev_str_printf(out, "The bundle %s: %zu kernel%s, %zu tuned variant%s", bundle_path(b), kernels,
                  kernels == 1 ? "" : "s", tuned, tuned == 1 ? "" : "s");
    if (!columns.gpus)
        ev_str_printf(out, " for %s", gpu);
    if (disabled > 0)
        ev_str_printf(out, ", %zu of %zu disabled", disabled, tuned);
    ev_str_append(out, ".");
    if (bundle_signer(b) != NULL)
        ev_str_printf(out, " Signed by the key %s.", bundle_signer(b));
}

static ev_status page_of(const bundle *b, const report_head *head, ev_str *page, ev_error *err) {
    report_begin_page(head, page);
    results(b, page);
    for (size_t i = 0; i < bundle_kernel_count(b); i++)
        EV_TRY(kernel_of_bundle(b, bundle_kernel_at(b, i), page, err));
    report_end_page(head, page);
    return ev_str_status(page, err);
}

ev_status report_bundle(const char *path, ev_str *page, ev_error *err) {
    bundle *b = NULL;
    ev_str text = EV_STR_EMPTY;
    EV_TRY(bundle_open(path, &b, err));
    ev_status status = EV_OK;
    if (tuned_count(b) == 0)
        status = ev_fail(err, EV_BAD,
                         "the bundle %s has no tuned variant; let evoke tune finish a "
                         "kernel",
                         path);
    if (status == EV_OK) {
        tell_bundle(b, &text);
        const report_state state = {.text = ev_str_text(&text)};
        const report_head head = {.state = &state};
        status = page_of(b, &head, page, err);
    }
    ev_str_free(&text);
    bundle_close(b);
    return status;
}
