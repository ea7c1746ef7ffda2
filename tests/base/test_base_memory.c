/* Status, arena and strings; and every allocation of base made to fail in its turn. */
#include "base/arena.h"
#include "base/child.h"
#include "base/file.h"
#include "base/json.h"
#include "base/proc.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* The linker sends the calls of base here (--wrap); the one numbered `fail_at` finds no memory. */
static long calls_made;
static long fail_at = -1;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
char *__wrap_strdup(const char *text);

static bool refuse(void) {
    return calls_made++ == fail_at;
}

void *__wrap_malloc(size_t bytes) {
    return refuse() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes) {
    return refuse() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes) {
    return refuse() ? NULL : __real_realloc(old, bytes);
}

char *__wrap_strdup(const char *text) {
    return refuse() ? NULL : __real_strdup(text);
}

/* Runs `work` with the first allocation failing, then the second, until it needs no more; `work`
 * says whether it went well, and must then have met no failure. */
static int fail_each(bool (*work)(void)) {
    int failures = 0;
    for (long turn = 0; turn < 10000; turn++) {
        calls_made = 0;
        fail_at = turn;
        bool went_well = work();
        fail_at = -1;
        bool met_failure = calls_made > turn;
        assert_int_equal(went_well, !met_failure);
        if (!met_failure)
            return failures;
        failures++;
    }
    fail_msg("%s", "the work never came to its end");
    return failures;
}

/* ---- status ---- */

static ev_status forward(ev_status status) {
    EV_TRY(status);
    return EV_OK;
}

static void test_status(void **state) {
    (void)state;
    ev_error err = {0};
    assert_int_equal(ev_fail(&err, EV_BAD, "no %s", "such"), EV_BAD);
    assert_int_equal(err.status, EV_BAD);
    assert_string_equal(err.text, "no such");
    assert_int_equal(ev_wrap(&err, EV_BAD, "place %d", 7), EV_BAD);
    assert_string_equal(err.text, "place 7: no such");
    assert_int_equal(ev_fail(&err, EV_INFRA, "again: %s", err.text), EV_INFRA);
    assert_string_equal(err.text, "again: place 7: no such");
    assert_int_equal(ev_fail(NULL, EV_BAD, "unheard"), EV_BAD);
    assert_int_equal(ev_wrap(NULL, EV_INFRA, "unheard"), EV_INFRA);
    assert_int_equal(forward(EV_INFRA), EV_INFRA);
    assert_int_equal(forward(EV_OK), EV_OK);
    assert_int_equal(ev_status_exit_code(EV_OK), 0);
    assert_int_equal(ev_status_exit_code(EV_BAD), 2);
    assert_int_equal(ev_status_exit_code(EV_INFRA), 3);
    assert_int_equal(ev_fail_memory(&err, 12), EV_INFRA);
    assert_non_null(strstr(err.text, "12 bytes"));
}

static void test_status_too_long(void **state) {
    (void)state;
    ev_error err = {0};
    char longer[4000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    (void)ev_fail(&err, EV_BAD, "%s", longer);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    (void)ev_wrap(&err, EV_BAD, "place");
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_memory_equal(err.text, "place: xxx", 10);
    (void)ev_wrap(&err, EV_BAD, "%s", longer);
    assert_memory_equal(err.text, "place: xxx", 10);
}

static void expect_whole(const ev_error *err, const char *place, const char *message) {
    ev_str whole = EV_STR_EMPTY;
    ev_error_whole(err, &whole);
    assert_memory_equal(ev_str_text(&whole), place, strlen(place));
    assert_string_equal(ev_str_text(&whole) + strlen(place), message);
    ev_str_free(&whole);
}

/* An error has the first lines of a long message, and the whole is found with its places. */
static void test_long_message(void **state) {
    (void)state;
    ev_error err = {0};
    char longer[4000] = "";
    for (int i = 0; i < 300; i++)
        (void)snprintf(longer + strlen(longer), sizeof longer - strlen(longer), "line %d\n", i);
    assert_int_equal(ev_fail_long(&err, EV_BAD, "short"), EV_BAD);
    expect_whole(&err, "", "short");
    assert_int_equal(ev_fail_long(&err, EV_INFRA, longer), EV_INFRA);
    assert_int_equal(err.status, EV_INFRA);
    expect_whole(&err, "", longer);
    const char *note = strstr(err.text, "\n... (");
    assert_non_null(note);
    assert_memory_equal(err.text, longer, (size_t)(note - err.text) + 1);
    assert_int_equal(strtoul(note + 6, NULL, 10), strlen(longer) - (size_t)(note + 1 - err.text));
    (void)ev_wrap(&err, EV_INFRA, "a place");
    expect_whole(&err, "a place: ", longer);
    ev_error later = {0};
    longer[5] = '!';
    longer[1000] = '\033';
    (void)ev_fail_long(&later, EV_BAD, longer);
    longer[1000] = '?'; /* no terminal obeys it */
    expect_whole(&later, "", longer);
    expect_whole(&err, "", err.text); /* kept no longer */
    (void)ev_fail(&later, EV_BAD, "plain");
    expect_whole(&later, "", "plain");
    assert_int_equal(ev_fail_long(NULL, EV_BAD, longer), EV_BAD);
    memset(longer, 'x', sizeof longer - 1); /* one long line */
    longer[sizeof longer - 1] = '\0';
    (void)ev_fail_long(&later, EV_BAD, longer);
    expect_whole(&later, "", longer);
}

/* ---- arena ---- */

static bool all_zero(const unsigned char *at, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        if (at[i] != 0)
            return false;
    }
    return true;
}

static void test_arena(void **state) {
    (void)state;
    ev_arena *arena = ev_arena_new();
    assert_non_null(arena);
    for (int round = 0; round < 3; round++) {
        size_t sum = 0;
        for (size_t bytes = 0; bytes < 3000; bytes = bytes * 5 / 4 + 1) {
            unsigned char *at = ev_arena_alloc(arena, bytes);
            assert_non_null(at);
            assert_int_equal((uintptr_t)at % 16, 0);
            assert_true(all_zero(at, bytes));
            memset(at, 0xff, bytes);
            sum += bytes;
        }
        unsigned char *large = ev_arena_alloc(arena, (size_t)20 << 20);
        assert_true(all_zero(large, (size_t)20 << 20));
        assert_int_equal(ev_arena_bytes(arena), sum + ((size_t)20 << 20));
        ev_arena_reset(arena);
        assert_int_equal(ev_arena_bytes(arena), 0);
    }
    assert_false(ev_arena_failed(arena));
    ev_arena_free(arena);
    ev_arena_free(NULL);
}

static void test_arena_texts(void **state) {
    (void)state;
    ev_arena *arena = ev_arena_new();
    char *printed = ev_arena_printf(arena, "%s-%d", "grid", 12);
    char *cut = ev_arena_strndup(arena, "threads", 3);
    char *whole = ev_arena_strndup(arena, "ab", 99);
    char *copied = ev_arena_strdup(arena, "block");
    int *numbers = ev_arena_copy(arena, (int[]){1, 2, 3}, 3 * sizeof(int));
    assert_string_equal(printed, "grid-12");
    assert_string_equal(cut, "thr");
    assert_string_equal(whole, "ab");
    assert_string_equal(copied, "block");
    assert_int_equal(numbers[2], 3);
    assert_ptr_not_equal(EV_NEW(arena, long), EV_NEW(arena, long));
    ev_arena_free(arena);
}

static void test_arena_overflow(void **state) {
    (void)state;
    ev_arena *arena = ev_arena_new();
    assert_null(ev_arena_array(arena, SIZE_MAX / 2, 4));
    assert_true(ev_arena_failed(arena));
    assert_non_null(ev_arena_alloc(arena, 8));
    assert_null(ev_arena_alloc(arena, SIZE_MAX - 3));
    ev_arena_reset(arena);
    assert_true(ev_arena_failed(arena));
    ev_arena_free(arena);
}

static bool arena_work(void) {
    ev_arena *arena = ev_arena_new();
    if (arena == NULL)
        return false;
    bool fine = true;
    for (size_t i = 0; i < 40; i++) {
        char *text = ev_arena_printf(arena, "%zu", i);
        fine = fine && text != NULL && ev_arena_alloc(arena, 10000) != NULL;
    }
    assert_int_equal(ev_arena_failed(arena), !fine);
    ev_arena_free(arena);
    return fine;
}

static void test_arena_without_memory(void **state) {
    (void)state;
    assert_true(fail_each(arena_work) >= 3);
}

/* ---- strings ---- */

static void test_str(void **state) {
    (void)state;
    ev_str s = EV_STR_EMPTY;
    assert_string_equal(ev_str_text(&s), "");
    ev_str_append(&s, "warp");
    ev_str_char(&s, ' ');
    ev_str_printf(&s, "%d of %s", 32, "lanes");
    ev_str_append_n(&s, "!??", 1);
    ev_str_hex(&s, "\x00\x9f\xff", 3);
    assert_string_equal(ev_str_text(&s), "warp 32 of lanes!009fff");
    assert_int_equal(s.length, strlen(s.data));
    ev_str_clear(&s);
    assert_string_equal(ev_str_text(&s), "");
    for (int i = 0; i < 1000; i++)
        ev_str_append(&s, "0123456789");
    assert_int_equal(s.length, 10000);
    assert_int_equal(ev_str_status(&s, NULL), EV_OK);
    char *taken = ev_str_take(&s);
    assert_int_equal(strlen(taken), 10000);
    free(taken);
    assert_string_equal(ev_str_text(&s), "");
    taken = ev_str_take(&s);
    assert_string_equal(taken, "");
    free(taken);
    ev_str_free(&s);
}

static bool str_work(void) {
    ev_str s = EV_STR_EMPTY;
    for (int i = 0; i < 50; i++)
        ev_str_printf(&s, "%d,", i);
    ev_str_hex(&s, "0123456789", 10);
    ev_error err = {0};
    bool fine = ev_str_status(&s, &err) == EV_OK;
    assert_int_equal(s.failed, !fine);
    assert_int_equal(err.status, fine ? EV_OK : EV_INFRA);
    assert_int_equal(s.length, strlen(ev_str_text(&s)));
    char *taken = ev_str_take(&s);
    assert_int_equal(taken != NULL, fine);
    free(taken);
    return fine;
}

static void test_text_u32(void **state) {
    (void)state;
    uint32_t value = 7;
    const char *text = "m16n8k";
    const char *end = ev_text_u32(text, "m", &value);
    assert_ptr_equal(end, text + 3);
    assert_int_equal(value, 16);
    assert_string_equal(ev_text_u32(end, "n", &value), "k");
    assert_int_equal(value, 8);
    assert_string_equal(ev_text_u32("4294967295", "", &value), "");
    assert_int_equal(value, UINT32_MAX);
    value = 7;
    assert_null(ev_text_u32(NULL, "", &value));
    static const char *const BAD[] = {"",    "x",  "x-1",         "x+1",
                                      "x 1", "y1", "x4294967296", "x18446744073709551617"};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++)
        assert_null(ev_text_u32(BAD[i], "x", &value));
    assert_int_equal(value, 7);
}

static void test_str_without_memory(void **state) {
    (void)state;
    assert_true(fail_each(str_work) >= 3);
}

/* ---- the rest of base without memory ---- */

static bool outcome(ev_status status, const ev_error *err) {
    if (status != EV_OK) {
        assert_int_equal(status, EV_INFRA);
        assert_int_equal(err->status, EV_INFRA);
    }
    return status == EV_OK;
}

static void *jansson_malloc(size_t bytes) {
    return __wrap_malloc(bytes);
}

static bool json_work(void) {
    ev_error err = {0};
    ev_json *doc = NULL;
    bool fine = outcome(
        ev_json_parse("{\"a\": [1, 2.5, \"three\"], \"b\": {\"c\": null}}", "doc", &doc, &err),
        &err);
    assert_int_equal(doc != NULL, fine);
    ev_json_free(doc);
    return fine;
}

static void test_json_without_memory(void **state) {
    (void)state;
    json_set_alloc_funcs(jansson_malloc, free);
    int failures = fail_each(json_work);
    json_set_alloc_funcs(malloc, free);
    assert_true(failures >= 8);
}

static bool file_work(void) {
    ev_error err = {0};
    char *data = NULL;
    size_t bytes = 0;
    bool fine = outcome(ev_file_read("LICENSE", &data, &bytes, &err), &err);
    free(data);
    return fine;
}

static bool path_work(void) {
    char *joined = ev_path_join("folder", "file");
    if (joined != NULL)
        assert_string_equal(joined, "folder/file");
    free(joined);
    return joined != NULL;
}

static bool proc_work(void) {
    ev_error err = {0};
    ev_proc_result result = {0};
    const char *const argv[] = {"sh", "-c", "echo out; echo err >&2", NULL};
    bool fine = outcome(ev_proc_run(argv, NULL, 20, &result, &err), &err);
    if (fine)
        assert_string_equal(ev_str_text(&result.out), "out\n");
    ev_proc_result_free(&result);
    return fine;
}

static void test_others_without_memory(void **state) {
    (void)state;
    assert_true(fail_each(file_work) >= 1);
    assert_true(fail_each(path_work) >= 1);
    assert_true(fail_each(proc_work) >= 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_status_too_long),
        cmocka_unit_test(test_long_message),
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_arena_texts),
        cmocka_unit_test(test_arena_overflow),
        cmocka_unit_test(test_arena_without_memory),
        cmocka_unit_test(test_str),
        cmocka_unit_test(test_text_u32),
        cmocka_unit_test(test_str_without_memory),
        cmocka_unit_test(test_json_without_memory),
        cmocka_unit_test(test_others_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
