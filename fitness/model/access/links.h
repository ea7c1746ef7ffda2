/* Links: the bytes that a rank moves to and from its peers' memory, and the time that the links
 * need (docs/ranks.md). A line is address / 128. */
#ifndef FITNESS_MODEL_ACCESS_LINKS_H
#define FITNESS_MODEL_ACCESS_LINKS_H

#include "fitness/model/model.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct model_links model_links;

typedef enum model_place {
    MODEL_PLACE_OWN,
    MODEL_PLACE_PEER, /* of a peer on the same node */
    MODEL_PLACE_FAR,  /* of a peer on another node */
} model_place;

ev_status model_links_make(const model_ranks *ranks, model_links **out, ev_error *err) EV_CHECKED;
void model_links_free(model_links *links); /* NULL is fine */
/* The place of a line. Notes the line for model_links_add. */
model_place model_links_place(model_links *links, uint64_t line);
/* Adds `sectors` sectors of the line placed last to the traffic of its link, `weight` times. */
void model_links_add(model_links *links, unsigned sectors, bool is_store, double weight);
/* Adds the traffic that the peer `index` caused in the memory of `rank`, the owner of `links`. */
void model_links_join(model_links *links, uint32_t rank, const model_links *peer, uint32_t index);
/* The ns that the links need for all traffic; *in and *out: bytes in each direction. */
double model_links_ns(const model_links *links, const gpu *g, double *in, double *out);

#endif
