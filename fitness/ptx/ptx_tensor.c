/* Matrix instructions as the loader sees them: how many registers each operand has, and the facts
 * of shape and layout that the executor wants beside the slots. */
#include "fitness/ptx/ptx_load.h"

#include <string.h>

ptx_tile ptx_tile_of(ptx_mod mod) {
    unsigned size[3] = {0};
    int k = -1;
    for (const char *c = ptx_mod_text(mod); *c; c++)
        if (*c >= '0' && *c <= '9')
            size[k] = size[k] * 10 + (unsigned)(*c - '0');
        else
            k++;
    return (ptx_tile){.m = (uint16_t)size[0], .n = (uint16_t)size[1], .k = (uint16_t)size[2]};
}

static bool is_sum_type(ptx_type t) {
    return t == PTX_T_f32 || t == PTX_T_s32;
}

/* Type of the elements of operand 'A', 'B', 'C' or 'X' (the result). */
static ptx_type element_type(const ptx_match *m, char letter) {
    ptx_type t = (ptx_type)m->t, u = (ptx_type)m->u;
    bool factor = letter == 'A' || letter == 'B';
    switch (ptx_op_get(m->row)->shape) {
    case PTX_S_MMA_QUADS:
    case PTX_S_MMA_F16:
        if (factor)
            return PTX_T_f16;
        if (letter == 'C' && u != PTX_T_none)
            return u;
        return t;
    case PTX_S_MMA_BF16:
        return factor ? PTX_T_bf16 : t;
    case PTX_S_MMA_TF32:
        return factor ? PTX_T_tf32 : t;
    case PTX_S_MMA_INT:
    case PTX_S_MMA_BITS:
        if (!factor)
            return PTX_T_s32;
        if (letter == 'B' && u != PTX_T_none)
            return u;
        return t;
    default:
        return t;
    }
}

/* Which of A, B and C a load or store moves; what stands in the pattern is only its place. */
static char moved_matrix(const ptx_match *m) {
    if (m->mod[PTX_G_ab] == PTX_M_AB_A)
        return 'A';
    if (m->mod[PTX_G_ab] == PTX_M_AB_B)
        return 'B';
    return 'C';
}

static unsigned elements_of(ptx_tile s, char letter) {
    if (letter == 'A')
        return (unsigned)s.m * s.k;
    if (letter == 'B')
        return (unsigned)s.k * s.n;
    return (unsigned)s.m * s.n;
}

static bool is_wmma(const ptx_match *m) {
    return strcmp(ptx_op_get(m->row)->name, "wmma") == 0;
}

static unsigned matrix_number(const ptx_match *m) {
    uint8_t x = m->mod[PTX_G_number];
    if (x == PTX_M_X1)
        return 1;
    if (x == PTX_M_X2)
        return 2;
    return 4;
}

ptx_fragment ptx_fragment_of(const ptx_match *m, char letter) {
    uint8_t shape = ptx_op_get(m->row)->shape;
    if (shape == PTX_S_LDMATRIX || shape == PTX_S_STMATRIX)
        return (ptx_fragment){.count = matrix_number(m), .type = PTX_T_b32};
    if (shape == PTX_S_WMMA_LOAD || shape == PTX_S_WMMA_STORE)
        letter = moved_matrix(m);
    ptx_type t = element_type(m, letter);
    ptx_tile s = ptx_tile_of((ptx_mod)m->mod[PTX_G_tile]);
    unsigned bits = t == PTX_T_f64 ? 64 : 32;
    unsigned products = shape == PTX_S_MMA_QUADS ? 4 : 1;
    unsigned count = products * elements_of(s, letter) * ptx_type_bits(t) / 32 / bits;
    if (is_wmma(m) && t == PTX_T_f16 && (letter == 'A' || letter == 'B'))
        count = 8; /* all shapes alike: the smaller matrices stand there several times */
    ptx_type reg = PTX_T_b32;
    if (bits == 64)
        reg = PTX_T_f64;
    else if (is_sum_type(t))
        reg = t;
    return (ptx_fragment){.count = count, .type = reg};
}

/* What has no column in the table. */
static bool check_forms(ptx_loader *L, const ptx_match *m, const char *at) {
    if (is_wmma(m) && !m->mod[PTX_G_aligned] && L->m->version >= 63)
        return ptx_fail_at(L, at, "found wmma without .aligned; expected it since version 6.3");
    bool small = m->mod[PTX_G_ab] && ptx_type_bits((ptx_type)m->t) < 8;
    uint8_t needed = m->mod[PTX_G_ab] == PTX_M_AB_A ? PTX_M_ROW : PTX_M_COL;
    if (small && m->mod[PTX_G_layout] != needed)
        return ptx_fail_at(L, at, "found the layout .%s for elements of .%s; expected .%s",
                           ptx_mod_text((ptx_mod)m->mod[PTX_G_layout]),
                           ptx_type_name((ptx_type)m->t), ptx_mod_text((ptx_mod)needed));
    return true;
}

bool ptx_tensor_prepare(ptx_loader *L, const ptx_match *m, const char *at, ptx_insn *in) {
    uint8_t shape = ptx_op_get(m->row)->shape;
    if (!check_forms(L, m, at))
        return false;
    in->op = m->mod[PTX_G_tile];
    in->sat = m->mod[PTX_G_satfinite] != 0;
    in->target = 0;
    if (m->mod[PTX_G_layout] == PTX_M_COL || m->mod[PTX_G_trans])
        in->target |= PTX_TENSOR_COL;
    if (m->mod[PTX_G_blayout] == PTX_M_BCOL)
        in->target |= PTX_TENSOR_BCOL;
    char letter = moved_matrix(m);
    if (shape == PTX_S_WMMA_LOAD || shape == PTX_S_WMMA_STORE) {
        if (letter == 'A')
            in->target |= PTX_TENSOR_A;
        else if (letter == 'B')
            in->target |= PTX_TENSOR_B;
        ptx_tile s = ptx_tile_of((ptx_mod)m->mod[PTX_G_tile]);
        in->bytes = (uint8_t)(elements_of(s, letter) * ptx_type_bits((ptx_type)m->t) / 8 / 32);
    }
    if (shape == PTX_S_LDMATRIX || shape == PTX_S_STMATRIX)
        in->bytes = (uint8_t)(4 * matrix_number(m));
    return true;
}

bool ptx_tensor_finish(ptx_loader *L, const ptx_match *m, const char *at, ptx_insn *in) {
    uint8_t shape = ptx_op_get(m->row)->shape;
    bool rows = shape == PTX_S_LDMATRIX || shape == PTX_S_STMATRIX;
    bool moves = rows || shape == PTX_S_WMMA_LOAD || shape == PTX_S_WMMA_STORE;
    if (moves && in->space != VM_SPACE_GENERIC && in->space != VM_SPACE_SHARED &&
        (rows || in->space != VM_SPACE_GLOBAL))
        return ptx_fail_at(L, at, "found another space; expected %s",
                           rows ? ".shared" : ".global or .shared");
    bool stores = shape == PTX_S_WMMA_STORE;
    in->c = rows ? matrix_number(m) : ptx_fragment_of(m, stores ? 'A' : 'X').count;
    return true;
}
