/* evoke/bundle.h: shapes as text. */
#include "bundle/runtime/runtime.h"

#include <math.h>
#include <string.h>

#define SPACES " \t\r\n,"

/* Reads NAME=NUMBER; *at goes behind it. */
static ev_status read_one(const char *text, char **at, evoke_number *out, ev_error *err) {
    char *name = *at, *end = NULL;
    size_t length = expr_name_length(name);
    size_t column = (size_t)(name - text) + 1;
    if (length == 0 || name[length] != '=')
        return ev_fail(err, EV_BAD,
                       "column %zu of the shape: there must be NAME=NUMBER, and not '%.40s'",
                       column, name);
    double value = ev_text_real(name + length + 1, &end);
    size_t digits = strspn(name + length + 1, "0123456789.+-eE"); /* neither hex nor blanks */
    if (digits == 0 || end != name + length + 1 + digits || !isfinite(value) ||
        (*end != '\0' && strchr(SPACES, *end) == NULL))
        return ev_fail(err, EV_BAD,
                       "column %zu of the shape: '%.*s' must be a decimal number, and not '%.40s'",
                       column, (int)(length < 40 ? length : 40), name, name + length + 1);
    name[length] = '\0';
    *out = (evoke_number){name, value};
    *at = end;
    return EV_OK;
}

static ev_status read_shape(char *text, evoke_number *numbers, size_t room, evoke_shape *out,
                            ev_error *err) {
    size_t count = 0;
    for (char *at = text + strspn(text, SPACES); *at != '\0'; at += strspn(at, SPACES)) {
        if (count == room)
            return ev_fail(err, EV_BAD, "the shape has more than %zu numbers", room);
        EV_TRY(read_one(text, &at, &numbers[count], err));
        for (size_t i = 0; i < count; i++) {
            if (strcmp(numbers[i].name, numbers[count].name) == 0)
                return ev_fail(err, EV_BAD, "the shape has '%s' twice", numbers[i].name);
        }
        count++;
    }
    *out = (evoke_shape){numbers, count};
    return EV_OK;
}

evoke_status evoke_shape_read(char *text, evoke_number *numbers, size_t room, evoke_shape *out,
                              evoke_error *error) {
    return runtime_status(read_shape(text, numbers, room, out, runtime_error(error)));
}
