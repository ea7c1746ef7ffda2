/* Search, committing: decides whether a child is a duplicate, adds it to island and archive, and
 * pays its arms. */
#include "tuner/search/search_inside.h"

#include "base/str.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* most gain of one child, so that one large gain does not dominate the bandit */
#define MOST_GAIN 1.0
/* Most entries of one base, so that no setting of the macros fills the archive. */
#define ARCHIVE_OF_A_BASE (SEARCH_ARCHIVE / 3)
/* The same of one skeleton, and of one structural prefix of a start at all its macros. */
#define ARCHIVE_OF_A_SKELETON (SEARCH_ARCHIVE / 12)
#define ARCHIVE_OF_A_PREFIX (SEARCH_ARCHIVE / 4)

/* Whether the filter stops a child with these small cases, of fast code or of LLVM's. */
static bool is_out_of_reach(const small_run *small, const small_run *reach) {
    return score_out_of_reach(small->first, small->error, reach->first, reach->error) ||
           score_out_of_reach(small->sketch, small->error, reach->sketch, reach->error) ||
           score_out_of_reach(small->built, small->error, reach->built, reach->error);
}

/* ---- duplicates ---- */

/* Only code that is launched alike is the same. */
ev_sha256 search_code_key(const ir_genome *genome, const char *sha256) {
    ev_str text = EV_STR_EMPTY;
    ev_sha256 base = ir_genome_base_sha256(genome);
    ev_str_printf(&text, "%s %s", sha256, base.hex);
    ev_sha256 key = ev_sha256_of(ev_str_text(&text), text.length);
    ev_str_free(&text);
    return key;
}

/* The key of a child for one kind of hash. False: the child was not drawn or built as far as this
 * hash. */
static bool find_key(const ir_genome *genome, search_hash by, const char *sha256, ev_sha256 *key) {
    if (!genome || (by != SEARCH_BY_GENOME && !sha256[0]))
        return false;
    *key = by == SEARCH_BY_GENOME ? ir_genome_sha256(genome) : search_code_key(genome, sha256);
    return true;
}

bool search_knows(const search *s, const ir_genome *genome, search_hash by, const char *sha256,
                  uint64_t *same_as) {
    ev_sha256 key;
    return find_key(genome, by, sha256, &key) && known_find(s->known[by], &key, same_as);
}

/* Whether the filter stopped the same code, and would stop it again. Slower parents now may mean a
 * larger limit. */
static bool was_filtered(const search *s, const draft *d, search_hash by, const ev_sha256 *key,
                         uint64_t *same_as) {
    return !draft_probes(d) && !search_is_fingerprint(by) &&
           known_find(s->filtered, key, same_as) &&
           is_out_of_reach(&s->outcomes[*same_as].small, &d->reach);
}

static bool is_over(const search *s, const draft *d, const ir_genome *genome, search_hash by,
                    const char *sha256, uint64_t *same_as) {
    ev_sha256 key;
    if ((draft_audits(d) && !search_is_exact(by)) || !find_key(genome, by, sha256, &key))
        return false;
    return known_find(s->known[by], &key, same_as) || was_filtered(s, d, by, &key, same_as);
}

bool search_is_over(const search *s, uint64_t child, const ir_genome *genome, search_hash by,
                    const char *sha256, uint64_t *same_as) {
    assert(child >= s->committed && child < s->drawn);
    return is_over(s, &s->drafts[child % SEARCH_LAG], genome, by, sha256, same_as);
}

/* The first hash that ends the child; SEARCH_HASHES: none. */
static search_hash find_end(const search *s, const draft *d, const child_result *r,
                            uint64_t *same_as) {
    for (int i = 0; i < SEARCH_HASHES; i++) {
        search_hash by = (search_hash)i;
        if (is_over(s, d, r->genome, by, r->hashes[by], same_as))
            return by;
    }
    return SEARCH_HASHES;
}

/* Whether the child is known by a hash that an audit ignores. */
static bool is_inexactly_known(const search *s, const child_result *r, uint64_t *same_as) {
    for (int i = 0; i < SEARCH_HASHES; i++) {
        search_hash by = (search_hash)i;
        if (!search_is_exact(by) && search_knows(s, r->genome, by, r->hashes[by], same_as))
            return true;
    }
    return false;
}

/* Adds the child's keys, up to the key that made the child known. Its worker may have got further
 * before that key was committed. The keys of a duplicate lead to the child that it equals. */
static ev_status remember(search *s, const child_result *r, const search_verdict *v,
                          ev_error *err) {
    bool is_known = search_is_known(v->outcome.origin),
         is_duplicate = v->outcome.origin == SEARCH_DUPLICATE;
    uint64_t child = is_duplicate ? v->same_as : s->committed;
    bool filtered = v->outcome.origin == SEARCH_FILTERED ||
                    (is_duplicate && s->outcomes[v->same_as].origin == SEARCH_FILTERED);
    for (int i = 0; r->genome && i < SEARCH_HASHES && !(is_known && i > (int)v->by); i++) {
        search_hash by = (search_hash)i;
        ev_sha256 key;
        if ((search_is_fingerprint(by) && (is_duplicate || v->outcome.stopped != GATE_NONE)) ||
            !find_key(r->genome, by, r->hashes[by], &key))
            continue;
        EV_TRY(known_add(filtered ? s->filtered : s->known[by], &key, child, err));
    }
    return EV_OK;
}

static ev_status store_outcome(search *s, const search_verdict *v, ev_error *err) {
    if (s->committed == s->outcome_capacity) {
        size_t capacity = s->outcome_capacity ? 2 * s->outcome_capacity : 1024;
        child_outcome *more = realloc(s->outcomes, capacity * sizeof *more);
        if (!more)
            return ev_fail_memory(err, capacity * sizeof *more);
        s->outcomes = more;
        s->outcome_capacity = capacity;
    }
    s->outcomes[s->committed] = v->outcome;
    return EV_OK;
}

/* ---- the archive ---- */

static bool goes_before(const archive *a, size_t at, const search_best *b, size_t edits) {
    const search_best *other = &a->best[at];
    if (b->ns != other->ns)
        return b->ns < other->ns;
    if (edits != a->edits[at])
        return edits < a->edits[at];
    return false; /* the older one wins */
}

static void archive_remove(archive *a, size_t at) {
    ir_genome_free(a->best[at].genome);
    size_t behind = --a->count - at;
    memmove(&a->best[at], &a->best[at + 1], behind * sizeof *a->best);
    memmove(&a->edits[at], &a->edits[at + 1], behind * sizeof *a->edits);
}

void archive_clear(archive *a) {
    for (size_t i = 0; i < a->count; i++)
        ir_genome_free(a->best[i].genome);
    a->count = 0;
}

static bool is_structured(const ir_genome *genome) {
    return ir_genome_prefix_count(genome) > 0;
}

/* The entries of a kind: how many, and the slowest. */
typedef struct entries {
    size_t count, slowest;
} entries;

static void count_entry(entries *e, size_t at) {
    e->count++;
    e->slowest = at;
}

/* The archive entry that a newcomer replaces: the slowest of its own base or prefix if that has its
 * full share, or the slowest of all if the archive is full. `count`: there is a free place. */
static size_t archive_victim(const archive *a, const search_best *b) {
    bool structured = is_structured(b->genome);
    entries base = {0}, prefix = {0};
    for (size_t i = 0; i < a->count; i++) {
        const ir_genome *other = a->best[i].genome;
        if (ir_genome_same_base(other, b->genome))
            count_entry(&base, i);
        if (structured && ir_genome_same_prefix(other, b->genome) &&
            strcmp(ir_genome_start(other), ir_genome_start(b->genome)) == 0)
            count_entry(&prefix, i);
    }
    if (base.count >= (structured ? ARCHIVE_OF_A_SKELETON : ARCHIVE_OF_A_BASE))
        return base.slowest;
    if (prefix.count >= ARCHIVE_OF_A_PREFIX)
        return prefix.slowest;
    return a->count == SEARCH_ARCHIVE ? SEARCH_ARCHIVE - 1 : a->count;
}

static void archive_insert(archive *a, const search_best *b, size_t edits) {
    size_t at = a->count;
    while (at > 0 && goes_before(a, at - 1, b, edits))
        at--;
    if (at == SEARCH_ARCHIVE)
        return;
    size_t victim = archive_victim(a, b);
    if (at > victim)
        return;
    if (victim < a->count)
        archive_remove(a, victim);
    size_t behind = a->count - at;
    memmove(&a->best[at + 1], &a->best[at], behind * sizeof *a->best);
    memmove(&a->edits[at + 1], &a->edits[at], behind * sizeof *a->edits);
    a->best[at] = *b;
    a->edits[at] = edits;
    (void)ir_genome_ref(b->genome);
    a->count++;
}

/* ---- pay ---- */

/* Pays the whole gain to each arm of the child, since the part of each arm is not known. */
void search_each_arm(const char *operators, void (*pay)(void *context, unsigned arm, double gain),
                     void *context, double gain) {
    char name[64];
    while (*operators) {
        size_t length = strcspn(operators, ",");
        unsigned arm = 0;
        if (length < sizeof name) {
            memcpy(name, operators, length);
            name[length] = '\0';
            if (arm_find(name, &arm))
                pay(context, arm, gain);
        }
        operators += length + (operators[length] == ',');
    }
}

bool search_passed(const search_verdict *v) {
    return v->outcome.origin != SEARCH_DUPLICATE && v->outcome.stopped == GATE_NONE;
}

double search_parent_ns(const search *s, const draft *d) {
    return d->parent_ns > 0 ? d->parent_ns : s->start_ns[d->start];
}

double search_gain(const search *s, const draft *d, const search_verdict *v) {
    double parent = search_parent_ns(s, d);
    if (!search_passed(v) || v->outcome.ns <= 0 || parent <= v->outcome.ns)
        return 0;
    double gain = log(parent / v->outcome.ns);
    return gain < MOST_GAIN ? gain : MOST_GAIN;
}

static void pay_arm(void *context, unsigned arm, double gain) {
    bandit_pay(context, arm, gain);
}

void search_pay_arms(bandit *arms, const char *operators, double gain) {
    search_each_arm(operators, pay_arm, arms, gain);
}

static void count_arm(void *context, unsigned arm, double gain) {
    search *s = context;
    s->tries[arm]++;
    s->paid[arm] += gain;
}

/* ---- what is kept of all strategies ---- */

member member_of(const search *s, const child_result *r, const search_verdict *v) {
    return (member){.child = s->committed,
                    .genome = r->genome,
                    .edits = ir_genome_edit_count(r->genome),
                    .ns = v->outcome.ns,
                    .error = v->outcome.error,
                    .registers = v->outcome.registers,
                    .small = v->outcome.small,
                    .sketch = v->outcome.sketched};
}

/* Whether a variant may be worth a promotion. A skeleton with an estimate has no more to offer than
 * the built ancestor that it did not beat. */
static bool is_for_promotion(const draft *d, const search_verdict *v) {
    return !(d->skeleton && v->outcome.origin == SEARCH_ESTIMATED);
}

static void keep_passed(search *s, const draft *d, const child_result *r, const search_verdict *v) {
    search_best b = {.child = s->committed,
                     .genome = r->genome,
                     .ns = v->outcome.ns,
                     .error = v->outcome.error,
                     .bold = r->bold,
                     .untimed = v->outcome.origin == SEARCH_MEMOISED ||
                                v->outcome.origin == SEARCH_ESTIMATED};
    search_form form = is_structured(r->genome) ? SEARCH_STRUCTURED : SEARCH_PLAIN;
    int from = r->bold > 0 ? SEARCH_ANY : SEARCH_PRESERVING;
    for (int field = is_for_promotion(d, v) ? from : SEARCH_FIELDS; field < SEARCH_FIELDS; field++)
        archive_insert(&s->archives[field][form], &b, ir_genome_edit_count(r->genome));
    const opening *o = s->committed < s->opening_count ? &s->openings[s->committed] : NULL;
    if (o && o->unmodified) {
        s->start_ns[o->start] = v->outcome.ns;
        s->start_error[o->start] = v->outcome.error;
    }
    bool exact = v->outcome.error <= s->start_error[o ? o->start : d->start];
    front_add(&s->fronts[exact ? SEARCH_EXACT : SEARCH_TOLERANT],
              (front_member){s->committed, v->outcome.ns, v->outcome.error});
}

/* ---- committing ---- */

bool search_is_known(search_origin origin) {
    return origin == SEARCH_DUPLICATE || origin == SEARCH_MEMOISED;
}

static search_origin origin_of(const score *s) {
    if (s->recalled)
        return SEARCH_MEMOISED;
    if (s->filtered)
        return SEARCH_FILTERED;
    if (s->sketch == SKETCH_STOPPED)
        return SEARCH_SCREENED;
    return s->estimated ? SEARCH_ESTIMATED : SEARCH_TIMED;
}

static search_audit audited(bool refuted) {
    return refuted ? AUDIT_REFUTED : AUDIT_CONFIRMED;
}

void child_result_take_score(child_result *r, const score *s) {
    r->outcome = (child_outcome){.origin = origin_of(s),
                                 .stopped = s->stopped,
                                 .ns = s->ns,
                                 .error = s->error,
                                 .registers = s->registers,
                                 .small = score_small_run(s)};
    r->screen_overruled = s->sketch == SKETCH_IGNORED;
    memcpy(r->reason, s->reason, sizeof r->reason);
}

void child_result_free(child_result *r) {
    ir_genome_free(r->genome);
    *r = (child_result){0};
}

/* Audits the memo: whether the inexact key of a known child gives the right outcome. */
static search_audit audit_memo(const search *s, const child_result *r, const search_verdict *v) {
    uint64_t like = 0;
    if (!is_inexactly_known(s, r, &like))
        return AUDIT_NONE;
    const child_outcome *o = &s->outcomes[like];
    return audited(o->stopped != v->outcome.stopped ||
                   fabs(v->outcome.ns - o->ns) > s->missed * o->ns);
}

/* Copies the outcome of the child that this child equals. */
static void take_known(const search *s, search_verdict *v) {
    v->outcome = s->outcomes[v->same_as];
    v->outcome.origin = search_is_fingerprint(v->by) ? SEARCH_MEMOISED : SEARCH_DUPLICATE;
}

/* Whether all variants so far are slower. */
static bool is_fastest(const search *s, double ns) {
    for (int form = 0; form < SEARCH_FORMS; form++) {
        const archive *a = &s->archives[SEARCH_ANY][form];
        if (a->count > 0 && a->best[0].ns <= ns)
            return false;
    }
    return true;
}

static void judge(const search *s, const draft *d, const child_result *r, search_verdict *v) {
    *v = (search_verdict){.outcome = r->outcome, .audits.let_through = d->let_through};
    v->by = find_end(s, d, r, &v->same_as);
    if (v->by != SEARCH_HASHES)
        take_known(s, v);
    v->is_best =
        search_passed(v) && r->outcome.origin != SEARCH_ESTIMATED && is_fastest(s, v->outcome.ns);
    /* A child that ended at an exact key was not timed, and would confirm anything. */
    if (draft_audits(d) && v->by == SEARCH_HASHES && r->outcome.origin != SEARCH_FILTERED)
        v->audits.memo = audit_memo(s, r, v);
}

/* A child that its worker dropped as known must have a known key. */
static ev_status check_known(const search *s, const child_result *r, const search_verdict *v,
                             ev_error *err) {
    if (v->by != SEARCH_HASHES || !search_is_known(r->outcome.origin))
        return EV_OK;
    return ev_fail(err, EV_INFRA, "child %llu was dropped as known, and no child is the same",
                   (unsigned long long)s->committed);
}

/* The fast code's time at full shape; if not timed there, extrapolated from its time on the small
 * cases. */
static double whole_of(const draft *d, const small_run *small) {
    if (small->whole > 0 || d->sketch.near <= 0)
        return small->whole;
    return d->sketch.whole * (small->sketch / d->sketch.near);
}

double search_estimate_of(const draft *d, const small_run *small) {
    double whole = whole_of(d, small);
    return d->sketch.whole > 0 ? d->parent_ns * (whole / d->sketch.whole) : d->parent_ns;
}

/* The fast-code figures that the child passes on: a built child sets a new mark, an estimated child
 * keeps its parent's. */
static sketched sketched_of(const draft *d, const search_verdict *v) {
    double whole = v->outcome.small.whole;
    bool estimated = v->outcome.origin == SEARCH_ESTIMATED;
    return (sketched){.whole = estimated ? whole_of(d, &v->outcome.small) : whole,
                      .near = whole > 0 ? v->outcome.small.sketch : 0,
                      .due = estimated ? d->sketch.due : (1 - SEARCH_MISSED) * whole};
}

/* Audits the estimate of a child that was built although its fast code gained nothing. */
static estimate_audit audit_estimate(const search *s, const draft *d, const child_result *r,
                                     const search_verdict *v) {
    bool built = r->outcome.origin != SEARCH_ESTIMATED && v->outcome.origin != SEARCH_FILTERED;
    if (!draft_audits(d) || !built || v->audits.memo != AUDIT_NONE || d->sketch.due <= 0 ||
        r->outcome.small.whole < d->sketch.due)
        return ESTIMATE_NOT_AUDITED;
    double estimate = search_estimate_of(d, &r->outcome.small);
    if (!search_passed(v) || v->outcome.ns > estimate * (1 + s->missed))
        return ESTIMATE_MISSED;
    return v->outcome.ns < estimate * (1 - s->missed) ? ESTIMATE_BEATEN : ESTIMATE_MET;
}

/* Audits the filter with a child that it would have stopped. */
static search_audit audit_filter(const search *s, const draft *d, const child_result *r,
                                 const search_verdict *v) {
    if (!draft_probes(d) || !is_out_of_reach(&r->outcome.small, &d->reach))
        return AUDIT_NONE;
    return audited(search_passed(v) && v->outcome.ns <= search_parent_ns(s, d));
}

/* Judges a new child: its fast-code figures, and the audits of filter, estimate and screen. */
static void judge_new(const search *s, const draft *d, const child_result *r, search_verdict *v) {
    v->outcome.sketched = sketched_of(d, v);
    v->audits.filter = audit_filter(s, d, r, v);
    v->audits.estimate = audit_estimate(s, d, r, v);
    if (r->screen_overruled)
        v->audits.screen = audited(v->outcome.stopped == GATE_NONE);
}

/* Notes a start that a gate stopped for its faults at other macros than the defaults. */
static void note_wrong(search *s, const child_result *r, const search_verdict *v) {
    if (r->genome && v->outcome.origin == SEARCH_TIMED && v->outcome.stopped >= GATE_VERIFY &&
        v->outcome.stopped <= GATE_TIMED)
        (void)wrong_note(&s->wrong, r->genome, v->outcome.stopped, r->reason);
}

size_t search_wrong(const search *s, const wrong_setting **out) {
    *out = s->wrong.list;
    return s->wrong.count;
}

ev_status search_commit(search *s, const child_result *result, search_verdict *out, ev_error *err) {
    assert(s->committed < s->drawn);
    draft d = s->drafts[s->committed % SEARCH_LAG];
    judge(s, &d, result, out);
    EV_TRY(check_known(s, result, out, err));
    if (!search_is_known(out->outcome.origin))
        judge_new(s, &d, result, out);
    if (out->outcome.origin != SEARCH_SCREENED)
        EV_TRY(remember(s, result, out, err));
    EV_TRY(store_outcome(s, out, err));
    search_each_arm(result->operators, count_arm, s, search_gain(s, &d, out));
    if (search_passed(out))
        keep_passed(s, &d, result, out);
    note_wrong(s, result, out);
    s->rules->settle(s, &d, result, out);
    s->committed++;
    return EV_OK;
}
