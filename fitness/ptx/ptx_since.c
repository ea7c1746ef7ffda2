/* Since when: which PTX version and target an instruction, a special register or a target needs. */
#include "fitness/ptx/ptx_load.h"

#include <stdlib.h>
#include <string.h>

static const ptx_since_rule rules[] = {
#define PTX_SINCE(names, parts, ptx, sm) {names, parts, {ptx, sm}},
#include "fitness/ptx/ptx_since.def"
#undef PTX_SINCE
};

bool ptx_since_get(size_t index, ptx_since_rule *out) {
    if (index >= sizeof rules / sizeof *rules)
        return false;
    *out = rules[index];
    return true;
}

/* Is the word one of those that spaces part? "*" is every word. */
static bool names_it(const char *names, const char *word) {
    for (const char *at = names; *at;) {
        const char *w = word;
        while (*w && *at == *w) {
            at++;
            w++;
        }
        bool whole = *at == ' ' || !*at;
        if ((whole && !*w) || (w == word && *at == '*'))
            return true;
        while (*at && *at != ' ')
            at++;
        at += *at == ' ';
    }
    return false;
}

static uint32_t letter(char c) {
    return UINT32_C(1) << (c & 31);
}

static uint32_t letters_of(const char *names) {
    uint32_t letters = 0;
    bool begins = true;
    for (const char *at = names; *at; at++) {
        if (*at == '*')
            letters = UINT32_MAX;
        else if (begins)
            letters |= letter(*at);
        begins = *at == ' ';
    }
    return letters;
}

/* Do whole dot-parts of the mnemonic read ".run"? */
static bool has_run(const char *mnemonic, const char *run, size_t length) {
    for (const char *at = strchr(mnemonic, '.'); at; at = strchr(at + 1, '.'))
        if (strncmp(at, run, length) == 0 && (at[length] == 0 || at[length] == '.'))
            return true;
    return false;
}

static bool is_integer(uint8_t t) {
    return ptx_type_kind((ptx_type)t) == 'U' || ptx_type_kind((ptx_type)t) == 'S';
}

static bool holds_all(uint8_t t, uint8_t u) {
    bool t_signed = ptx_type_kind((ptx_type)t) == 'S', u_signed = ptx_type_kind((ptx_type)u) == 'S';
    unsigned t_bits = ptx_type_bits((ptx_type)t), u_bits = ptx_type_bits((ptx_type)u);
    return is_integer(t) && is_integer(u) &&
           (t == u || (t_bits > u_bits && (t_signed || !u_signed)));
}

/* "<rnd>": is a member of the group given? "T:US": is the type of one of these kinds? */
static bool has_fact(const ptx_match *m, const char *fact, size_t length) {
    ptx_group group;
    if (*fact == '<')
        return ptx_group_find(fact + 1, length - 2, &group) && m->mod[group];
    if (*fact == 'f')
        return holds_all(m->t, m->u);
    char kind = ptx_type_kind((ptx_type)(*fact == 'T' ? m->t : m->u));
    return memchr(fact + 2, kind, length - 2) != NULL;
}

static bool has_parts(const char *mnemonic, const ptx_match *m, const char *parts) {
    while (*parts) {
        bool absent = *parts == '!';
        parts += absent;
        size_t n = strcspn(parts, " ");
        bool has = *parts == '.' ? has_run(mnemonic, parts, n) : m && has_fact(m, parts, n);
        if (has == absent)
            return false;
        parts += n;
        parts += strspn(parts, " ");
    }
    return true;
}

static const ptx_never_rule never[] = {
#define PTX_NEVER(names, parts, expected) {names, parts, expected},
#include "fitness/ptx/ptx_never.def"
#undef PTX_NEVER
};

bool ptx_never_get(size_t index, ptx_never_rule *out) {
    if (index >= sizeof never / sizeof *never)
        return false;
    *out = never[index];
    return true;
}

void ptx_letters_make(ptx_letters *letters) {
    for (size_t i = 0; i < PTX_SINCE_COUNT; i++)
        letters->since[i] = letters_of(rules[i].names);
    for (size_t i = 0; i < PTX_NEVER_COUNT; i++)
        letters->never[i] = letters_of(never[i].names);
}

const char *ptx_never(const ptx_letters *letters, const char *mnemonic, const ptx_match *m) {
    const ptx_op *op = ptx_op_get(m->row);
    const uint32_t first = letter(*op->name);
    for (size_t i = 0; i < PTX_NEVER_COUNT; i++)
        if ((letters->never[i] & first) && names_it(never[i].names, op->name) &&
            has_parts(mnemonic, m, never[i].parts))
            return never[i].expected;
    return NULL;
}

ptx_need ptx_since(const ptx_letters *letters, const ptx_op *op, const char *mnemonic) {
    const uint32_t first = letter(*op->name);
    ptx_need need = op->need;
    for (size_t i = 0; i < PTX_SINCE_COUNT; i++) {
        if (!(letters->since[i] & first) || !names_it(rules[i].names, op->name) ||
            !has_parts(mnemonic, NULL, rules[i].parts))
            continue;
        need.version = rules[i].need.version > need.version ? rules[i].need.version : need.version;
        need.sm = rules[i].need.sm > need.sm ? rules[i].need.sm : need.sm;
    }
    return need;
}

static bool note_least(ptx_loader *L, const char *name, uint8_t version) {
    vm_module *m = L->m;
    m->least = version;
    m->least_for = ev_arena_strdup(L->arena, name);
    return m->least_for != NULL || !(L->oom = true);
}

bool ptx_allowed(ptx_loader *L, const char *at, const char *name, ptx_need need) {
    const vm_module *m = L->m;
    if (m->sm < need.sm)
        return ptx_fail_at(L, at, "'%s' needs .target sm_%d or higher; the module says sm_%d", name,
                           need.sm, m->sm);
    if (m->version < need.version)
        return ptx_fail_at(L, at, "'%s' needs .version %d.%d or higher; the module says %d.%d",
                           name, need.version / 10, need.version % 10, m->version / 10,
                           m->version % 10);
    return need.version <= m->least || note_least(L, name, need.version);
}

/* Exchanges without .sync ended with Volta, whose lanes have program counters of their own. */
static bool lost_since_volta(const ptx_match *m) {
    return m->row == PTX_OP_SHFL || m->row == PTX_OP_VOTE || m->row == PTX_OP_BALLOT;
}

bool ptx_directive_allowed(ptx_loader *L) {
    const ptx_token *t = &L->lex.token;
    char name[32];
    if (t->kind != PTX_K_DIRECTIVE || t->length >= sizeof name)
        return true;
    memcpy(name, t->at, t->length);
    name[t->length] = '\0';
    for (size_t i = 0; i < PTX_SINCE_COUNT; i++)
        if (rules[i].names[0] == '.' && names_it(rules[i].names, name))
            return ptx_allowed(L, t->at, name, rules[i].need);
    return true;
}

bool ptx_instruction_allowed(ptx_loader *L, const char *at, const char *name, const ptx_match *m) {
    const char *base = ptx_op_get(m->row)->name;
    if (m->never)
        return ptx_fail_at(L, at, "found '%s'; expected %s", name, m->never);
    if (lost_since_volta(m) && L->m->sm >= 70 && L->m->version >= 64)
        return ptx_fail_at(L, at,
                           "'%s' needs a target below sm_70 or a .version below 6.4; use "
                           "%s.sync%s with a member mask",
                           name, base, name + strlen(base));
    return ptx_allowed(L, at, name, m->need);
}

typedef struct target_row {
    int sm;
    uint8_t plain, a, f;
} target_row;

static const target_row targets[] = {
#define PTX_TARGET(sm, ptx, ptx_a, ptx_f) {sm, ptx, ptx_a, ptx_f},
#include "fitness/ptx/ptx_targets.def"
#undef PTX_TARGET
};

bool ptx_target_find(const char *text, size_t length, ptx_target *out) {
    if (length < 5 || length > 7 || memcmp(text, "sm_", 3) != 0)
        return false;
    char last = text[length - 1], digits[8] = {0}, *end;
    *out = (ptx_target){.suffix = last == 'a' || last == 'f' ? last : '\0'};
    memcpy(digits, text + 3, length - 3 - (out->suffix != 0));
    out->sm = (int)strtol(digits, &end, 10);
    if (*end)
        return false;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (targets[i].sm == out->sm) {
            const target_row *r = &targets[i];
            if (out->suffix == 'a')
                out->version = r->a;
            else if (out->suffix == 'f')
                out->version = r->f;
            else
                out->version = r->plain;
            return out->version != 0;
        }
    return false;
}
