/* Minimise: delta debugging of a list of edits. */
#include "tuner/minimise.h"

#include "tuner/genomes.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct work {
    const minimise_request *request;
    double limit; /* a time up to this keeps the gain */
    size_t spent;
    json_t *genome; /* the smallest so far */
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
    w->spent += count;
    EV_TRY(w->request->score(w->request->context, genomes, count, ns, err));
    bool good = false;
    for (*at = 0; *at < count; ++*at) {
        EV_TRY(is_good(w, genomes[*at], ns[*at], &good, err));
        if (good)
            return EV_OK;
    }
    return EV_OK;
}

/* Leaves out one of `parts` parts; *found: one could go. */
static ev_status try_parts(work *w, size_t parts, bool *found, ev_error *err) {
    size_t size = genome_edit_count(w->genome), at = parts;
    json_t **genomes = calloc(parts, sizeof(json_t *));
    double *ns = calloc(parts, sizeof *ns);
    ev_status status = genomes && ns ? EV_OK : ev_fail_memory(err, parts * sizeof(json_t *));
    for (size_t i = 0; status == EV_OK && i < parts; i++) {
        genomes[i] = genome_without(w->genome, i * size / parts, (i + 1) * size / parts);
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

static ev_status shrink(work *w, ev_error *err) {
    size_t parts = 1; /* first of all: without any edit */
    while (genome_edit_count(w->genome) > 0 && w->spent + parts <= w->request->budget) {
        size_t size = genome_edit_count(w->genome);
        parts = parts < size ? parts : size;
        bool found = false;
        EV_TRY(try_parts(w, parts, &found, err));
        if (found)
            parts = parts > 2 ? parts - 1 : 2;
        else if (parts == size)
            return EV_OK;
        else
            parts = 2 * parts;
    }
    return EV_OK;
}

ev_status minimise_genome(const minimise_request *request, json_t **out, double *out_ns,
                          ev_error *err) {
    double gain = request->reference_ns - request->ns;
    work w = {.request = request,
              .limit = gain > 0 ? request->reference_ns - request->keep * gain : request->ns,
              .genome = json_incref((json_t *)request->genome),
              .ns = request->ns};
    ev_status status = shrink(&w, err);
    if (status != EV_OK) {
        json_decref(w.genome);
        return status;
    }
    *out = w.genome;
    *out_ns = w.ns;
    return EV_OK;
}
