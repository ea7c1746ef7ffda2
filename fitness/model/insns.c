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

/* A pair that becomes one machine instruction: costs.def. */
typedef struct fuse_row {
    const char *first, *last, *into_first, *into_last;
    bool takes; /* costs what the first one does */
} fuse_row;

static const fuse_row FUSES[] = {
#define MODEL_FUSE(first, last, into_first, into_last, takes)                                      \
    {first, last, into_first, into_last, takes},
#include "fitness/model/costs.def"
};

_Static_assert(sizeof FUSES / sizeof FUSES[0] <= 32, "a bit a row");

static void find_fuses(model_name *name) {
    size_t length = strlen(name->text);
    for (uint32_t i = 0; i < sizeof FUSES / sizeof FUSES[0]; i++) {
        const fuse_row *f = &FUSES[i];
        name->fuses_first |= (uint32_t)model_name_fits(name->text, length, f->first,
                                                       strlen(f->first), f->last, strlen(f->last))
                             << i;
        name->fuses_into |=
            (uint32_t)model_name_fits(name->text, length, f->into_first, strlen(f->into_first),
                                      f->into_last, strlen(f->into_last))
            << i;
    }
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
    model_name *name = &out->names[out->name_count++];
    *name = (model_name){.text = text, .cost = model_cost_of(text), .traits = traits_of(text)};
    find_fuses(name);
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

/* A register copy, or the halves of a register pair, to which the assembler gives the same
 * registers, or a literal, which becomes an operand of the instructions that use it. Some of the
 * copies stay: copies.c. */
static bool is_copy(const vm_insn_info *info, uint32_t traits) {
    return (traits & MODEL_MOVES) != 0 && info->use_count <= 1 &&
           info->def_count <= (info->use_count == 1 ? 2 : 1) && info->pipe != VM_PIPE_CONSTANT &&
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
        .access_bytes = info.joins > 1 ? (uint8_t)(4 * info.joins) : info.access_bytes,
        .joins = info.joins,
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

/* ---- pairs that become one machine instruction */

typedef struct fusing {
    model_insns *out;
    uint32_t *all;    /* uses of each register in the module */
    uint32_t *inside; /* in the block */
    uint32_t *def;    /* pc of its last definition in the block, plus 1; 0: none */
    uint32_t *uses;   /* by pc: of what it defines */
} fusing;

static const uint16_t *operands_of(const fusing *f, uint32_t pc) {
    return f->out->operands + f->out->insns[pc].operands;
}

/* Uses of the definition that the pc at hand sees; those of other blocks count as the last one's.
 */
static void count_block(const fusing *f, uint32_t begin, uint32_t end) {
    for (uint32_t pc = begin; pc < end; pc++) {
        const model_insn *insn = &f->out->insns[pc];
        const uint16_t *operands = operands_of(f, pc);
        for (unsigned i = 0; i < insn->use_count; i++) {
            uint32_t def = f->def[operands[i]];
            if (def == 0)
                continue; /* of another block, or of an earlier round */
            f->uses[def - 1]++;
            f->inside[operands[i]]++;
        }
        for (unsigned i = 0; i < insn->def_count; i++)
            f->def[operands[insn->use_count + i]] = pc + 1;
    }
    for (uint32_t pc = begin; pc < end; pc++) {
        const model_insn *insn = &f->out->insns[pc];
        for (unsigned i = 0; i < insn->use_count + (unsigned)insn->def_count; i++) {
            uint16_t reg = operands_of(f, pc)[i];
            if (f->def[reg] > 0)
                f->uses[f->def[reg] - 1] += f->all[reg] - f->inside[reg];
            f->def[reg] = f->inside[reg] = 0;
        }
    }
}

static bool count_uses(fusing *f) {
    size_t registers = (size_t)f->out->register_count + 1;
    f->all = calloc(3 * registers, sizeof *f->all);
    f->uses = calloc((size_t)f->out->count + 1, sizeof *f->uses);
    if (f->all == NULL || f->uses == NULL)
        return false;
    f->inside = f->all + registers;
    f->def = f->inside + registers;
    for (uint32_t pc = 0; pc < f->out->count; pc++)
        for (unsigned i = 0; i < f->out->insns[pc].use_count; i++)
            f->all[operands_of(f, pc)[i]]++;
    return true;
}

/* Folds the instruction that defines the register into the one that uses it, if the assembler does.
 */
static bool fuse_into(const fusing *f, uint32_t pc, uint16_t reg) {
    model_insns *out = f->out;
    model_insn *insn = &out->insns[pc];
    if (f->def[reg] == 0 || f->uses[f->def[reg] - 1] != 1)
        return false;
    model_insn *first = &out->insns[f->def[reg] - 1];
    uint32_t rows = out->names[first->name].fuses_first & out->names[insn->name].fuses_into;
    if (rows == 0 || first->kind != ROW_PLAIN || first->is_conditional || first->is_fused ||
        first->guard != insn->guard)
        return false;
    if (FUSES[__builtin_ctz(rows)].takes) {
        insn->name = first->name;
        insn->pipe = first->pipe;
    }
    first->kind = ROW_FOLDED;
    insn->is_fused = true;
    return true;
}

/* A machine instruction has three operands at most: one of the uses is taken. */
static void fuse_block(const fusing *f, uint32_t begin, uint32_t end) {
    model_insns *out = f->out;
    count_block(f, begin, end);
    for (uint32_t pc = begin; pc < end; pc++) {
        const model_insn *insn = &out->insns[pc];
        const uint16_t *operands = operands_of(f, pc);
        bool fits = out->names[insn->name].fuses_into != 0 && insn->kind == ROW_PLAIN;
        for (unsigned i = 0; fits && i < insn->use_count; i++)
            fits = !fuse_into(f, pc, operands[i]);
        for (unsigned i = 0; i < insn->def_count; i++)
            f->def[operands[insn->use_count + i]] = pc + 1;
    }
    for (uint32_t pc = begin; pc < end; pc++)
        for (unsigned i = 0; i < out->insns[pc].def_count; i++)
            f->def[operands_of(f, pc)[out->insns[pc].use_count + i]] = 0;
}

static bool fuse_all(model_insns *out) {
    fusing f = {.out = out};
    const uint32_t *next = out->blocks.next;
    bool made = count_uses(&f) && next != NULL;
    for (uint32_t pc = 0; made && pc < out->count; pc = next[pc])
        fuse_block(&f, pc, next[pc]);
    free(f.all);
    free(f.uses);
    return made;
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
    if (made && model_copies_keep(module, out) && model_blocks_make(module, out, &out->blocks) &&
        fuse_all(out))
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
