/* Names of a module being loaded: scoped symbols, registers and their slots, messages. */
#include "fitness/ptx/ptx_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_REGISTERS 65535 /* vm_insn_info numbers them in 16 bits */
#define MAX_RANGE (1u << 20)

bool ptx_grow(ptx_loader *L, void **array, size_t *capacity, size_t count, size_t size) {
    if (count < *capacity)
        return true;
    size_t wanted = *capacity ? *capacity * 2 : 64;
    void *bigger = realloc(*array, wanted * size);
    if (!bigger) {
        L->oom = true;
        return false;
    }
    memset((char *)bigger + *capacity * size, 0, (wanted - *capacity) * size);
    *array = bigger;
    *capacity = wanted;
    return true;
}

bool ptx_fail_at(ptx_loader *L, const char *at, const char *format, ...) {
    if (L->failed)
        return false;
    L->failed = true;
    unsigned line = 1;
    const char *line_start = L->m->text;
    for (const char *p = L->m->text; p < at; p++)
        if (*p == '\n') {
            line++;
            line_start = p + 1;
        }
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)ev_fail(L->err, EV_BAD, "%s:%u:%u: %s", L->m->name, line, (unsigned)(at - line_start) + 1,
                  text);
    return false;
}

bool ptx_fail_expected(ptx_loader *L, const char *what) {
    const ptx_token *t = &L->lex.token;
    if (t->kind == PTX_K_END)
        return ptx_fail_at(L, t->at, "found the end of the text; expected %s", what);
    if (t->kind == PTX_K_DIRECTIVE && ptx_fail_absent(L, t->at, t->length))
        return false;
    int length = t->length > 80 ? 80 : (int)t->length;
    if (t->kind == PTX_K_PUNCT && (*t->at < ' ' || *t->at > '~'))
        return ptx_fail_at(L, t->at, "found byte 0x%02x; expected %s", (unsigned char)*t->at, what);
    if (t->kind == PTX_K_BAD)
        return ptx_fail_at(L, t->at, "found the malformed '%.*s'; expected %s", length, t->at,
                           what);
    return ptx_fail_at(L, t->at, "found '%.*s'; expected %s", length, t->at, what);
}

/* An operand goes to the next comma, bar or semicolon outside brackets; 40 bytes tell which it is.
 */
static int operand_length(const char *at) {
    int length = 0, depth = 0;
    for (; length < 40 && at[length] >= ' '; length++) {
        char c = at[length];
        depth += c == '{' || c == '[' || c == '(';
        depth -= c == '}' || c == ']' || c == ')';
        if (depth < 0 || (depth == 0 && (c == ',' || c == '|' || c == ';')))
            break;
    }
    while (length > 1 && at[length - 1] == ' ')
        length--;
    return length;
}

bool ptx_fail_operand(ptx_loader *L, const char *at, const char *format, ...) {
    char text[300];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return ptx_fail_at(L, at, "found '%.*s'; expected %s", operand_length(at), at, text);
}

bool ptx_fail_punct(ptx_loader *L, char punct) {
    char what[4] = {'\'', punct, '\'', 0};
    return ptx_fail_expected(L, what);
}

uint32_t ptx_hash(const char *text, size_t length) {
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h;
}

/* Of a few characters, mostly. */
static bool same_text(const char *a, const char *b, uint32_t length) {
    for (uint32_t i = 0; i < length; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

/* A range %h<4> and a register %h are different names. */
static ptx_symbol *find(ptx_loader *L, const char *name, uint32_t length, bool range) {
    uint32_t hash = ptx_hash(name, length);
    for (ptx_symbol *s = L->buckets[hash % PTX_BUCKETS]; s; s = s->next_in_bucket)
        if (s->hash == hash && s->length == length && (s->kind == PTX_Y_RANGE) == range &&
            memcmp(s->name, name, length) == 0)
            return s;
    return NULL;
}

ptx_symbol *ptx_symbol_find(ptx_loader *L, const char *name, uint32_t length) {
    return find(L, name, length, false);
}

ptx_symbol *ptx_symbol_add(ptx_loader *L, const char *name, uint32_t length, ptx_symbol_kind kind) {
    ptx_symbol *old = find(L, name, length, kind == PTX_Y_RANGE);
    if (old && old->scope == L->scope) {
        ptx_fail_at(L, name, "found a second declaration of '%.*s'; expected a new name",
                    (int)length, name);
        return NULL;
    }
    ptx_symbol *s = EV_NEW(L->arena, ptx_symbol);
    if (!s) {
        L->oom = true;
        return NULL;
    }
    s->name = name;
    s->length = length;
    s->hash = ptx_hash(name, length);
    s->kind = (uint8_t)kind;
    s->scope = L->scope;
    bool numbered = name[length - 1] >= '0' && name[length - 1] <= '9';
    if (kind == PTX_Y_RANGE)
        memset(L->ranges, 0, sizeof L->ranges); /* it may hide one */
    L->digit_ranges |= numbered && kind == PTX_Y_RANGE;
    L->digit_names |= numbered && kind != PTX_Y_RANGE && *name == '%';
    s->next_in_bucket = L->buckets[s->hash % PTX_BUCKETS];
    L->buckets[s->hash % PTX_BUCKETS] = s;
    s->next_in_scope = L->scopes[L->scope];
    L->scopes[L->scope] = s;
    return s;
}

bool ptx_scope_enter(ptx_loader *L) {
    if (L->scope + 1 >= sizeof L->scopes / sizeof *L->scopes)
        return ptx_fail_at(L, L->lex.token.at, "found blocks nested too deep; expected at most %zu",
                           sizeof L->scopes / sizeof *L->scopes - 1);
    L->scopes[++L->scope] = NULL;
    return true;
}

/* Branches of this block go to its own labels first, else to those of the block around it. */
static bool resolve_labels(ptx_loader *L) {
    size_t kept = 0;
    for (size_t i = 0; i < L->fixup_count; i++) {
        ptx_fixup *f = &L->fixups[i];
        if (f->scope == L->scope) {
            ptx_symbol *s = ptx_symbol_find(L, f->name, f->length);
            if (s && s->kind == PTX_Y_LABEL && s->scope == L->scope) {
                *(f->place ? f->place : &L->m->code[f->insn].target) = s->index;
                continue;
            }
            if (L->scope <= 1)
                return ptx_fail_at(L, f->name, "found '%.*s'; expected a label of this function",
                                   (int)f->length, f->name);
            f->scope--;
        }
        L->fixups[kept++] = *f;
    }
    L->fixup_count = kept;
    return true;
}

bool ptx_scope_leave(ptx_loader *L) {
    if (!resolve_labels(L))
        return false;
    memset(L->ranges, 0, sizeof L->ranges);
    for (ptx_symbol *s = L->scopes[L->scope]; s; s = s->next_in_scope) {
        ptx_symbol **link = &L->buckets[s->hash % PTX_BUCKETS];
        while (*link != s)
            link = &(*link)->next_in_bucket;
        *link = s->next_in_bucket;
    }
    L->scope--;
    return true;
}

uint32_t ptx_slot_new(ptx_loader *L, unsigned bits) {
    if (bits == 1) {
        if (L->pred_left == 0) {
            L->pred_slot = L->func->frame_bytes;
            L->pred_left = 16;
            L->func->frame_bytes += 64;
        }
        return L->pred_slot + 4 * (16 - L->pred_left--);
    }
    uint32_t slot = L->func->frame_bytes;
    L->func->frame_bytes += bits == 64 ? 256 : 128;
    return slot;
}

uint32_t ptx_register_new(ptx_loader *L, const char *name, uint32_t length, unsigned bits) {
    vm_module *m = L->m;
    if (m->reg_count >= MAX_REGISTERS) {
        ptx_fail_at(L, name, "found more than %d registers; expected a smaller module",
                    MAX_REGISTERS);
        return PTX_NONE;
    }
    if (!ptx_grow(L, (void **)&m->regs, &L->reg_capacity, m->reg_count, sizeof *m->regs))
        return PTX_NONE;
    ptx_reg *r = &m->regs[m->reg_count];
    r->slot = ptx_slot_new(L, bits);
    r->bits = (uint8_t)bits;
    r->name = ev_arena_strndup(L->arena, name, length);
    return m->reg_count++;
}

/* The range that was found last for names that end so is the one, mostly. */
static ptx_symbol *find_range(ptx_loader *L, const char *name, uint32_t length) {
    ptx_symbol **last = &L->ranges[name[length - 1] & 31];
    if (*last && (*last)->length == length && same_text((*last)->name, name, length))
        return *last;
    ptx_symbol *s = find(L, name, length, true);
    if (s)
        *last = s;
    return s;
}

ptx_symbol *ptx_range_find(ptx_loader *L, const char *name, uint32_t length, uint32_t *out) {
    uint32_t digits = length;
    while (digits > 1 && name[digits - 1] >= '0' && name[digits - 1] <= '9')
        digits--;
    /* %r12 may belong to the range %r or to %r1: the longest prefix that is declared wins. */
    uint32_t longest = L->digit_ranges ? length - 1 : digits;
    for (uint32_t prefix = longest; prefix < length && prefix >= digits && prefix > 0; prefix--) {
        ptx_symbol *s = find_range(L, name, prefix);
        if (!s || length - prefix > 8)
            continue;
        if (name[prefix] == '0' && length - prefix > 1)
            continue;
        uint32_t number = 0;
        for (uint32_t i = prefix; i < length; i++)
            number = number * 10 + (uint32_t)(name[i] - '0');
        if (number >= s->count)
            continue;
        *out = number;
        return s;
    }
    return NULL;
}

static uint32_t range_member(ptx_loader *L, const char *name, uint32_t length) {
    uint32_t number;
    ptx_symbol *s = ptx_range_find(L, name, length, &number);
    if (!s || s->lanes)
        return PTX_NONE;
    if (!s->ids[number])
        s->ids[number] = ptx_register_new(L, name, length, s->bits) + 1;
    return s->ids[number] - 1; /* PTX_NONE + 1 - 1 stays PTX_NONE */
}

/* Nearly all are members of a range: those are not looked for as whole names where none is one. */
uint32_t ptx_register_find(ptx_loader *L, const char *name, uint32_t length) {
    char last = name[length - 1];
    bool is_member = *name == '%' && last >= '0' && last <= '9' && !L->digit_names;
    ptx_symbol *s = is_member ? NULL : ptx_symbol_find(L, name, length);
    if (s && s->kind == PTX_Y_REG && !s->lanes) {
        if (s->index == PTX_NONE)
            s->index = ptx_register_new(L, name, length, s->bits);
        return s->index;
    }
    if (s)
        return PTX_NONE;
    return length > 1 ? range_member(L, name, length) : PTX_NONE;
}

uint32_t ptx_slot_const(ptx_loader *L, unsigned bits, uint64_t value, unsigned base) {
    unsigned width = 32;
    if (bits == 1)
        width = 1;
    else if (bits == 64)
        width = 64;
    if (bits == 16)
        value &= 0xffff;
    if (width == 32)
        value &= 0xffffffff;
    ptx_func *f = L->func;
    for (size_t i = 0; i < f->const_count; i++) {
        const ptx_const *c = &f->consts[i];
        if (c->value == value && c->bits == width && c->base == base)
            return c->slot;
    }
    if (!ptx_grow(L, (void **)&f->consts, &L->const_capacity, f->const_count, sizeof *f->consts))
        return PTX_NONE;
    uint32_t slot = ptx_slot_new(L, width);
    f->consts[f->const_count++] =
        (ptx_const){.slot = slot, .bits = (uint8_t)width, .base = (uint8_t)base, .value = value};
    return slot;
}

uint32_t ptx_slot_sreg(ptx_loader *L, ptx_sreg sreg) {
    ptx_func *f = L->func;
    for (size_t i = 0; i < f->sreg_count; i++)
        if (f->sregs[i].sreg == sreg)
            return f->sregs[i].slot;
    if (!ptx_grow(L, (void **)&f->sregs, &L->sreg_capacity, f->sreg_count, sizeof *f->sregs))
        return PTX_NONE;
    uint32_t slot = ptx_slot_new(L, ptx_sreg_bits(sreg));
    f->sregs[f->sreg_count++] = (ptx_sreg_use){.slot = slot, .sreg = sreg};
    return slot;
}
