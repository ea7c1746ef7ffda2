/* Known: a hash table from the SHA-256 of a genome, of code or of a fingerprint to the first
 * committed child that has it. */
#ifndef TUNER_SEARCH_KNOWN_H
#define TUNER_SEARCH_KNOWN_H

#include "base/hash.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct known known;

known *known_new(void);    /* NULL: out of memory */
void known_free(known *k); /* NULL is fine */
/* False: no child has the key, and *child is not set. */
bool known_find(const known *k, const ev_sha256 *key, uint64_t *child);
/* Adds a key. A key that is there keeps its first child. Fails only for want of memory. */
ev_status known_add(known *k, const ev_sha256 *key, uint64_t child, ev_error *err) EV_CHECKED;

#endif
