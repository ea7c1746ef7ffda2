/* Steps: runs the launches of a plan that has several, or scratch buffers. fit_run_case calls this
 * file for such a plan, so every gate, the baseline and the checks go through it.
 *
 * Where all blocks run (small cases, the cover of gate 6, the answers of a baseline), the launches
 * run in order on one memory that is reset once: scratch buffers and outputs begin uninitialised,
 * and an access that is wrong traps in the launch that makes it.
 *
 * Where a sample of blocks runs, a launch cannot go on from the sample of the launch before it. So
 * the unmodified start at the same macros runs once with all blocks, and a copy of all that each
 * launch may write is taken before it (a snapshot). A candidate's launch is then run on the
 * snapshot of its place. What passes between the launches is the same for all variants of a start
 * at the same macros. Outputs are compared after the launch that writes them last. The time is the
 * sum over the launches, each with caches as cold as those of a single launch.
 *
 * A device that measures times runs all blocks of everything, and times the launches together
 * (sequence.c).
 *
 * Where there are ranks, all blocks run, and each launch is timed as the ranks run it. The machine
 * runs a launch on all ranks before the next one, and judges races as if each rank's stream went on
 * by itself (vm_stream.c). */
#include "fitness/gates/steps.h"
#include "fitness/gates/fitness_impl.h"

#include "base/str.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The share of the machine's memory that all snapshots may take. */
#define SNAPSHOT_SHARE 0.25
#define NOBODY SIZE_MAX

struct fit_snapshot {
    char *key; /* start and macros; owned */
    const fit_case *at;
    size_t steps, outputs, slots; /* slots: the task's arguments, then the scratch buffers */
    char **begins;                /* by step and slot; NULL: the launch may not write there */
    char **copies;                /* owns what `begins` points to */
    size_t copy_count;
    uint64_t bytes;
    size_t *writer;   /* by output: the step that writes it last, or NOBODY */
    uint64_t *counts; /* by step and output: elements that all blocks write */
};

/* ---- scratch buffers ---- */

static ev_status new_scratch(fitness *f, const fit_scratch *like, fit_scratch **out,
                             ev_error *err) {
    fit_scratch *more = realloc(f->scratch, (f->scratch_count + 1) * sizeof *more);
    if (more == NULL)
        return ev_fail_memory(err, (f->scratch_count + 1) * sizeof *more);
    f->scratch = more;
    fit_scratch *made = &more[f->scratch_count];
    vm_buffer_kind kind = like->timed ? VM_BUFFER_INOUT : VM_BUFFER_SCRATCH;
    kind = like->table ? VM_BUFFER_IN : kind;
    *made = *like;
    EV_TRY(like->odd ? device_alloc_odd(f->d, like->bytes, TASK_ALIGN, kind, like->name,
                                        &made->buffer, err)
                     : device_alloc(f->d, like->bytes, kind, like->name, &made->buffer, err));
    f->scratch_count++;
    *out = made;
    return EV_OK;
}

static bool is_alike(const fit_scratch *a, const fit_scratch *b) {
    return a->bytes == b->bytes && a->ranks == b->ranks && a->table == b->table &&
           a->odd == b->odd && a->timed == b->timed && strcmp(a->name, b->name) == 0;
}

/* `of`: the name of a scratch buffer that is taken. */
static ev_status fill_table(const fit_walk *w, const char *of, device_buffer table, ev_error *err) {
    const launch_plan *plan = w->who->plan;
    size_t i = 0;
    while (strcmp(plan->scratch[i].name, of) != 0)
        i++;
    return fit_ranks_table(w->f, w->c->ranks, table, w->scratch[i], err);
}

static ev_status take_scratch(fit_walk *w, ev_error *err) {
    fitness *f = w->f;
    const launch_plan *plan = w->who->plan;
    fit_ranks_spread(f, w->c);
    for (size_t i = 0; i < plan->scratch_count; i++) {
        const fit_scratch like = {.name = plan->scratch[i].name,
                                  .bytes = w->steps.scratch[i] * w->c->ranks,
                                  .ranks = w->c->ranks,
                                  .table = plan->scratch[i].peers_of != NULL,
                                  .odd = fit_case_is_odd(f, w->c),
                                  .timed = fit_case_is_sampled(f, w->c)};
        fit_scratch *s = NULL;
        for (size_t k = 0; k < f->scratch_count && s == NULL; k++) {
            fit_scratch *one = &f->scratch[k];
            s = !one->taken && is_alike(one, &like) ? one : NULL;
        }
        if (s == NULL)
            EV_TRY(new_scratch(f, &like, &s, err));
        s->taken = true;
        w->scratch[w->lent++] = s->buffer;
        if (like.table)
            EV_TRY(fill_table(w, plan->scratch[i].peers_of, s->buffer, err));
    }
    return EV_OK;
}

static fit_scratch *scratch_at(const fitness *f, device_buffer buffer) {
    fit_scratch *s = f->scratch;
    while (s->buffer != buffer)
        s++;
    return s;
}

uint64_t fit_scratch_bytes(const fitness *f, device_buffer buffer) {
    return scratch_at(f, buffer)->bytes;
}

/* ---- a walk over the launches ---- */

ev_status fit_walk_begin(fitness *f, fit_case *c, const candidate *who, device_kernel *kernel,
                         fit_walk *w, ev_error *err) {
    *w = (fit_walk){.f = f, .c = c, .who = who, .kernel = kernel};
    EV_TRY(task_steps_of(f->t, who->start, who->plan, who->macros, who->macro_count,
                         fit_case_of_plans(c), &w->steps, err));
    return take_scratch(w, err);
}

void fit_walk_end(fit_walk *w) {
    for (size_t i = 0; i < w->lent; i++)
        scratch_at(w->f, w->scratch[i])->taken = false;
    task_steps_free(&w->steps);
    w->c->now = (fit_now){0};
}

static size_t slots_of(const fit_walk *w) {
    return w->f->t->argument_count + w->who->plan->scratch_count;
}

/* How a launch stands in the row of them that each rank's stream runs. */
static unsigned stream_of(const fit_walk *w, size_t index) {
    unsigned follows = index > 0 ? VM_STREAM_FOLLOWS : 0;
    unsigned goes_on = index + 1 < w->steps.count ? VM_STREAM_GOES_ON : 0;
    return w->c->ranks > 1 ? follows | goes_on : 0;
}

/* Runs one launch. `out` is of this launch alone. */
static ev_status run_step(fit_walk *w, size_t index, char *const *begins, bool resets,
                          const fit_run_options *options, fit_run *out, ev_error *err) {
    const task_step *step = &w->steps.all[index];
    const launch_plan *plan = w->who->plan;
    candidate own = *w->who;
    if (strcmp(plan->launches[step->launch].entry, launch_plan_entry(plan)) != 0)
        memset(own.idle_parts, 0, sizeof own.idle_parts); /* of the main kernel's grids alone */
    const fit_trial one = {.who = &own, .kernel = device_kernel_of(w->kernel, step->launch)};
    const fit_launch which = {.at = &step->at, .begins = resets, .stream = stream_of(w, index)};
    memset(out, 0, sizeof *out);
    w->c->now = (fit_now){.step = step, .index = index, .scratch = w->scratch, .begins = begins};
    if (begins != NULL)
        EV_TRY(fit_case_restore(w->f, w->c, NULL, 0, err));
    ev_status status = fit_run_launch(w->f, w->c, &one, &which, options, out, err);
    if (status == EV_OK && out->outcome.ok)
        return EV_OK;
    task_step_name(plan, &w->steps, index, out->where, sizeof out->where);
    return status == EV_OK ? EV_OK : ev_wrap(err, status, "%s", out->where);
}

/* ---- sums over the launches ---- */

static void add_counters(vm_counters *sum, const vm_counters *one) {
    uint64_t all[sizeof *sum / sizeof(uint64_t)], own[sizeof all / sizeof *all];
    memcpy(all, sum, sizeof all);
    memcpy(own, one, sizeof own);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        all[i] += own[i];
    memcpy(sum, all, sizeof all);
}

_Static_assert(sizeof(vm_counters) % sizeof(uint64_t) == 0, "counters are whole numbers");

/* Times and bytes add up; all else is of the longest launch. */
static void add_model(model_time *sum, const model_time *one, bool is_longest) {
    model_time made = is_longest ? *one : *sum;
    made.ns = sum->ns + one->ns;
    made.warm_ns = sum->warm_ns + one->warm_ns;
    made.floor_ns = sum->floor_ns + one->floor_ns;
    made.dram_bytes = sum->dram_bytes + one->dram_bytes;
    made.l2_bytes = sum->l2_bytes + one->l2_bytes;
    made.blocks = sum->blocks + one->blocks;
    made.sampled_blocks = sum->sampled_blocks + one->sampled_blocks;
    made.repeated_blocks = sum->repeated_blocks + one->repeated_blocks;
    for (int i = 0; i < MODEL_TERM_COUNT; i++)
        made.term_ns[i] = sum->term_ns[i] + one->term_ns[i];
    *sum = made;
}

/* The sums of a candidate's launches. */
typedef struct tally {
    fit_run *out;
    double longest_ns;
    double instructions; /* of all blocks of the launches so far */
    double wanted;       /* output elements that the start writes in the blocks that ran */
} tally;

static void add_run(tally *sum, const fit_run *one) {
    fit_run *out = sum->out;
    double ran = (double)one->outcome.counters.thread_instructions;
    bool is_longest = out->steps == 0 || one->timing.ns > sum->longest_ns;
    add_counters(&out->outcome.counters, &one->outcome.counters);
    out->outcome.ok = one->outcome.ok;
    out->outcome.fault = one->outcome.fault;
    out->outcome.waits = out->outcome.waits || one->outcome.waits;
    memcpy(out->where, one->where, sizeof out->where);
    add_model(&out->timing.model, &one->timing.model, is_longest);
    out->timing.ns += one->timing.ns;
    out->timing.low_ns += one->timing.low_ns;
    out->timing.high_ns += one->timing.high_ns;
    out->timing.warm_ns += one->timing.warm_ns;
    out->timing.samples = one->timing.samples;
    if (is_longest) {
        sum->longest_ns = one->timing.ns;
        out->launch = one->launch;
        out->grid = one->grid;
    }
    sum->instructions += ran / one->share;
    out->steps++;
}

static void end_tally(tally *sum) {
    fit_run *out = sum->out;
    double ran = (double)out->outcome.counters.thread_instructions;
    out->whole = 1;
    out->share = sum->instructions > 0 ? ran / sum->instructions : 1;
    out->wanted = (uint64_t)sum->wanted;
}

/* ---- profiles ---- */

/* The profile of one launch. The kernels of a plan come from one text, so a pc is of one kernel. */
typedef struct launch_profile {
    size_t count; /* of instructions */
    double *stalls;
    model_site *sites; /* NULL, as `stalls`: not wanted */
} launch_profile;

static void profile_free(launch_profile *p) {
    free(p->stalls);
    free(p->sites);
}

/* Has the launches that `own` asks for profiled apart. */
static ev_status profile_begin(const fit_walk *w, fit_run_options *own, launch_profile *p,
                               ev_error *err) {
    bool stalls = own->stalls != NULL, sites = own->sites != NULL;
    *p = (launch_profile){0};
    if (!stalls && !sites)
        return EV_OK;
    p->count = vm_module_insn_count(device_kernel_module(w->kernel));
    if (stalls)
        own->stalls = p->stalls = calloc(p->count + 1, sizeof *p->stalls);
    if (sites)
        own->sites = p->sites = calloc(p->count + 1, sizeof *p->sites);
    return stalls == (p->stalls != NULL) && sites == (p->sites != NULL)
               ? EV_OK
               : ev_fail_memory(err, p->count * sizeof *p->sites);
}

/* Adds that of the launch that ran last, weighted by its time, and clears it. */
static void profile_add(launch_profile *p, double ns, const fit_run_options *to) {
    for (size_t pc = 0; p->stalls != NULL && pc < p->count; pc++)
        to->stalls[pc] += p->stalls[pc] * ns;
    for (size_t pc = 0; p->sites != NULL && pc < p->count; pc++) {
        const model_site *one = &p->sites[pc];
        model_site *sum = &to->sites[pc];
        for (int i = 0; i < MODEL_TERM_COUNT; i++)
            sum->stall[i] += one->stall[i] * ns;
        sum->requests += one->requests;
        sum->lanes += one->lanes;
        sum->sectors += one->sectors;
        sum->passes += one->passes;
    }
    if (p->sites != NULL)
        memset(p->sites, 0, p->count * sizeof *p->sites);
}

static void profile_end(const launch_profile *p, double ns, const fit_run_options *to) {
    for (size_t pc = 0; p->stalls != NULL && ns > 0 && pc < p->count; pc++)
        to->stalls[pc] /= ns;
    for (size_t pc = 0; p->sites != NULL && ns > 0 && pc < p->count; pc++) {
        for (int i = 0; i < MODEL_TERM_COUNT; i++)
            to->sites[pc].stall[i] /= ns;
    }
}

/* ---- all blocks ---- */

/* Timed cases have outputs and scratch buffers that a reset does not fill. */
static ev_status fill_with_poison(fit_walk *w, ev_error *err) {
    EV_TRY(device_reset(w->f->d, FIT_POISON, err));
    for (size_t i = 0; i < w->lent && fit_case_is_sampled(w->f, w->c); i++)
        memset(device_host(w->f->d, w->scratch[i]), FIT_POISON, w->steps.scratch[i]);
    for (size_t i = 0; i < w->f->t->argument_count && fit_case_is_sampled(w->f, w->c); i++) {
        const fit_argument *a = &w->c->arguments[i];
        if (a->what->kind == TASK_OUT)
            memset(device_host(w->f->d, a->buffer), FIT_POISON, a->bytes);
    }
    return EV_OK;
}

static ev_status run_whole(fit_walk *w, const fit_run_options *options, fit_run *out,
                           ev_error *err) {
    tally sum = {.out = out};
    launch_profile profile;
    fit_run_options own = *options;
    fit_run *one = malloc(sizeof *one);
    if (one == NULL)
        return ev_fail_memory(err, sizeof *one);
    ev_status status = profile_begin(w, &own, &profile, err);
    if (status == EV_OK)
        status = fill_with_poison(w, err);
    bool goes_on = true;
    for (size_t i = 0; i < w->steps.count && status == EV_OK && goes_on; i++) {
        status = run_step(w, i, NULL, false, &own, one, err);
        if (status == EV_OK) {
            add_run(&sum, one);
            profile_add(&profile, one->timing.ns, options);
        }
        goes_on = status == EV_OK && one->outcome.ok;
    }
    free(one);
    end_tally(&sum);
    profile_end(&profile, out->timing.ns, options);
    profile_free(&profile);
    return status;
}

/* ---- snapshots ---- */

static void snapshot_free(fit_snapshot *s) {
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->copy_count; i++)
        free(s->copies[i]);
    free(s->key);
    free(s->begins);
    free(s->copies);
    free(s->writer);
    free(s->counts);
    free(s);
}

void fit_steps_free(fitness *f) {
    for (size_t i = 0; i < f->snapshot_count; i++)
        snapshot_free(f->snapshots[i]);
    free(f->snapshots);
    free(f->scratch);
    f->snapshots = NULL;
    f->scratch = NULL;
    f->snapshot_count = f->scratch_count = 0;
}

static ev_status snapshot_new(const fit_walk *w, char *key, fit_snapshot **out, ev_error *err) {
    fit_snapshot *s = calloc(1, sizeof *s);
    if (s == NULL) {
        free(key);
        return ev_fail_memory(err, sizeof *s);
    }
    *s = (fit_snapshot){.key = key,
                        .at = w->c,
                        .steps = w->steps.count,
                        .outputs = w->c->output_count,
                        .slots = slots_of(w)};
    s->begins = calloc(s->steps * s->slots, sizeof(char *));
    s->copies = calloc(s->steps * s->slots, sizeof(char *));
    s->writer = calloc(s->outputs, sizeof *s->writer);
    s->counts = calloc(s->steps * s->outputs, sizeof *s->counts);
    if (s->begins == NULL || s->copies == NULL || s->writer == NULL || s->counts == NULL) {
        snapshot_free(s);
        return ev_fail_memory(err, w->steps.count * sizeof(char *));
    }
    for (size_t i = 0; i < s->outputs; i++)
        s->writer[i] = NOBODY;
    *out = s;
    return EV_OK;
}

static ev_status check_bytes(const fit_walk *w, const fit_snapshot *s, ev_error *err) {
    double machine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if ((double)s->bytes <= SNAPSHOT_SHARE * machine)
        return EV_OK;
    return ev_fail(err, EV_BAD,
                   "task %s, case %s: what passes between its %zu launches takes more than %.0f "
                   "bytes of this machine's memory; make the shape smaller or repeat less",
                   w->f->t->name, w->c->at->name, s->steps, SNAPSHOT_SHARE * machine);
}

/* Copies a buffer before step `index`, unless the last copy of it still holds. */
static ev_status copy_slot(const fit_walk *w, fit_snapshot *s, size_t index, size_t slot,
                           device_buffer buffer, uint64_t bytes, ev_error *err) {
    const char *now = device_host(w->f->d, buffer);
    char **to = &s->begins[index * s->slots + slot];
    for (size_t i = index; i-- > 0 && *to == NULL;) {
        char *last = s->begins[i * s->slots + slot];
        if (last == NULL)
            continue;
        if (memcmp(last, now, bytes) != 0)
            break;
        *to = last;
    }
    if (*to != NULL)
        return EV_OK;
    s->bytes += bytes;
    EV_TRY(check_bytes(w, s, err));
    *to = malloc(bytes + 1);
    if (*to == NULL)
        return ev_fail_memory(err, bytes);
    memcpy(*to, now, bytes);
    s->copies[s->copy_count++] = *to;
    return EV_OK;
}

static ev_status copy_before(const fit_walk *w, fit_snapshot *s, size_t index, ev_error *err) {
    const task_step *step = &w->steps.all[index];
    for (size_t i = 0; i < step->given_count; i++) {
        const task_given *g = &step->given[i];
        size_t slot = g->index;
        if (g->kind == TASK_GIVEN_SCRATCH) {
            slot += w->f->t->argument_count;
            EV_TRY(copy_slot(w, s, index, slot, w->scratch[g->index], w->steps.scratch[g->index],
                             err));
            continue;
        }
        if (g->kind == TASK_GIVEN_VALUE)
            continue;
        const fit_argument *a = &w->c->arguments[slot];
        if (a->what->kind == TASK_OUT || a->what->kind == TASK_INOUT)
            EV_TRY(copy_slot(w, s, index, slot, a->buffer, a->bytes, err));
    }
    return EV_OK;
}

/* Runs all blocks of each launch. `run`: of the launch that ended in a fault, if one did. */
static ev_status fill_snapshot(fit_walk *w, fit_snapshot *s, fit_run *run, ev_error *err) {
    const fit_run_options options = {
        .all_blocks = true, .checks = VM_CHECK_INIT, .jobs = w->f->options.jobs};
    EV_TRY(fill_with_poison(w, err));
    for (size_t i = 0; i < s->steps; i++) {
        uint64_t *counts = &s->counts[i * s->outputs];
        EV_TRY(copy_before(w, s, i, err));
        EV_TRY(run_step(w, i, NULL, true, &options, run, err));
        if (!run->outcome.ok)
            return EV_OK;
        EV_TRY(fit_count_outputs(w->f, w->c, counts, err));
        for (size_t k = 0; k < s->outputs; k++)
            s->writer[k] = counts[k] > 0 ? i : s->writer[k];
    }
    return EV_OK;
}

static void drop_oldest(fitness *f) {
    snapshot_free(f->snapshots[0]);
    memmove(f->snapshots, f->snapshots + 1, --f->snapshot_count * sizeof(*f->snapshots));
}

/* Takes `s` over. */
static ev_status keep(const fit_walk *w, fit_snapshot *s, ev_error *err) {
    fitness *f = w->f;
    double machine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    fit_snapshot **more = realloc(f->snapshots, (f->snapshot_count + 1) * sizeof(*more));
    if (more == NULL) {
        snapshot_free(s);
        return ev_fail_memory(err, (f->snapshot_count + 1) * sizeof(*more));
    }
    f->snapshots = more;
    uint64_t bytes = s->bytes;
    for (size_t i = 0; i < f->snapshot_count; i++)
        bytes += f->snapshots[i]->bytes;
    while (f->snapshot_count > 0 && (double)bytes > SNAPSHOT_SHARE * machine) {
        bytes -= f->snapshots[0]->bytes;
        drop_oldest(f);
    }
    f->snapshots[f->snapshot_count++] = s;
    return EV_OK;
}

/* "hand\nBLOCK=64"; of a candidate that stands for its start, the hash of its code as well;
 * malloc'ed, NULL: out of memory. */
static char *key_of(const candidate *who, bool own) {
    ev_str key = EV_STR_EMPTY;
    ev_str_append(&key, who->start->name);
    for (size_t i = 0; i < who->macro_count; i++)
        ev_str_printf(&key, "\n%s=%" PRId64, who->macros[i].name, who->macros[i].value.whole);
    if (own)
        ev_str_printf(&key, "\n%s", ev_sha256_of(who->ptx, who->ptx_bytes).hex);
    return ev_str_take(&key);
}

/* Makes the one found the last. */
static fit_snapshot *find(fitness *f, const fit_case *c, const char *key) {
    for (size_t i = 0; i < f->snapshot_count; i++) {
        fit_snapshot *s = f->snapshots[i];
        if (s->at != c || strcmp(s->key, key) != 0)
            continue;
        memmove(&f->snapshots[i], &f->snapshots[i + 1],
                (f->snapshot_count - i - 1) * sizeof(*f->snapshots));
        return f->snapshots[f->snapshot_count - 1] = s;
    }
    return NULL;
}

/* Whether the unmodified start at the candidate's macros is another candidate, at hand. */
static bool has_origin(const candidate *who) {
    return !who->is_unmodified && (who->origin != NULL || who->unmodified != NULL);
}

/* Makes the snapshot by a subject. *out stays NULL if a launch ends in a fault, which `run` has. */
static ev_status make_by(fit_walk *w, char *key, fit_snapshot **out, fit_run *run, ev_error *err) {
    fit_snapshot *s = NULL;
    EV_TRY(snapshot_new(w, key, &s, err));
    run->outcome.ok = true;
    ev_status status = fill_snapshot(w, s, run, err);
    bool ok = status == EV_OK && run->outcome.ok;
    w->c->now = (fit_now){0};
    if (status == EV_OK)
        status = fit_case_restore(w->f, w->c, NULL, 0, err);
    if (status != EV_OK || !ok) {
        snapshot_free(s);
        return status;
    }
    EV_TRY(keep(w, s, err));
    *out = s;
    return EV_OK;
}

/* The start's launches are those of the candidate, with other sizes perhaps. */
static ev_status make_by_origin(fit_walk *w, char *key, fit_snapshot **out, fit_run *run,
                                ev_error *err) {
    fit_start start = {.ptx = EV_STR_EMPTY};
    fit_walk own = *w;
    ev_status status = fit_start_of(w->f, w->who, &start, err);
    bool is_start = status == EV_OK && start.who.start == w->who->start && start.is_owned;
    task_steps steps = {0};
    if (is_start) {
        status = task_steps_of(w->f->t, start.who.start, start.who.plan, start.who.macros,
                               start.who.macro_count, fit_case_of_plans(w->c), &steps, err);
        own.who = &start.who;
        own.kernel = start.kernel;
        own.steps = steps;
    }
    if (status == EV_OK && is_start)
        status = fit_case_fill(w->f, w->c, start.kernel, err);
    if (status == EV_OK)
        status = make_by(&own, key, out, run, err);
    else
        free(key);
    task_steps_free(&steps);
    fit_start_free(&start);
    return status;
}

static ev_status snapshot_of(fit_walk *w, fit_snapshot **out, fit_run *run, ev_error *err) {
    bool by_origin = has_origin(w->who);
    bool own = !by_origin && !w->who->is_unmodified && w->who->ptx != w->f->baseline.ptx;
    char *key = key_of(w->who, own);
    if (key == NULL)
        return ev_fail_memory(err, 0);
    *out = find(w->f, w->c, key);
    if (*out == NULL)
        return by_origin ? make_by_origin(w, key, out, run, err) : make_by(w, key, out, run, err);
    free(key);
    return EV_OK;
}

/* ---- a sample of blocks ---- */

/* Adds how many output elements the start writes in the blocks of a launch that ran, of the outputs
 * that are compared after it. The paths of an uneven grid know it of all outputs together. Of an
 * even one it is an estimate, in which the first and the last block write none. */
static void add_wanted(tally *sum, const fit_snapshot *s, size_t index, const fit_run *one) {
    double all = 0, compared = 0;
    for (size_t i = 0; i < s->outputs; i++) {
        double count = (double)s->counts[index * s->outputs + i];
        all += count;
        compared += s->writer[i] == index ? count : 0;
    }
    const uint32_t *grid = one->launch.grid;
    double blocks = (double)grid[0] * grid[1] * grid[2];
    double inner = one->share < 1 ? fmax(0, one->share * blocks - 2) : blocks;
    double ran = all * inner / blocks;
    if (one->wanted > 0)
        ran = (double)one->wanted;
    sum->wanted += all > 0 ? ran * compared / all : 0;
}

static ev_status run_sampled(fit_walk *w, const fit_snapshot *s, const fit_run_options *options,
                             fit_run *out, fit_run *one, ev_error *err) {
    tally sum = {.out = out};
    accuracy_check check;
    accuracy_limits limits = fit_limits_of_run(w->f, w->c, options);
    launch_profile profile;
    fit_run_options own = *options;
    accuracy_begin(&check, &limits);
    ev_status status = profile_begin(w, &own, &profile, err);
    out->outcome.ok = true;
    for (size_t i = 0; i < w->steps.count && status == EV_OK && out->outcome.ok; i++) {
        status = run_step(w, i, &s->begins[i * s->slots], true, &own, one, err);
        if (status != EV_OK)
            break;
        add_run(&sum, one);
        add_wanted(&sum, s, i, one);
        profile_add(&profile, one->timing.ns, options);
        if (one->outcome.ok && options->compares)
            status = fit_compare_more(w->f, w->c, s->writer, i, &check, &out->written, NULL, err);
    }
    end_tally(&sum);
    profile_end(&profile, out->timing.ns, options);
    profile_free(&profile);
    out->accuracy = accuracy_end(&check);
    out->is_compared = options->compares;
    return status;
}

static ev_status sample_steps(fit_walk *w, const fit_run_options *options, fit_run *out,
                              ev_error *err) {
    fit_snapshot *s = NULL;
    fit_run *one = calloc(1, sizeof *one);
    if (one == NULL)
        return ev_fail_memory(err, sizeof *one);
    ev_status status = snapshot_of(w, &s, one, err);
    if (status == EV_OK && s != NULL)
        status = run_sampled(w, s, options, out, one, err);
    else if (status == EV_OK) {
        tally sum = {.out = out};
        add_run(&sum, one);
        end_tally(&sum);
    }
    free(one);
    return status;
}

ev_status fit_run_steps(fitness *f, fit_case *c, const fit_trial *trial,
                        const fit_run_options *options, fit_run *out, ev_error *err) {
    fit_walk w;
    bool all = !fit_case_is_sampled(f, c) || (options->all_blocks && !options->timed);
    ev_status status = fit_walk_begin(f, c, trial->who, trial->kernel, &w, err);
    if (status == EV_OK)
        status = all ? run_whole(&w, options, out, err) : sample_steps(&w, options, out, err);
    fit_walk_end(&w);
    return status;
}

/* ---- sizes ---- */

ev_status fit_steps_fit(const fitness *f, const task_case *at, const fit_trial *trial,
                        ev_error *err) {
    const candidate *who = trial->who;
    task_steps steps;
    EV_TRY(
        task_steps_of(f->t, who->start, who->plan, who->macros, who->macro_count, at, &steps, err));
    ev_status status = EV_OK;
    for (size_t i = 0; i < steps.count && status == EV_OK; i++) {
        device_launch d = device_launch_of(&steps.all[i].at);
        char name[160];
        status = device_check(f->d, device_kernel_of(trial->kernel, steps.all[i].launch), &d, err);
        task_step_name(who->plan, &steps, i, name, sizeof name);
        if (status != EV_OK && !launch_plan_is_plain(who->plan))
            status = ev_wrap(err, status, "%s", name);
    }
    task_steps_free(&steps);
    return status;
}
