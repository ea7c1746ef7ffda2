/* Mend: leaves out the structural edits of a child that lost their place. An edit names what the
 * edits before it made: a loop, a shared array. Where a child has another edit among those, a later
 * one may name nothing, and mostly it only finished what is no longer there. */
#include "ir/structure/structure_internal.h"

#include <assert.h>

static bool is_inherited(const ir_genome *child, size_t at, const ir_genome *const *parents,
                         size_t count) {
    ev_sha256 key = ir_genome_edit_key(child, at);
    for (size_t i = 0; i < count; i++) {
        if (ir_genome_holds(parents[i], &key))
            return true;
    }
    return false;
}

/* Whether the early IR of the whole prefix is kept: its edits were applied before. */
static bool is_kept(const ir_source *source, const ir_genome *genome) {
    const ir_early_store *store = source->early;
    ir_early early;
    return store && store->find(store->context, genome, ir_genome_prefix_count(genome), &early);
}

/* Applies the prefix. *at: the place of the edit that was refused; the prefix's length: none was.
 */
static ev_status try_prefix(const ir_source *source, const ir_genome *genome, size_t *at,
                            ev_error *err) {
    *at = ir_genome_prefix_count(genome);
    if (is_kept(source, genome))
        return EV_OK;
    ir_base *base = NULL;
    ir_source now = *source;
    now.genome = genome;
    now.reached = at;
    ev_status status = ir_early_load(&now, &base, err);
    ir_base_free(base);
    return status;
}

ev_status ir_structure_mend(const ir_source *source, const ir_genome *const *parents, size_t count,
                            ir_genome **out, ev_error *err) {
    assert(source->genome);
    ir_genome *genome = ir_genome_clone(source->genome);
    if (!genome)
        return ev_fail_memory(err, 0);
    for (;;) {
        size_t at = 0;
        ev_error why = {0};
        ev_status status = try_prefix(source, genome, &at, &why);
        bool is_lost = status == EV_BAD && at < ir_genome_prefix_count(genome);
        if (status == EV_OK || !is_lost || !is_inherited(genome, at, parents, count)) {
            if (status == EV_OK)
                *out = genome;
            else
                ir_genome_free(genome);
            return status == EV_OK ? EV_OK : ev_fail(err, status, "%s", why.text);
        }
        ir_genome *shorter = ir_genome_without(genome, at, at + 1);
        ir_genome_free(genome);
        if (!shorter)
            return ev_fail_memory(err, 0);
        genome = shorter;
    }
}
