/* Reads the machine code of variants: what the manifest says of it, and the files. */
#include "bundle/read.h"

#include "bundle/manifest.h"
#include "bundle/needs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REGISTERS_MOST 255
#define BYTES_MOST 0xffffffff
#define CUBINS_MOST 64 /* architectures of one variant */

static void name_file(const bundle_cubin *c, char out[sizeof "kernels/.cubin" + EV_SHA256_HEX]) {
    (void)snprintf(out, sizeof "kernels/.cubin" + EV_SHA256_HEX, "kernels/%s.cubin", c->sha256.hex);
}

ev_status bundle_read_cubin(const bundle *b, const bundle_cubin *c, char **data, size_t *bytes,
                            ev_error *err) {
    char path[sizeof "kernels/.cubin" + EV_SHA256_HEX];
    name_file(c, path);
    return reading_file(b, path, data, bytes, err);
}

static ev_status read_hash(const reading *r, const json_t *object, const char *where,
                           bundle_cubin *out) {
    const char *hash = ev_json_text(object, "sha256", "");
    char path[sizeof "kernels/.cubin" + EV_SHA256_HEX];
    (void)snprintf(out->sha256.hex, sizeof out->sha256.hex, "%.64s", hash);
    name_file(out, path);
    const json_t *facts = json_object_get(json_object_get(r->doc->root, "files"), path);
    if (strlen(hash) != EV_SHA256_HEX - 1 || facts == NULL ||
        strcmp(ev_json_text(facts, "sha256", ""), hash) != 0)
        return ev_json_fail(r->doc, reading_join(r, where, "sha256"), r->err,
                            "the files of the bundle do not have this machine code");
    out->bytes = (size_t)ev_json_integer(facts, "bytes", 0);
    return EV_OK;
}

static ev_status read_count(const reading *r, const json_t *object, const char *where,
                            const char *key, json_int_t most, uint32_t *out) {
    json_int_t value = ev_json_integer(object, key, 0);
    if (value < 0 || value > most)
        return ev_json_fail(r->doc, reading_join(r, where, key), r->err, "it is from 0 to %lld",
                            (long long)most);
    *out = (uint32_t)value;
    return EV_OK;
}

static ev_status load(const reading *r, bundle_cubin *out) {
    char *data = NULL;
    EV_TRY(bundle_read_cubin(r->b, out, &data, &out->bytes, r->err));
    out->data = ev_arena_copy(r->arena, data, out->bytes + 1);
    free(data);
    return out->data != NULL ? EV_OK : ev_fail_memory(r->err, out->bytes);
}

static ev_status read_one(const reading *r, const json_t *object, const char *where,
                          bundle_cubin *out) {
    EV_TRY(manifest_check(r->doc, MANIFEST_CUBIN, object, where, r->err));
    out->arch = ev_json_text(object, "arch", "");
    out->assembler = ev_json_text(object, "assembler", "");
    if (needs_target(out->arch) == 0)
        return ev_json_fail(r->doc, reading_join(r, where, "arch"), r->err,
                            "\"%s\" is no architecture such as sm_90", out->arch);
    EV_TRY(read_count(r, object, where, "registers", REGISTERS_MOST, &out->registers));
    EV_TRY(read_count(r, object, where, "spill_bytes", BYTES_MOST, &out->spill_bytes));
    EV_TRY(read_hash(r, object, where, out));
    return r->is_lazy ? EV_OK : load(r, out);
}

ev_status reading_cubins(const reading *r, const json_t *variant, const char *where,
                         bundle_variant *out) {
    const json_t *array = json_object_get(variant, "cubins");
    size_t count = json_array_size(array);
    if (array != NULL && (count == 0 || count > CUBINS_MOST))
        return ev_json_fail(r->doc, reading_join(r, where, "cubins"), r->err,
                            "a variant has machine code for 1 to %d architectures, or no such key",
                            CUBINS_MOST);
    bundle_cubin *all = EV_NEW_ARRAY(r->arena, bundle_cubin, count + 1);
    if (all == NULL)
        return ev_fail_memory(r->err, count * sizeof *all);
    out->cubins = all;
    for (size_t i = 0; i < count; i++, out->cubin_count++)
        EV_TRY(
            read_one(r, json_array_get(array, i), reading_member(r, where, "cubins", i), &all[i]));
    return EV_OK;
}
