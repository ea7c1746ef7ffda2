/* Oracles of tasks: the built-in table, and C sources that are compiled and loaded with the task.
 */
#include "kernels/task_private.h"

#include "base/child.h"
#include "base/file.h"
#include "base/proc.h"
#include "kernels/oracles.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define COMPILE_SECONDS 120.0

typedef struct oracle_row {
    const char *name;
    evoke_oracle_fn *run;
} oracle_row;

static const oracle_row ORACLES[] = {
#define ORACLE(name, doc) {#name, oracle_##name},
#include "kernels/oracles.def"
#undef ORACLE
};

#define ORACLE_COUNT (sizeof ORACLES / sizeof ORACLES[0])

/* ---- from source -------------------------------------------------------------------------------
 */

static const char *temporary_folder(void) {
    const char *folder = getenv("TMPDIR");
    return folder != NULL && folder[0] != '\0' ? folder : "/tmp";
}

/* Removes libraries that killed processes left: those so old that no compiler can still write them.
 */
static void remove_stale(void) {
    char pattern[4096];
    glob_t found;
    (void)snprintf(pattern, sizeof pattern, "%s/evoke-oracle-*.so", temporary_folder());
    if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct stat info;
        if (stat(found.gl_pathv[i], &info) == 0 &&
            difftime(time(NULL), info.st_mtime) > 2 * COMPILE_SECONDS)
            (void)unlink(found.gl_pathv[i]); /* another user's file stays */
    }
    globfree(&found);
}

/* Makes an empty file with a unique name in $TMPDIR or /tmp. */
static ev_status make_library_name(char *path, size_t size, ev_error *err) {
    const char *folder = temporary_folder();
    int length = snprintf(path, size, "%s/evoke-oracle-XXXXXX.so", folder);
    if (length < 0 || (size_t)length >= size)
        return ev_fail(err, EV_BAD, "TMPDIR is too long: %s", folder);
    int file = mkstemps(path, 3);
    if (file < 0)
        return ev_fail_errno(err, "make", path);
    (void)close(file);
    return EV_OK;
}

static ev_status fail_compile(const char *source, const char *words, ev_error *err) {
    ev_str text = EV_STR_EMPTY;
    ev_str_printf(&text, "the oracle %s does not compile:\n%s", source, words);
    ev_status status = ev_str_status(&text, err);
    if (status == EV_OK)
        status = ev_fail_long(err, EV_BAD, ev_str_text(&text));
    ev_str_free(&text);
    return status;
}

static ev_status compile(const char *source, const char *library, ev_error *err) {
    char *home = ev_path_home();
    char include[4096];
    (void)snprintf(include, sizeof include, "-I%s/kernels", home ? home : ".");
    free(home);
    const char *const argv[] = {"clang-19", "-std=gnu17", "-O2",  "-shared", "-fPIC", include,
                                "-o",       library,      source, "-lm",     NULL};
    ev_proc_result result;
    EV_TRY(ev_proc_judge(argv, NULL, COMPILE_SECONDS, &result, err));
    ev_status status = EV_OK;
    if (result.timed_out)
        status =
            ev_fail(err, EV_BAD, "%s: clang-19 did not end within %.0f s", source, COMPILE_SECONDS);
    else if (result.exit_code != 0)
        status = fail_compile(source, ev_str_text(&result.err), err);
    ev_proc_result_free(&result);
    return status;
}

static ev_status load_library(task_box *box, const char *library, ev_error *err) {
    box->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (box->library == NULL)
        return ev_fail(err, EV_BAD, "the oracle %s cannot be loaded: %s", box->public.oracle_name,
                       dlerror());
    void *symbol = dlsym(box->library, "evoke_oracle");
    if (symbol == NULL)
        return ev_fail(err, EV_BAD,
                       "the oracle %s does not define evoke_oracle; see kernels/evoke_oracle.h",
                       box->public.oracle_name);
    memcpy(&box->public.oracle, &symbol, sizeof symbol); /* ISO C has no cast from object to
                                                            function pointers */
    return EV_OK;
}

/* Compiles and loads an oracle. The library is unlinked as soon as it is loaded. Only a killed
 * process leaves a library behind, which a later process removes. */
static ev_status set_source(task_box *box, const char *source, const ev_json *doc, ev_error *err) {
    char *path = ev_path_join(box->public.folder, source);
    if (path == NULL)
        return ev_fail_memory(err, strlen(source));
    box->public.oracle_name = ev_arena_strdup(box->arena, path);
    bool there = ev_path_exists(path);
    free(path);
    if (box->public.oracle_name == NULL)
        return ev_fail_memory(err, strlen(source));
    if (!there)
        return ev_json_fail(doc, "oracle", err,
                            "there is no file \"%s\"; an oracle's source is relative to the task "
                            "file",
                            box->public.oracle_name);
    if (box->is_apart)
        return EV_OK;
    char library[4096];
    remove_stale();
    EV_TRY(make_library_name(library, sizeof library, err));
    ev_status status = compile(box->public.oracle_name, library, err);
    if (status == EV_OK)
        status = load_library(box, library, err);
    (void)unlink(library);
    return status;
}

/* ---- choosing ----------------------------------------------------------------------------------
 */

static ev_status fail_unknown(const char *text, const ev_json *doc, ev_error *err) {
    ev_str known = EV_STR_EMPTY;
    for (size_t i = 0; i < ORACLE_COUNT; i++)
        ev_str_printf(&known, "%s, ", ORACLES[i].name);
    ev_status status =
        ev_json_fail(doc, "oracle", err,
                     "unknown oracle \"%s\"; there are: %sbaseline, or a path that ends in .c",
                     text, ev_str_text(&known));
    ev_str_free(&known);
    return status;
}

ev_status task_oracle_set(task_box *box, const char *text, const ev_json *doc, ev_error *err) {
    task *t = &box->public;
    size_t length = strlen(text);
    if (length > 2 && strcmp(text + length - 2, ".c") == 0) {
        t->oracle_kind = TASK_ORACLE_SOURCE;
        return set_source(box, text, doc, err);
    }
    if (strcmp(text, "baseline") == 0) {
        t->oracle_kind = TASK_ORACLE_BASELINE;
        t->oracle_name = "baseline";
        return EV_OK;
    }
    for (size_t i = 0; i < ORACLE_COUNT; i++) {
        if (strcmp(ORACLES[i].name, text) == 0) {
            t->oracle_kind = TASK_ORACLE_BUILT_IN;
            t->oracle_name = ORACLES[i].name;
            t->oracle = ORACLES[i].run;
            return EV_OK;
        }
    }
    return fail_unknown(text, doc, err);
}

void task_oracle_close(task_box *box) {
    if (box->library != NULL)
        (void)dlclose(box->library);
    box->library = NULL;
}
