/* Facts that the edit no-wrap asserts, built as checks: each operation traps where it wraps, at a
 * line that names the edit, and gives its result where it does not. */
#include "base/json.h"
#include "fitness/vm/vm.h"
#include "ir/ir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/ok.h"

static ev_error err;

/* i0, i1: the operands, i2: the result. */
static const char text[] = "target triple = \"nvptx64-nvidia-cuda\"\n"
                           "define ptx_kernel void @k(ptr %%p) {\n"
                           "  %%a = load %s, ptr %%p, align 8\n"
                           "  %%q = getelementptr i8, ptr %%p, i64 8\n"
                           "  %%b = load %s, ptr %%q, align 8\n"
                           "  %%r = %s %s %%a, %%b\n"
                           "  %%o = getelementptr i8, ptr %%p, i64 16\n"
                           "  store %s %%r, ptr %%o, align 8\n"
                           "  ret void\n}\n";

static ir_base *load_base(const char *operation, const char *type) {
    char path[] = "/tmp/evoke-asserts-XXXXXX.ll";
    int fd = mkstemps(path, 3);
    assert_true(fd >= 0);
    FILE *f = fdopen(fd, "w");
    (void)fprintf(f, text, type, type, operation, type, type);
    (void)fclose(f);
    const ir_source source = {.path = path, .entry = "k", .sm = 80};
    ir_base *base = NULL;
    ev_status status = ir_base_load(&source, &base, &err);
    (void)remove(path);
    OK(status);
    return base;
}

static ir_genome *genome_of(int option) {
    char json[200];
    (void)snprintf(json, sizeof json,
                   "{\"start\":\"textbook\",\"edits\":[{\"kind\":\"no-wrap\",\"at\":\"i3\","
                   "\"option\":%d}]}",
                   option);
    ev_json *doc = NULL;
    ir_genome *genome = NULL;
    OK(ev_json_parse(json, "genome", &doc, &err));
    OK(ir_genome_from_json(doc->root, &genome, &err));
    ev_json_free(doc);
    return genome;
}

/* True: the launch ends; *result: what it stored. False: a trap at a line that names the edit. */
static bool run(const char *ptx, size_t bytes, uint64_t a, uint64_t b, uint64_t *result) {
    vm_module *module = NULL;
    vm_memory *memory = NULL;
    uint64_t p = 0;
    OK(vm_module_load(ptx, bytes, "checked", &module, &err));
    OK(vm_memory_new(1 << 20, &memory, &err));
    OK(vm_memory_alloc(memory, 24, VM_BUFFER_INOUT, "p", &p, &err));
    uint64_t *host = vm_memory_host(memory, p);
    host[0] = a;
    host[1] = b;
    vm_launch launch = {.module = module,
                        .entry = vm_module_find(module, "k"),
                        .grid = {1, 1, 1},
                        .block = {1, 1, 1},
                        .params = &p,
                        .checks = VM_CHECK_ALL};
    vm_result r;
    OK(vm_run(memory, &launch, &r, &err));
    *result = host[2];
    if (!r.ok) {
        assert_int_equal(r.trap.kind, VM_TRAP_ILLEGAL_INSTRUCTION);
        size_t length = 0;
        const char *line = vm_module_line(module, r.trap.line, &length);
        assert_non_null(memmem(line, length, IR_ASSERT_MARK "edit 0 asserts that the ",
                               strlen(IR_ASSERT_MARK "edit 0 asserts that the ")));
    }
    vm_module_free(module);
    vm_memory_free(memory);
    return r.ok;
}

typedef struct row {
    const char *operation, *type;
    int option;                /* 1: signed, 2: unsigned */
    uint64_t a, b;             /* does not wrap */
    uint64_t wraps_a, wraps_b; /* does */
    uint64_t result;           /* of the first */
} row;

#define SMALL INT32_MAX
#define BIG UINT32_MAX
static const row rows[] = {
    {"add", "i32", 1, SMALL - 1, 1, SMALL, 1, SMALL},
    {"add", "i32", 2, BIG - 1, 1, BIG, 1, BIG},
    {"sub", "i32", 1, 0, 5, 0x80000000u, 1, BIG - 4},
    {"sub", "i32", 2, 5, 5, 4, 5, 0},
    {"mul", "i32", 1, 46340, 46340, 46341, 46341, 2147395600u},
    {"mul", "i32", 2, 65535, 65537, 65536, 65536, BIG},
    {"shl", "i32", 1, 1, 30, 1, 31, 1u << 30},
    {"shl", "i32", 2, 1, 31, 2, 31, 1u << 31},
    {"add", "i64", 1, INT64_MAX - 1, 1, INT64_MAX, 1, INT64_MAX},
    {"mul", "i64", 1, 1ull << 31, 1ull << 31, 1ull << 32, 1ull << 31, 1ull << 62},
    {"mul", "i64", 2, 1ull << 32, (1ull << 32) - 1, 1ull << 32, 1ull << 32,
     ((1ull << 32) - 1) << 32},
    {"add", "i16", 1, 32766, 1, 32767, 1, 32767},
    {"add", "i8", 2, 254, 1, 255, 1, 255},
};

static void check_row(const row *at, bool twice) {
    ir_base *base = load_base(at->operation, at->type);
    ir_genome *genome = genome_of(at->option);
    ir_build *build = NULL;
    assert_true(ir_genome_asserts(genome));
    OK(ir_build_new(base, genome, &build, &err));
    if (twice)
        ir_build_check_asserts(build);
    for (int stage = 0; stage < IR_STAGE_COUNT; stage++)
        OK(ir_build_run(build, (ir_stage)stage, &err));
    size_t bytes = 0;
    const char *ptx = ir_build_ptx(build, &bytes);
    uint64_t result = 0;
    if (!run(ptx, bytes, at->a, at->b, &result) || result != at->result)
        fail_msg("%s %s: %llx", at->operation, at->type, (unsigned long long)result);
    if (run(ptx, bytes, at->wraps_a, at->wraps_b, &result) == twice)
        fail_msg("%s %s, %d: wraps", at->operation, at->type, at->option);
    ir_build_free(build);
    ir_genome_free(genome);
    ir_base_free(base);
}

static void test_rows(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_row(&rows[i], true);
        check_row(&rows[i], false); /* the variant itself does not trap */
    }
}

static void test_nothing_asserted(void **state) {
    (void)state;
    ir_genome *genome = ir_genome_new("textbook");
    assert_false(ir_genome_asserts(genome));
    ir_genome_free(genome);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_nothing_asserted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
