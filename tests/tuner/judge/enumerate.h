/* Enumeration: a small domain of each of the ten judged kernels, every input of which is tried. */
#ifndef TESTS_TUNER_JUDGE_ENUMERATE_H
#define TESTS_TUNER_JUDGE_ENUMERATE_H

#include "base/str.h"
#include "tests/tuner/judge/machine.h"

#define JUDGED_COUNT 10
#define JUDGED_FOLDER "tests/tuner/judge/"

/* A kernel x, y, a, n of whole numbers, and the values of its domain. */
typedef struct judged {
    const char *name;
    int x[6]; /* of each of one to three elements */
    int a[5]; /* of the scalar */
} judged;

extern const judged judged_kernels[JUDGED_COUNT];

/* Runs both kernels on every input and compares bit by bit. Returns the number of inputs on which
 * the start runs. *wrong: those on which the variant traps or differs; `first` gets the first of
 * them. `most`: ends after so many wrong ones. */
unsigned judged_compare(device *d, const task *t, const judged *j, const judge_kernel *start,
                        const judge_kernel *variant, unsigned most, unsigned *wrong, ev_str *first);

#endif
