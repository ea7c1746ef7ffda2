/* Textures and surfaces as the loader sees them: variables of the opaque types, the coordinates of
 * each geometry, and places "[texture, {x, y}]" (PTX ISA, Texture, Sampler and Surface Types).
 *
 * A variable of an opaque type is 8 bytes of .global memory. It holds the handle of what the host
 * bound to it; a .samplerref holds the sampler's state itself (PTX_SAMPLER_TAG). */
#include "fitness/ptx/ptx_parse.h"

#include <string.h>

/* ---- geometries */

typedef struct geometry_row {
    uint8_t names, uses;
} geometry_row;

/* By the modifier; the other places stay empty. */
static const geometry_row geometries[PTX_M_COUNT] = {
    [PTX_M_G1D] = {1, 1},  [PTX_M_G2D] = {2, 2},   [PTX_M_G3D] = {4, 3},   [PTX_M_GA1D] = {2, 2},
    [PTX_M_GA2D] = {4, 3}, [PTX_M_GCUBE] = {4, 3}, [PTX_M_GACUBE] = {4, 4}};

unsigned ptx_geometry_names(uint8_t geometry) {
    return geometries[geometry].names;
}
unsigned ptx_geometry_uses(uint8_t geometry) {
    return geometries[geometry].uses;
}

/* ---- variables */

/* Takes ".texref", ".samplerref" or ".surfref", if that is the token; *kind is else 0. */
bool ptx_parse_opaque(ptx_loader *L, vm_space space, uint8_t *kind) {
    static const char *const words[] = {".texref", ".samplerref", ".surfref"};
    *kind = 0;
    for (unsigned i = 0; i < 3; i++)
        if (ptx_lex_is_word(&L->lex, words[i]))
            *kind = (uint8_t)(PTX_M_OPAQUE_TEXREF + i);
    if (!*kind)
        return true;
    if (space != VM_SPACE_GLOBAL && space != VM_SPACE_PARAM)
        return ptx_fail_expected(L,
                                 "a type with bytes: textures, samplers and surfaces are .global");
    if (*kind == PTX_M_OPAQUE_SAMPLERREF && !L->independent)
        return ptx_fail_expected(L, "texmode_independent in .target for a sampler of its own");
    ptx_lex_next(&L->lex);
    return true;
}

typedef struct word_value {
    const char *word;
    uint8_t value;
} word_value;

static const word_value filters[] = {{"nearest", 0}, {"linear", 1}, {NULL, 0}};
static const word_value modes[] = {{"wrap", PTX_ADDRESS_WRAP},
                                   {"mirror", PTX_ADDRESS_MIRROR},
                                   {"clamp_ogl", PTX_ADDRESS_CLAMP},
                                   {"clamp_to_edge", PTX_ADDRESS_CLAMP},
                                   {"clamp_to_border", PTX_ADDRESS_BORDER},
                                   {NULL, 0}};

static bool take_word(ptx_loader *L, const word_value *list, const char *expected, uint64_t *out) {
    for (; list->word; list++)
        if (ptx_lex_is_word(&L->lex, list->word)) {
            *out = list->value;
            ptx_lex_next(&L->lex);
            return true;
        }
    return ptx_fail_expected(L, expected);
}

/* A member of a sampler's initial value, "filter_mode = linear". */
static bool parse_member(ptx_loader *L, uint64_t *state) {
    const ptx_token name = L->lex.token;
    bool filter = ptx_lex_is_word(&L->lex, "filter_mode");
    bool unnormalized = ptx_lex_is_word(&L->lex, "force_unnormalized_coords");
    bool mode = name.length == 11 && memcmp(name.at, "addr_mode_", 10) == 0 && name.at[10] >= '0' &&
                name.at[10] <= '2';
    if (!filter && !unnormalized && !mode)
        return ptx_fail_expected(
            L, "filter_mode, force_unnormalized_coords or addr_mode_0, addr_mode_1, addr_mode_2");
    ptx_lex_next(&L->lex);
    if (!ptx_expect(L, '='))
        return false;
    uint64_t value = 0;
    if (unnormalized) {
        int64_t flag;
        if (!ptx_parse_number(L, &flag))
            return false;
        *state =
            (*state & ~(uint64_t)PTX_SAMPLER_UNNORMALIZED) | (flag ? PTX_SAMPLER_UNNORMALIZED : 0);
        return true;
    }
    if (filter) {
        if (!take_word(L, filters, "nearest or linear", &value))
            return false;
        *state = (*state & ~(uint64_t)PTX_SAMPLER_LINEAR) | value;
        return true;
    }
    unsigned shift = PTX_SAMPLER_MODES + 2 * (unsigned)(name.at[10] - '0');
    if (!take_word(L, modes, "wrap, mirror, clamp_ogl, clamp_to_edge or clamp_to_border", &value))
        return false;
    *state = (*state & ~(UINT64_C(3) << shift)) | value << shift;
    return true;
}

static bool parse_members(ptx_loader *L, uint64_t *state) {
    if (!ptx_expect(L, '{'))
        return false;
    do {
        if (!parse_member(L, state))
            return false;
    } while (ptx_accept(L, ','));
    return ptx_expect(L, '}');
}

/* Without an initial value: the nearest element, and clamped coordinates. */
bool ptx_init_opaque(ptx_loader *L, ptx_var *v) {
    uint64_t state = PTX_SAMPLER_TAG;
    for (unsigned i = 0; i < 3; i++)
        state |= (uint64_t)PTX_ADDRESS_CLAMP << (PTX_SAMPLER_MODES + 2 * i);
    bool given = ptx_lex_is(&L->lex, '=');
    if (v->opaque != PTX_M_OPAQUE_SAMPLERREF)
        return !given || ptx_fail_expected(L, "';': what is bound to a texture or surface tells "
                                              "its state");
    if (given) {
        ptx_lex_next(&L->lex);
        if (!parse_members(L, &state))
            return false;
    }
    v->init = ev_arena_alloc(L->arena, v->bytes ? v->bytes : 1);
    if (!v->init)
        return !(L->oom = true);
    for (uint32_t at = 0; at + sizeof state <= v->bytes; at += (uint32_t)sizeof state)
        memcpy(v->init + at, &state, sizeof state);
    return true;
}

/* ---- places */

static bool add_items(ptx_loader *L, ptx_operand *o, const ptx_operand *list, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        if (o->count == PTX_MAX_ELEMENTS)
            return ptx_fail_at(L, list[i].at, "found too many coordinates; expected at most four");
        o->items[o->count++] = list[i];
    }
    return true;
}

/* The rest of "[a, {x, y}]" or "[a, b, {x, y}]", of which `base` was read. */
bool ptx_parse_texel(ptx_loader *L, const ptx_operand *base, ptx_operand *o) {
    o->kind = PTX_O_TEXEL;
    o->items = EV_NEW_ARRAY(L->arena, ptx_operand, PTX_MAX_ELEMENTS);
    if (!o->items)
        return !(L->oom = true);
    if (base->kind == PTX_O_INT || base->value)
        return ptx_fail_at(L, o->at, "found an address; expected a texture or surface alone");
    if (!add_items(L, o, base, 1))
        return false;
    for (;;) { /* a comma stands here */
        ptx_operand next;
        ptx_lex_next(&L->lex);
        if (ptx_lex_is(&L->lex, '['))
            return ptx_fail_expected(L, "coordinates in { }");
        if (!ptx_parse_operand(L, &next))
            return false;
        bool whole = next.kind == PTX_O_VECTOR;
        if (!whole && next.kind != PTX_O_REG && next.kind != PTX_O_SYMBOL)
            return ptx_fail_at(L, next.at,
                               "found no register; expected one, or coordinates in { }");
        if (whole || !ptx_lex_is(&L->lex, ',')) { /* the last */
            o->value = o->count;
            return add_items(L, o, whole ? next.items : &next, whole ? next.count : 1) &&
                   ptx_expect(L, ']');
        }
        if (o->count == 2)
            return ptx_fail_expected(L, "']'");
        if (!add_items(L, o, &next, 1))
            return false;
    }
}

/* ---- operands */

typedef ptx_decoding decoding;

/* An entry's parameter that is a texture: an instruction of its own reads the handle. */
static uint32_t opaque_parameter(decoding *d, const ptx_var *v) {
    ptx_loader *L = d->L;
    ptx_insn load = {.guard = PTX_NONE,
                     .row = PTX_OP_LD,
                     .t = PTX_T_u64,
                     .a = PTX_NONE,
                     .b = PTX_NONE,
                     .site = PTX_NONE,
                     .space = VM_SPACE_PARAM,
                     .bytes = 8,
                     .count = 1,
                     .wide = 1,
                     .imm = (int64_t)v->offset};
    ptx_cold cold = {.name = "ld.param.u64",
                     .line = L->lex.token.line,
                     .source_line = L->source_line,
                     .guard_reg = PTX_NONE,
                     .func = L->func_index};
    load.v[0] = ptx_slot_new(L, 64);
    return ptx_emit(L, &load, &cold) == PTX_NONE ? PTX_NONE : load.v[0];
}

/* A variable of that kind (PTX_M_OPAQUE_*), or a register with its address or a handle. */
static uint32_t opaque_slot(decoding *d, const ptx_operand *o, uint8_t kind) {
    if (o->kind == PTX_O_REG && !o->negated)
        return ptx_check_register(d, o, 64) ? d->L->m->regs[o->reg].slot : PTX_NONE;
    const ptx_var *v = o->kind == PTX_O_SYMBOL ? o->var : NULL;
    if (v && v->opaque == kind && !o->value && v->space == VM_SPACE_GLOBAL)
        return ptx_symbol_slot(d, o, 64);
    if (v && v->opaque == kind && !o->value && !v->stride)
        return opaque_parameter(d, v);
    ptx_fail_operand(d->L, o->at, "a .%s variable or a register of 64 bits",
                     ptx_mod_text((ptx_mod)kind));
    return PTX_NONE;
}

static bool of_surface(const decoding *d) {
    return d->op->shape != PTX_S_TEX && d->op->shape != PTX_S_TLD4 && d->op->shape != PTX_S_TXQ;
}

static bool has_layers(uint8_t geometry) {
    return geometry == PTX_M_GA1D || geometry == PTX_M_GA2D || geometry == PTX_M_GACUBE;
}

/* A word of the place in the fragments, of `count` items. */
static bool put_words(decoding *d, const ptx_operand *list, unsigned count, ptx_type type,
                      bool layers, unsigned at) {
    for (unsigned i = 0; i < count; i++) {
        const ptx_operand *o = &list[i];
        if (o->kind == PTX_O_REG && d->L->m->regs[o->reg].bits != 32)
            return ptx_fail_at(d->L, o->at, "found %s of %u bits; expected a register of 32 bits",
                               d->L->m->regs[o->reg].name, d->L->m->regs[o->reg].bits);
        uint32_t slot = ptx_source(d, o, i == 0 && layers ? PTX_T_b32 : type);
        if (slot == PTX_NONE)
            return false;
        d->L->m->fragments[d->insn->target + at + i] = slot;
    }
    return true;
}

static bool take_places(decoding *d) {
    vm_module *m = d->L->m;
    d->insn->target = (uint32_t)m->fragment_count;
    for (unsigned i = 0; i < PTX_AT_COUNT; i++) {
        if (!ptx_grow(d->L, (void **)&m->fragments, &d->L->fragment_capacity, m->fragment_count,
                      sizeof *m->fragments))
            return false;
        m->fragments[m->fragment_count++] = PTX_NONE;
    }
    return true;
}

/* [texture, {coordinates}], with a sampler between them where textures have none of their own. */
static bool put_texel(decoding *d, const ptx_operand *o) {
    ptx_insn *in = d->insn;
    bool surface = of_surface(d);
    unsigned names = !surface && d->L->independent ? 2 : 1;
    unsigned wanted = ptx_geometry_names(in->op);
    if (o->kind != PTX_O_TEXEL || (unsigned)o->value != names)
        return ptx_fail_operand(d->L, o->at, "%s",
                                names == 2 ? "[texture, sampler, {coordinates}]"
                                           : "[texture or surface, {coordinates}]");
    if (o->count - names != wanted)
        return ptx_fail_at(d->L, o->at, "found %u coordinates; expected %u", o->count - names,
                           wanted);
    in->site = d->L->m->site_count++;
    in->address_bits = 64;
    in->space = VM_SPACE_GLOBAL;
    in->a = opaque_slot(d, &o->items[0], surface ? PTX_M_OPAQUE_SURFREF : PTX_M_OPAQUE_TEXREF);
    if (in->a == PTX_NONE)
        return false;
    d->sources = 1;
    if (names == 2)
        in->b = opaque_slot(d, &o->items[1], PTX_M_OPAQUE_SAMPLERREF);
    if (names == 2 && in->b == PTX_NONE)
        return false;
    return take_places(d) &&
           put_words(d, o->items + names, wanted, surface ? PTX_T_s32 : (ptx_type)d->m->u,
                     has_layers(in->op), 0);
}

static bool is_sampler_query(uint8_t query) {
    return query >= PTX_M_Q_UNNORMALIZED && query <= PTX_M_Q_MODE_2;
}

static bool put_queried(decoding *d, const ptx_operand *o) {
    bool sampler = is_sampler_query(d->insn->bool_op) && d->L->independent;
    ptx_operand name = *o;
    name.kind = o->reg == PTX_NONE ? PTX_O_SYMBOL : PTX_O_REG;
    if (o->kind != PTX_O_ADDRESS || o->value || (o->reg == PTX_NONE && !o->var))
        return ptx_fail_operand(d->L, o->at, "[texture, sampler or surface]");
    if (d->insn->bool_op == PTX_M_Q_UNNORMALIZED && !sampler)
        return ptx_fail_at(d->L, o->at,
                           "found a question about a sampler; expected it with "
                           "texmode_independent in .target");
    uint8_t kind = d->op->shape == PTX_S_SUQ ? PTX_M_OPAQUE_SURFREF : PTX_M_OPAQUE_TEXREF;
    d->insn->a = opaque_slot(d, &name, sampler ? PTX_M_OPAQUE_SAMPLERREF : kind);
    d->sources = 1;
    return d->insn->a != PTX_NONE;
}

/* Elements of a gradient or of offsets: the coordinates without the layer, four of three. */
static unsigned lengths_of(uint8_t geometry) {
    unsigned uses = ptx_geometry_uses(geometry) - has_layers(geometry);
    return uses == 3 ? 4 : uses;
}

/* All levels are the first, so the gradient is only checked. */
static bool put_gradient(decoding *d, const ptx_operand *o) {
    unsigned wanted = lengths_of(d->insn->op);
    if (o->kind != PTX_O_VECTOR || o->count != wanted)
        return ptx_fail_operand(d->L, o->at, "a gradient of %u elements in { }", wanted);
    for (unsigned i = 0; i < wanted; i++)
        if (ptx_source(d, &o->items[i], PTX_T_f32) == PTX_NONE)
            return false;
    return true;
}

static bool fail_depth(decoding *d, const ptx_operand *o) {
    return ptx_fail_at(d->L, o->at,
                       "found a depth to compare with, which this machine does not "
                       "have; expected tex without it, and a setp");
}

static bool put_offsets(decoding *d, const ptx_operand *o) {
    uint8_t geometry = d->insn->op;
    unsigned wanted = lengths_of(geometry);
    if (o->kind != PTX_O_VECTOR)
        return fail_depth(d, o);
    if (geometry == PTX_M_GCUBE || geometry == PTX_M_GACUBE || o->count != wanted)
        return ptx_fail_operand(d->L, o->at, "%u offsets in { }, and none for a cube", wanted);
    return ptx_allowed(d->L, d->at, "tex with offsets", (ptx_need){43, 30}) &&
           put_words(d, o->items, wanted, PTX_T_s32, false, PTX_AT_OFFSETS);
}

bool ptx_put_texture(decoding *d, char letter, const ptx_operand *o) {
    switch (letter) {
    case 'T':
        return put_texel(d, o);
    case 'Q':
        return put_queried(d, o);
    case 'L':
        return ptx_source(d, o, (ptx_type)d->m->u) != PTX_NONE;
    case 'G':
        return put_gradient(d, o);
    case 'O':
        return put_offsets(d, o);
    default: /* 'F' */
        return fail_depth(d, o);
    }
}

/* What the pattern's letters do not say of a texture's instruction. */
void ptx_texture_prepare(const ptx_match *m, ptx_insn *in) {
    in->op = m->mod[PTX_G_geom];
    in->rnd = m->mod[PTX_G_edge];
    in->bool_op = m->mod[PTX_G_query];
    uint8_t shape = ptx_op_get(m->row)->shape;
    if (shape == PTX_S_TLD4)
        in->bool_op = m->mod[PTX_G_comp];
    if (shape == PTX_S_ISTYPEP)
        in->bool_op = m->mod[PTX_G_opaque];
    if (shape == PTX_S_SURED)
        in->count = 1;
}
