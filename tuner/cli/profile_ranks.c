/* Profiles ranks that run side by side: what each would take on one GPU's memory, over links, and
 * over a network, and from these the stalls as Stash defines them (Sharma et al., ICDCS 2023): the
 * interconnect's is all ranks on one node less one GPU alone, the network's is two nodes less one.
 */
#include "tuner/cli/profile.h"

#include "base/table.h"
#include "tuner/cli/launch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REACHES 3

typedef struct ranks_profile {
    cmd_context *c;
    const char *path;
    uint32_t count;
    ptx_launch *launches; /* of the last run, open for its text */
    device_outcome *outcomes;
    device_timing *timings[REACHES]; /* by reach and rank */
    uint64_t **executions;           /* by rank and pc */
    model_site **sites;
} ranks_profile;

typedef struct stash {
    double compute, interconnect, network; /* ns */
} stash;

/* ---- running ---- */

static ev_status make_counts(ranks_profile *p, uint32_t rank, ev_error *err) {
    size_t insns = vm_module_insn_count(device_kernel_module(p->launches[rank].kernel));
    free(p->executions[rank]);
    free(p->sites[rank]);
    p->executions[rank] = calloc(insns + 1, sizeof *p->executions[rank]);
    p->sites[rank] = calloc(insns + 1, sizeof *p->sites[rank]);
    p->launches[rank].launch.executions = p->executions[rank];
    p->launches[rank].launch.sites = p->sites[rank];
    return p->executions[rank] != NULL && p->sites[rank] != NULL
               ? EV_OK
               : ev_fail_memory(err, insns * sizeof(model_site));
}

static ev_status time_launches(ranks_profile *p, model_reach reach, ev_error *err) {
    device **devices = calloc(p->count, sizeof(device *));
    const device_kernel **kernels = calloc(p->count, sizeof(device_kernel *));
    device_launch *launches = calloc(p->count, sizeof *launches);
    bool made = devices != NULL && kernels != NULL && launches != NULL;
    ev_status status = made ? EV_OK : ev_fail_memory(err, p->count * sizeof *launches);
    for (uint32_t i = 0; status == EV_OK && i < p->count; i++) {
        status = make_counts(p, i, err);
        devices[i] = p->launches[i].device;
        kernels[i] = p->launches[i].kernel;
        launches[i] = p->launches[i].launch;
    }
    if (status == EV_OK)
        status = device_time_ranks(devices, kernels, launches, p->count, reach, p->outcomes,
                                   p->timings[reach], err);
    free(devices);
    free(kernels);
    free(launches);
    return status;
}

static void close_launches(ranks_profile *p) {
    for (uint32_t i = 0; i < p->count; i++)
        ptx_launch_close(&p->launches[i]);
}

/* Buffers are filled anew for each; the last stays open. */
static ev_status run_reaches(ranks_profile *p, ev_error *err) {
    static const model_reach order[REACHES] = {MODEL_ONE_GPU, MODEL_TWO_NODES, MODEL_ONE_NODE};
    for (int i = 0; i < REACHES; i++) {
        if (i > 0)
            close_launches(p);
        EV_TRY(ptx_launch_open_ranks(p->path, p->c->args, p->count, p->launches, err));
        ev_status status = time_launches(p, order[i], err);
        if (status != EV_OK)
            return ev_wrap(err, status, "%s", p->path);
        if (!p->outcomes[0].ok)
            return EV_OK;
    }
    return EV_OK;
}

/* ---- stalls ---- */

static stash stash_of(double one_gpu, double one_node, double two_nodes) {
    return (stash){one_gpu, fmax(one_node - one_gpu, 0), fmax(two_nodes - one_node, 0)};
}

static stash stash_of_rank(const ranks_profile *p, uint32_t rank) {
    return stash_of(p->timings[MODEL_ONE_GPU][rank].ns, p->timings[MODEL_ONE_NODE][rank].ns,
                    p->timings[MODEL_TWO_NODES][rank].ns);
}

/* A collective ends with its slowest rank. */
static uint32_t slowest(const ranks_profile *p, model_reach reach) {
    uint32_t most = 0;
    for (uint32_t i = 1; i < p->count; i++)
        most = p->timings[reach][i].ns > p->timings[reach][most].ns ? i : most;
    return most;
}

static stash stash_of_all(const ranks_profile *p) {
    return stash_of(p->timings[MODEL_ONE_GPU][slowest(p, MODEL_ONE_GPU)].ns,
                    p->timings[MODEL_ONE_NODE][slowest(p, MODEL_ONE_NODE)].ns,
                    p->timings[MODEL_TWO_NODES][slowest(p, MODEL_TWO_NODES)].ns);
}

/* ---- printing ---- */

static profile profile_of(const ranks_profile *p, uint32_t rank) {
    const ptx_launch *l = &p->launches[rank];
    profile shown = {.kernel = device_kernel_entry(l->kernel)->name,
                     .device = device_properties_of(l->device),
                     .module = device_kernel_module(l->kernel),
                     .path = l->path,
                     .launch = l->geometry,
                     .outcome = &p->outcomes[rank],
                     .timing = &p->timings[MODEL_ONE_NODE][rank],
                     .executions = p->executions[rank],
                     .sites = p->sites[rank]};
    return shown;
}

static void stall_cell(double ns, double of, table *rows) {
    char text[24];
    table_time(ns, text);
    table_cell(rows, "%s %3.0f %%", text, of > 0 ? 100 * ns / of : 0);
}

static void stash_row(const char *name, const stash *s, const model_time *m, table *rows) {
    double all = s->compute + s->interconnect + s->network;
    char in[32] = "", out[32] = "";
    if (m != NULL) {
        table_amount(m->link_in, "B", in);
        table_amount(m->link_out, "B", out);
    }
    table_cell(rows, "%s", name);
    stall_cell(s->compute, all, rows);
    stall_cell(s->interconnect, all, rows);
    stall_cell(s->network, all, rows);
    table_cell(rows, "%s", in);
    table_cell(rows, "%s", out);
}

#define RANKS_SHOWN 16

static ev_status print_table(const ranks_profile *p, ev_str *out, ev_error *err) {
    static const char *const columns[] = {
        "", ">compute", ">interconnect stall", ">network stall", ">link in", ">link out", NULL};
    table *rows = table_new(columns);
    if (rows == NULL)
        return ev_fail_memory(err, 1);
    for (uint32_t i = 0; i < p->count && i < RANKS_SHOWN; i++) {
        char name[24];
        stash s = stash_of_rank(p, i);
        (void)snprintf(name, sizeof name, "rank %u", i);
        stash_row(name, &s, &p->timings[MODEL_ONE_NODE][i].model, rows);
    }
    stash all = stash_of_all(p);
    stash_row("slowest", &all, NULL, rows);
    ev_status status = table_print(rows, out, err);
    table_free(rows);
    return status;
}

static ev_status print_text(const ranks_profile *p, const profile *shown, uint32_t rank,
                            ev_error *err) {
    ev_str *out = p->c->out;
    ev_str_printf(out, "%s, %u ranks on %s (%s), times modelled\n\n", shown->kernel, p->count,
                  shown->device->id, shown->device->name);
    EV_TRY(print_table(p, out, err));
    if (p->count > RANKS_SHOWN)
        ev_str_printf(out, "(%u more ranks)\n", p->count - RANKS_SHOWN);
    ev_str_printf(
        out,
        "\ncompute: peers' memory as near as one's own; interconnect stall: what links to "
        "peers add, all\nranks on one node; network stall: what two nodes add, half of "
        "the ranks on each. Time that a rank\nwaits for another is not modelled, and its looks at "
        "a flag count as one.\n\n"
        "rank %u, the slowest of one node\n\n",
        rank);
    return profile_print(p->c, shown, err);
}

static json_t *stash_json(const stash *s) {
    return json_pack("{s:f, s:f, s:f}", "compute_ns", s->compute, "interconnect_stall_ns",
                     s->interconnect, "network_stall_ns", s->network);
}

static ev_status print_json(const ranks_profile *p, const profile *shown, uint32_t rank,
                            ev_error *err) {
    json_t *list = json_array(), *one = NULL;
    for (uint32_t i = 0; i < p->count; i++) {
        stash s = stash_of_rank(p, i);
        const model_time *m = &p->timings[MODEL_ONE_NODE][i].model;
        json_t *row = stash_json(&s);
        (void)json_object_set_new(row, "link_in_bytes", json_real(m->link_in));
        (void)json_object_set_new(row, "link_out_bytes", json_real(m->link_out));
        (void)json_array_append_new(list, row);
    }
    ev_status status = profile_to_json(shown, cli_count(p->c->args, CLI_OPT_LINES, 0), &one, err);
    if (status != EV_OK) {
        json_decref(list);
        return status;
    }
    stash s = stash_of_all(p);
    json_t *all = stash_json(&s);
    (void)json_object_update_new(all, json_pack("{s:s, s:s, s:o, s:I, s:o}", "status", "ok",
                                                "time_kind", "modelled", "ranks", list,
                                                "slowest_rank", (json_int_t)rank, "profile", one));
    return cmd_print_json(p->c, all, err);
}

static ev_status show(const ranks_profile *p, ev_error *err) {
    uint32_t rank = p->outcomes[0].ok ? slowest(p, MODEL_ONE_NODE) : 0;
    profile shown = profile_of(p, rank);
    if (!p->outcomes[0].ok) /* of whichever rank: all have it */
        return profile_print(p->c, &shown, err);
    return cli_flag(p->c->args, CLI_OPT_JSON) ? print_json(p, &shown, rank, err)
                                              : print_text(p, &shown, rank, err);
}

static bool make_lists(ranks_profile *p) {
    p->launches = calloc(p->count, sizeof *p->launches);
    p->outcomes = calloc(p->count, sizeof *p->outcomes);
    p->executions = calloc(p->count, sizeof(uint64_t *));
    p->sites = calloc(p->count, sizeof(model_site *));
    bool made =
        p->launches != NULL && p->outcomes != NULL && p->executions != NULL && p->sites != NULL;
    for (int i = 0; i < REACHES; i++) {
        p->timings[i] = calloc(p->count, sizeof *p->timings[i]);
        made = made && p->timings[i] != NULL;
    }
    return made;
}

static void free_lists(ranks_profile *p) {
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->executions != NULL)
            free(p->executions[i]);
        if (p->sites != NULL)
            free(p->sites[i]);
    }
    free(p->launches);
    free(p->outcomes);
    free(p->executions);
    free(p->sites);
    for (int i = 0; i < REACHES; i++)
        free(p->timings[i]);
}

ev_status profile_ranks(cmd_context *c, const char *path, uint32_t count, ev_error *err) {
    ranks_profile p = {.c = c, .path = path, .count = count};
    ev_status status =
        make_lists(&p) ? run_reaches(&p, err) : ev_fail_memory(err, count * sizeof *p.launches);
    if (status == EV_OK)
        status = show(&p, err);
    if (p.launches != NULL)
        close_launches(&p);
    free_lists(&p);
    return status;
}
