/* What the virtual machine takes, the assembler of a CUDA toolkit takes too, where one is installed
 * (EVOKE_PTXAS, PATH, /usr/local/cuda/bin; else the test is skipped): all goldens and matrix
 * kernels, the tests' zoo, all probes of the calibration, all starts of the shipped tasks at all
 * values of their macros, and 200 random candidates a task, each by LLVM and as the direct
 * emitter's sketch, for sm_75, 80, 89, 90, 100 and 120, as far as this assembler has them. None of
 * the tasks' own texts meets a known fault of ptxas; starts at their default macros, and
 * winners as they are delivered, do not spill.
 *
 * Without an argument each start is built for each target, a group of ten candidates of each third
 * task for one, and each value of a macro and a sixteenth of the settings that change several
 * macros for one; of a group so much text is assembled as one long candidate has, or many short
 * ones, and all for one target by turns; and a matrix kernel and a file of goldens for sm_90 and
 * one other. `test_ptxas full` (or EVOKE_PTXAS_FULL=1) does all for all; `test_ptxas shipped
 * [TASK ...]` does starts at their default macros and winners alone, for all. EVOKE_PTXAS_KEEP
 * names a folder for texts that are refused, and for starts and winners that spill. Work is shared
 * by as many processes as there are processors. Texts with one head are assembled together; where
 * the assembler refuses some of them, each is named. */
#include "base/file.h"
#include "base/hash.h"
#include "base/proc.h"
#include "fitness/device/calibrate/calibrate_impl.h"
#include "fitness/device/cuda/ptxas.h"
#include "tests/fitness/device/ptx_batches.h"
#include "tests/fitness/ptx/golden_plan.h"
#include "tests/gpu/tensor.h"
#include "tuner/cli/sampled.h"
#include "tuner/worker/variant.h"

#include <dirent.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKIPPED 77
#define SEED 20
#define CANDIDATES 200 /* a task */
#define GROUPS (CANDIDATES / SAMPLED_GROUP)
#define OTHERS 16          /* one setting of so many with several macros changed, unless in full */
#define SHARE 15           /* one group of so many, unless in full, */
#define GROUP_BYTES 200000 /* of which so much text is assembled */
#define HASH_SLOTS (1u << 17)
#define MOST_WORKERS 16
#define STEPS 4 /* of a probe's loop: as good as any */

static const int targets[] = {75, 80, 89, 90, 100, 120};
/* Targets that tasks are built for: the last one's PTX is also what newer GPUs get. */
static const int built_for[] = {75, 80, 89, 90};
enum {
    TARGETS = sizeof targets / sizeof *targets,
    BUILDS = sizeof built_for / sizeof *built_for,
};

typedef enum kind {
    GOLDENS,
    MATRICES,
    ZOO,
    PROBES,
    STARTS,
    SETTINGS,
    WINNERS,
    REBUILT,
    SKETCHES,
    CHILDREN,
    KINDS,
} kind;
static const char *const kind_names[KINDS] = {[GOLDENS] = "goldens",
                                              [MATRICES] = "matrix kernels",
                                              [ZOO] = "zoo",
                                              [PROBES] = "probes of the calibration",
                                              [STARTS] = "starts of tasks",
                                              [SETTINGS] = "starts at other macros",
                                              [WINNERS] = "winners",
                                              [REBUILT] = "winners for other GPUs",
                                              [SKETCHES] = "candidates' sketches",
                                              [CHILDREN] = "candidates"};

/* What the processes share. */
typedef struct board {
    atomic_uint next;             /* piece of work */
    atomic_uint calls;            /* of the assembler */
    atomic_uint texts[KINDS];     /* that the machine takes */
    atomic_uint runs[KINDS];      /* for the assembler, a text and target each */
    atomic_uint known[KINDS];     /* left out: the same text for the same target again */
    atomic_uint left_out[KINDS];  /* a group has many bytes */
    atomic_uint refused[KINDS];   /* by the assembler */
    atomic_uint spilling[KINDS];  /* registers go to memory */
    atomic_uint not_taken[KINDS]; /* by the machine */
    _Atomic uint64_t seen[HASH_SLOTS];
} board;

typedef struct sweep {
    board *shared;
    ptx_batches *batches; /* of this process */
    ptxas p;
    bool has[TARGETS], full;
    bool shipped; /* starts at their default macros and winners alone */
    task **tasks;
    size_t task_count;
    json_t *winners; /* rows of results/kernel-tuned.json, each with "sm", its device's target */
    char **names;    /* of the tasks, NULL behind the last; none: all shipped ones */
    char *home;
} sweep;

/* ---- one text ---- */

/* A second time: true. Where the slots are all taken nothing is known any more. */
static bool is_known(sweep *s, const char *ptx, int sm) {
    ev_sha256 hash = ev_sha256_of(ptx, strlen(ptx));
    uint64_t key = 0;
    memcpy(&key, &hash, sizeof key);
    key = (key ^ (uint64_t)sm * UINT64_C(0x9e3779b97f4a7c15)) | 1;
    for (unsigned i = 0; i < HASH_SLOTS; i++) {
        uint64_t there = 0;
        if (atomic_compare_exchange_strong(&s->shared->seen[(key + i) % HASH_SLOTS], &there, key))
            return false;
        if (there == key)
            return true;
    }
    return false;
}

/* To have something to look at. */
static void keep(const char *ptx, const char *name, int sm) {
    const char *folder = getenv("EVOKE_PTXAS_KEEP");
    ev_error ignored;
    ev_str path = EV_STR_EMPTY;
    if (folder == NULL)
        return;
    ev_str_printf(&path, "%s/%s sm_%d.ptx", folder, name, sm);
    for (char *at = path.data + strlen(folder) + 1; *at != '\0'; at++)
        *at = *at == '/' || *at == ' ' ? '_' : *at;
    (void)ev_file_write(ev_str_text(&path), ptx, strlen(ptx), &ignored);
    ev_str_free(&path);
}

static void refuse(sweep *s, kind k, const char *ptx, const char *name, int sm,
                   const ev_error *err) {
    atomic_fetch_add(&s->shared->refused[k], 1);
    (void)fprintf(stderr, "%s %s, sm_%d: %.600s\n", kind_names[k], name, sm, err->text);
    keep(ptx, name, sm);
}

static bool machine_takes(const char *ptx, ev_error *err) {
    vm_module *m = NULL;
    ev_status status = vm_module_load(ptx, strlen(ptx), "ptx", &m, err);
    vm_module_free(m);
    return status == EV_OK;
}

/* What is delivered: its texts may not spill. */
static bool is_shipped(kind k) {
    return k == STARTS || k == WINNERS;
}

static void on_verdict(void *context, const ptx_verdict *v) {
    sweep *s = context;
    if (v->refused != NULL) {
        refuse(s, v->kind, v->text, v->name, v->sm, v->refused);
        return;
    }
    atomic_fetch_add(&s->shared->spilling[v->kind], 1);
    if (is_shipped(v->kind)) {
        (void)fprintf(stderr, "%s %s, sm_%d: spills %lu bytes a thread\n", kind_names[v->kind],
                      v->name, v->sm, v->spilled);
        keep(v->text, v->name, v->sm);
    }
}

/* ---- one text for one target ---- */

/* For the target numbered `t`, if this assembler has it. */
static void check(sweep *s, kind k, const char *ptx, const char *name, size_t t) {
    if (!s->has[t])
        return;
    if (is_known(s, ptx, targets[t])) {
        atomic_fetch_add(&s->shared->known[k], 1);
        return;
    }
    atomic_fetch_add(&s->shared->runs[k], 1);
    ptx_batches_add(s->batches, k, ptx, name, targets[t]);
}

static bool take(sweep *s, kind k, const char *ptx, const char *name) {
    ev_error why;
    bool takes = machine_takes(ptx, &why);
    atomic_fetch_add(takes ? &s->shared->texts[k] : &s->shared->not_taken[k], 1);
    if (!takes)
        (void)printf("%s %s: the machine does not take it: %.200s\n", kind_names[k], name,
                     why.text);
    return takes;
}

static void refuse_fault(sweep *s, kind k, const char *ptx, const char *name, int sm) {
    vm_module *m = NULL;
    ev_error err = {0};
    const char *what = "";
    if (vm_module_load(ptx, strlen(ptx), "ptx", &m, &err) == EV_OK &&
        vm_module_ptxas_fault(m, &what) > 0) {
        (void)ev_fail(&err, EV_BAD, "%s", what);
        refuse(s, k, ptx, name, sm, &err);
    }
    vm_module_free(m);
}

/* PTX built for built_for[build]; what is for the last of them goes to newer GPUs too, by turns or,
 * in full, to each. The machine takes a text that is not `assembled`, no more. */
static void check_built(sweep *s, kind k, const char *ptx, const char *name, size_t build,
                        size_t turn, bool assembled) {
    if (!take(s, k, ptx, name)) {
        ev_error none = {.text = "the machine does not take it"};
        if (k == STARTS || k == SETTINGS)
            refuse(s, k, ptx, name, built_for[build], &none);
        return;
    }
    refuse_fault(s, k, ptx, name, built_for[build]);
    if (!assembled) {
        atomic_fetch_add(&s->shared->left_out[k], 1);
        return;
    }
    if (build + 1 < BUILDS) {
        check(s, k, ptx, name, build);
        return;
    }
    for (size_t t = build; t < TARGETS; t++) {
        if (s->full || t == build + turn % (TARGETS - build))
            check(s, k, ptx, name, t);
    }
}

/* ---- goldens ---- */

typedef struct golden_target {
    sweep *s;
    size_t target;
} golden_target;

static void on_plan(void *context, golden_plan *p, bool is_sound) {
    const golden_target *g = context;
    sweep *s = g->s;
    int sm = targets[g->target];
    char *text = golden_plan_text_for(p, sm < 90 ? sm : 90), name[PTX_NAME_BYTES];
    ev_error why;
    (void)snprintf(name, sizeof name, "%s line %u: %s%.100s", p->insn->row, p->first->line,
                   p->guarded ? "@%guard " : "", p->insn->text);
    /* what needs a newer target is for that alone */
    if (!is_sound || !machine_takes(text, &why)) {
        atomic_fetch_add(&s->shared->not_taken[GOLDENS], 1);
    } else {
        atomic_fetch_add(&s->shared->texts[GOLDENS], 1);
        check(s, GOLDENS, text, name, g->target);
    }
    free(text);
}

static void sweep_goldens(sweep *s, const char *path, size_t target) {
    golden_target g = {s, target};
    ev_arena *arena = ev_arena_new();
    golden_file file = {0};
    ev_error err;
    if (arena == NULL || golden_read(path, arena, &file, &err) != EV_OK)
        abort();
    for (size_t i = 0; i < file.count; i++)
        golden_each_plan(&file.insns[i], on_plan, &g);
    ev_arena_free(arena);
}

/* ---- what else there is ---- */

static void sweep_matrices(sweep *s) {
    tensor_kernel *k = malloc(sizeof *k);
    for (size_t i = 0; k != NULL && i < tensor_count(); i++) {
        tensor_make(i, k);
        if (take(s, MATRICES, ev_str_text(&k->ptx), k->name)) {
            for (size_t t = 0; t < TARGETS; t++) {
                bool is_due = s->full || targets[t] == 90 || i % TARGETS == t;
                if (is_due && targets[t] >= k->sm)
                    check(s, MATRICES, ev_str_text(&k->ptx), k->name, t);
            }
        }
        ev_str_free(&k->ptx);
    }
    free(k);
}

static void sweep_probes(sweep *s) {
    for (size_t i = 0; i < PROBE_COUNT; i++) {
        const probe *p = &calibrate_probes[i];
        ev_str ptx = EV_STR_EMPTY;
        ev_error err;
        if (calibrate_kernel(p, STEPS, &ptx, &err) == EV_OK) {
            atomic_fetch_add(&s->shared->texts[PROBES], 1);
            for (size_t t = 0; t < TARGETS; t++) {
                if (targets[t] >= p->sm)
                    check(s, PROBES, ev_str_text(&ptx), p->name, t);
            }
        } else {
            atomic_fetch_add(&s->shared->not_taken[PROBES], 1);
        }
        ev_str_free(&ptx);
    }
}

static void sweep_zoo(sweep *s, const char *path) {
    char *text = NULL;
    size_t bytes = 0;
    ev_error err;
    vm_module *m = NULL;
    if (ev_file_read(path, &text, &bytes, &err) == EV_OK && take(s, ZOO, text, path) &&
        vm_module_load(text, bytes, "zoo", &m, &err) == EV_OK) {
        for (size_t t = 0; t < TARGETS; t++) {
            if (targets[t] >= vm_module_sm(m))
                check(s, ZOO, text, path, t);
        }
    }
    vm_module_free(m);
    free(text);
}

/* ---- tasks ---- */

static size_t settings_of(const task_start *start) {
    size_t count = 1;
    for (size_t i = 0; i < start->macro_count; i++)
        count *= start->macros[i].value_count;
    return count;
}

/* Whether a setting is assembled unless in full: of many settings those with at most one macro away
 * from its first value, and one in OTHERS of those with more. */
static bool is_taken(const task_start *start, size_t setting) {
    size_t away = 0, sum = 0;
    if (settings_of(start) <= 2 * BUILDS || start->macro_count == 1)
        return true;
    for (size_t i = 0; i < start->macro_count; i++) {
        size_t value = setting % start->macros[i].value_count;
        away += value > 0;
        sum += value;
        setting /= start->macros[i].value_count;
    }
    return away <= 1 || sum % OTHERS == 0;
}

static bool is_default(const task_start *start, size_t setting) {
    for (size_t i = 0; i < start->macro_count; i++) {
        const task_macro *m = &start->macros[i];
        if (m->values[setting % m->value_count] != m->otherwise)
            return false;
        setting /= m->value_count;
    }
    return true;
}

/* Whether a setting is built for this target, unless in full: a start with its default macros is
 * for each, each value of a macro for one. */
static bool is_due(const task_start *start, size_t setting, size_t build) {
    if (is_default(start, setting))
        return true;
    return is_taken(start, setting) && ev_mix64(setting) % BUILDS == build;
}

static ir_genome *start_genome(const task_start *start, size_t setting, ev_str *name) {
    ir_genome *genome = ir_genome_new(start->name);
    ev_error err;
    for (size_t i = 0; i < start->macro_count; i++) {
        const task_macro *m = &start->macros[i];
        int64_t value = m->values[setting % m->value_count];
        setting /= m->value_count;
        ev_str_printf(name, " %s=%lld", m->name, (long long)value);
        if (genome == NULL ||
            (value != m->otherwise && ir_genome_set_macro(genome, m->name, value, &err) != EV_OK))
            abort();
    }
    return genome;
}

static void sweep_start(sweep *s, const task *t, const task_start *start, size_t setting,
                        size_t build, size_t turn) {
    ev_str ptx = EV_STR_EMPTY, name = EV_STR_EMPTY;
    ev_error err = {0};
    ev_str_printf(&name, "%s %s", t->name, start->name);
    kind k = is_default(start, setting) ? STARTS : SETTINGS;
    ir_genome *genome = start_genome(start, setting, &name);
    ev_status status = variant_build(t, genome, built_for[build], &ptx, &err);
    if (status == EV_OK)
        check_built(s, k, ev_str_text(&ptx), ev_str_text(&name), build, turn, true);
    else
        refuse(s, k, "", ev_str_text(&name), built_for[build], &err);
    ir_genome_free(genome);
    ev_str_free(&ptx);
    ev_str_free(&name);
}

static const task *task_named(const sweep *s, const char *name, const char *sha256) {
    for (size_t i = 0; name != NULL && sha256 != NULL && i < s->task_count; i++) {
        if (strcmp(s->tasks[i]->name, name) == 0 && strcmp(s->tasks[i]->sha256.hex, sha256) == 0)
            return s->tasks[i];
    }
    return NULL;
}

/* The compute capability that a device has, 0: it cannot be opened. */
static int sm_of(const char *name) {
    device *d = NULL;
    ev_error ignored;
    int sm = 0;
    if (device_open(name, &d, &ignored) == EV_OK)
        sm = device_properties_of(d)->sm;
    device_close(d);
    return sm;
}

/* A winner as it is delivered: for its GPU, whose assembler and those of newer GPUs get the text.
 */
static void check_delivered(sweep *s, const char *ptx, const char *name, size_t build) {
    if (!take(s, WINNERS, ptx, name)) {
        ev_error none = {.text = "the machine does not take it"};
        refuse(s, WINNERS, ptx, name, built_for[build], &none);
        return;
    }
    refuse_fault(s, WINNERS, ptx, name, built_for[build]);
    for (size_t t = build; t < TARGETS; t++)
        check(s, WINNERS, ptx, name, t);
}

/* The winner of a row; of a task that has changed since: nothing. For other GPUs than the winner's
 * the kernel may be another one, without the places of its edits. */
static void sweep_winner(sweep *s, const json_t *row, size_t build, size_t turn) {
    const char *kernel = json_string_value(json_object_get(row, "kernel")),
               *device = json_string_value(json_object_get(row, "device")),
               *sha256 = json_string_value(json_object_get(row, "task_sha256"));
    const json_t *of = json_object_get(row, "genome");
    const task *t = task_named(s, kernel, sha256);
    bool is_own = built_for[build] == json_integer_value(json_object_get(row, "sm"));
    ir_genome *genome = NULL;
    ev_str ptx = EV_STR_EMPTY;
    ev_error err = {0};
    char name[PTX_NAME_BYTES];
    (void)snprintf(name, sizeof name, "%s, tuned on %s", kernel, device);
    if (t == NULL || of == NULL)
        return;
    ev_status status = ir_genome_from_json(of, &genome, &err);
    if (status == EV_OK)
        status = variant_build(t, genome, built_for[build], &ptx, &err);
    if (status == EV_OK && is_own)
        check_delivered(s, ev_str_text(&ptx), name, build);
    else if (status == EV_OK)
        check_built(s, REBUILT, ev_str_text(&ptx), name, build, turn, true);
    else if (is_own)
        refuse(s, WINNERS, "", name, built_for[build], &err);
    else
        atomic_fetch_add(&s->shared->not_taken[REBUILT], 1);
    ir_genome_free(genome);
    ev_str_free(&ptx);
}

typedef struct group {
    sweep *s;
    const task *t;
    size_t number, build, turn, at, bytes;
} group;

static ev_status on_sampled(void *context, const sampled *x, ev_error *err) {
    group *g = context;
    char name[200];
    (void)err;
    (void)snprintf(name, sizeof name, "%.60s %.60s group %zu, %zu%s", g->t->name, x->start,
                   g->number, g->at, x->is_sketch ? ", sketch" : "");
    bool assembled = g->s->full || g->bytes <= GROUP_BYTES;
    g->bytes += strlen(x->ptx);
    g->at += !x->is_sketch;
    check_built(g->s, x->is_sketch ? SKETCHES : CHILDREN, x->ptx, name, g->build, g->turn,
                assembled);
    return EV_OK;
}

static void sweep_group(sweep *s, const task *t, size_t number, size_t build, size_t turn) {
    group g = {s, t, number, build, turn, 0, 0};
    ev_error err = {0};
    if (sampled_each(t, built_for[build], SEED, number, on_sampled, &g, &err) != EV_OK ||
        g.at != SAMPLED_GROUP) {
        (void)snprintf(err.text + strlen(err.text), sizeof err.text - strlen(err.text),
                       " (%zu of %d candidates)", g.at, SAMPLED_GROUP);
        refuse(s, CHILDREN, "", t->name, built_for[build], &err);
    }
}

/* ---- pieces of work, which the processes take by their number ---- */

/* Whether the piece of number *at is the next one here; *at counts down. */
static bool is_turn(size_t *at) {
    return (*at)-- == 0;
}

static bool is_wanted(const sweep *s, const task_start *start, size_t setting, size_t build) {
    if (s->shipped)
        return is_default(start, setting);
    return s->full || is_due(start, setting, build);
}

static bool sweep_tasks(sweep *s, size_t *at) {
    for (size_t i = 0; i < s->task_count; i++) {
        const task *t = s->tasks[i];
        for (size_t build = 0; build < BUILDS; build++) {
            for (size_t g = 0; g < GROUPS; g++) {
                bool due =
                    (i + build) % BUILDS == 0 && (build + g) % BUILDS == 0 && (g + i) % SHARE == 0;
                if ((s->full || due) && !s->shipped && is_turn(at)) {
                    sweep_group(s, t, g, build, g / BUILDS);
                    return true;
                }
            }
            for (size_t k = 0; k < t->start_count; k++) {
                for (size_t m = 0; m < settings_of(&t->starts[k]); m++) {
                    if (is_wanted(s, &t->starts[k], m, build) && is_turn(at)) {
                        sweep_start(s, t, &t->starts[k], m, build, i + k + m / BUILDS);
                        return true;
                    }
                }
            }
        }
    }
    return false;
}

/* A winner is built for its GPU and one other by turns, or, in full, for each. */
static bool sweep_winners(sweep *s, size_t *at) {
    for (size_t i = 0; i < json_array_size(s->winners); i++) {
        const json_t *row = json_array_get(s->winners, i);
        json_int_t own = json_integer_value(json_object_get(row, "sm"));
        for (size_t build = 0; build < BUILDS; build++) {
            bool due = s->full || i % BUILDS == build || built_for[build] == own;
            if (due && is_turn(at)) {
                sweep_winner(s, row, build, i / BUILDS);
                return true;
            }
        }
    }
    return false;
}

static bool ends_with(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* Files of a folder, in order, `times` pieces of work each. */
static bool find_file(const sweep *s, const char *folder, const char *end, size_t times, size_t *at,
                      char path[512]) {
    struct dirent **names = NULL;
    char *whole = ev_path_join(s->home, folder);
    int count = scandir(whole, &names, NULL, alphasort);
    bool found = false;
    for (int i = 0; i < count; i++) {
        if (!found && ends_with(names[i]->d_name, end)) {
            found = *at < times;
            (void)snprintf(path, 512, "%s/%s", whole, names[i]->d_name);
            if (!found)
                *at -= times;
        }
        free(names[i]);
    }
    free(names);
    free(whole);
    return found;
}

/* One target a file beside sm_90. */
static bool is_turn_of(const char *path, size_t target) {
    size_t sum = 0;
    for (const char *at = strrchr(path, '/'); *at != '\0'; at++)
        sum += (unsigned char)*at;
    return sum % TARGETS == target;
}

static bool do_piece(sweep *s, size_t at) {
    static const char *const folders[] = {"tests/fitness/ptx/zoo", "tests/fitness/ptx/real"};
    char path[512];
    if (sweep_tasks(s, &at) || sweep_winners(s, &at))
        return true;
    if (s->shipped)
        return false;
    if (find_file(s, "tests/fitness/ptx", ".txt", TARGETS, &at, path)) {
        if (s->has[at] && (s->full || targets[at] == 90 || is_turn_of(path, at)))
            sweep_goldens(s, path, at);
        return true;
    }
    for (size_t i = 0; i < 2; i++) {
        if (find_file(s, folders[i], ".ptx", 1, &at, path)) {
            sweep_zoo(s, path);
            return true;
        }
    }
    if (at == 0)
        sweep_probes(s);
    if (at == 1)
        sweep_matrices(s);
    return at < 2;
}

/* ---- the program ---- */

/* Returns the newest one, 0: none. */
static int find_targets(sweep *s) {
    ptxas_targets known = {.count = 0};
    int newest = 0;
    (void)printf("%s takes", s->p.path);
    for (size_t t = 0; t < TARGETS; t++) {
        ev_error ignored;
        char name[16];
        (void)snprintf(name, sizeof name, "sm_%d", targets[t]);
        s->has[t] = ptxas_add_target(&known, name, &ignored) == EV_OK;
        if (!s->has[t])
            continue;
        (void)printf(" sm_%d", targets[t]);
        newest = targets[t];
    }
    (void)printf("; %s\n", s->full ? "everything for each" : "tasks for one of them by turns");
    (void)fflush(stdout);
    return newest;
}

static bool is_named(char *const *names, const char *name) {
    bool found = *names == NULL;
    for (; *names != NULL; names++)
        found = found || strcmp(*names, name) == 0;
    return found;
}

static ev_status open_tasks(sweep *s, ev_error *err) {
    char **paths = NULL;
    size_t count = 0;
    EV_TRY(task_list_shipped(&paths, &count, err));
    s->tasks = calloc(count, sizeof(task *));
    ev_status status = s->tasks != NULL ? EV_OK : ev_fail_memory(err, count);
    for (size_t i = 0; status == EV_OK && i < count; i++) {
        task *t = NULL;
        status = task_open(paths[i], &t, err);
        if (status == EV_OK && is_named(s->names, t->name))
            s->tasks[s->task_count++] = t;
        else
            task_free(t);
    }
    task_list_free(paths, count);
    if (status == EV_OK && s->task_count == 0)
        return ev_fail(err, EV_BAD, "no task has one of these names; `evoke list` tells them");
    return status;
}

static ev_status open_winners(sweep *s, ev_error *err) {
    char *path = ev_path_join(s->home, "results/kernel-tuned.json");
    json_error_t why;
    json_t *all = path != NULL ? json_load_file(path, 0, &why) : NULL;
    s->winners = json_incref(json_object_get(all, "rows"));
    json_decref(all);
    ev_status status = s->winners != NULL ? EV_OK : ev_fail(err, EV_BAD, "%s: no rows", path);
    free(path);
    for (size_t i = 0; status == EV_OK && i < json_array_size(s->winners); i++) {
        json_t *row = json_array_get(s->winners, i);
        int sm = sm_of(json_string_value(json_object_get(row, "device")));
        if (json_object_set_new(row, "sm", json_integer(sm)) != 0)
            status = ev_fail_memory(err, 0);
    }
    return status;
}

static void work(sweep *s) {
    s->batches = ptx_batches_new(&s->p, on_verdict, s);
    while (do_piece(s, atomic_fetch_add(&s->shared->next, 1)))
        continue;
    atomic_fetch_add(&s->shared->calls, ptx_batches_end(s->batches));
}

/* False: a process did not end well. */
static bool share(sweep *s) {
    long workers = sysconf(_SC_NPROCESSORS_ONLN);
    bool fine = true;
    workers = workers < MOST_WORKERS ? workers : MOST_WORKERS;
    for (long i = 0; i < workers; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            work(s);
            exit(0);
        }
        fine = fine && pid > 0;
    }
    int ended = 0;
    while (wait(&ended) > 0)
        fine = fine && WIFEXITED(ended) && WEXITSTATUS(ended) == 0;
    return fine;
}

/* True: nothing was refused, no start and no winner spills, and there was something of every kind.
 */
static bool print(const board *b, bool shipped) {
    bool fine = true;
    (void)printf("%-26s %8s %10s %8s %8s %8s %8s %10s\n", "", "texts", "assembled", "again",
                 "left out", "refused", "spilling", "not taken");
    for (kind k = 0; k < KINDS; k++) {
        (void)printf("%-26s %8u %10u %8u %8u %8u %8u %10u\n", kind_names[k], b->texts[k],
                     b->runs[k], b->known[k], b->left_out[k], b->refused[k], b->spilling[k],
                     b->not_taken[k]);
        bool due = !shipped || is_shipped(k) || k == REBUILT;
        fine = fine && b->refused[k] == 0 && (b->spilling[k] == 0 || !is_shipped(k)) &&
               (b->runs[k] > 0) == due;
    }
    (void)printf("%u starts of the assembler\n", b->calls);
    return fine;
}

static int run(sweep *s) {
    ev_error err = {0};
    int newest = find_targets(s);
    s->home = ev_path_home();
    s->shared =
        mmap(NULL, sizeof *s->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s->shared == MAP_FAILED || s->home == NULL || open_tasks(s, &err) != EV_OK ||
        open_winners(s, &err) != EV_OK) {
        (void)fprintf(stderr, "test_ptxas: %s\n", err.text);
        return 1;
    }
    double begin = ev_clock_now();
    bool fine = newest > 0 && ptx_batches_prove(&s->p, newest) && share(s);
    fine = print(s->shared, s->shipped) && fine;
    (void)printf("%.0f s\n", ev_clock_now() - begin);
    for (size_t i = 0; i < s->task_count; i++)
        task_free(s->tasks[i]);
    free(s->tasks);
    json_decref(s->winners);
    free(s->home);
    (void)munmap(s->shared, sizeof *s->shared);
    return fine ? 0 : 1;
}

int main(int argc, char **argv) {
    const char *full = getenv("EVOKE_PTXAS_FULL");
    bool shipped = argc > 1 && strcmp(argv[1], "shipped") == 0;
    sweep s = {.shipped = shipped,
               .names = shipped ? &argv[2] : &argv[argc],
               .full = shipped || (argc > 1 && strcmp(argv[1], "full") == 0) ||
                       (full != NULL && strcmp(full, "1") == 0)};
    ptxas_find(&s.p);
    if (s.p.path[0] == '\0' || access(s.p.path, X_OK) != 0) {
        (void)puts("skipped: there is no ptxas (EVOKE_PTXAS, PATH, /usr/local/cuda/bin)");
        return SKIPPED;
    }
    return run(&s);
}
