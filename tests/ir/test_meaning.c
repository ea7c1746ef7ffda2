/* Whether an edit is bold at its place (ir/edits/meaning.c): each module of tests/ir/meaning holds,
 * in comments, edits that are applied one by one, and whether each is bold there. */
#include "tests/ir/ir_rig.h"

#include <dirent.h>

static ir_base *load_module(const char *path) {
    const ir_source source = {.path = path, .entry = "k", .sm = 90, .block = {64, 1, 1}};
    return load(&source);
}

/* The next line of `text` that starts with `mark`, without it; malloc'ed. */
static char *next_line(const char **text, const char *mark) {
    const char *at = strstr(*text, mark);
    if (!at)
        return NULL;
    at += strlen(mark);
    size_t length = strcspn(at, "\n");
    *text = at + length;
    return strndup(at, length);
}

static size_t bold_edits(const ir_base *base, const char *edits) {
    ir_genome *genome = genome_of(edits);
    ir_build *build = NULL;
    ir_stage stage = IR_STAGE_EDIT;
    ev_error err;
    if (build_all(base, genome, &build, &stage, &err) != EV_OK)
        fail_msg("%s: %s", edits, err.text);
    size_t bold = ir_build_bold(build);
    ir_build_free(build);
    ir_genome_free(genome);
    return bold;
}

/* The words mark a bold edit as well. */
static bool says_bold(const ir_base *base, const char *edits) {
    ir_genome *genome = genome_of(edits);
    ev_str words = EV_STR_EMPTY;
    ev_error err;
    assert_int_equal(ir_describe_edit(base, genome, 0, &words, &err), EV_OK);
    bool says = strstr(ev_str_text(&words), " [bold") != NULL;
    ev_str_free(&words);
    ir_genome_free(genome);
    return says;
}

static size_t check_module(const char *path) {
    char *text = NULL;
    size_t bytes = 0, checked = 0;
    ev_error err;
    assert_int_equal(ev_file_read(path, &text, &bytes, &err), EV_OK);
    ir_base *base = load_module(path);
    const char *rest = text;
    for (char *edit; (edit = next_line(&rest, "\n; EDIT ")) != NULL; free(edit)) {
        char *bold = next_line(&rest, "; BOLD ");
        assert_non_null(bold);
        bool expected = strcmp(bold, "yes") == 0;
        if ((bold_edits(base, edit) > 0) != expected || says_bold(base, edit) != expected)
            fail_msg("%s: %s is%s bold", path, edit, expected ? " not" : "");
        free(bold);
        checked++;
    }
    ir_base_free(base);
    free(text);
    return checked;
}

static void modules(void **state) {
    (void)state;
    DIR *modules_folder = opendir("tests/ir/meaning");
    assert_non_null(folder);
    size_t checked = 0;
    for (struct dirent *e; (e = readdir(modules_folder)) != NULL;) {
        char path[512];
        if (e->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof path, "tests/ir/meaning/%s", e->d_name);
        checked += check_module(path);
    }
    (void)closedir(modules_folder);
    assert_true(checked >= 20);
}

/* An argument is aligned as every launch grants it. */
static void grants_prove_alignment(void **state) {
    (void)state;
    static const char edit[] = "{\"kind\":\"align\",\"at\":\"i8\",\"option\":16}";
    static const struct {
        uint32_t align;
        size_t bold;
    } rows[] = {{4, 1}, {8, 1}, {16, 0}, {256, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const uint32_t aligns[] = {16, rows[i].align, 1};
        const char *const names[] = {"x", "y", "n"};
        const ir_source source = {.path = "tests/ir/meaning/align.ll",
                                  .entry = "k",
                                  .sm = 90,
                                  .arguments = names,
                                  .aligns = aligns,
                                  .argument_count = 3};
        ir_base *base = load(&source);
        assert_int_equal(bold_edits(base, edit), rows[i].bold);
        ir_base_free(base);
    }
}

/* A use that loses its value takes another one, whatever the kind of the edit. */
static void repairs_are_bold(void **state) {
    (void)state;
    ir_base *base = load_module("tests/ir/meaning/branch.ll");
    assert_int_equal(bold_edits(base, "{\"kind\":\"sink\",\"at\":\"i1\"}"), 0);
    assert_int_equal(bold_edits(base, "{\"kind\":\"delete\",\"at\":\"i3\"}"), 1);
    ir_base_free(base);
}

/* The table says for each kind what it may be, and why. */
static void table(void **state) {
    (void)state;
    for (int i = 0; i < IR_EDIT_COUNT; i++) {
        ir_edit_kind kind = (ir_edit_kind)i;
        assert_true(strlen(ir_edit_because(kind)) > 10);
        bool names_bold = strstr(ir_edit_meaning_name(kind), "bold") != NULL;
        assert_int_equal(ir_edit_may_be_bold(kind), names_bold);
        assert_int_equal(ir_edit_is_bold(kind), strcmp(ir_edit_meaning_name(kind), "bold") == 0);
        assert_int_equal(ir_edit_may_round(kind),
                         strncmp(ir_edit_meaning_name(kind), "rounding", 8) == 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules),
        cmocka_unit_test(grants_prove_alignment),
        cmocka_unit_test(repairs_are_bold),
        cmocka_unit_test(table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
