/* Tally: two reasons are of one kind where they differ in numbers alone. */
#include "tuner/run/tally.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* A number begins where no word goes on: "4.5e-06" is one, the 2 of "L2" is none. */
static bool begins_number(const char *text, const char *at) {
    bool inside = at > text && (isalnum((unsigned char)at[-1]) || at[-1] == '_');
    return !inside && isdigit((unsigned char)*at);
}

static const char *end_of_number(const char *at) {
    char *end = NULL;
    (void)strtod(at, &end);
    return end;
}

static bool same_kind(const char *a, const char *b) {
    const char *x = a, *y = b;
    while (*x && *y) {
        if (begins_number(a, x) && begins_number(b, y)) {
            x = end_of_number(x);
            y = end_of_number(y);
        } else if (*x++ != *y++) {
            return false;
        }
    }
    return *x == *y;
}

void tally_add(tally *t, const char *reason) {
    char text[TALLY_TEXT];
    (void)snprintf(text, sizeof text, "%s", reason);
    for (size_t i = 0; i < t->kind_count; i++) {
        if (same_kind(t->kinds[i].first, text)) {
            t->kinds[i].count++;
            return;
        }
    }
    if (t->kind_count == TALLY_KINDS) {
        t->others++;
        return;
    }
    tally_kind *kind = &t->kinds[t->kind_count++];
    (void)snprintf(kind->first, sizeof kind->first, "%s", text);
    kind->count = 1;
}
