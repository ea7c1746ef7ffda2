/* libFuzzer target: the bytes of any tar either are a bundle or are refused with a reason. A bundle
 * resolves, and its launches evaluate or say why not. Nothing is written outside the folder that a
 * bundle is unpacked to, and opening takes at most 4 times the bytes, and MEMORY_FREE.
 *
 * The mutator knows tar and JSON (bundle_mutate.h). */
#include "base/file.h"
#include "bundle/read.h"
#include "bundle/runtime/runtime.h"
#include "tests/fuzz/bundle_mutate.h"

#include <dirent.h>
#include <math.h>
#include <sanitizer/allocator_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_VARIANTS 40
#define MOST_KERNELS 4
#define UNPACKED_OF 32 /* one bundle of so many */

const char *__asan_default_options(void); /* NOLINT(bugprone-reserved-identifier): ASan's name */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);

/* An input takes and frees a few MB in small pieces. ASan keeps 256 MB of freed memory, so that
 * each piece is a page that was never touched, and faults take more than a third of the time. 16 MB
 * still hold several inputs, whose freed memory no other input may see. ASAN_OPTIONS adds to this.
 */
const char *__asan_default_options(void) { /* NOLINT(bugprone-reserved-identifier): ASan's name */
    return "quarantine_size_mb=16";
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed) {
    ev_pcg rng = ev_pcg_seed(seed, 26);
    size_t made = ev_pcg_below(&rng, 8) != 0 ? bundle_mutate(data, size, room, &rng) : 0;
    return made != 0 ? made : LLVMFuzzerMutate(data, size, room);
}

/* ---- memory ---- */

static size_t live, peak;

static void note_malloc(const volatile void *at, size_t bytes) {
    (void)at;
    live += bytes;
    peak = live > peak ? live : peak;
}

static void note_free(const volatile void *at) {
    live -= at != NULL ? __sanitizer_get_allocated_size((const void *)at) : 0;
}

/* ---- a folder of its own, which is watched ---- */

static char outside[64];

static int count_entries(const char *folder) {
    DIR *dir = opendir(folder);
    int count = 0;
    while (dir != NULL && readdir(dir) != NULL)
        count++;
    if (dir == NULL || closedir(dir) != 0)
        abort();
    return count - 2;
}

static void remove_outside(void) {
    (void)!ev_dir_remove(outside, NULL);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    static char inside[80];
    (void)argc;
    (void)argv;
    (void)strcpy(outside, "/tmp/evoke-fuzz-bundle-XXXXXX");
    if (mkdtemp(outside) == NULL)
        abort();
    (void)snprintf(inside, sizeof inside, "%s/in", outside);
    if (ev_dir_make(inside, NULL) != EV_OK || setenv("TMPDIR", inside, 1) != 0 ||
        atexit(remove_outside) != 0 ||
        __sanitizer_install_malloc_and_free_hooks(note_malloc, note_free) == 0)
        abort();
    return 0;
}

static void check_outside(void) {
    if (count_entries(outside) != 1 || access("/tmp/evoke-outside", F_OK) == 0)
        abort();
}

/* ---- messages ---- */

static void check_message(const char *text, size_t room) {
    size_t length = strnlen(text, room);
    if (length == 0 || length == room)
        abort();
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
            abort(); /* a terminal would obey it */
    }
}

/* True: EVOKE_OK. */
static bool is_ok(evoke_status status, const evoke_error *error) {
    if (status == EVOKE_INFRA)
        abort();
    if (status != EVOKE_OK)
        check_message(error->text, sizeof error->text);
    return status == EVOKE_OK;
}

/* ---- use ---- */

/* The launches of a variant, with all turns, as far as the driver. */
static void launch_steps(evoke_variant *v, const evoke_shape *shape, const evoke_buffer *buffers,
                         size_t buffer_count) {
    static evoke_step steps[LAUNCH_STEPS_MOST];
    const evoke_buffer scratch = {UINT64_C(1) << 60, EVOKE_BYTES_UNKNOWN};
    evoke_error error = {EVOKE_OK, ""};
    size_t count = 0, bytes = 0;
    (void)is_ok(evoke_variant_scratch(v, shape, &bytes, &error), &error);
    if (is_ok(evoke_variant_steps(v, shape, LAUNCH_STEPS_MOST, steps, &count, &error), &error) &&
        (count == 0 || bytes > (UINT64_C(1) << 40) * 65))
        abort();
    ev_status status =
        runtime_check_steps(v, shape, buffers, buffer_count, &scratch, (ev_error *)&error);
    (void)is_ok((evoke_status)status, &error);
}

/* What a kernel's ranks need, and the launches of the last of them. */
static void launch_ranks(evoke_variant *v, const evoke_shape *shape, const evoke_buffer *buffers,
                         size_t buffer_count) {
    const evoke_buffer scratch = {UINT64_C(1) << 60, EVOKE_BYTES_UNKNOWN};
    evoke_error error = {EVOKE_OK, ""};
    runtime_sequence *made = NULL;
    evoke_ranks ranks;
    evoke_shared shared;
    if (!is_ok(evoke_bundle_ranks(v->owner, v->kernel->name, shape, &ranks, &error), &error))
        return;
    if (ranks.count < 1 || ranks.count > EVOKE_RANKS_MOST ||
        (ranks.count > 1) != (v->kernel->ranks != NULL))
        abort();
    for (size_t i = 0; i < v->kernel->argument_count && i < 8; i++)
        (void)is_ok(evoke_bundle_shared(v->owner, v->kernel->name, i, &shared, &error), &error);
    ev_status status = runtime_sequence_new(v, shape, buffers, buffer_count, ranks.count - 1,
                                            &scratch, &made, (ev_error *)&error);
    (void)is_ok((evoke_status)status, &error);
    runtime_sequence_free(made);
}

static void launch(evoke_variant *v, const evoke_shape *shape) {
    evoke_buffer buffers[RUNTIME_ARGUMENTS];
    evoke_geometry at;
    evoke_error error = {EVOKE_OK, ""};
    runtime_parameters parameters;
    size_t count = 0;
    if (is_ok(evoke_variant_geometry(v, shape, &at, &error), &error)) {
        uint64_t threads = (uint64_t)at.block[0] * at.block[1] * at.block[2];
        if (threads - 1 >= 1024 || at.grid[0] - 1 >= INT32_MAX || at.grid[1] - 1 >= 65535 ||
            at.grid[2] - 1 >= 65535)
            abort();
    }
    for (size_t i = 0; i < v->kernel->argument_count; i++) {
        if (!bundle_is_scalar(&v->kernel->arguments[i]))
            buffers[count++] = (evoke_buffer){(uint64_t)(i + 1) << 40, EVOKE_BYTES_UNKNOWN};
    }
    ev_status status = runtime_pack(v, shape, buffers, count, 0, &parameters, (ev_error *)&error);
    (void)is_ok((evoke_status)status, &error);
    launch_steps(v, shape, buffers, count);
    launch_ranks(v, shape, buffers, count);
}

static void resolve(const evoke_bundle *b, const bundle_kernel *k, const evoke_shape *shape) {
    static const evoke_gpu gpus[] = {
        {"h200", 70, 132}, {"NVIDIA A100", 80, 108}, {NULL, 0, 0}, {"", 90, 132}};
    for (unsigned i = 0; i < 4; i++) {
        evoke_choice choice;
        evoke_error error = {EVOKE_OK, ""};
        char text[100];
        if (!is_ok(evoke_bundle_resolve(b, k->name, &gpus[i], shape, i % 4, &choice, &error),
                   &error))
            continue;
        if (choice.variant == NULL || !(choice.speedup >= 0))
            abort();
        check_message(evoke_bundle_explain(&choice, text, sizeof text), sizeof text);
    }
    for (size_t i = 0; i < k->argument_count && i < 8; i++) {
        evoke_argument a;
        evoke_error error = {EVOKE_OK, ""};
        uint64_t elements = 0;
        (void)is_ok(evoke_bundle_argument(b, k->name, i, &a, &error), &error);
        (void)is_ok(evoke_bundle_elements(b, k->name, i, shape, &elements, &error), &error);
    }
}

/* The shapes inside a variant's ranges, at their borders, and far outside. */
static void use_variant(evoke_bundle *b, evoke_variant *v) {
    static const double far[] = {0, -1, 64, 1e18, 9007199254740992.0, NAN, 0.5, -INFINITY};
    const launch_plan *plan = v->is->plan;
    for (size_t turn = 0; turn < 2 + sizeof far / sizeof *far; turn++) {
        evoke_number numbers[64];
        size_t count = plan->range_count < 64 ? plan->range_count : 64;
        for (size_t i = 0; i < count; i++) {
            const launch_range *r = &plan->ranges[i];
            double border = turn == 0 ? r->low : r->high;
            numbers[i] = (evoke_number){r->name, turn < 2 ? border : far[turn - 2]};
        }
        const evoke_shape shape = {numbers, count};
        launch(v, &shape);
        if (turn < 4)
            resolve(b, v->kernel, &shape);
    }
}

static void use(evoke_bundle *b) {
    evoke_error error = {EVOKE_OK, ""};
    (void)is_ok(evoke_bundle_verify(b, &error), &error);
    for (size_t i = 0; i < evoke_bundle_kernel_count(b) && i < MOST_KERNELS; i++)
        resolve(b, bundle_kernel_at(b->inside, i), &(evoke_shape){NULL, 0});
    for (size_t i = 0; i < b->count && i < MOST_VARIANTS; i++)
        use_variant(b, &b->variants[i]);
}

/* Unpacking waits for the disk. */
static bool is_unpacked(const uint8_t *data, size_t size) {
    unsigned sum = 0;
    for (size_t i = 0; i < size; i++)
        sum += data[i];
    return sum % UNPACKED_OF == 0;
}

/* As the tuner opens it: every hash is checked, and the files are unpacked. */
static void open_whole(const uint8_t *data, size_t size) {
    char path[64];
    int file = memfd_create("bundle", 0);
    bundle *b = NULL;
    const char *folder = NULL;
    evoke_error error = {EVOKE_OK, ""};
    if (file < 0 || write(file, data, size) != (ssize_t)size)
        abort();
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (is_ok((evoke_status)bundle_open(path, &b, (ev_error *)&error), &error) &&
        is_unpacked(data, size))
        (void)is_ok((evoke_status)bundle_folder(b, &folder, (ev_error *)&error), &error);
    check_outside();
    bundle_close(b);
    (void)close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    evoke_bundle *b = NULL;
    evoke_error error = {EVOKE_OK, ""};
    size_t before = live;
    peak = live;
    evoke_status status = evoke_bundle_open_memory(data, size, &b, &error);
    if (peak - before > MEMORY_TIMES * size + MEMORY_FREE) {
        (void)fprintf(stderr, "%zu bytes took %zu\n", size, peak - before);
        abort();
    }
    if (is_ok(status, &error)) {
        use(b);
        open_whole(data, size);
    }
    evoke_bundle_close(b);
    return 0;
}
