/* The shipped tasks: HOME/kernels/FAMILY/KERNEL/task.json, and opening one by its name. */
#include "kernels/task_private.h"

#include "base/file.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

/* glob() sorts by byte value, which makes the order the same everywhere. */
static ev_status list_matches(const char *home, glob_t *found, ev_error *err) {
    ev_str pattern = EV_STR_EMPTY;
    for (const char *c = home; *c; c++) { /* the folder's own characters stand for themselves */
        if (strchr("*?[\\", *c))
            ev_str_char(&pattern, '\\');
        ev_str_char(&pattern, *c);
    }
    ev_str_append(&pattern, "/kernels/*/*/task.json");
    ev_status status = ev_str_status(&pattern, err);
    int result = status == EV_OK ? glob(ev_str_text(&pattern), 0, NULL, found) : 0;
    ev_str_free(&pattern);
    if (result == GLOB_NOMATCH)
        return ev_fail(err, EV_BAD, "%s/kernels holds no task; set EVOKE_HOME to Evoke's folder",
                       home);
    if (result != 0)
        return ev_fail_errno(err, "list", home);
    return status;
}

ev_status task_list_shipped(char ***paths, size_t *count, ev_error *err) {
    char *home = ev_path_home();
    if (home == NULL)
        return ev_fail(err, EV_BAD,
                       "Evoke's folder with kernels/ was not found; set EVOKE_HOME to it");
    glob_t found = {0};
    ev_status status = list_matches(home, &found, err);
    free(home);
    if (status != EV_OK)
        return status;
    char **list = calloc(found.gl_pathc + 1, sizeof *list);
    bool whole = list != NULL;
    for (size_t i = 0; whole && i < found.gl_pathc; i++)
        whole = (list[i] = strdup(found.gl_pathv[i])) != NULL;
    size_t total = found.gl_pathc;
    globfree(&found);
    if (!whole) {
        task_list_free(list, list ? total : 0);
        return ev_fail_memory(err, total * sizeof *list);
    }
    *paths = list;
    *count = total;
    return EV_OK;
}

void task_list_free(char **paths, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(paths[i]);
    free(paths);
}

/* The folder's name in .../KERNEL/task.json; its length through `length`. */
static const char *kernel_of(const char *path, size_t *length) {
    const char *end = strrchr(path, '/');
    const char *start = end;
    while (start > path && start[-1] != '/')
        start--;
    *length = (size_t)(end - start);
    return start;
}

typedef struct family {
    const char *name, *lead, *paper;
} family;

static const family FAMILIES[] = {
#define FAMILY(name, lead, paper) {name, lead, paper},
#include "kernels/families.def"
#undef FAMILY
};

const char *task_family_paper(const char *name) {
    for (size_t i = 0; i < sizeof FAMILIES / sizeof FAMILIES[0]; i++) {
        if (strcmp(FAMILIES[i].name, name) == 0)
            return FAMILIES[i].paper;
    }
    return NULL;
}

static bool is_lead(const char *path) {
    size_t length = 0;
    const char *kernel = kernel_of(path, &length);
    for (size_t i = 0; i < sizeof FAMILIES / sizeof FAMILIES[0]; i++) {
        if (strlen(FAMILIES[i].lead) == length && strncmp(FAMILIES[i].lead, kernel, length) == 0)
            return true;
    }
    return false;
}

ev_status task_list_leads(char ***paths, size_t *count, ev_error *err) {
    char **all = NULL;
    size_t total = 0, kept = 0;
    EV_TRY(task_list_shipped(&all, &total, err));
    for (size_t i = 0; i < total; i++) {
        if (is_lead(all[i]))
            all[kept++] = all[i];
        else
            free(all[i]);
    }
    *paths = all;
    *count = kept;
    return EV_OK;
}

static ev_status fail_unknown(const char *name, char **paths, size_t count, ev_error *err) {
    ev_str known = EV_STR_EMPTY;
    for (size_t i = 0; i < count; i++) {
        size_t length = 0;
        const char *kernel = kernel_of(paths[i], &length);
        ev_str_printf(&known, "%s%.*s", i ? ", " : "", (int)length, kernel);
    }
    ev_status status =
        ev_fail(err, EV_BAD, "unknown task \"%s\"; there are %s, or give the path of a task.json",
                name, ev_str_text(&known));
    ev_str_free(&known);
    return status;
}

static bool has_ending(const char *text, const char *ending) {
    size_t length = strlen(text), last = strlen(ending);
    return length > last && strcmp(text + length - last, ending) == 0;
}

static bool is_source(const char *text) {
    return has_ending(text, ".cu") || has_ending(text, ".ll") || has_ending(text, ".bc");
}

static bool is_path(const char *text) {
    return strchr(text, '/') != NULL || has_ending(text, ".json") || is_source(text);
}

bool task_is_folder(const char *path) {
    char *inside = ev_path_join(path, "task.json");
    bool is = inside != NULL && ev_path_is_dir(path) && ev_path_exists(inside);
    free(inside);
    return is;
}

static ev_status open_path(const char *path, task **out, ev_error *err) {
    if (is_source(path))
        return ev_fail(err, EV_BAD,
                       "%s is a source, and a task.json is wanted; evoke init %s writes one", path,
                       path);
    if (!task_is_folder(path))
        return task_load(path, out, err);
    char *inside = ev_path_join(path, "task.json");
    ev_status status = inside != NULL ? task_load(inside, out, err) : ev_fail_memory(err, 1);
    free(inside);
    return status;
}

ev_status task_open(const char *name_or_path, task **out, ev_error *err) {
    if (is_path(name_or_path))
        return open_path(name_or_path, out, err);
    char **paths = NULL;
    size_t count = 0;
    EV_TRY(task_list_shipped(&paths, &count, err));
    const char *found = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t length = 0;
        const char *kernel = kernel_of(paths[i], &length);
        if (strlen(name_or_path) == length && strncmp(kernel, name_or_path, length) == 0)
            found = paths[i];
    }
    if (!found && task_is_folder(name_or_path))
        found = name_or_path;
    ev_status status =
        found ? open_path(found, out, err) : fail_unknown(name_or_path, paths, count, err);
    task_list_free(paths, count);
    return status;
}

/* Opens a task and holds it against its hash. */
static ev_status open_same(const char *name_or_path, const char *sha256, task **out,
                           ev_error *err) {
    EV_TRY(task_open(name_or_path, out, err));
    if (strcmp((*out)->sha256.hex, sha256) == 0)
        return EV_OK;
    ev_status status =
        ev_fail(err, EV_BAD, "%s has changed since its run; tune it again", (*out)->path);
    task_free(*out);
    *out = NULL;
    return status;
}

ev_status task_reopen(const char *path, const char *name, const char *sha256, task **out,
                      ev_error *err) {
    ev_error moved = {.status = EV_OK};
    ev_status status = open_same(path, sha256, out, err);
    if (status == EV_BAD && !is_path(name) && open_same(name, sha256, out, &moved) == EV_OK)
        return EV_OK;
    return status;
}
