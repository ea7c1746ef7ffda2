/* Groups: several ranks of one virtual machine, or of GPUs, behind the interface of one device.
 *
 * A buffer of a group is spread over some of its ranks in equal parts; offsets count through rank
 * 0's part, then rank 1's, and so on. A launch of a group has device_launch.ranks and rank_params,
 * and runs on that many ranks side by side. Its counters are the sums over the ranks, and its time
 * is that of the slowest rank on one node; on GPUs, it goes from the first rank's begin to the last
 * one's end. All blocks run. */
#ifndef FITNESS_DEVICE_DEVICE_GROUP_H
#define FITNESS_DEVICE_DEVICE_GROUP_H

#include "fitness/device/device.h"

#define DEVICE_GROUP_MOST 8u

/* `most`: ranks, 1 to DEVICE_GROUP_MOST. Errors as of device_open_ranks. */
ev_status device_open_group(const char *id, uint32_t most, device **out, ev_error *err) EV_CHECKED;
uint32_t device_group_count(const device *d); /* 0: the device is no group */
/* The number of ranks that buffers are spread over from here on; their bytes must be a multiple of
 * it. */
void device_group_spread(device *d, uint32_t ranks);
/* The address of a rank's part of a buffer. */
uint64_t device_group_address(const device *d, device_buffer buffer, uint32_t rank);

#endif
