/* evoke bench: chooses the bench; and the statistics that they share. */
#include "tuner/bench/bench.h"

#include "kernels/task.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double bench_mean(const double *values, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return count > 0 ? sum / (double)count : 0;
}

/* Of a sample: divided by count - 1. */
double bench_deviation(const double *values, size_t count) {
    double mean = bench_mean(values, count), sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (values[i] - mean) * (values[i] - mean);
    return count > 1 ? sqrt(sum / (double)(count - 1)) : 0;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_quantile(double *values, size_t count, double share) {
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, compare_doubles);
    size_t at = (size_t)ceil(share * (double)count);
    return values[at > 0 ? at - 1 : 0];
}

ev_status bench_tasks(const cli_args *args, char ***paths, size_t *count, ev_error *err) {
    const char *only = cli_text(args, CLI_OPT_ONLY);
    if (only == NULL)
        return task_list_leads(paths, count, err);
    char **one = calloc(1, sizeof *one);
    if (one != NULL)
        one[0] = strdup(only);
    if (one == NULL || one[0] == NULL) {
        free(one);
        return ev_fail_memory(err, strlen(only));
    }
    *paths = one;
    *count = 1;
    return EV_OK;
}

ev_status cmd_bench(cmd_context *c, ev_error *err) {
    static const struct {
        const char *name;
        cmd_fn *run;
    } benches[] = {{"compile", bench_compile}, {"vm", bench_vm},     {"search", bench_search},
                   {"model", bench_model},     {"rank", bench_rank}, {"bundle", bench_bundle}};
    const char *name = c->args->operands[0];
    for (size_t i = 0; i < sizeof benches / sizeof benches[0]; i++) {
        if (strcmp(benches[i].name, name) == 0)
            return benches[i].run(c, err);
    }
    return ev_fail(err, EV_BAD,
                   "there is no bench '%s'; there are compile, vm, search, model, rank and bundle",
                   name);
}
