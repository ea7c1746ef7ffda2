/* Hostile bundles: what fuzzing (tests/fuzz/fuzz_bundle.c) and reading the reader found. Each is
 * refused with a reason, or does no harm, and opening takes no more memory than it may. */
#include "base/arena.h"
#include "base/file.h"
#include "base/str.h"
#include "bundle/bundle.h"
#include "bundle/read.h"
#include "tests/bundle/sample.h"
#include "tests/sanitized.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SLACK ((size_t)6 << 20) /* pages of the process that are not the bundle's */

/* Files may hold any bytes; nothing behind their end is read. */
static void files_with_nuls_are_whole(void **state) {
    (void)state;
    static const char task[] = "{}\0hidden\n";
    static const char ptx[] = "// first\n\0// second\n";
    sample s;
    bundle *b = NULL;
    ev_error err = {0};
    bundle_content content;
    ev_arena *arena = ev_arena_new();
    sample_fill(&s);
    s.file.data = task;
    s.file.bytes = sizeof task;
    s.variant.ptx = ptx;
    s.variant.ptx_bytes = sizeof ptx;
    assert_int_equal(bundle_write(sample_path("nul.tar"), &s.content, &err), EV_OK);
    if (bundle_open(sample_path("nul.tar"), &b, &err) != EV_OK)
        fail_msg("%s", err.text);
    const bundle_variant *v = &bundle_find(b, "add")->variants[0];
    assert_int_equal(v->ptx_bytes, sizeof ptx);
    assert_memory_equal(v->ptx, ptx, sizeof ptx);
    assert_int_equal(bundle_content_of(b, arena, &content, &err), EV_OK);
    assert_int_equal(content.files[0].bytes, sizeof task);
    assert_memory_equal(content.files[0].data, task, sizeof task);
    bundle_close(b);
    ev_arena_free(arena);
}

/* ---- manifests ---- */

static char *manifest_text(void) {
    char *text = NULL;
    char path[200];
    size_t bytes = 0;
    ev_error err = {0};
    if (sample_write(sample_path("h"), &err) != EV_OK)
        fail_msg("%s", err.text);
    (void)snprintf(path, sizeof path, "%s/manifest.json", sample_path("h"));
    if (ev_file_read(path, &text, &bytes, &err) != EV_OK)
        fail_msg("%s", err.text);
    return text;
}

/* In blocks, since millions of short appends take seconds with sanitizers. */
static void append_often(ev_str *to, const char *unit, size_t times) {
    ev_str block = EV_STR_EMPTY;
    const size_t in_block = times < 1000 ? times : 1000;
    for (size_t i = 0; i < in_block; i++)
        ev_str_append(&block, unit);
    for (size_t left = times; left > 0;) {
        size_t now = left < in_block ? left : in_block;
        ev_str_append_n(to, ev_str_text(&block), now * strlen(unit));
        left -= now;
    }
    ev_str_free(&block);
}

/* The sample's manifest with `unit` written `times` behind `at`. */
static void write_manifest(const char *at, const char *unit, size_t times, const char *end) {
    char *text = manifest_text();
    char path[200];
    char *place = strstr(text, at);
    ev_str made = EV_STR_EMPTY;
    ev_error err = {0};
    assert_non_null(place);
    place += strlen(at);
    ev_str_append_n(&made, text, (size_t)(place - text));
    append_often(&made, unit, times);
    ev_str_append(&made, end);
    ev_str_append(&made, place);
    (void)snprintf(path, sizeof path, "%s/manifest.json", sample_path("h"));
    assert_int_equal(ev_file_write(path, ev_str_text(&made), made.length, &err), EV_OK);
    ev_str_free(&made);
    free(text);
}

static void open_fails(const char *words) {
    bundle *b = NULL;
    ev_error err = {0};
    if (bundle_open_lazy(sample_path("h"), &b, &err) != EV_BAD || strstr(err.text, words) == NULL)
        fail_msg("'%s' is not in: %s", words, err.text);
}

static void terminals_obey_no_message(void **state) {
    (void)state;
    write_manifest("\"kernels\": [", "", 0, "{\"\\u001b[2Jred\\u0007\": 1},");
    open_fails("'?[2Jred?'");
}

static void whole_numbers_are_exact(void **state) {
    (void)state;
    static const char *const numbers[] = {"9223372036854775807", "-9223372036854775808",
                                          "9007199254740994"};
    for (size_t i = 0; i < 3; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "\"BIG\": %s, ", numbers[i]);
        write_manifest("\"macros\": {", "", 0, text);
        open_fails("'BIG' is over 2^53");
    }
}

/* The sample's manifest with the first `from` behind `at` replaced. */
static void change_manifest(const char *at, const char *from, const char *to) {
    char *text = manifest_text();
    char path[200];
    char *place = strstr(text, at);
    ev_str made = EV_STR_EMPTY;
    ev_error err = {0};
    place = place != NULL ? strstr(place, from) : NULL;
    if (place == NULL)
        fail_msg("behind '%s' there is no '%s' in: %s", at, from, text);
    ev_str_append_n(&made, text, (size_t)(place - text));
    ev_str_append(&made, to);
    ev_str_append(&made, place + strlen(from));
    (void)snprintf(path, sizeof path, "%s/manifest.json", sample_path("h"));
    assert_int_equal(ev_file_write(path, ev_str_text(&made), made.length, &err), EV_OK);
    ev_str_free(&made);
    free(text);
}

/* What a launch or a C header would stumble over is refused when the bundle is opened. */
static void broken_arguments_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *at, *from, *to, *words;
    } rows[] = {
        {"\"arguments\"", "\"kind\": \"in\"", "\"kind\": \"sideways\"", "\"sideways\" is no kind"},
        {"\"arguments\"", "\"type\": \"f32\"", "\"type\": \"f31\"", "\"f31\" is no type"},
        {"\"arguments\"", "\"name\": \"x\"", "\"name\": \"x; y\"", "\"x; y\" is no name"},
        {"\"arguments\"", "\"name\": \"x\"", "\"name\": \"y\"", "\"y\" is there twice"},
        {"\"arguments\"", "\"expression\": \"N\"", "\"expression\": \"\"", "a number, a name"},
        {"\"arguments\"", "\"expression\": \"N\"", "\"expression\": \"N */ M\"",
         "expression \"N */ M\""},
        {"\"arguments\"", "\"expression\": \"N\"", "\"expression\": \"TILE\"", "unknown name"},
        {"\"arguments\"", "\"expression\": \"4.0 / 2\"", "\"expression\": \"scale\"",
         "unknown name"},
        {"\"symbols\"", "\"count\": \"2\"", "\"count\": \"2 * K\"", "unknown name"},
        {"\"symbols\"", "\"type\": \"f32\"", "\"type\": \"\"", "is no type"},
        {"\"kernels\"", "\"kernel\": \"add\"", "\"kernel\": \"\"", "is no name"},
        {"\"kernels\"", "\"kernel\": \"add\"", "\"kernel\": \"a\\n\\u001b[31m\"", "is no name"},
        {"\"files\"", "\"bytes\": ", "\"bytes\": -", "0 bytes or more"},
        {"\"files\"", "\"sha256\": \"", "\"sha256\": \"A", "hash of 64 digits"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        change_manifest(rows[i].at, rows[i].from, rows[i].to);
        open_fails(rows[i].words);
    }
}

/* Each would take time that grows with the square of the file. */
static void lists_have_limits(void **state) {
    (void)state;
    ev_str names = EV_STR_EMPTY;
    for (int i = 0; i < 300; i++)
        ev_str_printf(&names, "\"n%d\": 1, ", i);
    write_manifest("\"macros\": {", "", 0, ev_str_text(&names));
    open_fails("has more than 256 names");
    ev_str_free(&names);
    for (int i = 0; i < 300; i++)
        ev_str_printf(&names, "{\"case\": \"c\", \"split\": \"search\", \"shape\": {\"n%d\": 1}}, ",
                      i);
    write_manifest("\"cases\": [", "", 0, ev_str_text(&names));
    open_fails("have more than 256 names");
    ev_str_free(&names);
    write_manifest("\"cases\": [", "{\"case\": \"c\", \"split\": \"search\", \"shape\": {}}, ",
                   5000, "");
    open_fails("at most 4096 cases");
}

/* ---- memory ---- */

static size_t peak_bytes(void) {
    struct rusage usage = {0};
    (void)getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss << 10;
}

/* Opens in a process of its own. Exit code 0: refused for its memory, within the bound. */
static int open_and_weigh(size_t file_bytes) {
    bundle *b = NULL;
    ev_error err = {0};
    size_t before = peak_bytes();
    ev_status status = bundle_open_lazy(sample_path("h"), &b, &err);
    size_t took = peak_bytes() - before;
    if (status != EV_BAD || strstr(err.text, "which no manifest does") == NULL) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    if (!SANITIZED && took > MEMORY_TIMES * file_bytes + MEMORY_FREE + SLACK) {
        (void)fprintf(stderr, "%zu bytes took %zu\n", file_bytes, took);
        return 2;
    }
    return 0;
}

static void memory_is_bounded(void **state) {
    (void)state;
    static const struct {
        const char *at, *unit;
        size_t times;
        const char *end;
    } rows[] = {/* not much more than is refused: each is written, read and parsed */
                {"\"kernels\": [", "{},", 140000, ""},
                {"\"kernels\": [", "[],", 250000, ""},
                {"\"kernels\": [", "\"\",", 380000, ""},
                {"\"kernels\": [", "0,", 730000, ""},
                {"\"kernels\": [", "0.0e0                ,", 400000, ""},
                {"\"variants\": [", "0                   ,", 120000, ""},
                {"\"kernels\": [", "[0,[],{}            ],", 80000, ""},
                {"\"evoke\": \"", "0123456789abcdef", 1100000, ""}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        write_manifest(rows[i].at, rows[i].unit, rows[i].times, rows[i].end);
        pid_t child = fork();
        int code = 0;
        assert_true(child >= 0);
        if (child == 0)
            _exit(open_and_weigh(rows[i].times * strlen(rows[i].unit)));
        assert_int_equal(waitpid(child, &code, 0), child);
        if (!WIFEXITED(code) || WEXITSTATUS(code) != 0)
            fail_msg("row %zu: %d", i, code);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_with_nuls_are_whole),    cmocka_unit_test(terminals_obey_no_message),
        cmocka_unit_test(whole_numbers_are_exact),      cmocka_unit_test(lists_have_limits),
        cmocka_unit_test(broken_arguments_are_refused), cmocka_unit_test(memory_is_bounded),
    };
    return cmocka_run_group_tests(tests, sample_make_folder, sample_remove_folder);
}
