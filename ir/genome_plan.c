/* Launch plans of genomes: what structural edits do to the launch of a kernel. */
#include "ir/edit.h"

#include <assert.h>

static const char *divided(ev_arena *arena, const char *text, int64_t by, bool up) {
    return ev_arena_printf(arena, up ? "ceil_div(%s, %lld)" : "div(%s, %lld)", text, (long long)by);
}

ev_status ir_genome_plan_step(const ir_edit *edit, const launch_plan *from, ev_arena *arena,
                              const launch_plan **out, ev_error *err) {
    *out = from;
    if (edit->kind != IR_EDIT_COARSEN && edit->kind != IR_EDIT_COARSEN_THREADS)
        return EV_OK;
    if (edit->anchor.kind != IR_ANCHOR_DIMENSION || !edit->has_option || edit->option < 1)
        return ev_fail(err, EV_BAD, "%s: no dimension or no count", ir_edit_name(edit->kind));
    launch_plan *plan = ev_arena_copy(arena, from, sizeof *from);
    launch_rule *rules =
        ev_arena_copy(arena, from->launches, from->launch_count * sizeof *from->launches);
    if (!plan || !rules)
        return ev_fail_memory(err, sizeof *plan);
    bool grid = edit->kind == IR_EDIT_COARSEN;
    const char **field = &(grid ? rules[0].grid : rules[0].block)[edit->anchor.number];
    *field = divided(arena, *field, edit->option, grid);
    plan->launches = rules;
    *out = plan;
    return *field ? EV_OK : ev_fail_memory(err, 1);
}

ev_status ir_genome_plan(const ir_genome *genome, const launch_plan *from, ev_arena *arena,
                         const launch_plan **out, ev_error *err) {
    *out = from;
    for (size_t i = 0; i < ir_genome_prefix_count(genome); i++)
        EV_TRY(ir_genome_plan_step(ir_genome_edit(genome, i), *out, arena, out, err));
    return EV_OK;
}

ev_status ir_genome_prefix_text(const ir_genome *genome, ev_str *out, ev_error *err) {
    for (size_t i = 0; i < ir_genome_prefix_count(genome); i++)
        ev_str_printf(out, "%s ", ir_genome_edit(genome, i)->key.hex);
    return ev_str_status(out, err);
}
