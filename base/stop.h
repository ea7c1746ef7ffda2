/* Stop: SIGINT or SIGTERM asks a command to end early with the results that it has.
 *
 * The request is global to the process, because a signal handler has no context. Forked children
 * share the request, whichever of them got the signal. */
#ifndef BASE_STOP_H
#define BASE_STOP_H

#include <stdbool.h>

/* Installs the handlers. The first signal sets the request. A later signal ends the process, except
 * within half a second of the first: timeout(1) signals both the process and its group. */
void ev_stop_catch(void);
bool ev_stop_asked(void);
/* The value is not 0 after a request. After ev_stop_catch, the address is the same for the life of
 * the process. */
const volatile int *ev_stop_flag(void);

#endif
