/* A machine of the judges' own: runs kernels on data that a judge makes. It shares the virtual
 * machine and the launch rules with the gates, and no generator, shape, seed or comparison.
 * Failures of the machine itself fail the test. */
#ifndef TESTS_TUNER_JUDGE_MACHINE_H
#define TESTS_TUNER_JUDGE_MACHINE_H

#include "fitness/device/device.h"
#include "kernels/task.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JUDGE_ARGUMENTS 16
#define JUDGE_SIZES 8

/* A loaded kernel and how it is launched; all but `loaded` is borrowed. */
typedef struct judge_kernel {
    device_kernel *loaded; /* NULL: the device refuses it */
    const task_start *start;
    const launch_plan *plan;
    const expr_name *macros; /* that differ from their defaults */
    size_t macro_count;
} judge_kernel;

/* One input of a task: a shape, contents of the buffers, values of the scalars. */
typedef struct judge_input {
    const task *t;
    task_case at;
    expr_name shape[JUDGE_SIZES];
    void
        *data[JUDGE_ARGUMENTS]; /* of in and inout; zeros at first. Of out: room for the elements */
    uint64_t count[JUDGE_ARGUMENTS];
    expr_value value[JUDGE_ARGUMENTS]; /* of scalars */
} judge_input;

/* What a kernel left behind. */
typedef struct judge_output {
    bool ran;                    /* false: a trap */
    double instructions;         /* of all threads */
    void *data[JUDGE_ARGUMENTS]; /* of out and inout; NULL of the others */
} judge_output;

/* Makes an input with that shape, whose names and values are copied. false: the task has no launch
 * or no count there. */
bool judge_input_make(const task *t, const expr_name *shape, size_t size_count, judge_input *out);
void judge_input_free(judge_input *in);
bool judge_is_output(const task_argument *a);
bool judge_is_input(const task_argument *a); /* a buffer that has contents before the launch */

/* Loads a kernel; *plan NULL: the start's own. Free by judge_kernel_free. */
judge_kernel judge_kernel_load(device *d, const char *ptx, size_t bytes, const task_start *start,
                               const launch_plan *plan);
void judge_kernel_free(judge_kernel *k);

/* Runs the kernel under all checks of the virtual machine. `fuel`: thread instructions; 0: the
 * device's default. Free `out` by judge_output_free. */
void judge_run(device *d, const judge_kernel *k, const judge_input *in, uint64_t fuel,
               judge_output *out);
void judge_output_free(judge_output *out);

#endif
