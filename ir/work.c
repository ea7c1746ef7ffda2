/* Work: the module under edit: names of instructions, their order, dominance, and the repair of
 * uses that an edit breaks.
 *
 * An edit of the genome may delete or move a value that other instructions use. GEVO repairs such
 * uses with another value of the type in reach (Liou, Wang, Forrest, Wu, "GEVO: GPU Code
 * Optimization Using Evolutionary Computation", TACO 2020), and so does this file. After an edit's
 * own change, `ir_work_apply` recomputes the order and dominance if they changed. Then it visits
 * each use that may be broken: the definition is gone, is doomed, or does not dominate the use. A
 * new edit draws the new value at random and stores it as a repair, so a replay makes the same
 * module. A replay without a valid stored repair takes the nearest dominating value, else the last
 * argument of the type, else zero.
 *
 * If the control-flow graph is unchanged, only the uses of and by the touched instructions can be
 * broken ("suspects"). They are visited in the order of the module, because each repair draws from
 * the random stream. Doomed instructions are erased last, so that their names are valid until then.
 */
#include "ir/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- maps and lists in the arena --------------------------------------------------------------
 */

static uint32_t map_slot(const ir_map *map, const void *key) {
    uint64_t mixed = ((uint64_t)(uintptr_t)key >> 4) * 0x9e3779b97f4a7c15u;
    uint32_t slot = (uint32_t)(mixed >> 32) & (map->capacity - 1);
    while (map->slots[slot].key && map->slots[slot].key != key)
        slot = (slot + 1) & (map->capacity - 1);
    return slot;
}

bool ir_map_reserve(ir_map *map, ev_arena *arena, uint32_t count) {
    if (map->capacity >= 2 * count && map->capacity > 0)
        return true;
    ir_map grown = {.capacity = 64};
    while (grown.capacity < 4 * count)
        grown.capacity *= 2;
    grown.slots = EV_NEW_ARRAY(arena, ir_slot, grown.capacity);
    if (!grown.slots)
        return false;
    for (uint32_t i = 0; i < map->capacity; i++) {
        if (map->slots[i].key)
            grown.slots[map_slot(&grown, map->slots[i].key)] = map->slots[i];
    }
    grown.count = map->count;
    *map = grown;
    return true;
}

/* Adds a key. The caller must have reserved room. */
void ir_map_put(ir_map *map, const void *key, uint32_t value) {
    uint32_t slot = map_slot(map, key);
    map->count += map->slots[slot].key == NULL;
    map->slots[slot] = (ir_slot){key, value};
}

uint32_t ir_map_get(const ir_map *map, const void *key) {
    uint32_t slot = map_slot(map, key);
    return map->slots[slot].key ? map->slots[slot].value : IR_NONE;
}

/* Makes room for `count` items of `size` bytes, and keeps the first `used`. NULL: out of memory. */
static void *list_reserve(ev_arena *arena, void *items, uint32_t *capacity, uint32_t used,
                          uint32_t count, size_t size) {
    if (count <= *capacity && items)
        return items;
    uint32_t room = count + count / 2 + 32;
    void *grown = ev_arena_array(arena, room, size);
    if (!grown)
        return NULL;
    if (items)
        memcpy(grown, items, used * size);
    *capacity = room;
    return grown;
}

/* ---- layout -----------------------------------------------------------------------------------
 */

static bool add_node(ir_work *w, ir_node node) {
    ir_node *nodes =
        list_reserve(w->arena, w->nodes, &w->capacity, w->count, w->count + 1, sizeof *w->nodes);
    if (!nodes || !ir_map_reserve(&w->map, w->arena, w->count + 1))
        return false;
    w->nodes = nodes;
    ir_map_put(&w->map, node.value, w->count);
    w->nodes[w->count++] = node;
    return true;
}

static bool add_block(ir_work *w, LLVMBasicBlockRef block, LLVMValueRef function) {
    ir_block *blocks = list_reserve(w->arena, w->blocks, &w->block_capacity, w->block_count,
                                    w->block_count + 1, sizeof *w->blocks);
    if (!blocks || !ir_map_reserve(&w->block_map, w->arena, w->block_count + 1))
        return false;
    w->blocks = blocks;
    ir_map_put(&w->block_map, block, w->block_count);
    w->blocks[w->block_count++] = (ir_block){.block = block, .function = function};
    return true;
}

static bool list_blocks(ir_work *w) {
    w->block_count = 0;
    w->block_map = (ir_map){0};
    bool ok = ir_map_reserve(&w->block_map, w->arena, 1);
    for (LLVMValueRef f = LLVMGetFirstFunction(w->module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
            ok = ok && add_block(w, b, f);
    return ok;
}

static uint32_t count_edges(const ir_work *w) {
    uint32_t edges = w->block_count; /* at most one edge from the root to each block */
    for (uint32_t b = 0; b < w->block_count; b++) {
        LLVMValueRef last = LLVMGetBasicBlockTerminator(w->blocks[b].block);
        edges += last ? LLVMGetNumSuccessors(last) : 0;
    }
    return edges;
}

/* Node 0 leads to every function's entry block; block b is node b + 1. */
static bool make_graph(ir_work *w) {
    uint32_t *first = EV_NEW_ARRAY(w->arena, uint32_t, (size_t)w->block_count + 2);
    uint32_t *succ = EV_NEW_ARRAY(w->arena, uint32_t, (size_t)count_edges(w) + 1);
    if (!first || !succ)
        return false;
    uint32_t edges = 0;
    for (uint32_t b = 0; b < w->block_count; b++) {
        if (LLVMGetEntryBasicBlock(w->blocks[b].function) == w->blocks[b].block)
            succ[edges++] = b + 1;
    }
    for (uint32_t b = 0; b < w->block_count; b++) {
        first[b + 1] = edges;
        LLVMValueRef last = LLVMGetBasicBlockTerminator(w->blocks[b].block);
        for (unsigned i = 0; last && i < LLVMGetNumSuccessors(last); i++)
            succ[edges++] = ir_map_get(&w->block_map, LLVMGetSuccessor(last, i)) + 1;
    }
    first[w->block_count + 1] = edges;
    w->graph = (ir_graph){w->block_count + 1, first, succ};
    return ir_dominance_make(&w->graph, w->arena, &w->dominance);
}

/* The previous sequence, and the place up to which it was followed. */
typedef struct ir_trail {
    const uint32_t *sequence;
    uint32_t count, at;
} ir_trail;

/* Finds the node of an instruction. Mostly it is the next of the trail, and then no look-up is
 * needed. */
static uint32_t follow(const ir_work *w, ir_trail *trail, LLVMValueRef insn) {
    if (trail->at < trail->count && w->nodes[trail->sequence[trail->at]].value == insn)
        return trail->sequence[trail->at++];
    uint32_t id = ir_work_id(w, insn);
    assert(id != IR_NONE);
    uint32_t was_at = w->nodes[id].order;
    if (was_at < trail->count && trail->sequence[was_at] == id)
        trail->at = was_at + 1;
    return id;
}

static void put_in_sequence(ir_work *w, uint32_t id, uint32_t block) {
    w->nodes[id].block = block;
    w->nodes[id].order = w->sequence_count;
    w->sequence[w->sequence_count++] = id;
}

/* Begins a new sequence; the old one becomes the trail. */
static bool begin_sequence(ir_work *w, ir_trail *trail) {
    uint32_t capacity = w->sequence_capacity;
    uint32_t *next = list_reserve(w->arena, w->spare_sequence, &w->spare_capacity, 0,
                                  w->base->count + w->count, sizeof *next);
    if (!next)
        return false;
    *trail = (ir_trail){w->sequence, w->sequence_count, 0};
    w->spare_sequence = w->sequence;
    w->sequence = next;
    w->sequence_capacity = w->spare_capacity;
    w->spare_capacity = capacity;
    w->sequence_count = 0;
    return true;
}

/* Lists the nodes in the module's order; the instructions of a fresh clone become nodes of the
 * base. */
static bool lay_out(ir_work *w, bool fresh) {
    ir_trail trail;
    if (!begin_sequence(w, &trail))
        return false;
    for (uint32_t b = 0; b < w->block_count; b++) {
        ir_block *block = &w->blocks[b];
        block->first = w->sequence_count;
        for (LLVMValueRef i = LLVMGetFirstInstruction(block->block); i;
             i = LLVMGetNextInstruction(i)) {
            uint32_t id = fresh ? w->count : follow(w, &trail, i);
            if (fresh && !add_node(w, (ir_node){.value = i, .number = id}))
                return false;
            put_in_sequence(w, id, b);
        }
        block->last = w->sequence_count;
    }
    return true;
}

/* Removes erased nodes from the sequence. */
static void close_ranks(ir_work *w) {
    uint32_t from = 0;
    w->sequence_count = 0;
    for (uint32_t b = 0; b < w->block_count; b++) {
        ir_block *block = &w->blocks[b];
        uint32_t last = block->last;
        block->first = w->sequence_count;
        for (; from < last; from++) {
            if (w->nodes[w->sequence[from]].value)
                put_in_sequence(w, w->sequence[from], b);
        }
        block->last = w->sequence_count;
    }
}

static bool refresh(ir_work *w) {
    if (w->cfg_changed && !(list_blocks(w) && make_graph(w)))
        return false;
    w->cfg_changed = false;
    return lay_out(w, false);
}

ev_status ir_work_open(const ir_base *base, ir_work **out, ev_error *err) {
    ev_arena *arena = ev_arena_new();
    ir_work *w = arena ? EV_NEW(arena, ir_work) : NULL;
    if (!w) {
        ev_arena_free(arena);
        return ev_fail_memory(err, sizeof *w);
    }
    w->base = base;
    w->arena = arena;
    w->context = base->context;
    w->module = LLVMCloneModule(base->module);
    w->builder = LLVMCreateBuilderInContext(w->context);
    if (!ir_map_reserve(&w->map, arena, base->count) || !list_blocks(w) || !make_graph(w) ||
        !lay_out(w, true)) {
        ir_work_close(w);
        return ev_fail_memory(err, base->count * sizeof(ir_node));
    }
    assert(w->count == base->count);
    *out = w;
    return EV_OK;
}

void ir_work_close(ir_work *w) {
    if (!w)
        return;
    LLVMDisposeBuilder(w->builder);
    if (w->module)
        LLVMDisposeModule(w->module);
    ev_arena_free(w->arena);
}

void ir_edited_free(ir_edited *edited) {
    ir_work_close(edited);
}

LLVMModuleRef ir_work_take_module(ir_work *w) {
    LLVMModuleRef module = w->module;
    w->module = NULL;
    return module;
}

/* ---- names ------------------------------------------------------------------------------------
 */

/* The number of a value; IR_NONE: none. The map may hold an erased instruction at the same address,
 * so the node is checked. */
uint32_t ir_work_id(const ir_work *w, LLVMValueRef value) {
    uint32_t id = ir_map_get(&w->map, value);
    return id != IR_NONE && w->nodes[id].value == value ? id : IR_NONE;
}

uint32_t ir_work_block_of(const ir_work *w, LLVMBasicBlockRef block) {
    return ir_map_get(&w->block_map, block);
}

ir_name ir_work_name(const ir_work *w, uint32_t id) {
    const ir_node *node = &w->nodes[id];
    if (!node->added)
        return (ir_name){.kind = IR_NAME_BASE, .number = node->number};
    if (node->tag == w->tag)
        return (ir_name){.kind = IR_NAME_SELF, .number = node->number};
    return (ir_name){.kind = IR_NAME_ADDED, .number = node->number, .tag = node->tag};
}

uint32_t ir_work_find(const ir_work *w, const ir_name *name) {
    if (name->kind == IR_NAME_BASE)
        return name->number < w->base->count && w->nodes[name->number].value ? name->number
                                                                             : IR_NONE;
    uint64_t tag = name->kind == IR_NAME_SELF ? w->tag : name->tag;
    for (uint32_t id = w->base->count; id < w->count; id++) {
        const ir_node *node = &w->nodes[id];
        if (node->value && node->tag == tag && node->number == name->number)
            return id;
    }
    return IR_NONE;
}

uint32_t ir_work_line(const ir_work *w, uint32_t id) {
    return w->nodes[id].added ? 0 : w->base->lines[w->nodes[id].number];
}

ev_status ir_work_need(const ir_work *w, const ir_name *name, const char *what, uint32_t *out,
                       ev_error *err) {
    if (name->kind == IR_NAME_NONE)
        return ev_fail(err, EV_BAD, "\"%s\" is missing; it names an instruction like \"i12\"",
                       what);
    uint32_t id = ir_work_find(w, name);
    if (id == IR_NONE) {
        char text[IR_NAME_TEXT];
        ir_name_print(name, text);
        return ev_fail(err, EV_BAD,
                       "\"%s\": there is no instruction %s (the base has i0 to i%u; an earlier "
                       "edit may have removed it)",
                       what, text, w->base->count - 1);
    }
    *out = id;
    return EV_OK;
}

void ir_work_touch(ir_work *w, uint32_t id) {
    uint32_t *touched = list_reserve(w->arena, w->touched, &w->touched_capacity, w->touched_count,
                                     w->touched_count + 1, sizeof *touched);
    if (!touched) /* the arena notes the failure */
        return;
    w->touched = touched;
    w->touched[w->touched_count++] = id;
}

void ir_work_added(ir_work *w, LLVMValueRef value) {
    w->reordered = true;
    /* Without memory the node is missing; the arena notes the failure, and lay_out's caller checks
     * the arena. */
    if (add_node(w, (ir_node){.value = value, .added = true, .tag = w->tag, .number = w->parts++}))
        ir_work_touch(w, w->count - 1);
}

void ir_work_doom(ir_work *w, uint32_t id) {
    w->nodes[id].doomed = true;
    w->dooms = true;
    ir_work_touch(w, id);
}

void ir_work_replace_uses(ir_work *w, LLVMValueRef from, LLVMValueRef to) {
    uint32_t id = ir_work_id(w, to);
    LLVMReplaceAllUsesWith(from, to);
    if (id != IR_NONE)
        ir_work_touch(w, id);
}

void ir_work_erase(ir_work *w, uint32_t id) {
    LLVMInstructionEraseFromParent(w->nodes[id].value);
    w->nodes[id].value = NULL;
    w->reordered = true;
}

void ir_work_move_before(ir_work *w, uint32_t id, uint32_t place) {
    LLVMInstructionRemoveFromParent(w->nodes[id].value);
    LLVMPositionBuilderBefore(w->builder, w->nodes[place].value);
    LLVMInsertIntoBuilder(w->builder, w->nodes[id].value);
    w->reordered = true;
    ir_work_touch(w, id);
}

/* ---- dominance of values ----------------------------------------------------------------------
 */

bool ir_work_block_dominates(const ir_work *w, uint32_t a, uint32_t b) {
    return ir_dominance_over(&w->dominance, a + 1, b + 1);
}

/* Whether a definition dominates a use, by the rules of LLVM's verifier: unreachable code may use
 * any value of its function, and a PHI uses its operand at the end of the block that the operand
 * comes from. */
bool ir_work_dominates(const ir_work *w, uint32_t def, uint32_t user, uint32_t operand) {
    const ir_node *d = &w->nodes[def], *u = &w->nodes[user];
    bool phi = LLVMIsAPHINode(u->value) != NULL;
    uint32_t at = u->block;
    if (phi)
        at = ir_work_block_of(w, LLVMGetIncomingBlock(u->value, operand));
    if (w->blocks[d->block].function != w->blocks[at].function)
        return false;
    if (!ir_dominance_reaches(&w->dominance, at + 1))
        return true;
    if (!ir_dominance_reaches(&w->dominance, d->block + 1))
        return false;
    if (d->block == at)
        return phi || d->order < u->order;
    return ir_work_block_dominates(w, d->block, at);
}

uint32_t ir_operand_count(LLVMValueRef user) {
    return (uint32_t)LLVMGetNumOperands(user);
}

/* ---- repair -----------------------------------------------------------------------------------
 */

static bool use_is_broken(const ir_work *w, uint32_t user, uint32_t operand) {
    LLVMValueRef value = LLVMGetOperand(w->nodes[user].value, operand);
    if (!value || LLVMGetValueKind(value) != LLVMInstructionValueKind)
        return false;
    uint32_t def = ir_work_id(w, value);
    return def == IR_NONE || w->nodes[def].doomed || !ir_work_dominates(w, def, user, operand);
}

/* Entries of a PHI from the same block must agree. The value of the first such entry; NULL: there
 * is none. */
static LLVMValueRef phi_twin(const ir_work *w, uint32_t user, uint32_t operand) {
    LLVMValueRef phi = w->nodes[user].value;
    if (!LLVMIsAPHINode(phi))
        return NULL;
    for (uint32_t i = 0; i < operand; i++) {
        if (LLVMGetIncomingBlock(phi, i) == LLVMGetIncomingBlock(phi, operand))
            return LLVMGetOperand(phi, i);
    }
    return NULL;
}

static LLVMValueRef stored_repair(const ir_work *w, const ir_edit *edit, uint32_t user,
                                  uint32_t operand) {
    ir_name name = ir_work_name(w, user);
    for (size_t i = 0; i < edit->repair_count; i++) {
        const ir_repair *repair = &edit->repairs[i];
        if (repair->use.operand == operand && ir_name_equal(&repair->use.user, &name))
            return ir_value_resolve(w, &repair->value, user, operand);
    }
    return NULL;
}

/* The value for a replay without a valid stored repair: the nearest instruction before the use,
 * else the last argument of the type, else zero. */
static LLVMValueRef nearest_value(ir_work *w, uint32_t user, uint32_t operand, LLVMTypeRef type) {
    ir_values values = ir_values_in_reach(w, user, operand, type);
    if (values.count > 0)
        return ir_value_resolve(w, &values.items[values.count - 1], user, operand);
    return LLVMConstNull(type);
}

static ev_status repair_use(ir_work *w, ir_edit *edit, uint32_t user, uint32_t operand, ev_pcg *rng,
                            ev_error *err) {
    LLVMValueRef at = w->nodes[user].value;
    LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(at, operand));
    LLVMValueRef value = phi_twin(w, user, operand);
    if (!ir_type_is_value(type))
        return ev_fail(err, EV_BAD, "a use of a type that has no other value lost its own");
    w->repaired = w->repaired || !value;
    if (!value && rng) {
        ir_value drawn = ir_value_draw(w, user, operand, NULL, rng);
        ir_repair repair = {{ir_work_name(w, user), operand}, drawn};
        if (drawn.kind == IR_VALUE_NONE)
            return ev_fail(err, EV_BAD, "no value in reach repairs a use");
        if (!ir_edit_add_repair(edit, repair))
            return ev_fail_memory(err, sizeof repair);
        value = ir_value_resolve(w, &drawn, user, operand);
    }
    if (!value)
        value = stored_repair(w, edit, user, operand);
    if (!value)
        value = nearest_value(w, user, operand, type);
    LLVMSetOperand(at, operand, value);
    return EV_OK;
}

/* Repairs the broken uses of one user. */
static ev_status repair_user(ir_work *w, ir_edit *edit, uint32_t user, ev_pcg *rng, ev_error *err) {
    if (w->nodes[user].doomed)
        return EV_OK;
    uint32_t operands = ir_operand_count(w->nodes[user].value);
    for (uint32_t operand = 0; operand < operands; operand++) {
        if (use_is_broken(w, user, operand))
            EV_TRY(repair_use(w, edit, user, operand, rng, err));
    }
    return EV_OK;
}

static void add_suspect(ir_work *w, uint32_t id) {
    if (id == IR_NONE || w->nodes[id].suspect || !w->nodes[id].value)
        return;
    uint32_t *places = list_reserve(w->arena, w->places, &w->place_capacity, w->place_count,
                                    w->place_count + 1, sizeof *places);
    if (!places)
        return;
    w->nodes[id].suspect = true;
    w->places = places;
    w->places[w->place_count++] = w->nodes[id].order;
}

static int compare_places(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Finds the suspects. If the blocks are unchanged, an edit can break only the uses of and by the
 * instructions that it touched. */
static void find_suspects(ir_work *w) {
    w->place_count = 0;
    for (uint32_t i = 0; i < w->touched_count; i++) {
        LLVMValueRef value = w->nodes[w->touched[i]].value;
        if (!value)
            continue;
        add_suspect(w, w->touched[i]);
        for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use))
            add_suspect(w, ir_work_id(w, LLVMGetUser(use)));
    }
    for (uint32_t i = 0; i < w->place_count; i++)
        w->nodes[w->sequence[w->places[i]]].suspect = false;
    if (w->place_count > 1)
        qsort(w->places, w->place_count, sizeof *w->places, compare_places);
}

/* Repairs the suspects in the order of the module, since each repair draws a value. */
static ev_status repair_suspects(ir_work *w, ir_edit *edit, ev_pcg *rng, ev_error *err) {
    find_suspects(w);
    if (ev_arena_failed(w->arena))
        return ev_fail_memory(err, 1);
    for (uint32_t i = 0; i < w->place_count; i++)
        EV_TRY(repair_user(w, edit, w->sequence[w->places[i]], rng, err));
    return EV_OK;
}

static ev_status repair_all(ir_work *w, ir_edit *edit, ev_pcg *rng, ev_error *err) {
    for (uint32_t place = 0; place < w->sequence_count; place++)
        EV_TRY(repair_user(w, edit, w->sequence[place], rng, err));
    return EV_OK;
}

#ifndef NDEBUG
static bool breaks_a_use(const ir_work *w) {
    bool broken = false;
    for (uint32_t place = 0; place < w->sequence_count; place++) {
        uint32_t user = w->sequence[place];
        for (uint32_t k = 0; k < ir_operand_count(w->nodes[user].value); k++)
            broken |= use_is_broken(w, user, k);
    }
    return broken;
}
#endif

/* Erases the doomed instructions. They may use each other, so all drop their operands first. */
static void erase_doomed(ir_work *w) {
    for (uint32_t id = 0; id < w->count; id++) {
        ir_node *node = &w->nodes[id];
        if (!node->doomed || !node->value)
            continue;
        LLVMTypeRef type = LLVMTypeOf(node->value);
        if (LLVMGetTypeKind(type) != LLVMVoidTypeKind)
            LLVMReplaceAllUsesWith(node->value, LLVMGetPoison(type));
    }
    for (uint32_t id = 0; id < w->count; id++) {
        ir_node *node = &w->nodes[id];
        if (!node->doomed || !node->value)
            continue;
        LLVMInstructionEraseFromParent(node->value);
        node->value = NULL;
    }
}

ev_status ir_work_apply(ir_work *w, ir_edit *edit, ev_pcg *rng, ev_error *err) {
    w->tag = rng ? 0 : edit->tag;
    w->parts = w->touched_count = 0;
    w->reordered = w->dooms = w->repaired = false;
    bool bold = ir_is_bold_at(w, edit);
    EV_TRY(ir_rule_of(edit->kind)->apply(w, edit, err));
    bool rewired = w->cfg_changed, anew = w->reordered || rewired;
    if (ev_arena_failed(w->arena) || (anew && !refresh(w)))
        return ev_fail_memory(err, 1);
    /* An edit that only sets an operand makes sure itself that the value is valid there. */
    if (anew || w->dooms)
        EV_TRY(rewired ? repair_all(w, edit, rng, err) : repair_suspects(w, edit, rng, err));
    if (w->dooms) {
        erase_doomed(w);
        close_ranks(w);
    }
    w->bold += bold || w->repaired;
    assert(!breaks_a_use(w));
    return EV_OK;
}

void ir_work_seal(ir_work *w, uint64_t tag) {
    for (uint32_t id = w->base->count; id < w->count; id++) {
        if (w->nodes[id].tag == 0)
            w->nodes[id].tag = tag;
    }
}

ev_status ir_work_replay(ir_work *w, const ir_edit *edit, ev_error *err) {
    /* Without rng, ir_work_apply writes nothing to the edit. */
    return ir_work_apply(w, (ir_edit *)edit, NULL, err);
}
