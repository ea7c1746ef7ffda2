/* Runs a program on the stand-in for the CUDA driver, and says why nothing was recorded of it. */
#include "tuner/init/trace.h"

#include "base/child.h"
#include "base/file.h"
#include "base/proc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DRIVER "libcuda.so.1"

/* The folder of the stand-in: `standin` beside the binary, as in a build, or lib/evoke-standin
 * beside the binary's folder, as in an installation. malloc'ed; NULL: there is none. */
static char *find_standin(void) {
    static const char *const places[] = {"%s/standin", "%s/../lib/evoke-standin"};
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    char *folder = ev_path_dir(self), *found = NULL;
    for (size_t i = 0; folder != NULL && found == NULL && i < 2; i++) {
        char place[4200], file[4300];
        (void)snprintf(place, sizeof place, places[i], folder);
        (void)snprintf(file, sizeof file, "%s/" DRIVER, place);
        if (ev_path_exists(file))
            found = strdup(place);
    }
    free(folder);
    return found;
}

/* ---- starting ----------------------------------------------------------------------------------
 */

/* By `env`, so that this process's own environment stays as it is. */
typedef struct start {
    ev_str settings[5];
    const char **argv;
} start;

static ev_status make_start(const trace_request *q, const char *standin, start *s, ev_error *err) {
    const char *path = getenv("LD_LIBRARY_PATH");
    bool has_path = path != NULL && *path != '\0';
    size_t count = sizeof s->settings / sizeof s->settings[0];
    *s = (start){.argv = calloc(q->word_count + count + 3, sizeof *s->argv)};
    if (s->argv == NULL)
        return ev_fail_memory(err, q->word_count);
    ev_str_printf(&s->settings[0], "LD_LIBRARY_PATH=%s%s%s", standin, has_path ? ":" : "",
                  has_path ? path : "");
    ev_str_printf(&s->settings[1], "EVOKE_STANDIN_RECORD=%s", q->folder);
    ev_str_printf(&s->settings[2], "EVOKE_STANDIN_RECORD_KERNEL=%s",
                  q->kernel != NULL ? q->kernel : "");
    ev_str_printf(&s->settings[3], "EVOKE_STANDIN_RECORD_LAUNCHES=%" PRIu64,
                  q->kernel != NULL ? q->launches : 0);
    ev_str_printf(&s->settings[4], "EVOKE_STANDIN_RECORD_MB=%" PRIu64, q->megabytes);
    size_t at = 0;
    s->argv[at++] = "env";
    for (size_t i = 0; i < count; i++) {
        EV_TRY(ev_str_status(&s->settings[i], err));
        s->argv[at++] = ev_str_text(&s->settings[i]);
    }
    s->argv[at++] = q->program;
    for (size_t i = 0; i < q->word_count; i++)
        s->argv[at++] = q->words[i];
    return EV_OK;
}

static void free_start(start *s) {
    for (size_t i = 0; i < sizeof s->settings / sizeof s->settings[0]; i++)
        ev_str_free(&s->settings[i]);
    free(s->argv);
}

static bool is_in_path(const char *program) {
    const char *at = getenv("PATH");
    while (at != NULL && *at != '\0') {
        size_t length = strcspn(at, ":");
        char path[4200];
        (void)snprintf(path, sizeof path, "%.*s/%s", (int)length, at, program);
        if (access(path, X_OK) == 0)
            return true;
        at += length + (at[length] == ':');
    }
    return false;
}

/* `env` would say so in its own words. */
static ev_status check_program(const char *program, ev_error *err) {
    bool by_path = strchr(program, '/') == NULL;
    if (strchr(program, '=') != NULL)
        return ev_fail(err, EV_BAD,
                       "--from-run %s: `env` would take a name with '=' for a setting; link to the "
                       "program by another name",
                       program);
    if (by_path && is_in_path(program))
        return EV_OK;
    if (by_path)
        return ev_fail(err, EV_BAD, "--from-run %s: PATH has no such program%s", program,
                       ev_path_exists(program) ? "; for the one in this folder write ./NAME" : "");
    if (!ev_path_exists(program))
        return ev_fail(err, EV_BAD,
                       "--from-run %s: there is no such program; give the path of the built one",
                       program);
    if (ev_path_is_dir(program) || access(program, X_OK) != 0)
        return ev_fail(err, EV_BAD,
                       "--from-run %s: the file cannot be run; give a program, or chmod +x",
                       program);
    return EV_OK;
}

/* ---- why there is nothing ----------------------------------------------------------------------
 */

/* The last lines of what the program said, in at most `most` bytes. */
static const char *tail_of(const ev_str *text, size_t most) {
    const char *all = ev_str_text(text);
    if (text->length <= most)
        return all;
    const char *at = all + text->length - most;
    const char *line = strchr(at, '\n');
    return line != NULL && line[1] != '\0' ? line + 1 : at;
}

/* What the stand-in knows of the reason: the CUDA runtime library, or calls that it lacks. */
static void append_reason(const trace *t, ev_str *out) {
    if (t->asks_tables && t->count == 0)
        ev_str_append(
            out, "\nIt asked for private tables of NVIDIA's driver, as NVIDIA's CUDA runtime "
                 "library does. The stand-in has none: link the library as a shared one (nvcc "
                 "-cudart shared), so that the stand-in's own libcudart.so takes its place, or "
                 "make the task of the source alone by 'evoke init FILE.cu'");
    if (t->said.length > 0)
        ev_str_printf(out, "\nThe stand-in said:\n%s", tail_of(&t->said, 1500));
}

static void append_messages(const ev_proc_result *r, ev_str *out) {
    const char *said = tail_of(&r->err, 1500);
    if (said[0] != '\0')
        ev_str_printf(out, "\nIts last messages:\n%s", said);
}

static ev_status fail_program(const trace_request *q, const ev_proc_result *r, const trace *t,
                              ev_error *err) {
    ev_str text = EV_STR_EMPTY;
    if (r->exit_code < 0)
        ev_str_printf(&text, "%s was ended by signal %d", q->program, r->signal);
    else
        ev_str_printf(&text, "%s ended with exit code %d", q->program, r->exit_code);
    ev_str_append(&text, ", so no task is made of its launches");
    append_reason(t, &text);
    append_messages(r, &text);
    ev_status status = ev_fail_long(err, EV_BAD, ev_str_text(&text));
    ev_str_free(&text);
    return status;
}

/* "add, scale" of the lines. */
static void append_names(const ev_str *lines, ev_str *out) {
    const char *at = ev_str_text(lines), *comma = "";
    while (*at != '\0') {
        size_t length = strcspn(at, "\n");
        ev_str_append(out, comma);
        ev_str_append_n(out, at, length);
        comma = ", ";
        at += length + (at[length] == '\n');
    }
}

static ev_status fail_nothing(const trace_request *q, const ev_proc_result *r, const trace *t,
                              ev_error *err) {
    ev_str text = EV_STR_EMPTY;
    if (t->processes == 0)
        ev_str_printf(&text,
                      "%s never called cuInit of " DRIVER " on the stand-in: it uses no CUDA, or "
                      "finds its driver elsewhere (an RPATH, a path in dlopen)",
                      q->program);
    else if (t->kernels.length == 0)
        ev_str_printf(&text, "%s launched no kernel", q->program);
    else if (t->left.length > 0)
        ev_str_printf(&text,
                      "no launch of %s could be recorded: run the program with less data, or raise "
                      "--record-mb\n%s",
                      q->kernel, tail_of(&t->left, 1500));
    else {
        ev_str_printf(&text, "%s launched no kernel %s; it launched: ", q->program, q->kernel);
        append_names(&t->kernels, &text);
    }
    append_reason(t, &text);
    append_messages(r, &text);
    ev_status status = ev_fail_long(err, EV_BAD, ev_str_text(&text));
    ev_str_free(&text);
    return status;
}

/* Without a source there is nothing that a search could change. */
static ev_status fail_no_source(const trace_request *q, const trace *t, ev_error *err) {
    ev_str text = EV_STR_EMPTY;
    ev_str_printf(&text, "%s launched these kernels: ", q->program);
    append_names(&t->kernels, &text);
    ev_str_append(&text,
                  "\nTheir modules are PTX, and a search begins with CUDA C: name the source of "
                  "one by --source FILE.cu, and the kernel by --kernel NAME where the file has "
                  "several");
    ev_status status = ev_fail_long(err, EV_BAD, ev_str_text(&text));
    ev_str_free(&text);
    return status;
}

static ev_status judge(const trace_request *q, const ev_proc_result *r, const trace *t,
                       ev_error *err) {
    if (r->exit_code != 0)
        return fail_program(q, r, t, err);
    if (q->kernel == NULL && t->kernels.length > 0)
        return fail_no_source(q, t, err);
    if (t->recorded > 1)
        return ev_fail(err, EV_BAD,
                       "%zu processes of %s launched %s, and their launches have no common order: "
                       "give a program that launches it in one process",
                       t->recorded, q->program, q->kernel);
    return t->count == 0 ? fail_nothing(q, r, t, err) : EV_OK;
}

ev_status trace_run(const trace_request *request, trace *out, ev_error *err) {
    const trace_request *q = request;
    EV_TRY(check_program(q->program, err));
    char *standin = find_standin();
    if (standin == NULL)
        return ev_fail(err, EV_BAD,
                       "the stand-in for the CUDA driver (" DRIVER ") is neither in the folder "
                       "standin beside this binary nor in ../lib/evoke-standin; build it "
                       "(./bootstrap build), or install it (cmake --install build --component "
                       "standin)");
    start s = {0};
    trace t = {0};
    ev_proc_result r = {0};
    ev_status status = make_start(q, standin, &s, err);
    if (status == EV_OK)
        status = ev_proc_run(s.argv, NULL, 0, &r, err);
    if (status == EV_OK) {
        status = trace_read(q->folder, &t, err);
        if (status == EV_OK)
            status = judge(q, &r, &t, err);
        ev_proc_result_free(&r);
    }
    free_start(&s);
    free(standin);
    if (status == EV_OK)
        *out = t;
    else
        trace_free(&t);
    return status;
}
