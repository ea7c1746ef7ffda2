/* Host code as expressions of task.json: sizes of a grid, by the definitions of its names.
 *
 * A name is, in this order: an argument of the launch (it becomes the kernel's parameter), a
 * tunable macro, a local or global variable with an initial value, a macro; else a name of the
 * shape. Casts are left out, for sizes are whole numbers. Where a number is asked for
 * (DRAFT_VALUE), a name is the nearest value before the launch that is a number. */
#include "tuner/init/draft.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 6 };

static bool translate(draft *d, const cuda_text *t, cuda_range range, int depth, ev_str *out);

/* The kernel's parameter that the launch gives this variable to; NULL: none. */
static const char *parameter_of(const draft *d, const char *name) {
    cuda_range parts[DRAFT_ARGUMENTS];
    if (d->launch == NULL)
        return NULL;
    size_t count = cuda_range_split(d->t, d->launch->arguments, parts, DRAFT_ARGUMENTS);
    for (size_t i = 0; i < d->argument_count; i++) {
        const draft_argument *a = &d->arguments[i];
        bool is_whole = a->kind == DRAFT_SCALAR && !ev_type_is_float(a->type) && a->owner == NULL;
        if (!is_whole || a->parameter >= count)
            continue;
        cuda_range given = parts[a->parameter];
        if (given.end == given.first + 1 && cuda_token_is(d->t, given.first, name))
            return a->name;
    }
    return NULL;
}

/* The whole number that a member of a variable is, where the launch gives the variable to a struct
 * of the kernel; without a launch, where it is the parameter. NULL: none. */
static const char *field_of(const draft *d, const char *variable, const char *member) {
    cuda_range parts[DRAFT_ARGUMENTS];
    size_t count = 0;
    if (d->launch != NULL)
        count = cuda_range_split(d->t, d->launch->arguments, parts, DRAFT_ARGUMENTS);
    for (size_t i = 0; i < d->argument_count; i++) {
        const draft_argument *a = &d->arguments[i];
        if (a->owner == NULL || strcmp(a->field, member) != 0 || a->kind != DRAFT_SCALAR ||
            ev_type_is_float(a->type) || (d->launch != NULL && a->parameter >= count))
            continue;
        if (d->launch != NULL ? cuda_token_is(d->t, parts[a->parameter].first, variable)
                              : strcmp(a->owner, variable) == 0)
            return a->name;
    }
    return NULL;
}

static size_t launch_token(const draft *d) {
    return d->launch != NULL ? d->launch->token : d->t->token_count;
}

/* The value of a variable, "= VALUE" or "(VALUE)" or "{VALUE}" behind its name, nearest before the
 * token; an empty range: none. */
static cuda_range value_before(const draft *d, const char *name, size_t token) {
    const cuda_text *t = d->t;
    cuda_range found = {0, 0};
    for (size_t i = 1; i + 1 < token; i++) {
        if (!cuda_token_is(t, i, name) || t->tokens[i - 1].kind == CUDA_TOKEN_DIRECTIVE)
            continue;
        const cuda_function *within = NULL;
        for (size_t f = 0; f < t->function_count && within == NULL; f++) {
            if (i >= t->functions[f].whole.first && i < t->functions[f].whole.end &&
                t->functions[f].body.end > t->functions[f].body.first)
                within = &t->functions[f];
        }
        if (within != NULL && (d->launch == NULL || within != d->launch->within))
            continue;
        bool is_declared = t->tokens[i - 1].kind == CUDA_TOKEN_NAME || cuda_token_is(t, i - 1, ",");
        bool opens = cuda_token_is(t, i + 1, "(") || cuda_token_is(t, i + 1, "{");
        if (cuda_token_is(t, i + 1, "=")) {
            size_t end = i + 2;
            while (end < t->token_count && !cuda_token_is(t, end, ";") &&
                   !cuda_token_is(t, end, ",") && !cuda_token_is(t, end, "}")) /* of an enum */
                end = t->tokens[end].match != 0 ? t->tokens[end].match + 1 : end + 1;
            found = (cuda_range){i + 2, end};
        } else if (is_declared && opens && t->tokens[i + 1].match != 0) {
            found = (cuda_range){i + 2, t->tokens[i + 1].match};
        }
    }
    return found;
}

static cuda_range value_of(const draft *d, const char *name) {
    return value_before(d, name, launch_token(d));
}

static bool is_cast_word(const cuda_text *t, size_t at) {
    static const char *const words[] = {"int",    "unsigned", "long",     "float",   "double",
                                        "size_t", "uint",     "uint32_t", "int32_t", "int64_t",
                                        "const",  "uint64_t", "short"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (cuda_token_is(t, at, words[i]))
            return true;
    }
    return false;
}

/* "(int)" at `at`: the token behind it; `at`: no cast. */
static size_t behind_cast(const cuda_text *t, size_t at) {
    if (!cuda_token_is(t, at, "("))
        return at;
    for (size_t i = at + 1; i < t->tokens[at].match; i++) {
        if (!is_cast_word(t, i))
            return at;
    }
    return t->tokens[at].match > at + 1 ? t->tokens[at].match + 1 : at;
}

/* The number of a token; where a value is asked for, a real one and a character, too. */
static bool translate_number(const draft *d, const char *text, ev_str *out) {
    char *end;
    double value = strtod(text, &end);
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        value = (double)strtoull(text, &end, 16);
    end += strspn(end, "uUlLfF");
    if (d->reading == DRAFT_VALUE && text[0] == '\'' && text[1] != '\\' && text[1] != '\0') {
        ev_str_printf(out, "%d", text[1]);
        return text[2] == '\'' && text[3] == '\0';
    }
    bool is_real = text[1] != 'x' && text[1] != 'X' && strpbrk(text, ".eE") != NULL;
    if (d->reading == DRAFT_VALUE && is_real && *end == '\0' && value < 1e300) {
        bool is_whole = value == floor(value) && value < 1e15;
        ev_str_printf(out, is_whole ? "%.1f" : "%.17g", value);
        return true;
    }
    if (*end != '\0' || value < 0 || value > 9e15 || value != (double)(int64_t)value)
        return false;
    ev_str_printf(out, "%lld", (long long)value);
    return true;
}

static bool is_macro_kept(const draft *d, const char *name) {
    for (size_t i = 0; i < d->macro_count; i++) {
        if (strcmp(d->macros[i].name, name) == 0)
            return true;
    }
    return false;
}

static bool translate_text(draft *d, const char *text, int depth, ev_str *out) {
    ev_error err;
    cuda_text *t = NULL;
    if (cuda_text_read(text, strlen(text), &t, &err) != EV_OK)
        return false;
    bool ok = t->is_balanced && translate(d, t, (cuda_range){0, t->token_count}, depth, out);
    cuda_text_free(t);
    return ok;
}

/* A value with brackets around it, unless it is one word. */
static void append_value(const ev_str *value, ev_str *out) {
    const char *text = ev_str_text(value);
    bool is_word = true;
    for (const char *at = text; *at != '\0'; at++)
        is_word &= isalnum((unsigned char)*at) || *at == '_';
    ev_str_printf(out, is_word ? "%s" : "(%s)", text);
}

static bool is_block_name(const draft *d, const char *name) {
    for (size_t i = 0; i < d->block_name_count; i++) {
        if (strcmp(d->block_names[i], name) == 0)
            return true;
    }
    return false;
}

/* Whether the launch's function divides by the name, as in n / (threads * items). */
static bool is_divisor(const draft *d, const char *name) {
    const cuda_text *t = d->t;
    for (size_t i = d->launch->within->body.first; i + 1 < d->launch->within->body.end; i++) {
        size_t first = i + 1, end = t->tokens[i + 1].match;
        for (; cuda_token_is(t, i, "/") && first <= end; first++) {
            if (cuda_token_is(t, first, name))
                return true;
        }
        if (cuda_token_is(t, i, "/") && cuda_token_is(t, i + 1, name))
            return true;
    }
    return false;
}

/* A number that a host function keeps in a variable, and that the grid is made of while the block
 * is not, is a size of the problem, as in `const int rows = 512;`. */
static bool is_problem_size(draft *d, const char *name, cuda_range value) {
    const cuda_function *within = d->launch != NULL ? d->launch->within : NULL;
    bool is_local =
        within != NULL && value.first >= within->body.first && value.end <= within->body.end;
    if (d->reading == DRAFT_BLOCK && is_local && d->block_name_count < DRAFT_MACROS)
        d->block_names[d->block_name_count++] = name;
    bool is_number =
        value.end == value.first + 1 && d->t->tokens[value.first].kind == CUDA_TOKEN_NUMBER;
    return d->reading == DRAFT_GRID && is_local && is_number && !is_block_name(d, name) &&
           !is_divisor(d, name);
}

/* The number of a name. A definition that is no number, as one that reads the command line, gives
 * way to the one before it. */
static bool translate_value(draft *d, const char *name, int depth, ev_str *out) {
    const cuda_macro *macro = cuda_text_macro(d->t, name);
    ev_str text = EV_STR_EMPTY;
    bool ok = false, is_true = strcmp(name, "true") == 0;
    if (is_true || strcmp(name, "false") == 0) {
        ev_str_append(out, is_true ? "1" : "0");
        return true;
    }
    for (size_t token = launch_token(d); !ok && depth < DEEPEST;) {
        cuda_range value = value_before(d, name, token);
        if (value.end <= value.first)
            break;
        ev_str_clear(&text);
        ok = translate(d, d->t, value, depth + 1, &text);
        token = value.first - 1;
    }
    if (!ok && macro != NULL && !macro->has_params) {
        ev_str_clear(&text);
        ok = translate_text(d, macro->value, depth + 1, &text);
    }
    if (ok)
        ev_str_printf(out, "(%s)", ev_str_text(&text));
    ev_str_free(&text);
    return ok;
}

static bool translate_name(draft *d, const char *name, int depth, ev_str *out) {
    if (d->reading == DRAFT_VALUE)
        return translate_value(d, name, depth, out);
    const char *parameter = parameter_of(d, name);
    for (size_t i = 0; parameter == NULL && d->launch == NULL && i < d->argument_count; i++) {
        if (strcmp(d->arguments[i].name, name) == 0)
            parameter = d->arguments[i].name;
    }
    if (parameter != NULL || is_macro_kept(d, name)) {
        ev_str_append(out, parameter != NULL ? parameter : name);
        return true;
    }
    cuda_range value = value_of(d, name);
    const cuda_macro *macro = cuda_text_macro(d->t, name);
    ev_str text = EV_STR_EMPTY;
    bool ok = false;
    bool is_size = value.end > value.first && is_problem_size(d, name, value);
    if (value.end > value.first && !is_size)
        ok = translate(d, d->t, value, depth + 1, &text);
    else if (macro != NULL)
        ok = translate_text(d, macro->value, depth + 1, &text);
    if (ok) {
        append_value(&text, out);
    } else if (macro == NULL) {
        /* A size that the host reads from somewhere. */
        const char *kept = ev_arena_strdup(d->t->arena, name);
        draft_add_size(d, kept, false, DRAFT_UNKNOWN);
        ev_str_append(out, kept);
        ok = true;
    }
    ev_str_free(&text);
    return ok;
}

static bool contains_div(const char *name) {
    for (; *name != '\0'; name++) {
        if (strncasecmp(name, "div", 3) == 0)
            return true;
    }
    return false;
}

/* A call that gives its number another type: __float2half(1.5f). */
static bool is_conversion(const char *name) {
    static const char *const names[] = {
        "__float2half", "__float2half_rn", "__float2bfloat16", "__float2bfloat16_rn",
        "half",         "__half",          "__nv_bfloat16"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

/* ceil(a / b), min(a, b), div_up(a, b) with its brackets at `open`. */
static bool translate_call(draft *d, const cuda_text *t, const char *name, size_t open, int depth,
                           ev_str *out) {
    cuda_range inside = {open + 1, t->tokens[open].match}, parts[3];
    size_t count = cuda_range_split(t, inside, parts, 3);
    ev_type type;
    uint32_t lanes;
    if (strcmp(name, "sizeof") == 0 && t == d->t &&
        draft_type(d, cuda_range_text(t, inside), &type, &lanes)) {
        ev_str_printf(out, "%zu", ev_type_bytes(type) * lanes);
        return true;
    }
    if (d->reading == DRAFT_VALUE && count == 1 && is_conversion(name))
        return translate(d, t, inside, depth + 1, out);
    bool is_least = strcmp(name, "min") == 0 || strcmp(name, "max") == 0;
    if (strcmp(name, "ceil") == 0 || strcmp(name, "ceilf") == 0) {
        size_t slash = inside.first;
        while (slash < inside.end && !cuda_token_is(t, slash, "/"))
            slash = t->tokens[slash].match != 0 ? t->tokens[slash].match + 1 : slash + 1;
        if (slash == inside.end)
            return translate(d, t, inside, depth + 1, out);
        parts[0] = (cuda_range){inside.first, slash};
        parts[1] = (cuda_range){slash + 1, inside.end};
    } else if (count != 2 || !(is_least || contains_div(name))) {
        return false;
    }
    ev_str_printf(out, "%s(", is_least ? name : "ceil_div");
    bool ok = translate(d, t, parts[0], depth + 1, out);
    ev_str_append(out, ", ");
    ok = ok && translate(d, t, parts[1], depth + 1, out);
    ev_str_append(out, ")");
    return ok;
}

/* A field of a struct, or the part x, y or z of a variable of type dim3. */
static bool translate_member(draft *d, const char *name, const char *member, int depth,
                             ev_str *out) {
    const char *parts[3] = {NULL, NULL, NULL};
    const char *field = field_of(d, name, member);
    if (field != NULL) {
        ev_str_append(out, field);
        return true;
    }
    cuda_range value = value_of(d, name);
    size_t part = (size_t)(member[0] - 'x');
    if (part > 2 || member[1] != '\0' || value.end <= value.first ||
        !draft_dimensions(d, value, parts, depth + 1))
        return false;
    ev_str_append(out, parts[part] != NULL ? parts[part] : "1");
    return true;
}

/* The only size of the kernel that the launch gives as this number: in
 * k<<<(100000 + 127) / 128, 128>>>(100000, x), the blocks are made of the first parameter. NULL:
 * none. */
static const char *size_of_literal(const draft *d, const char *literal) {
    enum { LEAST = 64 };
    const char *found = NULL;
    long long value = strtoll(literal, NULL, 10);
    for (size_t i = 0; d->reading == DRAFT_GRID && value >= LEAST && i < d->size_count; i++) {
        if (d->sizes[i].value != value || d->sizes[i].is_small)
            continue;
        if (found != NULL)
            return NULL;
        found = d->sizes[i].name;
    }
    return found;
}

/* One token or group at *at; moves *at behind it. */
static bool translate_one(draft *d, const cuda_text *t, size_t *at, int depth, ev_str *out) {
    size_t i = *at;
    const char *word = ev_arena_strndup(d->t->arena, t->text + t->tokens[i].begin,
                                        t->tokens[i].end - t->tokens[i].begin);
    size_t behind = behind_cast(t, i);
    *at = behind > i ? behind : i + 1;
    if (word == NULL || behind > i)
        return word != NULL;
    const char *size = t->tokens[i].kind == CUDA_TOKEN_NUMBER ? size_of_literal(d, word) : NULL;
    if (size != NULL) {
        ev_str_append(out, size);
        return true;
    }
    if (t->tokens[i].kind == CUDA_TOKEN_NUMBER || t->tokens[i].kind == CUDA_TOKEN_TEXT)
        return translate_number(d, word, out);
    if (t->tokens[i].kind == CUDA_TOKEN_NAME) {
        bool is_local = t == d->t;
        if (strcmp(word, "static_cast") == 0 && cuda_token_is(t, i + 1, "<")) {
            while (*at < t->token_count && !cuda_token_is(t, *at, ">"))
                ++*at;
            ++*at;
            return *at < t->token_count;
        }
        if (cuda_token_is(t, i + 1, "::")) { /* std:: */
            *at = i + 2;
            return true;
        }
        if (is_cast_word(t, i) && cuda_token_is(t, i + 1, "(")) /* float(n) */
            return true;
        if (cuda_token_is(t, i + 1, "(")) {
            *at = t->tokens[i + 1].match + 1;
            return translate_call(d, t, word, i + 1, depth, out);
        }
        if (is_local && cuda_token_is(t, i + 1, ".") && t->tokens[i + 2].kind == CUDA_TOKEN_NAME) {
            *at = i + 3;
            return translate_member(d, word, cuda_token_text(t, i + 2), depth, out);
        }
        return translate_name(d, word, depth, out);
    }
    bool is_left = cuda_token_is(t, i, "<<");
    bool is_right = cuda_token_is(t, i, ">") && cuda_token_is(t, i + 1, ">");
    size_t by = i + 1 + is_right;
    if ((is_left || is_right) && out->length > 0 &&
        t->tokens[by].kind == CUDA_TOKEN_NUMBER) { /* 1 << 20 */
        unsigned long shift = strtoul(t->text + t->tokens[by].begin, NULL, 10);
        *at = by + 1;
        ev_str_printf(out, " %c %llu", is_left ? '*' : '/', shift < 60 ? 1ull << shift : 1ull);
        return true;
    }
    if (cuda_token_is(t, i, "(")) {
        *at = t->tokens[i].match + 1;
        ev_str_append(out, "(");
        bool ok = translate(d, t, (cuda_range){i + 1, t->tokens[i].match}, depth + 1, out);
        ev_str_append(out, ")");
        return ok;
    }
    if (word[1] != '\0' || strchr("+-*/%", word[0]) == NULL)
        return false;
    ev_str_printf(out, " %s ", word);
    return true;
}

/* "argc > 1 ? atoi(argv[1]) : 4096": what stands where nothing is given. */
static cuda_range otherwise(const cuda_text *t, cuda_range range) {
    bool is_choice = false;
    for (size_t i = range.first; i < range.end;) {
        is_choice |= cuda_token_is(t, i, "?");
        if (is_choice && cuda_token_is(t, i, ":"))
            range.first = i + 1;
        i = t->tokens[i].match != 0 ? t->tokens[i].match + 1 : i + 1;
    }
    return range;
}

static bool translate(draft *d, const cuda_text *t, cuda_range range, int depth, ev_str *out) {
    if (d->reading == DRAFT_VALUE)
        range = otherwise(t, range);
    bool ok = depth < DEEPEST && range.end > range.first;
    for (size_t at = range.first; ok && at < range.end;)
        ok = translate_one(d, t, &at, depth, out);
    return ok;
}

/* (n + 256 - 1) / 256 reads better as it stands, and means the same. */
const char *draft_expression(draft *d, cuda_range range, int depth) {
    ev_str text = EV_STR_EMPTY;
    ev_error err;
    bool constant;
    bool ok = translate(d, d->t, range, depth, &text) &&
              expr_check(ev_str_text(&text), NULL, &constant, &err) == EV_OK;
    const char *kept = ok ? ev_arena_strdup(d->t->arena, ev_str_text(&text)) : NULL;
    ev_str_free(&text);
    return kept;
}

int64_t draft_length(draft *d, size_t *at, size_t end) {
    const expr_scope none = {0};
    size_t sizes = d->size_count;
    int64_t length = 1;
    for (; *at < end && cuda_token_is(d->t, *at, "["); *at = d->t->tokens[*at].match + 1) {
        cuda_range inside = {*at + 1, d->t->tokens[*at].match};
        const char *text = draft_expression(d, inside, 0);
        int64_t value = 0;
        ev_error ignored;
        d->size_count = sizes; /* a length is no size of the shape */
        if (text == NULL || expr_eval_whole(text, &none, 1, 65536, &value, &ignored) != EV_OK ||
            (length *= value) > INT64_C(1) << 32)
            return 0;
    }
    return length;
}

bool draft_dimensions(draft *d, cuda_range range, const char *out[3], int depth) {
    const cuda_text *t = d->t;
    if (depth >= DEEPEST || range.end <= range.first)
        return false;
    bool is_one = range.end == range.first + 1;
    if (is_one && t->tokens[range.first].kind == CUDA_TOKEN_NAME &&
        parameter_of(d, cuda_token_text(t, range.first)) == NULL) {
        const char *name = cuda_token_text(t, range.first);
        cuda_range value = value_of(d, name);
        if (value.end > value.first && d->reading == DRAFT_BLOCK &&
            d->block_name_count < DRAFT_MACROS)
            d->block_names[d->block_name_count++] = name;
        if (value.end > value.first &&
            !(d->reading == DRAFT_GRID && is_problem_size(d, name, value)))
            return draft_dimensions(d, value, out, depth + 1);
    }
    cuda_range inside = range;
    bool is_dim3 = cuda_token_is(t, range.first, "dim3");
    size_t open = range.first + is_dim3;
    bool is_group = cuda_token_is(t, open, is_dim3 ? "(" : "{") || cuda_token_is(t, open, "{");
    if (is_group && t->tokens[open].match + 1 == range.end)
        inside = (cuda_range){open + 1, t->tokens[open].match};
    cuda_range parts[3];
    size_t count = cuda_range_split(t, inside, parts, 3);
    for (size_t i = 0; i < count && i < 3; i++) {
        out[i] = draft_expression(d, parts[i], depth + 1);
        if (out[i] == NULL)
            return false;
    }
    return count > 0 && count <= 3;
}
