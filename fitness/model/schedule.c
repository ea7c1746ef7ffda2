/* Schedule: the order in which the assembler would put the instructions of each straight-line
 * block.
 *
 * PTX is not what a GPU runs: ptxas moves loads up and their uses down as far as it can, so a
 * scoreboard that followed the text would charge waits that no chip sees, and would pay for edits
 * that only move a load. List scheduling (Gibbons and Muchnick, 1986) within a block, looking at
 * most a window of instructions ahead, as registers are not free: of those whose operands are
 * there, the one with the longest chain behind it goes first; if none is, the one that waits least.
 *
 * The order keeps every dependence by register (after a write, before a write) and by memory:
 * stores, atomics and volatile accesses keep their place among the accesses of a space that they
 * may overlap; barriers and branches end a block. */
#include "fitness/model/model_impl.h"

#include <stdlib.h>
#include <string.h>

#define NEAREST 63 /* bit of an instruction's mask that stands for the one right before it */

typedef struct node {
    uint64_t defs, uses; /* registers by number modulo 64: a quick no */
    uint64_t before;     /* bit NEAREST - d + 1: must come after the instruction d before it */
    uint64_t feeds;      /* likewise, and reads what that one writes */
    uint64_t ready;      /* cycle from which its operands are there */
    uint64_t height;     /* cycles from its issue to the end of the longest chain behind it */
    uint32_t latency;
    uint8_t reads, writes; /* spaces that it may touch, by bit */
    bool is_ordered;       /* keeps its place among all accesses of its spaces */
    bool is_done;
} node;

/* ---- dependences ---- */

enum { SPACE_GLOBAL = 1, SPACE_SHARED = 2, SPACE_LOCAL = 4, SPACE_ALL = 7 };

static uint8_t spaces_of(vm_space space) {
    switch (space) {
    case VM_SPACE_GLOBAL:
        return SPACE_GLOBAL;
    case VM_SPACE_SHARED:
        return SPACE_SHARED;
    case VM_SPACE_LOCAL:
        return SPACE_LOCAL;
    case VM_SPACE_GENERIC:
        return SPACE_ALL;
    default:
        return 0;
    }
}

/* What is promised not to change while the kernel runs can be read at any time. */
static bool is_constant_load(const vm_insn_info *info) {
    return info->is_load && strstr(info->name, ".nc") != NULL;
}

static bool is_fence(const vm_insn_info *info) {
    return info->pipe == VM_PIPE_BARRIER;
}

/* Asked of each instruction: one walk over the parts of its name. */
static bool is_volatile(const vm_insn_info *info) {
    static const char *const parts[] = {".volatile", ".relaxed", ".acquire", ".release"};
    for (const char *at = strchr(info->name, '.'); at != NULL; at = strchr(at + 1, '.')) {
        if (at[1] != 'v' && at[1] != 'r' && at[1] != 'a')
            continue;
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
            if (strncmp(at, parts[i], strlen(parts[i])) == 0)
                return true;
        }
    }
    return false;
}

static void fill_memory(const vm_insn_info *info, node *n) {
    uint8_t spaces = is_fence(info) ? SPACE_ALL : spaces_of(info->space);
    n->is_ordered = info->is_atomic || is_fence(info) || is_volatile(info);
    if (n->is_ordered || (info->is_load && !is_constant_load(info)))
        n->reads = spaces;
    if (n->is_ordered || info->is_store)
        n->writes = spaces;
}

static uint64_t signature(const uint16_t *registers, unsigned count) {
    uint64_t bits = 0;
    for (unsigned i = 0; i < count; i++)
        bits |= UINT64_C(1) << (registers[i] % 64);
    return bits;
}

static bool overlap(const uint16_t *a, unsigned a_count, const uint16_t *b, unsigned b_count) {
    for (unsigned i = 0; i < a_count; i++) {
        for (unsigned k = 0; k < b_count; k++) {
            if (a[i] == b[k])
                return true;
        }
    }
    return false;
}

typedef struct work {
    const model_rows *rows;
    node *nodes; /* by pc */
    uint32_t first, end, window;
} work;

/* Whether `late` reads what `early` writes; and whether they must keep their order at all. */
static bool is_fed(const work *w, uint32_t early, uint32_t late) {
    const model_row *a = &w->rows->rows[early], *b = &w->rows->rows[late];
    const uint16_t *of_a = w->rows->operands + a->operands, *of_b = w->rows->operands + b->operands;
    return (w->nodes[early].defs & w->nodes[late].uses) != 0 &&
           overlap(of_a + a->use_count, a->def_count, of_b, b->use_count);
}

static bool is_overwritten(const work *w, uint32_t early, uint32_t late) {
    const model_row *a = &w->rows->rows[early], *b = &w->rows->rows[late];
    const uint16_t *of_a = w->rows->operands + a->operands, *of_b = w->rows->operands + b->operands;
    return ((w->nodes[early].defs | w->nodes[early].uses) & w->nodes[late].defs) != 0 &&
           overlap(of_a, (unsigned)a->use_count + a->def_count, of_b + b->use_count, b->def_count);
}

static bool keeps_memory_order(const node *early, const node *late) {
    return (early->writes & (late->reads | late->writes)) != 0 ||
           (early->reads & late->writes) != 0;
}

static void find_dependences(const work *w, uint32_t pc) {
    node *late = &w->nodes[pc];
    for (uint32_t d = 1; d < w->window && pc - w->first >= d; d++) {
        uint64_t bit = UINT64_C(1) << (NEAREST - d + 1);
        if (is_fed(w, pc - d, pc))
            late->feeds |= bit;
        else if (!is_overwritten(w, pc - d, pc) && !keeps_memory_order(&w->nodes[pc - d], late))
            continue;
        late->before |= bit;
    }
}

static void find_heights(const work *w) {
    for (uint32_t pc = w->end; pc-- > w->first;) {
        const node *n = &w->nodes[pc];
        for (uint64_t left = n->feeds; left != 0; left &= left - 1) {
            node *source = &w->nodes[pc - (NEAREST + 1 - (uint32_t)__builtin_ctzll(left))];
            uint64_t height = source->latency + n->height;
            source->height = height > source->height ? height : source->height;
        }
    }
}

/* ---- the order ---- */

static bool may_issue(const work *w, uint32_t pc) {
    for (uint64_t left = w->nodes[pc].before; left != 0; left &= left - 1) {
        if (!w->nodes[pc - (NEAREST + 1 - (uint32_t)__builtin_ctzll(left))].is_done)
            return false;
    }
    return true;
}

static bool is_better(const node *a, const node *b, uint64_t cycle) {
    uint64_t wait_a = a->ready > cycle ? a->ready : cycle;
    uint64_t wait_b = b->ready > cycle ? b->ready : cycle;
    return wait_a != wait_b ? wait_a < wait_b : a->height > b->height;
}

static uint32_t choose(const work *w, uint32_t head, uint64_t cycle) {
    uint32_t best = head; /* the first that is left may always issue */
    for (uint32_t pc = head + 1; pc < w->end && pc - head < w->window; pc++) {
        if (!w->nodes[pc].is_done && is_better(&w->nodes[pc], &w->nodes[best], cycle) &&
            may_issue(w, pc))
            best = pc;
    }
    return best;
}

static void feed(const work *w, uint32_t from, uint64_t cycle) {
    for (uint32_t pc = from + 1; pc < w->end && pc - from < w->window; pc++) {
        node *n = &w->nodes[pc];
        uint64_t bit = UINT64_C(1) << (NEAREST + 1 - (pc - from));
        if ((n->feeds & bit) != 0 && n->ready < cycle + w->nodes[from].latency)
            n->ready = cycle + w->nodes[from].latency;
    }
}

static void put_in_order(const work *w, uint32_t *order) {
    uint32_t head = w->first;
    uint64_t cycle = 0;
    for (uint32_t at = w->first; at < w->end; at++) {
        uint32_t pc = choose(w, head, cycle);
        node *n = &w->nodes[pc];
        cycle = n->ready > cycle ? n->ready : cycle;
        n->is_done = true;
        order[at] = pc;
        feed(w, pc, cycle);
        cycle += w->rows->rows[pc].slots;
        while (head < w->end && w->nodes[head].is_done)
            head++;
    }
}

/* ---- blocks ---- */

static bool ends_block(const vm_insn_info *info) {
    return info->is_branch || info->is_exit || info->is_barrier || info->pipe == VM_PIPE_CONTROL;
}

/* What ends a block stays at its end: all that was before it is issued before it. */
static void hold_end(const work *w) {
    for (uint32_t d = 1; d < w->window && w->end - 1 - w->first >= d; d++)
        w->nodes[w->end - 1].before |= UINT64_C(1) << (NEAREST - d + 1);
}

static void schedule_block(const work *w, bool has_end, uint32_t *order) {
    for (uint32_t pc = w->first; pc < w->end; pc++)
        find_dependences(w, pc);
    if (has_end)
        hold_end(w);
    find_heights(w);
    put_in_order(w, order);
}

static void fill_node(uint32_t load_latency, const model_rows *rows, uint32_t pc,
                      const vm_insn_info *info, node *n) {
    const model_row *row = &rows->rows[pc];
    const uint16_t *uses = rows->operands + row->operands;
    n->uses = signature(uses, row->use_count);
    n->defs = signature(uses + row->use_count, row->def_count);
    n->latency = row->kind == ROW_LOAD ? load_latency : row->latency;
    fill_memory(info, n);
}

/* Marks where blocks begin and end; fills the nodes. */
static void find_blocks(uint32_t load_latency, const vm_module *module, const model_rows *rows,
                        node *nodes, uint8_t *begins, uint8_t *ends) {
    for (uint32_t pc = 0; pc < rows->count; pc++) {
        vm_insn_info info;
        vm_module_info(module, pc, &info);
        fill_node(load_latency, rows, pc, &info, &nodes[pc]);
        if (info.target < rows->count)
            begins[info.target] = 1;
        ends[pc] = ends_block(&info);
        begins[pc + 1] |= ends[pc];
    }
    for (size_t i = 0; i < vm_module_entry_count(module); i++)
        begins[vm_module_entry(module, i)->first_pc] = 1;
}

ev_status model_schedule_make(const model_schedule_options *options, const vm_module *module,
                              const model_rows *rows, model_schedule *out, ev_error *err) {
    size_t count = (size_t)rows->count + 1;
    node *nodes = calloc(count, sizeof *nodes);
    uint8_t *marks = calloc(count * 2, 1);
    model_schedule made = {calloc(count, sizeof *made.block_end), calloc(count, sizeof *made.order),
                           calloc(count, sizeof *made.next)};
    if (nodes == NULL || marks == NULL || made.block_end == NULL || made.order == NULL ||
        made.next == NULL) {
        model_schedule_free(&made);
        free(nodes);
        free(marks);
        return ev_fail_memory(err, count * sizeof *nodes);
    }
    uint8_t *begins = marks, *ends = marks + count;
    find_blocks(options->load_latency, module, rows, nodes, begins, ends);
    for (uint32_t first = 0, end; first < rows->count; first = end) {
        for (end = first + 1; end < rows->count && !begins[end]; end++) {
        }
        made.block_end[first] = end;
        for (uint32_t pc = first; pc < end; pc++)
            made.next[pc] = end;
        work w = {rows, nodes, first, end, options->window};
        schedule_block(&w, ends[end - 1] != 0, made.order);
    }
    free(nodes);
    free(marks);
    *out = made;
    return EV_OK;
}

void model_schedule_free(model_schedule *schedule) {
    free(schedule->block_end);
    free(schedule->order);
    free(schedule->next);
    *schedule = (model_schedule){0};
}
