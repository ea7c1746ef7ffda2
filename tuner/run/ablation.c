/* Ablation: removes each edit, each macro and each pair of edits from a winner, and scores the
 * rest. */
#include "tuner/run/ablation.h"

#include "base/str.h"
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* share of the gain; smaller interactions of a pair are not reported */
#define LEAST_DEPENDENCE 0.15

/* A genome without one or two edits, or without a macro. */
typedef struct part {
    const ir_genome *genome;
    size_t edits[2]; /* SIZE_MAX: none */
    const char *macro;
} part;

typedef struct parts {
    part *list;
    const ir_genome **genomes;
    double *ns;
    size_t count, capacity;
} parts;

static bool begin(parts *p, const ir_genome *genome) {
    size_t n = ir_genome_edit_count(genome), macros = ir_genome_macro_count(genome);
    p->capacity = n + macros + (n <= ABLATION_MOST_PAIRED ? n * n / 2 : 0) + 1;
    p->list = calloc(p->capacity, sizeof *p->list);
    p->genomes = calloc(p->capacity, sizeof(const ir_genome *));
    p->ns = calloc(p->capacity, sizeof *p->ns);
    return p->list && p->genomes && p->ns;
}

static void end(parts *p) {
    for (size_t i = 0; p->list && i < p->count; i++)
        ir_genome_free(p->list[i].genome);
    free(p->list);
    free((void *)p->genomes);
    free(p->ns);
}

/* Adds a genome. Takes over the reference. False: the genome is NULL, because memory ran out. */
static bool add(parts *p, const ir_genome *genome, part what) {
    if (!genome)
        return false;
    what.genome = genome;
    p->genomes[p->count] = genome;
    p->list[p->count++] = what;
    return true;
}

static bool add_without_edit(parts *p, const ir_genome *genome, size_t edit) {
    part what = {.edits = {edit, SIZE_MAX}};
    return add(p, ir_genome_without(genome, edit, edit + 1), what);
}

/* Adds the genome without the edits a and b, a < b. */
static bool add_without_pair(parts *p, const ir_genome *genome, size_t a, size_t b) {
    ir_genome *rest = ir_genome_without(genome, b, b + 1);
    if (rest && a < ir_genome_edit_count(rest))
        ir_genome_remove(rest, a);
    if (rest && !ir_genome_same_base(rest, genome))
        ir_genome_keep_knobs(rest);
    return add(p, rest, (part){.edits = {a, b}});
}

static bool add_without_macro(parts *p, const ir_genome *genome, const char *macro) {
    ir_genome *rest = ir_genome_clone(genome);
    if (rest)
        ir_genome_unset_macro(rest, macro);
    return add(p, rest, (part){.edits = {SIZE_MAX, SIZE_MAX}, .macro = macro});
}

/* Adds the genome without any edit. */
static bool add_bare(parts *p, const ir_genome *genome) {
    part what = {.edits = {SIZE_MAX, SIZE_MAX}, .macro = ""};
    return add(p, ir_genome_part(genome, 0, 0), what);
}

static bool fill(parts *p, const ir_genome *genome) {
    size_t n = ir_genome_edit_count(genome), macros = ir_genome_macro_count(genome);
    bool ok = true;
    for (size_t i = 0; i < n; i++)
        ok = ok && add_without_edit(p, genome, i);
    for (size_t i = 0; n == 0 && i < macros; i++)
        ok = ok && add_without_macro(p, genome, ir_genome_macro_name(genome, i));
    if (n > 0 && macros > 0)
        ok = ok && add_bare(p, genome);
    for (size_t i = 0; n <= ABLATION_MOST_PAIRED && i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            ok = ok && add_without_pair(p, genome, i, k);
    return ok;
}

/* ---- shares ---- */

/* The loss without a part, as a share of the whole gain; NAN: nothing passes without the part. */
static double loss_of(const minimise_request *r, double ns) {
    double gain = log(r->reference_ns / r->ns);
    if (ns <= 0)
        return NAN;
    return gain > 0 ? log(ns / r->ns) / gain : 0;
}

static json_t *share_json(double share) {
    return isnan(share) ? json_null() : json_real(share);
}

/* Whether two edits interact. If one edit is needed for the other to pass, its loss is the gain of
 * both. */
static bool depends(double both, double a, double b) {
    if (isnan(a) || isnan(b))
        return !isnan(both);
    return isnan(both) || fabs(both - a - b) > LEAST_DEPENDENCE;
}

static json_t *tell_parts(const minimise_request *r, const parts *p) {
    json_t *edits = json_array(), *macros = json_object(), *pairs = json_array();
    json_t *bare = NULL;
    for (size_t i = 0; i < p->count; i++) {
        const part *at = &p->list[i];
        double loss = loss_of(r, p->ns[i]);
        if (at->macro && !at->macro[0]) {
            bare = share_json(1 - loss);
        } else if (at->macro) {
            (void)json_object_set_new(macros, at->macro, share_json(loss));
        } else if (at->edits[1] == SIZE_MAX) {
            (void)json_array_append_new(edits, share_json(loss));
        } else {
            double a = loss_of(r, p->ns[at->edits[0]]), b = loss_of(r, p->ns[at->edits[1]]);
            if (depends(loss, a, b))
                (void)json_array_append_new(
                    pairs, json_pack("{s:[I,I],s:o,s:o}", "edits", (json_int_t)at->edits[0],
                                     (json_int_t)at->edits[1], "share", share_json(loss), "apart",
                                     share_json(a + b)));
        }
    }
    json_t *all = json_pack("{s:o,s:o,s:o}", "edits", edits, "macros", macros, "pairs", pairs);
    if (bare && json_object_set_new(all, "macros_alone", bare) != 0) {
        json_decref(all);
        return NULL;
    }
    return all;
}

ev_status ablation_measure(const minimise_request *request, json_t **out, ev_error *err) {
    parts p = {0};
    bool ok = begin(&p, request->genome) && fill(&p, request->genome);
    ev_status status = ok ? EV_OK : ev_fail_memory(err, p.capacity * sizeof(part));
    if (status == EV_OK && p.count > 0)
        status = request->score(request->context, p.genomes, p.count, p.ns, err);
    if (status == EV_OK && !(*out = tell_parts(request, &p)))
        status = ev_fail_memory(err, 0);
    end(&p);
    return status;
}

/* ---- words ---- */

static void tell_share(ev_str *out, const json_t *share) {
    if (json_is_real(share))
        ev_str_printf(out, "%.0f %% of the gain", 100 * json_real_value(share));
    else
        ev_str_append(out, "nothing passes without it");
}

static void tell_pair(ev_str *out, const json_t *pair) {
    const json_t *edits = json_object_get(pair, "edits"), *share = json_object_get(pair, "share");
    const json_t *apart = json_object_get(pair, "apart");
    ev_str_printf(out, "edits %d and %d depend on each other: ",
                  1 + (int)json_integer_value(json_array_get(edits, 0)),
                  1 + (int)json_integer_value(json_array_get(edits, 1)));
    if (json_is_real(share) && json_is_real(apart))
        ev_str_printf(out, "without both %.0f %% of the gain is lost, one by one %.0f %%\n",
                      100 * json_real_value(share), 100 * json_real_value(apart));
    else
        ev_str_append(out, json_is_real(share) ? "one passes only beside the other\n"
                                               : "nothing passes without both\n");
}

ev_status ablation_tell(const json_t *shares, const ir_genome *genome, const char *words,
                        char **out, ev_error *err) {
    ev_str text = EV_STR_EMPTY;
    const json_t *edits = json_object_get(shares, "edits");
    for (size_t i = 0; *words; i++) {
        size_t length = strcspn(words, "\n");
        ev_str_append_n(&text, words, length);
        if (i < json_array_size(edits)) {
            ev_str_append(&text, ": ");
            tell_share(&text, json_array_get(edits, i));
        }
        ev_str_char(&text, '\n');
        words += length + (words[length] == '\n');
    }
    for (size_t i = 0; i < ir_genome_macro_count(genome); i++) {
        const char *name = ir_genome_macro_name(genome, i);
        ev_str_printf(&text, "sets the macro %s to %lld", name,
                      (long long)ir_genome_macro_value(genome, i));
        const json_t *share = json_object_get(json_object_get(shares, "macros"), name);
        if (share) {
            ev_str_append(&text, ": ");
            tell_share(&text, share);
        }
        ev_str_char(&text, '\n');
    }
    const json_t *bare = json_object_get(shares, "macros_alone");
    if (json_is_real(bare))
        ev_str_printf(&text, "without any edit the macros bring %.0f %% of the gain\n",
                      100 * json_real_value(bare));
    size_t at = 0;
    const json_t *pair = NULL;
    json_array_foreach(json_object_get(shares, "pairs"), at, pair) {
        tell_pair(&text, pair);
    }
    ev_status status = ev_str_status(&text, err);
    *out = status == EV_OK ? ev_str_take(&text) : NULL;
    ev_str_free(&text);
    return status;
}
