/* The numbers that the source's launch gives to the scalars of a kernel: literals, constants,
 * macros, local variables, and fields of a struct that the host fills. */
#include "tuner/init/draft.h"

#include <math.h>

enum { FIELDS = DRAFT_ARGUMENTS };

/* "p.n = VALUE;" nearest before the launch; an empty range: none. */
static cuda_range assigned(const draft *d, const char *variable, const char *field) {
    const cuda_text *t = d->t;
    cuda_range found = {0, 0};
    for (size_t i = d->launch->within != NULL ? d->launch->within->body.first : 0;
         i + 4 < d->launch->token; i++) {
        if (!cuda_token_is(t, i, variable) || !cuda_token_is(t, i + 1, ".") ||
            !cuda_token_is(t, i + 2, field) || !cuda_token_is(t, i + 3, "="))
            continue;
        size_t end = i + 4;
        while (end < t->token_count && !cuda_token_is(t, end, ";"))
            end = t->tokens[end].match != 0 ? t->tokens[end].match + 1 : end + 1;
        found = (cuda_range){i + 4, end};
    }
    return found;
}

/* Number of a field among those of its struct. */
static size_t field_number(const draft *d, const draft_argument *a) {
    size_t number = 0;
    for (const draft_argument *b = d->arguments; b < a; b++)
        number += b->parameter == a->parameter;
    return number;
}

/* The part of "{256, 0.5f}" that a field gets, in the order of the fields or by ".n ="; an empty
 * range: none. */
static cuda_range part_of(const draft *d, const draft_argument *a, size_t open) {
    const cuda_text *t = d->t;
    cuda_range parts[FIELDS], none = {0, 0};
    size_t count =
        cuda_range_split(t, (cuda_range){open + 1, t->tokens[open].match}, parts, FIELDS);
    for (size_t i = 0; i < count && i < FIELDS; i++) {
        size_t first = parts[i].first;
        if (cuda_token_is(t, first, ".") && cuda_token_is(t, first + 1, a->field) &&
            cuda_token_is(t, first + 2, "="))
            return (cuda_range){first + 3, parts[i].end};
        if (cuda_token_is(t, first, ".") || cuda_token_is(t, first, "{"))
            count = 0;
    }
    size_t number = field_number(d, a);
    return number < count && number < FIELDS ? parts[number] : none;
}

/* What the host puts into a field of the struct that it gives to the launch. */
static cuda_range field_value(const draft *d, const draft_argument *a, cuda_range given) {
    const cuda_text *t = d->t;
    cuda_range found = {0, 0};
    for (size_t i = given.first; i < given.end && i < given.first + 2; i++) { /* Params{1, 2} */
        if (cuda_token_is(t, i, "{"))
            return part_of(d, a, i);
    }
    if (given.end != given.first + 1)
        return found;
    const char *variable = cuda_token_text(t, given.first);
    found = assigned(d, variable, a->field);
    for (size_t i = 1; i + 2 < d->launch->token && found.end == 0; i++) {
        size_t open = i + 1 + cuda_token_is(t, i + 1, "=");
        if (cuda_token_is(t, i, variable) && t->tokens[i - 1].kind == CUDA_TOKEN_NAME &&
            cuda_token_is(t, open, "{"))
            found = part_of(d, a, open);
    }
    return found;
}

bool draft_value(draft *d, cuda_range range, double *value) {
    const expr_scope none = {0};
    expr_value found;
    ev_error ignored;
    d->reading = DRAFT_VALUE;
    const char *text = draft_expression(d, range, 0);
    d->reading = DRAFT_ELSE;
    if (text == NULL || expr_eval(text, &none, &found, &ignored) != EV_OK)
        return false;
    *value = found.real;
    return isfinite(found.real);
}

bool draft_launch_value(draft *d, const draft_argument *a, double *value) {
    cuda_range parts[DRAFT_ARGUMENTS];
    if (d->launch == NULL)
        return false;
    size_t count = cuda_range_split(d->t, d->launch->arguments, parts, DRAFT_ARGUMENTS);
    if (a->parameter >= count || count > DRAFT_ARGUMENTS)
        return false;
    cuda_range given = parts[a->parameter];
    return draft_value(d, a->owner != NULL ? field_value(d, a, given) : given, value);
}
