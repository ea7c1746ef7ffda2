/* evoke init: a first task for a kernel of a CUDA source. */
#include "base/file.h"
#include "tuner/init/init_files.h"

#include <stdlib.h>

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
        bool has_data = a->kind == DRAFT_IN || a->kind == DRAFT_INOUT;
        if (has_data && a->mixed != NULL)
            draft_note(d,
                       "%s has structs: look at \"data\" of its fields, of which whole numbers are "
                       "from 0 to 15, or 0 and 1",
                       a->name);
        else if (has_data && !ev_type_is_float(a->type))
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
    init_files_tell_next(c, f);
}

static ev_status probe(const init_files *f, draft *d, ev_error *err) {
    ev_str ptx = EV_STR_EMPTY;
    ev_status status = init_files_build(f, d, &ptx, err);
    if (status == EV_OK)
        status = draft_probe(d, ptx.data, ptx.length, err);
    ev_str_free(&ptx);
    return status;
}

static ev_status make_task(const cmd_context *c, init_files *f, draft *d, ev_error *err) {
    EV_TRY(init_files_open(c, d->kernel->name, f, err));
    ev_status status = init_files_copy(f, d, err);
    if (status == EV_OK)
        status = probe(f, d, err);
    if (status == EV_OK) {
        note_guesses(d);
        status = init_files_task(f, d, NULL, err);
    }
    return init_files_close(f, status, err);
}

/* Options that only one of the two ways has. */
static ev_status check_words(const cli_args *args, ev_error *err) {
    static const cli_option of_runs[] = {CLI_OPT_INIT_SOURCE, CLI_OPT_INIT_KERNEL,
                                         CLI_OPT_INIT_LAUNCHES, CLI_OPT_INIT_MB};
    if (cli_text(args, CLI_OPT_FROM_RUN) != NULL)
        return EV_OK;
    for (size_t i = 0; i < sizeof of_runs / sizeof of_runs[0]; i++) {
        if (args->given[of_runs[i]])
            return ev_fail(err, EV_BAD, "--%s needs --from-run PROGRAM; see evoke init --help",
                           cli_options[of_runs[i]].name);
    }
    if (args->operand_count == 0)
        return ev_fail(err, EV_BAD,
                       "init needs FILE.cu [KERNEL], or --from-run PROGRAM; see evoke init --help");
    return args->operand_count <= 2
               ? EV_OK
               : ev_fail(err, EV_BAD,
                         "init takes FILE.cu [KERNEL]; remove '%s', or see evoke init --help",
                         args->operands[2]);
}

ev_status cmd_init(cmd_context *c, ev_error *err) {
    EV_TRY(check_words(c->args, err));
    if (cli_text(c->args, CLI_OPT_FROM_RUN) != NULL)
        return init_from_run(c, err);
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
    init_files_free(&f);
    return status;
}
