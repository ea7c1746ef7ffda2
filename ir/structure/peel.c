/* Peel: blocks or threads in the interior run a copy of the kernel without tests of coordinates.
 *
 * A bound is a comparison of a sum of coordinates with a value that the block shares. The sum is
 * the same expression in all threads and turns but for its ranged terms (thread index, turn of a
 * loop with constant trips), so it lies between two corners. A test at the entry compares the
 * corner that is nearer to the bound, and that the corners are in order, so that no sum between
 * them wraps. Where the test holds for all bounds, each comparison has one known value in the copy
 * (version_internal.h). The corners are written anew in arithmetic that wraps, so nothing is
 * assumed of threads that never made the comparison.
 *
 * Where threads of a block do not work together, and no bound stands in a loop, each thread chooses
 * its copy by the comparisons themselves. So one thread at the edge of a block, such as one whose
 * members do not all have work, does not send the whole block to the slower copy. With the form
 * "members", bounds in loops stay as they are, and each thread chooses by the others. */
#include "ir/structure/analyses/affine_internal.h"
#include "ir/structure/analyses/range_internal.h"
#include "ir/structure/analyses/vary_internal.h"
#include "ir/structure/version_internal.h"

#include <string.h>

enum { DEEPEST = 24, MOST_BOUNDS = 64, FEWEST_BOUNDS = 3, MOST_PRODUCTS = 8 };

/* A term of a sum with a uniform factor that is no constant, such as an argument. */
typedef struct product {
    LLVMValueRef value; /* uniform; NULL: one that has a range, or is 1 */
    LLVMValueRef by;    /* uniform */
    int64_t factor;
    ir_range range; /* of the value that has one, times `factor` */
} product;

/* A comparison, with the side of the coordinates on the left. */
typedef struct bound {
    uint32_t insn;
    bool holds; /* the comparison's value in the interior */
    ir_affine sum;
    ir_range span; /* of its ranged terms */
    product products[MOST_PRODUCTS];
    uint32_t product_count;
    LLVMValueRef with;
    LLVMIntPredicate inside; /* `sum inside with` in the interior */
    bool is_upper;           /* the greatest sum is the nearest */
} bound;

typedef struct peeling {
    ir_structure *s;
    ir_version version;
    ir_ranges ranges;
    LLVMValueRef *made; /* by instruction: its value before the copies; NULL: not written yet */
    bound *bounds;
    uint32_t count;
    uint32_t in_loops; /* of the bounds */
    bool by_thread;    /* each thread chooses its copy */
    bool of_members;   /* bounds in loops stay */
} peeling;

/* ---- values that the block shares -------------------------------------------------------------
 */

static bool is_shared_register(LLVMValueRef value) {
    static const char *const names[] = {"ctaid.x",  "ctaid.y", "ctaid.z", "nctaid.x", "nctaid.y",
                                        "nctaid.z", "ntid.x",  "ntid.y",  "ntid.z"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (ir_reads_register(value, names[i]))
            return true;
    }
    return false;
}

static bool is_place(LLVMValueRef value) {
    return ir_reads_register(value, "tid.x") || ir_reads_register(value, "tid.y") ||
           ir_reads_register(value, "tid.z");
}

/* Whether an operation gives a number whatever its operands are, once its flags are dropped. */
static bool is_total(LLVMValueRef value) {
    static const char *const calls[] = {"llvm.smax.", "llvm.smin.", "llvm.umax.", "llvm.umin."};
    LLVMOpcode op = LLVMGetInstructionOpcode(value);
    if (op == LLVMShl || op == LLVMLShr || op == LLVMAShr)
        return LLVMIsAConstantInt(LLVMGetOperand(value, 1)) != NULL;
    bool is_total_call = op != LLVMCall;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        is_total_call |= strncmp(ir_call_name(value), calls[i], strlen(calls[i])) == 0;
    return is_total_call;
}

/* Whether an instruction may run before the copies. One that divides must run in any case. */
static bool may_run_early(const peeling *p, uint32_t insn) {
    LLVMValueRef value = p->version.flow.insns[insn];
    if (LLVMIsAPHINode(value) || LLVMIsATerminatorInst(value) || LLVMIsAAllocaInst(value) ||
        LLVMGetTypeKind(LLVMTypeOf(value)) != LLVMIntegerTypeKind ||
        ir_deed_of(value) != IR_DEED_PURE || !is_total(value))
        return false;
    return !ir_divides(value) || p->version.flow.home[insn] == p->version.root;
}

/* Whether all who choose a copy together (the threads of a block, or one thread) compute the same,
 * from what is known at the kernel's beginning. */
static bool is_uniform(const peeling *p, LLVMValueRef value, unsigned depth) {
    uint32_t insn = ir_flow_insn(&p->version.flow, value);
    if (insn == IR_NONE)
        return LLVMIsAArgument(value) || LLVMIsAConstantInt(value);
    if (LLVMIsACallInst(value) && strncmp(ir_call_name(value), "llvm.nvvm.", 10) == 0)
        return is_shared_register(value) || (p->by_thread && is_place(value));
    if (depth == 0 || !may_run_early(p, insn))
        return false;
    int count = LLVMGetNumOperands(value) - (LLVMIsACallInst(value) ? 1 : 0);
    for (int k = 0; k < count; k++) {
        if (!is_uniform(p, LLVMGetOperand(value, (unsigned)k), depth - 1))
            return false;
    }
    return true;
}

/* A flag that the value's user may rely on where the instruction stood, and not here. */
static void drop_flags(LLVMValueRef value) {
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMShl:
    case LLVMTrunc:
        LLVMSetNSW(value, false);
        LLVMSetNUW(value, false);
        break;
    case LLVMUDiv:
    case LLVMSDiv:
    case LLVMLShr:
    case LLVMAShr:
        LLVMSetExact(value, false);
        break;
    case LLVMZExt:
        LLVMSetNNeg(value, false);
        break;
    case LLVMOr:
        LLVMSetIsDisjoint(value, false);
        break;
    default:
        break;
    }
}

/* Writes a uniform value before the copies. */
static LLVMValueRef write_uniform(peeling *p, LLVMValueRef value) {
    uint32_t insn = ir_flow_insn(&p->version.flow, value);
    if (insn == IR_NONE)
        return value;
    if (p->made[insn])
        return p->made[insn];
    LLVMValueRef clone = LLVMInstructionClone(value);
    int count = LLVMGetNumOperands(value) - (LLVMIsACallInst(value) ? 1 : 0);
    for (int k = 0; k < count; k++)
        LLVMSetOperand(clone, (unsigned)k, write_uniform(p, LLVMGetOperand(value, (unsigned)k)));
    drop_flags(clone);
    LLVMInsertIntoBuilder(p->version.builder, clone);
    p->made[insn] = clone;
    return clone;
}

/* Whether a uniform value depends on more than arguments: on the block. */
static bool reads_block(const peeling *p, LLVMValueRef value) {
    if (ir_flow_insn(&p->version.flow, value) == IR_NONE)
        return false;
    if (LLVMIsACallInst(value) && strncmp(ir_call_name(value), "llvm.nvvm.", 10) == 0)
        return strstr(ir_call_name(value), ".ctaid.") != NULL;
    for (int k = 0; k < LLVMGetNumOperands(value); k++) {
        if (reads_block(p, LLVMGetOperand(value, (unsigned)k)))
            return true;
    }
    return false;
}

/* ---- sums -------------------------------------------------------------------------------------
 */

/* The bits at a value's end that a shift made zero. */
static int64_t zeros_of(LLVMValueRef value) {
    bool is_shift = LLVMIsABinaryOperator(value) && LLVMGetInstructionOpcode(value) == LLVMShl;
    int64_t by = is_shift ? ir_right_of(value) : 0;
    return by < 31 ? (INT64_C(1) << by) - 1 : 0;
}

/* Whether a value is the rest of another, modulo *of. */
static bool is_rest(LLVMValueRef value, LLVMValueRef *whole, int64_t *of) {
    if (!LLVMIsABinaryOperator(value) || ir_right_of(value) == 0)
        return false;
    int64_t right = ir_right_of(value);
    *whole = LLVMGetOperand(value, 0);
    if (LLVMGetInstructionOpcode(value) == LLVMURem) {
        *of = right;
        return true;
    }
    *of = (right | zeros_of(*whole)) + 1;
    return LLVMGetInstructionOpcode(value) == LLVMAnd && (*of & (*of - 1)) == 0;
}

/* Whether a value times *by is another one without its rest modulo `of`. */
static bool is_without_rest(LLVMValueRef value, LLVMValueRef whole, int64_t of, int64_t *by) {
    if (!LLVMIsABinaryOperator(value) || LLVMGetOperand(value, 0) != whole ||
        !LLVMIsAConstantInt(LLVMGetOperand(value, 1)))
        return false;
    int64_t right = LLVMConstIntGetSExtValue(LLVMGetOperand(value, 1));
    LLVMOpcode op = LLVMGetInstructionOpcode(value);
    *by = op == LLVMAnd ? 1 : of;
    return (op == LLVMAnd && right == -of) || (op == LLVMUDiv && right == of) ||
           (op == LLVMLShr && right >= 0 && right < 31 && INT64_C(1) << right == of);
}

/* Puts a quotient and a rest together, as the prologue of `coarsen` makes them of a place in a row
 * of blocks: (x / 32) * 32 + x % 32 is x. False: there is no such pair. */
static bool join_pair(ir_affine *sum, unsigned width) {
    for (uint32_t r = 0; r < sum->count; r++) {
        LLVMValueRef whole = NULL;
        int64_t of = 0, by = 0, factor = sum->terms[r].factor;
        if (LLVMGetIntTypeWidth(LLVMTypeOf(sum->terms[r].value)) != width ||
            !is_rest(sum->terms[r].value, &whole, &of))
            continue;
        for (uint32_t q = 0; q < sum->count; q++) {
            if (!is_without_rest(sum->terms[q].value, whole, of, &by) ||
                sum->terms[q].factor % by != 0 || sum->terms[q].factor / by != factor)
                continue;
            ir_affine parts = {.terms = {sum->terms[r], sum->terms[q]}, .count = 2};
            ir_affine joined = *sum, of_whole = ir_affine_of(whole);
            if (!ir_affine_add(&joined, &parts, -1) || !ir_affine_add(&joined, &of_whole, factor))
                return false;
            *sum = joined;
            return true;
        }
    }
    return false;
}

/* The terms of a sum: whether one has a range, one depends on the block, or one is neither uniform
 * nor ranged. */
typedef struct kinds {
    bool ranged, of_block, other;
} kinds;

static kinds kinds_of(const peeling *p, const ir_affine *sum, uint32_t place) {
    kinds k = {0};
    ir_range any;
    for (uint32_t t = 0; t < sum->count; t++) {
        LLVMValueRef value = sum->terms[t].value;
        if (is_uniform(p, value, DEEPEST))
            k.of_block |= reads_block(p, value);
        else if (ir_range_of(&p->ranges, value, place, &any))
            k.ranged = true;
        else
            k.other = true;
    }
    return k;
}

/* ---- products ---------------------------------------------------------------------------------
 */

static bool add_product(bound *b, product term) {
    if (b->product_count == MOST_PRODUCTS)
        return false;
    b->products[b->product_count++] = term;
    return true;
}

/* Adds the terms of `part` times a uniform value and a factor. False: one of them is neither
 * uniform nor ranged. */
static bool add_products(const peeling *p, const ir_affine *part, LLVMValueRef by, int64_t factor,
                         uint32_t place, bound *b) {
    enum {
        MOST_FACTOR = 1 << 16,
        MOST_SCALED = 1 << 27
    }; /* products of all terms fit in 62 bits */
    ir_range r = {part->constant, part->constant};
    bool ok = factor >= -MOST_FACTOR && factor <= MOST_FACTOR && r.least >= INT32_MIN &&
              r.most <= INT32_MAX;
    for (uint32_t t = 0; ok && t < part->count; t++) {
        LLVMValueRef value = part->terms[t].value;
        int64_t of_term = part->terms[t].factor;
        ir_range range;
        ok = of_term >= -MOST_FACTOR && of_term <= MOST_FACTOR;
        if (ok && is_uniform(p, value, DEEPEST)) {
            ok = add_product(b, (product){.value = value, .by = by, .factor = factor * of_term});
            continue;
        }
        ok = ok && ir_range_of(&p->ranges, value, place, &range) && range.least >= INT32_MIN &&
             range.most <= INT32_MAX;
        r.least += ok ? of_term * (of_term > 0 ? range.least : range.most) : 0;
        r.most += ok ? of_term * (of_term > 0 ? range.most : range.least) : 0;
    }
    ok = ok && r.least >= INT32_MIN && r.most <= INT32_MAX;
    ir_range scaled = {factor * (factor > 0 ? r.least : r.most),
                       factor * (factor > 0 ? r.most : r.least)};
    ok = ok && scaled.least >= -MOST_SCALED && scaled.most <= MOST_SCALED;
    return ok && add_product(b, (product){.by = by, .range = scaled});
}

/* Takes products of a uniform value out of a sum of 32 bits: the stride or the dilation of a
 * convolution, as an argument. False: a term is a product of another kind. */
static bool take_products(const peeling *p, uint32_t place, bound *b) {
    for (uint32_t t = b->sum.count; t-- > 0;) {
        LLVMValueRef value = b->sum.terms[t].value;
        ir_range any;
        if (!LLVMIsABinaryOperator(value) || LLVMGetInstructionOpcode(value) != LLVMMul ||
            is_uniform(p, value, DEEPEST) || ir_range_of(&p->ranges, value, place, &any))
            continue;
        if (LLVMGetIntTypeWidth(LLVMTypeOf(value)) != 32) /* it wraps elsewhere than the sum */
            return false;
        unsigned side = is_uniform(p, LLVMGetOperand(value, 1), DEEPEST) ? 1 : 0;
        LLVMValueRef by = LLVMGetOperand(value, side);
        ir_affine part = ir_affine_of(LLVMGetOperand(value, 1 - side));
        ir_affine term = {.terms = {b->sum.terms[t]}, .count = 1};
        if (!is_uniform(p, by, DEEPEST) ||
            !add_products(p, &part, by, b->sum.terms[t].factor, place, b) ||
            !ir_affine_add(&b->sum, &term, -1))
            return false;
    }
    return true;
}

/* Whether a product depends on the block. */
static bool has_block(const peeling *p, const bound *b) {
    bool has = false;
    for (uint32_t i = 0; i < b->product_count; i++)
        has |= (b->products[i].value && reads_block(p, b->products[i].value)) ||
               reads_block(p, b->products[i].by);
    return has;
}

/* ---- bounds -----------------------------------------------------------------------------------
 */

static bool is_less(LLVMIntPredicate p) {
    return p == LLVMIntSLT || p == LLVMIntSLE || p == LLVMIntULT || p == LLVMIntULE;
}

static bool is_signed(LLVMIntPredicate p) {
    return p == LLVMIntSLT || p == LLVMIntSLE || p == LLVMIntSGT || p == LLVMIntSGE;
}

/* The distance of a sum's ranged terms to the least and the greatest sum. False: over 31 bits. */
static bool span_of(const peeling *p, const ir_affine *sum, uint32_t place, ir_range *span) {
    *span = (ir_range){0, 0};
    for (uint32_t t = 0; t < sum->count; t++) {
        int64_t factor = sum->terms[t].factor, least = 0, most = 0;
        ir_range r;
        if (is_uniform(p, sum->terms[t].value, DEEPEST))
            continue;
        if (!ir_range_of(&p->ranges, sum->terms[t].value, place, &r) ||
            __builtin_mul_overflow(factor, factor > 0 ? r.least : r.most, &least) ||
            __builtin_mul_overflow(factor, factor > 0 ? r.most : r.least, &most) ||
            __builtin_add_overflow(span->least, least, &span->least) ||
            __builtin_add_overflow(span->most, most, &span->most))
            return false;
    }
    return span->least >= INT32_MIN && span->most <= INT32_MAX &&
           span->most - span->least <= INT32_MAX;
}

/* Whether coordinates are below a value in the interior. They are below a size; a constant is a
 * size if all threads of the first block are below. A wrong guess costs speed alone. */
static bool is_upper(const bound *b) {
    if (!LLVMIsAConstantInt(b->with))
        return true;
    int64_t with = LLVMConstIntGetSExtValue(b->with), most = 0;
    return !__builtin_add_overflow(b->sum.constant, b->span.most, &most) && most < with;
}

/* Reads a comparison as a bound, its coordinates on side `side`. */
static bool read_side(const peeling *p, uint32_t insn, unsigned side, bound *out) {
    const ir_flow *flow = &p->version.flow;
    LLVMValueRef value = flow->insns[insn], sum = LLVMGetOperand(value, side);
    LLVMIntPredicate predicate = LLVMGetICmpPredicate(value);
    unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(sum));
    *out = (bound){.insn = insn, .sum = ir_affine_of(sum), .with = LLVMGetOperand(value, 1 - side)};
    if ((width != 32 && width != 64) || predicate == LLVMIntEQ || predicate == LLVMIntNE ||
        !is_uniform(p, out->with, DEEPEST))
        return false;
    while (join_pair(&out->sum, width))
        continue;
    if (width == 32 && !take_products(p, flow->home[insn], out))
        return false;
    kinds k = kinds_of(p, &out->sum, flow->home[insn]);
    if (k.other || (!k.of_block && !has_block(p, out)) ||
        !span_of(p, &out->sum, flow->home[insn], &out->span))
        return false;
    predicate = side == 0 ? predicate : ir_predicate_swapped(predicate);
    out->is_upper = is_upper(out);
    out->holds = is_less(predicate) == out->is_upper;
    out->inside = out->holds ? predicate : ir_predicate_inverse(predicate);
    return true;
}

static void find_bounds(peeling *p) {
    const ir_flow *flow = &p->version.flow;
    for (uint32_t i = 0; i < flow->insn_count && p->count < MOST_BOUNDS; i++) {
        LLVMValueRef value = flow->insns[i];
        bound *b = &p->bounds[p->count];
        bool in_loop = ir_loop_of(flow, flow->home[i]) != IR_NONE;
        if (!p->version.holds[flow->home[i]] || !LLVMIsAICmpInst(value) ||
            (in_loop && p->of_members) ||
            LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(value, 0))) != LLVMIntegerTypeKind)
            continue;
        if (!read_side(p, i, 0, b) && !read_side(p, i, 1, b))
            continue;
        p->count++;
        p->in_loops += in_loop;
    }
}

/* ---- the test at the entry --------------------------------------------------------------------
 */

static LLVMValueRef number(LLVMTypeRef type, int64_t value) {
    return LLVMConstInt(type, (uint64_t)value, true);
}

/* Writes the sum without its ranged terms, in arithmetic that wraps. */
static LLVMValueRef write_base(peeling *p, const bound *b, LLVMTypeRef type) {
    LLVMBuilderRef builder = p->version.builder;
    LLVMValueRef base = number(type, b->sum.constant);
    for (uint32_t t = 0; t < b->sum.count; t++) {
        const ir_term *term = &b->sum.terms[t];
        if (!is_uniform(p, term->value, DEEPEST))
            continue;
        LLVMValueRef value = write_uniform(p, term->value);
        value = LLVMBuildIntCast2(builder, value, type, true, "");
        value = LLVMBuildMul(builder, value, number(type, term->factor), "");
        base = LLVMBuildAdd(builder, base, value, "");
    }
    return base;
}

static LLVMValueRef extreme(LLVMBuilderRef b, LLVMValueRef left, LLVMValueRef right,
                            LLVMIntPredicate takes) {
    return LLVMBuildSelect(b, LLVMBuildICmp(b, takes, left, right, ""), left, right, "");
}

/* Writes the corners of a sum with products, in 64 bits. */
static void write_corners(peeling *p, const bound *b, LLVMTypeRef wide, LLVMValueRef *least,
                          LLVMValueRef *most) {
    LLVMBuilderRef builder = p->version.builder;
    LLVMValueRef base = write_base(p, b, wide);
    *least = LLVMBuildAdd(builder, base, number(wide, b->span.least), "");
    *most = LLVMBuildAdd(builder, base, number(wide, b->span.most), "");
    for (uint32_t i = 0; i < b->product_count; i++) {
        const product *term = &b->products[i];
        LLVMValueRef by = LLVMBuildIntCast2(builder, write_uniform(p, term->by), wide, true, "");
        LLVMValueRef from = NULL, to = NULL;
        if (term->value) {
            from = LLVMBuildIntCast2(builder, write_uniform(p, term->value), wide, true, "");
            from = LLVMBuildMul(builder, from, number(wide, term->factor), "");
            from = to = LLVMBuildMul(builder, from, by, "");
        } else {
            LLVMValueRef a = LLVMBuildMul(builder, by, number(wide, term->range.least), "");
            LLVMValueRef c = LLVMBuildMul(builder, by, number(wide, term->range.most), "");
            from = extreme(builder, a, c, LLVMIntSLT);
            to = extreme(builder, a, c, LLVMIntSGT);
        }
        *least = LLVMBuildAdd(builder, *least, from, "");
        *most = LLVMBuildAdd(builder, *most, to, "");
    }
}

/* Writes whether the whole block is inside a bound with products. Each sum of the kernel is between
 * the corners modulo 2^32. The sums do not wrap if the corners are in order and fit in 31 bits and
 * a sign, or in 31 bits if the comparison knows no signs. */
static LLVMValueRef write_inside_products(peeling *p, const bound *b) {
    LLVMBuilderRef builder = p->version.builder;
    LLVMTypeRef wide = LLVMInt64TypeInContext(p->s->base->context);
    LLVMValueRef least, most, floor = number(wide, is_signed(b->inside) ? INT32_MIN : 0);
    write_corners(p, b, wide, &least, &most);
    LLVMValueRef above = LLVMBuildICmp(builder, LLVMIntSGE, least, floor, "");
    LLVMValueRef below = LLVMBuildICmp(builder, LLVMIntSLE, most, number(wide, INT32_MAX), "");
    LLVMValueRef fits = LLVMBuildAnd(builder, above, below, "");
    LLVMValueRef ordered = LLVMBuildICmp(builder, LLVMIntSLE, least, most, "");
    LLVMValueRef near =
        LLVMBuildTrunc(builder, b->is_upper ? most : least, LLVMTypeOf(b->with), "");
    LLVMValueRef inside = LLVMBuildICmp(builder, b->inside, near, write_uniform(p, b->with), "");
    return LLVMBuildAnd(builder, LLVMBuildAnd(builder, fits, ordered, ""), inside, "");
}

/* Writes whether the whole block, or the thread, is inside the bound. */
static LLVMValueRef write_inside(peeling *p, const bound *b) {
    LLVMBuilderRef builder = p->version.builder;
    if (p->by_thread) {
        LLVMValueRef is = write_uniform(p, p->version.flow.insns[b->insn]);
        return b->holds ? is : LLVMBuildNot(builder, is, "");
    }
    if (b->product_count > 0)
        return write_inside_products(p, b);
    LLVMTypeRef type = LLVMTypeOf(b->with);
    LLVMValueRef base = write_base(p, b, type), with = write_uniform(p, b->with);
    LLVMValueRef least = LLVMBuildAdd(builder, base, number(type, b->span.least), "");
    LLVMValueRef most = LLVMBuildAdd(builder, base, number(type, b->span.most), "");
    LLVMValueRef inside = LLVMBuildICmp(builder, b->inside, b->is_upper ? most : least, with, "");
    LLVMIntPredicate order = is_signed(b->inside) ? LLVMIntSLE : LLVMIntULE;
    LLVMValueRef ordered = LLVMBuildICmp(builder, order, least, most, "");
    return LLVMBuildAnd(builder, ordered, inside, "");
}

static LLVMValueRef write_test(peeling *p) {
    LLVMValueRef test = write_inside(p, &p->bounds[0]);
    for (uint32_t i = 1; i < p->count; i++)
        test = LLVMBuildAnd(p->version.builder, test, write_inside(p, &p->bounds[i]), "");
    return test;
}

/* Whether the kernel has a shared array, through which threads of a warp may work in step. */
static bool shares_memory(const peeling *p) {
    LLVMModuleRef module = p->s->base->module;
    for (LLVMValueRef g = LLVMGetFirstGlobal(module); g; g = LLVMGetNextGlobal(g)) {
        if (LLVMGetPointerAddressSpace(LLVMTypeOf(g)) == IR_SHARED_SPACE)
            return true;
    }
    return false;
}

/* Whether each thread may choose: it works alone, and its bounds are known at once. */
static bool can_choose_by_thread(peeling *p) {
    const ir_flow *flow = &p->version.flow;
    bool can = p->in_loops == 0 && !shares_memory(p);
    for (uint32_t i = 0; i < flow->insn_count && can; i++) {
        ir_deed deed = ir_deed_of(flow->insns[i]);
        can = deed != IR_DEED_BARRIER && deed != IR_DEED_WARP && deed != IR_DEED_UNKNOWN;
    }
    p->by_thread = true;
    for (uint32_t i = 0; i < p->count && can; i++)
        can = is_uniform(p, flow->insns[p->bounds[i].insn], DEEPEST);
    return can;
}

static ev_status peel(peeling *p, ev_error *err) {
    const ir_flow *flow = &p->version.flow;
    p->bounds = EV_NEW_ARRAY(p->s->arena, bound, MOST_BOUNDS);
    p->made = EV_NEW_ARRAY(p->s->arena, LLVMValueRef, flow->insn_count + 1);
    if (!p->bounds || !p->made)
        return ev_fail_memory(err, flow->insn_count);
    find_bounds(p);
    if (p->count == 0 || (p->in_loops == 0 && !p->of_members && p->count < FEWEST_BOUNDS))
        return ev_fail(err, EV_BAD,
                       "the kernel has %u tests of coordinates against sizes, none in a loop: too "
                       "few for a copy without them",
                       p->count);
    p->by_thread = can_choose_by_thread(p);
    if (p->of_members && !p->by_thread)
        return ev_fail(err, EV_BAD, "the threads of a block work together");
    EV_TRY(ir_version_write(&p->version, write_test(p), err));
    LLVMTypeRef bit = LLVMInt1TypeInContext(p->s->base->context);
    for (uint32_t i = 0; i < p->count; i++)
        LLVMReplaceAllUsesWith(p->version.copies[p->bounds[i].insn],
                               LLVMConstInt(bit, p->bounds[i].holds, false));
    return EV_OK;
}

ev_status ir_structure_peel(ir_structure *s, ir_form form, ev_error *err) {
    if (form != IR_FORM_NONE && form != IR_FORM_MEMBERS)
        return ev_fail(err, EV_BAD, "\"form\" is neither left out nor \"members\"");
    peeling p = {.s = s, .of_members = form == IR_FORM_MEMBERS};
    ev_status status = ir_version_open(s, 0, &p.version, err);
    p.ranges = (ir_ranges){&p.version.flow, s->base->block};
    if (status == EV_OK)
        status = peel(&p, err);
    ir_version_close(&p.version);
    return status;
}
