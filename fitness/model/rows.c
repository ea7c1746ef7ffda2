/* Rows: what the scoreboard needs of each instruction, looked up once a launch. */
#include "fitness/model/rows.h"

#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A pipe of the virtual machine, with its keys of a GPU description and the term it counts to. */
typedef struct pipe_row {
    const char *throughput, *latency;
    model_term term;
} pipe_row;

static const pipe_row PIPES[] = {
#define VM_PIPE(id, name, throughput, latency, meaning)                                            \
    [VM_PIPE_##id] = {throughput, latency, MODEL_TERM_COUNT},
#include "fitness/ptx/pipes.def"
#undef VM_PIPE
};

_Static_assert(sizeof PIPES / sizeof PIPES[0] == VM_PIPE_COUNT, "one row a pipe");

static const model_cost COSTS[] = {
#define MODEL_COST(first, last, slots, own, special, latency)                                      \
    {first, last, sizeof first - 1, sizeof last - 1, slots, own, special, latency},
#include "fitness/model/costs.def"
};

/* What no row matches. */
static const model_cost ONE = {"", "", 0, 0, 1, 1, 0, 1};

model_term model_pipe_term(vm_pipe pipe) {
    switch (pipe) {
    case VM_PIPE_FP32:
    case VM_PIPE_IMUL:
        return MODEL_FMA;
    case VM_PIPE_FP64:
        return MODEL_FP64;
    case VM_PIPE_FP16:
        return MODEL_FP16;
    case VM_PIPE_IADD:
    case VM_PIPE_LOGIC:
    case VM_PIPE_SHIFT:
    case VM_PIPE_COMPARE:
        return MODEL_ALU;
    case VM_PIPE_SFU:
    case VM_PIPE_CVT:
    case VM_PIPE_CVT64:
    case VM_PIPE_POPC:
        return MODEL_SPECIAL;
    case VM_PIPE_SHUFFLE:
        return MODEL_SHUFFLE;
    case VM_PIPE_TENSOR:
        return MODEL_TENSOR;
    case VM_PIPE_BARRIER:
        return MODEL_BARRIER;
    default:
        return MODEL_TERM_COUNT;
    }
}

static bool cost_matches(const model_cost *row, const char *name, size_t length) {
    return row->first[0] == name[0] && model_name_fits(name, length, row->first, row->first_length,
                                                       row->last, row->last_length);
}

const model_cost *model_cost_of(const char *name) {
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof COSTS / sizeof COSTS[0]; i++) {
        if (cost_matches(&COSTS[i], name, length))
            return &COSTS[i];
    }
    return &ONE;
}

/* Reads of tid, ctaid and the like go through a slow path. */
static bool is_special_read(const model_insn *insn) {
    return insn->pipe == VM_PIPE_CONSTANT && (insn->traits & MODEL_MOVES) != 0;
}

/* A move that stays (copies.c): the assembler writes most of them as multiply-adds, beside which
 * the additions and comparisons have their own pipe. */
static bool is_register_move(const model_insn *insn) {
    return insn->pipe == VM_PIPE_LOGIC && (insn->traits & MODEL_MOVES) != 0 &&
           !insn->is_conditional;
}

static bool has_part(const char *name, const char *part) {
    return strstr(name, part) != NULL;
}

/* Multiply-adds of a warp's mma from its name ("mma.sync.aligned.m16n8k16..."). */
static double tensor_work(const char *name) {
    uint32_t m = 0, n = 0, k = 0;
    for (const char *at = strstr(name, ".m"); at != NULL; at = strstr(at + 1, ".m")) {
        const char *end = ev_text_u32(ev_text_u32(at, ".m", &m), "n", &n);
        if (ev_text_u32(end, "k", &k) == NULL)
            continue;
        double work = (double)m * n * k;
        bool quads = work == 256 && strstr(name, ".f16") != NULL; /* four products at once */
        return work * (quads ? 4 : 1);
    }
    return 16 * 8 * 8;
}

static double pipe_number(const gpu *g, const char *name, double otherwise) {
    gpu_key key;
    return gpu_key_find(name, &key) ? gpu_get(g, key) : otherwise;
}

/* What a GPU description says of each pipe, looked up by name once a module. */
typedef struct pipe_numbers {
    double throughput[VM_PIPE_COUNT]; /* INFINITY: it does not say */
    double latency[VM_PIPE_COUNT];
} pipe_numbers;

static pipe_numbers find_pipe_numbers(const gpu *g) {
    pipe_numbers n;
    for (size_t i = 0; i < VM_PIPE_COUNT; i++) {
        n.throughput[i] = g ? pipe_number(g, PIPES[i].throughput, INFINITY) : INFINITY;
        n.latency[i] = g ? pipe_number(g, PIPES[i].latency, gpu_get(g, GPU_LAT_ALU)) : 0;
    }
    return n;
}

/* Multiply-adds a clock and SM for the type of the factors, where the description tells it. Without
 * a rate, the plain pipe does the work. */
static double tensor_rate(const gpu *g, const char *name) {
    double rate = gpu_get(g, GPU_TENSOR), plain = gpu_get(g, GPU_FP16) / 2;
    if (has_part(name, ".f64")) {
        rate = gpu_get(g, GPU_TENSOR_FP64);
        plain = gpu_get(g, GPU_FP64);
    } else if (has_part(name, ".tf32")) {
        rate = gpu_get(g, GPU_TENSOR_TF32);
    }
    return fmax(rate, plain);
}

static uint16_t cycles16(double cycles) {
    return (uint16_t)fmin(fmax(ceil(cycles), 0), 60000);
}

static uint8_t count8(double count) {
    return (uint8_t)fmin(count, 255);
}

/* The pipe whose rate and latency an instruction has. Conversions between integers only move
 * registers, or fill one with the sign. The subroutines for doubles are mostly multiply-adds. */
static vm_pipe work_of(const model_name *name, vm_pipe pipe) {
    if (pipe == VM_PIPE_CVT64 && !has_part(name->text, "f"))
        return VM_PIPE_LOGIC;
    bool is_called = pipe == VM_PIPE_SFU && name->cost->special > 0;
    return is_called && has_part(name->text, ".f64") ? VM_PIPE_FP64 : pipe;
}

/* The pipe that the work keeps busy. */
static vm_pipe unit_of(const gpu *g, vm_pipe work) {
    bool is_shared = work == VM_PIPE_CVT64 && g != NULL && gpu_get(g, GPU_CVT64_SHARED) > 0;
    return is_shared ? VM_PIPE_FP64 : work;
}

/* Cycles of an SM's unit for one warp's instruction. A lane of the half-precision pipe gives two
 * results at once, whether both are wanted or not. */
static double unit_cycles(const gpu *g, const pipe_numbers *n, vm_pipe pipe,
                          const model_name *name) {
    double rate = n->throughput[pipe];
    if (pipe == VM_PIPE_TENSOR)
        return tensor_work(name->text) / tensor_rate(g, name->text);
    if (pipe == VM_PIPE_FP16)
        rate /= 2;
    return rate > 0 && rate < INFINITY ? name->cost->own * gpu_get(g, GPU_WARP_SIZE) / rate : 0;
}

/* Units that each scheduler has one of its own of; the others are one for the SM, and so is what
 * has not a lane for each. */
static bool is_per_scheduler(const gpu *g, const pipe_numbers *n, vm_pipe pipe) {
    model_term term = model_pipe_term(pipe);
    if (n->throughput[pipe] < gpu_get(g, GPU_SCHEDULERS))
        return false;
    return term != MODEL_SHUFFLE && term != MODEL_BARRIER && term != MODEL_TERM_COUNT;
}

static uint8_t reason_of(const model_row *row, vm_pipe pipe) {
    switch ((row_kind)row->kind) {
    case ROW_SHARED:
        return MODEL_SHARED;
    case ROW_ATOMIC:
        return MODEL_ATOMIC;
    case ROW_LOCAL:
        return MODEL_L1;
    default:
        return pipe == VM_PIPE_SHUFFLE ? MODEL_SHUFFLE : MODEL_LATENCY;
    }
}

static double latency_of(const gpu *g, const pipe_numbers *n, const model_insn *insn,
                         vm_pipe work) {
    if (insn->kind == ROW_LOCAL)
        return gpu_get(g, GPU_LAT_L1);
    if (is_special_read(insn))
        return gpu_get(g, GPU_LAT_SFU);
    return n->latency[work];
}

/* Where no GPU is named. */
static double nominal_latency(row_kind kind) {
    if (kind == ROW_SHARED)
        return 25;
    if (kind == ROW_ATOMIC)
        return 200;
    return 5;
}

static model_row row_make(const gpu *g, const pipe_numbers *n, const model_name *name,
                          const model_insn *insn) {
    const model_cost *cost = name->cost;
    vm_pipe pipe = work_of(name, (vm_pipe)insn->pipe);
    if (is_register_move(insn) && n->throughput[VM_PIPE_IMUL] >= n->throughput[VM_PIPE_LOGIC])
        pipe = VM_PIPE_IMUL;
    vm_pipe busy = unit_of(g, pipe);
    row_kind kind = (row_kind)insn->kind;
    model_row row = {.kind = insn->kind,
                     .pipe = (uint8_t)busy,
                     .term = (uint8_t)model_pipe_term(busy),
                     .access_bytes = insn->access_bytes,
                     .bypasses_l1 = kind == ROW_LOAD && (insn->traits & MODEL_BYPASSES_L1) != 0};
    row.reason = reason_of(&row, pipe);
    if (kind == ROW_FOLDED)
        return row;
    row.slots = count8(cost->slots);
    double latency = g != NULL ? latency_of(g, n, insn, pipe) : nominal_latency(kind);
    row.latency = cycles16(latency * cost->latency);
    if (g == NULL)
        return row;
    double unit = unit_cycles(g, n, pipe, name);
    double each = is_per_scheduler(g, n, pipe) ? unit * gpu_get(g, GPU_SCHEDULERS) : unit;
    row.interval = cycles16(fmax(each, cost->slots));
    row.pipe_cycles = (float)unit;
    row.special_cycles = (float)(cost->special * gpu_get(g, GPU_WARP_SIZE) / gpu_get(g, GPU_SFU));
    return row;
}

/* How many of its registers the instruction at `pc` has to read, if the one at `before` was the
 * last: the operand collectors keep what they read for the next instruction. */
static unsigned count_reads(const model_insns *insns, uint32_t pc, uint32_t before) {
    const model_insn *insn = &insns->insns[pc], *last = &insns->insns[before];
    const uint16_t *uses = insns->operands + insn->operands;
    const uint16_t *kept = insns->operands + last->operands;
    unsigned reads = 0;
    for (unsigned i = 0; i < insn->use_count; i++) {
        bool is_new = true;
        for (unsigned k = 0; k < i && is_new; k++)
            is_new = uses[k] != uses[i];
        for (unsigned k = 0; k < last->use_count && is_new && before != pc; k++)
            is_new = kept[k] != uses[i];
        reads += is_new;
    }
    return reads - (insn->is_conditional && reads > 0);
}

/* Multiply-adds of three registers wait for the banks where there is a lane for each thread of a
 * warp, unless a neighbour reads one of the three: the assembler puts such two side by side. */
static void charge_reads(const gpu *g, const model_insns *insns, model_row *rows) {
    double each = gpu_get(g, GPU_WARP_SIZE) * gpu_get(g, GPU_SCHEDULERS) / gpu_get(g, GPU_FP32);
    double ports = gpu_get(g, GPU_REGISTER_READS);
    uint32_t recent[2], count = 0;
    for (uint32_t pc = 0; pc < insns->count; pc++) {
        count = insns->blocks.block_end[pc] != 0 ? 0 : count;
        if (insns->insns[pc].pipe != VM_PIPE_FP32)
            continue;
        unsigned reads = count_reads(insns, pc, pc);
        for (uint32_t i = 0; i < 2 && i < count && reads / ports > each; i++) {
            unsigned fewer = count_reads(insns, pc, recent[i]);
            reads = fewer < reads ? fewer : reads;
        }
        rows[pc].pipe_cycles *= (float)fmax(1, reads / ports / each);
        recent[count++ % 2] = pc;
    }
}

/* A branch that predicates take the place of: the wait for them is left. */
static model_row guard_row(const model_row *branch) {
    return (model_row){.kind = ROW_PLAIN,
                       .pipe = branch->pipe,
                       .term = MODEL_TERM_COUNT,
                       .reason = branch->reason};
}

/* An access that is part of an earlier one: its result comes as that one's does. */
static model_row joined_row(const model_row *access) {
    model_row row = *access;
    row.slots = 0;
    row.interval = 0;
    row.pipe_cycles = row.special_cycles = 0;
    row.is_joined = true;
    return row;
}

/* Those of one name have the same row, mostly: `last` is the last of each name, plus 1. */
static void fill_rows(const gpu *g, const model_insns *insns, uint32_t *last, model_row *rows) {
    const pipe_numbers numbers = find_pipe_numbers(g);
    for (uint32_t pc = 0; pc < insns->count; pc++) {
        const model_insn *insn = &insns->insns[pc];
        const model_row *like = last[insn->name] > 0 ? &rows[last[insn->name] - 1] : NULL;
        if (like != NULL && like->kind == insn->kind && like->access_bytes == insn->access_bytes)
            rows[pc] = *like;
        else
            rows[pc] = row_make(g, &numbers, &insns->names[insn->name], insn);
        if (insn->is_guard)
            rows[pc] = guard_row(&rows[pc]);
        rows[pc].is_guarded = insn->guard != 0;
        if (insn->joins == 1)
            rows[pc] = joined_row(&rows[pc]);
        rows[pc].operands = insn->operands;
        rows[pc].use_count = insn->use_count;
        rows[pc].def_count = insn->def_count;
        last[insn->name] = insn->is_guard || insn->joins == 1 ? last[insn->name] : pc + 1;
    }
    if (g != NULL)
        charge_reads(g, insns, rows);
}

ev_status model_rows_make(const gpu *g, const model_insns *insns, model_rows *out, ev_error *err) {
    model_rows made = {.count = insns->count,
                       .operands = insns->operands,
                       .register_count = insns->register_count};
    made.rows = malloc(((size_t)insns->count + 1) * sizeof *made.rows);
    uint32_t *last = calloc((size_t)insns->name_count + 1, sizeof *last);
    if (made.rows == NULL || last == NULL) {
        free(last);
        model_rows_free(&made);
        return ev_fail_memory(err, (unsigned long long)insns->count * sizeof *made.rows);
    }
    fill_rows(g, insns, last, made.rows);
    free(last);
    *out = made;
    return EV_OK;
}

void model_rows_free(model_rows *rows) {
    free(rows->rows);
    *rows = (model_rows){0};
}
