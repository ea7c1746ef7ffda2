/* Blocks: the straight lines of a module's code, and what must keep its order in each.
 *
 * The order that is kept is that of every dependence by register (after a write, before a write)
 * and by memory: stores, atomics and volatile accesses keep their place among the accesses of a
 * space that they may overlap; barriers and branches end a block. No further than
 * MODEL_WINDOW_MOST instructions is looked; who looks less far masks what is found. */
#include "fitness/model/blocks.h"
#include "fitness/model/insns.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW MODEL_WINDOW_MOST

enum { SPACES = 3 };

/* An operand, and the one before it of the same register: its number among all operands, plus 1. */
typedef struct mention {
    uint32_t pc, earlier;
} mention;

typedef struct work {
    const model_insns *insns;
    model_link *links;             /* by pc */
    mention *mentions;             /* by operand */
    uint32_t *last_use, *last_def; /* by register: the last mention so far, plus 1 */
    uint32_t first, end;
    /* Bit d - 1: the instruction d before the one at hand touched the space. */
    uint64_t read[SPACES], wrote[SPACES];
} work;

/* ---- dependences ---- */

/* Instructions of the block and the window that the list has, by how far before pc they are. */
static uint64_t mentioned(const work *w, uint32_t last, uint32_t pc) {
    uint64_t bits = 0;
    while (last != 0) {
        const mention *m = &w->mentions[last - 1];
        if (m->pc < w->first || pc - m->pc >= WINDOW)
            break;
        assert(m->pc < pc);
        bits |= UINT64_C(1) << (pc - m->pc - 1);
        last = m->earlier;
    }
    return bits;
}

static void mention_it(const work *w, uint32_t *last, uint32_t operand, uint32_t pc) {
    w->mentions[operand] = (mention){pc, *last};
    *last = operand + 1;
}

/* Those whose accesses must keep their order with those of pc, which are noted. */
static uint64_t ordered_before(work *w, const model_insn *insn) {
    uint64_t bits = 0;
    for (unsigned s = 0; s < SPACES; s++) {
        uint64_t reads = insn->reads >> s & 1, writes = insn->writes >> s & 1;
        bits |= reads | writes ? w->wrote[s] : 0;
        bits |= writes ? w->read[s] : 0;
        w->read[s] = w->read[s] << 1 | reads;
        w->wrote[s] = w->wrote[s] << 1 | writes;
    }
    return bits & ((UINT64_C(1) << (WINDOW - 1)) - 1);
}

static void find_dependences(work *w, uint32_t pc) {
    const model_insn *insn = &w->insns->insns[pc];
    const uint16_t *operands = w->insns->operands;
    uint32_t use = insn->operands, def = use + insn->use_count, end = def + insn->def_count;
    uint64_t fed = 0, before = ordered_before(w, insn);
    for (uint32_t o = use; o < def; o++)
        fed |= mentioned(w, w->last_def[operands[o]], pc);
    for (uint32_t o = def; o < end; o++)
        before |=
            mentioned(w, w->last_def[operands[o]], pc) | mentioned(w, w->last_use[operands[o]], pc);
    before |= fed;
    for (uint32_t o = use; o < end; o++)
        mention_it(w, (o < def ? w->last_use : w->last_def) + operands[o], o, pc);
    w->links[pc].before = before;
    for (uint64_t left = before; left != 0; left &= left - 1) {
        model_link *early = &w->links[pc - (uint32_t)__builtin_ctzll(left) - 1];
        early->after |= left & -left;
        early->feeds |= left & -left & fed;
    }
}

/* What ends a block stays at its end: all that was before it is issued before it. */
static void hold_end(const work *w) {
    model_link *last = &w->links[w->end - 1];
    for (uint32_t d = 1; d < WINDOW && w->end - 1 - w->first >= d; d++) {
        last->before |= UINT64_C(1) << (d - 1);
        (last - d)->after |= UINT64_C(1) << (d - 1);
    }
}

/* ---- blocks ---- */

/* Marks where blocks begin. */
static void mark_begins(const vm_module *module, const model_insns *insns, uint8_t *begins) {
    for (uint32_t pc = 0; pc < insns->count; pc++) {
        if (insns->insns[pc].target < insns->count)
            begins[insns->insns[pc].target] = 1;
        begins[pc + 1] |= insns->insns[pc].ends_block;
    }
    for (size_t i = 0; i < vm_module_entry_count(module); i++)
        begins[vm_module_entry(module, i)->first_pc] = 1;
}

static void cut(work *w, const uint8_t *begins, model_blocks *out) {
    uint32_t count = w->insns->count;
    for (uint32_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && !begins[end]; end++) {
        }
        out->block_end[first] = end;
        for (uint32_t pc = first; pc < end; pc++)
            out->next[pc] = end;
        w->first = first;
        w->end = end;
        memset(w->read, 0, sizeof w->read);
        memset(w->wrote, 0, sizeof w->wrote);
        for (uint32_t pc = first; pc < end; pc++)
            find_dependences(w, pc);
        if (w->insns->insns[end - 1].ends_block)
            hold_end(w);
    }
}

bool model_blocks_make(const vm_module *module, const model_insns *insns, model_blocks *out) {
    size_t count = (size_t)insns->count + 1, registers = (size_t)insns->register_count + 1;
    *out = (model_blocks){calloc(count, sizeof *out->block_end), calloc(count, sizeof *out->next),
                          calloc(count, sizeof *out->links)};
    uint8_t *begins = calloc(count, 1);
    work w = {.insns = insns,
              .links = out->links,
              .mentions = calloc(insns->operand_count + (size_t)1, sizeof *w.mentions),
              .last_use = calloc(registers, sizeof *w.last_use),
              .last_def = calloc(registers, sizeof *w.last_def)};
    bool made = out->block_end != NULL && out->next != NULL && out->links != NULL &&
                begins != NULL && w.mentions != NULL && w.last_use != NULL && w.last_def != NULL;
    if (made) {
        mark_begins(module, insns, begins);
        cut(&w, begins, out);
    }
    free(begins);
    free(w.mentions);
    free(w.last_use);
    free(w.last_def);
    return made;
}

void model_blocks_free(model_blocks *blocks) {
    free(blocks->block_end);
    free(blocks->next);
    free(blocks->links);
    *blocks = (model_blocks){0};
}
