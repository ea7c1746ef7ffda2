/* A scheduler in small: opens a bundle and, for each layer of a file, launches what the bundle has
 * for the GPU at hand and the layer's shape, and compares the outputs with the baseline's.
 *
 *   cc -std=c11 scheduler.c $(pkg-config --cflags --libs evoke-bundle) -lcuda
 *   ./a.out net.tar layers.txt            (a line of the file: LAYER KERNEL NAME=VALUE ...)
 *
 * With no GPU, LD_LIBRARY_PATH=build/standin runs it on the stand-in for the driver. */
#include <evoke/bundle.h>
#include <stdio.h>
#include <stdlib.h>

int cuInit(unsigned flags); /* of the driver, as cuda.h has them */
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);

static evoke_error error;
#define MUST(call) ((call) == 0 ? (void)0 : die(#call))

static void die(const char *what) {
    fprintf(stderr, "%s: %s\n", what, error.text);
    exit(1);
}

/* Launches on new buffers. A scheduler has its own: evoke_bundle_buffers tells how large. */
static size_t run(const evoke_variant *variant, const evoke_shape *shape, evoke_buffer *buffers) {
    size_t count = 0;
    MUST(evoke_variant_allocate(variant, shape, NULL, NULL, 16, buffers, &count, &error));
    MUST(evoke_variant_launch(variant, shape, buffers, count, NULL, &error));
    return count;
}

/* Whether a layer's outputs are the baseline's but for rounding. */
static int is_right(const evoke_bundle *b, const char *layer, const char *kernel,
                    const evoke_gpu *gpu, const evoke_shape *shape) {
    evoke_choice chosen, baseline;
    evoke_buffer got[16], want[16];
    evoke_difference differ;
    char text[400];
    MUST(evoke_bundle_resolve(b, kernel, gpu, shape, EVOKE_ALIGNED, &chosen, &error));
    MUST(evoke_bundle_resolve(b, kernel, gpu, shape, EVOKE_BASELINE, &baseline, &error));
    printf("%s: %s\n", layer, evoke_bundle_explain(&chosen, text, sizeof text));
    size_t count = run(chosen.variant, shape, got);
    run(baseline.variant, shape, want);
    MUST(evoke_variant_compare(chosen.variant, got, want, count, &differ, &error));
    MUST(evoke_buffers_free(got, count, &error));
    MUST(evoke_buffers_free(want, count, &error));
    return differ.norm > 0 && differ.relative < 1e-5;
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
