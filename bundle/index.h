/* Index: what resolving needs of a kernel, computed once at opening, so that a choice costs less
 * than a microsecond. */
#ifndef BUNDLE_INDEX_H
#define BUNDLE_INDEX_H

#include "base/arena.h"
#include "base/status.h"
#include "bundle/reader_types.h"

/* The times of a variant at one shape. */
typedef struct index_point {
    const double *at; /* the shape, by index_coordinate, in the order of the kernel's dimensions */
    double ratio;     /* the variant's time by the baseline's */
    bool loses_to_start; /* an unmodified start was faster, timed by turns with the variant */
} index_point;

/* Times from one source: the tuning (`of` NULL), or a qualification. */
typedef struct index_times {
    const bundle_qualified *of; /* NULL: the tuning */
    const index_point *points;
    size_t count;
} index_times;

typedef struct index_range {
    size_t dimension;
    bool is_real;
    double low, high;
    int64_t multiple; /* 1: no condition */
} index_range;

typedef struct index_candidate {
    const bundle_variant *variant;
    bool is_start;
    const index_range *ranges;
    size_t range_count;
    const index_times *times; /* [0]: the tuning's; then as variant->qualified */
    bool is_member;           /* of a family */
} index_candidate;

/* Candidates of one group with the same ranges that were timed at the same shapes, without
 * qualifications and needs of their own: one comparison with the shapes serves all of them. */
typedef struct index_family {
    const index_candidate *const *members; /* in the order of the group */
    size_t count;
    /* [points of a member] for each shape: the member with the least ratio up to 1, and the variant
     * with the least ratio above 1, which is passed over; NULL: none. */
    const index_candidate *const *best;
    const index_candidate *const *refused;
} index_family;

/* Candidates of one GPU model. */
typedef struct index_group {
    const bundle_variant *like; /* names the GPU */
    int sm, sms;
    const index_candidate *candidates;
    size_t count;
    const index_family *families;
    size_t family_count;
    size_t alone; /* candidates that are no members */
} index_group;

typedef struct index_kernel {
    const bundle_kernel *kernel;
    const char *const *dimensions; /* names of the shape that ranges and cases use */
    size_t dimension_count;
    const index_group *groups;
    size_t group_count;
} index_kernel;

typedef struct bundle_index {
    const index_kernel *kernels; /* by name, ascending */
    size_t count;
} bundle_index;

#define INDEX_DIMENSIONS 32 /* most names of a shape */
#define INDEX_GROUPS 256    /* most GPU models of a kernel */

#define INDEX_POINTS 256  /* most timed shapes of a family */
#define INDEX_FAMILIES 16 /* most families of a group */

/* Makes the families of `count` candidates of one group (index_family.c). */
ev_status index_families_make(ev_arena *arena, index_candidate *candidates, size_t count,
                              index_group *group, size_t dimensions, ev_error *err) EV_CHECKED;

/* The arena owns the index, which borrows from the kernels. EV_BAD: two kernels of one name, or a
 * shape of too many names. */
ev_status bundle_index_make(ev_arena *arena, const bundle_kernel *kernels, size_t count,
                            bundle_index **out, ev_error *err) EV_CHECKED;
const index_kernel *bundle_index_find(const bundle_index *index, const char *kernel);

/* The place of a name among the kernel's dimensions. False: the shape has no such number. */
bool index_find_dimension(const index_kernel *k, const char *name, size_t *out);

/* Shapes are compared by the squares of the differences of their numbers' logarithms, so that 1024
 * is as far from 512 as from 2048. Numbers below 1 stay themselves, less 1. */
double index_coordinate(double value);

/* The names of a GPU model. */
typedef struct index_gpu {
    const char *id, *name;
    const char *const *driver_names;
    size_t driver_name_count;
} index_gpu;

/* Whether `asked` names the GPU model: its id, its name, or what drivers call it. */
bool index_is_gpu(const index_gpu *g, const char *asked);

#endif
