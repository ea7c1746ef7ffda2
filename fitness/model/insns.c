/* Instructions: what the model asks of each one whichever the GPU, read once a module. Most of it
 * the mnemonic says, of which a module has few different ones. */
#include "fitness/model/insns.h"
#include "fitness/model/rows.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PLACES 256 /* where names are looked for; a power of two */

typedef struct reading {
    const vm_module *module;
    model_insns *out;
    size_t name_room;
    uint16_t places[PLACES]; /* number of a name, plus 1 */
} reading;

/* ---- names */

typedef struct trait_row {
    const char *begin;
    uint32_t traits;
} trait_row;

static const trait_row PREFIXES[] = {
    {"mov.", MODEL_MOVES | MODEL_NARROWS},
    {"ld.param", MODEL_IS_PARAMETER},
    {"cvta", MODEL_CONVERTS_ADDRESS | MODEL_NARROWS},
    {"call", MODEL_CALLS},
    {"brx", MODEL_JUMPS_ANYWHERE},
    {"add.s64", MODEL_ADDS | MODEL_NARROWS},
    {"add.u64", MODEL_ADDS | MODEL_NARROWS},
    {"add.s32", MODEL_ADDS},
    {"add.u32", MODEL_ADDS},
    {"sub.s64", MODEL_NARROWS},
    {"shl.b64", MODEL_NARROWS},
    {"or.b64", MODEL_NARROWS},
    {"and.b64", MODEL_NARROWS},
    {"mul.wide", MODEL_NARROWS},
    {"mad.wide", MODEL_NARROWS},
    {"cvt.u32.u64", MODEL_TAKES_LOW},
    {"cvt.u64.u32", MODEL_EXTENDS},
};

/* Of a dot-part: what may follow in it does not matter. */
static const trait_row PARTS[] = {
    {".cg", MODEL_BYPASSES_L1},
    {".cv", MODEL_BYPASSES_L1},
    {".volatile", MODEL_BYPASSES_L1 | MODEL_IS_ORDERED},
    {".relaxed", MODEL_BYPASSES_L1 | MODEL_IS_ORDERED},
    {".acquire", MODEL_BYPASSES_L1 | MODEL_IS_ORDERED},
    {".release", MODEL_IS_ORDERED},
    {".nc", MODEL_IS_CONSTANT},
    {".arrive", MODEL_ARRIVES},
};

static uint32_t traits_of(const char *name) {
    uint32_t traits = 0;
    for (size_t i = 0; i < sizeof PREFIXES / sizeof PREFIXES[0]; i++) {
        if (model_starts_with(name, PREFIXES[i].begin))
            traits |= PREFIXES[i].traits;
    }
    for (const char *at = strchr(name, '.'); at != NULL; at = strchr(at + 1, '.')) {
        for (size_t i = 0; i < sizeof PARTS / sizeof PARTS[0]; i++) {
            if (at[1] == PARTS[i].begin[1] && model_starts_with(at, PARTS[i].begin))
                traits |= PARTS[i].traits;
        }
    }
    return traits;
}

static bool add_name(reading *r, const char *text) {
    model_insns *out = r->out;
    if (out->name_count == r->name_room) {
        size_t room = r->name_room == 0 ? 64 : 2 * r->name_room;
        model_name *more = realloc(out->names, room * sizeof *more);
        if (more == NULL)
            return false;
        out->names = more;
        r->name_room = room;
    }
    out->names[out->name_count++] = (model_name){text, model_cost_of(text), traits_of(text)};
    return true;
}

/* The same name stands at the same address, mostly; where it does not, it is there twice. */
static const model_name *name_of(reading *r, const char *text, uint32_t *number) {
    uint16_t *place = &r->places[((uintptr_t)text >> 4 ^ (uintptr_t)text >> 12) & (PLACES - 1)];
    assert(*place == 0 || r->out->names != NULL);
    if (*place == 0 || r->out->names[*place - 1].text != text) {
        if (!add_name(r, text))
            return NULL;
        *place = r->out->name_count <= UINT16_MAX ? (uint16_t)r->out->name_count : 0;
        *number = r->out->name_count - 1;
    } else {
        *number = *place - 1u;
    }
    return &r->out->names[*number];
}

/* ---- kinds */

static row_kind memory_kind(const vm_insn_info *info) {
    switch (info->space) {
    case VM_SPACE_SHARED:
        return ROW_SHARED;
    case VM_SPACE_LOCAL:
        return ROW_LOCAL;
    case VM_SPACE_GLOBAL:
    case VM_SPACE_GENERIC:
        if (info->is_atomic)
            return ROW_ATOMIC;
        return info->is_load ? ROW_LOAD : ROW_STORE;
    default:
        return ROW_PLAIN;
    }
}

/* A register copy: the assembler gives both the same register. */
static bool is_copy(const vm_insn_info *info, uint32_t traits) {
    return (traits & MODEL_MOVES) != 0 && info->use_count == 1 && info->def_count == 1 &&
           !info->conditional;
}

static row_kind kind_of(const vm_insn_info *info, const model_name *name) {
    if (info->pipe == VM_PIPE_NONE || is_copy(info, name->traits) || name->cost->slots == 0)
        return ROW_FOLDED;
    if (info->is_barrier)
        return (name->traits & MODEL_ARRIVES) != 0 ? ROW_PLAIN : ROW_BARRIER;
    if (info->is_exit)
        return ROW_EXIT;
    return info->is_load || info->is_store || info->is_atomic ? memory_kind(info) : ROW_PLAIN;
}

/* ---- accesses */

static uint8_t spaces_of(vm_space space) {
    switch (space) {
    case VM_SPACE_GLOBAL:
        return MODEL_SPACE_GLOBAL;
    case VM_SPACE_SHARED:
        return MODEL_SPACE_SHARED;
    case VM_SPACE_LOCAL:
        return MODEL_SPACE_LOCAL;
    case VM_SPACE_GENERIC:
        return MODEL_SPACE_ALL;
    default:
        return 0;
    }
}

/* What is promised not to change while the kernel runs can be read at any time. */
static void fill_memory(const vm_insn_info *info, uint32_t traits, model_insn *insn) {
    bool is_fence = info->pipe == VM_PIPE_BARRIER;
    bool is_ordered = info->is_atomic || is_fence || (traits & MODEL_IS_ORDERED) != 0;
    uint8_t spaces = is_fence ? MODEL_SPACE_ALL : spaces_of(info->space);
    if (is_ordered || (info->is_load && (traits & MODEL_IS_CONSTANT) == 0))
        insn->reads = spaces;
    if (is_ordered || info->is_store)
        insn->writes = spaces;
}

/* ---- the list */

static bool read_insn(reading *r, uint32_t pc, uint32_t operands, model_insn *insn) {
    vm_insn_info info;
    vm_module_info(r->module, pc, &info);
    uint32_t number;
    const model_name *name = name_of(r, info.name, &number);
    if (name == NULL)
        return false;
    *insn = (model_insn){
        .operands = operands,
        .target = info.target,
        .name = number,
        .traits = name->traits,
        .use_count = info.use_count,
        .def_count = info.def_count,
        .pipe = (uint8_t)info.pipe,
        .kind = (uint8_t)kind_of(&info, name),
        .space = (uint8_t)info.space,
        .access_bytes = info.access_bytes,
        .is_access = info.is_load || info.is_store || info.is_atomic,
        .is_branch = info.is_branch,
        .is_exit = info.is_exit,
        .is_conditional = info.conditional,
        .ends_block =
            info.is_branch || info.is_exit || info.is_barrier || info.pipe == VM_PIPE_CONTROL,
    };
    fill_memory(&info, name->traits, insn);
    return true;
}

ev_status model_insns_make(const vm_module *module, model_insns *out, ev_error *err) {
    uint32_t count = (uint32_t)vm_module_insn_count(module), operands = 0;
    *out = (model_insns){.count = count,
                         .register_count = vm_module_register_count(module),
                         .operands = vm_module_touched(module)};
    reading r = {.module = module, .out = out};
    out->insns = malloc(((size_t)count + 1) * sizeof *out->insns);
    bool made = out->insns != NULL;
    for (uint32_t pc = 0; pc < count && made; pc++) {
        made = read_insn(&r, pc, operands, &out->insns[pc]);
        operands += made ? out->insns[pc].use_count + (uint32_t)out->insns[pc].def_count : 0;
    }
    out->operand_count = operands;
    if (made && model_blocks_make(module, out, &out->blocks))
        return EV_OK;
    model_insns_free(out);
    return ev_fail_memory(err, (unsigned long long)count * sizeof *out->insns);
}

void model_insns_free(model_insns *insns) {
    model_blocks_free(&insns->blocks);
    free(insns->insns);
    free(insns->names);
    *insns = (model_insns){0};
}
