/* What the tests of ir/ share: loading a base, making genomes, building them. */
#ifndef TESTS_IR_IR_RIG_H
#define TESTS_IR_IR_RIG_H

#include "base/file.h"
#include "base/json.h"
#include "ir/ir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const ir_source everything = {.path = "tests/ir/everything.cu",
                                     .entry = "everything",
                                     .include = "kernels/include",
                                     .sm = 90,
                                     .block = {256, 1, 1}};

static inline ir_base *load(const ir_source *source) {
    ev_error err;
    ir_base *base = NULL;
    if (ir_base_load(source, &base, &err) != EV_OK)
        fail_msg("%s", err.text);
    return base;
}

static inline ir_genome *genome_of(const char *edits) {
    ev_str text = EV_STR_EMPTY;
    ev_str_printf(&text, "{\"start\":\"textbook\",\"edits\":[%s]}", edits);
    ev_json *doc = NULL;
    ir_genome *genome = NULL;
    ev_error err;
    if (ev_json_parse(ev_str_text(&text), "test", &doc, &err) != EV_OK ||
        ir_genome_from_json(doc->root, &genome, &err) != EV_OK)
        fail_msg("%s", err.text);
    ev_json_free(doc);
    ev_str_free(&text);
    return genome;
}

/* Runs all stages; the first that fails is in *stage. */
static inline ev_status build_all(const ir_base *base, const ir_genome *genome, ir_build **out,
                                  ir_stage *stage, ev_error *err) {
    ir_build *build = NULL;
    assert_int_equal(ir_build_new(base, genome, &build, err), EV_OK);
    ev_status status = EV_OK;
    for (int i = 0; status == EV_OK && i < IR_STAGE_COUNT; i++) {
        *stage = (ir_stage)i;
        status = ir_build_run(build, *stage, err);
    }
    if (status == EV_OK)
        *out = build;
    else
        ir_build_free(build);
    return status;
}

static inline ir_build *build(const ir_base *base, const ir_genome *genome) {
    ir_build *made = NULL;
    ir_stage stage;
    ev_error err;
    if (build_all(base, genome, &made, &stage, &err) != EV_OK)
        fail_msg("%s: %s", ir_stage_name(stage), err.text);
    return made;
}

static char folder[] = "/tmp/evoke-test-ir-XXXXXX";

static inline int ir_rig_begin(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static inline int ir_rig_end(void **state) {
    (void)state;
    ev_error err;
    return ev_dir_remove(folder, &err) == EV_OK ? 0 : -1;
}

/* A file of the test's folder; malloc'ed. */
static inline char *write_file(const char *name, const char *text) {
    ev_error err;
    char *path = ev_path_join(folder, name);
    if (ev_file_write(path, text, strlen(text), &err) != EV_OK)
        fail_msg("%s", err.text);
    return path;
}

static inline ir_genome *mutated(const ir_base *base, uint64_t seed, int edits) {
    ir_genome *genome = ir_genome_new("textbook");
    ev_pcg rng = ev_pcg_seed(seed, 9);
    for (int i = 0; i < edits; i++) {
        ir_edit_kind kind = (ir_edit_kind)ev_pcg_below(&rng, IR_EDIT_LOCAL_COUNT);
        ir_genome *child;
        ev_error err;
        if (ir_mutate(base, genome, kind, NULL, &rng, &child, &err) != EV_OK)
            continue;
        ir_genome_free(genome);
        genome = child;
    }
    return genome;
}

static inline ir_base *load_text(const char *text, int sm) {
    char *path = write_file("text.ll", text);
    ir_source source = {.path = path, .entry = "k", .sm = sm};
    ir_base *base = load(&source);
    free(path);
    return base;
}

static const char loop[] = "define ptx_kernel void @k(ptr %x, i32 %n) {\n" /* i0 br */
                           "  br label %head\n"
                           "head:\n"
                           "  %i = phi i32 [ 0, %0 ], [ %j, %head ]\n" /* i1 */
                           "  %a = mul i32 %i, 3\n"                    /* i2 */
                           "  %b = add i32 %a, %n\n"                   /* i3 */
                           "  store i32 %b, ptr %x\n"                  /* i4 */
                           "  %j = add i32 %i, 1\n"                    /* i5 */
                           "  %c = icmp slt i32 %j, %n\n"              /* i6 */
                           "  br i1 %c, label %head, label %out\n"     /* i7 */
                           "out:\n"
                           "  ret void\n"
                           "}\n";

#endif
