/* Genome: knobs and an ordered list of edits; a plain value with a JSON form, free of LLVM.
 *
 * A genome prints to one JSON text and parses back to the same value. Its SHA-256 is that of the
 * compact text. ir/edit.h has the JSON of an edit.
 *
 * Replay of a genome gives the same module everywhere. An edit refers to base instructions by
 * number, and to instructions inserted by earlier edits by the tag of that edit. The repairs of SSA
 * form are part of the edit. A crossover or a removed edit may leave a use without a valid repair;
 * replay then takes the nearest dominating instruction of the type, else the last such argument,
 * else zero. An edit whose instruction is missing makes the build EV_BAD.
 *
 * Edits of the family "launch" are knobs: a genome has at most one of each kind.
 *
 * Edits of the family "structure" come first: the structural prefix. They act on early IR, before
 * the base is optimised and numbered, so the prefix belongs to the base (docs/structure.md), and
 * they change the launch plan.
 *
 * Ownership: a genome counts its references. Its maker has the first one and may change the genome;
 * once there is a second reference, the genome is constant. ir_genome_free gives a reference back.
 * References belong to one thread. */
#ifndef IR_GENOME_H
#define IR_GENOME_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/launch_plan.h"
#include "base/pcg.h"
#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ir_edit_kind {
#define IR_EDIT(id, name, family, extent, meaning, needs, describes, because) IR_EDIT_##id,
#include "ir/edits.def"
#undef IR_EDIT
    IR_EDIT_COUNT
} ir_edit_kind;

/* The structural edits are the last kinds of the table; those before them are local edits, which
 * are drawn on a numbered base. */
enum { IR_EDIT_LOCAL_COUNT = IR_EDIT_COARSEN };

const char *ir_edit_name(ir_edit_kind kind);
const char *ir_edit_family(ir_edit_kind kind); /* "gevo", "sync", "memory", "arithmetic", "control",
                                                  "launch", "structure" */
const char *ir_edit_needs(ir_edit_kind kind);
const char *ir_edit_describes(ir_edit_kind kind);
/* What the edit does to the meaning of the program, as the edit table says: "preserving",
 * "rounding", "bold", "preserving or bold", "rounding or bold"; and the reason. */
const char *ir_edit_meaning_name(ir_edit_kind kind);
const char *ir_edit_because(ir_edit_kind kind);
bool ir_edit_is_bold(ir_edit_kind kind);     /* at every place */
bool ir_edit_may_be_bold(ir_edit_kind kind); /* at some places */
bool ir_edit_may_round(ir_edit_kind kind);   /* whether it may change the bits of results */
bool ir_edit_find(const char *name, ir_edit_kind *out);
/* True for a knob of the launch or the pipeline; a genome has at most one of each kind. */
bool ir_edit_is_knob(ir_edit_kind kind);
/* True for an edit of the prefix: it acts on early IR, before instructions are numbered. */
bool ir_edit_is_structural(ir_edit_kind kind);
/* A 64-bit hash of an edit's JSON without its repairs; 0: out of memory. */
uint64_t ir_edit_mark(const json_t *edit);

typedef struct ir_genome ir_genome;

ir_genome *ir_genome_new(const char *start); /* no edits, default knobs; NULL: out of memory */
ir_genome *ir_genome_clone(const ir_genome *genome); /* NULL: out of memory */
/* One more reference to the genome; NULL gives NULL. */
const ir_genome *ir_genome_ref(const ir_genome *genome);
/* Gives a reference back; the last one frees the genome. NULL is fine. */
void ir_genome_free(const ir_genome *genome);

const char *ir_genome_start(const ir_genome *genome);
/* The base module of the edits. false: loops are rolled, and the pipeline optimises after the
 * edits. true: `default<O3>` has run, and only code generation follows the edits, as in GEVO. In
 * JSON: "base": "optimised". */
bool ir_genome_is_optimised(const ir_genome *genome);
void ir_genome_set_optimised(ir_genome *genome, bool optimised); /* before it has edits */
/* Knobs: the task's macros, sorted by name. An unset macro has its default. */
ev_status ir_genome_set_macro(ir_genome *genome, const char *name, int64_t value,
                              ev_error *err) EV_CHECKED;
void ir_genome_unset_macro(ir_genome *genome, const char *name); /* nothing where it is not set */
size_t ir_genome_macro_count(const ir_genome *genome);
const char *ir_genome_macro_name(const ir_genome *genome, size_t index);
int64_t ir_genome_macro_value(const ir_genome *genome, size_t index);

size_t ir_genome_edit_count(const ir_genome *genome);
/* The number of structural edits, which come first. */
size_t ir_genome_prefix_count(const ir_genome *genome);
/* The number of structural edits up to the last one that divides the work of blocks anew
 * (ir/structure.def). */
size_t ir_genome_division_count(const ir_genome *genome);
/* The launch plan of a genome whose start has the plan `from`: *out is `from` itself if there is no
 * structural edit, else it lives in the arena. */
ev_status ir_genome_plan(const ir_genome *genome, const launch_plan *from, ev_arena *arena,
                         const launch_plan **out, ev_error *err) EV_CHECKED;
/* Appends the first `count` structural edits as text: equal edits have equal texts. */
ev_status ir_genome_prefix_text(const ir_genome *genome, size_t count, ev_str *out,
                                ev_error *err) EV_CHECKED;
ir_edit_kind ir_genome_edit_kind(const ir_genome *genome, size_t index);
/* The SHA-256 of one edit's JSON: equal edits have equal keys in all genomes. */
ev_sha256 ir_genome_edit_key(const ir_genome *genome, size_t index);
/* ir_edit_mark of one edit. */
uint64_t ir_genome_edit_mark(const ir_genome *genome, size_t index);
/* The index of the edit with this key; SIZE_MAX: there is none. */
size_t ir_genome_find(const ir_genome *genome, const ev_sha256 *key);
bool ir_genome_holds(const ir_genome *genome, const ev_sha256 *key);
void ir_genome_remove(ir_genome *genome, size_t index);
/* Appends a copy of `from`'s edit. A knob replaces the one of its kind. false: the genome has that
 * edit already, and is unchanged. */
bool ir_genome_append_from(ir_genome *genome, const ir_genome *from, size_t index);

/* Drops all local edits but the knobs that hold for any base. Local edits refer to instructions of
 * one base by number; call when macros or prefix change. */
void ir_genome_keep_knobs(ir_genome *genome);
/* Whether the genome is a skeleton with knobs: it has no local edit that refers to an instruction.
 */
bool ir_genome_is_skeleton(const ir_genome *genome);
/* The parts of the grid's dimensions in whose first one all work is done, as structural edits that
 * keep the grid leave it: blocks behind the first n-th part of a dimension end at once. 1: all
 * work. */
void ir_genome_idle_parts(const ir_genome *genome, uint32_t parts[3]);
/* A copy without local edits in which one structural edit, drawn at random, has another option or
 * form. The genome has a prefix. NULL: that edit has no other, or memory ran out. */
ir_genome *ir_genome_retune(const ir_genome *genome, ev_pcg *rng);
/* Whether a structural edit opens, in one of its forms at least: edits that divide the work, stage
 * tiles or give interior blocks a copy without tests make places for other edits, where the rest
 * (turns written out, loads ahead, numbers of threads, copies for some arguments) only finish what
 * is there. */
bool ir_edit_opens(ir_edit_kind kind);
/* The number of forms with which a structural edit is drawn. */
size_t ir_edit_forms(ir_edit_kind kind);
/* Whether a structural edit changes how the loads of a loop's turns follow each other: turns side
 * by side, loads ahead. */
bool ir_edit_of_turns(ir_edit_kind kind);
/* The number of structural edits on which others stand, though they may change no time themselves:
 * those that give threads another place, such as rows and columns, and those that give interior
 * blocks a copy without tests. */
size_t ir_genome_footing_count(const ir_genome *genome);
/* The number of places that a genome's structural edits open. Edits of one kind at one place count
 * once. */
size_t ir_genome_opening_count(const ir_genome *genome);
/* The first structural edit that opens; SIZE_MAX: there is none. */
size_t ir_genome_first_opening(const ir_genome *genome);
/* A hash of the kinds and places of the structural edits that open, in any order: what has it in
 * common differs in options, forms, macros and edits that finish alone. */
uint64_t ir_genome_outline(const ir_genome *genome);
/* The same with the product of the options at each place: what has it in common also divides the
 * work into as many parts, in one edit or in several. */
uint64_t ir_genome_extent(const ir_genome *genome);
/* The next neighbour of a genome: a copy without local edits in which the structural edits are in
 * the usual order, if they are not; or in which one structural edit has the next option that is at
 * least twice as large, or at most half as large, or another form of the same option. All steps of
 * options come before the forms. *at counts what was tried, from 0. NULL: no neighbour is left, or
 * memory ran out. */
ir_genome *ir_genome_neighbour(const ir_genome *genome, size_t *at);
/* A copy without local edits in which a thread has so many registers at most (max-registers, in
 * place of a min-blocks). NULL: the genome says that already, or memory ran out. */
ir_genome *ir_genome_limit(const ir_genome *genome, int64_t registers);
/* A copy without local edits, with the structural edit `at` of `by`, which opens, at its usual
 * place. It is finished (turns written out, loads ahead, knobs ...) as `genome` is, or as `by` is.
 * NULL: `genome` opens that place already, or memory ran out. */
ir_genome *ir_genome_extend(const ir_genome *genome, const ir_genome *by, size_t at,
                            bool finish_as_by);
/* A copy without local edits, with those structural edits of `edits` that it lacks: at its end
 * (`at_end`), else at their usual places. One that opens takes the place of those of its kind that
 * open the same place. NULL: the genome lacks none, or memory ran out. */
ir_genome *ir_genome_join(const ir_genome *genome, const ir_genome *edits, bool at_end);
/* A copy without local edits in which one structural edit, drawn at random, stands at another place
 * of the prefix, which has two edits at least. NULL: memory ran out. */
ir_genome *ir_genome_reorder(const ir_genome *genome, ev_pcg *rng);

/* Sets the light pipeline (ir/pipelines.def): about a sixth of the default's time, for other code
 * of the same speed. false: out of memory. */
bool ir_genome_make_light(ir_genome *genome);

/* Whether two genomes have the same base: start, macros, kind of base and structural prefix. Only
 * then do the edits of one name instructions of the other. */
bool ir_genome_same_base(const ir_genome *a, const ir_genome *b);
/* Whether two genomes have the same start, macros and kind of base. */
bool ir_genome_same_macros(const ir_genome *a, const ir_genome *b);
/* Whether the genome has the other's base and all of the other's edits. */
bool ir_genome_holds_all(const ir_genome *genome, const ir_genome *other);
/* Whether two genomes have the same structural edits in the same order. */
bool ir_genome_same_prefix(const ir_genome *a, const ir_genome *b);
/* The genome with the edits [from, to) alone; the same with the structural edits before `from`; and
 * the genome without [from, to). Without a structural edit, the local edits that refer to its base
 * are dropped as well. NULL: out of memory. */
ir_genome *ir_genome_part(const ir_genome *genome, size_t from, size_t to);
ir_genome *ir_genome_part_on_base(const ir_genome *genome, size_t from, size_t to);
ir_genome *ir_genome_without(const ir_genome *genome, size_t from, size_t to);

/* The arguments that the edits align-argument assert to be aligned to IR_ARGUMENT_ALIGN bytes: a
 * bit each, by number. A launch of the variant has to grant this. */
#define IR_ARGUMENT_ALIGN 16u
uint64_t ir_genome_aligned(const ir_genome *genome);

json_t *ir_genome_to_json(const ir_genome *genome); /* new reference; NULL: out of memory */
ev_status ir_genome_from_json(const json_t *json, ir_genome **out, ev_error *err) EV_CHECKED;
/* SHA-256 of the compact JSON, computed once; so is that of the genome without its edits, but with
 * its structural prefix. */
ev_sha256 ir_genome_sha256(const ir_genome *genome);
ev_sha256 ir_genome_base_sha256(const ir_genome *genome);

/* One child of two parents with the same start and kind of base. The child gets the edits that both
 * share, and a random part of the others, in their parents' order. Knobs come from either parent.
 * If the prefixes differ, the child has the first parent's prefix and edits.
 * An edit and the edits that use its inserted instructions stay together. NULL: out of memory. */
ir_genome *ir_genome_crossover(const ir_genome *a, const ir_genome *b, ev_pcg *rng);

#endif
