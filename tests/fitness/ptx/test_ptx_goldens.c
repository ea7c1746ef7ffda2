/* Every row of ptx_ops.def against bits worked out from the text of the PTX ISA, not from this
 * machine: tests/fitness/ptx/goldens_*.txt, whose form is told in tests/fitness/ptx/golden_parse.h.
 *
 * Each instruction becomes a small module: load the registers of a lane from a buffer, execute,
 * store the registers. It runs on every executor that this processor has, and a second time with
 * a guard that is false in every other lane, which must leave those lanes as they were. */
#include "fitness/ptx/ptx_load.h"
#include "fitness/vm/vm.h"
#include "tests/fitness/ptx/golden_plan.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct session {
    ev_arena *arena;
    vm_memory *memory;
    unsigned failures;
    unsigned values;                                      /* compared */
    uint8_t seen[PTX_OP_COUNT][PTX_T_COUNT][PTX_T_COUNT]; /* executed with a golden */
} session;

/* ---- reports */

static void report(session *s, const golden_case *c, const golden_plan *p, const char *format, ...)
    EV_PRINTF(4, 5);

static void report(session *s, const golden_case *c, const golden_plan *p, const char *format,
                   ...) {
    char text[1600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    s->failures++;
    print_error("%s line %u, executor %u%s: %s\n    %s\n", p->insn->row, c->line, p->isa,
                p->guarded ? " (guarded)" : "", p->insn->text, text);
}

static void print_value(char *text, size_t bytes, const golden_value *v, unsigned bits) {
    static const char *const words[] = {[GOLDEN_UNWRITTEN] = "nothing",
                                        [GOLDEN_NAN_F16] = "a NaN",
                                        [GOLDEN_NAN_BF16] = "a NaN",
                                        [GOLDEN_NAN_32] = "a NaN",
                                        [GOLDEN_NAN_64] = "a NaN"};
    if (v->kind != GOLDEN_EXACT)
        snprintf(text, bytes, "%s", words[v->kind]);
    else
        snprintf(text, bytes, "%0*" PRIx64 "%s", (int)((bits + 3) / 4), v->either[0],
                 v->count > 1 ? " or another" : "");
}

/* ---- one launch */

static uint8_t *buffer(session *s, uint64_t bytes, vm_buffer_kind kind, const char *name,
                       uint64_t *address) {
    ev_error err = {0};
    ev_status status =
        vm_memory_alloc(s->memory, bytes ? bytes : GOLDEN_SLOT, kind, name, address, &err);
    if (status != EV_OK)
        fail_msg("%s", err.text);
    return vm_memory_host(s->memory, *address);
}

static void check_memory(session *s, const golden_plan *p, const uint8_t *got) {
    const golden_operand *want =
        p->first->memory_after.count ? &p->first->memory_after : &p->first->memory;
    for (size_t i = 0; i < want->count; i++) {
        const golden_value *v = &want->values[i];
        uint64_t bits = 0;
        memcpy(&bits, got, v->bits / 8u);
        got += v->bits / 8u;
        s->values++;
        char text[64];
        print_value(text, sizeof text, v, v->bits);
        if (!golden_value_fits(v, bits))
            report(s, p->first, p, "memory element %zu: expected %s, got %0*" PRIx64, i, text,
                   v->bits / 4, bits);
    }
}

static void check_lane(session *s, const golden_plan *p, const golden_slot *r, size_t lane,
                       uint64_t got, bool written) {
    const golden_value *v = golden_value_of(p, r, lane, true);
    golden_value as_before = {
        .kind = GOLDEN_EXACT, .count = 1, .either = {golden_bits_before(p, r, lane)}};
    if (!v || (p->guarded && lane % 2))
        v = &as_before;
    s->values++;
    bool fits = v->kind == GOLDEN_UNWRITTEN ? !written : written && golden_value_fits(v, got);
    if (fits)
        return;
    char text[64];
    print_value(text, sizeof text, v, r->bits);
    report(s, golden_case_of(p, lane), p, "lane %zu, %%%s: expected %s, got %0*" PRIx64 "%s", lane,
           r->name, text, (r->bits + 3) / 4, got, written ? "" : " (never stored)");
}

static int compare_bits(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void check_any_order(session *s, const golden_plan *p, const golden_slot *r, uint64_t *got) {
    uint64_t *want = ev_arena_array(s->arena, p->lanes, sizeof *want);
    assert_non_null(want);
    for (size_t lane = 0; lane < p->lanes; lane++)
        want[lane] = golden_value_of(p, r, lane, true)->either[0];
    qsort(want, p->lanes, sizeof *want, compare_bits);
    qsort(got, p->lanes, sizeof *got, compare_bits);
    s->values += (unsigned)p->lanes;
    for (size_t i = 0; i < p->lanes; i++)
        if (want[i] != got[i]) {
            report(s, p->first, p, "%%%s, value %zu in order: expected %" PRIx64 ", got %" PRIx64,
                   r->name, i, want[i], got[i]);
            return;
        }
}

static void check_output(session *s, const golden_plan *p, uint64_t address,
                         const uint8_t *output) {
    uint64_t got[GOLDEN_LANES * 2];
    for (size_t i = 0; i < p->slot_count; i++) {
        const golden_slot *r = &p->slots[i];
        for (size_t lane = 0; lane < p->lanes; lane++) {
            size_t at = (lane * p->slot_count + i) * GOLDEN_SLOT;
            uint8_t written = 0;
            (void)vm_memory_written(s->memory, address, 1, at, 1, &written);
            memcpy(&got[lane], output + at, GOLDEN_SLOT);
            got[lane] &= golden_mask(r->bits);
            if (!r->out || !r->out->any_order)
                check_lane(s, p, r, lane, got[lane], written);
        }
        if (r->out && r->out->any_order)
            check_any_order(s, p, r, got);
    }
}

static void check_trap(session *s, const golden_plan *p, const vm_result *result) {
    const char *want = p->first->trap ? p->first->trap : vm_trap_name(VM_TRAP_NONE);
    vm_trap_kind kind = result->ok ? VM_TRAP_NONE : result->trap.kind;
    s->values++;
    if (strcmp(want, vm_trap_name(kind)) != 0)
        report(s, p->first, p, "expected the trap %s, got %s: %s", want, vm_trap_name(kind),
               result->ok ? "" : result->trap.message);
}

static void run_plan(session *s, const golden_plan *p, const vm_module *module) {
    uint64_t at[3] = {0};
    vm_memory_clear(s->memory);
    size_t cells = golden_memory_bytes(&p->first->memory);
    uint8_t *input = buffer(s, golden_plan_bytes(p), VM_BUFFER_IN, "input", &at[0]);
    uint8_t *output = buffer(s, golden_plan_bytes(p), VM_BUFFER_OUT, "output", &at[1]);
    uint8_t *memory = buffer(s, cells, VM_BUFFER_INOUT, "memory", &at[2]);
    golden_plan_fill(p, input);
    golden_memory_fill(&p->first->memory, memory);
    golden_params params = golden_plan_params(at[0], at[1], at[2]);
    const vm_entry *entry = vm_module_find(module, "golden");
    assert_true(entry && entry->param_bytes == sizeof params);
    vm_launch launch = {.module = module,
                        .entry = entry,
                        .params = &params,
                        .dynamic_shared = p->first->dynamic,
                        .checks = VM_CHECK_ALL,
                        .fuel = 1u << 24};
    golden_plan_shape(p, launch.grid, launch.block);
    vm_result result = {0};
    ev_error err = {0};
    if (vm_run(s->memory, &launch, &result, &err) != EV_OK) {
        report(s, p->first, p, "%s", err.text);
        return;
    }
    check_trap(s, p, &result);
    if (!result.ok || p->first->trap)
        return;
    check_output(s, p, params.output, output);
    check_memory(s, p, memory);
}

/* ---- an instruction: its module, its launches */

static const char *const row_names[PTX_OP_COUNT] = {
#define PTX_OP(id, ...) #id,
#include "fitness/ptx/ptx_ops.def"
#undef PTX_OP
};

static uint32_t line_of_golden(const char *text) {
    uint32_t line = 1;
    const char *golden = strstr(text, "/* the golden */");
    for (; text < golden; text++)
        line += *text == '\n';
    return line;
}

/* Marks what the golden's line and the functions before the entry are made of. True: the row that
 * the golden is for is among it. */
static bool mark_seen(session *s, const golden_insn *golden, const vm_module *m, uint32_t line) {
    bool found = false;
    uint32_t entry_pc = vm_module_find(m, "golden")->first_pc;
    for (uint32_t i = 0; i < m->insn_count; i++) {
        const ptx_insn *insn = &m->code[i];
        if (i >= entry_pc && m->cold[i].line != line && insn->row != PTX_OP_FALL)
            continue;
        s->seen[insn->row][insn->t][insn->u] = 1;
        found |= strcmp(row_names[insn->row], golden->row) == 0;
    }
    return found;
}

static void run_module(session *s, golden_plan *p) {
    char *text = golden_plan_text_for(p, 90);
    vm_module *module = NULL;
    ev_error err = {0};
    const char *what;
    if (vm_module_load(text, strlen(text), "golden.ptx", &module, &err) != EV_OK) {
        report(s, p->first, p, "%s", err.text);
        free(text);
        return;
    }
    if (vm_module_version(module) > vm_module_needs(module, &what))
        report(s, p->first, p, "it says version %d and needs %d", vm_module_version(module),
               vm_module_needs(module, &what));
    if (!mark_seen(s, p->insn, module, line_of_golden(text)))
        report(s, p->first, p, "the instruction is not of row %s", p->insn->row);
    for (p->isa = 0; p->isa < VM_ISA_COUNT; p->isa++)
        if (vm_isa_supported(p->isa)) {
            vm_module_set_isa(module, p->isa);
            run_plan(s, p, module);
        }
    vm_module_free(module);
    free(text);
}

static void on_plan(void *context, golden_plan *p, bool is_sound) {
    session *s = context;
    if (is_sound)
        run_module(s, p);
    else
        report(s, p->first, p, "the lists or widths of this case do not fit each other");
}

static void check_file(void **state, const char *name) {
    session *s = *state;
    char path[200];
    snprintf(path, sizeof path, "tests/fitness/ptx/goldens_%s.txt", name);
    ev_arena_reset(s->arena);
    golden_file file;
    ev_error err = {0};
    if (golden_read(path, s->arena, &file, &err) != EV_OK)
        fail_msg("%s", err.text);
    unsigned failures = s->failures;
    s->values = 0;
    for (size_t i = 0; i < file.count; i++)
        golden_each_plan(&file.insns[i], on_plan, s);
    print_message("%s: %zu instructions, %u values compared\n", name, file.count, s->values);
    assert_int_equal(s->failures - failures, 0);
}

/* The families: a file of goldens and a test each. */
#define FAMILIES(M)                                                                                \
    M(integer)                                                                                     \
    M(bits)                                                                                        \
    M(logic)                                                                                       \
    M(float)                                                                                       \
    M(function)                                                                                    \
    M(half)                                                                                        \
    M(compare)                                                                                     \
    M(select)                                                                                      \
    M(convert)                                                                                     \
    M(memory)                                                                                      \
    M(atomic)                                                                                      \
    M(warp)                                                                                        \
    M(async)                                                                                       \
    M(rare)                                                                                        \
    M(video)                                                                                       \
    M(control)

#define FAMILY_TEST(name)                                                                          \
    static void test_##name(void **state) {                                                        \
        check_file(state, #name);                                                                  \
    }
FAMILIES(FAMILY_TEST)

/* Rows of matrices and textures have tests of their own, which ask the same: test_ptx_tensor.c,
 * test_ptx_matrix.c, tests/fitness/vm/test_vm_texture.c, test_vm_surface.c. */
static bool tested_elsewhere(const ptx_op *op) {
    return ptx_shape_has(op->shape, PTX_SHAPE_TENSOR | PTX_SHAPE_TEXTURE) ||
           op->shape == PTX_S_MOVMATRIX;
}

static ev_status read_text(session *s, const char *text, golden_file *file, ev_error *err) {
    char path[] = "/tmp/evoke_golden_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    assert_int_equal(close(fd), 0);
    ev_arena_reset(s->arena);
    ev_status status = golden_read(path, s->arena, file, err);
    (void)unlink(path);
    return status;
}

typedef struct fault_lanes {
    size_t plans, excused[2]; /* without and with a guard */
} fault_lanes;

static void count_faults(void *context, golden_plan *p, bool is_sound) {
    fault_lanes *f = context;
    assert_true(is_sound);
    f->plans++;
    for (size_t lane = 0; lane < p->lanes; lane++)
        f->excused[p->guarded] += golden_fault_of(p, lane) != NULL;
}

/* What is excused on a GPU: the lanes of the case that names the fault, and only where it is. */
static void test_faults(void **state) {
    golden_file file;
    ev_error err = {0};
    static const char text[] = "row SET\nset.eq.u32.u16 %d, %a, %b\n"
                               "    a=0001 b=0001 -> d=ffffffff ptxas=guarded-set ; "
                               "a=0001 b=0002 -> d=00000000\n"
                               "row BFE\nbfe.u64 %d, %a, %b, %c\n"
                               "    a=0000000000000087 b=00000100 c=00000108 -> "
                               "d=0000000000000087 ptxas=wide-field\n";
    assert_int_equal(read_text(*state, text, &file, &err), EV_OK);
    static const size_t excused[][2] = {{0, 2}, {1, 2}};
    for (size_t i = 0; i < 2; i++) {
        fault_lanes f = {.plans = 0};
        golden_each_plan(&file.insns[i], count_faults, &f);
        assert_int_equal(f.plans, 2);
        assert_int_equal(f.excused[0], excused[i][0]);
        assert_int_equal(f.excused[1], excused[i][1]);
    }
    assert_int_equal(read_text(*state,
                               "row SET\nset.eq.u32.u16 %d, %a, %b\n"
                               "    a=0001 b=0001 -> d=ffffffff ptxas=anything\n",
                               &file, &err),
                     EV_BAD);
    assert_non_null(strstr(err.text, ":3: found \"anything\"; expected a name of golden_faults"));
}

typedef struct warned {
    unsigned guarded, wrong;
} warned;

static bool may_lose_guard(const char *text) {
    static const char *const starts[] = {"set.", "setp.", "testp.", "vadd", "vsub", "vavrg"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (strncmp(text, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

/* The loader warns of a guarded plan where the golden names the fault, and of nothing else. */
static void compare_warning(void *context, golden_plan *p, bool is_sound) {
    warned *n = context;
    vm_module *m = NULL;
    ev_error err = {0};
    const char *what = "";
    bool guarded_only = golden_fault_of(p, 0) == NULL || golden_fault_of(p, 0)->guarded_only;
    if (!is_sound || !p->guarded || !guarded_only || !may_lose_guard(p->insn->text))
        return;
    char *text = golden_plan_text(p);
    assert_int_equal(vm_module_load(text, strlen(text), "golden", &m, &err), EV_OK);
    bool told = vm_module_ptxas_fault(m, &what) > 0;
    if (told != (golden_fault_of(p, 0) != NULL)) {
        print_error("%s%s: %s\n", p->guarded ? "@%guard " : "", p->insn->text, what);
        n->wrong++;
    }
    assert_true(told == (*what != '\0'));
    n->guarded += told;
    vm_module_free(m);
    free(text);
}

static void test_assembler_warning(void **state) {
    session *s = *state;
    static const char *const paths[] = {
        "tests/fitness/ptx/goldens_compare.txt", "tests/fitness/ptx/goldens_function.txt",
        "tests/fitness/ptx/goldens_rare.txt", "tests/fitness/ptx/goldens_video.txt"};
    warned n = {0};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        golden_file file;
        ev_error err = {0};
        ev_arena_reset(s->arena);
        assert_int_equal(golden_read(paths[i], s->arena, &file, &err), EV_OK);
        for (size_t k = 0; k < file.count; k++)
            golden_each_plan(&file.insns[k], compare_warning, &n);
    }
    assert_int_equal(n.wrong, 0);
    assert_true(n.guarded > 50);
}

/* A guarded setp with a sink is PTX, and ptxas dies of it: it is run here, and is no golden, which
 * other machines run too. */
static void test_guarded_sink(void **state) {
    session *s = *state;
    golden_file file;
    ev_error err = {0};
    assert_int_equal(read_text(s,
                               "row SETP\nsetp.lt.s32 _|%q, %a, %b\n"
                               "    a=ffffffff b=00000000 -> q=0 ; a=00000000 b=ffffffff -> q=1\n",
                               &file, &err),
                     EV_OK);
    unsigned failures = s->failures, values = s->values;
    golden_each_plan(&file.insns[0], on_plan, s);
    assert_int_equal(s->failures - failures, 0);
    assert_true(s->values > values);
}

/* A pair of types that the columns could spell and PTX has not, however it rounds: a `set` of a
 * half format into .f32, a `cvt` between .bf16 and 8 bits. */
static bool is_no_form(unsigned row, unsigned t, unsigned u) {
    static const uint8_t rounds[][2] = {{0, 0}, {PTX_M_RN, 0}, {0, PTX_M_RZI}};
    const char *name = ptx_op_get(row)->name;
    char mnemonic[40];
    ptx_letters letters;
    ptx_letters_make(&letters);
    if (strcmp(name, "set") != 0 && strcmp(name, "cvt") != 0)
        return false;
    bool sets = strcmp(name, "set") == 0; /* names the result's type first, too */
    snprintf(mnemonic, sizeof mnemonic, "%s.%s.%s", name, ptx_type_name((ptx_type)(sets ? u : t)),
             ptx_type_name((ptx_type)(sets ? t : u)));
    for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) {
        ptx_match m = {.row = (uint16_t)row, .t = (uint8_t)t, .u = (uint8_t)u};
        m.mod[PTX_G_rnd] = rounds[i][0];
        m.mod[PTX_G_irnd] = rounds[i][1];
        if (ptx_never(&letters, mnemonic, &m) == NULL)
            return false;
    }
    return true;
}

/* Runs last: each row has a golden for each of its types, and for each pair where it has two. */
static void test_every_row(void **state) {
    const session *s = *state;
    unsigned missing = 0;
    for (unsigned row = 0; row < PTX_OP_COUNT; row++) {
        const ptx_op *op = ptx_op_get(row);
        for (unsigned t = 0; t < PTX_T_COUNT && !tested_elsewhere(op); t++)
            for (unsigned u = 0; u < PTX_T_COUNT; u++) {
                if (!(op->types >> t & 1) || !(op->types2 >> u & 1) || s->seen[row][t][u] ||
                    is_no_form(row, t, u))
                    continue;
                missing++;
                print_error("%s has no golden for .%s.%s\n", row_names[row],
                            ptx_type_name((ptx_type)t), ptx_type_name((ptx_type)u));
            }
    }
    assert_int_equal(missing, 0);
}

static int session_open(void **state) {
    session *s = calloc(1, sizeof *s);
    *state = s;
    ev_error err = {0};
    return !s || !(s->arena = ev_arena_new()) || vm_memory_new(1u << 26, &s->memory, &err) != EV_OK;
}

static int session_close(void **state) {
    session *s = *state;
    vm_memory_free(s->memory);
    ev_arena_free(s->arena);
    free(s);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define FAMILY_ROW(name) cmocka_unit_test(test_##name),
        FAMILIES(FAMILY_ROW) cmocka_unit_test(test_guarded_sink),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_assembler_warning),
        cmocka_unit_test(test_every_row),
    };
    return cmocka_run_group_tests(tests, session_open, session_close);
}
