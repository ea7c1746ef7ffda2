/* Launches of one block for tests of accesses and matrices: modules that differ in one line, a
 * table of places that the test draws, and what the kernel wrote. Errors end the test. */
#ifndef TESTS_FITNESS_VM_SHARED_RIG_H
#define TESTS_FITNESS_VM_SHARED_RIG_H

#include "fitness/ptx/ptx.h"
#include "fitness/vm/vm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RIG_WIDTHS 3 /* 1, 2 and 4 words a lane */

typedef struct shared_rig {
    vm_module *modules[RIG_WIDTHS]; /* NULL: not loaded */
    vm_memory *memory;
    uint64_t table_at, out_at; /* addresses */
    uint32_t *table, *out;     /* the same on the host */
    uint64_t random;
} shared_rig;

/* The caller frees the module. */
static inline vm_module *rig_load_text(const char *text) {
    vm_module *m = NULL;
    ev_error err;
    if (vm_module_load(text, strlen(text), "rig", &m, &err) != EV_OK)
        fail_msg("%s\n%s", err.text, text);
    return m;
}

/* The same of a format with one %s, for `line`. */
static inline vm_module *rig_load(const char *format, const char *line) {
    char ptx[16384];
    int n = snprintf(ptx, sizeof ptx, format, line);
    assert_true(n > 0 && (size_t)n < sizeof ptx);
    return rig_load_text(ptx);
}

static inline void rig_open(shared_rig *r, uint64_t table_words, uint64_t out_words) {
    ev_error err;
    uint64_t word = sizeof(uint32_t);
    assert_int_equal(vm_memory_new(1 << 20, &r->memory, &err), EV_OK);
    assert_int_equal(
        vm_memory_alloc(r->memory, table_words * word, VM_BUFFER_IN, "table", &r->table_at, &err),
        EV_OK);
    assert_int_equal(
        vm_memory_alloc(r->memory, out_words * word, VM_BUFFER_OUT, "out", &r->out_at, &err),
        EV_OK);
    r->table = vm_memory_host(r->memory, r->table_at);
    r->out = vm_memory_host(r->memory, r->out_at);
}

/* The same kernel with each of the lines, one a width. */
static inline void rig_load_widths(shared_rig *r, const char *format,
                                   const char *const lines[RIG_WIDTHS]) {
    for (unsigned k = 0; k < RIG_WIDTHS; k++)
        r->modules[k] = rig_load(format, lines[k]);
}

static inline void rig_close(shared_rig *r) {
    for (unsigned k = 0; k < RIG_WIDTHS; k++)
        vm_module_free(r->modules[k]);
    vm_memory_free(r->memory);
}

static inline uint32_t rig_draw(shared_rig *r, uint32_t below) {
    r->random = r->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(r->random >> 33) % below;
}

/* Runs the kernel `k` of one block with all checks. */
static inline vm_result rig_launch(vm_memory *memory, const vm_module *m, uint32_t threads,
                                   const void *params, uint64_t seed) {
    vm_launch launch = {.module = m,
                        .entry = vm_module_find(m, "k"),
                        .grid = {1, 1, 1},
                        .block = {threads, 1, 1},
                        .params = params,
                        .checks = VM_CHECK_ALL,
                        .fuel = 1u << 24,
                        .schedule_seed = seed};
    vm_result result;
    ev_error err;
    if (vm_run(memory, &launch, &result, &err) != EV_OK)
        fail_msg("%s", err.text);
    return result;
}

/* As rig_launch, on memory as it was before the first run. */
static inline vm_result rig_run(shared_rig *r, const vm_module *m, uint32_t threads,
                                const void *params, uint64_t seed) {
    vm_memory_reset(r->memory, 0xcd);
    return rig_launch(r->memory, m, threads, params, seed);
}

static inline void rig_run_well(vm_memory *memory, const vm_module *m, const void *params,
                                const char *what) {
    vm_result r = rig_launch(memory, m, 32, params, 0);
    if (!r.ok)
        fail_msg("%s: %s: %s", what, vm_trap_name(r.trap.kind), r.trap.message);
}

#endif
