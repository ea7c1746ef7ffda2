/* Front: the non-dominated variants of a whole search on (time, error), in the order of time. */
#ifndef TUNER_SEARCH_FRONT_H
#define TUNER_SEARCH_FRONT_H

#include <stddef.h>
#include <stdint.h>

/* A full front loses its slowest member: its error is the least, but its time is of least use. */
#define FRONT_MOST 32

typedef struct front_member {
    uint64_t child;
    double ns, error;
} front_member;

typedef struct front {
    front_member list[FRONT_MOST]; /* fastest first, which is also largest error first */
    size_t count;
} front;

/* Adds a member, unless a member is as good in both time and error. Removes what it dominates. */
void front_add(front *f, front_member m);

#endif
