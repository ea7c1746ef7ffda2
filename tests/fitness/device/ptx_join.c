/* Joins PTX texts. A name that stands outside of all braces is one of the module: of an entry, a
 * function, a variable, or a parameter. Such names are changed wherever they stand. */
#include "tests/fitness/device/ptx_join.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MOST_NAMES 256

typedef struct name {
    const char *text;
    size_t length;
} name;

typedef struct names {
    name list[MOST_NAMES];
    size_t count;
} names;

static bool begins_word(char c) {
    return isalpha((unsigned char)c) || c == '_' || c == '$';
}

static bool is_of_word(char c) {
    return begins_word(c) || isdigit((unsigned char)c);
}

/* Up to and with `end`, or to the end of the text. */
static size_t up_to(const char *at, size_t from, const char *end) {
    const char *found = strstr(at + from, end);
    return found != NULL ? (size_t)(found - at) + strlen(end) : strlen(at);
}

/* Bytes of the comment, string, word or number at `at`, else 1. A point or a percent sign is part
 * of the word behind it, so that ".x" and "%x" are other words than "x". */
static size_t token(const char *at) {
    size_t length = 1;
    if (at[0] == '/' && at[1] == '/')
        return up_to(at, 2, "\n");
    if (at[0] == '/' && at[1] == '*')
        return up_to(at, 2, "*/");
    if (at[0] == '"')
        return up_to(at, 1, "\"");
    if (!is_of_word(at[0]) && !((at[0] == '.' || at[0] == '%') && begins_word(at[1])))
        return 1;
    while (is_of_word(at[length]))
        length++;
    return length;
}

static bool is_among(const names *all, const char *at, size_t length) {
    for (size_t i = 0; i < all->count; i++) {
        if (all->list[i].length == length && memcmp(all->list[i].text, at, length) == 0)
            return true;
    }
    return false;
}

static void find_names(const char *text, names *all) {
    size_t depth = 0, length = 0;
    for (const char *at = text; *at != '\0'; at += length) {
        length = token(at);
        depth += *at == '{';
        depth -= *at == '}' && depth > 0;
        if (depth == 0 && begins_word(*at) && all->count < MOST_NAMES && !is_among(all, at, length))
            all->list[all->count++] = (name){at, length};
    }
}

const char *ptx_head(const char *text, size_t *bytes) {
    const char *begin = strstr(text, ".version"), *end = NULL;
    if (begin != NULL)
        end = strstr(begin, ".address_size");
    if (end == NULL)
        return NULL;
    *bytes = (size_t)(end - begin) + strcspn(end, "\n");
    return begin;
}

void ptx_join_head(ev_str *out, const char *text) {
    size_t bytes = 0;
    const char *head = ptx_head(text, &bytes);
    ev_str_append_n(out, head, bytes);
    ev_str_char(out, '\n');
}

void ptx_join_body(ev_str *out, const char *text, size_t number) {
    names *all = calloc(1, sizeof *all);
    size_t bytes = 0, length = 0;
    const char *head = ptx_head(text, &bytes);
    if (all == NULL)
        abort();
    find_names(head + bytes, all);
    for (const char *at = head + bytes; *at != '\0'; at += length) {
        length = token(at);
        ev_str_append_n(out, at, length);
        if (begins_word(*at) && is_among(all, at, length))
            ev_str_printf(out, "_%zu", number);
    }
    ev_str_char(out, '\n');
    free(all);
}
