/* Sign: Ed25519 signatures (RFC 8032) by libcrypto. Public keys and signatures are lower-case hex
 * digits, private keys PEM as `openssl genpkey -algorithm ed25519` writes them. */
#ifndef BUNDLE_SIGN_H
#define BUNDLE_SIGN_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

#define SIGN_PUBLIC_HEX 65 /* 64 digits and the NUL */
#define SIGN_HEX 129       /* 128 digits and the NUL */

typedef struct sign_key sign_key; /* a private key */

/* EV_BAD: no such file, no PEM of an Ed25519 key, or a key with a password. */
ev_status sign_key_read(const char *path, sign_key **out, ev_error *err) EV_CHECKED;
void sign_key_free(sign_key *key); /* NULL is fine */
const char *sign_key_public(const sign_key *key);

/* A public key from 64 hex digits or a PEM ("-----BEGIN PUBLIC KEY-----"). EV_BAD: neither. */
ev_status sign_public(const char *text, char out[SIGN_PUBLIC_HEX], ev_error *err) EV_CHECKED;

ev_status sign_make(const sign_key *key, const void *data, size_t bytes, char out[SIGN_HEX],
                    ev_error *err) EV_CHECKED;
/* Whether a signature holds. EV_BAD: the public key or the signature is malformed. */
ev_status sign_holds(const char *public_hex, const char *signature, const void *data, size_t bytes,
                     bool *holds, ev_error *err) EV_CHECKED;

#endif
