/* Reads what a manifest says of a variant's PTX and of its resources, and holds the PTX against
 * it. */
#include "bundle/read.h"

#include "bundle/manifest.h"
#include "bundle/needs.h"

#include <string.h>

static ev_status read_word(const reading *r, const json_t *object, const char *where,
                           const char *key, uint32_t *out) {
    json_int_t value = ev_json_integer(object, key, 0);
    if (value < 0 || value > UINT32_MAX)
        return ev_json_fail(r->doc, reading_join(r, where, key), r->err,
                            "a resource is from 0 to 4294967295");
    *out = (uint32_t)value;
    return EV_OK;
}

static ev_status read_resources(const reading *r, const json_t *object, const char *where,
                                bundle_variant *out) {
    const json_t *resources = json_object_get(object, "resources");
    const char *place = reading_join(r, where, "resources");
    EV_TRY(manifest_check(r->doc, MANIFEST_RESOURCES, resources, place, r->err));
    EV_TRY(read_word(r, resources, place, "registers", &out->registers));
    EV_TRY(read_word(r, resources, place, "shared_bytes", &out->shared_bytes));
    EV_TRY(read_word(r, resources, place, "dynamic_shared_bytes", &out->dynamic_shared_bytes));
    EV_TRY(read_word(r, resources, place, "local_bytes", &out->local_bytes));
    return read_word(r, resources, place, "max_threads", &out->max_threads);
}

static ev_status read_head(const reading *r, const json_t *object, const char *where,
                           bundle_variant *out) {
    const char *version = ev_json_text(object, "ptx_version", NULL);
    const char *target = ev_json_text(object, "target", NULL);
    if ((version != NULL) != (target != NULL))
        return ev_json_fail(r->doc, where, r->err, "'ptx_version' and 'target' go together");
    out->target = target != NULL ? target : "";
    if (version != NULL && !needs_version(version, &out->ptx_version))
        return ev_json_fail(r->doc, reading_join(r, where, "ptx_version"), r->err,
                            "\"%.20s\" is no PTX version; \"7.8\" is one", version);
    if (target != NULL && needs_target(target) != out->sm)
        return ev_json_fail(r->doc, reading_join(r, where, "target"), r->err,
                            "\"%.20s\" is not the target of the GPU, sm_%d", target, out->sm);
    return EV_OK;
}

static ev_status read_driver(const reading *r, const json_t *object, const char *where,
                             bundle_variant *out) {
    const char *cuda = ev_json_text(object, "least_cuda", NULL);
    bool has_driver = json_object_get(object, "least_driver") != NULL;
    int version = 0;
    if ((cuda != NULL) != has_driver || (cuda != NULL && out->ptx_version == 0))
        return ev_json_fail(r->doc, where, r->err,
                            "'least_cuda' and 'least_driver' go together, with 'ptx_version'");
    if (cuda != NULL && !needs_version(cuda, &version))
        return ev_json_fail(r->doc, reading_join(r, where, "least_cuda"), r->err,
                            "\"%.20s\" is no CUDA version; \"12.4\" is one", cuda);
    out->least_cuda = version / 10 * 1000 + version % 10 * 10;
    out->least_driver = (int)ev_json_integer(object, "least_driver", 0);
    if (has_driver && (out->least_driver < 1 || out->least_driver > 9999))
        return ev_json_fail(r->doc, reading_join(r, where, "least_driver"), r->err,
                            "a branch of drivers is from 1 to 9999");
    return EV_OK;
}

ev_status reading_needs(const reading *r, const json_t *object, const char *where,
                        bundle_variant *out) {
    EV_TRY(read_resources(r, object, where, out));
    EV_TRY(read_head(r, object, where, out));
    return read_driver(r, object, where, out);
}

ev_status reading_hold_ptx(const bundle *b, const bundle_variant *v, const char *path,
                           const char *ptx, size_t bytes, ev_error *err) {
    needs_head head = needs_of_ptx(ptx, bytes);
    if (head.version == v->ptx_version && strcmp(head.target, v->target) == 0)
        return EV_OK;
    return ev_fail(err, EV_BAD,
                   "the bundle %s is damaged: %s is PTX %d.%d for \"%s\", and the manifest says "
                   "%d.%d for \"%s\"; export it again",
                   store_name(b->files), path, head.version / 10, head.version % 10, head.target,
                   v->ptx_version / 10, v->ptx_version % 10, v->target);
}
