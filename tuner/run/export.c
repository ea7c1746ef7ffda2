/* Export: makes a bundle's content from winners, as plain values in one arena for the writer. */
#include "tuner/run/export.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "bundle/bundle.h"
#include "fitness/device/cuda/ptxas.h"
#include "fitness/device/device.h"
#include "ir/ir.h"
#include "tuner/run/records.h"
#include "tuner/run/shipped.h"
#include "tuner/worker/variant.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FILES 128 /* most files of a task */

typedef struct export {
    ev_arena *arena;
    ev_error *err;
    task **tasks;
    bundle_kernel *kernels;
    size_t kernel_count;
    bundle_file *files;
    size_t file_count, file_room;
    size_t variants;
    const char *records_sha256; /* of the task at hand */
    const sign_key *key;        /* NULL: the bundle is not signed */
    bool only_names;            /* no file is read */
}
export;

static ev_status fail_memory(export *x) {
    return ev_fail_memory(x->err, ev_arena_bytes(x->arena));
}

/* ---- files of a task ---- */

/* Copies a file into the bundle's list. */
static ev_status add_file(export *x, const char *from, const char *to) {
    char *data = NULL;
    size_t bytes = 0;
    if (x->file_count == x->file_room)
        return ev_fail(x->err, EV_BAD, "%s: a bundle has %d files of a task at most", from,
                       MOST_FILES);
    for (size_t i = 0; i < x->file_count; i++) {
        if (strcmp(x->files[i].path, to) == 0)
            return EV_OK; /* two starts share a source */
    }
    if (!x->only_names)
        EV_TRY(ev_file_read(from, &data, &bytes, x->err));
    char *kept = ev_arena_copy(x->arena, data != NULL ? data : "", bytes + 1);
    free(data);
    if (kept == NULL)
        return fail_memory(x);
    x->files[x->file_count++] = (bundle_file){to, kept, bytes};
    return EV_OK;
}

/* "tasks/KERNEL/NAME" */
static const char *place_of(export *x, const task *t, const char *name) {
    return ev_arena_printf(x->arena, "tasks/%s/%s", t->name, name);
}

/* The name of a file in the task's folder. Files that a task names must lie there. */
static ev_status name_in_folder(export *x, const task *t, const char *path, const char **out) {
    size_t length = strlen(t->folder);
    bool inside = strncmp(path, t->folder, length) == 0 &&
                  (path[length] == '/' || (length > 0 && path[length - 1] == '/'));
    char *name = ev_arena_strdup(x->arena, path);
    if (name == NULL)
        return fail_memory(x);
    if (!inside || !ev_path_plain(path + length, name))
        return ev_fail(x->err, EV_BAD,
                       "task %s: %s lies outside the task's folder %s; move it in to bundle it",
                       t->name, path, t->folder);
    *out = name;
    return EV_OK;
}

static ev_status add_named(export *x, const task *t, const char *path) {
    const char *name = NULL;
    EV_TRY(name_in_folder(x, t, path, &name));
    const char *to = place_of(x, t, name);
    return to != NULL ? add_file(x, path, to) : fail_memory(x);
}

/* Adds Evoke's headers for kernels, or the task's own of the same name, which the compiler finds
 * first. */
static ev_status add_own_headers(export *x, const task *t) {
    char *home = ev_path_home();
    if (home == NULL)
        return ev_fail(x->err, EV_BAD, "the folder kernels/ was not found; set EVOKE_HOME");
    const char *folder = ev_arena_printf(x->arena, "%s/kernels/include", home);
    free(home);
    DIR *dir = folder != NULL ? opendir(folder) : NULL;
    if (dir == NULL)
        return ev_fail(x->err, EV_BAD, "cannot read the folder kernels/include of Evoke");
    ev_status status = EV_OK;
    for (struct dirent *e = readdir(dir); e != NULL && status == EV_OK; e = readdir(dir)) {
        const char *dot = strrchr(e->d_name, '.');
        if (dot == NULL || strcmp(dot, ".h") != 0)
            continue;
        const char *from = ev_arena_printf(x->arena, "%s/%s", t->folder, e->d_name);
        if (from != NULL && !ev_path_exists(from))
            from = ev_arena_printf(x->arena, "%s/%s", folder, e->d_name);
        const char *to = place_of(x, t, e->d_name);
        status = from != NULL && to != NULL ? add_file(x, from, to) : fail_memory(x);
    }
    (void)closedir(dir);
    return status;
}

static ev_status add_task_files(export *x, const task *t) {
    x->file_room = x->file_count + MOST_FILES;
    const char *task_place = place_of(x, t, "task.json");
    if (task_place == NULL)
        return fail_memory(x);
    EV_TRY(add_file(x, t->path, task_place));
    for (size_t i = 0; i < t->start_count; i++)
        EV_TRY(add_named(x, t, t->starts[i].source));
    if (t->oracle_kind == TASK_ORACLE_SOURCE)
        EV_TRY(add_named(x, t, t->oracle_name));
    for (size_t i = 0; i < t->file_count; i++)
        EV_TRY(add_named(x, t, t->files[i]->path));
    for (size_t i = 0; i < t->header_count; i++)
        EV_TRY(add_named(x, t, t->headers[i]));
    return add_own_headers(x, t);
}

ev_status export_check_task(const task *t, ev_error *err) {
    export x = {.arena = ev_arena_new(), .err = err, .only_names = true};
    if (x.arena == NULL)
        return ev_fail_memory(err, 1);
    x.files = EV_NEW_ARRAY(x.arena, bundle_file, MOST_FILES);
    ev_status status = x.files != NULL ? add_task_files(&x, t) : fail_memory(&x);
    ev_arena_free(x.arena);
    return status;
}

/* ---- values of a task ---- */

static const bundle_number *numbers_of(export *x, const expr_name *names, size_t count) {
    bundle_number *out = EV_NEW_ARRAY(x->arena, bundle_number, count + 1);
    for (size_t i = 0; out != NULL && i < count; i++)
        out[i] = (bundle_number){ev_arena_strdup(x->arena, names[i].name), names[i].value.is_real,
                                 names[i].value.real};
    return out;
}

static ev_status set_arguments(export *x, const task *t, bundle_kernel *out) {
    bundle_argument *all = EV_NEW_ARRAY(x->arena, bundle_argument, t->argument_count + 1);
    if (all == NULL)
        return fail_memory(x);
    for (size_t i = 0; i < t->argument_count; i++)
        all[i] = shipped_argument(t, &t->arguments[i]);
    out->arguments = all;
    out->argument_count = t->argument_count;
    return EV_OK;
}

static ev_status set_ranks(export *x, const task *t, bundle_kernel *out) {
    if (t->ranks == NULL)
        return EV_OK;
    bundle_ranks *ranks = EV_NEW(x->arena, bundle_ranks);
    if (ranks == NULL)
        return fail_memory(x);
    *ranks = (bundle_ranks){t->ranks, t->begins_together, t->ends_together};
    out->ranks = ranks;
    return EV_OK;
}

static ev_status set_symbols(export *x, const task *t, bundle_kernel *out) {
    bundle_symbol *all = EV_NEW_ARRAY(x->arena, bundle_symbol, t->symbol_count + 1);
    if (all == NULL)
        return fail_memory(x);
    for (size_t i = 0; i < t->symbol_count; i++)
        all[i] = (bundle_symbol){t->symbols[i].name, ev_type_name(t->symbols[i].type),
                                 t->symbols[i].count};
    out->symbols = all;
    out->symbol_count = t->symbol_count;
    return EV_OK;
}

/* ---- what was found out about a winner ---- */

/* The row of the run's table for a case; NULL: none. */
static const json_t *row_at(const json_t *rows, const char *case_name) {
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (strcmp(ev_json_text(row, "case", ""), case_name) == 0)
            return row;
    }
    return NULL;
}

static const score_case *score_at(const score *s, const char *case_name) {
    for (size_t i = 0; i < s->case_count; i++) {
        if (strcmp(s->cases[i].name, case_name) == 0)
            return &s->cases[i];
    }
    return NULL;
}

static ev_status add_case(export *x, const task_case *from, const score_case *found,
                          const json_t *row, bundle_case *out) {
    *out = (bundle_case){.name = from->name,
                         .split = corpus_split_name(from->split),
                         .shape = numbers_of(x, from->shape, from->shape_count),
                         .shape_count = from->shape_count,
                         .error = -1};
    if (found != NULL) {
        out->ns = found->ns;
        out->low_ns = found->low_ns;
        out->high_ns = found->high_ns;
        out->error = found->error;
    }
    out->baseline_ns = ev_json_number(row, "baseline_ns", 0);
    out->baseline_low_ns = ev_json_number(row, "baseline_low_ns", 0);
    out->baseline_high_ns = ev_json_number(row, "baseline_high_ns", 0);
    return out->shape != NULL ? EV_OK : fail_memory(x);
}

/* The mean clock over the timed cases; 0: the device does not tell it. */
static double clock_of(const score *s) {
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < s->case_count; i++) {
        sum += s->cases[i].sm_mhz > 0 ? s->cases[i].sm_mhz : 0;
        count += s->cases[i].sm_mhz > 0;
    }
    return count > 0 ? sum / (double)count : 0;
}

/* Sets the times of a portfolio's member at the shapes of the portfolio. */
static void set_shape_times(const json_t *times, bundle_case *to) {
    const json_t *at = row_at(times, to->name);
    if (at == NULL)
        return;
    to->ns = ev_json_number(at, "ns", 0);
    to->low_ns = ev_json_number(at, "low_ns", 0);
    to->high_ns = ev_json_number(at, "high_ns", 0);
    to->error = ev_json_number(at, "error", -1);
}

/* Lists the cases that a variant passed: a promoted variant has passed the search's cases and those
 * of its score. */
static ev_status set_cases(export *x, const task *t, const records_winner *w, const json_t *times,
                           bundle_variant *out) {
    ev_json *score_doc = NULL, *rows_doc = NULL;
    double worst = 0;
    bundle_case *cases = EV_NEW_ARRAY(x->arena, bundle_case, t->case_count + 1);
    score *s = EV_NEW(x->arena, score);
    if (cases == NULL || s == NULL)
        return fail_memory(x);
    EV_TRY(ev_json_parse(w->score, "score of a winner", &score_doc, x->err));
    ev_status status = score_from_json(score_doc->root, s, x->err);
    if (status == EV_OK)
        status = ev_json_parse(w->rows, "rows of a winner", &rows_doc, x->err);
    for (size_t i = 0; i < t->case_count && status == EV_OK; i++) {
        const task_case *c = &t->cases[i];
        const score_case *found = score_at(s, c->name);
        if (c->split != CORPUS_SEARCH && found == NULL)
            continue;
        bundle_case *to = &cases[out->case_count++];
        status = add_case(x, c, found, row_at(rows_doc->root, c->name), to);
        set_shape_times(times, to);
        worst = to->error > worst ? to->error : worst;
    }
    ev_json_free(score_doc);
    ev_json_free(rows_doc);
    out->cases = cases;
    out->sm_mhz = out->modelled ? 0 : clock_of(s); /* a stand-in tells a clock, too */
    out->error = s->error > worst ? s->error : worst;
    return status;
}

/* Sets the time of an unmodified start, with its interval where the row has one. */
static void set_time(const json_t *row, const char *ns, const char *low, const char *high,
                     bundle_case *out) {
    out->ns = ev_json_number(row, ns, 0);
    out->low_ns = ev_json_number(row, low, out->ns);
    out->high_ns = ev_json_number(row, high, out->ns);
}

/* Lists the cases of a baseline. The baseline agrees with its oracle on every case, or the run
 * would have failed. */
static ev_status set_baseline_cases(export *x, const task *t, const records_winner *w,
                                    bundle_variant *out) {
    ev_json *rows = NULL;
    bundle_case *cases = EV_NEW_ARRAY(x->arena, bundle_case, t->case_count + 1);
    if (cases == NULL)
        return fail_memory(x);
    EV_TRY(ev_json_parse(w->rows, "rows of a winner", &rows, x->err));
    ev_status status = EV_OK;
    for (size_t i = 0; i < t->case_count && status == EV_OK; i++) {
        const json_t *row = row_at(rows->root, t->cases[i].name);
        status = add_case(x, &t->cases[i], NULL, row, &cases[i]);
        set_time(row, "baseline_ns", "baseline_low_ns", "baseline_high_ns", &cases[i]);
    }
    ev_json_free(rows);
    out->cases = cases;
    out->case_count = t->case_count;
    return status;
}

/* Splits a text into lines, without empty lines. */
static ev_status set_edits(export *x, const char *text, bundle_variant *out) {
    size_t most = 1;
    for (const char *c = text; *c != '\0'; c++)
        most += *c == '\n';
    const char **lines = EV_NEW_ARRAY(x->arena, const char *, most);
    if (lines == NULL)
        return fail_memory(x);
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        if (length > 0)
            lines[out->edit_count++] = ev_arena_strndup(x->arena, text, length);
        text += length + (text[length] == '\n');
    }
    out->edits = lines;
    return EV_OK;
}

/* ---- the device ---- */

static ev_status set_resources(export *x, device *d, bundle_variant *out) {
    device_kernel *kernel = NULL;
    EV_TRY(device_load_plan(d, out->ptx, out->ptx_bytes, out->plan, &kernel, x->err));
    device_resources r = device_kernel_resources(kernel);
    out->registers = r.registers;
    out->shared_bytes = r.shared_bytes;
    out->local_bytes = r.local_bytes;
    out->max_threads = r.max_threads;
    device_unload(kernel);
    return EV_OK;
}

/* ---- variants ---- */

/* Machine code for the GPU's architecture, where ptxas is there and takes the PTX. */
static ev_status set_cubin(export *x, bundle_variant *out) {
    ptxas_code code;
    bool found = false;
    EV_TRY(ptxas_assemble(out->ptx, launch_plan_entry(out->plan), out->sm, &found, &code, x->err));
    bundle_cubin *one = EV_NEW(x->arena, bundle_cubin);
    if (found && one != NULL) {
        const char *data = ev_arena_copy(x->arena, ev_str_text(&code.cubin), code.cubin.length + 1);
        *one = (bundle_cubin){.arch = ev_arena_printf(x->arena, "sm_%d", out->sm),
                              .registers = code.registers,
                              .spill_bytes = code.spill_bytes,
                              .assembler = ev_arena_strdup(x->arena, code.version),
                              .data = data,
                              .bytes = code.cubin.length};
        out->cubins = one;
        out->cubin_count = 1;
    }
    ev_str_free(&code.cubin);
    return ev_arena_failed(x->arena) ? fail_memory(x) : EV_OK;
}

static ev_status set_common(export *x, const task *t, const records_winner *w, device *d,
                            bundle_variant *out) {
    out->ptx = ev_arena_strdup(x->arena, out->ptx);
    out->genome = ev_arena_strdup(x->arena, out->genome);
    out->genome_sha256 = ev_arena_strdup(x->arena, out->genome_sha256);
    out->versions = ev_arena_strdup(x->arena, w->versions);
    out->gpu_name = ev_arena_strdup(x->arena, w->gpu_name);
    if (ev_arena_failed(x->arena))
        return fail_memory(x);
    out->records_sha256 = x->records_sha256;
    out->ptx_bytes = strlen(out->ptx);
    out->sm = w->sm;
    out->seed = w->seed;
    out->modelled = device_properties_of(d)->modelled;
    out->tolerance = task_relative_l2(t);
    EV_TRY(shipped_set_gpu(x->arena, d, out, x->err));
    EV_TRY(set_cubin(x, out));
    EV_TRY(shipped_set_resident(x->arena, t, d, out, x->err));
    return set_resources(x, d, out);
}

/* What the edits align-argument assert, where the task grants less. */
static ev_status set_alignments(export *x, const task *t, const task_start *start,
                                const ir_genome *genome, bundle_variant *out) {
    uint64_t aligned = task_bits_of_main(t, start, ir_genome_aligned(genome));
    bundle_alignment *all = EV_NEW_ARRAY(x->arena, bundle_alignment, t->argument_count + 1);
    if (all == NULL)
        return fail_memory(x);
    for (size_t i = 0; i < t->argument_count && i < 64; i++) {
        const task_argument *a = &t->arguments[i];
        if ((aligned >> i & 1) != 0 && a->kind != TASK_SCALAR && a->align < IR_ARGUMENT_ALIGN)
            all[out->alignment_count++] = (bundle_alignment){a->name, IR_ARGUMENT_ALIGN};
    }
    out->alignments = all;
    return EV_OK;
}

/* The edits whose words say that they change the meaning (ir/edits/meaning.c). */
static ev_status set_changes(export *x, bundle_variant *out) {
    const char **changes = EV_NEW_ARRAY(x->arena, const char *, out->edit_count + 1);
    if (changes == NULL)
        return fail_memory(x);
    for (size_t i = 0; i < out->edit_count; i++) {
        if (strstr(out->edits[i], IR_BOLD_MARK) != NULL)
            changes[out->change_count++] = out->edits[i];
    }
    out->changes = changes;
    out->is_bold = out->change_count > 0;
    return EV_OK;
}

static ev_status set_tried(export *x, const char *stress, bundle_variant *out) {
    ev_json *doc = NULL;
    if (stress[0] == '\0')
        return EV_OK;
    EV_TRY(ev_json_parse(stress, "stress of a winner", &doc, x->err));
    out->tried =
        (bundle_tried){.device = ev_arena_strdup(x->arena, ev_json_text(doc->root, "device", "")),
                       .shapes = (uint32_t)ev_json_integer(doc->root, "shapes", 0),
                       .runs = (uint32_t)ev_json_integer(doc->root, "runs", 0),
                       .seed = (uint64_t)ev_json_integer(doc->root, "seed", 0)};
    ev_json_free(doc);
    return out->tried.device != NULL ? EV_OK : fail_memory(x);
}

/* `times`: of a portfolio's member; NULL: it is none. */
static ev_status make_variant(export *x, const task *t, const records_winner *w,
                              const json_t *times, device *d, bundle_variant *out) {
    const task_start *start = task_find_start(t, w->start);
    if (start == NULL)
        return ev_fail(x->err, EV_BAD, "task %s has no start '%s'", t->name, w->start);
    *out = (bundle_variant){.ptx = w->ptx,
                            .start = start->name,
                            .genome = w->genome,
                            .genome_sha256 = w->genome_sha256};
    ir_genome *genome = NULL;
    EV_TRY(variant_genome(w->genome, "genome of a winner", &genome, x->err));
    ev_status status = shipped_set_launch(x->arena, start, genome, out, x->err);
    if (status == EV_OK)
        status = set_alignments(x, t, start, genome, out);
    ir_genome_free(genome);
    EV_TRY(status);
    EV_TRY(set_common(x, t, w, d, out));
    EV_TRY(set_cases(x, t, w, times, out));
    EV_TRY(set_edits(x, w->edits, out));
    EV_TRY(set_tried(x, w->stress, out));
    return set_changes(x, out);
}

/* Another variant of a winner's task, from its JSON in the records. */
static ev_status make_from_json(export *x, const task *t, const records_winner *w,
                                const json_t *json, device *d, bundle_variant *out) {
    records_winner own = *w;
    char *genome = ev_json_print(json_object_get(json, "genome"), true);
    char *score_text = ev_json_print(json_object_get(json, "score"), true);
    own.genome = genome;
    own.score = score_text;
    own.genome_sha256 = ev_json_text(json, "genome_sha256", "");
    own.ptx = ev_json_text(json, "ptx", "");
    own.start = ev_json_text(json, "start", "");
    own.edits = ev_json_text(json, "edits", "");
    own.stress = ev_json_text(json, "stress", "");
    ev_status status = genome != NULL && score_text != NULL
                           ? make_variant(x, t, &own, json_object_get(json, "times"), d, out)
                           : fail_memory(x);
    free(genome);
    free(score_text);
    return status;
}

/* The bold winner beside a preserving one. */
static ev_status make_bold(export *x, const task *t, const records_winner *w, device *d,
                           bundle_variant *out) {
    ev_json *doc = NULL;
    EV_TRY(ev_json_parse(w->bold, "a bold winner", &doc, x->err));
    ev_status status = make_from_json(x, t, w, doc->root, d, out);
    ev_json_free(doc);
    if (status == EV_OK && !out->is_bold)
        return ev_fail(x->err, EV_BAD, "the bold winner of %s in the records has no bold edit",
                       w->kernel);
    return status;
}

/* Fills an unmodified start but for its cases; out->ptx is there. */
static ev_status make_unmodified(export *x, const task *t, const task_start *start,
                                 const records_winner *w, device *d, bundle_variant *out) {
    ir_genome *genome = ir_genome_new(start->name);
    json_t *json = genome != NULL ? ir_genome_to_json(genome) : NULL;
    char *text = json != NULL ? ev_json_print(json, true) : NULL;
    ev_sha256 sha256 = {0};
    if (genome != NULL)
        sha256 = ir_genome_sha256(genome);
    out->start = start->name;
    out->genome = text;
    out->genome_sha256 = sha256.hex;
    ev_status status =
        text != NULL ? shipped_set_launch(x->arena, start, NULL, out, x->err) : fail_memory(x);
    if (status == EV_OK)
        status = set_common(x, t, w, d, out);
    free(text);
    json_decref(json);
    ir_genome_free(genome);
    return status;
}

static ev_status make_baseline(export *x, const task *t, const records_winner *w, device *d,
                               bundle_variant *out) {
    *out = (bundle_variant){.ptx = w->baseline_ptx};
    EV_TRY(make_unmodified(x, t, &t->starts[0], w, d, out));
    return set_baseline_cases(x, t, w, out);
}

/* Whether the run checked and timed the task's last start at every case of its table. */
static bool has_hand_times(const json_t *rows) {
    bool has = json_array_size(rows) > 0;
    for (size_t i = 0; i < json_array_size(rows); i++)
        has = has && ev_json_number(json_array_get(rows, i), "hand_ns", 0) > 0;
    return has;
}

/* Lists the cases of the task's last start: those of the search, whose first children are the
 * starts, and those of the table. */
static ev_status set_hand_cases(export *x, const task *t, const json_t *rows, bundle_variant *out) {
    bundle_case *cases = EV_NEW_ARRAY(x->arena, bundle_case, t->case_count + 1);
    if (cases == NULL)
        return fail_memory(x);
    for (size_t i = 0; i < t->case_count; i++) {
        const task_case *c = &t->cases[i];
        const json_t *row = row_at(rows, c->name);
        if (c->split != CORPUS_SEARCH && row == NULL)
            continue;
        bundle_case *to = &cases[out->case_count++];
        EV_TRY(add_case(x, c, NULL, row, to));
        set_time(row, "hand_ns", "hand_low_ns", "hand_high_ns", to);
    }
    out->cases = cases;
    return EV_OK;
}

static ev_status build_hand(export *x, const task *t, const records_winner *w, device *d,
                            const json_t *rows, bundle_variant *out) {
    ev_str ptx = EV_STR_EMPTY;
    const task_start *start = &t->starts[t->start_count - 1];
    ev_status status = variant_build_start(t, start, w->sm, &ptx, x->err);
    *out = (bundle_variant){.ptx = ev_str_text(&ptx)};
    if (status == EV_OK)
        status = make_unmodified(x, t, start, w, d, out);
    ev_str_free(&ptx);
    return status == EV_OK ? set_hand_cases(x, t, rows, out) : status;
}

/* Ships the task's last start with its times, if the run has them: a scheduler gets it where it is
 * faster than the variants. A reference is not shipped: it is there to compare with. */
static ev_status make_hand(export *x, const task *t, const records_winner *w, device *d,
                           bundle_kernel *out) {
    ev_json *rows = NULL;
    bundle_variant *made = EV_NEW(x->arena, bundle_variant);
    if (made == NULL)
        return fail_memory(x);
    EV_TRY(ev_json_parse(w->rows, "rows of a winner", &rows, x->err));
    ev_status status = EV_OK;
    bool ships = t->start_count > 1 && !t->starts[t->start_count - 1].is_reference;
    if (ships && has_hand_times(rows->root)) {
        status = build_hand(x, t, w, d, rows->root, made);
        out->starts = made;
        out->start_count = 1;
    }
    ev_json_free(rows);
    return status;
}

/* The winner; the bold one beside it. */
static ev_status make_winners(export *x, const task *t, const records_winner *w, device *d,
                              bundle_kernel *out) {
    bundle_variant *variants = EV_NEW_ARRAY(x->arena, bundle_variant, 2);
    if (variants == NULL)
        return fail_memory(x);
    out->variants = variants;
    if (w->promoted) {
        bundle_variant *own = &variants[out->variant_count++];
        EV_TRY(make_variant(x, t, w, NULL, d, own));
        own->is_default = own->is_bold; /* only --bold lets a bold variant win */
    }
    return w->bold[0] != '\0' ? make_bold(x, t, w, d, &variants[out->variant_count++]) : EV_OK;
}

/* The members of a portfolio, of which the winner is one. */
static ev_status make_members(export *x, const task *t, const records_winner *w,
                              const json_t *members, device *d, bundle_kernel *out) {
    size_t count = json_array_size(members);
    bundle_variant *variants = EV_NEW_ARRAY(x->arena, bundle_variant, count + 1);
    if (variants == NULL)
        return fail_memory(x);
    out->variants = variants;
    for (size_t i = 0; i < count; i++) {
        bundle_variant *own = &variants[out->variant_count++];
        EV_TRY(make_from_json(x, t, w, json_array_get(members, i), d, own));
        own->is_default = own->is_bold;
    }
    return EV_OK;
}

/* `members`: of a portfolio; NULL: there is none. */
static ev_status make_variants(export *x, const task *t, const records_winner *w,
                               const json_t *members, device *d, bundle_kernel *out) {
    bundle_variant *baseline = EV_NEW(x->arena, bundle_variant);
    if (baseline == NULL)
        return fail_memory(x);
    EV_TRY(make_baseline(x, t, w, d, baseline));
    EV_TRY(make_hand(x, t, w, d, out));
    out->baselines = baseline;
    out->baseline_count = 1;
    x->variants += w->promoted;
    return members != NULL ? make_members(x, t, w, members, d, out) : make_winners(x, t, w, d, out);
}

/* The starts' times at the shapes of a portfolio are rows beside those of the run's table. */
static ev_status make_portfolio(export *x, const task *t, const records_winner *w, device *d,
                                bundle_kernel *out) {
    ev_json *rows = NULL, *portfolio = NULL;
    records_winner own = *w;
    EV_TRY(ev_json_parse(w->portfolio, "the portfolio of a winner", &portfolio, x->err));
    ev_status status = ev_json_parse(w->rows, "rows of a winner", &rows, x->err);
    if (status == EV_OK) {
        (void)json_array_extend(rows->root, json_object_get(portfolio->root, "shapes"));
        char *text = ev_json_print(rows->root, true);
        own.rows = text;
        status = text != NULL ? make_variants(x, t, &own,
                                              json_object_get(portfolio->root, "variants"), d, out)
                              : fail_memory(x);
        free(text);
    }
    ev_json_free(rows);
    ev_json_free(portfolio);
    return status;
}

/* ---- kernels ---- */

static ev_status make_kernel(export *x, const task *t, const records_winner *w,
                             bundle_kernel *out) {
    *out = (bundle_kernel){.name = t->name,
                           .family = t->family,
                           .doc = t->doc,
                           .task = place_of(x, t, "task.json"),
                           .task_sha256 = t->sha256.hex};
    EV_TRY(set_arguments(x, t, out));
    EV_TRY(set_symbols(x, t, out));
    EV_TRY(set_ranks(x, t, out));
    EV_TRY(add_task_files(x, t));
    device *d = NULL;
    EV_TRY(device_open(w->device, &d, x->err));
    ev_status status = w->portfolio[0] != '\0' ? make_portfolio(x, t, w, d, out)
                                               : make_variants(x, t, w, NULL, d, out);
    device_close(d);
    return status;
}

static ev_status add_winner(export *x, const records_winner *w) {
    task *t = NULL;
    for (size_t i = 0; i < x->kernel_count; i++) {
        if (strcmp(x->kernels[i].name, w->kernel) == 0)
            return ev_fail(x->err, EV_BAD, "the records hold two kernels named '%s'; rename one",
                           w->kernel);
    }
    EV_TRY(task_reopen(w->task_path, w->kernel, w->task_sha256, &t, x->err));
    x->tasks[x->kernel_count++] = t; /* from here on freed with the rest */
    return make_kernel(x, t, w, &x->kernels[x->kernel_count - 1]);
}

/* ---- the hash of the records ----
 *
 * A chain over the settings of the run and over what each evaluation came to. What depends on the
 * workers' pace is left out: seconds, and how far a duplicate's worker got. Equal runs have equal
 * hashes. */

static void chain(ev_sha256 *hash, const ev_str *text) {
    ev_str all = EV_STR_EMPTY;
    ev_str_printf(&all, "%s\n%s", hash->hex, ev_str_text(text));
    *hash = ev_sha256_of(ev_str_text(&all), all.length);
    ev_str_free(&all);
}

static ev_status chain_one(void *context, const records_evaluation *e, ev_error *err) {
    ev_str text = EV_STR_EMPTY;
    const char *genome = e->hashes[SEARCH_BY_GENOME];
    ev_str_printf(&text, "%s %llu %s %s %.17g %.17g", e->phase, (unsigned long long)e->number,
                  genome != NULL ? genome : "", e->gate, e->ns, e->error);
    ev_status status = ev_str_status(&text, err);
    if (status == EV_OK)
        chain(context, &text);
    ev_str_free(&text);
    return status;
}

static ev_status hash_records(records *r, size_t number, ev_sha256 *out, ev_error *err) {
    static const char *const phases[] = {"search", "minimise", "promote"};
    json_t *identity = NULL;
    EV_TRY(records_identity(r, &identity, err));
    char *text = ev_json_print(identity, true);
    json_decref(identity);
    if (text == NULL)
        return ev_fail_memory(err, 1);
    *out = ev_sha256_of(text, strlen(text));
    free(text);
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++)
        EV_TRY(records_each(r, number, phases[i], chain_one, out, err));
    return EV_OK;
}

static ev_status hash_tasks(export *x, records *r, const records_winner *winners, size_t count,
                            const char **hashes) {
    for (size_t i = 0; i < count; i++) {
        ev_sha256 hash;
        EV_TRY(hash_records(r, winners[i].task, &hash, x->err));
        hashes[i] = ev_arena_strdup(x->arena, hash.hex);
        if (hashes[i] == NULL)
            return fail_memory(x);
    }
    return EV_OK;
}

static ev_status write_winners(export *x, records *r, const records_winner *winners, size_t count,
                               const char *bundle_path) {
    const char **hashes = EV_NEW_ARRAY(x->arena, const char *, count + 1);
    x->tasks = EV_NEW_ARRAY(x->arena, task *, count + 1);
    x->kernels = EV_NEW_ARRAY(x->arena, bundle_kernel, count + 1);
    x->files = EV_NEW_ARRAY(x->arena, bundle_file, count * MOST_FILES + 1);
    if (hashes == NULL || x->tasks == NULL || x->kernels == NULL || x->files == NULL)
        return fail_memory(x);
    EV_TRY(hash_tasks(x, r, winners, count, hashes));
    for (size_t i = 0; i < count; i++) {
        x->records_sha256 = hashes[i];
        EV_TRY(add_winner(x, &winners[i]));
    }
    bundle_content content = {EVOKE_VERSION, x->kernels, x->kernel_count, x->files, x->file_count};
    return bundle_write_signed(bundle_path, &content, x->key, x->err);
}

static ev_status export_winners(records *r, const records_winner *winners, size_t count,
                                const char *bundle_path, const sign_key *key, export_summary *out,
                                ev_error *err) {
    export x = {.arena = ev_arena_new(), .err = err, .key = key};
    if (x.arena == NULL)
        return ev_fail_memory(err, 1);
    ev_status status = write_winners(&x, r, winners, count, bundle_path);
    for (size_t i = 0; i < x.kernel_count; i++)
        task_free(x.tasks[i]);
    ev_arena_free(x.arena);
    *out = (export_summary){x.kernel_count, x.variants};
    return status;
}

ev_status export_bundle(const char *records_path, const char *bundle_path, const sign_key *key,
                        export_summary *out, ev_error *err) {
    records *r = NULL;
    records_winner *winners = NULL;
    size_t count = 0;
    EV_TRY(bundle_check_target(bundle_path, err));
    EV_TRY(records_open_read(records_path, &r, err));
    ev_status status = records_winners(r, &winners, &count, err);
    if (status == EV_OK && count == 0)
        status = ev_fail(err, EV_BAD,
                         "%s holds no finished task; go on with evoke tune --records %s --resume",
                         records_path, records_path);
    else if (status == EV_OK)
        status = export_winners(r, winners, count, bundle_path, key, out, err);
    records_winners_free(winners, count);
    records_close(r);
    return status;
}
