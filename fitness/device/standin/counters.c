/* What kernels read of a device's SM clock and timer: they count on from kernel to kernel, the
 * clock slower against the timer while it is held back. */
#include "fitness/device/standin/standin.h"

#include <math.h>
#include <stdlib.h>

#define FIRST_CYCLES 1000 /* the machine's clock begins there: vm_frame.c */

uint64_t sd_timer_grain(void) {
    const char *text = getenv("EVOKE_STANDIN_TIMER");
    return text != NULL ? strtoull(text, NULL, 10) : 0;
}

/* Up to `now_ns`, and `least_ns` at least: no kernel reads less than one before it did. */
static void count_on(sd_device *d, double now_ns, double least_ns) {
    sd_counters *c = &d->counters;
    double ns = fmax(least_ns, now_ns - c->then_ns);
    c->then_ns = now_ns;
    c->ns += ns;
    c->cycles += ns * 1e-3 * gpu_get(d->g, GPU_BOOST_MHZ) * sd_clock_share();
}

void sd_counters_begin(sd_device *d, double now_ns, sd_entry *e) {
    count_on(d, now_ns, 0);
    e->launch.cycles = (uint64_t)d->counters.cycles;
    e->launch.timer_ns = (uint64_t)d->counters.ns;
}

/* Within a launch the machine counts each warp instruction as a nanosecond, and as a cycle or
 * two. */
void sd_counters_end(sd_device *d, double now_ns, const sd_entry *e) {
    double cycles = FIRST_CYCLES + 2 * (double)e->launch.ticks;
    double mhz = gpu_get(d->g, GPU_BOOST_MHZ) * sd_clock_share();
    count_on(d, now_ns, fmax((double)e->launch.ticks, cycles * 1e3 / mhz));
}
