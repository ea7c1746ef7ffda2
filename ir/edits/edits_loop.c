/* Edits of loops and of the places of computations: unroll, hoist and sink.
 *
 * Unrolling attaches LLVM's loop metadata (llvm.loop.unroll.*; LLVM Language Reference) to the
 * latch, the branch back to a block that dominates it. Hoisting moves an instruction to the block
 * before its loop (loop-invariant code motion), and sinking moves an instruction to the only block
 * that uses it. */
#include "ir/internal.h"

#include <llvm-c/DebugInfo.h>

#include <string.h>

static LLVMValueRef value_at(const ir_work *w, uint32_t id) {
    return w->nodes[id].value;
}

static bool reaches(const ir_work *w, uint32_t block) {
    return ir_dominance_reaches(&w->dominance, block + 1);
}

/* ---- unroll -----------------------------------------------------------------------------------
 */

/* Whether a branch is a latch: it goes back to a block that dominates it. LLVM keeps a loop's
 * metadata there. */
static bool is_latch(const ir_work *w, uint32_t id) {
    LLVMValueRef branch = value_at(w, id);
    uint32_t from = w->nodes[id].block;
    if (!LLVMIsABranchInst(branch) || !reaches(w, from))
        return false;
    for (unsigned i = 0; i < LLVMGetNumSuccessors(branch); i++) {
        if (ir_work_block_dominates(w, ir_work_block_of(w, LLVMGetSuccessor(branch, i)), from))
            return true;
    }
    return false;
}

/* The values of `option`: a count, full, or none. */
enum { UNROLL_FULL = -1, UNROLL_NEVER = 0 };
static const int64_t unroll_options[] = {UNROLL_FULL, UNROLL_NEVER, 2, 4, 8};
enum { UNROLL_OPTIONS = sizeof unroll_options / sizeof unroll_options[0] };

static void unroll_sites(const ir_work *w, ir_sites *sites) {
    for (uint32_t b = 0; b < w->block_count; b++) {
        uint32_t last = w->sequence[w->blocks[b].last - 1];
        for (uint32_t i = 0; is_latch(w, last) && i < UNROLL_OPTIONS; i++)
            ir_sites_add(sites, last, i);
    }
}

static bool draw_unroll(ir_work *w, ir_site site, ev_pcg *rng, ir_edit *edit) {
    (void)rng;
    edit->at = ir_work_name(w, site.id);
    edit->has_option = true;
    edit->option = unroll_options[site.index];
    return true;
}

static LLVMMetadataRef text_metadata(const ir_work *w, const char *text) {
    return LLVMMDStringInContext2(w->context, text, strlen(text));
}

static LLVMMetadataRef unroll_hint(const ir_work *w, int64_t option) {
    LLVMMetadataRef parts[2];
    size_t count = 1;
    if (option == UNROLL_FULL) {
        parts[0] = text_metadata(w, "llvm.loop.unroll.full");
    } else if (option == UNROLL_NEVER) {
        parts[0] = text_metadata(w, "llvm.loop.unroll.disable");
    } else {
        LLVMTypeRef i32 = LLVMInt32TypeInContext(w->context);
        parts[0] = text_metadata(w, "llvm.loop.unroll.count");
        parts[1] = LLVMValueAsMetadata(LLVMConstInt(i32, (unsigned long long)option, false));
        count = 2;
    }
    return LLVMMDNodeInContext2(w->context, parts, count);
}

/* Whether a hint of the loop is an unrolling hint, which the new one replaces. */
static bool is_unroll_hint(LLVMValueRef hint) {
    static const char stem[] = "llvm.loop.unroll.";
    LLVMValueRef name = NULL;
    unsigned length = 0;
    if (!hint || !LLVMIsAMDNode(hint) || LLVMGetMDNodeNumOperands(hint) == 0 ||
        LLVMGetMDNodeNumOperands(hint) > 2)
        return false;
    LLVMValueRef operands[2];
    LLVMGetMDNodeOperands(hint, operands);
    name = operands[0];
    const char *text = name && LLVMIsAMDString(name) ? LLVMGetMDString(name, &length) : "";
    return length >= sizeof stem - 1 && memcmp(text, stem, sizeof stem - 1) == 0;
}

enum { HINTS = 32 };

/* The loop's other hints, from index 1 on: index 0 is the node itself. */
static size_t keep_hints(LLVMValueRef branch, unsigned kind, LLVMMetadataRef *parts) {
    LLVMValueRef old = LLVMGetMetadata(branch, kind);
    LLVMValueRef operands[HINTS];
    size_t count = 1;
    unsigned size = old ? LLVMGetMDNodeNumOperands(old) : 0;
    if (size == 0 || size > HINTS - 2)
        return count;
    LLVMGetMDNodeOperands(old, operands);
    for (unsigned i = 1; i < size; i++) {
        if (operands[i] && !is_unroll_hint(operands[i]))
            parts[count++] = LLVMValueAsMetadata(operands[i]);
    }
    return count;
}

static ev_status apply_unroll(ir_work *w, const ir_edit *edit, ev_error *err) {
    static const char name[] = "llvm.loop";
    uint32_t at;
    EV_TRY(ir_work_need(w, &edit->at, "at", &at, err));
    if (!is_latch(w, at) || !edit->has_option || edit->option < UNROLL_FULL || edit->option > 64)
        return ev_fail(err, EV_BAD,
                       "\"at\" is no branch that closes a loop, or \"option\" is not "
                       "from -1 (fully) to 64");
    unsigned kind = LLVMGetMDKindIDInContext(w->context, name, sizeof name - 1);
    LLVMMetadataRef parts[HINTS];
    size_t count = keep_hints(value_at(w, at), kind, parts);
    parts[count++] = unroll_hint(w, edit->option);
    /* A loop's node refers to itself first, which makes it distinct from other loops' nodes. */
    LLVMMetadataRef self = LLVMTemporaryMDNode(w->context, NULL, 0);
    parts[0] = self;
    LLVMMetadataRef node = LLVMMDNodeInContext2(w->context, parts, count);
    LLVMMetadataReplaceAllUsesWith(self, node);
    LLVMSetMetadata(value_at(w, at), kind, LLVMMetadataAsValue(w->context, node));
    return EV_OK;
}

static void describe_unroll(const ir_work *w, const ir_edit *edit, ev_str *out) {
    if (edit->option == UNROLL_FULL)
        ev_str_append(out, "fully unrolls the loop of ");
    else if (edit->option == UNROLL_NEVER)
        ev_str_append(out, "forbids unrolling the loop of ");
    else
        ev_str_printf(out, "unrolls %lld times the loop of ", (long long)edit->option);
    ir_describe_insn(w, &edit->at, out);
}

const ir_rule ir_rule_UNROLL = {unroll_sites, draw_unroll, apply_unroll, describe_unroll};

/* ---- hoist ------------------------------------------------------------------------------------
 */

/* Whether `block` is in the loop: it reaches `latch` without going through `header`, and the latch
 * branches back to the dominating header. */
static void mark_loop(const ir_work *w, uint32_t header, uint32_t latch, bool *in) {
    in[header] = true;
    in[latch] = true;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = 0; b < w->block_count; b++) {
            if (in[b] || !reaches(w, b))
                continue;
            for (uint32_t e = w->graph.first[b + 1]; e < w->graph.first[b + 2] && !in[b]; e++)
                in[b] = in[w->graph.succ[e] - 1] && w->graph.succ[e] - 1 != header;
            changed |= in[b];
        }
    }
}

/* The loop headers: blocks to which a block that they dominate leads back. */
static void mark_headers(const ir_work *w, bool *heads) {
    for (uint32_t b = 0; b < w->block_count; b++) {
        for (uint32_t e = w->graph.first[b + 1]; e < w->graph.first[b + 2]; e++) {
            uint32_t to = w->graph.succ[e] - 1;
            heads[to] |= reaches(w, b) && ir_work_block_dominates(w, to, b);
        }
    }
}

/* For each block, the block before its innermost loop. IR_NONE: the block is in no loop, or several
 * blocks lead into the loop. NULL: out of memory. */
static uint32_t *find_preheaders(ir_work *w) {
    uint32_t *before = EV_NEW_ARRAY(w->arena, uint32_t, w->block_count);
    uint32_t *size = EV_NEW_ARRAY(w->arena, uint32_t, w->block_count);
    bool *in = EV_NEW_ARRAY(w->arena, bool, w->block_count);
    bool *heads = EV_NEW_ARRAY(w->arena, bool, w->block_count);
    if (!before || !size || !in || !heads)
        return NULL;
    for (uint32_t b = 0; b < w->block_count; b++) {
        before[b] = IR_NONE;
        size[b] = UINT32_MAX;
    }
    mark_headers(w, heads);
    for (uint32_t header = 0; header < w->block_count; header++) {
        if (!heads[header])
            continue;
        uint32_t outside = IR_NONE, outsiders = 0, blocks = 0;
        memset(in, 0, w->block_count * sizeof *in);
        for (uint32_t b = 0; b < w->block_count; b++) {
            for (uint32_t e = w->graph.first[b + 1]; e < w->graph.first[b + 2]; e++) {
                if (w->graph.succ[e] != header + 1 || !reaches(w, b))
                    continue;
                if (ir_work_block_dominates(w, header, b)) {
                    mark_loop(w, header, b, in);
                } else {
                    outside = b;
                    outsiders++;
                }
            }
        }
        for (uint32_t b = 0; b < w->block_count; b++)
            blocks += in[b];
        for (uint32_t b = 0; b < w->block_count; b++) {
            if (in[b] && blocks < size[b]) {
                size[b] = blocks;
                before[b] = outsiders == 1 ? outside : IR_NONE;
            }
        }
    }
    return before;
}

static uint32_t terminator_of(const ir_work *w, uint32_t block) {
    return w->sequence[w->blocks[block].last - 1];
}

/* Whether all operands of `id` are available at the end of `block`. */
static bool operands_known(const ir_work *w, uint32_t id, uint32_t block) {
    for (uint32_t k = 0; k < ir_operand_count(value_at(w, id)); k++) {
        uint32_t def = ir_work_id(w, LLVMGetOperand(value_at(w, id), k));
        if (def == IR_NONE)
            continue;
        if (w->nodes[def].block != block && !ir_work_block_dominates(w, w->nodes[def].block, block))
            return false;
    }
    return true;
}

static bool can_hoist(const ir_work *w, const uint32_t *before, uint32_t id) {
    uint32_t to = before[w->nodes[id].block];
    return to != IR_NONE && ir_insn_is_movable(value_at(w, id)) && operands_known(w, id, to);
}

static void hoist_sites(const ir_work *w, ir_sites *sites) {
    const uint32_t *before = find_preheaders((ir_work *)w);
    for (uint32_t place = 0; before && place < w->sequence_count; place++) {
        if (can_hoist(w, before, w->sequence[place]))
            ir_sites_add(sites, w->sequence[place], 0);
    }
}

static bool draw_at(ir_work *w, ir_site site, ev_pcg *rng, ir_edit *edit) {
    (void)rng;
    edit->at = ir_work_name(w, site.id);
    return true;
}

static ev_status apply_hoist(ir_work *w, const ir_edit *edit, ev_error *err) {
    uint32_t at;
    EV_TRY(ir_work_need(w, &edit->at, "at", &at, err));
    const uint32_t *before = find_preheaders(w);
    if (!before)
        return ev_fail_memory(err, w->block_count);
    if (!can_hoist(w, before, at))
        return ev_fail(err, EV_BAD,
                       "\"at\" is in no loop that one block leads into, or an operand "
                       "is computed in the loop");
    ir_work_move_before(w, at, terminator_of(w, before[w->nodes[at].block]));
    return EV_OK;
}

static void describe_hoist(const ir_work *w, const ir_edit *edit, ev_str *out) {
    ev_str_append(out, "hoists out of its loop ");
    ir_describe_insn(w, &edit->at, out);
}

const ir_rule ir_rule_HOIST = {hoist_sites, draw_at, apply_hoist, describe_hoist};

/* ---- sink -------------------------------------------------------------------------------------
 */

/* The only block that uses the instruction, if it is another block and uses it in no PHI; else
 * IR_NONE. */
static uint32_t using_block(const ir_work *w, uint32_t id) {
    uint32_t block = IR_NONE;
    for (LLVMUseRef use = LLVMGetFirstUse(value_at(w, id)); use; use = LLVMGetNextUse(use)) {
        uint32_t user = ir_work_id(w, LLVMGetUser(use));
        if (user == IR_NONE || LLVMIsAPHINode(value_at(w, user)) ||
            (block != IR_NONE && w->nodes[user].block != block))
            return IR_NONE;
        block = w->nodes[user].block;
    }
    return block == w->nodes[id].block ? IR_NONE : block;
}

static bool can_sink(const ir_work *w, uint32_t id) {
    return ir_insn_is_movable(value_at(w, id)) && !LLVMIsAAllocaInst(value_at(w, id)) &&
           using_block(w, id) != IR_NONE;
}

static void sink_sites(const ir_work *w, ir_sites *sites) {
    for (uint32_t place = 0; place < w->sequence_count; place++) {
        if (can_sink(w, w->sequence[place]))
            ir_sites_add(sites, w->sequence[place], 0);
    }
}

static ev_status apply_sink(ir_work *w, const ir_edit *edit, ev_error *err) {
    uint32_t at;
    EV_TRY(ir_work_need(w, &edit->at, "at", &at, err));
    if (!can_sink(w, at))
        return ev_fail(err, EV_BAD, "\"at\" is not used in exactly one other block");
    const ir_block *block = &w->blocks[using_block(w, at)];
    uint32_t place = block->first;
    while (LLVMIsAPHINode(value_at(w, w->sequence[place])))
        place++;
    ir_work_move_before(w, at, w->sequence[place]);
    return EV_OK;
}

static void describe_sink(const ir_work *w, const ir_edit *edit, ev_str *out) {
    ev_str_append(out, "sinks to where it is used ");
    ir_describe_insn(w, &edit->at, out);
}

const ir_rule ir_rule_SINK = {sink_sites, draw_at, apply_sink, describe_sink};
