/* Bundle: writes a kernel set as a folder (bundle/reader_types.h says what is in it). */
#ifndef BUNDLE_BUNDLE_H
#define BUNDLE_BUNDLE_H

#include "base/arena.h"
#include "base/status.h"
#include "bundle/reader.h"

/* EV_BAD when nothing could be written to `path`, so that it can be asked before a long run: its
 * parent is no folder one may write to, or something else than a bundle is there already. */
ev_status bundle_check_target(const char *path, ev_error *err) EV_CHECKED;

/* Writes the bundle beside `path` and puts it in place when it is whole; an older bundle there is
 * replaced. EV_BAD as above; EV_INFRA: disk full. Nothing is left behind on failure. */
ev_status bundle_write(const char *path, const bundle_content *content, ev_error *err) EV_CHECKED;

/* All that an open bundle holds, for writing it with changes: `out` borrows from the bundle and the
 * arena. EV_BAD: a file changed since the bundle was opened. */
ev_status bundle_content_of(const bundle *b, ev_arena *arena, bundle_content *out,
                            ev_error *err) EV_CHECKED;

/* Adds a qualification to `v`, in place of an older one of the same GPU and kind of times, and sets
 * `disabled` where none that counts passes: a modelled one counts only where none was measured.
 * Texts are borrowed. */
ev_status bundle_qualify(ev_arena *arena, bundle_variant *v, const bundle_qualified *now,
                         ev_error *err) EV_CHECKED;

#endif
