/* Workload: the table of layer times that Dally and Chakra's text converter read.
 *
 * Line 1 is DATA (data parallel), line 2 the number of layers. Then each layer has a line of 12
 * columns: name, a dependency (-1), forward time, collective, bytes, input-gradient time,
 * collective, bytes, weight-gradient time, collective, bytes, update time. Dally's times are
 * nanoseconds, Chakra's microseconds; both are whole numbers. The format has no comments. */
#ifndef TUNER_EXPORTS_WORKLOAD_H
#define TUNER_EXPORTS_WORKLOAD_H

#include "base/arena.h"
#include "base/str.h"
#include "tuner/exports/network.h"

#define WORKLOAD_COLLECTIVES 3 /* behind forward, input gradient and weight gradient */

typedef struct workload_row {
    const char *name, *dependency;
    double ns[LAYER_PHASES];
    const char *collective[WORKLOAD_COLLECTIVES];
    double bytes[WORKLOAD_COLLECTIVES];
} workload_row;

typedef struct workload {
    workload_row *rows;
    size_t count;
} workload;

/* The arena owns the rows. `unit_ns`: nanoseconds of the file's unit. EV_BAD: FILE:LINE and what is
 * wrong there. */
ev_status workload_read(ev_arena *arena, const char *path, double unit_ns, workload *out,
                        ev_error *err) EV_CHECKED;
/* The rows of a network that has them, with times of 0. */
ev_status workload_of(ev_arena *arena, const network *net, workload *out, ev_error *err) EV_CHECKED;

workload_row *workload_find(const workload *w, const char *name);   /* in either case; NULL: none */
bool workload_is_twice(const workload *w, const workload_row *row); /* another row has its name */
/* Sum of all four times of all layers. */
double workload_ns(const workload *w);
/* Bytes that a rank of very many sends in an iteration, rings assumed: an ALLREDUCE of n bytes
 * takes 2 n, another collective n (Patarasuk and Yuan 2009). */
double workload_traffic(const workload *w);

/* Appends the table. A time is rounded to the unit, and is at least 1 where it is not 0. */
void workload_print(const workload *w, double unit_ns, ev_str *out);

#endif
