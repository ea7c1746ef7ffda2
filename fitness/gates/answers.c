/* Answers: asks the oracle for each answer once, and compares the outputs of a launch with the
 * answers. */
#include "fitness/device/device_group.h"
#include "fitness/gates/fitness_impl.h"

#include "base/hash.h"
#include "base/proc.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

accuracy_limits fit_limits(const fitness *f, const fit_case *c) {
    const task_tolerance *t = &f->t->tolerance;
    accuracy_limits limits = {.relative_l2 = t->relative_l2,
                              .scaled_max = t->scaled_max,
                              .max_abs = t->max_abs,
                              .depth = c->depth};
    if (c->baseline.done && f->t->oracle_kind != TASK_ORACLE_BASELINE) {
        limits.baseline_l2 = c->baseline.accuracy.relative_l2;
        limits.baseline_factor = t->baseline_factor;
    }
    return limits;
}

/* ---- the oracle ---- */

static ev_status ask(fitness *f, fit_case *c, const fit_output *o, uint64_t first, uint64_t count,
                     double *want, double *scale, ev_error *err) {
    assert(f->t->oracle != NULL);
    evoke_oracle_call call = {.arguments = c->oracle_arguments,
                              .argument_count = task_all_count(f->t),
                              .shape_names = c->shape_names,
                              .shape_values = c->shape_values,
                              .shape_count = c->at->shape_count,
                              .output = o->argument,
                              .first = first,
                              .count = count,
                              .value = want,
                              .scale = scale,
                              .scratch = c->scratch};
    double begin = fit_clock(f);
    int failed = f->t->oracle(&call);
    f->cost.oracle += fit_clock(f) - begin;
    c->scratch = call.scratch;
    if (failed == 0)
        return EV_OK;
    return ev_fail(err, EV_BAD,
                   "task %s, case %s: the oracle has no answer for '%s' (it returned %d)",
                   f->t->name, c->at->name, f->t->arguments[o->argument].name, failed);
}

static bool zero_at(const fit_output *o, uint64_t element) {
    const fit_argument *mask = o->zero_where;
    return mask != NULL && ev_type_get(mask->what->type, mask->before, element) == 0;
}

static ev_status room_for_answers(fit_output *o, uint64_t count, ev_error *err) {
    o->want = calloc(count + 1, sizeof *o->want);
    o->scale = calloc(count + 1, sizeof *o->scale);
    if (o->zero_where != NULL)
        o->must_zero = calloc(count + 1, 1);
    if (o->want != NULL && o->scale != NULL && (o->zero_where == NULL || o->must_zero != NULL)) {
        for (uint64_t i = 0; o->must_zero != NULL && i < count; i++)
            o->must_zero[i] = zero_at(o, i);
        return EV_OK;
    }
    free(o->want);
    free(o->scale);
    free(o->must_zero);
    o->want = o->scale = NULL;
    o->must_zero = NULL;
    return ev_fail_memory(err, count * 2 * sizeof *o->want);
}

static ev_status answer_in_full(fitness *f, fit_case *c, fit_output *o, ev_error *err) {
    if (o->want != NULL)
        return EV_OK;
    uint64_t count = c->arguments[o->argument].count;
    EV_TRY(room_for_answers(o, count, err));
    ev_status status = ask(f, c, o, 0, count, o->want, o->scale, err);
    if (status != EV_OK) {
        free(o->want);
        o->want = NULL; /* not answered */
        free(o->scale);
        o->scale = NULL;
        free(o->must_zero);
        o->must_zero = NULL;
    }
    return status;
}

ev_status fit_answer_all(fitness *f, fit_case *c, ev_error *err) {
    for (size_t i = 0; i < c->output_count; i++)
        EV_TRY(answer_in_full(f, c, &c->outputs[i], err));
    return EV_OK;
}

/* ---- outputs seen before: a launch that left the same bits as an earlier one has its accuracy
 * ---- */

static uint64_t bytes_of(const fit_case *c, size_t output) {
    return c->arguments[c->outputs[output].argument].bytes;
}

static bool same_limits(const accuracy_limits *a, const accuracy_limits *b) {
    return a->relative_l2 == b->relative_l2 && a->scaled_max == b->scaled_max &&
           a->max_abs == b->max_abs && a->inexact_most == b->inexact_most && a->depth == b->depth &&
           a->baseline_l2 == b->baseline_l2 && a->baseline_factor == b->baseline_factor &&
           a->own_factor == b->own_factor && a->takes_nan == b->takes_nan;
}

static bool same_bytes(const fit_case *c, const fit_seen *seen, const void *const *got) {
    const char *kept = seen->bytes;
    for (size_t i = 0; i < c->output_count; i++) {
        if (memcmp(kept, got[i], bytes_of(c, i)) != 0)
            return false;
        kept += bytes_of(c, i);
    }
    return true;
}

/* Moves entry `at` to the front. */
static void bring_forward(fit_case *c, size_t at) {
    fit_seen met = c->seen[at];
    memmove(&c->seen[1], &c->seen[0], at * sizeof c->seen[0]);
    c->seen[0] = met;
}

bool fit_seen_find(fit_case *c, const accuracy_limits *limits, const void *const *got,
                   accuracy *out) {
    for (size_t i = 0; i < FIT_SEEN_KEPT && c->seen[i].bytes != NULL; i++) {
        if (!same_limits(&c->seen[i].limits, limits) || !same_bytes(c, &c->seen[i], got))
            continue;
        bring_forward(c, i);
        *out = c->seen[0].accuracy;
        return true;
    }
    return false;
}

static uint64_t bytes_of_all(const fit_case *c) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < c->output_count; i++)
        bytes += bytes_of(c, i);
    return bytes;
}

void fit_seen_keep(fit_case *c, const accuracy_limits *limits, const void *const *got,
                   const accuracy *result) {
    fit_seen *last = &c->seen[FIT_SEEN_KEPT - 1];
    if (last->bytes == NULL)
        last->bytes = malloc(bytes_of_all(c) + 1);
    if (last->bytes == NULL)
        return;
    last->limits = *limits;
    last->accuracy = *result;
    char *to = last->bytes;
    for (size_t i = 0; i < c->output_count; i++) {
        memcpy(to, got[i], bytes_of(c, i));
        to += bytes_of(c, i);
    }
    bring_forward(c, FIT_SEEN_KEPT - 1);
}

void fit_seen_free(fit_case *c) {
    for (size_t i = 0; i < FIT_SEEN_KEPT; i++) {
        free(c->seen[i].bytes);
        c->seen[i].bytes = NULL;
    }
}

/* ---- outputs ---- */

/* Whether the device knows which elements were written; one without shadow memory shows that by
 * their contents. */
static bool has_shadow(const fitness *f, const fit_argument *a) {
    return device_group_count(f->d) > 0 || device_host(f->d, a->buffer) != NULL;
}

static bool is_padding(const fit_argument *a, uint64_t element) {
    return a->stride > 0 && element % a->stride >= a->row;
}

/* Marks the elements of an INOUT buffer as written, but those of the padding only if they were. A
 * device without shadow memory shows that by their contents. */
static ev_status mark_inout(fitness *f, const fit_argument *a, uint8_t *written, ev_error *err) {
    size_t size = ev_type_bytes(a->what->type);
    const char *got = NULL;
    void *owned = NULL;
    bool shadow = has_shadow(f, a);
    EV_TRY(fit_elements_read(f, a, (const void **)&got, &owned, err));
    for (uint64_t i = 0; i < a->count; i++) {
        bool is_same = memcmp(got + i * size, (const char *)a->before + i * size, size) == 0;
        if (!is_padding(a, i) || !shadow)
            written[i] = !is_padding(a, i) || !is_same;
    }
    free(owned);
    return EV_OK;
}

/* An INOUT element may keep its old value. An element of a pure output must be written. */
static ev_status read_written(fitness *f, const fit_argument *a, uint8_t **out, ev_error *err) {
    *out = NULL;
    if (a->what->kind == TASK_INOUT && a->stride == 0)
        return EV_OK;
    uint8_t *written = malloc(a->count > 0 ? a->count : 1);
    if (written == NULL)
        return ev_fail_memory(err, a->count);
    uint64_t count = 0;
    ev_status status = fit_elements_written(f, a, 0, a->count, written, &count, err);
    if (status == EV_OK && a->what->kind == TASK_INOUT)
        status = mark_inout(f, a, written, err);
    else if (status != EV_OK || count == a->count) {
        free(written);
        return status;
    }
    if (status != EV_OK) {
        free(written);
        return status;
    }
    *out = written;
    return EV_OK;
}

/* The outputs after a launch, each array by output. */
typedef struct left_behind {
    const void **got;
    void **owned;
    uint8_t **written; /* NULL: all of it */
    bool whole;        /* all of all outputs */
} left_behind;

static void left_free(const fit_case *c, left_behind *left) {
    for (size_t i = 0; i < c->output_count; i++) {
        if (left->owned != NULL)
            free(left->owned[i]);
        if (left->written != NULL)
            free(left->written[i]);
    }
    free(left->got);
    free(left->owned);
    free(left->written);
}

static ev_status left_read(fitness *f, const fit_case *c, left_behind *left, ev_error *err) {
    size_t count = c->output_count + 1;
    *left = (left_behind){.got = calloc(count, sizeof *left->got),
                          .owned = calloc(count, sizeof *left->owned),
                          .written = calloc(count, sizeof *left->written),
                          .whole = true};
    if (left->got == NULL || left->owned == NULL || left->written == NULL)
        return ev_fail_memory(err, count * sizeof *left->got);
    for (size_t i = 0; i < c->output_count; i++) {
        const fit_argument *a = &c->arguments[c->outputs[i].argument];
        EV_TRY(fit_elements_read(f, a, &left->got[i], &left->owned[i], err));
        EV_TRY(read_written(f, a, &left->written[i], err));
        left->whole = left->whole && left->written[i] == NULL;
    }
    return EV_OK;
}

/* An output may have a tolerance of its own, which the start's own error widens on data
 * that are not the task's. */
static void begin_own(accuracy_check *check, const fit_argument *a, const fit_output *o) {
    const task_argument *what = a->what;
    double factor = check->limits.own_factor;
    bool limits_abs = what->max_abs > 0 || !ev_type_is_float(what->type);
    if (what->has_tolerance)
        accuracy_own(check, fmax(what->relative_l2, factor * o->own.relative_l2),
                     limits_abs ? fmax(what->max_abs, factor * o->own.max_abs) : 0);
}

static void compare_output(const fit_case *c, fit_output *o, const void *got,
                           const uint8_t *written, accuracy_check *check) {
    const fit_argument *a = &c->arguments[o->argument];
    accuracy_part part = {.type = a->what->type,
                          .got = got,
                          .want = o->varied != NULL ? o->varied : o->want,
                          .exact = o->exact,
                          .scale = o->scale,
                          .written = written,
                          .must_zero = o->must_zero,
                          .row = a->row,
                          .stride = a->stride,
                          .count = a->count};
    accuracy_begin_output(check, a->what->type);
    begin_own(check, a, o);
    check->conditioned = o->conditioned;
    check->allowed = o->allowed;
    accuracy_add(check, &part);
    o->found = accuracy_end_output(check);
}

static ev_status compare_left(fitness *f, fit_case *c, const left_behind *left,
                              const accuracy_limits *limits, accuracy *out, ev_error *err) {
    accuracy_check check;
    if (left->whole && fit_seen_find(c, limits, left->got, out))
        return EV_OK;
    accuracy_begin(&check, limits);
    for (size_t i = 0; i < c->output_count; i++) {
        EV_TRY(answer_in_full(f, c, &c->outputs[i], err));
        compare_output(c, &c->outputs[i], left->got[i], left->written[i], &check);
    }
    *out = accuracy_end(&check);
    if (left->whole && out->normalised <= 1)
        fit_seen_keep(c, limits, left->got, out);
    return EV_OK;
}

ev_status fit_compare_full(fitness *f, fit_case *c, const accuracy_limits *limits, accuracy *out,
                           ev_error *err) {
    left_behind left;
    ev_status status = left_read(f, c, &left, err);
    if (status == EV_OK)
        status = compare_left(f, c, &left, limits, out, err);
    left_free(c, &left);
    return status;
}

/* The distance of an element from its answer: infinite if the element is of another class, or was
 * not written. */
static double distance_of(const fit_output *o, const accuracy_limits *limits, double got,
                          double want, uint64_t at) {
    if (o->must_zero != NULL && o->must_zero[at] != 0 && got != 0)
        return INFINITY;
    if (isfinite(got) && isfinite(want))
        return fabs(got - want);
    bool is_same = (isinf(got) && got == want) || (limits->takes_nan && isnan(got) && isnan(want));
    return is_same ? 0 : INFINITY;
}

static void find_worst_of(const fit_case *c, size_t output, const left_behind *left,
                          const accuracy_limits *limits, double *most, fitness_element *out) {
    const fit_output *o = &c->outputs[output];
    const fit_argument *a = &c->arguments[o->argument];
    const double *wanted = o->varied != NULL ? o->varied : o->want;
    for (uint64_t i = 0; i < a->count; i++) {
        bool is_written = left->written[output] == NULL || left->written[output][i] != 0;
        double got = is_written ? ev_type_get(a->what->type, left->got[output], i) : 0;
        double distance = is_written ? distance_of(o, limits, got, wanted[i], i) : (double)INFINITY;
        if (distance > *most) {
            *most = distance;
            *out = (fitness_element){.output = a->what->name,
                                     .index = i,
                                     .got = got,
                                     .want = wanted[i],
                                     .is_written = is_written};
            fit_ranks_place(c, a->count, out);
            fit_name_element(a, out);
        }
    }
}

/* The element that is farthest off: in the outputs that are beyond their limits; or else in those
 * that are held to limits over all outputs. Where an element is of another class or was not
 * written, in all outputs. */
static void find_worst(const fit_case *c, const left_behind *left, const accuracy_limits *limits,
                       fitness_element *out) {
    fitness_element common = {.output = NULL}, beyond = {.output = NULL};
    double most = 0, most_common = 0, most_beyond = 0;
    for (size_t i = 0; i < c->output_count; i++) {
        find_worst_of(c, i, left, limits, &most, out);
        if (!c->arguments[c->outputs[i].argument].what->has_tolerance)
            find_worst_of(c, i, left, limits, &most_common, &common);
        if (c->outputs[i].found.beyond > 1)
            find_worst_of(c, i, left, limits, &most_beyond, &beyond);
    }
    if (!isfinite(most))
        return;
    if (beyond.output != NULL)
        *out = beyond;
    else if (common.output != NULL)
        *out = common;
}

ev_status fit_find_worst(fitness *f, fit_case *c, const accuracy_limits *limits,
                         fitness_element *out, ev_error *err) {
    left_behind left;
    *out = (fitness_element){.output = NULL};
    ev_status status = left_read(f, c, &left, err);
    if (status == EV_OK)
        find_worst(c, &left, limits, out);
    left_free(c, &left);
    return status;
}

/* Keeps the 64-bit whole numbers that a start left, since doubles round them. */
static ev_status keep_exact(fit_output *o, const fit_argument *a, const void *got, ev_error *err) {
    if (a->what->type != EV_S64 && a->what->type != EV_U64)
        return EV_OK;
    if (o->exact == NULL)
        o->exact = malloc(a->bytes + 1);
    if (o->exact == NULL)
        return ev_fail_memory(err, a->bytes);
    memcpy(o->exact, got, a->bytes);
    return EV_OK;
}

ev_status fit_keep_outputs(fitness *f, fit_case *c, ev_error *err) {
    fit_seen_free(c); /* the kept accuracies refer to other answers */
    for (size_t i = 0; i < c->output_count; i++) {
        fit_output *o = &c->outputs[i];
        const fit_argument *a = &c->arguments[o->argument];
        const void *got = NULL;
        void *owned = NULL;
        if (o->want == NULL)
            EV_TRY(room_for_answers(o, a->count, err));
        EV_TRY(fit_elements_read(f, a, &got, &owned, err));
        for (uint64_t e = 0; e < a->count; e++)
            o->want[e] = ev_type_get(a->what->type, got, e);
        ev_status status = keep_exact(o, a, got, err);
        free(owned);
        EV_TRY(status);
    }
    return EV_OK;
}

static ev_status answer_varied(fitness *f, fit_case *c, fit_output *o, bool by_start,
                               ev_error *err) {
    const fit_argument *a = &c->arguments[o->argument];
    bool has_oracle = f->t->oracle_kind != TASK_ORACLE_BASELINE && !by_start;
    const void *got = NULL;
    void *owned = NULL;
    if (has_oracle)
        EV_TRY(answer_in_full(f, c, o, err));
    else if (o->want == NULL)
        EV_TRY(room_for_answers(o, a->count, err));
    if (o->varied == NULL)
        o->varied = calloc(a->count + 1, sizeof *o->varied);
    if (o->varied == NULL)
        return ev_fail_memory(err, (a->count + 1) * sizeof *o->varied);
    EV_TRY(fit_elements_read(f, a, &got, &owned, err));
    for (uint64_t e = 0; e < a->count; e++) {
        double own = ev_type_get(a->what->type, got, e);
        bool is_answered = has_oracle && isfinite(own) && isfinite(o->want[e]);
        o->varied[e] = is_answered ? o->want[e] : own;
    }
    ev_status status = keep_exact(o, a, got, err);
    free(owned);
    return status;
}

ev_status fit_answer_varied(fitness *f, fit_case *c, bool by_start, ev_error *err) {
    fit_seen_free(c); /* the kept accuracies refer to other answers */
    for (size_t i = 0; i < c->output_count; i++)
        EV_TRY(answer_varied(f, c, &c->outputs[i], by_start, err));
    return EV_OK;
}

ev_status fit_hash_outputs(fitness *f, const fit_case *c, ev_sha256 *out, ev_error *err) {
    ev_str all = EV_STR_EMPTY;
    for (size_t i = 0; i < c->output_count; i++) {
        const fit_argument *a = &c->arguments[c->outputs[i].argument];
        const void *got = NULL;
        void *owned = NULL;
        ev_status status = fit_elements_read(f, a, &got, &owned, err);
        if (status != EV_OK) {
            ev_str_free(&all);
            return status;
        }
        ev_str_append(&all, ev_sha256_of(got, a->bytes).hex);
        free(owned);
    }
    ev_status status = ev_str_status(&all, err);
    if (status == EV_OK)
        *out = ev_sha256_of(ev_str_text(&all), all.length);
    ev_str_free(&all);
    return status;
}

/* ---- spots ---- */

static fit_spot *spot_slot(const fit_output *o, uint64_t element) {
    size_t at = (size_t)ev_mix64(element + 1) & (o->spot_room - 1);
    while (o->spots[at].key != 0 && o->spots[at].key != element + 1)
        at = (at + 1) & (o->spot_room - 1);
    return &o->spots[at];
}

static ev_status spots_grow(fit_output *o, ev_error *err) {
    if (o->spot_count * 2 < o->spot_room)
        return EV_OK;
    fit_output grown = *o;
    grown.spot_room = o->spot_room == 0 ? 1024 : o->spot_room * 2;
    grown.spots = calloc(grown.spot_room, sizeof *grown.spots);
    if (grown.spots == NULL)
        return ev_fail_memory(err, grown.spot_room * sizeof *grown.spots);
    for (size_t i = 0; i < o->spot_room; i++) {
        if (o->spots[i].key != 0)
            *spot_slot(&grown, o->spots[i].key - 1) = o->spots[i];
    }
    free(o->spots);
    *o = grown;
    return EV_OK;
}

/* Gives the answer at one element; asks the oracle on the first call. */
static ev_status answer_at(fitness *f, fit_case *c, fit_output *o, uint64_t element, double *want,
                           double *scale, ev_error *err) {
    if (o->want != NULL) {
        *want = o->want[element];
        *scale = o->scale[element];
        return EV_OK;
    }
    EV_TRY(spots_grow(o, err));
    fit_spot *spot = spot_slot(o, element);
    if (spot->key == 0) {
        fit_spot made = {.key = element + 1};
        EV_TRY(ask(f, c, o, element, 1, &made.want, &made.scale, err));
        *spot = made;
        o->spot_count++;
    }
    *want = spot->want;
    *scale = spot->scale;
    return EV_OK;
}

static int compare_u64(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Lists the elements of one output that the last timed launch wrote, ascending. The list is
 * malloc'ed. */
typedef struct element_list {
    uint64_t *at;
    size_t count, room;
} element_list;

static ev_status list_add(element_list *list, uint64_t element, ev_error *err) {
    if (list->count == list->room) {
        size_t room = list->room == 0 ? 4096 : list->room * 2;
        uint64_t *more = realloc(list->at, room * sizeof *more);
        if (more == NULL)
            return ev_fail_memory(err, room * sizeof *more);
        list->at = more;
        list->room = room;
    }
    list->at[list->count++] = element;
    return EV_OK;
}

/* Adds the elements of [first, end) that were written. */
static ev_status list_range(fitness *f, const fit_argument *a, uint64_t first, uint64_t end,
                            element_list *list, ev_error *err) {
    uint8_t written[256];
    for (uint64_t at = first; at < end; at += sizeof written) {
        uint64_t count = end - at < sizeof written ? end - at : sizeof written, many = 0;
        EV_TRY(fit_elements_written(f, a, at, count, written, &many, err));
        for (uint64_t i = 0; many > 0 && i < count; i++) {
            if (written[i])
                EV_TRY(list_add(list, at + i, err));
        }
    }
    return EV_OK;
}

/* `sectors` are ascending. Neighbouring sectors are treated as one range, so that an element that
 * crosses two sectors is listed once. */
static ev_status list_written(fitness *f, const fit_argument *a, const uint64_t *sectors,
                              size_t count, element_list *list, ev_error *err) {
    uint64_t base = device_address(f->d, a->buffer);
    uint64_t bytes = a->owner != NULL ? a->owner->bytes : a->bytes;
    uint64_t done = 0; /* elements below are listed */
    for (size_t i = 0; i < count;) {
        uint64_t begin = sectors[i] * 32, end = begin + 32;
        for (i++; i < count && sectors[i] * 32 <= end; i++)
            end = sectors[i] * 32 + 32;
        if (end <= base || begin >= base + bytes)
            continue;
        uint64_t first = 0, last = 0;
        fit_elements_in(a, begin > base ? begin - base : 0, end - base, &first, &last);
        first = first < done ? done : first;
        last = last > a->count ? a->count : last;
        if (last > first)
            EV_TRY(list_range(f, a, first, last, list, err));
        done = last > done ? last : done;
    }
    return EV_OK;
}

/* Compares one element. `is_written` false: the element counts as never written.
 */
static ev_status compare_element(fitness *f, fit_case *c, fit_output *o, uint64_t element,
                                 bool is_written, accuracy_check *check, ev_error *err) {
    const fit_argument *a = &c->arguments[o->argument];
    double want = 0, scale = 0;
    uint64_t got = 0;
    if (is_padding(a, element))
        return EV_OK;
    EV_TRY(answer_at(f, c, o, element, &want, &scale, err));
    EV_TRY(fit_element_read(f, a, element, &got, err));
    uint8_t must_zero = zero_at(o, element), written = is_written;
    accuracy_part part = {.type = a->what->type,
                          .got = &got,
                          .want = &want,
                          .scale = &scale,
                          .written = &written,
                          .must_zero = &must_zero,
                          .count = 1};
    accuracy_add(check, &part);
    return EV_OK;
}

static ev_status compare_listed(fitness *f, fit_case *c, fit_output *o, const element_list *list,
                                accuracy_check *check, ev_error *err) {
    size_t spots = f->options.spot_elements < list->count ? f->options.spot_elements : list->count;
    accuracy_begin_output(check, c->arguments[o->argument].what->type);
    begin_own(check, &c->arguments[o->argument], o);
    for (size_t i = 0; i < spots; i++) {
        uint64_t element = list->at[i * (list->count - 1) / (spots > 1 ? spots - 1 : 1)];
        EV_TRY(compare_element(f, c, o, element, true, check, err));
    }
    accuracy_end_output(check);
    return EV_OK;
}

/* Compares elements spread evenly over those that are not in the list, which is ascending. An INOUT
 * element may keep its old value, if that is the answer. A device without shadow memory knows an
 * unwritten element only by its poison, so there the value alone counts. */
static ev_status compare_unlisted(fitness *f, fit_case *c, fit_output *o, const element_list *list,
                                  accuracy_check *check, ev_error *err) {
    const fit_argument *a = &c->arguments[o->argument];
    bool keeps = a->what->kind == TASK_INOUT || !has_shadow(f, a);
    uint64_t rest = a->count - list->count;
    uint64_t spots = f->options.spot_elements < rest ? f->options.spot_elements : rest;
    size_t before = 0; /* listed elements below `element` */
    accuracy_begin_output(check, a->what->type);
    begin_own(check, a, o);
    for (uint64_t i = 0; i < spots; i++) {
        uint64_t nth = i * (rest - 1) / (spots > 1 ? spots - 1 : 1);
        while (before < list->count && list->at[before] <= nth + before)
            before++;
        EV_TRY(compare_element(f, c, o, nth + before, keeps, check, err));
    }
    accuracy_end_output(check);
    return EV_OK;
}

/* Compares the elements that no thread wrote, and notes the output in *skipped if they are wrong.
 */
static ev_status look_for_skipped(fitness *f, fit_case *c, fit_output *o, const element_list *list,
                                  const accuracy_limits *limits, accuracy_check *check,
                                  fit_skipped *skipped, ev_error *err) {
    const fit_argument *a = &c->arguments[o->argument];
    if (skipped == NULL || list->count == a->count)
        return EV_OK;
    accuracy_check alone;
    accuracy_begin(&alone, limits);
    EV_TRY(compare_unlisted(f, c, o, list, &alone, err));
    if (accuracy_end(&alone).normalised <= 1 || skipped->output != NULL)
        return EV_OK;
    *skipped = (fit_skipped){a->what->name, a->count - list->count, a->count};
    return compare_unlisted(f, c, o, list, check, err); /* so that the case is wrong */
}

/* Takes the padding out of the list. An INOUT buffer of a device without shadow memory lists what
 * nobody wrote, too. */
static uint64_t drop_padding(fitness *f, const fit_argument *a, element_list *list) {
    bool knows = a->what->kind == TASK_OUT || has_shadow(f, a);
    size_t kept = 0, all = list->count;
    for (size_t i = 0; i < all; i++) {
        if (!is_padding(a, list->at[i]))
            list->at[kept++] = list->at[i];
    }
    list->count = kept;
    return knows ? all - kept : 0;
}

/* Without a list of stored sectors from the device, every element is compared. */
static ev_status list_output(fitness *f, const fit_argument *a, const uint64_t *sectors,
                             size_t count, element_list *list, ev_error *err) {
    return sectors != NULL ? list_written(f, a, sectors, count, list, err)
                           : list_range(f, a, 0, a->count, list, err);
}

/* The sectors that the last launch stored, ascending; *out is malloc'ed. NULL: not known. */
static ev_status stored_sectors(const fitness *f, uint64_t **out, size_t *count, ev_error *err) {
    const uint64_t *stored = device_stored(f->d, count);
    *out = NULL;
    if (stored == NULL)
        return EV_OK;
    uint64_t *sectors = malloc((*count + 1) * sizeof *sectors);
    if (sectors == NULL)
        return ev_fail_memory(err, *count * sizeof *sectors);
    memcpy(sectors, stored, *count * sizeof *sectors);
    qsort(sectors, *count, sizeof *sectors, compare_u64);
    *out = sectors;
    return EV_OK;
}

ev_status fit_count_written(fitness *f, const fit_case *c, uint64_t *written, ev_error *err) {
    size_t count = 0;
    uint64_t *sectors = NULL;
    EV_TRY(stored_sectors(f, &sectors, &count, err));
    ev_status status = EV_OK;
    *written = 0;
    for (size_t i = 0; status == EV_OK && i < c->output_count; i++) {
        element_list list = {0};
        status = list_output(f, &c->arguments[c->outputs[i].argument], sectors, count, &list, err);
        *written += list.count;
        free(list.at);
    }
    free(sectors);
    return status;
}

ev_status fit_count_outputs(fitness *f, const fit_case *c, uint64_t *counts, ev_error *err) {
    for (size_t i = 0; i < c->output_count; i++) {
        const fit_argument *a = &c->arguments[c->outputs[i].argument];
        counts[i] = 0;
        EV_TRY(fit_elements_written(f, a, 0, a->count, NULL, &counts[i], err));
    }
    return EV_OK;
}

static ev_status compare_spots(fitness *f, fit_case *c, const uint64_t *sectors, size_t count,
                               const size_t *writer, size_t index, accuracy_check *check,
                               uint64_t *written, fit_skipped *skipped, ev_error *err) {
    for (size_t i = 0; i < c->output_count; i++) {
        fit_output *o = &c->outputs[i];
        element_list list = {0};
        if (writer != NULL && writer[i] != index)
            continue;
        ev_status status = list_output(f, &c->arguments[o->argument], sectors, count, &list, err);
        if (status == EV_OK)
            check->worst.spoilt += drop_padding(f, &c->arguments[o->argument], &list);
        if (status == EV_OK && list.count > 0)
            status = compare_listed(f, c, o, &list, check, err);
        if (status == EV_OK)
            status = look_for_skipped(f, c, o, &list, &check->limits, check, skipped, err);
        *written += list.count;
        free(list.at);
        EV_TRY(status);
    }
    return EV_OK;
}

ev_status fit_compare_more(fitness *f, fit_case *c, const size_t *writer, size_t index,
                           accuracy_check *check, uint64_t *written, fit_skipped *skipped,
                           ev_error *err) {
    size_t count = 0;
    uint64_t *sectors = NULL;
    EV_TRY(stored_sectors(f, &sectors, &count, err));
    ev_status status =
        compare_spots(f, c, sectors, count, writer, index, check, written, skipped, err);
    free(sectors);
    return status;
}

ev_status fit_compare_spots(fitness *f, fit_case *c, const accuracy_limits *limits, accuracy *out,
                            uint64_t *written, fit_skipped *skipped, ev_error *err) {
    accuracy_check check;
    accuracy_begin(&check, limits);
    *written = 0;
    if (skipped != NULL)
        *skipped = (fit_skipped){0};
    EV_TRY(fit_compare_more(f, c, NULL, 0, &check, written, skipped, err));
    *out = accuracy_end(&check);
    return EV_OK;
}
