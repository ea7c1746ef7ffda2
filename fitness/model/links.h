/* Links: what a rank moves to and from its peers' memory. */
#ifndef FITNESS_MODEL_LINKS_H
#define FITNESS_MODEL_LINKS_H

#include "fitness/model/model.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct model_links model_links;

typedef enum model_place {
    MODEL_PLACE_OWN,
    MODEL_PLACE_PEER, /* on the same node */
    MODEL_PLACE_FAR,  /* on another */
} model_place;

ev_status model_links_make(const model_ranks *ranks, model_links **out, ev_error *err) EV_CHECKED;
void model_links_free(model_links *links); /* NULL is fine */
/* Where a line (address / 128) is. */
model_place model_links_place(model_links *links, uint64_t line);
/* So many sectors of the line that was placed last cross the link. */
void model_links_add(model_links *links, unsigned sectors, bool is_store, double weight);
/* What the peer `index` loaded and stored of the memory of `rank`, whose links these are. */
void model_links_join(model_links *links, uint32_t rank, const model_links *peer, uint32_t index);
/* Time that the links need for all, and bytes of both directions. */
double model_links_ns(const model_links *links, const gpu *g, double *in, double *out);

#endif
