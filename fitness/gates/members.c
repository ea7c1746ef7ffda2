/* Members: the elements of one member of the structs in a buffer, as if they lay one behind the
 * other. The device knows the whole buffer alone (kernels/task.h). */
#include "fitness/gates/fitness_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- bytes ---- */

void fit_members_gather(const fit_argument *member, const void *bytes, void *elements) {
    size_t size = ev_type_bytes(member->what->type);
    for (uint64_t i = 0; i < member->count; i++)
        memcpy((char *)elements + i * size,
               (const char *)bytes + task_member_place(member->what, i), size);
}

static void scatter(const fit_argument *member, void *bytes) {
    size_t size = ev_type_bytes(member->what->type);
    for (uint64_t i = 0; i < member->count; i++)
        memcpy((char *)bytes + task_member_place(member->what, i),
               (const char *)member->before + i * size, size);
}

static ev_status make_room(fit_argument *member, ev_error *err) {
    member->before = malloc(member->bytes + 1);
    member->owns_before = true;
    return member->before != NULL ? EV_OK : ev_fail_memory(err, member->bytes);
}

ev_status fit_members_fill(fitness *f, fit_case *c, const fit_argument *a, ev_error *err) {
    for (size_t i = 0; i < a->what->member_count; i++) {
        fit_argument *member = &c->arguments[a->what->first_member + i];
        EV_TRY(make_room(member, err));
        EV_TRY(fit_make_contents(f, c, member, err));
        scatter(member, a->before);
    }
    return EV_OK;
}

ev_status fit_members_place(fitness *f, fit_case *c, const fit_argument *shared, ev_error *err) {
    size_t first = f->t->argument_count + f->t->symbol_count;
    for (size_t i = first; i < task_all_count(f->t); i++) {
        fit_argument *member = &c->arguments[i];
        member->buffer = member->owner->buffer;
        if (member->owner != shared || member->what->kind != TASK_INOUT)
            continue;
        EV_TRY(make_room(member, err));
        fit_members_gather(member, shared->before, member->before);
    }
    return EV_OK;
}

/* ---- what a launch left ---- */

/* The bytes of the whole buffer. */
static ev_status read_whole(fitness *f, const fit_argument *buffer, const void **got, void **owned,
                            ev_error *err) {
    *owned = NULL;
    *got = device_host(f->d, buffer->buffer);
    if (*got != NULL)
        return EV_OK;
    void *copy = malloc(buffer->bytes + 1);
    if (copy == NULL)
        return ev_fail_memory(err, buffer->bytes);
    ev_status status = device_read(f->d, buffer->buffer, 0, copy, buffer->bytes, err);
    if (status != EV_OK) {
        free(copy);
        return status;
    }
    *got = *owned = copy;
    return EV_OK;
}

ev_status fit_elements_read(fitness *f, const fit_argument *a, const void **got, void **owned,
                            ev_error *err) {
    const void *whole = NULL;
    void *copy = NULL;
    if (a->owner == NULL)
        return read_whole(f, a, got, owned, err);
    EV_TRY(read_whole(f, a->owner, &whole, &copy, err));
    *got = *owned = malloc(a->bytes + 1);
    if (*owned != NULL)
        fit_members_gather(a, whole, *owned);
    free(copy);
    return *owned != NULL ? EV_OK : ev_fail_memory(err, a->bytes);
}

static uint64_t place_of(const fit_argument *a, uint64_t element) {
    return a->owner != NULL ? task_member_place(a->what, element)
                            : element * ev_type_bytes(a->what->type);
}

ev_status fit_element_read(fitness *f, const fit_argument *a, uint64_t element, void *out,
                           ev_error *err) {
    return device_read(f->d, a->buffer, place_of(a, element), out, ev_type_bytes(a->what->type),
                       err);
}

/* A packed struct may have a number at any byte. */
static ev_status is_written(fitness *f, const fit_argument *a, uint64_t element, bool *out,
                            ev_error *err) {
    size_t size = ev_type_bytes(a->what->type);
    uint64_t place = place_of(a, element), many = 0;
    bool is_odd = place % size != 0;
    uint8_t flags[sizeof(uint64_t)];
    EV_TRY(device_written(f->d, a->buffer, is_odd ? 1 : size, is_odd ? place : place / size,
                          is_odd ? size : 1, flags, &many, err));
    *out = many == (is_odd ? size : 1);
    return EV_OK;
}

ev_status fit_elements_written(fitness *f, const fit_argument *a, uint64_t first, uint64_t count,
                               uint8_t *written, uint64_t *how_many, ev_error *err) {
    if (a->owner == NULL)
        return device_written(f->d, a->buffer, ev_type_bytes(a->what->type), first, count, written,
                              how_many, err);
    *how_many = 0;
    for (uint64_t i = 0; i < count; i++) {
        bool yes = false;
        EV_TRY(is_written(f, a, first + i, &yes, err));
        if (written != NULL)
            written[i] = yes;
        *how_many += yes;
    }
    return EV_OK;
}

void fit_elements_in(const fit_argument *a, uint64_t begin, uint64_t end, uint64_t *first,
                     uint64_t *last) {
    uint64_t stride =
        a->owner != NULL ? a->what->owner->struct_bytes : ev_type_bytes(a->what->type);
    uint64_t numbers = a->owner != NULL ? a->what->numbers : 1;
    *first = begin / stride * numbers;
    *last = (end + stride - 1) / stride * numbers;
}

/* ---- in words ---- */

void fit_name_element(const fit_argument *a, fitness_element *out) {
    ev_str text = EV_STR_EMPTY;
    task_element_name(a->what, out->index, &text);
    (void)snprintf(out->name, sizeof out->name, "%s", ev_str_text(&text));
    ev_str_free(&text);
}

void fit_tell_worst(fit_result *r) {
    const fitness_element *at = &r->worst;
    size_t end = strlen(r->reason);
    if (at->output == NULL)
        return;
    if (at->is_written)
        (void)snprintf(r->reason + end, sizeof r->reason - end, "; %s: expected %.9g, found %.9g",
                       at->name, at->want, at->got);
    else
        (void)snprintf(r->reason + end, sizeof r->reason - end, "; %s was never written", at->name);
}
