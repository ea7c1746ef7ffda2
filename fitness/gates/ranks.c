/* Ranks: what the gates do for a task whose launches run on several ranks at once.
 *
 * The device is a group (device_group.h): a buffer has the parts of all ranks one behind the other,
 * so inputs, answers and comparisons are as of any task. This file adds the tables of peers'
 * addresses, each rank's parameters, and the check that outputs agree bit for bit. Ranks that sum
 * in orders of their own are each within the tolerance, but copies of a model that they update
 * drift apart. */
#include "fitness/gates/fitness_impl.h"

#include "fitness/device/device_group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ev_status fitness_open_device(const task *t, const char *id, device **out, ev_error *err) {
    return t->ranks != NULL ? device_open_group(id, task_ranks_most(t), out, err)
                            : device_open(id, out, err);
}

const char *fitness_not_applied(const task *t, size_t index) {
    static const char *const texts[] = {
        "samples of blocks, because flags tie the blocks of all ranks together: all blocks run",
        "two launches in a row, because every launch begins with fresh buffers; the oracle checks "
        "the "
        "flags that a launch leaves",
    };
    bool has = t->ranks != NULL && index < sizeof texts / sizeof texts[0];
    return has ? texts[index] : NULL;
}

ev_status fit_ranks_begin(const fitness *f, fit_case *c, ev_error *err) {
    uint32_t most = device_group_count(f->d);
    EV_TRY(task_ranks_of(f->t, c->at, &c->ranks, err));
    if (f->t->ranks == NULL)
        return EV_OK;
    if (c->ranks > most)
        return ev_fail(err, EV_BAD, "task %s, case %s: %u ranks, and the device has %u", f->t->name,
                       c->at->name, c->ranks, most);
    fit_ranks_spread(f, c);
    return EV_OK;
}

void fit_ranks_spread(const fitness *f, const fit_case *c) {
    if (device_group_count(f->d) > 0)
        device_group_spread(f->d, c->ranks);
}

/* ---- addresses ---- */

uint64_t fit_address_of(const fitness *f, device_buffer buffer, uint32_t rank) {
    return device_group_count(f->d) > 0 ? device_group_address(f->d, buffer, rank)
                                        : device_address(f->d, buffer);
}

static const fit_argument *argument_of(const fitness *f, const fit_case *c,
                                       const task_argument *what) {
    return &c->arguments[what - f->t->arguments];
}

ev_status fit_ranks_table(fitness *f, uint32_t ranks, device_buffer table, device_buffer of,
                          ev_error *err) {
    uint64_t addresses[TASK_RANKS_MOST];
    for (uint32_t i = 0; i < ranks; i++)
        addresses[i] = fit_address_of(f, of, i);
    uint64_t bytes = ranks * sizeof *addresses; /* of a rank */
    for (uint32_t i = 0; i < ranks; i++)
        EV_TRY(device_write(f->d, table, i * bytes, addresses, bytes, err));
    return EV_OK;
}

/* Every rank gets the same table. */
static ev_status fill_table(fitness *f, const fit_case *c, fit_argument *table, ev_error *err) {
    const fit_argument *of = argument_of(f, c, task_ranks_peers_of(f->t, table->what));
    uint64_t *addresses = table->before;
    for (uint64_t i = 0; i < table->count; i++)
        addresses[i] = fit_address_of(f, of->buffer, (uint32_t)(i % c->ranks));
    return device_write(f->d, table->buffer, 0, table->before, table->bytes, err);
}

ev_status fit_ranks_fill(fitness *f, fit_case *c, ev_error *err) {
    for (size_t i = 0; i < f->t->argument_count; i++) {
        if (c->arguments[i].what->peers_of != NULL)
            EV_TRY(fill_table(f, c, &c->arguments[i], err));
    }
    c->rebuilds = device_rebuilds(f->d);
    return EV_OK;
}

/* ---- parameters ---- */

void fit_params_free(fit_params *p) {
    for (uint32_t i = 0; i < p->count; i++)
        free(p->of[i]);
    p->count = 0;
}

ev_status fit_params_pack(const fitness *f, const fit_case *c, const vm_entry *entry, fit_params *p,
                          device_launch *l, ev_error *err) {
    *p = (fit_params){.count = 0};
    for (uint32_t rank = 0; rank < c->ranks; rank++) {
        ev_status status = fit_case_pack(f, c, entry, rank, &p->of[rank], err);
        if (status != EV_OK) {
            fit_params_free(p);
            return status;
        }
        p->count++;
    }
    l->params = p->of[0];
    if (device_group_count(f->d) > 0) {
        l->rank_params = (const void *const *)p->of;
        l->ranks = p->count;
    }
    return EV_OK;
}

/* ---- agreement ---- */

typedef struct part {
    ev_type type;
    uint64_t count; /* elements */
    char *first, *other;
} part;

/* The first element that differs; `count`: none does. */
static uint64_t find_difference(const part *p) {
    size_t size = ev_type_bytes(p->type);
    for (uint64_t i = 0; i < p->count; i++) {
        if (memcmp(p->first + i * size, p->other + i * size, size) != 0)
            return i;
    }
    return p->count;
}

static void explain(const fit_case *c, const fit_argument *a, const part *p, uint64_t element,
                    uint32_t rank, fit_result *r) {
    double first = ev_type_get(p->type, p->first, element);
    double other = ev_type_get(p->type, p->other, element);
    r->ok = false;
    r->worst = (fitness_element){.output = a->what->name,
                                 .index = element,
                                 .rank = rank,
                                 .ranks = c->ranks,
                                 .got = other,
                                 .want = first,
                                 .is_written = true};
    fit_name_element(a, &r->worst);
    bool is_varied = c->inputs.variation != FIT_PLAIN;
    (void)snprintf(
        r->reason, sizeof r->reason,
        "case %s%s%s: the ranks disagree: element %llu of '%s' is %.17g on rank 0 and %.17g "
        "on rank %u, and all ranks must have the same bits",
        c->at->name, is_varied ? " with " : "",
        is_varied ? fit_variation_words(c->inputs.variation) : "", (unsigned long long)element,
        a->what->name, first, other, rank);
}

static ev_status compare_parts(fitness *f, const fit_case *c, const fit_argument *a, part *p,
                               fit_result *r, ev_error *err) {
    uint64_t bytes = a->bytes / c->ranks;
    EV_TRY(device_read(f->d, a->buffer, 0, p->first, bytes, err));
    for (uint32_t rank = 1; rank < c->ranks && r->ok; rank++) {
        EV_TRY(device_read(f->d, a->buffer, rank * bytes, p->other, bytes, err));
        uint64_t element = find_difference(p);
        if (element < p->count)
            explain(c, a, p, element, rank, r);
    }
    return EV_OK;
}

static ev_status compare_output(fitness *f, const fit_case *c, const fit_argument *a, fit_result *r,
                                ev_error *err) {
    part p = {.type = a->what->type, .count = a->count / c->ranks};
    uint64_t bytes = a->bytes / c->ranks;
    p.first = malloc(bytes + 1);
    p.other = malloc(bytes + 1);
    ev_status status = p.first != NULL && p.other != NULL ? compare_parts(f, c, a, &p, r, err)
                                                          : ev_fail_memory(err, bytes);
    free(p.first);
    free(p.other);
    return status;
}

ev_status fit_ranks_agree(fitness *f, const fit_case *c, fit_result *r, ev_error *err) {
    for (size_t i = 0; c->ranks > 1 && i < c->output_count && r->ok; i++) {
        const fit_argument *a = &c->arguments[c->outputs[i].argument];
        if (!a->what->by_rank)
            EV_TRY(compare_output(f, c, a, r, err));
    }
    return EV_OK;
}

ev_status fit_ranks_same(fitness *f, const fit_case *c, bool *same, ev_error *err) {
    fit_result *r = calloc(1, sizeof *r);
    *same = true;
    if (r == NULL)
        return ev_fail_memory(err, sizeof *r);
    r->ok = true;
    ev_status status = fit_ranks_agree(f, c, r, err);
    *same = r->ok;
    free(r);
    return status;
}

void fit_ranks_place(const fit_case *c, uint64_t count, fitness_element *at) {
    if (c->ranks < 2 || at->output == NULL)
        return;
    uint64_t own = count / c->ranks;
    at->ranks = c->ranks;
    at->rank = (uint32_t)(at->index / own);
    at->index %= own;
}
