/* Instruction statements: guard, mnemonic, operands; calls; then on to the decoder. */
#include "fitness/ptx/ptx_parse.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

const char *ptx_pattern_next(const char *p, ptx_pattern_item *item) {
    *item = (ptx_pattern_item){0};
    if (*p == ',')
        p++;
    if (*p == '|') {
        item->piped = true;
        p++;
    }
    if (!*p)
        return p;
    item->letter = *p++;
    if (*p == '?') {
        item->optional = true;
        p++;
    }
    return p;
}

void ptx_pattern_read(const char *pattern, ptx_pattern *out) {
    *out = (ptx_pattern){0};
    while (out->most < PTX_MAX_OPERANDS) {
        ptx_pattern_item *item = &out->items[out->most];
        pattern = ptx_pattern_next(pattern, item);
        if (!item->letter)
            return;
        out->most++;
        out->least = (uint8_t)(out->least + !item->optional);
    }
}

/* How the ISA writes an operand of that letter; sources are a, b, c … in order. */
static const char *operand_word(char letter, unsigned *source) {
    static const char *const sources[] = {"a", "b", "c", "e", "f"};
    static const char *const selected[] = {"a{.sel}", "b{.sel}"};
    static const char *const signed_ones[] = {"{-}a{.sel}", "{-}b{.sel}", "{-}c"};
    static const char *const addresses[] = {"[a]", "[b]"};
    static const struct {
        const char *letters, *word;
    } words[] = {{"dDwUYv", "d"},    {"p", "p"},        {"q", "{!}q"},
                 {"i", "constant"},  {"t", "label"},    {"b", "table"},
                 {"X", "{d}"},       {"A", "{a}"},      {"B", "{b}"},
                 {"C", "{c}"},       {"n", "bytes"},    {"z", "limit"},
                 {"h", "policy"},    {"f", "function"}, {"T", "[a, {coordinates}]"},
                 {"Q", "[a]"},       {"L", "level"},    {"G", "{gradient}"},
                 {"O", "{offsets}"}, {"F", "depth"},    {"k", "d{.sel}"}};
    *source += letter == 'T' || letter == 'Q';
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strchr(words[i].letters, letter))
            return words[i].word;
    if (letter == 'j')
        return selected[(*source)++ % 2];
    if (letter == 'l' || letter == 'o')
        return signed_ones[(*source)++ % 3];
    if (letter == 'm' || letter == 'M')
        return addresses[(*source)++ != 0];
    return sources[(*source)++ % 5];
}

void ptx_pattern_text(const char *pattern, char *out, size_t size) {
    unsigned source = 0;
    size_t used = 0;
    ptx_pattern_item item;
    *out = 0;
    for (pattern = ptx_pattern_next(pattern, &item); item.letter && used < size;
         pattern = ptx_pattern_next(pattern, &item)) {
        const char *before = "";
        if (item.piped)
            before = "|";
        else if (used)
            before = ", ";
        const char *word = operand_word(item.letter, &source);
        if (item.piped && *out == 'p')
            word = "q";
        used += (size_t)snprintf(out + used, size - used, item.optional ? "[%s%s]" : "%s%s", before,
                                 word);
    }
    if (!*out)
        snprintf(out, size, "none");
}

bool ptx_parse_number(ptx_loader *L, int64_t *out) {
    bool minus = false;
    while (ptx_lex_is(&L->lex, '+') || ptx_lex_is(&L->lex, '-')) {
        minus ^= ptx_lex_is(&L->lex, '-');
        ptx_lex_next(&L->lex);
    }
    if (L->lex.token.kind != PTX_K_INT)
        return ptx_fail_expected(L, "an integer");
    uint64_t v = L->lex.token.value;
    *out = (int64_t)(minus ? 0 - v : v);
    ptx_lex_next(&L->lex);
    return true;
}

/* "[i]" behind the name of an array: an element of its scalar type, as ptxas counts, also where it
 * is one of vectors or has several dimensions. */
static bool parse_index(ptx_loader *L, ptx_operand *o) {
    if (!o->var->array)
        return ptx_fail_at(L, L->lex.token.at, "found an index of '%s'; expected one of an array",
                           o->var->name);
    ptx_lex_next(&L->lex);
    if (!ptx_parse_number(L, &o->value))
        return false;
    o->value *= ptx_type_bits(o->var->type) / 8;
    o->indexed = true;
    return ptx_expect(L, ']');
}

/* ".b0" behind a register. */
static void take_selector(ptx_loader *L, ptx_operand *o) {
    const ptx_token *t = &L->lex.token;
    if (!L->selects || t->kind != PTX_K_DIRECTIVE)
        return;
    o->selector = t->at + 1;
    o->selector_length = (uint8_t)(t->length > UINT8_MAX ? UINT8_MAX : t->length - 1);
    ptx_lex_next(&L->lex);
}

/* A name: register, special register, variable (with an offset or an index), or a label to be found
 * later. */
static bool parse_name(ptx_loader *L, ptx_operand *o) {
    ptx_token t = L->lex.token;
    ptx_lex_next(&L->lex);
    o->label = t.at;
    o->label_length = t.length;
    o->reg = ptx_register_find(L, t.at, t.length);
    if (o->reg != PTX_NONE) {
        o->kind = PTX_O_REG;
        take_selector(L, o);
        return true;
    }
    bool is_vector = false;
    if (L->has_vectors && (!ptx_parse_vector_name(L, &t, o, &is_vector) || is_vector))
        return !L->failed && !L->oom;
    ptx_symbol *s = ptx_symbol_find(L, t.at, t.length);
    if (s && s->kind == PTX_Y_VAR) {
        o->kind = PTX_O_SYMBOL;
        o->var = s->var;
        if (ptx_lex_is(&L->lex, '['))
            return parse_index(L, o);
        if (ptx_lex_is(&L->lex, '+') || ptx_lex_is(&L->lex, '-'))
            return ptx_parse_number(L, &o->value);
        return true;
    }
    if (s && s->kind == PTX_Y_FUNC) {
        o->kind = PTX_O_FUNC;
        o->value = s->index;
        return true;
    }
    ptx_sreg sreg;
    if (*t.at == '%' && (!ptx_parse_special_vector(L, &t, o, &is_vector) || is_vector))
        return !L->failed && !L->oom;
    if (*t.at == '%' && ptx_sreg_find(t.at, t.length, &sreg)) {
        o->kind = PTX_O_SREG;
        o->value = sreg;
        L->reads_workspace |= sreg == PTX_SR_ENVREG1 || sreg == PTX_SR_ENVREG2;
        L->reads_reserved |= sreg >= PTX_SR_RESERVED_BEGIN && sreg <= PTX_SR_RESERVED_1;
        return ptx_allowed(L, t.at, ptx_sreg_text(sreg), ptx_sreg_need(sreg));
    }
    if (t.length == 7 && memcmp(t.at, "WARP_SZ", 7) == 0) {
        o->kind = PTX_O_INT;
        o->value = 32;
        return true;
    }
    if (*t.at == '%')
        return ptx_fail_absent(L, t.at, t.length)
                   ? false
                   : ptx_fail_at(L, t.at, "found '%.*s'; expected a declared register",
                                 (int)t.length, t.at);
    o->kind = t.length == 1 && *t.at == '_' ? PTX_O_SINK : PTX_O_LABEL;
    return true;
}

static bool parse_literal(ptx_loader *L, ptx_operand *o) {
    bool minus = ptx_lex_is(&L->lex, '-');
    if (minus)
        ptx_lex_next(&L->lex);
    const ptx_token *t = &L->lex.token;
    uint64_t v = t->value;
    switch (t->kind) {
    case PTX_K_INT:
        o->kind = PTX_O_INT;
        v = minus ? 0 - v : v;
        break;
    case PTX_K_F32:
        o->kind = PTX_O_F32;
        v ^= minus ? 0x80000000u : 0;
        break;
    case PTX_K_F64:
        o->kind = PTX_O_F64;
        v ^= minus ? 1ull << 63 : 0;
        break;
    default:
        return ptx_fail_expected(L, "an operand");
    }
    o->value = (int64_t)v;
    ptx_lex_next(&L->lex);
    return true;
}

static bool parse_address(ptx_loader *L, ptx_operand *o) {
    ptx_lex_next(&L->lex);
    o->reg = PTX_NONE;
    ptx_operand base = {.reg = PTX_NONE, .at = L->lex.token.at};
    if (L->lex.token.kind == PTX_K_IDENT) {
        if (!parse_name(L, &base))
            return false;
        if (base.kind != PTX_O_REG && base.kind != PTX_O_SYMBOL)
            return ptx_fail_at(L, base.label, "found '%.*s'; expected a register or a variable",
                               (int)base.label_length, base.label);
    } else if (ptx_parse_number(L, &base.value)) {
        base.kind = PTX_O_INT;
    } else {
        return false;
    }
    int64_t offset = 0;
    if ((ptx_lex_is(&L->lex, '+') || ptx_lex_is(&L->lex, '-')) && !ptx_parse_number(L, &offset))
        return false;
    if (ptx_lex_is(&L->lex, ',')) {
        base.value += offset;
        return ptx_parse_texel(L, &base, o);
    }
    o->kind = PTX_O_ADDRESS;
    o->var = base.kind == PTX_O_SYMBOL ? base.var : NULL;
    o->reg = base.kind == PTX_O_REG ? base.reg : PTX_NONE;
    o->value = (int64_t)((uint64_t)base.value + (uint64_t)offset);
    return ptx_expect(L, ']');
}

static bool parse_vector(ptx_loader *L, ptx_operand *o) {
    ptx_lex_next(&L->lex);
    o->kind = PTX_O_VECTOR;
    o->items = EV_NEW_ARRAY(L->arena, ptx_operand, PTX_MAX_ELEMENTS);
    if (!o->items) {
        L->oom = true;
        return false;
    }
    do {
        if (o->count == PTX_MAX_ELEMENTS)
            return ptx_fail_expected(L, "'}' after eight elements");
        ptx_operand *item = &o->items[o->count++];
        if (ptx_lex_is(&L->lex, '{') || ptx_lex_is(&L->lex, '['))
            return ptx_fail_expected(L, "an element");
        if (!ptx_parse_operand(L, item))
            return false;
    } while (ptx_accept(L, ','));
    return ptx_expect(L, '}');
}

/* Whether a name follows the sign that is the current token. */
static bool is_name_behind(const ptx_lexer *lex) {
    ptx_lexer ahead = *lex;
    ptx_lex_next(&ahead);
    return ahead.token.kind == PTX_K_IDENT;
}

bool ptx_parse_operand(ptx_loader *L, ptx_operand *o) {
    *o = (ptx_operand){.reg = PTX_NONE, .at = L->lex.token.at};
    if (ptx_lex_is(&L->lex, '{'))
        return parse_vector(L, o);
    if (ptx_lex_is(&L->lex, '['))
        return parse_address(L, o);
    if (ptx_accept(L, '!')) {
        o->negated = true;
        if (L->lex.token.kind != PTX_K_IDENT)
            return ptx_fail_expected(L, "a predicate after '!'");
    }
    if (L->selects && ptx_lex_is(&L->lex, '-') && is_name_behind(&L->lex)) {
        o->minus = true;
        ptx_lex_next(&L->lex);
    }
    if (L->lex.token.kind == PTX_K_IDENT)
        return parse_name(L, o);
    return parse_literal(L, o);
}

static bool parse_operands(ptx_loader *L, ptx_operand *list, unsigned *count) {
    *count = 0;
    if (ptx_accept(L, ';'))
        return true;
    bool piped = false;
    do {
        if (*count == PTX_MAX_OPERANDS)
            return ptx_fail_expected(L, "';': no instruction has so many operands");
        ptx_operand *o = &list[*count];
        if (!ptx_parse_operand(L, o))
            return false;
        o->piped = piped;
        ++*count;
        piped = ptx_accept(L, '|');
    } while (piped || ptx_accept(L, ','));
    return ptx_expect(L, ';');
}

static bool parse_guard(ptx_loader *L, ptx_insn *insn, ptx_cold *cold) {
    insn->guard = cold->guard_reg = PTX_NONE;
    if (!ptx_accept(L, '@'))
        return true;
    if (ptx_accept(L, '!'))
        insn->negate |= 0x80;
    const ptx_token *t = &L->lex.token;
    uint32_t reg = t->kind == PTX_K_IDENT ? ptx_register_find(L, t->at, t->length) : PTX_NONE;
    if (reg == PTX_NONE || L->m->regs[reg].bits != 1)
        return ptx_fail_expected(L, "a predicate register after '@'");
    cold->guard_reg = reg;
    insn->guard = L->m->regs[reg].slot;
    ptx_lex_next(&L->lex);
    return true;
}

/* Of the rows that fit the mnemonic, the one whose pattern takes so many operands. */
static const ptx_match *choose(ptx_loader *L, const ptx_mnemonic *k, unsigned count,
                               const char *at) {
    for (unsigned i = 0; i < k->count; i++)
        if (count >= k->matches[i].pattern.least && count <= k->matches[i].pattern.most)
            return &k->matches[i];
    char wanted[80];
    ptx_pattern_text(ptx_op_get(k->matches[0].row)->pattern, wanted, sizeof wanted);
    ptx_fail_at(L, at, "found %u operands of '%s'; expected %s", count, k->name, wanted);
    return NULL;
}

/* .ftz is of f32 and of the half formats; a literal part of the format says so itself. */
static bool ftz_fits(const ptx_match *match) {
    if (!match->mod[PTX_G_ftz] || strstr(ptx_op_get(match->row)->format, ".ftz"))
        return true;
    const char *flushed = "FHX";
    return (match->t != PTX_T_f64 && strchr(flushed, ptx_type_kind((ptx_type)match->t))) ||
           (match->u != PTX_T_f64 && strchr(flushed, ptx_type_kind((ptx_type)match->u)));
}

/* What the rows' columns do not say: which types go with .ftz, which comparisons and spaces with
 * the type. */
static bool check_combination(ptx_loader *L, const char *name, const char *at,
                              const ptx_match *match, const ptx_insn *insn) {
    if (!ftz_fits(match))
        return ptx_fail_at(L, at, "found .ftz in '%s'; expected it with a type .f32, .f16 or .bf16",
                           name);
    bool half = ptx_type_kind((ptx_type)match->t) == 'H';
    if (ptx_op_get(match->row)->shape == PTX_S_SETP && half && insn->d2 != PTX_NONE)
        return ptx_fail_at(L, at, "found two predicates of '%s'; expected one of a half format",
                           name);
    return vm_isa_executes(insn) ||
           ptx_fail_at(L, at,
                       "found '%s'; expected a comparison and a space that this type and "
                       "instruction can have",
                       name);
}

static_assert(PTX_MAX_OPERANDS <= 8, "a bit of ptx_cold.written for each");

static bool is_destination(char letter) {
    switch (letter) {
    case 'd':
    case 'D':
    case 'w':
    case 'U':
    case 'p':
    case 'v':
    case 'X':
    case 'k':
        return true;
    default:
        return false;
    }
}

/* Which operands are written: as the pattern says; moves of vectors write their first. */
static uint8_t written_of(const ptx_match *match, unsigned row, const ptx_operand *operands,
                          unsigned count) {
    ptx_pattern other;
    const ptx_pattern_item *item = match->pattern.items;
    if (row != match->row) {
        const char *pattern = ptx_op_get(row)->pattern;
        ptx_pattern_read(*pattern ? pattern : "d,s", &other);
        item = other.items;
    }
    uint8_t written = 0;
    for (unsigned i = 0; i < count; i++) {
        while (item->letter && item->optional && item->piped != operands[i].piped)
            item++;
        written |= (uint8_t)(is_destination(item->letter) << i);
        item += item->letter != 0;
    }
    return written;
}

bool ptx_parse_instruction(ptx_loader *L) {
    ptx_insn insn = {.site = PTX_NONE};
    ptx_cold cold = {
        .line = L->lex.token.line, .source_line = L->source_line, .func = L->func_index};
    if (!parse_guard(L, &insn, &cold))
        return false;
    if (L->lex.token.kind != PTX_K_IDENT || *L->lex.token.at == '%')
        return ptx_fail_expected(L, "an instruction");
    ptx_lex_extend_mnemonic(&L->lex);
    const char *at = L->lex.token.at;
    cold.line = L->lex.token.line;
    cold.column = (uint32_t)(at - L->lex.line_start) + 1;
    const ptx_mnemonic *k = ptx_mnemonic_find(L);
    if (!k)
        return false;
    ptx_lex_next(&L->lex);
    cold.name = k->name;
    insn.row = k->matches[0].row;
    L->selects = ptx_shape_has(ptx_op_get(insn.row)->shape, PTX_SHAPE_VIDEO);
    if (insn.row == PTX_OP_CALL)
        return ptx_parse_call(L, &insn) && ptx_emit(L, &insn, &cold) != PTX_NONE;
    ptx_operand list[PTX_MAX_OPERANDS];
    unsigned count;
    if (!parse_operands(L, list, &count))
        return false;
    const ptx_match *match = choose(L, k, count, at);
    if (!match || !ptx_instruction_allowed(L, at, k->name, match))
        return false;
    cold.operand_count = (uint8_t)count;
    cold.operands = ev_arena_copy(L->arena, list, count ? count * sizeof *list : 1);
    if (!ptx_decode(L, match, list, count, at, &insn) ||
        !check_combination(L, k->name, at, match, &insn))
        return false;
    cold.written = written_of(match, insn.row, list, count);
    return ptx_emit(L, &insn, &cold) != PTX_NONE;
}
