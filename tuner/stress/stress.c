/* The course of a stress: shapes, schedules and variations, and the report. */
#include "tuner/stress/stress.h"

#include "base/json.h"
#include "base/proc.h"
#include "base/stop.h"
#include "base/type.h"
#include "tuner/stress/inside.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DRAWS_MOST 20 /* draws of one shape, until one is legal */
#define SCHEDULES 2   /* beside the natural order */

/* ---- cases ---- */

void stress_case_copy(const stress_case *from, stress_case *to) {
    *to = *from;
    to->at.name = to->name;
    to->at.shape = to->shape;
}

ev_status stress_try(stressing *s, const stress_case *c, fitness_stood *stood,
                     fitness_verdict *verdict, ev_error *err) {
    s->run_count++;
    return fitness_stress_try(s->runs, &c->at, &c->with, stood, verdict, err);
}

/* ---- one shape ---- */

ev_status stress_try_with(stressing *s, stress_case *c, task_case_inputs with, fitness_stood *stood,
                          ev_error *err) {
    fitness_stood own = FITNESS_UNFIT;
    fitness_verdict verdict;
    c->with = with;
    if (!s->failed && !ev_stop_asked())
        EV_TRY(stress_try(s, c, &own, &verdict, err));
    if (own == FITNESS_FAILED) {
        s->failed = true;
        s->verdict = verdict;
        stress_case_copy(c, &s->worst);
    }
    if (stood != NULL)
        *stood = own;
    return EV_OK;
}

ev_status stress_try_pairs(stressing *s, stress_case *c, task_case_inputs with, ev_pcg *rng,
                           ev_error *err) {
    fitness_stood stood = FITNESS_STOOD;
    int count = fitness_stress_pairs(s->runs); /* of the same case, which was tried before */
    for (with.power = 0; with.power < count; with.power++) {
        with.schedule = 0;
        EV_TRY(stress_try_with(s, c, with, &stood, err));
        with.schedule = 1 + (uint64_t)ev_pcg_next(rng);
        if (stood == FITNESS_STOOD)
            EV_TRY(stress_try_with(s, c, with, &stood, err));
    }
    return EV_OK;
}

/* Whether the variation may change anything. */
static bool changes(const task *t, task_variation v) {
    for (size_t i = 0; i < t->argument_count + t->symbol_count; i++) {
        const task_argument *a = &t->arguments[i];
        bool is_for_scalars = v == TASK_SCALARS || v == TASK_FAR_SCALARS;
        bool is_scalar = a->kind == TASK_SCALAR;
        bool is_free = is_scalar && (ev_type_is_float(a->type) || task_scalar_is_free(t, a));
        if (is_for_scalars ? is_free : task_argument_has_data(a))
            return true;
    }
    return false;
}

/* Decimals, or multiples of one of the first scalars. */
#define SCALARS_TRIED 2

/* A power for all inputs, the largest one most often; 0, another power for each, in a third of the
 * draws. */
static int draw_power(ev_pcg *rng) {
    int size = 0;
    switch (ev_pcg_below(rng, 3)) {
    case 0:
        return 0;
    case 1:
        size = TASK_POWER_MOST;
        break;
    default:
        size = 1 + (int)ev_pcg_below(rng, TASK_POWER_MOST);
        break;
    }
    return ev_pcg_below(rng, 2) == 0 ? size : -size;
}

ev_status stress_try_others(stressing *s, stress_case *c, ev_pcg *rng, ev_error *err) {
    for (int i = 0; i < SCHEDULES; i++) {
        task_case_inputs with = c->at.inputs;
        with.schedule = 1 + (uint64_t)ev_pcg_next(rng);
        EV_TRY(stress_try_with(s, c, with, NULL, err));
    }
    for (int v = TASK_PLAIN + 1; v < TASK_VARIATIONS; v++) {
        task_case_inputs with = c->at.inputs;
        with.variation = (task_variation)v;
        with.power = v == TASK_SCALED ? draw_power(rng) : 0;
        if (v == TASK_DECIMAL)
            with.power = (int)ev_pcg_below(rng, SCALARS_TRIED + 1);
        with.schedule = ev_pcg_below(rng, 2) == 0 ? 0 : 1 + (uint64_t)ev_pcg_next(rng);
        if (task_variation_aliases(with.variation))
            EV_TRY(stress_try_pairs(s, c, with, rng, err));
        else if (changes(s->subject->t, with.variation))
            EV_TRY(stress_try_with(s, c, with, NULL, err));
    }
    return EV_OK;
}

/* Draws until a shape is legal, and runs the candidate there in the natural order. *found false:
 * none was legal. */
static ev_status draw_legal(stressing *s, uint32_t number, ev_pcg *rng, stress_case *c, bool *found,
                            ev_error *err) {
    fitness_stood stood = FITNESS_UNFIT;
    for (int i = 0; i < DRAWS_MOST && stood == FITNESS_UNFIT && !ev_stop_asked(); i++) {
        fitness_stress_forget(s->runs);
        stress_draw(s, number, rng, c);
        EV_TRY(stress_try_with(s, c, c->with, &stood, err));
        s->unfit += stood == FITNESS_UNFIT;
    }
    *found = stood != FITNESS_UNFIT;
    s->shapes += *found;
    return EV_OK;
}

static ev_status try_shape(stressing *s, uint32_t number, ev_error *err) {
    ev_pcg rng = ev_pcg_seed(s->limits.seed, number);
    stress_case *c = malloc(sizeof *c);
    bool found = false;
    if (c == NULL)
        return ev_fail_memory(err, sizeof *c);
    ev_status status = draw_legal(s, number, &rng, c, &found, err);
    if (status == EV_OK && found)
        status = stress_try_others(s, c, &rng, err);
    fitness_stress_forget(s->runs);
    free(c);
    return status;
}

static ev_status try_shapes(stressing *s, ev_error *err) {
    s->end = s->limits.seconds > 0 ? ev_clock_now() + s->limits.seconds : INFINITY;
    for (uint32_t i = 1; i <= s->limits.shapes && !s->failed; i++) {
        if (ev_stop_asked() || ev_clock_now() >= s->end)
            return EV_OK;
        EV_TRY(try_shape(s, i, err));
    }
    if (!s->failed)
        EV_TRY(stress_reach(s, err));
    return s->failed ? stress_shrink(s, err) : EV_OK;
}

/* ---- the report ---- */

/* JSON has no NaN and no infinity, so these are texts. */
static json_t *number_json(double value) {
    if (isfinite(value))
        return json_real(value);
    if (isnan(value))
        return json_string("NaN");
    return json_string(value > 0 ? "Inf" : "-Inf");
}

static json_t *shape_json(const stress_case *c) {
    json_t *shape = json_object();
    for (size_t i = 0; i < c->at.shape_count; i++) {
        const expr_value *value = &c->shape[i].value;
        (void)json_object_set_new(shape, c->shape[i].name,
                                  value->is_real ? json_real(value->real)
                                                 : json_integer((json_int_t)value->whole));
    }
    return shape;
}

static json_t *inputs_json(const task_case_inputs *with) {
    json_t *inputs = json_object();
    if (with->fresh != 0)
        (void)json_object_set_new(inputs, "fresh", json_integer((json_int_t)with->fresh));
    if (with->variation != TASK_PLAIN)
        (void)json_object_set_new(inputs, "variation",
                                  json_string(task_variation_name(with->variation)));
    if (with->power != 0)
        (void)json_object_set_new(inputs, "power", json_integer(with->power));
    if (with->schedule != 0)
        (void)json_object_set_new(inputs, "schedule", json_integer((json_int_t)with->schedule));
    return inputs;
}

/* Adds the data of the task's case that this one was drawn from, as task.json has them. */
static ev_status add_data(const task *t, const stress_case *c, json_t *to, ev_error *err) {
    ev_json *doc = NULL;
    if (c->at.data_count == 0)
        return EV_OK;
    EV_TRY(ev_json_parse(t->json, t->path, &doc, err));
    const json_t *cases = json_object_get(doc->root, "cases");
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *one = json_array_get(cases, i);
        if (strcmp(ev_json_text(one, "name", ""), c->from->name) == 0)
            (void)json_object_set(to, "data", json_object_get(one, "data"));
    }
    ev_json_free(doc);
    return EV_OK;
}

static ev_status case_json(const task *t, const stress_case *c, json_t **out, ev_error *err) {
    json_t *made =
        json_pack("{s:s, s:s, s:s, s:o}", "name", c->name, "split", corpus_split_name(c->at.split),
                  "use", task_case_use_name(c->at.use), "shape", shape_json(c));
    json_t *inputs = inputs_json(&c->with);
    ev_status status =
        made != NULL && inputs != NULL ? add_data(t, c, made, err) : ev_fail_memory(err, 1);
    if (json_object_size(inputs) > 0)
        (void)json_object_set(made, "inputs", inputs);
    json_decref(inputs);
    *out = made;
    return status;
}

static ev_status add_failure(const stressing *s, json_t *row, ev_error *err) {
    const fitness_element *at = &s->verdict.worst;
    json_t *found = NULL;
    EV_TRY(case_json(s->subject->t, &s->worst, &found, err));
    (void)json_object_set_new(row, "reason", json_string(s->verdict.reason));
    (void)json_object_set_new(row, "case", found);
    if (at->output == NULL)
        return EV_OK;
    (void)json_object_set_new(row, "output", json_string(at->output));
    (void)json_object_set_new(row, "index", json_integer((json_int_t)at->index));
    (void)json_object_set_new(row, "element", json_string(at->name));
    if (at->ranks > 0)
        (void)json_object_set_new(row, "rank", json_integer((json_int_t)at->rank));
    (void)json_object_set_new(row, "got",
                              at->is_written ? number_json(at->got) : json_string("not written"));
    (void)json_object_set_new(row, "want", number_json(at->want));
    return EV_OK;
}

/* A stress without a legal shape has shown nothing. */
static const char *nothing_shown(const stressing *s) {
    return s->shapes == 0 && s->unfit > 0 ? "the start is right at none of the drawn shapes" : NULL;
}

static ev_status report(const stressing *s, json_t **row, ev_error *err) {
    const stress_subject *of = s->subject;
    const char *nothing = s->failed ? NULL : nothing_shown(s);
    bool passed = !s->failed && nothing == NULL;
    json_t *made =
        json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:s}", "kernel", of->t->name, "role",
                  of->role, "start", of->candidate->start->name, "device",
                  device_properties_of(s->device)->id, "seed", (json_int_t)s->limits.seed, "shapes",
                  (json_int_t)s->shapes, "runs", (json_int_t)s->run_count, "unfit",
                  (json_int_t)s->unfit, "verdict", passed ? "pass" : "fail");
    if (made == NULL)
        return ev_fail_memory(err, 1);
    if (s->runs != NULL) {
        size_t unreached = fitness_stress_insns(s->runs) - fitness_stress_reached(s->runs);
        (void)json_object_set_new(made, "unreached", json_integer((json_int_t)unreached));
    }
    if (nothing != NULL)
        (void)json_object_set_new(made, "reason", json_string(nothing));
    *row = made;
    return s->failed && s->worst.from != NULL ? add_failure(s, made, err) : EV_OK;
}

/* ---- the whole ---- */

/* The virtual machine of the device: itself, or a GPU's twin. *out is malloc'ed. */
static ev_status machine_of(const char *id, char **out, ev_error *err) {
    device *d = NULL;
    EV_TRY(device_open(id, &d, err));
    const device_properties *p = device_properties_of(d);
    const char *machine = p->modelled ? id : p->twin;
    *out = strdup(machine);
    device_close(d);
    if (*out == NULL)
        return ev_fail_memory(err, strlen(id));
    if ((*out)[0] != '\0')
        return EV_OK;
    free(*out);
    *out = NULL;
    return ev_fail(err, EV_BAD,
                   "%s has no virtual machine beside it, and a stress runs in one; give --device "
                   "vm:MODEL",
                   id);
}

/* Opens the machine and puts the task on it. No case is checked yet. */
static ev_status open_machine(stressing *s, ev_error *err) {
    char *machine = NULL;
    score *ignored = calloc(1, sizeof *ignored);
    if (ignored == NULL)
        return ev_fail_memory(err, sizeof *ignored);
    ev_status status = machine_of(s->subject->device, &machine, err);
    if (status == EV_OK)
        status = fitness_open_device(s->subject->t, machine, &s->device, err);
    if (status == EV_OK)
        status = fitness_open(s->subject->t, s->device, NULL, &s->fitness, err);
    if (status == EV_OK)
        status = fitness_set_baseline(s->fitness, s->subject->baseline, 0, ignored, err);
    free(machine);
    free(ignored);
    return status;
}

static ev_status run(stressing *s, json_t **row, ev_error *err) {
    EV_TRY(open_machine(s, err));
    EV_TRY(fitness_stress_open(s->fitness, s->subject->candidate, &s->runs, &s->verdict, err));
    s->failed = s->runs == NULL; /* the device refuses the candidate */
    stress_set_ranges(s);
    if (!s->failed)
        EV_TRY(try_shapes(s, err));
    EV_TRY(report(s, row, err));
    if (s->runs == NULL)
        (void)json_object_set_new(*row, "reason", json_string(s->verdict.reason));
    return EV_OK;
}

ev_status stress_run(const stress_subject *subject, const stress_limits *limits, json_t **row,
                     ev_error *err) {
    stressing *s = calloc(1, sizeof *s);
    *row = NULL;
    if (s == NULL)
        return ev_fail_memory(err, sizeof *s);
    s->subject = subject;
    s->limits = *limits;
    ev_status status = run(s, row, err);
    fitness_stress_close(s->runs);
    fitness_close(s->fitness);
    device_close(s->device);
    free(s);
    if (status != EV_OK) {
        json_decref(*row);
        *row = NULL;
    }
    return status;
}
