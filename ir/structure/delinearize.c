/* Delinearize: threads of a flat index stand as rows and columns.
 *
 * A kernel that computes `at = block * size + thread`, then `at % w` and `at / w`, gets the columns
 * along the axis of `at` and the rows along an axis that the launch does not use. The remainder is
 * the column and the quotient the row, so the divisions go; what the kernel computes from `at`
 * itself takes row * w + column. `at / (w * h)` is row / h. A second edit may divide the rows. A
 * test of `at` against w * n is one of row against n.
 *
 * Threads behind the end of a row do nothing. Threads behind the old grid do nothing either: the
 * kernel's own test of `at` keeps them away if there is one at its beginning, else a new one. */
#include "ir/structure/flat_internal.h"

#include "ir/structure/analyses/vary_internal.h"

#include <stdio.h>
#include <string.h>

enum { MOST_FACTORS = 8 };

typedef struct delinearizing {
    ir_structure *s;
    ir_flow flow;
    LLVMBuilderRef builder;
    uint32_t axis, other; /* of the columns, of the rows */
    uint32_t size;        /* threads of a block along `axis` before */
    int64_t width;        /* the same afterwards */
    LLVMValueRef divisor; /* an argument */
    LLVMValueRef column, row;
    uint32_t row_tests, other_tests; /* of the flat index: those that became tests of the row */
} delinearizing;

static const char axes[] = "xyz";

/* ---- what is found ----------------------------------------------------------------------------
 */

/* The factors of a product. False: there are too many. */
static bool list_factors(LLVMValueRef product, LLVMValueRef out[MOST_FACTORS], uint32_t *count) {
    LLVMValueRef inner = ir_flat_without_casts(product);
    if (LLVMIsAInstruction(inner) && LLVMGetInstructionOpcode(inner) == LLVMMul)
        return list_factors(LLVMGetOperand(inner, 0), out, count) &&
               list_factors(LLVMGetOperand(inner, 1), out, count);
    if (*count == MOST_FACTORS)
        return false;
    out[(*count)++] = inner;
    return true;
}

/* Whether an instruction divides the flat index by a product with the divisor. The other factors
 * come in others[*count]. */
static bool divides(LLVMValueRef insn, uint32_t axis, uint32_t size, LLVMValueRef divisor,
                    LLVMValueRef others[MOST_FACTORS], uint32_t *count) {
    LLVMOpcode op = LLVMGetInstructionOpcode(insn);
    bool is_division = op == LLVMUDiv || op == LLVMSDiv || op == LLVMURem || op == LLVMSRem;
    *count = 0;
    if (!is_division || !ir_flat_is(LLVMGetOperand(insn, 0), axis, size) ||
        !list_factors(LLVMGetOperand(insn, 1), others, count))
        return false;
    for (uint32_t i = 0; i < *count; i++) {
        if (others[i] != divisor)
            continue;
        others[i] = others[--*count];
        return true;
    }
    return false;
}

bool ir_structure_delinearizes(const ir_flow *flow, uint32_t axis, uint32_t size,
                               LLVMValueRef argument) {
    LLVMValueRef others[MOST_FACTORS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < flow->insn_count; i++) {
        if (divides(flow->insns[i], axis, size, argument, others, &count))
            return true;
    }
    return false;
}

/* ---- what is written --------------------------------------------------------------------------
 */

static LLVMValueRef as(const delinearizing *d, LLVMValueRef value, LLVMTypeRef type) {
    return LLVMBuildIntCast2(d->builder, value, type, false, "");
}

/* row * divisor + column */
static LLVMValueRef flat_of(const delinearizing *d, LLVMTypeRef type) {
    LLVMValueRef first = LLVMBuildMul(d->builder, as(d, d->row, type), as(d, d->divisor, type), "");
    return LLVMBuildAdd(d->builder, first, as(d, d->column, type), "");
}

/* The same for what uses the flat index. Where the first block compares the row with the rows of a
 * product that does not wrap, and nothing else is a test of the flat index, it does not wrap either
 * in a thread that uses it. The flags let its parts be compared with those of other addresses. */
static LLVMValueRef write_flat(const delinearizing *d, LLVMTypeRef type) {
    LLVMValueRef flat = flat_of(d, type);
    if (d->row_tests == 0 || d->other_tests > 0 || !LLVMIsAInstruction(flat))
        return flat;
    LLVMSetNSW(flat, true);
    if (LLVMIsAInstruction(LLVMGetOperand(flat, 0)))
        LLVMSetNSW(LLVMGetOperand(flat, 0), true);
    return flat;
}

/* The quotient or remainder, by row and column; `others`: the factors beside the divisor. */
static LLVMValueRef divided(const delinearizing *d, LLVMValueRef insn, LLVMValueRef *others,
                            uint32_t count) {
    LLVMOpcode op = LLVMGetInstructionOpcode(insn);
    LLVMTypeRef type = LLVMTypeOf(insn);
    bool rest = op == LLVMURem || op == LLVMSRem;
    LLVMValueRef row = as(d, d->row, type), column = as(d, d->column, type), by = NULL;
    for (uint32_t i = 0; i < count; i++) {
        bool is_signed = op == LLVMSDiv || op == LLVMSRem;
        LLVMValueRef factor = LLVMBuildIntCast2(d->builder, others[i], type, is_signed, "");
        by = by ? LLVMBuildMul(d->builder, by, factor, "") : factor;
    }
    if (!by)
        return rest ? column : row;
    LLVMValueRef of_rows = LLVMBuildBinOp(d->builder, op, row, by, "");
    if (!rest)
        return of_rows;
    LLVMValueRef first = LLVMBuildMul(d->builder, of_rows, as(d, d->divisor, type), "");
    return LLVMBuildAdd(d->builder, first, column, "");
}

/* A product over the divisor, which is one of its factors and at least 1; NULL: it is none, or the
 * product may wrap. */
static LLVMValueRef over_divisor(const delinearizing *d, LLVMValueRef product, bool is_signed) {
    if (product == d->divisor)
        return LLVMConstInt(LLVMTypeOf(product), 1, false);
    if (LLVMIsASExtInst(product) || LLVMIsAZExtInst(product)) {
        bool keeps_sign = LLVMIsASExtInst(product);
        LLVMValueRef narrow = over_divisor(d, LLVMGetOperand(product, 0), keeps_sign);
        return narrow ? LLVMBuildIntCast2(d->builder, narrow, LLVMTypeOf(product), keeps_sign, "")
                      : NULL;
    }
    if (!LLVMIsAInstruction(product) || LLVMGetInstructionOpcode(product) != LLVMMul ||
        !(is_signed ? LLVMGetNSW(product) : LLVMGetNUW(product)))
        return NULL;
    for (unsigned k = 0; k < 2; k++) {
        LLVMValueRef part = over_divisor(d, LLVMGetOperand(product, k), is_signed);
        if (!part)
            continue;
        LLVMValueRef all = LLVMBuildMul(d->builder, part, LLVMGetOperand(product, 1 - k), "");
        if (LLVMIsAInstruction(all) && is_signed)
            LLVMSetNSW(all, true);
        else if (LLVMIsAInstruction(all))
            LLVMSetNUW(all, true);
        return all;
    }
    return NULL;
}

/* Writes a test of the flat index against a product with the divisor as one of the row. */
static void replace_test(delinearizing *d, uint32_t insn) {
    LLVMValueRef test = d->flow.insns[insn];
    LLVMIntPredicate p = LLVMGetICmpPredicate(test);
    bool is_signed = p == LLVMIntSLT || p == LLVMIntSGE || p == LLVMIntSGT || p == LLVMIntSLE;
    bool below = p == LLVMIntSLT || p == LLVMIntSGE || p == LLVMIntULT || p == LLVMIntUGE;
    unsigned at = below ? 0 : 1; /* "at < product", or "product > at" */
    bool of_flat = ir_flat_is(LLVMGetOperand(test, 0), d->axis, d->size) ||
                   ir_flat_is(LLVMGetOperand(test, 1), d->axis, d->size);
    if (!of_flat)
        return;
    d->other_tests++;
    if (p == LLVMIntEQ || p == LLVMIntNE || !ir_flat_is(LLVMGetOperand(test, at), d->axis, d->size))
        return;
    LLVMPositionBuilderBefore(d->builder, test);
    LLVMValueRef rows = over_divisor(d, LLVMGetOperand(test, 1 - at), is_signed);
    if (!rows)
        return;
    d->other_tests -= is_signed;
    d->row_tests += is_signed && d->flow.home[insn] == 0;
    LLVMSetOperand(test, at, as(d, d->row, LLVMTypeOf(rows)));
    LLVMSetOperand(test, 1 - at, rows);
}

static ev_status replace(delinearizing *d, ev_error *err) {
    LLVMValueRef others[MOST_FACTORS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < d->flow.insn_count; i++) {
        LLVMValueRef insn = d->flow.insns[i];
        if (LLVMIsAICmpInst(insn))
            replace_test(d, i);
        if (!divides(insn, d->axis, d->size, d->divisor, others, &count))
            continue;
        LLVMPositionBuilderBefore(d->builder, insn);
        LLVMReplaceAllUsesWith(insn, divided(d, insn, others, count));
    }
    bool *flat = EV_NEW_ARRAY(d->s->arena, bool, d->flow.insn_count + 1);
    if (!flat)
        return ev_fail_memory(err, d->flow.insn_count);
    for (uint32_t i = 0; i < d->flow.insn_count; i++)
        flat[i] = ir_flat_is(d->flow.insns[i], d->axis, d->size);
    for (uint32_t i = 0; i < d->flow.insn_count; i++) {
        LLVMValueRef insn = d->flow.insns[i];
        if (!flat[i])
            continue;
        LLVMPositionBuilderBefore(d->builder, insn);
        LLVMReplaceAllUsesWith(insn, write_flat(d, LLVMTypeOf(insn)));
    }
    return EV_OK;
}

/* Gives reads of the axis that the launch did not use what they were. */
static void replace_unused(const delinearizing *d) {
    static const char *const names[] = {"tid", "ctaid", "ntid", "nctaid"};
    for (uint32_t i = 0; i < d->flow.insn_count; i++) {
        LLVMValueRef insn = d->flow.insns[i];
        for (uint32_t n = 0; n < 4; n++) {
            if (LLVMIsACallInst(insn) && ir_flat_reads(insn, names[n], d->other))
                LLVMReplaceAllUsesWith(insn, LLVMConstInt(LLVMTypeOf(insn), n >= 2, false));
        }
    }
}

/* ---- what is refused --------------------------------------------------------------------------
 */

/* Whether nothing that counts uses a value. */
static bool is_dead(LLVMValueRef value) {
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (!LLVMIsAInstruction(user) || LLVMIsAPHINode(user) || LLVMIsATerminatorInst(user) ||
            ir_deed_of(user) != IR_DEED_PURE || !is_dead(user))
            return false;
    }
    return true;
}

/* Called when the flat index is replaced: the axis' registers must have no other use. */
static ev_status check_uses(const delinearizing *d, ev_error *err) {
    static const char *const names[] = {"tid", "ctaid", "ntid", "nctaid"};
    for (uint32_t i = 0; i < d->flow.insn_count; i++) {
        LLVMValueRef insn = d->flow.insns[i];
        for (uint32_t n = 0; n < 4; n++) {
            if (LLVMIsACallInst(insn) && ir_flat_reads(insn, names[n], d->axis) && !is_dead(insn))
                return ev_fail(err, EV_BAD,
                               "the kernel uses its %s.%c beside the index that is divided",
                               names[n], axes[d->axis]);
        }
    }
    return EV_OK;
}

static ev_status check_launch(delinearizing *d, const ir_edit *edit, ev_error *err) {
    const uint32_t *block = d->s->base->block;
    d->axis = edit->anchor.number;
    d->size = block[d->axis];
    d->width = edit->has_option ? edit->option : 0;
    const launch_rule *rule = ir_structure_rule(d->s);
    if (!rule)
        return ev_fail(err, EV_BAD, "the launch is not known, or there are several that differ");
    d->other = ir_genome_unused_axis(rule, d->axis);
    if (d->other == IR_AXES)
        return ev_fail(err, EV_BAD, "the launch uses all axes behind %c", axes[d->axis]);
    if (d->width < 1 || d->size == 0 || d->size % d->width != 0 || block[d->other] != 1)
        return ev_fail(err, EV_BAD,
                       "the threads of a block along %c are not known, or no multiple of %lld",
                       axes[d->axis], (long long)d->width);
    return EV_OK;
}

/* The kernel's argument that the edit names. */
static ev_status find_divisor(delinearizing *d, const ir_edit *edit, ev_error *err) {
    const ir_source *source = d->s->source;
    for (size_t i = 0; i < source->argument_count; i++) {
        if (strcmp(source->arguments[i], edit->anchor.path) != 0 ||
            i >= LLVMCountParams(d->s->function))
            continue;
        d->divisor = LLVMGetParam(d->s->function, (unsigned)i);
        if (ir_structure_delinearizes(&d->flow, d->axis, d->size, d->divisor))
            return EV_OK;
        return ev_fail(err, EV_BAD, "the kernel does not divide its index along %c by %s",
                       axes[d->axis], edit->anchor.path);
    }
    return ev_fail(err, EV_BAD, "the kernel has no argument %s", edit->anchor.path);
}

/* ---- the whole --------------------------------------------------------------------------------
 */

/* Whether the thread has a place: its column is one of a row, and the old grid had it. */
static LLVMValueRef write_test(const delinearizing *d, bool is_bounded_already) {
    LLVMTypeRef wide = LLVMInt64TypeInContext(d->s->base->context);
    LLVMTypeRef type = LLVMTypeOf(d->divisor);
    LLVMValueRef inside =
        LLVMBuildICmp(d->builder, LLVMIntULT, as(d, d->column, type), d->divisor, "");
    if (is_bounded_already)
        return inside;
    LLVMValueRef threads = ir_flat_extent(d->s, d->builder, d->axis);
    if (!threads)
        return NULL;
    LLVMValueRef there = LLVMBuildICmp(d->builder, LLVMIntULT, flat_of(d, wide), threads, "");
    return LLVMBuildAnd(d->builder, inside, there, "");
}

/* Writes a new first block, which finds the thread's place or ends. */
static ev_status write_entry(delinearizing *d, ev_error *err) {
    bool bounded = ir_flat_is_bounded(&d->flow, d->axis, d->size);
    ir_entry entry = ir_flat_open(d->s, &d->flow, d->builder);
    /* No launch has so many threads along y or z that the number wraps, nor along x if the columns
     * are those of a row. */
    LLVMTypeRef type = LLVMInt32TypeInContext(d->s->base->context);
    d->column = ir_flat_write(d->s, d->builder, d->axis, d->width, type, false);
    d->row = ir_flat_write(d->s, d->builder, d->other, (int64_t)d->size / d->width, type, false);
    LLVMValueRef test = write_test(d, bounded);
    if (!test)
        return ev_fail(err, EV_BAD, "no argument tells the size of the grid along %c",
                       axes[d->axis]);
    LLVMBuildCondBr(d->builder, test, entry.body, entry.out);
    return EV_OK;
}

static ev_status delinearize(delinearizing *d, const ir_edit *edit, ev_error *err) {
    if (edit->anchor.kind != IR_ANCHOR_DIVISOR)
        return ev_fail(err, EV_BAD, "\"anchor\" is no axis and divisor, like \"x by width\"");
    EV_TRY(check_launch(d, edit, err));
    EV_TRY(ir_flow_make(d->s->function, d->s->arena, &d->flow, err));
    EV_TRY(find_divisor(d, edit, err));
    EV_TRY(ir_flat_check_alone(d->s, &d->flow, err));
    replace_unused(d);
    EV_TRY(write_entry(d, err));
    EV_TRY(replace(d, err));
    EV_TRY(check_uses(d, err));
    d->s->base->block[d->axis] = (uint32_t)d->width;
    d->s->base->block[d->other] = d->size / (uint32_t)d->width;
    return EV_OK;
}

ev_status ir_structure_delinearize(ir_structure *s, const ir_edit *edit, ev_error *err) {
    delinearizing d = {.s = s};
    d.builder = LLVMCreateBuilderInContext(s->base->context);
    LLVMSetCurrentDebugLocation2(d.builder, NULL);
    ev_status status = delinearize(&d, edit, err);
    LLVMDisposeBuilder(d.builder);
    return status;
}
