/* evoke init: a first task for a kernel of a CUDA source. */
#include "base/child.h"
#include "base/file.h"
#include "kernels/task.h"
#include "tuner/cli/cmd.h"
#include "tuner/init/draft.h"
#include "tuner/worker/variant.h"

#include <stdlib.h>
#include <string.h>

#define INIT_SM 90 /* of vm:h200, where `evoke check` runs a task by default */

/* The files of a new task. All are written into `made`, which then becomes `folder`. */
typedef struct init_files {
    const char *path;   /* of the source */
    const char *source; /* its name without folders */
    char *folder, *made;
} init_files;

static ev_status open_files(const cmd_context *c, const char *kernel, init_files *f,
                            ev_error *err) {
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

static ev_status copy_source(const init_files *f, draft *d, ev_error *err) {
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

static ev_status probe(const init_files *f, draft *d, ev_error *err) {
    ev_str ptx = EV_STR_EMPTY;
    char *path = ev_path_join(f->made, f->source);
    const char *entry = d->instance != NULL ? d->instance : d->kernel->name;
    ev_status status = path != NULL ? variant_build_file(path, entry, INIT_SM, &ptx, err)
                                    : ev_fail_memory(err, strlen(f->made));
    if (status == EV_BAD)
        name_own_file(path, f->path, err);
    if (status == EV_OK)
        status = draft_probe(d, ptx.data, ptx.length, err);
    free(path);
    ev_str_free(&ptx);
    return status;
}

static void note_guesses(draft *d) {
    for (size_t i = 0; i < d->argument_count; i++) {
        const draft_argument *a = &d->arguments[i];
        if (a->kind == DRAFT_SCALAR && a->value != NULL)
            draft_note(d, "%s is %s in all cases%s", a->name, a->value,
                       a->is_said ? ", as in the launch" : "");
        if (a->is_partial)
            draft_note(d,
                       "the kernel writes a part of %s, so it is inout: the rest stays as it was",
                       a->name);
        if ((a->kind == DRAFT_IN || a->kind == DRAFT_INOUT) && !ev_type_is_float(a->type))
            draft_note(d,
                       "%s holds whole numbers from 0 to %d: say in \"data\" what it holds, and in "
                       "\"domain\" what every caller keeps to",
                       a->name, a->is_bool ? 1 : 15);
    }
    for (size_t i = 0; i < d->size_count; i++) {
        const draft_size *s = &d->sizes[i];
        bool is_said = s->pinned == s->value, is_less = d->odd[i] < s->pinned;
        if (s->is_fixed)
            draft_note(d, "%s is %lld%s%s", s->name, (long long)s->pinned,
                       is_said ? ", as in the launch" : " in all cases",
                       is_less ? ", and less where a check would take too long" : "");
    }
    if (d->multiple > 1)
        draft_note(d, "the kernel traps at odd sizes, so all sizes are multiples of %lld",
                   (long long)d->multiple);
    draft_note(d, "counts of buffers are the shortest that the runs allowed");
    draft_note(d, "put the shapes of your program into \"cases\"; the large ones are timed");
}

/* Whether the task loads; its message is no fault of the user, but helps to edit the file. */
static ev_status write_task(const init_files *f, draft *d, ev_error *err) {
    ev_str text = EV_STR_EMPTY;
    draft_write(d, f->source, &text);
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

static void tell(cmd_context *c, const init_files *f, const draft *d) {
    const char *entry = d->instance != NULL ? d->instance : d->kernel->name;
    ev_str_printf(c->out, "%s/task.json: %s of %s, %zu argument%s, %zu tunable macro%s\n",
                  f->folder, entry, f->path, d->argument_count, d->argument_count == 1 ? "" : "s",
                  d->macro_count, d->macro_count == 1 ? "" : "s");
    if (d->trap[0] != '\0')
        ev_str_printf(c->out,
                      "The task is a draft: the kernel does not run on what was guessed:\n  %s\n",
                      d->trap);
    ev_str_printf(c->out, "Look at:\n%s", ev_str_text(&d->notes));
    ev_str_printf(c->out,
                  "Next:\n  evoke check %s/task.json\n  evoke tune %s/task.json --effort quick\n",
                  f->folder, f->folder);
}

static ev_status make_task(cmd_context *c, init_files *f, draft *d, ev_error *err) {
    EV_TRY(open_files(c, d->kernel->name, f, err));
    ev_status status = copy_source(f, d, err);
    if (status == EV_OK)
        status = probe(f, d, err);
    if (status == EV_OK) {
        note_guesses(d);
        status = write_task(f, d, err);
    }
    if (status == EV_OK)
        status = ev_dir_replace(f->made, f->folder, err);
    ev_error ignored;
    if (status != EV_OK)
        (void)!ev_dir_remove(f->made, &ignored);
    return status;
}

ev_status cmd_init(cmd_context *c, ev_error *err) {
    init_files f = {.path = c->args->operands[0]};
    const char *kernel = c->args->operand_count > 1 ? c->args->operands[1] : NULL;
    char *text = NULL;
    size_t bytes = 0;
    cuda_text *t = NULL;
    draft d = {0};
    EV_TRY(ev_file_read(f.path, &text, &bytes, err));
    ev_status status = cuda_text_read(text, bytes, &t, err);
    free(text);
    if (status == EV_OK)
        status = draft_read(t, f.path, kernel, &d, err);
    if (status == EV_OK) {
        draft_find_launch(&d);
        draft_find_symbols(&d);
        status = make_task(c, &f, &d, err);
    }
    if (status == EV_OK) {
        tell(c, &f, &d);
        c->exit_code = d.trap[0] != '\0';
    }
    draft_free(&d);
    free(f.folder);
    free(f.made);
    return status;
}
