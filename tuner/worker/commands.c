/* Commands: reads the counts and commands of --worker-command. */
#include "tuner/worker/commands.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The count before a colon, 1 without one; *command is what follows. Without digits before it, a
 * colon is part of the command. */
static ev_status read_one(const char *text, size_t most, const char **command, size_t *count,
                          ev_error *err) {
    size_t digits = strspn(text, "0123456789");
    bool counted = digits > 0 && text[digits] == ':';
    *command = counted ? text + digits + 1 : text;
    *count = 1;
    if (counted) {
        char *end = NULL;
        unsigned long number = strtoul(text, &end, 10);
        if (digits > 9 || number == 0)
            return ev_fail(err, EV_BAD, "--worker-command '%s': a count is from 1 to %zu", text,
                           most);
        *count = number;
    }
    if ((*command)[strspn(*command, " \t")] == '\0')
        return ev_fail(err, EV_BAD,
                       "--worker-command '%s' names no command; for example "
                       "'4:ssh host evoke worker --stdio'",
                       text);
    return EV_OK;
}

ev_status commands_parse(const char *const *texts, size_t text_count, size_t most, commands *out,
                         ev_error *err) {
    *out = (commands){0};
    const char **each = calloc(most, sizeof *each);
    if (!each)
        return ev_fail_memory(err, most * sizeof *each);
    size_t total = 0;
    for (size_t i = 0; i < text_count; i++) {
        const char *command = NULL;
        size_t count = 0;
        ev_status status = read_one(texts[i], most, &command, &count, err);
        if (status == EV_OK && count > most - total)
            status = ev_fail(err, EV_BAD,
                             "--worker-command asks for more than %zu workers, which is what one "
                             "search keeps busy",
                             most);
        if (status != EV_OK) {
            free(each);
            return status;
        }
        for (size_t k = 0; k < count; k++)
            each[total++] = command;
    }
    *out = (commands){each, total};
    return EV_OK;
}

void commands_free(commands *c) {
    free(c->each);
    *c = (commands){0};
}
