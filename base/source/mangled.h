/* Names in C++ symbols. */
#ifndef BASE_SOURCE_MANGLED_H
#define BASE_SOURCE_MANGLED_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Finds a name in a symbol, which has its length in front of it: the function "scale", or the
 * namespace "ops", of "_ZN3ops5scaleIfEEvPfi" (Itanium C++ ABI, 5.1). Returns the place behind it,
 * from where a further search may begin; NULL: the name is not there. The symbol is not taken
 * apart: a longer name with that text inside has the name, too. */
static inline const char *ev_mangled_find(const char *symbol, const char *name) {
    char length[24];
    size_t digits = (size_t)snprintf(length, sizeof length, "%zu", strlen(name));
    for (const char *at = symbol; (at = strstr(at, length)) != NULL; at++) {
        bool is_longer = at > symbol && at[-1] >= '0' && at[-1] <= '9';
        if (!is_longer && strncmp(at + digits, name, strlen(name)) == 0)
            return at + digits + strlen(name);
    }
    return NULL;
}

#endif
