/* String builder: a growable text, always NUL-terminated, with a sticky failure flag.
 *
 * The owner calls ev_str_free, or takes the text with ev_str_take. When memory runs out, the
 * builder keeps its text and sets `failed`; check once, at the end, with ev_str_status. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ev_str {
    char *data;    /* NULL until something was appended; read through ev_str_text */
    size_t length; /* bytes without the NUL */
    size_t capacity;
    bool failed;
} ev_str;

#define EV_STR_EMPTY ((ev_str){0})

void ev_str_append(ev_str *s, const char *text);
void ev_str_append_n(ev_str *s, const char *text, size_t length);
void ev_str_char(ev_str *s, char c);
void ev_str_printf(ev_str *s, const char *format, ...) EV_PRINTF(2, 3);
void ev_str_vprintf(ev_str *s, const char *format, va_list args) EV_PRINTF(2, 0);
void ev_str_hex(ev_str *s, const void *bytes, size_t count); /* lower case, two digits a byte */
void ev_str_clear(ev_str *s);                                /* keeps the memory */
void ev_str_free(ev_str *s);
const char *ev_str_text(const ev_str *s); /* "" when empty; never NULL */
char *ev_str_take(ev_str *s);             /* malloc'ed; NULL if it failed */
ev_status ev_str_status(const ev_str *s, ev_error *err) EV_CHECKED;

/* Levenshtein distance (insertions, deletions, changes) of the first 48 bytes of two names, for
 * "did you mean". */
int ev_text_distance(const char *a, const char *b);

/* Reads `prefix` and a decimal number behind it. Returns the place behind the number, or NULL: `at`
 * is NULL, has another prefix or no digit behind it, or the number is above UINT32_MAX; then *out
 * stays. */
const char *ev_text_u32(const char *at, const char *prefix, uint32_t *out);

/* strtod with a point in every locale, for programs that call setlocale. */
double ev_text_real(const char *text, char **end);

#endif
