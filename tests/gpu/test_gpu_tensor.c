/* The matrix kernels that a GPU is held against: every matrix instruction of the PTX table is in
 * one of them, and each is one that the virtual machine takes, runs, and does not leave as it was.
 */
#include "fitness/ptx/ptx_load.h"
#include "tests/gpu/tensor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool is_matrix(unsigned row) {
    static const char *const names[] = {"mma", "wmma", "ldmatrix", "stmatrix", "movmatrix"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(ptx_op_get(row)->name, names[i]) == 0)
            return true;
    }
    return false;
}

static void note_rows(const tensor_kernel *t, bool *seen) {
    ev_error err;
    vm_module *m = NULL;
    if (vm_module_load(ev_str_text(&t->ptx), t->ptx.length, t->name, &m, &err) != EV_OK)
        fail_msg("%s\n%s", err.text, ev_str_text(&t->ptx));
    for (size_t pc = 0; pc < vm_module_insn_count(m); pc++)
        seen[m->code[pc].row] = true;
    vm_module_free(m);
}

static void every_row(void **state) {
    tensor_kernel *t = *state;
    bool seen[PTX_OP_COUNT] = {false};
    for (size_t i = 0; i < tensor_count(); i++) {
        tensor_make(i, t);
        note_rows(t, seen);
        ev_str_free(&t->ptx);
    }
    for (unsigned row = 0; row < PTX_OP_COUNT; row++) {
        if (is_matrix(row) && !seen[row])
            fail_msg("no kernel has %s %s", ptx_op_get(row)->name, ptx_op_get(row)->format);
    }
}

/* A device that gives its input back would agree with itself. */
static void each_works(void **state) {
    tensor_kernel *t = *state;
    ev_error err;
    device *d = NULL;
    assert_int_equal(device_open("vm:h200", &d, &err), EV_OK);
    for (size_t i = 0; i < tensor_count(); i++) {
        device_buffer in = 0, out = 0;
        device_kernel *k = NULL;
        device_outcome ended;
        uint8_t got[4096], none[4096] = {0};
        tensor_make(i, t);
        device_clear(d);
        assert_int_equal(device_alloc(d, t->in, VM_BUFFER_IN, "in", &in, &err), EV_OK);
        assert_int_equal(device_alloc(d, t->out, VM_BUFFER_OUT, "out", &out, &err), EV_OK);
        assert_int_equal(device_write(d, in, 0, t->input, t->in, &err), EV_OK);
        if (device_load(d, ev_str_text(&t->ptx), t->ptx.length, NULL, &k, &err) != EV_OK)
            fail_msg("%s", err.text);
        const uint64_t params[] = {device_address(d, in), device_address(d, out)};
        device_launch l = {.grid = {1, 1, 1},
                           .block = {TENSOR_LANES, 1, 1},
                           .params = params,
                           .checks = VM_CHECK_ALL};
        assert_int_equal(device_run(d, k, &l, &ended, &err), EV_OK);
        if (!ended.ok)
            fail_msg("%s: %s", t->name, ended.fault.message);
        assert_int_equal(device_read(d, out, 0, got, t->out, &err), EV_OK);
        if (memcmp(got, none, t->out) == 0 || memcmp(got, t->input, t->out) == 0)
            fail_msg("%s: nothing happened", t->name);
        device_unload(k);
        ev_str_free(&t->ptx);
    }
    device_close(d);
}

static int set_up(void **state) {
    *state = malloc(sizeof(tensor_kernel));
    return *state == NULL;
}

static int tear_down(void **state) {
    free(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row),
        cmocka_unit_test(each_works),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
