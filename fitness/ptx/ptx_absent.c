/* What PTX has and this machine has not: refused by name when a module is loaded. */
#include "fitness/ptx/ptx_load.h"

#include <string.h>

static const ptx_absent rows[] = {
#define PTX_ABSENT(name, what, cure) {name, what, cure},
#include "fitness/ptx/ptx_absent.def"
#undef PTX_ABSENT
};

bool ptx_absent_get(size_t index, ptx_absent *out) {
    if (index >= sizeof rows / sizeof *rows)
        return false;
    *out = rows[index];
    return true;
}

/* Whether a part of the text that begins like `name` ends with it: "wgmma" in "wgmma.fence",
 * "mma.sp" in "mma.sp::ordered_metadata". A name with a `*` at its end fits any ending. */
static bool begins(const char *text, size_t length, const char *name) {
    size_t n = strlen(name);
    bool any = name[n - 1] == '*';
    n -= any;
    if (n > length || memcmp(text, name, n) != 0)
        return false;
    if (any)
        return true;
    bool digit = *name == '%' && n < length && text[n] >= '0' && text[n] <= '9';
    return n == length || text[n] == '.' || text[n] == ':' || digit;
}

static bool names(const char *row, const char *text, size_t length) {
    if (*row != '*')
        return begins(text, length, row);
    for (size_t i = 0; i < length; i++)
        if (text[i] == '.' && begins(text + i, length - i, row + 1))
            return true;
    return false;
}

bool ptx_absent_find(const char *text, size_t length, ptx_absent *out) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (names(rows[i].name, text, length)) {
            *out = rows[i];
            return true;
        }
    return false;
}

bool ptx_fail_absent_name(ptx_loader *L, const char *at, const char *name, size_t length) {
    ptx_absent row;
    if (!ptx_absent_find(name, length, &row))
        return false;
    ptx_fail_at(L, at, "found '%.*s': %s, which this machine does not have; expected %s",
                length > 80 ? 80 : (int)length, name, row.what, row.cure);
    return true;
}

bool ptx_fail_absent(ptx_loader *L, const char *at, size_t length) {
    return ptx_fail_absent_name(L, at, at, length);
}
