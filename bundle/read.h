/* The inside of an open bundle, for the files of this folder only. */
#ifndef BUNDLE_READ_H
#define BUNDLE_READ_H

#include "base/arena.h"
#include "base/json.h"
#include "bundle/reader.h"

struct bundle {
    char *path;
    ev_json *doc;    /* the manifest: names and texts are borrowed from it */
    ev_arena *arena; /* all the rest */
    bundle_kernel *kernels;
    size_t kernel_count;
};

#endif
