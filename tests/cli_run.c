/* The helper of the tests that run the binary. */
#include "tests/cli_run.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define BINARY EVOKE_BINARY_DIR "/evoke"

static char folder[64];

/* y = 2 x, with an oracle of its own. */
static const char task_json[] =
    "{\n"
    "  \"name\": \"scale\",\n"
    "  \"family\": \"tests\",\n"
    "  \"doc\": \"y = 2 x\",\n"
    "  \"arguments\": [\n"
    "    {\"name\": \"x\", \"kind\": \"in\", \"type\": \"f32\", \"count\": \"n\",\n"
    "     \"data\": {\"generator\": \"normal\"}},\n"
    "    {\"name\": \"y\", \"kind\": \"out\", \"type\": \"f32\", \"count\": \"n\"},\n"
    "    {\"name\": \"n\", \"kind\": \"scalar\", \"type\": \"s32\"}\n"
    "  ],\n"
    "  \"starts\": [\n"
    "    {\"name\": \"plain\", \"source\": \"scale.cu\", \"grid\": \"ceil_div(n, 128)\", "
    "\"block\": 128}\n"
    "  ],\n"
    "  \"oracle\": \"oracle.c\",\n"
    "  \"tolerance\": {\"relative_l2\": 1e-6},\n"
    "  \"cases\": [\n"
    "    {\"name\": \"smoke\", \"split\": \"search\", \"use\": \"smoke\", \"shape\": {\"n\": "
    "64}},\n"
    "    {\"name\": \"odd\", \"split\": \"search\", \"use\": \"check\", \"shape\": {\"n\": 301}},\n"
    "    {\"name\": \"time\", \"split\": \"search\", \"use\": \"time\", \"shape\": {\"n\": "
    "65536}},\n"
    "    {\"name\": \"other\", \"split\": \"held-out\", \"use\": \"check\", \"shape\": {\"n\": "
    "200}},\n"
    "    {\"name\": \"later\", \"split\": \"held-out\", \"use\": \"time\", \"shape\": {\"n\": "
    "32768}},\n"
    "    {\"name\": \"one\", \"split\": \"adversarial\", \"use\": \"check\", \"shape\": {\"n\": "
    "1}}\n"
    "  ]\n"
    "}\n";

/* The multiplication runs twice for nothing, so that there is something to win. */
static const char scale_cu[] =
    "#include \"evoke_cuda.h\"\n"
    "extern \"C\" __global__ void scale(const float *x, float *y, int n) {\n"
    "    __shared__ float part[128];\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    part[threadIdx.x] = i < n ? x[i] : 0.0f;\n"
    "    __syncthreads();\n"
    "    __syncthreads();\n"
    "    if (i < n)\n"
    "        y[i] = part[threadIdx.x] * 2.0f;\n"
    "}\n";

static const char oracle_c[] = "#include \"evoke_oracle.h\"\n"
                               "int evoke_oracle(evoke_oracle_call *call);\n"
                               "int evoke_oracle(evoke_oracle_call *call) {\n"
                               "    const float *x = call->arguments[0].data;\n"
                               "    for (uint64_t i = 0; i < call->count; i++)\n"
                               "        call->value[i] = 2.0 * x[call->first + i];\n"
                               "    return 0;\n"
                               "}\n";

/* Adds one to each float. */
static const char add_ptx[] = ".version 7.8\n"
                              ".target sm_70\n"
                              ".address_size 64\n"
                              ".visible .entry add(.param .u64 a, .param .u64 b, .param .u32 n)\n"
                              "{\n"
                              "  .reg .b64 %rd<4>;\n"
                              "  .reg .b32 %r<3>;\n"
                              "  .reg .f32 %f<2>;\n"
                              "  ld.param.u64 %rd1, [a];\n"
                              "  ld.param.u64 %rd2, [b];\n"
                              "  mov.u32 %r2, %tid.x;\n"
                              "  mul.wide.u32 %rd3, %r2, 4;\n"
                              "  add.s64 %rd1, %rd1, %rd3;\n"
                              "  add.s64 %rd2, %rd2, %rd3;\n"
                              "  ld.global.f32 %f1, [%rd1];\n"
                              "  add.f32 %f1, %f1, 0f3F800000;\n"
                              "  st.global.f32 [%rd2], %f1;\n"
                              "  ret;\n"
                              "}\n";

int cli_setup(void **state) {
    (void)state;
    (void)strcpy(folder, "/tmp/evoke-test-cli-XXXXXX");
    if (mkdtemp(folder) == NULL || setenv("EVOKE", BINARY, 1) != 0)
        return 1;
    cli_write("task.json", task_json);
    cli_write("scale.cu", scale_cu);
    cli_write("oracle.c", oracle_c);
    cli_write("add.ptx", add_ptx);
    return 0;
}

int cli_teardown(void **state) {
    (void)state;
    return ev_dir_remove(folder, NULL) != EV_OK;
}

const char *cli_folder(void) {
    return folder;
}

const char *cli_path(const char *name) {
    static char paths[8][200];
    static unsigned turn;
    char *path = paths[turn++ % 8];
    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

void cli_write(const char *name, const char *text) {
    assert_int_equal(ev_file_write(cli_path(name), text, strlen(text), NULL), EV_OK);
}

char *cli_read(const char *name) {
    char *text = NULL;
    size_t bytes = 0;
    ev_error err = {0};
    if (ev_file_read(cli_path(name), &text, &bytes, &err) != EV_OK)
        fail_msg("%s", err.text);
    return text;
}

void cli_copy_changed(const char *from, const char *to, const char *old, const char *new) {
    char *text = cli_read(from);
    char *at = strstr(text, old);
    if (at == NULL)
        fail_msg("%s does not have: %s", from, old);
    ev_str changed = EV_STR_EMPTY;
    ev_str_append_n(&changed, text, (size_t)(at - text));
    ev_str_append(&changed, new);
    ev_str_append(&changed, at + strlen(old));
    cli_write(to, ev_str_text(&changed));
    ev_str_free(&changed);
    free(text);
}

static ev_proc_result run(const char *const argv[]) {
    ev_proc_result result = {0};
    ev_error err = {0};
    if (ev_proc_run(argv, NULL, CLI_SECONDS, &result, &err) != EV_OK)
        fail_msg("%s", err.text);
    return result;
}

ev_proc_result cli_run(const char *const words[]) {
    const char *argv[32] = {BINARY};
    for (size_t i = 0; words[i] != NULL && i + 2 < sizeof argv / sizeof argv[0]; i++)
        argv[i + 1] = words[i];
    return run(argv);
}

ev_proc_result cli_shell(const char *line) {
    return run((const char *const[]){"bash", "-c", line, NULL});
}

void cli_expect(const ev_proc_result *r, int exit_code) {
    if (r->exit_code != exit_code)
        fail_msg("exit code %d (signal %d), not %d\nstdout: %s\nstderr: %s", r->exit_code,
                 r->signal, exit_code, ev_str_text(&r->out), ev_str_text(&r->err));
}

/* Lines that are messages of main; progress is not counted. */
static size_t count_messages(const char *text) {
    size_t count = 0;
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        count += strncmp(line, "evoke: ", 7) == 0;
    }
    return count;
}

void cli_expect_error(ev_proc_result r, int exit_code, const char *words) {
    cli_expect(&r, exit_code);
    if (strstr(ev_str_text(&r.err), words) == NULL)
        fail_msg("'%s' is not in: %s", words, ev_str_text(&r.err));
    assert_int_equal(count_messages(ev_str_text(&r.err)), 1);
    assert_string_equal(ev_str_text(&r.out), "");
    ev_proc_result_free(&r);
}

void cli_expect_mistakes(const char *name, const cli_mistake mistakes[], size_t count) {
    for (size_t i = 0; i < count; i++) {
        cli_copy_changed(name, "bad.json", mistakes[i].old, mistakes[i].new);
        ev_proc_result r = CLI_RUN("check", cli_path("bad.json"));
        const char *err = ev_str_text(&r.err), *out = ev_str_text(&r.out);
        assert_int_not_equal(r.exit_code, 0);
        if (strstr(err, mistakes[i].words) == NULL && strstr(out, mistakes[i].words) == NULL)
            fail_msg("no '%s' in: %s%s", mistakes[i].words, err, out);
        ev_proc_result_free(&r);
    }
}

json_t *cli_json(ev_proc_result r, int exit_code) {
    cli_expect(&r, exit_code);
    json_error_t problem;
    const char *text = ev_str_text(&r.out);
    size_t length = r.out.length;
    assert_true(length > 0 && text[length - 1] == '\n');
    const char *line = text + length - 1;
    while (line > text && line[-1] != '\n')
        line--;
    json_t *json = json_loads(line, 0, &problem);
    if (!json_is_object(json))
        fail_msg("no JSON object: %s: %s", problem.text, line);
    ev_proc_result_free(&r);
    return json;
}

static bool is_kind(const json_t *value, char kind) {
    switch (kind) {
    case 's':
        return json_is_string(value);
    case 'i':
        return json_is_integer(value);
    case 'n':
        return json_is_number(value);
    case 'b':
        return json_is_boolean(value);
    case 'a':
        return json_is_array(value);
    case 'o':
        return json_is_object(value);
    default:
        return false;
    }
}

void cli_keys(const json_t *object, const char *keys) {
    while (*keys != '\0') {
        char name[64] = "";
        size_t length = strcspn(keys, ":");
        memcpy(name, keys, length < sizeof name ? length : sizeof name - 1);
        if (!is_kind(json_object_get(object, name), keys[length + 1]))
            fail_msg("the key '%s' is missing, or is no '%c'", name, keys[length + 1]);
        keys += length + 2;
        keys += *keys == ' ';
    }
}

/* The first variant of `manifest` with that hash gets another; whether the old one is still used.
 */
static bool replace_hash(json_t *manifest, const char *old, const char *now) {
    const json_t *kernel = NULL;
    json_t *v = NULL;
    size_t k = 0, i = 0;
    json_array_foreach(json_object_get(manifest, "kernels"), k, kernel) {
        json_array_foreach(json_object_get(kernel, "variants"), i, v) {
            if (strcmp(ev_json_text(v, "sha256", ""), old) == 0)
                assert_int_equal(json_object_set_new(v, "sha256", json_string(now)), 0);
        }
    }
    char *text = ev_json_print(json_object_get(manifest, "kernels"), true);
    bool is_used = strstr(text, old) != NULL;
    free(text);
    return is_used;
}

void cli_plant_ptx(const char *bundle, const char *sha256, const char *ptx) {
    char path[256], key[256];
    ev_sha256 other = ev_sha256_of(ptx, strlen(ptx));
    (void)snprintf(path, sizeof path, "%s/kernels/%s.ptx", bundle, other.hex);
    cli_write(path, ptx);
    (void)snprintf(path, sizeof path, "%s/manifest.json", bundle);
    char *text = cli_read(path);
    json_t *manifest = json_loads(text, 0, NULL);
    assert_non_null(manifest);
    free(text);
    json_t *files = json_object_get(manifest, "files");
    (void)snprintf(key, sizeof key, "kernels/%s.ptx", other.hex);
    json_t *facts = json_pack("{s:s, s:I}", "sha256", other.hex, "bytes", (json_int_t)strlen(ptx));
    assert_int_equal(json_object_set_new(files, key, facts), 0);
    if (!replace_hash(manifest, sha256, other.hex)) {
        (void)snprintf(key, sizeof key, "kernels/%s.ptx", sha256);
        assert_int_equal(json_object_del(files, key), 0);
        (void)snprintf(key, sizeof key, "%s/kernels/%s.ptx", bundle, sha256);
        assert_int_equal(unlink(cli_path(key)), 0);
    }
    text = ev_json_print(manifest, false);
    json_decref(manifest);
    cli_write(path, text);
    free(text);
}
