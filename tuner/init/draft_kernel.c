/* The kernel of a draft, and its parameters. */
#include "tuner/init/draft.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void draft_note(draft *d, const char *format, ...) {
    va_list args;
    va_start(args, format);
    ev_str_append(&d->notes, "- ");
    ev_str_vprintf(&d->notes, format, args);
    ev_str_append(&d->notes, "\n");
    va_end(args);
}

void draft_add_size(draft *d, const char *name, bool is_small, int64_t value) {
    for (size_t i = 0; i < d->size_count; i++) {
        if (strcmp(d->sizes[i].name, name) == 0)
            return;
    }
    if (d->size_count < DRAFT_SIZES)
        d->sizes[d->size_count++] = (draft_size){
            .name = name, .is_small = is_small, .value = value, .pinned = DRAFT_UNKNOWN};
}

/* ---- types -------------------------------------------------------------------------------------
 */

static const struct {
    const char *name;
    ev_type type;
    uint32_t lanes;
} TYPES[] = {
    {"float", EV_F32, 1},
    {"double", EV_F64, 1},
    {"half", EV_F16, 1},
    {"__half", EV_F16, 1},
    {"__nv_bfloat16", EV_BF16, 1},
    {"int", EV_S32, 1},
    {"signed", EV_S32, 1},
    {"signed int", EV_S32, 1},
    {"int32_t", EV_S32, 1},
    {"unsigned", EV_U32, 1},
    {"unsigned int", EV_U32, 1},
    {"uint", EV_U32, 1},
    {"uint32_t", EV_U32, 1},
    {"char", EV_S8, 1},
    {"signed char", EV_S8, 1},
    {"int8_t", EV_S8, 1},
    {"unsigned char", EV_U8, 1},
    {"uchar", EV_U8, 1},
    {"uint8_t", EV_U8, 1},
    {"bool", EV_U8, 1},
    {"short", EV_S16, 1},
    {"int16_t", EV_S16, 1},
    {"unsigned short", EV_U16, 1},
    {"uint16_t", EV_U16, 1},
    {"long", EV_S64, 1},
    {"long int", EV_S64, 1},
    {"long long", EV_S64, 1},
    {"long long int", EV_S64, 1},
    {"int64_t", EV_S64, 1},
    {"ptrdiff_t", EV_S64, 1},
    {"unsigned long", EV_U64, 1},
    {"unsigned long int", EV_U64, 1},
    {"unsigned long long", EV_U64, 1},
    {"unsigned long long int", EV_U64, 1},
    {"uint64_t", EV_U64, 1},
    {"size_t", EV_U64, 1},
    {"half2", EV_F16, 2},
    {"__half2", EV_F16, 2},
    {"float2", EV_F32, 2},
    {"float3", EV_F32, 3},
    {"float4", EV_F32, 4},
    {"double2", EV_F64, 2},
    {"double4", EV_F64, 4},
    {"int2", EV_S32, 2},
    {"int3", EV_S32, 3},
    {"int4", EV_S32, 4},
    {"uint2", EV_U32, 2},
    {"uint4", EV_U32, 4},
    {"uchar4", EV_U8, 4},
};

/* The text that a template argument, typedef, using or macro puts in a name's place; NULL: none. */
static const char *stands_for(const draft *d, const char *name) {
    const cuda_text *t = d->t;
    cuda_range parts[8];
    size_t count = cuda_range_split(t, d->kernel->types, parts, 8);
    for (size_t i = 0; i < count && i < d->type_count; i++) {
        for (size_t k = parts[i].first; k < parts[i].end; k++) {
            if (cuda_token_is(t, k, name))
                return d->types[i];
        }
    }
    for (size_t i = 0; i + 3 < t->token_count; i++) {
        if (cuda_token_is(t, i, "using") && cuda_token_is(t, i + 1, name) &&
            cuda_token_is(t, i + 2, "=")) {
            size_t end = i + 3;
            while (end < t->token_count && !cuda_token_is(t, end, ";"))
                end++;
            return cuda_range_text(t, (cuda_range){i + 3, end});
        }
        if (!cuda_token_is(t, i, "typedef"))
            continue;
        size_t end = i + 1;
        while (end < t->token_count && !cuda_token_is(t, end, ";"))
            end = t->tokens[end].match != 0 ? t->tokens[end].match + 1 : end + 1;
        if (cuda_token_is(t, end - 1, name))
            return cuda_range_text(t, (cuda_range){i + 1, end - 1});
    }
    const cuda_macro *macro = cuda_text_macro(t, name);
    return macro != NULL ? macro->value : NULL;
}

static bool plain_type(const char *name, ev_type *type, uint32_t *lanes) {
    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++) {
        if (strcmp(TYPES[i].name, name) == 0) {
            *type = TYPES[i].type;
            *lanes = TYPES[i].lanes;
            return true;
        }
    }
    return false;
}

/* The fields of a struct whose braces open at `open`, if all have one element type. */
static bool read_fields(const draft *d, size_t open, ev_type *type, uint32_t *lanes) {
    const cuda_text *t = d->t;
    bool first = true;
    *lanes = 0;
    for (size_t at = open + 1; at < t->tokens[open].match;) {
        size_t end = at;
        while (!cuda_token_is(t, end, ";") && end < t->tokens[open].match) {
            if (cuda_token_is(t, end, "(") || cuda_token_is(t, end, "{"))
                return false;
            end++;
        }
        cuda_range names[16];
        size_t count = cuda_range_split(t, (cuda_range){at, end}, names, 16);
        ev_type of;
        uint32_t each;
        if (count == 0 || count > 16 || names[0].end < names[0].first + 2)
            return false;
        size_t last = names[0].first;
        uint32_t elements = (uint32_t)count;
        while (last + 1 < names[0].end && t->tokens[last + 1].kind == CUDA_TOKEN_NAME)
            last++;
        if (cuda_token_is(t, last + 1, "[") && count == 1)
            elements = (uint32_t)strtoul(t->text + t->tokens[last + 2].begin, NULL, 10);
        else if (last + 1 != names[0].end)
            return false;
        if (!plain_type(cuda_range_text(t, (cuda_range){names[0].first, last}), &of, &each) ||
            (!first && of != *type))
            return false;
        *type = of;
        *lanes += elements * each;
        first = false;
        at = end + 1;
    }
    return *lanes > 0;
}

static bool struct_type(const draft *d, const char *name, ev_type *type, uint32_t *lanes) {
    const cuda_text *t = d->t;
    for (size_t i = 0; i + 1 < t->token_count; i++) {
        if (!cuda_token_is(t, i, "struct"))
            continue;
        size_t open = i + 1;
        while (open < t->token_count && !cuda_token_is(t, open, "{") &&
               !cuda_token_is(t, open, ";"))
            open = t->tokens[open].match != 0 ? t->tokens[open].match + 1 : open + 1;
        if (!cuda_token_is(t, open, "{"))
            continue;
        bool is_named = open > i + 1 && cuda_token_is(t, open - 1, name);
        if (is_named || cuda_token_is(t, t->tokens[open].match + 1, name))
            return read_fields(d, open, type, lanes);
    }
    return false;
}

bool draft_type(const draft *d, const char *name, ev_type *type, uint32_t *lanes) {
    for (int depth = 0; depth < 4 && name != NULL; depth++) {
        if (strncmp(name, "std::", 5) == 0)
            name += 5;
        if (strncmp(name, "struct ", 7) == 0)
            name += 7;
        if (plain_type(name, type, lanes) || struct_type(d, name, type, lanes))
            return true;
        name = stands_for(d, name);
    }
    return false;
}

/* ---- parameters --------------------------------------------------------------------------------
 */

/* One parameter, taken apart. */
typedef struct parameter {
    const char *name, *type;
    unsigned pointers;
    bool is_const;
} parameter;

bool draft_is_qualifier(const cuda_text *t, size_t at) {
    static const char *const words[] = {"const",        "volatile",   "restrict",
                                        "__restrict__", "__restrict", "__grid_constant__",
                                        "register",     "typename"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (cuda_token_is(t, at, words[i]))
            return true;
    }
    return false;
}

static parameter read_parameter(const draft *d, cuda_range range) {
    const cuda_text *t = d->t;
    parameter p = {0};
    ev_str type = EV_STR_EMPTY;
    size_t name = SIZE_MAX;
    for (size_t i = range.first; i < range.end && !cuda_token_is(t, i, "="); i++) {
        if (cuda_token_is(t, i, "*") || cuda_token_is(t, i, "["))
            p.pointers++;
        if (t->tokens[i].match != 0)
            i = t->tokens[i].match;
        else if (t->tokens[i].kind == CUDA_TOKEN_NAME && !draft_is_qualifier(t, i))
            name = i;
    }
    for (size_t i = range.first; name != SIZE_MAX && i < name; i++) {
        bool is_star = cuda_token_is(t, i, "*");
        p.is_const |= p.pointers > 0 && cuda_token_is(t, i, "const") && !is_star;
        if (is_star)
            break;
        if (draft_is_qualifier(t, i) || t->tokens[i].kind == CUDA_TOKEN_DIRECTIVE)
            continue;
        bool apart =
            type.length > 0 && !cuda_token_is(t, i, "::") && !cuda_token_is(t, i - 1, "::");
        ev_str_printf(&type, "%s%s", apart ? " " : "", cuda_token_text(t, i));
    }
    p.name = name != SIZE_MAX ? cuda_token_text(t, name) : "";
    p.type = ev_arena_strdup(t->arena, ev_str_text(&type));
    ev_str_free(&type);
    return p;
}

/* Names of whole numbers that are no sizes: they stay small. */
static bool is_small(const char *name) {
    static const char *const words[] = {"radius", "offset", "shift", "step",  "iter",  "seed",
                                        "mode",   "flag",   "axis",  "halo",  "pass",  "inc",
                                        "bit",    "level",  "start", "begin", "ksize", "order"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strstr(name, words[i]) != NULL)
            return true;
    }
    return strcmp(name, "r") == 0 || strcmp(name, "lda") == 0;
}

/* Whether an argument of the type can have the whole number. */
static bool holds(ev_type type, double value) {
    double bits = 8 * (double)ev_type_bytes(type);
    bool is_signed = type == EV_S8 || type == EV_S16 || type == EV_S32 || type == EV_S64;
    double most = fmin(exp2(is_signed ? bits - 1 : bits) - 1, 0x1p53);
    return floor(value) == value && value <= most && value >= (is_signed ? -most : 0);
}

/* Floats get a value, whole numbers are sizes of the shape. The launch's own values are preferred.
 */
static void set_value(draft *d, draft_argument *a, bool is_of_array) {
    double value = 0;
    ev_arena *arena = d->t->arena;
    if (a->kind != DRAFT_SCALAR)
        return;
    bool is_float = ev_type_is_float(a->type), is_known = draft_launch_value(d, a, &value);
    is_known = is_known && (is_float || holds(a->type, value));
    bool is_size = !is_of_array && d->size_count < DRAFT_SIZES && ev_type_bytes(a->type) >= 4;
    if (is_float)
        a->value = is_known ? ev_arena_printf(arena, "%.9g", value) : "0.5";
    else if (is_known && (!is_size || value < 0))
        a->value = ev_arena_printf(arena, "%.0f", value);
    else if (!is_size)
        a->value = "1";
    else
        draft_add_size(d, a->name, is_small(a->name), is_known ? (int64_t)value : DRAFT_UNKNOWN);
    a->is_said = is_known;
}

/* Whether a parameter or an argument has the name. */
static bool is_taken(const draft *d, const char *name) {
    for (size_t i = d->kernel->params.first; i < d->kernel->params.end; i++) {
        if (cuda_token_is(d->t, i, name))
            return true;
    }
    for (size_t i = 0; i < d->argument_count; i++) {
        if (strcmp(d->arguments[i].name, name) == 0)
            return true;
    }
    return false;
}

/* The fields of a struct become arguments. false: there are too many. */
static bool add_fields(draft *d, const char *owner, size_t parameter, const draft_layout *l) {
    for (size_t i = 0; i < l->count; i++) {
        const draft_field *f = &l->fields[i];
        if (d->argument_count == DRAFT_ARGUMENTS)
            return false;
        draft_argument *a = &d->arguments[d->argument_count];
        *a = (draft_argument){.name = f->name,
                              .kind = f->is_buffer ? DRAFT_IN : DRAFT_SCALAR,
                              .is_const = f->is_const,
                              .type = f->type,
                              .lanes = f->is_buffer ? f->lanes : 1,
                              .parameter = parameter,
                              .owner = owner,
                              .field = f->name,
                              .offset = f->offset,
                              .struct_bytes = l->bytes};
        if (is_taken(d, f->name))
            a->name = ev_arena_printf(d->t->arena, "%s_%s", owner, f->name);
        const char *last = strrchr(f->name, '_');
        bool is_of_array = last != NULL && last[1] >= '0' && last[1] <= '9'; /* "row_1" */
        set_value(d, a, is_of_array);
        d->argument_count++;
    }
    return true;
}

static ev_status refuse_type(draft *d, const parameter *p, const char *path, uint32_t line,
                             ev_error *err) {
    bool is_template = d->kernel->types.end > d->kernel->types.first && d->type_count == 0;
    const char *cure = "";
    if (strcmp(p->type, "cudaTextureObject_t") == 0 || strcmp(p->type, "cudaSurfaceObject_t") == 0)
        return ev_fail(err, EV_BAD,
                       "%s:%u: %s is a %s, and Evoke has neither textures nor surfaces; pass a "
                       "pointer to its elements, and compute the filter and the border in the "
                       "kernel",
                       path, line, p->name,
                       strcmp(p->type, "cudaTextureObject_t") == 0 ? "texture" : "surface");
    draft_layout l;
    if (p->pointers > 0 && draft_struct(d, p->type, true, &l))
        cure = "; pass the buffers that its structs point to one by one";
    else if (is_template)
        cure = "; name the instance, like 'KERNEL<float, 4>'";
    else if (p->pointers == 0)
        cure = "; pass what the kernel needs of it one by one";
    return ev_fail(err, EV_BAD,
                   "%s:%u: %s has the type '%s'; a task has scalars, structs of numbers and "
                   "pointers, and buffers of numbers, of vectors like float4 and of structs of "
                   "both%s",
                   path, line, p->name, p->type, cure);
}

/* A buffer of structs whose fields have one type is a buffer of numbers. */
static bool uniform_struct(draft *d, const char *type, ev_type *of, uint32_t *lanes) {
    draft_layout l;
    if (!draft_struct(d, type, false, &l))
        return false;
    *of = l.fields[0].type;
    *lanes = (uint32_t)l.count;
    for (size_t i = 0; i < l.count; i++) {
        if (l.fields[i].is_buffer || l.fields[i].type != *of)
            return false;
    }
    return l.bytes == l.count * ev_type_bytes(*of);
}

/* A buffer of structs with fields of several types has words as large as the fields' places allow.
 */
static bool mixed_struct(draft *d, const char *type, draft_argument *a) {
    static const ev_type words[] = {EV_U32, EV_U16, EV_U8};
    draft_layout l;
    if (!draft_struct(d, type, true, &l))
        return false;
    uint32_t places = l.bytes;
    for (size_t i = 0; i < l.count; i++) {
        if (l.fields[i].is_buffer)
            return false;
        places |= l.fields[i].offset | (uint32_t)ev_type_bytes(l.fields[i].type);
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        uint32_t bytes = (uint32_t)ev_type_bytes(words[i]);
        a->type = words[i];
        a->lanes = l.bytes / bytes;
        if (places % bytes == 0)
            break;
    }
    a->mixed = ev_arena_copy(d->t->arena, &l, sizeof l);
    return a->mixed != NULL;
}

static ev_status add_argument(draft *d, cuda_range range, size_t number, const char *path,
                              ev_error *err) {
    parameter p = read_parameter(d, range);
    uint32_t line = d->t->tokens[range.first].line;
    draft_layout l;
    if (p.name[0] == '\0')
        return ev_fail(err, EV_BAD, "%s:%u: parameter %zu of %s has no name; give it one", path,
                       line, number, d->kernel->name);
    if (p.pointers > 1)
        return ev_fail(err, EV_BAD,
                       "%s:%u: %s is a pointer to pointers; a task has buffers of numbers: pass "
                       "one buffer in place of the table",
                       path, line, p.name);
    draft_argument a = {.name = p.name,
                        .kind = p.pointers > 0 ? DRAFT_IN : DRAFT_SCALAR,
                        .is_const = p.is_const,
                        .is_bool = strcmp(p.type, "bool") == 0,
                        .parameter = number};
    bool is_known = draft_type(d, p.type, &a.type, &a.lanes);
    bool is_number = is_known && a.lanes == 1;
    is_known = is_known || (p.pointers > 0 && uniform_struct(d, p.type, &a.type, &a.lanes)) ||
               (p.pointers > 0 && mixed_struct(d, p.type, &a));
    if (p.pointers == 0 && draft_struct(d, p.type, false, &l)) {
        if (add_fields(d, p.name, number, &l))
            return EV_OK;
        return ev_fail(err, EV_BAD, "%s:%u: with the fields of %s, %s has more than %d arguments",
                       path, line, p.name, d->kernel->name, DRAFT_ARGUMENTS);
    }
    if (!is_known || (p.pointers == 0 && !is_number) || d->argument_count == DRAFT_ARGUMENTS)
        return refuse_type(d, &p, path, line, err);
    set_value(d, &a, false);
    d->arguments[d->argument_count++] = a;
    return EV_OK;
}

static ev_status read_arguments(draft *d, const char *path, ev_error *err) {
    cuda_range parts[DRAFT_ARGUMENTS];
    size_t count = cuda_range_split(d->t, d->kernel->params, parts, DRAFT_ARGUMENTS);
    if (count > DRAFT_ARGUMENTS)
        return ev_fail(err, EV_BAD, "%s: %s has %zu parameters; a task has at most %d", path,
                       d->kernel->name, count, DRAFT_ARGUMENTS);
    for (size_t i = 0; i < count; i++)
        EV_TRY(add_argument(d, parts[i], i, path, err));
    return EV_OK;
}

/* ---- the kernel --------------------------------------------------------------------------------
 */

static bool is_whole(const cuda_function *f) {
    return f->is_kernel && f->body.end > f->body.first;
}

static ev_status list_kernels(const cuda_text *t, const char *path, const char *name,
                              ev_error *err) {
    ev_str names = EV_STR_EMPTY;
    for (size_t i = 0; i < t->function_count; i++) {
        if (is_whole(&t->functions[i]))
            ev_str_printf(&names, "%s%s", names.length > 0 ? ", " : "", t->functions[i].name);
    }
    ev_status status;
    if (names.length == 0)
        status = ev_fail(err, EV_BAD, "%s: no kernel (a __global__ function with a body)%s", path,
                         t->is_balanced ? "" : "; its brackets do not match");
    else if (name == NULL)
        status =
            ev_fail(err, EV_BAD, "%s has several kernels; name one: %s", path, ev_str_text(&names));
    else
        status = ev_fail(err, EV_BAD, "%s: no kernel \"%s\"; it has: %s", path, name,
                         ev_str_text(&names));
    ev_str_free(&names);
    return status;
}

/* Finds the kernel of a name without template arguments; NULL: none, or several for NULL. */
static const cuda_function *find_kernel(const cuda_text *t, const char *name, size_t length) {
    const cuda_function *found = NULL;
    for (size_t i = 0; i < t->function_count; i++) {
        const cuda_function *f = &t->functions[i];
        if (!is_whole(f))
            continue;
        if (name == NULL && found != NULL)
            return NULL;
        bool fits =
            name == NULL || (strlen(f->name) == length && strncmp(f->name, name, length) == 0);
        found = fits ? f : found;
    }
    return found;
}

static void find_launch(draft *d) {
    for (size_t i = 0; i < d->t->launch_count && d->launch == NULL; i++) {
        if (strcmp(d->t->launches[i].kernel, d->kernel->name) == 0)
            d->launch = &d->t->launches[i];
    }
}

/* "<float, 4>" behind the kernel's name on the command line. */
static void read_given_types(draft *d, const char *at) {
    for (at += *at == '<'; *at != '\0' && d->type_count < 8;) {
        size_t length = strcspn(at, ",>");
        const char *type = at + strspn(at, " ");
        size_t end = length;
        while (end > 0 && at[end - 1] == ' ')
            end--;
        d->types[d->type_count++] =
            ev_arena_strndup(d->t->arena, type, type < at + end ? (size_t)(at + end - type) : 0);
        at += length + (at[length] == ',');
        if (*at == '>')
            break;
    }
}

static bool is_type(const draft *d, cuda_range parameter) {
    return cuda_token_is(d->t, parameter.first, "typename") ||
           cuda_token_is(d->t, parameter.first, "class");
}

/* The argument that a call of the launch's function gives to its template parameter `name`; NULL:
 * no such parameter, or no call says it. */
static const char *type_of_caller(const draft *d, const char *name) {
    const cuda_text *t = d->t;
    const cuda_function *within = d->launch->within;
    cuda_range parts[8], given[8];
    size_t count = within != NULL ? cuda_range_split(t, within->types, parts, 8) : 0;
    for (size_t i = 0; i < count && i < 8; i++) {
        if (!cuda_token_is(t, parts[i].end - 1, name))
            continue;
        for (size_t k = 0; k + 2 < t->token_count; k++) {
            if (!cuda_token_is(t, k, within->name) || !cuda_token_is(t, k + 1, "<"))
                continue;
            size_t end = k + 2;
            while (end < t->token_count && !cuda_token_is(t, end, ">"))
                end++;
            if (cuda_range_split(t, (cuda_range){k + 2, end}, given, 8) > i)
                return cuda_range_text(t, given[i]);
        }
    }
    return NULL;
}

/* A template argument of the launch, without names that only the host knows. */
static const char *launched_type(draft *d, bool is_type_parameter, cuda_range given) {
    const char *text = cuda_range_text(d->t, given);
    double value;
    if (is_type_parameter || given.end != given.first + 1 ||
        d->t->tokens[given.first].kind != CUDA_TOKEN_NAME) {
        const char *called = text != NULL ? type_of_caller(d, text) : NULL;
        return called != NULL ? called : text;
    }
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0 || !draft_value(d, given, &value))
        return text;
    return ev_arena_printf(d->t->arena, "%.0f", value);
}

/* Template arguments: those given, those of the launch, else float for a type and 16 for a number.
 */
static void find_types(draft *d, const char *given) {
    cuda_range parts[8], types[8];
    size_t count = cuda_range_split(d->t, d->kernel->types, parts, 8);
    if (count == 0 || count > 8)
        return;
    if (*given == '<') {
        read_given_types(d, given);
        return;
    }
    size_t launched = d->launch != NULL ? cuda_range_split(d->t, d->launch->types, types, 8) : 0;
    for (size_t i = 0; i < launched && i < 8; i++)
        d->types[d->type_count++] =
            launched_type(d, i < count ? is_type(d, parts[i]) : false, types[i]);
    if (d->type_count > 0)
        return;
    for (size_t i = 0; i < count; i++) {
        d->types[d->type_count++] = is_type(d, parts[i]) ? "float" : "16";
    }
    draft_note(d,
               "the source launches no instance of the template: its types are taken as float, "
               "its numbers as 16; 'evoke init FILE.cu \"%s<...>\"' gives others",
               d->kernel->name);
}

/* "ops::scale<float, 4>" */
static void name_instance(draft *d) {
    if (d->type_count == 0)
        return;
    ev_str text = EV_STR_EMPTY;
    ev_str_printf(&text, "%s%s<", d->kernel->space, d->kernel->name);
    for (size_t i = 0; i < d->type_count; i++)
        ev_str_printf(&text, "%s%s", i > 0 ? ", " : "", d->types[i]);
    ev_str_append(&text, ">");
    d->instance = ev_arena_strdup(d->t->arena, ev_str_text(&text));
    ev_str_free(&text);
}

ev_status draft_read(cuda_text *t, const char *path, const char *name, draft *out, ev_error *err) {
    *out = (draft){.t = t, .multiple = 1};
    size_t length = name != NULL ? strcspn(name, "<") : 0;
    out->kernel = find_kernel(t, name, length);
    if (out->kernel == NULL)
        return list_kernels(t, path, name, err);
    find_launch(out);
    find_types(out, name != NULL ? name + length : "");
    EV_TRY(read_arguments(out, path, err));
    name_instance(out);
    return ev_arena_failed(t->arena) ? ev_fail_memory(err, t->bytes) : EV_OK;
}

void draft_free(draft *d) {
    cuda_text_free(d->t);
    ev_str_free(&d->notes);
    *d = (draft){0};
}
