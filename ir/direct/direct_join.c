/* Vectorisation of the direct emitter: neighbouring loads or stores of a block become one vector
 * access, as in LLVM's LoadStoreVectorizer.
 *
 * `find_chain` collects accesses off the same base within a window, and stops at an instruction
 * that may touch the same memory. `sort_by_offset` orders them, and `run_from` takes groups of 4
 * or 2 neighbours if the group has at most 16 bytes and the lowest access is aligned to the size
 * of the group (PTX ISA, ld and st: vectors). A joined load stands at the place of the first load,
 * a joined store at the place of the last store. */
#include "ir/direct/direct_internal.h"

enum { WINDOW = 96, MOST_JOINED = 64 };

typedef struct chain {
    uint32_t insns[MOST_JOINED]; /* as they stand */
    uint32_t count;
} chain;

static const direct_operand *address_of(const ir_direct *d, const direct_insn *insn) {
    return &d->operands.items[insn->first + insn->results];
}

static int64_t offset_of(const ir_direct *d, uint32_t insn) {
    return address_of(d, &d->insns.items[insn])->imm;
}

/* Whether `b` is an access like `a`, at another offset from the same base. */
static bool is_alike(const ir_direct *d, const direct_insn *a, const direct_insn *b) {
    if (b->bytes != a->bytes || b->shape != a->shape || b->type != a->type ||
        b->cached != a->cached || b->bytes == 0)
        return false;
    const direct_operand *x = address_of(d, a), *y = address_of(d, b);
    return x->kind == y->kind && x->reg == y->reg && x->space == y->space;
}

/* Whether `b` may not be passed by accesses like `a`. */
static bool stands_between(const ir_direct *d, const direct_insn *a, const direct_insn *b) {
    bool reads = b->shape == DIRECT_LOAD && !b->needed;
    if (!b->needed && !reads)
        return false; /* `b` only computes */
    if (reads && a->shape == DIRECT_LOAD)
        return false;
    if (b->shape != DIRECT_LOAD && b->shape != DIRECT_STORE)
        return true;
    uint8_t x = address_of(d, a)->space, y = address_of(d, b)->space;
    return x == y || x == 0 || y == 0;
}

static bool overlaps(const ir_direct *d, const chain *c, uint32_t insn) {
    int64_t bytes = d->insns.items[insn].bytes;
    for (uint32_t i = 0; i < c->count; i++) {
        int64_t apart = offset_of(d, insn) - offset_of(d, c->insns[i]);
        if (apart < bytes && apart > -bytes)
            return true;
    }
    return false;
}

static void find_chain(const ir_direct *d, uint32_t from, uint32_t end, chain *c) {
    const direct_insn *a = &d->insns.items[from];
    c->count = 0;
    c->insns[c->count++] = from;
    for (uint32_t i = from + 1; i < end && i < from + WINDOW && c->count < MOST_JOINED; i++) {
        const direct_insn *b = &d->insns.items[i];
        if (is_alike(d, a, b)) {
            if (!overlaps(d, c, i))
                c->insns[c->count++] = i;
            else if (a->shape == DIRECT_STORE)
                return;
        } else if (stands_between(d, a, b)) {
            return;
        }
    }
}

static void sort_by_offset(const ir_direct *d, chain *c) {
    for (uint32_t i = 1; i < c->count; i++) {
        uint32_t insn = c->insns[i], k = i;
        for (; k > 0 && offset_of(d, c->insns[k - 1]) > offset_of(d, insn); k--)
            c->insns[k] = c->insns[k - 1];
        c->insns[k] = insn;
    }
}

/* The number of accesses from the `at`th on that can be one access. */
static uint32_t run_from(const ir_direct *d, const chain *c, uint32_t at) {
    const direct_insn *lowest = &d->insns.items[c->insns[at]];
    for (uint32_t n = 4; n > 1; n /= 2) {
        uint32_t k = 1;
        while (k < n && at + k < c->count &&
               offset_of(d, c->insns[at + k]) ==
                   offset_of(d, c->insns[at]) + (int64_t)k * lowest->bytes)
            k++;
        if (k == n && n * lowest->bytes <= 16 && n * lowest->bytes <= lowest->align)
            return n;
    }
    return 1;
}

/* The joined instruction stands in the place of the first load, of the last store. */
static uint32_t place_of_run(const ir_direct *d, const uint32_t *insns, uint32_t count) {
    uint32_t place = insns[0];
    bool loads = d->insns.items[place].shape == DIRECT_LOAD;
    for (uint32_t i = 1; i < count; i++)
        if (loads ? insns[i] < place : insns[i] > place)
            place = insns[i];
    return place;
}

static void join_run(ir_direct *d, const uint32_t *insns, uint32_t count) {
    direct_insn lowest = d->insns.items[insns[0]];
    bool loads = lowest.shape == DIRECT_LOAD;
    direct_operand address = *address_of(d, &lowest), values[4];
    uint32_t place = place_of_run(d, insns, count);
    for (uint32_t i = 0; i < count; i++) {
        direct_insn *insn = &d->insns.items[insns[i]];
        values[i] = d->operands.items[insn->first + (loads ? 0 : 1)];
        insn->needed = false;
        insn->bytes = 0;
        if (loads)
            d->registers.items[values[i].reg].insn = place;
    }
    direct_insn joined = {
        .op = direct_access_name(d, loads ? "ld" : "st", &lowest, address.space, count),
        .first = d->operands.count,
        .results = (uint8_t)(loads ? count : 0),
        .sources = (uint8_t)(loads ? 1 : 1 + count),
        .shape = lowest.shape,
        .needed = !loads,
        .type = lowest.type};
    if (!loads)
        DIRECT_PUSH(d, d->operands, address);
    for (uint32_t i = 0; i < count; i++)
        DIRECT_PUSH(d, d->operands, values[i]);
    if (loads)
        DIRECT_PUSH(d, d->operands, address);
    d->insns.items[place] = joined;
}

void direct_join_accesses(ir_direct *d, uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end && d->status == EV_OK; i++) {
        if (d->insns.items[i].bytes == 0)
            continue;
        chain c = {.count = 0};
        find_chain(d, i, end, &c);
        sort_by_offset(d, &c);
        for (uint32_t at = 0, n; at < c.count; at += n) {
            n = run_from(d, &c, at);
            if (n > 1)
                join_run(d, c.insns + at, n);
        }
    }
}
