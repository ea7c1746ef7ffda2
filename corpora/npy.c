/* The `.npy` format: a scanner for the header's dictionary, and a writer. */
#include "corpora/npy.h"

#include "base/file.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#define MAGIC "\x93NUMPY"
#define MAGIC_BYTES 6
#define ALIGNED 64 /* the elements begin at a multiple */

static const char *const DESCRS[EV_TYPE_COUNT] = {
    [EV_U8] = "|u1",  [EV_S8] = "|i1",   [EV_U16] = "<u2", [EV_S16] = "<i2",
    [EV_U32] = "<u4", [EV_S32] = "<i4",  [EV_U64] = "<u8", [EV_S64] = "<i8",
    [EV_F16] = "<f2", [EV_BF16] = "<u2", [EV_F32] = "<f4", [EV_F64] = "<f8",
};

static const char *const NUMPY_NAMES[EV_TYPE_COUNT] = {
    [EV_U8] = "uint8",    [EV_S8] = "int8",
    [EV_U16] = "uint16",  [EV_S16] = "int16",
    [EV_U32] = "uint32",  [EV_S32] = "int32",
    [EV_U64] = "uint64",  [EV_S64] = "int64",
    [EV_F16] = "float16", [EV_BF16] = "uint16, the bits of each bf16",
    [EV_F32] = "float32", [EV_F64] = "float64",
};

const char *npy_descr(ev_type type) {
    return DESCRS[type];
}

/* ---- the dictionary ---- */

/* The text between two places of the file's bytes, which have no NUL behind. */
typedef struct scanner {
    const char *at, *end;
} scanner;

static void skip_spaces(scanner *s) {
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\t'))
        s->at++;
}

static bool take(scanner *s, char c) {
    skip_spaces(s);
    bool is_there = s->at < s->end && *s->at == c;
    s->at += is_there;
    return is_there;
}

/* A text in single or double quotes; false: none, or one that does not fit. */
static bool take_text(scanner *s, char *out, size_t room) {
    skip_spaces(s);
    if (s->at == s->end || (*s->at != '\'' && *s->at != '"'))
        return false;
    char quote = *s->at++;
    size_t length = 0;
    while (s->at < s->end && *s->at != quote && length + 1 < room)
        out[length++] = *s->at++;
    out[length] = '\0';
    return take(s, quote);
}

static bool take_word(scanner *s, const char *word) {
    size_t length = strlen(word);
    skip_spaces(s);
    if ((size_t)(s->end - s->at) < length || memcmp(s->at, word, length) != 0)
        return false;
    s->at += length;
    return true;
}

/* (3, 4), (12,) or (): their product. */
static bool take_shape(scanner *s, uint64_t *count) {
    *count = 1;
    if (!take(s, '('))
        return false;
    while (!take(s, ')')) {
        uint64_t number = 0;
        skip_spaces(s);
        if (s->at == s->end || *s->at < '0' || *s->at > '9')
            return false;
        for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++) {
            if (__builtin_mul_overflow(number, 10, &number) ||
                __builtin_add_overflow(number, (uint64_t)(*s->at - '0'), &number))
                return false;
        }
        if (__builtin_mul_overflow(*count, number, count))
            return false;
        if (!take(s, ','))
            return take(s, ')');
    }
    return true;
}

typedef struct dictionary {
    char descr[16];
    bool is_fortran;
    uint64_t count;
    unsigned has; /* a bit for each of the three keys */
} dictionary;

static bool take_value(scanner *s, const char *key, dictionary *out) {
    if (strcmp(key, "descr") == 0) {
        out->has |= 1;
        return take_text(s, out->descr, sizeof out->descr);
    }
    if (strcmp(key, "fortran_order") == 0) {
        out->has |= 2;
        out->is_fortran = take_word(s, "True");
        return out->is_fortran || take_word(s, "False");
    }
    out->has |= 4;
    return strcmp(key, "shape") == 0 && take_shape(s, &out->count);
}

static bool take_dictionary(scanner *s, dictionary *out) {
    char key[32];
    *out = (dictionary){.count = 0};
    if (!take(s, '{'))
        return false;
    while (!take(s, '}')) {
        if (!take_text(s, key, sizeof key) || !take(s, ':') || !take_value(s, key, out))
            return false;
        (void)take(s, ',');
    }
    return out->has == 7;
}

/* ---- reading ---- */

/* Finds the dictionary's text. */
static bool find_text(const unsigned char *bytes, size_t length, scanner *text, size_t *offset) {
    if (length < 10 || memcmp(bytes, MAGIC, MAGIC_BYTES) != 0 || bytes[6] < 1 || bytes[6] > 3)
        return false;
    size_t begin = bytes[6] == 1 ? 10 : 12, size = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (length < begin)
        return false;
    if (bytes[6] > 1)
        size |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (size > length - begin)
        return false;
    *text = (scanner){(const char *)bytes + begin, (const char *)bytes + begin + size};
    *offset = begin + size;
    return true;
}

/* bf16 also as ml_dtypes stores it, as two bytes of no type. One byte has no order. */
static bool is_of_type(const char *descr, ev_type type) {
    if (strcmp(descr, DESCRS[type]) == 0)
        return true;
    if (type == EV_BF16 && descr[0] != '\0' && strcmp(descr + 1, "V2") == 0)
        return true;
    return ev_type_bytes(type) == 1 && descr[0] != '\0' && strcmp(descr + 1, DESCRS[type] + 1) == 0;
}

ev_status npy_header_read(const char *path, const void *bytes, size_t length, ev_type type,
                          npy_header *out, ev_error *err) {
    scanner text;
    dictionary found;
    if (!find_text(bytes, length, &text, &out->offset) || !take_dictionary(&text, &found))
        return ev_fail(err, EV_BAD,
                       "%s: no header of a .npy file of version 1, 2 or 3; write it by numpy.save, "
                       "or give raw bytes another name",
                       path);
    if (!is_of_type(found.descr, type))
        return ev_fail(err, EV_BAD,
                       "%s: its elements are '%s', and %s is '%s'; save it as numpy.%s, "
                       "little-endian",
                       path, found.descr, ev_type_name(type), DESCRS[type], NUMPY_NAMES[type]);
    if (found.is_fortran)
        return ev_fail(err, EV_BAD,
                       "%s: the array is column-major; save numpy.ascontiguousarray of it", path);
    out->count = found.count;
    return EV_OK;
}

/* ---- writing ---- */

void npy_header_write(ev_type type, uint64_t count, ev_str *out) {
    ev_str text = EV_STR_EMPTY;
    ev_str_printf(&text, "{'descr': '%s', 'fortran_order': False, 'shape': (%" PRIu64 ",), }",
                  DESCRS[type], count);
    while ((10 + text.length + 1) % ALIGNED != 0)
        ev_str_char(&text, ' ');
    ev_str_char(&text, '\n');
    const char fixed[] = {MAGIC[0],
                          MAGIC[1],
                          MAGIC[2],
                          MAGIC[3],
                          MAGIC[4],
                          MAGIC[5],
                          1,
                          0,
                          (char)(text.length & 0xff),
                          (char)(text.length >> 8)};
    ev_str_append_n(out, fixed, sizeof fixed);
    ev_str_append_n(out, ev_str_text(&text), text.length);
    ev_str_free(&text);
}

ev_status npy_write(const char *path, ev_type type, uint64_t count, const void *data,
                    ev_error *err) {
    ev_str all = EV_STR_EMPTY;
    npy_header_write(type, count, &all);
    ev_str_append_n(&all, data, (size_t)count * ev_type_bytes(type));
    ev_status status = ev_str_status(&all, err);
    if (status == EV_OK)
        status = ev_file_write(path, ev_str_text(&all), all.length, err);
    ev_str_free(&all);
    return status;
}
