/* JSON over jansson: documents keep their text, so that an error can name line and column.
 *
 * A document owns its tree and its text. Values are borrowed from the document. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct ev_json {
    json_t *root;
    char *text; /* as read; NUL-terminated */
    char *path; /* the file's name, for messages */
} ev_json;

/* Allowed kinds of a value. EV_JSON_NUMBER allows integers and reals. */
typedef enum ev_json_kind {
    EV_JSON_STRING,
    EV_JSON_INTEGER,
    EV_JSON_NUMBER,
    EV_JSON_BOOL,
    EV_JSON_ARRAY,
    EV_JSON_OBJECT,
    EV_JSON_ANY,
} ev_json_kind;

/* One row of an object's key table. The table is the schema; the docs are printed from it. */
typedef struct ev_json_key {
    const char *name;
    ev_json_kind kind;
    bool required;
    const char *doc; /* one line for the docs */
} ev_json_key;

/* Reads and parses a document. EV_BAD "FILE:LINE:COLUMN: MESSAGE": a syntax error, a duplicate key,
 * or an unreadable file. `name` stands for FILE in messages. */
ev_status ev_json_load(const char *path, ev_json **out, ev_error *err) EV_CHECKED;
ev_status ev_json_parse(const char *text, const char *name, ev_json **out,
                        ev_error *err) EV_CHECKED;
/* As ev_json_parse; takes `text`, which is malloc'ed, on a failure, too. */
ev_status ev_json_take(char *text, const char *name, ev_json **out, ev_error *err) EV_CHECKED;
void ev_json_free(ev_json *doc); /* NULL is fine */

/* Checks `object` against a key table. `where` is its path in the document: "" for the root, else
 * like "cases[2].shape". EV_BAD with FILE:LINE:COLUMN and the cure: an unknown key (with the
 * nearest known name), a missing key, a wrong kind. */
ev_status ev_json_check(const ev_json *doc, const json_t *object, const char *where,
                        const ev_json_key *keys, size_t count, ev_error *err) EV_CHECKED;

/* EV_BAD "FILE:LINE:COLUMN: message" for the value at `where`. */
ev_status ev_json_fail(const ev_json *doc, const char *where, ev_error *err, const char *format,
                       ...) EV_PRINTF(4, 5);

/* Line and column, from 1, of the value at `where`; with at_key, of its key. false: not found. */
bool ev_json_locate(const ev_json *doc, const char *where, bool at_key, int *line, int *column);

/* Typed reads of an optional key, with a default. The caller has checked the kind. */
const char *ev_json_text(const json_t *object, const char *key, const char *otherwise);
double ev_json_number(const json_t *object, const char *key, double otherwise);
json_int_t ev_json_integer(const json_t *object, const char *key, json_int_t otherwise);
bool ev_json_flag(const json_t *object, const char *key, bool otherwise);

/* Prints `value` with sorted keys, on one line (`compact`) or indented by 2. Reals print with 17
 * digits, so reading the text gives the same value. malloc'ed; NULL: out of memory. */
char *ev_json_print(const json_t *value, bool compact);

#endif
