/* Finds the time of a layer: how many launches share it, what the resolver chooses for one of them,
 * and how long that takes. */
#include "tuner/exports/layer_time.h"

#include "base/str.h"
#include "tuner/run/shipped.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_GPUS 64
#define CASE_NAME "evoke-export" /* the data that the model runs on depend on it */

struct layer_times {
    const bundle *bundle;
    ev_arena *arena;
    const bundle_variant *gpu; /* a variant that was tuned for the GPU */
    layer_time *known;         /* by kernel and shape of a launch */
    const char **known_keys;
    size_t count, room;
};

/* ---- the GPU ---- */

static bool adds_gpu(const char **ids, size_t count, const char *id) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(ids[i], id) == 0)
            return false;
    }
    return count < MOST_GPUS;
}

static size_t list_gpus(const bundle *b, const char *ids[MOST_GPUS]) {
    size_t count = 0;
    for (size_t k = 0; k < bundle_kernel_count(b); k++) {
        const bundle_kernel *kernel = bundle_kernel_at(b, k);
        for (size_t v = 0; v < kernel->variant_count; v++) {
            if (adds_gpu(ids, count, kernel->variants[v].gpu_id))
                ids[count++] = kernel->variants[v].gpu_id;
        }
    }
    return count;
}

ev_status layer_times_gpu(const bundle *b, const char *asked, const char **out, ev_error *err) {
    const char *ids[MOST_GPUS];
    size_t count = list_gpus(b, ids);
    ev_str known = EV_STR_EMPTY;
    ev_status status = EV_OK;
    *out = NULL;
    for (size_t i = 0; i < count; i++) {
        ev_str_printf(&known, "%s%s", i > 0 ? ", " : "", ids[i]);
        if (asked != NULL ? strcmp(asked, ids[i]) == 0 : count == 1)
            *out = ids[i];
    }
    if (count == 0)
        status =
            ev_fail(err, EV_BAD,
                    "the bundle %s has no tuned variant, so its kernels stand in for no layer; "
                    "tune with more evaluations",
                    bundle_path(b));
    else if (*out == NULL && asked != NULL)
        status = ev_fail(err, EV_BAD, "--gpu %s: the bundle %s has variants for %s", asked,
                         bundle_path(b), ev_str_text(&known));
    else if (*out == NULL)
        status = ev_fail(err, EV_BAD,
                         "the bundle %s has variants for several GPUs, %s; choose one by --gpu",
                         bundle_path(b), ev_str_text(&known));
    ev_str_free(&known);
    return status;
}

static const bundle_variant *variant_for(const bundle *b, const char *gpu_id) {
    for (size_t k = 0; k < bundle_kernel_count(b); k++) {
        const bundle_kernel *kernel = bundle_kernel_at(b, k);
        for (size_t v = 0; v < kernel->variant_count; v++) {
            if (strcmp(kernel->variants[v].gpu_id, gpu_id) == 0)
                return &kernel->variants[v];
        }
    }
    return NULL;
}

ev_status layer_times_open(const bundle *b, ev_arena *arena, const char *gpu_id, layer_times **out,
                           ev_error *err) {
    layer_times *lt = calloc(1, sizeof *lt);
    if (lt == NULL)
        return ev_fail_memory(err, sizeof *lt);
    *lt = (layer_times){.bundle = b, .arena = arena, .gpu = variant_for(b, gpu_id)};
    *out = lt;
    return EV_OK;
}

void layer_times_close(layer_times *lt) {
    if (lt == NULL)
        return;
    free(lt->known);
    free((void *)lt->known_keys);
    free(lt);
}

/* ---- the choice ---- */

/* One launch of a layer. */
typedef struct launch {
    const network_layer *layer;
    bundle_number shape[32];
    size_t shape_count;
    uint64_t count; /* launches in an iteration */
    bundle_choice choice;
} launch;

static ev_status resolve(const layer_times *lt, launch *l, ev_error *err) {
    const bundle_request request = {.kernel = l->layer->kernel,
                                    .gpu = lt->gpu->gpu_id,
                                    .sm = lt->gpu->sm,
                                    .sms = lt->gpu->sms,
                                    .shape = l->shape,
                                    .shape_count = l->shape_count};
    return bundle_resolve(lt->bundle, &request, &l->choice, err);
}

static bundle_number *number_of(launch *l, const char *name) {
    for (size_t i = 0; i < l->shape_count; i++) {
        if (strcmp(l->shape[i].name, name) == 0)
            return &l->shape[i];
    }
    return NULL;
}

static bool is_tuned(const bundle_choice *c) {
    return c->role != BUNDLE_ROLE_BASELINE;
}

/* The largest part of the layer that the resolver has a variant for: the whole, or a power of two
 * of what is split. A rest counts as a whole launch. */
static ev_status choose_part(const layer_times *lt, launch *l, ev_error *err) {
    bundle_number *split = l->layer->split != NULL ? number_of(l, l->layer->split) : NULL;
    l->count = l->layer->launches;
    EV_TRY(resolve(lt, l, err));
    if (split == NULL || is_tuned(&l->choice) || split->value < 2)
        return EV_OK;
    double whole = split->value;
    for (int power = (int)ceil(log2(whole)) - 1; power >= 0; power--) {
        split->value = exp2(power);
        EV_TRY(resolve(lt, l, err));
        if (is_tuned(&l->choice)) {
            l->count = l->layer->launches * (uint64_t)ceil(whole / split->value);
            return EV_OK;
        }
    }
    split->value = whole;
    return EV_OK;
}

/* ---- recorded times ---- */

static bool is_shape(const launch *l, const bundle_case *at) {
    size_t found = 0;
    for (size_t i = 0; i < at->shape_count; i++) {
        for (size_t k = 0; k < l->shape_count; k++)
            found += strcmp(at->shape[i].name, l->shape[k].name) == 0 &&
                     at->shape[i].value == l->shape[k].value;
    }
    return found == at->shape_count;
}

static void take_recorded(layer_time *out, double ns, bool is_modelled, const char *how) {
    out->is_found = true;
    out->launch_ns = ns;
    out->kind = is_modelled ? "modelled" : "measured";
    out->how = how;
}

/* The qualification that counts on the GPU comes before the tuning, as in the resolver. */
static void find_recorded(const layer_times *lt, const launch *l, layer_time *out) {
    const bundle_variant *v = l->choice.variant;
    const bundle_qualified *q = bundle_qualification(v, lt->gpu->gpu_id);
    for (size_t i = 0; i < v->case_count && l->choice.rung == BUNDLE_RUNG_EXACT; i++) {
        if (!is_shape(l, &v->cases[i]))
            continue;
        for (size_t t = 0; q != NULL && t < q->trial_count; t++) {
            if (strcmp(q->trials[t].name, v->cases[i].name) == 0 && q->trials[t].variant.ns > 0)
                take_recorded(out, q->trials[t].variant.ns, q->modelled, "recorded by qualify");
        }
        if (!out->is_found && v->cases[i].ns > 0)
            take_recorded(out, v->cases[i].ns, v->modelled, "recorded in the bundle");
    }
}

/* ---- times of now ---- */

/* The launch as a case of the task. */
static task_case case_of(const launch *l, expr_name *names) {
    for (size_t i = 0; i < l->shape_count; i++)
        names[i] = (expr_name){l->shape[i].name, l->shape[i].is_real
                                                     ? expr_of_real(l->shape[i].value)
                                                     : expr_of_whole((int64_t)l->shape[i].value)};
    return (task_case){.name = CASE_NAME,
                       .split = CORPUS_HELD_OUT,
                       .use = TASK_TIME,
                       .shape = names,
                       .shape_count = l->shape_count};
}

static ev_status run_model(const layer_times *lt, const launch *l, const task *t,
                           const candidate *baseline, const candidate *c, double *ns,
                           ev_error *err) {
    stand s = {0};
    expr_name names[32];
    char device_id[160];
    fitness_profile_data data = {0};
    task_case at = case_of(l, names);
    (void)snprintf(device_id, sizeof device_id, "vm:%s", lt->gpu->gpu_id);
    EV_TRY(stand_open(device_id, t, baseline, &s, err));
    ev_status status = fitness_profile(s.fitness, c, &at, &data, err);
    if (status == EV_OK && !data.outcome.ok)
        status = ev_fail(err, EV_BAD, "the variant trapped at this shape");
    *ns = data.timing.ns;
    fitness_profile_free(&data);
    stand_close(&s);
    return status;
}

static ev_status time_now(const layer_times *lt, const launch *l, double *ns, ev_error *err) {
    const shipped_trust nobody = {0};
    const bundle_kernel *k = l->choice.kernel;
    const bundle_variant *first = bundle_baseline_of(k, l->choice.variant);
    task *t = NULL;
    shipped base = {0}, one = {0};
    if (first == NULL)
        return ev_fail(err, EV_BAD, "the bundle has no baseline for the variant's GPU");
    EV_TRY(shipped_task(lt->bundle, k, &nobody, NULL, &t, err));
    ev_status status = shipped_make(t, first, &base, err);
    if (status == EV_OK)
        status = shipped_make(t, l->choice.variant, &one, err);
    if (status == EV_OK)
        status = run_model(lt, l, t, &base.candidate, &one.candidate, ns, err);
    shipped_free(&base);
    shipped_free(&one);
    task_free(t);
    return status;
}

/* A shape that the model cannot run leaves the layer without a time. */
static ev_status find_modelled(const layer_times *lt, const launch *l, layer_time *out,
                               ev_error *err) {
    ev_error problem = {0};
    double ns = 0;
    ev_status status = time_now(lt, l, &ns, &problem);
    if (status == EV_OK) {
        take_recorded(out, ns, true, "modelled for this export");
    } else if (status == EV_BAD) {
        out->why = ev_arena_printf(lt->arena, "it cannot be timed here: %s", problem.text);
        return out->why != NULL ? EV_OK : ev_fail_memory(err, sizeof problem.text);
    } else {
        *err = problem;
    }
    return status;
}

/* ---- layers ---- */

static const char *shape_text(const layer_times *lt, const launch *l) {
    ev_str text = EV_STR_EMPTY;
    for (size_t i = 0; i < l->shape_count; i++)
        ev_str_printf(&text, "%s%s=%.10g", i > 0 ? " " : "", l->shape[i].name, l->shape[i].value);
    const char *kept = text.failed ? NULL : ev_arena_strdup(lt->arena, ev_str_text(&text));
    ev_str_free(&text);
    return kept;
}

static ev_status remember(layer_times *lt, const char *key, const layer_time *time, ev_error *err) {
    if (lt->count == lt->room) {
        size_t room = lt->room == 0 ? 32 : 2 * lt->room;
        layer_time *known = realloc(lt->known, room * sizeof *known);
        lt->known = known != NULL ? known : lt->known;
        const char **keys = realloc((void *)lt->known_keys, room * sizeof *keys);
        lt->known_keys = keys != NULL ? keys : lt->known_keys;
        if (known == NULL || keys == NULL)
            return ev_fail_memory(err, room * sizeof *known);
        lt->room = room;
    }
    lt->known[lt->count] = *time;
    lt->known_keys[lt->count++] = key;
    return EV_OK;
}

static ev_status find_time(layer_times *lt, const launch *l, layer_time *out, ev_error *err) {
    const char *key = ev_arena_printf(lt->arena, "%s %s", l->layer->kernel, out->shape);
    if (key == NULL)
        return ev_fail_memory(err, ev_arena_bytes(lt->arena));
    for (size_t i = 0; i < lt->count; i++) {
        if (strcmp(lt->known_keys[i], key) == 0) {
            uint64_t launches = out->launches;
            *out = lt->known[i];
            out->launches = launches;
            return EV_OK;
        }
    }
    if (!is_tuned(&l->choice))
        out->why = l->choice.why != NULL
                       ? ev_arena_printf(lt->arena, "the variant is passed over: %s", l->choice.why)
                       : "no variant of the bundle was validated for this shape";
    else
        find_recorded(lt, l, out);
    if (is_tuned(&l->choice) && !out->is_found)
        EV_TRY(find_modelled(lt, l, out, err));
    return remember(lt, key, out, err);
}

ev_status layer_times_find(layer_times *lt, const network_layer *layer, layer_time *out,
                           ev_error *err) {
    launch l = {.layer = layer, .shape_count = layer->shape_count};
    *out = (layer_time){.kind = "modelled", .how = ""};
    memcpy(l.shape, layer->shape, layer->shape_count * sizeof l.shape[0]);
    if (bundle_find(lt->bundle, layer->kernel) == NULL) {
        out->why = ev_arena_printf(lt->arena, "the bundle has no kernel %s", layer->kernel);
        return out->why != NULL ? EV_OK : ev_fail_memory(err, ev_arena_bytes(lt->arena));
    }
    ev_status status = choose_part(lt, &l, err);
    if (status != EV_OK)
        return ev_wrap(err, status, "layer %s", layer->name);
    out->launches = l.count;
    out->of = ev_arena_copy(lt->arena, &l.choice, sizeof l.choice);
    out->shape = shape_text(lt, &l);
    if (out->of == NULL || out->shape == NULL)
        return ev_fail_memory(err, ev_arena_bytes(lt->arena));
    return find_time(lt, &l, out, err);
}
