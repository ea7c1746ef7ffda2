/* Alignment that edits assert: a variable of the module is declared with it, in LLVM's PTX and in
 * the direct emitter's. Each module of tests/ir/aligned/ gives its edits and the
 * declarations that both texts must have. */
#include "base/file.h"
#include "base/json.h"
#include "ir/ir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ok.h"

#define FOLDER "tests/ir/aligned/"

static ev_error err;

/* The text behind `mark` in its next line; malloc'ed, NULL: none. *at moves behind the line. */
static char *next_line(const char **at, const char *mark) {
    const char *found = strstr(*at, mark);
    if (found == NULL)
        return NULL;
    found += strlen(mark);
    size_t length = strcspn(found, "\n");
    *at = found + length;
    return strndup(found, length);
}

static ir_genome *genome_of(const char *text) {
    ev_str json = EV_STR_EMPTY;
    ev_str_append(&json, "{\"start\":\"textbook\",\"edits\":[");
    unsigned count = 0;
    for (char *line; (line = next_line(&text, "; EDIT ")) != NULL; free(line))
        ev_str_printf(&json, "%s%s", count++ > 0 ? "," : "", line);
    ev_str_append(&json, "]}");
    ir_genome *genome = NULL;
    ev_json *doc = NULL;
    OK(ev_json_parse(ev_str_text(&json), "genome", &doc, &err));
    OK(ir_genome_from_json(doc->root, &genome, &err));
    ev_json_free(doc);
    ev_str_free(&json);
    return genome;
}

static void check_text(const char *path, const char *ptx, const char *text, const char *mark) {
    unsigned count = 0;
    for (char *wanted; (wanted = next_line(&text, mark)) != NULL; free(wanted), count++)
        if (strstr(ptx, wanted) == NULL)
            fail_msg("%s: no \"%s\" in:\n%s", path, wanted, ptx);
    assert_true(count > 0);
}

static void check_module(const char *name) {
    char path[256];
    char *text = NULL;
    size_t bytes = 0;
    (void)snprintf(path, sizeof path, FOLDER "%s.ll", name);
    OK(ev_file_read(path, &text, &bytes, &err));
    const ir_source source = {.path = path, .entry = "k", .sm = 80};
    ir_base *base = NULL;
    OK(ir_base_load(&source, &base, &err));
    ir_genome *genome = genome_of(text);
    ir_build *build = NULL;
    bool covered = false;
    OK(ir_build_new(base, genome, &build, &err));
    for (int stage = 0; stage < IR_STAGE_COUNT; stage++) {
        if (stage == IR_STAGE_EMIT)
            OK(ir_build_sketch(build, &covered, &err));
        OK(ir_build_run(build, (ir_stage)stage, &err));
    }
    assert_true(covered);
    check_text(path, ir_build_ptx(build, &bytes), text, "; PTX ");
    check_text(path, ir_build_sketch_ptx(build, &bytes), text, "; PTX ");
    ir_build_free(build);
    ir_genome_free(genome);
    ir_base_free(base);
    free(text);
}

static void test_modules(void **state) {
    (void)state;
    static const char *const names[] = {
        "shared", "shared-widen", "shared-widen-store", "global", "constant", "argument", "stays"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        check_module(names[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_modules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
