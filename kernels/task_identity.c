/* Identity: the hash of everything that a task states: its document, its sources, its oracle's
 * source, their headers and its files of data. Reads the paths of those files. */
#include "kernels/task_private.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adds a file's length and bytes to the task's identity. */
static ev_status add_file(ev_str *all, const char *path, ev_error *err) {
    char *data = NULL;
    size_t bytes = 0;
    EV_TRY(ev_file_read(path, &data, &bytes, err));
    ev_str_printf(all, "%zu:", bytes);
    ev_str_append_n(all, data, bytes);
    free(data);
    return EV_OK;
}

/* Whether a path stays in the folder that it is relative to, wherever the folder is. */
static bool is_inside(const char *path) {
    if (path[0] == '/' || path[0] == '\0')
        return false;
    for (const char *at = path; at != NULL; at = strchr(at, '/')) {
        at += at != path;
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0'))
            return false;
    }
    return true;
}

/* The same file is read once, whoever names it. */
static ev_status keep_file(task_loader *l, const char *path, const char *where,
                           const corpus_recorded **out) {
    task *t = l->t;
    for (size_t i = 0; i < t->file_count; i++) {
        if (strcmp(t->files[i]->path, path) == 0) {
            *out = t->files[i];
            return EV_OK;
        }
    }
    if (t->file_count == TASK_MAX_FILES)
        return ev_json_fail(l->doc, where, l->err, "a task may name %d files of data at most",
                            TASK_MAX_FILES);
    const corpus_recorded **all = EV_NEW_ARRAY(l->arena, const corpus_recorded *, TASK_MAX_FILES);
    corpus_recorded *file = EV_NEW(l->arena, corpus_recorded);
    if (all == NULL || file == NULL)
        return ev_fail_memory(l->err, TASK_MAX_FILES * sizeof(*all));
    for (size_t i = 0; i < t->file_count; i++)
        all[i] = t->files[i];
    file->path = ev_arena_strdup(l->arena, path);
    if (!ev_path_exists(path) || ev_path_is_dir(path))
        return ev_json_fail(l->doc, where, l->err,
                            "there is no file \"%s\"; a path is relative to the task's folder",
                            path);
    EV_TRY(recorded_hash(file, l->err));
    all[t->file_count] = *out = file;
    t->files = all;
    t->file_count++;
    return EV_OK;
}

ev_status task_recorded_read(task_loader *l, const json_t *value, const char *where,
                             const corpus_recorded **out) {
    static const ev_json_key keys[] = {{"file", EV_JSON_STRING, true, "its path"}};
    char at[TASK_MAX_WHERE];
    EV_TRY(ev_json_check(l->doc, value, where, keys, 1, l->err));
    (void)snprintf(at, sizeof at, "%s.file", where);
    const char *name = ev_json_text(value, "file", "");
    if (!is_inside(name))
        return ev_json_fail(l->doc, at, l->err,
                            "\"%s\" leaves the task's folder; move the file in and give a path "
                            "relative to the task",
                            name);
    char *path = ev_path_join(l->t->folder, name);
    if (path == NULL)
        return ev_fail_memory(l->err, strlen(name));
    ev_status status = keep_file(l, path, at, out);
    free(path);
    return status;
}

ev_status task_identity_set(task *t, ev_error *err) {
    ev_str all = EV_STR_EMPTY;
    ev_str_append(&all, t->json);
    ev_status status = EV_OK;
    for (size_t i = 0; i < t->start_count && status == EV_OK; i++)
        status = add_file(&all, t->starts[i].source, err);
    if (status == EV_OK && t->oracle_kind == TASK_ORACLE_SOURCE)
        status = add_file(&all, t->oracle_name, err);
    for (size_t i = 0; i < t->header_count && status == EV_OK; i++) {
        ev_str_append(&all, "header:");
        status = add_file(&all, t->headers[i], err);
    }
    for (size_t i = 0; i < t->file_count; i++) /* a task without files keeps its hash */
        ev_str_printf(&all, "file:%s", t->files[i]->sha256.hex);
    if (status == EV_OK)
        status = ev_str_status(&all, err);
    if (status == EV_OK)
        t->sha256 = ev_sha256_of(ev_str_text(&all), all.length);
    ev_str_free(&all);
    return status;
}
