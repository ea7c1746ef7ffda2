/* JSON: errors with line and column, key tables, places in the text, printing. */
#include "base/json.h"

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Parses text that must be right. */
static ev_json *parsed(const char *text) {
    ev_json *doc = NULL;
    ev_error err = {0};
    if (ev_json_parse(text, "task.json", &doc, &err) != EV_OK)
        fail_msg("%s", err.text);
    return doc;
}

static void test_syntax_errors(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *place; /* the message starts with it */
        const char *words; /* and has this in it */
    } rows[] = {
        {"", "t:1:1: ", "expected"},
        {"{\"a\": 1,, \"b\": 2}", "t:1:9: ", "expected"},
        {"{\n  \"a\": 1\n  \"b\": 2\n}", "t:3:3: ", "'}' expected near '\"b\"'"},
        {"{\n  \"a\": tru\n}", "t:2:8: ", "invalid token near 'tru'"},
        {"{\n  \"a\": 1,\n  \"a\": 2\n}", "t:3:3: ", "duplicate object key near '\"a\"'"},
        {"[1, 2", "t:1:6: ", "near end of file"},
        {"{\"a\": 1} trailing", "t:1:10: ", "end of file expected near 'trailing'"},
        {"{\"\xc3\xa9\xc3\xa9\": oops}", "t:1:8: ", "invalid token near 'oops'"},
        {"3", "t:1:1: ", "'[' or '{' expected"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ev_json *doc = NULL;
        ev_error err = {0};
        assert_int_equal(ev_json_parse(rows[i].text, "t", &doc, &err), EV_BAD);
        assert_null(doc);
        err.text[strnlen(err.text, 300)] = '\0';
        if (strncmp(err.text, rows[i].place, strlen(rows[i].place)) != 0 ||
            strstr(err.text, rows[i].words) == NULL)
            fail_msg("row %zu: %s", i, err.text);
    }
}

static const ev_json_key KEYS[] = {
    {"entry", EV_JSON_STRING, true, "the kernel's name"},
    {"tolerance", EV_JSON_NUMBER, true, "largest relative error"},
    {"ranks", EV_JSON_INTEGER, false, "how many ranks"},
    {"strict", EV_JSON_BOOL, false, ""},
    {"cases", EV_JSON_ARRAY, false, ""},
    {"launch", EV_JSON_OBJECT, false, ""},
    {"note", EV_JSON_ANY, false, ""},
};
#define KEY_COUNT (sizeof KEYS / sizeof KEYS[0])

/* What the check of the value at `where` says: "" if it passes. */
static const char *check_text(const char *text, const char *where, const char *member,
                              ev_error *err) {
    ev_json *doc = parsed(text);
    const json_t *object = member == NULL ? doc->root : json_object_get(doc->root, member);
    err->text[0] = '\0';
    ev_status status = ev_json_check(doc, object, where, KEYS, KEY_COUNT, err);
    assert_int_equal(status, err->text[0] == '\0' ? EV_OK : EV_BAD);
    ev_json_free(doc);
    return err->text;
}

static void test_key_table(void **state) {
    (void)state;
    ev_error err = {0};
    assert_string_equal(check_text("{\"entry\":\"k\",\"tolerance\":1,\"ranks\":4,\"strict\":false,"
                                   "\"cases\":[],\"launch\":{},\"note\":null}",
                                   "", NULL, &err),
                        "");
    assert_string_equal(check_text("{\"entry\":\"k\",\n \"tolerence\":1}", "", NULL, &err),
                        "task.json:2:2: unknown key 'tolerence'; did you mean 'tolerance'? Known "
                        "keys: entry, tolerance, ranks, strict, cases, launch, note");
    assert_string_equal(check_text("{\"zzzzzz\":1}", "", NULL, &err),
                        "task.json:1:2: unknown key 'zzzzzz'; known keys: entry, tolerance, ranks, "
                        "strict, cases, launch, note");
    assert_string_equal(check_text("\n {\"entry\":\"k\"}", "", NULL, &err),
                        "task.json:2:2: the key 'tolerance' is missing (a number: largest relative "
                        "error)");
    assert_string_equal(check_text("{\"entry\":\"k\",\"tolerance\":\"0.1\"}", "", NULL, &err),
                        "task.json:1:26: 'tolerance' must be a number, and this is a string");
    assert_string_equal(
        check_text("{\"entry\":\"k\",\"tolerance\":1,\n\"ranks\":1.0}", "", NULL, &err),
        "task.json:2:9: 'ranks' must be an integer, and this is a real number");
    assert_string_equal(check_text("[1]", "", NULL, &err),
                        "task.json:1:1: the document must be an object, and this is an array");
    assert_string_equal(
        check_text("{\"launch\":\n {\"entry\":\"k\",\n  \"rnaks\":1}}", "launch", "launch", &err),
        "task.json:3:3: unknown key 'rnaks'; did you mean 'ranks'? Known keys: entry, tolerance, "
        "ranks, strict, cases, launch, note");
    assert_string_equal(check_text("{\"launch\": 7}", "launch", "launch", &err),
                        "task.json:1:12: launch must be an object, and this is an integer");
}

/* A key that is spelt with escapes is still found at its place. */
static void test_escaped_key(void **state) {
    (void)state;
    ev_error err = {0};
    const char *got =
        check_text("{\"entry\":\"\\\"}\",\"tolerance\":1,\n\"r\\u0061nkz\":3}", "", NULL, &err);
    assert_memory_equal(got, "task.json:2:1: unknown key 'rankz'; did you mean 'ranks'?", 57);
}

static void check_place(const ev_json *doc, const char *where, bool at_key, int line, int column) {
    int got_line = 0, got_column = 0;
    if (!ev_json_locate(doc, where, at_key, &got_line, &got_column))
        fail_msg("%s was not found", where);
    if (got_line != line || got_column != column)
        fail_msg("%s: %d:%d", where, got_line, got_column);
}

static void test_locate(void **state) {
    (void)state;
    ev_json *doc = parsed("{ \"name\": \"a]}\\\"{[\",\n"
                          "  \"cases\": [ {\"shape\": [1, [2,3], 4]},\n"
                          "    [],\n"
                          "    {\"other\": {}, \"shape\" :  \"x\"} ],\n"
                          "  \"last\": -1.5e3 }\n");
    check_place(doc, "", false, 1, 1);
    check_place(doc, "name", false, 1, 11);
    check_place(doc, "name", true, 1, 3);
    check_place(doc, "cases", false, 2, 12);
    check_place(doc, "cases[0]", false, 2, 14);
    check_place(doc, "cases[0].shape[1]", false, 2, 28);
    check_place(doc, "cases[0].shape[1][1]", false, 2, 31);
    check_place(doc, "cases[1]", true, 3, 5);
    check_place(doc, "cases[2].shape", false, 4, 30);
    check_place(doc, "cases[2].shape", true, 4, 19);
    check_place(doc, "last", false, 5, 11);
    static const char *const absent[] = {"nam",          "names",    "cases[3]", "cases[1][0]",
                                         "cases[0].x",   "last[0]",  "last.x",   "cases[",
                                         "cases[0].sha", "cases[x]", "name.x"};
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        int line = 77, column = 77;
        assert_false(ev_json_locate(doc, absent[i], false, &line, &column));
        assert_int_equal(line, 77);
    }
    ev_json_free(doc);
}

static void test_fail(void **state) {
    (void)state;
    ev_json *doc = parsed("{\"cases\": [\n {\"m\": 0}]}");
    ev_error err = {0};
    assert_int_equal(ev_json_fail(doc, "cases[0].m", &err, "m is %d; it must be positive", 0),
                     EV_BAD);
    assert_string_equal(err.text, "task.json:2:8: m is 0; it must be positive");
    (void)ev_json_fail(doc, "cases[0].absent.deeper", &err, "n is missing");
    assert_string_equal(err.text, "task.json:2:2: n is missing");
    (void)ev_json_fail(doc, "nowhere", &err, "hm");
    assert_string_equal(err.text, "task.json:1:1: hm");
    ev_json_free(doc);
}

static void test_typed_reads(void **state) {
    (void)state;
    ev_json *doc = parsed("{\"s\": \"t\", \"i\": 7, \"r\": 2.5, \"b\": true}");
    assert_string_equal(ev_json_text(doc->root, "s", "d"), "t");
    assert_string_equal(ev_json_text(doc->root, "none", "d"), "d");
    assert_int_equal(ev_json_integer(doc->root, "i", 1), 7);
    assert_int_equal(ev_json_integer(doc->root, "none", 1), 1);
    assert_true(ev_json_number(doc->root, "r", 1) == 2.5);
    assert_true(ev_json_number(doc->root, "i", 1) == 7);
    assert_true(ev_json_number(doc->root, "none", 1) == 1);
    assert_true(ev_json_flag(doc->root, "b", false));
    assert_true(ev_json_flag(doc->root, "none", true));
    ev_json_free(doc);
}

/* Sorted keys, whatever the order of making; and the same bytes again after a round trip. */
static void test_print(void **state) {
    (void)state;
    ev_json *doc =
        parsed("{\"z\": 0.1, \"a\": [1, {\"y\": 1e-7, \"b\": null}], \"m\": \"\\u00e9\"}");
    char *text = ev_json_print(doc->root, true);
    assert_string_equal(text,
                        "{\"a\":[1,{\"b\":null,\"y\":9.9999999999999995e-8}],\"m\":\"\xc3\xa9\","
                        "\"z\":0.10000000000000001}");
    ev_json *again = parsed(text);
    char *text_again = ev_json_print(again->root, true);
    assert_string_equal(text, text_again);
    char *wide = ev_json_print(json_object_get(doc->root, "a"), false);
    assert_string_equal(wide,
                        "[\n  1,\n  {\n    \"b\": null,\n    \"y\": 9.9999999999999995e-8\n  }\n]");
    free(wide);
    free(text);
    free(text_again);
    ev_json_free(doc);
    ev_json_free(again);
}

static void test_load(void **state) {
    (void)state;
    ev_error err = {0};
    ev_json *doc = NULL;
    assert_int_equal(ev_json_load("no/such/task.json", &doc, &err), EV_BAD);
    assert_non_null(strstr(err.text, "no/such/task.json"));
    assert_int_equal(ev_json_load("tests", &doc, &err), EV_BAD); /* a folder */
    char name[] = "/tmp/evoke-json-XXXXXX";
    int file = mkstemp(name);
    assert_true(file >= 0);
    assert_int_equal(write(file, "{\n\"a\":\0 1}", 10), 10);
    assert_int_equal(ev_json_load(name, &doc, &err), EV_BAD);
    assert_non_null(strstr(err.text, ":2:5: a NUL byte"));
    assert_int_equal(pwrite(file, "{ \"a\": 12}", 10, 0), 10);
    assert_int_equal(ev_json_load(name, &doc, &err), EV_OK);
    assert_int_equal(ev_json_integer(doc->root, "a", 0), 12);
    assert_string_equal(doc->path, name);
    ev_json_free(doc);
    ev_json_free(NULL);
    (void)close(file);
    (void)unlink(name);
}

/* Text cut off at every byte: an error with a place, never a crash. */
static void test_truncations(void **state) {
    (void)state;
    const char whole[] = "{\"a\": [1, {\"b\\\"\": \"c\\u0041\"}], \"d\": {\"e\": [[], {}]}}";
    for (size_t length = 0; length + 1 < sizeof whole; length++) {
        char cut[sizeof whole];
        memcpy(cut, whole, length);
        cut[length] = '\0';
        ev_json *doc = NULL;
        ev_error err = {0};
        assert_int_equal(ev_json_parse(cut, "t", &doc, &err), EV_BAD);
        assert_memory_equal(err.text, "t:1:", 4);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_syntax_errors), cmocka_unit_test(test_key_table),
        cmocka_unit_test(test_escaped_key),   cmocka_unit_test(test_locate),
        cmocka_unit_test(test_fail),          cmocka_unit_test(test_typed_reads),
        cmocka_unit_test(test_print),         cmocka_unit_test(test_load),
        cmocka_unit_test(test_truncations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
