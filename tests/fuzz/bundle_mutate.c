/* Mutations of a tar: its members are taken apart, changed, and put together again. */
#include "tests/fuzz/bundle_mutate.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/str.h"
#include "bundle/tar.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK 512u
#define MOST_MEMBERS 64
#define SIZE_AT 124
#define SUM_AT 148
#define TYPE_AT 156
#define LINK_AT 157

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);

typedef struct member {
    const char *path;
    const char *data;
    size_t bytes;
    char type;         /* '\0': a regular file */
    const char *size;  /* octal digits in place of the right ones; NULL: the right ones */
    const char *place; /* a hostile path in place of `path`; NULL: none */
} member;

typedef struct archive {
    ev_arena *arena;
    member members[MOST_MEMBERS];
    size_t count;
} archive;

static const char *const hostile_paths[] = {
    "../outside", "/tmp/evoke-outside", "a/../../outside", "./kernels", "kernels//x",
    "..",         "kernels/",           "manifest.json",   "a\x1b[2Jb", "tasks/add/task.json/x"};
static const char *const hostile_sizes[] = {"77777777777", "00000000000",          "8",
                                            "           ", "\x80\xff\xff\xff\xff", "00000001000"};

#define PICK(rng, list) ((list)[ev_pcg_below((rng), sizeof(list) / sizeof *(list))])

/* ---- apart ---- */

static bool take_apart(archive *a, const uint8_t *data, size_t size) {
    tar_member *found = NULL;
    size_t count = 0;
    if (!tar_is(data, size) || tar_read("fuzz", data, size, &found, &count, NULL) != EV_OK)
        return false;
    for (size_t i = 0; i < count && a->count < MOST_MEMBERS / 2; i++)
        a->members[a->count++] =
            (member){.path = ev_arena_strdup(a->arena, found[i].path),
                     .data = ev_arena_copy(a->arena, found[i].data, found[i].bytes),
                     .bytes = found[i].bytes};
    free(found);
    return a->count > 0;
}

/* ---- changes ---- */

static member *manifest_of(archive *a) {
    for (size_t i = 0; i < a->count; i++) {
        if (strcmp(a->members[i].path, "manifest.json") == 0)
            return &a->members[i];
    }
    return NULL;
}

static json_t *parse(const member *m) {
    return m != NULL ? json_loadb(m->data, m->bytes, 0, NULL) : NULL;
}

static void keep_text(archive *a, member *m, json_t *root) {
    char *text = json_dumps(root, JSON_COMPACT);
    if (text != NULL) {
        m->data = ev_arena_strdup(a->arena, text);
        m->bytes = strlen(text);
    }
    free(text);
}

static void change_manifest(archive *a, ev_pcg *rng) {
    member *m = manifest_of(a);
    json_t *root = parse(m);
    if (root == NULL)
        return;
    for (uint32_t left = 1 + ev_pcg_below(rng, 3); left > 0; left--)
        bundle_mutate_json(root, rng);
    keep_text(a, m, root);
    json_decref(root);
}

static void change_bytes(archive *a, member *m) {
    size_t room = m->bytes + 64;
    uint8_t *copy = ev_arena_alloc(a->arena, room + 1);
    memcpy(copy, m->data, m->bytes);
    m->bytes = LLVMFuzzerMutate(copy, m->bytes, room);
    m->data = (const char *)copy;
}

static void change_members(archive *a, ev_pcg *rng) {
    member *m = &a->members[ev_pcg_below(rng, (uint32_t)a->count)];
    switch (ev_pcg_below(rng, 6)) {
    case 0:
        a->members[a->count++] = *m;
        break;
    case 1:
        *m = a->members[--a->count];
        break;
    case 2:
        m->place = PICK(rng, hostile_paths);
        break;
    case 3:
        m->type = "123456SLKxgDM7"[ev_pcg_below(rng, 14)];
        break;
    case 4:
        m->size = PICK(rng, hostile_sizes);
        break;
    default:
        m->bytes = ev_pcg_below(rng, (uint32_t)m->bytes + 1);
    }
}

/* The manifest's list says what the members are, and PTX is named by its hash. */
static void put_right(archive *a) {
    member *m = manifest_of(a);
    for (size_t i = 0; m != NULL && i < a->count; i++) {
        member *f = &a->members[i];
        char *at = NULL;
        const char *hash = ev_arena_strdup(a->arena, ev_sha256_of(f->data, f->bytes).hex);
        if (strncmp(f->path, "kernels/", 8) != 0 || strlen(f->path) < 8 + 64)
            continue;
        const char *old = ev_arena_strndup(a->arena, f->path + 8, 64);
        char *all = ev_arena_strndup(a->arena, m->data, m->bytes);
        for (at = all; (at = strstr(at, old)) != NULL; at += 64)
            memcpy(at, hash, 64);
        m->data = all;
        m->bytes = strlen(all);
        f->path = ev_arena_printf(a->arena, "kernels/%s%s", hash, f->path + 8 + 64);
    }
    json_t *root = parse(m);
    json_t *files = json_object_get(root, "files");
    for (size_t i = 0; json_is_object(files) && i < a->count; i++) {
        const member *f = &a->members[i];
        if (f != m)
            (void)json_object_set_new(files, f->path,
                                      json_pack("{s:s, s:I}", "sha256",
                                                ev_sha256_of(f->data, f->bytes).hex, "bytes",
                                                (json_int_t)f->bytes));
    }
    if (root != NULL)
        keep_text(a, m, root);
    json_decref(root);
}

/* ---- together ---- */

static void set_sum(char *header) {
    unsigned sum = 0;
    memset(header + SUM_AT, ' ', 8);
    for (size_t i = 0; i < BLOCK; i++)
        sum += (unsigned char)header[i];
    (void)snprintf(header + SUM_AT, 8, "%06o", sum);
    header[SUM_AT + 7] = ' ';
}

static void spoil_header(char *header, const member *m) {
    if (m->place != NULL) {
        memset(header, 0, 100);
        memcpy(header, m->place, strlen(m->place));
    }
    if (m->type != '\0') {
        header[TYPE_AT] = m->type;
        memcpy(header + LINK_AT, "/tmp/evoke-outside", sizeof "/tmp/evoke-outside");
    }
    if (m->size != NULL)
        memcpy(header + SIZE_AT, m->size, strlen(m->size));
    set_sum(header);
}

static size_t put_together(const archive *a, uint8_t *data, size_t room) {
    ev_str tar = EV_STR_EMPTY;
    size_t made = 0;
    for (size_t i = 0; i < a->count; i++) {
        size_t at = tar.length;
        if (tar_add(&tar, a->members[i].path, a->members[i].data, a->members[i].bytes, NULL) ==
                EV_OK &&
            tar.length > at)
            spoil_header(tar.data + at, &a->members[i]);
    }
    tar_end(&tar);
    if (ev_str_status(&tar, NULL) == EV_OK && tar.length <= room) {
        memcpy(data, ev_str_text(&tar), tar.length);
        made = tar.length;
    }
    ev_str_free(&tar);
    return made;
}

size_t bundle_mutate(uint8_t *data, size_t size, size_t room, ev_pcg *rng) {
    archive a = {.arena = ev_arena_new()};
    size_t made = 0;
    if (a.arena != NULL && take_apart(&a, data, size)) {
        uint32_t what = ev_pcg_below(rng, 20);
        bool is_raw = false;
        if (what < 13) {
            change_manifest(&a, rng);
        } else if (what < 15 && manifest_of(&a) != NULL) {
            change_bytes(&a, manifest_of(&a));
            is_raw = true;
        } else if (what < 17) {
            change_bytes(&a, &a.members[ev_pcg_below(rng, (uint32_t)a.count)]);
        } else {
            change_members(&a, rng);
        }
        if (!is_raw && ev_pcg_below(rng, 8) != 0)
            put_right(&a);
        made = a.count > 0 ? put_together(&a, data, room) : 0;
    }
    ev_arena_free(a.arena);
    return made;
}
