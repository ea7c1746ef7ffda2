/* Structs that a kernel takes by value, or that stand in a buffer: where C places their fields.
 *
 * A field is a number, or a pointer to a buffer. Inner structs, vectors and arrays are taken apart,
 * so that each of their numbers is a field of its own: "size.x" of the source is "size_x" here.
 *
 * In a buffer of structs, inner structs alone are taken apart, and the names are the source's:
 * "box.low", "corner[2].id". */
#include "tuner/init/draft.h"

#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 4, NAMES = 16 };

/* The fields that were read so far. */
typedef struct layout {
    draft *d;
    draft_layout *out;
    uint32_t align;  /* the largest of all fields */
    bool is_element; /* of a buffer */
} layout;

static uint32_t round_up(uint32_t bytes, uint32_t align) {
    return (bytes + align - 1) / align * align;
}

/* ---- the struct in the source ------------------------------------------------------------------
 */

/* The bytes of __align__(16) or alignas(16) between two tokens; 1: none. */
static uint32_t stated_align(const cuda_text *t, size_t from, size_t to) {
    for (size_t i = from; i + 2 < to; i++) {
        if (cuda_token_is(t, i, "__align__") || cuda_token_is(t, i, "alignas"))
            return (uint32_t)strtoul(t->text + t->tokens[i + 2].begin, NULL, 10);
    }
    return 1;
}

/* Whether C places the fields of a struct otherwise than by their types: behind those of a base, or
 * packed. [from, open) are the tokens before its brace. */
static bool is_placed_otherwise(const cuda_text *t, size_t from, size_t open) {
    static const char *const words[] = {":", "packed", "__packed__"};
    size_t close = t->tokens[open].match;
    for (size_t i = from; i < t->token_count && !cuda_token_is(t, i, ";"); i++) {
        if (i == open)
            i = close; /* an attribute may stand behind the brace */
        for (size_t k = 0; k < sizeof words / sizeof words[0]; k++) {
            if (cuda_token_is(t, i, words[k]))
                return true;
        }
    }
    for (size_t i = 0; i < open; i++) {
        if (t->tokens[i].kind != CUDA_TOKEN_DIRECTIVE)
            continue;
        const char *text = cuda_token_text(t, i);
        if (text == NULL || (strstr(text, "pragma") != NULL && strstr(text, "pack") != NULL))
            return true;
    }
    return false;
}

/* The { of the struct or class of that name; 0: none. */
static size_t find_struct(const cuda_text *t, const char *name, uint32_t *align) {
    for (size_t i = 0; i + 1 < t->token_count; i++) {
        if (!cuda_token_is(t, i, "struct") && !cuda_token_is(t, i, "class"))
            continue;
        size_t open = i + 1;
        while (open < t->token_count && !cuda_token_is(t, open, "{") &&
               !cuda_token_is(t, open, ";"))
            open = t->tokens[open].match != 0 ? t->tokens[open].match + 1 : open + 1;
        if (!cuda_token_is(t, open, "{"))
            continue;
        bool is_named = open > i + 1 && cuda_token_is(t, open - 1, name);
        if (!is_named && !cuda_token_is(t, t->tokens[open].match + 1, name))
            continue;
        if (is_placed_otherwise(t, i, open))
            return 0;
        *align = stated_align(t, i, open);
        return open;
    }
    return 0;
}

/* ---- fields ------------------------------------------------------------------------------------
 */

static bool add_number(layout *l, const char *name, ev_type type, uint32_t align) {
    draft_layout *out = l->out;
    if (out->count == DRAFT_ARGUMENTS)
        return false;
    uint32_t offset = round_up(out->bytes, align);
    out->fields[out->count++] = (draft_field){.name = name, .type = type, .offset = offset};
    out->bytes = offset + (uint32_t)ev_type_bytes(type);
    l->align = align > l->align ? align : l->align;
    return true;
}

/* float4: four fields, the first of which is aligned as the whole. `name` NULL: the vector is the
 * whole argument. */
static uint32_t align_of(ev_type type, uint32_t lanes) {
    uint32_t bytes = (uint32_t)ev_type_bytes(type), whole = bytes * lanes;
    bool is_power = (lanes & (lanes - 1)) == 0;
    if (!is_power)
        return bytes;
    return whole < 16 ? whole : 16;
}

static bool add_vector(layout *l, const char *name, ev_type type, uint32_t lanes) {
    uint32_t bytes = (uint32_t)ev_type_bytes(type), align = align_of(type, lanes);
    for (uint32_t i = 0; i < lanes; i++) {
        char lane = "xyzw"[i & 3];
        const char *own = name;
        if (name == NULL)
            own = ev_arena_printf(l->d->t->arena, "%c", lane);
        else if (lanes > 1)
            own = ev_arena_printf(l->d->t->arena, "%s_%c", name, lane);
        if (own == NULL || !add_number(l, own, type, i == 0 ? align : bytes))
            return false;
    }
    return true;
}

/* Of a buffer: all numbers of a number, a vector, or an array of them. */
static bool add_whole(layout *l, const char *name, const char *type, uint32_t count) {
    draft_layout *out = l->out;
    ev_type of;
    uint32_t lanes;
    if (out->count == DRAFT_ARGUMENTS || !draft_type(l->d, type, &of, &lanes) || lanes > 4)
        return false;
    uint32_t align = align_of(of, lanes), offset = round_up(out->bytes, align);
    out->fields[out->count++] = (draft_field){.name = name,
                                              .type = of,
                                              .lanes = lanes,
                                              .count = count,
                                              .offset = offset,
                                              .is_bool = strcmp(type, "bool") == 0};
    out->bytes = offset + count * lanes * (uint32_t)ev_type_bytes(of);
    l->align = align > l->align ? align : l->align;
    return true;
}

static bool add_pointer(layout *l, const char *name, const char *type, bool is_const) {
    draft_layout *out = l->out;
    ev_type element;
    uint32_t lanes;
    if (out->count == DRAFT_ARGUMENTS || !draft_type(l->d, type, &element, &lanes))
        return false;
    uint32_t offset = round_up(out->bytes, 8);
    out->fields[out->count++] = (draft_field){.name = name,
                                              .type = element,
                                              .lanes = lanes,
                                              .offset = offset,
                                              .is_buffer = true,
                                              .is_const = is_const};
    out->bytes = offset + 8;
    l->align = 8;
    return true;
}

static bool add_type(layout *l, const char *name, const char *type, int depth);

/* Adds all that stands between the { at `open` and its }. */
static bool add_members(layout *l, size_t open, const char *prefix, int depth);

static bool add_type(layout *l, const char *name, const char *type, int depth) {
    ev_type of;
    uint32_t lanes, align = 1;
    size_t open = find_struct(l->d->t, type, &align);
    if (open == 0 && l->is_element)
        return add_whole(l, name, type, 1);
    if (open == 0)
        return draft_type(l->d, type, &of, &lanes) && lanes <= 4 && add_vector(l, name, of, lanes);
    layout inner = *l;
    inner.align = align;
    /* The alignment of an inner struct is known behind its fields, so they are read twice. */
    draft_layout tried = *l->out;
    inner.out = &tried;
    if (depth >= DEEPEST || !add_members(&inner, open, name, depth + 1))
        return false;
    l->out->bytes = round_up(l->out->bytes, inner.align);
    if (!add_members(l, open, name, depth + 1))
        return false;
    l->out->bytes = round_up(l->out->bytes, inner.align);
    l->align = inner.align > l->align ? inner.align : l->align;
    return true;
}

/* One name of a declaration: [first, end) has its stars, name and brackets. */
static bool add_declared(layout *l, const char *type, cuda_range own, bool is_const,
                         const char *prefix, int depth) {
    const cuda_text *t = l->d->t;
    unsigned stars = 0;
    size_t name = own.end;
    for (size_t i = own.first; i < own.end && !cuda_token_is(t, i, "[") &&
                               !cuda_token_is(t, i, "=") && !cuda_token_is(t, i, "{");
         i++) {
        if (cuda_token_is(t, i, ":"))
            return false; /* some bits of a number */
        stars += cuda_token_is(t, i, "*");
        if (t->tokens[i].kind == CUDA_TOKEN_NAME && !draft_is_qualifier(t, i))
            name = i;
    }
    size_t behind = name + 1;
    int64_t length = name < own.end ? draft_length(l->d, &behind, own.end) : 0;
    if (length == 0 || stars > 1)
        return false;
    const char *word = cuda_token_text(t, name);
    uint32_t align;
    if (prefix != NULL)
        word = ev_arena_printf(t->arena, l->is_element ? "%s.%s" : "%s_%s", prefix, word);
    if (l->is_element && stars == 0 && length <= UINT16_MAX && find_struct(t, type, &align) == 0)
        return word != NULL && add_whole(l, word, type, (uint32_t)length);
    for (uint32_t i = 0; word != NULL && i < length; i++) {
        const char *each = word;
        if (length > 1)
            each = ev_arena_printf(t->arena, l->is_element ? "%s[%u]" : "%s_%u", word, i);
        bool ok = each != NULL && (stars > 0 ? add_pointer(l, each, type, is_const)
                                             : add_type(l, each, type, depth));
        if (!ok)
            return false;
    }
    return word != NULL;
}

/* "const float *x, *y" */
static bool add_declaration(layout *l, cuda_range range, const char *prefix, int depth) {
    const cuda_text *t = l->d->t;
    cuda_range parts[NAMES];
    size_t count = cuda_range_split(t, range, parts, NAMES), end = range.first;
    bool is_const = false;
    ev_str type = EV_STR_EMPTY;
    if (count == 0 || count > NAMES)
        return false;
    /* The type ends before the star, or before the last word. */
    size_t last = range.first;
    for (size_t i = parts[0].first; i < parts[0].end && !cuda_token_is(t, i, "[") &&
                                    !cuda_token_is(t, i, "=") && !cuda_token_is(t, i, "{");
         i++) {
        if (t->tokens[i].kind == CUDA_TOKEN_NAME && !draft_is_qualifier(t, i))
            last = i;
    }
    while (end < last && !cuda_token_is(t, end, "*"))
        end++;
    for (size_t i = range.first; i < end; i++) {
        is_const |= cuda_token_is(t, i, "const");
        if (draft_is_qualifier(t, i) || cuda_token_is(t, i, "struct"))
            continue;
        bool apart =
            type.length > 0 && !cuda_token_is(t, i, "::") && !cuda_token_is(t, i - 1, "::");
        ev_str_printf(&type, "%s%s", apart ? " " : "", cuda_token_text(t, i));
    }
    parts[0].first = end;
    bool ok = type.length > 0;
    for (size_t i = 0; ok && i < count; i++)
        ok = add_declared(l, ev_str_text(&type), parts[i], is_const, prefix, depth);
    ev_str_free(&type);
    return ok;
}

/* Whether a member has no place in the struct's bytes. */
static bool has_no_bytes(const cuda_text *t, size_t at) {
    static const char *const words[] = {"static", "using",    "typedef",  "friend",
                                        "enum",   "template", "constexpr"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (cuda_token_is(t, at, words[i]))
            return true;
    }
    return false;
}

/* The token behind a member that begins at `at`; behind the struct's }: it has no end.
 * *is_function: it has a body or parameters. */
static size_t behind_member(const cuda_text *t, size_t at, size_t close, bool *is_function) {
    *is_function = false;
    bool has_value = false;
    for (; at < close; at = t->tokens[at].match != 0 ? t->tokens[at].match + 1 : at + 1) {
        has_value |= cuda_token_is(t, at, "=");
        *is_function |= !has_value && cuda_token_is(t, at, "(");
        if (cuda_token_is(t, at, ";"))
            return at + 1;
        if (*is_function && cuda_token_is(t, at, "{"))
            return t->tokens[at].match + 1;
    }
    return close + 1;
}

static bool add_members(layout *l, size_t open, const char *prefix, int depth) {
    const cuda_text *t = l->d->t;
    size_t close = t->tokens[open].match;
    for (size_t at = open + 1; at < close;) {
        bool is_function, is_label = cuda_token_is(t, at + 1, ":"); /* public: */
        if (is_label || cuda_token_is(t, at, ";") || t->tokens[at].kind == CUDA_TOKEN_DIRECTIVE) {
            at += is_label ? 2 : 1;
            continue;
        }
        size_t behind = behind_member(t, at, close, &is_function);
        bool ok = is_function || has_no_bytes(t, at) || behind > close ||
                  add_declaration(l, (cuda_range){at, behind - 1}, prefix, depth);
        if (!ok)
            return false;
        at = behind;
    }
    return true;
}

bool draft_struct(draft *d, const char *type, bool is_element, draft_layout *out) {
    layout l = {.d = d, .out = out, .align = 1, .is_element = is_element};
    ev_type of;
    uint32_t lanes, align = 1;
    *out = (draft_layout){0};
    if (strncmp(type, "struct ", 7) == 0)
        type += 7;
    size_t open = find_struct(d->t, type, &align);
    bool ok = false;
    if (open != 0)
        ok = add_members(&l, open, NULL, 0);
    else if (draft_type(d, type, &of, &lanes) && lanes > 1 && lanes <= 4)
        ok = add_vector(&l, NULL, of, lanes);
    l.align = align > l.align ? align : l.align;
    out->bytes = round_up(out->bytes, l.align);
    return ok && out->count > 0;
}

/* ---- data --------------------------------------------------------------------------------------
 */

uint32_t draft_numbers(const draft_field *f) {
    return f->count * f->lanes;
}

void draft_fill_structs(const draft_layout *l, void *data, uint64_t structs) {
    ev_pcg rng = ev_pcg_seed(1, 1);
    memset(data, 0, structs * l->bytes);
    for (uint64_t s = 0; s < structs; s++) {
        for (size_t i = 0; i < l->count; i++) {
            const draft_field *f = &l->fields[i];
            char *at = (char *)data + s * l->bytes + f->offset;
            for (uint32_t k = 0; k < draft_numbers(f); k++)
                ev_type_set(f->type, at, k, draft_guess(f->type, f->is_bool, &rng));
        }
    }
}

bool draft_is_all_written(const draft_argument *a, const uint8_t *written, uint64_t words) {
    const draft_layout *l = a->mixed;
    uint64_t word = ev_type_bytes(a->type);
    for (uint64_t s = 0; l == NULL && s < words; s++) {
        if (!written[s])
            return false;
    }
    for (uint64_t s = 0; l != NULL && s < words * word / l->bytes; s++) {
        for (size_t i = 0; i < l->count; i++) {
            const draft_field *f = &l->fields[i];
            uint64_t begin = s * l->bytes + f->offset;
            uint64_t end = begin + draft_numbers(f) * ev_type_bytes(f->type);
            for (uint64_t w = begin / word; w < end / word; w++) {
                if (!written[w])
                    return false;
            }
        }
    }
    return true;
}
