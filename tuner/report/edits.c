/* Report, edits: what each edit of the winner does, the source line it stands at, its share of the
 * gain, and the code before and after the edit.
 *
 * The words of the records have a line for each edit, in the order of the genome, and behind these
 * the remarks on macros and pairs. A local edit is shown in IR before the passes, beside the same
 * IR without the edit. A structural edit and a knob change what the passes see, so that they are
 * shown in PTX: that of the edits before, and of these with the edit. */
#include "tuner/report/inside.h"

#include "base/file.h"
#include "ir/edit_diff.h"
#include "tuner/report/ptx_lines.h"
#include "tuner/worker/bases.h"
#include "tuner/worker/isolate.h"
#include "tuner/worker/variant.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIFFS_MOST 16 /* edits whose code is shown */
#define LINES_MOST 80 /* lines of a diff that are shown */
#define LINE_MOST 160 /* bytes of a line that are shown */
#define DIFF_SECONDS 120

/* ---- words ---- */

/* The number behind the last "line " of an edit's words; 0: none. */
static unsigned long line_of(const char *words) {
    const char *at = NULL;
    for (const char *next = strstr(words, " line "); next; next = strstr(next + 1, " line "))
        at = next;
    return at != NULL ? strtoul(at + strlen(" line "), NULL, 10) : 0;
}

/* Cuts ": 90 % of the gain" off the words. False: the words tell no share. */
static bool cut_share(char *words, double *share) {
    char *at = strstr(words, " % of the gain");
    char *colon = at;
    while (colon != NULL && colon > words && strncmp(colon, ": ", 2) != 0)
        colon--;
    if (colon == NULL || colon == words)
        return false;
    char *end = NULL;
    *share = strtod(colon + 2, &end);
    if (end != at)
        return false;
    *colon = '\0';
    return true;
}

/* ---- source ---- */

/* The line without the blanks around it; "" if the source has no such line. */
static void source_line(const char *source, unsigned long number, char text[LINE_MOST + 1]) {
    text[0] = '\0';
    for (unsigned long i = 1; i < number && source != NULL; i++) {
        source = strchr(source, '\n');
        source = source != NULL ? source + 1 : NULL;
    }
    if (source == NULL || number == 0)
        return;
    size_t length = strcspn(source, "\n");
    while (length > 0 && isspace((unsigned char)*source)) {
        source++;
        length--;
    }
    (void)snprintf(text, LINE_MOST + 1, "%.*s", (int)length, source);
}

static void show_source(const char *source, unsigned long number, ev_str *out) {
    char text[LINE_MOST + 1];
    source_line(source, number, text);
    if (text[0] == '\0')
        return;
    ev_str_printf(out, "<p class=\"source\">Line %lu: <code>", number);
    report_escape(out, text);
    ev_str_append(out, "</code></p>\n");
}

/* ---- diffs ---- */

typedef struct diff_request {
    const task *t;
    const ir_genome *genome;
    size_t index;
    int sm;
} diff_request;

/* In the child. */
static ev_status diff_ir_work(void *context, ev_str *out, ev_error *err) {
    const diff_request *r = context;
    bases *all = NULL;
    const ir_base *base = NULL;
    EV_TRY(bases_new(r->t, r->sm, 1, &all, err));
    ev_status status = bases_get(all, r->genome, &base, err);
    if (status == EV_OK)
        status = ir_diff_edit(base, r->genome, r->index, out, err);
    bases_free(all);
    return status;
}

/* The PTX of the first `count` edits. */
static ev_status build_first(const diff_request *r, size_t count, ev_str *ptx, ev_error *err) {
    ir_genome *part = ir_genome_part(r->genome, 0, count);
    if (part == NULL)
        return ev_fail_memory(err, 1);
    ev_status status = variant_build(r->t, part, r->sm, ptx, err);
    ir_genome_free(part);
    return status;
}

static ev_status diff_ptx(const diff_request *r, ev_str *out, ev_error *err) {
    ev_str before = EV_STR_EMPTY, after = EV_STR_EMPTY;
    ev_status status = build_first(r, r->index, &before, err);
    if (status == EV_OK)
        status = build_first(r, r->index + 1, &after, err);
    if (status == EV_OK)
        status = ev_diff("before", ev_str_text(&before), "after", ev_str_text(&after),
                         &ptx_lines_rules, out, err);
    ev_str_free(&before);
    ev_str_free(&after);
    return status;
}

/* Whether a diff has a hunk behind the two names. */
static bool has_hunk(const ev_str *diff) {
    return strstr(ev_str_text(diff), "\n@@") != NULL;
}

/* The diff of one edit, and of what it is. */
static ev_status diff_one(const diff_request *r, ev_str *out, const char **kind, ev_error *err) {
    *kind = "LLVM IR before the passes";
    if (r->index >= ir_genome_prefix_count(r->genome) &&
        !ir_edit_is_knob(ir_genome_edit_kind(r->genome, r->index)))
        EV_TRY(isolate_run(diff_ir_work, (void *)r, DIFF_SECONDS, out, err));
    if (has_hunk(out))
        return EV_OK;
    *kind = "PTX";
    ev_str_clear(out);
    return diff_ptx(r, out, err);
}

/* ---- a diff as HTML ---- */

static void show_line(const char *line, size_t length, ev_str *out) {
    const char *removed = line[0] == '-' ? "del" : NULL;
    const char *tag = line[0] == '+' ? "ins" : removed;
    char text[LINE_MOST + 1];
    (void)snprintf(text, sizeof text, "%.*s", (int)length, line);
    if (tag != NULL)
        ev_str_printf(out, "<%s>", tag);
    report_escape(out, text);
    if (tag != NULL)
        ev_str_printf(out, "</%s>", tag);
    ev_str_char(out, '\n');
}

void report_show_diff(const char *diff, ev_str *out) {
    size_t lines = 0, left = 0;
    for (int names = 0; names < 2 && *diff != '\0'; names++) { /* "---" and "+++" */
        diff += strcspn(diff, "\n");
        diff += *diff == '\n';
    }
    ev_str_append(out, "<pre class=\"diff\" tabindex=\"0\" role=\"region\" "
                       "aria-label=\"difference of the code\">");
    while (*diff != '\0') {
        size_t length = strcspn(diff, "\n");
        if (lines++ < LINES_MOST)
            show_line(diff, length, out);
        else
            left++;
        diff += length + (diff[length] == '\n');
    }
    if (left > 0)
        ev_str_printf(out, "and %zu lines more\n", left);
    ev_str_append(out, "</pre>");
}

static ev_status show_code(const diff_request *r, ev_str *out, ev_error *err) {
    ev_str diff = EV_STR_EMPTY;
    const char *kind = "";
    ev_status status = diff_one(r, &diff, &kind, err);
    if (status == EV_OK && has_hunk(&diff)) {
        ev_str_printf(out, "<details><summary>%s, before and after</summary>", kind);
        report_show_diff(ev_str_text(&diff), out);
        ev_str_append(out, "</details>\n");
    } else if (status == EV_OK) {
        ev_str_append(out, "<p class=\"soft\">The PTX is the same with and without.</p>\n");
    } else if (status == EV_BAD) {
        ev_str_append(out, "<p class=\"soft\">No difference is shown: ");
        report_escape(out, err->text);
        ev_str_append(out, "</p>\n");
        status = EV_OK;
    }
    ev_str_free(&diff);
    return status;
}

/* ---- the list ---- */

/* What the list is made of. */
typedef struct edit_list {
    const char *source;      /* text; NULL: not known */
    const ir_genome *genome; /* NULL: not known */
    diff_request code;       /* t NULL: no code is shown */
} edit_list;

static void show_share(double share, ev_str *out) {
    double capped = share > 100 ? 100 : share;
    double part = capped < 0 ? 0 : capped;
    ev_str_printf(out,
                  " <span class=\"share\"><span class=\"part\" style=\"width:%.0f%%\"></span>"
                  "</span> %.0f&nbsp;%% of the gain",
                  part, share);
}

static ev_status show_edit(edit_list *l, size_t index, char *words, ev_str *out, ev_error *err) {
    double share = 0;
    bool has_share = cut_share(words, &share);
    ev_str_append(out, "<li>");
    report_escape(out, words);
    if (has_share)
        show_share(share, out);
    ev_str_char(out, '\n');
    show_source(l->source, line_of(words), out);
    l->code.index = index;
    if (l->code.t != NULL && index < DIFFS_MOST)
        EV_TRY(show_code(&l->code, out, err));
    ev_str_append(out, "</li>\n");
    return EV_OK;
}

static ev_status show_lines(edit_list *l, const char *line, ev_str *out, ev_error *err) {
    size_t edits = l->genome != NULL ? ir_genome_edit_count(l->genome) : SIZE_MAX;
    ev_str_append(out, edits > 0 ? "<ol class=\"edits\">\n" : "<ul class=\"edits\">\n");
    for (size_t i = 0; *line != '\0'; i++) {
        char one[1024];
        size_t length = strcspn(line, "\n");
        (void)snprintf(one, sizeof one, "%.*s", (int)length, line);
        if (i == edits && i > 0)
            ev_str_append(out, "</ol>\n<ul class=\"edits\">\n");
        if (i < edits) {
            EV_TRY(show_edit(l, i, one, out, err));
        } else {
            ev_str_append(out, "<li>");
            report_escape(out, one);
            ev_str_append(out, "</li>\n");
        }
        line += length + (line[length] == '\n');
        if (*line == '\0')
            ev_str_append(out, i < edits ? "</ol>\n" : "</ul>\n");
    }
    return EV_OK;
}

ev_status report_show_edits(const report_task *t, ev_str *out, ev_error *err) {
    const records_winner *w = t->winner;
    char *source = NULL;
    size_t bytes = 0;
    ir_genome *genome = NULL;
    ev_error why;
    ev_str_append(out, "<h3>What the winner does</h3>\n");
    if (*w->edits == '\0') {
        ev_str_append(out, "<p>Nothing: the winner is a start, unmodified.</p>\n");
        return EV_OK;
    }
    const task_start *start = t->task != NULL ? task_find_start(t->task, w->start) : NULL;
    if (variant_genome(w->genome, w->kernel, &genome, &why) != EV_OK)
        genome = NULL; /* then every line of the words counts as an edit */
    if (start != NULL && ev_file_read(start->source, &source, &bytes, &why) != EV_OK)
        source = NULL;
    bool shows_code = t->task != NULL && start != NULL && genome != NULL;
    edit_list list = {.source = source,
                      .genome = genome,
                      .code = {.t = shows_code ? t->task : NULL, .genome = genome, .sm = w->sm}};
    ev_status status = show_lines(&list, w->edits, out, err);
    ir_genome_free(genome);
    free(source);
    return status;
}
