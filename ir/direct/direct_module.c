/* The text around the body: header, variables, parameters of the entry, performance directives.
 *
 * The layout follows PTX ISA, "Directives". Variables are printed in the order of the module,
 * because that order gives shared variables their addresses. The directives .maxntid,
 * .minnctapersm and .maxnreg come from nvvm.annotations. */
#include "ir/direct/direct_internal.h"

#include <string.h>

/* ---- parameters -------------------------------------------------------------------------------
 */

const char *direct_param_load(const direct_leaf *leaf) {
    if (leaf->cls == DIRECT_F)
        return "ld.param.f32";
    if (leaf->cls == DIRECT_FD)
        return "ld.param.f64";
    if (leaf->is_float)
        return "ld.param.b16";
    if (leaf->bits <= 8)
        return "ld.param.u8";
    if (leaf->bits == 16)
        return "ld.param.u16";
    if (leaf->bits == 32)
        return "ld.param.u32";
    return "ld.param.u64";
}

const char *direct_type_name(const direct_leaf *leaf) {
    return direct_param_load(leaf) + sizeof "ld.param" - 1;
}

static void print_parameters(ir_direct *d, ev_str *out) {
    ev_str_printf(out, ".visible .entry %s(", d->name);
    for (uint32_t i = 0; i < d->argument_count; i++) {
        direct_leaf leaf;
        direct_leaf_of(LLVMTypeOf(d->values[i].value), &leaf);
        ev_str_printf(out, "%s\n\t.param %s %s_param_%u", i ? "," : "", direct_type_name(&leaf),
                      d->name, i);
    }
    ev_str_append(out, "\n)\n");
}

/* ---- variables --------------------------------------------------------------------------------
 */

static void write_bytes(ir_direct *d, LLVMValueRef value, unsigned char *to);

static void write_members(ir_direct *d, LLVMValueRef value, LLVMTypeRef type, unsigned char *to) {
    bool is_struct = LLVMGetTypeKind(type) == LLVMStructTypeKind;
    unsigned count;
    if (is_struct)
        count = LLVMCountStructElementTypes(type);
    else if (LLVMGetTypeKind(type) == LLVMVectorTypeKind)
        count = LLVMGetVectorSize(type);
    else
        count = (unsigned)LLVMGetArrayLength2(type);
    for (unsigned i = 0; i < count; i++) {
        uint64_t at = is_struct ? LLVMOffsetOfElement(d->layout, type, i)
                                : i * LLVMABISizeOfType(d->layout, LLVMGetElementType(type));
        LLVMValueRef member = LLVMGetAggregateElement(value, i);
        if (member)
            write_bytes(d, member, to + at);
    }
}

static void write_bytes(ir_direct *d, LLVMValueRef value, unsigned char *to) {
    LLVMTypeRef type = LLVMTypeOf(value);
    direct_leaf leaf;
    if (LLVMIsUndef(value) || LLVMIsNull(value))
        return;
    if (!direct_leaf_of(type, &leaf)) {
        write_members(d, value, type, to);
        return;
    }
    direct_operand part = direct_part(d, value);
    if (part.kind != DIRECT_INT)
        direct_refuse(d, value, "a variable that begins as this");
    memcpy(to, &part.imm, (leaf.bits + 7u) / 8); /* PTX is little-endian, like the host */
}

static void print_initial(ir_direct *d, LLVMValueRef variable, uint64_t size, ev_str *out) {
    LLVMValueRef initial = LLVMGetInitializer(variable);
    if (!initial || LLVMIsUndef(initial) || LLVMIsNull(initial))
        return;
    unsigned char *bytes = ev_arena_alloc(d->arena, size + 1);
    if (!bytes) {
        direct_no_memory(d);
        return;
    }
    write_bytes(d, initial, bytes);
    ev_str_append(out, " = {");
    for (uint64_t i = 0; i < size; i++)
        ev_str_printf(out, "%s%u", i ? ", " : "", bytes[i]);
    ev_str_append(out, "}");
}

static void print_variable(ir_direct *d, const direct_symbol *symbol, ev_str *out) {
    static const char *const spaces[] = {"", ".global", "", ".shared", ".const"};
    LLVMValueRef variable = symbol->variable;
    LLVMLinkage linkage = LLVMGetLinkage(variable);
    bool local = linkage == LLVMInternalLinkage || linkage == LLVMPrivateLinkage;
    if (symbol->space > 4 || symbol->space == 2 || LLVMIsThreadLocal(variable)) {
        direct_refuse(d, variable, "a variable of this kind");
        return;
    }
    uint64_t size = LLVMABISizeOfType(d->layout, LLVMGlobalGetValueType(variable));
    bool is_extern = LLVMIsDeclaration(variable);
    const char *seen = ".visible ";
    if (is_extern)
        seen = ".extern ";
    else if (local || symbol->space == 3)
        seen = "";
    ev_str_printf(out, "%s%s .align %u .b8 %s[", seen, spaces[symbol->space],
                  LLVMPreferredAlignmentOfGlobal(d->layout, variable), symbol->name);
    if (size > 0)
        ev_str_printf(out, "%llu", (unsigned long long)size);
    ev_str_append(out, "]");
    if (symbol->space != 3)
        print_initial(d, variable, size, out);
    ev_str_append(out, ";\n");
}

/* In the module's order, which gives shared variables their addresses. */
static void print_variables(ir_direct *d, bool inside, ev_str *out) {
    for (LLVMValueRef v = LLVMGetFirstGlobal(d->module); v; v = LLVMGetNextGlobal(v))
        for (uint32_t i = 0; i < d->symbols.count; i++) {
            const direct_symbol *symbol = &d->symbols.items[i];
            bool local = symbol->space == 3 && !LLVMIsDeclaration(v);
            if (symbol->variable != v || local != inside)
                continue;
            if (inside)
                ev_str_append(out, "\t");
            print_variable(d, symbol, out);
        }
}

/* ---- directives -------------------------------------------------------------------------------
 */

enum { ANNOTATION_OPERANDS = 64, ANNOTATIONS = 64 };

/* The value in nvvm.annotations for the entry, or `otherwise`. */
static uint64_t annotation(ir_direct *d, const char *name, uint64_t otherwise) {
    LLVMValueRef nodes[ANNOTATIONS], operands[ANNOTATION_OPERANDS];
    unsigned count = LLVMGetNamedMetadataNumOperands(d->module, "nvvm.annotations");
    if (count > ANNOTATIONS) {
        direct_refuse(d, NULL, "so many annotations");
        return otherwise;
    }
    LLVMGetNamedMetadataOperands(d->module, "nvvm.annotations", nodes);
    for (unsigned i = 0; i < count; i++) {
        unsigned size = LLVMGetMDNodeNumOperands(nodes[i]);
        if (size < 3 || size > ANNOTATION_OPERANDS)
            continue;
        LLVMGetMDNodeOperands(nodes[i], operands);
        for (unsigned k = 1; k + 1 < size && operands[0] == d->function; k += 2) {
            unsigned length = 0;
            const char *key = operands[k] && LLVMIsAMDString(operands[k])
                                  ? LLVMGetMDString(operands[k], &length)
                                  : "";
            if (length == strlen(name) && memcmp(key, name, length) == 0)
                return LLVMConstIntGetZExtValue(operands[k + 1]);
        }
    }
    return otherwise;
}

/* Prints all three dimensions as soon as one is given. */
static void print_triple(ir_direct *d, const char *directive, const char *const names[3],
                         ev_str *out) {
    unsigned long long sizes[3];
    bool given = false;
    for (unsigned i = 0; i < 3; i++) {
        sizes[i] = annotation(d, names[i], UINT64_MAX);
        given |= sizes[i] != UINT64_MAX;
        sizes[i] = sizes[i] == UINT64_MAX ? 1 : sizes[i];
    }
    if (given)
        ev_str_printf(out, ".%s %llu, %llu, %llu\n", directive, sizes[0], sizes[1], sizes[2]);
}

static void print_directives(ir_direct *d, ev_str *out) {
    static const char *const required[] = {"reqntidx", "reqntidy", "reqntidz"};
    static const char *const most[] = {"maxntidx", "maxntidy", "maxntidz"};
    print_triple(d, "reqntid", required, out);
    print_triple(d, "maxntid", most, out);
    static const char *const single[][2] = {{"minctasm", "minnctapersm"}, {"maxnreg", "maxnreg"}};
    for (size_t i = 0; i < 2; i++) {
        uint64_t value = annotation(d, single[i][0], UINT64_MAX);
        if (value != UINT64_MAX)
            ev_str_printf(out, ".%s %llu\n", single[i][1], (unsigned long long)value);
    }
    static const char *const clusters[] = {"maxclusterrank", "cluster_dim_x", "cluster_dim_y",
                                           "cluster_dim_z"};
    for (size_t i = 0; i < 4; i++)
        if (annotation(d, clusters[i], UINT64_MAX) != UINT64_MAX)
            direct_refuse(d, NULL, "clusters");
}

/* ---- the frame --------------------------------------------------------------------------------
 */

void direct_print_head(ir_direct *d, ev_str *out) {
    int version = ir_base_ptx_version(d->base);
    ev_str_printf(out, ".version %d.%d\n.target sm_%d\n.address_size 64\n\n", version / 10,
                  version % 10, d->base->sm);
    print_variables(d, false, out);
    print_parameters(d, out);
    print_directives(d, out);
    ev_str_append(out, "{\n");
    static const char *const classes[][2] = {{"pred", "%p"}, {"b16", "%rs"}, {"b32", "%r"},
                                             {"b64", "%rd"}, {"f32", "%f"},  {"f64", "%fd"}};
    for (unsigned c = 0; c < DIRECT_CLASS_COUNT; c++)
        if (d->numbers[c] > 1) /* more than the spare one */
            ev_str_printf(out, "\t.reg .%s \t%s<%u>;\n", classes[c][0], classes[c][1],
                          d->numbers[c] + 1);
    print_variables(d, true, out);
}
