/* SHA-256 by libcrypto (FIPS 180-4), as bytes and as 64 lower-case hex digits. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EV_SHA256_BYTES 32
#define EV_SHA256_HEX 65 /* 64 digits and the NUL */

typedef struct ev_sha256 {
    char hex[EV_SHA256_HEX];
} ev_sha256;

ev_sha256 ev_sha256_of(const void *data, size_t bytes);
bool ev_sha256_equal(const ev_sha256 *a, const ev_sha256 *b);

/* A fast 64-bit mix (SplitMix64's finaliser, Steele et al. 2014): for hash tables and counter-based
 * generators, not for identity. */
uint64_t ev_mix64(uint64_t x);

#endif
