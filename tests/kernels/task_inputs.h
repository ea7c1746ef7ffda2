/* For tests of tasks: a case's arguments made concrete, as an oracle takes them. */
#ifndef TESTS_KERNELS_TASK_INPUTS_H
#define TESTS_KERNELS_TASK_INPUTS_H

#include "kernels/task.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/asserts.h"

typedef struct task_inputs {
    const task *t;
    const task_case *c;
    evoke_argument *arguments; /* [t->argument_count]; data is malloc'ed */
} task_inputs;

#define OK_OR_FAIL(call)                                                                           \
    do {                                                                                           \
        if ((call) != EV_OK)                                                                       \
            fail_msg("%s", err.text);                                                              \
    } while (0)

static inline void task_inputs_fill(const task *t, const task_case *c, const task_argument *a,
                                    evoke_argument *out) {
    ev_error err = {EV_OK, ""};
    corpus_request request;
    OK_OR_FAIL(task_argument_count_of(t, a, c, &out->count, &err));
    if (a->kind == TASK_OUT)
        return;
    void *data = malloc(out->count * ev_type_bytes(a->type));
    assert_non_null(data);
    OK_OR_FAIL(task_argument_data_of(t, a, c, 0, &request, &err));
    OK_OR_FAIL(corpus_fill(&request, 0, request.length, data, &err));
    out->data = data;
}

static inline task_inputs task_inputs_make(const task *t, const task_case *c) {
    task_inputs in = {t, c, calloc(t->argument_count, sizeof(evoke_argument))};
    assert_non_null(in.arguments);
    for (size_t i = 0; i < t->argument_count; i++) {
        const task_argument *a = &t->arguments[i];
        in.arguments[i].name = a->name;
        in.arguments[i].type = ev_type_name(a->type);
        if (a->kind != TASK_SCALAR) {
            task_inputs_fill(t, c, a, &in.arguments[i]);
            continue;
        }
        ev_error err = {EV_OK, ""};
        expr_value value;
        OK_OR_FAIL(task_argument_value_of(t, a, c, &value, &err));
        in.arguments[i].value = value.real;
    }
    return in;
}

static inline void task_inputs_free(task_inputs *in) {
    for (size_t i = 0; i < in->t->argument_count; i++)
        free((void *)in->arguments[i].data);
    free(in->arguments);
}

static inline size_t task_inputs_index(const task_inputs *in, const char *name) {
    for (size_t i = 0; i < in->t->argument_count; i++) {
        if (strcmp(in->arguments[i].name, name) == 0)
            return i;
    }
    fail_msg("no argument %s", name);
    return 0;
}

/* The data of a buffer of floats. */
static inline const float *floats(const task_inputs *in, const char *name) {
    return in->arguments[task_inputs_index(in, name)].data;
}

/* The value of a whole scalar. */
static inline uint64_t whole(const task_inputs *in, const char *name) {
    return (uint64_t)in->arguments[task_inputs_index(in, name)].value;
}

/* Elements first .. first + count - 1 of an output by the task's oracle. */
static inline void task_inputs_ask(const task_inputs *in, size_t output, uint64_t first,
                                   uint64_t count, double *value, double *scale) {
    evoke_oracle_call call = {.arguments = in->arguments,
                              .argument_count = in->t->argument_count,
                              .output = output,
                              .first = first,
                              .count = count,
                              .value = value,
                              .scale = scale};
    assert_int_equal(in->t->oracle(&call), 0);
    free(call.scratch);
}

#endif
