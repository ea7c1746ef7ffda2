/* Reads what a manifest says of a kernel whose launches run on several GPUs at once: how many ranks
 * there are, which arguments and scratch buffers are tables of peers' addresses, and which kernels
 * wait for a peer. A wrong word here would have a launch wait for ever, so each is refused. */
#include "bundle/read.h"

#include "base/type.h"
#include "bundle/manifest.h"

#include <string.h>

/* ---- the kernel ---- */

static ev_status read_barriers(const reading *r, const json_t *ranks, const char *where,
                               bundle_ranks *out) {
    const json_t *list = json_object_get(ranks, "barriers");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        bool is_before = text != NULL && strcmp(text, "before") == 0;
        bool is_after = text != NULL && strcmp(text, "after") == 0;
        bool *which = is_before ? &out->begins_together : &out->ends_together;
        if ((!is_before && !is_after) || *which)
            return ev_json_fail(r->doc, reading_member(r, where, "barriers", i), r->err,
                                "a barrier stands before or after a launch, and each once");
        *which = true;
    }
    return EV_OK;
}

ev_status reading_ranks(const reading *r, const json_t *kernel, const char *where,
                        bundle_kernel *out) {
    const json_t *ranks = json_object_get(kernel, "ranks");
    const char *place = reading_join(r, where, "ranks");
    if (ranks == NULL)
        return EV_OK;
    EV_TRY(manifest_check(r->doc, MANIFEST_RANKS, ranks, place, r->err));
    bundle_ranks *made = EV_NEW(r->arena, bundle_ranks);
    if (made == NULL)
        return ev_fail_memory(r->err, sizeof *made);
    const char *scope = ev_json_text(ranks, "scope", "");
    if (strcmp(scope, BUNDLE_RANKS_SCOPE) != 0)
        return ev_json_fail(r->doc, reading_join(r, place, "scope"), r->err,
                            "\"%.100s\" is no scope of flags between GPUs; it is sys", scope);
    *made = (bundle_ranks){.count = ev_json_text(ranks, "count", "")};
    out->ranks = made;
    return read_barriers(r, ranks, place, made);
}

/* ---- arguments ---- */

static bool is_written(const bundle_argument *a) {
    return strcmp(a->kind, "out") == 0 || strcmp(a->kind, "inout") == 0;
}

static bool has_target(const bundle_kernel *k, const char *name) {
    bool has = false;
    for (size_t i = 0; i < k->argument_count; i++) {
        const bundle_argument *a = &k->arguments[i];
        has = has || (strcmp(a->name, name) == 0 && !bundle_is_scalar(a) && !bundle_is_peers(a));
    }
    return has;
}

static ev_status check_peers(const reading *r, const char *where, const bundle_kernel *k,
                             const bundle_argument *a) {
    if ((a->of != NULL) != bundle_is_peers(a))
        return ev_json_fail(r->doc, where, r->err,
                            "a table of peers' addresses, and no other argument, says of which "
                            "buffer it is (\"of\")");
    if (a->of == NULL)
        return EV_OK;
    if (!has_target(k, a->of))
        return ev_json_fail(r->doc, reading_join(r, where, "of"), r->err,
                            "\"%.100s\" is no buffer among the arguments", a->of);
    if (strcmp(a->type, "u64") != 0)
        return ev_json_fail(r->doc, reading_join(r, where, "type"), r->err,
                            "a table of addresses has the type u64");
    return EV_OK;
}

static ev_status check_rank(const reading *r, const char *where, const bundle_argument *a) {
    ev_type type = EV_F32;
    if (!bundle_is_rank(a))
        return EV_OK;
    if (ev_type_find(a->type, &type) &&
        (type == EV_U32 || type == EV_S32 || type == EV_U64 || type == EV_S64))
        return EV_OK;
    return ev_json_fail(r->doc, reading_join(r, where, "type"), r->err,
                        "the number of a rank has one of the types u32, s32, u64 and s64");
}

static ev_status check_argument(const reading *r, const char *where, const bundle_kernel *k,
                                const bundle_argument *a) {
    bool needs_ranks = bundle_is_rank(a) || bundle_is_peers(a) || a->by_rank;
    if (needs_ranks && (k->ranks == NULL || a->is_field))
        return ev_json_fail(r->doc, where, r->err,
                            "a rank, a table of peers' addresses and \"by_rank\" are of a kernel "
                            "with \"ranks\", and of no struct");
    if (a->by_rank && !is_written(a))
        return ev_json_fail(r->doc, reading_join(r, where, "by_rank"), r->err,
                            "it is of a buffer that the kernel writes");
    if (a->before != NULL && strcmp(a->kind, "inout") != 0)
        return ev_json_fail(r->doc, reading_join(r, where, "before"), r->err,
                            "it is of a buffer that the kernel reads and writes");
    EV_TRY(check_rank(r, where, a));
    return check_peers(r, where, k, a);
}

ev_status reading_rank_arguments(const reading *r, const char *where, const bundle_kernel *k) {
    for (size_t i = 0; i < k->argument_count; i++)
        EV_TRY(check_argument(r, reading_member(r, where, "arguments", i), k, &k->arguments[i]));
    return EV_OK;
}

/* ---- launches ---- */

ev_status reading_rank_scratch(const reading *r, const bundle_kernel *k, const char *where,
                               const launch_scratch *all, size_t index) {
    const char *of = all[index].peers_of;
    bool is_known = false;
    if (of == NULL)
        return EV_OK;
    for (size_t i = 0; i < index; i++)
        is_known = is_known || (all[i].peers_of == NULL && strcmp(all[i].name, of) == 0);
    if (k->ranks != NULL && is_known)
        return EV_OK;
    return ev_json_fail(r->doc, reading_join(r, where, "of"), r->err,
                        "\"%.100s\" must be a scratch buffer before this one, of a kernel with "
                        "\"ranks\"",
                        of);
}

static bool is_launched(const launch_plan *plan, const char *entry) {
    bool is = false;
    for (size_t i = 0; i < plan->launch_count; i++)
        is = is || strcmp(plan->launches[i].entry, entry) == 0;
    return is;
}

ev_status reading_resident(const reading *r, const bundle_kernel *k, const json_t *variant,
                           const char *where, bundle_variant *out) {
    const json_t *list = json_object_get(variant, "resident");
    size_t count = json_array_size(list);
    if (list == NULL)
        return EV_OK;
    if (k->ranks == NULL || count == 0 || count > LAUNCH_PLAN_MOST)
        return ev_json_fail(r->doc, reading_join(r, where, "resident"), r->err,
                            "it is of a kernel with \"ranks\", and has 1 to %d members",
                            LAUNCH_PLAN_MOST);
    const char **all = EV_NEW_ARRAY(r->arena, const char *, count);
    if (all == NULL)
        return ev_fail_memory(r->err, count * sizeof *all);
    out->resident = all;
    for (size_t i = 0; i < count; i++) {
        const char *entry = json_string_value(json_array_get(list, i));
        if (entry == NULL || !is_launched(out->plan, entry) || bundle_is_resident(out, entry))
            return ev_json_fail(r->doc, reading_member(r, where, "resident", i), r->err,
                                "it must be a kernel that the variant launches, and each once");
        all[out->resident_count++] = entry;
    }
    return EV_OK;
}
