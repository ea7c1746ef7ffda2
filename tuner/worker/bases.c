/* Bases: a small cache of base modules; the least recently used one is evicted. */
#include "tuner/worker/bases.h"

#include "base/base64.h"
#include "base/child.h"
#include "base/file.h"
#include "base/str.h"
#include "tuner/worker/early.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MOST_CONSTANTS 64
#define EARLY_BYTES ((size_t)24 << 20) /* of early IR that is kept */

typedef struct entry {
    char *key;
    ir_base *base;   /* NULL: the source does not compile */
    char *complaint; /* the compiler's message, if base is NULL */
    uint64_t used;
    double *heat; /* site weights of its instructions; NULL with has_heat: the base cannot be
                     profiled */
    bool has_heat;
} entry;

struct bases {
    const task *t;
    int sm;
    char *include;
    bases_shelf shelf; /* without callbacks: no base store */
    early *early;
    ir_early_store early_store;
    size_t limit, count;
    uint64_t clock;
    entry *entries;
};

ev_status bases_new(const task *t, int sm, size_t limit, bases **out, ev_error *err) {
    assert(limit > 0);
    bases *b = calloc(1, sizeof *b);
    char *home = ev_path_home();
    if (!b || !home) {
        free(b);
        free(home);
        return ev_fail(err, EV_INFRA,
                       "the folder kernels/ was not found; set EVOKE_HOME to where Evoke lies");
    }
    *b = (bases){.t = t, .sm = sm, .limit = limit};
    b->include = ev_path_join(home, "kernels/include");
    b->entries = calloc(limit, sizeof *b->entries);
    b->early = early_new(EARLY_BYTES);
    b->early_store = (ir_early_store){.context = b->early, .find = early_find, .keep = early_keep};
    free(home);
    if (!b->include || !b->entries || !b->early) {
        bases_free(b);
        return ev_fail_memory(err, limit * sizeof *b->entries);
    }
    *out = b;
    return EV_OK;
}

static void entry_clear(entry *e) {
    free(e->key);
    free(e->complaint);
    free(e->heat);
    ir_base_free(e->base);
    *e = (entry){0};
}

void bases_free(bases *b) {
    if (!b)
        return;
    for (size_t i = 0; i < b->count; i++)
        entry_clear(&b->entries[i]);
    free(b->entries);
    free(b->include);
    early_free(b->early);
    free(b);
}

void bases_use_shelf(bases *b, const bases_shelf *shelf) {
    b->shelf = shelf ? *shelf : (bases_shelf){0};
}

/* The key of what clang makes: start and macros. */
static char *code_key_of(const ir_genome *genome) {
    ev_str key = EV_STR_EMPTY;
    ev_str_append(&key, ir_genome_start(genome));
    if (ir_genome_is_optimised(genome))
        ev_str_char(&key, '\n'); /* no macro has an empty name */
    for (size_t i = 0; i < ir_genome_macro_count(genome); i++)
        ev_str_printf(&key, "\n%s=%" PRId64, ir_genome_macro_name(genome, i),
                      ir_genome_macro_value(genome, i));
    char *text = ev_str_take(&key);
    ev_str_free(&key);
    return text;
}

/* The key of a base: start, macros and structural prefix. */
static char *key_of(const ir_genome *genome) {
    char *code = code_key_of(genome);
    if (!code || ir_genome_prefix_count(genome) == 0)
        return code;
    ev_str key = EV_STR_EMPTY;
    ev_str_printf(&key, "%s\n\n", code); /* no macro has an empty name */
    free(code);
    size_t count = ir_genome_prefix_count(genome);
    bool made = ir_genome_prefix_text(genome, count, &key, NULL) == EV_OK;
    char *text = made ? ev_str_take(&key) : NULL;
    ev_str_free(&key);
    return text;
}

/* Whether the launches of the main kernel at a case have the block, or the first one sets it. */
static bool agrees(const task_start *start, const task_steps *steps, uint32_t block[3]) {
    for (size_t i = 0; i < steps->count; i++) {
        const launch_geometry *l = &steps->all[i].at;
        const char *entry = start->plan->launches[steps->all[i].launch].entry;
        if (strcmp(entry, launch_plan_entry(start->plan)) != 0)
            continue;
        if (block[0] == 0)
            memcpy(block, l->block, sizeof l->block);
        if (memcmp(block, l->block, sizeof l->block) != 0)
            return false;
    }
    return true;
}

/* Whether macros and numbers alone tell the block of the main kernel's launches: other shapes than
 * those of the cases may have another one otherwise. */
static bool has_fixed_block(const task_start *start) {
    const launch_plan *plan = start->plan;
    const char **names = calloc(start->macro_count + 1, sizeof *names);
    bool fixed = names != NULL, ignored = false;
    ev_error why;
    for (size_t i = 0; fixed && i < start->macro_count; i++)
        names[i] = start->macros[i].name;
    const expr_names macros = {names, start->macro_count};
    for (size_t i = 0; fixed && i < plan->launch_count * 3; i++) {
        const launch_rule *rule = &plan->launches[i / 3];
        if (strcmp(rule->entry, launch_plan_entry(plan)) == 0)
            fixed = expr_check(rule->block[i % 3], &macros, &ignored, &why) == EV_OK;
    }
    free(names);
    return fixed;
}

/* The block size if it is the same in every launch of the main kernel, else zeros. The gates, not
 * this function, find launches that these macros do not allow. */
static void block_of(const task *t, const task_start *start, const expr_name *macros, size_t count,
                     uint32_t block[3]) {
    memset(block, 0, 3 * sizeof *block);
    if (!has_fixed_block(start))
        return;
    for (size_t i = 0; i < t->case_count; i++) {
        task_steps steps;
        ev_error ignored;
        bool ok = task_steps_of(t, start, start->plan, macros, count, &t->cases[i], &steps,
                                &ignored) == EV_OK;
        bool same = ok && agrees(start, &steps, block);
        if (ok)
            task_steps_free(&steps);
        if (!same) {
            memset(block, 0, 3 * sizeof *block);
            return;
        }
    }
}

/* Collects the sizes in the cases' shapes, each once, as far as there is room. */
static size_t constants_of(const task *t, int64_t *constants) {
    size_t count = 0;
    for (size_t i = 0; i < t->case_count; i++) {
        for (size_t k = 0; k < t->cases[i].shape_count; k++) {
            const expr_value *value = &t->cases[i].shape[k].value;
            bool known = value->is_real || count == MOST_CONSTANTS;
            for (size_t j = 0; j < count && !known; j++)
                known = constants[j] == value->whole;
            if (!known)
                constants[count++] = value->whole;
        }
    }
    return count;
}

/* The macros of a base in the two forms that ir/ and kernels/ take, and the names of the kernel's
 * arguments, for the expressions of its launch plan. */
typedef struct macro_lists {
    ir_macro *for_ir;    /* every macro of the start with its value, defaults included */
    expr_name *for_task; /* those that the genome sets */
    size_t ir_count, task_count;
    const char **arguments;
    uint32_t *aligns;
    ir_timed *timed;
    uint64_t unsigned_arguments; /* a bit each */
    size_t argument_count;
} macro_lists;

/* Adds the start's macros that the genome leaves at their defaults. The launch plan has the task's
 * defaults, so the compiler must have them as well: a source whose own default differs would be
 * launched for one value and compiled for another. */
static void add_defaults(const task_start *start, macro_lists *m) {
    for (size_t i = 0; i < start->macro_count; i++) {
        bool is_set = false;
        for (size_t k = 0; k < m->task_count; k++)
            is_set = is_set || strcmp(m->for_task[k].name, start->macros[i].name) == 0;
        if (!is_set)
            m->for_ir[m->ir_count++] =
                (ir_macro){start->macros[i].name, start->macros[i].otherwise};
    }
}

static bool macro_lists_make(const ir_genome *genome, const task_start *start, macro_lists *m) {
    size_t count = ir_genome_macro_count(genome);
    *m = (macro_lists){.for_ir = calloc(count + start->macro_count + 1, sizeof *m->for_ir),
                       .for_task = calloc(count + 1, sizeof *m->for_task)};
    if (!m->for_ir || !m->for_task)
        return false;
    for (size_t i = 0; i < count; i++) {
        const char *name = ir_genome_macro_name(genome, i);
        int64_t value = ir_genome_macro_value(genome, i);
        m->for_ir[m->ir_count++] = (ir_macro){name, value};
        m->for_task[m->task_count++] = (expr_name){name, {.whole = value, .real = (double)value}};
    }
    add_defaults(start, m);
    return true;
}

/* Collects what a scalar is at the search's timed cases. Held-out cases must not shape a variant.
 */
static void collect_timed(const task *t, const task_argument *scalar, ir_timed *out) {
    for (size_t i = 0; i < t->case_count && out->count < IR_MOST_TIMED; i++) {
        const task_case *c = &t->cases[i];
        expr_value value;
        ev_error ignored;
        if (c->use != TASK_TIME || c->split != CORPUS_SEARCH ||
            task_argument_value_of(t, scalar, c, &value, &ignored) != EV_OK || value.is_real)
            continue;
        bool known = false;
        for (size_t k = 0; k < out->count; k++)
            known = known || out->values[k] == value.whole;
        if (!known)
            out->values[out->count++] = value.whole;
    }
}

/* Whether a name in the launch plan is a number of the shape where the kernel's argument of that
 * name has another value. */
static bool is_hidden(const task *t, const task_argument *a) {
    bool hidden = false;
    for (size_t i = 0; i < t->case_count && a->kind == TASK_SCALAR; i++) {
        const task_case *c = &t->cases[i];
        for (size_t k = 0; k < c->shape_count; k++)
            hidden = hidden ||
                     (strcmp(c->shape[k].name, a->name) == 0 && strcmp(a->value, a->name) != 0);
    }
    return hidden;
}

static void list_argument(const task_argument *a, const task *t, size_t p, macro_lists *m) {
    bool is_buffer = a->kind != TASK_SCALAR && !a->is_field;
    if (a->kind == TASK_SCALAR && !a->is_field)
        collect_timed(t, a, &m->timed[p]);
    /* a struct has no name in expressions, nor has what hides behind a number of the shape */
    m->arguments[p] = a->is_field || is_hidden(t, a) ? "" : a->name;
    m->aligns[p] = is_buffer ? a->align : 1;
    if (p < 64 && !ev_type_is_signed(a->type))
        m->unsigned_arguments |= UINT64_C(1) << p;
}

/* Of the main launch's kernel. A parameter that is no argument of the task has no name. */
static bool list_arguments(const task *t, const task_start *start, macro_lists *m) {
    size_t given[TASK_PARAMETERS_MOST], count = 0;
    m->arguments = calloc(TASK_PARAMETERS_MOST, sizeof *m->arguments);
    m->aligns = calloc(TASK_PARAMETERS_MOST, sizeof *m->aligns);
    m->timed = calloc(TASK_PARAMETERS_MOST, sizeof *m->timed);
    if (!m->arguments || !m->aligns || !m->timed)
        return false;
    task_main_arguments(t, start, given, &count);
    m->argument_count = count > 0 ? count : t->parameter_count;
    for (size_t p = 0; p < count; p++) {
        m->arguments[p] = "";
        m->aligns[p] = 0; /* several buffers, or none of the task's */
        if (given[p] < t->argument_count)
            list_argument(&t->arguments[given[p]], t, p, m);
    }
    for (size_t i = 0; count == 0 && i < t->argument_count; i++)
        list_argument(&t->arguments[i], t, t->arguments[i].parameter, m);
    return true;
}

static void macro_lists_free(macro_lists *m) {
    free(m->for_ir);
    free(m->for_task);
    free(m->arguments);
    free(m->aligns);
    free(m->timed);
}

/* ---- the base store ---- */

static ev_status shelf_name(const bases *b, const char *thing, const char *key, ev_str *name,
                            ev_error *err) {
    ev_str_printf(name, "%s %s %s", b->t->sha256.hex, thing, key);
    return ev_str_status(name, err);
}

/* *value NULL: no such entry, or no base store. */
static ev_status shelf_want(const bases *b, const char *thing, const char *key, json_t **value,
                            ev_error *err) {
    *value = NULL;
    if (!b->shelf.want)
        return EV_OK;
    ev_str name = EV_STR_EMPTY;
    ev_status status = shelf_name(b, thing, key, &name, err);
    if (status == EV_OK)
        status = b->shelf.want(b->shelf.context, ev_str_text(&name), value, err);
    ev_str_free(&name);
    return status;
}

/* Takes `value` over. */
static ev_status shelf_made(const bases *b, const char *thing, const char *key, json_t *value,
                            ev_error *err) {
    ev_str name = EV_STR_EMPTY;
    ev_status status = shelf_name(b, thing, key, &name, err);
    if (status == EV_OK && b->shelf.made)
        status = b->shelf.made(b->shelf.context, ev_str_text(&name), value, err);
    else
        json_decref(value);
    ev_str_free(&name);
    return status;
}

/* Reads compiled source from an entry of the base store. Takes `known` over. */
static ev_status take_code(json_t *known, const ir_source *source, ev_str *bitcode, ev_error *err) {
    const char *text = json_string_value(known);
    ev_error why = {0};
    ev_status status = text ? ev_base64_decode(text, bitcode, &why) : EV_BAD;
    json_decref(known);
    if (status == EV_OK)
        return EV_OK;
    return ev_fail(err, EV_INFRA, "%s: what another worker compiled of it came broken; try again",
                   source->path);
}

/* Compiles a source. Failures are not stored: each worker finds them by itself. */
static ev_status compile(const bases *b, const ir_source *source, const char *key, ev_str *bitcode,
                         ev_error *err) {
    json_t *known = NULL;
    EV_TRY(shelf_want(b, "code", key, &known, err));
    if (known)
        return take_code(known, source, bitcode, err);
    EV_TRY(ir_compile(source, bitcode, err));
    if (!b->shelf.made)
        return EV_OK;
    char *text = ev_base64_encode(ev_str_text(bitcode), bitcode->length);
    ev_status status = shelf_made(b, "code", key, text ? json_string(text) : NULL, err);
    free(text);
    return status;
}

/* What is done with the source of a genome's base, once it is compiled. */
typedef ev_status source_use(void *context, ir_source *source, ev_error *err);

static ev_status use_compiled(const bases *b, ir_source *source, source_use *use, void *context,
                              ev_error *err) {
    if (!ir_is_compiled(source))
        return use(context, source, err);
    char *key = code_key_of(source->genome);
    if (!key)
        return ev_fail_memory(err, 0);
    ev_str bitcode = EV_STR_EMPTY;
    ev_status status = compile(b, source, key, &bitcode, err);
    free(key);
    source->bitcode = ev_str_text(&bitcode);
    source->bitcode_bytes = bitcode.length;
    if (status == EV_OK)
        status = use(context, source, err);
    ev_str_free(&bitcode);
    return status;
}

static ev_status use_source(const bases *b, const ir_genome *genome, source_use *use, void *context,
                            ev_error *err) {
    const task_start *start = task_find_start(b->t, ir_genome_start(genome));
    if (!start)
        return ev_fail(err, EV_BAD, "the task %s has no start '%s'", b->t->name,
                       ir_genome_start(genome));
    int64_t constants[MOST_CONSTANTS];
    macro_lists macros = {0};
    const char **symbols = calloc(b->t->symbol_count + 1, sizeof *symbols);
    ev_status status = EV_OK;
    if (symbols && macro_lists_make(genome, start, &macros) &&
        list_arguments(b->t, start, &macros)) {
        for (size_t i = 0; i < b->t->symbol_count; i++)
            symbols[i] = b->t->symbols[i].name;
        ir_source source = {.path = start->source,
                            .entry = launch_plan_entry(start->plan),
                            .instance = start->instance,
                            .include = b->include,
                            .macros = macros.for_ir,
                            .macro_count = macros.ir_count,
                            .symbols = symbols,
                            .symbol_count = b->t->symbol_count,
                            .sm = b->sm,
                            .optimised = ir_genome_is_optimised(genome),
                            .constants = constants,
                            .constant_count = constants_of(b->t, constants),
                            .genome = genome,
                            .plan = start->plan,
                            .arguments = macros.arguments,
                            .unsigned_arguments = macros.unsigned_arguments,
                            .overlapping = task_overlaps_of_main(b->t, start),
                            .aligns = macros.aligns,
                            .timed = macros.timed,
                            .argument_count = macros.argument_count,
                            .names = macros.for_ir,
                            .name_count = macros.ir_count,
                            .early = &b->early_store};
        block_of(b->t, start, macros.for_task, macros.task_count, source.block);
        status = use_compiled(b, &source, use, context, err);
    } else {
        status = ev_fail_memory(err, (start->macro_count + 1) * sizeof(ir_macro));
    }
    macro_lists_free(&macros);
    free(symbols);
    return status;
}

/* Loads the base, and refuses one that reads what nobody fills. */
static ev_status load_checked(void *context, ir_source *source, ev_error *err) {
    ir_base **out = context, *base = NULL;
    ev_status status = ir_base_load(source, &base, err);
    if (status == EV_OK)
        status = ir_base_check_symbols(base, source, err);
    if (status == EV_OK)
        *out = base;
    else
        ir_base_free(base);
    return status;
}

static ev_status load(const bases *b, const ir_genome *genome, ir_base **out, ev_error *err) {
    return use_source(b, genome, load_checked, out, err);
}

/* ---- structural edits ---- */

typedef struct structure_draw {
    early *early;
    ir_edit_kind kind;
    const ir_hints *hints;
    ev_pcg *rng;
    ir_genome *child;
} structure_draw;

static ev_status draw_structure(void *context, ir_source *source, ev_error *err) {
    structure_draw *d = context;
    source->places = early_places(d->early, source->genome);
    if (!source->places)
        return ev_fail_memory(err, 0);
    return ir_structure_draw(source, d->kind, d->hints, d->rng, &d->child, err);
}

ev_status bases_draw_structure(const bases *b, const ir_genome *parent, ir_edit_kind kind,
                               const ir_hints *hints, ev_pcg *rng, ir_genome **out, ev_error *err) {
    structure_draw d = {b->early, kind, hints, rng, NULL};
    EV_TRY(use_source(b, parent, draw_structure, &d, err));
    *out = d.child;
    return EV_OK;
}

typedef struct structure_mend {
    const ir_genome *const *parents;
    size_t count;
    ir_genome *mended;
} structure_mend;

static ev_status mend_structure(void *context, ir_source *source, ev_error *err) {
    structure_mend *m = context;
    return ir_structure_mend(source, m->parents, m->count, &m->mended, err);
}

ev_status bases_mend_structure(const bases *b, const ir_genome *child,
                               const ir_genome *const *parents, size_t count, ir_genome **out,
                               ev_error *err) {
    structure_mend m = {parents, count, NULL};
    EV_TRY(use_source(b, child, mend_structure, &m, err));
    *out = m.mended;
    return EV_OK;
}

static ev_status count_structure(void *context, ir_source *source, ev_error *err) {
    return ir_structure_sites(source, context, err);
}

ev_status bases_structure_sites(const bases *b, const ir_genome *genome,
                                size_t sites[IR_EDIT_COUNT], ev_error *err) {
    return use_source(b, genome, count_structure, sites, err);
}

static entry *find(bases *b, const char *key) {
    for (size_t i = 0; i < b->count; i++) {
        if (strcmp(b->entries[i].key, key) == 0)
            return &b->entries[i];
    }
    return NULL;
}

/* A free entry. If all are taken, the least recently used one is freed. */
static entry *make_room(bases *b) {
    if (b->count < b->limit)
        return &b->entries[b->count++];
    entry *oldest = &b->entries[0];
    for (size_t i = 1; i < b->count; i++) {
        if (b->entries[i].used < oldest->used)
            oldest = &b->entries[i];
    }
    entry_clear(oldest);
    return oldest;
}

/* malloc'ed; NULL without memory. */
static char *whole_message(const ev_error *err) {
    ev_str text = EV_STR_EMPTY;
    ev_error_whole(err, &text);
    char *message = strdup(ev_str_text(&text));
    ev_str_free(&text);
    return message;
}

/* Adds a base. Takes `key` over. A source that does not compile gets an entry, too, since a second
 * try would cost as much. */
static ev_status add(bases *b, char *key, const ir_genome *genome, entry **out, ev_error *err) {
    ir_base *base = NULL;
    ev_status status = load(b, genome, &base, err);
    char *complaint = status == EV_BAD && err ? whole_message(err) : NULL;
    if (status == EV_INFRA || (status == EV_BAD && !complaint)) {
        free(key);
        return status;
    }
    entry *e = make_room(b);
    *e = (entry){.key = key, .base = base, .complaint = complaint};
    *out = e;
    return EV_OK;
}

ev_status bases_get(bases *b, const ir_genome *genome, const ir_base **out, ev_error *err) {
    char *key = key_of(genome);
    if (!key)
        return ev_fail_memory(err, 0);
    entry *e = find(b, key);
    if (e)
        free(key);
    else
        EV_TRY(add(b, key, genome, &e, err));
    e->used = ++b->clock;
    if (!e->base)
        return ev_fail_long(err, EV_BAD, e->complaint);
    *out = e->base;
    return EV_OK;
}

static entry *find_genome(bases *b, const ir_genome *genome) {
    char *key = key_of(genome);
    entry *e = key ? find(b, key) : NULL;
    free(key);
    return e;
}

bool bases_heat(bases *b, const ir_genome *genome, const double **out) {
    const entry *e = find_genome(b, genome);
    if (!e || !e->has_heat)
        return false;
    *out = e->heat;
    return true;
}

void bases_set_heat(bases *b, const ir_genome *genome, double *heat) {
    entry *e = find_genome(b, genome);
    assert(e && !e->has_heat);
    e->heat = heat;
    e->has_heat = true;
}

ev_status bases_want(const bases *b, const char *thing, const ir_genome *genome, json_t **value,
                     ev_error *err) {
    char *key = key_of(genome);
    if (!key)
        return ev_fail_memory(err, 0);
    ev_status status = shelf_want(b, thing, key, value, err);
    free(key);
    return status;
}

ev_status bases_made(const bases *b, const char *thing, const ir_genome *genome, json_t *value,
                     ev_error *err) {
    char *key = key_of(genome);
    if (!key) {
        json_decref(value);
        return ev_fail_memory(err, 0);
    }
    ev_status status = shelf_made(b, thing, key, value, err);
    free(key);
    return status;
}
