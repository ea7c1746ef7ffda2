/* Looks PTX versions up in the table of drivers. */
#include "base/ptx/versions.h"

#include <stddef.h>

static const ev_ptx_row rows[] = {
#define PTX_VERSION(cuda, branch, ptx) {cuda, branch, ptx},
#include "base/ptx/versions.def"
#undef PTX_VERSION
};

#define ROW_COUNT (sizeof rows / sizeof rows[0])

int ev_ptx_taken(int cuda) {
    int taken = 0;
    if (cuda / 10 > rows[ROW_COUNT - 1].cuda / 10)
        return EV_PTX_ANY;
    for (size_t i = 0; i < ROW_COUNT; i++)
        taken = cuda >= rows[i].cuda ? rows[i].ptx : taken;
    return taken;
}

const ev_ptx_row *ev_ptx_needs(int ptx) {
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (rows[i].ptx >= ptx)
            return &rows[i];
    }
    return NULL;
}
