/* Builds variants for check, export, profile and the benches. */
#include "tuner/variant.h"

#include "base/json.h"
#include "ir/ir.h"
#include "tuner/bases.h"
#include "tuner/isolate.h"

#include <stdlib.h>

#define BUILD_SECONDS 120 /* CPU time; the slowest build takes about one */

typedef struct build_request {
    const task *t;
    const ir_genome *genome;
    int sm;
} build_request;

static ev_status emit(const ir_base *base, const ir_genome *genome, ev_str *out, ev_error *err) {
    ir_build *build = NULL;
    EV_TRY(ir_build_new(base, genome, &build, err));
    ev_status status = EV_OK;
    for (int s = 0; s < IR_STAGE_COUNT && status == EV_OK; s++)
        status = ir_build_run(build, (ir_stage)s, err);
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
    if (status == EV_OK)
        status = emit(base, request->genome, out, err);
    bases_free(all);
    return status;
}

ev_status variant_build(const task *t, const ir_genome *genome, int sm, ev_str *ptx,
                        ev_error *err) {
    build_request request = {t, genome, sm};
    return isolate_run(build_work, &request, BUILD_SECONDS, ptx, err);
}

ev_status variant_build_start(const task *t, const task_start *start, int sm, ev_str *ptx,
                              ev_error *err) {
    ir_genome *genome = ir_genome_new(start->name);
    if (genome == NULL)
        return ev_fail_memory(err, 1);
    ev_status status = variant_build(t, genome, sm, ptx, err);
    ir_genome_free(genome);
    return status;
}

ev_status variant_macros(const ir_genome *genome, expr_name **out, size_t *count, ev_error *err) {
    size_t many = ir_genome_macro_count(genome);
    expr_name *macros = calloc(many + 1, sizeof *macros);
    if (macros == NULL)
        return ev_fail_memory(err, many * sizeof *macros);
    for (size_t i = 0; i < many; i++) {
        int64_t value = ir_genome_macro_value(genome, i);
        macros[i] =
            (expr_name){ir_genome_macro_name(genome, i), {.whole = value, .real = (double)value}};
    }
    *out = macros;
    *count = many;
    return EV_OK;
}

ev_status variant_genome(const char *text, const char *name, ir_genome **out, ev_error *err) {
    ev_json *doc = NULL;
    EV_TRY(ev_json_parse(text, name, &doc, err));
    ev_status status = ir_genome_from_json(doc->root, out, err);
    ev_json_free(doc);
    return status;
}
