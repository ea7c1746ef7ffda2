/* The account of a plan: notes beside the exported file, and the summary. */
#include "tuner/exports/plan.h"

#include "base/json.h"
#include "tuner/exports/inside.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_MS 1e6

/* Links that the share of communication is told for, in GB/s a rank: bytes a nanosecond. */
static const struct {
    double gb_per_s;
    const char *words;
} links[] = {
    {1.25, "10 Gbit Ethernet"},
    {12.5, "100 Gbit Ethernet or InfiniBand"},
    {50, "400 Gbit InfiniBand"},
    {450, "NVLink of an H100 or H200, one direction"},
};
#define LINK_COUNT (sizeof links / sizeof links[0])

static double share(double communication, double compute) {
    return communication > 0 ? communication / (communication + compute) : 0;
}

static json_t *communication_of(const plan *p) {
    json_t *rows = json_array();
    double bytes = workload_traffic(&p->after);
    for (size_t i = 0; i < LINK_COUNT; i++) {
        double ns = bytes / links[i].gb_per_s;
        (void)json_array_append_new(
            rows, json_pack("{s:s, s:f, s:f, s:f, s:f}", "link", links[i].words, "gb_per_s",
                            links[i].gb_per_s, "communication_ns", ns, "share_before",
                            share(ns, p->before_ns), "share_after", share(ns, p->after_ns)));
    }
    return json_pack("{s:s, s:f, s:o}", "assumes",
                     "a ring of very many ranks at the link's whole speed, and no communication "
                     "hidden behind compute; these shares are computed, not measured",
                     "bytes_sent_by_a_rank", bytes, "links", rows);
}

const char *plan_beside(const plan *p, const char *ending) {
    const char *out = p->request->out, *dot = strrchr(out, '.'), *slash = strrchr(out, '/');
    bool has_ending = dot != NULL && (slash == NULL || dot > slash + 1) && dot != out;
    int length = has_ending ? (int)(dot - out) : (int)strlen(out);
    return ev_arena_printf(p->arena, "%.*s%s", length, out, ending);
}

const char *plan_kind(const plan *p) {
    if (p->taken == 0)
        return "published";
    if (p->measured == p->taken)
        return "measured";
    return p->measured > 0 ? "mixed" : "modelled";
}

static json_t *notes_of(const plan *p, const char *format) {
    const network *n = &p->network;
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:o, s:O}",
        "schema", "evoke-export-notes", "to", format, "network", n->name, "network_doc", n->doc,
        "gpu", p->gpu, "bundle_times_are", plan_kind(p), "batch", (json_int_t)n->batch, "density",
        n->density, "compute_ns_before", p->before_ns, "compute_ns_after", p->after_ns, "factor",
        plan_factor(p), "times_from_bundle", (json_int_t)p->taken, "times_published",
        (json_int_t)p->kept, "times_slower", (json_int_t)p->slower, "entries_without_layer",
        (json_int_t)p->absent, "communication", communication_of(p), "layers", p->layers);
}

ev_status plan_write_notes(const plan *p, const char *format, json_t *more, json_t *files,
                           ev_error *err) {
    const char *path = plan_beside(p, ".notes.json");
    json_t *notes = notes_of(p, format);
    if (more != NULL && notes != NULL)
        (void)json_object_update(notes, more);
    json_decref(more);
    char *text = notes != NULL ? ev_json_print(notes, false) : NULL;
    json_decref(notes);
    if (path == NULL || text == NULL) {
        free(text);
        return ev_fail_memory(err, ev_arena_bytes(p->arena));
    }
    ev_str file = EV_STR_EMPTY;
    ev_str_append(&file, text);
    ev_str_char(&file, '\n');
    free(text);
    ev_status status = exports_put(path, &file, err);
    ev_str_free(&file);
    (void)json_array_append_new(files, json_string(path));
    return status;
}

static void add_line(json_t *lines, const char *format, ...) EV_PRINTF(2, 3);

static void add_line(json_t *lines, const char *format, ...) {
    ev_str line = EV_STR_EMPTY;
    va_list args;
    va_start(args, format);
    ev_str_vprintf(&line, format, args);
    va_end(args);
    (void)json_array_append_new(lines, json_string(ev_str_text(&line)));
    ev_str_free(&line);
}

static json_t *lines_of(const plan *p) {
    json_t *lines = json_array();
    double bytes = workload_traffic(&p->after);
    add_line(lines, "%s: %zu times from the bundle (%s, %s), %zu published times kept",
             p->request->out, p->taken, plan_kind(p), p->gpu, p->kept);
    if (p->before_ns > 0)
        add_line(lines, "compute of an iteration: %.3f ms published, %.3f ms now, x %.4f",
                 p->before_ns / NS_PER_MS, p->after_ns / NS_PER_MS, plan_factor(p));
    else
        add_line(lines, "compute of an iteration: no published times, %.3f ms from the bundle",
                 p->after_ns / NS_PER_MS);
    for (size_t i = 0; i < LINK_COUNT && bytes > 0; i++)
        add_line(lines, "share of communication at %g GB/s: %.1f %% before, %.1f %% now",
                 links[i].gb_per_s, 100 * share(bytes / links[i].gb_per_s, p->before_ns),
                 100 * share(bytes / links[i].gb_per_s, p->after_ns));
    return lines;
}

json_t *plan_summary(const plan *p, const char *format, json_t *files) {
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:f, s:f, s:f, s:o, s:o}", "to", format,
                     "network", p->network.name, "gpu", p->gpu, "bundle_times_are", plan_kind(p),
                     "times_from_bundle", (json_int_t)p->taken, "times_published",
                     (json_int_t)p->kept, "compute_ns_before", p->before_ns, "compute_ns_after",
                     p->after_ns, "factor", plan_factor(p), "files", files, "lines", lines_of(p));
}
