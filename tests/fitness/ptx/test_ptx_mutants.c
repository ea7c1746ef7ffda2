/* Ten thousand good modules with one character or one line changed: each is refused with line,
 * column and what was expected, or it runs to its end or into a trap; none ever does harm. The same
 * seed makes the same mutants. */
#include "base/file.h"
#include "base/pcg.h"
#include "fitness/vm/vm.h"
#include "tests/fitness/ptx/golden_parse.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MUTANTS 10000
#define MAX_MODULES 4000
#define BUFFER_BYTES 2048
#define FUEL 6000 /* thread instructions of a launch */

/* Modules of one kernel each, short enough to load thousands: the kernels of a file are parted. */
typedef struct pool {
    char *texts[MAX_MODULES];
    size_t count;
    size_t goldens; /* these come first */
    size_t left_out;
} pool;

static void add_text(pool *p, const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
    char *text = malloc(a_bytes + b_bytes + 1);
    assert_non_null(text);
    assert_true(p->count < MAX_MODULES);
    memcpy(text, a, a_bytes);
    memcpy(text + a_bytes, b, b_bytes);
    text[a_bytes + b_bytes] = 0;
    p->texts[p->count++] = text;
}

/* Where the next kernel begins, and where it ends; NULL: there is none. */
static const char *next_kernel(const char *text, const char **end) {
    const char *start = strstr(text, "\n.visible .entry");
    const char *close = start ? strstr(start, "\n}") : NULL;
    *end = close ? close + 2 : "";
    return close ? start : NULL;
}

/* A kernel that names another does not stand alone. */
static void add_kernel(pool *p, const char *rest, const char *kernel, size_t bytes) {
    add_text(p, rest, strlen(rest), kernel, bytes);
    vm_module *m = NULL;
    ev_error err = {0};
    const char *text = p->texts[p->count - 1];
    if (vm_module_load(text, strlen(text), "m.ptx", &m, &err) != EV_OK) {
        free(p->texts[--p->count]);
        p->left_out++;
    }
    vm_module_free(m);
}

static void add_file(pool *p, const char *path) {
    char *text = NULL;
    size_t bytes;
    ev_error err = {0};
    if (ev_file_read(path, &text, &bytes, &err) != EV_OK)
        fail_msg("%s", err.text);
    char *rest = calloc(1, bytes + 1); /* all that is no kernel */
    assert_non_null(rest);
    const char *end, *from = text;
    char *to = rest;
    for (const char *k; (k = next_kernel(from, &end)) != NULL; from = end)
        to = mempcpy(to, from, (size_t)(k - from));
    memcpy(to, from, strlen(from) + 1);
    from = text;
    for (const char *k; (k = next_kernel(from, &end)) != NULL; from = end)
        add_kernel(p, rest, k, (size_t)(end - k));
    free(rest);
    free(text);
}

static void add_files(pool *p, const char *pattern) {
    glob_t files;
    assert_int_equal(glob(pattern, 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++)
        add_file(p, files.gl_pathv[i]);
    globfree(&files);
}

static void add_goldens(pool *p) {
    glob_t files;
    assert_int_equal(glob("tests/fitness/ptx/goldens_*.txt", 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        ev_arena *arena = ev_arena_new();
        golden_file file = {0};
        ev_error err = {0};
        assert_non_null(arena);
        if (golden_read(files.gl_pathv[i], arena, &file, &err) != EV_OK)
            fail_msg("%s", err.text);
        for (size_t k = 0; k < file.count; k++) {
            ev_str s = golden_module(&file.insns[k]);
            add_text(p, ev_str_text(&s), s.length, "", 0);
            ev_str_free(&s);
        }
        ev_arena_free(arena);
    }
    globfree(&files);
    p->goldens = p->count;
}

static int fill_pool(void **state) {
    pool *p = calloc(1, sizeof *p);
    assert_non_null(p);
    add_goldens(p);
    add_files(p, "tests/fitness/ptx/zoo/*.ptx");
    add_files(p, "tests/fitness/ptx/real/*.ptx");
    add_file(p, "tests/fitness/ptx/calls.ptx");
    *state = p;
    return 0;
}

static int empty_pool(void **state) {
    pool *p = *state;
    for (size_t i = 0; i < p->count; i++)
        free(p->texts[i]);
    free(p);
    return 0;
}

/* ---- what becomes of a text */

typedef enum outcome { REFUSED, NO_LAUNCH, RAN, TRAPPED, OUTCOMES } outcome;

/* "m.ptx:LINE:COLUMN: found …; expected …", or what the module needs. */
static bool is_clean(const char *message) {
    unsigned line, column;
    int n = 0;
    return sscanf(message, "m.ptx:%u:%u: %n", &line, &column, &n) == 2 && n > 0 && line > 0 &&
           column > 0 && (strstr(message, "; expected ") || strstr(message, " needs "));
}

/* Addresses of buffers where a parameter is 64 bits wide, small numbers elsewhere. */
static bool fill_params(vm_memory *memory, const vm_entry *entry, uint8_t *params, size_t size) {
    ev_error err = {0};
    for (size_t i = 0; i < entry->param_count; i++) {
        const vm_param *p = &entry->params[i];
        uint64_t value = 33;
        if ((size_t)p->offset + p->bytes > size)
            return false;
        if (p->bytes == 8 &&
            vm_memory_alloc(memory, BUFFER_BYTES, VM_BUFFER_INOUT, p->name, &value, &err) != EV_OK)
            return false;
        memcpy(params + p->offset, &value, p->bytes < 8 ? p->bytes : 8);
    }
    return entry->param_bytes <= size;
}

static outcome run(const vm_module *m, const vm_entry *entry) {
    uint64_t params[64] = {0};
    vm_memory *memory = NULL;
    ev_error err = {0};
    assert_int_equal(vm_memory_new(1 << 20, &memory, &err), EV_OK);
    outcome result = NO_LAUNCH;
    vm_result ran = {0};
    vm_launch launch = {.module = m,
                        .entry = entry,
                        .grid = {2, 1, 1},
                        .block = {40, 1, 1},
                        .params = params,
                        .checks = VM_CHECK_ALL,
                        .fuel = FUEL};
    if (fill_params(memory, entry, (uint8_t *)params, sizeof params)) {
        ev_status status = vm_run(memory, &launch, &ran, &err);
        assert_true(status == EV_OK || (status == EV_BAD && *err.text));
        if (status != EV_OK)
            result = NO_LAUNCH;
        else if (ran.ok)
            result = RAN;
        else
            result = TRAPPED;
    }
    if (result == TRAPPED)
        assert_true(ran.trap.kind > VM_TRAP_NONE && ran.trap.kind < VM_TRAP_COUNT &&
                    *ran.trap.message && ran.trap.line > 0);
    vm_memory_free(memory);
    return result;
}

static outcome load_and_run(const char *text, size_t bytes, ev_error *err) {
    vm_module *m = NULL;
    ev_status status = vm_module_load(text, bytes, "m.ptx", &m, err);
    if (status != EV_OK) {
        assert_int_equal(status, EV_BAD);
        if (!is_clean(err->text))
            fail_msg("an unclear message: %s\n%.*s", err->text, (int)bytes, text);
        return REFUSED;
    }
    uint32_t insns = (uint32_t)vm_module_insn_count(m);
    if (insns) /* one of each module is enough of the disassembler */
        free(vm_module_disassemble(m, insns / 2));
    const vm_entry *entry = vm_module_entry(m, 0);
    outcome result = entry ? run(m, entry) : NO_LAUNCH;
    vm_module_free(m);
    return result;
}

/* ---- one change */

typedef enum change {
    BYTE_ANY,
    BYTE_OTHER,
    BYTE_DROPPED,
    BYTE_ADDED,
    LINE_DROPPED,
    LINE_DOUBLED,
    LINES_SWAPPED,
    LINE_FOREIGN,
    TEXT_CUT,
    CHANGES
} change;

typedef struct line {
    size_t at, bytes; /* without its end */
} line;

static line any_line(ev_pcg *rng, const char *text) {
    size_t bytes = strlen(text), at = ev_pcg_below(rng, (uint32_t)bytes);
    while (at && text[at - 1] != '\n')
        at--;
    return (line){.at = at, .bytes = strcspn(text + at, "\n")};
}

/* The text with `dropped` bytes at `at` gone and others in their place. */
static void splice(ev_str *out, const char *text, size_t at, size_t dropped, const char *put,
                   size_t put_bytes) {
    ev_str_append_n(out, text, at);
    ev_str_append_n(out, put, put_bytes);
    ev_str_append(out, text + at + dropped);
}

static void change_line(ev_pcg *rng, change how, const char *text, const char *other, ev_str *out) {
    line l = any_line(rng, text), m = any_line(rng, how == LINE_FOREIGN ? other : text);
    size_t whole = l.bytes + (text[l.at + l.bytes] == '\n');
    if (how == LINE_DROPPED)
        splice(out, text, l.at, whole, "", 0);
    else if (how == LINE_DOUBLED)
        splice(out, text, l.at, 0, text + l.at, whole);
    else if (how == LINE_FOREIGN)
        splice(out, text, l.at, l.bytes, other + m.at, m.bytes);
    else if (l.at == m.at)
        ev_str_append(out, text);
    else {
        line first = l.at < m.at ? l : m, second = l.at < m.at ? m : l;
        size_t between = first.at + first.bytes;
        ev_str_append_n(out, text, first.at);
        ev_str_append_n(out, text + second.at, second.bytes);
        ev_str_append_n(out, text + between, second.at - between);
        ev_str_append_n(out, text + first.at, first.bytes);
        ev_str_append(out, text + second.at + second.bytes);
    }
}

static void mutate(ev_pcg *rng, change how, const char *text, const char *other, ev_str *out) {
    static const char alphabet[] = " \n.,;:{}[]()<>@!%+-|_$\"/*abcfprtux0123456789";
    size_t bytes = strlen(text), at = ev_pcg_below(rng, (uint32_t)bytes);
    char letter = alphabet[ev_pcg_below(rng, sizeof alphabet - 1)];
    char any = (char)ev_pcg_below(rng, 256);
    ev_str_clear(out);
    if (how == TEXT_CUT)
        ev_str_append_n(out, text, at);
    else if (how == BYTE_ANY)
        splice(out, text, at, 1, &any, 1);
    else if (how == BYTE_DROPPED)
        splice(out, text, at, 1, "", 0);
    else if (how == BYTE_OTHER || how == BYTE_ADDED)
        splice(out, text, at, how == BYTE_OTHER, &letter, 1);
    else
        change_line(rng, how, text, other, out);
}

/* ---- the tests */

static void test_good(void **state) {
    const pool *p = *state;
    size_t seen[OUTCOMES] = {0};
    for (size_t i = 0; i < p->count; i += i < p->goldens ? 8 : 1) {
        ev_error err = {0};
        outcome o = load_and_run(p->texts[i], strlen(p->texts[i]), &err);
        if (o == REFUSED)
            fail_msg("%s\n%s", err.text, p->texts[i]);
        seen[o]++;
    }
    assert_true(p->left_out < 5 && p->goldens > 500 && p->count - p->goldens > 150);
    assert_true(seen[RAN] > 100);
}

static void test_mutants(void **state) {
    const pool *p = *state;
    ev_pcg rng = ev_pcg_seed(3, 7);
    ev_str text = EV_STR_EMPTY;
    size_t seen[CHANGES][OUTCOMES] = {{0}};
    for (unsigned i = 0; i < MUTANTS; i++) {
        bool golden = ev_pcg_below(&rng, 3) != 0;
        size_t number = golden ? ev_pcg_below(&rng, (uint32_t)p->goldens)
                               : p->goldens + ev_pcg_below(&rng, (uint32_t)(p->count - p->goldens));
        change how = (change)(i % CHANGES);
        const char *other = p->texts[ev_pcg_below(&rng, (uint32_t)p->count)];
        mutate(&rng, how, p->texts[number], other, &text);
        ev_error err = {0};
        seen[how][load_and_run(ev_str_text(&text), text.length, &err)]++;
    }
    ev_str_free(&text);
    size_t total[OUTCOMES] = {0};
    for (unsigned c = 0; c < CHANGES; c++)
        for (unsigned o = 0; o < OUTCOMES; o++)
            total[o] += seen[c][o];
    print_message("%d mutants: %zu refused, %zu ran, %zu trapped, %zu could not be launched\n",
                  MUTANTS, total[REFUSED], total[RAN], total[TRAPPED], total[NO_LAUNCH]);
    for (unsigned c = 0; c < TEXT_CUT; c++)
        assert_true(seen[c][REFUSED] && seen[c][RAN] && seen[c][TRAPPED]);
    assert_true(seen[TEXT_CUT][REFUSED] && total[NO_LAUNCH]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_mutants),
    };
    return cmocka_run_group_tests(tests, fill_pool, empty_pool);
}
