/* For tests that run kernels: CUDA C to PTX through clang-19, and a module of the virtual machine.
 */
#ifndef TESTS_KERNELS_CUDA_BUILD_H
#define TESTS_KERNELS_CUDA_BUILD_H

#include "base/proc.h"
#include "fitness/vm/vm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The PTX of a source; the caller frees the string. */
static inline ev_str cuda_ptx(const char *source) {
    const char *const argv[] = {"clang-19",
                                "-x",
                                "cuda",
                                "-nocudainc",
                                "-nocudalib",
                                "--cuda-device-only",
                                "--cuda-gpu-arch=sm_90",
                                "--cuda-feature=+ptx78",
                                "-Wno-unknown-cuda-version",
                                "-Ikernels/include",
                                "-Ikernels/include/cuda",
                                "-O3",
                                "-S",
                                "-o",
                                "-",
                                source,
                                NULL};
    ev_proc_result result;
    ev_error err = {EV_OK, ""};
    if (ev_proc_run(argv, NULL, 120, &result, &err) != EV_OK)
        fail_msg("%s", err.text);
    if (result.exit_code != 0)
        fail_msg("%s: %s", source, ev_str_text(&result.err));
    ev_str ptx = result.out;
    result.out = (ev_str)EV_STR_EMPTY;
    ev_proc_result_free(&result);
    return ptx;
}

/* The caller frees the module. */
static inline vm_module *cuda_build(const char *source) {
    ev_error err = {EV_OK, ""};
    vm_module *module = NULL;
    ev_str ptx = cuda_ptx(source);
    if (vm_module_load(ev_str_text(&ptx), ptx.length, source, &module, &err) != EV_OK)
        fail_msg("%s", err.text);
    ev_str_free(&ptx);
    return module;
}

/* Runs an entry; a trap fails the test, named by `what`. */
static inline void cuda_launch(vm_memory *memory, const vm_module *module, const vm_entry *entry,
                               const void *params, uint32_t blocks, uint32_t threads,
                               const char *what) {
    ev_error err = {EV_OK, ""};
    vm_launch launch = {.module = module,
                        .entry = entry,
                        .grid = {blocks, 1, 1},
                        .block = {threads, 1, 1},
                        .params = params,
                        .checks = VM_CHECK_ALL};
    vm_result result;
    if (vm_run(memory, &launch, &result, &err) != EV_OK)
        fail_msg("%s", err.text);
    if (!result.ok)
        fail_msg("%s: %s", what, result.trap.message);
}

/* The same with a thread for each of n elements. */
static inline void cuda_run(vm_memory *memory, const vm_module *module, const vm_entry *entry,
                            const void *params, uint32_t n, const char *what) {
    cuda_launch(memory, module, entry, params, (n + 255) / 256, 256, what);
}

#endif
