/* Random kernels out of the instruction table: a row, a type it takes, modifiers it knows, and for
 * each letter of its pattern an operand that fits more often than not. */
#include "tests/fuzz/kernel_text.h"
#include "fitness/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

/* The bytes that decide, one draw each; all draws are 0 when they are used up. */
typedef struct draws {
    const uint8_t *at;
    size_t left;
} draws;

static unsigned draw(draws *d, unsigned below) {
    if (!d->left || below < 2)
        return 0;
    d->left--;
    unsigned byte = *d->at++;
    if (below > 256 && d->left) {
        d->left--;
        byte = byte << 8 | *d->at++;
    }
    return byte % below;
}

static bool chance(draws *d, unsigned of) {
    return draw(d, of) == 1;
}

static const char head[] =
    ".version 8.5\n.target sm_90a\n.address_size 64\n"
    ".global .align 16 .u32 table[16] = {1, 2, 3, 4, 5, 6, 7, 8};\n"
    ".const .align 16 .f32 fixed[16] = {1.0, -2.5, 0f7F800000, 0f7FC00000};\n"
    ".func (.param .b32 y) twice(.param .b32 x)\n{\n.reg .b32 %a;\nld.param.u32 %a, [x];\n"
    "add.u32 %a, %a, %a;\nst.param.b32 [y], %a;\nret;\n}\n"
    ".visible .entry k(.param .u64 in, .param .u64 out, .param .u64 both)\n{\n"
    ".shared .align 16 .b8 s[1024];\n.local .align 16 .b8 l[64];\n"
    ".reg .pred %p<4>;\n.reg .b16 %h<4>;\n.reg .b32 %r<6>;\n.reg .f32 %f<4>;\n.reg .b64 %d<4>;\n"
    ".reg .f64 %e<2>;\n.reg .b64 %in, %out, %both, %shared, %local, %x;\n"
    "ld.param.u64 %in, [in];\nld.param.u64 %out, [out];\nld.param.u64 %both, [both];\n"
    "mov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\nmad.lo.u32 %r2, %r1, 40, %r0;\n"
    "mul.wide.u32 %x, %r2, 8;\nadd.u64 %in, %in, %x;\nadd.u64 %out, %out, %x;\n"
    "add.u64 %both, %both, %x;\nmov.u64 %shared, s;\nmul.wide.u32 %x, %r0, 16;\n"
    "add.u64 %shared, %shared, %x;\nmov.u64 %local, l;\n"
    "st.shared.v2.u64 [%shared], {%in, %out};\nst.local.v2.u64 [%local], {%x, %both};\n"
    "ld.global.u32 %r3, [%in];\nld.global.u64 %d1, [%both];\ncvt.rn.f32.u32 %f1, %r0;\n"
    "cvt.rn.f64.u32 %e1, %r3;\ncvt.u16.u32 %h1, %r3;\nsetp.lt.u32 %p1, %r0, 20;\n"
    "setp.lt.u32 %p2, %r3, 128;\nmov.u32 %r4, 0x3c003c00;\nmov.b64 %d2, %e1;\nbar.sync 0;\n";

/* What the operands of a statement depend on. */
typedef struct statement {
    const ptx_op *op;
    ptx_type t, u;
    unsigned vec; /* 1, 2 or 4 */
    ptx_mod space;
} statement;

/* ---- the mnemonic */

static ptx_type draw_type(draws *d, uint32_t allowed) {
    unsigned count = (unsigned)__builtin_popcount(allowed), pick = draw(d, count);
    for (unsigned t = 0; t < PTX_T_COUNT; t++)
        if (allowed >> t & 1 && pick-- == 0)
            return (ptx_type)t;
    return PTX_T_none;
}

static void add_modifier(ev_str *s, draws *d, ptx_group group, statement *st) {
    unsigned count = 0;
    for (unsigned m = 1; m < PTX_M_COUNT; m++)
        count += ptx_mod_group((ptx_mod)m) == group;
    unsigned pick = draw(d, count);
    for (unsigned m = 1; m < PTX_M_COUNT; m++) {
        if (ptx_mod_group((ptx_mod)m) != group || pick--)
            continue;
        ev_str_printf(s, ".%s", ptx_mod_text((ptx_mod)m));
        if (group == PTX_G_space)
            st->space = (ptx_mod)m;
        if (group == PTX_G_vec)
            st->vec = m == PTX_M_V4 ? 4 : 2;
        return;
    }
}

static void add_mnemonic(ev_str *s, draws *d, statement *st) {
    ev_str_append(s, st->op->name);
    for (const char *item = st->op->format; *item;) {
        size_t length = strcspn(item, " ");
        bool optional = item[length - 1] == '?';
        size_t bare = length - optional;
        ptx_group group;
        if (optional && draw(d, 3) == 0) {
            /* left out */
        } else if (bare == 1 && (*item == 'T' || *item == 'U')) {
            ev_str_printf(s, ".%s", ptx_type_name(*item == 'T' ? st->t : st->u));
        } else if (*item == '.') {
            ev_str_append_n(s, item, bare);
        } else if (ptx_group_find(item, bare, &group)) {
            add_modifier(s, d, group, st);
        }
        item += length + (item[length] == ' ');
    }
}

/* ---- operands */

static void add_register(ev_str *s, draws *d, unsigned bits, bool is_float) {
    if (bits == 1)
        ev_str_printf(s, "%%p%u", draw(d, 4));
    else if (bits <= 16)
        ev_str_printf(s, "%%h%u", draw(d, 4));
    else if (bits == 32 && is_float)
        ev_str_printf(s, "%%f%u", draw(d, 4));
    else if (bits == 32)
        ev_str_printf(s, "%%r%u", draw(d, 6));
    else if (is_float)
        ev_str_printf(s, "%%e%u", draw(d, 2));
    else
        ev_str_printf(s, "%%d%u", draw(d, 4));
}

static void add_literal(ev_str *s, draws *d, ptx_type t) {
    static const char *const integers[] = {"0",  "1",          "2",  "-1",    "31", "32",
                                           "33", "2147483647", "64", "65535", "7",  "0x80000000"};
    static const char *const f32[] = {"0f00000000", "0f3F800000", "0f80000001",
                                      "0f7F800000", "0f7FC00001", "0fC0490FDB"};
    static const char *const f64[] = {"0d0000000000000000", "0d3FF0000000000000",
                                      "0d7FF8000000000000", "0dFFEFFFFFFFFFFFFF"};
    if (ptx_type_kind(t) != 'F')
        ev_str_append(s, integers[draw(d, sizeof integers / sizeof *integers)]);
    else if (ptx_type_bits(t) == 64)
        ev_str_append(s, f64[draw(d, sizeof f64 / sizeof *f64)]);
    else
        ev_str_append(s, f32[draw(d, sizeof f32 / sizeof *f32)]);
}

static void add_source(ev_str *s, draws *d, ptx_type t, unsigned bits) {
    static const char *const special[] = {"%tid.x",       "%laneid", "%ctaid.x",
                                          "%lanemask_lt", "%clock",  "WARP_SZ"};
    unsigned how = draw(d, 8);
    if (how == 7)
        add_literal(s, d, t);
    else if (how == 6 && bits == 32 && ptx_type_kind(t) != 'F')
        ev_str_append(s, special[draw(d, sizeof special / sizeof *special)]);
    else
        add_register(s, d, bits, ptx_type_kind(t) == 'F');
}

static void add_address(ev_str *s, draws *d, const statement *st) {
    static const char *const global[] = {"%in", "%out", "%both", "table"};
    static const char *const generic[] = {"%in", "%out", "%both", "%d1"};
    static const int offsets[] = {0, 0, 0, 4, 8, 16, -4, 2, 320, 1, 64, -320};
    const char *base = generic[draw(d, 4)];
    if (st->space == PTX_M_GLOBAL)
        base = global[draw(d, 4)];
    else if (st->space == PTX_M_SHARED || st->space == PTX_M_SHARED_CTA)
        base = draw(d, 3) ? "%shared" : "s";
    else if (st->space == PTX_M_LOCAL)
        base = draw(d, 3) ? "%local" : "l";
    else if (st->space == PTX_M_CONST)
        base = "fixed";
    else if (st->space == PTX_M_PARAM)
        base = draw(d, 2) ? "in" : "both";
    ev_str_printf(s, "[%s%+d]", base, offsets[draw(d, sizeof offsets / sizeof *offsets)]);
}

static void add_vector(ev_str *s, draws *d, const statement *st, bool source) {
    unsigned bits = ptx_type_bits(st->t);
    bool is_float = ptx_type_kind(st->t) == 'F';
    ev_str_append(s, st->vec > 1 ? "{" : "");
    for (unsigned i = 0; i < st->vec; i++) {
        ev_str_append(s, i ? ", " : "");
        if (source)
            add_source(s, d, st->t, bits);
        else
            add_register(s, d, bits, is_float);
    }
    ev_str_append(s, st->vec > 1 ? "}" : "");
}

/* Counts, lanes and masks, where a small number is worth more than a register. */
static void add_small(ev_str *s, draws *d) {
    static const char *const small[] = {"-1", "0", "1", "31", "0xffff", "5", "32", "16"};
    if (draw(d, 3))
        ev_str_append(s, small[draw(d, sizeof small / sizeof *small)]);
    else
        add_register(s, d, 32, false);
}

static void add_operand(ev_str *s, draws *d, const statement *st, char letter) {
    bool t_float = ptx_type_kind(st->t) == 'F', u_float = ptx_type_kind(st->u) == 'F';
    unsigned t_bits = ptx_type_bits(st->t), u_bits = ptx_type_bits(st->u);
    switch (letter) {
    case 'd':
        add_register(s, d, t_bits, t_float);
        return;
    case 'D':
        add_register(s, d, u_bits, u_float);
        return;
    case 'w':
        add_register(s, d, t_bits * 2, false);
        return;
    case 'U':
        add_register(s, d, 32, false);
        return;
    case 's':
        add_source(s, d, st->t, t_bits);
        return;
    case 'S':
        add_source(s, d, st->u, u_bits);
        return;
    case 'W':
        add_register(s, d, t_bits * 2, false);
        return;
    case 'u':
        add_small(s, d);
        return;
    case 'q':
        ev_str_append(s, chance(d, 3) ? "!" : "");
        add_register(s, d, 1, false);
        return;
    case 'p':
        add_register(s, d, 1, false);
        return;
    case 'm':
        add_address(s, d, st);
        return;
    case 'v':
    case 'V':
        add_vector(s, d, st, letter == 'V');
        return;
    case 'i':
        ev_str_printf(s, "%u", draw(d, 256));
        return;
    case 't':
        ev_str_printf(s, "L%u", draw(d, 4));
        return;
    default: /* 'g' and letters of new rows: an address, or what it may be */
        ev_str_append(s, chance(d, 2) ? "%both" : "%shared");
    }
}

static void add_operands(ev_str *s, draws *d, const statement *st) {
    bool first = true;
    for (const char *p = st->op->pattern; *p;) {
        bool piped = *p == '|';
        p += *p == ',' || piped;
        char letter = *p++;
        bool optional = *p == '?';
        p += optional;
        if (optional && draw(d, 2) == 0)
            continue;
        const char *between = piped ? "|" : ", ";
        ev_str_append(s, first ? " " : between);
        add_operand(s, d, st, letter);
        first = false;
    }
}

/* ---- statements */

static void add_instruction(ev_str *s, draws *d) {
    statement st = {.op = ptx_op_get(draw(d, PTX_OP_COUNT)), .vec = 1};
    if (*st.op->name == '(' || strcmp(st.op->name, "call") == 0) {
        ev_str_append(s, "{ .param .b32 a; st.param.b32 [a], %r3; .param .b32 b; "
                         "call.uni (b), twice, (a); ld.param.b32 %r5, [b]; }");
        return;
    }
    st.t = draw_type(d, st.op->types);
    st.u = draw_type(d, st.op->types2);
    if (chance(d, 5))
        ev_str_printf(s, "@%s%%p%u ", chance(d, 3) ? "!" : "", draw(d, 4));
    add_mnemonic(s, d, &st);
    add_operands(s, d, &st);
    ev_str_char(s, ';');
}

kernel_text kernel_text_make(const uint8_t *data, size_t size) {
    draws d = {data, size};
    kernel_text k = {.head = EV_STR_EMPTY};
    ev_str_append(&k.head, head);
    size_t most = 1 + draw(&d, KERNEL_MOST);
    unsigned labels = 0;
    while (k.count < most) {
        ev_str s = EV_STR_EMPTY;
        if (labels < 4 && chance(&d, 8))
            ev_str_printf(&s, "L%u:", labels++);
        else
            add_instruction(&s, &d);
        k.lines[k.count++] = ev_str_take(&s);
    }
    for (; labels < 4; labels++) {
        ev_str s = EV_STR_EMPTY;
        ev_str_printf(&s, "L%u:", labels);
        k.lines[k.count++] = ev_str_take(&s);
    }
    return k;
}

void kernel_text_free(kernel_text *k) {
    ev_str_free(&k->head);
    for (size_t i = 0; i < k->count; i++)
        free(k->lines[i]);
}

ev_str kernel_text_join(const kernel_text *k) {
    ev_str s = EV_STR_EMPTY;
    ev_str_append(&s, ev_str_text(&k->head));
    for (size_t i = 0; i < k->count; i++)
        ev_str_printf(&s, "%s\n", k->left_out[i] || !k->lines[i] ? "" : k->lines[i]);
    ev_str_append(&s, "ret;\n}\n");
    return s;
}

unsigned kernel_text_first_line(const kernel_text *k) {
    unsigned line = 1;
    for (const char *p = ev_str_text(&k->head); *p; p++)
        line += *p == '\n';
    return line;
}
