/* Base64: the vectors of RFC 4648 (section 10), all bytes, and texts that are none. */
#include "base/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *bytes, *text;
} vectors[] = {{"", ""},
               {"f", "Zg=="},
               {"fo", "Zm8="},
               {"foo", "Zm9v"},
               {"foob", "Zm9vYg=="},
               {"fooba", "Zm9vYmE="},
               {"foobar", "Zm9vYmFy"}};

static void vectors_both_ways(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        ev_error err;
        ev_str back = EV_STR_EMPTY;
        char *text = ev_base64_encode(vectors[i].bytes, strlen(vectors[i].bytes));
        assert_string_equal(text, vectors[i].text);
        assert_int_equal(ev_base64_decode(text, &back, &err), EV_OK);
        assert_string_equal(ev_str_text(&back), vectors[i].bytes);
        ev_str_free(&back);
        free(text);
    }
}

static void any_bytes_come_back(void **state) {
    (void)state;
    unsigned char bytes[256];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 167);
    for (size_t length = 0; length <= sizeof bytes; length++) {
        ev_error err;
        ev_str back = EV_STR_EMPTY;
        ev_str_append(&back, "before");
        char *text = ev_base64_encode(bytes, length);
        assert_int_equal(ev_base64_decode(text, &back, &err), EV_OK);
        assert_int_equal(back.length, 6 + length);
        assert_memory_equal(back.data + 6, bytes, length);
        ev_str_free(&back);
        free(text);
    }
}

static void other_texts_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "Z",    "Zg",       "Zg=",  "-",    "Zm9v\n", " Zm9v", "Zm 9v", "Zg==Zg",
        "=m9v", "Zm9v====", "Zm=v", "====", "Zm9*",   "Z===",  "Zg==\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ev_error err;
        ev_str back = EV_STR_EMPTY;
        if (ev_base64_decode(bad[i], &back, &err) != EV_BAD || back.length != 0)
            fail_msg("'%s' was taken", bad[i]);
        ev_str_free(&back);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_both_ways),
        cmocka_unit_test(any_bytes_come_back),
        cmocka_unit_test(other_texts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
