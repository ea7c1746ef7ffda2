/* Files: whole reads, and writes that leave either the old file or the whole new one. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* The whole file, NUL-terminated, malloc'ed. A missing or unreadable file is EV_BAD with its name.
 */
ev_status ev_file_read(const char *path, char **data, size_t *bytes, ev_error *err) EV_CHECKED;

/* Writes to a temporary file beside `path`, fsyncs, renames. A folder that is missing or not
 * writable is EV_BAD (the user named it); a full disk or failing fsync is EV_INFRA; nothing is left
 * behind. main ignores SIGXFSZ, so that a limit on file sizes is such a failure too. */
ev_status ev_file_write(const char *path, const void *data, size_t bytes, ev_error *err) EV_CHECKED;

ev_status ev_dir_make(const char *path,
                      ev_error *err) EV_CHECKED; /* with its parents; fine if there */
ev_status ev_dir_remove(const char *path,
                        ev_error *err) EV_CHECKED; /* with all below; fine if absent */
/* Puts the finished folder `from` in the place of `to` by renames; the old `to` goes only
 * afterwards. */
ev_status ev_dir_replace(const char *from, const char *to, ev_error *err) EV_CHECKED;

bool ev_path_exists(const char *path);
bool ev_path_is_dir(const char *path);
/* "DIR/NAME", or NAME itself when it is absolute. malloc'ed; NULL when memory runs out. */
char *ev_path_join(const char *dir, const char *name);
/* The folder part of `path`, "." when it has none. malloc'ed. */
char *ev_path_dir(const char *path);
/* The folder that holds kernels/ and fitness/model/gpus/: $EVOKE_HOME where that is set (nothing
 * else then), else beside the running binary (../), else the source folder of the build. malloc'ed;
 * NULL if it is not there. */
char *ev_path_home(void);

#endif
