/* Genomes as values: knobs and edits, copying, keys, and crossover; JSON is in genome_json.c. */
#include "ir/genome.h"

#include "base/json.h"
#include "ir/edit.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct ir_gene {
    char *name;
    int64_t value;
} ir_gene;

struct ir_genome {
    char *start;
    ir_gene *macros; /* sorted by name */
    size_t macro_count;
    bool optimised;
    ir_edit *edits;
    size_t edit_count;
    unsigned references;
    ev_sha256 sha256, base_sha256; /* "": not computed yet */
};

/* ---- the edit table ---------------------------------------------------------------------------
 */

typedef enum ir_extent { MARKS, CHANGES } ir_extent;
typedef enum ir_table_meaning { PRESERVES, ROUNDS, BOLD, BY_PLACE, BY_FLAGS } ir_table_meaning;

typedef struct ir_edit_row {
    const char *name;
    const char *family;
    ir_extent extent;
    ir_table_meaning meaning;
    const char *needs;
    const char *describes;
    const char *because;
} ir_edit_row;

static const ir_edit_row rows[] = {
#define IR_EDIT(id, name, family, extent, meaning, needs, describes, because)                      \
    {name, family, extent, meaning, needs, describes, because},
#include "ir/edits.def"
#undef IR_EDIT
};

_Static_assert(sizeof rows / sizeof rows[0] == IR_EDIT_COUNT, "one row an edit kind");

const char *ir_edit_name(ir_edit_kind kind) {
    return rows[kind].name;
}
const char *ir_edit_family(ir_edit_kind kind) {
    return rows[kind].family;
}
const char *ir_edit_needs(ir_edit_kind kind) {
    return rows[kind].needs;
}
const char *ir_edit_describes(ir_edit_kind kind) {
    return rows[kind].describes;
}

const char *ir_edit_because(ir_edit_kind kind) {
    return rows[kind].because;
}
const char *ir_edit_meaning_name(ir_edit_kind kind) {
    static const char *const names[] = {"preserving", "rounding", "bold", "preserving or bold",
                                        "rounding or bold"};
    return names[rows[kind].meaning];
}
bool ir_edit_is_bold(ir_edit_kind kind) {
    return rows[kind].meaning == BOLD;
}
bool ir_edit_may_be_bold(ir_edit_kind kind) {
    return rows[kind].meaning >= BOLD;
}
bool ir_edit_may_round(ir_edit_kind kind) {
    return rows[kind].meaning == ROUNDS || rows[kind].meaning == BY_FLAGS;
}

bool ir_edit_find(const char *name, ir_edit_kind *out) {
    for (int kind = 0; kind < IR_EDIT_COUNT; kind++) {
        if (strcmp(rows[kind].name, name) == 0) {
            *out = (ir_edit_kind)kind;
            return true;
        }
    }
    return false;
}

bool ir_edit_is_knob(ir_edit_kind kind) {
    return strcmp(rows[kind].family, "launch") == 0;
}

bool ir_edit_is_structural(ir_edit_kind kind) {
    return strcmp(rows[kind].family, "structure") == 0;
}

bool ir_edit_only_marks(ir_edit_kind kind) {
    return rows[kind].extent == MARKS;
}

/* ---- edits ------------------------------------------------------------------------------------
 */

bool ir_name_equal(const ir_name *a, const ir_name *b) {
    return a->kind == b->kind && a->number == b->number && a->tag == b->tag;
}

static uint64_t tag_of(const ev_sha256 *key) {
    char digits[17];
    memcpy(digits, key->hex, 16);
    digits[16] = '\0';
    return strtoull(digits, NULL, 16);
}

bool ir_edit_seal(ir_edit *edit) {
    json_t *json = ir_edit_to_json(edit);
    char *text = json ? ev_json_print(json, true) : NULL;
    json_decref(json);
    if (!text)
        return false;
    edit->key = ev_sha256_of(text, strlen(text));
    edit->tag = tag_of(&edit->key);
    free(text);
    return true;
}

uint64_t ir_edit_mark(const json_t *edit) {
    json_t *bare = json_copy((json_t *)edit);
    if (bare)
        (void)json_object_del(bare, "repairs");
    char *text = bare ? ev_json_print(bare, true) : NULL;
    json_decref(bare);
    if (!text)
        return 0;
    ev_sha256 sha = ev_sha256_of(text, strlen(text));
    free(text);
    return tag_of(&sha);
}

bool ir_edit_copy(const ir_edit *from, ir_edit *to) {
    *to = *from;
    to->repairs = NULL;
    if (from->repair_count == 0)
        return true;
    to->repairs = malloc(from->repair_count * sizeof *to->repairs);
    if (!to->repairs)
        return false;
    memcpy(to->repairs, from->repairs, from->repair_count * sizeof *to->repairs);
    return true;
}

void ir_edit_clear(ir_edit *edit) {
    free(edit->repairs);
    edit->repairs = NULL;
    edit->repair_count = 0;
}

bool ir_edit_add_repair(ir_edit *edit, ir_repair repair) {
    size_t bytes = (edit->repair_count + 1) * sizeof *edit->repairs;
    ir_repair *grown = realloc(edit->repairs, bytes);
    if (!grown)
        return false;
    grown[edit->repair_count++] = repair;
    edit->repairs = grown;
    return true;
}

/* ---- genomes ----------------------------------------------------------------------------------
 */

ir_genome *ir_genome_new(const char *start) {
    ir_genome *genome = calloc(1, sizeof *genome);
    if (!genome)
        return NULL;
    genome->references = 1;
    genome->start = strdup(start);
    if (!genome->start) {
        free(genome);
        return NULL;
    }
    return genome;
}

const ir_genome *ir_genome_ref(const ir_genome *genome) {
    if (genome)
        ((ir_genome *)genome)->references++;
    return genome;
}

static void destroy(ir_genome *genome) {
    for (size_t i = 0; i < genome->macro_count; i++)
        free(genome->macros[i].name);
    for (size_t i = 0; i < genome->edit_count; i++)
        ir_edit_clear(&genome->edits[i]);
    free(genome->macros);
    free(genome->edits);
    free(genome->start);
    free(genome);
}

void ir_genome_free(const ir_genome *genome) {
    ir_genome *counted = (ir_genome *)genome;
    if (counted && --counted->references == 0)
        destroy(counted);
}

/* Called before every change: the hashes become invalid. */
static void begin_change(ir_genome *genome) {
    assert(genome->references == 1);
    genome->sha256.hex[0] = genome->base_sha256.hex[0] = '\0';
}

/* Appends the edits [from, to). */
static bool append_copies(ir_genome *genome, const ir_genome *of, size_t from, size_t to) {
    bool ok = true;
    for (size_t i = from; ok && i < to; i++) {
        ir_edit edit;
        ok = ir_edit_copy(&of->edits[i], &edit) && ir_genome_append(genome, edit);
    }
    return ok;
}

/* Copies start, macros and kind of base, and the edits outside [from, to). */
static ir_genome *copy_without(const ir_genome *genome, size_t from, size_t to) {
    ir_genome *copy = ir_genome_new(genome->start);
    if (!copy)
        return NULL;
    copy->optimised = genome->optimised;
    bool ok = true;
    for (size_t i = 0; ok && i < genome->macro_count; i++)
        ok = ir_genome_set_macro(copy, genome->macros[i].name, genome->macros[i].value, NULL) ==
             EV_OK;
    if (ok && append_copies(copy, genome, 0, from) &&
        append_copies(copy, genome, to, genome->edit_count))
        return copy;
    destroy(copy);
    return NULL;
}

ir_genome *ir_genome_clone(const ir_genome *genome) {
    return copy_without(genome, genome->edit_count, genome->edit_count);
}

ir_genome *ir_genome_without(const ir_genome *genome, size_t from, size_t to) {
    assert(from <= to && to <= genome->edit_count);
    ir_genome *rest = copy_without(genome, from, to);
    if (rest && !ir_genome_same_base(rest, genome))
        ir_genome_keep_knobs(rest);
    return rest;
}

ir_genome *ir_genome_part_on_base(const ir_genome *genome, size_t from, size_t to) {
    size_t prefix = ir_genome_prefix_count(genome);
    ir_genome *part = ir_genome_part(genome, 0, from < prefix ? from : prefix);
    if (!part || append_copies(part, genome, from, to))
        return part;
    destroy(part);
    return NULL;
}

ir_genome *ir_genome_part(const ir_genome *genome, size_t from, size_t to) {
    assert(from <= to && to <= genome->edit_count);
    ir_genome *part = copy_without(genome, 0, genome->edit_count);
    if (!part || append_copies(part, genome, from, to))
        return part;
    destroy(part);
    return NULL;
}

bool ir_genome_same_prefix(const ir_genome *a, const ir_genome *b) {
    size_t count = ir_genome_prefix_count(a);
    bool same = count == ir_genome_prefix_count(b);
    for (size_t i = 0; same && i < count; i++)
        same = ev_sha256_equal(&a->edits[i].key, &b->edits[i].key);
    return same;
}

bool ir_genome_same_base(const ir_genome *a, const ir_genome *b) {
    return ir_genome_same_prefix(a, b) && ir_genome_same_macros(a, b);
}

bool ir_genome_same_macros(const ir_genome *a, const ir_genome *b) {
    bool same = strcmp(a->start, b->start) == 0 && a->optimised == b->optimised &&
                a->macro_count == b->macro_count;
    for (size_t i = 0; same && i < a->macro_count; i++)
        same = a->macros[i].value == b->macros[i].value &&
               strcmp(a->macros[i].name, b->macros[i].name) == 0;
    return same;
}

bool ir_genome_holds_all(const ir_genome *genome, const ir_genome *other) {
    bool all = ir_genome_same_base(genome, other);
    for (size_t i = 0; all && i < other->edit_count; i++)
        all = ir_genome_holds(genome, &other->edits[i].key);
    return all;
}

const char *ir_genome_start(const ir_genome *genome) {
    return genome->start;
}
bool ir_genome_is_optimised(const ir_genome *genome) {
    return genome->optimised;
}
void ir_genome_set_optimised(ir_genome *genome, bool optimised) {
    assert(genome->edit_count == 0);
    begin_change(genome);
    genome->optimised = optimised;
}
size_t ir_genome_macro_count(const ir_genome *genome) {
    return genome->macro_count;
}
size_t ir_genome_edit_count(const ir_genome *genome) {
    return genome->edit_count;
}

size_t ir_genome_prefix_count(const ir_genome *genome) {
    size_t count = 0;
    while (count < genome->edit_count && ir_edit_is_structural(genome->edits[count].kind))
        count++;
    return count;
}

const char *ir_genome_macro_name(const ir_genome *genome, size_t index) {
    assert(index < genome->macro_count);
    return genome->macros[index].name;
}

int64_t ir_genome_macro_value(const ir_genome *genome, size_t index) {
    assert(index < genome->macro_count);
    return genome->macros[index].value;
}

/* The index of the first macro whose name is not below `name`. */
static size_t macro_place(const ir_genome *genome, const char *name) {
    size_t place = 0;
    while (place < genome->macro_count && strcmp(genome->macros[place].name, name) < 0)
        place++;
    return place;
}

ev_status ir_genome_set_macro(ir_genome *genome, const char *name, int64_t value, ev_error *err) {
    size_t place = macro_place(genome, name);
    begin_change(genome);
    if (place < genome->macro_count && strcmp(genome->macros[place].name, name) == 0) {
        genome->macros[place].value = value;
        return EV_OK;
    }
    size_t bytes = (genome->macro_count + 1) * sizeof *genome->macros;
    ir_gene *grown = realloc(genome->macros, bytes);
    if (!grown)
        return ev_fail_memory(err, bytes);
    genome->macros = grown;
    char *own = strdup(name);
    if (!own)
        return ev_fail_memory(err, strlen(name) + 1);
    memmove(grown + place + 1, grown + place, (genome->macro_count - place) * sizeof *grown);
    grown[place] = (ir_gene){own, value};
    genome->macro_count++;
    return EV_OK;
}

void ir_genome_unset_macro(ir_genome *genome, const char *name) {
    size_t place = macro_place(genome, name);
    if (place == genome->macro_count || strcmp(genome->macros[place].name, name) != 0)
        return;
    begin_change(genome);
    free(genome->macros[place].name);
    memmove(genome->macros + place, genome->macros + place + 1,
            (genome->macro_count - place - 1) * sizeof *genome->macros);
    genome->macro_count--;
}

const ir_edit *ir_genome_edit(const ir_genome *genome, size_t index) {
    assert(index < genome->edit_count);
    return &genome->edits[index];
}

ir_edit_kind ir_genome_edit_kind(const ir_genome *genome, size_t index) {
    return ir_genome_edit(genome, index)->kind;
}

ev_sha256 ir_genome_edit_key(const ir_genome *genome, size_t index) {
    return ir_genome_edit(genome, index)->key;
}

uint64_t ir_genome_edit_mark(const ir_genome *genome, size_t index) {
    json_t *json = ir_edit_to_json(ir_genome_edit(genome, index));
    uint64_t mark = json ? ir_edit_mark(json) : 0;
    json_decref(json);
    return mark;
}

void ir_genome_remove(ir_genome *genome, size_t index) {
    assert(index < genome->edit_count);
    begin_change(genome);
    ir_edit_clear(&genome->edits[index]);
    memmove(genome->edits + index, genome->edits + index + 1,
            (genome->edit_count - index - 1) * sizeof *genome->edits);
    genome->edit_count--;
}

size_t ir_genome_find(const ir_genome *genome, const ev_sha256 *key) {
    for (size_t i = 0; i < genome->edit_count; i++) {
        if (ev_sha256_equal(&genome->edits[i].key, key))
            return i;
    }
    return SIZE_MAX;
}

bool ir_genome_holds(const ir_genome *genome, const ev_sha256 *key) {
    return ir_genome_find(genome, key) != SIZE_MAX;
}

static void drop_knob(ir_genome *genome, ir_edit_kind kind) {
    for (size_t i = genome->edit_count; i-- > 0;) {
        if (genome->edits[i].kind == kind)
            ir_genome_remove(genome, i);
    }
}

bool ir_genome_append(ir_genome *genome, ir_edit edit) {
    begin_change(genome);
    if (ir_edit_is_knob(edit.kind))
        drop_knob(genome, edit.kind);
    ir_edit *grown = realloc(genome->edits, (genome->edit_count + 1) * sizeof *grown);
    if (!grown) {
        ir_edit_clear(&edit);
        return false;
    }
    genome->edits = grown;
    size_t at =
        ir_edit_is_structural(edit.kind) ? ir_genome_prefix_count(genome) : genome->edit_count;
    memmove(grown + at + 1, grown + at, (genome->edit_count - at) * sizeof *grown);
    grown[at] = edit;
    genome->edit_count++;
    return true;
}

bool ir_genome_append_from(ir_genome *genome, const ir_genome *from, size_t index) {
    const ir_edit *edit = ir_genome_edit(from, index);
    ir_edit copy;
    return !ir_genome_holds(genome, &edit->key) && ir_edit_copy(edit, &copy) &&
           ir_genome_append(genome, copy);
}

static ev_sha256 hash_of(const ir_genome *genome) {
    json_t *json = ir_genome_to_json(genome);
    char *text = json ? ev_json_print(json, true) : NULL;
    /* This function has no status for out of memory; the hash of nothing equals no genome's hash.
     */
    ev_sha256 hash = ev_sha256_of(text ? text : "", text ? strlen(text) : 0);
    free(text);
    json_decref(json);
    return hash;
}

ev_sha256 ir_genome_sha256(const ir_genome *genome) {
    if (!genome->sha256.hex[0])
        ((ir_genome *)genome)->sha256 = hash_of(genome);
    return genome->sha256;
}

ev_sha256 ir_genome_base_sha256(const ir_genome *genome) {
    if (!genome->base_sha256.hex[0]) {
        ir_genome bare = *genome;
        bare.edit_count = ir_genome_prefix_count(genome);
        ((ir_genome *)genome)->base_sha256 = hash_of(&bare);
    }
    return genome->base_sha256;
}

/* ---- crossover --------------------------------------------------------------------------------
 */

static bool holds_tag(const ir_genome *genome, const ir_name *name) {
    if (name->kind != IR_NAME_ADDED)
        return true;
    for (size_t i = 0; i < genome->edit_count; i++) {
        if (genome->edits[i].tag == name->tag)
            return true;
    }
    return false;
}

/* Whether all instructions that `edit` refers to exist in the child, as edits that insert them come
 * first. A repair with a missing value is allowed, since replay then takes the nearest dominating
 * value. */
static bool can_stand_in(const ir_genome *genome, const ir_edit *edit) {
    return holds_tag(genome, &edit->at) && holds_tag(genome, &edit->to) &&
           holds_tag(genome, &edit->use.user) &&
           (edit->value.kind != IR_VALUE_INSN || holds_tag(genome, &edit->value.insn));
}

static bool holds_kind(const ir_genome *genome, ir_edit_kind kind) {
    for (size_t i = 0; i < genome->edit_count; i++) {
        if (genome->edits[i].kind == kind)
            return true;
    }
    return false;
}

/* Adds `from`'s edits to the child in order: those that `other` has as well (if `shared`), and each
 * of the others with probability 1/2. */
static bool cross_edits(ir_genome *child, const ir_genome *from, const ir_genome *other,
                        bool shared, ev_pcg *rng) {
    for (size_t i = 0; i < from->edit_count; i++) {
        const ir_edit *edit = &from->edits[i];
        bool common = ir_genome_holds(other, &edit->key);
        bool take = common ? shared : ev_pcg_below(rng, 2) == 1;
        if (!take || !can_stand_in(child, edit) ||
            (ir_edit_is_knob(edit->kind) && holds_kind(child, edit->kind)))
            continue;
        if (!ir_genome_append_from(child, from, i) && !ir_genome_holds(child, &edit->key))
            return false;
    }
    return true;
}

static const ir_gene *find_macro(const ir_genome *genome, const char *name) {
    size_t place = macro_place(genome, name);
    bool found = place < genome->macro_count && strcmp(genome->macros[place].name, name) == 0;
    return found ? &genome->macros[place] : NULL;
}

/* Crosses macros. A macro that only one parent sets has its default in the other, so the child may
 * leave it unset. */
static bool cross_macros(ir_genome *child, const ir_genome *from, const ir_genome *other,
                         bool first, ev_pcg *rng) {
    for (size_t i = 0; i < from->macro_count; i++) {
        const ir_gene *mine = &from->macros[i];
        const ir_gene *theirs = find_macro(other, mine->name);
        if (theirs && !first)
            continue;
        const ir_gene *chosen = ev_pcg_below(rng, 2) == 0 ? mine : theirs;
        if (chosen && ir_genome_set_macro(child, chosen->name, chosen->value, NULL) != EV_OK)
            return false;
    }
    return true;
}

ir_genome *ir_genome_crossover(const ir_genome *a, const ir_genome *b, ev_pcg *rng) {
    assert(strcmp(a->start, b->start) == 0 && a->optimised == b->optimised);
    ir_genome *child = ir_genome_new(a->start);
    if (!child)
        return NULL;
    child->optimised = a->optimised;
    if (!ir_genome_same_prefix(a, b)) {
        ir_genome_free(child);
        return ir_genome_clone(a);
    }
    if (cross_macros(child, a, b, true, rng) && cross_macros(child, b, a, false, rng) &&
        cross_edits(child, a, b, true, rng) && cross_edits(child, b, a, false, rng))
        return child;
    ir_genome_free(child);
    return NULL;
}
