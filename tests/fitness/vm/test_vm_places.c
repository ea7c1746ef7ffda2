/* Traps name the nearest buffer, variable or parameter in every space, with the offset. */
#include "fitness/ptx/ptx.h"
#include "fitness/vm/vm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct params {
    uint64_t both, n;
} params;

static const char text[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".global .align 4 .b8 first[12]; .global .align 4 .b8 second[20];\n"
    ".const .align 4 .b8 table[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n"
    ".shared .align 4 .b8 common[16]; .extern .shared .align 16 .b8 more[];\n"
    ".func helper() { .reg .b32 %%r<4>; .local .align 4 .b8 inner[8];\n"
    "ld.local.u32 %%r0, [inner+4]; st.shared.u32 [common], %%r0; ret; }\n"
    ".visible .entry k(.param .u64 both, .param .u64 n) {\n"
    ".shared .align 4 .b8 tile[64]; .shared .align 1 .b8 pad[1]; .shared .align 1 .b8 bytes[64]; "
    ".local .align 4 .b8 "
    "depot[24];\n"
    ".reg .b32 %%r<4>; .reg .b64 %%d<4>; ld.param.u64 %%d0, [both];\n"
    "%s\nret;\n}\n";

typedef struct row {
    const char *body;
    vm_trap_kind kind;
    const char *place;
} row;

static const row rows[] = {
    {"st.global.u32 [%d0+-8], 1;", VM_TRAP_OUT_OF_BOUNDS, "8 bytes before buffer 'both'"},
    {"st.global.u32 [%d0+260], 1;", VM_TRAP_OUT_OF_BOUNDS,
     "offset 260 in buffer 'both' of 256 bytes"},
    {"st.u32 [%d0+260], 1;", VM_TRAP_OUT_OF_BOUNDS,
     "in the window of global memory, offset 260 in buffer 'both' of 256 bytes"},
    {"mov.u64 %d1, 64; st.u32 [%d1], 1;", VM_TRAP_OUT_OF_BOUNDS, "address 0x40 in no window"},
    {"mov.u64 %d1, second; ld.global.u32 %r0, [%d1+20];", VM_TRAP_OUT_OF_BOUNDS,
     "offset 20 in global variable 'second' of 20 bytes"},
    {"mov.u64 %d1, first; st.global.u32 [%d1+12], 1;", VM_TRAP_OUT_OF_BOUNDS,
     "offset 12 in global variable 'first' of 12 bytes"},
    {"mov.u64 %d1, second; st.global.u32 [%d1+-4], 1;", VM_TRAP_OUT_OF_BOUNDS,
     "4 bytes before global variable 'second' of 20 bytes"},
    {"mov.u64 %d1, first; ld.global.u32 %r0, [%d1+6];", VM_TRAP_MISALIGNED,
     "offset 6 in global variable 'first', block"},
    {"ld.shared.u32 %r0, [bytes+8];", VM_TRAP_MISALIGNED,
     "offset 8 in shared variable 'bytes', whose alignment is 1 (__align__ in its declaration "
     "gives "
     "more), block"},
    {"ld.shared.u32 %r0, [bytes+1];", VM_TRAP_MISALIGNED,
     "offset 1 in shared variable 'bytes', block"},
    {"ld.shared.u32 %r0, [tile+8];", VM_TRAP_UNINITIALISED, "offset 8 in shared variable 'tile'"},
    {"ld.shared.u32 %r0, [common+12];", VM_TRAP_UNINITIALISED,
     "offset 12 in shared variable 'common'"},
    {"mov.u32 %r1, more; ld.shared.u32 %r0, [%r1+4];", VM_TRAP_UNINITIALISED,
     "offset 4 in dynamic shared memory"},
    {"mov.u32 %r1, more; ld.shared.u32 %r0, [%r1+36];", VM_TRAP_OUT_OF_BOUNDS,
     "offset 36 in dynamic shared memory of 32 bytes"},
    {"mov.u32 %r1, 0; ld.shared.u32 %r0, [%r1+-4];", VM_TRAP_OUT_OF_BOUNDS,
     "4 bytes before shared variable 'common' of 16 bytes"},
    {"mov.u32 %r1, common; st.shared.u32 [%r1+16], 1;", VM_TRAP_OUT_OF_BOUNDS,
     "offset 16 in shared variable 'common' of 16 bytes"},
    {"mov.u32 %r1, tile; ld.shared.u8 %r0, [%r1+64];", VM_TRAP_OUT_OF_BOUNDS,
     "offset 64 in shared variable 'tile' of 64 bytes"},
    {"mov.u32 %r1, more; atom.shared.add.u32 %r0, [%r1+-4], 1;", VM_TRAP_OUT_OF_BOUNDS,
     "4 bytes before dynamic shared memory of 32 bytes"},
    {"mov.u64 %d1, tile; cvta.shared.u64 %d1, %d1; ld.u32 %r0, [%d1+4];", VM_TRAP_UNINITIALISED,
     "in the window of shared memory, offset 4 in shared variable 'tile'"},
    {"ld.local.u32 %r0, [depot+20]; st.global.u32 [%d0], %r0;", VM_TRAP_UNINITIALISED,
     "; the launch's first read of such bytes was in line 12 at address 0x14, "
     "offset 20 in local variable 'depot'"},
    {"mov.u64 %d1, depot; ld.local.u32 %r0, [%d1+24];", VM_TRAP_OUT_OF_BOUNDS,
     "offset 24 in local variable 'depot' of 24 bytes"},
    {"mov.u64 %d1, depot; cvta.local.u64 %d1, %d1; ld.u32 %r0, [%d1]; st.global.u32 [%d0], %r0;",
     VM_TRAP_UNINITIALISED,
     "in line 12 at address 0x20000000000 in the window of local memory, offset 0 in local "
     "variable 'depot'"},
    {"call helper, ();", VM_TRAP_UNINITIALISED,
     "in line 8 at address 0x24, offset 4 in local variable 'inner'"},
    {"mov.u64 %d1, table; ld.const.u32 %r0, [%d1+8];", VM_TRAP_OUT_OF_BOUNDS,
     "offset 8 in constant variable 'table' of 8 bytes"},
    {"mov.u64 %d1, table; cvta.const.u64 %d1, %d1; ld.u32 %r0, [%d1+2];", VM_TRAP_MISALIGNED,
     "in the window of constant memory, offset 2 in constant variable 'table'"},
    {"mov.u64 %d1, n; ld.param.u64 %d2, [%d1+8];", VM_TRAP_OUT_OF_BOUNDS,
     "offset 8 in parameter 'n' of 8 bytes"},
    {"mov.u64 %d1, n; cvta.param.u64 %d1, %d1; ld.u64 %d2, [%d1+4];", VM_TRAP_MISALIGNED,
     "in the window of parameter memory, offset 4 in parameter 'n'"},
};

static void test_places(void **state) {
    (void)state;
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char ptx[2048];
        int length = snprintf(ptx, sizeof ptx, text, rows[i].body);
        ev_error err;
        vm_module *module;
        vm_memory *memory;
        params p = {0};
        if (vm_module_load(ptx, (size_t)length, "places", &module, &err) != EV_OK)
            fail_msg("%s", err.text);
        assert_int_equal(vm_memory_new(1 << 20, &memory, &err), EV_OK);
        assert_int_equal(vm_memory_alloc(memory, 256, VM_BUFFER_INOUT, "both", &p.both, &err),
                         EV_OK);
        vm_launch launch = {.module = module,
                            .entry = vm_module_find(module, "k"),
                            .grid = {1, 1, 1},
                            .block = {1, 1, 1},
                            .dynamic_shared = 32,
                            .params = &p,
                            .checks = VM_CHECK_ALL};
        vm_result r;
        assert_int_equal(vm_run(memory, &launch, &r, &err), EV_OK);
        if (r.ok || r.trap.kind != rows[i].kind || !strstr(r.trap.message, rows[i].place)) {
            print_error("%s\n  expected: %s ... %s\n  got: %s\n", rows[i].body,
                        vm_trap_name(rows[i].kind), rows[i].place,
                        r.ok ? "no trap" : r.trap.message);
            wrong++;
        }
        vm_module_free(module);
        vm_memory_free(memory);
    }
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_places)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
