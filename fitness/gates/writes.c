/* Writes: compares the number of output elements that the sampled blocks of a timed run write with
 * the number that the same blocks of the unmodified start write.
 *
 * Gate 5 runs only a few blocks at full shape. A store that a variant drops there, or misplaces,
 * may be invisible to the other comparisons of outputs. The elements of a block belong to that
 * block alone: two blocks that write one element without an order between them race, and gate 3
 * stops races. So each block of a variant has to write as many elements as the same block of the
 * start, launched alike. The counts are compared, not the places: a variant may assign the blocks
 * differently.
 *
 * Each setting of the macros has its own start (the reference), and so has each launch plan of
 * structural edits. A skeleton that was scored is the reference of the variants that grow from it;
 * that it does all of its work, the sampled run (run.c) and gate 6 (cover.c) check against the
 * baseline. Otherwise the reference has to be built and run first; `fitness_hold_writes` asks for
 * the reference that it lacks. A variant that is no faster than the fastest start at the default
 * macros needs no reference, and no other blocks than the timed ones. */
#include "fitness/gates/fitness_impl.h"

#include "base/str.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct fit_reference {
    char *key; /* start, macros and structural edits */
    bool known;
    fit_writes writes;
};

/* "hand\nBLOCK=64", and the structural edits; malloc'ed, NULL: out of memory. */
static char *key_of(const candidate *c) {
    ev_str key = EV_STR_EMPTY;
    ev_str_append(&key, c->start->name);
    for (size_t i = 0; i < c->macro_count; i++)
        ev_str_printf(&key, "\n%s=%" PRId64, c->macros[i].name, c->macros[i].value.whole);
    if (c->structure != NULL)
        ev_str_printf(&key, "\n\n%s", c->structure);
    return ev_str_take(&key);
}

static const fit_reference *find(const fitness *f, const char *key) {
    for (size_t i = 0; i < f->reference_count; i++) {
        if (strcmp(f->references[i].key, key) == 0)
            return &f->references[i];
    }
    return NULL;
}

static uint64_t written_at(const fit_writes *w, const task_case *at) {
    for (size_t i = 0; i < w->count; i++) {
        if (w->cases[i].at == at)
            return w->cases[i].written;
    }
    return 0;
}

void fit_note_writes(const fit_trial *trial, const fit_case *c, const fit_result *r) {
    fit_writes *w = trial->writes;
    bool is_own_timed = c->at->use == TASK_TIME && !c->is_drawn;
    if (w == NULL || !is_own_timed || !r->ok || r->run.share >= 1)
        return;
    for (size_t i = 0; i < w->count; i++) {
        if (w->cases[i].at == c->at) {
            w->cases[i].written += r->written;
            return;
        }
    }
    if (w->count < SCORE_MAX_CASES)
        w->cases[w->count++] = (fit_written){c->at, r->written};
}

static void hold_against(const fitness *f, const fit_reference *reference, score *s) {
    for (size_t i = 0; reference->known && i < f->writes.count; i++) {
        const fit_written *own = &f->writes.cases[i];
        uint64_t wanted = written_at(&reference->writes, own->at);
        if (own->written == wanted || wanted == 0)
            continue;
        fit_stop(s, GATE_TIMED, NULL,
                 "case %s: the blocks that were run write %" PRIu64 " elements of the outputs, "
                 "where those of the unmodified start write %" PRIu64,
                 own->at->name, own->written, wanted);
        s->ns = 0;
        return;
    }
}

/* Keeps the counts of an unmodified start or a skeleton as a reference. The fastest start at the
 * default macros sets the bar. */
static ev_status keep_reference(fitness *f, const candidate *c, const score *s,
                                const fit_writes *writes, ev_error *err) {
    size_t count = f->reference_count + 1;
    fit_reference *more = realloc(f->references, count * sizeof *more);
    if (more == NULL)
        return ev_fail_memory(err, count * sizeof *more);
    f->references = more;
    char *key = key_of(c);
    if (key == NULL)
        return ev_fail_memory(err, 0);
    bool known = s->stopped == GATE_NONE;
    f->references[f->reference_count++] =
        (fit_reference){.key = key, .known = known, .writes = *writes};
    if (known && c->is_unmodified && c->macro_count == 0 && (f->bar_ns == 0 || s->ns < f->bar_ns))
        f->bar_ns = s->ns;
    return EV_OK;
}

ev_status fitness_hold_writes(fitness *f, const candidate *c, score *s, bool *wants,
                              ev_error *err) {
    *wants = false;
    bool matters = f->bar_ns == 0 || s->ns < f->bar_ns;
    if (s->stopped != GATE_NONE || f->writes.count == 0 || !matters)
        return EV_OK;
    char *key = key_of(c);
    if (key == NULL)
        return ev_fail_memory(err, 0);
    const fit_reference *reference = find(f, key);
    free(key);
    if (reference != NULL)
        hold_against(f, reference, s);
    else if (c->is_skeleton)
        return keep_reference(f, c, s, &f->writes, err);
    *wants = reference == NULL;
    return EV_OK;
}

ev_status fitness_add_reference(fitness *f, const candidate *unmodified, ev_error *err) {
    candidate plain = {.ptx = unmodified->ptx, /* without the limits that could end the run
                                                  before it is timed */
                       .ptx_bytes = unmodified->ptx_bytes,
                       .plan = unmodified->plan,
                       .start = unmodified->start,
                       .is_unmodified = unmodified->structure == NULL,
                       .is_skeleton = true,
                       .structure = unmodified->structure,
                       .division = unmodified->division,
                       .macros = unmodified->macros,
                       .macro_count = unmodified->macro_count,
                       .divided = unmodified->divided, /* so that it runs its variants' blocks */
                       .unmodified_context = unmodified->unmodified_context};
    memcpy(plain.idle_parts, unmodified->idle_parts, sizeof plain.idle_parts);
    fit_writes writes = {.count = 0};
    /* no bar: the other blocks run even if the start is slow */
    const fit_trial trial = {.who = &plain, .writes = &writes};
    score *s = malloc(sizeof *s);
    if (s == NULL)
        return ev_fail_memory(err, sizeof *s);
    ev_status status = EV_OK;
    if (unmodified->ptx == NULL)
        s->stopped = GATE_EMIT;
    else
        status = fit_judge(f, &trial, fit_search_ladder, s, err);
    if (status == EV_OK)
        status = keep_reference(f, &plain, s, &writes, err);
    free(s);
    return status;
}

void fit_references_free(fitness *f) {
    for (size_t i = 0; i < f->reference_count; i++)
        free(f->references[i].key);
    free(f->references);
    f->references = NULL;
    f->reference_count = 0;
}
