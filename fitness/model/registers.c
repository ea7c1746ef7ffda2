/* Registers: the number that a thread needs, from the liveness of the PTX's virtual registers.
 *
 * alive.c computes what is alive at the ends of each block. `block_peak` then walks each block
 * backward, in the order of the schedule (schedule.c), and takes the largest weight in 32-bit
 * words.
 *
 * That is done for two orders: one that hides latencies, for the registers that the assembler
 * wants, and one that saves registers (pressure.c), for those that it can do with. `settle` chooses
 * between them as the assembler does where it may choose: it saves registers for further warps, not
 * for its own sake. In a budget that the kernel states (.maxnreg, .minnctapersm) it saves none, and
 * moves loads further ahead: `settle_stated`. `fit_block` holds the schedule of the timing to the
 * registers: ptxas 13.0 has two loads of a loop on their way at 32 registers and eight at 48, and
 * on an H200 the first takes twice as long. These rules are read off ptxas 13.0's counts for the
 * candidates of tests/fitness/model/candidates.
 *
 * A value that values.c folds into another one has no weight of its own: its number is replaced by
 * that of its home. The sum adds the registers that the assembler reserves, and a
 * lower bound for functions with calls. */
#include "fitness/model/registers.h"

#include "fitness/model/alive.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define REGISTER_FILE 65536u /* of an SM, on every GPU since sm_50 */
#define WARP_THREADS 32u
#define SCHEDULERS 4u    /* of an SM: each has the registers of its own warps */
#define REGISTER_STEP 8u /* a warp gets registers in units of 256 */
#define REGISTER_MOST 255u
#define REGISTER_LEAST 16u

/* What the assembler adds to the peak: the stack pointer and addresses under way. */
#define REGISTERS_RESERVED 6u
#define REGISTERS_SEQUENCE 8u /* a long division, at most */
#define REGISTERS_LEAST 8u
#define REGISTERS_OF_CALLS 24u   /* the calling convention's own */
#define REGISTERS_REMADE 2u      /* cheap values made again where every warp has a place then */
#define REGISTERS_REMADE_MOST 3u /* the same where an SM holds a quarter more warps then */
/* In blocks of more instructions the assembler looks for no order that saves registers.
 * Convolutions on a P100 and a V100 (silicon/convolution.csv) whose text keeps 370 to 1,600 values
 * alive take the time of spills from 5,100 PTX instructions on and not up to 4,800, and those with
 * 340 never do. */
#define REGISTERS_ORDERED 5000u
#define REGISTERS_WINDOW 12u /* instructions that a load moves ahead at most */
/* In a stated budget loads move further ahead up to so many, at which a scheduler holds four warps.
 * With more (FFTs of 120) ptxas keeps to the short window. */
#define REGISTERS_FAR 128u
/* An eighth: the mean error of the estimate against ptxas (docs/model.md). */
#define REGISTERS_FOUND 8u
#define REGISTERS_LOAD 200u /* cycles, in round figures: which GPU is not known here */

typedef struct flow {
    const vm_module *module;
    const model_insns *read;
    uint32_t first_pc, count;
    uint8_t *own; /* by instruction: registers that its sequence of machine instructions needs
                     while it runs */
    model_alive alive;
    model_values values;
    uint32_t register_count;
    model_schedule schedule;
} flow;

static void flow_free(flow *f) {
    free(f->own);
    model_alive_free(&f->alive);
    model_values_free(&f->values);
    model_schedule_free(&f->schedule);
}

static uint32_t set_weight(const flow *f, const uint64_t *set) {
    uint32_t weight = 0;
    for (uint32_t i = 0; i < f->alive.set_words; i++) {
        for (uint64_t rest = set[i]; rest != 0; rest &= rest - 1)
            weight += f->values.words[i * 64 + (uint32_t)__builtin_ctzll(rest)];
    }
    return weight;
}

/* The heaviest point of a block: after an instruction with its unused results, or before it. */
static uint32_t block_peak(const flow *f, uint32_t b, const uint32_t *order, uint32_t base,
                           uint64_t *live) {
    model_alive_out(&f->alive, b, live);
    uint32_t now = set_weight(f, live), peak = now;
    for (uint32_t at = f->alive.blocks[b].end; at-- > f->alive.blocks[b].first;) {
        uint32_t i = order[at] - base;
        const alive_insn *insn = &f->alive.insns[i];
        const uint16_t *uses = f->alive.operands + insn->operands, *defs = uses + insn->use_count;
        uint32_t unused = 0;
        for (unsigned d = 0; d < insn->def_count && !insn->keeps; d++) {
            if (set_has(live, defs[d]))
                now -= f->values.words[defs[d]];
            else
                unused += f->values.words[defs[d]];
            set_remove(live, defs[d]);
        }
        for (unsigned u = 0; u < insn->use_count; u++) {
            if (!set_has(live, uses[u]))
                now += f->values.words[uses[u]];
            set_add(live, uses[u]);
        }
        peak = now + f->own[i] > peak ? now + f->own[i] : peak;
        peak = unused > peak ? unused : peak;
    }
    return peak;
}

/* The assembler moves loads ahead of their uses, a little way: further, and registers run out. */
static ev_status flow_schedule(flow *f, uint32_t window) {
    const model_schedule_options options = {.window = window, .load_latency = REGISTERS_LOAD};
    model_rows rows;
    model_schedule_free(&f->schedule);
    EV_TRY(model_rows_make(NULL, f->read, &rows, NULL));
    ev_status status = model_schedule_make(&options, f->read, &rows, &f->schedule, NULL);
    for (uint32_t i = 0; i < f->count; i++) {
        unsigned own = rows.rows[f->first_pc + i].slots / 2u;
        f->own[i] = (uint8_t)(own < REGISTERS_SEQUENCE ? own : REGISTERS_SEQUENCE);
    }
    model_rows_free(&rows);
    return status;
}

/* ---- the least ---- */

typedef struct saver {
    model_pressure *pressure;
    pressure_step *steps;
    uint32_t *order;
    uint64_t *live;
} saver;

/* The assembler saves no registers by waiting for one load from global memory after the other. */
static void fill_steps(const flow *f, pressure_step *steps) {
    for (uint32_t i = 0; i < f->count; i++) {
        const model_insn *from = &f->read->insns[f->first_pc + i];
        const alive_insn *insn = &f->alive.insns[i];
        steps[i] = (pressure_step){
            .operands = f->alive.operands + insn->operands,
            .use_count = insn->use_count,
            .def_count = insn->def_count,
            .reads = from->reads,
            .writes = from->writes,
            .cuts = insn->ends || (insn->keeps && insn->def_count > 0) ||
                    (from->traits & (MODEL_CALLS | MODEL_IS_ORDERED)) != 0 ||
                    (!from->is_access && (from->reads | from->writes) != 0),
            .hurries = from->is_access && from->space == VM_SPACE_GLOBAL && from->def_count > 0,
        };
    }
}

/* The block's peak, of the orders that are known here the best one. */
static uint32_t block_least(const flow *f, uint32_t b, const saver *s, uint32_t wanted) {
    uint32_t first = f->alive.blocks[b].first, end = f->alive.blocks[b].end;
    for (uint32_t i = first; i < end; i++)
        s->order[i] = i;
    uint32_t text = block_peak(f, b, s->order, 0, s->live);
    if (end - first > REGISTERS_ORDERED)
        return text < wanted ? text : wanted;
    model_alive_out(&f->alive, b, s->live);
    model_pressure_order(s->pressure, s->steps, first, end, s->live, s->order);
    uint32_t least = block_peak(f, b, s->order, 0, s->live);
    least = text < least ? text : least;
    return wanted < least ? wanted : least;
}

/* Of all blocks, the heaviest first: a block that wants no more than is needed anyway is left out.
 */
static uint32_t least_of(const flow *f, const uint32_t *wanted, const saver *s) {
    uint32_t heaviest = 0;
    for (uint32_t b = 1; b < f->alive.block_count; b++)
        heaviest = wanted[b] > wanted[heaviest] ? b : heaviest;
    uint32_t least = block_least(f, heaviest, s, wanted[heaviest]);
    for (uint32_t b = 0; b < f->alive.block_count; b++) {
        uint32_t here = wanted[b] > least && b != heaviest ? block_least(f, b, s, wanted[b]) : 0;
        least = here > least ? here : least;
    }
    return least;
}

/* 0: out of memory. */
static uint32_t flow_least(const flow *f, const uint32_t *wanted, uint64_t *live) {
    saver s = {
        .pressure = model_pressure_new(f->count, f->read->operand_count, f->register_count,
                                       f->values.words),
        .steps = calloc((size_t)f->count + 1, sizeof *s.steps),
        .order = calloc((size_t)f->count + 1, sizeof *s.order),
        .live = live,
    };
    uint32_t least = 0;
    if (s.pressure != NULL && s.steps != NULL && s.order != NULL) {
        fill_steps(f, s.steps);
        least = least_of(f, wanted, &s);
    }
    model_pressure_free(s.pressure);
    free(s.steps);
    free(s.order);
    return least;
}

/* ---- the whole ---- */

static void flow_peaks(const flow *f, uint32_t *wanted, uint64_t *live) {
    for (uint32_t b = 0; b < f->alive.block_count; b++)
        wanted[b] = block_peak(f, b, f->schedule.order + f->first_pc, f->first_pc, live);
}

static bool has_calls(const flow *f) {
    for (uint32_t i = 0; i < f->count; i++) {
        if ((f->read->insns[f->first_pc + i].traits & MODEL_CALLS) != 0)
            return true;
    }
    return false;
}

/* Most warps and blocks of an SM (CUDA C++ Programming Guide, "Technical Specifications per Compute
 * Capability"; ptxas 13.0 ignores launch bounds past just these). */
typedef struct sm_limits {
    uint32_t warps, blocks;
} sm_limits;

static sm_limits limits_of(int sm) {
    switch (sm) {
    case 75:
        return (sm_limits){32, 16};
    case 86:
    case 87:
        return (sm_limits){48, 16};
    case 89:
        return (sm_limits){48, 24};
    default:
        return sm >= 120 ? (sm_limits){48, 24} : (sm_limits){64, 32};
    }
}

static uint32_t warps_of(uint32_t threads) {
    return (threads + WARP_THREADS - 1) / WARP_THREADS;
}

/* The blocks of an SM that the kernel's launch bounds ask for; 0: none, or more than an SM holds,
 * which the assembler ignores. */
static uint32_t blocks_asked(const vm_entry *entry, int sm) {
    sm_limits most = limits_of(sm);
    uint64_t warps = (uint64_t)entry->min_blocks * warps_of(entry->max_threads);
    return entry->min_blocks <= most.blocks && warps <= most.warps ? entry->min_blocks : 0;
}

/* The registers at which an SM holds all of its warps: 32, 40 or 64 of them. */
static uint32_t at_full_occupancy(int sm) {
    return REGISTER_FILE / (limits_of(sm).warps * WARP_THREADS) / REGISTER_STEP * REGISTER_STEP;
}

static uint32_t round_to_step(uint32_t registers) {
    return (registers + REGISTER_STEP - 1) / REGISTER_STEP * REGISTER_STEP;
}

/* The warps of an SM at so many registers, in blocks of the stated size if there is one. */
static uint32_t warps_at(const vm_entry *entry, int sm, uint32_t registers) {
    sm_limits most = limits_of(sm);
    uint32_t given = round_to_step(registers < REGISTER_MOST ? registers : REGISTER_MOST);
    uint32_t warps = REGISTER_FILE / SCHEDULERS / (given * WARP_THREADS) * SCHEDULERS;
    warps = warps < most.warps ? warps : most.warps;
    if (entry->max_threads == 0)
        return warps;
    uint32_t block = warps_of(entry->max_threads), blocks = warps / block;
    return (blocks < most.blocks ? blocks : most.blocks) * block;
}

/* What the assembler takes where it may choose: all that it wants, where every warp has a place
 * then; as many as leave every warp a place, where it can do with these; or else the step that it
 * can do with, or the step before, where that gives a quarter more warps. */
static uint32_t settle(const vm_entry *entry, int sm, uint32_t wanted, uint32_t least) {
    uint32_t full = at_full_occupancy(sm);
    if (wanted <= full)
        return wanted;
    if (least <= full + REGISTERS_REMADE)
        return full;
    uint32_t step = round_to_step(least), before = round_to_step(least - REGISTERS_REMADE_MOST);
    step = step < wanted ? step : wanted;
    bool pays = before < step && 4 * warps_at(entry, sm, before) >= 5 * warps_at(entry, sm, step);
    return pays ? before : step;
}

/* What it takes in a budget that the kernel states: it knows how many warps there will be, and so
 * saves none for a further one. `far`: what it wants where loads move far ahead. */
static uint32_t settle_stated(uint32_t wanted, uint32_t far) {
    uint32_t most = wanted > REGISTERS_FAR ? wanted : REGISTERS_FAR;
    far = far < most ? far : most;
    return far > wanted ? far : wanted;
}

static uint32_t at_least(uint32_t registers, uint32_t least) {
    return registers < least ? least : registers;
}

static uint32_t most_of(const uint32_t *list, uint32_t count) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < count; i++)
        most = list[i] > most ? list[i] : most;
    return most;
}

/* What the blocks want where loads move as far ahead as the machine lets them; 0: out of memory. */
static uint32_t flow_far(flow *f, uint32_t *wanted, uint64_t *live) {
    if (flow_schedule(f, MODEL_WINDOW_MOST) != EV_OK)
        return 0;
    flow_peaks(f, wanted, live);
    return most_of(wanted, f->alive.block_count) + REGISTERS_RESERVED;
}

/* The order that saves registers is looked for only where it can matter. */
static model_need flow_need(flow *f, const vm_entry *entry, uint32_t *wanted, uint64_t *live) {
    uint32_t bound = has_calls(f) ? REGISTERS_OF_CALLS : REGISTERS_LEAST;
    int sm = vm_module_sm(f->module);
    uint32_t full = at_full_occupancy(sm), cap = model_register_cap(entry, sm);
    flow_peaks(f, wanted, live);
    uint32_t all = at_least(most_of(wanted, f->alive.block_count) + REGISTERS_RESERVED, bound);
    bool is_stated = entry->max_registers > 0 || blocks_asked(entry, sm) > 0;
    bool is_free = is_stated && cap > full && all > bound; /* to take more than it wants */
    if (all <= full && all <= cap && !is_free)
        return (model_need){all, all};
    uint32_t least = flow_least(f, wanted, live);
    if (least == 0)
        return (model_need){0};
    least = at_least(least + REGISTERS_RESERVED, bound);
    if (is_stated) {
        uint32_t far = flow_far(f, wanted, live);
        if (far == 0)
            return (model_need){0};
        bool is_little = all <= full + REGISTERS_REMADE && far <= full + REGISTERS_REMADE;
        all = is_little ? settle(entry, sm, all, least) : settle_stated(all, far);
    } else {
        all = settle(entry, sm, all, least);
    }
    return (model_need){all, least < all ? least : all};
}

/* What a value is folded into is used in its place, at no cost. */
static bool flow_make(flow *f, uint64_t **live) {
    f->own = calloc(f->count, sizeof *f->own);
    if (f->own == NULL || flow_schedule(f, REGISTERS_WINDOW) != EV_OK ||
        model_values_make(f->module, f->read, f->first_pc, f->count, &f->values, NULL) != EV_OK ||
        !model_alive_make(&f->alive, f->read, f->first_pc, f->count, f->values.home, NULL,
                          f->register_count))
        return false;
    *live = calloc(f->alive.set_words, sizeof **live);
    return *live != NULL;
}

static flow flow_of(const vm_module *module, const model_insns *insns, const vm_entry *entry) {
    return (flow){.module = module,
                  .read = insns,
                  .first_pc = entry->first_pc,
                  .count = entry->end_pc - entry->first_pc,
                  .register_count = insns->register_count};
}

model_need model_registers_needed(const vm_module *module, const model_insns *insns,
                                  const vm_entry *entry) {
    flow f = flow_of(module, insns, entry);
    if (f.count == 0)
        return (model_need){REGISTERS_LEAST, REGISTERS_LEAST};
    model_need need = {0};
    uint64_t *live = NULL;
    uint32_t *peaks = calloc(f.count, sizeof *peaks); /* by block */
    if (peaks != NULL && flow_make(&f, &live))
        need = flow_need(&f, entry, peaks, live);
    free(live);
    free(peaks);
    flow_free(&f);
    return need;
}

/* ---- a schedule that the registers suffice for ---- */

/* The heaviest point of what lies between two pcs, of which `b` is the first block. */
static uint32_t span_peak(const flow *f, uint32_t b, uint32_t end, const uint32_t *order,
                          uint64_t *live) {
    uint32_t peak = 0;
    for (; b < f->alive.block_count && f->alive.blocks[b].first + f->first_pc < end; b++) {
        uint32_t here = block_peak(f, b, order + f->first_pc, f->first_pc, live);
        peak = here > peak ? here : peak;
    }
    return peak + REGISTERS_RESERVED;
}

typedef struct fitter {
    const flow *f;
    const model_rows *rows;
    model_schedule_options options;
    model_schedule *schedule;
    uint32_t given, longest; /* registers; window of the schedule as it came */
    uint32_t block;          /* of the flow: the first one that is not before the pcs */
    uint64_t *live;
    void *room;
} fitter;

/* Puts the block of these pcs in order, with that window; the registers it needs then. */
static uint32_t order_block(fitter *t, uint32_t first, uint32_t end, uint32_t window) {
    t->options.window = window;
    model_schedule_block(&t->options, t->f->read, t->rows, first, t->room, t->schedule);
    return span_peak(t->f, t->block, end, t->schedule->order, t->live);
}

/* Tries ever shorter windows. Where none needs few enough, the one that needs the fewest is taken,
 * and what is above is spilled. */
static void fit_block(fitter *t, uint32_t first, uint32_t end) {
    static const uint8_t windows[] = {48, 32, 24, 16, 12, 8, 6, 4, 2, 1};
    while (t->block < t->f->alive.block_count &&
           t->f->alive.blocks[t->block].first + t->f->first_pc < first)
        t->block++;
    uint32_t needs = span_peak(t->f, t->block, end, t->schedule->order, t->live);
    uint32_t fewest = needs, best = t->longest, last = t->longest;
    for (size_t i = 0; i < sizeof windows && needs > t->given; i++) {
        last = windows[i];
        needs = order_block(t, first, end, last);
        best = needs < fewest ? last : best;
        fewest = needs < fewest ? needs : fewest;
    }
    if (best != last)
        (void)order_block(t, first, end, best);
}

/* The registers of the list schedule that the assembler finds room for. Where the kernel states no
 * budget, it holds no load back for the few by which the schedule's peak is above its own count:
 * ptxas 13.0 keeps eight loads of a loop on their way in 30 registers, where the peak is 36. */
static uint32_t found_room(const vm_entry *entry, int sm, uint32_t given) {
    bool is_stated = entry->max_registers > 0 || blocks_asked(entry, sm) > 0;
    return is_stated ? given : given + given / REGISTERS_FOUND;
}

ev_status model_registers_fit(const vm_module *module, const model_insns *insns,
                              const vm_entry *entry, uint32_t given,
                              const model_schedule_options *options, const model_rows *rows,
                              model_schedule *schedule, ev_error *err) {
    flow f = flow_of(module, insns, entry);
    if (f.count == 0)
        return EV_OK;
    int sm = vm_module_sm(module);
    uint32_t cap = model_register_cap(entry, sm), full = at_full_occupancy(sm);
    full = full < cap ? full : cap; /* as many cost nothing */
    size_t bytes = model_schedule_room(insns);
    fitter t = {.f = &f,
                .rows = rows,
                .options = *options,
                .longest = options->window,
                .schedule = schedule,
                .given = found_room(entry, sm, given > full ? given : full),
                .room = malloc(bytes)};
    bool is_there = t.room != NULL && flow_make(&f, &t.live);
    for (uint32_t pc = entry->first_pc; is_there && pc < entry->end_pc;
         pc = schedule->block_end[pc])
        fit_block(&t, pc, schedule->block_end[pc]);
    free(t.room);
    free(t.live);
    flow_free(&f);
    return is_there ? EV_OK : ev_fail_memory(err, bytes);
}

uint32_t model_live_registers(const vm_module *module, const vm_entry *entry) {
    model_insns insns;
    if (model_insns_make(module, &insns, NULL) != EV_OK)
        return 0;
    uint32_t all = model_registers_needed(module, &insns, entry).wanted;
    model_insns_free(&insns);
    return all;
}

uint32_t model_register_cap(const vm_entry *entry, int sm) {
    uint32_t cap = REGISTER_MOST;
    if (entry->max_threads > 0) {
        uint32_t warps = warps_of(entry->max_threads), asked = blocks_asked(entry, sm);
        uint32_t blocks = asked > 0 ? asked : 1;
        uint64_t each = REGISTER_FILE / ((uint64_t)warps * WARP_THREADS * blocks);
        each = each / REGISTER_STEP * REGISTER_STEP;
        cap = each < cap ? (uint32_t)each : cap;
    }
    if (entry->max_registers > 0 && entry->max_registers < cap)
        cap = entry->max_registers;
    return cap < REGISTER_LEAST ? REGISTER_LEAST : cap;
}

uint32_t model_block_cap(const vm_entry *entry, int sm, uint64_t threads) {
    uint64_t warps = threads > 32 ? (threads + 31) / 32 : 1;
    uint64_t each = REGISTER_FILE / (warps * 32) / REGISTER_STEP * REGISTER_STEP;
    uint32_t cap = model_register_cap(entry, sm);
    each = each < REGISTER_LEAST ? REGISTER_LEAST : each;
    return each < cap ? (uint32_t)each : cap;
}

uint32_t model_given_registers(uint32_t live, uint32_t cap) {
    uint32_t given = live < cap ? live : cap;
    given = (given + REGISTER_STEP - 1) / REGISTER_STEP * REGISTER_STEP;
    return given < REGISTER_MOST ? given : REGISTER_MOST;
}

uint32_t model_registers(const vm_module *module, const vm_entry *entry) {
    return model_given_registers(model_live_registers(module, entry),
                                 model_register_cap(entry, vm_module_sm(module)));
}
