/* Table: rows of text in columns as wide as they need to be, for the terminal. */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include "base/status.h"
#include "base/str.h"

#include <stdint.h>

typedef struct table table;

/* `columns`: titles, NULL-ended, borrowed; one that starts with '>' is set right. NULL: out of
 * memory. */
table *table_new(const char *const columns[]);
void table_free(table *t); /* NULL is fine */
/* The next cell, row by row. */
void table_cell(table *t, const char *format, ...) EV_PRINTF(2, 3);
/* Appends the titles, a rule and the rows; lines have no spaces at their end. */
ev_status table_print(const table *t, ev_str *out, ev_error *err) EV_CHECKED;

/* A time with its unit in three or four digits: "812 ns", "1.23 us", "45.6 ms"; "-" for 0. */
void table_time(double ns, char text[24]);
/* "1,234,567" */
void table_count(uint64_t count, char text[32]);
/* With three or four digits and a prefix of 1000: "812 B", "1.23 MB"; unit "B/s": "1.23 MB/s". */
void table_amount(double amount, const char *unit, char text[32]);
/* `cells` characters wide, filled for a share of 0 to 1. */
void table_bar(double share, unsigned cells, ev_str *out);

#endif
