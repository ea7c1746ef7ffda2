/* evoke run: one launch of a PTX file, its outputs and its counters. */
#include "tuner/cli/cmd.h"

#include "tuner/cli/launch.h"

#include <stdio.h>
#include <stdlib.h>

static ev_status print_trap(cmd_context *c, const ptx_launch *l, const vm_trap *trap,
                            ev_error *err) {
    ev_str text = EV_STR_EMPTY;
    trap_print(trap, l->path, device_kernel_module(l->kernel), &text);
    (void)fprintf(stderr, "evoke: %s", ev_str_text(&text));
    ev_str_free(&text);
    c->exit_code = 1;
    if (!cli_flag(c->args, CLI_OPT_JSON))
        return EV_OK;
    return cmd_print_json(c, json_pack("{s:s, s:o}", "status", "trap", "trap", trap_to_json(trap)),
                          err);
}

static json_t *rank_json(const ptx_launch *l, const vm_counters *counters, ev_status *status,
                         ev_error *err) {
    json_t *outputs = json_array();
    *status = ptx_launch_outputs(l, outputs, err);
    return json_pack("{s:o, s:o}", "outputs", outputs, "counters", counters_to_json(counters));
}

static ev_status print_text(cmd_context *c, const json_t *rank, const vm_counters *counters,
                            ev_error *err) {
    const json_t *outputs = json_object_get(rank, "outputs");
    for (size_t i = 0; i < json_array_size(outputs); i++)
        ev_str_printf(c->out, "output %zu: %s\n", i, json_string_value(json_array_get(outputs, i)));
    ev_str_char(c->out, '\n');
    return counters_print(counters, c->out, err);
}

/* One rank is as it was before there were ranks: its outputs and counters beside the status. */
static ev_status print_ok(cmd_context *c, const ptx_launch *all, uint32_t ranks,
                          const device_outcome *outcomes, ev_error *err) {
    json_t *list = json_array(), *first = NULL;
    bool as_json = cli_flag(c->args, CLI_OPT_JSON);
    const char *where = device_properties_of(all->device)->placement;
    ev_status status = EV_OK;
    if (ranks > 1 && !as_json)
        ev_str_printf(c->out, "%s\n\n", where);
    for (uint32_t i = 0; status == EV_OK && i < ranks; i++) {
        json_t *rank = rank_json(&all[i], &outcomes[i].counters, &status, err);
        (void)json_array_append_new(list, rank);
        if (status == EV_OK && !as_json && ranks > 1)
            ev_str_printf(c->out, "%srank %u\n", i > 0 ? "\n" : "", i);
        if (status == EV_OK && !as_json)
            status = print_text(c, rank, &outcomes[i].counters, err);
    }
    if (status == EV_OK && as_json) {
        first = ranks > 1 ? json_pack("{s:s, s:s, s:O}", "status", "ok", "placement", where,
                                      "ranks", list)
                          : json_pack("{s:s}", "status", "ok");
        if (ranks == 1)
            (void)json_object_update(first, json_array_get(list, 0));
        status = cmd_print_json(c, first, err);
    }
    json_decref(list);
    return status;
}

static ev_status run_all(const ptx_launch *all, uint32_t ranks, device_outcome *outcomes,
                         ev_error *err) {
    if (ranks == 1)
        return device_run(all->device, all->kernel, &all->launch, outcomes, err);
    device **devices = calloc(ranks, sizeof(device *));
    const device_kernel **kernels = calloc(ranks, sizeof(device_kernel *));
    device_launch *launches = calloc(ranks, sizeof *launches);
    bool made = devices != NULL && kernels != NULL && launches != NULL;
    for (uint32_t i = 0; made && i < ranks; i++) {
        devices[i] = all[i].device;
        kernels[i] = all[i].kernel;
        launches[i] = all[i].launch;
    }
    ev_status status = made ? device_run_ranks(devices, kernels, launches, ranks, outcomes, err)
                            : ev_fail_memory(err, ranks * sizeof *launches);
    free(devices);
    free(kernels);
    free(launches);
    return status;
}

/* As it comes: a kernel that hangs or traps has said so much before. */
static void print_words(void *context, const char *text, size_t bytes) {
    (void)context;
    (void)fwrite(text, 1, bytes, stderr);
    (void)fflush(stderr);
}

static ev_status run_launches(cmd_context *c, ptx_launch *all, uint32_t ranks, ev_error *err) {
    device_outcome *outcomes = calloc(ranks, sizeof *outcomes);
    if (outcomes == NULL)
        return ev_fail_memory(err, ranks * sizeof *outcomes);
    for (uint32_t i = 0; i < ranks; i++)
        all[i].launch.print = print_words;
    ev_status status = run_all(all, ranks, outcomes, err);
    if (status != EV_OK)
        status = ev_wrap(err, status, "%s", all->path);
    else if (!outcomes[0].ok) /* of whichever rank: all have it */
        status = print_trap(c, all, &outcomes[0].fault, err);
    else
        status = print_ok(c, all, ranks, outcomes, err);
    free(outcomes);
    return status;
}

ev_status cmd_run(cmd_context *c, ev_error *err) {
    uint64_t ranks = cli_count(c->args, CLI_OPT_RANKS, 1);
    if (ranks == 0 || ranks > VM_RANKS_MOST)
        return ev_fail(err, EV_BAD, "--ranks %llu: give 1 to %u", (unsigned long long)ranks,
                       VM_RANKS_MOST);
    ptx_launch *all = calloc(ranks, sizeof *all);
    if (all == NULL)
        return ev_fail_memory(err, ranks * sizeof *all);
    ev_status status =
        ptx_launch_open_ranks(c->args->operands[0], c->args, (uint32_t)ranks, all, err);
    if (status == EV_OK) {
        status = run_launches(c, all, (uint32_t)ranks, err);
        for (uint64_t i = 0; i < ranks; i++)
            ptx_launch_close(&all[i]);
    }
    free(all);
    return status;
}
