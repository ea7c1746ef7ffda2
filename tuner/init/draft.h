/* Draft: a first task for a kernel, made from its CUDA source by guesses that a run confirms.
 *
 * - draft_kernel.c reads the kernel and its parameters from the source's tokens,
 * - draft_struct.c the fields of its structs,
 * - draft_symbols.c the variables that the host fills,
 * - draft_launch.c its grid and block, from a <<<>>> or from the kernel itself, with expressions of
 *   the host in draft_host.c, and the numbers that it is called with in draft_value.c,
 * - draft_lengths.c lists what the length of a buffer may be,
 * - draft_probe.c finds kinds and lengths of buffers by runs on the virtual machine, and
 * - draft_write.c writes task.json with its cases.
 *
 * Of a program's launches (trace.h), draft_trace.c takes values and geometry, draft_replay.c kinds
 * and lengths by runs on the recorded data, and draft_cases.c makes the cases.
 *
 * Texts of a draft live in the arena of its cuda_text. */
#ifndef TUNER_INIT_DRAFT_H
#define TUNER_INIT_DRAFT_H

#include "base/expr.h"
#include "base/pcg.h"
#include "base/source/cuda_text.h"
#include "base/status.h"
#include "base/str.h"
#include "base/type.h"
#include "fitness/vm/vm.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DRAFT_UNKNOWN (-1)

enum { DRAFT_ARGUMENTS = 48, DRAFT_SIZES = 12, DRAFT_MACROS = 8, DRAFT_SYMBOLS = 8 };

typedef enum draft_kind { DRAFT_IN, DRAFT_OUT, DRAFT_INOUT, DRAFT_SCALAR } draft_kind;

typedef struct draft_layout draft_layout;

typedef struct draft_argument {
    const char *name;
    draft_kind kind;
    bool is_const;     /* its source promises not to write it */
    ev_type type;      /* of a scalar or an element */
    uint32_t lanes;    /* elements of `type` in one element of the source: 4 for float4 */
    const char *count; /* elements of the source's type, an expression; buffers */
    const char *value; /* an expression; NULL: the shape has it */
    bool is_partial;   /* inout, because a run leaves elements of it as they are */
    bool is_bool;      /* its elements are 0 and 1 */
    bool is_said;      /* scalars: the source's launch says the value */
    const char *data;  /* the generator, as task.json has it; NULL: by the type */
    uint32_t align;    /* bytes that every launch grants of the address; 0: as usual */
    /* Of a buffer of structs with fields of several types: the struct. `type` and `lanes` are
     * those of its words. NULL: another buffer. */
    draft_layout *mixed;
    size_t parameter; /* number of the kernel's parameter, from 0 */
    /* Of a field of a struct that is passed by value: the parameter's name, the field's, bytes from
     * the struct's begin, and bytes of the struct. NULL: no field. */
    const char *owner, *field;
    uint32_t offset, struct_bytes;
} draft_argument;

/* A number of a struct, or a pointer to a buffer in it. In a buffer of structs: a number, a vector,
 * or an array of them. */
typedef struct draft_field {
    const char *name;
    ev_type type;   /* of the number, or of an element */
    uint32_t lanes; /* buffers: as in draft_argument; else numbers of a vector */
    uint32_t offset;
    bool is_buffer, is_const;
    uint32_t count;   /* in a buffer of structs: numbers or vectors of an array */
    bool is_bool;     /* as in draft_argument */
    const char *data; /* as in draft_argument */
} draft_field;

struct draft_layout {
    draft_field fields[DRAFT_ARGUMENTS];
    size_t count;
    uint32_t bytes;
};

/* A __constant__ variable that the host fills. */
typedef struct draft_symbol {
    const char *name;
    ev_type type;
    uint32_t lanes;   /* as in draft_argument */
    int64_t count;    /* of elements of the source's type */
    const char *data; /* as in draft_argument */
} draft_symbol;

/* A name of the shape. */
typedef struct draft_size {
    const char *name;
    bool is_small;  /* a radius, an offset: small where the launch does not say its value */
    bool is_fixed;  /* no length and no grid is made of it: about the same in all cases */
    int64_t value;  /* what the source's launch gives; DRAFT_UNKNOWN: not understood */
    int64_t pinned; /* its value in the runs; DRAFT_UNKNOWN: other values */
} draft_size;

typedef struct draft_macro {
    const char *name;
    int64_t value;
} draft_macro;

typedef struct draft {
    cuda_text *t; /* owned */
    const cuda_function *kernel;
    const cuda_launch *launch; /* NULL: none in the source */
    const char *types[8];      /* template arguments */
    size_t type_count;
    const char *instance; /* "ops::scale<float, 4>", the entry; NULL: no template */
    draft_argument arguments[DRAFT_ARGUMENTS];
    size_t argument_count;
    draft_symbol symbols[DRAFT_SYMBOLS];
    size_t symbol_count;
    draft_size sizes[DRAFT_SIZES];
    size_t size_count;
    draft_macro macros[DRAFT_MACROS]; /* tunable: of the block */
    size_t macro_count;
    const char *block_names[DRAFT_MACROS]; /* variables that the block's size is made of */
    size_t block_name_count;
    /* What host code is read for; DRAFT_VALUE: a number, with the values of all names. */
    enum { DRAFT_ELSE, DRAFT_BLOCK, DRAFT_GRID, DRAFT_VALUE } reading;
    const char *grid[3], *block[3]; /* expressions; NULL behind the last */
    const char *shared;             /* NULL: none */
    int64_t multiple;               /* sizes of cases are multiples of this; 1: any size will do */
    int64_t small[DRAFT_SIZES], odd[DRAFT_SIZES], large[DRAFT_SIZES]; /* values of the sizes */
    int64_t other_odd[DRAFT_SIZES], other_large[DRAFT_SIZES];
    ev_str notes;   /* lines "- ...": what to look at */
    char trap[700]; /* why the kernel does not run; "": it runs */
} draft;

void draft_note(draft *d, const char *format, ...) EV_PRINTF(2, 3);

/* Takes `t` over. Chooses the kernel of that name, or the only one (NULL), and reads its
 * parameters. EV_BAD: none or several (with their names), a parameter that no task can have. */
ev_status draft_read(cuda_text *t, const char *path, const char *name, draft *out,
                     ev_error *err) EV_CHECKED;
void draft_free(draft *d);

/* The name of a type of the source as an element type; false: none. Follows typedef, using, macros
 * and template parameters. */
bool draft_type(const draft *d, const char *name, ev_type *type, uint32_t *lanes);
/* Whether a token is a word like const, which says nothing of a type's size. */
bool draft_is_qualifier(const cuda_text *t, size_t at);
/* The fields of a struct, or of a vector like float3, as C places them. `is_element`: of a buffer,
 * so vectors and arrays stay whole. false: no such type, or a field that is neither a number nor a
 * pointer to numbers. */
bool draft_struct(draft *d, const char *type, bool is_element, draft_layout *out);
/* Numbers of a field in a buffer of structs. */
uint32_t draft_numbers(const draft_field *f);
/* A number for the data of a probe. */
double draft_guess(ev_type type, bool is_bool, ev_pcg *rng);
/* Fills `structs` structs with guessed data; the bytes between the fields become zero. */
void draft_fill_structs(const draft_layout *l, void *data, uint64_t structs);
/* Whether all numbers of a buffer were written. `written` has a row for each of its words. */
bool draft_is_all_written(const draft_argument *a, const uint8_t *written, uint64_t words);
/* Adds a name of the shape, unless it is there; its value, or DRAFT_UNKNOWN. */
void draft_add_size(draft *d, const char *name, bool is_small, int64_t value);

/* The product of the lengths in the brackets from *at on, 1 without brackets; 0: not understood, or
 * more than 2^32. *at is then behind the brackets. */
int64_t draft_length(draft *d, size_t *at, size_t end);
/* Fills in the symbols. */
void draft_find_symbols(draft *d);

/* Leaves out those that no instruction of the kernel's PTX has: other kernels use them. */
ev_status draft_keep_symbols(draft *d, const char *ptx, size_t bytes, ev_error *err) EV_CHECKED;

/* Fills in grid, block, shared and macros. */
void draft_find_launch(draft *d);

/* The expression with the values of the tunable macros in place of their names. */
const char *draft_without_macros(const draft *d, const char *expression);
/* Puts their values in place of the tunable macros, so that none is left. */
void draft_drop_macros(draft *d);

/* Host code as an expression of task.json. NULL: it cannot be one. */
const char *draft_expression(draft *d, cuda_range range, int depth);
/* The number that host code is, with the values that names have at the launch. false: it is none
 * that the source says. */
bool draft_value(draft *d, cuda_range range, double *value);
/* The number that the launch gives to a scalar argument. false: it is no number that the source
 * says. */
bool draft_launch_value(draft *d, const draft_argument *a, double *value);
/* Whether an expression (NULL: none) has the name. */
bool draft_uses(const char *expression, const char *name);
/* The up to three parts of a grid or block: of an expression, or of dim3. false: not understood. */
bool draft_dimensions(draft *d, cuda_range range, const char *out[3], int depth);

/* Calls `add` with each expression that the length of a buffer may be, likely ones first. NULL is
 * one for which there was no memory. */
void draft_lengths(const draft *d, void (*add)(void *context, const char *expression),
                   void *context);

/* Finds kinds, counts and the values of the sizes by runs of the PTX. d->trap says why not. */
ev_status draft_probe(draft *d, const char *ptx, size_t bytes, ev_error *err) EV_CHECKED;

/* Appends task.json. `source`: name of the file beside it. `cases`: the lines of its cases; NULL:
 * cases at the sizes that the probe found. */
void draft_write(const draft *d, const char *source, const char *cases, ev_str *out);
/* Appends a case at sizes that the probe found; `more`: names and values that its shape has beside
 * the sizes, in JSON, or "". */
void draft_write_case(const draft *d, const char *name, const char *split, const char *use,
                      const int64_t *sizes, const char *more, bool last, ev_str *out);
/* The largest relative error that another order of the same operations may make, as a text. */
const char *draft_tolerance_of(ev_type type);
/* The parameters of a kernel in PTX are those of the source. EV_BAD: they are others. */
ev_status draft_check_entry(const draft *d, const vm_entry *entry, ev_error *err) EV_CHECKED;

#endif
