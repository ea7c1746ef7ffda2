/* Launch plans: strict JSON, one form and one hash for each plan, geometry at values, messages that
 * name launch, dimension, expression and values, and every allocation made to fail in its turn. */
#include "base/launch_plan.h"

#include "base/str.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The linker (--wrap) and jansson send their calls here; the one numbered `fail_at` finds no
 * memory. */
static long calls_made;
static long fail_at = -1;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
char *__wrap_strdup(const char *text);

static bool refuse(void) {
    return calls_made++ == fail_at;
}

void *__wrap_malloc(size_t bytes) {
    return refuse() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes) {
    return refuse() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes) {
    return refuse() ? NULL : __real_realloc(old, bytes);
}

char *__wrap_strdup(const char *text) {
    return refuse() ? NULL : __real_strdup(text);
}

/* ---- a plan of everything ----------------------------------------------------------------------
 */

static const char FULL[] =
    "{\"launches\": [\n"
    "  {\"entry\": \"first\", \"grid\": [\"ceil_div(M, TILE)\", \"N\", \"1\"],\n"
    "   \"block\": [\"TILE\", \"4\", \"1\"], \"shared\": \"TILE * 8\"},\n"
    "  {\"entry\": \"_Z6secondv\", \"grid\": [\"M\", \"1\", \"1\"],\n"
    "   \"block\": [\"32\", \"1\", \"1\"], \"shared\": \"0\", \"given\": [\"x\", {\"type\": "
    "\"s32\", "
    "\"value\": \"turn + 1\"}]}],\n"
    " \"scratch\": [{\"name\": \"partial\", \"bytes\": \"M * 4\"}],\n"
    " \"hidden\": [{\"name\": \"rows\", \"type\": \"u8\", \"value\": \"M / 2\"}],\n"
    " \"ranges\": [{\"name\": \"M\", \"low\": 16, \"high\": 512, \"multiple\": 16},\n"
    "            {\"name\": \"p\", \"low\": 0.25, \"high\": 0.5}],\n"
    " \"loops\": [{\"first\": 1, \"count\": 1, \"turns\": \"N - 4\", \"counter\": \"turn\",\n"
    "             \"swaps\": [[\"a\", \"partial\"]]}], \"main\": 1}\n";

static const char *const NAME_TEXTS[] = {"M", "N", "TILE", "p"};
static const expr_names NAMES = {NAME_TEXTS, 4};

static const expr_name VALUE_ROWS[] = {{"M", {false, 100, 100.0}},
                                       {"N", {false, 7, 7.0}},
                                       {"TILE", {false, 16, 16.0}},
                                       {"p", {true, 0, 0.5}}};
static const expr_scope VALUES = {VALUE_ROWS, 4};

typedef struct read_plan {
    ev_json *doc;
    ev_arena *arena;
    const launch_plan *plan;
} read_plan;

static ev_status try_read(const char *text, read_plan *out, ev_error *err) {
    *out = (read_plan){.arena = ev_arena_new()};
    assert_non_null(out->arena);
    assert_int_equal(ev_json_parse(text, "plan.json", &out->doc, err), EV_OK);
    return launch_plan_decode(out->doc, out->doc->root, "", &NAMES, out->arena, &out->plan, err);
}

static void read_free(read_plan *r) {
    ev_json_free(r->doc);
    ev_arena_free(r->arena);
}

static read_plan read_ok(const char *text) {
    read_plan r;
    ev_error err = {.status = EV_OK};
    if (try_read(text, &r, &err) != EV_OK)
        fail_msg("%s", err.text);
    return r;
}

static char *canonical(const launch_plan *plan) {
    json_t *object = NULL;
    assert_int_equal(launch_plan_encode(plan, &object, NULL), EV_OK);
    char *text = ev_json_print(object, true);
    json_decref(object);
    assert_non_null(text);
    return text;
}

/* `text` with its first `from` replaced by `to`; the caller frees. */
static char *replaced(const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from);
    if (at == NULL)
        fail_msg("\"%s\" is not there", from);
    ev_str made = EV_STR_EMPTY;
    ev_str_append_n(&made, text, (size_t)(at - text));
    ev_str_append(&made, to);
    ev_str_append(&made, at + strlen(from));
    return ev_str_take(&made);
}

static void assert_words(const char *text, const char *words) {
    if (strstr(text, words) == NULL)
        fail_msg("\"%s\" is not in: %s", words, text);
}

/* ---- reading -----------------------------------------------------------------------------------
 */

static void test_reads(void **state) {
    (void)state;
    read_plan r = read_ok(FULL);
    const launch_plan *p = r.plan;
    assert_int_equal(p->launch_count, 2);
    assert_string_equal(p->launches[0].entry, "first");
    assert_string_equal(p->launches[0].grid[1], "N");
    assert_string_equal(p->launches[1].entry, "_Z6secondv");
    assert_string_equal(p->launches[0].shared, "TILE * 8");
    assert_int_equal(p->scratch_count, 1);
    assert_string_equal(p->scratch[0].bytes, "M * 4");
    assert_int_equal(p->hidden_count, 1);
    assert_int_equal(p->hidden[0].type, EV_U8);
    assert_int_equal(p->range_count, 2);
    assert_int_equal(p->ranges[0].multiple, 16);
    assert_true(p->ranges[1].is_real && p->ranges[1].low == 0.25);
    assert_false(launch_plan_is_plain(p));
    read_free(&r);
}

/* One thing changed in FULL, and what the message has to say. */
static const struct {
    const char *from, *to;
    const char *words;
} BAD[] = {
    {"\"M\", \"1\", \"1\"", "\"M +\", \"1\", \"1\"",
     "plan.json:1:1: launch 1 (_Z6secondv), grid[0]: expression \"M +\", column 4: expected a "
     "number"},
    {"\"TILE\", \"4\"", "\"TILES\", \"4\"",
     "launch 0 (first), block[0]: expression \"TILES\", column 1: unknown name \"TILES\"; known "
     "here: M, N, TILE, p"},
    {"TILE * 8", "TILE * 8)", "launch 0 (first), shared: expression"},
    {"TILE * 8", "sqrt(M, 2)", "unknown function"},
    {"\"32\"", "\"1/0\"",
     "launch 1 (_Z6secondv), block[0]: expression \"1/0\", column 2: division"},
    {"\"32\"", "\"0\"",
     "launch 1 (_Z6secondv), block[0]: expression \"0\" is 0; it must be in [1, "},
    {"\"32\"", "\"1025\"", "is 1025; it must be in [1, 1024]"},
    {"\"32\"", "\"9223372036854775807*4\"", "does not fit in 64 bits"},
    {"\"shared\": \"0\"", "\"shared\": \"-1\"", "launch 1 (_Z6secondv), shared: expression \"-1\""},
    {"\"shared\": \"0\"", "\"shared\": 0", "plan.json:5:"},
    {"\"shared\": \"0\"", "\"shard\": \"0\"", "did you mean 'shared'"},
    {", \"shared\": \"0\"", "", "shared"},
    {"\"4\", \"1\"]", "\"4\"]", "plan.json:3:13: must have 3 expressions"},
    {"\"4\", \"1\"]", "\"4\", 1]", "an expression must be text"},
    {"\"first\"", "\"\"", "launch 0, entry: \"\" is no name of a kernel"},
    {"\"first\"", "\"a b\"", "launch 0, entry: \"a b\" is no name of a kernel"},
    {"\"first\"", "\"_\"", "is no name of a kernel"},
    {"\"first\"", "\"a\\n.entry b\"", "is no name of a kernel"},
    {"\"partial\"", "\"2nd\"", "scratch buffer 0, name: \"2nd\" is no name"},
    {"\"partial\"", "\"M\"", "scratch buffer 0, name: the name M is taken"},
    {"\"M * 4\"", "\"K * 4\"", "scratch buffer partial, bytes: expression \"K * 4\""},
    {"\"M * 4\"", "\"0\"", "scratch buffer partial, bytes: expression \"0\" is 0"},
    {"\"M * 4\"", "\"M * 4\", \"peers_of\": \"partial\"",
     "scratch buffer partial, peers of: \"partial\" is no scratch buffer before it"},
    {"\"M * 4\"}", "\"M * 4\"}, {\"name\": \"t\", \"bytes\": \"8\", \"peers_of\": \"q\"}",
     "scratch buffer t, peers of: \"q\" is no scratch buffer before it; list the buffer before"},
    {"\"rows\"", "\"partial\"", "hidden parameter 0, name: the name partial is taken"},
    {"\"u8\"", "\"u9\"", "plan.json:7:13: unknown type \"u9\"; there are u8"},
    {"\"M / 2\"", "\"256\"", "hidden parameter rows, value: expression \"256\" is 256"},
    {"\"M / 2\"", "\"M //2\"", "hidden parameter rows, value: expression"},
    {"\"name\": \"p\"", "\"name\": \"q\"", "range 1, name: unknown name \"q\""},
    {"\"name\": \"p\"", "\"name\": \"M\"", "range 1, name: a second range of M"},
    {"\"low\": 16", "\"low\": 1024", "range of M: from 1024 to 512 there is nothing"},
    {"\"low\": 16", "\"low\": 1.5", "range of M: low and high must be whole numbers"},
    {"\"high\": 512", "\"high\": 1e300", "range of M: low and high must be whole numbers"},
    {"\"multiple\": 16", "\"multiple\": -16", "multiple at least 0"},
    {"\"scratch\": [", "\"scratches\": [", "did you mean 'scratch'"},
    {"{\"name\": \"partial\", \"bytes\": \"M * 4\"}", "7", "plan.json:6:"},
    {"turn + 1", "again + 1", "launch 1 (_Z6secondv), argument 1: expression"},
    {"[\"x\", {", "[\"x y\", {", "launch 1 (_Z6secondv), argument 0: \"x y\" is no name"},
    {"\"counter\": \"turn\"", "\"counter\": \"M\"", "loop 0, counter: \"M\" is taken"},
    {"\"counter\": \"turn\",", "", "unknown name \"turn\""},
    {"\"first\": 1", "\"first\": 2", "loop 0: launches 2 to 2"},
    {"\"first\": 1", "\"first\": -1", "loop 0: launches"},
    {"\"count\": 1", "\"count\": 2", "loop 0: launches 1 to 2"},
    {"N - 4", "K - 4", "loop 0, turns: expression \"K - 4\""},
    {"[[\"a\", \"partial\"]]", "[[\"a\", \"a\"]]", "loop 0, swap 0: a and a"},
    {"[[\"a\", \"partial\"]]", "[[\"a\"]]", "a swap is two names"},
    {"\"main\": 1", "\"main\": 2", "the main launch is number 2 of 2"},
};

static void test_refuses(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        char *text = replaced(FULL, BAD[i].from, BAD[i].to);
        read_plan r;
        ev_error err = {.status = EV_OK};
        if (try_read(text, &r, &err) != EV_BAD)
            fail_msg("accepted: %s", BAD[i].to);
        assert_words(err.text, BAD[i].words);
        assert_null(r.plan);
        read_free(&r);
        free(text);
    }
}

static void test_refuses_counts(void **state) {
    (void)state;
    read_plan r;
    ev_error err = {.status = EV_OK};
    assert_int_equal(try_read("{\"launches\": []}", &r, &err), EV_BAD);
    assert_words(err.text, "0 launches; a launch plan has 1 to 64");
    read_free(&r);
    ev_str many = EV_STR_EMPTY;
    ev_str_append(&many, "{\"launches\": [");
    for (int i = 0; i <= LAUNCH_PLAN_MOST; i++)
        ev_str_printf(&many,
                      "%s{\"entry\": \"k\", \"grid\": [\"1\", \"1\", \"1\"], "
                      "\"block\": [\"1\", \"1\", \"1\"], \"shared\": \"0\"}",
                      i > 0 ? "," : "");
    ev_str_append(&many, "]}");
    assert_int_equal(try_read(ev_str_text(&many), &r, &err), EV_BAD);
    assert_words(err.text, "at most 64 launches");
    read_free(&r);
    ev_str_free(&many);
}

/* Without a list of names, any will do; the syntax is checked all the same. */
static void test_any_names(void **state) {
    (void)state;
    launch_rule rule = {"k", {"a + b", "1", "1"}, {"c", "1", "1"}, "0", NULL, 0};
    launch_plan plan = {.launches = &rule, .launch_count = 1};
    ev_error err = {.status = EV_OK};
    assert_int_equal(launch_plan_check(&plan, NULL, &err), EV_OK);
    assert_true(launch_plan_is_plain(&plan));
    rule.grid[0] = "a b";
    assert_int_equal(launch_plan_check(&plan, NULL, &err), EV_BAD);
    assert_words(err.text, "launch 0 (k), grid[0]: expression \"a b\", column 3");
}

/* ---- one form ----------------------------------------------------------------------------------
 */

static void test_round_trip(void **state) {
    (void)state;
    read_plan one = read_ok(FULL);
    char *text = canonical(one.plan);
    read_plan two = read_ok(text);
    char *again = canonical(two.plan);
    assert_string_equal(text, again);
    assert_non_null(strstr(text, "\"high\":512,\"low\":16,\"multiple\":16,\"name\":\"M\""));
    ev_sha256 a, b;
    assert_int_equal(launch_plan_sha256(one.plan, &a, NULL), EV_OK);
    assert_int_equal(launch_plan_sha256(two.plan, &b, NULL), EV_OK);
    assert_true(ev_sha256_equal(&a, &b));
    char *other = replaced(FULL, "TILE * 8", "TILE * 4");
    read_plan three = read_ok(other);
    assert_int_equal(launch_plan_sha256(three.plan, &b, NULL), EV_OK);
    assert_false(ev_sha256_equal(&a, &b));
    free(other);
    free(text);
    free(again);
    read_free(&one);
    read_free(&two);
    read_free(&three);
}

/* A table of the addresses of a scratch buffer at each rank. */
static void test_table(void **state) {
    (void)state;
    char *text =
        replaced(FULL, "\"M * 4\"}",
                 "\"M * 4\"}, {\"name\": \"t\", \"bytes\": \"8\", \"peers_of\": \"partial\"}");
    read_plan one = read_ok(text);
    char *form = canonical(one.plan);
    read_plan two = read_ok(form);
    free(text);
    free(form);
    read_free(&one);
    ev_arena *arena = ev_arena_new();
    const launch_plan *clone = NULL;
    assert_int_equal(launch_plan_clone(two.plan, arena, &clone, NULL), EV_OK);
    read_free(&two);
    assert_null(clone->scratch[0].peers_of);
    assert_string_equal(clone->scratch[1].peers_of, "partial");
    ev_arena_free(arena);
}

/* The form of a plan of one launch never changes: records and bundles hold its hash. */
static void test_known_hash(void **state) {
    (void)state;
    const launch_rule rule = {"k", {"ceil_div(N, 64)", "1", "1"}, {"64", "1", "1"}, "0", NULL, 0};
    const launch_plan plan = {.launches = &rule, .launch_count = 1};
    static const char form[] = "{\"launches\":[{\"block\":[\"64\",\"1\",\"1\"],\"entry\":\"k\","
                               "\"grid\":[\"ceil_div(N, 64)\",\"1\",\"1\"],\"shared\":\"0\"}]}";
    char *text = canonical(&plan);
    assert_string_equal(text, form);
    ev_sha256 got, want = ev_sha256_of(form, strlen(form));
    assert_int_equal(launch_plan_sha256(&plan, &got, NULL), EV_OK);
    assert_string_equal(got.hex, want.hex);
    free(text);
}

static void test_clone(void **state) {
    (void)state;
    read_plan r = read_ok(FULL);
    char *before = canonical(r.plan);
    ev_arena *arena = ev_arena_new();
    const launch_plan *copy = NULL;
    assert_int_equal(launch_plan_clone(r.plan, arena, &copy, NULL), EV_OK);
    read_free(&r);
    char *after = canonical(copy);
    assert_string_equal(before, after);
    assert_int_equal(launch_plan_check(copy, &NAMES, NULL), EV_OK);
    free(before);
    free(after);
    ev_arena_free(arena);
}

/* ---- values ------------------------------------------------------------------------------------
 */

static void test_geometry(void **state) {
    (void)state;
    read_plan r = read_ok(FULL);
    launch_geometry g;
    ev_error err = {.status = EV_OK};
    assert_int_equal(launch_plan_geometry(r.plan, 0, &VALUES, &LAUNCH_LIMITS_CUDA, &g, &err),
                     EV_OK);
    assert_int_equal(g.grid[0], 7);
    assert_int_equal(g.grid[1], 7);
    assert_int_equal(g.grid[2], 1);
    assert_int_equal(g.block[0], 16);
    assert_int_equal(g.block[1], 4);
    assert_int_equal(g.shared_bytes, 128);
    assert_int_equal(launch_plan_geometry(r.plan, 1, &VALUES, &LAUNCH_LIMITS_CUDA, &g, &err),
                     EV_OK);
    assert_int_equal(g.grid[0], 100);
    assert_int_equal(g.shared_bytes, 0);
    uint64_t bytes = 0;
    expr_value value;
    assert_int_equal(launch_plan_scratch(r.plan, 0, &VALUES, &bytes, &err), EV_OK);
    assert_int_equal(bytes, 400);
    assert_int_equal(launch_plan_hidden(r.plan, 0, &VALUES, &value, &err), EV_OK);
    assert_int_equal(value.whole, 50);
    read_free(&r);
}

/* Values at which FULL cannot be launched; `limits` NULL: CUDA's. */
static const launch_limits SMALL = {{64, 65535, 65535}, {1024, 1024, 64}, 128, 256};

static const struct {
    int64_t m, n, tile;
    const launch_limits *limits;
    const char *message;
} CANNOT[] = {
    {100, 7, 0, NULL,
     "launch 0 (first), grid[0]: expression \"ceil_div(M, TILE)\", column 1: division by zero (M = "
     "100, TILE = 0)"},
    {100, 0, 16, NULL,
     "launch 0 (first), grid[1]: expression \"N\" is 0; it must be in [1, 65535] (N = 0)"},
    {100, 65536, 16, NULL,
     "launch 0 (first), grid[1]: expression \"N\" is 65536; it must be in [1, 65535] (N = 65536)"},
    {-100, 7, 16, NULL,
     "launch 0 (first), grid[0]: expression \"ceil_div(M, TILE)\" is -6; it must be in [1, "
     "2147483647] (M = -100, TILE = 16)"},
    {100, 7, 512, NULL,
     "launch 0 (first), block: a block of 512 x 4 x 1 is 2048 threads; the most is 1024, so make "
     "it smaller (TILE = 512)"},
    {100, 7, 1025, NULL, "launch 0 (first), block[0]: expression \"TILE\" is 1025"},
    {INT64_MAX, 7, INT64_MAX, NULL,
     "launch 0 (first), block[0]: expression \"TILE\" is 9223372036854775807"},
    {1040, 7, 16, &SMALL,
     "launch 0 (first), grid[0]: expression \"ceil_div(M, TILE)\" is 65; it must be in [1, 64] (M "
     "= 1040, TILE = 16)"},
    {100, 7, 33, &SMALL,
     "launch 0 (first), shared: expression \"TILE * 8\" is 264; it must be in [0, 256] (TILE = "
     "33)"},
    {100, 7, 32, NULL, NULL},
};

/* Launch 0, then three turns of launch 1, after each of which two buffers change places. */
static void test_steps(void **state) {
    static const char *const buffers[] = {"partial", "a", "partial"};
    (void)state;
    read_plan r = read_ok(FULL);
    launch_step *steps = NULL;
    size_t count = 0;
    ev_error err = {.status = EV_OK};
    assert_string_equal(launch_plan_entry(r.plan), "_Z6secondv");
    assert_false(launch_plan_is_plain(r.plan));
    assert_int_equal(launch_plan_steps(r.plan, &VALUES, &steps, &count, &err), EV_OK);
    assert_int_equal(count, 4);
    assert_int_equal(steps[0].launch, 0);
    assert_null(steps[0].loop);
    for (size_t i = 1; i < count; i++) {
        assert_int_equal(steps[i].launch, 1);
        assert_int_equal(steps[i].turn, (int64_t)i - 1);
        assert_string_equal(launch_step_buffer(r.plan, &steps[i], "partial"), buffers[i - 1]);
        assert_string_equal(launch_step_buffer(r.plan, &steps[i], "x"), "x");
    }
    free(steps);
    const expr_name many = {"N", {false, 3000, 3000.0}}, none = {"N", {false, 0, 0.0}};
    const expr_scope too_many = {&many, 1}, negative = {&none, 1};
    assert_int_equal(launch_plan_steps(r.plan, &too_many, &steps, &count, &err), EV_BAD);
    assert_non_null(strstr(err.text, "launch 1 (_Z6secondv), turns: "));
    assert_non_null(strstr(err.text, "N = 3000"));
    assert_int_equal(launch_plan_steps(r.plan, &negative, &steps, &count, &err), EV_BAD);
    read_free(&r);
}

/* Two loops that both ran an odd number of turns: the exchange of the second is undone first. */
static void test_exchanges(void **state) {
    (void)state;
    const launch_pair first = {{"a", "b"}}, second = {{"b", "c"}};
    const launch_loop loops[] = {
        {.count = 1, .turns = "1", .swaps = &first, .swap_count = 1},
        {.first = 1, .count = 1, .turns = "3", .swaps = &second, .swap_count = 1}};
    const launch_rule rules[] = {
        {"f", {"1", "1", "1"}, {"32", "1", "1"}, "0", NULL, 0},
        {"s", {"1", "1", "1"}, {"32", "1", "1"}, "0", NULL, 0},
        {"t", {"1", "1", "1"}, {"32", "1", "1"}, "0", NULL, 0},
    };
    const launch_plan plan = {
        .launches = rules, .launch_count = 3, .loops = loops, .loop_count = 2};
    launch_step *steps = NULL;
    size_t count = 0;
    assert_int_equal(launch_plan_check(&plan, NULL, NULL), EV_OK);
    assert_int_equal(launch_plan_steps(&plan, &VALUES, &steps, &count, NULL), EV_OK);
    assert_int_equal(count, 5);
    assert_string_equal(launch_step_buffer(&plan, &steps[1], "a"), "b");
    assert_string_equal(launch_step_buffer(&plan, &steps[4], "a"), "b");
    assert_string_equal(launch_step_buffer(&plan, &steps[4], "b"), "c");
    assert_string_equal(launch_step_buffer(&plan, &steps[4], "c"), "a");
    free(steps);
}

static void test_cannot_launch(void **state) {
    (void)state;
    read_plan r = read_ok(FULL);
    for (size_t i = 0; i < sizeof CANNOT / sizeof CANNOT[0]; i++) {
        const expr_name rows[] = {{"M", expr_of_whole(CANNOT[i].m)},
                                  {"N", expr_of_whole(CANNOT[i].n)},
                                  {"TILE", expr_of_whole(CANNOT[i].tile)}};
        const expr_scope values = {rows, 3};
        const launch_limits *limits = CANNOT[i].limits ? CANNOT[i].limits : &LAUNCH_LIMITS_CUDA;
        launch_geometry g = {.shared_bytes = 77};
        ev_error err = {.status = EV_OK};
        ev_status status = launch_plan_geometry(r.plan, 0, &values, limits, &g, &err);
        assert_int_equal(status, CANNOT[i].message ? EV_BAD : EV_OK);
        if (CANNOT[i].message == NULL)
            continue;
        assert_memory_equal(err.text, CANNOT[i].message, strlen(CANNOT[i].message));
        assert_int_equal(g.shared_bytes, 77);
        assert_int_equal(launch_plan_geometry(r.plan, 0, &values, limits, &g, NULL), EV_BAD);
    }
    read_free(&r);
}

static void test_overflow(void **state) {
    (void)state;
    const launch_rule rule = {"k", {"M * M", "1", "1"}, {"1", "1", "1"}, "0", NULL, 0};
    const launch_plan plan = {.launches = &rule, .launch_count = 1};
    const expr_name row = {"M", expr_of_whole(INT64_C(1) << 40)};
    const expr_scope values = {&row, 1};
    launch_geometry g;
    ev_error err = {.status = EV_OK};
    assert_int_equal(launch_plan_geometry(&plan, 0, &values, &LAUNCH_LIMITS_CUDA, &g, &err),
                     EV_BAD);
    assert_string_equal(err.text, "launch 0 (k), grid[0]: expression \"M * M\", column 3: the "
                                  "result does not fit in 64 bits (M = 1099511627776)");
}

static void test_hidden_and_scratch_at_values(void **state) {
    (void)state;
    read_plan r = read_ok(FULL);
    const expr_name row = {"M", expr_of_whole(1024)};
    const expr_name none = {"M", expr_of_whole(0)};
    expr_value value;
    uint64_t bytes = 0;
    ev_error err = {.status = EV_OK};
    assert_int_equal(launch_plan_hidden(r.plan, 0, &(expr_scope){&row, 1}, &value, &err), EV_BAD);
    assert_string_equal(err.text, "hidden parameter rows, value: expression \"M / 2\" is 512; it "
                                  "must be in [0, 255] (M = 1024)");
    assert_int_equal(launch_plan_scratch(r.plan, 0, &(expr_scope){&none, 1}, &bytes, &err), EV_BAD);
    assert_words(err.text, "scratch buffer partial, bytes: expression \"M * 4\" is 0");
    read_free(&r);
}

static void test_ranges(void **state) {
    (void)state;
    const launch_range whole = {"M", false, 16, 512, 16}, real = {"p", true, 0.25, 0.5, 0};
    const launch_range any = {"M", false, 0, 0, 0};
    static const double inside[] = {16, 32, 512}, outside[] = {0, 15, 17, 528, 32.5, -16};
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        assert_true(launch_range_holds(&whole, inside[i]));
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        assert_false(launch_range_holds(&whole, outside[i]));
    assert_true(launch_range_holds(&real, 0.3));
    assert_false(launch_range_holds(&real, 0.51));
    assert_false(launch_range_holds(&real, (double)NAN));
    assert_true(launch_range_holds(&any, 0));
}

/* ---- out of memory -----------------------------------------------------------------------------
 */

/* Everything that allocates, of a document that was read before. */
static ev_status all_of_it(const ev_json *doc, ev_sha256 *sha256, ev_error *err) {
    ev_arena *arena = ev_arena_new();
    if (arena == NULL)
        return ev_fail_memory(err, 1);
    const launch_plan *plan = NULL, *copy = NULL;
    ev_status status = launch_plan_decode(doc, doc->root, "", &NAMES, arena, &plan, err);
    ev_arena *other = status == EV_OK ? ev_arena_new() : NULL;
    if (status == EV_OK && other == NULL)
        status = ev_fail_memory(err, 1);
    if (status == EV_OK)
        status = launch_plan_clone(plan, other, &copy, err);
    if (status == EV_OK)
        status = launch_plan_sha256(copy, sha256, err);
    ev_arena_free(other);
    ev_arena_free(arena);
    return status;
}

static void test_memory(void **state) {
    (void)state;
    ev_json *doc = NULL;
    ev_error err = {.status = EV_OK};
    json_set_alloc_funcs(__wrap_malloc, free);
    assert_int_equal(ev_json_parse(FULL, "plan.json", &doc, &err), EV_OK);
    ev_sha256 want, got;
    assert_int_equal(all_of_it(doc, &want, &err), EV_OK);
    long turns = 0, failures = 0;
    for (bool met = true; met; turns++) {
        assert_true(turns < 10000);
        calls_made = 0;
        fail_at = turns;
        ev_status status = all_of_it(doc, &got, &err);
        fail_at = -1;
        met = calls_made > turns;
        failures += status == EV_INFRA;
        /* A failure that jansson gets over leaves the same text. */
        assert_true(status == EV_INFRA || status == EV_OK);
        assert_true(met || status == EV_OK);
        if (status == EV_OK)
            assert_string_equal(got.hex, want.hex);
    }
    assert_true(failures > 100 && turns - failures < 10);
    ev_json_free(doc);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),          cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_refuses_counts), cmocka_unit_test(test_any_names),
        cmocka_unit_test(test_round_trip),     cmocka_unit_test(test_table),
        cmocka_unit_test(test_known_hash),     cmocka_unit_test(test_clone),
        cmocka_unit_test(test_geometry),       cmocka_unit_test(test_steps),
        cmocka_unit_test(test_exchanges),      cmocka_unit_test(test_cannot_launch),
        cmocka_unit_test(test_overflow),       cmocka_unit_test(test_hidden_and_scratch_at_values),
        cmocka_unit_test(test_ranges),         cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
