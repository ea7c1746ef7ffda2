/* Runs a program's launches again, on the PTX of the source and with the recorded data.
 *
 * As in a probe (draft_probe.c), a buffer begins as read only and traps tell what it is. Its length
 * is at first what the probe found, where the recorded buffer is that long; an access behind that
 * makes it the whole recorded buffer. Then each launch runs once more, and its outputs are held
 * against those that the program's own kernel left. */
#include "tuner/init/draft_trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 4 * DRAFT_ARGUMENTS };

#define GAP UINT64_C(65536)
#define MEMORY (UINT64_C(64) << 30)
/* Compilers contract and reorder as they like, so a bound for another order of the same operations
 * is taken times this. */
#define COMPILERS 10

typedef struct replay {
    draft_trace *dt;
    vm_module *module;
    const vm_entry *entry;
    vm_memory *memory;
    unsigned char *params;
    uint64_t addresses[DRAFT_ARGUMENTS];
    bool is_whole[DRAFT_ARGUMENTS]; /* the length is that of the recorded buffer */
} replay;

/* ---- lengths ---- */

/* The product of sizes that is the length in all launches; NULL: none. */
static const char *length_of(const draft_trace *dt, size_t index) {
    const draft *d = dt->d;
    ev_arena *arena = d->t->arena;
    const char *factors[DRAFT_SIZES + 1];
    size_t count = 0;
    factors[count++] = "1";
    for (size_t i = 0; i < d->size_count; i++)
        factors[count++] = d->sizes[i].name;
    for (size_t a = 0; a < count; a++) {
        for (size_t b = 0; b <= a; b++) {
            for (size_t c = 0; c <= b; c++) {
                const char *text = factors[a];
                if (b > 0)
                    text = ev_arena_printf(arena, "%s * %s", text, factors[b]);
                if (c > 0)
                    text = ev_arena_printf(arena, "%s * %s", text, factors[c]);
                bool all = text != NULL;
                for (size_t k = 0; all && k < dt->count; k++) {
                    int64_t value = 0;
                    all = draft_trace_value(dt, &dt->cases[k], text, &value) &&
                          (uint64_t)value == dt->cases[k].buffers[index].elements;
                }
                if (all)
                    return text;
            }
        }
    }
    return NULL;
}

/* The whole recorded buffer. false: no name is left for its length. */
static bool take_whole(replay *r, size_t index) {
    draft_trace *dt = r->dt;
    draft_argument *a = &dt->d->arguments[index];
    r->is_whole[index] = true;
    a->count = length_of(dt, index);
    if (a->count != NULL)
        return true;
    size_t at = dt->d->size_count;
    for (; a->count == NULL && at < dt->name_count; at++) { /* as the values and their columns */
        bool all = true;
        for (size_t k = 0; k < dt->count; k++)
            all &= dt->cases[k].values[at].whole == (int64_t)dt->cases[k].buffers[index].elements;
        a->count = all ? dt->names[at] : NULL;
    }
    if (a->count != NULL)
        return true;
    a->count = draft_trace_name(dt, ev_arena_printf(dt->d->t->arena, "%s_count", a->name));
    for (size_t k = 0; a->count != NULL && k < dt->count; k++)
        dt->cases[k].values[at] = expr_of_whole((int64_t)dt->cases[k].buffers[index].elements);
    dt->generates = false;
    return a->count != NULL;
}

static uint64_t elements_of(const replay *r, const traced_case *c, size_t index) {
    const draft_argument *a = &r->dt->d->arguments[index];
    int64_t value = 0;
    (void)draft_trace_value(r->dt, c, a->count, &value);
    return (uint64_t)value * a->lanes;
}

static bool choose_lengths(replay *r) {
    const draft_trace *dt = r->dt;
    for (size_t i = 0; i < dt->d->argument_count; i++) {
        const draft_argument *a = &dt->d->arguments[i];
        if (a->kind == DRAFT_SCALAR)
            continue;
        bool all = dt->generates;
        for (size_t k = 0; all && k < dt->count; k++) {
            int64_t value = 0;
            all = draft_trace_value(dt, &dt->cases[k], a->count, &value) && value > 0 &&
                  (uint64_t)value <= dt->cases[k].buffers[i].elements;
        }
        if (!all && !take_whole(r, i))
            return false;
    }
    return true;
}

/* ---- a run ---- */

static ev_status load_parts(traced_case *c, ev_error *err) {
    const trace_launch *l = c->launch;
    if (c->before != NULL)
        return EV_OK;
    c->before = calloc(l->part_count + 1, sizeof *c->before);
    c->after = calloc(l->part_count + 1, sizeof *c->after);
    if (c->before == NULL || c->after == NULL)
        return ev_fail_memory(err, l->part_count);
    for (size_t i = 0; i < l->part_count; i++) {
        EV_TRY(trace_read_part(l, i, false, &c->before[i], err));
        EV_TRY(trace_read_part(l, i, true, &c->after[i], err));
    }
    return EV_OK;
}

static ev_status place_buffer(replay *r, const traced_case *c, size_t index, ev_error *err) {
    static const vm_buffer_kind kinds[] = {VM_BUFFER_IN, VM_BUFFER_OUT, VM_BUFFER_INOUT};
    const draft_argument *a = &r->dt->d->arguments[index];
    const traced_buffer *b = &c->buffers[index];
    uint64_t bytes = elements_of(r, c, index) * ev_type_bytes(a->type), gap = 0;
    EV_TRY(vm_memory_alloc(r->memory, GAP, VM_BUFFER_SCRATCH, "gap", &gap, err));
    vm_memory_hide(r->memory, gap, true);
    EV_TRY(vm_memory_alloc(r->memory, bytes, kinds[a->kind], a->name, &r->addresses[index], err));
    if (a->kind != DRAFT_OUT)
        memcpy(vm_memory_host(r->memory, r->addresses[index]), c->before[b->part] + b->offset,
               bytes);
    return EV_OK;
}

static ev_status place_all(replay *r, const traced_case *c, ev_error *err) {
    const draft *d = r->dt->d;
    vm_memory_clear(r->memory);
    for (size_t i = 0; i < d->argument_count; i++) {
        const draft_argument *a = &d->arguments[i];
        unsigned char *to = r->params + r->entry->params[a->parameter].offset + a->offset;
        const unsigned char *from =
            c->launch->values + c->launch->parameters[a->parameter][0] + a->offset;
        if (a->kind == DRAFT_SCALAR) {
            memcpy(to, from, ev_type_bytes(a->type));
            continue;
        }
        EV_TRY(place_buffer(r, c, i, err));
        memcpy(to, &r->addresses[i], sizeof r->addresses[i]);
    }
    return EV_OK;
}

static void fill_symbols(replay *r, const traced_case *c) {
    const draft *d = r->dt->d;
    for (size_t i = 0; i < d->symbol_count; i++) {
        vm_variable v;
        if (vm_module_variable(r->module, d->symbols[i].name, &v) &&
            v.bytes <= c->launch->parts[c->symbols[i]].bytes)
            vm_module_fill(r->module, &v, c->before[c->symbols[i]]);
    }
}

static ev_status run_once(replay *r, const traced_case *c, vm_result *result, ev_error *err) {
    vm_launch launch = {.module = r->module,
                        .entry = r->entry,
                        .params = r->params,
                        .dynamic_shared = c->launch->shared,
                        .checks = VM_CHECK_ALL & ~VM_CHECK_WAIVABLE};
    memcpy(launch.grid, c->launch->grid, sizeof launch.grid);
    memcpy(launch.block, c->launch->block, sizeof launch.block);
    EV_TRY(place_all(r, c, err));
    fill_symbols(r, c);
    return vm_run(r->memory, &launch, result, err);
}

/* ---- what a trap teaches ---- */

static size_t buffer_at(const replay *r, uint64_t address) {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < r->dt->d->argument_count; i++) {
        bool is_buffer = r->dt->d->arguments[i].kind != DRAFT_SCALAR;
        if (is_buffer && r->addresses[i] <= address &&
            (best == SIZE_MAX || r->addresses[i] > r->addresses[best]))
            best = i;
    }
    return best;
}

/* Changes the draft by what a trap says. false: the trap is the kernel's own. */
static bool learn(replay *r, const vm_trap *trap) {
    size_t index = trap->has_address ? buffer_at(r, trap->address) : SIZE_MAX;
    if (index == SIZE_MAX)
        return false;
    draft_argument *a = &r->dt->d->arguments[index];
    switch (trap->kind) {
    case VM_TRAP_OUT_OF_BOUNDS:
        return !r->is_whole[index] && take_whole(r, index);
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

/* An output of which a launch leaves elements as they are begins with contents of the caller. */
static ev_status find_partial(replay *r, const traced_case *c, ev_error *err) {
    for (size_t i = 0; i < r->dt->d->argument_count; i++) {
        draft_argument *a = &r->dt->d->arguments[i];
        if (a->kind != DRAFT_OUT)
            continue;
        uint64_t count = elements_of(r, c, i);
        uint8_t *written = malloc(count + 1);
        if (written == NULL)
            return ev_fail_memory(err, count);
        (void)vm_memory_written(r->memory, r->addresses[i], ev_type_bytes(a->type), 0, count,
                                written);
        if (!draft_is_all_written(a, written, count)) {
            a->kind = DRAFT_INOUT;
            a->is_partial = true;
        }
        free(written);
    }
    return EV_OK;
}

static ev_status learn_case(replay *r, traced_case *c, ev_error *err) {
    draft *d = r->dt->d;
    for (int i = 0; i < RUNS; i++) {
        vm_result result = {0};
        d->trap[0] = '\0';
        EV_TRY(run_once(r, c, &result, err));
        if (result.ok)
            return find_partial(r, c, err);
        snprintf(d->trap, sizeof d->trap, "launch %" PRIu64 ": %.600s", c->launch->number,
                 result.trap.message);
        if (!learn(r, &result.trap))
            break;
    }
    return EV_OK;
}

/* ---- whether the outputs are the program's ---- */

/* How far a buffer is from what the program's kernel left. */
typedef struct distance {
    double error; /* the largest relative L2 error of a field; infinite: whole numbers differ */
    bool is_off;  /* more than compilers make */
} distance;

/* Elements of one type, `stride` bytes apart. */
static void measure(ev_type type, const char *got, const char *want, uint64_t count,
                    uint64_t stride, distance *out) {
    double off = 0, all = 0;
    for (uint64_t i = 0; !ev_type_is_float(type) && i < count; i++) { /* 64 bits are no double */
        if (memcmp(got + i * stride, want + i * stride, ev_type_bytes(type)) != 0) {
            *out = (distance){.error = INFINITY, .is_off = true};
            return;
        }
    }
    for (uint64_t i = 0; ev_type_is_float(type) && i < count; i++) {
        double g = ev_type_get(type, got + i * stride, 0);
        double w = ev_type_get(type, want + i * stride, 0);
        bool same = !(g < w) && !(g > w) && isnan(g) == isnan(w);
        off += same ? 0 : (g - w) * (g - w);
        all += isfinite(w) ? w * w : 0;
    }
    if (off <= 0)
        return;
    double error = sqrt(off / all), most = COMPILERS * strtod(draft_tolerance_of(type), NULL);
    out->is_off |= !(error <= most); /* NaN, where one of two is */
    if (!(error <= out->error))
        out->error = error;
}

static distance distance_of(const draft_argument *a, const char *got, const char *want,
                            uint64_t count) {
    distance d = {0};
    uint64_t bytes = count * ev_type_bytes(a->type);
    if (memcmp(got, want, bytes) == 0)
        return d;
    if (a->mixed == NULL)
        measure(a->type, got, want, count, ev_type_bytes(a->type), &d);
    for (size_t i = 0; a->mixed != NULL && i < a->mixed->count; i++) {
        const draft_field *f = &a->mixed->fields[i];
        for (uint32_t k = 0; k < draft_numbers(f); k++) {
            uint64_t at = f->offset + k * ev_type_bytes(f->type);
            measure(f->type, got + at, want + at, bytes / a->mixed->bytes, a->mixed->bytes, &d);
        }
    }
    return d;
}

/* Another argument that the kernel writes has the place, too. */
static bool is_shared(const draft *d, const traced_case *c, size_t index) {
    bool is = false;
    for (size_t i = 0; i < d->argument_count; i++) {
        const draft_argument *a = &d->arguments[i];
        is |= i != index && (a->kind == DRAFT_OUT || a->kind == DRAFT_INOUT) &&
              c->buffers[i].part == c->buffers[index].part &&
              c->buffers[i].offset == c->buffers[index].offset;
    }
    return is;
}

static void compare(replay *r, const traced_case *c) {
    draft_trace *dt = r->dt;
    for (size_t i = 0; i < dt->d->argument_count; i++) {
        const draft_argument *a = &dt->d->arguments[i];
        if (a->kind == DRAFT_SCALAR || (a->kind == DRAFT_IN && is_shared(dt->d, c, i)))
            continue;
        const traced_buffer *b = &c->buffers[i];
        distance off = distance_of(a, vm_memory_host(r->memory, r->addresses[i]),
                                   c->after[b->part] + b->offset, elements_of(r, c, i));
        if (off.is_off && dt->differs[0] == '\0')
            snprintf(
                dt->differs, sizeof dt->differs,
                "launch %" PRIu64 ", %s: %s (relative L2 error %.3g)", c->launch->number, a->name,
                a->kind == DRAFT_IN ? "the source's kernel does not write it" : "other numbers",
                off.error);
        if (off.error > dt->error)
            dt->error = off.error;
    }
}

static ev_status confirm(replay *r, traced_case *c, ev_error *err) {
    vm_result result = {0};
    EV_TRY(run_once(r, c, &result, err));
    if (!result.ok) {
        snprintf(r->dt->d->trap, sizeof r->dt->d->trap, "launch %" PRIu64 ": %.600s",
                 c->launch->number, result.trap.message);
        return EV_OK;
    }
    c->cost = result.counters.thread_instructions;
    compare(r, c);
    return EV_OK;
}

/* ---- what the data are ---- */

typedef struct range {
    double low, high;
    bool is_finite, any;
} range;

static void widen(range *g, ev_type type, const void *data, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        double value = ev_type_get(type, data, i);
        g->is_finite &= isfinite(value) != 0;
        g->low = !g->any || value < g->low ? value : g->low;
        g->high = !g->any || value > g->high ? value : g->high;
        g->any = true;
    }
}

/* A generator of the recorded range; NULL: the usual one. */
static const char *generator_of(const draft *d, ev_type type, const range *g) {
    if (!g->any || !g->is_finite || !(g->high > g->low) || fabs(g->low) > 1e15 ||
        fabs(g->high) > 1e15)
        return NULL;
    int digits = ev_type_is_float(type) ? 6 : 16;
    return ev_arena_printf(d->t->arena,
                           "{\"generator\": \"uniform\", \"low\": %.*g, \"high\": %.*g}", digits,
                           g->low, digits, g->high);
}

/* Launches grant what the program's buffers had. */
static void find_align(replay *r, size_t index) {
    enum { USUAL = 16 };
    draft_argument *a = &r->dt->d->arguments[index];
    uint32_t least = USUAL, bytes = (uint32_t)ev_type_bytes(a->type);
    for (size_t k = 0; k < r->dt->count; k++) {
        while (r->dt->cases[k].buffers[index].offset % least != 0)
            least /= 2;
    }
    if (least < USUAL)
        a->align = least > bytes ? least : bytes;
}

/* The ranges of the fields of a buffer of structs. */
static void describe_fields(replay *r, size_t index) {
    draft *d = r->dt->d;
    const draft_argument *a = &d->arguments[index];
    for (size_t i = 0; i < a->mixed->count; i++) {
        draft_field *f = &a->mixed->fields[i];
        range g = {.is_finite = true};
        for (size_t k = 0; a->kind != DRAFT_OUT && k < r->dt->count; k++) {
            const traced_case *c = &r->dt->cases[k];
            const traced_buffer *b = &c->buffers[index];
            const char *at = (const char *)c->before[b->part] + b->offset + f->offset;
            for (uint64_t s = 0; s < elements_of(r, c, index) / a->lanes; s++)
                widen(&g, f->type, at + s * a->mixed->bytes, draft_numbers(f));
        }
        f->data = generator_of(d, f->type, &g);
        r->dt->generates &= a->kind == DRAFT_OUT || ev_type_is_float(f->type);
    }
}

static void describe_data(replay *r) {
    draft *d = r->dt->d;
    for (size_t i = 0; i < d->argument_count; i++) {
        draft_argument *a = &d->arguments[i];
        range g = {.is_finite = true};
        if (a->kind == DRAFT_SCALAR)
            continue;
        find_align(r, i);
        if (a->mixed != NULL) {
            describe_fields(r, i);
            continue;
        }
        for (size_t k = 0; a->kind != DRAFT_OUT && k < r->dt->count; k++) {
            const traced_case *c = &r->dt->cases[k];
            const traced_buffer *b = &c->buffers[i];
            widen(&g, a->type, c->before[b->part] + b->offset, elements_of(r, c, i));
        }
        a->data = generator_of(d, a->type, &g);
        r->dt->generates &= a->kind == DRAFT_OUT || ev_type_is_float(a->type);
    }
    for (size_t s = 0; s < d->symbol_count; s++) {
        draft_symbol *of = &d->symbols[s];
        range g = {.is_finite = true};
        for (size_t k = 0; k < r->dt->count; k++)
            widen(&g, of->type, r->dt->cases[k].before[r->dt->cases[k].symbols[s]],
                  (uint64_t)of->count * of->lanes);
        of->data = generator_of(d, of->type, &g);
        r->dt->generates &= ev_type_is_float(of->type);
    }
}

/* ---- the whole ---- */

static ev_status open_replay(replay *r, const char *ptx, size_t bytes, ev_error *err) {
    const draft *d = r->dt->d;
    EV_TRY(vm_module_load(ptx, bytes, d->kernel->name, &r->module, err));
    r->entry = vm_module_find(r->module, d->kernel->name);
    EV_TRY(draft_check_entry(d, r->entry, err));
    r->params = calloc(1, (size_t)r->entry->param_bytes + 8);
    if (r->params == NULL)
        return ev_fail_memory(err, r->entry->param_bytes);
    return vm_memory_new(MEMORY, &r->memory, err);
}

/* A buffer's kind goes from in to out to inout, so a sum over them grows with each change. */
static unsigned kinds_of(const draft *d) {
    unsigned sum = 0;
    for (size_t i = 0; i < d->argument_count; i++) {
        draft_kind kind = d->arguments[i].kind;
        sum += kind == DRAFT_INOUT ? 2 : kind == DRAFT_OUT;
    }
    return sum;
}

/* A later launch may show that a buffer is an output, which an earlier launch leaves as it is: so
 * all launches are looked at until no kind changes. */
static ev_status learn_kinds(replay *r, ev_error *err) {
    draft_trace *dt = r->dt;
    const draft *d = dt->d;
    unsigned before;
    do {
        before = kinds_of(d);
        for (size_t k = 0; k < dt->count && d->trap[0] == '\0'; k++) {
            EV_TRY(load_parts(&dt->cases[k], err));
            EV_TRY(learn_case(r, &dt->cases[k], err));
        }
    } while (kinds_of(d) != before);
    return EV_OK;
}

static ev_status learn_all(replay *r, ev_error *err) {
    draft_trace *dt = r->dt;
    draft *d = dt->d;
    dt->generates = d->trap[0] == '\0' && dt->name_count == d->size_count;
    d->trap[0] = '\0';
    if (!choose_lengths(r))
        return ev_fail(err, EV_BAD, "%s has too many buffers", d->kernel->name);
    for (size_t i = 0; i < d->argument_count; i++) {
        if (d->arguments[i].kind != DRAFT_SCALAR && !dt->generates)
            d->arguments[i].kind = DRAFT_IN;
    }
    EV_TRY(learn_kinds(r, err));
    for (size_t k = 0; k < dt->count; k++) {
        EV_TRY(load_parts(&dt->cases[k], err));
        if (d->trap[0] == '\0')
            EV_TRY(confirm(r, &dt->cases[k], err));
    }
    describe_data(r);
    return EV_OK;
}

ev_status draft_replay(draft_trace *dt, const char *ptx, size_t bytes, ev_error *err) {
    replay r = {.dt = dt};
    ev_status status = open_replay(&r, ptx, bytes, err);
    if (status == EV_OK)
        status = learn_all(&r, err);
    vm_memory_free(r.memory);
    vm_module_free(r.module);
    free(r.params);
    return status;
}
