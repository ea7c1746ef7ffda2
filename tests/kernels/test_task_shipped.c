/* The shipped tasks and the examples: they load, have the cases that a search needs, never share a
 * seed between two buffers, and compile with clang for every GPU and with nvcc where that is found;
 * and docs/task.md holds the schema as it is printed. */
#include "base/file.h"
#include "base/proc.h"
#include "kernels/task.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_TASKS 64

static const char *const EXAMPLES[] = {"examples/rmsnorm/task.json", "examples/softmax/task.json",
                                       "examples/matmul/task.json",  "examples/rownorm/task.json",
                                       "examples/conv2d/task.json",  "examples/scan/task.json"};
/* Sources as people have them: for nvcc, with host code and CUDA's own headers, without `work`. */
static const char *const FOREIGN[] = {
    "examples/heat2d/task.json",    "examples/lublock/task.json",   "examples/alignment/task.json",
    "examples/diffusion/task.json", "examples/boxes/task.json",     "examples/bfs/task.json",
    "examples/kmeans/task.json",    "examples/histogram/task.json", "examples/groups/task.json",
    "examples/halfmax/task.json"};

typedef struct all_tasks {
    task *tasks[MAX_TASKS];
    size_t shipped, own, count; /* shipped ones come first, then EXAMPLES, then FOREIGN */
} all_tasks;

static task *load(const char *path) {
    task *t = NULL;
    ev_error err = {EV_OK, ""};
    if (task_open(path, &t, &err) != EV_OK)
        fail_msg("%s", err.text);
    return t;
}

static int set_up(void **state) {
    all_tasks *all = calloc(1, sizeof *all);
    char **paths = NULL;
    size_t count = 0;
    ev_error err = {EV_OK, ""};
    assert_non_null(all);
    if (task_list_shipped(&paths, &count, &err) != EV_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < count; i++)
        all->tasks[all->count++] = load(paths[i]);
    all->shipped = count;
    task_list_free(paths, count);
    for (size_t i = 0; i < sizeof EXAMPLES / sizeof EXAMPLES[0]; i++)
        all->tasks[all->count++] = load(EXAMPLES[i]);
    all->own = all->count;
    for (size_t i = 0; i < sizeof FOREIGN / sizeof FOREIGN[0]; i++)
        all->tasks[all->count++] = load(FOREIGN[i]);
    *state = all;
    return 0;
}

static int tear_down(void **state) {
    all_tasks *all = *state;
    for (size_t i = 0; i < all->count; i++)
        task_free(all->tasks[i]);
    free(all);
    return 0;
}

static size_t cases_of(const task *t, corpus_split split, task_case_use use) {
    size_t count = 0;
    for (size_t i = 0; i < t->case_count; i++)
        count += t->cases[i].split == split && t->cases[i].use == use;
    return count;
}

static void test_families(void **state) {
    const all_tasks *all = *state;
    for (size_t i = 0; i < all->shipped; i++) {
        const task *t = all->tasks[i];
        assert_string_equal(t->starts[0].name, "textbook");
        assert_non_null(task_find_start(t, "hand"));
        assert_int_equal(cases_of(t, CORPUS_SEARCH, TASK_SMOKE), 1);
        assert_in_range(cases_of(t, CORPUS_SEARCH, TASK_CHECK), 1, 2);
        assert_in_range(cases_of(t, CORPUS_SEARCH, TASK_TIME), 1, 2);
        assert_true(cases_of(t, CORPUS_HELD_OUT, TASK_CHECK) >= 2);
        assert_true(cases_of(t, CORPUS_HELD_OUT, TASK_TIME) >= 2);
        assert_true(cases_of(t, CORPUS_ADVERSARIAL, TASK_CHECK) >= 3);
    }
}

/* Each family has one lead, which is a kernel of it, and each shipped kernel has a family. */
static void test_leads(void **state) {
    const all_tasks *all = *state;
    static const char *const leads[] = {"ar_adam", "fft_conv2d", "sd_lstm_fp", "bp_data_masked"};
    char **paths = NULL;
    size_t count = 0;
    ev_error err = {EV_OK, ""};
    assert_int_equal(task_list_leads(&paths, &count, &err), EV_OK);
    assert_int_equal(count, sizeof leads / sizeof leads[0]);
    for (size_t i = 0; i < count; i++) {
        task *t = load(paths[i]);
        assert_string_equal(t->name, leads[i]);
        task_free(t);
    }
    task_list_free(paths, count);
    for (size_t i = 0; i < all->shipped; i++) {
        ev_str folder = EV_STR_EMPTY;
        ev_str_printf(&folder, "/kernels/%s/%s/", all->tasks[i]->family, all->tasks[i]->name);
        assert_non_null(strstr(all->tasks[i]->path, ev_str_text(&folder)));
        assert_non_null(task_family_paper(all->tasks[i]->family));
        ev_str_free(&folder);
    }
    assert_null(task_family_paper("examples"));
}

/* The task of a past run is known by its hash: at its path, or by its name if that is shipped. */
static void test_a_task_that_moved(void **state) {
    (void)state;
    task *t = NULL, *again = NULL, *other = NULL;
    ev_error err = {.status = EV_OK};
    assert_int_equal(task_open("fft_conv2d", &t, &err), EV_OK);
    assert_int_equal(task_open("ar_adam", &other, &err), EV_OK);
    const char *const paths[] = {t->path, "/nowhere/task.json", other->path};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        assert_int_equal(task_reopen(paths[i], "fft_conv2d", t->sha256.hex, &again, &err), EV_OK);
        assert_string_equal(again->name, "fft_conv2d");
        task_free(again);
    }
    assert_int_equal(task_reopen("/nowhere/task.json", "mine", t->sha256.hex, &again, &err),
                     EV_BAD);
    assert_non_null(strstr(err.text, "/nowhere/task.json"));
    assert_int_equal(task_reopen(other->path, "mine", t->sha256.hex, &again, &err), EV_BAD);
    assert_non_null(strstr(err.text, "has changed since its run; tune it again"));
    task_free(other);
    task_free(t);
}

static void test_unknown_name(void **state) {
    (void)state;
    task *t = NULL;
    ev_error err = {EV_OK, ""};
    assert_int_equal(task_open("bp_data", &t, &err), EV_BAD);
    assert_non_null(strstr(err.text, "unknown task \"bp_data\""));
    assert_non_null(strstr(err.text, "ar_adam, "));
    assert_int_equal(task_open("no/such/task.json", &t, &err), EV_BAD);
    assert_non_null(strstr(err.text, "no/such/task.json"));
    assert_int_equal(task_open("examples/saxpy.cu", &t, &err), EV_BAD);
    assert_non_null(strstr(err.text, "evoke init examples/saxpy.cu writes one"));
}

/* The folder of a task names its task.json. */
static void test_folder(void **state) {
    (void)state;
    task *t = NULL;
    ev_error err = {EV_OK, ""};
    assert_true(task_is_folder("examples/rmsnorm"));
    assert_false(task_is_folder("examples") || task_is_folder("examples/rmsnorm/task.json"));
    assert_int_equal(task_open("examples/rmsnorm", &t, &err), EV_OK);
    assert_string_equal(t->name, "rmsnorm");
    task_free(t);
}

/* A buffer of a case is small enough to be made for every worker. */
static void test_sizes(void **state) {
    const all_tasks *all = *state;
    for (size_t n = 0; n < all->shipped; n++) {
        const task *t = all->tasks[n];
        for (size_t c = 0; c < t->case_count; c++) {
            uint64_t bytes = 0;
            for (size_t a = 0; a < t->argument_count; a++) {
                uint64_t count = 0;
                ev_error err = {EV_OK, ""};
                if (t->arguments[a].kind == TASK_SCALAR)
                    continue;
                assert_int_equal(
                    task_argument_count_of(t, &t->arguments[a], &t->cases[c], &count, &err), EV_OK);
                bytes += count * ev_type_bytes(t->arguments[a].type);
            }
            assert_true(bytes <= (t->cases[c].use == TASK_TIME ? 80000000u : 1000000u));
        }
    }
}

/* All say what has to be done at least, and how that is derived. */
static void test_work(void **state) {
    const all_tasks *all = *state;
    for (size_t n = 0; n < all->own; n++) {
        const task *t = all->tasks[n];
        assert_true(t->work.doc != NULL && strlen(t->work.doc) > 40);
        for (size_t c = 0; c < t->case_count; c++) {
            task_amounts work;
            ev_error err = {EV_OK, ""};
            assert_int_equal(task_work_of(t, &t->cases[c], &work, &err), EV_OK);
            assert_true(work.is_declared && work.bytes > 0);
            double products =
                work.operations[TASK_UNIT_F32] + work.operations[TASK_UNIT_TENSOR_F16];
            assert_true(products > 0 || t->cases[c].use != TASK_TIME);
        }
    }
}

/* ---- seeds ---- */

typedef struct seed_list {
    uint64_t seeds[32768];
    size_t count;
} seed_list;

static void add_seeds(const task *t, seed_list *list) {
    for (size_t c = 0; c < t->case_count; c++) {
        for (size_t a = 0; a < t->argument_count; a++) {
            const task_argument *argument = &t->arguments[a];
            if (argument->kind != TASK_IN && argument->kind != TASK_INOUT)
                continue;
            for (uint32_t fresh = 0; fresh < 8; fresh++) {
                corpus_request r;
                ev_error err = {EV_OK, ""};
                assert_int_equal(task_argument_data_of(t, argument, &t->cases[c], fresh, &r, &err),
                                 EV_OK);
                assert_int_equal(r.seed >> 62, t->cases[c].split + 1);
                assert_true(list->count < sizeof list->seeds / sizeof list->seeds[0]);
                list->seeds[list->count++] = r.seed;
            }
        }
    }
}

static int compare_seeds(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void test_seeds_differ(void **state) {
    const all_tasks *all = *state;
    seed_list *list = calloc(1, sizeof *list);
    assert_non_null(list);
    for (size_t i = 0; i < all->count; i++)
        add_seeds(all->tasks[i], list);
    assert_true(list->count > 1000);
    qsort(list->seeds, list->count, sizeof *list->seeds, compare_seeds);
    for (size_t i = 1; i < list->count; i++)
        assert_true(list->seeds[i] != list->seeds[i - 1]);
    free(list);
}

/* ---- sources ---- */

/* Runs a compiler; its words on failure. */
static void compile(const char *const argv[], const char *source) {
    ev_proc_result result;
    ev_error err = {EV_OK, ""};
    if (ev_proc_run(argv, NULL, 120, &result, &err) != EV_OK)
        fail_msg("%s", err.text);
    if (result.exit_code != 0) {
        ev_str words = EV_STR_EMPTY;
        for (size_t i = 0; argv[i] != NULL; i++)
            ev_str_printf(&words, "%s ", argv[i]);
        fail_msg("%s with %s: %s", source, ev_str_text(&words), ev_str_text(&result.err));
    }
    ev_proc_result_free(&result);
}

#define MOST_DEFINES 16

typedef struct defines {
    char texts[MOST_DEFINES][128];
    size_t count;
} defines;

/* `how`: "-S", or "-fsyntax-only". */
static void compile_clang(const char *source, const char *arch, const char *how,
                          const defines *macros) {
    const char *const always[] = {"clang-19",
                                  "-x",
                                  "cuda",
                                  "-nocudainc",
                                  "-nocudalib",
                                  "--cuda-device-only",
                                  "-Ikernels/include",
                                  "-Ikernels/include/cuda",
                                  "-O1",
                                  "--cuda-feature=+ptx78",
                                  "-Wall",
                                  "-Wextra",
                                  "-Werror",
                                  "-Wno-unknown-cuda-version",
                                  "-o",
                                  "/dev/null"};
    const char *argv[sizeof always / sizeof always[0] + MOST_DEFINES + 4] = {0};
    size_t count = sizeof always / sizeof always[0];
    memcpy(argv, always, sizeof always);
    argv[count++] = arch;
    argv[count++] = how;
    for (size_t i = 0; i < macros->count; i++)
        argv[count++] = macros->texts[i];
    argv[count] = source;
    compile(argv, source);
}

static void each_source(const all_tasks *all, void (*visit)(const task_start *)) {
    for (size_t i = 0; i < all->own; i++) {
        for (size_t s = 0; s < all->tasks[i]->start_count; s++)
            visit(&all->tasks[i]->starts[s]);
    }
}

/* Whether a source has parts for some GPUs alone; <evoke_mma.h> has such parts. */
static bool differs_by_gpu(const char *source) {
    char *text = NULL;
    size_t bytes = 0;
    ev_error err = {EV_OK, ""};
    if (ev_file_read(source, &text, &bytes, &err) != EV_OK)
        fail_msg("%s", err.text);
    bool differs = strstr(text, "__CUDA_ARCH__") || strstr(text, "evoke_mma.h");
    free(text);
    return differs;
}

/* PTX for the oldest GPU, which has the fewest instructions; test_task_starts compiles for sm_90.
 */
static void compile_for_gpus(const task_start *start) {
    const defines none = {.count = 0};
    compile_clang(start->source, "--cuda-gpu-arch=sm_60", "-S", &none);
    if (differs_by_gpu(start->source))
        compile_clang(start->source, "--cuda-gpu-arch=sm_75", "-fsyntax-only", &none);
}

/* Values of several macros together, one of each: each value once, not all pairs. */
static void compile_for_macros(const task_start *start) {
    defines all;
    size_t turn = 0;
    do {
        all.count = 0;
        for (size_t m = 0; m < start->macro_count; m++) {
            const task_macro *macro = &start->macros[m];
            size_t left = turn;
            for (size_t v = 0; v < macro->value_count; v++) {
                if (macro->values[v] == macro->otherwise || left-- > 0)
                    continue;
                assert_true(all.count < MOST_DEFINES);
                (void)snprintf(all.texts[all.count++], sizeof all.texts[0], "-D%s=%lld",
                               macro->name, (long long)macro->values[v]);
                break;
            }
        }
        if (all.count > 0)
            compile_clang(start->source, "--cuda-gpu-arch=sm_90", "-fsyntax-only", &all);
        turn++;
    } while (all.count > 0);
}

static void test_clang(void **state) {
    each_source(*state, compile_for_gpus);
}
static void test_macros(void **state) {
    each_source(*state, compile_for_macros);
}

/* Where nvcc is: in PATH, or where NVIDIA's packages put it. NULL: not here. */
static const char *find_nvcc(void) {
    const char *const argv[] = {"nvcc", "--version", NULL};
    ev_proc_result result;
    ev_error err = {EV_OK, ""};
    if (ev_path_exists("/usr/local/cuda/bin/nvcc"))
        return "/usr/local/cuda/bin/nvcc";
    if (ev_proc_run(argv, NULL, 30, &result, &err) != EV_OK)
        return NULL;
    bool works = result.exit_code == 0;
    ev_proc_result_free(&result);
    return works ? "nvcc" : NULL;
}

static void compile_with_nvcc(const task_start *start) {
    const char *const argv[] = {find_nvcc(), "-arch=sm_90", "-Ikernels/include", "-ptx",
                                "-o",        "/dev/null",   start->source,       NULL};
    compile(argv, start->source);
}

static void test_nvcc(void **state) {
    if (find_nvcc() == NULL)
        skip();
    each_source(*state, compile_with_nvcc);
}

/* The macros' defaults in task.json are those of the source. */
static void check_defaults(const task_start *start) {
    char *text = NULL;
    size_t bytes = 0;
    ev_error err = {EV_OK, ""};
    assert_int_equal(ev_file_read(start->source, &text, &bytes, &err), EV_OK);
    for (size_t m = 0; m < start->macro_count; m++) {
        char want[128];
        (void)snprintf(want, sizeof want, "#ifndef %s\n#define %s %lld\n#endif\n",
                       start->macros[m].name, start->macros[m].name,
                       (long long)start->macros[m].otherwise);
        if (strstr(text, want) == NULL)
            fail_msg("%s does not have %s", start->source, want);
    }
    free(text);
}

static void test_defaults(void **state) {
    each_source(*state, check_defaults);
}

/* ---- docs ---- */

static void test_docs(void **state) {
    (void)state;
    char *text = NULL;
    size_t bytes = 0;
    ev_error err = {EV_OK, ""};
    if (ev_file_read("docs/task.md", &text, &bytes, &err) != EV_OK)
        fail_msg("%s", err.text);
    ev_str schema = EV_STR_EMPTY;
    task_print_schema(&schema);
    if (strstr(text, ev_str_text(&schema)) == NULL)
        fail_msg("docs/task.md does not hold the schema as task_print_schema gives it:\n%s",
                 ev_str_text(&schema));
    ev_str_free(&schema);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leads),
        cmocka_unit_test(test_families),
        cmocka_unit_test(test_unknown_name),
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_a_task_that_moved),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_work),
        cmocka_unit_test(test_seeds_differ),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_clang),
        cmocka_unit_test(test_macros),
        cmocka_unit_test(test_nvcc),
        cmocka_unit_test(test_docs),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
