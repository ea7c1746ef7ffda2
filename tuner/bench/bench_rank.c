/* evoke bench rank: does the timing model rank variants as the device does? Random variants of
 * every start, those that pass the gates on both, timed on both.
 *
 * All of a task's work is done in a child process, which opens both devices itself and writes each
 * variant's two times into memory that it shares with its parent. When LLVM aborts it, the parent
 * starts another child behind the variant that did it. This process itself never opens a device: a
 * CUDA driver that was started before a fork refuses to work in the child. */
#include "tuner/bench/bench.h"

#include "base/hash.h"
#include "base/lines.h"
#include "base/proc.h"
#include "base/stop.h"
#include "base/table.h"
#include "fitness/gates/fitness.h"
#include "ir/ir.h"
#include "kernels/task.h"
#include "tuner/bench/silicon.h"
#include "tuner/worker/bases.h"
#include "tuner/worker/isolate.h"
#include "tuner/worker/look.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MOST_EDITS 6 /* a lineage is begun anew after so many */
#define TRIES 12     /* drawn for each variant that is wanted */
#define DRAWS 64
#define CHILD_SECONDS 3600
#define MOST_STARTS 8
#define WHY_BYTES 200
#define APART 0.01 /* as close as that, two measured times may be noise */

typedef enum fate { NOT_REACHED, BEGUN, UNFIT, REFUSED, TIMED } fate;

typedef struct sample {
    fate fate; /* BEGUN, when the child is dead: it aborted */
    uint32_t start;
    ev_sha256 hash; /* of the PTX */
    double modelled, measured;
} sample;

/* What parent and child share. */
typedef struct board {
    size_t timed[MOST_STARTS];
    size_t refused; /* passed on the model's device, not on the other */
    bool again;     /* the other device is spent in that process */
    char why[WHY_BYTES];
    sample samples[];
} board;

typedef struct rank_bench {
    const task *t;
    const char *device_id, *model_id;
    int sm;
    uint64_t seed;
    size_t wanted, tries; /* of each start; of all */
    double until;         /* by the clock; 0: no limit */
    ev_lines *lines;      /* gets each timed variant; NULL: no file */
    board *board;
} rank_bench;

/* ---- in the child: a side is a device with the task's baseline on it ---- */

typedef struct side {
    device *d;
    fitness *f;
} side;

typedef struct pair {
    const rank_bench *b;
    side model, real;
    bases *bases;
    ir_genome *parent[MOST_STARTS];
} pair;

static void side_close(side *s) {
    fitness_close(s->f);
    device_close(s->d);
}

static ev_status side_open(const rank_bench *b, const char *id, const candidate *baseline, side *s,
                           ev_error *err) {
    score *ignored = calloc(1, sizeof *ignored);
    if (ignored == NULL)
        return ev_fail_memory(err, sizeof *ignored);
    ev_status status = fitness_open_device(b->t, id, &s->d, err);
    if (status == EV_OK)
        status = fitness_open(b->t, s->d, NULL, &s->f, err);
    if (status == EV_OK)
        status = fitness_set_baseline(s->f, baseline, 0, ignored, err);
    free(ignored);
    return status;
}

/* Runs the build to its end; the candidate borrows from it. */
static ev_status build_all(ir_build *build, const task_start *start, candidate *out,
                           ev_error *err) {
    EV_TRY(ir_build_run_all(build, err));
    *out = (candidate){.plan = start->plan, .start = start};
    out->ptx = ir_build_ptx(build, &out->ptx_bytes);
    return EV_OK;
}

static ev_status build_genome(pair *p, const ir_genome *genome, uint32_t start, ir_build **build,
                              candidate *out, ev_error *err) {
    const ir_base *base = NULL;
    EV_TRY(bases_get(p->bases, genome, &base, err));
    EV_TRY(ir_build_new(base, genome, build, err));
    return build_all(*build, &p->b->t->starts[start], out, err);
}

static ev_status open_sides(pair *p, ev_error *err) {
    ir_build *build = NULL;
    candidate baseline;
    ir_genome *genome = ir_genome_new(p->b->t->starts[0].name);
    ev_status status = genome != NULL ? build_genome(p, genome, 0, &build, &baseline, err)
                                      : ev_fail_memory(err, 1);
    if (status == EV_OK)
        status = side_open(p->b, p->b->model_id, &baseline, &p->model, err);
    if (status == EV_OK)
        status = side_open(p->b, p->b->device_id, &baseline, &p->real, err);
    ir_build_free(build);
    ir_genome_free(genome);
    return status;
}

/* ---- one variant ---- */

static bool is_new(const rank_bench *b, size_t number, const ev_sha256 *hash) {
    for (size_t i = 0; i < number; i++) {
        if (ev_sha256_equal(&b->board->samples[i].hash, hash))
            return false;
    }
    return true;
}

static void note_refused(board *shared, const task *t, const score *s) {
    if (shared->refused++ == 0)
        (void)snprintf(shared->why, sizeof shared->why, "%s: %s: %.150s", t->name,
                       gate_name(s->stopped), s->reason);
}

/* Both times, or why there are none. */
static ev_status time_both(pair *p, const candidate *c, sample *out, ev_error *err) {
    score *s = calloc(1, sizeof *s);
    if (s == NULL)
        return ev_fail_memory(err, sizeof *s);
    ev_status status = fitness_score(p->model.f, c, s, err);
    out->fate = UNFIT;
    bool fits = status == EV_OK && s->stopped == GATE_NONE;
    out->modelled = s->ns;
    if (fits)
        status = fitness_score(p->real.f, c, s, err);
    if (fits && status == EV_OK) {
        out->measured = s->ns;
        out->fate = s->stopped == GATE_NONE ? TIMED : REFUSED;
    }
    if (out->fate == REFUSED)
        note_refused(p->b->board, p->b->t, s);
    free(s);
    return status;
}

/* Draws kinds until one finds a place; without a parent, the start itself. */
static ev_status draw(pair *p, uint32_t start, ev_pcg *rng, ir_genome **out, ev_error *err) {
    const ir_base *base = NULL;
    if (p->parent[start] == NULL) {
        *out = ir_genome_new(p->b->t->starts[start].name);
        return *out != NULL ? EV_OK : ev_fail_memory(err, 1);
    }
    EV_TRY(bases_get(p->bases, p->parent[start], &base, err));
    ev_status status = EV_BAD;
    for (int i = 0; i < DRAWS && status == EV_BAD; i++) {
        ir_edit_kind kind = (ir_edit_kind)ev_pcg_below(rng, IR_EDIT_LOCAL_COUNT);
        status = ir_mutate(base, p->parent[start], kind, NULL, rng, out, err);
    }
    return status;
}

/* A variant that was timed becomes its lineage's parent, until that is long enough. */
static void choose_parent(pair *p, uint32_t start, ir_genome *child, fate reached) {
    bool is_long = ir_genome_edit_count(child) >= MOST_EDITS;
    if (reached != TIMED && p->parent[start] != NULL) {
        ir_genome_free(child);
        return;
    }
    ir_genome_free(p->parent[start]);
    p->parent[start] = is_long ? ir_genome_new(p->b->t->starts[start].name) : child;
    if (is_long)
        ir_genome_free(child);
}

static ev_status note_timed(const rank_bench *b, size_t number, ev_error *err) {
    const sample *s = &b->board->samples[number];
    json_t *row = json_pack("{s:s, s:s, s:I, s:s, s:f, s:f}", "kernel", b->t->name, "start",
                            b->t->starts[s->start].name, "variant", (json_int_t)number, "sha256",
                            s->hash.hex, "modelled_ns", s->modelled, "measured_ns", s->measured);
    ev_status status = ev_lines_add(b->lines, row, err);
    json_decref(row);
    return status;
}

static ev_status try_variant(pair *p, size_t number, ev_error *err) {
    sample *out = &p->b->board->samples[number];
    ev_pcg rng = ev_pcg_child(p->b->seed, 0, 0, (uint32_t)number);
    ir_genome *child = NULL;
    ir_build *build = NULL;
    candidate c;
    out->fate = BEGUN;
    ev_status status = draw(p, out->start, &rng, &child, err);
    if (status == EV_OK)
        status = build_genome(p, child, out->start, &build, &c, err);
    fate at = UNFIT;
    if (status == EV_OK) {
        ev_sha256 hash = ev_sha256_of(c.ptx, c.ptx_bytes);
        if (is_new(p->b, number, &hash)) {
            out->hash = hash;
            status = time_both(p, &c, out, err);
            at = out->fate;
        }
    }
    out->fate = at;
    p->b->board->timed[out->start] += at == TIMED;
    if (at == TIMED)
        status = note_timed(p->b, number, err);
    ir_build_free(build);
    if (child != NULL)
        choose_parent(p, out->start, child, at);
    return status == EV_BAD ? EV_OK : status;
}

/* ---- a task ---- */

static bool is_over(const rank_bench *b) {
    return ev_stop_asked() || (b->until > 0 && ev_clock_now() > b->until);
}

/* Starts take turns until each has enough. */
static ev_status try_all(pair *p, ev_error *err) {
    const rank_bench *b = p->b;
    b->board->again = false;
    for (size_t i = 0; i < b->tries && !is_over(b) && !b->board->again; i++) {
        sample *s = &b->board->samples[i];
        s->start = (uint32_t)(i % b->t->start_count);
        if (s->fate != NOT_REACHED || b->board->timed[s->start] >= b->wanted)
            continue;
        EV_TRY(try_variant(p, i, err));
        b->board->again = device_is_spent(p->real.d);
    }
    return EV_OK;
}

static ev_status child_work(void *context, ev_str *out, ev_error *err) {
    pair p = {.b = context};
    (void)out;
    EV_TRY(bases_new(p.b->t, p.b->sm, MOST_STARTS, &p.bases, err));
    ev_status status = open_sides(&p, err);
    if (status == EV_OK)
        status = try_all(&p, err);
    side_close(&p.model);
    side_close(&p.real);
    for (size_t i = 0; i < MOST_STARTS; i++)
        ir_genome_free(p.parent[i]);
    bases_free(p.bases);
    return status;
}

static size_t count_begun(const rank_bench *b) {
    size_t count = 0;
    for (size_t i = 0; i < b->tries; i++)
        count += b->board->samples[i].fate == BEGUN;
    return count;
}

/* Children until all was tried: after a fault of a variant the GPU may be spent for the process
 * where it happened. One that dies without having begun a variant is no variant's
 * fault. */
static ev_status run_children(const rank_bench *b, ev_error *err) {
    for (;;) {
        size_t before = count_begun(b);
        ev_str none = EV_STR_EMPTY;
        ev_status status = isolate_run(child_work, (void *)(uintptr_t)b, CHILD_SECONDS, &none, err);
        ev_str_free(&none);
        if (status == EV_OK && b->board->again)
            continue;
        if (status != EV_BAD || count_begun(b) == before)
            return status;
    }
}

/* ---- figures ---- */

typedef struct report {
    json_t *list;
    table *rows;
    size_t variants, refused;
    size_t ranked, ranked_apart;           /* of starts whose measured times are not all alike */
    double kendall, apart, spearman, mape; /* sums, weighted with the variants */
    char why[WHY_BYTES];
} report;

/* Whether there is anything to rank. */
static bool has_order(const silicon_point *points, size_t count, double apart) {
    double low = INFINITY, high = 0;
    for (size_t i = 0; i < count; i++) {
        low = fmin(low, points[i].measured);
        high = fmax(high, points[i].measured);
    }
    return high - low > apart * low;
}

static void add_row(report *r, const char *kernel, const char *start, const silicon_point *points,
                    size_t count) {
    double tau = silicon_kendall(points, count, 0), apart = silicon_kendall(points, count, APART);
    double rho = silicon_spearman(points, count);
    double mape = silicon_mape(points, count);
    (void)json_array_append_new(
        r->list, json_pack("{s:s, s:s, s:I, s:f, s:f, s:f, s:f}", "kernel", kernel, "start", start,
                           "variants", (json_int_t)count, "kendall", tau, "kendall_apart", apart,
                           "spearman", rho, "mape", mape));
    table_cell(r->rows, "%s", kernel);
    table_cell(r->rows, "%s", start);
    table_cell(r->rows, "%zu", count);
    table_cell(r->rows, "%.3f", tau);
    table_cell(r->rows, "%.3f", apart);
    table_cell(r->rows, "%.3f", rho);
    table_cell(r->rows, "%.1f %%", mape);
    r->variants += count;
    r->mape += mape * (double)count;
    if (has_order(points, count, APART)) {
        r->ranked_apart += count;
        r->apart += apart * (double)count;
    }
    if (!has_order(points, count, 0))
        return;
    r->ranked += count;
    r->kendall += tau * (double)count;
    r->spearman += rho * (double)count;
}

static ev_status add_start(report *r, const rank_bench *b, uint32_t start, ev_error *err) {
    silicon_point *points = calloc(b->tries + 1, sizeof *points);
    size_t count = 0;
    if (points == NULL)
        return ev_fail_memory(err, b->tries * sizeof *points);
    for (size_t i = 0; i < b->tries; i++) {
        const sample *s = &b->board->samples[i];
        if (s->fate != TIMED || s->start != start)
            continue;
        points[count].modelled = s->modelled;
        points[count++].measured = s->measured;
    }
    add_row(r, b->t->name, b->t->starts[start].name, points, count);
    free(points);
    return EV_OK;
}

static ev_status rank_task(rank_bench *b, report *r, ev_error *err) {
    size_t bytes = sizeof *b->board + b->tries * sizeof *b->board->samples;
    void *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return ev_fail_memory(err, bytes);
    b->board = room;
    ev_status status = run_children(b, err);
    for (uint32_t i = 0; i < b->t->start_count && status == EV_OK; i++)
        status = add_start(r, b, i, err);
    if (r->refused == 0)
        memcpy(r->why, b->board->why, sizeof r->why);
    r->refused += b->board->refused;
    (void)munmap(room, bytes);
    return status;
}

static ev_status rank_path(const cli_args *args, const rank_bench *shared, const char *path,
                           double share, report *r, ev_error *err) {
    rank_bench b = *shared;
    task *t = NULL;
    EV_TRY(task_open(path, &t, err));
    double seconds = cli_real(args, CLI_OPT_BENCH_SECONDS, 0) * share;
    b.t = t;
    b.wanted = (b.wanted + t->start_count - 1) / t->start_count;
    b.tries = b.wanted * t->start_count * TRIES;
    b.until = seconds > 0 ? ev_clock_now() + seconds : 0;
    ev_status status =
        t->start_count <= MOST_STARTS
            ? rank_task(&b, r, err)
            : ev_fail(err, EV_BAD, "%s has more than %d starts", t->name, MOST_STARTS);
    task_free(t);
    return status;
}

/* ---- the bench ---- */

/* What both devices take; and the model's device where --against names none. */
static ev_status look_at_both(const cli_args *args, rank_bench *b, device_properties *real,
                              ev_error *err) {
    device_properties model;
    b->device_id = args->values[CLI_OPT_DEVICE];
    EV_TRY(look_at_device(b->device_id, real, err));
    b->model_id = real->twin[0] != '\0' ? real->twin : b->device_id;
    if (cli_text(args, CLI_OPT_AGAINST) != NULL)
        b->model_id = cli_text(args, CLI_OPT_AGAINST);
    EV_TRY(look_at_device(b->model_id, &model, err));
    b->sm = model.sm < real->sm ? model.sm : real->sm;
    return EV_OK;
}

static ev_status rank_all(const cli_args *args, const rank_bench *shared, report *r,
                          ev_error *err) {
    char **paths = NULL;
    size_t count = 0;
    EV_TRY(bench_tasks(args, &paths, &count, err));
    rank_bench b = *shared;
    b.wanted = (b.wanted + count - 1) / count;
    ev_status status = EV_OK;
    for (size_t i = 0; i < count && status == EV_OK && !ev_stop_asked(); i++)
        status = rank_path(args, &b, paths[i], 1.0 / (double)count, r, err);
    task_list_free(paths, count);
    return status;
}

static ev_status print_report(cmd_context *c, const rank_bench *b, report *r, ev_error *err) {
    double n = r->variants > 0 ? (double)r->variants : 1;
    double ranked = r->ranked > 0 ? (double)r->ranked : 1;
    double ranked_apart = r->ranked_apart > 0 ? (double)r->ranked_apart : 1;
    if (cli_flag(c->args, CLI_OPT_JSON))
        return cmd_print_json(
            c,
            cmd_note_stop(json_pack(
                "{s:s, s:s, s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:I, s:s, s:O}", "bench", "rank",
                "device", b->device_id, "against", b->model_id, "variants", (json_int_t)r->variants,
                "ranked", (json_int_t)r->ranked, "kendall", r->kendall / ranked, "kendall_apart",
                r->apart / ranked_apart, "spearman", r->spearman / ranked, "mape", r->mape / n,
                "refused", (json_int_t)r->refused, "first_refusal", r->why, "rows", r->list)),
            err);
    EV_TRY(table_print(r->rows, c->out, err));
    ev_str_printf(
        c->out,
        "\n%zu variants timed on %s and %s: Kendall's tau-b %.3f (%.3f where measured times "
        "are at least 1 %%\napart), Spearman's rho %.3f, mean error %.1f %%; means over the "
        "variants, correlations within a start,\nof the %zu whose measured times are not "
        "all alike. %zu passed only on %s.\n",
        r->variants, b->device_id, b->model_id, r->kendall / ranked, r->apart / ranked_apart,
        r->spearman / ranked, r->mape / n, r->ranked, r->refused, b->model_id);
    return EV_OK;
}

ev_status bench_rank(cmd_context *c, ev_error *err) {
    static const char *const columns[] = {"kernel", "start",     ">variants",   ">Kendall tau",
                                          ">apart", ">Spearman", ">mean error", NULL};
    device_properties real;
    rank_bench b = {.seed = cli_count(c->args, CLI_OPT_SEED, 1),
                    .wanted = (size_t)cli_count(c->args, CLI_OPT_VARIANTS, 60)};
    if (b.wanted == 0 || b.wanted > 100000)
        return ev_fail(err, EV_BAD, "--variants %s: from 1 to 100000",
                       c->args->values[CLI_OPT_VARIANTS]);
    ev_stop_catch();
    EV_TRY(look_at_both(c->args, &b, &real, err));
    EV_TRY(ev_lines_open(cli_text(c->args, CLI_OPT_ROWS), &b.lines, err));
    report r = {.list = json_array(), .rows = table_new(columns)};
    ev_status status = r.rows == NULL ? ev_fail_memory(err, 1) : EV_OK;
    if (status == EV_OK)
        status = rank_all(c->args, &b, &r, err);
    if (status == EV_OK)
        status = print_report(c, &b, &r, err);
    if (status == EV_OK)
        status = cmd_end_stopped(err);
    ev_lines_close(b.lines);
    table_free(r.rows);
    json_decref(r.list);
    return status;
}
