/* Mnemonics: which rows of the table the dot-parts of an instruction fit. What is found of one
 * holds for every module, but for its name, which each module has a copy of. */
#include "fitness/ptx/ptx_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_MNEMONICS 4096 /* then all are forgotten */
#define MOST_TEXT 256       /* bytes of a mnemonic whose parts are put in order */

static bool split(ptx_loader *L, const char *text, uint32_t length, ptx_parts *p) {
    p->count = 0;
    uint32_t start = 0;
    for (uint32_t i = 0; i <= length; i++) {
        if (i < length && text[i] != '.')
            continue;
        if (p->count == PTX_MAX_PARTS)
            return ptx_fail_at(L, text + start, "found more than %d parts; expected an instruction",
                               PTX_MAX_PARTS);
        p->at[p->count] = text + start;
        p->length[p->count++] = i - start;
        start = i + 1;
    }
    return true;
}

static void set_literal(ptx_match *m, const char *text, size_t length) {
    for (ptx_mod mod = ptx_mod_next(PTX_M_NONE, text, length); mod;
         mod = ptx_mod_next(mod, text, length))
        m->mod[ptx_mod_group(mod)] = (uint8_t)mod;
}

bool ptx_item_fits(const ptx_op *op, const char *item, size_t length, const char *part,
                   uint32_t part_length, ptx_match *m) {
    if (length == 1 && (*item == 'T' || *item == 'U')) {
        ptx_type t = ptx_type_find(part, part_length);
        uint32_t allowed = *item == 'T' ? op->types : op->types2;
        if (t == PTX_T_none || !(allowed >> t & 1))
            return false;
        uint8_t *place = *item == 'T' ? &m->t : &m->u;
        if (*place != PTX_T_none && *place != t) /* T again: the same type */
            return false;
        *place = (uint8_t)t;
        return true;
    }
    if (*item == '.') {
        if (length - 1 != part_length || memcmp(item + 1, part, part_length) != 0)
            return false;
        set_literal(m, part, part_length);
        return true;
    }
    ptx_group group;
    if (!ptx_group_find(item, length, &group))
        return false;
    ptx_mod mod = ptx_mod_find(group, part, part_length);
    if (mod)
        m->mod[group] = (uint8_t)mod;
    return mod != PTX_M_NONE;
}

/* The row's format against all parts. On failure *reached is the part that did not fit and *wanted
 * what stood in the format there. */
static bool row_fits(unsigned row, const ptx_parts *p, ptx_match *m, unsigned *reached,
                     const char **wanted) {
    const ptx_op *op = ptx_op_get(row);
    *m = (ptx_match){.row = (uint16_t)row};
    unsigned part = 1;
    const char *item = op->format;
    *wanted = item;
    while (*item) {
        size_t length = strcspn(item, " ");
        const char *next = item + length + (item[length] == ' ');
        bool optional = item[length - 1] == '?';
        bool fits = part < p->count &&
                    ptx_item_fits(op, item, length - optional, p->at[part], p->length[part], m);
        if (fits) {
            part++;
            *wanted = next;
        } else if (!optional) {
            *reached = part;
            return false;
        }
        item = next;
    }
    *reached = part;
    return part == p->count;
}

/* Adds to a list of words what does not stand in it yet. */
static void add_word(char *out, size_t size, const char *word) {
    size_t used = strlen(out), length = strlen(word);
    for (const char *at = strstr(out, word); at; at = strstr(at + 1, word))
        if (at[length] == 0 || at[length] == ',')
            return;
    snprintf(out + used, size - used, "%s%s", used ? ", " : "", word);
}

static void add_types(char *out, size_t size, uint32_t allowed) {
    for (unsigned t = 1; t < PTX_T_COUNT; t++)
        if (allowed >> t & 1) {
            char word[16];
            snprintf(word, sizeof word, ".%s", ptx_type_name((ptx_type)t));
            add_word(out, size, word);
        }
}

/* What may stand at `item` of a row's format: all optional items up to the first that must. */
static void describe(const ptx_op *op, const char *item, char *out, size_t size) {
    while (*item) {
        size_t length = strcspn(item, " ");
        bool optional = item[length - 1] == '?';
        size_t bare = length - optional;
        ptx_group group;
        if (bare == 1 && (*item == 'T' || *item == 'U')) {
            add_types(out, size, *item == 'T' ? op->types : op->types2);
        } else if (*item == '.') {
            char word[24];
            snprintf(word, sizeof word, "%.*s", (int)bare, item);
            add_word(out, size, word);
        } else if (ptx_group_find(item, bare, &group)) {
            for (unsigned m = 1; m < PTX_M_COUNT; m++)
                if (ptx_mod_group((ptx_mod)m) == group) {
                    char word[32];
                    snprintf(word, sizeof word, ".%s", ptx_mod_text((ptx_mod)m));
                    add_word(out, size, word);
                }
        }
        if (!optional)
            return;
        item += length + (item[length] == ' ');
    }
    add_word(out, size, "no more parts");
}

static ptx_mnemonic *lookup(const ptx_loader *L, uint32_t hash) {
    const ptx_token *t = &L->lex.token;
    for (ptx_mnemonic *k = L->words->mnemonics[hash % PTX_BUCKETS]; k; k = k->next)
        if (k->hash == hash && k->length == t->length && memcmp(k->text, t->at, t->length) == 0)
            return k;
    return NULL;
}

static uint16_t first_row(const ptx_loader *L, const ptx_parts *p) {
    uint32_t bucket = ptx_hash(p->at[0], p->length[0]) % PTX_OP_COUNT;
    return L->words->first_row[bucket];
}

static bool row_named(unsigned row, const ptx_parts *p) {
    const char *name = ptx_op_get(row)->name;
    return strncmp(name, p->at[0], p->length[0]) == 0 && name[p->length[0]] == 0;
}

/* What the rows of the name that fit the most parts want next; 0: no row has the name. */
static unsigned furthest(const ptx_loader *L, const ptx_parts *p, char *wants, size_t size) {
    unsigned furthest = 0;
    for (unsigned row = first_row(L, p); row; row = L->words->next_row[row - 1]) {
        ptx_match m;
        unsigned reached;
        const char *wanted;
        if (!row_named(row - 1, p) || row_fits(row - 1, p, &m, &reached, &wanted) ||
            reached < furthest)
            continue;
        if (reached > furthest)
            wants[0] = 0;
        furthest = reached;
        describe(ptx_op_get(row - 1), wanted, wants, size);
    }
    return furthest;
}

/* "mul.lo.u32" of its parts; false: too long. */
static bool join(const ptx_parts *p, char *out, size_t size) {
    size_t used = 0;
    for (unsigned i = 0; i < p->count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%.*s", i ? "." : "", (int)p->length[i],
                                 p->at[i]);
    return used < size;
}

/* Whether the parts are those of a row, in an order that the assembler refuses: says theirs. */
static bool fail_order(ptx_loader *L, const ptx_parts *p) {
    const ptx_token *t = &L->lex.token;
    char text[MOST_TEXT];
    for (unsigned row = first_row(L, p); row; row = L->words->next_row[row - 1]) {
        ptx_parts sorted;
        if (!row_named(row - 1, p) ||
            ptx_order_of(ptx_op_get(row - 1), p, &sorted) != PTX_ORDER_REFUSED ||
            !join(&sorted, text, sizeof text))
            continue;
        ptx_fail_at(L, t->at, "found '%.*s'; expected its parts as in '%s'", (int)t->length, t->at,
                    text);
        return true;
    }
    return false;
}

static void fail_mnemonic(ptx_loader *L, const ptx_parts *p) {
    const ptx_token *t = &L->lex.token;
    int length = (int)t->length;
    char wants[400] = "";
    if (ptx_fail_absent(L, t->at, t->length) || fail_order(L, p))
        return;
    unsigned at = furthest(L, p, wants, sizeof wants);
    if (!at)
        ptx_fail_at(L, t->at, "found '%.*s'; expected an instruction that the machine has", length,
                    t->at);
    else if (at >= p->count)
        ptx_fail_at(L, t->at, "found '%.*s'; expected it to go on with %s", length, t->at, wants);
    else
        ptx_fail_at(L, p->at[at], "found '.%.*s' in '%.*s'; expected %s", (int)p->length[at],
                    p->at[at], length, t->at, wants);
}

static void complete_match(const vm_words *words, const char *text, ptx_match *m) {
    const ptx_op *op = ptx_op_get(m->row);
    m->need = ptx_since(&words->letters, op, text);
    m->never = ptx_never(&words->letters, text, m);
    ptx_pattern_read(op->pattern, &m->pattern);
    ptx_make_form(m);
}

/* Adds the row if its format is the parts, one after another; `text` is what they make. */
static void add_match(const ptx_loader *L, unsigned row, const ptx_parts *p, const char *text,
                      ptx_mnemonic *k) {
    ptx_match m;
    unsigned reached;
    const char *wanted;
    if (k->count == PTX_MAX_MATCHES || !row_fits(row, p, &m, &reached, &wanted))
        return;
    complete_match(L->words, text, &m);
    k->matches[k->count++] = m;
}

static void find_matches(const ptx_loader *L, const ptx_parts *p, ptx_mnemonic *k) {
    for (unsigned row = first_row(L, p); row; row = L->words->next_row[row - 1])
        if (row_named(row - 1, p))
            add_match(L, row - 1, p, k->text, k);
}

/* Rows that have these parts in another order. Tables that look for runs of parts see the row's. */
static void find_reordered(const ptx_loader *L, const ptx_parts *p, ptx_mnemonic *k) {
    char text[MOST_TEXT];
    for (unsigned row = first_row(L, p); row; row = L->words->next_row[row - 1]) {
        ptx_parts sorted;
        if (row_named(row - 1, p) &&
            ptx_order_of(ptx_op_get(row - 1), p, &sorted) == PTX_ORDER_TAKEN &&
            join(&sorted, text, sizeof text))
            add_match(L, row - 1, &sorted, text, k);
    }
}

static ptx_mnemonic *learn(ptx_loader *L, uint32_t hash) {
    vm_words *words = L->words;
    const ptx_token *t = &L->lex.token;
    ptx_mnemonic made = {.length = t->length, .hash = hash};
    ptx_parts p;
    words->count++;
    made.text = ev_arena_strndup(words->arena, t->at, t->length);
    made.next = words->mnemonics[hash % PTX_BUCKETS];
    if (!made.text || !split(L, t->at, t->length, &p)) {
        L->oom |= !made.text;
        return NULL;
    }
    find_matches(L, &p, &made);
    if (!made.count)
        find_reordered(L, &p, &made);
    if (!made.count) {
        fail_mnemonic(L, &p);
        return NULL;
    }
    ptx_mnemonic *k = ev_arena_copy(words->arena, &made, sizeof made);
    if (k)
        words->mnemonics[hash % PTX_BUCKETS] = k;
    L->oom |= !k;
    return k;
}

const ptx_mnemonic *ptx_mnemonic_find(ptx_loader *L) {
    const ptx_token *t = &L->lex.token;
    uint32_t hash = ptx_hash(t->at, t->length);
    ptx_mnemonic *k = lookup(L, hash);
    if (!k)
        k = learn(L, hash);
    if (k && k->module != L->words->modules) {
        k->name = ev_arena_strndup(L->arena, k->text, k->length);
        k->module = L->words->modules;
        L->oom |= !k->name;
    }
    return L->oom ? NULL : k;
}

/* ---- words */

static void index_rows(vm_words *words) {
    for (unsigned row = PTX_OP_COUNT; row-- > 0;) {
        const char *name = ptx_op_get(row)->name;
        uint32_t bucket = ptx_hash(name, strlen(name)) % PTX_OP_COUNT;
        words->next_row[row] = words->first_row[bucket];
        words->first_row[bucket] = (uint16_t)(row + 1);
    }
}

ev_status vm_words_new(vm_words **out, ev_error *err) {
    vm_words *words = calloc(1, sizeof *words);
    if (!words)
        return ev_fail_memory(err, sizeof *words);
    words->arena = ev_arena_new();
    if (!words->arena) {
        vm_words_free(words);
        return ev_fail_memory(err, sizeof *words);
    }
    index_rows(words);
    ptx_letters_make(&words->letters);
    *out = words;
    return EV_OK;
}

void vm_words_free(vm_words *words) {
    if (!words)
        return;
    ev_arena_free(words->arena);
    free(words);
}

void ptx_words_begin(vm_words *words) {
    words->modules++;
    if (words->count < MOST_MNEMONICS)
        return;
    words->count = 0;
    memset(words->mnemonics, 0, sizeof words->mnemonics);
    ev_arena_reset(words->arena);
}
