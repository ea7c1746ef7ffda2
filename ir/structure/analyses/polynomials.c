/* Polynomials: see polynomials_internal.h. Factors and sums are kept once each, so equal ones have
 * equal numbers. Arithmetic is modulo 2 to the width of the type, as LLVM's is. What cannot be
 * taken apart is a factor: a value, or a narrow sum that is widened as a whole. */
#include "ir/structure/analyses/polynomials_internal.h"

#include <llvm-c/Target.h>

#include <string.h>

enum {
    MOST_TERMS = 16,  /* of a sum; a longer one is a factor */
    MOST_FACTORS = 4, /* of a product */
    MOST_STEPS = 128, /* values that are visited for one address */
    WIDEST = 64
};

/* How a value comes to its width. */
typedef enum ext { AS_IT_IS, BY_SIGN, BY_ZEROS } ext;

typedef struct product {
    int64_t times;
    uint32_t count;
    uint32_t factors[MOST_FACTORS]; /* in order; unused ones are 0 */
    uint32_t unused;                /* 0, so that equal products have equal bytes */
} product;

typedef struct sum {
    int64_t constant;
    uint32_t count;
    uint32_t width;
    product terms[MOST_TERMS]; /* in order */
} sum;

/* A factor: a value (sum IR_NONE), or a sum that is widened as a whole. */
typedef struct factor {
    LLVMValueRef value;
    uint32_t sum;
    int64_t constant;
    ext by;
    uint32_t width;
} factor;

/* Items that are kept once each, found by their bytes. */
typedef struct once {
    void *items;
    size_t size; /* of an item */
    uint32_t count, capacity;
    uint32_t *slots; /* of items, plus 1; 0: free. Twice as many as the capacity */
} once;

struct ir_polynomials {
    ev_arena *arena;
    LLVMTargetDataRef layout;
    once factors;   /* struct factor */
    once products;  /* struct product */
    once sums;      /* struct key: the products by number */
    uint32_t steps; /* left for this address */
    bool failed;
};

/* A sum without its constant, as it is kept. Unused numbers are 0. */
typedef struct key {
    uint32_t width, count;
    uint32_t terms[MOST_TERMS];
} key;

/* ---- items that are kept once -----------------------------------------------------------------
 */

static uint32_t slot_of(const once *o, const void *item) {
    const unsigned char *bytes = item;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < o->size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return (uint32_t)(hash >> 32 ^ hash) & (2 * o->capacity - 1);
}

static void *item_at(const once *o, uint32_t number) {
    return (char *)o->items + (size_t)number * o->size;
}

static uint32_t *find_slot(const once *o, const void *item) {
    uint32_t at = slot_of(o, item);
    while (o->slots[at] != 0 && memcmp(item_at(o, o->slots[at] - 1), item, o->size) != 0)
        at = (at + 1) & (2 * o->capacity - 1);
    return &o->slots[at];
}

static bool grow(ir_polynomials *s, once *o) {
    once more = {
        .size = o->size, .count = o->count, .capacity = o->capacity ? 2 * o->capacity : 64};
    more.items = ev_arena_array(s->arena, more.capacity, more.size);
    more.slots = EV_NEW_ARRAY(s->arena, uint32_t, (size_t)2 * more.capacity);
    if (!more.items || !more.slots)
        return false;
    if (o->count > 0)
        memcpy(more.items, o->items, (size_t)o->count * o->size);
    for (uint32_t i = 0; i < o->count; i++)
        *find_slot(&more, item_at(&more, i)) = i + 1;
    *o = more;
    return true;
}

/* The number of an item; bytes between its members must be zero. */
static uint32_t number_of(ir_polynomials *s, once *o, const void *item) {
    if (o->count == o->capacity && !grow(s, o)) {
        s->failed = true;
        return 0;
    }
    uint32_t *slot = find_slot(o, item);
    if (*slot == 0) {
        memcpy(item_at(o, o->count), item, o->size);
        *slot = ++o->count;
    }
    return *slot - 1;
}

static uint32_t factor_number(ir_polynomials *s, LLVMValueRef value, uint32_t of, int64_t constant,
                              ext by, uint32_t width) {
    factor f;
    memset(&f, 0, sizeof f);
    f.value = value;
    f.sum = of;
    f.constant = constant;
    f.by = by;
    f.width = width;
    return number_of(s, &s->factors, &f);
}

static uint32_t sum_number(ir_polynomials *s, const sum *of) {
    key k;
    memset(&k, 0, sizeof k);
    k.width = of->width;
    k.count = of->count;
    for (uint32_t t = 0; t < of->count; t++)
        k.terms[t] = number_of(s, &s->products, &of->terms[t]);
    return number_of(s, &s->sums, &k);
}

/* ---- arithmetic -------------------------------------------------------------------------------
 */

/* A number modulo 2 to the width, with its sign. */
static int64_t wrapped(int64_t value, uint32_t width) {
    if (width == WIDEST)
        return value;
    uint64_t bits = (uint64_t)value << (WIDEST - width);
    return (int64_t)bits >> (WIDEST - width);
}

static int64_t sum_of_two(int64_t a, int64_t b, uint32_t width) {
    return wrapped((int64_t)((uint64_t)a + (uint64_t)b), width);
}

static int64_t product_of_two(int64_t a, int64_t b, uint32_t width) {
    return wrapped((int64_t)((uint64_t)a * (uint64_t)b), width);
}

static int compare_factors(const product *a, const product *b) {
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->factors[i] != b->factors[i])
            return a->factors[i] < b->factors[i] ? -1 : 1;
    }
    return 0;
}

/* Adds a product; false: the sum is too long. */
static bool add_product(sum *to, const product *p) {
    uint32_t at = 0;
    int64_t times = wrapped(p->times, to->width);
    if (times == 0)
        return true;
    while (at < to->count && compare_factors(&to->terms[at], p) < 0)
        at++;
    product *term = &to->terms[at];
    if (at < to->count && compare_factors(term, p) == 0) {
        term->times = sum_of_two(term->times, times, to->width);
        if (term->times == 0)
            memmove(term, term + 1, (--to->count - at) * sizeof *term);
        return true;
    }
    if (to->count == MOST_TERMS)
        return false;
    memmove(term + 1, term, (to->count++ - at) * sizeof *term);
    *term = *p;
    term->times = times;
    return true;
}

static bool add_sum(sum *to, const sum *more, int64_t times) {
    to->constant =
        sum_of_two(to->constant, product_of_two(more->constant, times, to->width), to->width);
    for (uint32_t t = 0; t < more->count; t++) {
        product p = more->terms[t];
        p.times = product_of_two(p.times, times, to->width);
        if (!add_product(to, &p))
            return false;
    }
    return true;
}

/* Merges the factors of two products in order; false: there are too many. */
static bool join_factors(const product *a, const product *b, product *out) {
    if (a->count + b->count > MOST_FACTORS)
        return false;
    uint32_t i = 0, k = 0;
    memset(out, 0, sizeof *out);
    while (i < a->count || k < b->count) {
        bool first = k == b->count || (i < a->count && a->factors[i] <= b->factors[k]);
        out->factors[out->count++] = first ? a->factors[i++] : b->factors[k++];
    }
    return true;
}

static bool multiply(const sum *a, const sum *b, sum *out) {
    *out = (sum){.width = a->width};
    out->constant = product_of_two(a->constant, b->constant, a->width);
    sum of_a = *a, of_b = *b;
    of_a.constant = of_b.constant = 0;
    if (!add_sum(out, &of_a, b->constant) || !add_sum(out, &of_b, a->constant))
        return false;
    for (uint32_t i = 0; i < a->count; i++) {
        for (uint32_t k = 0; k < b->count; k++) {
            product p;
            if (!join_factors(&a->terms[i], &b->terms[k], &p))
                return false;
            p.times = product_of_two(a->terms[i].times, b->terms[k].times, a->width);
            if (!add_product(out, &p))
                return false;
        }
    }
    return true;
}

/* ---- values -----------------------------------------------------------------------------------
 */

static uint32_t width_of(LLVMValueRef value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(type) : WIDEST;
}

static void set_factor(sum *out, uint32_t number, uint32_t width) {
    *out = (sum){.count = 1, .width = width};
    out->terms[0] = (product){.times = 1, .count = 1, .factors = {number}};
}

static void read_value(ir_polynomials *s, LLVMValueRef value, ext by, uint32_t width, sum *out);

/* A value that is not taken apart. */
static void read_whole(ir_polynomials *s, LLVMValueRef value, ext by, uint32_t width, sum *out) {
    if (by == AS_IT_IS) {
        set_factor(out, factor_number(s, value, IR_NONE, 0, by, width), width);
        return;
    }
    sum narrow;
    read_value(s, value, AS_IT_IS, width_of(value), &narrow);
    uint32_t number = sum_number(s, &narrow);
    set_factor(out, factor_number(s, NULL, number, narrow.constant, by, width), width);
}

/* Whether a sum or product may be widened part by part. */
static bool keeps(LLVMValueRef value, ext by) {
    return by == AS_IT_IS || (by == BY_SIGN ? LLVMGetNSW(value) : LLVMGetNUW(value));
}

static bool read_parts(ir_polynomials *s, LLVMValueRef value, ext by, uint32_t width, int64_t sign,
                       sum *out) {
    sum right;
    read_value(s, LLVMGetOperand(value, 0), by, width, out);
    read_value(s, LLVMGetOperand(value, 1), by, width, &right);
    return add_sum(out, &right, sign);
}

static bool read_product(ir_polynomials *s, LLVMValueRef value, ext by, uint32_t width, sum *out) {
    sum left, right;
    read_value(s, LLVMGetOperand(value, 0), by, width, &left);
    read_value(s, LLVMGetOperand(value, 1), by, width, &right);
    return multiply(&left, &right, out);
}

static bool read_shift(ir_polynomials *s, LLVMValueRef value, ext by, uint32_t width, sum *out) {
    LLVMValueRef right = LLVMGetOperand(value, 1);
    sum left;
    if (!LLVMIsAConstantInt(right) || LLVMConstIntGetZExtValue(right) >= width_of(value) ||
        LLVMConstIntGetZExtValue(right) >= WIDEST - 1)
        return false;
    read_value(s, LLVMGetOperand(value, 0), by, width, &left);
    *out = (sum){.width = width};
    return add_sum(out, &left, INT64_C(1) << LLVMConstIntGetZExtValue(right));
}

/* Takes an instruction apart; false: it stays whole. */
static bool read_insn(ir_polynomials *s, LLVMValueRef value, ext by, uint32_t width, sum *out) {
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMAdd:
        return keeps(value, by) && read_parts(s, value, by, width, 1, out);
    case LLVMSub:
        return keeps(value, by) && read_parts(s, value, by, width, -1, out);
    case LLVMOr: /* the bits of one side are the sign's at most once */
        return LLVMGetIsDisjoint(value) && read_parts(s, value, by, width, 1, out);
    case LLVMMul:
        return keeps(value, by) && read_product(s, value, by, width, out);
    case LLVMShl:
        return keeps(value, by) && read_shift(s, value, by, width, out);
    case LLVMSExt:
        if (by == BY_ZEROS)
            return false;
        read_value(s, LLVMGetOperand(value, 0), BY_SIGN, width, out);
        return true;
    case LLVMZExt: /* of a number that is not negative, both are the same */
        read_value(s, LLVMGetOperand(value, 0), LLVMGetNNeg(value) ? BY_SIGN : BY_ZEROS, width,
                   out);
        return true;
    default:
        return false;
    }
}

/* Reads a value of its own width (AS_IT_IS) or widened to `width`. */
static void read_value(ir_polynomials *s, LLVMValueRef value, ext by, uint32_t width, sum *out) {
    uint32_t own = width_of(value);
    if (LLVMIsAConstantInt(value) && own <= WIDEST) {
        int64_t number = by == BY_ZEROS ? (int64_t)LLVMConstIntGetZExtValue(value)
                                        : LLVMConstIntGetSExtValue(value);
        *out = (sum){.constant = wrapped(number, width), .width = width};
        return;
    }
    bool is_open = LLVMIsAInstruction(value) && own <= WIDEST && s->steps > 0 &&
                   LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMIntegerTypeKind;
    s->steps -= s->steps > 0;
    if (!is_open || !read_insn(s, value, by, width, out))
        read_whole(s, value, by, width, out);
}

/* ---- addresses --------------------------------------------------------------------------------
 */

static LLVMOpcode opcode_of(LLVMValueRef value) {
    if (LLVMIsAInstruction(value))
        return LLVMGetInstructionOpcode(value);
    return LLVMIsAConstantExpr(value) ? LLVMGetConstOpcode(value) : LLVMRet;
}

static bool add_index(ir_polynomials *s, LLVMValueRef index, uint64_t bytes, sum *to) {
    sum part;
    read_value(s, index, width_of(index) == WIDEST ? AS_IT_IS : BY_SIGN, WIDEST, &part);
    return bytes <= INT64_MAX && add_sum(to, &part, (int64_t)bytes);
}

static bool add_step(ir_polynomials *s, LLVMValueRef step, sum *to) {
    LLVMTypeRef type = LLVMGetGEPSourceElementType(step);
    if (!add_index(s, LLVMGetOperand(step, 1), LLVMABISizeOfType(s->layout, type), to))
        return false;
    for (unsigned i = 1; i < LLVMGetNumIndices(step); i++) {
        LLVMValueRef index = LLVMGetOperand(step, i + 1);
        if (LLVMGetTypeKind(type) == LLVMStructTypeKind) {
            unsigned member = (unsigned)LLVMConstIntGetZExtValue(index);
            to->constant += (int64_t)LLVMOffsetOfElement(s->layout, type, member);
            type = LLVMStructGetTypeAtIndex(type, member);
            continue;
        }
        if (LLVMGetTypeKind(type) != LLVMArrayTypeKind)
            return false;
        type = LLVMGetElementType(type);
        if (!add_index(s, index, LLVMABISizeOfType(s->layout, type), to))
            return false;
    }
    return true;
}

bool ir_polynomials_spot(ir_polynomials *s, LLVMValueRef pointer, ir_spot *out) {
    sum all = {.width = WIDEST}, base;
    s->steps = MOST_STEPS;
    for (;; pointer = LLVMGetOperand(pointer, 0)) {
        LLVMOpcode op = opcode_of(pointer);
        sum next = all;
        if (op == LLVMGetElementPtr && add_step(s, pointer, &next))
            all = next;
        else if (op != LLVMAddrSpaceCast && op != LLVMBitCast)
            break;
    }
    set_factor(&base, factor_number(s, pointer, IR_NONE, 0, AS_IT_IS, WIDEST), WIDEST);
    *out = (ir_spot){IR_NONE, 0};
    if (add_sum(&all, &base, 1))
        *out = (ir_spot){sum_number(s, &all), all.constant};
    return !s->failed;
}

bool ir_polynomials_difference(ir_polynomials *s, LLVMValueRef left, LLVMValueRef right,
                               bool is_signed, ir_spot *out) {
    sum all, part;
    ext by = is_signed ? BY_SIGN : BY_ZEROS;
    *out = (ir_spot){IR_NONE, 0};
    if (LLVMGetTypeKind(LLVMTypeOf(left)) != LLVMIntegerTypeKind || width_of(left) > WIDEST / 2)
        return true;
    s->steps = MOST_STEPS;
    read_value(s, left, by, WIDEST, &all);
    read_value(s, right, by, WIDEST, &part);
    if (add_sum(&all, &part, -1))
        *out = (ir_spot){sum_number(s, &all), all.constant};
    return !s->failed;
}

/* Whether a value is not negative by the instruction that makes it. */
static bool is_natural(LLVMValueRef value) {
    if (!value || !LLVMIsAInstruction(value))
        return false;
    LLVMValueRef right = LLVMGetNumOperands(value) > 1 ? LLVMGetOperand(value, 1) : NULL;
    bool by_constant = right && LLVMIsAConstantInt(right);
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMAnd:
        return by_constant && LLVMConstIntGetSExtValue(right) >= 0;
    case LLVMLShr:
        return by_constant && LLVMConstIntGetZExtValue(right) > 0;
    case LLVMURem:
        return by_constant && LLVMConstIntGetSExtValue(right) > 0;
    case LLVMZExt:
        return true;
    case LLVMCall: /* indices and sizes of threads and blocks */
        return strncmp(ir_call_name(value), "llvm.nvvm.read.ptx.sreg.tid.", 28) == 0 ||
               strncmp(ir_call_name(value), "llvm.nvvm.read.ptx.sreg.ctaid.", 30) == 0;
    default:
        return false;
    }
}

/* Whether a factor is not negative: a value of its own, or one that is widened. */
static bool is_natural_factor(const ir_polynomials *s, uint32_t number) {
    const factor *f = item_at(&s->factors, number);
    if (f->sum == IR_NONE)
        return is_natural(f->value);
    if (f->by == BY_ZEROS)
        return true;
    const key *narrow = item_at(&s->sums, f->sum);
    const product *p = narrow->count == 1 ? item_at(&s->products, narrow->terms[0]) : NULL;
    return p && f->constant == 0 && p->times == 1 && p->count == 1 &&
           is_natural_factor(s, p->factors[0]);
}

/* Subtracts the terms of sum `number` from a sum, or adds them. */
static bool add_terms(const ir_polynomials *s, uint32_t number, int64_t times, sum *to) {
    const key *k = item_at(&s->sums, number);
    for (uint32_t t = 0; t < k->count; t++) {
        product p = *(const product *)item_at(&s->products, k->terms[t]);
        p.times = product_of_two(p.times, times, to->width);
        if (!add_product(to, &p))
            return false;
    }
    return true;
}

bool ir_polynomials_at_most(const ir_polynomials *s, const ir_spot *a, const ir_spot *b) {
    sum beside = {.width = WIDEST};
    if (a->sum == b->sum)
        return a->constant <= b->constant;
    if (!add_terms(s, a->sum, 1, &beside) || !add_terms(s, b->sum, -1, &beside))
        return false;
    for (uint32_t t = 0; t < beside.count; t++) {
        const product *p = &beside.terms[t];
        bool natural = p->times < 0;
        for (uint32_t i = 0; i < p->count; i++)
            natural = natural && is_natural_factor(s, p->factors[i]);
        if (!natural)
            return false;
    }
    return a->constant <= b->constant;
}

uint32_t ir_polynomials_count(const ir_polynomials *s) {
    return s->sums.count;
}

ir_polynomials *ir_polynomials_new(LLVMModuleRef module, ev_arena *arena) {
    ir_polynomials *s = EV_NEW(arena, ir_polynomials);
    if (!s)
        return NULL;
    s->arena = arena;
    s->layout = LLVMGetModuleDataLayout(module);
    s->factors.size = sizeof(factor);
    s->products.size = sizeof(product);
    s->sums.size = sizeof(key);
    return s;
}
