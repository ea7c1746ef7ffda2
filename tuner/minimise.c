/* Minimise: delta debugging of a list of edits. */
#include "tuner/minimise.h"

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

static size_t edit_count(const json_t *genome) {
    return json_array_size(json_object_get(genome, "edits"));
}

/* The genome without the edits [from, to). NULL: out of memory. */
static json_t *without(const json_t *genome, size_t from, size_t to) {
    json_t *copy = json_copy((json_t *)genome);
    json_t *edits = json_array();
    const json_t *all = json_object_get(genome, "edits");
    bool ok = copy && edits;
    for (size_t i = 0; ok && i < json_array_size(all); i++) {
        if (i < from || i >= to)
            ok = json_array_append(edits, json_array_get(all, i)) == 0;
    }
    ok = ok && json_object_set(copy, "edits", edits) == 0;
    json_decref(edits);
    if (ok)
        return copy;
    json_decref(copy);
    return NULL;
}

/* The first of the genomes that keeps the gain; `count` if none does. */
static ev_status first_good(work *w, json_t *const *genomes, double *ns, size_t count, size_t *at,
                            ev_error *err) {
    w->spent += count;
    EV_TRY(w->request->score(w->request->context, genomes, count, ns, err));
    size_t i = 0;
    while (i < count && !(ns[i] > 0 && ns[i] <= w->limit))
        i++;
    *at = i;
    return EV_OK;
}

/* Leaves out one of `parts` parts; *found: one could go. */
static ev_status try_parts(work *w, size_t parts, bool *found, ev_error *err) {
    size_t size = edit_count(w->genome), at = parts;
    json_t **genomes = calloc(parts, sizeof(json_t *));
    double *ns = calloc(parts, sizeof *ns);
    ev_status status = genomes && ns ? EV_OK : ev_fail_memory(err, parts * sizeof(json_t *));
    for (size_t i = 0; status == EV_OK && i < parts; i++) {
        genomes[i] = without(w->genome, i * size / parts, (i + 1) * size / parts);
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
    while (edit_count(w->genome) > 0 && w->spent + parts <= w->request->budget) {
        size_t size = edit_count(w->genome);
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
