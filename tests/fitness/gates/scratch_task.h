/* A scratch folder with a changed copy of the gates' own task, for the tests of drawn cases. After
 * cmocka.h. */
#ifndef TESTS_FITNESS_GATES_SCRATCH_TASK_H
#define TESTS_FITNESS_GATES_SCRATCH_TASK_H

#include "base/file.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ok.h"

#define FOLDER "tests/fitness/gates/"

static ev_error err;
static char scratch[64];

static inline char *read_gate_file(const char *name) {
    char path[256], *text = NULL;
    size_t bytes = 0;
    (void)snprintf(path, sizeof path, FOLDER "%s", name);
    OK(ev_file_read(path, &text, &bytes, &err));
    return text;
}

/* The first `from` in the text becomes `to`. malloc'ed. */
static inline char *exchanged(const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from);
    assert_non_null(at);
    size_t bytes = strlen(text) + strlen(to) + 1;
    char *out = malloc(bytes);
    assert_non_null(out);
    (void)snprintf(out, bytes, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return out;
}

static inline void write_scratch(const char *name, const char *text) {
    char path[160];
    (void)snprintf(path, sizeof path, "%s/%s", scratch, name);
    OK(ev_file_write(path, text, strlen(text), &err));
}

/* Writes the task with other text in place of `from`, and its sources; gives its path. */
static inline const char *task_with(const char *from, const char *to) {
    static char path[160];
    static const char *const files[] = {"scale_add.cu", "oracle.c"};
    char *text = read_gate_file("task.json"), *changed = exchanged(text, from, to);
    write_scratch("task.json", changed);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char *file = read_gate_file(files[i]);
        write_scratch(files[i], file);
        free(file);
    }
    (void)snprintf(path, sizeof path, "%s/task.json", scratch);
    free(text);
    free(changed);
    return path;
}

static inline int make_scratch(void **state) {
    (void)state;
    (void)snprintf(scratch, sizeof scratch, "/tmp/evoke-gates-XXXXXX");
    return mkdtemp(scratch) == NULL;
}

static inline int remove_scratch(void **state) {
    (void)state;
    return ev_dir_remove(scratch, NULL) != EV_OK;
}

#endif
