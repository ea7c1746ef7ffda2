/* Store: lists the files of a bundle once, at opening, and reads them when they are asked for. */
#include "bundle/store.h"

#include "base/file.h"
#include "bundle/tar.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEEPEST 16                   /* folders in folders */
#define MOST_BYTES ((size_t)4 << 30) /* of a tar, or of a file in a folder: holes count, too */

struct store {
    char *name;
    char *folder;        /* NULL: a tar */
    char *data;          /* the tar's bytes */
    size_t bytes;        /* of the tar, or of all files */
    tar_member *members; /* of a folder: without data */
    size_t count, room;
};

const char *store_name(const store *s) {
    return s->name;
}

bool store_is_tar(const store *s) {
    return s->folder == NULL;
}

size_t store_bytes(const store *s) {
    return s->bytes;
}

size_t store_count(const store *s) {
    return s->count;
}

const char *store_path_at(const store *s, size_t index) {
    return s->members[index].path;
}

void store_close(store *s) {
    if (s == NULL)
        return;
    free(s->name);
    free(s->folder);
    free(s->data);
    free(s->members);
    free(s);
}

/* ---- folders ---- */

static ev_status add_path(store *s, const char *path, size_t bytes, ev_error *err) {
    if (strlen(path) >= TAR_PATH)
        return ev_fail(err, EV_BAD, "%s is no bundle: the path %.300s is too long", s->name, path);
    if (s->count == s->room) {
        size_t room = s->room == 0 ? 16 : s->room * 2;
        tar_member *more = realloc(s->members, room * sizeof *more);
        if (more == NULL)
            return ev_fail_memory(err, room * sizeof *more);
        s->members = more;
        s->room = room;
    }
    s->bytes += bytes;
    tar_member *m = &s->members[s->count++];
    *m = (tar_member){.data = NULL};
    (void)strncpy(m->path, path, TAR_PATH - 1);
    return EV_OK;
}

/* On the disk: a file of holes is no larger than what is written of it. */
static size_t bytes_of(const struct stat *facts) {
    size_t written = (size_t)facts->st_blocks * 512;
    return written < (size_t)facts->st_size ? written : (size_t)facts->st_size;
}

static ev_status list_folder(store *s, const char *below, int depth, ev_error *err);

static ev_status list_entry(store *s, const char *path, int depth, ev_error *err) {
    struct stat facts;
    char *whole = ev_path_join(s->folder, path);
    if (whole == NULL)
        return ev_fail_memory(err, strlen(path));
    bool is_there = lstat(whole, &facts) == 0;
    free(whole);
    if (is_there && S_ISDIR(facts.st_mode))
        return list_folder(s, path, depth + 1, err);
    if (is_there && S_ISREG(facts.st_mode))
        return add_path(s, path, bytes_of(&facts), err);
    return ev_fail(
        err, EV_BAD, "%s is no bundle: %s is %s; a bundle holds regular files and folders alone",
        s->name, path, is_there && S_ISLNK(facts.st_mode) ? "a symbolic link" : "no regular file");
}

static ev_status list_entries(store *s, DIR *dir, const char *below, int depth, ev_error *err) {
    ev_status status = EV_OK;
    for (struct dirent *e = readdir(dir); e != NULL && status == EV_OK; e = readdir(dir)) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        char *path = below[0] != '\0' ? ev_path_join(below, e->d_name) : strdup(e->d_name);
        status =
            path != NULL ? list_entry(s, path, depth, err) : ev_fail_memory(err, strlen(e->d_name));
        free(path);
    }
    return status;
}

static ev_status list_folder(store *s, const char *below, int depth, ev_error *err) {
    if (depth > DEEPEST)
        return ev_fail(err, EV_BAD, "%s is no bundle: %s lies too deep", s->name, below);
    char *whole = below[0] != '\0' ? ev_path_join(s->folder, below) : strdup(s->folder);
    if (whole == NULL)
        return ev_fail_memory(err, strlen(below));
    DIR *dir = opendir(whole);
    free(whole);
    char reason[128];
    if (dir == NULL)
        return ev_fail(err, EV_BAD, "cannot read the folder %s of the bundle %s: %s", below,
                       s->name, strerror_r(errno, reason, sizeof reason));
    ev_status status = list_entries(s, dir, below, depth, err);
    (void)closedir(dir);
    return status;
}

static int compare_paths(const void *a, const void *b) {
    return strcmp(((const tar_member *)a)->path, ((const tar_member *)b)->path);
}

static ev_status open_folder(store *s, ev_error *err) {
    s->folder = strdup(s->name);
    if (s->folder == NULL)
        return ev_fail_memory(err, strlen(s->name));
    EV_TRY(list_folder(s, "", 0, err));
    if (s->count > 0)
        qsort(s->members, s->count, sizeof *s->members, compare_paths);
    return EV_OK;
}

/* ---- opening ---- */

static ev_status open_tar(store *s, size_t bytes, ev_error *err) {
    s->bytes = bytes;
    if (!tar_is(s->data, bytes))
        return ev_fail(err, EV_BAD, "%s is no bundle: it is neither a folder nor a tar (ustar)",
                       s->name);
    return tar_read(s->name, s->data, bytes, &s->members, &s->count, err);
}

static ev_status make(const char *name, store **out, ev_error *err) {
    store *s = calloc(1, sizeof *s);
    if (s != NULL)
        s->name = strdup(name);
    if (s == NULL || s->name == NULL) {
        free(s);
        return ev_fail_memory(err, sizeof *s);
    }
    *out = s;
    return EV_OK;
}

static ev_status finish(store *s, ev_status status, store **out) {
    if (status == EV_OK)
        *out = s;
    else
        store_close(s);
    return status;
}

ev_status store_open(const char *path, store **out, ev_error *err) {
    store *s = NULL;
    size_t bytes = 0;
    EV_TRY(make(path, &s, err));
    if (ev_path_is_dir(path))
        return finish(s, open_folder(s, err), out);
    ev_status status = ev_path_exists(path)
                           ? ev_file_read_regular(path, MOST_BYTES, &s->data, &bytes, err)
                           : ev_fail(err, EV_BAD, "%s is no bundle: there is nothing", path);
    if (status == EV_OK)
        status = open_tar(s, bytes, err);
    return finish(s, status, out);
}

ev_status store_open_memory(const char *name, const void *data, size_t bytes, store **out,
                            ev_error *err) {
    store *s = NULL;
    EV_TRY(make(name, &s, err));
    s->data = malloc(bytes + 1);
    if (s->data == NULL)
        return finish(s, ev_fail_memory(err, bytes), out);
    if (bytes > 0)
        memcpy(s->data, data, bytes);
    return finish(s, open_tar(s, bytes, err), out);
}

/* ---- files ---- */

static const tar_member *find(const store *s, const char *path) {
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(s->members[middle].path, path);
        if (order == 0)
            return &s->members[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

bool store_has(const store *s, const char *path) {
    return find(s, path) != NULL;
}

static ev_status copy_member(const tar_member *m, char **data, size_t *bytes, ev_error *err) {
    char *copy = malloc(m->bytes + 1);
    if (copy == NULL)
        return ev_fail_memory(err, m->bytes);
    memcpy(copy, m->data, m->bytes);
    copy[m->bytes] = '\0';
    *data = copy;
    *bytes = m->bytes;
    return EV_OK;
}

ev_status store_read(const store *s, const char *path, char **data, size_t *bytes, ev_error *err) {
    const tar_member *m = find(s, path);
    if (m == NULL)
        return ev_fail(err, EV_BAD, "%s: there is no file %.256s", s->name, path);
    if (s->folder == NULL)
        return copy_member(m, data, bytes, err);
    char *whole = ev_path_join(s->folder, path);
    if (whole == NULL)
        return ev_fail_memory(err, strlen(path));
    ev_status status = ev_file_read_regular(whole, MOST_BYTES, data, bytes, err);
    free(whole);
    return status;
}

static ev_status unpack_one(const tar_member *m, const char *folder, ev_error *err) {
    char *whole = ev_path_join(folder, m->path);
    char *parent = whole != NULL ? ev_path_dir(whole) : NULL;
    ev_status status = parent != NULL ? ev_dir_make(parent, err) : ev_fail_memory(err, TAR_PATH);
    if (status == EV_OK)
        status = ev_file_write(whole, m->data, m->bytes, err);
    free(parent);
    free(whole);
    return status;
}

ev_status store_unpack(const store *s, const char *folder, ev_error *err) {
    for (size_t i = 0; i < s->count; i++)
        EV_TRY(unpack_one(&s->members[i], folder, err));
    return EV_OK;
}
