/* Report, page: the sections of a run around the plots. Times are shown as the run's table shows
 * them. */
#include "tuner/report/report.h"

#include "base/file.h"
#include "base/json.h"
#include "base/table.h"
#include "tuner/report/inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANCESTORS_MOST 40

/* ---- summary ---- */

static void summary_row(ev_str *out, const json_t *row) {
    double share = ev_json_number(row, "floor_share", 0);
    char text[24] = "-";
    if (share > 0)
        table_share(share, text);
    ev_str_append(out, "<tr>");
    ev_str_append(out, "<td class=\"t\"><a href=\"#");
    report_escape(out, ev_json_text(row, "kernel", ""));
    ev_str_append(out, "\">");
    report_escape(out, ev_json_text(row, "kernel", ""));
    ev_str_append(out, "</a></td>");
    report_text_cell(out, ev_json_text(row, "case", ""));
    report_time_cell(out, ev_json_number(row, "baseline_ns", 0));
    report_time_cell(out, ev_json_number(row, "hand_ns", 0));
    report_time_cell(out, ev_json_number(row, "best_ns", 0));
    report_real_cell(out, ev_json_number(row, "speedup", 0), "%.2fx");
    report_number_cell(out, share, text);
    report_real_cell(out, ev_json_number(row, "error", 0), "%.2g");
    report_real_cell(out, ev_json_number(row, "tolerance", 0), "%.2g");
    report_text_cell(out, ev_json_text(row, "time_kind", ""));
    report_text_cell(out, json_is_true(json_object_get(row, "promoted")) ? "yes" : "no");
    ev_str_append(out, "</tr>\n");
}

static void summary(const report_task *tasks, size_t count, ev_str *out) {
    static const char *const titles[] = {"kernel",     "case",      ">baseline", ">hand-tuned",
                                         ">tuned",     ">speed-up", ">of floor", ">error",
                                         ">tolerance", "times are", "promoted",  NULL};
    size_t finished = 0;
    for (size_t i = 0; i < count; i++)
        finished += tasks[i].winner != NULL;
    if (finished == 0)
        return;
    report_begin_table(out, "Results", titles);
    for (size_t i = 0; i < count; i++) {
        for (size_t r = 0; tasks[i].rows != NULL && r < json_array_size(tasks[i].rows->root); r++)
            summary_row(out, json_array_get(tasks[i].rows->root, r));
    }
    report_end_table(out);
    ev_str_append(
        out, "<p class=\"soft\">The cases are held out: the search did not see them. Speed-up: "
             "the baseline, the task's first start unchanged, over the tuned variant. Of floor: "
             "the least time by the work that the task declares, over the tuned variant. Error: "
             "relative L2. Modelled times come from the timing model, not from a GPU.</p>\n");
}

/* ---- a kernel ---- */

static void lineage_row(const report_child *child, const report_child *parent, double start,
                        ev_str *out) {
    ev_str_append(out, "<tr>");
    report_count_cell(out, child->number);
    report_text_cell(out, child->operators);
    report_time_cell(out, child->ns);
    report_real_cell(out, start > 0 ? start / child->ns : 0, "%.3gx");
    if (parent != NULL)
        report_real_cell(out, 100 * (parent->ns / child->ns - 1), "%+.1f %%");
    else
        report_number_cell(out, 0, "-");
    report_real_cell(out, child->error, "%.2g");
    ev_str_append(out, "</tr>\n");
}

/* The fastest child, and its faster parents back to a start. */
static void lineage(const report_task *t, ev_str *out) {
    static const char *const titles[] = {">child",          "made by", ">time", ">speed-up",
                                         ">against parent", ">error",  NULL};
    const report_child *child = report_fastest(t);
    if (child == NULL)
        return;
    ev_str_append(out, "<details><summary>Lineage of the fastest child of the search</summary>\n");
    report_begin_table(out, "Lineage of the fastest child", titles);
    for (size_t i = 0; child != NULL && i < ANCESTORS_MOST; i++) {
        const report_child *parent =
            child->parent != REPORT_NO_PARENT ? report_find(t, child->parent) : NULL;
        lineage_row(child, parent, report_start_ns(t), out);
        child = parent;
    }
    report_end_table(out);
    ev_str_append(out, "<p class=\"soft\">Times are those of the search's cases, by their weights. "
                       "The winner was promoted and minimised afterwards.</p></details>\n");
}

static void edits_table(const report_task *t, ev_str *out) {
    static const char *const titles[] = {"edit or operator", ">drawn",  ">duplicates", ">passed",
                                         ">as fast",         ">faster", NULL};
    ev_str_append(out, "<details><summary>Edits of the search: drawn, passed, faster</summary>\n");
    report_begin_table(out, "Edits of the search", titles);
    for (unsigned arm = 0; arm < ARM_COUNT; arm++) {
        const tally *a = &t->edits.arms[arm];
        if (a->drawn == 0)
            continue;
        ev_str_append(out, "<tr>");
        report_text_cell(out, arm_name(arm));
        report_count_cell(out, a->drawn);
        report_count_cell(out, a->duplicates);
        report_count_cell(out, a->valid);
        report_count_cell(out, a->neutral);
        report_count_cell(out, a->better);
        ev_str_append(out, "</tr>\n");
    }
    report_end_table(out);
    ev_str_append(out, "<p class=\"soft\">Children that an edit had a part in. As fast, faster: by "
                       "time, against the faster parent, to 0.1 %.</p></details>\n");
}

static void account_row(const char *name, const report_account *a, ev_str *out) {
    char bytes[32];
    table_amount(a->dram_bytes, "B", bytes);
    ev_str_append(out, "<tr>");
    report_text_cell(out, name);
    report_time_cell(out, a->ns);
    report_number_cell(out, a->dram_bytes, bytes);
    report_count_cell(out, a->registers);
    ev_str_printf(out, "<td data-v=\"%u\">%u of %u</td></tr>\n", a->warps, a->warps, a->most_warps);
}

/* Leaves the frame of the plots open. */
static void show_accounts(const report_accounts *a, ev_str *out) {
    static const char *const titles[] = {"variant",    ">time",        ">DRAM traffic",
                                         ">registers", ">warps an SM", NULL};
    ev_str_append(out, "<h3>Where the time goes</h3>\n");
    if (!a->is_known) {
        ev_str_append(out, "<p>Not known: ");
        report_escape(out, a->why);
        ev_str_append(out, ".</p>\n<div class=\"plots\">");
        return;
    }
    ev_str_append(out, "<p>By the timing model, at the case ");
    report_escape(out, a->at);
    ev_str_append(out, ".</p>\n");
    report_begin_table(out, "Times and resources", titles);
    account_row("baseline", &a->baseline, out);
    account_row("winner", &a->winner, out);
    report_end_table(out);
    ev_str_append(out, "<div class=\"plots\">");
    report_plot_terms("Units against their peaks, as shares of the time", a->baseline.peak,
                      a->winner.peak, out);
    report_plot_terms("What the warps wait for", a->baseline.stall, a->winner.stall, out);
}

static void show_search(const report_task *t, ev_str *out) {
    ev_str_append(out, "<h3>The search</h3>\n<div class=\"plots\">");
    report_plot_progress(t, false, out);
    report_plot_progress(t, true, out);
}

/* The kernel's heading, and how far its search is. */
static void kernel_head(const report_task *t, ev_str *out) {
    const report_child *best = report_fastest(t);
    double start = report_start_ns(t);
    ev_str_append(out, "<section><h2 id=\"");
    report_escape(out, t->kernel);
    ev_str_append(out, "\">");
    report_escape(out, t->kernel);
    ev_str_printf(out, "</h2>\n<p>%" PRIu64 " evaluations in %.0f s; ", t->evaluations, t->seconds);
    if (t->winner != NULL) {
        ev_str_append(out, "grown from the start '");
        report_escape(out, t->winner->start);
        ev_str_printf(out, "'%s.</p>\n", t->winner->promoted ? "" : ", not promoted");
    } else if (best != NULL && start > 0) {
        ev_str_printf(out,
                      "no winner yet. The best so far has %.2f times the speed of the first start "
                      "at the search's cases.</p>\n",
                      start / best->ns);
    } else {
        ev_str_append(out, "no winner yet.</p>\n");
    }
}

ev_status report_show_winner(const report_task *t, ev_str *out, ev_error *err) {
    report_accounts accounts;
    EV_TRY(report_show_edits(t, out, err));
    EV_TRY(report_account_read(t, &accounts, err));
    show_accounts(&accounts, out);
    EV_TRY(report_plot_roofline(t, out, err));
    ev_str_append(out, "</div>\n");
    return EV_OK;
}

/* A live page says what is in the records. */
static ev_status show_winner(report_task *t, bool is_live, ev_str *out, ev_error *err) {
    if (is_live)
        return report_show_edits(t, out, err);
    EV_TRY(report_task_open(t, err));
    return report_show_winner(t, out, err);
}

static ev_status kernel_section(report_task *t, bool is_live, ev_str *out, ev_error *err) {
    kernel_head(t, out);
    if (t->winner != NULL)
        EV_TRY(show_winner(t, is_live, out, err));
    if (t->evaluations > 0) {
        show_search(t, out);
        EV_TRY(report_plot_front(t, out, err));
        report_plot_gates(t, out);
        ev_str_append(out, "</div>\n");
        lineage(t, out);
        edits_table(t, out);
    }
    ev_str_append(out, "</section>\n");
    return EV_OK;
}

static ev_status write_page(const report_head *head, report_task *tasks, size_t count, ev_str *out,
                            ev_error *err) {
    bool is_live = head->state != NULL && head->state->is_live;
    report_begin_page(head, out);
    summary(tasks, count, out);
    for (size_t i = 0; i < count; i++)
        EV_TRY(kernel_section(&tasks[i], is_live, out, err));
    report_end_page(head, out);
    return ev_str_status(out, err);
}

/* ---- a run ---- */

/* What a page is made of. */
typedef struct run_data {
    records *r;
    records_winner *winners;
    size_t winner_count;
    json_t *identity;
    report_task *tasks;
    size_t count;
} run_data;

static ev_status open_run(const char *path, run_data *d, ev_error *err) {
    EV_TRY(records_open_read(path, &d->r, err));
    EV_TRY(records_winners(d->r, &d->winners, &d->winner_count, err));
    EV_TRY(records_identity(d->r, &d->identity, err));
    size_t most = d->winner_count + json_array_size(json_object_get(d->identity, "tasks"));
    d->tasks = calloc(most + 1, sizeof *d->tasks);
    return d->tasks != NULL ? EV_OK : ev_fail_memory(err, most * sizeof *d->tasks);
}

static void close_run(run_data *d) {
    for (size_t i = 0; i < d->count; i++)
        report_task_free(&d->tasks[i]);
    free(d->tasks);
    json_decref(d->identity);
    records_winners_free(d->winners, d->winner_count);
    records_close(d->r);
}

static ev_status add_task(run_data *d, size_t index, const char *kernel, const records_winner *w,
                          ev_error *err) {
    EV_TRY(report_task_read(d->r, index, kernel, w, &d->tasks[d->count], err));
    d->count++;
    return EV_OK;
}

static ev_status read_winners(run_data *d, ev_error *err) {
    for (size_t i = 0; i < d->winner_count; i++)
        EV_TRY(add_task(d, d->winners[i].task, d->winners[i].kernel, &d->winners[i], err));
    return EV_OK;
}

/* All tasks of the run, each with its winner if there is one. A task that was not begun has nothing
 * to show. */
static ev_status read_tasks(run_data *d, ev_error *err) {
    const json_t *tasks = json_object_get(d->identity, "tasks");
    for (size_t i = 0; i < json_array_size(tasks); i++) {
        const records_winner *w = NULL;
        for (size_t k = 0; k < d->winner_count; k++)
            w = d->winners[k].task == i ? &d->winners[k] : w;
        EV_TRY(add_task(d, i, ev_json_text(json_array_get(tasks, i), "name", ""), w, err));
        if (w == NULL && d->tasks[d->count - 1].evaluations == 0)
            report_task_free(&d->tasks[--d->count]);
    }
    return EV_OK;
}

static report_head head_of(const run_data *d, const report_state *state) {
    report_head head = {.device = ev_json_text(d->identity, "device", ""),
                        .seed = (uint64_t)ev_json_integer(d->identity, "seed", 0),
                        .state = state};
    if (d->winner_count > 0) {
        head.device = d->winners[0].device;
        head.gpu_name = d->winners[0].gpu_name;
        head.seed = d->winners[0].seed;
    }
    return head;
}

ev_status report_records(const char *path, ev_str *page, ev_error *err) {
    run_data d = {0};
    ev_status status = open_run(path, &d, err);
    if (status == EV_OK && d.winner_count == 0)
        status = ev_fail(err, EV_BAD, "%s has no winner yet; let evoke tune finish a kernel", path);
    if (status == EV_OK)
        status = read_winners(&d, err);
    const report_head head = head_of(&d, NULL);
    if (status == EV_OK)
        status = write_page(&head, d.tasks, d.count, page, err);
    close_run(&d);
    return status;
}

ev_status report_run(const char *path, const report_state *state, ev_str *page, ev_error *err) {
    run_data d = {0};
    if (!ev_path_exists(path)) {
        const report_head bare = {.state = state};
        return write_page(&bare, NULL, 0, page, err);
    }
    ev_status status = open_run(path, &d, err);
    if (status == EV_OK)
        status = read_tasks(&d, err);
    const report_head head = head_of(&d, state);
    if (status == EV_OK)
        status = write_page(&head, d.tasks, d.count, page, err);
    close_run(&d);
    return status;
}
