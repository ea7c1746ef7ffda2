/* Runs the binary for tests: its exit code, its two outputs, and files for it to work on. */
#ifndef TESTS_CLI_RUN_H
#define TESTS_CLI_RUN_H

#include "base/proc.h"

#include <jansson.h>

#define CLI_SECONDS 240

/* A scratch folder with a small task in it; cli_setup and cli_teardown are for a cmocka group. */
int cli_setup(void **state);
int cli_teardown(void **state);
const char *cli_folder(void);
/* "FOLDER/name", in one of eight buffers that are used in turn. */
const char *cli_path(const char *name);
void cli_write(const char *name, const char *text);
char *cli_read(const char *name); /* malloc'ed */
/* Copies FOLDER/from to FOLDER/to with the first `old` in it changed to `new`; fails the test if
 * there is none. */
void cli_copy_changed(const char *from, const char *to, const char *old, const char *new);

/* Runs `evoke` with these words (NULL-ended); fails the test if it could not be run. */
ev_proc_result cli_run(const char *const words[]);
#define CLI_RUN(...) cli_run((const char *const[]){__VA_ARGS__, NULL})
/* By bash, where a limit or a redirection is needed; $EVOKE is the binary. */
ev_proc_result cli_shell(const char *line);

/* It ended with `exit_code`; prints its outputs if not. */
void cli_expect(const ev_proc_result *r, int exit_code);
/* As cli_expect, with nothing on stdout, and one line "evoke: ..." on stderr that has `words`. */
void cli_expect_error(ev_proc_result r, int exit_code, const char *words);
/* A change of a file, and words of the complaint. */
typedef struct cli_mistake {
    const char *old, *new, *words;
} cli_mistake;
/* `evoke check` refuses FOLDER/name with each of the changes, by these words in what it prints. */
void cli_expect_mistakes(const char *name, const cli_mistake mistakes[], size_t count);
/* The JSON object on the last line of stdout; the caller's reference. Frees the result. */
json_t *cli_json(ev_proc_result r, int exit_code);

/* Fails unless `object` has the keys, in the form "name:kind name:kind ..."; a kind is s (string),
 * i (integer), n (number), b (boolean), a (array), o (object). */
void cli_keys(const json_t *object, const char *keys);

/* Puts other PTX in the place of the PTX of a hash, in a bundle of the scratch folder: the manifest
 * fits, nothing else does. */
void cli_plant_ptx(const char *bundle, const char *sha256, const char *ptx);

#endif
