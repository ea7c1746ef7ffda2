/* evoke check: prints the findings and turns them into a verdict. */
#include "tuner/cli/cmd.h"

#include "base/file.h"
#include "base/json.h"
#include "base/lines.h"
#include "base/relay.h"
#include "base/stop.h"
#include "base/table.h"
#include "bundle/bundle.h"
#include "corpora/corpus.h"
#include "tuner/check/against.h"
#include "tuner/check/check.h"
#include "tuner/check/junit.h"
#include "tuner/check/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned splits_of(const char *word) {
    unsigned splits = 0;
    for (int i = 0; i < CORPUS_SPLIT_COUNT; i++) {
        if (strcmp(word, "all") == 0 || strcmp(word, corpus_split_name((corpus_split)i)) == 0)
            splits |= 1u << i;
    }
    return splits;
}

static void time_cell(table *rows, const json_t *row, const char *key) {
    char text[24];
    table_time(ev_json_number(row, key, 0), text);
    table_cell(rows, "%s", text);
}

static void gain_cell(table *rows, const json_t *row) {
    double ns = ev_json_number(row, "ns", 0), base = ev_json_number(row, "baseline_ns", 0);
    if (ns > 0 && base > 0)
        table_cell(rows, "%.2fx %s", base / ns, ev_json_text(row, "time_kind", ""));
    else
        table_cell(rows, "-");
}

static ev_status print_rows(const json_t *list, ev_str *out, ev_error *err) {
    static const char *const columns[] = {"kernel", "start",      "split", "case",      "verdict",
                                          ">error", ">tolerance", ">time", ">speed-up", NULL};
    table *rows = table_new(columns);
    if (rows == NULL)
        return ev_fail_memory(err, 1);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *row = json_array_get(list, i);
        static const char *const texts[] = {"kernel", "start", "split", "case", "verdict"};
        for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++)
            table_cell(rows, "%s", ev_json_text(row, texts[k], ""));
        if (json_object_get(row, "error") != NULL)
            table_cell(rows, "%.2g", ev_json_number(row, "error", 0));
        else
            table_cell(rows, "-"); /* the case was not run to its end */
        table_cell(rows, "%.2g", ev_json_number(row, "tolerance", 0));
        time_cell(rows, row, "ns");
        gain_cell(rows, row);
    }
    ev_status status = table_print(rows, out, err);
    table_free(rows);
    return status;
}

static void print_replays(const json_t *list, ev_str *out) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *row = json_array_get(list, i);
        ev_str_printf(out, "replay of %s (%s): %s\n", ev_json_text(row, "kernel", ""),
                      ev_json_text(row, "start", ""),
                      strcmp(ev_json_text(row, "verdict", ""), "pass") == 0
                          ? "the same PTX"
                          : ev_json_text(row, "reason", ""));
    }
}

static void print_reasons(const json_t *list, ev_str *out) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *row = json_array_get(list, i);
        const char *reason = ev_json_text(row, "reason", NULL);
        if (reason != NULL)
            ev_str_printf(out, "%s, %s, %s: %s\n", ev_json_text(row, "kernel", ""),
                          ev_json_text(row, "start", ""), ev_json_text(row, "case", ""), reason);
    }
}

static void print_element(const json_t *row, ev_str *out) {
    char *got = ev_json_print(json_object_get(row, "got"), true);
    char *want = ev_json_print(json_object_get(row, "want"), true);
    ev_str_printf(out, "  %s: got %s, want %s\n", ev_json_text(row, "element", ""),
                  got != NULL ? got : "", want != NULL ? want : "");
    free(got);
    free(want);
}

/* The case that failed, for task.json. */
static void print_case(const json_t *row, ev_str *out) {
    char *text = json_dumps(json_object_get(row, "case"), 0);
    ev_str_printf(out, "  the smallest case that fails, for \"cases\" in task.json:\n    %s\n",
                  text != NULL ? text : "");
    free(text);
}

static void print_stresses(const json_t *list, ev_str *out) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *row = json_array_get(list, i);
        const char *reason = ev_json_text(row, "reason", NULL);
        ev_str_printf(out, "stress of %s (%s, %s): %s: %lld shapes, %lld runs",
                      ev_json_text(row, "kernel", ""), ev_json_text(row, "role", ""),
                      ev_json_text(row, "start", ""), ev_json_text(row, "verdict", ""),
                      (long long)ev_json_integer(row, "shapes", 0),
                      (long long)ev_json_integer(row, "runs", 0));
        json_int_t unreached = ev_json_integer(row, "unreached", 0);
        if (unreached > 0)
            ev_str_printf(out, "; %lld PTX instructions were not reached", (long long)unreached);
        ev_str_char(out, '\n');
        if (reason != NULL)
            ev_str_printf(out, "  %s\n", reason);
        if (json_object_get(row, "output") != NULL)
            print_element(row, out);
        if (json_object_get(row, "case") != NULL)
            print_case(row, out);
    }
}

static void print_kernels(const json_t *kernels, ev_str *out) {
    for (size_t i = 0; i < json_array_size(kernels); i++) {
        const json_t *kernel = json_array_get(kernels, i);
        ev_str_printf(out, "%s: %s", ev_json_text(kernel, "kernel", ""),
                      ev_json_text(kernel, "verdict", ""));
        for (int v = CHECK_OK + 1; v < CHECK_VERDICT_COUNT; v++) {
            json_int_t count = ev_json_integer(kernel, check_verdict_name((check_verdict)v), 0);
            if (count > 0)
                ev_str_printf(out, "; %s: %lld finding%s", check_verdict_name((check_verdict)v),
                              (long long)count, count > 1 ? "s" : "");
        }
        ev_str_char(out, '\n');
    }
}

static void error_cell(table *rows, const json_t *row, const char *key) {
    if (json_object_get(row, key) != NULL)
        table_cell(rows, "%.2g", ev_json_number(row, key, 0));
    else
        table_cell(rows, "-");
}

static ev_status print_against(const json_t *list, ev_str *out, ev_error *err) {
    static const char *const columns[] = {
        "kernel",        "gpu",        "case",      ">before", ">now",
        ">error before", ">error now", "times are", "verdict", NULL};
    static const char *const texts[] = {"time_kind", "verdict"};
    table *rows = list != NULL ? table_new(columns) : NULL;
    if (rows == NULL)
        return list != NULL ? ev_fail_memory(err, 1) : EV_OK;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *row = json_array_get(list, i);
        static const char *const names[] = {"kernel", "gpu", "case"};
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
            table_cell(rows, "%s", ev_json_text(row, names[k], ""));
        time_cell(rows, row, "old_ns");
        time_cell(rows, row, "new_ns");
        error_cell(rows, row, "old_error");
        error_cell(rows, row, "new_error");
        for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++)
            table_cell(rows, "%s", ev_json_text(row, texts[k], ""));
    }
    ev_str_char(out, '\n');
    ev_status status = table_print(rows, out, err);
    table_free(rows);
    return status;
}

static const char *verdict_of(const check *found) {
    if (found->failed)
        return "fail";
    if (found->unset[0] != '\0')
        return "setup";
    return ev_stop_asked() ? "stopped" : "pass";
}

static ev_status print_json(cmd_context *c, const check *found, json_t *kernels,
                            const json_t *against, ev_error *err) {
    json_t *all =
        json_pack("{s:s, s:O, s:O, s:O, s:O}", "verdict", verdict_of(found), "kernels", kernels,
                  "rows", found->rows, "replays", found->replays, "stresses", found->stresses);
    if (against != NULL)
        (void)json_object_set(all, "against", (json_t *)against);
    return cmd_print_json(c, cmd_note_stop(all), err);
}

static ev_status print_findings(cmd_context *c, const check *found, const json_t *against,
                                ev_error *err) {
    json_t *kernels = check_kernels(found->rows, found->replays, found->stresses);
    c->exit_code = found->failed;
    if (cli_flag(c->args, CLI_OPT_JSON)) {
        ev_status status = print_json(c, found, kernels, against, err);
        json_decref(kernels);
        return status;
    }
    ev_status status = print_rows(found->rows, c->out, err);
    ev_str_char(c->out, '\n');
    print_replays(found->replays, c->out);
    print_reasons(found->rows, c->out);
    print_stresses(found->stresses, c->out);
    if (status == EV_OK)
        status = print_against(against, c->out, err);
    print_kernels(kernels, c->out);
    json_decref(kernels);
    ev_str_printf(c->out, "verdict: %s\n", verdict_of(found));
    return status;
}

/* For CI: the file of --junit, and annotations where a GitHub runner reads them. */
static ev_status report(const cmd_context *c, const check *found, ev_error *err) {
    const junit_findings all = {found->rows, found->replays, found->stresses};
    const char *path = cli_text(c->args, CLI_OPT_JUNIT), *github = getenv("GITHUB_ACTIONS");
    if (github != NULL && strcmp(github, "true") == 0) {
        ev_str text = EV_STR_EMPTY;
        junit_annotate(&all, c->args->operands[0], &text);
        (void)fputs(ev_str_text(&text), stderr);
        ev_str_free(&text);
    }
    return path != NULL ? junit_write(&all, path, err) : EV_OK;
}

/* The older bundle and the operand, by their records. *rows is the caller's. */
static ev_status compare_bundles(const cmd_context *c, check *found, json_t **rows, ev_error *err) {
    const char *path = cli_text(c->args, CLI_OPT_CHECK_AGAINST);
    bundle *old = NULL, *now = NULL;
    size_t worse = 0;
    if (path == NULL)
        return EV_OK;
    *rows = json_array();
    EV_TRY(bundle_open(path, &old, err));
    ev_status status = bundle_open(c->args->operands[0], &now, err);
    if (status == EV_OK)
        status = check_bundles_against(old, now, cli_real(c->args, CLI_OPT_SLACK, 0) / 100, *rows,
                                       &worse, err);
    found->failed = found->failed || worse > 0;
    bundle_close(old);
    bundle_close(now);
    return status;
}

/* A folder without a task.json is a bundle, and so is a tar, or any other path that does not end in
 * .json. */
static bool is_bundle(const char *operand) {
    size_t length = strlen(operand);
    bool is_json = length > 5 && strcmp(operand + length - 5, ".json") == 0;
    return !is_json && !task_is_folder(operand) &&
           (ev_path_is_dir(operand) || bundle_is_tar_name(operand) || strchr(operand, '/') != NULL);
}

/* A check that another process may go on with. */
typedef struct checking {
    const cli_args *args;
    check found;
    size_t operand; /* that is looked at */
} checking;

static ev_status check_rest(checking *c, ev_error *err) {
    check *found = &c->found;
    for (; c->operand < c->args->operand_count && !ev_stop_asked(); c->operand++) {
        const char *operand = c->args->operands[c->operand];
        found->step = 0;
        EV_TRY(is_bundle(operand) ? check_bundle(found, operand, err)
                                  : check_task(found, operand, err));
        if (found->again)
            return EV_OK;
        found->done = 0;
    }
    return EV_OK;
}

static ev_status run_leg(void *context, ev_str *baton, bool *again, ev_error *err) {
    checking *c = context;
    check *found = &c->found;
    found->again = false;
    EV_TRY(check_rest(c, err));
    *again = found->again;
    json_t *all =
        json_pack("{s:I, s:I, s:b, s:s, s:O, s:O, s:O}", "operand", (json_int_t)c->operand, "done",
                  (json_int_t)found->step, "failed", found->failed, "unset", found->unset, "rows",
                  found->rows, "replays", found->replays, "stresses", found->stresses);
    char *text = ev_json_print(all, true);
    json_decref(all);
    if (text == NULL)
        return ev_fail_memory(err, 1);
    ev_str_append(baton, text);
    free(text);
    return EV_OK;
}

static ev_status take_leg(void *context, const ev_str *baton, bool again, ev_error *err) {
    checking *c = context;
    check *found = &c->found;
    json_t *all = json_loadb(ev_str_text(baton), baton->length, 0, NULL);
    (void)again;
    if (all == NULL)
        return ev_fail_memory(err, baton->length);
    json_decref(found->rows);
    json_decref(found->replays);
    json_decref(found->stresses);
    c->operand = (size_t)ev_json_integer(all, "operand", 0);
    found->done = (size_t)ev_json_integer(all, "done", 0);
    found->failed = json_is_true(json_object_get(all, "failed"));
    (void)snprintf(found->unset, sizeof found->unset, "%s", ev_json_text(all, "unset", ""));
    found->rows = json_incref(json_object_get(all, "rows"));
    found->replays = json_incref(json_object_get(all, "replays"));
    found->stresses = json_incref(json_object_get(all, "stresses"));
    json_decref(all);
    return EV_OK;
}

static ev_status check_all(checking *c, ev_error *err) {
    const ev_relay relay = {.context = c,
                            .run = run_leg,
                            .take = take_leg,
                            .apart = device_may_be_spent(c->found.device)};
    return ev_relay_run(&relay, err);
}

static stress_limits stress_limits_of(const cli_args *args) {
    uint64_t shapes = cli_count(args, CLI_OPT_STRESS, STRESS_SHAPES);
    return (stress_limits){.shapes = shapes < UINT32_MAX ? (uint32_t)shapes : UINT32_MAX - 1,
                           .elements = STRESS_ELEMENTS,
                           .seconds = cli_real(args, CLI_OPT_CHECK_SECONDS, 0),
                           .seed = cli_count(args, CLI_OPT_CHECK_SEED, 1)};
}

static void warn(const char *text) {
    (void)fprintf(stderr, "%s\n", text);
}

/* ---- the command ---- */

#define MOST_KEYS 64

/* The public keys of --trust. */
typedef struct key_room {
    char hex[MOST_KEYS][SIGN_PUBLIC_HEX];
    const char *keys[MOST_KEYS];
    bundle_trust trust;
} key_room;

static ev_status read_key(const char *given, char out[SIGN_PUBLIC_HEX], ev_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    if (!ev_path_exists(given))
        return sign_public(given, out, err);
    EV_TRY(ev_file_read(given, &text, &bytes, err));
    ev_status status = sign_public(text, out, err);
    free(text);
    return status != EV_OK ? ev_wrap(err, status, "%s", given) : EV_OK;
}

static ev_status read_keys(const cli_args *args, key_room *out, ev_error *err) {
    if (args->list_count > MOST_KEYS)
        return ev_fail(err, EV_BAD, "--trust takes %d keys at most", MOST_KEYS);
    for (size_t i = 0; i < args->list_count; i++) {
        EV_TRY(read_key(args->list[i], out->hex[i], err));
        out->keys[i] = out->hex[i];
    }
    out->trust = (bundle_trust){out->keys, args->list_count};
    return EV_OK;
}

static ev_status check_options(const cli_args *args, ev_error *err) {
    const bool *given = args->given;
    if (given[CLI_OPT_ALL] && args->operand_count > 0)
        return ev_fail(err, EV_BAD, "--all takes every shipped task; leave out '%s', or --all",
                       args->operands[0]);
    if (given[CLI_OPT_ALL] && given[CLI_OPT_GENOME])
        return ev_fail(err, EV_BAD, "--genome is of one task; name the task in place of --all");
    if (!given[CLI_OPT_ALL] && args->operand_count == 0)
        return ev_fail(err, EV_BAD,
                       "check needs a bundle, a task, the path of a task.json, or --all; evoke "
                       "list shows the tasks");
    if (!given[CLI_OPT_STRESS] && (given[CLI_OPT_CHECK_SECONDS] || given[CLI_OPT_CHECK_SEED]))
        return ev_fail(err, EV_BAD, "--seconds and --seed are for --stress; add it");
    if (given[CLI_OPT_SLACK] && !given[CLI_OPT_CHECK_AGAINST])
        return ev_fail(err, EV_BAD, "--slack is for --against; name the older bundle");
    if (given[CLI_OPT_CHECK_AGAINST] && (args->operand_count != 1 || !is_bundle(args->operands[0])))
        return ev_fail(err, EV_BAD, "--against compares one bundle with an older one; name one");
    return EV_OK;
}

/* What was found, in all forms; a kernel that could not be judged counts where nothing failed. */
static ev_status tell(cmd_context *c, check *found, ev_error *err) {
    json_t *against = NULL;
    ev_status status = compare_bundles(c, found, &against, err);
    if (status == EV_OK)
        status = report(c, found, err);
    if (status == EV_OK)
        status = print_findings(c, found, against, err);
    json_decref(against);
    EV_TRY(status);
    if (found->failed)
        return EV_OK;
    if (found->unset[0] != '\0')
        return ev_fail(err, EV_BAD, "%s", found->unset);
    return cmd_end_stopped(err);
}

static ev_status check_operands(cmd_context *c, ev_error *err) {
    key_room keys;
    EV_TRY(read_keys(c->args, &keys, err));
    checking all = {.args = c->args,
                    .found = {.device = cli_text(c->args, CLI_OPT_CHECK_DEVICE),
                              .start = c->args->values[CLI_OPT_START],
                              .genome = cli_text(c->args, CLI_OPT_GENOME),
                              .splits = splits_of(c->args->values[CLI_OPT_SPLIT]),
                              .warn = warn,
                              .trust = {cli_flag(c->args, CLI_OPT_TRUST_ORACLE), warn},
                              .signers = keys.trust.count > 0 ? &keys.trust : NULL,
                              .rows = json_array(),
                              .replays = json_array(),
                              .stresses = json_array()}};
    const stress_limits limits = stress_limits_of(c->args);
    check *found = &all.found;
    found->stress = c->args->given[CLI_OPT_STRESS] ? &limits : NULL;
    ev_stop_catch();
    ev_status status = ev_lines_open(cli_text(c->args, CLI_OPT_ROWS), &found->lines, err);
    if (status == EV_OK)
        status = check_all(&all, err);
    if (status == EV_OK)
        status = tell(c, found, err);
    ev_lines_close(found->lines);
    json_decref(found->rows);
    json_decref(found->replays);
    json_decref(found->stresses);
    return status;
}

ev_status cmd_check(cmd_context *c, ev_error *err) {
    char **paths = NULL;
    size_t count = 0;
    EV_TRY(check_options(c->args, err));
    if (!cli_flag(c->args, CLI_OPT_ALL))
        return check_operands(c, err);
    EV_TRY(task_list_shipped(&paths, &count, err));
    cli_args args = *c->args;
    args.operands = (const char **)paths;
    args.operand_count = count;
    cmd_context all = *c;
    all.args = &args;
    ev_status status = check_operands(&all, err);
    c->exit_code = all.exit_code;
    task_list_free(paths, count);
    return status;
}
