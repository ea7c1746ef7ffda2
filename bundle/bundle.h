/* Bundle: writes a kernel set as a folder, or as one tar. bundle/reader_types.h describes its
 * contents. */
#ifndef BUNDLE_BUNDLE_H
#define BUNDLE_BUNDLE_H

#include "base/arena.h"
#include "base/status.h"
#include "bundle/reader.h"
#include "bundle/sign.h"

/* Checks, before a long run, that a bundle can be written to `path`. EV_BAD: the parent is no
 * writable folder, or `path` exists and is no bundle of that kind. */
ev_status bundle_check_target(const char *path, ev_error *err) EV_CHECKED;

/* Whether a bundle of this name is written as a tar: it ends in ".tar". */
bool bundle_is_tar_name(const char *path);

/* Writes the bundle beside `path` and renames it when it is complete, as a tar if the name says so;
 * an older bundle there is replaced. EV_BAD: as bundle_check_target, or a file's path leads out of
 * the bundle. EV_INFRA: the disk is full. A failure leaves nothing behind. */
ev_status bundle_write(const char *path, const bundle_content *content, ev_error *err) EV_CHECKED;

/* As bundle_write, with the signature of the key; NULL: without one. */
ev_status bundle_write_signed(const char *path, const bundle_content *content, const sign_key *key,
                              ev_error *err) EV_CHECKED;

/* The contents of an open bundle, to be written with changes. `out` borrows from the bundle and the
 * arena. EV_BAD: a file changed since the bundle was opened. */
ev_status bundle_content_of(const bundle *b, ev_arena *arena, bundle_content *out,
                            ev_error *err) EV_CHECKED;

/* Adds a qualification to `v`. It replaces an older one of the same GPU and kind of times. Sets
 * v->disabled if no qualification that counts passed; a modelled one counts only for a GPU without
 * a measured one. Texts are borrowed. */
ev_status bundle_qualify(ev_arena *arena, bundle_variant *v, const bundle_qualified *now,
                         ev_error *err) EV_CHECKED;

/* The launches of a variant at a case in order, with all turns, by the manifest alone; *out is
 * malloc'ed. EV_BAD: as launch_plan_steps and launch_plan_geometry. */
ev_status bundle_launches_at(const bundle_kernel *k, const bundle_variant *v, const bundle_case *c,
                             launch_geometry **out, size_t *count, ev_error *err) EV_CHECKED;

/* The range that the writer makes of a variant's cases for number `index` of their shape. */
launch_range bundle_range(const bundle_variant *v, size_t index);

#endif
