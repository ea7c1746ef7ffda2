/* PTX versions and drivers: what each driver takes, and what a kernel that says a later version
 * becomes on its way to an older driver, which here is the stand-in with another version. */
#include "base/ptx/versions.h"
#include "fitness/device/cuda/cuda.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tests/asserts.h"

#include "tests/ok.h"

static ev_error err;

static void test_taken(void **state) {
    (void)state;
    static const int rows[][2] = {
        {8000, 0},   {9000, 60},  {10020, 65}, {11000, 70},         {11010, 71},        {11080, 78},
        {12000, 80}, {12040, 84}, {12050, 85}, {12060, 85},         {12070, 86},        {12080, 87},
        {12090, 88}, {13000, 90}, {13005, 90}, {13010, EV_PTX_ANY}, {14000, EV_PTX_ANY}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(ev_ptx_taken(rows[i][0]), rows[i][1]);
}

/* ---- what the driver's compiler gets ---- */

static char got[64]; /* the beginning of the text */
static unsigned calls;

static CUresult refuse(CUmodule *module, const void *image, unsigned count, CUjit_option *options,
                       void **values) {
    (void)module;
    (void)count;
    (void)options;
    (void)values;
    memcpy(got, image, sizeof got - 1);
    calls++;
    return CUDA_ERROR_INVALID_PTX;
}

#define KERNEL(version, target, insn)                                                              \
    ".version " version "\n.target " target "\n.address_size 64\n.visible .entry k()\n{\n"         \
    ".reg .b32 %r<4>; .reg .pred %p<4>;\n" insn "\nret;\n}\n"

static const struct {
    int driver;
    const char *text, *begins; /* what the driver gets; NULL: nothing, and */
    const char *told;          /* what is told */
} cases[] = {
    {12040, KERNEL("8.4", "sm_90", ""), ".version 8.4\n", "refuses the PTX"},
    {12040, KERNEL("8.5", "sm_90", ""), ".version 7.8\n", "refuses the PTX"},
    {12050, KERNEL("8.5", "sm_90", ""), ".version 8.5\n", "refuses the PTX"},
    {12060, KERNEL("8.5", "sm_90", ""), ".version 8.5\n", "refuses the PTX"},
    {11080, KERNEL("8.5", "sm_80", "redux.sync.add.s32 %r0, %r1, -1;"), ".version 7.0\n",
     "refuses"},
    {13020, KERNEL("9.0", "sm_80", ""), ".version 9.0\n", "refuses the PTX"},
    {11080, KERNEL("8.5", "sm_90", "elect.sync %r0|%p0, -1;"), NULL,
     "the driver (CUDA 11.8) takes PTX up to version 7.8, and this kernel needs 8.0 for "
     "'elect.sync'; update the driver"},
    {11040, KERNEL("7.8", "sm_90", ""), NULL,
     "takes PTX up to version 7.4, and this kernel needs 7.8 for 'sm_90'; update the driver"},
};

static void test_text(void **state) {
    (void)state;
    device *d = NULL;
    OK(device_open("cuda:0", &d, &err));
    cuda_device *c = cuda_of(d);
    c->cu.cuModuleLoadDataEx = refuse;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        device_kernel *k = NULL;
        c->version = cases[i].driver;
        calls = 0;
        assert_int_equal(device_load(d, cases[i].text, strlen(cases[i].text), NULL, &k, &err),
                         EV_BAD);
        if (strstr(err.text, cases[i].told) == NULL)
            fail_msg("case %zu: %s", i, err.text);
        assert_int_equal(calls, cases[i].begins != NULL);
        if (cases[i].begins != NULL && strncmp(got, cases[i].begins, strlen(cases[i].begins)) != 0)
            fail_msg("case %zu: %.20s", i, got);
    }
    device_close(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_taken), cmocka_unit_test(test_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
