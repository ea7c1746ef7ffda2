/* Expressions of task files: `ceil_div(M, TILE) * 2`, over the names of a shape and of macros.
 *
 * C's operators + - * / % ( ) and comparisons, unary minus, and the functions ceil_div, min, max,
 * div, and pow with a whole exponent. Whole numbers stay whole (64 bits, overflow is an error; `/`
 * truncates as in C); a real number makes the result real. */
#ifndef BASE_EXPR_H
#define BASE_EXPR_H

#include "base/status.h"
#include "base/str.h"
#include "base/type.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct expr_value {
    bool is_real;
    int64_t whole;
    double real; /* set in both cases */
} expr_value;

typedef struct expr_name {
    const char *name;
    expr_value value;
} expr_name;

typedef struct expr_scope {
    const expr_name *names;
    size_t count;
} expr_scope;

/* The names that an expression may use, without values. */
typedef struct expr_names {
    const char *const *items;
    size_t count;
} expr_names;

expr_value expr_of_whole(int64_t value);
expr_value expr_of_real(double value);
const expr_name *expr_scope_find(const expr_scope *scope, const char *name); /* NULL: unknown */

/* EV_BAD with the column and the cure: syntax, unknown name (with the known names), division by
 * zero, overflow. Of two equal names in a scope, the first counts. */
ev_status expr_eval(const char *text, const expr_scope *scope, expr_value *out,
                    ev_error *err) EV_CHECKED;
/* As expr_eval, but a whole number in [low, high] is required. */
ev_status expr_eval_whole(const char *text, const expr_scope *scope, int64_t low, int64_t high,
                          int64_t *out, ev_error *err) EV_CHECKED;
/* As expr_eval, but as the type holds the value: a whole number in range for an integer type, else
 * rounded to the type. EV_BAD where it cannot hold the value. */
ev_status expr_eval_as(const char *text, ev_type type, const expr_scope *scope, expr_value *out,
                       ev_error *err) EV_CHECKED;

/* Whether an expression may use this text as a name: letters, digits and _, not a digit first. */
bool expr_is_name(const char *text);
/* The length of the name that begins at `text`, 0: none. A name is a word, or the member of one:
 * "p.n". */
size_t expr_name_length(const char *text);

/* The syntax and the names of an expression, without values: EV_BAD as expr_eval's for a syntax
 * error or a name that is not in `names` (NULL: any name will do). *constant: it uses no name. */
ev_status expr_check(const char *text, const expr_names *names, bool *constant,
                     ev_error *err) EV_CHECKED;
/* Whether an expression has the name, as a whole word. */
bool expr_uses(const char *text, const char *name);
/* Appends "M = 5, TILE = 16": the names of the scope that the expression uses, in the scope's
 * order. */
void expr_print_values(const char *text, const expr_scope *scope, ev_str *out);

#endif
