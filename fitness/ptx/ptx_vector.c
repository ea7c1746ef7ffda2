/* Vector registers: ".reg .v4 .f32 v", whose parts are v.x, v.y, v.z and v.w, or .r, .g, .b and .a.
 * A part is a register of its own. The whole is the operand {v.x, v.y, v.z, v.w}. */
#include "fitness/ptx/ptx_parse.h"

#include <stdio.h>
#include <string.h>

/* The vector of that name, or the range that it is a member of; *first: place of its x in `ids`. */
static ptx_symbol *find_vector(ptx_loader *L, const char *name, uint32_t length, uint32_t *first) {
    ptx_symbol *s = ptx_symbol_find(L, name, length);
    *first = 0;
    if (s)
        return s->kind == PTX_Y_REG && s->lanes ? s : NULL;
    uint32_t number;
    s = ptx_range_find(L, name, length, &number);
    if (!s || !s->lanes)
        return NULL;
    *first = number * s->lanes;
    return s;
}

static unsigned lane_of(char letter) {
    static const char letters[] = "xyzwrgba";
    const char *at = strchr(letters, letter);
    return at && *at ? (unsigned)(at - letters) % 4 : PTX_MAX_ELEMENTS;
}

const char *ptx_lane_name(ptx_loader *L, const char *name, uint32_t length, unsigned lane) {
    char *text = ev_arena_alloc(L->arena, length + 3);
    if (!text) {
        L->oom = true;
        return NULL;
    }
    memcpy(text, name, length);
    text[length] = '.';
    text[length + 1] = "xyzw"[lane];
    text[length + 2] = '\0';
    return text;
}

static uint32_t lane_register(ptx_loader *L, ptx_symbol *s, uint32_t first, unsigned lane,
                              const char *name, uint32_t length) {
    uint32_t *id = &s->ids[first + lane];
    if (!*id) {
        const char *text = ptx_lane_name(L, name, length, lane);
        *id = text ? ptx_register_new(L, text, length + 2, s->bits) + 1 : 0;
    }
    return *id - 1; /* PTX_NONE + 1 - 1 stays PTX_NONE */
}

uint32_t ptx_lane_find(ptx_loader *L, const char *name, uint32_t length) {
    uint32_t first;
    if (!L->has_vectors || length < 3 || name[length - 2] != '.')
        return PTX_NONE;
    unsigned lane = lane_of(name[length - 1]);
    ptx_symbol *s = find_vector(L, name, length - 2, &first);
    return s && lane < s->lanes ? lane_register(L, s, first, lane, name, length - 2) : PTX_NONE;
}

static bool put_whole(ptx_loader *L, ptx_symbol *s, uint32_t first, const ptx_token *t,
                      ptx_operand *o) {
    o->kind = PTX_O_VECTOR;
    o->count = s->lanes;
    o->items = EV_NEW_ARRAY(L->arena, ptx_operand, s->lanes);
    if (!o->items)
        return !(L->oom = true);
    for (unsigned i = 0; i < s->lanes; i++)
        o->items[i] = (ptx_operand){
            .kind = PTX_O_REG, .at = t->at, .reg = lane_register(L, s, first, i, t->at, t->length)};
    return !L->failed && !L->oom;
}

/* ".x" directly behind the name; the lexer has taken it for a directive. */
static bool has_lane_behind(const ptx_loader *L, const ptx_token *t) {
    const ptx_token *next = &L->lex.token;
    return next->kind == PTX_K_DIRECTIVE && next->at == t->at + t->length && next->length == 2;
}

bool ptx_parse_vector_name(ptx_loader *L, const ptx_token *t, ptx_operand *o, bool *is_vector) {
    uint32_t first;
    o->reg = ptx_lane_find(L, t->at, t->length); /* "%v.x" is one token */
    o->kind = PTX_O_REG;
    *is_vector = true;
    if (o->reg != PTX_NONE)
        return true;
    ptx_symbol *s = find_vector(L, t->at, t->length, &first);
    *is_vector = s != NULL;
    if (!s)
        return !L->failed && !L->oom;
    if (!has_lane_behind(L, t))
        return put_whole(L, s, first, t, o);
    unsigned lane = lane_of(L->lex.token.at[1]);
    if (lane >= s->lanes)
        return ptx_fail_at(L, L->lex.token.at, "found '%.*s'; expected a part of a vector of %u",
                           (int)L->lex.token.length, L->lex.token.at, s->lanes);
    ptx_lex_next(&L->lex);
    o->kind = PTX_O_REG;
    o->reg = lane_register(L, s, first, lane, t->at, t->length);
    return o->reg != PTX_NONE;
}

/* "%tid" as a whole: its x, y, z and a zero. */
bool ptx_parse_special_vector(ptx_loader *L, const ptx_token *t, ptx_operand *o, bool *is_vector) {
    char name[40];
    *is_vector = false;
    if (t->length + 3 > sizeof name)
        return true;
    memcpy(name, t->at, t->length);
    memcpy(name + t->length, ".x", 3);
    ptx_sreg x;
    if (!ptx_sreg_find(name, t->length + 2, &x))
        return true;
    *is_vector = true;
    o->kind = PTX_O_VECTOR;
    o->count = 4;
    o->items = EV_NEW_ARRAY(L->arena, ptx_operand, 4);
    if (!o->items)
        return !(L->oom = true);
    for (unsigned i = 0; i < 3; i++) /* the table has them one behind the other */
        o->items[i] = (ptx_operand){
            .kind = PTX_O_SREG, .at = t->at, .reg = PTX_NONE, .value = (int64_t)x + i};
    o->items[3] = (ptx_operand){.kind = PTX_O_INT, .at = t->at, .reg = PTX_NONE};
    return ptx_allowed(L, t->at, ptx_sreg_text(x), ptx_sreg_need(x));
}

unsigned ptx_parse_lanes(ptx_loader *L) {
    unsigned lanes = 0;
    if (ptx_lex_is_word(&L->lex, ".v2"))
        lanes = 2;
    else if (ptx_lex_is_word(&L->lex, ".v4"))
        lanes = 4;
    if (lanes)
        ptx_lex_next(&L->lex);
    return lanes;
}

bool ptx_vector_declare(ptx_loader *L, ptx_symbol *s, unsigned lanes) {
    uint32_t members = s->kind == PTX_Y_RANGE ? s->count : 1;
    s->lanes = (uint8_t)lanes;
    s->ids = EV_NEW_ARRAY(L->arena, uint32_t, (size_t)members *(lanes ? lanes : 1) + 1);
    L->oom |= !s->ids;
    L->has_vectors |= lanes != 0;
    return !L->oom;
}
