/* Finds loads and stores that go through an address register which nothing has changed since an
 * access before them, in the same straight line: the warp need not look at its lanes again. Only
 * the offset in the instruction differs, as in an unrolled loop. */
#include "fitness/ptx/ptx_load.h"

/* The first of some accesses through one register. */
typedef struct leader {
    uint32_t pc; /* PTX_NONE: none */
    uint32_t slot;
    uint8_t space, bytes;
} leader;

typedef struct line {
    vm_module *m;
    leader leaders[PTX_LOOKS]; /* [0] stays empty: no look */
    unsigned next;
    unsigned count; /* leaders since all were forgotten */
} line;

static void forget_all(line *l) {
    for (unsigned i = 0; i < PTX_LOOKS; i++)
        l->leaders[i].pc = PTX_NONE;
    l->count = 0;
}

static void forget(line *l, uint32_t slot) {
    for (unsigned i = 0; i < PTX_LOOKS; i++)
        if (l->leaders[i].slot == slot)
            l->leaders[i].pc = PTX_NONE;
}

static bool keeps_look(const ptx_insn *in, uint8_t shape) {
    return (shape == PTX_S_LD || shape == PTX_S_ST) && in->address_bits == 64 &&
           in->a != PTX_NONE && (in->space == VM_SPACE_GLOBAL || in->space == VM_SPACE_SHARED);
}

static void follow_or_lead(line *l, uint32_t pc) {
    ptx_insn *in = &l->m->code[pc];
    uint8_t bytes = (uint8_t)(in->bytes * in->count);
    for (unsigned i = 1; i < PTX_LOOKS; i++) {
        const leader *k = &l->leaders[i];
        if (k->pc == PTX_NONE || k->slot != in->a || k->space != in->space || k->bytes != bytes)
            continue;
        l->m->code[k->pc].look = (uint8_t)i;
        in->look = (uint8_t)i;
        in->looked = 1;
        return;
    }
    if (in->guard != PTX_NONE)
        return; /* it may not come to look */
    l->next = l->next % (PTX_LOOKS - 1) + 1;
    l->count++;
    l->leaders[l->next] = (leader){pc, in->a, in->space, bytes};
}

static void forget_results(line *l, const ptx_insn *in, uint8_t shape) {
    if (shape == PTX_S_ST)
        return;
    forget(l, in->d);
    forget(l, in->d2);
    for (unsigned i = 0; i < 4; i++)
        forget(l, in->v[i]);
}

void ptx_share_looks(vm_module *m, uint32_t first, uint32_t end) {
    line l = {.m = m};
    forget_all(&l);
    for (uint32_t pc = first; pc < end; pc++) {
        const ptx_insn *in = &m->code[pc];
        uint8_t shape = ptx_op_get(in->row)->shape;
        if (!ptx_shape_has(shape, PTX_SHAPE_LINE)) {
            if (l.count > 0)
                forget_all(&l);
            continue;
        }
        if (keeps_look(in, shape))
            follow_or_lead(&l, pc);
        if (l.count > 0)
            forget_results(&l, in, shape);
    }
}
