/* Every row of ptx_ops.def against bits worked out from the text of the PTX ISA, not from this
 * machine: tests/ptx/goldens_*.txt, whose form is told in tests/ptx/golden_parse.h.
 *
 * Each instruction becomes a small module: load the registers of a lane from a buffer, execute,
 * store the registers. It runs on every executor that this processor has, and a second time with
 * a guard that is false in every other lane, which must leave those lanes as they were. */
#include "fitness/vm/ptx_load.h"
#include "tests/ptx/golden_parse.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define REGISTERS (2 * GOLDEN_OPERANDS)
#define SLOT 8 /* bytes a register takes in the buffers */

#define UNTOUCHED 0xa5a5a5a5a5a5a5a4u /* what registers hold that a case gives no value */

typedef struct session {
    ev_arena *arena;
    vm_memory *memory;
    unsigned failures;
    unsigned values;                                      /* compared */
    uint8_t seen[PTX_OP_COUNT][PTX_T_COUNT][PTX_T_COUNT]; /* executed with a golden */
} session;

/* One register of an instruction's cases: what is loaded, what is compared. */
typedef struct slot {
    const char *name;
    uint8_t bits;
    const golden_operand *in, *out; /* of the instruction's first case; NULL: not there */
} slot;

/* A launch: lanes, and where each finds its values. */
typedef struct plan {
    const golden_insn *insn;
    const golden_case *first; /* its shape, trap and memory */
    size_t cases;             /* > 1, or an unshaped one: a case a lane */
    bool by_case;
    bool guarded; /* odd lanes are switched off */
    unsigned isa;
    size_t lanes;
    slot slots[REGISTERS];
    size_t slot_count;
} plan;

/* ---- what a lane holds before and afterwards */

static const golden_operand *find_operand(const golden_operand *list, size_t count,
                                          const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

static const golden_case *case_of(const plan *p, size_t lane) {
    return p->by_case ? &p->first[p->guarded ? lane / 2 : lane] : p->first;
}

static const golden_value *value_of(const plan *p, const slot *s, size_t lane, bool after) {
    const golden_case *c = case_of(p, lane);
    const golden_operand *o = after ? find_operand(c->out, c->out_count, s->name)
                                    : find_operand(c->in, c->in_count, s->name);
    if (!o)
        return NULL;
    return &o->values[o->count == 1 ? 0 : lane];
}

static uint64_t mask_of(unsigned bits) {
    return bits >= 64 ? UINT64_MAX : (1ull << bits) - 1;
}

static uint64_t bits_before(const plan *p, const slot *s, size_t lane) {
    const golden_value *v = value_of(p, s, lane, false);
    return (v ? v->either[0] : UNTOUCHED) & mask_of(s->bits);
}

static bool is_nan(uint64_t bits, golden_kind kind) {
    static const struct {
        uint64_t magnitude, infinity;
    } formats[] = {
        [GOLDEN_NAN_F16] = {0x7fff, 0x7c00},
        [GOLDEN_NAN_BF16] = {0x7fff, 0x7f80},
        [GOLDEN_NAN_32] = {0x7fffffff, 0x7f800000},
        [GOLDEN_NAN_64] = {0x7fffffffffffffff, 0x7ff0000000000000},
    };
    return (bits & formats[kind].magnitude) > formats[kind].infinity;
}

static bool value_fits(const golden_value *v, uint64_t got) {
    if (v->kind == GOLDEN_UNWRITTEN)
        return false;
    if (v->kind != GOLDEN_EXACT)
        return is_nan(got, v->kind);
    for (unsigned i = 0; i < v->count; i++) {
        uint64_t far = got > v->either[i] ? got - v->either[i] : v->either[i] - got;
        if (far <= v->ulps)
            return true;
    }
    return false;
}

/* ---- reports */

static void report(session *s, const golden_case *c, const plan *p, const char *format, ...)
    EV_PRINTF(4, 5);

static void report(session *s, const golden_case *c, const plan *p, const char *format, ...) {
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

/* ---- the module of an instruction */

static void add_slots(plan *p, const golden_operand *list, size_t count, bool after) {
    for (size_t i = 0; i < count; i++) {
        slot *s = NULL;
        for (size_t k = 0; k < p->slot_count; k++)
            if (strcmp(p->slots[k].name, list[i].name) == 0)
                s = &p->slots[k];
        if (!s) {
            assert_true(p->slot_count < REGISTERS);
            s = &p->slots[p->slot_count++];
            *s = (slot){.name = list[i].name};
        }
        for (size_t k = 0; k < list[i].count && !s->bits; k++)
            s->bits = list[i].values[k].bits;
        *(after ? &s->out : &s->in) = &list[i];
    }
}

static const char *type_of(unsigned bits) {
    return bits == 1 ? "pred" : bits == 16 ? "b16" : bits == 32 ? "b32" : "b64";
}

static void put_registers(FILE *f, const plan *p) {
    fputs(".reg .pred %guard, %z<4>; .reg .b16 %h<4>; .reg .b32 %t<8>, %x<16>, %lane;\n"
          ".reg .b64 %w<8>, %in, %out, %m;\n",
          f);
    for (size_t i = 0; i < p->slot_count; i++)
        fprintf(f, ".reg .%s %%%s;\n", type_of(p->slots[i].bits), p->slots[i].name);
}

/* The number of the thread in the grid, blocks in order, from its coordinates. */
static void put_lane(FILE *f) {
    static const char *const names[] = {"tid.x",   "tid.y",    "tid.z",    "ntid.x",
                                        "ntid.y",  "ntid.z",   "ctaid.x",  "ctaid.y",
                                        "ctaid.z", "nctaid.x", "nctaid.y", "nctaid.z"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        fprintf(f, "mov.u32 %%x%zu, %%%s;\n", i, names[i]);
    fputs("mad.lo.u32 %lane, %x8, %x10, %x7;\n"
          "mad.lo.u32 %lane, %lane, %x9, %x6;\n"
          "mad.lo.u32 %lane, %lane, %x5, %x2;\n"
          "mad.lo.u32 %lane, %lane, %x4, %x1;\n"
          "mad.lo.u32 %lane, %lane, %x3, %x0;\n",
          f);
}

static void put_loads(FILE *f, const plan *p) {
    fprintf(f,
            "ld.param.u64 %%m, [memory];\nld.param.u64 %%in, [input];\n"
            "mad.wide.u32 %%in, %%lane, %zu, %%in;\nld.param.u64 %%out, [output];\n"
            "mad.wide.u32 %%out, %%lane, %zu, %%out;\n",
            p->slot_count * SLOT, p->slot_count * SLOT);
    for (size_t i = 0; i < p->slot_count; i++) {
        const slot *s = &p->slots[i];
        if (s->bits == 1)
            fprintf(f, "ld.global.b32 %%x0, [%%in+%zu];\nsetp.ne.b32 %%%s, %%x0, 0;\n", i * SLOT,
                    s->name);
        else
            fprintf(f, "ld.global.b%u %%%s, [%%in+%zu];\n", s->bits, s->name, i * SLOT);
    }
    fputs("and.b32 %x0, %lane, 1;\nsetp.eq.b32 %guard, %x0, 0;\n", f);
}

static void put_stores(FILE *f, const plan *p) {
    for (size_t i = 0; i < p->slot_count; i++) {
        const slot *s = &p->slots[i];
        if (s->bits == 1)
            fprintf(f, "selp.b32 %%x0, 1, 0, %%%s;\nst.global.b32 [%%out+%zu], %%x0;\n", s->name,
                    i * SLOT);
        else
            fprintf(f, "st.global.b%u [%%out+%zu], %%%s;\n", s->bits, i * SLOT, s->name);
    }
}

static char *module_text(const plan *p) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    assert_non_null(f);
    const char *body = p->insn->text;
    bool complete = body[strlen(body) - 1] == ':' || body[0] == '{';
    fprintf(f, "%s\n.address_size 64\n%s",
            p->insn->head ? p->insn->head : ".version 8.5 .target sm_90", p->insn->module_text);
    fputs(".visible .entry golden(.param .u64 input, .param .u64 output, .param .u64 memory, "
          ".param .align 8 .b8 bytes[16])\n{\n",
          f);
    put_registers(f, p);
    put_lane(f);
    put_loads(f, p);
    fprintf(f, "/* the golden */ %s%s%s\n", p->guarded ? "@%guard " : "", body,
            complete ? "" : ";");
    put_stores(f, p);
    fputs("ret;\n}\n", f);
    fclose(f);
    return text;
}

/* ---- one launch */

static uint8_t *buffer(session *s, uint64_t bytes, vm_buffer_kind kind, const char *name,
                       uint64_t *address) {
    ev_error err = {0};
    ev_status status = vm_memory_alloc(s->memory, bytes ? bytes : SLOT, kind, name, address, &err);
    if (status != EV_OK)
        fail_msg("%s", err.text);
    return vm_memory_host(s->memory, *address);
}

static size_t memory_bytes(const golden_operand *o) {
    size_t bytes = 0;
    for (size_t i = 0; i < o->count; i++)
        bytes += o->values[i].bits / 8u;
    return bytes;
}

/* Little-endian, as the device has it. */
static void memory_fill(const golden_operand *o, uint8_t *to) {
    for (size_t i = 0; i < o->count; i++) {
        memcpy(to, &o->values[i].either[0], o->values[i].bits / 8u);
        to += o->values[i].bits / 8u;
    }
}

static void fill_input(const plan *p, uint8_t *to) {
    for (size_t lane = 0; lane < p->lanes; lane++)
        for (size_t i = 0; i < p->slot_count; i++) {
            uint64_t v = bits_before(p, &p->slots[i], lane);
            memcpy(to + (lane * p->slot_count + i) * SLOT, &v, SLOT);
        }
}

static void check_memory(session *s, const plan *p, const uint8_t *got) {
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
        if (!value_fits(v, bits))
            report(s, p->first, p, "memory element %zu: expected %s, got %0*" PRIx64, i, text,
                   v->bits / 4, bits);
    }
}

static void check_lane(session *s, const plan *p, const slot *r, size_t lane, uint64_t got,
                       bool written) {
    const golden_value *v = value_of(p, r, lane, true);
    golden_value as_before = {
        .kind = GOLDEN_EXACT, .count = 1, .either = {bits_before(p, r, lane)}};
    if (!v || (p->guarded && lane % 2))
        v = &as_before;
    s->values++;
    bool fits = v->kind == GOLDEN_UNWRITTEN ? !written : written && value_fits(v, got);
    if (fits)
        return;
    char text[64];
    print_value(text, sizeof text, v, r->bits);
    report(s, case_of(p, lane), p, "lane %zu, %%%s: expected %s, got %0*" PRIx64 "%s", lane,
           r->name, text, (r->bits + 3) / 4, got, written ? "" : " (never stored)");
}

static int compare_bits(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void check_any_order(session *s, const plan *p, const slot *r, uint64_t *got) {
    uint64_t *want = ev_arena_array(s->arena, p->lanes, sizeof *want);
    assert_non_null(want);
    for (size_t lane = 0; lane < p->lanes; lane++)
        want[lane] = value_of(p, r, lane, true)->either[0];
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

static void check_output(session *s, const plan *p, uint64_t address, const uint8_t *output) {
    uint64_t got[GOLDEN_LANES * 2];
    for (size_t i = 0; i < p->slot_count; i++) {
        const slot *r = &p->slots[i];
        for (size_t lane = 0; lane < p->lanes; lane++) {
            size_t at = (lane * p->slot_count + i) * SLOT;
            uint8_t written = 0;
            (void)vm_memory_written(s->memory, address, 1, at, 1, &written);
            memcpy(&got[lane], output + at, SLOT);
            got[lane] &= mask_of(r->bits);
            if (!r->out || !r->out->any_order)
                check_lane(s, p, r, lane, got[lane], written);
        }
        if (r->out && r->out->any_order)
            check_any_order(s, p, r, got);
    }
}

static void launch_shape(const plan *p, vm_launch *launch) {
    const golden_case *c = p->first;
    size_t grid = (size_t)c->grid[0] * c->grid[1] * c->grid[2];
    memcpy(launch->grid, c->grid, sizeof launch->grid);
    memcpy(launch->block, c->block, sizeof launch->block);
    if (!c->block[0])
        launch->block[0] = (uint32_t)(p->lanes / grid);
    launch->dynamic_shared = c->dynamic;
}

static void check_trap(session *s, const plan *p, const vm_result *result) {
    const char *want = p->first->trap ? p->first->trap : vm_trap_name(VM_TRAP_NONE);
    vm_trap_kind kind = result->ok ? VM_TRAP_NONE : result->trap.kind;
    s->values++;
    if (strcmp(want, vm_trap_name(kind)) != 0)
        report(s, p->first, p, "expected the trap %s, got %s: %s", want, vm_trap_name(kind),
               result->ok ? "" : result->trap.message);
}

static void run_plan(session *s, const plan *p, const vm_module *module) {
    struct {
        uint64_t input, output, memory;
        uint8_t bytes[16];
    } params = {0};
    vm_memory_clear(s->memory);
    size_t bytes = p->lanes * p->slot_count * SLOT;
    size_t cells = memory_bytes(&p->first->memory);
    uint8_t *input = buffer(s, bytes, VM_BUFFER_IN, "input", &params.input);
    uint8_t *output = buffer(s, bytes, VM_BUFFER_OUT, "output", &params.output);
    uint8_t *memory = buffer(s, cells, VM_BUFFER_INOUT, "memory", &params.memory);
    fill_input(p, input);
    memory_fill(&p->first->memory, memory);
    for (unsigned i = 0; i < sizeof params.bytes; i++)
        params.bytes[i] = (uint8_t)(0xf0 + i);
    const vm_entry *entry = vm_module_find(module, "golden");
    assert_true(entry && entry->param_bytes == sizeof params);
    vm_launch launch = {.module = module,
                        .entry = entry,
                        .params = &params,
                        .checks = VM_CHECK_ALL,
                        .fuel = 1u << 24};
    launch_shape(p, &launch);
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
#include "fitness/vm/ptx_ops.def"
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

static void run_module(session *s, plan *p) {
    char *text = module_text(p);
    vm_module *module = NULL;
    ev_error err = {0};
    if (vm_module_load(text, strlen(text), "golden.ptx", &module, &err) != EV_OK) {
        report(s, p->first, p, "%s", err.text);
        free(text);
        return;
    }
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

static size_t lanes_of(const golden_case *c) {
    size_t lanes =
        (size_t)c->block[0] * c->block[1] * c->block[2] * c->grid[0] * c->grid[1] * c->grid[2];
    for (size_t i = 0; i < c->in_count + c->out_count && !c->block[0]; i++) {
        const golden_operand *o = i < c->in_count ? &c->in[i] : &c->out[i - c->in_count];
        if (o->count > lanes)
            lanes = o->count;
    }
    return lanes ? lanes : 1;
}

/* Every list must have a value a lane, and every value the width of its register. */
static bool plan_is_sound(const plan *p) {
    for (size_t n = 0; n < p->cases; n++) {
        const golden_case *c = &p->first[n];
        for (size_t i = 0; i < c->in_count + c->out_count; i++) {
            const golden_operand *o = i < c->in_count ? &c->in[i] : &c->out[i - c->in_count];
            const slot *s = NULL;
            for (size_t k = 0; k < p->slot_count; k++)
                if (strcmp(p->slots[k].name, o->name) == 0)
                    s = &p->slots[k];
            if (!s || (o->count != 1 && o->count != p->lanes))
                return false;
            for (size_t k = 0; k < o->count; k++)
                if (o->values[k].kind != GOLDEN_UNWRITTEN && o->values[k].bits != s->bits)
                    return false;
        }
    }
    return true;
}

static void run_cases(session *s, const golden_insn *insn, size_t from, size_t count) {
    plan p = {.insn = insn, .first = &insn->cases[from], .cases = count};
    p.by_case = !p.first->shaped;
    p.lanes = p.by_case ? count : lanes_of(p.first);
    add_slots(&p, p.first->in, p.first->in_count, false);
    add_slots(&p, p.first->out, p.first->out_count, true);
    if (p.lanes > GOLDEN_LANES || !plan_is_sound(&p)) {
        report(s, p.first, &p, "the lists or widths of this case do not fit each other");
        return;
    }
    run_module(s, &p);
    if (p.by_case && !strpbrk(insn->text, ";@:{")) {
        p.guarded = true;
        p.lanes *= 2;
        run_module(s, &p);
    }
}

static void run_insn(session *s, const golden_insn *insn) {
    size_t from = 0;
    while (from < insn->case_count) {
        size_t count = 1;
        while (!insn->cases[from].shaped && from + count < insn->case_count &&
               !insn->cases[from + count].shaped && count < GOLDEN_LANES / 2)
            count++;
        run_cases(s, insn, from, count);
        from += count;
    }
}

static void check_file(void **state, const char *name) {
    session *s = *state;
    char path[200];
    snprintf(path, sizeof path, "tests/ptx/goldens_%s.txt", name);
    ev_arena_reset(s->arena);
    golden_file file;
    ev_error err = {0};
    if (golden_read(path, s->arena, &file, &err) != EV_OK)
        fail_msg("%s", err.text);
    unsigned failures = s->failures;
    s->values = 0;
    for (size_t i = 0; i < file.count; i++)
        run_insn(s, &file.insns[i]);
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
    M(control)

#define FAMILY_TEST(name)                                                                          \
    static void test_##name(void **state) {                                                        \
        check_file(state, #name);                                                                  \
    }
FAMILIES(FAMILY_TEST)

/* Rows of matrices have tests of their own, which ask the same: test_ptx_tensor.c, _matrix.c. */
static bool tested_elsewhere(const ptx_op *op) {
    return ptx_shape_is_tensor(op->shape) || op->shape == PTX_S_MOVMATRIX;
}

/* PTX has no `set` of a half format into .f32, though its columns could spell it. */
static bool is_no_form(unsigned row, unsigned t, unsigned u) {
    ptx_match m = {.row = (uint16_t)row, .t = (uint8_t)t, .u = (uint8_t)u};
    return strcmp(ptx_op_get(row)->name, "set") == 0 && ptx_never("set.eq", &m) != NULL;
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
        FAMILIES(FAMILY_ROW) cmocka_unit_test(test_every_row),
    };
    return cmocka_run_group_tests(tests, session_open, session_close);
}
