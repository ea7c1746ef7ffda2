/* The device part of a CUDA C source: what is left without its host functions.
 *
 * A compiler that has no CUDA toolkit cannot know all that host functions call. Device code never
 * calls them, so their definitions are replaced by blanks; every line keeps its number. What is
 * kept: kernels, device functions, constexpr functions, types, variables, macros, templates and
 * prototypes. The bodies of a type's host methods are emptied. */
#ifndef BASE_SOURCE_DEVICE_PART_H
#define BASE_SOURCE_DEVICE_PART_H

#include "base/source/cuda_text.h"
#include "base/str.h"

/* Appends the device part of `t`. Macros of these names lose their #define, because the compiler
 * gets their values from its command line. *changed: anything was cut. The text of a source whose
 * brackets do not match is left whole, but for its #defines and #includes. EV_INFRA: out of
 * memory. */
ev_status cuda_device_part(const cuda_text *t, const char *const *macros, size_t macro_count,
                           bool has_toolkit, ev_str *out, bool *changed, ev_error *err) EV_CHECKED;

/* Whether a header serves host code alone, so that its #include is left out. With a toolkit, some
 * of thrust's serve device code, too. */
bool cuda_is_host_header(const char *file, bool has_toolkit);

#endif
