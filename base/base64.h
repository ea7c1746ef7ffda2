/* Base64 (RFC 4648, with padding) by libcrypto: bytes in JSON. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/status.h"
#include "base/str.h"

/* malloc'ed text; NULL: out of memory. At most 1 GiB. */
char *ev_base64_encode(const void *data, size_t bytes);
/* Appends to `out`. EV_BAD: `text` is not base64. */
ev_status ev_base64_decode(const char *text, ev_str *out, ev_error *err) EV_CHECKED;

#endif
