/* Floating-point arithmetic of the direct emitter, above all the choice of the products and sums
 * that are fused.
 *
 * LLVM fuses a product and a sum, both with the flag `contract`, into one fma with a single
 * rounding. The choice between two products changes the bits of the result, so the rules of LLVM
 * 19 are followed to the letter: visitFADDForFMACombine, visitFSUBForFMACombine and
 * visitFMULForFMADistributiveCombine in DAGCombiner.cpp, for a target with aggressive fusion. LLVM
 * works on one block at a time, from its last instruction to its first, and counts uses at that
 * moment.
 *
 * The functions before the section "selection" only mark each product and sum with its role
 * (direct_value.fuse). The functions after that line emit the code. A case whose further
 * consequences in LLVM are not modelled here is refused. */
#include "ir/direct/direct_internal.h"

#include <string.h>

bool direct_has_flag(LLVMValueRef insn, LLVMFastMathFlags flag) {
    return (LLVMGetFastMathFlags(insn) & flag) != 0;
}

/* ---- which join -------------------------------------------------------------------------------
 */

/* Operand of `of` that is an instruction of the same block with the opcode and the flag. */
static direct_value *neighbour(const ir_direct *d, const direct_value *of, unsigned operand,
                               LLVMOpcode opcode, LLVMFastMathFlags flag) {
    direct_value *value = direct_value_of(d, LLVMGetOperand(of->value, operand));
    if (!value || value->opcode != opcode || value->block != of->block ||
        (flag && !direct_has_flag(value->value, flag)))
        return NULL;
    return value;
}

static bool by_reciprocal(const direct_value *value) {
    return value->fuse == DIRECT_RECIPROCAL || value->fuse == DIRECT_RECIPROCAL_CONTRACT;
}

static bool is_product(const direct_value *value) {
    return value->opcode == LLVMFMul || by_reciprocal(value);
}

static bool is_same_product(const direct_value *one, const direct_value *other) {
    LLVMValueRef a = LLVMGetOperand(one->value, 0), b = LLVMGetOperand(one->value, 1);
    LLVMValueRef x = LLVMGetOperand(other->value, 0), y = LLVMGetOperand(other->value, 1);
    return one != other && other->opcode == one->opcode &&
           ((x == a && y == b) || (x == b && y == a));
}

/* A user of its first factor that is no constant. */
static LLVMUseRef first_use_beside(const direct_value *product) {
    LLVMValueRef a = LLVMGetOperand(product->value, 0);
    return LLVMGetFirstUse(LLVMIsConstant(a) ? LLVMGetOperand(product->value, 1) : a);
}

/* Two of one block, both to be contracted, are one to LLVM. */
static bool is_one_with(const direct_value *product, const direct_value *twin) {
    return twin->block == product->block &&
           direct_has_flag(twin->value, LLVMFastMathAllowContract) &&
           direct_has_flag(product->value, LLVMFastMathAllowContract);
}

/* Whether the product is computed elsewhere too, and LLVM may take that one for it. */
static bool has_twin(const ir_direct *d, const direct_value *product) {
    for (LLVMUseRef use = first_use_beside(product); use; use = LLVMGetNextUse(use)) {
        const direct_value *twin = direct_value_of(d, LLVMGetUser(use));
        if (!twin || !is_same_product(product, twin))
            continue;
        bool moves = twin->moves != DIRECT_STAYS && d->blocks[twin->block].into != IR_NONE;
        bool is_one = is_one_with(product, twin) && !moves && !neighbour(d, twin, 0, LLVMFMul, 0) &&
                      !neighbour(d, twin, 1, LLVMFMul, 0); /* whose uses would count twice */
        if (!is_one && (moves || ir_dominance_over(&d->dominance, twin->block, product->block)))
            return true;
    }
    return false;
}

/* As LLVM counts, who has a product of one block once. */
static uint32_t uses_of(const ir_direct *d, const direct_value *product) {
    uint32_t uses = product->uses;
    if (product->opcode != LLVMFMul)
        return uses;
    for (LLVMUseRef use = first_use_beside(product); use; use = LLVMGetNextUse(use)) {
        const direct_value *twin = direct_value_of(d, LLVMGetUser(use));
        if (twin && is_same_product(product, twin) && is_one_with(product, twin))
            uses += twin->uses;
    }
    return uses;
}

/* Operand of `of` that is a product which it may take. */
static direct_value *product_of(ir_direct *d, const direct_value *of, unsigned operand) {
    direct_value *value = direct_value_of(d, LLVMGetOperand(of->value, operand));
    if (!value || !is_product(value) || value->fuse == DIRECT_RECIPROCAL ||
        (value->opcode == LLVMFMul && !direct_has_flag(value->value, LLVMFastMathAllowContract)))
        return NULL;
    if (direct_unsettled(d, of, value))
        direct_refuse(d, of->value, "a sum that LLVM may bring together with a product");
    if (value->block != of->block)
        return NULL;
    if (value->opcode == LLVMFMul && has_twin(d, value))
        direct_refuse(d, of->value, "a sum with a product that is computed twice");
    return value;
}

static void count_operands(const ir_direct *d, const direct_value *value, int by);

static void lose_use(const ir_direct *d, direct_value *value) {
    value->uses--;
    if (value->uses == 0)
        count_operands(d, value, -1);
}

static void count_operands(const ir_direct *d, const direct_value *value, int by) {
    unsigned count = (unsigned)LLVMGetNumOperands(value->value);
    for (unsigned i = 0; i < count; i++) {
        direct_value *operand = direct_value_of(d, LLVMGetOperand(value->value, i));
        if (!operand || operand->block != value->block)
            continue;
        if (by > 0)
            operand->uses++;
        else if (is_product(operand) && operand->uses > 0)
            lose_use(d, operand);
    }
}

/* The product's factors are now the sum's operands too. */
static void join_product(const ir_direct *d, direct_value *sum, direct_value *product,
                         direct_fuse how) {
    sum->fuse = (uint8_t)how;
    count_operands(d, product, 1);
    lose_use(d, product);
}

/* Of two products the one with fewer uses is taken. Whether their uses are counted as LLVM does. */
static bool counts_surely(const ir_direct *d, const direct_value *product) {
    if (by_reciprocal(product))
        return false;
    for (LLVMUseRef use = LLVMGetFirstUse(product->value); use; use = LLVMGetNextUse(use)) {
        const direct_value *user = direct_value_of(d, LLVMGetUser(use));
        if (user && direct_unsettled(d, product, user))
            return false;
    }
    return true;
}

static void fuse_difference(ir_direct *d, direct_value *difference) {
    if (!direct_has_flag(difference->value, LLVMFastMathAllowContract))
        return;
    direct_value *left = product_of(d, difference, 0);
    direct_value *right = product_of(d, difference, 1);
    if (left && right && !(counts_surely(d, left) && counts_surely(d, right)))
        direct_refuse(d, difference->value, "two products whose uses are not counted here");
    if (left && right && uses_of(d, left) > uses_of(d, right))
        left = NULL;
    if (left)
        join_product(d, difference, left, DIRECT_FMA_LEFT);
    else if (right)
        join_product(d, difference, right, DIRECT_FMA_RIGHT);
}

static void fuse_sum(ir_direct *d, direct_value *sum) {
    if (LLVMGetOperand(sum->value, 0) != LLVMGetOperand(sum->value, 1))
        fuse_difference(d, sum);
}

/* (x + 1) y and its like become x y + y where the sum is known to be finite. */
static void fuse_product(const ir_direct *d, direct_value *product) {
    if (!direct_has_flag(product->value, LLVMFastMathAllowContract))
        return;
    bool first_is_sum = neighbour(d, product, 0, LLVMFAdd, LLVMFastMathNone) != NULL;
    direct_value *checked =
        direct_value_of(d, LLVMGetOperand(product->value, first_is_sum ? 0 : 1));
    if (!checked || checked->block != product->block ||
        !LLVMCanValueUseFastMathFlags(checked->value) ||
        !direct_has_flag(checked->value, LLVMFastMathNoInfs))
        return;
    static const LLVMOpcode opcodes[] = {LLVMFAdd, LLVMFSub};
    for (unsigned k = 0; k < 2; k++)
        for (unsigned i = 0; i < 2; i++) {
            direct_value *sum = neighbour(d, product, i, opcodes[k], LLVMFastMathNone);
            if (!sum || !(direct_is_unit(LLVMGetOperand(sum->value, 1)) ||
                          (k == 1 && direct_is_unit(LLVMGetOperand(sum->value, 0)))))
                continue;
            product->fuse = i == 0 ? DIRECT_DISTRIBUTE_0 : DIRECT_DISTRIBUTE_1;
            return;
        }
}

/* ---- reassociation ----------------------------------------------------------------------------
 */

static bool is_fused(const direct_value *value) {
    return value && (value->fuse == DIRECT_FMA_LEFT || value->fuse == DIRECT_FMA_RIGHT);
}

/* The product that a fused sum adds to, used there alone. */
static direct_value *added_product(const ir_direct *d, const direct_value *sum) {
    bool left = sum->fuse == DIRECT_FMA_LEFT;
    if (!is_fused(sum) || sum->uses != 1 || (left && sum->opcode == LLVMFSub))
        return NULL;
    direct_value *product = neighbour(d, sum, left ? 1 : 0, LLVMFMul, LLVMFastMathNone);
    return product && uses_of(d, product) == 1 ? product : NULL;
}

/* (a b + c d) + e becomes a b + (c d + e) where the outer sum may be reassociated. LLVM comes back
 * to it once the inner one is fused. */
static void nest(const ir_direct *d, direct_value *inner) {
    direct_value *product = added_product(d, inner);
    LLVMUseRef use = product ? LLVMGetFirstUse(inner->value) : NULL;
    if (!use || LLVMGetNextUse(use))
        return;
    direct_value *outer = direct_value_of(d, LLVMGetUser(use));
    if (!outer || outer->block != inner->block || outer->opcode != LLVMFAdd ||
        outer->fuse != DIRECT_ALONE || !direct_has_flag(outer->value, LLVMFastMathAllowContract) ||
        !direct_has_flag(outer->value, LLVMFastMathAllowReassoc))
        return;
    bool first = LLVMGetOperand(outer->value, 0) == inner->value;
    outer->fuse = first ? DIRECT_NEST_0 : DIRECT_NEST_1;
    inner->uses = 0;
    product->uses = 0;
}

/* ---- what is refused --------------------------------------------------------------------------
 */

static bool is_constant_in(const direct_value *value, unsigned operand) {
    return value && LLVMIsConstant(LLVMGetOperand(value->value, operand));
}

static bool is_double(const direct_value *sum) {
    return sum && LLVMGetOperand(sum->value, 0) == LLVMGetOperand(sum->value, 1);
}

static bool multiplies(const direct_value *product, LLVMValueRef a, LLVMValueRef b) {
    LLVMValueRef x = LLVMGetOperand(product->value, 0), y = LLVMGetOperand(product->value, 1);
    return product->opcode == LLVMFMul && ((x == a && y == b) || (x == b && y == a));
}

/* Whether the block has a product of the two. */
static bool has_product(const ir_direct *d, uint32_t block, LLVMValueRef a, LLVMValueRef b) {
    LLVMValueRef factor = LLVMIsConstant(a) ? b : a;
    for (LLVMUseRef use = LLVMGetFirstUse(factor); use; use = LLVMGetNextUse(use)) {
        const direct_value *user = direct_value_of(d, LLVMGetUser(use));
        if (user && user->block == block && multiplies(user, a, b))
            return true;
    }
    return false;
}

/* (a b) c, which LLVM takes for (a c) b where a c is there already: reassociateOpsCommutative. */
static bool regroups(const ir_direct *d, const direct_value *inner, LLVMValueRef factor) {
    for (unsigned k = 0; k < 2; k++) {
        LLVMValueRef a = LLVMGetOperand(inner->value, k), b = LLVMGetOperand(inner->value, 1 - k);
        if (b != factor && has_product(d, inner->block, a, factor))
            return true;
    }
    return false;
}

static bool has_operand(const direct_value *value, LLVMValueRef operand) {
    return value && (LLVMGetOperand(value->value, 0) == operand ||
                     LLVMGetOperand(value->value, 1) == operand);
}

/* Sums and products with reassociation that LLVM folds further than is followed here: of constants,
 * of a value with its own multiples, and of a product that is there with another factor. */
static bool folds_further(const ir_direct *d, const direct_value *value) {
    direct_value *sums[2], *products[2];
    for (unsigned i = 0; i < 2; i++) {
        sums[i] = neighbour(d, value, i, LLVMFAdd, LLVMFastMathNone);
        products[i] = neighbour(d, value, i, LLVMFMul, LLVMFastMathNone);
    }
    if (is_double(sums[0]) || is_double(sums[1]))
        return true;
    if (is_constant_in(value, 1) && (is_constant_in(sums[0], 1) || is_constant_in(products[0], 1)))
        return true;
    for (unsigned i = 0; i < 2; i++) {
        LLVMValueRef other = LLVMGetOperand(value->value, 1 - i);
        if (has_operand(sums[i], other))
            return true;
        if (value->opcode == LLVMFMul ? products[i] && regroups(d, products[i], other)
                                      : has_operand(products[i], other))
            return true;
        direct_value *call = neighbour(d, value, i, LLVMCall, LLVMFastMathNone);
        if (call && value->opcode == LLVMFAdd && value->fuse == DIRECT_ALONE &&
            strncmp(ir_call_name(call->value), "llvm.fma.", 9) == 0)
            return true;
    }
    return false;
}

/* Differences of a fused sum whose other product may be reassociated. */
static bool nests_difference(const ir_direct *d, const direct_value *value) {
    for (unsigned i = 0; i < 2 && value->fuse == DIRECT_ALONE; i++) {
        direct_value *sum = neighbour(d, value, i, LLVMFAdd, LLVMFastMathNone);
        direct_value *product = sum ? added_product(d, sum) : NULL;
        if (product && direct_has_flag(product->value, LLVMFastMathAllowReassoc))
            return true;
    }
    return false;
}

/* x / sqrt(x), which LLVM takes for sqrt(x). */
static bool is_by_root(const ir_direct *d, LLVMValueRef insn) {
    LLVMValueRef by = LLVMGetOperand(insn, 1);
    const direct_value *root = direct_value_of(d, by);
    return root && root->opcode == LLVMCall && LLVMGetOperand(by, 0) == LLVMGetOperand(insn, 0) &&
           strncmp(ir_call_name(by), "llvm.sqrt.", 10) == 0;
}

/* Flags whose further consequences in LLVM are not followed here. */
static void refuse_liberties(ir_direct *d, const direct_value *value) {
    LLVMValueRef insn = value->value;
    bool arithmetic =
        value->opcode == LLVMFAdd || value->opcode == LLVMFSub || value->opcode == LLVMFMul;
    if (arithmetic && direct_has_flag(insn, LLVMFastMathAllowReassoc) && folds_further(d, value))
        direct_refuse(d, insn, "this sum or product with reassociation allowed");
    if (value->opcode == LLVMFDiv && direct_has_flag(insn, LLVMFastMathAllowReassoc) &&
        is_by_root(d, insn))
        direct_refuse(d, insn, "a division by the dividend's root with reassociation allowed");
    if (value->opcode == LLVMFSub && nests_difference(d, value))
        direct_refuse(d, insn, "a difference with reassociation allowed");
}

static bool is_real(const direct_value *value) {
    LLVMTypeRef type = LLVMTypeOf(value->value);
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind)
        type = LLVMGetElementType(type);
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    return kind == LLVMFloatTypeKind || kind == LLVMDoubleTypeKind || kind == LLVMHalfTypeKind;
}

/* Uses outside the block count as one, and none where there are none at all. */
static uint32_t outside_uses(const ir_direct *d, const direct_value *value) {
    for (LLVMUseRef use = LLVMGetFirstUse(value->value); use; use = LLVMGetNextUse(use)) {
        direct_value *user = direct_value_of(d, LLVMGetUser(use));
        if (user && (user->block != value->block || user->opcode == LLVMPHI))
            return 1;
    }
    return 0;
}

/* Sums that were looked at while their operand still was a division. */
static void fuse_again(ir_direct *d, uint32_t first, uint32_t end) {
    for (uint32_t v = first; v < end; v++) {
        direct_value *value = &d->values[v];
        if (value->fuse == DIRECT_ALONE && is_real(value) && value->opcode == LLVMFAdd)
            fuse_sum(d, value);
        else if (value->fuse == DIRECT_ALONE && is_real(value) && value->opcode == LLVMFSub)
            fuse_difference(d, value);
    }
}

void direct_fuse_block(ir_direct *d, uint32_t first, uint32_t end) {
    for (uint32_t v = end; v-- > first;) {
        direct_value *value = &d->values[v];
        if (value->opcode == LLVMFMul || value->opcode == LLVMFDiv)
            value->uses += outside_uses(d, value);
        if (value->opcode != LLVMPHI)
            count_operands(d, value, 1);
    }
    for (uint32_t v = end; v-- > first && d->status == EV_OK;) {
        direct_value *value = &d->values[v];
        if (value->opcode < LLVMAdd || value->opcode > LLVMFDiv)
            continue;
        if (!is_real(value))
            continue;
        if (value->opcode == LLVMFAdd)
            fuse_sum(d, value);
        else if (value->opcode == LLVMFSub)
            fuse_difference(d, value);
        else if (value->opcode == LLVMFMul)
            fuse_product(d, value);
        else if (value->opcode == LLVMFDiv && direct_share_divisor(d, value))
            fuse_again(d, v + 1, end);
        nest(d, value);
    }
    for (uint32_t v = first; v < end && d->status == EV_OK; v++)
        if (d->values[v].opcode >= LLVMAdd && d->values[v].opcode <= LLVMFDiv &&
            is_real(&d->values[v]))
            refuse_liberties(d, &d->values[v]);
}

/* ---- selection --------------------------------------------------------------------------------
 */

typedef struct terms {
    const direct_operand *items;
    direct_operand room[DIRECT_LEAVES];
    unsigned count;
} terms;

static void terms_of(ir_direct *d, LLVMValueRef value, terms *out) {
    out->items = direct_parts(d, value, out->room, &out->count);
}

static direct_operand negated(ir_direct *d, direct_operand a) {
    if (a.kind == DIRECT_INT) {
        a.imm ^= a.cls == DIRECT_F ? (int64_t)0x80000000u : INT64_MIN;
        return a;
    }
    return direct_pure1(d, a.cls == DIRECT_F ? "neg.f32" : "neg.f64", a.cls, a);
}

static direct_operand fma_of(ir_direct *d, direct_operand a, direct_operand b, direct_operand c) {
    return direct_pure3(d, a.cls == DIRECT_F ? "fma.rn.f32" : "fma.rn.f64", a.cls, a, b, c);
}

static direct_operand one_of(direct_class cls) {
    return (direct_operand){.kind = DIRECT_INT,
                            .cls = (uint8_t)cls,
                            .imm = cls == DIRECT_F ? 0x3f800000 : 0x3ff0000000000000};
}

static direct_operand plain(ir_direct *d, const direct_value *value, direct_operand a,
                            direct_operand b) {
    LLVMOpcode opcode = (LLVMOpcode)value->opcode;
    static const char *const ops[4][2] = {{"add.rn.f32", "add.rn.f64"},
                                          {"sub.rn.f32", "sub.rn.f64"},
                                          {"mul.rn.f32", "mul.rn.f64"},
                                          {"div.rn.f32", "div.rn.f64"}};
    unsigned wide = a.cls - DIRECT_F;
    unsigned row = 3;
    if (opcode == LLVMFAdd)
        row = 0;
    else if (opcode == LLVMFSub)
        row = 1;
    else if (opcode == LLVMFMul)
        row = 2;
    if (row == 3 && a.kind == DIRECT_INT && a.imm == one_of(a.cls).imm)
        return direct_reciprocal(d, value, b);
    if (by_reciprocal(value))
        return direct_pure2(d, ops[2][wide], a.cls, a, direct_reciprocal(d, value, b));
    return direct_pure2(d, ops[row][wide], a.cls, a, b);
}

/* Sums: x y + z, or x y - z, or z - x y. */
static void select_fused(ir_direct *d, const direct_value *value, direct_operand *result) {
    bool left = value->fuse == DIRECT_FMA_LEFT, minus = value->opcode == LLVMFSub;
    LLVMValueRef product = LLVMGetOperand(value->value, left ? 0 : 1);
    const direct_value *factors = direct_value_of(d, product);
    terms x, y, z;
    terms_of(d, LLVMGetOperand(product, 0), &x);
    terms_of(d, LLVMGetOperand(product, 1), &y);
    terms_of(d, LLVMGetOperand(value->value, left ? 1 : 0), &z);
    for (unsigned i = 0; i < x.count; i++) {
        direct_operand a = x.items[i], b = y.items[i], c = z.items[i];
        if (by_reciprocal(factors))
            b = direct_reciprocal(d, factors, b);
        if (minus && left)
            c = negated(d, c);
        else if (minus && b.kind == DIRECT_INT)
            b = negated(d, b);
        else if (minus)
            a = negated(d, a);
        result[i] = fma_of(d, a, b, c);
    }
}

/* a b + (c d + e), the inner sum being fused on its own side. */
static void select_nested(ir_direct *d, const direct_value *value, direct_operand *result) {
    unsigned at = value->fuse == DIRECT_NEST_0 ? 0 : 1;
    const direct_value *inner = direct_value_of(d, LLVMGetOperand(value->value, at));
    unsigned side = inner->fuse == DIRECT_FMA_LEFT ? 0 : 1;
    LLVMValueRef outer_product = LLVMGetOperand(inner->value, side);
    LLVMValueRef inner_product = LLVMGetOperand(inner->value, 1 - side);
    terms a, b, c, e, f;
    terms_of(d, LLVMGetOperand(outer_product, 0), &a);
    terms_of(d, LLVMGetOperand(outer_product, 1), &b);
    terms_of(d, LLVMGetOperand(inner_product, 0), &c);
    terms_of(d, LLVMGetOperand(inner_product, 1), &e);
    terms_of(d, LLVMGetOperand(value->value, 1 - at), &f);
    for (unsigned i = 0; i < a.count; i++) {
        direct_operand sum = fma_of(d, c.items[i], e.items[i], f.items[i]);
        direct_operand x = inner->opcode == LLVMFSub ? negated(d, a.items[i]) : a.items[i];
        result[i] = fma_of(d, x, b.items[i], sum);
    }
}

/* Products of a sum with 1 or -1. */
static void select_distributed(ir_direct *d, const direct_value *value, direct_operand *result) {
    unsigned at = value->fuse == DIRECT_DISTRIBUTE_0 ? 0 : 1;
    LLVMValueRef sum = LLVMGetOperand(value->value, at);
    bool minus = LLVMGetInstructionOpcode(sum) == LLVMFSub;
    bool one_first = minus && direct_is_unit(LLVMGetOperand(sum, 0));
    terms x, y, one;
    terms_of(d, LLVMGetOperand(sum, one_first ? 1 : 0), &x);
    terms_of(d, LLVMGetOperand(sum, one_first ? 0 : 1), &one);
    terms_of(d, LLVMGetOperand(value->value, 1 - at), &y);
    bool positive = one.items[0].imm == one_of(one.items[0].cls).imm;
    bool adds = minus && !one_first ? !positive : positive;
    for (unsigned i = 0; i < y.count; i++) {
        direct_operand a = one_first ? negated(d, x.items[i]) : x.items[i];
        direct_operand b = y.items[i];
        result[i] = fma_of(d, a, b, adds ? b : negated(d, b));
    }
}

void direct_select_float(ir_direct *d, LLVMValueRef insn) {
    const direct_value *value = direct_value_of(d, insn);
    direct_leaf leaves[DIRECT_LEAVES];
    unsigned count = direct_leaves(LLVMTypeOf(insn), leaves);
    if (count == 0 || (leaves[0].cls != DIRECT_F && leaves[0].cls != DIRECT_FD)) {
        direct_refuse(d, insn, "arithmetic of this type");
        return;
    }
    direct_operand result[DIRECT_LEAVES];
    terms a, b;
    if (value->opcode == LLVMFNeg) {
        terms_of(d, LLVMGetOperand(insn, 0), &a);
        for (unsigned i = 0; i < count; i++)
            result[i] = negated(d, a.items[i]);
    } else if (value->fuse == DIRECT_FMA_LEFT || value->fuse == DIRECT_FMA_RIGHT) {
        select_fused(d, value, result);
    } else if (value->fuse == DIRECT_NEST_0 || value->fuse == DIRECT_NEST_1) {
        select_nested(d, value, result);
    } else if (value->fuse == DIRECT_DISTRIBUTE_0 || value->fuse == DIRECT_DISTRIBUTE_1) {
        select_distributed(d, value, result);
    } else {
        terms_of(d, LLVMGetOperand(insn, 0), &a);
        terms_of(d, LLVMGetOperand(insn, 1), &b);
        for (unsigned i = 0; i < count; i++)
            result[i] = plain(d, value, a.items[i], b.items[i]);
    }
    direct_define(d, insn, result, count);
}
