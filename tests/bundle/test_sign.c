/* Signed bundles: RFC 8032's vectors, keys that are none, and every signature that must not be
 * taken, by the reader and by the library. */
#include "bundle/sign.h"

#include "base/file.h"
#include "base/str.h"
#include "bundle/bundle.h"
#include "tests/bundle/sample.h"

#include <evoke/bundle.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* RFC 8032, 7.1, TEST 1 and TEST 2, as PKCS 8. */
#define PRIVATE(text) "-----BEGIN PRIVATE KEY-----\n" text "\n-----END PRIVATE KEY-----\n"
static const char *const private_keys[] = {
    PRIVATE("MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g"),
    PRIVATE("MC4CAQAwBQYDK2VwBCIEIEzNCJso/5banbbDRuwRTg9bijGfNaumJNqM9u1PuKb7")};
static const char *const public_keys[] = {
    "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
    "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"};
static const char public_pem[] = "-----BEGIN PUBLIC KEY-----\n"
                                 "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n"
                                 "-----END PUBLIC KEY-----\n";
static const char *const signatures[] = {
    "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b4"
    "6bd25bf5f0595bbe24655141438e7a100b",
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d"
    "8c387b2eaeb4302aeeb00d291612bb0c00"};

static void write(const char *name, const char *text) {
    ev_error err = {0};
    if (ev_file_write(sample_path(name), text, strlen(text), &err) != EV_OK)
        fail_msg("%s", err.text);
}

static char *read(const char *name) {
    char *text = NULL;
    size_t bytes = 0;
    ev_error err = {0};
    if (ev_file_read(sample_path(name), &text, &bytes, &err) != EV_OK)
        fail_msg("%s", err.text);
    return text;
}

static sign_key *key_of(size_t index) {
    sign_key *key = NULL;
    ev_error err = {0};
    write("key.pem", private_keys[index]);
    if (sign_key_read(sample_path("key.pem"), &key, &err) != EV_OK)
        fail_msg("%s", err.text);
    return key;
}

static void the_vectors_of_rfc_8032(void **state) {
    (void)state;
    static const char *const messages[] = {"", "\x72"};
    for (size_t i = 0; i < 2; i++) {
        char made[SIGN_HEX];
        bool holds = false;
        ev_error err = {0};
        size_t bytes = strlen(messages[i]);
        sign_key *key = key_of(i);
        assert_string_equal(sign_key_public(key), public_keys[i]);
        assert_int_equal(sign_make(key, messages[i], bytes, made, &err), EV_OK);
        assert_string_equal(made, signatures[i]);
        assert_int_equal(sign_holds(public_keys[i], made, messages[i], bytes, &holds, &err), EV_OK);
        assert_true(holds);
        assert_int_equal(sign_holds(public_keys[i], made, "x", 1, &holds, &err), EV_OK);
        assert_false(holds);
        assert_int_equal(sign_holds(public_keys[1 - i], made, messages[i], bytes, &holds, &err),
                         EV_OK);
        assert_false(holds);
        assert_int_equal(sign_holds("00", made, "x", 1, &holds, &err), EV_BAD);
        sign_key_free(key);
    }
}

/* With a password, for key exchange, the public half, no PEM. */
static void keys_that_are_none(void **state) {
    (void)state;
    const char *const texts[] = {
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
        "MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAhdO4qIJ/AWzAICCAAw\n"
        "DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEG9hDai8uKYooa150jxywNgEQFy9\n"
        "Myt0IOVIAZVLMZL32hfOeRRCjkrOe+z/pxmjCbTtUJe6pHxUc8duvm0Gos1e7hBk\n"
        "/dWhBuRMpIyG8Ul/+OQ=\n-----END ENCRYPTED PRIVATE KEY-----\n",
        PRIVATE("MC4CAQAwBQYDK2VuBCIEIBgkBl5WPLfIOH8934wJdeMdwccVsufet3BRrF6ACpVI"), public_pem,
        "key", ""};
    ev_error err = {0};
    sign_key *key = NULL;
    char out[SIGN_PUBLIC_HEX];
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        write("key.pem", texts[i]);
        assert_int_equal(sign_key_read(sample_path("key.pem"), &key, &err), EV_BAD);
        assert_non_null(strstr(err.text, "holds no Ed25519 key in PEM without a password"));
    }
    assert_int_equal(sign_key_read(sample_path("none.pem"), &key, &err), EV_BAD);
    assert_int_equal(sign_public(public_pem, out, &err), EV_OK);
    assert_string_equal(out, public_keys[0]);
    assert_int_equal(sign_public(public_keys[1], out, &err), EV_OK);
    assert_int_equal(sign_public(private_keys[0], out, &err), EV_BAD);
    assert_int_equal(sign_public("d75a", out, &err), EV_BAD);
    assert_int_equal(sign_public("", out, &err), EV_BAD);
}

/* Writes the bundle again, with a signature. */
static ev_status sign_again(const char *path, const sign_key *key, ev_error *err) {
    bundle *b = NULL;
    bundle_content content;
    EV_TRY(bundle_open(path, &b, err));
    ev_arena *arena = ev_arena_new();
    ev_status status =
        arena != NULL ? bundle_content_of(b, arena, &content, err) : ev_fail_memory(err, 1);
    if (status == EV_OK)
        status = bundle_write_signed(path, &content, key, err);
    ev_arena_free(arena);
    bundle_close(b);
    return status;
}

static void write_signed(const char *name, size_t key_index) {
    ev_error err = {0};
    sign_key *key = key_of(key_index);
    if (sample_write(sample_path(name), &err) != EV_OK ||
        sign_again(sample_path(name), key, &err) != EV_OK)
        fail_msg("%s", err.text);
    sign_key_free(key);
}

static void signed_bundles_open(void **state) {
    (void)state;
    static const char *const names[] = {"s", "s.tar"};
    const bundle_trust trust = {public_keys, 1}, other = {public_keys + 1, 1};
    for (size_t i = 0; i < 2; i++) {
        bundle *b = NULL;
        ev_error err = {0};
        write_signed(names[i], 0);
        assert_int_equal(bundle_open(sample_path(names[i]), &b, &err), EV_OK);
        assert_string_equal(bundle_signer(b), public_keys[0]);
        assert_false(bundle_is_trusted(b));
        bundle_close(b);
        assert_int_equal(bundle_open_trusted(sample_path(names[i]), true, &trust, &b, &err), EV_OK);
        assert_true(bundle_is_trusted(b));
        bundle_close(b);
        assert_int_equal(bundle_open_trusted(sample_path(names[i]), true, &other, &b, &err),
                         EV_BAD);
        assert_non_null(
            strstr(err.text, "has a foreign signature: it is signed by the key d75a98"));
    }
}

/* A bundle is signed for itself: its manifest names the signer, and signing again replaces. */
static void signing_is_reproducible(void **state) {
    (void)state;
    write_signed("r", 0);
    char *first = read("r/manifest.sig");
    write_signed("r", 1);
    char *second = read("r/manifest.sig");
    assert_string_not_equal(first, second);
    write_signed("r", 0);
    char *third = read("r/manifest.sig");
    assert_string_equal(first, third);
    free(first);
    free(second);
    free(third);
}

/* "manifest.sig" gets this text, or goes (NULL); `from` in the manifest becomes `to`. */
typedef struct forged {
    const char *signature;
    const char *from, *to;
    bool is_trusting;
    const char *words;
} forged;

static void forge(const forged *f) {
    write_signed("f", 0);
    if (f->signature == NULL)
        assert_int_equal(remove(sample_path("f/manifest.sig")), 0);
    else if (f->signature[0] != '=')
        write("f/manifest.sig", f->signature);
    if (f->from != NULL) {
        char *text = read("f/manifest.json");
        char *place = strstr(text, f->from);
        assert_non_null(place);
        ev_str changed = EV_STR_EMPTY;
        ev_str_append_n(&changed, text, (size_t)(place - text));
        ev_str_append(&changed, f->to);
        ev_str_append(&changed, place + strlen(f->from));
        write("f/manifest.json", ev_str_text(&changed));
        ev_str_free(&changed);
        free(text);
    }
}

#define SIGNER "\"signer\": \"d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a\","
#define ZEROS "00000000000000000000000000000000"

static const forged forgeries[] = {
    {"=", "\"registers\": 8", "\"registers\": 9", false, "has a wrong signature"},
    {"=", "\"registers\": 8", "\"registers\": 9", true, "has a wrong signature"},
    {"=", SIGNER, "", false, "has a wrong signature"},
    {NULL, NULL, NULL, false, "is stripped of its signature"},
    {NULL, NULL, NULL, true, "is stripped of its signature"},
    {NULL, SIGNER, "", true, "has no signature, and only signed ones are trusted"},
    {"", NULL, NULL, false, "is no signature"},
    {"ed25519 00 00\n", NULL, NULL, false, "is no signature"},
    {"rsa4096 " ZEROS ZEROS " " ZEROS ZEROS ZEROS ZEROS "\n", NULL, NULL, true, "is no signature"},
    {"ed25519 " ZEROS ZEROS " " ZEROS ZEROS ZEROS ZEROS, NULL, NULL, true, "is no signature"},
    {"ed25519 " ZEROS ZEROS " " ZEROS ZEROS ZEROS ZEROS "\n", NULL, NULL, true,
     "has a foreign signature"},
    {"ed25519 d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a " ZEROS ZEROS
         ZEROS ZEROS "\n",
     NULL, NULL, true, "has a wrong signature"},
};

static void forgeries_are_refused(void **state) {
    (void)state;
    const bundle_trust trust = {public_keys, 1};
    for (size_t i = 0; i < sizeof forgeries / sizeof forgeries[0]; i++) {
        const forged *f = &forgeries[i];
        bundle *b = NULL;
        ev_error err = {0};
        forge(f);
        ev_status status =
            bundle_open_trusted(sample_path("f"), true, f->is_trusting ? &trust : NULL, &b, &err);
        if (status != EV_BAD || strstr(err.text, f->words) == NULL)
            fail_msg("row %zu: '%s' is not in: %s", i, f->words, err.text);
    }
    /* a key that signs a manifest which names another signer, or none */
    bundle *b = NULL;
    ev_error err = {0};
    char made[SIGN_HEX];
    write_signed("f", 0);
    char *manifest = read("f/manifest.json");
    sign_key *key = key_of(1);
    assert_int_equal(sign_make(key, manifest, strlen(manifest), made, &err), EV_OK);
    sign_key_free(key);
    free(manifest);
    ev_str line = EV_STR_EMPTY;
    ev_str_printf(&line, "ed25519 %s %s\n", public_keys[1], made);
    write("f/manifest.sig", ev_str_text(&line));
    ev_str_free(&line);
    assert_int_equal(bundle_open(sample_path("f"), &b, &err), EV_BAD);
    assert_non_null(strstr(err.text, "and its manifest names d75a98"));
}

static void files_stay_bound_by_their_hashes(void **state) {
    (void)state;
    ev_error err = {0};
    bundle *b = NULL;
    write_signed("h", 0);
    write("h/tasks/add/task.json", "[]\n");
    assert_int_equal(bundle_open(sample_path("h"), &b, &err), EV_BAD);
    assert_non_null(strstr(err.text, "tasks/add/task.json has the hash"));
}

static void the_library_takes_keys(void **state) {
    (void)state;
    evoke_bundle *b = NULL;
    evoke_error error = {EVOKE_OK, ""};
    ev_error err = {0};
    char *data = NULL;
    size_t bytes = 0;
    const char *const pem[] = {public_pem}, *const bad[] = {"x"};
    write_signed("l.tar", 0);
    assert_int_equal(sample_write(sample_path("plain.tar"), &err), EV_OK);
    assert_int_equal(evoke_bundle_open_trusted(sample_path("l.tar"), public_keys, 2, &b, &error),
                     EVOKE_OK);
    assert_string_equal(evoke_bundle_signer(b), public_keys[0]);
    evoke_bundle_close(b);
    assert_int_equal(ev_file_read(sample_path("l.tar"), &data, &bytes, &err), EV_OK);
    assert_int_equal(evoke_bundle_open_memory_trusted(data, bytes, pem, 1, &b, &error), EVOKE_OK);
    evoke_bundle_close(b);
    assert_int_equal(evoke_bundle_open_memory_trusted(data, bytes, public_keys + 1, 1, &b, &error),
                     EVOKE_BAD);
    assert_non_null(strstr(error.text, "foreign"));
    free(data);
    assert_int_equal(evoke_bundle_open_trusted(sample_path("plain.tar"), pem, 1, &b, &error),
                     EVOKE_BAD);
    assert_non_null(strstr(error.text, "has no signature"));
    assert_int_equal(evoke_bundle_open_trusted(sample_path("l.tar"), bad, 1, &b, &error),
                     EVOKE_BAD);
    assert_int_equal(evoke_bundle_open_trusted(sample_path("l.tar"), pem, 0, &b, &error),
                     EVOKE_BAD);
    assert_int_equal(evoke_bundle_open(sample_path("plain.tar"), &b, &error), EVOKE_OK);
    assert_null(evoke_bundle_signer(b));
    evoke_bundle_close(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_of_rfc_8032),
        cmocka_unit_test(keys_that_are_none),
        cmocka_unit_test(signed_bundles_open),
        cmocka_unit_test(signing_is_reproducible),
        cmocka_unit_test(forgeries_are_refused),
        cmocka_unit_test(files_stay_bound_by_their_hashes),
        cmocka_unit_test(the_library_takes_keys),
    };
    return cmocka_run_group_tests(tests, sample_make_folder, sample_remove_folder);
}
