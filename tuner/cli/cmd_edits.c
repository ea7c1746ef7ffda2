/* evoke edits: the edits and operators of the search, and what became of them in given records. */
#include "tuner/cli/cmd.h"

#include "base/table.h"
#include "tuner/report/tallies.h"

#include <stdlib.h>

#define MOST_TASKS 256

/* ---- counting ---- */

static ev_status note(void *context, const records_evaluation *e, ev_error *err) {
    return tallies_note(context, e, err);
}

static ev_status count_records(tallies *t, const char *path, ev_error *err) {
    records *r = NULL;
    EV_TRY(records_open_read(path, &r, err));
    ev_status status = EV_OK;
    for (size_t index = 0; index < MOST_TASKS && status == EV_OK; index++) {
        tallies_next_task(t);
        status = records_each(r, index, "search", note, t, err);
        if (t->known == 0)
            break;
    }
    records_close(r);
    return status;
}

/* ---- printing ---- */

static const char *family_of(unsigned arm) {
    return arm < IR_EDIT_COUNT ? ir_edit_family((ir_edit_kind)arm) : "operator";
}

static const char *needs_of(unsigned arm) {
    return arm < IR_EDIT_COUNT ? ir_edit_needs((ir_edit_kind)arm) : "";
}

static const char *meaning_of(unsigned arm) {
    return arm < IR_EDIT_COUNT ? ir_edit_meaning_name((ir_edit_kind)arm) : "";
}

static const char *because_of(unsigned arm) {
    return arm < IR_EDIT_COUNT ? ir_edit_because((ir_edit_kind)arm) : "";
}

static ev_status print_json(cmd_context *c, const tallies *n, bool counted, ev_error *err) {
    json_t *list = json_array();
    for (unsigned arm = 0; arm < ARM_COUNT; arm++) {
        const tally *t = &n->arms[arm];
        json_t *row = json_pack("{s:s,s:s,s:s,s:s,s:s,s:s}", "edit", arm_name(arm), "family",
                                family_of(arm), "does", arm_meaning(arm), "needs", needs_of(arm),
                                "meaning", meaning_of(arm), "because", because_of(arm));
        if (counted)
            (void)json_object_update_new(
                row, json_pack("{s:I,s:I,s:I,s:I,s:I}", "drawn", (json_int_t)t->drawn, "duplicates",
                               (json_int_t)t->duplicates, "valid", (json_int_t)t->valid, "neutral",
                               (json_int_t)t->neutral, "better", (json_int_t)t->better));
        (void)json_array_append_new(list, row);
    }
    return cmd_print_json(c, json_pack("{s:o}", "edits", list), err);
}

static void count_cells(table *rows, const tally *t) {
    table_cell(rows, "%llu", (unsigned long long)t->drawn);
    table_cell(rows, "%llu", (unsigned long long)t->duplicates);
    table_cell(rows, "%llu", (unsigned long long)t->valid);
    table_cell(rows, "%llu", (unsigned long long)t->neutral);
    table_cell(rows, "%llu", (unsigned long long)t->better);
}

static ev_status print_text(cmd_context *c, const tallies *n, bool counted, ev_error *err) {
    static const char *const plain[] = {"edit", "family", "meaning", "what it does", NULL};
    static const char *const with_counts[] = {"edit",     "family",      "meaning",
                                              ">drawn",   ">duplicates", ">valid",
                                              ">neutral", ">better",     NULL};
    table *rows = table_new(counted ? with_counts : plain);
    if (rows == NULL)
        return ev_fail_memory(err, 1);
    for (unsigned arm = 0; arm < ARM_COUNT; arm++) {
        table_cell(rows, "%s", arm_name(arm));
        table_cell(rows, "%s", family_of(arm));
        table_cell(rows, "%s", meaning_of(arm));
        if (counted)
            count_cells(rows, &n->arms[arm]);
        else
            table_cell(rows, "%s", arm_meaning(arm));
    }
    ev_status status = table_print(rows, c->out, err);
    table_free(rows);
    if (counted)
        ev_str_append(c->out,
                      "\nchildren that an edit had a part in; valid: passed all gates of the "
                      "search;\nneutral, better: by time, against the faster parent\n");
    return status;
}

ev_status cmd_edits(cmd_context *c, ev_error *err) {
    tallies *n = calloc(1, sizeof *n);
    if (n == NULL)
        return ev_fail_memory(err, sizeof *n);
    bool counted = c->args->operand_count > 0;
    ev_status status = counted ? count_records(n, c->args->operands[0], err) : EV_OK;
    if (status == EV_OK)
        status = cli_flag(c->args, CLI_OPT_JSON) ? print_json(c, n, counted, err)
                                                 : print_text(c, n, counted, err);
    tallies_free(n);
    free(n);
    return status;
}
