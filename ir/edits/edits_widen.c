/* The edit that joins adjacent loads or stores of a block into one vector access (superword-level
 * parallelism: Larsen and Amarasinghe, PLDI 2000).
 *
 * An address is expressed as base + sum of (value times bytes) + constant (`place`). Two addresses
 * are adjacent if base and terms agree and the constants differ by the size of an access. LLVM's
 * vectorizer needs a proof of alignment and of independence. The edit asserts both, and is bold
 * where neither is proved (ir_widen_is_bold); the virtual machine and the gates refute a wrong
 * assertion. A variable of the module that the address
 * is computed from gets the alignment that the vector needs; an argument has what the task grants,
 * and the virtual machine places it no better. */
#include "ir/internal.h"

#include <llvm-c/Target.h>

enum { MOST_LANES = 4, MOST_BYTES = 16, DEEPEST = 16, TERMS = 8 };

/* A variable term of an address: a value, extended by `extension`, times bytes. */
typedef struct term {
    LLVMValueRef value;
    LLVMOpcode extension; /* LLVMSExt, LLVMZExt or 0 */
    int64_t bytes;
} term;

/* An address as base + terms + constant offset in bytes. */
typedef struct place {
    LLVMValueRef base;
    int64_t offset;
    term terms[TERMS];
    uint32_t count;
} place;

static LLVMValueRef value_at(const ir_work *w, uint32_t id) {
    return w->nodes[id].value;
}

static bool is_plain_access(LLVMValueRef insn) {
    return (LLVMIsALoadInst(insn) || LLVMIsAStoreInst(insn)) && !LLVMGetVolatile(insn) &&
           LLVMGetOrdering(insn) == LLVMAtomicOrderingNotAtomic;
}

static LLVMValueRef address_of(LLVMValueRef insn) {
    return LLVMGetOperand(insn, LLVMIsAStoreInst(insn) ? 1 : 0);
}

static LLVMTypeRef type_of(LLVMValueRef insn) {
    return LLVMIsAStoreInst(insn) ? LLVMTypeOf(LLVMGetOperand(insn, 0)) : LLVMTypeOf(insn);
}

/* Whether a value is an addition that cannot wrap, so that its parts can be taken out of an
 * extension. */
static bool is_sum(LLVMValueRef value, bool is_signed) {
    if (!LLVMIsABinaryOperator(value))
        return false;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    if (opcode == LLVMOr)
        return LLVMGetIsDisjoint(value);
    return opcode == LLVMAdd && (is_signed ? LLVMGetNSW(value) : LLVMGetNUW(value));
}

/* Adds a term, a sum by its parts. False: too many terms. */
static bool add_parts(place *to, term made, bool is_signed, unsigned depth) {
    if (LLVMIsAConstantInt(made.value)) {
        int64_t steps = is_signed ? LLVMConstIntGetSExtValue(made.value)
                                  : (int64_t)LLVMConstIntGetZExtValue(made.value);
        to->offset += steps * made.bytes;
        return true;
    }
    if (depth > 0 && is_sum(made.value, is_signed)) {
        term left = made, right = made;
        left.value = LLVMGetOperand(made.value, 0);
        right.value = LLVMGetOperand(made.value, 1);
        return add_parts(to, left, is_signed, depth - 1) &&
               add_parts(to, right, is_signed, depth - 1);
    }
    if (to->count == TERMS)
        return false;
    to->terms[to->count++] = made;
    return true;
}

/* Adds the term `index` times `bytes`. False: too many terms. */
static bool add_index(place *to, LLVMValueRef index, int64_t bytes) {
    if (LLVMIsAConstantInt(index)) {
        to->offset += LLVMConstIntGetSExtValue(index) * bytes;
        return true;
    }
    term made = {.value = index, .bytes = bytes};
    bool is_signed = true;
    if (LLVMIsASExtInst(index) || LLVMIsAZExtInst(index)) {
        made.extension = LLVMGetInstructionOpcode(index);
        is_signed = made.extension == LLVMSExt;
        made.value = LLVMGetOperand(index, 0);
    }
    const place before = *to;
    if (add_parts(to, made, is_signed, DEEPEST))
        return true;
    *to = before;
    return add_parts(to, made, is_signed, 0); /* a sum of too many parts is one term */
}

/* Removes one address computation. False: a part of it is not supported. */
static bool take_off(LLVMTargetDataRef layout, place *at) {
    LLVMValueRef gep = at->base;
    LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
    place to = *at;
    to.base = LLVMGetOperand(gep, 0);
    for (unsigned i = 1; i < (unsigned)LLVMGetNumOperands(gep); i++) {
        if (i > 1) {
            if (LLVMGetTypeKind(type) != LLVMArrayTypeKind)
                return false;
            type = LLVMGetElementType(type);
        }
        if (!add_index(&to, LLVMGetOperand(gep, i), (int64_t)LLVMABISizeOfType(layout, type)))
            return false;
    }
    *at = to;
    return true;
}

static place place_of(const ir_work *w, LLVMValueRef address) {
    LLVMTargetDataRef layout = LLVMGetModuleDataLayout(w->module);
    place found = {.base = address};
    for (int depth = 0; depth < DEEPEST && LLVMIsAGetElementPtrInst(found.base); depth++) {
        if (!take_off(layout, &found))
            break;
    }
    return found;
}

static bool is_adjacent(const place *a, const place *b, int64_t offset) {
    bool same = a->base == b->base && a->count == b->count && b->offset == a->offset + offset;
    for (uint32_t i = 0; same && i < a->count; i++)
        same = a->terms[i].value == b->terms[i].value && a->terms[i].bytes == b->terms[i].bytes &&
               a->terms[i].extension == b->terms[i].extension;
    return same;
}

/* Others, as bit fields of 24 bits, take more bytes alone than side by side. */
static bool is_whole_bytes(unsigned width) {
    return width == 8 || width == 16 || width == 32 || width == 64;
}

static bool is_lane_type(LLVMTypeRef type) {
    switch (LLVMGetTypeKind(type)) {
    case LLVMHalfTypeKind:
    case LLVMFloatTypeKind:
    case LLVMDoubleTypeKind:
        return true;
    case LLVMIntegerTypeKind:
        return is_whole_bytes(LLVMGetIntTypeWidth(type));
    default:
        return false;
    }
}

typedef struct access {
    uint32_t id;
    LLVMOpcode opcode;
    LLVMTypeRef type;
    place at;
} access;

/* Lists the plain accesses of one block, in order. */
typedef struct accesses {
    access *items;
    uint32_t count;
} accesses;

static uint32_t count_accesses(const ir_work *w, const ir_block *block) {
    uint32_t count = 0;
    for (uint32_t i = block->first; i < block->last; i++)
        count += is_plain_access(value_at(w, w->sequence[i]));
    return count;
}

/* Empty if memory runs out, which the arena notes. */
static accesses list_accesses(const ir_work *w, const ir_block *block, ev_arena *arena) {
    accesses list = {EV_NEW_ARRAY(arena, access, count_accesses(w, block) + 1), 0};
    for (uint32_t i = block->first; list.items && i < block->last; i++) {
        LLVMValueRef insn = value_at(w, w->sequence[i]);
        if (is_plain_access(insn))
            list.items[list.count++] = (access){w->sequence[i], LLVMGetInstructionOpcode(insn),
                                                type_of(insn), place_of(w, address_of(insn))};
    }
    return list;
}

/* The first access of the block that is like `first` and lies `offset` bytes behind it; IR_NONE:
 * none. */
static uint32_t find_partner(const accesses *list, const access *first, int64_t offset) {
    for (const access *a = list->items; a < list->items + list->count; a++) {
        if (a->opcode == first->opcode && a->type == first->type &&
            is_adjacent(&first->at, &a->at, offset))
            return a->id;
    }
    return IR_NONE;
}

typedef struct group {
    uint32_t lanes[MOST_LANES]; /* in the order of addresses */
    uint32_t earliest, latest;  /* first and last in program order */
    uint64_t bytes;             /* bytes of one lane */
} group;

static bool find_group(const ir_work *w, const accesses *list, const access *from, uint32_t count,
                       group *out) {
    uint32_t first = from->id;
    if (!is_lane_type(from->type))
        return false;
    out->bytes = LLVMABISizeOfType(LLVMGetModuleDataLayout(w->module), from->type);
    if (out->bytes * count > MOST_BYTES)
        return false;
    out->lanes[0] = out->earliest = out->latest = first;
    for (uint32_t i = 1; i < count; i++) {
        uint32_t id = find_partner(list, from, (int64_t)(out->bytes * i));
        if (id == IR_NONE)
            return false;
        out->lanes[i] = id;
        if (w->nodes[id].order < w->nodes[out->earliest].order)
            out->earliest = id;
        if (w->nodes[id].order > w->nodes[out->latest].order)
            out->latest = id;
    }
    /* The lowest address must be available at the place of the joined access. */
    uint32_t address = ir_work_id(w, address_of(value_at(w, first)));
    bool load = from->opcode == LLVMLoad;
    return !load || address == IR_NONE || w->nodes[address].block != w->nodes[first].block ||
           w->nodes[address].order < w->nodes[out->earliest].order;
}

static void widen_sites(const ir_work *w, ir_sites *sites) {
    group unused;
    for (const ir_block *block = w->blocks; block < w->blocks + w->block_count; block++) {
        accesses list = list_accesses(w, block, sites->arena);
        for (const access *a = list.items; a < list.items + list.count; a++) {
            for (uint32_t lanes = 2; lanes <= MOST_LANES; lanes *= 2) {
                if (find_group(w, &list, a, lanes, &unused))
                    ir_sites_add(sites, a->id, lanes);
            }
        }
    }
}

static bool draw_widen(ir_work *w, ir_site site, ev_pcg *rng, ir_edit *edit) {
    (void)rng;
    edit->at = ir_work_name(w, site.id);
    edit->has_option = true;
    edit->option = site.index;
    return true;
}

static LLVMValueRef lane_index(const ir_work *w, uint32_t lane) {
    return LLVMConstInt(LLVMInt32TypeInContext(w->context), lane, false);
}

static void widen_loads(ir_work *w, const group *g, uint32_t count) {
    LLVMValueRef first = value_at(w, g->lanes[0]);
    LLVMTypeRef type = LLVMVectorType(type_of(first), count);
    LLVMPositionBuilderBefore(w->builder, value_at(w, g->earliest));
    LLVMValueRef wide = LLVMBuildLoad2(w->builder, type, address_of(first), "");
    LLVMSetAlignment(wide, (unsigned)(g->bytes * count));
    ir_raise_alignment(address_of(first), (unsigned)(g->bytes * count));
    ir_work_added(w, wide);
    for (uint32_t i = 0; i < count; i++) {
        LLVMValueRef lane = LLVMBuildExtractElement(w->builder, wide, lane_index(w, i), "");
        ir_work_added(w, lane);
        ir_work_replace_uses(w, value_at(w, g->lanes[i]), lane);
        ir_work_doom(w, g->lanes[i]);
    }
}

/* A constant is folded by the builder and is no instruction to register. */
static void widen_stores(ir_work *w, const group *g, uint32_t count) {
    LLVMValueRef first = value_at(w, g->lanes[0]);
    LLVMValueRef wide = LLVMGetPoison(LLVMVectorType(type_of(first), count));
    LLVMPositionBuilderBefore(w->builder, value_at(w, g->latest));
    for (uint32_t i = 0; i < count; i++) {
        LLVMValueRef value = LLVMGetOperand(value_at(w, g->lanes[i]), 0);
        wide = LLVMBuildInsertElement(w->builder, wide, value, lane_index(w, i), "");
        if (LLVMIsAInstruction(wide))
            ir_work_added(w, wide);
        ir_work_doom(w, g->lanes[i]);
    }
    LLVMValueRef store = LLVMBuildStore(w->builder, wide, address_of(first));
    LLVMSetAlignment(store, (unsigned)(g->bytes * count));
    ir_raise_alignment(address_of(first), (unsigned)(g->bytes * count));
    ir_work_added(w, store);
}

static bool find_group_at(const ir_work *w, uint32_t at, uint32_t count, group *out) {
    accesses list = list_accesses(w, &w->blocks[w->nodes[at].block], w->arena);
    for (const access *a = list.items; a < list.items + list.count; a++) {
        if (a->id == at)
            return find_group(w, &list, a, count, out);
    }
    return false;
}

static ev_status apply_widen(ir_work *w, const ir_edit *edit, ev_error *err) {
    uint32_t at;
    group g;
    EV_TRY(ir_work_need(w, &edit->at, "at", &at, err));
    if (!edit->has_option || (edit->option != 2 && edit->option != 4))
        return ev_fail(err, EV_BAD, "\"option\" is missing or neither 2 nor 4");
    if (!find_group_at(w, at, (uint32_t)edit->option, &g))
        return ev_fail(err, EV_BAD, "\"at\" has no %lld adjacent accesses in its block",
                       (long long)edit->option);
    if (LLVMIsALoadInst(value_at(w, at)))
        widen_loads(w, &g, (uint32_t)edit->option);
    else
        widen_stores(w, &g, (uint32_t)edit->option);
    return EV_OK;
}

static bool is_lane(const group *g, uint32_t count, uint32_t id) {
    for (uint32_t i = 0; i < count; i++) {
        if (g->lanes[i] == id)
            return true;
    }
    return false;
}

/* Whether the lanes of a group may move past an instruction between them: loads past what writes no
 * memory, or past stores that cannot reach theirs (`safe`), stores past what reads no memory that
 * the kernel writes, either. */
static bool may_pass(const ir_work *w, LLVMValueRef insn, bool loads, bool safe) {
    if (ir_may_write(insn))
        return safe && LLVMIsAStoreInst(insn);
    if (loads || ir_insn_is_pure(insn))
        return true;
    return LLVMIsALoadInst(insn) && is_plain_access(insn) &&
           ir_is_never_written(w, address_of(insn));
}

/* The accesses happen in any case, as they stand in one block. So the joined one is the same if its
 * address is aligned and no other access to its memory stands between them. */
bool ir_widen_is_bold(const ir_work *w, const ir_edit *edit) {
    uint32_t at = ir_work_find(w, &edit->at), count = (uint32_t)edit->option;
    group g;
    if (at == IR_NONE || !edit->has_option || !find_group_at(w, at, count, &g))
        return true;
    LLVMValueRef first = value_at(w, at);
    bool loads = LLVMIsALoadInst(first) != NULL;
    if (ir_known_alignment(w, address_of(first)) < g.bytes * count)
        return true;
    bool safe = loads && ir_is_never_written(w, address_of(first));
    const ir_block *block = &w->blocks[w->nodes[at].block];
    for (uint32_t i = block->first; i < block->last; i++) {
        uint32_t id = w->sequence[i], order = w->nodes[id].order;
        bool between = order > w->nodes[g.earliest].order && order < w->nodes[g.latest].order;
        if (between && !is_lane(&g, count, id) && !may_pass(w, value_at(w, id), loads, safe))
            return true;
    }
    return false;
}

static void describe_widen(const ir_work *w, const ir_edit *edit, ev_str *out) {
    ev_str_printf(out, "joins %lld adjacent accesses from ", (long long)edit->option);
    ir_describe_insn(w, &edit->at, out);
    ev_str_append(out, " on into one");
}

const ir_rule ir_rule_WIDEN = {widen_sites, draw_widen, apply_widen, describe_widen};
