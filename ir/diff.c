/* Diffs: compares a variant's IR with its base's, with instructions named by their numbers. */
#include "ir/edit_diff.h"
#include "ir/internal.h"

#include "base/diff.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Whether a line says nothing about the code: declarations, attributes, blank lines. */
static bool is_noise(const char *line, size_t length) {
    static const char *const starts[] = {"declare ", "attributes #", "; Function Attrs:"};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        size_t stem = strlen(starts[i]);
        if (length >= stem && memcmp(line, starts[i], stem) == 0)
            return true;
    }
    return length == 0;
}

/* The length of a line without LLVM's comment on a block's predecessors, which follow from the
 * branches. */
static size_t without_comment(const char *line, size_t length) {
    const char *comment = memmem(line, length, " ; ", 3);
    if (comment)
        length = (size_t)(comment - line);
    while (length > 0 && line[length - 1] == ' ')
        length--;
    return length;
}

static size_t trim(const char *line, size_t length) {
    length = without_comment(line, length);
    return is_noise(line, length) ? 0 : length;
}

/* Metadata is numbered anew in every module: its numbers are not looked at. */
static uint64_t key_without_metadata(const char *line, size_t length) {
    uint64_t key = 0xcbf29ce484222325u;
    bool numbers = false; /* behind a '!' */
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)line[i];
        bool is_digit = c >= '0' && c <= '9';
        numbers = c == '!' || (numbers && is_digit);
        if (!(numbers && is_digit))
            key = (key ^ c) * 0x100000001b3u;
    }
    return key;
}

/* ---- names ------------------------------------------------------------------------------------
 */

static size_t edit_of_tag(const ir_genome *genome, uint64_t tag) {
    size_t i = 0;
    while (i < ir_genome_edit_count(genome) && ir_genome_edit(genome, i)->tag != tag)
        i++;
    return i;
}

/* Names all instructions. Done after each edit, since a moved instruction loses its name. */
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

/* Replays the edits [from, to). */
static ev_status replay_named(ir_work *w, const ir_genome *genome, size_t from, size_t to,
                              ev_error *err) {
    for (size_t i = from; i < to; i++) {
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

/* The edits that a diff shows, and the names of the texts on both sides. */
typedef struct diff_span {
    size_t from, to;
    const char *before, *after;
    ev_diff_rules rules;
} diff_span;

static ev_status diff_work(ir_work *w, const ir_genome *genome, const diff_span *span, ev_str *out,
                           ev_error *err) {
    EV_TRY(replay_named(w, genome, 0, span->from, err));
    char *old_text = LLVMPrintModuleToString(w->module);
    ev_status status = replay_named(w, genome, span->from, span->to, err);
    if (status == EV_OK) {
        char *new_text = LLVMPrintModuleToString(w->module);
        status = ev_diff(span->before, old_text, span->after, new_text, &span->rules, out, err);
        LLVMDisposeMessage(new_text);
    }
    LLVMDisposeMessage(old_text);
    return status;
}

static ev_status diff_span_of(const ir_base *base, const ir_genome *genome, const diff_span *span,
                              ev_str *out, ev_error *err) {
    ir_work *w;
    /* The base has no names, and its context discards names; here names are kept. */
    LLVMContextSetDiscardValueNames(base->context, false);
    ev_status status = ir_work_open(base, &w, err);
    if (status == EV_OK) {
        name_arguments(w);
        name_nodes(w, genome);
        name_blocks(w, "b");
        status = diff_work(w, genome, span, out, err);
        ir_work_close(w);
    }
    LLVMContextSetDiscardValueNames(base->context, true);
    return status;
}

ev_status ir_diff(const ir_base *base, const ir_genome *genome, ev_str *out, ev_error *err) {
    const diff_span all = {0, ir_genome_edit_count(genome), "base", "variant", {.trim = trim}};
    return diff_span_of(base, genome, &all, out, err);
}

ev_status ir_diff_edit(const ir_base *base, const ir_genome *genome, size_t index, ev_str *out,
                       ev_error *err) {
    const diff_span one = {index, index + 1, "before", "after", {trim, key_without_metadata}};
    return diff_span_of(base, genome, &one, out, err);
}
