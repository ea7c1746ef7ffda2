/* The bad half of the zoo: each kernel is stopped by its own trap, at its line, at its address, by
 * its thread, under every schedule and every instruction set.
 *
 * What is expected stands in the kernel's source: "LAUNCH blocks threads [shared=N] [resident=N]"
 * where it begins, "TRAP kind [at SPACE+OFFSET] [thread=N]" on each line that may be named (a race
 * is found at the later of two accesses, whichever that is). In CUDA C, "anywhere" stands where
 * the compiler gives the line of an inlined function, or none. Marks before the first kernel belong
 * to functions that several call: they count for kernels without marks of their own. */
#include "tests/fitness/vm/zoo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEEDS 3
#define FUEL 200000
#define MAX_MARKS 2000

typedef struct mark {
    unsigned line, kernel; /* 0: before the first kernel */
    vm_trap_kind kind;
    char buffer[8]; /* "": no address given */
    long offset;
    long thread; /* -1: any */
    bool anywhere;
} mark;

typedef struct bad_file {
    const char *path;
    bool source; /* CUDA C: lines are those of .loc */
    vm_module *m;
    mark marks[MAX_MARKS];
    size_t mark_count;
    unsigned kernel_count;
    char kernel[80]; /* the newest */
    zoo_launch how;
    bool *seen; /* kinds of traps */
} bad_file;

typedef struct bad_zoo {
    zoo *z;
    bool seen[VM_TRAP_COUNT];
} bad_zoo;

static vm_trap_kind kind_named(const char *name, size_t length) {
    for (unsigned k = 1; k < VM_TRAP_COUNT; k++)
        if (strlen(vm_trap_name((vm_trap_kind)k)) == length &&
            memcmp(vm_trap_name((vm_trap_kind)k), name, length) == 0)
            return (vm_trap_kind)k;
    fail_msg("no trap is called '%.*s'", (int)length, name);
    return VM_TRAP_NONE;
}

static void read_mark(bad_file *f, const char *text, unsigned line) {
    mark m = {.line = line, .kernel = f->kernel_count, .thread = -1};
    text += strlen("TRAP ");
    m.kind = kind_named(text, strcspn(text, " \n"));
    const char *at = strstr(text, " at "), *thread = strstr(text, " thread=");
    if (at)
        assert_int_equal(sscanf(at, " at %7[a-z]%ld", m.buffer, &m.offset), 2);
    m.anywhere = strstr(text, " anywhere") != NULL;
    if (thread)
        m.thread = strtol(thread + strlen(" thread="), NULL, 10);
    assert_true(f->mark_count < MAX_MARKS);
    f->marks[f->mark_count++] = m;
}

static uint64_t start_of(const zoo *z, const char *buffer) {
    if (strcmp(buffer, "in") == 0)
        return z->in_at;
    if (strcmp(buffer, "out") == 0)
        return z->out_at;
    if (strcmp(buffer, "both") == 0)
        return z->both_at;
    return z->odd_at;
}

static bool mark_fits(const zoo *z, const bad_file *f, const mark *k, const vm_trap *t) {
    if (k->kind != t->kind || (!k->anywhere && k->line != (f->source ? t->source_line : t->line)))
        return false;
    if (k->thread >= 0 && t->thread[0] != (uint32_t)k->thread)
        return false;
    if (!k->buffer[0])
        return true;
    char name[16];
    snprintf(name, sizeof name, "'%s'", k->buffer);
    return t->has_address && t->address == start_of(z, k->buffer) + (uint64_t)k->offset &&
           strstr(t->message, name);
}

static bool expected(const zoo *z, const bad_file *f, const vm_trap *t) {
    bool own = false;
    for (size_t i = 0; i < f->mark_count; i++)
        own |= f->marks[i].kernel == f->kernel_count;
    for (size_t i = 0; i < f->mark_count; i++)
        if (f->marks[i].kernel == (own ? f->kernel_count : 0) && mark_fits(z, f, &f->marks[i], t))
            return true;
    return false;
}

static unsigned check(zoo *z, const bad_file *f) {
    const vm_entry *entry = vm_module_find(f->m, f->kernel);
    if (!entry)
        fail_msg("%s: no kernel '%s'", f->path, f->kernel);
    zoo_launch how = f->how;
    unsigned wrong = 0;
    for (unsigned isa = 0; isa < VM_ISA_COUNT; isa++)
        for (how.seed = 0; how.seed < SEEDS && vm_isa_supported(isa); how.seed++) {
            vm_module_set_isa(f->m, isa);
            vm_result r = zoo_run(z, f->m, entry, &how);
            if (!r.ok && expected(z, f, &r.trap) && strstr(r.trap.message, "block (")) {
                f->seen[r.trap.kind] = true;
                continue;
            }
            print_error("%s: %s (seed %llu, isa %u): %s\n", f->path, f->kernel,
                        (unsigned long long)how.seed, isa, r.ok ? "no trap" : r.trap.message);
            wrong++;
        }
    return wrong;
}

/* "name(" of the kernel that a LAUNCH line declares. */
static void kernel_name(const char *line, char *name, size_t size) {
    const char *end = strchr(line, '('), *start = end;
    assert_non_null(end);
    while (start > line && start[-1] != ' ')
        start--;
    snprintf(name, size, "%.*s", (int)(end - start), start);
}

static zoo_launch read_launch(const char *text) {
    zoo_launch how = {.fuel = FUEL};
    assert_int_equal(sscanf(text, "LAUNCH %u %u", &how.blocks, &how.threads), 2);
    const char *shared = strstr(text, " shared="), *resident = strstr(text, " resident="),
               *fuel = strstr(text, " fuel=");
    if (shared)
        how.shared = (uint32_t)strtoul(shared + strlen(" shared="), NULL, 10);
    if (resident)
        how.resident = (uint32_t)strtoul(resident + strlen(" resident="), NULL, 10);
    if (fuel)
        how.fuel = strtoull(fuel + strlen(" fuel="), NULL, 10);
    return how;
}

/* One line of the source; a kernel is run when the next one begins, all its marks being read. */
static unsigned read_line(zoo *z, bad_file *f, const char *line, unsigned number) {
    unsigned wrong = 0;
    const char *launch = strstr(line, "// LAUNCH ");
    if (launch) {
        wrong = f->kernel_count ? check(z, f) : 0;
        kernel_name(line, f->kernel, sizeof f->kernel);
        f->how = read_launch(launch + strlen("// "));
        f->kernel_count++;
    }
    const char *comment = strstr(line, "// ");
    for (const char *t = comment && comment > line ? strstr(comment, "TRAP ") : NULL; t;
         t = strstr(t + 1, "TRAP "))
        read_mark(f, t, number);
    return wrong;
}

static unsigned run_file(zoo *z, bad_file *f) {
    size_t bytes;
    char *text = zoo_read(f->path, &bytes);
    f->m = f->source ? zoo_compile(f->path) : zoo_load(f->path);
    unsigned wrong = 0, number = 1;
    for (char *line = text; line; number++) {
        char *newline = strchr(line, '\n');
        if (newline)
            *newline = 0;
        wrong += read_line(z, f, line, number);
        line = newline ? newline + 1 : NULL;
    }
    wrong += check(z, f);
    assert_int_equal(vm_module_entry_count(f->m), f->kernel_count);
    vm_module_free(f->m);
    free(text);
    return wrong;
}

static void run_path(void **state, const char *path, bool source) {
    bad_zoo *b = *state;
    bad_file *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->path = path;
    f->source = source;
    f->seen = b->seen;
    unsigned wrong = run_file(b->z, f);
    free(f);
    assert_int_equal(wrong, 0);
}

#define BAD_FILE(name, path, source)                                                               \
    static void test_##name(void **state) {                                                        \
        run_path(state, "tests/fitness/ptx/zoo/" path, source);                                    \
    }
BAD_FILE(bounds, "bad_bounds.ptx", false)
BAD_FILE(alignment, "bad_alignment.ptx", false)
BAD_FILE(contents, "bad_contents.ptx", false)
BAD_FILE(races, "bad_races.ptx", false)
BAD_FILE(promises, "bad_promises.ptx", false)
BAD_FILE(progress, "bad_progress.ptx", false)
BAD_FILE(values, "bad_values.ptx", false)
BAD_FILE(old, "bad_old.ptx", false)
BAD_FILE(source, "bad.cu", true)

BAD_FILE(kinds, "bad_kinds.ptx", false)

/* Every row of traps.def has a kernel in one of the files above, but those of several ranks: the
 * zoo runs one, and test_vm_ranks.c has their kernels. */
static void test_all_kinds(void **state) {
    bad_zoo *b = *state;
    assert_false(b->seen[VM_TRAP_RACE_BEGIN] || b->seen[VM_TRAP_RACE_END]);
    b->seen[VM_TRAP_RACE_BEGIN] = b->seen[VM_TRAP_RACE_END] = true;
    unsigned missing = 0;
    for (unsigned k = VM_TRAP_NONE + 1; k < VM_TRAP_COUNT; k++) {
        if (!b->seen[k])
            print_error("no kernel of the zoo is stopped by '%s'\n", vm_trap_name((vm_trap_kind)k));
        missing += !b->seen[k];
    }
    assert_int_equal(missing, 0);
}

static int set_up(void **state) {
    static bad_zoo b;
    b.z = zoo_new();
    *state = &b;
    return 0;
}

static int tear_down(void **state) {
    bad_zoo *b = *state;
    zoo_free(b->z);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),    cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_contents),  cmocka_unit_test(test_races),
        cmocka_unit_test(test_promises),  cmocka_unit_test(test_progress),
        cmocka_unit_test(test_values),    cmocka_unit_test(test_old),
        cmocka_unit_test(test_source),    cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_all_kinds),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
