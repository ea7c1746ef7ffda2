/* evoke/bundle.h: variants of several launches. All of them are evaluated, packed and checked
 * before the first is given to the driver, in whose stream they then run one behind the other.
 *
 * A launch's parameters are words: those of the kernel's arguments, which runtime_pack makes once,
 * addresses within the caller's scratch memory, and values of the launch's own. Where a loop
 * exchanges two buffers, launch_step_buffer tells whose word a name stands for. A single launch
 * takes the arguments as they are. */
#include "bundle/runtime/runtime.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRATCH_ALIGN 256u /* of each buffer, as cuMemAlloc aligns them */

_Static_assert(BUNDLE_GIVEN_MOST <= RUNTIME_ARGUMENTS, "the parameters of a step have room");

/* ---- launches at a shape ---- */

typedef struct ordered_step {
    launch_geometry at;
    uint64_t *words; /* of its parameters; in `words` of the sequence */
} ordered_step;

struct runtime_sequence {
    const evoke_variant *v;
    launch_step *order;
    size_t count;
    ordered_step *steps;
    uint64_t *words;
    runtime_scope room;
    uint64_t scratch[LAUNCH_PLAN_MOST]; /* bytes of each scratch buffer */
    uint64_t offsets[LAUNCH_PLAN_MOST]; /* from the begin of the scratch memory */
    uint64_t scratch_bytes;             /* of all */
    runtime_parameters arguments;
};

typedef runtime_sequence sequence;

static const launch_plan *plan_of(const sequence *s) {
    return s->v->is->plan;
}

static const launch_rule *rule_of(const sequence *s, size_t index) {
    return &plan_of(s)->launches[s->order[index].launch];
}

static void sequence_free(sequence *s) {
    free(s->order);
    free(s->steps);
    free(s->words);
}

/* "scan, launch 2 of 3, kernel `scan_sums`" */
static ev_status fail_at(const sequence *s, size_t index, ev_status status, ev_error *err) {
    return ev_wrap(err, status, "%s, launch %zu of %zu, kernel `%s`", s->v->kernel->name, index + 1,
                   s->count, rule_of(s, index)->entry);
}

static ev_status measure_scratch(sequence *s, ev_error *err) {
    const launch_plan *plan = plan_of(s);
    for (size_t i = 0; i < plan->scratch_count; i++) {
        EV_TRY(launch_plan_scratch(plan, i, &s->room.scope, &s->scratch[i], err));
        s->offsets[i] = s->scratch_bytes;
        /* at most 64 buffers of 2^40 bytes */
        s->scratch_bytes += (s->scratch[i] + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN;
    }
    return EV_OK;
}

static expr_scope scope_at(sequence *s, size_t index) {
    return launch_step_scope(&s->order[index], s->room.names, s->room.scope.count);
}

static ev_status measure_launches(sequence *s, ev_error *err) {
    s->steps = calloc(s->count, sizeof *s->steps);
    if (s->steps == NULL)
        return ev_fail_memory(err, s->count * sizeof *s->steps);
    for (size_t i = 0; i < s->count; i++) {
        const expr_scope values = scope_at(s, i);
        EV_TRY(launch_plan_geometry(plan_of(s), s->order[i].launch, &values, &LAUNCH_LIMITS_CUDA,
                                    &s->steps[i].at, err));
    }
    return EV_OK;
}

static ev_status evaluate(sequence *s, ev_error *err) {
    EV_TRY(measure_scratch(s, err));
    EV_TRY(launch_plan_steps(plan_of(s), &s->room.scope, &s->order, &s->count, err));
    return measure_launches(s, err);
}

/* The caller frees *out by sequence_free, also after a failure. */
static ev_status sequence_of(const evoke_variant *v, const evoke_shape *shape, sequence *out,
                             ev_error *err) {
    *out = (sequence){.v = v};
    EV_TRY(runtime_scope_of(v->kernel, v->is->plan, shape, SIZE_MAX, &out->room, err));
    runtime_add_macros(v->is, &out->room);
    ev_status status = evaluate(out, err);
    return status == EV_OK ? EV_OK : ev_wrap(err, status, "%s", v->kernel->name);
}

/* ---- parameters ---- */

static size_t find_argument(const bundle_kernel *k, const char *name) {
    size_t i = 0;
    while (i < k->argument_count && strcmp(k->arguments[i].name, name) != 0)
        i++;
    return i;
}

static size_t find_scratch(const launch_plan *plan, const char *name) {
    size_t i = 0;
    while (i < plan->scratch_count && strcmp(plan->scratch[i].name, name) != 0)
        i++;
    return i;
}

/* `scratch`: where the scratch memory begins. */
static uint64_t word_of(const sequence *s, uint64_t scratch_memory, const launch_step *at,
                        const char *name) {
    const char *own = launch_step_buffer(plan_of(s), at, name);
    size_t argument = find_argument(s->v->kernel, own);
    if (argument < s->v->kernel->argument_count)
        return s->arguments.words[argument];
    size_t scratch = find_scratch(plan_of(s), own);
    assert(scratch < plan_of(s)->scratch_count); /* the reader looked (read_steps.c) */
    return scratch_memory + s->offsets[scratch];
}

static ev_status pack_step(sequence *s, size_t index, uint64_t scratch, ev_error *err) {
    const launch_rule *rule = rule_of(s, index);
    const expr_scope values = scope_at(s, index);
    for (size_t i = 0; i < rule->given_count; i++) {
        const launch_given *g = &rule->given[i];
        uint64_t *word = &s->steps[index].words[i];
        expr_value value;
        if (g->name != NULL) {
            *word = word_of(s, scratch, &s->order[index], g->name);
            continue;
        }
        ev_status status = expr_eval_as(g->value, g->type, &values, &value, err);
        if (status != EV_OK)
            return ev_wrap(err, status, "argument %zu", i + 1);
        runtime_set_word(g->type, &value, word);
    }
    return EV_OK;
}

static ev_status pack_steps(sequence *s, uint64_t scratch, ev_error *err) {
    size_t words = 0;
    for (size_t i = 0; i < s->count; i++)
        words += rule_of(s, i)->given_count;
    s->words = calloc(words + 1, sizeof *s->words);
    if (s->words == NULL)
        return ev_fail_memory(err, words * sizeof *s->words);
    uint64_t *next = s->words;
    for (size_t i = 0; i < s->count; i++) {
        s->steps[i].words = next;
        next += rule_of(s, i)->given_count;
        ev_status status = pack_step(s, i, scratch, err);
        if (status != EV_OK)
            return fail_at(s, i, status, err);
    }
    return EV_OK;
}

/* ---- what is checked ---- */

static ev_status bytes_of(const sequence *s, const char *name, uint64_t *out, ev_error *err) {
    const bundle_kernel *k = s->v->kernel;
    size_t argument = find_argument(k, name);
    ev_type type = EV_F32;
    if (argument == k->argument_count) {
        *out = s->scratch[find_scratch(plan_of(s), name)];
        return EV_OK;
    }
    EV_TRY(runtime_elements(k, argument, &s->room.scope, out, err));
    *out *= ev_type_find(k->arguments[argument].type, &type) ? ev_type_bytes(type) : 1;
    return EV_OK;
}

/* A shorter buffer in a longer one's place would be written past its end. */
static ev_status check_swaps(const sequence *s, ev_error *err) {
    const launch_plan *plan = plan_of(s);
    for (size_t i = 0; i < plan->loop_count; i++) {
        for (size_t k = 0; k < plan->loops[i].swap_count; k++) {
            const char *const *names = plan->loops[i].swaps[k].names;
            uint64_t bytes[2] = {0, 0};
            for (int side = 0; side < 2; side++)
                EV_TRY(bytes_of(s, names[side], &bytes[side], err));
            if (bytes[0] != bytes[1])
                return ev_fail(err, EV_BAD,
                               "%s: its launches exchange %s of %" PRIu64
                               " bytes and %s of %" PRIu64
                               "; buffers that change places are equally long",
                               s->v->kernel->name, names[0], bytes[0], names[1], bytes[1]);
        }
    }
    return EV_OK;
}

static ev_status check_scratch(const sequence *s, const evoke_buffer *scratch, ev_error *err) {
    if (s->scratch_bytes == 0)
        return EV_OK;
    if (scratch == NULL)
        return ev_fail(err, EV_BAD,
                       "%s: the variant needs %" PRIu64 " bytes of scratch memory at this shape; "
                       "allocate them (evoke_variant_scratch tells how many) and call "
                       "evoke_variant_launch_scratch",
                       s->v->kernel->name, s->scratch_bytes);
    if (scratch->address == 0 || scratch->address % SCRATCH_ALIGN != 0)
        return ev_fail(err, EV_BAD,
                       "%s: the address 0x%" PRIx64 " of the scratch memory is 0 or no multiple of "
                       "%u bytes; align it as cuMemAlloc does",
                       s->v->kernel->name, scratch->address, SCRATCH_ALIGN);
    if (scratch->bytes < s->scratch_bytes)
        return ev_fail(err, EV_BAD,
                       "%s: the scratch memory has %zu bytes, and the launches use %" PRIu64
                       "; evoke_variant_scratch tells how many",
                       s->v->kernel->name, scratch->bytes, s->scratch_bytes);
    return EV_OK;
}

static ev_status prepare(sequence *s, const evoke_shape *shape, const evoke_buffer *buffers,
                         size_t count, uint32_t rank, const evoke_buffer *scratch, ev_error *err) {
    EV_TRY(runtime_pack(s->v, shape, buffers, count, rank, &s->arguments, err));
    EV_TRY(check_swaps(s, err));
    EV_TRY(check_scratch(s, scratch, err));
    return pack_steps(s, s->scratch_bytes > 0 ? scratch->address : 0, err);
}

/* ---- launching ---- */

ev_status runtime_sequence_allow(const sequence *s, const cu_driver *cu, runtime_loaded *l,
                                 ev_error *err) {
    evoke_variant *own = runtime_own(s->v);
    for (size_t i = 0; i < s->count; i++) {
        ev_status status = runtime_allow(own, cu, l, s->order[i].launch, &s->steps[i].at, err);
        if (status != EV_OK)
            return fail_at(s, i, status, err);
    }
    return runtime_check_symbols(own, cu, l, err);
}

/* The parameters of a launch, as cuLaunchKernel takes them: of the arguments' own order, or in
 * `room`. */
static void *const *pointers_of(const sequence *s, size_t index, void **room) {
    size_t count = rule_of(s, index)->given_count;
    for (size_t i = 0; i < count; i++)
        room[i] = &s->steps[index].words[i];
    return count > 0 ? room : s->arguments.pointers;
}

ev_status runtime_sequence_give(const sequence *s, size_t step, const cu_driver *cu,
                                runtime_loaded *l, CUstream stream, ev_error *err) {
    const launch_geometry *at = &s->steps[step].at;
    void *room[RUNTIME_ARGUMENTS];
    void *const *pointers = pointers_of(s, step, room);
    CUresult result =
        cu->cuLaunchKernel(runtime_function_of(s->v, l, s->order[step].launch)->function,
                           at->grid[0], at->grid[1], at->grid[2], at->block[0], at->block[1],
                           at->block[2], at->shared_bytes, stream, (void **)pointers, NULL);
    ev_status status = runtime_check(cu, result, "cuLaunchKernel", err);
    return status == EV_OK ? EV_OK : fail_at(s, step, status, err);
}

size_t runtime_sequence_count(const sequence *s) {
    return s->count;
}

static ev_status launch_prepared(const sequence *s, evoke_variant *own, CUstream stream,
                                 ev_error *err) {
    const cu_driver *cu = NULL;
    runtime_loaded *l = NULL;
    EV_TRY(runtime_driver(&cu, err));
    EV_TRY(runtime_load(own, cu, &l, err));
    EV_TRY(runtime_sequence_allow(s, cu, l, err));
    for (size_t i = 0; i < s->count; i++)
        EV_TRY(runtime_sequence_give(s, i, cu, l, stream, err));
    return EV_OK;
}

ev_status runtime_launch_steps(evoke_variant *v, const evoke_shape *shape,
                               const evoke_buffer *buffers, size_t count,
                               const evoke_buffer *scratch, CUstream stream, ev_error *err) {
    sequence s;
    ev_status status = sequence_of(v, shape, &s, err);
    if (status == EV_OK)
        status = prepare(&s, shape, buffers, count, 0, scratch, err);
    if (status == EV_OK)
        status = launch_prepared(&s, v, stream, err);
    sequence_free(&s);
    return status;
}

ev_status runtime_check_steps(const evoke_variant *v, const evoke_shape *shape,
                              const evoke_buffer *buffers, size_t count,
                              const evoke_buffer *scratch, ev_error *err) {
    sequence s;
    ev_status status = sequence_of(v, shape, &s, err);
    if (status == EV_OK)
        status = prepare(&s, shape, buffers, count, 0, scratch, err);
    sequence_free(&s);
    return status;
}

/* ---- the launches of a rank ---- */

ev_status runtime_sequence_new(const evoke_variant *v, const evoke_shape *shape,
                               const evoke_buffer *buffers, size_t count, uint32_t rank,
                               const evoke_buffer *scratch, runtime_sequence **out, ev_error *err) {
    sequence *s = calloc(1, sizeof *s);
    if (s == NULL)
        return ev_fail_memory(err, sizeof *s);
    ev_status status = sequence_of(v, shape, s, err);
    if (status == EV_OK)
        status = prepare(s, shape, buffers, count, rank, scratch, err);
    if (status == EV_OK)
        *out = s;
    else
        runtime_sequence_free(s);
    return status;
}

void runtime_sequence_free(runtime_sequence *s) {
    if (s != NULL)
        sequence_free(s);
    free(s);
}

ev_status runtime_sequence_share(const runtime_sequence *s, const cu_driver *cu, runtime_loaded *l,
                                 double *share, size_t *step, ev_error *err) {
    CUdevice device = 0;
    int processors = 0;
    *share = 0;
    if (cu->cuOccupancyMaxActiveBlocksPerMultiprocessor == NULL)
        return EV_OK;
    EV_TRY(runtime_check(cu, cu->cuCtxGetDevice(&device), "cuCtxGetDevice", err));
    EV_TRY(runtime_check(
        cu, cu->cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device),
        "cuDeviceGetAttribute", err));
    for (size_t i = 0; i < s->count; i++) {
        const launch_geometry *at = &s->steps[i].at;
        int threads = (int)(at->block[0] * at->block[1] * at->block[2]), blocks = 0;
        if (!bundle_is_resident(s->v->is, rule_of(s, i)->entry))
            continue;
        CUresult result = cu->cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &blocks, runtime_function_of(s->v, l, s->order[i].launch)->function, threads,
            at->shared_bytes);
        EV_TRY(runtime_check(cu, result, "cuOccupancyMaxActiveBlocksPerMultiprocessor", err));
        double all = (double)at->grid[0] * at->grid[1] * at->grid[2];
        double own = blocks > 0 ? all / ((double)blocks * processors) : HUGE_VAL;
        *step = own > *share ? i : *step;
        *share = own > *share ? own : *share;
    }
    return EV_OK;
}

ev_status runtime_sequence_fail(const runtime_sequence *s, size_t step, ev_status status,
                                ev_error *err) {
    return fail_at(s, step, status, err);
}

evoke_buffer runtime_sequence_scratch(const runtime_sequence *s, size_t index) {
    return (evoke_buffer){s->offsets[index], s->scratch[index]};
}

/* ---- what a caller asks before ---- */

evoke_status evoke_variant_scratch(const evoke_variant *v, const evoke_shape *shape, size_t *bytes,
                                   evoke_error *error) {
    sequence s;
    ev_status status = sequence_of(v, shape, &s, runtime_error(error));
    if (status == EV_OK)
        *bytes = s.scratch_bytes;
    sequence_free(&s);
    return runtime_status(status);
}

static ev_status list_steps(const sequence *s, size_t room, evoke_step *steps, size_t *count,
                            ev_error *err) {
    if (s->count > room)
        return ev_fail(err, EV_BAD, "%s has %zu launches at this shape, and there is room for %zu",
                       s->v->kernel->name, s->count, room);
    for (size_t i = 0; i < s->count; i++) {
        steps[i] = (evoke_step){.entry = rule_of(s, i)->entry};
        runtime_set_geometry(&s->steps[i].at, &steps[i].geometry);
    }
    *count = s->count;
    return EV_OK;
}

evoke_status evoke_variant_steps(const evoke_variant *v, const evoke_shape *shape, size_t room,
                                 evoke_step *steps, size_t *count, evoke_error *error) {
    sequence s;
    ev_status status = sequence_of(v, shape, &s, runtime_error(error));
    if (status == EV_OK)
        status = list_steps(&s, room, steps, count, runtime_error(error));
    sequence_free(&s);
    return runtime_status(status);
}
