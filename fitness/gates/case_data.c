/* Case data: makes the buffers, inputs and parameter blocks of a case, and restores buffers after a
 * launch. */
#include "fitness/gates/fitness_impl.h"

#include "base/proc.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The share of the machine's memory that buffers, answers and copies may take. The rest is for the
 * shadow memory and other processes. */
#define HOST_SHARE 0.6
/* Host bytes for a buffer's byte: the contents and the shadow. */
#define SHADOW_FACTOR 1.25

bool fit_case_is_full(const fit_case *c) {
    return c->at->use != TASK_TIME;
}

bool fit_case_is_sampled(const fitness *f, const fit_case *c) {
    return !fit_case_is_full(c) && !device_properties_of(f->d)->all_blocks;
}

/* The members of structs are the outputs, not their buffer. */
static bool is_output(const fit_argument *a) {
    return a->what->member_count == 0 && (a->what->kind == TASK_OUT || a->what->kind == TASK_INOUT);
}

static size_t count_all(const fitness *f) {
    return task_all_count(f->t);
}

static size_t symbols_end(const fitness *f) {
    return f->t->argument_count + f->t->symbol_count;
}

/* ---- sizes ---- */

static ev_status measure_buffer(const fitness *f, fit_case *c, fit_argument *a, ev_error *err) {
    EV_TRY(task_argument_count_of(f->t, a->what, c->at, &a->count, err));
    if (a->count > UINT64_MAX / 64)
        return ev_fail(err, EV_BAD, "task %s, case %s: '%s' has too many elements (%llu)",
                       f->t->name, c->at->name, a->what->name, (unsigned long long)a->count);
    a->bytes = a->count * ev_type_bytes(a->what->type);
    EV_TRY(task_argument_pitch_of(f->t, a->what, c->at, &a->row, &a->stride, err));
    c->output_count += is_output(a) ? 1 : 0;
    a->owner = a->what->owner != NULL ? &c->arguments[a->what->owner - f->t->arguments] : NULL;
    return a->what->kind == TASK_OUT || a->what->member_count > 0
               ? EV_OK
               : task_range_of(f->t, a->what, c->at, &a->range, err);
}

static ev_status measure_scalar(const fitness *f, const fit_case *c, fit_argument *a,
                                ev_error *err) {
    EV_TRY(task_argument_value_of(f->t, a->what, c->at, &a->value, err));
    EV_TRY(task_range_of(f->t, a->what, c->at, &a->range, err));
    if (!task_range_has(&a->range, a->value.real))
        return ev_fail(err, EV_BAD,
                       "task %s, case %s: the scalar %s is %g, outside its domain; change the case "
                       "or the domain",
                       f->t->name, c->at->name, a->what->name, a->value.real);
    a->is_free = task_scalar_is_free(f->t, a->what);
    fit_vary_scalar(c, a);
    return EV_OK;
}

static ev_status measure(const fitness *f, fit_case *c, ev_error *err) {
    EV_TRY(fit_ranks_begin(f, c, err));
    for (size_t i = 0; i < f->t->argument_count; i++) {
        fit_argument *a = &c->arguments[i];
        a->what = &f->t->arguments[i];
        if (a->what->kind != TASK_SCALAR) {
            EV_TRY(measure_buffer(f, c, a, err));
            continue;
        }
        EV_TRY(measure_scalar(f, c, a, err));
    }
    for (size_t i = f->t->argument_count; i < count_all(f); i++) {
        fit_argument *a = &c->arguments[i];
        a->what = &f->t->arguments[i];
        EV_TRY(measure_buffer(f, c, a, err));
    }
    return EV_OK;
}

/* Bytes of all buffers on the device, and bytes on the host with copies, shadow and answers. */
static void need_of(const fitness *f, const fit_case *c, double *on_device, double *on_host) {
    *on_device = *on_host = 0;
    for (size_t i = 0; i < count_all(f); i++) {
        const fit_argument *a = &c->arguments[i];
        *on_device += a->owner == NULL ? (double)a->bytes : 0;
        *on_host += (double)a->bytes * SHADOW_FACTOR;
        if (a->what->kind == TASK_INOUT)
            *on_host += (double)a->bytes;
        if (is_output(a) && fit_case_is_full(c)) /* answers and their scales */
            *on_host += (double)a->count * 2 * sizeof(double);
    }
}

static ev_status check_memory(fitness *f, const fit_case *c, ev_error *err) {
    double on_device = 0, on_host = 0;
    need_of(f, c, &on_device, &on_host);
    on_device /= c->ranks;
    const device_properties *p = device_properties_of(f->d);
    if (on_device > (double)p->memory_bytes)
        return ev_fail(err, EV_BAD,
                       "task %s, case %s: the buffers need %.0f bytes, and %s has %llu; make the "
                       "case's shape smaller",
                       f->t->name, c->at->name, on_device, p->id,
                       (unsigned long long)p->memory_bytes);
    double machine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if ((double)f->host_bytes + on_host > HOST_SHARE * machine)
        return ev_fail(err, EV_BAD,
                       "task %s, case %s: the buffers need %.0f bytes of this machine's memory, "
                       "beside %llu for the cases before it, and at most %.0f are used; make the "
                       "shapes smaller",
                       f->t->name, c->at->name, on_host, (unsigned long long)f->host_bytes,
                       HOST_SHARE * machine);
    f->host_bytes += (uint64_t)on_host;
    return EV_OK;
}

/* ---- contents ---- */

/* Where blocks are sampled, the launches of steps are timed one by one, each on what the launches
 * before it leave, so outputs have contents there. */
static vm_buffer_kind kind_of(const fitness *f, const fit_case *c, const fit_argument *a) {
    bool has_begin = f->has_steps && fit_case_is_sampled(f, c) && a->what->kind == TASK_OUT;
    if (a->is_shared || has_begin)
        return VM_BUFFER_INOUT;
    switch (a->what->kind) {
    case TASK_IN:
        return VM_BUFFER_IN;
    case TASK_INOUT:
        return VM_BUFFER_INOUT;
    default:
        return VM_BUFFER_OUT;
    }
}

static ev_status make_elements(const fitness *f, const fit_case *c, const fit_argument *a,
                               const corpus_request *request, ev_error *err) {
    ev_status status = corpus_fill(request, 0, a->count, a->before, err);
    return status == EV_OK ? EV_OK
                           : ev_wrap(err, status, "task %s, case %s, data of %s", f->t->name,
                                     c->at->name, a->what->name);
}

ev_status fit_make_contents(fitness *f, fit_case *c, fit_argument *a, ev_error *err) {
    corpus_request request;
    bool begins = false;
    EV_TRY(task_argument_data_of(f->t, a->what, c->at, c->inputs.fresh, &request, err));
    EV_TRY(fit_begin_request(f, c, a, &request, &begins, err));
    if (begins || !task_member_is_filed(f->t, a->what, c->at))
        EV_TRY(make_elements(f, c, a, &request, err));
    else
        fit_members_gather(a, a->owner->before, a->before);
    if (!begins) /* else the baseline tells whether the contents are legal */
        EV_TRY(task_range_check(f->t, a->what, c->at, &a->range, a->before, a->count, err));
    return fit_vary_buffer(c, a, a->before, err);
}

static ev_status fill_input(fitness *f, fit_case *c, fit_argument *a, ev_error *err) {
    a->before = a->what->kind == TASK_IN && !a->is_shared ? device_host(f->d, a->buffer) : NULL;
    if (a->before == NULL) {
        a->before = malloc(a->bytes > 0 ? a->bytes : 1);
        a->owns_before = true;
        if (a->before == NULL)
            return ev_fail_memory(err, a->bytes);
    }
    EV_TRY(fit_make_contents(f, c, a, err));
    EV_TRY(fit_members_fill(f, c, a, err));
    return a->owns_before ? device_write(f->d, a->buffer, 0, a->before, a->bytes, err) : EV_OK;
}

/* Cases without a time, the smoke cases of gate 3 among them, have each buffer at an odd multiple
 * of its argument's alignment: a variant that needs more traps. Timed cases have buffers at
 * multiples of 256 bytes, as cudaMalloc places them, since an odd place costs sectors. */
static bool places_odd(const fitness *f, const task_case *at) {
    const task_case *own = f->t->cases;
    bool is_own = at >= own && at < own + f->t->case_count;
    bool is_timed_check = at->split == CORPUS_SEARCH && at->use == TASK_CHECK && is_own;
    return at->use != TASK_TIME && !is_timed_check;
}

fit_inputs fit_inputs_for(const fitness *f, const task_case *at, fit_inputs inputs,
                          const candidate *who) {
    for (size_t i = 0; i < f->t->argument_count && i < 64 && places_odd(f, at); i++) {
        const task_argument *a = &f->t->arguments[i];
        uint64_t bit = UINT64_C(1) << i;
        if ((who->aligned & bit) != 0 && a->kind != TASK_SCALAR && a->align < who->aligned_to)
            inputs.aligned |= bit;
    }
    inputs.aligned_to = inputs.aligned != 0 ? who->aligned_to : 0;
    return inputs;
}

bool fit_case_is_odd(const fitness *f, const fit_case *c) {
    return places_odd(f, c->at);
}

static ev_status make_buffer(fitness *f, const fit_case *c, fit_argument *a, ev_error *err) {
    const char *name = a->what->name;
    size_t number = (size_t)(a - c->arguments);
    bool is_stated = number < 64 && (c->inputs.aligned >> number & 1) != 0;
    uint32_t align = is_stated ? c->inputs.aligned_to : a->what->align;
    if (places_odd(f, c->at))
        return device_alloc_odd(f->d, a->bytes, align, kind_of(f, c, a), name, &a->buffer, err);
    return device_alloc(f->d, a->bytes, kind_of(f, c, a), name, &a->buffer, err);
}

/* Keeps the contents of the symbols on the host; each launch gets them (fit_case_fill). */
static ev_status make_symbols(fitness *f, fit_case *c, ev_error *err) {
    for (size_t i = f->t->argument_count; i < symbols_end(f); i++) {
        fit_argument *a = &c->arguments[i];
        a->before = malloc(a->bytes > 0 ? a->bytes : 1);
        a->owns_before = true;
        if (a->before == NULL)
            return ev_fail_memory(err, a->bytes);
        EV_TRY(fit_make_contents(f, c, a, err));
    }
    return EV_OK;
}

static ev_status make_buffers(fitness *f, fit_case *c, ev_error *err) {
    fit_argument *shared = c->inputs.alias_in > 0 ? &c->arguments[c->inputs.alias_in - 1] : NULL;
    fit_argument *other = c->inputs.alias_out > 0 ? &c->arguments[c->inputs.alias_out - 1] : NULL;
    if (shared != NULL)
        shared->is_shared = shared->is_varied = true;
    for (size_t i = 0; i < f->t->argument_count; i++) {
        fit_argument *a = &c->arguments[i];
        if (a->what->kind == TASK_SCALAR || a == other)
            continue;
        EV_TRY(make_buffer(f, c, a, err));
        if (a->what->kind != TASK_OUT)
            EV_TRY(fill_input(f, c, a, err));
    }
    if (shared != NULL && other != NULL) {
        other->buffer = shared->buffer;
        other->before = shared->before; /* what an inout buffer begins with, too */
    }
    EV_TRY(fit_members_place(f, c, other, err));
    return fit_ranks_fill(f, c, err);
}

/* ---- what the oracle sees ---- */

static double whole_or_real(const expr_value *v) {
    return v->is_real ? v->real : (double)v->whole;
}

static ev_status describe(const fitness *f, fit_case *c, ev_error *err) {
    for (size_t i = 0; i < count_all(f); i++) {
        const fit_argument *a = &c->arguments[i];
        c->oracle_arguments[i] = (evoke_argument){.name = a->what->name,
                                                  .type = ev_type_name(a->what->type),
                                                  .data = a->before,
                                                  .count = a->count,
                                                  .value = whole_or_real(&a->value)};
    }
    for (size_t i = 0; i < c->at->shape_count; i++) {
        c->shape_names[i] = c->at->shape[i].name;
        c->shape_values[i] = whole_or_real(&c->at->shape[i].value);
    }
    return task_depth_of(f->t, c->at, &c->depth, err);
}

/* Puts the value of a scalar into a shape, which has room. */
static void put_value(const fit_argument *a, expr_name *shape, size_t *count) {
    size_t i = 0;
    while (i < *count && strcmp(shape[i].name, a->what->name) != 0)
        i++;
    shape[i] = (expr_name){a->what->name, a->value};
    *count += i == *count;
}

/* Makes the shape that launch plans see, if a scalar that is no size is varied. */
static ev_status vary_shape(const fitness *f, fit_case *c, ev_error *err) {
    size_t count = c->at->shape_count, room = count + f->t->argument_count + 1;
    for (const fit_argument *a = c->arguments; a->what != NULL; a++) {
        if (a->what->kind != TASK_SCALAR || !a->is_free || !a->is_varied)
            continue;
        if (c->varied_shape == NULL) {
            c->varied_shape = malloc(room * sizeof *c->varied_shape);
            if (c->varied_shape == NULL)
                return ev_fail_memory(err, room * sizeof *c->varied_shape);
            if (count > 0)
                memcpy(c->varied_shape, c->at->shape, count * sizeof *c->varied_shape);
        }
        put_value(a, c->varied_shape, &count);
    }
    if (c->varied_shape != NULL) {
        c->of_plans = *c->at;
        c->of_plans.shape = c->varied_shape;
        c->of_plans.shape_count = count;
    }
    return EV_OK;
}

const task_case *fit_case_of_plans(const fit_case *c) {
    return c->of_plans.shape != NULL ? &c->of_plans : c->at;
}

static const fit_argument *find_argument(const fitness *f, const fit_case *c, const char *name) {
    for (size_t i = 0; i < f->t->argument_count; i++) {
        if (strcmp(f->t->arguments[i].name, name) == 0)
            return &c->arguments[i];
    }
    return NULL;
}

static ev_status list_outputs(const fitness *f, fit_case *c, ev_error *err) {
    c->outputs = calloc(c->output_count + 1, sizeof *c->outputs);
    if (c->outputs == NULL)
        return ev_fail_memory(err, c->output_count * sizeof *c->outputs);
    size_t n = 0;
    for (size_t i = 0; i < count_all(f); i++) {
        const fit_argument *a = &c->arguments[i];
        if (!is_output(a))
            continue;
        fit_output *o = &c->outputs[n++];
        o->argument = i;
        if (a->what->zero_where == NULL)
            continue;
        o->zero_where = find_argument(f, c, a->what->zero_where);
        if (o->zero_where == NULL || o->zero_where->before == NULL ||
            o->zero_where->count != a->count)
            return ev_fail(err, EV_BAD,
                           "task %s, case %s: '%s' is to be zero where '%s' is, which is no input "
                           "with as many elements",
                           f->t->name, c->at->name, a->what->name, a->what->zero_where);
    }
    return EV_OK;
}

/* ---- making and finding ---- */

static ev_status fill_case(fitness *f, fit_case *c, ev_error *err) {
    size_t arguments = count_all(f) + 1, shapes = c->at->shape_count + 1;
    c->arguments = calloc(arguments, sizeof *c->arguments);
    c->oracle_arguments = calloc(arguments, sizeof *c->oracle_arguments);
    c->shape_names = calloc(shapes, sizeof *c->shape_names);
    c->shape_values = calloc(shapes, sizeof *c->shape_values);
    if (c->arguments == NULL || c->oracle_arguments == NULL || c->shape_names == NULL ||
        c->shape_values == NULL)
        return ev_fail_memory(err, arguments * sizeof *c->arguments);
    EV_TRY(measure(f, c, err));
    EV_TRY(vary_shape(f, c, err));
    EV_TRY(check_memory(f, c, err));
    EV_TRY(make_buffers(f, c, err));
    EV_TRY(make_symbols(f, c, err));
    EV_TRY(list_outputs(f, c, err));
    return describe(f, c, err);
}

void fit_case_free(const fitness *f, fit_case *c) {
    if (c == NULL)
        return;
    for (size_t i = 0; c->arguments != NULL && i < count_all(f); i++) {
        if (c->arguments[i].owns_before)
            free(c->arguments[i].before);
    }
    for (size_t i = 0; c->outputs != NULL && i < c->output_count; i++) {
        free(c->outputs[i].want);
        free(c->outputs[i].varied);
        free(c->outputs[i].exact);
        free(c->outputs[i].scale);
        free(c->outputs[i].must_zero);
        free(c->outputs[i].spots);
    }
    fit_seen_free(c);
    free(c->arguments);
    free(c->outputs);
    free(c->oracle_arguments);
    free(c->shape_names);
    free(c->shape_values);
    free(c->varied_shape);
    free(c->scratch);
    free(c);
}

static ev_status keep_case(fitness *f, fit_case *c, ev_error *err) {
    fit_case **more = realloc(f->cases, (f->case_count + 1) * sizeof(*more));
    if (more == NULL)
        return ev_fail_memory(err, (f->case_count + 1) * sizeof(*more));
    f->cases = more;
    f->cases[f->case_count++] = c;
    return EV_OK;
}

fit_inputs fit_usual_inputs(const fitness *f) {
    return (fit_inputs){.fresh = f->options.fresh, .approx = VM_APPROX_WORST};
}

bool fit_same_inputs(fit_inputs a, fit_inputs b) {
    return a.fresh == b.fresh && a.approx == b.approx && a.variation == b.variation &&
           a.begins == b.begins && a.power == b.power && a.aligned == b.aligned &&
           a.aligned_to == b.aligned_to && a.alias_in == b.alias_in && a.alias_out == b.alias_out &&
           a.kept == b.kept;
}

ev_status fit_case_get(fitness *f, const task_case *at, fit_inputs inputs, fit_case **out,
                       ev_error *err) {
    for (size_t i = 0; i < f->case_count; i++) {
        if (f->cases[i]->at == at && fit_same_inputs(f->cases[i]->inputs, inputs)) {
            *out = f->cases[i];
            return EV_OK;
        }
    }
    fit_case *c = calloc(1, sizeof *c);
    if (c == NULL)
        return ev_fail_memory(err, sizeof *c);
    c->at = at;
    c->inputs = inputs;
    double begin = ev_clock_now();
    ev_status status = fill_case(f, c, err);
    f->cost.inputs += ev_clock_now() - begin;
    if (status == EV_OK)
        status = keep_case(f, c, err);
    if (status != EV_OK) {
        fit_case_free(f, c);
        return status;
    }
    *out = c;
    return EV_OK;
}

/* ---- parameters ---- */

static bool types_agree(const vm_param *param, const fit_argument *a) {
    if (a->what->is_field)
        return param->bytes == a->what->parameter_bytes;
    if (a->buffer != 0)
        return param->bytes == 8 && !ev_type_is_float(param->type);
    size_t bytes = ev_type_bytes(a->what->type);
    if (param->bytes != bytes)
        return false;
    /* PTX passes 16-bit floats as plain bits. */
    return bytes < 4 || ev_type_is_float(param->type) == ev_type_is_float(a->what->type);
}

static ev_status fail_param(const fitness *f, const vm_entry *entry, size_t i,
                            const fit_argument *a, ev_error *err) {
    const vm_param *param = &entry->params[a->what->parameter];
    if (a->what->is_field)
        return ev_fail(err, EV_BAD,
                       "task %s: the struct of the field '%s' has %u bytes, and parameter '%s' of "
                       "'%s' has %u; say where the fields lie by \"offset\", and the struct's size "
                       "by \"bytes\"",
                       f->t->name, a->what->name, a->what->parameter_bytes, param->name,
                       entry->name, param->bytes);
    return ev_fail(err, EV_BAD,
                   "task %s: argument %zu '%s' is %s %s, and parameter '%s' of '%s' is %s of %u "
                   "bytes; give the arguments in the order and types of the kernel's parameters",
                   f->t->name, i + 1, a->what->name, a->buffer != 0 ? "a buffer of" : "a scalar of",
                   ev_type_name(a->what->type), param->name, entry->name, ev_type_name(param->type),
                   param->bytes);
}

static void pack_one(const fitness *f, const vm_param *param, const fit_argument *a, uint32_t rank,
                     char *block) {
    char *to = block + param->offset + a->what->offset;
    if (a->buffer != 0) {
        uint64_t address = fit_address_of(f, a->buffer, rank);
        memcpy(to, &address, sizeof address);
    } else if (a->what->is_rank) {
        uint64_t number = rank;
        memcpy(to, &number, ev_type_bytes(a->what->type)); /* little-endian */
    } else if (ev_type_is_float(a->what->type)) {
        ev_type_set(a->what->type, to, 0, whole_or_real(&a->value));
    } else {
        int64_t whole = a->value.is_real ? (int64_t)a->value.real : a->value.whole;
        memcpy(to, &whole, ev_type_bytes(a->what->type)); /* little-endian */
    }
}

static ev_status pack_arguments(const fitness *f, const fit_case *c, const vm_entry *entry,
                                uint32_t rank, char *block, ev_error *err) {
    for (size_t i = 0; i < f->t->argument_count; i++) {
        const fit_argument *a = &c->arguments[i];
        const vm_param *param = &entry->params[a->what->parameter];
        if (!types_agree(param, a))
            return fail_param(f, entry, i, a, err);
        pack_one(f, param, a, rank, block);
    }
    return EV_OK;
}

/* The argument in whose place a parameter of a step stands; `room` is for one that is none. */
static const fit_argument *given_argument(const fit_case *c, const task_given *g,
                                          fit_argument *room, task_argument *what) {
    if (g->kind == TASK_GIVEN_ARGUMENT)
        return &c->arguments[g->index];
    *what = (task_argument){.name = g->kind == TASK_GIVEN_VALUE ? "value" : "scratch",
                            .kind = g->kind == TASK_GIVEN_VALUE ? TASK_SCALAR : TASK_INOUT,
                            .type = g->kind == TASK_GIVEN_VALUE ? g->type : EV_U8};
    *room = (fit_argument){.what = what, .value = g->value};
    if (g->kind == TASK_GIVEN_SCRATCH)
        room->buffer = c->now.scratch[g->index];
    return room;
}

static ev_status pack_given(const fitness *f, const fit_case *c, const vm_entry *entry,
                            uint32_t rank, char *block, ev_error *err) {
    const task_step *step = c->now.step;
    for (size_t i = 0; i < step->given_count; i++) {
        fit_argument room;
        task_argument what;
        fit_argument a = *given_argument(c, &step->given[i], &room, &what);
        task_argument at = *a.what;
        at.parameter = i;
        a.what = &at;
        if (!types_agree(&entry->params[i], &a))
            return fail_param(f, entry, i, &a, err);
        pack_one(f, &entry->params[i], &a, rank, block);
    }
    return EV_OK;
}

ev_status fit_case_pack(const fitness *f, const fit_case *c, const vm_entry *entry, uint32_t rank,
                        void **out, ev_error *err) {
    bool has_own = c->now.step != NULL && c->now.step->given_count > 0;
    size_t count = has_own ? c->now.step->given_count : f->t->parameter_count;
    if (entry->param_count != count)
        return ev_fail(err, EV_BAD,
                       "task %s has %zu arguments%s, and '%s' takes %zu parameters; list every "
                       "parameter of the kernel under \"arguments\", in its order",
                       f->t->name, count, has_own ? " for this launch" : "", entry->name,
                       entry->param_count);
    char *block = calloc(1, entry->param_bytes + 8);
    if (block == NULL)
        return ev_fail_memory(err, entry->param_bytes);
    ev_status status = has_own ? pack_given(f, c, entry, rank, block, err)
                               : pack_arguments(f, c, entry, rank, block, err);
    if (status != EV_OK) {
        free(block);
        return status;
    }
    *out = block;
    return EV_OK;
}

ev_status fit_case_fill(fitness *f, const fit_case *c, device_kernel *kernel, ev_error *err) {
    for (size_t i = f->t->argument_count; i < symbols_end(f); i++) {
        const fit_argument *a = &c->arguments[i];
        EV_TRY(device_fill(f->d, kernel, a->what->name, a->before, a->bytes, err));
    }
    return EV_OK;
}

/* ---- putting back ---- */

/* A buffer, and what it contained before the launch. */
typedef struct contents {
    device_buffer buffer;
    uint64_t bytes;
    const char *before;
} contents;

/* Writes the part of a sector that belongs to the buffer. */
static ev_status restore_sector(fitness *f, const contents *b, uint64_t sector, ev_error *err) {
    uint64_t address = device_address(f->d, b->buffer);
    uint64_t begin = sector * 32, end = begin + 32;
    if (end <= address || begin >= address + b->bytes)
        return EV_OK;
    begin = begin < address ? address : begin;
    end = end > address + b->bytes ? address + b->bytes : end;
    return device_write(f->d, b->buffer, begin - address, b->before + (begin - address),
                        end - begin, err);
}

static ev_status restore_contents(fitness *f, const contents *b, const uint64_t *stored,
                                  size_t stored_count, ev_error *err) {
    if (stored == NULL)
        return device_write(f->d, b->buffer, 0, b->before, b->bytes, err);
    for (size_t s = 0; s < stored_count; s++)
        EV_TRY(restore_sector(f, b, stored[s], err));
    return EV_OK;
}

/* Gives a launch under way again what it began with. */
static ev_status restore_now(fitness *f, fit_case *c, const uint64_t *stored, size_t stored_count,
                             ev_error *err) {
    const fit_now *now = &c->now;
    for (size_t i = 0; i < now->step->given_count; i++) {
        const task_given *g = &now->step->given[i];
        bool is_scratch = g->kind == TASK_GIVEN_SCRATCH;
        size_t at = is_scratch ? f->t->argument_count + g->index : g->index;
        if (g->kind == TASK_GIVEN_VALUE || now->begins[at] == NULL)
            continue;
        contents b = {.before = now->begins[at]};
        b.buffer = is_scratch ? now->scratch[g->index] : c->arguments[at].buffer;
        b.bytes = is_scratch ? fit_scratch_bytes(f, b.buffer) : c->arguments[at].bytes;
        EV_TRY(restore_contents(f, &b, stored, stored_count, err));
    }
    return EV_OK;
}

ev_status fit_case_restore(fitness *f, fit_case *c, const uint64_t *stored, size_t stored_count,
                           ev_error *err) {
    if (c->now.begins != NULL)
        return restore_now(f, c, stored, stored_count, err);
    for (size_t i = 0; i < f->t->argument_count; i++) {
        const fit_argument *a = &c->arguments[i];
        if (a->what->kind != TASK_INOUT && !a->is_shared)
            continue;
        const contents b = {a->buffer, a->bytes, a->before};
        EV_TRY(restore_contents(f, &b, stored, stored_count, err));
    }
    return EV_OK;
}

ev_status fit_case_launch(const fitness *f, const fit_case *c, const candidate *who,
                          launch_geometry *out, ev_error *err) {
    return task_launch_of(f->t, who->start, who->plan, who->macros, who->macro_count,
                          fit_case_of_plans(c), out, err);
}
