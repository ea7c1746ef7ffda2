/* Headers: the files that a task's sources include in quotes, and those that these include. A line
 * of text counts wherever it stands, in a comment too. Names that a macro makes are not found. */
#include "kernels/task_private.h"

#include "base/file.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PARTS 128 /* of a path that is shortened */

typedef struct header_walk {
    task_loader *l;
    const char *real[TASK_MAX_HEADERS]; /* the path of each header, without links */
    const char **paths;
    size_t count;
    char *own; /* kernels/ of Evoke; NULL: not found */
} header_walk;

/* The name in `#include "NAME"` at the start of a line, in the arena; NULL: another line. */
static const char *quoted_name(const header_walk *w, const char *line) {
    line += strspn(line, " \t");
    if (*line++ != '#')
        return NULL;
    line += strspn(line, " \t");
    if (strncmp(line, "include", 7) != 0)
        return NULL;
    line += 7 + strspn(line + 7, " \t");
    if (*line++ != '"')
        return NULL;
    size_t length = strcspn(line, "\"\n");
    return line[length] == '"' ? ev_arena_strndup(w->l->arena, line, length) : NULL;
}

/* Whether a header is one of Evoke's, of which a bundle has a copy beside the task. */
static bool is_own(const header_walk *w, const char *name) {
    static const char *const folders[] = {"include/", ""};
    bool found = false;
    if (strncmp(name, "evoke_", 6) != 0) /* kernels/ has other files, too */
        return false;
    for (size_t i = 0; w->own != NULL && i < sizeof folders / sizeof folders[0]; i++) {
        const char *path = ev_arena_printf(w->l->arena, "%s/%s%s", w->own, folders[i], name);
        found = found || (path != NULL && ev_path_exists(path));
    }
    return found;
}

/* Takes "NAME/.." and "." out of a relative path, in place. */
static void shorten(char *path) {
    const char *parts[MOST_PARTS];
    size_t lengths[MOST_PARTS], count = 0;
    for (const char *at = path; *at != '\0'; at += *at == '/') {
        size_t length = strcspn(at, "/");
        bool is_up = length == 2 && strncmp(at, "..", 2) == 0;
        bool is_here = length == 0 || (length == 1 && *at == '.');
        if (is_up && count > 0 && strncmp(parts[count - 1], "../", 3) != 0) {
            count--;
        } else if (!is_here) {
            if (count == MOST_PARTS)
                return;
            parts[count] = at;
            lengths[count++] = length;
        }
        at += length;
    }
    char *to = path;
    for (size_t i = 0; i < count; i++) {
        memmove(to, parts[i], lengths[i]);
        to += lengths[i];
        *to++ = i + 1 < count ? '/' : '\0';
    }
}

/* Puts a header into the list if it is a file and is not there yet. */
static ev_status keep_header(header_walk *w, const char *path) {
    char real[PATH_MAX];
    if (ev_path_is_dir(path) || realpath(path, real) == NULL)
        return EV_OK;
    for (size_t i = 0; i < w->count; i++) {
        if (strcmp(w->real[i], real) == 0)
            return EV_OK;
    }
    if (w->count == TASK_MAX_HEADERS)
        return ev_fail(w->l->err, EV_BAD, "%s: the sources of a task may include %d files at most",
                       path, TASK_MAX_HEADERS);
    w->real[w->count] = ev_arena_strdup(w->l->arena, real);
    w->paths[w->count] = path;
    if (w->real[w->count++] == NULL)
        return ev_fail_memory(w->l->err, strlen(real));
    return EV_OK;
}

/* The path of a header that a file of a folder names. Behind the task's folder the path has no
 * "..", as it is the header's place in a bundle. NULL: out of memory. */
static const char *path_of(const header_walk *w, const char *folder, const char *name) {
    char *path = ev_arena_printf(w->l->arena, "%s/%s", folder, name);
    const char *top = w->l->t->folder;
    size_t length = strlen(top);
    if (path != NULL && strncmp(path, top, length) == 0 && path[length] == '/')
        shorten(path + length + 1);
    return path;
}

/* Lists what a file includes. */
static ev_status scan(header_walk *w, const char *path) {
    char *text = NULL, *folder = NULL;
    size_t bytes = 0;
    EV_TRY(ev_file_read(path, &text, &bytes, w->l->err));
    ev_status status = EV_OK;
    if ((folder = ev_path_dir(path)) == NULL)
        status = ev_fail_memory(w->l->err, strlen(path));
    for (const char *line = text; status == EV_OK && line != NULL;) {
        const char *name = quoted_name(w, line);
        if (name != NULL && name[0] != '/' && !is_own(w, name)) {
            const char *header = path_of(w, folder, name);
            status =
                header != NULL ? keep_header(w, header) : ev_fail_memory(w->l->err, strlen(name));
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    free(folder);
    free(text);
    return status;
}

ev_status task_headers_find(task_loader *l) {
    task *t = l->t;
    char *home = ev_path_home();
    header_walk w = {.l = l, .own = home != NULL ? ev_path_join(home, "kernels") : NULL};
    w.paths = EV_NEW_ARRAY(l->arena, const char *, TASK_MAX_HEADERS);
    ev_status status = w.paths != NULL ? EV_OK : ev_fail_memory(l->err, sizeof w.real);
    for (size_t i = 0; i < t->start_count && status == EV_OK; i++)
        status = scan(&w, t->starts[i].source);
    if (status == EV_OK && t->oracle_kind == TASK_ORACLE_SOURCE)
        status = scan(&w, t->oracle_name);
    for (size_t i = 0; i < w.count && status == EV_OK; i++)
        status = scan(&w, w.paths[i]);
    t->headers = w.paths;
    t->header_count = w.count;
    free(w.own);
    free(home);
    return status;
}
