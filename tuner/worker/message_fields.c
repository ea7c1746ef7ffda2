/* Fields: walks over the JSON of a message, to write it or to read and check it. */
#include "tuner/worker/message_fields.h"

#include "base/str.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- failures ---- */

/* Appends "starts[2].sites.delete". */
static void put_name(const fields *f, const char *name, ev_str *to) {
    if (f->outer)
        put_name(f->outer, f->name, to);
    if (!name)
        ev_str_printf(to, "[%zu]", f->taken - 1);
    else if (to->length > 0)
        ev_str_printf(to, ".%s", name);
    else
        ev_str_append(to, name);
}

void fields_refuse(fields *f, const char *name, const char *what) {
    walk *w = f->walk;
    ev_str field = EV_STR_EMPTY;
    if (w->status != EV_OK)
        return;
    put_name(f, name, &field);
    w->status = ev_fail(w->err, w->refusal, "the message '%s': the field '%s' %s", w->message,
                        ev_str_text(&field), what);
    ev_str_free(&field);
}

static void fail_memory(walk *w) {
    if (w->status == EV_OK)
        w->status = ev_fail_memory(w->err, 0);
}

/* ---- one value ---- */

static void note_taken(fields *f, const char *name) {
    assert(!name || f->taken < FIELDS_MOST);
    if (name)
        f->known[f->taken] = name;
    f->taken++;
}

/* Decodes: the value of the field; NULL after a failure. */
static json_t *take(fields *f, const char *name) {
    if (f->walk->status != EV_OK)
        return NULL;
    json_t *value = name ? json_object_get(f->at, name) : json_array_get(f->at, f->taken);
    note_taken(f, name);
    if (!value)
        fields_refuse(f, name, "is missing");
    return value;
}

/* Encodes: takes the reference; NULL: out of memory. */
static void give(fields *f, const char *name, json_t *value) {
    if (f->walk->status != EV_OK) {
        json_decref(value);
        return;
    }
    note_taken(f, name);
    if ((name ? json_object_set_new(f->at, name, value) : json_array_append_new(f->at, value)) != 0)
        fail_memory(f->walk);
}

/* A text as JSON. In a text that is not UTF-8 (a compiler's message, cut within a character), a
 * question mark replaces each byte outside ASCII. */
static json_t *text_json(const char *text) {
    assert(text);
    json_t *json = json_string(text);
    char *plain = json ? NULL : strdup(text);
    for (char *at = plain; at && *at; at++)
        *at = (unsigned char)*at < 128 ? *at : '?';
    if (plain)
        json = json_string(plain);
    free(plain);
    return json;
}

static void read_text(fields *f, const char *name, const json_t *json, const char **value) {
    if (json && !json_is_string(json))
        fields_refuse(f, name, "is no text");
    else if (json)
        *value = json_string_value(json);
}

void field_text(fields *f, const char *name, const char **value) {
    if (f->walk->decodes)
        read_text(f, name, take(f, name), value);
    else
        give(f, name, text_json(*value));
}

void field_maybe_text(fields *f, const char *name, const char **value) {
    if (fields_maybe(f, name, *value != NULL))
        field_text(f, name, value);
}

void field_hash(fields *f, const char *name, char value[EV_SHA256_HEX]) {
    const char *text = value;
    field_text(f, name, &text);
    if (!f->walk->decodes || f->walk->status != EV_OK)
        return;
    size_t length = strlen(text);
    if (length != EV_SHA256_HEX - 1 || strspn(text, "0123456789abcdef") != length)
        fields_refuse(f, name, "is no SHA-256");
    else
        memcpy(value, text, EV_SHA256_HEX);
}

void field_bool(fields *f, const char *name, bool *value) {
    if (!f->walk->decodes) {
        give(f, name, json_boolean(*value));
        return;
    }
    const json_t *json = take(f, name);
    if (json && !json_is_boolean(json))
        fields_refuse(f, name, "is neither true nor false");
    else if (json)
        *value = json_is_true(json);
}

void field_count(fields *f, const char *name, uint64_t *value) {
    if (!f->walk->decodes) {
        assert(*value <= INT64_MAX);
        give(f, name, json_integer((json_int_t)*value));
        return;
    }
    const json_t *json = take(f, name);
    if (json && (!json_is_integer(json) || json_integer_value(json) < 0))
        fields_refuse(f, name, "is no count");
    else if (json)
        *value = (uint64_t)json_integer_value(json);
}

void field_unsigned(fields *f, const char *name, unsigned *value) {
    uint64_t count = *value;
    field_count(f, name, &count);
    if (count > UINT32_MAX)
        fields_refuse(f, name, "is too large");
    else
        *value = (unsigned)count;
}

void field_size(fields *f, const char *name, size_t *value) {
    uint64_t count = *value;
    field_count(f, name, &count);
    *value = (size_t)count;
}

void field_bits(fields *f, const char *name, uint64_t *value) {
    char own[17];
    const char *text = own;
    snprintf(own, sizeof own, "%016" PRIx64, *value);
    field_text(f, name, &text);
    if (!f->walk->decodes || f->walk->status != EV_OK)
        return;
    if (strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        fields_refuse(f, name, "is no 16 hexadecimal digits");
    else
        *value = strtoull(text, NULL, 16);
}

void field_number(fields *f, const char *name, double *value) {
    if (!f->walk->decodes && !isfinite(*value)) {
        note_taken(f, name);
        fields_refuse(f, name, "is no finite number");
        return;
    }
    if (!f->walk->decodes) {
        give(f, name, json_real(*value));
        return;
    }
    const json_t *json = take(f, name);
    if (json && !json_is_number(json))
        fields_refuse(f, name, "is no number");
    else if (json)
        *value = json_number_value(json);
}

void field_value(fields *f, const char *name, json_t **value) {
    if (f->walk->decodes)
        *value = take(f, name);
    else
        give(f, name, json_incref(*value));
}

void field_genome(fields *f, const char *name, const ir_genome **value) {
    walk *w = f->walk;
    if (!w->decodes) {
        give(f, name, ir_genome_to_json(*value));
        return;
    }
    ev_error why = {0};
    ir_genome *genome = NULL;
    const json_t *json = take(f, name);
    if (json && ir_genome_from_json(json, &genome, &why) != EV_OK) {
        char what[sizeof why.text + 20];
        snprintf(what, sizeof what, "is no genome (%s)", why.text);
        fields_refuse(f, name, what);
    }
    *value = genome;
    if (genome)
        w->genomes[w->genome_count++] = genome;
}

void field_score(fields *f, const char *name, score *value) {
    if (!f->walk->decodes) {
        give(f, name, score_to_json(value));
        return;
    }
    ev_error why = {0};
    const json_t *json = take(f, name);
    if (json && score_from_json(json, value, &why) != EV_OK)
        fields_refuse(f, name, why.text);
}

unsigned field_word(fields *f, const char *name, unsigned value, unsigned count,
                    const char *(*word)(unsigned)) {
    const char *text = f->walk->decodes ? "" : word(value);
    field_text(f, name, &text);
    if (!f->walk->decodes || f->walk->status != EV_OK)
        return value;
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(word(i), text) == 0)
            return i;
    }
    char what[120];
    snprintf(what, sizeof what, "is '%.80s', which is none of its words", text);
    fields_refuse(f, name, what);
    return value;
}

/* ---- objects and lists ---- */

static fields enter(fields *f, const char *name, bool is_list) {
    fields in = {.walk = f->walk, .outer = f, .name = name};
    if (f->walk->decodes) {
        in.at = take(f, name);
        if (in.at && is_list && !json_is_array(in.at))
            fields_refuse(f, name, "is no list");
        else if (in.at && !is_list && !json_is_object(in.at))
            fields_refuse(f, name, "is no object");
    } else {
        in.at = is_list ? json_array() : json_object();
        give(f, name, in.at);
    }
    if (f->walk->status != EV_OK)
        in.at = NULL;
    return in;
}

fields fields_enter(fields *f, const char *name) {
    return enter(f, name, false);
}

fields fields_enter_list(fields *f, const char *name, size_t *count, size_t most) {
    fields in = enter(f, name, true);
    if (f->walk->decodes)
        *count = json_array_size(in.at);
    if (f->walk->decodes && *count > most) {
        fields_refuse(f, name, "has too many elements");
        *count = 0;
    }
    assert(*count <= most);
    return in;
}

static bool is_known(const fields *f, const char *name) {
    for (size_t i = 0; i < f->taken; i++) {
        if (strcmp(f->known[i], name) == 0)
            return true;
    }
    return false;
}

void fields_leave(fields *f) {
    const char *name = NULL;
    json_t *value = NULL;
    if (!f->walk->decodes || f->walk->status != EV_OK || json_is_array(f->at) || f->takes_more)
        return;
    json_object_foreach(f->at, name, value) {
        if (!is_known(f, name))
            fields_refuse(f, name, "is none of its fields");
    }
}

bool fields_maybe(fields *f, const char *name, bool is_there) {
    if (f->walk->status != EV_OK)
        return false;
    if (!f->walk->decodes) {
        if (!is_there)
            give(f, name, json_null());
        return is_there;
    }
    bool is_null = json_is_null(json_object_get(f->at, name));
    if (is_null)
        note_taken(f, name);
    return !is_null; /* a missing field is refused when it is read */
}

void *fields_items(fields *f, void *items, size_t count, size_t bytes) {
    walk *w = f->walk;
    if (!w->decodes)
        return items;
    if (w->status != EV_OK || count == 0)
        return NULL;
    if (!w->arena)
        w->arena = ev_arena_new();
    void *made = w->arena ? ev_arena_array(w->arena, count, bytes) : NULL;
    if (!made)
        fail_memory(w);
    return made;
}
