/* The inside of an open bundle, for the files of this folder only. */
#ifndef BUNDLE_READ_H
#define BUNDLE_READ_H

#include "base/arena.h"
#include "base/json.h"
#include "bundle/reader.h"

struct bundle {
    char *path;
    ev_json *doc;    /* the manifest: names and texts are borrowed from it */
    ev_arena *arena; /* owns everything else */
    bundle_kernel *kernels;
    size_t kernel_count;
};

/* One walk over the manifest. Texts of the values are borrowed from the document. */
typedef struct reading {
    bundle *b;
    const ev_json *doc;
    ev_arena *arena;
    ev_error *err;
} reading;

/* Places for messages: "WHERE.KEY" and "WHERE.KEY[INDEX]". */
char *reading_join(const reading *r, const char *where, const char *key);
char *reading_member(const reading *r, const char *where, const char *key, size_t index);
/* A file of the bundle by its path there; malloc'ed. */
ev_status reading_file(const bundle *b, const char *path, char **data, size_t *bytes,
                       ev_error *err) EV_CHECKED;

/* The optional keys "qualified" and "disabled" of a variant (read_qualified.c). */
ev_status reading_qualified(const reading *r, const json_t *variant, const char *where,
                            bundle_variant *out) EV_CHECKED;

#endif
