/* ir: loads a kernel as LLVM IR, numbers it, edits it, optimises it and emits PTX in memory.
 *
 *   base     one start of a task at one setting of its macros, with every instruction numbered
 *   build    one genome on its way to PTX, in stages, so that the caller may stop after each hash
 *
 * LLVM may abort the process on a bad module, so call ir_build_* in worker processes only.
 * IR_STAGE_* names the stage of an abort. No LLVM type leaves this folder. Not thread-safe. */
#ifndef IR_IR_H
#define IR_IR_H

#include "base/hash.h"
#include "base/pcg.h"
#include "base/status.h"
#include "base/str.h"
#include "ir/genome.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- base modules ------------------------------------------------------------------------------
 */

typedef struct ir_base ir_base;

typedef struct ir_macro {
    const char *name;
    int64_t value;
} ir_macro;

/* What a whole-number argument is at the timed cases of the search, each value once. */
enum { IR_MOST_TIMED = 16 };

typedef struct ir_timed {
    int64_t values[IR_MOST_TIMED];
    size_t count; /* 0: a buffer, a real number, or not known */
} ir_timed;

/* Early IR: what structural edits act on (docs/structure.md). `block` as in ir_source. */
typedef struct ir_early {
    const char *bitcode;
    size_t bytes;
    uint32_t block[3];
} ir_early;

/* Stands for the number of edits of what all edits of the prefix and the optimisation have made. */
#define IR_OPTIMISED SIZE_MAX

/* Keeps early IR, so that a structural prefix is applied once. Early IR belongs to a start, its
 * macros, and the first `edits` edits of a genome. It saves time, and changes no result. */
typedef struct ir_early_store {
    void *context;
    /* False: none is kept. *out is borrowed until the next call. */
    bool (*find)(void *context, const ir_genome *genome, size_t edits, ir_early *out);
    /* Keeps a copy. */
    ev_status (*keep)(void *context, const ir_genome *genome, size_t edits, const ir_early *early,
                      ev_error *err);
} ir_early_store;

/* What draws found out about the places of structural edits in one early IR (ir_structure_draw). */
typedef struct ir_places ir_places;
ir_places *ir_places_new(void); /* NULL: out of memory */
void ir_places_free(ir_places *places);

typedef struct ir_source {
    const char *path;       /* .cu (through clang-19), .ll or .bc */
    const char *entry;      /* the kernel's name */
    const char *instance;   /* "ops::scale<float, 4>": the instance of the template `entry` that is
                               meant, and that is made if the source does not; NULL: no template */
    const char *include;    /* folder of evoke_cuda.h */
    const ir_macro *macros; /* -DNAME=VALUE for a .cu */
    size_t macro_count;
    const char *const *symbols; /* names of __constant__ and __device__ variables that the host
                                   fills before a launch */
    size_t symbol_count;
    int sm;         /* target, e.g. 90 */
    bool optimised; /* the base of genomes for which ir_genome_is_optimised holds */
    /* Facts of the launches, for the edits that draw constants and for launch bounds. */
    const int64_t *constants; /* launch constants: sizes, strides; any order */
    size_t constant_count;
    uint32_t block[3]; /* threads a block in every launch; 0: not known or not always the same */
    /* For structural edits. The genome whose prefix is applied; NULL: none. The start's launch
     * plan, all of whose kernels are kept (NULL: not known), the names of the kernel's arguments,
     * and the values of all macros of the task, for its expressions. */
    const ir_genome *genome;
    const launch_plan *plan;
    const char *const *arguments;
    uint64_t unsigned_arguments; /* a bit each: a number without sign */
    uint64_t overlapping; /* a bit each: launches may pass one buffer for it and for another one */
    const uint32_t *aligns; /* bytes of alignment that every launch grants of each argument's
                               address; NULL: not known */
    const ir_timed *timed;  /* of each argument, for the edits that are drawn; NULL: not known */
    size_t argument_count;
    const ir_macro *names;
    size_t name_count;
    const ir_early_store *early; /* NULL: none */
    size_t *reached;   /* gets how many edits of the prefix were applied; NULL: nobody asks */
    ir_places *places; /* of the genome's early IR, noted by earlier draws on it; NULL: none */
    /* The result of an earlier ir_compile; NULL: ir_base_load compiles the source. */
    const char *bitcode;
    size_t bitcode_bytes;
} ir_source;

/* True if the source must be compiled: a .cu. */
bool ir_is_compiled(const ir_source *source);
/* The first part of loading such a source: appends clang's bitcode, before all passes. EV_BAD: as
 * ir_base_load. */
ev_status ir_compile(const ir_source *source, ev_str *bitcode, ev_error *err) EV_CHECKED;

/* Compiles a .cu (clang-19 -O3, device side only, no CUDA SDK), parses the IR, keeps the entry and
 * its dependences, notes source lines, strips debug info, and numbers the instructions. A genome's
 * structural prefix is applied before the optimisation. EV_BAD: a structural edit that is refused,
 * a source that does not compile (with clang's message), a missing entry (with the existing ones),
 * IR that does not verify. */
ev_status ir_base_load(const ir_source *source, ir_base **out, ev_error *err) EV_CHECKED;
void ir_base_free(ir_base *base);
size_t ir_base_insn_count(const ir_base *base);
uint32_t ir_base_insn_line(const ir_base *base, size_t number); /* source line; 0: none */
char *ir_base_insn_text(const ir_base *base, size_t number);    /* as LLVM prints it; malloc'ed */
ev_sha256 ir_base_sha256(const ir_base *base);                  /* of the canonical IR */

/* Checks, for a base of `source`, that no variable is read that only the host can have filled and
 * that source->symbols does not list (ir/symbols.c has the rule). EV_BAD: names the variable and
 * the cure. */
ev_status ir_base_check_symbols(const ir_base *base, const ir_source *source,
                                ev_error *err) EV_CHECKED;

/* The pointer arguments of the kernel that the source does not declare as not overlapping
 * (__restrict__, LLVM's noalias): a bit each, of the first 64. */
uint64_t ir_base_may_alias(const ir_base *base);
/* PTX of the base module without edits, by the light pipeline. The line of each .loc is the number
 * of the originating instruction plus 1, so a profile's counters can be attributed to instructions.
 * The PTX is no variant. malloc'ed. */
ev_status ir_base_marked_ptx(const ir_base *base, char **ptx, size_t *bytes,
                             ev_error *err) EV_CHECKED;
/* The PTX of a genome without edits or knobs, with the source's lines in .loc; malloc'ed. */
ev_status ir_base_lined_ptx(const ir_base *base, char **ptx, size_t *bytes,
                            ev_error *err) EV_CHECKED;

/* ---- building ----------------------------------------------------------------------------------
 */

typedef enum ir_stage {
    IR_STAGE_EDIT, /* clone, apply the edits with their repairs */
    IR_STAGE_VERIFY,
    IR_STAGE_OPTIMISE, /* default<O3> or the genome's pipeline */
    IR_STAGE_EMIT,     /* NVPTX */
    IR_STAGE_COUNT
} ir_stage;

const char *ir_stage_name(ir_stage stage);

typedef struct ir_build ir_build;
/* The edited module of one genome, kept from its drawing to its build. Free it before its base. */
typedef struct ir_work ir_edited;
void ir_edited_free(ir_edited *edited); /* NULL is fine */

/* Begins a build. ir_build_run runs the stages in order. EV_BAD of a stage is the candidate's
 * fault, with the edit's number and kind, or LLVM's message. */
ev_status ir_build_new(const ir_base *base, const ir_genome *genome, ir_build **out,
                       ev_error *err) EV_CHECKED;
/* Takes over the edited module that ir_mutate_edited made with the same genome on this base. It
 * equals the module that stage EDIT would make. Call before EDIT, which then does nothing. NULL is
 * fine. */
void ir_build_take_edited(ir_build *build, ir_edited *edited);
/* Whether an edit of the genome asserts a fact that a run can break without a trap or a wrong
 * answer at the cases tried. */
bool ir_genome_asserts(const ir_genome *genome);
/* The comment in the PTX line of a trap that tests an asserted fact; the rest of the line says
 * which edit asserts what. */
#define IR_ASSERT_MARK "// asserted: "
/* Makes the build one in which asserted facts are checks that trap. Call before EDIT, without
 * ir_build_take_edited. Such a build is no variant: it only tells whether the facts hold. */
void ir_build_check_asserts(ir_build *build);
ev_status ir_build_run(ir_build *build, ir_stage stage, ev_error *err) EV_CHECKED;
/* Runs all stages. */
ev_status ir_build_run_all(ir_build *build, ev_error *err) EV_CHECKED;
/* After EDIT: number of the genome's edits that are bold where they stand; 0: the variant preserves
 * the meaning of its start, up to rounding (ir/edits.def). */
size_t ir_build_bold(const ir_build *build);
/* Whether one of the genome's local edits may round. */
bool ir_build_rounds(const ir_build *build);
void ir_build_free(ir_build *build);
/* Call after VERIFY or OPTIMISE. Generates PTX of the module in its present state with the
 * direct emitter (fast code generation, a tenth of LLVM's time). The PTX computes the same bits
 * as LLVM's. *covered is false if the module contains a construct that the emitter does not
 * support; `err`, unless NULL, names the construct. */
ev_status ir_build_sketch(ir_build *build, bool *covered, ev_error *err) EV_CHECKED;
/* PTX and hash of the fast code; only if it was covered. */
const char *ir_build_sketch_ptx(const ir_build *build, size_t *bytes); /* borrowed */
ev_sha256 ir_build_sketch_sha256(const ir_build *build);
/* Mixes the code-generation level into a hash: variants may share fast code and differ in code
 * generation. ir_build_sketch_sha256 already includes the level. */
ev_sha256 ir_build_salt(const ir_build *build, ev_sha256 sha);
/* ir_sha256, after OPTIMISE: hash of the canonical IR and of the code-generation level.
 * ptx_sha256, after EMIT: hash of the PTX. */
ev_sha256 ir_build_ir_sha256(ir_build *build);
ev_sha256 ir_build_ptx_sha256(const ir_build *build);
const char *ir_build_ptx(const ir_build *build, size_t *bytes); /* borrowed; after EMIT */
/* CPU seconds of each stage in this process, its hashing and messages included: `llvm` inside
 * LLVM's passes and emission, `own` the rest. For `evoke bench compile` only. */
typedef struct ir_build_cost {
    double llvm[IR_STAGE_COUNT];
    double own[IR_STAGE_COUNT];
} ir_build_cost;
ir_build_cost ir_build_cost_of(const ir_build *build);

/* ---- arms --------------------------------------------------------------------------------------
 */

/* Appends PTX of the base without edits that notes the arms that branches, selects, compares,
 * minima and maxima take, and the blocks that run. The PTX is no variant. The host writes the
 * address of a buffer of ir_base_arms_bytes bytes, zeroed, into the variable IR_ARMS_VARIABLE; a
 * byte becomes 1 when a thread takes its arm. */
#define IR_ARMS_VARIABLE "evoke_arms"
size_t ir_base_arms_bytes(const ir_base *base);
ev_status ir_base_arms_ptx(const ir_base *base, ev_str *ptx, ev_error *err) EV_CHECKED;

/* What is known of the arms of a base. */
typedef struct ir_arms {
    const uint8_t *taken;    /* the buffer above, after the runs */
    const uint32_t *assumed; /* source lines whose arms the user declares unreachable */
    size_t assumed_count;
} ir_arms;

/* Appends why a bold edit of the genome touches an arm that no run took: the first such edit, the
 * source line, the arm and the cure. Nothing, if there is none. */
ev_status ir_arms_missed(const ir_base *base, const ir_genome *genome, const ir_arms *arms,
                         ev_str *why, ev_error *err) EV_CHECKED;

/* ---- mutation ----------------------------------------------------------------------------------
 */

/* Hints for the draw of an edit. */
typedef struct ir_hints {
    /* Site weights: the weight of each base instruction when a place is drawn; an inserted
     * instruction has weight 1. NULL: all weights are equal. */
    const double *heat;
    const uint64_t *spent; /* tabu list: ir_edit_mark of edits not to draw; [spent_count] */
    size_t spent_count;
} ir_hints;

/* Makes a child of `parent` with one more edit of `kind`, drawn at a place of the parent's
 * edited module where the edit applies. `hints` may be NULL. The draw depends on the arguments
 * alone. The caller frees *out with ir_genome_free. EV_BAD: the kind has no place there. */
ev_status ir_mutate(const ir_base *base, const ir_genome *parent, ir_edit_kind kind,
                    const ir_hints *hints, ev_pcg *rng, ir_genome **out, ev_error *err) EV_CHECKED;
/* As ir_mutate, without a rebuild of the parent's edited module. On entry *edited is the
 * parent's edited module, or NULL. On success *edited is the child's module; if no edit could be
 * drawn, *edited remains the parent's. *edited is NULL where the module could not be kept. */
ev_status ir_mutate_edited(const ir_base *base, const ir_genome *parent, ir_edit_kind kind,
                           const ir_hints *hints, ev_pcg *rng, ir_edited **edited, ir_genome **out,
                           ev_error *err) EV_CHECKED;

/* Makes a child of source->genome with one more structural edit of `kind`, drawn at a place where
 * it applies. The child keeps macros, prefix and knobs of its parent; local edits, which belong to
 * the parent's base, are dropped. As a knob, max-threads is dropped as well, since blocks may
 * change their size. `hints`: as for ir_mutate, without site weights. EV_BAD: no place that was
 * tried. */
ev_status ir_structure_draw(const ir_source *source, ir_edit_kind kind, const ir_hints *hints,
                            ev_pcg *rng, ir_genome **out, ev_error *err) EV_CHECKED;
/* An edit that the child alone has may unmake a loop or an array that a later edit names. Leaves
 * out such later edits of source->genome: those that have no place behind the edits before them,
 * and that one of the `count` parents has. *out: the caller's, equal to the genome if all edits
 * have a place. EV_BAD: an edit without a place is the child's own, or the source cannot be loaded.
 */
ev_status ir_structure_mend(const ir_source *source, const ir_genome *const *parents, size_t count,
                            ir_genome **out, ev_error *err) EV_CHECKED;
/* The structural edits that often go on where `kind` leaves off, by number from 0
 * (ir/structure.def); IR_EDIT_COUNT: no more. */
ir_edit_kind ir_structure_follower(ir_edit_kind kind, size_t index);
/* The usual place of a new structural edit in a genome's prefix: behind the last edit of the same
 * or an earlier phase (ir/structure.def). */
size_t ir_structure_usual_place(const ir_genome *genome, ir_edit_kind kind);

/* Counts the places of each local edit in the base module. */
void ir_base_sites(const ir_base *base, size_t sites[IR_EDIT_COUNT]);
/* Counts the places of the structural edits in source->genome's early IR, each with its options and
 * forms; an edit may be refused at some. The counts of local edits stay as they are. */
ev_status ir_structure_sites(const ir_source *source, size_t sites[IR_EDIT_COUNT],
                             ev_error *err) EV_CHECKED;

/* ---- reading -----------------------------------------------------------------------------------
 */

/* Stands in the words of an edit that is bold, before the reason. */
#define IR_BOLD_MARK " [bold"

/* Appends one line that describes an edit in words, with the source line. An edit that is bold
 * there is marked so, with the reason. */
ev_status ir_describe_edit(const ir_base *base, const ir_genome *genome, size_t index, ev_str *out,
                           ev_error *err) EV_CHECKED;
/* Appends a unified diff of a variant's IR to its base's, after the edits and before optimisation.
 */
ev_status ir_diff(const ir_base *base, const ir_genome *genome, ev_str *out,
                  ev_error *err) EV_CHECKED;

/* Version of the LLVM library in use, "19.1.7": part of a run's identity. */
const char *ir_llvm_version(void);

/* Sets a handler that gets LLVM's message just before LLVM would abort the process. The handler
 * must not return; a worker writes its last message and exits. */
void ir_set_fatal_handler(void (*handler)(const char *reason));

#endif
