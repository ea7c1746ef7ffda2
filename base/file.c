/* Files and folders: whole reads, replacing writes, and where the data of Evoke lives. */
#include "base/file.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether an errno says that the machine is in trouble, and not that the user named a wrong path.
 */
static bool errno_is_machine(int code) {
    switch (code) {
    case EIO:
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
        return true;
    default:
        return false;
    }
}

/* A call on a path that the user named failed: errno decides the class. */
static ev_status fail_path(ev_error *err, const char *what, const char *path, const char *cure) {
    int code = errno;
    char reason[128];
    if (errno_is_machine(code))
        return ev_fail_errno(err, what, path);
    return ev_fail(err, EV_BAD, "%s %s: %s%s", what, path, strerror_r(code, reason, sizeof reason),
                   cure);
}

/* ---- reading ---- */

static ev_status read_all(int file, const char *path, char **data, size_t *bytes, ev_error *err) {
    struct stat facts;
    size_t room = 4096;
    if (fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0)
        room = (size_t)facts.st_size + 1;
    size_t used = 0;
    char *text = malloc(room + 1);
    while (text != NULL) {
        ssize_t got = read(file, text + used, room - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            ev_status status = fail_path(err, "cannot read", path, "");
            free(text);
            return status;
        }
        if (got == 0)
            break;
        used += (size_t)got;
        if (used == room) {
            room *= 2;
            char *larger = realloc(text, room + 1);
            if (larger == NULL)
                free(text);
            text = larger;
        }
    }
    if (text == NULL)
        return ev_fail_memory(err, room + 1);
    text[used] = '\0';
    *data = text;
    *bytes = used;
    return EV_OK;
}

static ev_status check_regular(int file, const char *path, size_t most, ev_error *err) {
    struct stat facts;
    if (fstat(file, &facts) != 0)
        return fail_path(err, "cannot read", path, "");
    if (!S_ISREG(facts.st_mode))
        return ev_fail(err, EV_BAD, "cannot read %s: it is no regular file", path);
    if (facts.st_size > 0 && (size_t)facts.st_size > most)
        return ev_fail(err, EV_BAD, "cannot read %s: it has %zu bytes, over the most of %zu", path,
                       (size_t)facts.st_size, most);
    return EV_OK;
}

ev_status ev_file_read_regular(const char *path, size_t most, char **data, size_t *bytes,
                               ev_error *err) {
    /* A pipe would else be waited for; for regular files O_NONBLOCK means nothing. */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return fail_path(err, "cannot read", path, "");
    ev_status status = check_regular(file, path, most, err);
    if (status == EV_OK)
        status = read_all(file, path, data, bytes, err);
    (void)close(file);
    return status;
}

ev_status ev_file_read(const char *path, char **data, size_t *bytes, ev_error *err) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return fail_path(err, "cannot read", path, "");
    ev_status status = read_all(file, path, data, bytes, err);
    (void)close(file);
    return status;
}

/* ---- writing ---- */

/* Opens a new file beside `path`. Its name holds the process and an attempt, and O_EXCL settles
 * any race; mkstemp would make it readable by its owner alone. */
static int temporary_open(const char *path, char **name) {
    for (int attempt = 0; attempt < 1000; attempt++) {
        if (asprintf(name, "%s.%ld-%d.tmp", path, (long)getpid(), attempt) < 0) {
            *name = NULL;
            errno = ENOMEM;
            return -1;
        }
        int file = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file >= 0)
            return file;
        int code = errno;
        free(*name);
        *name = NULL;
        errno = code;
        if (code != EEXIST)
            return -1;
    }
    return -1;
}

static bool write_all(int file, const char *data, size_t bytes) {
    while (bytes > 0) {
        ssize_t put = write(file, data, bytes);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        data += put;
        bytes -= (size_t)put;
    }
    return true;
}

/* Makes the rename itself last; file systems that cannot sync a folder say EINVAL. */
static ev_status folder_sync(const char *path, ev_error *err) {
    char *folder = ev_path_dir(path);
    if (folder == NULL)
        return ev_fail_memory(err, strlen(path) + 1);
    ev_status status = EV_OK;
    int handle = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (handle >= 0) { /* a folder that may be written but not read cannot be synced */
        if (fsync(handle) != 0 && errno != EINVAL && errno != ENOTSUP)
            status = ev_fail_errno(err, "cannot sync the folder", folder);
        (void)close(handle);
    }
    free(folder);
    return status;
}

/* Fills the open temporary file and closes it in every case. */
static ev_status temporary_fill(int file, const char *path, const void *data, size_t bytes,
                                ev_error *err) {
    if (!write_all(file, data, bytes) || fsync(file) != 0) {
        ev_status status = ev_fail_errno(err, "cannot write", path);
        (void)close(file);
        return status;
    }
    if (close(file) != 0)
        return ev_fail_errno(err, "cannot write", path);
    return EV_OK;
}

static const char WRITE_CURE[] = "; name a file in a folder that exists and may be written";

/* Writes a new file and gives it the name. */
static ev_status write_renamed(const char *path, const void *data, size_t bytes, ev_error *err) {
    char *name = NULL;
    int file = temporary_open(path, &name);
    if (file < 0)
        return fail_path(err, "cannot write", path, WRITE_CURE);
    ev_status status = temporary_fill(file, path, data, bytes, err);
    if (status == EV_OK && rename(name, path) != 0)
        status = fail_path(err, "cannot write", path, WRITE_CURE);
    if (status == EV_OK)
        status = folder_sync(path, err);
    else
        (void)unlink(name);
    free(name);
    return status;
}

/* Writes to a device, a pipe or a socket, which no file may replace: /dev/null, /dev/stdout. */
static ev_status write_special(const char *path, const void *data, size_t bytes, ev_error *err) {
    int file = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (file < 0)
        return fail_path(err, "cannot write", path, WRITE_CURE);
    ev_status status =
        write_all(file, data, bytes) ? EV_OK : ev_fail_errno(err, "cannot write", path);
    if (close(file) != 0 && status == EV_OK)
        status = ev_fail_errno(err, "cannot write", path);
    return status;
}

ev_status ev_file_write(const char *path, const void *data, size_t bytes, ev_error *err) {
    struct stat at;
    if (ev_path_is_dir(path))
        return ev_fail(err, EV_BAD, "cannot write %s: it is a folder; name a file", path);
    if (stat(path, &at) == 0 && !S_ISREG(at.st_mode))
        return write_special(path, data, bytes, err);
    char *behind = realpath(path, NULL); /* a link stays, and the file behind it is replaced */
    ev_status status = write_renamed(behind != NULL ? behind : path, data, bytes, err);
    free(behind);
    return status;
}

/* ---- folders ---- */

static ev_status dir_make_one(const char *path, ev_error *err) {
    if (mkdir(path, 0777) == 0)
        return EV_OK;
    int code = errno;
    if (ev_path_is_dir(path))
        return EV_OK;
    errno = code;
    return fail_path(err, "cannot make the folder", path,
                     code == EEXIST ? " and is no folder" : "; name one that may be written");
}

ev_status ev_dir_make(const char *path, ev_error *err) {
    char *copy = strdup(path);
    if (copy == NULL)
        return ev_fail_memory(err, strlen(path) + 1);
    ev_status status = EV_OK;
    for (char *at = copy + (copy[0] == '/'); status == EV_OK && (at = strchr(at, '/')) != NULL;
         at++) {
        *at = '\0';
        if (at[-1] != '/')
            status = dir_make_one(copy, err);
        *at = '/';
    }
    if (status == EV_OK)
        status = dir_make_one(copy, err);
    free(copy);
    return status;
}

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *place) {
    (void)facts;
    (void)kind;
    (void)place;
    return remove(path);
}

ev_status ev_dir_remove(const char *path, ev_error *err) {
    if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT)
        return EV_OK;
    return fail_path(err, "cannot remove", path, "");
}

/* For file systems that cannot exchange two names: moves `to` aside, and back if that fails. */
static ev_status replace_in_steps(const char *from, const char *to, ev_error *err) {
    char *aside = NULL;
    if (asprintf(&aside, "%s.%ld-old.tmp", to, (long)getpid()) < 0)
        return ev_fail_memory(err, strlen(to) + 32);
    ev_status status = EV_OK;
    if (rename(to, aside) != 0) {
        status = fail_path(err, "cannot replace", to, "");
    } else if (rename(from, to) != 0) {
        status = fail_path(err, "cannot replace", to, "");
        if (rename(aside, to) != 0)
            status = ev_wrap(err, status, "the old folder is now %s", aside);
    } else {
        status = ev_dir_remove(aside, err);
    }
    free(aside);
    return status;
}

ev_status ev_dir_replace(const char *from, const char *to, ev_error *err) {
    if (!ev_path_exists(to)) {
        if (rename(from, to) != 0)
            return fail_path(err, "cannot write the folder", to, "");
        return folder_sync(to, err);
    }
    if (!ev_path_is_dir(to))
        return ev_fail(err, EV_BAD, "cannot replace %s: it is no folder; name another", to);
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) == 0) {
        EV_TRY(folder_sync(to, err));
        return ev_dir_remove(from, err); /* it holds the old folder now */
    }
    if (errno == EINVAL || errno == ENOSYS)
        return replace_in_steps(from, to, err);
    return fail_path(err, "cannot replace", to, "");
}

/* ---- paths ---- */

bool ev_path_exists(const char *path) {
    struct stat facts;
    return lstat(path, &facts) == 0;
}

bool ev_path_is_dir(const char *path) {
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

bool ev_path_plain(const char *path, char *out) {
    char *to = out;
    while (*path != '\0') {
        size_t length = strcspn(path, "/");
        if (length == 2 && strncmp(path, "..", 2) == 0)
            return false;
        if (length > 0 && !(length == 1 && path[0] == '.')) {
            if (to != out)
                *to++ = '/';
            memcpy(to, path, length);
            to += length;
        }
        path += length + (path[length] == '/');
    }
    *to = '\0';
    return to != out;
}

char *ev_path_join(const char *dir, const char *name) {
    if (name[0] == '/')
        return strdup(name);
    size_t length = strlen(dir);
    bool needs_slash = length > 0 && dir[length - 1] != '/';
    ev_str path = EV_STR_EMPTY;
    ev_str_append_n(&path, dir, length);
    if (needs_slash)
        ev_str_char(&path, '/');
    ev_str_append(&path, name);
    return ev_str_take(&path);
}

char *ev_path_dir(const char *path) {
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    while (end > 0 && path[end - 1] != '/')
        end--;
    while (end > 1 && path[end - 1] == '/')
        end--;
    return end == 0 ? strdup(".") : strndup(path, end);
}

/* Both folders are asked for: a build folder has a kernels/ of its own, but no descriptions of
 * GPUs. */
static bool is_home(const char *path) {
    char *kernels = ev_path_join(path, "kernels");
    char *gpus = ev_path_join(path, "fitness/model/gpus");
    bool found = kernels != NULL && gpus != NULL && ev_path_is_dir(kernels) && ev_path_is_dir(gpus);
    free(kernels);
    free(gpus);
    return found;
}

/* The folder above that of the running binary; NULL if there is no /proc or no memory. */
static char *home_beside_binary(void) {
    char *binary = realpath("/proc/self/exe", NULL);
    if (binary == NULL)
        return NULL;
    char *folder = ev_path_dir(binary);
    char *above = folder == NULL ? NULL : ev_path_dir(folder);
    free(folder);
    free(binary);
    return above;
}

char *ev_path_home(void) {
    const char *named = getenv("EVOKE_HOME");
    if (named != NULL && named[0] != '\0')
        return is_home(named) ? strdup(named) : NULL;
    char *beside = home_beside_binary();
    if (beside != NULL && is_home(beside))
        return beside;
    char *installed = beside != NULL ? ev_path_join(beside, "share/evoke") : NULL;
    free(beside);
    if (installed != NULL && is_home(installed))
        return installed;
    free(installed);
    return is_home(EVOKE_SOURCE_DIR) ? strdup(EVOKE_SOURCE_DIR) : NULL;
}
