/* The files of an open bundle: opening, closing, and holding each file against its hash. */
#include "bundle/read.h"

#include "base/file.h"
#include "bundle/manifest.h"
#include "bundle/tar.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MANIFEST "manifest.json"

struct bundle_unpacked {
    pthread_mutex_t lock;
    char *folder; /* NULL: not yet */
};

/* ---- the list of the manifest ---- */

static const json_t *facts_of(const bundle *b, const char *path) {
    return json_object_get(json_object_get(b->doc->root, "files"), path);
}

static ev_status check_strays(const reading *r) {
    for (size_t i = 0; i < store_count(r->b->files); i++) {
        const char *path = store_path_at(r->b->files, i);
        if (strcmp(path, MANIFEST) != 0 && strcmp(path, BUNDLE_SIGNATURE) != 0 &&
            facts_of(r->b, path) == NULL)
            return ev_fail(
                r->err, EV_BAD,
                "the bundle %s holds a stray file: %s is not in its manifest; remove it, "
                "or export the bundle again",
                store_name(r->b->files), path);
    }
    return EV_OK;
}

ev_status reading_files(const reading *r) {
    const char *path = NULL;
    json_t *facts = NULL;
    json_object_foreach(json_object_get(r->doc->root, "files"), path, facts) {
        if (!tar_path_is_inside(path))
            return ev_json_fail(r->doc, "files", r->err, "the path '%s' leads out of the bundle",
                                path);
        EV_TRY(manifest_check(r->doc, MANIFEST_FILE, facts, "files", r->err));
        if (!reading_is_hash(ev_json_text(facts, "sha256", "")) ||
            ev_json_integer(facts, "bytes", 0) < 0)
            return ev_json_fail(r->doc, "files", r->err,
                                "%s has a hash of 64 digits (0 to 9, a to f), and 0 bytes or more",
                                path);
        if (!store_has(r->b->files, path))
            return ev_fail(r->err, EV_BAD, "the bundle %s is damaged: %s is missing",
                           store_name(r->b->files), path);
    }
    return check_strays(r);
}

static ev_status fail_hash(const bundle *b, const char *path, const char *found, const char *want,
                           ev_error *err) {
    return ev_fail(
        err, EV_BAD,
        "the bundle %s is damaged: %s has the hash %.12s..., and the manifest says %.12s...; "
        "export it again",
        store_name(b->files), path, found, want);
}

ev_status reading_file(const bundle *b, const char *path, char **data, size_t *bytes,
                       ev_error *err) {
    const json_t *facts = facts_of(b, path);
    const char *want = ev_json_text(facts, "sha256", "");
    char *read = NULL;
    size_t length = 0;
    ev_status status = store_read(b->files, path, &read, &length, err);
    if (status != EV_OK)
        return ev_wrap(err, status, "the bundle %s is damaged", store_name(b->files));
    ev_sha256 found = ev_sha256_of(read, length);
    if (strcmp(found.hex, want) != 0)
        status = fail_hash(b, path, found.hex, want, err);
    else if (ev_json_integer(facts, "bytes", -1) != (json_int_t)length)
        status = ev_fail(err, EV_BAD,
                         "the bundle %s is damaged: %s has %zu bytes, and the manifest "
                         "says another number",
                         store_name(b->files), path, length);
    if (status != EV_OK) {
        free(read);
        return status;
    }
    *data = read;
    *bytes = length;
    return EV_OK;
}

ev_status bundle_verify(const bundle *b, ev_error *err) {
    const char *path = NULL;
    json_t *facts = NULL;
    json_object_foreach(json_object_get(b->doc->root, "files"), path, facts) {
        char *data = NULL;
        size_t bytes = 0;
        EV_TRY(reading_file(b, path, &data, &bytes, err));
        free(data);
    }
    return EV_OK;
}

ev_status bundle_read_ptx(const bundle *b, const bundle_variant *v, char **ptx, size_t *bytes,
                          ev_error *err) {
    char path[sizeof "kernels/.ptx" + EV_SHA256_HEX];
    (void)snprintf(path, sizeof path, "kernels/%s.ptx", v->sha256.hex);
    char *text = NULL;
    EV_TRY(reading_file(b, path, &text, bytes, err));
    ev_status status = reading_hold_ptx(b, v, path, text, *bytes, err);
    if (status == EV_OK)
        *ptx = text;
    else
        free(text);
    return status;
}

/* ---- opening ---- */

/* Takes the text over. */
static ev_status parse_manifest(bundle *b, char *text, size_t bytes, ev_error *err) {
    char *name = ev_path_join(store_name(b->files), MANIFEST);
    ev_status status = EV_OK;
    if (name == NULL)
        status = ev_fail_memory(err, bytes);
    else if (strlen(text) != bytes)
        status = ev_fail(err, EV_BAD, "%s holds a NUL, and is no JSON", name);
    if (status == EV_OK)
        status = memory_plan(b, text, bytes, &b->memory_left, err);
    if (status == EV_OK)
        status = ev_json_take(text, name, &b->doc, err);
    else
        free(text);
    free(name);
    return status;
}

static ev_status load_manifest(bundle *b, const bundle_trust *trust, ev_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    if (!store_has(b->files, MANIFEST))
        return ev_fail(err, EV_BAD, "%s is no bundle: there is no manifest.json in it",
                       store_name(b->files));
    EV_TRY(store_read(b->files, MANIFEST, &text, &bytes, err));
    ev_status status = reading_signature(b, trust, text, bytes, err);
    if (status != EV_OK) {
        free(text);
        return status;
    }
    EV_TRY(parse_manifest(b, text, bytes, err));
    return reading_signer(b, trust, err);
}

static ev_status fail_memory(const bundle *b, ev_error *err) {
    return ev_fail(err, EV_BAD,
                   "the manifest of %s would take more than %d times its size and %zu bytes of "
                   "memory, which no manifest does",
                   store_name(b->files), MEMORY_TIMES, MEMORY_FREE);
}

static ev_status read_kernels(bundle *b, bool is_lazy, ev_error *err) {
    ev_arena *places = ev_arena_new();
    if (places == NULL)
        return ev_fail_memory(err, 1);
    ev_arena_limit(places, b->memory_left / 8);
    ev_status status = reading_manifest(&(reading){b, b->doc, b->arena, places, is_lazy, err});
    if (ev_arena_is_full(places))
        status = fail_memory(b, err);
    ev_arena_free(places);
    return status;
}

static ev_status read_kernels_and_index(bundle *b, bool is_lazy, ev_error *err) {
    EV_TRY(read_kernels(b, is_lazy, err));
    if (!is_lazy)
        EV_TRY(bundle_verify(b, err));
    return bundle_index_make(b->arena, b->kernels, b->kernel_count, &b->index, err);
}

static ev_status read_all(bundle *b, bool is_lazy, const bundle_trust *trust, ev_error *err) {
    b->arena = ev_arena_new();
    b->unpacked = calloc(1, sizeof *b->unpacked);
    if (b->arena == NULL || b->unpacked == NULL)
        return ev_fail_memory(err, sizeof *b);
    (void)pthread_mutex_init(&b->unpacked->lock, NULL);
    EV_TRY(load_manifest(b, trust, err));
    if (is_lazy) /* else the PTX of all variants is read, which the files have */
        ev_arena_limit(b->arena, b->memory_left);
    ev_status status = read_kernels_and_index(b, is_lazy, err);
    if (ev_arena_is_full(b->arena))
        status = fail_memory(b, err);
    free(b->doc->text); /* it was for messages; the values have their own */
    b->doc->text = NULL;
    return status;
}

/* Takes the store over, on a failure, too. */
static ev_status open_store(store *files, bool is_lazy, const bundle_trust *trust, bundle **out,
                            ev_error *err) {
    bundle *b = calloc(1, sizeof *b);
    if (b == NULL) {
        store_close(files);
        return ev_fail_memory(err, sizeof *b);
    }
    b->files = files;
    ev_status status = read_all(b, is_lazy, trust, err);
    if (status == EV_OK)
        *out = b;
    else
        bundle_close(b);
    return status;
}

ev_status bundle_open_trusted(const char *path, bool is_lazy, const bundle_trust *trust,
                              bundle **out, ev_error *err) {
    store *files = NULL;
    EV_TRY(store_open(path, &files, err));
    return open_store(files, is_lazy, trust, out, err);
}

ev_status bundle_open_memory_trusted(const void *data, size_t bytes, const bundle_trust *trust,
                                     bundle **out, ev_error *err) {
    store *files = NULL;
    EV_TRY(store_open_memory("(memory)", data, bytes, &files, err));
    return open_store(files, true, trust, out, err);
}

ev_status bundle_open(const char *path, bundle **out, ev_error *err) {
    return bundle_open_trusted(path, false, NULL, out, err);
}

ev_status bundle_open_lazy(const char *path, bundle **out, ev_error *err) {
    return bundle_open_trusted(path, true, NULL, out, err);
}

ev_status bundle_open_memory(const void *data, size_t bytes, bundle **out, ev_error *err) {
    return bundle_open_memory_trusted(data, bytes, NULL, out, err);
}

static void unpacked_free(bundle_unpacked *u) {
    if (u == NULL)
        return;
    if (u->folder != NULL && ev_dir_remove(u->folder, NULL) != EV_OK)
        (void)0; /* a temporary folder is left over */
    free(u->folder);
    (void)pthread_mutex_destroy(&u->lock);
    free(u);
}

void bundle_close(bundle *b) {
    if (b == NULL)
        return;
    unpacked_free(b->unpacked);
    ev_json_free(b->doc);
    ev_arena_free(b->arena);
    store_close(b->files);
    free(b);
}

/* ---- a folder of the files ---- */

static ev_status unpack(const bundle *b, char **folder, ev_error *err) {
    const char *root = getenv("TMPDIR");
    char *name =
        ev_path_join(root != NULL && root[0] != '\0' ? root : "/tmp", "evoke-bundle-XXXXXX");
    if (name == NULL)
        return ev_fail_memory(err, 1);
    if (mkdtemp(name) == NULL) {
        ev_status status = ev_fail_errno(err, "cannot make the folder", name);
        free(name);
        return status;
    }
    *folder = name; /* removed with the bundle, however far this comes */
    return store_unpack(b->files, name, err);
}

ev_status bundle_folder(const bundle *b, const char **out, ev_error *err) {
    bundle_unpacked *u = b->unpacked;
    ev_status status = EV_OK;
    if (!store_is_tar(b->files)) {
        *out = store_name(b->files);
        return EV_OK;
    }
    (void)pthread_mutex_lock(&u->lock);
    if (u->folder == NULL)
        status = unpack(b, &u->folder, err);
    if (status == EV_OK)
        *out = u->folder;
    (void)pthread_mutex_unlock(&u->lock);
    return status;
}

const char *bundle_path(const bundle *b) {
    return store_name(b->files);
}
