/* Signs and verifies with libcrypto's one-shot calls: Ed25519 takes a message whole. */
#include "bundle/sign.h"

#include "base/file.h"
#include "base/str.h"

#include <ctype.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>

#define PUBLIC_BYTES 32
#define SIGNATURE_BYTES 64

struct sign_key {
    EVP_PKEY *pkey;
    char public_hex[SIGN_PUBLIC_HEX];
};

/* ---- hex ---- */

static void to_hex(const unsigned char *bytes, size_t count, char *out) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15u];
    }
    out[2 * count] = '\0';
}

static int digit_of(char c) {
    static const char digits[] = "0123456789abcdef";
    const char *at = c != '\0' ? strchr(digits, tolower((unsigned char)c)) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

/* False: not exactly 2 x count hex digits. */
static bool from_hex(const char *text, size_t count, unsigned char *out) {
    for (size_t i = 0; i < count; i++) {
        int high = digit_of(text[2 * i]);
        int low = high >= 0 ? digit_of(text[2 * i + 1]) : -1;
        if (low < 0)
            return false;
        out[i] = (unsigned char)(high * 16 + low);
    }
    return text[2 * count] == '\0';
}

/* ---- keys ---- */

/* A library does not ask at a terminal. */
static int no_password(char *buffer, int size, int is_writing, void *context) {
    (void)buffer;
    (void)size;
    (void)is_writing;
    (void)context;
    return -1;
}

static bool public_of(const EVP_PKEY *pkey, char out[SIGN_PUBLIC_HEX]) {
    unsigned char raw[PUBLIC_BYTES];
    size_t bytes = sizeof raw;
    if (pkey == NULL || EVP_PKEY_get_base_id(pkey) != EVP_PKEY_ED25519 ||
        EVP_PKEY_get_raw_public_key(pkey, raw, &bytes) != 1 || bytes != sizeof raw)
        return false;
    to_hex(raw, sizeof raw, out);
    return true;
}

static ev_status make_key(const char *path, const char *text, size_t bytes, sign_key **out,
                          ev_error *err) {
    sign_key *key = calloc(1, sizeof *key);
    BIO *bio = BIO_new_mem_buf(text, (int)bytes);
    if (key == NULL || bio == NULL) {
        free(key);
        (void)BIO_free(bio);
        return ev_fail_memory(err, sizeof *key);
    }
    key->pkey = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
    (void)BIO_free(bio);
    if (!public_of(key->pkey, key->public_hex)) {
        sign_key_free(key);
        return ev_fail(err, EV_BAD,
                       "%s holds no Ed25519 key in PEM without a password; openssl genpkey "
                       "-algorithm ed25519 -out %s makes one",
                       path, path);
    }
    *out = key;
    return EV_OK;
}

ev_status sign_key_read(const char *path, sign_key **out, ev_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    EV_TRY(ev_file_read(path, &text, &bytes, err));
    ev_status status = bytes < 65536 ? make_key(path, text, bytes, out, err)
                                     : ev_fail(err, EV_BAD, "%s is too large for a key", path);
    OPENSSL_cleanse(text, bytes);
    free(text);
    return status;
}

void sign_key_free(sign_key *key) {
    if (key == NULL)
        return;
    EVP_PKEY_free(key->pkey);
    free(key);
}

const char *sign_key_public(const sign_key *key) {
    return key->public_hex;
}

static bool public_of_pem(const char *text, char out[SIGN_PUBLIC_HEX]) {
    BIO *bio = BIO_new_mem_buf(text, -1);
    EVP_PKEY *pkey = bio != NULL ? PEM_read_bio_PUBKEY(bio, NULL, no_password, NULL) : NULL;
    bool is = public_of(pkey, out);
    EVP_PKEY_free(pkey);
    (void)BIO_free(bio);
    return is;
}

ev_status sign_public(const char *text, char out[SIGN_PUBLIC_HEX], ev_error *err) {
    unsigned char raw[PUBLIC_BYTES];
    if (from_hex(text, sizeof raw, raw)) {
        to_hex(raw, sizeof raw, out);
        return EV_OK;
    }
    if (public_of_pem(text, out))
        return EV_OK;
    return ev_fail(err, EV_BAD,
                   "this is no public Ed25519 key: 64 hex digits, or a PEM as openssl pkey -pubout "
                   "writes it: %.40s",
                   text);
}

/* ---- signatures ---- */

static ev_status fail_crypto(ev_error *err) {
    return ev_fail(err, EV_INFRA, "libcrypto cannot do Ed25519 here; is a FIPS provider set?");
}

ev_status sign_make(const sign_key *key, const void *data, size_t bytes, char out[SIGN_HEX],
                    ev_error *err) {
    unsigned char signature[SIGNATURE_BYTES];
    size_t length = sizeof signature;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool made = context != NULL && EVP_DigestSignInit(context, NULL, NULL, NULL, key->pkey) == 1 &&
                EVP_DigestSign(context, signature, &length, data, bytes) == 1 &&
                length == sizeof signature;
    EVP_MD_CTX_free(context);
    if (!made)
        return fail_crypto(err);
    to_hex(signature, sizeof signature, out);
    return EV_OK;
}

ev_status sign_holds(const char *public_hex, const char *signature, const void *data, size_t bytes,
                     bool *holds, ev_error *err) {
    unsigned char raw[PUBLIC_BYTES], made[SIGNATURE_BYTES];
    if (!from_hex(public_hex, sizeof raw, raw) || !from_hex(signature, sizeof made, made))
        return ev_fail(err, EV_BAD, "a public key has 64 hex digits, and a signature 128");
    EVP_PKEY *pkey = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, raw, sizeof raw);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool ready = pkey != NULL && context != NULL &&
                 EVP_DigestVerifyInit(context, NULL, NULL, NULL, pkey) == 1;
    if (ready)
        *holds = EVP_DigestVerify(context, made, sizeof made, data, bytes) == 1;
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(pkey);
    return ready ? EV_OK : fail_crypto(err);
}
