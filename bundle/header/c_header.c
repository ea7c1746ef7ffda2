/* C header: writes, for each kernel, the shape as a struct, the PTX as bytes, a table of variants,
 * and functions that resolve, evaluate the launch rules and launch. Behind the fixed part
 * (c_header_fixed.c), names begin with the kernel's. */
#include "bundle/header/c_header.h"

#include "bundle/read.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct writing {
    const bundle *b;
    const index_kernel *index;
    const bundle_kernel *k;
    ev_str *out;
    ev_error *err;
    const char *names[MOST_NAMES]; /* that the expressions of a variant may use */
    size_t name_count;
    size_t variants;     /* written so far */
    char field_name[96]; /* of c_name */
} writing;

/* ---- names ---- */

static bool is_word_of_c(const char *name) {
    static const char *const words[] = {
        "auto",   "break",    "case",     "char",   "class",   "const",  "continue", "default",
        "delete", "do",       "double",   "else",   "enum",    "extern", "float",    "for",
        "goto",   "if",       "inline",   "int",    "long",    "new",    "operator", "private",
        "public", "register", "restrict", "return", "short",   "signed", "sizeof",   "static",
        "struct", "switch",   "template", "this",   "typedef", "union",  "unsigned", "virtual",
        "void",   "volatile", "while"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i], name) == 0)
            return true;
    }
    return false;
}

static ev_status check_name(const writing *w, const char *name) {
    if (expr_is_name(name) && !is_word_of_c(name))
        return EV_OK;
    return ev_fail(w->err, EV_BAD, "%s: '%.100s' is no name in C, and a C header needs one",
                   w->k->name, name);
}

/* Whether two arguments have one name in C, where a '_' stands for a '.'. */
static bool same_in_c(const char *a, const char *b) {
    for (; *a != '\0' && (*a == *b || (*a == '.' && *b == '_') || (*a == '_' && *b == '.')); a++)
        b++;
    return *a == *b;
}

/* An argument's name in C: "p_n" for the field "p.n". Valid until the next call. EV_BAD: there is
 * none, or another argument has it. */
static ev_status c_name(writing *w, const bundle_argument *a, const char **out) {
    *out = a->name;
    if (!a->is_field)
        return check_name(w, a->name);
    if (strlen(a->name) >= sizeof w->field_name)
        return ev_fail(w->err, EV_BAD,
                       "%s: the name of the field %.40s... has more than %zu letters", w->k->name,
                       a->name, sizeof w->field_name - 1);
    for (size_t i = 0; i < w->k->argument_count; i++) {
        const bundle_argument *other = &w->k->arguments[i];
        if (other != a && same_in_c(other->name, a->name))
            return ev_fail(w->err, EV_BAD,
                           "%s: the field %s and the argument %s have one name in C; rename one",
                           w->k->name, a->name, other->name);
    }
    (void)snprintf(w->field_name, sizeof w->field_name, "%s", a->name);
    *strchr(w->field_name, '.') = '_';
    *out = w->field_name;
    return check_name(w, *out);
}

static bool is_known(const writing *w, const char *name) {
    for (size_t i = 0; i < w->name_count; i++) {
        if (strcmp(w->names[i], name) == 0)
            return true;
    }
    return false;
}

static void text_literal(ev_str *out, const char *text) {
    ev_str_char(out, '"');
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\' || c < 0x20 || c >= 0x7f || c == '?')
            ev_str_printf(out, "\\%03o", c);
        else
            ev_str_char(out, (char)c);
    }
    ev_str_char(out, '"');
}

/* ---- shapes ---- */

/* Whether a number of the shape is real, by the first range of its name. */
static bool is_real_dimension(const bundle_kernel *k, const char *name) {
    const bundle_variant *lists[] = {k->baselines, k->variants, k->starts};
    const size_t counts[] = {k->baseline_count, k->variant_count, k->start_count};
    for (size_t l = 0; l < 3; l++) {
        for (size_t i = 0; i < counts[l]; i++) {
            for (size_t r = 0; r < lists[l][i].plan->range_count; r++) {
                if (strcmp(lists[l][i].plan->ranges[r].name, name) == 0)
                    return lists[l][i].plan->ranges[r].is_real;
            }
        }
    }
    return false;
}

static ev_status write_shape(writing *w) {
    ev_str_printf(w->out, "\ntypedef struct %s_shape {\n", w->k->name);
    for (size_t i = 0; i < w->index->dimension_count; i++) {
        const char *name = w->index->dimensions[i];
        EV_TRY(check_name(w, name));
        ev_str_printf(w->out, "    %s %s;\n", is_real_dimension(w->k, name) ? "double" : "int64_t",
                      name);
    }
    if (w->index->dimension_count == 0)
        ev_str_append(w->out, "    int none;\n");
    ev_str_printf(w->out, "} %s_shape;\n", w->k->name);
    return EV_OK;
}

static void add_name(writing *w, const char *name) {
    if (w->name_count < MOST_NAMES)
        w->names[w->name_count++] = name;
}

static void declare(writing *w, const char *name) {
    ev_str_printf(w->out, "    const evoke_h_value v_%s = ", name);
    add_name(w, name);
}

/* The variables of a scope: the shape, and scalar arguments below `end`. */
static ev_status write_scope(writing *w, size_t end) {
    w->name_count = 0;
    ev_str_append(w->out, "    int bad = 0;\n    (void)s;\n");
    for (size_t i = 0; i < w->index->dimension_count; i++) {
        const char *name = w->index->dimensions[i];
        bool is_real = is_real_dimension(w->k, name);
        declare(w, name);
        ev_str_printf(w->out, "evoke_h_%s(s->%s);\n    (void)v_%s;\n", is_real ? "real" : "whole",
                      name, name);
    }
    for (size_t i = 0; i < w->k->argument_count && i < end; i++) {
        const bundle_argument *a = &w->k->arguments[i];
        const expr_names names = {w->names, w->name_count};
        if (!bundle_is_scalar(a) || is_known(w, a->name))
            continue;
        const char *name = NULL;
        EV_TRY(c_name(w, a, &name));
        ev_str value = EV_STR_EMPTY;
        ev_status status = c_header_expr(a->expression, &names, &value, w->err);
        ev_str_printf(w->out, "    const evoke_h_value v_%s = %s;\n    (void)v_%s;\n", name,
                      ev_str_text(&value), name);
        add_name(w, a->name);
        ev_str_free(&value);
        EV_TRY(status);
    }
    return EV_OK;
}

/* ---- launch rules ---- */

static ev_status write_field(writing *w, const char *target, const char *text, uint32_t low,
                             uint32_t high) {
    const expr_names names = {w->names, w->name_count};
    ev_str_printf(w->out, "    %s = (uint32_t)evoke_h_within(", target);
    EV_TRY(c_header_expr(text, &names, w->out, w->err));
    ev_str_printf(w->out, ", %u, %u, &bad);\n", low, high);
    return EV_OK;
}

static ev_status write_geometry(writing *w, const bundle_variant *v, size_t number) {
    const launch_rule *l = &v->plan->launches[0];
    const launch_limits *most = &LAUNCH_LIMITS_CUDA;
    ev_str_printf(
        w->out,
        "\nEVOKE_H const char *%s_geometry_%zu(const %s_shape *s, evoke_h_geometry *at) {\n",
        w->k->name, number, w->k->name);
    EV_TRY(write_scope(w, SIZE_MAX));
    for (size_t i = 0; i < v->macro_count; i++) {
        const bundle_number *m = &v->macros[i];
        if (is_known(w, m->name))
            continue;
        EV_TRY(check_name(w, m->name));
        declare(w, m->name);
        if (m->is_real)
            ev_str_printf(w->out, "evoke_h_real(%.17g);\n", m->value);
        else
            ev_str_printf(w->out, "evoke_h_whole(INT64_C(%" PRId64 "));\n", (int64_t)m->value);
        ev_str_printf(w->out, "    (void)v_%s;\n", m->name);
    }
    for (int i = 0; i < 3; i++) {
        char grid[24], block[24];
        (void)snprintf(grid, sizeof grid, "at->grid[%d]", i);
        (void)snprintf(block, sizeof block, "at->block[%d]", i);
        EV_TRY(write_field(w, grid, l->grid[i], 1, most->grid[i]));
        EV_TRY(write_field(w, block, l->block[i], 1, most->block[i]));
    }
    EV_TRY(write_field(w, "at->shared_bytes", l->shared, 0, most->shared));
    ev_str_printf(w->out,
                  "    if (!bad && (uint64_t)at->block[0] * at->block[1] * at->block[2] > %u)\n"
                  "        bad = 1;\n"
                  "    return bad ? \"%s: the launch rule gives no launch at this shape\" : NULL;\n"
                  "}\n",
                  most->threads, w->k->name);
    return EV_OK;
}

/* ---- tables ---- */

static ev_status write_ptx(const writing *w, const bundle_variant *v, size_t number) {
    char *ptx = NULL;
    size_t bytes = 0;
    EV_TRY(bundle_read_ptx(w->b, v, &ptx, &bytes, w->err));
    ev_str_printf(w->out, "\nstatic const unsigned char %s_ptx_%zu[] = {", w->k->name, number);
    for (size_t i = 0; i <= bytes; i++) /* with the NUL */
        ev_str_printf(w->out, "%s%u,", i % 24 == 0 ? "\n    " : "", (unsigned char)ptx[i]);
    ev_str_append(w->out, "\n};\n");
    free(ptx);
    return EV_OK;
}

static const launch_range *find_range(const bundle_variant *v, const char *name) {
    for (size_t i = 0; i < v->plan->range_count; i++) {
        if (strcmp(v->plan->ranges[i].name, name) == 0)
            return &v->plan->ranges[i];
    }
    return NULL;
}

/* 0: a real number, which no divisor binds. */
static int64_t multiple_of(const launch_range *r) {
    int64_t whole = r->multiple > 0 ? r->multiple : 1;
    return r->is_real ? 0 : whole;
}

static void write_ranges(const writing *w, const bundle_variant *v, size_t number) {
    ev_str_printf(w->out, "static const evoke_h_range %s_ranges_%zu[] = {\n", w->k->name, number);
    for (size_t i = 0; i < w->index->dimension_count; i++) {
        const launch_range *r = find_range(v, w->index->dimensions[i]);
        if (r != NULL)
            ev_str_printf(w->out, "    {%.17g, %.17g, INT64_C(%" PRId64 ")},\n", r->low, r->high,
                          multiple_of(r));
        else
            ev_str_append(w->out, "    {-INFINITY, INFINITY, 0},\n");
    }
    ev_str_append(w->out, "    {0, 0, 0}};\n");
}

/* The points of the index; a baseline has none. */
static void write_points(const writing *w, const index_candidate *c, size_t number) {
    size_t count = c != NULL ? c->times[0].count : 0;
    for (size_t i = 0; i < count; i++) {
        ev_str_printf(w->out, "static const double %s_at_%zu_%zu[] = {", w->k->name, number, i);
        for (size_t d = 0; d < w->index->dimension_count; d++)
            ev_str_printf(w->out, "%.17g, ", c->times[0].points[i].at[d]);
        ev_str_append(w->out, "0};\n");
    }
    ev_str_printf(w->out, "static const evoke_h_point %s_points_%zu[] = {\n", w->k->name, number);
    for (size_t i = 0; i < count; i++)
        ev_str_printf(w->out, "    {%s_at_%zu_%zu, %.17g},\n", w->k->name, number, i,
                      c->times[0].points[i].ratio);
    ev_str_append(w->out, "    {NULL, 0}};\n");
}

static void write_names(const writing *w, const bundle_variant *v, size_t number) {
    ev_str_printf(w->out, "static const char *const %s_names_%zu[] = {", w->k->name, number);
    for (size_t i = 0; i < v->driver_name_count; i++) {
        text_literal(w->out, v->driver_names[i]);
        ev_str_append(w->out, ", ");
    }
    ev_str_append(w->out, "NULL};\n");
}

static ev_status write_parts(writing *w, const bundle_variant *v, const index_candidate *c) {
    size_t number = w->variants++;
    EV_TRY(write_ptx(w, v, number));
    write_ranges(w, v, number);
    write_points(w, c, number);
    write_names(w, v, number);
    return write_geometry(w, v, number);
}

static void write_row(const writing *w, const bundle_variant *v, const char *role, size_t number,
                      size_t points) {
    const char *name = w->k->name;
    ev_str_printf(w->out, "    {%zu, %s, \"%s\", ", number, role, v->sha256.hex);
    text_literal(w->out, launch_plan_entry(v->plan));
    ev_str_printf(w->out, ", %s_ptx_%zu, ", name, number);
    text_literal(w->out, v->gpu_id);
    ev_str_append(w->out, ", ");
    text_literal(w->out, v->gpu_name);
    ev_str_printf(w->out, ",\n     %s_names_%zu, %d, %d, %s_ranges_%zu, %s_points_%zu, %zu},\n",
                  name, number, v->sm, v->sms, name, number, name, number, points);
}

/* ---- what is in ---- */

/* The header has no qualifications, so it leaves out a variant that is disabled on its own GPU, or
 * is not right on some other. */
static bool is_in(const bundle_variant *v) {
    bool is_right = bundle_disabled(v, v->gpu_id) == NULL;
    for (size_t i = 0; i < v->qualified_count; i++) {
        bundle_verdict verdict = v->qualified[i].verdict;
        is_right =
            is_right && (verdict == BUNDLE_VERDICT_PASS || verdict == BUNDLE_VERDICT_SLOWER ||
                         bundle_disabled(v, v->qualified[i].gpu_id) == NULL);
    }
    return is_right && v->alignment_count == 0 && (!v->is_bold || v->is_default) &&
           v->plan->range_count > 0;
}

typedef void visit(void *context, const bundle_variant *v, const index_candidate *c,
                   const char *role);

/* Variants and starts in the order of the index, then baselines. */
static void visit_all(const writing *w, visit *f, void *context) {
    for (size_t g = 0; g < w->index->group_count; g++) {
        const index_group *group = &w->index->groups[g];
        for (size_t i = 0; i < group->count; i++) {
            const index_candidate *c = &group->candidates[i];
            if (is_in(c->variant))
                f(context, c->variant, c, c->is_start ? "EVOKE_H_START" : "EVOKE_H_VARIANT");
        }
    }
    for (size_t i = 0; i < w->k->baseline_count; i++)
        f(context, &w->k->baselines[i], NULL, "EVOKE_H_UNTUNED");
}

typedef struct visiting {
    writing *w;
    ev_status status;
    size_t number;
} visiting;

static void visit_parts(void *context, const bundle_variant *v, const index_candidate *c,
                        const char *role) {
    visiting *at = context;
    (void)role;
    if (at->status == EV_OK)
        at->status = write_parts(at->w, v, c);
}

static void visit_row(void *context, const bundle_variant *v, const index_candidate *c,
                      const char *role) {
    visiting *at = context;
    write_row(at->w, v, role, at->number++, c != NULL ? c->times[0].count : 0);
}

/* ---- functions ---- */

static void write_resolve(const writing *w) {
    const char *name = w->k->name;
    ev_str_printf(
        w->out,
        "\n/* `gpu`: the driver's name, or Evoke's id; NULL: not known. NULL: nothing for "
        "this capability. */\n"
        "EVOKE_H const evoke_h_variant *%s_resolve(const char *gpu, int capability,\n"
        "        int multiprocessors, const %s_shape *s) {\n    const double shape[] = {",
        name, name);
    for (size_t i = 0; i < w->index->dimension_count; i++)
        ev_str_printf(w->out, "(double)s->%s, ", w->index->dimensions[i]);
    ev_str_printf(
        w->out,
        "0};\n    (void)s;\n    return evoke_h_resolve(%s_variants, %zu, gpu, capability, "
        "multiprocessors, shape, %zu);\n}\n",
        name, w->variants, w->index->dimension_count);
    ev_str_printf(w->out,
                  "\nEVOKE_H const char *%s_geometry(const evoke_h_variant *v, const %s_shape *s,\n"
                  "        evoke_h_geometry *at) {\n    switch (v->number) {\n",
                  name, name);
    for (size_t i = 0; i < w->variants; i++)
        ev_str_printf(w->out, "    case %zu:\n        return %s_geometry_%zu(s, at);\n", i, name,
                      i);
    ev_str_printf(w->out, "    default:\n        return \"%s: no such variant\";\n    }\n}\n",
                  name);
}

/* A scalar in the type of the kernel's parameter. */
static ev_status write_scalar(writing *w, const bundle_argument *a) {
    static const struct {
        const char *type, *c;
        int64_t low, high; /* both 0: real */
    } types[] = {{"s8", "int8_t", INT8_MIN, INT8_MAX},
                 {"u8", "uint8_t", 0, UINT8_MAX},
                 {"s16", "int16_t", INT16_MIN, INT16_MAX},
                 {"u16", "uint16_t", 0, UINT16_MAX},
                 {"s32", "int32_t", INT32_MIN, INT32_MAX},
                 {"u32", "uint32_t", 0, UINT32_MAX},
                 {"s64", "int64_t", INT64_MIN, INT64_MAX},
                 {"u64", "uint64_t", 0, INT64_MAX},
                 {"f16", "uint16_t", 0, 0},
                 {"bf16", "uint16_t", 0, 0},
                 {"f32", "float", 0, 0},
                 {"f64", "double", 0, 0}};
    size_t t = 0, dimension = 0;
    const char *name = NULL, *from = "v";
    EV_TRY(c_name(w, a, &name));
    if (index_find_dimension(w->index, a->name, &dimension)) { /* v_NAME is the shape's number */
        const expr_names names = {w->names, w->name_count};
        from = "a";
        ev_str_printf(w->out, "    const evoke_h_value a_%s = ", name);
        EV_TRY(c_header_expr(a->expression, &names, w->out, w->err));
        ev_str_append(w->out, ";\n");
    }
    while (t < sizeof types / sizeof types[0] && strcmp(types[t].type, a->type) != 0)
        t++;
    if (t == sizeof types / sizeof types[0])
        return ev_fail(w->err, EV_BAD, "%s: C has no type for the scalar '%s' of type %s",
                       w->k->name, a->name, a->type);
    if (strcmp(types[t].c, "uint16_t") == 0 && types[t].high == 0)
        ev_str_printf(w->out, "    uint16_t p_%s = evoke_h_half(%s_%s.real, %d, &bad);\n", name,
                      from, name, strcmp(a->type, "f16") == 0 ? 10 : 7);
    else if (types[t].high == 0)
        ev_str_printf(w->out, "    %s p_%s = (%s)%s_%s.real;\n    bad = bad || !isfinite(p_%s);\n",
                      types[t].c, name, types[t].c, from, name, name);
    else if (types[t].low == INT64_MIN)
        ev_str_printf(w->out,
                      "    %s p_%s = (%s)evoke_h_within(%s_%s, INT64_MIN, INT64_MAX, &bad);\n",
                      types[t].c, name, types[t].c, from, name);
    else
        ev_str_printf(w->out,
                      "    %s p_%s = (%s)evoke_h_within(%s_%s, INT64_C(%" PRId64
                      "), INT64_C(%" PRId64 "), &bad);\n",
                      types[t].c, name, types[t].c, from, name, types[t].low, types[t].high);
    return EV_OK;
}

/* The structs that the kernel takes by value, filled with their fields. */
static ev_status write_structs(writing *w) {
    for (size_t i = 0; i < w->k->argument_count; i++) {
        const bundle_argument *a = &w->k->arguments[i];
        const char *name = NULL;
        int length = (int)strcspn(a->name, ".");
        if (!a->is_field)
            continue;
        EV_TRY(c_name(w, a, &name));
        if (bundle_begins_struct(w->k, i))
            ev_str_printf(w->out, "    _Alignas(16) unsigned char struct_%.*s[%u] = {0};\n", length,
                          a->name, a->struct_bytes);
        ev_str_printf(w->out, "    memcpy(struct_%.*s + %u, &p_%s, sizeof p_%s);\n", length,
                      a->name, a->offset, name, name);
    }
    return EV_OK;
}

/* The launch takes the buffers in the kernel's order; scalars are computed. */
static ev_status write_launch(writing *w) {
    const bundle_kernel *k = w->k;
    ev_str_printf(w->out,
                  "\n/* `f` is the variant's, by evoke_h_load. Returns NULL, or why nothing is "
                  "launched. */\n"
                  "EVOKE_H const char *%s_launch(const evoke_h_variant *v, CUfunction f, const "
                  "%s_shape *s",
                  k->name, k->name);
    for (size_t i = 0; i < k->argument_count; i++) {
        const char *name = NULL;
        EV_TRY(c_name(w, &k->arguments[i], &name));
        if (!bundle_is_scalar(&k->arguments[i]))
            ev_str_printf(w->out, ",\n        CUdeviceptr p_%s", name);
    }
    ev_str_append(w->out, ",\n        CUstream stream) {\n    evoke_h_geometry at = {0};\n");
    EV_TRY(write_scope(w, SIZE_MAX));
    for (size_t i = 0; i < k->argument_count; i++) {
        if (bundle_is_scalar(&k->arguments[i]))
            EV_TRY(write_scalar(w, &k->arguments[i]));
    }
    EV_TRY(write_structs(w));
    ev_str_append(w->out, "    void *parameters[] = {");
    for (size_t i = 0; i < k->argument_count; i++) {
        const bundle_argument *a = &k->arguments[i];
        if (!a->is_field)
            ev_str_printf(w->out, "&p_%s, ", a->name);
        else if (bundle_begins_struct(w->k, i))
            ev_str_printf(w->out, "struct_%.*s, ", (int)strcspn(a->name, "."), a->name);
    }
    ev_str_printf(w->out, "NULL};\n    const char *why = %s_geometry(v, s, &at);\n", k->name);
    for (size_t i = 0; i < k->argument_count; i++) {
        const bundle_argument *a = &k->arguments[i];
        uint32_t align = a->align != 0 ? a->align : BUNDLE_ALIGN;
        const char *name = NULL;
        EV_TRY(c_name(w, a, &name));
        if (!bundle_is_scalar(a))
            ev_str_printf(
                w->out,
                "    if (p_%s == 0 || p_%s %% %u != 0)\n        return \"%s: the address of "
                "'%s' is 0, or no multiple of %u\";\n",
                name, name, align, k->name, a->name, align);
    }
    ev_str_printf(w->out,
                  "    if (bad)\n        return \"%s: a scalar argument cannot be computed at this "
                  "shape\";\n    return why != NULL ? why : evoke_h_launch(f, &at, parameters, "
                  "stream);\n}\n",
                  k->name);
    return EV_OK;
}

/* ---- kernels ---- */

static ev_status write_kernel(writing *w) {
    visiting at = {w, EV_OK, 0};
    EV_TRY(check_name(w, w->k->name));
    ev_str_printf(w->out, "\n/* ==== %s ==== */\n", w->k->name);
    EV_TRY(write_shape(w));
    visit_all(w, visit_parts, &at);
    EV_TRY(at.status);
    ev_str_printf(w->out, "\nstatic const evoke_h_variant %s_variants[] = {\n", w->k->name);
    visit_all(w, visit_row, &at);
    ev_str_append(w->out, "};\n");
    write_resolve(w);
    return write_launch(w);
}

static bool any_steps(const bundle_variant *list, size_t count) {
    bool any = false;
    for (size_t i = 0; i < count; i++)
        any = any || !launch_plan_is_plain(list[i].plan);
    return any;
}

static bool has_steps(const bundle_kernel *k) {
    return any_steps(k->baselines, k->baseline_count) || any_steps(k->variants, k->variant_count) ||
           any_steps(k->starts, k->start_count);
}

/* What a header does not have: launches of more than one kernel, or on more than one GPU. */
static const char *why_left_out(const bundle_kernel *k) {
    if (k->ranks != NULL)
        return "its launches run on several GPUs at once";
    return has_steps(k) ? "variants of it have several launches" : NULL;
}

/* The kernel's entry of the index. A kernel without a variant and a start gets the numbers of the
 * baseline's shape, which `names` holds. */
static index_kernel entry_of(const index_kernel *from, const char *names[INDEX_DIMENSIONS]) {
    index_kernel entry = *from;
    if (entry.dimension_count > 0 || from->kernel->baseline_count == 0)
        return entry;
    const launch_plan *plan = from->kernel->baselines[0].plan;
    entry.dimensions = names;
    while (entry.dimension_count < plan->range_count && entry.dimension_count < INDEX_DIMENSIONS) {
        names[entry.dimension_count] = plan->ranges[entry.dimension_count].name;
        entry.dimension_count++;
    }
    return entry;
}

ev_status c_header_make(const bundle *b, ev_str *out, ev_error *err) {
    size_t kernels = 0, left_out = 0;
    ev_str_append(out,
                  "/* Kernels tuned by Evoke, with their PTX, for programs that read no files. "
                  "Made by\n * evoke export --to c-header. Link the CUDA driver and the "
                  "mathematics (-lcuda -lm). */\n"
                  "#ifndef EVOKE_KERNELS_H\n#define EVOKE_KERNELS_H\n\n");
    for (size_t i = 0; c_header_fixed[i] != NULL; i++)
        ev_str_printf(out, "%s\n", c_header_fixed[i]);
    for (size_t i = 0; i < b->index->count; i++) {
        const char *names[INDEX_DIMENSIONS];
        const index_kernel entry = entry_of(&b->index->kernels[i], names);
        writing w = {.b = b, .index = &entry, .k = entry.kernel, .out = out, .err = err};
        if (w.k->baseline_count + w.k->variant_count == 0)
            continue;
        if (why_left_out(w.k) != NULL)
            ev_str_printf(out, "\n/* %s is left out: %s. Launch it by libevoke-bundle. */\n",
                          w.k->name, why_left_out(w.k));
        else
            EV_TRY(write_kernel(&w));
        left_out += why_left_out(w.k) != NULL;
        kernels++;
    }
    if (left_out > 0 && left_out == kernels)
        return ev_fail(
            err, EV_BAD,
            "all kernels of the bundle %s have variants of several launches, or launches "
            "on several GPUs, which a C header does not have; launch them by "
            "libevoke-bundle",
            bundle_path(b));
    ev_str_append(out, "\n#endif\n");
    return ev_str_status(out, err);
}
