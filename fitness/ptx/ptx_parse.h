/* Parts of a module's text, shared by ptx_parse.c, ptx_call.c and ptx_module.c. */
#ifndef FITNESS_PTX_PTX_PARSE_H
#define FITNESS_PTX_PTX_PARSE_H

#include "fitness/ptx/ptx_load.h"

bool ptx_parse_attributes(ptx_loader *L); /* after .attribute */
bool ptx_parse_variables(ptx_loader *L, vm_space space, bool is_extern);
/* Adds the workspace that %envreg1 and %envreg2 point to, if the module reads them. */
bool ptx_place_workspace(ptx_loader *L);
bool ptx_parse_body(ptx_loader *L); /* after its '{' */
/* After its '('. The caller sets the symbols' variables once the list has its final place. */
bool ptx_parse_params(ptx_loader *L, ptx_var **list, size_t *count);
bool ptx_place_frame_param(ptx_loader *L, ptx_var *v);
/* Offsets of an entry's parameters in the parameter block, and its public list. */
void ptx_entry_layout(ptx_func *f, ev_arena *arena);

/* After "name:". *is_table: a table for indirect calls or branches follows. */
bool ptx_parse_table(ptx_loader *L, const ptx_token *name, bool *is_table);
bool ptx_parse_alias(ptx_loader *L);
/* Assigns the slots of a function's parameters and results in its frame. */
bool ptx_place_signature(ptx_loader *L, ptx_func *f);
bool ptx_finish_calls(ptx_loader *L);

/* ---- vector registers (ptx_vector.c) */
unsigned ptx_parse_lanes(ptx_loader *L); /* .v2 or .v4; else 0 */
/* Makes a declared register or range one of vectors, unless `lanes` is 0. */
bool ptx_vector_declare(ptx_loader *L, ptx_symbol *s, unsigned lanes);
/* "name.x" of a part, in the module's memory; NULL: out of memory. */
const char *ptx_lane_name(ptx_loader *L, const char *name, uint32_t length, unsigned lane);
/* The operand that begins with a name which is no register: a vector or a part of one, or a special
 * register as a whole ("%tid"). *is_vector: it is; false with a message, or if memory runs out. */
bool ptx_parse_vector_name(ptx_loader *L, const ptx_token *t, ptx_operand *o, bool *is_vector);
bool ptx_parse_special_vector(ptx_loader *L, const ptx_token *t, ptx_operand *o, bool *is_vector);

#endif
