/* Recorded data: checks a file's form, and copies its elements. */
#include "corpora/recorded.h"

#include "base/file.h"
#include "corpora/npy.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_npy(const char *path) {
    size_t length = strlen(path);
    return length > 4 && strcmp(path + length - 4, ".npy") == 0;
}

/* *offset: of the first element. `begin`: the file's first bytes, `size`: of the whole file. */
static ev_status check_form(const char *path, ev_type type, uint64_t count, const void *begin,
                            size_t length, uint64_t size, uint64_t *offset, ev_error *err) {
    npy_header header = {0, count};
    uint64_t bytes = count * ev_type_bytes(type);
    if (is_npy(path))
        EV_TRY(npy_header_read(path, begin, length, type, &header, err));
    if (header.count != count)
        return ev_fail(err, EV_BAD,
                       "%s: its shape has %llu elements, and the buffer has %llu; save an array of "
                       "that size, or correct the \"count\"",
                       path, (unsigned long long)header.count, (unsigned long long)count);
    if (size - header.offset != bytes)
        return ev_fail(err, EV_BAD,
                       "%s: it has %llu bytes of elements, and %llu %s are %llu; save it again, in "
                       "that type",
                       path, (unsigned long long)(size - header.offset), (unsigned long long)count,
                       ev_type_name(type), (unsigned long long)bytes);
    *offset = header.offset;
    return EV_OK;
}

ev_status recorded_check(const char *path, ev_type type, uint64_t count, ev_error *err) {
    char begin[NPY_HEADER_MOST];
    struct stat facts;
    FILE *file = fopen(path, "rb");
    if (file == NULL || fstat(fileno(file), &facts) != 0 || !S_ISREG(facts.st_mode)) {
        if (file != NULL)
            (void)fclose(file);
        return ev_fail(err, EV_BAD,
                       "%s: there is no such file; a path is relative to the task's folder", path);
    }
    size_t length = fread(begin, 1, sizeof begin, file);
    bool failed = ferror(file) != 0;
    (void)fclose(file);
    uint64_t offset = 0;
    if (failed)
        return ev_fail(err, EV_INFRA, "%s cannot be read", path);
    return check_form(path, type, count, begin, length, (uint64_t)facts.st_size, &offset, err);
}

ev_status recorded_hash(corpus_recorded *file, ev_error *err) {
    char *data = NULL;
    size_t bytes = 0;
    EV_TRY(ev_file_read(file->path, &data, &bytes, err));
    file->sha256 = ev_sha256_of(data, bytes);
    free(data);
    return EV_OK;
}

static ev_status copy(const corpus_recorded *file, ev_type type, uint64_t elements, uint64_t first,
                      uint64_t count, const char *data, size_t size, void *out, ev_error *err) {
    uint64_t offset = 0;
    ev_sha256 now = ev_sha256_of(data, size);
    EV_TRY(check_form(file->path, type, elements, data, size, size, &offset, err));
    if (!ev_sha256_equal(&now, &file->sha256))
        return ev_fail(err, EV_BAD,
                       "%s: it is another file than when the task was loaded; begin again",
                       file->path);
    size_t element = ev_type_bytes(type);
    memcpy(out, data + offset + first * element, (size_t)count * element);
    return EV_OK;
}

ev_status recorded_fill(const corpus_recorded *file, ev_type type, uint64_t length, uint64_t first,
                        uint64_t count, void *out, ev_error *err) {
    char *data = NULL;
    size_t size = 0;
    EV_TRY(ev_file_read(file->path, &data, &size, err));
    ev_status status = copy(file, type, length, first, count, data, size, out, err);
    free(data);
    return status;
}
