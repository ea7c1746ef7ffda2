/* nvcuda::wmma and the copies of cuda_pipeline.h: every type, shape and layout against sums in C.
 */
#include "tests/kernels/cuda_build.h"

#include "tests/ok.h"

#include <stdint.h>

typedef struct shape {
    int m, n, k;
} shape;

static ev_error err;

/* One warp: x in, y out; a trap fails the test. */
static void run(const vm_module *module, const char *name, const float *x, size_t inputs, float *y,
                size_t outputs) {
    const vm_entry *entry = vm_module_find(module, name);
    if (entry == NULL)
        fail_msg("no entry %s", name);
    vm_memory *memory = NULL;
    uint64_t params[2];
    OK(vm_memory_new(1u << 20, &memory, &err));
    OK(vm_memory_alloc(memory, inputs * 4, VM_BUFFER_IN, "x", &params[0], &err));
    OK(vm_memory_alloc(memory, outputs * 4, VM_BUFFER_OUT, "y", &params[1], &err));
    memcpy(vm_memory_host(memory, params[0]), x, inputs * 4);
    cuda_launch(memory, module, entry, params, 1, 32, name);
    memcpy(y, vm_memory_host(memory, params[1]), outputs * 4);
    vm_memory_free(memory);
}

/* Small integers, which all types hold and whose sums are exact. */
static void fill(float *x, size_t count, bool positive) {
    for (size_t i = 0; i < count; i++)
        x[i] = (float)((i * 7 + i / 5) % 5) - (positive ? 0.0f : 2.0f);
}

static void check(const vm_module *module, const char *type, shape s, const char *layouts) {
    static float x[2048], y[1024];
    char name[64];
    (void)snprintf(name, sizeof name, "%s_%d_%d_%d_%s", type, s.m, s.n, s.k, layouts);
    const size_t m = (size_t)s.m, n = (size_t)s.n, k = (size_t)s.k;
    const float *a = x, *b = a + m * k, *c = b + k * n;
    size_t inputs = m * k + k * n + m * n, outputs = m * n;
    fill(x, inputs, strcmp(type, "u8") == 0);
    run(module, name, x, inputs, y, outputs);
    for (size_t i = 0; i < outputs; i++) {
        float want = c[i];
        for (size_t l = 0; l < k; l++)
            want += 2 * a[i / n * k + l] * b[l * n + i % n];
        if (y[i] != want)
            fail_msg("%s: element %zu is %g, not %g", name, i, (double)y[i], (double)want);
    }
}

static void test_products(void **state) {
    static const char *const types[] = {"half", "float", "brain", "s8", "u8"};
    static const char *const layouts[] = {"rrr", "rcr", "crc", "ccc"};
    static const shape shapes[] = {{16, 16, 16}, {32, 8, 16}, {8, 32, 16}};
    for (size_t l = 0; l < 4; l++) {
        for (size_t i = 0; i < 15; i++)
            check(*state, types[i / 3], shapes[i % 3], layouts[l]);
        check(*state, "tf32", (shape){16, 16, 8}, layouts[l]);
        check(*state, "double", (shape){8, 8, 4}, layouts[l]);
    }
}

static void test_mixed_sums(void **state) {
    static float x[768], y[256];
    fill(x, 768, false);
    run(*state, "mixed", x, 768, y, 256);
    for (int i = 0; i < 256; i++) {
        float want = 0;
        for (int k = 0; k < 16; k++)
            want += x[i / 16 * 16 + k] * x[256 + k * 16 + i % 16];
        assert_true(y[i] == want);
    }
}

static void test_saturation(void **state) {
    float y[32], yes = 1, no = 0;
    run(*state, "saturated", &yes, 1, y, 32);
    assert_true(y[0] == 2147483648.0f && y[31] == y[0]);
    run(*state, "saturated", &no, 1, y, 32);
    assert_true(y[0] == (float)(INT32_MIN + 160000 - 1));
}

static void test_tf32(void **state) {
    float x[32], y[32];
    for (int i = 0; i < 32; i++)
        x[i] = 1.0f + (float)i / 2048.0f; /* odd numbers of the last bit's half: ties */
    run(*state, "to_tf32", x, 32, y, 32);
    for (int i = 0; i < 32; i++)
        assert_true(y[i] == 1.0f + (float)(i + i % 2) / 2048.0f);
}

static void test_copies(void **state) {
    static float x[128], y[224];
    fill(x, 128, false);
    run(*state, "copied", x, 128, y, 224);
    for (int i = 0; i < 32; i++)
        assert_true(y[i] == x[31 - i]);
    for (int i = 0; i < 64; i++)
        assert_true(y[32 + i] == x[63 - i]);
    for (int i = 0; i < 128; i++) {
        int from = 127 - i;
        bool zero = from / 4 % 2 == 1 && from % 4 == 3;
        assert_true(y[96 + i] == (zero ? 0.0f : x[from]));
    }
}

static int set_up(void **state) {
    *state = cuda_build("tests/kernels/cuda_wmma.cu");
    return 0;
}

static int tear_down(void **state) {
    vm_module_free(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),   cmocka_unit_test(test_mixed_sums),
        cmocka_unit_test(test_saturation), cmocka_unit_test(test_tf32),
        cmocka_unit_test(test_copies),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
