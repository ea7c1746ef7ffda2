/* Follows each warp's stream of events through the scoreboard and an L1.
 *
 * A warp issues in the order of the schedule (schedule.c). `collect` gathers the executed
 * instructions of a straight-line block. `follow_collected` gives the block to the scoreboard
 * (scoreboard.c) when the block is whole or control leaves it. An instruction waits for its
 * operands, for its pipe when the same warp keeps that pipe busy, and at a barrier for the slowest
 * warp of the block. Nothing else of the SM is simulated here: contention between warps is in the
 * throughput terms (model.c).
 *
 * A global access is looked up sector by sector (32 bytes): first in the block's L1, then among
 * the sectors that the block has touched. A sector that the block has not touched counts as a DRAM
 * access. `wait` counts the cycles that such accesses add over an L2 hit; account.c gives back the
 * share that the L2 serves.
 *
 * The second half of the file takes a shortcut. A batch of events that occurred before has a plan
 * (plans.c). `follow_plan` then looks up only the sectors of the batch, and recalls the warp's
 * next state from a memo where the access times are known too. */
#include "fitness/model/access/access_cost.h"
#include "fitness/model/model_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* ---- memory ---- */

/* Sectors from `at` on that are of one line, a bit each, and how many. */
static unsigned sectors_of_line(const uint64_t *sectors, unsigned count, unsigned *taken) {
    uint64_t line = sectors[0] / 4;
    unsigned bits = 0, n = 0;
    while (n < count && sectors[n] / 4 == line)
        bits |= 1u << (sectors[n++] & 3);
    *taken = n;
    return bits;
}

/* Sectors of a line that is not in the buffer that the instruction's last one was in. */
static __attribute__((noinline)) void add_sectors(model *m, access_cost *c, double *by_buffer,
                                                  uint64_t line, unsigned sectors) {
    uint64_t first = line * CACHE_LINE_BYTES;
    c->buffer = (uint32_t)model_buffer_of(&m->buffers, first) % MODEL_MAX_BUFFERS;
    for (; sectors != 0; sectors &= sectors - 1) {
        uint64_t sector = line * 4 + (unsigned)__builtin_ctz(sectors);
        by_buffer[model_buffer_of_sector(&m->buffers, sector)] += 32;
    }
}

/* Sectors of a line, which mostly lies in one buffer, and in that which the instruction found last.
 */
static inline void add_line(model *m, access_cost *c, double *by_buffer, uint64_t line,
                            unsigned sectors) {
    uint64_t first = line * CACHE_LINE_BYTES;
    if (model_buffer_has(&m->buffers.list[c->buffer], first, CACHE_LINE_BYTES))
        by_buffer[c->buffer] += 32 * (int)model_sector_count(sectors);
    else
        add_sectors(m, c, by_buffer, line, sectors);
}

/* As cross_link, where there are peers. */
static __attribute__((noinline)) bool cross_some_link(model *m, block_state *b, uint64_t line,
                                                      unsigned sectors, bool is_store,
                                                      uint64_t *latency) {
    model_place place = model_links_place(m->links, line);
    if (place == MODEL_PLACE_OWN)
        return false;
    unsigned count = (unsigned)__builtin_popcount(sectors);
    model_links_add(m->links, count, is_store, b->weight);
    b->remote += count;
    uint64_t needs = place == MODEL_PLACE_FAR ? m->lat_network : m->lat_peer;
    *latency = needs > *latency ? needs : *latency;
    return true;
}

/* Whether the line is a peer's, and so many of its sectors cross a link; *latency: of a load. */
static inline bool cross_link(model *m, block_state *b, uint64_t line, unsigned sectors,
                              bool is_store, uint64_t *latency) {
    return m->links != NULL && cross_some_link(m, b, line, sectors, is_store, latency);
}

/* Sectors that the block asked the L2 for before; counts how much it asked for since. */
static inline void note_again(block_state *b, const cache_line *l, unsigned sectors) {
    uint32_t since = ((uint32_t)b->missed - l->asked) | 1;
    unsigned bucket = 31u - (unsigned)__builtin_clz(since);
    b->again[bucket < MODEL_AGAIN ? bucket : MODEL_AGAIN - 1] += sectors;
}

/* Sectors of a line that the L1 does not have: how far they have to come from; *remote: how long
 * from a peer. */
static ALWAYS_INLINE model_term fetch_sectors(model *m, block_state *b, access_cost *c,
                                              cache_line *l, uint64_t line, unsigned sectors,
                                              uint64_t *remote) {
    b->missed += model_sector_count(sectors);
    if (cross_link(m, b, line, sectors, false, remote))
        return MODEL_LINK;
    unsigned first = model_cache_touch(l, sectors, false);
    if (first != sectors)
        note_again(b, l, model_sector_count(sectors & ~first));
    l->asked = (uint32_t)b->missed;
    if (first == 0)
        return MODEL_L2;
    add_line(m, c, b->sums.read_bytes, line, first);
    return MODEL_DRAM;
}

/* Cycles until a load has all its lines, the furthest of which comes from there. */
static inline uint64_t latency_of(const model *m, const access_cost *c, model_term from) {
    return m->latency[from] + (from == MODEL_DRAM ? m->spread[c->lines] : 0);
}

/* Reads sectors of a line through the L1; as above. Sectors that another warp has asked for are a
 * hit, and as far away as they were for that warp. */
static ALWAYS_INLINE model_term read_line(model *m, block_state *b, bool bypasses_l1,
                                          access_cost *c, uint64_t line, unsigned sectors,
                                          uint64_t *remote) {
    cache_line *l = model_cache_line(&b->cache, line, model_line_hash(line));
    if (bypasses_l1)
        return fetch_sectors(m, b, c, l, line, sectors, remote);
    if (l->there == 0)
        model_cache_place(&b->cache, l, model_buffers_line(&m->buffers, line));
    unsigned missing = model_cache_read(&b->cache, l, sectors);
    if (missing == 0)
        return model_cache_is_coming(&b->cache, l) ? (model_term)l->from : MODEL_L1;
    model_term from = fetch_sectors(m, b, c, l, line, missing, remote);
    if (from != MODEL_LINK)
        model_cache_miss(&b->cache, l, from, latency_of(m, c, from));
    return from;
}

/* The same of a load's sectors; the furthest that one had to come from. */
static ALWAYS_INLINE model_term read_sectors(model *m, block_state *b, bool bypasses_l1,
                                             access_cost *c, const uint64_t *at, unsigned count,
                                             uint64_t *remote) {
    model_term from = MODEL_L1;
    for (unsigned left = count, taken; left > 0; left -= taken, at += taken) {
        unsigned sectors = sectors_of_line(at, left, &taken);
        model_term far = read_line(m, b, bypasses_l1, c, at[0] / 4, sectors, remote);
        from = far > from ? far : from;
    }
    return from;
}

_Static_assert(MODEL_L1 < MODEL_L2 && MODEL_L2 < MODEL_DRAM && MODEL_DRAM < MODEL_LINK,
               "the nearer first");

/* Room for so many more stored sectors as a line has; false: there is no memory. */
static __attribute__((noinline)) bool grow_stored(model *m) {
    size_t room = m->stored_room == 0 ? 1024 : m->stored_room * 2;
    uint64_t *more = realloc(m->stored, room * sizeof *more);
    m->failed = m->failed || more == NULL;
    if (more == NULL)
        return false;
    m->stored = more;
    m->stored_room = room;
    return true;
}

static inline bool has_stored_room(model *m) {
    return m->stored_count + CACHE_SECTORS <= m->stored_room || grow_stored(m);
}

void model_note_stored(model *m, uint64_t sector) {
    if (has_stored_room(m))
        m->stored[m->stored_count++] = sector;
}

/* Sectors of a line, a bit each, that the block stored to for the first time. */
static void note_line_stored(model *m, const block_state *b, uint64_t line, unsigned sectors) {
    if (!has_stored_room(m))
        return;
    uint64_t *to = m->stored + m->stored_count, *first = to;
    for (unsigned left = sectors; left != 0; left &= left - 1)
        *to++ = line * 4 + (unsigned)__builtin_ctz(left);
    m->stored_count += (size_t)(to - first);
    for (; b->leader < MODEL_LEADERS && first < to; first++)
        model_log_store(m->leaders[b->leader].log, &m->buffers, *first);
}

static void count_hot(model *m, const block_state *b, const uint64_t *sectors, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        model_hot_add(&m->hot, sectors[i], b->weight);
        if (b->leader < MODEL_LEADERS)
            model_log_update(m->leaders[b->leader].log, &m->buffers, sectors[i]);
    }
}

/* How many of its sectors are in the rank's own memory; *remote: how long an answer of a peer
 * takes. */
static unsigned write_sectors(model *m, block_state *b, uint32_t pc, const uint64_t *at,
                              unsigned count, uint64_t *remote) {
    unsigned own = 0;
    b->wrote += count;
    for (unsigned left = count, taken; left > 0; left -= taken, at += taken) {
        uint64_t line = at[0] / 4;
        unsigned bits = sectors_of_line(at, left, &taken);
        if (cross_link(m, b, line, bits, true, remote))
            continue;
        own += taken;
        if (m->rows.rows[pc].kind == ROW_ATOMIC)
            count_hot(m, b, at, taken);
        cache_line *l = model_cache_line(&b->cache, line, model_line_hash(line));
        unsigned first = model_cache_touch(l, bits, true);
        add_line(m, &m->costs[pc], b->sums.written_bytes, line, first);
        if (first != 0)
            note_line_stored(m, b, line, first);
    }
    return own;
}

/* The time until the result of a load is there, with the reason in the low bits. */
static uint64_t load_global(model *m, block_state *b, bool bypasses_l1, access_cost *c,
                            const uint64_t *at, unsigned count) {
    uint64_t remote = 0;
    model_term from = read_sectors(m, b, bypasses_l1, c, at, count, &remote);
    uint64_t latency = from == MODEL_LINK ? remote : latency_of(m, c, from);
    return (latency + c->later) << MODEL_REASON_BITS | from;
}

/* The same for a store or an atomic. `later`: what the L1 holds it up by. */
static uint64_t update_global(model *m, block_state *b, uint32_t pc, const uint64_t *at,
                              unsigned count, uint64_t later) {
    const model_row *row = &m->rows.rows[pc];
    uint64_t latency = row->latency, remote = 0, reason = row->reason;
    unsigned own = write_sectors(m, b, pc, at, count, &remote);
    if (row->kind == ROW_ATOMIC) {
        b->sums.atomic_sectors += own;
        reason = remote > latency ? MODEL_LINK : reason;
        latency = remote > latency ? remote : latency;
    }
    return (latency + later) << MODEL_REASON_BITS | reason;
}

/* The same for all memory that has sectors or banks. */
static uint64_t access_memory(model *m, block_state *b, const vm_event *e, uint32_t pc,
                              const uint64_t *sectors) {
    const model_row *row = &m->rows.rows[pc];
    access_cost *c = model_access_cost(m, e, pc, row);
    b->path[row->kind == ROW_SHARED] += c->path;
    if (row->kind == ROW_SHARED || row->kind == ROW_LOCAL)
        return (row->latency + c->later) << MODEL_REASON_BITS | row->reason;
    const uint64_t *at = sectors + e->first_sector;
    if (row->kind == ROW_STORE)
        model_stores_add(&b->stores, e, row);
    if (row->kind != ROW_LOAD)
        return update_global(m, b, pc, at, e->sectors, c->later);
    b->read += e->sectors;
    return load_global(m, b, row->bypasses_l1, c, at, e->sectors);
}

/* ---- warps ---- */

typedef struct follower {
    model *m;
    block_state *b;
    warp_state *w;
    uint64_t *ready, *memory;
} follower;

static follower follow(model *m, block_state *b, uint32_t warp) {
    return (follower){m, b, &b->warp[warp], b->ready + (size_t)warp * (m->rows.register_count + 1),
                      b->memory + (size_t)warp * m->longest_block};
}

/* Everything arrived before a warp goes on, so the slot of its epoch holds the slowest's time; word
 * of it takes the barrier's own latency. */
static void leave_barrier(const follower *f, uint32_t pc) {
    model *m = f->m;
    block_state *b = f->b;
    warp_state *w = f->w;
    unsigned slot = w->epoch & 1;
    w->at_barrier = false;
    uint64_t open = b->arrived[slot] + m->lat_barrier - 1; /* the arrival took a cycle of it */
    if (open <= w->at.clock)
        return;
    uint64_t delay = open - w->at.clock;
    b->sums.stall[MODEL_BARRIER] += (double)delay;
    model_board_note(m->board, b->kind, pc, MODEL_BARRIER, delay);
    model_board_wait(m->board, &w->at, f->ready, open, &m->waits[pc]);
    w->at.wait = b->arrived_wait[slot];
}

/* Divergent lanes of a warp come to a barrier in parts; the last one makes the arrival. */
static void arrive_barrier(block_state *b, warp_state *w) {
    if (w->arrived == 0 || (w->live & ~w->arrived) != 0)
        return;
    w->arrived = 0;
    w->epoch++;
    w->at_barrier = true;
    unsigned slot = w->epoch & 1;
    bool is_first = b->epoch_seen < w->epoch;
    if (is_first || w->at.clock > b->arrived[slot]) {
        b->arrived[slot] = w->at.clock;
        b->arrived_wait[slot] = w->at.wait;
    }
    if (is_first)
        b->epoch_seen = w->epoch;
}

/* Lanes have come to a barrier, or to their end. */
static void end_stretch(const follower *f, const model_row *row, uint32_t active) {
    warp_state *w = f->w;
    if (row->kind == ROW_BARRIER)
        w->arrived |= active;
    else
        w->live &= ~active;
    arrive_barrier(f->b, w);
}

static inline void follow_stretch(const follower *f, uint32_t first, uint32_t end) {
    model_board_follow(f->m->board, &f->w->at, f->ready, first, end, f->memory, f->b->kind);
}

/* The plan that is being made has the stretch that is collected. */
static __attribute__((noinline)) void plan_collected(const follower *f, bool is_left) {
    model_plan *p = f->m->making;
    const warp_state *w = f->w;
    size_t before = p->stretch_count > 0 ? p->stretches[p->stretch_count - 1].times_end : 0;
    bool is_whole = f->m->schedule.block_end[w->first] == w->end &&
                    model_board_accesses(f->m->board, w->first) == p->time_count - before;
    plan_way whole = is_whole ? PLAN_RECALL : PLAN_FOLLOW;
    model_plan_stretch(p, w->first, w->end, is_left ? PLAN_LEAVE : whole);
}

/* Follows what was collected. */
static inline void follow_collected(const follower *f) {
    warp_state *w = f->w;
    if (w->first < w->end) {
        if (f->m->making != NULL)
            plan_collected(f, false);
        f->b->runs[w->first]++;
        f->b->runs[w->end]--;
        follow_stretch(f, w->first, w->end);
    }
    w->first = w->end = 0;
}

/* Predicated instructions that all lanes step over are issued, and take no time of their own: those
 * between what is collected and pc, if they are of the same block. */
static void step_over(const follower *f, uint32_t pc) {
    warp_state *w = f->w;
    const model_row *rows = f->m->rows.rows;
    bool is_guarded = w->first < w->end && w->end < pc && pc <= w->stop;
    for (uint32_t at = w->end; is_guarded && at < pc; at++)
        is_guarded = rows[at].is_guarded;
    if (!is_guarded)
        return;
    for (; w->end < pc; w->end++) {
        uint32_t slot = w->end - w->first;
        if (!model_row_is_access(&rows[w->end]))
            continue;
        f->memory[slot] = 0;
        if (f->m->making != NULL)
            model_plan_skip(f->m->making, slot);
    }
    if (w->end == w->stop)
        follow_collected(f);
}

/* Adds the instructions [pc, last] to what is collected; a gap, or the end of a block, first
 * follows what is there. A jump past predicated instructions may come after these, of other lanes:
 * nothing is left of it. */
static void collect_blocks(const follower *f, uint32_t pc, uint32_t last) {
    warp_state *w = f->w;
    const model_schedule *s = &f->m->schedule;
    const model_row *row = &f->m->rows.rows[last];
    if (pc == last && w->first < pc && last < w->end && row->is_guarded && row->slots == 0)
        return;
    step_over(f, pc);
    if (w->end != pc)
        follow_collected(f);
    for (; pc <= last; pc = w->end) {
        if (w->first == w->end || s->block_end[pc] != 0) {
            follow_collected(f);
            w->first = pc;
        }
        w->end = s->next[pc] <= last ? s->next[pc] : last + 1;
    }
}

/* The same, of an event; mostly it goes on within a block. `memory`: of its last. */
static inline void collect(const follower *f, const vm_event *e, uint32_t last, bool is_access,
                           uint64_t memory) {
    warp_state *w = f->w;
    if (w->first == w->end && last < f->m->schedule.next[e->pc]) {
        w->first = e->pc;
        w->end = last + 1;
        w->stop = f->m->schedule.next[e->pc];
    } else if (e->pc == w->end && w->first < w->end && last < w->stop) {
        w->end = last + 1;
    } else {
        collect_blocks(f, e->pc, last);
        w->stop = f->m->schedule.next[w->first];
    }
    if (is_access) {
        f->memory[last - w->first] = memory;
        if (f->m->making != NULL)
            model_plan_access(f->m->making, e, &f->m->rows.rows[last], &f->m->costs[last], memory,
                              last - w->first);
    }
    if (w->stop == w->end)
        follow_collected(f);
}

static void count_site(model_site *site, const vm_event *e) {
    site->requests++;
    site->lanes += (unsigned)__builtin_popcount(e->active);
    site->sectors += e->sectors;
    site->passes += e->passes;
}

/* An event of a loop that reads the same flag as the time before: how often it does is the
 * machine's choice of turns, and a rank that waits is not the slow one. */
static bool is_idle(const follower *f, const vm_event *e, const uint64_t *sectors) {
    const model *m = f->m;
    warp_poll *poll = &f->w->poll;
    uint32_t last = e->pc + e->count - 1;
    if (!m->polls[last]) {
        *poll = (warp_poll){0};
    } else if (m->rows.rows[last].kind == ROW_LOAD && e->active != 0) {
        uint64_t sector = sectors[e->first_sector];
        bool again = poll->pc == last && poll->active == e->active && poll->sector == sector;
        *poll = (warp_poll){.pc = last, .active = e->active, .sector = sector, .again = again};
    }
    return poll->again;
}

static void on_event(const follower *f, const vm_event *e, const uint64_t *sectors) {
    model *m = f->m;
    block_state *b = f->b;
    warp_state *w = f->w;
    uint32_t last = e->pc + e->count - 1;
    assert(e->count > 0 && last < m->rows.count);
    if (m->polls != NULL && is_idle(f, e, sectors))
        return;
    if (w->at_barrier)
        leave_barrier(f, e->pc);
    const model_row *row = &m->rows.rows[last];
    bool is_access = model_row_is_access(row);
    uint64_t memory = (uint64_t)row->latency << MODEL_REASON_BITS | row->reason;
    if (is_access && e->active != 0) {
        memory = access_memory(m, b, e, last, sectors);
        if (m->sites != NULL)
            count_site(&m->sites[last], e);
    }
    collect(f, e, last, is_access, memory);
    if (row->kind == ROW_BARRIER || row->kind == ROW_EXIT) {
        follow_collected(f);
        end_stretch(f, row, e->active);
    }
}

/* ---- plans ---- */

_Static_assert(MODEL_L2 == MODEL_L1 + 1 && MODEL_DRAM == MODEL_L1 + 2, "as a plan's codes");

/* Sectors of a line that the L1 may not have all: how far they have to come from, as in a plan's
 * codes. */
static __attribute__((noinline)) plan_code miss_line(model *m, block_state *b, access_cost *c,
                                                     uint64_t line, unsigned sectors) {
    uint64_t remote = 0;
    return read_line(m, b, false, c, line, sectors, &remote) - MODEL_L1;
}

/* The same of sectors that may be in the L1. *clock: its own, which the caller holds. `level`: what
 * the fast path said. */
static ALWAYS_INLINE plan_code read_level(model *m, block_state *b, uint32_t *clock,
                                          const plan_access *a, unsigned level, uint64_t line,
                                          unsigned sectors) {
    if (__builtin_expect(level == 0, 1))
        return 0;
    if (level != CACHE_MISSES)
        return level - MODEL_L1;
    b->cache.clock = *clock;
    plan_code from = miss_line(m, b, a->cost, line, sectors);
    *clock = b->cache.clock;
    return from;
}

/* A load of some sectors, each of another line: the furthest that one had to come from. Mostly the
 * L1 has them all. */
static ALWAYS_INLINE plan_code read_apart(model *m, block_state *b, uint32_t *clock,
                                          const plan_access *a, const uint64_t *at) {
    plan_code from = 0;
    const uint64_t *end = at + a->sectors;
    do {
        unsigned level = model_cache_hit_sector(&b->cache, clock, *at);
        plan_code far = read_level(m, b, clock, a, level, *at / 4, 1u << (*at & 3));
        from = far > from ? far : from;
    } while (++at < end);
    return from;
}

/* The same of sectors of one line. */
static ALWAYS_INLINE plan_code read_one(model *m, block_state *b, uint32_t *clock,
                                        const plan_access *a, const uint64_t *at) {
    const uint64_t *end = at + a->sectors;
    uint64_t line = *at / 4;
    unsigned sectors = 0;
    do
        sectors |= 1u << (*at & 3);
    while (++at < end);
    unsigned level = model_cache_hit(&b->cache, clock, line, sectors);
    return read_level(m, b, clock, a, level, line, sectors);
}

/* An access that is none of the commonest. */
static __attribute__((noinline)) plan_code follow_other(model *m, block_state *b,
                                                        const plan_access *a, const uint64_t *at) {
    uint64_t remote = 0;
    if (a->way == PLAN_READ)
        return read_sectors(m, b, false, a->cost, at, a->sectors, &remote) - MODEL_L1;
    if (a->is_load)
        return read_sectors(m, b, true, a->cost, at, a->sectors, &remote) - MODEL_L1;
    (void)update_global(m, b, a->pc, at, a->sectors, a->later);
    return 0;
}

/* An access of a plan, at these sectors. */
static ALWAYS_INLINE plan_code follow_access(model *m, block_state *b, uint32_t *clock,
                                             const plan_access *a, const uint64_t *at) {
    if (a->way == PLAN_READ_APART)
        return read_apart(m, b, clock, a, at);
    if (a->way == PLAN_READ_ONE)
        return read_one(m, b, clock, a, at);
    b->cache.clock = *clock;
    plan_code from = follow_other(m, b, a, at);
    *clock = b->cache.clock;
    return from;
}

/* The accesses of a plan, at these sectors, which are the rank's own: there are no plans where
 * there are peers. */
static __attribute__((noinline)) void follow_accesses(const follower *f, const model_plan *p,
                                                      const uint64_t *sectors) {
    block_state *b = f->b;
    uint32_t clock = b->cache.clock;
    const plan_access *a = p->accesses;
    for (size_t i = 0; i < p->code_count; i++) {
        plan_code code = 0;
        for (const plan_access *end = p->accesses + p->coded[i]; a < end; a++)
            code = code * 4 + follow_access(f->m, b, &clock, a, sectors + a->first_sector);
        p->codes[i] = code;
    }
    b->cache.clock = clock;
}

/* What a stretch's codes say of the times of its accesses. */
static const uint64_t *list_times(const follower *f, const model_plan *p, const plan_stretch *s) {
    uint32_t end = s->access_end;
    for (uint32_t code = s->code_end; code-- > s->code;) {
        plan_code left = p->codes[code];
        uint32_t first = code > s->code ? p->coded[code - 1] : s->access;
        for (; end-- > first; left >>= 2) {
            const plan_access *a = &p->accesses[end];
            uint64_t from = MODEL_L1 + (left & 3);
            if (a->is_load)
                p->times[a->time] = (latency_of(f->m, a->cost, (model_term)from) + a->later)
                                        << MODEL_REASON_BITS |
                                    from;
        }
        end = first;
    }
    return p->times + s->times;
}

/* Whether the stretches of a memo had the codes that they have now. */
static inline bool has_codes(const plan_memo *memo, const model_plan *p) {
    plan_code differ = 0;
    for (uint32_t i = p->stretches[memo->from].code; i < p->stretches[memo->to - 1].code_end; i++)
        differ |= memo->codes[i] ^ p->codes[i];
    return differ == 0;
}

/* The memo for the stretches from `from` on, as the warp and their codes are; or NULL. */
static const plan_memo *find_memo(const follower *f, const model_plan *p, size_t from) {
    uint32_t state = f->w->at.state, epoch = model_board_epoch(f->m->board);
    for (const plan_memo *memo = p->memos; memo < p->memos + PLAN_MEMOS; memo++)
        if (memo->from == from && memo->to != from && memo->state_in == state &&
            memo->epoch == epoch && has_codes(memo, p))
            return memo;
    return NULL;
}

/* Takes the stretches of a memo at once, if there is one for the warp's state; the next one. */
static size_t take_memo(const follower *f, const model_plan *p, size_t from) {
    board_warp *w = &f->w->at;
    const plan_memo *memo = w->state != 0 ? find_memo(f, p, from) : NULL;
    if (memo == NULL)
        return from;
    unsigned kind = f->b->kind;
    for (size_t i = 0; i < memo->use_count; i++)
        memo->uses[i].of_step[kind] += memo->uses[i].count;
    w->state = memo->state_out;
    w->clock += memo->clock;
    w->wait += memo->wait;
    return memo->to;
}

/* Steps of a loop are mostly the same few. */
static void add_use(plan_memo *memo, uint32_t *of_step) {
    size_t i = 0;
    while (i < memo->use_count && memo->uses[i].of_step != of_step)
        i++;
    if (i == memo->use_count)
        memo->uses[memo->use_count++] = (plan_use){.of_step = of_step};
    memo->uses[i].count++;
}

/* Keeps a memo in the place of the oldest; where there is no room, it is done without. */
static void keep_memo(model_plan *p, plan_memo made) {
    plan_memo *memo = &p->memos[p->memo_next];
    if (memo->codes == NULL)
        memo->codes = malloc((p->code_count + 1) * sizeof *memo->codes);
    if (memo->uses == NULL)
        memo->uses = malloc(p->stretch_count * sizeof *memo->uses);
    if (memo->codes == NULL || memo->uses == NULL)
        return;
    made.codes = memo->codes;
    made.uses = memo->uses;
    uint32_t first = p->stretches[made.from].code, end = p->stretches[made.to - 1].code_end;
    memcpy(made.codes + first, p->codes + first, (end - first) * sizeof *p->codes);
    for (size_t i = made.from; i < made.to; i++)
        add_use(&made, p->uses[i]);
    *memo = made;
    p->memo_next = (p->memo_next + 1) % PLAN_MEMOS;
}

/* What a stretch makes of the warp's state, if that is known; or NULL. */
static const model_step *recall_stretch(const follower *f, const model_plan *p, plan_stretch *s,
                                        uint32_t epoch) {
    board_warp *w = &f->w->at;
    bool is_coded = s->code_end <= s->code + 1;
    plan_code code = s->code < s->code_end ? p->codes[s->code] : 0;
    uint64_t hash = (code ^ (uint64_t)w->state << 32) * UINT64_C(0x9e3779b97f4a7c15);
    plan_known *known = &s->known[hash >> 32 & (PLAN_KNOWN - 1)];
    if (is_coded && known->step != NULL && known->step->state == w->state && known->code == code &&
        known->epoch == epoch) {
        model_step_take(w, known->step, f->b->kind);
        return known->step;
    }
    const uint64_t *times = list_times(f, p, s);
    model_step *step = model_board_recall(f->m->board, w, s->first, times, f->b->kind);
    if (is_coded && step != NULL)
        *known = (plan_known){.code = code, .step = step, .epoch = epoch};
    return step;
}

/* Takes stretches from `from` on, as far as what they make of the warp's state is known. */
static size_t recall_stretches(const follower *f, model_plan *p, size_t from) {
    board_warp *w = &f->w->at;
    plan_memo memo = {.from = from,
                      .to = from,
                      .state_in = w->state,
                      .epoch = model_board_epoch(f->m->board),
                      .clock = w->clock,
                      .wait = w->wait};
    for (; memo.to < p->stretch_count; memo.to++) {
        plan_stretch *s = &p->stretches[memo.to];
        const model_step *step = s->way == PLAN_RECALL ? recall_stretch(f, p, s, memo.epoch) : NULL;
        if (step == NULL)
            break;
        p->uses[memo.to] = step->uses;
    }
    memo.state_out = w->state;
    memo.clock = w->clock - memo.clock;
    memo.wait = w->wait - memo.wait;
    if (memo.to > from)
        keep_memo(p, memo);
    return memo.to;
}

/* One that is not recalled; false: it is left. */
static bool follow_planned(const follower *f, const model_plan *p, const plan_stretch *s) {
    (void)list_times(f, p, s);
    for (uint32_t i = s->times; i < s->times_end; i++)
        f->memory[p->slots[i]] = p->times[i];
    if (s->way != PLAN_LEAVE) {
        follow_stretch(f, s->first, s->end);
        return true;
    }
    f->w->first = s->first;
    f->w->end = s->end;
    f->w->stop = f->m->schedule.next[s->first];
    return false;
}

/* Follows the events of a plan, of which this batch brings the sectors. */
static void follow_plan(const follower *f, model_plan *p, const uint64_t *sectors) {
    f->b->path[0] += p->path[0];
    f->b->path[1] += p->path[1];
    f->b->read += p->read;
    f->b->stores.sectors += p->stores.sectors;
    f->b->stores.parts += p->stores.parts;
    f->b->stores.bytes += p->stores.bytes;
    for (size_t i = 0; i < p->run_count; i++)
        f->b->runs[p->runs[i].pc] += p->runs[i].more;
    follow_accesses(f, p, sectors);
    f->w->first = f->w->end = 0;
    for (size_t i = 0; i < p->stretch_count;) {
        size_t begin = i;
        i = take_memo(f, p, i);
        if (i == begin)
            i = recall_stretches(f, p, i);
        if (i != begin)
            continue;
        if (!follow_planned(f, p, &p->stretches[i]))
            return;
        i++;
    }
    if (p->last != NULL)
        end_stretch(f, p->last, p->last_active);
}

/* Events up to the first barrier or end of lanes, which is of the row *last; NULL: there is none.
 */
static size_t count_planned(const model *m, const vm_batch *batch, const model_row **last) {
    *last = NULL;
    for (size_t i = 0; i < batch->count; i++) {
        const vm_event *e = &batch->events[i];
        const model_row *row = &m->rows.rows[e->pc + e->count - 1];
        if (row->kind != ROW_BARRIER && row->kind != ROW_EXIT)
            continue;
        *last = row;
        return i + 1;
    }
    return batch->count;
}

/* Follows events, and makes them a plan. */
static void make_plan(const follower *f, model_plan *p, const vm_batch *batch, size_t count) {
    f->m->making = p;
    for (size_t i = 0; i < count; i++)
        on_event(f, &batch->events[i], batch->sectors);
    if (f->w->first < f->w->end)
        plan_collected(f, true);
    model_plan_end(p);
    f->m->making = NULL;
}

/* The plan of the batch, or NULL. `like`: a plan of equal events, or NULL. */
static model_plan *find_plan(const follower *f, model_plan *before, const vm_batch *batch,
                             model_plan *like) {
    const warp_state *w = f->w;
    if (like == NULL || like->first != w->first || like->end != w->end)
        return model_plans_find(f->m->plans, before, batch, w->first, w->end);
    model_plans_found(f->m->plans, before, like);
    return like;
}

/* Follows what a plan has, or can have, of the batch: so many events. */
static size_t follow_by_plan(const follower *f, const vm_batch *batch, model_plan *like) {
    model *m = f->m;
    warp_state *w = f->w;
    model_plan *before = w->plan;
    w->plan = NULL;
    if (m->sites != NULL || m->polls != NULL || !model_plans_help(m->plans))
        return 0;
    model_plan *p = w->plan = find_plan(f, before, batch, like);
    if (p != NULL) {
        follow_plan(f, p, batch->sectors);
        return p->count;
    }
    const model_row *last;
    size_t count = count_planned(m, batch, &last);
    p = model_plans_begin(m->plans, batch, count, w->first, w->end);
    if (p == NULL)
        return 0;
    p->last = last;
    p->last_active = batch->events[count - 1].active;
    make_plan(f, p, batch, count);
    return count;
}

void model_follow_batch(model *m, block_state *b, const vm_batch *batch, model_plan *like) {
    assert(batch->warp < b->warps && batch->count > 0);
    follower f = follow(m, b, batch->warp);
    b->cache.now = f.w->at.clock;
    b->cache.warp = (uint8_t)batch->warp;
    vm_batch rest;
    for (const vm_batch *left = batch;; left = &rest) { /* mostly the first plan has all of it */
        if (f.w->at_barrier) {
            leave_barrier(&f, left->events[0].pc);
            b->cache.now = f.w->at.clock;
        }
        size_t done = follow_by_plan(&f, left, left == batch ? like : NULL);
        while (done == 0 || (done < left->count && !f.w->at_barrier))
            on_event(&f, &left->events[done++], left->sectors);
        if (done == left->count)
            return;
        rest = *left;
        rest.events += done;
        rest.count -= done;
    }
}

void model_follow_rest(model *m, block_state *b, uint32_t warp) {
    follower f = follow(m, b, warp);
    follow_collected(&f);
}
