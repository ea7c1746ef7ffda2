/* Fat binaries: the containers in which nvcc packs PTX texts and machine code for several targets.
 *
 *   container  16 bytes (magic, version, bytes of this header, bytes of all that follows), entries
 *   entry      a header, then the payload: kind (1: PTX, 2: machine code), target, flags, sizes
 *   wrapper    what host code holds: magic, version, the address of the container
 *
 * Texts may be compressed: as a block of LZ4 (flag 0x2000), or of Zstandard (0x8000, what nvcc 13
 * does unless told otherwise), for which the machine's libzstd.so.1 is asked. */
#include "fitness/device/standin/standin.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define CONTAINER_MAGIC 0xba55ed50u
#define WRAPPER_MAGIC 0x466243b1u
#define KIND_PTX 1
#define FLAG_LZ4 0x2000u
#define FLAG_ZSTD 0x8000u
#define TEXT_MOST (UINT64_C(1) << 30)
#define CONTAINER_MOST (UINT64_C(1) << 40)

enum { CONTAINER_BYTES = 16, ENTRY_BYTES = 64 };

/* All numbers are little-endian, and so is every host that this project builds for. */
static uint64_t number_at(const uint8_t *at, unsigned bytes) {
    uint64_t value = 0;
    memcpy(&value, at, bytes);
    return value;
}

typedef struct entry {
    unsigned kind;
    int sm;
    uint64_t flags;
    const uint8_t *payload;
    uint64_t bytes;        /* of the payload, as it stands there */
    uint64_t text_bytes;   /* once it is unpacked; 0: it is not packed */
    const uint8_t *behind; /* where the next one begins */
} entry;

/* False: no whole entry stands between `at` and `end`. */
static bool read_entry(const uint8_t *at, const uint8_t *end, entry *out) {
    if (end - at < ENTRY_BYTES)
        return false;
    uint64_t header = number_at(at + 4, 4), payload = number_at(at + 8, 8);
    uint64_t packed = number_at(at + 16, 4), room = (uint64_t)(end - at);
    if (header < ENTRY_BYTES || header > room || payload > room - header || packed > payload)
        return false;
    *out = (entry){.kind = (unsigned)number_at(at, 2),
                   .sm = (int)number_at(at + 28, 2),
                   .flags = number_at(at + 40, 8),
                   .payload = at + header,
                   .bytes = packed != 0 ? packed : payload,
                   .text_bytes = number_at(at + 56, 8),
                   .behind = at + header + payload};
    return true;
}

/* ---- LZ4: sequences of a token, literals, and a match behind (LZ4 Block Format Description) */

typedef struct lz4 {
    const uint8_t *at, *end;
    uint8_t *to, *begin, *to_end;
} lz4;

/* 15 in the token: bytes of 255 follow, and one that is less. */
static bool read_length(lz4 *z, uint64_t *length) {
    for (unsigned more = *length == 15 ? 255 : 0; more == 255; *length += more) {
        if (z->at == z->end)
            return false;
        more = *z->at++;
    }
    return true;
}

static bool copy_literals(lz4 *z, uint64_t count) {
    if (count > (uint64_t)(z->end - z->at) || count > (uint64_t)(z->to_end - z->to))
        return false;
    memcpy(z->to, z->at, count);
    z->to += count;
    z->at += count;
    return true;
}

/* A match may overlap what it writes. */
static bool copy_match(lz4 *z, uint64_t count) {
    if (z->end - z->at < 2)
        return false;
    uint64_t offset = number_at(z->at, 2);
    z->at += 2;
    if (!read_length(z, &count) || offset == 0 || offset > (uint64_t)(z->to - z->begin) ||
        count + 4 > (uint64_t)(z->to_end - z->to))
        return false;
    for (count += 4; count > 0; count--, z->to++)
        *z->to = *(z->to - offset);
    return true;
}

static bool unpack_lz4(const entry *e, uint8_t *text) {
    lz4 z = {e->payload, e->payload + e->bytes, text, text, text + e->text_bytes};
    while (z.at < z.end) {
        unsigned token = *z.at++;
        uint64_t literals = token >> 4;
        if (!read_length(&z, &literals) || !copy_literals(&z, literals))
            return false;
        if (z.at < z.end && !copy_match(&z, token & 15))
            return false;
    }
    return z.to == z.to_end;
}

/* ---- Zstandard, by the machine's library */

typedef size_t zstd_decompress(void *to, size_t room, const void *from, size_t bytes);

static bool unpack_zstd(const entry *e, uint8_t *text) {
    static void *library;
    zstd_decompress *decompress = NULL;
    if (library == NULL)
        library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    void *found = library != NULL ? dlsym(library, "ZSTD_decompress") : NULL;
    memcpy(&decompress, &found, sizeof found);
    if (decompress == NULL) {
        sd_say(
            "a fat binary packed with Zstandard: there is no libzstd.so.1 here; install libzstd1, "
            "or compile with nvcc --compress-mode=speed");
        return false;
    }
    return decompress(text, e->text_bytes, e->payload, e->bytes) == e->text_bytes;
}

/* ---- the text for a device */

static CUresult unpack(const entry *e, char **text) {
    uint64_t bytes = e->flags & (FLAG_LZ4 | FLAG_ZSTD) ? e->text_bytes : e->bytes;
    if (bytes > TEXT_MOST)
        return CUDA_ERROR_INVALID_IMAGE;
    uint8_t *made = calloc(1, bytes + 1);
    bool ok = made != NULL;
    if (ok && e->flags & FLAG_LZ4)
        ok = unpack_lz4(e, made);
    else if (ok && e->flags & FLAG_ZSTD)
        ok = unpack_zstd(e, made);
    else if (ok)
        memcpy(made, e->payload, bytes);
    *text = (char *)made;
    if (ok)
        return CUDA_SUCCESS;
    *text = NULL;
    CUresult result = made == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_IMAGE;
    free(made);
    return result;
}

/* No byte is read behind the first that differs: a text may be shorter than the magic. */
static bool begins_with(const uint8_t *at, uint32_t magic) {
    for (unsigned i = 0; i < 4; i++) {
        if (at[i] != (uint8_t)(magic >> (8 * i)))
            return false;
    }
    return true;
}

bool sd_is_fatbin(const void *image) {
    return begins_with(image, CONTAINER_MAGIC) || begins_with(image, WRAPPER_MAGIC);
}

CUresult sd_fatbin_text(const void *image, size_t room, int sm, char **text) {
    const uint8_t *at = image;
    if (begins_with(at, WRAPPER_MAGIC)) {
        memcpy(&at, at + 8, sizeof at);
        if (at == NULL || !begins_with(at, CONTAINER_MAGIC))
            return CUDA_ERROR_INVALID_IMAGE;
    }
    if (room < CONTAINER_BYTES)
        return CUDA_ERROR_INVALID_IMAGE;
    uint64_t header = number_at(at + 6, 2), bytes = number_at(at + 8, 8);
    if (header < CONTAINER_BYTES || header > room || bytes > room - header ||
        bytes > CONTAINER_MOST)
        return CUDA_ERROR_INVALID_IMAGE;
    entry e, best = {0};
    const uint8_t *end = at + header + bytes;
    for (at += header; read_entry(at, end, &e); at = e.behind) {
        if (e.kind == KIND_PTX && e.sm <= sm && e.sm > best.sm)
            best = e;
    }
    if (at != end)
        return CUDA_ERROR_INVALID_IMAGE;
    return best.sm > 0 ? unpack(&best, text) : CUDA_ERROR_NO_BINARY_FOR_GPU;
}
