/* Memory: what opening a bundle may take, by its size, so that a small hostile file cannot take all
 * memory of a process. The manifest's text is weighed before it is parsed; what is made of it comes
 * from an arena with a limit. */
#include "bundle/read.h"

#include <ctype.h>

/* What jansson 2.14 allocates, with what malloc adds, while the containers grow. */
#define OBJECT_BYTES 260 /* with 8 buckets */
#define ARRAY_BYTES 140  /* with 8 places */
#define TEXT_BYTES 80    /* and its length */
#define KEY_BYTES 110    /* and its length: the pair, and its share of the buckets */
#define PLACE_BYTES 24   /* an array's, for one member */
#define NUMBER_BYTES 32
#define LEXER_TIMES 4 /* copies of the longest text while it is read */

/* The length of the string that begins at `text`, with both quotes. */
static size_t string_length(const char *text) {
    size_t at = 1;
    while (text[at] != '\0' && text[at] != '"')
        at += text[at] == '\\' && text[at + 1] != '\0' ? 2 : 1;
    return at + (text[at] == '"');
}

/* The length of the number that begins at `text`. Not by strspn: a sanitizer's measures the whole
 * rest of the text at each call. */
static size_t number_length(const char *text) {
    size_t at = 0;
    while (isdigit((unsigned char)text[at]) || text[at] == '-' || text[at] == '+' ||
           text[at] == '.' || text[at] == 'e' || text[at] == 'E')
        at++;
    return at;
}

static size_t mark_bytes(char c) {
    switch (c) {
    case '{':
        return OBJECT_BYTES;
    case '[':
        return ARRAY_BYTES;
    case ':':
        return KEY_BYTES - TEXT_BYTES;
    case ',':
        return PLACE_BYTES;
    default:
        return 0;
    }
}

/* The most that a parser makes of a JSON text. */
static size_t weigh(const char *text) {
    size_t bytes = 0, longest = 0;
    while (*text != '\0') {
        size_t length = 1;
        if (*text == '"') {
            length = string_length(text);
            longest = length > longest ? length : longest;
            bytes += TEXT_BYTES + length;
        } else if (*text == '-' || (*text >= '0' && *text <= '9')) {
            length = number_length(text);
            bytes += NUMBER_BYTES;
        } else {
            bytes += mark_bytes(*text);
        }
        text += length;
    }
    return bytes + LEXER_TIMES * longest;
}

ev_status memory_plan(const bundle *b, const char *text, size_t bytes, size_t *left,
                      ev_error *err) {
    size_t whole = store_bytes(b->files);
    size_t most = MEMORY_TIMES * (whole > bytes ? whole : bytes) + MEMORY_FREE;
    size_t used = (store_is_tar(b->files) ? whole : 0) + bytes + weigh(text);
    if (used > most)
        return ev_fail(err, EV_BAD,
                       "%s/manifest.json would take %zu bytes of memory for %zu in the file, which "
                       "no manifest does",
                       store_name(b->files), used, bytes);
    *left = most - used;
    return EV_OK;
}
