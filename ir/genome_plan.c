/* Launch plans of genomes: what structural edits do to the launch of a kernel. */
#include "ir/edit.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The expression of one axis after the edit; NULL: out of memory. */
static const char *changed(ev_arena *arena, const ir_edit *edit, const char *text) {
    long long by = (long long)edit->option;
    switch (edit->kind) {
    case IR_EDIT_COARSEN:
        return ev_arena_printf(arena, "ceil_div(%s, %lld)", text, by);
    case IR_EDIT_COARSEN_THREADS:
        return ev_arena_printf(arena, "div(%s, %lld)", text, by);
    default:
        return ev_arena_printf(arena, "(%s) * %lld", text, by);
    }
}

/* Which expression of the launch an edit changes; NULL: none. */
static const char **field_of(const ir_edit *edit, launch_rule *rule) {
    switch (edit->kind) {
    case IR_EDIT_COARSEN:
        return edit->form == IR_FORM_KEPT ? NULL : &rule->grid[edit->anchor.number];
    case IR_EDIT_COARSEN_THREADS:
        return &rule->block[edit->anchor.number];
    case IR_EDIT_SPLIT_LANES:
        return &rule->block[0];
    default:
        return NULL;
    }
}

/* The launch along x after `split-threads`: a block does the work of block / L of the threads that
 * it had, at least of a warp of them if strided, and of one where a team is several warps side by
 * side. EV_INFRA: out of memory. */
static ev_status split_threads(ev_arena *arena, const ir_edit *edit, launch_rule *rule,
                               ev_error *err) {
    long long size = (long long)edit->option;
    const char *block = rule->block[0];
    const char *least =
        edit->form == IR_FORM_STRIDED ? ev_arena_printf(arena, "min(32, %s)", block) : "1";
    bool alone = edit->form != IR_FORM_STRIDED && size > 32;
    const char *own = alone ? least : NULL;
    if (least && !alone)
        own = ev_arena_printf(arena, "max(div(%s, %lld), %s)", block, size, least);
    rule->block[0] = own ? ev_arena_printf(arena, "%lld * %s", size, own) : NULL;
    rule->grid[0] =
        own ? ev_arena_printf(arena, "(%s) * div(%s, %s)", rule->grid[0], block, own) : NULL;
    return rule->block[0] && rule->grid[0] ? EV_OK : ev_fail_memory(err, 1);
}

uint32_t ir_genome_unused_axis(const launch_rule *rule, uint32_t axis) {
    for (uint32_t other = axis + 1; other < IR_AXES; other++) {
        if (strcmp(rule->grid[other], "1") == 0 && strcmp(rule->block[other], "1") == 0)
            return other;
    }
    return IR_AXES;
}

uint32_t ir_genome_partner_axis(const launch_rule *rule, uint32_t axis) {
    uint32_t found = IR_AXES;
    for (uint32_t other = 0; other < IR_AXES; other++) {
        if (other != axis && strcmp(rule->grid[other], "1") != 0)
            found = other;
    }
    for (uint32_t other = 0; other < IR_AXES; other++) {
        if (other != axis && strcmp(rule->block[other], "1") != 0)
            found = other;
    }
    return found;
}

/* The number that an expression is; false: it is more than a number. */
static bool is_number(const char *text, long long *out) {
    char *end = NULL;
    *out = strtoll(text, &end, 10);
    return end != text && *end == '\0';
}

/* Gives the blocks along an axis other threads; the grid has the threads that it had, and those
 * that fill the last blocks. */
static bool set_block(ev_arena *arena, launch_rule *rule, uint32_t axis, const char *block) {
    const char *before = rule->block[axis];
    rule->grid[axis] =
        block ? ev_arena_printf(arena, "ceil_div((%s) * (%s), %s)", rule->grid[axis], before, block)
              : NULL;
    rule->block[axis] = block;
    return rule->grid[axis] != NULL;
}

/* The launch after `resize-block`. EV_BAD: no axis can give or take threads. */
static ev_status resize_block(ev_arena *arena, const ir_edit *edit, launch_rule *rule,
                              ev_error *err) {
    uint32_t axis = edit->anchor.number, other = IR_AXES;
    long long size = (long long)edit->option, a = 0, b = 0;
    const char *partner = NULL;
    if (edit->form == IR_FORM_BALANCED) {
        other = ir_genome_partner_axis(rule, axis);
        if (other == IR_AXES)
            return ev_fail(err, EV_BAD, "the launch has no axis beside %c", "xyz"[axis]);
        /* as a number where that is known: an axis of one thread is no partner any more */
        bool known = is_number(rule->block[axis], &a) && is_number(rule->block[other], &b);
        partner = known ? ev_arena_printf(arena, "%lld", a * b / size)
                        : ev_arena_printf(arena, "div((%s) * (%s), %lld)", rule->block[axis],
                                          rule->block[other], size);
    }
    bool made = set_block(arena, rule, axis, ev_arena_printf(arena, "%lld", size)) &&
                (other == IR_AXES || set_block(arena, rule, other, partner));
    return made ? EV_OK : ev_fail_memory(err, 1);
}

/* The launch after `delinearize`: columns along the edit's axis, rows along the next one that is
 * unused. EV_BAD: there is none. */
static ev_status delinearize(ev_arena *arena, const ir_edit *edit, launch_rule *rule,
                             ev_error *err) {
    uint32_t axis = edit->anchor.number, other = ir_genome_unused_axis(rule, axis);
    const char *name = edit->anchor.path;
    long long width = (long long)edit->option;
    if (other == IR_AXES)
        return ev_fail(err, EV_BAD, "the launch uses all axes behind %c", "xyz"[axis]);
    const char *grid = rule->grid[axis], *block = rule->block[axis];
    rule->grid[axis] = ev_arena_printf(arena, "ceil_div(%s, %lld)", name, width);
    rule->block[axis] = ev_arena_printf(arena, "%lld", width);
    rule->block[other] = ev_arena_printf(arena, "div(%s, %lld)", block, width);
    rule->grid[other] = ev_arena_printf(arena, "ceil_div(ceil_div((%s) * (%s), %s), div(%s, %lld))",
                                        grid, block, name, block, width);
    bool made = rule->grid[axis] && rule->block[axis] && rule->block[other] && rule->grid[other];
    return made ? EV_OK : ev_fail_memory(err, 1);
}

/* Edits that leave the launch as it is are sound as they are. */
static bool is_sound(const ir_edit *edit) {
    launch_rule any;
    if (edit->kind == IR_EDIT_SPLIT_THREADS)
        return edit->has_option && edit->option >= 1;
    if (edit->kind == IR_EDIT_DELINEARIZE)
        return edit->has_option && edit->option >= 1 && edit->anchor.kind == IR_ANCHOR_DIVISOR;
    bool takes_axis = edit->kind == IR_EDIT_COARSEN || edit->kind == IR_EDIT_COARSEN_THREADS ||
                      edit->kind == IR_EDIT_RESIZE_BLOCK;
    if (!takes_axis && !field_of(edit, &any))
        return true;
    return (!takes_axis || edit->anchor.kind == IR_ANCHOR_DIMENSION) && edit->has_option &&
           edit->option >= 1;
}

static ev_status change_rule(ev_arena *arena, const ir_edit *edit, launch_rule *rule,
                             ev_error *err) {
    const char **field = field_of(edit, rule);
    if (edit->kind == IR_EDIT_SPLIT_THREADS)
        EV_TRY(split_threads(arena, edit, rule, err));
    if (edit->kind == IR_EDIT_DELINEARIZE)
        EV_TRY(delinearize(arena, edit, rule, err));
    if (edit->kind == IR_EDIT_RESIZE_BLOCK)
        EV_TRY(resize_block(arena, edit, rule, err));
    if (field)
        *field = changed(arena, edit, *field);
    return !field || *field ? EV_OK : ev_fail_memory(err, 1);
}

/* The edit is of the main launch's kernel. */
ev_status ir_genome_plan_step(const ir_edit *edit, const launch_plan *from, ev_arena *arena,
                              const launch_plan **out, ev_error *err) {
    launch_rule *rules =
        ev_arena_copy(arena, from->launches, from->launch_count * sizeof *from->launches);
    launch_plan *plan = ev_arena_copy(arena, from, sizeof *from);
    if (!plan || !rules)
        return ev_fail_memory(err, sizeof *plan);
    if (!is_sound(edit))
        return ev_fail(err, EV_BAD, "%s: no dimension or no count", ir_edit_name(edit->kind));
    for (size_t i = 0; i < from->launch_count; i++) {
        if (strcmp(rules[i].entry, launch_plan_entry(from)) == 0)
            EV_TRY(change_rule(arena, edit, &rules[i], err));
    }
    plan->launches = rules;
    *out = plan;
    return EV_OK;
}

ev_status ir_genome_plan(const ir_genome *genome, const launch_plan *from, ev_arena *arena,
                         const launch_plan **out, ev_error *err) {
    *out = from;
    for (size_t i = 0; i < ir_genome_prefix_count(genome); i++)
        EV_TRY(ir_genome_plan_step(ir_genome_edit(genome, i), *out, arena, out, err));
    return EV_OK;
}

ev_status ir_genome_prefix_text(const ir_genome *genome, size_t count, ev_str *out, ev_error *err) {
    assert(count <= ir_genome_prefix_count(genome));
    for (size_t i = 0; i < count; i++)
        ev_str_printf(out, "%s ", ir_genome_edit(genome, i)->key.hex);
    return ev_str_status(out, err);
}
