/* Files: whole reads, and writes that leave either the old file or the whole new one. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* The whole file, NUL-terminated, malloc'ed. A missing or unreadable file is EV_BAD with its name.
 */
ev_status ev_file_read(const char *path, char **data, size_t *bytes, ev_error *err) EV_CHECKED;

/* The same of a file that somebody else may have made, so that no reader waits for ever or takes
 * all memory. EV_BAD, by name: a pipe, a device or a socket; more than `most` bytes. */
ev_status ev_file_read_regular(const char *path, size_t most, char **data, size_t *bytes,
                               ev_error *err) EV_CHECKED;

/* Writes to a temporary file beside `path`, calls fsync and renames. Of a link, the file behind the
 * link is replaced; to a device, a pipe or a socket, the bytes are written as they are. EV_BAD: the
 * folder is missing or not writable, since the user named it. EV_INFRA: the disk is full, or fsync
 * failed; main ignores SIGXFSZ, so a limit on file sizes ends here, too. A failure leaves no
 * temporary file. */
ev_status ev_file_write(const char *path, const void *data, size_t bytes, ev_error *err) EV_CHECKED;

ev_status ev_dir_make(const char *path,
                      ev_error *err) EV_CHECKED; /* with its parents; it may exist */
ev_status ev_dir_remove(const char *path,
                        ev_error *err) EV_CHECKED; /* with its contents; it may be absent */
/* Replaces the folder `to` by the finished folder `from`, by renames. The old `to` is removed
 * afterwards. */
ev_status ev_dir_replace(const char *from, const char *to, ev_error *err) EV_CHECKED;

bool ev_path_exists(const char *path);
bool ev_path_is_dir(const char *path);
/* "DIR/NAME", or NAME alone if it is absolute. malloc'ed; NULL: out of memory. */
char *ev_path_join(const char *dir, const char *name);
/* Copies a path without ".", empty parts and a slash at its beginning; `out` has room for all of
 * `path`. False: a part is "..", or nothing is left. */
bool ev_path_plain(const char *path, char *out);
/* The folder part of `path`, "." when it has none. malloc'ed. */
char *ev_path_dir(const char *path);
/* The folder that holds kernels/ and fitness/model/gpus/. If $EVOKE_HOME is set, only that folder
 * is tried; otherwise the parent of the running binary's folder, then share/evoke in that parent,
 * as an installation has it, then the source folder of the build. malloc'ed; NULL: not found. */
char *ev_path_home(void);

#endif
