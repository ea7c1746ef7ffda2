/* Modules: PTX text after loading. A module is decoded once, launched often, and never changed by a
 * launch. vm_insn_info has the facts that the timing model and the profiler need. PTX ISA 8.5. */
#ifndef FITNESS_PTX_MODULE_H
#define FITNESS_PTX_MODULE_H

#include "base/status.h"
#include "base/type.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct vm_module vm_module;

typedef struct vm_param {
    const char *name;
    uint32_t offset; /* bytes from the start of the parameter block */
    uint32_t bytes;
    uint32_t align;
    ev_type type; /* of a scalar; U8 for a .b8 array (a struct passed by value) */
} vm_param;

typedef struct vm_entry {
    const char *name;
    const vm_param *params;
    size_t param_count;
    uint32_t param_bytes;
    uint32_t shared_bytes;  /* static shared memory a block, the module's variables included */
    uint32_t local_bytes;   /* local depot a thread */
    uint32_t max_threads;   /* product of .maxntid or .reqntid; 0: not given */
    uint32_t max_registers; /* .maxnreg; 0: not given */
    uint32_t min_blocks;    /* .minnctapersm; 0: not given */
    uint32_t first_pc;      /* its instructions are [first_pc, end_pc) of the module's code */
    uint32_t end_pc;
} vm_entry;

typedef enum vm_pipe {
#define VM_PIPE(id, name, throughput, latency, meaning) VM_PIPE_##id,
#include "fitness/ptx/pipes.def"
#undef VM_PIPE
    VM_PIPE_COUNT
} vm_pipe;

typedef enum vm_space {
    VM_SPACE_NONE,
    VM_SPACE_GENERIC,
    VM_SPACE_GLOBAL,
    VM_SPACE_SHARED,
    VM_SPACE_LOCAL,
    VM_SPACE_CONST,
    VM_SPACE_PARAM,
} vm_space;

/* Of one entry, in bytes: CUDA C++ Programming Guide, compute capabilities. */
#define VM_MOST_STATIC_SHARED 49152
#define VM_MAX_REGS 26 /* registers of one instruction; mma has the most */

/* One decoded instruction, for the timing model and the profiler. Register numbers are dense within
 * the module; a 64-bit register is one number. */
typedef struct vm_insn_info {
    const char *name; /* full mnemonic as in the text, "ld.global.nc.v4.f32" */
    vm_pipe pipe;
    uint32_t line;        /* in the PTX text, from 1 */
    uint32_t source_line; /* from .loc; 0: none */
    vm_space space;       /* of a memory access */
    uint8_t access_bytes; /* of a memory access, a lane */
    bool is_load, is_store, is_atomic, is_barrier, is_branch, is_exit;
    bool conditional; /* guarded by a predicate */
    uint8_t joins;    /* 2 or 4: first of the accesses of shared memory that the assembler makes one
                         of, of so many words; 1: another of these; 0: an access of its own */
    uint32_t target;  /* pc of a direct branch's target; UINT32_MAX otherwise */
    uint8_t def_count, use_count;
    uint16_t defs[VM_MAX_REGS], uses[VM_MAX_REGS];
} vm_insn_info;

/* Loads PTX text of `bytes`, not counting a NUL. All checks are made here. EV_BAD
 * "NAME:LINE:COLUMN: FOUND; EXPECTED": a syntax error, or an instruction, type or directive that
 * the virtual machine does not have. */
ev_status vm_module_load(const char *ptx, size_t bytes, const char *name, vm_module **out,
                         ev_error *err) EV_CHECKED;
/* A cache of decoded mnemonics. Modules loaded with the same cache load faster. A cache is not
 * thread-safe. Modules do not refer to it after loading. */
typedef struct vm_words vm_words;
ev_status vm_words_new(vm_words **out, ev_error *err) EV_CHECKED;
void vm_words_free(vm_words *words); /* NULL is fine */
/* Where variables stand in their spaces. */
typedef enum vm_placement {
    VM_PLACE_PACKED, /* each at the next multiple of its alignment */
    /* Variables of the block and the thread, and constants, at odd multiples of the alignment that
     * they declare: an access that needs more of them traps. A variable stays at the bank of
     * each of its elements relative to the first, so modelled times are those of PACKED. */
    VM_PLACE_ODD,
    VM_PLACE_ODD_GLOBALS, /* .global variables as well; they then lie across sectors */
} vm_placement;
ev_status vm_module_load_with(vm_words *words, vm_placement placement, const char *ptx,
                              size_t bytes, const char *name, vm_module **out,
                              ev_error *err) EV_CHECKED;
void vm_module_free(vm_module *module);    /* NULL is fine */
int vm_module_sm(const vm_module *module); /* of .target, e.g. 90 */
size_t vm_module_entry_count(const vm_module *module);
const vm_entry *vm_module_entry(const vm_module *module, size_t index);
/* The entry of that name; a NULL name means the only entry. NULL: none, or more than one. */
const vm_entry *vm_module_find(const vm_module *module, const char *name);
/* Steps through the words of 8 bytes in a launch's parameters that may be addresses; a struct has
 * several. *at is 0 first. false: there are no more. */
bool vm_entry_next_word(const vm_entry *entry, const void *params, uint32_t *at, uint64_t *word);
size_t vm_module_insn_count(const vm_module *module);
/* The line of the first instruction that NVIDIA's assembler is known to translate otherwise than
 * the PTX ISA says, and what it does, with the cure; 0: there is none. */
uint32_t vm_module_ptxas_fault(const vm_module *m, const char **what);
uint32_t vm_module_register_count(const vm_module *module);
/* 32-bit words of a register in the register file: 0 for a predicate, else 1 or 2. */
unsigned vm_module_register_words(const vm_module *module, uint32_t reg);
void vm_module_info(const vm_module *m, uint32_t pc, vm_insn_info *info);
/* The registers of all instructions, in order. Of each instruction, the registers that it reads
 * come first, then those that it writes. */
const uint16_t *vm_module_touched(const vm_module *module);
/* The instruction as text; malloc'ed. */
char *vm_module_disassemble(const vm_module *module, uint32_t pc);
/* The text line `line` of the PTX source, borrowed, without its newline; length in *bytes. */
const char *vm_module_line(const vm_module *module, uint32_t line, size_t *bytes);

int vm_module_version(const vm_module *module); /* of .version, times ten: 85 */
/* The least PTX version, times ten, that the target, the instructions and the directives need.
 * *what is the name of the one that needs it, borrowed. The loader checks that .version is no less.
 */
int vm_module_needs(const vm_module *module, const char **what);
/* Changes .version in PTX text of `bytes`, in place, to the least version that the text needs.
 * EV_BAD: as vm_module_load. */
ev_status vm_text_lower(char *ptx, size_t bytes, ev_error *err) EV_CHECKED;
/* The text with .version lowered to `version`. The text is unchanged if the module needs a later
 * version, states no later one, or has .version twice. malloc'ed; NULL: out of memory. */
char *vm_module_text_for(const vm_module *module, int version);

/* Place of a module's variable in its space. */
typedef struct vm_variable {
    vm_space space; /* VM_SPACE_GLOBAL or VM_SPACE_CONST */
    uint64_t offset, bytes;
    bool is_texture, is_surface; /* a .texref or .surfref: its contents are a handle */
} vm_variable;

/* The PTX text as it was loaded, NUL-terminated, borrowed. */
const char *vm_module_text(const vm_module *module, size_t *bytes);
bool vm_module_variable(const vm_module *module, const char *name, vm_variable *out);
/* The name of a variable of these spaces, in an order of the module's own; NULL: no more. */
const char *vm_module_variable_name(const vm_module *module, size_t index, vm_variable *out);
/* Sets the contents of a variable for all launches from here on; `data` has `variable->bytes`. Not
 * during a launch. */
void vm_module_fill(vm_module *module, const vm_variable *variable, const void *data);
/* Bytes of all .global variables; 0: there are none. */
uint64_t vm_module_global_bytes(const vm_module *module);
/* Writes the initial contents of the .global variables to `host`, for a buffer at `address` of the
 * device. vm_launch.globals then takes this address. */
void vm_module_place(const vm_module *module, uint64_t address, void *host);
/* The contents of the .const variables, shared by all launches of the module. */
void *vm_module_constants(vm_module *module, uint64_t *bytes);

#endif
