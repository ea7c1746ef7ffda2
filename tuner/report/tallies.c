/* Tallies: counts what became of the children of each edit and operator. */
#include "tuner/report/tallies.h"

#include <stdlib.h>
#include <string.h>

#define NEUTRAL 0.001 /* relative change of time that counts as none */

static bool keep_ns(tallies *t, uint64_t number, double ns) {
    if (number >= t->capacity) {
        size_t capacity = 2 * (size_t)number + 1024;
        double *more = realloc(t->ns, capacity * sizeof *more);
        if (more == NULL)
            return false;
        memset(more + t->capacity, 0, (capacity - t->capacity) * sizeof *more);
        t->ns = more;
        t->capacity = capacity;
    }
    t->ns[number] = ns;
    t->known++;
    return true;
}

/* The faster parent's time; 0: none is known. */
static double parent_ns(const tallies *t, const char *parents) {
    double best = 0;
    while (*parents != '\0') {
        char *end = NULL;
        unsigned long long number = strtoull(parents, &end, 10);
        double ns = end > parents && number < t->capacity ? t->ns[number] : 0;
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

ev_status tallies_note(tallies *t, const records_evaluation *e, ev_error *err) {
    double parent = parent_ns(t, e->parents);
    if (!keep_ns(t, e->number, strcmp(e->gate, "none") == 0 ? e->ns : 0))
        return ev_fail_memory(err, t->capacity * sizeof *t->ns);
    const char *name = e->operators;
    while (*name != '\0') {
        char one[64];
        size_t length = strcspn(name, ",");
        unsigned arm = 0;
        if (length < sizeof one) {
            memcpy(one, name, length);
            one[length] = '\0';
            if (arm_find(one, &arm))
                note_arm(&t->arms[arm], e, parent);
        }
        name += length + (name[length] == ',');
    }
    return EV_OK;
}

void tallies_next_task(tallies *t) {
    t->known = 0;
    if (t->ns != NULL)
        memset(t->ns, 0, t->capacity * sizeof *t->ns);
}

void tallies_free(tallies *t) {
    free(t->ns);
    t->ns = NULL;
    t->known = t->capacity = 0;
}
