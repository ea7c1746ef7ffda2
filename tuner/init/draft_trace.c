/* Scalars and geometry of a draft from the launches of a program. */
#include "tuner/init/draft_trace.h"

#include "base/source/mangled.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REASONS_MOST = 3 };

/* ---- names and expressions ---- */

static bool is_named(const draft_trace *dt, const char *name) {
    bool is = false;
    for (size_t i = 0; i < dt->name_count; i++)
        is |= strcmp(dt->names[i], name) == 0;
    for (size_t i = 0; i < dt->d->argument_count; i++)
        is |= strcmp(dt->d->arguments[i].name, name) == 0;
    for (size_t i = 0; i < dt->d->macro_count; i++)
        is |= strcmp(dt->d->macros[i].name, name) == 0;
    return is;
}

const char *draft_trace_name(draft_trace *dt, const char *wanted) {
    if (dt->name_count == TRACED_NAMES)
        return NULL;
    const char *name = ev_arena_strdup(dt->d->t->arena, wanted);
    while (name != NULL && is_named(dt, name))
        name = ev_arena_printf(dt->d->t->arena, "%s_", name);
    dt->names[dt->name_count++] = name;
    return name;
}

bool draft_trace_value(const draft_trace *dt, const traced_case *c, const char *expression,
                       int64_t *out) {
    expr_name names[TRACED_NAMES + DRAFT_MACROS];
    size_t count = 0;
    ev_error err;
    for (size_t i = 0; i < dt->name_count; i++)
        names[count++] = (expr_name){dt->names[i], c->values[i]};
    for (size_t i = 0; i < dt->d->macro_count; i++)
        names[count++] = (expr_name){dt->d->macros[i].name, expr_of_whole(dt->d->macros[i].value)};
    expr_scope scope = {names, count};
    return expression != NULL &&
           expr_eval_whole(expression, &scope, 0, INT64_C(1) << 40, out, &err) == EV_OK;
}

/* ---- what a launch says ---- */

static bool is_signed(ev_type type) {
    return ev_type_name(type)[0] == 's';
}

/* The scalar that a launch gave; false: a task cannot have the value. */
static bool scalar_of(const draft_argument *a, const trace_launch *l, expr_value *out) {
    const unsigned char *at = l->values + l->parameters[a->parameter][0] + a->offset;
    size_t bytes = ev_type_bytes(a->type);
    uint64_t bits = 0;
    memcpy(&bits, at, bytes);
    if (ev_type_is_float(a->type)) {
        *out = expr_of_real(ev_type_get(a->type, at, 0));
        return isfinite(out->real);
    }
    uint64_t sign = UINT64_C(1) << (8 * bytes - 1);
    bool is_below = is_signed(a->type) && (bits & sign) != 0;
    *out = expr_of_whole((int64_t)(is_below && bytes < 8 ? bits - 2 * sign : bits));
    return is_signed(a->type) || bits <= INT64_MAX;
}

static uint64_t address_of(const draft_argument *a, const trace_launch *l) {
    uint64_t address = 0;
    memcpy(&address, l->values + l->parameters[a->parameter][0] + a->offset, sizeof address);
    return address;
}

/* The part of a launch that holds an address; SIZE_MAX: none. */
static size_t part_of(const trace_launch *l, uint64_t address) {
    for (size_t i = 0; i < l->part_count; i++) {
        const trace_part *p = &l->parts[i];
        if (p->variable == NULL && address >= p->address && address - p->address < p->bytes)
            return i;
    }
    return SIZE_MAX;
}

/* Buffers that share an allocation end where the next begins. */
static bool find_buffer(const draft *d, size_t index, const trace_launch *l, traced_buffer *out) {
    const draft_argument *a = &d->arguments[index];
    uint64_t address = address_of(a, l);
    size_t part = part_of(l, address);
    if (part == SIZE_MAX)
        return false;
    uint64_t end = l->parts[part].address + l->parts[part].bytes;
    for (size_t i = 0; i < d->argument_count; i++) {
        uint64_t other = address_of(&d->arguments[i], l);
        if (d->arguments[i].kind != DRAFT_SCALAR && other > address && other < end)
            end = other;
    }
    *out = (traced_buffer){.part = part,
                           .offset = address - l->parts[part].address,
                           .elements = (end - address) / (ev_type_bytes(a->type) * a->lanes)};
    return out->elements > 0;
}

/* "_ZN3ops6kernelE" and "kernel" are the variable "kernel". */
static bool is_variable(const char *in_ptx, const char *name) {
    return strcmp(in_ptx, name) == 0 ||
           (strncmp(in_ptx, "_Z", 2) == 0 && ev_mangled_find(in_ptx, name) != NULL);
}

static void find_symbols(const draft *d, traced_case *c) {
    for (size_t s = 0; s < d->symbol_count; s++) {
        const draft_symbol *of = &d->symbols[s];
        uint64_t bytes = (uint64_t)of->count * of->lanes * ev_type_bytes(of->type);
        c->symbols[s] = SIZE_MAX;
        for (size_t i = 0; i < c->launch->part_count; i++) {
            const trace_part *p = &c->launch->parts[i];
            if (p->variable != NULL && p->bytes >= bytes && is_variable(p->variable, of->name))
                c->symbols[s] = i;
        }
    }
}

/* Why a launch can be no case; "": it can. */
static void reason_against(const draft *d, traced_case *c, char *out, size_t room) {
    const trace_launch *l = c->launch;
    expr_value value;
    out[0] = '\0';
    if (l->result != 0)
        (void)snprintf(out, room, "it ended with error %d of the driver", l->result);
    for (size_t i = 0; i < d->argument_count && out[0] == '\0'; i++) {
        const draft_argument *a = &d->arguments[i];
        if (a->kind == DRAFT_SCALAR && !scalar_of(a, l, &value))
            (void)snprintf(out, room, "%s has a value that no task can have", a->name);
        if (a->kind != DRAFT_SCALAR && !find_buffer(d, i, l, &c->buffers[i]))
            (void)snprintf(out, room, "%s is the address 0x%" PRIx64 ", and no buffer is there",
                           a->name, address_of(a, l));
    }
    find_symbols(d, c);
    for (size_t s = 0; s < d->symbol_count && out[0] == '\0'; s++) {
        if (c->symbols[s] == SIZE_MAX)
            (void)snprintf(out, room,
                           "the program's module has no variable %s of %" PRId64 " elements",
                           d->symbols[s].name, d->symbols[s].count);
    }
}

static bool has_layout(const draft *d, const trace_launch *l) {
    size_t last = d->argument_count > 0 ? d->arguments[d->argument_count - 1].parameter + 1 : 0;
    bool same = l->parameter_count == last;
    for (size_t i = 0; same && i < d->argument_count; i++) {
        const draft_argument *a = &d->arguments[i];
        uint32_t plain = a->kind == DRAFT_SCALAR ? (uint32_t)ev_type_bytes(a->type) : 8;
        same = l->parameters[a->parameter][1] == (a->owner != NULL ? a->struct_bytes : plain);
    }
    return same;
}

static ev_status fail_layout(const draft *d, const trace_launch *l, ev_error *err) {
    ev_str text = EV_STR_EMPTY;
    for (size_t i = 0; i < l->parameter_count; i++)
        ev_str_printf(&text, "%s%u", i > 0 ? ", " : "", l->parameters[i][1]);
    ev_status status =
        ev_fail(err, EV_BAD,
                "the program's kernel %s has parameters of %s bytes, and %s of the source has "
                "others; give the source that the program was made of",
                l->kernel, ev_str_text(&text), d->kernel->name);
    ev_str_free(&text);
    return status;
}

/* Whether a recorded kernel is the draft's instance of a template, spaces aside. */
static bool is_instance(const draft *d, const trace_launch *l) {
    char *text = draft_instance_of(l->kernel, d->kernel->name);
    const char *a = text, *b = d->instance != NULL ? strstr(d->instance, d->kernel->name) : NULL;
    while (a != NULL && b != NULL && *a != '\0') {
        a += *a == ' ';
        b += *b == ' ';
        if (*a++ != *b++)
            a = NULL;
    }
    bool is = a != NULL && b != NULL && *b == '\0';
    free(text);
    return is;
}

/* The recorded kernel: the first of the draft's instance, else the first with the source's
 * parameters. */
static const char *choose_kernel(draft *d, const trace *t) {
    const char *chosen = NULL;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < t->count && chosen == NULL; i++) {
            const trace_launch *l = &t->launches[i];
            if (has_layout(d, l) && (pass > 0 || is_instance(d, l)))
                chosen = l->kernel;
        }
    }
    bool is_noted = chosen == NULL;
    for (size_t i = 0; i < t->count && !is_noted; i++) {
        is_noted = strcmp(t->launches[i].kernel, chosen) != 0;
        if (is_noted)
            draft_note(d, "the program launches %s, too; the task is of %s", t->launches[i].kernel,
                       chosen);
    }
    return chosen;
}

ev_status draft_trace_begin(draft *d, const trace *t, draft_trace *out, ev_error *err) {
    char reason[300], first[300] = "";
    uint64_t first_number = 0;
    size_t against = 0;
    *out = (draft_trace){.d = d, .cases = calloc(TRACED_CASES, sizeof(traced_case))};
    if (out->cases == NULL)
        return ev_fail_memory(err, TRACED_CASES * sizeof(traced_case));
    const char *kernel = choose_kernel(d, t);
    if (kernel == NULL)
        return fail_layout(d, &t->launches[0], err);
    for (size_t i = 0; i < t->count && out->count < TRACED_CASES; i++) {
        traced_case *c = &out->cases[out->count];
        *c = (traced_case){.launch = &t->launches[i]};
        if (strcmp(c->launch->kernel, kernel) != 0)
            continue;
        reason_against(d, c, reason, sizeof reason);
        out->count += reason[0] == '\0';
        if (reason[0] == '\0')
            continue;
        if (against++ < REASONS_MOST)
            draft_note(d, "launch %" PRIu64 " is left out: %s", c->launch->number, reason);
        if (against == 1) {
            memcpy(first, reason, sizeof first);
            first_number = c->launch->number;
        }
    }
    if (out->count > 0)
        return EV_OK;
    return ev_fail(err, EV_BAD,
                   "no launch of %s can be a case: of launch %" PRIu64 ", %s; a task has buffers "
                   "and finite numbers",
                   kernel, first_number, first);
}

void draft_trace_free(draft_trace *dt) {
    for (size_t i = 0; i < dt->count; i++) {
        traced_case *c = &dt->cases[i];
        for (size_t k = 0; k < c->launch->part_count; k++) {
            if (c->before != NULL)
                free(c->before[k]);
            if (c->after != NULL)
                free(c->after[k]);
        }
        free(c->before);
        free(c->after);
    }
    free(dt->cases);
    *dt = (draft_trace){0};
}

/* ---- scalars ---- */

static bool is_same_in_all(const draft_trace *dt, const draft_argument *a) {
    expr_value first, value;
    bool same = scalar_of(a, dt->cases[0].launch, &first);
    for (size_t i = 1; same && i < dt->count; i++)
        same = scalar_of(a, dt->cases[i].launch, &value) && value.whole == first.whole &&
               !(value.real < first.real) && !(value.real > first.real);
    return same;
}

void draft_trace_real(ev_type type, double value, ev_str *out) {
    char text[64];
    for (int digits = 6; digits <= 17; digits++) {
        double back = 0;
        (void)snprintf(text, sizeof text, "%.*g", digits, value);
        ev_type_set(type, &back, 0, strtod(text, NULL));
        back = ev_type_get(type, &back, 0);
        if (!(back < value) && !(back > value))
            break;
    }
    ev_str_append(out, text);
}

static const char *text_of(const draft_trace *dt, const draft_argument *a, const expr_value *v) {
    ev_arena *arena = dt->d->t->arena;
    if (!v->is_real)
        return ev_arena_printf(arena, "%" PRId64, v->whole);
    ev_str text = EV_STR_EMPTY;
    draft_trace_real(a->type, v->real, &text);
    const char *kept = ev_arena_strdup(arena, ev_str_text(&text));
    ev_str_free(&text);
    return kept;
}

/* Sizes are the whole numbers that the kernel gets; names that the source's host code has beside
 * them have no value here. */
static void keep_sizes(draft_trace *dt) {
    draft *d = dt->d;
    size_t kept = 0;
    for (size_t s = 0; s < d->size_count; s++) {
        for (size_t i = 0; i < d->argument_count; i++) {
            const draft_argument *a = &d->arguments[i];
            bool is_size = a->kind == DRAFT_SCALAR && a->value == NULL;
            if (!is_size || strcmp(a->name, d->sizes[s].name) != 0)
                continue;
            expr_value value = {0};
            for (size_t k = 0; k < dt->count; k++) {
                (void)scalar_of(a, dt->cases[k].launch, &value);
                dt->cases[k].values[kept] = value;
            }
            dt->names[kept] = a->name;
            d->sizes[kept] = d->sizes[s];
            d->sizes[kept].value = value.whole > 0 ? value.whole : DRAFT_UNKNOWN;
            kept++;
            break;
        }
    }
    d->size_count = dt->name_count = kept;
}

/* A number below 1 in all launches is no size. */
static void fix_scalars(draft_trace *dt) {
    for (size_t i = 0; i < dt->d->argument_count; i++) {
        draft_argument *a = &dt->d->arguments[i];
        expr_value value;
        if (a->kind != DRAFT_SCALAR || !scalar_of(a, dt->cases[0].launch, &value))
            continue;
        bool is_no_size = !value.is_real && value.whole < 1 && is_same_in_all(dt, a);
        if (a->value != NULL || is_no_size)
            a->value = text_of(dt, a, &value);
        a->is_said = true;
    }
}

void draft_trace_vary(draft_trace *dt) {
    for (size_t i = 0; i < dt->d->argument_count; i++) {
        draft_argument *a = &dt->d->arguments[i];
        if (a->kind != DRAFT_SCALAR || a->value == NULL || is_same_in_all(dt, a) ||
            dt->name_count == TRACED_NAMES)
            continue;
        for (size_t k = 0; k < dt->count; k++)
            (void)scalar_of(a, dt->cases[k].launch, &dt->cases[k].values[dt->name_count]);
        dt->names[dt->name_count++] = a->name;
        a->value = NULL;
    }
}

/* ---- geometry ---- */

static int64_t dimension_of(const traced_case *c, int which) {
    if (which < 3)
        return c->launch->grid[which];
    return which < 6 ? c->launch->block[which - 3] : c->launch->shared;
}

static const char *expression_of(const draft *d, int which) {
    if (which == 6)
        return d->shared != NULL ? d->shared : "0";
    const char *text = which < 3 ? d->grid[which] : d->block[which - 3];
    return text != NULL ? text : "1";
}

static bool fits(const draft_trace *dt, int which, const char *expression) {
    bool all = true;
    for (size_t i = 0; all && i < dt->count; i++) {
        int64_t value = 0;
        all = draft_trace_value(dt, &dt->cases[i], expression, &value) &&
              value == dimension_of(&dt->cases[i], which);
    }
    return all;
}

static bool is_constant(const draft_trace *dt, int which) {
    bool same = true;
    for (size_t i = 1; i < dt->count; i++)
        same &= dimension_of(&dt->cases[i], which) == dimension_of(&dt->cases[0], which);
    return same;
}

/* ceil_div(n, 4 * 256), of one size or the product of two. NULL: none fits. */
static const char *divided(const draft_trace *dt, int which) {
    const draft *d = dt->d;
    ev_arena *arena = d->t->arena;
    for (size_t a = 0; a < d->size_count; a++) {
        for (size_t b = a; b <= d->size_count; b++) {
            const char *size = d->sizes[a].name;
            if (b > a)
                size = ev_arena_printf(arena, "%s * %s", size, d->sizes[b - 1].name);
            if (fits(dt, which, size))
                return size;
            for (int axis = 0; axis < 3; axis++) {
                for (int items = 1; items <= 16; items *= 2) {
                    int64_t block = dimension_of(&dt->cases[0], 3 + axis) * items;
                    const char *text =
                        ev_arena_printf(arena, "ceil_div(%s, %" PRId64 ")", size, block);
                    if (is_constant(dt, 3 + axis) && block > 1 && fits(dt, which, text))
                        return text;
                }
            }
        }
    }
    return NULL;
}

/* A multiple of a size: the bytes of shared memory. */
static const char *multiplied(const draft_trace *dt, int which) {
    for (size_t i = 0; i < dt->d->size_count; i++) {
        int64_t size = dt->cases[0].values[i].whole, value = dimension_of(&dt->cases[0], which);
        if (size < 1 || value % size != 0)
            continue;
        const char *text = ev_arena_printf(dt->d->t->arena, "%" PRId64 " * %s", value / size,
                                           dt->d->sizes[i].name);
        if (fits(dt, which, text))
            return text;
    }
    return NULL;
}

/* An expression for a dimension; else a name of the shape. */
static const char *find_dimension(draft_trace *dt, int which) {
    static const char *const names[TRACED_DIMENSIONS] = {
        "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "shared_bytes"};
    bool same = is_constant(dt, which);
    int64_t value = dimension_of(&dt->cases[0], which);
    const char *found = which < 3 && !(same && value == 1) ? divided(dt, which) : NULL;
    if (found == NULL && same)
        return ev_arena_printf(dt->d->t->arena, "%" PRId64, value);
    if (found == NULL && which >= 3)
        found = multiplied(dt, which);
    if (found != NULL)
        return found;
    size_t at = dt->name_count;
    found = draft_trace_name(dt, names[which]);
    for (size_t i = 0; found != NULL && i < dt->count; i++)
        dt->cases[i].values[at] = expr_of_whole(dimension_of(&dt->cases[i], which));
    return found;
}

static void set_dimension(draft *d, int which, const char *text) {
    if (which == 6)
        d->shared = strcmp(text, "0") == 0 ? NULL : text;
    else if (which < 3)
        d->grid[which] = text;
    else
        d->block[which - 3] = text;
}

static void shorten(const char *texts[3]) {
    for (int i = 2; i > 0 && texts[i] != NULL && strcmp(texts[i], "1") == 0; i--)
        texts[i] = NULL;
}

/* Keeps the source's expressions where they give what the launches had. */
static void set_geometry(draft_trace *dt) {
    draft *d = dt->d;
    bool all = true, kept[TRACED_DIMENSIONS];
    for (int i = 0; i < TRACED_DIMENSIONS; i++) {
        kept[i] = fits(dt, i, expression_of(d, i));
        all &= kept[i];
    }
    if (all)
        return;
    draft_drop_macros(d);
    for (int i = TRACED_DIMENSIONS - 1; i >= 0; i--) { /* the grid is made of the block */
        const char *text = kept[i] ? expression_of(d, i) : find_dimension(dt, i);
        if (text != NULL)
            set_dimension(d, i, text);
    }
    shorten(d->grid);
    shorten(d->block);
}

void draft_trace_apply(draft_trace *dt) {
    fix_scalars(dt);
    keep_sizes(dt);
    set_geometry(dt);
}
