/* Report, HTML: escaped text, and tables that a press on a title sorts. */
#include "tuner/report/inside.h"

#include "base/table.h"

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

/* ---- tables ---- */

void report_begin_table(ev_str *out, const char *label, const char *const titles[]) {
    ev_str_append(out, "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"");
    report_escape(out, label);
    ev_str_append(out, "\"><table class=\"sorts\"><thead><tr>");
    for (size_t i = 0; titles[i] != NULL; i++) {
        bool is_number = titles[i][0] == '>';
        ev_str_printf(out, "<th scope=\"col\"%s><button type=\"button\">%s</button></th>",
                      is_number ? "" : " class=\"t\"", titles[i] + is_number);
    }
    ev_str_append(out, "</tr></thead><tbody>\n");
}

void report_end_table(ev_str *out) {
    ev_str_append(out, "</tbody></table></div>\n");
}

void report_text_cell(ev_str *out, const char *text) {
    ev_str_append(out, "<td class=\"t\">");
    report_escape(out, text);
    ev_str_append(out, "</td>");
}

/* `value` sorts, `text` is shown. */
void report_number_cell(ev_str *out, double value, const char *text) {
    ev_str_printf(out, "<td data-v=\"%.9g\">%s</td>", value, text);
}

void report_time_cell(ev_str *out, double ns) {
    char text[24];
    table_time(ns, text);
    report_number_cell(out, ns, text);
}

void report_real_cell(ev_str *out, double value, const char *format) {
    ev_str text = EV_STR_EMPTY;
    ev_str_printf(&text, format, value);
    report_number_cell(out, value, ev_str_text(&text));
    ev_str_free(&text);
}

void report_count_cell(ev_str *out, uint64_t count) {
    char text[32];
    table_count(count, text);
    report_number_cell(out, (double)count, text);
}
