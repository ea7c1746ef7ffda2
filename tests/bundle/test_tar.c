/* Bundles as one file: the same bytes each time, the same bundle as the folder; and what a tar may
 * not hold is refused by name. */
#include "base/file.h"
#include "base/pcg.h"
#include "base/str.h"
#include "bundle/bundle.h"
#include "bundle/reader.h"
#include "bundle/tar.h"
#include "tests/bundle/sample.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char *tar;
static size_t length;

static int write_tar(void **state) {
    ev_error err = {0};
    if (sample_make_folder(state) != 0)
        return 1;
    return sample_write(sample_path("b.tar"), &err) != EV_OK ||
           ev_file_read(sample_path("b.tar"), &tar, &length, &err) != EV_OK;
}

static int remove_tar(void **state) {
    free(tar);
    return sample_remove_folder(state);
}

static void open_memory_fails(const void *data, size_t bytes, const char *words) {
    bundle *b = NULL;
    ev_error err = {0};
    if (bundle_open_memory(data, bytes, &b, &err) != EV_BAD)
        fail_msg("a tar is taken that should be refused with '%s'", words);
    if (strstr(err.text, words) == NULL)
        fail_msg("'%s' is not in: %s", words, err.text);
}

/* ---- what is written ---- */

static void equal_bundles_are_equal_bytes(void **state) {
    (void)state;
    char *again = NULL;
    size_t bytes = 0;
    ev_error err = {0};
    assert_int_equal(sample_write(sample_path("c.tar"), &err), EV_OK);
    assert_int_equal(ev_file_read(sample_path("c.tar"), &again, &bytes, &err), EV_OK);
    assert_int_equal(bytes, length);
    assert_memory_equal(again, tar, length);
    free(again);
}

/* What the system's tar makes of it, where there is one, is the folder. */
static void others_can_read_it(void **state) {
    (void)state;
    ev_error err = {0};
    ev_str line = EV_STR_EMPTY;
    assert_int_equal(sample_write(sample_path("folder"), &err), EV_OK);
    ev_str_printf(&line,
                  "cd %s && mkdir out && tar xf b.tar -C out && diff -r out folder && "
                  "(cd out && tar --format=ustar --sort=name -cf ../theirs.tar $(find . -type f "
                  "-printf '%%P '))",
                  sample_path("."));
    assert_int_equal(system(ev_str_text(&line)), 0); /* NOLINT(cert-env33-c): the system's tar */
    ev_str_free(&line);
    bundle *b = NULL;
    if (bundle_open(sample_path("theirs.tar"), &b, &err) != EV_OK)
        fail_msg("%s", err.text);
    bundle_close(b);
}

static void opens_as_a_folder_does(void **state) {
    (void)state;
    bundle *file = NULL, *memory = NULL;
    const char *folder = NULL;
    char path[300], *ptx = NULL;
    size_t bytes = 0;
    ev_error err = {0};
    assert_int_equal(bundle_open(sample_path("b.tar"), &file, &err), EV_OK);
    assert_int_equal(bundle_open_memory(tar, length, &memory, &err), EV_OK);
    assert_int_equal(bundle_kernel_count(file), 1);
    const bundle_variant *v = &bundle_find(file, "add")->variants[0];
    const bundle_variant *lazy = &bundle_find(memory, "add")->variants[0];
    assert_string_equal(v->ptx, SAMPLE_PTX);
    assert_null(lazy->ptx);
    assert_int_equal(bundle_read_ptx(memory, lazy, &ptx, &bytes, &err), EV_OK);
    assert_string_equal(ptx, SAMPLE_PTX);
    assert_int_equal(bytes, strlen(SAMPLE_PTX));
    free(ptx);
    assert_int_equal(bundle_verify(memory, &err), EV_OK);
    /* a folder of its files, for as long as it is open */
    assert_int_equal(bundle_folder(file, &folder, &err), EV_OK);
    (void)snprintf(path, sizeof path, "%s/tasks/add/task.json", folder);
    assert_true(ev_path_exists(path));
    bundle_close(file);
    assert_false(ev_path_exists(path));
    bundle_close(memory);
}

static void replaces_its_own_kind_alone(void **state) {
    (void)state;
    ev_error err = {0};
    assert_int_equal(sample_write(sample_path("b.tar"), &err), EV_OK);
    assert_int_equal(ev_dir_make(sample_path("dir.tar"), &err), EV_OK);
    assert_int_equal(sample_write(sample_path("dir.tar"), &err), EV_BAD);
    assert_int_equal(ev_file_write(sample_path("letter.tar"), "dear", 4, &err), EV_OK);
    assert_int_equal(sample_write(sample_path("letter.tar"), &err), EV_BAD);
    assert_non_null(strstr(err.text, "something else is there"));
}

/* ---- what is refused ---- */

/* Offsets in a header. */
enum { NAME = 0, SIZE = 124, CHECKSUM = 148, TYPE = 156, MAGIC = 257, PREFIX = 345 };

static void sign(char *header) {
    unsigned sum = 0;
    memset(header + CHECKSUM, ' ', 8);
    for (size_t i = 0; i < 512; i++)
        sum += (unsigned char)header[i];
    (void)snprintf(header + CHECKSUM, 8, "%06o", sum);
}

/* The sample's tar with the first header changed. */
static char *changed(int at, const void *bytes, size_t count, bool signs) {
    char *copy = malloc(length);
    assert_non_null(copy);
    memcpy(copy, tar, length);
    memcpy(copy + at, bytes, count);
    if (signs)
        sign(copy);
    return copy;
}

static void tricks_are_refused_by_name(void **state) {
    (void)state;
    static const struct {
        int at;
        const char *bytes;
        size_t count;
        const char *words;
    } rows[] = {
        {TYPE, "1", 1, "is a hard link"},
        {TYPE, "2", 1, "is a symbolic link"},
        {TYPE, "3", 1, "is a device"},
        {TYPE, "5", 1, "is a folder"},
        {TYPE, "6", 1, "is a pipe"},
        {TYPE, "S", 1, "is a sparse file"},
        {TYPE, "x", 1, "is an extension of the format"},
        {TYPE, "g", 1, "is an extension of the format"},
        {TYPE, "L", 1, "is an extension of the format"},
        {TYPE, "Z", 1, "is a member of an unknown type"},
        {NAME, "/etc/passwd", 12, "'/etc/passwd' leads out"},
        {NAME, "../x", 5, "'../x' leads out"},
        {NAME, "a/../../x", 10, "leads out"},
        {NAME, "a//x", 5, "leads out"},
        {NAME, "./x", 4, "leads out"},
        {NAME, "", 1, "leads out"},
        {PREFIX, "/", 2, "leads out"},
        {SIZE, "77777777777", 12, "longer than the rest"},
        {SIZE, "\x80\0\0\0\0\0\0\1\0\0\0\0", 12, "no octal number"},
        {SIZE, "-1", 3, "no octal number"},
        {SIZE, "99", 3, "no octal number"},
        {SIZE, "00000000000", 12, ""},
        {MAGIC, "uxtar", 5, "neither a folder nor a tar"},
        {MAGIC, "ustarX", 6, "no header of the ustar format"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *copy = changed(rows[i].at, rows[i].bytes, rows[i].count, true);
        open_memory_fails(copy, length, rows[i].words);
        free(copy);
    }
    char *copy = changed(NAME, "x", 1, false);
    open_memory_fails(copy, length, "check sum is wrong");
    free(copy);
}

static void doubles_are_refused(void **state) {
    (void)state;
    ev_str twice = EV_STR_EMPTY;
    ev_error err = {0};
    assert_int_equal(tar_add(&twice, "a", "1", 1, &err), EV_OK);
    assert_int_equal(tar_add(&twice, "b", "1", 1, &err), EV_OK);
    assert_int_equal(tar_add(&twice, "a", "2", 1, &err), EV_OK);
    tar_end(&twice);
    open_memory_fails(ev_str_text(&twice), twice.length, "'a' is there twice");
    ev_str_free(&twice);
}

static void strays_are_refused(void **state) {
    (void)state;
    ev_str more = EV_STR_EMPTY;
    ev_error err = {0};
    assert_int_equal(tar_add(&more, "kernels/evil.ptx", "1", 1, &err), EV_OK);
    ev_str_append_n(&more, tar, length);
    open_memory_fails(ev_str_text(&more), more.length, "a stray file: kernels/evil.ptx");
    ev_str_free(&more);
}

static void cut_off_ones_are_refused(void **state) {
    (void)state;
    for (size_t bytes = 0; bytes < length; bytes += 97)
        open_memory_fails(tar, bytes, bytes < 512 ? "neither a folder nor a tar" : "");
    open_memory_fails(tar, length - 1, "cut off");
    open_memory_fails(tar, length - 512, "cut off");
    char *copy = malloc(length + 512);
    assert_non_null(copy);
    memcpy(copy, tar, length);
    memset(copy + length, 'x', 512);
    open_memory_fails(copy, length + 512, "something behind its end");
    free(copy);
}

/* Contents are held against their hashes: when all are read, or at the first use. */
static void flipped_bits_are_found(void **state) {
    (void)state;
    char *copy = changed(512, "#", 1, false); /* of the first file: the PTX */
    bundle *b = NULL;
    ev_error err = {0};
    char *ptx = NULL;
    size_t bytes = 0, refused = 0;
    assert_int_equal(bundle_open_memory(copy, length, &b, &err), EV_OK);
    const bundle_kernel *k = bundle_find(b, "add");
    refused += bundle_read_ptx(b, &k->variants[0], &ptx, &bytes, &err) != EV_OK;
    refused += bundle_read_ptx(b, &k->baselines[0], &ptx, &bytes, &err) != EV_OK;
    assert_int_equal(refused, 1);
    assert_non_null(strstr(err.text, "has the hash"));
    free(ptx);
    assert_int_equal(bundle_verify(b, &err), EV_BAD);
    bundle_close(b);
    free(copy);
}

/* A text that would take forty times its length is refused before it is parsed. */
static void dense_manifests_are_refused(void **state) {
    (void)state;
    ev_str text = EV_STR_EMPTY, made = EV_STR_EMPTY;
    ev_error err = {0};
    ev_str_append(&text, "{\"schema\": \"evoke-bundle\", \"version\": 4, \"files\": [");
    for (int i = 0; i < 1000000; i++)
        ev_str_append(&text, "[],");
    ev_str_append(&text, "[]]}");
    assert_int_equal(tar_add(&made, "manifest.json", ev_str_text(&text), text.length, &err), EV_OK);
    tar_end(&made);
    open_memory_fails(ev_str_text(&made), made.length, "which no manifest does");
    ev_str_free(&made);
    ev_str_free(&text);
}

/* Damage at random, in headers that are signed again, in the manifest and in the PTX: what is
 * opened can be used, everything else is refused with a reason. */
static void random_damage_does_no_harm(void **state) {
    (void)state;
    char *copy = malloc(length);
    ev_pcg rng = ev_pcg_seed(26, 1);
    size_t refused = 0, rounds = 3000;
    assert_non_null(copy);
    for (size_t i = 0; i < rounds; i++) {
        static const char letters[] = "0123456789-.e\",:{}[]/truefalsn \\\x01\xff";
        memcpy(copy, tar, length);
        for (uint32_t k = ev_pcg_below(&rng, 3) + 1; k > 0; k--) {
            size_t at = ev_pcg_below(&rng, (uint32_t)length);
            copy[at] = letters[ev_pcg_below(&rng, sizeof letters - 1)];
            if (memcmp(tar + at / 512 * 512 + MAGIC, "ustar", 5) == 0)
                sign(copy + at / 512 * 512);
        }
        bundle *b = NULL;
        ev_error err = {0};
        ev_status status = bundle_open_memory(copy, length, &b, &err);
        if (status != EV_OK) {
            assert_int_equal(status, EV_BAD);
            assert_true(err.text[0] != '\0');
            refused++;
            continue;
        }
        bundle_number shape[] = {{"N", false, 128}};
        bundle_choice choice;
        bundle_request request = {
            .kernel = "add", .gpu = "h200", .sm = 90, .shape = shape, .shape_count = 1};
        (void)(bundle_resolve(b, &request, &choice, &err) == EV_OK);
        (void)(bundle_verify(b, &err) == EV_OK);
        bundle_close(b);
    }
    assert_true(refused > rounds / 4 && refused < rounds);
    free(copy);
}

static void long_paths_are_split_or_refused(void **state) {
    (void)state;
    char path[300] = "";
    ev_str made = EV_STR_EMPTY;
    ev_error err = {0};
    tar_member *members = NULL;
    size_t count = 0;
    for (size_t i = 0; i < 20; i++)
        (void)strcat(path, "folder-x/");
    (void)strcat(path, "file");
    assert_int_equal(tar_add(&made, path, "", 0, &err), EV_OK);
    tar_end(&made);
    assert_int_equal(tar_read("t", ev_str_text(&made), made.length, &members, &count, &err), EV_OK);
    assert_int_equal(count, 1);
    assert_string_equal(members[0].path, path);
    free(members);
    memset(path, 'x', 200);
    assert_int_equal(tar_add(&made, path, "", 0, &err), EV_BAD);
    assert_non_null(strstr(err.text, "too long for a tar"));
    ev_str_free(&made);
}

/* ---- folders ---- */

static void folders_hold_nothing_else(void **state) {
    (void)state;
    bundle *b = NULL;
    ev_error err = {0};
    assert_int_equal(sample_write(sample_path("strange"), &err), EV_OK);
    assert_int_equal(symlink("/etc/passwd", sample_path("strange/link")), 0);
    assert_int_equal(bundle_open(sample_path("strange"), &b, &err), EV_BAD);
    assert_non_null(strstr(err.text, "link is a symbolic link"));
    assert_int_equal(unlink(sample_path("strange/link")), 0);
    assert_int_equal(mkfifo(sample_path("strange/pipe"), 0600), 0);
    assert_int_equal(bundle_open(sample_path("strange"), &b, &err), EV_BAD);
    assert_non_null(strstr(err.text, "pipe is no regular file"));
    assert_int_equal(unlink(sample_path("strange/pipe")), 0);
    assert_int_equal(ev_file_write(sample_path("strange/kernels/x"), "", 0, &err), EV_OK);
    assert_int_equal(bundle_open(sample_path("strange"), &b, &err), EV_BAD);
    assert_non_null(strstr(err.text, "a stray file: kernels/x"));
}

/* A file that was exchanged after the bundle was opened is read no further than it may be. */
static void exchanged_files_are_not_waited_for(void **state) {
    (void)state;
    bundle *b = NULL;
    char *ptx = NULL, path[300];
    size_t bytes = 0;
    ev_error err = {0};
    assert_int_equal(bundle_open_lazy("/dev/zero", &b, &err), EV_BAD);
    assert_non_null(strstr(err.text, "no regular file"));
    assert_int_equal(sample_write(sample_path("exchanged"), &err), EV_OK);
    assert_int_equal(bundle_open_lazy(sample_path("exchanged"), &b, &err), EV_OK);
    const bundle_variant *v = &bundle_find(b, "add")->variants[0];
    (void)snprintf(path, sizeof path, "%s/kernels/%s.ptx", sample_path("exchanged"), v->sha256.hex);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(bundle_read_ptx(b, v, &ptx, &bytes, &err), EV_BAD);
    assert_non_null(strstr(err.text, "no regular file"));
    assert_int_equal(unlink(path), 0);
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    assert_int_equal(ftruncate(file, (off_t)1 << 40), 0);
    assert_int_equal(close(file), 0);
    assert_int_equal(bundle_read_ptx(b, v, &ptx, &bytes, &err), EV_BAD);
    assert_non_null(strstr(err.text, "over the most"));
    bundle_close(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_bundles_are_equal_bytes),
        cmocka_unit_test(others_can_read_it),
        cmocka_unit_test(opens_as_a_folder_does),
        cmocka_unit_test(replaces_its_own_kind_alone),
        cmocka_unit_test(tricks_are_refused_by_name),
        cmocka_unit_test(doubles_are_refused),
        cmocka_unit_test(strays_are_refused),
        cmocka_unit_test(cut_off_ones_are_refused),
        cmocka_unit_test(flipped_bits_are_found),
        cmocka_unit_test(dense_manifests_are_refused),
        cmocka_unit_test(random_damage_does_no_harm),
        cmocka_unit_test(long_paths_are_split_or_refused),
        cmocka_unit_test(folders_hold_nothing_else),
        cmocka_unit_test(exchanged_files_are_not_waited_for),
    };
    return cmocka_run_group_tests(tests, write_tar, remove_tar);
}
