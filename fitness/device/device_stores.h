/* Stores: the sectors of global memory that a launch stores to, for runs without a model. */
#ifndef FITNESS_DEVICE_DEVICE_STORES_H
#define FITNESS_DEVICE_DEVICE_STORES_H

#include "base/status.h"
#include "fitness/vm/vm.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct device_stores {
    vm_observer observer; /* for a launch of the module; points to this struct */
    bool *is_store;       /* per pc */
    uint64_t *sectors;    /* address / 32, in the order of the stores, with repetitions */
    size_t count, room;
    bool failed; /* memory ran out: the list is incomplete */
} device_stores;

/* Prepares *s for one launch. Do not move *s afterwards. Free with device_stores_end. */
ev_status device_stores_begin(device_stores *s, const vm_module *module, ev_error *err) EV_CHECKED;
void device_stores_end(device_stores *s); /* an empty one is fine */

#endif
