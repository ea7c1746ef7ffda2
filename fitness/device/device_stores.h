/* Stores: which sectors of global memory a launch stores to, for runs that no model listens to. */
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
    uint64_t *sectors;    /* address / 32, as they were stored to: often more than once */
    size_t count, room;
    bool failed; /* memory ran out meanwhile: the list is not whole */
} device_stores;

/* Ready to listen to one launch; stays where it is. Free with device_stores_end. */
ev_status device_stores_begin(device_stores *s, const vm_module *module, ev_error *err) EV_CHECKED;
void device_stores_end(device_stores *s); /* an empty one is fine */

#endif
