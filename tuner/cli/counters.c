/* Counters and traps of a launch, as JSON and as text. */
#include "tuner/cli/launch.h"

#include "base/table.h"

#include <inttypes.h>
#include <string.h>

static const struct {
    const char *name, *unit, *doc;
    size_t offset;
} counters[] = {
#define COUNTER(field, unit, doc) {#field, unit, doc, offsetof(vm_counters, field)},
#include "tuner/cli/counters.def"
#undef COUNTER
};

static const char *const pipe_names[VM_PIPE_COUNT] = {
#define VM_PIPE(id, name, throughput, latency, meaning) name,
#include "fitness/ptx/pipes.def"
#undef VM_PIPE
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static uint64_t counter_at(const vm_counters *from, size_t index) {
    uint64_t value = 0;
    memcpy(&value, (const char *)from + counters[index].offset, sizeof value);
    return value;
}

json_t *counters_to_json(const vm_counters *from) {
    json_t *all = json_object(), *pipes = json_object();
    for (size_t i = 0; i < COUNT(counters); i++)
        (void)json_object_set_new(all, counters[i].name,
                                  json_integer((json_int_t)counter_at(from, i)));
    for (size_t i = 0; i < VM_PIPE_COUNT; i++) {
        if (from->warp_by_pipe[i] > 0)
            (void)json_object_set_new(pipes, pipe_names[i],
                                      json_integer((json_int_t)from->warp_by_pipe[i]));
    }
    (void)json_object_set_new(all, "warp_by_pipe", pipes);
    return all;
}

ev_status counters_print(const vm_counters *from, ev_str *out, ev_error *err) {
    static const char *const columns[] = {"counter", ">value", "unit", "what it counts", NULL};
    table *rows = table_new(columns);
    if (rows == NULL)
        return ev_fail_memory(err, 1);
    for (size_t i = 0; i < COUNT(counters); i++) {
        if (counter_at(from, i) == 0)
            continue;
        table_cell(rows, "%s", counters[i].name);
        table_cell(rows, "%" PRIu64, counter_at(from, i));
        table_cell(rows, "%s", counters[i].unit);
        table_cell(rows, "%s", counters[i].doc);
    }
    ev_status status = table_print(rows, out, err);
    table_free(rows);
    return status;
}

static json_t *triple(const uint32_t at[3]) {
    return json_pack("[I, I, I]", (json_int_t)at[0], (json_int_t)at[1], (json_int_t)at[2]);
}

json_t *trap_to_json(const vm_trap *trap) {
    json_t *address = trap->has_address ? json_integer((json_int_t)trap->address) : json_null();
    return json_pack("{s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:s}", "kind", vm_trap_name(trap->kind),
                     "rank", (json_int_t)trap->rank, "line", (json_int_t)trap->line, "column",
                     (json_int_t)trap->column, "block", triple(trap->block), "thread",
                     triple(trap->thread), "address", address, "message", trap->message);
}

/* The trap's line with its number, and a caret below the instruction; tabs stay tabs, so that it
 * stands there whatever their width. */
static void print_source(const vm_module *module, const vm_trap *trap, ev_str *out) {
    size_t bytes = 0;
    const char *text = vm_module_line(module, trap->line, &bytes);
    if (text == NULL)
        return;
    size_t blank = 0;
    while (blank < bytes && (text[blank] == ' ' || text[blank] == '\t'))
        blank++;
    ev_str_printf(out, "%6u | ", trap->line);
    ev_str_append_n(out, text + blank, bytes - blank);
    ev_str_append(out, "\n       | ");
    for (size_t i = blank; i + 1 < trap->column && i < bytes; i++)
        ev_str_char(out, text[i] == '\t' ? '\t' : ' ');
    ev_str_append(out, "^\n");
}

void trap_print(const vm_trap *trap, const char *path, const vm_module *module, ev_str *out) {
    ev_str_printf(out, "%s: trap: %s\n", path, trap->message);
    if (trap->line > 0 && module != NULL)
        print_source(module, trap, out);
}
