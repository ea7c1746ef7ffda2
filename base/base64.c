/* Base64 by libcrypto's block calls, which take whole groups of four. */
#include "base/base64.h"

#include <openssl/evp.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES ((size_t)1 << 30)

char *ev_base64_encode(const void *data, size_t bytes) {
    assert(bytes <= MOST_BYTES);
    char *text = malloc((bytes + 2) / 3 * 4 + 1);
    if (text != NULL)
        (void)EVP_EncodeBlock((unsigned char *)text, data, (int)bytes);
    return text;
}

/* Padding that stands at the end: 0 to 2. */
static size_t padding_of(const char *text, size_t length) {
    size_t count = 0;
    while (count < 2 && count < length && text[length - 1 - count] == '=')
        count++;
    return count;
}

ev_status ev_base64_decode(const char *text, ev_str *out, ev_error *err) {
    size_t length = strlen(text), padding = padding_of(text, length);
    unsigned char *data = length / 4 * 3 <= MOST_BYTES ? malloc(length / 4 * 3 + 1) : NULL;
    if (data == NULL)
        return ev_fail_memory(err, length);
    /* The call passes over blanks around the text, and an '=' inside counts as a zero. */
    bool whole = length % 4 == 0 && strcspn(text, "= \t\r\n") == length - padding;
    int got = whole ? EVP_DecodeBlock(data, (const unsigned char *)text, (int)length) : -1;
    if (got >= (int)padding)
        ev_str_append_n(out, (const char *)data, (size_t)got - padding);
    free(data);
    return got < 0 ? ev_fail(err, EV_BAD, "the text is not base64") : ev_str_status(out, err);
}
