/* Loads a task from its file, with its oracle in C or without. */
#include "kernels/task_apart.h"
#include "kernels/task_private.h"

#include <stdlib.h>

static ev_status load(const char *path, bool is_apart, task **out, ev_error *err) {
    ev_json *doc = NULL;
    EV_TRY(ev_json_load(path, &doc, err));
    task_box *box = calloc(1, sizeof *box);
    ev_arena *arena = ev_arena_new();
    if (box == NULL || arena == NULL) {
        free(box);
        ev_arena_free(arena);
        ev_json_free(doc);
        return ev_fail_memory(err, sizeof *box);
    }
    box->arena = arena;
    box->is_apart = is_apart;
    ev_status status = task_read_all(box, path, doc, err);
    ev_json_free(doc);
    if (status != EV_OK) {
        task_free(&box->public);
        return status;
    }
    *out = &box->public;
    return EV_OK;
}

ev_status task_load(const char *path, task **out, ev_error *err) {
    return load(path, false, out, err);
}

ev_status task_load_apart(const char *path, bool *had_source, task **out, ev_error *err) {
    task *t = NULL;
    EV_TRY(load(path, true, &t, err));
    *had_source = t->oracle_kind == TASK_ORACLE_SOURCE;
    if (*had_source) {
        t->oracle_kind = TASK_ORACLE_BASELINE;
        t->oracle_name = "baseline";
    }
    *out = t;
    return EV_OK;
}
