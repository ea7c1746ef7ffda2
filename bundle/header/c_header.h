/* C header: a bundle as one header with embedded PTX, launch rules and a resolver in C, for
 * programs that read no files and link nothing but the driver. */
#ifndef BUNDLE_C_HEADER_H
#define BUNDLE_C_HEADER_H

#include "base/expr.h"
#include "base/status.h"
#include "base/str.h"
#include "bundle/reader.h"

/* Appends the header of an open bundle. Variants that a scheduler would have to ask for are left
 * out: bold ones that are no default, disabled ones, and those that need more alignment than their
 * kernel's arguments say. Qualifications are not in it. EV_BAD: a name that is no identifier of C,
 * a scalar argument of a type that C lacks, an expression that cannot be read. */
ev_status c_header_make(const bundle *b, ev_str *out, ev_error *err) EV_CHECKED;

/* c_header_expr.c: appends the C of an expression (base/expr.h): calls of evoke_h_op over variables
 * v_NAME. EV_BAD: a syntax error, or a name that is not in `names`. */
ev_status c_header_expr(const char *text, const expr_names *names, ev_str *out,
                        ev_error *err) EV_CHECKED;

/* c_header_fixed.c: the lines of what is the same for every bundle; NULL at the end. */
extern const char *const c_header_fixed[];

#endif
