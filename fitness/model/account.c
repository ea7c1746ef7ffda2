/* Account: from the sums over a grid's blocks to a modelled time and where it went.
 *
 * A grid runs in waves of as many blocks as the SMs hold. A wave takes the smooth maximum (a
 * p-norm) of its throughput terms and of its latency: the terms of one SM count the blocks that
 * share the SM, those of the chip the blocks of the wave. The last wave has the rest. In the
 * latency is what loads wait in the memory's queues: with it, measured bandwidth against occupancy
 * has the sharp knee of a high p; see docs/model.md. */
#include "fitness/model/account.h"

#include <assert.h>
#include <math.h>

/* A spilled register is stored and loaded again about once in so many instructions: counters of an
 * H200 say 2.7 for a product of matrices at 24 registers and 6.4 for an FFT at 32. */
#define SPILL_REUSE 4.0

static const char *const TERM_NAMES[] = {
#define MODEL_TERM(id, name, meaning) name,
#include "fitness/model/terms.def"
#undef MODEL_TERM
};

_Static_assert(sizeof TERM_NAMES / sizeof TERM_NAMES[0] == MODEL_TERM_COUNT, "one row a term");

const char *model_term_name(model_term term) {
    assert((unsigned)term < MODEL_TERM_COUNT);
    return TERM_NAMES[term];
}

typedef struct wave {
    double term[MODEL_TERM_COUNT]; /* ns */
} wave;

typedef struct account {
    const model_shape *shape;
    model_sums sums; /* an average block's */
    double blocks, resident;
    double per_sm;               /* blocks that an SM holds */
    bool is_warm;                /* the same launch was the one before */
    double dram_bytes, l2_bytes; /* of an average block */
    double l2_work;              /* the same for the chip's L2: bytes read in as much time */
    double dram_share;           /* of the first reads: those that go to DRAM */
    double first_share;          /* the same of a wave whose blocks go in step */
    double dram_mix;             /* 0: reads or writes alone, 1: as many of both */
    double spill_stored, spill_l2, spill_dram; /* bytes of an average block's spills that are
                                                  stored, that the L2 gets, and DRAM */
    double ns_per_cycle;
} account;

static double get(const account *a, gpu_key key) {
    return gpu_get(a->shape->g, key);
}

/* ---- bytes ---- */

/* Bytes of one buffer that the L2 is asked for, where each block reads `each` bytes of it for the
 * first time, and what the blocks of a wave share counts once. */
static double wave_reads(const account *a, double each, double whole) {
    double once = fmin(whole, each * a->blocks);
    return fmax(once, fmin(whole, each * a->resident) * (a->blocks / a->resident));
}

/* Those of them that come from DRAM: what an earlier wave read is still in the L2 as far as the L2
 * holds the launch's bytes. `first`: the share of what is read once. */
static double buffer_reads(const account *a, double each, double whole, double kept, double first) {
    double once = fmin(whole, each * a->blocks);
    return once * first + (wave_reads(a, each, whole) - once) * (1 - kept);
}

static double buffer_bytes(const account *a, size_t i) {
    return i < a->shape->buffer_count ? (double)a->shape->buffers[i].bytes : INFINITY;
}

static double footprint(const account *a) {
    double bytes = 0;
    for (size_t i = 0; i <= MODEL_MAX_BUFFERS; i++) {
        double each = fmax(a->sums.read_bytes[i], a->sums.written_bytes[i]);
        bytes += fmin(buffer_bytes(a, i), each * a->blocks);
    }
    return bytes;
}

/* Bytes of written sectors that nobody writes. DRAM takes whole sectors only, so it is read for
 * them. */
static double unwritten_bytes(const account *a) {
    double sectors = 0;
    for (size_t i = 0; i <= MODEL_MAX_BUFFERS; i++)
        sectors += fmin(buffer_bytes(a, i), a->sums.written_bytes[i] * a->blocks);
    return a->sums.store_parts > 0 ? fmax(0, sectors - a->sums.store_bytes * a->blocks) : 0;
}

/* Share of reads that miss an L2, when as many bytes as `bytes` are read over and over. The share m
 * of lines that are replaced at random comes to m = 1 - exp(-m x) for x times the capacity. What
 * SMs of both partitions read stands in both. */
static double missing(const account *a, double bytes) {
    double x = bytes * get(a, GPU_L2_PARTITIONS) / get(a, GPU_L2_SIZE), m = 1;
    if (x <= 1)
        return 0;
    for (int i = 0; i < 64; i++)
        m = 1 - exp(-m * x);
    return m;
}

/* Bytes of a block that come from DRAM though it read them before: the blocks of its wave read too
 * much meanwhile. What they share counts once, and comes once for all of them. */
static double again_bytes(const account *a) {
    double each = 0, wave = 0, bytes = 0, sector = get(a, GPU_L2_SECTOR);
    for (size_t i = 0; i <= MODEL_MAX_BUFFERS; i++) {
        each += a->sums.read_bytes[i];
        wave += fmin(buffer_bytes(a, i), a->sums.read_bytes[i] * a->resident);
    }
    if (missing(a, wave) == 0)
        return 0;
    for (int i = 0; i < MODEL_AGAIN; i++) {
        double since = fmin(1, ldexp(1.5, i) * sector / each);
        bytes += a->sums.again[i] * sector * missing(a, since * wave);
    }
    return bytes * wave / (each * a->resident);
}

static void count_bytes(account *a) {
    double misses = missing(a, footprint(a)), kept = 1 - misses, first = 0, writes = 0;
    double asked = 0;
    double once = a->is_warm ? misses : 1; /* of what the launch needs once */
    double reads = once * unwritten_bytes(a) + again_bytes(a) * a->blocks;
    for (size_t i = 0; i <= MODEL_MAX_BUFFERS; i++) {
        double whole = buffer_bytes(a, i);
        reads += buffer_reads(a, a->sums.read_bytes[i], whole, kept, once);
        writes += once * fmin(whole, a->sums.written_bytes[i] * a->blocks);
        first += a->sums.read_bytes[i] * a->blocks;
        asked += wave_reads(a, a->sums.read_bytes[i], whole);
    }
    a->dram_bytes = (reads + writes) / a->blocks + a->spill_dram;
    a->dram_mix = reads + writes > 0 ? 2 * fmin(reads, writes) / (reads + writes) : 0;
    double sector = get(a, GPU_L2_SECTOR);
    a->l2_bytes = a->sums.l2_sectors * sector + a->spill_l2;
    /* a sector that is written in part is read, too, to be merged with the rest; half of the
     * spills' bytes are written */
    double stored = a->sums.store_sectors * sector + a->spill_stored;
    a->l2_work = a->l2_bytes + stored * (get(a, GPU_L2_WRITE) - 1) + a->sums.store_parts * sector;
    a->dram_share = first > 0 ? fmin(1, reads / first) : 0;
    a->first_share = asked > 0 ? fmin(1, reads / asked) : 0;
}

/* ---- one wave ---- */

static double smooth(double a, double b, double p) {
    double most = fmax(a, b), least = fmin(a, b);
    return most > 0 ? most * pow(1 + pow(least / most, p), 1 / p) : 0;
}

/* Waves that are alike. The blocks of a first wave begin together and go in step: what they share,
 * they ask for together, and all wait for the one answer from DRAM. Later blocks begin when a slot
 * gets free, and find what others have asked for in the L2. */
typedef struct waves {
    double count, blocks, on_sm; /* blocks of each, and at most of one SM */
    double chain, wait; /* cycles of the dependence chain; of these, for DRAM over the L2 */
    double share;       /* of its loads: those that wait for DRAM */
} waves;

/* Cycles of the dependence chain, with loads from the L2 where DRAM was assumed. */
static double chain_cycles(const account *a, const waves *of) {
    double hold = a->sums.store_sectors > 0 ? get(a, GPU_STORE_HOLD) : 0;
    return of->chain - of->wait * (1 - of->share) + get(a, GPU_START_CLK) + hold;
}

/* A DRAM bus that changes between reads and writes idles meanwhile. */
static double dram_ns(const account *a, double blocks) {
    double lost = get(a, GPU_DRAM_TURN) * a->dram_mix;
    return a->dram_bytes * blocks / get(a, GPU_DRAM_GBS) * (1 + lost);
}

/* A block's warps ask for memory together, so loads queue long before the bandwidth is used up: the
 * last one waits until those of its block, one on each SM, are served. `dram`: for `on_sm` blocks
 * an SM. The more of them, the smaller is one burst; the other blocks' loads are in the DRAM term
 * already. What only stores does not wait: the share is of a load's whole wait for DRAM. */
static double queue_ns(const account *a, const waves *of, double dram) {
    double load = get(a, GPU_LAT_DRAM) - get(a, GPU_LAT_L2);
    double share = load > 0 ? fmin(1, a->sums.chain_wait * of->share / load) : 0;
    return get(a, GPU_DRAM_QUEUE) * share * dram / of->on_sm;
}

/* The L2's slices update their sectors side by side, but each its own one after the other. */
static double atomic_cycles(const account *a, double blocks) {
    double all = a->sums.atomic_sectors * blocks / get(a, GPU_ATOMICS_CLK);
    return fmax(all, a->shape->hottest * (blocks / a->blocks) * get(a, GPU_ATOMIC_SAME));
}

/* The terms of one of the waves. */
static wave wave_of(const account *a, const waves *of) {
    wave w = {{0}};
    double blocks = of->blocks, on_sm = of->on_sm;
    for (int i = 0; i < MODEL_TERM_COUNT; i++)
        w.term[i] = a->sums.cycles[i] * on_sm * a->ns_per_cycle;
    w.term[MODEL_ISSUE] /= get(a, GPU_SCHEDULERS) * get(a, GPU_ISSUE);
    double l2_chip = a->l2_work * blocks / get(a, GPU_L2_GBS);
    double l2_sm = a->l2_bytes * on_sm / get(a, GPU_L2_BYTES_CLK) * a->ns_per_cycle;
    w.term[MODEL_L2] = fmax(l2_chip, l2_sm);
    w.term[MODEL_DRAM] = dram_ns(a, blocks);
    w.term[MODEL_LINK] = a->shape->link_ns * blocks / a->blocks;
    w.term[MODEL_ATOMIC] = atomic_cycles(a, blocks) * a->ns_per_cycle;
    w.term[MODEL_DISPATCH] = blocks / get(a, GPU_BLOCKS_CLK) * a->ns_per_cycle;
    w.term[MODEL_LATENCY] =
        chain_cycles(a, of) * a->ns_per_cycle + queue_ns(a, of, w.term[MODEL_DRAM]);
    w.term[MODEL_START] = get(a, GPU_START_CLK) * a->ns_per_cycle;
    return w;
}

/* What an SM does of itself. An instruction takes its slot and its pipe in the same cycle: a pipe
 * as wide as the issue costs nothing beside it, and an access is no arithmetic. Where shared memory
 * and L1 are one array, their requests follow each other through it. Arithmetic, that array and the
 * dependence chains hide each other in part only: the warps of a block load, wait and multiply in
 * step. */
static double local_ns(const account *a, const wave *w) {
    double arithmetic = 0, shared = w->term[MODEL_SHARED], l1 = w->term[MODEL_L1];
    for (int i = MODEL_ISSUE + 1; i <= MODEL_SHUFFLE; i++)
        arithmetic = smooth(arithmetic, w->term[i], get(a, GPU_PIPES_POWER));
    double issue = w->term[MODEL_ISSUE], all = a->sums.cycles[MODEL_ISSUE];
    double others = all > 0 ? issue * (1 - a->sums.access_slots / all) : 0;
    arithmetic = fmax(arithmetic, others);
    bool is_one = get(a, GPU_UNIFIED_L1) > 0;
    double memory = is_one ? shared + l1 : smooth(shared, l1, get(a, GPU_PIPES_POWER));
    return fmax(issue, smooth(arithmetic, memory, get(a, GPU_LOCAL_POWER)));
}

/* Units that work on the requests of all warps or SMs in any order hide the others almost wholly:
 * the slowest decides. */
static double wave_ns(const account *a, const wave *w) {
    double far = 0;
    for (int i = MODEL_L1 + 1; i < MODEL_LATENCY; i++)
        far = smooth(far, w->term[i], get(a, GPU_PIPES_POWER));
    double local = smooth(local_ns(a, w), w->term[MODEL_LATENCY], get(a, GPU_LATENCY_POWER));
    return smooth(local, far, get(a, GPU_JOIN_POWER));
}

static void add_waves(const account *a, const waves *of, model_time *out) {
    wave w = wave_of(a, of);
    out->ns += of->count * wave_ns(a, &w);
    for (int i = 0; i < MODEL_TERM_COUNT; i++)
        out->term_ns[i] += of->count * w.term[i];
}

/* ---- the whole ---- */

/* What the shared memory of the resident blocks leaves of an SM's L1. */
static double l1_left(const account *a) {
    const model_occupancy *o = &a->shape->occupancy;
    double used = get(a, GPU_UNIFIED_L1) > 0 ? (double)o->shared_bytes * o->blocks_per_sm : 0;
    return fmax(0, get(a, GPU_L1_SIZE) - used);
}

/* Local memory is apart for every resident thread: a few registers of each are more than the L1
 * holds, some tens more than the L2, and then each spill goes to DRAM and back. `bytes`: what an
 * average block stores and loads. */
static void spread_spills(account *a, double spilled, double bytes) {
    double of_block = spilled * 4 * a->sums.warps * get(a, GPU_WARP_SIZE);
    double on_sm = of_block * fmax(1, a->shape->occupancy.blocks_per_sm);
    double on_chip = of_block * a->resident;
    double missed = 1 - fmin(1, l1_left(a) / on_sm);
    a->spill_stored = bytes / 2;
    a->spill_l2 = bytes / 2 * (1 + missed);
    a->spill_dram = a->spill_l2 * (1 - fmin(1, get(a, GPU_L2_SIZE) / on_chip));
}

/* Registers that do not fit are kept in local memory: instructions, latency, and the traffic of
 * their caches. */
static void charge_spills(account *a) {
    const model_shape *shape = a->shape;
    if (shape->live_registers <= shape->given_registers)
        return;
    double share = (double)(shape->live_registers - shape->given_registers) / shape->live_registers;
    model_sums *s = &a->sums;
    double more = s->cycles[MODEL_ISSUE] * share * 2 / SPILL_REUSE;
    s->cycles[MODEL_ISSUE] += more;
    s->cycles[MODEL_L1] += more * get(a, GPU_WARP_SIZE) * 4 / get(a, GPU_L1_BYTES_CLK);
    double a_warp = s->warps > 0 ? more / s->warps : 0;
    s->chain += a_warp * get(a, GPU_LAT_L1) / 2;
    s->longest += a_warp * get(a, GPU_LAT_L1) / 2;
    if (more > 0)
        spread_spills(a, shape->live_registers - shape->given_registers,
                      more * get(a, GPU_WARP_SIZE) * 4);
}

/* Each row of the sums as an average over the grid's blocks. */
static void average(model_sums *s, double blocks) {
    double *rows[] = {&s->chain,       &s->chain_wait,  &s->load_sectors,   &s->load_hits,
                      &s->l2_sectors,  &s->warps,       &s->atomic_sectors, &s->store_sectors,
                      &s->store_parts, &s->store_bytes, &s->access_slots};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        *rows[i] /= blocks;
    for (int i = 0; i < MODEL_TERM_COUNT; i++)
        s->cycles[i] /= blocks;
    for (int i = 0; i < MODEL_AGAIN; i++)
        s->again[i] /= blocks;
    for (int i = 0; i <= MODEL_MAX_BUFFERS; i++) {
        s->read_bytes[i] /= blocks;
        s->written_bytes[i] /= blocks;
    }
}

static void share_stalls(const account *a, model_time *out) {
    double all = 0;
    for (int i = 0; i < MODEL_TERM_COUNT; i++)
        all += a->sums.stall[i];
    if (!(all > 0)) {
        out->stall_share[MODEL_START] = 1; /* nothing was executed */
        return;
    }
    for (int i = 0; i < MODEL_TERM_COUNT; i++)
        out->stall_share[i] = a->sums.stall[i] / all;
}

static model_term largest_term(const model_time *t) {
    int most = 0;
    for (int i = 0; i < MODEL_TERM_COUNT; i++) {
        if (i != MODEL_START && t->term_ns[i] > t->term_ns[most])
            most = i;
    }
    return (model_term)most;
}

/* Less than this it cannot take: reads once at DRAM's peak, writes through the L2, and arithmetic
 * with every SM at its peak. */
static double floor_of(const account *a) {
    double reads = 0, writes = 0;
    for (size_t i = 0; i <= MODEL_MAX_BUFFERS; i++) {
        reads += fmin(buffer_bytes(a, i), a->sums.read_bytes[i] * a->blocks);
        writes += fmin(buffer_bytes(a, i), a->sums.written_bytes[i] * a->blocks);
    }
    double ns = fmax(reads / get(a, GPU_DRAM_PEAK), writes / get(a, GPU_L2_GBS));
    const model_term pipes[] = {MODEL_FMA, MODEL_FP64, MODEL_FP16, MODEL_TENSOR};
    for (size_t i = 0; i < sizeof pipes / sizeof pipes[0]; i++)
        ns =
            fmax(ns, a->sums.cycles[pipes[i]] * a->blocks / get(a, GPU_SM_COUNT) * a->ns_per_cycle);
    return ns;
}

/* All waves, and the launch. */
static void add_grid(const account *a, model_time *out) {
    double sms = get(a, GPU_SM_COUNT), per_sm = a->per_sm;
    double full = floor(a->blocks / (sms * per_sm)), rest = a->blocks - full * sms * per_sm;
    waves of = {fmin(full, 1), sms * per_sm,       per_sm,
                a->sums.chain, a->sums.chain_wait, a->first_share};
    add_waves(a, &of, out);
    of.count = full - of.count;
    of.share = a->dram_share;
    add_waves(a, &of, out);
    waves last = {1,
                  rest,
                  ceil(rest / sms),
                  a->sums.longest,
                  a->sums.longest_wait,
                  full > 0 ? a->dram_share : a->first_share};
    if (rest > 0)
        add_waves(a, &last, out);
    out->term_ns[MODEL_LAUNCH] = get(a, GPU_LAUNCH_US) * 1e3;
    out->ns += out->term_ns[MODEL_LAUNCH];
}

void model_account(const model_shape *shape, const model_sums *sums, model_time *out) {
    double sms = gpu_get(shape->g, GPU_SM_COUNT);
    account a = {.shape = shape,
                 .sums = *sums,
                 .blocks = (double)shape->blocks,
                 .ns_per_cycle = 1e3 / gpu_get(shape->g, GPU_BOOST_MHZ)};
    a.per_sm = fmax(1, shape->occupancy.blocks_per_sm);
    a.resident = fmin(a.blocks, sms * a.per_sm);
    average(&a.sums, a.blocks);
    charge_spills(&a);
    count_bytes(&a);

    *out = (model_time){
        .occupancy = shape->occupancy, .blocks = shape->blocks, .sampled_blocks = shape->sampled};
    account warm = a;
    warm.is_warm = true;
    count_bytes(&warm);
    model_time again = {0};
    add_grid(&warm, &again);
    out->warm_ns = again.ns;
    add_grid(&a, out);
    out->waves = a.blocks / (sms * a.per_sm);
    out->bound_by = largest_term(out);
    out->dram_bytes = a.dram_bytes * a.blocks;
    out->l2_bytes = a.l2_bytes * a.blocks;
    out->l1_hit_rate = a.sums.load_sectors > 0 ? a.sums.load_hits / a.sums.load_sectors : 0;
    out->spilled = shape->live_registers > shape->given_registers
                       ? shape->live_registers - shape->given_registers
                       : 0;
    out->floor_ns = floor_of(&a);
    share_stalls(&a, out);
}
