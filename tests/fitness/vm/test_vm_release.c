/* Buffers given back in any order, hidden buffers, and a module's variables in a buffer of the
 * caller's own: what stands between a driver's memory and the machine's. */
#include "fitness/vm/vm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static ev_error err;

static vm_memory *memory_of(uint64_t bytes) {
    vm_memory *m = NULL;
    assert_int_equal(vm_memory_new(bytes, &m, &err), EV_OK);
    return m;
}

static uint64_t get(vm_memory *m, uint64_t bytes) {
    uint64_t address = 0;
    assert_int_equal(vm_memory_alloc(m, bytes, VM_BUFFER_INOUT, "b", &address, &err), EV_OK);
    return address;
}

static void test_any_order(void **state) {
    (void)state;
    vm_memory *m = memory_of(1 << 20);
    uint64_t a = get(m, 1000), b = get(m, 5000), c = get(m, 100);
    memset(vm_memory_host(m, b), 7, 5000);
    assert_true(vm_memory_release(m, b));
    assert_false(vm_memory_release(m, b));
    assert_false(vm_memory_release(m, a + 4));
    assert_null(vm_memory_host(m, b));
    assert_int_equal(get(m, 6000) > c, 1); /* does not fit the hole */
    uint64_t again = get(m, 4999);
    assert_int_equal(again, b);
    const char *bytes = vm_memory_host(m, again);
    for (int i = 0; i < 4999; i++)
        assert_int_equal(bytes[i], 0);
    assert_int_equal(vm_memory_bytes(m, c), 100);
    vm_memory_clear(m);
    assert_int_equal(get(m, 64), a);
    vm_memory_free(m);
}

static void test_no_growth(void **state) {
    (void)state;
    vm_memory *m = memory_of(1 << 20);
    uint64_t keep = get(m, 300);
    for (int i = 0; i < 100; i++) { /* ten times what the device has */
        uint64_t x = get(m, 100000), y = get(m, 200000);
        assert_true(vm_memory_release(m, x));
        assert_true(vm_memory_release(m, y));
    }
    assert_int_equal(vm_memory_bytes(m, keep), 300);
    vm_memory_free(m);
}

static const char TEXT[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".global .u32 total = 40;\n.const .u32 step = 2;\n"
    ".visible .entry add(.param .u64 out)\n{\n.reg .b32 %r<4>;\n.reg .b64 %d<4>;\n"
    "ld.param.u64 %d1, [out];\nld.global.u32 %r1, [total];\nld.const.u32 %r2, [step];\n"
    "add.u32 %r1, %r1, %r2;\nst.global.u32 [total], %r1;\nst.global.u32 [%d1], %r1;\nret;\n}\n";

static vm_result launch(vm_memory *m, const vm_module *module, uint64_t globals, uint64_t out) {
    vm_launch l = {.module = module,
                   .entry = vm_module_find(module, "add"),
                   .grid = {1, 1, 1},
                   .block = {1, 1, 1},
                   .params = &out,
                   .globals = globals};
    vm_result r;
    assert_int_equal(vm_run(m, &l, &r, &err), EV_OK);
    return r;
}

/* Two instances of one module keep variables of their own, also between launches. */
static void test_globals(void **state) {
    (void)state;
    vm_memory *m = memory_of(1 << 20);
    vm_module *module = NULL;
    if (vm_module_load(TEXT, strlen(TEXT), "ptx", &module, &err) != EV_OK)
        fail_msg("%s", err.text);
    vm_variable total, step;
    assert_true(vm_module_variable(module, "total", &total));
    assert_true(vm_module_variable(module, "step", &step));
    assert_false(vm_module_variable(module, "nothing", &step));
    vm_variable named = {0};
    size_t count = 0;
    for (const char *name; (name = vm_module_variable_name(module, count, &named)) != NULL; count++)
        assert_int_equal(named.bytes, strcmp(name, "total") == 0 ? total.bytes : step.bytes);
    assert_int_equal(count, 2);
    assert_int_equal(total.space, VM_SPACE_GLOBAL);
    assert_int_equal(step.space, VM_SPACE_CONST);
    assert_int_equal(vm_module_version(module), 80);
    uint64_t place[2], out = get(m, 4), bytes = 0;
    for (int i = 0; i < 2; i++) {
        place[i] = get(m, vm_module_global_bytes(module));
        vm_module_place(module, place[i], vm_memory_host(m, place[i]));
    }
    const uint32_t *got = vm_memory_host(m, out);
    assert_true(launch(m, module, place[0], out).ok);
    assert_true(launch(m, module, place[0], out).ok);
    assert_int_equal(*got, 44);
    assert_true(launch(m, module, place[1], out).ok);
    assert_int_equal(*got, 42);
    *(uint32_t *)((char *)vm_module_constants(module, &bytes) + step.offset) = 10;
    assert_true(launch(m, module, place[1], out).ok);
    assert_int_equal(*got, 52);
    assert_true(vm_memory_hide(m, out, true));
    assert_int_equal(launch(m, module, place[1], out).trap.kind, VM_TRAP_OUT_OF_BOUNDS);
    assert_true(vm_memory_hide(m, out, false));
    assert_true(launch(m, module, place[1], out).ok);
    vm_module_free(module);
    vm_memory_free(m);
}

static void test_unified(void **state) {
    (void)state;
    vm_memory *m = NULL;
    assert_int_equal(vm_memory_new_unified(1 << 20, &m, &err), EV_OK);
    uint64_t a = get(m, 64);
    assert_int_equal((uintptr_t)vm_memory_host(m, a) == a, vm_memory_is_unified(m));
    vm_memory *second = NULL; /* that place is taken */
    assert_int_equal(vm_memory_new_unified(1 << 20, &second, &err), EV_OK);
    assert_false(vm_memory_is_unified(m) && vm_memory_is_unified(second));
    vm_memory_free(second);
    vm_memory_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_no_growth),
        cmocka_unit_test(test_globals),
        cmocka_unit_test(test_unified),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
