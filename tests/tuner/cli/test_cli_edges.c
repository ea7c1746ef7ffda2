/* Structural edits at the edges of what a launch may ask for, from end to end: counters that come
 * near the end of their type, and grids that are capped. A variant is right there. */
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/cli_run.h"

/* Numbers first to first + count - 1 of a stream of random numbers for each row, by a counter of a
 * type that the build gives. The sum of a row's numbers comes last. */
static const char draw[] =
    "#include \"evoke_cuda.h\"\n"
    "extern \"C\" __global__ void draw(unsigned *__restrict__ y, int rows, NUMBER first,\n"
    "                                int count) {\n"
    "    int i = blockIdx.x * 64 + threadIdx.x;\n"
    "    if (i >= rows)\n"
    "        return;\n"
    "    NUMBER last = first + count;\n"
    "    for (NUMBER c = first; c < last; c++) {\n"
    "        unsigned h = ((unsigned)c ^ (unsigned)i * 0x9e3779b9u) * 0x85ebca6bu;\n"
    "        y[i * (count + 1) + (int)(c - first)] = h ^ h >> 15;\n"
    "    }\n"
    "    unsigned sum = 0;\n"
    "    for (NUMBER c = first; c < last; c++)\n"
    "        sum += (unsigned)c * 2654435761u;\n"
    "    y[i * (count + 1) + count] = sum;\n"
    "}\n";
static const char draw_json[] =
    "{\"name\": \"draw\", \"family\": \"tests\", \"doc\": \"a stream of random numbers\",\n"
    " \"arguments\": [\n"
    "  {\"name\": \"y\", \"kind\": \"out\", \"type\": \"u32\", \"count\": \"rows * (count + "
    "1)\"},\n"
    "  {\"name\": \"rows\", \"kind\": \"scalar\", \"type\": \"s32\"},\n"
    "  {\"name\": \"first\", \"kind\": \"scalar\", \"type\": \"TYPE\"},\n"
    "  {\"name\": \"count\", \"kind\": \"scalar\", \"type\": \"s32\"}],\n"
    " \"starts\": [{\"name\": \"plain\", \"source\": \"draw.cu\", \"grid\": \"ceil_div(rows, "
    "64)\", "
    "\"block\": 64}],\n"
    " \"oracle\": \"baseline\", \"tolerance\": {\"relative_l2\": 1e-6},\n"
    " \"cases\": [\n"
    "  {\"name\": \"smoke\", \"split\": \"search\", \"use\": \"smoke\", \"shape\": {\"rows\": 3, "
    "\"first\": 5, \"count\": 9}},\n"
    "  {\"name\": \"none\", \"split\": \"search\", \"use\": \"check\", \"shape\": {\"rows\": 3, "
    "\"first\": END, \"count\": 0}},\n"
    "  {\"name\": \"end\", \"split\": \"search\", \"use\": \"check\", \"shape\": {\"rows\": 70, "
    "\"first\": LATE, \"count\": 1020}},\n"
    "  {\"name\": \"time\", \"split\": \"search\", \"use\": \"time\", \"shape\": {\"rows\": 512, "
    "\"first\": 0, \"count\": 1024}},\n"
    "  {\"name\": \"later\", \"split\": \"held-out\", \"use\": \"time\", \"shape\": {\"rows\": "
    "300, "
    "\"first\": 77, \"count\": 1000}}]}\n";

/* Steps on each row, by `most` blocks at most: what is behind them stays. */
static const char relax[] =
    "#include \"evoke_cuda.h\"\n"
    "extern \"C\" __global__ void relax(float *__restrict__ y, int rows, int n, int most) {\n"
    "    int i = blockIdx.x * 64 + threadIdx.x;\n"
    "    if (i >= n)\n"
    "        return;\n"
    "    float v = y[blockIdx.y * n + i];\n"
    "    for (int k = 0; k < 8; k++)\n"
    "        v = 0.5f * v - 0.25f * v * v;\n"
    "    y[blockIdx.y * n + i] = v;\n"
    "}\n";
static const char relax_json[] =
    "{\"name\": \"relax\", \"family\": \"tests\", \"doc\": \"steps\",\n"
    " \"arguments\": [\n"
    "  {\"name\": \"y\", \"kind\": \"inout\", \"type\": \"f32\", \"count\": \"rows * n\",\n"
    "   \"data\": {\"generator\": \"uniform\"}},\n"
    "  {\"name\": \"rows\", \"kind\": \"scalar\", \"type\": \"s32\"},\n"
    "  {\"name\": \"n\", \"kind\": \"scalar\", \"type\": \"s32\"},\n"
    "  {\"name\": \"most\", \"kind\": \"scalar\", \"type\": \"s32\"}],\n"
    " \"starts\": [{\"name\": \"plain\", \"source\": \"relax.cu\",\n"
    "  \"grid\": [\"min(ceil_div(n, 64), most)\", \"rows\"], \"block\": 64}],\n"
    " \"oracle\": \"baseline\", \"tolerance\": {\"relative_l2\": 1e-6},\n"
    " \"cases\": [\n"
    "  {\"name\": \"smoke\", \"split\": \"search\", \"use\": \"smoke\", \"shape\": {\"rows\": 3, "
    "\"n\": 70, \"most\": 9}},\n"
    "  {\"name\": \"capped\", \"split\": \"search\", \"use\": \"check\", \"shape\": {\"rows\": 1, "
    "\"n\": 1000, \"most\": 9}},\n"
    "  {\"name\": \"time\", \"split\": \"search\", \"use\": \"time\", \"shape\": {\"rows\": 64, "
    "\"n\": 4000, \"most\": 99}},\n"
    "  {\"name\": \"later\", \"split\": \"held-out\", \"use\": \"time\", \"shape\": {\"rows\": 32, "
    "\"n\": 4001, \"most\": 99}}]}\n";

/* Writes the genome of one edit, and checks it at all cases of the task. */
static void expect_right(const char *task, const char *edit) {
    char genome[300];
    (void)snprintf(genome, sizeof genome, "{\"start\": \"plain\", \"macros\": {}, \"edits\": [%s]}",
                   edit);
    cli_write("genome.json", genome);
    json_decref(cli_json(CLI_RUN("check", cli_path(task), "--genome", cli_path("genome.json"),
                                 "--device", "vm:h200", "--json"),
                         0));
}

static void counters_stop_at_their_bound(void **state) {
    (void)state;
    static const char *const numbers[][4] = {{"int", "s32", "2147482627", "2147483647"},
                                             {"unsigned", "u32", "4294966275", "4294967295"}};
    static const char *const edits[] = {
        "{\"kind\": \"split-threads\", \"option\": 32, \"form\": \"neighbours\"}",
        "{\"kind\": \"split-threads\", \"option\": 64, \"form\": \"neighbours\"}",
        "{\"kind\": \"split-lanes\", \"anchor\": \"loop 1\", \"option\": 8}"};
    for (size_t i = 0; i < 2; i++) {
        cli_write("draw.cu", draw);
        for (size_t k = 0; k < 4; k++)
            cli_copy_changed("draw.cu", "draw.cu", "NUMBER", numbers[i][0]);
        cli_write("draw.json", draw_json);
        cli_copy_changed("draw.json", "draw.json", "TYPE", numbers[i][1]);
        cli_copy_changed("draw.json", "draw.json", "LATE", numbers[i][2]);
        cli_copy_changed("draw.json", "draw.json", "END", numbers[i][3]);
        for (size_t k = 0; k < sizeof edits / sizeof edits[0]; k++)
            expect_right("draw.json", edits[k]);
    }
}

static void a_capped_grid_stays_capped(void **state) {
    (void)state;
    static const char *const edits[] = {
        "{\"kind\": \"resize-block\", \"anchor\": \"x\", \"option\": 128}",
        "{\"kind\": \"resize-block\", \"anchor\": \"x\", \"option\": 192}"};
    cli_write("relax.cu", relax);
    cli_write("relax.json", relax_json);
    cli_copy_changed("relax.json", "inside.json", "min(ceil_div(n, 64), most)",
                     "ceil_div(min(n, 64 * most), 64)");
    for (size_t k = 0; k < sizeof edits / sizeof edits[0]; k++) {
        expect_right("relax.json", edits[k]);
        expect_right("inside.json", edits[k]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(counters_stop_at_their_bound),
                                       cmocka_unit_test(a_capped_grid_stays_capped)};
    return cmocka_run_group_tests(tests, cli_setup, cli_teardown);
}
