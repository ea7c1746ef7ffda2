/* Diffs of a variant to its base: the IR with its instructions named by their numbers, compared by
 * the greedy algorithm of Myers, "An O(ND) Difference Algorithm and Its Variations", 1986. */
#include "ir/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- lines ------------------------------------------------------------------------------------
 */

typedef struct text_lines {
    const char **at;
    uint32_t *length;
    int32_t count;
} text_lines;

/* What says nothing of the code: declarations, their attributes, blank lines. */
static bool is_noise(const char *line, size_t length) {
    static const char *const starts[] = {"declare ", "attributes #", "; Function Attrs:"};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        size_t stem = strlen(starts[i]);
        if (length >= stem && memcmp(line, starts[i], stem) == 0)
            return true;
    }
    return length == 0;
}

/* The length without LLVM's comment on a block's predecessors, which follows from the branches. */
static size_t without_comment(const char *line, size_t length) {
    const char *comment = memmem(line, length, " ; ", 3);
    if (comment)
        length = (size_t)(comment - line);
    while (length > 0 && line[length - 1] == ' ')
        length--;
    return length;
}

static bool split_lines(ev_arena *arena, const char *text, text_lines *out) {
    size_t count = 0;
    for (const char *c = text; *c; c++)
        count += *c == '\n';
    out->at = EV_NEW_ARRAY(arena, const char *, count + 1);
    out->length = EV_NEW_ARRAY(arena, uint32_t, count + 1);
    out->count = 0;
    if (!out->at || !out->length)
        return false;
    for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1) {
        size_t length = without_comment(text, (size_t)(end - text));
        if (is_noise(text, length))
            continue;
        out->at[out->count] = text;
        out->length[out->count++] = (uint32_t)length;
    }
    return true;
}

static bool same_line(const text_lines *a, int32_t i, const text_lines *b, int32_t k) {
    return a->length[i] == b->length[k] && memcmp(a->at[i], b->at[k], a->length[i]) == 0;
}

/* ---- Myers ------------------------------------------------------------------------------------
 */

typedef struct script {
    bool *gone;  /* by line of the old text */
    bool *fresh; /* by line of the new text */
} script;

/* Follows the saved frontiers back from the end and marks the lines that change. `trace[d]` has the
 * furthest x of diagonals -d .. d at [k + d]. */
static void mark_script(int32_t **trace, int32_t d, int32_t x, int32_t y, script *out) {
    for (; d > 0; d--) {
        const int32_t *before = trace[d - 1];
        int32_t k = x - y, middle = d - 1;
        bool down = k == -d ||
                    (k != d && k - 1 >= -middle && k + 1 <= middle &&
                     before[k - 1 + middle] < before[k + 1 + middle]) ||
                    (k != d && k - 1 < -middle);
        int32_t from = down ? k + 1 : k - 1;
        int32_t start = before[from + middle];
        int32_t stop = start - from;
        if (down)
            out->fresh[stop] = true;
        else
            out->gone[start] = true;
        x = start;
        y = stop;
    }
}

static bool compare_lines(ev_arena *arena, const text_lines *a, const text_lines *b, script *out) {
    int32_t most = a->count + b->count;
    int32_t **trace = EV_NEW_ARRAY(arena, int32_t *, (size_t)most + 1);
    out->gone = EV_NEW_ARRAY(arena, bool, (size_t)a->count + 1);
    out->fresh = EV_NEW_ARRAY(arena, bool, (size_t)b->count + 1);
    if (!trace || !out->gone || !out->fresh)
        return false;
    for (int32_t d = 0; d <= most; d++) {
        int32_t *now = trace[d] = EV_NEW_ARRAY(arena, int32_t, 2 * (size_t)d + 1);
        if (!now)
            return false;
        for (int32_t k = -d; k <= d; k += 2) {
            int32_t x = 0;
            if (d > 0) {
                const int32_t *before = trace[d - 1];
                int32_t below = k + 1 <= d - 1 ? before[k + 1 + d - 1] : -1;
                int32_t left = k - 1 >= -(d - 1) ? before[k - 1 + d - 1] + 1 : -1;
                x = k == -d || (k != d && left - 1 < below) ? below : left;
            }
            int32_t y = x - k;
            while (x < a->count && y < b->count && same_line(a, x, b, y))
                x++, y++;
            now[k + d] = x;
            if (x >= a->count && y >= b->count) {
                mark_script(trace, d, x, y, out);
                return true;
            }
        }
    }
    return false;
}

/* ---- unified ----------------------------------------------------------------------------------
 */

enum { CONTEXT = 3 };

/* The next change at or after (i, k), which run alongside; the end of both texts if there is none.
 */
static void skip_same(const text_lines *a, const script *s, int32_t *i, int32_t *k) {
    while (*i < a->count && !s->gone[*i] && !s->fresh[*k])
        (*i)++, (*k)++;
}

static void skip_change(const text_lines *a, const text_lines *b, const script *s, int32_t *i,
                        int32_t *k) {
    while (*i < a->count && s->gone[*i])
        (*i)++;
    while (*k < b->count && s->fresh[*k])
        (*k)++;
}

static void print_line(ev_str *out, char mark, const text_lines *text, int32_t at) {
    ev_str_char(out, mark);
    ev_str_append_n(out, text->at[at], text->length[at]);
    ev_str_char(out, '\n');
}

static void print_body(const text_lines *a, const text_lines *b, const script *s, int32_t i,
                       int32_t k, int32_t i_end, int32_t k_end, ev_str *out) {
    while (i < i_end || k < k_end) {
        if (i < i_end && s->gone[i])
            print_line(out, '-', a, i++);
        else if (k < k_end && s->fresh[k])
            print_line(out, '+', b, k++);
        else
            print_line(out, ' ', a, i++), k++;
    }
}

/* Changes closer than twice the context stand in one hunk. */
static void print_hunks(const text_lines *a, const text_lines *b, const script *s, ev_str *out) {
    int32_t i = 0, k = 0;
    for (skip_same(a, s, &i, &k); i < a->count || k < b->count;) {
        int32_t lead = i < CONTEXT ? i : CONTEXT;
        int32_t i_first = i - lead, k_first = k - lead;
        int32_t i_last, k_last;
        do {
            skip_change(a, b, s, &i, &k);
            i_last = i;
            k_last = k;
            skip_same(a, s, &i, &k);
        } while ((i < a->count || k < b->count) && i - i_last <= 2 * CONTEXT);
        int32_t tail = a->count - i_last < CONTEXT ? a->count - i_last : CONTEXT;
        if (i - i_last < tail)
            tail = i - i_last;
        i_last += tail;
        k_last += tail;
        ev_str_printf(out, "@@ -%d,%d +%d,%d @@\n", i_first + 1, i_last - i_first, k_first + 1,
                      k_last - k_first);
        print_body(a, b, s, i_first, k_first, i_last, k_last, out);
    }
}

static ev_status print_diff(const char *old_text, const char *new_text, ev_str *out,
                            ev_error *err) {
    ev_arena *arena = ev_arena_new();
    text_lines a, b;
    script s;
    bool ok = arena && split_lines(arena, old_text, &a) && split_lines(arena, new_text, &b) &&
              compare_lines(arena, &a, &b, &s);
    if (ok) {
        ev_str_append(out, "--- base\n+++ variant\n");
        print_hunks(&a, &b, &s, out);
    }
    ev_arena_free(arena);
    return ok ? ev_str_status(out, err) : ev_fail_memory(err, strlen(old_text));
}

/* ---- names ------------------------------------------------------------------------------------
 */

static size_t edit_of_tag(const ir_genome *genome, uint64_t tag) {
    size_t i = 0;
    while (i < ir_genome_edit_count(genome) && ir_genome_edit(genome, i)->tag != tag)
        i++;
    return i;
}

/* All anew after each edit, since an instruction that moves loses its name. */
static void name_nodes(const ir_work *w, const ir_genome *genome) {
    for (uint32_t id = 0; id < w->count; id++) {
        const ir_node *node = &w->nodes[id];
        if (!node->value || LLVMGetTypeKind(LLVMTypeOf(node->value)) == LLVMVoidTypeKind)
            continue;
        char name[64];
        if (node->added)
            snprintf(name, sizeof name, "e%zu.%" PRIu32, edit_of_tag(genome, node->tag),
                     node->number);
        else
            snprintf(name, sizeof name, "i%" PRIu32, node->number);
        LLVMSetValueName2(node->value, name, strlen(name));
    }
}

static void name_blocks(const ir_work *w, const char *stem) {
    for (uint32_t b = 0; b < w->block_count; b++) {
        size_t length;
        LLVMValueRef block = LLVMBasicBlockAsValue(w->blocks[b].block);
        LLVMGetValueName2(block, &length);
        if (length > 0)
            continue;
        char name[64];
        snprintf(name, sizeof name, "%s%" PRIu32, stem, b);
        LLVMSetValueName2(block, name, strlen(name));
    }
}

static void name_arguments(const ir_work *w) {
    for (LLVMValueRef f = LLVMGetFirstFunction(w->module); f; f = LLVMGetNextFunction(f)) {
        for (unsigned i = 0; i < LLVMCountParams(f); i++) {
            char name[32];
            snprintf(name, sizeof name, "a%u", i);
            LLVMSetValueName2(LLVMGetParam(f, i), name, strlen(name));
        }
    }
}

static ev_status replay_named(ir_work *w, const ir_genome *genome, ev_error *err) {
    for (size_t i = 0; i < ir_genome_edit_count(genome); i++) {
        ev_status status = ir_work_replay(w, ir_genome_edit(genome, i), err);
        if (status != EV_OK)
            return ev_wrap(err, status, "edit %zu (%s)", i,
                           ir_edit_name(ir_genome_edit_kind(genome, i)));
        char stem[64];
        snprintf(stem, sizeof stem, "e%zu.b", i);
        name_nodes(w, genome);
        name_blocks(w, stem);
    }
    return EV_OK;
}

static ev_status diff_named(const ir_base *base, const ir_genome *genome, ev_str *out,
                            ev_error *err) {
    ir_work *w;
    EV_TRY(ir_work_open(base, &w, err));
    name_arguments(w);
    name_nodes(w, genome);
    name_blocks(w, "b");
    char *old_text = LLVMPrintModuleToString(w->module);
    ev_status status = replay_named(w, genome, err);
    if (status == EV_OK) {
        char *new_text = LLVMPrintModuleToString(w->module);
        status = print_diff(old_text, new_text, out, err);
        LLVMDisposeMessage(new_text);
    }
    LLVMDisposeMessage(old_text);
    ir_work_close(w);
    return status;
}

ev_status ir_diff(const ir_base *base, const ir_genome *genome, ev_str *out, ev_error *err) {
    /* The base has no names, and none are kept while it is built from; here they are wanted. */
    LLVMContextSetDiscardValueNames(base->context, false);
    ev_status status = diff_named(base, genome, out, err);
    LLVMContextSetDiscardValueNames(base->context, true);
    return status;
}
