/* Delinearize: threads of a flat index stand as rows and columns.
 *
 * A kernel that computes `at = block * size + thread`, then `at % w` and `at / w`, gets the columns
 * along the axis of `at` and the rows along an axis that the launch does not use; w is an argument,
 * a number, or computed from arguments by operations that the launch plan computes alike, as
 * (width + 1) / 2.
 * The remainder is the column and the quotient the row, so the divisions go; what the kernel
 * computes from `at` itself takes row * w + column. `at / (w * h)` is row / h. A second edit may
 * divide the rows. A test of `at` against w * n is one of row against n.
 *
 * Threads behind the end of a row do nothing. Threads behind the old grid do nothing either: the
 * kernel's own test of `at` keeps them away if there is one at its beginning, else a new one. */
#include "ir/structure/flat_internal.h"

#include "ir/structure/analyses/vary_internal.h"

#include <stdint.h>
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
    LLVMValueRef divisor; /* an argument, a number, or what the first block computes from them */
    LLVMValueRef column, row;
    uint32_t row_tests, other_tests; /* of the flat index: those that became tests of the row */
} delinearizing;

static const char axes[] = "xyz";

/* ---- what is found ----------------------------------------------------------------------------
 */

/* The factors of a product that does not wrap around; one that may is a factor itself. False: there
 * are too many. */
static bool list_factors(LLVMValueRef product, LLVMValueRef out[MOST_FACTORS], uint32_t *count) {
    LLVMValueRef inner = ir_flat_without_casts(product);
    if (LLVMIsAInstruction(inner) && LLVMGetInstructionOpcode(inner) == LLVMMul &&
        (LLVMGetNSW(inner) || LLVMGetNUW(inner)))
        return list_factors(LLVMGetOperand(inner, 0), out, count) &&
               list_factors(LLVMGetOperand(inner, 1), out, count);
    if (*count == MOST_FACTORS)
        return false;
    out[(*count)++] = inner;
    return true;
}

/* The factors by which an instruction divides the flat index. False: it does not divide it. */
static bool divides_by(LLVMValueRef insn, uint32_t axis, uint32_t size,
                       LLVMValueRef factors[MOST_FACTORS], uint32_t *count) {
    LLVMOpcode op = LLVMGetInstructionOpcode(insn);
    bool is_division = op == LLVMUDiv || op == LLVMSDiv || op == LLVMURem || op == LLVMSRem;
    *count = 0;
    return is_division && ir_flat_is(LLVMGetOperand(insn, 0), axis, size) &&
           list_factors(LLVMGetOperand(insn, 1), factors, count);
}

/* Whether an instruction divides the flat index by a product with the divisor. The other factors
 * come in others[*count]. */
static bool divides(const delinearizing *d, LLVMValueRef insn, LLVMValueRef others[MOST_FACTORS],
                    uint32_t *count) {
    if (!divides_by(insn, d->axis, d->size, others, count))
        return false;
    for (uint32_t i = 0; i < *count; i++) {
        if (others[i] != d->divisor)
            continue;
        others[i] = others[--*count];
        return true;
    }
    return false;
}

/* ---- divisors as the launch plan has them ------------------------------------------------------
 */

/* An expression of the launch plan that grows. */
typedef struct divisor_text {
    const ir_source *source;
    LLVMValueRef function;
    char text[IR_ANCHOR_PATH];
    size_t length;
} divisor_text;

/* False: it gets too long. */
static bool put(divisor_text *t, const char *part) {
    size_t length = strlen(part);
    if (t->length + length >= sizeof t->text)
        return false;
    memcpy(t->text + t->length, part, length + 1);
    t->length += length;
    return true;
}

/* A number that is not negative: the plan has no sign for others. */
static bool put_number(divisor_text *t, long long number) {
    char text[24];
    if (number < 0)
        return false;
    (void)snprintf(text, sizeof text, "%lld", number);
    return put(t, text);
}

/* An argument that the plan knows. */
static bool put_argument(divisor_text *t, LLVMValueRef argument) {
    for (unsigned i = 0; i < t->source->argument_count && i < LLVMCountParams(t->function); i++) {
        if (LLVMGetParam(t->function, i) == argument && t->source->arguments[i][0] != '\0')
            return put(t, t->source->arguments[i]);
    }
    return false;
}

/* Whether an operation is a sum, a difference or a product whose signed result does not wrap. */
static bool keeps_range(LLVMValueRef insn) {
    LLVMOpcode op = LLVMGetInstructionOpcode(insn);
    bool may_wrap = op == LLVMAdd || op == LLVMSub || op == LLVMMul || op == LLVMShl;
    return may_wrap && LLVMGetNSW(insn);
}

/* The sign of an operation that the plan, in 64 bits and signed, computes as the kernel does; 0: it
 * may not. A right shift rounds down where the plan's quotient is cut off, so none is taken. A
 * divisor is a number, which is never 0, as the copy in the first block runs in every thread. */
static char sign_of(LLVMValueRef insn) {
    LLVMOpcode op = LLVMGetInstructionOpcode(insn);
    LLVMValueRef second = LLVMGetNumOperands(insn) == 2 ? LLVMGetOperand(insn, 1) : NULL;
    bool by_number = second && LLVMIsAConstantInt(second);
    long long number = by_number ? LLVMConstIntGetSExtValue(second) : 0;
    if (op == LLVMSDiv)
        return by_number && number > 0 ? '/' : 0;
    if (!keeps_range(insn) || (op == LLVMShl && (!by_number || number < 0 || number > 30)))
        return 0;
    if (op == LLVMAdd)
        return '+';
    return op == LLVMSub ? '-' : '*';
}

static bool put_value(divisor_text *t, LLVMValueRef value, bool is_nested);

/* The sign and the second operand: "x + -1" reads "x - 1". */
static bool put_second(divisor_text *t, LLVMValueRef insn, char sign) {
    LLVMValueRef second = LLVMGetOperand(insn, 1);
    bool is_number = LLVMIsAConstantInt(second);
    long long number = is_number ? LLVMConstIntGetSExtValue(second) : 0;
    if (LLVMGetInstructionOpcode(insn) == LLVMShl)
        number = 1LL << number;
    if (sign == '+' && number < 0 && number > INT32_MIN) {
        sign = '-';
        number = -number;
    }
    const char between[] = {' ', sign, ' ', '\0'};
    return put(t, between) && (is_number ? put_number(t, number) : put_value(t, second, true));
}

/* A value as an expression of the launch plan, which is the value wherever the kernel's own
 * operations are defined. False: the plan cannot compute it. */
static bool put_value(divisor_text *t, LLVMValueRef value, bool is_nested) {
    while (LLVMIsASExtInst(value))
        value = LLVMGetOperand(value, 0);
    if (LLVMIsAArgument(value))
        return put_argument(t, value);
    if (LLVMIsAConstantInt(value))
        return put_number(t, LLVMConstIntGetSExtValue(value));
    char sign = LLVMIsAInstruction(value) ? sign_of(value) : 0;
    return sign != 0 && (!is_nested || put(t, "(")) &&
           put_value(t, LLVMGetOperand(value, 0), true) && put_second(t, value, sign) &&
           (!is_nested || put(t, ")"));
}

/* Whether a value can be a divisor; its expression comes in *t. */
static bool print_divisor(const ir_flow *flow, const ir_source *source, LLVMValueRef value,
                          divisor_text *t) {
    *t = (divisor_text){.source = source, .function = flow->function};
    if (LLVMIsAConstantInt(value) && LLVMConstIntGetSExtValue(value) < 2)
        return false;
    return put_value(t, value, false);
}

/* Finds the next divisor of the index, from instruction *insn and its factor *factor on, which are
 * moved behind it. NULL: there is none. */
static LLVMValueRef next_divisor(const ir_flow *flow, const ir_source *source, uint32_t axis,
                                 uint32_t size, uint32_t *insn, uint32_t *factor,
                                 divisor_text *text) {
    LLVMValueRef factors[MOST_FACTORS];
    uint32_t count = 0;
    for (; *insn < flow->insn_count; (*insn)++, *factor = 0) {
        if (!divides_by(flow->insns[*insn], axis, size, factors, &count))
            continue;
        while (*factor < count) {
            LLVMValueRef found = factors[(*factor)++];
            if (print_divisor(flow, source, found, text))
                return found;
        }
    }
    return NULL;
}

static uint32_t add_text(const char *text, uint32_t count, char out[IR_DIVISORS][IR_ANCHOR_PATH]) {
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(out[i], text) == 0)
            return count;
    }
    if (count < IR_DIVISORS)
        (void)snprintf(out[count++], IR_ANCHOR_PATH, "%s", text);
    return count;
}

uint32_t ir_structure_divisors(const ir_flow *flow, const ir_source *source, uint32_t axis,
                               uint32_t size, char out[IR_DIVISORS][IR_ANCHOR_PATH]) {
    divisor_text text;
    uint32_t count = 0;
    unsigned arguments = LLVMCountParams(flow->function);
    for (unsigned i = 0; i <= arguments; i++) { /* one turn more, for those that are computed */
        uint32_t insn = 0, factor = 0;
        for (LLVMValueRef found;
             (found = next_divisor(flow, source, axis, size, &insn, &factor, &text));) {
            bool is_due =
                i < arguments ? found == LLVMGetParam(flow->function, i) : !LLVMIsAArgument(found);
            count = is_due ? add_text(text.text, count, out) : count;
        }
    }
    return count;
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
    bool *flat = EV_NEW_ARRAY(d->s->arena, bool, d->flow.insn_count + 1);
    if (!flat)
        return ev_fail_memory(err, d->flow.insn_count);
    /* as the kernel has them: what is written below may look like a flat index of another block */
    for (uint32_t i = 0; i < d->flow.insn_count; i++)
        flat[i] = ir_flat_is(d->flow.insns[i], d->axis, d->size);
    for (uint32_t i = 0; i < d->flow.insn_count; i++) {
        LLVMValueRef insn = d->flow.insns[i];
        if (LLVMIsAICmpInst(insn))
            replace_test(d, i);
        if (!divides(d, insn, others, &count))
            continue;
        LLVMPositionBuilderBefore(d->builder, insn);
        LLVMReplaceAllUsesWith(insn, divided(d, insn, others, count));
    }
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

/* The divisor that the edit names. */
static ev_status find_divisor(delinearizing *d, const ir_edit *edit, ev_error *err) {
    uint32_t insn = 0, factor = 0;
    divisor_text text;
    LLVMValueRef found;
    while (
        (found = next_divisor(&d->flow, d->s->source, d->axis, d->size, &insn, &factor, &text))) {
        d->divisor = found;
        if (strcmp(text.text, edit->anchor.path) == 0)
            return EV_OK;
    }
    ev_str known = EV_STR_EMPTY;
    char divisors[IR_DIVISORS][IR_ANCHOR_PATH];
    uint32_t count = ir_structure_divisors(&d->flow, d->s->source, d->axis, d->size, divisors);
    for (uint32_t i = 0; i < count; i++)
        ev_str_printf(&known, "%s%s", i == 0 ? ", but by " : ", ", divisors[i]);
    ev_status status = ev_fail(err, EV_BAD, "the kernel does not divide its index along %c by %s%s",
                               axes[d->axis], edit->anchor.path, ev_str_text(&known));
    ev_str_free(&known);
    return status;
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

/* Copies what is computed from arguments alone to where the builder stands, without the flags: the
 * copy also runs where a condition keeps the kernel from what they promise. */
static LLVMValueRef copy_here(const delinearizing *d, LLVMValueRef value) {
    if (!LLVMIsAInstruction(value))
        return value;
    LLVMValueRef copy = LLVMInstructionClone(value);
    for (unsigned i = 0; i < (unsigned)LLVMGetNumOperands(copy); i++)
        LLVMSetOperand(copy, i, copy_here(d, LLVMGetOperand(value, i)));
    if (keeps_range(copy)) {
        LLVMSetNSW(copy, false);
        LLVMSetNUW(copy, false);
    } else if (LLVMGetInstructionOpcode(copy) == LLVMSDiv) {
        LLVMSetExact(copy, false);
    }
    LLVMInsertIntoBuilder(d->builder, copy);
    return copy;
}

/* Computes the divisor in the first block, once for the whole kernel. */
static void move_divisor(delinearizing *d) {
    divisor_text text, other;
    if (!LLVMIsAInstruction(d->divisor) ||
        !print_divisor(&d->flow, d->s->source, d->divisor, &text))
        return;
    d->divisor = copy_here(d, d->divisor);
    for (uint32_t i = 0; i < d->flow.insn_count; i++) {
        LLVMValueRef insn = d->flow.insns[i];
        if (LLVMTypeOf(insn) == LLVMTypeOf(d->divisor) &&
            print_divisor(&d->flow, d->s->source, insn, &other) &&
            strcmp(text.text, other.text) == 0)
            LLVMReplaceAllUsesWith(insn, d->divisor);
    }
}

/* Writes a new first block, which finds the thread's place or ends. */
static ev_status write_entry(delinearizing *d, ev_error *err) {
    bool bounded = ir_flat_keeps_others_away(d->s, &d->flow, d->axis, d->size);
    ir_entry entry = ir_flat_open(d->s, &d->flow, d->builder);
    move_divisor(d);
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
