/* Messages: the fields of each message of tuner/worker/messages.def, with their names on the wire.
 * Each function below lists the fields of one member of `message`, and serves encoding and decoding
 * alike (tuner/worker/message_fields.h). */
#include "tuner/worker/message_fields.h"
#include "tuner/worker/protocol.h"

#include "tuner/search/draw.h"

#include <assert.h>
#include <string.h>

#define MOST_ITEMS 100000 /* most items of a list; a longer one is taken as noise */

static const char *const message_names[MESSAGE_COUNT] = {
#define MESSAGE(id, name, fields, from, meaning) [MESSAGE_##id] = name,
#include "tuner/worker/messages.def"
#undef MESSAGE
};

const char *message_name(message_kind kind) {
    assert(kind < MESSAGE_COUNT);
    return message_names[kind];
}

/* The kind of a message by name; MESSAGE_COUNT: no message has that name. */
static message_kind find_kind(const char *name) {
    unsigned kind = 0;
    while (kind < MESSAGE_COUNT && strcmp(message_names[kind], name) != 0)
        kind++;
    return (message_kind)kind;
}

/* ---- words of enumerations ---- */

static const char *role_word(unsigned role) {
    return worker_role_name((worker_role)role);
}

static const char *stage_word(unsigned at) {
    return stage_name((stage)at);
}

static const char *gate_word(unsigned at) {
    return gate_name((gate)at);
}

static const char *edit_word(unsigned kind) {
    return ir_edit_name((ir_edit_kind)kind);
}

static const char *sketch_word(unsigned sketch) {
    static const char *const words[] = {
        [SKETCH_NOTHING] = "nothing", [SKETCH_STOPPED] = "stopped", [SKETCH_IGNORED] = "ignored"};
    return words[sketch];
}

static const char *made_word(unsigned made) {
    static const char *const words[RECIPE_MADE_COUNT] = {
        [RECIPE_TAKEN] = "taken", [RECIPE_CROSSED] = "crossed", [RECIPE_REDUCED] = "reduced",
        [RECIPE_TUNED] = "tuned", [RECIPE_SET] = "set",         [RECIPE_JOINED] = "joined"};
    return words[made];
}

static const char *part_word(unsigned part) {
    static const char *const words[PART_COUNT] = {WORKER_PART_NAMES};
    return words[part];
}

static const char *status_word(unsigned bad) {
    return bad ? "bad" : "infra";
}

/* ---- both ---- */

/* Reads the fields that all versions share, and accepts further ones of later versions. */
static void walk_hello(fields *f, hello_message *m) {
    f->takes_more = true;
    field_count(f, "protocol", &m->protocol);
    field_text(f, "evoke", &m->evoke);
    field_text(f, "llvm", &m->llvm);
}

static void walk_made(fields *f, made_message *m) {
    field_text(f, "key", &m->key);
    field_value(f, "value", &m->value);
}

static void walk_nothing(const fields *f, const nothing_message *m) {
    (void)f, (void)m;
}

/* ---- from the coordinator ---- */

static void walk_open(fields *f, open_message *m) {
    field_text(f, "task", &m->task);
    field_text(f, "device", &m->device);
    m->role = (worker_role)field_word(f, "role", m->role, ROLE_COUNT, role_word);
    field_unsigned(f, "splits", &m->splits);
    field_unsigned(f, "jobs", &m->jobs);
    field_number(f, "watchdog", &m->watchdog);
    field_bool(f, "holds_never", &m->holds_never);
}

static void walk_genomes(fields *f, const char *name, const ir_genome **genomes, unsigned *count,
                         size_t most) {
    size_t n = *count;
    fields list = fields_enter_list(f, name, &n, most);
    for (size_t i = 0; i < n; i++)
        field_genome(&list, NULL, &genomes[i]);
    *count = (unsigned)n;
}

static void walk_step(fields *steps, recipe_step *step) {
    size_t count = step->count;
    fields list = fields_enter_list(steps, NULL, &count, RECIPE_ALTERNATIVES);
    for (size_t i = 0; i < count; i++)
        step->arms[i] = field_word(&list, NULL, step->arms[i], ARM_COUNT, arm_name);
    step->count = (unsigned)count;
}

static void walk_steps(fields *f, recipe *r) {
    size_t count = r->step_count;
    fields list = fields_enter_list(f, "steps", &count, RECIPE_STEPS);
    for (size_t i = 0; i < count; i++)
        walk_step(&list, &r->steps[i]);
    r->step_count = (unsigned)count;
}

static void walk_tabu(fields *f, recipe *r) {
    size_t count = r->tabu_count;
    fields list = fields_enter_list(f, "tabu", &count, TABU_MOST);
    for (size_t i = 0; i < count; i++)
        field_bits(&list, NULL, &r->tabu[i]);
    r->tabu_count = (unsigned)count;
}

static void walk_wrong(fields *f, recipe *r) {
    size_t count = r->wrong_count;
    fields list = fields_enter_list(f, "wrong", &count, WRONG_MOST);
    for (size_t i = 0; i < count; i++)
        field_bits(&list, NULL, &r->wrong[i]);
    r->wrong_count = (unsigned)count;
}

static void walk_stream(fields *f, recipe_stream *s) {
    fields in = fields_enter(f, "stream");
    field_bits(&in, "seed", &s->seed);
    field_unsigned(&in, "island", &s->island);
    field_unsigned(&in, "generation", &s->generation);
    field_count(&in, "child", &s->child);
    fields_leave(&in);
}

static void walk_reach(fields *f, recipe_reach *r) {
    fields in = fields_enter(f, "reach");
    field_number(&in, "sketch", &r->sketch);
    field_number(&in, "built", &r->built);
    field_number(&in, "first", &r->first);
    field_number(&in, "error", &r->error);
    fields_leave(&in);
}

static void walk_estimate(fields *f, recipe_estimate *e) {
    fields in = fields_enter(f, "estimate");
    field_bool(&in, "times", &e->times);
    field_number(&in, "near", &e->near);
    field_number(&in, "due", &e->due);
    fields_leave(&in);
}

static void walk_child(fields *f, child_message *m) {
    recipe *r = &m->recipe;
    walk_genomes(f, "parents", r->parents, &r->parent_count, 2);
    if (f->walk->status == EV_OK && r->parent_count == 0)
        fields_refuse(f, "parents", "is empty");
    r->made = (recipe_made)field_word(f, "made", r->made, RECIPE_MADE_COUNT, made_word);
    walk_genomes(f, "origin", r->origin, &r->origin_count, 1);
    walk_steps(f, r);
    walk_genomes(f, "stock", r->stock, &r->stock_count, RECIPE_STOCK);
    walk_tabu(f, r);
    walk_wrong(f, r);
    field_bool(f, "by_heat", &r->by_heat);
    field_bits(f, "without", &r->without);
    walk_stream(f, &r->stream);
    walk_reach(f, &r->reach);
    r->sketch = (score_sketch)field_word(f, "sketch", r->sketch, SKETCH_IGNORED + 1, sketch_word);
    walk_estimate(f, &r->estimate);
}

static void walk_variant(fields *f, variant_message *m) {
    field_genome(f, "genome", &m->genome);
}

static void walk_screened(fields *f, screened_message *m) {
    field_genome(f, "genome", &m->genome);
    field_text(f, "ptx", &m->ptx);
    field_score(f, "score", &m->score);
}

static void walk_promote(fields *f, promote_message *m) {
    field_genome(f, "genome", &m->genome);
    fields in = fields_enter(f, "bar");
    field_number(&in, "ns", &m->bar.ns);
    field_number(&in, "baseline_ns", &m->bar.baseline_ns);
    field_number(&in, "least_gain", &m->bar.least_gain);
    field_bool(&in, "is_last", &m->bar.is_last);
    fields_leave(&in);
}

/* ---- from a worker: the task ---- */

static void walk_sites(fields *f, size_t *sites) {
    fields in = fields_enter(f, "sites");
    for (unsigned kind = 0; kind < IR_EDIT_COUNT; kind++)
        field_size(&in, edit_word(kind), &sites[kind]);
    fields_leave(&in);
}

static void walk_starts(fields *f, ready_message *m) {
    fields list = fields_enter_list(f, "starts", &m->start_count, MOST_ITEMS);
    m->starts = fields_items(f, m->starts, m->start_count, sizeof *m->starts);
    for (size_t i = 0; m->starts && i < m->start_count; i++) {
        fields in = fields_enter(&list, NULL);
        field_text(&in, "name", &m->starts[i].name);
        walk_sites(&in, m->starts[i].sites);
        fields_leave(&in);
    }
}

static void walk_times(fields *f, const char *name, case_time **times, size_t *count) {
    fields list = fields_enter_list(f, name, count, MOST_ITEMS);
    *times = fields_items(f, *times, *count, sizeof **times);
    for (size_t i = 0; *times && i < *count; i++) {
        fields in = fields_enter(&list, NULL);
        field_text(&in, "case", &(*times)[i].name);
        field_number(&in, "ns", &(*times)[i].ns);
        fields_leave(&in);
    }
}

static void walk_drawn_cases(fields *f, ready_message *m) {
    fields list = fields_enter_list(f, "drawn", &m->drawn_count, MOST_ITEMS);
    m->drawn = fields_items(f, (void *)m->drawn, m->drawn_count, sizeof *m->drawn);
    for (size_t i = 0; m->drawn && i < m->drawn_count; i++)
        field_text(&list, NULL, &m->drawn[i]);
}

static void walk_ready(fields *f, ready_message *m) {
    field_hash(f, "task_sha256", m->task_sha256);
    field_text(f, "gpu_name", &m->gpu_name);
    field_text(f, "driver", &m->driver);
    field_unsigned(f, "sm", &m->sm);
    field_bool(f, "modelled", &m->modelled);
    walk_starts(f, m);
    walk_times(f, "baseline", &m->baseline, &m->baseline_count);
    walk_times(f, "floors", &m->floors, &m->floor_count);
    walk_drawn_cases(f, m);
}

/* ---- from a worker: a job ---- */

static void walk_stage(fields *f, stage_message *m) {
    m->stage = (stage)field_word(f, "stage", m->stage, STAGE_COUNT, stage_word);
}

static void walk_drawn(fields *f, drawn_message *m) {
    field_genome(f, "genome", &m->genome);
    field_hash(f, "sha256", m->sha256);
    field_text(f, "operators", &m->operators);
}

static void walk_hash(fields *f, hash_message *m) {
    field_hash(f, "sha256", m->sha256);
}

static void walk_want(fields *f, want_message *m) {
    field_text(f, "key", &m->key);
}

static void walk_end(fields *f, job_end *e) {
    fields in = fields_enter(f, "seconds");
    for (unsigned part = 0; part < PART_COUNT; part++)
        field_number(&in, part_word(part), &e->seconds[part]);
    fields_leave(&in);
    field_bool(f, "leaves", &e->leaves);
    field_count(f, "bold", &e->bold);
}

static void walk_passed(fields *f, passed_message *m) {
    field_text(f, "ptx", &m->ptx);
    field_score(f, "score", &m->score);
    walk_end(f, &m->end);
}

static void walk_code(fields *f, code_reply *c) {
    fields in = fields_enter(f, "code");
    field_hash(&in, "genome_sha256", c->genome_sha256);
    field_hash(&in, "ir_sha256", c->ir_sha256);
    field_hash(&in, "ptx_sha256", c->ptx_sha256);
    field_text(&in, "ptx", &c->ptx);
    field_text(&in, "entry", &c->entry);
    field_bits(&in, "may_alias", &c->may_alias);
    fields_leave(&in);
}

static void walk_cases(fields *f, done_message *m) {
    fields list = fields_enter_list(f, "cases", &m->case_count, MOST_ITEMS);
    m->cases = fields_items(f, m->cases, m->case_count, sizeof *m->cases);
    for (size_t i = 0; m->cases && i < m->case_count; i++) {
        case_check *c = &m->cases[i];
        fields in = fields_enter(&list, NULL);
        field_text(&in, "name", &c->name);
        field_bool(&in, "ok", &c->ok);
        field_number(&in, "ns", &c->ns);
        field_number(&in, "low_ns", &c->low_ns);
        field_number(&in, "high_ns", &c->high_ns);
        field_number(&in, "error", &c->error);
        field_text(&in, "reason", &c->reason);
        fields_leave(&in);
    }
}

static void walk_done(fields *f, done_message *m) {
    if ((m->has_score = fields_maybe(f, "score", m->has_score)))
        field_score(f, "score", &m->score);
    if ((m->has_code = fields_maybe(f, "code", m->has_code)))
        walk_code(f, &m->code);
    field_maybe_text(f, "words", &m->words);
    if ((m->has_cases = fields_maybe(f, "cases", m->has_cases)))
        walk_cases(f, m);
    walk_end(f, &m->end);
}

static void walk_failed(fields *f, failed_message *m) {
    m->gate = (gate)field_word(f, "gate", m->gate, GATE_COUNT, gate_word);
    field_text(f, "reason", &m->reason);
    walk_end(f, &m->end);
}

static void walk_fatal(fields *f, fatal_message *m) {
    m->stage = (stage)field_word(f, "stage", m->stage, STAGE_COUNT, stage_word);
    field_text(f, "reason", &m->reason);
}

static void walk_error(fields *f, error_message *m) {
    bool bad = field_word(f, "status", m->status == EV_BAD, 2, status_word) != 0;
    m->status = bad ? EV_BAD : EV_INFRA;
    field_text(f, "text", &m->text);
}

/* ---- all ---- */

static void walk_fields(fields *f, message *m) {
    switch (m->kind) {
#define MESSAGE(id, name, member, from, meaning)                                                   \
    case MESSAGE_##id:                                                                             \
        walk_##member(f, &m->member);                                                              \
        break;
#include "tuner/worker/messages.def"
#undef MESSAGE
    case MESSAGE_COUNT:
        assert(false);
    }
    fields_leave(f);
}

void message_free(message *m) {
    for (unsigned i = 0; i < m->genome_count; i++)
        ir_genome_free(m->genomes[i]);
    json_decref(m->source);
    ev_arena_free(m->arena);
    *m = (message){.kind = m->kind};
}

ev_status message_encode(const message *m, json_t **out, ev_error *err) {
    message own = *m; /* encoding writes each field back unchanged */
    walk w = {.message = message_name(m->kind), .refusal = EV_INFRA, .err = err};
    fields f = {.walk = &w, .at = json_object()};
    const char *name = w.message;
    field_text(&f, "type", &name);
    walk_fields(&f, &own);
    if (w.status == EV_OK)
        *out = f.at;
    else
        json_decref(f.at);
    return w.status;
}

ev_status message_decode(json_t *object, message *out, ev_error *err) {
    const char *name = json_string_value(json_object_get(object, "type"));
    message m = {.kind = find_kind(name ? name : ""), .source = object};
    if (m.kind == MESSAGE_COUNT) {
        ev_status status = name ? ev_fail(err, EV_INFRA, "there is no message '%.80s'", name)
                                : ev_fail(err, EV_INFRA, "a message has no 'type'");
        json_decref(object);
        return status;
    }
    walk w = {.decodes = true,
              .message = message_name(m.kind),
              .refusal = m.kind == MESSAGE_HELLO ? EV_BAD : EV_INFRA,
              .genomes = m.genomes,
              .err = err};
    fields f = {.walk = &w, .at = object};
    field_text(&f, "type", &name);
    walk_fields(&f, &m);
    m.arena = w.arena;
    m.genome_count = w.genome_count;
    if (w.status == EV_OK)
        *out = m;
    else
        message_free(&m);
    return w.status == EV_BAD
               ? ev_wrap(err, EV_BAD,
                         "the other side is of another version; start workers of the same build")
               : w.status;
}
