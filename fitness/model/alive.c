/* Alive: backward data flow over bit sets, one bit a value (Aho, Lam, Sethi and Ullman,
 * "Compilers", 2nd edition, 9.2.5).
 *
 * `cut` cuts the text into blocks at branches and targets. `sum_up` computes the uses and
 * definitions of each block. `solve` iterates until no live-in set grows. An instruction under a
 * predicate does not end the life of its result, because the old value may live on. */
#include "fitness/model/alive.h"

#include <stdlib.h>
#include <string.h>

/* A call comes back; what it calls has a frame of its own. */
static void read_flow(const model_alive *a, alive_insn *insn, const model_insn *from) {
    bool is_call = (from->traits & MODEL_CALLS) != 0;
    insn->ends = (from->is_branch || from->is_exit) && !is_call;
    insn->falls = !insn->ends || from->is_conditional;
    insn->indirect = (from->traits & MODEL_JUMPS_ANYWHERE) != 0;
    insn->keeps = from->is_conditional;
    insn->target = UINT32_MAX;
    if (from->is_branch && !is_call && from->target != UINT32_MAX)
        insn->target = from->target - a->first_pc;
}

static void read_insns(const model_alive *a, const uint16_t *uses, const uint16_t *defs) {
    const model_insn *insns = a->read->insns + a->first_pc;
    for (uint32_t i = 0; i < a->count; i++) {
        const model_insn *from = &insns[i];
        const uint16_t *operands = a->read->operands + from->operands;
        alive_insn *insn = &a->insns[i];
        insn->operands = from->operands - insns->operands;
        insn->use_count = from->use_count;
        insn->def_count = from->def_count;
        read_flow(a, insn, from);
        uint16_t *to = a->operands + insn->operands;
        for (unsigned k = 0; k < (unsigned)from->use_count + from->def_count; k++) {
            const uint16_t *values = k < from->use_count ? uses : defs;
            to[k] = values != NULL ? values[operands[k]] : operands[k];
        }
    }
}

/* Numbers the blocks; block_of[] takes an instruction to its block. */
static void cut(model_alive *a, uint32_t *block_of) {
    block_of[0] = 1; /* first as flags: a block begins here */
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->insns[i].target < a->count)
            block_of[a->insns[i].target] = 1;
        if (a->insns[i].ends && i + 1 < a->count)
            block_of[i + 1] = 1;
    }
    for (uint32_t i = 0; i < a->count; i++) {
        if (block_of[i])
            a->blocks[a->block_count++].first = i;
        block_of[i] = a->block_count - 1;
        a->blocks[a->block_count - 1].end = i + 1;
    }
    for (uint32_t b = 0; b < a->block_count; b++) {
        alive_block *block = &a->blocks[b];
        const alive_insn *last = &a->insns[block->end - 1];
        block->next[0] = last->falls && block->end < a->count ? b + 1 : UINT32_MAX;
        block->next[1] = last->target < a->count ? block_of[last->target] : UINT32_MAX;
    }
}

void model_alive_out(const model_alive *a, uint32_t b, uint64_t *live) {
    memset(live, 0, a->set_words * sizeof *live);
    for (int i = 0; i < 2; i++) {
        uint32_t next = a->blocks[b].next[i];
        if (next != UINT32_MAX)
            set_union(live, a->live_in + (size_t)next * a->set_words, a->set_words);
    }
    if (!a->insns[a->blocks[b].end - 1].indirect)
        return;
    for (uint32_t i = 0; i < a->block_count; i++)
        set_union(live, a->live_in + (size_t)i * a->set_words, a->set_words);
}

void model_alive_step(const model_alive *a, const alive_insn *insn, uint64_t *live,
                      uint64_t *ends) {
    const uint16_t *uses = a->operands + insn->operands, *defs = uses + insn->use_count;
    for (unsigned i = 0; i < insn->def_count && !insn->keeps; i++) {
        if (defs[i] == ALIVE_NONE)
            continue;
        set_remove(live, defs[i]);
        if (ends != NULL)
            set_add(ends, defs[i]);
    }
    for (unsigned i = 0; i < insn->use_count; i++) {
        if (uses[i] == ALIVE_NONE)
            continue;
        set_add(live, uses[i]);
        if (ends != NULL)
            set_remove(ends, uses[i]);
    }
}

static void sum_up(const model_alive *a) {
    for (uint32_t b = 0; b < a->block_count; b++) {
        size_t set = (size_t)b * a->set_words;
        for (uint32_t i = a->blocks[b].end; i-- > a->blocks[b].first;)
            model_alive_step(a, &a->insns[i], a->live_in + set, a->ends + set);
    }
}

static void solve(const model_alive *a, uint64_t *live) {
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = a->block_count; b-- > 0;) {
            model_alive_out(a, b, live);
            uint64_t *known = a->live_in + (size_t)b * a->set_words, more = 0;
            const uint64_t *ends = a->ends + (size_t)b * a->set_words;
            for (uint32_t i = 0; i < a->set_words; i++) {
                more |= live[i] & ~ends[i] & ~known[i];
                known[i] |= live[i] & ~ends[i];
            }
            changed |= more != 0;
        }
    }
}

bool model_alive_make(model_alive *a, const model_insns *read, uint32_t first_pc, uint32_t count,
                      const uint16_t *uses, const uint16_t *defs, uint32_t values) {
    *a = (model_alive){.read = read,
                       .first_pc = first_pc,
                       .count = count,
                       .set_words = values / 64 + 1,
                       .insns = calloc((size_t)count + 1, sizeof *a->insns),
                       .operands = malloc((read->operand_count + (size_t)1) * sizeof *a->operands),
                       .blocks = calloc((size_t)count + 1, sizeof *a->blocks)};
    uint32_t *block_of = calloc((size_t)count + 1, sizeof *block_of);
    uint64_t *live = calloc(a->set_words, sizeof *live);
    bool made = a->insns != NULL && a->operands != NULL && a->blocks != NULL && block_of != NULL &&
                live != NULL;
    if (made && count > 0) {
        read_insns(a, uses, defs);
        cut(a, block_of);
        size_t words = (size_t)a->block_count * a->set_words;
        a->live_in = calloc(2 * words + 1, sizeof *a->live_in);
        made = a->live_in != NULL;
        if (made) {
            a->ends = a->live_in + words;
            sum_up(a);
            solve(a, live);
        }
    }
    free(block_of);
    free(live);
    return made;
}

void model_alive_free(model_alive *a) {
    free(a->insns);
    free(a->operands);
    free(a->blocks);
    free(a->live_in);
    *a = (model_alive){0};
}
