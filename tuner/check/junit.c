/* Prints the findings of a check as JUnit XML and as annotations. */
#include "tuner/check/junit.h"

#include "base/file.h"
#include "base/json.h"
#include "tuner/check/verdict.h"

#include <stdbool.h>
#include <string.h>

/* ---- XML ---- */

/* Text for an attribute or an element; XML 1.0 has no control characters but these. */
static void add_escaped(ev_str *out, const char *text) {
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '&')
            ev_str_append(out, "&amp;");
        else if (*c == '<')
            ev_str_append(out, "&lt;");
        else if (*c == '>')
            ev_str_append(out, "&gt;");
        else if (*c == '"')
            ev_str_append(out, "&quot;");
        else if (*c == '\n' || *c == '\t')
            ev_str_printf(out, "&#%d;", *c);
        else
            ev_str_char(out, (unsigned char)*c < 0x20 || *c == 0x7f ? '?' : *c);
    }
}

static void add_attribute(ev_str *out, const char *name, const char *value) {
    ev_str_printf(out, " %s=\"", name);
    add_escaped(out, value);
    ev_str_char(out, '"');
}

/* ---- rows ---- */

/* A list of rows, and the case that rows without one are. */
typedef struct row_list {
    const json_t *rows;
    const char *what;
} row_list;

#define LISTS 3

static void lists_of(const junit_findings *found, row_list lists[LISTS]) {
    lists[0] = (row_list){found->rows, "-"};
    lists[1] = (row_list){found->replays, "replay"};
    lists[2] = (row_list){found->stresses, "stress"};
}

static const char *kind_of(const json_t *row) {
    const char *verdict = ev_json_text(row, "verdict", "");
    if (strcmp(verdict, "pass") == 0)
        return NULL;
    return ev_json_text(row, "kind",
                        check_is_skipped(row) ? verdict : check_verdict_name(CHECK_ACCURACY));
}

static bool is_of(const json_t *row, const char *kernel) {
    return strcmp(ev_json_text(row, "kernel", ""), kernel) == 0;
}

static bool is_kind(const json_t *row, const char *kind) {
    const char *own = kind_of(row);
    return own != NULL && strcmp(own, kind) == 0;
}

typedef struct counts {
    size_t tests, failures, errors, skipped;
} counts;

/* `kernel` NULL: of all kernels. */
static counts count_rows(const junit_findings *found, const char *kernel) {
    row_list lists[LISTS];
    counts n = {0};
    lists_of(found, lists);
    for (size_t l = 0; l < LISTS; l++) {
        for (size_t i = 0; i < json_array_size(lists[l].rows); i++) {
            const json_t *row = json_array_get(lists[l].rows, i);
            if (kernel != NULL && !is_of(row, kernel))
                continue;
            n.tests++;
            if (check_is_skipped(row))
                n.skipped++;
            else if (is_kind(row, check_verdict_name(CHECK_SETUP)))
                n.errors++;
            else if (kind_of(row) != NULL)
                n.failures++;
        }
    }
    return n;
}

static void add_counts(ev_str *out, counts n) {
    ev_str_printf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\"", n.tests,
                  n.failures, n.errors, n.skipped);
}

/* "search/odd", or the list's own word. */
static void add_name(ev_str *out, const json_t *row, const char *what) {
    const char *name =
        json_is_string(json_object_get(row, "case")) ? ev_json_text(row, "case", what) : what;
    const char *split = ev_json_text(row, "split", "-");
    ev_str_append(out, " name=\"");
    if (strcmp(split, "-") != 0) {
        add_escaped(out, split);
        ev_str_char(out, '/');
    }
    add_escaped(out, strcmp(name, "-") != 0 ? name : ev_json_text(row, "role", what));
    ev_str_char(out, '"');
}

static void add_class(ev_str *out, const json_t *row) {
    ev_str_append(out, " classname=\"");
    add_escaped(out, ev_json_text(row, "kernel", ""));
    ev_str_char(out, '.');
    add_escaped(out, ev_json_text(row, "role", "kernel"));
    ev_str_char(out, '.');
    add_escaped(out, ev_json_text(row, "start", "-"));
    ev_str_char(out, '"');
}

/* The time of a testcase is that of the check, which is not taken; a kernel's own is in the text.
 */
static void add_row(ev_str *out, const json_t *row, const char *what) {
    const char *kind = kind_of(row), *reason = ev_json_text(row, "reason", "");
    ev_str_append(out, "    <testcase");
    add_class(out, row);
    add_name(out, row, what);
    if (kind == NULL) {
        ev_str_append(out, "/>\n");
        return;
    }
    bool is_skipped = check_is_skipped(row);
    bool is_error = strcmp(kind, check_verdict_name(CHECK_SETUP)) == 0;
    const char *element = is_error ? "error" : "failure";
    ev_str_printf(out, ">\n      <%s", is_skipped ? "skipped" : element);
    add_attribute(out, "message", reason);
    if (!is_skipped)
        add_attribute(out, "type", kind);
    ev_str_append(out, "/>\n    </testcase>\n");
}

void junit_print(const junit_findings *found, ev_str *out) {
    json_t *kernels = check_kernels(found->rows, found->replays, found->stresses);
    row_list lists[LISTS];
    lists_of(found, lists);
    ev_str_append(out,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"evoke check\"");
    add_counts(out, count_rows(found, NULL));
    ev_str_append(out, ">\n");
    for (size_t k = 0; k < json_array_size(kernels); k++) {
        const char *kernel = ev_json_text(json_array_get(kernels, k), "kernel", "");
        ev_str_append(out, "  <testsuite");
        add_attribute(out, "name", kernel);
        add_counts(out, count_rows(found, kernel));
        ev_str_append(out, ">\n");
        for (size_t l = 0; l < LISTS; l++) {
            for (size_t i = 0; i < json_array_size(lists[l].rows); i++) {
                const json_t *row = json_array_get(lists[l].rows, i);
                if (is_of(row, kernel))
                    add_row(out, row, lists[l].what);
            }
        }
        ev_str_append(out, "  </testsuite>\n");
    }
    ev_str_append(out, "</testsuites>\n");
    json_decref(kernels);
}

ev_status junit_write(const junit_findings *found, const char *path, ev_error *err) {
    ev_str text = EV_STR_EMPTY;
    junit_print(found, &text);
    ev_status status = ev_str_status(&text, err);
    if (status == EV_OK)
        status = ev_file_write(path, ev_str_text(&text), text.length, err);
    ev_str_free(&text);
    return status;
}

/* ---- GitHub ---- */

static void add_command_text(ev_str *out, const char *text, bool is_property) {
    for (const char *c = text; *c != '\0'; c++) {
        bool special = *c == '%' || *c == '\r' || *c == '\n' || (is_property && strchr(":,", *c));
        if (special)
            ev_str_printf(out, "%%%02X", (unsigned)(unsigned char)*c);
        else
            ev_str_char(out, *c);
    }
}

static void annotate(const json_t *row, const char *what, const char *file, ev_str *out) {
    const char *kind = kind_of(row);
    if (kind == NULL || check_is_skipped(row))
        return;
    ev_str_append(out, "::error file=");
    add_command_text(out, file, true);
    ev_str_append(out, ",title=");
    add_command_text(out, ev_json_text(row, "kernel", ""), true);
    ev_str_append(out, "%3A ");
    add_command_text(out, kind, true);
    ev_str_append(out, "::");
    const char *name =
        json_is_string(json_object_get(row, "case")) ? ev_json_text(row, "case", what) : what;
    if (strcmp(name, "-") != 0) {
        add_command_text(out, name, false);
        ev_str_append(out, ": ");
    }
    add_command_text(out, ev_json_text(row, "reason", ""), false);
    ev_str_char(out, '\n');
}

void junit_annotate(const junit_findings *found, const char *file, ev_str *out) {
    row_list lists[LISTS];
    lists_of(found, lists);
    for (size_t l = 0; l < LISTS; l++) {
        for (size_t i = 0; i < json_array_size(lists[l].rows); i++)
            annotate(json_array_get(lists[l].rows, i), lists[l].what, file, out);
    }
}
