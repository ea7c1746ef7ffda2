/* Blocks: the straight lines of a module's code, and what must keep its order in each.
 *
 * The order that is kept is that of every dependence by register (after a write, before a write)
 * and by memory: stores, atomics and volatile accesses keep their place among the accesses of a
 * space that they may overlap; barriers and branches end a block. No further than
 * MODEL_WINDOW_MOST instructions is looked; who looks less far masks what is found.
 *
 * Guards: a branch that skips a few instructions does not end a block. The assembler predicates
 * them in place of it, and so moves loads of several guards together, and the stores that wait for
 * them behind all of these. What it predicates was read from its output (ptxas 13.0, sm_75 and
 * sm_80) for kernels of guarded copies from global to shared memory:
 *
 * - what is skipped has 18 instructions at most (it is branched around with 22), and no other
 *   branch, predicated or not: of nested guards only the innermost one is predicated;
 * - a guard with no other access beside it remains a branch;
 * - `@p bra BODY; bra.uni END; BODY:` and `@!p bra END; bra.uni BODY; BODY:` are the same as
 *   `@!p bra END`.
 *
 * NVIDIA's CUDA C Programming Guide 4.1, 5.4.2, says 4 or 7 instructions, of an older assembler. */
#include "fitness/model/blocks.h"
#include "fitness/model/insns.h"
#include "fitness/model/rows.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW MODEL_WINDOW_MOST

#define GUARDED_MOST 18 /* machine instructions */

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
    if (insn->guard > w->first && pc - (insn->guard - 1) < WINDOW)
        before |= UINT64_C(1) << (pc - insn->guard);
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

/* ---- guards ---- */

static bool jumps(const model_insns *insns, uint32_t pc) {
    const model_insn *insn = &insns->insns[pc];
    return pc < insns->count && insn->is_branch && insn->target < insns->count &&
           (insn->traits & (MODEL_CALLS | MODEL_JUMPS_ANYWHERE)) == 0;
}

/* First of what the branch at pc skips or does not skip; 0: it is no guard by its form. *end: the
 * one after the last. */
static uint32_t guarded_by(const model_insns *insns, uint32_t pc, uint32_t *end) {
    const model_insn *insn = &insns->insns[pc];
    if (!jumps(insns, pc) || !insn->is_conditional)
        return 0;
    *end = insn->target;
    if (!jumps(insns, pc + 1) || insns->insns[pc + 1].is_conditional)
        return pc + 1;
    if (insns->insns[pc + 1].target == pc + 2)
        return pc + 2;
    if (insn->target != pc + 2)
        return pc + 1;
    *end = insns->insns[pc + 1].target;
    return pc + 2;
}

/* Whether nothing in [first, end) but its first instruction is jumped to, so often, and all of it
 * can be predicated. `jumped`: by pc, how many branches go there. */
static bool can_predicate(const model_insns *insns, const uint32_t *jumped, uint32_t first,
                          uint32_t end, uint32_t jumped_first) {
    unsigned count = 0;
    bool can = first < end && end < insns->count && jumped[first] == jumped_first;
    for (uint32_t pc = first; can && pc < end; pc++) {
        const model_insn *insn = &insns->insns[pc];
        count += insn->kind != ROW_FOLDED;
        can = !insn->ends_block && (pc == first || jumped[pc] == 0) && count <= GUARDED_MOST;
    }
    return can;
}

static bool touches_memory(const model_insn *insn) {
    return insn->kind >= ROW_LOAD && insn->kind <= ROW_ATOMIC;
}

/* Whether an access or another guard is beside it: before it, up to where a block begins, or after
 * it, up to where one ends. */
static bool has_neighbour(const model_insns *insns, const uint32_t *jumped, uint32_t guard,
                          uint32_t end) {
    for (uint32_t pc = guard; pc > 0 && !insns->insns[pc - 1].ends_block; pc--) {
        if (touches_memory(&insns->insns[pc - 1]) || insns->insns[pc - 1].guard != 0)
            return true;
        if (jumped[pc - 1] > 0)
            break;
    }
    if (jumped[end] > 1)
        return false;
    for (uint32_t pc = end; pc < insns->count && (pc == end || jumped[pc] == 0); pc++) {
        uint32_t after, first = guarded_by(insns, pc, &after);
        if (touches_memory(&insns->insns[pc]))
            return true;
        if (first > 0)
            return can_predicate(insns, jumped, first, after, first - pc - 1);
        if (insns->insns[pc].ends_block)
            break;
    }
    return false;
}

/* Marks what the branch at pc guards, if that is predicated; it no longer counts as jumping. */
static void mark_guard(model_insns *insns, uint32_t *jumped, uint32_t pc) {
    uint32_t end, first = guarded_by(insns, pc, &end);
    if (first == 0 || !can_predicate(insns, jumped, first, end, first - pc - 1) ||
        !has_neighbour(insns, jumped, pc, end))
        return;
    for (uint32_t at = pc; at < first; at++) {
        insns->insns[at].is_guard = true;
        jumped[insns->insns[at].target]--;
    }
    for (uint32_t at = pc + 1; at < end; at++)
        insns->insns[at].guard = pc + 1;
}

/* ---- blocks ---- */

/* Marks where blocks begin. `jumped`: room. */
static void mark_begins(const vm_module *module, model_insns *insns, uint32_t *jumped,
                        uint8_t *begins) {
    for (uint32_t pc = 0; pc < insns->count; pc++)
        if (insns->insns[pc].target < insns->count)
            jumped[insns->insns[pc].target]++;
    for (uint32_t pc = 0; pc < insns->count; pc++)
        mark_guard(insns, jumped, pc);
    for (uint32_t pc = 0; pc < insns->count; pc++) {
        begins[pc] |= jumped[pc] > 0;
        begins[pc + 1] |= insns->insns[pc].ends_block && !insns->insns[pc].is_guard;
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

bool model_blocks_make(const vm_module *module, model_insns *insns, model_blocks *out) {
    size_t count = (size_t)insns->count + 1, registers = (size_t)insns->register_count + 1;
    *out = (model_blocks){calloc(count, sizeof *out->block_end), calloc(count, sizeof *out->next),
                          calloc(count, sizeof *out->links)};
    uint8_t *begins = calloc(count, 1);
    uint32_t *jumped = calloc(count, sizeof *jumped);
    work w = {.insns = insns,
              .links = out->links,
              .mentions = calloc(insns->operand_count + (size_t)1, sizeof *w.mentions),
              .last_use = calloc(registers, sizeof *w.last_use),
              .last_def = calloc(registers, sizeof *w.last_def)};
    bool made = out->block_end != NULL && out->next != NULL && out->links != NULL &&
                begins != NULL && jumped != NULL && w.mentions != NULL && w.last_use != NULL &&
                w.last_def != NULL;
    if (made) {
        mark_begins(module, insns, jumped, begins);
        cut(&w, begins, out);
    }
    free(begins);
    free(jumped);
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
