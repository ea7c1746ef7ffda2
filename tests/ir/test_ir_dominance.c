/* Dominators against the definition: a dominates b if b cannot be reached when a is taken away. */
#include "base/pcg.h"
#include "ir/dominance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 24, MOST_EDGES = 3 * MOST };

typedef struct random_graph {
    uint32_t first[MOST + 1];
    uint32_t succ[MOST_EDGES];
    ir_graph graph;
} random_graph;

static void draw_graph(random_graph *g, ev_pcg *rng) {
    uint32_t count = 1 + ev_pcg_below(rng, MOST), edges = 0;
    for (uint32_t n = 0; n < count; n++) {
        g->first[n] = edges;
        for (uint32_t left = ev_pcg_below(rng, 4); left > 0; left--)
            g->succ[edges++] = ev_pcg_below(rng, count);
    }
    g->first[count] = edges;
    g->graph = (ir_graph){count, g->first, g->succ};
}

/* Which nodes the root reaches without passing through `without`. */
static void reach(const ir_graph *g, uint32_t without, bool seen[MOST]) {
    memset(seen, 0, MOST * sizeof seen[0]);
    seen[0] = without != 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t n = 0; n < g->count; n++) {
            for (uint32_t e = g->first[n]; seen[n] && e < g->first[n + 1]; e++) {
                uint32_t to = g->succ[e];
                changed |= to != without && !seen[to];
                seen[to] |= to != without;
            }
        }
    }
}

static void check_graph(const ir_graph *g, ev_arena *arena) {
    ir_dominance dominance;
    bool all[MOST], some[MOST];
    assert_true(ir_dominance_make(g, arena, &dominance));
    reach(g, UINT32_MAX, all);
    for (uint32_t n = 0; n < g->count; n++)
        assert_int_equal(ir_dominance_reaches(&dominance, n), all[n]);
    for (uint32_t a = 0; a < g->count; a++) {
        reach(g, a, some);
        for (uint32_t b = 0; b < g->count; b++) {
            if (all[a] && all[b])
                assert_int_equal(ir_dominance_over(&dominance, a, b), !some[b]);
        }
    }
}

static void random_graphs_agree_with_the_definition(void **state) {
    (void)state;
    ev_pcg rng = ev_pcg_seed(42, 54);
    ev_arena *arena = ev_arena_new();
    for (int i = 0; i < 3000; i++) {
        random_graph g;
        draw_graph(&g, &rng);
        check_graph(&g.graph, arena);
        ev_arena_reset(arena);
    }
    ev_arena_free(arena);
}

/* The irreducible graph of the paper's figure 4, whose dominators take more than one round. */
static void the_papers_graph(void **state) {
    (void)state;
    /* 0 -> 1 2; 1 -> 3; 2 -> 4 5; 3 -> 4; 4 -> 3 5; 5 -> 4, with 0 the paper's node 6. */
    static const uint32_t first[] = {0, 2, 3, 5, 6, 8, 9};
    static const uint32_t succ[] = {1, 2, 3, 4, 5, 4, 3, 5, 4};
    ir_graph graph = {6, first, succ};
    ir_dominance dominance;
    ev_arena *arena = ev_arena_new();
    assert_true(ir_dominance_make(&graph, arena, &dominance));
    for (uint32_t n = 1; n < 6; n++)
        assert_int_equal(dominance.idom[n], 0);
    assert_int_equal(dominance.idom[0], IR_NONE);
    ev_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs_agree_with_the_definition),
        cmocka_unit_test(the_papers_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
