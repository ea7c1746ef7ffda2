/* Tune: a run over its tasks. Checks the request, opens the records, starts the workers, and runs
 * one course a task. */
#include "tuner/run/tune_inside.h"

#include "base/file.h"
#include "base/json.h"
#include "base/proc.h"
#include "fitness/model/version.h"
#include "tuner/run/export.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- the request ---- */

static ev_status check_starts(const task *t, const char *wanted, ev_error *err) {
    const task_start *start = wanted ? task_find_start(t, wanted) : NULL;
    if (!wanted || strcmp(wanted, "all") == 0 || (start && !start->is_reference))
        return EV_OK;
    if (start)
        return ev_fail(err, EV_BAD,
                       "the task %s has its start '%s' as a reference, which is never searched; "
                       "name another",
                       t->name, wanted);
    ev_str names = EV_STR_EMPTY;
    for (size_t i = 0; i < t->start_count; i++) {
        if (!t->starts[i].is_reference)
            ev_str_printf(&names, ", %s", t->starts[i].name);
    }
    ev_status status = ev_fail(err, EV_BAD, "the task %s has no start '%s'; it has all%s", t->name,
                               wanted, ev_str_text(&names));
    ev_str_free(&names);
    return status;
}

/* Speed-ups are those of held-out cases, and nothing is exported without one. */
static ev_status check_held_out(const task *t, ev_error *err) {
    for (size_t i = 0; i < t->case_count; i++) {
        if (t->cases[i].split == CORPUS_HELD_OUT && t->cases[i].use == TASK_TIME)
            return EV_OK;
    }
    return ev_fail(err, EV_BAD,
                   "the task %s has no held-out case that is timed, by which a winner is judged; "
                   "add one, with \"split\": \"held-out\" and \"use\": \"time\", to \"cases\"",
                   t->name);
}

static ev_status open_earlier(tune_state *run, ev_error *err) {
    const tune_options *o = run->options;
    bool has = false;
    if (o->strategy != STRATEGY_EVOLVE)
        return ev_fail(err, EV_BAD, "--from goes with --strategy evolve alone, not with %s",
                       strategy_name(o->strategy));
    EV_TRY(earlier_open(o->from, &run->earlier, err));
    for (size_t i = 0; i < o->task_count; i++)
        has = has || earlier_has(run->earlier, run->tasks[i]->name);
    return has ? EV_OK
               : ev_fail(err, EV_BAD,
                         "--from %s has no variant of %s; name a result of this kernel", o->from,
                         o->task_count == 1 ? run->tasks[0]->name : "these kernels");
}

static ev_status load_tasks(tune_state *run, ev_error *err) {
    const tune_options *o = run->options;
    if (o->task_count == 0)
        return ev_fail(err, EV_BAD, "no task was named; name some, or give --all");
    if (o->evaluations == 0 && !(o->seconds > 0))
        return ev_fail(err, EV_BAD, "the search has no end; give --evaluations or --seconds");
    run->tasks = calloc(o->task_count, sizeof(task *));
    if (!run->tasks)
        return ev_fail_memory(err, o->task_count * sizeof(task *));
    for (size_t i = 0; i < o->task_count; i++) {
        EV_TRY(task_open(o->tasks[i], &run->tasks[i], err));
        EV_TRY(check_starts(run->tasks[i], o->starts, err));
        EV_TRY(check_held_out(run->tasks[i], err));
        if (o->to_bundle)
            EV_TRY(export_check_task(run->tasks[i], err));
    }
    if (o->from)
        EV_TRY(open_earlier(run, err));
    if (o->shapes && o->task_count != 1)
        return ev_fail(err, EV_BAD,
                       "--shapes names cases of one task, and %zu tasks are given; tune them one "
                       "by one",
                       o->task_count);
    if (o->shapes)
        return portfolio_read_shapes(o->shapes, run->tasks[0], &run->shapes, err);
    return EV_OK;
}

/* The names of the edits that are left out. */
static json_t *left_out(const tune_options *o) {
    json_t *names = json_array();
    for (int kind = 0; names && kind < IR_EDIT_COUNT; kind++) {
        if (o->without[kind])
            (void)json_array_append_new(names, json_string(ir_edit_name((ir_edit_kind)kind)));
    }
    return names;
}

/* The identity of a run: all settings that its results depend on. A run can resume records only if
 * their identity is equal. */
static json_t *identity_of(const tune_state *run) {
    const tune_options *o = run->options;
    json_t *tasks = json_array();
    for (size_t i = 0; tasks && i < o->task_count; i++) {
        json_t *row = json_pack("{s:s,s:s}", "name", run->tasks[i]->name, "sha256",
                                run->tasks[i]->sha256.hex);
        if (json_array_append_new(tasks, row) != 0) {
            json_decref(tasks);
            return NULL;
        }
    }
    json_t *assemble = json_array();
    for (size_t i = 0; assemble && i < o->assemble.count; i++)
        (void)json_array_append_new(assemble, json_integer(o->assemble.sm[i]));
    json_t *shapes = json_object();
    for (size_t i = 0; shapes && i < run->shapes.count; i++)
        (void)json_object_set_new(shapes, run->shapes.at[i]->name,
                                  json_real(run->shapes.weights[i]));
    ev_sha256 from = {{0}};
    if (run->earlier)
        from = earlier_sha256(run->earlier);
    return json_pack(
        "{s:s,s:o,s:o,s:o,s:I,s:s,s:I,s:s,s:I,s:f,s:f,s:b,s:b,s:o,s:s,s:s,s:s,s:i,s:s,s:s}", "from",
        from.hex, "assemble", assemble, "tasks", tasks, "shapes", shapes, "most",
        (json_int_t)(run->shapes.count > 0 ? o->most_variants : 0), "device", o->device, "seed",
        (json_int_t)o->seed, "strategy", strategy_name(o->strategy), "evaluations",
        (json_int_t)o->evaluations, "seconds", o->seconds, "least_gain", o->least_gain, "bold",
        o->bold, "structure", !o->no_structure, "without", left_out(o), "prior",
        o->prior ? o->prior->sha256.hex : "", "starts", o->starts ? o->starts : "all", "evoke",
        EVOKE_VERSION, "protocol", PROTOCOL_VERSION, "llvm", ir_llvm_version(), "model",
        model_version());
}

const char *tune_device(const tune_state *run) {
    return run->gpus.count > 0 ? run->gpus.ids[0] : run->options->device;
}

/* ---- records ---- */

/* Opens old records before any work is done. New records are made when the first task is open, so
 * that bad input leaves no file behind. */
static ev_status look_at_records(tune_state *run, const json_t *identity, ev_error *err) {
    const tune_options *o = run->options;
    if (o->resume && !o->records)
        return ev_fail(err, EV_BAD,
                       "--resume needs --records FILE, the records of the run to continue");
    if (o->resume)
        return records_resume(o->records, identity, &run->records, err);
    if (o->records && ev_path_exists(o->records))
        return records_create(o->records, identity, &run->records, err); /* fails with the reason */
    return EV_OK;
}

static ev_status make_records(tune_state *run, const json_t *identity, ev_error *err) {
    if (run->records)
        return EV_OK;
    return records_create(run->options->records, identity, &run->records, err);
}

/* ---- tasks ---- */

static bool known_code(void *context, const pool_job *job, search_hash by) {
    const tune_state *run = context;
    const child_result *r = &job->result;
    uint64_t same_as = 0;
    if (!run->course)
        return false;
    return search_is_over(run->course->search, job->number, r->genome, by, r->hashes[by],
                          &same_as) ||
           (run->earlier && earlier_knows(run->earlier, r, by));
}

static bool is_stopped(tune_state *run) {
    if (run->options->stop && *run->options->stop)
        run->stopped = true;
    return run->stopped;
}

static ev_status run_course(tune_state *run, course *c, const json_t *identity, ev_error *err) {
    if (!c->search) /* a signal stopped the opening */
        return EV_OK;
    EV_TRY(make_records(run, identity, err));
    run->course = c;
    ev_status status = course_search(c, err);
    run->course = NULL;
    EV_TRY(status);
    return course_finish(c, err);
}

/* Takes the rows of a task that an earlier run finished. */
static ev_status take_rows(tune_state *run, size_t index, ev_error *err) {
    records_winner *winners = NULL;
    size_t count = 0;
    EV_TRY(records_winners(run->records, &winners, &count, err));
    ev_status status = EV_OK;
    for (size_t i = 0; status == EV_OK && i < count; i++) {
        bool is_of_task = strcmp(winners[i].task_sha256, run->tasks[index]->sha256.hex) == 0;
        if (is_of_task)
            status = rows_append_json(run->report, winners[i].rows, err);
        if (status == EV_OK && is_of_task)
            status = genomes_append(run->report, winners[i].genome_sha256, winners[i].genome, err);
        if (status == EV_OK && winners[i].task == index)
            status = portfolio_append(run->report, winners[i].kernel, winners[i].portfolio, err);
    }
    records_winners_free(winners, count);
    return status;
}

static ev_status run_task(tune_state *run, size_t index, const json_t *identity, ev_error *err) {
    bool finished = false;
    if (run->records)
        EV_TRY(records_finished(run->records, index, &finished, err));
    if (finished)
        return take_rows(run, index, err);
    course *c = malloc(sizeof *c);
    if (!c)
        return ev_fail_memory(err, sizeof *c);
    ev_status status = course_open(run, index, c, err);
    if (status == EV_OK)
        status = run_course(run, c, identity, err);
    course_close(c);
    free(c);
    return status;
}

/* ---- a run ---- */

/* The number of workers that build: one a core. */
static unsigned builder_count(const tune_options *o) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned workers = 1;
    if (o->workers)
        workers = o->workers;
    else if (cores > 0)
        workers = (unsigned)cores;
    return workers < SEARCH_LAG ? workers : SEARCH_LAG; /* more would be idle */
}

/* Chooses workers and devices. Workers of --worker-command have a GPU each, on their machine. On
 * this machine each GPU has a timer, and the other workers screen in the virtual machine that is
 * the GPU's twin. */
static ev_status choose_workers(tune_state *run, pool_options *options, ev_error *err) {
    const tune_options *o = run->options;
    *options = (pool_options){.argv = o->worker_argv,
                              .device = o->device,
                              .workers = builder_count(o),
                              .context = run,
                              .known = known_code};
    if (run->commands.count > 0) {
        options->workers = (unsigned)run->commands.count;
        options->commands = run->commands.each;
    } else if (look_is_gpu(o->device)) {
        EV_TRY(look_at_gpus(o->device, &run->gpus, err));
        if (!look_is_one_model(&run->gpus))
            return ev_fail(err, EV_BAD,
                           "'%s' are GPUs of several models, and one search times on one model; "
                           "start a search for each",
                           o->device);
        options->timers = (unsigned)run->gpus.count;
        options->timer_devices = run->gpu_ids;
        options->workers += options->timers;
        options->device = run->gpus.first.twin;
    }
    for (size_t i = 0; i < run->gpus.count; i++)
        run->gpu_ids[i] = run->gpus.ids[i];
    run->report->workers = options->workers;
    run->report->timers = options->timers;
    return EV_OK;
}

static ev_status run_tasks(tune_state *run, const json_t *identity, ev_error *err) {
    const tune_options *o = run->options;
    EV_TRY(look_at_records(run, identity, err));
    EV_TRY(commands_parse(o->worker_commands, o->worker_command_count, SEARCH_LAG, &run->commands,
                          err));
    pool_options options;
    EV_TRY(choose_workers(run, &options, err));
    EV_TRY(pool_new(&options, &run->pool, err));
    for (size_t i = 0; i < run->options->task_count && !is_stopped(run); i++) {
        ev_status status = run_task(run, i, identity, err);
        if (status != EV_OK)
            return ev_wrap(err, status, "%s", run->tasks[i]->name);
    }
    return EV_OK;
}

/* CPU seconds of this process and its ended children; *most_bytes: peak memory. */
static double cpu_of_all(uint64_t *most_bytes) {
    struct rusage own, children;
    (void)getrusage(RUSAGE_SELF, &own);
    (void)getrusage(RUSAGE_CHILDREN, &children);
    if (most_bytes)
        *most_bytes = (uint64_t)own.ru_maxrss * 1024;
    const struct timeval parts[] = {own.ru_utime, own.ru_stime, children.ru_utime,
                                    children.ru_stime};
    double seconds = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        seconds += (double)parts[i].tv_sec + (double)parts[i].tv_usec * 1e-6;
    return seconds;
}

static void close_run(tune_state *run) {
    tune_report *report = run->report;
    ev_error ignored;
    if (run->records && records_bytes(run->records, &report->records_bytes, &ignored) != EV_OK)
        report->records_bytes = 0;
    if (run->pool) {
        pool_seconds(run->pool, report->stage_seconds);
        report->failed_workers = pool_failed_workers(run->pool);
    }
    pool_free(run->pool);
    commands_free(&run->commands);
    records_close(run->records);
    earlier_free(run->earlier);
    for (size_t i = 0; run->tasks && i < run->options->task_count; i++)
        task_free(run->tasks[i]);
    free(run->tasks);
    report->seconds = ev_clock_now() - run->began;
    report->stopped = run->stopped;
}

ev_status tune_run(const tune_options *options, tune_report *out, ev_error *err) {
    tune_report report = {.seed = options->seed};
    tune_state run = {.options = options, .report = &report, .began = ev_clock_now()};
    double cpu = ev_clock_cpu(), cpu_before = cpu_of_all(NULL);
    /* A dead worker shows as a failed write, not as SIGPIPE. */
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    (void)sigaction(SIGPIPE, &ignore, &before);
    json_t *identity = NULL;
    ev_status status = load_tasks(&run, err);
    if (status == EV_OK && !(identity = identity_of(&run)))
        status = ev_fail_memory(err, 0);
    run.identity = identity;
    if (status == EV_OK)
        status = run_tasks(&run, identity, err);
    json_decref(identity);
    close_run(&run);
    (void)sigaction(SIGPIPE, &before, NULL);
    report.stage_seconds[7] = ev_clock_cpu() - cpu;
    report.cpu_seconds = cpu_of_all(&report.coordinator_bytes) - cpu_before;
    if (status == EV_OK)
        *out = report;
    else
        tune_report_free(&report);
    return status;
}
