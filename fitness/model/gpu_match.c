/* Which GPU description is that of a GPU which a driver knows.
 *
 * Driver names are compared as a whole, since parts of names mislead: "RTX A1000" has a100 in it,
 * and "GH200" h200. A name alone isn't enough either: cards of one name are sold with different
 * numbers of SMs. Where no description has the name, the SMs and the target, the nearest one has
 * to do, and the match says so in words. */
#include "fitness/model/gpu_match.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define VENDOR "NVIDIA "
#define STANDIN_MARK " (modelled)" /* after the name of each device of the stand-in */

/* ---- names ---- */

/* Newer drivers name the vendor first, older ones don't. */
static const char *without_vendor(const char *name) {
    size_t length = strlen(VENDOR);
    return strncasecmp(name, VENDOR, length) == 0 ? name + length : name;
}

static size_t length_of(const char *name) {
    const char *mark = strstr(name, STANDIN_MARK);
    return mark != NULL ? (size_t)(mark - name) : strlen(name);
}

static bool is_same_name(const char *a, const char *b) {
    a = without_vendor(a);
    b = without_vendor(b);
    return length_of(a) == length_of(b) && strncasecmp(a, b, length_of(a)) == 0;
}

bool gpu_is_named(const gpu *g, const char *name) {
    for (size_t i = 0; i < g->driver_name_count; i++) {
        if (is_same_name(g->driver_names[i], name))
            return true;
    }
    return is_same_name(g->name, name);
}

/* ---- the nearest ---- */

/* A description whose target the GPU can't run is out; else the nearest target comes first, then
 * the nearest number of SMs, then of bytes. */
static double distance(const gpu *g, const gpu_seen *seen) {
    if (g->sm > seen->sm)
        return INFINITY;
    double sms = fabs(gpu_get(g, GPU_SM_COUNT) - seen->sm_count);
    double gigabytes = fabs(gpu_get(g, GPU_DRAM_GB) - (double)seen->memory_bytes * 1e-9);
    return (seen->sm - g->sm) * 1e9 + sms * 1e4 + fmin(gigabytes, 1e3);
}

static bool is_of(const gpu *g, const gpu_seen *seen) {
    return gpu_is_named(g, seen->name) && g->sm == seen->sm &&
           (int)gpu_get(g, GPU_SM_COUNT) == seen->sm_count;
}

/* What the choice is made of; `off` INFINITY: none yet. */
typedef struct choice {
    double off;
    int sm_count; /* of a description that has the name; 0: none has */
} choice;

static void look_at(const gpu *g, const gpu_seen *seen, choice *c, gpu_match *best) {
    double off = is_of(g, seen) ? -1 : distance(g, seen);
    if (gpu_is_named(g, seen->name))
        c->sm_count = (int)gpu_get(g, GPU_SM_COUNT);
    if (off >= c->off)
        return;
    c->off = off;
    best->sm = g->sm;
    best->is_same = off < 0;
    (void)snprintf(best->id, sizeof best->id, "%s", g->id);
}

static void explain(const gpu_seen *seen, const choice *c, gpu_match *best) {
    char other[64] = "";
    best->note[0] = '\0';
    if (best->is_same)
        return;
    if (c->sm_count > 0 && c->sm_count != seen->sm_count)
        (void)snprintf(other, sizeof other, " (the one of that name has %d SMs)", c->sm_count);
    (void)snprintf(best->note, sizeof best->note,
                   "no GPU description is of %.60s with sm_%d and %d SMs%s; %s is the nearest, and "
                   "modelled times may be far off: 'evoke calibrate --out FILE.json' describes "
                   "this GPU",
                   seen->name, seen->sm, seen->sm_count, other, best->id);
}

bool gpu_match_among(gpu *const *all, size_t count, const gpu_seen *seen, gpu_match *out) {
    choice c = {.off = INFINITY};
    *out = (gpu_match){.sm = 0};
    for (size_t i = 0; i < count; i++)
        look_at(all[i], seen, &c, out);
    if (isinf(c.off))
        return false;
    explain(seen, &c, out);
    return true;
}

/* Those that can be read. */
static size_t load_all(char *const *ids, size_t count, gpu **all) {
    size_t loaded = 0;
    ev_error ignored;
    for (size_t i = 0; i < count; i++)
        loaded += gpu_load(ids[i], &all[loaded], &ignored) == EV_OK;
    return loaded;
}

ev_status gpu_match_driver(const gpu_seen *seen, gpu_match *out, ev_error *err) {
    char **ids = NULL;
    size_t count = 0;
    EV_TRY(gpu_list(&ids, &count, err));
    gpu **all = calloc(count + 1, sizeof(gpu *));
    size_t loaded = all != NULL ? load_all(ids, count, all) : 0;
    bool found = gpu_match_among(all, loaded, seen, out);
    for (size_t i = 0; i < loaded; i++)
        gpu_free(all[i]);
    gpu_list_free(ids, count);
    ev_status status = EV_OK;
    if (all == NULL)
        status = ev_fail_memory(err, count * sizeof(gpu *));
    else if (!found)
        status = ev_fail(err, EV_BAD, "%s is sm_%d; every GPU description is for a later target",
                         seen->name, seen->sm);
    free(all);
    return status;
}
