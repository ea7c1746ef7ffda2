/* SHA-256 and the 64-bit mix. */
/* The one-way calls that libcrypto marks as old are the ones that cannot fail: the EVP calls
 * allocate, and a hash that may be absent would need a status in every place that names a thing. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/hash.h"

#include <openssl/sha.h>
#include <string.h>

_Static_assert(SHA256_DIGEST_LENGTH == EV_SHA256_BYTES, "a SHA-256 digest has 32 bytes");

ev_sha256 ev_sha256_of(const void *data, size_t bytes) {
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[EV_SHA256_BYTES];
    SHA256_CTX context;
    (void)SHA256_Init(&context);
    (void)SHA256_Update(&context, data, bytes);
    (void)SHA256_Final(digest, &context);
    ev_sha256 out;
    for (size_t i = 0; i < sizeof digest; i++) {
        out.hex[2 * i] = digits[digest[i] >> 4];
        out.hex[2 * i + 1] = digits[digest[i] & 15u];
    }
    out.hex[EV_SHA256_HEX - 1] = '\0';
    return out;
}

bool ev_sha256_equal(const ev_sha256 *a, const ev_sha256 *b) {
    return memcmp(a->hex, b->hex, sizeof a->hex) == 0;
}

uint64_t ev_mix64(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}
