/* evoke edits: the edits and operators of the search, and what became of them in given records. */
#include "tuner/cli/cmd.h"

#include "base/table.h"
#include "tuner/run/records.h"
#include "tuner/search/draw.h"

#include <stdlib.h>
#include <string.h>

#define MOST_TASKS 256
#define NEUTRAL 0.001 /* relative change of time that counts as none */

/* Children that an arm had a part in. Every one that is new is one of: stopped, worse, neutral,
 * better; the last three are valid. */
typedef struct tally {
    uint64_t drawn, duplicates, valid, neutral, better;
} tally;

typedef struct count {
    tally arms[ARM_COUNT];
    double *ns; /* by child of the task being read; 0: stopped */
    size_t known, capacity;
} count;

/* ---- counting ---- */

static bool keep_ns(count *c, uint64_t number, double ns) {
    if (number >= c->capacity) {
        size_t capacity = 2 * (size_t)number + 1024;
        double *more = realloc(c->ns, capacity * sizeof *more);
        if (more == NULL)
            return false;
        memset(more + c->capacity, 0, (capacity - c->capacity) * sizeof *more);
        c->ns = more;
        c->capacity = capacity;
    }
    c->ns[number] = ns;
    c->known++;
    return true;
}

/* The faster parent's time; 0: none is known. */
static double parent_ns(const count *c, const char *parents) {
    double best = 0;
    while (*parents != '\0') {
        char *end = NULL;
        unsigned long long number = strtoull(parents, &end, 10);
        double ns = end > parents && number < c->capacity ? c->ns[number] : 0;
        if (ns > 0 && (best == 0 || ns < best))
            best = ns;
        parents = end > parents ? end : parents + 1;
        parents += *parents == ',';
    }
    return best;
}

static void note_arm(tally *t, const records_evaluation *e, double parent) {
    t->drawn++;
    if (strcmp(e->gate, "seen") == 0)
        t->duplicates++;
    if (strcmp(e->gate, "none") != 0)
        return;
    t->valid++;
    if (parent <= 0)
        return;
    t->better += e->ns < parent * (1 - NEUTRAL);
    t->neutral += e->ns >= parent * (1 - NEUTRAL) && e->ns <= parent * (1 + NEUTRAL);
}

static ev_status note(void *context, const records_evaluation *e, ev_error *err) {
    count *c = context;
    double parent = parent_ns(c, e->parents);
    if (!keep_ns(c, e->number, strcmp(e->gate, "none") == 0 ? e->ns : 0))
        return ev_fail_memory(err, c->capacity * sizeof *c->ns);
    const char *name = e->operators;
    while (*name != '\0') {
        char one[64];
        size_t length = strcspn(name, ",");
        unsigned arm = 0;
        if (length < sizeof one) {
            memcpy(one, name, length);
            one[length] = '\0';
            if (arm_find(one, &arm))
                note_arm(&c->arms[arm], e, parent);
        }
        name += length + (name[length] == ',');
    }
    return EV_OK;
}

static ev_status count_records(count *c, const char *path, ev_error *err) {
    records *r = NULL;
    EV_TRY(records_open_read(path, &r, err));
    ev_status status = EV_OK;
    for (size_t index = 0; index < MOST_TASKS && status == EV_OK; index++) {
        c->known = 0;
        status = records_each(r, index, "search", note, c, err);
        if (c->known == 0)
            break;
        memset(c->ns, 0, c->capacity * sizeof *c->ns);
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

static ev_status print_json(cmd_context *c, const count *n, bool counted, ev_error *err) {
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

static ev_status print_text(cmd_context *c, const count *n, bool counted, ev_error *err) {
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
    count *n = calloc(1, sizeof *n);
    if (n == NULL)
        return ev_fail_memory(err, sizeof *n);
    bool counted = c->args->operand_count > 0;
    ev_status status = counted ? count_records(n, c->args->operands[0], err) : EV_OK;
    if (status == EV_OK)
        status = cli_flag(c->args, CLI_OPT_JSON) ? print_json(c, n, counted, err)
                                                 : print_text(c, n, counted, err);
    free(n->ns);
    free(n);
    return status;
}
