/* Edits of memory accesses: stores dropped, values forwarded, cache policy and alignment.
 *
 * The edits assert facts that the compiler cannot prove: that a store is not needed, that a loaded
 * value equals one that is known, that memory is read-only during the launch (ld.global.nc), or
 * that an address is aligned. A variable of the module is declared with the alignment that an
 * access to it asserts; an argument has the alignment that the task grants, and no more. The gates
 * refute a wrong assertion: the virtual machine traps on a misaligned access and on a read-only
 * word that the launch writes, and the outputs are compared. */
#include "ir/internal.h"

#include <string.h>

static LLVMValueRef value_at(const ir_work *w, uint32_t id) {
    return w->nodes[id].value;
}

/* ---- drop-store -------------------------------------------------------------------------------
 */

static void store_sites(const ir_work *w, ir_sites *sites) {
    for (uint32_t place = 0; place < w->sequence_count; place++) {
        if (LLVMIsAStoreInst(value_at(w, w->sequence[place])))
            ir_sites_add(sites, w->sequence[place], 0);
    }
}

static bool draw_drop_store(ir_work *w, ir_site site, ev_pcg *rng, ir_edit *edit) {
    (void)rng;
    edit->at = ir_work_name(w, site.id);
    return true;
}

static ev_status apply_drop_store(ir_work *w, const ir_edit *edit, ev_error *err) {
    uint32_t at;
    EV_TRY(ir_work_need(w, &edit->at, "at", &at, err));
    if (!LLVMIsAStoreInst(value_at(w, at)))
        return ev_fail(err, EV_BAD, "\"at\" is no store");
    ir_work_doom(w, at);
    return EV_OK;
}

static void describe_drop_store(const ir_work *w, const ir_edit *edit, ev_str *out) {
    ev_str_append(out, "drops ");
    ir_describe_insn(w, &edit->at, out);
}

const ir_rule ir_rule_DROP_STORE = {store_sites, draw_drop_store, apply_drop_store,
                                    describe_drop_store};

/* ---- forward-value ----------------------------------------------------------------------------
 */

/* Whether an instruction can be replaced by a value that dominates it. A PHI cannot, since the
 * values that its operands may take need not dominate the PHI itself. */
static bool can_forward(LLVMValueRef insn) {
    return ir_insn_is_movable(insn) && ir_type_is_value(LLVMTypeOf(insn)) &&
           !LLVMIsAAllocaInst(insn);
}

static void forward_sites(const ir_work *w, ir_sites *sites) {
    for (uint32_t place = 0; place < w->sequence_count; place++) {
        if (can_forward(value_at(w, w->sequence[place])))
            ir_sites_add(sites, w->sequence[place], 0);
    }
}

/* Whether `id` dominates `at`. */
static bool comes_before(const ir_work *w, uint32_t id, uint32_t at) {
    const ir_node *a = &w->nodes[id], *b = &w->nodes[at];
    if (a->block == b->block)
        return a->order < b->order;
    return w->blocks[a->block].function == w->blocks[b->block].function &&
           ir_dominance_reaches(&w->dominance, b->block + 1) &&
           ir_dominance_reaches(&w->dominance, a->block + 1) &&
           ir_work_block_dominates(w, a->block, b->block);
}

/* The value that memory holds at the address of the access `insn` after it; NULL: none of the type.
 */
static LLVMValueRef held_value(LLVMValueRef insn, LLVMTypeRef type) {
    LLVMValueRef value = NULL;
    if (LLVMIsALoadInst(insn))
        value = insn;
    else if (LLVMIsAStoreInst(insn))
        value = LLVMGetOperand(insn, 0);
    return value && LLVMTypeOf(value) == type ? value : NULL;
}

/* An LLVM value in the form of edits; kind NONE: a constant that is no number. */
static ir_value name_value(const ir_work *w, LLVMValueRef value) {
    uint32_t id = ir_work_id(w, value);
    if (id != IR_NONE)
        return (ir_value){.kind = IR_VALUE_INSN, .insn = ir_work_name(w, id)};
    if (LLVMIsAArgument(value)) {
        LLVMValueRef function = LLVMGetParamParent(value);
        for (unsigned i = 0; i < LLVMCountParams(function); i++) {
            if (LLVMGetParam(function, i) == value)
                return (ir_value){.kind = IR_VALUE_ARG, .arg = i};
        }
    }
    LLVMBool lossy = false;
    if (LLVMIsAConstantFP(value))
        return (ir_value){.kind = IR_VALUE_REAL, .real = LLVMConstRealGetDouble(value, &lossy)};
    if (LLVMIsAConstantInt(value) && LLVMGetIntTypeWidth(LLVMTypeOf(value)) <= 64)
        return (ir_value){.kind = IR_VALUE_INT, .integer = LLVMConstIntGetSExtValue(value)};
    return (ir_value){0};
}

static LLVMValueRef address_of(LLVMValueRef insn) {
    return LLVMGetOperand(insn, LLVMIsAStoreInst(insn) ? 1 : 0);
}

/* For a load: draws an access before it, with preference for the same address and array. */
static ir_value draw_held(const ir_work *w, uint32_t at, ev_pcg *rng) {
    LLVMValueRef load = value_at(w, at);
    ir_value chosen = {0};
    uint32_t seen = 0;
    bool same_only = false;
    for (uint32_t place = 0; place < w->sequence_count; place++) {
        uint32_t id = w->sequence[place];
        LLVMValueRef insn = value_at(w, id);
        LLVMValueRef value = id == at ? NULL : held_value(insn, LLVMTypeOf(load));
        if (!value || !comes_before(w, id, at))
            continue;
        bool same = address_of(insn) == LLVMGetOperand(load, 0);
        if (same_only && !same)
            continue;
        if (same && !same_only) {
            same_only = true;
            seen = 0;
        }
        if (ev_pcg_below(rng, ++seen) == 0)
            chosen = name_value(w, value);
    }
    return chosen;
}

static bool draw_forward(ir_work *w, ir_site site, ev_pcg *rng, ir_edit *edit) {
    LLVMTypeRef type = LLVMTypeOf(value_at(w, site.id));
    edit->at = ir_work_name(w, site.id);
    if (LLVMIsALoadInst(value_at(w, site.id)) && ev_pcg_below(rng, 4) != 0)
        edit->value = draw_held(w, site.id, rng);
    if (edit->value.kind != IR_VALUE_NONE)
        return true;
    uint32_t seen = 0;
    for (uint32_t place = 0; place < w->sequence_count; place++) {
        uint32_t id = w->sequence[place];
        if (id != site.id && LLVMTypeOf(value_at(w, id)) == type && comes_before(w, id, site.id) &&
            ev_pcg_below(rng, ++seen) == 0)
            edit->value = (ir_value){.kind = IR_VALUE_INSN, .insn = ir_work_name(w, id)};
    }
    return seen > 0;
}

static LLVMValueRef forwarded(const ir_work *w, const ir_edit *edit, uint32_t at) {
    LLVMTypeRef type = LLVMTypeOf(value_at(w, at));
    const ir_value *value = &edit->value;
    LLVMValueRef found = NULL;
    if (value->kind == IR_VALUE_INSN) {
        uint32_t id = ir_work_find(w, &value->insn);
        found = id != IR_NONE && comes_before(w, id, at) ? value_at(w, id) : NULL;
    } else if (value->kind == IR_VALUE_ARG) {
        LLVMValueRef function = w->blocks[w->nodes[at].block].function;
        found = value->arg < LLVMCountParams(function) ? LLVMGetParam(function, value->arg) : NULL;
    } else if (value->kind != IR_VALUE_NONE) {
        found = ir_value_constant(value, type);
    }
    return found && LLVMTypeOf(found) == type ? found : NULL;
}

static ev_status apply_forward(ir_work *w, const ir_edit *edit, ev_error *err) {
    uint32_t at;
    EV_TRY(ir_work_need(w, &edit->at, "at", &at, err));
    if (!can_forward(value_at(w, at)))
        return ev_fail(err, EV_BAD, "\"at\" has no value that another could stand for");
    LLVMValueRef value = forwarded(w, edit, at);
    if (!value)
        return ev_fail(err, EV_BAD,
                       "\"value\" is missing, of another type, or does not come before \"at\"");
    ir_work_replace_uses(w, value_at(w, at), value);
    ir_work_doom(w, at);
    return EV_OK;
}

static void describe_forward(const ir_work *w, const ir_edit *edit, ev_str *out) {
    ev_str_append(out, "takes ");
    ir_describe_value(w, &edit->value, out);
    ev_str_append(out, " in place of ");
    ir_describe_insn(w, &edit->at, out);
}

const ir_rule ir_rule_FORWARD = {forward_sites, draw_forward, apply_forward, describe_forward};

/* ---- cache-policy -----------------------------------------------------------------------------
 */

/* The meanings of `option`. LLVM 19's NVPTX emits ld.global.nc for invariant loads, and supports no
 * other cache operator. */
enum { CACHE_READ_ONLY, CACHE_PLAIN, CACHE_NOT_VOLATILE, CACHE_OPTIONS };

static unsigned invariant_kind(const ir_work *w) {
    static const char name[] = "invariant.load";
    return LLVMGetMDKindIDInContext(w->context, name, sizeof name - 1);
}

/* Whether the address is global, or a generic address from a kernel's argument, which NVPTX
 * converts to global. */
static bool is_global_address(LLVMValueRef address) {
    if (LLVMGetPointerAddressSpace(LLVMTypeOf(address)) == 1)
        return true;
    while (LLVMIsAGetElementPtrInst(address) || LLVMIsAAddrSpaceCastInst(address))
        address = LLVMGetOperand(address, 0);
    return LLVMGetPointerAddressSpace(LLVMTypeOf(address)) <= 1 && LLVMIsAArgument(address);
}

static bool cache_fits(const ir_work *w, LLVMValueRef insn, int64_t option) {
    bool load = LLVMIsALoadInst(insn) != NULL;
    if (!load && !LLVMIsAStoreInst(insn))
        return false;
    bool marked = load && LLVMGetMetadata(insn, invariant_kind(w)) != NULL;
    switch (option) {
    case CACHE_READ_ONLY:
        return load && !marked && !LLVMGetVolatile(insn) &&
               LLVMGetOrdering(insn) == LLVMAtomicOrderingNotAtomic &&
               is_global_address(LLVMGetOperand(insn, 0));
    case CACHE_PLAIN:
        return marked;
    case CACHE_NOT_VOLATILE:
        return LLVMGetVolatile(insn);
    default:
        return false;
    }
}

static void cache_sites(const ir_work *w, ir_sites *sites) {
    for (uint32_t place = 0; place < w->sequence_count; place++) {
        for (uint32_t option = 0; option < CACHE_OPTIONS; option++) {
            if (cache_fits(w, value_at(w, w->sequence[place]), option))
                ir_sites_add(sites, w->sequence[place], option);
        }
    }
}

static bool draw_option(ir_work *w, ir_site site, ev_pcg *rng, ir_edit *edit) {
    (void)rng;
    edit->at = ir_work_name(w, site.id);
    edit->has_option = true;
    edit->option = site.index;
    return true;
}

static ev_status apply_cache(ir_work *w, const ir_edit *edit, ev_error *err) {
    uint32_t at;
    EV_TRY(ir_work_need(w, &edit->at, "at", &at, err));
    LLVMValueRef insn = value_at(w, at);
    if (!edit->has_option || !cache_fits(w, insn, edit->option))
        return ev_fail(err, EV_BAD, "\"option\" is missing or changes nothing of \"at\"");
    if (edit->option == CACHE_NOT_VOLATILE)
        LLVMSetVolatile(insn, false);
    else if (edit->option == CACHE_READ_ONLY)
        LLVMSetMetadata(insn, invariant_kind(w),
                        LLVMMetadataAsValue(w->context, LLVMMDNodeInContext2(w->context, NULL, 0)));
    else
        LLVMSetMetadata(insn, invariant_kind(w), NULL);
    return EV_OK;
}

static void describe_cache(const ir_work *w, const ir_edit *edit, ev_str *out) {
    static const char *const words[] = {"takes the read-only path (ld.global.nc) for ",
                                        "takes the plain path for ", "drops volatile of "};
    bool known = edit->option >= 0 && edit->option < CACHE_OPTIONS;
    ev_str_append(out, known ? words[edit->option] : "changes ");
    ir_describe_insn(w, &edit->at, out);
}

const ir_rule ir_rule_CACHE = {cache_sites, draw_option, apply_cache, describe_cache};

/* ---- alignment --------------------------------------------------------------------------------
 */

enum { MOST_ALIGNED = IR_ARGUMENT_ALIGN };

static bool is_access(LLVMValueRef insn) {
    return LLVMIsALoadInst(insn) != NULL || LLVMIsAStoreInst(insn) != NULL;
}

/* Whether an address computation or a cast, as an instruction or a constant. */
static bool is_step(LLVMValueRef value) {
    LLVMOpcode opcode;
    if (LLVMIsAInstruction(value))
        opcode = LLVMGetInstructionOpcode(value);
    else if (LLVMIsAConstantExpr(value))
        opcode = LLVMGetConstOpcode(value);
    else
        return false;
    return opcode == LLVMGetElementPtr || opcode == LLVMAddrSpaceCast || opcode == LLVMBitCast;
}

LLVMValueRef ir_address_base(LLVMValueRef address) {
    while (is_step(address))
        address = LLVMGetOperand(address, 0);
    return address;
}

void ir_raise_alignment(LLVMValueRef address, unsigned bytes) {
    LLVMValueRef base = ir_address_base(address);
    bool declares = LLVMIsAGlobalVariable(base) || LLVMIsAAllocaInst(base);
    if (declares && LLVMGetAlignment(base) < bytes)
        LLVMSetAlignment(base, bytes);
}

static void align_sites(const ir_work *w, ir_sites *sites) {
    for (uint32_t place = 0; place < w->sequence_count; place++) {
        LLVMValueRef insn = value_at(w, w->sequence[place]);
        if (!is_access(insn))
            continue;
        for (uint32_t bytes = 2 * LLVMGetAlignment(insn); bytes <= MOST_ALIGNED; bytes *= 2)
            ir_sites_add(sites, w->sequence[place], bytes);
    }
}

static ev_status apply_align(ir_work *w, const ir_edit *edit, ev_error *err) {
    uint32_t at;
    EV_TRY(ir_work_need(w, &edit->at, "at", &at, err));
    LLVMValueRef insn = value_at(w, at);
    bool fits = edit->has_option && edit->option >= 1 && edit->option <= MOST_ALIGNED &&
                (edit->option & (edit->option - 1)) == 0;
    if (!is_access(insn) || !fits || edit->option <= LLVMGetAlignment(insn))
        return ev_fail(err, EV_BAD,
                       "\"at\" is no access with less than the alignment \"option\", "
                       "or that is no power of two up to 16");
    LLVMSetAlignment(insn, (unsigned)edit->option);
    ir_raise_alignment(LLVMGetOperand(insn, LLVMIsAStoreInst(insn) ? 1 : 0),
                       (unsigned)edit->option);
    return EV_OK;
}

bool ir_align_is_bold(const ir_work *w, const ir_edit *edit) {
    uint32_t at = ir_work_find(w, &edit->at);
    if (at == IR_NONE || !is_access(value_at(w, at)))
        return true;
    LLVMValueRef insn = value_at(w, at);
    LLVMValueRef address = LLVMGetOperand(insn, LLVMIsAStoreInst(insn) ? 1 : 0);
    return !edit->has_option || edit->option > (int64_t)ir_known_alignment(w, address);
}

static void describe_align(const ir_work *w, const ir_edit *edit, ev_str *out) {
    ev_str_printf(out, "asserts %lld-byte alignment of ", (long long)edit->option);
    ir_describe_insn(w, &edit->at, out);
}

const ir_rule ir_rule_ALIGN = {align_sites, draw_option, apply_align, describe_align};

static LLVMValueRef entry_of(const ir_work *w) {
    return LLVMGetNamedFunction(w->module, w->base->entry);
}

static unsigned align_kind(void) {
    return LLVMGetEnumAttributeKindForName("align", 5);
}

static bool argument_fits(const ir_work *w, uint32_t arg) {
    LLVMValueRef entry = entry_of(w);
    if (arg >= LLVMCountParams(entry) ||
        (arg < w->base->align_count && w->base->aligns[arg] == 0) ||
        LLVMGetTypeKind(LLVMTypeOf(LLVMGetParam(entry, arg))) != LLVMPointerTypeKind ||
        ir_param_has(LLVMGetParam(entry, arg), "byval"))
        return false;
    LLVMAttributeRef has = LLVMGetEnumAttributeAtIndex(entry, arg + 1, align_kind());
    return !has || LLVMGetEnumAttributeValue(has) < MOST_ALIGNED;
}

static void argument_sites(const ir_work *w, ir_sites *sites) {
    for (uint32_t arg = 0; arg < LLVMCountParams(entry_of(w)); arg++) {
        if (argument_fits(w, arg))
            ir_sites_add(sites, IR_NONE, arg);
    }
}

static bool draw_argument(ir_work *w, ir_site site, ev_pcg *rng, ir_edit *edit) {
    (void)w;
    (void)rng;
    edit->value = (ir_value){.kind = IR_VALUE_ARG, .arg = site.index};
    return true;
}

static ev_status apply_argument(ir_work *w, const ir_edit *edit, ev_error *err) {
    uint32_t arg = edit->value.arg;
    if (edit->value.kind != IR_VALUE_ARG || !argument_fits(w, arg))
        return ev_fail(err, EV_BAD,
                       "\"value\" is no pointer argument like \"a0\", or it is "
                       "aligned already");
    LLVMAddAttributeAtIndex(entry_of(w), arg + 1,
                            LLVMCreateEnumAttribute(w->context, align_kind(), MOST_ALIGNED));
    return EV_OK;
}

static void describe_argument(const ir_work *w, const ir_edit *edit, ev_str *out) {
    (void)w;
    ev_str_printf(out, "asserts %d-byte alignment of argument %u", MOST_ALIGNED, edit->value.arg);
}

const ir_rule ir_rule_ALIGN_ARGUMENT = {argument_sites, draw_argument, apply_argument,
                                        describe_argument};
