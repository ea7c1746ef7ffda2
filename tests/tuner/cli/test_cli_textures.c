/* Textures and surfaces as arguments of `evoke run`: their elements come from the command line, a
 * surface is printed, and mistakes are named. */
#include "tests/cli_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "tests/asserts.h"

/* Thread x writes the texel between elements x and x + 1 of a row of bytes, times 255. */
static const char kernel[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                             ".visible .entry mean(.param .u64 t, .param .u64 s) {\n"
                             ".reg .b64 %t, %s; .reg .b32 %x; .reg .f32 %u, %f<4>;\n"
                             "ld.param.u64 %t, [t]; ld.param.u64 %s, [s]; mov.u32 %x, %tid.x;\n"
                             "cvt.rn.f32.u32 %u, %x; add.f32 %u, %u, 0f3f800000;\n"
                             "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%u, 0f3f000000}];\n"
                             "mul.f32 %f0, %f0, 0f437f0000; shl.b32 %x, %x, 2;\n"
                             "sust.b.1d.b32.trap [%s, {%x}], {%f0};\nret;\n}\n";

static int setup(void **state) {
    int failed = cli_setup(state);
    if (failed == 0)
        cli_write("mean.ptx", kernel);
    return failed;
}

#define MEAN(...) CLI_RUN("run", cli_path("mean.ptx"), "--block", "3", __VA_ARGS__)

static void test_run(void **state) {
    (void)state;
    json_t *j = cli_json(
        MEAN("--arg", "tex:4x1,u8,linear,floats:00102040", "--arg", "surf:3,f32", "--json"), 0);
    char *text = json_dumps(j, JSON_COMPACT);
    assert_non_null(strstr(text, "0000004100" /* 8 */ "00c04100" /* 24 */ "004042" /* 48 */));
    free(text);
    json_decref(j);
}

/* Its times are modelled as those of loads. */
static void test_profile(void **state) {
    (void)state;
    ev_proc_result r = CLI_RUN("profile", cli_path("mean.ptx"), "--block", "3", "--arg",
                               "tex:4x1,u8,linear,floats:00102040", "--arg", "surf:3,f32");
    cli_expect(&r, 0);
    assert_non_null(strstr(r.out.data, "tex.2d"));
    ev_proc_result_free(&r);
}

#define SURF "--arg", "surf:3,f32"
#define TEX "--arg", "tex:4x1,u8,linear,floats:00102040"

static void test_mistakes(void **state) {
    (void)state;
    cli_expect_error(MEAN("--arg", "tex:4x1,u8:001020", SURF), 2,
                     "has 3 bytes, and its size has 4");
    cli_expect_error(MEAN("--arg", "tex:4x1,u8", SURF), 2, "needs its elements");
    cli_expect_error(MEAN("--arg", "tex:u8,4:00", SURF), 2, "needs a size and a format");
    cli_expect_error(MEAN("--arg", "tex:4x1x1x1,u8:00", SURF), 2, "needs a size and a format");
    cli_expect_error(MEAN("--arg", "tex:4x1,u9:00102040", SURF), 2, "needs a size and a format");
    cli_expect_error(MEAN("--arg", "tex:4x1,u8,smooth:00102040", SURF), 2, "no word 'smooth'");
    cli_expect_error(MEAN("--arg", "tex:1,f64:0000000000000000", SURF), 2, "a texture of .f64");
    cli_expect_error(MEAN("--arg", "texture:4:00", SURF), 2, "tex is a texture");
    ev_proc_result r = MEAN(TEX, "--arg", "u64:77");
    cli_expect(&r, 1);
    assert_non_null(strstr(r.err.data, "bad-texture"));
    ev_proc_result_free(&r);
    r = MEAN(TEX, "--arg", "surf:2,f32");
    cli_expect(&r, 1);
    assert_non_null(
        strstr(r.err.data, "coordinates (8) outside a surface of 2, of elements of 4 bytes"));
    ev_proc_result_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run),
        cmocka_unit_test(test_profile),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, setup, cli_teardown);
}
