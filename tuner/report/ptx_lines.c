/* PTX lines: the rules of a diff of PTX. */
#include "tuner/report/ptx_lines.h"

#include <ctype.h>
#include <stdbool.h>

/* Comments and blank lines say nothing of the code. */
static size_t trim_ptx(const char *line, size_t length) {
    while (length > 0 && isspace((unsigned char)line[length - 1]))
        length--;
    size_t at = 0;
    while (at < length && isspace((unsigned char)line[at]))
        at++;
    bool comment = at + 1 < length && line[at] == '/' && line[at + 1] == '/';
    return comment ? 0 : length;
}

/* Registers and labels are numbered anew in every variant: their numbers are not looked at. */
static uint64_t key_ptx(const char *line, size_t length) {
    uint64_t key = 0xcbf29ce484222325u;
    bool named = false; /* within a register's or a label's name */
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)line[i];
        if (c == '%' || c == '$')
            named = true;
        else if (!isalnum(c) && c != '_')
            named = false;
        if (!(named && isdigit(c)))
            key = (key ^ c) * 0x100000001b3u;
    }
    return key;
}

const ev_diff_rules ptx_lines_rules = {trim_ptx, key_ptx};
