/* Joins: accesses to shared memory that the assembler makes one access of eight or sixteen bytes.
 *
 * LLVM leaves `ld.shared.f32` at neighbouring addresses apart where it does not see an alignment.
 * The assembler joins them. What it joins was read from its output (ptxas 13.0, sm_75, and sm_86
 * for products with tiles):
 *
 * - loads of one straight line through one address register, whose words lie in the same aligned
 *   sixteen bytes, in any order and with gaps, if the register is known to be a multiple of
 * sixteen; in the same eight bytes, if of eight. Shared variables are multiples of sixteen,
 * whatever alignment they declare;
 * - stores likewise;
 * - no access to shared memory of the other kind, and no store through another register, is between
 *   them.
 *
 * Accesses to global memory stay apart: nothing is known of a parameter's alignment. The machine
 * executes each access by itself; the observer is told of the joined one's passes. */
#include "fitness/ptx/ptx_load.h"

#include <stdlib.h>
#include <string.h>

#define MOST_ZEROS 4 /* low bits of an address that are known to be 0: a multiple of 16 */
#define OPEN 32      /* joins that may get another member */

typedef struct window {
    uint32_t first; /* pc of its first access */
    uint32_t reg;   /* its address register; PTX_NONE: a variable, */
    const void *var;
    int64_t place; /* of the aligned bytes */
    uint32_t words;
} window;

typedef struct work {
    vm_module *m;
    uint8_t *zeros;  /* by register */
    uint8_t *begins; /* by pc: a branch goes there */
    window open[OPEN];
    unsigned count;
    bool stores; /* the open ones are stores */
} work;

/* ---- alignment ---- */

static uint8_t zeros_of_number(int64_t value) {
    unsigned zeros = value == 0 ? MOST_ZEROS : (unsigned)__builtin_ctzll((uint64_t)value);
    return (uint8_t)(zeros < MOST_ZEROS ? zeros : MOST_ZEROS);
}

static uint8_t zeros_of(const work *w, const ptx_operand *o) {
    if (o->kind == PTX_O_REG)
        return w->zeros[o->reg];
    if (o->kind == PTX_O_INT)
        return zeros_of_number(o->value);
    bool is_shared = o->kind == PTX_O_SYMBOL && o->var != NULL && o->var->space == VM_SPACE_SHARED;
    return is_shared ? zeros_of_number(o->value) : 0;
}

static uint8_t least(uint8_t a, uint8_t b) {
    return a < b ? a : b;
}

static uint8_t sum(unsigned a, unsigned b) {
    return (uint8_t)(a + b < MOST_ZEROS ? a + b : MOST_ZEROS);
}

static bool begins_with(const char *name, const char *prefix) {
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Of the result of an instruction with these sources. */
static uint8_t zeros_of_result(const work *w, const char *name, const ptx_operand *const *from,
                               unsigned count) {
    uint8_t z[3] = {0, 0, 0};
    for (unsigned i = 0; i < count && i < 3; i++)
        z[i] = zeros_of(w, from[i]);
    bool is_float = strstr(name, ".f") != NULL || strstr(name, ".hi") != NULL;
    if (is_float || count == 0 || count > 3)
        return 0;
    if (begins_with(name, "mov.") || begins_with(name, "cvt.") || begins_with(name, "cvta."))
        return count == 1 ? z[0] : 0;
    if (begins_with(name, "add.") || begins_with(name, "sub.") || begins_with(name, "or."))
        return count == 2 ? least(z[0], z[1]) : 0;
    if (begins_with(name, "shl.") && count == 2)
        return from[1]->kind == PTX_O_INT ? sum(z[0], (unsigned)from[1]->value & 63) : z[0];
    if (begins_with(name, "and.") && count == 2)
        return z[0] > z[1] ? z[0] : z[1];
    if (begins_with(name, "mul.") && count == 2)
        return sum(z[0], z[1]);
    if (begins_with(name, "mad.") && count == 3)
        return least(sum(z[0], z[1]), z[2]);
    return 0;
}

/* A result that is a list of registers is made of no sum. */
static void lower(const work *w, const ptx_operand *o, uint8_t zeros, bool *changed) {
    for (unsigned i = 0; o->kind == PTX_O_VECTOR && i < o->count; i++)
        lower(w, &o->items[i], 0, changed);
    if (o->kind != PTX_O_REG || w->zeros[o->reg] <= zeros)
        return;
    w->zeros[o->reg] = zeros;
    *changed = true;
}

static void find_zeros_of(const work *w, uint32_t pc, bool *changed) {
    const ptx_cold *cold = &w->m->cold[pc];
    const ptx_operand *from[4] = {NULL};
    unsigned count = 0;
    for (unsigned i = 0; i < cold->operand_count; i++)
        if ((cold->written >> i & 1) == 0 && count < 4)
            from[count++] = &cold->operands[i];
    uint8_t zeros = count < 4 ? zeros_of_result(w, cold->name, from, count) : 0;
    for (unsigned i = 0; i < cold->operand_count; i++)
        if (cold->written >> i & 1)
            lower(w, &cold->operands[i], zeros, changed);
}

/* All that is not seen to be otherwise is taken as aligned at first, so that a register that a loop
 * adds to is as aligned as what it adds. */
static void find_zeros(const work *w) {
    memset(w->zeros, MOST_ZEROS, w->m->reg_count);
    for (size_t i = 0; i < w->m->call_count; i++)
        for (size_t k = 0; k < w->m->calls[i].ret_count; k++)
            if (w->m->calls[i].rets[k].reg != PTX_NONE)
                w->zeros[w->m->calls[i].rets[k].reg] = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t pc = 0; pc < w->m->insn_count; pc++)
            find_zeros_of(w, pc, &changed);
    }
}

/* ---- joining ---- */

static const ptx_operand *address_of(const ptx_cold *cold) {
    for (unsigned i = 0; i < cold->operand_count; i++)
        if (cold->operands[i].kind == PTX_O_ADDRESS)
            return &cold->operands[i];
    return NULL;
}

/* A plain access to shared memory by words, and fewer than are joined. */
static bool can_join(const ptx_insn *in, uint8_t shape) {
    return (shape == PTX_S_LD || shape == PTX_S_ST) && in->space == VM_SPACE_SHARED &&
           in->bytes == 4 && in->count <= 2 && !in->strong && in->guard == PTX_NONE;
}

/* The access at pc joins an open window, or opens one. */
static void join(work *w, uint32_t pc) {
    ptx_insn *in = &w->m->code[pc];
    const ptx_operand *o = address_of(&w->m->cold[pc]);
    if (o == NULL)
        return;
    uint8_t zeros = o->reg == PTX_NONE ? MOST_ZEROS : w->zeros[o->reg];
    if (zeros < 3 || o->value % 4 != 0)
        return;
    uint32_t words = zeros == 3 ? 2 : 4, count = in->count > 0 ? in->count : 1;
    uint32_t word = (uint32_t)(o->value / 4) % words;
    window is = {pc, o->reg, o->var, (o->value - 4 * (int64_t)word), 0};
    if (o->value < 0 || word + count > words)
        return;
    is.words = ((1u << count) - 1) << word;
    for (unsigned i = 0; i < w->count; i++) {
        window *k = &w->open[i];
        if (k->reg != is.reg || k->var != is.var || k->place != is.place || (k->words & is.words))
            continue;
        k->words |= is.words;
        in->joins = 1;
        bool half = k->words == (k->words & 3) || k->words == (k->words & 12);
        w->m->code[k->first].joins = half ? 2 : 4;
        return;
    }
    if (w->count < OPEN)
        w->open[w->count++] = is;
}

/* What goes through a register that is written anew is another place. */
static void forget_written(work *w, const ptx_cold *cold) {
    for (unsigned i = 0; i < cold->operand_count; i++) {
        const ptx_operand *o = &cold->operands[i];
        if ((cold->written >> i & 1) == 0 || o->kind != PTX_O_REG)
            continue;
        for (unsigned k = w->count; k-- > 0;)
            if (w->open[k].reg == o->reg)
                w->open[k] = w->open[--w->count];
    }
}

/* Stores through another register, and accesses of the other kind, end what is open. */
static void close_others(work *w, uint32_t pc, bool is_store) {
    const ptx_operand *o = address_of(&w->m->cold[pc]);
    bool other = w->stores != is_store;
    for (unsigned i = 0; i < w->count && is_store && o != NULL; i++)
        other |= w->open[i].reg != o->reg || w->open[i].var != o->var;
    w->count = other ? 0 : w->count;
    w->stores = is_store;
}

static bool touches_shared(const ptx_insn *in, uint8_t shape) {
    bool is_access = shape == PTX_S_LD || shape == PTX_S_ST || shape == PTX_S_ATOM ||
                     shape == PTX_S_RED || shape == PTX_S_LDMATRIX || shape == PTX_S_STMATRIX ||
                     shape == PTX_S_WMMA_LOAD || shape == PTX_S_WMMA_STORE ||
                     shape == PTX_S_CPASYNC;
    return is_access && (in->space == VM_SPACE_SHARED || in->space == VM_SPACE_GENERIC ||
                         shape == PTX_S_CPASYNC);
}

static void join_at(work *w, uint32_t pc) {
    const ptx_insn *in = &w->m->code[pc];
    uint8_t shape = ptx_op_get(in->row)->shape;
    if (!ptx_shape_has(shape, PTX_SHAPE_LINE) || w->begins[pc])
        w->count = 0;
    if (can_join(in, shape)) {
        close_others(w, pc, shape == PTX_S_ST);
        join(w, pc);
    } else if (touches_shared(in, shape)) {
        w->count = 0;
    }
    if (w->count > 0)
        forget_written(w, &w->m->cold[pc]);
}

bool ptx_join_shared(vm_module *m) {
    work w = {
        .m = m, .zeros = malloc(m->reg_count + (size_t)1), .begins = calloc(m->insn_count + 1, 1)};
    bool made = w.zeros != NULL && w.begins != NULL;
    if (made) {
        bool is_plain = true;
        for (uint32_t pc = 0; pc < m->insn_count; pc++) {
            uint8_t shape = ptx_op_get(m->code[pc].row)->shape;
            is_plain &= shape != PTX_S_BRX;
            if (shape == PTX_S_BRA && m->code[pc].target < m->insn_count)
                w.begins[m->code[pc].target] = 1;
        }
        find_zeros(&w);
        for (uint32_t pc = 0; is_plain && pc < m->insn_count; pc++)
            join_at(&w, pc);
    }
    free(w.zeros);
    free(w.begins);
    return made;
}
