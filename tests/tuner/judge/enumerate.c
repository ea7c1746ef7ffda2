/* Enumeration of the judged kernels' inputs: one to three elements of six values, five scalars. */
#include "tests/tuner/judge/enumerate.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ok.h"

#define VALUES 6
#define SCALARS 5
#define MOST_ELEMENTS 3
#define FUEL_FACTOR 50
#define FUEL_SLACK 100000

/* The places of the arguments in all tasks. */
enum { X, Y, A, N };

const judged judged_kernels[JUDGED_COUNT] = {
    {"sentinel", {-1, 0, 1, 2, 99999, 100000}, {-8, -1, 0, 5, 8}},
    {"saturate", {-128, -3, 0, 1, 3, 127}, {0, 1, 2, 6, 7}},
    {"clamp", {-4, -1, 0, 1, 2, 70000}, {-2, -1, 0, 1, 2}},
    {"head", {0, 1, 100, 101, 999999, 1000000}, {0, 1, 100, 500, 1000000}},
    {"ties", {-1000000000, -1, 0, 1, 7, 1000000000}, {-5, -1, 0, 1, 5}},
    {"once", {0, 1, 99, 100, 250, 1000}, {3, 50, 100, 101, 1000}},
    {"wrap", {INT_MIN, -1, 0, 1, 3, INT_MAX}, {INT_MIN, -1, 0, 3, INT_MAX}},
    {"shift", {INT_MIN, -1, 0, 1, 255, INT_MAX}, {0, 1, 3, 31, 32}},
    {"divide", {-1000000, -7, -1, 0, 6, 1000000}, {-9, -1, 0, 1, 7}},
    {"scan", {-100, -1, 0, 1, 2, 100}, {-3, 0, 1, 2, 3}},
};

static void describe(const judge_input *in, const judge_output *want, const judge_output *got,
                     ev_str *out) {
    const int *x = in->data[X], *wanted = want->data[Y], *found = got->data[Y];
    ev_str_printf(out, "a = %d, x =", (int)in->value[A].whole);
    for (uint64_t i = 0; i < in->count[X]; i++)
        ev_str_printf(out, " %d", x[i]);
    if (!got->ran)
        ev_str_printf(out, ": it traps");
    for (uint64_t i = 0; got->ran && i < in->count[Y]; i++)
        ev_str_printf(out, "%s %d for %d", i == 0 ? "; y is" : ",", found[i], wanted[i]);
}

/* Whether the start runs there; *same: the variant leaves the same bits. */
static bool compare(device *d, const judge_input *in, const judge_kernel *start,
                    const judge_kernel *variant, bool *same, ev_str *first) {
    judge_output want, got = {.ran = false};
    judge_run(d, start, in, 0, &want);
    bool runs = want.ran;
    if (runs) {
        uint64_t fuel = (uint64_t)(FUEL_FACTOR * want.instructions) + FUEL_SLACK;
        judge_run(d, variant, in, fuel, &got);
        *same = got.ran && memcmp(want.data[Y], got.data[Y], in->count[Y] * sizeof(int)) == 0;
        if (!*same && first->length == 0)
            describe(in, &want, &got, first);
    }
    judge_output_free(&want);
    judge_output_free(&got);
    return runs;
}

/* Sets input `number` of those with so many elements; false: there are no more. */
static bool set_input(judge_input *in, const judged *j, unsigned number) {
    int *x = in->data[X];
    in->value[A] = expr_of_whole(j->a[number % SCALARS]);
    number /= SCALARS;
    for (uint64_t i = 0; i < in->count[X]; i++) {
        x[i] = j->x[number % VALUES];
        number /= VALUES;
    }
    return number == 0;
}

unsigned judged_compare(device *d, const task *t, const judged *j, const judge_kernel *start,
                        const judge_kernel *variant, unsigned most, unsigned *wrong,
                        ev_str *first) {
    unsigned tried = 0;
    *wrong = 0;
    for (int n = 1; n <= MOST_ELEMENTS; n++) {
        const expr_name shape = {"n", expr_of_whole(n)};
        judge_input in;
        assert_true(judge_input_make(t, &shape, 1, &in));
        for (unsigned i = 0; set_input(&in, j, i) && *wrong < most; i++) {
            bool same = true;
            tried += compare(d, &in, start, variant, &same, first);
            *wrong += !same;
        }
        judge_input_free(&in);
    }
    return tried;
}
