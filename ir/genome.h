/* Genome: knobs and an ordered list of edits; a plain value with a JSON form, free of LLVM.
 *
 * A genome prints to one JSON text and parses back to the same value; its SHA-256 is that of the
 * compact text. An edit names instructions of the numbered base module by number, and what earlier
 * edits of the same genome inserted by the edit's own tag, so that replaying it gives the same
 * module everywhere: ir/edit.h has the JSON of an edit. Its repairs are part of it; where a
 * crossover or a removed edit leaves a use without a valid one, replay takes the nearest dominating
 * instruction of the type, else the last such argument, else zero. An edit whose instruction is
 * gone makes the genome EV_BAD when it is built.
 *
 * Edits of the family "launch" are knobs: a genome has at most one of each kind.
 *
 * Ownership: a genome counts its references. Its maker has the first one and may change the genome;
 * once there is a second reference, the genome is constant. ir_genome_free gives a reference back.
 * References belong to one thread. */
#ifndef IR_GENOME_H
#define IR_GENOME_H

#include "base/hash.h"
#include "base/pcg.h"
#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ir_edit_kind {
#define IR_EDIT(id, name, family, extent, fresh, needs, describes) IR_EDIT_##id,
#include "ir/edits.def"
#undef IR_EDIT
    IR_EDIT_COUNT
} ir_edit_kind;

const char *ir_edit_name(ir_edit_kind kind);
const char *
ir_edit_family(ir_edit_kind kind); /* "gevo", "sync", "memory", "arithmetic", "control", "launch" */
const char *ir_edit_needs(ir_edit_kind kind);
const char *ir_edit_describes(ir_edit_kind kind);
/* Of 100 children made with it alone, those expected to be new and right. */
int ir_edit_fresh(ir_edit_kind kind);
bool ir_edit_find(const char *name, ir_edit_kind *out);
/* 64 bits that say what an edit's JSON asks for, whatever repairs it took; 0: out of memory. */
uint64_t ir_edit_mark(const json_t *edit);

typedef struct ir_genome ir_genome;

ir_genome *ir_genome_new(const char *start); /* no edits, default knobs; NULL: out of memory */
ir_genome *ir_genome_clone(const ir_genome *genome); /* NULL: out of memory */
/* One more reference to the genome; NULL gives NULL. */
const ir_genome *ir_genome_ref(const ir_genome *genome);
/* Gives a reference back; the last one frees the genome. NULL is fine. */
void ir_genome_free(const ir_genome *genome);

const char *ir_genome_start(const ir_genome *genome);
/* Which base module the edits are of: false, the one whose loops stay rolled and which the pipeline
 * optimises after the edits; true, the one that `default<O3>` is through with, and nothing but code
 * generation comes after the edits (how GEVO does it). In JSON: "base": "optimised". */
bool ir_genome_is_optimised(const ir_genome *genome);
void ir_genome_set_optimised(ir_genome *genome, bool optimised); /* before it has edits */
/* Knobs: the task's macros by name, in sorted order; a macro that is not set has its default. */
ev_status ir_genome_set_macro(ir_genome *genome, const char *name, int64_t value,
                              ev_error *err) EV_CHECKED;
void ir_genome_unset_macro(ir_genome *genome, const char *name); /* nothing where it is not set */
size_t ir_genome_macro_count(const ir_genome *genome);
const char *ir_genome_macro_name(const ir_genome *genome, size_t index);
int64_t ir_genome_macro_value(const ir_genome *genome, size_t index);

size_t ir_genome_edit_count(const ir_genome *genome);
ir_edit_kind ir_genome_edit_kind(const ir_genome *genome, size_t index);
/* The SHA-256 of one edit's JSON: equal edits have equal keys in all genomes. */
ev_sha256 ir_genome_edit_key(const ir_genome *genome, size_t index);
/* ir_edit_mark of one edit. */
uint64_t ir_genome_edit_mark(const ir_genome *genome, size_t index);
/* The index of the edit with this key; SIZE_MAX: there is none. */
size_t ir_genome_find(const ir_genome *genome, const ev_sha256 *key);
bool ir_genome_holds(const ir_genome *genome, const ev_sha256 *key);
void ir_genome_remove(ir_genome *genome, size_t index);
/* Appends a copy of `from`'s edit; a duplicate of one already there is left out (false). A knob
 * takes the place of the one of its kind. */
bool ir_genome_append_from(ir_genome *genome, const ir_genome *from, size_t index);

/* Takes the light pipeline as its knob (ir/pipelines.def): about a sixth of the default's time for
 * code of the same speed, if not of the same text. False: out of memory. */
bool ir_genome_make_light(ir_genome *genome);

/* Whether two genomes have the same base: start, macros and kind of base. Only then do the edits of
 * one name instructions of the other. */
bool ir_genome_same_base(const ir_genome *a, const ir_genome *b);
/* Whether the genome has the other's base and all of the other's edits. */
bool ir_genome_holds_all(const ir_genome *genome, const ir_genome *other);
/* The genome with the edits [from, to) alone, and the genome without them. NULL: out of memory. */
ir_genome *ir_genome_part(const ir_genome *genome, size_t from, size_t to);
ir_genome *ir_genome_without(const ir_genome *genome, size_t from, size_t to);

json_t *ir_genome_to_json(const ir_genome *genome); /* new reference; NULL: out of memory */
ev_status ir_genome_from_json(const json_t *json, ir_genome **out, ev_error *err) EV_CHECKED;
/* SHA-256 of the compact JSON, computed once; so is that of the genome without its edits. */
ev_sha256 ir_genome_sha256(const ir_genome *genome);
ev_sha256 ir_genome_base_sha256(const ir_genome *genome);

/* One child of two parents of the same start and kind of base: the edits they share, in order; of
 * each one's others, a random part, kept in its parent's order. Knobs come from either. What one
 * edit inserted for another to work on comes along or neither does. NULL: out of memory. */
ir_genome *ir_genome_crossover(const ir_genome *a, const ir_genome *b, ev_pcg *rng);

#endif
