/* Mutation: draws one more edit at a place of the parent's edited module, by rejection sampling.
 *
 * `sites` of the edit kind lists all places. A place is drawn by the weights of ir_hints.heat,
 * then `draw` completes the edit and `ir_work_apply` tries it. A draw that fails, repeats an edit
 * of the genome, or is in the tabu list (ir_hints.spent) is rejected, and after DRAWS draws the
 * kind counts as having no place. The edited module is kept for the next stage, so that a child
 * costs one edit and not the replay of all. */
#include "ir/internal.h"

#include <stdlib.h>
#include <string.h>

/* Most draws of site and operands before a kind counts as having no place. */
enum { DRAWS = 12 };

/* Makes the module of the base with the first `edits` edits of the genome, except those of the kind
 * `without`; IR_EDIT_COUNT: all of them. */
static ev_status open_edited(const ir_base *base, const ir_genome *genome, size_t edits,
                             ir_edit_kind without, ir_work **out, ev_error *err) {
    ir_work *work;
    EV_TRY(ir_work_open(base, &work, err));
    for (size_t i = 0; i < edits; i++) {
        if (ir_genome_edit_kind(genome, i) == without)
            continue;
        ev_status status = ir_work_replay(work, ir_genome_edit(genome, i), err);
        if (status != EV_OK) {
            ir_work_close(work);
            return ev_wrap(err, status, "edit %zu (%s)", i,
                           ir_edit_name(ir_genome_edit_kind(genome, i)));
        }
    }
    *out = work;
    return EV_OK;
}

static void drop_edited(ir_work **edited) {
    ir_work_close(*edited);
    *edited = NULL;
}

static ir_sites list_sites(ir_work *work, ir_edit_kind kind) {
    ir_sites sites = {.arena = work->arena};
    ir_rule_of(kind)->sites(work, &sites);
    return sites;
}

/* The weight of a place; 1 if the place is no instruction of the base, as for knobs and arguments.
 */
static double heat_of(const ir_work *work, const double *heat, ir_site site) {
    const ir_node *node = site.id < work->count ? &work->nodes[site.id] : NULL;
    return !node || node->added ? 1 : heat[node->number];
}

/* Draws a place by the weights of the places' instructions; uniformly if all weights are 0. */
static ir_site draw_site(const ir_work *work, const ir_sites *sites, const double *heat,
                         ev_pcg *rng) {
    double total = 0;
    for (uint32_t i = 0; heat && i < sites->count; i++)
        total += heat_of(work, heat, sites->items[i]);
    if (!heat || !(total > 0))
        return sites->items[ev_pcg_below(rng, sites->count)];
    double at = ev_pcg_unit(rng) * total;
    for (uint32_t i = 0; i < sites->count; i++) {
        at -= heat_of(work, heat, sites->items[i]);
        if (at < 0)
            return sites->items[i];
    }
    return sites->items[sites->count - 1];
}

static bool is_spent(const ir_hints *hints, const ir_edit *edit) {
    json_t *json = hints->spent_count > 0 ? ir_edit_to_json(edit) : NULL;
    uint64_t mark = json ? ir_edit_mark(json) : 0;
    json_decref(json);
    for (size_t i = 0; mark != 0 && i < hints->spent_count; i++) {
        if (hints->spent[i] == mark)
            return true;
    }
    return false;
}

/* Seals an edit. EV_BAD: the parent has it. */
static ev_status seal_new(const ir_genome *parent, ir_edit *edit, ev_error *err) {
    if (!ir_edit_seal(edit))
        return ev_fail_memory(err, sizeof *edit);
    if (ir_genome_holds(parent, &edit->key))
        return ev_fail(err, EV_BAD, "%s: the parent has this edit", ir_edit_name(edit->kind));
    return EV_OK;
}

/* Tries one draw. *spoilt: the module was altered and must be made anew. */
static ev_status draw_once(ir_work *work, const ir_genome *parent, const ir_sites *sites,
                           const ir_hints *hints, ev_pcg *rng, ir_edit *edit, bool *spoilt,
                           ev_error *err) {
    ir_site site = draw_site(work, sites, hints->heat, rng);
    *spoilt = false;
    work->tag = 0;
    if (!ir_rule_of(edit->kind)->draw(work, site, rng, edit))
        return ev_fail(err, EV_BAD, "%s: no operands for it there", ir_edit_name(edit->kind));
    if (is_spent(hints, edit))
        return ev_fail(err, EV_BAD, "%s: the drawn edit is in the tabu list",
                       ir_edit_name(edit->kind));
    bool whole = ir_edit_only_marks(edit->kind);
    if (whole)
        EV_TRY(seal_new(parent, edit, err));
    *spoilt = true;
    EV_TRY(ir_work_apply(work, edit, rng, err));
    if (!whole)
        EV_TRY(seal_new(parent, edit, err));
    ir_work_seal(work, edit->tag);
    return EV_OK;
}

/* Draws until an edit works that the parent lacks. `*edited`, the parent's or NULL, becomes the
 * child's; a spoilt module is freed. */
static ev_status draw_edit(const ir_base *base, const ir_genome *parent, ir_edit_kind kind,
                           const ir_hints *hints, ev_pcg *rng, ir_work **edited, ir_edit *out,
                           ev_error *err) {
    ir_sites sites = {0};
    ev_status status = EV_BAD;
    for (int i = 0; i < DRAWS && status == EV_BAD; i++) {
        if (!*edited)
            EV_TRY(open_edited(base, parent, ir_genome_edit_count(parent), IR_EDIT_COUNT, edited,
                               err));
        if (!sites.arena)
            sites = list_sites(*edited, kind);
        if (sites.count == 0) {
            status = ev_fail(err, EV_BAD, "%s: no place for it (it needs %s)", ir_edit_name(kind),
                             ir_edit_needs(kind));
            break;
        }
        ir_edit edit = {.kind = kind};
        bool spoilt;
        status = draw_once(*edited, parent, &sites, hints, rng, &edit, &spoilt, err);
        if (status == EV_OK)
            *out = edit;
        else
            ir_edit_clear(&edit);
        if (status != EV_OK && spoilt) {
            drop_edited(edited);
            sites = (ir_sites){0};
        }
    }
    return status;
}

/* Whether a knob replaces one of the parent's, whose traces stay in the parent's module. The
 * pipeline leaves no traces. */
static bool loses_traces(const ir_genome *parent, ir_edit_kind kind) {
    bool loses = false;
    for (size_t i = 0; i < ir_genome_edit_count(parent); i++)
        loses |= ir_genome_edit_kind(parent, i) == kind;
    return loses && ir_edit_is_knob(kind) && kind != IR_EDIT_PIPELINE;
}

static bool knobs_fit(const ir_work *work, const ir_genome *genome, ir_edit_kind kind) {
    bool fit = true;
    for (size_t i = 0; i < ir_genome_edit_count(genome); i++)
        fit &=
            ir_genome_edit_kind(genome, i) != kind || ir_knob_fits(work, ir_genome_edit(genome, i));
    return fit;
}

/* Opens the parent's module without the knob that is replaced, as the child will have it. True: the
 * parent's own knob fits there, so draws are the same as in the parent's module. False: no module
 * was opened. */
static bool open_without(const ir_base *base, const ir_genome *parent, ir_edit_kind kind,
                         ir_work **edited) {
    if (*edited || kind == IR_EDIT_MAX_THREADS ||
        open_edited(base, parent, ir_genome_edit_count(parent), kind, edited, NULL) != EV_OK)
        return false;
    if (knobs_fit(*edited, parent, kind))
        return true;
    drop_edited(edited);
    return false;
}

ev_status ir_mutate_edited(const ir_base *base, const ir_genome *parent, ir_edit_kind kind,
                           const ir_hints *hints, ev_pcg *rng, ir_edited **edited, ir_genome **out,
                           ev_error *err) {
    static const ir_hints nothing = {0};
    ir_edit edit;
    bool loses = loses_traces(parent, kind);
    bool without = loses && open_without(base, parent, kind, edited);
    ev_status status =
        draw_edit(base, parent, kind, hints ? hints : &nothing, rng, edited, &edit, err);
    /* Drops a module that is not the child's or, after a failure, not the parent's. */
    if ((status == EV_OK && loses && !without) || (status != EV_OK && without))
        drop_edited(edited);
    EV_TRY(status);
    ir_genome *child = ir_genome_clone(parent);
    if (!child)
        ir_edit_clear(&edit);
    if (!child || !ir_genome_append(child, edit)) {
        ir_genome_free(child);
        drop_edited(edited);
        return ev_fail_memory(err, sizeof edit);
    }
    *out = child;
    return EV_OK;
}

ev_status ir_mutate(const ir_base *base, const ir_genome *parent, ir_edit_kind kind,
                    const ir_hints *hints, ev_pcg *rng, ir_genome **out, ev_error *err) {
    ir_edited *edited = NULL;
    ev_status status = ir_mutate_edited(base, parent, kind, hints, rng, &edited, out, err);
    ir_edited_free(edited);
    return status;
}

void ir_base_sites(const ir_base *base, size_t sites[IR_EDIT_COUNT]) {
    memset(sites, 0, IR_EDIT_COUNT * sizeof sites[0]);
    ir_work *work;
    if (ir_work_open(base, &work, NULL) != EV_OK)
        return;
    for (int kind = 0; kind < IR_EDIT_COUNT; kind++)
        sites[kind] = list_sites(work, (ir_edit_kind)kind).count;
    ir_work_close(work);
}

ev_status ir_describe_edit(const ir_base *base, const ir_genome *genome, size_t index, ev_str *out,
                           ev_error *err) {
    ir_work *work;
    EV_TRY(open_edited(base, genome, index, IR_EDIT_COUNT, &work, err));
    const ir_edit *edit = ir_genome_edit(genome, index);
    work->tag = edit->tag;
    bool bold = edit->repair_count > 0 || ir_is_bold_at(work, edit);
    ir_rule_of(edit->kind)->describe(work, edit, out);
    if (edit->repair_count > 0)
        ev_str_printf(out, " (%zu repair%s)", edit->repair_count,
                      edit->repair_count == 1 ? "" : "s");
    if (bold)
        ev_str_printf(out, IR_BOLD_MARK "%s: %s]", ir_edit_is_bold(edit->kind) ? "" : " here",
                      ir_edit_because(edit->kind));
    ir_work_close(work);
    return EV_OK;
}
