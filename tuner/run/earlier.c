/* Earlier: reads genomes and times of an earlier result. */
#include "tuner/run/earlier.h"

#include "base/file.h"
#include "base/json.h"
#include "bundle/bundle.h"
#include "tuner/run/records.h"
#include "tuner/search/known.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct earlier {
    char *path;
    records *records; /* NULL: it is a bundle */
    json_t *identity; /* of the records' run */
    json_t *genomes;  /* {kernel: [genome, ...]}, the promoted ones first */
    known *by_genome; /* evaluations of the task at hand that have times (place_of) */
    known *by_code;   /* the same by PTX and launch */
    size_t task;      /* the task at hand, in the order of the records */
};

const char *earlier_path(const earlier *e) {
    return e->path;
}

void earlier_drop_times(earlier *e) {
    known_free(e->by_genome);
    known_free(e->by_code);
    e->by_genome = e->by_code = NULL;
}

void earlier_free(earlier *e) {
    if (!e)
        return;
    earlier_drop_times(e);
    records_close(e->records);
    json_decref(e->identity);
    json_decref(e->genomes);
    free(e->path);
    free(e);
}

bool earlier_has(const earlier *e, const char *kernel) {
    return json_array_size(json_object_get(e->genomes, kernel)) > 0;
}

ev_sha256 earlier_sha256(const earlier *e) {
    char *text = ev_json_print(e->genomes, true);
    ev_sha256 sha256 = ev_sha256_of(text ? text : "", text ? strlen(text) : 0);
    free(text);
    return sha256;
}

/* ---- genomes ---- */

/* Adds a genome behind those of its kernel. Takes the reference. */
static ev_status add_genome(earlier *e, const char *kernel, json_t *genome, ev_error *err) {
    json_t *list = json_object_get(e->genomes, kernel);
    if (!list) {
        list = json_array();
        (void)json_object_set_new(e->genomes, kernel, list);
    }
    bool has = !json_is_object(genome);
    for (size_t i = 0; i < json_array_size(list) && !has; i++)
        has = json_equal(json_array_get(list, i), genome);
    bool ok = has || json_array_append(list, genome) == 0;
    json_decref(genome);
    return ok ? EV_OK : ev_fail_memory(err, 0);
}

static ev_status add_text(earlier *e, const char *kernel, const char *text, ev_error *err) {
    return add_genome(e, kernel, json_loads(text, 0, NULL), err);
}

/* The genomes in the variants of a portfolio, or in a bold winner. */
static ev_status add_inside(earlier *e, const char *kernel, const char *text, ev_error *err) {
    ev_json *doc = NULL;
    if (text[0] == '\0')
        return EV_OK;
    EV_TRY(ev_json_parse(text, "the records", &doc, err));
    const json_t *variants = json_object_get(doc->root, "variants");
    ev_status status = EV_OK;
    for (size_t i = 0; i < json_array_size(variants) && status == EV_OK; i++)
        status = add_genome(
            e, kernel, json_incref(json_object_get(json_array_get(variants, i), "genome")), err);
    json_t *own = json_object_get(doc->root, "genome");
    if (own && status == EV_OK)
        status = add_genome(e, kernel, json_incref(own), err);
    ev_json_free(doc);
    return status;
}

static ev_status read_bundle(earlier *e, ev_error *err) {
    bundle *b = NULL;
    EV_TRY(bundle_open(e->path, &b, err));
    ev_status status = EV_OK;
    for (size_t i = 0; i < bundle_kernel_count(b); i++) {
        const bundle_kernel *k = bundle_kernel_at(b, i);
        for (size_t v = 0; v < k->variant_count && status == EV_OK; v++)
            status = add_text(e, k->name, k->variants[v].genome, err);
    }
    bundle_close(b);
    return status;
}

/* Whether a child was timed, and was not ended by a shortcut that depends on its parents. */
static bool is_timed(const records_evaluation *e) {
    if (!e->genome || e->ns <= 0 || strcmp(e->gate, gate_name(GATE_NONE)) != 0 || !e->score[0])
        return false;
    json_t *json = json_loads(e->score, 0, NULL);
    const json_t *cases = json_object_get(json, "cases");
    bool is = false;
    for (size_t i = 0; i < json_array_size(cases); i++)
        is = is || ev_json_number(json_array_get(cases, i), "ns", 0) > 0;
    is = is && !ev_json_flag(json, "estimated", false);
    json_decref(json);
    return is;
}

/* ---- genomes of records ---- */

/* The fastest evaluations, in order of time. */
typedef struct fastest {
    struct {
        double ns;
        json_t *genome;
    } list[EARLIER_MOST];
    size_t count;
} fastest;

static ev_status take_fast(void *context, const records_evaluation *e, ev_error *err) {
    fastest *f = context;
    (void)err;
    if (!is_timed(e))
        return EV_OK;
    size_t at = f->count;
    while (at > 0 && e->ns < f->list[at - 1].ns)
        at--;
    if (at == EARLIER_MOST)
        return EV_OK;
    if (f->count == EARLIER_MOST)
        json_decref(f->list[--f->count].genome);
    memmove(&f->list[at + 1], &f->list[at], (f->count - at) * sizeof f->list[0]);
    f->list[at].ns = e->ns;
    f->list[at].genome = json_deep_copy(e->genome);
    f->count++;
    return EV_OK;
}

static ev_status read_fast(earlier *e, size_t task, const char *kernel, ev_error *err) {
    fastest f = {.count = 0};
    ev_status status = records_each(e->records, task, "search", take_fast, &f, err);
    for (size_t i = 0; i < f.count; i++) {
        if (status == EV_OK)
            status = add_genome(e, kernel, f.list[i].genome, err);
        else
            json_decref(f.list[i].genome);
    }
    return status;
}

static ev_status read_winners(earlier *e, ev_error *err) {
    records_winner *winners = NULL;
    size_t count = 0;
    EV_TRY(records_winners(e->records, &winners, &count, err));
    ev_status status = EV_OK;
    for (size_t i = 0; i < count && status == EV_OK; i++) {
        const records_winner *w = &winners[i];
        status = add_text(e, w->kernel, w->genome, err);
        if (status == EV_OK)
            status = add_inside(e, w->kernel, w->portfolio, err);
        if (status == EV_OK)
            status = add_inside(e, w->kernel, w->bold, err);
    }
    records_winners_free(winners, count);
    return status;
}

static ev_status read_records(earlier *e, ev_error *err) {
    EV_TRY(records_open_read(e->path, &e->records, err));
    EV_TRY(records_identity(e->records, &e->identity, err));
    EV_TRY(read_winners(e, err));
    const json_t *tasks = json_object_get(e->identity, "tasks");
    for (size_t i = 0; i < json_array_size(tasks); i++)
        EV_TRY(read_fast(e, i, ev_json_text(json_array_get(tasks, i), "name", ""), err));
    return EV_OK;
}

ev_status earlier_open(const char *path, earlier **out, ev_error *err) {
    earlier *e = calloc(1, sizeof *e);
    if (!e || !(e->path = strdup(path)) || !(e->genomes = json_object())) {
        earlier_free(e);
        return ev_fail_memory(err, sizeof *e);
    }
    bool is_bundle = ev_path_is_dir(path) || bundle_is_tar_name(path);
    ev_status status = is_bundle ? read_bundle(e, err) : read_records(e, err);
    if (status != EV_OK) {
        earlier_free(e);
        return ev_wrap(err, status, "--from %s", path);
    }
    *out = e;
    return EV_OK;
}

/* ---- what fits a task ---- */

static bool has_value(const task_start *start, const char *name, int64_t value) {
    for (size_t i = 0; i < start->macro_count; i++) {
        const task_macro *m = &start->macros[i];
        for (size_t k = 0; strcmp(m->name, name) == 0 && k < m->value_count; k++) {
            if (m->values[k] == value)
                return true;
        }
    }
    return false;
}

/* Why a genome is left out; "": it is taken. An edit that no longer applies shows when it is built.
 */
static void find_reason(const earlier_filter *f, const ir_genome *genome, char *out, size_t room) {
    const char *name = ir_genome_start(genome);
    const task_start *start = task_find_start(f->t, name);
    out[0] = '\0';
    if (!start || start->is_reference)
        (void)snprintf(out, room, "the task has no start '%s' to search", name);
    else if (f->start && strcmp(f->start, "all") != 0 && strcmp(f->start, name) != 0)
        (void)snprintf(out, room, "it grew from the start '%s'", name);
    else if (ir_genome_is_optimised(genome))
        (void)snprintf(out, room, "its edits refer to an optimised base, as gevo's");
    else if (!f->structure && ir_genome_prefix_count(genome) > 0)
        (void)snprintf(out, room, "it has structural edits");
    for (size_t i = 0; start && i < ir_genome_macro_count(genome) && out[0] == '\0'; i++) {
        const char *macro = ir_genome_macro_name(genome, i);
        int64_t value = ir_genome_macro_value(genome, i);
        if (!has_value(start, macro, value))
            (void)snprintf(out, room, "the start '%s' has no macro %s with the value %lld", name,
                           macro, (long long)value);
    }
    for (size_t i = 0; i < ir_genome_edit_count(genome) && out[0] == '\0'; i++) {
        if (!f->bold && ir_edit_is_bold(ir_genome_edit_kind(genome, i)))
            (void)snprintf(out, room, "it has the bold edit %s",
                           ir_edit_name(ir_genome_edit_kind(genome, i)));
    }
}

ev_status earlier_genomes(const earlier *e, const earlier_filter *filter,
                          const ir_genome *out[EARLIER_MOST], size_t *count, ev_str *skipped,
                          ev_error *err) {
    const json_t *list = json_object_get(e->genomes, filter->t->name);
    *count = 0;
    for (size_t i = 0; i < json_array_size(list) && *count < EARLIER_MOST; i++) {
        ir_genome *genome = NULL;
        ev_error why = {0};
        char reason[200] = "";
        ev_status status = ir_genome_from_json(json_array_get(list, i), &genome, &why);
        if (status == EV_INFRA)
            return ev_fail(err, status, "%s", why.text);
        if (status == EV_OK)
            find_reason(filter, genome, reason, sizeof reason);
        if (status == EV_OK && reason[0] == '\0') {
            out[(*count)++] = genome;
            continue;
        }
        ev_str_printf(skipped, "genome %zu is left out: %s\n", i,
                      status == EV_OK ? reason : why.text);
        ir_genome_free(genome);
    }
    return EV_OK;
}

/* ---- times ---- */

/* A number for an evaluation of a phase. */
static const char *const phases[] = {"search", "minimise"};
#define PHASES (sizeof phases / sizeof phases[0])

static uint64_t place_of(const records_evaluation *row) {
    return row->number * PHASES + (strcmp(row->phase, phases[0]) != 0);
}

static ev_status take_time(void *context, const records_evaluation *row, ev_error *err) {
    earlier *e = context;
    ir_genome *genome = NULL;
    if (!is_timed(row))
        return EV_OK;
    EV_TRY(ir_genome_from_json(row->genome, &genome, err));
    ev_sha256 own = ir_genome_sha256(genome);
    uint64_t place = place_of(row);
    ev_status status = known_add(e->by_genome, &own, place, err);
    const char *ptx = row->hashes[SEARCH_BY_PTX];
    if (status == EV_OK && ptx && ptx[0]) {
        ev_sha256 code = search_code_key(genome, ptx);
        status = known_add(e->by_code, &code, place, err);
    }
    ir_genome_free(genome);
    return status;
}

static bool is_equal(const json_t *a, const json_t *b, const char *key) {
    const json_t *left = json_object_get(a, key), *right = json_object_get(b, key);
    return left && right && json_equal(left, right);
}

/* The place of the task in the records; false: they have another task of that name, or none. */
static bool find_task(const earlier *e, const task *t, size_t *out) {
    const json_t *tasks = json_object_get(e->identity, "tasks");
    for (size_t i = 0; i < json_array_size(tasks); i++) {
        if (strcmp(ev_json_text(json_array_get(tasks, i), "sha256", ""), t->sha256.hex) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

/* A description in a file may have changed, and a driver's times drift. */
static bool is_fixed_model(const json_t *identity) {
    const char *device = ev_json_text(identity, "device", "");
    size_t length = strlen(device);
    bool is_file = length > 5 && strcmp(device + length - 5, ".json") == 0;
    return strncmp(device, "vm:", 3) == 0 && !is_file;
}

static ev_status count_known(void *context, const records_evaluation *row, ev_error *err) {
    (void)err;
    *(size_t *)context += is_timed(row);
    return EV_OK;
}

ev_status earlier_use_times(earlier *e, const task *t, const json_t *identity, size_t *known,
                            ev_error *err) {
    static const char *const keys[] = {"evoke", "llvm", "protocol", "model", "device"};
    bool holds = e->records && is_fixed_model(identity) && find_task(e, t, &e->task);
    earlier_drop_times(e);
    *known = 0;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        holds = holds && is_equal(e->identity, identity, keys[i]);
    if (!holds)
        return EV_OK;
    e->by_genome = known_new();
    e->by_code = known_new();
    if (!e->by_genome || !e->by_code)
        return ev_fail_memory(err, 0);
    for (size_t i = 0; i < PHASES; i++) {
        EV_TRY(records_each(e->records, e->task, phases[i], take_time, e, err));
        EV_TRY(records_each(e->records, e->task, phases[i], count_known, known, err));
    }
    return EV_OK;
}

static bool find_child(const earlier *e, const child_result *r, search_hash by, uint64_t *place) {
    if (!e->by_genome || !r->genome)
        return false;
    if (by == SEARCH_BY_GENOME) {
        ev_sha256 key = ir_genome_sha256(r->genome);
        return known_find(e->by_genome, &key, place);
    }
    if (by != SEARCH_BY_PTX || !r->hashes[by][0])
        return false;
    ev_sha256 key = search_code_key(r->genome, r->hashes[by]);
    return known_find(e->by_code, &key, place);
}

bool earlier_knows(const earlier *e, const child_result *r, search_hash by) {
    uint64_t place = 0;
    return find_child(e, r, by, &place);
}

/* Where an evaluation goes. */
typedef struct recalled {
    child_result *r;
    score *s;
} recalled;

static ev_status take_row(void *context, const records_evaluation *row, ev_error *err) {
    const recalled *to = context;
    ev_json *doc = NULL;
    EV_TRY(ev_json_parse(row->score, "the earlier records", &doc, err));
    ev_status status = score_from_json(doc->root, to->s, err);
    ev_json_free(doc);
    EV_TRY(status);
    for (int by = SEARCH_BY_IR; by < SEARCH_HASHES; by++) {
        char *hash = to->r->hashes[by];
        if (!hash[0] && row->hashes[by])
            (void)snprintf(hash, sizeof to->r->hashes[by], "%s", row->hashes[by]);
    }
    to->r->bold = row->bold;
    child_result_take_score(to->r, to->s);
    return EV_OK;
}

ev_status earlier_score(earlier *e, const ir_genome *genome, score *s, bool *found, ev_error *err) {
    child_result r = {.genome = genome}; /* borrowed */
    *found = earlier_knows(e, &r, SEARCH_BY_GENOME);
    return *found ? earlier_recall(e, &r, s, err) : EV_OK;
}

ev_status earlier_recall(earlier *e, child_result *r, score *s, ev_error *err) {
    uint64_t place = 0;
    bool found =
        find_child(e, r, SEARCH_BY_GENOME, &place) || find_child(e, r, SEARCH_BY_PTX, &place);
    recalled to = {r, s};
    assert(found);
    EV_TRY(records_get(e->records, e->task, phases[place % PHASES], place / PHASES, take_row, &to,
                       &found, err));
    return found ? EV_OK : ev_fail(err, EV_INFRA, "%s lost an evaluation", e->path);
}
