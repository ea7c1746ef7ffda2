/* The keys of manifest.json, for the writer and the reader. */
#ifndef BUNDLE_MANIFEST_H
#define BUNDLE_MANIFEST_H

#include "base/json.h"
#include "bundle/reader_types.h"

/* Key tables: one a kind of object (bundle/manifest.def). */
typedef enum manifest_object {
#define MANIFEST_OBJECT(id) MANIFEST_##id,
#define MANIFEST_KEY(object, name, kind, required, doc)
#include "bundle/manifest.def"
#undef MANIFEST_OBJECT
#undef MANIFEST_KEY
    MANIFEST_OBJECT_COUNT
} manifest_object;

/* Checks `object` against its key table. `where` is its path in the document. EV_BAD: as
 * ev_json_check. */
ev_status manifest_check(const ev_json *doc, manifest_object kind, const json_t *object,
                         const char *where, ev_error *err) EV_CHECKED;

/* Makes the whole manifest, a new reference, and computes the variants' `ranges`. `signer`: the
 * public key that will sign it; NULL: none will. EV_BAD: a genome
 * or versions text that is no JSON. */
ev_status manifest_make(const bundle_content *content, const char *signer, json_t **out,
                        ev_error *err) EV_CHECKED;

#endif
