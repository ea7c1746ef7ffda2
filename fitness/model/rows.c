/* Rows: what the scoreboard needs of each instruction, looked up once a launch. */
#include "fitness/model/model_impl.h"

#include <math.h>
#include <stdio.h>
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
#include "fitness/vm/pipes.def"
#undef VM_PIPE
};

_Static_assert(sizeof PIPES / sizeof PIPES[0] == VM_PIPE_COUNT, "one row a pipe");

typedef struct cost_row {
    const char *first, *last;
    size_t first_length, last_length;
    double slots, own, special, latency;
} cost_row;

static const cost_row COSTS[] = {
#define MODEL_COST(first, last, slots, own, special, latency)                                      \
    {first, last, sizeof first - 1, sizeof last - 1, slots, own, special, latency},
#include "fitness/model/costs.def"
#undef MODEL_COST
};

/* What no row matches. */
static const cost_row ONE = {"", "", 0, 0, 1, 1, 0, 1};

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

static bool cost_matches(const cost_row *row, const char *name, size_t length) {
    return row->first[0] == name[0] && row->first_length + row->last_length <= length &&
           memcmp(name, row->first, row->first_length) == 0 &&
           memcmp(name + length - row->last_length, row->last, row->last_length) == 0;
}

static const cost_row *cost_of(const char *name) {
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof COSTS / sizeof COSTS[0]; i++) {
        if (cost_matches(&COSTS[i], name, length))
            return &COSTS[i];
    }
    return &ONE;
}

/* A register copy: the assembler gives both the same register. */
static bool is_copy(const vm_insn_info *info) {
    return strncmp(info->name, "mov.", 4) == 0 && info->use_count == 1 && info->def_count == 1 &&
           !info->conditional;
}

/* Reads of tid, ctaid and the like go through a slow path. */
static bool is_special_read(const vm_insn_info *info) {
    return info->pipe == VM_PIPE_CONSTANT && strncmp(info->name, "mov.", 4) == 0;
}

static row_kind kind_of(const vm_insn_info *info) {
    bool is_memory = info->is_load || info->is_store || info->is_atomic;
    if (info->is_barrier)
        return strstr(info->name, ".arrive") != NULL ? ROW_PLAIN : ROW_BARRIER;
    if (info->is_exit)
        return ROW_EXIT;
    if (!is_memory)
        return ROW_PLAIN;
    switch (info->space) {
    case VM_SPACE_SHARED:
        return ROW_SHARED;
    case VM_SPACE_LOCAL:
        return ROW_LOCAL;
    case VM_SPACE_GLOBAL:
    case VM_SPACE_GENERIC:
        if (info->is_atomic)
            return ROW_ATOMIC;
        if (info->is_load)
            return ROW_LOAD;
        return ROW_STORE;
    default:
        return ROW_PLAIN;
    }
}

static bool has_part(const char *name, const char *part) {
    return strstr(name, part) != NULL;
}

static bool bypasses(const char *name) {
    return has_part(name, ".cg") || has_part(name, ".cv") || has_part(name, ".volatile") ||
           has_part(name, ".relaxed") || has_part(name, ".acquire");
}

/* Multiply-adds of a warp's mma from its name ("mma.sync.aligned.m16n8k16..."). */
static double tensor_work(const char *name) {
    const char *at = strstr(name, ".m");
    unsigned m = 0, n = 0, k = 0;
    for (; at != NULL; at = strstr(at + 1, ".m")) {
        if (sscanf(at, ".m%un%uk%u", &m, &n, &k) != 3)
            continue;
        bool quads = m * n * k == 256 && strstr(name, ".f16") != NULL; /* four products at once */
        return (double)m * n * k * (quads ? 4 : 1);
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

/* Cycles of an SM's unit for one warp's instruction. A lane of the half-precision pipe gives two
 * results at once, whether both are wanted or not. */
static double unit_cycles(const gpu *g, const pipe_numbers *n, const vm_insn_info *info,
                          double slots) {
    double rate = n->throughput[info->pipe];
    if (info->pipe == VM_PIPE_TENSOR)
        return tensor_work(info->name) / tensor_rate(g, info->name);
    if (info->pipe == VM_PIPE_FP16)
        rate /= 2;
    return rate > 0 && rate < INFINITY ? slots * gpu_get(g, GPU_WARP_SIZE) / rate : 0;
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

static double latency_of(const gpu *g, const pipe_numbers *n, const vm_insn_info *info,
                         row_kind kind) {
    if (kind == ROW_LOCAL)
        return gpu_get(g, GPU_LAT_L1);
    if (is_special_read(info))
        return gpu_get(g, GPU_LAT_SFU);
    return n->latency[info->pipe];
}

/* Where no GPU is named. */
static double nominal_latency(row_kind kind) {
    if (kind == ROW_SHARED)
        return 25;
    if (kind == ROW_ATOMIC)
        return 200;
    return 5;
}

static void row_make(const gpu *g, const pipe_numbers *n, const vm_insn_info *info,
                     model_row *row) {
    const cost_row *cost = cost_of(info->name);
    row->kind = (uint8_t)kind_of(info);
    if (info->pipe == VM_PIPE_NONE || is_copy(info) || cost->slots == 0)
        row->kind = ROW_FOLDED;
    row->pipe = (uint8_t)info->pipe;
    row->term = (uint8_t)model_pipe_term(info->pipe);
    row->access_bytes = info->access_bytes;
    row->bypasses_l1 = row->kind == ROW_LOAD && bypasses(info->name);
    row->reason = reason_of(row, info->pipe);
    if (row->kind == ROW_FOLDED)
        return;
    row->slots = count8(cost->slots);
    row_kind kind = (row_kind)row->kind;
    double latency = g != NULL ? latency_of(g, n, info, kind) : nominal_latency(kind);
    row->latency = cycles16(latency * cost->latency);
    if (g == NULL)
        return;
    double unit = unit_cycles(g, n, info, cost->own);
    double each = is_per_scheduler(g, n, info->pipe) ? unit * gpu_get(g, GPU_SCHEDULERS) : unit;
    row->interval = cycles16(fmax(each, cost->slots));
    row->pipe_cycles = (float)unit;
    row->special_cycles = (float)(cost->special * gpu_get(g, GPU_WARP_SIZE) / gpu_get(g, GPU_SFU));
}

ev_status model_rows_make(const gpu *g, const vm_module *module, model_rows *out, ev_error *err) {
    uint32_t count = (uint32_t)vm_module_insn_count(module), used = 0;
    model_rows made = {.count = count, .register_count = vm_module_register_count(module)};
    made.rows = calloc((size_t)count + 1, sizeof *made.rows);
    made.operands = malloc(((size_t)count * 2 * VM_MAX_REGS + 1) * sizeof *made.operands);
    if (made.rows == NULL || made.operands == NULL) {
        model_rows_free(&made);
        return ev_fail_memory(err, (unsigned long long)count * sizeof *made.rows);
    }
    const pipe_numbers numbers = find_pipe_numbers(g);
    for (uint32_t i = 0; i < count; i++) {
        vm_insn_info info;
        vm_module_info(module, i, &info);
        model_row *row = &made.rows[i];
        row_make(g, &numbers, &info, row);
        row->operands = used;
        row->use_count = info.use_count;
        row->def_count = info.def_count;
        memcpy(made.operands + used, info.uses, info.use_count * sizeof *info.uses);
        used += info.use_count;
        memcpy(made.operands + used, info.defs, info.def_count * sizeof *info.defs);
        used += info.def_count;
    }
    *out = made;
    return EV_OK;
}

void model_rows_free(model_rows *rows) {
    free(rows->rows);
    free(rows->operands);
    *rows = (model_rows){0};
}
