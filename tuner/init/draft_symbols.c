/* The __constant__ variables of a draft that the host fills: those without initial values that
 * device code uses. */
#include "tuner/init/draft.h"

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

ev_status draft_keep_symbols(draft *d, const char *ptx, size_t bytes, ev_error *err) {
    vm_module *module = NULL;
    vm_variable v;
    size_t kept = 0;
    EV_TRY(vm_module_load(ptx, bytes, d->kernel->name, &module, err));
    for (size_t i = 0; i < d->symbol_count; i++) {
        if (vm_module_variable(module, d->symbols[i].name, &v))
            d->symbols[kept++] = d->symbols[i];
    }
    d->symbol_count = kept;
    vm_module_free(module);
    return EV_OK;
}
