/* A scheduler in small: opens a bundle, resolves the layers of a ResNet-18's backward pass and of
 * an LSTM for the GPU at hand, launches each and compares it with its baseline.
 *
 *   cc -std=c11 scheduler.c $(pkg-config --cflags --libs evoke-bundle) -lcuda -lm
 *   ./a.out net.tar
 *
 * With no GPU, LD_LIBRARY_PATH=build/standin runs it on the stand-in for the driver. */
#include <evoke/bundle.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult; /* or #include <cuda.h> */
CUresult cuInit(unsigned flags);
CUresult cuDevicePrimaryCtxRetain(void **context, int device);
CUresult cuCtxSetCurrent(void *context);
CUresult cuMemAlloc_v2(unsigned long long *address, size_t bytes);
CUresult cuMemFree_v2(unsigned long long address);
CUresult cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t bytes);
CUresult cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t bytes);

static evoke_error error;
#define MUST(call) ((call) == 0 ? (void)0 : die(#call))

static void die(const char *what) {
    fprintf(stderr, "%s: %s\n", what, error.text);
    exit(1);
}

/* Numbers between -0.5 and 0.5 with zeros among them; indices for kernels that take some. */
static void fill(const evoke_argument *a, void *to, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(a->type, "f32") == 0)
            ((float *)to)[i] = i % 3 ? (float)(i * 2654435761u % 1000u) / 1000.0f - 0.5f : 0.0f;
        else
            ((int *)to)[i] = (int)i;
    }
}

typedef struct work {
    const evoke_bundle *bundle;
    const char *kernel;
    const evoke_shape *shape;
    evoke_buffer buffers[16]; /* all but the scalars, in the kernel's order */
    evoke_argument are[16];
    size_t count;
} work;

static void allocate(work *w) {
    size_t arguments = 0;
    MUST(evoke_bundle_argument_count(w->bundle, w->kernel, &arguments, &error));
    for (size_t i = 0; i < arguments; i++) {
        evoke_argument a;
        uint64_t elements = 0;
        unsigned long long address = 0;
        MUST(evoke_bundle_argument(w->bundle, w->kernel, i, &a, &error));
        MUST(evoke_bundle_elements(w->bundle, w->kernel, i, w->shape, &elements, &error));
        if (a.kind == EVOKE_SCALAR)
            continue;
        size_t bytes = elements * a.element_bytes;
        void *host = calloc(1, bytes);
        fill(&a, host, elements);
        MUST(cuMemAlloc_v2(&address, bytes));
        MUST(cuMemcpyHtoD_v2(address, host, bytes));
        free(host);
        w->are[w->count] = a;
        w->buffers[w->count++] = (evoke_buffer){address, bytes};
    }
}

/* Launches a choice; the outputs, one behind the other, in `out`, and their number. */
static size_t run(const work *w, const evoke_choice *choice, float **out) {
    size_t length = 0;
    MUST(evoke_variant_launch(choice->variant, w->shape, w->buffers, w->count, NULL, &error));
    for (size_t i = 0; i < w->count; i++) {
        if (w->are[i].kind == EVOKE_IN)
            continue;
        *out = realloc(*out, length * sizeof(float) + w->buffers[i].bytes);
        MUST(cuMemcpyDtoH_v2(*out + length, w->buffers[i].address, w->buffers[i].bytes));
        length += w->buffers[i].bytes / sizeof(float);
    }
    return length;
}

/* Relative L2 of the chosen variant's outputs against the baseline's. */
static double compare(const evoke_bundle *b, const char *kernel, const evoke_gpu *gpu,
                      const evoke_shape *shape) {
    evoke_choice chosen, baseline;
    work w = {.bundle = b, .kernel = kernel, .shape = shape};
    float *got = NULL, *want = NULL;
    double wrong = 0, all = 0;
    char text[400];
    MUST(evoke_bundle_resolve(b, kernel, gpu, shape, 0, &chosen, &error));
    MUST(evoke_bundle_resolve(b, kernel, gpu, shape, EVOKE_BASELINE, &baseline, &error));
    allocate(&w);
    size_t length = run(&w, &chosen, &got);
    run(&w, &baseline, &want);
    for (size_t i = 0; i < length; i++) {
        wrong += pow((double)got[i] - want[i], 2);
        all += pow(want[i], 2);
    }
    for (size_t i = 0; i < w.count; i++)
        MUST(cuMemFree_v2(w.buffers[i].address));
    free(got);
    free(want);
    printf("%s\n", evoke_bundle_explain(&chosen, text, sizeof text));
    return all > 0 ? sqrt(wrong / all) : 1;
}

int main(int count, char **arguments) {
    /* images, side, cin, cout of ResNet-18's 3 x 3 layers; then sequences, units, kept of an LSTM
     */
    static const double convolutions[][4] = {
        {1, 56, 64, 64}, {1, 28, 128, 128}, {1, 14, 256, 256}, {1, 7, 512, 512}};
    static const double lstm[] = {20, 650, 325};
    evoke_bundle *b = NULL;
    evoke_gpu gpu;
    char name[256];
    void *context = NULL;
    int right = 0;
    if (count != 2 || cuInit(0) != 0 || cuDevicePrimaryCtxRetain(&context, 0) != 0)
        die("scheduler BUNDLE, on a machine with a GPU");
    MUST(cuCtxSetCurrent(context));
    MUST(evoke_bundle_open(arguments[1], &b, &error));
    MUST(evoke_gpu_current(&gpu, name, &error));
    for (int i = 0; i < 4; i++) {
        const double *c = convolutions[i];
        const evoke_number numbers[] = {{"images", c[0]}, {"side", c[1]}, {"cin", c[2]},
                                        {"cout", c[3]},   {"taps", 9},    {"density", 0.5}};
        const evoke_shape shape = {numbers, 6};
        right += compare(b, "bp_data_masked", &gpu, &shape) < 1e-5;
    }
    const evoke_number numbers[] = {
        {"B", lstm[0]}, {"H", lstm[1]}, {"k", lstm[2]}, {"x_sigma", 1}, {"g_sigma", 1}};
    const evoke_shape shape = {numbers, 5};
    right += compare(b, "sd_lstm_fp", &gpu, &shape) < 1e-5;
    evoke_bundle_close(b);
    printf(right == 5 ? "all 5 layers are right\n" : "%d of 5 layers are right\n", right);
    return right == 5 ? 0 : 1;
}
