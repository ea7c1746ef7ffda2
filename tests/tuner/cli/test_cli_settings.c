/* Settings of the macros, from end to end: the fastest on the search's cases is held against others
 * on the held-out cases. */
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/cli_run.h"

/* y = x by a chain of multiply-adds. Its length is 4 k; at MODE 1 it is 2 k, and at MODE 2 k + 64.
 */
static const char chain_cu[] =
    "#include \"evoke_cuda.h\"\n"
    "#ifndef MODE\n"
    "#define MODE 0\n"
    "#endif\n"
    "extern \"C\" __global__ void chain(const float *x, float *y, int n, int k, float one) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    int turns = MODE == 0 ? 4 * k : MODE == 1 ? 2 * k : k + 64;\n"
    "    if (i < n) {\n"
    "        float v = x[i];\n"
    "        for (int t = 0; t < turns; t++)\n"
    "            v = fmaf(v, one, 0.0f);\n"
    "        y[i] = v;\n"
    "    }\n"
    "}\n";

#define CASE(split, use, n, k)                                                                     \
    "  {\"name\": \"" split " " use " " k "\", \"split\": \"" split "\", \"use\": \"" use          \
    "\", \"shape\": {\"n\": " n ", \"k\": " k "}}"
#define SMALL                                                                                      \
    CASE("search", "smoke", "64", "2")                                                             \
    ",\n" CASE("search", "check", "301", "5") ",\n" CASE("held-out", "check", "200", "9") ",\n"
#define TIMED                                                                                      \
    CASE("search", "time", "4096", "48")                                                           \
    ",\n" CASE("search", "time", "4096", "32") ",\n" CASE("held-out", "time", "4096", "1024")

/* MODE 1 is the fastest up to k = 64, on the search's cases, and MODE 2 from there on. */
static const char chain_json[] =
    "{\"name\": \"chain\", \"family\": \"tests\", \"doc\": \"y = x\",\n"
    " \"arguments\": [\n"
    "  {\"name\": \"x\", \"kind\": \"in\", \"type\": \"f32\", \"count\": \"n\",\n"
    "   \"data\": {\"generator\": \"normal\"}},\n"
    "  {\"name\": \"y\", \"kind\": \"out\", \"type\": \"f32\", \"count\": \"n\"},\n"
    "  {\"name\": \"n\", \"kind\": \"scalar\", \"type\": \"s32\"},\n"
    "  {\"name\": \"k\", \"kind\": \"scalar\", \"type\": \"s32\"},\n"
    "  {\"name\": \"one\", \"kind\": \"scalar\", \"type\": \"f32\", \"value\": 1,\n"
    "   \"domain\": {\"min\": 1, \"max\": 1}}],\n"
    " \"starts\": [{\"name\": \"plain\", \"source\": \"chain.cu\", \"grid\": \"ceil_div(n, "
    "128)\",\n"
    "  \"block\": 128, \"macros\": [{\"name\": \"MODE\", \"default\": 0, \"values\": [0, 1, 2],\n"
    "  \"doc\": \"how long the chain is\"}]}],\n"
    " \"oracle\": \"baseline\", \"tolerance\": {\"relative_l2\": 1e-6},\n"
    " \"cases\": [\n" SMALL TIMED "]}\n";

static int set_up(void **state) {
    if (cli_setup(state) != 0)
        return 1;
    cli_write("chain.cu", chain_cu);
    cli_write("chain.json", chain_json);
    return 0;
}

static void the_setting_that_is_faster_on_held_out_cases_wins(void **state) {
    (void)state;
    static const char *const strategies[] = {"macros", "knobs"};
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        json_t *json = cli_json(CLI_RUN("tune", cli_path("chain.json"), "--strategy", strategies[i],
                                        "--evaluations", "40", "--workers", "1", "--json"),
                                0);
        const json_t *row = json_array_get(json_object_get(json, "rows"), 0);
        const json_t *macros = json_object_get(json_object_get(row, "genome"), "macros");
        assert_int_equal(ev_json_integer(macros, "MODE", -1), 2);
        json_decref(json);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_setting_that_is_faster_on_held_out_cases_wins)};
    return cmocka_run_group_tests(tests, set_up, cli_teardown);
}
