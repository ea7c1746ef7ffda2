/* Links: what a rank moves to and from its peers' memory, and how long the links need for it.
 *
 * Data crosses a link in packets of up to a line of 128 bytes, each with a header; both directions
 * work at once. Peers on another node are reached through the network. What peers load from a rank,
 * and store to it, crosses its links as well: model_links_join adds it when all have run. */
#include "fitness/model/access/links.h"
#include "fitness/model/access/cache.h"

#include <math.h>
#include <stdlib.h>

#define HEADER_BYTES 16 /* of a packet: one flit of NVLink */

/* Bytes of a rank that cross its links to one peer. */
typedef struct link_peer {
    double loaded, stored; /* by the rank, of the peer's memory */
    double given, taken;   /* the peer's loads and stores of the rank's */
} link_peer;

struct model_links {
    const model_buffer *memory; /* by rank */
    uint32_t count, self, last;
    model_reach reach;
    link_peer *peers;
};

ev_status model_links_make(const model_ranks *ranks, model_links **out, ev_error *err) {
    model_links *l = calloc(1, sizeof *l);
    if (l != NULL)
        *l = (model_links){.memory = ranks->memory,
                           .count = ranks->count,
                           .self = ranks->self,
                           .last = ranks->self,
                           .reach = ranks->reach,
                           .peers = calloc(ranks->count, sizeof *l->peers)};
    *out = l;
    if (l != NULL && l->peers != NULL)
        return EV_OK;
    model_links_free(l);
    *out = NULL;
    return ev_fail_memory(err, ranks->count * sizeof *l->peers);
}

void model_links_free(model_links *l) {
    if (l == NULL)
        return;
    free(l->peers);
    free(l);
}

static bool is_far(const model_links *l, uint32_t peer) {
    uint32_t half = (l->count + 1) / 2;
    return l->reach == MODEL_TWO_NODES && (l->self < half) != (peer < half);
}

model_place model_links_place(model_links *l, uint64_t line) {
    uint64_t address = line * CACHE_LINE_BYTES;
    if (l->reach == MODEL_ONE_GPU)
        return MODEL_PLACE_OWN;
    uint32_t rank = l->last;
    for (uint32_t n = 0; n < l->count; n++, rank = rank + 1 == l->count ? 0 : rank + 1) {
        if (address - l->memory[rank].address >= l->memory[rank].bytes)
            continue;
        l->last = rank;
        if (rank == l->self)
            return MODEL_PLACE_OWN;
        if (is_far(l, rank))
            return MODEL_PLACE_FAR;
        return MODEL_PLACE_PEER;
    }
    return MODEL_PLACE_OWN;
}

void model_links_add(model_links *l, unsigned sectors, bool is_store, double weight) {
    double bytes = weight * (32.0 * sectors + HEADER_BYTES);
    link_peer *p = &l->peers[l->last];
    *(is_store ? &p->stored : &p->loaded) += bytes;
}

void model_links_join(model_links *l, uint32_t rank, const model_links *peer, uint32_t index) {
    l->peers[index].given = peer->peers[rank].loaded;
    l->peers[index].taken = peer->peers[rank].stored;
}

double model_links_ns(const model_links *l, const gpu *g, double *in, double *out) {
    double into[2] = {0}, from[2] = {0};
    for (uint32_t i = 0; i < l->count; i++) {
        const link_peer *p = &l->peers[i];
        bool far = is_far(l, i);
        into[far] += p->loaded + p->taken;
        from[far] += p->stored + p->given;
    }
    *in = into[0] + into[1];
    *out = from[0] + from[1];
    double near = fmax(into[0], from[0]) / gpu_get(g, GPU_LINK_GBS);
    double far = fmax(into[1], from[1]) / gpu_get(g, GPU_NETWORK_GBS);
    return fmax(near, far);
}
