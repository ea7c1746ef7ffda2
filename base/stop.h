/* Stop: SIGINT or SIGTERM asks a command to end early with the results that it has.
 *
 * One a process, since a signal handler knows no other place; forked children share the request,
 * whichever of them got the signal. */
#ifndef BASE_STOP_H
#define BASE_STOP_H

#include <stdbool.h>

/* From now on the first signal only asks. A later one ends the process, except within half a second
 * of the first: timeout(1) sends its signal to the process and to its group. */
void ev_stop_catch(void);
bool ev_stop_asked(void);
/* Not 0 once a stop was asked for; the same address for the life of the process, but only after
 * ev_stop_catch. */
const volatile int *ev_stop_flag(void);

#endif
