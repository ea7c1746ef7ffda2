/* Course, floor: ends a search that has no more to gain, by the floors that the task's declared
 * work gives its timed cases. */
#include "tuner/run/tune_inside.h"

#include "base/str.h"
#include "fitness/gates/floor.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

double course_floor_ns(const course *c, const char *name) {
    for (size_t i = 0; i < c->ready->floor_count; i++) {
        if (strcmp(c->ready->floors[i].name, name) == 0)
            return c->ready->floors[i].ns;
    }
    return 0;
}

static bool has_time(const score *s, const char *name) {
    for (size_t i = 0; i < s->case_count; i++) {
        if (s->cases[i].ns > 0 && strcmp(s->cases[i].name, name) == 0)
            return true;
    }
    return false;
}

double course_floor_share(const course *c, const score *s) {
    double least = INFINITY;
    for (size_t i = 0; i < c->t->case_count; i++) {
        const task_case *at = &c->t->cases[i];
        if (at->split == CORPUS_SEARCH && at->use == TASK_TIME && !has_time(s, at->name))
            return 0;
    }
    for (size_t i = 0; i < s->case_count; i++) { /* drawn cases, too */
        if (s->cases[i].ns > 0)
            least = fmin(least, course_floor_ns(c, s->cases[i].name) / s->cases[i].ns);
    }
    return isfinite(least) ? least : 0;
}

ev_status course_note_floor(course *c, uint64_t child, const on_way *w, const search_verdict *v,
                            ev_error *err) {
    bool counts = v->outcome.origin == SEARCH_TIMED && v->outcome.stopped == GATE_NONE &&
                  (w->result.bold == 0 || c->run->options->bold);
    if (c->at_floor || !counts || w->floor_share * (1 + FLOOR_NEAR) < 1)
        return EV_OK;
    ev_str note = EV_STR_EMPTY;
    c->at_floor = true;
    ev_str_printf(&note,
                  "child %" PRIu64 " reaches %.0f %% of the floor that the task declares, or more, "
                  "on every timed case: the search stops, since no variant can be faster by more",
                  child, 100 * w->floor_share);
    ev_status status = ev_str_status(&note, err);
    if (status == EV_OK)
        course_display(c, ev_str_text(&note));
    ev_str_free(&note);
    return status;
}
