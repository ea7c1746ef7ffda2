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
#include "fitness/model/insns.h"
#include "fitness/model/rows.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
#define SELECTS 8 /* instructions behind a move among which a select is looked for */
#define MOST 2048 /* registers of moves; with more, all moves between registers are left out */

typedef struct line { /* straight-line code */
    uint32_t first, end;
    uint32_t next[2]; /* lines; NONE: none */
} line;

typedef struct copy {
    uint32_t pc, depth; /* loops around it */
    bool renames;       /* both registers keep their first value: one stands for the other */
} copy;

typedef struct work {
    const vm_module *module;
    model_insns *out;
    uint32_t *number;  /* by register: among those of moves; NONE: it is in no move */
    uint32_t *written; /* by register: how many instructions write it */
    uint32_t *fixed;   /* by register: how many of them write a literal or a parameter */
    uint32_t *line_of; /* by pc */
    line *lines;
    copy *copies;
    uint64_t *sets;  /* by line: alive at its begin, then written before it is read */
    uint64_t *apart; /* by number: those that interfere with it */
    uint64_t *live;
    uint32_t *place; /* by number: the number that stands for its place */
    uint32_t line_count, copy_count, numbers, words;
} work;

static const uint16_t *operands_of(const work *w, const model_insn *insn) {
    return w->out->operands + insn->operands;
}

static bool is_in(const uint64_t *set, uint32_t i) {
    return set[i / 64] >> (i % 64) & 1;
}
static void put_in(uint64_t *set, uint32_t i) {
    set[i / 64] |= UINT64_C(1) << (i % 64);
}
static void take_out(uint64_t *set, uint32_t i) {
    set[i / 64] &= ~(UINT64_C(1) << (i % 64));
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
    if (w->number[reg] == NONE)
        w->number[reg] = w->numbers++;
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
    if (renames && w->number[to] == NONE)
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

/* ---- lines and what is alive ---- */

/* False: some branch may lead anywhere. */
static bool cut_lines(work *w) {
    uint32_t count = w->out->count, *begins = w->line_of;
    begins[0] = 1;
    for (uint32_t pc = 0; pc < count; pc++) {
        const model_insn *insn = &w->out->insns[pc];
        bool is_call = (insn->traits & MODEL_CALLS) != 0;
        if ((insn->traits & MODEL_JUMPS_ANYWHERE) != 0)
            return false;
        if (insn->target < count)
            begins[insn->target] = 1;
        if ((insn->is_branch || insn->is_exit) && !is_call)
            begins[pc + 1] = 1;
    }
    for (uint32_t pc = 0; pc < count; pc++) {
        if (begins[pc])
            w->lines[w->line_count++].first = pc;
        begins[pc] = w->line_count - 1;
        w->lines[w->line_count - 1].end = pc + 1;
    }
    for (uint32_t i = 0; i < w->line_count; i++) {
        line *l = &w->lines[i];
        const model_insn *last = &w->out->insns[l->end - 1];
        bool leaves = (last->is_branch || last->is_exit) && (last->traits & MODEL_CALLS) == 0;
        bool falls = (!leaves || last->is_conditional) && l->end < count;
        bool jumps = leaves && last->is_branch && last->target < count;
        l->next[0] = falls ? i + 1 : NONE;
        l->next[1] = jumps ? w->line_of[last->target] : NONE;
    }
    return true;
}

static uint64_t *alive_at(const work *w, uint32_t l) {
    return w->sets + (size_t)2 * l * w->words;
}

static void find_live_out(const work *w, uint32_t l, uint64_t *live) {
    memset(live, 0, w->words * sizeof *live);
    for (int k = 0; k < 2; k++) {
        uint32_t next = w->lines[l].next[k];
        for (uint32_t i = 0; next != NONE && i < w->words; i++)
            live[i] |= alive_at(w, next)[i];
    }
}

/* What is alive before an instruction. `ends`: what is written before it is read; or NULL. */
static void step_back(const work *w, const model_insn *insn, uint64_t *live, uint64_t *ends) {
    const uint16_t *uses = operands_of(w, insn), *defs = uses + insn->use_count;
    for (unsigned d = 0; d < insn->def_count && !insn->is_conditional; d++) {
        uint32_t n = w->number[defs[d]];
        if (n == NONE)
            continue;
        take_out(live, n);
        if (ends != NULL)
            put_in(ends, n);
    }
    for (unsigned u = 0; u < insn->use_count; u++) {
        uint32_t n = w->number[uses[u]];
        if (n == NONE)
            continue;
        put_in(live, n);
        if (ends != NULL)
            take_out(ends, n);
    }
}

/* Backward data flow (Aho, Lam, Sethi and Ullman, "Compilers", 2nd edition, 9.2.5). */
static void find_alive(const work *w) {
    for (uint32_t l = 0; l < w->line_count; l++) {
        uint64_t *live = alive_at(w, l);
        for (uint32_t pc = w->lines[l].end; pc-- > w->lines[l].first;)
            step_back(w, &w->out->insns[pc], live, live + w->words);
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t l = w->line_count; l-- > 0;) {
            find_live_out(w, l, w->live);
            uint64_t *known = alive_at(w, l), *ends = known + w->words;
            for (uint32_t i = 0; i < w->words; i++) {
                uint64_t more = w->live[i] & ~ends[i] & ~known[i];
                known[i] |= more;
                changed |= more != 0;
            }
        }
    }
}

/* ---- interference ---- */

static uint64_t *apart_from(const work *w, uint32_t n) {
    return w->apart + (size_t)n * w->words;
}

/* What is alive behind a write, and the other results beside it, keep another place. A move does
 * not part its two registers. */
static void note_writes(const work *w, const model_insn *insn, const uint64_t *live) {
    const uint16_t *uses = operands_of(w, insn), *defs = uses + insn->use_count;
    for (unsigned d = 0; d < insn->def_count; d++) {
        uint32_t n = w->number[defs[d]];
        if (n == NONE)
            continue;
        uint64_t *row = apart_from(w, n);
        uint32_t from = is_register_copy(w, insn) ? w->number[uses[0]] : NONE;
        bool parts = from == NONE || is_in(row, from);
        for (uint32_t i = 0; i < w->words; i++)
            row[i] |= live[i];
        if (!parts)
            take_out(row, from);
        for (unsigned k = 0; k < insn->def_count; k++) {
            if (w->number[defs[k]] != NONE)
                put_in(row, w->number[defs[k]]);
        }
        take_out(row, n);
    }
}

static void find_interference(const work *w) {
    for (uint32_t l = 0; l < w->line_count; l++) {
        find_live_out(w, l, w->live);
        for (uint32_t pc = w->lines[l].end; pc-- > w->lines[l].first;) {
            note_writes(w, &w->out->insns[pc], w->live);
            step_back(w, &w->out->insns[pc], w->live, NULL);
        }
    }
    for (uint32_t n = 0; n < w->numbers; n++) {
        for (uint32_t i = 0; i < w->numbers; i++) {
            if (is_in(apart_from(w, n), i))
                put_in(apart_from(w, i), n);
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
        if (!w->copies[c].renames && is_in(apart_from(w, a), b)) {
            insn->kind = ROW_PLAIN;
            continue;
        }
        for (uint32_t n = 0; n < w->numbers; n++) {
            if (!is_in(apart_from(w, b), n))
                continue;
            put_in(apart_from(w, a), n);
            put_in(apart_from(w, n), a);
        }
        w->place[b] = a;
    }
}

/* ---- the whole ---- */

static bool keep_copies(work *w) {
    if (w->copy_count == 0 || w->numbers > MOST || !cut_lines(w))
        return true;
    w->words = (w->numbers + 63) / 64;
    size_t set = w->words * sizeof(uint64_t);
    w->sets = calloc((size_t)2 * w->line_count, set);
    w->apart = calloc(w->numbers, set);
    w->live = calloc(1, set);
    w->place = calloc(w->numbers, sizeof *w->place);
    bool made = w->sets != NULL && w->apart != NULL && w->live != NULL && w->place != NULL;
    if (made) {
        find_alive(w);
        find_interference(w);
        find_depths(w);
        qsort(w->copies, w->copy_count, sizeof *w->copies, compare_copies);
        merge(w);
    }
    free(w->sets);
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
              .line_of = calloc(count, sizeof *w.line_of),
              .lines = calloc(count, sizeof *w.lines),
              .copies = calloc(count, sizeof *w.copies)};
    bool made = w.number != NULL && w.written != NULL && w.fixed != NULL && w.line_of != NULL &&
                w.lines != NULL && w.copies != NULL;
    if (made) {
        memset(w.number, 0xff, registers * sizeof *w.number);
        count_writes(&w);
        find_copies(&w);
        made = keep_copies(&w);
    }
    free(w.number);
    free(w.written);
    free(w.fixed);
    free(w.line_of);
    free(w.lines);
    free(w.copies);
    return made;
}
