/* Which description a GPU gets by what its driver says: only whole names with the right target and
 * number of SMs are of the same model; every other GPU gets the nearest one, in words. */
#include "fitness/model/gpu_match.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define GB 1000000000ull

typedef struct row {
    const char *name;
    int sm, sm_count;
    uint64_t gigabytes;
    const char *id;
    bool is_same;
} row;

static const row ROWS[] = {
    {"NVIDIA A100-SXM4-80GB", 80, 108, 80, "a100", true},
    {"A100-SXM4-80GB", 80, 108, 80, "a100", true},
    {"NVIDIA A100-SXM4-40GB", 80, 108, 40, "a100-pcie-40gb", false},
    {"NVIDIA A100-PCIE-40GB", 80, 108, 40, "a100-pcie-40gb", true},
    {"NVIDIA A100 80GB PCIe", 80, 108, 80, "a100", false},
    {"NVIDIA A800-SXM4-80GB", 80, 108, 80, "a100", false},
    {"NVIDIA A30", 80, 56, 24, "a100-pcie-40gb", false},
    {"NVIDIA H100 80GB HBM3", 90, 132, 80, "h100", true},
    {"NVIDIA H100 80GB HBM3", 90, 114, 80, "h100-pcie", false}, /* the name, and other SMs */
    {"NVIDIA H100 80GB HBM3 MIG 1g.10gb", 90, 16, 10, "h100-pcie", false},
    {"NVIDIA H100 PCIe", 90, 114, 80, "h100-pcie", true},
    {"NVIDIA H100 NVL", 90, 132, 94, "gh200", false},
    {"NVIDIA H800", 90, 132, 80, "h100", false},
    {"NVIDIA H20", 90, 78, 96, "h100-pcie", false},
    {"NVIDIA H200", 90, 132, 141, "h200", true},
    {"NVIDIA H200 NVL", 90, 132, 141, "h200", false},
    {"NVIDIA GH200 480GB", 90, 132, 96, "gh200", true},
    {"NVIDIA GH200 144G HBM3e", 90, 132, 144, "h200", false},
    {"NVIDIA B200", 100, 148, 180, "h200", false},
    {"NVIDIA RTX A1000", 86, 18, 8, "a4000", false},
    {"NVIDIA RTX A4000", 86, 48, 16, "a4000", true},
    {"NVIDIA RTX A6000", 86, 84, 48, "a6000", true},
    {"NVIDIA A40", 86, 84, 48, "a40", true},
    {"NVIDIA A10", 86, 72, 24, "a40", false},
    {"NVIDIA GeForce RTX 3090", 86, 82, 24, "a40", false},
    {"NVIDIA RTX 6000 Ada Generation", 89, 142, 48, "l40", false},
    {"NVIDIA L4", 89, 58, 24, "l4", true},
    {"NVIDIA L40", 89, 142, 48, "l40", true},
    {"NVIDIA L40S", 89, 142, 48, "l40", false},
    {"NVIDIA GeForce RTX 4090", 89, 128, 24, "rtx4090", true},
    {"GeForce RTX 4090", 89, 128, 24, "rtx4090", true},
    {"NVIDIA GeForce RTX 4090 D", 89, 114, 24, "rtx4090", false},
    {"NVIDIA GeForce RTX 4090 Laptop GPU", 89, 76, 16, "l4", false},
    {"NVIDIA GeForce RTX 5090", 120, 170, 32, "h100", false},
    {"Tesla T4", 75, 40, 16, "t4", true},
    {"NVIDIA T4", 75, 40, 16, "t4", true},
    {"NVIDIA T400 4GB", 75, 6, 4, "t4", false},
    {"NVIDIA T1000", 75, 14, 8, "t4", false},
    {"Quadro RTX 8000", 75, 72, 48, "t4", false},
    {"Tesla V100-SXM2-16GB", 70, 80, 16, "v100", true},
    {"Tesla V100-SXM2-32GB", 70, 80, 32, "v100-pcie", false},
    {"Tesla V100-PCIE-32GB", 70, 80, 32, "v100-pcie", true},
    {"Tesla P100-SXM2-16GB", 60, 56, 16, "p100", true},
    {"Tesla P100-PCIE-16GB", 60, 56, 16, "p100", false},
    {"NVIDIA H200 SXM 141GB (modelled)", 90, 132, 141, "h200", true}, /* the stand-in's */
    {"NVIDIA Tesla V100 SXM2 16GB (modelled)", 70, 80, 16, "v100", true},
};

static void test_names(void **state) {
    (void)state;
    char **ids = NULL;
    size_t count = 0;
    gpu *all[32] = {NULL};
    assert_int_equal(gpu_list(&ids, &count, NULL), EV_OK);
    assert_in_range(count, 7, 32);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(gpu_load(ids[i], &all[i], NULL), EV_OK);
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        const row *r = &ROWS[i];
        const gpu_seen seen = {r->name, r->sm, r->sm_count, r->gigabytes * GB};
        gpu_match got;
        if (!gpu_match_among(all, count, &seen, &got))
            fail_msg("%s: nothing", r->name);
        if (strcmp(got.id, r->id) != 0 || got.is_same != r->is_same)
            fail_msg("%s with %d SMs is %s (%s), not %s (%s)", r->name, r->sm_count, got.id,
                     got.is_same ? "same" : "nearest", r->id, r->is_same ? "same" : "nearest");
        assert_true(got.sm <= r->sm);
        assert_true((got.note[0] == '\0') == r->is_same);
        if (!r->is_same)
            assert_non_null(strstr(got.note, "evoke calibrate"));
    }
    for (size_t i = 0; i < count; i++)
        gpu_free(all[i]);
    gpu_list_free(ids, count);
}

static void test_note(void **state) {
    (void)state;
    gpu_match got;
    const gpu_seen cut = {"NVIDIA H200", 90, 128, 141 * GB};
    assert_int_equal(gpu_match_driver(&cut, &got, NULL), EV_OK);
    assert_non_null(strstr(got.note, "NVIDIA H200 with sm_90 and 128 SMs"));
    assert_non_null(strstr(got.note, "the one of that name has 132 SMs"));
    assert_non_null(strstr(got.note, "h200 is the nearest"));
}

static void test_too_old(void **state) {
    (void)state;
    gpu_match got;
    ev_error err;
    const gpu_seen k80 = {"Tesla K80", 37, 13, 12 * GB};
    assert_int_equal(gpu_match_driver(&k80, &got, &err), EV_BAD);
    assert_non_null(strstr(err.text, "Tesla K80 is sm_37"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_note),
        cmocka_unit_test(test_too_old),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
