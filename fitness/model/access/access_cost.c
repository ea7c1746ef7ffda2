/* Access costs: what one request takes of the L1 or of the shared memory. */
#include "fitness/model/access/access_cost.h"

#include <assert.h>
#include <math.h>

/* What a request brings the lanes, in bytes: a pass is as wide as a register of a warp. */
static inline double lane_bytes(const vm_event *e, const model_row *row) {
    double wanted = __builtin_popcount(e->active) * row->access_bytes, most = e->passes * 128.0;
    return wanted < most ? wanted : most;
}

/* Cycles of the L1 for one request: its tags are looked up some lines a cycle, its banks give their
 * words in passes, and what the lanes get crosses a bus of so many bytes a cycle. Against measured
 * strided loads: see docs/model.md. */
static inline double l1_cycles(const model *m, const vm_event *e, const model_row *row) {
    assert(e->lines <= L1_MOST_LINES);
    double most = m->l1_tag_cycles[e->lines];
    double bus = lane_bytes(e, row) * m->l1_byte_cycles, banks = e->passes;
    most = bus > most ? bus : most;
    return banks > most ? banks : most;
}

/* Cycles of the shared memory for one request: passes over its banks, and the bus to the lanes. */
static double shared_cycles(const model *m, const vm_event *e, const model_row *row) {
    double bus = lane_bytes(e, row) * m->shared_byte_cycles;
    return fmax(fmax(e->passes, m->lsu_cycles), bus);
}

access_cost *model_access_cost(model *m, const vm_event *e, uint32_t pc, const model_row *row) {
    access_cost *c = &m->costs[pc];
    if (c->active == e->active && c->lines == e->lines && c->passes == e->passes)
        return c;
    c->active = e->active;
    c->lines = e->lines;
    c->passes = e->passes;
    c->path = c->later = 0;
    if (row->is_joined) {
        c->path = 0;
    } else if (row->kind == ROW_SHARED) {
        c->path = (uint64_t)(shared_cycles(m, e, row) * UNITS);
        c->later = e->passes > 1 ? e->passes - 1u : 0;
    } else if (row->kind != ROW_ATOMIC) {
        double cycles = l1_cycles(m, e, row);
        c->path = (uint64_t)(cycles * UNITS);
        c->later = cycles > 1 ? (uint64_t)cycles - 1 : 0;
    }
    return c;
}
