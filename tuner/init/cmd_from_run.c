/* evoke init --from-run: a task with the data that a program gave its kernel. The program runs on
 * the stand-in for the CUDA driver, and its launches become the cases. */
#include "base/file.h"
#include "tuner/init/draft_trace.h"
#include "tuner/init/init_files.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the source ---- */

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), least = strlen(end);
    return length >= least && strcmp(text + length - least, end) == 0;
}

/* A draft reads types and lengths from CUDA C. */
static ev_status check_source(const char *path, ev_error *err) {
    if (ends_with(path, ".ptx"))
        return ev_fail(
            err, EV_BAD,
            "--source %s: a search begins with CUDA C or LLVM IR, not with PTX; give the "
            "source that it was compiled from",
            path);
    if (ends_with(path, ".ll") || ends_with(path, ".bc"))
        return ev_fail(
            err, EV_BAD,
            "--source %s: LLVM IR does not say what its pointers point to; give the CUDA "
            "C, or write task.json by hand (docs/task.md)",
            path);
    return EV_OK;
}

static ev_status read_source(const char *path, const char *kernel, draft *d, ev_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    cuda_text *t = NULL;
    EV_TRY(check_source(path, err));
    EV_TRY(ev_file_read(path, &text, &bytes, err));
    ev_status status = cuda_text_read(text, bytes, &t, err);
    free(text);
    EV_TRY(status);
    EV_TRY(draft_read(t, path, kernel, d, err));
    size_t notes = d->notes.length;
    draft_find_launch(d);
    draft_find_symbols(d);
    if (d->notes.data != NULL) { /* what those guessed, the run says */
        d->notes.length = notes;
        d->notes.data[notes] = '\0';
    }
    return EV_OK;
}

/* ---- the run ---- */

/* A folder for the recording within another, which is not kept. The program may change its
 * folder, so the path is a whole one. */
static ev_status record(const cmd_context *c, const char *within, const char *kernel, trace *t,
                        ev_error *err) {
    char whole[PATH_MAX];
    char *folder = ev_path_join(within, "recorded");
    trace_request q = {.program = cli_text(c->args, CLI_OPT_FROM_RUN),
                       .words = c->args->operands,
                       .word_count = c->args->operand_count,
                       .kernel = kernel,
                       .launches = cli_count(c->args, CLI_OPT_INIT_LAUNCHES, 3),
                       .megabytes = cli_count(c->args, CLI_OPT_INIT_MB, 1024)};
    ev_status status = folder != NULL ? ev_dir_make(folder, err) : ev_fail_memory(err, 1);
    q.folder = status == EV_OK ? realpath(folder, whole) : NULL;
    if (status == EV_OK && q.folder == NULL)
        status = ev_fail_errno(err, "cannot find", folder);
    if (status == EV_OK)
        status = trace_run(&q, t, err);
    free(folder);
    return status;
}

static ev_status forget_recording(const init_files *f, ev_error *err) {
    char *folder = ev_path_join(f->made, "recorded");
    ev_status status = folder != NULL ? ev_dir_remove(folder, err) : ev_fail_memory(err, 1);
    free(folder);
    return status;
}

/* Lines of the stand-in on launches that it left out. */
static void note_left(draft *d, const trace *t) {
    const char *at = ev_str_text(&t->left);
    for (int i = 0; i < 3 && *at != '\0'; i++) {
        int length = (int)strcspn(at, "\n");
        draft_note(d, "%.*s", length, at);
        at += length + (at[length] == '\n');
    }
}

/* A template without given arguments is the instance that the program launches first. */
static ev_status take_instance(const char *path, const char *given, const trace *t, draft *d,
                               ev_error *err) {
    bool is_given = given != NULL && strchr(given, '<') != NULL;
    char *name = NULL;
    for (size_t i = 0; d->instance != NULL && !is_given && name == NULL && i < t->count; i++)
        name = draft_instance_of(t->launches[i].kernel, d->kernel->name);
    if (name == NULL)
        return EV_OK;
    draft_free(d);
    ev_status status = read_source(path, name, d, err);
    free(name);
    return status;
}

/* ---- the task ---- */

static bool is_scalar(const draft *d, const char *name) {
    bool is = false;
    for (size_t i = 0; i < d->argument_count; i++)
        is |= d->arguments[i].kind == DRAFT_SCALAR && strcmp(d->arguments[i].name, name) == 0;
    return is;
}

static void note_guesses(draft_trace *dt) {
    draft *d = dt->d;
    for (size_t i = 0; i < d->argument_count; i++) {
        const draft_argument *a = &d->arguments[i];
        if (a->kind == DRAFT_SCALAR && a->value != NULL)
            draft_note(d, "%s is %s in all launches", a->name, a->value);
        if (a->mixed != NULL)
            draft_note(d,
                       "%s has structs with fields of several types: floats are compared by the "
                       "tolerance, whole numbers exactly, field by field",
                       a->name);
        if (a->is_partial)
            draft_note(d,
                       "the kernel writes a part of %s, so it is inout: the rest stays as it was",
                       a->name);
    }
    for (size_t i = d->size_count; i < dt->name_count; i++)
        draft_note(d,
                   is_scalar(d, dt->names[i])
                       ? "%s differs from launch to launch, so it is a name of the shape"
                       : "%s is a name of the shape: no expression of the sizes gives it",
                   dt->names[i]);
}

static ev_status fill_draft(draft_trace *dt, const init_files *f, const ev_str *ptx, ev_str *cases,
                            ev_error *err) {
    draft *d = dt->d;
    draft_trace_apply(dt);
    EV_TRY(draft_probe(d, ptx->data, ptx->length, err));
    EV_TRY(draft_replay(dt, ptx->data, ptx->length, err));
    draft_trace_vary(dt);
    note_guesses(dt);
    return draft_write_traced(dt, f->made, cases, err);
}

static void tell(cmd_context *c, const init_files *f, const draft *d, const draft_trace *dt) {
    const char *entry = d->instance != NULL ? d->instance : d->kernel->name;
    ev_str_printf(c->out, "%s/task.json: %s of %s, %zu argument%s, %zu recorded launch%s of %s\n",
                  f->folder, entry, f->path, d->argument_count, d->argument_count == 1 ? "" : "s",
                  dt->count, dt->count == 1 ? "" : "es", cli_text(c->args, CLI_OPT_FROM_RUN));
    if (d->trap[0] != '\0')
        ev_str_printf(
            c->out,
            "The task is a draft: the source's kernel does not run on the recorded data:\n"
            "  %s\n",
            d->trap);
    else if (dt->differs[0] != '\0')
        ev_str_printf(c->out,
                      "The source's kernel does NOT leave what the program's left: %s.\nThe oracle "
                      "is the source's kernel: see that the program was made of this source\n",
                      dt->differs);
    else
        ev_str_printf(c->out,
                      "The source's kernel leaves what the program's left: the largest relative L2 "
                      "error is %.2g\n",
                      dt->error);
    ev_str_printf(c->out, "Look at:\n%s", ev_str_text(&d->notes));
    init_files_tell_next(c, f);
    c->exit_code = d->trap[0] != '\0' || dt->differs[0] != '\0';
}

static ev_status make_task(cmd_context *c, init_files *f, draft *d, ev_error *err) {
    trace t = {0};
    draft_trace dt = {0};
    ev_str cases = EV_STR_EMPTY, ptx = EV_STR_EMPTY;
    EV_TRY(init_files_open(c, d->kernel->name, f, err));
    ev_status status = init_files_copy(f, d, err);
    if (status == EV_OK && d->instance == NULL) /* clang's errors, before the program is run */
        status = init_files_build(f, d, &ptx, err);
    if (status == EV_OK)
        status = record(c, f->made, d->kernel->name, &t, err);
    if (status == EV_OK)
        status = take_instance(f->path, cli_text(c->args, CLI_OPT_INIT_KERNEL), &t, d, err);
    if (status == EV_OK && ptx.length == 0)
        status = init_files_build(f, d, &ptx, err);
    if (status == EV_OK)
        status = draft_keep_symbols(d, ptx.data, ptx.length, err);
    if (status == EV_OK) {
        note_left(d, &t);
        status = draft_trace_begin(d, &t, &dt, err);
    }
    if (status == EV_OK)
        status = fill_draft(&dt, f, &ptx, &cases, err);
    if (status == EV_OK)
        status = forget_recording(f, err);
    if (status == EV_OK)
        status = init_files_task(f, d, ev_str_text(&cases), err);
    status = init_files_close(f, status, err);
    if (status == EV_OK)
        tell(c, f, d, &dt);
    ev_str_free(&cases);
    ev_str_free(&ptx);
    draft_trace_free(&dt);
    trace_free(&t);
    return status;
}

/* Only to say what the program launches, and what is missing. */
static ev_status run_without_source(cmd_context *c, ev_error *err) {
    trace t = {0};
    char folder[PATH_MAX];
    const char *temporary = getenv("TMPDIR");
    (void)snprintf(folder, sizeof folder, "%s/evoke-run-XXXXXX",
                   temporary != NULL && *temporary != '\0' ? temporary : "/tmp");
    if (mkdtemp(folder) == NULL)
        return ev_fail_errno(err, "cannot make a folder like", folder);
    ev_status status = record(c, folder, NULL, &t, err);
    if (status == EV_OK)
        status = ev_fail(err, EV_BAD, "--source FILE.cu is missing");
    trace_free(&t);
    ev_error ignored;
    (void)!ev_dir_remove(folder, &ignored);
    return status;
}

ev_status init_from_run(cmd_context *c, ev_error *err) {
    init_files f = {.path = cli_text(c->args, CLI_OPT_INIT_SOURCE)};
    draft d = {0};
    if (cli_count(c->args, CLI_OPT_INIT_LAUNCHES, 3) == 0)
        return ev_fail(err, EV_BAD, "--launches 0: a task needs a launch; give 1 or more");
    if (f.path == NULL)
        return run_without_source(c, err);
    ev_status status = read_source(f.path, cli_text(c->args, CLI_OPT_INIT_KERNEL), &d, err);
    if (status == EV_OK)
        status = make_task(c, &f, &d, err);
    draft_free(&d);
    init_files_free(&f);
    return status;
}
