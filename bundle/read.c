/* Reads a manifest: holds it against its key tables, and turns it into plain values. */
#include "bundle/read.h"

#include "base/arena.h"
#include "bundle/manifest.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHERE_BYTES 96                /* "kernels[N].variants[N]" */
#define WHOLE_MOST 9007199254740992.0 /* a double holds each whole number up to it */

/* ---- values ---- */

static json_t *get(const json_t *object, const char *key) {
    return json_object_get(object, key);
}

static bundle_number number_of(const char *name, const json_t *value) {
    return (bundle_number){name, !json_is_integer(value), json_number_value(value)};
}

/* The members of an object of numbers, by name. */
static ev_status read_numbers(const reading *r, const json_t *object, const char *where,
                              const bundle_number **out, size_t *count) {
    if (json_object_size(object) > MOST_NAMES)
        return ev_json_fail(r->doc, where, r->err, "has more than %d names", MOST_NAMES);
    bundle_number *numbers = EV_NEW_ARRAY(r->arena, bundle_number, json_object_size(object) + 1);
    if (numbers == NULL)
        return ev_fail_memory(r->err, json_object_size(object) * sizeof *numbers);
    *count = 0;
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)object, name, value) {
        if (!json_is_number(value))
            return ev_json_fail(r->doc, where, r->err, "'%s' must be a number", name);
        if (fabs(json_number_value(value)) > WHOLE_MOST && json_is_integer(value))
            return ev_json_fail(r->doc, where, r->err,
                                "'%s' is over 2^53, up to which whole numbers are exact", name);
        numbers[(*count)++] = number_of(name, value);
    }
    *out = numbers;
    return EV_OK;
}

/* An array of texts; `exactly` 0: any number. */
static ev_status read_texts(const reading *r, const json_t *array, const char *where,
                            size_t exactly, const char **out) {
    if (exactly != 0 && json_array_size(array) != exactly)
        return ev_json_fail(r->doc, where, r->err, "must have %zu members", exactly);
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (!json_is_string(json_array_get(array, i)))
            return ev_json_fail(r->doc, where, r->err, "must hold texts only");
        out[i] = json_string_value(json_array_get(array, i));
    }
    return EV_OK;
}

char *reading_join(const reading *r, const char *where, const char *key) {
    char *text = ev_arena_printf(r->places, "%s.%s", where, key);
    return text != NULL ? text : "";
}

char *reading_member(const reading *r, const char *where, const char *key, size_t index) {
    char *text =
        ev_arena_printf(r->places, "%s%s%s[%zu]", where, where[0] != '\0' ? "." : "", key, index);
    return text != NULL ? text : "";
}

/* The child object `key`, held against its table. */
static ev_status checked(const reading *r, manifest_object kind, const json_t *object,
                         const char *where, const char *key, const json_t **out) {
    *out = get(object, key);
    return manifest_check(r->doc, kind, *out, reading_join(r, where, key), r->err);
}

static uint32_t word_of(const json_t *object, const char *key) {
    json_int_t value = ev_json_integer(object, key, 0);
    return value < 0 || value > UINT32_MAX ? 0 : (uint32_t)value;
}

/* ---- variants ---- */

/* A time that is there is above 0, and lies in its interval; an error is not below 0. */
static ev_status check_times(const reading *r, const json_t *object, const char *where,
                             const bundle_case *c) {
    bool has_time = get(object, "ns") != NULL;
    if (has_time && !(c->low_ns > 0 && c->low_ns <= c->ns && c->ns <= c->high_ns))
        return ev_json_fail(r->doc, where, r->err,
                            "0 < low_ns <= ns <= high_ns must hold; it has %g, %g and %g",
                            c->low_ns, c->ns, c->high_ns);
    if (get(object, "baseline_ns") != NULL && !(c->baseline_ns > 0))
        return ev_json_fail(r->doc, reading_join(r, where, "baseline_ns"), r->err,
                            "a time is above 0");
    bool has_low = get(object, "baseline_low_ns") != NULL;
    bool has_high = get(object, "baseline_high_ns") != NULL;
    bool is_ordered = c->baseline_low_ns > 0 && c->baseline_low_ns <= c->baseline_ns &&
                      c->baseline_ns <= c->baseline_high_ns;
    if ((has_low || has_high) && !(has_low && has_high && is_ordered))
        return ev_json_fail(
            r->doc, where, r->err,
            "0 < baseline_low_ns <= baseline_ns <= baseline_high_ns must hold, with "
            "both ends or none; it has %g, %g and %g",
            c->baseline_low_ns, c->baseline_ns, c->baseline_high_ns);
    if (get(object, "error") != NULL && c->error < 0)
        return ev_json_fail(r->doc, reading_join(r, where, "error"), r->err,
                            "an error is not below 0");
    return EV_OK;
}

static ev_status read_case(const reading *r, const json_t *object, const char *where,
                           bundle_case *out) {
    EV_TRY(manifest_check(r->doc, MANIFEST_CASE, object, where, r->err));
    out->name = ev_json_text(object, "case", "");
    out->split = ev_json_text(object, "split", "");
    out->ns = ev_json_number(object, "ns", 0);
    out->low_ns = ev_json_number(object, "low_ns", 0);
    out->high_ns = ev_json_number(object, "high_ns", 0);
    out->baseline_ns = ev_json_number(object, "baseline_ns", 0);
    out->baseline_low_ns = ev_json_number(object, "baseline_low_ns", 0);
    out->baseline_high_ns = ev_json_number(object, "baseline_high_ns", 0);
    out->error = ev_json_number(object, "error", -1);
    EV_TRY(check_times(r, object, where, out));
    return read_numbers(r, get(object, "shape"), reading_join(r, where, "shape"), &out->shape,
                        &out->shape_count);
}

static ev_status read_cases(const reading *r, const json_t *object, const char *where,
                            bundle_variant *out) {
    const json_t *cases = get(object, "cases");
    if (json_array_size(cases) > MOST_CASES)
        return ev_json_fail(r->doc, reading_join(r, where, "cases"), r->err,
                            "a variant has at most %d cases", MOST_CASES);
    bundle_case *all = EV_NEW_ARRAY(r->arena, bundle_case, json_array_size(cases) + 1);
    if (all == NULL)
        return ev_fail_memory(r->err, json_array_size(cases) * sizeof *all);
    out->cases = all;
    for (size_t i = 0; i < json_array_size(cases); i++, out->case_count++)
        EV_TRY(
            read_case(r, json_array_get(cases, i), reading_member(r, where, "cases", i), &all[i]));
    return EV_OK;
}

static ev_status read_range(const reading *r, const json_t *object, const char *where,
                            launch_range *out) {
    EV_TRY(manifest_check(r->doc, MANIFEST_RANGE, object, where, r->err));
    out->name = ev_json_text(object, "name", "");
    out->low = ev_json_number(object, "low", 0);
    out->high = ev_json_number(object, "high", 0);
    out->is_real = get(object, "multiple") == NULL;
    out->multiple = ev_json_integer(object, "multiple", 0);
    return EV_OK;
}

static ev_status read_ranges(const reading *r, const json_t *object, const char *where,
                             launch_plan *plan) {
    const json_t *ranges = get(object, "ranges");
    launch_range *all = EV_NEW_ARRAY(r->arena, launch_range, json_array_size(ranges) + 1);
    if (all == NULL)
        return ev_fail_memory(r->err, json_array_size(ranges) * sizeof *all);
    plan->ranges = all;
    for (size_t i = 0; i < json_array_size(ranges); i++, plan->range_count++)
        EV_TRY(read_range(r, json_array_get(ranges, i), reading_member(r, where, "ranges", i),
                          &all[i]));
    return EV_OK;
}

/* ---- launch plans ---- */

/* One name more than MOST_NAMES shows that there are too many. */
static void add_name(const char **names, size_t *count, const char *name) {
    for (size_t i = 0; i < *count; i++) {
        if (strcmp(names[i], name) == 0)
            return;
    }
    if (*count <= MOST_NAMES)
        names[(*count)++] = name;
}

/* The names that a variant's expressions may use: shapes, scalar arguments, macros. */
static ev_status list_names(const reading *r, const bundle_kernel *k, const bundle_variant *v,
                            const char *where, expr_names *out) {
    const char *names[MOST_NAMES + 1];
    size_t count = 0;
    for (size_t i = 0; i < v->case_count; i++) {
        for (size_t s = 0; s < v->cases[i].shape_count; s++)
            add_name(names, &count, v->cases[i].shape[s].name);
    }
    for (size_t i = 0; i < k->argument_count; i++) {
        if (bundle_is_scalar(&k->arguments[i]))
            add_name(names, &count, k->arguments[i].name);
    }
    for (size_t i = 0; i < v->macro_count; i++)
        add_name(names, &count, v->macros[i].name);
    if (count > MOST_NAMES)
        return ev_json_fail(r->doc, where, r->err,
                            "its shapes, scalar arguments and macros have more than %d names",
                            MOST_NAMES);
    const char **kept = ev_arena_copy(r->places, names, count * sizeof *names);
    if (kept == NULL)
        return ev_fail_memory(r->err, count * sizeof *names);
    *out = (expr_names){kept, count};
    return EV_OK;
}

/* After the cases: their shapes' names are needed. */
static ev_status read_plan(const reading *r, const bundle_kernel *k, const json_t *object,
                           const char *where, bundle_variant *out) {
    launch_plan *plan = EV_NEW(r->arena, launch_plan);
    const json_t *launch = NULL;
    expr_names names;
    if (plan == NULL)
        return ev_fail_memory(r->err, sizeof *plan);
    EV_TRY(checked(r, MANIFEST_LAUNCH, object, where, "launch", &launch));
    EV_TRY(read_numbers(r, get(launch, "macros"), reading_join(r, where, "launch.macros"),
                        &out->macros, &out->macro_count));
    EV_TRY(reading_launches(r, k, launch, reading_join(r, where, "launch"),
                            ev_json_text(object, "entry", ""), plan));
    EV_TRY(read_ranges(r, object, where, plan));
    EV_TRY(list_names(r, k, out, where, &names));
    ev_error why = {.status = EV_OK};
    if (launch_plan_check(plan, &names, &why) != EV_OK)
        return ev_json_fail(r->doc, reading_join(r, where, "launch"), r->err, "%s", why.text);
    out->plan = plan;
    return EV_OK;
}

static ev_status read_text_of(const reading *r, const json_t *value, const char **out) {
    char *text = ev_json_print(value, true);
    *out = text != NULL ? ev_arena_strdup(r->arena, text) : NULL;
    free(text);
    return *out != NULL ? EV_OK : ev_fail_memory(r->err, 1);
}

bool reading_is_hash(const char *text) {
    return strlen(text) == EV_SHA256_HEX - 1 &&
           strspn(text, "0123456789abcdef") == EV_SHA256_HEX - 1;
}

static ev_status read_provenance(const reading *r, const json_t *object, const char *where,
                                 bundle_variant *out) {
    const json_t *p = NULL;
    EV_TRY(checked(r, MANIFEST_PROVENANCE, object, where, "provenance", &p));
    if (!r->is_lazy) { /* who launches has no use for them */
        EV_TRY(read_text_of(r, get(p, "genome"), &out->genome));
        EV_TRY(read_text_of(r, get(p, "versions"), &out->versions));
    }
    out->records_sha256 = ev_json_text(p, "records_sha256", NULL);
    if (out->records_sha256 != NULL && !reading_is_hash(out->records_sha256))
        return ev_json_fail(r->doc, reading_join(r, where, "provenance.records_sha256"), r->err,
                            "a hash has 64 digits of 0 to 9 and a to f");
    out->genome_sha256 = ev_json_text(p, "genome_sha256", "");
    out->seed = (uint64_t)ev_json_integer(p, "seed", 0);
    out->edit_count = json_array_size(get(p, "edits"));
    const char **edits = EV_NEW_ARRAY(r->arena, const char *, out->edit_count + 1);
    if (edits == NULL)
        return ev_fail_memory(r->err, out->edit_count * sizeof *edits);
    out->edits = edits;
    return read_texts(r, get(p, "edits"), reading_join(r, where, "provenance.edits"), 0, edits);
}

ev_status reading_driver_names(const reading *r, const json_t *object, const char *where,
                               const char *const **out, size_t *count) {
    const json_t *names = get(get(object, "gpu"), "driver_names");
    const char **all = EV_NEW_ARRAY(r->arena, const char *, json_array_size(names) + 1);
    if (all == NULL)
        return ev_fail_memory(r->err, json_array_size(names) * sizeof *all);
    *out = all;
    *count = json_array_size(names);
    return read_texts(r, names, reading_join(r, where, "gpu.driver_names"), 0, all);
}

static ev_status read_machine(const reading *r, const json_t *object, const char *where,
                              bundle_variant *out) {
    EV_TRY(reading_gpu(r, object, where, &out->gpu_id, &out->gpu_name, &out->sm, &out->sms));
    out->sm_mhz = ev_json_number(get(object, "gpu"), "sm_mhz", 0);
    EV_TRY(reading_driver_names(r, object, where, &out->driver_names, &out->driver_name_count));
    return reading_needs(r, object, where, out);
}

static ev_status load_ptx(const reading *r, bundle_variant *out) {
    char *data = NULL;
    EV_TRY(bundle_read_ptx(r->b, out, &data, &out->ptx_bytes, r->err));
    out->ptx = ev_arena_copy(r->arena, data, out->ptx_bytes + 1);
    free(data);
    return out->ptx != NULL ? EV_OK : ev_fail_memory(r->err, out->ptx_bytes);
}

/* The PTX, which must be one of the files. */
static ev_status read_ptx(const reading *r, const json_t *object, const char *where,
                          bundle_variant *out) {
    const char *hash = ev_json_text(object, "sha256", "");
    char path[sizeof "kernels/.ptx" + EV_SHA256_HEX];
    (void)snprintf(path, sizeof path, "kernels/%.64s.ptx", hash);
    const json_t *facts = get(get(r->doc->root, "files"), path);
    if (strlen(hash) != EV_SHA256_HEX - 1 || facts == NULL ||
        strcmp(ev_json_text(facts, "sha256", ""), hash) != 0)
        return ev_json_fail(r->doc, reading_join(r, where, "sha256"), r->err,
                            "the files of the bundle do not have this PTX");
    memcpy(out->sha256.hex, hash, EV_SHA256_HEX);
    out->ptx_bytes = (size_t)ev_json_integer(facts, "bytes", 0);
    return r->is_lazy ? EV_OK : load_ptx(r, out);
}

bool reading_is_alignment(json_int_t bytes) {
    return bytes > 0 && bytes <= 4096 && (bytes & (bytes - 1)) == 0;
}

static bool has_buffer(const bundle_kernel *k, const char *name) {
    for (size_t i = 0; i < k->argument_count; i++)
        if (strcmp(k->arguments[i].name, name) == 0)
            return !bundle_is_scalar(&k->arguments[i]);
    return false;
}

static ev_status read_alignments(const reading *r, const bundle_kernel *k, const json_t *object,
                                 const char *where, bundle_variant *out) {
    json_t *needs = json_object_get(object, "alignments");
    const char *name = NULL;
    json_t *value = NULL;
    bundle_alignment *all = EV_NEW_ARRAY(r->arena, bundle_alignment, json_object_size(needs) + 1);
    if (all == NULL)
        return ev_fail_memory(r->err, json_object_size(needs) * sizeof *all);
    out->alignments = all;
    json_object_foreach(needs, name, value) {
        if (!reading_is_alignment(json_integer_value(value)) || !has_buffer(k, name))
            return ev_json_fail(r->doc, reading_join(r, where, "alignments"), r->err,
                                "'%s' is no buffer of the kernel, or its alignment is no power of "
                                "two up to 4096",
                                name);
        const char *kept = ev_arena_strdup(r->arena, name);
        if (kept == NULL)
            return ev_fail_memory(r->err, 1);
        all[out->alignment_count++] = (bundle_alignment){kept, (uint32_t)json_integer_value(value)};
    }
    return EV_OK;
}

static ev_status read_tried(const reading *r, const json_t *object, const char *where,
                            bundle_tried *out) {
    const json_t *t = NULL;
    if (get(object, "tried") == NULL)
        return EV_OK;
    EV_TRY(checked(r, MANIFEST_TRIED, object, where, "tried", &t));
    *out = (bundle_tried){.device = ev_json_text(t, "device", ""),
                          .shapes = word_of(t, "shapes"),
                          .runs = word_of(t, "runs"),
                          .seed = (uint64_t)ev_json_integer(t, "seed", 0)};
    return EV_OK;
}

/* A mark that is unknown, or that contradicts the rest, is refused: who does not allow bold
 * variants must not get one by mistake. */
static ev_status read_meaning(const reading *r, const json_t *object, const char *where,
                              bundle_variant *out) {
    const char *meaning = ev_json_text(object, "meaning", "");
    const json_t *changes = get(object, "changes");
    out->is_bold = strcmp(meaning, "bold") == 0;
    out->is_default = ev_json_flag(object, "default", false);
    out->change_count = json_array_size(changes);
    if (!out->is_bold && strcmp(meaning, "preserving") != 0)
        return ev_json_fail(r->doc, reading_join(r, where, "meaning"), r->err,
                            "\"%s\" is no meaning of a variant; it is preserving or bold", meaning);
    if (out->is_bold != (out->change_count > 0) || (out->is_default && !out->is_bold))
        return ev_json_fail(r->doc, reading_join(r, where, "meaning"), r->err,
                            "a bold variant has changes, and a preserving one has none and is no "
                            "default");
    const char **texts = EV_NEW_ARRAY(r->arena, const char *, out->change_count + 1);
    if (texts == NULL)
        return ev_fail_memory(r->err, out->change_count * sizeof *texts);
    out->changes = texts;
    EV_TRY(read_tried(r, object, where, &out->tried));
    return read_texts(r, changes, reading_join(r, where, "changes"), 0, texts);
}

static ev_status read_variant(const reading *r, const bundle_kernel *k, const json_t *object,
                              const char *where, bundle_variant *out) {
    EV_TRY(manifest_check(r->doc, MANIFEST_VARIANT, object, where, r->err));
    out->number = r->b->variant_count++;
    out->start = ev_json_text(object, "start", "");
    out->modelled = strcmp(ev_json_text(object, "time_kind", ""), "measured") != 0;
    out->error = ev_json_number(object, "error", 0);
    out->tolerance = ev_json_number(object, "tolerance", 0);
    if (out->modelled && strcmp(ev_json_text(object, "time_kind", ""), "modelled") != 0)
        return ev_json_fail(r->doc, reading_join(r, where, "time_kind"), r->err,
                            "times are modelled or measured");
    if (out->error < 0 || out->tolerance < 0)
        return ev_json_fail(r->doc, reading_join(r, where, out->error < 0 ? "error" : "tolerance"),
                            r->err, "an error is not below 0");
    EV_TRY(read_machine(r, object, where, out));
    EV_TRY(read_cases(r, object, where, out));
    EV_TRY(read_plan(r, k, object, where, out));
    EV_TRY(read_provenance(r, object, where, out));
    EV_TRY(reading_qualified(r, object, where, out));
    EV_TRY(read_alignments(r, k, object, where, out));
    EV_TRY(read_meaning(r, object, where, out));
    EV_TRY(reading_cubins(r, object, where, out));
    EV_TRY(reading_resident(r, k, object, where, out));
    return read_ptx(r, object, where, out);
}

static ev_status read_variants(const reading *r, const bundle_kernel *k, const json_t *kernel,
                               const char *where, const char *key, const bundle_variant **out,
                               size_t *count) {
    const json_t *array = get(kernel, key);
    bundle_variant *all = EV_NEW_ARRAY(r->arena, bundle_variant, json_array_size(array) + 1);
    if (all == NULL)
        return ev_fail_memory(r->err, json_array_size(array) * sizeof *all);
    *count = json_array_size(array);
    *out = all;
    for (size_t i = 0; i < *count; i++) {
        char place[WHERE_BYTES];
        (void)snprintf(place, sizeof place, "%s.%s[%zu]", where, key, i);
        EV_TRY(read_variant(r, k, json_array_get(array, i), place, &all[i]));
        ev_arena_reset(r->places);
    }
    return EV_OK;
}

/* ---- kernels ---- */

static ev_status read_kernel(const reading *r, const json_t *object, const char *where,
                             bundle_kernel *out) {
    EV_TRY(manifest_check(r->doc, MANIFEST_KERNEL, object, where, r->err));
    out->name = ev_json_text(object, "kernel", "");
    out->family = ev_json_text(object, "family", "");
    out->doc = ev_json_text(object, "doc", "");
    out->task = ev_json_text(object, "task", "");
    out->task_sha256 = ev_json_text(object, "task_sha256", "");
    if (get(get(r->doc->root, "files"), out->task) == NULL)
        return ev_json_fail(r->doc, reading_join(r, where, "task"), r->err,
                            "the files of the bundle do not have '%s'", out->task);
    if (!expr_is_name(out->name))
        return ev_json_fail(r->doc, reading_join(r, where, "kernel"), r->err,
                            "\"%.100s\" is no name; use letters, digits and _, not a digit first",
                            out->name);
    EV_TRY(reading_ranks(r, object, where, out));
    EV_TRY(reading_arguments(r, object, where, out));
    EV_TRY(
        read_variants(r, out, object, where, "baselines", &out->baselines, &out->baseline_count));
    EV_TRY(reading_expressions(r, where, out));
    EV_TRY(read_variants(r, out, object, where, "variants", &out->variants, &out->variant_count));
    return read_variants(r, out, object, where, "starts", &out->starts, &out->start_count);
}

/* The version comes first: another one may have other keys. */
static ev_status check_version(const reading *r) {
    const json_t *root = r->doc->root;
    if (strcmp(ev_json_text(root, "schema", ""), BUNDLE_SCHEMA) != 0)
        return ev_json_fail(r->doc, "", r->err, "this is no manifest of a bundle (schema '%s')",
                            BUNDLE_SCHEMA);
    json_int_t version = ev_json_integer(root, "version", 0);
    if (version != BUNDLE_VERSION)
        return ev_json_fail(
            r->doc, "version", r->err,
            "this reader knows schema version %d, and the bundle has %" JSON_INTEGER_FORMAT
            "; use the Evoke that wrote it, or export again",
            BUNDLE_VERSION, version);
    return manifest_check(r->doc, MANIFEST_ROOT, root, "", r->err);
}

ev_status reading_manifest(const reading *r) {
    EV_TRY(check_version(r));
    EV_TRY(reading_files(r));
    const json_t *array = get(r->doc->root, "kernels");
    r->b->kernel_count = json_array_size(array);
    r->b->kernels = EV_NEW_ARRAY(r->arena, bundle_kernel, r->b->kernel_count + 1);
    if (r->b->kernels == NULL)
        return ev_fail_memory(r->err, r->b->kernel_count * sizeof(bundle_kernel));
    for (size_t i = 0; i < r->b->kernel_count; i++) {
        char place[WHERE_BYTES];
        (void)snprintf(place, sizeof place, "kernels[%zu]", i);
        EV_TRY(read_kernel(r, json_array_get(array, i), place, &r->b->kernels[i]));
    }
    return EV_OK;
}
