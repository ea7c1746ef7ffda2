/* The inside of evoke/bundle.h, for the files of this folder only. */
#ifndef BUNDLE_RUNTIME_RUNTIME_H
#define BUNDLE_RUNTIME_RUNTIME_H

#include "base/cuda/driver.h"
#include "base/expr.h"
#include "base/str.h"
#include "base/type.h"
#include "bundle/reader.h"

#include <evoke/bundle.h>
#include <pthread.h>

#define RUNTIME_ARGUMENTS 128 /* most arguments of a kernel */
#define RUNTIME_STRUCTS 4096  /* bytes of all structs of a launch */
#define RUNTIME_SYMBOLS 64    /* most variables that the host fills */
#define RUNTIME_NAMES 256     /* most names of a scope: shape, scalars, macros */

/* A kernel of a variant's module. */
typedef struct runtime_function {
    CUfunction function;
    uint32_t threads; /* most of a block */
    uint32_t shared;  /* most dynamic shared memory of a block, by the GPU */
    uint32_t allowed; /* what the driver was told to allow */
} runtime_function;

/* A variant's module in one context. */
typedef struct runtime_loaded {
    struct runtime_loaded *next;
    CUcontext context;
    unsigned long long id; /* of the context: handles are used again, ids are not */
    CUmodule module;
    runtime_function *functions; /* by launch; launches of one kernel use the first of them */
    uint64_t filled; /* the kernel's symbols that the host filled, or asked the address of: a bit
                        each */
} runtime_loaded;

struct evoke_variant {
    const evoke_bundle *owner;
    const bundle_kernel *kernel;
    const bundle_variant *is;
    pthread_mutex_t *lock;  /* of `loaded` */
    runtime_loaded *loaded; /* by context */
};

#define RUNTIME_LOCKS 64 /* shared by the variants: few are loaded at once */

struct evoke_bundle {
    bundle *inside;
    evoke_variant *variants; /* by bundle_variant's number */
    size_t count;
    pthread_mutex_t locks[RUNTIME_LOCKS];
};

/* The driver of the process, found at the first call. EV_INFRA: there is none. */
ev_status runtime_driver(const cu_driver **out, ev_error *err) EV_CHECKED;
/* EV_INFRA, "WHAT: CUDA_ERROR_..., in words"; EV_OK for CUDA_SUCCESS. */
ev_status runtime_check(const cu_driver *cu, CUresult result, const char *what,
                        ev_error *err) EV_CHECKED;

/* ---- open.c ---- */

/* evoke_bundle_buffers of a kernel that was found. */
ev_status runtime_buffers(const bundle_kernel *k, const evoke_shape *shape, size_t room,
                          evoke_argument *arguments, evoke_buffer *buffers, size_t *count,
                          ev_error *err) EV_CHECKED;

/* ---- values.c ---- */

/* The names that a kernel's expressions see. */
typedef struct runtime_scope {
    expr_scope scope;
    expr_name names[RUNTIME_NAMES + 1]; /* and the counter of a loop */
} runtime_scope;

/* Shape and scalars up to argument `end` (SIZE_MAX: all). EV_BAD: the shape lacks a number, or has
 * a fraction where a whole number belongs. `ranges` names the numbers of the shape. */
ev_status runtime_scope_of(const bundle_kernel *k, const launch_plan *ranges,
                           const evoke_shape *shape, size_t end, runtime_scope *out,
                           ev_error *err) EV_CHECKED;
void runtime_add_macros(const bundle_variant *v, runtime_scope *out);
/* A scalar parameter as the driver takes it. */
void runtime_set_word(ev_type type, const expr_value *value, uint64_t *word);
/* The launch of a variant of one launch at a shape, within CUDA's limits. */
ev_status runtime_geometry(const evoke_variant *v, const evoke_shape *shape, launch_geometry *out,
                           ev_error *err) EV_CHECKED;
/* Elements of a buffer, from 1 to 2^40. */
ev_status runtime_elements(const bundle_kernel *k, size_t index, const expr_scope *scope,
                           uint64_t *out, ev_error *err) EV_CHECKED;

/* Fills `data` with the value of `before` of argument `index`. EV_BAD: it cannot be evaluated. */
ev_status runtime_fill_before(const bundle_kernel *k, size_t index, const expr_scope *scope,
                              void *data, size_t bytes, ev_error *err) EV_CHECKED;

/* A launch's parameters in the kernel's order. */
typedef struct runtime_parameters {
    uint64_t words[RUNTIME_ARGUMENTS]; /* of each argument */
    /* The structs, each at a multiple of 16 bytes; the driver copies them. */
    _Alignas(16) unsigned char structs[RUNTIME_STRUCTS];
    void *pointers[RUNTIME_ARGUMENTS]; /* of each parameter, as cuLaunchKernel takes them */
} runtime_parameters;

/* Those of rank `rank`; 0 of a kernel without ranks. EV_BAD: another number of buffers, or a buffer
 * that is too small or not aligned. */
ev_status runtime_pack(const evoke_variant *v, const evoke_shape *shape,
                       const evoke_buffer *buffers, size_t count, uint32_t rank,
                       runtime_parameters *out, ev_error *err) EV_CHECKED;

/* ---- modules.c ---- */

/* The variant's module in the current context, loaded if it is not yet. */
ev_status runtime_load(evoke_variant *v, const cu_driver *cu, runtime_loaded **out,
                       ev_error *err) EV_CHECKED;
/* The kernel of a launch of the variant's plan. */
runtime_function *runtime_function_of(const evoke_variant *v, runtime_loaded *l, size_t launch);
/* Lets blocks of a launch be as large as they are. EV_BAD: this GPU has no such blocks of the
 * kernel. */
ev_status runtime_allow(evoke_variant *v, const cu_driver *cu, runtime_loaded *l, size_t launch,
                        const launch_geometry *at, ev_error *err) EV_CHECKED;
/* Unloads all modules of a bundle; those of one context alone, if `id` is not 0. */
void runtime_unload(evoke_bundle *b, const cu_driver *cu, unsigned long long id);
/* The current context. EV_INFRA: none. */
ev_status runtime_context(const cu_driver *cu, CUcontext *context, unsigned long long *id,
                          ev_error *err) EV_CHECKED;

/* ---- steps.c ---- */

/* evoke_variant_launch_scratch of a variant of several launches; `scratch` NULL: none. */
ev_status runtime_launch_steps(evoke_variant *v, const evoke_shape *shape,
                               const evoke_buffer *buffers, size_t count,
                               const evoke_buffer *scratch, CUstream stream,
                               ev_error *err) EV_CHECKED;

/* All that runtime_launch_steps does before it asks the driver; of any variant. */
ev_status runtime_check_steps(const evoke_variant *v, const evoke_shape *shape,
                              const evoke_buffer *buffers, size_t count,
                              const evoke_buffer *scratch, ev_error *err) EV_CHECKED;

/* All launches of a rank at a shape, packed: of any variant. */
typedef struct runtime_sequence runtime_sequence;

/* EV_BAD: as of evoke_variant_launch_scratch. Free by runtime_sequence_free. */
ev_status runtime_sequence_new(const evoke_variant *v, const evoke_shape *shape,
                               const evoke_buffer *buffers, size_t count, uint32_t rank,
                               const evoke_buffer *scratch, runtime_sequence **out,
                               ev_error *err) EV_CHECKED;
void runtime_sequence_free(runtime_sequence *s); /* NULL is fine */
/* What may fail of the launches in the current context, before the first is given: blocks that this
 * GPU does not have. */
ev_status runtime_sequence_allow(const runtime_sequence *s, const cu_driver *cu, runtime_loaded *l,
                                 ev_error *err) EV_CHECKED;
size_t runtime_sequence_count(const runtime_sequence *s);
ev_status runtime_sequence_give(const runtime_sequence *s, size_t step, const cu_driver *cu,
                                runtime_loaded *l, CUstream stream, ev_error *err) EV_CHECKED;
/* The most that the blocks of a launch which waits for peers would fill the current context's GPU,
 * 1 being whole; 0: none waits, or the driver does not tell. Sets *step to that launch, from 0. */
ev_status runtime_sequence_share(const runtime_sequence *s, const cu_driver *cu, runtime_loaded *l,
                                 double *share, size_t *step, ev_error *err) EV_CHECKED;
/* "scan, launch 2 of 3, kernel `scan_sums`: WHY" */
ev_status runtime_sequence_fail(const runtime_sequence *s, size_t step, ev_status status,
                                ev_error *err) EV_CHECKED;
/* Scratch buffer `index` of the plan: `address` counts from the begin of the scratch memory. */
evoke_buffer runtime_sequence_scratch(const runtime_sequence *s, size_t index);

/* ---- ranks.c ---- */

/* EV_BAD: the kernel has ranks, and the caller launches one. */
ev_status runtime_refuse_ranks(const bundle_kernel *k, ev_error *err) EV_CHECKED;

/* ---- launch.c ---- */

void runtime_set_geometry(const launch_geometry *from, evoke_geometry *to);

/* ---- symbols.c ---- */

/* Notes that the host fills a variable of the module; other names are ignored. */
void runtime_note_symbol(evoke_variant *v, runtime_loaded *l, const char *name);
/* EV_BAD: a variable of the module was not filled, with its name. */
ev_status runtime_check_symbols(evoke_variant *v, const cu_driver *cu, runtime_loaded *l,
                                ev_error *err) EV_CHECKED;

/* ---- public types are those of the inside ---- */

static inline ev_error *runtime_error(evoke_error *error) {
    return (ev_error *)error;
}

/* The variants are the bundle's own; the public pointer to one is const for the caller. */
static inline evoke_variant *runtime_own(const evoke_variant *v) {
    return &v->owner->variants[v->is->number];
}

static inline evoke_status runtime_status(ev_status status) {
    return (evoke_status)status;
}

#endif
