/* Which registers of an entry a thread may read before it has written them: only those need to be
 * zero when a warp takes over the frame of one that ended.
 *
 * Liveness at the entry's begin, by the usual backward data flow over bit sets (Aho et al.,
 * "Compilers", 9.2.5), a lane at a time: a write under a guard may not happen, so it ends nothing.
 * What is in doubt counts as read: predicates, all registers that a call names, and those that
 * lanes read of each other. */
#include "fitness/ptx/ptx_load.h"

#include <stdlib.h>

#define UNIT 64u /* bytes of a frame that are cleared together */

/* A straight line of code. */
typedef struct line {
    uint32_t first, end; /* pcs */
    uint32_t next[2];    /* lines; PTX_NONE: there is none */
} line;

typedef struct flow {
    const vm_module *m;
    const ptx_func *f;
    uint32_t *line_at; /* of each pc */
    line *lines;
    uint32_t line_count;
    size_t words;   /* 64-bit words of a set of the entry's registers */
    uint64_t *read; /* [line]: registers that may be read from its begin on before a write */
    uint64_t *ends; /* [line]: registers that the line writes at any rate before it reads them */
} flow;

static ptx_shape shape_at(const flow *w, uint32_t pc) {
    return (ptx_shape)ptx_op_get(w->m->code[pc].row)->shape;
}

static void set_add(const flow *w, uint64_t *set, uint32_t reg) {
    uint32_t r = reg - w->f->first_reg;
    if (reg != PTX_NONE)
        set[r / 64] |= UINT64_C(1) << (r % 64);
}

static void set_remove(const flow *w, uint64_t *set, uint32_t reg) {
    uint32_t r = reg - w->f->first_reg;
    if (reg != PTX_NONE)
        set[r / 64] &= ~(UINT64_C(1) << (r % 64));
}

static bool set_has(const flow *w, const uint64_t *set, uint32_t reg) {
    uint32_t r = reg - w->f->first_reg;
    return set[r / 64] >> (r % 64) & 1;
}

/* ---- lines */

static bool ends_line(ptx_shape shape) {
    return shape == PTX_S_BRA || shape == PTX_S_RET || shape == PTX_S_EXIT;
}

static uint32_t line_of(const flow *w, uint32_t pc) {
    return pc >= w->f->pub.first_pc && pc < w->f->pub.end_pc ? w->line_at[pc - w->f->pub.first_pc]
                                                             : PTX_NONE;
}

/* Marks where lines begin, then numbers them. */
static void cut(flow *w) {
    uint32_t first = w->f->pub.first_pc, count = w->f->pub.end_pc - first;
    w->line_at[0] = 1;
    for (uint32_t i = 0; i < count; i++) {
        ptx_shape shape = shape_at(w, first + i);
        uint32_t target = w->m->code[first + i].target - first;
        if (shape == PTX_S_BRA && target < count)
            w->line_at[target] = 1;
        if (ends_line(shape) && i + 1 < count)
            w->line_at[i + 1] = 1;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (w->line_at[i])
            w->lines[w->line_count++].first = first + i;
        w->line_at[i] = w->line_count - 1;
        w->lines[w->line_count - 1].end = first + i + 1;
    }
}

static void link_lines(flow *w) {
    for (uint32_t i = 0; i < w->line_count; i++) {
        line *l = &w->lines[i];
        const ptx_insn *last = &w->m->code[l->end - 1];
        ptx_shape shape = shape_at(w, l->end - 1);
        bool falls = !ends_line(shape) || last->guard != PTX_NONE;
        l->next[0] = falls ? line_of(w, l->end) : PTX_NONE;
        l->next[1] = shape == PTX_S_BRA ? line_of(w, last->target) : PTX_NONE;
    }
}

/* ---- flow */

/* One instruction in front of a line's end: `read` before a write, and `ends`, in what follows. */
static void step_back(const flow *w, uint32_t pc, uint64_t *read, uint64_t *ends) {
    const ptx_cold *cold = &w->m->cold[pc];
    const uint16_t *uses = w->m->touched + cold->touched, *defs = uses + cold->use_count;
    bool always = w->m->code[pc].guard == PTX_NONE && shape_at(w, pc) != PTX_S_CALL;
    for (unsigned i = 0; i < cold->def_count && always; i++) {
        set_remove(w, read, defs[i]);
        set_add(w, ends, defs[i]);
    }
    for (unsigned i = 0; i < cold->use_count; i++) {
        set_add(w, read, uses[i]);
        set_remove(w, ends, uses[i]);
    }
}

static void sum_up_lines(const flow *w) {
    for (uint32_t i = 0; i < w->line_count; i++) {
        uint64_t *read = w->read + i * w->words, *ends = w->ends + i * w->words;
        for (uint32_t pc = w->lines[i].end; pc-- > w->lines[i].first;)
            step_back(w, pc, read, ends);
    }
}

/* Whether more is read from the line's begin on than was known. */
static bool look_at_line(const flow *w, uint32_t index) {
    const line *l = &w->lines[index];
    uint64_t *known = w->read + index * w->words, more = 0;
    const uint64_t *ends = w->ends + index * w->words;
    for (unsigned n = 0; n < 2; n++) {
        if (l->next[n] == PTX_NONE)
            continue;
        const uint64_t *next = w->read + l->next[n] * w->words;
        for (size_t i = 0; i < w->words; i++) {
            more |= next[i] & ~ends[i] & ~known[i];
            known[i] |= next[i] & ~ends[i];
        }
    }
    return more != 0;
}

static void solve(const flow *w) {
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = w->line_count; i-- > 0;)
            more |= look_at_line(w, i);
    }
}

/* ---- what is kept */

/* A call may read and write more than an instruction can list. */
static void add_call(const flow *w, const ptx_call *call, uint64_t *set) {
    for (size_t i = 0; i < call->arg_count; i++)
        set_add(w, set, call->args[i].reg);
    for (size_t i = 0; i < call->ret_count; i++)
        set_add(w, set, call->rets[i].reg);
    set_add(w, set, call->reg);
}

/* What one lane reads of another may be of a lane that was never there. */
static void add_doubtful(const flow *w, uint64_t *set) {
    for (uint32_t pc = w->f->pub.first_pc; pc < w->f->pub.end_pc; pc++) {
        const ptx_cold *cold = &w->m->cold[pc];
        ptx_shape shape = shape_at(w, pc);
        if (shape == PTX_S_CALL)
            add_call(w, &w->m->calls[w->m->code[pc].target], set);
        bool reads_lanes = ptx_shape_has((uint8_t)shape, PTX_SHAPE_LANES);
        for (unsigned i = 0; reads_lanes && i < cold->use_count; i++)
            set_add(w, set, w->m->touched[cold->touched + i]);
    }
}

static void keep(bool *kept, uint32_t slot, unsigned bits) {
    for (uint32_t at = slot; bits > 1 && at < slot + (bits == 64 ? 256u : 128u); at += UNIT)
        kept[at / UNIT] = true;
}

/* Units of the frame that the next warp's thread writes before it reads them, or that stay. */
static void mark_kept(const flow *w, bool *kept) {
    const ptx_func *f = w->f;
    for (uint32_t reg = f->first_reg; reg < f->end_reg; reg++)
        if (!set_has(w, w->read, reg))
            keep(kept, w->m->regs[reg].slot, w->m->regs[reg].bits);
    for (size_t i = 0; i < f->const_count; i++)
        keep(kept, f->consts[i].slot, f->consts[i].bits);
    for (size_t i = 0; i < f->sreg_count; i++)
        keep(kept, f->sregs[i].slot, ptx_sreg_bits(f->sregs[i].sreg));
}

static bool list_cleared(ptx_loader *L, ptx_func *f, const bool *kept) {
    size_t units = f->frame_bytes / UNIT, count = 0;
    for (size_t i = 0; i < units; i++)
        count += !kept[i] && (i == 0 || kept[i - 1]);
    ptx_stretch *list = EV_NEW_ARRAY(L->arena, ptx_stretch, count + 1);
    if (!list)
        return false;
    f->cleared = list;
    for (size_t i = 0; i < units; i++) {
        if (kept[i])
            continue;
        if (i == 0 || kept[i - 1])
            list[f->cleared_count++] = (ptx_stretch){.offset = (uint32_t)i * UNIT};
        list[f->cleared_count - 1].bytes += UNIT;
    }
    return true;
}

/* Whether to look at it at all: a jump through a table may go anywhere, and into a function comes
 * what its caller gives. */
static bool can_tell(const vm_module *m, const ptx_func *f) {
    for (uint32_t pc = f->pub.first_pc; pc < f->pub.end_pc; pc++)
        if (ptx_op_get(m->code[pc].row)->shape == PTX_S_BRX)
            return false;
    return f->entry && f->defined && f->pub.end_pc > f->pub.first_pc;
}

static bool make_room(flow *w) {
    size_t count = w->f->pub.end_pc - w->f->pub.first_pc;
    w->words = (w->f->end_reg - w->f->first_reg) / 64 + 1;
    w->line_at = calloc(count, sizeof *w->line_at);
    w->lines = calloc(count, sizeof *w->lines);
    if (!w->line_at || !w->lines)
        return false;
    cut(w);
    w->read = calloc(2 * w->words * w->line_count, sizeof *w->read);
    if (w->read)
        w->ends = w->read + w->line_count * w->words;
    return w->read != NULL;
}

static bool find_cleared(ptx_loader *L, ptx_func *f) {
    flow w = {.m = L->m, .f = f};
    bool *kept = calloc(f->frame_bytes / UNIT + 1, sizeof *kept);
    bool tells = can_tell(L->m, f), ok = kept && (!tells || make_room(&w));
    if (ok && tells) {
        link_lines(&w);
        sum_up_lines(&w);
        solve(&w);
        add_doubtful(&w, w.read);
        mark_kept(&w, kept);
    }
    ok = ok && list_cleared(L, f, kept);
    free(kept);
    free(w.line_at);
    free(w.lines);
    free(w.read);
    return ok;
}

bool ptx_find_cleared(ptx_loader *L) {
    for (size_t i = 0; i < L->m->func_count; i++)
        if (L->m->funcs[i].defined && !find_cleared(L, &L->m->funcs[i]))
            return !(L->oom = true);
    return true;
}
