/* SHA-256 by the vectors of FIPS 180-4 (NIST's examples), and the 64-bit mix. */
#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_vectors(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *hex;
    } rows[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
         "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ev_sha256 hash = ev_sha256_of(rows[i].text, strlen(rows[i].text));
        assert_string_equal(hash.hex, rows[i].hex);
    }
}

static void test_million(void **state) {
    (void)state;
    size_t bytes = 1000000;
    char *text = malloc(bytes);
    assert_non_null(text);
    memset(text, 'a', bytes);
    ev_sha256 hash = ev_sha256_of(text, bytes);
    free(text);
    assert_string_equal(hash.hex,
                        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void test_equal(void **state) {
    (void)state;
    ev_sha256 a = ev_sha256_of("a", 1), again = ev_sha256_of("a", 1), b = ev_sha256_of("b", 1);
    assert_true(ev_sha256_equal(&a, &again));
    assert_false(ev_sha256_equal(&a, &b));
}

/* SplitMix64 from seed 1234567 (Vigna's reference code): its outputs are mixes of a counter. */
static void test_mix(void **state) {
    (void)state;
    static const uint64_t golden[] = {6457827717110365317u, 3203168211198807973u,
                                      9817491932198370423u, 4593380528125082431u,
                                      16408922859458223821u};
    uint64_t counter = 1234567;
    for (size_t i = 0; i < 5; i++) {
        counter += 0x9e3779b97f4a7c15u;
        assert_true(ev_mix64(counter) == golden[i]);
    }
    assert_true(ev_mix64(0) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_million),
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
