/* The files of a new task. */
#include "tuner/init/init_files.h"

#include "base/child.h"
#include "base/file.h"
#include "kernels/task.h"
#include "tuner/worker/variant.h"

#include <stdlib.h>
#include <string.h>

#define INIT_SM 90 /* of vm:h200, where `evoke check` runs a task by default */

ev_status init_files_open(const cmd_context *c, const char *kernel, init_files *f, ev_error *err) {
    const char *slash = strrchr(f->path, '/');
    f->source = slash != NULL ? slash + 1 : f->path;
    const char *out = cli_text(c->args, CLI_OPT_INIT_OUT);
    ev_str made = EV_STR_EMPTY;
    f->folder = strdup(out != NULL ? out : kernel);
    ev_str_printf(&made, "%s.new", f->folder != NULL ? f->folder : "");
    f->made = ev_str_take(&made);
    if (f->folder == NULL || f->made == NULL)
        return ev_fail_memory(err, strlen(f->path));
    if (ev_path_exists(f->folder))
        return ev_fail(err, EV_BAD, "%s exists already; give another folder by --out DIR",
                       f->folder);
    if (ev_path_exists(f->made))
        return ev_fail(err, EV_BAD, "%s exists already; remove it, or give another folder by --out",
                       f->made);
    return ev_dir_make(f->made, err);
}

static ev_status write_file(const init_files *f, const char *name, const char *text, size_t bytes,
                            ev_error *err) {
    char *path = ev_path_join(f->made, name);
    if (path == NULL)
        return ev_fail_memory(err, strlen(name));
    ev_status status = ev_file_write(path, text, bytes, err);
    free(path);
    return status;
}

/* Copies the headers that the source includes in quotes and that lie beside it. */
static ev_status copy_headers(const init_files *f, draft *d, ev_error *err) {
    char *folder = ev_path_dir(f->path);
    ev_status status = folder != NULL ? EV_OK : ev_fail_memory(err, strlen(f->path));
    for (size_t i = 0; status == EV_OK && i < d->t->include_count; i++) {
        const cuda_include *include = &d->t->includes[i];
        char *path = ev_path_join(folder, include->file), *text = NULL;
        size_t bytes = 0;
        bool is_beside = include->is_quoted && path != NULL && ev_path_exists(path) &&
                         strstr(include->file, "..") == NULL;
        if (is_beside && strchr(include->file, '/') != NULL)
            draft_note(d, "%s is not copied: it lies in another folder; put it beside the source",
                       include->file);
        else if (is_beside)
            status = ev_file_read(path, &text, &bytes, err);
        if (text != NULL)
            status = write_file(f, include->file, text, bytes, err);
        free(text);
        free(path);
    }
    free(folder);
    return status;
}

ev_status init_files_copy(const init_files *f, draft *d, ev_error *err) {
    EV_TRY(write_file(f, f->source, d->t->text, d->t->bytes, err));
    return copy_headers(f, d, err);
}

/* Puts the user's path in place of the copy's, which is gone when the message is read. */
static void name_own_file(const char *copy, const char *own, ev_error *err) {
    ev_str text = EV_STR_EMPTY, whole = EV_STR_EMPTY;
    ev_error_whole(err, &whole);
    const char *at = ev_str_text(&whole);
    for (const char *found; (found = strstr(at, copy)) != NULL; at = found + strlen(copy)) {
        ev_str_append_n(&text, at, (size_t)(found - at));
        ev_str_append(&text, own);
    }
    ev_str_append(&text, at);
    if (ev_str_status(&text, &(ev_error){0}) == EV_OK)
        (void)ev_fail_long(err, EV_BAD, ev_str_text(&text));
    ev_str_free(&text);
    ev_str_free(&whole);
}

ev_status init_files_build(const init_files *f, const draft *d, ev_str *ptx, ev_error *err) {
    char *path = ev_path_join(f->made, f->source);
    const char *entry = d->instance != NULL ? d->instance : d->kernel->name;
    ev_status status = path != NULL ? variant_build_file(path, entry, INIT_SM, ptx, err)
                                    : ev_fail_memory(err, strlen(f->made));
    if (status == EV_BAD)
        name_own_file(path, f->path, err);
    free(path);
    return status;
}

/* Whether the task loads; its message is no fault of the user, but helps to edit the file. */
ev_status init_files_task(const init_files *f, const draft *d, const char *cases, ev_error *err) {
    ev_str text = EV_STR_EMPTY;
    draft_write(d, f->source, cases, &text);
    ev_status status = ev_str_status(&text, err);
    if (status == EV_OK)
        status = write_file(f, "task.json", text.data, text.length, err);
    ev_str_free(&text);
    char *path = status == EV_OK ? ev_path_join(f->made, "task.json") : NULL;
    task *t = NULL;
    if (path != NULL && d->trap[0] == '\0')
        status = task_load(path, &t, err);
    task_free(t);
    free(path);
    return status;
}

ev_status init_files_close(const init_files *f, ev_status status, ev_error *err) {
    if (status == EV_OK)
        status = ev_dir_replace(f->made, f->folder, err);
    ev_error ignored;
    if (status != EV_OK)
        (void)!ev_dir_remove(f->made, &ignored);
    return status;
}

void init_files_tell_next(const cmd_context *c, const init_files *f) {
    const char *toolkit = cli_text(c->args, CLI_OPT_CUDA_PATH);
    const char *option = toolkit != NULL ? " --cuda-path " : "";
    toolkit = toolkit != NULL ? toolkit : "";
    ev_str_printf(c->out,
                  "Next:\n  evoke check %s/task.json%s%s\n"
                  "  evoke tune %s/task.json --effort quick%s%s\n",
                  f->folder, option, toolkit, f->folder, option, toolkit);
}

void init_files_free(init_files *f) {
    free(f->folder);
    free(f->made);
}
