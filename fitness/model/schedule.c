/* Schedule: the order in which the assembler would place the instructions of each straight-line
 * block.
 *
 * A GPU does not run PTX: ptxas moves loads up and their uses down. A scoreboard in text order
 * would charge waits that no chip has, and would reward edits that only move a load. So each block
 * is list-scheduled (Gibbons and Muchnick, "Efficient Instruction Scheduling for a Pipelined
 * Architecture", 1986).
 *
 * `find_heights` computes the longest chain of latencies behind each instruction. `put_in_order`
 * then picks one instruction after the other from a window, because a larger distance would cost
 * registers. Among the instructions whose predecessors are placed, `choose` takes the one that can
 * issue first, and among equals the one with the longest chain. Bit i of `open` is the instruction
 * i places behind the head of the window.
 *
 * blocks.c finds the dependences between the instructions. */
#include "fitness/model/schedule.h"

#include <stdlib.h>

typedef struct node {
    uint64_t ready;  /* cycle from which its operands are there */
    uint64_t height; /* cycles from its issue to the end of the longest chain behind it */
    uint32_t latency;
    uint8_t waits; /* how many that must come before it are left */
    bool is_done;
} node;

typedef struct work {
    const model_row *rows;
    const model_link *links;
    node *nodes;   /* by pc */
    uint64_t mask; /* of a link's bits: those in the window */
    uint32_t first, end, window;
} work;

static void find_heights(const work *w) {
    for (uint32_t pc = w->end; pc-- > w->first;) {
        node *n = &w->nodes[pc];
        uint64_t height = 0;
        for (uint64_t left = w->links[pc].feeds & w->mask; left != 0; left &= left - 1) {
            uint64_t behind = w->nodes[pc + (uint32_t)__builtin_ctzll(left) + 1].height;
            height = behind + n->latency > height ? behind + n->latency : height;
        }
        n->height = height;
    }
}

/* Of the `open`, which wait for nothing that is left; bit i is the one i behind the head. The first
 * that is left is always one of them. */
static uint32_t choose(const work *w, uint32_t head, uint64_t open, uint64_t cycle) {
    const node *best = &w->nodes[head];
    uint64_t best_wait = best->ready > cycle ? best->ready : cycle;
    for (uint64_t left = open & ~UINT64_C(1); left != 0; left &= left - 1) {
        const node *n = &w->nodes[head + (uint32_t)__builtin_ctzll(left)];
        uint64_t wait = n->ready > cycle ? n->ready : cycle;
        if (wait < best_wait || (wait == best_wait && n->height > best->height)) {
            best = n;
            best_wait = wait;
        }
    }
    return (uint32_t)(best - w->nodes);
}

/* Tells those that come after it; what is open then. */
static uint64_t feed(const work *w, uint32_t from, uint64_t cycle, uint32_t head, uint64_t open) {
    const node *source = &w->nodes[from];
    uint64_t ready = cycle + source->latency;
    for (uint64_t left = w->links[from].after & w->mask; left != 0; left &= left - 1) {
        uint32_t pc = from + (uint32_t)__builtin_ctzll(left) + 1;
        node *n = &w->nodes[pc];
        if ((w->links[from].feeds & left & -left) != 0 && n->ready < ready)
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
        cycle += w->rows[pc].slots;
        while (head < w->end && w->nodes[head].is_done) {
            head++;
            open = open >> 1 | entering(w, head);
        }
    }
}

static void fill_nodes(const work *w, uint32_t load_latency, uint32_t first, uint32_t end) {
    for (uint32_t pc = first; pc < end; pc++) {
        const model_row *row = &w->rows[pc];
        w->nodes[pc] =
            (node){.latency = row->kind == ROW_LOAD ? load_latency : row->latency,
                   .waits = (uint8_t)__builtin_popcountll(w->links[pc].before & w->mask)};
    }
}

static void schedule_blocks(work *w, const model_blocks *blocks, uint32_t count, uint32_t *order) {
    for (uint32_t first = 0; first < count; first = w->end) {
        w->first = first;
        w->end = blocks->block_end[first];
        find_heights(w);
        put_in_order(w, order);
    }
}

size_t model_schedule_room(const model_insns *insns) {
    return ((size_t)insns->count + 1) * sizeof(node);
}

void model_schedule_block(const model_schedule_options *options, const model_insns *insns,
                          const model_rows *rows, uint32_t first, void *room,
                          model_schedule *schedule) {
    work w = {.rows = rows->rows,
              .links = insns->blocks.links,
              .nodes = room,
              .mask = (UINT64_C(1) << (options->window - 1)) - 1,
              .first = first,
              .end = insns->blocks.block_end[first],
              .window = options->window};
    fill_nodes(&w, options->load_latency, first, w.end);
    find_heights(&w);
    put_in_order(&w, schedule->order);
}

ev_status model_schedule_make(const model_schedule_options *options, const model_insns *insns,
                              const model_rows *rows, model_schedule *out, ev_error *err) {
    size_t count = (size_t)insns->count + 1;
    work w = {.rows = rows->rows,
              .links = insns->blocks.links,
              .nodes = malloc(count * sizeof *w.nodes),
              .mask = (UINT64_C(1) << (options->window - 1)) - 1,
              .window = options->window};
    uint32_t *order = calloc(count, sizeof *order);
    if (w.nodes == NULL || order == NULL) {
        free(w.nodes);
        free(order);
        return ev_fail_memory(err, count * sizeof *w.nodes);
    }
    fill_nodes(&w, options->load_latency, 0, insns->count);
    schedule_blocks(&w, &insns->blocks, insns->count, order);
    free(w.nodes);
    *out = (model_schedule){insns->blocks.block_end, insns->blocks.next, order};
    return EV_OK;
}

void model_schedule_free(model_schedule *schedule) {
    free(schedule->order);
    *schedule = (model_schedule){0};
}
