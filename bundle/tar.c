/* Tar: reads and writes ustar archives of regular files; refuses everything else by name. */
#include "bundle/tar.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 512u

/* The header block; numbers are octal digits, and a NUL or a space behind them. */
typedef struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8];
    char type;
    char link[100], magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155];
    char rest[12];
} header;

_Static_assert(sizeof(header) == BLOCK, "a header is one block");

static const char zeros[BLOCK];

bool tar_path_is_inside(const char *path) {
    if (path[0] == '\0' || path[0] == '/')
        return false;
    for (const char *part = path; part != NULL; part = strchr(part, '/')) {
        part += *part == '/';
        size_t length = strcspn(part, "/");
        bool is_dots = length <= 2 && strncmp(part, "..", length) == 0;
        if (is_dots) /* an empty part, too */
            return false;
    }
    return true;
}

/* ---- numbers and sums ---- */

/* False: something else than octal digits. */
static bool octal_of(const char *field, size_t length, uint64_t *out) {
    size_t at = 0, digits = 0;
    uint64_t value = 0;
    while (at < length && field[at] == ' ')
        at++;
    for (; at < length && field[at] >= '0' && field[at] <= '7'; at++, digits++)
        value = value * 8 + (uint64_t)(field[at] - '0');
    for (; at < length; at++) {
        if (field[at] != ' ' && field[at] != '\0')
            return false;
    }
    *out = value;
    return digits > 0;
}

static void set_octal(char *field, size_t length, uint64_t value) {
    for (size_t at = length - 1; at-- > 0; value /= 8)
        field[at] = (char)('0' + value % 8);
    field[length - 1] = '\0';
}

/* Of all bytes, with spaces in place of the sum itself. */
static uint64_t sum_of(const header *h) {
    const unsigned char *bytes = (const unsigned char *)h;
    const size_t from = offsetof(header, checksum), to = from + sizeof h->checksum;
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof *h; i++)
        sum += i >= from && i < to ? ' ' : bytes[i];
    return sum;
}

/* ---- reading ---- */

bool tar_is(const void *data, size_t bytes) {
    return bytes >= BLOCK && memcmp((const char *)data + offsetof(header, magic), "ustar", 5) == 0;
}

static const char *type_in_words(char type) {
    switch (type) {
    case '1':
        return "a hard link";
    case '2':
        return "a symbolic link";
    case '3':
    case '4':
        return "a device";
    case '5':
        return "a folder";
    case '6':
        return "a pipe";
    case 'S':
        return "a sparse file";
    case 'L':
    case 'K':
    case 'x':
    case 'g':
        return "an extension of the format";
    default:
        return "a member of an unknown type";
    }
}

typedef struct walk {
    const char *name;
    const char *data;
    size_t bytes, at;
    tar_member *members;
    size_t count, room;
    ev_error *err;
} walk;

static ev_status fail(const walk *w, const char *path, const char *what) {
    return ev_fail(w->err, EV_BAD, "%s is no bundle: its member '%.256s' %s", w->name, path, what);
}

static void path_of(const header *h, char out[TAR_PATH]) {
    int prefix = (int)strnlen(h->prefix, sizeof h->prefix);
    (void)snprintf(out, TAR_PATH, "%.*s%s%.*s", prefix, h->prefix, prefix > 0 ? "/" : "",
                   (int)strnlen(h->name, sizeof h->name), h->name);
}

static ev_status check_header(const walk *w, const header *h, const char *path, uint64_t *size) {
    uint64_t sum = 0;
    if (memcmp(h->magic, "ustar", 6) != 0 && memcmp(h->magic, "ustar ", 6) != 0)
        return fail(w, path, "has no header of the ustar format");
    if (!octal_of(h->checksum, sizeof h->checksum, &sum) || sum != sum_of(h))
        return fail(w, path, "has a damaged header: its check sum is wrong");
    if (h->type != '0' && h->type != '\0') {
        char what[96];
        (void)snprintf(what, sizeof what, "is %s; a bundle holds regular files alone",
                       type_in_words(h->type));
        return fail(w, path, what);
    }
    if (!tar_path_is_inside(path))
        return fail(w, path, "leads out of the bundle");
    if (!octal_of(h->size, sizeof h->size, size))
        return fail(w, path, "has a size that is no octal number");
    if (*size > w->bytes - w->at)
        return fail(w, path,
                    "is longer than the rest of the file: the tar is cut off, or its size "
                    "is a lie");
    return EV_OK;
}

static ev_status grow(walk *w) {
    size_t room = w->room == 0 ? 16 : w->room * 2;
    tar_member *more = realloc(w->members, room * sizeof *more);
    if (more == NULL)
        return ev_fail_memory(w->err, room * sizeof *more);
    w->members = more;
    w->room = room;
    return EV_OK;
}

static ev_status read_member(walk *w) {
    header h;
    uint64_t size = 0;
    memcpy(&h, w->data + w->at, sizeof h);
    w->at += BLOCK;
    if (w->count == w->room)
        EV_TRY(grow(w));
    tar_member *m = &w->members[w->count];
    path_of(&h, m->path);
    EV_TRY(check_header(w, &h, m->path, &size));
    m->data = w->data + w->at;
    m->bytes = (size_t)size;
    w->count++;
    size_t padded = (size_t)((size + BLOCK - 1) / BLOCK * BLOCK);
    if (padded > w->bytes - w->at)
        return fail(w, m->path, "is cut off");
    w->at += padded;
    return EV_OK;
}

static bool is_zero(const walk *w, size_t at) {
    return memcmp(w->data + at, zeros, BLOCK) == 0;
}

/* Two blocks of zeros, and nothing but zeros behind them. */
static ev_status check_end(const walk *w) {
    if (w->bytes - w->at < (size_t)2 * BLOCK)
        return ev_fail(w->err, EV_BAD, "%s is no whole tar: it is cut off at its end", w->name);
    for (size_t at = w->at; at < w->bytes; at += BLOCK) {
        if (w->bytes - at < BLOCK || !is_zero(w, at))
            return ev_fail(w->err, EV_BAD, "%s is no bundle: there is something behind its end",
                           w->name);
    }
    return EV_OK;
}

static int compare_members(const void *a, const void *b) {
    return strcmp(((const tar_member *)a)->path, ((const tar_member *)b)->path);
}

static ev_status read_members(walk *w) {
    while (w->bytes - w->at >= BLOCK && !is_zero(w, w->at))
        EV_TRY(read_member(w));
    EV_TRY(check_end(w));
    if (w->count > 0)
        qsort(w->members, w->count, sizeof *w->members, compare_members);
    for (size_t i = 1; i < w->count; i++) {
        if (strcmp(w->members[i - 1].path, w->members[i].path) == 0)
            return fail(w, w->members[i].path, "is there twice");
    }
    return EV_OK;
}

ev_status tar_read(const char *name, const void *data, size_t bytes, tar_member **out,
                   size_t *count, ev_error *err) {
    walk w = {.name = name, .data = data, .bytes = bytes, .err = err};
    ev_status status = read_members(&w);
    if (status != EV_OK) {
        free(w.members);
        return status;
    }
    *out = w.members;
    *count = w.count;
    return EV_OK;
}

/* ---- writing ---- */

/* Splits a long path at a '/', as the format asks. */
static bool set_path(header *h, const char *path) {
    size_t length = strlen(path);
    if (length <= sizeof h->name) {
        memcpy(h->name, path, length);
        return true;
    }
    for (size_t i = 0; i < length && i <= sizeof h->prefix; i++) {
        if (path[i] == '/' && i > 0 && length - i - 1 <= sizeof h->name) {
            memcpy(h->prefix, path, i);
            memcpy(h->name, path + i + 1, length - i - 1);
            return true;
        }
    }
    return false;
}

ev_status tar_add(ev_str *tar, const char *path, const void *data, size_t bytes, ev_error *err) {
    header h = {.type = '0', .magic = "ustar", .version = {'0', '0'}};
    if (!set_path(&h, path))
        return ev_fail(err, EV_BAD, "the path %.300s is too long for a tar; shorten the name",
                       path);
    if (bytes >> 33 != 0)
        return ev_fail(err, EV_BAD, "%s: a tar holds files below 8 GiB alone", path);
    set_octal(h.mode, sizeof h.mode, 0644);
    set_octal(h.uid, sizeof h.uid, 0);
    set_octal(h.gid, sizeof h.gid, 0);
    set_octal(h.size, sizeof h.size, bytes);
    set_octal(h.mtime, sizeof h.mtime, 0);
    set_octal(h.major, sizeof h.major, 0);
    set_octal(h.minor, sizeof h.minor, 0);
    set_octal(h.checksum, sizeof h.checksum - 1, sum_of(&h));
    h.checksum[sizeof h.checksum - 1] = ' ';
    ev_str_append_n(tar, (const char *)&h, sizeof h);
    ev_str_append_n(tar, data, bytes);
    ev_str_append_n(tar, zeros, (BLOCK - bytes % BLOCK) % BLOCK);
    return EV_OK;
}

void tar_end(ev_str *tar) {
    ev_str_append_n(tar, zeros, BLOCK);
    ev_str_append_n(tar, zeros, BLOCK);
}
