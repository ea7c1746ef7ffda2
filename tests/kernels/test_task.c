/* The loader of task.json: what it makes of a good file, and what it says of each bad one. */
#include "base/file.h"
#include "kernels/task.h"

#include <fcntl.h>
#include <glob.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char GOOD[] =
    "{\n"
    "  \"name\": \"good\", \"family\": \"tests\", \"doc\": \"a task\",\n"
    "  \"arguments\": [\n"
    "    {\"name\": \"x\", \"kind\": \"in\", \"type\": \"f32\", \"count\": \"n * 2\","
    " \"data\": {\"generator\": \"normal\", \"sigma\": \"s\"}},\n"
    "    {\"name\": \"y\", \"kind\": \"out\", \"type\": \"f32\", \"count\": \"n * 2\","
    " \"zero_where\": \"x\"},\n"
    "    {\"name\": \"n\", \"kind\": \"scalar\", \"type\": \"s32\"},\n"
    "    {\"name\": \"half\", \"kind\": \"scalar\", \"type\": \"f32\", \"value\": \"n / 2.0\"}\n"
    "  ],\n"
    "  \"starts\": [\n"
    "    {\"name\": \"plain\", \"source\": \"k.cu\", \"entry\": \"k\","
    " \"grid\": \"ceil_div(n, T)\", \"block\": [\"T\", 2],\n"
    "     \"macros\": [{\"name\": \"T\", \"default\": 32, \"values\": [16, 32]}]},\n"
    "    {\"name\": \"other\", \"source\": \"k.cu\", \"grid\": [1, \"n\"], \"block\": 64,"
    " \"shared\": \"4 * n\"}\n"
    "  ],\n"
    "  \"oracle\": \"baseline\",\n"
    "  \"tolerance\": {\"relative_l2\": 1e-6, \"depth\": \"n\"},\n"
    "  \"cases\": [\n"
    "    {\"name\": \"smoke\", \"split\": \"search\", \"use\": \"smoke\","
    " \"shape\": {\"n\": 3, \"s\": 1}},\n"
    "    {\"name\": \"check\", \"split\": \"search\", \"use\": \"check\","
    " \"shape\": {\"n\": 100, \"s\": 0.5}, \"data\": {\"x\": {\"generator\": \"zeros\"}}},\n"
    "    {\"name\": \"time\", \"split\": \"search\", \"use\": \"time\","
    " \"shape\": {\"from\": \"coconet.2p10\", \"s\": 2}},\n"
    "    {\"name\": \"held\", \"split\": \"held-out\", \"use\": \"check\","
    " \"shape\": {\"from\": \"coconet.2p10\", \"n\": 77, \"s\": 1}}\n"
    "  ]\n"
    "}\n";

typedef struct folder {
    char path[64];
    char json[128];
} folder;

static void write_text(const char *path, const char *text) {
    ev_error err = {EV_OK, ""};
    if (ev_file_write(path, text, strlen(text), &err) != EV_OK)
        fail_msg("%s", err.text);
}

static int set_up(void **state) {
    folder *f = calloc(1, sizeof *f);
    assert_non_null(f);
    strcpy(f->path, "/tmp/evoke-test-task-XXXXXX");
    assert_non_null(mkdtemp(f->path));
    (void)snprintf(f->json, sizeof f->json, "%s/task.json", f->path);
    char source[128];
    (void)snprintf(source, sizeof source, "%s/k.cu", f->path);
    write_text(source, "extern \"C\" __global__ void k() {}\n");
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    folder *f = *state;
    ev_error err = {EV_OK, ""};
    assert_int_equal(ev_dir_remove(f->path, &err), EV_OK);
    free(f);
    return 0;
}

/* GOOD with its first `find` replaced. malloc'ed. */
static char *changed(const char *find, const char *replace) {
    const char *at = strstr(GOOD, find);
    if (at == NULL)
        fail_msg("the good task has no %s", find);
    size_t size = sizeof GOOD + strlen(replace);
    char *text = malloc(size);
    assert_non_null(text);
    (void)snprintf(text, size, "%.*s%s%s", (int)(at - GOOD), GOOD, replace, at + strlen(find));
    return text;
}

static task *load_good(const folder *f) {
    task *t = NULL;
    ev_error err = {EV_OK, ""};
    write_text(f->json, GOOD);
    if (task_load(f->json, &t, &err) != EV_OK)
        fail_msg("%s", err.text);
    return t;
}

static void expect_words(const char *text, const char *words) {
    if (strstr(text, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", text, words);
}

/* ---- a good file ---- */

static void test_structure(void **state) {
    task *t = load_good(*state);
    assert_string_equal(t->name, "good");
    assert_int_equal(t->argument_count, 4);
    assert_int_equal(t->arguments[1].kind, TASK_OUT);
    assert_string_equal(t->arguments[1].zero_where, "x");
    assert_int_equal(t->start_count, 2);
    assert_string_equal(launch_plan_entry(t->starts[0].plan), "k");
    assert_string_equal(launch_plan_entry(t->starts[1].plan), "good");
    assert_int_equal(t->starts[0].macros[0].value_count, 2);
    assert_ptr_equal(task_find_start(t, "other"), &t->starts[1]);
    assert_null(task_find_start(t, "third"));
    assert_ptr_equal(task_find_case(t, "time"), &t->cases[2]);
    assert_null(task_find_case(t, "space"));
    assert_string_equal(t->cases[2].from, "coconet.2p10");
    assert_null(t->cases[0].from);
    assert_int_equal(t->oracle_kind, TASK_ORACLE_BASELINE);
    assert_null(t->oracle);
    assert_string_equal(t->json, GOOD);
    assert_true(t->tolerance.relative_l2 == 1e-6);
    task_free(t);
}

static void test_evaluation(void **state) {
    task *t = load_good(*state);
    ev_error err = {EV_OK, ""};
    uint64_t count = 0;
    expr_value value;
    double depth = 0;
    const task_case *check = task_find_case(t, "check"), *time = task_find_case(t, "time");
    const task_case *held = task_find_case(t, "held");
    assert_int_equal(task_argument_count_of(t, &t->arguments[0], check, &count, &err), EV_OK);
    assert_int_equal(count, 200);
    assert_int_equal(task_argument_count_of(t, &t->arguments[0], time, &count, &err), EV_OK);
    assert_int_equal(count, 2048);
    assert_int_equal(task_argument_count_of(t, &t->arguments[0], held, &count, &err), EV_OK);
    assert_int_equal(count, 154);
    assert_int_equal(task_argument_value_of(t, &t->arguments[2], check, &value, &err), EV_OK);
    assert_false(value.is_real);
    assert_int_equal(value.whole, 100);
    assert_int_equal(task_argument_value_of(t, &t->arguments[3], held, &value, &err), EV_OK);
    assert_true(value.is_real && value.real == 38.5);
    assert_int_equal(task_depth_of(t, check, &depth, &err), EV_OK);
    assert_true(depth == 100);
    task_free(t);
}

static void test_data(void **state) {
    task *t = load_good(*state);
    ev_error err = {EV_OK, ""};
    corpus_request a, b;
    const task_case *check = task_find_case(t, "check"), *held = task_find_case(t, "held");
    assert_int_equal(task_argument_data_of(t, &t->arguments[0], check, 0, &a, &err), EV_OK);
    assert_string_equal(a.generator->name, "zeros"); /* the case's own */
    assert_int_equal(task_argument_data_of(t, &t->arguments[0], held, 0, &a, &err), EV_OK);
    assert_int_equal(task_argument_data_of(t, &t->arguments[0], held, 1, &b, &err), EV_OK);
    assert_string_equal(a.generator->name, "normal");
    assert_true(a.values[0] == 0 && a.values[1] == 1 && a.length == 154 && a.type == EV_F32);
    assert_true(a.seed != b.seed);
    assert_true(a.seed >> 62 == CORPUS_HELD_OUT + 1);
    task_free(t);
}

static ev_status launch(const task *t, size_t index, const expr_name *macros, size_t macro_count,
                        const task_case *c, launch_geometry *out, ev_error *err) {
    const task_start *start = &t->starts[index];
    return task_launch_of(t, start, start->plan, macros, macro_count, c, out, err);
}

static void test_launch(void **state) {
    task *t = load_good(*state);
    ev_error err = {EV_OK, ""};
    launch_geometry l;
    const task_case *check = task_find_case(t, "check");
    assert_int_equal(launch(t, 0, NULL, 0, check, &l, &err), EV_OK);
    assert_int_equal(l.grid[0], 4);
    assert_int_equal(l.grid[1], 1);
    assert_int_equal(l.block[0], 32);
    assert_int_equal(l.block[1], 2);
    assert_int_equal(l.shared_bytes, 0);
    expr_name macro = {"T", {false, 16, 16.0}};
    assert_int_equal(launch(t, 0, &macro, 1, check, &l, &err), EV_OK);
    assert_int_equal(l.grid[0], 7);
    assert_int_equal(l.block[0], 16);
    assert_int_equal(launch(t, 1, NULL, 0, check, &l, &err), EV_OK);
    assert_int_equal(l.grid[1], 100);
    assert_int_equal(l.shared_bytes, 400);
    macro.value = (expr_value){false, 1024, 1024.0};
    assert_int_equal(launch(t, 0, &macro, 1, check, &l, &err), EV_BAD);
    expect_words(err.text, "start plain, case check");
    expect_words(err.text, "2048 threads");
    task_free(t);
}

/* The identity covers the document and the sources, and nothing else. */
static void test_identity(void **state) {
    const folder *f = *state;
    task *a = load_good(f), *b = load_good(f), *c = NULL, *d = NULL;
    ev_error err = {EV_OK, ""};
    assert_true(ev_sha256_equal(&a->sha256, &b->sha256));
    char *text = changed("a task", "a tusk");
    write_text(f->json, text);
    free(text);
    assert_int_equal(task_load(f->json, &c, &err), EV_OK);
    assert_false(ev_sha256_equal(&a->sha256, &c->sha256));
    char source[128];
    (void)snprintf(source, sizeof source, "%s/k.cu", f->path);
    write_text(source, "extern \"C\" __global__ void k() { }\n");
    d = load_good(f);
    assert_false(ev_sha256_equal(&a->sha256, &d->sha256));
    task_free(a);
    task_free(b);
    task_free(c);
    task_free(d);
}

static void write_in(const folder *f, const char *name, const char *text) {
    char path[160];
    (void)snprintf(path, sizeof path, "%s/%s", f->path, name);
    write_text(path, text);
}

/* The headers of the sources, and those of headers, are part of the identity; they may include each
 * other in a ring. Evoke's own, system headers and files that are not there do not count. */
static void test_headers(void **state) {
    const folder *f = *state;
    char below[128];
    (void)snprintf(below, sizeof below, "%s/below", f->path);
    assert_int_equal(ev_dir_make(below, NULL), EV_OK);
    write_in(f, "k.cu",
             "#include \"evoke_cuda.h\"\n#include <a.h>\n # include\t\"below/../below/a.h\"\n"
             "#include \"none.h\"\n#include \"below\"\n//include \"c.h\"\n#include "
             "\"broken.h\n#include \"task.h\"\n");
    write_in(f, "a.h", "");
    write_in(f, "c.h", "");
    write_in(f, "broken.h", "");
    write_in(f, "below/a.h", "#include \"../b.h\"");
    write_in(f, "task.h", ""); /* kernels/ has a file of that name */
    write_in(f, "b.h", "#include \"below/a.h\"\n#include \"b.h\"\n");
    task *t = load_good(f);
    assert_int_equal(t->header_count, 3);
    static const char *const places[] = {"below/a.h", "task.h", "b.h"};
    for (size_t i = 0; i < 3; i++) {
        size_t length = strlen(t->folder);
        assert_string_equal(t->headers[i] + length + 1, places[i]);
        assert_memory_equal(t->headers[i], t->folder, length);
    }
    write_in(f, "c.h", "other");
    task *same = load_good(f);
    assert_true(ev_sha256_equal(&t->sha256, &same->sha256));
    write_in(f, "b.h", "other");
    task *other = load_good(f);
    assert_false(ev_sha256_equal(&t->sha256, &other->sha256));
    task_free(t);
    task_free(same);
    task_free(other);
}

static void test_too_many_headers(void **state) {
    const folder *f = *state;
    ev_str text = EV_STR_EMPTY;
    for (int i = 0; i < 65; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "h%d.h", i);
        ev_str_printf(&text, "#include \"%s\"\n", name);
        write_in(f, name, "");
    }
    write_in(f, "k.cu", ev_str_text(&text));
    ev_str_free(&text);
    task *t = NULL;
    ev_error err = {EV_OK, ""};
    write_text(f->json, GOOD);
    assert_int_equal(task_load(f->json, &t, &err), EV_BAD);
    expect_words(err.text, "h64.h: the sources of a task may include 64 files at most");
}

/* ---- work ---- */

#define RANKS(text) "\"oracle\": \"baseline\"", "\"ranks\": " text ", \"oracle\": \"ar_oneshot\""
#define WORK(text) "\"oracle\": \"baseline\",", "\"oracle\": \"baseline\", \"work\": " text ","

static void test_work(void **state) {
    const folder *f = *state;
    task *t = load_good(f);
    task_amounts amounts;
    ev_error err = {EV_OK, ""};
    assert_int_equal(task_work_of(t, &t->cases[0], &amounts, &err), EV_OK);
    assert_false(amounts.is_declared);
    task_free(t);
    char *text = changed(WORK("{\"doc\": \"why\", \"bytes\": \"16 * n\", \"f32\": \"n * half\","
                              " \"tensor_f16\": 7}"));
    write_text(f->json, text);
    free(text);
    if (task_load(f->json, &t, &err) != EV_OK)
        fail_msg("%s", err.text);
    assert_string_equal(t->work.doc, "why");
    assert_int_equal(task_work_of(t, task_find_case(t, "check"), &amounts, &err), EV_OK);
    assert_true(amounts.is_declared && amounts.bytes == 1600);
    for (int unit = 0; unit < TASK_UNIT_COUNT; unit++) {
        double want = unit == TASK_UNIT_F32 ? 5000 : 0;
        want = unit == TASK_UNIT_TENSOR_F16 ? 7 : want;
        assert_true(amounts.operations[unit] == want);
        assert_true(task_unit_name((task_unit)unit)[0] && task_unit_words((task_unit)unit)[0]);
    }
    task_free(t);
}

static void test_reference(void **state) {
    const folder *f = *state;
    task *t = NULL;
    ev_error err = {EV_OK, ""};
    char *text = changed("\"block\": 64", "\"block\": 64, \"reference\": true");
    write_text(f->json, text);
    free(text);
    if (task_load(f->json, &t, &err) != EV_OK)
        fail_msg("%s", err.text);
    assert_true(!t->starts[0].is_reference && t->starts[1].is_reference);
    task_free(t);
}

/* ---- bad files ---- */

typedef struct mistake {
    const char *find, *replace;
    const char *place; /* ":LINE:COLUMN: " */
    const char *words;
} mistake;

static const mistake MISTAKES[] = {
    /* keys and kinds */
    {"\"family\"", "\"famly\"", ":2:19: ", "unknown key 'famly'; did you mean 'family'?"},
    {"\"sigma\"", "\"sigmma\"", ":4:", "'sigmma'"},
    {"\"block\": 64", "\"blocks\": 64", ":12:", "'blocks'"},
    {"\"name\": \"good\", ", "", ":1:1: ", "'name' is missing"},
    {"\"doc\": \"a task\"", "\"doc\": 5", ":2:", "must be a string"},
    {"\"name\": \"good\"", "\"name\": \"2 words\"", ":2:", "\"2 words\" is no name"},
    {"\"name\": \"half\"", "\"name\": \"n\"", ":7:", "a second argument is named n"},
    {"\"name\": \"other\"", "\"name\": \"plain\"", ":12:", "a second start is named \"plain\""},
    {"\"name\": \"check\"", "\"name\": \"smoke\"", ":18:", "a second case is named \"smoke\""},
    {"\"values\": [16, 32]", "\"values\": [16, 64]", ":11:", "default 32 of T is not among"},
    {"\"values\": [16, 32]", "\"values\": [32, \"a\"]", ":11:", "must be an integer"},
    {"\"values\": [16, 32]", "\"values\": []", ":11:", "0 entries; there must be 1 to 64"},
    {"[\"T\", 2]", "[1, 1, 1, 1]", ":10:", "4 entries; there must be 1 to 3"},
    {"\"block\": 64", "\"block\": true", ":12:", "must be text or a number"},
    /* names that must be known */
    {"\"type\": \"f32\"", "\"type\": \"f31\"", ":4:", "unknown type \"f31\"; there are: u8, s8"},
    {"\"kind\": \"out\"", "\"kind\": \"output\"", ":5:", "there are: in, out, inout, scalar"},
    {"\"generator\": \"normal\"", "\"generator\": \"noise\"",
     ":4:", "unknown generator \"noise\"; there are: uniform, normal"},
    {"\"generator\": \"zeros\"", "\"generator\": \"zero\"", ":18:", "unknown generator \"zero\""},
    {"\"oracle\": \"baseline\"", "\"oracle\": \"magic\"",
     ":14:", "unknown oracle \"magic\"; there are: ar_adam, ar_fused_adam, ar_fused_lamb, "},
    {"\"from\": \"coconet.2p10\"", "\"from\": \"coconet.2p9\"",
     ":19:", "unknown shape \"coconet.2p9\"; there are: vgg16.conv1_2"},
    {"{\"n\": 3, \"s\": 1}", "\"vgg17\"", ":17:", "unknown shape \"vgg17\""},
    {"\"held-out\"", "\"heldout\"", ":20:", "there are: search, held-out, adversarial"},
    {"\"use\": \"time\"", "\"use\": \"timing\"", ":19:", "there are: check, time, smoke"},
    {"\"zero_where\": \"x\"", "\"zero_where\": \"z\"", ":5:", "there is no buffer \"z\""},
    {"\"data\": {\"x\"", "\"data\": {\"y\"", ":18:", "\"y\" is no input of the task"},
    /* keys out of place */
    {"\"count\": \"n * 2\", \"data\"", "\"data\"", ":4:", "needs \"count\""},
    {"\"zero_where\": \"x\"", "\"align\": 12", ":5:", "a power of two from the element's"},
    {"\"zero_where\": \"x\"", "\"align\": 1", ":5:", "a power of two from the element's"},
    {"\"zero_where\": \"x\"", "\"align\": 512", ":5:", "bytes to 256"},
    {"\"zero_where\": \"x\"", "\"value\": 1", ":5:", "of kind \"out\" has no \"value\""},
    {"\"value\": \"n / 2.0\"", "\"count\": 2", ":7:", "of kind \"scalar\" has no \"count\""},
    {", \"data\": {\"generator\": \"normal\", \"sigma\": \"s\"}", "", ":4:", "needs \"data\""},
    {"{\"generator\": \"zeros\"}", "{}", ":18:", "\"generator\": NAME"},
    /* padding */
    {"\"data\": {\"generator\": \"normal\"",
     "\"pitch\": {\"row\": 1, \"stride\": 2}, \"data\": {\"generator\": \"normal\"",
     ":4:", "of kind \"in\" has no \"pitch\""},
    {"\"zero_where\": \"x\"", "\"pitch\": {\"row\": 1}", ":5:", "'stride' is missing"},
    {"\"zero_where\": \"x\"", "\"pitch\": {\"row\": 4, \"stride\": 2}",
     ":5:", "case smoke, pitch of y: expression \"2\" is 2; it must be in [4, "},
    /* aliases */
    {"\"oracle\": \"baseline\",", "\"alias\": [\"x\", \"z\"], \"oracle\": \"baseline\",",
     ":14:", "\"z\" is no buffer"},
    {"\"oracle\": \"baseline\",", "\"alias\": [\"x\"], \"oracle\": \"baseline\",",
     ":14:", "name at least one of each"},
    /* assumptions */
    {"\"block\": 64", "\"block\": 64, \"assume\": [\"a\"]", ":12:", "the number of a source line"},
    {"\"block\": 64", "\"block\": 64, \"assume\": [2]", ":12:", "from 1 to the 1 of "},
    /* domains */
    {"\"zero_where\": \"x\"", "\"domain\": {\"min\": 0}", ":5:", "\"out\" has no \"domain\""},
    {"\"value\": \"n / 2.0\"", "\"domain\": {\"most\": 1}, \"value\": 1", ":7:", "'most'"},
    {"\"value\": \"n / 2.0\"", "\"domain\": {\"min\": true}, \"value\": 1",
     ":7:", "must be text or a number"},
    {"\"value\": \"n / 2.0\"", "\"domain\": {\"finite\": 1}, \"value\": 1", ":7:", "true or false"},
    {"\"value\": \"n / 2.0\"", "\"domain\": {\"min\": \"m\"}, \"value\": 1",
     ":7:", "case smoke, domain of half: \"min\": expression \"m\", column 1: unknown name"},
    {"\"value\": \"n / 2.0\"", "\"domain\": {\"min\": 2, \"max\": 1}, \"value\": 1",
     ":7:", "\"min\" is 2, and \"max\" is 1; swap them"},
    {"\"value\": \"n / 2.0\"", "\"domain\": {\"min\": 2}, \"value\": 1",
     ":7:", "case smoke: the scalar half is 1, outside its domain (2 to inf)"},
    {"\"value\": \"n / 2.0\"", "\"domain\": {\"sorted\": true}, \"value\": 1",
     ":7:", "the scalar half has one value; leave \"sorted\""},
    {"\"type\": \"s32\"", "\"type\": \"s32\", \"domain\": {\"finite\": true}",
     ":6:", "an integer is always finite"},
    {"\"data\": {\"generator\": \"normal\"",
     "\"domain\": {\"permutation\": true}, \"data\": {\"generator\": \"normal\"",
     ":4:", "a permutation is of whole numbers"},
    /* references */
    {"\"entry\": \"k\"", "\"entry\": \"k\", \"reference\": true",
     ":10:", "the first start is the baseline, where a search begins"},
    {"\"block\": 64", "\"block\": 64, \"reference\": 1", ":12:", "true or false"},
    /* work */
    {WORK("5"), ":14:", "must be an object"},
    {WORK("{\"f32\": 1}"), ":14:", "'bytes' is missing"},
    {WORK("{\"bytes\": 1, \"flops\": 1}"), ":14:", "unknown key 'flops'"},
    {WORK("{\"bytes\": 1, \"f32\": true}"), ":14:", "must be text or a number"},
    {WORK("{\"bytes\": 1, \"f32\": \"T * n\"}"), ":14:",
     "case smoke, work, f32: expression \"T * n\", column 1: unknown name \"T\"; known here: n, s, "
     "half"},
    {WORK("{\"bytes\": \"4 - 2 * n\"}"),
     ":14:", "case smoke, work, bytes: expression \"4 - 2 * n\" is -2; an amount is 0 or more"},
    {WORK("{\"bytes\": \"16 * n + 1\"}"), ":14:",
     "case smoke: 49 bytes, but reading each input and writing each output once moves only 48"},
    /* expressions */
    {"\"count\": \"n * 2\"", "\"count\": \"m * 2\"", ":4:",
     "case smoke, length of x: expression \"m * 2\", column 1: unknown name \"m\"; known here: n, "
     "s, half"},
    {"\"count\": \"n * 2\"", "\"count\": \"n -\"", ":4:", "column 4: expected a number"},
    {"\"count\": \"n * 2\"", "\"count\": \"n - 3\"", ":4:", "is 0; it must be in [1, "},
    {"\"count\": \"n * 2\"", "\"count\": \"pow(n, 30)\"", ":4:", "it must be in"},
    {"\"count\": \"n * 2\"", "\"count\": \"pow(n, 60)\"", ":4:", "does not fit in 64 bits"},
    {", \"zero_where\": \"x\"}",
     "}, {\"name\": \"z\", \"kind\": \"out\", \"type\": \"f64\", \"count\": 1099511627776}",
     ":17:", "case smoke: its buffers take 8796093022256 bytes"},
    {"\"value\": \"n / 2.0\"", "\"value\": \"1e300\"", ":7:", "which f32 cannot hold"},
    {"{\"n\": 3, ", "{\"n\": 3000000000, ", ":6:", "it must be in [-2147483648, 2147483647]"},
    {"\"sigma\": \"s\"", "\"sigma\": \"0 - s\"", ":4:", "sigma is -1; it must be in"},
    {"\"grid\": \"ceil_div(n, T)\"", "\"grid\": \"ceil_div(n, U)\"",
     ":10:", "start plain, case smoke: launch 0 (k), grid[0]"},
    {"\"grid\": [1, \"n\"]", "\"grid\": [1, \"n * 100\"]", ":12:",
     "start other, case time: launch 0 (good), grid[1]: expression \"n * 100\" is 102400; it must "
     "be in [1, 65535] (n = 1024)"},
    {"\"shared\": \"4 * n\"", "\"shared\": \"400 * n\"", ":12:", "it must be in [0, 232448]"},
    {"\"block\": 64", "\"block\": 2048", ":12:", "is 2048; it must be in [1, 1024]"},
    {"\"block\": 64", "\"block\": [64, 32]", ":12:", "64 x 32 x 1 is 2048 threads"},
    {"\"values\": [16, 32]", "\"values\": [32, 1024]", ":10:", "1024 x 2 x 1 is 2048 threads"},
    {"\"depth\": \"n\"", "\"depth\": \"n - 3\"", ":15:", "must be at least 1"},
    {"\"relative_l2\": 1e-6", "\"relative_l2\": -1", ":15:", "a bound is negative"},
    {"\"name\": \"T\"", "\"name\": \"n\"", ":11:", "has the name of an argument"},
    {"\"entry\": \"k\"", "\"entry\": \"k-1\"", ":10:", "launch 0, entry: \"k-1\" is no name"},
    /* ranks */
    {RANKS("0"), ":14:", "case smoke, ranks: expression \"0\" is 0; it must be in [2, 8]"},
    {RANKS("1"), ":14:", "it must be in [2, 8]"},
    {RANKS("9"), ":14:", "it must be in [2, 8]"},
    {RANKS("true"), ":14:", "must be text or a number"},
    {RANKS("\"n + 5\""), ":14:", "case check, ranks: expression \"n + 5\" is 105"},
    {RANKS("\"m\""), ":14:", "unknown name \"m\""},
    {"\"oracle\": \"baseline\"", "\"ranks\": 2, \"oracle\": \"baseline\"",
     ":14:", "needs an oracle of its own"},
    {"\"kind\": \"scalar\", \"type\": \"s32\"", "\"kind\": \"rank\", \"type\": \"s32\"",
     ":6:", "of kind \"rank\" is of a task with \"ranks\""},
    {"\"kind\": \"scalar\", \"type\": \"s32\"", "\"kind\": \"rank\", \"type\": \"f32\"",
     ":6:", "unknown type of a rank's number \"f32\"; there are: u32, s32, u64, s64"},
    {"\"kind\": \"scalar\", \"type\": \"s32\"", "\"kind\": \"peers\", \"of\": \"x\"",
     ":6:", "of kind \"peers\" is of a task with \"ranks\"; say how many ranks there are"},
    {"\"kind\": \"scalar\", \"type\": \"s32\"", "\"kind\": \"peers\"", ":6:", "'of' is missing"},
    {"\"zero_where\": \"x\"", "\"by_rank\": true", ":5:", "\"by_rank\" of y is of a task with"},
    {"\"entry\": \"k\", \"grid\": \"ceil_div(n, T)\", \"block\": [\"T\", 2],",
     "\"scratch\": [{\"name\": \"a\", \"kind\": \"peers\", \"of\": \"z\"}],\n"
     "\"steps\": [{\"entry\": \"k\", \"grid\": 1, \"block\": 32}],",
     ":10:", "a scratch buffer of kind \"peers\" is of a task with \"ranks\"; say how many ranks"},
    {"\"value\": \"n / 2.0\"", "\"by_rank\": true", ":7:", "has no \"by_rank\""},
    {WORK("{\"bytes\": 1, \"link_bytes\": 1}"),
     ":14:", "a task without \"ranks\" has no links; leave it out"},
    /* what a task must have */
    {"\"use\": \"smoke\"", "\"use\": \"check\"", ":16:", "use \"smoke\"; a search needs one"},
    {"\"use\": \"check\"", "\"use\": \"time\"", ":16:", "use \"check\"; a search needs one"},
    {"\"use\": \"time\"", "\"use\": \"check\"", ":16:", "use \"time\"; a search needs one"},
    {"\"kind\": \"out\", \"type\": \"f32\", \"count\": \"n * 2\", \"zero_where\": \"x\"",
     "\"kind\": \"scalar\", \"type\": \"f32\", \"value\": 1", ":3:", "no argument is of kind"},
    {"\"zero_where\": \"x\"}", "\"zero_where\": \"y\"}", ":5:", "a mask must be an input"},
    /* files */
    {"\"source\": \"k.cu\"", "\"source\": \"l.cu\"", ":10:", "there is no file"},
    {"\"generator\": \"normal\", \"sigma\": \"s\"", "\"file\": \"x.npy\"",
     ":4:", "there is no file"},
    {"\"generator\": \"zeros\"", "\"file\": \"../x.npy\"", ":18:", "leaves the task's folder"},
    {"\"generator\": \"zeros\"", "\"file\": \"a/../../x.npy\"", ":18:", "leaves the task's folder"},
    {"\"generator\": \"zeros\"", "\"file\": \"/etc/passwd\"", ":18:", "leaves the task's folder"},
    {"\"generator\": \"zeros\"", "\"file\": \"k.cu\"", ":18:", "bytes of elements, and"},
    {"\"generator\": \"zeros\"", "\"file\": \"k.cu\", \"generator\": \"zeros\"",
     ":18:", "unknown key 'generator'"},
    {"\"generator\": \"zeros\"", "\"fiel\": \"k.cu\"",
     ":18:", "\"generator\": NAME or \"file\": PATH"},
    {"\"source\": \"k.cu\"", "\"source\": \"k.c\"", ":10:", "must end in .cu, .ll or .bc"},
    {"\"oracle\": \"baseline\"", "\"oracle\": \"o.c\"", ":14:", "there is no file"},
    /* JSON itself */
    {"\"oracle\": \"baseline\",", "\"oracle\": \"baseline\"", ":15:3: ", "'\"tolerance\"'"},
    {"\"n\": 3,", "\"n\": 3, \"n\": 4,", ":17:", "duplicate"},
    {"\"n\": 3,", "\"n\": \"3\",", ":17:", "must be a number"},
};

static void test_mistakes(void **state) {
    const folder *f = *state;
    for (size_t i = 0; i < sizeof MISTAKES / sizeof MISTAKES[0]; i++) {
        const mistake *m = &MISTAKES[i];
        char *text = changed(m->find, m->replace), place[192];
        write_text(f->json, text);
        free(text);
        task *t = NULL;
        ev_error err = {EV_OK, ""};
        if (task_load(f->json, &t, &err) != EV_BAD)
            fail_msg("%s was taken", m->replace);
        assert_null(t);
        (void)snprintf(place, sizeof place, "%s%s", f->json, m->place);
        if (strncmp(err.text, place, strlen(place)) != 0)
            fail_msg("\"%s\" does not begin with \"%s\"", err.text, place);
        expect_words(err.text, m->words);
    }
}

static void test_missing_file(void **state) {
    const folder *f = *state;
    task *t = NULL;
    ev_error err = {EV_OK, ""};
    assert_int_equal(task_load(f->json, &t, &err), EV_BAD);
    expect_words(err.text, f->json);
    write_text(f->json, "");
    assert_int_equal(task_load(f->json, &t, &err), EV_BAD);
    write_text(f->json, "[]");
    assert_int_equal(task_load(f->json, &t, &err), EV_BAD);
    expect_words(err.text, "must be an object");
}

/* ---- oracles from source ---- */

static ev_status load_with_oracle(const folder *f, const char *source, task **t, ev_error *err) {
    char path[128];
    (void)snprintf(path, sizeof path, "%s/o.c", f->path);
    write_text(path, source);
    char *text = changed("\"baseline\"", "\"o.c\"");
    write_text(f->json, text);
    free(text);
    return task_load(f->json, t, err);
}

static void test_oracle_source(void **state) {
    const folder *f = *state;
    assert_int_equal(setenv("TMPDIR", f->path, 1), 0);
    task *t = NULL;
    ev_error err = {EV_OK, ""};
    ev_status status =
        load_with_oracle(f,
                         "#include \"evoke_oracle.h\"\n#include <math.h>\n"
                         "int evoke_oracle(evoke_oracle_call *call) {\n"
                         "    call->value[0] = sqrt((double)call->first);\n    return 0;\n}\n",
                         &t, &err);
    if (status != EV_OK)
        fail_msg("%s", err.text);
    assert_int_equal(t->oracle_kind, TASK_ORACLE_SOURCE);
    double value = 0;
    evoke_oracle_call call = {.first = 49, .count = 1, .value = &value};
    assert_int_equal(t->oracle(&call), 0);
    assert_true(value == 7);
    task_free(t);

    assert_int_equal(load_with_oracle(f, "int evoke_oracle(void) { retrun 0; }\n", &t, &err),
                     EV_BAD);
    expect_words(err.text, "o.c does not compile");
    expect_words(err.text, "retrun"); /* clang's own words */
    assert_int_equal(load_with_oracle(f, "int other(void) { return 0; }\n", &t, &err), EV_BAD);
    expect_words(err.text, "does not define evoke_oracle");

    char pattern[128];
    (void)snprintf(pattern, sizeof pattern, "%s/evoke-oracle-*", f->path);
    glob_t left;
    assert_int_equal(glob(pattern, 0, NULL, &left), GLOB_NOMATCH);
    assert_int_equal(unsetenv("TMPDIR"), 0);
}

/* ---- domains ---- */

static task *load_with(const folder *f, const char *find, const char *replace) {
    task *t = NULL;
    ev_error err = {EV_OK, ""};
    char *text = changed(find, replace);
    write_text(f->json, text);
    free(text);
    if (task_load(f->json, &t, &err) != EV_OK)
        fail_msg("%s", err.text);
    return t;
}

static void expect_refusal(const task *t, const float *data, uint64_t count, const char *words) {
    ev_error err = {EV_OK, ""};
    task_range range;
    assert_int_equal(task_range_of(t, &t->arguments[0], &t->cases[0], &range, &err), EV_OK);
    assert_int_equal(task_range_check(t, &t->arguments[0], &t->cases[0], &range, data, count, &err),
                     EV_BAD);
    expect_words(err.text, words);
}

static void test_domain(void **state) {
    task *t = load_with(*state, "\"data\": {\"generator\": \"normal\"",
                        "\"domain\": {\"min\": 0, \"max\": \"2 * n\", \"sorted\": true, "
                        "\"distinct\": true}, \"data\": {\"generator\": \"normal\"");
    const float beyond[] = {0, 7}, falling[] = {3, 2}, twice[] = {1, 1}, good[] = {0, 1, 6};
    const float unordered[] = {0, NAN};
    ev_error err = {EV_OK, ""};
    task_range range;
    expect_refusal(t, beyond, 2, "task good, case smoke: element 1 of x is 7");
    expect_refusal(t, falling, 2, "the elements ascend");
    expect_refusal(t, twice, 2, "has the element 1 twice");
    expect_refusal(t, unordered, 2, "element 1 of x is nan");
    assert_int_equal(task_range_of(t, &t->arguments[0], &t->cases[0], &range, &err), EV_OK);
    assert_int_equal(task_range_check(t, &t->arguments[0], &t->cases[0], &range, good, 3, &err),
                     EV_OK);
    task_free(t);
}

/* The ends of a domain are values of the argument's type: 0.1 is within 0.1 to 0.1 in 32 bits. */
static void test_domain_ends(void **state) {
    task_free(load_with(*state, "\"value\": \"n / 2.0\"",
                        "\"domain\": {\"min\": 0.1, \"max\": 0.1}, \"value\": 0.1"));
    task_free(load_with(*state, "\"value\": \"n / 2.0\"",
                        "\"domain\": {\"min\": 1e-12, \"max\": 1e-12}, \"value\": 1e-12"));
}

/* A scalar is free if nothing but the kernel sees its name. */
static void test_free_scalars(void **state) {
    task *t = load_with(*state, "\"value\": \"n / 2.0\"", "\"value\": 0.5");
    assert_false(task_scalar_is_free(t, &t->arguments[2])); /* a count has the name */
    assert_true(task_scalar_is_free(t, &t->arguments[3]));
    task_free(t);
    t = load_good(*state);
    assert_false(task_scalar_is_free(t, &t->arguments[3])); /* depends on a size */
    task_free(t);
}

/* The steps of a start at a case, written out; its scratch; the launch that edits are of. */
static void test_steps(void **state) {
    const folder *f = *state;
    char *text = changed(
        "\"entry\": \"k\", \"grid\": \"ceil_div(n, T)\", \"block\": [\"T\", 2],",
        "\"scratch\": [{\"name\": \"z\", \"type\": \"f64\", \"count\": \"n / T + 1\"}],\n"
        "\"steps\": [{\"entry\": \"small\", \"grid\": 1, \"block\": 32},\n"
        "  {\"repeat\": \"T / 8\", \"counter\": \"i\", \"steps\": [\n"
        "    {\"entry\": \"k\", \"grid\": \"n\", \"block\": 64, \"shared\": \"8 * i\",\n"
        "     \"arguments\": [\"z\", {\"type\": \"f32\", \"value\": \"i + half\"}, \"y\"]}]}],");
    task *t = NULL;
    task_steps steps;
    ev_error err = {EV_OK, ""};
    write_text(f->json, text);
    free(text);
    if (task_load(f->json, &t, &err) != EV_OK)
        fail_msg("%s", err.text);
    const task_start *start = &t->starts[0];
    const expr_name chosen = {"T", expr_of_whole(16)};
    assert_true(task_has_steps(t) && task_start_has_steps(start));
    assert_false(task_start_has_steps(&t->starts[1]));
    assert_string_equal(launch_plan_entry(start->plan), "k"); /* it has the most threads */
    assert_int_equal(
        task_steps_of(t, start, start->plan, &chosen, 1, task_find_case(t, "check"), &steps, &err),
        EV_OK);
    assert_int_equal(steps.count, 3);
    assert_int_equal(steps.scratch[0], (100 / 16 + 1) * 8);
    assert_int_equal(steps.all[0].given_count, 4); /* the task's arguments */
    assert_int_equal(steps.all[2].at.grid[0], 100);
    assert_int_equal(steps.all[2].at.shared_bytes, 8);
    assert_int_equal(steps.all[2].given[0].kind, TASK_GIVEN_SCRATCH);
    assert_true(steps.all[2].given[1].value.real == 51);
    assert_int_equal(steps.all[2].given[2].index, 1);
    char name[64];
    task_step_name(start->plan, &steps, 2, name, sizeof name);
    assert_string_equal(name, "launch 3 of 3, kernel `k`");
    task_steps_free(&steps);
    assert_int_equal(task_bits_of_main(t, start, 4), 2); /* parameter 2 is argument 1 */
    size_t least = 0;
    assert_int_equal(task_launches_least(t, task_find_case(t, "check"), &least, &err), EV_OK);
    assert_int_equal(least, 1);
    task_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_structure, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_evaluation, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_data, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_launch, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_steps, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_identity, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_headers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_too_many_headers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_domain, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_domain_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_free_scalars, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_work, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_reference, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_mistakes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_missing_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_oracle_source, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
