/* Pitch: other addresses for the elements of a shared array, against bank conflicts.
 *
 * `pad` makes each row longer: byte o goes to o + o / pitch * pad. `swizzle` exchanges the units of
 * a row by the row's number: byte o goes to o ^ (o / pitch % units) * unit. Both map different
 * bytes to different bytes, whatever o is, and all accesses of the array take the same map. So the
 * edits preserve the meaning without any knowledge of rows and columns; that only makes the map
 * cheap. The row is taken from the terms of the address that are whole rows, if the others stay
 * within one; else it is computed by a division (a shift, for most arrays). */
#include "ir/structure/analyses/affine_internal.h"
#include "ir/structure/analyses/range_internal.h"
#include "ir/structure/analyses/vary_internal.h"
#include "ir/structure/structure_internal.h"

#include <llvm-c/DebugInfo.h>
#include <llvm-c/Target.h>

enum { DEEPEST = 12, MOST_ACCESSES = 512, MOST_PAD = 16 };

typedef struct pitching {
    ir_structure *s;
    const ir_edit *edit;
    ir_flow flow;
    ir_ranges ranges;
    LLVMBuilderRef builder;
    LLVMTargetDataRef layout;
    LLVMValueRef array;
    LLVMTypeRef element;
    uint32_t element_bytes, bytes; /* of an element and of the array */
    uint32_t pitch;                /* bytes of a row */
    LLVMValueRef accesses[MOST_ACCESSES];
    uint32_t count;
    LLVMValueRef made; /* the new array */
} pitching;

/* ---- the array and its accesses ---------------------------------------------------------------
 */

static ev_status find_array(pitching *p, ev_error *err) {
    uint32_t number = 0;
    if (p->edit->anchor.kind != IR_ANCHOR_SHARED)
        return ev_fail(err, EV_BAD, "\"anchor\" is no shared array, like \"s0\"");
    LLVMModuleRef module = p->s->base->module;
    for (LLVMValueRef g = LLVMGetFirstGlobal(module); g; g = LLVMGetNextGlobal(g)) {
        if (LLVMGetPointerAddressSpace(LLVMTypeOf(g)) == IR_SHARED_SPACE &&
            number++ == p->edit->anchor.number) {
            p->array = g;
            return EV_OK;
        }
    }
    return ev_fail(err, EV_BAD, "the kernel has no shared array s%u", p->edit->anchor.number);
}

/* Reads the array's type. The row of a nested array is its innermost one. */
static ev_status read_type(pitching *p, ev_error *err) {
    LLVMTypeRef type = LLVMGlobalGetValueType(p->array);
    unsigned nested = 0;
    p->bytes = (uint32_t)LLVMABISizeOfType(p->layout, type);
    for (p->element = type; LLVMGetTypeKind(p->element) == LLVMArrayTypeKind; nested++) {
        type = p->element;
        p->element = LLVMGetElementType(type);
    }
    if (nested == 0 || LLVMIsDeclaration(p->array) || p->bytes == 0)
        return ev_fail(err, EV_BAD, "s%u is no array whose size the kernel gives",
                       p->edit->anchor.number);
    p->element_bytes = (uint32_t)LLVMABISizeOfType(p->layout, p->element);
    p->pitch = nested > 1 ? (uint32_t)LLVMABISizeOfType(p->layout, type) : 0;
    return EV_OK;
}

/* Lists the accesses through an address. EV_BAD: it is used otherwise. */
static ev_status list_accesses(pitching *p, LLVMValueRef address, unsigned depth, ev_error *err) {
    for (LLVMUseRef use = LLVMGetFirstUse(address); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (depth > 0 && ir_is_step(user)) {
            EV_TRY(list_accesses(p, user, depth - 1, err));
            continue;
        }
        bool is_access = ir_flow_insn(&p->flow, user) != IR_NONE && !LLVMIsACallInst(user) &&
                         ir_pointer_of(user) == address &&
                         (!LLVMIsAStoreInst(user) || LLVMGetOperand(user, 0) != address);
        if (!is_access || p->count == MOST_ACCESSES)
            return ev_fail(err, EV_BAD,
                           "the address of the array goes elsewhere than into loads and stores");
        p->accesses[p->count++] = user;
    }
    return EV_OK;
}

static uint32_t bytes_of(const pitching *p, LLVMValueRef access) {
    LLVMTypeRef type =
        LLVMIsAStoreInst(access) ? LLVMTypeOf(LLVMGetOperand(access, 0)) : LLVMTypeOf(access);
    if (LLVMIsAAtomicCmpXchgInst(access))
        type = LLVMTypeOf(LLVMGetOperand(access, 1));
    return (uint32_t)LLVMABISizeOfType(p->layout, type);
}

static ir_affine offset_of(const pitching *p, LLVMValueRef access) {
    LLVMValueRef base = NULL;
    return ir_affine_of_address(p->s->base->module, ir_pointer_of(access), &base);
}

/* The row of a flat array: the least step of an address that is several elements. */
static ev_status find_pitch(pitching *p, ev_error *err) {
    enum { FEWEST = 4 };
    int64_t least = p->bytes;
    for (uint32_t a = 0; p->pitch == 0 && a < p->count; a++) {
        ir_affine offset = offset_of(p, p->accesses[a]);
        for (uint32_t t = 0; t < offset.count; t++) {
            int64_t step =
                offset.terms[t].factor < 0 ? -offset.terms[t].factor : offset.terms[t].factor;
            if (step >= (int64_t)FEWEST * p->element_bytes && step % p->element_bytes == 0 &&
                step < least)
                least = step;
        }
    }
    if (p->pitch == 0)
        p->pitch = (uint32_t)least;
    if (p->pitch >= p->bytes)
        return ev_fail(err, EV_BAD, "no address of the array steps by rows");
    return EV_OK;
}

/* ---- whether it pays --------------------------------------------------------------------------
 */

/* Whether neighbouring threads may meet in a bank: their addresses are more than an access apart,
 * or not known. */
static bool may_conflict(const pitching *p, LLVMValueRef access) {
    ir_affine offset = offset_of(p, access);
    for (uint32_t t = 0; t < offset.count; t++) {
        LLVMValueRef value = offset.terms[t].value;
        int64_t factor = offset.terms[t].factor;
        if (LLVMIsAZExtInst(value) || LLVMIsASExtInst(value))
            value = LLVMGetOperand(value, 0);
        uint32_t insn = ir_flow_insn(&p->flow, value);
        bool steps = ir_reads_register(value, "tid.x");
        if (steps && factor != bytes_of(p, access) && -factor != bytes_of(p, access))
            return true;
        bool is_shared = insn == IR_NONE || LLVMIsAPHINode(value) ||
                         ir_reads_register(value, "tid.y") || ir_reads_register(value, "tid.z");
        if (!steps && !is_shared)
            return true;
    }
    return false;
}

static ev_status check_use(const pitching *p, ev_error *err) {
    for (uint32_t a = 0; a < p->count; a++) {
        if (may_conflict(p, p->accesses[a]))
            return EV_OK;
    }
    return ev_fail(err, EV_BAD, "no access of the array can meet bank conflicts");
}

/* ---- what is refused --------------------------------------------------------------------------
 */

static bool is_swizzle(const pitching *p) {
    return p->edit->kind == IR_EDIT_SWIZZLE;
}

/* The bytes that stay together, and by which a row grows. */
static uint32_t unit_of(const pitching *p) {
    return (uint32_t)p->edit->option * p->element_bytes;
}

static bool is_power(uint32_t value) {
    return value != 0 && (value & (value - 1)) == 0;
}

static uint32_t rows_of(const pitching *p) {
    return (p->bytes + p->pitch - 1) / p->pitch;
}

static uint32_t bytes_after(const pitching *p) {
    return rows_of(p) * (p->pitch + (is_swizzle(p) ? 0 : unit_of(p)));
}

/* An access must not be torn apart: it stays within a unit, and on its alignment. */
static ev_status check_accesses(const pitching *p, ev_error *err) {
    for (uint32_t a = 0; a < p->count; a++) {
        uint32_t bytes = bytes_of(p, p->accesses[a]);
        if (!is_power(bytes) || unit_of(p) % bytes != 0 || p->pitch % bytes != 0 ||
            LLVMGetAlignment(p->accesses[a]) < bytes)
            return ev_fail(err, EV_BAD,
                           "an access of %u bytes, aligned to %u, would be torn apart by units of "
                           "%u bytes",
                           bytes, LLVMGetAlignment(p->accesses[a]), unit_of(p));
    }
    return EV_OK;
}

static ev_status check_size(const pitching *p, ev_error *err) {
    uint64_t bytes = bytes_after(p) + ir_shared_bytes(p->s->base->module, p->array);
    if (bytes > IR_MOST_SHARED)
        return ev_fail(err, EV_BAD, "the arrays take %llu bytes of shared memory, more than %d",
                       (unsigned long long)bytes, IR_MOST_SHARED);
    return EV_OK;
}

static ev_status check(pitching *p, ev_error *err) {
    if (!p->edit->has_option || p->edit->option < 1 || p->edit->option > MOST_PAD)
        return ev_fail(err, EV_BAD, "\"option\" is not from 1 to %d", MOST_PAD);
    EV_TRY(find_array(p, err));
    EV_TRY(read_type(p, err));
    EV_TRY(list_accesses(p, p->array, DEEPEST, err));
    EV_TRY(find_pitch(p, err));
    if (is_swizzle(p) && (!is_power(p->pitch) || !is_power(unit_of(p)) || unit_of(p) >= p->pitch))
        return ev_fail(err, EV_BAD, "a row of %u bytes is no power of two of units of %u bytes",
                       p->pitch, unit_of(p));
    EV_TRY(check_accesses(p, err));
    EV_TRY(check_use(p, err));
    return check_size(p, err);
}

/* ---- the new addresses ------------------------------------------------------------------------
 */

static LLVMValueRef number(const pitching *p, int64_t value) {
    return LLVMConstInt(LLVMInt32TypeInContext(p->s->base->context), (uint64_t)value, true);
}

/* constant + the terms times their factors / `by`, as an i32. */
static LLVMValueRef write_sum(const pitching *p, const ir_affine *sum, int64_t by) {
    LLVMValueRef made = number(p, sum->constant / by);
    LLVMTypeRef type = LLVMInt32TypeInContext(p->s->base->context);
    for (uint32_t t = 0; t < sum->count; t++) {
        LLVMValueRef value = LLVMBuildIntCast2(p->builder, sum->terms[t].value, type, true, "");
        value = LLVMBuildMul(p->builder, value, number(p, sum->terms[t].factor / by), "");
        made = LLVMBuildAdd(p->builder, made, value, "");
    }
    return made;
}

/* Takes an offset apart into whole rows and the rest. */
static void take_apart(const pitching *p, const ir_affine *offset, ir_affine *rows,
                       ir_affine *rest) {
    int64_t pitch = p->pitch, left = offset->constant % pitch;
    left += left < 0 ? pitch : 0;
    *rows = (ir_affine){.constant = offset->constant - left};
    *rest = (ir_affine){.constant = left};
    for (uint32_t t = 0; t < offset->count; t++) {
        ir_affine *to = offset->terms[t].factor % pitch == 0 ? rows : rest;
        to->terms[to->count++] = offset->terms[t];
    }
}

/* Whether the rest of an address stays within one row. */
static bool is_within_row(const pitching *p, const ir_affine *rest, uint32_t place) {
    int64_t least = rest->constant, most = rest->constant, low = 0, high = 0;
    for (uint32_t t = 0; t < rest->count; t++) {
        int64_t factor = rest->terms[t].factor;
        ir_range r;
        if (!ir_range_of(&p->ranges, rest->terms[t].value, place, &r) ||
            __builtin_mul_overflow(factor, factor > 0 ? r.least : r.most, &low) ||
            __builtin_mul_overflow(factor, factor > 0 ? r.most : r.least, &high) ||
            __builtin_add_overflow(least, low, &least) || __builtin_add_overflow(most, high, &most))
            return false;
    }
    return least >= 0 && most < p->pitch;
}

/* Writes where an access finds its element, in bytes. */
static LLVMValueRef write_offset(const pitching *p, LLVMValueRef access) {
    uint32_t place = p->flow.home[ir_flow_insn(&p->flow, access)];
    ir_affine offset = offset_of(p, access), rows, rest;
    take_apart(p, &offset, &rows, &rest);
    LLVMValueRef at = write_sum(p, &offset, 1);
    LLVMValueRef row = is_within_row(p, &rest, place)
                           ? write_sum(p, &rows, p->pitch)
                           : LLVMBuildUDiv(p->builder, at, number(p, p->pitch), "");
    LLVMValueRef unit = number(p, unit_of(p));
    if (!is_swizzle(p))
        return LLVMBuildAdd(p->builder, at, LLVMBuildMul(p->builder, row, unit, ""), "");
    LLVMValueRef units = number(p, p->pitch / unit_of(p) - 1);
    row = LLVMBuildAnd(p->builder, row, units, "");
    return LLVMBuildXor(p->builder, at, LLVMBuildMul(p->builder, row, unit, ""), "");
}

static void write_access(const pitching *p, LLVMValueRef access) {
    LLVMTypeRef byte = LLVMInt8TypeInContext(p->s->base->context);
    LLVMPositionBuilderBefore(p->builder, access);
    LLVMSetCurrentDebugLocation2(p->builder, LLVMInstructionGetDebugLoc(access));
    LLVMValueRef offset = write_offset(p, access);
    LLVMValueRef address = LLVMBuildGEP2(p->builder, byte, p->made, &offset, 1, "");
    uint32_t bytes = bytes_of(p, access);
    LLVMSetOperand(access, LLVMIsAStoreInst(access) ? 1 : 0, address);
    if (LLVMGetAlignment(access) > bytes)
        LLVMSetAlignment(access, bytes);
}

/* A shared array with a type of its own; the builders of LLVM put it last. */
static LLVMValueRef make_array(const pitching *p, LLVMTypeRef type, LLVMValueRef like) {
    LLVMValueRef made =
        LLVMAddGlobalInAddressSpace(p->s->base->module, type, "evoke_shared", IR_SHARED_SPACE);
    LLVMSetInitializer(made, LLVMGetUndef(type));
    LLVMSetLinkage(made, LLVMInternalLinkage);
    LLVMSetAlignment(made, LLVMGetAlignment(like));
    return made;
}

static void replace_array(LLVMValueRef old, LLVMValueRef by) {
    LLVMReplaceAllUsesWith(old, by);
    LLVMDeleteGlobal(old);
}

/* Makes the new array, and puts those that stood behind the old one behind it again, so that an
 * anchor names the same array before and after. */
static void make_arrays(pitching *p) {
    uint32_t row = p->pitch + (is_swizzle(p) ? 0 : unit_of(p));
    LLVMTypeRef type = LLVMArrayType2(p->element, row / p->element_bytes);
    LLVMValueRef last = LLVMGetLastGlobal(p->s->base->module), g = p->array;
    p->made = make_array(p, LLVMArrayType2(type, rows_of(p)), p->array);
    while (g != last) {
        LLVMValueRef behind = LLVMGetNextGlobal(g);
        bool is_last = behind == last;
        if (LLVMGetPointerAddressSpace(LLVMTypeOf(behind)) == IR_SHARED_SPACE &&
            !LLVMIsDeclaration(behind))
            replace_array(behind, make_array(p, LLVMGlobalGetValueType(behind), behind));
        else
            g = behind;
        if (is_last)
            return;
    }
}

static ev_status pitch(pitching *p, ev_error *err) {
    EV_TRY(ir_flow_make(p->s->function, p->s->arena, &p->flow, err));
    p->ranges = (ir_ranges){&p->flow, p->s->base->block};
    p->layout = LLVMGetModuleDataLayout(p->s->base->module);
    EV_TRY(check(p, err));
    make_arrays(p);
    for (uint32_t a = 0; a < p->count; a++)
        write_access(p, p->accesses[a]);
    replace_array(p->array, p->made); /* what is left of its addresses has no use */
    return EV_OK;
}

ev_status ir_structure_pitch(ir_structure *s, const ir_edit *edit, ev_error *err) {
    pitching p = {.s = s, .edit = edit};
    p.builder = LLVMCreateBuilderInContext(s->base->context);
    ev_status status = pitch(&p, err);
    LLVMDisposeBuilder(p.builder);
    return status;
}
