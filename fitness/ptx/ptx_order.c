/* The order of a mnemonic's dot-parts: PTX's text gives one for each instruction, the assembler
 * takes nearly all others, and nvcc writes some of these ("atom.global.sys.add.u32"). The parts are
 * dealt to the items of a row's format one item after another: each takes the first part that fits
 * and that no rule of ptx_order.def makes wait for another. */
#include "fitness/ptx/ptx_load.h"

#include <string.h>

enum { KEEP, LEAD };

typedef struct order_row {
    const char *names, *parts;
    int kind;
} order_row;

static const order_row rows[] = {
#define PTX_ORDER(names, kind, parts) {names, parts, kind},
#include "fitness/ptx/ptx_order.def"
#undef PTX_ORDER
};

enum { ROWS = sizeof rows / sizeof *rows };

bool ptx_order_get(size_t index, ptx_order_rule *out) {
    if (index >= ROWS)
        return false;
    const order_row *r = &rows[index];
    *out = (ptx_order_rule){r->names, r->kind == KEEP ? "kept among these" : "first", r->parts};
    return true;
}

static bool lists_word(const char *list, const char *word, size_t length) {
    for (const char *at = list; *at;) {
        size_t n = strcspn(at, " ");
        if ((n == length && memcmp(at, word, n) == 0) || (n == 1 && *at == '*'))
            return true;
        at += n + (at[n] == ' ');
    }
    return false;
}

static bool lists_part(const order_row *r, const char *part, size_t length) {
    if (*r->parts == '<')
        return ptx_type_find(part, length) != PTX_T_none;
    return lists_word(r->parts, part, length);
}

static bool is_about(const order_row *r, const ptx_op *op, int kind) {
    return r->kind == kind && lists_word(r->names, op->name, strlen(op->name));
}

/* Whether a part before this one that is still to be dealt must not come after it. */
static bool must_wait(const ptx_op *op, const ptx_parts *p, unsigned part, uint32_t dealt) {
    for (unsigned r = 0; r < ROWS; r++) {
        if (!is_about(&rows[r], op, KEEP) || !lists_part(&rows[r], p->at[part], p->length[part]))
            continue;
        for (unsigned i = 1; i < part; i++)
            if (!(dealt >> i & 1) && lists_part(&rows[r], p->at[i], p->length[i]))
                return true;
    }
    return false;
}

/* The first part for the item; 0: none. */
static unsigned part_for(const ptx_op *op, const char *item, size_t length, const ptx_parts *p,
                         uint32_t dealt, bool keeping, ptx_match *m) {
    for (unsigned i = 1; i < p->count; i++)
        if (!(dealt >> i & 1) && !(keeping && must_wait(op, p, i, dealt)) &&
            ptx_item_fits(op, item, length, p->at[i], p->length[i], m))
            return i;
    return 0;
}

/* Deals all parts to the items of the format; false: some part or item is left. */
static bool deal(const ptx_op *op, const ptx_parts *p, bool keeping, ptx_parts *sorted) {
    ptx_match m = {0};
    uint32_t dealt = 0;
    *sorted = (ptx_parts){.count = 1, .at = {p->at[0]}, .length = {p->length[0]}};
    for (const char *item = op->format; *item;) {
        size_t length = strcspn(item, " ");
        bool optional = item[length - 1] == '?';
        unsigned part = part_for(op, item, length - optional, p, dealt, keeping, &m);
        if (!part && !optional)
            return false;
        if (part) {
            dealt |= UINT32_C(1) << part;
            sorted->at[sorted->count] = p->at[part];
            sorted->length[sorted->count++] = p->length[part];
        }
        item += length + (item[length] == ' ');
    }
    return sorted->count == p->count;
}

static bool leads(const ptx_op *op, const char *part, size_t length) {
    for (unsigned r = 0; r < ROWS; r++)
        if (is_about(&rows[r], op, LEAD) && lists_part(&rows[r], part, length))
            return true;
    return false;
}

static bool leads_as(const ptx_op *op, const ptx_parts *p, const ptx_parts *sorted) {
    for (unsigned i = 1; i < sorted->count && leads(op, sorted->at[i], sorted->length[i]); i++)
        if (p->length[i] != sorted->length[i] || memcmp(p->at[i], sorted->at[i], p->length[i]) != 0)
            return false;
    return true;
}

ptx_order ptx_order_of(const ptx_op *op, const ptx_parts *given, ptx_parts *sorted) {
    if (deal(op, given, true, sorted))
        return leads_as(op, given, sorted) ? PTX_ORDER_TAKEN : PTX_ORDER_REFUSED;
    return deal(op, given, false, sorted) ? PTX_ORDER_REFUSED : PTX_ORDER_NONE;
}
