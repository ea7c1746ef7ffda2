/* What kernels print (printf of CUDA): kept until the program waits for the device, as on the chip,
 * and then written to stdout. Of a context as much is kept as CU_LIMIT_PRINTF_FIFO_SIZE says; the
 * oldest is lost first. */
#include "fitness/device/standin/standin.h"

#include <stdio.h>
#include <string.h>

/* Until twice as much is there, so that text is not moved at each call. */
static void forget_oldest(ev_str *s, size_t most) {
    if (s->length < 2 * most)
        return;
    memmove(s->data, s->data + s->length - most, most + 1);
    s->length = most;
}

void sd_print(void *launch, const char *text, size_t bytes) {
    sd_entry *e = launch;
    ev_str_append_n(&e->launch.printed, text, bytes);
    forget_oldest(&e->launch.printed, e->launch.print_most);
}

void sd_keep_printed(sd_entry *e) {
    sd_context *c = e->stream->base.context;
    ev_str_append_n(&c->printed, ev_str_text(&e->launch.printed), e->launch.printed.length);
    forget_oldest(&c->printed, c->limits[CU_LIMIT_PRINTF_FIFO_SIZE]);
    ev_str_free(&e->launch.printed);
}

void sd_write_printed(void) {
    size_t at = 0;
    for (sd_context *c = sd_next(SD_CONTEXT, &at); c != NULL; c = sd_next(SD_CONTEXT, &at)) {
        size_t most = c->limits[CU_LIMIT_PRINTF_FIFO_SIZE];
        size_t lost = c->printed.length > most ? c->printed.length - most : 0;
        if (c->printed.length > 0)
            (void)fwrite(c->printed.data + lost, 1, c->printed.length - lost, stdout);
        ev_str_free(&c->printed);
    }
}
