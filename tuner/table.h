/* Table: rows of text in columns as wide as they need to be, for the terminal. */
#ifndef TUNER_TABLE_H
#define TUNER_TABLE_H

#include "base/status.h"
#include "base/str.h"

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

#endif
