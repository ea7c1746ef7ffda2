/* Values: what each register of the PTX costs in a real register file.
 *
 * PTX names every value; the assembler does not keep every one. Parameters are operands in constant
 * memory and literals are part of the instruction: no register. A value plus a literal that only
 * serves as an address is the other value with an offset in the access; a zero-extended index is
 * the index itself. 64-bit addresses that lead into shared, local or constant memory alone are kept
 * as 32 bits. Read off what NVIDIA's assembler makes of the shipped kernels; `evoke bench model
 * --only registers` says how well it fits. */
#include "fitness/model/registers.h"

#include <stdlib.h>
#include <string.h>

typedef enum value_kind {
    VALUE_UNSEEN,
    VALUE_LITERAL,   /* known when the code is assembled */
    VALUE_PARAMETER, /* an operand in constant memory */
    VALUE_OWN,
} value_kind;

typedef struct value {
    uint8_t kind;
    bool is_single; /* written once, by an instruction without a guard */
    bool is_wide;   /* 64 bits that are needed as such */
    bool is_plain;  /* used for something else than an address */
} value;

typedef struct work {
    const vm_module *module;
    const model_insn *insns; /* of the entry's first on */
    const uint16_t *operands;
    uint32_t count;
    value *values;
    model_values *out;
} work;

/* ---- kinds ---- */

static const uint16_t *uses_of(const work *w, const model_insn *insn) {
    return w->operands + insn->operands;
}

static const uint16_t *defs_of(const work *w, const model_insn *insn) {
    return w->operands + insn->operands + insn->use_count;
}

/* A load of constant memory at an address that is known when the code is assembled: arithmetic
 * takes such a value as its operand. */
static bool is_fixed_constant(const work *w, const model_insn *insn) {
    bool is_fixed = insn->is_access && insn->space == VM_SPACE_CONST && insn->def_count > 0;
    for (unsigned i = 0; i < insn->use_count && is_fixed; i++)
        is_fixed = w->values[uses_of(w, insn)[i]].kind == VALUE_LITERAL;
    return is_fixed;
}

static value_kind kind_of(const work *w, const model_insn *insn) {
    if ((insn->traits & MODEL_IS_PARAMETER) != 0)
        return VALUE_PARAMETER;
    bool is_move = (insn->traits & MODEL_MOVES) != 0;
    if (is_move && insn->use_count == 0 && insn->pipe != VM_PIPE_CONSTANT)
        return VALUE_LITERAL;
    if (is_fixed_constant(w, insn))
        return VALUE_PARAMETER;
    if (!(is_move || (insn->traits & MODEL_CONVERTS_ADDRESS) != 0) || insn->use_count == 0)
        return VALUE_OWN;
    value_kind kind = VALUE_LITERAL;
    for (unsigned i = 0; i < insn->use_count; i++) {
        value_kind used = (value_kind)w->values[uses_of(w, insn)[i]].kind;
        kind = used == VALUE_UNSEEN || used > kind ? used : kind;
    }
    return kind == VALUE_UNSEEN ? VALUE_OWN : kind;
}

static void find_kinds(const work *w) {
    for (uint32_t i = 0; i < w->count; i++) {
        const model_insn *insn = &w->insns[i];
        value_kind kind = kind_of(w, insn);
        for (unsigned d = 0; d < insn->def_count; d++) {
            value *v = &w->values[defs_of(w, insn)[d]];
            v->is_single = v->kind == VALUE_UNSEEN && !insn->is_conditional;
            v->kind = (uint8_t)(v->kind == VALUE_UNSEEN ? kind : VALUE_OWN);
        }
    }
}

/* ---- addresses ---- */

/* Index of the address among an access's uses: the first that is no predicate. */
static unsigned address_of(const work *w, const model_insn *insn) {
    unsigned at = 0;
    while (at < insn->use_count && vm_module_register_words(w->module, uses_of(w, insn)[at]) == 0)
        at++;
    return at;
}

/* The one register that an addition works on beside literals; UINT32_MAX: it is no such. */
static uint32_t offset_from(const work *w, const model_insn *insn) {
    uint32_t from = UINT32_MAX;
    if ((insn->traits & MODEL_ADDS) == 0)
        return UINT32_MAX;
    for (unsigned i = 0; i < insn->use_count; i++) {
        uint16_t reg = uses_of(w, insn)[i];
        if (w->values[reg].kind == VALUE_LITERAL)
            continue;
        if (from != UINT32_MAX)
            return UINT32_MAX;
        from = reg;
    }
    return from;
}

/* Marks values that are used for something else than the address of an access or, once more, a
 * sum with a literal. Backwards, so that sums of sums are seen before what they are made of. */
static void find_plain(const work *w) {
    for (uint32_t i = w->count; i-- > 0;) {
        const model_insn *insn = &w->insns[i];
        unsigned address = insn->is_access ? address_of(w, insn) : UINT32_MAX;
        bool passes =
            offset_from(w, insn) != UINT32_MAX && !w->values[defs_of(w, insn)[0]].is_plain;
        for (unsigned u = 0; u < insn->use_count; u++)
            w->values[uses_of(w, insn)[u]].is_plain |= u != address && !passes;
    }
}

static bool reads_low_half(const work *w, const model_insn *insn, unsigned use) {
    if (insn->is_access && use == address_of(w, insn))
        return insn->space == VM_SPACE_SHARED || insn->space == VM_SPACE_LOCAL ||
               insn->space == VM_SPACE_CONST;
    if ((insn->traits & MODEL_TAKES_LOW) != 0)
        return true;
    return (insn->traits & MODEL_NARROWS) != 0 && insn->def_count == 1 &&
           !w->values[defs_of(w, insn)[0]].is_wide;
}

static void find_wide(const work *w) {
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = w->count; i-- > 0;) {
            const model_insn *insn = &w->insns[i];
            for (unsigned u = 0; u < insn->use_count; u++) {
                value *v = &w->values[uses_of(w, insn)[u]];
                if (v->is_wide || reads_low_half(w, insn, u))
                    continue;
                v->is_wide = changed = true;
            }
        }
    }
}

/* ---- the result ---- */

/* The register that holds the value of `insn`'s result, where that is another's. */
static uint32_t source_of(const work *w, const model_insn *insn) {
    if (insn->def_count != 1 || !w->values[defs_of(w, insn)[0]].is_single)
        return UINT32_MAX;
    uint32_t from = UINT32_MAX;
    if (!w->values[defs_of(w, insn)[0]].is_plain)
        from = offset_from(w, insn);
    if ((insn->traits & MODEL_EXTENDS) != 0 && insn->use_count == 1)
        from = uses_of(w, insn)[0];
    if (from == UINT32_MAX || !w->values[from].is_single)
        return UINT32_MAX;
    return from;
}

static void fill(const work *w, uint32_t registers) {
    for (uint32_t r = 0; r < registers; r++) {
        const value *v = &w->values[r];
        unsigned words = vm_module_register_words(w->module, r);
        w->out->home[r] = (uint16_t)r;
        w->out->words[r] = (uint8_t)(words == 2 && !v->is_wide ? 1 : words);
        if (v->kind == VALUE_LITERAL || v->kind == VALUE_PARAMETER)
            w->out->words[r] = 0;
    }
    for (uint32_t i = 0; i < w->count; i++) {
        uint32_t from = source_of(w, &w->insns[i]);
        if (from == UINT32_MAX)
            continue;
        uint16_t to = defs_of(w, &w->insns[i])[0];
        w->out->home[to] = w->out->home[from];
        w->out->words[to] = 0;
    }
}

ev_status model_values_make(const vm_module *module, const model_insns *insns, uint32_t first_pc,
                            uint32_t count, model_values *out, ev_error *err) {
    uint32_t registers = vm_module_register_count(module);
    *out = (model_values){calloc((size_t)registers + 64, sizeof *out->words),
                          calloc((size_t)registers + 64, sizeof *out->home)};
    value *values = calloc((size_t)registers + 1, sizeof *values);
    if (out->words == NULL || out->home == NULL || values == NULL) {
        free(values);
        model_values_free(out);
        return ev_fail_memory(err, (size_t)registers * sizeof *values);
    }
    work w = {module, insns->insns + first_pc, insns->operands, count, values, out};
    find_kinds(&w);
    find_plain(&w);
    find_wide(&w);
    fill(&w, registers);
    free(values);
    return EV_OK;
}

void model_values_free(model_values *values) {
    free(values->words);
    free(values->home);
    *values = (model_values){0};
}
