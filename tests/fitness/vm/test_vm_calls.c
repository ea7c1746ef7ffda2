/* Calls, tables of functions and branches, the stack, and what the machine has for kernels to call:
 * the kernels of tests/fitness/ptx/calls.ptx, what the loader refuses, and printf against the C
 * library's.
 */
#include "base/file.h"
#include "base/str.h"
#include "fitness/ptx/ptx.h"
#include "fitness/vm/vm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define THREADS 64
#define NEWER ".version 9.0\n.target sm_90\n.address_size 64\n"
#define HEAD ".version 8.5\n.target sm_90\n.address_size 64\n"

typedef struct machine {
    vm_memory *memory;
    uint64_t out, args;
    ev_str printed;
    bool silent;
    vm_result result;
} machine;

static void print(void *context, const char *text, size_t bytes) {
    ev_str_append_n(context, text, bytes);
}

static int set_up(void **state) {
    static machine m;
    ev_error err;
    *state = &m;
    return vm_memory_new(1 << 20, &m.memory, &err) != EV_OK ||
           vm_memory_alloc(m.memory, (uint64_t)THREADS * 4, VM_BUFFER_OUT, "out", &m.out, &err) !=
               EV_OK ||
           vm_memory_alloc(m.memory, 256, VM_BUFFER_IN, "args", &m.args, &err) != EV_OK;
}

static int tear_down(void **state) {
    machine *m = *state;
    vm_memory_free(m->memory);
    ev_str_free(&m->printed);
    return 0;
}

static vm_module *load_text(const char *text) {
    ev_error err;
    vm_module *module = NULL;
    if (vm_module_load(text, strlen(text), "t.ptx", &module, &err) != EV_OK)
        fail_msg("%s", err.text);
    return module;
}

static vm_module *load_file(void) {
    char *text = NULL;
    size_t bytes;
    ev_error err;
    assert_int_equal(ev_file_read("tests/fitness/ptx/calls.ptx", &text, &bytes, &err), EV_OK);
    vm_module *module = load_text(text);
    free(text);
    return module;
}

static void run_entry(machine *m, const vm_module *module, const vm_entry *entry, uint32_t threads,
                      uint64_t seed) {
    struct {
        uint64_t out, n;
    } params = {m->out, m->args};
    vm_launch l = {.module = module,
                   .entry = entry,
                   .grid = {1, 1, 1},
                   .block = {threads, 1, 1},
                   .params = &params,
                   .checks = VM_CHECK_ALL,
                   .fuel = 2000000,
                   .schedule_seed = seed,
                   .print = m->silent ? NULL : print,
                   .print_context = &m->printed};
    ev_error err;
    vm_memory_reset(m->memory, 0xcd);
    ev_str_clear(&m->printed);
    if (vm_run(m->memory, &l, &m->result, &err) != EV_OK)
        fail_msg("%s", err.text);
}

static void run(machine *m, const vm_module *module, const char *name, uint32_t threads,
                uint64_t seed) {
    const vm_entry *entry = vm_module_find(module, name);
    if (!entry)
        fail_msg("no kernel '%s'", name ? name : "(the only one)");
    run_entry(m, module, entry, threads, seed);
}

/* ---- kernels that end well: out[i] */

static int shuffled(int i) {
    return i & 1 ? i ^ 16 : (i ^ 16) * 100 + 1;
}
static int met(int i) {
    int from = 63 - i;
    return from % 4 == 2 ? from * 100 : from;
}
static int neighbour(int i) {
    return i & 1 ? i - 1 : i + 1 + 100;
}
static int all_lanes(int i) {
    return i >= 0 ? 32 : 0;
}
static int summed(int i) {
    return 32 * 10000 + i * (i + 1) / 2;
}
static int thousand(int i) {
    return i >= 0 ? 500500 : 0;
}
static int triangular(int i) {
    return i * (i + 1) / 2;
}
static int through_tables(int i) {
    return 32000 + (i & 1 ? i * 3 : i + 1);
}
static int other_values(int i) {
    int s[4] = {500, 2, i, 1}; /* swapped */
    return i * 0xffff + 7 + s[i & 1 ? 2 : 0] + s[1] + 3 * i;
}
static int is_o(int i) {
    return i >= 0 ? 'o' : 0;
}
static int used(int i) {
    return i == 33 ? 3 : 0;
}
static int minus_one(int i) {
    return i >= 0 ? -1 : 0;
}
static int three_times(int i) {
    return 3 * i;
}
static int first_eight(int i) {
    return i < 8; /* 8 MiB hold eight blocks of 1,000,000 bytes */
}
static int stacked(int i) {
    return i + triangular(i);
}

static const struct {
    const char *name;
    int (*of)(int i);
} good[] = {
    {"shuffle_from_both_sides", shuffled},
    {"barrier_in_function", met},
    {"meet_on_both_sides", neighbour},
    {"meet_at_depths", all_lanes},
    {"depth_by_lane", summed},
    {"deep", thousand},
    {"much_stack", triangular},
    {"through_tables", through_tables},
    {"other_values", other_values},
    {"pointer_in_bytes", is_o},
    {"print_strings", used},
    {"print_nothing", minus_one},
    {"heap", three_times},
    {"stack_by_lane", stacked},
};

static void test_good(void **state) {
    machine *m = *state;
    vm_module *module = load_file();
    for (unsigned isa = 0; isa < VM_ISA_COUNT; isa++) {
        if (!vm_isa_supported(isa))
            continue;
        vm_module_set_isa(module, isa);
        for (size_t k = 0; k < sizeof good / sizeof *good; k++)
            for (uint64_t seed = 0; seed < 3; seed++) {
                run(m, module, good[k].name, THREADS, seed);
                if (!m->result.ok)
                    fail_msg("%s: %s", good[k].name, m->result.trap.message);
                const int32_t *out = vm_memory_host(m->memory, m->out);
                for (int i = 0; i < THREADS; i++)
                    if (out[i] != good[k].of(i))
                        fail_msg("%s: out[%d] is %d, expected %d", good[k].name, i, out[i],
                                 good[k].of(i));
            }
    }
    run(m, module, "heap_full", THREADS, 0);
    assert_true(m->result.ok);
    const int32_t *out = vm_memory_host(m->memory, m->out);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(out[i], first_eight(i));
    vm_module_free(module);
}

/* ---- kernels that are stopped: kind, and what the message says */

static const struct {
    const char *name;
    vm_trap_kind kind;
    const char *says;
} bad[] = {
    {"too_deep", VM_TRAP_STACK_OVERFLOW, "call of 'sum_to' at depth 1024"},
    {"too_much_stack", VM_TRAP_STACK_OVERFLOW, "call of 'greedy' at depth 129 with 524288 bytes"},
    {"meet_with_other_masks", VM_TRAP_DEADLOCK, "wait for lanes"},
    {"call_no_function", VM_TRAP_BAD_CALL, "0x1234, which is no function"},
    {"call_beside_function", VM_TRAP_BAD_CALL, "which is no function"},
    {"call_other_signature", VM_TRAP_BAD_CALL,
     "'wide' with bytes (8) gives (8) through a prototype with (4) gives (4)"},
    {"call_not_listed", VM_TRAP_BAD_CALL, "'thrice', which is none of the 1 functions"},
    {"call_entry", VM_TRAP_BAD_CALL, "'deep', which is an entry"},
    {"call_undefined", VM_TRAP_BAD_CALL, "'elsewhere', which has no body"},
    {"read_function", VM_TRAP_OUT_OF_BOUNDS, "no buffer"},
    {"print_endless", VM_TRAP_OUT_OF_BOUNDS, "'vprintf' reads a string outside of memory"},
    {"print_without_arguments", VM_TRAP_OUT_OF_BOUNDS, "'vprintf' reads an argument"},
    {"heap_unwritten", VM_TRAP_UNINITIALISED, "heap block"},
    {"heap_past_end", VM_TRAP_OUT_OF_BOUNDS, "heap block"},
    {"heap_after_free", VM_TRAP_OUT_OF_BOUNDS, "no buffer"},
    {"heap_free_twice", VM_TRAP_OUT_OF_BOUNDS, "malloc did not give"},
    {"heap_free_inside", VM_TRAP_OUT_OF_BOUNDS, "malloc did not give"},
    {"stack_past_own_top", VM_TRAP_OUT_OF_BOUNDS, "local memory"},
};

static void test_bad(void **state) {
    machine *m = *state;
    vm_module *module = load_file();
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        run(m, module, bad[k].name, 32, 0);
        vm_trap_kind got = m->result.ok ? VM_TRAP_NONE : m->result.trap.kind;
        if (got != bad[k].kind || !strstr(m->result.trap.message, bad[k].says))
            fail_msg("%s: expected %s with \"%s\", got %s: %s", bad[k].name,
                     vm_trap_name(bad[k].kind), bad[k].says, vm_trap_name(got),
                     m->result.ok ? "" : m->result.trap.message);
    }
    assert_int_equal(vm_module_entry_count(module),
                     sizeof good / sizeof *good + sizeof bad / sizeof *bad + 1);
    vm_module_free(module);
}

/* ---- printf: each conversion as the C library does it */

/* A kernel of one thread that prints `format` with the arguments packed in the buffer. */
static vm_module *printer(const char *format) {
    ev_str s = EV_STR_EMPTY;
    ev_str_append(&s, HEAD ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
                           ".global .align 1 .b8 format[] = {");
    for (const char *p = format; *p; p++)
        ev_str_printf(&s, "%d, ", (unsigned char)*p);
    ev_str_append(&s, "0};\n.entry k(.param .u64 out, .param .u64 args)\n{\n"
                      ".reg .b32 %r<3>; .reg .b64 %rd<5>;\n"
                      "ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [args];\n"
                      "mov.u64 %rd3, format; cvta.global.u64 %rd3, %rd3;\n"
                      "call (%r1), vprintf, (%rd3, %rd2);\nst.global.u32 [%rd1], %r1;\nret;\n}\n");
    vm_module *module = load_text(ev_str_text(&s));
    ev_str_free(&s);
    return module;
}

typedef struct packed {
    unsigned char bytes[256];
    size_t used;
} packed;

static void pack(packed *p, const void *value, size_t bytes) {
    p->used = (p->used + bytes - 1) / bytes * bytes;
    memcpy(p->bytes + p->used, value, bytes);
    p->used += bytes;
}

static void check_print(machine *m, const char *format, const packed *args, int count,
                        const char *expected) {
    vm_module *module = printer(format);
    memcpy(vm_memory_host(m->memory, m->args), args->bytes, sizeof args->bytes);
    m->silent = false;
    run(m, module, NULL, 1, 0);
    if (!m->result.ok)
        fail_msg("\"%s\": %s", format, m->result.trap.message);
    if (strcmp(ev_str_text(&m->printed), expected) != 0)
        fail_msg("\"%s\": printed \"%s\", expected \"%s\"", format, ev_str_text(&m->printed),
                 expected);
    assert_int_equal(*(const int32_t *)vm_memory_host(m->memory, m->out), count);
    m->silent = true; /* nothing is asked for, nothing is printed; the rest is the same */
    run(m, module, NULL, 1, 0);
    assert_true(m->result.ok);
    assert_int_equal(m->printed.length, 0);
    assert_int_equal(*(const int32_t *)vm_memory_host(m->memory, m->out), count);
    m->silent = false;
    vm_module_free(module);
}

#define CHECK_PRINT(m, type, value, ...)                                                           \
    do {                                                                                           \
        static const char *const formats[] = {__VA_ARGS__};                                        \
        for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {                            \
            char expected[600];                                                                    \
            type v = (value);                                                                      \
            packed args = {.used = 0};                                                             \
            pack(&args, &v, sizeof v);                                                             \
            snprintf(expected, sizeof expected, formats[i], v);                                    \
            check_print(m, formats[i], &args, 1, expected);                                        \
        }                                                                                          \
    } while (0)

#pragma GCC diagnostic ignored "-Wformat-nonliteral"

static void test_printf_integers(void **state) {
    machine *m = *state;
    CHECK_PRINT(m, int, -42, "%d", "%i", "[%8d]", "[%-8d]", "[%08d]", "%+d", "% d", "%.5d", "%x",
                "%X", "%#x", "%o", "%#o", "%u", "%hd", "%hu", "%hx", "%hhd", "[%12.6i]");
    CHECK_PRINT(m, int, 70000, "%hd", "%hu", "%hhx", "%5c|", "%c", "%-5c|");
    CHECK_PRINT(m, long long, -5000000000, "%lld", "%llx", "%ld", "%lu", "%llo", "[%20lld]",
                "[%-20ld]", "%+lli", "%llX");
}

static void test_printf_floats(void **state) {
    machine *m = *state;
    static const double values[] = {0, -0.0, 1.5, -2.25e-7, 6.02e23, 1e308, 1.0 / 3};
    for (size_t k = 0; k < sizeof values / sizeof *values; k++)
        CHECK_PRINT(m, double, values[k], "%e", "%g", "%a", "%E", "%G", "%A", "%.3f", "%12.4e|",
                    "%-12.2g|", "%+.1f", "%#.0g", "%012.3g");
    CHECK_PRINT(m, double, __builtin_inf(), "%f", "%10.2f", "%e", "%G");
    CHECK_PRINT(m, double, 12345.678, "%f", "%F", "%.0f", "%20.10f");
}

static void test_printf_others(void **state) {
    machine *m = *state;
    packed none = {.used = 0};
    check_print(m, "plain, 100%%\n", &none, 0, "plain, 100%\n");
    check_print(m, "", &none, 0, "");
    check_print(m, "%", &none, 0, "%");
    check_print(m, "%q %-5y %.3 %", &none, 0, "%q %-5y %.3 %");
    check_print(m, "%n", &none, 0, "%n");
    CHECK_PRINT(m, void *, (void *)(uintptr_t)0x1234, "%p", "[%20p]", "[%-20p]");
    packed p = {.used = 0};
    int width = -6, precision = 2, value = 7;
    double pi = 3.14159;
    pack(&p, &width, 4);
    pack(&p, &value, 4);
    pack(&p, &precision, 4);
    pack(&p, &pi, 8);
    pack(&p, &value, 4);
    check_print(m, "%*d|%.*f|%c", &p, 5, "7     |3.14|\a");
    width = 2000000000; /* a width is cut to 4096 */
    packed wide = {.used = 0};
    pack(&wide, &width, 4);
    pack(&wide, &value, 4);
    char expected[4097];
    memset(expected, ' ', 4095);
    memcpy(expected + 4095, "7", 2);
    check_print(m, "%*d", &wide, 2, expected);
}

static void test_printf_strings(void **state) {
    machine *m = *state;
    vm_module *module = load_file();
    m->silent = false;
    run(m, module, "print_strings", THREADS, 0);
    assert_true(m->result.ok);
    assert_string_equal(ev_str_text(&m->printed), "wor|c%[(null)]");
    vm_module_free(module);
}

/* ---- what the loader refuses */

#define FUNC ".func (.param .b32 o) f (.param .b32 x) { ret; }\n"
#define ENTRY                                                                                      \
    HEAD FUNC ".entry k(.param .u64 p)\n{\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n"                  \
              ".reg .pred %p<2>;\n.param .b64 big;\n"

static const struct {
    const char *text, *place, *says;
} refusals[] = {
    {ENTRY "call (%r1), f, (%rd1);\n}", "t.ptx:11:17", "register of 32 bits"},
    {ENTRY "call (%r1), f, (big);\n}", "t.ptx:11:17", "of 4 bytes"},
    {ENTRY "call (%r1), f, (p);\n}", "t.ptx:11:17", "of 4 bytes"},
    {ENTRY "call (%r1), f, (%p1);\n}", "t.ptx:11:17", "register of 32 bits"},
    {ENTRY "call (5), f, (%r1);\n}", "t.ptx:11:7", "or a register"},
    {ENTRY "call f, (%r1);\n}", "t.ptx:11:6", "0 results"},
    {ENTRY "call (%r1), f, (%r1, %r2);\n}", "t.ptx:11:13", "2 arguments"},
    {ENTRY "call (%r1), f, (%r1), P;\n}", "t.ptx:11:23", "';'"},
    {ENTRY "call (%r1), %rd1, (%r1);\n}", "t.ptx:11:24", "','"},
    {ENTRY "call (%r1), %rd1, (%r1), f;\n}", "t.ptx:11:26", ".callprototype"},
    {ENTRY "call (%r1), %r2, (%r1), f;\n}", "t.ptx:11:13", "register of 64 bits"},
    {ENTRY "call k, (0);\n}", "t.ptx:11:6", "no entry"},
    {ENTRY "mov.u32 %r1, f;\n}", "t.ptx:11:14", "type u32"},
    {ENTRY "brx.idx %r1, f;\n}", "t.ptx:11:14", ".branchtargets"},
    {ENTRY "brx.idx %r1, nowhere;\n}", "t.ptx:11:14", ".branchtargets"},
    {ENTRY "T: .branchtargets A, B;\nA: brx.idx %r1, T;\n}", "t.ptx:11:22", "label"},
    {ENTRY "T: .branchtargets ;\n}", "t.ptx:11:19", "list of names"},
    {ENTRY "T: .calltargets k2;\n}", "t.ptx:11:17", "declared function"},
    {ENTRY "P: .callprototype (.param .b32 _) _ (.param .b32 x, .param .b32 x);\n}", "t.ptx:11:65",
     "second declaration"},
    {HEAD ".extern .func g (.param .b32 x);\n.entry k()\n{\ncall g, (1);\n}", "t.ptx:7:6",
     "'g', which has no body"},
    {HEAD ".extern .func vprintf (.param .b32 x);\n.entry k()\n{\ncall vprintf, (1);\n}",
     "t.ptx:7:6", "'vprintf', which has no body"},
    {HEAD ".func g (.param .b32 x);\n.func g (.param .b64 x) { ret; }\n", "t.ptx:5:7",
     "its declaration"},
    {HEAD ".func g (.param .b8 x[]) { ret; }\n", "t.ptx:4:24", "known size"},
    {HEAD ".func g (.reg .pred p) { ret; }\n", "t.ptx:4:21", "bytes"},
    {HEAD ".entry k(.reg .b32 x) { ret; }\n", "t.ptx:4:8", "expected .param"},
    {HEAD FUNC ".func (.param .b32 o) g (.param .b64 x);\n.alias g, f;\n", "t.ptx:6:11",
     "same parameters"},
    {HEAD FUNC ".alias f, f;\n", "t.ptx:5:8", "without a body"},
    {HEAD ".entry k() .reqnctapercluster 2, 1, 1 { ret; }\n", "t.ptx:4:12", "a cluster of more"},
    {HEAD ".global .attribute(.shared) .b32 x;\n", "t.ptx:4:20", ".managed"},
    {HEAD FUNC ".global .b32 x = f;\n", "t.ptx:5:18", "64 bits"},
    {HEAD FUNC ".global .b8 x[2] = {0xf0(f), 1};\n", "t.ptx:5:25", "one byte"},
};

static void test_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        ev_error err = {EV_OK, ""};
        vm_module *module = NULL;
        const char *text = refusals[i].text;
        if (vm_module_load(text, strlen(text), "t.ptx", &module, &err) != EV_BAD)
            fail_msg("loaded or failed otherwise: %s", text);
        size_t length = strlen(refusals[i].place);
        if (strncmp(err.text, refusals[i].place, length) != 0 || err.text[length] != ':' ||
            !strstr(err.text, refusals[i].says))
            fail_msg("expected %s: ... %s, got %s", refusals[i].place, refusals[i].says, err.text);
    }
}

static const char *const accepted[] = {
    HEAD ".global .attribute(.managed) .align 4 .b32 x = 3;\n.entry k() { ret; }\n",
    NEWER ".global .attribute(.unified(1, 2)) .b32 x;\n.entry k() { ret; }\n",
    HEAD ".entry k() .reqntid 32, 2 .minnctapersm 2 .explicitcluster .maxclusterrank 8 { ret; }\n",
    HEAD ".entry k() .maxntid 32 .maxnreg 64 .reqnctapercluster 1 { ret; }\n",
    HEAD ".func .noreturn g (.param .b32 x) .noreturn { trap; }\n.entry k() { call g, (1); }\n",
    HEAD ".extern .func (.param .b32 _) g (.param .b32 _, .param .b64 _);\n.entry k() { ret; }\n",
    HEAD ".file 1 \"a.cu\", 1, 2\n.entry k() { .loc 1 2 3\n.loc 1 2 3, function_name L+4, "
         "inlined_at 1 5 6\n.pragma \"nounroll\"; ret; }\n.section .debug_str { L: .b8 1, 2 }\n",
    NEWER FUNC ".entry k() { .reg .b64 %rd1; P: .callprototype _ () .abi_preserve 4; T: "
               ".calltargets f; mov.u64 %rd1, f; ret; }\n",
};

static void test_accepted(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++)
        vm_module_free(load_text(accepted[i]));
}

/* The text of a call comes back from the disassembler. */
static void test_disassembly(void **state) {
    (void)state;
    vm_module *module =
        load_text(ENTRY "P: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
                        "@%p1 call (%r1),\n  %rd1, \n(%r2)\n, P;\ncall.uni (%r1), f, (3);\n}\n");
    const vm_entry *k = vm_module_find(module, "k");
    char *first = vm_module_disassemble(module, k->first_pc);
    char *second = vm_module_disassemble(module, k->first_pc + 1);
    assert_string_equal(first, "@%p1 call (%r1), %rd1, (%r2), P;");
    assert_string_equal(second, "call.uni (%r1), f, (3);");
    free(first);
    free(second);
    vm_insn_info info;
    vm_module_info(module, k->first_pc, &info);
    assert_int_equal(info.def_count, 1);
    assert_int_equal(info.use_count, 3); /* guard, pointer, argument */
    assert_int_equal(info.target, UINT32_MAX);
    vm_module_free(module);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_printf_integers),
        cmocka_unit_test(test_printf_floats),
        cmocka_unit_test(test_printf_others),
        cmocka_unit_test(test_printf_strings),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_disassembly),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
