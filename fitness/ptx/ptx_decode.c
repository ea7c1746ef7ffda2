/* The decoder: holds operands against a row's pattern and turns them into slots. */
#include "fitness/ptx/ptx_load.h"

#include <string.h>

typedef ptx_decoding decoding;

static unsigned lane_bits(unsigned type_bits) {
    if (type_bits == 1)
        return 1;
    if (type_bits < 16)
        return 16;
    return type_bits;
}

/* Loads, stores and conversions take registers wider than their type. */
static bool may_be_wider(const decoding *d) {
    return d->op->shape == PTX_S_LD || d->op->shape == PTX_S_ST || d->op->shape == PTX_S_CVT ||
           d->op->shape == PTX_S_SULD || d->op->shape == PTX_S_SUST;
}

bool ptx_check_register(decoding *d, const ptx_operand *o, unsigned bits) {
    unsigned have = d->L->m->regs[o->reg].bits;
    if (have == bits || (may_be_wider(d) && have > bits && bits != 1))
        return true;
    return ptx_fail_at(d->L, o->at, "found %s of %u bits; expected a register of %u bits",
                       d->L->m->regs[o->reg].name, have, bits);
}

static bool is_float(ptx_type t) {
    return ptx_type_kind(t) == 'F';
}

bool ptx_literal_bits(ptx_loader *L, const ptx_operand *o, ptx_type t, uint64_t *out) {
    uint64_t v = (uint64_t)o->value;
    double f;
    if (o->kind == PTX_O_INT) {
        if (is_float(t))
            return ptx_fail_at(L, o->at, "found an integer; expected a floating-point number");
    } else if (o->kind == PTX_O_F32) {
        if (ptx_type_bits(t) == 64) {
            float single;
            memcpy(&single, &v, sizeof single);
            f = (double)single;
            memcpy(&v, &f, sizeof v);
        }
    } else if (t == PTX_T_f32) {
        memcpy(&f, &v, sizeof f);
        float single = (float)f;
        v = 0;
        memcpy(&v, &single, sizeof single);
    } else if (ptx_type_bits(t) != 64) {
        return ptx_fail_at(L, o->at, "found a floating-point number; expected one of %u bits",
                           ptx_type_bits(t));
    }
    *out = v;
    return true;
}

static bool is_literal(const ptx_operand *o) {
    return o->kind == PTX_O_INT || o->kind == PTX_O_F32 || o->kind == PTX_O_F64;
}

uint32_t ptx_symbol_slot(decoding *d, const ptx_operand *o, unsigned bits) {
    ptx_loader *L = d->L;
    const ptx_var *v = o->var;
    if (v->space == VM_SPACE_LOCAL || (v->space == VM_SPACE_PARAM && !L->func->entry)) {
        ptx_fail_at(L, o->at, "found the address of '%s'; expected it in a mov", v->name);
        return PTX_NONE;
    }
    uint64_t value = v->offset + (uint64_t)o->value;
    unsigned base = PTX_BASE_NONE;
    if (v->space == VM_SPACE_GLOBAL)
        base = PTX_BASE_GLOBAL;
    else if (v->dynamic)
        base = PTX_BASE_DYNAMIC;
    return ptx_slot_const(L, bits, value, base);
}

/* Emits the address of a local variable into a slot of its own. */
static uint32_t local_address(decoding *d, uint64_t offset) {
    ptx_loader *L = d->L;
    ptx_insn address = {.guard = PTX_NONE, .row = PTX_OP_MOV_LOCAL, .t = PTX_T_u64};
    ptx_cold cold = {.name = "(mov local)",
                     .line = L->lex.token.line,
                     .source_line = L->source_line,
                     .guard_reg = PTX_NONE,
                     .func = L->func_index};
    address.d = ptx_slot_new(L, 64);
    address.imm = (int64_t)offset;
    return ptx_emit(L, &address, &cold) == PTX_NONE ? PTX_NONE : address.d;
}

/* Slot of a source operand of type t. */
uint32_t ptx_source(decoding *d, const ptx_operand *o, ptx_type t) {
    unsigned bits = lane_bits(ptx_type_bits(t));
    if (o->kind == PTX_O_REG && !o->negated)
        return ptx_check_register(d, o, bits) ? d->L->m->regs[o->reg].slot : PTX_NONE;
    uint64_t value = 0;
    if (is_literal(o))
        return ptx_literal_bits(d->L, o, t, &value)
                   ? ptx_slot_const(d->L, bits, value, PTX_BASE_NONE)
                   : PTX_NONE;
    if (o->kind == PTX_O_SREG && !ptx_sreg_dynamic((ptx_sreg)o->value) &&
        (ptx_sreg_bits((ptx_sreg)o->value) == bits || may_be_wider(d)))
        return ptx_slot_sreg(d->L, (ptx_sreg)o->value);
    if (o->kind == PTX_O_SYMBOL && d->op->shape == PTX_S_CVTA && o->var->space == VM_SPACE_LOCAL)
        return local_address(d, o->var->offset + (uint64_t)o->value);
    if (o->kind == PTX_O_SYMBOL && bits >= 32)
        return ptx_symbol_slot(d, o, bits);
    if (o->kind == PTX_O_FUNC && bits == 64)
        return ptx_slot_const(d->L, bits, ptx_func_address((uint32_t)o->value), PTX_BASE_NONE);
    ptx_fail_operand(d->L, o->at, "a register or number of type %s", ptx_type_name(t));
    return PTX_NONE;
}

static bool put_source(decoding *d, uint32_t slot) {
    uint32_t *place[4] = {&d->insn->a, &d->insn->b, &d->insn->c, &d->insn->e};
    if (slot == PTX_NONE)
        return false;
    *place[d->sources++] = slot;
    return true;
}

static bool put_predicate_source(decoding *d, const ptx_operand *o) {
    if (o->kind == PTX_O_INT)
        return put_source(d, ptx_slot_const(d->L, 1, o->value ? UINT32_MAX : 0, PTX_BASE_NONE));
    if (o->kind != PTX_O_REG || d->L->m->regs[o->reg].bits != 1)
        return ptx_fail_operand(d->L, o->at, "a predicate");
    if (o->negated)
        d->insn->negate |= (uint8_t)(1u << d->sources);
    return put_source(d, d->L->m->regs[o->reg].slot);
}

static bool put_destination(decoding *d, const ptx_operand *o, unsigned bits, bool second) {
    uint32_t *place = second ? &d->insn->d2 : &d->insn->d;
    if (o->kind == PTX_O_SINK) {
        *place = ptx_slot_new(d->L, bits);
        return true;
    }
    if (o->kind != PTX_O_REG || o->negated)
        return ptx_fail_operand(d->L, o->at, "a destination register");
    if (!ptx_check_register(d, o, bits))
        return false;
    *place = d->L->m->regs[o->reg].slot;
    if (!second)
        d->insn->wide = d->L->m->regs[o->reg].bits == 64;
    return true;
}

/* A register, literal or {vector} that a load fills or a store writes. */
static uint8_t vector_length(const ptx_match *m) {
    if (m->mod[PTX_G_vec] == PTX_M_V4)
        return 4;
    return m->mod[PTX_G_vec] == PTX_M_V2 ? 2 : 1;
}

/* The sources of a mov of vectors, one a slot. */
static bool put_vector_sources(decoding *d, const ptx_operand *o) {
    if (o->kind != PTX_O_VECTOR || o->count != vector_length(d->m))
        return ptx_fail_at(d->L, o->at, "found %u elements; expected %u",
                           o->kind == PTX_O_VECTOR ? o->count : 1, vector_length(d->m));
    for (unsigned i = 0; i < o->count; i++)
        if (!put_source(d, ptx_source(d, &o->items[i], (ptx_type)d->m->t)))
            return false;
    return true;
}

static bool put_vector(decoding *d, const ptx_operand *o, bool destination) {
    ptx_insn *in = d->insn;
    unsigned wanted = vector_length(d->m);
    if (d->op->shape == PTX_S_MOVES && !destination)
        return put_vector_sources(d, o);
    const ptx_operand *items = o->kind == PTX_O_VECTOR ? o->items : o;
    unsigned have = o->kind == PTX_O_VECTOR ? o->count : 1;
    if (have != wanted)
        return ptx_fail_at(d->L, o->at, "found %u elements; expected %u", have, wanted);
    in->count = (uint8_t)wanted;
    for (unsigned i = 0; i < wanted; i++) {
        const ptx_operand *item = &items[i];
        unsigned bits = lane_bits(ptx_type_bits((ptx_type)d->m->t));
        if (destination && item->kind == PTX_O_SINK) {
            in->v[i] = ptx_slot_new(d->L, 64);
            continue;
        }
        if (destination && item->kind != PTX_O_REG)
            return ptx_fail_operand(d->L, item->at, "a destination register");
        in->v[i] = ptx_source(d, item, (ptx_type)d->m->t);
        if (in->v[i] == PTX_NONE)
            return false;
        unsigned width = item->kind == PTX_O_REG ? d->L->m->regs[item->reg].bits : bits;
        bool wide = width == 64;
        if (i && wide != in->wide)
            return ptx_fail_at(d->L, item->at, "found registers of two widths; expected one");
        in->wide = wide;
    }
    return true;
}

static bool put_element(decoding *d, const ptx_operand *o, ptx_type t, bool destination,
                        uint32_t *slot) {
    if (destination && o->kind == PTX_O_SINK)
        *slot = ptx_slot_new(d->L, ptx_type_bits(t));
    else if (destination && o->kind != PTX_O_REG)
        return ptx_fail_operand(d->L, o->at, "a destination register");
    else
        *slot = ptx_source(d, o, t);
    return *slot != PTX_NONE;
}

/* The {registers} of a matrix operand: X is the result, the others are sources. */
static bool put_fragment(decoding *d, const ptx_operand *o, char letter) {
    vm_module *m = d->L->m;
    ptx_fragment f = ptx_fragment_of(d->m, letter);
    if (o->kind != PTX_O_VECTOR || o->count != f.count)
        return ptx_fail_at(d->L, o->at, "found %u elements%s; expected %u in { }",
                           o->kind == PTX_O_VECTOR ? o->count : 1,
                           o->kind == PTX_O_VECTOR ? "" : " without { }", f.count);
    d->insn->v[letter == 'X' ? 0 : letter - 'A' + 1] = (uint32_t)m->fragment_count;
    for (unsigned i = 0; i < f.count; i++) {
        uint32_t slot = PTX_NONE;
        if (!put_element(d, &o->items[i], f.type, letter == 'X', &slot) ||
            !ptx_grow(d->L, (void **)&m->fragments, &d->L->fragment_capacity, m->fragment_count,
                      sizeof *m->fragments))
            return false;
        m->fragments[m->fragment_count++] = slot;
    }
    return true;
}

/* A parameter or result of the function itself; the others belong to calls. */
static bool is_of_signature(const ptx_func *f, const ptx_var *v) {
    const ptx_signature *s = &f->sig;
    return (s->param_count && v >= s->params && v < s->params + s->param_count) ||
           (s->ret_count && v >= s->rets && v < s->rets + s->ret_count);
}

/* Static check of [parameter + offset]; sets the frame slot of a function's own parameters. */
static bool put_param_address(decoding *d, const ptx_operand *o) {
    const ptx_var *v = o->var;
    ptx_insn *in = d->insn;
    uint32_t bytes = ptx_type_bits((ptx_type)in->t) / 8 * (in->count ? in->count : 1);
    if (o->value < 0 || (uint64_t)o->value + bytes > v->bytes)
        return ptx_fail_at(d->L, o->at,
                           "found offset %lld in '%s'; expected an access inside its %u bytes",
                           (long long)o->value, v->name, v->bytes);
    if (in->guard != PTX_NONE && v->stride && !is_of_signature(d->L->func, v))
        return ptx_fail_at(d->L, o->at,
                           "found '%s' in an instruction with a guard; expected none for a value "
                           "of a call",
                           v->name);
    in->imm = o->value;
    uint64_t start = (uint64_t)o->value + (v->stride ? 0 : v->offset);
    if (bytes && start % bytes)
        return ptx_fail_at(d->L, o->at,
                           "found offset %lld in '%s' for an access of %u bytes; expected a "
                           "parameter and an offset that are aligned to it",
                           (long long)o->value, v->name, bytes);
    if (v->stride) { /* lives in the frame, one copy a lane */
        in->a = (uint32_t)v->offset;
        in->e = v->stride;
        in->op = 1;
    } else {
        in->a = PTX_NONE;
        in->imm += (int64_t)v->offset;
    }
    d->sources++;
    return true;
}

/* `given` may be variable[i] without brackets. */
static bool put_address(decoding *d, const ptx_operand *given) {
    ptx_insn *in = d->insn;
    ptx_operand bracketed = *given;
    if (given->kind == PTX_O_SYMBOL && given->indexed) {
        bracketed.kind = PTX_O_ADDRESS;
        bracketed.reg = PTX_NONE;
    }
    const ptx_operand *o = &bracketed;
    if (o->kind != PTX_O_ADDRESS)
        return ptx_fail_operand(d->L, o->at, "an address in [ ]");
    in->site = d->L->m->site_count++;
    in->address_bits = 64;
    if (o->var && in->space == VM_SPACE_GENERIC) /* a bare [variable] means its own space */
        in->space = o->var->space;
    if (o->var && o->var->space != in->space)
        return ptx_fail_at(d->L, o->at, "found '%s'; expected a variable of the same space",
                           o->var->name);
    if (in->space == VM_SPACE_PARAM) {
        if (o->var)
            return put_param_address(d, o);
        if (d->op->shape != PTX_S_LD || o->reg == PTX_NONE)
            return ptx_fail_at(d->L, o->at, "found %s; expected [parameter]",
                               o->reg == PTX_NONE ? "a number as the address"
                                                  : "an address in a register");
        if (!d->L->func->entry) /* a parameter whose address was taken stands in local memory */
            in->space = VM_SPACE_LOCAL;
    }
    in->imm = o->value;
    if (o->reg != PTX_NONE) {
        unsigned bits = d->L->m->regs[o->reg].bits;
        if (bits != 32 && bits != 64)
            return ptx_fail_at(d->L, o->at, "found a register of %u bits; expected 32 or 64", bits);
        in->address_bits = (uint8_t)bits;
        return put_source(d, d->L->m->regs[o->reg].slot);
    }
    if (!o->var) {
        in->a = PTX_NONE;
        d->sources++;
        return true;
    }
    if (o->var->space == VM_SPACE_LOCAL)
        return put_source(d, local_address(d, o->var->offset));
    ptx_operand symbol = *o;
    symbol.value = 0;
    return put_source(d, ptx_symbol_slot(d, &symbol, 64));
}

bool ptx_label_fixup(ptx_loader *L, const ptx_operand *o, uint32_t *place) {
    if (!ptx_grow(L, (void **)&L->fixups, &L->fixup_capacity, L->fixup_count, sizeof *L->fixups))
        return false;
    L->fixups[L->fixup_count++] = (ptx_fixup){.insn = L->m->insn_count,
                                              .place = place,
                                              .scope = L->scope,
                                              .name = o->label,
                                              .length = o->label_length};
    return true;
}

static bool put_label(decoding *d, const ptx_operand *o) {
    if (o->kind != PTX_O_LABEL && o->kind != PTX_O_FUNC)
        return ptx_fail_operand(d->L, o->at, "a label");
    return ptx_label_fixup(d->L, o, NULL);
}

static bool put_branches(decoding *d, const ptx_operand *o) {
    ptx_symbol *s =
        o->kind == PTX_O_LABEL ? ptx_symbol_find(d->L, o->label, o->label_length) : NULL;
    if (!s || s->kind != PTX_Y_BRANCHES)
        return ptx_fail_operand(d->L, o->at, "the name of .branchtargets");
    d->insn->target = s->index;
    return true;
}

static bool put_immediate(decoding *d, const ptx_operand *o) {
    if (o->kind != PTX_O_INT)
        return ptx_fail_operand(d->L, o->at, "an integer constant");
    d->insn->imm = o->value;
    return true;
}

/* [source] of an asynchronous copy: base register in v[0], offset in v[1], width in e. */
static bool put_copy_source(decoding *d, const ptx_operand *o) {
    ptx_insn *in = d->insn;
    if (o->kind != PTX_O_ADDRESS)
        return ptx_fail_operand(d->L, o->at, "an address in [ ]");
    if (o->var && o->var->space != VM_SPACE_GLOBAL)
        return ptx_fail_at(d->L, o->at, "found '%s'; expected a .global variable", o->var->name);
    if (o->value != (int32_t)o->value)
        return ptx_fail_at(d->L, o->at, "found an offset beyond 2^31; expected a smaller one");
    ptx_operand symbol = *o;
    symbol.value = 0;
    unsigned bits = o->reg == PTX_NONE ? 64 : d->L->m->regs[o->reg].bits;
    if (bits != 32 && bits != 64)
        return ptx_fail_at(d->L, o->at, "found a register of %u bits; expected 32 or 64", bits);
    in->space = VM_SPACE_GLOBAL;
    in->e = bits;
    if (o->reg != PTX_NONE)
        in->v[0] = d->L->m->regs[o->reg].slot;
    else if (o->var)
        in->v[0] = ptx_symbol_slot(d, &symbol, 64);
    else
        in->v[0] = ptx_slot_const(d->L, 64, 0, PTX_BASE_NONE);
    in->v[1] = (uint32_t)(int32_t)o->value;
    return in->v[0] != PTX_NONE;
}

static bool put_copy_bytes(decoding *d, const ptx_operand *o) {
    bool whole = d->m->mod[PTX_G_copy] == PTX_M_COPY_CG;
    if (o->kind != PTX_O_INT || (o->value != 16 && (whole || (o->value != 4 && o->value != 8))))
        return ptx_fail_operand(d->L, o->at, "%s",
                                whole ? "16, the only size of .cg" : "4, 8 or 16 bytes");
    d->insn->bytes = (uint8_t)o->value;
    d->insn->count = 1;
    return true;
}

/* How many bytes to read, or a predicate: read none. */
static bool put_copy_limit(decoding *d, const ptx_operand *o) {
    if (o->kind == PTX_O_REG && d->L->m->regs[o->reg].bits == 1) {
        d->insn->op = 1;
        return ptx_allowed(d->L, o->at, "cp.async with a predicate", (ptx_need){75, 80}) &&
               put_predicate_source(d, o);
    }
    if (o->kind == PTX_O_INT && (uint64_t)o->value > d->insn->bytes)
        return ptx_fail_at(d->L, o->at, "found %lld bytes to read; expected at most %u",
                           (long long)o->value, d->insn->bytes);
    return put_source(d, ptx_source(d, o, PTX_T_b32));
}

static bool put_address_register(decoding *d, const ptx_operand *o) {
    unsigned bits = o->kind == PTX_O_REG ? d->L->m->regs[o->reg].bits : 64;
    d->insn->address_bits = (uint8_t)bits;
    return put_source(d, ptx_source(d, o, bits == 32 ? PTX_T_b32 : PTX_T_b64));
}

static bool put(decoding *d, ptx_pattern_item item, const ptx_operand *o) {
    ptx_type t = (ptx_type)d->m->t, u = (ptx_type)d->m->u;
    unsigned t_bits = lane_bits(ptx_type_bits(t));
    switch (item.letter) {
    case 'd':
        return put_destination(d, o, t_bits, item.piped);
    case 'D':
        return put_destination(d, o, lane_bits(ptx_type_bits(u)), item.piped);
    case 'w':
        return put_destination(d, o, ptx_type_bits(t) * 2, item.piped);
    case 'U':
        return put_destination(d, o, 32, item.piped);
    case 'p':
        return put_destination(d, o, 1, item.piped);
    case 's':
        return put_source(d, ptx_source(d, o, t));
    case 'S':
        if (d->op->shape == PTX_S_CVT && o->kind == PTX_O_REG && ptx_type_bits(u) < 64 &&
            d->L->m->regs[o->reg].bits == 64)
            d->insn->count = 64; /* the source register is wider than its type */
        return put_source(d, ptx_source(d, o, u));
    case 'W':
        return put_source(d, ptx_source(d, o, ptx_type_bits(t) == 32 ? PTX_T_b64 : PTX_T_b32));
    case 'u':
        return put_source(d, ptx_source(d, o, PTX_T_b32));
    case 'q':
        return put_predicate_source(d, o);
    case 'm':
        return put_address(d, o);
    case 'M':
        return put_copy_source(d, o);
    case 'n':
        return put_copy_bytes(d, o);
    case 'z':
        return put_copy_limit(d, o);
    case 'x':
        return put_source(d, ptx_source(d, o, PTX_T_b64));
    case 'Y':
        return put_destination(d, o, 64, item.piped);
    case 'h':
        d->insn->c = ptx_source(d, o, PTX_T_b64);
        return d->insn->c != PTX_NONE;
    case 'v':
        return put_vector(d, o, true);
    case 'V':
        return put_vector(d, o, false);
    case 'X':
    case 'A':
    case 'B':
    case 'C':
        return put_fragment(d, o, item.letter);
    case 'i':
        return put_immediate(d, o);
    case 't':
        return put_label(d, o);
    case 'b':
        return put_branches(d, o);
    case 'T':
    case 'Q':
    case 'L':
    case 'G':
    case 'O':
    case 'F':
        return ptx_put_texture(d, item.letter, o);
    case 'k':
        return ptx_video_mask(d, o) && put_destination(d, o, 32, item.piped);
    case 'j':
    case 'l':
    case 'o':
        return ptx_video_source(d, item.letter, o) && put_source(d, ptx_source(d, o, PTX_T_b32));
    default: /* 'g' */
        return put_address_register(d, o);
    }
}

static vm_space space_of(uint8_t mod) {
    switch (mod) {
    case PTX_M_GLOBAL:
        return VM_SPACE_GLOBAL;
    case PTX_M_SHARED:
    case PTX_M_SHARED_CTA:
        return VM_SPACE_SHARED;
    case PTX_M_LOCAL:
        return VM_SPACE_LOCAL;
    case PTX_M_CONST:
        return VM_SPACE_CONST;
    case PTX_M_PARAM:
    case PTX_M_PARAM_ENTRY:
    case PTX_M_PARAM_FUNC:
        return VM_SPACE_PARAM;
    default:
        return VM_SPACE_GENERIC;
    }
}

static void copy_modifiers(const ptx_match *m, const ptx_op *op, ptx_insn *in) {
    static const uint8_t op_groups[] = {PTX_G_cmp,   PTX_G_testp,   PTX_G_shfl,
                                        PTX_G_vote,  PTX_G_wrap,    PTX_G_prmt,
                                        PTX_G_noinc, PTX_G_arrival, PTX_G_waiting};
    in->row = m->row;
    in->t = m->t;
    in->u = m->u;
    in->bytes = (uint8_t)(ptx_type_bits((ptx_type)m->t) / 8);
    in->rnd = m->mod[PTX_G_irnd] ? m->mod[PTX_G_irnd] : m->mod[PTX_G_rnd];
    in->ftz = m->mod[PTX_G_ftz] != 0;
    in->sat = m->mod[PTX_G_sat] != 0;
    in->relu = m->mod[PTX_G_relu] != 0;
    in->bool_op = m->mod[PTX_G_bool];
    bool shared = m->mod[PTX_G_smem] || m->mod[PTX_G_cluster];
    in->space = (uint8_t)(shared ? VM_SPACE_SHARED : space_of(m->mod[PTX_G_space]));
    for (size_t i = 0; i < sizeof op_groups; i++)
        if (m->mod[op_groups[i]])
            in->op = m->mod[op_groups[i]];
    if (op->shape == PTX_S_DP2A)
        in->op = m->mod[PTX_G_part];
    if (ptx_shape_has(op->shape, PTX_SHAPE_VIDEO))
        ptx_video_prepare(m, in);
    if (op->shape == PTX_S_BARRED)
        in->op = m->mod[PTX_G_barred];
    if (op->shape == PTX_S_LD || op->shape == PTX_S_ST)
        in->op = 0;
    in->strong = m->mod[PTX_G_volatile] || m->mod[PTX_G_sem] > PTX_M_WEAK;
    in->releases = m->mod[PTX_G_sem] >= PTX_M_RELEASE;
    in->acquires = m->mod[PTX_G_sem] >= PTX_M_ACQUIRE && m->mod[PTX_G_sem] != PTX_M_RELEASE;
    in->of_block = m->mod[PTX_G_scope] == PTX_M_CTA || m->mod[PTX_G_barscope] == PTX_M_BCTA;
    in->of_system = m->mod[PTX_G_scope] == PTX_M_SYS || m->mod[PTX_G_barscope] == PTX_M_BSYS ||
                    m->mod[PTX_G_volatile];
    bool sync = strstr(op->format, ".sync") != NULL;
    bool arrive = strstr(op->format, ".arrive") != NULL;
    bool aligned = m->mod[PTX_G_aligned] || strcmp(op->name, "bar") == 0;
    bool is_signed = ptx_type_kind((ptx_type)m->t) == 'S';
    in->flags = (uint8_t)((m->mod[PTX_G_nan] ? PTX_F_NAN : 0) |
                          (m->mod[PTX_G_xorsign] ? PTX_F_XORSIGN : 0) |
                          (is_signed ? PTX_F_SIGNED : 0) | (sync ? PTX_F_SYNC : 0) |
                          (arrive ? PTX_F_ARRIVE : 0) | (aligned ? PTX_F_ALIGNED : 0));
}

void ptx_make_form(ptx_match *match) {
    ptx_insn *form = &match->form;
    *form = (ptx_insn){.site = PTX_NONE};
    copy_modifiers(match, ptx_op_get(match->row), form);
    form->b = form->c = form->e = form->d2 = form->target = PTX_NONE;
}

static bool is_own_parameter(const ptx_loader *L, const ptx_operand *o) {
    const ptx_signature *sig = &L->func->sig;
    return o->kind == PTX_O_SYMBOL && !L->func->entry && sig->param_count > 0 &&
           o->var >= sig->params && o->var < sig->params + sig->param_count;
}

/* A parameter whose address is taken is copied to local memory by the call (PTX ISA, mov). */
static uint32_t local_copy(ptx_loader *L, const ptx_operand *o) {
    ptx_func *f = L->func;
    ptx_var *v = &f->sig.params[o->var - f->sig.params];
    uint32_t align = v->align > 8 ? v->align : 8;
    if (!v->local) {
        uint32_t at = (f->local_bytes + align - 1) / align * align;
        v->local = at + 1;
        f->local_bytes = at + v->bytes;
        f->local_align = f->local_align < align ? align : f->local_align;
    }
    return v->local - 1;
}

/* mov of what is no plain register: vectors, addresses, changing special registers. */
static bool decode_special_mov(decoding *d, ptx_operand *o, bool *done) {
    ptx_loader *L = d->L;
    ptx_insn *in = d->insn;
    unsigned bits = ptx_type_bits((ptx_type)d->m->t);
    *done = true;
    if (o[0].kind == PTX_O_VECTOR || o[1].kind == PTX_O_VECTOR) {
        bool pack = o[1].kind == PTX_O_VECTOR;
        ptx_operand *v = pack ? &o[1] : &o[0], *whole = pack ? &o[0] : &o[1];
        if (whole->kind == PTX_O_VECTOR || (bits != 32 && bits != 64) ||
            (v->count != 2 && v->count != 4))
            return ptx_fail_at(L, v->at,
                               "found a vector; expected a mov of .b32 or .b64 with two "
                               "or four elements on one side");
        ptx_type element = PTX_T_b8;
        if (bits / v->count == 32)
            element = PTX_T_b32;
        else if (bits / v->count == 16)
            element = PTX_T_b16;
        ptx_match part = *d->m;
        part.t = (uint8_t)element;
        part.mod[PTX_G_vec] = v->count == 4 ? PTX_M_V4 : PTX_M_V2;
        in->bytes = (uint8_t)(ptx_type_bits(element) / 8);
        const ptx_match *whole_match = d->m;
        d->m = &part;
        bool ok = put_vector(d, v, !pack);
        d->m = whole_match;
        if (!ok)
            return false;
        in->row = pack ? PTX_OP_MOV_PACK : PTX_OP_MOV_UNPACK;
        in->t = bits == 64 ? PTX_T_b64 : PTX_T_b32;
        return pack ? put_destination(d, whole, bits, false)
                    : put_source(d, ptx_source(d, whole, (ptx_type)in->t));
    }
    if (o[1].kind == PTX_O_SREG && ptx_sreg_dynamic((ptx_sreg)o[1].value)) {
        if (ptx_sreg_bits((ptx_sreg)o[1].value) != bits)
            return ptx_fail_at(L, o[1].at, "found a special register of %u bits; expected %u",
                               ptx_sreg_bits((ptx_sreg)o[1].value), bits);
        in->row = PTX_OP_MOV_SREG;
        in->t = bits == 64 ? PTX_T_u64 : PTX_T_u32;
        in->target = (uint32_t)o[1].value;
        return put_destination(d, &o[0], bits, false);
    }
    if (o[1].kind == PTX_O_SYMBOL && o[1].var->space == VM_SPACE_LOCAL && bits >= 32) {
        in->row = PTX_OP_MOV_LOCAL;
        in->t = bits == 64 ? PTX_T_u64 : PTX_T_u32;
        in->imm = (int64_t)o[1].var->offset + o[1].value;
        return put_destination(d, &o[0], bits, false);
    }
    if (is_own_parameter(L, &o[1]) && bits >= 32) {
        in->row = PTX_OP_MOV_LOCAL;
        in->t = bits == 64 ? PTX_T_u64 : PTX_T_u32;
        in->imm = (int64_t)local_copy(L, &o[1]) + o[1].value;
        return put_destination(d, &o[0], bits, false);
    }
    *done = false;
    if ((o[1].kind == PTX_O_SYMBOL && bits >= 32) || (o[1].kind == PTX_O_FUNC && bits == 64)) {
        in->row = PTX_OP_MOV_SYMBOL;
        in->t = bits == 64 ? PTX_T_u64 : PTX_T_u32;
    }
    return true;
}

static bool fail_operands(const decoding *d, const char *at, const char *found) {
    char wanted[80];
    ptx_pattern_text(d->op->pattern, wanted, sizeof wanted);
    return ptx_fail_at(d->L, at, "found %s; expected %s", found, wanted);
}

bool ptx_decode(ptx_loader *L, const ptx_match *match, ptx_operand *operands, unsigned count,
                const char *at, ptx_insn *insn) {
    decoding d = {.L = L, .m = match, .op = ptx_op_get(match->row), .insn = insn, .at = at};
    const uint32_t guard = insn->guard;
    const uint8_t negate = insn->negate;
    *insn = match->form;
    insn->guard = guard;
    insn->negate = negate;
    if (match->row == PTX_OP_MOV) {
        bool done;
        if (!decode_special_mov(&d, operands, &done) || done)
            return !L->failed && !L->oom;
    }
    if (d.op->shape == PTX_S_LD || d.op->shape == PTX_S_ST) /* data first: its count sizes checks */
        insn->count = vector_length(match);
    if (ptx_shape_has(d.op->shape, PTX_SHAPE_TEXTURE))
        ptx_texture_prepare(match, insn);
    bool tensor = ptx_shape_has(d.op->shape, PTX_SHAPE_TENSOR);
    if (tensor && !ptx_tensor_prepare(L, match, at, insn))
        return false;
    unsigned spare = count - match->pattern.least, next = 0;
    for (const ptx_pattern_item *item = match->pattern.items; item->letter; item++) {
        if (item->optional && (!spare || next >= count || operands[next].piped != item->piped))
            continue;
        spare -= item->optional;
        if (next >= count || operands[next].piped != item->piped)
            return fail_operands(&d, next < count ? operands[next].at : at, "other operands");
        if (operands[next].selector && !strchr("kjl", item->letter))
            return ptx_fail_at(L, operands[next].selector - 1,
                               "found a selector; expected none here");
        if (operands[next].minus && !strchr("lo", item->letter))
            return ptx_fail_at(L, operands[next].at, "found a sign; expected none here");
        if (!put(&d, *item, &operands[next]))
            return false;
        next++;
    }
    if (next != count)
        return fail_operands(&d, operands[next].at, "one operand too many");
    if (tensor && !ptx_tensor_finish(L, match, at, insn))
        return false;
    if (ptx_shape_has(d.op->shape, PTX_SHAPE_VIDEO) && !ptx_video_finish(&d, operands, count))
        return false;
    return !L->failed && !L->oom;
}
