/* Files: whole or not at all, whatever fails. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char scratch[64]; /* a folder of this run */

static int make_scratch(void **state) {
    (void)state;
    (void)snprintf(scratch, sizeof scratch, "/tmp/evoke-file-XXXXXX");
    return mkdtemp(scratch) == NULL;
}

static int remove_scratch(void **state) {
    (void)state;
    return ev_dir_remove(scratch, NULL) != EV_OK;
}

/* "SCRATCH/name" in a buffer that the next but three calls reuse. */
static const char *in_scratch(const char *name) {
    static char buffers[4][256];
    static int turn;
    turn = (turn + 1) % 4;
    (void)snprintf(buffers[turn], sizeof buffers[turn], "%s/%s", scratch, name);
    return buffers[turn];
}

static int entries_in(const char *path) {
    DIR *dir = opendir(path);
    if (dir == NULL)
        return -1;
    int count = 0;
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir))
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    (void)closedir(dir);
    return count;
}

static void check_holds(const char *path, const char *text) {
    char *data = NULL;
    size_t bytes = 0;
    ev_error err = {0};
    if (ev_file_read(path, &data, &bytes, &err) != EV_OK)
        fail_msg("%s", err.text);
    assert_int_equal(bytes, strlen(text));
    assert_string_equal(data, text);
    free(data);
}

static void must(ev_status status, const ev_error *err) {
    if (status != EV_OK)
        fail_msg("%s", err->text);
}

static void put(const char *path, const char *text) {
    ev_error err = {0};
    must(ev_file_write(path, text, strlen(text), &err), &err);
}

static void test_round_trip(void **state) {
    (void)state;
    const char *path = in_scratch("plain");
    put(path, "first");
    check_holds(path, "first");
    put(path, "second, and longer");
    check_holds(path, "second, and longer");
    put(path, "");
    check_holds(path, "");
    struct stat facts;
    assert_int_equal(stat(path, &facts), 0);
    mode_t mask = umask(0);
    (void)umask(mask);
    assert_int_equal(facts.st_mode & 0777, 0666 & ~mask);
    assert_int_equal(entries_in(scratch), 1);
    (void)unlink(path);
}

static void test_large_and_special(void **state) {
    (void)state;
    size_t bytes = 3000001;
    char *data = malloc(bytes);
    assert_non_null(data);
    for (size_t i = 0; i < bytes; i++)
        data[i] = (char)(i * 31 % 251);
    ev_error err = {0};
    const char *path = in_scratch("large");
    must(ev_file_write(path, data, bytes, &err), &err);
    char *back = NULL;
    size_t got = 0;
    must(ev_file_read(path, &back, &got, &err), &err);
    assert_int_equal(got, bytes);
    assert_memory_equal(back, data, bytes);
    free(back);
    free(data);
    (void)unlink(path);
    must(ev_file_read("/proc/self/status", &back, &got, &err), &err); /* says it has no size */
    assert_true(got > 100);
    free(back);
}

static void test_read_errors(void **state) {
    (void)state;
    char *data = NULL;
    size_t bytes = 7;
    ev_error err = {0};
    assert_int_equal(ev_file_read(in_scratch("absent"), &data, &bytes, &err), EV_BAD);
    assert_non_null(strstr(err.text, "absent: No such file"));
    assert_int_equal(ev_file_read(scratch, &data, &bytes, &err), EV_BAD);
    assert_null(data);
    assert_int_equal(bytes, 7);
}

/* What would be waited for, or would take all memory, is refused before it is read. */
static void test_regular_files_alone(void **state) {
    (void)state;
    char *data = NULL, path[300];
    size_t bytes = 0;
    ev_error err;
    put(in_scratch("ten"), "0123456789");
    assert_int_equal(ev_file_read_regular(in_scratch("ten"), 10, &data, &bytes, &err), EV_OK);
    assert_int_equal(bytes, 10);
    assert_string_equal(data, "0123456789");
    free(data);
    assert_int_equal(ev_file_read_regular(in_scratch("ten"), 9, &data, &bytes, &err), EV_BAD);
    assert_non_null(strstr(err.text, "10 bytes, over the most of 9"));
    assert_int_equal(ev_file_read_regular("/dev/zero", SIZE_MAX, &data, &bytes, &err), EV_BAD);
    assert_non_null(strstr(err.text, "/dev/zero: it is no regular file"));
    (void)snprintf(path, sizeof path, "%s", in_scratch("pipe"));
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(ev_file_read_regular(path, SIZE_MAX, &data, &bytes, &err), EV_BAD);
    assert_non_null(strstr(err.text, "no regular file"));
    assert_int_equal(ev_file_read_regular(in_scratch("none"), 9, &data, &bytes, &err), EV_BAD);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(in_scratch("ten")), 0);
}

static void test_write_to_wrong_places(void **state) {
    (void)state;
    ev_error err = {0};
    assert_int_equal(ev_file_write(in_scratch("no/folder"), "x", 1, &err), EV_BAD);
    assert_non_null(strstr(err.text, "no/folder"));
    assert_int_equal(ev_file_write(scratch, "x", 1, &err), EV_BAD);
    assert_non_null(strstr(err.text, "is a folder"));
    put(in_scratch("file"), "x");
    assert_int_equal(ev_file_write(in_scratch("file/below"), "x", 1, &err), EV_BAD);
    assert_int_equal(entries_in(scratch), 1);
    (void)unlink(in_scratch("file"));
}

/* As root, every folder may be written, so the test takes another user's identity for the call. */
static void test_unwritable_folder(void **state) {
    (void)state;
    ev_error err = {0};
    const char *folder = in_scratch("closed");
    assert_int_equal(mkdir(folder, 0555), 0);
    assert_int_equal(chmod(scratch, 0755), 0);
    bool is_root = geteuid() == 0;
    if (is_root && seteuid(65534) != 0)
        skip();
    ev_status status = ev_file_write(in_scratch("closed/file"), "x", 1, &err);
    ev_status made = ev_dir_make(in_scratch("closed/below"), NULL);
    if (is_root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(status, EV_BAD);
    assert_non_null(strstr(err.text, "closed/file: Permission denied"));
    assert_int_equal(made, EV_BAD);
    assert_int_equal(entries_in(folder), 0);
    (void)rmdir(folder);
}

/* A limit on file sizes stops the write half-way, as a full disk does. */
static void test_write_stops_half_way(void **state) {
    (void)state;
    const char *path = in_scratch("kept");
    put(path, "the old text");
    size_t bytes = 100000;
    char *data = calloc(1, bytes);
    assert_non_null(data);
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 5000;
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    ev_error err = {0};
    ev_status status = ev_file_write(path, data, bytes, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, SIG_DFL);
    free(data);
    assert_int_equal(status, EV_INFRA);
    assert_non_null(strstr(err.text, "kept: File too large"));
    check_holds(path, "the old text");
    assert_int_equal(entries_in(scratch), 1);
    (void)unlink(path);
}

/* A disk of 64 KiB that is full; only root can have one. */
static void test_full_disk(void **state) {
    (void)state;
    const char *disk = in_scratch("disk");
    assert_int_equal(mkdir(disk, 0755), 0);
    if (mount("tmpfs", disk, "tmpfs", 0, "size=64k") != 0) {
        print_message("no file system of one's own here (%s)\n", strerror(errno));
        assert_int_equal(rmdir(disk), 0);
        skip();
    }
    size_t bytes = 1 << 20;
    char *data = calloc(1, bytes);
    put(in_scratch("disk/file"), "old");
    ev_error err = {0};
    ev_status status =
        data == NULL ? EV_OK : ev_file_write(in_scratch("disk/file"), data, bytes, &err);
    free(data);
    int left = entries_in(disk);
    assert_int_equal(status, EV_INFRA);
    assert_non_null(strstr(err.text, "No space left"));
    assert_int_equal(left, 1);
    check_holds(in_scratch("disk/file"), "old");
    assert_int_equal(umount(disk), 0);
    assert_int_equal(rmdir(disk), 0);
}

static void test_dir_make_and_remove(void **state) {
    (void)state;
    ev_error err = {0};
    must(ev_dir_make(in_scratch("a/b//c/"), &err), &err);
    must(ev_dir_make(in_scratch("a/b/c"), &err), &err);
    assert_true(ev_path_is_dir(in_scratch("a/b/c")));
    put(in_scratch("a/b/file"), "x");
    assert_int_equal(ev_dir_make(in_scratch("a/b/file/d"), &err), EV_BAD);
    assert_int_equal(ev_dir_make(in_scratch("a/b/file"), &err), EV_BAD);
    assert_non_null(strstr(err.text, "is no folder"));
    put(in_scratch("outside"), "stays");
    assert_int_equal(symlink(in_scratch("outside"), in_scratch("a/link")), 0);
    must(ev_dir_remove(in_scratch("a"), &err), &err);
    must(ev_dir_remove(in_scratch("a"), &err), &err);
    check_holds(in_scratch("outside"), "stays");
    assert_int_equal(entries_in(scratch), 1);
    (void)unlink(in_scratch("outside"));
}

static void test_dir_replace(void **state) {
    (void)state;
    ev_error err = {0};
    must(ev_dir_make(in_scratch("new"), &err), &err);
    put(in_scratch("new/file"), "one");
    must(ev_dir_replace(in_scratch("new"), in_scratch("place"), &err), &err);
    check_holds(in_scratch("place/file"), "one");
    must(ev_dir_make(in_scratch("new"), &err), &err);
    put(in_scratch("new/file"), "two");
    put(in_scratch("place/old"), "goes");
    must(ev_dir_replace(in_scratch("new"), in_scratch("place"), &err), &err);
    check_holds(in_scratch("place/file"), "two");
    assert_int_equal(entries_in(in_scratch("place")), 1);
    assert_int_equal(entries_in(scratch), 1);
    assert_int_equal(ev_dir_replace(in_scratch("absent"), in_scratch("place"), &err), EV_BAD);
    check_holds(in_scratch("place/file"), "two");
    assert_int_equal(ev_dir_replace(in_scratch("place"), in_scratch("place/file"), &err), EV_BAD);
    must(ev_dir_remove(in_scratch("place"), &err), &err);
}

static void check_dir_of(const char *path, const char *expected) {
    char *dir = ev_path_dir(path);
    assert_string_equal(dir, expected);
    free(dir);
}

static void check_join(const char *dir, const char *name, const char *expected) {
    char *path = ev_path_join(dir, name);
    assert_string_equal(path, expected);
    free(path);
}

static void test_paths(void **state) {
    (void)state;
    check_dir_of("a/b/c.json", "a/b");
    check_dir_of("c.json", ".");
    check_dir_of("/c.json", "/");
    check_dir_of("/", "/");
    check_dir_of("a/b/", "a");
    check_dir_of("a//b", "a");
    check_join("a", "b", "a/b");
    check_join("a/", "b", "a/b");
    check_join("a", "/b", "/b");
    check_join("", "b", "b");
    assert_true(ev_path_exists("tests"));
    assert_true(ev_path_is_dir("tests"));
    assert_false(ev_path_exists("no such file"));
    assert_false(ev_path_is_dir("CMakeLists.txt"));
}

static void test_home(void **state) {
    (void)state;
    ev_error err = {0};
    assert_int_equal(setenv("EVOKE_HOME", scratch, 1), 0);
    assert_null(ev_path_home());
    must(ev_dir_make(in_scratch("kernels"), &err), &err);
    must(ev_dir_make(in_scratch("fitness/model/gpus"), &err), &err);
    char *home = ev_path_home();
    assert_string_equal(home, scratch);
    free(home);
    must(ev_dir_remove(in_scratch("kernels"), &err), &err);
    must(ev_dir_remove(in_scratch("fitness"), &err), &err);
    assert_int_equal(unsetenv("EVOKE_HOME"), 0);
    home = ev_path_home(); /* this binary stands in a build folder: the source folder is meant */
    assert_non_null(home);
    assert_string_equal(home, EVOKE_SOURCE_DIR);
    free(home);
}

/* The super-user could replace them: `--out /dev/null` must not make a file of the device. */
static void test_devices_and_links_stay(void **state) {
    (void)state;
    struct stat at;
    ev_error err = {0};
    const char *null = in_scratch("null"), *full = in_scratch("full"), *link = in_scratch("link");
    assert_int_equal(symlink("/dev/null", null), 0);
    assert_int_equal(symlink("/dev/full", full), 0);
    assert_int_equal(ev_file_write(null, "text", 4, &err), EV_OK);
    assert_true(lstat(null, &at) == 0 && S_ISLNK(at.st_mode));
    assert_true(stat(null, &at) == 0 && S_ISCHR(at.st_mode));
    assert_int_equal(ev_file_write(full, "text", 4, &err), EV_INFRA);
    assert_non_null(strstr(err.text, "No space left"));
    assert_true(lstat(full, &at) == 0 && S_ISLNK(at.st_mode));
    assert_int_equal(ev_file_write(in_scratch("behind"), "old", 3, &err), EV_OK);
    assert_int_equal(symlink("behind", link), 0);
    assert_int_equal(ev_file_write(link, "new", 3, &err), EV_OK);
    assert_true(lstat(link, &at) == 0 && S_ISLNK(at.st_mode));
    check_holds(in_scratch("behind"), "new");
}

static void plain_paths_have_no_dots(void **state) {
    (void)state;
    static const char *const rows[][2] = {{"k.cu", "k.cu"},
                                          {"./k.cu", "k.cu"},
                                          {"src//k.cu", "src/k.cu"},
                                          {"/./a/./b/", "a/b"},
                                          {"..a/.b", "..a/.b"},
                                          {"a/..", NULL},
                                          {"../k.cu", NULL},
                                          {"a/../k.cu", NULL},
                                          {".", NULL},
                                          {"//", NULL},
                                          {"", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[16];
        assert_int_equal(ev_path_plain(rows[i][0], out), rows[i][1] != NULL);
        if (rows[i][1] != NULL)
            assert_string_equal(out, rows[i][1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_paths_have_no_dots),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_large_and_special),
        cmocka_unit_test(test_read_errors),
        cmocka_unit_test(test_regular_files_alone),
        cmocka_unit_test(test_write_to_wrong_places),
        cmocka_unit_test(test_unwritable_folder),
        cmocka_unit_test(test_write_stops_half_way),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_dir_make_and_remove),
        cmocka_unit_test(test_dir_replace),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_home),
        cmocka_unit_test(test_devices_and_links_stay), /* leaves files */
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
