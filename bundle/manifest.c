/* Makes manifest.json from plain values. */
#include "bundle/manifest.h"

#include "base/divisor.h"
#include "base/ptx/versions.h"
#include "base/str.h"
#include "bundle/bundle.h"
#include "bundle/manifest_steps.h"
#include "bundle/needs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    manifest_object object;
    ev_json_key key;
} key_rows[] = {
#define MANIFEST_OBJECT(id)
#define MANIFEST_KEY(object, name, kind, required, doc)                                            \
    {MANIFEST_##object, {name, EV_JSON_##kind, required, doc}},
#include "bundle/manifest.def"
#undef MANIFEST_OBJECT
#undef MANIFEST_KEY
};

#define ROW_COUNT (sizeof key_rows / sizeof key_rows[0])

ev_status manifest_check(const ev_json *doc, manifest_object kind, const json_t *object,
                         const char *where, ev_error *err) {
    ev_json_key keys[ROW_COUNT];
    size_t count = 0;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (key_rows[i].object == kind)
            keys[count++] = key_rows[i].key;
    }
    return ev_json_check(doc, object, where, keys, count, err);
}

/* ---- small parts ---- */

static json_t *number_json(bool is_real, double value) {
    return is_real ? json_real(value) : json_integer((json_int_t)value);
}

static json_t *numbers_json(const bundle_number *numbers, size_t count) {
    json_t *object = json_object();
    for (size_t i = 0; i < count; i++)
        (void)json_object_set_new(object, numbers[i].name,
                                  number_json(numbers[i].is_real, numbers[i].value));
    return object;
}

static json_t *texts_json(const char *const *texts, size_t count) {
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(array, json_string(texts[i]));
    return array;
}

/* ---- cases and ranges ---- */

static json_t *case_json(const bundle_case *c) {
    json_t *object = json_pack("{s:s, s:s, s:o}", "case", c->name, "split", c->split, "shape",
                               numbers_json(c->shape, c->shape_count));
    if (c->ns > 0) {
        (void)json_object_set_new(object, "ns", json_real(c->ns));
        (void)json_object_set_new(object, "low_ns", json_real(c->low_ns));
        (void)json_object_set_new(object, "high_ns", json_real(c->high_ns));
    }
    if (c->baseline_ns > 0)
        (void)json_object_set_new(object, "baseline_ns", json_real(c->baseline_ns));
    if (c->baseline_low_ns > 0) {
        (void)json_object_set_new(object, "baseline_low_ns", json_real(c->baseline_low_ns));
        (void)json_object_set_new(object, "baseline_high_ns", json_real(c->baseline_high_ns));
    }
    if (c->error >= 0)
        (void)json_object_set_new(object, "error", json_real(c->error));
    return object;
}

static const bundle_number *find_number(const bundle_case *c, const char *name) {
    for (size_t i = 0; i < c->shape_count; i++) {
        if (strcmp(c->shape[i].name, name) == 0)
            return &c->shape[i];
    }
    return NULL;
}

/* Over all cases that have the name. */
static launch_range range_of(const bundle_variant *v, const bundle_number *first) {
    launch_range range = {first->name, false, first->value, first->value, 0};
    for (size_t i = 0; i < v->case_count; i++) {
        const bundle_number *n = find_number(&v->cases[i], first->name);
        if (n == NULL)
            continue;
        range.low = fmin(range.low, n->value);
        range.high = fmax(range.high, n->value);
        range.is_real = range.is_real || n->is_real;
        if (!n->is_real)
            range.multiple = ev_divisor_signed(range.multiple, (int64_t)n->value);
    }
    if (range.is_real) /* a case may give a real number as a whole one */
        range.multiple = 0;
    return range;
}

/* Names in the order of the first case; all cases of a task have the same. */
launch_range bundle_range(const bundle_variant *v, size_t index) {
    return range_of(v, &v->cases[0].shape[index]);
}

static json_t *ranges_json(const bundle_variant *v) {
    json_t *array = json_array();
    for (size_t i = 0; v->case_count > 0 && i < v->cases[0].shape_count; i++) {
        launch_range range = range_of(v, &v->cases[0].shape[i]);
        (void)json_array_append_new(array, launch_range_encode(&range));
    }
    return array;
}

/* ---- qualifications ---- */

static const char *kind_word(bool modelled) {
    return modelled ? "modelled" : "measured";
}

static void set_time(json_t *object, const char *key, const bundle_time *t) {
    if (t->ns > 0)
        (void)json_object_set_new(
            object, key,
            json_pack("{s:f, s:f, s:f}", "ns", t->ns, "low_ns", t->low_ns, "high_ns", t->high_ns));
}

static json_t *trial_json(const bundle_trial *t) {
    json_t *object =
        json_pack("{s:s, s:s}", "case", t->name, "verdict", bundle_verdict_name(t->verdict));
    if (t->error >= 0)
        (void)json_object_set_new(object, "error", json_real(t->error));
    set_time(object, "variant", &t->variant);
    set_time(object, "baseline", &t->baseline);
    if (t->start_name != NULL) {
        set_time(object, "beside_start", &t->beside_start);
        set_time(object, "start", &t->start);
        (void)json_object_set_new(object, "start_name", json_string(t->start_name));
    }
    return object;
}

static void set_driver_names(json_t *object, const char *const *names, size_t count) {
    if (count > 0)
        (void)json_object_set_new(json_object_get(object, "gpu"), "driver_names",
                                  texts_json(names, count));
}

static json_t *qualified_json(const bundle_qualified *q) {
    json_t *cases = json_array();
    for (size_t i = 0; i < q->trial_count; i++)
        (void)json_array_append_new(cases, trial_json(&q->trials[i]));
    json_t *object = json_pack("{s:{s:s, s:s, s:i, s:i}, s:s, s:s, s:s, s:o}", "gpu", "id",
                               q->gpu_id, "name", q->gpu_name, "sm", q->sm, "sms", q->sms, "driver",
                               q->driver, "time_kind", kind_word(q->modelled), "verdict",
                               bundle_verdict_name(q->verdict), "cases", cases);
    set_driver_names(object, q->driver_names, q->driver_name_count);
    if (q->reason[0] != '\0')
        (void)json_object_set_new(object, "reason", json_string(q->reason));
    return object;
}

static void set_qualified(json_t *object, const bundle_variant *v) {
    json_t *array = v->qualified_count > 0 ? json_array() : NULL;
    for (size_t i = 0; i < v->qualified_count; i++)
        (void)json_array_append_new(array, qualified_json(&v->qualified[i]));
    if (array != NULL)
        (void)json_object_set_new(object, "qualified", array);
    if (v->disabled != NULL)
        (void)json_object_set_new(object, "disabled", json_string(v->disabled));
}

/* ---- variants and kernels ---- */

static ev_status text_json(const char *what, const char *text, json_t **out, ev_error *err) {
    json_error_t problem;
    json_t *value = json_loads(text, 0, &problem);
    if (!json_is_object(value)) {
        json_decref(value);
        return ev_fail(err, EV_BAD, "the %s of a variant is no JSON object: %.80s", what, text);
    }
    *out = value;
    return EV_OK;
}

static ev_status provenance_json(const bundle_variant *v, json_t **out, ev_error *err) {
    json_t *genome = NULL, *versions = NULL;
    EV_TRY(text_json("genome", v->genome, &genome, err));
    ev_status status = text_json("versions", v->versions, &versions, err);
    if (status != EV_OK) {
        json_decref(genome);
        return status;
    }
    *out = json_pack("{s:o, s:s, s:o, s:I, s:o}", "genome", genome, "genome_sha256",
                     v->genome_sha256, "edits", texts_json(v->edits, v->edit_count), "seed",
                     (json_int_t)v->seed, "versions", versions);
    if (*out != NULL && v->records_sha256 != NULL)
        (void)json_object_set_new(*out, "records_sha256", json_string(v->records_sha256));
    return *out != NULL ? EV_OK : ev_fail_memory(err, 1);
}

static json_t *resources_json(const bundle_kernel *k, const bundle_variant *v) {
    return json_pack("{s:I, s:I, s:I, s:I, s:I}", "dynamic_shared_bytes",
                     (json_int_t)needs_shared(k, v), "registers", (json_int_t)v->registers,
                     "shared_bytes", (json_int_t)v->shared_bytes, "local_bytes",
                     (json_int_t)v->local_bytes, "max_threads", (json_int_t)v->max_threads);
}

/* What a driver has to take; nothing where the PTX does not tell. */
static void set_head(json_t *object, const bundle_variant *v) {
    needs_head head = needs_of_ptx(v->ptx, v->ptx_bytes);
    const ev_ptx_row *row = head.version > 0 ? ev_ptx_needs(head.version) : NULL;
    char text[16];
    if (head.version == 0)
        return;
    (void)snprintf(text, sizeof text, "%d.%d", head.version / 10, head.version % 10);
    (void)json_object_set_new(object, "ptx_version", json_string(text));
    (void)json_object_set_new(object, "target", json_string(head.target));
    if (row == NULL)
        return;
    (void)snprintf(text, sizeof text, "%d.%d", row->cuda / 1000, row->cuda % 1000 / 10);
    (void)json_object_set_new(object, "least_cuda", json_string(text));
    (void)json_object_set_new(object, "least_driver", json_integer(row->branch));
}

static void set_alignments(json_t *object, const bundle_variant *v) {
    json_t *needs = v->alignment_count > 0 ? json_object() : NULL;
    for (size_t i = 0; i < v->alignment_count; i++)
        (void)json_object_set_new(needs, v->alignments[i].argument,
                                  json_integer(v->alignments[i].bytes));
    if (needs != NULL)
        (void)json_object_set_new(object, "alignments", needs);
}

static void set_cubins(json_t *object, const bundle_variant *v) {
    json_t *array = v->cubin_count > 0 ? json_array() : NULL;
    for (size_t i = 0; i < v->cubin_count; i++) {
        const bundle_cubin *c = &v->cubins[i];
        (void)json_array_append_new(array, json_pack("{s:s, s:s, s:I, s:I, s:s}", "arch", c->arch,
                                                     "sha256", ev_sha256_of(c->data, c->bytes).hex,
                                                     "registers", (json_int_t)c->registers,
                                                     "spill_bytes", (json_int_t)c->spill_bytes,
                                                     "assembler", c->assembler));
    }
    if (array != NULL)
        (void)json_object_set_new(object, "cubins", array);
}

static void set_gpu(json_t *object, const bundle_variant *v) {
    if (v->sm_mhz > 0)
        (void)json_object_set_new(json_object_get(object, "gpu"), "sm_mhz", json_real(v->sm_mhz));
    set_driver_names(object, v->driver_names, v->driver_name_count);
}

static void set_meaning(json_t *object, const bundle_variant *v) {
    const bundle_tried *t = &v->tried;
    (void)json_object_set_new(object, "meaning", json_string(v->is_bold ? "bold" : "preserving"));
    if (v->is_bold)
        (void)json_object_set_new(object, "changes", texts_json(v->changes, v->change_count));
    if (v->is_bold && v->is_default)
        (void)json_object_set_new(object, "default", json_true());
    if (t->shapes > 0)
        (void)json_object_set_new(object, "tried",
                                  json_pack("{s:s, s:I, s:I, s:I}", "device", t->device, "shapes",
                                            (json_int_t)t->shapes, "runs", (json_int_t)t->runs,
                                            "seed", (json_int_t)t->seed));
}

static ev_status variant_json(const bundle_kernel *k, const bundle_variant *v, json_t **out,
                              ev_error *err) {
    json_t *provenance = NULL, *cases = json_array();
    ev_status status = provenance_json(v, &provenance, err);
    if (status != EV_OK) {
        json_decref(cases);
        return status;
    }
    for (size_t i = 0; i < v->case_count; i++)
        (void)json_array_append_new(cases, case_json(&v->cases[i]));
    ev_sha256 sha256 = ev_sha256_of(v->ptx, v->ptx_bytes);
    *out = json_pack(
        "{s:s, s:s, s:s, s:o, s:{s:s, s:s, s:i, s:i}, s:o, s:s, s:f, s:f, s:o, s:o, s:o}", "sha256",
        sha256.hex, "entry", launch_plan_entry(v->plan), "start", v->start, "launch",
        manifest_launch(v->plan, numbers_json(v->macros, v->macro_count)), "gpu", "id", v->gpu_id,
        "name", v->gpu_name, "sm", v->sm, "sms", v->sms, "resources", resources_json(k, v),
        "time_kind", kind_word(v->modelled), "error", v->error, "tolerance", v->tolerance, "cases",
        cases, "ranges", ranges_json(v), "provenance", provenance);
    if (*out == NULL)
        return ev_fail_memory(err, 1);
    set_head(*out, v);
    set_gpu(*out, v);
    set_cubins(*out, v);
    set_qualified(*out, v);
    set_alignments(*out, v);
    set_meaning(*out, v);
    if (v->resident_count > 0)
        (void)json_object_set_new(*out, "resident", texts_json(v->resident, v->resident_count));
    return EV_OK;
}

/* The order of rows: GPU, then hash. */
static int compare_variants(const void *a, const void *b) {
    const json_t *left = *(json_t *const *)a, *right = *(json_t *const *)b;
    int order = strcmp(ev_json_text(json_object_get(left, "gpu"), "id", ""),
                       ev_json_text(json_object_get(right, "gpu"), "id", ""));
    return order != 0 ? order
                      : strcmp(ev_json_text(left, "sha256", ""), ev_json_text(right, "sha256", ""));
}

static int compare_kernels(const void *a, const void *b) {
    return strcmp(ev_json_text(*(json_t *const *)a, "kernel", ""),
                  ev_json_text(*(json_t *const *)b, "kernel", ""));
}

/* An array of the values, sorted; takes their references, and the list's memory, over. */
static json_t *sorted_array(json_t **values, size_t count,
                            int (*order)(const void *, const void *)) {
    json_t *array = json_array();
    if (count > 0)
        qsort(values, count, sizeof(json_t *), order);
    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(array, values[i]);
    free(values);
    return array;
}

static ev_status variants_json(const bundle_kernel *k, const bundle_variant *variants, size_t count,
                               json_t **out, ev_error *err) {
    json_t **values = calloc(count + 1, sizeof(json_t *));
    ev_status status = values != NULL ? EV_OK : ev_fail_memory(err, count * sizeof(json_t *));
    size_t made = 0;
    for (; made < count && status == EV_OK; made += status == EV_OK)
        status = variant_json(k, &variants[made], &values[made], err);
    json_t *array = sorted_array(values, made, compare_variants);
    if (status == EV_OK)
        *out = array;
    else
        json_decref(array);
    return status;
}

static json_t *arguments_json(const bundle_kernel *k) {
    json_t *array = json_array();
    for (size_t i = 0; i < k->argument_count; i++) {
        const bundle_argument *a = &k->arguments[i];
        json_t *object = json_pack("{s:s, s:s, s:s, s:s}", "name", a->name, "kind", a->kind, "type",
                                   a->type, "expression", a->expression);
        if (a->align != 0 && a->align != BUNDLE_ALIGN)
            (void)json_object_set_new(object, "align", json_integer(a->align));
        if (a->is_field) {
            (void)json_object_set_new(object, "offset", json_integer(a->offset));
            (void)json_object_set_new(object, "struct_bytes", json_integer(a->struct_bytes));
        }
        if (a->of != NULL)
            (void)json_object_set_new(object, "of", json_string(a->of));
        if (a->before != NULL)
            (void)json_object_set_new(object, "before", json_string(a->before));
        if (a->by_rank)
            (void)json_object_set_new(object, "by_rank", json_true());
        (void)json_array_append_new(array, object);
    }
    return array;
}

static json_t *symbols_json(const bundle_kernel *k) {
    json_t *array = json_array();
    for (size_t i = 0; i < k->symbol_count; i++) {
        const bundle_symbol *v = &k->symbols[i];
        (void)json_array_append_new(array, json_pack("{s:s, s:s, s:s}", "name", v->name, "type",
                                                     v->type, "count", v->count));
    }
    return array;
}

static json_t *ranks_json(const bundle_ranks *r) {
    json_t *object = json_pack("{s:s, s:s}", "count", r->count, "scope", BUNDLE_RANKS_SCOPE);
    json_t *barriers = json_array();
    if (r->begins_together)
        (void)json_array_append_new(barriers, json_string("before"));
    if (r->ends_together)
        (void)json_array_append_new(barriers, json_string("after"));
    if (json_array_size(barriers) > 0)
        (void)json_object_set(object, "barriers", barriers);
    json_decref(barriers);
    return object;
}

static ev_status kernel_json(const bundle_kernel *k, json_t **out, ev_error *err) {
    json_t *baselines = NULL, *variants = NULL, *starts = NULL;
    ev_status status = variants_json(k, k->baselines, k->baseline_count, &baselines, err);
    if (status == EV_OK)
        status = variants_json(k, k->variants, k->variant_count, &variants, err);
    if (status == EV_OK && k->start_count > 0)
        status = variants_json(k, k->starts, k->start_count, &starts, err);
    if (status != EV_OK) {
        json_decref(baselines);
        json_decref(variants);
        return status;
    }
    *out = json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "kernel", k->name, "family",
                     k->family, "doc", k->doc, "task", k->task, "task_sha256", k->task_sha256,
                     "arguments", arguments_json(k), "baselines", baselines, "variants", variants);
    if (*out != NULL && starts != NULL)
        (void)json_object_set(*out, "starts", starts);
    if (*out != NULL && k->symbol_count > 0)
        (void)json_object_set_new(*out, "symbols", symbols_json(k));
    if (*out != NULL && k->ranks != NULL)
        (void)json_object_set_new(*out, "ranks", ranks_json(k->ranks));
    json_decref(starts);
    return *out != NULL ? EV_OK : ev_fail_memory(err, 1);
}

static ev_status kernels_json(const bundle_content *content, json_t **out, ev_error *err) {
    json_t **values = calloc(content->kernel_count + 1, sizeof(json_t *));
    ev_status status = values != NULL ? EV_OK : ev_fail_memory(err, 1);
    size_t made = 0;
    for (; made < content->kernel_count && status == EV_OK; made += status == EV_OK)
        status = kernel_json(&content->kernels[made], &values[made], err);
    json_t *array = sorted_array(values, made, compare_kernels);
    if (status == EV_OK)
        *out = array;
    else
        json_decref(array);
    return status;
}

/* ---- files ---- */

static void add_file(json_t *files, const char *path, const char *data, size_t bytes) {
    ev_sha256 sha256 = ev_sha256_of(data, bytes);
    (void)json_object_set_new(
        files, path, json_pack("{s:s, s:I}", "sha256", sha256.hex, "bytes", (json_int_t)bytes));
}

static void add_cubins(json_t *files, const bundle_variant *v) {
    for (size_t i = 0; i < v->cubin_count; i++) {
        const bundle_cubin *c = &v->cubins[i];
        ev_str path = EV_STR_EMPTY;
        ev_str_printf(&path, "kernels/%s.cubin", ev_sha256_of(c->data, c->bytes).hex);
        add_file(files, ev_str_text(&path), c->data, c->bytes);
        ev_str_free(&path);
    }
}

static void add_code(json_t *files, const bundle_variant *variants, size_t count) {
    for (size_t i = 0; i < count; i++) {
        add_cubins(files, &variants[i]);
        ev_str path = EV_STR_EMPTY;
        ev_str_printf(&path, "kernels/%s.ptx",
                      ev_sha256_of(variants[i].ptx, variants[i].ptx_bytes).hex);
        add_file(files, ev_str_text(&path), variants[i].ptx, variants[i].ptx_bytes);
        ev_str_free(&path);
    }
}

static json_t *files_json(const bundle_content *content) {
    json_t *files = json_object();
    for (size_t i = 0; i < content->file_count; i++)
        add_file(files, content->files[i].path, content->files[i].data, content->files[i].bytes);
    for (size_t i = 0; i < content->kernel_count; i++) {
        const bundle_kernel *k = &content->kernels[i];
        add_code(files, k->baselines, k->baseline_count);
        add_code(files, k->variants, k->variant_count);
        add_code(files, k->starts, k->start_count);
    }
    return files;
}

ev_status manifest_make(const bundle_content *content, const char *signer, json_t **out,
                        ev_error *err) {
    json_t *kernels = NULL;
    EV_TRY(kernels_json(content, &kernels, err));
    *out =
        json_pack("{s:s, s:i, s:s, s:o, s:o}", "schema", BUNDLE_SCHEMA, "version", BUNDLE_VERSION,
                  "evoke", content->version, "files", files_json(content), "kernels", kernels);
    if (*out != NULL && signer != NULL)
        (void)json_object_set_new(*out, "signer", json_string(signer));
    return *out != NULL ? EV_OK : ev_fail_memory(err, 1);
}
