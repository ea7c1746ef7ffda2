/* JSON documents over jansson, and a small walker over the text that finds where a value stands. */
#include "base/json.h"

#include "base/file.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- places in the text ---- */

/* Line and column, from 1, of a byte; a column counts characters, not bytes of UTF-8. */
static void place_of(const char *text, size_t offset, int *line, int *column) {
    *line = 1;
    *column = 1;
    for (size_t i = 0; i < offset && text[i] != '\0'; i++) {
        if (text[i] == '\n') {
            ++*line;
            *column = 1;
        } else if (((unsigned char)text[i] & 0xc0u) != 0x80u) {
            ++*column;
        }
    }
}

/* Own loops: under a sanitizer strspn and strcspn read the text to its end each time. */
static const char *skip_space(const char *at) {
    while (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n')
        at++;
    return at;
}

/* A number, true, false or null; the same place where none begins. */
static const char *skip_word(const char *at) {
    while ((*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'z') || *at == '-' || *at == '+' ||
           *at == '.' || *at == 'E')
        at++;
    return at;
}

/* The walker reads text that jansson has accepted; it only has to stay inside it. */
static const char *skip_string(const char *at) {
    for (at++; *at != '\0' && *at != '"'; at++) {
        if (*at == '\\' && at[1] != '\0')
            at++;
    }
    return *at == '"' ? at + 1 : at;
}

static const char *skip_value(const char *at) {
    int depth = 0;
    do {
        at = skip_space(at);
        if (*at == '"') {
            at = skip_string(at);
        } else if (*at == '{' || *at == '[') {
            depth++;
            at++;
        } else if (*at == '}' || *at == ']') {
            depth--;
            at++;
        } else if (*at == ',' || *at == ':') {
            at++;
        } else {
            const char *end = skip_word(at);
            if (end == at)
                return at; /* the end of the text */
            at = end;
        }
    } while (depth > 0);
    return at;
}

/* Whether the JSON string that starts at `at` spells `name`. */
static bool string_is(const char *at, const char *name, size_t length) {
    size_t raw = (size_t)(skip_string(at) - at);
    if (memchr(at, '\\', raw) == NULL)
        return raw == length + 2 && memcmp(at + 1, name, length) == 0;
    json_t *decoded = json_loadb(at, raw, JSON_DECODE_ANY, NULL);
    bool same = decoded != NULL && json_string_length(decoded) == length &&
                memcmp(json_string_value(decoded), name, length) == 0;
    json_decref(decoded);
    return same;
}

/* The value of a key of the object at `at`; its key through `key_at`. NULL if it is not there. */
static const char *find_member(const char *at, const char *name, size_t length,
                               const char **key_at) {
    if (*at != '{')
        return NULL;
    at = skip_space(at + 1);
    while (*at == '"') {
        const char *key = at;
        at = skip_space(skip_string(at));
        if (*at != ':')
            return NULL;
        at = skip_space(at + 1);
        if (string_is(key, name, length)) {
            *key_at = key;
            return at;
        }
        at = skip_space(skip_value(at));
        if (*at == ',')
            at = skip_space(at + 1);
    }
    return NULL;
}

static const char *find_element(const char *at, unsigned long index) {
    if (*at != '[')
        return NULL;
    at = skip_space(at + 1);
    for (; *at != ']' && *at != '\0'; index--) {
        if (index == 0)
            return at;
        at = skip_space(skip_value(at));
        if (*at == ',')
            at = skip_space(at + 1);
    }
    return NULL;
}

/* Walks `where`, `length` bytes of it, from the root; NULL if it is not there. */
static const char *find_value(const char *text, const char *where, size_t length,
                              const char **key_at) {
    const char *at = skip_space(text);
    const char *end = where + length;
    *key_at = at;
    while (at != NULL && where < end) {
        if (*where == '[') {
            char *close = NULL;
            unsigned long index = strtoul(where + 1, &close, 10);
            if (close == where + 1 || close >= end || *close != ']')
                return NULL;
            at = find_element(at, index);
            *key_at = at;
            where = close + 1;
        } else {
            where += *where == '.';
            size_t part = strcspn(where, ".[");
            if (part > (size_t)(end - where))
                part = (size_t)(end - where);
            at = find_member(at, where, part, key_at);
            where += part;
        }
    }
    return at;
}

bool ev_json_locate(const ev_json *doc, const char *where, bool at_key, int *line, int *column) {
    const char *key = NULL;
    const char *at = find_value(doc->text, where, strlen(where), &key);
    if (at == NULL)
        return false;
    place_of(doc->text, (size_t)((at_key ? key : at) - doc->text), line, column);
    return true;
}

/* ---- loading ---- */

/* jansson reports where it stopped reading, which is behind the token that it names last; the
 * reader wants the start of that token. */
static size_t error_offset(const char *text, const json_error_t *error) {
    size_t stop = error->position < 0 ? 0 : (size_t)error->position;
    size_t all = strlen(text);
    if (stop > all)
        stop = all;
    const char *near = strstr(error->text, " near '");
    if (near == NULL)
        return stop;
    near += strlen(" near '");
    size_t length = strlen(near);
    if (length < 2 || near[length - 1] != '\'')
        return stop;
    length--;
    if (length > stop || memcmp(text + stop - length, near, length) != 0)
        return stop;
    return stop - length;
}

/* Whether it was memory that failed. jansson says so in few cases: often it leaves no words at all,
 * and when it cannot keep a string it calls that string a wrong token. A string that the reader got
 * to the end of is never one. */
static bool error_is_memory(const char *text, const json_error_t *error) {
    if (json_error_code(error) == json_error_out_of_memory || error->text[0] == '\0')
        return true;
    bool wrong_token = strncmp(error->text, "invalid token", 13) == 0 ||
                       strncmp(error->text, "string or '}' expected", 22) == 0;
    return wrong_token && error->position > 0 && text[error->position - 1] == '"';
}

static ev_status fail_syntax(const char *text, const char *name, const json_error_t *error,
                             ev_error *err) {
    if (error_is_memory(text, error))
        return ev_fail(err, EV_INFRA, "%s: out of memory while reading", name);
    int line = 0, column = 0;
    place_of(text, error_offset(text, error), &line, &column);
    return ev_fail(err, EV_BAD, "%s:%d:%d: %s", name, line, column, error->text);
}

ev_status ev_json_take(char *text, const char *name, ev_json **out, ev_error *err) {
    ev_json *doc = calloc(1, sizeof *doc);
    char *path = strdup(name);
    if (doc == NULL || path == NULL) {
        free(doc);
        free(path);
        free(text);
        return ev_fail_memory(err, sizeof *doc + strlen(name) + 1);
    }
    *doc = (ev_json){.text = text, .path = path};
    json_error_t error;
    doc->root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (doc->root == NULL) {
        ev_status status = fail_syntax(text, name, &error, err);
        ev_json_free(doc);
        return status;
    }
    *out = doc;
    return EV_OK;
}

ev_status ev_json_load(const char *path, ev_json **out, ev_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    EV_TRY(ev_file_read(path, &text, &bytes, err));
    size_t before_nul = strlen(text);
    if (before_nul != bytes) {
        int line = 0, column = 0;
        place_of(text, before_nul, &line, &column);
        free(text);
        return ev_fail(err, EV_BAD, "%s:%d:%d: a NUL byte; JSON is text", path, line, column);
    }
    return ev_json_take(text, path, out, err);
}

ev_status ev_json_parse(const char *text, const char *name, ev_json **out, ev_error *err) {
    char *copy = strdup(text);
    if (copy == NULL)
        return ev_fail_memory(err, strlen(text) + 1);
    return ev_json_take(copy, name, out, err);
}

void ev_json_free(ev_json *doc) {
    if (doc == NULL)
        return;
    json_decref(doc->root);
    free(doc->text);
    free(doc->path);
    free(doc);
}

/* ---- messages ---- */

static ev_status fail_at(const ev_json *doc, const char *at, ev_error *err, const char *message) {
    int line = 0, column = 0;
    place_of(doc->text, (size_t)(at - doc->text), &line, &column);
    return ev_fail(err, EV_BAD, "%s:%d:%d: %s", doc->path, line, column, message);
}

/* Where `where` stands, or else the nearest thing around it that is there. */
static const char *find_nearest(const char *text, const char *where) {
    const char *key = NULL;
    size_t length = strlen(where);
    const char *at = find_value(text, where, length, &key);
    while (at == NULL && length > 0) {
        do
            length--;
        while (length > 0 && where[length] != '.' && where[length] != '[');
        at = find_value(text, where, length, &key);
    }
    return at == NULL ? text : at;
}

ev_status ev_json_fail(const ev_json *doc, const char *where, ev_error *err, const char *format,
                       ...) {
    char message[sizeof err->text];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return fail_at(doc, find_nearest(doc->text, where), err, message);
}

/* ---- key tables ---- */

static const char *const KIND_NAMES[] = {
    [EV_JSON_STRING] = "a string", [EV_JSON_INTEGER] = "an integer",
    [EV_JSON_NUMBER] = "a number", [EV_JSON_BOOL] = "true or false",
    [EV_JSON_ARRAY] = "an array",  [EV_JSON_OBJECT] = "an object",
    [EV_JSON_ANY] = "any value",
};

static const char *name_of_value(const json_t *value) {
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a real number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    case JSON_NULL:
        break;
    }
    return "null";
}

static bool kind_fits(const json_t *value, ev_json_kind kind) {
    switch (kind) {
    case EV_JSON_STRING:
        return json_is_string(value);
    case EV_JSON_INTEGER:
        return json_is_integer(value);
    case EV_JSON_NUMBER:
        return json_is_number(value);
    case EV_JSON_BOOL:
        return json_is_boolean(value);
    case EV_JSON_ARRAY:
        return json_is_array(value);
    case EV_JSON_OBJECT:
        return json_is_object(value);
    case EV_JSON_ANY:
        return true;
    }
    return false;
}

static const ev_json_key *find_key(const ev_json_key *keys, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    }
    return NULL;
}

static ev_status fail_unknown(const ev_json *doc, const char *at, const char *name,
                              const ev_json_key *keys, size_t count, ev_error *err) {
    const ev_json_key *nearest = NULL;
    int least = (int)strnlen(name, 48) / 2 + 1;
    for (size_t i = 0; i < count; i++) {
        int distance = ev_text_distance(name, keys[i].name);
        if (distance < least) {
            least = distance;
            nearest = &keys[i];
        }
    }
    ev_str message = EV_STR_EMPTY;
    ev_str_printf(&message, "unknown key '%s'", name);
    if (nearest != NULL)
        ev_str_printf(&message, "; did you mean '%s'?", nearest->name);
    ev_str_append(&message, nearest != NULL ? " Known keys:" : "; known keys:");
    for (size_t i = 0; i < count; i++)
        ev_str_printf(&message, "%s %s", i > 0 ? "," : "", keys[i].name);
    ev_status status = fail_at(doc, at, err, ev_str_text(&message));
    ev_str_free(&message);
    return status;
}

/* A member that does not fit. Places are looked for here alone: each costs a walk over the text. */
static ev_status fail_member(const ev_json *doc, const char *where, const char *name,
                             const json_t *value, const ev_json_key *keys, size_t count,
                             ev_error *err) {
    const char *at = find_nearest(doc->text, where);
    const char *key_at = at;
    const char *value_at = find_member(at, name, strlen(name), &key_at);
    const ev_json_key *key = find_key(keys, count, name);
    if (key == NULL)
        return fail_unknown(doc, key_at, name, keys, count, err);
    char message[512];
    (void)snprintf(message, sizeof message, "'%s' must be %s, and this is %s", name,
                   KIND_NAMES[key->kind], name_of_value(value));
    return fail_at(doc, value_at != NULL ? value_at : at, err, message);
}

ev_status ev_json_check(const ev_json *doc, const json_t *object, const char *where,
                        const ev_json_key *keys, size_t count, ev_error *err) {
    if (!json_is_object(object))
        return ev_json_fail(doc, where, err, "%s must be an object, and this is %s",
                            where[0] != '\0' ? where : "the document", name_of_value(object));
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)object, name, value) {
        const ev_json_key *key = find_key(keys, count, name);
        if (key == NULL || !kind_fits(value, key->kind))
            return fail_member(doc, where, name, value, keys, count, err);
    }
    for (size_t i = 0; i < count; i++) {
        if (keys[i].required && json_object_get(object, keys[i].name) == NULL)
            return ev_json_fail(doc, where, err, "the key '%s' is missing (%s: %s)", keys[i].name,
                                KIND_NAMES[keys[i].kind], keys[i].doc != NULL ? keys[i].doc : "");
    }
    return EV_OK;
}

/* ---- reading and printing ---- */

const char *ev_json_text(const json_t *object, const char *key, const char *otherwise) {
    const json_t *value = json_object_get(object, key);
    return json_is_string(value) ? json_string_value(value) : otherwise;
}

double ev_json_number(const json_t *object, const char *key, double otherwise) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

json_int_t ev_json_integer(const json_t *object, const char *key, json_int_t otherwise) {
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

bool ev_json_flag(const json_t *object, const char *key, bool otherwise) {
    const json_t *value = json_object_get(object, key);
    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

static int append_part(const char *text, size_t bytes, void *to) {
    ev_str *out = to;
    ev_str_append_n(out, text, bytes);
    return out->failed ? -1 : 0;
}

/* By callback: json_dumps of jansson 2.14 leaves a part of the text out where memory runs out
 * within a key. */
char *ev_json_print(const json_t *value, bool compact) {
    size_t shape = compact ? JSON_COMPACT : JSON_INDENT(2);
    size_t flags = JSON_SORT_KEYS | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17) | shape;
    ev_str text = EV_STR_EMPTY;
    bool ok = json_dump_callback(value, append_part, &text, flags) == 0;
    char *taken = ok ? ev_str_take(&text) : NULL; /* NULL where an append failed */
    ev_str_free(&text);
    return taken;
}
