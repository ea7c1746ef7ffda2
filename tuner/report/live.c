/* Live: writes the page of a run again and again. Each page replaces the one before in one step, so
 * that a browser never reads half a page. */
#include "tuner/report/live.h"

#include "base/file.h"
#include "base/proc.h"
#include "tuner/report/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#define MOST_SHARE 0.05 /* of the time that goes into writing pages */

struct report_live {
    const char *path, *records;
    double seconds; /* between two pages */
    double due;     /* on the monotonic clock */
};

static ev_status write_state(const report_live *live, const report_state *state, ev_error *err) {
    ev_str page = EV_STR_EMPTY;
    ev_status status = report_run(live->records, state, &page, err);
    if (status == EV_OK)
        status = ev_file_write(live->path, ev_str_text(&page), page.length, err);
    ev_str_free(&page);
    return status;
}

static ev_status write_live(report_live *live, const char *text, ev_error *err) {
    double began = ev_clock_now();
    const report_state state = {.text = text, .is_live = true, .stamp = (int64_t)time(NULL)};
    ev_status status = write_state(live, &state, err);
    double end = ev_clock_now();
    live->due = end + fmax(live->seconds, (end - began) / MOST_SHARE);
    return status;
}

ev_status report_live_new(const char *path, const char *records, double seconds, report_live **out,
                          ev_error *err) {
    report_live *live = calloc(1, sizeof *live);
    if (live == NULL)
        return ev_fail_memory(err, sizeof *live);
    *live = (report_live){.path = path, .records = records, .seconds = seconds};
    ev_status status = write_live(live, "The run begins.", err);
    if (status != EV_OK) {
        report_live_free(live);
        return status;
    }
    *out = live;
    return EV_OK;
}

void report_live_show(report_live *live, const tune_progress *now) {
    ev_error ignored;
    ev_str text = EV_STR_EMPTY;
    if (ev_clock_now() < live->due)
        return;
    ev_str_printf(&text, "The run goes on: %s, kernel %zu of %zu, %" PRIu64, now->kernel,
                  now->task_index + 1, now->task_count, now->evaluations);
    if (now->budget > 0)
        ev_str_printf(&text, " of %" PRIu64, now->budget);
    ev_str_printf(&text, " evaluations, %.0f s since the run began.", now->seconds);
    ev_status status = write_live(live, ev_str_text(&text), &ignored);
    (void)status; /* the next page, or the last, tells */
    ev_str_free(&text);
}

ev_status report_live_end(report_live *live, const char *words, ev_error *err) {
    const report_state state = {.text = words};
    return write_state(live, &state, err);
}

void report_live_free(report_live *live) {
    free(live);
}
