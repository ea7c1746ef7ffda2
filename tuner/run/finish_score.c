/* Finish, trials: scores genomes on the search cases, each once. */
#include "tuner/run/finish_inside.h"

#include <stdlib.h>
#include <string.h>

/* ---- memos ---- */

const memo_entry *memo_find(const memo *m, const ev_sha256 *key) {
    uint64_t at = 0;
    return m->index && known_find(m->index, key, &at) ? &m->list[at] : NULL;
}

ev_status memo_put(memo *m, const ev_sha256 *key, const memo_entry *entry, ev_error *err) {
    uint64_t at = 0;
    if (!m->index && !(m->index = known_new()))
        return ev_fail_memory(err, 0);
    if (known_find(m->index, key, &at)) {
        m->list[at] = *entry;
        return EV_OK;
    }
    memo_entry *more = realloc(m->list, (m->count + 1) * sizeof *more);
    if (!more)
        return ev_fail_memory(err, (m->count + 1) * sizeof *more);
    m->list = more;
    m->list[m->count] = *entry;
    return known_add(m->index, key, m->count++, err);
}

void memo_free(memo *m) {
    known_free(m->index);
    free(m->list);
    *m = (memo){0};
}

/* ---- scores ---- */

/* The genomes without a known time, with their indices in the list. */
typedef struct unscored {
    const ir_genome **genomes;
    size_t *at, count;
} unscored;

static void unscored_free(unscored *u) {
    free((void *)u->genomes);
    free(u->at);
}

/* Fills in the known times, and lists the other genomes. */
static ev_status find_unscored(const finish *f, const ir_genome *const *genomes, size_t count,
                               double *ns, unscored *u, ev_error *err) {
    *u = (unscored){.genomes = calloc(count + 1, sizeof(const ir_genome *)),
                    .at = calloc(count + 1, sizeof *u->at)};
    if (!u->genomes || !u->at)
        return ev_fail_memory(err, (count + 1) * sizeof *u->at);
    for (size_t i = 0; i < count; i++) {
        ev_sha256 key = ir_genome_sha256(genomes[i]);
        const memo_entry *known = memo_find(&f->scored, &key);
        if (known) {
            ns[i] = known->ns;
            continue;
        }
        u->genomes[u->count] = genomes[i];
        u->at[u->count++] = i;
    }
    return EV_OK;
}

static ev_status score_unscored(finish *f, const unscored *u, double *ns, ev_error *err) {
    trial *trials = calloc(u->count + 1, sizeof *trials);
    if (!trials)
        return ev_fail_memory(err, (u->count + 1) * sizeof *trials);
    ev_status status = course_score(f->c, u->genomes, u->count, trials, err);
    for (size_t i = 0; status == EV_OK && i < u->count; i++) {
        memo_entry found = {.ns = trials[i].passed ? trials[i].ns : 0};
        ev_sha256 key = ir_genome_sha256(u->genomes[i]);
        memcpy(found.ptx_sha256, trials[i].ptx_sha256, sizeof found.ptx_sha256);
        ns[u->at[i]] = found.ns;
        status = memo_put(&f->scored, &key, &found, err);
    }
    free(trials);
    return status;
}

ev_status finish_score(void *context, const ir_genome *const *genomes, size_t count, double *ns,
                       ev_error *err) {
    finish *f = context;
    unscored u;
    ev_status status = find_unscored(f, genomes, count, ns, &u, err);
    if (status == EV_OK && u.count > 0)
        status = score_unscored(f, &u, ns, err);
    unscored_free(&u);
    return status;
}

double finish_reference(const finish *f, const ir_genome *genome) {
    const char *start = ir_genome_start(genome);
    for (size_t i = 0; i < f->c->start_count; i++) {
        double ns = search_start_ns(f->c->search, i);
        if (strcmp(f->c->starts[i].start->name, start) == 0 && ns > 0)
            return ns;
    }
    return f->c->baseline_ns;
}
