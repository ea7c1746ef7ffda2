/* Shapes as text, and the buffers that a kernel takes at a shape: what a program needs before it
 * allocates. */
#include "base/file.h"
#include "tests/bundle/sample.h"

#include <evoke/bundle.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void reads_shapes(void **state) {
    (void)state;
    char spaces[] = " M=1024  N=64\n", commas[] = "k_1=0.5,n=-3,e=1e3", none[] = " \n";
    evoke_number numbers[3];
    evoke_shape shape = {NULL, 9};
    evoke_error error;
    assert_int_equal(evoke_shape_read(spaces, numbers, 3, &shape, &error), EVOKE_OK);
    assert_true(shape.numbers == numbers && shape.count == 2);
    assert_string_equal(numbers[0].name, "M");
    assert_string_equal(numbers[1].name, "N");
    assert_true(numbers[0].value == 1024 && numbers[1].value == 64);
    assert_int_equal(evoke_shape_read(commas, numbers, 3, &shape, &error), EVOKE_OK);
    assert_string_equal(numbers[0].name, "k_1");
    assert_true(shape.count == 3 && numbers[0].value == 0.5 && numbers[1].value == -3 &&
                numbers[2].value == 1000);
    assert_int_equal(evoke_shape_read(none, numbers, 3, &shape, &error), EVOKE_OK);
    assert_int_equal(shape.count, 0);
}

static void bad_shapes_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"M=1 N", "column 5 of the shape: there must be NAME=NUMBER, and not 'N'"},
        {"=1", "column 1"},
        {"2=1", "column 1"},
        {"M =1", "column 1"},
        {"M=", "column 1 of the shape: 'M' must be a decimal number, and not ''"},
        {"M= 1", "'M' must be a decimal number"},
        {"N=1,M=0x10", "column 5 of the shape: 'M' must be a decimal number, and not '0x10'"},
        {"M=1.5.2", "'M' must be"},
        {"M=1=2", "'M' must be"},
        {"M=1;N=2", "'M' must be"},
        {"M=inf", "'M' must be"},
        {"M=nan", "'M' must be"},
        {"M=1e999", "'M' must be"},
        {"M=1 N=2 M=1", "the shape has 'M' twice"},
        {"A=1 B=2 C=3 D=4", "more than 3 numbers"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        evoke_number numbers[3];
        evoke_shape shape = {NULL, 9};
        evoke_error error;
        char text[64];
        (void)snprintf(text, sizeof text, "%s", rows[i].text);
        assert_int_equal(evoke_shape_read(text, numbers, 3, &shape, &error), EVOKE_BAD);
        if (strstr(error.text, rows[i].why) == NULL)
            fail_msg("%s: %s", rows[i].text, error.text);
        assert_true(shape.numbers == NULL && shape.count == 9);
    }
}

static evoke_bundle *open_sample(void) {
    evoke_bundle *b = NULL;
    evoke_error error;
    ev_error err = {0};
    if (sample_write(sample_path("b"), &err) != EV_OK)
        fail_msg("%s", err.text);
    if (evoke_bundle_open(sample_path("b"), &b, &error) != EVOKE_OK)
        fail_msg("%s", error.text);
    return b;
}

/* Of the sample's arguments x, y, n, scale, two are buffers of N numbers. */
static void lists_buffers(void **state) {
    (void)state;
    char text[] = "N=128";
    evoke_bundle *b = open_sample();
    evoke_argument arguments[2];
    evoke_buffer buffers[3] = {{1, 1}, {1, 1}, {7, 8}};
    evoke_number number;
    evoke_shape shape;
    evoke_error error;
    size_t count = 0;
    assert_int_equal(evoke_shape_read(text, &number, 1, &shape, &error), EVOKE_OK);
    assert_int_equal(evoke_bundle_buffers(b, "add", &shape, 2, arguments, buffers, &count, &error),
                     EVOKE_OK);
    assert_int_equal(count, 2);
    assert_string_equal(arguments[0].name, "x");
    assert_string_equal(arguments[1].name, "y");
    assert_true(arguments[0].kind == EVOKE_IN && arguments[1].kind == EVOKE_OUT);
    assert_true(buffers[0].address == 0 && buffers[0].bytes == 512);
    assert_true(buffers[1].address == 0 && buffers[1].bytes == 512);
    assert_true(buffers[2].address == 7 && buffers[2].bytes == 8);
    assert_int_equal(evoke_bundle_buffers(b, "add", &shape, 3, NULL, buffers, &count, NULL),
                     EVOKE_OK);
    evoke_bundle_close(b);
}

static void bad_lists_are_refused(void **state) {
    (void)state;
    evoke_bundle *b = open_sample();
    evoke_buffer buffers[2] = {{1, 1}, {1, 1}};
    evoke_number number = {"N", 128};
    const evoke_shape shape = {&number, 1}, none = {&number, 0};
    evoke_error error;
    size_t count = 9;
    assert_int_equal(evoke_bundle_buffers(b, "add", &shape, 1, NULL, buffers, &count, &error),
                     EVOKE_BAD);
    assert_string_equal(error.text, "add takes 2 buffers, and there is room for 1");
    assert_int_equal(evoke_bundle_buffers(b, "add", &none, 2, NULL, buffers, &count, &error),
                     EVOKE_BAD);
    assert_non_null(strstr(error.text, "the shape lacks 'N'"));
    assert_int_equal(evoke_bundle_buffers(b, "sub", &shape, 2, NULL, buffers, &count, &error),
                     EVOKE_BAD);
    assert_true(count == 9 && buffers[0].address == 1 && buffers[1].bytes == 1);
    evoke_bundle_close(b);
}

/* A program in a locale with decimal commas reads the same numbers, the manifest's expressions
 * too. Skipped where such a locale cannot be made. */
static void the_locale_does_not_matter(void **state) {
    (void)state;
    char command[600], text[] = "M=0.5";
    evoke_number number;
    evoke_shape shape;
    evoke_error error;
    (void)snprintf(command, sizeof command,
                   "localedef -i de_DE -f UTF-8 --no-archive '%s' >/dev/null 2>&1",
                   sample_path("de_DE.utf8"));
    int made = system(command); /* NOLINT(cert-env33-c): the system's localedef */
    if (made != 0 || setenv("LOCPATH", sample_path("."), 1) != 0 ||
        setlocale(LC_ALL, "de_DE.utf8") == NULL)
        skip();
    assert_string_equal(localeconv()->decimal_point, ",");
    assert_int_equal(evoke_shape_read(text, &number, 1, &shape, &error), EVOKE_OK);
    assert_true(number.value == 0.5);
    evoke_bundle_close(open_sample()); /* one of its expressions is "4.0 / 2" */
    assert_non_null(setlocale(LC_ALL, "C"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_shapes),
        cmocka_unit_test(bad_shapes_are_refused),
        cmocka_unit_test(lists_buffers),
        cmocka_unit_test(bad_lists_are_refused),
        cmocka_unit_test(the_locale_does_not_matter),
    };
    return cmocka_run_group_tests(tests, sample_make_folder, sample_remove_folder);
}
