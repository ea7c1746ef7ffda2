/* The entry: the kernel of a module that a task names, by its name in the PTX or in the source. */
#include "ir/internal.h"

#include <llvm-c/DebugInfo.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool is_string(LLVMValueRef operand, const char *text) {
    unsigned length = 0;
    const char *have = operand && LLVMIsAMDString(operand) ? LLVMGetMDString(operand, &length) : "";
    return strlen(text) == length && memcmp(have, text, length) == 0;
}

enum { ANNOTATION_OPERANDS = 64, PTX_KERNEL_CC = 71 };

/* Whether nvvm.annotations or the calling convention makes a function a kernel. */
static bool is_kernel(LLVMModuleRef module, LLVMValueRef function) {
    if (LLVMGetFunctionCallConv(function) == PTX_KERNEL_CC)
        return true;
    unsigned count = LLVMGetNamedMetadataNumOperands(module, "nvvm.annotations");
    LLVMValueRef *nodes = calloc(count + 1, sizeof(LLVMValueRef));
    bool found = false;
    if (nodes)
        LLVMGetNamedMetadataOperands(module, "nvvm.annotations", nodes);
    for (unsigned i = 0; nodes && i < count && !found; i++) {
        LLVMValueRef operands[ANNOTATION_OPERANDS];
        unsigned size = LLVMGetMDNodeNumOperands(nodes[i]);
        if (size < 3 || size > ANNOTATION_OPERANDS)
            continue;
        LLVMGetMDNodeOperands(nodes[i], operands);
        for (unsigned k = 1; k + 1 < size && operands[0] == function; k += 2)
            found |= is_string(operands[k], "kernel");
    }
    free(nodes);
    return found;
}

static bool is_defined(LLVMValueRef function) {
    return LLVMCountBasicBlocks(function) > 0;
}

/* ---- names -------------------------------------------------------------------------------------
 */

static const char *name_of(LLVMValueRef function) {
    size_t length;
    return LLVMGetValueName2(function, &length);
}

/* Reads "3add" of a mangled name: the part's begin and length. Returns the text behind it; NULL: no
 * such part. */
static const char *read_part(const char *at, const char **part, size_t *length) {
    if (!isdigit((unsigned char)*at))
        return NULL;
    char *begin;
    *length = strtoul(at, &begin, 10);
    *part = begin;
    return strlen(begin) >= *length ? begin + *length : NULL;
}

/* The name of a kernel as its source has it, without namespaces, template arguments and parameters:
 * "add" of "add", "_Z3addPKfPfi", "_ZN4math3addEPKfPfi" and "_Z3addIfEvPKT_" (Itanium C++ ABI,
 * 5.1). */
static void source_name(const char *mangled, const char **name, size_t *length) {
    *name = mangled;
    *length = strlen(mangled);
    if (strncmp(mangled, "_Z", 2) != 0)
        return;
    const char *at = mangled + 2;
    bool is_nested = *at == 'N';
    at += is_nested || *at == 'L'; /* L: a static function */
    do {
        const char *part;
        size_t part_length;
        at = read_part(at, &part, &part_length);
        if (at != NULL) {
            *name = part;
            *length = part_length;
        }
    } while (is_nested && at != NULL && isdigit((unsigned char)*at));
}

static bool has_source_name(LLVMValueRef function, const char *wanted) {
    const char *name;
    size_t length;
    source_name(name_of(function), &name, &length);
    return strlen(wanted) == length && strncmp(name, wanted, length) == 0;
}

static size_t skip_blanks(const char *text, size_t at, size_t end) {
    while (at < end && isspace((unsigned char)text[at]))
        at++;
    return at;
}

bool ir_same_instance(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
    size_t i = skip_blanks(a, 0, a_bytes), k = skip_blanks(b, 0, b_bytes);
    while (i < a_bytes && k < b_bytes && a[i] == b[k]) {
        i = skip_blanks(a, i + 1, a_bytes);
        k = skip_blanks(b, k + 1, b_bytes);
    }
    return i == a_bytes && k == b_bytes;
}

/* The name of a function in its debug information, as "scale<float, 4>"; NULL: none. */
static const char *debug_name(LLVMModuleRef module, LLVMValueRef function, unsigned *length) {
    LLVMMetadataRef described = LLVMGetSubprogram(function);
    LLVMValueRef operands[ANNOTATION_OPERANDS];
    if (described == NULL)
        return NULL;
    LLVMValueRef node = LLVMMetadataAsValue(LLVMGetModuleContext(module), described);
    unsigned count = LLVMGetMDNodeNumOperands(node);
    if (count > ANNOTATION_OPERANDS)
        return NULL;
    LLVMGetMDNodeOperands(node, operands);
    for (unsigned i = 0; i < count; i++) { /* the name comes before the mangled one */
        if (operands[i] != NULL && LLVMIsAMDString(operands[i]))
            return LLVMGetMDString(operands[i], length);
    }
    return NULL;
}

/* Whether a function is the instance, by its template arguments. */
static bool is_instance(LLVMModuleRef module, LLVMValueRef function, const char *instance) {
    unsigned length = 0;
    const char *name = debug_name(module, function, &length);
    const char *have = name != NULL ? memchr(name, '<', length) : NULL;
    const char *want = strchr(instance, '<');
    return have != NULL && want != NULL &&
           ir_same_instance(have, length - (size_t)(have - name), want, strlen(want));
}

/* ---- finding -----------------------------------------------------------------------------------
 */

static bool is_candidate(LLVMModuleRef module, LLVMValueRef f, const char *wanted) {
    return is_defined(f) && is_kernel(module, f) && (wanted == NULL || has_source_name(f, wanted));
}

/* Appends the names of all kernels (`wanted` NULL) or of those with that name in the source. */
static void list_kernels(LLVMModuleRef module, const char *wanted, ev_str *names) {
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
        const char *name;
        size_t length;
        source_name(name_of(f), &name, &length);
        if (!is_candidate(module, f, wanted))
            continue;
        unsigned bytes = 0;
        const char *instance = debug_name(module, f, &bytes);
        if (wanted != NULL && instance != NULL && memchr(instance, '<', bytes) != NULL)
            ev_str_printf(names, "%s%.*s", names->length ? ", " : "", (int)bytes, instance);
        else if (wanted != NULL)
            ev_str_printf(names, "%s%s", names->length ? ", " : "", name_of(f));
        else
            ev_str_printf(names, "%s%.*s", names->length ? ", " : "", (int)length, name);
    }
}

static ev_status no_entry(LLVMModuleRef module, const ir_source *source, ev_error *err) {
    ev_str names = EV_STR_EMPTY;
    list_kernels(module, NULL, &names);
    ev_status status = ev_fail(err, EV_BAD, "%s: no kernel \"%s\"; it has: %s", source->path,
                               source->entry, names.length ? ev_str_text(&names) : "none");
    ev_str_free(&names);
    return status;
}

static ev_status many_entries(LLVMModuleRef module, const ir_source *source, ev_error *err) {
    ev_str names = EV_STR_EMPTY;
    list_kernels(module, source->entry, &names);
    ev_status status = ev_fail(err, EV_BAD,
                               "%s: more than one kernel is named \"%s\"; give one of these as "
                               "\"entry\": %s",
                               source->path, source->entry, ev_str_text(&names));
    ev_str_free(&names);
    return status;
}

/* The instance that the source names; NULL: none, or no template is meant. */
static LLVMValueRef find_instance(LLVMModuleRef module, const ir_source *source) {
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
        if (source->instance != NULL && is_candidate(module, f, source->entry) &&
            is_instance(module, f, source->instance))
            return f;
    }
    return NULL;
}

ev_status ir_entry_find(LLVMModuleRef module, const ir_source *source, LLVMValueRef *out,
                        ev_error *err) {
    LLVMValueRef entry = LLVMGetNamedFunction(module, source->entry);
    if (entry && is_candidate(module, entry, NULL)) {
        *out = entry;
        return EV_OK;
    }
    LLVMValueRef found = find_instance(module, source);
    bool is_found = found != NULL;
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f && !is_found;
         f = LLVMGetNextFunction(f)) {
        if (!is_candidate(module, f, source->entry))
            continue;
        if (found)
            return many_entries(module, source, err);
        found = f;
    }
    if (!found || entry)
        return no_entry(module, source, err);
    /* The PTX then has the name that the task knows. */
    LLVMSetValueName2(found, source->entry, strlen(source->entry));
    *out = found;
    return EV_OK;
}
