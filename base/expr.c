/* Evaluates the expressions of task files by recursive descent: a function a level of precedence.
 */
#include "base/expr.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 64 /* of nesting, so that a hostile text cannot exhaust the stack */

/* One reading of a text. With a scope it evaluates; without one it checks syntax and names alone,
 * and every value is 1. */
typedef struct reader {
    const char *text;
    const char *at;
    const expr_scope *scope; /* NULL: only checks */
    const expr_names *names; /* of a check; NULL: any name will do */
    bool uses_names;
    int depth;
    ev_error *err;
} reader;

expr_value expr_of_whole(int64_t value) {
    return (expr_value){false, value, (double)value};
}

expr_value expr_of_real(double value) {
    return (expr_value){.is_real = true, .real = value};
}

const expr_name *expr_scope_find(const expr_scope *scope, const char *name) {
    for (size_t i = 0; i < scope->count; i++) {
        if (strcmp(scope->names[i].name, name) == 0)
            return &scope->names[i];
    }
    return NULL;
}

static ev_status fail_at(reader *r, const char *at, const char *what) {
    return ev_fail(r->err, EV_BAD, "expression \"%.200s\", column %d: %s", r->text,
                   (int)(at - r->text) + 1, what);
}

static void skip_space(reader *r) {
    while (*r->at == ' ' || *r->at == '\t')
        r->at++;
}

/* Takes `token` if it comes next. */
static bool accept(reader *r, const char *token) {
    skip_space(r);
    size_t length = strlen(token);
    if (strncmp(r->at, token, length) != 0)
        return false;
    r->at += length;
    return true;
}

static ev_status expect(reader *r, const char *token) {
    if (accept(r, token))
        return EV_OK;
    char what[64] = "expected \"";
    strncat(what, token, 8);
    strncat(what, *r->at ? "\" here" : "\" at the end", 16);
    return fail_at(r, r->at, what);
}

/* ---- arithmetic --------------------------------------------------------------------------------
 */

typedef enum operation { ADD, SUB, MUL, DIV, MOD, CEIL_DIV, MIN, MAX, POW } operation;

static bool whole_divide(operation op, int64_t a, int64_t b, int64_t *out) {
    if (a == INT64_MIN && b == -1)
        return false;
    int64_t quotient = a / b, rest = a % b;
    if (op == MOD)
        *out = rest;
    else
        *out = quotient + (op == CEIL_DIV && rest != 0 && (rest < 0) == (b < 0));
    return true;
}

static bool whole_power(int64_t a, int64_t b, int64_t *out) {
    *out = 1;
    if (a == 0 || a == 1 || a == -1) {
        *out = b == 0 || (a == -1 && b % 2 == 0) ? 1 : a;
        return true;
    }
    for (int64_t i = 0; i < b; i++) { /* ends by overflow after 63 rounds at most */
        if (__builtin_mul_overflow(*out, a, out))
            return false;
    }
    return true;
}

/* False on overflow. The divisor is not zero, the exponent not negative. */
static bool whole_apply(operation op, int64_t a, int64_t b, int64_t *out) {
    switch (op) {
    case ADD:
        return !__builtin_add_overflow(a, b, out);
    case SUB:
        return !__builtin_sub_overflow(a, b, out);
    case MUL:
        return !__builtin_mul_overflow(a, b, out);
    case DIV:
    case MOD:
    case CEIL_DIV:
        return whole_divide(op, a, b, out);
    case MIN:
        *out = a < b ? a : b;
        return true;
    case MAX:
        *out = a > b ? a : b;
        return true;
    case POW:
        return whole_power(a, b, out);
    }
    return false;
}

/* By squaring. */
static double real_power(double a, int64_t b) {
    uint64_t n = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    double result = 1.0, square = a;
    for (; n; n >>= 1) {
        if (n & 1)
            result *= square;
        square *= square;
    }
    return b < 0 ? 1.0 / result : result;
}

static double real_apply(operation op, expr_value a, expr_value b) {
    switch (op) {
    case ADD:
        return a.real + b.real;
    case SUB:
        return a.real - b.real;
    case MUL:
        return a.real * b.real;
    case DIV:
        return a.real / b.real;
    case MOD:
        return fmod(a.real, b.real);
    case CEIL_DIV:
        return ceil(a.real / b.real);
    case MIN:
        return fmin(a.real, b.real);
    case MAX:
        return fmax(a.real, b.real);
    case POW:
        return real_power(a.real, b.whole);
    }
    return 0;
}

static ev_status apply(reader *r, const char *at, operation op, expr_value a, expr_value b,
                       expr_value *out) {
    if (r->scope == NULL) {
        *out = expr_of_whole(1);
        return EV_OK;
    }
    bool divides = op == DIV || op == MOD || op == CEIL_DIV;
    if (divides && b.real == 0)
        return fail_at(r, at, "division by zero");
    if (op == POW && b.is_real)
        return fail_at(r, at, "the exponent of pow must be a whole number");
    if (a.is_real || b.is_real || (op == POW && b.whole < 0)) {
        double value = real_apply(op, a, b);
        if (!isfinite(value))
            return fail_at(r, at, "the result is not finite");
        *out = expr_of_real(value);
        return EV_OK;
    }
    int64_t value = 0;
    if (!whole_apply(op, a.whole, b.whole, &value))
        return fail_at(r, at, "the result does not fit in 64 bits");
    *out = expr_of_whole(value);
    return EV_OK;
}

/* ---- grammar -----------------------------------------------------------------------------------
 */

static ev_status read_comparison(reader *r, expr_value *out);

static ev_status read_number(reader *r, expr_value *out) {
    const char *start = r->at;
    size_t digits = strspn(start, "0123456789");
    char *end = NULL;
    errno = 0;
    if (strchr(".eE", start[digits]) == NULL || start[digits] == '\0') {
        long long value = strtoll(start, &end, 10);
        if (errno)
            return fail_at(r, start, "the number does not fit in 64 bits");
        *out = expr_of_whole(value);
    } else {
        double value = ev_text_real(start, &end);
        if (!isfinite(value))
            return fail_at(r, start, "the number is not finite");
        *out = expr_of_real(value);
    }
    r->at = end;
    if (isalnum((unsigned char)*end) || *end == '_' || *end == '.')
        return fail_at(r, start, "this is neither a number nor a name");
    return EV_OK;
}

typedef struct function_row {
    const char *name;
    operation op;
} function_row;

static const function_row FUNCTIONS[] = {
    {"ceil_div", CEIL_DIV}, {"min", MIN}, {"max", MAX}, {"div", DIV}, {"pow", POW},
};

static ev_status read_call(reader *r, const char *name, size_t length, expr_value *out) {
    for (size_t i = 0; i < sizeof FUNCTIONS / sizeof FUNCTIONS[0]; i++) {
        const function_row *f = &FUNCTIONS[i];
        if (strlen(f->name) != length || strncmp(f->name, name, length) != 0)
            continue;
        expr_value a, b;
        EV_TRY(read_comparison(r, &a));
        EV_TRY(expect(r, ","));
        EV_TRY(read_comparison(r, &b));
        EV_TRY(expect(r, ")"));
        return apply(r, name, f->op, a, b, out);
    }
    return fail_at(r, name,
                   "unknown function; there are ceil_div, min, max, div, pow, of two each");
}

static size_t known_count(const reader *r) {
    if (r->scope != NULL)
        return r->scope->count;
    return r->names != NULL ? r->names->count : 0;
}

static const char *known_name(const reader *r, size_t i) {
    return r->scope != NULL ? r->scope->names[i].name : r->names->items[i];
}

static ev_status fail_unknown(reader *r, const char *name, size_t length) {
    ev_str known = EV_STR_EMPTY;
    for (size_t i = 0; i < known_count(r); i++)
        ev_str_printf(&known, "%s%s", i ? ", " : "", known_name(r, i));
    ev_status status = ev_fail(
        r->err, EV_BAD, "expression \"%.200s\", column %d: unknown name \"%.*s\"; known here: %s",
        r->text, (int)(name - r->text) + 1, (int)length, name,
        known.length ? ev_str_text(&known) : "none");
    ev_str_free(&known);
    return status;
}

/* Letters, digits and _, not a digit first; 0: none. */
static size_t word_length(const char *text) {
    size_t length = 0;
    if (!isalpha((unsigned char)*text) && *text != '_')
        return 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_')
        length++;
    return length;
}

size_t expr_name_length(const char *text) {
    size_t length = word_length(text), member = length;
    while (member > 0 && text[length] == '.') {
        member = word_length(text + length + 1);
        length += member > 0 ? 1 + member : 0;
    }
    return length;
}

static ev_status read_name(reader *r, expr_value *out) {
    const char *name = r->at;
    size_t length = expr_name_length(name);
    r->at += length;
    if (accept(r, "("))
        return read_call(r, name, length, out);
    r->uses_names = true;
    *out = expr_of_whole(1);
    if (r->scope == NULL && r->names == NULL)
        return EV_OK;
    for (size_t i = 0; i < known_count(r); i++) {
        const char *known = known_name(r, i);
        if (strlen(known) == length && strncmp(known, name, length) == 0) {
            if (r->scope != NULL)
                *out = r->scope->names[i].value;
            return EV_OK;
        }
    }
    return fail_unknown(r, name, length);
}

static ev_status read_primary(reader *r, expr_value *out) {
    skip_space(r);
    if (isdigit((unsigned char)*r->at) || *r->at == '.')
        return read_number(r, out);
    if (isalpha((unsigned char)*r->at) || *r->at == '_')
        return read_name(r, out);
    if (accept(r, "(")) {
        EV_TRY(read_comparison(r, out));
        return expect(r, ")");
    }
    return fail_at(r, r->at,
                   *r->at ? "expected a number, a name or \"(\" here"
                          : "expected a number, a name or \"(\" at the end");
}

static ev_status read_unary(reader *r, expr_value *out) {
    if (++r->depth > MAX_DEPTH)
        return fail_at(r, r->at, "nested too deeply");
    skip_space(r);
    const char *at = r->at;
    if (accept(r, "-")) {
        EV_TRY(read_unary(r, out));
        EV_TRY(apply(r, at, SUB, expr_of_whole(0), *out, out));
    } else {
        EV_TRY(read_primary(r, out));
    }
    r->depth--;
    return EV_OK;
}

static ev_status read_product(reader *r, expr_value *out) {
    EV_TRY(read_unary(r, out));
    for (;;) {
        skip_space(r);
        const char *at = r->at;
        operation op = MOD;
        if (*at == '*')
            op = MUL;
        else if (*at == '/')
            op = DIV;
        if (*at == '\0' || strchr("*/%", *at) == NULL)
            return EV_OK;
        r->at++;
        expr_value right;
        EV_TRY(read_unary(r, &right));
        EV_TRY(apply(r, at, op, *out, right, out));
    }
}

static ev_status read_sum(reader *r, expr_value *out) {
    EV_TRY(read_product(r, out));
    for (;;) {
        skip_space(r);
        const char *at = r->at;
        if (*at != '+' && *at != '-')
            return EV_OK;
        r->at++;
        expr_value right;
        EV_TRY(read_product(r, &right));
        EV_TRY(apply(r, at, *at == '+' ? ADD : SUB, *out, right, out));
    }
}

static const char *const COMPARISONS[] = {"<=", ">=", "==", "!=", "<", ">"};

/* Whole numbers are compared as such: a double cannot tell large ones apart. */
static bool compare(size_t which, expr_value a, expr_value b) {
    bool real = a.is_real || b.is_real;
    bool less = real ? a.real < b.real : a.whole < b.whole;
    bool more = real ? a.real > b.real : a.whole > b.whole;
    const bool results[] = {!more, !less, !less && !more, less || more, less, more};
    return results[which];
}

static ev_status read_comparison(reader *r, expr_value *out) {
    EV_TRY(read_sum(r, out));
    for (size_t i = 0; i < sizeof COMPARISONS / sizeof COMPARISONS[0]; i++) {
        if (accept(r, COMPARISONS[i])) {
            expr_value right;
            EV_TRY(read_sum(r, &right));
            *out = expr_of_whole(compare(i, *out, right));
            return EV_OK;
        }
    }
    return EV_OK;
}

/* The whole text. */
static ev_status read_text(reader *r, expr_value *out) {
    EV_TRY(read_comparison(r, out));
    skip_space(r);
    if (*r->at != '\0')
        return fail_at(r, r->at, "expected an operator or the end here");
    return EV_OK;
}

ev_status expr_eval(const char *text, const expr_scope *scope, expr_value *out, ev_error *err) {
    reader r = {.text = text, .at = text, .scope = scope, .err = err};
    expr_value value;
    EV_TRY(read_text(&r, &value));
    *out = value;
    return EV_OK;
}

ev_status expr_eval_whole(const char *text, const expr_scope *scope, int64_t low, int64_t high,
                          int64_t *out, ev_error *err) {
    expr_value value;
    EV_TRY(expr_eval(text, scope, &value, err));
    if (value.is_real)
        return ev_fail(err, EV_BAD, "expression \"%.200s\" is %.17g; a whole number is needed",
                       text, value.real);
    if (value.whole < low || value.whole > high)
        return ev_fail(err, EV_BAD, "expression \"%.200s\" is %lld; it must be in [%lld, %lld]",
                       text, (long long)value.whole, (long long)low, (long long)high);
    *out = value.whole;
    return EV_OK;
}

/* Least and greatest value of an integer type, as far as 64 signed bits hold them. */
static void integer_range(ev_type type, int64_t *low, int64_t *high) {
    unsigned bits = (unsigned)ev_type_bytes(type) * 8;
    bool is_signed = ev_type_is_signed(type);
    *high = bits == 64 ? INT64_MAX : (INT64_C(1) << (is_signed ? bits - 1 : bits)) - 1;
    *low = is_signed ? -*high - 1 : 0;
}

ev_status expr_eval_as(const char *text, ev_type type, const expr_scope *scope, expr_value *out,
                       ev_error *err) {
    if (!ev_type_is_float(type)) {
        int64_t low = 0, high = 0, value = 0;
        integer_range(type, &low, &high);
        EV_TRY(expr_eval_whole(text, scope, low, high, &value, err));
        *out = expr_of_whole(value);
        return EV_OK;
    }
    expr_value value;
    EV_TRY(expr_eval(text, scope, &value, err));
    double held = 0;
    ev_type_set(type, &held, 0, value.real);
    double rounded = ev_type_get(type, &held, 0);
    if (!isfinite(rounded))
        return ev_fail(err, EV_BAD, "expression \"%.200s\" is %.17g, which %s cannot hold", text,
                       value.real, ev_type_name(type));
    *out = expr_of_real(rounded);
    return EV_OK;
}

/* ---- names without values ----------------------------------------------------------------------
 */

bool expr_is_name(const char *text) {
    size_t length = word_length(text);
    return length > 0 && text[length] == '\0';
}

ev_status expr_check(const char *text, const expr_names *names, bool *constant, ev_error *err) {
    reader r = {.text = text, .at = text, .names = names, .err = err};
    expr_value ignored;
    EV_TRY(read_text(&r, &ignored));
    *constant = !r.uses_names;
    return EV_OK;
}

bool expr_uses(const char *text, const char *name) {
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    for (const char *at = text; *at != '\0';) {
        size_t length = strspn(at, word);
        bool led = length > 0 && !isdigit((unsigned char)*at);
        if (led && strlen(name) == length && strncmp(at, name, length) == 0)
            return true;
        at += length > 0 ? length : 1;
    }
    return false;
}

void expr_print_values(const char *text, const expr_scope *scope, ev_str *out) {
    const char *between = "";
    for (size_t i = 0; i < scope->count; i++) {
        const expr_name *n = &scope->names[i];
        if (expr_scope_find(scope, n->name) != n || !expr_uses(text, n->name))
            continue;
        if (n->value.is_real)
            ev_str_printf(out, "%s%s = %.9g", between, n->name, n->value.real);
        else
            ev_str_printf(out, "%s%s = %lld", between, n->name, (long long)n->value.whole);
        between = ", ";
    }
}
