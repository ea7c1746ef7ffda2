/* Search: commits a child: duplicate or not, its place in island and archive, the pay of its arms.
 */
#include "tuner/search_inside.h"

#include "base/json.h"
#include "base/str.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE 160  /* children of an island without a better best before it restarts */
#define NEUTRAL 0.001 /* relative change of time that counts as none */
#define MOST_GAIN 1.0 /* of one child, so that one leap does not own the bandit */

/* ---- duplicates ---- */

/* Code is the same only if it is launched the same way, and the launch hangs on start and macros:
 * they are part of the key. */
static ev_sha256 key_of(const json_t *genome, search_hash by, const char *sha256) {
    json_t *json = by == SEARCH_BY_GENOME ? json_incref((json_t *)genome)
                                          : json_pack("{s:s,s:O,s:O}", "code", sha256, "start",
                                                      json_object_get(genome, "start"), "macros",
                                                      json_object_get(genome, "macros"));
    char *text = json ? ev_json_print(json, true) : NULL;
    ev_sha256 key = ev_sha256_of(text ? text : "", text ? strlen(text) : 0);
    free(text);
    json_decref(json);
    return key;
}

bool search_knows(const search *s, const json_t *genome, search_hash by, const char *sha256,
                  uint64_t *same_as) {
    if (!genome || (by != SEARCH_BY_GENOME && !sha256[0]))
        return false;
    ev_sha256 key = key_of(genome, by, sha256);
    return known_find(s->known[by], &key, same_as);
}

static const char *hash_of(const search_result *r, search_hash by) {
    return by == SEARCH_BY_IR ? r->ir_sha256 : by == SEARCH_BY_PTX ? r->ptx_sha256 : "";
}

static bool find_same(const search *s, const search_result *r, search_verdict *v) {
    for (int by = 0; by < SEARCH_HASHES; by++) {
        if (search_knows(s, r->genome, (search_hash)by, hash_of(r, (search_hash)by), &v->same_as)) {
            v->seen = true;
            v->by = (search_hash)by;
            return true;
        }
    }
    return false;
}

/* A duplicate's own hashes lead to the child it is the same as. */
static ev_status remember(search *s, const search_result *r, uint64_t child, ev_error *err) {
    for (int by = 0; r->genome && by < SEARCH_HASHES; by++) {
        const char *sha256 = hash_of(r, (search_hash)by);
        if (by != SEARCH_BY_GENOME && !sha256[0])
            continue;
        ev_sha256 key = key_of(r->genome, (search_hash)by, sha256);
        EV_TRY(known_add(s->known[by], &key, child, err));
    }
    return EV_OK;
}

static ev_status store_outcome(search *s, const search_verdict *v, ev_error *err) {
    if (s->committed == s->outcome_capacity) {
        size_t capacity = s->outcome_capacity ? 2 * s->outcome_capacity : 1024;
        outcome *more = realloc(s->outcomes, capacity * sizeof *more);
        if (!more)
            return ev_fail_memory(err, capacity * sizeof *more);
        s->outcomes = more;
        s->outcome_capacity = capacity;
    }
    s->outcomes[s->committed] = (outcome){v->ns, v->error, v->stopped};
    return EV_OK;
}

/* ---- the archive ---- */

static bool goes_before(const search *s, size_t at, const search_best *b, size_t edits) {
    const search_best *other = &s->archive[at];
    if (b->ns != other->ns)
        return b->ns < other->ns;
    if (edits != s->archive_edits[at])
        return edits < s->archive_edits[at];
    return false; /* the older first */
}

static void archive_insert(search *s, const search_best *b, size_t edits) {
    size_t at = s->archive_count;
    while (at > 0 && goes_before(s, at - 1, b, edits))
        at--;
    if (at == SEARCH_ARCHIVE)
        return;
    if (s->archive_count == SEARCH_ARCHIVE)
        json_decref((json_t *)s->archive[--s->archive_count].genome);
    size_t behind = s->archive_count - at;
    memmove(&s->archive[at + 1], &s->archive[at], behind * sizeof *s->archive);
    memmove(&s->archive_edits[at + 1], &s->archive_edits[at], behind * sizeof *s->archive_edits);
    s->archive[at] = *b;
    s->archive_edits[at] = edits;
    json_incref((json_t *)b->genome);
    s->archive_count++;
}

/* ---- pay ---- */

static void pay_arm(search *s, island *is, const char *name, double gain) {
    unsigned arm = 0;
    if (!arm_find(name, &arm))
        return;
    s->tries[arm]++;
    s->paid[arm] += gain;
    bandit_pay(&is->arms, arm, gain);
}

/* Each arm that had a part is paid the whole gain: which one earned it is not known. */
static void pay_arms(search *s, island *is, const char *operators, double gain) {
    char name[64];
    while (*operators) {
        size_t length = strcspn(operators, ",");
        if (length < sizeof name) {
            memcpy(name, operators, length);
            name[length] = '\0';
            pay_arm(s, is, name, gain);
        }
        operators += length + (operators[length] == ',');
    }
}

static double gain_of(const search *s, const draft *d, const search_verdict *v) {
    double parent = d->parent_ns > 0 ? d->parent_ns : s->start_ns[s->islands[d->island].start];
    if (v->seen || v->stopped != GATE_NONE || v->ns <= 0 || parent <= v->ns)
        return 0;
    double gain = log(parent / v->ns);
    return gain < MOST_GAIN ? gain : MOST_GAIN;
}

/* ---- islands ---- */

static void stock_add(island *is, json_t *genome) {
    stock_entry *e = &is->stock[is->stock_next];
    if (is->stock_count == STOCK_MOST)
        json_decref(e->genome);
    else
        is->stock_count++;
    *e = (stock_entry){json_incref(genome), genome_edit_count(genome) - 1};
    is->stock_next = (is->stock_next + 1) % STOCK_MOST;
}

/* One more edit that did no harm by itself. */
static bool belongs_in_stock(const search *s, const draft *d, const search_result *r,
                             const search_verdict *v) {
    double parent = d->parent_ns > 0 ? d->parent_ns : s->start_ns[s->islands[d->island].start];
    return d->single && genome_edit_count(r->genome) == d->parent_edits + 1 &&
           v->ns <= parent * (1 + NEUTRAL);
}

static void join_island(island *is, const member *m) {
    const member *best = population_best(&is->members);
    if (!best || m->ns < best->ns)
        is->idle = 0;
    population_insert(&is->members, m);
}

/* Restarts from its best, and from the best of the other islands of the same start. */
static void restart_island(search *s, island *is) {
    is->generation++;
    is->idle = 0;
    population_restart(&is->members);
    for (size_t i = 0; i < s->island_count; i++) {
        const island *other = &s->islands[i];
        const member *m = population_best(&other->members);
        const member *own = population_best(&is->members);
        if (other != is && other->start == is->start && m && !(own && own->child == m->child))
            population_insert(&is->members, m);
    }
}

static void settle(search *s, const draft *d, const search_result *r, const search_verdict *v) {
    bool opens = s->committed < s->opening_count;
    json_t *genome = (json_t *)r->genome;
    member m = {.child = s->committed,
                .genome = genome,
                .edits = genome_edit_count(genome),
                .ns = v->ns,
                .error = v->error};
    search_best b = {.child = s->committed, .genome = genome, .ns = v->ns, .error = v->error};
    archive_insert(s, &b, m.edits);
    if (belongs_in_stock(s, d, r, v))
        stock_add(&s->islands[d->island], genome);
    for (size_t i = 0; i < s->island_count; i++) {
        bool at_home = i == d->island;
        if (at_home || (opens && s->islands[i].start == s->islands[d->island].start))
            join_island(&s->islands[i], &m);
    }
    const opening *o = opens ? &s->openings[s->committed] : NULL;
    if (o && o->unmodified)
        s->start_ns[o->start] = v->ns;
}

/* ---- committing ---- */

static void judge(const search *s, const search_result *r, search_verdict *v) {
    *v = (search_verdict){.stopped = r->stopped, .ns = r->ns, .error = r->error};
    if (find_same(s, r, v)) {
        const outcome *o = &s->outcomes[v->same_as];
        v->stopped = o->stopped;
        v->ns = o->ns;
        v->error = o->error;
    }
    bool passed = !v->seen && v->stopped == GATE_NONE;
    v->is_best = passed && (s->archive_count == 0 || v->ns < s->archive[0].ns);
}

ev_status search_commit(search *s, const search_result *result, search_verdict *out,
                        ev_error *err) {
    assert(s->committed < s->drawn);
    draft d = s->drafts[s->committed % SEARCH_LAG];
    island *is = &s->islands[d.island];
    judge(s, result, out);
    if (result->stopped == GATE_SEEN && !out->seen)
        return ev_fail(err, EV_INFRA, "child %llu was dropped as known, and no child is the same",
                       (unsigned long long)s->committed);
    EV_TRY(remember(s, result, out->seen ? out->same_as : s->committed, err));
    EV_TRY(store_outcome(s, out, err));
    pay_arms(s, is, result->operators, gain_of(s, &d, out));
    is->idle++;
    if (!out->seen && out->stopped == GATE_NONE)
        settle(s, &d, result, out);
    s->committed++;
    if (is->idle > PATIENCE)
        restart_island(s, is);
    return EV_OK;
}
