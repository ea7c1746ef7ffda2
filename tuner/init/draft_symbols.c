/* The __constant__ variables of a draft that the host fills: those without initial values that
 * device code uses. */
#include "tuner/init/draft.h"

#include <ctype.h>
#include <string.h>

static bool is_used(const cuda_text *t, const char *name) {
    for (size_t f = 0; f < t->function_count; f++) {
        const cuda_function *of = &t->functions[f];
        for (size_t i = of->body.first; (of->is_kernel || of->is_device) && i < of->body.end; i++) {
            if (cuda_token_is(t, i, name))
                return true;
        }
    }
    return false;
}

/* Reads "float weights[3][3]" in [first, end). */
static void read_symbol(draft *d, size_t first, size_t end) {
    const cuda_text *t = d->t;
    draft_symbol s = {0};
    ev_str type = EV_STR_EMPTY;
    size_t name = first;
    for (size_t i = first; i < end && !cuda_token_is(t, i, "["); i++)
        name = t->tokens[i].kind == CUDA_TOKEN_NAME ? i : name;
    for (size_t i = first; i < name; i++) {
        if (!draft_is_qualifier(t, i) && !cuda_token_is(t, i, "static"))
            ev_str_printf(&type, "%s%s", type.length > 0 ? " " : "", cuda_token_text(t, i));
    }
    s.name = cuda_token_text(t, name);
    size_t behind = name + 1;
    s.count = draft_length(d, &behind, end);
    if (s.count > 0 && behind == end && d->symbol_count < DRAFT_SYMBOLS && is_used(t, s.name) &&
        draft_type(d, ev_str_text(&type), &s.type, &s.lanes))
        d->symbols[d->symbol_count++] = s;
    ev_str_free(&type);
}

void draft_find_symbols(draft *d) {
    const cuda_text *t = d->t;
    for (size_t i = 0; i + 1 < t->token_count; i++) {
        size_t end = i + 1;
        bool has_value = false;
        if (!cuda_token_is(t, i, "__constant__"))
            continue;
        for (; end < t->token_count && !cuda_token_is(t, end, ";"); end++)
            has_value |= cuda_token_is(t, end, "=") || cuda_token_is(t, end, "{");
        if (!has_value)
            read_symbol(d, i + 1, end);
    }
    for (size_t i = 0; i < d->symbol_count; i++)
        draft_note(d, "the host fills %s: its data are guessed", d->symbols[i].name);
}

static bool is_word(char c) {
    return isalnum((unsigned char)c) != 0 || c == '_' || c == '$';
}

/* Whether an instruction of the module has the name as a word. */
static bool has_instruction(const vm_module *m, const char *name) {
    size_t length = strlen(name);
    for (size_t pc = 0; pc < vm_module_insn_count(m); pc++) {
        vm_insn_info info;
        size_t bytes = 0;
        vm_module_info(m, (uint32_t)pc, &info);
        const char *line = vm_module_line(m, info.line, &bytes), *end = line + bytes;
        for (const char *at = line; (at = memmem(at, (size_t)(end - at), name, length)) != NULL;
             at++) {
            bool begins = at == line || !is_word(at[-1]);
            if (begins && (at + length == end || !is_word(at[length])))
                return true;
        }
    }
    return false;
}

ev_status draft_keep_symbols(draft *d, const char *ptx, size_t bytes, ev_error *err) {
    vm_module *module = NULL;
    size_t kept = 0;
    EV_TRY(vm_module_load(ptx, bytes, d->kernel->name, &module, err));
    for (size_t i = 0; i < d->symbol_count; i++) {
        if (has_instruction(module, d->symbols[i].name))
            d->symbols[kept++] = d->symbols[i];
    }
    d->symbol_count = kept;
    vm_module_free(module);
    return EV_OK;
}
