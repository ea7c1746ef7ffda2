/* The model's schedule: every block is a permutation that keeps all dependences, checked pair by
 * pair against the instructions' own operands, and the order of the text makes no difference to the
 * time where the assembler would undo it. */
#include "base/file.h"
#include "base/str.h"
#include "fitness/model/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tests/asserts.h"

static bool share(const uint16_t *a, unsigned na, const uint16_t *b, unsigned nb) {
    for (unsigned i = 0; i < na; i++)
        for (unsigned k = 0; k < nb; k++)
            if (a[i] == b[k])
                return true;
    return false;
}

static bool touches_memory(const vm_insn_info *i) {
    return i->space == VM_SPACE_GLOBAL || i->space == VM_SPACE_SHARED ||
           i->space == VM_SPACE_LOCAL || i->space == VM_SPACE_GENERIC;
}

static bool may_alias(const vm_insn_info *a, const vm_insn_info *b) {
    return touches_memory(a) && touches_memory(b) &&
           (a->space == b->space || a->space == VM_SPACE_GENERIC || b->space == VM_SPACE_GENERIC);
}

/* Whether `b`, which is written after `a`, must stay after it. */
static bool must_follow(const vm_insn_info *a, const vm_insn_info *b) {
    if (share(a->defs, a->def_count, b->uses, b->use_count) ||
        share(a->defs, a->def_count, b->defs, b->def_count) ||
        share(a->uses, a->use_count, b->defs, b->def_count))
        return true;
    bool nc = strstr(a->name, ".nc") != NULL || strstr(b->name, ".nc") != NULL;
    if (may_alias(a, b) && !nc &&
        (a->is_store || b->is_store || a->is_atomic || b->is_atomic ||
         (strstr(a->name, "volatile") && strstr(b->name, "volatile"))))
        return true;
    bool fence_a = strncmp(a->name, "membar", 6) == 0 || strncmp(a->name, "fence", 5) == 0;
    bool fence_b = strncmp(b->name, "membar", 6) == 0 || strncmp(b->name, "fence", 5) == 0;
    return ((fence_a && touches_memory(b)) || (fence_b && touches_memory(a))) && !nc;
}

/* What a branch guards stays behind it; the branch itself may be anywhere. */
static void check_block(const vm_module *module, const model_insns *insns, const model_schedule *s,
                        uint32_t first, uint32_t end, unsigned *moved) {
    uint32_t *place = calloc(end - first, sizeof *place);
    vm_insn_info *infos = calloc(end - first, sizeof *infos);
    assert_true(place != NULL && infos != NULL);
    for (uint32_t at = first; at < end; at++) {
        assert_in_range(s->order[at], first, end - 1);
        place[s->order[at] - first]++;
        *moved += s->order[at] != at;
    }
    for (uint32_t i = 0; i < end - first; i++) {
        assert_int_equal(place[i], 1);
        vm_module_info(module, first + i, &infos[i]);
    }
    for (uint32_t at = first; at < end; at++)
        place[s->order[at] - first] = at;
    for (uint32_t i = 0; i < end - first; i++) {
        bool is_end = (infos[i].is_branch && !insns->insns[first + i].is_guard) ||
                      infos[i].is_exit || infos[i].is_barrier;
        if (is_end && i + 1 != end - first)
            fail_msg("'%s' at line %u is inside a block", infos[i].name, infos[i].line);
        for (uint32_t k = i + 1; k < end - first; k++) {
            bool is_guarded = insns->insns[first + k].guard == first + i + 1;
            bool last = k + 1 == end - first &&
                        (infos[k].is_branch || infos[k].is_exit || infos[k].is_barrier);
            if (place[i] > place[k] && (last || is_guarded || must_follow(&infos[i], &infos[k])))
                fail_msg("'%s' at line %u passes '%s' at line %u", infos[k].name, infos[k].line,
                         infos[i].name, infos[i].line);
        }
    }
    free(place);
    free(infos);
}

static unsigned check_module(const char *text, size_t bytes) {
    ev_error err = {.text = ""};
    vm_module *module = NULL;
    gpu *g = NULL;
    model_insns insns;
    model_rows rows;
    model_schedule schedule;
    if (vm_module_load(text, bytes, "test", &module, &err) != EV_OK)
        fail_msg("%s", err.text);
    assert_int_equal(gpu_load("h200", &g, &err), EV_OK);
    assert_int_equal(model_insns_make(module, &insns, &err), EV_OK);
    assert_int_equal(model_rows_make(g, &insns, &rows, &err), EV_OK);
    const model_schedule_options options = {.window = MODEL_WINDOW_MOST,
                                            .load_latency = (uint32_t)gpu_get(g, GPU_LAT_L2)};
    assert_int_equal(model_schedule_make(&options, &insns, &rows, &schedule, &err), EV_OK);
    unsigned moved = 0;
    uint32_t first = 0;
    while (first < rows.count) {
        uint32_t end = schedule.block_end[first];
        assert_in_range(end, first + 1, rows.count);
        check_block(module, &insns, &schedule, first, end, &moved);
        first = end;
    }
    model_schedule_free(&schedule);
    model_rows_free(&rows);
    model_insns_free(&insns);
    gpu_free(g);
    vm_module_free(module);
    return moved;
}

static void test_zoo(void **state) {
    (void)state;
    static const char *const files[] = {"tests/fitness/ptx/zoo/good.ptx",
                                        "tests/fitness/ptx/zoo/bad_races.ptx"};
    for (size_t i = 0; i < 2; i++) {
        ev_error err = {.text = ""};
        char *text = NULL;
        size_t bytes = 0;
        if (ev_file_read(files[i], &text, &bytes, &err) != EV_OK)
            fail_msg("%s", err.text);
        assert_true(check_module(text, bytes) > 20); /* it does move things */
        free(text);
    }
}

/* ---- guards ---- */

#define GUARD(p, to) "@%p" p " bra " to ";\n"
#define COPY(r, at) "ld.global.f32 %f" r ", [%rd2+" at "];\nst.shared.f32 [%r3+" at "], %f" r ";\n"
#define SUM "add.f32 %f9, %f9, %f8;\n"
#define SUM4 SUM SUM SUM SUM

typedef struct guard_row {
    const char *what, *body;
    unsigned guards, blocks; /* branches that become predicates; blocks without the end's */
} guard_row;

/* As ptxas 13.0 has them for sm_75 and sm_80. */
static const guard_row GUARDS[] = {
    {"one after the other",
     GUARD("1", "A") COPY("1", "0") "A:\n" GUARD("2", "B") COPY("2", "128") "B:\n", 2, 1},
    {"beside a copy", COPY("1", "0") GUARD("2", "B") COPY("2", "128") "B:\n", 1, 1},
    {"before a copy", GUARD("1", "A") COPY("1", "0") "A:\n" COPY("2", "128"), 1, 1},
    {"alone", GUARD("1", "A") COPY("1", "0") "A:\n", 0, 3},
    {"skipped by the other way",
     COPY("1", "0") "@%p1 bra A;\nbra.uni B;\nA:\n" COPY("2", "128") "B:\n", 2, 1},
    {"skipped by a branch to the next line",
     COPY("1", "0") "@!%p1 bra B;\nbra.uni A;\nA:\n" COPY("2", "128") "B:\n", 2, 1},
    {"nested",
     GUARD("1", "A") COPY("1", "0") GUARD("2", "A") COPY("2", "128") GUARD("3", "A")
         COPY("3", "256") "A:\n",
     1, 4},
    {"two within one",
     GUARD("1", "C") GUARD("2", "A") COPY("1", "0") "A:\n" GUARD("3", "B")
         COPY("2", "128") "B:\nC:\n",
     2, 3},
    {"eighteen instructions",
     COPY("1", "0") GUARD("1", "A") COPY("2", "128") SUM4 SUM4 SUM4 SUM4 "A:\n", 1, 1},
    {"twenty-two", COPY("1", "0") GUARD("1", "A") COPY("2", "128") SUM4 SUM4 SUM4 SUM4 SUM4 "A:\n",
     0, 3},
    {"a barrier", COPY("1", "0") GUARD("1", "A") COPY("2", "128") "bar.sync 0;\nA:\n", 0, 4},
    {"a loop", "A:\n" COPY("1", "0") GUARD("1", "A") COPY("2", "128"), 0, 3},
};

static void check_guards(const guard_row *row) {
    ev_error err = {.text = ""};
    vm_module *module = NULL;
    model_insns insns;
    ev_str text = EV_STR_EMPTY;
    ev_str_printf(&text,
                  ".version 7.8\n.target sm_60\n.address_size 64\n"
                  ".visible .entry k(.param .u64 k0)\n{\n.reg .b32 %%r<9>;\n.reg .f32 %%f<20>;\n"
                  ".reg .b64 %%rd<9>;\n.reg .pred %%p<9>;\n.shared .align 4 .b8 s[4096];\n"
                  "ld.param.u64 %%rd2, [k0];\nmov.u32 %%r3, s;\nmov.u32 %%r1, %%tid.x;\n"
                  "setp.gt.u32 %%p1, %%r1, 40;\nsetp.gt.u32 %%p2, %%r1, 41;\n"
                  "setp.gt.u32 %%p3, %%r1, 42;\n%sbar.sync 0;\nret;\n}\n",
                  row->body);
    if (vm_module_load(ev_str_text(&text), strlen(ev_str_text(&text)), "test", &module, &err) !=
        EV_OK)
        fail_msg("%s: %s", row->what, err.text);
    assert_int_equal(model_insns_make(module, &insns, &err), EV_OK);
    unsigned guards = 0, blocks = 0;
    for (uint32_t pc = 0; pc < insns.count; pc++) {
        guards += insns.insns[pc].is_guard;
        blocks += insns.blocks.block_end[pc] != 0;
    }
    if (guards != row->guards || blocks - 1 != row->blocks) /* the last one: ret */
        fail_msg("%s: %u guards and %u blocks", row->what, guards, blocks - 1);
    model_insns_free(&insns);
    vm_module_free(module);
    ev_str_free(&text);
}

static void test_guards(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof GUARDS / sizeof *GUARDS; i++)
        check_guards(&GUARDS[i]);
}

#define HEAD BOUND("")
#define BOUND(directives)                                                                          \
    ".version 7.8\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 "                \
    "k0)\n" directives                                                                             \
    "{\n.reg .b32 %r<9>;\n.reg .f32 %f<20>;\n.reg .b64 %rd<9>;\n.reg .pred %p<3>;\n"               \
    "ld.param.u64 %rd1, [k0];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\n"                 \
    "add.s64 %rd3, %rd1, %rd2;\nmov.f32 %f1, 0f00000000;\nmov.u32 %r2, 0;\nL:\n"
#define TAIL                                                                                       \
    "add.s32 %r2, %r2, 1;\nsetp.lt.s32 %p1, %r2, 40;\n@%p1 bra L;\n"                               \
    "st.global.f32 [%rd3], %f1;\nret;\n}\n"
#define LOAD(reg, at) "ld.global.f32 " reg ", [%rd3+" at "];\n"
#define USE(reg) "fma.rn.f32 %f1, " reg ", " reg ", %f1;\n"
#define STORE "st.global.f32 [%rd3+2048], %f1;\n"

static double chain_of(const char *ptx) {
    enum { BYTES = 1 << 16 };
    ev_error err = {.text = ""};
    gpu *g = NULL;
    vm_module *module = NULL;
    vm_memory *memory = NULL;
    uint64_t x = 0;
    if (vm_module_load(ptx, strlen(ptx), "test", &module, &err) != EV_OK)
        fail_msg("%s", err.text);
    assert_int_equal(gpu_load("h200", &g, &err), EV_OK);
    assert_int_equal(vm_memory_new(1u << 20, &memory, &err), EV_OK);
    assert_int_equal(vm_memory_alloc(memory, BYTES, VM_BUFFER_INOUT, "x", &x, &err), EV_OK);
    vm_launch l = {.module = module,
                   .entry = vm_module_find(module, NULL),
                   .grid = {1, 1, 1},
                   .block = {32, 1, 1},
                   .params = &x};
    model *m = NULL;
    assert_int_equal(model_new(g, &l, &m, &err), EV_OK);
    model_buffer buffer = {x, BYTES};
    model_set_buffers(m, &buffer, 1);
    l.observer = model_observer(m);
    vm_result result;
    assert_int_equal(vm_run(memory, &l, &result, &err), EV_OK);
    assert_true(result.ok);
    model_time time;
    assert_int_equal(model_finish(m, &result, &time, &err), EV_OK);
    model_free(m);
    vm_memory_free(memory);
    vm_module_free(module);
    gpu_free(g);
    return time.ns;
}

/* Four loads and their uses in turn cost what four loads and then their uses cost; a store between
 * them, which may go to the same place, keeps them apart. */
static void test_order_of_text(void **state) {
    (void)state;
    double together = chain_of(HEAD LOAD("%f2", "0") LOAD("%f3", "512") LOAD("%f4", "1024")
                                   USE("%f2") USE("%f3") USE("%f4") TAIL);
    double in_turn = chain_of(HEAD LOAD("%f2", "0") USE("%f2") LOAD("%f3", "512") USE("%f3")
                                  LOAD("%f4", "1024") USE("%f4") TAIL);
    double apart = chain_of(HEAD LOAD("%f2", "0") USE("%f2") STORE LOAD("%f3", "512") USE("%f3")
                                STORE LOAD("%f4", "1024") USE("%f4") TAIL);
    if (in_turn > together * 1.02 || in_turn < together * 0.98)
        fail_msg("in turn %.1f ns, together %.1f ns", in_turn, together);
    if (apart < together * 1.3)
        fail_msg("apart %.1f ns, together %.1f ns", apart, together);
}

/* Loads move ahead of each other's uses as far as the registers suffice. */
static void test_registers_hold_loads(void **state) {
    (void)state;
#define TURN(reg, at) LOAD(reg, at) USE(reg)
#define FIRST TURN("%f2", "0") TURN("%f3", "256") TURN("%f4", "512") TURN("%f5", "768")
#define SECOND TURN("%f6", "1024") TURN("%f7", "1280") TURN("%f8", "1536") TURN("%f9", "1792")
#define THIRD TURN("%f10", "2048") TURN("%f11", "2304") TURN("%f12", "2560")
    double many = chain_of(BOUND(".maxnreg 64\n") FIRST SECOND THIRD TAIL);
    double few = chain_of(BOUND(".maxnreg 16\n") FIRST SECOND THIRD TAIL);
    if (few < 1.2 * many)
        fail_msg("%.1f and %.1f ns", many, few);
}

/* ---- moves ---- */

typedef struct move_row {
    const char *what, *text;
    const char *stays; /* by move of the text: y or n */
} move_row;

#define AGAIN "add.s32 %r2, %r2, 1;\nsetp.lt.s32 %p1, %r2, 40;\n@%p1 bra L;\n"
#define NEXT "ld.global.f32 %f3, [%rd3+512];\n"
#define SUM_OF(reg) "add.f32 %f1, %f1, " reg ";\n"

static const move_row MOVES[] = {
    {"of a value that is not read again", SUM_OF("%f2") NEXT "mov.f32 %f2, %f3;\n" AGAIN, "n"},
    {"of a value that came while the one before it was to be read",
     NEXT SUM_OF("%f2") "mov.f32 %f2, %f3;\n" AGAIN, "y"},
    {"of a literal beside a load",
     "mov.f32 %f4, 0f00000000;\n@%p1 ld.global.f32 %f4, [%rd3];\n" SUM_OF("%f4") AGAIN, "y"},
    {"of a literal that alone is there", "mov.f32 %f4, 0f40000000;\n" SUM_OF("%f4") AGAIN, "n"},
    {"of two literals, one after the other",
     "mov.f32 %f4, 0f40000000;\n" SUM_OF("%f4") "mov.f32 %f4, 0f3F800000;\n" SUM_OF("%f4") AGAIN,
     "nn"},
    {"that is a select",
     "mov.f32 %f5, %f2;\n@%p1 mov.f32 %f5, %f1;\n" SUM_OF("%f5") SUM_OF("%f2") AGAIN, "ny"},
    {"of two values that change places",
     "mov.f32 %f5, %f2;\nmov.f32 %f2, %f6;\nmov.f32 %f6, %f5;\n" SUM_OF("%f2") AGAIN, "yyy"},
    {"of one value to two registers, of which one changes",
     "mov.f32 %f5, %f2;\nadd.f32 %f5, %f5, %f1;\n" SUM_OF("%f2") SUM_OF("%f5") AGAIN, "y"},
    {"of a value by another name to a register that changes",
     NEXT "mov.f32 %f5, %f3;\nmov.f32 %f2, %f5;\nadd.f32 %f2, %f2, %f1;\n" SUM_OF("%f2")
         SUM_OF("%f3") AGAIN,
     "ny"},
    {"of one value to two registers that stay",
     NEXT "mov.f32 %f5, %f3;\nmov.f32 %f6, %f3;\n" SUM_OF("%f5") SUM_OF("%f6") AGAIN, "nn"},
};

static void check_moves(const move_row *row) {
    ev_error err = {.text = ""};
    vm_module *module = NULL;
    model_insns insns;
    ev_str text = EV_STR_EMPTY;
    ev_str_printf(&text, "%.*s%s%s%s", (int)(strlen(HEAD) - strlen("L:\n")), HEAD,
                  "setp.gt.u32 %p1, %r1, 3;\nld.global.v2.f32 {%f2, %f6}, [%rd3];\nL:\n", row->text,
                  "st.global.f32 [%rd3], %f1;\nst.global.f32 [%rd3+4], %f6;\nret;\n}\n");
    if (vm_module_load(ev_str_text(&text), strlen(ev_str_text(&text)), "test", &module, &err) !=
        EV_OK)
        fail_msg("%s: %s", row->what, err.text);
    assert_int_equal(model_insns_make(module, &insns, &err), EV_OK);
    char stays[8] = "";
    size_t count = 0;
    for (uint32_t pc = 6; pc < insns.count; pc++) { /* behind the head's own */
        const model_insn *insn = &insns.insns[pc];
        if ((insn->traits & MODEL_MOVES) != 0 && count < sizeof stays - 1)
            stays[count++] = insn->kind == ROW_FOLDED ? 'n' : 'y';
    }
    if (strcmp(stays, row->stays) != 0)
        fail_msg("a move %s: %s, not %s", row->what, stays, row->stays);
    model_insns_free(&insns);
    vm_module_free(module);
    ev_str_free(&text);
}

static void test_moves(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof MOVES / sizeof *MOVES; i++)
        check_moves(&MOVES[i]);
}

/* A value that is loaded a turn ahead and then moved is there at the end of the turn: what is
 * loaded and used at once costs as much. With two registers in turn, no move waits. */
static void test_a_move_waits(void **state) {
    (void)state;
#define FAR(reg) "add.s64 %rd3, %rd3, 128;\nld.global.f32 " reg ", [%rd3];\n"
    double at_once = chain_of(HEAD FAR("%f2") USE("%f2") TAIL);
    double moved = chain_of(HEAD FAR("%f3") USE("%f2") "mov.f32 %f2, %f3;\n" TAIL);
    double in_turn =
        chain_of(HEAD FAR("%f3") USE("%f2") FAR("%f2") USE("%f3") "add.s32 %r2, %r2, 1;\n" TAIL);
    if (moved < 0.95 * at_once)
        fail_msg("moved %.1f ns, at once %.1f ns", moved, at_once);
    if (in_turn > 0.7 * at_once)
        fail_msg("in turn %.1f ns, at once %.1f ns", in_turn, at_once);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zoo),           cmocka_unit_test(test_guards),
        cmocka_unit_test(test_order_of_text), cmocka_unit_test(test_registers_hold_loads),
        cmocka_unit_test(test_moves),         cmocka_unit_test(test_a_move_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
