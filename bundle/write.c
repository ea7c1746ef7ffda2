/* Writes a bundle, as a folder or as a tar: all of it beside its place, then into its place by a
 * rename. */
#include "bundle/bundle.h"

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "bundle/manifest.h"
#include "bundle/store.h"
#include "bundle/tar.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the target ---- */

static bool is_empty_dir(const char *path) {
    DIR *dir = opendir(path);
    if (dir == NULL)
        return false;
    size_t entries = 0;
    while (entries <= 2 && readdir(dir) != NULL)
        entries++;
    (void)closedir(dir);
    return entries <= 2; /* "." and ".." */
}

/* A bundle of any version, of the kind that is to be written. */
static bool is_bundle(const char *path, bool as_tar) {
    store *files = NULL;
    char *text = NULL;
    size_t bytes = 0;
    ev_json *doc = NULL;
    bool is = ev_path_is_dir(path) != as_tar && store_open(path, &files, NULL) == EV_OK &&
              store_read(files, "manifest.json", &text, &bytes, NULL) == EV_OK &&
              ev_json_parse(text, path, &doc, NULL) == EV_OK &&
              strcmp(ev_json_text(doc->root, "schema", ""), BUNDLE_SCHEMA) == 0;
    ev_json_free(doc);
    free(text);
    store_close(files);
    return is;
}

bool bundle_is_tar_name(const char *path) {
    size_t length = strlen(path);
    return length > 4 && strcmp(path + length - 4, ".tar") == 0;
}

/* The path without slashes at its end; malloc'ed. */
static char *trim_path(const char *path) {
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    return strndup(path, length);
}

/* The folder's name while it is being written; malloc'ed. */
static char *temporary_name(const char *path) {
    ev_str name = EV_STR_EMPTY;
    ev_str_printf(&name, "%s.new-%ld", path, (long)getpid());
    return ev_str_take(&name);
}

/* Tries it: permissions alone do not say whether a folder can be made. */
static ev_status check_parent(const char *path, ev_error *err) {
    char *name = temporary_name(path);
    if (name == NULL)
        return ev_fail_memory(err, strlen(path));
    int code = mkdir(name, 0777) == 0 ? 0 : errno;
    if (code == 0)
        (void)rmdir(name);
    free(name);
    char reason[128];
    if (code != 0)
        return ev_fail(
            err, EV_BAD,
            "cannot write the bundle %s: no folder can be made there (%s); choose another "
            "place",
            path, strerror_r(code, reason, sizeof reason));
    return EV_OK;
}

ev_status bundle_check_target(const char *path, ev_error *err) {
    char *trimmed = trim_path(path);
    if (trimmed == NULL)
        return ev_fail_memory(err, strlen(path));
    ev_status status = check_parent(trimmed, err);
    bool as_tar = bundle_is_tar_name(trimmed);
    bool taken = ev_path_exists(trimmed) && (as_tar || !is_empty_dir(trimmed)) &&
                 !is_bundle(trimmed, as_tar);
    if (status == EV_OK && taken)
        status = ev_fail(err, EV_BAD,
                         "cannot write the bundle %s: something else is there; choose another name",
                         path);
    free(trimmed);
    return status;
}

/* ---- the files ---- */

static ev_status write_file(const char *folder, const char *path, const void *data, size_t bytes,
                            ev_error *err) {
    char *whole = ev_path_join(folder, path);
    char *parent = whole != NULL ? ev_path_dir(whole) : NULL;
    ev_status status =
        parent == NULL ? ev_fail_memory(err, strlen(path)) : ev_dir_make(parent, err);
    if (status == EV_OK)
        status = ev_file_write(whole, data, bytes, err);
    free(parent);
    free(whole);
    return status;
}

/* All files of a bundle, sorted. */
typedef struct listing {
    ev_arena *arena;
    const sign_key *key; /* NULL: no signature */
    bundle_file *files;
    size_t count;
} listing;

static void list_variants(listing *l, const bundle_variant *variants, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const bundle_variant *v = &variants[i];
        const char *path =
            ev_arena_printf(l->arena, "kernels/%s.ptx", ev_sha256_of(v->ptx, v->ptx_bytes).hex);
        l->files[l->count++] = (bundle_file){path, v->ptx, v->ptx_bytes};
        for (size_t c = 0; c < v->cubin_count; c++) {
            const bundle_cubin *code = &v->cubins[c];
            path = ev_arena_printf(l->arena, "kernels/%s.cubin",
                                   ev_sha256_of(code->data, code->bytes).hex);
            l->files[l->count++] = (bundle_file){path, code->data, code->bytes};
        }
    }
}

static size_t count_code(const bundle_variant *variants, size_t count) {
    size_t files = count;
    for (size_t i = 0; i < count; i++)
        files += variants[i].cubin_count;
    return files;
}

static size_t most_files(const bundle_content *content) {
    size_t most = content->file_count + 2; /* manifest and signature */
    for (size_t i = 0; i < content->kernel_count; i++) {
        const bundle_kernel *k = &content->kernels[i];
        most += count_code(k->baselines, k->baseline_count) +
                count_code(k->variants, k->variant_count) + count_code(k->starts, k->start_count);
    }
    return most;
}

static ev_status list_signature(listing *l, const char *manifest, ev_error *err) {
    char signature[SIGN_HEX];
    EV_TRY(sign_make(l->key, manifest, strlen(manifest), signature, err));
    char *line = ev_arena_printf(l->arena, "ed25519 %s %s\n", sign_key_public(l->key), signature);
    if (line == NULL)
        return ev_fail_memory(err, sizeof signature);
    l->files[l->count++] = (bundle_file){BUNDLE_SIGNATURE, line, strlen(line)};
    return EV_OK;
}

static ev_status list_manifest(listing *l, const bundle_content *content, ev_error *err) {
    json_t *manifest = NULL;
    EV_TRY(manifest_make(content, l->key != NULL ? sign_key_public(l->key) : NULL, &manifest, err));
    char *text = ev_json_print(manifest, false);
    json_decref(manifest);
    char *kept = text != NULL ? ev_arena_printf(l->arena, "%s\n", text) : NULL;
    free(text);
    if (kept == NULL)
        return ev_fail_memory(err, 1);
    l->files[l->count++] = (bundle_file){"manifest.json", kept, strlen(kept)};
    return l->key != NULL ? list_signature(l, kept, err) : EV_OK;
}

static int compare_files(const void *a, const void *b) {
    return strcmp(((const bundle_file *)a)->path, ((const bundle_file *)b)->path);
}

/* Variants of equal code share a file. */
static void sort_files(listing *l) {
    size_t kept = 0;
    qsort(l->files, l->count, sizeof *l->files, compare_files);
    for (size_t i = 0; i < l->count; i++) {
        if (i == 0 || strcmp(l->files[i].path, l->files[kept - 1].path) != 0)
            l->files[kept++] = l->files[i];
    }
    l->count = kept;
}

static ev_status list_all(listing *l, const bundle_content *content, ev_error *err) {
    l->files = EV_NEW_ARRAY(l->arena, bundle_file, most_files(content));
    if (l->files == NULL)
        return ev_fail_memory(err, most_files(content) * sizeof *l->files);
    for (size_t i = 0; i < content->file_count; i++)
        l->files[l->count++] = content->files[i];
    for (size_t i = 0; i < content->kernel_count; i++) {
        const bundle_kernel *k = &content->kernels[i];
        list_variants(l, k->baselines, k->baseline_count);
        list_variants(l, k->variants, k->variant_count);
        list_variants(l, k->starts, k->start_count);
    }
    EV_TRY(list_manifest(l, content, err));
    if (ev_arena_failed(l->arena))
        return ev_fail_memory(err, ev_arena_bytes(l->arena));
    sort_files(l);
    for (size_t i = 0; i < l->count; i++) {
        if (!tar_path_is_inside(l->files[i].path))
            return ev_fail(err, EV_BAD, "%s: the path leads out of the bundle", l->files[i].path);
    }
    return EV_OK;
}

/* ---- writing ---- */

static ev_status write_files(const char *folder, const listing *l, ev_error *err) {
    for (size_t i = 0; i < l->count; i++)
        EV_TRY(write_file(folder, l->files[i].path, l->files[i].data, l->files[i].bytes, err));
    return EV_OK;
}

static ev_status write_and_place(const char *path, const char *folder, const listing *l,
                                 ev_error *err) {
    EV_TRY(ev_dir_make(folder, err));
    ev_status status = write_files(folder, l, err);
    if (status == EV_OK)
        status = ev_dir_replace(folder, path, err);
    if (status != EV_OK && ev_dir_remove(folder, NULL) != EV_OK)
        status = ev_wrap(err, status, "%s is left over", folder);
    return status;
}

static ev_status write_folder(const char *path, const listing *l, ev_error *err) {
    char *folder = temporary_name(path);
    ev_status status =
        folder == NULL ? ev_fail_memory(err, strlen(path)) : write_and_place(path, folder, l, err);
    free(folder);
    return status;
}

static ev_status write_tar(const char *path, const listing *l, ev_error *err) {
    ev_str tar = EV_STR_EMPTY;
    ev_status status = EV_OK;
    for (size_t i = 0; i < l->count && status == EV_OK; i++)
        status = tar_add(&tar, l->files[i].path, l->files[i].data, l->files[i].bytes, err);
    tar_end(&tar);
    if (status == EV_OK)
        status = ev_str_status(&tar, err);
    if (status == EV_OK)
        status = ev_file_write(path, ev_str_text(&tar), tar.length, err);
    ev_str_free(&tar);
    return status;
}

ev_status bundle_write_signed(const char *path, const bundle_content *content, const sign_key *key,
                              ev_error *err) {
    EV_TRY(bundle_check_target(path, err));
    listing l = {.arena = ev_arena_new(), .key = key};
    char *trimmed = trim_path(path);
    ev_status status = l.arena == NULL || trimmed == NULL ? ev_fail_memory(err, strlen(path))
                                                          : list_all(&l, content, err);
    if (status == EV_OK)
        status = bundle_is_tar_name(trimmed) ? write_tar(trimmed, &l, err)
                                             : write_folder(trimmed, &l, err);
    free(trimmed);
    ev_arena_free(l.arena);
    return status;
}

ev_status bundle_write(const char *path, const bundle_content *content, ev_error *err) {
    return bundle_write_signed(path, content, NULL, err);
}
