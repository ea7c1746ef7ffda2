/* Video instructions: arithmetic on bytes and halves that selectors behind the registers choose
 * ("%r1.b3", "%r1.h10"), PTX ISA, "Video Instructions". Here selectors become picks (ptx.h). */
#include "fitness/ptx/ptx_load.h"

#include <string.h>

/* Parts of a word, for an instruction on all of them; 0: a scalar one. */
static unsigned parts_of(const ptx_op *op) {
    if (op->shape != PTX_S_PARTS)
        return 0;
    return op->name[strlen(op->name) - 1] == '2' ? 2 : 4;
}

void ptx_video_prepare(const ptx_match *m, ptx_insn *insn) {
    const ptx_op *op = ptx_op_get(m->row);
    unsigned parts = parts_of(op);
    uint8_t second = m->mod[PTX_G_sums] ? m->mod[PTX_G_sums] : m->mod[PTX_G_second];
    insn->op = m->mod[PTX_G_parts];
    insn->bool_op = m->mod[PTX_G_cmp] ? m->mod[PTX_G_cmp] : m->mod[PTX_G_wrap];
    insn->rnd = second ? second : m->mod[PTX_G_scale];
    insn->bytes = (uint8_t)(parts ? 4 / parts : 4);
    for (unsigned i = 0; i < 3; i++)
        insn->v[i] = PTX_VIDEO_PICK(0, 32);
    if (parts) {
        insn->v[0] = (1u << parts) - 1;
        insn->v[1] = parts == 2 ? 0x10 : 0x3210;
        insn->v[2] = parts == 2 ? 0x32 : 0x7654;
    }
    insn->v[3] = m->mod[PTX_G_po] ? PTX_VIDEO_PLUS_ONE : 0;
}

/* The digits behind the letter of a selector, each less than `limit`; false: no such selector. */
static bool read_digits(const ptx_operand *o, char letter, unsigned most, unsigned limit,
                        unsigned digits[4], unsigned *count) {
    *count = o->selector_length - 1u;
    if (o->selector[0] != letter || *count == 0 || *count > most)
        return false;
    for (unsigned i = 0; i < *count; i++) {
        digits[i] = (unsigned)(o->selector[1 + i] - '0');
        if (o->selector[1 + i] < '0' || digits[i] >= limit)
            return false;
    }
    return true;
}

static bool read_scalar(const ptx_operand *o, uint32_t *pick) {
    unsigned digits[4], count;
    bool byte = read_digits(o, 'b', 1, 4, digits, &count);
    if (!byte && !read_digits(o, 'h', 1, 2, digits, &count))
        return false;
    *pick = byte ? PTX_VIDEO_PICK(8 * digits[0], 8) : PTX_VIDEO_PICK(16 * digits[0], 16);
    return true;
}

/* "h10": one bit a part, digits from high to low. */
static bool read_mask(const ptx_operand *o, unsigned parts, uint32_t *pick) {
    unsigned digits[4], count;
    if (!read_digits(o, parts == 2 ? 'h' : 'b', parts, parts, digits, &count))
        return false;
    *pick = 0;
    for (unsigned i = 0; i < count; i++) {
        if (i && digits[i] >= digits[i - 1])
            return false;
        *pick |= 1u << digits[i];
    }
    return true;
}

/* "h32": a place a part, the highest part first. */
static bool read_places(const ptx_operand *o, unsigned parts, uint32_t *pick) {
    unsigned digits[4], count;
    if (!read_digits(o, parts == 2 ? 'h' : 'b', parts, 2 * parts, digits, &count) || count != parts)
        return false;
    *pick = 0;
    for (unsigned i = 0; i < count; i++)
        *pick = *pick << 4 | digits[i];
    return true;
}

static bool fail_selector(ptx_loader *L, const ptx_operand *o, const char *expected) {
    return ptx_fail_at(L, o->selector - 1, "found '.%.*s'; expected %s", o->selector_length,
                       o->selector, expected);
}

bool ptx_video_mask(ptx_decoding *d, const ptx_operand *o) {
    unsigned parts = parts_of(d->op);
    if (!o->selector)
        return true;
    if (parts == 0)
        return read_scalar(o, &d->insn->v[0]) ||
               fail_selector(d->L, o, ".b0, .b1, .b2, .b3, .h0 or .h1");
    return read_mask(o, parts, &d->insn->v[0]) ||
           fail_selector(d->L, o,
                         parts == 2 ? ".h0, .h1 or .h10"
                                    : ".b and digits of 0 to 3 from high to low, such as .b320");
}

bool ptx_video_source(ptx_decoding *d, char letter, const ptx_operand *o) {
    unsigned parts = parts_of(d->op);
    uint32_t *pick = &d->insn->v[1 + (d->sources != 0)];
    if (parts && o->kind != PTX_O_REG)
        return ptx_fail_operand(d->L, o->at, "a register");
    if (o->minus && letter == 'o')
        d->insn->v[3] |= PTX_VIDEO_SUMMAND;
    else if (o->minus) /* of both is of none */
        d->insn->v[3] ^= PTX_VIDEO_PRODUCT;
    if (!o->selector)
        return true;
    if (parts == 0)
        return read_scalar(o, pick) || fail_selector(d->L, o, ".b0, .b1, .b2, .b3, .h0 or .h1");
    return read_places(o, parts, pick) ||
           fail_selector(d->L, o,
                         parts == 2 ? ".h and two digits of 0 to 3, such as .h32"
                                    : ".b and four digits of 0 to 7, such as .b7654");
}

static bool finish_vmad(ptx_decoding *d, const ptx_operand *o) {
    bool minus = o[1].minus || o[2].minus || o[3].minus;
    uint32_t both = PTX_VIDEO_PRODUCT | PTX_VIDEO_SUMMAND;
    if (minus && d->insn->v[3] & PTX_VIDEO_PLUS_ONE)
        return ptx_fail_at(d->L, d->at, "found .po and a sign; expected one of them");
    return (d->insn->v[3] & both) != both ||
           ptx_fail_at(d->L, d->at, "found signs of the product and of the summand; expected one");
}

bool ptx_video_finish(ptx_decoding *d, const ptx_operand *operands, unsigned count) {
    if (d->op->shape == PTX_S_VMAD)
        return finish_vmad(d, operands);
    if (d->op->shape == PTX_S_PARTS)
        return operands[3].kind == PTX_O_REG ||
               ptx_fail_operand(d->L, operands[3].at, "a register");
    bool selects = operands[0].selector != NULL, combines = d->insn->rnd != PTX_M_NONE;
    if (selects && combines)
        return ptx_fail_at(d->L, operands[0].selector - 1,
                           "found '.%.*s' and a second operation; expected one of them",
                           operands[0].selector_length, operands[0].selector);
    return count == 4 || (!selects && !combines) ||
           ptx_fail_at(d->L, d->at, "found three operands; expected c as the fourth");
}
