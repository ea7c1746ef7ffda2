/* The inside of an open bundle, for the files of this folder only. */
#ifndef BUNDLE_READ_H
#define BUNDLE_READ_H

#include "base/arena.h"
#include "base/json.h"
#include "bundle/index.h"
#include "bundle/reader.h"
#include "bundle/sign.h"
#include "bundle/store.h"

typedef struct bundle_unpacked bundle_unpacked;

struct bundle {
    store *files;
    ev_json *doc;    /* the manifest: names and texts are borrowed from it */
    ev_arena *arena; /* owns everything else */
    bundle_kernel *kernels;
    size_t kernel_count;
    size_t variant_count; /* with starts and baselines */
    bundle_index *index;
    char signer[SIGN_PUBLIC_HEX]; /* "": not signed */
    bool is_trusted;              /* signed by a key that the caller trusts */
    size_t memory_left;           /* bytes that may be made of the manifest */
    bundle_unpacked *unpacked;    /* of a tar: its files in a folder, when somebody asks */
};

/* One walk over the manifest. Texts of the values are borrowed from the document. */
typedef struct reading {
    bundle *b;
    const ev_json *doc;
    ev_arena *arena;
    ev_arena *places; /* for messages; forgotten after each variant */
    bool is_lazy;     /* the PTX stays where it is */
    ev_error *err;
} reading;

#define MOST_NAMES 256  /* that the expressions of a kernel may use */
#define MOST_CASES 4096 /* of a variant */

#define MEMORY_TIMES 4                 /* the size of the bundle */
#define MEMORY_FREE ((size_t)32 << 20) /* beyond that */

/* Bytes that may be made of the manifest after it is parsed (memory.c), so that opening takes at
 * most MEMORY_TIMES the size of the tar or folder, and MEMORY_FREE. EV_BAD:
 * parsing alone would take more. */
ev_status memory_plan(const bundle *b, const char *text, size_t bytes, size_t *left,
                      ev_error *err) EV_CHECKED;

/* Reads the manifest into b->kernels (read.c). */
ev_status reading_manifest(const reading *r) EV_CHECKED;

/* Places for messages: "WHERE.KEY" and "WHERE.KEY[INDEX]". */
char *reading_join(const reading *r, const char *where, const char *key);
char *reading_member(const reading *r, const char *where, const char *key, size_t index);
/* A file of the manifest, held against its size and its hash (files.c); malloc'ed, with a NUL
 * behind. EV_BAD: it differs, with its name. */
ev_status reading_file(const bundle *b, const char *path, char **data, size_t *bytes,
                       ev_error *err) EV_CHECKED;
/* Holds the list of files against those that are there, without reading them (files.c). EV_BAD: a
 * missing or a stray file, a path that leads out. */
ev_status reading_files(const reading *r) EV_CHECKED;

/* 64 digits of 0 to 9 and a to f. */
bool reading_is_hash(const char *text);
/* A power of two up to 4096. */
bool reading_is_alignment(json_int_t bytes);
/* The keys "arguments" and "symbols" of a kernel (read_arguments.c). EV_BAD: a name that is none or
 * is there twice, an unknown kind, type or alignment. */
ev_status reading_arguments(const reading *r, const json_t *kernel, const char *where,
                            bundle_kernel *out) EV_CHECKED;
/* The key "ranks" of a kernel (read_ranks.c), before its arguments. EV_BAD: another scope than that
 * of all GPUs, an unknown or repeated barrier. */
ev_status reading_ranks(const reading *r, const json_t *kernel, const char *where,
                        bundle_kernel *out) EV_CHECKED;
/* Holds the kinds, and the keys "of", "before" and "by_rank", of the kernel's arguments against
 * each other. EV_BAD: a rank or a table of a kernel without ranks, or in a struct; a table of no
 * buffer; a key of another kind of argument. */
ev_status reading_rank_arguments(const reading *r, const char *where,
                                 const bundle_kernel *k) EV_CHECKED;
/* The key "of" of scratch buffer `index`, which stands at `where`. EV_BAD: of a kernel without
 * ranks; it names no scratch buffer before it. */
ev_status reading_rank_scratch(const reading *r, const bundle_kernel *k, const char *where,
                               const launch_scratch *all, size_t index) EV_CHECKED;
/* The key "resident" of a variant, after its launches. EV_BAD: a kernel without ranks; a kernel of
 * the PTX that no launch has, or that is there twice. */
ev_status reading_resident(const reading *r, const bundle_kernel *k, const json_t *variant,
                           const char *where, bundle_variant *out) EV_CHECKED;
/* Reads the launches of the key "launch" of a variant, which stands at `where`, into *out, without
 * its ranges (read_steps.c). `entry`: the variant's. EV_BAD: keys of one launch beside several, or
 * none; a parameter or a swap that names no buffer; too many of anything. The caller checks the
 * plan. */
ev_status reading_launches(const reading *r, const bundle_kernel *k, const json_t *launch,
                           const char *where, const char *entry, launch_plan *out) EV_CHECKED;
/* Holds the expressions of arguments and symbols against the names of the shape, which the first
 * baseline has. EV_BAD: a syntax error, a name that is not there. */
ev_status reading_expressions(const reading *r, const char *where,
                              const bundle_kernel *k) EV_CHECKED;

/* What a variant's PTX needs, and the key "resources" (read_needs.c). After reading_gpu. */
/* The machine code of a variant (read_cubins.c). */
ev_status reading_cubins(const reading *r, const json_t *variant, const char *where,
                         bundle_variant *out) EV_CHECKED;
ev_status reading_needs(const reading *r, const json_t *object, const char *where,
                        bundle_variant *out) EV_CHECKED;
/* EV_BAD: version and target of the PTX at `path` are not those of the manifest. */
ev_status reading_hold_ptx(const bundle *b, const bundle_variant *v, const char *path,
                           const char *ptx, size_t bytes, ev_error *err) EV_CHECKED;
/* Verifies manifest.sig, if it is there, over the bytes of the manifest, and sets b->signer
 * (trust.c). `trust` NULL: any key will do. EV_BAD: a malformed, a wrong or a foreign signature. */
ev_status reading_signature(bundle *b, const bundle_trust *trust, const char *manifest,
                            size_t bytes, ev_error *err) EV_CHECKED;
/* Holds the manifest's "signer" against the signature. EV_BAD: a stripped or foreign signature, or
 * none where one is needed. */
ev_status reading_signer(const bundle *b, const bundle_trust *trust, ev_error *err) EV_CHECKED;
/* An object of the key "gpu" (read_qualified.c). */
ev_status reading_gpu(const reading *r, const json_t *object, const char *where, const char **id,
                      const char **name, int *sm, int *sms) EV_CHECKED;

/* The names that drivers give a GPU, from the key "gpu"; empty where there are none. */
ev_status reading_driver_names(const reading *r, const json_t *object, const char *where,
                               const char *const **out, size_t *count) EV_CHECKED;
/* The optional keys "qualified" and "disabled" of a variant (read_qualified.c). */
ev_status reading_qualified(const reading *r, const json_t *variant, const char *where,
                            bundle_variant *out) EV_CHECKED;

#endif
