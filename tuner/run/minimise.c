/* Minimise: delta debugging of a list of edits (Zeller and Hildebrandt, "Simplifying and Isolating
 * Failure-Inducing Input", 2002). */
#include "tuner/run/minimise.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define AT_ONCE 4 /* trials in a batch, while one of them may suffice */

typedef struct work {
    const minimise_request *request;
    double limit; /* the greatest time that keeps the gain */
    size_t spent;
    const ir_genome *core;   /* edits that stay for now */
    const ir_genome *genome; /* the smallest genome so far */
    double ns;
} work;

static ev_status is_good(work *w, const ir_genome *genome, double ns, bool *good, ev_error *err) {
    *good = ns > 0 && ns <= w->limit;
    if (*good && w->request->confirm)
        return w->request->confirm(w->request->context, genome, good, err);
    return EV_OK;
}

/* The index of the first genome that keeps the gain, confirmed if the request asks for that;
 * `count`: none does. */
static ev_status first_good(work *w, const ir_genome *const *genomes, double *ns, size_t count,
                            size_t *at, ev_error *err) {
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

static bool may_go(const work *w, size_t edit) {
    ev_sha256 key = ir_genome_edit_key(w->genome, edit);
    return !w->core || !ir_genome_holds(w->core, &key);
}

static size_t count_free(const work *w) {
    size_t count = 0;
    for (size_t i = 0; i < ir_genome_edit_count(w->genome); i++)
        count += may_go(w, i);
    return count;
}

/* The genome without the removable edits [from, to). NULL: out of memory. */
static const ir_genome *without(const work *w, size_t from, size_t to) {
    ir_genome *rest = ir_genome_part(w->genome, 0, 0);
    bool ok = rest != NULL;
    for (size_t i = 0, number = 0; i < ir_genome_edit_count(w->genome); i++) {
        bool goes = may_go(w, i) && number >= from && number < to;
        number += may_go(w, i);
        ok = ok && (goes || ir_genome_append_from(rest, w->genome, i));
    }
    if (ok && !ir_genome_same_base(rest, w->genome))
        ir_genome_keep_knobs(rest);
    if (ok)
        return rest;
    ir_genome_free(rest);
    return NULL;
}

/* Tries to remove one of `parts` equal parts of the `size` removable edits. *found: one could be
 * removed. */
static ev_status try_parts(work *w, size_t size, size_t parts, bool *found, ev_error *err) {
    assert(parts > 0);
    size_t at = parts;
    const ir_genome **genomes = calloc(parts, sizeof(const ir_genome *));
    double *ns = calloc(parts, sizeof *ns);
    ev_status status =
        genomes && ns ? EV_OK : ev_fail_memory(err, parts * sizeof(const ir_genome *));
    for (size_t i = 0; status == EV_OK && i < parts; i++) {
        genomes[i] = without(w, i * size / parts, (i + 1) * size / parts);
        if (!genomes[i])
            status = ev_fail_memory(err, 0);
    }
    if (status == EV_OK)
        status = first_good(w, genomes, ns, parts, &at, err);
    *found = status == EV_OK && at < parts;
    if (*found) {
        ir_genome_free(w->genome);
        w->genome = ir_genome_ref(genomes[at]);
        w->ns = ns[at];
    }
    for (size_t i = 0; genomes && i < parts; i++)
        ir_genome_free(genomes[i]);
    free((void *)genomes);
    free(ns);
    return status;
}

/* Repeats until no removable edit can go. */
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

/* Tries the genome without any edit first. With a core, which alone is known to be too small, tries
 * it without half of the other edits. The edits of the core may go one by one at the end. */
static ev_status shrink_all(work *w, ev_error *err) {
    w->core = w->request->core;
    EV_TRY(shrink(w, w->core ? 2 : 1, err));
    if (!w->core)
        return EV_OK;
    w->core = NULL;
    return shrink(w, ir_genome_edit_count(w->genome), err);
}

ev_status minimise_genome(const minimise_request *request, const ir_genome **out, double *out_ns,
                          ev_error *err) {
    double gain = request->reference_ns - request->ns;
    work w = {.request = request,
              .limit = gain > 0 ? request->reference_ns - request->keep * gain : request->ns,
              .genome = ir_genome_ref(request->genome),
              .ns = request->ns};
    ev_status status = shrink_all(&w, err);
    if (status != EV_OK) {
        ir_genome_free(w.genome);
        return status;
    }
    *out = w.genome;
    *out_ns = w.ns;
    return EV_OK;
}
