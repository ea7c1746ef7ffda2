/* evoke bench model --only ladder: seven products of one size, from naive to warp tiles, by the
 * model, beside what is published of such kernels on the same GPU. */
#include "base/file.h"
#include "base/table.h"
#include "fitness/gates/floor.h"
#include "tuner/bench/bench_model.h"
#include "tuner/worker/variant.h"

#include <math.h>
#include <stdlib.h>

#define SOURCE "fitness/model/bench/ladder.cu"
#define GPU "a6000"
#define SIDE 4096u

/* Shares of cuBLAS's speed, percent: S. Boehm, "How to Optimize a CUDA Matmul Kernel for
 * cuBLAS-like Performance", 2022: an RTX A6000, 4096 x 4096 x 4096. */
static const struct step {
    const char *name, *says;
    uint32_t tile; /* a side of a block's results */
    uint32_t block[2];
    double published;
} STEPS[] = {
    {"naive", "one result a thread", 32, {32, 32}, 1.3},
    {"coalesced", "coalesced loads", 32, {32, 32}, 8.5},
    {"shared_tile", "tiles in shared memory", 32, {32, 32}, 12.8},
    {"rows", "8 results a thread", 64, {512, 1}, 36.5},
    {"squares", "8 x 8 results a thread", 128, {256, 1}, 68.7},
    {"vectors", "loads of four floats", 128, {256, 1}, 78.4},
    {"warps", "tiles of a warp", 128, {128, 1}, 93.7},
};

enum { STEP_COUNT = sizeof STEPS / sizeof STEPS[0] };

typedef struct ladder {
    gpu *g;
    vm_memory *memory;
    model_buffer buffers[3];
    char *source;
    model_time times[STEP_COUNT];
} ladder;

static ev_status make_buffers(ladder *l, ev_error *err) {
    for (size_t i = 0; i < 3; i++) {
        model_buffer *b = &l->buffers[i];
        b->bytes = (uint64_t)SIDE * SIDE * 4;
        EV_TRY(vm_memory_alloc(l->memory, b->bytes, i == 0 ? VM_BUFFER_OUT : VM_BUFFER_IN, "matrix",
                               &b->address, err));
    }
    return EV_OK;
}

static ev_status open_ladder(ladder *l, const char *description, ev_error *err) {
    char *home = ev_path_home();
    if (home == NULL)
        return ev_fail(err, EV_BAD, "%s was not found; set EVOKE_HOME", SOURCE);
    l->source = ev_path_join(home, SOURCE);
    free(home);
    if (l->source == NULL)
        return ev_fail_memory(err, sizeof SOURCE);
    EV_TRY(gpu_load(description != NULL ? description : GPU, &l->g, err));
    EV_TRY(vm_memory_new(1ull << 32, &l->memory, err));
    return make_buffers(l, err);
}

static void close_ladder(ladder *l) {
    vm_memory_free(l->memory);
    gpu_free(l->g);
    free(l->source);
}

/* All blocks do the same at other places: the one in the middle stands for all. */
static ev_status run_step(ladder *l, size_t i, ev_error *err) {
    const struct step *s = &STEPS[i];
    ev_str ptx = EV_STR_EMPTY;
    vm_module *module = NULL;
    uint32_t across = SIDE / s->tile, middle = (across / 2) * across + across / 2;
    double weight = (double)across * across;
    uint64_t params[4] = {l->buffers[0].address, l->buffers[1].address, l->buffers[2].address,
                          SIDE};
    ev_status status = variant_build_file(l->source, s->name, l->g->sm, &ptx, err);
    if (status == EV_OK)
        status = vm_module_load(ptx.data, ptx.length, s->name, &module, err);
    ev_str_free(&ptx);
    EV_TRY(status);
    vm_launch launch = {.module = module,
                        .entry = vm_module_entry(module, 0),
                        .grid = {across, across, 1},
                        .block = {s->block[0], s->block[1], 1},
                        .params = params,
                        .sample = &middle,
                        .sample_count = 1,
                        .weights = &weight};
    status = model_rig_time(l->memory, l->g, &launch, l->buffers, 3, &l->times[i], err);
    vm_module_free(module);
    return status;
}

/* The floor of any product of this size: a multiply-add a term, each matrix once. */
static double floor_ns(const ladder *l) {
    task_amounts work = {.is_declared = true, .bytes = 3.0 * SIDE * SIDE * 4};
    work.operations[TASK_UNIT_F32] = (double)SIDE * SIDE * SIDE;
    return floor_of(l->g, &work).ns;
}

/* Speed as a share of the last step's, percent: by the model, and as published. */
static double share_of_last(const ladder *l, size_t i) {
    return 100 * l->times[STEP_COUNT - 1].ns / l->times[i].ns;
}

static double published_of_last(size_t i) {
    return 100 * STEPS[i].published / STEPS[STEP_COUNT - 1].published;
}

static ev_status print_json(cmd_context *c, const ladder *l, ev_error *err) {
    json_t *rows = json_array();
    for (size_t i = 0; i < STEP_COUNT; i++) {
        const model_time *t = &l->times[i];
        (void)json_array_append_new(
            rows,
            json_pack("{s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:s, s:I, s:I, s:I}", "gpu", l->g->id,
                      "kernel", STEPS[i].name, "model_ms", t->ns * 1e-6, "share_of_floor",
                      floor_ns(l) / t->ns, "share_of_last", share_of_last(l, i) / 100,
                      "published_of_last", published_of_last(i) / 100, "published_of_cublas",
                      STEPS[i].published / 100, "bound_by", model_term_name(t->bound_by),
                      "registers", (json_int_t)t->occupancy.registers, "spilled",
                      (json_int_t)t->spilled, "blocks_per_sm",
                      (json_int_t)t->occupancy.blocks_per_sm));
    }
    return cmd_print_json(
        c, json_pack("{s:s, s:s, s:o}", "bench", "model", "part", "ladder", "rows", rows), err);
}

static ev_status print_table(cmd_context *c, const ladder *l, ev_error *err) {
    static const char *const columns[] = {"product",       "step",     ">modelled",
                                          ">of the floor", ">of last", ">published",
                                          ">off",          "bound by", NULL};
    table *rows = table_new(columns);
    if (rows == NULL)
        return ev_fail_memory(err, 1);
    for (size_t i = 0; i < STEP_COUNT; i++) {
        const model_time *t = &l->times[i];
        table_cell(rows, "%s", STEPS[i].name);
        table_cell(rows, "%s", STEPS[i].says);
        table_cell(rows, "%.2f ms", t->ns * 1e-6);
        table_cell(rows, "%.1f %%", 100 * floor_ns(l) / t->ns);
        table_cell(rows, "%.1f %%", share_of_last(l, i));
        table_cell(rows, "%.1f %%", published_of_last(i));
        table_cell(rows, "%+.0f %%", 100 * (share_of_last(l, i) / published_of_last(i) - 1));
        table_cell(rows, "%s", model_term_name(t->bound_by));
    }
    ev_status status = table_print(rows, c->out, err);
    table_free(rows);
    ev_str_printf(
        c->out,
        "\nProducts of %u x %u x %u on %s, modelled. of the floor: the time of a multiply-add a "
        "term "
        "at the peak, and of a\nlaunch; of last: speed over that of the last step; published: the "
        "same of kernels on an RTX A6000 (S. Boehm,\n2022), whose last step reaches %.1f %% of "
        "cuBLAS.\n",
        SIDE, SIDE, SIDE, l->g->name, STEPS[STEP_COUNT - 1].published);
    return status;
}

ev_status bench_model_ladder(cmd_context *c, ev_error *err) {
    ladder l = {.g = NULL};
    ev_status status = open_ladder(&l, cli_text(c->args, CLI_OPT_DESCRIPTION), err);
    for (size_t i = 0; i < STEP_COUNT && status == EV_OK; i++)
        status = run_step(&l, i, err);
    if (status == EV_OK)
        status = cli_flag(c->args, CLI_OPT_JSON) ? print_json(c, &l, err) : print_table(c, &l, err);
    close_ladder(&l);
    return status;
}
