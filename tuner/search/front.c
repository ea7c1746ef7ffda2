/* Front: keeps the non-dominated members in order of time. */
#include "tuner/search/front.h"

#include <stdbool.h>
#include <string.h>

/* Whether `a` is at least as good as `b` in time and in error. */
static bool covers(const front_member *a, const front_member *b) {
    return a->ns <= b->ns && a->error <= b->error;
}

void front_add(front *f, front_member m) {
    size_t kept = 0, at = 0;
    for (size_t i = 0; i < f->count; i++)
        if (covers(&f->list[i], &m))
            return;
    for (size_t i = 0; i < f->count; i++)
        if (!covers(&m, &f->list[i]))
            f->list[kept++] = f->list[i];
    f->count = kept;
    while (at < f->count && f->list[at].ns < m.ns)
        at++;
    if (at == FRONT_MOST)
        return;
    size_t behind = (f->count < FRONT_MOST ? f->count : FRONT_MOST - 1) - at;
    memmove(&f->list[at + 1], &f->list[at], behind * sizeof *f->list);
    f->list[at] = m;
    f->count = at + 1 + behind;
}
