/* Known: which code was scored before, and in which child. A hash table from SHA-256 to child. */
#ifndef TUNER_SEARCH_KNOWN_H
#define TUNER_SEARCH_KNOWN_H

#include "base/hash.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct known known;

known *known_new(void);    /* NULL: out of memory */
void known_free(known *k); /* NULL is fine */
bool known_find(const known *k, const ev_sha256 *key, uint64_t *child);
/* The first child of a key stays. */
ev_status known_add(known *k, const ev_sha256 *key, uint64_t child, ev_error *err) EV_CHECKED;

#endif
