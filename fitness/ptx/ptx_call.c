/* Calls: their operands, what they must agree with, and the tables that go with indirect calls and
 * branches (.callprototype, .calltargets, .branchtargets, .alias). */
#include "fitness/ptx/ptx_parse.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CALL_VALUES 64
#define MAX_TABLE (1u << 16)

typedef struct system_row {
    const char *name;
    uint32_t ret;
    const char *args; /* a digit each: bytes */
} system_row;

static const system_row systems[] = {
#define PTX_SYSTEM(id, name, ret, args, meaning) [PTX_SYS_##id] = {name, ret, args},
#include "fitness/ptx/ptx_system.def"
#undef PTX_SYSTEM
};

const char *ptx_system_name(ptx_system which) {
    return which == PTX_SYS_NONE ? "" : systems[which].name;
}

static void *out_of_memory(ptx_loader *L) {
    L->oom = true;
    return NULL;
}

bool ptx_signatures_agree(const ptx_signature *a, const ptx_signature *b) {
    if (a->param_count != b->param_count || a->ret_count != b->ret_count)
        return false;
    for (size_t i = 0; i < a->param_count; i++)
        if (a->params[i].bytes != b->params[i].bytes)
            return false;
    for (size_t i = 0; i < a->ret_count; i++)
        if (a->rets[i].bytes != b->rets[i].bytes)
            return false;
    return true;
}

/* ---- tables: "name: .callprototype …" and its kin */

static bool skip_function_directives(ptx_loader *L) {
    while (L->lex.token.kind == PTX_K_DIRECTIVE) {
        bool counted = ptx_lex_is_word(&L->lex, ".abi_preserve") ||
                       ptx_lex_is_word(&L->lex, ".abi_preserve_control");
        if (!counted && !ptx_lex_is_word(&L->lex, ".noreturn"))
            return ptx_fail_expected(L, "';', .noreturn or .abi_preserve");
        if (!ptx_directive_allowed(L))
            return false;
        ptx_lex_next(&L->lex);
        if (counted)
            ptx_lex_next(&L->lex);
    }
    return ptx_expect(L, ';');
}

/* (ret) _ (params); their names mean nothing outside. */
static bool parse_prototype(ptx_loader *L, ptx_symbol *s) {
    ptx_signature *sig = EV_NEW(L->arena, ptx_signature);
    if (!sig)
        return out_of_memory(L);
    s->sig = sig;
    if (!ptx_scope_enter(L))
        return false;
    if (ptx_accept(L, '(') && !ptx_parse_params(L, &sig->rets, &sig->ret_count))
        return false;
    if (L->lex.token.kind != PTX_K_IDENT)
        return ptx_fail_expected(L, "'_'");
    ptx_lex_next(&L->lex);
    if (ptx_accept(L, '(') && !ptx_parse_params(L, &sig->params, &sig->param_count))
        return false;
    return ptx_scope_leave(L) && skip_function_directives(L);
}

/* How many names a list has, counted ahead. */
static uint32_t count_names(const ptx_loader *L) {
    ptx_lexer ahead = L->lex;
    uint32_t count = 0;
    while (ahead.token.kind == PTX_K_IDENT && count <= MAX_TABLE) {
        count++;
        ptx_lex_next(&ahead);
        if (!ptx_lex_is(&ahead, ','))
            break;
        ptx_lex_next(&ahead);
    }
    return count;
}

static uint32_t *new_table(ptx_loader *L, uint32_t *count) {
    *count = count_names(L);
    if (!*count || *count > MAX_TABLE) {
        ptx_fail_expected(L, "a list of names, at most 65536");
        return NULL;
    }
    uint32_t *list = EV_NEW_ARRAY(L->arena, uint32_t, *count);
    return list ? list : out_of_memory(L);
}

static bool parse_call_targets(ptx_loader *L, ptx_symbol *s) {
    uint32_t *list = new_table(L, &s->count);
    for (uint32_t i = 0; list && i < s->count; i++) {
        const ptx_token *t = &L->lex.token;
        ptx_symbol *f = ptx_symbol_find(L, t->at, t->length);
        if (!f || f->kind != PTX_Y_FUNC)
            return ptx_fail_expected(L, "the name of a declared function");
        list[i] = f->index;
        ptx_lex_next(&L->lex);
        if (i + 1 < s->count)
            ptx_lex_next(&L->lex);
    }
    s->ids = list;
    if (!list)
        return false;
    ptx_signature *sig = EV_NEW(L->arena, ptx_signature);
    if (!sig)
        return out_of_memory(L);
    *sig = L->m->funcs[list[0]].sig;
    s->sig = sig;
    return ptx_expect(L, ';');
}

static bool parse_branch_targets(ptx_loader *L, ptx_symbol *s) {
    vm_module *m = L->m;
    ptx_branches table;
    table.pcs = new_table(L, &table.count);
    if (!table.pcs || !ptx_grow(L, (void **)&m->branches, &L->branches_capacity, m->branches_count,
                                sizeof *m->branches))
        return false;
    for (uint32_t i = 0; i < table.count; i++) {
        ptx_operand label = {.kind = PTX_O_LABEL,
                             .at = L->lex.token.at,
                             .label = L->lex.token.at,
                             .label_length = L->lex.token.length};
        if (!ptx_label_fixup(L, &label, &table.pcs[i]))
            return false;
        ptx_lex_next(&L->lex);
        if (i + 1 < table.count)
            ptx_lex_next(&L->lex);
    }
    s->index = (uint32_t)m->branches_count;
    m->branches[m->branches_count++] = table;
    return ptx_expect(L, ';');
}

bool ptx_parse_table(ptx_loader *L, const ptx_token *name, bool *is_table) {
    static const struct {
        const char *directive;
        ptx_symbol_kind kind;
        bool (*parse)(ptx_loader *L, ptx_symbol *s);
    } tables[] = {{".callprototype", PTX_Y_PROTOTYPE, parse_prototype},
                  {".calltargets", PTX_Y_TARGETS, parse_call_targets},
                  {".branchtargets", PTX_Y_BRANCHES, parse_branch_targets}};
    *is_table = true;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (!ptx_lex_is_word(&L->lex, tables[i].directive))
            continue;
        ptx_lex_next(&L->lex);
        ptx_symbol *s = ptx_symbol_add(L, name->at, name->length, tables[i].kind);
        return s && tables[i].parse(L, s);
    }
    *is_table = false;
    return true;
}

/* .alias name, function; */
bool ptx_parse_alias(ptx_loader *L) {
    uint32_t func[2];
    for (int i = 0; i < 2; i++) {
        const ptx_token *t = &L->lex.token;
        ptx_symbol *s = t->kind == PTX_K_IDENT ? ptx_symbol_find(L, t->at, t->length) : NULL;
        if (!s || s->kind != PTX_Y_FUNC || L->m->funcs[s->index].entry)
            return ptx_fail_expected(L, "the name of a declared function");
        func[i] = ptx_func_resolve(L->m, s->index);
        ptx_func *f = &L->m->funcs[func[i]];
        if (f->defined != (i == 1))
            return ptx_fail_expected(L, i ? "a function with a body" : "a function without a body");
        if (i == 1 && !ptx_signatures_agree(&L->m->funcs[func[0]].sig, &f->sig))
            return ptx_fail_expected(L, "a function of the same parameters and results");
        ptx_lex_next(&L->lex);
        if (!ptx_expect(L, i ? ';' : ','))
            return false;
    }
    L->m->funcs[func[0]].alias = func[1];
    return true;
}

/* ---- operands of a call */

typedef struct value_list {
    ptx_operand items[MAX_CALL_VALUES];
    size_t count;
} value_list;

/* The last operand, if it is a vector register, becomes its parts. */
static bool spread_vector(ptx_loader *L, value_list *list) {
    ptx_operand whole = list->items[list->count - 1];
    if (whole.kind != PTX_O_VECTOR || *whole.at == '{')
        return true;
    if (list->count - 1 + whole.count > MAX_CALL_VALUES)
        return ptx_fail_expected(L, "at most 64 values");
    memcpy(&list->items[list->count - 1], whole.items, whole.count * sizeof *whole.items);
    list->count += whole.count - 1u;
    return true;
}

/* "(a, b)": .param variables, registers and, going in, numbers. */
static bool parse_values(ptx_loader *L, value_list *list) {
    if (!ptx_expect(L, '('))
        return false;
    if (ptx_accept(L, ')'))
        return true;
    do {
        if (list->count == MAX_CALL_VALUES)
            return ptx_fail_expected(L, "at most 64 values");
        if (!ptx_parse_operand(L, &list->items[list->count++]) || !spread_vector(L, list))
            return false;
    } while (ptx_accept(L, ','));
    return ptx_expect(L, ')');
}

static bool fail_value(ptx_loader *L, const ptx_operand *o, const ptx_var *v, bool result) {
    const char *others = result ? " or a register" : ", a register or a number";
    return ptx_fail_operand(L, o->at, "a .param variable of this function of %u bytes for '%s'%s",
                            v->bytes, v->name, v->array ? "" : others);
}

static bool bind_register(ptx_loader *L, const ptx_operand *o, const ptx_var *v, ptx_value *out) {
    const ptx_reg *r = &L->m->regs[o->reg];
    unsigned bits = ptx_type_bits(v->type);
    if (o->negated || r->bits != (bits < 16 ? 16 : bits))
        return ptx_fail_at(L, o->at, "found %s of %u bits for '%s'; expected a register of %u bits",
                           r->name, r->bits, v->name, bits < 16 ? 16 : bits);
    *out = (ptx_value){
        .slot = r->slot, .stride = r->bits == 64 ? 8 : 4, .bytes = v->bytes, .reg = o->reg};
    return true;
}

/* Binds an operand to the parameter `v` that it goes to or comes from. */
static bool bind_value(ptx_loader *L, const ptx_operand *o, const ptx_var *v, bool result,
                       ptx_value *out) {
    *out = (ptx_value){.slot = PTX_NONE, .reg = PTX_NONE, .bytes = v->bytes};
    if (o->kind == PTX_O_SINK && result)
        return true;
    if (o->kind == PTX_O_SYMBOL) {
        const ptx_var *mine = o->var;
        if (mine->space != VM_SPACE_PARAM || !mine->stride || o->value || mine->bytes != v->bytes)
            return fail_value(L, o, v, result);
        out->slot = (uint32_t)mine->offset;
        out->stride = mine->stride;
        return true;
    }
    if (v->array)
        return fail_value(L, o, v, result);
    if (o->kind == PTX_O_REG)
        return bind_register(L, o, v, out);
    uint64_t bits;
    bool literal = o->kind == PTX_O_INT || o->kind == PTX_O_F32 || o->kind == PTX_O_F64;
    if (result || !literal)
        return fail_value(L, o, v, result);
    if (!ptx_literal_bits(L, o, v->type, &bits))
        return false;
    out->slot = ptx_slot_const(L, v->bytes == 8 ? 64 : 32, bits, PTX_BASE_NONE);
    out->stride = v->bytes == 8 ? 8 : 4;
    return out->slot != PTX_NONE;
}

static ptx_value *bind_values(ptx_loader *L, const value_list *list, const ptx_var *vars,
                              bool result) {
    ptx_value *out = EV_NEW_ARRAY(L->arena, ptx_value, list->count + 1);
    if (!out)
        return out_of_memory(L);
    for (size_t i = 0; i < list->count; i++)
        if (!bind_value(L, &list->items[i], &vars[i], result, &out[i]))
            return NULL;
    return out;
}

static bool bind_call(ptx_loader *L, const char *at, const char *name, const value_list *rets,
                      const value_list *args, const ptx_signature *sig, ptx_call *call) {
    if (rets->count != sig->ret_count || args->count != sig->param_count)
        return ptx_fail_at(L, at,
                           "found a call of '%s' with %zu results and %zu arguments; expected %zu "
                           "and %zu",
                           name, rets->count, args->count, sig->ret_count, sig->param_count);
    call->arg_count = args->count;
    call->ret_count = rets->count;
    call->args = bind_values(L, args, sig->params, false);
    call->rets = call->args ? bind_values(L, rets, sig->rets, true) : NULL;
    return call->rets != NULL;
}

/* The name at the end of an indirect call. */
static bool parse_call_table(ptx_loader *L, ptx_call *call) {
    const ptx_token *t = &L->lex.token;
    ptx_symbol *s = t->kind == PTX_K_IDENT ? ptx_symbol_find(L, t->at, t->length) : NULL;
    if (!s || (s->kind != PTX_Y_PROTOTYPE && s->kind != PTX_Y_TARGETS))
        return ptx_fail_expected(L, "the name of a .callprototype or of .calltargets");
    call->sig = s->sig;
    if (s->kind == PTX_Y_TARGETS) {
        call->targets = s->ids;
        call->target_count = s->count;
    }
    ptx_lex_next(&L->lex);
    return true;
}

static bool parse_callee(ptx_loader *L, ptx_call *call) {
    ptx_token t = L->lex.token;
    ptx_symbol *s = t.kind == PTX_K_IDENT ? ptx_symbol_find(L, t.at, t.length) : NULL;
    call->func = call->pointer = call->reg = PTX_NONE;
    if (s && s->kind == PTX_Y_FUNC) {
        call->func = s->index;
        if (L->m->funcs[s->index].entry)
            return ptx_fail_expected(L, "a function that is no entry");
    } else {
        uint32_t reg = t.kind == PTX_K_IDENT ? ptx_register_find(L, t.at, t.length) : PTX_NONE;
        if (reg == PTX_NONE || L->m->regs[reg].bits != 64)
            return ptx_fail_expected(L, "a declared function or a register of 64 bits");
        call->reg = reg;
        call->pointer = L->m->regs[reg].slot;
    }
    ptx_lex_next(&L->lex);
    return true;
}

/* [(rets),] callee [, (args)] [, table]; */
bool ptx_parse_call(ptx_loader *L, ptx_insn *insn) {
    vm_module *m = L->m;
    ptx_call call = {.text = L->lex.token.at};
    value_list *lists = EV_NEW_ARRAY(L->arena, value_list, 2), *rets = lists, *args = lists + 1;
    if (!lists)
        return out_of_memory(L);
    if (ptx_lex_is(&L->lex, '(') && (!parse_values(L, rets) || !ptx_expect(L, ',')))
        return false;
    ptx_token t = L->lex.token;
    if (!parse_callee(L, &call))
        return false;
    bool more = ptx_accept(L, ',');
    if (more && ptx_lex_is(&L->lex, '(')) {
        if (!parse_values(L, args))
            return false;
        more = ptx_accept(L, ',');
    }
    if (call.func == PTX_NONE && !more)
        return ptx_fail_expected(L, "','");
    if (call.func != PTX_NONE && more)
        return ptx_fail_expected(L, "';'");
    if (more && !parse_call_table(L, &call))
        return false;
    call.text_bytes = (uint32_t)(L->lex.token.at - call.text);
    const ptx_signature *sig = call.func == PTX_NONE ? call.sig : &m->funcs[call.func].sig;
    assert(sig != NULL);
    const char *name = ev_arena_strndup(L->arena, t.at, t.length);
    if (!bind_call(L, t.at, name ? name : "", rets, args, sig, &call) ||
        !ptx_grow(L, (void **)&m->calls, &L->call_capacity, m->call_count, sizeof *m->calls))
        return false;
    insn->target = (uint32_t)m->call_count;
    m->calls[m->call_count++] = call;
    return ptx_expect(L, ';');
}

/* ---- when all functions are known */

static ptx_system find_system(const ptx_func *f) {
    for (unsigned i = 1; i < sizeof systems / sizeof *systems; i++) {
        const system_row *row = &systems[i];
        if (strcmp(row->name, f->name) != 0)
            continue;
        bool fits = f->sig.param_count == strlen(row->args) && f->sig.ret_count == (row->ret != 0);
        for (size_t k = 0; fits && k < f->sig.param_count; k++)
            fits = f->sig.params[k].bytes == (uint32_t)(row->args[k] - '0');
        if (fits && (!row->ret || f->sig.rets[0].bytes == row->ret))
            return (ptx_system)i;
    }
    return PTX_SYS_NONE;
}

bool ptx_finish_calls(ptx_loader *L) {
    vm_module *m = L->m;
    for (uint32_t pc = 0; pc < m->insn_count; pc++) {
        if (m->code[pc].row != PTX_OP_CALL)
            continue;
        ptx_call *call = &m->calls[m->code[pc].target];
        if (call->func == PTX_NONE)
            continue;
        call->func = ptx_func_resolve(m, call->func);
        const ptx_func *f = &m->funcs[call->func];
        if (f->defined)
            continue;
        call->system = find_system(f);
        if (call->system == PTX_SYS_NONE &&
            ptx_fail_absent_name(L, call->text, f->name, strlen(f->name)))
            return false;
        if (call->system == PTX_SYS_NONE)
            return ptx_fail_at(L, call->text,
                               "found a call of '%s', which has no body; expected a function of "
                               "this module",
                               f->name);
    }
    return true;
}
