/* The request to stop lies in a page that forked children share. */
#include "base/stop.h"

#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <time.h>

#define SAME_REQUEST_NS 500000000L

static volatile int own_flag; /* where there is no shared page */
static volatile int *flag = &own_flag;
static struct timespec first;

static bool is_same_request(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - first.tv_sec) * 1000000000L + (now.tv_nsec - first.tv_nsec) <
           SAME_REQUEST_NS;
}

/* Only calls that are safe in a signal handler. A child whose parent was told before it knows no
 * time of a first signal: that signal is no second request. */
static void on_stop(int number) {
    if (first.tv_sec == 0) {
        (void)clock_gettime(CLOCK_MONOTONIC, &first);
        *flag = 1;
    } else if (!is_same_request()) {
        (void)signal(number, SIG_DFL);
        (void)raise(number);
    }
}

void ev_stop_catch(void) {
    if (flag == &own_flag) {
        void *page =
            mmap(NULL, sizeof *flag, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (page != MAP_FAILED)
            flag = page;
    }
    struct sigaction action = {.sa_handler = on_stop, .sa_flags = SA_RESTART};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaddset(&action.sa_mask, SIGINT);
    (void)sigaddset(&action.sa_mask, SIGTERM);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

bool ev_stop_asked(void) {
    return *flag != 0;
}

const volatile int *ev_stop_flag(void) {
    return flag;
}
