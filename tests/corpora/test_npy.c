/* The .npy format, and data that are read from files. */
#include "base/file.h"
#include "corpora/corpus.h"
#include "corpora/npy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/asserts.h"

static char folder[64];

static int make_folder(void **state) {
    (void)state;
    (void)strcpy(folder, "/tmp/evoke-test-npy-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state) {
    (void)state;
    return ev_dir_remove(folder, NULL) != EV_OK;
}

static const char *path_of(const char *name) {
    static char paths[4][128];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* ---- writing ---- */

/* What numpy.save of numpy.array([1, -2, 0.5], dtype='<f4') writes, byte by byte. */
static void writes_what_numpy_writes(void **state) {
    (void)state;
    static const char head[] = "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, "
                               "'shape': (3,), }";
    static const float data[] = {1, -2, 0.5f};
    char *text = NULL, want[128 + sizeof data];
    size_t bytes = 0;
    ev_error err = {0};
    memset(want, ' ', sizeof want);
    memcpy(want, head, sizeof head - 1);
    want[127] = '\n';
    memcpy(want + 128, data, sizeof data);
    assert_int_equal(npy_write(path_of("a.npy"), EV_F32, 3, data, &err), EV_OK);
    assert_int_equal(ev_file_read(path_of("a.npy"), &text, &bytes, &err), EV_OK);
    assert_int_equal(bytes, sizeof want);
    assert_memory_equal(text, want, sizeof want);
    free(text);
}

static void reads_what_it_writes(void **state) {
    (void)state;
    for (int type = 0; type < EV_TYPE_COUNT; type++) {
        static const uint64_t counts[] = {0, 1, 12345678901};
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            ev_str text = EV_STR_EMPTY;
            npy_header header = {0, 0};
            ev_error err = {0};
            npy_header_write((ev_type)type, counts[i], &text);
            assert_int_equal(text.length % 64, 0);
            if (npy_header_read("a", ev_str_text(&text), text.length, (ev_type)type, &header,
                                &err) != EV_OK)
                fail_msg("%s", err.text);
            assert_int_equal(header.count, counts[i]);
            assert_int_equal(header.offset, text.length);
            ev_str_free(&text);
        }
    }
    assert_string_equal(npy_descr(EV_F16), "<f2");
    assert_string_equal(npy_descr(EV_BF16), "<u2");
}

/* ---- reading ---- */

#define V1 "\x93NUMPY\x01\x00\x40\x00"
#define V2 "\x93NUMPY\x02\x00\x40\x00\x00\x00"
#define V3 "\x93NUMPY\x03\x00\x40\x00\x00\x00"

/* Headers with a dictionary of 64 bytes; the rest of it is spaces. */
static const struct {
    const char *start, *text;
    size_t start_bytes;
    ev_type type;
    uint64_t count;    /* where it is taken */
    const char *words; /* NULL: it is taken */
} HEADERS[] = {
#define ROW(version, text, type, count, words)                                                     \
    {version, text, sizeof version - 1, type, count, words}
    ROW(V1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }", EV_F32, 12, NULL),
    ROW(V2, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)}", EV_F32, 12, NULL),
    ROW(V3, "{\"shape\":(2,3,4),'descr':'<f2','fortran_order':False}", EV_F16, 24, NULL),
    ROW(V1, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }", EV_F64, 1, NULL),
    ROW(V1, "{'descr': '<u2', 'fortran_order': False, 'shape': (7,), }", EV_BF16, 7, NULL),
    ROW(V1, "{'descr': '<V2', 'fortran_order': False, 'shape': (7,), }", EV_BF16, 7, NULL),
    ROW(V1, "{'descr': '<u1', 'fortran_order': False, 'shape': (7,), }", EV_U8, 7, NULL),
    ROW(V1, "{'descr': '<u2', 'fortran_order': False, 'shape': (7,), }", EV_F16, 0,
        "its elements are '<u2', and f16 is '<f2'; save it as numpy.float16"),
    ROW(V1, "{'descr': '>f4', 'fortran_order': False, 'shape': (7,), }", EV_F32, 0,
        "little-endian"),
    ROW(V1, "{'descr': '|i1', 'fortran_order': False, 'shape': (7,), }", EV_U8, 0, "'|u1'"),
    ROW(V1, "{'descr': '', 'fortran_order': False, 'shape': (7,), }", EV_BF16, 0, "''"),
    ROW(V1, "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4), }", EV_F32, 0,
        "column-major; save numpy.ascontiguousarray"),
    ROW(V1, "{'descr': '<f4', 'fortran_order': False, }", EV_F32, 0, "no header"),
    ROW(V1, "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (7,), }", EV_F32, 0, "no header"),
    ROW(V1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (7,)}", EV_F32, 0,
        "no head"),
    ROW(V1, "{'descr': '<f4', 'fortran_order': False, 'shape': (-7,), }", EV_F32, 0, "no header"),
    ROW(V1, "{'descr': '<f4', 'fortran_order': False, 'shape': (7", EV_F32, 0, "no header"),
    ROW(V1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3 4), }", EV_F32, 0, "no header"),
    ROW(V1, "{'descr': '<f4', 'fortran_order': False,'shape':(4294967296,4294967296)}", EV_F32, 0,
        "no header"),
    ROW(V1, "{'descr': '<f4', 'fortran_order': False,'shape':(18446744073709551616)}", EV_F32, 0,
        "no header"),
    ROW(V1, "{'descr': '<f4", EV_F32, 0, "no header"),
    ROW(V1, "{'descr': '0123456789012345678901234567890123456789', 'shape': ()}", EV_F32, 0,
        "no he"),
    ROW(V1, "{'magic': 7, 'fortran_order': False, 'shape': (7,), }", EV_F32, 0, "no header"),
    ROW(V1, "", EV_F32, 0, "no header"),
    ROW("\x93NUMPY\x04\x00\x40\x00\x00\x00", "{'descr': '<f4', 'fortran_order': False}", EV_F32, 0,
        "of version 1, 2 or 3"),
    ROW("\x94NUMPY\x01\x00\x40\x00", "{'descr': '<f4'}", EV_F32, 0, "no header of a .npy file"),
    ROW("\x93NUMPY\x01\x00\xff\xff", "{'descr': '<f4'}", EV_F32, 0, "no header"),
    ROW("\x93NUMPY\x02\x00\xff\xff\xff\xff", "{'descr': '<f4'}", EV_F32, 0, "no header"),
#undef ROW
};

static void reads_headers(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof HEADERS / sizeof HEADERS[0]; i++) {
        size_t length = strlen(HEADERS[i].text), all = HEADERS[i].start_bytes + 64;
        char *bytes = malloc(all); /* no byte more, so that a read behind shows */
        npy_header header = {0, 0};
        ev_error err = {0};
        assert_non_null(bytes);
        memset(bytes, ' ', all);
        memcpy(bytes, HEADERS[i].start, HEADERS[i].start_bytes);
        memcpy(bytes + HEADERS[i].start_bytes, HEADERS[i].text, length < 64 ? length : 64);
        ev_status status = npy_header_read("x.npy", bytes, all, HEADERS[i].type, &header, &err);
        if (HEADERS[i].words == NULL && (status != EV_OK || header.count != HEADERS[i].count))
            fail_msg("row %zu: %s", i, err.text);
        if (HEADERS[i].words != NULL && (status != EV_BAD || strstr(err.text, "x.npy: ") == NULL ||
                                         strstr(err.text, HEADERS[i].words) == NULL))
            fail_msg("row %zu: '%s' is not in: %s", i, HEADERS[i].words, err.text);
        for (size_t cut = 0; cut < all; cut++) { /* cut off anywhere */
            char *part = malloc(cut + 1);
            assert_non_null(part);
            memcpy(part, bytes, cut);
            assert_int_equal(npy_header_read("x.npy", part, cut, HEADERS[i].type, &header, &err),
                             EV_BAD);
            free(part);
        }
        free(bytes);
    }
}

/* ---- recorded data ---- */

static void write_bytes(const char *name, const void *data, size_t bytes) {
    assert_int_equal(ev_file_write(path_of(name), data, bytes, NULL), EV_OK);
}

static corpus_request request_of(const corpus_recorded *file, ev_type type, uint64_t length) {
    return (corpus_request){
        .generator = corpus_generator_file(), .file = file, .type = type, .length = length};
}

static void fills_from_files(void **state) {
    (void)state;
    static const uint16_t data[] = {0x3c00, 0x0001, 0xfc00, 0x7e00, 0x8000, 0x1234};
    static const char *const names[] = {"raw.bin", "six.npy"};
    ev_error err = {0};
    write_bytes("raw.bin", data, sizeof data);
    assert_int_equal(npy_write(path_of("six.npy"), EV_F16, 6, data, &err), EV_OK);
    for (size_t i = 0; i < 2; i++) {
        corpus_recorded file = {.path = path_of(names[i])};
        uint16_t got[6] = {0}, part[2] = {0};
        assert_int_equal(recorded_hash(&file, &err), EV_OK);
        corpus_request request = request_of(&file, EV_F16, 6);
        assert_int_equal(corpus_request_check(&request, &err), EV_OK);
        assert_int_equal(corpus_fill(&request, 0, 6, got, &err), EV_OK);
        assert_memory_equal(got, data, sizeof data); /* NaN, infinities and all */
        assert_int_equal(corpus_fill(&request, 3, 2, part, &err), EV_OK);
        assert_memory_equal(part, data + 3, sizeof part);
        request.length = 5;
        assert_int_equal(corpus_request_check(&request, &err), EV_BAD);
        assert_non_null(strstr(err.text, i == 0
                                             ? "it has 12 bytes of elements, and 5 f16 are 10"
                                             : "its shape has 6 elements, and the buffer has 5"));
        assert_non_null(strstr(err.text, names[i]));
    }
}

static void bad_files_are_refused(void **state) {
    (void)state;
    static const float data[4] = {1, 2, 3, 4};
    ev_str text = EV_STR_EMPTY;
    ev_error err = {0};
    float got[4];
    corpus_recorded file = {.path = path_of("none.npy")};
    corpus_request request = request_of(&file, EV_F32, 4);
    assert_int_equal(corpus_request_check(&request, &err), EV_BAD);
    assert_non_null(strstr(err.text, "none.npy: there is no such file"));
    file.path = folder;
    assert_int_equal(corpus_request_check(&request, &err), EV_BAD);
    npy_header_write(EV_F32, 4, &text); /* fewer elements than the shape says, and more */
    ev_str_append_n(&text, (const char *)data, sizeof data);
    write_bytes("short.npy", ev_str_text(&text), text.length - 1);
    ev_str_char(&text, 'x');
    write_bytes("long.npy", ev_str_text(&text), text.length);
    ev_str_free(&text);
    file.path = path_of("short.npy");
    assert_int_equal(corpus_request_check(&request, &err), EV_BAD);
    assert_non_null(strstr(err.text, "it has 15 bytes of elements"));
    file.path = path_of("long.npy");
    assert_int_equal(corpus_request_check(&request, &err), EV_BAD);
    assert_non_null(strstr(err.text, "it has 17 bytes of elements"));
    write_bytes("empty.npy", "", 0);
    file.path = path_of("empty.npy");
    assert_int_equal(corpus_request_check(&request, &err), EV_BAD);
    /* another file since it was hashed */
    write_bytes("raw", data, sizeof data);
    file.path = path_of("raw");
    assert_int_equal(recorded_hash(&file, &err), EV_OK);
    assert_int_equal(corpus_fill(&request, 0, 4, got, &err), EV_OK);
    write_bytes("raw", "0123456789abcdef", sizeof data);
    assert_int_equal(corpus_fill(&request, 0, 4, got, &err), EV_BAD);
    assert_non_null(strstr(err.text, "another file than when the task was loaded"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_what_numpy_writes),
        cmocka_unit_test(reads_what_it_writes),
        cmocka_unit_test(reads_headers),
        cmocka_unit_test(fills_from_files),
        cmocka_unit_test(bad_files_are_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
