/* The signature of an open bundle: manifest.sig is one line, "ed25519 KEY SIGNATURE", over the
 * bytes of manifest.json, which has the hashes of all other files. */
#include "bundle/read.h"

#include "bundle/sign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES (sizeof "ed25519  " - 1 + SIGN_PUBLIC_HEX - 1 + SIGN_HEX - 1)

static ev_status read_line(bundle *b, char signature[SIGN_HEX], ev_error *err) {
    char *text = NULL, kind[8], end = '\0';
    size_t bytes = 0;
    EV_TRY(store_read(b->files, BUNDLE_SIGNATURE, &text, &bytes, err));
    bool fits = bytes == LINE_BYTES + 1 && strlen(text) == bytes &&
                sscanf(text, "%7[a-z0-9] %64[0-9a-f] %128[0-9a-f]%c", kind, b->signer, signature,
                       &end) == 4 &&
                strcmp(kind, "ed25519") == 0 && end == '\n';
    free(text);
    if (fits && strlen(b->signer) == SIGN_PUBLIC_HEX - 1 && strlen(signature) == SIGN_HEX - 1)
        return EV_OK;
    b->signer[0] = '\0';
    return ev_fail(err, EV_BAD,
                   "the bundle %s is damaged: %s is no signature (\"ed25519 KEY SIGNATURE\"); "
                   "sign the bundle again",
                   store_name(b->files), BUNDLE_SIGNATURE);
}

static bool is_trusted(const bundle_trust *trust, const char *signer) {
    for (size_t i = 0; i < trust->count; i++) {
        if (strcmp(trust->keys[i], signer) == 0)
            return true;
    }
    return false;
}

ev_status reading_signature(bundle *b, const bundle_trust *trust, const char *manifest,
                            size_t bytes, ev_error *err) {
    char signature[SIGN_HEX] = "";
    bool holds = false;
    if (!store_has(b->files, BUNDLE_SIGNATURE))
        return EV_OK; /* reading_signer tells, once the manifest is known */
    EV_TRY(read_line(b, signature, err));
    if (trust != NULL && !is_trusted(trust, b->signer))
        return ev_fail(
            err, EV_BAD,
            "the bundle %s has a foreign signature: it is signed by the key %s, which is "
            "none of those that are trusted",
            store_name(b->files), b->signer);
    EV_TRY(sign_holds(b->signer, signature, manifest, bytes, &holds, err));
    if (!holds)
        return ev_fail(err, EV_BAD,
                       "the bundle %s has a wrong signature: manifest.json is not what the key %s "
                       "signed",
                       store_name(b->files), b->signer);
    b->is_trusted = trust != NULL;
    return EV_OK;
}

ev_status reading_signer(const bundle *b, const bundle_trust *trust, ev_error *err) {
    const char *named = ev_json_text(b->doc->root, "signer", "");
    if (named[0] != '\0' && b->signer[0] == '\0')
        return ev_fail(err, EV_BAD,
                       "the bundle %s is stripped of its signature: its manifest names the signer "
                       "%s, and there is no %s",
                       store_name(b->files), named, BUNDLE_SIGNATURE);
    if (strcmp(named, b->signer) != 0)
        return ev_fail(err, EV_BAD,
                       "the bundle %s has a foreign signature: it is signed by the key %s, and its "
                       "manifest names %s",
                       store_name(b->files), b->signer, named[0] != '\0' ? named : "no signer");
    if (trust != NULL && b->signer[0] == '\0')
        return ev_fail(err, EV_BAD,
                       "the bundle %s has no signature, and only signed ones are trusted; sign it "
                       "with evoke export --sign KEY",
                       store_name(b->files));
    return EV_OK;
}

const char *bundle_signer(const bundle *b) {
    return b->signer[0] != '\0' ? b->signer : NULL;
}

bool bundle_is_trusted(const bundle *b) {
    return b->is_trusted;
}
