/* task.json of a draft. The texts in it are names of C and expressions, which need no escapes. */
#include "tuner/init/draft.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const KINDS[] = {"in", "out", "inout", "scalar"};

static const char *generator(ev_type type, bool is_bool) {
    if (is_bool)
        return "{\"generator\": \"uniform\", \"low\": 0, \"high\": 1}";
    return ev_type_is_float(type) ? "{\"generator\": \"uniform\"}"
                                  : "{\"generator\": \"uniform\", \"low\": 0, \"high\": 15}";
}

const char *draft_tolerance_of(ev_type type) {
    if (type == EV_F16 || type == EV_BF16)
        return "2e-3";
    return type == EV_F32 ? "2e-6" : "1e-12";
}

static const char *larger(const char *worst, ev_type type) {
    const char *own = draft_tolerance_of(type);
    return strtod(own, NULL) > strtod(worst, NULL) ? own : worst;
}

/* That of the least precise output. */
static const char *loosest(const draft *d) {
    const char *worst = "1e-12";
    for (size_t i = 0; i < d->argument_count; i++) {
        const draft_argument *a = &d->arguments[i];
        if (a->kind == DRAFT_IN || a->kind == DRAFT_SCALAR)
            continue;
        for (size_t k = 0; a->mixed != NULL && k < a->mixed->count; k++)
            worst = larger(worst, a->mixed->fields[k].type);
        worst = a->mixed == NULL ? larger(worst, a->type) : worst;
    }
    return worst;
}

/* An output that is more precise than the least precise one has a tolerance of its own. */
static void write_tolerance(draft_kind kind, ev_type type, const char *of_task, ev_str *out) {
    const char *own = draft_tolerance_of(type);
    bool is_output = kind == DRAFT_OUT || kind == DRAFT_INOUT;
    if (is_output && ev_type_is_float(type) && strcmp(own, of_task) != 0)
        ev_str_printf(out, ", \"tolerance\": {\"relative_l2\": %s}", own);
}

/* A buffer of structs. Offsets and stride are said, though mostly they are as C has them: they are
 * what a reader looks for. */
static void write_structs(const draft_argument *a, const char *name, const char *tolerance,
                          ev_str *out) {
    const draft_layout *l = a->mixed;
    ev_str_printf(out, "{\"name\": \"%s\", \"kind\": \"%s\", \"count\": \"%s\", \"stride\": %u, ",
                  name, KINDS[a->kind], a->count, l->bytes);
    if (a->align > 0)
        ev_str_printf(out, "\"align\": %u, ", a->align);
    ev_str_append(out, "\"fields\": [\n");
    for (size_t i = 0; i < l->count; i++) {
        const draft_field *f = &l->fields[i];
        ev_str_printf(out, "      {\"name\": \"%s\", \"type\": \"%s", f->name,
                      ev_type_name(f->type));
        if (f->lanes > 1)
            ev_str_printf(out, "x%u", f->lanes);
        ev_str_printf(out, "\", \"offset\": %u", f->offset);
        if (f->count > 1)
            ev_str_printf(out, ", \"count\": %u", f->count);
        if (a->kind != DRAFT_OUT)
            ev_str_printf(out, ", \"data\": %s",
                          f->data != NULL ? f->data : generator(f->type, f->is_bool));
        write_tolerance(a->kind, f->type, tolerance, out);
        ev_str_append(out, i + 1 < l->count ? "},\n" : "}\n    ]");
    }
}

static void write_argument(const draft_argument *a, const char *tolerance, ev_str *out) {
    const char *name = a->owner != NULL ? a->field : a->name;
    if (a->mixed != NULL) {
        write_structs(a, name, tolerance, out);
        return;
    }
    ev_str_printf(out, "{\"name\": \"%s\", \"kind\": \"%s\", \"type\": \"%s\"", name,
                  KINDS[a->kind], ev_type_name(a->type));
    if (a->kind == DRAFT_SCALAR && a->value != NULL)
        ev_str_printf(out, ", \"value\": %s", a->value);
    else if (a->kind == DRAFT_SCALAR && strcmp(name, a->name) != 0)
        ev_str_printf(out, ", \"value\": \"%s\"", a->name);
    if (a->kind != DRAFT_SCALAR) {
        bool is_word = strpbrk(a->count, " +-*/") == NULL;
        if (a->lanes > 1)
            ev_str_printf(out, is_word ? ", \"count\": \"%u * %s\"" : ", \"count\": \"%u * (%s)\"",
                          a->lanes, a->count);
        else
            ev_str_printf(out, ", \"count\": \"%s\"", a->count);
        if (a->kind != DRAFT_OUT)
            ev_str_printf(out, ", \"data\": %s",
                          a->data != NULL ? a->data : generator(a->type, a->is_bool));
        if (a->align > 0)
            ev_str_printf(out, ", \"align\": %u", a->align);
    }
    write_tolerance(a->kind, a->type, tolerance, out);
}

/* The fields of a struct stand in its brackets. C places them as `evoke` does, so that only what
 * lies elsewhere needs an offset. */
static void write_arguments(const draft *d, ev_str *out) {
    uint32_t end = 0;
    for (size_t i = 0; i < d->argument_count; i++) {
        const draft_argument *a = &d->arguments[i];
        bool is_first = i == 0 || a[-1].parameter != a->parameter;
        bool is_last = i + 1 == d->argument_count || a[1].parameter != a->parameter;
        uint32_t bytes = a->kind == DRAFT_SCALAR ? (uint32_t)ev_type_bytes(a->type) : 8;
        end = is_first ? 0 : (end + bytes - 1) / bytes * bytes;
        if (a->owner != NULL && is_first)
            ev_str_printf(out,
                          "    {\"name\": \"%s\", \"kind\": \"struct\", \"bytes\": %u, "
                          "\"fields\": [\n",
                          a->owner, a->struct_bytes);
        ev_str_append(out, a->owner != NULL ? "      " : "    ");
        write_argument(a, loosest(d), out);
        if (a->owner != NULL && a->offset != end)
            ev_str_printf(out, ", \"offset\": %u", a->offset);
        end = a->offset + bytes;
        ev_str_append(out, "}");
        if (a->owner != NULL && is_last)
            ev_str_append(out, "\n    ]}");
        ev_str_append(out, i + 1 < d->argument_count ? ",\n" : "\n");
    }
}

static void write_symbols(const draft *d, ev_str *out) {
    for (size_t i = 0; i < d->symbol_count; i++) {
        const draft_symbol *s = &d->symbols[i];
        ev_str_append(out, i == 0 ? "  \"symbols\": [\n" : ",\n");
        ev_str_printf(
            out, "    {\"name\": \"%s\", \"type\": \"%s\", \"count\": %" PRId64 ", \"data\": %s}",
            s->name, ev_type_name(s->type), s->count * s->lanes,
            s->data != NULL ? s->data : generator(s->type, false));
    }
    ev_str_append(out, d->symbol_count > 0 ? "\n  ],\n" : "");
}

static void write_dimensions(const char *key, const char *const texts[3], ev_str *out) {
    size_t count = 1;
    while (count < 3 && texts[count] != NULL)
        count++;
    ev_str_printf(out, ", \"%s\": %s", key, count > 1 ? "[" : "");
    for (size_t i = 0; i < count; i++)
        ev_str_printf(out, "%s\"%s\"", i > 0 ? ", " : "", texts[i]);
    ev_str_append(out, count > 1 ? "]" : "");
}

/* Powers of two around the source's own value, which is among them. */
static void write_values(const draft *d, const draft_macro *m, ev_str *out) {
    int64_t low = m->value > 32 ? 64 : 4, high = m->value > 32 ? 1024 : 32;
    bool is_square = d->block[1] != NULL;
    high = is_square && high > 32 ? 32 : high;
    bool has_own = false;
    const char *comma = "";
    ev_str_append(out, "[");
    for (int64_t v = low; v <= high; v *= 2) {
        if (m->value < v && !has_own) {
            ev_str_printf(out, "%s%" PRId64, comma, m->value);
            has_own = true;
            comma = ", ";
        }
        ev_str_printf(out, "%s%" PRId64, comma, v);
        has_own |= v == m->value;
        comma = ", ";
    }
    if (!has_own)
        ev_str_printf(out, "%s%" PRId64, comma, m->value);
    ev_str_append(out, "]");
}

static void write_start(const draft *d, const char *source, ev_str *out) {
    ev_str_printf(out, "  \"starts\": [\n    {\"name\": \"plain\", \"source\": \"%s\"", source);
    if (d->instance != NULL)
        ev_str_printf(out, ", \"entry\": \"%s\"", d->instance);
    write_dimensions("grid", d->grid, out);
    write_dimensions("block", d->block, out);
    if (d->shared != NULL)
        ev_str_printf(out, ", \"shared\": \"%s\"", d->shared);
    for (size_t i = 0; i < d->macro_count; i++) {
        const draft_macro *m = &d->macros[i];
        ev_str_append(out, i == 0 ? ",\n     \"macros\": [" : ",\n                ");
        ev_str_printf(out, "{\"name\": \"%s\", \"default\": %" PRId64 ", \"values\": ", m->name,
                      m->value);
        write_values(d, m, out);
        ev_str_append(out, "}");
    }
    ev_str_append(out, d->macro_count > 0 ? "]}\n  ],\n" : "}\n  ],\n");
}

void draft_write_case(const draft *d, const char *name, const char *split, const char *use,
                      const int64_t *sizes, const char *more, bool last, ev_str *out) {
    ev_str_printf(out, "    {\"name\": \"%s\", \"split\": \"%s\", \"use\": \"%s\", \"shape\": {",
                  name, split, use);
    for (size_t i = 0; i < d->size_count; i++)
        ev_str_printf(out, "%s\"%s\": %" PRId64, i > 0 ? ", " : "", d->sizes[i].name, sizes[i]);
    ev_str_printf(out, "%s%s}}%s\n", d->size_count > 0 && more[0] != '\0' ? ", " : "", more,
                  last ? "" : ",");
}

static void write_guessed_cases(const draft *d, ev_str *out) {
    draft_write_case(d, "smoke", "search", "smoke", d->small, "", false, out);
    draft_write_case(d, "odd", "search", "check", d->odd, "", false, out);
    draft_write_case(d, "large", "search", "time", d->large, "", false, out);
    draft_write_case(d, "other", "held-out", "check", d->other_odd, "", false, out);
    draft_write_case(d, "other-large", "held-out", "time", d->other_large, "", true, out);
}

void draft_write(const draft *d, const char *source, const char *cases, ev_str *out) {
    ev_str_printf(out, "{\n  \"name\": \"%s\",\n  \"family\": \"mine\",\n", d->kernel->name);
    ev_str_printf(out, "  \"doc\": \"%s of %s%s; the kernel itself is the oracle\",\n",
                  d->kernel->name, source,
                  cases != NULL ? ", with the data of a program's run" : "");
    ev_str_append(out, "  \"arguments\": [\n");
    write_arguments(d, out);
    ev_str_append(out, "  ],\n");
    write_symbols(d, out);
    write_start(d, source, out);
    ev_str_printf(out, "  \"oracle\": \"baseline\",\n  \"tolerance\": {\"relative_l2\": %s},\n",
                  loosest(d));
    ev_str_append(out, "  \"cases\": [\n");
    if (cases != NULL)
        ev_str_append(out, cases);
    else
        write_guessed_cases(d, out);
    ev_str_append(out, "  ]\n}\n");
}
