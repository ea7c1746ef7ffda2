/* Holding the stream while the host fills it: a kernel that waits for the host stands before a
 * batch, so that the host's own pace is in no time.
 *
 * A held stream may deadlock. The driver makes a call wait for the kernels that run where that call
 * has yet to load code (CUDA_MODULE_LOADING=LAZY), where launches are made to block, where a
 * profiler brackets each launch, and where the queue is full; the kernel waits for the host
 * meanwhile. So modules are loaded eagerly (driver.c), batches keep below the queue's length and
 * begin with code that has run before (cuda_time.c), the rest is refused by name, and a thread lets
 * the stream go after a while whatever happens. */
#include "fitness/device/cuda/cuda.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HOLD_SECONDS 2 /* a batch is queued in a few milliseconds */
#define BROKEN_MOST 2  /* holds that had to be ended, until there are no more */

static bool is_set(const char *variable) {
    const char *value = getenv(variable);
    return value != NULL && value[0] != '\0' && strcmp(value, "0") != 0;
}

/* ---- what stands against it ---- */

/* Variables of the driver that make calls wait for what runs, or that load a profiler. */
static const char *const AGAINST[] = {
    "CUDA_LAUNCH_BLOCKING", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH",
    "COMPUTE_PROFILE",      "CUDA_PROFILE",
};

ev_status cuda_may_hold(cuda_device *c, ev_error *err) {
    c->never_holds = c->never_holds || is_set(DEVICE_NO_HOLD);
    for (size_t i = 0; i < sizeof AGAINST / sizeof AGAINST[0] && !c->never_holds; i++) {
        if (is_set(AGAINST[i]))
            return ev_fail(err, EV_INFRA,
                           "%s: %s is set, so a timing would wait for ever: a kernel holds the "
                           "queue while launches are given to it; unset %s, or measure with "
                           "--no-hold",
                           c->base.properties.id, AGAINST[i], AGAINST[i]);
    }
    return EV_OK;
}

/* ---- the watchdog ---- */

static void let_go(const cuda_device *c) {
    __atomic_store_n(c->flag, 1, __ATOMIC_SEQ_CST);
}

static void *watch(void *context) {
    cuda_device *c = context;
    cuda_watch *w = &c->watch;
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += HOLD_SECONDS;
    (void)pthread_mutex_lock(&w->lock);
    int result = 0;
    while (!w->over && result != ETIMEDOUT)
        result = pthread_cond_timedwait(&w->ended, &w->lock, &until);
    w->broken = !w->over;
    if (w->broken)
        let_go(c);
    (void)pthread_mutex_unlock(&w->lock);
    return NULL;
}

static bool watch_begin(cuda_device *c) {
    cuda_watch *w = &c->watch;
    w->over = w->broken = false;
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_cond_init(&w->ended, NULL);
    w->runs = pthread_create(&w->thread, NULL, watch, c) == 0;
    return w->runs;
}

static void watch_end(cuda_watch *w) {
    (void)pthread_mutex_lock(&w->lock);
    w->over = true;
    (void)pthread_cond_signal(&w->ended);
    (void)pthread_mutex_unlock(&w->lock);
    (void)pthread_join(w->thread, NULL);
    (void)pthread_cond_destroy(&w->ended);
    (void)pthread_mutex_destroy(&w->lock);
    w->runs = false;
}

/* ---- one hold ---- */

CUresult cuda_hold(cuda_device *c) {
    if (c->never_holds || !watch_begin(c))
        return CUDA_SUCCESS;
    *c->flag = 0;
    return cuda_launch_hold(c);
}

bool cuda_let_go(cuda_device *c) {
    let_go(c);
    if (!c->watch.runs)
        return false;
    watch_end(&c->watch);
    if (!c->watch.broken)
        return false;
    c->never_holds = ++c->holds_broken >= BROKEN_MOST;
    (void)fprintf(stderr,
                  "evoke: %s: a batch could not be queued within %d s behind the kernel that holds "
                  "the queue, and is thrown away; %s\n",
                  c->base.properties.id, HOLD_SECONDS,
                  c->never_holds ? "the next ones aren't held (as with --no-hold)"
                                 : "the next one is held again");
    return true;
}
