/* Exports for other programs: each format is read back by a parser of this file's own, and the
 * numbers are held against the bundle's manifest or the records. */
#include "tests/cli_run.h"

#include "base/json.h"
#include "kernels/task.h"
#include "tuner/cli/cli.h"
#include "tuner/exports/exports.h"
#include "tuner/exports/network.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/asserts.h"
#include "tests/ok.h"

/* Layer "a" has a shape that the bundle was timed at; "b" is too large for one launch: 65536 is the
 * largest that was validated, so 200000 take four; "c" has no kernel; "d" asks for a shape that no
 * variant was validated for. */
static const char NETWORK[] =
    "{\"network\": \"two\", \"doc\": \"a test\", \"batch\": 3, \"layers\": [\n"
    "{\"names\": [\"a\"], \"phase\": \"fwd\", \"kernel\": \"scale\", \"shape\": {\"n\": 32768}},\n"
    "{\"names\": [\"b\", \"absent\"], \"phase\": \"ig\", \"kernel\": \"scale\", \"launches\": 2,\n"
    " \"shape\": {\"n\": 200000}, \"split\": \"n\", \"without\": \"the rest\"},\n"
    "{\"names\": [\"d\"], \"phase\": \"wg\", \"kernel\": \"scale\", \"shape\": {\"n\": "
    "200000}}]}\n";

static const char TABLE[] = "DATA\n4\n"
                            "a -1 900000 NONE 0 800000 NONE 0 700000 ALLREDUCE 1000000 5\n"
                            "B\t-1\t600000\tNONE\t0\t500000\tNONE\t0\t400000\tALLREDUCE\t24\t0\n"
                            "c -1 300000 ALLGATHER 7 200000 NONE 0 100000 NONE 0 0\r\n"
                            "d -1 30 NONE 0 20 NONE 0 10 NONE 0 0\n\n";

static const char JOB[] =
    "[{\"model\": \"Table\", \"time_per_iteration\": 4530065, \"total_iterations\": 9,\n"
    "  \"max_parallelism\": 16}, {\"model\": \"other\", \"time_per_iteration\": 7.5}]\n";

static const char YAML[] = "model: two\ndataset:\n  record_length: 1000 # bytes\n"
                           "train:\n  epochs: 5\n  computation_time:\n    mean: 0.5   # seconds\n"
                           "    stdev: 0.1\n    type: normal\nreader:\n  batch_size: 40\n"
                           "metric:\n  au: 0.8\n";

/* ---- readers ---- */

typedef struct row {
    char name[32], dependency[8], collective[3][16];
    double time[4], bytes[3];
} row;

/* The layout that Dally's and Chakra's readers expect; returns the number of layers. */
static size_t read_table(const char *name, row *rows, size_t most) {
    char *text = cli_read(name), *line = text, kind[8] = "";
    int used = 0;
    size_t count = 0, read = 0;
    assert_int_equal(sscanf(line, "%7s%n", kind, &used), 1);
    assert_string_equal(kind, "DATA");
    line += used + 1;
    count = strtoul(line, &line, 10);
    assert_true(count <= most);
    for (; read < count; read++) {
        row *r = &rows[read];
        int fields = sscanf(line, "%31s %7s %lf %15s %lf %lf %15s %lf %lf %15s %lf %lf%n", r->name,
                            r->dependency, &r->time[0], r->collective[0], &r->bytes[0], &r->time[1],
                            r->collective[1], &r->bytes[1], &r->time[2], r->collective[2],
                            &r->bytes[2], &r->time[3], &used);
        assert_int_equal(fields, 12);
        line += used;
    }
    assert_int_equal(strspn(line, "\n"), strlen(line));
    free(text);
    return count;
}

static double sum_of(const row *rows, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += rows[i].time[0] + rows[i].time[1] + rows[i].time[2] + rows[i].time[3];
    return sum;
}

static json_t *read_json(const char *name) {
    char *text = cli_read(name);
    json_t *json = json_loads(text, 0, NULL);
    free(text);
    assert_non_null(json);
    return json;
}

/* What the manifest records of the only variant at a case. */
static double recorded_ns(const char *at) {
    json_t *manifest = read_json("out/manifest.json");
    const json_t *kernel = json_array_get(json_object_get(manifest, "kernels"), 0);
    const json_t *v = json_array_get(json_object_get(kernel, "variants"), 0);
    double ns = 0;
    size_t i = 0;
    const json_t *one = NULL;
    json_array_foreach(json_object_get(v, "cases"), i, one) {
        if (strcmp(ev_json_text(one, "case", ""), at) == 0)
            ns = ev_json_number(one, "ns", 0);
    }
    json_decref(manifest);
    return ns;
}

static const json_t *note_of(const json_t *notes, const char *layer, const char *phase) {
    size_t i = 0;
    const json_t *one = NULL;
    json_array_foreach(json_object_get(notes, "layers"), i, one) {
        if (strcmp(ev_json_text(one, "layer", ""), layer) == 0 &&
            strcmp(ev_json_text(one, "phase", ""), phase) == 0)
            return one;
    }
    fail_msg("no note on %s %s", layer, phase);
    return NULL;
}

/* ---- a run and a bundle ---- */

static int setup(void **state) {
    if (cli_setup(state) != 0)
        return 1;
    cli_write("net.json", NETWORK);
    cli_write("Table.txt", TABLE);
    cli_write("job.json", JOB);
    cli_write("w.yaml", YAML);
    ev_proc_result r =
        CLI_RUN("tune", cli_path("task.json"), "--bold", "--evaluations", "120", "--seed", "1",
                "--records", cli_path("r.sqlite"), "--out", cli_path("out"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    return 0;
}

/* The words behind the format begin with the file to write. */
#define EXPORT(format, ...)                                                                        \
    CLI_RUN("export", "--to", format, cli_path("out"), "--network", cli_path("net.json"),          \
            "--base", cli_path("Table.txt"), "--out", __VA_ARGS__)

/* ---- tables ---- */

static void dally_has_the_bundles_times(void **state) {
    (void)state;
    row rows[8];
    ev_proc_result r = EXPORT("dally", cli_path("New.txt"), "--job", cli_path("job.json"));
    cli_expect(&r, 0);
    assert_non_null(strstr(ev_str_text(&r.err), "2 of the 2 times from the bundle are modelled"));
    ev_proc_result_free(&r);
    assert_int_equal(read_table("New.txt", rows, 8), 4);
    double a = recorded_ns("later");
    assert_true(a > 0);
    assert_true(rows[0].time[0] == round(a));
    json_t *notes = read_json("New.notes.json");
    const json_t *b = note_of(notes, "B", "ig");
    double large = ev_json_number(b, "launch_ns", 0);
    assert_true(large > a); /* twice the work of "later" */
    assert_int_equal(ev_json_integer(b, "launches", 0), 8);
    assert_string_equal(ev_json_text(b, "without", ""), "the rest");
    assert_string_equal(ev_json_text(b, "shape", ""), "n=65536");
    assert_string_equal(ev_json_text(note_of(notes, "a", "fwd"), "how", ""),
                        "recorded in the bundle");
    assert_true(rows[1].time[1] == round(8 * large));
    /* all else is as published */
    assert_true(rows[0].time[1] == 800000 && rows[0].time[2] == 700000 && rows[0].time[3] == 5);
    assert_true(rows[1].time[0] == 600000 && rows[2].time[0] == 300000 && rows[3].time[2] == 10);
    assert_string_equal(rows[2].collective[0], "ALLGATHER");
    assert_true(rows[2].bytes[0] == 7 && rows[0].bytes[2] == 1e6);
    assert_string_equal(ev_json_text(note_of(notes, "c", "ig"), "source", ""), "published");
    assert_non_null(strstr(ev_json_text(note_of(notes, "d", "wg"), "why", ""), "no variant"));
    json_decref(notes);
}

/* Table and job change by one factor; and the share of communication follows from it. */
static void the_job_is_scaled_with_the_table(void **state) {
    (void)state;
    row rows[8];
    size_t count = read_table("New.txt", rows, 8);
    json_t *jobs = read_json("New.job.json"), *notes = read_json("New.notes.json");
    double before = 900000 + 800000 + 700000 + 5 + 600000 + 500000 + 400000 + 600000 + 60;
    double after = sum_of(rows, count), factor = ev_json_number(notes, "factor", 0);
    assert_true(fabs(ev_json_number(notes, "compute_ns_before", 0) - before) < 0.5);
    assert_true(fabs(ev_json_number(notes, "compute_ns_after", 0) - after) <= 2);
    assert_true(fabs(factor - after / before) < 1e-5);
    const json_t *job = json_array_get(jobs, 0);
    assert_true(fabs(ev_json_number(job, "time_per_iteration", 0) - 4530065 * factor) <= 0.5);
    assert_true(json_is_integer(json_object_get(job, "time_per_iteration")));
    assert_int_equal(ev_json_integer(job, "max_parallelism", 0), 16);
    assert_true(ev_json_number(json_array_get(jobs, 1), "time_per_iteration", 0) == 7.5);
    const json_t *comm = json_object_get(notes, "communication");
    const json_t *link = json_array_get(json_object_get(comm, "links"), 0);
    double ns = (2 * (1e6 + 24) + 7) / ev_json_number(link, "gb_per_s", 0);
    assert_true(fabs(ev_json_number(link, "share_before", 0) - ns / (ns + before)) < 1e-9);
    assert_true(fabs(ev_json_number(link, "share_after", 0) - ns / (ns + after)) < 1e-5);
    assert_true(ev_json_number(link, "share_after", 0) > ev_json_number(link, "share_before", 0));
    json_decref(jobs);
    json_decref(notes);
}

/* The same table in microseconds; 5 ns are not nothing. */
static void chakra_is_in_microseconds(void **state) {
    (void)state;
    row ns[8], us[8];
    ev_proc_result r = EXPORT("chakra", cli_path("us.txt"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    assert_int_equal(read_table("us.txt", us, 8), read_table("New.txt", ns, 8));
    for (size_t i = 0; i < 4; i++) {
        for (size_t p = 0; p < 4; p++) {
            double want = ns[i].time[p] / 1000;
            assert_true(fabs(us[i].time[p] - want) <= 0.501 || us[i].time[p] == 1);
            assert_true((us[i].time[p] > 0) == (want > 0));
        }
    }
    /* Read in microseconds, the table is a thousand times as long, and the kernels are not. */
    r = EXPORT("chakra", cli_path("long.txt"), "--base-unit", "us");
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    (void)read_table("long.txt", ns, 8);
    assert_true(ns[0].time[0] == us[0].time[0] && ns[0].time[1] == 800000);
}

static void only_faster_keeps_the_published(void **state) {
    (void)state;
    row rows[8];
    cli_copy_changed("Table.txt", "fast.txt", "a -1 900000", "a -1 2");
    ev_proc_result r =
        CLI_RUN("export", "--to", "dally", cli_path("out"), "--network", cli_path("net.json"),
                "--base", cli_path("fast.txt"), "--out", cli_path("kept.txt"), "--only-faster");
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    (void)read_table("kept.txt", rows, 8);
    assert_true(rows[0].time[0] == 2);
    assert_true(rows[1].time[1] < 500000);
}

/* ---- DLIO ---- */

static double yaml_number(const char *text, const char *key) {
    const char *at = strstr(text, key);
    assert_non_null(at);
    return strtod(at + strlen(key), NULL);
}

static void dlio_needs_more_bandwidth(void **state) {
    (void)state;
    ev_proc_result r = EXPORT("dlio", cli_path("w2.yaml"), "--job", cli_path("w.yaml"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    json_t *notes = read_json("w2.notes.json");
    char *text = cli_read("w2.yaml");
    double factor = ev_json_number(notes, "factor", 0);
    double mean = yaml_number(text, "\n    mean: ");
    assert_true(factor > 0 && factor < 1);
    assert_true(fabs(mean - 0.5 * factor) < 1e-8);
    assert_true(fabs(yaml_number(text, "\n    stdev: ") - 0.1 * factor) < 1e-8);
    assert_non_null(strstr(text, "   # seconds\n"));
    assert_non_null(strstr(text, "\n    type: normal\n"));
    assert_non_null(strstr(text, "(modelled)"));
    const json_t *bandwidth = json_object_get(notes, "bandwidth");
    double now = ev_json_number(bandwidth, "bytes_per_second", 0);
    assert_true(fabs(now - 40 * 1000 * 0.8 / (0.5 * factor)) < 1e-6 * now);
    assert_true(fabs(ev_json_number(bandwidth, "bytes_per_second_before", 0) - 64000) < 1e-6);
    free(text);
    json_decref(notes);
}

/* ---- T4 ---- */

/* What the schema, version 1.0.0, asks of a result. */
static void check_result(const json_t *r) {
    static const char *const words[] = {"timeout",     "compile",     "runtime",
                                        "correctness", "constraints", "correct"};
    const json_t *times = json_object_get(r, "times");
    const char *invalidity = ev_json_text(r, "invalidity", "");
    size_t known = 0, i = 0;
    const json_t *m = NULL;
    assert_true(json_is_object(json_object_get(r, "configuration")));
    assert_true(json_is_object(times) && json_is_array(json_object_get(times, "runtimes")));
    assert_true(json_is_number(json_object_get(r, "correctness")));
    assert_true(json_is_array(json_object_get(r, "objectives")));
    for (size_t w = 0; w < 6; w++)
        known += strcmp(words[w], invalidity) == 0;
    assert_int_equal(known, 1);
    json_array_foreach(json_object_get(r, "measurements"), i, m) {
        const json_t *value = json_object_get(m, "value");
        assert_true(json_is_string(json_object_get(m, "name")));
        assert_true(json_is_number(value) || json_is_string(value) || json_is_array(value));
        assert_true(json_is_string(json_object_get(m, "unit")));
    }
    bool is_timed = strcmp(invalidity, "correct") == 0;
    assert_true(is_timed == (json_array_size(json_object_get(times, "runtimes")) == 1));
}

static double t4_fastest(const json_t *results) {
    double least = INFINITY;
    size_t i = 0;
    const json_t *r = NULL;
    json_array_foreach(results, i, r) {
        const json_t *runtimes = json_object_get(json_object_get(r, "times"), "runtimes");
        if (json_array_size(runtimes) > 0)
            least = fmin(least, json_number_value(json_array_get(runtimes, 0)));
    }
    return least;
}

/* ---- CSV ---- */

/* The next field of RFC 4180; *at is behind its comma or line end, *last: it ended a row. */
static void take_field(const char **at, char *out, size_t room, bool *last) {
    const char *p = *at;
    size_t length = 0;
    bool quoted = *p == '"';
    for (p += quoted; quoted ? *p != '"' || p[1] == '"' : strchr(",\r", *p) == NULL; p++) {
        p += quoted && *p == '"';
        assert_true(*p != '\0' && length + 1 < room);
        out[length++] = *p;
    }
    out[length] = '\0';
    p += quoted;
    *last = *p == '\r';
    assert_true(*p == ',' || (*p == '\r' && p[1] == '\n'));
    *at = p + 1 + *last;
}

/* Rows of the file; adds up the numbers of a column, and takes their least above 0. */
static size_t read_csv(const char *name, const char *column, double *sum, double *least) {
    char *text = cli_read(name), field[4096];
    const char *at = text;
    size_t wanted = SIZE_MAX, columns = 0, rows = 0;
    for (bool last = false; !last; columns++) {
        take_field(&at, field, sizeof field, &last);
        wanted = strcmp(field, column) == 0 ? columns : wanted;
    }
    assert_true(wanted != SIZE_MAX);
    *sum = 0;
    *least = INFINITY;
    for (; *at != '\0'; rows++) {
        size_t found = 0;
        for (bool last = false; !last; found++) {
            take_field(&at, field, sizeof field, &last);
            double value = found == wanted ? strtod(field, NULL) : 0;
            *sum += value;
            *least = value > 0 && value < *least ? value : *least;
        }
        assert_int_equal(found, columns);
    }
    free(text);
    return rows;
}

static void t4_and_csv_list_the_run(void **state) {
    (void)state;
    double sum = 0, least = 0;
    json_t *summary = cli_json(CLI_RUN("export", "--to", "t4", "--records", cli_path("r.sqlite"),
                                       "--out", cli_path("t4.json"), "--json"),
                               0);
    json_t *t4 = read_json("t4.json");
    const json_t *results = json_object_get(t4, "results"), *r = NULL;
    size_t i = 0;
    assert_string_equal(ev_json_text(t4, "schema_version", ""), "1.0.0");
    json_array_foreach(results, i, r) check_result(r);
    assert_int_equal(ev_json_integer(summary, "results", 0), json_array_size(results));
    assert_int_equal(json_array_size(results) + (size_t)ev_json_integer(summary, "duplicates", 0),
                     120);
    ev_proc_result csv = CLI_RUN("export", "--to", "csv", "--records", cli_path("r.sqlite"),
                                 "--out", cli_path("r.csv"));
    cli_expect(&csv, 0);
    ev_proc_result_free(&csv);
    assert_int_equal(read_csv("r.csv", "ns", &sum, &least), 120);
    assert_true(fabs(t4_fastest(results) * 1e6 - least) < 1e-6 * least);
    json_decref(t4);
    json_decref(summary);
}

static void csv_lists_the_bundle(void **state) {
    (void)state;
    double sum = 0, least = 0, want = 0;
    ev_proc_result r =
        CLI_RUN("export", "--to", "csv", cli_path("out"), "--out", cli_path("b.csv"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    size_t rows = read_csv("b.csv", "ns", &sum, &least), cases = 0;
    json_t *manifest = read_json("out/manifest.json");
    const json_t *kernel = json_array_get(json_object_get(manifest, "kernels"), 0);
    static const char *const lists[] = {"baselines", "variants", "starts"};
    for (size_t l = 0; l < 3; l++) {
        size_t v = 0, c = 0;
        const json_t *variant = NULL, *at = NULL;
        json_array_foreach(json_object_get(kernel, lists[l]), v, variant) {
            json_array_foreach(json_object_get(variant, "cases"), c, at) {
                want += ev_json_number(at, "ns", 0);
                cases++;
            }
        }
    }
    assert_int_equal(rows, cases);
    assert_true(want > 0 && fabs(sum - want) < 1e-9 * want);
    json_decref(manifest);
}

/* ---- what is refused ---- */

static void bad_inputs_name_thing_place_and_cure(void **state) {
    (void)state;
    cli_expect_error(CLI_RUN("export", "--to", "dally", cli_path("out"), "--network", "resnet99",
                             "--base", cli_path("Table.txt"), "--out", cli_path("x.txt")),
                     2, "no network 'resnet99'");
    cli_expect_error(CLI_RUN("export", "--to", "dally", cli_path("out"), "--network", "resnet18",
                             "--base", cli_path("Table.txt"), "--out", cli_path("x.txt")),
                     2, "has no kernel for a layer of resnet18: it has scale");
    cli_expect_error(CLI_RUN("export", "--to", "chakra", cli_path("out"), "--network",
                             cli_path("net.json"), "--out", cli_path("x.txt")),
                     2, "needs --base TABLE.txt");
    cli_expect_error(CLI_RUN("export", "--to", "chakra", cli_path("out"), "--out", "x"), 2,
                     "needs --network NAME");
    cli_expect_error(CLI_RUN("export", "--to", "chakra", "--network", "bert", "--out", "x"), 2,
                     "needs one BUNDLE");
    cli_expect_error(CLI_RUN("export", "--to", "t4", cli_path("out"), "--out", "x"), 2,
                     "needs --records FILE");
    cli_expect_error(CLI_RUN("export", "--to", "csv", "--records", cli_path("r.sqlite"), "--only",
                             "other", "--out", "x"),
                     2, "it has scale");
    cli_expect_error(EXPORT("dally", cli_path("x.txt"), "--only", "scale"), 2, "takes no --only");
    cli_expect_error(CLI_RUN("export", "--to", "t4", "--records", cli_path("r.sqlite"), "--network",
                             "bert", "--out", "x"),
                     2, "reads no layers of a network");
    cli_expect_error(
        CLI_RUN("export", "--records", cli_path("r.sqlite"), "--network", "bert", "--out", "x"), 2,
        "--network is for other formats than --to bundle");
    cli_expect_error(EXPORT("dally", cli_path("x.txt"), "--gpu", "a100"), 2,
                     "has variants for h200");
    cli_expect_error(EXPORT("dlio", cli_path("x.yaml")), 2, "needs --job WORKLOAD.yaml");
    cli_expect_error(EXPORT("dlio", cli_path("x.yaml"), "--job", cli_path("Table.txt")), 2,
                     "has no train.computation_time");
    cli_copy_changed("job.json", "job2.json", "Table", "Chair");
    cli_expect_error(EXPORT("dally", cli_path("x.txt"), "--job", cli_path("job2.json")), 2,
                     "no job whose model is 'Table'");
    assert_int_not_equal(access(cli_path("x.txt"), F_OK), 0); /* nothing half-written */
    assert_int_not_equal(access(cli_path("x.yaml"), F_OK), 0);
}

static void bad_tables_name_the_line(void **state) {
    (void)state;
    static const struct {
        const char *old, *new, *words;
    } rows[] = {
        {"DATA", "MODEL", "bad.txt:1: the first line is not DATA"},
        {"\n4\n", "\nfour\n", "bad.txt:2: the second line"},
        {"\n4\n", "\n5\n", "says 5 layers, and there are 4"},
        {"\n4\n", "\n3\n", "bad.txt:6: there are more layers"},
        {"600000\tNONE", "NONE", "bad.txt:4: a layer has 12 columns"},
        {"900000", "9e5", "bad.txt:3: column 3, '9e5'"},
        {"1000000 5", "-1 5", "bad.txt:3: column 11, '-1'"},
        {"\nc -1", "\nA -1", "two layers called 'a'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cli_copy_changed("Table.txt", "bad.txt", rows[i].old, rows[i].new);
        cli_expect_error(CLI_RUN("export", "--to", "dally", cli_path("out"), "--network",
                                 cli_path("net.json"), "--base", cli_path("bad.txt"), "--out",
                                 cli_path("x.txt")),
                         2, rows[i].words);
    }
}

static void bad_networks_name_the_place(void **state) {
    (void)state;
    static const struct {
        const char *old, *new, *words;
    } rows[] = {
        {"\"fwd\"", "\"forward\"", "the phase 'forward'"},
        {"\"shape\": {\"n\": 32768}", "\"from\": \"vgg\"", "no shape 'vgg'"},
        {"\"split\": \"n\"", "\"split\": \"m\"", "no number 'm' to split"},
        {"{\"n\": 32768}", "{\"m\": 32768}", "lacks 'n'"},
        {"{\"n\": 32768}", "{\"n\": \"many\"}", "neither a number nor"},
        {"\"b\", \"absent\"", "\"b\", \"B\"", "stands twice for the phase ig"},
        {"\"launches\": 2", "\"launches\": 0", "'launches' is below 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cli_copy_changed("net.json", "bad.json", rows[i].old, rows[i].new);
        cli_expect_error(CLI_RUN("export", "--to", "dally", cli_path("out"), "--network",
                                 cli_path("bad.json"), "--base", cli_path("Table.txt"), "--out",
                                 cli_path("x.txt")),
                         2, rows[i].words);
    }
}

/* ---- tables of this program ---- */

static bool has_number(const network_layer *layer, const char *name) {
    for (size_t i = 0; i < layer->shape_count; i++) {
        if (strcmp(layer->shape[i].name, name) == 0)
            return true;
    }
    return false;
}

/* Each shipped network can be read, and gives every number that a shape of the kernel has. */
static void shipped_networks_fit_shipped_kernels(void **state) {
    (void)state;
    static const struct {
        const char *name;
        size_t layers;
    } shipped[] = {{"resnet18", 13},      {"resnet50", 46},     {"vgg11", 7},    {"vgg16", 12},
                   {"zaremba-medium", 2}, {"zaremba-large", 2}, {"awd-lstm", 1}, {"bert", 1}};
    for (size_t i = 0; i < sizeof shipped / sizeof shipped[0]; i++) {
        ev_error err = {0};
        network n;
        ev_arena *arena = ev_arena_new();
        OK(network_read(arena, shipped[i].name, 7, 0.25, &n, &err));
        assert_string_equal(n.name, shipped[i].name);
        assert_int_equal(n.layer_count, shipped[i].layers);
        assert_non_null(strstr(cli_options[CLI_OPT_NETWORK].doc, n.name));
        for (size_t l = 0; l < n.layer_count; l++) {
            task *t = NULL;
            OK(task_open(n.layers[l].kernel, &t, &err));
            for (size_t d = 0; d < t->cases[0].shape_count; d++)
                assert_true(has_number(&n.layers[l], t->cases[0].shape[d].name));
            task_free(t);
        }
        ev_arena_free(arena);
    }
}

/* Compares a line of the scheduler's list, LAYER KERNEL NAME=VALUE ..., with a layer. */
static void is_line_of(const network *n, const network_layer *l, char *line) {
    char want[128], *place = NULL;
    size_t numbers = 0;
    (void)snprintf(want, sizeof want, "%s.%s", n->name, l->name);
    assert_string_equal(strtok_r(line, " \n", &place), want);
    assert_string_equal(strtok_r(NULL, " \n", &place), l->kernel);
    for (char *name; (name = strtok_r(NULL, " =\n", &place)) != NULL; numbers++) {
        const char *value = strtok_r(NULL, " \n", &place);
        bool is_there = false;
        assert_non_null(value);
        for (size_t i = 0; i < l->shape_count; i++)
            is_there = is_there || (strcmp(l->shape[i].name, name) == 0 &&
                                    l->shape[i].value == strtod(value, NULL));
        if (!is_there)
            fail_msg("%s: %s=%s is not the network's", want, name, value);
    }
    assert_int_equal(numbers, l->shape_count);
}

/* examples/scheduler/layers.txt has every layer of two networks that a kernel computes. */
static void the_schedulers_layers_are_those_of_the_networks(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint64_t batch;
    } rows[] = {{"resnet18", 1}, {"zaremba-medium", 0}};
    char line[512];
    FILE *layers = fopen("examples/scheduler/layers.txt", "r");
    assert_non_null(layers);
    for (size_t i = 0; i < 2; i++) {
        ev_error err = {0};
        network n;
        ev_arena *arena = ev_arena_new();
        OK(network_read(arena, rows[i].name, rows[i].batch, -1, &n, &err));
        for (size_t l = 0; l < n.layer_count; l++) {
            assert_non_null(fgets(line, sizeof line, layers));
            is_line_of(&n, &n.layers[l], line);
        }
        ev_arena_free(arena);
    }
    assert_null(fgets(line, sizeof line, layers));
    (void)fclose(layers);
}

static void the_option_has_every_format(void **state) {
    (void)state;
    const char *choices = cli_options[CLI_OPT_TO].argument;
    for (size_t i = 0; exports_at(i) != NULL; i++) {
        assert_non_null(strstr(choices, exports_at(i)->name));
        assert_ptr_equal(exports_find(exports_at(i)->name), exports_at(i));
    }
    assert_null(exports_find("bundle"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dally_has_the_bundles_times),
        cmocka_unit_test(the_job_is_scaled_with_the_table),
        cmocka_unit_test(chakra_is_in_microseconds),
        cmocka_unit_test(only_faster_keeps_the_published),
        cmocka_unit_test(dlio_needs_more_bandwidth),
        cmocka_unit_test(t4_and_csv_list_the_run),
        cmocka_unit_test(csv_lists_the_bundle),
        cmocka_unit_test(bad_inputs_name_thing_place_and_cure),
        cmocka_unit_test(bad_tables_name_the_line),
        cmocka_unit_test(bad_networks_name_the_place),
        cmocka_unit_test(shipped_networks_fit_shipped_kernels),
        cmocka_unit_test(the_schedulers_layers_are_those_of_the_networks),
        cmocka_unit_test(the_option_has_every_format),
    };
    return cmocka_run_group_tests(tests, setup, cli_teardown);
}
