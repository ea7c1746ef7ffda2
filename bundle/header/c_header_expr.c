/* Expressions as C: by recursive descent, a function a level of precedence, as base/expr.c
 * evaluates them. The text has passed expr_check, so that only what is right is read here. */
#include "bundle/header/c_header.h"

#include "base/expr.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct translation {
    const char *at;
} translation;

/* A malloc'ed text that stands for a value; NULL: out of memory. */
static char *read_comparison(translation *t);

static void skip_space(translation *t) {
    while (*t->at == ' ' || *t->at == '\t')
        t->at++;
}

static bool accept(translation *t, const char *token) {
    skip_space(t);
    size_t length = strlen(token);
    if (strncmp(t->at, token, length) != 0)
        return false;
    t->at += length;
    return true;
}

/* Frees both. */
static char *call(const char *function, char op, char *left, char *right, const char *end) {
    ev_str text = EV_STR_EMPTY;
    if (left != NULL && right != NULL)
        ev_str_printf(&text, "%s('%c', %s, %s%s)", function, op, left, right, end);
    free(left);
    free(right);
    return ev_str_take(&text);
}

static char *apply(char op, char *left, char *right) {
    return call("evoke_h_op", op, left, right, ", &bad");
}

static char *made(const char *format, const char *text, size_t length) {
    ev_str out = EV_STR_EMPTY;
    ev_str_append(&out, format);
    ev_str_append_n(&out, text, length);
    return ev_str_take(&out);
}

static char *close_number(char *text) {
    ev_str out = EV_STR_EMPTY;
    if (text != NULL)
        ev_str_printf(&out, "%s)", text);
    free(text);
    return ev_str_take(&out);
}

static char *read_number(translation *t) {
    const char *start = t->at;
    char *end = NULL;
    size_t digits = strspn(start, "0123456789");
    bool is_real = start[digits] != '\0' && strchr(".eE", start[digits]) != NULL;
    if (is_real)
        (void)strtod(start, &end);
    else
        (void)strtoll(start, &end, 10);
    t->at = end;
    if (is_real)
        return close_number(made("evoke_h_real(", start, (size_t)(end - start)));
    while (*start == '0' && end - start > 1) /* C would read it as octal */
        start++;
    return close_number(close_number(made("evoke_h_whole(INT64_C(", start, (size_t)(end - start))));
}

static char *read_call(translation *t, const char *name, size_t length) {
    static const struct {
        const char *name;
        char op;
    } functions[] = {{"ceil_div", 'c'}, {"min", 'm'}, {"max", 'M'}, {"div", '/'}, {"pow", 'p'}};
    char op = '/';
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (strlen(functions[i].name) == length && strncmp(functions[i].name, name, length) == 0)
            op = functions[i].op;
    }
    char *left = read_comparison(t);
    (void)accept(t, ",");
    char *right = read_comparison(t);
    (void)accept(t, ")");
    return apply(op, left, right);
}

static char *read_primary(translation *t) {
    skip_space(t);
    if (isdigit((unsigned char)*t->at) || *t->at == '.')
        return read_number(t);
    if (accept(t, "(")) {
        char *inside = read_comparison(t);
        (void)accept(t, ")");
        return inside;
    }
    const char *name = t->at;
    size_t length = expr_name_length(name);
    t->at += length;
    if (accept(t, "("))
        return read_call(t, name, length);
    char *variable = made("v_", name, length);
    for (char *dot = variable; dot != NULL && (dot = strchr(dot, '.')) != NULL;)
        *dot = '_';
    return variable;
}

static char *read_unary(translation *t) {
    if (!accept(t, "-"))
        return read_primary(t);
    return apply('-', made("evoke_h_whole(0)", "", 0), read_unary(t));
}

static char *read_product(translation *t) {
    char *left = read_unary(t);
    for (;;) {
        skip_space(t);
        char op = *t->at;
        if (op == '\0' || strchr("*/%", op) == NULL)
            return left;
        t->at++;
        left = apply(op, left, read_unary(t));
    }
}

static char *read_sum(translation *t) {
    char *left = read_product(t);
    for (;;) {
        skip_space(t);
        char op = *t->at;
        if (op != '+' && op != '-')
            return left;
        t->at++;
        left = apply(op, left, read_product(t));
    }
}

static char *read_comparison(translation *t) {
    static const struct {
        const char *token;
        char op;
    } tokens[] = {{"<=", 'l'}, {">=", 'g'}, {"==", 'e'}, {"!=", 'n'}, {"<", '<'}, {">", '>'}};
    char *left = read_sum(t);
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        if (accept(t, tokens[i].token))
            return call("evoke_h_compare", tokens[i].op, left, read_sum(t), "");
    }
    return left;
}

ev_status c_header_expr(const char *text, const expr_names *names, ev_str *out, ev_error *err) {
    bool is_constant = false;
    translation t = {text};
    EV_TRY(expr_check(text, names, &is_constant, err));
    char *c = read_comparison(&t);
    if (c == NULL)
        return ev_fail_memory(err, strlen(text));
    ev_str_append(out, c);
    free(c);
    return EV_OK;
}
