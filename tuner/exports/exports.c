/* Exports: the table of formats, and what each needs of the request. */
#include "tuner/exports/inside.h"

#include "base/file.h"

#include <string.h>

static const exports_format formats[] = {
#define EXPORT_FORMAT(id, name, source, write, doc) {name, EXPORTS_##source, write, doc},
#include "tuner/exports/exports.def"
#undef EXPORT_FORMAT
};

const exports_format *exports_at(size_t index) {
    return index < sizeof formats / sizeof formats[0] ? &formats[index] : NULL;
}

const exports_format *exports_find(const char *name) {
    for (size_t i = 0; exports_at(i) != NULL; i++) {
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    }
    return NULL;
}

static ev_status check_source(const exports_format *f, const exports_request *r, ev_error *err) {
    bool has_bundle = r->bundle != NULL, has_records = r->records != NULL;
    switch (f->source) {
    case EXPORTS_RECORDS:
        if (has_records && !has_bundle)
            return EV_OK;
        return ev_fail(err, EV_BAD,
                       "export --to %s needs --records FILE and no bundle: a bundle has the "
                       "winners alone, and this format takes every evaluation",
                       f->name);
    case EXPORTS_EITHER:
        if (has_records != has_bundle)
            return EV_OK;
        return ev_fail(err, EV_BAD, "export --to %s needs --records FILE or one BUNDLE", f->name);
    case EXPORTS_NETWORK:
        if (!has_records && has_bundle)
            return EV_OK;
        return ev_fail(
            err, EV_BAD,
            "export --to %s needs one BUNDLE and no --records; make the bundle first, by "
            "evoke export --records FILE --out BUNDLE",
            f->name);
    }
    return EV_OK;
}

/* An option that the format does not read is a mistake of the caller. */
static ev_status check_unread(const exports_format *f, const exports_request *r, ev_error *err) {
    bool of_network = r->network != NULL || r->base != NULL || r->job != NULL || r->gpu != NULL ||
                      r->batch > 0 || r->density >= 0 || r->base_is_us || r->only_faster;
    if (f->source != EXPORTS_NETWORK && of_network)
        return ev_fail(err, EV_BAD,
                       "export --to %s reads no layers of a network; --network and its options are "
                       "for dally, chakra and dlio",
                       f->name);
    if (f->source == EXPORTS_NETWORK && r->only != NULL)
        return ev_fail(err, EV_BAD,
                       "export --to %s takes no --only; the network says which kernels", f->name);
    return EV_OK;
}

ev_status exports_write(const exports_format *format, const exports_request *r, json_t **summary,
                        ev_error *err) {
    EV_TRY(check_source(format, r, err));
    EV_TRY(check_unread(format, r, err));
    if (r->out == NULL)
        return ev_fail(err, EV_BAD, "export --to %s needs --out FILE", format->name);
    return format->write(r, summary, err);
}

ev_status exports_put(const char *path, const ev_str *text, ev_error *err) {
    EV_TRY(ev_str_status(text, err));
    return ev_file_write(path, ev_str_text(text), text->length, err);
}

void exports_warn(const exports_request *r, const char *format, ...) {
    ev_str line = EV_STR_EMPTY;
    va_list args;
    va_start(args, format);
    ev_str_vprintf(&line, format, args);
    va_end(args);
    if (r->warn != NULL)
        r->warn(ev_str_text(&line));
    ev_str_free(&line);
}
