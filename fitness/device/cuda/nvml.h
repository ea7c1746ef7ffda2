/* Clocks and throttling of a GPU, through NVIDIA's management library if it is installed. */
#ifndef FITNESS_DEVICE_CUDA_NVML_H
#define FITNESS_DEVICE_CUDA_NVML_H

#include <stdbool.h>

typedef struct nvml nvml;

/* Opens a GPU by PCI bus id ("0000:01:00.0"). NULL: no library, or the library does not know the
 * GPU. */
nvml *nvml_open(const char *bus_id);
void nvml_close(nvml *n);        /* NULL is fine */
unsigned nvml_sm_clock(nvml *n); /* MHz now; 0: not known, as with NULL */
/* True if power, heat or the board holds the clock back now; false if not known. */
bool nvml_is_throttled(nvml *n);

#endif
