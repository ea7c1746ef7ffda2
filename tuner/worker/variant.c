/* Variant: builds variants in child processes, for check, export, profile and the benches. */
#include "tuner/worker/variant.h"

#include "base/file.h"
#include "base/json.h"
#include "tuner/worker/bases.h"
#include "tuner/worker/isolate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BITS_DIGITS ((size_t)16)
#define BUILD_SECONDS 300 /* the slowest build takes about one second on an idle machine */

typedef struct build_request {
    const task *t;
    const ir_genome *genome;
    int sm;
} build_request;

static ev_status emit(const ir_base *base, const ir_genome *genome, ev_str *out, ev_error *err) {
    ir_build *build = NULL;
    EV_TRY(ir_build_new(base, genome, &build, err));
    ev_status status = ir_build_run_all(build, err);
    if (status == EV_OK) {
        size_t bytes = 0;
        const char *ptx = ir_build_ptx(build, &bytes);
        ev_str_append_n(out, ptx, bytes);
    }
    ir_build_free(build);
    return status;
}

/* In the child. */
static ev_status build_work(void *context, ev_str *out, ev_error *err) {
    const build_request *request = context;
    bases *all = NULL;
    const ir_base *base = NULL;
    EV_TRY(bases_new(request->t, request->sm, 1, &all, err));
    ev_status status = bases_get(all, request->genome, &base, err);
    if (status == EV_OK) {
        const task_start *start = task_find_start(request->t, ir_genome_start(request->genome));
        ev_str_printf(out, "%0*" PRIx64, (int)BITS_DIGITS,
                      task_bits_of_main(request->t, start, ir_base_may_alias(base)));
        status = emit(base, request->genome, out, err);
    }
    bases_free(all);
    return status;
}

/* The number that the next digits say. */
static uint64_t number_at(const char *text) {
    char digits[BITS_DIGITS + 1] = "";
    memcpy(digits, text, BITS_DIGITS);
    return strtoull(digits, NULL, 16);
}

/* The child writes the bits of may_alias before the PTX. */
ev_status variant_build_told(const task *t, const ir_genome *genome, int sm, ev_str *ptx,
                             uint64_t *may_alias, ev_error *err) {
    build_request request = {t, genome, sm};
    ev_str told = EV_STR_EMPTY;
    ev_status status = isolate_run(build_work, &request, BUILD_SECONDS, &told, err);
    if (status == EV_OK && told.length > BITS_DIGITS) {
        *may_alias = number_at(ev_str_text(&told));
        ev_str_append(ptx, ev_str_text(&told) + BITS_DIGITS);
        status = ev_str_status(ptx, err);
    }
    ev_str_free(&told);
    return status;
}

ev_status variant_build(const task *t, const ir_genome *genome, int sm, ev_str *ptx,
                        ev_error *err) {
    uint64_t ignored = 0;
    return variant_build_told(t, genome, sm, ptx, &ignored, err);
}

/* ---- for gate 6 ---- */

typedef struct gate_request {
    build_request of;
    const uint8_t *taken; /* of variant_missed */
} gate_request;

/* Appends the numbers of bytes before the texts. */
static ev_status write_builds(const gate_builds *b, ev_str *out, ev_error *err) {
    const size_t numbers[] = {b->arms_bytes, b->arms.length, b->checked.length};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        ev_str_printf(out, "%0*zx", (int)BITS_DIGITS, numbers[i]);
    ev_str_append_n(out, ev_str_text(&b->arms), b->arms.length);
    ev_str_append_n(out, ev_str_text(&b->checked), b->checked.length);
    return ev_str_status(out, err);
}

static ev_status make_builds(const build_request *r, const ir_base *base, const task_start *start,
                             ev_str *out, ev_error *err) {
    gate_builds made = {.arms = EV_STR_EMPTY, .checked = EV_STR_EMPTY};
    ir_build *build = NULL;
    EV_TRY(ir_build_new(base, r->genome, &build, err));
    ev_status status = ir_build_run_all(build, err);
    if (status == EV_OK)
        status = gate_builds_make(base, r->genome, build, start, &made, err);
    if (status == EV_OK)
        status = write_builds(&made, out, err);
    ir_build_free(build);
    gate_builds_free(&made);
    return status;
}

/* In the child: makes the builds, or appends what the taken arms leave to refuse. */
static ev_status gate_work(void *context, ev_str *out, ev_error *err) {
    const gate_request *r = context;
    const build_request *of = &r->of;
    const task_start *start = task_find_start(of->t, ir_genome_start(of->genome));
    bases *all = NULL;
    const ir_base *base = NULL;
    EV_TRY(bases_new(of->t, of->sm, 1, &all, err));
    ev_status status = bases_get(all, of->genome, &base, err);
    if (status == EV_OK && r->taken == NULL)
        status = make_builds(of, base, start, out, err);
    else if (status == EV_OK)
        status = gate_builds_missed(base, of->genome, start, r->taken, out, err);
    bases_free(all);
    return status;
}

ev_status variant_gate_builds(const task *t, const ir_genome *genome, int sm, gate_builds *out,
                              ev_error *err) {
    gate_request request = {.of = {t, genome, sm}};
    ev_str told = EV_STR_EMPTY;
    ev_status status = isolate_run(gate_work, &request, BUILD_SECONDS, &told, err);
    if (status == EV_OK && told.length >= 3 * BITS_DIGITS) {
        const char *text = ev_str_text(&told);
        size_t arms = (size_t)number_at(text + BITS_DIGITS);
        size_t checked = (size_t)number_at(text + 2 * BITS_DIGITS);
        out->arms_bytes = (size_t)number_at(text);
        ev_str_append_n(&out->arms, text + 3 * BITS_DIGITS, arms);
        ev_str_append_n(&out->checked, text + 3 * BITS_DIGITS + arms, checked);
        status = ev_str_status(&out->arms, err);
    }
    if (status == EV_OK)
        status = ev_str_status(&out->checked, err);
    ev_str_free(&told);
    return status;
}

ev_status variant_missed(const task *t, const ir_genome *genome, int sm, const uint8_t *taken,
                         ev_str *why, ev_error *err) {
    gate_request request = {.of = {t, genome, sm}, .taken = taken};
    return isolate_run(gate_work, &request, BUILD_SECONDS, why, err);
}

/* ---- of starts and files ---- */

ev_status variant_build_start(const task *t, const task_start *start, int sm, ev_str *ptx,
                              ev_error *err) {
    ir_genome *genome = ir_genome_new(start->name);
    if (genome == NULL)
        return ev_fail_memory(err, 1);
    ev_status status = variant_build(t, genome, sm, ptx, err);
    ir_genome_free(genome);
    return status;
}

/* In the child. */
static ev_status lined_work(void *context, ev_str *out, ev_error *err) {
    const build_request *request = context;
    bases *all = NULL;
    const ir_base *base = NULL;
    char *ptx = NULL;
    size_t bytes = 0;
    EV_TRY(bases_new(request->t, request->sm, 1, &all, err));
    ev_status status = bases_get(all, request->genome, &base, err);
    if (status == EV_OK)
        status = ir_base_lined_ptx(base, &ptx, &bytes, err);
    if (status == EV_OK)
        ev_str_append_n(out, ptx, bytes);
    free(ptx);
    bases_free(all);
    return status;
}

ev_status variant_build_lined(const task *t, const task_start *start, int sm, ev_str *ptx,
                              ev_error *err) {
    ir_genome *genome = ir_genome_new(start->name);
    if (genome == NULL)
        return ev_fail_memory(err, 1);
    build_request request = {t, genome, sm};
    ev_status status = isolate_run(lined_work, &request, BUILD_SECONDS, ptx, err);
    ir_genome_free(genome);
    return status;
}

static ev_status file_work(void *context, ev_str *out, ev_error *err) {
    ir_base *base = NULL;
    ir_genome *genome = ir_genome_new("");
    ev_status status = genome == NULL ? ev_fail_memory(err, 1) : ir_base_load(context, &base, err);
    if (status == EV_OK)
        status = emit(base, genome, out, err);
    ir_base_free(base);
    ir_genome_free(genome);
    return status;
}

/* "ops::scale<float, 4>" is the instance of the template "scale". */
static ev_status set_entry(const char *entry, ev_arena *arena, ir_source *source, ev_error *err) {
    size_t length = 0;
    source->entry = entry;
    if (strchr(entry, '<') == NULL)
        return EV_OK;
    const char *name = task_entry_name(entry, &length);
    if (length == 0)
        return ev_fail(err, EV_BAD, "\"%s\" is no instance of a template, like 'scale<float, 4>'",
                       entry);
    source->instance = entry;
    source->entry = ev_arena_strndup(arena, name, length);
    return source->entry != NULL ? EV_OK : ev_fail_memory(err, length);
}

ev_status variant_build_macros(const char *path, const char *entry, const ir_macro *macros,
                               size_t macro_count, int sm, ev_str *ptx, ev_error *err) {
    char *home = ev_path_home();
    char *include = home != NULL ? ev_path_join(home, "kernels/include") : NULL;
    ir_source source = {
        .path = path, .include = include, .macros = macros, .macro_count = macro_count, .sm = sm};
    ev_arena *arena = ev_arena_new();
    ev_status status =
        arena != NULL ? set_entry(entry, arena, &source, err) : ev_fail_memory(err, strlen(entry));
    if (status == EV_OK)
        status = include != NULL ? isolate_run(file_work, &source, BUILD_SECONDS, ptx, err)
                                 : ev_fail(err, EV_BAD, "kernels/ was not found; set EVOKE_HOME");
    ev_arena_free(arena);
    free(include);
    free(home);
    return status;
}

ev_status variant_build_file(const char *path, const char *entry, int sm, ev_str *ptx,
                             ev_error *err) {
    return variant_build_macros(path, entry, NULL, 0, sm, ptx, err);
}

ev_status variant_genome(const char *text, const char *name, ir_genome **out, ev_error *err) {
    ev_json *doc = NULL;
    EV_TRY(ev_json_parse(text, name, &doc, err));
    ev_status status = ir_genome_from_json(doc->root, out, err);
    ev_json_free(doc);
    return status;
}

/* *out: the text of the first `count` structural edits; NULL: there are none. */
static ev_status take_text(const ir_genome *genome, size_t count, ev_arena *arena, const char **out,
                           ev_error *err) {
    ev_str text = EV_STR_EMPTY;
    *out = NULL;
    if (count == 0)
        return EV_OK;
    EV_TRY(ir_genome_prefix_text(genome, count, &text, err));
    *out = ev_arena_strdup(arena, ev_str_text(&text));
    ev_str_free(&text);
    return *out != NULL ? EV_OK : ev_fail_memory(err, 1);
}

ev_status variant_structure(const ir_genome *genome, ev_arena *arena, candidate *out,
                            ev_error *err) {
    ir_genome_idle_parts(genome, out->idle_parts);
    EV_TRY(take_text(genome, ir_genome_prefix_count(genome), arena, &out->structure, err));
    return take_text(genome, ir_genome_division_count(genome), arena, &out->division, err);
}
