/* Shipped: converts tasks, candidates, launch plans and names of GPUs from and to the forms of
 * bundles. */
#include "tuner/run/shipped.h"

#include "base/str.h"
#include "kernels/task_apart.h"
#include "tuner/worker/variant.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void warn_apart(const bundle_kernel *k, const shipped_trust *trust) {
    ev_str text = EV_STR_EMPTY;
    ev_str_printf(&text,
                  "%s: the bundle brings an oracle in C, which is not built without --trust-oracle "
                  "or a trusted signature; the kernel is compared with its baseline",
                  k->name);
    if (trust->warn != NULL)
        trust->warn(ev_str_text(&text));
    ev_str_free(&text);
}

static ev_status load_task(const bundle *b, const bundle_kernel *k, const shipped_trust *trust,
                           bool *is_apart, task **out, ev_error *err) {
    ev_str path = EV_STR_EMPTY;
    const char *folder = NULL;
    EV_TRY(bundle_folder(b, &folder, err));
    ev_str_printf(&path, "%s/%s", folder, k->task);
    ev_status status = trust->oracle || bundle_is_trusted(b)
                           ? task_load(ev_str_text(&path), out, err)
                           : task_load_apart(ev_str_text(&path), is_apart, out, err);
    ev_str_free(&path);
    return status;
}

ev_status shipped_task(const bundle *b, const bundle_kernel *k, const shipped_trust *trust,
                       bool *is_apart, task **out, ev_error *err) {
    task *t = NULL;
    bool apart = false;
    ev_status status = load_task(b, k, trust, &apart, &t, err);
    EV_TRY(status);
    if (apart)
        warn_apart(k, trust);
    if (is_apart != NULL)
        *is_apart = apart;
    if (strcmp(t->sha256.hex, k->task_sha256) != 0) {
        status = ev_fail(err, EV_BAD, "the bundle %s: task %s is not the one that was tuned",
                         bundle_path(b), t->name);
        task_free(t);
        return status;
    }
    *out = t;
    return EV_OK;
}

/* ---- candidates ---- */

void shipped_free(shipped *s) {
    free(s->macros);
    ev_arena_free(s->arena);
    *s = (shipped){0};
}

static ev_status fail_macro(const task *t, const bundle_number *m, shipped *made, ev_error *err) {
    shipped_free(made);
    return ev_fail(err, EV_BAD, "task %s of the bundle: the macro %s cannot be %g", t->name,
                   m->name, m->value);
}

/* What the bundle says that a launch has to grant. */
static void set_aligned(const task *t, const bundle_variant *v, candidate *out) {
    for (size_t i = 0; i < v->alignment_count; i++) {
        for (size_t a = 0; a < t->argument_count && a < 64; a++) {
            if (strcmp(t->arguments[a].name, v->alignments[i].argument) == 0)
                out->aligned |= UINT64_C(1) << a;
        }
        if (v->alignments[i].bytes > out->aligned_to)
            out->aligned_to = v->alignments[i].bytes;
    }
}

ev_status shipped_take_genome(shipped *s, const ir_genome *genome, ev_error *err) {
    if (ir_genome_prefix_count(genome) == 0)
        return EV_OK;
    s->arena = ev_arena_new();
    if (s->arena == NULL)
        return ev_fail_memory(err, 1);
    return variant_structure(genome, s->arena, &s->candidate, err);
}

/* The same of a genome as text. */
static ev_status take_genome_text(shipped *s, const char *text, ev_error *err) {
    ir_genome *genome = NULL;
    EV_TRY(variant_genome(text, "the bundle's genome", &genome, err));
    ev_status status = shipped_take_genome(s, genome, err);
    ir_genome_free(genome);
    return status;
}

/* The largest integer up to which doubles are exact. */
#define MACRO_MOST 9007199254740992.0

ev_status shipped_make(const task *t, const bundle_variant *v, shipped *out, ev_error *err) {
    const task_start *start = task_find_start(t, v->start);
    if (start == NULL)
        return ev_fail(err, EV_BAD, "task %s of the bundle has no start '%s'", t->name, v->start);
    out->macros = calloc(v->macro_count + 1, sizeof *out->macros);
    if (out->macros == NULL)
        return ev_fail_memory(err, v->macro_count * sizeof *out->macros);
    for (size_t i = 0; i < v->macro_count; i++) {
        const bundle_number *m = &v->macros[i];
        if (!(fabs(m->value) <= MACRO_MOST))
            return fail_macro(t, m, out, err);
        out->macros[i] = (expr_name){m->name, {.whole = (int64_t)m->value, .real = m->value}};
    }
    out->candidate = (candidate){.ptx = v->ptx,
                                 .ptx_bytes = v->ptx_bytes,
                                 .plan = v->plan,
                                 .start = start,
                                 .macros = out->macros,
                                 .macro_count = v->macro_count};
    set_aligned(t, v, &out->candidate);
    ev_status status = v->genome != NULL ? take_genome_text(out, v->genome, err) : EV_OK;
    if (status != EV_OK)
        shipped_free(out);
    return status;
}

/* ---- what a bundle says of a task ---- */

/* Every element of an argument before a launch; NULL: data, or another constant in some case. */
static const char *before_of(const task *t, const task_argument *a) {
    if (!a->begins_constant)
        return NULL;
    for (size_t i = 0; i < t->case_count; i++) {
        for (size_t d = 0; d < t->cases[i].data_count; d++) {
            if (&t->arguments[t->cases[i].data[d].argument] == a)
                return NULL;
        }
    }
    if (strcmp(a->generator->name, "constant") == 0)
        return a->parameters[0];
    return strcmp(a->generator->name, "ones") == 0 ? "1" : "0";
}

bundle_argument shipped_argument(const task *t, const task_argument *a) {
    const char *expression = a->kind == TASK_SCALAR ? a->value : a->count;
    const char *kind = task_argument_kind_name(a->kind);
    kind = a->is_rank ? "rank" : kind;
    return (bundle_argument){.name = a->name,
                             .kind = a->peers_of != NULL ? "peers" : kind,
                             .type = ev_type_name(a->type),
                             .expression = expression != NULL ? expression : a->name,
                             .align = a->align,
                             .is_field = a->is_field,
                             .offset = a->offset,
                             .struct_bytes = a->parameter_bytes,
                             .of = a->peers_of,
                             .before = before_of(t, a),
                             .by_rank = a->by_rank};
}

static ev_status list_waiting(ev_arena *arena, device_kernel *kernel, bundle_variant *out,
                              ev_error *err) {
    const launch_plan *plan = out->plan;
    const char **all = EV_NEW_ARRAY(arena, const char *, plan->launch_count);
    if (all == NULL)
        return ev_fail_memory(err, plan->launch_count * sizeof *all);
    out->resident = all;
    for (size_t i = 0; i < plan->launch_count; i++) {
        const char *entry = plan->launches[i].entry;
        if (device_kernel_waits(device_kernel_of(kernel, i)) && !bundle_is_resident(out, entry))
            all[out->resident_count++] = entry;
    }
    return EV_OK;
}

ev_status shipped_set_resident(ev_arena *arena, const task *t, device *d, bundle_variant *out,
                               ev_error *err) {
    device_kernel *kernel = NULL;
    if (t->ranks == NULL)
        return EV_OK;
    EV_TRY(device_load_plan(d, out->ptx, out->ptx_bytes, out->plan, &kernel, err));
    ev_status status = list_waiting(arena, kernel, out, err);
    device_unload(kernel);
    return status;
}

/* ---- unmodified starts ---- */

ev_status origin_build(const task *t, int sm, candidate *of, origin *out, ev_error *err) {
    ir_genome *genome = ir_genome_new(of->start->name);
    ev_status status = genome != NULL ? EV_OK : ev_fail_memory(err, 1);
    *out = (origin){.ptx = EV_STR_EMPTY};
    for (size_t i = 0; i < of->macro_count && status == EV_OK; i++)
        status = ir_genome_set_macro(genome, of->macros[i].name, of->macros[i].value.whole, err);
    if (status == EV_OK)
        status = variant_build_told(t, genome, sm, &out->ptx, &of->may_alias, err);
    ir_genome_free(genome);
    if (status != EV_OK)
        return ev_wrap(err, status, "task %s, start %s", t->name, of->start->name);
    out->candidate = (candidate){.ptx = ev_str_text(&out->ptx),
                                 .ptx_bytes = out->ptx.length,
                                 .plan = of->start->plan,
                                 .start = of->start,
                                 .macros = of->macros,
                                 .macro_count = of->macro_count,
                                 .is_unmodified = true};
    of->origin = &out->candidate;
    return EV_OK;
}

void origin_free(origin *o) {
    ev_str_free(&o->ptx);
    *o = (origin){.ptx = EV_STR_EMPTY};
}

/* ---- launch plans ---- */

static int64_t macro_value(const task_macro *macro, const ir_genome *genome) {
    for (size_t i = 0; genome != NULL && i < ir_genome_macro_count(genome); i++) {
        if (strcmp(ir_genome_macro_name(genome, i), macro->name) == 0)
            return ir_genome_macro_value(genome, i);
    }
    return macro->otherwise;
}

ev_status shipped_set_launch(ev_arena *arena, const task_start *start, const ir_genome *genome,
                             bundle_variant *out, ev_error *err) {
    bundle_number *macros = EV_NEW_ARRAY(arena, bundle_number, start->macro_count + 1);
    if (macros == NULL)
        return ev_fail_memory(err, ev_arena_bytes(arena));
    for (size_t i = 0; i < start->macro_count; i++)
        macros[i] = (bundle_number){start->macros[i].name, false,
                                    (double)macro_value(&start->macros[i], genome)};
    out->plan = start->plan;
    if (genome != NULL)
        EV_TRY(ir_genome_plan(genome, start->plan, arena, &out->plan, err));
    out->macros = macros;
    out->macro_count = start->macro_count;
    return EV_OK;
}

/* ---- GPUs ---- */

ev_status shipped_gpu_model(const device *d, gpu **out, ev_error *err) {
    const device_properties *p = device_properties_of(d);
    const char *vm = p->twin_is_same ? p->twin : p->id;
    *out = NULL;
    return strncmp(vm, "vm:", 3) == 0 ? gpu_load(vm + 3, out, err) : EV_OK;
}

ev_status shipped_gpu_id(const device *d, char out[SHIPPED_GPU_BYTES], ev_error *err) {
    gpu *g = NULL;
    EV_TRY(shipped_gpu_model(d, &g, err));
    (void)snprintf(out, SHIPPED_GPU_BYTES, "%s", g != NULL ? g->id : device_properties_of(d)->name);
    gpu_free(g);
    return EV_OK;
}

ev_status shipped_gpu_sms(const device *d, int *out, ev_error *err) {
    gpu *g = NULL;
    double count = 0;
    EV_TRY(shipped_gpu_model(d, &g, err));
    if (!device_number(d, GPU_SM_COUNT, &count) && g != NULL)
        count = gpu_get(g, GPU_SM_COUNT);
    gpu_free(g);
    *out = (int)count;
    return EV_OK;
}

static ev_status copy_names(ev_arena *arena, const gpu *g, bundle_variant *out, ev_error *err) {
    const char **names = EV_NEW_ARRAY(arena, const char *, g->driver_name_count + 1);
    for (size_t i = 0; names != NULL && i < g->driver_name_count; i++)
        names[i] = ev_arena_strdup(arena, g->driver_names[i]);
    if (ev_arena_failed(arena))
        return ev_fail_memory(err, ev_arena_bytes(arena));
    out->driver_names = names;
    out->driver_name_count = g->driver_name_count;
    return EV_OK;
}

ev_status shipped_set_gpu(ev_arena *arena, const device *d, bundle_variant *out, ev_error *err) {
    gpu *g = NULL;
    char id[SHIPPED_GPU_BYTES];
    EV_TRY(shipped_gpu_id(d, id, err));
    EV_TRY(shipped_gpu_sms(d, &out->sms, err));
    out->gpu_id = ev_arena_strdup(arena, id);
    if (out->gpu_id == NULL)
        return ev_fail_memory(err, sizeof id);
    EV_TRY(shipped_gpu_model(d, &g, err));
    ev_status status = g != NULL ? copy_names(arena, g, out, err) : EV_OK;
    gpu_free(g);
    return status;
}

/* ---- stands ---- */

void stand_close(stand *s) {
    fitness_close(s->fitness);
    device_close(s->device);
    *s = (stand){0};
}

ev_status stand_fill(stand *s, const task *t, const candidate *baseline, ev_error *err) {
    score *ignored = calloc(1, sizeof *ignored);
    if (ignored == NULL)
        return ev_fail_memory(err, sizeof *ignored);
    ev_status status = fitness_open(t, s->device, NULL, &s->fitness, err);
    /* No split is checked here: each case is compared with the oracle in its turn. */
    if (status == EV_OK)
        status = fitness_set_baseline(s->fitness, baseline, 0, ignored, err);
    free(ignored);
    return status;
}

ev_status stand_open(const char *device_id, const task *t, const candidate *baseline, stand *out,
                     ev_error *err) {
    stand s = {0};
    EV_TRY(fitness_open_device(t, device_id, &s.device, err));
    ev_status status = stand_fill(&s, t, baseline, err);
    if (status == EV_OK)
        *out = s;
    else
        stand_close(&s);
    return status;
}
