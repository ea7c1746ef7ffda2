/* Follows each warp's stream through a scoreboard and an L1.
 *
 * A warp issues in the order of the schedule (schedule.c): what it executed of a straight-line
 * block is collected until the block is whole, then followed (scoreboard.c). An instruction waits
 * for its operands, for the pipe that its own warp keeps busy, and at a barrier for the block's
 * slowest warp; nothing else of the SM is simulated here: contention between warps is in the
 * throughput terms. Loads of sectors that the block had not touched are taken as DRAM's; `wait`
 * counts the cycles that the path would be shorter by if they hit the L2, and account.c gives back
 * the share that does. */
#include "fitness/model/model_state.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* ---- memory ---- */

/* Cycles of the L1 for one request: its tags are looked up some lines a cycle, its banks give their
 * words in passes, and what the lanes get, each its own copy, crosses a bus of so many bytes a
 * cycle. Against measured strided loads: see docs/model.md. */
static inline double l1_cycles(const model *m, const vm_event *e, const model_row *row) {
    assert(e->lines <= L1_MOST_LINES);
    double most = m->l1_tag_cycles[e->lines];
    double bus = __builtin_popcount(e->active) * row->access_bytes * m->l1_byte_cycles;
    double banks = e->passes * m->l1_pass_cycles;
    most = bus > most ? bus : most;
    return banks > most ? banks : most;
}

/* Sectors from `at` on that are of one line, a bit each, and how many. */
static unsigned sectors_of_line(const uint64_t *sectors, unsigned count, unsigned *taken) {
    uint64_t line = sectors[0] / 4;
    unsigned bits = 0, n = 0;
    while (n < count && sectors[n] / 4 == line)
        bits |= 1u << (sectors[n++] & 3);
    *taken = n;
    return bits;
}

/* Sectors of a line, which mostly lies in one buffer, and in that which the instruction found last.
 */
static inline void add_line(model *m, access_cost *c, double *by_buffer, uint64_t line,
                            unsigned sectors) {
    uint64_t first = line * CACHE_LINE_BYTES;
    if (!model_buffer_has(&m->buffers.list[c->buffer], first, CACHE_LINE_BYTES))
        c->buffer = (uint32_t)model_buffer_of(&m->buffers, first) % MODEL_MAX_BUFFERS;
    if (model_buffer_has(&m->buffers.list[c->buffer], first, CACHE_LINE_BYTES)) {
        by_buffer[c->buffer] += 32 * model_sector_count(sectors);
        return;
    }
    for (; sectors != 0; sectors &= sectors - 1) {
        uint64_t sector = line * 4 + (unsigned)__builtin_ctz(sectors);
        by_buffer[model_buffer_of_sector(&m->buffers, sector)] += 32;
    }
}

/* Cycles of the shared memory for one request: passes over its banks, and the bus to the lanes. */
static double shared_cycles(const model *m, const vm_event *e, const model_row *row) {
    double bus = __builtin_popcount(e->active) * row->access_bytes * m->shared_byte_cycles;
    return fmax(fmax(e->passes, m->lsu_cycles), bus);
}

/* Whether the line is a peer's, and so many of its sectors cross a link; *latency: of a load. */
static bool cross_link(model *m, block_state *b, uint64_t line, unsigned sectors, bool is_store,
                       uint64_t *latency) {
    model_place place = m->links != NULL ? model_links_place(m->links, line) : MODEL_PLACE_OWN;
    if (place == MODEL_PLACE_OWN)
        return false;
    unsigned count = (unsigned)__builtin_popcount(sectors);
    model_links_add(m->links, count, is_store, weight_of(m, b->block));
    b->remote += count;
    uint64_t needs = place == MODEL_PLACE_FAR ? m->lat_network : m->lat_peer;
    *latency = needs > *latency ? needs : *latency;
    return true;
}

/* Sectors of a line that the L1 does not have: how far they have to come from; *remote: how long
 * from a peer. */
static __attribute__((noinline)) model_term fetch_sectors(model *m, block_state *b, access_cost *c,
                                                          uint64_t line, unsigned sectors,
                                                          uint64_t *remote) {
    b->missed += model_sector_count(sectors);
    if (cross_link(m, b, line, sectors, false, remote))
        return MODEL_LINK;
    unsigned first = model_touched_add(&b->touched, line, sectors, false);
    if (first == 0)
        return MODEL_L2;
    add_line(m, c, b->sums.read_bytes, line, first);
    return MODEL_DRAM;
}

/* The line's place in the L1, which may be one of two. */
static ALWAYS_INLINE uint32_t find_line(model_cache *l1, uint64_t line, uint32_t *own,
                                        uint32_t *last) {
    if (!model_cache_is_at(l1, line, *own))
        *own = model_cache_is_at(l1, line, *last) ? *last : model_cache_find(l1, line);
    return *last = *own;
}

/* Reads a load's sectors through the L1, whose clock the caller holds; the reason says how far the
 * furthest had to come from, *remote how long from a peer. *place: where its first line may be. */
static ALWAYS_INLINE model_term read_sectors(model *m, block_state *b, uint32_t *clock,
                                             bool bypasses_l1, access_cost *c, uint32_t *place,
                                             const uint64_t *at, unsigned count, uint64_t *remote) {
    model_term from = MODEL_L1;
    uint32_t *last = place == &c->places[1] ? place : &c->places[0];
    for (unsigned left = count, taken; left > 0; left -= taken, at += taken) {
        uint64_t line = at[0] / 4;
        unsigned misses = sectors_of_line(at, left, &taken);
        if (!bypasses_l1)
            misses &=
                ~model_cache_read(&b->l1, clock, find_line(&b->l1, line, place, last), misses);
        place = last = &c->places[1];
        if (misses == 0)
            continue;
        model_term far = fetch_sectors(m, b, c, line, misses, remote);
        from = far > from ? far : from;
    }
    return from;
}

_Static_assert(MODEL_L1 < MODEL_L2 && MODEL_L2 < MODEL_DRAM && MODEL_DRAM < MODEL_LINK,
               "the nearer first");

void model_note_stored(model *m, uint64_t sector) {
    if (m->stored_count == m->stored_room) {
        size_t room = m->stored_room == 0 ? 1024 : m->stored_room * 2;
        uint64_t *more = realloc(m->stored, room * sizeof *more);
        if (more == NULL) {
            m->failed = true;
            return;
        }
        m->stored = more;
        m->stored_room = room;
    }
    m->stored[m->stored_count++] = sector;
}

static void count_hot(model *m, const block_state *b, const uint64_t *sectors, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        model_hot_add(&m->hot, sectors[i], weight_of(m, b->block));
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
        unsigned first = model_touched_add(&b->touched, line, bits, true);
        add_line(m, &m->costs[pc], b->sums.written_bytes, line, first);
        for (; first != 0; first &= first - 1) {
            uint64_t sector = line * 4 + (unsigned)__builtin_ctz(first);
            model_note_stored(m, sector);
            if (b->leader < MODEL_LEADERS)
                model_log_store(m->leaders[b->leader].log, &m->buffers, sector);
        }
    }
    return own;
}

static access_cost *cost_of(model *m, const vm_event *e, uint32_t pc, const model_row *row) {
    access_cost *c = &m->costs[pc];
    if (c->active == e->active && c->lines == e->lines && c->passes == e->passes)
        return c;
    c->active = e->active;
    c->lines = e->lines;
    c->passes = e->passes;
    c->path = c->later = 0;
    if (row->kind == ROW_SHARED) {
        c->path = (uint64_t)(shared_cycles(m, e, row) * UNITS);
        c->later = e->passes > 1 ? e->passes - 1u : 0;
    } else if (row->kind != ROW_ATOMIC) {
        double cycles = l1_cycles(m, e, row);
        c->path = (uint64_t)(cycles * UNITS);
        c->later = cycles > 1 ? (uint64_t)cycles - 1 : 0;
    }
    return c;
}

/* The time until the result of a load is there, with the reason in the low bits. `later`: what the
 * L1 holds it up by. */
static ALWAYS_INLINE uint64_t load_global(model *m, block_state *b, uint32_t *clock,
                                          bool bypasses_l1, access_cost *c, uint32_t *place,
                                          const uint64_t *at, unsigned count, uint64_t later) {
    uint64_t remote = 0;
    model_term from = read_sectors(m, b, clock, bypasses_l1, c, place, at, count, &remote);
    uint64_t latency = from == MODEL_LINK ? remote : m->latency[from];
    return (latency + later) << MODEL_REASON_BITS | from;
}

/* The same for a store or an atomic. */
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
    access_cost *c = cost_of(m, e, pc, row);
    b->path[row->kind == ROW_SHARED] += c->path;
    if (row->kind == ROW_SHARED || row->kind == ROW_LOCAL)
        return (row->latency + c->later) << MODEL_REASON_BITS | row->reason;
    const uint64_t *at = sectors + e->first_sector;
    if (row->kind != ROW_LOAD)
        return update_global(m, b, pc, at, e->sectors, c->later);
    b->read += e->sectors;
    return load_global(m, b, &b->l1.clock, row->bypasses_l1, c, &c->places[0], at, e->sectors,
                       c->later);
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
    f->b->runs[first]++;
    f->b->runs[end]--;
    model_board_follow(f->m->board, &f->w->at, f->ready, first, end, f->memory, f->b->kind);
}

/* The plan that is being made has the stretch that is collected. */
static __attribute__((noinline)) void plan_collected(const follower *f, bool is_left) {
    model_plan *p = f->m->making;
    const warp_state *w = f->w;
    size_t before = p->stretch_count > 0 ? p->stretches[p->stretch_count - 1].times_end : 0;
    bool is_whole = f->m->schedule.block_end[w->first] == w->end &&
                    model_board_accesses(f->m->board, w->first) == p->time_count - before;
    model_plan_stretch(p, w->first, w->end,
                       is_left    ? PLAN_LEAVE
                       : is_whole ? PLAN_RECALL
                                  : PLAN_FOLLOW);
}

/* Follows what was collected. */
static inline void follow_collected(const follower *f) {
    warp_state *w = f->w;
    if (w->first < w->end) {
        if (f->m->making != NULL)
            plan_collected(f, false);
        follow_stretch(f, w->first, w->end);
    }
    w->first = w->end = 0;
}

/* Adds the instructions [pc, last] to what is collected; a gap, or the end of a block, first
 * follows what is there. */
static void collect_blocks(const follower *f, uint32_t pc, uint32_t last) {
    warp_state *w = f->w;
    const model_schedule *s = &f->m->schedule;
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
            model_plan_access(f->m->making, e, &f->m->rows.rows[last], &f->m->costs[last],
                              f->m->latency[MODEL_L1], memory, last - w->first);
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

/* How many of a load's sectors, from the first on, are in the L1 where such were last; reads them.
 * Most are: nothing but their lines' times changes. */
static ALWAYS_INLINE unsigned read_hits(cache_line *lines, uint64_t round, uint32_t *clock,
                                        const plan_access *a, const uint64_t *at) {
    uint32_t own = a->place, last = a->cost->places[0];
    unsigned done = 0, count = a->sectors;
    while (done < count) {
        uint64_t line = at[done] / 4, tag = line + round;
        unsigned wanted = 1u << (at[done] & 3), next = done + 1;
        while (next < count && at[next] / 4 == line)
            wanted |= 1u << (at[next++] & 3);
        /* which of the two cannot be foreseen: without a branch */
        own ^= (own ^ last) & -(uint32_t)(lines[own].tag != tag);
        cache_line *l = &lines[own];
        if (l->tag != tag || (wanted & ~l->sectors) != 0)
            break;
        l->used = ++*clock;
        own = last = a->cost->places[1];
        done = next;
    }
    return done;
}

/* The rest of an access, from sector `done` on, with the L1's clock. */
static __attribute__((noinline)) uint64_t follow_rest(model *m, block_state *b, uint32_t *clock,
                                                      plan_access *a, const uint64_t *at,
                                                      unsigned done) {
    if (!a->is_load)
        return update_global(m, b, a->pc, at, a->sectors, a->later);
    uint32_t *place = done == 0 ? &a->place : &a->cost->places[1];
    return load_global(m, b, clock, a->bypasses_l1, a->cost, place, at + done, a->sectors - done,
                       a->later);
}

/* The accesses of a plan, at these sectors. */
static __attribute__((noinline)) void follow_accesses(const follower *f, const model_plan *p,
                                                      const uint64_t *sectors) {
    block_state *b = f->b;
    cache_line *lines = b->l1.lines;
    uint64_t round = b->l1.round, *times = p->times;
    uint32_t clock = b->l1.clock;
    for (plan_access *a = p->accesses, *end = a + p->access_count; a < end; a++) {
        const uint64_t *at = sectors + a->first_sector;
        unsigned done = a->reads_l1 ? read_hits(lines, round, &clock, a, at) : 0;
        times[a->time] = a->near;
        if (__builtin_expect(done == a->sectors, 1))
            continue;
        b->l1.clock = clock;
        times[a->time] = follow_rest(f->m, b, &b->l1.clock, a, at, done);
        clock = b->l1.clock;
    }
    b->l1.clock = clock;
}

/* The memo for the stretches from `from` on, as the warp and the times of accesses are; or NULL. */
static const plan_memo *find_memo(const follower *f, const model_plan *p, size_t from) {
    uint32_t state = f->w->at.state, epoch = model_board_epoch(f->m->board);
    for (const plan_memo *memo = p->memos; memo < p->memos + PLAN_MEMOS; memo++) {
        if (memo->from != from || memo->to == from || memo->state_in != state ||
            memo->epoch != epoch)
            continue;
        uint32_t first = p->stretches[from].times, end = p->stretches[memo->to - 1].times_end;
        if (memcmp(memo->times + first, p->times + first, (end - first) * sizeof *p->times) == 0)
            return memo;
    }
    return NULL;
}

/* Takes the stretches of a memo at once, if there is one for the warp's state; the next one. */
static size_t take_memo(const follower *f, const model_plan *p, size_t from) {
    board_warp *w = &f->w->at;
    const plan_memo *memo = w->state != 0 ? find_memo(f, p, from) : NULL;
    if (memo == NULL)
        return from;
    unsigned kind = f->b->kind;
    int64_t *runs = f->b->runs;
    for (size_t i = from; i < memo->to; i++) {
        memo->uses[i][kind]++;
        runs[p->stretches[i].first]++;
        runs[p->stretches[i].end]--;
    }
    w->state = memo->state_out;
    w->clock += memo->clock;
    w->wait += memo->wait;
    return memo->to;
}

/* Keeps a memo in the place of the oldest; where there is no room, it is done without. */
static void keep_memo(model_plan *p, plan_memo made) {
    plan_memo *memo = &p->memos[p->memo_next];
    if (memo->times == NULL)
        memo->times = malloc((p->time_count + 1) * sizeof *memo->times);
    if (memo->uses == NULL)
        memo->uses = malloc(p->stretch_count * sizeof *memo->uses);
    if (memo->times == NULL || memo->uses == NULL)
        return;
    made.times = memo->times;
    made.uses = memo->uses;
    uint32_t first = p->stretches[made.from].times, end = p->stretches[made.to - 1].times_end;
    memcpy(made.times + first, p->times + first, (end - first) * sizeof *p->times);
    for (size_t i = made.from; i < made.to; i++)
        made.uses[i] = p->stretches[i].step->uses;
    *memo = made;
    p->memo_next = (p->memo_next + 1) % PLAN_MEMOS;
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
        if (s->way != PLAN_RECALL || !model_board_recall(f->m->board, w, s->first,
                                                         p->times + s->times, &s->step, f->b->kind))
            break;
        f->b->runs[s->first]++;
        f->b->runs[s->end]--;
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
    follow_accesses(f, p, sectors);
    f->w->first = f->w->end = 0;
    for (size_t i = 0; i < p->stretch_count;) {
        size_t begin = i;
        i = take_memo(f, p, i);
        if (i == begin)
            i = recall_stretches(f, p, i);
        if (i == begin && !follow_planned(f, p, &p->stretches[i++]))
            return;
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
    f->m->making = NULL;
}

/* Follows what a plan has, or can have, of the batch: so many events. */
static size_t follow_by_plan(const follower *f, const vm_batch *batch) {
    model *m = f->m;
    warp_state *w = f->w;
    model_plan *before = w->plan;
    w->plan = NULL;
    if (m->sites != NULL || m->polls != NULL || !model_plans_help(m->plans))
        return 0;
    model_plan *p = w->plan = model_plans_find(m->plans, before, batch, w->first, w->end);
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

void model_follow_batch(model *m, block_state *b, const vm_batch *batch) {
    assert(batch->warp < b->warps && batch->count > 0);
    if (b->leader < MODEL_LEADERS)
        model_log_add(m->leaders[b->leader].log, &m->buffers, batch);
    follower f = follow(m, b, batch->warp);
    vm_batch left = *batch;
    while (left.count > 0) {
        if (f.w->at_barrier)
            leave_barrier(&f, left.events[0].pc);
        size_t done = follow_by_plan(&f, &left);
        while (done == 0 || (done < left.count && !f.w->at_barrier))
            on_event(&f, &left.events[done++], left.sectors);
        left.events += done;
        left.count -= done;
    }
}

void model_follow_rest(model *m, block_state *b, uint32_t warp) {
    follower f = follow(m, b, warp);
    follow_collected(&f);
}
