/* Streams: launches of the same ranks one behind the other, without a barrier of the ranks between
 * them.
 *
 * A stream orders the launches of its own rank, and nothing else: while a rank is in its second
 * launch, a peer may be in the first or in the third. The virtual machine runs the launches one
 * after another on all ranks, yet judges them as the streams would order them. So the entries of
 * the shadow, the owners of their stamps and what each rank has heard of the others stay from
 * launch to launch (vm_past). An access of an earlier launch is ordered before a launch in two
 * cases: its rank is the launch's own, or the launch's rank had heard of it when the launch began
 * (`known`). Whatever else was told, a warp has to be told in its own launch. */
#include "fitness/vm/vm_wave.h"

#include <stdlib.h>
#include <string.h>

struct vm_past {
    vm_races races;
    vm_heard *heard;
    uint32_t ranks;
};

void vm_past_free(vm_past *p) {
    if (!p)
        return;
    free(p->races.owners);
    free(p->races.words);
    free(p->races.taken);
    free(p->heard);
    free(p);
}

static const vm_launch *first_launch(const vm_session *x) {
    return x->ranks[0].launch;
}

bool vm_stream_take(vm_session *x) {
    vm_peers *peers = x->ranks[0].memory->peers;
    vm_past *p = peers ? peers->past : NULL;
    if (!p)
        return false;
    peers->past = NULL;
    bool follows = first_launch(x)->stream & VM_STREAM_FOLLOWS && p->ranks == x->count &&
                   p->races.stamp == vm_memory_stamp(x->ranks[0].memory);
    if (follows) {
        x->races = p->races;
        x->races.launch_stamp = p->races.stamp;
        x->races.promised = false;
        x->heard = p->heard;
        p->races = (vm_races){0};
        p->heard = NULL;
    }
    vm_past_free(p);
    return follows;
}

/* Byte entries of shared memory are of blocks that have ended. */
static void drop_shared(vm_races *r) {
    size_t kept = 0;
    for (size_t i = 0; i < r->taken_count; i++) {
        vm_race_word *word = &r->words[r->taken[i]];
        if (word->key && !(word->key & 1))
            r->taken[kept++] = r->taken[i];
        else
            *word = (vm_race_word){0};
    }
    r->taken_count = kept;
}

bool vm_stream_leave(vm_session *x) {
    vm_peers *peers = x->ranks[0].memory->peers;
    bool trapped = false;
    for (uint32_t r = 0; r < x->count; r++)
        trapped |= x->ranks[r].trapped;
    if (!peers || !x->past || !x->races.words || trapped)
        return false;
    drop_shared(&x->races);
    *x->past = (vm_past){.races = x->races, .heard = x->heard, .ranks = x->count};
    vm_past_free(peers->past);
    peers->past = x->past;
    x->past = NULL;
    x->heard = NULL;
    return true;
}

bool vm_stream_begin(vm_session *x) {
    unsigned stream = x->count > 1 && x->races.words ? first_launch(x)->stream : 0;
    size_t count = (size_t)x->count * x->count;
    if (stream & VM_STREAM_GOES_ON)
        x->past = calloc(1, sizeof *x->past);
    if (stream & VM_STREAM_FOLLOWS)
        x->known = calloc(count, sizeof *x->known);
    for (size_t i = 0; x->known && x->heard && i < count; i++)
        x->known[i] = x->heard[i].stamp;
    return (x->past || !(stream & VM_STREAM_GOES_ON)) &&
           (x->known || !(stream & VM_STREAM_FOLLOWS));
}

void vm_stream_end(vm_session *x) {
    vm_past_free(x->past);
    free(x->known);
    x->past = NULL;
    x->known = NULL;
}

/* A word that several ranks read has the stamp of the first: if that is the own rank, a later peer
 * is taken for known (docs/ranks.md, "Not found in every order"). */
bool vm_stream_knew(const vm_warp *w, uint32_t stamp) {
    const vm_state *s = w->state;
    const vm_session *x = s->session;
    if (stamp > s->races->launch_stamp)
        return false;
    if (stamp <= s->races->first_stamp)
        return true;
    uint32_t rank = vm_race_rank(vm_race_owner(s, stamp));
    return rank == s->rank || stamp <= x->known[(size_t)s->rank * x->count + rank];
}
