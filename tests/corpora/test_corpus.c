/* The generators: golden bits, that any range can be made, densities, exact counts, distributions,
 * and the seeds of the splits. */
#include "base/hash.h"
#include "corpora/corpus.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GOLDEN_LENGTH 3000

/* A request with parameters that make each generator do something to see. */
typedef struct golden {
    const char *name;
    double values[CORPUS_MAX_PARAMETERS];
    const char *sha256; /* of the 3000 f32 elements (s32 for indices) at seed 12345 */
} golden;

static const golden GOLDENS[] = {
    {"uniform", {-2, 3}, "a64570230e65aaf981094029d8dcf11a79ea8c7a947035ceb7c6bf30a4a90d50"},
    {"normal", {1, 2}, "2798695fc58eb2842a1a8ca6cd5ff2e606949bbbc40af13a76d93ef468465c24"},
    {"constant", {0.375}, "fb8f826cda45203b5252dd9c0d1fb46ea354ded383360189091e961f5526838c"},
    {"weights", {100, 1, 700}, "18295f9df168cc204e7c7086c202fcfde183b42fff096fe3a660feb62daeec91"},
    {"relu_mask",
     {0.3, 13, 17, 4, 0.2, 1},
     "2974feb6051e29b84512a2e71bbdc1df81d6aab7537761fc7c2cd9bffe5b1ecf"},
    {"gradient",
     {2, 0.7, 11, 1},
     "94b92e59993f1b2bb56b17a162ab87f325a883d45aa58a2fa835f2abab15263c"},
    {"rank_gradient",
     {750, 0.1, 0.5},
     "5344a6a1b88fbf52be0849aefe5a162db589c716a434f2a5b29679d8e9a2af55"},
    {"dropout_indices", {7000}, "35b53ef60c8c902fd98786734061e0606b7b9783b4505234899251de9e9f994c"},
    {"row_offsets",
     {30000, 0.5, 0.1},
     "9a9e2f518372ff6dd0098ceb1ee7cad03f6b0e50dd83326c77d8f4d5b783dcf1"},
    {"image", {19, 23, 3, 1}, "abfa43760345c9dab02ec9d6bcdaa481f6f736c3fd1b6c938568ed2a590e1776"},
    {"zeros", {0}, "ff6698a6e831ffcf47af2fed388ffc262f319e72b26cd140929d1e19b1246ad4"},
    {"ones", {0}, "3300ce5ce761cddb23b57207c8840f90e394e99444f53d054c9722b0525eb827"},
    {"alternating", {3, 0.01}, "bcb658a4878e624323a997e184119afa3fafe81edafdb43915f0d6521bb5d8bf"},
    {"large", {40}, "e3c1aeb42abe95426c131cb39aa4d3615cf58128b467f1fdb05906f407181728"},
    {"tiny", {40}, "6cb0d6e1f73e2aa998a02f35e7d1ef29acee73f3e2490b7ab5dcda49d5dca324"},
    {"denormal", {0}, "1e0a632c269364c67e961f50cded4e6cb8b68f5d3ac8c1224e8f42192e8aa4bd"},
    {"one_hot", {37}, "676ddf1f4deedc0d2d4728efdb66ec72937066470828e03e1c23a49042dcf300"},
};

static bool is_of_indices(const char *generator) {
    return strcmp(generator, "dropout_indices") == 0 || strcmp(generator, "row_offsets") == 0;
}

static corpus_request request_of(const golden *g, uint64_t length) {
    corpus_request r = {.generator = corpus_generator_find(g->name),
                        .type = is_of_indices(g->name) ? EV_S32 : EV_F32,
                        .length = length,
                        .seed = 12345};
    assert_non_null(r.generator);
    memcpy(r.values, g->values, sizeof r.values);
    return r;
}

static void fill(const corpus_request *request, uint64_t first, uint64_t count, void *out) {
    ev_error err = {EV_OK, ""};
    if (corpus_fill(request, first, count, out, &err) != EV_OK)
        fail_msg("%s", err.text);
}

/* The same bits on every machine and in every version. */
static void test_golden(void **state) {
    (void)state;
    assert_int_equal(sizeof GOLDENS / sizeof GOLDENS[0], corpus_generator_count());
    static uint32_t data[GOLDEN_LENGTH];
    for (size_t i = 0; i < corpus_generator_count(); i++) {
        corpus_request request = request_of(&GOLDENS[i], GOLDEN_LENGTH);
        assert_string_equal(corpus_generator_at(i)->name, GOLDENS[i].name);
        fill(&request, 0, GOLDEN_LENGTH, data);
        ev_sha256 sum = ev_sha256_of(data, sizeof data);
        if (strcmp(sum.hex, GOLDENS[i].sha256) != 0)
            fail_msg("%s: %s", GOLDENS[i].name, sum.hex);
    }
}

/* A buffer filled in odd pieces, last piece first, is the buffer filled at once. */
static void test_ranges(void **state) {
    (void)state;
    static uint32_t whole[GOLDEN_LENGTH], pieces[GOLDEN_LENGTH];
    for (size_t i = 0; i < corpus_generator_count(); i++) {
        corpus_request request = request_of(&GOLDENS[i], GOLDEN_LENGTH);
        fill(&request, 0, GOLDEN_LENGTH, whole);
        memset(pieces, 0xa5, sizeof pieces);
        for (uint64_t end = GOLDEN_LENGTH, step = 1; end > 0; step = step * 3 % 419 + 1) {
            uint64_t count = step < end ? step : end;
            end -= count;
            fill(&request, end, count, pieces + end);
        }
        if (memcmp(whole, pieces, sizeof whole) != 0)
            fail_msg("%s differs by ranges", GOLDENS[i].name);
    }
}

/* A different seed gives different numbers, where there is anything random. */
static void test_seed_matters(void **state) {
    (void)state;
    static uint32_t a[GOLDEN_LENGTH], b[GOLDEN_LENGTH];
    for (size_t i = 0; i < corpus_generator_count(); i++) {
        const char *name = GOLDENS[i].name;
        corpus_request request = request_of(&GOLDENS[i], GOLDEN_LENGTH);
        fill(&request, 0, GOLDEN_LENGTH, a);
        request.seed++;
        fill(&request, 0, GOLDEN_LENGTH, b);
        bool fixed = strcmp(name, "constant") == 0 || strcmp(name, "zeros") == 0 ||
                     strcmp(name, "ones") == 0;
        assert_int_equal(memcmp(a, b, sizeof a) == 0, fixed);
    }
}

static double density_of(double density, double channels, double width, double dead,
                         uint64_t seed) {
    enum { LENGTH = 1 << 20 };
    golden g = {"relu_mask", {density, channels, width, 4, dead, 1}, ""};
    corpus_request request = request_of(&g, LENGTH);
    request.seed = seed;
    float *data = malloc(LENGTH * sizeof *data);
    assert_non_null(data);
    fill(&request, 0, LENGTH, data);
    size_t live = 0;
    for (size_t i = 0; i < LENGTH; i++) {
        assert_true(data[i] >= 0.0f);
        live += data[i] > 0.0f;
    }
    free(data);
    return (double)live / (double)LENGTH;
}

static void test_density(void **state) {
    (void)state;
    for (int tenths = 1; tenths <= 9; tenths++) {
        double asked = tenths / 10.0;
        assert_true(fabs(density_of(asked, 64, 56, 0.05, 1) / asked - 1) < 0.02);
        assert_true(fabs(density_of(asked, 256, 14, 0.3, 2) / asked - 1) < 0.02);
    }
    assert_true(density_of(0, 64, 56, 0.05, 3) == 0.0);
    assert_true(density_of(1, 64, 56, 0.05, 3) == 1.0);
}

/* As many channels are dead as asked, and neighbours are alike: the field is smooth. */
static void test_mask_structure(void **state) {
    (void)state;
    enum { CHANNELS = 40, WIDTH = 32, PIXELS = 32 * 32 };
    golden g = {"relu_mask", {0.4, CHANNELS, WIDTH, 4, 0.25, 1}, ""};
    static float data[PIXELS * CHANNELS];
    corpus_request request = request_of(&g, (uint64_t)PIXELS * CHANNELS);
    fill(&request, 0, (uint64_t)PIXELS * CHANNELS, data);
    size_t dead = 0, alike = 0, pairs = 0;
    for (size_t c = 0; c < CHANNELS; c++) {
        size_t live = 0;
        for (size_t p = 0; p < PIXELS; p++)
            live += data[p * CHANNELS + c] > 0.0f;
        dead += live == 0;
        for (size_t p = 0; p + 1 < PIXELS && live > 0; p++, pairs++)
            alike += (data[p * CHANNELS + c] > 0) == (data[(p + 1) * CHANNELS + c] > 0);
    }
    assert_int_equal(dead, 10);
    assert_true((double)alike > 0.8 * (double)pairs); /* independent pixels: about 0.5 */
}

static void test_dropout_exact(void **state) {
    (void)state;
    const struct {
        uint64_t k, of;
    } rows[] = {{1, 1}, {1, 5}, {5, 5}, {325, 650}, {525, 1500}, {1499, 1500}, {3, 16777216}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (uint64_t seed = 0; seed < 3; seed++) {
            golden g = {"dropout_indices", {(double)rows[i].of}, ""};
            corpus_request request = request_of(&g, rows[i].k);
            request.seed = seed;
            int32_t kept[1500];
            fill(&request, 0, rows[i].k, kept);
            for (uint64_t n = 0; n < rows[i].k; n++) {
                assert_true(kept[n] >= 0 && (uint64_t)kept[n] < rows[i].of);
                assert_true(n == 0 || kept[n] > kept[n - 1]);
            }
        }
    }
}

/* Each draw is as one of its own, and another one; the last may be shorter. */
static void test_dropout_draws(void **state) {
    (void)state;
    enum { OF = 50, K = 20, DRAWS = 9, LENGTH = DRAWS * K - 7 };
    golden one = {"dropout_indices", {OF}, ""}, all = {"dropout_indices", {OF, K}, ""};
    corpus_request request = request_of(&all, LENGTH), first = request_of(&one, K);
    int32_t kept[LENGTH], alone[K];
    fill(&request, 0, LENGTH, kept);
    fill(&first, 0, K, alone);
    assert_memory_equal(kept, alone, sizeof alone);
    for (int n = 0; n < LENGTH; n++) {
        assert_in_range(kept[n], 0, OF - 1);
        assert_true(n % K == 0 || kept[n] > kept[n - 1]);
    }
    for (int draw = 1; draw < DRAWS - 1; draw++)
        assert_memory_not_equal(kept + (ptrdiff_t)draw * K, kept, sizeof alone);
    assert_true(kept[LENGTH - 1] > OF / 2); /* 13 of 50, spread over all */
}

/* The offsets ascend from 0 to the number of entries; rows are as even and as empty as they are
 * told to be. */
static void test_row_offsets(void **state) {
    (void)state;
    enum { ROWS = 2000, OF = 20000 };
    static const struct {
        double spread, empty;
        int least, most; /* of rows that are empty */
    } rows[] = {{0, 0, 0, 0}, {1, 0, 0, 60}, {0.5, 0.3, 540, 660}, {0, 1, ROWS - 1, ROWS - 1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        golden g = {"row_offsets", {OF, rows[i].spread, rows[i].empty}, ""};
        corpus_request request = request_of(&g, ROWS + 1);
        int32_t offsets[ROWS + 1];
        int empty = 0;
        fill(&request, 0, ROWS + 1, offsets);
        assert_int_equal(offsets[0], 0);
        assert_int_equal(offsets[ROWS], OF);
        for (int row = 0; row < ROWS; row++) {
            int entries = offsets[row + 1] - offsets[row];
            assert_true(entries >= 0);
            empty += entries == 0;
            if (rows[i].spread == 0 && rows[i].empty == 0)
                assert_in_range(entries, OF / ROWS - 1, OF / ROWS + 1);
        }
        assert_in_range(empty, rows[i].least, rows[i].most);
    }
    golden none = {"row_offsets", {0, 1, 0}, ""};
    corpus_request request = request_of(&none, 3), one = request_of(&none, 1);
    int32_t offsets[3] = {7, 7, 7};
    fill(&request, 0, 3, offsets);
    assert_true(offsets[0] == 0 && offsets[1] == 0 && offsets[2] == 0);
    fill(&one, 0, 1, offsets);
    assert_int_equal(offsets[0], 0);
}

/* Each neuron is kept equally often. */
static void test_dropout_even(void **state) {
    (void)state;
    enum { OF = 50, K = 20, DRAWS = 4000 };
    int hits[OF] = {0};
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        golden g = {"dropout_indices", {OF}, ""};
        corpus_request request = request_of(&g, K);
        request.seed = corpus_seed(CORPUS_SEARCH, "t", "c", "a", (uint32_t)seed);
        int32_t kept[K];
        fill(&request, 0, K, kept);
        for (int n = 0; n < K; n++)
            hits[kept[n]]++;
    }
    for (int j = 0; j < OF; j++) /* 1600 expected, deviation 31 */
        assert_true(hits[j] > 1600 - 5 * 31 && hits[j] < 1600 + 5 * 31);
}

typedef struct moments {
    double mean, deviation, kurtosis;
} moments;

static moments moments_of(const char *name, const double *values) {
    enum { LENGTH = 1 << 19 };
    golden g = {name, {0}, ""};
    memcpy(g.values, values, sizeof g.values);
    corpus_request request = request_of(&g, LENGTH);
    float *data = malloc(LENGTH * sizeof *data);
    assert_non_null(data);
    fill(&request, 0, LENGTH, data);
    double sum = 0, squares = 0, fourths = 0;
    for (size_t i = 0; i < LENGTH; i++)
        sum += (double)data[i];
    double mean = sum / (double)LENGTH;
    for (size_t i = 0; i < LENGTH; i++) {
        double d = (double)data[i] - mean;
        squares += d * d;
        fourths += d * d * d * d;
    }
    free(data);
    double variance = squares / (double)LENGTH;
    return (moments){mean, sqrt(variance), fourths / (double)LENGTH / (variance * variance)};
}

static void test_distributions(void **state) {
    (void)state;
    moments m = moments_of("normal", (double[CORPUS_MAX_PARAMETERS]){0.5, 2});
    assert_true(fabs(m.mean - 0.5) < 0.015 && fabs(m.deviation - 2) < 0.01);
    assert_true(fabs(m.kurtosis - 3) < 0.05);
    m = moments_of("uniform", (double[CORPUS_MAX_PARAMETERS]){0, 1});
    assert_true(fabs(m.mean - 0.5) < 0.003 && fabs(m.deviation - 0.288675) < 0.001);
    m = moments_of("gradient", (double[CORPUS_MAX_PARAMETERS]){3, 0, 1, 1});
    assert_true(fabs(m.mean) < 0.03 && fabs(m.deviation - 3) < 0.03);
    assert_true(fabs(m.kurtosis - 6) < 0.3); /* Laplace's */
    m = moments_of("weights", (double[CORPUS_MAX_PARAMETERS]){400, 1, 0});
    assert_true(fabs(m.deviation - 0.05) < 0.0005);
    m = moments_of("rank_gradient", (double[CORPUS_MAX_PARAMETERS]){65536, 2, 0.5});
    assert_true(fabs(m.deviation - 2 * sqrt(1.25)) < 0.03);
}

/* A row of a sparse gradient is zero as a whole or not at all, and a live one is as in the dense.
 */
static void test_sparse_rows(void **state) {
    (void)state;
    enum { N = 7, ROWS = 4096 };
    static float dense[N * ROWS], data[N * ROWS];
    golden all = {"gradient", {1, 0.5, N, 1}, ""}, some = {"gradient", {1, 0.5, N, 0.3}, ""};
    corpus_request request = request_of(&all, (uint64_t)N * ROWS);
    fill(&request, 0, (uint64_t)N * ROWS, dense);
    request = request_of(&some, (uint64_t)N * ROWS);
    fill(&request, 0, (uint64_t)N * ROWS, data);
    size_t live = 0;
    for (size_t r = 0; r < ROWS; r++) {
        bool is_live = data[r * N] != 0;
        for (size_t i = 0; i < N; i++)
            assert_true(data[r * N + i] == (is_live ? dense[r * N + i] : 0));
        live += is_live;
    }
    assert_true(fabs((double)live / (double)ROWS - 0.3) < 0.03);
}

/* Copies of `repeat` elements are the same; ranks share their signal. */
static void test_ranks(void **state) {
    (void)state;
    enum { N = 4096, RANKS = 4 };
    static float data[N * RANKS];
    golden weights = {"weights", {100, 1, N}, ""};
    corpus_request request = request_of(&weights, (uint64_t)N * RANKS);
    fill(&request, 0, (uint64_t)N * RANKS, data);
    for (size_t r = 1; r < RANKS; r++)
        assert_memory_equal(data, data + r * N, N * sizeof *data);
    golden uniform = {"uniform", {1, 2, N}, ""};
    request = request_of(&uniform, (uint64_t)N * RANKS);
    fill(&request, 0, (uint64_t)N * RANKS, data);
    for (size_t r = 1; r < RANKS; r++)
        assert_memory_equal(data, data + r * N, N * sizeof *data);
    golden gradient = {"rank_gradient", {N, 1, 0.5}, ""};
    request = request_of(&gradient, (uint64_t)N * RANKS);
    fill(&request, 0, (uint64_t)N * RANKS, data);
    double product = 0, squares = 0;
    for (size_t i = 0; i < N; i++) {
        product += (double)data[i] * (double)data[N + i];
        squares += (double)data[i] * (double)data[i];
    }
    assert_true(fabs(product / squares - 0.8) < 0.05); /* 1 / (1 + noise^2) */
}

static void test_edge_cases(void **state) {
    (void)state;
    enum { LENGTH = 2000 };
    static float data[LENGTH];
    golden denormal = {"denormal", {0}, ""};
    corpus_request request = request_of(&denormal, LENGTH);
    fill(&request, 0, LENGTH, data);
    for (size_t i = 0; i < LENGTH; i++)
        assert_int_equal(fpclassify(data[i]), FP_SUBNORMAL);
    golden alternating = {"alternating", {8, 0.01}, ""};
    request = request_of(&alternating, LENGTH);
    fill(&request, 0, LENGTH, data);
    double sum = 0;
    for (size_t i = 0; i < LENGTH; i++) {
        assert_true((data[i] > 0) == (i % 2 == 0));
        sum += (double)data[i];
    }
    assert_true(fabs(sum) < 8 * 0.01 * 200);
    golden hot = {"one_hot", {50}, ""};
    request = request_of(&hot, LENGTH);
    fill(&request, 0, LENGTH, data);
    for (size_t stretch = 0; stretch < LENGTH / 50; stretch++) {
        float total = 0;
        for (size_t i = 0; i < 50; i++)
            total += data[stretch * 50 + i];
        assert_true(total == 1.0f);
    }
}

static void test_splits(void **state) {
    (void)state;
    uint64_t seeds[CORPUS_SPLIT_COUNT];
    for (int s = 0; s < CORPUS_SPLIT_COUNT; s++) {
        corpus_split found;
        assert_true(corpus_split_find(corpus_split_name((corpus_split)s), &found));
        assert_int_equal(found, s);
        seeds[s] = corpus_seed((corpus_split)s, "task", "case", "x", 0);
        for (int t = 0; t < s; t++)
            assert_true(seeds[s] >> 62 != seeds[t] >> 62);
    }
    corpus_split none;
    assert_false(corpus_split_find("test", &none));
    assert_true(corpus_seed(CORPUS_SEARCH, "ab", "c", "x", 0) !=
                corpus_seed(CORPUS_SEARCH, "a", "bc", "x", 0));
    assert_true(corpus_seed(CORPUS_SEARCH, "a", "b", "x", 0) !=
                corpus_seed(CORPUS_SEARCH, "a", "b", "x", 1));
    assert_true(corpus_seed(CORPUS_SEARCH, "a", "b", "x", 0) ==
                corpus_seed(CORPUS_SEARCH, "a", "b", "x", 0));
}

static void expect_refused(const golden *g, uint64_t length, const char *words) {
    corpus_request request = request_of(g, length);
    ev_error err = {EV_OK, ""};
    assert_int_equal(corpus_request_check(&request, &err), EV_BAD);
    if (strstr(err.text, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
    float nothing = 0;
    assert_int_equal(corpus_fill(&request, 0, 1, &nothing, &err), EV_BAD);
}

static void test_refusals(void **state) {
    (void)state;
    expect_refused(&(golden){"relu_mask", {1.5, 4, 4, 4, 0, 1}, ""}, 16, "density is 1.5");
    expect_refused(&(golden){"relu_mask", {0.5, 4, 0, 4, 0, 1}, ""}, 16, "width is 0");
    expect_refused(&(golden){"constant", {NAN}, ""}, 16, "value is nan");
    expect_refused(&(golden){"dropout_indices", {15}, ""}, 16, "cannot be distinct");
    expect_refused(&(golden){"dropout_indices", {15, 16}, ""}, 32, "16 indices cannot be distinct");
    corpus_request request = request_of(&(golden){"denormal", {0}, ""}, 4);
    request.type = EV_S32;
    ev_error err = {EV_OK, ""};
    assert_int_equal(corpus_request_check(&request, &err), EV_BAD);
    assert_null(corpus_generator_find("noise"));
}

/* What a type cannot hold is refused, and not made an infinity or a zero. */
static void test_types_are_held(void **state) {
    (void)state;
    static const struct {
        const char *generator;
        double value[2];
        ev_type type;
        const char *words; /* NULL: it is taken */
    } rows[] = {
        {"large",
         {40},
         EV_F16,
         "exponent is 40, and the largest f16 is 65504; give an exponent of at most 14"},
        {"large", {15}, EV_F16, "at most 14"},
        {"large", {14}, EV_F16, NULL},
        {"large", {126}, EV_BF16, NULL},
        {"large", {40}, EV_S32, NULL}, /* whole numbers take their nearest */
        {"tiny", {40}, EV_F16, "the smallest f16 above 0 is 2^-24; give an exponent of at most 24"},
        {"tiny", {24}, EV_F16, NULL},
        {"tiny", {126}, EV_BF16, NULL},
        {"constant", {65520}, EV_F16, "element 0 is 65520, and the largest f16 is 65504"},
        {"constant", {-65519.99}, EV_F16, NULL}, /* rounds to the largest */
        {"constant", {1e300}, EV_F32, "the largest f32 is 3.40282347e+38"},
        {"constant", {1e300}, EV_F64, NULL},
        {"constant", {300}, EV_U8, NULL},
        {"uniform", {0, 1e6}, EV_F16, "and the largest f16 is 65504; lower its parameters"},
        {"normal", {0, 1e6}, EV_F16, "generator normal: element"},
        {"normal", {0, 1000}, EV_F16, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        corpus_request request = {.generator = corpus_generator_find(rows[i].generator),
                                  .values = {rows[i].value[0], rows[i].value[1]},
                                  .type = rows[i].type,
                                  .length = 64,
                                  .seed = 5};
        ev_error err = {EV_OK, ""};
        double data[64];
        assert_non_null(request.generator);
        ev_status status = corpus_fill(&request, 0, 64, data, &err);
        if ((status == EV_OK) != (rows[i].words == NULL) ||
            (rows[i].words != NULL && strstr(err.text, rows[i].words) == NULL))
            fail_msg("row %zu: %s", i, err.text);
        for (size_t k = 0; k < 64 && status == EV_OK; k++) {
            double value = ev_type_get(rows[i].type, data, k);
            assert_true(isfinite(value) && (value != 0 || strcmp(rows[i].generator, "tiny") != 0));
        }
    }
}

static void test_types(void **state) {
    (void)state;
    golden g = {"uniform", {-100, 100}, ""};
    for (int type = 0; type < EV_TYPE_COUNT; type++) {
        corpus_request request = request_of(&g, 64);
        unsigned char data[64 * 8];
        request.type = (ev_type)type;
        fill(&request, 0, 64, data);
        float wide[64];
        request.type = EV_F32;
        fill(&request, 0, 64, wide);
        for (size_t i = 0; i < 64; i++) {
            double got = ev_type_get((ev_type)type, data, i), want = (double)wide[i];
            bool is_signed = type != EV_U8 && type != EV_U16 && type != EV_U32 && type != EV_U64;
            if (want < 0 && !is_signed)
                want = 0;
            assert_true(fabs(got - want) <= 0.51);
        }
    }
}

static void test_shapes(void **state) {
    (void)state;
    for (size_t i = 0; i < corpus_shape_count(); i++) {
        const corpus_shape *s = corpus_shape_at(i);
        assert_ptr_equal(corpus_shape_find(s->name), s);
        assert_true(s->count >= 1 && s->count <= 8);
        for (size_t k = 0; k < s->count; k++)
            assert_true(s->keys[k] != NULL && s->values[k] > 0);
    }
    const corpus_shape *medium = corpus_shape_find("zaremba.medium");
    assert_non_null(medium);
    assert_string_equal(medium->keys[1], "H");
    assert_int_equal(medium->values[1], 650);
    assert_null(corpus_shape_find("zaremba.tiny"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),         cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_seed_matters),   cmocka_unit_test(test_density),
        cmocka_unit_test(test_mask_structure), cmocka_unit_test(test_dropout_exact),
        cmocka_unit_test(test_dropout_draws),  cmocka_unit_test(test_dropout_even),
        cmocka_unit_test(test_row_offsets),    cmocka_unit_test(test_distributions),
        cmocka_unit_test(test_sparse_rows),    cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_edge_cases),     cmocka_unit_test(test_splits),
        cmocka_unit_test(test_refusals),       cmocka_unit_test(test_types),
        cmocka_unit_test(test_shapes),         cmocka_unit_test(test_types_are_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
