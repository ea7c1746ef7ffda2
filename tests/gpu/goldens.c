/* goldens DEVICE [--seconds N] [--rows FILE] [--processes N] [FAMILY...]: the goldens of the PTX
 * table on a device, which may be a GPU: the bits that the PTX ISA asks for, and so the virtual
 * machine's. Prints one JSON object on a line: rows of the table by outcome, and what differed.
 * Goldens that end in a trap are left out; after N seconds the rest is, and counted. FILE gets each
 * launch as soon as it is judged, one JSON object a line. Without families: matrix instructions
 * too, against the twin. A signal ends the run early: what there is is printed, with "stopped":
 * true. Exit codes: 0, 1 where something differed, 2 for wrong usage, 3 where the device failed or
 * a signal came.
 *
 * On a GPU most of the time is ptxas, once a golden. As many processes as there are processors, 8
 * at most, share the goldens, unless --processes gives a smaller number; each has its own context.
 * A process that cannot open the device is tried again with fewer beside it (shares.h); FILE then
 * may have launches twice. Where a GPU differs by a known fault of ptxas (golden_faults.def), the
 * golden counts as known. */
#include "base/file.h"
#include "base/lines.h"
#include "base/proc.h"
#include "base/relay.h"
#include "base/stop.h"
#include "fitness/device/device.h"
#include "tests/fitness/ptx/golden_plan.h"
#include "tests/gpu/shares.h"
#include "tests/gpu/tensor.h"

#include <dirent.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOLDER "tests/fitness/ptx"
#define POISON 0xee
#define MOST_TOLD 40
#define MOST_PROCESSES 8

typedef struct session {
    device *d;
    ev_arena *arena;
    json_t *rows;   /* name -> [agreed, differed, refused, known], in plans */
    json_t *tensor; /* empty: not asked for */
    json_t *told;   /* of what differed or was refused, the first few */
    json_t *faults; /* of the assembler: reason -> plans that differ by it alone */
    json_t *on;     /* what the device is */
    unsigned share, shares;
    uint64_t values;
    size_t plans, differed, refused, traps, unfinished;
    double until;    /* by the clock; 0: no limit */
    ev_lines *lines; /* gets each launch; NULL: no file */
    size_t passed;   /* plans that this process came to */
    size_t done;     /* that earlier processes did */
    size_t forms;    /* of matrix instructions: the next one */
    ev_error lost;   /* the device is gone */
    bool is_lost;
} session;

typedef enum outcome { AGREED, DIFFERED, REFUSED, KNOWN } outcome;

/* ---- what is told ---- */

static void note_failure(session *s, const ev_error *why) {
    s->is_lost = true;
    s->lost = *why;
}

static void add_line(session *s, const golden_plan *p, outcome what) {
    static const char *const words[] = {"agreed", "differed", "refused", "known"};
    ev_error err = {0};
    json_t *line = json_pack("{s:s, s:i, s:b, s:s}", "row", p->insn->row, "line",
                             (int)p->first->line, "guarded", p->guarded, "outcome", words[what]);
    if (ev_lines_add(s->lines, line, &err) != EV_OK)
        note_failure(s, &err);
    json_decref(line);
}

static void add_to(json_t *number, json_int_t more) {
    (void)json_integer_set(number, json_integer_value(number) + more);
}

static void count_row(session *s, const golden_plan *p, outcome what) {
    json_t *row = json_object_get(s->rows, p->insn->row);
    if (row == NULL) {
        row = json_pack("[i, i, i, i]", 0, 0, 0, 0);
        (void)json_object_set_new(s->rows, p->insn->row, row);
    }
    add_to(json_array_get(row, what), 1);
    s->plans++;
    s->differed += what == DIFFERED;
    s->refused += what == REFUSED;
    if (s->lines != NULL)
        add_line(s, p, what);
}

static void add_count(json_t *counts, const char *key, json_int_t more) {
    if (json_object_get(counts, key) == NULL)
        (void)json_object_set_new(counts, key, json_integer(0));
    add_to(json_object_get(counts, key), more);
}

static void tell(session *s, const golden_plan *p, const char *what, const char *how) {
    if (json_array_size(s->told) >= MOST_TOLD)
        return;
    (void)json_array_append_new(s->told,
                                json_pack("{s:s, s:i, s:s, s:b, s:s, s:s}", "row", p->insn->row,
                                          "line", (int)p->first->line, "text", p->insn->text,
                                          "guarded", p->guarded, "what", what, "how", how));
}

/* ---- comparing ---- */

typedef struct bench {
    device_buffer input, output, memory;
    uint8_t *bytes; /* to write or to read */
} bench;

/* Whether a lane stored its register; devices without shadow memory tell it by the poison. */
static bool is_stored(session *s, const bench *b, size_t slot) {
    uint8_t written = 0;
    uint64_t many = 0;
    ev_error err;
    ev_status status =
        device_written(s->d, b->output, 1, slot * GOLDEN_SLOT, 1, &written, &many, &err);
    return status != EV_OK || written != 0;
}

/* The fault of the assembler by which a lane may differ on a GPU; NULL: none. */
static const golden_fault *fault_of(const session *s, const golden_plan *p, size_t lane) {
    return device_properties_of(s->d)->modelled ? NULL : golden_fault_of(p, lane);
}

static bool lane_fits(session *s, const golden_plan *p, const bench *b, size_t slot, size_t lane) {
    const golden_slot *r = &p->slots[slot];
    size_t at = lane * p->slot_count + slot;
    const golden_value *v = golden_value_of(p, r, lane, true);
    golden_value as_before = {
        .kind = GOLDEN_EXACT, .count = 1, .either = {golden_bits_before(p, r, lane)}};
    uint64_t got = 0;
    memcpy(&got, b->bytes + at * GOLDEN_SLOT, GOLDEN_SLOT);
    if (v == NULL || (p->guarded && lane % 2 != 0))
        v = &as_before;
    return v->kind == GOLDEN_UNWRITTEN ? !is_stored(s, b, at)
                                       : golden_value_fits(v, got & golden_mask(r->bits));
}

static int compare_bits(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool order_fits(const golden_plan *p, const golden_slot *r, size_t slot,
                       const uint8_t *output) {
    uint64_t want[GOLDEN_LANES * 2], got[GOLDEN_LANES * 2];
    for (size_t lane = 0; lane < p->lanes; lane++) {
        want[lane] = golden_value_of(p, r, lane, true)->either[0];
        memcpy(&got[lane], output + (lane * p->slot_count + slot) * GOLDEN_SLOT, GOLDEN_SLOT);
        got[lane] &= golden_mask(r->bits);
    }
    qsort(want, p->lanes, sizeof *want, compare_bits);
    qsort(got, p->lanes, sizeof *got, compare_bits);
    return memcmp(want, got, p->lanes * sizeof *want) == 0;
}

/* Sets *fault where a lane differs by one that is known. */
static bool registers_fit(session *s, const golden_plan *p, const bench *b,
                          const golden_fault **fault, char how[200]) {
    for (size_t i = 0; i < p->slot_count; i++) {
        const golden_slot *r = &p->slots[i];
        s->values += p->lanes;
        if (r->out != NULL && r->out->any_order) {
            (void)snprintf(how, 200, "%%%s, in any order", r->name);
            if (!order_fits(p, r, i, b->bytes))
                return false;
            continue;
        }
        for (size_t lane = 0; lane < p->lanes; lane++) {
            const uint8_t *at = b->bytes + (lane * p->slot_count + i) * GOLDEN_SLOT;
            uint64_t got = 0;
            memcpy(&got, at, sizeof got);
            (void)snprintf(how, 200, "lane %zu, %%%s: got %" PRIx64, lane, r->name,
                           got & golden_mask(r->bits));
            if (lane_fits(s, p, b, i, lane))
                continue;
            if (fault_of(s, p, lane) == NULL)
                return false;
            *fault = fault_of(s, p, lane);
        }
    }
    return true;
}

static bool memory_fits(session *s, const golden_plan *p, const uint8_t *got, char how[200]) {
    const golden_operand *want =
        p->first->memory_after.count ? &p->first->memory_after : &p->first->memory;
    for (size_t i = 0; i < want->count; i++) {
        const golden_value *v = &want->values[i];
        uint64_t bits = 0;
        memcpy(&bits, got, v->bits / 8u);
        got += v->bits / 8u;
        s->values++;
        (void)snprintf(how, 200, "memory element %zu: got %" PRIx64, i, bits);
        if (!golden_value_fits(v, bits))
            return false;
    }
    return true;
}

/* ---- running ---- */

static ev_status fill(session *s, const golden_plan *p, bench *b, golden_params *params,
                      ev_error *err) {
    size_t bytes = golden_plan_bytes(p), cells = golden_memory_bytes(&p->first->memory);
    device_clear(s->d);
    b->bytes = calloc(1, bytes + cells + GOLDEN_SLOT);
    if (b->bytes == NULL)
        return ev_fail_memory(err, bytes);
    EV_TRY(device_alloc(s->d, bytes, VM_BUFFER_IN, "input", &b->input, err));
    EV_TRY(device_alloc(s->d, bytes, VM_BUFFER_OUT, "output", &b->output, err));
    EV_TRY(device_alloc(s->d, cells > 0 ? cells : GOLDEN_SLOT, VM_BUFFER_INOUT, "memory",
                        &b->memory, err));
    golden_plan_fill(p, b->bytes);
    EV_TRY(device_write(s->d, b->input, 0, b->bytes, bytes, err));
    golden_memory_fill(&p->first->memory, b->bytes);
    EV_TRY(device_write(s->d, b->memory, 0, b->bytes, cells > 0 ? cells : GOLDEN_SLOT, err));
    *params = golden_plan_params(device_address(s->d, b->input), device_address(s->d, b->output),
                                 device_address(s->d, b->memory));
    return device_reset(s->d, POISON, err);
}

static ev_status compare(session *s, const golden_plan *p, const bench *b, ev_error *err) {
    char how[200] = "";
    const golden_fault *fault = NULL;
    EV_TRY(device_read(s->d, b->output, 0, b->bytes, golden_plan_bytes(p), err));
    bool fits = registers_fit(s, p, b, &fault, how);
    if (fits) {
        EV_TRY(
            device_read(s->d, b->memory, 0, b->bytes, golden_memory_bytes(&p->first->memory), err));
        fits = memory_fits(s, p, b->bytes, how);
    }
    if (!fits)
        tell(s, p, "differs", how);
    else if (fault != NULL)
        add_count(s->faults, fault->reason, 1);
    outcome if_fits = fault != NULL ? KNOWN : AGREED;
    count_row(s, p, fits ? if_fits : DIFFERED);
    return EV_OK;
}

static ev_status run_kernel(session *s, const golden_plan *p, const device_kernel *k, bench *b,
                            ev_error *err) {
    golden_params params;
    device_outcome ended;
    EV_TRY(fill(s, p, b, &params, err));
    device_launch l = {.params = &params, .dynamic_shared = p->first->dynamic, .fuel = 1u << 24};
    golden_plan_shape(p, l.grid, l.block);
    EV_TRY(device_run(s->d, k, &l, &ended, err));
    if (ended.ok)
        return compare(s, p, b, err);
    count_row(s, p, DIFFERED);
    tell(s, p, "fault", ended.fault.message);
    return EV_OK;
}

static void run_plan(session *s, const golden_plan *p) {
    device_kernel *k = NULL;
    bench b = {0};
    ev_error err = {0};
    char *text = golden_plan_text_for(p, device_properties_of(s->d)->sm);
    ev_status status = device_load(s->d, text, strlen(text), "golden", &k, &err);
    if (status == EV_OK)
        status = run_kernel(s, p, k, &b, &err);
    if (status == EV_BAD) {
        count_row(s, p, REFUSED);
        tell(s, p, "refused", err.text);
    } else if (status != EV_OK) {
        note_failure(s, &err);
    }
    device_unload(k);
    free(b.bytes);
    free(text);
}

static void on_plan(void *context, golden_plan *p, bool is_sound) {
    session *s = context;
    if (s->is_lost || device_is_spent(s->d))
        return;
    size_t number = s->passed++;
    if (number < s->done || number % s->shares != s->share)
        return;
    if (p->first->trap != NULL)
        s->traps++;
    else if (ev_stop_asked() || (s->until > 0 && ev_clock_now() > s->until))
        s->unfinished++;
    else if (is_sound)
        run_plan(s, p);
}

/* ---- files ---- */

static bool is_wanted(const char *name, char *const *families, int count) {
    char family[64] = "";
    if (sscanf(name, "goldens_%60[a-z].txt", family) != 1)
        return false;
    for (int i = 0; i < count; i++) {
        if (strcmp(families[i], family) == 0)
            return true;
    }
    return count == 0;
}

static ev_status run_file(session *s, const char *path, ev_error *err) {
    golden_file file;
    ev_arena_reset(s->arena);
    EV_TRY(golden_read(path, s->arena, &file, err));
    for (size_t i = 0; i < file.count && !s->is_lost; i++)
        golden_each_plan(&file.insns[i], on_plan, s);
    if (s->is_lost)
        *err = s->lost;
    return s->is_lost ? s->lost.status : EV_OK;
}

static ev_status run_files(session *s, char *const *families, int count, ev_error *err) {
    char *home = ev_path_home();
    char *folder = home != NULL ? ev_path_join(home, FOLDER) : NULL;
    struct dirent **names = NULL;
    int found = folder != NULL ? scandir(folder, &names, NULL, alphasort) : -1;
    ev_status status = found < 0
                           ? ev_fail(err, EV_BAD, "the folder %s is not there; set EVOKE_HOME",
                                     folder != NULL ? folder : FOLDER)
                           : EV_OK;
    for (int i = 0; i < found; i++) {
        char *path = ev_path_join(folder, names[i]->d_name);
        if (status == EV_OK && path != NULL && is_wanted(names[i]->d_name, families, count))
            status = run_file(s, path, err);
        free(path);
        free(names[i]);
    }
    free(names);
    free(folder);
    free(home);
    return status;
}

/* Matrix instructions, which have no goldens of this form: against the device's twin. */
static ev_status run_tensor(session *s, ev_error *err) {
    const char *twin = device_properties_of(s->d)->twin;
    device *vm = NULL;
    if (twin[0] == '\0')
        return EV_OK;
    EV_TRY(device_open(twin, &vm, err));
    if (json_object_size(s->tensor) == 0)
        (void)json_object_update_new(
            s->tensor, json_pack("{s:i, s:[], s:[]}", "forms", 0, "differed", "refused"));
    ev_status status = tensor_compare(s->d, vm, s->lines, s->tensor, &s->forms, s->shares, err);
    device_close(vm);
    return status;
}

/* ---- the program ---- */

static json_t *rows_with(const session *s, outcome what) {
    json_t *list = json_array();
    const char *name = NULL;
    json_t *row = NULL;
    json_object_foreach(s->rows, name, row) {
        if (json_integer_value(json_array_get(row, what)) > 0)
            (void)json_array_append_new(list, json_string(name));
    }
    return list;
}

static ev_status print(const session *s, ev_error *err) {
    json_t *all = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:O, s:O}", "rows",
                            (json_int_t)json_object_size(s->rows), "plans", (json_int_t)s->plans,
                            "values", (json_int_t)s->values, "differed", (json_int_t)s->differed,
                            "refused", (json_int_t)s->refused, "left_out", (json_int_t)s->traps,
                            "unfinished", (json_int_t)s->unfinished, "rows_that_differ",
                            rows_with(s, DIFFERED), "rows_refused", rows_with(s, REFUSED),
                            "rows_known", rows_with(s, KNOWN), "known", s->faults, "told", s->told);
    (void)json_object_update(all, s->on);
    if (json_object_size(s->tensor) > 0)
        (void)json_object_set(all, "tensor", s->tensor);
    if (ev_stop_asked())
        (void)json_object_set_new(all, "stopped", json_true());
    char *text = json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(all);
    if (text == NULL)
        return ev_fail_memory(err, 1);
    (void)puts(text);
    free(text);
    return EV_OK;
}

typedef struct words {
    const char *device, *rows;
    double seconds; /* 0: no limit */
    long processes; /* 0: as many as fit the device and this machine */
    char *const *families;
    int family_count; /* 0: all */
} words;

static ev_status read_words(int argc, char **argv, words *out, ev_error *err) {
    int at = 2;
    if (argc < 2)
        return ev_fail(err, EV_BAD,
                       "usage: goldens DEVICE [--seconds N] [--rows FILE] [--processes N] "
                       "[FAMILY...]");
    *out = (words){.device = argv[1]};
    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        if (strcmp(argv[at], "--seconds") == 0)
            out->seconds = strtod(argv[at + 1], NULL);
        else if (strcmp(argv[at], "--rows") == 0)
            out->rows = argv[at + 1];
        else if (strcmp(argv[at], "--processes") == 0)
            out->processes = strtol(argv[at + 1], NULL, 10);
        else
            return ev_fail(err, EV_BAD, "no option %s; there are --seconds, --rows and --processes",
                           argv[at]);
    }
    out->families = argv + at;
    out->family_count = argc - at;
    return EV_OK;
}

static ev_status run_rest(session *s, const words *w, ev_error *err) {
    s->passed = 0;
    EV_TRY(run_files(s, w->families, w->family_count, err));
    if (w->family_count == 0 && !ev_stop_asked() && !device_is_spent(s->d))
        EV_TRY(run_tensor(s, err));
    return ev_stop_asked() ? ev_fail(err, EV_INFRA, "stopped by a signal") : EV_OK;
}

/* ---- one process after another: base/relay.h ---- */

typedef struct run_of {
    words w;
    session s;
    ev_str text;   /* the result of a share, or why the device was not opened */
    bool unopened; /* the machine or the driver had no room for this process */
    int exit_code; /* the one that goes with the result */
} run_of;

#define UNOPENED "!" /* begins a baton that says why the device was not opened; no JSON does */

static void new_counts(session *s) {
    s->rows = json_object();
    s->told = json_array();
    s->tensor = json_object();
    s->faults = json_object();
    s->on = json_object();
}

static void free_counts(session *s) {
    json_decref(s->rows);
    json_decref(s->told);
    json_decref(s->tensor);
    json_decref(s->faults);
    json_decref(s->on);
}

#define STATE "{s:i, s:[I, I, I, I, I, I, I, I], s:O, s:O, s:O, s:O, s:O}"

/* An array of counts, then what is counted by name. */
static ev_status hand_over(const session *s, int code, ev_str *baton, ev_error *err) {
    json_t *all =
        json_pack(STATE, "code", code, "counts", (json_int_t)s->passed, (json_int_t)s->forms,
                  (json_int_t)s->values, (json_int_t)s->plans, (json_int_t)s->differed,
                  (json_int_t)s->refused, (json_int_t)s->traps, (json_int_t)s->unfinished, "rows",
                  s->rows, "tensor", s->tensor, "told", s->told, "faults", s->faults, "on", s->on);
    char *text = json_dumps(all, JSON_COMPACT);
    json_decref(all);
    if (text == NULL)
        return ev_fail_memory(err, 1);
    ev_str_append(baton, text);
    free(text);
    return EV_OK;
}

/* Of a session whose counts are not there. */
static ev_status read_state(session *s, const ev_str *baton, int *code, ev_error *err) {
    json_t *all = json_loadb(ev_str_text(baton), baton->length, 0, NULL);
    json_int_t n[8] = {0};
    if (json_unpack(all, STATE, "code", code, "counts", &n[0], &n[1], &n[2], &n[3], &n[4], &n[5],
                    &n[6], &n[7], "rows", &s->rows, "tensor", &s->tensor, "told", &s->told,
                    "faults", &s->faults, "on", &s->on) != 0)
        return ev_fail_memory(err, baton->length);
    json_decref(all);
    s->done = (size_t)n[0];
    s->forms = (size_t)n[1];
    s->values = (uint64_t)n[2];
    s->plans = (size_t)n[3];
    s->differed = (size_t)n[4];
    s->refused = (size_t)n[5];
    s->traps = (size_t)n[6];
    s->unfinished = (size_t)n[7];
    return EV_OK;
}

static ev_status run_leg(void *context, ev_str *baton, bool *again, ev_error *err) {
    run_of *r = context;
    session *s = &r->s;
    ev_error why = {0};
    ev_status status = device_open(r->w.device, &s->d, err);
    if (status == EV_INFRA) {
        ev_str_printf(baton, UNOPENED "%s", err->text);
        return ev_str_status(baton, err);
    }
    if (status != EV_OK)
        return status;
    const device_properties *p = device_properties_of(s->d);
    json_t *on = json_pack("{s:s, s:s, s:b, s:s}", "device", p->id, "name", p->name, "modelled",
                           p->modelled, "driver", p->driver);
    (void)json_object_update_new(s->on, on);
    status = run_rest(s, &r->w, &why);
    *again = status == EV_OK && device_is_spent(s->d);
    /* a device that is lost leaves the results so far */
    if (status != EV_OK && (s->share == 0 || !ev_stop_asked()))
        (void)fprintf(stderr, "goldens: %s\n", why.text);
    status = hand_over(s, ev_status_exit_code(status), baton, err);
    device_close(s->d);
    return status;
}

static ev_status take_leg(void *context, const ev_str *baton, bool again, ev_error *err) {
    run_of *r = context;
    int code = 0;
    if (again) {
        free_counts(&r->s);
        return read_state(&r->s, baton, &code, err);
    }
    r->unopened = strncmp(ev_str_text(baton), UNOPENED, 1) == 0;
    ev_str_append(&r->text, ev_str_text(baton) + r->unopened);
    return ev_str_status(&r->text, err);
}

/* ---- several processes at once: shares.h ---- */

static unsigned process_count(const words *w) {
    long count = w->processes;
    if (count <= 0)
        count = device_may_be_spent(w->device) ? sysconf(_SC_NPROCESSORS_ONLN) : 1;
    return (unsigned)(count < MOST_PROCESSES ? count : MOST_PROCESSES);
}

static ev_status work_share(void *context, unsigned share, ev_str *out, bool *again,
                            ev_error *err) {
    run_of r = *(const run_of *)context;
    const ev_relay relay = {
        .context = &r, .run = run_leg, .take = take_leg, .apart = device_may_be_spent(r.w.device)};
    r.s.arena = ev_arena_new();
    r.s.share = share;
    r.s.forms = share;
    new_counts(&r.s);
    ev_status status = ev_relay_run(&relay, err);
    *again = status == EV_OK && r.unopened;
    if (*again)
        status = ev_fail(err, EV_INFRA, "%s", ev_str_text(&r.text));
    else
        ev_str_append_n(out, ev_str_text(&r.text), r.text.length);
    ev_str_free(&r.text);
    free_counts(&r.s);
    ev_arena_free(r.s.arena);
    return status;
}

static void add_rows(json_t *rows, json_t *more) {
    const char *name = NULL;
    json_t *row = NULL, *number = NULL;
    size_t i = 0;
    json_object_foreach(more, name, row) {
        if (json_object_get(rows, name) == NULL) {
            (void)json_object_set(rows, name, row);
            continue;
        }
        json_array_foreach(row, i, number) {
            add_to(json_array_get(json_object_get(rows, name), i), json_integer_value(number));
        }
    }
}

static void add_tensor(json_t *all, json_t *more) {
    if (json_object_size(all) == 0) {
        (void)json_object_update(all, more);
        return;
    }
    add_to(json_object_get(all, "forms"), json_integer_value(json_object_get(more, "forms")));
    (void)json_array_extend(json_object_get(all, "differed"), json_object_get(more, "differed"));
    (void)json_array_extend(json_object_get(all, "refused"), json_object_get(more, "refused"));
}

static void add_session(session *all, const session *one) {
    const char *reason = NULL;
    json_t *number = NULL;
    all->values += one->values;
    all->plans += one->plans;
    all->differed += one->differed;
    all->refused += one->refused;
    all->traps += one->traps;
    all->unfinished += one->unfinished;
    add_rows(all->rows, one->rows);
    add_tensor(all->tensor, one->tensor);
    (void)json_array_extend(all->told, one->told);
    while (json_array_size(all->told) > MOST_TOLD)
        (void)json_array_remove(all->told, json_array_size(all->told) - 1);
    json_object_foreach(one->faults, reason, number) {
        add_count(all->faults, reason, json_integer_value(number));
    }
    (void)json_object_update(all->on, one->on);
}

static ev_status take_share(void *context, const ev_str *out, ev_error *err) {
    run_of *r = context;
    session one = {.rows = NULL};
    int code = 0;
    EV_TRY(read_state(&one, out, &code, err));
    add_session(&r->s, &one);
    r->exit_code = code > r->exit_code ? code : r->exit_code;
    free_counts(&one);
    return EV_OK;
}

static ev_status run_words(run_of *r, ev_error *err) {
    session *s = &r->s;
    const shares all = {
        .context = r, .count = process_count(&r->w), .work = work_share, .take = take_share};
    *s = (session){.shares = all.count};
    new_counts(s);
    s->until = r->w.seconds > 0 ? ev_clock_now() + r->w.seconds : 0;
    ev_status status = ev_lines_open(r->w.rows, &s->lines, err);
    if (status == EV_OK)
        status = shares_run(&all, err);
    s->differed += json_array_size(json_object_get(s->tensor, "differed"));
    if (r->exit_code == 0)
        r->exit_code = s->differed > 0 || s->plans == 0;
    ev_error ignored;
    if (json_object_size(s->on) > 0) /* a share has a result */
        (void)print(s, &ignored);
    ev_lines_close(s->lines);
    free_counts(s);
    return status;
}

int main(int argc, char **argv) {
    ev_error err = {0};
    run_of r = {.exit_code = 0};
    ev_stop_catch();
    ev_status status = read_words(argc, argv, &r.w, &err);
    if (status == EV_OK)
        status = run_words(&r, &err);
    if (status == EV_OK)
        return r.exit_code;
    (void)fprintf(stderr, "goldens: %s\n", err.text);
    return ev_status_exit_code(status);
}
