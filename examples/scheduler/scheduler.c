/* A scheduler in small: opens a bundle and, for each layer of a file, launches what the bundle has
 * for the GPU at hand and the layer's shape, and compares the outputs with the baseline's.
 *
 *   cc -std=c11 scheduler.c $(pkg-config --cflags --libs evoke-bundle) -lcuda -lm
 *   ./a.out net.tar layers.txt            (a line of the file: LAYER KERNEL NAME=VALUE ...)
 *
 * With no GPU, LD_LIBRARY_PATH=build/standin runs it on the stand-in for the driver. */
#include <evoke/bundle.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cuInit(unsigned flags); /* of the driver, as cuda.h has them */
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemFree_v2(uint64_t address);
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes);
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes);

static evoke_error error;
#define MUST(call) ((call) == 0 ? (void)0 : die(#call))

static void die(const char *what) {
    fprintf(stderr, "%s: %s\n", what, error.text);
    exit(1);
}

/* Numbers between -0.5 and 0.5 with zeros among them; indices for kernels that take some. */
static void fill(const evoke_argument *a, void *to, size_t bytes) {
    for (unsigned i = 0; i < bytes / 4; i++) {
        if (strcmp(a->type, "f32") == 0)
            ((float *)to)[i] = i % 3 ? (float)(i * 2654435761u % 1000u) / 1000.0f - 0.5f : 0.0f;
        else
            ((unsigned *)to)[i] = i;
    }
}

/* Launches a variant on buffers of its own. The outputs, one behind the other, and their bytes. */
static float *run(const evoke_bundle *b, const char *kernel, const evoke_variant *variant,
                  const evoke_shape *shape, size_t *bytes) {
    evoke_argument are[16];
    evoke_buffer buffers[16];
    size_t count = 0;
    char *out = NULL;
    MUST(evoke_bundle_buffers(b, kernel, shape, 16, are, buffers, &count, &error));
    for (size_t i = 0; i < count; i++) {
        void *data = malloc(buffers[i].bytes);
        fill(&are[i], data, buffers[i].bytes);
        MUST(cuMemAlloc_v2(&buffers[i].address, buffers[i].bytes));
        MUST(cuMemcpyHtoD_v2(buffers[i].address, data, buffers[i].bytes));
        free(data);
    }
    MUST(evoke_variant_launch(variant, shape, buffers, count, NULL, &error));
    *bytes = 0;
    for (size_t i = 0; i < count; i++) {
        if (are[i].kind != EVOKE_IN) {
            out = realloc(out, *bytes + buffers[i].bytes);
            MUST(cuMemcpyDtoH_v2(out + *bytes, buffers[i].address, buffers[i].bytes));
            *bytes += buffers[i].bytes;
        }
        MUST(cuMemFree_v2(buffers[i].address));
    }
    return (float *)out;
}

/* Whether a layer's outputs are the baseline's but for rounding. */
static int is_right(const evoke_bundle *b, const char *layer, const char *kernel,
                    const evoke_gpu *gpu, const evoke_shape *shape) {
    evoke_choice chosen, baseline;
    size_t bytes = 0;
    double wrong = 0, all = 0;
    char text[400];
    MUST(evoke_bundle_resolve(b, kernel, gpu, shape, EVOKE_ALIGNED, &chosen, &error));
    MUST(evoke_bundle_resolve(b, kernel, gpu, shape, EVOKE_BASELINE, &baseline, &error));
    printf("%s: %s\n", layer, evoke_bundle_explain(&chosen, text, sizeof text));
    float *got = run(b, kernel, chosen.variant, shape, &bytes);
    float *want = run(b, kernel, baseline.variant, shape, &bytes);
    for (size_t i = 0; i < bytes / sizeof *want; i++) {
        wrong += pow((double)got[i] - want[i], 2);
        all += pow(want[i], 2);
    }
    free(got);
    free(want);
    return all > 0 && sqrt(wrong / all) < 1e-5;
}

int main(int count, char **arguments) {
    FILE *layers = count == 3 ? fopen(arguments[2], "r") : NULL;
    evoke_bundle *b = NULL;
    evoke_gpu gpu;
    evoke_number numbers[16];
    evoke_shape shape;
    void *context = NULL;
    char gpu_name[256], layer[64], kernel[64], text[256];
    int total = 0, right = 0;
    if (layers == NULL || cuInit(0) != 0 || cuDevicePrimaryCtxRetain(&context, 0) != 0)
        die("scheduler BUNDLE LAYERS, on a machine with a GPU");
    MUST(cuCtxSetCurrent(context));
    MUST(evoke_bundle_open(arguments[1], &b, &error));
    MUST(evoke_gpu_current(&gpu, gpu_name, &error));
    for (; fscanf(layers, "%63s %63s %255[^\n]", layer, kernel, text) == 3; total++) {
        MUST(evoke_shape_read(text, numbers, 16, &shape, &error));
        right += is_right(b, layer, kernel, &gpu, &shape);
    }
    evoke_bundle_close(b);
    printf("%d of %d layers are right\n", right, total);
    return total > 0 && right == total ? 0 : 1;
}
