/* Tar: one file that holds files, as the ustar format of POSIX.1-1988 (IEEE Std 1003.1, pax, "ustar
 * Interchange Format"). Members are regular files alone, in the order of their names, without dates
 * and owners, so that equal contents give equal bytes. */
#ifndef BUNDLE_TAR_H
#define BUNDLE_TAR_H

#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

#define TAR_PATH 257 /* 155 bytes, '/', 100 bytes, NUL */

/* A member inside the tar's bytes. */
typedef struct tar_member {
    char path[TAR_PATH];
    const char *data; /* borrowed from the tar's bytes */
    size_t bytes;
} tar_member;

/* Whether the bytes begin as a tar's do. */
bool tar_is(const void *data, size_t bytes);

/* The members, sorted by path; *out is malloc'ed. `name` is the tar's, for messages. EV_BAD with
 * the member's name: anything but a regular file (links, folders, devices, sparse files, pax and
 * GNU extensions), a path that is absolute or leads out, two members of one name, a wrong check sum
 * or size, a tar that ends too early or goes on behind its end. */
ev_status tar_read(const char *name, const void *data, size_t bytes, tar_member **out,
                   size_t *count, ev_error *err) EV_CHECKED;

/* Appends a member. Call in the order of the paths, then tar_end. EV_BAD: the path is too long for
 * the format, or the file has 8 GiB or more. */
ev_status tar_add(ev_str *tar, const char *path, const void *data, size_t bytes,
                  ev_error *err) EV_CHECKED;
void tar_end(ev_str *tar);

/* Whether a path stays inside its folder: relative, without empty parts, "." and "..". */
bool tar_path_is_inside(const char *path);

#endif
