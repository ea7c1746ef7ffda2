/* goldens DEVICE [--seconds N] [--rows FILE] [FAMILY...]: the goldens of the PTX table on a device,
 * which may be a GPU: the bits that the PTX ISA asks for, and so the virtual machine's. Prints one
 * JSON object on a line: rows of the table by outcome, and what differed. Goldens that end in a
 * trap are left out; after N seconds the rest is, and counted. FILE gets each launch as soon as it
 * is judged, one JSON object a line. Without families: matrix instructions too, against the twin. A
 * signal ends the run early: what there is is printed, with "stopped": true. Exit codes: 0, 1 where
 * something differed, 2 for wrong usage, 3 where the device failed or a signal came. */
#include "base/file.h"
#include "base/lines.h"
#include "base/proc.h"
#include "base/relay.h"
#include "base/stop.h"
#include "fitness/device/device.h"
#include "tests/fitness/ptx/golden_plan.h"
#include "tests/gpu/tensor.h"

#include <dirent.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER "tests/fitness/ptx"
#define POISON 0xee
#define MOST_TOLD 40

typedef struct session {
    device *d;
    ev_arena *arena;
    json_t *rows;   /* name -> [agreed, differed, refused], in plans */
    json_t *tensor; /* empty: not asked for */
    json_t *told;   /* of what differed or was refused, the first few */
    uint64_t values;
    size_t plans, differed, refused, traps, unfinished;
    double until;    /* by the clock; 0: no limit */
    ev_lines *lines; /* gets each launch; NULL: no file */
    size_t passed;   /* plans that this process came to */
    size_t done;     /* that earlier processes did */
    size_t forms;    /* of matrix instructions that are done */
    ev_error lost;   /* the device is gone */
    bool is_lost;
} session;

typedef enum outcome { AGREED, DIFFERED, REFUSED } outcome;

/* ---- what is told ---- */

static void note_failure(session *s, const ev_error *why) {
    s->is_lost = true;
    s->lost = *why;
}

static void add_line(session *s, const golden_plan *p, outcome what) {
    static const char *const words[] = {"agreed", "differed", "refused"};
    ev_error err = {0};
    json_t *line = json_pack("{s:s, s:i, s:b, s:s}", "row", p->insn->row, "line",
                             (int)p->first->line, "guarded", p->guarded, "outcome", words[what]);
    if (ev_lines_add(s->lines, line, &err) != EV_OK)
        note_failure(s, &err);
    json_decref(line);
}

static void count_row(session *s, const golden_plan *p, outcome what) {
    json_t *row = json_object_get(s->rows, p->insn->row);
    if (row == NULL) {
        row = json_pack("[i, i, i]", 0, 0, 0);
        (void)json_object_set_new(s->rows, p->insn->row, row);
    }
    json_t *cell = json_array_get(row, what);
    (void)json_integer_set(cell, json_integer_value(cell) + 1);
    s->plans++;
    s->differed += what == DIFFERED;
    s->refused += what == REFUSED;
    if (s->lines != NULL)
        add_line(s, p, what);
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

static bool registers_fit(session *s, const golden_plan *p, const bench *b, char how[200]) {
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
            if (!lane_fits(s, p, b, i, lane))
                return false;
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
    EV_TRY(device_read(s->d, b->output, 0, b->bytes, golden_plan_bytes(p), err));
    bool fits = registers_fit(s, p, b, how);
    if (fits) {
        EV_TRY(
            device_read(s->d, b->memory, 0, b->bytes, golden_memory_bytes(&p->first->memory), err));
        fits = memory_fits(s, p, b->bytes, how);
    }
    count_row(s, p, fits ? AGREED : DIFFERED);
    if (!fits)
        tell(s, p, "differs", how);
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
    if (s->is_lost || device_is_spent(s->d) || s->passed++ < s->done)
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
    ev_status status = tensor_compare(s->d, vm, s->lines, s->tensor, &s->forms, err);
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

static ev_status print(const session *s, ev_str *out, ev_error *err) {
    const device_properties *p = device_properties_of(s->d);
    json_t *all =
        json_pack("{s:s, s:s, s:b, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:O}",
                  "device", p->id, "name", p->name, "modelled", p->modelled, "driver", p->driver,
                  "rows", (json_int_t)json_object_size(s->rows), "plans", (json_int_t)s->plans,
                  "values", (json_int_t)s->values, "differed", (json_int_t)s->differed, "refused",
                  (json_int_t)s->refused, "left_out", (json_int_t)s->traps, "unfinished",
                  (json_int_t)s->unfinished, "rows_that_differ", rows_with(s, DIFFERED),
                  "rows_refused", rows_with(s, REFUSED), "told", s->told);
    if (json_object_size(s->tensor) > 0)
        (void)json_object_set(all, "tensor", s->tensor);
    if (ev_stop_asked())
        (void)json_object_set_new(all, "stopped", json_true());
    char *text = json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(all);
    if (text == NULL)
        return ev_fail_memory(err, 1);
    ev_str_append(out, text);
    free(text);
    return ev_str_status(out, err);
}

typedef struct words {
    const char *device, *rows;
    double seconds; /* 0: no limit */
    char *const *families;
    int family_count; /* 0: all */
} words;

static ev_status read_words(int argc, char **argv, words *out, ev_error *err) {
    int at = 2;
    if (argc < 2)
        return ev_fail(err, EV_BAD,
                       "usage: goldens DEVICE [--seconds N] [--rows FILE] [FAMILY...]");
    *out = (words){.device = argv[1]};
    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        if (strcmp(argv[at], "--seconds") == 0)
            out->seconds = strtod(argv[at + 1], NULL);
        else if (strcmp(argv[at], "--rows") == 0)
            out->rows = argv[at + 1];
        else
            return ev_fail(err, EV_BAD, "no option %s; there are --seconds and --rows", argv[at]);
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
    ev_str text;   /* the result */
    int exit_code; /* and the one that goes with it */
} run_of;

/* An array of counts, then what is counted by name. */
static ev_status hand_over(const session *s, ev_str *baton, ev_error *err) {
    json_t *all =
        json_pack("{s:[I, I, I, I, I, I, I, I], s:O, s:O, s:O}", "counts", (json_int_t)s->passed,
                  (json_int_t)s->forms, (json_int_t)s->values, (json_int_t)s->plans,
                  (json_int_t)s->differed, (json_int_t)s->refused, (json_int_t)s->traps,
                  (json_int_t)s->unfinished, "rows", s->rows, "tensor", s->tensor, "told", s->told);
    char *text = json_dumps(all, JSON_COMPACT);
    json_decref(all);
    if (text == NULL)
        return ev_fail_memory(err, 1);
    ev_str_append(baton, text);
    free(text);
    return EV_OK;
}

static ev_status go_on(session *s, const ev_str *baton, ev_error *err) {
    json_t *all = json_loadb(ev_str_text(baton), baton->length, 0, NULL);
    json_int_t n[8] = {0};
    json_t *rows = NULL, *tensor = NULL, *told = NULL;
    if (json_unpack(all, "{s:[I, I, I, I, I, I, I, I], s:O, s:O, s:O}", "counts", &n[0], &n[1],
                    &n[2], &n[3], &n[4], &n[5], &n[6], &n[7], "rows", &rows, "tensor", &tensor,
                    "told", &told) != 0)
        return ev_fail_memory(err, baton->length);
    json_decref(all);
    json_decref(s->rows);
    json_decref(s->tensor);
    json_decref(s->told);
    s->rows = rows;
    s->tensor = tensor;
    s->told = told;
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

/* A device that is lost leaves the results so far: they are printed with its error. */
static ev_status finish(session *s, ev_status status, const ev_error *why, ev_str *out,
                        ev_error *err) {
    s->differed += json_array_size(json_object_get(s->tensor, "differed"));
    if (status != EV_OK)
        (void)fprintf(stderr, "goldens: %s\n", why->text);
    int code = status != EV_OK ? ev_status_exit_code(status) : s->differed > 0 || s->plans == 0;
    ev_str_char(out, (char)('0' + code));
    return print(s, out, err);
}

static ev_status run_leg(void *context, ev_str *baton, bool *again, ev_error *err) {
    run_of *r = context;
    ev_error why = {0};
    EV_TRY(device_open(r->w.device, &r->s.d, err));
    ev_status status = run_rest(&r->s, &r->w, &why);
    *again = status == EV_OK && device_is_spent(r->s.d);
    status = *again ? hand_over(&r->s, baton, err) : finish(&r->s, status, &why, baton, err);
    device_close(r->s.d);
    return status;
}

static ev_status take_leg(void *context, const ev_str *baton, bool again, ev_error *err) {
    run_of *r = context;
    if (again)
        return go_on(&r->s, baton, err);
    r->exit_code = ev_str_text(baton)[0] - '0';
    ev_str_append_n(&r->text, ev_str_text(baton) + 1, baton->length - 1);
    return ev_str_status(&r->text, err);
}

static ev_status run_words(run_of *r, ev_error *err) {
    session *s = &r->s;
    const ev_relay relay = {
        .context = r, .run = run_leg, .take = take_leg, .apart = device_may_be_spent(r->w.device)};
    *s = (session){.arena = ev_arena_new(),
                   .rows = json_object(),
                   .told = json_array(),
                   .tensor = json_object()};
    s->until = r->w.seconds > 0 ? ev_clock_now() + r->w.seconds : 0;
    ev_status status = ev_lines_open(r->w.rows, &s->lines, err);
    if (status == EV_OK)
        status = ev_relay_run(&relay, err);
    if (status == EV_OK)
        (void)puts(ev_str_text(&r->text));
    ev_lines_close(s->lines);
    json_decref(s->rows);
    json_decref(s->told);
    json_decref(s->tensor);
    ev_arena_free(s->arena);
    ev_str_free(&r->text);
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
