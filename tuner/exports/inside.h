/* What the files of tuner/exports share. */
#ifndef TUNER_EXPORTS_INSIDE_H
#define TUNER_EXPORTS_INSIDE_H

#include "base/str.h"
#include "tuner/exports/exports.h"

exports_fn exports_write_dally, exports_write_chakra, exports_write_dlio, exports_write_t4,
    exports_write_csv;

/* Writes a whole file. EV_BAD, EV_INFRA: as ev_file_write. */
ev_status exports_put(const char *path, const ev_str *text, ev_error *err) EV_CHECKED;

/* Hands one line to r->warn. */
void exports_warn(const exports_request *r, const char *format, ...) EV_PRINTF(2, 3);

#endif
