/* Every row of the edit table on a small module: tests/ir/NAME.ll holds, in comments, the edits,
 * the words that describe them, the lines that change, and what the PTX must then have. */
#include "base/file.h"
#include "base/json.h"
#include "ir/ir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static ir_base *load(const char *path) {
    static const int64_t constants[] = {7, 256};
    ir_source source = {.path = path,
                        .entry = "k",
                        .sm = 90,
                        .constants = constants,
                        .constant_count = 2,
                        .block = {64, 2, 1}};
    ev_error err;
    ir_base *base = NULL;
    if (ir_base_load(&source, &base, &err) != EV_OK)
        fail_msg("%s", err.text);
    return base;
}

/* The next line of `text` that starts with `mark`, without it; malloc'ed. */
static char *next_line(const char **text, const char *mark) {
    size_t length = strlen(mark);
    for (const char *end; (end = strchr(*text, '\n')) != NULL;) {
        const char *line = *text;
        *text = end + 1;
        if (strncmp(line, mark, length) == 0)
            return strndup(line + length, (size_t)(end - line) - length);
    }
    return NULL;
}

static ir_genome *read_genome(const char *text) {
    ev_str json = EV_STR_EMPTY;
    ev_str_append(&json, "{\"start\":\"textbook\",\"edits\":[");
    int count = 0;
    for (char *line; (line = next_line(&text, "; EDIT ")) != NULL; free(line))
        ev_str_printf(&json, "%s%s", count++ ? "," : "", line);
    ev_str_append(&json, "]}");
    assert_true(count > 0);
    ev_error err;
    ev_json *doc = NULL;
    ir_genome *genome = NULL;
    if (ev_json_parse(ev_str_text(&json), "golden", &doc, &err) != EV_OK ||
        ir_genome_from_json(doc->root, &genome, &err) != EV_OK)
        fail_msg("%s", err.text);
    ev_json_free(doc);
    ev_str_free(&json);
    return genome;
}

static void check_words(const ir_base *base, const ir_genome *genome, const char *text) {
    for (size_t i = 0; i < ir_genome_edit_count(genome); i++) {
        ev_str words = EV_STR_EMPTY;
        ev_error err;
        if (ir_describe_edit(base, genome, i, &words, &err) != EV_OK)
            fail_msg("%s", err.text);
        char *expected = next_line(&text, "; SAYS ");
        assert_non_null(expected);
        assert_string_equal(ev_str_text(&words), expected);
        free(expected);
        ev_str_free(&words);
    }
}

static bool is_change(const char *line) {
    return (line[0] == '-' || line[0] == '+') && strncmp(line, "---", 3) != 0 &&
           strncmp(line, "+++", 3) != 0;
}

static void check_diff(const ir_base *base, const ir_genome *genome, const char *text) {
    ev_str diff = EV_STR_EMPTY;
    ev_error err;
    if (ir_diff(base, genome, &diff, &err) != EV_OK)
        fail_msg("%s", err.text);
    const char *rest = ev_str_text(&diff);
    for (char *line; (line = next_line(&rest, "")) != NULL; free(line)) {
        if (!is_change(line))
            continue;
        char *expected = next_line(&text, "; DIFF ");
        assert_non_null(expected);
        assert_string_equal(line, expected);
        free(expected);
    }
    assert_null(next_line(&text, "; DIFF "));
    ev_str_free(&diff);
}

static void check_build(const ir_base *base, const ir_genome *genome, const char *text) {
    ir_build *build;
    ev_error err;
    assert_int_equal(ir_build_new(base, genome, &build, &err), EV_OK);
    for (int stage = 0; stage < IR_STAGE_COUNT; stage++) {
        if (ir_build_run(build, (ir_stage)stage, &err) != EV_OK)
            fail_msg("%s: %s", ir_stage_name((ir_stage)stage), err.text);
    }
    size_t bytes;
    const char *ptx = ir_build_ptx(build, &bytes);
    for (char *part; text && (part = next_line(&text, "; PTX ")) != NULL; free(part)) {
        if (!strstr(ptx, part))
            fail_msg("no \"%s\" in:\n%s", part, ptx);
    }
    ir_build_free(build);
}

/* The kind can be drawn here too, and what is drawn builds. */
static void check_draw(const ir_base *base, ir_edit_kind kind) {
    size_t sites[IR_EDIT_COUNT];
    ir_base_sites(base, sites);
    assert_true(sites[kind] > 0);
    ir_genome *parent = ir_genome_new("textbook");
    for (uint64_t seed = 0; seed < 5; seed++) {
        ev_pcg rng = ev_pcg_seed(seed, 1);
        ev_error err;
        ir_genome *child;
        if (ir_mutate(base, parent, kind, NULL, &rng, &child, &err) != EV_OK)
            fail_msg("%s", err.text);
        assert_int_equal(ir_genome_edit_count(child), 1);
        assert_int_equal(ir_genome_edit_kind(child, 0), kind);
        check_build(base, child, NULL);
        ir_genome_free(child);
    }
    ir_genome_free(parent);
}

/* Structural edits have tests of their own in tests/ir/structure. */
static void each_local_row_has_a_golden(void **state) {
    (void)state;
    for (int kind = 0; kind < IR_EDIT_LOCAL_COUNT; kind++) {
        assert_string_not_equal(ir_edit_family((ir_edit_kind)kind), "structure");
        char path[256];
        char *text;
        size_t bytes;
        ev_error err;
        snprintf(path, sizeof path, "tests/ir/%s.ll", ir_edit_name((ir_edit_kind)kind));
        print_message("%s\n", path);
        if (ev_file_read(path, &text, &bytes, &err) != EV_OK)
            fail_msg("%s", err.text);
        ir_base *base = load(path);
        ir_genome *genome = read_genome(text);
        assert_int_equal(ir_genome_edit_kind(genome, 0), kind);
        check_words(base, genome, text);
        check_diff(base, genome, text);
        check_build(base, genome, text);
        check_draw(base, (ir_edit_kind)kind);
        ir_genome_free(genome);
        ir_base_free(base);
        free(text);
    }
}

static void each_row_says_what_it_is(void **state) {
    (void)state;
    for (int kind = 0; kind < IR_EDIT_COUNT; kind++) {
        ir_edit_kind found;
        const char *name = ir_edit_name((ir_edit_kind)kind);
        assert_true(ir_edit_find(name, &found));
        assert_int_equal(found, kind);
        assert_true(strlen(ir_edit_needs((ir_edit_kind)kind)) > 0);
        assert_true(strlen(ir_edit_describes((ir_edit_kind)kind)) > 0);
        assert_true(strlen(ir_edit_family((ir_edit_kind)kind)) > 0);
    }
    ir_edit_kind unused;
    assert_false(ir_edit_find("no-such-edit", &unused));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_local_row_has_a_golden),
        cmocka_unit_test(each_row_says_what_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
