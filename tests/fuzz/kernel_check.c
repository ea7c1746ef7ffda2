/* The oracles of fuzzed kernels. */
#include "tests/fuzz/kernel_check.h"
#include "fitness/ptx/ptx.h"
#include "fitness/vm/vm.h"
#include "tests/fuzz/kernel_text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define FUEL 20000
#define SEEDS 3

static char *complaint(const char *text, const char *format, ...) EV_PRINTF(2, 3);
static char *complaint(const char *text, const char *format, ...) {
    ev_str s = EV_STR_EMPTY;
    va_list args;
    va_start(args, format);
    ev_str_vprintf(&s, format, args);
    va_end(args);
    ev_str_printf(&s, "\n%s", text);
    return ev_str_take(&s);
}

/* ---- loading */

/* The statement that a refusal names, or -1. */
static long refused_statement(const kernel_text *k, const ev_error *err) {
    static const char prefix[] = "fuzz.ptx:";
    if (strncmp(err->text, prefix, sizeof prefix - 1) != 0)
        return -1;
    long line = strtol(err->text + sizeof prefix - 1, NULL, 10);
    long at = line - (long)kernel_text_first_line(k);
    return at >= 0 && (size_t)at < k->count && !k->left_out[at] ? at : -1;
}

/* Until the loader takes it; *out stays NULL when memory ran out. */
static char *load(kernel_text *k, vm_module **out) {
    for (;;) {
        ev_str text = kernel_text_join(k);
        ev_error err = {0};
        char *wrong = NULL;
        ev_status status = vm_module_load(ev_str_text(&text), text.length, "fuzz.ptx", out, &err);
        long at = status == EV_BAD ? refused_statement(k, &err) : -1;
        if (at >= 0)
            k->left_out[at] = true;
        bool cured = strstr(err.text, "expected") || strstr(err.text, "needs");
        if (status == EV_BAD && (at < 0 || !cured))
            wrong = complaint(ev_str_text(&text), "a refusal without a place: %s", err.text);
        ev_str_free(&text);
        if (wrong || status != EV_BAD)
            return wrong;
    }
}

/* ---- disassembly */

/* Is the operand of the instruction a label that stands at `pc`? */
static const ptx_operand *label_at(const vm_module *m, uint32_t insn, unsigned k, uint32_t pc) {
    const ptx_operand *o = &m->cold[insn].operands[k];
    return o->kind == PTX_O_LABEL && m->code[insn].target == pc ? o : NULL;
}

/* The names of labels stand in the operands of branches; all others were never used. Several may
 * stand at one place, and each has a line. */
static void print_labels(ev_str *s, const vm_module *m, uint32_t pc) {
    size_t from = s->length;
    for (uint32_t i = 0; i < m->insn_count; i++)
        for (unsigned k = 0; k < m->cold[i].operand_count; k++) {
            const ptx_operand *o = label_at(m, i, k, pc);
            if (!o)
                continue;
            ev_str line = EV_STR_EMPTY;
            ev_str_printf(&line, "%.*s:\n", (int)o->label_length, o->label);
            if (s->length == from || !strstr(ev_str_text(s) + from, ev_str_text(&line)))
                ev_str_append(s, ev_str_text(&line));
            ev_str_free(&line);
        }
}

/* The head as it was, then the kernel's instructions as the disassembler writes them. */
static ev_str disassemble(const kernel_text *k, const vm_module *m) {
    ev_str s = EV_STR_EMPTY;
    const vm_entry *e = vm_module_find(m, "k");
    const char *text = ev_str_text(&k->head), *body = strstr(text, "ld.param.u64 %in");
    ev_str_append_n(&s, text, (size_t)(body - text));
    for (uint32_t pc = e->first_pc; pc < e->end_pc; pc++) {
        print_labels(&s, m, pc);
        if (m->cold[pc].name[0] == '(')
            continue;
        char *line = vm_module_disassemble(m, pc);
        ev_str_printf(&s, "%s\n", line ? line : "");
        free(line);
    }
    ev_str_append(&s, "}\n");
    return s;
}

static bool same_insn(ptx_insn a, ptx_insn b) {
    a.fn = b.fn = a.body = b.body = NULL;
    return a.d == b.d && a.d2 == b.d2 && a.a == b.a && a.b == b.b && a.c == b.c && a.e == b.e &&
           memcmp(a.v, b.v, sizeof a.v) == 0 && a.imm == b.imm && a.target == b.target &&
           a.guard == b.guard && a.row == b.row && a.t == b.t && a.u == b.u && a.bytes == b.bytes &&
           a.count == b.count && a.space == b.space && a.negate == b.negate && a.rnd == b.rnd &&
           a.ftz == b.ftz && a.sat == b.sat && a.relu == b.relu && a.op == b.op &&
           a.bool_op == b.bool_op && a.wide == b.wide && a.strong == b.strong &&
           a.releases == b.releases && a.of_block == b.of_block && a.of_system == b.of_system &&
           a.address_bits == b.address_bits && a.flags == b.flags && a.site == b.site &&
           a.look == b.look && a.looked == b.looked;
}

static bool has_call(const vm_module *m, const vm_entry *e) {
    for (uint32_t pc = e->first_pc; pc < e->end_pc; pc++)
        if (m->code[pc].row == PTX_OP_CALL)
            return true;
    return false;
}

/* Labels nobody branches to make no difference in what is printed, but part stretches of code, so
 * the code is compared after a first trip. */
static char *check_round_trip(const kernel_text *k, const vm_module *first) {
    if (has_call(first, vm_module_find(first, "k")))
        return NULL; /* a call's values are declared in blocks, which are not printed */
    vm_module *m[2] = {NULL, NULL};
    ev_str text[2] = {disassemble(k, first), EV_STR_EMPTY};
    ev_error err = {0};
    char *wrong = NULL;
    for (unsigned i = 0; i < 2 && !wrong; i++) {
        ev_status status =
            vm_module_load(ev_str_text(&text[i]), text[i].length, "again.ptx", &m[i], &err);
        if (status == EV_BAD)
            wrong = complaint(ev_str_text(&text[i]), "a disassembly is refused: %s", err.text);
        if (status != EV_OK)
            break;
        if (i == 0)
            text[1] = disassemble(k, m[0]);
    }
    if (m[0] && m[1] && m[0]->insn_count != m[1]->insn_count)
        wrong = complaint(ev_str_text(&text[1]), "%u instructions became %u", m[0]->insn_count,
                          m[1]->insn_count);
    for (uint32_t pc = 0; m[0] && m[1] && !wrong && pc < m[0]->insn_count; pc++)
        if (!same_insn(m[0]->code[pc], m[1]->code[pc]))
            wrong =
                complaint(ev_str_text(&text[1]), "instruction %u differs after a round trip", pc);
    for (unsigned i = 0; i < 2; i++) {
        vm_module_free(m[i]);
        ev_str_free(&text[i]);
    }
    return wrong;
}

/* ---- running */

typedef struct outcome {
    bool ran;
    vm_result result;
    uint8_t out[KERNEL_BYTES], both[KERNEL_BYTES];
} outcome;

typedef struct machine {
    vm_memory *memory;
    uint64_t params[3];
    uint8_t *in, *out, *both;
} machine;

static bool machine_make(machine *x) {
    static const vm_buffer_kind kinds[] = {VM_BUFFER_IN, VM_BUFFER_OUT, VM_BUFFER_INOUT};
    uint8_t **places[] = {&x->in, &x->out, &x->both};
    ev_error err;
    if (vm_memory_new(1 << 16, &x->memory, &err) != EV_OK)
        return false;
    for (unsigned i = 0; i < 3; i++) {
        if (vm_memory_alloc(x->memory, KERNEL_BYTES, kinds[i], "b", &x->params[i], &err) != EV_OK)
            return false;
        *places[i] = vm_memory_host(x->memory, x->params[i]);
    }
    return true;
}

static void run(machine *x, const vm_module *m, uint64_t seed, outcome *o) {
    memset(o, 0, sizeof *o);
    vm_memory_reset(x->memory, 0xcd);
    memset(x->out, 0xcd, KERNEL_BYTES);
    for (unsigned i = 0; i < KERNEL_BYTES; i++) {
        x->in[i] = (uint8_t)(i * 7 + i / 64);
        x->both[i] = (uint8_t)(i * 5);
    }
    vm_launch launch = {.module = m,
                        .entry = vm_module_find(m, "k"),
                        .grid = {KERNEL_BLOCKS, 1, 1},
                        .block = {KERNEL_THREADS, 1, 1},
                        .params = x->params,
                        .checks = VM_CHECK_ALL,
                        .fuel = FUEL,
                        .schedule_seed = seed};
    ev_error err;
    o->ran = vm_run(x->memory, &launch, &o->result, &err) == EV_OK;
    memcpy(o->out, x->out, KERNEL_BYTES);
    memcpy(o->both, x->both, KERNEL_BYTES);
}

static const char *difference(const outcome *a, const outcome *b) {
    const vm_trap *s = &a->result.trap, *t = &b->result.trap;
    if (a->ran != b->ran || a->result.ok != b->result.ok)
        return "one trapped";
    if (!a->result.ok && (s->kind != t->kind || strcmp(s->message, t->message) != 0))
        return "the trap";
    if (memcmp(&a->result.counters, &b->result.counters, sizeof a->result.counters) != 0)
        return "the counters";
    if (memcmp(a->out, b->out, sizeof a->out) != 0)
        return "the outputs";
    return memcmp(a->both, b->both, sizeof a->both) != 0 ? "the buffer read and written" : NULL;
}

/* Every instruction set, and the first of them twice, must do as the baseline does. */
static char *check_runs(machine *x, vm_module *m, uint64_t seed) {
    outcome first, other;
    vm_module_set_isa(m, VM_ISA_BASELINE);
    run(x, m, seed, &first);
    for (unsigned isa = 0; isa < VM_ISA_COUNT; isa++) {
        if (!vm_isa_supported(isa))
            continue;
        vm_module_set_isa(m, isa);
        run(x, m, seed, &other);
        const char *what = difference(&first, &other);
        if (what)
            return complaint(m->text, "instruction set %u, schedule %llu: %s differs: '%s', '%s'",
                             isa, (unsigned long long)seed, what, first.result.trap.message,
                             other.result.trap.message);
    }
    return NULL;
}

char *kernel_check(const uint8_t *data, size_t size) {
    kernel_text k = kernel_text_make(data, size);
    vm_module *m = NULL;
    machine x = {0};
    char *wrong = load(&k, &m);
    if (m && !wrong)
        wrong = check_round_trip(&k, m);
    bool ready = m && machine_make(&x);
    for (uint64_t seed = 0; ready && !wrong && seed < SEEDS; seed++)
        wrong = check_runs(&x, m, seed);
    vm_memory_free(x.memory);
    vm_module_free(m);
    kernel_text_free(&k);
    return wrong;
}
