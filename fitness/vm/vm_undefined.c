/* Undefined bits: what becomes of bytes of local memory that nothing has written.
 *
 * Code without optimisation copies structs with their padding and sets bit fields on fresh stack
 * bytes, so a read of such bytes is no fault by itself. The first such read switches the launch to
 * a second copy of its code, in which a wrapper stands before each instruction (h_undefined). From
 * then on undefined bits travel with values, as in Memcheck (Seward and Nethercote, "Using Valgrind
 * to Detect Undefined Value Errors with Bit-Precision", USENIX 2005):
 *
 *   a register     has a bit for each of its bits, at the same place of vm_frame.undefined
 *   local memory   the same, in vm_warp.local_undefined; bytes that nothing has written are
 * undefined
 *
 * Moves, bit operations, shifts, fields and conversions of integers pass bits on one by one. Sums
 * and products pass them to higher bits. Of other instructions the whole result is undefined. A
 * launch traps where an undefined bit decides: a guard or branch, an address, an operand of what is
 * no plain computation, and a store to memory that others see. All bits are defined at the switch,
 * since every earlier such read would have switched. */
#include "fitness/vm/vm_exec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct step {
    vm_warp *w;
    const ptx_insn *ip;
    const ptx_cold *cold;
    const uint8_t *regs;
    uint8_t *undefined; /* of the frame */
    uint32_t on;        /* lanes */
} step;

/* ---- lanes of registers */

static uint64_t get(const uint8_t *regs, uint32_t slot, unsigned bits, unsigned lane) {
    if (slot == PTX_NONE)
        return 0;
    const uint8_t *at = regs + slot;
    if (bits == 1)
        return *(const uint32_t *)(const void *)at >> lane & 1;
    return bits == 64 ? ((const uint64_t *)(const void *)at)[lane]
                      : ((const uint32_t *)(const void *)at)[lane];
}

static void put(uint8_t *regs, uint32_t slot, unsigned bits, unsigned lane, uint64_t value) {
    uint8_t *at = regs + slot;
    if (bits == 1) {
        uint32_t *mask = (uint32_t *)(void *)at;
        *mask = (*mask & ~(UINT32_C(1) << lane)) | (uint32_t)(value & 1) << lane;
    } else if (bits == 64) {
        ((uint64_t *)(void *)at)[lane] = value;
    } else {
        ((uint32_t *)(void *)at)[lane] = (uint32_t)value;
    }
}

static uint64_t low_bits(unsigned bits) {
    return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

static unsigned width(const step *s) {
    return ptx_type_bits((ptx_type)s->ip->t) == 64 ? 64 : 32;
}

/* ---- operands */

/* The lanes in which some bit of a register is undefined. */
static uint32_t lanes_of(const step *s, uint32_t reg) {
    const ptx_reg *r = &s->w->state->module->regs[reg];
    uint64_t all = low_bits(r->bits); /* 16 bits have a place of 32 */
    uint32_t lanes = 0;
    for (uint32_t left = s->on; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        lanes |= (uint32_t)((get(s->undefined, r->slot, r->bits, i) & all) != 0) << i;
    }
    return lanes;
}

static uint32_t lanes_of_operand(const step *s, const ptx_operand *o) {
    uint32_t lanes = 0;
    if ((o->kind == PTX_O_REG || o->kind == PTX_O_ADDRESS) && o->reg != PTX_NONE)
        lanes = lanes_of(s, o->reg);
    bool several = o->kind == PTX_O_VECTOR || o->kind == PTX_O_TEXEL;
    for (unsigned i = 0; several && i < o->count; i++)
        if (o->items[i].kind == PTX_O_REG)
            lanes |= lanes_of(s, o->items[i].reg);
    return lanes;
}

static uint32_t lanes_of_sources(const step *s) {
    uint32_t lanes = 0;
    for (unsigned i = 0; i < s->cold->operand_count; i++)
        if (!(s->cold->written >> i & 1))
            lanes |= lanes_of_operand(s, &s->cold->operands[i]);
    return lanes;
}

static void define(const step *s, const ptx_operand *o, uint32_t undefined) {
    if (o->kind == PTX_O_REG && o->reg != PTX_NONE) {
        const ptx_reg *r = &s->w->state->module->regs[o->reg];
        for (uint32_t left = s->on; left; left &= left - 1) {
            unsigned i = (unsigned)__builtin_ctz(left);
            put(s->undefined, r->slot, r->bits, i, undefined >> i & 1 ? low_bits(r->bits) : 0);
        }
    }
    for (unsigned i = 0; o->kind == PTX_O_VECTOR && i < o->count; i++)
        define(s, &o->items[i], undefined);
}

/* All results are undefined as a whole in the given lanes, and defined in the others. */
static void define_results(const step *s, uint32_t undefined) {
    for (unsigned i = 0; i < s->cold->operand_count; i++)
        if (s->cold->written >> i & 1)
            define(s, &s->cold->operands[i], undefined);
}

void vm_undefined_trap(vm_warp *w, const ptx_insn *ip, unsigned lane, const char *what) {
    vm_state *s = w->state;
    vm_trap_raise(w, ip, VM_TRAP_UNINITIALISED, lane, NULL,
                  "%s depends on local memory that nothing has written", what);
    if (!s->deferred.block) /* whose trap came first */
        vm_trap_append(&s->result->trap, "; %s", s->undefined_first);
}

static bool trap(const step *s, uint32_t lanes, const char *what) {
    if (lanes)
        vm_undefined_trap(s->w, s->ip, (unsigned)__builtin_ctz(lanes), what);
    return !lanes;
}

/* ---- computations that pass bits on; each gives the undefined bits of one lane's result */

static uint64_t shifted(const ptx_insn *ip, uint64_t u, uint64_t amount, unsigned bits) {
    if (bits == 0 || bits > 64) /* no type is so wide */
        return u;
    bool left = ip->row == PTX_OP_SHL, is_signed = ptx_type_kind((ptx_type)ip->t) == 'S';
    u &= low_bits(bits);
    uint64_t top = bits < 64 ? u << (64 - bits) : u;
    if (left)
        return amount >= bits ? 0 : u << amount & low_bits(bits);
    if (is_signed)
        return (uint64_t)((int64_t)top >> (amount > 63 ? 63 : amount)) >> (64 - bits);
    return amount >= bits ? 0 : u >> amount;
}

static uint64_t field(const ptx_insn *ip, uint64_t u, unsigned pos, unsigned len, unsigned bits) {
    pos &= 255;
    len &= 255;
    bool is_signed = ptx_type_kind((ptx_type)ip->t) == 'S';
    uint64_t part = pos >= bits ? 0 : (u & low_bits(bits)) >> pos & low_bits(len);
    unsigned last = pos + len > bits ? bits - 1 : pos + len - 1;
    bool fill = is_signed && len > 0 && (u >> (last & 63) & 1) != 0;
    uint64_t kept = last >= pos ? low_bits(last - pos + 1) : 0;
    return fill ? (part | ~kept) & low_bits(bits) : part;
}

static uint64_t inserted(uint64_t ua, uint64_t ub, unsigned pos, unsigned len, unsigned bits) {
    pos &= 255;
    len &= 255;
    if (pos >= bits)
        return ub;
    uint64_t mask = low_bits(len) << pos;
    return ((ub & ~mask) | (ua << pos & mask)) & low_bits(bits);
}

/* The low bits as the type, in as many bits as there are. */
static uint64_t extended(uint64_t u, ptx_type t) {
    unsigned bits = ptx_type_bits(t);
    u &= low_bits(bits);
    bool fill = ptx_type_kind(t) == 'S' && u >> (bits - 1) & 1;
    return fill ? u | ~low_bits(bits) : u;
}

/* The register may be wider than the type. */
static uint64_t converted(const ptx_insn *ip, uint64_t u) {
    return extended(extended(u, (ptx_type)ip->u), (ptx_type)ip->t);
}

static uint64_t permuted(uint64_t ua, uint64_t ub, uint64_t selector) {
    uint64_t both = (ua & UINT32_MAX) | ub << 32, out = 0;
    for (unsigned k = 0; k < 4; k++) {
        unsigned pick = selector >> (4 * k) & 15;
        uint64_t byte = both >> (8 * (pick & 7)) & 0xff;
        if (pick & 8)
            byte = byte & 0x80 ? 0xff : 0;
        out |= byte << (8 * k);
    }
    return out;
}

static uint32_t table3(uint32_t a, uint32_t b, uint32_t c, unsigned table) {
    uint32_t out = 0;
    for (unsigned k = 0; k < 8; k++)
        if (table >> k & 1)
            out |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    return out;
}

/* What the result can become by changing undefined bits. */
static uint64_t looked_up(const uint64_t *v, const uint64_t *u, unsigned table) {
    uint32_t plain = table3((uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2], table), out = 0;
    for (unsigned k = 1; k < 8; k++)
        out |= plain ^ table3((uint32_t)(v[0] ^ (k & 1 ? u[0] : 0)),
                              (uint32_t)(v[1] ^ (k & 2 ? u[1] : 0)),
                              (uint32_t)(v[2] ^ (k & 4 ? u[2] : 0)), table);
    return out;
}

static uint64_t upwards(uint64_t u) {
    return u | (0 - u);
}

static bool is_integer(uint8_t t) {
    char kind = ptx_type_kind((ptx_type)t);
    return (kind == 'U' || kind == 'S') && ptx_type_bits((ptx_type)t) >= 8;
}

/* The undefined bits of a lane's result; false: no rule for this row. v, u: values and undefined
 * bits of a, b, c, e. */
static bool bits_of(const step *s, const uint64_t *v, const uint64_t *u, uint64_t *out) {
    const ptx_insn *ip = s->ip;
    unsigned bits = ptx_type_bits((ptx_type)ip->t);
    uint64_t all = low_bits(width(s));
    switch (ip->row) {
    case PTX_OP_MOV:
    case PTX_OP_NOT:
    case PTX_OP_XOR:
    case PTX_OP_MOV_P:
    case PTX_OP_NOT_P:
    case PTX_OP_XOR_P:
        *out = u[0] | u[1];
        return true;
    case PTX_OP_AND:
    case PTX_OP_AND_P:
        *out = (u[0] | u[1]) & (u[0] | v[0]) & (u[1] | v[1]);
        return true;
    case PTX_OP_OR:
    case PTX_OP_OR_P:
        *out = (u[0] | u[1]) & (u[0] | ~v[0]) & (u[1] | ~v[1]);
        return true;
    case PTX_OP_LOP3:
        *out = looked_up(v, u, (unsigned)ip->imm);
        return true;
    case PTX_OP_SHL:
    case PTX_OP_SHR:
        *out = u[1] ? all : shifted(ip, u[0], v[1] & UINT32_MAX, bits);
        return true;
    case PTX_OP_BFE:
        *out = u[1] | u[2] ? all : field(ip, u[0], (unsigned)v[1], (unsigned)v[2], bits);
        return true;
    case PTX_OP_BFI:
        *out = u[2] | u[3] ? all : inserted(u[0], u[1], (unsigned)v[2], (unsigned)v[3], bits);
        return true;
    case PTX_OP_PRMT:
        *out = u[2] ? all : permuted(u[0], u[1], v[2]);
        return true;
    case PTX_OP_ADD_I:
    case PTX_OP_SUB_I:
    case PTX_OP_MUL_LO:
    case PTX_OP_MAD_LO:
    case PTX_OP_NEG_I:
    case PTX_OP_CVTA:
    case PTX_OP_CVTA_TO:
        *out = upwards(u[0] | u[1] | u[2]) & all;
        return true;
    case PTX_OP_CVT:
        if (!is_integer(ip->t) || !is_integer(ip->u) || ip->sat)
            return false;
        *out = converted(ip, u[0]);
        return true;
    default:
        return false;
    }
}

/* Widths of the slots a, b, c, e: amounts and selectors have 32 bits, an insertion's a and b do
 * not. */
static unsigned source_width(const step *s, unsigned k) {
    if (s->ip->row == PTX_OP_CVT)
        return ptx_type_bits((ptx_type)s->ip->u) == 64 || s->ip->count == 64 ? 64 : 32;
    if (ptx_type_kind((ptx_type)s->ip->t) == 'P')
        return 1;
    bool amounts = s->ip->row == PTX_OP_SHL || s->ip->row == PTX_OP_SHR || s->ip->row == PTX_OP_BFE;
    if ((amounts && k >= 1) || (s->ip->row == PTX_OP_BFI && k >= 2))
        return 32;
    return width(s);
}

static unsigned sources_of(unsigned row) {
    switch (row) {
    case PTX_OP_MOV:
    case PTX_OP_NOT:
    case PTX_OP_NEG_I:
    case PTX_OP_MOV_P:
    case PTX_OP_NOT_P:
    case PTX_OP_CVT:
    case PTX_OP_CVTA:
    case PTX_OP_CVTA_TO:
        return 1;
    case PTX_OP_LOP3:
    case PTX_OP_BFE:
    case PTX_OP_PRMT:
    case PTX_OP_MAD_LO:
        return 3;
    case PTX_OP_BFI:
        return 4;
    default:
        return 2;
    }
}

static bool pass_bits(const step *s) {
    const ptx_insn *ip = s->ip;
    const uint32_t slots[4] = {ip->a, ip->b, ip->c, ip->e};
    unsigned count = sources_of(ip->row), to = 32;
    if (ptx_type_kind((ptx_type)ip->t) == 'P')
        to = 1;
    else if (ip->wide || width(s) == 64)
        to = 64;
    for (uint32_t left = s->on; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint64_t v[4] = {0}, u[4] = {0}, out = 0;
        for (unsigned k = 0; k < count; k++) {
            v[k] = get(s->regs, slots[k], source_width(s, k), i);
            u[k] = get(s->undefined, slots[k], source_width(s, k), i);
            if (ip->negate >> k & 1)
                v[k] = ~v[k];
        }
        if (!bits_of(s, v, u, &out))
            return false;
        put(s->undefined, ip->d, to, i, out);
    }
    return true;
}

static void move_elements(const step *s) {
    const ptx_insn *ip = s->ip;
    const uint32_t from[4] = {ip->a, ip->b, ip->c, ip->e};
    for (uint32_t left = s->on; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left), bits = ip->bytes * 8u;
        uint64_t u[4] = {0}, whole = 0;
        for (unsigned k = 0; k < ip->count; k++)
            if (ip->row == PTX_OP_MOV_VECTOR)
                u[k] = get(s->undefined, from[k], width(s), i);
            else if (ip->row == PTX_OP_MOV_PACK)
                whole |= (get(s->undefined, ip->v[k], 32, i) & low_bits(bits)) << (k * bits);
            else
                u[k] = get(s->undefined, ip->a, width(s), i) >> (k * bits) & low_bits(bits);
        if (ip->row == PTX_OP_MOV_PACK)
            put(s->undefined, ip->d, width(s), i, whole);
        for (unsigned k = 0; ip->row != PTX_OP_MOV_PACK && k < ip->count; k++)
            put(s->undefined, ip->v[k], ip->row == PTX_OP_MOV_VECTOR ? width(s) : 32, i, u[k]);
    }
}

/* A defined choice passes on what it chooses. */
static void choose(const step *s) {
    const ptx_insn *ip = s->ip;
    for (uint32_t left = s->on; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        bool yes = get(s->regs, ip->c, 1, i) != (ip->negate >> 2 & 1u);
        uint64_t u = get(s->undefined, ip->c, 1, i)
                         ? low_bits(width(s))
                         : get(s->undefined, yes ? ip->a : ip->b, width(s), i);
        put(s->undefined, ip->d, width(s), i, u);
    }
}

/* Integers with a defined bit that differs are unequal, whatever the others are. */
static uint32_t still_equal(const step *s, uint32_t lanes) {
    const ptx_insn *ip = s->ip;
    bool equality = ip->op == PTX_M_EQ || ip->op == PTX_M_NE;
    if (!equality || strchr("FH", ptx_type_kind((ptx_type)ip->t)))
        return lanes;
    for (uint32_t left = lanes; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint64_t differ = get(s->regs, ip->a, width(s), i) ^ get(s->regs, ip->b, width(s), i);
        differ &= low_bits(ptx_type_bits((ptx_type)ip->t));
        differ &= ~(get(s->undefined, ip->a, width(s), i) | get(s->undefined, ip->b, width(s), i));
        bool of_choice = ip->bool_op && get(s->undefined, ip->c, 1, i);
        if (differ && !of_choice)
            lanes &= ~(UINT32_C(1) << i);
    }
    return lanes;
}

static void carry(const step *s, uint32_t lanes) {
    bool reads = s->ip->row == PTX_OP_ADDC || s->ip->row == PTX_OP_SUBC ||
                 s->ip->row == PTX_OP_MADC_LO || s->ip->row == PTX_OP_MADC_HI;
    lanes |= reads ? s->w->cc_undefined & s->on : 0;
    s->w->cc_undefined = (s->w->cc_undefined & ~s->on) | lanes;
    define_results(s, lanes);
}

/* ---- memory */

/* Offset in the lane's local memory of an access of `bytes`, or UINT64_MAX: elsewhere, or out of
 * bounds, which the instruction finds. */
static uint64_t local_offset(const step *s, unsigned lane, unsigned bytes) {
    const ptx_insn *ip = s->ip;
    uint64_t address = get(s->regs, ip->a, ip->address_bits, lane);
    if (ip->space == VM_SPACE_GENERIC) {
        address += (uint64_t)ip->imm;
        if (ptx_window_space(address) != VM_SPACE_LOCAL)
            return UINT64_MAX;
        address -= VM_WINDOW_LOCAL;
    } else if (ip->space == VM_SPACE_LOCAL) {
        address = ip->address_bits == 32 ? (uint32_t)(address + (uint64_t)ip->imm)
                                         : address + (uint64_t)ip->imm;
    } else {
        return UINT64_MAX;
    }
    const vm_warp *w = s->w;
    bool inside = address < w->local_capacity && bytes <= w->local_capacity - address;
    return inside ? address + lane * w->local_capacity : UINT64_MAX;
}

static uint8_t undefined_byte(const vm_warp *w, uint64_t at) {
    bool written = w->local_written[at >> 6] >> (at & 63) & 1;
    return written ? w->local_undefined[at] : 0xff;
}

/* Of a call's value in the frame. */
static uint64_t frame_offset(const ptx_insn *ip, unsigned lane) {
    return ip->a + (uint64_t)lane * ip->e + (uint64_t)ip->imm;
}

/* The undefined bits of element k of an access to memory that has them. */
static uint64_t element_at(const step *s, unsigned lane, unsigned k, uint64_t local) {
    const ptx_insn *ip = s->ip;
    uint64_t u = 0;
    uint64_t first = (uint64_t)k * ip->bytes;
    for (unsigned b = 0; b < ip->bytes; b++) {
        uint8_t byte = local == UINT64_MAX ? s->undefined[frame_offset(ip, lane) + first + b]
                                           : undefined_byte(s->w, local + first + b);
        u |= (uint64_t)byte << (8 * b);
    }
    uint64_t all = low_bits(8u * ip->bytes);
    bool fill = ip->flags & PTX_F_SIGNED && u & (all ^ all >> 1);
    return fill ? u | ~all : u;
}

static bool in_frame(const ptx_insn *ip) {
    return ip->space == VM_SPACE_PARAM && ip->a != PTX_NONE && ip->op == 1;
}

static void load(const step *s) {
    const ptx_insn *ip = s->ip;
    for (uint32_t left = s->on; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint64_t at = local_offset(s, i, (unsigned)ip->bytes * ip->count);
        uint64_t u[4] = {0};
        for (unsigned k = 0; k < ip->count && (at != UINT64_MAX || in_frame(ip)); k++)
            u[k] = element_at(s, i, k, at);
        for (unsigned k = 0; k < ip->count; k++)
            put(s->undefined, ip->v[k], ip->wide ? 64 : 32, i, u[k]);
    }
}

static bool store(const step *s) {
    const ptx_insn *ip = s->ip;
    for (uint32_t left = s->on; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint64_t at = local_offset(s, i, (unsigned)ip->bytes * ip->count);
        for (unsigned k = 0; k < ip->count; k++) {
            uint64_t first = (uint64_t)k * ip->bytes;
            uint64_t u =
                get(s->undefined, ip->v[k], ip->wide ? 64 : 32, i) & low_bits(8u * ip->bytes);
            if (at != UINT64_MAX)
                memcpy(s->w->local_undefined + at + first, &u, ip->bytes);
            else if (in_frame(ip))
                memcpy(s->undefined + frame_offset(ip, i) + first, &u, ip->bytes);
            else if (u)
                return trap(s, 1u << i, "a stored value");
        }
    }
    return true;
}

static uint32_t lanes_of_address(const step *s) {
    for (unsigned i = 0; i < s->cold->operand_count; i++)
        if (s->cold->operands[i].kind == PTX_O_ADDRESS)
            return lanes_of_operand(s, &s->cold->operands[i]);
    return 0;
}

/* ---- an instruction */

static bool has_address(const step *s) {
    for (unsigned i = 0; i < s->cold->operand_count; i++)
        if (s->cold->operands[i].kind == PTX_O_ADDRESS || s->cold->operands[i].kind == PTX_O_TEXEL)
            return true;
    return false;
}

/* The lanes in which some bit of a call's value is undefined. */
static uint32_t lanes_of_value(const step *s, const ptx_value *v) {
    uint32_t lanes = 0;
    for (uint32_t left = s->on; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        const uint8_t *at = s->undefined + v->slot + (size_t)i * v->stride;
        for (uint32_t b = 0; b < v->bytes; b++)
            lanes |= (uint32_t)(at[b] != 0) << i;
    }
    return lanes;
}

/* What a call of the machine takes is seen by it, and what it gives is defined. */
static bool call_system(const step *s, const ptx_call *call) {
    uint32_t lanes = 0;
    for (size_t i = 0; i < call->arg_count; i++)
        lanes |= lanes_of_value(s, &call->args[i]);
    for (size_t k = 0; k < call->ret_count && call->rets[k].slot != PTX_NONE; k++)
        for (uint32_t left = s->on; left; left &= left - 1)
            memset(s->undefined + call->rets[k].slot +
                       (size_t)__builtin_ctz(left) * call->rets[k].stride,
                   0, call->rets[k].bytes);
    char what[80];
    (void)snprintf(what, sizeof what, "an argument of '%s'", ptx_system_name(call->system));
    return trap(s, lanes, what);
}

static bool call(const step *s) {
    const ptx_call *c = &s->w->state->module->calls[s->ip->target];
    if (c->system != PTX_SYS_NONE)
        return call_system(s, c);
    return c->func != PTX_NONE || trap(s, lanes_of(s, c->reg), "a called function");
}

static bool compute(const step *s, ptx_shape shape) {
    uint32_t lanes = lanes_of_sources(s);
    switch (shape) {
    case PTX_S_PACK:
    case PTX_S_UNPACK:
    case PTX_S_MOVES:
        move_elements(s);
        return true;
    case PTX_S_SELECT:
        choose(s);
        return true;
    case PTX_S_SETP:
    case PTX_S_SET:
        define_results(s, still_equal(s, lanes));
        return true;
    case PTX_S_CARRY:
    case PTX_S_CARRY3:
        carry(s, lanes);
        return true;
    default:
        break;
    }
    if (lanes && pass_bits(s))
        return true;
    bool exchanges = ptx_shape_has((uint8_t)shape, PTX_SHAPE_LANES);
    define_results(s, exchanges && lanes ? UINT32_MAX : lanes);
    return true;
}

static bool pass(const step *s, ptx_shape shape) {
    bool line = ptx_shape_has((uint8_t)shape, PTX_SHAPE_LINE);
    if (shape == PTX_S_LD || shape == PTX_S_ST) {
        if (!trap(s, lanes_of_address(s), "an address"))
            return false;
        if (shape == PTX_S_ST)
            return store(s);
        load(s);
        return true;
    }
    if (shape == PTX_S_CALL)
        return call(s);
    bool computes = (line || ptx_shape_has((uint8_t)shape, PTX_SHAPE_LANES)) && !has_address(s);
    if (computes)
        return compute(s, shape);
    if (!trap(s, lanes_of_sources(s), "an operand"))
        return false;
    define_results(s, 0);
    return true;
}

/* Only a load brings undefined bits into a frame that has none. */
static bool brings(const step *s, ptx_shape shape) {
    if (shape != PTX_S_LD)
        return false;
    for (uint32_t left = s->on; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left), bytes = (unsigned)s->ip->bytes * s->ip->count;
        uint64_t at = local_offset(s, i, bytes);
        for (unsigned b = 0; at != UINT64_MAX && b < bytes; b++)
            if (undefined_byte(s->w, at + b))
                return true;
    }
    return false;
}

uint8_t *vm_undefined_frame(vm_state *s, vm_frame *frame) {
    size_t bytes = s->module->funcs[frame->func].frame_bytes + 128u;
    if (!frame->undefined)
        frame->undefined = calloc(1, bytes);
    s->out_of_memory |= !frame->undefined;
    return frame->undefined;
}

bool vm_undefined_step(vm_warp *w, const ptx_insn *ip, const uint8_t *regs, uint32_t mask) {
    const vm_module *m = w->state->module;
    ptx_shape shape = (ptx_shape)ptx_op_get(ip->row)->shape;
    step s = {.w = w, .ip = ip, .cold = &m->cold[ip - w->code], .regs = regs, .on = mask};
    s.undefined = w->frame->undefined;
    if (ip->guard != PTX_NONE && s.undefined) {
        uint32_t lanes = *(const uint32_t *)(const void *)(s.undefined + ip->guard);
        if (!trap(&s, lanes & mask, shape == PTX_S_BRA ? "a branch" : "a guard"))
            return false;
    }
    if (ip->guard != PTX_NONE) {
        uint32_t p = *(const uint32_t *)(const void *)(regs + ip->guard);
        s.on &= ip->negate & 0x80 ? ~p : p;
    }
    if (!s.undefined && !brings(&s, shape))
        return true;
    if (!s.undefined)
        s.undefined = vm_undefined_frame(w->state, w->frame);
    return s.undefined && pass(&s, shape);
}

/* ---- the switch */

static bool make_code(vm_state *s) {
    const vm_module *m = s->module;
    size_t count = (size_t)m->insn_count + 1;
    s->undefined_code = malloc(count * sizeof *m->code);
    if (!s->undefined_code)
        return false;
    memcpy(s->undefined_code, m->code, count * sizeof *m->code);
    for (uint32_t pc = 0; pc < m->insn_count; pc++)
        s->undefined_code[pc].fn = vm_isa_undefined(m->isa);
    return true;
}

static bool follow(vm_warp *w) {
    w->code = w->state->undefined_code;
    if (w->local_capacity && !w->local_undefined)
        w->local_undefined = calloc(VM_LANES, w->local_capacity);
    return !w->local_capacity || w->local_undefined;
}

/* Where the launch first read such bytes: traps end with it. It need not be the read that led to
 * the trap, which only an origin of each undefined bit would tell. */
static void note_first(vm_warp *w, const ptx_insn *ip, unsigned lane, uint64_t address) {
    vm_state *s = w->state;
    const ptx_cold *cold = &s->module->cold[ip - w->code];
    char *text = s->undefined_first;
    size_t size = sizeof s->undefined_first;
    (void)snprintf(text, size, "the launch's first read of such bytes was in line %u", cold->line);
    if (cold->source_line) {
        size_t used = strlen(text);
        (void)snprintf(text + used, size - used, " (source line %u)", cold->source_line);
    }
    vm_place_append(text, size, w, ip, lane, address);
}

bool vm_undefined_begin(vm_warp *w, const ptx_insn *ip, unsigned lane, uint64_t address) {
    vm_state *s = w->state;
    note_first(w, ip, lane, address);
    uint32_t pc = (uint32_t)(ip - w->code);
    if (w->observed && pc > w->event_pc) /* what ran before it counts now */
        vm_event_push(w, pc - 1, w->mask);
    vm_run_end(w, pc, 0);
    w->run_pc = pc;
    bool ok = make_code(s);
    for (uint32_t b = 0; ok && b < s->block_count; b++)
        for (uint32_t i = 0; i < s->blocks[b].warp_count && ok; i++)
            ok = follow(&s->blocks[b].warps[i]);
    s->out_of_memory |= !ok;
    w->pc = pc;
    w->again = ok;
    return ok;
}
