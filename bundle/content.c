/* Turns an open bundle back into the content that the writer takes, to be written with changes. */
#include "bundle/bundle.h"

#include "bundle/read.h"

#include <stdlib.h>
#include <string.h>

/* The writer makes the manifest and kernels/ itself. */
static bool is_carried(const char *path) {
    return strncmp(path, "kernels/", 8) != 0;
}

static ev_status carry_file(const bundle *b, ev_arena *arena, const char *path, bundle_file *out,
                            ev_error *err) {
    char *data = NULL;
    size_t bytes = 0;
    EV_TRY(reading_file(b, path, &data, &bytes, err));
    char *kept = ev_arena_copy(arena, data, bytes + 1);
    free(data);
    if (kept == NULL)
        return ev_fail_memory(err, bytes);
    *out = (bundle_file){path, kept, bytes};
    return EV_OK;
}

ev_status bundle_content_of(const bundle *b, ev_arena *arena, bundle_content *out, ev_error *err) {
    json_t *files = json_object_get(b->doc->root, "files");
    bundle_file *all = EV_NEW_ARRAY(arena, bundle_file, json_object_size(files) + 1);
    if (all == NULL)
        return ev_fail_memory(err, json_object_size(files) * sizeof *all);
    size_t count = 0;
    const char *path = NULL;
    json_t *facts = NULL;
    json_object_foreach(files, path, facts) {
        if (is_carried(path))
            EV_TRY(carry_file(b, arena, path, &all[count++], err));
    }
    *out = (bundle_content){.version = ev_json_text(b->doc->root, "evoke", ""),
                            .kernels = b->kernels,
                            .kernel_count = b->kernel_count,
                            .files = all,
                            .file_count = count};
    return EV_OK;
}
