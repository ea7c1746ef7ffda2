/* A profile as JSON. */
#include "tuner/cli/profile.h"

#include "tuner/cli/launch.h"

static json_t *triple(const uint32_t at[3]) {
    return json_pack("[I, I, I]", (json_int_t)at[0], (json_int_t)at[1], (json_int_t)at[2]);
}

static json_t *occupancy_json(const model_time *m) {
    const model_occupancy *o = &m->occupancy;
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:s, s:f, s:I}", "registers",
                     (json_int_t)o->registers, "shared_bytes", (json_int_t)o->shared_bytes,
                     "blocks_per_sm", (json_int_t)o->blocks_per_sm, "warps_per_sm",
                     (json_int_t)o->warps_per_sm, "max_warps_per_sm", (json_int_t)o->max_warps,
                     "limiter", model_limiter_name(o->limiter), "waves", m->waves, "spilled",
                     (json_int_t)m->spilled);
}

static json_t *by_term(const double values[MODEL_TERM_COUNT], double by) {
    json_t *object = json_object();
    for (size_t i = 0; i < MODEL_TERM_COUNT; i++)
        (void)json_object_set_new(object, model_term_name((model_term)i),
                                  json_real(by > 0 ? values[i] / by : 0));
    return object;
}

static json_t *reasons_json(const profile_line *line) {
    json_t *object = json_object();
    for (size_t i = 0; i < MODEL_TERM_COUNT; i++)
        if (line->site.stall[i] > 0)
            (void)json_object_set_new(object, model_term_name((model_term)i),
                                      json_real(line->site.stall[i]));
    return object;
}

static double ratio(uint64_t a, uint64_t b) {
    return b > 0 ? (double)a / (double)b : 0;
}

static json_t *lines_json(const profile_lines *lines) {
    json_t *array = json_array();
    for (size_t i = 0; i < lines->count; i++) {
        const profile_line *at = &lines->list[i];
        const model_site *site = &at->site;
        json_t *line = json_pack(
            "{s:I, s:I, s:f, s:o, s:I, s:f, s:f, s:f, s:s}", "line", (json_int_t)at->line,
            "source_line", (json_int_t)at->source, "stall_share", at->stall, "waited_for",
            reasons_json(at), "executions", (json_int_t)at->executions, "sectors_per_request",
            ratio(site->sectors, site->requests), "passes_per_request",
            ratio(site->passes, site->requests), "lanes_per_request",
            ratio(site->lanes, site->requests), "text", at->text != NULL ? at->text : "");
        (void)json_array_append_new(array, line);
    }
    return array;
}

/* Those that move most: of all that is moved, the share that each does. */
static ev_status add_accesses(const profile *p, size_t most, json_t *to, ev_error *err) {
    profile_lines lines = {0};
    double all = 0;
    ev_status status = profile_access_lines(p, most, &all, &lines, err);
    json_t *array = lines_json(&lines);
    for (size_t i = 0; i < lines.count; i++) {
        double share = all > 0 ? (double)profile_traffic(&lines.list[i]) / all : 0;
        (void)json_object_set_new(json_array_get(array, i), "traffic_share", json_real(share));
    }
    (void)json_object_set_new(to, "accesses", array);
    profile_lines_free(&lines);
    return status;
}

static ev_status add_lines(const profile *p, size_t most, json_t *to, ev_error *err) {
    profile_lines lines = {0};
    ev_status status = profile_ptx_lines(p, most, &lines, err);
    (void)json_object_set_new(to, "lines", lines_json(&lines));
    profile_lines_free(&lines);
    EV_TRY(status);
    status = profile_source_lines(p, most, &lines, err);
    (void)json_object_set_new(to, "source_lines", lines_json(&lines));
    profile_lines_free(&lines);
    EV_TRY(status);
    return add_accesses(p, most, to, err);
}

static json_t *memory_json(const profile *p) {
    const vm_counters *c = &p->outcome->counters;
    const model_time *m = &p->timing->model;
    return json_pack(
        "{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "load_sectors_per_request",
        ratio(c->global_load_sectors, c->global_load_requests), "store_sectors_per_request",
        ratio(c->global_store_sectors, c->global_store_requests), "shared_passes_per_request",
        ratio(c->shared_passes, c->shared_requests), "bank_conflict_share", profile_conflicts(p),
        "l1_hit_rate", m->l1_hit_rate, "l2_bytes", m->l2_bytes, "dram_bytes", m->dram_bytes,
        "divergent_share", ratio(c->divergent_branches, c->branches), "lanes_per_instruction",
        ratio(c->thread_instructions, c->warp_instructions));
}

ev_status profile_to_json(const profile *p, size_t lines, json_t **out, ev_error *err) {
    const model_time *m = &p->timing->model;
    double busy = p->timing->ns - m->term_ns[MODEL_LAUNCH];
    json_t *launch =
        json_pack("{s:o, s:o, s:I}", "grid", triple(p->launch.grid), "block",
                  triple(p->launch.block), "shared", (json_int_t)p->launch.shared_bytes);
    json_t *all = json_pack(
        "{s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, "
        "s:I}",
        "status", "ok", "kernel", p->kernel, "device", p->device->id, "time_kind",
        p->device->modelled ? "modelled" : "measured", "ns", p->timing->ns, "warm_ns",
        p->timing->warm_ns, "executed_floor_ns", m->floor_ns, "bound_by",
        model_term_name(m->bound_by), "launch", launch, "occupancy", occupancy_json(m), "term_ns",
        by_term(m->term_ns, 1), "peak_share", by_term(m->term_ns, busy), "stall_share",
        by_term(m->stall_share, 1), "memory", memory_json(p), "counters",
        counters_to_json(&p->outcome->counters), "blocks", (json_int_t)m->blocks, "sampled_blocks",
        (json_int_t)m->sampled_blocks, "repeated_blocks", (json_int_t)m->repeated_blocks);
    if (p->floor.ns > 0) {
        (void)json_object_set_new(all, "floor_ns", json_real(p->floor.ns));
        (void)json_object_set_new(all, "floor_share", json_real(p->floor.ns / p->timing->ns));
        (void)json_object_set_new(all, "floor_bound_by", json_string(p->floor.bound_by));
    }
    if (p->at != NULL)
        (void)json_object_set_new(all, "case", json_string(p->at));
    if (p->steps > 0)
        (void)json_object_set_new(all, "launches", json_integer((json_int_t)p->steps));
    if (p->ranks > 0)
        (void)json_object_set_new(all, "ranks", json_integer((json_int_t)p->ranks));
    if (p->grid != NULL)
        (void)json_object_set_new(all, "grid", json_string(fitness_grid_name(*p->grid)));
    ev_status status = add_lines(p, lines, all, err);
    if (status != EV_OK) {
        json_decref(all);
        all = NULL;
    }
    *out = all;
    return status;
}
