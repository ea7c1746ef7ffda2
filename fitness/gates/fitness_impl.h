/* What the files of fitness/gates share: the buffers and inputs of a case, runs of a kernel at a
 * case, and the comparison of outputs with the answers. Only those files include this header.
 *
 * Ownership: a `fitness` owns its cases, references, twin and baseline; fitness_close frees them.
 * Pointers to a fit_case or a task_case are borrowed. Times are in ns of the device, costs in
 * seconds of the host (fit_clock). Functions return EV_BAD if the task or the baseline is at fault,
 * and EV_INFRA if memory, a process or the device fails. A wrong candidate is no error: its score
 * says at which gate it stopped. */
#ifndef FITNESS_GATES_FITNESS_IMPL_H
#define FITNESS_GATES_FITNESS_IMPL_H

#include "fitness/gates/accuracy.h"
#include "fitness/gates/fitness.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- cases (case_data.c) ---- */

typedef struct fit_argument {
    const task_argument *what;
    const struct fit_argument *owner; /* of a member of structs: their buffer */
    device_buffer buffer;             /* 0: a scalar, or a symbol; of a member: that of the owner */
    uint64_t count;                   /* elements */
    uint64_t bytes;
    void *before; /* The contents before a launch; NULL for pure outputs. Points into the device's
                     own memory if the host can read it, else to a copy. Of a member: a copy of its
                     elements alone. */
    bool owns_before;
    expr_value value;     /* of a scalar */
    uint64_t row, stride; /* of an output: as in accuracy_part */
    task_range range;     /* of all but pure outputs */
    bool is_free;         /* a scalar that is no size (task_scalar_is_free) */
    bool is_shared;       /* an in argument whose buffer is an out argument's as well */
    bool is_varied;       /* the case's variation changed its contents or value */
} fit_argument;

/* The answer at one element, for outputs too large to answer in full. An entry of a hash table with
 * open addressing. */
typedef struct fit_spot {
    uint64_t key; /* element + 1; 0: empty */
    double want, scale;
} fit_spot;

typedef struct fit_output {
    size_t argument;
    const fit_argument *zero_where; /* the elements that must stay zero; NULL: none */
    double *want, *scale;           /* answer and scale of every element; NULL: not asked for yet */
    uint64_t *exact;    /* the start's, of 64-bit whole numbers: as in accuracy_part; NULL: none */
    uint8_t *must_zero; /* by element; NULL: zero_where is NULL, or not asked for yet */
    double *varied;     /* the answers for varied data (vary.c); NULL: `want` has them */
    double conditioned, allowed; /* as in accuracy_check, for the next comparison in full */
    accuracy_output found;       /* of the last comparison in full */
    accuracy_output own;         /* with varied data: the start's */
    fit_spot *spots;
    size_t spot_room, spot_count;
} fit_output;

#define FIT_SEEN_KEPT 4

/* All output bytes that an earlier launch left at a case, with the accuracy that was found for
 * them. Only outputs that passed are kept. */
typedef struct fit_seen {
    char *bytes; /* the outputs one after another; NULL: an empty entry */
    accuracy_limits limits;
    accuracy accuracy;
} fit_seen;

/* The baseline's run at a case. */
typedef struct fit_baseline {
    bool done;
    double instructions;  /* thread instructions, extrapolated from the sample to the grid */
    double written;       /* output elements written, extrapolated from the sample to the grid */
    double covered;       /* output elements written by the grid, from a run of all or many blocks
                             (cover.c); 0: not known */
    double covered_error; /* its standard error; 0: all blocks were run */
    accuracy accuracy;
    double ns;
    /* device_rebuilds() when the baseline ran; a later number makes the run stale */
    uint64_t rebuilds;
} fit_baseline;

/* Other data than the task's own, in the order of task_variation. */
typedef enum fit_variation {
    FIT_PLAIN,
#define VARIATION(id, name, words, is_benign, aliases) FIT_##id,
#include "kernels/variations.def"
#undef VARIATION
    FIT_VARIATIONS
} fit_variation;

/* What a case is run with, beside its shape. */
typedef struct fit_inputs {
    fit_variation variation;
    int power; /* of FIT_SCALED, as task_case_inputs.power; of scalars, the number of the draw */
    uint32_t fresh;   /* number of the inputs (fitness_options.fresh) */
    vm_approx approx; /* in a virtual machine; elsewhere the chip says */
    /* The in and the out argument that are one buffer, as their numbers plus 1; 0: none. */
    uint16_t alias_in, alias_out;
    /* Of a variation of scalars, those that keep the task's values: a bit for each argument. */
    uint64_t kept;
    bool begins; /* inout buffers that begin as constants begin with data instead (begin.c) */
    /* The buffers placed at odd multiples of `aligned_to` bytes, in place of the task's alignment:
     * a bit for each argument. Both 0 at timed cases. */
    uint64_t aligned;
    uint32_t aligned_to;
} fit_inputs;

/* The run of a start at a case with varied data. */
typedef struct fit_varied {
    ev_sha256 start;     /* of its PTX; "": no start was run */
    bool is_usable;      /* the start did not trap there */
    vm_checks checks;    /* under which it ran, and the candidate runs */
    double instructions; /* thread instructions of the start */
    accuracy accuracy;   /* of the start */
} fit_varied;

/* ---- steps (steps.c) ---- */

/* The launch of a candidate that is under way, of a plan with steps. */
typedef struct fit_now {
    const task_step *step;        /* NULL: a plain plan */
    size_t index;                 /* of the step */
    const device_buffer *scratch; /* of the plan, in order */
    /* What the buffers that it may write contain before it: of each argument, then of each scratch
     * buffer; NULL: the launch does not get it. NULL: the launch goes on from the one before. */
    char *const *begins;
} fit_now;

/* A scratch buffer on the device. It is lent to one launch plan after another. */
typedef struct fit_scratch {
    const char *name;
    uint64_t bytes; /* of all ranks */
    uint32_t ranks;
    bool table; /* of addresses: an input */
    bool odd, timed, taken;
    device_buffer buffer;
} fit_scratch;

typedef struct fit_snapshot fit_snapshot;

typedef struct fit_case {
    const task_case *at;
    fit_inputs inputs;
    uint32_t ranks;          /* that a launch runs on; 1: the task has none */
    uint64_t rebuilds;       /* of the device when the tables of addresses were filled */
    bool is_drawn;           /* a drawn case (drawn.c), not one of the task's */
    bool is_shared_work;     /* several blocks add to one element, so no sample of blocks will do */
    fit_argument *arguments; /* in the order of the task's arguments, symbols and members */
    fit_output *outputs;
    size_t output_count;
    fit_seen seen[FIT_SEEN_KEPT]; /* the entry used last stands first */
    double depth; /* K, the depth of the sums, for the rounding bound (accuracy.h) */
    evoke_argument *oracle_arguments;
    const char **shape_names;
    double *shape_values;
    /* The case by which launch plans are evaluated, where a scalar that is no size is varied: its
     * shape has the varied values. Without a shape: `at`. */
    task_case of_plans;
    expr_name *varied_shape; /* of of_plans; owned */
    void *scratch;           /* the oracle's own memory */
    fit_baseline baseline;
    fit_varied varied;       /* of the start that ran last */
    bool is_tried, is_legal; /* of a case whose inputs have `begins` (begin.c) */
    fit_now now;
} fit_case;

#define FIT_DRAWN_MOST 5
#define FIT_TIMED_MOST 5 /* timed cases of a search, the task's own and drawn ones */

typedef struct fit_drawn {
    task_case *at;
    bool used; /* the baseline is correct there on this device */
} fit_drawn;

/* The number of output elements that the sampled blocks wrote at one timed search case (writes.c).
 */
typedef struct fit_written {
    const task_case *at;
    uint64_t written; /* output elements */
} fit_written;

typedef struct fit_writes {
    fit_written cases[SCORE_MAX_CASES];
    size_t count;
} fit_writes;

typedef struct fit_reference fit_reference;
typedef struct fit_paths fit_paths;
typedef struct fit_condition fit_condition;

struct fitness {
    const task *t;
    device *d;
    fitness_options options;
    fit_case **cases;
    size_t case_count;
    uint64_t host_bytes; /* host memory of all cases made so far */
    fit_drawn drawn[FIT_DRAWN_MOST];
    size_t drawn_count;
    fit_drawn timed[FIT_TIMED_MOST]; /* drawn cases that gate 5 times (drawn_timed.c) */
    size_t timed_count;
    fit_writes writes; /* of the candidate scored last */
    fit_reference *references;
    size_t reference_count;
    fit_paths **paths;
    size_t path_count;
    fit_condition *conditions;
    size_t condition_count;
    bool has_steps; /* a start of the task has */
    fit_scratch *scratch;
    size_t scratch_count;
    fit_snapshot **snapshots; /* the one used last stands last */
    size_t snapshot_count;
    /* the time of the fastest unmodified start at default macros; 0: none timed yet */
    double bar_ns;
    candidate baseline;       /* owned copy; ptx NULL: not set */
    ev_arena *baseline_arena; /* memory of `baseline`; NULL: not set */
    device_kernel *baseline_kernel;
    device_buffer arms; /* of arms.c; 0: none */
    size_t arms_bytes;
    vm_checks waived; /* of races: the baseline does not stand them, and no variant has to */
    fitness_cost cost;
    /* the same task in the virtual machine, for a GPU; NULL: the device has no twin */
    fitness *twin;
    device *twin_device;
    bool has_passed; /* `passed` is valid */
    /* hash of PTX, plan, start and macros of the candidate that passed the twin last */
    ev_sha256 passed;
};

/* Gives the case with its buffers and inputs; makes them on the first call. *out is borrowed from
 * `f`.  EV_BAD: the case does not fit the memory of the device
 * or the host. */
ev_status fit_case_get(fitness *f, const task_case *at, fit_inputs inputs, fit_case **out,
                       ev_error *err) EV_CHECKED;
/* The inputs that a search is given. Approximate instructions are as far off as their bounds allow,
 * so that no variant passes because they are better here than on hardware. */
fit_inputs fit_usual_inputs(const fitness *f);
/* The inputs with the alignments that the candidate states as a requirement, where the task grants
 * less. */
fit_inputs fit_inputs_for(const fitness *f, const task_case *at, fit_inputs inputs,
                          const candidate *who);
bool fit_same_inputs(fit_inputs a, fit_inputs b);
void fit_case_free(const fitness *f, fit_case *c);
/* Whether a run executes all blocks and the comparison covers every output element. True for all
 * but timed cases. */
bool fit_case_is_full(const fit_case *c);
/* Whether runs of a case execute some blocks only, unless all are asked for. */
bool fit_case_is_sampled(const fitness *f, const fit_case *c);
/* Whether the buffers of a case lie at odd multiples of their alignment. */
bool fit_case_is_odd(const fitness *f, const fit_case *c);
/* Fills a->before, which has room, with the contents of a buffer, symbol or member. */
ev_status fit_make_contents(fitness *f, fit_case *c, fit_argument *a, ev_error *err) EV_CHECKED;
/* Fills the symbols of the task in the kernel's module. EV_BAD: a variable is too small. */
ev_status fit_case_fill(fitness *f, const fit_case *c, device_kernel *kernel,
                        ev_error *err) EV_CHECKED;
/* Packs the parameter block of `entry` for a rank; *out is malloc'ed, and the caller frees it.
 * EV_BAD: the kernel's parameters differ from the task's arguments; the message names both. */
ev_status fit_case_pack(const fitness *f, const fit_case *c, const vm_entry *entry, uint32_t rank,
                        void **out, ev_error *err) EV_CHECKED;
/* Restores the contents of INOUT buffers after a launch. `stored`: the sectors that the launch
 * wrote; NULL: not known, so all contents are restored. */
ev_status fit_case_restore(fitness *f, fit_case *c, const uint64_t *stored, size_t stored_count,
                           ev_error *err) EV_CHECKED;
/* The case by which launch plans are evaluated. A variant's plan may name a scalar that no start's
 * plan names. Where that scalar is varied, the plan has the varied value. */
const task_case *fit_case_of_plans(const fit_case *c);
/* Tells whether the candidate has a launch at a case with varied scalars: its plan is legal there,
 * and the launch is not many times as large as with the task's own values. */
ev_status fit_is_launchable(const fitness *f, const fit_case *c, const candidate *who, bool *out,
                            ev_error *err) EV_CHECKED;
/* EV_BAD: the plan is not legal at the shape. */
ev_status fit_case_launch(const fitness *f, const fit_case *c, const candidate *who,
                          launch_geometry *out, ev_error *err) EV_CHECKED;

/* ---- ranks (ranks.c) ---- */

/* The parameter blocks of a launch, one for each rank. */
typedef struct fit_params {
    void *of[TASK_RANKS_MOST];
    uint32_t count;
} fit_params;

/* Sets c->ranks, and spreads the buffers that are made next over them. EV_BAD: the device has fewer
 * ranks. */
ev_status fit_ranks_begin(const fitness *f, fit_case *c, ev_error *err) EV_CHECKED;
/* Fills the tables of peers, when all buffers are there. */
ev_status fit_ranks_fill(fitness *f, fit_case *c, ev_error *err) EV_CHECKED;
uint64_t fit_address_of(const fitness *f, device_buffer buffer, uint32_t rank);
/* Fills a table at every rank with the addresses of a buffer at each rank. */
ev_status fit_ranks_table(fitness *f, uint32_t ranks, device_buffer table, device_buffer of,
                          ev_error *err) EV_CHECKED;
/* Spreads the buffers that are made next over the ranks of a case. */
void fit_ranks_spread(const fitness *f, const fit_case *c);
/* Packs the parameters of all ranks, and puts them into the launch. Errors as of fit_case_pack. */
ev_status fit_params_pack(const fitness *f, const fit_case *c, const vm_entry *entry, fit_params *p,
                          device_launch *l, ev_error *err) EV_CHECKED;
void fit_params_free(fit_params *p);
/* Turns an element of all ranks' parts of a buffer of `count` elements into one of a rank. */
void fit_ranks_place(const fit_case *c, uint64_t count, fitness_element *at);

/* ---- members of the structs in buffers (members.c); `a` may be any buffer ---- */

/* Makes the contents of the members of `a`, and puts them into a->before. */
ev_status fit_members_fill(fitness *f, fit_case *c, const fit_argument *a,
                           ev_error *err) EV_CHECKED;
/* Tells the members which buffer they lie in. `shared`: the buffer of structs that has the contents
 * of another one; NULL: there is none. */
ev_status fit_members_place(fitness *f, fit_case *c, const fit_argument *shared,
                            ev_error *err) EV_CHECKED;
/* Copies the elements of a member out of the bytes of its buffer. */
void fit_members_gather(const fit_argument *member, const void *bytes, void *elements);
/* Gives the contents of an output in *got: its elements one behind the other. They are in the
 * device's own memory, or in a copy *owned, which the caller frees. */
ev_status fit_elements_read(fitness *f, const fit_argument *a, const void **got, void **owned,
                            ev_error *err) EV_CHECKED;
/* Reads one element. */
ev_status fit_element_read(fitness *f, const fit_argument *a, uint64_t element, void *out,
                           ev_error *err) EV_CHECKED;
/* As device_written, of elements first .. first + count - 1. */
ev_status fit_elements_written(fitness *f, const fit_argument *a, uint64_t first, uint64_t count,
                               uint8_t *written, uint64_t *how_many, ev_error *err) EV_CHECKED;
/* The elements that may lie in bytes begin .. end - 1 of the buffer: *first .. *last - 1. */
void fit_elements_in(const fit_argument *a, uint64_t begin, uint64_t end, uint64_t *first,
                     uint64_t *last);

/* ---- answers (answers.c) ---- */

/* Compares every element of the outputs that the last launch at `c` left. */
ev_status fit_compare_full(fitness *f, fit_case *c, const accuracy_limits *limits, accuracy *out,
                           ev_error *err) EV_CHECKED;
/* Finds the element that is farthest from its answer, after a launch that left wrong outputs. */
ev_status fit_find_worst(fitness *f, fit_case *c, const accuracy_limits *limits,
                         fitness_element *out, ev_error *err) EV_CHECKED;
/* An output with elements that no thread wrote and that should have other contents. */
typedef struct fit_skipped {
    const char *output;        /* its name; NULL: there is none */
    uint64_t unwritten, count; /* elements */
} fit_skipped;

/* Compares elements spread evenly over the elements that the last timed launch wrote; *written is
 * the number of elements written. `skipped`: after a run of all blocks, elements that were not
 * written are compared as well; NULL: they are not. */
ev_status fit_compare_spots(fitness *f, fit_case *c, const accuracy_limits *limits, accuracy *out,
                            uint64_t *written, fit_skipped *skipped, ev_error *err) EV_CHECKED;
/* The same of the outputs that `writer` says to be written last by launch `index`, within a
 * comparison that goes on; NULL: all outputs. *written grows. */
ev_status fit_compare_more(fitness *f, fit_case *c, const size_t *writer, size_t index,
                           accuracy_check *check, uint64_t *written, fit_skipped *skipped,
                           ev_error *err) EV_CHECKED;
/* Counts the elements of each output that launches wrote since the reset. */
ev_status fit_count_outputs(fitness *f, const fit_case *c, uint64_t *counts,
                            ev_error *err) EV_CHECKED;
/* Counts the output elements that the last launch wrote. */
ev_status fit_count_written(fitness *f, const fit_case *c, uint64_t *written,
                            ev_error *err) EV_CHECKED;
/* Sets the answers of a case with varied data, after a run of a start: the oracle's, except where
 * the oracle's or the start's result is not finite; there, and without an oracle, the start's.
 * `by_start`: the start's everywhere. */
ev_status fit_answer_varied(fitness *f, fit_case *c, bool by_start, ev_error *err) EV_CHECKED;
/* Makes the present outputs the answers of the case, for tasks whose oracle is the baseline. */
ev_status fit_answer_all(fitness *f, fit_case *c, ev_error *err) EV_CHECKED;
ev_status fit_keep_outputs(fitness *f, fit_case *c, ev_error *err) EV_CHECKED;
accuracy_limits fit_limits(const fitness *f, const fit_case *c);

/* ---- cache of outputs: most variants leave the same bits as an earlier variant ---- */

/* Looks for outputs of equal bytes, all written, that were kept under equal limits. `got`: the
 * contents of each output. True: *out is their accuracy. */
bool fit_seen_find(fit_case *c, const accuracy_limits *limits, const void *const *got,
                   accuracy *out);
/* Keeps the outputs with their accuracy; replaces the entry used longest ago. Does nothing if
 * memory is short. */
void fit_seen_keep(fit_case *c, const accuracy_limits *limits, const void *const *got,
                   const accuracy *result);
void fit_seen_free(fit_case *c);

/* Hashes all bytes of the outputs that the last launch left. */
ev_status fit_hash_outputs(fitness *f, const fit_case *c, ev_sha256 *out, ev_error *err) EV_CHECKED;

/* ---- a candidate on trial ---- */

typedef struct fit_trial {
    const candidate *who;
    device_kernel *kernel;
    fit_writes *writes; /* collects the counts of written elements at the search's timed cases;
                           NULL: no counts */
    double bar_ns;      /* ns; a candidate that is no faster runs no other blocks (writes.c); 0: all
                           candidates do */
    uint64_t *executions; /* collects warp executions by pc, of fit_try_case; NULL: none */
} fit_trial;

/* ---- paths (paths.c) ---- */

#define FIT_PATHS_MOST 7

struct fit_paths {
    char *key; /* start and macros; owned */
    const fit_case *at;
    fitness_grid grid;
    bool is_alike; /* all blocks have about the same path length */
    /* ---- of an uneven grid */
    uint32_t blocks[FIT_PATHS_MOST]; /* the sample, ascending */
    double weights[FIT_PATHS_MOST];  /* how many blocks of the grid each one stands for */
    size_t count;
    uint32_t others[FIT_PATHS_MOST]; /* other blocks, ascending */
    size_t other_count;
    double share;     /* of the grid's warp instructions, in the sample */
    uint64_t written; /* output elements that the unmodified start writes in the sample */
};

/* Limit of thread instructions of a launch that runs `run` blocks at a timed case, or UINT64_MAX. A
 * variant that exceeds the limit is hopeless (candidate.hopeless): its blocks take that long even
 * if every SM issues all it can. `grid`: blocks of a grid whose blocks are alike, so that those
 * that run have a share of the SMs; 0: each has an SM of its own. `g`: the GPU; NULL: any. */
uint64_t fit_fuel_of_blocks(const gpu *g, const fit_case *c, const candidate *who, uint64_t run,
                            uint64_t grid);

/* Gives the kind of the candidate's grid at a timed case. `launch`: the candidate's, with its
 * parameters. `limit`: blocks of a sample at fixed places, fewer than the grid has. The first call
 * for a start and its macros runs blocks and leaves the case's INOUT buffers as they were. *out is
 * borrowed from `f`. */
ev_status fit_paths_get(fitness *f, fit_case *c, const fit_trial *trial,
                        const device_launch *launch, size_t limit, const fit_paths **out,
                        ev_error *err) EV_CHECKED;
void fit_paths_free(fitness *f);

/* ---- runs (run.c) ---- */

/* Whether a known part of the candidate's grid is idle (candidate.idle_parts). */
bool fit_has_idle_parts(const candidate *who);

/* Fills outputs before a launch: bits of a quiet NaN in every float type, and an index out of every
 * buffer. */
#define FIT_POISON 0xff

typedef struct fit_run_options {
    bool timed;
    bool against_baseline; /* alternates timed launches with the baseline's, on devices with
                              measured times */
    bool all_blocks;       /* runs all blocks; false: a sample of blocks at timed cases */
    double sample_share;   /* share of the blocks to run, capped at SAMPLE_MOST blocks; 0: a few, by
                              the case */
    bool other_blocks;     /* runs OTHER_BLOCKS other blocks; their count of written elements is not
                              compared with the baseline's */
    uint32_t draw;         /* number of the sample of that share: another number, other blocks */
    bool covers;   /* does not compare the count of written elements (cover.c does), and after a run
                      of all blocks also compares elements that were not written */
    bool compares; /* of a plan with steps: each launch's outputs are compared at once */
    bool is_baseline; /* this run is the baseline's, which other runs are compared with */
    bool one_block;   /* runs the middle block only, and does not compare the count of written
                         elements: for fast code, whose times are compared only with times of fast
                         code */
    vm_checks checks;
    uint64_t seed; /* seed of the order of warps */
    uint32_t jobs; /* host threads for an untimed run; 0: one */
    uint64_t fuel; /* limit of thread instructions for the run; 0: a multiple of the baseline's,
                      and some for each thread */
    double instructions; /* those of the baseline, if the inputs are not the case's own; else 0 */
    uint64_t *executions;
    double *stalls;
    model_site *sites;
} fit_run_options;

typedef struct fit_run {
    launch_geometry launch;
    device_outcome outcome;
    device_timing timing;
    device_timing baseline; /* of the baseline's launches in turn; samples 0: not taken */
    double share;           /* share of the grid's work that ran: of its blocks, or of an uneven
                               grid's instructions */
    double whole;           /* share of the blocks that ran which are not at the grid's edges */
    fitness_grid grid;      /* EVEN if it was not asked for */
    uint64_t wanted; /* output elements that the unmodified start at the same macros writes in the
                        blocks that ran; 0: not known */
    /* ---- of a plan with steps */
    size_t steps;     /* launches that ran; 0: a plain plan */
    char where[160];  /* the launch that ended in a fault, as task_step_name; "": none */
    bool is_compared; /* each launch was compared at once, with this result */
    accuracy accuracy;
    uint64_t written;
} fit_run;

/* One launch, by fit_run_launch. */
typedef struct fit_launch {
    const launch_geometry *at;
    bool begins;     /* it resets the memory; false: it goes on from the launch before */
    unsigned stream; /* of ranks: device_launch.stream */
} fit_launch;

/* Runs one launch of a candidate; trial->kernel is the kernel of that launch, and c->now tells its
 * parameters. */
ev_status fit_run_launch(fitness *f, fit_case *c, const fit_trial *trial, const fit_launch *which,
                         const fit_run_options *options, fit_run *out, ev_error *err) EV_CHECKED;
/* The limits that a run is compared with. */
accuracy_limits fit_limits_of_run(const fitness *f, const fit_case *c,
                                  const fit_run_options *options);

/* Runs the launches of a plan in order (steps.c); fit_run_case calls it. */
ev_status fit_run_steps(fitness *f, fit_case *c, const fit_trial *trial,
                        const fit_run_options *options, fit_run *out, ev_error *err) EV_CHECKED;
/* Times the launches of any plan together (sequence.c); fit_run_case calls it on a device that
 * measures times. */
ev_status fit_run_sequence(fitness *f, fit_case *c, const fit_trial *trial,
                           const fit_run_options *options, fit_run *out, ev_error *err) EV_CHECKED;
/* Whether the launches of a candidate fit the device at a case. EV_BAD: which one does not. */
ev_status fit_steps_fit(const fitness *f, const task_case *at, const fit_trial *trial,
                        ev_error *err) EV_CHECKED;
uint64_t fit_scratch_bytes(const fitness *f, device_buffer buffer);
void fit_steps_free(fitness *f);

/* The checks of a run of all blocks. */
vm_checks fit_checks(const fitness *f);
/* Fills the outputs with poison and runs the kernel. The outputs stay as the launch left them, for
 * comparison; the caller restores the buffers with fit_restore_after. */
ev_status fit_run_case(fitness *f, fit_case *c, const fit_trial *trial,
                       const fit_run_options *options, fit_run *out, ev_error *err) EV_CHECKED;
ev_status fit_restore_after(fitness *f, fit_case *c, const fit_run *run, ev_error *err) EV_CHECKED;

/* The result of one candidate at one case. */
typedef struct fit_result {
    bool ok;
    bool ran;       /* the launch ended without a trap */
    ev_sha256 bits; /* hash of the outputs, if asked for (fit_try_bits) */
    accuracy accuracy;
    fit_run run;
    uint64_t written;
    fitness_element worst; /* of a wrong run */
    char reason[600];
} fit_result;

/* Sets the element's name by its index. */
void fit_name_element(const fit_argument *a, fitness_element *out);
/* Appends the farthest element to the reason, if there is one. */
void fit_tell_worst(fit_result *r);

/* Compares the outputs that the last launch left between the ranks. If an output that must be the
 * same on all of them is not, r->ok becomes false, and the reason and the element say where. */
ev_status fit_ranks_agree(fitness *f, const fit_case *c, fit_result *r, ev_error *err) EV_CHECKED;
/* The question alone, of a start. */
ev_status fit_ranks_same(fitness *f, const fit_case *c, bool *same, ev_error *err) EV_CHECKED;
/* Runs a candidate at a case in the way that the case's use asks for, compares the outputs, and
 * restores the buffers. EV_BAD only if the launch does not fit the device. */
ev_status fit_try_case(fitness *f, fit_case *c, const fit_trial *trial, uint64_t seed,
                       fit_result *out, ev_error *err) EV_CHECKED;
/* As fit_try_case; also hashes the outputs into out->bits before the restore. */
ev_status fit_try_bits(fitness *f, fit_case *c, const fit_trial *trial, uint64_t seed,
                       fit_result *out, ev_error *err) EV_CHECKED;
/* As fit_try_case, with the options given. The reason of a failure names only checks that the
 * options ask for. */
ev_status fit_try_options(fitness *f, fit_case *c, const fit_trial *trial,
                          const fit_run_options *options, fit_result *out,
                          ev_error *err) EV_CHECKED;
/* Runs the baseline at a case and notes its figures in c->baseline. EV_BAD: the baseline traps or
 * disagrees with the oracle. */
ev_status fit_baseline_case(fitness *f, fit_case *c, fit_result *out, ev_error *err) EV_CHECKED;
/* Whether one of the baseline's kernels has a property, of its plan's launches. */
bool fit_baseline_has(const fitness *f, bool (*has)(const device_kernel *));
ev_status fit_need_baseline(fitness *f, fit_case *c, ev_error *err) EV_CHECKED;

/* ---- coverage (cover.c) ---- */

/* The part of gate 6 that runs the full grids: a variant must write all outputs at the timed cases.
 * Grids whose cost exceeds the limit run a share of their blocks. */
ev_status fit_cover(fitness *f, const fit_trial *trial, score *s, ev_error *err) EV_CHECKED;
/* The same at one timed case; a failure stops `s` at gate 6. */
ev_status fit_cover_case(fitness *f, fit_case *c, const fit_trial *trial, score *s,
                         ev_error *err) EV_CHECKED;

/* ---- varied data (vary.c) ---- */

/* Changes the contents of an input, or the value of a scalar, by the case's variation, within the
 * argument's range. Leaves FIT_PLAIN as it is. */
ev_status fit_vary_buffer(const fit_case *c, fit_argument *a, void *data, ev_error *err) EV_CHECKED;
void fit_vary_scalar(const fit_case *c, fit_argument *a);
/* Those of an integer buffer (vary_whole.c). */
ev_status fit_vary_whole(const fit_case *c, const fit_argument *a, void *data,
                         ev_error *err) EV_CHECKED;
/* A number that depends on variation, case and argument; its high and low bits are independent. */
uint64_t fit_vary_seed(const fit_case *c, const fit_argument *a);
/* An element of a buffer and its place. */
typedef struct fit_placed {
    double value;
    uint64_t at;
} fit_placed;
/* Lists the elements of a buffer in ascending order, equal ones by place; *out is malloc'ed. */
ev_status fit_sort_elements(ev_type type, const void *data, uint64_t count, fit_placed **out,
                            ev_error *err) EV_CHECKED;
const char *fit_variation_words(fit_variation v);
/* The part of gate 6 that runs the search's small cases with other data, for a candidate with
 * edits. The candidate's own start tells what is right: the unmodified start at the same macros.
 * The answer is the oracle's where the start's result is finite, else the class of the start's
 * result: NaN, or an infinity with its sign. The error may be as large as the tolerance, or
 * FIT_VARIED_FACTOR times the start's own, or as that of the start's sums (condition.c). */
ev_status fit_try_varied(fitness *f, const fit_trial *trial, score *s, ev_error *err) EV_CHECKED;

#define FIT_VARIED_FACTOR 4

/* The start that a candidate is compared with, loaded. */
typedef struct fit_start {
    candidate who;
    device_kernel *kernel;
    ev_str ptx;    /* memory of who.ptx, if it was built; else empty */
    bool is_owned; /* the kernel */
    ev_sha256 sha256;
} fit_start;

/* Loads the candidate's own start; the baseline if that does not build or load. Free by
 * fit_start_free. */
ev_status fit_start_of(fitness *f, const candidate *who, fit_start *out, ev_error *err) EV_CHECKED;
void fit_start_free(fit_start *start);
/* Runs a candidate at a case with other data, and restores the buffers. `with`: the variation, its
 * power and the schedule. *usable false: the data are not for this kernel, and nothing was run.
 * `c` and `r` are for the caller's report. */
ev_status fit_try_variation(fitness *f, const task_case *at, const task_case_inputs *with,
                            const fit_trial *trial, const fit_start *start, bool *usable,
                            fit_result *r, ev_error *err) EV_CHECKED;
/* Whether the variation changes arguments of this type and kind (vary_data.c). */
bool fit_variation_concerns(fit_variation v, const task_argument *what, const task_range *range);
/* Whether an input and an output are one buffer; the power is the number of the pair then. */
bool fit_variation_aliases(fit_variation v);
/* Pairs of an input and an output that callers may pass in one buffer, FIT_PAIRS_MOST at most. */
int fit_pairs_of(const fitness *f, const fit_case *plain, const fit_trial *trial);
/* Whether sums of such data are as well conditioned as the task's own. */
bool fit_variation_is_benign(fit_variation v);
/* Runs the start at a case with varied data, and makes the answers; c->varied has the outcome. Does
 * nothing if this start ran there last. `plain`: the case with the task's own data, which the
 * baseline ran. */
ev_status fit_vary_start(fitness *f, const fit_case *plain, fit_case *c, const fit_start *start,
                         ev_error *err) EV_CHECKED;
/* As fit_try_variation, for the case's own variation, which it has. */
ev_status fit_try_own_variation(fitness *f, const task_case *at, const fit_trial *trial,
                                fit_result *r, ev_error *err) EV_CHECKED;

/* ---- condition (condition.c) ---- */

/* Gives, for each output, the most that the start's relative error is beyond the tolerance, in
 * units of the output's condition (accuracy_output). The first call for a start runs it at the
 * search's small cases. *out is borrowed until the next call. */
ev_status fit_condition_of(fitness *f, const fit_start *start, const double **out,
                           ev_error *err) EV_CHECKED;
/* The constant of an output: the largest of all outputs of its type that have one, since few
 * samples of one output show little. `of`: of fit_condition_of. 0: the output has none. */
double fit_constant_at(const fit_case *c, const double *of, size_t output);
/* Gives, for each output whose scale the oracle does not give, the start's largest relative error
 * over several samples of a case's varied data; 0 for the other outputs. `of`: [outputs]. */
ev_status fit_errors_of(fitness *f, const fit_case *c, const fit_start *start, double *of,
                        ev_error *err) EV_CHECKED;
void fit_conditions_free(fitness *f);

/* ---- arms (arms.c) ---- */

/* The part of gate 6 that refuses a candidate with an edit of an arm that its start takes at no
 * case. Runs after the cases of gate 6, whose data it uses. */
ev_status fit_try_arms(fitness *f, const fit_trial *trial, score *s, ev_error *err) EV_CHECKED;

/* ---- asserted facts (asserted.c) ---- */

/* The part of gate 6 that runs the candidate with its asserted facts as checks, at all cases that
 * are run in full. Does nothing if it asserts none. */
ev_status fit_asserted(fitness *f, const fit_trial *trial, score *s, ev_error *err) EV_CHECKED;

/* ---- other initial contents (begin.c) ---- */

/* Makes the initial contents of an argument in a case whose inputs have `begins`; *made false: the
 * argument keeps those of the task. */
ev_status fit_begin_request(fitness *f, const fit_case *c, const fit_argument *a,
                            corpus_request *request, bool *made, ev_error *err) EV_CHECKED;
/* Whether the task has an argument that begins otherwise, and the baseline is right at the case
 * with it. */
ev_status fit_begin_is_legal(fitness *f, const task_case *at, uint32_t fresh, bool *legal,
                             ev_error *err) EV_CHECKED;
/* Runs the small cases of a split with other initial contents, where that is legal; the score gets
 * no rows. `most`: at most so many cases of each use. A failure stops `s` at gate `at`. */
ev_status fit_begin_cases(fitness *f, corpus_split split, size_t most, const fit_trial *trial,
                          gate at, score *s, ev_error *err) EV_CHECKED;

/* Checks a small case with other initial contents, where that is legal. *tried false: it is not. */
ev_status fit_try_begins(fitness *f, const fit_trial *trial, const task_case *at, bool *tried,
                         fit_result *r, ev_error *err) EV_CHECKED;
/* Fills the verdict of `evoke check` from a result at a case. */
void fit_fill_verdict(const fit_result *r, const fit_case *c, const fitness *f,
                      fitness_verdict *out);

/* ---- drawn cases (drawn.c) ---- */

void fit_drawn_free(fitness *f);
/* Turns EV_BAD, which `why` tells, into EV_OK. */
ev_status fit_drawn_forgive(ev_status status, const ev_error *why, ev_error *err) EV_CHECKED;
bool fit_drawn_same_shape(const task_case *a, const task_case *b);
/* Whether a case of any split has this shape. */
bool fit_drawn_is_of_task(const task *t, const task_case *at);
/* Frees name and shape of a case. */
void fit_drawn_free_case(task_case *at);
/* Moves the case to the fitness. The case is used only if the baseline is correct there on that
 * fitness's device. */
ev_status fit_drawn_take(fitness *f, fit_drawn *drawn, task_case *at, ev_error *err) EV_CHECKED;
/* Draws timed cases into f->timed (drawn_timed.c). `on`: a fitness of the same task in a virtual
 * machine, where the starts are loaded, the baseline first; it tells which shapes are legal. */
ev_status fit_draw_timed(fitness *f, fitness *on, const fit_trial *starts, size_t count,
                         ev_error *err) EV_CHECKED;

/* ---- the floor (floor.c) ---- */

/* Stops a modelled time below the floor by the task's work: the model counts each byte that must
 * move, so the work was not done, or the sampled blocks do not stand for the others. Not where the
 * baseline is below it, too: then the task declares too much. */
ev_status fit_hold_floor(fitness *f, const task_case *which, double ns, gate at, score *s,
                         ev_error *err) EV_CHECKED;

/* ---- writes (writes.c) ---- */

/* Adds the number of elements written in `r` to trial->writes, if the case is a timed one and the
 * run was a correct sample of blocks. */
void fit_note_writes(const fit_trial *trial, const fit_case *c, const fit_result *r);
void fit_references_free(fitness *f);

/* ---- the twin (fitness.c) ---- */

/* Opens the same task on the virtual machine that the device names as its twin. Does nothing if the
 * device names none. */
ev_status fit_twin_open(fitness *f, ev_error *err) EV_CHECKED;
void fit_twin_close(fitness *f);
ev_status fit_twin_baseline(fitness *f, const candidate *baseline, ev_error *err) EV_CHECKED;
/* Puts the candidate through gates 2 and 3 in the twin. A failure there stops `s` at the same gate.
 * Does nothing if there is no twin, or if the candidate was the last one to pass it. */
ev_status fit_twin_pass(fitness *f, const candidate *who, score *s, ev_error *err) EV_CHECKED;
/* The speed-of-light floor at a case in ns, from the twin's counters; 0: not known for this device.
 */
ev_status fit_twin_floor(fitness *f, const candidate *who, const task_case *which, double *ns,
                         ev_error *err) EV_CHECKED;

/* ---- gates (gates.c) ---- */

/* Seconds for fitness_cost: CPU time of the process if times are modelled, else wall-clock time. */
double fit_clock(const fitness *f);
/* A list of gates for a loaded candidate. A failed gate stops `s`; the status is only for errors.
 */
typedef ev_status fit_ladder(fitness *f, const fit_trial *trial, score *s, ev_error *err);
/* Clears *out, then runs the twin's gates, loads the candidate (gate 2) and calls the ladder.
 * trial->kernel is not used. */
ev_status fit_judge(fitness *f, const fit_trial *trial, fit_ladder *ladder, score *out,
                    ev_error *err) EV_CHECKED;
/* Gates 2 to 5. trial->writes must not be NULL. */
ev_status fit_search_ladder(fitness *f, const fit_trial *trial, score *s, ev_error *err) EV_CHECKED;

/* Gates 2 and 3, for a twin. */
ev_status fit_safe_ladder(fitness *f, const fit_trial *trial, score *s, ev_error *err) EV_CHECKED;
void fit_stop(score *s, gate at, const fit_result *result, const char *format, ...) EV_PRINTF(4, 5);
/* Adds a row for the case to the score. */
void fit_note_case(score *s, const fit_case *c, const fit_result *result);
/* Geometric mean in ns over the timed cases of a score; 0: no timed case. */
double fit_mean_ns(const score *s);
double fit_mean_of(const score *s, double (*value)(const score_case *c, const void *context),
                   const void *context);
/* Sets s->ns and s->baseline_ns: geometric means of the candidate's times, and of the baseline's
 * times measured in turn with them. */
void fit_note_means(score *s);
/* Resident warps of an SM as a share of the most it can hold, 0 to 1. */
double fit_occupancy(const model_time *t);
/* Loads a candidate. A refusal stops `s` at gate 2. The caller frees the kernel with device_unload.
 */
ev_status fit_load(fitness *f, const candidate *who, device_kernel **kernel, score *s,
                   ev_error *err) EV_CHECKED;
/* Runs one case, compares, adds the row, and stops `s` at gate `at` if the case failed. */
ev_status fit_gate_case(fitness *f, const task_case *which, fit_inputs inputs,
                        const fit_trial *trial, gate at, score *s, ev_error *err) EV_CHECKED;

#endif
