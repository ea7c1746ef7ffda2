/* Report, page: the HTML around the plots. Times are shown as the run's table shows them. */
#include "tuner/report/report.h"

#include "base/json.h"
#include "base/table.h"
#include "tuner/report/inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANCESTORS_MOST 40

void report_escape(ev_str *out, const char *text) {
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '&':
            ev_str_append(out, "&amp;");
            break;
        case '<':
            ev_str_append(out, "&lt;");
            break;
        case '>':
            ev_str_append(out, "&gt;");
            break;
        case '"':
            ev_str_append(out, "&quot;");
            break;
        default:
            ev_str_char(out, *text);
        }
    }
}

/* ---- head ---- */

static const char STYLE[] =
    ":root{color-scheme:light dark;--ink:#1c2330;--paper:#fff;--soft:#5b6677;--line:#dfe4ea;"
    "--dots:#9aa8bb;--best:#0b62c4;--pass:#1c7f4b;--bar:#b3402f;--panel:#f6f8fa}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6eaf0;--paper:#12161d;--soft:#9aa6b6;"
    "--line:#2b333f;--dots:#5d6b7f;--best:#6cb0ff;--pass:#57c98c;--bar:#e88a78;--panel:#1a202a}}"
    "*{box-sizing:border-box}body{margin:0 auto;max-width:72rem;padding:1.2rem;background:"
    "var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}h1{font-size:1.6rem;margin:"
    "0}h2{margin:2.4rem 0 .4rem;border-top:2px solid var(--line);padding-top:1rem}h3{margin:1.4rem "
    "0 .4rem;font-size:1.05rem}p,li{max-width:46rem}.soft{color:var(--soft)}.wide{overflow-x:auto}"
    "table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}th,td{padding"
    ":.3rem .7rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}th.t,td.t"
    "{text-align:left}thead th{vertical-align:bottom}th button{font:inherit;font-weight:600;color:"
    "inherit;background:none;border:0;padding:0;cursor:pointer}th[aria-sort=ascending] button::"
    "after{content:' \\2191'}th[aria-sort=descending] button::after{content:' \\2193'}"
    ".plots{display:grid;margin-top:.8rem;grid-template-columns:repeat(auto-fit,minmax(min(26rem,"
    "100%),1fr));gap:"
    "1rem}figure{"
    "margin:0;background:var(--panel);padding:.6rem;border-radius:6px}figcaption{font-size:.85rem;"
    "color:var(--soft)}svg{width:100%;height:auto;display:block}.grid{stroke:var(--line);fill:none}"
    "details{margin:.8rem "
    "0}summary{cursor:pointer;font-weight:600}.tick,.label,.name{font-size:14px;fill:var(--soft)}."
    "name{fill:var(--ink)}.dots{stroke:"
    "var(--dots);stroke-width:4;stroke-linecap:round;fill:none;opacity:.6}.best{stroke:var(--best);"
    "stroke-width:2.2;fill:none}.member{fill:var(--best);stroke:var(--paper)}.bar{fill:var(--bar)}"
    ".before{fill:var(--dots)}.after{fill:var(--best)}.key{display:inline-block;width:.7rem;height:"
    ".7rem}.key.before{background:var(--dots)}.key.after{background:var(--best)}"
    ".bar.passed{fill:var(--pass)}a{color:var(--best)}"
    "@media print{body{max-width:none}figure{break-inside:avoid}}";

/* Sorts a table by the column whose button was pressed. */
static const char SCRIPT[] =
    "document.querySelectorAll('table.sorts').forEach(t=>{const hs=[...t.tHead.rows[0].cells];"
    "hs.forEach((h,i)=>h.querySelector('button').addEventListener('click',()=>{const up=h."
    "getAttribute('aria-sort')==='descending';hs.forEach(o=>o.removeAttribute('aria-sort'));h."
    "setAttribute('aria-sort',up?'ascending':'descending');const key=r=>{const c=r.cells[i];return "
    "c.dataset.v!==undefined?+c.dataset.v:c.textContent};[...t.tBodies[0].rows].sort((a,b)=>{const "
    "x=key(a),y=key(b),d=typeof x==='number'&&typeof y==='number'?x-y:String(x).localeCompare("
    "String(y));return up?d:-d}).forEach(r=>t.tBodies[0].append(r))}))});";

static void begin_page(const report_task *first, ev_str *out) {
    const records_winner *w = first->winner;
    ev_str_append(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta "
                       "name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>"
                       "Evoke: tuned kernels</title><style>");
    ev_str_append(out, STYLE);
    ev_str_append(out, "</style></head>\n<body><header><h1>Tuned kernels</h1><p class=\"soft\">");
    report_escape(out, w->gpu_name);
    ev_str_printf(out, " (");
    report_escape(out, w->device);
    ev_str_printf(out, "), seed %" PRIu64 "</p></header>\n<main>\n", w->seed);
}

/* ---- tables ---- */

static void begin_table(ev_str *out, const char *const titles[]) {
    ev_str_append(out, "<div class=\"wide\"><table class=\"sorts\"><thead><tr>");
    for (size_t i = 0; titles[i] != NULL; i++) {
        bool is_number = titles[i][0] == '>';
        ev_str_printf(out, "<th scope=\"col\"%s><button type=\"button\">%s</button></th>",
                      is_number ? "" : " class=\"t\"", titles[i] + is_number);
    }
    ev_str_append(out, "</tr></thead><tbody>\n");
}

static void end_table(ev_str *out) {
    ev_str_append(out, "</tbody></table></div>\n");
}

static void text_cell(ev_str *out, const char *text) {
    ev_str_append(out, "<td class=\"t\">");
    report_escape(out, text);
    ev_str_append(out, "</td>");
}

/* `value` sorts, `text` is shown. */
static void number_cell(ev_str *out, double value, const char *text) {
    ev_str_printf(out, "<td data-v=\"%.9g\">%s</td>", value, text);
}

static void time_cell(ev_str *out, double ns) {
    char text[24];
    table_time(ns, text);
    number_cell(out, ns, text);
}

static void real_cell(ev_str *out, double value, const char *format) EV_PRINTF(3, 0);
static void real_cell(ev_str *out, double value, const char *format) {
    ev_str text = EV_STR_EMPTY;
    ev_str_printf(&text, format, value);
    number_cell(out, value, ev_str_text(&text));
    ev_str_free(&text);
}

static void count_cell(ev_str *out, uint64_t count) {
    char text[32];
    table_count(count, text);
    number_cell(out, (double)count, text);
}

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
    text_cell(out, ev_json_text(row, "case", ""));
    time_cell(out, ev_json_number(row, "baseline_ns", 0));
    time_cell(out, ev_json_number(row, "hand_ns", 0));
    time_cell(out, ev_json_number(row, "best_ns", 0));
    real_cell(out, ev_json_number(row, "speedup", 0), "%.2fx");
    number_cell(out, share, text);
    real_cell(out, ev_json_number(row, "error", 0), "%.2g");
    real_cell(out, ev_json_number(row, "tolerance", 0), "%.2g");
    text_cell(out, ev_json_text(row, "time_kind", ""));
    text_cell(out, json_is_true(json_object_get(row, "promoted")) ? "yes" : "no");
    ev_str_append(out, "</tr>\n");
}

static void summary(const report_task *tasks, size_t count, ev_str *out) {
    static const char *const titles[] = {"kernel",     "case",      ">baseline", ">hand-tuned",
                                         ">tuned",     ">speed-up", ">of floor", ">error",
                                         ">tolerance", "times are", "promoted",  NULL};
    begin_table(out, titles);
    for (size_t i = 0; i < count; i++) {
        for (size_t r = 0; r < json_array_size(tasks[i].rows->root); r++)
            summary_row(out, json_array_get(tasks[i].rows->root, r));
    }
    end_table(out);
    ev_str_append(
        out, "<p class=\"soft\">The cases are held out: the search did not see them. Speed-up: "
             "the baseline, the task's first start unchanged, over the tuned variant. Of floor: "
             "the least time by the work that the task declares, over the tuned variant. Error: "
             "relative L2. Modelled times come from the timing model, not from a GPU.</p>\n");
}

/* ---- a kernel ---- */

static void list_edits(const report_task *t, ev_str *out) {
    const char *line = t->winner->edits;
    ev_str_append(out, "<h3>What the winner does</h3>\n");
    if (*line == '\0') {
        ev_str_append(out, "<p>Nothing: the winner is a start, unmodified.</p>\n");
        return;
    }
    ev_str_append(out, "<ol class=\"edits\">\n");
    while (*line != '\0') {
        char one[1024];
        size_t length = strcspn(line, "\n");
        (void)snprintf(one, sizeof one, "%.*s", (int)length, line);
        ev_str_append(out, "<li>");
        report_escape(out, one);
        ev_str_append(out, "</li>\n");
        line += length + (line[length] == '\n');
    }
    ev_str_append(out, "</ol>\n");
}

static void lineage_row(const report_child *child, const report_child *parent, double start,
                        ev_str *out) {
    ev_str_append(out, "<tr>");
    count_cell(out, child->number);
    text_cell(out, child->operators);
    time_cell(out, child->ns);
    real_cell(out, start > 0 ? start / child->ns : 0, "%.3gx");
    if (parent != NULL)
        real_cell(out, 100 * (parent->ns / child->ns - 1), "%+.1f %%");
    else
        number_cell(out, 0, "-");
    real_cell(out, child->error, "%.2g");
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
    begin_table(out, titles);
    for (size_t i = 0; child != NULL && i < ANCESTORS_MOST; i++) {
        const report_child *parent =
            child->parent != REPORT_NO_PARENT ? report_find(t, child->parent) : NULL;
        lineage_row(child, parent, report_start_ns(t), out);
        child = parent;
    }
    end_table(out);
    ev_str_append(out, "<p class=\"soft\">Times are those of the search's cases, by their weights. "
                       "The winner was promoted and minimised afterwards.</p></details>\n");
}

static void edits_table(const report_task *t, ev_str *out) {
    static const char *const titles[] = {"edit or operator", ">drawn",  ">duplicates", ">passed",
                                         ">as fast",         ">faster", NULL};
    ev_str_append(out, "<details><summary>Edits of the search: drawn, passed, faster</summary>\n");
    begin_table(out, titles);
    for (unsigned arm = 0; arm < ARM_COUNT; arm++) {
        const tally *a = &t->edits.arms[arm];
        if (a->drawn == 0)
            continue;
        ev_str_append(out, "<tr>");
        text_cell(out, arm_name(arm));
        count_cell(out, a->drawn);
        count_cell(out, a->duplicates);
        count_cell(out, a->valid);
        count_cell(out, a->neutral);
        count_cell(out, a->better);
        ev_str_append(out, "</tr>\n");
    }
    end_table(out);
    ev_str_append(out, "<p class=\"soft\">Children that an edit had a part in. As fast, faster: by "
                       "time, against the faster parent, to 0.1 %.</p></details>\n");
}

static void account_row(const char *name, const report_account *a, ev_str *out) {
    char bytes[32];
    table_amount(a->dram_bytes, "B", bytes);
    ev_str_append(out, "<tr>");
    text_cell(out, name);
    time_cell(out, a->ns);
    number_cell(out, a->dram_bytes, bytes);
    count_cell(out, a->registers);
    ev_str_printf(out, "<td data-v=\"%u\">%u of %u</td></tr>\n", a->warps, a->warps, a->most_warps);
}

static void show_accounts(const report_accounts *a, ev_str *out) {
    static const char *const titles[] = {"variant",    ">time",        ">DRAM traffic",
                                         ">registers", ">warps an SM", NULL};
    ev_str_append(out, "<h3>Where the time goes</h3>\n");
    if (!a->is_known) {
        ev_str_append(out, "<p>Not known: ");
        report_escape(out, a->why);
        ev_str_append(out, ".</p>\n");
        return;
    }
    ev_str_append(out, "<p>By the timing model, at the case ");
    report_escape(out, a->at);
    ev_str_append(out, ".</p>\n");
    begin_table(out, titles);
    account_row("baseline", &a->baseline, out);
    account_row("winner", &a->winner, out);
    end_table(out);
    ev_str_append(out, "<div class=\"plots\">");
    report_plot_terms("Units against their peaks, as shares of the time", a->baseline.peak,
                      a->winner.peak, out);
    report_plot_terms("What the warps wait for", a->baseline.stall, a->winner.stall, out);
    ev_str_append(out, "</div>\n");
}

static ev_status kernel_section(const report_task *t, ev_str *out, ev_error *err) {
    report_accounts accounts;
    EV_TRY(report_account_read(t, &accounts, err));
    ev_str_append(out, "<section><h2 id=\"");
    report_escape(out, t->winner->kernel);
    ev_str_append(out, "\">");
    report_escape(out, t->winner->kernel);
    ev_str_printf(out, "</h2>\n<p>%" PRIu64 " evaluations in %.0f s; grown from the start '",
                  t->evaluations, t->seconds);
    report_escape(out, t->winner->start);
    ev_str_printf(out, "'%s.</p>\n", t->winner->promoted ? "" : ", not promoted");
    list_edits(t, out);
    show_accounts(&accounts, out);
    ev_str_append(out, "<h3>The search</h3>\n<div class=\"plots\">");
    report_plot_progress(t, false, out);
    report_plot_progress(t, true, out);
    EV_TRY(report_plot_front(t, out, err));
    report_plot_gates(t, out);
    ev_str_append(out, "</div>\n");
    lineage(t, out);
    edits_table(t, out);
    ev_str_append(out, "</section>\n");
    return EV_OK;
}

static ev_status write_page(const report_task *tasks, size_t count, ev_str *out, ev_error *err) {
    begin_page(&tasks[0], out);
    summary(tasks, count, out);
    for (size_t i = 0; i < count; i++)
        EV_TRY(kernel_section(&tasks[i], out, err));
    ev_str_append(out, "</main>\n<script>");
    ev_str_append(out, SCRIPT);
    ev_str_append(out, "</script></body></html>\n");
    return ev_str_status(out, err);
}

/* ---- a run ---- */

static ev_status report_winners(records *r, const records_winner *winners, size_t count,
                                ev_str *page, ev_error *err) {
    report_task *tasks = calloc(count, sizeof *tasks);
    if (tasks == NULL)
        return ev_fail_memory(err, count * sizeof *tasks);
    ev_status status = EV_OK;
    size_t read = 0;
    while (status == EV_OK && read < count) {
        status = report_task_read(r, winners[read].task, &winners[read], &tasks[read], err);
        read += status == EV_OK;
    }
    if (status == EV_OK)
        status = write_page(tasks, count, page, err);
    for (size_t i = 0; i < read; i++)
        report_task_free(&tasks[i]);
    free(tasks);
    return status;
}

ev_status report_records(const char *path, ev_str *page, ev_error *err) {
    records *r = NULL;
    records_winner *winners = NULL;
    size_t count = 0;
    EV_TRY(records_open_read(path, &r, err));
    ev_status status = records_winners(r, &winners, &count, err);
    if (status == EV_OK && count == 0)
        status = ev_fail(err, EV_BAD, "%s has no winner yet; let evoke tune finish a kernel", path);
    if (status == EV_OK)
        status = report_winners(r, winners, count, page, err);
    records_winners_free(winners, count);
    records_close(r);
    return status;
}
