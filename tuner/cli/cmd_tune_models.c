/* evoke tune on GPUs of several models: a search for each, side by side, in a process of its own.
 */
#include "tuner/cli/cmd_tune.h"

#include "base/json.h"
#include "base/proc.h"
#include "base/stop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_WORDS 64
#define WAIT_MS 200 /* how long a stop is not looked at */

typedef struct model_run {
    ev_str devices; /* "cuda:0,cuda:2" */
    ev_str words[MOST_WORDS];
    size_t count;
    ev_proc proc;
    bool runs;
    ev_str out;
    int exit_code;
} model_run;

static void add_word(model_run *r, const char *text) {
    if (r->count < MOST_WORDS - 1)
        ev_str_append(&r->words[r->count++], text);
}

static void add_option(model_run *r, cli_option option, const char *value) {
    if (r->count < MOST_WORDS - 1)
        ev_str_printf(&r->words[r->count++], "--%s", cli_options[option].name);
    if (value != NULL)
        add_word(r, value);
}

/* "run.sqlite" of "cuda:1" is "run-cuda1.sqlite", "bundle" is "bundle-cuda1". */
static void add_file(model_run *r, cli_option option, const char *path, const char *id) {
    ev_str name = EV_STR_EMPTY;
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash != NULL ? slash : path, '.');
    size_t stem = dot != NULL ? (size_t)(dot - path) : strlen(path);
    ev_str_append_n(&name, path, stem);
    ev_str_printf(&name, "-cuda%s%s", id + strlen("cuda:"), path + stem);
    add_option(r, option, ev_str_text(&name));
    ev_str_free(&name);
}

/* The options that were given, for one model. */
static void add_given(model_run *r, const cli_args *args, const char *id) {
    for (int i = 0; i < CLI_OPTION_COUNT; i++) {
        cli_option option = (cli_option)i;
        bool is_file =
            option == CLI_OPT_RECORDS || option == CLI_OPT_OUT || option == CLI_OPT_TUNE_REPORT;
        if (!args->given[i] || option == CLI_OPT_DEVICE || cli_options[i].kind == CLI_IS_LIST)
            continue;
        if (is_file)
            add_file(r, option, args->values[i], id);
        else
            add_option(r, option, cli_options[i].kind == CLI_IS_FLAG ? NULL : args->values[i]);
    }
    for (size_t i = 0; i < args->operand_count; i++)
        add_word(r, args->operands[i]);
}

static size_t make_runs(const cmd_context *c, const look_devices *gpus, model_run *runs) {
    size_t count = 0;
    bool taken[LOOK_MOST_GPUS] = {false};
    for (size_t i = 0; i < gpus->count; i++) {
        if (taken[i])
            continue;
        model_run *r = &runs[count++];
        *r = (model_run){.exit_code = -1};
        for (size_t k = i; k < gpus->count; k++) {
            if (strcmp(gpus->models[k], gpus->models[i]) != 0)
                continue;
            taken[k] = true;
            ev_str_printf(&r->devices, "%s%s", r->devices.length > 0 ? "," : "", gpus->ids[k]);
        }
        add_word(r, "/proc/self/exe");
        add_word(r, "tune");
        add_option(r, CLI_OPT_DEVICE, ev_str_text(&r->devices));
        add_given(r, c->args, gpus->ids[i]);
    }
    return count;
}

static ev_status start_run(model_run *r, ev_error *err) {
    const char *argv[MOST_WORDS] = {NULL};
    for (size_t i = 0; i < r->count; i++) {
        EV_TRY(ev_str_status(&r->words[i], err));
        argv[i] = ev_str_text(&r->words[i]);
    }
    EV_TRY(ev_proc_spawn(argv, &r->proc, err));
    r->runs = true;
    return EV_OK;
}

/* Takes what has come; the end of the output is the end of the process. */
static void hear_run(model_run *r) {
    char buffer[4096];
    ssize_t got = read(r->proc.out, buffer, sizeof buffer);
    if (got > 0)
        ev_str_append_n(&r->out, buffer, (size_t)got);
    if (got > 0 || (got < 0 && errno == EINTR))
        return;
    int status = ev_proc_end(&r->proc, EV_PROC_PATIENCE);
    r->runs = false;
    r->exit_code = status != -1 && WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

/* The processes are in groups of their own: what stops this one is passed on, once. */
static void pass_on_stop(const model_run *runs, size_t count, bool *passed) {
    if (*passed || !ev_stop_asked())
        return;
    *passed = true;
    for (size_t i = 0; i < count; i++) {
        if (runs[i].runs)
            (void)kill(runs[i].proc.pid, SIGINT);
    }
}

static void hear_all(model_run *runs, size_t count) {
    bool passed = false;
    for (;;) {
        struct pollfd fds[LOOK_MOST_GPUS];
        size_t running = 0;
        for (size_t i = 0; i < count; i++) {
            fds[i] = (struct pollfd){.fd = runs[i].runs ? runs[i].proc.out : -1, .events = POLLIN};
            running += runs[i].runs;
        }
        if (running == 0)
            return;
        int got = poll(fds, count, WAIT_MS);
        for (size_t i = 0; got > 0 && i < count; i++) {
            if (fds[i].revents != 0)
                hear_run(&runs[i]);
        }
        pass_on_stop(runs, count, &passed);
    }
}

/* Exit codes by how much they ask of the user: the machine, the input, a regression, none. */
static int worst_code(const model_run *runs, size_t count) {
    int worst = 0;
    for (size_t i = 0; i < count; i++)
        worst = runs[i].exit_code > worst ? runs[i].exit_code : worst;
    return worst;
}

static ev_status print_runs(cmd_context *c, const model_run *runs, size_t count, ev_error *err) {
    json_t *searches = json_array();
    for (size_t i = 0; i < count; i++) {
        ev_json *doc = NULL;
        ev_error ignored;
        const char *text = ev_str_text(&runs[i].out);
        if (!cli_flag(c->args, CLI_OPT_JSON))
            ev_str_printf(c->out, "%s%s:\n%s", i > 0 ? "\n" : "", ev_str_text(&runs[i].devices),
                          text);
        else if (ev_json_parse(text, "a search", &doc, &ignored) == EV_OK)
            (void)json_array_append(searches, doc->root);
        ev_json_free(doc);
    }
    if (cli_flag(c->args, CLI_OPT_JSON))
        return cmd_print_json(c, json_pack("{s:o}", "searches", searches), err);
    json_decref(searches);
    return EV_OK;
}

static void free_runs(model_run *runs, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (runs[i].runs)
            (void)ev_proc_end(&runs[i].proc, 0);
        for (size_t k = 0; k < runs[i].count; k++)
            ev_str_free(&runs[i].words[k]);
        ev_str_free(&runs[i].devices);
        ev_str_free(&runs[i].out);
    }
    free(runs);
}

ev_status cmd_tune_models(cmd_context *c, const look_devices *gpus, ev_error *err) {
    model_run *runs = calloc(LOOK_MOST_GPUS, sizeof *runs);
    if (runs == NULL)
        return ev_fail_memory(err, LOOK_MOST_GPUS * sizeof *runs);
    size_t count = make_runs(c, gpus, runs);
    ev_status status = EV_OK;
    for (size_t i = 0; i < count && status == EV_OK; i++)
        status = start_run(&runs[i], err);
    if (status == EV_OK) {
        hear_all(runs, count);
        status = print_runs(c, runs, count, err);
        c->exit_code = worst_code(runs, count);
    }
    free_runs(runs, count);
    return status;
}
