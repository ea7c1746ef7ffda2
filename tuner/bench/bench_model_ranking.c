/* evoke bench model --only ranking: does the model rank tuned configurations of a kernel as real
 * GPUs do? Forked processes share the work: each takes the next configuration, and writes what came
 * of it into memory that all share. */
#include "base/file.h"
#include "base/lines.h"
#include "base/stop.h"
#include "base/table.h"
#include "tuner/bench/bench.h"
#include "tuner/bench/bench_model.h"
#include "tuner/bench/ranking.h"
#include "tuner/bench/ranking_rig.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define FOLDER "fitness/model/silicon"
#define BY_HASH 300
#define FASTEST_SHARE 6 /* for so many by the hash, one of the fastest is added */
/* Measured times that are nearer to each other are not ranked: in the whole set, and in the fastest
 * tenth, which often lies within a few percent. A repeated measurement ranks itself with tau 0.98.
 */
#define APART 0.05
#define APART_TOP 0.01
#define SETS_MOST 4
#define GROUPS_MOST (SETS_MOST * RANKING_GPUS_MOST * RANKING_COMPILERS)
#define WORKERS_MOST 64

/* Configurations of one kernel on one GPU by one compiler. */
typedef struct group {
    const ranking_set *set;
    size_t gpu; /* column */
    ranking_compiler compiler;
    gpu *g;
    int sm; /* what it is compiled for: the oldest target of the set's GPUs, which all can run */
    size_t *configs;
    size_t first, count; /* among all work items; */
} group;

typedef enum fate { WAITING, BEGUN, REFUSED, TIMED } fate;

typedef struct item {
    fate fate;
    char why[200];
    ranking_result result;
} item;

/* Shared by the processes. */
typedef struct ranking_board {
    atomic_size_t next;
    item items[];
} ranking_board;

typedef struct ranking_bench {
    ranking_set sets[SETS_MOST];
    size_t set_count;
    group groups[GROUPS_MOST];
    size_t group_count, item_count, board_bytes;
    ranking_board *board;
    ranking_options options;
    char nvcc[512];
    char scratch[40]; /* folder of this run's compiled configurations; "": none */
    ev_lines *lines;
    json_t *list;
    table *rows;
} ranking_bench;

/* ---- what is to be done ---- */

static ev_status add_group(ranking_bench *b, const ranking_set *set, size_t column,
                           ranking_compiler compiler, const cli_args *args, ev_error *err) {
    const char *description = cli_text(args, CLI_OPT_DESCRIPTION);
    size_t by_hash = args->given[CLI_OPT_VARIANTS]
                         ? (size_t)cli_count(args, CLI_OPT_VARIANTS, BY_HASH)
                         : BY_HASH;
    group *to = &b->groups[b->group_count];
    *to = (group){.set = set, .gpu = column, .compiler = compiler, .first = b->item_count};
    EV_TRY(gpu_load(description != NULL ? description : set->gpus[column], &to->g, err));
    b->group_count++;
    to->configs = calloc(set->count + 1, sizeof *to->configs);
    if (to->configs == NULL)
        return ev_fail_memory(err, set->count * sizeof *to->configs);
    to->count = ranking_choose(set, column, by_hash, by_hash / FASTEST_SHARE, to->configs);
    b->item_count += to->count;
    return EV_OK;
}

/* Groups from `first` on are of one set. */
static void choose_target(ranking_bench *b, size_t first) {
    int oldest = INT_MAX;
    for (size_t i = first; i < b->group_count; i++)
        oldest = b->groups[i].g->sm < oldest ? b->groups[i].g->sm : oldest;
    for (size_t i = first; i < b->group_count; i++)
        b->groups[i].sm = oldest;
}

static ev_status add_set(ranking_bench *b, const char *path, const cli_args *args, ev_error *err) {
    ranking_set *set = &b->sets[b->set_count];
    size_t first = b->group_count;
    EV_TRY(ranking_read(path, set, err));
    b->set_count++;
    for (int compiler = 0; compiler < RANKING_COMPILERS; compiler++) {
        if (compiler == RANKING_NVCC && b->options.nvcc == NULL)
            continue;
        for (size_t i = 0; i < set->gpu_count; i++)
            EV_TRY(add_group(b, set, i, (ranking_compiler)compiler, args, err));
    }
    choose_target(b, first);
    return EV_OK;
}

/* `only`: one kernel; NULL: all. */
static ev_status add_shipped(ranking_bench *b, const char *only, const cli_args *args,
                             ev_error *err) {
    char *home = ev_path_home();
    if (home == NULL)
        return ev_fail(err, EV_BAD, "the folder %s was not found; set EVOKE_HOME", FOLDER);
    ev_status status = EV_OK;
    for (int k = 0; k < RANKING_KERNELS && status == EV_OK; k++) {
        const char *name = ranking_kernel_name((ranking_kernel)k);
        ev_str path = EV_STR_EMPTY;
        if (only != NULL && strcmp(only, name) != 0)
            continue;
        ev_str_printf(&path, "%s/" FOLDER "/%s.csv", home, name);
        status = add_set(b, ev_str_text(&path), args, err);
        ev_str_free(&path);
    }
    free(home);
    return status;
}

/* ---- the processes ---- */

static const group *group_of(const ranking_bench *b, size_t number) {
    const group *g = b->groups;
    while (number >= g->first + g->count)
        g++;
    return g;
}

static const ranking_config *config_of(const group *g, size_t number) {
    return &g->set->configs[g->configs[number - g->first]];
}

static json_t *terms_json(const model_time *t) {
    json_t *terms = json_object();
    for (int i = 0; i < MODEL_TERM_COUNT; i++)
        (void)json_object_set_new(terms, model_term_name((model_term)i),
                                  json_real(t->term_ns[i] * 1e-6));
    return terms;
}

static json_t *stalls_json(const model_time *t) {
    json_t *stalls = json_object();
    for (int i = 0; i < MODEL_TERM_COUNT; i++)
        (void)json_object_set_new(stalls, model_term_name((model_term)i),
                                  json_real(t->stall_share[i]));
    return stalls;
}

static void add_times(json_t *row, const ranking_result *r) {
    const model_time *t = &r->time;
    (void)json_object_update_new(
        row, json_pack(
                 "{s:f, s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:s, s:I, s:f, s:f, s:f, s:f, s:I, s:f, "
                 "s:f}",
                 "model_ms", t->ns * 1e-6, "bound_by", model_term_name(t->bound_by), "terms_ms",
                 terms_json(t), "stalls", stalls_json(t), "registers",
                 (json_int_t)t->occupancy.registers, "live_registers",
                 (json_int_t)r->live_registers, "spilled", (json_int_t)t->spilled, "blocks_per_sm",
                 (json_int_t)t->occupancy.blocks_per_sm, "limited_by",
                 model_limiter_name(t->occupancy.limiter), "shared_bytes",
                 (json_int_t)t->occupancy.shared_bytes, "waves", t->waves, "l1_hit_rate",
                 t->l1_hit_rate, "dram_bytes", t->dram_bytes, "l2_bytes", t->l2_bytes,
                 "instructions", (json_int_t)r->insns, "build_seconds", r->build_seconds,
                 "run_seconds", r->run_seconds));
}

static ev_status add_line(const ranking_bench *b, size_t number, ev_error *err) {
    const group *g = group_of(b, number);
    const ranking_config *c = config_of(g, number);
    const item *it = &b->board->items[number];
    json_t *macros = json_object();
    for (size_t i = 0; i < g->set->macro_count; i++)
        (void)json_object_set_new(macros, c->macros[i].name,
                                  json_integer((json_int_t)c->macros[i].value));
    json_t *row = json_pack("{s:s, s:s, s:s, s:o, s:f, s:b}", "gpu", g->g->id, "set",
                            ranking_kernel_name(g->set->kernel), "compiler",
                            ranking_compiler_name(g->compiler), "macros", macros, "silicon_ms",
                            c->ms[g->gpu], "refused", it->fate != TIMED);
    if (it->fate == TIMED)
        add_times(row, &it->result);
    else
        (void)json_object_set_new(row, "why", json_string(it->why));
    ev_status status = ev_lines_add(b->lines, row, err);
    json_decref(row);
    return status;
}

static ev_status run_item(const ranking_bench *b, ranking_rig *rig, size_t number, ev_error *err) {
    const group *g = group_of(b, number);
    const ranking_config *c = config_of(g, number);
    item *it = &b->board->items[number];
    it->fate = BEGUN;
    ev_status status = ranking_rig_run(rig, g->g, g->set->kernel, c->macros, g->set->macro_count,
                                       g->compiler, g->sm, &it->result, err);
    if (status == EV_BAD)
        (void)snprintf(it->why, sizeof it->why, "%.190s", err->text);
    if (status != EV_INFRA)
        it->fate = status == EV_OK ? TIMED : REFUSED;
    return status == EV_INFRA ? status : add_line(b, number, err);
}

static ev_status run_worker(const ranking_bench *b, ev_error *err) {
    ranking_rig *rig = NULL;
    EV_TRY(ranking_rig_new(&b->options, &rig, err));
    ev_status status = EV_OK;
    while (status == EV_OK && !ev_stop_asked()) {
        size_t number = atomic_fetch_add(&b->board->next, 1);
        if (number >= b->item_count)
            break;
        status = run_item(b, rig, number, err);
    }
    ranking_rig_free(rig);
    return status;
}

static pid_t start_worker(const ranking_bench *b) {
    pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    ev_error err = {.text = ""};
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(2);
    ev_status status = run_worker(b, &err);
    if (status != EV_OK)
        (void)fprintf(stderr, "evoke: %s\n", err.text);
    _exit(status == EV_OK ? 0 : 1);
}

static unsigned worker_count(const cli_args *args) {
    uint64_t asked = cli_count(args, CLI_OPT_WORKERS, 0);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (asked == 0)
        asked = cores > 0 ? (uint64_t)cores : 1;
    return (unsigned)(asked < WORKERS_MOST ? asked : WORKERS_MOST);
}

static ev_status run_workers(const ranking_bench *b, unsigned workers, ev_error *err) {
    pid_t pids[WORKERS_MOST];
    unsigned started = 0, failed = 0;
    for (; started < workers; started++) {
        pids[started] = start_worker(b);
        if (pids[started] < 0)
            break;
    }
    for (unsigned i = 0; i < started; i++) {
        int ended = 0;
        while (waitpid(pids[i], &ended, 0) < 0 && errno == EINTR)
            continue;
        failed += !WIFEXITED(ended) || WEXITSTATUS(ended) != 0;
    }
    if (started == 0)
        return ev_fail_errno(err, "cannot fork", "a child process");
    return failed == 0
               ? EV_OK
               : ev_fail(err, EV_INFRA, "%u of %u processes of the bench failed", failed, started);
}

static ev_status run_all(ranking_bench *b, unsigned workers, ev_error *err) {
    b->board_bytes = sizeof *b->board + b->item_count * sizeof *b->board->items;
    void *shared =
        mmap(NULL, b->board_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return ev_fail_memory(err, b->board_bytes);
    b->board = shared;
    return run_workers(b, workers, err);
}

/* ---- report ---- */

typedef struct figures {
    size_t count, refused;
    double tau, tau_top, recall, regret[3], mape, scale, mape_scaled;
} figures;

static const size_t FIRST[3] = {1, 10, 50};

static ev_status figures_of(const ranking_bench *b, const group *g, figures *f, ev_error *err) {
    ranking_pair *pairs = calloc(g->count + 1, sizeof *pairs);
    if (pairs == NULL)
        return ev_fail_memory(err, g->count * sizeof *pairs);
    *f = (figures){.count = 0};
    for (size_t i = 0; i < g->count; i++) {
        const item *it = &b->board->items[g->first + i];
        if (it->fate != TIMED && it->fate != REFUSED)
            continue;
        f->refused += it->fate == REFUSED;
        pairs[f->count++] =
            (ranking_pair){config_of(g, g->first + i)->ms[g->gpu],
                           it->fate == TIMED ? it->result.time.ns * 1e-6 : INFINITY};
    }
    f->tau = ranking_tau(pairs, f->count, APART);
    f->tau_top = ranking_tau_top(pairs, f->count, APART_TOP);
    f->recall = ranking_recall(pairs, f->count);
    for (size_t i = 0; i < 3; i++)
        f->regret[i] = ranking_regret(pairs, f->count, FIRST[i]);
    f->scale = ranking_scale(pairs, f->count);
    f->mape = ranking_mape(pairs, f->count, 1);
    f->mape_scaled = ranking_mape(pairs, f->count, f->scale);
    free(pairs);
    return EV_OK;
}

static json_t *figures_json(const group *g, const figures *f) {
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}",
                     "gpu", g->g->id, "set", ranking_kernel_name(g->set->kernel), "compiler",
                     ranking_compiler_name(g->compiler), "n", (json_int_t)f->count, "refused",
                     (json_int_t)f->refused, "tau", f->tau, "tau_top", f->tau_top, "recall_top",
                     f->recall, "regret_1", f->regret[0], "regret_10", f->regret[1], "regret_50",
                     f->regret[2], "mape", f->mape, "scale", f->scale, "mape_scaled",
                     f->mape_scaled);
}

static ev_status report_group(ranking_bench *b, const group *g, ev_error *err) {
    figures f;
    EV_TRY(figures_of(b, g, &f, err));
    (void)json_array_append_new(b->list, figures_json(g, &f));
    table_cell(b->rows, "%s", g->g->id);
    table_cell(b->rows, "%s", ranking_kernel_name(g->set->kernel));
    table_cell(b->rows, "%s", ranking_compiler_name(g->compiler));
    table_cell(b->rows, "%zu", f.count);
    table_cell(b->rows, "%zu", f.refused);
    table_cell(b->rows, "%.3f", f.tau);
    table_cell(b->rows, "%.3f", f.tau_top);
    table_cell(b->rows, "%.0f %%", 100 * f.recall);
    for (size_t i = 0; i < 3; i++)
        table_cell(b->rows, "%+.1f %%", 100 * f.regret[i]);
    table_cell(b->rows, "%.0f %%", f.mape);
    table_cell(b->rows, "%.0f %%", f.mape_scaled);
    table_cell(b->rows, "%.2f", f.scale);
    return EV_OK;
}

static ev_status print_report(cmd_context *c, ranking_bench *b, ev_error *err) {
    for (size_t i = 0; i < b->group_count; i++)
        EV_TRY(report_group(b, &b->groups[i], err));
    if (cli_flag(c->args, CLI_OPT_JSON))
        return cmd_print_json(
            c, json_pack("{s:s, s:s, s:O}", "bench", "model", "part", "ranking", "rows", b->list),
            err);
    EV_TRY(table_print(b->rows, c->out, err));
    ev_str_append(
        c->out,
        "\nModelled against measured times of one kernel's configurations. tau: Kendall's, over "
        "the pairs that silicon\ntells apart by 5 % or more; top: within the tenth that silicon "
        "runs fastest, over the pairs 1 % apart; recall:\nthe share of that tenth in the model's "
        "first tenth; regret: silicon's time of the best of the model's first 1, 10\nand 50, over "
        "silicon's best; error: mean of |modelled / measured - 1|, and the same with all modelled "
        "times\nmultiplied by 'scale'. Refused configurations rank last.\n");
    return EV_OK;
}

static void bench_free(ranking_bench *b) {
    for (size_t i = 0; i < b->group_count; i++) {
        gpu_free(b->groups[i].g);
        free(b->groups[i].configs);
    }
    for (size_t i = 0; i < b->set_count; i++)
        ranking_set_free(&b->sets[i]);
    ev_error ignored;
    if (b->scratch[0] != '\0' && ev_dir_remove(b->scratch, &ignored) != EV_OK)
        (void)fprintf(stderr, "evoke: %s\n", ignored.text);
    if (b->board != NULL)
        (void)munmap(b->board, b->board_bytes);
    ev_lines_close(b->lines);
    json_decref(b->list);
    table_free(b->rows);
}

/* Without a folder of the caller's, one for this run: GPUs of one set share what is compiled. */
static ev_status open_cache(ranking_bench *b, const char *asked, ev_error *err) {
    static const char name[] = "/tmp/evoke-ranking-XXXXXX";
    b->options.cache = asked;
    if (asked != NULL)
        return ev_dir_make(asked, err);
    memcpy(b->scratch, name, sizeof name);
    if (mkdtemp(b->scratch) == NULL) {
        b->scratch[0] = '\0';
        return ev_fail_errno(err, "cannot make a folder in", "/tmp");
    }
    b->options.cache = b->scratch;
    return EV_OK;
}

static ev_status open_bench(cmd_context *c, ranking_bench *b, ev_error *err) {
    static const char *const columns[] = {
        "gpu",       "set",        "compiler",   ">n",     ">refused", ">tau",   ">top", ">recall",
        ">regret 1", ">regret 10", ">regret 50", ">error", ">scaled",  ">scale", NULL};
    const char *data = cli_text(c->args, CLI_OPT_DATA), *only = cli_text(c->args, CLI_OPT_ONLY);
    b->list = json_array();
    b->rows = table_new(columns);
    if (b->list == NULL || b->rows == NULL)
        return ev_fail_memory(err, 1);
    if (cli_flag(c->args, CLI_OPT_NVCC) && !ranking_find_nvcc(b->nvcc))
        return ev_fail(err, EV_BAD, "--nvcc: there is no nvcc in PATH or /usr/local/cuda/bin");
    b->options.nvcc = cli_flag(c->args, CLI_OPT_NVCC) ? b->nvcc : NULL;
    EV_TRY(open_cache(b, cli_text(c->args, CLI_OPT_CACHE), err));
    if (data != NULL)
        EV_TRY(add_set(b, data, c->args, err));
    else
        EV_TRY(add_shipped(b, only != NULL && strcmp(only, "ranking") != 0 ? only : NULL, c->args,
                           err));
    return ev_lines_open(cli_text(c->args, CLI_OPT_ROWS), &b->lines, err);
}

ev_status bench_model_ranking(cmd_context *c, ev_error *err) {
    ranking_bench *b = calloc(1, sizeof *b);
    if (b == NULL)
        return ev_fail_memory(err, sizeof *b);
    ev_stop_catch();
    ev_status status = open_bench(c, b, err);
    if (status == EV_OK)
        status = run_all(b, worker_count(c->args), err);
    if (status == EV_OK)
        status = print_report(c, b, err);
    if (status == EV_OK)
        status = cmd_end_stopped(err);
    bench_free(b);
    free(b);
    return status;
}
