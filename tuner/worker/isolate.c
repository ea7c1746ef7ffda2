/* Isolate: sets LLVM's handler in the child. */
#include "tuner/worker/isolate.h"

#include "ir/ir.h"

typedef struct request {
    isolate_work *work;
    void *context;
} request;

static void on_fatal(const char *reason) {
    ev_error err = {0};
    (void)ev_fail(&err, EV_BAD, "LLVM gave up: %.400s", reason);
    ev_child_leave(err.text);
}

static ev_status work_with_handler(void *context, ev_str *out, ev_error *err) {
    const request *r = context;
    ir_set_fatal_handler(on_fatal);
    return r->work(r->context, out, err);
}

ev_status isolate_run(isolate_work *work, void *context, double seconds, ev_str *out,
                      ev_error *err) {
    request r = {work, context};
    const ev_child child = {.what = "building",
                            .work = work_with_handler,
                            .context = &r,
                            .seconds = seconds,
                            .death = EV_BAD};
    return ev_child_run(&child, out, err);
}
