/* evoke doctor: what of this machine Evoke can use, what is missing, and how to get it. */
#include "tuner/cli/cmd.h"

#include "base/file.h"
#include "base/proc.h"
#include "base/table.h"
#include "fitness/device/device.h"
#include "kernels/task.h"
#include "tuner/worker/variant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM_SECONDS 20
#define FOUND_BYTES 256
#define BUILT_FOR 90 /* compute capability 9.0 */

/* One thing that was looked for. */
typedef struct finding {
    const char *thing;
    bool is_needed, is_there;
    char found[FOUND_BYTES]; /* what was found, or why not */
    const char *cure;        /* when it is not there; "": none */
} finding;

typedef void look_fn(finding *f);

static void keep_line(finding *f, const char *text) {
    (void)snprintf(f->found, sizeof f->found, "%.*s", (int)strcspn(text, "\n"), text);
}

/* The first line of `argv`'s output that holds `mark`. */
static void look_for_program(finding *f, const char *const argv[], const char *mark) {
    ev_proc_result result = {0};
    ev_error why = {0};
    if (ev_proc_run(argv, NULL, PROGRAM_SECONDS, &result, &why) != EV_OK) {
        keep_line(f, why.text);
        return;
    }
    const char *line = strstr(ev_str_text(&result.out), mark);
    f->is_there = result.exit_code == 0 && line != NULL;
    if (f->is_there)
        keep_line(f, line);
    else
        (void)snprintf(f->found, sizeof f->found, "%s ended with exit code %d", argv[0],
                       result.exit_code);
    ev_proc_result_free(&result);
}

static void look_for_clang(finding *f) {
    look_for_program(f, (const char *const[]){"clang-19", "--version", NULL}, "clang version");
}

static void look_for_ptxas(finding *f) {
    look_for_program(f, (const char *const[]){"ptxas", "--version", NULL}, "release");
}

static void look_for_slurm(finding *f) {
    look_for_program(f, (const char *const[]){"srun", "--version", NULL}, "slurm");
}

static void look_for_home(finding *f) {
    char *home = ev_path_home();
    f->is_there = home != NULL;
    keep_line(f, home != NULL ? home : "no folder with kernels/ and fitness/model/gpus/");
    free(home);
}

static void look_for_gpu(finding *f) {
    device *d = NULL;
    ev_error why = {0};
    f->is_there = device_open("cuda:0", &d, &why) == EV_OK;
    if (f->is_there) {
        const device_properties *p = device_properties_of(d);
        (void)snprintf(f->found, sizeof f->found, "%.100s, capability %d.%d, driver %.60s", p->name,
                       p->sm / 10, p->sm % 10, p->driver);
    } else {
        keep_line(f, why.text);
    }
    device_close(d);
}

static void look_at_cores(finding *f) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    double bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    f->is_there = cores > 0;
    (void)snprintf(f->found, sizeof f->found, "%ld cores, %.1f GB of memory", cores, bytes * 1e-9);
}

/* A child process builds a start of the first task that ships, as each worker does. */
static ev_status build_one(finding *f, ev_error *err) {
    char **paths = NULL;
    size_t count = 0;
    task *t = NULL;
    ev_str ptx = EV_STR_EMPTY;
    double begin = ev_clock_now();
    EV_TRY(task_list_shipped(&paths, &count, err));
    ev_status status = task_load(paths[0], &t, err);
    if (status == EV_OK)
        status = variant_build_start(t, &t->starts[0], BUILT_FOR, &ptx, err);
    if (status == EV_OK)
        (void)snprintf(f->found, sizeof f->found, "a child process built %.60s in %.0f ms", t->name,
                       1000 * (ev_clock_now() - begin));
    ev_str_free(&ptx);
    task_free(t);
    task_list_free(paths, count);
    return status;
}

static void look_at_build(finding *f) {
    ev_error why = {0};
    f->is_there = build_one(f, &why) == EV_OK;
    if (!f->is_there)
        keep_line(f, why.text);
}

static const struct {
    const char *thing;
    bool is_needed;
    look_fn *look;
    const char *cure;
} THINGS[] = {
    {"machine", true, look_at_cores, ""},
    {"kernels and GPU descriptions", true, look_for_home,
     "set EVOKE_HOME to the folder, or install with cmake --install"},
    {"compiler", true, look_for_clang, "apt-get install clang-19"},
    {"workers", true, look_at_build, "the message names the cause"},
    {"GPU", false, look_for_gpu,
     "without a GPU, times are modelled (--device vm:MODEL); docs/gpu.md tells what a GPU needs"},
    {"ptxas", false, look_for_ptxas, "comes with the CUDA toolkit; gives registers and spills"},
    {"Slurm", false, look_for_slurm, "apt-get install slurm-client, for workers by srun"},
};
#define THING_COUNT (sizeof THINGS / sizeof THINGS[0])

static const char *state_of(const finding *f) {
    if (f->is_there)
        return "ok";
    return f->is_needed ? "missing" : "absent";
}

static ev_status print_text(cmd_context *c, const finding *list, ev_error *err) {
    static const char *const columns[] = {"what", "state", "found", NULL};
    table *rows = table_new(columns);
    if (rows == NULL)
        return ev_fail_memory(err, 1);
    for (size_t i = 0; i < THING_COUNT; i++) {
        table_cell(rows, "%s", list[i].thing);
        table_cell(rows, "%s", state_of(&list[i]));
        table_cell(rows, "%s", list[i].found);
    }
    ev_status status = table_print(rows, c->out, err);
    table_free(rows);
    ev_str_char(c->out, '\n');
    for (size_t i = 0; i < THING_COUNT; i++) {
        if (!list[i].is_there && list[i].cure[0] != '\0')
            ev_str_printf(c->out, "%s: %s\n", list[i].thing, list[i].cure);
    }
    return status;
}

static json_t *finding_json(const finding *f) {
    return json_pack("{s:s, s:s, s:b, s:s, s:s}", "what", f->thing, "state", state_of(f), "needed",
                     f->is_needed, "found", f->found, "cure", f->is_there ? "" : f->cure);
}

static ev_status print_json(cmd_context *c, const finding *list, ev_error *err) {
    json_t *all = json_array();
    for (size_t i = 0; i < THING_COUNT; i++)
        (void)json_array_append_new(all, finding_json(&list[i]));
    return cmd_print_json(c,
                          json_pack("{s:s, s:b, s:o}", "evoke", EVOKE_VERSION, "ready",
                                    c->exit_code == 0, "findings", all),
                          err);
}

ev_status cmd_doctor(cmd_context *c, ev_error *err) {
    finding list[THING_COUNT] = {0};
    for (size_t i = 0; i < THING_COUNT; i++) {
        list[i].thing = THINGS[i].thing;
        list[i].is_needed = THINGS[i].is_needed;
        list[i].cure = THINGS[i].cure;
        THINGS[i].look(&list[i]);
        if (list[i].is_needed && !list[i].is_there)
            c->exit_code = 1;
    }
    return cli_flag(c->args, CLI_OPT_JSON) ? print_json(c, list, err) : print_text(c, list, err);
}
