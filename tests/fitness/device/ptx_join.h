/* Several PTX texts as one module, for one start of the assembler: what a text declares for the
 * whole module gets a name of its own. */
#ifndef TESTS_PTX_JOIN_H
#define TESTS_PTX_JOIN_H

#include "base/str.h"

/* From .version to the end of the line with .address_size: *bytes from the result on. Texts whose
 * heads are equal can stand in one module. NULL: the text has no such head. */
const char *ptx_head(const char *text, size_t *bytes);

/* Appends the head to `out`. */
void ptx_join_head(ev_str *out, const char *text);
/* Appends what stands behind the text's head, with "_NUMBER" behind each declared name. */
void ptx_join_body(ev_str *out, const char *text, size_t number);

#endif
