/* The timing model's observer: sums up what the blocks of a launch cost. A block whose batches
 * repeat those of an earlier one takes its sums (repeat.c); the others' warps are followed
 * (follow.c). */
#include "fitness/model/model_state.h"
#include "fitness/model/registers.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define L1_LEAST_BYTES 2048
#define TRIED_OFTEN                                                                                \
    24 /* after so many blocks of which few repeat another, none is tried any more */

/* ---- code: what is known of a kernel before any launch ---- */

uint32_t model_code_registers(const model_code *code) {
    return model_given_registers(code->live_registers,
                                 model_register_cap(code->entry, vm_module_sm(code->module)));
}

ev_status model_code_new(const gpu *g, const vm_module *module, const vm_entry *entry,
                         model_code **out, ev_error *err) {
    model_code *code = calloc(1, sizeof *code);
    if (code == NULL)
        return ev_fail_memory(err, sizeof *code);
    model_schedule_options options = {.window = MODEL_WINDOW_MOST,
                                      .load_latency = (uint32_t)gpu_get(g, GPU_LAT_L2)};
    code->gpu = g;
    code->module = module;
    code->entry = entry;
    ev_status status = model_insns_make(module, &code->insns, err);
    if (status == EV_OK) {
        model_need need = model_registers_needed(module, &code->insns, entry);
        code->live_registers = need.wanted;
        code->least_registers = need.least;
        status = model_rows_make(g, &code->insns, &code->rows, err);
    }
    if (status == EV_OK)
        status = model_schedule_make(&options, &code->insns, &code->rows, &code->schedule, err);
    if (status == EV_OK)
        status = model_registers_fit(module, &code->insns, entry, model_code_registers(code),
                                     &options, &code->rows, &code->schedule, err);
    if (status != EV_OK) {
        model_code_free(code);
        return status;
    }
    *out = code;
    return EV_OK;
}

void model_code_free(model_code *code) {
    if (code == NULL)
        return;
    model_rows_free(&code->rows);
    model_schedule_free(&code->schedule);
    model_insns_free(&code->insns);
    free(code);
}

/* ---- the scratch pool: tables and logs, for one launch's model after another ---- */

ev_status model_scratch_new(model_scratch **out, ev_error *err) {
    model_scratch *scratch = calloc(1, sizeof *scratch);
    if (scratch == NULL)
        return ev_fail_memory(err, sizeof *scratch);
    ev_status status = model_tables_make(&scratch->tables, err);
    if (status != EV_OK) {
        free(scratch);
        return status;
    }
    *out = scratch;
    return EV_OK;
}

void model_scratch_free(model_scratch *scratch) {
    if (scratch == NULL)
        return;
    for (size_t i = 0; i < MODEL_LEADERS; i++)
        model_log_free(scratch->logs[i]);
    model_tables_free(scratch->tables);
    free(scratch);
}

/* An empty log for the leader of that number; NULL: there is no memory. */
static model_log *scratch_log(model_scratch *scratch, size_t number) {
    model_log **log = &scratch->logs[number];
    if (*log != NULL)
        model_log_clear(*log);
    else
        *log = model_log_new();
    return *log;
}

/* ---- weights ---- */

/* How many blocks of the grid each sampled one stands for: the first and the last for themselves,
 * where both are there, those between for the rest. */
static void set_weights(model *m) {
    const vm_launch *l = m->launch;
    double blocks = (double)m->shape.blocks;
    m->weights[KIND_EDGE] = m->weights[KIND_INNER] = 1;
    if (l->sample == NULL || l->sample_count == 0)
        return;
    double n = (double)l->sample_count;
    /* with weights from the caller: the waits of blocks without a log count for the mean */
    m->weights[KIND_EDGE] = m->weights[KIND_INNER] = blocks / n;
    if (l->weights != NULL)
        return;
    bool has_edges = l->sample[0] == 0 && l->sample[l->sample_count - 1] == m->shape.blocks - 1;
    if (has_edges && l->sample_count >= 3) {
        m->weights[KIND_EDGE] = 1;
        m->weights[KIND_INNER] = (blocks - 2) / (n - 2);
    }
}

static int compare_blocks(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static double weight_of(const model *m, uint32_t block) {
    const vm_launch *l = m->launch;
    if (l->weights == NULL || l->sample == NULL)
        return m->weights[kind_of(m, block)];
    const uint32_t *at =
        bsearch(&block, l->sample, l->sample_count, sizeof *l->sample, compare_blocks);
    return at != NULL ? l->weights[at - l->sample] : 0;
}

/* ---- blocks ---- */

static void block_free(block_state *b) {
    if (b == NULL)
        return;
    free(b->warp);
    free(b->ready);
    free(b->memory);
    free(b->runs);
    model_queues_free(b->queues, b->queue_count);
    free(b->turns);
    model_cache_free(&b->cache);
    free(b);
}

static block_state *block_new(model *m) {
    block_state **more = realloc(m->blocks, (m->block_count + 1) * sizeof(*more));
    if (more == NULL)
        return NULL;
    m->blocks = more;
    block_state *b = calloc(1, sizeof *b);
    if (b == NULL)
        return NULL;
    b->runs = calloc((size_t)m->rows.count + 1, sizeof *b->runs);
    if (b->runs == NULL || model_cache_make(m->l1_bytes, &b->cache, NULL) != EV_OK) {
        block_free(b);
        return NULL;
    }
    m->blocks[m->block_count++] = b;
    return b;
}

static void start_warps(const model *m, block_state *b) {
    const uint32_t *size = m->launch->block;
    uint32_t threads = size[0] * size[1] * size[2];
    for (uint32_t i = 0; i < b->warps; i++) {
        uint32_t lanes = threads > i * 32 ? threads - i * 32 : 0;
        warp_state *w = &b->warp[i];
        w->live = lanes >= 32 ? UINT32_MAX : (1u << lanes) - 1;
        w->epoch = w->arrived = 0;
        w->at_barrier = false;
        w->first = w->end = w->stop = 0;
        w->plan = NULL;
        w->poll = (warp_poll){0};
        model_board_start(m->board, &w->at, b->ready + (size_t)i * (m->rows.register_count + 1));
    }
}

/* Room for `count` items of `size` bytes, zeroed when it is made. */
static bool make_room(void **items, size_t *room, size_t count, size_t size) {
    if (*room >= count)
        return true;
    free(*items);
    *items = calloc(count, size);
    *room = *items == NULL ? 0 : count;
    return *items != NULL;
}

/* What is read of it is written before. */
static bool make_warps(const model *m, block_state *b, uint32_t warps) {
    size_t ready = (size_t)warps * (m->rows.register_count + 1);
    size_t memory = (size_t)warps * m->longest_block;
    void *warp = b->warp, *times = b->ready, *accesses = b->memory;
    bool made = make_room(&warp, &b->warp_room, warps, sizeof *b->warp);
    made = make_room(&times, &b->ready_room, ready, sizeof *b->ready) && made;
    made = make_room(&accesses, &b->memory_room, memory, sizeof *b->memory) && made;
    b->warp = warp;
    b->ready = times;
    b->memory = accesses;
    return made;
}

static bool block_reset(model *m, block_state *b) {
    if (!make_warps(m, b, b->warps))
        return false;
    memset(b->runs, 0, ((size_t)m->rows.count + 1) * sizeof *b->runs);
    model_cache_clear(&b->cache);
    memset(&b->sums, 0, sizeof b->sums);
    b->read = b->missed = b->wrote = b->remote = 0;
    b->path[0] = b->path[1] = 0;
    b->stores = (model_stores){0};
    memset(b->again, 0, sizeof b->again);
    b->epoch_seen = 0;
    start_warps(m, b);
    return model_interleave_block(b);
}

static block_state *take_block(model *m) {
    for (size_t i = 0; i < m->block_count; i++) {
        if (!m->blocks[i]->used)
            return m->blocks[i];
    }
    return block_new(m);
}

static bool tries_repeats(const model *m) {
    return !m->follows_all && (m->ended < TRIED_OFTEN || m->repeated >= m->ended / 4);
}

/* Begins to repeat what the first leader's log says, if there is one. */
static void begin_repeat(model *m, block_state *b) {
    b->is_live = false;
    b->leader = m->leader_count > 0 && tries_repeats(m) ? 0 : MODEL_LEADERS;
    b->at.batch = 0;
    b->at.known = 0;
}

/* Begins to follow the block, and to write its log if there is room for one. */
static bool go_live(model *m, block_state *b) {
    b->is_live = true;
    b->leader = MODEL_LEADERS;
    b->kind = kind_of(m, b->block);
    if (m->leader_count < MODEL_LEADERS && tries_repeats(m)) {
        leader *l = &m->leaders[m->leader_count];
        l->log = scratch_log(m->scratch, m->leader_count);
        if (l->log == NULL)
            return false;
        l->weight = b->weight;
        b->leader = m->leader_count++;
        b->kind = KIND_LEADERS + (unsigned)b->leader;
    }
    return block_reset(m, b);
}

static void on_block_begin(void *context, uint32_t block, uint32_t warps) {
    model *m = context;
    block_state *b = take_block(m);
    if (b == NULL) {
        m->failed = true;
        return;
    }
    b->block = block;
    b->warps = warps;
    b->weight = weight_of(m, block);
    b->used = true;
    begin_repeat(m, b);
    if (b->leader == MODEL_LEADERS && !go_live(m, b))
        m->failed = true;
}

static block_state *find_block(model *m, uint32_t block) {
    size_t i = m->last_block;
    for (size_t n = 0; n < m->block_count; n++, i = i + 1 == m->block_count ? 0 : i + 1) {
        if (m->blocks[i]->used && m->blocks[i]->block == block) {
            m->last_block = i;
            return m->blocks[i];
        }
    }
    return NULL;
}

/* `buffers`: how many there are. */
static void add_weighted(model_sums *into, const model_sums *from, double weight, size_t buffers) {
    double *to_rows[] = {&into->chain,          &into->chain_wait,  &into->load_sectors,
                         &into->load_hits,      &into->l2_sectors,  &into->store_sectors,
                         &into->access_slots,   &into->store_parts, &into->store_bytes,
                         &into->atomic_sectors, &into->warps};
    const double *from_rows[] = {&from->chain,          &from->chain_wait,  &from->load_sectors,
                                 &from->load_hits,      &from->l2_sectors,  &from->store_sectors,
                                 &from->access_slots,   &from->store_parts, &from->store_bytes,
                                 &from->atomic_sectors, &from->warps};
    for (size_t i = 0; i < sizeof to_rows / sizeof to_rows[0]; i++)
        *to_rows[i] += weight * *from_rows[i];
    for (int i = 0; i < MODEL_TERM_COUNT; i++) {
        into->cycles[i] += weight * from->cycles[i];
        into->stall[i] += weight * from->stall[i];
    }
    for (int i = 0; i < MODEL_AGAIN; i++)
        into->again[i] += weight * from->again[i];
    for (size_t i = 0; i <= buffers; i++) {
        size_t at = i < buffers ? i : MODEL_MAX_BUFFERS;
        into->read_bytes[at] += weight * from->read_bytes[at];
        into->written_bytes[at] += weight * from->written_bytes[at];
    }
    if (from->chain > into->longest) {
        into->longest = from->chain;
        into->longest_wait = from->chain_wait;
    }
}

/* What a live block does goes into its log as the machine ran it, and is followed as an SM would
 * run it. */
static void take_batch(model *m, block_state *b, const vm_batch *batch) {
    if (b->leader < MODEL_LEADERS)
        model_log_add(m->leaders[b->leader].log, &m->buffers, batch);
    model_interleave_batch(m, b, batch);
}

/* ---- repeating ---- */

/* Whether the leader's log begins with what the block did up to now. */
static bool fits_so_far(model *m, const block_state *b, size_t index, model_repeat *at) {
    const model_log *log = m->leaders[b->leader].log, *other = m->leaders[index].log;
    *at = (model_repeat){.batch = 0};
    for (size_t i = 0; i < b->at.batch; i++) {
        vm_batch batch;
        if (!model_log_read(log, &b->at, i, b->block, &m->copy, &batch) ||
            !model_log_fits(other, at, &batch))
            return false;
    }
    return true;
}

/* Follows what the block repeated up to now, and goes on so. */
static void part(model *m, block_state *b) {
    const model_log *log = m->leaders[b->leader].log;
    model_repeat at = b->at;
    if (!go_live(m, b))
        m->failed = true;
    for (size_t i = 0; i < at.batch && !m->failed; i++) {
        vm_batch batch;
        if (model_log_read(log, &at, i, b->block, &m->copy, &batch))
            take_batch(m, b, &batch);
        else
            m->failed = true;
    }
}

/* The batch, or the block's end for NULL, is what some log has next; else the block goes live. */
static bool repeats(model *m, block_state *b, const vm_batch *batch) {
    for (size_t index = b->leader; index < m->leader_count; index++) {
        model_repeat at;
        if (index != b->leader) {
            if (!fits_so_far(m, b, index, &at))
                continue;
            b->at = at;
            b->leader = index;
        }
        const model_log *log = m->leaders[index].log;
        if (batch != NULL ? model_log_fits(log, &b->at, batch)
                          : model_log_ends(log, &b->at, &m->buffers))
            return true;
    }
    part(m, b);
    return false;
}

static void on_batch(void *context, const vm_batch *batch) {
    model *m = context;
    block_state *b = find_block(m, batch->block);
    if (m->failed || b == NULL)
        return;
    if (!b->is_live && repeats(m, b, batch))
        return;
    if (!m->failed)
        take_batch(m, b, batch);
}

static void end_repeat(model *m, const block_state *b) {
    leader *l = &m->leaders[b->leader];
    double weight = b->weight;
    l->weight += weight;
    add_weighted(&m->sums, &l->sums, weight, m->buffers.count);
    for (size_t i = 0; i < model_log_stored_count(l->log); i++)
        model_note_stored(m, model_log_stored(l->log, &b->at, i));
    for (size_t i = 0; i < model_log_updated_count(l->log); i++)
        model_hot_add(&m->hot, model_log_updated(l->log, &b->at, i), weight);
    m->repeated++;
}

/* ---- the end of a block ---- */

/* Executions by pc, folded into the pipes' cycles; returns the slots of accesses. */
static double fold_runs(const model *m, const int64_t *by_pc, double *cycles) {
    int64_t runs = 0;
    double accesses = 0;
    memset(cycles, 0, MODEL_TERM_COUNT * sizeof *cycles);
    for (uint32_t pc = 0; pc < m->rows.count; pc++) {
        runs += by_pc[pc];
        if (runs == 0)
            continue;
        const model_row *row = &m->rows.rows[pc];
        cycles[MODEL_ISSUE] += (double)runs * row->slots;
        accesses += model_row_is_access(row) ? (double)runs * row->slots : 0;
        if (row->term != MODEL_TERM_COUNT)
            cycles[row->term] += (double)runs * (double)row->pipe_cycles;
        cycles[MODEL_SPECIAL] += (double)runs * (double)row->special_cycles;
    }
    return accesses;
}

/* Most blocks execute what the one before did. */
static void count_pipes(model *m, block_state *b) {
    size_t bytes = m->rows.count * sizeof *b->runs;
    if (memcmp(b->runs, m->runs_before, bytes) != 0) {
        memcpy(m->runs_before, b->runs, bytes);
        m->accesses_before = fold_runs(m, b->runs, m->pipes_before);
    }
    memcpy(b->sums.cycles, m->pipes_before, sizeof b->sums.cycles);
    b->sums.access_slots = m->accesses_before;
}

static void count_chains(block_state *b) {
    uint64_t longest = 0, wait = 0;
    for (uint32_t i = 0; i < b->warps; i++) {
        const board_warp *w = &b->warp[i].at;
        if (w->clock > longest) {
            longest = w->clock;
            wait = w->wait;
        }
    }
    b->sums.cycles[MODEL_L1] = (double)b->path[0] / UNITS;
    b->sums.cycles[MODEL_SHARED] = (double)b->path[1] / UNITS;
    b->sums.chain = (double)longest;
    b->sums.chain_wait = (double)wait;
    b->sums.warps = b->warps;
    b->sums.load_sectors = (double)b->read;
    b->sums.load_hits = (double)(b->read - b->missed);
    b->sums.l2_sectors = (double)(b->missed + b->wrote - b->remote);
    double own = b->remote > 0 ? b->sums.l2_sectors / (double)(b->missed + b->wrote) : 1;
    for (int i = 0; i < MODEL_AGAIN; i++)
        b->sums.again[i] = b->again[i];
    b->sums.store_sectors = own * (double)b->stores.sectors;
    b->sums.store_parts = own * (double)b->stores.parts;
    b->sums.store_bytes = own * (double)b->stores.bytes;
}

static void end_live(model *m, block_state *b) {
    model_interleave_rest(m, b);
    for (uint32_t i = 0; i < b->warps; i++)
        model_follow_rest(m, b, i);
    count_pipes(m, b);
    count_chains(b);
    b->sums.stall[MODEL_ISSUE] += b->sums.cycles[MODEL_ISSUE];
    b->sums.stall[MODEL_START] += gpu_get(m->shape.g, GPU_START_CLK) * b->warps;
    m->failed = m->failed || b->cache.failed;
    add_weighted(&m->sums, &b->sums, b->weight, m->buffers.count);
    if (b->leader == MODEL_LEADERS)
        return;
    m->leaders[b->leader].sums = b->sums;
    model_log_end(m->leaders[b->leader].log);
}

static void on_block_end(void *context, uint32_t block) {
    model *m = context;
    block_state *b = find_block(m, block);
    if (m->failed || b == NULL)
        return;
    if (!b->is_live && repeats(m, b, NULL))
        end_repeat(m, b);
    else if (!m->failed)
        end_live(m, b);
    m->ended++;
    m->shape.sampled++;
    b->used = false;
}

/* ---- making and asking ---- */

/* A block's share of the L1. Where L1 and shared memory are one array, the blocks' shared memory is
 * cut from it. */
static uint64_t l1_share(const model_shape *shape) {
    double blocks = fmax(1, shape->occupancy.blocks_per_sm);
    double bytes = gpu_get(shape->g, GPU_L1_SIZE);
    if (gpu_get(shape->g, GPU_UNIFIED_L1) > 0)
        bytes -= blocks * shape->occupancy.shared_bytes;
    return (uint64_t)fmax(bytes / blocks, L1_LEAST_BYTES);
}

static void set_up(model *m, const model_code *code, const vm_launch *launch) {
    const gpu *g = code->gpu;
    m->launch = launch;
    m->rows = code->rows;
    m->schedule = code->schedule;
    model_shape *s = &m->shape;
    s->g = g;
    s->blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
    uint32_t cap = model_block_cap(launch->entry, vm_module_sm(launch->module), threads);
    s->live_registers = code->least_registers; /* above the cap: spilled */
    s->given_registers = cap;
    uint32_t registers = model_given_registers(code->live_registers, cap);
    s->occupancy = model_occupancy_of(g, launch->entry, registers, launch->grid, launch->block,
                                      launch->dynamic_shared);
    if (s->occupancy.registers < registers)
        s->given_registers =
            s->occupancy.registers; /* the block's size caps them: the rest spills */
    s->buffers = m->buffers.list;
    m->l1_bytes = l1_share(s);
    m->latency[MODEL_L1] = (uint64_t)gpu_get(g, GPU_LAT_L1);
    m->latency[MODEL_L2] = (uint64_t)gpu_get(g, GPU_LAT_L2);
    m->latency[MODEL_DRAM] = (uint64_t)gpu_get(g, GPU_LAT_DRAM);
    for (int lines = 1; lines <= L1_MOST_LINES; lines++)
        m->spread[lines] = (uint64_t)(gpu_get(g, GPU_LAT_SPREAD) * log2(lines));
    m->lat_barrier = (uint64_t)gpu_get(g, GPU_LAT_BARRIER);
    m->lat_peer = (uint64_t)gpu_get(g, GPU_LAT_PEER);
    m->lat_network = (uint64_t)(gpu_get(g, GPU_LAT_NETWORK_US) * gpu_get(g, GPU_BOOST_MHZ));
    m->shared_byte_cycles =
        gpu_get(g, GPU_BOOST_MHZ) * gpu_get(g, GPU_SM_COUNT) / (gpu_get(g, GPU_SHARED_GBS) * 1e3);
    m->l1_byte_cycles = 1 / gpu_get(g, GPU_L1_BYTES_CLK);
    m->lsu_cycles = gpu_get(g, GPU_WARP_SIZE) / gpu_get(g, GPU_LSU);
    for (int lines = 0; lines <= L1_MOST_LINES; lines++)
        m->l1_tag_cycles[lines] = fmax(m->lsu_cycles, lines / gpu_get(g, GPU_L1_TAGS_CLK) +
                                                          gpu_get(g, GPU_L1_TAGS_START));
    m->observer = (vm_observer){m, on_block_begin, on_batch, on_block_end};
    set_weights(m);
}

static uint32_t longest_block(const model *m) {
    uint32_t longest = 1;
    for (uint32_t pc = 0; pc < m->rows.count; pc++) {
        uint32_t end = m->schedule.block_end[pc];
        longest = end > pc && end - pc > longest ? end - pc : longest;
    }
    return longest;
}

static bool has_atomics(const model *m) {
    bool some = false;
    for (uint32_t pc = 0; pc < m->rows.count; pc++)
        some |= m->rows.rows[pc].kind == ROW_ATOMIC;
    return some;
}

static ev_status make_parts(model *m, ev_error *err) {
    m->longest_block = longest_block(m);
    m->stalls = calloc((size_t)m->rows.count + 1, sizeof *m->stalls);
    m->costs = calloc((size_t)m->rows.count + 1, sizeof *m->costs);
    m->runs_before = calloc((size_t)m->rows.count + 1, sizeof *m->runs_before);
    m->waits = calloc((size_t)m->rows.count + 1, sizeof *m->waits);
    m->plans = model_plans_new();
    if (m->stalls == NULL || m->costs == NULL || m->waits == NULL || m->plans == NULL ||
        m->runs_before == NULL || !model_interleave_begin(m))
        return ev_fail_memory(err, m->rows.count * sizeof *m->stalls);
    if (has_atomics(m))
        EV_TRY(model_hot_make(&m->hot, err));
    return model_board_make(&m->rows, &m->schedule, m->latency[MODEL_DRAM] - m->latency[MODEL_L2],
                            m->scratch->tables, &m->board, err);
}

ev_status model_new_of(const model_code *code, const vm_launch *launch, model_scratch *scratch,
                       model **out, ev_error *err) {
    assert(code->module == launch->module && code->entry == launch->entry);
    model *m = calloc(1, sizeof *m);
    if (m == NULL)
        return ev_fail_memory(err, sizeof *m);
    set_up(m, code, launch);
    m->scratch = scratch;
    ev_status status = make_parts(m, err);
    if (status != EV_OK) {
        model_free(m);
        return status;
    }
    *out = m;
    return EV_OK;
}

ev_status model_new(const gpu *g, const vm_launch *launch, model **out, ev_error *err) {
    model_code *code = NULL;
    model_scratch *scratch = NULL;
    model *made = NULL;
    EV_TRY(model_code_new(g, launch->module, launch->entry, &code, err));
    ev_status status = model_scratch_new(&scratch, err);
    if (status == EV_OK)
        status = model_new_of(code, launch, scratch, &made, err);
    if (status == EV_OK) {
        made->own_code = code;
        made->own_scratch = scratch;
        status = model_watch_stalls(made, err);
        if (status == EV_OK)
            *out = made;
        else
            model_free(made);
        return status;
    }
    model_scratch_free(scratch);
    model_code_free(code);
    return status;
}

void model_free(model *m) {
    if (m == NULL)
        return;
    for (size_t i = 0; i < m->block_count; i++)
        block_free(m->blocks[i]);
    free(m->blocks);
    free(m->copy.sectors);
    model_links_free(m->links);
    model_hot_free(&m->hot);
    model_board_free(m->board);
    model_code_free(m->own_code);
    model_scratch_free(m->own_scratch);
    free(m->stored);
    free(m->stalls);
    free(m->costs);
    free(m->runs_before);
    free(m->polls);
    free(m->waits);
    free(m->marks);
    model_plans_free(m->plans);
    free(m);
}

const vm_observer *model_observer(model *m) {
    return &m->observer;
}

/* Whether [first, end) is a loop that only reads, past the L1, until what it reads lets it go. */
static bool is_poll(const model *m, uint32_t first, uint32_t end) {
    bool reads = false;
    vm_insn_info info;
    for (uint32_t pc = first; pc < end; pc++) {
        const model_row *row = &m->rows.rows[pc];
        vm_module_info(m->launch->module, pc, &info);
        if (info.is_store || info.is_atomic || info.is_barrier)
            return false;
        reads |= row->kind == ROW_LOAD && row->bypasses_l1;
    }
    return reads && info.is_branch && info.conditional && info.target == first;
}

/* *some: there is such a loop. */
static ev_status find_polls(model *m, bool *some, ev_error *err) {
    m->polls = calloc((size_t)m->rows.count + 1, 1);
    if (m->polls == NULL)
        return ev_fail_memory(err, m->rows.count);
    *some = false;
    for (uint32_t pc = 0; pc < m->rows.count; pc++) {
        uint32_t end = m->schedule.block_end[pc];
        if (end <= pc || !is_poll(m, pc, end))
            continue;
        memset(m->polls + pc, 1, end - pc);
        *some = true;
    }
    return EV_OK;
}

ev_status model_skip_polls(model *m, ev_error *err) {
    bool some = false;
    EV_TRY(find_polls(m, &some, err));
    if (!some) {
        free(m->polls);
        m->polls = NULL;
    }
    return EV_OK;
}

/* Blocks that repeat another at moved addresses may move them to another peer. */
ev_status model_set_ranks(model *m, const model_ranks *ranks, ev_error *err) {
    bool some = false;
    m->follows_all = true;
    EV_TRY(find_polls(m, &some, err));
    return model_links_make(ranks, &m->links, err);
}

void model_join_ranks(model *const *models, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < count; k++)
            model_links_join(models[i]->links, i, models[k]->links, k);
}

ev_status model_watch_stalls(model *m, ev_error *err) {
    return model_board_watch(m->board, err);
}

void model_watch_sites(model *m, model_site *sites) {
    m->sites = sites;
}

void model_follow_all(model *m) {
    m->follows_all = true;
}

void model_set_buffers(model *m, const model_buffer *buffers, size_t count) {
    size_t kept = count < MODEL_MAX_BUFFERS ? count : MODEL_MAX_BUFFERS;
    memcpy(m->buffers.list, buffers, kept * sizeof *buffers);
    m->buffers.count = m->shape.buffer_count = kept;
    m->buffers.last = 0;
    model_buffers_number(&m->buffers);
}

static void share_waits(model *m, uint32_t pc, double all) {
    m->stalls[pc] /= all;
    for (int i = 0; m->sites != NULL && i < MODEL_TERM_COUNT; i++)
        m->sites[pc].stall[i] /= all;
}

ev_status model_finish(model *m, const vm_result *result, model_time *out, ev_error *err) {
    assert(!m->finished && result->ok);
    (void)result;
    if (m->failed)
        return ev_fail_memory(err, m->l1_bytes);
    m->finished = true;
    double weights[MODEL_KINDS] = {m->weights[KIND_EDGE], m->weights[KIND_INNER]};
    for (size_t i = 0; i < m->leader_count; i++)
        weights[KIND_LEADERS + i] = m->leaders[i].weight;
    model_board_stalls(m->board, weights, m->stalls, m->sums.stall, m->sites);
    double in = 0, from = 0;
    m->shape.link_ns = m->links != NULL ? model_links_ns(m->links, m->shape.g, &in, &from) : 0;
    m->shape.hottest = m->hot.most;
    model_account(&m->shape, &m->sums, out);
    out->link_in = in;
    out->link_out = from;
    out->repeated_blocks = m->repeated;
    double all = 0;
    for (uint32_t pc = 0; pc < m->rows.count; pc++)
        all += m->stalls[pc];
    for (uint32_t pc = 0; pc < m->rows.count && all > 0; pc++)
        share_waits(m, pc, all);
    return EV_OK;
}

const double *model_stalls_by_pc(const model *m) {
    return m->finished ? m->stalls : NULL;
}

const uint64_t *model_stored(const model *m, size_t *count) {
    *count = m->stored_count;
    return m->stored;
}

size_t model_sample_blocks(uint64_t blocks, size_t limit, uint32_t *sample) {
    if (blocks <= limit || limit == 0) {
        size_t all = blocks < limit ? (size_t)blocks : limit;
        for (size_t i = 0; i < all; i++)
            sample[i] = (uint32_t)i;
        return all;
    }
    if (limit == 1) {
        sample[0] = (uint32_t)(blocks / 2);
        return 1;
    }
    uint64_t last = limit == 2 ? blocks / 2 : blocks - 1;
    for (size_t i = 0; i < limit; i++)
        sample[i] = (uint32_t)(last * i / (limit - 1));
    return limit;
}
