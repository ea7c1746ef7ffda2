/* Lays out a table: widths first, then the lines. */
#include "base/table.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GAP 2

struct table {
    const char *const *columns;
    size_t column_count;
    char **cells; /* row by row */
    size_t count, capacity;
    bool failed;
};

table *table_new(const char *const columns[]) {
    table *t = calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    t->columns = columns;
    while (columns[t->column_count] != NULL)
        t->column_count++;
    return t;
}

void table_free(table *t) {
    if (t == NULL)
        return;
    for (size_t i = 0; i < t->count; i++)
        free(t->cells[i]);
    free(t->cells);
    free(t);
}

static bool table_grow(table *t) {
    if (t->count < t->capacity)
        return true;
    size_t capacity = t->capacity == 0 ? 64 : t->capacity * 2;
    char **cells = realloc(t->cells, capacity * sizeof *cells);
    if (cells == NULL)
        return false;
    t->cells = cells;
    t->capacity = capacity;
    return true;
}

void table_cell(table *t, const char *format, ...) {
    ev_str text = EV_STR_EMPTY;
    va_list args;
    va_start(args, format);
    ev_str_append(&text, "");
    ev_str_vprintf(&text, format, args);
    va_end(args);
    char *cell = ev_str_take(&text);
    if (cell == NULL || !table_grow(t)) {
        free(cell);
        t->failed = true;
        return;
    }
    t->cells[t->count++] = cell;
}

/* Columns on the screen: characters, not bytes of UTF-8. */
static size_t text_width(const char *text) {
    size_t width = 0;
    for (; *text != '\0'; text++)
        width += ((unsigned char)*text & 0xc0u) != 0x80u;
    return width;
}

static bool is_right(const table *t, size_t column) {
    return t->columns[column][0] == '>';
}

static const char *title_of(const table *t, size_t column) {
    return t->columns[column] + (is_right(t, column) ? 1 : 0);
}

static size_t column_width(const table *t, size_t column) {
    size_t width = text_width(title_of(t, column));
    for (size_t i = column; i < t->count; i += t->column_count) {
        size_t cell = text_width(t->cells[i]);
        if (cell > width)
            width = cell;
    }
    return width;
}

static void print_cell(ev_str *out, const char *text, size_t width, bool right) {
    size_t pad = width - text_width(text);
    if (right)
        ev_str_printf(out, "%*s%s", (int)pad, "", text);
    else
        ev_str_printf(out, "%s%*s", text, (int)pad, "");
}

static void end_line(ev_str *out) {
    while (out->length > 0 && out->data[out->length - 1] == ' ')
        out->data[--out->length] = '\0';
    ev_str_char(out, '\n');
}

static void print_rule(ev_str *out, size_t width) {
    for (size_t i = 0; i < width; i++)
        ev_str_char(out, '-');
}

/* One line; `row` is the number of the row, or -1 for the titles, -2 for the rule. */
static void print_line(const table *t, const size_t *widths, long row, ev_str *out) {
    for (size_t c = 0; c < t->column_count; c++) {
        if (c > 0)
            ev_str_printf(out, "%*s", GAP, "");
        if (row == -2) {
            print_rule(out, widths[c]);
            continue;
        }
        size_t at = row < 0 ? 0 : (size_t)row * t->column_count + c;
        const char *text = "";
        if (row < 0)
            text = title_of(t, c);
        else if (at < t->count)
            text = t->cells[at];
        print_cell(out, text, widths[c], is_right(t, c));
    }
    end_line(out);
}

ev_status table_print(const table *t, ev_str *out, ev_error *err) {
    size_t *widths = calloc(t->column_count + 1, sizeof *widths);
    if (widths == NULL || t->failed) {
        free(widths);
        return ev_fail_memory(err, t->column_count * sizeof *widths);
    }
    for (size_t c = 0; c < t->column_count; c++)
        widths[c] = column_width(t, c);
    size_t rows = t->column_count > 0 ? (t->count + t->column_count - 1) / t->column_count : 0;
    print_line(t, widths, -1, out);
    print_line(t, widths, -2, out);
    for (size_t r = 0; r < rows; r++)
        print_line(t, widths, (long)r, out);
    free(widths);
    return ev_str_status(out, err);
}

void table_time(double ns, char text[24]) {
    static const char *const units[] = {"ns", "us", "ms", "s"};
    if (!(ns > 0)) {
        (void)snprintf(text, 24, "-");
        return;
    }
    size_t unit = 0;
    while (unit < 3 && ns >= 999.5) {
        ns /= 1000;
        unit++;
    }
    int digits = ns < 99.95 ? 1 : 0;
    (void)snprintf(text, 24, "%.*f %s", ns < 9.995 ? 2 : digits, ns, units[unit]);
}

void table_share(double share, char text[24]) {
    (void)snprintf(text, 24, "%.*f %%", 100 * share < 9.95 ? 1 : 0, 100 * share);
}

void table_count(uint64_t count, char text[32]) {
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, count), n = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            text[n++] = ',';
        text[n++] = digits[i];
    }
    text[n] = '\0';
}

void table_amount(double amount, const char *unit, char text[32]) {
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    size_t prefix = 0;
    while (prefix < 5 && amount >= 999.5) {
        amount /= 1000;
        prefix++;
    }
    int digits = 2;
    if (prefix == 0 || amount >= 99.95)
        digits = 0;
    else if (amount >= 9.995)
        digits = 1;
    (void)snprintf(text, 32, "%.*f %s%s", digits, amount, prefixes[prefix], unit);
}

void table_bar(double share, unsigned cells, ev_str *out) {
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    double wanted = share > 0 ? (share < 1 ? share : 1) * cells * 8 : 0;
    unsigned filled = (unsigned)(wanted + 0.5), full = filled / 8, part = filled % 8;
    for (unsigned i = 0; i < full; i++)
        ev_str_append(out, "█");
    ev_str_append(out, eighths[part]);
    for (unsigned i = full + (part > 0); i < cells; i++)
        ev_str_char(out, ' ');
}
