/* Identity: the hash of everything that a task states: its document, its sources and its oracle's
 * source. */
#include "kernels/task_private.h"

#include "base/file.h"

#include <stdlib.h>

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

ev_status task_identity_set(task *t, ev_error *err) {
    ev_str all = EV_STR_EMPTY;
    ev_str_append(&all, t->json);
    ev_status status = EV_OK;
    for (size_t i = 0; i < t->start_count && status == EV_OK; i++)
        status = add_file(&all, t->starts[i].source, err);
    if (status == EV_OK && t->oracle_kind == TASK_ORACLE_SOURCE)
        status = add_file(&all, t->oracle_name, err);
    if (status == EV_OK)
        status = ev_str_status(&all, err);
    if (status == EV_OK)
        t->sha256 = ev_sha256_of(ev_str_text(&all), all.length);
    ev_str_free(&all);
    return status;
}
