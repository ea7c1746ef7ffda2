/* Minimise: delta debugging of a list of edits. */
#include "tuner/run/minimise.h"

#include "tuner/search/genomes.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define AT_ONCE 4 /* trials, as long as one may be enough */

typedef struct work {
    const minimise_request *request;
    double limit; /* a time up to this keeps the gain */
    size_t spent;
    const json_t *core; /* its edits stay for now */
    json_t *genome;     /* the smallest so far */
    double ns;
} work;

static ev_status is_good(work *w, json_t *genome, double ns, bool *good, ev_error *err) {
    *good = ns > 0 && ns <= w->limit;
    if (*good && w->request->confirm)
        return w->request->confirm(w->request->context, genome, good, err);
    return EV_OK;
}

/* The first of the genomes that keeps the gain, and is confirmed where that is asked for; `count`
 * if none is. */
static ev_status first_good(work *w, json_t *const *genomes, double *ns, size_t count, size_t *at,
                            ev_error *err) {
    for (size_t scored = *at = 0; *at < count; ++*at) {
        if (*at == scored) {
            size_t more = count - scored < AT_ONCE ? count - scored : AT_ONCE;
            w->spent += more;
            EV_TRY(
                w->request->score(w->request->context, genomes + scored, more, ns + scored, err));
            scored += more;
        }
        bool good = false;
        EV_TRY(is_good(w, genomes[*at], ns[*at], &good, err));
        if (good)
            return EV_OK;
    }
    return EV_OK;
}

static bool may_go(const work *w, const json_t *edit) {
    return !w->core || !genome_has_edit(w->core, edit);
}

static size_t count_free(const work *w) {
    size_t at = 0, count = 0;
    const json_t *edit = NULL;
    json_array_foreach(json_object_get(w->genome, "edits"), at, edit) {
        count += may_go(w, edit);
    }
    return count;
}

/* Without those of the edits that may go which are the [from, to) of them; NULL: out of memory. */
static json_t *without(const work *w, size_t from, size_t to) {
    json_t *edits = json_array(), *edit = NULL;
    bool ok = edits != NULL;
    size_t at = 0, number = 0;
    json_array_foreach(json_object_get(w->genome, "edits"), at, edit) {
        bool goes = may_go(w, edit) && number >= from && number < to;
        number += may_go(w, edit);
        ok = ok && (goes || json_array_append(edits, edit) == 0);
    }
    return genome_with_edits(w->genome, edits, ok);
}

/* Leaves out one of `parts` parts of the `size` edits that may go; *found: one could. */
static ev_status try_parts(work *w, size_t size, size_t parts, bool *found, ev_error *err) {
    size_t at = parts;
    json_t **genomes = calloc(parts, sizeof(json_t *));
    double *ns = calloc(parts, sizeof *ns);
    ev_status status = genomes && ns ? EV_OK : ev_fail_memory(err, parts * sizeof(json_t *));
    for (size_t i = 0; status == EV_OK && i < parts; i++) {
        genomes[i] = without(w, i * size / parts, (i + 1) * size / parts);
        if (!genomes[i])
            status = ev_fail_memory(err, 0);
    }
    if (status == EV_OK)
        status = first_good(w, genomes, ns, parts, &at, err);
    *found = status == EV_OK && at < parts;
    if (*found) {
        json_decref(w->genome);
        w->genome = json_incref(genomes[at]);
        w->ns = ns[at];
    }
    for (size_t i = 0; genomes && i < parts; i++)
        json_decref(genomes[i]);
    free(genomes);
    free(ns);
    return status;
}

/* Until none of the edits that may go can. */
static ev_status shrink(work *w, size_t parts, ev_error *err) {
    size_t size;
    while ((size = count_free(w)) > 0 && w->spent + parts <= w->request->budget) {
        parts = parts < size ? parts : size;
        bool found = false;
        EV_TRY(try_parts(w, size, parts, &found, err));
        if (found)
            parts = parts > 2 ? parts - 1 : 2;
        else if (parts == size)
            return EV_OK;
        else
            parts = 2 * parts;
    }
    return EV_OK;
}

/* First of all without any edit; with a core, which is known to be too few, without half of the
 * others. Those of the core may go one by one at last. */
static ev_status shrink_all(work *w, ev_error *err) {
    w->core = w->request->core;
    EV_TRY(shrink(w, w->core ? 2 : 1, err));
    if (!w->core)
        return EV_OK;
    w->core = NULL;
    return shrink(w, genome_edit_count(w->genome), err);
}

ev_status minimise_genome(const minimise_request *request, json_t **out, double *out_ns,
                          ev_error *err) {
    double gain = request->reference_ns - request->ns;
    work w = {.request = request,
              .limit = gain > 0 ? request->reference_ns - request->keep * gain : request->ns,
              .genome = json_incref((json_t *)request->genome),
              .ns = request->ns};
    ev_status status = shrink_all(&w, err);
    if (status != EV_OK) {
        json_decref(w.genome);
        return status;
    }
    *out = w.genome;
    *out_ns = w.ns;
    return EV_OK;
}
