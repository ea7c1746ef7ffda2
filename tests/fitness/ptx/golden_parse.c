/* Reads the goldens of the instruction table: a line at a time, no look-ahead; makes modules of
 * them. */
#include "tests/fitness/ptx/golden_parse.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    ev_arena *arena;
    const char *path;
    unsigned line;
    const char *row, *module_text, *head;
    golden_file *file;
    size_t insn_room, case_room;
    ev_error *err;
    bool failed;
} reader;

static void fail(reader *r, const char *found, const char *expected) {
    if (!r->failed)
        (void)ev_fail(r->err, EV_BAD, "%s:%u: found \"%s\"; expected %s", r->path, r->line, found,
                      expected);
    r->failed = true;
}

/* Room for one more element behind `count`. */
static void *grow(reader *r, void *list, size_t *room, size_t count, size_t size) {
    if (count < *room)
        return list;
    *room = *room ? *room * 2 : 16;
    void *larger = ev_arena_array(r->arena, *room, size);
    if (!larger) {
        fail(r, "no memory", "more of it");
        return NULL;
    }
    if (count)
        memcpy(larger, list, count * size);
    return larger;
}

static bool take(const char **at, const char *text) {
    size_t n = strlen(text);
    if (strncmp(*at, text, n) != 0)
        return false;
    *at += n;
    return true;
}

static const golden_fault FAULTS[] = {
#define GOLDEN_FAULT(name, guarded_only, reason) {name, reason, guarded_only},
#include "tests/fitness/ptx/golden_faults.def"
};

static void parse_fault(reader *r, const char **at, golden_case *c) {
    const char *from = *at;
    size_t length = strcspn(from, " ;");
    *at += length;
    for (size_t i = 0; i < sizeof FAULTS / sizeof *FAULTS; i++) {
        if (strlen(FAULTS[i].name) == length && strncmp(FAULTS[i].name, from, length) == 0)
            c->fault = &FAULTS[i];
    }
    if (!c->fault)
        fail(r, from, "a name of golden_faults.def");
}

static uint8_t width_of(size_t digits) {
    if (digits == 1)
        return 1;
    bool whole = digits == 2 || digits == 4 || digits == 8 || digits == 16;
    return (uint8_t)(whole ? digits * 4 : 0);
}

static uint64_t parse_hex(reader *r, const char **at, uint8_t *bits) {
    size_t digits = strspn(*at, "0123456789abcdef");
    *bits = width_of(digits);
    if (!*bits || (*bits == 1 && **at != '0' && **at != '1')) {
        fail(r, *at, "1, 2, 4, 8 or 16 hexadecimal digits");
        return 0;
    }
    uint64_t v = strtoull(*at, NULL, 16);
    *at += digits;
    return v;
}

static golden_value parse_value(reader *r, const char **at) {
    static const struct {
        const char *text;
        golden_kind kind;
        uint8_t bits;
    } words[] = {
        {"nanf16", GOLDEN_NAN_F16, 16}, {"nanbf16", GOLDEN_NAN_BF16, 16},
        {"nan32", GOLDEN_NAN_32, 32},   {"nan64", GOLDEN_NAN_64, 64},
        {"-", GOLDEN_UNWRITTEN, 0},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (take(at, words[i].text))
            return (golden_value){.kind = words[i].kind, .bits = words[i].bits};
    golden_value v = {.kind = GOLDEN_EXACT};
    do {
        if (v.count == GOLDEN_EITHER) {
            fail(r, *at, "four alternatives at most");
            break;
        }
        uint8_t bits = 0;
        v.either[v.count++] = parse_hex(r, at, &bits);
        if (v.count > 1 && bits != v.bits)
            fail(r, *at, "alternatives of one width");
        v.bits = bits;
    } while (take(at, "|"));
    if (take(at, "~"))
        v.ulps = strtoull(*at, (char **)at, 10);
    return v;
}

/* One item of a list: a value, V*n or V..W. */
static void parse_item(reader *r, const char **at, golden_operand *o, size_t *room) {
    golden_value v = parse_value(r, at);
    uint64_t copies = 1, step = 0;
    if (take(at, "*")) {
        copies = strtoull(*at, (char **)at, 10);
    } else if (take(at, "..")) {
        uint8_t bits = 0;
        copies = parse_hex(r, at, &bits) - v.either[0] + 1;
        step = 1;
    }
    if (copies == 0 || copies > GOLDEN_LANES)
        fail(r, *at, "1 to 1024 values");
    for (uint64_t i = 0; i < copies && !r->failed; i++) {
        o->values = grow(r, o->values, room, o->count, sizeof v);
        if (!o->values)
            return;
        o->values[o->count++] = v;
        v.either[0] += step;
    }
}

static void parse_values(reader *r, const char **at, golden_operand *o) {
    size_t room = 0;
    bool list = take(at, "[");
    do {
        parse_item(r, at, o, &room);
        while (list && take(at, " "))
            ;
    } while (list && **at && **at != ']' && !r->failed);
    if (list && !take(at, "]"))
        fail(r, *at, "]");
}

static void parse_shape(const char **at, uint32_t shape[3]) {
    for (int i = 0; i < 3; i++) {
        shape[i] = (uint32_t)strtoul(*at, (char **)at, 10);
        if (!take(at, ","))
            break;
    }
}

static golden_operand *operand_room(reader *r, const char *at, golden_case *c, bool after) {
    size_t *count = after ? &c->out_count : &c->in_count;
    if (*count == GOLDEN_OPERANDS) {
        fail(r, at, "fewer registers");
        return NULL;
    }
    return &(after ? c->out : c->in)[(*count)++];
}

static void parse_register(reader *r, const char **at, golden_case *c, bool after) {
    size_t length = strspn(*at, "abcdefghijklmnopqrstuvwxyz");
    const char *name = ev_arena_strndup(r->arena, *at, length);
    const char *from = *at;
    *at += length;
    bool any_order = take(at, "~");
    if (!name || !length || !take(at, "=")) {
        fail(r, from, "NAME=BITS");
        return;
    }
    bool memory = strcmp(name, "m") == 0;
    bool list = **at == '[';
    golden_operand *space = after ? &c->memory_after : &c->memory;
    golden_operand *o = memory ? space : operand_room(r, from, c, after);
    if (!o)
        return;
    *o = (golden_operand){.name = name, .any_order = any_order};
    parse_values(r, at, o);
    c->shaped |= memory || list;
}

static void parse_field(reader *r, const char **at, golden_case *c, bool after) {
    if (take(at, "grid=")) {
        parse_shape(at, c->grid);
        c->shaped = true;
    } else if (take(at, "block=")) {
        parse_shape(at, c->block);
        c->shaped = true;
    } else if (take(at, "dynamic=")) {
        c->dynamic = (uint32_t)strtoul(*at, (char **)at, 10);
        c->shaped = true;
    } else if (take(at, "trap=")) {
        size_t length = strcspn(*at, " ;");
        c->trap = ev_arena_strndup(r->arena, *at, length);
        c->shaped = true;
        *at += length;
    } else if (take(at, "ptxas=")) {
        parse_fault(r, at, c);
    } else {
        parse_register(r, at, c, after);
    }
}

/* One case, up to `;` or the end of the line. */
static void parse_case(reader *r, const char **at, golden_case *c) {
    *c = (golden_case){.line = r->line, .grid = {1, 1, 1}, .block = {0, 1, 1}};
    bool after = false;
    while (!r->failed) {
        *at += strspn(*at, " ");
        if (!**at || take(at, ";"))
            break;
        if (take(at, "->"))
            after = true;
        else
            parse_field(r, at, c, after);
    }
    if (!after)
        fail(r, *at, "->");
}

static void parse_cases(reader *r, const char *at) {
    if (!r->file->count) {
        fail(r, at, "an instruction before its cases");
        return;
    }
    golden_insn *insn = &r->file->insns[r->file->count - 1];
    while (*at && !r->failed) {
        insn->cases = grow(r, insn->cases, &r->case_room, insn->case_count, sizeof *insn->cases);
        if (insn->cases)
            parse_case(r, &at, &insn->cases[insn->case_count++]);
    }
}

static void parse_insn(reader *r, const char *text) {
    golden_file *f = r->file;
    f->insns = grow(r, f->insns, &r->insn_room, f->count, sizeof *f->insns);
    if (!f->insns)
        return;
    r->case_room = 0;
    f->insns[f->count++] = (golden_insn){.line = r->line,
                                         .row = r->row,
                                         .head = r->head,
                                         .module_text = r->module_text,
                                         .text = text};
    if (!r->row)
        fail(r, text, "a row first");
}

static void parse_line(reader *r, const char *text) {
    const char *at = text;
    if (!*text)
        return;
    if (*text == ' ') {
        parse_cases(r, text + strspn(text, " "));
    } else if (take(&at, "row ")) {
        r->row = at;
        r->module_text = "";
        r->head = NULL;
    } else if (take(&at, "head ")) {
        r->head = at;
    } else if (take(&at, "module ")) {
        r->module_text = ev_arena_printf(r->arena, "%s%s\n", r->module_text, at);
        if (!r->module_text)
            fail(r, at, "memory");
    } else {
        parse_insn(r, text);
    }
}

static void trim(char *text) {
    text[strcspn(text, "#")] = 0;
    size_t n = strlen(text);
    while (n && text[n - 1] == ' ')
        text[--n] = 0;
}

ev_status golden_read(const char *path, ev_arena *arena, golden_file *out, ev_error *err) {
    char *data = NULL;
    size_t bytes = 0;
    EV_TRY(ev_file_read(path, &data, &bytes, err));
    char *text = ev_arena_strndup(arena, data, bytes);
    free(data);
    if (!text)
        return ev_fail_memory(err, bytes);
    *out = (golden_file){0};
    reader r = {.arena = arena, .path = path, .file = out, .err = err, .module_text = ""};
    while (*text && !r.failed) {
        char *end = text + strcspn(text, "\n");
        r.line++;
        while (end > text && end[-1] == '\\' && *end) { /* continued: one long line */
            end[-1] = *end = ' ';
            end += strcspn(end, "\n");
            r.line++;
        }
        char *next = *end ? end + 1 : end;
        *end = 0;
        trim(text);
        parse_line(&r, text);
        text = next;
    }
    return r.failed ? EV_BAD : EV_OK;
}

static void declare(ev_str *s, const golden_operand *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        unsigned bits = list[i].count ? list[i].values[0].bits : 0;
        const char *type = "b32";
        if (bits == 1)
            type = "pred";
        else if (bits == 64)
            type = "b64";
        else if (bits == 16)
            type = "b16";
        char line[80];
        snprintf(line, sizeof line, ".reg .%s %%%s;\n", type, list[i].name);
        if (bits && !strstr(ev_str_text(s), strchr(line, '%')))
            ev_str_append(s, line);
    }
}

ev_str golden_module(const golden_insn *insn) {
    ev_str s = EV_STR_EMPTY;
    char last = insn->text[strlen(insn->text) - 1];
    bool complete = last == ':' || last == ';' || *insn->text == '{';
    ev_str_printf(&s, "%s\n.address_size 64\n%s\n",
                  insn->head ? insn->head : ".version 8.5\n.target sm_90",
                  insn->module_text ? insn->module_text : "");
    ev_str_append(&s, ".visible .entry k(.param .u64 m, .param .align 8 .b8 bytes[16])\n{\n"
                      ".reg .b32 %t<8>;\n.reg .b16 %h<4>;\n"
                      ".reg .b64 %w<8>, %m;\n.reg .pred %z<4>;\n");
    for (size_t i = 0; i < insn->case_count; i++) {
        declare(&s, insn->cases[i].in, insn->cases[i].in_count);
        declare(&s, insn->cases[i].out, insn->cases[i].out_count);
    }
    ev_str_printf(&s, "ld.param.u64 %%m, [m];\n%s%s\nret;\n}\n", insn->text, complete ? "" : ";");
    return s;
}
