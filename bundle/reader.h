/* Reader: opens a bundle, checks every hash, and chooses the variant for a GPU and a shape.
 *
 * The reader is for schedulers and runtimes. It links base only, neither LLVM nor SQLite. A bundle
 * is read-only after opening, and owns everything that it returns, PTX texts included, until
 * bundle_close. */
#ifndef BUNDLE_READER_H
#define BUNDLE_READER_H

#include "base/status.h"
#include "bundle/reader_types.h"

typedef struct bundle bundle;

/* Opens a folder or a tar: reads the manifest, checks the hash of every file, and loads the PTX.
 * EV_BAD: no bundle, an unknown schema version, bad JSON (with line and column), a missing or stray
 * file, a file whose hash differs (with its name). */
ev_status bundle_open(const char *path, bundle **out, ev_error *err) EV_CHECKED;
/* As bundle_open, but the contents of the files are read and checked at their first use: the PTX by
 * bundle_read_ptx, everything by bundle_verify. The variants' `ptx` is NULL. */
ev_status bundle_open_lazy(const char *path, bundle **out, ev_error *err) EV_CHECKED;
/* As bundle_open_lazy, from the bytes of a tar, which are copied. */
ev_status bundle_open_memory(const void *data, size_t bytes, bundle **out,
                             ev_error *err) EV_CHECKED;
/* Public keys as sign_public writes them (bundle/sign.h), borrowed. */
typedef struct bundle_trust {
    const char *const *keys;
    size_t count;
} bundle_trust;

/* As bundle_open, bundle_open_lazy and bundle_open_memory, of a bundle that one of the keys signed;
 * `trust` NULL: any bundle. A signature that is there must hold in either case. EV_BAD, by name: a
 * wrong, missing, foreign, malformed or stripped signature. */
ev_status bundle_open_trusted(const char *path, bool is_lazy, const bundle_trust *trust,
                              bundle **out, ev_error *err) EV_CHECKED;
ev_status bundle_open_memory_trusted(const void *data, size_t bytes, const bundle_trust *trust,
                                     bundle **out, ev_error *err) EV_CHECKED;
/* The public key whose signature holds; NULL: the bundle is not signed. */
const char *bundle_signer(const bundle *b);
/* Whether a key that the opener trusts signed the bundle. */
bool bundle_is_trusted(const bundle *b);
void bundle_close(bundle *b); /* NULL is fine */

/* Checks the size and the hash of every file. EV_BAD: the first that differs, by name. */
ev_status bundle_verify(const bundle *b, ev_error *err) EV_CHECKED;
/* Machine code of a variant, checked; malloc'ed. EV_BAD: its hash differs. */
ev_status bundle_read_cubin(const bundle *b, const bundle_cubin *c, char **data, size_t *bytes,
                            ev_error *err) EV_CHECKED;
/* The PTX of a variant, checked; malloc'ed, with a NUL behind it. EV_BAD: its hash differs. */
ev_status bundle_read_ptx(const bundle *b, const bundle_variant *v, char **ptx, size_t *bytes,
                          ev_error *err) EV_CHECKED;
/* The folder of the files: the bundle itself, or a temporary one into which its tar is unpacked,
 * and which lives as long as the bundle. */
ev_status bundle_folder(const bundle *b, const char **out, ev_error *err) EV_CHECKED;

const char *bundle_path(const bundle *b);
size_t bundle_kernel_count(const bundle *b);
const bundle_kernel *bundle_kernel_at(const bundle *b, size_t index);  /* by name, ascending */
const bundle_kernel *bundle_find(const bundle *b, const char *kernel); /* NULL: none */
/* The baseline that a variant of the kernel was measured against; NULL: none. */
const bundle_variant *bundle_baseline_of(const bundle_kernel *k, const bundle_variant *v);
/* EV_BAD: there is no such kernel; the message lists those that there are. */
ev_status bundle_fail_kernel(const bundle *b, const char *kernel, ev_error *err);
size_t bundle_variant_count(const bundle *b); /* with starts and baselines */

/* How near a choice is to the requested GPU: a row each of bundle/reader_rungs.def, best first. */
typedef enum bundle_rung {
#define BUNDLE_RUNG(id, name, meaning) BUNDLE_RUNG_##id,
#include "bundle/reader_rungs.def"
#undef BUNDLE_RUNG
    BUNDLE_RUNG_COUNT
} bundle_rung;

const char *bundle_rung_name(bundle_rung rung);
const char *bundle_rung_meaning(bundle_rung rung);

const char *bundle_verdict_name(bundle_verdict verdict);
const char *bundle_verdict_meaning(bundle_verdict verdict);

/* The qualification that counts on a GPU: the last measured one, or else the last modelled one.
 * `gpu` is an id or the driver's name; NULL: not known. Returns NULL if there is none. */
const bundle_qualified *bundle_qualification(const bundle_variant *v, const char *gpu);
/* The reason why a variant is not handed out on that GPU; NULL: it is handed out. */
const char *bundle_disabled(const bundle_variant *v, const char *gpu);
/* Geometric mean of the speed-ups over the baseline, by the qualification that counts on that GPU,
 * or else by the tuning. 1 if no time is known. */
double bundle_gain(const bundle_variant *v, const char *gpu);

typedef struct bundle_request {
    const char *kernel;
    const char *gpu; /* id ("h200") or the driver's name of the GPU; NULL: not known */
    int sm;          /* compute capability x 10 */
    const bundle_number *shape;
    size_t shape_count;
    /* The alignment of buffers that the caller grants, where this is more than the arguments'
     * `align`. A variant that needs more than is granted is not chosen. */
    const bundle_alignment *alignments;
    size_t alignment_count;
    /* Take bold variants, too: faster, but with edits that change what the kernel means, which
     * nothing that was tried shows. False: only those that are the bundle's default. */
    bool allow_bold;
    int sms;              /* multiprocessors; 0: not known */
    bool only_baseline;   /* take nothing else */
    uint32_t all_aligned; /* bytes of alignment that the caller grants for every buffer; 0: none */
} bundle_request;

typedef enum bundle_role {
    BUNDLE_ROLE_VARIANT,
    BUNDLE_ROLE_START,
    BUNDLE_ROLE_BASELINE
} bundle_role;

typedef struct bundle_choice {
    const bundle_kernel *kernel;
    const bundle_variant *variant;
    bundle_rung rung;
    bundle_role role;
    double ratio; /* its time by the baseline's at the nearest validated shape; 1: not known */
    /* The variant that would otherwise be chosen, but is disabled or, by its own records, slower at
     * the nearest validated shape than the baseline or an unmodified start, and the reason; NULL:
     * none. */
    const bundle_variant *passed_over;
    const char *why;
} bundle_choice;

/* Chooses among variants and unmodified starts that were validated for the shape: on the best rung
 * the one with the least time against the baseline's at the nearest shape that was timed; the
 * baseline where there is none. Takes less than a microsecond for tens of variants. EV_BAD: an
 * unknown kernel (with the known names), a missing name of the shape, or nothing that the compute
 * capability can run. */
ev_status bundle_resolve(const bundle *b, const bundle_request *request, bundle_choice *out,
                         ev_error *err) EV_CHECKED;

/* Whether an argument is a scalar, the number of a rank among them, and no buffer. */
bool bundle_is_scalar(const bundle_argument *a);
bool bundle_is_rank(const bundle_argument *a);
bool bundle_is_peers(const bundle_argument *a); /* a buffer, whose contents are addresses */
/* Whether all blocks of the variant's launches of a kernel have to be on the GPU at once. */
bool bundle_is_resident(const bundle_variant *v, const char *entry);
/* The arguments that are no scalars. */
size_t bundle_buffer_count(const bundle_kernel *k);
/* Whether argument `index` is the first field of a struct. The fields behind it are no parameters
 * of their own. */
bool bundle_begins_struct(const bundle_kernel *k, size_t index);
/* Call before a launch: checks the addresses of the kernel's buffers, in the order of its arguments
 * (what stands at scalars is not read). EV_BAD: an address with less alignment than the kernel's
 * argument or the variant says, with the argument, the address and the alignment. */
ev_status bundle_check_addresses(const bundle_kernel *k, const bundle_variant *v,
                                 const uint64_t *addresses, ev_error *err) EV_CHECKED;

#endif
