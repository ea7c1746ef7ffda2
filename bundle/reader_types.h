/* The contents of a bundle as plain values, for the writer and from the reader.
 *
 * A bundle is a folder, or a tar of its files (bundle/tar.h):
 *   manifest.json           everything below, and the SHA-256 of every other file
 *   kernels/<sha256>.ptx    the variants and the baselines
 *   kernels/<sha256>.cubin  their machine code, where an assembler was there
 *   tasks/<kernel>/...      task.json, sources, header and oracle, so that the bundle suffices to
 *                           check a kernel
 * Equal content gives equal bytes: no dates, no paths, sorted keys and rows. Times are nanoseconds.
 */
#ifndef BUNDLE_READER_TYPES_H
#define BUNDLE_READER_TYPES_H

#include "base/hash.h"
#include "base/launch_plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUNDLE_SCHEMA "evoke-bundle"
#define BUNDLE_VERSION 4
#define BUNDLE_SIGNATURE "manifest.sig"

/* A shape's or macro's number. Whole numbers are exact up to 2^53. */
typedef struct bundle_number {
    const char *name;
    bool is_real;
    double value;
} bundle_number;

/* A case at which the variant was validated. */
typedef struct bundle_case {
    const char *name, *split;
    const bundle_number *shape;
    size_t shape_count;
    double ns, low_ns, high_ns;               /* 0: not timed */
    double baseline_ns;                       /* 0: not known */
    double error;                             /* relative L2; negative: the records do not say */
    double baseline_low_ns, baseline_high_ns; /* interval of 95 %; 0: not known */
} bundle_case;

/* A time in ns with its 95 % interval. All three are equal for modelled times. ns 0: not timed. */
typedef struct bundle_time {
    double ns, low_ns, high_ns;
} bundle_time;

/* The verdict of a qualification: a row each of bundle/reader_verdicts.def. */
typedef enum bundle_verdict {
#define BUNDLE_VERDICT(id, name, meaning) BUNDLE_VERDICT_##id,
#include "bundle/reader_verdicts.def"
#undef BUNDLE_VERDICT
    BUNDLE_VERDICT_COUNT
} bundle_verdict;

/* One case of a qualification. The variant is timed twice: by turns with the baseline (`variant`),
 * and by turns with the fastest unmodified start other than the baseline (`beside_start`). */
typedef struct bundle_trial {
    const char *name;
    bundle_verdict verdict;
    bundle_time variant, baseline;
    bundle_time beside_start, start;
    const char *start_name; /* NULL: the task has no other start, or the case is not timed */
    double error;           /* relative L2; negative: not known */
} bundle_trial;

/* A variant's qualification on one GPU, by `evoke qualify`. */
typedef struct bundle_qualified {
    const char *gpu_id, *gpu_name; /* as of a variant */
    int sm, sms;
    const char *const *driver_names;
    size_t driver_name_count;
    const char *driver; /* "" where there is none */
    bool modelled;
    bundle_verdict verdict;
    const char *reason; /* "" where it passed */
    const bundle_trial *trials;
    size_t trial_count;
} bundle_qualified;

/* The alignment of a buffer's address in bytes, a power of two. */
typedef struct bundle_alignment {
    const char *argument;
    uint32_t bytes;
} bundle_alignment;

/* What a stress (`evoke check --stress`) tried a variant on: drawn shapes within its ranges, with
 * fresh and varied data, under several schedules. */
typedef struct bundle_tried {
    const char *device;    /* "vm:h200" */
    uint32_t shapes, runs; /* shapes 0: it was not tried */
    uint64_t seed;         /* of the drawing */
} bundle_tried;

/* Machine code of a variant for one architecture, assembled by ptxas from its PTX. */
typedef struct bundle_cubin {
    const char *arch;                /* "sm_90" */
    ev_sha256 sha256;                /* of the code; the writer computes it */
    uint32_t registers, spill_bytes; /* a thread, as ptxas says; spill stores */
    const char *assembler;           /* "ptxas V13.0.88" */
    const char *data;                /* NULL in a bundle that was opened lazily */
    size_t bytes;
} bundle_cubin;

typedef struct bundle_variant {
    const char *ptx; /* text; NULL in a bundle that was opened lazily (bundle_read_ptx) */
    size_t ptx_bytes;
    ev_sha256 sha256; /* of the PTX; the writer computes it */
    size_t number;    /* the reader's: the variants, starts and baselines of a bundle from 0 on */
    const char *start;
    /* Its launches; without hidden parameters. Its ranges say where the variant may be used; the
     * writer computes them from the cases (`multiple`: the largest number that divides all values
     * of the cases). */
    const launch_plan *plan;
    const bundle_number *macros; /* all of the start, with the values this variant was built with */
    size_t macro_count;
    const char *gpu_id, *gpu_name;   /* "h200", "NVIDIA H200 SXM 141GB" */
    int sm;                          /* compute capability x 10 */
    int sms;                         /* multiprocessors of the GPU; 0: not known */
    const char *const *driver_names; /* what drivers call the GPU: "H200" */
    size_t driver_name_count;
    double sm_mhz; /* the GPU's clock while the variant was timed, in MHz; 0: not known */
    uint32_t registers, shared_bytes, local_bytes, max_threads;
    /* The reader's; the writer takes them from the PTX and the launch plan. */
    int ptx_version;    /* of the PTX ISA x 10; 0: the PTX has no directive .version */
    const char *target; /* "sm_90"; "": the PTX has no directive .target */
    /* The oldest driver that takes the PTX version: its CUDA version as cuDriverGetVersion tells it
     * (12040 is 12.4), and the branch of the drivers that came with it. 0: not known. */
    int least_cuda, least_driver;
    uint32_t dynamic_shared_bytes; /* most of a block at the cases */
    bool modelled;                 /* times and registers are modelled, not measured */
    double error, tolerance;       /* worst relative L2 over the cases, and its limit */
    const bundle_case *cases;
    size_t case_count;
    const char *genome; /* JSON */
    const char *genome_sha256;
    const char *const *edits; /* in words */
    size_t edit_count;
    uint64_t seed;
    const char *versions;       /* JSON */
    const char *records_sha256; /* of the run's records (tuner/run/export.c); NULL: not known */
    const bundle_qualified *qualified;
    size_t qualified_count;
    const char *disabled; /* why the variant is handed out on no GPU; NULL: it is handed out */
    /* An edit of a bold variant changes what the kernel means, and nothing that was tried shows it.
     * The reader hands it out to callers that allow it, and to all if it is the default. */
    bool is_bold, is_default;   /* default: it was tuned to be (`evoke tune --bold`) */
    const char *const *changes; /* of a bold variant: the edits that change the meaning, in words */
    size_t change_count;
    bundle_tried tried;
    /* What the variant needs of buffers beyond the `align` of the kernel's arguments. */
    const bundle_alignment *alignments;
    size_t alignment_count;
    const bundle_cubin *cubins;
    size_t cubin_count;
    /* Of a kernel with ranks: kernels of the PTX whose blocks may wait for a peer's, so that all
     * blocks of their launches have to be on the GPU at once. */
    const char *const *resident;
    size_t resident_count;
} bundle_variant;

typedef struct bundle_argument {
    /* kind: "in", "out", "inout" or "scalar"; of a kernel with ranks also "rank", a scalar that is
     * the number of the rank, and "peers", a table of a buffer's addresses at each rank */
    const char *name, *kind, *type;
    const char *expression; /* elements of a buffer, value of a scalar */
    uint32_t align; /* bytes that every launch grants of a buffer's address; 0: BUNDLE_ALIGN */
    /* A field of a struct that the kernel takes by value, of the name "STRUCT.FIELD". The fields of
     * a struct follow each other, and are one parameter. */
    bool is_field;
    uint32_t offset, struct_bytes; /* from the begin of the struct; of the whole struct */
    const char *of;                /* peers: the buffer whose addresses the table has; else NULL */
    const char *before; /* inout: every element before each launch, an expression; NULL: data */
    bool by_rank;       /* out, inout: right where it differs from rank to rank */
} bundle_argument;

/* A kernel whose launches run on several GPUs at once, a rank each, which reach each other's
 * buffers by address. What a rank waits for is told by flags of scope .sys. */
typedef struct bundle_ranks {
    const char *count; /* an expression, BUNDLE_RANKS_LEAST to BUNDLE_RANKS_MOST */
    /* The caller has a barrier of all ranks before each launch, and behind each. */
    bool begins_together, ends_together;
} bundle_ranks;

#define BUNDLE_RANKS_LEAST 2
#define BUNDLE_RANKS_MOST 8
#define BUNDLE_RANKS_SCOPE "sys"

#define BUNDLE_STRUCT_MOST 4096u /* bytes of a struct */

#define BUNDLE_ALIGN 16u
#define BUNDLE_GIVEN_MOST 128u /* parameters of a launch among several */

/* A variable in constant or global memory of a kernel's PTX. The host fills its first `count`
 * elements before a launch (cuModuleGetGlobal); the rest is zero. A variant may lack it. */
typedef struct bundle_symbol {
    const char *name, *type;
    const char *count; /* an expression */
} bundle_symbol;

typedef struct bundle_kernel {
    const char *name, *family, *doc;
    const char *task; /* "tasks/NAME/task.json" */
    const char *task_sha256;
    const bundle_argument *arguments;
    size_t argument_count;
    const bundle_variant *baselines; /* untuned, at most one a compute capability */
    size_t baseline_count;
    const bundle_variant *variants;
    size_t variant_count;
    const bundle_variant *starts; /* unmodified, with their times */
    size_t start_count;
    const bundle_symbol *symbols;
    size_t symbol_count;
    const bundle_ranks *ranks; /* NULL: a launch runs on one GPU */
} bundle_kernel;

/* An additional file, such as a task's source. */
typedef struct bundle_file {
    const char *path; /* in the bundle, with '/' */
    const char *data;
    size_t bytes;
} bundle_file;

typedef struct bundle_content {
    const char *version; /* of Evoke */
    const bundle_kernel *kernels;
    size_t kernel_count;
    const bundle_file *files;
    size_t file_count;
} bundle_content;

#endif
