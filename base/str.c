/* The string builder: grows by doubling; after a failure every append does nothing. */
#include "base/str.h"

#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for `more` bytes and the NUL. */
static bool str_reserve(ev_str *s, size_t more) {
    if (s->failed)
        return false;
    size_t need = 0;
    if (__builtin_add_overflow(s->length, more, &need) || need >= SIZE_MAX / 2) {
        s->failed = true;
        return false;
    }
    if (need < s->capacity)
        return true;
    size_t capacity = s->capacity < 32 ? 64 : s->capacity * 2;
    if (capacity <= need)
        capacity = need + 1;
    char *data = realloc(s->data, capacity);
    if (data == NULL) {
        s->failed = true;
        return false;
    }
    s->data = data;
    s->capacity = capacity;
    return true;
}

void ev_str_append_n(ev_str *s, const char *text, size_t length) {
    if (!str_reserve(s, length))
        return;
    if (length > 0)
        memcpy(s->data + s->length, text, length);
    s->length += length;
    s->data[s->length] = '\0';
}

void ev_str_append(ev_str *s, const char *text) {
    ev_str_append_n(s, text, strlen(text));
}

void ev_str_char(ev_str *s, char c) {
    ev_str_append_n(s, &c, 1);
}

void ev_str_vprintf(ev_str *s, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    if (length < 0) {
        s->failed = true;
    } else if (str_reserve(s, (size_t)length)) {
        (void)vsnprintf(s->data + s->length, (size_t)length + 1, format, again);
        s->length += (size_t)length;
    }
    va_end(again);
}

void ev_str_printf(ev_str *s, const char *format, ...) {
    va_list args;
    va_start(args, format);
    ev_str_vprintf(s, format, args);
    va_end(args);
}

void ev_str_hex(ev_str *s, const void *bytes, size_t count) {
    static const char digits[] = "0123456789abcdef";
    const unsigned char *from = bytes;
    if (count > SIZE_MAX / 4) {
        s->failed = true;
        return;
    }
    if (!str_reserve(s, count * 2))
        return;
    char *to = s->data + s->length;
    for (size_t i = 0; i < count; i++) {
        *to++ = digits[from[i] >> 4];
        *to++ = digits[from[i] & 15u];
    }
    *to = '\0';
    s->length += count * 2;
}

void ev_str_clear(ev_str *s) {
    s->length = 0;
    if (s->data != NULL)
        s->data[0] = '\0';
}

void ev_str_free(ev_str *s) {
    free(s->data);
    *s = EV_STR_EMPTY;
}

const char *ev_str_text(const ev_str *s) {
    return s->data == NULL ? "" : s->data;
}

char *ev_str_take(ev_str *s) {
    (void)str_reserve(s, 0);
    if (s->failed) {
        ev_str_free(s);
        return NULL;
    }
    s->data[s->length] = '\0';
    char *text = s->data;
    *s = EV_STR_EMPTY;
    return text;
}

ev_status ev_str_status(const ev_str *s, ev_error *err) {
    return s->failed ? ev_fail_memory(err, (unsigned long long)s->capacity * 2) : EV_OK;
}

#define DISTANCE_LIMIT 48 /* longer names are compared by their first bytes */

int ev_text_distance(const char *a, const char *b) {
    size_t rows = strnlen(a, DISTANCE_LIMIT), columns = strnlen(b, DISTANCE_LIMIT);
    int last[DISTANCE_LIMIT + 1];
    for (size_t j = 0; j <= columns; j++)
        last[j] = (int)j;
    for (size_t i = 1; i <= rows; i++) {
        int corner = last[0];
        last[0] = (int)i;
        for (size_t j = 1; j <= columns; j++) {
            int best = corner + (a[i - 1] == b[j - 1] ? 0 : 1);
            corner = last[j];
            if (corner + 1 < best)
                best = corner + 1;
            if (last[j - 1] + 1 < best)
                best = last[j - 1] + 1;
            last[j] = best;
        }
    }
    return last[columns];
}

const char *ev_text_u32(const char *at, const char *prefix, uint32_t *out) {
    size_t skipped = strlen(prefix);
    if (at == NULL || strncmp(at, prefix, skipped) != 0)
        return NULL;
    const char *begin = at + skipped, *end = begin;
    uint64_t value = 0;
    for (; *end >= '0' && *end <= '9' && value <= UINT32_MAX; end++)
        value = 10 * value + (uint64_t)(*end - '0');
    if (end == begin || value > UINT32_MAX)
        return NULL;
    *out = (uint32_t)value;
    return end;
}

double ev_text_real(const char *text, char **end) {
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* in glibc: a constant, no memory */
    if (c == (locale_t)0)
        return strtod(text, end);
    double value = strtod_l(text, end, c);
    freelocale(c);
    return value;
}
