/* Ranks that begin and end apart: what one rank may touch of another before it knows that the other
 * has begun, and what it must have told the other before that one ends.
 *
 * GPUs start their kernels at different times. A peer's inputs are in place when the peer's stream
 * has come to the launch, and a peer's memory may be read, reused or freed when its kernel has
 * ended. Within a launch, only messages of scope .sys tell of both. So each rank keeps, for each
 * peer, whether it has heard of it, and the newest stamp of it that a message has told of: a vector
 * clock a rank (Mattern, "Virtual Time and Global States of Distributed Systems", 1988). Two checks
 * use it:
 *
 *   - a plain read of what a peer has before its launch, when nothing was heard of the peer;
 *   - a write into a peer's memory, when the peer has ended, or which at the end of all ranks the
 *     peer turns out not to have heard of. The latter shows in any order of the ranks. Of launches
 *     that follow each other (vm_stream.c), the end is that of the last one.
 *
 * A reader of a message learns all that the writer's rank knows now, which is more than the writer
 * knew then, and all threads of a rank share what one of them learnt. So the checks may miss a
 * fault, but never report one in a correct kernel. */
#include "fitness/vm/vm_wave.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool vm_apart_begin(vm_session *x) {
    bool wanted = false;
    for (uint32_t r = 0; r < x->count; r++)
        wanted |= (x->ranks[r].launch->checks & (VM_CHECK_BEGIN | VM_CHECK_END)) != 0 ||
                  x->ranks[r].launch->stream != 0;
    if (x->count == 1 || (!wanted && !x->heard))
        return true;
    if (!x->heard) /* else it is from the launches before */
        x->heard = calloc((size_t)x->count * x->count, sizeof *x->heard);
    for (uint32_t r = 0; x->heard && r < x->count; r++)
        x->ranks[r].heard = x->heard + (size_t)r * x->count;
    return x->heard != NULL;
}

void vm_apart_end(vm_session *x) {
    free(x->heard);
    x->heard = NULL;
}

void vm_apart_forget(vm_session *x) {
    for (size_t i = 0; x->heard && i < (size_t)x->count * x->count; i++)
        x->heard[i].stamp = x->heard[i].seen = 0;
}

/* The state whose memory has the offset; NULL: no rank of the launch. */
static const vm_state *state_at(const vm_state *s, uint64_t offset) {
    const vm_session *x = s->session;
    const vm_memory *owner = vm_memory_owner(s->memory, offset);
    for (uint32_t r = 0; owner && r < x->count; r++)
        if (x->ranks[r].memory == owner)
            return &x->ranks[r];
    return NULL;
}

static void learn(vm_heard *to, const vm_heard *from) {
    to->begun |= from->begun;
    to->stamp = from->stamp > to->stamp ? from->stamp : to->stamp;
}

void vm_apart_hear(vm_warp *w, uint32_t stamp) {
    const vm_state *s = w->state;
    if (stamp <= s->races->first_stamp)
        return;
    uint64_t owner = s->races->owners[stamp - s->races->first_stamp - 1];
    uint32_t peer = vm_race_rank(owner);
    if (peer == s->rank || !(owner & VM_RACE_TELLS))
        return;
    const vm_session *x = s->session;
    for (uint32_t r = 0; r < x->count; r++)
        learn(&s->heard[r], &x->ranks[peer].heard[r]);
    learn(&s->heard[peer], &(vm_heard){.begun = true, .stamp = stamp});
}

void vm_apart_see(vm_warp *w, uint32_t stamp) {
    const vm_state *s = w->state;
    if (stamp <= s->races->first_stamp || stamp > VM_RACE_STAMPS)
        return;
    vm_heard *of = &s->heard[vm_race_rank(vm_race_owner(s, stamp))];
    of->seen = stamp > of->seen ? stamp : of->seen;
}

/* ---- the begin */

/* Whether all words hold what this launch wrote. */
static bool is_new(const vm_state *s, uint64_t offset, unsigned bytes) {
    const uint32_t *writes = s->memory->writes;
    for (uint64_t word = offset / 4; word <= (offset + bytes - 1) / 4; word++)
        if (writes[word] >> VM_RACE_SHIFT <= s->races->first_stamp)
            return false;
    return true;
}

bool vm_apart_readable(vm_warp *w, const ptx_insn *ip, unsigned lane, uint64_t address,
                       vm_buffer_kind kind, unsigned bytes) {
    const vm_state *s = w->state;
    uint64_t offset = address - VM_GLOBAL_BASE;
    const vm_state *peer = state_at(s, offset);
    if (!peer || peer == s || s->heard[peer->rank].begun || offset >= peer->memory->limit)
        return true;
    bool is_input = kind == VM_BUFFER_IN;
    if (!is_input && (kind != VM_BUFFER_INOUT || ip->strong || is_new(s, offset, bytes)))
        return true;
    vm_trap_raise(w, ip, VM_TRAP_RACE_BEGIN, lane, &address,
                  "a read of %u bytes of rank %u's %s before anything of scope .sys told that its "
                  "launch has begun",
                  bytes, peer->rank, is_input ? "input" : "buffer");
    return false;
}

/* ---- the end */

static bool is_ended(const vm_state *s) {
    bool active = s->wave->next < s->wave->total;
    for (uint32_t i = 0; i < s->block_count && !active; i++)
        active = s->blocks[i].active;
    return !active;
}

bool vm_apart_writable(vm_warp *w, const ptx_insn *ip, unsigned lane, uint64_t address,
                       unsigned bytes) {
    const vm_state *peer = state_at(w->state, address - VM_GLOBAL_BASE);
    if (!peer || peer == w->state || peer->launch->stream & VM_STREAM_GOES_ON || !is_ended(peer))
        return true;
    vm_trap_raise(w, ip, VM_TRAP_RACE_END, lane, &address,
                  "a write of %u bytes into the memory of rank %u, which has ended and waited for "
                  "nothing of scope .sys behind it",
                  bytes, peer->rank);
    return false;
}

/* A write into the memory of `s` that its rank has not heard of. A strong write may also have been
 * seen itself, or a later one of the same rank's. */
static bool is_unheard(const vm_state *s, uint32_t write) {
    uint32_t stamp = write >> VM_RACE_SHIFT;
    if (stamp <= s->races->first_stamp || stamp > VM_RACE_STAMPS)
        return false;
    uint32_t writer = vm_race_rank(vm_race_owner(s, stamp));
    if (writer == s->rank || stamp <= s->heard[writer].stamp)
        return false;
    bool strong = (write & VM_RACE_HOW) >> VM_RACE_HOW_SHIFT >= VM_RACE_BLOCK;
    return !strong || stamp > s->heard[writer].seen;
}

static void raise_unheard(const vm_state *s, uint64_t word, uint32_t entry) {
    uint64_t owner = vm_race_owner(s, entry >> VM_RACE_SHIFT);
    vm_state *writer = &s->session->ranks[vm_race_rank(owner)];
    unsigned lane = (entry & VM_RACE_LANE) >> VM_RACE_LANE_SHIFT;
    vm_trap *t = &writer->result->trap;
    *t = (vm_trap){
        .kind = VM_TRAP_RACE_END, .has_address = true, .address = VM_GLOBAL_BASE + word * 4};
    bool earlier = entry >> VM_RACE_SHIFT <= s->races->launch_stamp;
    t->rank = writer->rank;
    if (!earlier) /* else the launch had another grid */
        vm_trap_place(t, writer, (uint32_t)(owner >> 5), (unsigned)(owner & 31), lane);
    (void)snprintf(t->message, sizeof t->message,
                   "%s: %s: a write %sinto the memory of rank %u, which nothing of scope .sys told "
                   "that rank of before its end",
                   writer->module->name, vm_trap_name(t->kind),
                   earlier ? "of an earlier launch " : "", s->rank);
    vm_place_append_global(t->message, sizeof t->message, writer, t->address);
    if (earlier)
        vm_trap_append(t, ", by rank %u", writer->rank);
    else
        vm_trap_append_thread(t, writer);
    writer->trapped = true;
}

/* False: a word of the page is unheard of, and the trap is raised. */
static bool settle_page(const vm_state *s, uint64_t page) {
    const uint32_t *writes = s->memory->writes;
    uint64_t first = page << VM_PAGE_SHIFT >> 2;
    for (uint64_t word = first; word < first + (1u << VM_PAGE_SHIFT) / 4; word++) {
        const vm_race_word *parts = vm_race_parts(s, word);
        for (unsigned b = 0; b < (parts ? 4u : 1u); b++) {
            uint32_t write = parts ? parts->writes[b] : writes[word];
            if (is_unheard(s, write)) {
                raise_unheard(s, word, write);
                return false;
            }
        }
    }
    return true;
}

bool vm_apart_settle(vm_session *x) {
    for (uint32_t r = 0; x->heard && r < x->count; r++) {
        const vm_state *s = &x->ranks[r];
        const vm_memory *m = s->memory;
        bool ends = s->launch->checks & VM_CHECK_END && !(s->launch->stream & VM_STREAM_GOES_ON);
        for (size_t i = 0; i < m->dirty_count && ends; i++)
            if (!settle_page(s, m->dirty_pages[i]))
                return false;
    }
    return true;
}
