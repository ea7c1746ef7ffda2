/* Buffers of structs, and the members of the structs.
 *
 * The buffer itself is one of whole numbers: u32, u16 or u8, the largest that every member's place
 * is a multiple of. Its members are arguments behind the symbols, with data and domains of their
 * own. */
#include "kernels/task_private.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_NUMBERS 4096 /* of an array in a struct */
#define VECTOR_ALIGN 16u  /* bytes; what a larger vector is aligned to, too */

size_t task_all_count(const task *t) {
    return t->argument_count + t->symbol_count + t->member_count;
}

uint64_t task_member_place(const task_argument *member, uint64_t element) {
    return element / member->numbers * member->owner->struct_bytes + member->offset +
           element % member->numbers * ev_type_bytes(member->type);
}

void task_element_name(const task_argument *a, uint64_t element, ev_str *out) {
    if (a->owner == NULL) {
        ev_str_printf(out, "%s[%" PRIu64 "]", a->name, element);
        return;
    }
    uint64_t number = element % a->numbers;
    ev_str_printf(out, "%s[%" PRIu64 "]%s", a->owner->name, element / a->numbers,
                  a->name + strlen(a->owner->name));
    if (a->numbers > a->vector)
        ev_str_printf(out, "[%" PRIu64 "]", number / a->vector);
    if (a->vector > 1)
        ev_str_printf(out, ".%c", "xyzw"[number % a->vector]);
}

bool task_members_has(const json_t *value) {
    return json_object_get(value, "fields") != NULL;
}

/* ---- one member ---- */

/* "mass", "box.low", "corner[2].id" */
static bool is_path(const char *name) {
    bool begins = true; /* a word */
    for (; *name != '\0'; name++) {
        unsigned char c = (unsigned char)*name;
        if (c == '.' && !begins)
            begins = true;
        else if (c == '[' && !begins && isdigit((unsigned char)name[1]) != 0)
            name += strspn(name + 1, "0123456789") + 1;
        else if (isalpha(c) || c == '_' || (isdigit(c) && !begins))
            begins = false;
        else
            return false;
        if (c == '[' && *name != ']')
            return false;
    }
    return !begins;
}

static ev_status read_name(task_loader *l, const json_t *value, const char *where,
                           task_argument *m) {
    char at[TASK_MAX_WHERE];
    const char *name = ev_json_text(value, "name", "");
    (void)snprintf(at, sizeof at, "%s.name", where);
    if (!is_path(name))
        return ev_json_fail(l->doc, at, l->err,
                            "\"%s\" is no member of a struct, like \"mass\", \"box.low\" or "
                            "\"corner[2].id\"",
                            name);
    for (size_t i = m->owner->first_member; i < l->member_count; i++) {
        if (strcmp(l->members[i].name, name) == 0)
            return ev_json_fail(l->doc, at, l->err, "a second field is named %s", name);
    }
    m->name = task_keep(l, name);
    m->doc = task_keep(l, ev_json_text(value, "doc", ""));
    return EV_OK;
}

/* "f32", or "f32x4" of a vector. */
static ev_status read_type(task_loader *l, const json_t *value, const char *where,
                           task_argument *m) {
    char at[TASK_MAX_WHERE], word[16];
    const char *text = ev_json_text(value, "type", ""), *x = strchr(text, 'x');
    size_t length = x != NULL ? (size_t)(x - text) : strlen(text);
    (void)snprintf(at, sizeof at, "%s.type", where);
    (void)snprintf(word, sizeof word, "%.*s", (int)(length < 15 ? length : 15), text);
    EV_TRY(task_read_type(l, word, at, &m->type));
    m->vector = 1;
    if (x == NULL)
        return EV_OK;
    if (strlen(x) != 2 || x[1] < '2' || x[1] > '4')
        return ev_json_fail(l->doc, at, l->err,
                            "\"%s\" is no vector; those of %s are %sx2, %sx3 and %sx4", text, word,
                            word, word, word);
    m->vector = (uint32_t)(x[1] - '0');
    return EV_OK;
}

static uint32_t round_up(uint32_t bytes, uint32_t align) {
    return (bytes + align - 1) / align * align;
}

/* As C aligns it: CUDA's vectors of 2 and 4 as a whole. */
static uint32_t align_of(const task_argument *m) {
    uint32_t bytes = (uint32_t)ev_type_bytes(m->type), whole = bytes * m->vector;
    if (m->vector == 3)
        return bytes;
    return whole < VECTOR_ALIGN ? whole : VECTOR_ALIGN;
}

static uint32_t bytes_of(const task_argument *m) {
    return m->numbers * (uint32_t)ev_type_bytes(m->type);
}

/* Places a member behind `end`, where those before it end. */
static ev_status read_place(task_loader *l, const json_t *value, const char *where, uint32_t end,
                            task_argument *m) {
    char at[TASK_MAX_WHERE];
    json_int_t count = ev_json_integer(value, "count", 1);
    (void)snprintf(at, sizeof at, "%s.count", where);
    if (count < 1 || count > MOST_NUMBERS)
        return ev_json_fail(l->doc, at, l->err, "a member has 1 to %d numbers or vectors",
                            MOST_NUMBERS);
    m->numbers = (uint32_t)count * m->vector;
    json_int_t offset = ev_json_integer(value, "offset", round_up(end, align_of(m)));
    (void)snprintf(at, sizeof at, "%s.offset", where);
    if (offset < end || offset + bytes_of(m) > TASK_MAX_STRUCT)
        return ev_json_fail(l->doc, at, l->err,
                            "a field begins at or behind the end of the field before, %u, and ends "
                            "within %d bytes",
                            end, TASK_MAX_STRUCT);
    m->offset = (uint32_t)offset;
    return EV_OK;
}

static ev_status read_contents(task_loader *l, const json_t *value, const char *where,
                               task_argument *m) {
    char at[TASK_MAX_WHERE];
    const json_t *data = json_object_get(value, "data");
    bool is_read = m->kind != TASK_OUT;
    (void)snprintf(at, sizeof at, "%s.data", where);
    if (!is_read && (data != NULL || json_object_get(value, "domain") != NULL))
        return ev_json_fail(l->doc, where, l->err,
                            "a field of an output has neither \"data\" nor a \"domain\"");
    if (is_read && data == NULL && m->owner->file == NULL)
        return ev_json_fail(l->doc, where, l->err, "the field %s of %s needs \"data\"", m->name,
                            m->owner->name);
    if (data != NULL) {
        EV_TRY(task_read_data(l, data, at, &m->generator, &m->file, m->parameters));
    } else if (is_read) {
        m->generator = m->owner->generator;
        m->file = m->owner->file;
    }
    EV_TRY(task_read_domain(l, value, where, m));
    return data != NULL ? task_read_initial(l, value, where, m) : EV_OK;
}

static ev_status read_member(task_loader *l, const json_t *value, const char *where, uint32_t end,
                             const task_argument *owner, const char *count) {
    if (l->member_count == TASK_MAX_MEMBERS)
        return ev_json_fail(l->doc, where, l->err,
                            "the structs in buffers have more than %d fields", TASK_MAX_MEMBERS);
    task_argument *m = &l->members[l->member_count];
    EV_TRY(task_check_keys(l, value, where, &TASK_TABLE_MEMBER));
    m->owner = owner;
    m->kind = owner->kind;
    EV_TRY(read_name(l, value, where, m));
    EV_TRY(read_type(l, value, where, m));
    EV_TRY(read_place(l, value, where, end, m));
    EV_TRY(read_contents(l, value, where, m));
    EV_TRY(task_read_tolerance(l, value, where, m));
    m->count = ev_arena_printf(l->arena, "(%s) * %u", count, m->numbers);
    if (m->count == NULL)
        return ev_fail_memory(l->err, strlen(count));
    l->member_count++;
    return EV_OK;
}

/* ---- the buffer ---- */

/* The largest words whose bounds are the members'. */
static ev_type word_of(const task_loader *l, const task_argument *a) {
    static const ev_type words[] = {EV_U32, EV_U16};
    uint32_t places = a->struct_bytes;
    for (size_t i = a->first_member; i < l->member_count; i++)
        places |= l->members[i].offset | (uint32_t)ev_type_bytes(l->members[i].type);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (places % ev_type_bytes(words[i]) == 0)
            return words[i];
    }
    return EV_U8;
}

static ev_status read_header(task_loader *l, const json_t *value, const char *where,
                             task_argument *a) {
    char at[TASK_MAX_WHERE];
    const char *word = ev_json_text(value, "kind", "");
    const json_t *data = json_object_get(value, "data");
    EV_TRY(task_check_keys(l, value, where, &TASK_TABLE_BUFFER));
    a->name = task_keep(l, ev_json_text(value, "name", ""));
    a->doc = task_keep(l, ev_json_text(value, "doc", ""));
    (void)snprintf(at, sizeof at, "%s.name", where);
    EV_TRY(task_check_name(l, a->name, at));
    (void)snprintf(at, sizeof at, "%s.kind", where);
    while (a->kind < TASK_SCALAR && strcmp(task_argument_kind_name(a->kind), word) != 0)
        a->kind++;
    if (a->kind == TASK_SCALAR)
        return ev_json_fail(l->doc, at, l->err,
                            "an argument with \"fields\" is a \"struct\" that is passed by value, "
                            "or a buffer of structs: \"in\", \"out\" or \"inout\"");
    a->begins_constant = true; /* the members have the contents */
    a->generator = a->kind == TASK_OUT ? NULL : corpus_generator_find("zeros");
    (void)snprintf(at, sizeof at, "%s.data", where);
    if (data == NULL)
        return EV_OK;
    if (a->kind == TASK_OUT || json_object_get(data, "file") == NULL)
        return ev_json_fail(l->doc, at, l->err,
                            "the data of structs stand in a \"file\", or beside their fields");
    return task_read_data(l, data, at, &a->generator, &a->file, a->parameters);
}

ev_status task_members_read(task_loader *l, const json_t *value, const char *where,
                            task_argument *a) {
    char at[TASK_MAX_WHERE];
    const json_t *fields = json_object_get(value, "fields");
    const char *count = NULL;
    uint32_t end = 0, align = 1;
    EV_TRY(read_header(l, value, where, a));
    (void)snprintf(at, sizeof at, "%s.count", where);
    EV_TRY(task_read_expression(l, json_object_get(value, "count"), at, &count));
    (void)snprintf(at, sizeof at, "%s.fields", where);
    EV_TRY(task_check_size(l, json_array_size(fields), 1, TASK_MAX_MEMBERS, at));
    a->first_member = l->member_count;
    a->member_count = json_array_size(fields);
    for (size_t i = 0; i < a->member_count; i++) {
        (void)snprintf(at, sizeof at, "%s.fields[%zu]", where, i);
        EV_TRY(read_member(l, json_array_get(fields, i), at, end, a, count));
        const task_argument *m = &l->members[l->member_count - 1];
        end = m->offset + bytes_of(m);
        align = align_of(m) > align ? align_of(m) : align;
    }
    json_int_t stride = ev_json_integer(value, "stride", round_up(end, align));
    (void)snprintf(at, sizeof at, "%s.stride", where);
    if (stride < end || stride > TASK_MAX_STRUCT)
        return ev_json_fail(l->doc, at, l->err, "a struct has from %u bytes, its fields', to %d",
                            end, TASK_MAX_STRUCT);
    a->struct_bytes = (uint32_t)stride;
    a->type = word_of(l, a);
    a->count = ev_arena_printf(l->arena, "(%s) * %u", count,
                               a->struct_bytes / (uint32_t)ev_type_bytes(a->type));
    if (a->count == NULL)
        return ev_fail_memory(l->err, strlen(count));
    return task_read_align(l, value, where, a);
}

ev_status task_members_end(task_loader *l, task_argument *all, size_t first) {
    task_argument *to = all + first;
    for (size_t i = 0; i < l->member_count; i++) {
        to[i] = l->members[i];
        to[i].name = ev_arena_printf(l->arena, "%s.%s", to[i].owner->name, to[i].name);
        to[i].align = (uint32_t)ev_type_bytes(to[i].type);
        to[i].parameter = to[i].owner->parameter;
        if (to[i].name == NULL)
            return ev_fail_memory(l->err, strlen(l->members[i].name));
    }
    /* A buffer counted its members from 0. */
    for (size_t i = 0; i < l->t->argument_count; i++) {
        if (all[i].member_count > 0)
            all[i].first_member += first;
    }
    l->t->members = to;
    l->t->member_count = l->member_count;
    return EV_OK;
}

ev_status task_members_check(const task *t, const ev_json *doc, ev_error *err) {
    for (size_t i = 0; i < t->case_count; i++) {
        for (size_t k = 0; k < t->cases[i].data_count; k++) {
            char where[TASK_MAX_WHERE];
            const task_data *d = &t->cases[i].data[k];
            const task_argument *a = &t->arguments[d->argument];
            (void)snprintf(where, sizeof where, "cases[%zu].data.%s", i, a->name);
            if (a->member_count > 0 && d->file == NULL)
                return ev_json_fail(doc, where, err,
                                    "%s is a buffer of structs: its data are a \"file\", or those "
                                    "of its fields, as \"%s.%s\"",
                                    a->name, a->name,
                                    t->arguments[a->first_member].name + strlen(a->name) + 1);
        }
    }
    for (size_t i = 0; t->ranks != NULL && i < t->argument_count; i++) {
        char where[TASK_MAX_WHERE];
        (void)snprintf(where, sizeof where, "arguments[%zu]", t->arguments[i].parameter);
        if (t->arguments[i].member_count > 0)
            return ev_json_fail(doc, where, err,
                                "a task with \"ranks\" cannot have buffers of structs yet; pass a "
                                "buffer for each field of %s",
                                t->arguments[i].name);
    }
    return EV_OK;
}
