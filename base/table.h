/* Table: rows of text for the terminal, in columns as wide as their contents. */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include "base/status.h"
#include "base/str.h"

#include <stdint.h>

typedef struct table table;

/* `columns`: titles, NULL-terminated, borrowed. A title that starts with '>' aligns its column to
 * the right. Returns NULL if memory runs out. */
table *table_new(const char *const columns[]);
void table_free(table *t); /* NULL is fine */
/* Appends the next cell, row by row. */
void table_cell(table *t, const char *format, ...) EV_PRINTF(2, 3);
/* Appends the titles, a rule and the rows. Lines have no trailing spaces. */
ev_status table_print(const table *t, ev_str *out, ev_error *err) EV_CHECKED;

/* Formats a time in ns with its unit, in three or four digits: "812 ns", "1.23 us"; "-" for 0. */
void table_time(double ns, char text[24]);
/* Formats a share in percent: "96 %", and "9.4 %" below ten. */
void table_share(double share, char text[24]);
/* Formats with commas: "1,234,567". */
void table_count(uint64_t count, char text[32]);
/* Formats with three or four digits and a decimal prefix: "812 B", "1.23 MB"; unit "B/s": "1.23
 * MB/s".
 */
void table_amount(double amount, const char *unit, char text[32]);
/* Appends a bar of `cells` characters, filled by `share`, 0 to 1. */
void table_bar(double share, unsigned cells, ev_str *out);

#endif
