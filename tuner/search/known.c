/* Known: a hash table with open addressing. Its keys are SHA-256 sums, whose bytes are uniform, so
 * they need no further hash. */
#include "tuner/search/known.h"

#include <stdlib.h>
#include <string.h>

typedef struct slot {
    uint8_t key[EV_SHA256_BYTES];
    uint64_t child_plus_1; /* 0: free */
} slot;

struct known {
    slot *slots;
    size_t capacity; /* a power of two */
    size_t count;
};

known *known_new(void) {
    known *k = calloc(1, sizeof *k);
    if (!k)
        return NULL;
    k->capacity = 1024;
    k->slots = calloc(k->capacity, sizeof *k->slots);
    if (k->slots)
        return k;
    free(k);
    return NULL;
}

void known_free(known *k) {
    if (k)
        free(k->slots);
    free(k);
}

static uint8_t digit(char c) {
    return (uint8_t)(c >= 'a' ? c - 'a' + 10 : c - '0');
}

static void bytes_of(const ev_sha256 *key, uint8_t bytes[EV_SHA256_BYTES]) {
    for (size_t i = 0; i < EV_SHA256_BYTES; i++)
        bytes[i] = (uint8_t)(digit(key->hex[2 * i]) << 4 | digit(key->hex[2 * i + 1]));
}

/* The key's slot, or the free slot for a new key. */
static slot *find_slot(slot *slots, size_t capacity, const uint8_t bytes[EV_SHA256_BYTES]) {
    size_t at = 0;
    memcpy(&at, bytes, sizeof at);
    for (at &= capacity - 1; slots[at].child_plus_1 != 0; at = (at + 1) & (capacity - 1)) {
        if (memcmp(slots[at].key, bytes, EV_SHA256_BYTES) == 0)
            break;
    }
    return &slots[at];
}

bool known_find(const known *k, const ev_sha256 *key, uint64_t *child) {
    uint8_t bytes[EV_SHA256_BYTES];
    bytes_of(key, bytes);
    const slot *s = find_slot(k->slots, k->capacity, bytes);
    if (s->child_plus_1 == 0)
        return false;
    *child = s->child_plus_1 - 1;
    return true;
}

static ev_status grow(known *k, ev_error *err) {
    size_t capacity = 2 * k->capacity;
    slot *slots = calloc(capacity, sizeof *slots);
    if (!slots)
        return ev_fail_memory(err, capacity * sizeof *slots);
    for (size_t i = 0; i < k->capacity; i++) {
        if (k->slots[i].child_plus_1 != 0)
            *find_slot(slots, capacity, k->slots[i].key) = k->slots[i];
    }
    free(k->slots);
    k->slots = slots;
    k->capacity = capacity;
    return EV_OK;
}

ev_status known_add(known *k, const ev_sha256 *key, uint64_t child, ev_error *err) {
    if (2 * k->count >= k->capacity)
        EV_TRY(grow(k, err));
    uint8_t bytes[EV_SHA256_BYTES];
    bytes_of(key, bytes);
    slot *s = find_slot(k->slots, k->capacity, bytes);
    if (s->child_plus_1 != 0)
        return EV_OK;
    memcpy(s->key, bytes, sizeof bytes);
    s->child_plus_1 = child + 1;
    k->count++;
    return EV_OK;
}
