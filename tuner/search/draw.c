/* Draw: makes a child's genome by crossover, stock, macros and edits, in the order of the recipe's
 * steps (draw_steps). */
#include "tuner/search/draw.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#define CROSSOVER_TRIES 6
#define CHAIN 4 /* followers of one edit, at most */

/* ---- macros ---- */

ev_status draw_with_macro(const ir_genome *genome, const task_macro *macro, int64_t value,
                          bool keep_edits, ir_genome **out, ev_error *err) {
    ir_genome *own = ir_genome_clone(genome);
    if (!own)
        return ev_fail_memory(err, 0);
    if (!keep_edits)
        ir_genome_keep_knobs(own);
    ev_status status = EV_OK;
    if (value == macro->otherwise)
        ir_genome_unset_macro(own, macro->name);
    else
        status = ir_genome_set_macro(own, macro->name, value, err);
    if (status == EV_OK)
        *out = own;
    else
        ir_genome_free(own);
    return status;
}

int64_t draw_macro_value(const ir_genome *genome, const task_macro *macro) {
    for (size_t i = 0; i < ir_genome_macro_count(genome); i++) {
        if (strcmp(ir_genome_macro_name(genome, i), macro->name) == 0)
            return ir_genome_macro_value(genome, i);
    }
    return macro->otherwise;
}

/* ---- one step ---- */

typedef struct drawing {
    const task *t;
    const draw_bases *bases;
    const recipe *recipe;
    const draw_links *links; /* NULL: none */
    ev_pcg rng;
    drawn_child child;
} drawing;

void drawn_child_free(drawn_child *child) {
    ir_edited_free(child->edited);
    ir_genome_free(child->genome);
    *child = (drawn_child){0};
}

/* Gives the genome for a change other than a drawn edit; the edited module becomes invalid. */
static ir_genome *unedited(drawing *d) {
    ir_edited_free(d->child.edited);
    d->child.edited = NULL;
    return d->child.genome;
}

static void take(drawing *d, ir_genome *genome) {
    drawn_child_free(&d->child);
    d->child.genome = genome;
}

/* Whether the unmodified start is wrong at the genome's macros. */
static bool is_wrong(const drawing *d, const ir_genome *genome) {
    uint64_t mark = d->recipe->wrong_count > 0 ? wrong_mark(genome) : 0;
    for (unsigned i = 0; i < d->recipe->wrong_count; i++) {
        if (d->recipe->wrong[i] == mark)
            return true;
    }
    return false;
}

/* Gives the macro the value at `at`, or the next one that is another and not known to be wrong. */
static ev_status set_macro(drawing *d, const task_macro *macro, size_t at, bool keep_edits,
                           ev_error *err) {
    int64_t now = draw_macro_value(d->child.genome, macro);
    for (size_t i = 0; i < macro->value_count; i++, at = (at + 1) % macro->value_count) {
        ir_genome *child = NULL;
        if (macro->values[at] == now)
            continue;
        EV_TRY(draw_with_macro(d->child.genome, macro, macro->values[at], keep_edits, &child, err));
        if (!is_wrong(d, child)) {
            take(d, child);
            return EV_OK;
        }
        ir_genome_free(child);
    }
    return ev_fail(err, EV_BAD, "the start is wrong at all other values of %s", macro->name);
}

static ev_status step_macro(drawing *d, ev_error *err) {
    const task_start *start = task_find_start(d->t, ir_genome_start(d->child.genome));
    if (!start || start->macro_count == 0)
        return ev_fail(err, EV_BAD, "the start has no macros");
    const task_macro *macro = &start->macros[ev_pcg_below(&d->rng, (uint32_t)start->macro_count)];
    if (macro->value_count < 2)
        return ev_fail(err, EV_BAD, "the macro %s has one value only", macro->name);
    size_t at = ev_pcg_below(&d->rng, (uint32_t)macro->value_count);
    return set_macro(d, macro, at, ev_pcg_below(&d->rng, 2) != 0, err);
}

/* The index of a genome's pipeline edit; SIZE_MAX: none. */
static size_t find_pipeline(const ir_genome *genome) {
    for (size_t i = 0; i < ir_genome_edit_count(genome); i++) {
        if (ir_genome_edit_kind(genome, i) == IR_EDIT_PIPELINE)
            return i;
    }
    return SIZE_MAX;
}

/* Drops a random edit; a structural one only from a skeleton, since local edits need the base that
 * they refer to. The pipeline edit is exchanged, not dropped: without one, a build takes the
 * default pipeline, which needs three times as long. Minimisation decides later whether the winner
 * keeps the edit. */
static ev_status step_drop(drawing *d, ev_error *err) {
    size_t count = ir_genome_edit_count(d->child.genome);
    size_t at = count > 0 ? ev_pcg_below(&d->rng, (uint32_t)count) : 0;
    bool is_skeleton = ir_genome_is_skeleton(d->child.genome);
    for (size_t i = 0; i < count; i++, at = (at + 1) % count) {
        ir_edit_kind kind = ir_genome_edit_kind(d->child.genome, at);
        if (kind == IR_EDIT_PIPELINE || (ir_edit_is_structural(kind) && !is_skeleton))
            continue;
        ir_genome_remove(unedited(d), at);
        if (ir_edit_is_structural(kind))
            ir_genome_keep_knobs(d->child.genome);
        return EV_OK;
    }
    return ev_fail(err, EV_BAD, "there is no edit to drop");
}

/* Appends the edits of a genome from `at` on, and drops those that belong to its base. */
static void append_rest(ir_genome *child, const ir_genome *whole, size_t at) {
    for (size_t i = at; i < ir_genome_edit_count(whole); i++)
        (void)ir_genome_append_from(child, whole, i); /* false: the child has the edit */
    ir_genome_keep_knobs(child);
}

/* Puts the one structural edit of a genome into the child's prefix, at its usual place. */
static bool insert_structure(drawing *d, const ir_genome *entry) {
    const ir_genome *whole = d->child.genome;
    size_t at = ir_structure_usual_place(whole, ir_genome_edit_kind(entry, 0));
    ev_sha256 key = ir_genome_edit_key(entry, 0);
    ir_genome *child = ir_genome_holds(whole, &key) ? NULL : ir_genome_part(whole, 0, at);
    if (!child)
        return false;
    (void)ir_genome_append_from(child, entry, 0);
    append_rest(child, whole, at);
    take(d, child);
    return true;
}

/* Adds the one edit of a stock entry. False: the child has the edit already. */
static bool add_stock(drawing *d, const ir_genome *entry) {
    if (ir_genome_edit_count(entry) != 1)
        return false;
    if (ir_genome_prefix_count(entry) == 1)
        return insert_structure(d, entry);
    return ir_genome_append_from(unedited(d), entry, 0);
}

/* Gives one structural edit another option or form. */
static ev_status step_retune(drawing *d, ev_error *err) {
    if (ir_genome_prefix_count(d->child.genome) == 0)
        return ev_fail(err, EV_BAD, "there is no structural edit");
    ir_genome *child = ir_genome_retune(d->child.genome, &d->rng);
    if (!child)
        return ev_fail(err, EV_BAD, "the structural edit has no other option");
    take(d, child);
    return EV_OK;
}

/* Moves one structural edit among the others: what an edit finds depends on those before it. */
static ev_status step_reorder(drawing *d, ev_error *err) {
    if (ir_genome_prefix_count(d->child.genome) < 2)
        return ev_fail(err, EV_BAD, "there are no two structural edits");
    ir_genome *child = ir_genome_reorder(d->child.genome, &d->rng);
    if (!child)
        return ev_fail_memory(err, 0);
    take(d, child);
    return EV_OK;
}

/* The child with its first `at` structural edits alone; the others follow the new one. */
static ev_status draw_inside(drawing *d, ir_edit_kind kind, const ir_hints *hints, size_t at,
                             ir_genome **out, ev_error *err) {
    const ir_genome *whole = d->child.genome;
    ir_genome *first = ir_genome_part(whole, 0, at);
    if (!first)
        return ev_fail_memory(err, 0);
    ev_status status =
        d->bases->structure(d->bases->context, first, kind, hints, &d->rng, out, err);
    ir_genome_free(first);
    EV_TRY(status);
    append_rest(*out, whole, at);
    return EV_OK;
}

/* Adds an edit that uses what `kind` makes, at the end of the prefix, and then one that uses what
 * that edit makes, and so on: each follower in half of the draws. That a follower finds no place is
 * no failure. */
static ev_status follow(drawing *d, ir_edit_kind kind, const ir_hints *hints, ev_error *err) {
    for (unsigned added = 0, at = 0; added < CHAIN; at++) {
        ir_edit_kind next = ir_structure_follower(kind, at);
        ir_genome *child = NULL;
        if (next == IR_EDIT_COUNT)
            return EV_OK;
        if (ev_pcg_below(&d->rng, 2) == 0 ||
            (d->recipe->without >> (next - IR_EDIT_LOCAL_COUNT) & 1))
            continue;
        ev_status status = d->bases->structure(d->bases->context, d->child.genome, next, hints,
                                               &d->rng, &child, err);
        if (status == EV_BAD)
            continue;
        EV_TRY(status);
        take(d, child);
        kind = next;
        at = UINT_MAX; /* the first follower of that edit comes next */
        added++;
    }
    return EV_OK;
}

/* The place of a new structural edit in the prefix: what an edit finds depends on those before it.
 * Three draws of five take the usual place, one the end and one any place. */
static size_t choose_place(drawing *d, ir_edit_kind kind) {
    size_t count = ir_genome_prefix_count(d->child.genome);
    uint32_t at = ev_pcg_below(&d->rng, 5);
    if (at < 3)
        return ir_structure_usual_place(d->child.genome, kind);
    return at == 3 ? count : ev_pcg_below(&d->rng, (uint32_t)count + 1);
}

/* Draws a structural edit. */
static ev_status step_structure(drawing *d, ir_edit_kind kind, ev_error *err) {
    const recipe *r = d->recipe;
    ir_hints hints = {.spent = r->tabu, .spent_count = r->tabu_count};
    ir_genome *child = NULL;
    size_t at = choose_place(d, kind);
    if (at < ir_genome_prefix_count(d->child.genome))
        EV_TRY(draw_inside(d, kind, &hints, at, &child, err));
    else
        EV_TRY(d->bases->structure(d->bases->context, d->child.genome, kind, &hints, &d->rng,
                                   &child, err));
    take(d, child);
    return follow(d, kind, &hints, err);
}

/* Adds one to three edits of the stock, beginning at a random place. */
static ev_status step_combine(drawing *d, ev_error *err) {
    size_t count = d->recipe->stock_count;
    if (count == 0)
        return ev_fail(err, EV_BAD, "the stock is empty");
    size_t first = ev_pcg_below(&d->rng, (uint32_t)count);
    size_t wanted = 1 + ev_pcg_below(&d->rng, 3);
    bool changed = false;
    for (size_t i = 0; i < wanted && i < count; i++)
        changed = add_stock(d, d->recipe->stock[(first + i) % count]) || changed;
    return changed ? EV_OK : ev_fail(err, EV_BAD, "the stock adds nothing");
}

static ev_status step_edit(drawing *d, ir_edit_kind kind, ev_error *err) {
    const ir_base *base = NULL;
    if (ir_edit_is_structural(kind))
        return step_structure(d, kind, err);
    EV_TRY(d->bases->get(d->bases->context, d->child.genome, &base, err));
    const recipe *r = d->recipe;
    ir_hints hints = {.spent = r->tabu, .spent_count = r->tabu_count};
    if (r->by_heat && d->bases->heat)
        EV_TRY(d->bases->heat(d->bases->context, d->child.genome, &hints.heat, err));
    ir_genome *child = NULL;
    EV_TRY(ir_mutate_edited(base, d->child.genome, kind, &hints, &d->rng, &d->child.edited, &child,
                            err));
    ir_genome_free(d->child.genome);
    d->child.genome = child;
    return EV_OK;
}

static ev_status take_arm(drawing *d, unsigned arm, ev_error *err) {
    if (arm < IR_EDIT_COUNT)
        return step_edit(d, (ir_edit_kind)arm, err);
    switch ((operator_kind)(arm - IR_EDIT_COUNT)) {
    case OPERATOR_MACRO:
        return step_macro(d, err);
    case OPERATOR_DROP:
        return step_drop(d, err);
    case OPERATOR_COMBINE:
        return step_combine(d, err);
    case OPERATOR_RETUNE:
        return step_retune(d, err);
    case OPERATOR_REORDER:
        return step_reorder(d, err);
    case OPERATOR_START:
    case OPERATOR_CROSSOVER:
    case OPERATOR_COUNT:
        break;
    }
    return ev_fail(err, EV_BAD, "'%s' is no step", arm_name(arm));
}

static void note(ev_str *operators, unsigned arm) {
    if (operators->length > 0)
        ev_str_char(operators, ',');
    ev_str_append(operators, arm_name(arm));
}

/* Takes the first arm of the step that has a place. */
static ev_status take_step(drawing *d, const recipe_step *step, ev_str *operators, ev_error *err) {
    ev_status status = ev_fail(err, EV_BAD, "an empty step");
    for (unsigned i = 0; i < step->count; i++) {
        status = take_arm(d, step->arms[i], err);
        if (status == EV_OK)
            note(operators, step->arms[i]);
        if (status != EV_BAD)
            return status;
    }
    return status;
}

/* ---- the child ---- */

/* The child's stream of random numbers. Bit 31 of the island makes it differ from the stream with
 * which the coordinator chose the parents. */
static ev_pcg random_of(const recipe_stream *s) {
    return ev_pcg_child(s->seed, s->island | 0x80000000u, s->generation, (uint32_t)s->child);
}

/* Appends the edit that one of the child's edits is linked to, from a parent that has it. */
static void keep_link(drawing *d, const edit_pair *pair, const ir_genome *from) {
    size_t at = ir_genome_find(from, &pair->needs);
    if (at != SIZE_MAX && !ir_edit_is_knob(ir_genome_edit_kind(from, at)) &&
        ir_genome_holds(d->child.genome, &pair->edit))
        (void)ir_genome_append_from(unedited(d), from, at); /* false: the child has the edit */
}

static void keep_links(drawing *d, const ir_genome *a, const ir_genome *b) {
    for (size_t i = 0; d->links && i < d->links->count; i++) {
        keep_link(d, &d->links->pairs[i], a);
        keep_link(d, &d->links->pairs[i], b);
    }
}

/* Appends a parent's pipeline edit if the crossover dropped both. The lack of a pipeline edit is
 * not inherited; see step_drop. */
static void keep_pipeline(drawing *d, const ir_genome *from) {
    if (find_pipeline(d->child.genome) != SIZE_MAX)
        return;
    size_t at = find_pipeline(from);
    if (at != SIZE_MAX)
        /* cannot be false: the child has no pipeline edit */
        (void)ir_genome_append_from(unedited(d), from, at);
}

/* Crosses two genomes, several times if the child equals a parent. */
static ev_status cross(drawing *d, const ir_genome *a, const ir_genome *b, ev_error *err) {
    ev_sha256 of_a = ir_genome_sha256(a), of_b = ir_genome_sha256(b);
    for (int i = 0; i < CROSSOVER_TRIES; i++) {
        ir_genome *child = ir_genome_crossover(a, b, &d->rng);
        if (!child)
            return ev_fail_memory(err, 0);
        take(d, child);
        keep_links(d, a, b);
        keep_pipeline(d, a);
        keep_pipeline(d, b);
        ev_sha256 own = ir_genome_sha256(d->child.genome);
        if (!ev_sha256_equal(&own, &of_a) && !ev_sha256_equal(&own, &of_b))
            return EV_OK;
    }
    return EV_OK;
}

static const unsigned made_by[RECIPE_MADE_COUNT] = {[RECIPE_CROSSED] = ARM_OF(CROSSOVER),
                                                    [RECIPE_REDUCED] = ARM_OF(DROP),
                                                    [RECIPE_TUNED] = ARM_OF(RETUNE),
                                                    [RECIPE_SET] = ARM_OF(MACRO),
                                                    [RECIPE_JOINED] = ARM_OF(COMBINE)};

static ev_status begin(drawing *d, ev_str *operators, ev_error *err) {
    const recipe *r = d->recipe;
    bool crosses = r->parent_count > 1;
    if (crosses)
        EV_TRY(cross(d, r->parents[0], r->parents[1], err));
    else if (!(d->child.genome = ir_genome_clone(r->parents[0])))
        return ev_fail_memory(err, 0);
    if (crosses || r->made != RECIPE_TAKEN)
        note(operators, made_by[crosses ? RECIPE_CROSSED : r->made]);
    return EV_OK;
}

ir_genome *draw_crossed(const ir_genome *first, const ir_genome *second, const draw_links *needs,
                        ev_pcg *rng) {
    drawing d = {.links = needs, .rng = *rng};
    ev_error ignored;
    bool ok = cross(&d, first, second, &ignored) == EV_OK;
    *rng = d.rng;
    if (ok)
        return d.child.genome;
    drawn_child_free(&d.child);
    return NULL;
}

static ev_status draw_steps(drawing *d, ev_str *operators, ev_error *err) {
    EV_TRY(begin(d, operators, err));
    unsigned count = d->recipe->step_count;
    for (unsigned i = 0; i < count; i++) {
        ev_status status = take_step(d, &d->recipe->steps[i], operators, err);
        bool is_empty = i + 1 == count && operators->length == 0;
        if (status == EV_BAD && is_empty && ir_genome_prefix_count(d->child.genome) > 0) {
            ev_error why = {0};
            status = step_retune(d, &why);
            if (status == EV_OK)
                note(operators, ARM_OF(RETUNE));
        }
        if (status == EV_INFRA || (status == EV_BAD && is_empty))
            return ev_wrap(err, status, "nothing to draw");
    }
    if (count == 0 && operators->length == 0)
        note(operators, ARM_OF(START));
    return ev_str_status(operators, err);
}

/* Refuses a crossover of macros at which the start is wrong. */
static ev_status check_base(const drawing *d, ev_error *err) {
    bool crosses = d->recipe->parent_count > 1 || d->recipe->made == RECIPE_CROSSED;
    if (crosses && is_wrong(d, d->child.genome))
        return ev_fail(err, EV_BAD, "the unmodified start is wrong at these macros");
    return EV_OK;
}

/* Leaves out structural edits of the parents and of the stock that have no place in the child. A
 * child whose own edit has none stays as it is, and fails when it is built. */
static ev_status mend(drawing *d, ev_error *err) {
    const recipe *r = d->recipe;
    const ir_genome *from[2 + RECIPE_STOCK], *child = d->child.genome;
    bool has_origin = r->origin_count > 0;
    size_t count = has_origin ? r->origin_count : r->parent_count;
    ir_genome *mended = NULL;
    ev_error why = {0};
    memcpy(from, has_origin ? r->origin : r->parents, count * sizeof *from);
    bool is_as_before = r->made == RECIPE_TAKEN && ir_genome_same_base(child, from[0]);
    if (!d->bases->mend || ir_genome_prefix_count(child) == 0 || is_as_before)
        return EV_OK;
    memcpy(&from[count], r->stock, r->stock_count * sizeof *from);
    count += r->stock_count;
    ev_status status = d->bases->mend(d->bases->context, child, from, count, &mended, &why);
    if (status == EV_BAD)
        return EV_OK;
    if (status != EV_OK)
        return ev_fail(err, status, "%s", why.text);
    if (ir_genome_same_prefix(child, mended))
        ir_genome_free(mended);
    else
        take(d, mended);
    return EV_OK;
}

ev_status draw_child(const task *t, const draw_bases *bases, const recipe *r, drawn_child *out,
                     ev_str *operators, ev_error *err) {
    assert(r->parent_count > 0);
    drawing d = {.t = t, .bases = bases, .recipe = r, .rng = random_of(&r->stream)};
    ev_status status = draw_steps(&d, operators, err);
    if (status == EV_OK)
        status = check_base(&d, err);
    if (status == EV_OK)
        status = mend(&d, err);
    if (status == EV_OK)
        *out = d.child;
    else
        drawn_child_free(&d.child);
    return status;
}
