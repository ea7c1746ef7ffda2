/* The template arguments in a kernel's name, as C++ encodes it.
 *
 * Source: Itanium C++ ABI, chapter 5.1, "External Names (a.k.a. Mangling)": <template-args> are
 * between I and E, a type is a letter, a literal L <type> <number> E with n for minus, and a name
 * has its length in front. */
#include "tuner/init/draft_trace.h"

#include "base/source/mangled.h"

#include <stdlib.h>
#include <string.h>

typedef struct coded_type {
    char letter;
    const char *name;
} coded_type;

static const coded_type TYPES[] = {
    {'f', "float"}, {'d', "double"},         {'i', "int"},         {'j', "unsigned"},
    {'l', "long"},  {'m', "unsigned long"},  {'x', "long long"},   {'y', "unsigned long long"},
    {'s', "short"}, {'t', "unsigned short"}, {'a', "signed char"}, {'h', "unsigned char"},
    {'c', "char"},  {'b', "bool"},
};

static const char *type_of(char letter) {
    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++) {
        if (TYPES[i].letter == letter)
            return TYPES[i].name;
    }
    return NULL;
}

/* Appends one argument and returns the place behind it; NULL: it is none of these. */
static const char *read_argument(const char *at, ev_str *out) {
    if (*at == 'L' && type_of(at[1]) != NULL) {
        bool is_bool = at[1] == 'b', is_below = at[2] == 'n';
        const char *digits = at + 2 + is_below;
        size_t length = strspn(digits, "0123456789");
        if (length == 0 || digits[length] != 'E')
            return NULL;
        if (is_bool)
            ev_str_append(out, *digits == '0' ? "false" : "true");
        else
            ev_str_printf(out, "%s%.*s", is_below ? "-" : "", (int)length, digits);
        return digits + length + 1;
    }
    if (*at >= '1' && *at <= '9') {
        char *end = NULL;
        unsigned long length = strtoul(at, &end, 10);
        if (length > strlen(end))
            return NULL;
        ev_str_append_n(out, end, length);
        return end + length;
    }
    const char *type = type_of(*at);
    if (type != NULL)
        ev_str_append(out, type);
    return type != NULL ? at + 1 : NULL;
}

char *draft_instance_of(const char *in_ptx, const char *name) {
    const char *at = ev_mangled_find(in_ptx, name), *comma = "";
    while (at != NULL && *at != 'I')
        at = ev_mangled_find(at, name);
    if (at == NULL)
        return NULL;
    ev_str text = EV_STR_EMPTY;
    ev_str_printf(&text, "%s<", name);
    for (at++; at != NULL && *at != 'E'; comma = ", ") {
        ev_str_append(&text, comma);
        at = read_argument(at, &text);
    }
    ev_str_char(&text, '>');
    if (at != NULL && comma[0] != '\0')
        return ev_str_take(&text);
    ev_str_free(&text);
    return NULL;
}
