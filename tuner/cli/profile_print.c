/* Prints a profile: time and its bound, occupancy, units, stalls, memory, hottest lines. */
#include "tuner/cli/profile.h"

#include "base/table.h"
#include "tuner/cli/launch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUSY_CELLS 24
#define WAIT_CELLS 16
#define LINE_COLUMNS 100

static const char *const meanings[] = {
#define MODEL_TERM(id, name, meaning) meaning,
#include "fitness/model/terms.def"
#undef MODEL_TERM
};

static const char *const pipe_names[VM_PIPE_COUNT] = {
#define VM_PIPE(id, name, throughput, latency, meaning) name,
#include "fitness/ptx/pipes.def"
#undef VM_PIPE
};

static double percent(double part, double whole) {
    return whole > 0 ? 100 * part / whole : 0;
}

/* ---- head ---- */

static void print_launch(const profile *p, ev_str *out) {
    const model_occupancy *o = &p->timing->model.occupancy;
    char shared[32], dynamic[32];
    table_count(o->shared_bytes, shared);
    table_count(p->launch.shared_bytes, dynamic);
    ev_str_printf(out, "%s%s%s on %s (%s)\n\n", p->kernel, p->at != NULL ? ", case " : "",
                  p->at != NULL ? p->at : "", p->device->id, p->device->name);
    if (p->steps > 0)
        ev_str_printf(
            out,
            "launches    %zu; all below is of them together, sizes and occupancy are of the "
            "longest\n",
            p->steps);
    ev_str_printf(out, "launch      grid %u x %u x %u, block %u x %u x %u\n", p->launch.grid[0],
                  p->launch.grid[1], p->launch.grid[2], p->launch.block[0], p->launch.block[1],
                  p->launch.block[2]);
    if (p->ranks > 0)
        ev_str_printf(out,
                      "ranks       %u side by side; the time and its parts are the slowest rank's, "
                      "stalls by line rank 0's, counts of memory of all\n",
                      p->ranks);
    ev_str_printf(out,
                  "resources   %u registers a thread (%u spilled), %s B of shared memory a block "
                  "(%s dynamic)\n",
                  o->registers, p->timing->model.spilled, shared, dynamic);
}

/* A share is shown of a declared floor alone. What was executed gives a lower bound of this
 * variant, which waste raises. */
static void print_floor(const profile *p, ev_str *out) {
    const case_floor *f = &p->floor;
    char floor[24], launch[24], executed[24], share[24];
    table_time(f->ns, floor);
    table_time(f->launch_ns, launch);
    table_share(f->ns / p->timing->ns, share);
    table_time(p->timing->model.floor_ns, executed);
    if (f->ns > 0)
        ev_str_printf(out,
                      "floor       %s by the task's work: %s and a launch of %s; %s of the time\n",
                      floor, f->bound_by, launch, share);
    else
        ev_str_printf(out, "floor       not known: %s; what was executed takes at least %s\n",
                      p->at == NULL ? "a PTX file declares no work" : "the task declares no work",
                      executed);
}

static void print_time(const profile *p, ev_str *out) {
    const model_time *m = &p->timing->model;
    char ns[24], warm[24];
    table_time(p->timing->ns, ns);
    table_time(p->timing->warm_ns, warm);
    ev_str_printf(out, "time        %s %s, warm %s\n", ns,
                  p->device->modelled ? "modelled" : "measured", warm);
    print_floor(p, out);
    const char *meaning = meanings[m->bound_by];
    ev_str_printf(out, "bound by    %s: %.*s\n", model_term_name(m->bound_by),
                  (int)strcspn(meaning, ";"), meaning);
}

/* The choice of blocks where these are not a few at fixed places. */
static const char *grid_in_words(const profile *p) {
    if (p->grid == NULL || *p->grid == FITNESS_GRID_EVEN)
        return "";
    return *p->grid == FITNESS_GRID_UNEVEN
               ? "            the work of blocks differs: some of each path length stand for all\n"
               : "            blocks wait for others, or for the last one: the grid runs whole\n";
}

static void print_occupancy(const profile *p, ev_str *out) {
    const model_time *m = &p->timing->model;
    const model_occupancy *o = &m->occupancy;
    char blocks[32], sampled[32], repeated[32];
    table_count(m->blocks, blocks);
    table_count(m->sampled_blocks, sampled);
    table_count(m->repeated_blocks, repeated);
    ev_str_printf(out,
                  "occupancy   %u of %u warps an SM (%.0f %%) in %u block%s, limited by %s; %.2f "
                  "waves of blocks\n",
                  o->warps_per_sm, o->max_warps, percent(o->warps_per_sm, o->max_warps),
                  o->blocks_per_sm, o->blocks_per_sm == 1 ? "" : "s",
                  model_limiter_name(o->limiter), m->waves);
    ev_str_printf(out, "sample      %s of %s blocks were executed; %s of them repeat another\n",
                  sampled, blocks, repeated);
    ev_str_append(out, grid_in_words(p));
}

/* ---- units and stalls ---- */

/* Bytes a second, and what they would be at the unit's peak. */
static void rate_cell(const model_time *m, model_term term, double busy_ns, table *rows) {
    double bytes = 0;
    if (term == MODEL_DRAM)
        bytes = m->dram_bytes;
    else if (term == MODEL_L2)
        bytes = m->l2_bytes;
    char is[32], peak[32];
    if (!(bytes > 0) || !(busy_ns > 0)) {
        table_cell(rows, "%s", "");
        return;
    }
    table_amount(bytes / busy_ns * 1e9, "B/s", is);
    table_amount(bytes / m->term_ns[term] * 1e9, "B/s", peak);
    table_cell(rows, "%s of %s", is, peak);
}

static void share_cell(double share, unsigned cells, table *rows) {
    ev_str bar = EV_STR_EMPTY;
    table_bar(share, cells, &bar);
    table_cell(rows, "%s%5.1f %%", ev_str_text(&bar), 100 * share);
    ev_str_free(&bar);
}

static void unit_row(const profile *p, model_term term, table *rows) {
    const model_time *m = &p->timing->model;
    double busy = p->timing->ns - m->term_ns[MODEL_LAUNCH];
    bool is_unit = term != MODEL_LATENCY && term != MODEL_START && term != MODEL_LAUNCH;
    char ns[24];
    if (!(m->term_ns[term] > 0) && !(m->stall_share[term] > 0))
        return;
    table_time(m->term_ns[term], ns);
    table_cell(rows, "%s", model_term_name(term));
    if (is_unit && busy > 0)
        share_cell(m->term_ns[term] / busy, BUSY_CELLS, rows);
    else
        table_cell(rows, "%s", "");
    table_cell(rows, "%s", ns);
    rate_cell(m, term, busy, rows);
    share_cell(m->stall_share[term], WAIT_CELLS, rows);
}

static ev_status print_units(const profile *p, ev_str *out, ev_error *err) {
    static const char *const columns[] = {"unit",  "share of its peak", ">alone",
                                          ">rate", "of warps' cycles",  NULL};
    table *rows = table_new(columns);
    if (rows == NULL)
        return ev_fail_memory(err, 1);
    for (int i = 0; i < MODEL_TERM_COUNT; i++)
        unit_row(p, (model_term)i, rows);
    ev_str_char(out, '\n');
    ev_status status = table_print(rows, out, err);
    table_free(rows);
    return status;
}

/* ---- memory ---- */

typedef struct traffic {
    const char *name, *unit;
    uint64_t requests, transactions, bytes; /* bytes: of the lanes; 0: not counted */
} traffic;

static void traffic_row(const traffic *t, table *rows) {
    char requests[32], transactions[32];
    if (t->requests == 0)
        return;
    table_count(t->requests, requests);
    table_count(t->transactions, transactions);
    table_cell(rows, "%s", t->name);
    table_cell(rows, "%s", requests);
    table_cell(rows, "%s %s", transactions, t->unit);
    table_cell(rows, "%.2f", (double)t->transactions / (double)t->requests);
    if (t->bytes > 0)
        table_cell(rows, "%.1f", (double)t->bytes / (double)t->requests);
    else
        table_cell(rows, "%s", "");
    double moved = (double)t->transactions * 32;
    if (t->bytes > 0)
        table_cell(rows, "%.0f %%", 100 * (double)t->bytes / moved);
    else
        table_cell(rows, "%s", "");
}

static ev_status print_traffic(const vm_counters *c, ev_str *out, ev_error *err) {
    static const char *const columns[] = {"memory",     ">requests",       ">transactions",
                                          ">a request", ">bytes of lanes", ">of bytes moved",
                                          NULL};
    const traffic all[] = {
        {"global loads", "sectors", c->global_load_requests, c->global_load_sectors,
         c->global_load_bytes},
        {"global stores", "sectors", c->global_store_requests, c->global_store_sectors,
         c->global_store_bytes},
        {"of peers, loads", "sectors", c->peer_load_requests, c->peer_load_sectors,
         c->peer_load_bytes},
        {"of peers, stores", "sectors", c->peer_store_requests, c->peer_store_sectors,
         c->peer_store_bytes},
        {"local", "sectors", c->local_requests, c->local_sectors, 0},
        {"shared", "passes", c->shared_requests, c->shared_passes, 0},
    };
    table *rows = table_new(columns);
    if (rows == NULL)
        return ev_fail_memory(err, 1);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        traffic_row(&all[i], rows);
    ev_str_char(out, '\n');
    ev_status status = table_print(rows, out, err);
    table_free(rows);
    return status;
}

static void print_caches(const profile *p, ev_str *out) {
    const model_time *m = &p->timing->model;
    const vm_counters *c = &p->outcome->counters;
    char l2[32], dram[32], atomics[32];
    table_amount(m->l2_bytes, "B", l2);
    table_amount(m->dram_bytes, "B", dram);
    table_count(c->atomics, atomics);
    ev_str_printf(out,
                  "\ncaches      %.0f %% of load sectors hit the L1; whole grid: %s to the L2, "
                  "%s to DRAM\n",
                  100 * m->l1_hit_rate, l2, dram);
    if (c->shared_requests > 0)
        ev_str_printf(out,
                      "conflicts   %.0f %% of the passes over shared memory's banks are more "
                      "than the accesses' width needs\n",
                      100 * profile_conflicts(p));
    if (c->atomics > 0)
        ev_str_printf(out, "atomics     %s of lanes\n", atomics);
}

/* ---- instructions ---- */

static void print_divergence(const vm_counters *c, ev_str *out) {
    char branches[32], divergent[32];
    table_count(c->branches, branches);
    table_count(c->divergent_branches, divergent);
    ev_str_printf(out,
                  "divergence  %s of %s branches of warps (%.1f %%); %.1f of 32 lanes execute an "
                  "instruction\n",
                  divergent, branches, percent((double)c->divergent_branches, (double)c->branches),
                  (double)c->thread_instructions / (double)c->warp_instructions);
}

typedef struct pipe_count {
    uint64_t count;
    int pipe;
} pipe_count;

static int compare_pipes(const void *a, const void *b) {
    const pipe_count *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return x->pipe - y->pipe;
}

#define MIX_SHOWN 7

static void print_mix(const vm_counters *c, ev_str *out) {
    pipe_count pipes[VM_PIPE_COUNT];
    for (int i = 0; i < VM_PIPE_COUNT; i++)
        pipes[i] = (pipe_count){c->warp_by_pipe[i], i};
    qsort(pipes, VM_PIPE_COUNT, sizeof *pipes, compare_pipes);
    ev_str_append(out, "executed   ");
    for (int i = 0; i < MIX_SHOWN && pipes[i].count > 0; i++)
        ev_str_printf(out, "%s %s %.0f %%", i > 0 ? "," : "", pipe_names[pipes[i].pipe],
                      percent((double)pipes[i].count, (double)c->warp_instructions));
    ev_str_char(out, '\n');
}

/* ---- hottest lines ---- */

static void write_reasons(const profile_line *line, ev_str *out) {
    model_term terms[2];
    size_t count = profile_reasons(line, 2, terms);
    ev_str_append(out, "");
    for (size_t i = 0; i < count; i++)
        ev_str_printf(out, "%s%s %.0f %%", i > 0 ? ", " : "", model_term_name(terms[i]),
                      percent(line->site.stall[terms[i]], line->stall));
}

/* What a line's text may take: the rest of the screen. */
static int text_columns(const profile_lines *lines, bool is_ptx) {
    size_t waits = strlen("waiting for"), warps = strlen("warps");
    for (size_t i = 0; i < lines->count; i++) {
        ev_str reasons = EV_STR_EMPTY;
        char count[32];
        write_reasons(&lines->list[i], &reasons);
        table_count(lines->list[i].executions, count);
        waits = reasons.length > waits ? reasons.length : waits;
        warps = strlen(count) > warps ? strlen(count) : warps;
        ev_str_free(&reasons);
    }
    size_t taken = (is_ptx ? 5u + 2u : 0u) + 6 + 2 + 7 + 2 + waits + 2 + warps + 2;
    return taken < LINE_COLUMNS ? LINE_COLUMNS - (int)taken : 0;
}

static void source_cell(const profile_line *line, table *rows) {
    if (line->source > 0)
        table_cell(rows, "%u", line->source);
    else
        table_cell(rows, "%s", "");
}

static void text_cell(const profile_line *line, int columns, table *rows) {
    table_cell(rows, "%.*s", columns, line->text != NULL ? line->text : "");
}

static void line_row(const profile_line *line, bool is_ptx, int columns, table *rows) {
    ev_str reasons = EV_STR_EMPTY;
    char warps[32];
    table_count(line->executions, warps);
    table_cell(rows, "%u", line->line);
    if (is_ptx)
        source_cell(line, rows);
    table_cell(rows, "%.1f %%", line->stall * 100);
    write_reasons(line, &reasons);
    table_cell(rows, "%s", ev_str_text(&reasons));
    ev_str_free(&reasons);
    table_cell(rows, "%s", warps);
    text_cell(line, columns, rows);
}

static ev_status print_lines(const profile_lines *lines, bool is_ptx, ev_str *out, ev_error *err) {
    static const char *const ptx[] = {">PTX",   ">source", ">stalls", "waiting for",
                                      ">warps", "text",    NULL};
    static const char *const source[] = {">source", ">stalls", "waiting for",
                                         ">warps",  "text",    NULL};
    if (lines->count == 0)
        return EV_OK;
    table *rows = table_new(is_ptx ? ptx : source);
    if (rows == NULL)
        return ev_fail_memory(err, 1);
    int columns = text_columns(lines, is_ptx);
    for (size_t i = 0; i < lines->count; i++)
        line_row(&lines->list[i], is_ptx, columns, rows);
    ev_str_char(out, '\n');
    ev_status status = table_print(rows, out, err);
    table_free(rows);
    return status;
}

static void access_row(const profile_line *line, double all, table *rows) {
    const model_site *s = &line->site;
    double requests = (double)s->requests;
    table_cell(rows, "%u", line->line);
    source_cell(line, rows);
    table_cell(rows, "%.1f %%", percent((double)profile_traffic(line), all));
    table_cell(rows, "%.1f", (double)s->lanes / requests);
    if (s->sectors > 0)
        table_cell(rows, "%.1f", (double)s->sectors / requests);
    else
        table_cell(rows, "%s", "");
    table_cell(rows, "%.1f", (double)s->passes / requests);
    text_cell(line, LINE_COLUMNS - 48, rows);
}

/* The accesses that move most, and what they need a request. */
static ev_status print_accesses(const profile *p, size_t most, ev_str *out, ev_error *err) {
    static const char *const columns[] = {">PTX",     ">source", ">traffic", ">lanes",
                                          ">sectors", ">passes", "text",     NULL};
    profile_lines lines = {0};
    double all = 0;
    EV_TRY(profile_access_lines(p, most, &all, &lines, err));
    table *rows = table_new(columns);
    for (size_t i = 0; rows != NULL && i < lines.count; i++)
        access_row(&lines.list[i], all, rows);
    ev_status status = rows == NULL ? ev_fail_memory(err, 1) : EV_OK;
    if (status == EV_OK && lines.count > 0) {
        ev_str_char(out, '\n');
        status = table_print(rows, out, err);
    }
    table_free(rows);
    profile_lines_free(&lines);
    return status;
}

static ev_status print_hottest(const profile *p, size_t most, ev_str *out, ev_error *err) {
    profile_lines lines = {0};
    ev_status status = profile_source_lines(p, (most + 1) / 2, &lines, err);
    if (status == EV_OK)
        status = print_lines(&lines, false, out, err);
    profile_lines_free(&lines);
    EV_TRY(status);
    status = profile_ptx_lines(p, most, &lines, err);
    if (status == EV_OK)
        status = print_lines(&lines, true, out, err);
    profile_lines_free(&lines);
    EV_TRY(status);
    return print_accesses(p, (most + 1) / 2, out, err);
}

/* ---- all ---- */

static ev_status print_trap(cmd_context *c, const profile *p, ev_error *err) {
    ev_str text = EV_STR_EMPTY;
    trap_print(&p->outcome->fault, p->path, p->module, &text);
    (void)fprintf(stderr, "evoke: %s", ev_str_text(&text));
    ev_str_free(&text);
    c->exit_code = 1;
    if (!cli_flag(c->args, CLI_OPT_JSON))
        return EV_OK;
    return cmd_print_json(
        c, json_pack("{s:s, s:o}", "status", "trap", "trap", trap_to_json(&p->outcome->fault)),
        err);
}

ev_status profile_print(cmd_context *c, const profile *p, ev_error *err) {
    size_t lines = cli_count(c->args, CLI_OPT_LINES, 0);
    json_t *json = NULL;
    if (!p->outcome->ok)
        return print_trap(c, p, err);
    if (cli_flag(c->args, CLI_OPT_JSON)) {
        EV_TRY(profile_to_json(p, lines, &json, err));
        return cmd_print_json(c, json, err);
    }
    print_launch(p, c->out);
    print_time(p, c->out);
    print_occupancy(p, c->out);
    EV_TRY(print_units(p, c->out, err));
    EV_TRY(print_traffic(&p->outcome->counters, c->out, err));
    print_caches(p, c->out);
    print_divergence(&p->outcome->counters, c->out);
    print_mix(&p->outcome->counters, c->out);
    return print_hottest(p, lines, c->out, err);
}
