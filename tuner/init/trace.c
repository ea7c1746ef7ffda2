/* Reads what the stand-in recorded of a program's launches. */
#include "tuner/init/trace.h"

#include "base/file.h"
#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS_MOST = 1000, PARAMETERS_MOST = 1000 };

#define COUNT_OF(table) (sizeof(table) / sizeof(table)[0])

static const ev_json_key LAUNCH_KEYS[] = {
    {"kernel", EV_JSON_STRING, true, ""},    {"number", EV_JSON_INTEGER, true, ""},
    {"result", EV_JSON_INTEGER, true, ""},   {"grid", EV_JSON_ARRAY, true, ""},
    {"block", EV_JSON_ARRAY, true, ""},      {"shared", EV_JSON_INTEGER, true, ""},
    {"parameters", EV_JSON_ARRAY, true, ""}, {"values", EV_JSON_STRING, true, ""},
    {"parts", EV_JSON_ARRAY, true, ""},
};

static bool number_at(const json_t *array, size_t index, uint64_t most, uint64_t *out) {
    const json_t *value = json_array_get(array, index);
    json_int_t number = json_integer_value(value);
    *out = (uint64_t)number;
    return json_is_integer(value) && number >= 0 && (uint64_t)number <= most;
}

static bool read_dimensions(const json_t *array, uint32_t out[3]) {
    for (size_t i = 0; i < 3; i++) {
        uint64_t value = 0;
        if (!number_at(array, i, UINT32_MAX, &value) || value == 0)
            return false;
        out[i] = (uint32_t)value;
    }
    return true;
}

static int digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_values(ev_arena *arena, const char *text, trace_launch *l) {
    l->value_bytes = strlen(text) / 2;
    l->values = ev_arena_alloc(arena, l->value_bytes + 8);
    for (size_t i = 0; l->values != NULL && i < l->value_bytes; i++) {
        int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        l->values[i] = (unsigned char)(high * 16 + low);
    }
    return l->values != NULL;
}

static bool read_parameters(ev_arena *arena, const json_t *array, trace_launch *l) {
    l->parameter_count = json_array_size(array);
    if (l->parameter_count > PARAMETERS_MOST)
        return false;
    l->parameters = ev_arena_array(arena, l->parameter_count + 1, sizeof *l->parameters);
    for (size_t i = 0; l->parameters != NULL && i < l->parameter_count; i++) {
        const json_t *row = json_array_get(array, i);
        uint64_t offset = 0, bytes = 0;
        if (!number_at(row, 0, l->value_bytes, &offset) ||
            !number_at(row, 1, l->value_bytes - offset, &bytes))
            return false;
        l->parameters[i][0] = (uint32_t)offset;
        l->parameters[i][1] = (uint32_t)bytes;
    }
    return l->parameters != NULL;
}

static bool read_parts(ev_arena *arena, const json_t *array, trace_launch *l) {
    l->part_count = json_array_size(array);
    if (l->part_count > PARTS_MOST)
        return false;
    l->parts = EV_NEW_ARRAY(arena, trace_part, l->part_count + 1);
    for (size_t i = 0; l->parts != NULL && i < l->part_count; i++) {
        const json_t *row = json_array_get(array, i);
        json_int_t address = ev_json_integer(row, "address", -1);
        json_int_t bytes = ev_json_integer(row, "bytes", -1);
        const char *name = ev_json_text(row, "variable", NULL);
        if (address < 0 || bytes <= 0)
            return false;
        l->parts[i] = (trace_part){.address = (uint64_t)address,
                                   .bytes = (uint64_t)bytes,
                                   .variable = name != NULL ? ev_arena_strdup(arena, name) : NULL};
    }
    return l->parts != NULL;
}

static ev_status read_launch(ev_arena *arena, const ev_json *doc, const char *folder,
                             trace_launch *l, ev_error *err) {
    const json_t *o = doc->root;
    EV_TRY(ev_json_check(doc, o, "", LAUNCH_KEYS, COUNT_OF(LAUNCH_KEYS), err));
    *l = (trace_launch){.folder = ev_arena_strdup(arena, folder),
                        .kernel = ev_arena_strdup(arena, ev_json_text(o, "kernel", "")),
                        .number = (uint64_t)ev_json_integer(o, "number", 0),
                        .result = (int)ev_json_integer(o, "result", 0),
                        .shared = (uint32_t)ev_json_integer(o, "shared", 0)};
    bool ok = read_dimensions(json_object_get(o, "grid"), l->grid) &&
              read_dimensions(json_object_get(o, "block"), l->block) &&
              read_values(arena, ev_json_text(o, "values", ""), l) &&
              read_parameters(arena, json_object_get(o, "parameters"), l) &&
              read_parts(arena, json_object_get(o, "parts"), l);
    if (ev_arena_failed(arena))
        return ev_fail_memory(err, 1);
    return ok ? EV_OK : ev_fail(err, EV_BAD, "%s: the record of a launch is damaged", doc->path);
}

static ev_status add_launch(trace *t, const char *folder, const char *file, size_t *room,
                            ev_error *err) {
    ev_json *doc = NULL;
    EV_TRY(ev_json_load(file, &doc, err));
    if (t->count == *room) {
        *room = *room == 0 ? 16 : *room * 2;
        trace_launch *more = EV_NEW_ARRAY(t->arena, trace_launch, *room);
        if (more != NULL && t->count > 0)
            memcpy(more, t->launches, t->count * sizeof *more);
        t->launches = more;
    }
    ev_status status = t->launches != NULL
                           ? read_launch(t->arena, doc, folder, &t->launches[t->count], err)
                           : ev_fail_memory(err, *room);
    t->count += status == EV_OK;
    ev_json_free(doc);
    return status;
}

/* The lines of a file that may be missing. */
static ev_status append_lines(const char *folder, const char *name, ev_str *out, ev_error *err) {
    char *path = ev_path_join(folder, name), *text = NULL;
    size_t bytes = 0;
    ev_status status = path != NULL ? EV_OK : ev_fail_memory(err, strlen(folder));
    if (status == EV_OK && ev_path_exists(path))
        status = ev_file_read(path, &text, &bytes, err);
    if (text != NULL)
        ev_str_append_n(out, text, bytes);
    free(text);
    free(path);
    return status;
}

/* The launches of one process; one that did not end has no launch.json. */
static ev_status read_process(trace *t, const char *folder, size_t *room, ev_error *err) {
    ev_str tables = EV_STR_EMPTY;
    ev_status status = append_lines(folder, "kernels", &t->kernels, err);
    if (status == EV_OK)
        status = append_lines(folder, "said", &t->said, err);
    if (status == EV_OK)
        status = append_lines(folder, "left", &t->left, err);
    if (status == EV_OK)
        status = append_lines(folder, "tables", &tables, err);
    t->asks_tables |= tables.length > 0;
    ev_str_free(&tables);
    for (size_t i = 1; status == EV_OK; i++) {
        char path[4096], file[4200];
        (void)snprintf(path, sizeof path, "%s/%zu", folder, i);
        (void)snprintf(file, sizeof file, "%s/launch.json", path);
        if (!ev_path_is_dir(path))
            break;
        if (ev_path_exists(file))
            status = add_launch(t, path, file, room, err);
    }
    return status;
}

ev_status trace_read(const char *folder, trace *out, ev_error *err) {
    trace t = {.arena = ev_arena_new()};
    size_t room = 0;
    ev_status status = t.arena != NULL ? EV_OK : ev_fail_memory(err, 1);
    for (size_t i = 1; status == EV_OK; i++) {
        char path[4096];
        (void)snprintf(path, sizeof path, "%s/%zu", folder, i);
        if (!ev_path_is_dir(path))
            break;
        t.processes++;
        size_t before = t.count;
        status = read_process(&t, path, &room, err);
        t.recorded += t.count > before;
    }
    if (status == EV_OK)
        *out = t;
    else
        trace_free(&t);
    return status;
}

void trace_free(trace *t) {
    ev_arena_free(t->arena);
    ev_str_free(&t->kernels);
    ev_str_free(&t->said);
    ev_str_free(&t->left);
    *t = (trace){0};
}

ev_status trace_read_part(const trace_launch *l, size_t part, bool after, char **out,
                          ev_error *err) {
    char path[4200];
    size_t bytes = 0;
    (void)snprintf(path, sizeof path, "%s/%zu.%s", l->folder, part, after ? "after" : "before");
    EV_TRY(ev_file_read(path, out, &bytes, err));
    if (bytes == l->parts[part].bytes)
        return EV_OK;
    free(*out);
    *out = NULL;
    return ev_fail(err, EV_BAD, "%s has %zu bytes, and the buffer %" PRIu64, path, bytes,
                   l->parts[part].bytes);
}
