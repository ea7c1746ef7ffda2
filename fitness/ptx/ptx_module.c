/* Modules: the top level of the text, functions, and what other floors ask of a loaded module. */
#include "fitness/ptx/ptx_load.h"
#include "fitness/ptx/ptx_parse.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static bool word(ptx_loader *L, const char *text) {
    if (!ptx_lex_is_word(&L->lex, text))
        return false;
    ptx_lex_next(&L->lex);
    return true;
}

static bool skip_statement(ptx_loader *L) {
    while (L->lex.token.kind != PTX_K_END && !ptx_lex_is(&L->lex, ';'))
        ptx_lex_next(&L->lex);
    return ptx_expect(L, ';');
}

/* ---- code */

uint32_t ptx_emit(ptx_loader *L, const ptx_insn *insn, const ptx_cold *cold) {
    vm_module *m = L->m;
    /* one spare: code[insn_count] is read as "the next" by handlers that then stop */
    if (!ptx_grow(L, (void **)&m->code, &L->code_capacity, (size_t)m->insn_count + 1,
                  sizeof *m->code) ||
        !ptx_grow(L, (void **)&m->cold, &L->cold_capacity, m->insn_count, sizeof *m->cold))
        return PTX_NONE;
    assert(L->func);
    m->code[m->insn_count] = *insn;
    m->cold[m->insn_count] = *cold;
    ptx_shape shape = (ptx_shape)ptx_op_get(insn->row)->shape;
    L->after_control = insn->guard == PTX_NONE && (shape == PTX_S_BRA || shape == PTX_S_BRX ||
                                                   shape == PTX_S_RET || shape == PTX_S_EXIT);
    return m->insn_count++;
}

/* ---- functions */

static ptx_symbol *function_symbol(ptx_loader *L, const ptx_token *name, bool entry) {
    vm_module *m = L->m;
    ptx_symbol *s = ptx_symbol_find(L, name->at, name->length);
    if (s && s->kind == PTX_Y_FUNC) {
        if (!m->funcs[s->index].defined && m->funcs[s->index].entry == entry)
            return s;
        ptx_fail_at(L, name->at, "found a second '%.*s'; expected one definition",
                    (int)name->length, name->at);
        return NULL;
    }
    s = ptx_symbol_add(L, name->at, name->length, PTX_Y_FUNC);
    if (!s || !ptx_grow(L, (void **)&m->funcs, &L->func_capacity, m->func_count, sizeof *m->funcs))
        return NULL;
    s->index = (uint32_t)m->func_count;
    m->funcs[m->func_count++] =
        (ptx_func){.name = ev_arena_strndup(L->arena, name->at, name->length),
                   .entry = entry,
                   .alias = PTX_NONE};
    return s;
}

static bool parse_dimension_product(ptx_loader *L, uint32_t *product) {
    uint64_t total = 1;
    do {
        if (L->lex.token.kind != PTX_K_INT || L->lex.token.value > 1u << 20)
            return ptx_fail_expected(L, "a number up to 2^20");
        total *= L->lex.token.value;
        ptx_lex_next(&L->lex);
    } while (total <= 1u << 30 && ptx_accept(L, ','));
    *product = (uint32_t)(total > UINT32_MAX ? UINT32_MAX : total);
    return true;
}

/* What ends a declaration that has no semicolon: another statement of the module. */
static bool begins_statement(const ptx_loader *L) {
    static const char *const words[] = {".visible", ".extern",  ".weak",   ".common", ".entry",
                                        ".func",    ".global",  ".const",  ".shared", ".file",
                                        ".section", ".version", ".target", ".alias"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (ptx_lex_is_word(&L->lex, words[i]))
            return true;
    return L->lex.token.kind == PTX_K_END;
}

static bool parse_performance(ptx_loader *L, ptx_func *f) {
    while (L->lex.token.kind == PTX_K_DIRECTIVE && !begins_statement(L)) {
        uint32_t ignored = 0;
        uint32_t *place = NULL;
        if (!ptx_directive_allowed(L))
            return false;
        if (word(L, ".maxntid") || word(L, ".reqntid"))
            place = &f->pub.max_threads;
        else if (word(L, ".minnctapersm"))
            place = &f->pub.min_blocks;
        else if (word(L, ".maxnreg"))
            place = &f->pub.max_registers;
        else if (word(L, ".maxclusterrank") || word(L, ".abi_preserve") ||
                 word(L, ".abi_preserve_control"))
            place = &ignored;
        else if (word(L, ".noreturn") || word(L, ".explicitcluster"))
            continue;
        else if (ptx_lex_is_word(&L->lex, ".reqnctapercluster")) {
            const ptx_token directive = L->lex.token;
            ptx_lex_next(&L->lex);
            if (!parse_dimension_product(L, &ignored))
                return false;
            if (ignored > 1 && ptx_fail_absent(L, directive.at, directive.length))
                return false;
            continue;
        } else if (word(L, ".pragma")) {
            if (!skip_statement(L))
                return false;
            continue;
        } else
            return ptx_fail_expected(L, "'{', ';' or a performance directive");
        if (!parse_dimension_product(L, place))
            return false;
    }
    return true;
}

static bool begin_body(ptx_loader *L, ptx_func *f) {
    L->func = f;
    L->const_capacity = L->sreg_capacity = 0;
    L->pred_left = 0;
    L->after_control = false;
    L->source_line = 0;
    L->shared_func = L->shared_module;
    f->shared_before = (uint32_t)L->shared_module.packed;
    L->local_moved = 0;
    f->defined = true;
    f->pub.name = f->name;
    f->pub.first_pc = L->m->insn_count;
    f->first_reg = L->m->reg_count;
    if (f->entry) {
        ptx_entry_layout(f, L->arena);
        return f->pub.param_bytes <= 4352 ||
               ptx_allowed(L, L->lex.token.at, "more than 4352 bytes of parameters",
                           (ptx_need){81, 70});
    }
    return ptx_place_signature(L, f);
}

static bool end_body(ptx_loader *L) {
    ptx_func *f = L->func;
    ptx_insn end = {.guard = PTX_NONE, .row = PTX_OP_RET};
    ptx_cold cold = {.name = "ret",
                     .line = L->lex.token.line,
                     .source_line = L->source_line,
                     .guard_reg = PTX_NONE,
                     .func = L->func_index};
    /* Falling off the end is a return; a label may stand at the very end. */
    bool reachable = L->m->insn_count == f->pub.first_pc || !L->after_control ||
                     L->label_at_end == L->m->insn_count;
    if (reachable && ptx_emit(L, &end, &cold) == PTX_NONE)
        return false;
    f->pub.end_pc = L->m->insn_count;
    ptx_share_looks(L->m, f->pub.first_pc, f->pub.end_pc);
    f->end_reg = L->m->reg_count;
    f->pub.local_bytes = f->local_bytes - L->local_moved;
    f->pub.shared_bytes = (uint32_t)L->shared_func.packed;
    f->shared_span = (uint32_t)(L->shared_func.packed + L->shared_func.gaps);
    if (!f->entry && L->shared_module.packed < L->shared_func.packed)
        L->shared_module = L->shared_func;
    if (f->entry && L->shared_most < f->shared_span)
        L->shared_most = f->shared_span;
    f->frame_bytes = (f->frame_bytes + 63) & ~63u;
    L->func = NULL;
    return true;
}

static bool parse_function_body(ptx_loader *L, uint32_t index) {
    ptx_func *f = &L->m->funcs[index];
    if (!parse_performance(L, f))
        return false;
    if (begins_statement(L) || ptx_accept(L, ';'))
        return ptx_scope_leave(L);
    if (!ptx_lex_is(&L->lex, '{'))
        return ptx_fail_expected(L, "'{' or ';'");
    ptx_lex_next(&L->lex);
    L->func_index = index;
    if (!begin_body(L, f))
        return false;
    return ptx_parse_body(L) && end_body(L);
}

static bool parse_function(ptx_loader *L, bool entry) {
    vm_module *m = L->m;
    ptx_signature sig = {0};
    /* Parameters live in the function's scope; its name in the module's. The result list comes
     * first, so it is read in a scope that is then kept. */
    if (!ptx_scope_enter(L))
        return false;
    if (!entry && ptx_accept(L, '(') && !ptx_parse_params(L, &sig.rets, &sig.ret_count))
        return false;
    ptx_token name = L->lex.token;
    if (name.kind != PTX_K_IDENT || *name.at == '%')
        return ptx_fail_expected(L, "the name of a function");
    ptx_lex_next(&L->lex);
    if (ptx_accept(L, '(') && !ptx_parse_params(L, &sig.params, &sig.param_count))
        return false;
    uint32_t inner = L->scope;
    L->scope = 0;
    size_t known = m->func_count;
    ptx_symbol *s = function_symbol(L, &name, entry);
    L->scope = inner;
    if (!s)
        return false;
    ptx_func *f = &m->funcs[s->index];
    if (s->index < known && !ptx_signatures_agree(&f->sig, &sig))
        return ptx_fail_at(L, name.at,
                           "found another list of parameters or results of '%s'; expected those of "
                           "its declaration",
                           f->name);
    for (size_t i = 0; entry && i < sig.param_count; i++)
        if (sig.params[i].space != VM_SPACE_PARAM)
            return ptx_fail_at(L, name.at, "found a .reg parameter of an entry; expected .param");
    f->sig = sig;
    return parse_function_body(L, s->index);
}

/* ---- the top level */

static bool parse_version(ptx_loader *L) {
    const ptx_token *t = &L->lex.token;
    double version = 0;
    if (t->kind == PTX_K_F64)
        memcpy(&version, &t->value, sizeof version);
    /* in this range before it becomes an integer */
    if (!(version > PTX_FIRST_VERSION / 10.0 - 0.05 && version < 9.95))
        return ptx_fail_expected(L, "a version from 3.0 to 9.9, such as 8.5");
    L->m->version = (int)(version * 10 + 0.5);
    L->m->version_at = (uint32_t)(t->at - L->m->text);
    L->m->versions += t->length == 3 ? 1 : 2; /* 08.50 cannot be changed in its place */
    ptx_lex_next(&L->lex);
    return true;
}

static bool set_target(ptx_loader *L, const ptx_token *t) {
    ptx_target target;
    if (!ptx_target_find(t->at, t->length, &target))
        return ptx_fail_expected(L, "a target from sm_20 to sm_121, such as sm_90 or sm_90a");
    if (!L->m->version)
        return ptx_fail_expected(L, ".version before .target");
    L->m->sm = target.sm;
    char name[8] = {0}; /* as long as a target is at most, and a NUL */
    memcpy(name, t->at, t->length);
    return ptx_allowed(L, t->at, name, (ptx_need){target.version, (uint8_t)target.sm});
}

static bool parse_target(ptx_loader *L) {
    do {
        const ptx_token *t = &L->lex.token;
        if (t->kind != PTX_K_IDENT)
            return ptx_fail_expected(L, "a target such as sm_90");
        if (t->length > 3 && memcmp(t->at, "sm_", 3) == 0) {
            if (!set_target(L, t))
                return false;
        } else if (ptx_lex_is_word(&L->lex, "texmode_independent")) {
            L->independent = true;
        } else if (!ptx_lex_is_word(&L->lex, "debug") &&
                   !ptx_lex_is_word(&L->lex, "texmode_unified")) {
            return ptx_fail_expected(L, "a target such as sm_90");
        }
        ptx_lex_next(&L->lex);
    } while (ptx_accept(L, ','));
    return true;
}

static bool parse_address_size(ptx_loader *L) {
    if (L->lex.token.kind != PTX_K_INT || L->lex.token.value != 64)
        return ptx_fail_expected(L, "64 (32-bit addresses are not supported)");
    ptx_lex_next(&L->lex);
    return true;
}

static bool parse_file(ptx_loader *L) {
    ptx_lex_next(&L->lex); /* its number, then its name */
    if (L->lex.token.kind != PTX_K_STRING)
        return ptx_fail_expected(L, "a file name");
    ptx_lex_next(&L->lex);
    while (ptx_accept(L, ','))
        ptx_lex_next(&L->lex);
    return true;
}

static bool skip_section(ptx_loader *L) {
    while (L->lex.token.kind != PTX_K_END && !ptx_lex_is(&L->lex, '{'))
        ptx_lex_next(&L->lex);
    unsigned depth = 0;
    do {
        depth += ptx_lex_is(&L->lex, '{');
        depth -= ptx_lex_is(&L->lex, '}');
        ptx_lex_next(&L->lex);
    } while (depth && L->lex.token.kind != PTX_K_END);
    return depth == 0 || ptx_fail_expected(L, "'}'");
}

/* What may stand between .func and its results. */
static bool function_prefix(ptx_loader *L) {
    if (!ptx_directive_allowed(L) ||
        (word(L, ".attribute") && (!ptx_parse_attributes(L) || !ptx_directive_allowed(L))))
        return false;
    (void)word(L, ".noreturn");
    return true;
}

static bool parse_linked(ptx_loader *L) {
    bool is_extern = false;
    for (;;) {
        if (!ptx_directive_allowed(L))
            return false;
        if (word(L, ".extern"))
            is_extern = true;
        else if (!word(L, ".visible") && !word(L, ".weak") && !word(L, ".common"))
            break;
    }
    if (word(L, ".entry"))
        return parse_function(L, true);
    if (word(L, ".func"))
        return function_prefix(L) && parse_function(L, false);
    if (word(L, ".global"))
        return ptx_parse_variables(L, VM_SPACE_GLOBAL, is_extern);
    if (word(L, ".const"))
        return ptx_parse_variables(L, VM_SPACE_CONST, is_extern);
    if (word(L, ".shared"))
        return ptx_parse_variables(L, VM_SPACE_SHARED, is_extern);
    return ptx_fail_expected(L, "a directive that the machine has: .entry, .func, .global, .const, "
                                ".shared, .version, .target, .address_size, .file, .section");
}

static bool parse_top(ptx_loader *L) {
    if (ptx_accept(L, ';'))
        return true;
    if (word(L, ".version"))
        return parse_version(L);
    if (word(L, ".target"))
        return parse_target(L);
    if (word(L, ".address_size"))
        return parse_address_size(L);
    if (word(L, ".file"))
        return parse_file(L);
    if (word(L, ".section"))
        return skip_section(L);
    if (word(L, ".pragma"))
        return skip_statement(L);
    if (ptx_lex_is_word(&L->lex, ".alias"))
        return ptx_directive_allowed(L) && word(L, ".alias") && ptx_parse_alias(L);
    if (!L->m->version || !L->m->sm)
        return ptx_fail_expected(L, ".version and .target before all else");
    return parse_linked(L);
}

/* ---- the end of loading */

/* As the assembler of a CUDA toolkit does. */
static bool fail_shared(ptx_loader *L, const ptx_func *f) {
    const ptx_symbol *s = ptx_symbol_find(L, f->name, (uint32_t)strlen(f->name));
    return ptx_fail_at(L, s ? s->name : L->lex.token.at,
                       "found %u bytes of static shared memory in '%s'; expected at most %u (the "
                       "launch sizes an .extern array)",
                       f->pub.shared_bytes, f->name, VM_MOST_STATIC_SHARED);
}

/* Cooperative groups keep barriers of several warps in shared memory that the system reserves; it
 * lies behind the variables and counts for no kernel. `most`: where the variables end, and then
 * where it ends. */
static bool place_reserved(ptx_loader *L, uint32_t *most) {
    ptx_var *v = EV_NEW(L->arena, ptx_var);
    if (!v)
        return !(L->oom = true);
    uint32_t at = ((*most + 127) & ~127u) + PTX_SHARED_GAP;
    *v = (ptx_var){.name = "(reserved shared memory)",
                   .space = VM_SPACE_SHARED,
                   .bytes = PTX_RESERVED_BYTES,
                   .align = 16,
                   .type = PTX_T_b8,
                   .array = true,
                   .func = PTX_NONE,
                   .offset = at,
                   .next = L->m->variables};
    L->m->variables = v;
    L->m->reserved_shared = at;
    *most = at + PTX_RESERVED_BYTES;
    for (uint32_t i = 0; i < L->m->entry_count; i++)
        L->m->funcs[L->m->entries[i]].shared_span = *most;
    return true;
}

static bool finish_entries(ptx_loader *L) {
    vm_module *m = L->m;
    m->entries = EV_NEW_ARRAY(L->arena, uint32_t, m->func_count + 1);
    if (!m->entries)
        return !(L->oom = true);
    uint32_t all = (uint32_t)(L->shared_module.packed + L->shared_module.gaps), most = all;
    for (uint32_t i = 0; i < m->func_count; i++) {
        ptx_func *f = &m->funcs[i];
        if (!f->entry || !f->defined)
            continue;
        /* Functions behind it, which it may call, add theirs. */
        f->pub.shared_bytes += (uint32_t)L->shared_module.packed - f->shared_before;
        if (f->shared_span < all)
            f->shared_span = all;
        if (f->shared_span > most)
            most = f->shared_span;
        if (f->pub.shared_bytes > VM_MOST_STATIC_SHARED)
            return fail_shared(L, f);
        m->entries[m->entry_count++] = i;
    }
    if (L->reads_reserved && !place_reserved(L, &most))
        return false;
    m->dynamic_base = most ? ((most + 127) & ~127u) + PTX_SHARED_GAP : 0;
    if (L->dynamic_align)
        m->dynamic_base = (uint32_t)ptx_place_at(L, m->dynamic_base, L->dynamic_align);
    return true;
}

static bool index_lines(vm_module *m) {
    uint32_t lines = 1;
    for (size_t i = 0; i < m->text_bytes; i++)
        lines += m->text[i] == '\n';
    m->line_starts = EV_NEW_ARRAY(m->arena, uint32_t, lines);
    if (!m->line_starts)
        return false;
    m->line_count = 1;
    const char *at = m->text, *end = at + m->text_bytes;
    while ((at = memchr(at, '\n', (size_t)(end - at))) != NULL)
        m->line_starts[m->line_count++] = (uint32_t)(++at - m->text);
    return true;
}

/* Eight bytes at a time; the text has zeros behind it. */
static uint64_t hash_text(const char *text, size_t bytes) {
    uint64_t hash = bytes;
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word;
        memcpy(&word, text + i, sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return hash;
}

/* An instruction a line, at most, in what compilers write. */
static bool make_room(ptx_loader *L) {
    vm_module *m = L->m;
    size_t room = m->line_count + (size_t)1;
    m->code = malloc(room * sizeof *m->code);
    m->cold = malloc(room * sizeof *m->cold);
    L->oom = !m->code || !m->cold;
    L->code_capacity = L->cold_capacity = room;
    return !L->oom;
}

static bool load(ptx_loader *L) {
    if (!make_room(L))
        return false;
    ptx_lex_start(&L->lex, L->m->text, L->m->text_bytes);
    while (L->lex.token.kind != PTX_K_END)
        if (!parse_top(L) || L->failed || L->oom)
            return false;
    if (!L->m->version || !L->m->sm)
        return ptx_fail_expected(L, "a module that begins with .version and .target");
    L->m->code[L->m->insn_count] = (ptx_insn){0};
    return ptx_place_workspace(L) && ptx_finish_calls(L) && finish_entries(L) &&
           ptx_list_touched(L) && ptx_join_shared(L->m) && ptx_find_cleared(L);
}

static ev_status new_module(const char *ptx, size_t bytes, const char *name, vm_module **out,
                            ev_error *err) {
    vm_module *m = calloc(1, sizeof *m);
    if (!m)
        return ev_fail_memory(err, sizeof *m);
    m->arena = ev_arena_new();
    if (m->arena)
        m->text = ev_arena_alloc(m->arena, bytes + 16);
    if (!m->text || bytes > UINT32_MAX - 16) {
        vm_module_free(m);
        return ev_fail_memory(err, bytes);
    }
    memcpy(m->text, ptx, bytes);
    m->text_bytes = bytes;
    m->name = ev_arena_strdup(m->arena, name ? name : "ptx");
    m->text_hash = hash_text(m->text, bytes);
    if (!m->name || !index_lines(m)) {
        vm_module_free(m);
        return ev_fail_memory(err, bytes);
    }
    *out = m;
    return EV_OK;
}

ev_status vm_module_load(const char *ptx, size_t bytes, const char *name, vm_module **out,
                         ev_error *err) {
    vm_words *words = NULL;
    EV_TRY(vm_words_new(&words, err));
    ev_status status = vm_module_load_with(words, VM_PLACE_PACKED, ptx, bytes, name, out, err);
    vm_words_free(words);
    return status;
}

ev_status vm_module_load_with(vm_words *words, vm_placement placement, const char *ptx,
                              size_t bytes, const char *name, vm_module **out, ev_error *err) {
    vm_module *m = NULL;
    EV_TRY(new_module(ptx, bytes, name, &m, err));
    ptx_loader *L = calloc(1, sizeof *L);
    if (!L) {
        vm_module_free(m);
        return ev_fail_memory(err, sizeof *L);
    }
    L->m = m;
    L->arena = m->arena;
    L->err = err;
    L->words = words;
    L->placement = placement;
    m->text_hash += placement; /* a memory keeps the variables of the module launched last */
    ptx_words_begin(words);
    bool ok = load(L);
    bool failed = L->failed;
    free(L->fixups);
    free(L);
    if (!ok || ev_arena_failed(m->arena)) {
        vm_module_free(m);
        return failed ? EV_BAD : ev_fail_memory(err, bytes);
    }
    vm_module_set_isa(m, vm_isa_best());
    *out = m;
    return EV_OK;
}

void vm_module_free(vm_module *m) {
    if (!m)
        return;
    for (size_t i = 0; i < m->func_count; i++) {
        free(m->funcs[i].consts);
        free(m->funcs[i].sregs);
    }
    free(m->funcs);
    free(m->fragments);
    free(m->code);
    free(m->cold);
    free(m->touched);
    free(m->regs);
    free(m->calls);
    free(m->branches);
    free(m->relocs);
    free(m->global_image);
    free(m->const_image);
    ev_arena_free(m->arena);
    free(m);
}
