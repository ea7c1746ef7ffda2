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

typedef struct node {
    uint64_t after;  /* bit d - 1: the instruction d behind it must come after it */
    uint64_t feeds;  /* likewise, and reads what it writes */
    uint64_t ready;  /* cycle from which its operands are there */
    uint64_t height; /* cycles from its issue to the end of the longest chain behind it */
    uint32_t latency;
    uint8_t waits;         /* how many that must come before it are left */
    uint8_t reads, writes; /* spaces that it may touch, by bit */
    bool is_done;
} node;

/* An operand, and the one before it of the same register: its number among all operands, plus 1. */
typedef struct mention {
    uint32_t pc, earlier;
} mention;

/* ---- dependences ---- */

enum { SPACE_GLOBAL = 1, SPACE_SHARED = 2, SPACE_LOCAL = 4, SPACE_ALL = 7, SPACES = 3 };

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
    /* in order among all accesses of its spaces */
    bool is_ordered = info->is_atomic || is_fence(info) || is_volatile(info);
    if (is_ordered || (info->is_load && !is_constant_load(info)))
        n->reads = spaces;
    if (is_ordered || info->is_store)
        n->writes = spaces;
}

typedef struct work {
    const model_rows *rows;
    node *nodes;                   /* by pc */
    mention *mentions;             /* by operand */
    uint32_t *last_use, *last_def; /* by register: the last mention so far, plus 1 */
    uint32_t first, end, window;
    /* Bit d - 1: the instruction d before the one at hand touched the space. */
    uint64_t read[SPACES], wrote[SPACES];
} work;

/* Instructions of the block and the window that the list has, by how far before pc they are. */
static uint64_t mentioned(const work *w, uint32_t last, uint32_t pc) {
    uint64_t bits = 0;
    while (last != 0) {
        const mention *m = &w->mentions[last - 1];
        if (m->pc < w->first || pc - m->pc >= w->window)
            break;
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
static uint64_t ordered_before(work *w, uint32_t pc) {
    const node *n = &w->nodes[pc];
    uint64_t bits = 0;
    for (unsigned s = 0; s < SPACES; s++) {
        uint64_t reads = n->reads >> s & 1, writes = n->writes >> s & 1;
        bits |= reads | writes ? w->wrote[s] : 0;
        bits |= writes ? w->read[s] : 0;
        w->read[s] = w->read[s] << 1 | reads;
        w->wrote[s] = w->wrote[s] << 1 | writes;
    }
    return bits & ((UINT64_C(1) << (w->window - 1)) - 1);
}

static void find_dependences(work *w, uint32_t pc) {
    const model_row *row = &w->rows->rows[pc];
    uint32_t use = row->operands, def = use + row->use_count, end = def + row->def_count;
    uint64_t fed = 0, before = ordered_before(w, pc);
    for (uint32_t o = use; o < def; o++)
        fed |= mentioned(w, w->last_def[w->rows->operands[o]], pc);
    for (uint32_t o = def; o < end; o++)
        before |= mentioned(w, w->last_def[w->rows->operands[o]], pc) |
                  mentioned(w, w->last_use[w->rows->operands[o]], pc);
    before |= fed;
    for (uint32_t o = use; o < end; o++)
        mention_it(w, (o < def ? w->last_use : w->last_def) + w->rows->operands[o], o, pc);
    w->nodes[pc].waits = (uint8_t)__builtin_popcountll(before);
    for (uint64_t left = before; left != 0; left &= left - 1) {
        node *early = &w->nodes[pc - (uint32_t)__builtin_ctzll(left) - 1];
        early->after |= left & -left;
        early->feeds |= left & -left & fed;
    }
}

static void find_heights(const work *w) {
    for (uint32_t pc = w->end; pc-- > w->first;) {
        node *n = &w->nodes[pc];
        for (uint64_t left = n->feeds; left != 0; left &= left - 1) {
            uint64_t height =
                n->latency + w->nodes[pc + (uint32_t)__builtin_ctzll(left) + 1].height;
            n->height = height > n->height ? height : n->height;
        }
    }
}

/* ---- the order ---- */

static bool is_better(const node *a, const node *b, uint64_t cycle) {
    uint64_t wait_a = a->ready > cycle ? a->ready : cycle;
    uint64_t wait_b = b->ready > cycle ? b->ready : cycle;
    return wait_a != wait_b ? wait_a < wait_b : a->height > b->height;
}

/* Of the `open`, which wait for nothing that is left; bit i is the one i behind the head. The first
 * that is left is always one of them. */
static uint32_t choose(const work *w, uint32_t head, uint64_t open, uint64_t cycle) {
    uint32_t best = head;
    for (uint64_t left = open & ~UINT64_C(1); left != 0; left &= left - 1) {
        uint32_t pc = head + (uint32_t)__builtin_ctzll(left);
        if (is_better(&w->nodes[pc], &w->nodes[best], cycle))
            best = pc;
    }
    return best;
}

/* Tells those that come after it; what is open then. */
static uint64_t feed(const work *w, uint32_t from, uint64_t cycle, uint32_t head, uint64_t open) {
    const node *source = &w->nodes[from];
    uint64_t ready = cycle + source->latency;
    for (uint64_t left = source->after; left != 0; left &= left - 1) {
        uint32_t pc = from + (uint32_t)__builtin_ctzll(left) + 1;
        node *n = &w->nodes[pc];
        if ((source->feeds & left & -left) != 0 && n->ready < ready)
            n->ready = ready;
        if (--n->waits == 0 && pc - head < w->window)
            open |= UINT64_C(1) << (pc - head);
    }
    return open;
}

/* Of the one that comes into the window of `head`, as open shows it. */
static uint64_t entering(const work *w, uint32_t head) {
    uint32_t pc = head + w->window - 1;
    return pc < w->end && w->nodes[pc].waits == 0 ? UINT64_C(1) << (w->window - 1) : 0;
}

static void put_in_order(const work *w, uint32_t *order) {
    uint32_t head = w->first;
    uint64_t cycle = 0, open = 0;
    for (uint32_t i = 0; i < w->window && head + i < w->end; i++)
        open |= (uint64_t)(w->nodes[head + i].waits == 0) << i;
    for (uint32_t at = w->first; at < w->end; at++) {
        uint32_t pc = choose(w, head, open, cycle);
        node *n = &w->nodes[pc];
        cycle = n->ready > cycle ? n->ready : cycle;
        n->is_done = true;
        order[at] = pc;
        open = feed(w, pc, cycle, head, open & ~(UINT64_C(1) << (pc - head)));
        cycle += w->rows->rows[pc].slots;
        while (head < w->end && w->nodes[head].is_done) {
            head++;
            open = open >> 1 | entering(w, head);
        }
    }
}

/* ---- blocks ---- */

static bool ends_block(const vm_insn_info *info) {
    return info->is_branch || info->is_exit || info->is_barrier || info->pipe == VM_PIPE_CONTROL;
}

/* What ends a block stays at its end: all that was before it is issued before it. */
static void hold_end(const work *w) {
    node *last = &w->nodes[w->end - 1];
    for (uint32_t d = 1; d < w->window && w->end - 1 - w->first >= d; d++) {
        uint64_t bit = UINT64_C(1) << (d - 1);
        node *early = last - d;
        if ((early->after & bit) == 0)
            last->waits++;
        early->after |= bit;
    }
}

static void schedule_block(work *w, bool has_end, uint32_t *order) {
    memset(w->read, 0, sizeof w->read);
    memset(w->wrote, 0, sizeof w->wrote);
    for (uint32_t pc = w->first; pc < w->end; pc++)
        find_dependences(w, pc);
    if (has_end)
        hold_end(w);
    find_heights(w);
    put_in_order(w, order);
}

static void fill_node(uint32_t load_latency, const model_row *row, const vm_insn_info *info,
                      node *n) {
    n->latency = row->kind == ROW_LOAD ? load_latency : row->latency;
    fill_memory(info, n);
}

/* Marks where blocks begin and end; fills the nodes. */
static void find_blocks(uint32_t load_latency, const vm_module *module, const model_rows *rows,
                        node *nodes, uint8_t *begins, uint8_t *ends) {
    for (uint32_t pc = 0; pc < rows->count; pc++) {
        vm_insn_info info;
        vm_module_info(module, pc, &info);
        fill_node(load_latency, &rows->rows[pc], &info, &nodes[pc]);
        if (info.target < rows->count)
            begins[info.target] = 1;
        ends[pc] = ends_block(&info);
        begins[pc + 1] |= ends[pc];
    }
    for (size_t i = 0; i < vm_module_entry_count(module); i++)
        begins[vm_module_entry(module, i)->first_pc] = 1;
}

static bool open_work(work *w, const model_schedule_options *options, const model_rows *rows) {
    const model_row *last = &rows->rows[rows->count - (rows->count > 0)];
    size_t operands = rows->count > 0 ? last->operands + last->use_count + last->def_count : 0;
    *w = (work){.rows = rows,
                .nodes = calloc((size_t)rows->count + 1, sizeof *w->nodes),
                .mentions = malloc((operands + 1) * sizeof *w->mentions),
                .last_use = calloc((size_t)rows->register_count + 1, sizeof *w->last_use),
                .last_def = calloc((size_t)rows->register_count + 1, sizeof *w->last_def),
                .window = options->window};
    return w->nodes != NULL && w->mentions != NULL && w->last_use != NULL && w->last_def != NULL;
}

static void close_work(work *w) {
    free(w->nodes);
    free(w->mentions);
    free(w->last_use);
    free(w->last_def);
}

static void schedule_blocks(work *w, const uint8_t *begins, const uint8_t *ends,
                            model_schedule *out) {
    uint32_t count = w->rows->count;
    for (uint32_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && !begins[end]; end++) {
        }
        out->block_end[first] = end;
        for (uint32_t pc = first; pc < end; pc++)
            out->next[pc] = end;
        w->first = first;
        w->end = end;
        schedule_block(w, ends[end - 1] != 0, out->order);
    }
}

ev_status model_schedule_make(const model_schedule_options *options, const vm_module *module,
                              const model_rows *rows, model_schedule *out, ev_error *err) {
    size_t count = (size_t)rows->count + 1;
    uint8_t *marks = calloc(count * 2, 1);
    model_schedule made = {calloc(count, sizeof *made.block_end), calloc(count, sizeof *made.order),
                           calloc(count, sizeof *made.next)};
    work w;
    bool open = open_work(&w, options, rows);
    if (!open || marks == NULL || made.block_end == NULL || made.order == NULL ||
        made.next == NULL) {
        model_schedule_free(&made);
        close_work(&w);
        free(marks);
        return ev_fail_memory(err, count * sizeof *w.nodes);
    }
    find_blocks(options->load_latency, module, rows, w.nodes, marks, marks + count);
    schedule_blocks(&w, marks, marks + count, &made);
    close_work(&w);
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
