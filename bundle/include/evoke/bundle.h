/* evoke/bundle.h: opens a bundle of tuned GPU kernels, chooses the variant for a GPU and a shape,
 * and launches it. C11. Nothing else of Evoke is needed: link with -levoke-bundle (pkg-config
 * evoke-bundle). The CUDA driver is loaded at the first call that needs it (dlopen of
 * libcuda.so.1).
 *
 * A bundle is a folder or one tar file that `evoke tune` and `evoke export` write.
 *
 * Ownership: an out-pointer hands an object to the caller, who closes it. Every text and every
 * other pointer that the library returns belongs to the bundle and lives until evoke_bundle_close.
 * What the caller passes is borrowed for the call.
 *
 * Errors: each call that can fail returns a status and, on a failure, writes a message into
 * `error`, which may be NULL. Out-parameters then keep their values. No call aborts, exits, prints,
 * or changes the environment.
 *
 * Threads: after evoke_bundle_open, all calls but evoke_bundle_close may run at once from any
 * number of threads on one bundle. Calls on several bundles are independent.
 *
 * Units: sizes are bytes, times nanoseconds, compute capabilities 10 * major + minor.
 */
#ifndef EVOKE_BUNDLE_H
#define EVOKE_BUNDLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define EVOKE_API __attribute__((visibility("default")))
#else
#define EVOKE_API
#endif

/* Of this interface. A library of the same major version has every function and every field of its
 * predecessors; structures only grow behind their `size`, where they have one. */
#define EVOKE_BUNDLE_MAJOR 0
#define EVOKE_BUNDLE_MINOR 6

/* "0.6": the version of the library that is linked. */
EVOKE_API const char *evoke_bundle_version(void);

typedef enum evoke_status {
    EVOKE_OK = 0,
    EVOKE_BAD = 1,   /* bad input: a damaged bundle, an unknown kernel, a shape, a buffer */
    EVOKE_INFRA = 2, /* the machine or its driver failed: memory, disk, no driver, a fault */
} evoke_status;

typedef struct evoke_error {
    evoke_status status;
    char text[1500]; /* English; names the thing, the place and the cure */
} evoke_error;

typedef struct evoke_bundle evoke_bundle;

/* ---- opening ----------------------------------------------------------------------------------
 */

/* Opens a folder or a tar. The manifest is read and checked whole; each PTX is held against its
 * hash when it is first loaded. EVOKE_BAD: no bundle, another format version, damage (with line and
 * column), a stray file, a member of the tar that is not a regular file inside the bundle. */
EVOKE_API evoke_status evoke_bundle_open(const char *path, evoke_bundle **out, evoke_error *error);
/* Opens the bytes of a tar, which are copied. */
EVOKE_API evoke_status evoke_bundle_open_memory(const void *data, size_t bytes, evoke_bundle **out,
                                                evoke_error *error);
/* As the two above, of a bundle that was signed (evoke export --sign) by the private key to one of
 * `count` public Ed25519 keys, each a text of 64 hex digits or a PEM. The signature is over the
 * manifest, which has the hashes of all files. EVOKE_BAD, by name: a wrong, missing, foreign or
 * stripped signature; a text that is no key; no key. */
EVOKE_API evoke_status evoke_bundle_open_trusted(const char *path, const char *const *keys,
                                                 size_t count, evoke_bundle **out,
                                                 evoke_error *error);
EVOKE_API evoke_status evoke_bundle_open_memory_trusted(const void *data, size_t bytes,
                                                        const char *const *keys, size_t count,
                                                        evoke_bundle **out, evoke_error *error);
/* The public key that signed the bundle, as 64 hex digits; NULL: it is not signed. A signature that
 * is there holds, or the bundle would not have opened; whether to trust its key is up to the
 * caller. */
EVOKE_API const char *evoke_bundle_signer(const evoke_bundle *bundle);
/* Holds every file against its hash. EVOKE_BAD: the first that differs, by name. */
EVOKE_API evoke_status evoke_bundle_verify(const evoke_bundle *bundle, evoke_error *error);
/* Unloads the modules and frees everything; NULL is fine. No launch may run in another thread, and
 * contexts that were launched in must still exist, unless evoke_bundle_forget was called there. */
EVOKE_API void evoke_bundle_close(evoke_bundle *bundle);

/* ---- kernels ----------------------------------------------------------------------------------
 */

/* The kernels by name, ascending; NULL at and behind the count. */
EVOKE_API size_t evoke_bundle_kernel_count(const evoke_bundle *bundle);
EVOKE_API const char *evoke_bundle_kernel_name(const evoke_bundle *bundle, size_t index);

typedef enum evoke_argument_kind {
    EVOKE_IN,     /* a buffer that the kernel reads */
    EVOKE_OUT,    /* a buffer that it writes */
    EVOKE_INOUT,  /* a buffer that it reads and writes */
    EVOKE_SCALAR, /* a number; the library computes it from the shape */
    EVOKE_RANK,   /* the number of the rank; the library knows it (evoke_bundle_ranks) */
    EVOKE_PEERS,  /* a buffer: a table of the addresses of another buffer at each rank */
} evoke_argument_kind;

typedef struct evoke_argument {
    const char *name;
    evoke_argument_kind kind;
    const char *type;       /* "f32", "f16", "s32", ...: of an element */
    size_t element_bytes;   /* of one element */
    const char *expression; /* elements of a buffer, value of a scalar, in the names of the shape */
    uint32_t alignment;     /* that every launch needs of a buffer's address; 1 for scalars */
} evoke_argument;

/* The arguments in the kernel's order. EVOKE_BAD: no such kernel (with the known ones), or `index`
 * is not below the count. */
EVOKE_API evoke_status evoke_bundle_argument_count(const evoke_bundle *bundle, const char *kernel,
                                                   size_t *out, evoke_error *error);
EVOKE_API evoke_status evoke_bundle_argument(const evoke_bundle *bundle, const char *kernel,
                                             size_t index, evoke_argument *out, evoke_error *error);

/* A __constant__ or __device__ variable of the kernel's source that the host fills before launches;
 * evoke_variant_fill does so. */
typedef struct evoke_symbol {
    const char *name;
    const char *type;       /* "f32", ...: of an element */
    size_t element_bytes;   /* of one element */
    const char *expression; /* elements to fill, in the names of the shape */
} evoke_symbol;

/* The variables to fill; most kernels have none. EVOKE_BAD: as of the arguments. */
EVOKE_API evoke_status evoke_bundle_symbol_count(const evoke_bundle *bundle, const char *kernel,
                                                 size_t *out, evoke_error *error);
EVOKE_API evoke_status evoke_bundle_symbol(const evoke_bundle *bundle, const char *kernel,
                                           size_t index, evoke_symbol *out, evoke_error *error);

/* A number of a shape, "M" = 1024 say. Whole numbers are exact up to 2^53; names that the kernel
 * does not know are ignored. */
typedef struct evoke_number {
    const char *name;
    double value;
} evoke_number;

typedef struct evoke_shape {
    const evoke_number *numbers;
    size_t count;
} evoke_shape;

/* Reads a shape of a text, "M=1024 N=64" or "M=1024,density=0.5", into `numbers`, which has `room`
 * places. The names stay in `text`, whose '=' are overwritten; keep both as long as the shape.
 * Numbers are decimal, with a point in every locale. EVOKE_BAD, and *out is as before: what is no
 * NAME=NUMBER, with its place; a name that is there twice; more than `room` numbers. */
EVOKE_API evoke_status evoke_shape_read(char *text, evoke_number *numbers, size_t room,
                                        evoke_shape *out, evoke_error *error);

/* Elements of the buffer `index` at a shape, or 0 for a scalar. EVOKE_BAD: as above; the expression
 * cannot be evaluated, with the values in it. */
EVOKE_API evoke_status evoke_bundle_elements(const evoke_bundle *bundle, const char *kernel,
                                             size_t index, const evoke_shape *shape, uint64_t *out,
                                             evoke_error *error);

/* A buffer on the device. */
typedef struct evoke_buffer {
    uint64_t address; /* as cuMemAlloc returns it */
    size_t bytes;
} evoke_buffer;

/* The buffers that a kernel takes at a shape, in the kernel's order: those of its arguments that
 * are no scalars and no ranks. Writes their number to *count, each one's address 0 and bytes at
 * that shape to `buffers`, for the caller to allocate, and, unless `arguments` is NULL, what each
 * is to `arguments`. Both have `room` places. EVOKE_BAD, and nothing is written: as of
 * evoke_bundle_elements; the kernel has more than `room` buffers. */
EVOKE_API evoke_status evoke_bundle_buffers(const evoke_bundle *bundle, const char *kernel,
                                            const evoke_shape *shape, size_t room,
                                            evoke_argument *arguments, evoke_buffer *buffers,
                                            size_t *count, evoke_error *error);

/* ---- resolving --------------------------------------------------------------------------------
 */

typedef struct evoke_gpu {
    const char
        *name;      /* the driver's name ("NVIDIA H200") or Evoke's id ("h200"); NULL: not known */
    int capability; /* 90 for 9.0 */
    int multiprocessors; /* 0: not known */
} evoke_gpu;

/* Describes the GPU of the context that is current in this thread. `name` holds the text that
 * out->name points to. EVOKE_INFRA: no driver, or no current context. */
EVOKE_API evoke_status evoke_gpu_current(evoke_gpu *out, char name[256], evoke_error *error);

/* How near a choice is to the GPU that was asked for, best first. */
typedef enum evoke_rung {
    EVOKE_RUNG_EXACT,      /* made for this GPU model */
    EVOKE_RUNG_SIZE,       /* another model of this capability with as many multiprocessors */
    EVOKE_RUNG_CAPABILITY, /* another model of this capability */
    EVOKE_RUNG_PTX,        /* a lower capability; the driver compiles its PTX for this one */
    EVOKE_RUNG_BASELINE,   /* untuned */
} evoke_rung;

typedef enum evoke_role {
    EVOKE_ROLE_VARIANT, /* tuned */
    EVOKE_ROLE_START, /* unmodified, most often tuned by hand, and faster here than the variants */
    EVOKE_ROLE_BASELINE, /* unmodified; runs at every shape that the kernel takes */
} evoke_role;

/* Take bold variants, too: faster, but with edits that change what the kernel means, which nothing
 * that was tried shows. */
#define EVOKE_ALLOW_BOLD 1u
/* Every buffer of the launches will be aligned to 256 bytes, as cuMemAlloc returns them: take
 * variants that need more alignment than their kernel's arguments say, too. */
#define EVOKE_ALIGNED 2u
/* Take the baseline, to compare with it. */
#define EVOKE_BASELINE 4u

typedef struct evoke_variant evoke_variant;

typedef struct evoke_choice {
    const evoke_variant *variant; /* for the calls below */
    evoke_rung rung;
    evoke_role role;
    double speedup;  /* over the baseline at the nearest shape that was timed; 1: not known */
    int is_measured; /* the times were measured; 0: they were modelled */
    /* Why a nearer or faster variant was passed over; NULL: none was. */
    const char *passed_over;
} evoke_choice;

/* Chooses among the variants and unmodified starts that were validated for the shape: those of the
 * best rung; of these the one that was fastest at the nearest shape that was timed; never one that
 * its own records call slower there than the baseline or an unmodified start. The baseline where
 * there is none. Takes less than a microsecond for tens of variants. The launch is not evaluated:
 * where several numbers of the shape are large at once, the chosen grid may be over CUDA's limits,
 * which evoke_variant_geometry and the launch refuse; EVOKE_BASELINE is left then. EVOKE_BAD: an
 * unknown kernel (with the known ones), a number that the shape lacks, nothing for this compute
 * capability. */
EVOKE_API evoke_status evoke_bundle_resolve(const evoke_bundle *bundle, const char *kernel,
                                            const evoke_gpu *gpu, const evoke_shape *shape,
                                            unsigned flags, evoke_choice *out, evoke_error *error);

/* "lstm: the variant of textbook for NVIDIA H200 (exact-gpu), 3.20 x the baseline by modelled
 * times;
 * ...", cut off at `room` bytes. Returns `text`. */
EVOKE_API const char *evoke_bundle_explain(const evoke_choice *choice, char *text, size_t room);

/* "exact-gpu"; NULL for a number that is no rung. */
EVOKE_API const char *evoke_rung_name(evoke_rung rung);

/* ---- launching --------------------------------------------------------------------------------
 */

typedef struct evoke_geometry {
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t shared_bytes; /* dynamic shared memory of a block */
} evoke_geometry;

/* Evaluates the launch rule at a shape. EVOKE_BAD: a variant of several launches; overflow, a
 * division by zero, a zero, or a number over CUDA's limits, with the expression and the values in
 * it. */
EVOKE_API evoke_status evoke_variant_geometry(const evoke_variant *variant,
                                              const evoke_shape *shape, evoke_geometry *out,
                                              evoke_error *error);

/* One of several launches of a variant. */
typedef struct evoke_step {
    const char *entry; /* the kernel's name in the PTX */
    evoke_geometry geometry;
} evoke_step;

/* The launches of a variant at a shape, in order, with all turns of its loops; one, of most
 * kernels, and at most 1024. Both write nothing on a failure. EVOKE_BAD: as of
 * evoke_variant_geometry, with the launch; more than `room` launches. */
EVOKE_API evoke_status evoke_variant_steps(const evoke_variant *variant, const evoke_shape *shape,
                                           size_t room, evoke_step *steps, size_t *count,
                                           evoke_error *error);
/* Bytes of device memory that the launches of a variant need between them at a shape, beside the
 * kernel's buffers; 0, of most variants. EVOKE_BAD: as of evoke_variant_geometry. */
EVOKE_API evoke_status evoke_variant_scratch(const evoke_variant *variant, const evoke_shape *shape,
                                             size_t *bytes, evoke_error *error);

/* Bytes of a buffer that is too large to tell, or not known: its size is not checked. */
#define EVOKE_BYTES_UNKNOWN SIZE_MAX

/* Launches a variant in the context that is current in this thread, on `stream` (a CUstream; NULL:
 * the default stream), and does not wait for the end. `buffers`: as
 * evoke_bundle_buffers lists them. The PTX is compiled at the first launch in a context
 * and kept. EVOKE_BAD, and nothing is launched: what evoke_variant_geometry refuses; a number of
 * buffers that is not the kernel's; a buffer that is too small or not aligned; a PTX whose hash
 * differs, that is newer than the driver (with the least driver for it), or that the driver refuses
 * (with its log); a block that the kernel cannot have; a variable of the kernel that was not filled
 * in this context (evoke_variant_fill), by its name; a variant that needs scratch memory; a kernel
 * with ranks (evoke_variant_launch_ranks).
 * EVOKE_INFRA: no driver, no current context, or an error of the driver, which may come from
 * earlier work. */
EVOKE_API evoke_status evoke_variant_launch(const evoke_variant *variant, const evoke_shape *shape,
                                            const evoke_buffer *buffers, size_t buffer_count,
                                            void *stream, evoke_error *error);
/* As evoke_variant_launch, of a variant that may need scratch memory (evoke_variant_scratch):
 * `scratch` has at least that many bytes at a multiple of 256. Its contents are of no account, and
 * are overwritten until the launches have ended: launches that run at once each need their own.
 * NULL: none. Several launches are given to the stream one after another, after all of them were
 * checked. EVOKE_INFRA: as of evoke_variant_launch; the launches before the one that the message
 * names are in the stream. */
EVOKE_API evoke_status evoke_variant_launch_scratch(
    const evoke_variant *variant, const evoke_shape *shape, const evoke_buffer *buffers,
    size_t buffer_count, const evoke_buffer *scratch, void *stream, evoke_error *error);
/* Compiles and loads a variant for the current context, so that its first launch does not. */
EVOKE_API evoke_status evoke_variant_load(const evoke_variant *variant, evoke_error *error);
/* Fills a variable of the kernel (evoke_bundle_symbol) in the variant's module of the current
 * context, for all launches there from now on, and waits for the copy. `bytes`: of the elements at
 * the shape. Launches under way in streams that do not wait for the default stream must have ended.
 * Each variant has variables of its own. EVOKE_BAD: the kernel has no such variable (with those it
 * has), the bytes are not those of the shape, or the variable is smaller. A variant in which
 * nothing reads the variable has none, and nothing is copied. */
EVOKE_API evoke_status evoke_variant_fill(const evoke_variant *variant, const char *name,
                                          const evoke_shape *shape, const void *data, size_t bytes,
                                          evoke_error *error);
/* A variable of the variant's module in the current context, which the host fills before launches,
 * for copies of your own: launches count the variable as filled from then on. *address 0: the
 * variant has none of that name. */
EVOKE_API evoke_status evoke_variant_symbol(const evoke_variant *variant, const char *name,
                                            uint64_t *address, size_t *bytes, evoke_error *error);
/* Unloads the modules of the current context. Call before a context is destroyed, with no launch
 * running in it. */
EVOKE_API evoke_status evoke_bundle_forget(evoke_bundle *bundle, evoke_error *error);

/* ---- ranks ------------------------------------------------------------------------------------
 *
 * The launches of some kernels, collectives, run on several GPUs at once: a rank each, with buffers
 * of its own and the same sizes. The ranks reach each other's buffers by address, and tell each
 * other by flags of scope .sys what they may read. So all of them have to be launched, none may
 * stand behind another in a stream, and all blocks of each have to be on its GPU at once.
 *
 * One process with all GPUs: allocate the buffers of each rank in its context,
 * evoke_variant_prepare_ranks once, evoke_variant_launch_ranks for each launch. A process a rank:
 * open the peers' memory (cuIpcOpenMemHandle, say), fill the tables (EVOKE_PEERS) with the
 * addresses in the own process, and call evoke_variant_launch_rank. */

#define EVOKE_RANKS_MOST 8

typedef struct evoke_ranks {
    uint32_t count; /* 1: the kernel has no ranks, and its launches run on one GPU */
    /* Every caller has a barrier of all ranks before each launch, and behind each; most kernels
     * have flags instead, and need none. */
    int needs_barrier_before, needs_barrier_after;
} evoke_ranks;

/* The ranks of a kernel at a shape. EVOKE_BAD: no such kernel; a number that the shape lacks; fewer
 * than 2 or more than EVOKE_RANKS_MOST. */
EVOKE_API evoke_status evoke_bundle_ranks(const evoke_bundle *bundle, const char *kernel,
                                          const evoke_shape *shape, evoke_ranks *out,
                                          evoke_error *error);

/* What the ranks share of an argument. */
typedef struct evoke_shared {
    const char *of; /* EVOKE_PEERS: the argument whose addresses the table has; else NULL */
    /* EVOKE_INOUT: what every element must be before each launch, an expression in the names of the
     * shape, such as "epoch - 1" of flags in launch number `epoch`; NULL: your data. */
    const char *before;
    int by_rank; /* the contents differ by rank; 0: a launch leaves the same bits on all of them */
} evoke_shared;

/* EVOKE_BAD: as of evoke_bundle_argument. */
EVOKE_API evoke_status evoke_bundle_shared(const evoke_bundle *bundle, const char *kernel,
                                           size_t index, evoke_shared *out, evoke_error *error);

/* A rank of a launch. */
typedef struct evoke_rank {
    void *context;               /* of its GPU, as cuCtxCreate gives it */
    void *stream;                /* of that context, as cuStreamCreate gives it */
    const evoke_buffer *buffers; /* as evoke_bundle_buffers lists them; tables, too */
    evoke_buffer scratch;        /* of evoke_variant_scratch bytes; {0, 0}: none */
} evoke_rank;

/* Makes everything ready for launches on these buffers: enables peer access between the contexts,
 * loads the variant in each, fills the tables of addresses, those in the scratch memory, too, and
 * gives the buffers that have a `before` their value at the shape. `buffer_count`: of each rank.
 * Call before the first launch, and again for another variant, other buffers, or scratch memory
 * that was used elsewhere, each time with the shape of the next launch and no launch under way. The
 * call returns when the copies have arrived: it waits for all work of each context.
 * EVOKE_BAD: as of evoke_variant_launch_ranks, but for streams and room; two GPUs without peer
 * access. EVOKE_INFRA: an error of the driver. */
EVOKE_API evoke_status evoke_variant_prepare_ranks(const evoke_variant *variant,
                                                   const evoke_shape *shape,
                                                   const evoke_rank *ranks, size_t count,
                                                   size_t buffer_count, evoke_error *error);
/* Launches a variant on all ranks, ranks[0] being number 0, and does not wait for their ends. The
 * buffers with a `before` must have it at this shape; the launch before, on the same buffers,
 * leaves it where the shape's number of the launch has grown by one. EVOKE_BAD, and nothing is
 * launched: as of evoke_variant_launch_scratch, with the rank; a kernel without ranks; a number of
 * ranks that is not the shape's; two ranks on one GPU in two contexts, in one stream, or in the
 * default stream; blocks that are not on their GPU all at once, with those of the ranks that share
 * it. EVOKE_INFRA: as of evoke_variant_launch; the ranks before the one that the message names may
 * wait for it for ever, and their contexts have to be destroyed. */
EVOKE_API evoke_status evoke_variant_launch_ranks(const evoke_variant *variant,
                                                  const evoke_shape *shape, const evoke_rank *ranks,
                                                  size_t count, size_t buffer_count,
                                                  evoke_error *error);
/* Launches rank `number` alone, for a process that has one rank; the others are launched elsewhere.
 * The tables and flags are the caller's to fill. EVOKE_BAD: as above, of this rank. A variant with
 * tables in its scratch memory cannot be launched so. */
EVOKE_API evoke_status evoke_variant_launch_rank(const evoke_variant *variant,
                                                 const evoke_shape *shape, uint32_t number,
                                                 const evoke_rank *rank, size_t buffer_count,
                                                 evoke_error *error);

/* ---- trying -----------------------------------------------------------------------------------
 *
 * A test at start-up, of a program that has no data of its own: launch the variant and the baseline
 * (EVOKE_BASELINE) on buffers of equal contents, and compare what they wrote. */

/* Writes the contents of a buffer, `bytes` of elements of the argument's type, to `data`, which is
 * all zeros. */
typedef void (*evoke_contents)(void *context, const evoke_argument *argument, void *data,
                               size_t bytes);

/* As evoke_bundle_buffers, with memory of cuMemAlloc in the current context, filled; every buffer
 * has contents, the outputs too. `contents` is called once a buffer with `context`; NULL: numbers
 * between -0.5 and 0.5, each third of them 0, and in buffers of integers 0, 1, 2, ... up to the
 * type's largest; what a buffer must have before a launch, where the bundle says so, and zeros in
 * tables of addresses; the same at each call. Give contents to a kernel whose integers must be
 * below some bound. Free by evoke_buffers_free. EVOKE_BAD: as of evoke_bundle_buffers. EVOKE_INFRA:
 * no driver, no current context, or not enough memory. On a failure nothing stays allocated. */
EVOKE_API evoke_status evoke_variant_allocate(const evoke_variant *variant,
                                              const evoke_shape *shape, evoke_contents contents,
                                              void *context, size_t room, evoke_buffer *buffers,
                                              size_t *count, evoke_error *error);
/* Frees the memory in the context that it was allocated in, and sets the addresses to 0; an address
 * 0 is fine. EVOKE_INFRA: an error of the driver, the first; the others are freed all the same. */
EVOKE_API evoke_status evoke_buffers_free(evoke_buffer *buffers, size_t count, evoke_error *error);

typedef struct evoke_difference {
    /* |got - want| / |want|, the Euclidean norms of all outputs together. 0: all are equal.
     * Infinity: one is not a number or not finite where the other is, or |want| is 0. */
    double relative;
    double norm; /* |want|, of its finite elements; 0: the outputs say nothing */
    /* By which the variant was validated against exact results: of each output by itself. Where
     * outputs have tolerances of their own, the loosest. */
    double tolerance;
    uint64_t elements; /* that were compared */
} evoke_difference;

/* Compares the outputs (EVOKE_OUT and EVOKE_INOUT) of two launches of the variant's kernel, whose
 * buffers are `got` and `want`, as evoke_bundle_buffers lists them. Waits for the default stream;
 * launches in streams that do not wait for it must have ended. EVOKE_BAD: a number of buffers that
 * is not the kernel's; two buffers of different sizes. EVOKE_INFRA: no driver, no current context,
 * or an error of the driver, which may come from the launches. */
EVOKE_API evoke_status evoke_variant_compare(const evoke_variant *variant, const evoke_buffer *got,
                                             const evoke_buffer *want, size_t count,
                                             evoke_difference *out, evoke_error *error);

/* Of the variant: its PTX's SHA-256 in 64 hex digits, and the GPU model that it was made for. */
EVOKE_API const char *evoke_variant_sha256(const evoke_variant *variant);
EVOKE_API const char *evoke_variant_gpu(const evoke_variant *variant);

#ifdef __cplusplus
}
#endif

#endif
