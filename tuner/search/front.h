/* Front: the non-dominated variants of a whole search on (time, error), kept as they come. */
#ifndef TUNER_SEARCH_FRONT_H
#define TUNER_SEARCH_FRONT_H

#include <stddef.h>
#include <stdint.h>

#define FRONT_MOST                                                                                 \
    32 /* beyond it the slowest goes: its error is the least, its time of least use */

typedef struct front_member {
    uint64_t child;
    double ns, error;
} front_member;

typedef struct front {
    front_member list[FRONT_MOST]; /* fastest first, so the least error last */
    size_t count;
} front;

/* Takes it unless one that is there is as good in both; what it beats goes. */
void front_add(front *f, front_member m);

#endif
