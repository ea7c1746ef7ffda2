/* Dominators of a control-flow graph: Cooper, Harvey and Kennedy, "A Simple, Fast Dominance
 * Algorithm", 2001.
 *
 * `number_postorder` is a depth-first search with its own stack. `settle` visits the nodes in
 * reverse postorder and intersects the dominators of the predecessors, until no immediate
 * dominator changes. `meet` intersects: it walks up two chains of the tree until they join.
 * `number_tree` gives each node the interval [enter, leave] of its subtree, so that "a dominates
 * b" is two comparisons. */
#include "ir/dominance.h"

typedef struct work {
    const ir_graph *graph;
    uint32_t *post;  /* nodes in postorder */
    uint32_t *rank;  /* place in postorder, IR_NONE: not reached */
    uint32_t *stack; /* node and next successor, in pairs */
    uint32_t reached;
    uint32_t *pred_first;
    uint32_t *pred;
} work;

static bool allocate(work *w, const ir_graph *graph, ev_arena *arena) {
    uint32_t n = graph->count;
    uint32_t edges = graph->first[n];
    w->graph = graph;
    w->post = EV_NEW_ARRAY(arena, uint32_t, n + 1);
    w->rank = EV_NEW_ARRAY(arena, uint32_t, n + 1);
    w->stack = EV_NEW_ARRAY(arena, uint32_t, 2 * (size_t)n + 2);
    w->pred_first = EV_NEW_ARRAY(arena, uint32_t, (size_t)n + 2);
    w->pred = EV_NEW_ARRAY(arena, uint32_t, edges + 1);
    w->reached = 0;
    return w->post && w->rank && w->stack && w->pred_first && w->pred;
}

static void number_postorder(work *w) {
    const ir_graph *g = w->graph;
    enum { SEEN = UINT32_MAX - 1 };
    for (uint32_t n = 0; n < g->count; n++)
        w->rank[n] = IR_NONE;
    size_t depth = 1;
    w->stack[0] = 0;
    w->stack[1] = g->first[0];
    w->rank[0] = SEEN;
    while (depth > 0) {
        uint32_t node = w->stack[2 * depth - 2];
        uint32_t edge = w->stack[2 * depth - 1];
        if (edge == g->first[node + 1]) {
            w->rank[node] = w->reached;
            w->post[w->reached++] = node;
            depth--;
            continue;
        }
        w->stack[2 * depth - 1]++;
        uint32_t next = g->succ[edge];
        if (w->rank[next] != IR_NONE)
            continue;
        w->rank[next] = SEEN;
        w->stack[2 * depth] = next;
        w->stack[2 * depth + 1] = g->first[next];
        depth++;
    }
}

static void find_predecessors(work *w) {
    const ir_graph *g = w->graph;
    for (uint32_t e = 0; e < g->first[g->count]; e++)
        w->pred_first[g->succ[e] + 2]++;
    for (uint32_t n = 0; n + 1 < g->count; n++)
        w->pred_first[n + 2] += w->pred_first[n + 1];
    for (uint32_t n = 0; n < g->count; n++) {
        for (uint32_t e = g->first[n]; e < g->first[n + 1]; e++)
            w->pred[w->pred_first[g->succ[e] + 1]++] = n;
    }
}

static uint32_t meet(const work *w, const uint32_t *idom, uint32_t a, uint32_t b) {
    while (a != b) {
        while (w->rank[a] < w->rank[b])
            a = idom[a];
        while (w->rank[b] < w->rank[a])
            b = idom[b];
    }
    return a;
}

static uint32_t meet_predecessors(const work *w, const uint32_t *idom, uint32_t node) {
    uint32_t chosen = IR_NONE;
    for (uint32_t e = w->pred_first[node]; e < w->pred_first[node + 1]; e++) {
        uint32_t from = w->pred[e];
        if (w->rank[from] == IR_NONE || idom[from] == IR_NONE)
            continue;
        chosen = chosen == IR_NONE ? from : meet(w, idom, from, chosen);
    }
    return chosen;
}

static void settle(const work *w, uint32_t *idom) {
    for (uint32_t n = 0; n < w->graph->count; n++)
        idom[n] = IR_NONE;
    idom[0] = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t place = w->reached - 1; place-- > 0;) {
            uint32_t node = w->post[place];
            uint32_t chosen = meet_predecessors(w, idom, node);
            changed |= idom[node] != chosen;
            idom[node] = chosen;
        }
    }
    idom[0] = IR_NONE;
}

/* Sizes of subtrees bottom-up, then intervals top-down: no walk with a stack is needed, since a
 * dominator stands behind what it dominates in postorder. */
static void number_tree(work *w, ir_dominance *out) {
    uint32_t *next = w->stack; /* the number that a node's next child takes */
    for (uint32_t place = 0; place < w->reached; place++) {
        uint32_t node = w->post[place];
        out->leave[node]++;
        if (out->idom[node] != IR_NONE)
            out->leave[out->idom[node]] += out->leave[node];
    }
    for (uint32_t place = w->reached; place-- > 0;) {
        uint32_t node = w->post[place];
        uint32_t size = out->leave[node];
        uint32_t above = out->idom[node];
        out->enter[node] = above == IR_NONE ? 1 : next[above];
        if (above != IR_NONE)
            next[above] += size;
        next[node] = out->enter[node] + 1;
        out->leave[node] = out->enter[node] + size - 1;
    }
}

bool ir_dominance_make(const ir_graph *graph, ev_arena *arena, ir_dominance *out) {
    work w;
    *out = (ir_dominance){
        .count = graph->count,
        .idom = EV_NEW_ARRAY(arena, uint32_t, graph->count),
        .enter = EV_NEW_ARRAY(arena, uint32_t, graph->count),
        .leave = EV_NEW_ARRAY(arena, uint32_t, graph->count),
    };
    if (!out->idom || !out->enter || !out->leave || !allocate(&w, graph, arena))
        return false;
    number_postorder(&w);
    find_predecessors(&w);
    settle(&w, out->idom);
    number_tree(&w, out);
    return true;
}

bool ir_dominance_reaches(const ir_dominance *dominance, uint32_t node) {
    return dominance->enter[node] != 0;
}

bool ir_dominance_over(const ir_dominance *dominance, uint32_t a, uint32_t b) {
    return dominance->enter[a] <= dominance->enter[b] && dominance->enter[b] <= dominance->leave[a];
}
