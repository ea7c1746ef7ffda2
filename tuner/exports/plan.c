/* Makes the plan: reads network, table and bundle, and lets each layer's kernel stand in. */
#include "tuner/exports/plan.h"

#include "tuner/exports/inside.h"
#include "tuner/exports/layer_time.h"

#include <string.h>

#define NS_PER_US 1e3

static ev_status fail_memory(const plan *p, ev_error *err) {
    return ev_fail_memory(err, p->arena != NULL ? ev_arena_bytes(p->arena) : 1);
}

/* ---- the table ---- */

static ev_status read_table(plan *p, ev_error *err) {
    const exports_request *r = p->request;
    if (r->base != NULL)
        return workload_read(p->arena, r->base, r->base_is_us ? NS_PER_US : 1, &p->before, err);
    if (p->network.row_count == 0)
        return ev_fail(err, EV_BAD,
                       "the network %s needs --base TABLE.txt, the table of its layers' published "
                       "times; Evoke ships none (docs/exports.md)",
                       p->network.name);
    return workload_of(p->arena, &p->network, &p->before, err);
}

static ev_status copy_table(plan *p, ev_error *err) {
    p->after = p->before;
    p->after.rows =
        ev_arena_copy(p->arena, p->before.rows, p->before.count * sizeof *p->before.rows);
    return p->after.rows != NULL ? EV_OK : fail_memory(p, err);
}

/* ---- what fits ---- */

static ev_status fail_kernels(const plan *p, ev_error *err) {
    ev_str wanted = EV_STR_EMPTY, known = EV_STR_EMPTY;
    const network *n = &p->network;
    for (size_t i = 0; i < n->layer_count; i++) {
        if (strstr(ev_str_text(&wanted), n->layers[i].kernel) == NULL)
            ev_str_printf(&wanted, "%s%s", wanted.length > 0 ? ", " : "", n->layers[i].kernel);
    }
    for (size_t i = 0; i < bundle_kernel_count(p->bundle); i++)
        ev_str_printf(&known, "%s%s", i > 0 ? ", " : "", bundle_kernel_at(p->bundle, i)->name);
    ev_status status =
        ev_fail(err, EV_BAD,
                "the bundle %s has no kernel for a layer of %s: it has %s, and the "
                "network maps its layers to %s; tune one of these",
                bundle_path(p->bundle), n->name, ev_str_text(&known), ev_str_text(&wanted));
    ev_str_free(&wanted);
    ev_str_free(&known);
    return status;
}

static ev_status check_kernels(const plan *p, ev_error *err) {
    for (size_t i = 0; i < p->network.layer_count; i++) {
        if (bundle_find(p->bundle, p->network.layers[i].kernel) != NULL)
            return EV_OK;
    }
    return fail_kernels(p, err);
}

static ev_status fail_layers(const plan *p, ev_error *err) {
    const char *has = p->before.count > 0 ? p->before.rows[0].name : "none";
    const char *wants = p->network.layer_count > 0 ? p->network.layers[0].name : "none";
    return ev_fail(err, EV_BAD,
                   "%s has no layer of the network %s: its first is '%s', and the network's is "
                   "'%s'; copy corpora/networks/%s.json, write the table's names in it, and give "
                   "it as --network FILE.json",
                   p->request->base, p->network.name, has, wants, p->network.name);
}

/* ---- layers ---- */

static bool is_mapped(const network *n, const char *name, int phase) {
    for (size_t i = 0; i < n->layer_count; i++) {
        workload_row one = {.name = name};
        const workload w = {&one, 1};
        if ((int)n->layers[i].phase == phase && workload_find(&w, n->layers[i].name) != NULL)
            return true;
    }
    return false;
}

static json_t *note_of(const char *name, const char *phase, double published, double ns,
                       const char *source) {
    return json_pack("{s:s, s:s, s:f, s:f, s:s}", "layer", name, "phase", phase, "published_ns",
                     published, "ns", ns, "source", source);
}

static ev_status add_note(plan *p, json_t *note, ev_error *err) {
    return json_array_append_new(p->layers, note) == 0 ? EV_OK : fail_memory(p, err);
}

static ev_status keep_time(plan *p, const char *name, const char *phase, double ns, const char *why,
                           ev_error *err) {
    json_t *note = note_of(name, phase, ns, ns, "published");
    p->kept += ns > 0;
    (void)json_object_set_new(note, "why", json_string(why));
    return add_note(p, note, err);
}

static void describe_time(json_t *note, const network_layer *layer, const layer_time *t) {
    const bundle_variant *v = t->of->variant;
    (void)json_object_set_new(note, "time_kind", json_string(t->kind));
    (void)json_object_set_new(note, "how", json_string(t->how));
    (void)json_object_set_new(note, "kernel", json_string(layer->kernel));
    (void)json_object_set_new(note, "start", json_string(v->start));
    (void)json_object_set_new(note, "ptx_sha256", json_string(v->sha256.hex));
    (void)json_object_set_new(note, "shape", json_string(t->shape));
    (void)json_object_set_new(note, "launches", json_integer((json_int_t)t->launches));
    (void)json_object_set_new(note, "launch_ns", json_real(t->launch_ns));
    if (layer->without[0] != '\0')
        (void)json_object_set_new(note, "without", json_string(layer->without));
}

/* Lets the kernel stand in for one time of the row. */
static ev_status stand_in(plan *p, layer_times *lt, const network_layer *layer, workload_row *row,
                          ev_error *err) {
    const char *phase = layer_phase_name(layer->phase);
    double published = row->ns[layer->phase];
    layer_time t;
    EV_TRY(layer_times_find(lt, layer, &t, err));
    if (!t.is_found)
        return keep_time(p, row->name, phase, published, t.why, err);
    double ns = t.launch_ns * (double)t.launches;
    if (p->request->only_faster && ns >= published)
        return keep_time(p, row->name, phase, published, "the bundle's kernel is no faster", err);
    json_t *note = note_of(row->name, phase, published, ns, "bundle");
    describe_time(note, layer, &t);
    row->ns[layer->phase] = ns;
    p->taken++;
    p->slower += published > 0 && ns > published;
    p->measured += strcmp(t.kind, "measured") == 0;
    return add_note(p, note, err);
}

/* The times that no layer of the network names. */
static ev_status keep_others(plan *p, ev_error *err) {
    for (size_t i = 0; i < p->before.count; i++) {
        const workload_row *row = &p->before.rows[i];
        for (int phase = 0; phase < LAYER_PHASES; phase++) {
            if (row->ns[phase] > 0 && !is_mapped(&p->network, row->name, phase))
                EV_TRY(keep_time(p, row->name, layer_phase_name((layer_phase)phase), row->ns[phase],
                                 "no kernel of ours computes this", err));
        }
    }
    return EV_OK;
}

static ev_status stand_in_all(plan *p, layer_times *lt, ev_error *err) {
    size_t found = 0;
    for (size_t i = 0; i < p->network.layer_count; i++) {
        const network_layer *layer = &p->network.layers[i];
        workload_row *row = workload_find(&p->after, layer->name);
        found += row != NULL;
        if (row != NULL && workload_is_twice(&p->after, row))
            return ev_fail(err, EV_BAD,
                           "%s has two layers called '%s', so nobody can say which of them the "
                           "network's is; give them different names",
                           p->request->base, row->name);
        if (row != NULL)
            EV_TRY(stand_in(p, lt, layer, row, err));
        else
            p->absent++;
    }
    return found > 0 ? keep_others(p, err) : fail_layers(p, err);
}

void plan_warn(const plan *p) {
    const exports_request *r = p->request;
    if (p->measured < p->taken)
        exports_warn(
            r, "%zu of the %zu times from the bundle are modelled for %s; no GPU has run them",
            p->taken - p->measured, p->taken, p->gpu);
    if (p->taken == 0)
        exports_warn(r, "no time was taken from the bundle: the table is the published one; the "
                        "notes say why for each layer");
    if (p->slower > 0)
        exports_warn(r,
                     "%zu of the %zu times from the bundle are longer than the published ones, "
                     "which are of other GPUs and libraries; --only-faster keeps those",
                     p->slower, p->taken);
    if (p->absent > 0)
        exports_warn(r, "%zu entries of the network %s name layers that %s does not have",
                     p->absent, p->network.name, r->base != NULL ? r->base : "the network");
}

static ev_status fill(plan *p, ev_error *err) {
    layer_times *lt = NULL;
    EV_TRY(layer_times_gpu(p->bundle, p->request->gpu, &p->gpu, err));
    EV_TRY(check_kernels(p, err));
    EV_TRY(layer_times_open(p->bundle, p->arena, p->gpu, &lt, err));
    ev_status status = stand_in_all(p, lt, err);
    layer_times_close(lt);
    EV_TRY(status);
    p->before_ns = workload_ns(&p->before);
    p->after_ns = workload_ns(&p->after);
    return EV_OK;
}

ev_status plan_make(const exports_request *r, plan *out, ev_error *err) {
    *out = (plan){.request = r, .arena = ev_arena_new(), .layers = json_array()};
    if (out->arena == NULL || out->layers == NULL)
        return fail_memory(out, err);
    if (r->network == NULL)
        return ev_fail(err, EV_BAD,
                       "this format needs --network NAME, the network whose layers the "
                       "kernels compute (docs/exports.md lists those that ship)");
    EV_TRY(network_read(out->arena, r->network, r->batch, r->density, &out->network, err));
    EV_TRY(read_table(out, err));
    EV_TRY(copy_table(out, err));
    EV_TRY(bundle_open(r->bundle, &out->bundle, err));
    return fill(out, err);
}

void plan_free(plan *p) {
    json_decref(p->layers);
    bundle_close(p->bundle);
    ev_arena_free(p->arena);
    *p = (plan){0};
}

double plan_factor(const plan *p) {
    if (p->before_ns > 0)
        return p->after_ns / p->before_ns;
    return p->after_ns > 0 ? 0 : 1;
}
