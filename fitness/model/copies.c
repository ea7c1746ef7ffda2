/* Copies: which moves from register to register the assembler leaves out.
 *
 * LLVM ends SSA form with moves. The assembler gives both registers of a move the same place where
 * it can, and the move is gone. It cannot where one of the two is written while the other's value
 * is still to be read: a loop that loads the next turn's value and then uses this turn's has two
 * values alive, and the move from one to the other stays at the end of the turn. This move waits
 * for the load, so that the load is on its way during the turn and no longer (ptxas 13.0 for sm_90:
 * the move behind the load of a gather; on an H200 that loop took twice the time of a model without
 * this move).
 *
 * `find_interference` computes which registers of moves interfere: one is written where the other
 * is alive, other than by a move from it. `merge` takes the moves of the innermost loops first, and
 * gives two registers one place unless what has the one place interferes with what has the other
 * (Chaitin and others, "Register allocation via coloring", 1981). The moves that are left over are
 * instructions. So is a move of a literal or a parameter into a register that something else
 * writes, too. A move that a move under a predicate follows is one instruction with it, a select.
 */
#include "fitness/model/alive.h"
#include "fitness/model/insns.h"
#include "fitness/model/rows.h"

#include <stdlib.h>
#include <string.h>

#define SELECTS 8 /* instructions behind a move among which a select is looked for */
#define MOST 2048 /* registers of moves; with more, all moves between registers are left out */

typedef struct copy {
    uint32_t pc, depth; /* loops around it */
    bool renames;       /* both registers keep their first value: one stands for the other */
} copy;

typedef struct work {
    const vm_module *module;
    model_insns *out;
    uint16_t *number;  /* by register: among those of moves; ALIVE_NONE: it is in no move */
    uint32_t *written; /* by register: how many instructions write it */
    uint32_t *fixed;   /* by register: how many of them write a literal or a parameter */
    copy *copies;
    model_alive alive;
    uint64_t *apart; /* by number: those that interfere with it */
    uint64_t *live;
    uint32_t *place; /* by number: the number that stands for its place */
    uint32_t copy_count, numbers;
} work;

static const uint16_t *operands_of(const work *w, const model_insn *insn) {
    return w->out->operands + insn->operands;
}

/* ---- the moves ---- */

static bool is_folded_move(const model_insn *insn) {
    return insn->kind == ROW_FOLDED && (insn->traits & MODEL_MOVES) != 0 && insn->use_count <= 1 &&
           insn->def_count == 1;
}

static bool is_fixed(const model_insn *insn) {
    return (insn->traits & MODEL_IS_PARAMETER) != 0 ||
           (is_folded_move(insn) && insn->use_count == 0);
}

/* A move between two registers of one size. */
static bool is_register_copy(const work *w, const model_insn *insn) {
    if (!is_folded_move(insn) || insn->use_count != 1)
        return false;
    const uint16_t *operands = operands_of(w, insn);
    unsigned words = vm_module_register_words(w->module, operands[0]);
    return words > 0 && words == vm_module_register_words(w->module, operands[1]) &&
           operands[0] != operands[1];
}

/* Whether what a register holds is a literal or a parameter, so that the instructions that use it
 * take that as their operand. */
static bool holds_fixed(const work *w, uint16_t reg) {
    return w->written[reg] > 0 && w->written[reg] == w->fixed[reg];
}

static bool reads_fixed(const work *w, const model_insn *insn) {
    return insn->use_count == 0 || holds_fixed(w, operands_of(w, insn)[0]);
}

static void count_writes(work *w) {
    for (uint32_t pc = 0; pc < w->out->count; pc++) {
        const model_insn *insn = &w->out->insns[pc];
        for (unsigned d = insn->use_count; d < (unsigned)insn->use_count + insn->def_count; d++) {
            uint16_t reg = operands_of(w, insn)[d];
            w->written[reg]++;
            w->fixed[reg] += is_fixed(insn);
        }
    }
    for (uint32_t pc = 0; pc < w->out->count; pc++) {
        const model_insn *insn = &w->out->insns[pc];
        if (is_folded_move(insn) && insn->use_count == 1 && reads_fixed(w, insn))
            w->fixed[operands_of(w, insn)[1]]++;
    }
}

static void number_register(work *w, uint16_t reg) {
    if (w->number[reg] == ALIVE_NONE)
        w->number[reg] = (uint16_t)w->numbers++;
}

/* Whether the next that names its result is a move to it under a predicate. */
static bool is_selected(const work *w, uint32_t pc) {
    const model_insn *move = &w->out->insns[pc];
    uint16_t to = operands_of(w, move)[move->use_count];
    for (uint32_t at = pc + 1; at < w->out->count && at <= pc + SELECTS; at++) {
        const model_insn *insn = &w->out->insns[at];
        const uint16_t *operands = operands_of(w, insn);
        for (unsigned i = 0; i < (unsigned)insn->use_count + insn->def_count; i++) {
            if (operands[i] == to)
                return i >= insn->use_count && insn->is_conditional &&
                       (insn->traits & MODEL_MOVES) != 0;
        }
        if (insn->ends_block)
            break;
    }
    return false;
}

/* Both registers of a move may keep their first value: then one stands for the other. */
static void note_copy(work *w, uint32_t pc) {
    const uint16_t *operands = operands_of(w, &w->out->insns[pc]);
    uint16_t from = operands[0], to = operands[1];
    bool renames = w->written[from] == 1 && w->written[to] == 1;
    number_register(w, from);
    if (renames && w->number[to] == ALIVE_NONE)
        w->number[to] = w->number[from];
    number_register(w, to);
    w->copies[w->copy_count++] = (copy){.pc = pc, .renames = renames};
}

/* Notes the moves between registers, and makes instructions of those of literals that stay. */
static void find_copies(work *w) {
    for (uint32_t pc = 0; pc < w->out->count; pc++) {
        model_insn *insn = &w->out->insns[pc];
        if (!is_folded_move(insn) || is_selected(w, pc))
            continue;
        const uint16_t *operands = operands_of(w, insn);
        if (reads_fixed(w, insn)) {
            uint16_t to = operands[insn->use_count];
            if (!holds_fixed(w, to) && vm_module_register_words(w->module, to) > 0)
                insn->kind = ROW_PLAIN;
        } else if (is_register_copy(w, insn)) {
            note_copy(w, pc);
        }
    }
}

/* ---- interference ---- */

static uint64_t *apart_from(const work *w, uint32_t n) {
    return w->apart + (size_t)n * w->alive.set_words;
}

/* What is alive behind a write, and the other results beside it, keep another place. A move does
 * not part its two registers. */
static void note_writes(const work *w, uint32_t pc) {
    const alive_insn *insn = &w->alive.insns[pc];
    const uint16_t *uses = w->alive.operands + insn->operands, *defs = uses + insn->use_count;
    for (unsigned d = 0; d < insn->def_count; d++) {
        uint16_t n = defs[d];
        if (n == ALIVE_NONE)
            continue;
        uint64_t *row = apart_from(w, n);
        uint16_t from = is_register_copy(w, &w->out->insns[pc]) ? uses[0] : ALIVE_NONE;
        bool parts = from == ALIVE_NONE || set_has(row, from);
        set_union(row, w->live, w->alive.set_words);
        if (!parts)
            set_remove(row, from);
        for (unsigned k = 0; k < insn->def_count; k++) {
            if (defs[k] != ALIVE_NONE)
                set_add(row, defs[k]);
        }
        set_remove(row, n);
    }
}

static void find_interference(const work *w) {
    const model_alive *a = &w->alive;
    for (uint32_t b = 0; b < a->block_count; b++) {
        model_alive_out(a, b, w->live);
        for (uint32_t pc = a->blocks[b].end; pc-- > a->blocks[b].first;) {
            note_writes(w, pc);
            model_alive_step(a, &a->insns[pc], w->live, NULL);
        }
    }
    for (uint32_t n = 0; n < w->numbers; n++) {
        for (uint32_t i = 0; i < w->numbers; i++) {
            if (set_has(apart_from(w, n), i))
                set_add(apart_from(w, i), n);
        }
    }
}

/* ---- places ---- */

static void find_depths(const work *w) {
    for (uint32_t pc = 0; pc < w->out->count; pc++) {
        const model_insn *insn = &w->out->insns[pc];
        if (!insn->is_branch || insn->target > pc || (insn->traits & MODEL_CALLS) != 0)
            continue;
        for (uint32_t c = 0; c < w->copy_count; c++)
            w->copies[c].depth += w->copies[c].pc >= insn->target && w->copies[c].pc <= pc;
    }
}

static int compare_copies(const void *a, const void *b) {
    const copy *x = a, *y = b;
    if (x->renames != y->renames)
        return x->renames ? -1 : 1;
    if (x->depth != y->depth)
        return x->depth > y->depth ? -1 : 1;
    return x->pc < y->pc ? -1 : x->pc > y->pc;
}

static uint32_t place_of(const work *w, uint32_t n) {
    while (w->place[n] != n)
        n = w->place[n] = w->place[w->place[n]];
    return n;
}

/* Gives both registers of each move one place; the moves for which there is none stay. */
static void merge(const work *w) {
    for (uint32_t n = 0; n < w->numbers; n++)
        w->place[n] = n;
    for (uint32_t c = 0; c < w->copy_count; c++) {
        model_insn *insn = &w->out->insns[w->copies[c].pc];
        const uint16_t *operands = operands_of(w, insn);
        uint32_t a = place_of(w, w->number[operands[0]]), b = place_of(w, w->number[operands[1]]);
        if (a == b)
            continue;
        if (!w->copies[c].renames && set_has(apart_from(w, a), b)) {
            insn->kind = ROW_PLAIN;
            continue;
        }
        for (uint32_t n = 0; n < w->numbers; n++) {
            if (!set_has(apart_from(w, b), n))
                continue;
            set_add(apart_from(w, a), n);
            set_add(apart_from(w, n), a);
        }
        w->place[b] = a;
    }
}

/* ---- the whole ---- */

static bool keep_copies(work *w) {
    if (w->copy_count == 0 || w->numbers > MOST)
        return true;
    bool made =
        model_alive_make(&w->alive, w->out, 0, w->out->count, w->number, w->number, w->numbers);
    size_t set = w->alive.set_words * sizeof(uint64_t);
    w->apart = calloc(w->numbers, set);
    w->live = calloc(1, set);
    w->place = calloc(w->numbers, sizeof *w->place);
    made = made && w->apart != NULL && w->live != NULL && w->place != NULL;
    if (made) {
        find_interference(w);
        find_depths(w);
        qsort(w->copies, w->copy_count, sizeof *w->copies, compare_copies);
        merge(w);
    }
    model_alive_free(&w->alive);
    free(w->apart);
    free(w->live);
    free(w->place);
    return made;
}

bool model_copies_keep(const vm_module *module, model_insns *insns) {
    size_t registers = (size_t)insns->register_count + 1, count = (size_t)insns->count + 1;
    work w = {.module = module,
              .out = insns,
              .number = malloc(registers * sizeof *w.number),
              .written = calloc(registers, sizeof *w.written),
              .fixed = calloc(registers, sizeof *w.fixed),
              .copies = calloc(count, sizeof *w.copies)};
    bool made = w.number != NULL && w.written != NULL && w.fixed != NULL && w.copies != NULL;
    if (made) {
        memset(w.number, 0xff, registers * sizeof *w.number);
        count_writes(&w);
        find_copies(&w);
        made = keep_copies(&w);
    }
    free(w.number);
    free(w.written);
    free(w.fixed);
    free(w.copies);
    return made;
}
