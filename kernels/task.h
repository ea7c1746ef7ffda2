/* Tasks: the kernels to tune. A task.json names a kernel's source, arguments, launch rule, oracle,
 * tolerance, macros and cases. The schema in docs/task.md is printed from the loader's key tables.
 *
 * Expressions see the names of the case's shape and the scalar arguments (in their order; a shape's
 * name comes before a scalar's); launch rules see the start's macros as well.
 *
 * A task owns everything it points to, and is read-only after loading. */
#ifndef KERNELS_TASK_H
#define KERNELS_TASK_H

#include "base/expr.h"
#include "base/hash.h"
#include "base/launch_plan.h"
#include "base/status.h"
#include "base/str.h"
#include "base/type.h"
#include "corpora/corpus.h"
#include "kernels/evoke_oracle.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The alignment of a buffer's address whose argument does not say one, in bytes. */
#define TASK_ALIGN 16u
#define TASK_ALIGN_MOST 256u /* what cudaMalloc gives */

/* Ranks of a task that has any. */
#define TASK_RANKS_LEAST 2
#define TASK_RANKS_MOST 8

typedef enum task_argument_kind { TASK_IN, TASK_OUT, TASK_INOUT, TASK_SCALAR } task_argument_kind;

/* The values that every caller keeps an input within, as task.json says under "domain". */
typedef struct task_domain {
    bool is_given;
    const char *min, *max; /* expressions; NULL: no bound */
    bool finite;           /* neither NaN nor infinite */
    bool positive;         /* above 0 */
    bool sorted;           /* ascending, equal neighbours allowed */
    bool permutation;      /* each of 0 .. count - 1 once */
    bool distinct;         /* no two elements are equal */
} task_domain;

/* An argument of the kernel, or a field of a struct that is passed by value: then the name is
 * "STRUCT.FIELD", and all fields of the struct share a parameter of the kernel. */
typedef struct task_argument {
    const char *name;
    const char *doc;
    task_argument_kind kind;
    ev_type type;
    const char *count;                 /* buffers: expression for the number of elements */
    const char *value;                 /* scalars: expression; the name itself when absent */
    const corpus_generator *generator; /* in, inout */
    const corpus_recorded *file;       /* the contents, of corpus_generator_file; else NULL */
    const char *parameters[CORPUS_MAX_PARAMETERS]; /* expressions, in the generator's order; NULL:
                                                      default */
    uint32_t align; /* buffers: bytes that every launch grants of the address, a power of two */
    bool begins_constant;   /* inout: a promise that every caller begins with the constant contents
                               that the generator makes */
    const char *zero_where; /* out: the name of an input buffer; where it is 0, the output must be
                               exactly 0 */
    task_domain domain;     /* in, inout, scalar */
    size_t parameter;       /* number of the kernel's parameter, from 0 */
    bool is_field;          /* of a struct */
    uint32_t offset;        /* fields: bytes from the begin of the parameter */
    uint32_t parameter_bytes; /* fields: bytes of the whole struct */
    const char *row, *stride; /* out, inout, of "pitch": expressions for the elements of a row, and
                                 for the elements from row to row; NULL: no padding */
    /* ---- out, inout, and members of them */
    bool has_tolerance; /* of its own, in place of the task's, by these two (task_tolerance) */
    double relative_l2, max_abs;
    /* ---- of a task with ranks */
    bool is_rank;         /* a scalar: the number of the rank */
    const char *peers_of; /* an input: the addresses of this argument at each rank; NULL: data */
    bool by_rank;         /* out, inout: right where it differs from rank to rank */
    /* ---- of a buffer of structs */
    size_t first_member, member_count; /* in the task's arguments; 0 members: another argument */
    uint32_t struct_bytes;
    /* ---- of a member of the structs in a buffer; `offset`: bytes from the begin of a struct */
    const struct task_argument *owner; /* the buffer; NULL: no such member */
    uint32_t numbers;                  /* in one struct */
    uint32_t vector; /* so many of them are the x, y, z and w of one vector; 1: no vectors */
} task_argument;

/* Other data for one input in one case, such as zeros or subnormal numbers. */
typedef struct task_data {
    size_t argument; /* its index in task.arguments, symbols and members included */
    const corpus_generator *generator;
    const corpus_recorded *file;
    const char *parameters[CORPUS_MAX_PARAMETERS]; /* as in task_argument */
} task_data;

/* A macro of the source, and the values that the search may give it. */
typedef struct task_macro {
    const char *name;
    const char *doc;
    int64_t otherwise; /* the value where a genome sets none */
    const int64_t *values;
    size_t value_count;
} task_macro;

/* Where a search begins: a source and its launch plan. The first start is the baseline. */
typedef struct task_start {
    const char *name; /* "textbook", "hand" */
    const char *doc;
    const char *source; /* path of the .cu, .ll or .bc */
    bool is_reference;  /* checked and timed beside the others, and never searched */
    const launch_plan *plan;
    const char *instance; /* "ops::scale<float, 4>": the entry's instance; NULL: no template */
    const task_macro *macros;
    size_t macro_count;
    const uint32_t *assumed; /* source lines of which no caller takes an arm that no case takes */
    size_t assumed_count;
} task_start;

/* The use of a case: all blocks and every output element (check, smoke), or a sample of blocks at
 * full shape (time). */
typedef enum task_case_use { TASK_CHECK, TASK_TIME, TASK_SMOKE } task_case_use;

/* Other data for the floating-point inputs and scalars of a case (variations.def). */
typedef enum task_variation {
    TASK_PLAIN, /* the task's own */
#define VARIATION(id, name, words, is_benign, aliases) TASK_##id,
#include "kernels/variations.def"
#undef VARIATION
    TASK_VARIATIONS
} task_variation;

#define TASK_POWER_MOST 20
#define TASK_PAIRS_MOST (TASK_POWER_MOST + 1) /* of an input and an output in one buffer */

/* What a case is run with beside its shape and its data; all 0: nothing else. */
typedef struct task_case_inputs {
    task_variation variation;
    int power;         /* TASK_SCALED: the inputs times two to this power, from -TASK_POWER_MOST to
                          TASK_POWER_MOST; 0: another power for each input. TASK_DECIMAL: 0, or
                          the number of a scalar, from 1. TASK_ALIASED and TASK_ALIASED_SMALL: the
                          number of the pair of arguments, from 0 */
    uint32_t fresh;    /* number of the inputs: another number, other inputs */
    uint64_t schedule; /* seed of the order of blocks and warps, on the virtual machine */
} task_case_inputs;

typedef struct task_case {
    const char *name; /* "vgg16.conv4_2-n8-d30" */
    corpus_split split;
    task_case_use use; /* smoke: the smallest one, for gate 3 */
    const char *from;  /* the corpus shape that it extends; NULL: the task gives it in full */
    const expr_name *shape;
    size_t shape_count;
    const task_data *data; /* inputs with other data than their argument's */
    size_t data_count;
    task_case_inputs inputs;
    double weight; /* of a timed case in a portfolio (evoke tune --shapes), above 0 */
} task_case;

typedef struct task_tolerance {
    double relative_l2; /* ||got - want|| / ||want||, at most */
    double scaled_max;  /* max |got - want| / (u * sqrt(K) * scale) where the oracle gives a scale,
                           at most; 0: off */
    double max_abs;     /* max |got - want|, at most; 0: off */
    double baseline_factor; /* "no worse than k x the baseline's own error", with a floor of one
                               ulp; 0: off */
    const char *depth;      /* expression for K above; "1" when absent */
} task_tolerance;

/* The units of a GPU that work is counted by: one row each of kernels/units.def. */
typedef enum task_unit {
#define UNIT(id, key, peak, words) TASK_UNIT_##id,
#include "kernels/units.def"
#undef UNIT
    TASK_UNIT_COUNT
} task_unit;

/* What any kernel for the task has to do at least, as expressions of the shape. */
typedef struct task_work {
    const char *doc;                         /* how it is derived */
    const char *bytes;                       /* to and from DRAM; NULL: no work is declared */
    const char *link_bytes;                  /* over a rank's links, one way; NULL: none */
    const char *operations[TASK_UNIT_COUNT]; /* NULL: none of this unit */
} task_work;

typedef enum task_oracle_kind {
    TASK_ORACLE_BUILT_IN,
    TASK_ORACLE_BASELINE,
    TASK_ORACLE_SOURCE
} task_oracle_kind;

typedef struct task {
    const char *name;
    const char *family;
    const char *doc;
    const char *path;               /* of the task.json */
    const char *folder;             /* that holds it; sources are relative to it */
    const char *json;               /* its text */
    const task_argument *arguments; /* behind them in the same array: the symbols, the members */
    size_t argument_count;
    size_t parameter_count; /* of the kernel: fewer than arguments if there are structs */
    /* __constant__ and __device__ variables that the host fills before each launch, of kind IN */
    const task_argument *symbols;
    size_t symbol_count;
    const task_argument *members; /* of the structs in buffers */
    size_t member_count;
    const char *ranks; /* of one launch, an expression; NULL: the task has no ranks */
    /* Ranks: launches of all ranks begin, or end, together, as by a barrier of all GPUs. */
    bool begins_together, ends_together;
    bool says_alias;  /* "alias" is there */
    uint64_t aliased; /* arguments of which callers may pass one buffer twice: a bit each */
    const task_start *starts;
    size_t start_count;
    const task_case *cases;
    size_t case_count;
    const corpus_recorded *const *files; /* that inputs are read from */
    size_t file_count;
    const char *const *headers; /* paths of the files that the sources and a source oracle include
                                   in quotes, save Evoke's own */
    size_t header_count;
    task_tolerance tolerance;
    task_work work;
    task_oracle_kind oracle_kind;
    const char *oracle_name; /* built-in name, or path of the C source */
    evoke_oracle_fn *oracle; /* NULL for TASK_ORACLE_BASELINE */
    ev_sha256 sha256; /* of the json, the sources, a source oracle, their headers and the files of
                         data: the task's identity */
} task;

/* Loads and checks. Errors are EV_BAD with FILE:LINE:COLUMN. An oracle given as a C source is
 * compiled with clang-19 (`-O2 -shared -fPIC`) and loaded; its compile errors are shown. */
ev_status task_load(const char *path, task **out, ev_error *err) EV_CHECKED;
void task_free(task *t); /* NULL is fine */

/* The shipped tasks, by name, in a fixed order: HOME/kernels/FAMILY/KERNEL/task.json. */
ev_status task_list_shipped(char ***paths, size_t *count, ev_error *err) EV_CHECKED;
/* As task_list_shipped, but the lead kernel of each family alone (kernels/families.def). */
ev_status task_list_leads(char ***paths, size_t *count, ev_error *err) EV_CHECKED;
void task_list_free(char **paths, size_t count);
/* The paper that a family is named for; NULL: no shipped family has that name. */
const char *task_family_paper(const char *name);
/* Whether a folder has a task.json. */
bool task_is_folder(const char *path);
/* Opens a shipped task by name, or a path to a task.json or to its folder (has a slash, ends in
 * .json, or is the name of such a folder and of no shipped task). EV_BAD: an unknown name, with the
 * known ones; a source. */
ev_status task_open(const char *name_or_path, task **out, ev_error *err) EV_CHECKED;
/* Opens the task of a past run, which has this hash: at its path or, if that is gone or holds
 * another task, the shipped one of that name. EV_BAD: neither has the hash. */
ev_status task_reopen(const char *path, const char *name, const char *sha256, task **out,
                      ev_error *err) EV_CHECKED;

const task_start *task_find_start(const task *t, const char *name); /* NULL: none */
const task_case *task_find_case(const task *t, const char *name);   /* NULL: none */

/* ---- a case made concrete -----------------------------------------------------------------------
 */

/* Arguments, symbols and members together. */
size_t task_all_count(const task *t);
/* Whether a file of the whole buffer has the data of a member at a case. */
bool task_member_is_filed(const task *t, const task_argument *member, const task_case *c);
/* Bytes from the begin of a buffer of structs to an element of a member. */
uint64_t task_member_place(const task_argument *member, uint64_t element);
/* Appends the name of an element: "y[12]", or "bodies[12].position.y" of a member. */
void task_element_name(const task_argument *a, uint64_t element, ev_str *out);

/* The launch of a plain plan (a caller's bug if it is none: launch_plan_is_plain) at a case. The
 * plan is the start's own, or that of a variant of it; `macros` holds those that differ from their
 * defaults (names of the start). EV_BAD: an expression error, or a size that no GPU takes (names
 * start, case, dimension, expression and values). */
ev_status task_launch_of(const task *t, const task_start *start, const launch_plan *plan,
                         const expr_name *macros, size_t macro_count, const task_case *c,
                         launch_geometry *out, ev_error *err) EV_CHECKED;
/* ---- steps: plans of any kind (task_steps.c) ---- */

#define TASK_MAX_SCRATCH 16

/* A parameter of a launch. */
typedef enum task_given_kind {
    TASK_GIVEN_ARGUMENT, /* of the task */
    TASK_GIVEN_SCRATCH,  /* a scratch buffer of the plan */
    TASK_GIVEN_VALUE
} task_given_kind;

typedef struct task_given {
    task_given_kind kind;
    size_t index;     /* of the argument, or of the scratch buffer */
    ev_type type;     /* of a value */
    expr_value value; /* as the type holds it */
} task_given;

/* A launch of a plan at a case. */
typedef struct task_step {
    size_t launch; /* its number in the plan */
    launch_geometry at;
    const task_given *given;
    size_t given_count; /* 0: the task's arguments, in their order */
} task_step;

/* The launches of a plan at a case, in order, with all turns. */
typedef struct task_steps {
    task_step *all;
    size_t count;
    task_given *given;
    uint64_t scratch[TASK_MAX_SCRATCH]; /* bytes of each scratch buffer */
} task_steps;

/* As task_launch_of, of any plan. The caller frees *out by task_steps_free. */
ev_status task_steps_of(const task *t, const task_start *start, const launch_plan *plan,
                        const expr_name *macros, size_t macro_count, const task_case *c,
                        task_steps *out, ev_error *err) EV_CHECKED;
void task_steps_free(task_steps *s);
/* "launch 2 of 3, kernel `scan_add`" */
void task_step_name(const launch_plan *plan, const task_steps *s, size_t index, char *out,
                    size_t bytes);
/* Whether a start has another plan than one launch with the task's arguments. */
bool task_start_has_steps(const task_start *start);
bool task_has_steps(const task *t); /* any of its starts */
/* The arguments of the task that the kernel of the main launch takes, by parameter, in `out`, which
 * has room for TASK_PARAMETERS_MOST; SIZE_MAX: none, or another one in another launch. *count 0:
 * the task's own, in their order. */
#define TASK_PARAMETERS_MOST 48
void task_main_arguments(const task *t, const task_start *start, size_t *out, size_t *count);
/* As task_bits_of_parameters, of the kernel of the main launch. */
uint64_t task_bits_of_main(const task *t, const task_start *start, uint64_t parameters);
/* The parameters of the main launch's kernel that may be one buffer with another one, a bit each:
 * the task says so (`alias`), or a launch of that kernel passes one buffer for two of them. */
uint64_t task_overlaps_of_main(const task *t, const task_start *start);
/* The fewest launches that a start has at a case, of those that can be launched there. */
ev_status task_launches_least(const task *t, const task_case *c, size_t *out,
                              ev_error *err) EV_CHECKED;

/* Ranks of a launch at a case; 1: the task has no ranks. EV_BAD: fewer than TASK_RANKS_LEAST, or
 * more than TASK_RANKS_MOST. */
ev_status task_ranks_of(const task *t, const task_case *c, uint32_t *out, ev_error *err) EV_CHECKED;
/* The most ranks of any case; 1: the task has none. */
uint32_t task_ranks_most(const task *t);
/* EV_BAD if the task has ranks, of which `what` knows nothing; the message ends in `cure`. */
ev_status task_refuse_ranks(const task *t, const char *what, const char *cure,
                            ev_error *err) EV_CHECKED;
/* The buffer whose addresses a table has (task_argument.peers_of). */
const task_argument *task_ranks_peers_of(const task *t, const task_argument *table);
/* Elements of a buffer argument at a case: of all ranks together, one rank's behind the other's. */
ev_status task_argument_count_of(const task *t, const task_argument *argument, const task_case *c,
                                 uint64_t *out, ev_error *err) EV_CHECKED;
/* Elements of a row of an out or inout argument, and from row to row; the rest is padding, which no
 * kernel writes. 0 and 0: there is no padding. */
ev_status task_argument_pitch_of(const task *t, const task_argument *argument, const task_case *c,
                                 uint64_t *row, uint64_t *stride, ev_error *err) EV_CHECKED;
/* Value of a scalar argument at a case, as its type holds it (an f32 is rounded to one). */
ev_status task_argument_value_of(const task *t, const task_argument *argument, const task_case *c,
                                 expr_value *out, ev_error *err) EV_CHECKED;
/* True if an inout argument begins with the same number everywhere in all small cases of the
 * search, and no promise says that every caller does so: then `+=` and `=` are alike there. */
bool task_argument_hides(const task *t, const task_argument *argument);
/* If argument `index` hides, appends a warning with the cure, without a newline; false: not. */
bool task_warning(const task *t, size_t index, ev_str *out);
/* The generator and parameters of an input's elements at a case. `fresh` is added to the case's
 * own. Of a member whose data a file of the buffer has: that file, with the member's type. */
ev_status task_argument_data_of(const task *t, const task_argument *argument, const task_case *c,
                                uint32_t fresh, corpus_request *out, ev_error *err) EV_CHECKED;
/* The domain of an input at a case. */
typedef struct task_range {
    double low, high; /* inclusive; an infinity: no bound */
    bool orders;      /* no element is NaN */
    bool finite, positive, sorted, permutation, distinct;
} task_range;

/* The range of an input's elements, or of a scalar: the argument's domain. Where the domain says
 * nothing of a bound, the range of an integer buffer is that of its generator, as a kernel may use
 * the elements as indices. */
ev_status task_range_of(const task *t, const task_argument *argument, const task_case *c,
                        task_range *out, ev_error *err) EV_CHECKED;
/* Whether a value lies in the range. */
bool task_range_has(const task_range *range, double value);
/* Checks the elements of an input that the task's own generator made. EV_BAD: names the element,
 * the rule that the element breaks, and the cure. */
ev_status task_range_check(const task *t, const task_argument *argument, const task_case *c,
                           const task_range *range, const void *data, uint64_t count,
                           ev_error *err) EV_CHECKED;
/* The name of a kernel in an entry of task.json, which may have template arguments: "scale" of
 * "ops::scale<float, 4>". *length 0: it is none, as its brackets do not match. */
const char *task_entry_name(const char *entry, size_t *length);
/* Facts about the kernel's parameters (a bit each, of the first 64) as facts about the arguments;
 * every field has the bit of its struct. */
uint64_t task_bits_of_parameters(const task *t, uint64_t parameters);
/* True for a scalar that is no size: no count, launch rule, data parameter or other scalar uses its
 * name, and its own value is a number or a value of the shape with the scalar's name. Such a scalar
 * may take other values at the same shape. */
bool task_scalar_is_free(const task *t, const task_argument *scalar);
/* Whether an expression of the plan uses the scalar's name. */
bool task_plan_names(const launch_plan *plan, const task_argument *scalar);
/* Whether the argument is a buffer with data of a generator or a file: no output, scalar or table
 * of peers. */
bool task_argument_has_data(const task_argument *a);
/* The loosest tolerance of an output's relative L2: of those that have one of their own, and the
 * task's where one has none. */
double task_relative_l2(const task *t);
/* The tolerance's depth K at a case. */
ev_status task_depth_of(const task *t, const task_case *c, double *out, ev_error *err) EV_CHECKED;

/* The work of a case. */
typedef struct task_amounts {
    bool is_declared; /* false: the task declares no work, and all else is 0 */
    double bytes;
    double link_bytes;
    double operations[TASK_UNIT_COUNT];
} task_amounts;

ev_status task_work_of(const task *t, const task_case *c, task_amounts *out,
                       ev_error *err) EV_CHECKED;

/* Names of the enumerations above, as in task.json. */
const char *task_unit_name(task_unit unit);
const char *task_unit_words(task_unit unit); /* what one operation is */
const char *task_argument_kind_name(task_argument_kind kind);
const char *task_case_use_name(task_case_use use);
const char *task_variation_name(task_variation variation); /* "plain" for TASK_PLAIN */
/* Whether an input and an output are one buffer. */
bool task_variation_aliases(task_variation variation);

/* The schema of task.json as text for the docs (Markdown tables of the key tables). */
void task_print_schema(ev_str *out);

#endif
