/* Writes a bundle's folder: all of it beside its place, then into its place by a rename. */
#include "bundle/bundle.h"

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "bundle/manifest.h"

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

static bool is_bundle(const char *path) {
    char *manifest = ev_path_join(path, "manifest.json");
    ev_json *doc = NULL;
    bool is = manifest != NULL && ev_json_load(manifest, &doc, NULL) == EV_OK &&
              strcmp(ev_json_text(doc->root, "schema", ""), BUNDLE_SCHEMA) == 0;
    ev_json_free(doc);
    free(manifest);
    return is;
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
    bool taken = ev_path_exists(trimmed) && !is_empty_dir(trimmed) && !is_bundle(trimmed);
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

static ev_status write_variants(const char *folder, const bundle_variant *variants, size_t count,
                                ev_error *err) {
    for (size_t i = 0; i < count; i++) {
        ev_str path = EV_STR_EMPTY;
        ev_str_printf(&path, "kernels/%s.ptx",
                      ev_sha256_of(variants[i].ptx, variants[i].ptx_bytes).hex);
        ev_status status = ev_str_status(&path, err);
        if (status == EV_OK)
            status =
                write_file(folder, ev_str_text(&path), variants[i].ptx, variants[i].ptx_bytes, err);
        ev_str_free(&path);
        EV_TRY(status);
    }
    return EV_OK;
}

static ev_status write_manifest(const char *folder, const bundle_content *content, ev_error *err) {
    json_t *manifest = NULL;
    EV_TRY(manifest_make(content, &manifest, err));
    char *text = ev_json_print(manifest, false);
    json_decref(manifest);
    ev_str all = EV_STR_EMPTY;
    if (text != NULL) {
        ev_str_append(&all, text);
        ev_str_char(&all, '\n');
    }
    ev_status status = text == NULL ? ev_fail_memory(err, 1) : ev_str_status(&all, err);
    if (status == EV_OK)
        status = write_file(folder, "manifest.json", ev_str_text(&all), all.length, err);
    ev_str_free(&all);
    free(text);
    return status;
}

static ev_status write_all(const char *folder, const bundle_content *content, ev_error *err) {
    for (size_t i = 0; i < content->file_count; i++)
        EV_TRY(write_file(folder, content->files[i].path, content->files[i].data,
                          content->files[i].bytes, err));
    for (size_t i = 0; i < content->kernel_count; i++) {
        const bundle_kernel *k = &content->kernels[i];
        EV_TRY(write_variants(folder, k->baselines, k->baseline_count, err));
        EV_TRY(write_variants(folder, k->variants, k->variant_count, err));
        EV_TRY(write_variants(folder, k->starts, k->start_count, err));
    }
    return write_manifest(folder, content, err);
}

static ev_status write_and_place(const char *path, const char *folder,
                                 const bundle_content *content, ev_error *err) {
    EV_TRY(ev_dir_make(folder, err));
    ev_status status = write_all(folder, content, err);
    if (status == EV_OK)
        status = ev_dir_replace(folder, path, err);
    if (status != EV_OK && ev_dir_remove(folder, NULL) != EV_OK)
        status = ev_wrap(err, status, "%s is left over", folder);
    return status;
}

ev_status bundle_write(const char *path, const bundle_content *content, ev_error *err) {
    EV_TRY(bundle_check_target(path, err));
    char *trimmed = trim_path(path);
    char *folder = trimmed != NULL ? temporary_name(trimmed) : NULL;
    ev_status status = folder == NULL ? ev_fail_memory(err, strlen(path))
                                      : write_and_place(trimmed, folder, content, err);
    free(folder);
    free(trimmed);
    return status;
}
