/* The statements of a module that are no instructions: directives, variables, functions. */
#include "fitness/ptx/ptx_parse.h"
#include "fitness/ptx/ptx_load.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define MAX_VARIABLE (1u << 28)

static bool word(ptx_loader *L, const char *text) {
    if (!ptx_lex_is_word(&L->lex, text))
        return false;
    ptx_lex_next(&L->lex);
    return true;
}

static bool skip_to(ptx_loader *L, char punct) {
    while (L->lex.token.kind != PTX_K_END && !ptx_lex_is(&L->lex, punct))
        ptx_lex_next(&L->lex);
    return ptx_expect(L, punct);
}

static uint64_t align_up(uint64_t value, uint64_t align) {
    return (value + align - 1) / align * align;
}

static ev_type element_type(ptx_type t) {
    static const ev_type map[PTX_T_COUNT] = {
        [PTX_T_u8] = EV_U8,   [PTX_T_b8] = EV_U8,   [PTX_T_s8] = EV_S8,   [PTX_T_u16] = EV_U16,
        [PTX_T_b16] = EV_U16, [PTX_T_s16] = EV_S16, [PTX_T_f16] = EV_F16, [PTX_T_bf16] = EV_BF16,
        [PTX_T_u32] = EV_U32, [PTX_T_b32] = EV_U32, [PTX_T_s32] = EV_S32, [PTX_T_f32] = EV_F32,
        [PTX_T_u64] = EV_U64, [PTX_T_b64] = EV_U64, [PTX_T_s64] = EV_S64, [PTX_T_f64] = EV_F64,
    };
    return map[t];
}

/* ---- variables */

static bool parse_align(ptx_loader *L, uint32_t *align) {
    if (!word(L, ".align"))
        return true;
    const ptx_token *t = &L->lex.token;
    if (t->kind != PTX_K_INT || !t->value || t->value > 4096 || (t->value & (t->value - 1)))
        return ptx_fail_expected(L, "a power of two up to 4096");
    *align = (uint32_t)t->value;
    ptx_lex_next(&L->lex);
    return true;
}

static bool parse_type(ptx_loader *L, ptx_type *type) {
    const ptx_token *t = &L->lex.token;
    *type = t->kind == PTX_K_DIRECTIVE ? ptx_type_find(t->at + 1, t->length - 1) : PTX_T_none;
    if (*type == PTX_T_none)
        return ptx_fail_expected(L, "a type");
    ptx_lex_next(&L->lex);
    return true;
}

/* "[16][4]" after a name; *count becomes the number of elements, 0 for "[]". */
static bool parse_dimensions(ptx_loader *L, uint64_t *count, bool *array) {
    *count = 1;
    while (ptx_accept(L, '[')) {
        *array = true;
        if (ptx_accept(L, ']')) {
            *count = 0;
            continue;
        }
        const ptx_token *t = &L->lex.token;
        if (t->kind != PTX_K_INT || t->value > MAX_VARIABLE)
            return ptx_fail_expected(L, "a number of elements up to 2^28");
        *count *= t->value;
        if (*count > MAX_VARIABLE)
            return ptx_fail_expected(L, "at most 2^28 elements in all");
        ptx_lex_next(&L->lex);
        if (!ptx_expect(L, ']'))
            return false;
    }
    return true;
}

/* What stands before the names of variables. */
typedef struct prefix {
    ptx_var v; /* what all of them have */
    uint32_t lanes;
} prefix;

/* [.align N] [.vN] .type [.ptr …] */
static bool parse_prefix(ptx_loader *L, vm_space space, prefix *p) {
    *p = (prefix){.v = {.space = (uint8_t)space}, .lanes = 1};
    if (!parse_align(L, &p->v.align))
        return false;
    if (word(L, ".v2"))
        p->lanes = 2;
    else if (word(L, ".v4"))
        p->lanes = 4;
    if (!ptx_parse_opaque(L, space, &p->v.opaque))
        return false;
    if (p->v.opaque)
        p->v.type = PTX_T_u64;
    else if (!parse_type(L, &p->v.type))
        return false;
    if (word(L, ".ptr"))
        while (L->lex.token.kind == PTX_K_DIRECTIVE) {
            uint32_t ignored = 0;
            if (ptx_lex_is_word(&L->lex, ".align") ? !parse_align(L, &ignored)
                                                   : (ptx_lex_next(&L->lex), false))
                return false;
        }
    return true;
}

/* name [dims]; everything but the place in its space. */
static ptx_var *parse_named(ptx_loader *L, const prefix *p) {
    ptx_var *v = EV_NEW(L->arena, ptx_var);
    if (!v) {
        L->oom = true;
        return NULL;
    }
    *v = p->v;
    const ptx_token *t = &L->lex.token;
    if (t->kind != PTX_K_IDENT) {
        ptx_fail_expected(L, "a name");
        return NULL;
    }
    v->name = ev_arena_strndup(L->arena, t->at, t->length);
    const char *at = t->at;
    uint32_t length = t->length;
    ptx_lex_next(&L->lex);
    uint64_t count;
    if (!parse_dimensions(L, &count, &v->array))
        return NULL;
    uint32_t element = ptx_type_bits(v->type) / 8;
    if (!element) {
        ptx_fail_at(L, at, "found a variable of type .pred; expected a type with bytes");
        return NULL;
    }
    element *= p->lanes;
    uint64_t bytes = element * count;
    if (bytes > MAX_VARIABLE) {
        ptx_fail_at(L, at, "found a variable of %llu bytes; expected at most 2^28",
                    (unsigned long long)bytes);
        return NULL;
    }
    v->bytes = (uint32_t)bytes;
    if (v->align < element && (v->align == 0))
        v->align = element;
    if (length == 1 && *at == '_' && v->space == VM_SPACE_PARAM) /* of a prototype: nameless */
        return v;
    ptx_symbol *s = ptx_symbol_add(L, at, length, PTX_Y_VAR);
    if (!s)
        return NULL;
    s->var = v;
    return v;
}

/* `place` is where the value stands in the text. */
static bool put_bytes(ptx_loader *L, const char *place, ptx_var *v, uint64_t *at, uint64_t value) {
    uint32_t bytes = ptx_type_bits(v->type) / 8;
    if (*at + bytes > v->bytes)
        return ptx_fail_at(L, place,
                           "found more values for '%s'; expected at most %u bytes of them", v->name,
                           v->bytes);
    memcpy(v->init + *at, &value, bytes);
    *at += bytes;
    return true;
}

/* An address that stands in an initial value, and which part of it. */
typedef struct initial_address {
    uint64_t value;
    bool relative; /* to where the .global variables begin */
    uint8_t shift; /* bits */
} initial_address;

static bool add_reloc(ptx_loader *L, const ptx_var *v, uint64_t at, const initial_address *a) {
    vm_module *m = L->m;
    if (!ptx_grow(L, (void **)&m->relocs, &L->reloc_capacity, m->reloc_count, sizeof *m->relocs))
        return false;
    m->relocs[m->reloc_count++] = (ptx_reloc){.offset = v->offset + at,
                                              .value = a->value,
                                              .shift = a->shift,
                                              .bytes = (uint8_t)(ptx_type_bits(v->type) / 8),
                                              .in_const = v->space == VM_SPACE_CONST};
    return true;
}

/* "name", "name+4", "generic(name)", "generic(name)+4"; a function or a variable. */
static bool parse_named_address(ptx_loader *L, initial_address *out) {
    bool generic = word(L, "generic");
    if (generic && !ptx_expect(L, '('))
        return false;
    const ptx_token *t = &L->lex.token;
    ptx_symbol *s = t->kind == PTX_K_IDENT ? ptx_symbol_find(L, t->at, t->length) : NULL;
    if (!s || (s->kind != PTX_Y_VAR && s->kind != PTX_Y_FUNC))
        return ptx_fail_expected(L, "a value or the name of a variable or function");
    ptx_lex_next(&L->lex);
    int64_t offset = 0;
    if (ptx_lex_is(&L->lex, '+') && !ptx_parse_number(L, &offset))
        return false;
    if (generic && !ptx_expect(L, ')'))
        return false;
    if (ptx_lex_is(&L->lex, '+') && !ptx_parse_number(L, &offset))
        return false;
    if (s->kind == PTX_Y_FUNC) {
        out->value = ptx_func_address(s->index);
        return true;
    }
    out->value = s->var->offset + (uint64_t)offset;
    out->relative = s->var->space == VM_SPACE_GLOBAL;
    if (generic && !out->relative)
        out->value += s->var->space == VM_SPACE_CONST ? VM_WINDOW_CONST : VM_WINDOW_SHARED;
    return true;
}

static bool put_address(ptx_loader *L, const char *place, ptx_var *v, uint64_t *at,
                        const initial_address *a) {
    if (a->relative && !add_reloc(L, v, *at, a))
        return false;
    return put_bytes(L, place, v, at, a->value >> a->shift);
}

/* The address of a variable or function as an initial value. */
static bool parse_initial_address(ptx_loader *L, ptx_var *v, uint64_t *at) {
    initial_address a = {0};
    const char *place = L->lex.token.at;
    if (ptx_type_bits(v->type) != 64)
        return ptx_fail_expected(L, "a number: only a type of 64 bits holds an address");
    return parse_named_address(L, &a) && put_address(L, place, v, at, &a);
}

/* One byte of an address: "0xff00(name)" (PTX ISA 5.4.4, mask()). */
static bool parse_masked_address(ptx_loader *L, ptx_var *v, uint64_t *at, uint64_t mask) {
    initial_address a = {0};
    const char *place = L->lex.token.at;
    while (a.shift < 64 && mask >> a.shift != 0xff)
        a.shift = (uint8_t)(a.shift + 8);
    if (ptx_type_bits(v->type) != 8 || a.shift == 64)
        return ptx_fail_expected(L, "a mask of one byte, in a variable of bytes");
    return ptx_expect(L, '(') && parse_named_address(L, &a) && ptx_expect(L, ')') &&
           put_address(L, place, v, at, &a);
}

static bool parse_initial_value(ptx_loader *L, ptx_var *v, uint64_t *at) {
    const ptx_token *t = &L->lex.token;
    const char *place = t->at;
    bool minus = ptx_accept(L, '-');
    uint64_t value = t->value;
    if (t->kind == PTX_K_IDENT && !minus)
        return parse_initial_address(L, v, at);
    if (t->kind == PTX_K_F64 && ptx_type_bits(v->type) == 32) {
        double wide;
        memcpy(&wide, &value, sizeof wide);
        float narrow = (float)(minus ? -wide : wide);
        value = 0;
        memcpy(&value, &narrow, sizeof narrow);
    } else if (t->kind == PTX_K_INT) {
        value = minus ? 0 - value : value;
    } else if (t->kind == PTX_K_F32 || t->kind == PTX_K_F64) {
        uint64_t sign = t->kind == PTX_K_F32 ? 0x80000000u : 1ull << 63;
        value ^= minus ? sign : 0;
    } else {
        return ptx_fail_expected(L, "an initial value");
    }
    bool integer = t->kind == PTX_K_INT;
    ptx_lex_next(&L->lex);
    if (integer && ptx_lex_is(&L->lex, '('))
        return parse_masked_address(L, v, at, value);
    return put_bytes(L, place, v, at, value);
}

static bool parse_initial_list(ptx_loader *L, ptx_var *v, uint64_t *at, unsigned depth) {
    if (depth > 16)
        return ptx_fail_expected(L, "at most 17 nested braces");
    if (ptx_accept(L, '}'))
        return true;
    do {
        if (ptx_accept(L, '{') ? !parse_initial_list(L, v, at, depth + 1)
                               : !parse_initial_value(L, v, at))
            return false;
    } while (ptx_accept(L, ','));
    return ptx_expect(L, '}');
}

/* The number of values decides the size of "name[] = {…}": counted ahead on a copy of the lexer. */
static uint32_t count_values(const ptx_loader *L) {
    ptx_lexer ahead = L->lex;
    uint32_t count = 0;
    int depth = 0;
    do {
        depth += ptx_lex_is(&ahead, '{') - ptx_lex_is(&ahead, '}');
        count += ahead.token.kind == PTX_K_INT || ahead.token.kind == PTX_K_F32 ||
                 ahead.token.kind == PTX_K_F64;
        ptx_lex_next(&ahead);
    } while (depth > 0 && ahead.token.kind != PTX_K_END && count < MAX_VARIABLE / 8);
    return count;
}

static bool parse_initialiser(ptx_loader *L, ptx_var *v) {
    if (v->bytes == 0)
        v->bytes = count_values(L) * (ptx_type_bits(v->type) / 8);
    v->init = ev_arena_alloc(L->arena, v->bytes ? v->bytes : 1);
    if (!v->init) {
        L->oom = true;
        return false;
    }
    uint64_t at = 0;
    if (ptx_accept(L, '{'))
        return parse_initial_list(L, v, &at, 0);
    return parse_initial_value(L, v, &at);
}

static bool place_image(ptx_loader *L, ptx_var *v, uint8_t **image, uint64_t *used) {
    uint64_t end = v->offset + v->bytes;
    uint8_t *bigger = realloc(*image, end + 1);
    if (!bigger) {
        L->oom = true;
        return false;
    }
    memset(bigger + *used, 0, end + 1 - *used);
    *image = bigger;
    *used = end;
    return true;
}

/* Where the text declares it. */
static const char *place_of(ptx_loader *L, const ptx_var *v) {
    const ptx_symbol *s = ptx_symbol_find(L, v->name, (uint32_t)strlen(v->name));
    return s ? s->name : L->lex.token.at;
}

uint64_t ptx_place_at(const ptx_loader *L, uint64_t from, uint32_t align) {
    uint64_t at = align_up(from, align);
    return L->placement == VM_PLACE_PACKED || at / align % 2 ? at : at + align;
}

static void place_shared(ptx_loader *L, ptx_var *v) {
    ptx_shared_end *end = L->func ? &L->shared_func : &L->shared_module;
    /* An entry above may call a function that is defined behind it. */
    if ((!L->func || !L->func->entry) && end->packed + end->gaps < L->shared_most)
        end->gaps = align_up(L->shared_most - end->packed + PTX_SHARED_GAP, PTX_SHARED_GAP);
    uint64_t packed = align_up(end->packed, v->align);
    uint64_t gaps = align_up(end->gaps + (end->packed ? PTX_SHARED_GAP : 0), v->align);
    v->offset = ptx_place_at(L, packed + gaps, v->align);
    *end = (ptx_shared_end){packed + v->bytes, align_up(v->offset - packed, PTX_SHARED_GAP)};
    if (!L->func && L->shared_func.packed < end->packed)
        L->shared_func = *end;
}

/* The stack of a called function begins at a multiple of local_align: twice the alignment keeps
 * odd multiples odd. */
static void place_local(ptx_loader *L, ptx_var *v) {
    ptx_func *f = L->func;
    uint64_t packed = align_up(f->local_bytes, v->align);
    uint32_t align = L->placement == VM_PLACE_PACKED ? v->align : 2 * v->align;
    v->offset = ptx_place_at(L, packed, v->align);
    L->local_moved += (uint32_t)(v->offset - packed);
    if (f->local_align < align)
        f->local_align = align;
}

/* Gives a variable its address in its space, and reads what it holds at first. */
static bool place_variable(ptx_loader *L, ptx_var *v, bool is_extern) {
    vm_module *m = L->m;
    bool initialised = ptx_lex_is(&L->lex, '=');
    if (v->space == VM_SPACE_SHARED) {
        if (initialised)
            return ptx_fail_expected(L, "';': a .shared variable has no initial value");
        if (is_extern || v->bytes == 0) {
            v->dynamic = true;
            if (L->dynamic_align < v->align)
                L->dynamic_align = v->align;
            return true;
        }
        place_shared(L, v);
        return true;
    }
    if (v->space == VM_SPACE_LOCAL) {
        assert(L->func);
        place_local(L, v);
        L->func->local_bytes = (uint32_t)(v->offset + v->bytes);
        if (L->func->local_bytes > MAX_VARIABLE)
            return ptx_fail_at(
                L, place_of(L, v),
                "found '%s' of %u bytes; expected at most 2^28 bytes of local memory", v->name,
                v->bytes);
        return true;
    }
    if (is_extern)
        return ptx_fail_at(L, place_of(L, v),
                           "found an extern variable '%s'; expected one "
                           "defined in this module",
                           v->name);
    bool global = v->space == VM_SPACE_GLOBAL;
    uint64_t *used = global ? &m->global_bytes : &m->const_bytes;
    uint64_t from = global && *used ? *used + PTX_GLOBAL_GAP : *used;
    if (global && L->placement != VM_PLACE_ODD_GLOBALS)
        v->offset = align_up(from, v->align < 16 ? 16 : v->align);
    else
        v->offset = ptx_place_at(L, from, v->align);
    if (v->opaque ? !ptx_init_opaque(L, v) : ptx_accept(L, '=') && !parse_initialiser(L, v))
        return false;
    if (!place_image(L, v, global ? &m->global_image : &m->const_image, used))
        return false;
    if (v->init)
        memcpy((global ? m->global_image : m->const_image) + v->offset, v->init, v->bytes);
    return true;
}

/* A driver gives cooperative launches zeros for their barriers there. Two halves of an address. */
bool ptx_place_workspace(ptx_loader *L) {
    if (!L->reads_workspace)
        return true;
    ptx_var *v = EV_NEW(L->arena, ptx_var);
    if (!v)
        return !(L->oom = true);
    *v = (ptx_var){.name = "(workspace of the grid)",
                   .space = VM_SPACE_GLOBAL,
                   .bytes = 64,
                   .align = 16,
                   .type = PTX_T_b8,
                   .array = true,
                   .func = PTX_NONE,
                   .next = L->m->variables};
    L->m->variables = v;
    if (!place_variable(L, v, false))
        return false;
    L->m->workspace = v->offset + 1;
    return true;
}

/* (.managed) or (.unified(n, n)): every variable is within the reach of host and kernels here. */
bool ptx_parse_attributes(ptx_loader *L) {
    if (!ptx_expect(L, '('))
        return false;
    do {
        if (!ptx_directive_allowed(L))
            return false;
        if (word(L, ".unified")) {
            int64_t ignored;
            if (!ptx_expect(L, '(') || !ptx_parse_number(L, &ignored) || !ptx_expect(L, ',') ||
                !ptx_parse_number(L, &ignored) || !ptx_expect(L, ')'))
                return false;
        } else if (!word(L, ".managed")) {
            return ptx_fail_expected(L, ".managed or .unified");
        }
    } while (ptx_accept(L, ','));
    return ptx_expect(L, ')');
}

bool ptx_parse_variables(ptx_loader *L, vm_space space, bool is_extern) {
    if (!ptx_directive_allowed(L) || (word(L, ".attribute") && !ptx_parse_attributes(L)))
        return false;
    prefix p;
    if (!parse_prefix(L, space, &p))
        return false;
    do {
        ptx_var *v = parse_named(L, &p);
        if (!v || !place_variable(L, v, is_extern))
            return false;
        bool own = L->func && (v->space == VM_SPACE_SHARED || v->space == VM_SPACE_LOCAL);
        v->func = own ? L->func_index : PTX_NONE;
        v->next = L->m->variables;
        L->m->variables = v;
    } while (ptx_accept(L, ','));
    return ptx_expect(L, ';');
}

/* ---- registers */

static bool parse_registers(ptx_loader *L) {
    ptx_type type;
    unsigned lanes = ptx_parse_lanes(L);
    if (lanes && ptx_lex_is_word(&L->lex, ".pred"))
        return ptx_fail_expected(L, "a type with bytes for a vector");
    if (!parse_type(L, &type))
        return false;
    unsigned bits = ptx_type_bits(type) == 8 ? 16 : ptx_type_bits(type);
    do {
        ptx_token t = L->lex.token;
        if (t.kind != PTX_K_IDENT)
            return ptx_fail_expected(L, "a register name");
        ptx_lex_next(&L->lex);
        bool range = ptx_accept(L, '<');
        ptx_symbol *s = ptx_symbol_add(L, t.at, t.length, range ? PTX_Y_RANGE : PTX_Y_REG);
        if (!s)
            return false;
        s->bits = (uint8_t)bits;
        s->index = PTX_NONE;
        const ptx_token *n = &L->lex.token;
        if (range && (n->kind != PTX_K_INT || n->value > 1u << 20))
            return ptx_fail_expected(L, "a number of registers up to 2^20");
        s->count = range ? (uint32_t)n->value : 0;
        if ((range || lanes) && !ptx_vector_declare(L, s, lanes))
            return false;
        if (!range)
            continue;
        ptx_lex_next(&L->lex);
        if (!ptx_expect(L, '>'))
            return false;
    } while (ptx_accept(L, ','));
    return ptx_expect(L, ';');
}

/* ---- statements of a body */

/* A .param inside a function: values of a call; one copy a lane in the frame. */
bool ptx_place_frame_param(ptx_loader *L, ptx_var *v) {
    v->stride = (uint32_t)align_up(v->bytes ? v->bytes : 8, 8);
    if (v->stride > 1u << 16)
        return ptx_fail_at(L, place_of(L, v),
                           "found '%s' of %u bytes; expected a parameter of at most 64 KiB",
                           v->name, v->bytes);
    v->offset = L->func->frame_bytes;
    L->func->frame_bytes += (uint32_t)align_up((uint64_t)v->stride * 32, 64);
    if (L->func->frame_bytes > 1u << 26)
        return ptx_fail_at(L, place_of(L, v),
                           "found '%s' of %u bytes; expected at most 64 MiB of registers and "
                           "parameters",
                           v->name, v->bytes);
    return true;
}

static bool parse_frame_params(ptx_loader *L) {
    prefix p;
    if (!parse_prefix(L, VM_SPACE_PARAM, &p))
        return false;
    do {
        ptx_var *v = parse_named(L, &p);
        if (!v || !ptx_place_frame_param(L, v))
            return false;
    } while (ptx_accept(L, ','));
    return ptx_expect(L, ';');
}

/* Of what was inlined from another file than the first, the kernel's own, the line where it was
 * inlined. */
static bool parse_loc(ptx_loader *L) {
    int64_t file, line, column, at_file, at_line;
    if (!ptx_parse_number(L, &file) || !ptx_parse_number(L, &line) || !ptx_parse_number(L, &column))
        return false;
    L->source_line = line < 0 || line > UINT32_MAX ? 0 : (uint32_t)line;
    while (ptx_accept(L, ',')) { /* function_name NAME [+ N], inlined_at file line column */
        if (!ptx_allowed(L, L->lex.token.at, ".loc of what is inlined", (ptx_need){70, 20}))
            return false;
        bool inlined = ptx_lex_is_word(&L->lex, "inlined_at");
        ptx_lex_next(&L->lex);
        if (inlined) {
            if (!ptx_parse_number(L, &at_file) || !ptx_parse_number(L, &at_line) ||
                !ptx_parse_number(L, &column))
                return false;
            if (file != 1 && at_line > 0 && at_line <= UINT32_MAX)
                L->source_line = (uint32_t)at_line;
            continue;
        }
        ptx_lex_next(&L->lex);
        if (ptx_accept(L, '+'))
            ptx_lex_next(&L->lex);
    }
    return true;
}

static bool parse_body_directive(ptx_loader *L) {
    if (word(L, ".reg"))
        return parse_registers(L);
    if (word(L, ".loc"))
        return parse_loc(L);
    if (word(L, ".param"))
        return parse_frame_params(L);
    if (word(L, ".local"))
        return ptx_parse_variables(L, VM_SPACE_LOCAL, false);
    if (word(L, ".shared"))
        return ptx_parse_variables(L, VM_SPACE_SHARED, false);
    if (word(L, ".global"))
        return ptx_parse_variables(L, VM_SPACE_GLOBAL, false);
    if (word(L, ".const"))
        return ptx_parse_variables(L, VM_SPACE_CONST, false);
    if (word(L, ".pragma"))
        return skip_to(L, ';');
    return ptx_fail_expected(L, ".reg, .local, .shared, .param, .loc, .pragma or an instruction");
}

static bool define_label(ptx_loader *L, ptx_token name) {
    vm_module *m = L->m;
    if (m->insn_count > L->func->pub.first_pc && !L->after_control) {
        ptx_insn fall = {.guard = PTX_NONE, .row = PTX_OP_FALL, .target = m->insn_count + 1};
        ptx_cold cold = {.name = "(label)",
                         .line = name.line,
                         .source_line = L->source_line,
                         .guard_reg = PTX_NONE,
                         .func = L->func_index};
        if (ptx_emit(L, &fall, &cold) == PTX_NONE)
            return false;
    }
    ptx_symbol *s = ptx_symbol_add(L, name.at, name.length, PTX_Y_LABEL);
    if (!s)
        return false;
    s->index = L->label_at_end = m->insn_count;
    L->after_control = true; /* two labels in a row need one check */
    return true;
}

static bool parse_statement(ptx_loader *L) {
    const ptx_token t = L->lex.token;
    if (t.kind == PTX_K_DIRECTIVE)
        return parse_body_directive(L);
    if (t.kind == PTX_K_IDENT && *t.at != '%') {
        const char *p = L->lex.pos;
        while (p < L->lex.end && (*p == ' ' || *p == '\t'))
            p++;
        if (p[0] == ':' && p[1] != ':') {
            ptx_lex_next(&L->lex);
            ptx_lex_next(&L->lex);
            bool is_table;
            return ptx_parse_table(L, &t, &is_table) && (is_table || define_label(L, t));
        }
    }
    if (ptx_accept(L, ';'))
        return true;
    return ptx_parse_instruction(L);
}

bool ptx_parse_body(ptx_loader *L) {
    unsigned depth = 1;
    while (depth) {
        if (ptx_lex_is(&L->lex, '{')) {
            if (!ptx_scope_enter(L))
                return false;
            depth++;
            ptx_lex_next(&L->lex);
        } else if (ptx_lex_is(&L->lex, '}')) {
            if (!ptx_scope_leave(L))
                return false;
            depth--;
            ptx_lex_next(&L->lex);
        } else if (L->lex.token.kind == PTX_K_END) {
            return ptx_fail_expected(L, "'}'");
        } else if (!parse_statement(L) || L->failed || L->oom) {
            return false;
        }
    }
    return true;
}

/* ---- parameters of functions */

static ptx_var *parse_register_param(ptx_loader *L, unsigned *lanes) {
    ptx_var *v = EV_NEW(L->arena, ptx_var);
    if (!v) {
        L->oom = true;
        return NULL;
    }
    *lanes = ptx_parse_lanes(L);
    if (!parse_type(L, &v->type))
        return NULL;
    unsigned bits = ptx_type_bits(v->type);
    ptx_token t = L->lex.token;
    if (bits < 8 || bits > 64 || t.kind != PTX_K_IDENT) {
        ptx_fail_expected(L, bits < 8 ? "a parameter with bytes" : "the name of a register");
        return NULL;
    }
    ptx_lex_next(&L->lex);
    v->name = ev_arena_strndup(L->arena, t.at, t.length);
    v->space = VM_SPACE_NONE;
    v->bytes = v->align = bits / 8;
    if (t.length == 1 && *t.at == '_')
        return v;
    ptx_symbol *s = ptx_symbol_add(L, t.at, t.length, PTX_Y_REG);
    if (!s)
        return NULL;
    s->bits = (uint8_t)(bits == 8 ? 16 : bits);
    s->index = PTX_NONE;
    return *lanes && !ptx_vector_declare(L, s, *lanes) ? NULL : v;
}

/* `lanes`: of a vector register, else 0. */
static ptx_var *parse_param(ptx_loader *L, unsigned *lanes) {
    ptx_var *v = NULL;
    prefix p;
    *lanes = 0;
    if (word(L, ".param"))
        v = parse_prefix(L, VM_SPACE_PARAM, &p) ? parse_named(L, &p) : NULL;
    else if (word(L, ".reg"))
        v = parse_register_param(L, lanes);
    else
        ptx_fail_expected(L, ".param or .reg");
    if (v && !v->bytes) {
        ptx_fail_expected(L, "a parameter of known size (functions of any number of arguments are "
                             "not supported)");
        return NULL;
    }
    return v;
}

/* Adds a parameter to a list; a vector register is as many as it has parts. */
static bool add_param(ptx_loader *L, const ptx_var *v, unsigned lanes, ptx_var **params,
                      size_t *capacity, size_t *count) {
    for (unsigned i = 0; i < (lanes ? lanes : 1); i++) {
        if (!ptx_grow(L, (void **)params, capacity, *count, sizeof **params))
            return false;
        ptx_var *p = &(*params)[(*count)++];
        *p = *v;
        if (lanes)
            p->name = ptx_lane_name(L, v->name, (uint32_t)strlen(v->name), i);
    }
    return !L->oom;
}

bool ptx_parse_params(ptx_loader *L, ptx_var **list, size_t *count) {
    size_t capacity = 0;
    ptx_var *params = NULL;
    bool ok = true;
    *count = 0;
    if (ptx_accept(L, ')'))
        return true;
    do {
        unsigned lanes;
        const ptx_var *v = parse_param(L, &lanes);
        ok = v && add_param(L, v, lanes, &params, &capacity, count);
    } while (ok && ptx_accept(L, ','));
    if (ok) {
        *list = ev_arena_copy(L->arena, params, *count * sizeof *params);
        L->oom |= !*list;
    }
    free(params);
    for (size_t i = 0; ok && !L->oom && i < *count; i++) { /* the list has its place now */
        const char *name = (*list)[i].name;
        ptx_symbol *s = ptx_symbol_find(L, name, (uint32_t)strlen(name));
        if (s && s->kind == PTX_Y_VAR && s->scope == L->scope)
            s->var = &(*list)[i];
    }
    return ok && !L->oom && ptx_expect(L, ')');
}

static bool place_param(ptx_loader *L, ptx_var *v) {
    if (v->space == VM_SPACE_PARAM)
        return ptx_place_frame_param(L, v);
    v->stride = v->bytes == 8 ? 8 : 4;
    uint32_t length = (uint32_t)strlen(v->name);
    uint32_t reg = ptx_register_find(L, v->name, length);
    if (reg == PTX_NONE)
        reg = ptx_lane_find(L, v->name, length);
    v->offset = reg == PTX_NONE ? ptx_slot_new(L, v->bytes * 8) : L->m->regs[reg].slot;
    return !L->failed && !L->oom;
}

bool ptx_place_signature(ptx_loader *L, ptx_func *f) {
    for (size_t i = 0; i < f->sig.param_count; i++)
        if (!place_param(L, &f->sig.params[i]))
            return false;
    for (size_t i = 0; i < f->sig.ret_count; i++)
        if (!place_param(L, &f->sig.rets[i]))
            return false;
    return true;
}

void ptx_entry_layout(ptx_func *f, ev_arena *arena) {
    vm_param *list = EV_NEW_ARRAY(arena, vm_param, f->sig.param_count + 1);
    uint64_t at = 0;
    for (size_t i = 0; list && i < f->sig.param_count; i++) {
        ptx_var *v = &f->sig.params[i];
        at = align_up(at, v->align);
        v->offset = at;
        list[i] = (vm_param){.name = v->name,
                             .offset = (uint32_t)at,
                             .bytes = v->bytes,
                             .align = v->align,
                             .type = v->array ? EV_U8 : element_type(v->type)};
        at += v->bytes;
    }
    f->pub.params = list;
    f->pub.param_count = f->sig.param_count;
    f->pub.param_bytes = (uint32_t)at;
}
