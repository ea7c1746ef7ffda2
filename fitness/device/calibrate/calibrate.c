/* Runs the micro-benchmarks and turns their times into numbers of a GPU description. */
#include "base/stop.h"
#include "fitness/device/calibrate/calibrate_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Steps of a chain in the loop's body, of the shorter and of the longer kernel. */
#define STEPS 16
#define STREAM_STEPS 4
#define LONGER 3
/* Where times are measured, the longer kernel runs about so long: two hundred times what events
 * resolve. */
#define LONG_NS 400e3
#define TRIPS_FIRST 32
#define TRIPS_MOST (1u << 20)
#define TRIPS_MODELLED 4 /* every turn costs the same there */
#define RING_STRIDE 512
#define RING_MEASURED (1u << 16) /* nodes: 32 MiB, written over by the flush before each sample */
#define STREAM_BYTES (1u << 30)
#define EMPTY_WAVES 64 /* blocks one after another on each SM, beside the first */
#define SAMPLE 3       /* blocks of a grid that the VM runs */
#define PATH_MOST 200

typedef struct rig {
    device *d;
    const gpu *base;
    const calibration *done;
    double clock_mhz;
    const probe *p;
    uint32_t blocks, groups;
    uint32_t dynamic_shared;
    probe_params params;
    device_buffer out;
} rig;

typedef struct timed {
    double ns, width; /* width of the interval */
    double ticks;     /* that the first thread counted; 0 where it does not */
} timed;

/* ---- what is known by now ---- */

static bool is_modelled(const rig *r) {
    return device_properties_of(r->d)->modelled;
}

/* Measured just now, else as the driver says, else as the base does. */
static double number(const rig *r, gpu_key key) {
    double value = 0;
    for (size_t i = 0; i < r->done->count; i++) {
        if (r->done->rows[i].key == key && r->done->rows[i].value > 0)
            return r->done->rows[i].value;
    }
    return device_number(r->d, key, &value) ? value : gpu_get(r->base, key);
}

/* ---- buffers ---- */

static int first_steps(const probe *p) {
    return calibrate_has_value(p, 'm') ? STREAM_STEPS : STEPS;
}

static uint32_t grid_of(const rig *r) {
    if (!r->p->shape->chip)
        return 1;
    double sms = number(r, GPU_SM_COUNT);
    if (r->p->step[0] == '\0')
        return (uint32_t)sms;
    double warps = fmin(number(r, GPU_MAX_WARPS), 2048.0 / 32);
    return (uint32_t)(sms * floor(warps * 32 / r->p->shape->threads));
}

/* Groups of cells that the blocks share, so that together they stay well within the L2. */
static uint32_t groups_of(const rig *r, uint64_t group_bytes) {
    double most = floor(number(r, GPU_L2_SIZE) / 4 / (double)group_bytes);
    return (uint32_t)fmax(1, fmin(most, r->blocks));
}

static uint32_t ring_nodes(const rig *r) {
    return is_modelled(r) ? STEPS * LONGER * TRIPS_MODELLED : RING_MEASURED;
}

static uint64_t stream_bytes(const rig *r, uint32_t trips) {
    const probe_shape *s = r->p->shape;
    return (uint64_t)r->blocks * s->threads * s->chains * 16 * STREAM_STEPS * LONGER * trips;
}

/* Of values that hold their own address; 0: there are none. */
static uint64_t cell_bytes(const rig *r) {
    if (calibrate_has_value(r->p, 'p'))
        return 16;
    if (calibrate_has_value(r->p, 'l'))
        return 40;
    return 0;
}

static uint64_t cells_bytes(const rig *r, uint32_t trips) {
    const probe_shape *s = r->p->shape;
    if (cell_bytes(r) > 0)
        return (uint64_t)r->groups * s->threads * s->chains * cell_bytes(r);
    if (calibrate_has_value(r->p, 'r'))
        return (uint64_t)ring_nodes(r) * RING_STRIDE;
    return calibrate_has_value(r->p, 'm') ? stream_bytes(r, trips) : 16;
}

static void fill_cells(const rig *r, uint64_t *cells, uint64_t bytes) {
    uint64_t at = r->params.cells;
    uint64_t each = cell_bytes(r);
    for (uint64_t i = 0; each > 0 && i < bytes / each; i++)
        cells[i * each / 8] = at + i * each;
    if (!calibrate_has_value(r->p, 'r'))
        return;
    /* all nodes in one ring, each far from the one before: an odd stride through a power of two,
     * or, where there are few, simply the next */
    uint64_t nodes = ring_nodes(r), hop = nodes == RING_MEASURED ? 24593 : 1;
    for (uint64_t i = 0; i < nodes; i++)
        cells[i * RING_STRIDE / 8] = at + (i + hop) % nodes * RING_STRIDE;
}

static ev_status make_cells(rig *r, uint32_t trips, ev_error *err) {
    uint64_t bytes = cells_bytes(r, trips);
    bool is_updated = strncmp(r->p->step, "ato", 3) == 0 || strncmp(r->p->step, "red", 3) == 0;
    device_buffer buffer = 0;
    EV_TRY(device_alloc(r->d, bytes, is_updated ? VM_BUFFER_INOUT : VM_BUFFER_IN, "cells", &buffer,
                        err));
    r->params.cells = device_address(r->d, buffer);
    if (calibrate_has_value(r->p, 'm'))
        return EV_OK; /* zeros */
    uint64_t *cells = calloc(bytes / sizeof *cells + 1, sizeof *cells);
    if (cells == NULL)
        return ev_fail_memory(err, bytes);
    fill_cells(r, cells, bytes);
    ev_status status = device_write(r->d, buffer, 0, cells, bytes, err);
    free(cells);
    return status;
}

static ev_status make_buffers(rig *r, uint32_t trips, ev_error *err) {
    const probe_shape *s = r->p->shape;
    device_clear(r->d);
    r->blocks = grid_of(r);
    r->groups = groups_of(r, (uint64_t)s->threads * s->chains * 16);
    r->params = (probe_params){.trips = trips,
                               .groups = r->groups,
                               .stride = (uint64_t)r->blocks * s->threads * s->chains * 16,
                               .ia = 0x5bd1e995,
                               .ib = 13,
                               .ic = 0x2c1b3c6d,
                               .id = 0x297a2d39,
                               .fa = 0.5f,
                               .fb = 0.25f,
                               .da = 0.5,
                               .db = 0.25,
                               .ha = 0x38003800, /* twice 0.5 */
                               .hb = 0x34003400};
    uint64_t threads = (uint64_t)r->blocks * s->threads;
    EV_TRY(device_alloc(r->d, threads * PROBE_OUT_BYTES, VM_BUFFER_OUT, "out", &r->out, err));
    r->params.out = device_address(r->d, r->out);
    return make_cells(r, trips, err);
}

/* ---- one time ---- */

static ev_status read_ticks(const rig *r, timed *t, ev_error *err) {
    uint32_t ticks = 0;
    if (r->p->figure != FIGURE_MHZ)
        return EV_OK;
    EV_TRY(device_read(r->d, r->out, 4, &ticks, sizeof ticks, err));
    t->ticks = ticks;
    return EV_OK;
}

static ev_status time_kernel(rig *r, const device_kernel *k, timed *t, ev_error *err) {
    uint32_t sample[SAMPLE];
    device_launch l = {.grid = {r->blocks, 1, 1},
                       .block = {r->p->shape->threads, 1, 1},
                       .dynamic_shared = r->dynamic_shared,
                       .params = &r->params,
                       .checks = VM_CHECK_ALL};
    if (!device_properties_of(r->d)->all_blocks) {
        l.sample_count = model_sample_blocks(r->blocks, SAMPLE, sample);
        l.sample = sample;
    }
    device_outcome outcome;
    device_timing timing = {.ns = 0};
    EV_TRY(device_reset(r->d, 0, err));
    EV_TRY(device_time(r->d, k, &l, &outcome, &timing, err));
    if (!outcome.ok)
        return ev_fail(err, EV_BAD, "%s", outcome.fault.message);
    *t = (timed){.ns = timing.ns, .width = timing.high_ns - timing.low_ns};
    return read_ticks(r, t, err);
}

static ev_status time_length(rig *r, int length, timed *t, ev_error *err) {
    ev_str ptx = EV_STR_EMPTY;
    device_kernel *k = NULL;
    ev_status status = calibrate_kernel(r->p, length, &ptx, err);
    if (status == EV_OK)
        status = device_load(r->d, ev_str_text(&ptx), ptx.length, "probe", &k, err);
    if (status == EV_OK)
        status = time_kernel(r, k, t, err);
    device_unload(k);
    ev_str_free(&ptx);
    return status;
}

/* ---- steps: the difference of two lengths ---- */

static uint32_t most_trips(const rig *r) {
    if (calibrate_has_value(r->p, 'r'))
        return RING_MEASURED / (STEPS * LONGER);
    if (!calibrate_has_value(r->p, 'm'))
        return TRIPS_MOST;
    uint64_t room = device_properties_of(r->d)->memory_bytes / 4;
    uint64_t trips = (room < STREAM_BYTES ? room : STREAM_BYTES) / stream_bytes(r, 1);
    return trips > 0 ? (uint32_t)trips : 1;
}

/* How often the loop is to turn. Where times are measured, a first one shows how long it takes. */
static ev_status choose_trips(rig *r, uint32_t *trips, ev_error *err) {
    if (is_modelled(r)) {
        *trips = calibrate_has_value(r->p, 'm') ? 1 : TRIPS_MODELLED;
        return EV_OK;
    }
    r->blocks = grid_of(r);
    uint32_t most = most_trips(r);
    *trips = TRIPS_FIRST < most ? TRIPS_FIRST : most;
    timed t;
    EV_TRY(make_buffers(r, *trips, err));
    EV_TRY(time_length(r, first_steps(r->p) * LONGER, &t, err));
    double wanted = ceil(*trips * LONG_NS / fmax(t.ns, 1));
    *trips = (uint32_t)fmin(most, fmax(*trips, wanted));
    return EV_OK;
}

/* Nanoseconds (and ticks) of one step of all chains. */
static ev_status time_step(rig *r, timed *step, ev_error *err) {
    uint32_t trips = 1;
    timed few, many;
    EV_TRY(choose_trips(r, &trips, err));
    EV_TRY(make_buffers(r, trips, err));
    int first = first_steps(r->p);
    EV_TRY(time_length(r, first, &few, err));
    EV_TRY(time_length(r, first * LONGER, &many, err));
    double steps = (double)first * (LONGER - 1) * trips;
    *step = (timed){.ns = (many.ns - few.ns) / steps,
                    .width = (many.width + few.width) / 2 / steps,
                    .ticks = (many.ticks - few.ticks) / steps};
    return step->ns > 0
               ? EV_OK
               : ev_fail(err, EV_BAD, "48 steps took no longer than 16, so a step has no time");
}

/* ---- empty blocks ---- */

/* One block an SM at a time: each has all the shared memory that a block may have. */
static ev_status time_empty(rig *r, timed *once, timed *each, ev_error *err) {
    timed many;
    EV_TRY(make_buffers(r, 1, err));
    uint32_t sms = r->blocks;
    r->dynamic_shared = (uint32_t)number(r, GPU_SHARED_BLOCK);
    ev_status status = time_length(r, 0, once, err);
    r->blocks = sms * (1 + EMPTY_WAVES);
    if (status == EV_OK)
        status = time_length(r, 0, &many, err);
    r->dynamic_shared = 0;
    EV_TRY(status);
    *each = (timed){.ns = (many.ns - once->ns) / EMPTY_WAVES,
                    .width = (many.width + once->width) / 2 / EMPTY_WAVES};
    return EV_OK;
}

/* ---- figures ---- */

/* What the instructions beside the step's own cost, in cycles of an SM. */
static double beside_cycles(const rig *r, double threads) {
    const probe *p = r->p;
    for (int i = 0; i < PROBE_COUNT; i++) {
        if (strcmp(calibrate_probes[i].name, p->beside) == 0)
            return p->beside_results * threads / number(r, calibrate_probes[i].key);
    }
    return 0;
}

static double figure_of(const rig *r, const timed *t) {
    const probe *p = r->p;
    double threads = (double)p->shape->threads * p->shape->chains; /* and chains, of one block */
    double cycles = t->ns * r->clock_mhz * 1e-3;
    switch (p->figure) {
    case FIGURE_CYCLES:
        return cycles / p->results;
    case FIGURE_SM_RATE:
        return p->results * threads / (cycles - beside_cycles(r, threads));
    case FIGURE_CHIP_RATE:
        return p->results * threads * r->blocks / cycles;
    case FIGURE_CHIP_GBS:
        return p->results * threads * r->blocks / t->ns;
    case FIGURE_SM_GBS:
        return p->results * threads / t->ns * number(r, GPU_SM_COUNT);
    case FIGURE_MHZ:
        return t->ticks / t->ns * 1e3;
    case FIGURE_BLOCK:
        return cycles;
    case FIGURE_LAUNCH:
        break;
    }
    return t->ns * 1e-3;
}

static ev_status measure(rig *r, timed *t, ev_error *err) {
    if (r->p->step[0] != '\0')
        return time_step(r, t, err);
    timed once, each;
    EV_TRY(time_empty(r, &once, &each, err));
    *t = each;
    if (r->p->figure == FIGURE_LAUNCH)
        *t = (timed){.ns = once.ns - each.ns, .width = once.width};
    return EV_OK;
}

/* Why a probe is not for this device; NULL: it is. */
static const char *reason_against(const rig *r) {
    const probe *p = r->p;
    if (p->sm > device_properties_of(r->d)->sm)
        return "this GPU has no such instruction";
    if (p->figure == FIGURE_MHZ && is_modelled(r))
        return "a modelled clock is the description's";
    if (gpu_get(r->base, p->key) == 0 && is_modelled(r))
        return "the description has none";
    return NULL;
}

static void judge(const rig *r, const timed *t, calibrate_row *row) {
    double low = 0, high = 0, value = figure_of(r, t);
    gpu_key_range(row->key, &low, &high);
    if (value >= low && value <= high) {
        row->value = value;
        row->spread = t->ns > 0 ? t->width / t->ns : 0;
        return;
    }
    (void)snprintf(row->why, sizeof row->why, "came out as %g, out of %g to %g", value, low, high);
}

static ev_status run_probe(rig *r, calibrate_row *row, ev_error *err) {
    timed t = {.ns = 0};
    ev_error why = {.text = ""};
    const char *against = reason_against(r);
    *row = (calibrate_row){.probe = r->p->name,
                           .key = r->p->key,
                           .base = gpu_get(r->base, r->p->key),
                           .doc = r->p->doc};
    if (against != NULL) {
        (void)snprintf(row->why, sizeof row->why, "%s", against);
        return EV_OK;
    }
    ev_status status = measure(r, &t, &why);
    device_clear(r->d);
    if (status == EV_OK)
        judge(r, &t, row);
    else if (status == EV_BAD)
        (void)snprintf(row->why, sizeof row->why, "%.150s", why.text);
    else
        return ev_fail(err, status, "%s: %s", r->p->name, why.text);
    return EV_OK;
}

/* ---- all of them ---- */

static bool is_wanted(const calibrate_options *o, const probe *p) {
    return o->only == NULL || strcasecmp(o->only, p->name) == 0 ||
           strcmp(o->only, gpu_key_name(p->key)) == 0;
}

static ev_status check_only(const calibrate_options *o, ev_error *err) {
    ev_str known = EV_STR_EMPTY;
    bool found = false;
    for (int i = 0; i < PROBE_COUNT; i++) {
        found = found || is_wanted(o, &calibrate_probes[i]);
        ev_str_printf(&known, "%s%s", i > 0 ? ", " : "", calibrate_probes[i].name);
    }
    ev_status status = found ? EV_OK
                             : ev_fail(err, EV_BAD, "no micro-benchmark '%s'; there are %s",
                                       o->only, ev_str_text(&known));
    ev_str_free(&known);
    return status;
}

/* The first `out->count` of those that are wanted are there. */
static ev_status run_all(rig *r, const calibrate_options *o, calibration *out, bool *again,
                         ev_error *err) {
    size_t skipped = 0, before = out->count;
    for (int i = 0; i < PROBE_COUNT && !ev_stop_asked(); i++) {
        r->p = &calibrate_probes[i];
        if (!is_wanted(o, r->p))
            continue;
        if (skipped < before) {
            skipped++;
            continue;
        }
        *again = device_is_spent(r->d);
        if (*again)
            return EV_OK;
        calibrate_row *row = &out->rows[out->count];
        EV_TRY(run_probe(r, row, err));
        out->count++;
        if (r->p->figure == FIGURE_MHZ && row->value > 0)
            r->clock_mhz = row->value;
        if (o->heard != NULL)
            EV_TRY(o->heard(o->context, row, err));
    }
    return EV_OK;
}

ev_status calibrate_run(device *d, const gpu *base, const calibrate_options *options,
                        calibration *out, bool *again, ev_error *err) {
    const calibration *before = options->before;
    *again = false;
    EV_TRY(check_only(options, err));
    calibration made = {.rows = calloc(PROBE_COUNT, sizeof *made.rows)};
    if (made.rows == NULL)
        return ev_fail_memory(err, PROBE_COUNT * sizeof *made.rows);
    rig r = {.d = d, .base = base, .done = &made};
    r.clock_mhz = number(&r, GPU_BOOST_MHZ);
    if (before != NULL && before->count > 0) {
        memcpy(made.rows, before->rows, before->count * sizeof *made.rows);
        made.count = before->count;
        r.clock_mhz = before->clock_mhz;
    }
    ev_status status = run_all(&r, options, &made, again, err);
    device_clear(d);
    made.clock_mhz = r.clock_mhz;
    if (status == EV_OK)
        *out = made;
    else
        calibrate_free(&made);
    return status;
}

void calibrate_free(calibration *c) {
    free(c->rows);
    *c = (calibration){0};
}
