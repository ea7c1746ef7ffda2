/* Ranks: tasks of kernels that run on several GPUs at once and access their peers' memory. */
#include "kernels/task_private.h"

#include <stdio.h>
#include <string.h>

typedef task_loader loader;

/* ---- "ranks" ---- */

static const char *barrier_at(size_t i) {
    static const char *const names[] = {"before", "after"};
    return names[i];
}

static ev_status read_barriers(loader *l) {
    const json_t *given = json_object_get(l->doc->root, "barriers"), *one;
    size_t i;
    if (given != NULL && l->t->ranks == NULL)
        return ev_json_fail(l->doc, "barriers", l->err,
                            "barriers are of a task with \"ranks\"; leave them out");
    json_array_foreach(given, i, one) {
        char where[TASK_MAX_WHERE];
        const char *name = json_string_value(one);
        size_t which = 0;
        (void)snprintf(where, sizeof where, "barriers[%zu]", i);
        EV_TRY(
            task_find_name(l, "barrier", name != NULL ? name : "", where, 2, barrier_at, &which));
        *(which == 0 ? &l->t->begins_together : &l->t->ends_together) = true;
    }
    return EV_OK;
}

ev_status task_ranks_read(loader *l) {
    const json_t *given = json_object_get(l->doc->root, "ranks");
    if (given != NULL)
        EV_TRY(task_read_expression(l, given, "ranks", &l->t->ranks));
    return read_barriers(l);
}

ev_status task_ranks_of(const task *t, const task_case *c, uint32_t *out, ev_error *err) {
    task_scope room;
    int64_t ranks = 1;
    *out = 1;
    if (t->ranks == NULL)
        return EV_OK;
    ev_status status = task_case_scope(t, c, &room, err);
    if (status == EV_OK)
        status =
            expr_eval_whole(t->ranks, &room.scope, TASK_RANKS_LEAST, TASK_RANKS_MOST, &ranks, err);
    if (status != EV_OK)
        return ev_wrap(err, status, "case %s, ranks", c->name);
    *out = (uint32_t)ranks;
    return EV_OK;
}

uint32_t task_ranks_most(const task *t) {
    uint32_t most = 1, ranks = 1;
    ev_error ignored;
    for (size_t i = 0; t->ranks != NULL && i < t->case_count; i++) {
        if (task_ranks_of(t, &t->cases[i], &ranks, &ignored) == EV_OK && ranks > most)
            most = ranks;
    }
    return most;
}

ev_status task_refuse_ranks(const task *t, const char *what, const char *cure, ev_error *err) {
    if (t->ranks == NULL)
        return EV_OK;
    return ev_fail(err, EV_BAD,
                   "task %s has ranks: one launch of its kernel runs on several GPUs, and %s %s",
                   t->name, what, cure);
}

/* ---- arguments of kind rank and peers ---- */

bool task_ranks_has_kind(const json_t *value) {
    const char *kind = ev_json_text(value, "kind", "");
    return strcmp(kind, "rank") == 0 || strcmp(kind, "peers") == 0;
}

static const char *type_at(size_t i) {
    static const ev_type types[] = {EV_U32, EV_S32, EV_U64, EV_S64};
    return ev_type_name(types[i]);
}

static ev_status read_number(loader *l, const json_t *value, const char *where, task_argument *a) {
    static const ev_type types[] = {EV_U32, EV_S32, EV_U64, EV_S64};
    char at[TASK_MAX_WHERE];
    size_t index = 0;
    EV_TRY(task_check_keys(l, value, where, &TASK_TABLE_RANK));
    (void)snprintf(at, sizeof at, "%s.type", where);
    EV_TRY(task_find_name(l, "type of a rank's number", ev_json_text(value, "type", ""), at,
                          sizeof types / sizeof types[0], type_at, &index));
    a->type = types[index];
    a->kind = TASK_SCALAR;
    a->value = "0"; /* of rank 0 */
    a->is_rank = true;
    return EV_OK;
}

/* The table is an input of addresses; the gates fill it when they have placed the buffers. */
static ev_status read_peers(loader *l, const json_t *value, const char *where, task_argument *a) {
    EV_TRY(task_check_keys(l, value, where, &TASK_TABLE_PEERS));
    a->kind = TASK_IN;
    a->type = EV_U64;
    a->align = TASK_ALIGN;
    a->count = l->t->ranks;
    a->generator = corpus_generator_find("zeros");
    a->peers_of = task_keep(l, ev_json_text(value, "of", ""));
    return EV_OK;
}

ev_status task_ranks_read_argument(loader *l, const json_t *value, const char *where,
                                   task_argument *a) {
    char at[TASK_MAX_WHERE];
    bool is_peers = strcmp(ev_json_text(value, "kind", ""), "peers") == 0;
    EV_TRY(is_peers ? read_peers(l, value, where, a) : read_number(l, value, where, a));
    a->name = task_keep(l, ev_json_text(value, "name", ""));
    a->doc = task_keep(l, ev_json_text(value, "doc", ""));
    (void)snprintf(at, sizeof at, "%s.name", where);
    EV_TRY(task_check_name(l, a->name, at));
    if (l->t->ranks != NULL)
        return EV_OK;
    (void)snprintf(at, sizeof at, "%s.kind", where);
    return ev_json_fail(
        l->doc, at, l->err,
        "an argument of kind \"%s\" is of a task with \"ranks\"; say how many ranks "
        "there are",
        is_peers ? "peers" : "rank");
}

/* ---- checks ---- */

const task_argument *task_ranks_peers_of(const task *t, const task_argument *table) {
    for (size_t i = 0; i < t->argument_count; i++) {
        const task_argument *a = &t->arguments[i];
        bool is_buffer = a->kind != TASK_SCALAR && a->peers_of == NULL;
        if (is_buffer && strcmp(a->name, table->peers_of) == 0)
            return a;
    }
    return NULL;
}

static ev_status check_argument(const task *t, const ev_json *doc, size_t index, ev_error *err) {
    const task_argument *a = &t->arguments[index];
    char where[TASK_MAX_WHERE];
    (void)snprintf(where, sizeof where, "arguments[%zu]", a->parameter);
    if (a->peers_of != NULL && task_ranks_peers_of(t, a) == NULL)
        return ev_json_fail(doc, where, err,
                            "the table %s is of \"%s\", which is no buffer among the arguments",
                            a->name, a->peers_of);
    if (a->by_rank && t->ranks == NULL)
        return ev_json_fail(doc, where, err,
                            "\"by_rank\" of %s is of a task with \"ranks\"; leave it out", a->name);
    if (a->row != NULL && t->ranks != NULL)
        return ev_json_fail(doc, where, err,
                            "%s has a \"pitch\", which a task with \"ranks\" cannot have yet; make "
                            "its rows whole",
                            a->name);
    return EV_OK;
}

ev_status task_ranks_check(const task *t, const ev_json *doc, ev_error *err) {
    for (size_t i = 0; i < t->argument_count; i++)
        EV_TRY(check_argument(t, doc, i, err));
    if (t->ranks == NULL)
        return EV_OK;
    if (t->symbol_count > 0)
        return ev_json_fail(doc, "symbols", err,
                            "a task with \"ranks\" cannot have symbols yet; pass a buffer instead");
    if (strcmp(ev_json_text(doc->root, "oracle", ""), "baseline") == 0)
        return ev_json_fail(doc, "oracle", err,
                            "a task with \"ranks\" needs an oracle of its own: a baseline whose "
                            "flags are wrong would be its own answer");
    for (size_t i = 0; i < t->case_count; i++) {
        uint32_t ranks = 0;
        ev_error why = {0};
        ev_status status = task_ranks_of(t, &t->cases[i], &ranks, &why);
        if (status == EV_BAD)
            return ev_json_fail(doc, "ranks", err, "%s", why.text);
        if (status != EV_OK)
            return ev_fail(err, status, "%s", why.text);
    }
    return EV_OK;
}
