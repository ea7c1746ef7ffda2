/* What the tests of the zoo share. */
#include "tests/fitness/vm/zoo.h"
#include "base/file.h"
#include "base/proc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

int32_t zoo_input(int i) {
    return (i * 37 + 11) % 101;
}

static void *buffer(vm_memory *m, vm_buffer_kind kind, const char *name, uint64_t bytes,
                    uint64_t *address) {
    ev_error err;
    assert_int_equal(vm_memory_alloc(m, bytes, kind, name, address, &err), EV_OK);
    return vm_memory_host(m, *address);
}

zoo *zoo_new(void) {
    zoo *z = calloc(1, sizeof *z);
    ev_error err;
    assert_non_null(z);
    assert_int_equal(vm_memory_new(1 << 20, &z->memory, &err), EV_OK);
    z->in = buffer(z->memory, VM_BUFFER_IN, "in", (uint64_t)ZOO_N * 4, &z->in_at);
    z->out = buffer(z->memory, VM_BUFFER_OUT, "out", (uint64_t)ZOO_N * 4, &z->out_at);
    z->both = buffer(z->memory, VM_BUFFER_INOUT, "both", (uint64_t)ZOO_N * 4, &z->both_at);
    (void)buffer(z->memory, VM_BUFFER_INOUT, "odd", ZOO_ODD, &z->odd_at);
    for (int i = 0; i < ZOO_N; i++)
        z->in[i] = zoo_input(i);
    return z;
}

void zoo_free(zoo *z) {
    vm_memory_free(z->memory);
    free(z);
}

vm_result zoo_run(zoo *z, const vm_module *m, const vm_entry *entry, const zoo_launch *how) {
    uint64_t params[4] = {z->in_at, z->out_at, z->both_at, z->odd_at};
    const int32_t n = ZOO_N;
    if (entry->param_count > 3 && entry->params[3].bytes == 4)
        memcpy(&params[3], &n, sizeof n);
    assert_true(entry->param_bytes <= sizeof params);
    vm_memory_reset(z->memory, 0xcd);
    memset(z->both, 0, (size_t)ZOO_N * 4);
    vm_launch launch = {.module = m,
                        .entry = entry,
                        .grid = {how->blocks, 1, 1},
                        .block = {how->threads, 1, 1},
                        .dynamic_shared = how->shared,
                        .resident_blocks = how->resident,
                        .params = params,
                        .checks = VM_CHECK_ALL,
                        .fuel = how->fuel,
                        .observer = how->observer,
                        .schedule_seed = how->seed};
    vm_result result;
    ev_error err;
    if (vm_run(z->memory, &launch, &result, &err) != EV_OK)
        fail_msg("%s: %s", entry->name, err.text);
    return result;
}

char *zoo_read(const char *path, size_t *bytes) {
    char *text = NULL;
    ev_error err;
    if (ev_file_read(path, &text, bytes, &err) != EV_OK)
        fail_msg("%s", err.text);
    return text;
}

static vm_module *load(const char *text, size_t bytes, const char *name) {
    vm_module *m = NULL;
    ev_error err;
    if (vm_module_load(text, bytes, name, &m, &err) != EV_OK)
        fail_msg("%s", err.text);
    return m;
}

vm_module *zoo_load(const char *path) {
    size_t bytes;
    char *text = zoo_read(path, &bytes);
    vm_module *m = load(text, bytes, path);
    free(text);
    return m;
}

vm_module *zoo_compile(const char *path) {
    const char *const argv[] = {"clang-19",
                                "-w",
                                "-x",
                                "cuda",
                                "--cuda-device-only",
                                "--cuda-gpu-arch=sm_90",
                                "-nocudainc",
                                "-nocudalib",
                                "--cuda-feature=+ptx78",
                                "-O2",
                                "-gline-tables-only",
                                "-S",
                                "-I.",
                                "-o",
                                "-",
                                path,
                                NULL};
    ev_proc_result result;
    ev_error err;
    if (ev_proc_run(argv, NULL, 120, &result, &err) != EV_OK)
        fail_msg("%s", err.text);
    if (result.exit_code != 0)
        fail_msg("%s: %s", path, ev_str_text(&result.err));
    vm_module *m = load(ev_str_text(&result.out), result.out.length, path);
    ev_proc_result_free(&result);
    return m;
}
