/* Calls that wait for what runs, as the driver's do: a first launch that has yet to load its
 * kernel, and every call where launches are made to block (EVOKE_STANDIN_LAZY). */
#include "fitness/device/standin/standin.h"

#include <stdlib.h>
#include <string.h>

void sd_block(const sd_context *c, bool *used, bool loads) {
    const char *how = getenv("EVOKE_STANDIN_LAZY");
    bool first = !*used;
    *used = true;
    if (how == NULL || how[0] == '\0' || strcmp(how, "0") == 0)
        return;
    bool eager = loads && sd_get()->config.eager;
    if (strcmp(how, "always") == 0 || (first && !eager))
        sd_wait_context(c);
}
