/* evoke corpus: a case's inputs and trusted outputs as `.npy` files, with a case.json that names
 * them. */
#include "base/file.h"
#include "corpora/npy.h"
#include "fitness/device/device.h"
#include "fitness/gates/fitness.h"
#include "tuner/cli/cmd.h"
#include "tuner/worker/variant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CORPUS_DEVICE "vm:h200" /* where the baseline runs if it is the oracle */

/* The files under way. All are written into `made`, which then becomes `folder`. */
typedef struct corpus_files {
    const task *t;
    const char *folder;
    char *made;
    json_t *arguments;
    uint64_t bytes;
} corpus_files;

/* NAME.npy or NAME.expected.npy; the file's name goes into the argument's row under `key`. */
static ev_status write_array(corpus_files *f, const fitness_datum *datum, const char *ending,
                             const void *data, json_t *row, const char *key, ev_error *err) {
    ev_str name = EV_STR_EMPTY;
    ev_str_printf(&name, "%s%s", datum->what->name, ending);
    char *path = ev_path_join(f->made, ev_str_text(&name));
    (void)json_object_set_new(row, key, json_string(ev_str_text(&name)));
    ev_str_free(&name);
    if (path == NULL)
        return ev_fail_memory(err, strlen(f->made));
    ev_status status = npy_write(path, datum->what->type, datum->count, data, err);
    free(path);
    f->bytes += datum->count * ev_type_bytes(datum->what->type);
    return status;
}

static json_t *number_json(const expr_value *value) {
    return value->is_real ? json_real(value->real) : json_integer(value->whole);
}

static ev_status write_datum(void *context, const fitness_datum *datum, ev_error *err) {
    corpus_files *f = context;
    bool is_scalar = datum->what->kind == TASK_SCALAR;
    json_t *row =
        json_pack("{s:s, s:s, s:s}", "name", datum->what->name, "kind",
                  datum->is_symbol ? "symbol" : task_argument_kind_name(datum->what->kind), "type",
                  ev_type_name(datum->what->type));
    (void)json_array_append_new(f->arguments, row);
    if (is_scalar)
        (void)json_object_set_new(row, "value", number_json(&datum->value));
    else
        (void)json_object_set_new(row, "count", json_integer((json_int_t)datum->count));
    if (datum->begins != NULL)
        EV_TRY(write_array(f, datum, ".npy", datum->begins, row, "file", err));
    if (datum->expected != NULL)
        EV_TRY(write_array(f, datum, ".expected.npy", datum->expected, row, "expected", err));
    return EV_OK;
}

static json_t *describe(const corpus_files *f, const task_case *at) {
    json_t *shape = json_object();
    for (size_t i = 0; i < at->shape_count; i++)
        (void)json_object_set_new(shape, at->shape[i].name, number_json(&at->shape[i].value));
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:O}", "task", f->t->name, "task_sha256",
                     f->t->sha256.hex, "case", at->name, "split", corpus_split_name(at->split),
                     "oracle",
                     f->t->oracle_kind == TASK_ORACLE_SOURCE ? "source" : f->t->oracle_name,
                     "shape", shape, "arguments", f->arguments);
}

static ev_status write_case(const corpus_files *f, const task_case *at, ev_error *err) {
    json_t *value = describe(f, at);
    char *text = value != NULL ? json_dumps(value, JSON_INDENT(1)) : NULL;
    char *path = ev_path_join(f->made, "case.json");
    ev_status status = text != NULL && path != NULL ? ev_file_write(path, text, strlen(text), err)
                                                    : ev_fail_memory(err, 1);
    free(path);
    free(text);
    json_decref(value);
    return status;
}

/* ---- the data ---- */

/* Sets the baseline where it is the oracle. */
static ev_status set_oracle(fitness *f, const task *t, int sm, ev_str *ptx, ev_error *err) {
    score ignored;
    if (t->oracle_kind != TASK_ORACLE_BASELINE)
        return EV_OK;
    EV_TRY(variant_build_start(t, &t->starts[0], sm, ptx, err));
    const candidate baseline = {.ptx = ev_str_text(ptx),
                                .ptx_bytes = ptx->length,
                                .plan = t->starts[0].plan,
                                .start = &t->starts[0]};
    return fitness_set_baseline(f, &baseline, 0, &ignored, err);
}

static ev_status write_all(corpus_files *files, const task_case *at, ev_error *err) {
    device *d = NULL;
    fitness *f = NULL;
    ev_str ptx = EV_STR_EMPTY;
    EV_TRY(device_open(CORPUS_DEVICE, &d, err));
    ev_status status = fitness_open(files->t, d, NULL, &f, err);
    if (status == EV_OK)
        status = set_oracle(f, files->t, device_properties_of(d)->sm, &ptx, err);
    if (status == EV_OK)
        status = fitness_case_data(f, at, write_datum, files, err);
    if (status == EV_OK)
        status = write_case(files, at, err);
    fitness_close(f);
    ev_str_free(&ptx);
    device_close(d);
    return status;
}

/* Whole or not at all. */
static ev_status make_folder(corpus_files *f, const task_case *at, ev_error *err) {
    ev_error ignored;
    if (ev_path_exists(f->folder) || ev_path_exists(f->made))
        return ev_fail(err, EV_BAD, "%s exists already; give another folder by --out DIR",
                       ev_path_exists(f->folder) ? f->folder : f->made);
    EV_TRY(ev_dir_make(f->made, err));
    ev_status status = write_all(f, at, err);
    if (status == EV_OK)
        status = ev_dir_replace(f->made, f->folder, err);
    if (status != EV_OK)
        (void)!ev_dir_remove(f->made, &ignored);
    return status;
}

/* ---- the command ---- */

static ev_status find_case(const task *t, const char *name, const task_case **out, ev_error *err) {
    *out = task_find_case(t, name);
    if (*out != NULL)
        return EV_OK;
    ev_str known = EV_STR_EMPTY;
    for (size_t i = 0; i < t->case_count; i++)
        ev_str_printf(&known, "%s%s", i > 0 ? ", " : "", t->cases[i].name);
    ev_status status = ev_fail(err, EV_BAD, "task %s has no case '%s'; there are %s", t->name, name,
                               ev_str_text(&known));
    ev_str_free(&known);
    return status;
}

static ev_status tell(cmd_context *c, const corpus_files *f, const task_case *at, ev_error *err) {
    if (cli_flag(c->args, CLI_OPT_JSON))
        return cmd_print_json(c, describe(f, at), err);
    ev_str_printf(c->out, "%s: case %s of %s, %zu arguments and symbols, %llu bytes of elements\n",
                  f->folder, at->name, f->t->name, json_array_size(f->arguments),
                  (unsigned long long)f->bytes);
    for (size_t i = 0; i < task_all_count(f->t); i++) {
        const task_argument *a = &f->t->arguments[i];
        if (a->type == EV_BF16 && a->kind != TASK_SCALAR)
            ev_str_printf(c->out, "note: %s is bf16, which NumPy lacks: its bits are uint16\n",
                          a->name);
    }
    return EV_OK;
}

static ev_status make(cmd_context *c, const task *t, ev_error *err) {
    const task_case *at = NULL;
    EV_TRY(find_case(t, c->args->operands[1], &at, err));
    const char *out = cli_text(c->args, CLI_OPT_CORPUS_OUT);
    ev_str made = EV_STR_EMPTY;
    corpus_files f = {.t = t, .folder = out != NULL ? out : at->name, .arguments = json_array()};
    ev_str_printf(&made, "%s.new", f.folder);
    f.made = ev_str_take(&made);
    ev_status status =
        f.made != NULL && f.arguments != NULL ? make_folder(&f, at, err) : ev_fail_memory(err, 1);
    if (status == EV_OK)
        status = tell(c, &f, at, err);
    free(f.made);
    json_decref(f.arguments);
    return status;
}

ev_status cmd_corpus(cmd_context *c, ev_error *err) {
    task *t = NULL;
    EV_TRY(task_open(c->args->operands[0], &t, err));
    ev_status status =
        task_refuse_ranks(t, "no file has the addresses of a peer's buffers.",
                          "Run it with evoke check, or its PTX with evoke run --ranks", err);
    if (status == EV_OK)
        status = make(c, t, err);
    task_free(t);
    return status;
}
