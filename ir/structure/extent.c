/* Extent: writes an expression of a launch plan (base/expr.h) as instructions, so that a kernel
 * knows the grid that it was written for. Names are scalar arguments of the kernel or macros; a
 * launch's expressions are whole and not negative. */
#include "ir/structure/structure_internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const ir_structure *s;
    LLVMBuilderRef builder;
    LLVMTypeRef type;
    const char *at;
    unsigned depth;
} reader;

static LLVMValueRef read_sum(reader *r);

static bool accept(reader *r, char c) {
    while (*r->at == ' ' || *r->at == '\t')
        r->at++;
    if (*r->at != c)
        return false;
    r->at++;
    return true;
}

static LLVMValueRef constant(const reader *r, int64_t value) {
    return LLVMConstInt(r->type, (unsigned long long)value, true);
}

static bool is_name(const char *name, const char *text, size_t length) {
    return strlen(name) == length && strncmp(name, text, length) == 0;
}

static LLVMValueRef find_name(const reader *r, const char *text, size_t length) {
    const ir_source *source = r->s->source;
    for (size_t i = 0; i < source->argument_count; i++) {
        if (!is_name(source->arguments[i], text, length) || i >= LLVMCountParams(r->s->function))
            continue;
        LLVMValueRef param = LLVMGetParam(r->s->function, (unsigned)i);
        if (LLVMGetTypeKind(LLVMTypeOf(param)) != LLVMIntegerTypeKind)
            return NULL;
        bool is_unsigned = i < 64 && (source->unsigned_arguments >> i & 1) != 0;
        return LLVMBuildIntCast2(r->builder, param, r->type, !is_unsigned, "");
    }
    for (size_t i = 0; i < source->name_count; i++) {
        if (is_name(source->names[i].name, text, length))
            return constant(r, source->names[i].value);
    }
    return NULL;
}

static LLVMValueRef choose(const reader *r, LLVMIntPredicate p, LLVMValueRef a, LLVMValueRef b) {
    LLVMValueRef first = LLVMBuildICmp(r->builder, p, a, b, "");
    return LLVMBuildSelect(r->builder, first, a, b, "");
}

/* As base/expr.c: one more where the rest is not 0 and has the divisor's sign. */
static LLVMValueRef ceil_div(const reader *r, LLVMValueRef a, LLVMValueRef b) {
    LLVMValueRef zero = constant(r, 0);
    LLVMValueRef quotient = LLVMBuildSDiv(r->builder, a, b, "");
    LLVMValueRef rest = LLVMBuildSRem(r->builder, a, b, "");
    LLVMValueRef is_left = LLVMBuildICmp(r->builder, LLVMIntNE, rest, zero, "");
    LLVMValueRef signs = LLVMBuildXor(r->builder, rest, b, "");
    LLVMValueRef alike = LLVMBuildICmp(r->builder, LLVMIntSGE, signs, zero, "");
    LLVMValueRef more = LLVMBuildAnd(r->builder, is_left, alike, "");
    return LLVMBuildAdd(r->builder, quotient, LLVMBuildZExt(r->builder, more, r->type, ""), "");
}

static LLVMValueRef read_call(reader *r, const char *name, size_t length) {
    LLVMValueRef a = read_sum(r);
    LLVMValueRef b = a && accept(r, ',') ? read_sum(r) : NULL;
    if (!b || !accept(r, ')'))
        return NULL;
    if (is_name("ceil_div", name, length))
        return ceil_div(r, a, b);
    if (is_name("div", name, length))
        return LLVMBuildSDiv(r->builder, a, b, "");
    if (is_name("min", name, length))
        return choose(r, LLVMIntSLT, a, b);
    if (is_name("max", name, length))
        return choose(r, LLVMIntSGT, a, b);
    return NULL;
}

static LLVMValueRef read_primary(reader *r) {
    enum { DEEPEST = 32 };
    LLVMValueRef value = NULL;
    if (++r->depth > DEEPEST)
        return NULL;
    if (accept(r, '(')) {
        value = read_sum(r);
        value = value && accept(r, ')') ? value : NULL;
    } else if (isdigit((unsigned char)*r->at)) {
        char *end = NULL;
        value = constant(r, strtoll(r->at, &end, 10));
        r->at = end;
        if (*end == '.' || isalpha((unsigned char)*end))
            value = NULL;
    } else if (isalpha((unsigned char)*r->at) || *r->at == '_') {
        const char *name = r->at;
        while (isalnum((unsigned char)*r->at) || *r->at == '_')
            r->at++;
        size_t length = (size_t)(r->at - name);
        value = accept(r, '(') ? read_call(r, name, length) : find_name(r, name, length);
    }
    r->depth--;
    return value;
}

static LLVMValueRef read_product(reader *r) {
    LLVMValueRef value = read_primary(r);
    while (value) {
        LLVMOpcode op = LLVMMul;
        if (accept(r, '/'))
            op = LLVMSDiv;
        else if (accept(r, '%'))
            op = LLVMSRem;
        else if (!accept(r, '*'))
            break;
        LLVMValueRef right = read_primary(r);
        value = right ? LLVMBuildBinOp(r->builder, op, value, right, "") : NULL;
    }
    return value;
}

static LLVMValueRef read_sum(reader *r) {
    LLVMValueRef value = read_product(r);
    while (value) {
        LLVMOpcode op = LLVMAdd;
        if (accept(r, '-'))
            op = LLVMSub;
        else if (!accept(r, '+'))
            break;
        LLVMValueRef right = read_product(r);
        value = right ? LLVMBuildBinOp(r->builder, op, value, right, "") : NULL;
    }
    return value;
}

static bool is_alike(const launch_rule *a, const launch_rule *b) {
    for (int axis = 0; axis < 3; axis++) {
        if (strcmp(a->grid[axis], b->grid[axis]) != 0 ||
            strcmp(a->block[axis], b->block[axis]) != 0)
            return false;
    }
    return true;
}

const launch_rule *ir_structure_rule(const ir_structure *s) {
    if (!s->plan)
        return NULL;
    const launch_rule *rule = &s->plan->launches[s->plan->main];
    for (size_t i = 0; i < s->plan->launch_count; i++) {
        const launch_rule *other = &s->plan->launches[i];
        if (strcmp(other->entry, rule->entry) == 0 && !is_alike(rule, other))
            return NULL;
    }
    return rule;
}

LLVMValueRef ir_extent_write(const ir_structure *s, LLVMBuilderRef builder, const char *text) {
    LLVMTypeRef type = LLVMInt64TypeInContext(s->base->context);
    reader r = {.s = s, .builder = builder, .type = type, .at = text};
    LLVMValueRef value = read_sum(&r);
    accept(&r, ' ');
    return value && *r.at == '\0' ? value : NULL;
}
