/* What other floors ask of a loaded module: entries, lines, what an instruction reads and writes.
 */
#include "fitness/ptx/ptx_load.h"

#include "base/hash.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

int vm_module_sm(const vm_module *m) {
    return m->sm;
}
int vm_module_version(const vm_module *m) {
    return m->version;
}

int vm_module_needs(const vm_module *m, const char **what) {
    *what = m->least_for;
    return m->least;
}

/* In `text`, which is the module's. */
static void put_version(const vm_module *m, int version, char *text) {
    int put = version < PTX_FIRST_VERSION ? PTX_FIRST_VERSION : version;
    if (m->versions != 1 || put >= m->version || put < m->least)
        return;
    text[m->version_at] = (char)('0' + put / 10);
    text[m->version_at + 2] = (char)('0' + put % 10);
}

char *vm_module_text_for(const vm_module *m, int version) {
    char *text = malloc(m->text_bytes + 1);
    if (!text)
        return NULL;
    memcpy(text, m->text, m->text_bytes + 1);
    put_version(m, version, text);
    return text;
}

ev_status vm_text_lower(char *ptx, size_t bytes, ev_error *err) {
    vm_module *m = NULL;
    EV_TRY(vm_module_load(ptx, bytes, "ptx", &m, err));
    put_version(m, m->least, ptx);
    vm_module_free(m);
    return EV_OK;
}

const char *vm_module_text(const vm_module *m, size_t *bytes) {
    *bytes = m->text_bytes;
    return m->text;
}

static bool is_filled_by_host(const ptx_var *v) {
    return v->space == VM_SPACE_GLOBAL || v->space == VM_SPACE_CONST;
}

static vm_variable place_of(const ptx_var *v) {
    return (vm_variable){.space = (vm_space)v->space,
                         .offset = v->offset,
                         .bytes = v->bytes,
                         .is_texture = v->opaque == PTX_M_OPAQUE_TEXREF,
                         .is_surface = v->opaque == PTX_M_OPAQUE_SURFREF};
}

bool vm_module_variable(const vm_module *m, const char *name, vm_variable *out) {
    for (const ptx_var *v = m->variables; v; v = v->next) {
        if (!is_filled_by_host(v) || strcmp(v->name, name) != 0)
            continue;
        *out = place_of(v);
        return true;
    }
    return false;
}

const char *vm_module_variable_name(const vm_module *m, size_t index, vm_variable *out) {
    for (const ptx_var *v = m->variables; v; v = v->next) {
        if (!is_filled_by_host(v) || index-- > 0)
            continue;
        *out = place_of(v);
        return v->name;
    }
    return NULL;
}

static uint64_t hash_of(const uint8_t *bytes, size_t count) {
    uint64_t hash = count + 1;
    for (size_t i = 0; i < count; i += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, count - i < 8 ? count - i : 8);
        hash = ev_mix64(hash ^ word);
    }
    return hash;
}

void vm_module_fill(vm_module *m, const vm_variable *variable, const void *data) {
    bool is_global = variable->space == VM_SPACE_GLOBAL;
    uint8_t *to = (is_global ? m->global_image : m->const_image) + variable->offset;
    if (memcmp(to, data, variable->bytes) == 0)
        return;
    memcpy(to, data, variable->bytes);
    if (is_global)
        m->fill_hash = hash_of(m->global_image, m->global_bytes);
}

uint64_t vm_module_global_bytes(const vm_module *m) {
    return m->global_bytes;
}

/* Where the host has written something else since, that stays. */
void ptx_relocate(const vm_module *m, bool consts, uint64_t globals, uint8_t *image) {
    for (size_t i = 0; i < m->reloc_count; i++) {
        const ptx_reloc *r = &m->relocs[i];
        uint64_t value = (globals + r->value) >> r->shift, as_loaded = r->value >> r->shift;
        if (r->in_const == consts && memcmp(image + r->offset, &as_loaded, r->bytes) == 0)
            memcpy(image + r->offset, &value, r->bytes);
    }
}

void vm_module_place(const vm_module *m, uint64_t address, void *host) {
    if (!m->global_bytes)
        return;
    memcpy(host, m->global_image, m->global_bytes);
    ptx_relocate(m, false, address, host);
}

void *vm_module_constants(vm_module *m, uint64_t *bytes) {
    *bytes = m->const_bytes;
    return m->const_image;
}

size_t vm_module_entry_count(const vm_module *m) {
    return m->entry_count;
}

const vm_entry *vm_module_entry(const vm_module *m, size_t index) {
    return index < m->entry_count ? &m->funcs[m->entries[index]].pub : NULL;
}

const vm_entry *vm_module_find(const vm_module *m, const char *name) {
    if (!name)
        return m->entry_count == 1 ? vm_module_entry(m, 0) : NULL;
    for (size_t i = 0; i < m->entry_count; i++)
        if (strcmp(m->funcs[m->entries[i]].name, name) == 0)
            return vm_module_entry(m, i);
    return NULL;
}

bool vm_entry_next_word(const vm_entry *entry, const void *params, uint32_t *at, uint64_t *word) {
    for (size_t p = 0; p < entry->param_count; p++) {
        const vm_param *param = &entry->params[p];
        uint32_t from = *at > param->offset ? *at : param->offset;
        if (from + sizeof *word > (size_t)param->offset + param->bytes)
            continue;
        memcpy(word, (const char *)params + from, sizeof *word);
        *at = from + (uint32_t)sizeof *word;
        return true;
    }
    return false;
}

size_t vm_module_insn_count(const vm_module *m) {
    return m->insn_count;
}
uint32_t vm_module_register_count(const vm_module *m) {
    return m->reg_count;
}

unsigned vm_module_register_words(const vm_module *m, uint32_t reg) {
    unsigned bits = m->regs[reg].bits;
    if (bits == 1)
        return 0;
    if (bits == 64)
        return 2;
    return 1;
}

const char *vm_module_line(const vm_module *m, uint32_t line, size_t *bytes) {
    if (line < 1 || line > m->line_count) {
        *bytes = 0;
        return "";
    }
    uint32_t start = m->line_starts[line - 1];
    size_t end = line < m->line_count ? m->line_starts[line] - 1 : m->text_bytes;
    *bytes = end - start;
    return m->text + start;
}

vm_pipe ptx_insn_pipe(const vm_module *m, uint32_t pc) {
    const ptx_insn *in = &m->code[pc];
    unsigned pipe = ptx_op_get(in->row)->pipe;
    unsigned bits = ptx_type_bits((ptx_type)in->t), from = ptx_type_bits((ptx_type)in->u);
    char kind = ptx_type_kind((ptx_type)in->t);
    switch (pipe) {
    case PTX_PIPE_FLOAT:
        if (kind != 'F')
            return VM_PIPE_FP16;
        return bits == 64 ? VM_PIPE_FP64 : VM_PIPE_FP32;
    case PTX_PIPE_CONV:
        return bits == 64 || from == 64 ? VM_PIPE_CVT64 : VM_PIPE_CVT;
    case PTX_PIPE_MEMORY:
        if (in->space == VM_SPACE_SHARED)
            return VM_PIPE_LSU_SHARED;
        if (in->space == VM_SPACE_CONST || in->space == VM_SPACE_PARAM)
            return VM_PIPE_CONSTANT;
        return VM_PIPE_LSU_GLOBAL;
    default:
        return (vm_pipe)pipe;
    }
}

/* ---- the registers of an instruction */

typedef struct touching {
    unsigned use_count, def_count;
    uint16_t *uses; /* in the module's list */
    uint16_t defs[VM_MAX_REGS];
} touching;

static void add_use(touching *t, uint32_t reg) {
    if (reg != PTX_NONE && t->use_count < VM_MAX_REGS)
        t->uses[t->use_count++] = (uint16_t)reg;
}

static void add_def(touching *t, uint32_t reg) {
    if (reg != PTX_NONE && t->def_count < VM_MAX_REGS)
        t->defs[t->def_count++] = (uint16_t)reg;
}

static void add_operand(touching *t, const ptx_operand *o, bool def) {
    if (o->kind == PTX_O_REG && def)
        add_def(t, o->reg);
    else if (o->kind == PTX_O_REG || o->kind == PTX_O_ADDRESS)
        add_use(t, o->reg);
    bool several = o->kind == PTX_O_VECTOR || o->kind == PTX_O_TEXEL;
    for (unsigned i = 0; several && i < o->count; i++) {
        const ptx_operand *item = &o->items[i];
        if (item->kind == PTX_O_REG && def)
            add_def(t, item->reg);
        else if (item->kind == PTX_O_REG)
            add_use(t, item->reg);
    }
}

static void add_call(touching *t, const ptx_call *call) {
    add_use(t, call->reg);
    for (size_t i = 0; i < call->arg_count; i++)
        add_use(t, call->args[i].reg);
    for (size_t i = 0; i < call->ret_count; i++)
        add_def(t, call->rets[i].reg);
}

/* `list` has room for all that an instruction can touch. */
static unsigned list_touched(const vm_module *m, uint32_t pc, uint16_t *list) {
    ptx_cold *cold = &m->cold[pc];
    touching t;
    t.use_count = t.def_count = 0;
    t.uses = list;
    add_use(&t, cold->guard_reg);
    if (ptx_op_get(m->code[pc].row)->shape == PTX_S_CALL)
        add_call(&t, &m->calls[m->code[pc].target]);
    for (unsigned i = 0; i < cold->operand_count; i++)
        add_operand(&t, &cold->operands[i], cold->written >> i & 1);
    for (unsigned i = 0; i < t.def_count; i++)
        list[t.use_count + i] = t.defs[i];
    cold->use_count = (uint8_t)t.use_count;
    cold->def_count = (uint8_t)t.def_count;
    return t.use_count + t.def_count;
}

bool ptx_list_touched(ptx_loader *L) {
    vm_module *m = L->m;
    size_t capacity = 0, used = 0, most = 2 * (size_t)VM_MAX_REGS;
    for (uint32_t pc = 0; pc < m->insn_count; pc++) {
        if (!ptx_grow(L, (void **)&m->touched, &capacity, used + most, sizeof *m->touched))
            return false;
        m->cold[pc].touched = (uint32_t)used;
        used += list_touched(m, pc, m->touched + used);
    }
    return true;
}

const uint16_t *vm_module_touched(const vm_module *m) {
    return m->touched;
}

/* ---- instructions */

static uint32_t target_of(const vm_module *m, const ptx_insn *in, uint8_t shape) {
    if (shape == PTX_S_BRA)
        return in->target;
    if (shape != PTX_S_CALL)
        return UINT32_MAX;
    uint32_t func = m->calls[in->target].func;
    return func != PTX_NONE && m->funcs[func].defined ? m->funcs[func].pub.first_pc : UINT32_MAX;
}

void vm_module_info(const vm_module *m, uint32_t pc, vm_insn_info *info) {
    const ptx_insn *in = &m->code[pc];
    const ptx_cold *cold = &m->cold[pc];
    const uint16_t *uses = m->touched + cold->touched, *defs = uses + cold->use_count;
    uint8_t shape = ptx_op_get(in->row)->shape;
    *info = (vm_insn_info){.name = cold->name,
                           .pipe = ptx_insn_pipe(m, pc),
                           .line = cold->line,
                           .source_line = cold->source_line,
                           .target = target_of(m, in, shape),
                           .use_count = cold->use_count,
                           .def_count = cold->def_count};
    info->is_atomic = shape == PTX_S_ATOM || shape == PTX_S_RED || shape == PTX_S_SURED;
    bool rows = shape == PTX_S_LDMATRIX || shape == PTX_S_STMATRIX;
    info->is_load = shape == PTX_S_LD || shape == PTX_S_WMMA_LOAD || shape == PTX_S_LDMATRIX ||
                    shape == PTX_S_CPASYNC || shape == PTX_S_TEX || shape == PTX_S_TLD4 ||
                    shape == PTX_S_SULD;
    info->is_store = shape == PTX_S_SUST || shape == PTX_S_SUSTP || shape == PTX_S_ST ||
                     shape == PTX_S_WMMA_STORE || shape == PTX_S_STMATRIX;
    if (info->is_atomic || info->is_load || info->is_store) {
        info->space = rows ? VM_SPACE_SHARED : (vm_space)in->space;
        info->access_bytes = (uint8_t)(in->bytes * (in->count ? in->count : 1));
    }
    info->is_barrier = shape == PTX_S_BARSYNC || shape == PTX_S_BARRED;
    info->is_branch = shape == PTX_S_BRA || shape == PTX_S_BRX;
    info->is_exit = shape == PTX_S_EXIT || (shape == PTX_S_RET && m->funcs[cold->func].entry);
    info->conditional = in->guard != PTX_NONE;
    info->joins = in->joins;
    for (unsigned i = 0; i < cold->use_count; i++)
        info->uses[i] = uses[i];
    for (unsigned i = 0; i < cold->def_count; i++)
        info->defs[i] = defs[i];
}

/* ---- the instruction as text */

static void print_operand(ev_str *s, const vm_module *m, const ptx_operand *o);

static void print_offset(ev_str *s, int64_t value) {
    if (value)
        ev_str_printf(s, "%+lld", (long long)value);
}

static void print_vector(ev_str *s, const vm_module *m, const ptx_operand *o, unsigned first) {
    ev_str_char(s, '{');
    for (unsigned i = first; i < o->count; i++) {
        ev_str_append(s, i > first ? ", " : "");
        print_operand(s, m, &o->items[i]);
    }
    ev_str_char(s, '}');
}

static void print_operand(ev_str *s, const vm_module *m, const ptx_operand *o) {
    ev_str_append(s, o->negated ? "!" : "");
    switch ((ptx_operand_kind)o->kind) {
    case PTX_O_REG:
        ev_str_append(s, m->regs[o->reg].name);
        return;
    case PTX_O_INT:
        ev_str_printf(s, "%lld", (long long)o->value);
        return;
    case PTX_O_F32:
        ev_str_printf(s, "0f%08llX", (unsigned long long)o->value);
        return;
    case PTX_O_F64:
        ev_str_printf(s, "0d%016llX", (unsigned long long)o->value);
        return;
    case PTX_O_SREG:
        ev_str_append(s, ptx_sreg_text((ptx_sreg)o->value));
        return;
    case PTX_O_SYMBOL:
        ev_str_append(s, o->var->name);
        print_offset(s, o->value);
        return;
    case PTX_O_ADDRESS:
        ev_str_char(s, '[');
        if (o->reg == PTX_NONE && !o->var)
            ev_str_printf(s, "%lld", (long long)o->value);
        else
            ev_str_append(s, o->var ? o->var->name : m->regs[o->reg].name);
        if (o->reg != PTX_NONE || o->var)
            print_offset(s, o->value);
        ev_str_char(s, ']');
        return;
    case PTX_O_VECTOR:
        print_vector(s, m, o, 0);
        return;
    case PTX_O_TEXEL:
        ev_str_char(s, '[');
        for (unsigned i = 0; i < (unsigned)o->value; i++) {
            print_operand(s, m, &o->items[i]);
            ev_str_append(s, ", ");
        }
        print_vector(s, m, o, (unsigned)o->value);
        ev_str_char(s, ']');
        return;
    case PTX_O_SINK:
        ev_str_char(s, '_');
        return;
    default:
        ev_str_append_n(s, o->label, o->label_length);
    }
}

/* The operands of a call as in the text, line ends and runs of blanks as one blank. */
static void print_words(ev_str *s, const ptx_call *call) {
    bool blank = true;
    for (uint32_t i = 0; i < call->text_bytes; i++) {
        char c = call->text[i];
        bool is_blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
        if (!is_blank) {
            if (blank && c != ',')
                ev_str_char(s, ' ');
            ev_str_char(s, c);
        }
        blank = is_blank;
    }
}

char *vm_module_disassemble(const vm_module *m, uint32_t pc) {
    const ptx_insn *in = &m->code[pc];
    const ptx_cold *cold = &m->cold[pc];
    ev_str s = EV_STR_EMPTY;
    if (cold->guard_reg != PTX_NONE)
        ev_str_printf(&s, "@%s%s ", in->negate & 0x80 ? "!" : "", m->regs[cold->guard_reg].name);
    ev_str_append(&s, cold->name);
    for (unsigned i = 0; i < cold->operand_count; i++) {
        const char *between = cold->operands[i].piped ? "|" : ", ";
        ev_str_append(&s, i == 0 ? " " : between);
        print_operand(&s, m, &cold->operands[i]);
    }
    if (in->row == PTX_OP_CALL)
        print_words(&s, &m->calls[in->target]);
    ev_str_char(&s, ';');
    return ev_str_take(&s);
}
