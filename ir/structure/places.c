/* Places: where structural edits can be drawn in a kernel, and the draw of one.
 *
 * The places of a kind are its anchors in early IR (dimensions, loops, arguments, shared arrays),
 * each with the options and forms of ir/structure.def. Whether an edit applies at a place shows
 * when it is applied, so the draw tries places in random order on copies of the module. What it
 * finds is noted (ir_places), and a later draw on the same early IR need not try again. Notes
 * change no draw. */
#include "ir/structure/structure_internal.h"
#include "ir/structure_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ANCHORS 32
#define MOST_TRIES 8    /* places tried in one draw */
#define MOST_INSNS 4000 /* of a kernel whose body a drawn edit writes several times */
#define MOST_REFUSALS 2 /* ways refused at one anchor in one draw */

typedef struct anchor_list {
    ir_anchor items[MOST_ANCHORS];
    uint64_t insns[MOST_ANCHORS]; /* of a loop; 0: the anchor is none */
    size_t count;
} anchor_list;

static void add(anchor_list *list, ir_anchor anchor) {
    if (list->count < MOST_ANCHORS)
        list->items[list->count++] = anchor;
}

/* Whether the kernel reads a special register, "tid" or "ctaid", along an axis. */
static bool reads_axis(const ir_flow *flow, const char *which, uint32_t axis) {
    char name[48];
    (void)snprintf(name, sizeof name, "llvm.nvvm.read.ptx.sreg.%s.%c", which, "xyz"[axis]);
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        if (strcmp(ir_call_name(flow->insns[i]), name) == 0)
            return true;
    }
    return false;
}

static void add_dimensions(const ir_flow *flow, ir_edit_kind kind, anchor_list *out) {
    const char *which = kind == IR_EDIT_COARSEN_THREADS ? "tid" : "ctaid";
    for (uint32_t axis = 0; axis < 3; axis++) {
        if (reads_axis(flow, which, axis))
            add(out, (ir_anchor){.kind = IR_ANCHOR_DIMENSION, .number = axis});
    }
}

/* All loops; for `split-threads` those in others, since it takes the outermost ones by itself. */
static void add_loops(const ir_flow *flow, ir_edit_kind kind, anchor_list *out) {
    for (uint32_t loop = 0; loop < flow->loop_count; loop++) {
        if (kind == IR_EDIT_SPLIT_THREADS && flow->loops[loop].parent == IR_NONE)
            continue;
        ev_str path = EV_STR_EMPTY;
        ir_anchor anchor = {.kind = IR_ANCHOR_LOOP};
        ir_loop_path(flow, loop, &path);
        if (path.length > 0 && path.length < sizeof anchor.path) {
            memcpy(anchor.path, path.data, path.length + 1);
            if (out->count < MOST_ANCHORS)
                out->insns[out->count] = ir_structure_loop_insns(flow, &flow->loops[loop]);
            add(out, anchor);
        }
        ev_str_free(&path);
    }
}

/* Whole numbers for `specialise`, pointers for the others. */
static void add_arguments(const ir_flow *flow, ir_edit_kind kind, anchor_list *out) {
    for (unsigned i = 0; i < LLVMCountParams(flow->function); i++) {
        LLVMValueRef argument = LLVMGetParam(flow->function, i);
        bool is_pointer = LLVMGetTypeKind(LLVMTypeOf(argument)) == LLVMPointerTypeKind;
        if (kind == IR_EDIT_SPECIALISE ? ir_structure_specialises(flow, argument) : is_pointer)
            add(out, (ir_anchor){.kind = IR_ANCHOR_ARGUMENT, .number = i});
    }
}

/* What divides an index of the kernel. */
static void add_divisors(const ir_flow *flow, const ir_base *base, const ir_source *source,
                         anchor_list *out) {
    char divisors[IR_DIVISORS][IR_ANCHOR_PATH];
    for (uint32_t axis = 0; axis < IR_AXES; axis++) {
        uint32_t count = ir_structure_divisors(flow, source, axis, base->block[axis], divisors);
        for (uint32_t i = 0; i < count; i++) {
            ir_anchor anchor = {.kind = IR_ANCHOR_DIVISOR, .number = axis};
            memcpy(anchor.path, divisors[i], sizeof anchor.path);
            add(out, anchor);
        }
    }
}

static void add_arrays(LLVMModuleRef module, anchor_list *out) {
    uint32_t number = 0;
    for (LLVMValueRef g = LLVMGetFirstGlobal(module); g; g = LLVMGetNextGlobal(g)) {
        if (LLVMGetPointerAddressSpace(LLVMTypeOf(g)) == IR_SHARED_SPACE)
            add(out, (ir_anchor){.kind = IR_ANCHOR_SHARED, .number = number++});
    }
}

/* A kernel in early IR. */
typedef struct early_kernel {
    const ir_flow *flow;
    const ir_base *base;
    const ir_source *source;
} early_kernel;

static void add_anchors(const early_kernel *early, ir_edit_kind edit, ir_anchor_kind kind,
                        anchor_list *out) {
    const ir_flow *flow = early->flow;
    if (kind == IR_ANCHOR_NONE)
        add(out, (ir_anchor){.kind = IR_ANCHOR_NONE});
    else if (kind == IR_ANCHOR_DIMENSION)
        add_dimensions(flow, edit, out);
    else if (kind == IR_ANCHOR_LOOP)
        add_loops(flow, edit, out);
    else if (kind == IR_ANCHOR_ARGUMENT)
        add_arguments(flow, edit, out);
    else if (kind == IR_ANCHOR_DIVISOR)
        add_divisors(flow, early->base, early->source, out);
    else
        add_arrays(LLVMGetGlobalParent(flow->function), out);
}

static void list_anchors(const early_kernel *early, const ir_structure_row *row, anchor_list *out) {
    out->count = 0;
    for (size_t i = 0; i < row->anchor_count; i++)
        add_anchors(early, row->kind, row->anchors[i], out);
}

/* ---- what is known of places ---- */

enum { STRUCTURAL = IR_EDIT_COUNT - IR_EDIT_LOCAL_COUNT };

/* An edit that was tried. */
typedef struct ir_place {
    uint64_t tag; /* of the edit */
    char *why;    /* why it is refused; NULL: it applies */
} ir_place;

struct ir_places {
    bool listed;
    char *complaint; /* why there is no early IR; NULL: there is */
    uint32_t insn_count;
    anchor_list anchors[STRUCTURAL];
    ir_place *tried;
    size_t count, room;
};

ir_places *ir_places_new(void) {
    return calloc(1, sizeof(ir_places));
}

void ir_places_free(ir_places *places) {
    if (!places)
        return;
    for (size_t i = 0; i < places->count; i++)
        free(places->tried[i].why);
    free(places->tried);
    free(places->complaint);
    free(places);
}

static const anchor_list *anchors_of(const ir_places *places, ir_edit_kind kind) {
    return &places->anchors[kind - IR_EDIT_LOCAL_COUNT];
}

static void list_all(ir_places *places, const early_kernel *early) {
    for (int i = 0; i < STRUCTURAL; i++)
        list_anchors(early, ir_structure_row_of((ir_edit_kind)(IR_EDIT_LOCAL_COUNT + i)),
                     &places->anchors[i]);
    places->insn_count = early->flow->insn_count;
}

static const ir_place *find_tried(const ir_places *places, const ir_edit *edit) {
    for (size_t i = 0; i < places->count; i++) {
        if (places->tried[i].tag == edit->tag)
            return &places->tried[i];
    }
    return NULL;
}

/* Notes the result of a try; `why` NULL: the edit applies. */
static ev_status note_tried(ir_places *places, const ir_edit *edit, const char *why,
                            ev_error *err) {
    if (places->count == places->room) {
        size_t room = places->room > 0 ? 2 * places->room : 16;
        ir_place *more = realloc(places->tried, room * sizeof *more);
        if (!more)
            return ev_fail_memory(err, room * sizeof *more);
        places->tried = more;
        places->room = room;
    }
    char *copy = why ? strdup(why) : NULL;
    if (why && !copy)
        return ev_fail_memory(err, strlen(why) + 1);
    places->tried[places->count++] = (ir_place){edit->tag, copy};
    return EV_OK;
}

/* ---- one draw ---- */

typedef struct place_draw {
    const ir_source *source;
    ir_places *places;
    ir_places *own; /* NULL: the places are the caller's */
    ir_base *base;  /* its module is early IR with the parent's prefix; NULL: not needed yet */
    ev_arena *arena;
    const launch_plan *plan; /* the parent's; NULL: not known */
} place_draw;

/* Loads the early IR, unless it is loaded. */
static ev_status need_base(place_draw *d, ev_error *err) {
    if (d->base)
        return EV_OK;
    EV_TRY(ir_early_load(d->source, &d->base, err));
    return d->plan ? ir_genome_plan(d->source->genome, d->source->plan, d->arena, &d->plan, err)
                   : EV_OK;
}

static ev_status list_places(place_draw *d, ev_error *err) {
    ir_flow flow;
    EV_TRY(need_base(d, err));
    LLVMValueRef function = LLVMGetNamedFunction(d->base->module, d->base->entry);
    EV_TRY(ir_flow_make(function, d->arena, &flow, err));
    const early_kernel early = {&flow, d->base, d->source};
    list_all(d->places, &early);
    return EV_OK;
}

static ev_status need_places(place_draw *d, ev_error *err) {
    ir_places *places = d->places;
    if (!places->listed) {
        ev_error why = {0};
        ev_status status = list_places(d, &why);
        if (status == EV_BAD)
            places->complaint = strdup(why.text);
        if (status == EV_INFRA || (status == EV_BAD && !places->complaint))
            return ev_fail(err, EV_INFRA, "%s", why.text);
        places->listed = true;
    }
    return places->complaint ? ev_fail(err, EV_BAD, "%s", places->complaint) : EV_OK;
}

static ev_status open_draw(const ir_source *source, place_draw *d, ev_error *err) {
    ir_places *own = source->places ? NULL : ir_places_new();
    *d = (place_draw){.source = source,
                      .places = own ? own : source->places,
                      .own = own,
                      .arena = ev_arena_new(),
                      .plan = source->plan};
    return d->arena && d->places ? need_places(d, err) : ev_fail_memory(err, 1);
}

static void close_draw(place_draw *d) {
    ir_base_free(d->base);
    ir_places_free(d->own);
    ev_arena_free(d->arena);
}

static bool writes_too_much(const place_draw *d, const ir_edit *edit) {
    const anchor_list *list = anchors_of(d->places, edit->kind);
    uint64_t insns = d->places->insn_count, in_loop = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (edit->anchor.kind == IR_ANCHOR_LOOP && list->items[i].kind == IR_ANCHOR_LOOP &&
            strcmp(list->items[i].path, edit->anchor.path) == 0)
            in_loop = list->insns[i];
    }
    uint64_t grown = ir_structure_grown(edit, insns, in_loop);
    return grown > MOST_INSNS && grown > insns;
}

/* Applies an edit to a copy of the module. EV_BAD: it is refused. */
static ev_status apply_to_copy(place_draw *d, const ir_edit *edit, ev_error *err) {
    EV_TRY(need_base(d, err));
    LLVMModuleRef module = d->base->module;
    uint32_t block[3];
    memcpy(block, d->base->block, sizeof block);
    d->base->module = LLVMCloneModule(module);
    ir_structure s = {.base = d->base,
                      .function = LLVMGetNamedFunction(d->base->module, d->base->entry),
                      .arena = d->arena,
                      .source = d->source,
                      .plan = d->plan};
    ev_status status = ir_structure_apply(&s, edit, err);
    LLVMDisposeModule(d->base->module);
    d->base->module = module;
    memcpy(d->base->block, block, sizeof block);
    return status;
}

/* Whether an edit applies, which is tried once. EV_BAD: it is refused. */
static ev_status try_edit(place_draw *d, const ir_edit *edit, ev_error *err) {
    if (writes_too_much(d, edit))
        return ev_fail(err, EV_BAD, "the kernel would have more than %d instructions", MOST_INSNS);
    const ir_place *known = find_tried(d->places, edit);
    if (known)
        return known->why ? ev_fail(err, EV_BAD, "%s", known->why) : EV_OK;
    ev_error why = {0};
    ev_status status = apply_to_copy(d, edit, &why);
    if (status == EV_INFRA)
        return ev_fail(err, EV_INFRA, "%s", why.text);
    EV_TRY(note_tried(d->places, edit, status == EV_OK ? NULL : why.text, err));
    return status == EV_OK ? EV_OK : ev_fail(err, EV_BAD, "%s", why.text);
}

static bool is_spent(const ir_hints *hints, const ir_edit *edit) {
    uint64_t mark = 0;
    json_t *json = hints && hints->spent_count > 0 ? ir_edit_to_json(edit) : NULL;
    if (json)
        mark = ir_edit_mark(json);
    json_decref(json);
    for (size_t i = 0; mark != 0 && i < hints->spent_count; i++) {
        if (hints->spent[i] == mark)
            return true;
    }
    return false;
}

/* The child: the parent's skeleton with one more structural edit, and its knobs. Takes `edit` over.
 */
static ev_status make_child(const ir_genome *parent, ir_edit edit, ir_genome **out, ev_error *err) {
    ir_genome *child = ir_genome_clone(parent);
    if (child)
        ir_genome_keep_knobs(child);
    if (!child || !ir_genome_append(child, edit)) {
        ir_genome_free(child);
        return ev_fail_memory(err, sizeof edit);
    }
    *out = child;
    return EV_OK;
}

/* Refusals of one draw. */
typedef struct refusals {
    ev_error last;
    uint32_t at_anchor[MOST_ANCHORS];
} refusals;

/* Lets `specialise` take what the timed cases have: one of their values, or a divisor of one.
 * False: they have none such. */
static bool fit_to_cases(const ir_source *source, ev_pcg *rng, ir_edit *edit) {
    if (edit->kind != IR_EDIT_SPECIALISE)
        return true;
    if (!source->timed || edit->anchor.number >= source->argument_count)
        return false;
    const ir_timed *timed = &source->timed[edit->anchor.number];
    if (edit->form == IR_FORM_EQUAL && timed->count > 0)
        edit->option = timed->values[ev_pcg_below(rng, (uint32_t)timed->count)];
    for (size_t i = 0; i < timed->count; i++) {
        if (edit->form == IR_FORM_EQUAL || timed->values[i] % edit->option == 0)
            return true;
    }
    return false;
}

/* Tries the ways of the kind at all anchors, from a random one on. */
static ev_status draw_way(place_draw *d, const ir_structure_row *row, const ir_hints *hints,
                          ev_pcg *rng, ir_genome **out, ev_error *err) {
    const anchor_list *anchors = anchors_of(d->places, row->kind);
    size_t ways = ir_structure_ways(row), count = anchors->count * ways, tries = 0;
    bool *tried = count > 0 ? EV_NEW_ARRAY(d->arena, bool, count) : NULL;
    if (!tried)
        return ev_fail(err, EV_BAD, "%s has no place", ir_edit_name(row->kind));
    refusals refused = {.at_anchor = {0}};
    for (size_t left = count; left > 0 && tries < MOST_TRIES; left--) {
        size_t at = ev_pcg_below(rng, (uint32_t)count);
        while (tried[at])
            at = (at + 1) % count;
        tried[at] = true;
        if (refused.at_anchor[at / ways] == MOST_REFUSALS)
            continue;
        ir_edit edit = {.kind = row->kind, .anchor = anchors->items[at / ways]};
        ir_structure_set_way(row, at % ways, &edit);
        if (!fit_to_cases(d->source, rng, &edit))
            continue;
        if (!ir_edit_seal(&edit))
            return ev_fail_memory(err, 0);
        if (is_spent(hints, &edit) || ir_genome_holds(d->source->genome, &edit.key))
            continue;
        tries++;
        ev_error why = {0};
        ev_status status = try_edit(d, &edit, &why);
        if (status == EV_OK)
            return make_child(d->source->genome, edit, out, err);
        if (status != EV_BAD)
            return ev_fail(err, status, "%s", why.text);
        refused.last = why;
        refused.at_anchor[at / ways]++;
    }
    return ev_fail(err, EV_BAD, "%s applies at no place that was tried: %s",
                   ir_edit_name(row->kind), refused.last.text);
}

ev_status ir_structure_draw(const ir_source *source, ir_edit_kind kind, const ir_hints *hints,
                            ev_pcg *rng, ir_genome **out, ev_error *err) {
    place_draw d;
    ev_status status = open_draw(source, &d, err);
    if (status == EV_OK)
        status = draw_way(&d, ir_structure_row_of(kind), hints, rng, out, err);
    close_draw(&d);
    return status;
}

ev_status ir_structure_sites(const ir_source *source, size_t sites[IR_EDIT_COUNT], ev_error *err) {
    place_draw d;
    ev_status status = open_draw(source, &d, err);
    for (int kind = IR_EDIT_LOCAL_COUNT; status == EV_OK && kind < IR_EDIT_COUNT; kind++) {
        const ir_structure_row *row = ir_structure_row_of((ir_edit_kind)kind);
        sites[kind] = anchors_of(d.places, row->kind)->count * ir_structure_ways(row);
    }
    close_draw(&d);
    return status == EV_BAD ? EV_OK : status;
}
