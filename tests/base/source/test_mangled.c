/* Names in C++ symbols: found with their length in front, and not as parts of others. */
#include "base/source/mangled.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void names_are_found(void **state) {
    (void)state;
    static const struct {
        const char *symbol, *name, *behind; /* NULL: not there */
    } rows[] = {
        {"_ZN3ops5scaleIfEEvPfi", "scale", "IfEEvPfi"},
        {"_ZN3ops5scaleIfEEvPfi", "ops", "5scaleIfEEvPfi"},
        {"_Z3addPKfPfi", "add", "PKfPfi"},
        {"_ZL4name", "name", ""},
        {"_Z12scale_by_twov", "by_two", NULL},
        {"_Z12scale_by_twov", "cale_by_twov", NULL},
        {"_Z14abcdefgh5scaleIfE", "4abc", NULL},
        {"_ZN6scales5scaleEv", "scale", "Ev"},
        {"scale", "scale", NULL},
        {"", "scale", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *found = ev_mangled_find(rows[i].symbol, rows[i].name);
        if (rows[i].behind == NULL && found != NULL)
            fail_msg("%s in %s", rows[i].name, rows[i].symbol);
        if (rows[i].behind != NULL)
            assert_string_equal(found, rows[i].behind);
    }
}

/* A namespace may have the function's name. */
static void a_search_goes_on(void **state) {
    (void)state;
    const char *at = ev_mangled_find("_ZN5scale5scaleIfEEv", "scale");
    assert_string_equal(at, "5scaleIfEEv");
    at = ev_mangled_find(at, "scale");
    assert_string_equal(at, "IfEEv");
    assert_null(ev_mangled_find(at, "scale"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found),
        cmocka_unit_test(a_search_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
