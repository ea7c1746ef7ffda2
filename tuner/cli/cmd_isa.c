/* evoke isa: the instructions of the virtual machine, from its tables. */
#include "tuner/cli/cmd.h"

#include "base/table.h"
#include "fitness/vm/isa.h"

#include <string.h>

/* `only` NULL: every instruction. */
static bool wanted(const vm_isa_row *row, const char *only) {
    return only == NULL || strcmp(row->name, only) == 0;
}

static json_t *row_json(const vm_isa_row *r) {
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:i, s:s, s:s}", "name", r->name, "form",
                     r->form, "operands", r->operands, "types", r->types, "types2", r->types2,
                     "ptx", r->version / 10.0, "sm", r->sm, "pipe", r->pipe, "meaning", r->meaning);
}

static ev_status print_json(cmd_context *c, const char *only, ev_error *err) {
    json_t *list = json_array();
    vm_isa_row row;
    for (size_t i = 0; vm_isa_row_get(i, &row); i++)
        if (wanted(&row, only))
            (void)json_array_append_new(list, row_json(&row));
    return cmd_print_json(c, json_pack("{s:o}", "instructions", list), err);
}

static ev_status print_text(cmd_context *c, const char *only, ev_error *err) {
    static const char *const columns[] = {"form",  "operands", "T",    "U",
                                          "since", ">sm",      "pipe", NULL};
    table *rows = table_new(columns);
    if (rows == NULL)
        return ev_fail_memory(err, 1);
    vm_isa_row row;
    for (size_t i = 0; vm_isa_row_get(i, &row); i++) {
        if (!wanted(&row, only))
            continue;
        table_cell(rows, "%s", row.form);
        table_cell(rows, "%s", row.operands);
        table_cell(rows, "%s", row.types);
        table_cell(rows, "%s", row.types2);
        table_cell(rows, "%d.%d", row.version / 10, row.version % 10);
        table_cell(rows, "%d", row.sm);
        table_cell(rows, "%s", row.pipe);
    }
    ev_status status = table_print(rows, c->out, err);
    table_free(rows);
    return status;
}

static bool is_there(const char *name) {
    vm_isa_row row;
    for (size_t i = 0; vm_isa_row_get(i, &row); i++)
        if (strcmp(row.name, name) == 0)
            return true;
    return false;
}

ev_status cmd_isa(cmd_context *c, ev_error *err) {
    const char *only = c->args->operand_count > 0 ? c->args->operands[0] : NULL;
    if (only != NULL && !is_there(only))
        return ev_fail(
            err, EV_BAD,
            "the virtual machine has no instruction '%s'; give a name without dot-parts, such as "
            "shfl; evoke isa lists all, and docs/isa.md those that are not supported",
            only);
    if (cli_flag(c->args, CLI_OPT_JSON))
        return print_json(c, only, err);
    if (!cli_flag(c->args, CLI_OPT_ISA_MARKDOWN))
        return print_text(c, only, err);
    vm_isa_print_markdown(c->out);
    return EV_OK;
}
