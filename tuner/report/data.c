/* Report, data: reads the children of a search from the records. */
#include "tuner/report/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- children ---- */

const report_child *report_find(const report_task *t, uint64_t number) {
    size_t low = 0, high = t->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->children[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < t->count && t->children[low].number == number ? &t->children[low] : NULL;
}

/* The faster of "3,17" that passed. */
static uint64_t faster_parent(const report_task *t, const char *parents) {
    const report_child *best = NULL;
    while (*parents != '\0') {
        char *end = NULL;
        const report_child *one = report_find(t, strtoull(parents, &end, 10));
        if (end == parents)
            break;
        if (one != NULL && (best == NULL || one->ns < best->ns))
            best = one;
        parents = *end == ',' ? end + 1 : end;
    }
    return best != NULL ? best->number : REPORT_NO_PARENT;
}

static bool keep_child(report_task *t, const records_evaluation *e) {
    if (t->count == t->capacity) {
        size_t capacity = t->capacity == 0 ? 1024 : 2 * t->capacity;
        report_child *more = realloc(t->children, capacity * sizeof *more);
        if (more == NULL)
            return false;
        t->children = more;
        t->capacity = capacity;
    }
    report_child *child = &t->children[t->count];
    *child = (report_child){.number = e->number,
                            .parent = faster_parent(t, e->parents),
                            .seconds = e->seconds,
                            .ns = e->ns,
                            .error = e->error,
                            .is_bold = e->bold > 0};
    (void)snprintf(child->operators, sizeof child->operators, "%s", e->operators);
    t->count++;
    return true;
}

static void count_stop(report_task *t, const char *name) {
    size_t at = 0;
    while (at < t->stopped_count && strcmp(t->stopped[at].gate, name) != 0)
        at++;
    if (at == REPORT_GATES)
        return;
    if (at == t->stopped_count) {
        (void)snprintf(t->stopped[at].gate, sizeof t->stopped[at].gate, "%s", name);
        t->stopped_count++;
    }
    t->stopped[at].count++;
}

static ev_status note_child(void *context, const records_evaluation *e, ev_error *err) {
    report_task *t = context;
    t->evaluations++;
    t->seconds = e->seconds > t->seconds ? e->seconds : t->seconds;
    count_stop(t, e->gate);
    EV_TRY(tallies_note(&t->edits, e, err));
    bool is_kept = strcmp(e->gate, "none") == 0 && e->ns > 0;
    if (is_kept && !keep_child(t, e))
        return ev_fail_memory(err, 2 * t->capacity * sizeof *t->children);
    return EV_OK;
}

ev_status report_task_read(records *r, size_t index, const char *kernel,
                           const records_winner *winner, report_task *out, ev_error *err) {
    *out = (report_task){.kernel = kernel, .winner = winner};
    ev_status status = EV_OK;
    if (winner != NULL)
        status = ev_json_parse(winner->rows, "rows of a winner", &out->rows, err);
    if (status == EV_OK)
        status = records_each(r, index, "search", note_child, out, err);
    if (status != EV_OK)
        report_task_free(out);
    return status;
}

ev_status report_task_open(report_task *t, ev_error *err) {
    const records_winner *w = t->winner;
    ev_error why;
    ev_status status = task_reopen(w->task_path, w->kernel, w->task_sha256, &t->task, &why);
    if (status == EV_OK)
        return EV_OK;
    t->task = NULL;
    if (status != EV_BAD) {
        *err = why;
        return status;
    }
    (void)snprintf(t->why, sizeof t->why, "%s", why.text);
    return EV_OK;
}

void report_task_free(report_task *t) {
    ev_json_free(t->rows);
    task_free(t->task);
    free(t->children);
    tallies_free(&t->edits);
    *t = (report_task){0};
}

/* ---- questions ---- */

double report_start_ns(const report_task *t) {
    const report_child *first = report_find(t, 0);
    return first != NULL ? first->ns : 0;
}

const report_child *report_fastest(const report_task *t) {
    const report_child *best = NULL;
    for (size_t i = 0; i < t->count; i++) {
        const report_child *child = &t->children[i];
        bool is_better = best == NULL || (best->is_bold && !child->is_bold) ||
                         (best->is_bold == child->is_bold && child->ns < best->ns);
        if (is_better)
            best = child;
    }
    return best;
}

/* By time, then error, then number. */
static int compare_children(const void *a, const void *b) {
    const report_child *x = *(const report_child *const *)a, *y = *(const report_child *const *)b;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    if (x->error != y->error)
        return x->error < y->error ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

ev_status report_mark_front(const report_task *t, bool *on, ev_error *err) {
    const report_child **sorted = malloc((t->count + 1) * sizeof *sorted);
    if (sorted == NULL)
        return ev_fail_memory(err, t->count * sizeof *sorted);
    memset(on, 0, t->count * sizeof *on);
    for (size_t i = 0; i < t->count; i++)
        sorted[i] = &t->children[i];
    qsort(sorted, t->count, sizeof(const report_child *), compare_children);
    double least = -1; /* error of the faster ones; below 0: none yet */
    for (size_t i = 0; i < t->count; i++) {
        if (least >= 0 && sorted[i]->error >= least)
            continue;
        least = sorted[i]->error;
        on[sorted[i] - t->children] = true;
    }
    free(sorted);
    return EV_OK;
}
