/* Gate builds: made where the base is, in a worker or in the child of variant.c. */
#include "tuner/worker/gate_builds.h"

#include <stdlib.h>

void gate_builds_free(gate_builds *b) {
    ev_str_free(&b->arms);
    ev_str_free(&b->checked);
}

ev_status gate_builds_missed(const ir_base *base, const ir_genome *genome, const task_start *start,
                             const uint8_t *taken, ev_str *why, ev_error *err) {
    const ir_arms arms = {taken, start->assumed, start->assumed_count};
    return ir_arms_missed(base, genome, &arms, why, err);
}

/* *out: some edit is refused if no run takes any arm. */
static ev_status depends(const ir_base *base, const ir_genome *genome, const task_start *start,
                         bool *out, ev_error *err) {
    size_t bytes = ir_base_arms_bytes(base) + 1;
    uint8_t *none = calloc(bytes, 1);
    ev_str why = EV_STR_EMPTY;
    if (none == NULL)
        return ev_fail_memory(err, bytes);
    ev_status status = gate_builds_missed(base, genome, start, none, &why, err);
    *out = why.length > 0;
    ev_str_free(&why);
    free(none);
    return status;
}

static ev_status make_arms(const ir_base *base, const ir_genome *genome, const ir_build *build,
                           const task_start *start, gate_builds *out, ev_error *err) {
    bool needs = ir_build_bold(build) > 0 || ir_build_rounds(build);
    if (needs)
        EV_TRY(depends(base, genome, start, &needs, err));
    out->arms_bytes = ir_base_arms_bytes(base);
    return needs ? ir_base_arms_ptx(base, &out->arms, err) : EV_OK;
}

static ev_status make_checked(const ir_base *base, const ir_genome *genome, ev_str *out,
                              ev_error *err) {
    ir_build *checked = NULL;
    size_t bytes = 0;
    if (!ir_genome_asserts(genome))
        return EV_OK;
    EV_TRY(ir_build_new(base, genome, &checked, err));
    ir_build_check_asserts(checked);
    ev_status status = ir_build_run_all(checked, err);
    if (status == EV_OK) {
        const char *ptx = ir_build_ptx(checked, &bytes);
        ev_str_append_n(out, ptx, bytes);
        status = ev_str_status(out, err);
    }
    ir_build_free(checked);
    return status;
}

ev_status gate_builds_make(const ir_base *base, const ir_genome *genome, const ir_build *build,
                           const task_start *start, gate_builds *out, ev_error *err) {
    EV_TRY(make_arms(base, genome, build, start, out, err));
    return make_checked(base, genome, &out->checked, err);
}

void gate_builds_give(const gate_builds *b, candidate *out) {
    if (b->arms.length > 0) {
        out->arms_ptx = ev_str_text(&b->arms);
        out->arms_ptx_bytes = b->arms.length;
        out->arms_bytes = b->arms_bytes;
        out->arms_variable = IR_ARMS_VARIABLE;
    }
    if (b->checked.length > 0) {
        out->checked_ptx = ev_str_text(&b->checked);
        out->checked_bytes = b->checked.length;
        out->checked_mark = IR_ASSERT_MARK;
    }
}
