/* Launch: the launch of a PTX file by the options of `evoke run` and `evoke profile`.
 *
 * A ptx_launch owns the device, the kernel, the list of buffers and the parameter block;
 * ptx_launch_close frees them. */
#ifndef TUNER_CLI_LAUNCH_H
#define TUNER_CLI_LAUNCH_H

#include "base/status.h"
#include "fitness/device/device.h"
#include "tuner/cli/cli.h"

#include <jansson.h>

/* How an argument refers to the buffers of other ranks. */
typedef enum ptx_link {
    PTX_LINK_NONE,
    PTX_LINK_PEERS, /* a buffer of its own with the addresses of an argument, by rank */
    PTX_LINK_NEXT,  /* the address of an argument at the next rank */
} ptx_link;

/* An argument of the kernel, or a field of an argument that is a struct. */
typedef struct ptx_argument {
    const char *spec;
    char *text;       /* of a field: the spec without its place; malloc'ed */
    size_t parameter; /* of the kernel */
    size_t field;     /* in the struct; 0 of an argument that is no struct */
    uint32_t offset;  /* in the parameters, in bytes */
    ptx_link link;
    size_t link_to, link_field; /* parameter and field of that argument */
    vm_buffer_kind kind;
    bool is_buffer;
    device_buffer buffer;
    bool is_texture;     /* a texture or surface of the buffer */
    vm_texture texture;  /* without its address */
    unsigned char *data; /* in, inout: the bytes to write; malloc'ed */
    uint64_t bytes;
    uint64_t scalar; /* its bits */
} ptx_argument;

typedef struct ptx_launch {
    const char *path;
    char *ptx;
    size_t ptx_bytes;
    device *device;
    device_kernel *kernel;
    ptx_argument *arguments; /* fields of structs one by one */
    size_t argument_count;
    unsigned char *params;
    launch_geometry geometry;
    device_launch launch; /* of that geometry */
    uint32_t rank, ranks;
} ptx_launch;

/* Reads --device, --entry, --grid, --block, --shared, --checks, --schedule, --jobs and --arg, and
 * prepares everything up to the launch. EV_BAD: the file, the entry, or an argument that does not
 * fit the kernel's parameter (with the parameter's name and size). */
ev_status ptx_launch_open(const char *path, const cli_args *args, ptx_launch *out,
                          ev_error *err) EV_CHECKED;
/* The same for `ranks` launches side by side, to out[0..ranks). Each has its own device, buffers
 * and parameters. */
ev_status ptx_launch_open_ranks(const char *path, const cli_args *args, uint32_t ranks,
                                ptx_launch *out, ev_error *err) EV_CHECKED;
void ptx_launch_close(ptx_launch *l);

/* The contents of out and inout buffers after the launch, as hex, in the order of the arguments. */
ev_status ptx_launch_outputs(const ptx_launch *l, json_t *array, ev_error *err) EV_CHECKED;

/* {"kind":…,"rank":…,"line":…,"block":[…],"thread":[…],"address":…,"message":…}; address null:
 * none. */
json_t *trap_to_json(const vm_trap *trap);
/* Appends the trap's message and place, and the PTX line with a mark below it. */
void trap_print(const vm_trap *trap, const char *path, const vm_module *module, ev_str *out);

json_t *counters_to_json(const vm_counters *from);
ev_status counters_print(const vm_counters *from, ev_str *out, ev_error *err) EV_CHECKED;

#endif
