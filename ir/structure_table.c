/* The table of what structural edits can be drawn with, and the change of one in a genome. */
#include "ir/structure_table.h"

#include "ir/ir.h"

#include <assert.h>
#include <string.h>

#define IR_LIST(...) __VA_ARGS__
static const ir_structure_row rows[] = {
#define COUNT(type, ...) (sizeof(const type[]){__VA_ARGS__} / sizeof(type))
#define IR_STRUCTURE(id, does, makes, places, values, shapes, at, next)                            \
    {.kind = IR_EDIT_##id,                                                                         \
     .work = does,                                                                                 \
     .opening = makes,                                                                             \
     .anchors = {places},                                                                          \
     .options = {values},                                                                          \
     .forms = {shapes},                                                                            \
     .anchor_count = COUNT(ir_anchor_kind, places),                                                \
     .option_count = COUNT(int64_t, values),                                                       \
     .form_count = COUNT(ir_form, shapes),                                                         \
     .phase = at,                                                                                  \
     .followers = {next},                                                                          \
     .follower_count = COUNT(ir_edit_kind, next)},
#include "ir/structure.def"
#undef IR_STRUCTURE
};

_Static_assert(sizeof rows / sizeof rows[0] == IR_EDIT_COUNT - IR_EDIT_LOCAL_COUNT,
               "one row a structural edit");

const ir_structure_row *ir_structure_row_of(ir_edit_kind kind) {
    assert(ir_edit_is_structural(kind));
    const ir_structure_row *row = &rows[kind - IR_EDIT_LOCAL_COUNT];
    assert(row->kind == kind);
    return row;
}

ir_edit_kind ir_structure_follower(ir_edit_kind kind, size_t index) {
    const ir_structure_row *row = ir_structure_row_of(kind);
    return index < row->follower_count ? row->followers[index] : IR_EDIT_COUNT;
}

/* The form "interior" gives the blocks away from the border a copy of their own, whatever the edit
 * does besides. */
static bool keeps_work(const ir_genome *genome, size_t at) {
    const ir_edit *edit = ir_genome_edit(genome, at);
    return ir_structure_row_of(edit->kind)->work == IR_WORK_KEPT && edit->form != IR_FORM_INTERIOR;
}

size_t ir_genome_division_count(const ir_genome *genome) {
    size_t count = ir_genome_prefix_count(genome);
    while (count > 0 && keeps_work(genome, count - 1))
        count--;
    return count;
}

size_t ir_structure_usual_place(const ir_genome *genome, ir_edit_kind kind) {
    size_t count = ir_genome_prefix_count(genome), at = count;
    while (at > 0 && ir_structure_row_of(ir_genome_edit_kind(genome, at - 1))->phase >
                         ir_structure_row_of(kind)->phase)
        at--;
    return at;
}

size_t ir_structure_ways(const ir_structure_row *row) {
    return row->option_count * row->form_count;
}

void ir_structure_set_way(const ir_structure_row *row, size_t way, ir_edit *edit) {
    assert(way < ir_structure_ways(row));
    edit->has_option = true;
    edit->option = row->options[way / row->form_count];
    edit->form = row->forms[way % row->form_count];
}

/* The way in which the table's row makes an edit; the number of ways: none of them. */
static size_t way_of(const ir_structure_row *row, const ir_edit *edit) {
    size_t ways = ir_structure_ways(row);
    for (size_t way = 0; way < ways; way++) {
        if (row->options[way / row->form_count] == edit->option &&
            row->forms[way % row->form_count] == edit->form)
            return way;
    }
    return ways;
}

/* A random way; in one draw of two the next option in the table, or another form of the same
 * option. */
static size_t draw_way(const ir_structure_row *row, const ir_edit *now, ev_pcg *rng) {
    size_t ways = ir_structure_ways(row), way = way_of(row, now);
    size_t any = ev_pcg_below(rng, (uint32_t)ways);
    uint32_t step = ev_pcg_below(rng, 6);
    if (way == ways || step >= 3)
        return any;
    if (step == 0)
        return way / row->form_count * row->form_count + any % row->form_count;
    size_t forms = row->form_count;
    return step == 1 ? (way + forms) % ways : (way + ways - forms) % ways;
}

/* The edit made in another way, if the genome has no such edit yet. False: it has, or memory ran
 * out. */
static bool make_way(const ir_genome *genome, const ir_edit *edit, size_t way, ir_edit *out) {
    ir_edit other = {.kind = edit->kind, .anchor = edit->anchor};
    ir_structure_set_way(ir_structure_row_of(edit->kind), way, &other);
    if (other.form == IR_FORM_EQUAL) /* a value of the timed cases, which are not known here */
        return false;
    if (!ir_edit_seal(&other) || ir_genome_holds(genome, &other.key))
        return false;
    *out = other;
    return true;
}

/* The edit with another option or form, one that the genome does not have yet. False: there is no
 * other, or no memory. */
static bool change_way(const ir_genome *genome, const ir_edit *edit, ev_pcg *rng, ir_edit *out) {
    const ir_structure_row *row = ir_structure_row_of(edit->kind);
    size_t ways = ir_structure_ways(row), from = draw_way(row, edit, rng);
    for (size_t i = 0; i < ways; i++) {
        if (make_way(genome, edit, (from + i) % ways, out))
            return true;
    }
    return false;
}

/* max-threads states the size of a block, which another base may not have. */
static bool holds_for_any_base(ir_edit_kind kind) {
    return ir_edit_is_knob(kind) && kind != IR_EDIT_MAX_THREADS;
}

void ir_genome_keep_knobs(ir_genome *genome) {
    for (size_t i = ir_genome_edit_count(genome); i-- > ir_genome_prefix_count(genome);) {
        if (!holds_for_any_base(ir_genome_edit_kind(genome, i)))
            ir_genome_remove(genome, i);
    }
}

bool ir_genome_is_skeleton(const ir_genome *genome) {
    for (size_t i = ir_genome_prefix_count(genome); i < ir_genome_edit_count(genome); i++) {
        if (!ir_edit_is_knob(ir_genome_edit_kind(genome, i)))
            return false;
    }
    return true;
}

void ir_genome_idle_parts(const ir_genome *genome, uint32_t parts[3]) {
    parts[0] = parts[1] = parts[2] = 1;
    for (size_t i = 0; i < ir_genome_prefix_count(genome); i++) {
        const ir_edit *edit = ir_genome_edit(genome, i);
        bool is_sound = edit->anchor.kind == IR_ANCHOR_DIMENSION && edit->anchor.number < 3;
        if (edit->form == IR_FORM_KEPT && is_sound && edit->option > 1)
            parts[edit->anchor.number] *= (uint32_t)edit->option;
    }
}

/* The skeleton with another edit at place `at` of its prefix. NULL: out of memory. */
static ir_genome *exchange(const ir_genome *genome, size_t at, ir_edit other) {
    size_t count = ir_genome_prefix_count(genome);
    /* the skeleton without its edits from `at` on, then the changed edit, then those behind it */
    ir_genome *child = ir_genome_without(genome, at, ir_genome_edit_count(genome));
    bool ok = child && ir_genome_append(child, other);
    for (size_t i = at + 1; ok && i < ir_genome_edit_count(genome); i++) {
        if (i < count || holds_for_any_base(ir_genome_edit_kind(genome, i)))
            (void)ir_genome_append_from(child, genome, i); /* false: the genome has it already */
    }
    if (ok)
        return child;
    ir_genome_free(child);
    return NULL;
}

ir_genome *ir_genome_retune(const ir_genome *genome, ev_pcg *rng) {
    size_t count = ir_genome_prefix_count(genome);
    ir_edit other;
    assert(count > 0);
    size_t at = ev_pcg_below(rng, (uint32_t)count);
    if (!change_way(genome, ir_genome_edit(genome, at), rng, &other))
        return NULL;
    return exchange(genome, at, other);
}

/* The place in the row of the nearest option that is at least twice the one at `at` (up), or at
 * most half of it, else of the last one on that side; option_count: there is none. */
static size_t step_option(const ir_structure_row *row, size_t at, bool up) {
    int64_t now = row->options[at];
    size_t found = row->option_count;
    for (size_t i = up ? at + 1 : at - 1; i < row->option_count; i += up ? 1 : SIZE_MAX) {
        found = i;
        if (up ? row->options[i] >= 2 * now : 2 * row->options[i] <= now)
            break;
    }
    return found;
}

/* One step from the edit's way: 0 and 1 to another option, then to each form. The number of ways:
 * there is none. */
static size_t step_way(const ir_edit *edit, size_t step) {
    const ir_structure_row *row = ir_structure_row_of(edit->kind);
    size_t ways = ir_structure_ways(row), forms = row->form_count, way = way_of(row, edit);
    if (way == ways || step >= 2 + forms)
        return ways;
    if (step >= 2)
        return way / forms * forms + (step - 2);
    size_t option = step_option(row, way / forms, step == 0);
    return option < row->option_count ? option * forms + way % forms : ways;
}

static ir_phase phase_of(const ir_genome *genome, size_t at) {
    return ir_structure_row_of(ir_genome_edit_kind(genome, at))->phase;
}

/* Appends the knobs that hold for any base. */
static void append_knobs(ir_genome *to, const ir_genome *from) {
    for (size_t i = ir_genome_prefix_count(from); i < ir_genome_edit_count(from); i++) {
        if (holds_for_any_base(ir_genome_edit_kind(from, i)))
            (void)ir_genome_append_from(to, from, i); /* false: the genome has the knob already */
    }
}

/* The skeleton with its edits in the usual order. NULL: so they are, or memory ran out. */
static ir_genome *put_in_order(const ir_genome *genome) {
    size_t count = ir_genome_prefix_count(genome);
    bool differs = false;
    for (size_t i = 1; i < count; i++)
        differs |= phase_of(genome, i - 1) > phase_of(genome, i);
    ir_genome *child = differs ? ir_genome_part(genome, 0, 0) : NULL;
    for (ir_phase phase = 0; child && phase <= IR_PHASE_RELABEL; phase++) {
        for (size_t i = 0; i < count; i++) {
            if (phase_of(genome, i) == phase && !ir_genome_append_from(child, genome, i)) {
                ir_genome_free(child);
                return NULL;
            }
        }
    }
    if (child)
        append_knobs(child, genome);
    return child;
}

/* The form is of kernels whose grid cannot be computed: no neighbour of other forms. */
static bool is_kept(const ir_edit *edit) {
    return edit->form == IR_FORM_KEPT;
}

ir_genome *ir_genome_neighbour(const ir_genome *genome, size_t *at) {
    size_t count = ir_genome_prefix_count(genome);
    ir_genome *ordered = *at == 0 ? put_in_order(genome) : NULL;
    *at += *at == 0;
    if (ordered)
        return ordered;
    for (; *at <= count * (2 + IR_FORM_COUNT); (*at)++) {
        const ir_edit *edit = ir_genome_edit(genome, (*at - 1) % count);
        const ir_structure_row *row = ir_structure_row_of(edit->kind);
        size_t way = step_way(edit, (*at - 1) / count);
        ir_edit other;
        /* The option of a copy is a fact about an argument, not a size. */
        if (row->phase == IR_PHASE_COPY || way == ir_structure_ways(row) ||
            !make_way(genome, edit, way, &other) || is_kept(edit) != is_kept(&other))
            continue;
        return exchange(genome, ((*at)++ - 1) % count, other);
    }
    return NULL;
}

ir_genome *ir_genome_limit(const ir_genome *genome, int64_t registers) {
    ir_edit limit = {.kind = IR_EDIT_MAX_REGISTERS, .has_option = true, .option = registers};
    size_t prefix = ir_genome_prefix_count(genome);
    if (!ir_edit_seal(&limit) || ir_genome_holds(genome, &limit.key))
        return NULL;
    ir_genome *child = ir_genome_clone(genome);
    for (size_t i = child ? ir_genome_edit_count(child) : 0; i-- > prefix;) {
        ir_edit_kind kind = ir_genome_edit_kind(child, i);
        if (!holds_for_any_base(kind) || kind == IR_EDIT_MIN_BLOCKS ||
            kind == IR_EDIT_MAX_REGISTERS)
            ir_genome_remove(child, i);
    }
    if (child && ir_genome_append(child, limit))
        return child;
    ir_genome_free(child);
    return NULL;
}

/* ---- what opens ---- */

static ir_opening opening_of(const ir_structure_row *row, ir_form form) {
    return form == IR_FORM_INTERIOR ? IR_UNDERLIES : row->opening;
}

static ir_opening opening_of_edit(const ir_edit *edit) {
    return opening_of(ir_structure_row_of(edit->kind), edit->form);
}

bool ir_edit_opens(ir_edit_kind kind) {
    const ir_structure_row *row = ir_structure_row_of(kind);
    bool opens = false;
    for (size_t i = 0; i < row->form_count; i++)
        opens = opens || opening_of(row, row->forms[i]) != IR_FINISHES;
    return opens;
}

static bool opens(const ir_edit *edit) {
    return opening_of_edit(edit) != IR_FINISHES;
}

size_t ir_edit_forms(ir_edit_kind kind) {
    return ir_structure_row_of(kind)->form_count;
}

bool ir_edit_of_turns(ir_edit_kind kind) {
    ir_phase phase = ir_structure_row_of(kind)->phase;
    return phase == IR_PHASE_UNROLL || phase == IR_PHASE_PIPELINE;
}

/* Whether two structural edits are of one kind and name one place. */
static bool same_place(const ir_edit *a, const ir_edit *b) {
    char of_a[IR_ANCHOR_TEXT], of_b[IR_ANCHOR_TEXT];
    if (a->kind != b->kind)
        return false;
    ir_anchor_print(&a->anchor, of_a);
    ir_anchor_print(&b->anchor, of_b);
    return strcmp(of_a, of_b) == 0;
}

/* Whether both edits open, and the same place. */
static bool open_same(const ir_edit *a, const ir_edit *b) {
    return opens(a) && opens(b) && same_place(a, b);
}

/* Whether the edit at `at` opens, and none before it opens its place. */
static bool opens_first(const ir_genome *genome, size_t at) {
    bool first = opens(ir_genome_edit(genome, at));
    for (size_t i = 0; i < at && first; i++)
        first = !open_same(ir_genome_edit(genome, i), ir_genome_edit(genome, at));
    return first;
}

size_t ir_genome_opening_count(const ir_genome *genome) {
    size_t count = 0;
    for (size_t i = 0; i < ir_genome_prefix_count(genome); i++)
        count += opens_first(genome, i);
    return count;
}

size_t ir_genome_footing_count(const ir_genome *genome) {
    size_t count = 0;
    for (size_t i = 0; i < ir_genome_prefix_count(genome); i++)
        count += opening_of_edit(ir_genome_edit(genome, i)) == IR_UNDERLIES;
    return count;
}

size_t ir_genome_first_opening(const ir_genome *genome) {
    for (size_t i = 0; i < ir_genome_prefix_count(genome); i++) {
        if (opens(ir_genome_edit(genome, i)))
            return i;
    }
    return SIZE_MAX;
}

/* The product of the options at the place of an edit. */
static int64_t option_at(const ir_genome *genome, const ir_edit *edit) {
    int64_t product = 1;
    for (size_t i = 0; i < ir_genome_prefix_count(genome); i++) {
        const ir_edit *other = ir_genome_edit(genome, i);
        if (same_place(other, edit))
            product *= other->option;
    }
    return product;
}

/* The sum of the tags of the places that a genome opens. */
static uint64_t sum_places(const ir_genome *genome, bool with_options) {
    uint64_t sum = 0;
    for (size_t i = 0; i < ir_genome_prefix_count(genome); i++) {
        const ir_edit *edit = ir_genome_edit(genome, i);
        ir_edit place = {.kind = edit->kind, .anchor = edit->anchor, .has_option = with_options};
        if (!opens_first(genome, i))
            continue;
        place.option = with_options ? option_at(genome, edit) : 0;
        sum += ir_edit_seal(&place) ? place.tag : 0;
    }
    return sum;
}

uint64_t ir_genome_outline(const ir_genome *genome) {
    return sum_places(genome, false);
}

uint64_t ir_genome_extent(const ir_genome *genome) {
    return sum_places(genome, true);
}

/* Appends the structural edits of `from` that only finish. */
static void append_finish(ir_genome *to, const ir_genome *from) {
    for (size_t i = 0; i < ir_genome_prefix_count(from); i++) {
        if (!opens(ir_genome_edit(from, i)))
            (void)ir_genome_append_from(to, from, i); /* false: the genome has the edit already */
    }
}

ir_genome *ir_genome_extend(const ir_genome *genome, const ir_genome *by, size_t at,
                            bool finish_as_by) {
    const ir_edit *edit = ir_genome_edit(by, at);
    size_t count = ir_genome_prefix_count(genome);
    for (size_t i = 0; i < count; i++) {
        if (open_same(ir_genome_edit(genome, i), edit))
            return NULL;
    }
    size_t place = ir_structure_usual_place(genome, edit->kind);
    ir_genome *child = ir_genome_part(genome, 0, 0);
    for (size_t i = 0; child && i <= count; i++) {
        if (i == place)
            (void)ir_genome_append_from(child, by, at); /* true: the place is new */
        if (i < count && (!finish_as_by || opens(ir_genome_edit(genome, i))))
            (void)ir_genome_append_from(child, genome, i);
    }
    if (!child)
        return NULL;
    if (finish_as_by)
        append_finish(child, by);
    append_knobs(child, finish_as_by ? by : genome);
    return child;
}

/* The genome without the structural edits that open what one of `edits` that it lacks opens. NULL:
 * out of memory. */
static ir_genome *make_room(const ir_genome *genome, const ir_genome *edits) {
    ir_genome *child = ir_genome_part(genome, 0, 0);
    for (size_t i = 0; child && i < ir_genome_prefix_count(genome); i++) {
        const ir_edit *edit = ir_genome_edit(genome, i);
        bool stays = true;
        for (size_t k = 0; k < ir_genome_prefix_count(edits); k++) {
            const ir_edit *with = ir_genome_edit(edits, k);
            bool is_new = !ir_genome_holds(genome, &with->key);
            stays = stays && !(is_new && open_same(edit, with));
        }
        if (stays || ir_genome_holds(edits, &edit->key))
            (void)ir_genome_append_from(child, genome, i); /* true: each edit is there once */
    }
    if (child)
        append_knobs(child, genome);
    return child;
}

/* The genome with the structural edit `at` of `edits` at place `place`. NULL: out of memory. */
static ir_genome *insert(const ir_genome *genome, const ir_genome *edits, size_t at, size_t place) {
    ir_genome *child = ir_genome_part(genome, 0, 0);
    for (size_t i = 0; child && i <= ir_genome_prefix_count(genome); i++) {
        if (i == place)
            (void)ir_genome_append_from(child, edits, at); /* true: the genome lacks the edit */
        if (i < ir_genome_prefix_count(genome))
            (void)ir_genome_append_from(child, genome, i);
    }
    if (child)
        append_knobs(child, genome);
    return child;
}

ir_genome *ir_genome_join(const ir_genome *genome, const ir_genome *edits, bool at_end) {
    ir_genome *child = make_room(genome, edits);
    size_t inserted = 0;
    for (size_t i = 0; child && i < ir_genome_prefix_count(edits); i++) {
        ev_sha256 key = ir_genome_edit_key(edits, i);
        if (ir_genome_holds(child, &key))
            continue;
        size_t end = ir_genome_prefix_count(child);
        size_t usual = ir_structure_usual_place(child, ir_genome_edit_kind(edits, i));
        ir_genome *more = insert(child, edits, i, at_end ? end : usual);
        ir_genome_free(child);
        child = more;
        inserted++;
    }
    if (inserted > 0)
        return child;
    ir_genome_free(child);
    return NULL;
}

ir_genome *ir_genome_reorder(const ir_genome *genome, ev_pcg *rng) {
    size_t count = ir_genome_prefix_count(genome);
    assert(count > 1);
    size_t from = ev_pcg_below(rng, (uint32_t)count), to = ev_pcg_below(rng, (uint32_t)count - 1);
    to += to >= from;
    ir_genome *child = ir_genome_part(genome, 0, 0);
    for (size_t i = 0, at = 0; child && i < count; i++) {
        /* the edit that stands at place i of the child */
        at += at == from;
        (void)ir_genome_append_from(child, genome, i == to ? from : at);
        at += i != to;
    }
    for (size_t i = count; child && i < ir_genome_edit_count(genome); i++) {
        if (holds_for_any_base(ir_genome_edit_kind(genome, i)))
            (void)ir_genome_append_from(child, genome, i);
    }
    return child;
}
