/* Kinds and lengths of a draft's buffers, found by runs on the virtual machine.
 *
 * A run begins with the least that a buffer can be: read only, of one element. Each trap tells what
 * to change. A write to a buffer makes it an output, a read of an output before its write makes it
 * one that is read and written, an access behind its end takes the next longer of the candidates
 * for its length. The candidates are the products of the sizes, of the launch and of the block's
 * macros, in the order of their values at sizes that are distinct primes, so a length that fits is
 * rarely one by chance; runs with other sizes confirm them, the last with large ones.
 *
 * A size whose value the launch says, and which the grid is not made of, has that value in the
 * runs at first: it may be a count of turns, a seed, or a power of two. One that no length turns
 * out to be made of keeps it in all cases; the others are learned anew as any size. */
#include "tuner/init/draft.h"

#include "base/launch_plan.h"
#include "base/pcg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CANDIDATES = 1600,
    RUNS = 600,
    SMALL = 2,
    NAMES = DRAFT_SIZES + DRAFT_MACROS,
    ROUNDS = 3,
    PASSES = 8,
    SAMPLED = 24,
    CONFIRMED = 2 /* rounds that must run; the last may be too expensive */
};

#define PROBE_FUEL UINT64_C(40000000)
#define CHECK_FUEL UINT64_C(12000000)
#define TIMED_FUEL UINT64_C(120000000) /* of SAMPLED blocks */
/* The baseline is its own oracle, so all blocks run once at the large sizes. */
#define WHOLE_FUEL 1e9
#define GAP UINT64_C(65536)
#define MEMORY (UINT64_C(3) << 30)

typedef struct probe {
    draft *d;
    vm_module *module;
    const vm_entry *entry;
    vm_memory *memory;
    const char *candidates[CANDIDATES];
    int64_t values[ROUNDS][CANDIDATES]; /* at the sizes of each round */
    bool of_macros[CANDIDATES];  /* made of macros' values, as an expression of a count has none */
    bool of_numbers[CANDIDATES]; /* with a number above 4, as "256 * n" */
    size_t candidate_count;
    int rounds; /* whose runs end: ROUNDS, or CONFIRMED */
    int64_t sizes[ROUNDS][DRAFT_SIZES];
    int64_t need[ROUNDS][DRAFT_ARGUMENTS]; /* the longest index that a run showed, plus 1 */
    size_t chosen[DRAFT_ARGUMENTS];        /* of each buffer: number of its candidate */
    uint64_t addresses[DRAFT_ARGUMENTS];
    expr_name names[NAMES];
    size_t name_count;
    int round;        /* which sizes are run */
    bool is_varied;   /* pinned sizes are a little larger in each round */
    unsigned steps;   /* how often pinned sizes are made less, because runs were too long */
    bool has_learned; /* a run has taught something in this pass */
    bool is_too_long; /* the last run was out of fuel */
    unsigned char *params;
} probe;

static void set_names(probe *p, const int64_t *sizes) {
    const draft *d = p->d;
    p->name_count = 0;
    for (size_t i = 0; i < d->size_count; i++)
        p->names[p->name_count++] = (expr_name){d->sizes[i].name, expr_of_whole(sizes[i])};
    for (size_t i = 0; i < d->macro_count; i++)
        p->names[p->name_count++] =
            (expr_name){d->macros[i].name, expr_of_whole(d->macros[i].value)};
}

/* -1: no value. */
static int64_t value_of(const probe *p, const char *expression) {
    expr_scope scope = {p->names, p->name_count};
    int64_t value;
    ev_error err;
    bool ok = expr_eval_whole(expression, &scope, 0, INT64_C(1) << 40, &value, &err) == EV_OK;
    return ok ? value : -1;
}

/* ---- candidates for lengths --------------------------------------------------------------------
 */

/* Whether an expression has a number above 4. */
static bool has_number(const char *expression) {
    for (const char *c = expression; *c != '\0';) {
        size_t name = strspn(c, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789.");
        if (*c >= '0' && *c <= '9' && strtol(c, NULL, 10) > 4)
            return true;
        c += name > 0 ? name : 1;
    }
    return false;
}

static void add_candidate(void *context, const char *expression) {
    probe *p = context;
    size_t at = p->candidate_count;
    if (expression == NULL || at == CANDIDATES)
        return;
    const char *plain = draft_without_macros(p->d, expression);
    for (int round = 0; round < ROUNDS; round++) {
        set_names(p, p->sizes[round]);
        p->values[round][at] = value_of(p, plain);
        if (p->values[round][at] < 1)
            return;
    }
    for (size_t i = 0; i < at; i++) {
        int same = 0;
        for (int round = 0; round < ROUNDS; round++)
            same += p->values[round][i] == p->values[round][at];
        if (same == ROUNDS)
            return;
    }
    p->of_macros[at] = strcmp(plain, expression) != 0;
    p->of_numbers[at] = has_number(plain);
    p->candidates[p->candidate_count++] = plain;
}

/* ---- a run -------------------------------------------------------------------------------------
 */

double draft_guess(ev_type type, bool is_bool, ev_pcg *rng) {
    return ev_type_is_float(type) ? ev_pcg_unit(rng) * 2 - 1
                                  : (double)(ev_pcg_next(rng) % (is_bool ? 2 : 16));
}

static void fill(const draft_argument *a, void *data, uint64_t elements) {
    ev_pcg rng = ev_pcg_seed(1, 1);
    if (a->mixed != NULL) {
        draft_fill_structs(a->mixed, data, elements / a->lanes);
        return;
    }
    for (uint64_t i = 0; i < elements; i++)
        ev_type_set(a->type, data, i, draft_guess(a->type, a->is_bool, &rng));
}

static const vm_buffer_kind KINDS[] = {VM_BUFFER_IN, VM_BUFFER_OUT, VM_BUFFER_INOUT};

/* A buffer between two hidden ones, so that an access beside it hits no other. */
static ev_status place_buffer(probe *p, size_t index, bool is_filled, ev_error *err) {
    draft_argument *a = &p->d->arguments[index];
    int64_t count = value_of(p, p->candidates[p->chosen[index]]);
    uint64_t elements = (uint64_t)count * a->lanes, gap = 0;
    EV_TRY(vm_memory_alloc(p->memory, GAP, VM_BUFFER_SCRATCH, "gap", &gap, err));
    vm_memory_hide(p->memory, gap, true);
    EV_TRY(vm_memory_alloc(p->memory, elements * ev_type_bytes(a->type), KINDS[a->kind], a->name,
                           &p->addresses[index], err));
    if (a->kind != DRAFT_OUT && is_filled)
        fill(a, vm_memory_host(p->memory, p->addresses[index]), elements);
    return EV_OK;
}

static ev_status place_all(probe *p, bool is_filled, ev_error *err) {
    const draft *d = p->d;
    vm_memory_clear(p->memory);
    for (size_t i = 0; i < d->argument_count; i++) {
        const draft_argument *a = &d->arguments[i];
        const vm_param *param = &p->entry->params[a->parameter];
        size_t bytes = a->kind == DRAFT_SCALAR ? ev_type_bytes(a->type) : 8;
        uint64_t bits = 0;
        if (a->kind != DRAFT_SCALAR) {
            EV_TRY(place_buffer(p, i, is_filled, err));
            bits = p->addresses[i];
        } else if (a->value != NULL) {
            ev_type_set(a->type, &bits, 0, strtod(a->value, NULL));
        } else {
            ev_type_set(a->type, &bits, 0, (double)value_of(p, a->name));
        }
        memcpy(p->params + param->offset + a->offset, &bits, bytes);
    }
    return EV_OK;
}

static bool set_dimensions(const probe *p, const char *const texts[3], uint32_t out[3]) {
    for (int i = 0; i < 3; i++) {
        int64_t value = texts[i] != NULL ? value_of(p, texts[i]) : 1;
        if (value < 1 || value > INT32_MAX)
            return false;
        out[i] = (uint32_t)value;
    }
    return true;
}

/* Runs the kernel at the sizes that the names have. *ran false: the launch does not fit. */
static ev_status run_once(probe *p, uint64_t fuel, bool is_sampled, vm_result *result, bool *ran,
                          ev_error *err) {
    const draft *d = p->d;
    vm_launch launch = {.module = p->module,
                        .entry = p->entry,
                        .params = p->params,
                        .fuel = fuel,
                        .checks = VM_CHECK_ALL & ~VM_CHECK_WAIVABLE};
    int64_t shared = d->shared != NULL ? value_of(p, d->shared) : 0;
    *ran = set_dimensions(p, d->grid, launch.grid) && set_dimensions(p, d->block, launch.block) &&
           shared >= 0 && shared <= 227 * 1024;
    if (!*ran) {
        snprintf(p->d->trap, sizeof p->d->trap, "its launch does not fit a GPU");
        return EV_OK;
    }
    launch.dynamic_shared = (uint32_t)shared;
    uint64_t blocks = (uint64_t)launch.grid[0] * launch.grid[1] * launch.grid[2];
    uint32_t sample[SAMPLED];
    if (is_sampled && blocks > SAMPLED && blocks <= UINT32_MAX) {
        /* Another column of the grid in each row. */
        for (uint64_t i = 0; i < SAMPLED; i++)
            sample[i] = (uint32_t)(blocks * (13 * i + 5 * i % 13) / (13 * SAMPLED));
        launch.sample = sample;
        launch.sample_count = SAMPLED;
    }
    EV_TRY(place_all(p, !is_sampled, err));
    ev_status status = vm_run(p->memory, &launch, result, err);
    if (status == EV_BAD) {
        snprintf(p->d->trap, sizeof p->d->trap, "%s", err->text);
        *ran = false;
        return EV_OK;
    }
    return status;
}

/* ---- what a trap teaches -----------------------------------------------------------------------
 */

/* The buffer at whose begin or behind whose begin an address lies nearest; SIZE_MAX: none. */
static size_t buffer_at(const probe *p, uint64_t address) {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < p->d->argument_count; i++) {
        bool is_buffer = p->d->arguments[i].kind != DRAFT_SCALAR;
        if (is_buffer && p->addresses[i] <= address &&
            (best == SIZE_MAX || p->addresses[i] > p->addresses[best]))
            best = i;
    }
    return best;
}

/* Chooses the shortest candidate that is long enough at all sizes; false: there is none. Sizes
 * whose run does not end show no need. A number, such as 256 threads, is less likely than a size of
 * nearly that value. */
static bool choose(probe *p, size_t index) {
    const double number = 1.05;
    double best = 0;
    for (size_t i = 0; i < p->candidate_count; i++) {
        double value = p->of_numbers[i] ? number : 1;
        bool fits = true;
        for (int round = 0; round < p->rounds; round++) {
            value *= (double)p->values[round][i];
            fits &= p->values[round][i] >= p->need[round][index];
        }
        if (fits && (best <= 0 || value < best)) {
            best = value;
            p->chosen[index] = i;
        }
    }
    return best > 0;
}

static bool lengthen(probe *p, size_t index, uint64_t address) {
    const draft_argument *a = &p->d->arguments[index];
    uint64_t element = ev_type_bytes(a->type) * a->lanes;
    int64_t need = (int64_t)((address - p->addresses[index]) / element) + 1;
    int64_t count = value_of(p, p->candidates[p->chosen[index]]);
    if (need <= count) /* an access of several elements that begins inside, as of a half2 */
        need = count + 1;
    if (need <= p->need[p->round][index])
        return false;
    p->need[p->round][index] = need;
    return choose(p, index);
}

/* Changes the draft by what a trap says. false: the trap is the kernel's own. */
static bool learn(probe *p, const vm_trap *trap) {
    size_t index = trap->has_address ? buffer_at(p, trap->address) : SIZE_MAX;
    if (index == SIZE_MAX)
        return false;
    draft_argument *a = &p->d->arguments[index];
    switch (trap->kind) {
    case VM_TRAP_OUT_OF_BOUNDS:
        return lengthen(p, index, trap->address);
    case VM_TRAP_READ_ONLY_WRITE:
        a->kind = a->kind == DRAFT_IN ? DRAFT_OUT : a->kind;
        return a->kind == DRAFT_OUT && !a->is_const;
    case VM_TRAP_UNINITIALISED:
        a->kind = a->kind == DRAFT_OUT ? DRAFT_INOUT : a->kind;
        return a->kind == DRAFT_INOUT;
    default:
        return false;
    }
}

/* Runs until no trap teaches more. d->trap: why the kernel does not run, or "". */
static ev_status learn_at(probe *p, int round, ev_error *err) {
    draft *d = p->d;
    p->round = round;
    set_names(p, p->sizes[round]);
    for (int i = 0; i < RUNS; i++) {
        vm_result result = {0};
        bool ran = false;
        d->trap[0] = '\0';
        p->is_too_long = false;
        EV_TRY(run_once(p, PROBE_FUEL, false, &result, &ran, err));
        if (!ran || result.ok)
            return EV_OK;
        p->is_too_long = result.trap.kind == VM_TRAP_FUEL || result.trap.kind == VM_TRAP_LIVELOCK;
        snprintf(d->trap, sizeof d->trap, "%s", result.trap.message);
        if (!learn(p, &result.trap))
            return EV_OK;
        p->has_learned = true;
    }
    return EV_OK;
}

/* ---- sizes -------------------------------------------------------------------------------------
 */

/* Whether a size has no value of its own choice in the runs. */
static bool is_bound(const draft_size *s) {
    return s->is_small || s->is_fixed || s->pinned != DRAFT_UNKNOWN;
}

static size_t big_sizes(const draft *d) {
    size_t count = 0;
    for (size_t i = 0; i < d->size_count; i++)
        count += !is_bound(&d->sizes[i]);
    return count;
}

/* Whether another size has the value of this one: a length of either would be one of the other. */
static bool has_twin(const draft *d, const int64_t *sizes, size_t index) {
    bool has = false;
    for (size_t i = 0; i < d->size_count; i++)
        has |= i != index && sizes[i] == sizes[index];
    return has;
}

/* Makes the largest bound size less, `steps` times: a count of turns, most likely. */
static void lessen(const draft *d, int64_t *sizes, unsigned steps) {
    enum { FACTOR = 4 };
    for (; steps > 0; steps--) {
        size_t most = d->size_count;
        for (size_t i = 0; i < d->size_count; i++) {
            bool fits = is_bound(&d->sizes[i]) && strstr(d->sizes[i].name, "seed") == NULL;
            if (fits && sizes[i] > 1 && (most == d->size_count || sizes[i] > sizes[most]))
                most = i;
        }
        if (most == d->size_count)
            return;
        sizes[most] = sizes[most] < FACTOR ? 1 : sizes[most] / FACTOR;
        while (sizes[most] > 1 && has_twin(d, sizes, most))
            sizes[most] /= 2;
    }
}

/* Adds a number of its own to each pinned size, so that two of one value are told apart. */
static void vary(const draft *d, int64_t *sizes, int round) {
    for (size_t i = 0; i < d->size_count; i++)
        sizes[i] += d->sizes[i].pinned != DRAFT_UNKNOWN ? round * (int64_t)(i + 1) : 0;
}

/* The place of a size among those that are not bound, in the order of the launch's values where it
 * says them all: a pitch stays above its width. */
static size_t rank_of(const draft *d, size_t index) {
    size_t rank = 0, before = 0;
    bool all = true;
    for (size_t i = 0; i < d->size_count; i++) {
        const draft_size *s = &d->sizes[i], *own = &d->sizes[index];
        if (is_bound(s))
            continue;
        all &= s->value != DRAFT_UNKNOWN;
        before += i < index;
        rank += s->value < own->value || (s->value == own->value && i < index);
    }
    return all ? rank : before;
}

/* Distinct values: primes, or different multiples of `multiple`. */
static void set_sizes(const probe *p, int round, int64_t multiple, int64_t *out) {
    static const int64_t primes[ROUNDS][3][DRAFT_SIZES] = {
        {{1031}, {37, 43}, {11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53}},
        {{3001}, {29, 53}, {7, 17, 19, 29, 31, 37, 41, 43, 47, 53, 59, 61}},
        {{20011}, {211, 307}, {19, 23, 29, 37, 43, 47, 53, 59, 61, 67, 71, 73}}};
    const draft *d = p->d;
    size_t big = big_sizes(d), row = big <= 2 && p->steps == 0 ? (big == 2) : 2;
    for (size_t i = 0; i < d->size_count; i++) {
        int64_t rank = (int64_t)rank_of(d, i);
        if (is_bound(&d->sizes[i]))
            out[i] = d->sizes[i].pinned != DRAFT_UNKNOWN ? d->sizes[i].pinned : SMALL + round;
        else if (multiple == 1)
            out[i] = primes[round][row][rank];
        else
            out[i] = multiple * (rank * (round + 1) + 1 + round);
    }
    lessen(d, out, p->steps);
    if (p->is_varied)
        vary(d, out, round);
}

static void begin(probe *p) {
    for (size_t i = 0; i < p->d->argument_count; i++) {
        for (int round = 0; round < ROUNDS; round++)
            p->need[round][i] = 1;
        (void)choose(p, i);
        p->d->arguments[i].is_partial = false;
        if (p->d->arguments[i].kind != DRAFT_SCALAR)
            p->d->arguments[i].kind = DRAFT_IN;
    }
}

/* An output of which a run leaves elements as they are, as a stencil does at the borders, begins
 * with contents that the caller makes. */
static ev_status find_partial(probe *p, ev_error *err) {
    for (size_t i = 0; i < p->d->argument_count; i++) {
        draft_argument *a = &p->d->arguments[i];
        if (a->kind != DRAFT_OUT)
            continue;
        uint64_t count = (uint64_t)value_of(p, p->candidates[p->chosen[i]]) * a->lanes;
        uint8_t *written = malloc(count + 1);
        if (written == NULL)
            return ev_fail_memory(err, count);
        (void)vm_memory_written(p->memory, p->addresses[i], ev_type_bytes(a->type), 0, count,
                                written);
        if (!draft_is_all_written(a, written, count)) {
            a->kind = DRAFT_INOUT;
            a->is_partial = true;
        }
        free(written);
    }
    return EV_OK;
}

/* Chooses anew without the last sizes, at which a run takes too long. */
static void leave_out_last(probe *p) {
    p->d->trap[0] = '\0';
    p->rounds = CONFIRMED;
    for (size_t i = 0; i < p->d->argument_count; i++) {
        size_t before = p->chosen[i];
        p->has_learned |= choose(p, i) && p->chosen[i] != before;
    }
}

/* Learns at three sets of sizes until no run teaches more. Sizes that make the runs of the third
 * too long are left out. The last run is one at the first sizes. */
static ev_status learn_rounds(probe *p, int64_t multiple, ev_error *err) {
    draft *d = p->d;
    d->multiple = multiple;
    for (int round = 0; round < ROUNDS; round++)
        set_sizes(p, round, multiple, p->sizes[round]);
    memcpy(d->small, p->sizes[0], sizeof d->small);
    p->candidate_count = 0;
    p->rounds = ROUNDS;
    draft_lengths(d, add_candidate, p);
    begin(p);
    d->trap[0] = '\0';
    p->has_learned = true;
    for (int pass = 0; pass < PASSES && p->has_learned && d->trap[0] == '\0'; pass++) {
        p->has_learned = false;
        for (int round = 0; round < p->rounds && d->trap[0] == '\0'; round++) {
            EV_TRY(learn_at(p, round, err));
            if (round >= CONFIRMED && p->is_too_long)
                leave_out_last(p);
        }
    }
    if (d->trap[0] == '\0')
        EV_TRY(learn_at(p, 0, err));
    return d->trap[0] == '\0' ? find_partial(p, err) : EV_OK;
}

/* Learns with fewer turns of loops until the runs end. */
static ev_status learn_steps(probe *p, int64_t multiple, ev_error *err) {
    enum { MOST = 8 };
    for (p->steps = 0; p->steps <= MOST; p->steps++) {
        EV_TRY(learn_rounds(p, multiple, err));
        if (p->d->trap[0] == '\0' || !p->is_too_long)
            break;
    }
    return EV_OK;
}

/* Learns with pinned sizes that vary, so that lengths of them show; else as the launch has them, as
 * some kernels take powers of two alone. */
static ev_status learn_with(probe *p, int64_t multiple, ev_error *err) {
    p->is_varied = true;
    EV_TRY(learn_steps(p, multiple, err));
    p->is_varied = false;
    bool pins = false;
    for (size_t i = 0; i < p->d->size_count; i++)
        pins |= p->d->sizes[i].pinned != DRAFT_UNKNOWN;
    return p->d->trap[0] != '\0' && pins ? learn_steps(p, multiple, err) : EV_OK;
}

static bool is_of_launch(const draft *d, const char *name) {
    bool is = draft_uses(d->shared, name);
    for (int i = 0; i < 3; i++)
        is |= draft_uses(d->grid[i], name) || draft_uses(d->block[i], name);
    return is;
}

static bool is_of_length(const probe *p, const char *name) {
    for (size_t i = 0; i < p->d->argument_count; i++) {
        if (p->d->arguments[i].kind != DRAFT_SCALAR &&
            draft_uses(p->candidates[p->chosen[i]], name))
            return true;
    }
    return false;
}

/* Pins the sizes that may be no sizes to their values in the source. */
static void pin_known(draft *d) {
    for (size_t i = 0; i < d->size_count; i++) {
        draft_size *s = &d->sizes[i];
        bool pins = s->value != DRAFT_UNKNOWN && (s->is_small || !is_of_launch(d, s->name));
        s->pinned = pins ? s->value : DRAFT_UNKNOWN;
    }
}

/* Unpins the sizes that a length is made of, or all. Small ones, as the channels of an image, stay.
 * False: there was none. */
static bool unpin(probe *p, bool all) {
    enum { LARGE = 64 };
    bool any = false;
    for (size_t i = 0; i < p->d->size_count; i++) {
        draft_size *s = &p->d->sizes[i];
        bool is_length = s->pinned > LARGE && is_of_length(p, s->name);
        if (s->is_small || s->pinned == DRAFT_UNKNOWN || !(all || is_length))
            continue;
        s->pinned = DRAFT_UNKNOWN;
        any = true;
    }
    return any;
}

/* A size that no length and no launch is made of stays as it is in the runs. */
static void fix_loose(probe *p) {
    for (size_t i = 0; i < p->d->size_count; i++) {
        draft_size *s = &p->d->sizes[i];
        bool is_loose = !is_of_launch(p->d, s->name) && !is_of_length(p, s->name);
        s->is_fixed = is_bound(s) || is_loose;
        if (s->is_fixed && s->pinned == DRAFT_UNKNOWN)
            s->pinned = s->is_small ? SMALL : p->sizes[0][i];
    }
}

/* Whether a size that is not bound any more has no part in a length or the launch. As a length, it
 * was one by the values of the launch alone: channels / groups is 1 where both are primes. */
static bool lost_length(const probe *p, const bool *was_pinned) {
    bool lost = false;
    for (size_t i = 0; i < p->d->size_count; i++) {
        const draft_size *s = &p->d->sizes[i];
        lost |= was_pinned[i] && s->pinned == DRAFT_UNKNOWN && !is_of_launch(p->d, s->name) &&
                !is_of_length(p, s->name);
    }
    return lost;
}

/* Learns with the launch's values, and then which of them are lengths. */
static ev_status learn_values(probe *p, int64_t multiple, ev_error *err) {
    draft *d = p->d;
    bool was_pinned[DRAFT_SIZES] = {false};
    pin_known(d);
    EV_TRY(learn_with(p, multiple, err));
    bool runs = d->trap[0] == '\0';
    for (size_t i = 0; i < d->size_count; i++)
        was_pinned[i] = d->sizes[i].pinned != DRAFT_UNKNOWN;
    if (unpin(p, !runs))
        EV_TRY(learn_with(p, multiple, err));
    if (runs && (d->trap[0] != '\0' || lost_length(p, was_pinned))) {
        pin_known(d);
        EV_TRY(learn_with(p, multiple, err));
    }
    if (d->trap[0] == '\0')
        fix_loose(p);
    return EV_OK;
}

/* Thread instructions of the whole grid, by those of the blocks that ran. */
static double whole_cost(const probe *p, const vm_result *result) {
    uint32_t grid[3] = {1, 1, 1};
    (void)set_dimensions(p, p->d->grid, grid);
    double blocks = (double)grid[0] * grid[1] * grid[2];
    double ran = result->counters.blocks > 0 ? (double)result->counters.blocks : 1;
    return (double)result->counters.thread_instructions * blocks / ran;
}

/* Runs at the sizes. *fits: the kernel ends, and a whole run is not too long. */
static ev_status try_sizes(probe *p, const int64_t *sizes, uint64_t fuel, bool is_sampled,
                           bool *fits, ev_error *err) {
    vm_result result = {0};
    bool ran = false;
    set_names(p, sizes);
    ev_status status = run_once(p, fuel, is_sampled, &result, &ran, err);
    *fits = status == EV_OK && ran && result.ok && whole_cost(p, &result) < WHOLE_FUEL;
    return status == EV_INFRA ? status : EV_OK;
}

/* `start` for each size that is not fixed, apart from each other by `odd`; fewer turns of loops. */
static void fill_sizes(const draft *d, int64_t start, int64_t odd, unsigned steps, int64_t *out) {
    for (size_t i = 0; i < d->size_count; i++) {
        int64_t value = (start + odd * ((int64_t)rank_of(d, i) + 1)) / d->multiple * d->multiple;
        value = value < d->small[i] ? d->small[i] : value;
        out[i] = d->sizes[i].is_fixed ? d->sizes[i].pinned : value;
    }
    lessen(d, out, steps);
}

/* Sizes that a run affords: `start` for each, halved until it does; then fewer turns of loops. */
static ev_status afford(probe *p, int64_t start, int64_t odd, uint64_t fuel, bool is_sampled,
                        int64_t *out, ev_error *err) {
    enum { MOST = 16 };
    const draft *d = p->d;
    bool fits = false;
    for (unsigned steps = 0; steps <= MOST; steps++) {
        for (int64_t size = start; size >= 1; size /= 2) {
            fill_sizes(d, size, odd, steps, out);
            EV_TRY(try_sizes(p, out, fuel, is_sampled, &fits, err));
            if (fits)
                return EV_OK;
            if (big_sizes(d) == 0)
                break;
        }
    }
    memcpy(out, d->small, sizeof d->small);
    return EV_OK;
}

/* Halves the largest size that is not fixed. false: none can be halved. */
static bool halve_largest(const draft *d, int64_t *sizes) {
    size_t most = d->size_count;
    for (size_t i = 0; i < d->size_count; i++) {
        bool fits = !d->sizes[i].is_fixed && sizes[i] / 2 >= d->small[i];
        if (fits && (most == d->size_count || sizes[i] > sizes[most]))
            most = i;
    }
    if (most == d->size_count)
        return false;
    sizes[most] = sizes[most] / 2 / d->multiple * d->multiple;
    return true;
}

/* The launch's own sizes with fewer turns of loops, where they are too many. */
static ev_status afford_turns(probe *p, const int64_t *sizes, int64_t *out, bool *fits,
                              ev_error *err) {
    enum { MOST = 3 };
    *fits = false;
    for (unsigned steps = 0; steps <= MOST && !*fits; steps++) {
        memcpy(out, sizes, sizeof p->d->large);
        lessen(p->d, out, steps);
        EV_TRY(try_sizes(p, out, TIMED_FUEL, true, fits, err));
    }
    return EV_OK;
}

/* The launch's own sizes, if it says them and they are large. Where a run does not afford them, the
 * largest is halved, again and again, so that short rows stay as short as they are. */
static ev_status afford_launch(probe *p, int64_t *out, bool *fits, ev_error *err) {
    const double least = 65536;
    const draft *d = p->d;
    int64_t sizes[DRAFT_SIZES] = {0};
    double product = 1;
    *fits = false;
    for (size_t i = 0; i < d->size_count; i++) {
        const draft_size *s = &d->sizes[i];
        sizes[i] = s->is_fixed ? s->pinned : s->value;
        if (!s->is_fixed || is_of_length(p, s->name))
            product *= (double)sizes[i];
        if (!s->is_fixed && (s->value < 1 || s->value % d->multiple != 0))
            return EV_OK;
    }
    while (product >= least && !*fits) {
        EV_TRY(afford_turns(p, sizes, out, fits, err));
        if (!*fits && !halve_largest(d, sizes))
            break;
        product /= 2;
    }
    return EV_OK;
}

/* Sizes a little apart from others, if the kernel takes them. */
static ev_status move_away(probe *p, const int64_t *sizes, uint64_t fuel, bool is_sampled,
                           int64_t *out, ev_error *err) {
    const draft *d = p->d;
    int64_t more = d->multiple == 1 ? 3 : d->multiple;
    const int64_t steps[] = {more, -more, 0};
    bool fits = false;
    for (size_t k = 0; k < sizeof steps / sizeof steps[0] && !fits; k++) {
        bool is_possible = true;
        for (size_t i = 0; i < d->size_count; i++) {
            out[i] = sizes[i] + (d->sizes[i].is_fixed ? 0 : steps[k]);
            is_possible &= out[i] >= 1 || d->sizes[i].is_fixed;
        }
        if (is_possible)
            EV_TRY(try_sizes(p, out, 2 * fuel, is_sampled, &fits, err));
    }
    return EV_OK;
}

static ev_status choose_sizes(probe *p, ev_error *err) {
    static const int64_t odd[] = {20000, 20000, 150, 40, 20},
                         large[] = {1 << 22, 1 << 22, 2048, 256, 64};
    draft *d = p->d;
    size_t big = big_sizes(d);
    size_t row = big < 4 ? big : 4;
    bool is_free = d->multiple == 1, is_said = false;
    EV_TRY(afford(p, odd[row], is_free ? 7 : d->multiple, CHECK_FUEL, false, d->odd, err));
    EV_TRY(afford_launch(p, d->large, &is_said, err));
    if (!is_said)
        EV_TRY(afford(p, large[row], 0, TIMED_FUEL, true, d->large, err));
    EV_TRY(move_away(p, d->odd, CHECK_FUEL, false, d->other_odd, err));
    EV_TRY(move_away(p, d->large, TIMED_FUEL, true, d->other_large, err));
    d->trap[0] = '\0';
    return EV_OK;
}

static ev_status learn_all(probe *p, ev_error *err) {
    static const int64_t multiples[] = {1, 32, 256};
    char first[sizeof p->d->trap] = "";
    for (size_t i = 0; i < sizeof multiples / sizeof multiples[0]; i++) {
        EV_TRY(learn_values(p, multiples[i], err));
        if (p->d->trap[0] == '\0')
            return choose_sizes(p, err);
        if (i == 0)
            memcpy(first, p->d->trap, sizeof first);
    }
    memcpy(p->d->trap, first, sizeof first);
    p->d->multiple = 1;
    p->steps = 0;
    set_sizes(p, 0, 1, p->d->small);
    int64_t *const all[] = {p->d->odd, p->d->large, p->d->other_odd, p->d->other_large};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        memcpy(all[i], p->d->small, sizeof p->d->small);
    return EV_OK;
}

/* ---- the whole ---------------------------------------------------------------------------------
 */

ev_status draft_check_entry(const draft *d, const vm_entry *entry, ev_error *err) {
    size_t last = d->argument_count > 0 ? d->arguments[d->argument_count - 1].parameter + 1 : 0;
    bool ok = entry != NULL && entry->param_count == last;
    for (size_t i = 0; ok && i < d->argument_count; i++) {
        const draft_argument *a = &d->arguments[i];
        size_t bytes = a->kind == DRAFT_SCALAR ? ev_type_bytes(a->type) : 8;
        uint32_t has = entry->params[a->parameter].bytes;
        if (a->owner != NULL && has != a->struct_bytes)
            return ev_fail(err, EV_BAD,
                           "the struct %s has %u bytes in the PTX, and by its fields in the source "
                           "%u; write the task by hand, with offsets",
                           a->owner, has, a->struct_bytes);
        if (a->owner == NULL && has != bytes)
            return ev_fail(err, EV_BAD, "parameter %s has %u bytes in the PTX, and its type %s %zu",
                           a->name, has, ev_type_name(a->type), bytes);
    }
    return ok ? EV_OK : ev_fail(err, EV_BAD, "the PTX has other parameters than the source");
}

static ev_status open_probe(probe *p, const char *ptx, size_t bytes, ev_error *err) {
    EV_TRY(vm_module_load(ptx, bytes, p->d->kernel->name, &p->module, err));
    p->entry = vm_module_find(p->module, p->d->kernel->name);
    EV_TRY(draft_check_entry(p->d, p->entry, err));
    p->params = calloc(1, (size_t)p->entry->param_bytes + 8);
    if (p->params == NULL)
        return ev_fail_memory(err, p->entry->param_bytes);
    return vm_memory_new(MEMORY, &p->memory, err);
}

ev_status draft_probe(draft *d, const char *ptx, size_t bytes, ev_error *err) {
    probe p = {.d = d};
    bool is_fixed = false;
    ev_status status = open_probe(&p, ptx, bytes, err);
    if (status == EV_OK)
        status = learn_all(&p, err);
    for (size_t i = 0; status == EV_OK && i < d->argument_count; i++) {
        if (d->arguments[i].kind != DRAFT_SCALAR)
            d->arguments[i].count = p.candidates[p.chosen[i]];
        is_fixed |= d->arguments[i].kind != DRAFT_SCALAR && p.of_macros[p.chosen[i]];
    }
    if (status == EV_OK && is_fixed)
        draft_drop_macros(d);
    vm_memory_free(p.memory);
    vm_module_free(p.module);
    free(p.params);
    return status;
}
