/* Reads and prints tables of layer times. */
#include "tuner/exports/workload.h"

#include "base/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define COLUMNS 12
#define MOST_ROWS 100000
#define MOST_WHOLE 9007199254740992.0 /* 2^53 */
#define BLANKS " \t\r"

/* ---- reading ---- */

typedef struct table_text {
    ev_arena *arena;
    const char *path;
    char *next; /* the text behind the line at hand; NULL: there is none */
    size_t line;
} table_text;

/* The next line without its end; NULL: there is none. */
static char *take_line(table_text *t) {
    char *line = t->next;
    if (line == NULL)
        return NULL;
    char *end = strchr(line, '\n');
    t->next = end != NULL ? end + 1 : NULL;
    if (end != NULL)
        *end = '\0';
    t->line++;
    line += strspn(line, BLANKS);
    size_t length = strlen(line);
    while (length > 0 && strchr(BLANKS, line[length - 1]) != NULL)
        line[--length] = '\0';
    return line;
}

static ev_status fail_at(const table_text *t, ev_error *err, const char *what) {
    return ev_fail(err, EV_BAD, "%s:%zu: %s", t->path, t->line, what);
}

/* A whole number from 0 to 2^53. */
static bool read_whole(const char *text, double *out) {
    char *end = NULL;
    *out = strtod(text, &end);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' &&
           text[strspn(text, "0123456789")] == '\0' && *out <= MOST_WHOLE;
}

static ev_status split_row(table_text *t, char *line, char *columns[COLUMNS], ev_error *err) {
    size_t count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(line, BLANKS, &rest); word != NULL;
         word = strtok_r(NULL, BLANKS, &rest)) {
        if (count < COLUMNS)
            columns[count] = word;
        count++;
    }
    if (count != COLUMNS)
        return ev_fail(
            err, EV_BAD,
            "%s:%zu: a layer has %d columns (name -1 time collective bytes time collective "
            "bytes time collective bytes time), and this line has %zu",
            t->path, t->line, COLUMNS, count);
    return EV_OK;
}

/* Columns 2, 5, 8 and 11 are times; behind the first three stand a collective and its bytes. */
static ev_status read_row(table_text *t, char *line, double unit_ns, workload_row *out,
                          ev_error *err) {
    char *columns[COLUMNS];
    EV_TRY(split_row(t, line, columns, err));
    out->name = ev_arena_printf(t->arena, "%s", columns[0]);
    out->dependency = ev_arena_printf(t->arena, "%s", columns[1]);
    bool whole = out->name != NULL && out->dependency != NULL;
    for (int i = 0; i < LAYER_PHASES; i++) {
        size_t at = 2 + 3 * (size_t)i;
        double time = 0;
        if (!read_whole(columns[at], &time))
            return ev_fail(err, EV_BAD,
                           "%s:%zu: column %zu, '%s', is no whole number of time units", t->path,
                           t->line, at + 1, columns[at]);
        out->ns[i] = time * unit_ns;
        if (i == WORKLOAD_COLLECTIVES)
            break;
        out->collective[i] = ev_arena_printf(t->arena, "%s", columns[at + 1]);
        whole = whole && out->collective[i] != NULL;
        if (!read_whole(columns[at + 2], &out->bytes[i]))
            return ev_fail(err, EV_BAD, "%s:%zu: column %zu, '%s', is no whole number of bytes",
                           t->path, t->line, at + 3, columns[at + 2]);
    }
    return whole ? EV_OK : ev_fail_memory(err, ev_arena_bytes(t->arena));
}

static ev_status read_head(table_text *t, size_t *count, ev_error *err) {
    const char *first = take_line(t);
    if (first == NULL || strcmp(first, "DATA") != 0)
        return fail_at(t, err,
                       "the first line is not DATA; this is no table of a data-parallel workload "
                       "(docs/exports.md)");
    const char *second = take_line(t);
    double number = 0;
    if (second == NULL || !read_whole(second, &number) || number < 1 || number > MOST_ROWS)
        return fail_at(t, err, "the second line is not the number of layers");
    *count = (size_t)number;
    return EV_OK;
}

static ev_status read_rows(table_text *t, double unit_ns, workload *out, ev_error *err) {
    size_t count = 0;
    EV_TRY(read_head(t, &count, err));
    out->rows = ev_arena_alloc(t->arena, count * sizeof *out->rows);
    if (out->rows == NULL)
        return ev_fail_memory(err, count * sizeof *out->rows);
    for (char *line = take_line(t); line != NULL; line = take_line(t)) {
        if (line[0] == '\0')
            continue;
        if (out->count == count)
            return fail_at(t, err, "there are more layers than the second line says");
        EV_TRY(read_row(t, line, unit_ns, &out->rows[out->count], err));
        out->count++;
    }
    if (out->count < count)
        return ev_fail(err, EV_BAD, "%s: the second line says %zu layers, and there are %zu",
                       t->path, count, out->count);
    return EV_OK;
}

ev_status workload_read(ev_arena *arena, const char *path, double unit_ns, workload *out,
                        ev_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    *out = (workload){0};
    EV_TRY(ev_file_read(path, &text, &bytes, err));
    table_text t = {arena, path, text, 0};
    ev_status status = strlen(text) == bytes
                           ? read_rows(&t, unit_ns, out, err)
                           : ev_fail(err, EV_BAD, "%s: the file is no text", path);
    free(text);
    return status;
}

ev_status workload_of(ev_arena *arena, const network *net, workload *out, ev_error *err) {
    *out = (workload){.count = net->row_count};
    out->rows = ev_arena_alloc(arena, (net->row_count + 1) * sizeof *out->rows);
    if (out->rows == NULL)
        return ev_fail_memory(err, net->row_count * sizeof *out->rows);
    for (size_t i = 0; i < net->row_count; i++)
        out->rows[i] = (workload_row){.name = net->rows[i].name,
                                      .dependency = "-1",
                                      .collective = {"NONE", "NONE", "ALLREDUCE"},
                                      .bytes = {0, 0, net->rows[i].allreduce_bytes}};
    return EV_OK;
}

/* ---- questions ---- */

workload_row *workload_find(const workload *w, const char *name) {
    for (size_t i = 0; i < w->count; i++) {
        if (strcasecmp(w->rows[i].name, name) == 0)
            return &w->rows[i];
    }
    return NULL;
}

bool workload_is_twice(const workload *w, const workload_row *row) {
    for (size_t i = 0; i < w->count; i++) {
        if (&w->rows[i] != row && strcasecmp(w->rows[i].name, row->name) == 0)
            return true;
    }
    return false;
}

double workload_ns(const workload *w) {
    double sum = 0;
    for (size_t i = 0; i < w->count; i++) {
        for (int p = 0; p < LAYER_PHASES; p++)
            sum += w->rows[i].ns[p];
    }
    return sum;
}

double workload_traffic(const workload *w) {
    double sum = 0;
    for (size_t i = 0; i < w->count; i++) {
        for (int c = 0; c < WORKLOAD_COLLECTIVES; c++) {
            const char *kind = w->rows[i].collective[c];
            double times = strcmp(kind, "ALLREDUCE") == 0 ? 2 : 1;
            times = strcmp(kind, "NONE") == 0 ? 0 : times;
            sum += times * w->rows[i].bytes[c];
        }
    }
    return sum;
}

/* ---- printing ---- */

static double whole_units(double ns, double unit_ns) {
    double units = round(ns / unit_ns);
    return ns > 0 && units < 1 ? 1 : units;
}

void workload_print(const workload *w, double unit_ns, ev_str *out) {
    ev_str_printf(out, "DATA\n%zu\n", w->count);
    for (size_t i = 0; i < w->count; i++) {
        const workload_row *row = &w->rows[i];
        ev_str_printf(out, "%s\t%s", row->name, row->dependency);
        for (int p = 0; p < LAYER_PHASES; p++) {
            ev_str_printf(out, "\t%.0f", whole_units(row->ns[p], unit_ns));
            if (p < WORKLOAD_COLLECTIVES)
                ev_str_printf(out, "\t%s\t%.0f", row->collective[p], row->bytes[p]);
        }
        ev_str_char(out, '\n');
    }
}
