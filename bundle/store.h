/* Store: the files of a bundle, in a folder or in a tar. */
#ifndef BUNDLE_STORE_H
#define BUNDLE_STORE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct store store;

/* Lists the files of a folder, or reads a tar whole: what stands at `path` says which. EV_BAD:
 * there is neither; a folder holds something else than files and folders (a link, a device); what
 * tar_read refuses. */
ev_status store_open(const char *path, store **out, ev_error *err) EV_CHECKED;
/* A tar in memory, which is copied. `name` stands for it in messages. */
ev_status store_open_memory(const char *name, const void *data, size_t bytes, store **out,
                            ev_error *err) EV_CHECKED;
void store_close(store *s); /* NULL is fine */

const char *store_name(const store *s);
bool store_is_tar(const store *s);
/* Bytes of a tar, which is in memory whole, or of all files of a folder. */
size_t store_bytes(const store *s);
/* The files by path, ascending. */
size_t store_count(const store *s);
const char *store_path_at(const store *s, size_t index);
bool store_has(const store *s, const char *path);
/* A file's contents, malloc'ed, with a NUL behind them. EV_BAD: there is none of that path. Several
 * threads may read at once. */
ev_status store_read(const store *s, const char *path, char **data, size_t *bytes,
                     ev_error *err) EV_CHECKED;
/* Writes the files of a tar below a folder that exists. */
ev_status store_unpack(const store *s, const char *folder, ev_error *err) EV_CHECKED;

#endif
