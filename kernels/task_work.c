/* Work: reads what a task says must be moved and computed, and evaluates it at a case. */
#include "kernels/task_private.h"

#include <stdio.h>

/* Rounding of an expression in double precision */
#define SLACK 1e-9

static const char *const UNIT_KEYS[TASK_UNIT_COUNT] = {
#define UNIT(id, key, peak, words) key,
#include "kernels/units.def"
#undef UNIT
};

static const char *const UNIT_WORDS[TASK_UNIT_COUNT] = {
#define UNIT(id, key, peak, words) words,
#include "kernels/units.def"
#undef UNIT
};

const char *task_unit_name(task_unit unit) {
    return UNIT_KEYS[unit];
}

const char *task_unit_words(task_unit unit) {
    return UNIT_WORDS[unit];
}

ev_status task_work_read(task_loader *l) {
    const json_t *value = json_object_get(l->doc->root, "work");
    const task_table *table = &TASK_TABLE_WORK;
    task_work *to = &l->t->work;
    char at[TASK_MAX_WHERE];
    if (value == NULL)
        return EV_OK;
    EV_TRY(ev_json_check(l->doc, value, "work", table->keys, table->count, l->err));
    to->doc = ev_arena_strdup(l->arena, ev_json_text(value, "doc", ""));
    EV_TRY(task_read_expression(l, json_object_get(value, "bytes"), "work.bytes", &to->bytes));
    const json_t *over = json_object_get(value, "link_bytes");
    if (over != NULL && l->t->ranks == NULL)
        return ev_json_fail(l->doc, "work.link_bytes", l->err,
                            "a task without \"ranks\" has no links; leave it out");
    if (over != NULL)
        EV_TRY(task_read_expression(l, over, "work.link_bytes", &to->link_bytes));
    for (int unit = 0; unit < TASK_UNIT_COUNT; unit++) {
        const json_t *given = json_object_get(value, UNIT_KEYS[unit]);
        (void)snprintf(at, sizeof at, "work.%s", UNIT_KEYS[unit]);
        if (given != NULL)
            EV_TRY(task_read_expression(l, given, at, &to->operations[unit]));
    }
    return EV_OK;
}

static ev_status amount_of(const task *t, const char *expression, const char *key,
                           const task_case *c, double *out, ev_error *err) {
    task_scope room;
    expr_value value;
    ev_status status = task_case_scope(t, c, &room, err);
    if (status == EV_OK)
        status = expr_eval(expression, &room.scope, &value, err);
    if (status == EV_OK && !(value.real >= 0))
        status =
            ev_fail(err, EV_BAD, "expression \"%.200s\" is %.17g; an amount is 0 or more, mend it",
                    expression, value.real);
    if (status != EV_OK)
        return ev_wrap(err, status, "case %s, work, %s", c->name, key);
    *out = value.real;
    return EV_OK;
}

ev_status task_work_of(const task *t, const task_case *c, task_amounts *out, ev_error *err) {
    *out = (task_amounts){.is_declared = t->work.bytes != NULL};
    if (!out->is_declared)
        return EV_OK;
    EV_TRY(amount_of(t, t->work.bytes, "bytes", c, &out->bytes, err));
    if (t->work.link_bytes != NULL)
        EV_TRY(amount_of(t, t->work.link_bytes, "link_bytes", c, &out->link_bytes, err));
    for (int unit = 0; unit < TASK_UNIT_COUNT; unit++) {
        if (t->work.operations[unit] != NULL)
            EV_TRY(amount_of(t, t->work.operations[unit], UNIT_KEYS[unit], c,
                             &out->operations[unit], err));
    }
    return EV_OK;
}

/* ---- checks ---- */

/* The bytes of reading each input and writing each output once, on one rank. */
static ev_status bytes_once(const task *t, const task_case *c, double *out, ev_error *err) {
    uint32_t ranks = 1;
    *out = 0;
    EV_TRY(task_ranks_of(t, c, &ranks, err));
    for (size_t i = 0; i < t->argument_count + t->symbol_count; i++) {
        const task_argument *a = &t->arguments[i];
        uint64_t count = 0;
        if (a->kind == TASK_SCALAR)
            continue;
        EV_TRY(task_argument_count_of(t, a, c, &count, err));
        uint64_t own = count / ranks;
        double bytes = (double)own * (double)ev_type_bytes(a->type);
        *out += a->kind == TASK_INOUT ? 2 * bytes : bytes;
    }
    return EV_OK;
}

ev_status task_work_check(const task *t, const ev_json *doc, const task_case *c, ev_error *err) {
    task_amounts amounts;
    double once = 0;
    ev_status status = task_work_of(t, c, &amounts, err);
    if (status == EV_OK && amounts.is_declared)
        status = bytes_once(t, c, &once, err);
    if (status == EV_BAD) {
        ev_error why = *err;
        return ev_json_fail(doc, "work", err, "%s", why.text);
    }
    EV_TRY(status);
    if (amounts.is_declared && amounts.bytes > once * (1 + SLACK))
        return ev_json_fail(doc, "work.bytes", err,
                            "case %s: %.17g bytes, but reading each input and writing each output "
                            "once moves only %.17g; declare no more than must move",
                            c->name, amounts.bytes, once);
    return EV_OK;
}
