/* Textures and surfaces: every row of ptx_ops.def with its types, filters and address modes against
 * a plain reference by the formulae of the CUDA C++ Programming Guide (Texture Fetching), what is
 * outside a surface, and what traps. */
#include "tests/fitness/vm/texture_rig.h"

#define SIZE 5u /* elements of a dimension: no power of two */

/* ---- the reference: the formulae of the guide */

/* -1: outside, with borders. */
static int64_t address(int64_t i, int64_t n, unsigned mode) {
    while (mode == PTX_ADDRESS_WRAP && i < 0)
        i += n;
    if (mode == PTX_ADDRESS_WRAP)
        return i % n;
    if (mode == PTX_ADDRESS_MIRROR) {
        while (i < 0)
            i += 2 * n;
        i %= 2 * n;
        return i < n ? i : 2 * n - 1 - i;
    }
    if (mode == PTX_ADDRESS_BORDER)
        return i < 0 || i >= n ? -1 : i;
    i = i < 0 ? 0 : i;
    return i >= n ? n - 1 : i;
}

static double sample(const image *i, int64_t x, int64_t y, int64_t z, unsigned c) {
    const vm_texture *t = &i->t;
    const uint8_t *modes = t->sampler.modes;
    int64_t layer = z;
    x = address(x, t->width, modes[0]);
    y = t->height ? address(y, t->height, modes[1]) : 0;
    z = t->depth ? address(z, t->depth, modes[2]) : layer;
    return x < 0 || y < 0 || z < 0 ? (double)t->sampler.border[c] : element(i, x, y, z, c);
}

static double weight(double x, unsigned k) {
    double a = floor((x - 0.5 - floor(x - 0.5)) * 256 + 0.5) / 256;
    return k ? a : 1 - a;
}

static double reference(const image *i, const double x[3], unsigned dimensions, int64_t layer,
                        unsigned c) {
    const vm_texture *t = &i->t;
    if (!t->sampler.linear)
        return sample(i, (int64_t)floor(x[0]), (int64_t)floor(x[1]),
                      dimensions == 3 ? (int64_t)floor(x[2]) : layer, c);
    double sum = 0;
    for (unsigned k = 0; k < 1u << dimensions; k++) {
        double w = 1;
        int64_t at[3] = {0, 0, layer};
        for (unsigned d = 0; d < dimensions; d++) {
            w *= weight(x[d], k >> d & 1);
            at[d] = (int64_t)floor(x[d] - 0.5) + (k >> d & 1);
        }
        sum += w * sample(i, at[0], at[1], at[2], c);
    }
    return sum;
}

/* ---- filters and address modes */

typedef struct geometry {
    const char *name, *coordinates; /* of floats */
    unsigned dimensions;
    bool layered;
} geometry;

static const geometry geometries[] = {
    {"1d", "{%x0}", 1, false},
    {"2d", "{%x0, %x1}", 2, false},
    {"3d", "{%x0, %x1, %x2, %x2}", 3, false},
    {"a1d", "{%c3, %x0}", 1, true},
    {"a2d", "{%c3, %x0, %x1, %x1}", 2, true},
};

static vm_texture shape_of(const geometry *g) {
    return (vm_texture){.width = SIZE,
                        .height = g->dimensions > 1 ? SIZE + 2 : 0,
                        .depth = g->dimensions > 2 ? SIZE - 2 : 0,
                        .layers = g->layered ? 3 : 0,
                        .channel = EV_F32,
                        .channels = 1};
}

static uint32_t extent_of(const vm_texture *t, unsigned dimension) {
    const uint32_t extents[] = {t->width, t->height, t->depth};
    return extents[dimension];
}

/* The elements' bits as floats of a few hundred. */
static void fill_floats(session *s, const image *i) {
    for (uint64_t k = 0; k < vm_memory_bytes(s->memory, i->t.address) / 4; k++)
        ((float *)(void *)i->host)[k] = (float)((int)draw(s, 2001) - 1000) / 8;
}

static void check_samples(session *s, const geometry *g, const vm_sampler *sampler) {
    vm_texture t = shape_of(g);
    t.sampler = *sampler;
    t.channels = (uint8_t)(1u << draw(s, 3));
    image i = make_image(s, t, draw(s, 3));
    fill_floats(s, &i);
    char line[200];
    snprintf(line, sizeof line, "tex.%s.v4.f32.f32 {%%f0, %%f1, %%f2, %%f3}|%%p, [%%t, %s];%s",
             g->name, g->coordinates, FLOATS);
    float words[LANES][4];
    uint32_t out[LANES][4], layers[LANES];
    for (unsigned k = 0; k < LANES; k++) {
        for (unsigned d = 0; d < 3; d++) {
            float at = (float)((int)draw(s, 3 * 4096) - 4096) / 4096 * (float)SIZE; /* -5 to 10 */
            words[k][d] = sampler->normalised ? at / (float)SIZE : at;
        }
        layers[k] = draw(s, 5); /* beyond the last: the last */
        memcpy(&words[k][3], &layers[k], 4);
    }
    run(s, line, i.handle, words, out);
    for (unsigned k = 0; k < LANES; k++) {
        double x[3];
        for (unsigned d = 0; d < 3; d++)
            x[d] = (double)words[k][d] * (sampler->normalised ? extent_of(&t, d) : 1);
        int64_t last = layers[k] < 3 ? layers[k] : 2, layer = g->layered ? last : 0;
        for (unsigned c = 0; c < 4; c++) {
            float want = (float)reference(&i, x, g->dimensions, layer, c), got;
            memcpy(&got, &out[k][c], 4);
            if (got != want)
                fail_msg("%s, linear %d, normalised %d, mode %u: lane %u (%g, %g, %g), channel %u: "
                         "expected %g, got %g",
                         g->name, sampler->linear, sampler->normalised, sampler->modes[0], k, x[0],
                         x[1], x[2], c, (double)want, (double)got);
        }
    }
    put_image(s, &i);
}

static void test_filters(void **state) {
    session *s = *state;
    for (size_t g = 0; g < sizeof geometries / sizeof *geometries; g++)
        for (unsigned bits = 0; bits < 4; bits++)
            for (unsigned mode = 0; mode < 4; mode++) {
                vm_sampler sampler = {.linear = bits & 1,
                                      .normalised = bits & 2,
                                      .modes = {(uint8_t)mode, (uint8_t)mode, (uint8_t)mode},
                                      .border = {2.5f, -1, 0, 3}};
                bool repeats = mode == PTX_ADDRESS_WRAP || mode == PTX_ADDRESS_MIRROR;
                if (!repeats || sampler.normalised)
                    check_samples(s, &geometries[g], &sampler);
            }
}

/* Repetition needs normalised coordinates: the others are clamped. */
static void test_wrap_is_clamp(void **state) {
    session *s = *state;
    vm_texture t = {.width = SIZE, .channel = EV_F32, .channels = 1}; /* modes 0: wrap */
    image i = make_image(s, t, 0);
    float words[LANES][4] = {{-3}, {0}, {4.5f}, {99}, {NAN}, {INFINITY}, {-INFINITY}};
    uint32_t out[LANES][4];
    const uint32_t *texels = (const uint32_t *)(const void *)i.host;
    run(s, "tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%x0}];" FLOATS, i.handle, words, out);
    static const unsigned want[] = {0, 0, 4, 4, 0, 4, 0};
    for (unsigned k = 0; k < 7; k++)
        assert_int_equal(out[k][0], texels[want[k]]);
    assert_int_equal(out[0][1], 0); /* channels that are not there */
    assert_int_equal(out[0][3], 0x3f800000);
    put_image(s, &i);
}

/* A border is a float, whatever the elements are. */
static void test_integer_border(void **state) {
    session *s = *state;
    vm_texture t = {.width = SIZE,
                    .channel = EV_S32,
                    .channels = 4,
                    .sampler = {.modes = {3, 3, 3}, .border = {-3, 1e30f, NAN, 9}}};
    image i = make_image(s, t, 0);
    float words[LANES][4] = {{-1}};
    uint32_t out[LANES][4];
    run(s, "tex.1d.v4.s32.f32 {%r0, %r1, %r2, %r3}, [%t, {%x0}];", i.handle, words, out);
    assert_int_equal(out[0][0], (uint32_t)-3);
    assert_int_equal(out[0][1], 0);
    assert_int_equal(out[0][2], 0);
    assert_int_equal(out[0][3], 9);
    put_image(s, &i);
}

/* The weights have 8 bits: between two of them nothing changes. */
static void test_weights(void **state) {
    session *s = *state;
    vm_texture t = {.width = 2, .channel = EV_F32, .channels = 1, .sampler = {.linear = true}};
    image i = make_image(s, t, 0);
    ((float *)(void *)i.host)[0] = 0;
    ((float *)(void *)i.host)[1] = 256;
    float words[LANES][4] = {{0.5f},
                             {0.5f + 1.0f / 256},
                             {0.5f + 1.4f / 256},
                             {0.5f + 1.6f / 256},
                             {1},
                             {1.5f - 0.4f / 256},
                             {1.5f},
                             {0.25f}};
    static const float want[] = {0, 1, 1, 2, 128, 256, 256, 0};
    uint32_t out[LANES][4];
    run(s, "tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%x0}];" FLOATS, i.handle, words, out);
    for (unsigned k = 0; k < sizeof want / sizeof *want; k++) {
        float got;
        memcpy(&got, &out[k][0], 4);
        assert_true(got == want[k]);
    }
    put_image(s, &i);
}

/* ---- rows and types */

static const char *const lines_f32[] = {
    "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%x0, %x1}];" FLOATS,
    "tex.base.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%x0, %x1}];" FLOATS,
    "tex.2d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%t, {%c2, %c3}];" FLOATS,
    "tex.2d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%t, {%c2, %c3}], {0, 0};" FLOATS,
    "tex.level.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%x0, %x1}], 0f40000000;" FLOATS,
    "tex.level.2d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%t, {%c2, %c3}], 1;" FLOATS,
    "tex.grad.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%x0, %x1}], {%x0, %x1}, {%x1, %x0};" FLOATS,
    "tex.grad.2d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%t, {%c2, %c3}], {%x0, %x1}, {%x1, %x0};" FLOATS,
    "tex.2d.v4.f16.f32 {%h0, %h1, %h2, %h3}, [%t, {%x0, %x1}];" HALVES,
    "tex.2d.v4.f16.s32 {%h0, %h1, %h2, %h3}, [%t, {%c2, %c3}];" HALVES,
    "tex.level.2d.v4.f16.f32 {%h0, %h1, %h2, %h3}, [%t, {%x0, %x1}], 0f00000000;" HALVES,
    "tex.level.2d.v4.f16.s32 {%h0, %h1, %h2, %h3}, [%t, {%c2, %c3}], 0;" HALVES,
    "tex.grad.2d.v4.f16.f32 {%h0, %h1, %h2, %h3}, [%t, {%x0, %x1}], {%x0, %x1}, {%x1, %x0};" HALVES,
    "tex.grad.2d.v4.f16.s32 {%h0, %h1, %h2, %h3}, [%t, {%c2, %c3}], {%x0, %x1}, {%x1, %x0};" HALVES,
    "tex.2d.v2.f16x2.f32 {%r0, %r1}, [%t, {%x0, %x1}];",
    "tex.2d.v2.f16x2.s32 {%r0, %r1}, [%t, {%c2, %c3}];",
    "tex.level.2d.v2.f16x2.f32 {%r0, %r1}, [%t, {%x0, %x1}], 0f00000000;",
    "tex.level.2d.v2.f16x2.s32 {%r0, %r1}, [%t, {%c2, %c3}], 0;",
    "tex.grad.2d.v2.f16x2.f32 {%r0, %r1}, [%t, {%x0, %x1}], {%x0, %x1}, {%x1, %x0};",
    "tex.grad.2d.v2.f16x2.s32 {%r0, %r1}, [%t, {%c2, %c3}], {%x0, %x1}, {%x1, %x0};",
};
static const char *const lines_integer[] = {
    "tex.2d.v4.%s.f32 {%%r0, %%r1, %%r2, %%r3}, [%%t, {%%x0, %%x1}];",
    "tex.2d.v4.%s.s32 {%%r0, %%r1, %%r2, %%r3}, [%%t, {%%c2, %%c3}];",
    "tex.level.2d.v4.%s.f32 {%%r0, %%r1, %%r2, %%r3}, [%%t, {%%x0, %%x1}], 0f00000000;",
    "tex.level.2d.v4.%s.s32 {%%r0, %%r1, %%r2, %%r3}, [%%t, {%%c2, %%c3}], 0;",
    "tex.grad.2d.v4.%s.f32 {%%r0, %%r1, %%r2, %%r3}, [%%t, {%%x0, %%x1}], {%%x0, %%x1}, {%%x1, "
    "%%x0};",
    "tex.grad.2d.v4.%s.s32 {%%r0, %%r1, %%r2, %%r3}, [%%t, {%%c2, %%c3}], {%%x0, %%x1}, {%%x1, "
    "%%x0};",
};

/* The same place by floats in the first two words and by integers in the others. */
static void draw_places(session *s, const vm_texture *t, uint32_t words[LANES][4]) {
    for (unsigned k = 0; k < LANES; k++) {
        words[k][2] = draw(s, t->width);
        words[k][3] = draw(s, t->height);
        for (unsigned d = 0; d < 2; d++) {
            float at = (float)words[k][2 + d] + 0.5f;
            memcpy(&words[k][d], &at, 4);
        }
    }
}

static uint32_t bits_of(ev_type type, double v) {
    uint32_t bits = 0;
    if (type == EV_U32)
        return (uint32_t)(int64_t)v;
    ev_type_set(type, &bits, 0, v);
    return bits;
}

static void check_line(session *s, const image *i, const char *line, ev_type type, bool packed) {
    uint32_t words[LANES][4], out[LANES][4];
    draw_places(s, &i->t, words);
    run(s, line, i->handle, words, out);
    for (unsigned k = 0; k < LANES; k++)
        for (unsigned c = 0; c < 4; c++) {
            uint32_t want = bits_of(type, element(i, words[k][2], words[k][3], 0, c));
            uint32_t got = packed ? out[k][c / 2] >> (16 * (c % 2)) & 0xffff : out[k][c];
            if (got != want)
                fail_msg("%s of .%s: lane %u, channel %u: expected %08x, got %08x", line,
                         ev_type_name(i->t.channel), k, c, want, got);
        }
}

static void test_types(void **state) {
    session *s = *state;
    static const ev_type channels[] = {EV_U8,  EV_S8,  EV_U16, EV_S16,
                                       EV_U32, EV_S32, EV_F16, EV_F32};
    for (unsigned n = 0; n < 8 * 3 * 2; n++) {
        vm_texture t = {.width = SIZE,
                        .height = SIZE + 1,
                        .channel = channels[n % 8],
                        .channels = (uint8_t)(1u << n / 8 % 3),
                        .as_float = n >= 24};
        bool floats = ev_type_is_float(t.channel);
        if (t.as_float && (floats || ev_type_bytes(t.channel) == 4))
            continue;
        image i = make_image(s, t, 1);
        for (size_t k = 0; (floats || t.as_float) && k < sizeof lines_f32 / sizeof *lines_f32; k++)
            check_line(s, &i, lines_f32[k], strstr(lines_f32[k], ".f16") ? EV_F16 : EV_F32,
                       strstr(lines_f32[k], "f16x2") != NULL);
        for (size_t k = 0; !floats && !t.as_float && k < 12; k++) {
            char line[200];
            snprintf(line, sizeof line, lines_integer[k / 2], k % 2 ? "s32" : "u32");
            check_line(s, &i, line, EV_U32, false);
        }
        put_image(s, &i);
    }
}

/* Integers index plain memory, outside of which are zeros; offsets move the place. */
static void test_linear_memory(void **state) {
    session *s = *state;
    vm_texture t = {.width = 100, .channel = EV_U32, .channels = 1, .linear = true};
    image i = make_image(s, t, 0);
    const uint32_t *texels = (const uint32_t *)(const void *)i.host;
    uint32_t out[LANES][4];
    int32_t words[LANES][4] = {{0}, {99}, {100}, {-1}, {INT32_MAX}, {INT32_MIN}, {57}};
    run(s, "tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [%t, {%c0}];", i.handle, words, out);
    assert_int_equal(out[0][0], texels[0]);
    assert_int_equal(out[1][0], texels[99]);
    for (unsigned k = 2; k < 6; k++)
        assert_int_equal(out[k][0], 0);
    assert_int_equal(out[6][0], texels[57]);
    run(s, "tex.1d.v4.u32.s32 {%r0, _, _, _}, [%t, %c0], {-3};", i.handle, words, out);
    assert_int_equal(out[6][0], texels[54]);
    assert_int_equal(out[6][1], 7);
    run(s, "@%even tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [%t, {57}];", i.handle, words, out);
    for (unsigned k = 0; k < LANES; k++)
        assert_int_equal(out[k][0], k % 2 ? 7 : texels[57]);
    put_image(s, &i);
}

static void test_gather(void **state) {
    session *s = *state;
    static const char *const types[] = {"u32", "s32", "f32"};
    for (unsigned n = 0; n < 12; n++) {
        vm_texture t = {.width = SIZE,
                        .height = SIZE,
                        .channel = n % 3 == 2 ? EV_F32 : EV_S16,
                        .channels = 4,
                        .sampler.modes = {1, 1, 1}};
        image i = make_image(s, t, 1);
        float words[LANES][4];
        uint32_t out[LANES][4];
        char line[200];
        snprintf(line, sizeof line,
                 "tld4.%c.2d.v4.%s.f32 {%%%c0, %%%c1, %%%c2, %%%c3}, [%%t, "
                 "{%%x0, %%x1}];%s",
                 "rgba"[n / 3], types[n % 3], n % 3 == 2 ? 'f' : 'r', n % 3 == 2 ? 'f' : 'r',
                 n % 3 == 2 ? 'f' : 'r', n % 3 == 2 ? 'f' : 'r', n % 3 == 2 ? FLOATS : "");
        for (unsigned k = 0; k < LANES; k++)
            for (unsigned d = 0; d < 2; d++)
                words[k][d] = (float)draw(s, 600) / 100;
        run(s, line, i.handle, words, out);
        for (unsigned k = 0; k < LANES; k++) {
            int64_t x = (int64_t)floor((double)words[k][0] - 0.5);
            int64_t y = (int64_t)floor((double)words[k][1] - 0.5);
            const int64_t at[4][2] = {{x, y + 1}, {x + 1, y + 1}, {x + 1, y}, {x, y}};
            for (unsigned c = 0; c < 4; c++) {
                double v = sample(&i, at[c][0], at[c][1], 0, n / 3);
                assert_int_equal(out[k][c], bits_of(n % 3 == 2 ? EV_F32 : EV_U32, v));
            }
        }
        put_image(s, &i);
    }
}

/* The guide's table: face, and the two coordinates on it, of a direction along each axis. */
static void test_cubes(void **state) {
    session *s = *state;
    vm_texture t = {
        .width = 4, .height = 4, .layers = 12, .cube = true, .channel = EV_S32, .channels = 1};
    image i = make_image(s, t, 0);
    for (unsigned k = 0; k < 12 * 16; k++)
        ((int32_t *)(void *)i.host)[k] = (int32_t)k;
    /* s = 0.5 and t = -0.25 of the face's own axes: column 3, row 1 */
    static const float directions[6][3] = {{2, 0.5f, -1}, {-2, 0.5f, 1}, {1, 2, -0.5f},
                                           {1, -2, 0.5f}, {1, 0.5f, 2},  {-1, 0.5f, -2}};
    float words[LANES][4] = {{0}};
    uint32_t out[LANES][4], layer = 1;
    for (unsigned k = 0; k < LANES; k++) {
        memcpy(words[k] + 1, directions[k % 6], sizeof directions[0]);
        memcpy(words[k], &layer, 4);
    }
    run(s, "tex.acube.v4.s32.f32 {%r0, %r1, %r2, %r3}, [%t, {%c0, %x1, %x2, %x3}];", i.handle,
        words, out);
    for (unsigned k = 0; k < LANES; k++)
        assert_int_equal(out[k][0], (6 + k % 6) * 16 + 1 * 4 + 3);
    put_image(s, &i);
    t.layers = 6;
    i = make_image(s, t, 0);
    for (unsigned k = 0; k < 6 * 16; k++)
        ((int32_t *)(void *)i.host)[k] = (int32_t)k;
    run(s, "tex.cube.v4.s32.f32 {%r0, %r1, %r2, %r3}, [%t, {%x1, %x2, %x3, %x3}];", i.handle, words,
        out);
    for (unsigned k = 0; k < LANES; k++)
        assert_int_equal(out[k][0], k % 6 * 16 + 1 * 4 + 3);
    put_image(s, &i);
}

/* ---- questions */

static void test_questions(void **state) {
    session *s = *state;
    vm_texture t = {.width = 5,
                    .height = 7,
                    .layers = 3,
                    .channel = EV_U8,
                    .channels = 4,
                    .as_float = true,
                    .sampler = {.linear = true, .normalised = true, .modes = {0, 1, 2}}};
    static const struct {
        const char *query;
        uint32_t answer;
    } rows[] = {{"width", 5},
                {"height", 7},
                {"depth", 0},
                {"array_size", 3},
                {"num_samples", 1},
                {"num_mipmap_levels", 1},
                {"channel_order", 0x10b5},
                {"channel_data_type", 0x10d2},
                {"normalized_coords", 1},
                {"filter_mode", 1},
                {"addr_mode_2", 2},
                {"level.width", 5}};
    image i = make_image(s, t, 0);
    char line[100];
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        bool level = strchr(rows[k].query, '.') != NULL;
        snprintf(line, sizeof line, "txq.%s.b32 %%r0, [%%t]%s;", rows[k].query, level ? ", 0" : "");
        assert_int_equal(ask(s, head, line, i.handle), rows[k].answer);
    }
    put_image(s, &i);
}

/* ---- variables of the opaque types */

/* What the host binds to a variable is its contents. */
static void test_variables(void **state) {
    session *s = *state;
    static const char before[] = ".version 8.5\n.target sm_90, texmode_unified\n.address_size 64\n"
                                 ".global .texref first;\n.visible .global .texref second;\n";
    vm_texture t = {.width = 4, .channel = EV_U32, .channels = 1};
    image i = make_image(s, t, 0);
    static const char *const lines[] = {
        "tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [second, {%c0}];",
        "mov.u64 %d0, second; tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [%d0, {%c0}];",
    };
    for (size_t k = 0; k < 2; k++) {
        vm_module *m = load_with(s, before, lines[k]);
        vm_variable v;
        assert_true(vm_module_variable(m, "second", &v) && v.bytes == 8);
        vm_module_fill(m, &v, &i.handle);
        params p = {0};
        memset(buffer(s, LANES * 16, VM_BUFFER_IN, &p.in), 0, LANES * 16);
        const uint32_t *out = buffer(s, LANES * 16, VM_BUFFER_OUT, &p.out);
        rig_run_well(s->memory, m, &p, lines[k]);
        assert_int_equal(out[0], *(const uint32_t *)(const void *)i.host);
        vm_module_free(m);
    }
    vm_module *m = load_with(s, before, "tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [first, {%c0}];");
    params p = {0};
    memset(buffer(s, LANES * 16, VM_BUFFER_IN, &p.in), 0, LANES * 16);
    (void)buffer(s, LANES * 16, VM_BUFFER_OUT, &p.out);
    vm_result r = rig_launch(s->memory, m, LANES, &p, 0);
    assert_true(!r.ok && r.trap.kind == VM_TRAP_BAD_TEXTURE); /* nothing is bound to it */
    vm_module_free(m);
    put_image(s, &i);
}

/* Samplers of their own; the texture's is not used. */
static void test_samplers(void **state) {
    session *s = *state;
    static const char before[] =
        ".version 8.5\n.target sm_90, texmode_independent\n.address_size 64\n"
        ".global .samplerref near = {addr_mode_0 = clamp_to_border, filter_mode = nearest, "
        "force_unnormalized_coords = 1};\n"
        ".global .samplerref lines = { filter_mode = linear, addr_mode_0 = wrap };\n"
        ".global .samplerref counted = { filter_mode = linear, addr_mode_0 = wrap, "
        "force_unnormalized_coords = 1 };\n";
    vm_texture t = {.width = 2, .channel = EV_F32, .channels = 1};
    image i = make_image(s, t, 0);
    ((float *)(void *)i.host)[0] = 1;
    ((float *)(void *)i.host)[1] = 3;
    float words[LANES][4] = {{1.25f}, {7}, {0}};
    uint32_t out[LANES][4];
    run_with(s, before, "tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, near, {%x0}];" FLOATS,
             i.handle, words, out);
    assert_int_equal(out[0][0], 0x40400000);
    assert_int_equal(out[1][0], 0);
    run_with(s, before,
             "mov.u64 %d0, lines; tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, %d0, {%x0}];" FLOATS,
             i.handle, words, out);
    assert_int_equal(out[0][0], 0x3f800000); /* 0.25 of 2 is the middle of the first */
    assert_int_equal(out[2][0], 0x40000000); /* between the last and the first */
    assert_int_equal(ask(s, before, "txq.addr_mode_0.b32 %r0, [near];", i.handle), 3);
    assert_int_equal(ask(s, before, "txq.force_unnormalized_coords.b32 %r0, [near];", i.handle), 1);
    assert_int_equal(ask(s, before,
                         "mov.u64 %d0, near; istypep.samplerref %p, %d0; "
                         "selp.u32 %r0, 1, 0, %p;",
                         i.handle),
                     1);
    put_image(s, &i);
    /* A sampler of its own has no filter for integers, and no repetition where coordinates count
     * elements. */
    t.channel = EV_U32;
    i = make_image(s, t, 0);
    ((uint32_t *)(void *)i.host)[0] = 1;
    ((uint32_t *)(void *)i.host)[1] = 4;
    float counts[LANES][4] = {{1}, {2.5f}};
    run_with(s, before, "tex.1d.v4.u32.f32 {%r0, %r1, %r2, %r3}, [%t, counted, {%x0}];", i.handle,
             counts, out);
    assert_int_equal(out[0][0], 4);
    assert_int_equal(out[1][0], 4);
    put_image(s, &i);
}

/* A cube has faces. */
static void test_cube_without_faces(void **state) {
    session *s = *state;
    ev_error why = {EV_OK, ""};
    uint64_t address = 0, handle = 0;
    buffer(s, 64, VM_BUFFER_IN, &address);
    vm_texture t = {.address = address,
                    .width = 4,
                    .height = 4,
                    .row_bytes = 16,
                    .slice_bytes = 64,
                    .cube = true,
                    .channel = EV_F32,
                    .channels = 1};
    assert_int_equal(vm_texture_new(s->memory, &t, &handle, &why), EV_BAD);
    assert_non_null(strstr(why.text, "6 faces of a cube"));
}

/* A texture as a parameter of the kernel. */
static void test_parameter(void **state) {
    session *s = *state;
    vm_texture t = {.width = 4, .channel = EV_U32, .channels = 1};
    image i = make_image(s, t, 0);
    vm_module *m = rig_load_text(
        ".version 8.5\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .texref t, .param .u64 out) {\n.reg .b32 %r<4>; .reg .b64 %d;\n"
        "ld.param.u64 %d, [out];\ntex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [t, {2}];\n"
        "st.global.u32 [%d], %r0;\nret;\n}\n");
    uint64_t p[2] = {i.handle, 0};
    const uint32_t *out = buffer(s, 4, VM_BUFFER_OUT, &p[1]);
    rig_run_well(s->memory, m, p, "a parameter");
    assert_int_equal(*out, ((const uint32_t *)(const void *)i.host)[2]);
    vm_module_free(m);
    put_image(s, &i);
}

/* ---- traps */

static void test_traps(void **state) {
    session *s = *state;
    uint32_t words[LANES][4] = {{0}};
    vm_texture t = {.width = 4, .channel = EV_U32, .channels = 1};
    image i = make_image(s, t, 0);
    const vm_trap_kind bad = VM_TRAP_BAD_TEXTURE;
    expect_trap(s, TEX1, 0, words, bad, "0 is no texture");
    expect_trap(s, TEX1, i.handle + 1, words, bad, "is no texture, sampler or surface");
    expect_trap(s, TEX1, i.t.address, words, bad, "is no texture");
    expect_trap(s, "tex.2d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [%t, {%c0, %c0}];", i.handle, words,
                bad, "another geometry");
    expect_trap(s, "tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%t, {%c0}];", i.handle, words, bad,
                "floats from integers");
    expect_trap(s, "suld.b.1d.b32.trap %r0, [%t, {%c0}];", i.handle, words, bad,
                "a texture where a surface");
    expect_trap(s, "suq.width.b32 %r0, [%t];", i.handle, words, bad, "a texture where a surface");
    expect_trap(s, "@!%even mov.u64 %t, 5;" TEX1, i.handle, words, bad, "0x5 is no texture");
    uint64_t old = i.handle;
    put_image(s, &i);
    expect_trap(s, TEX1, old, words, bad, "is no texture");
    t.linear = true;
    i = make_image(s, t, 0);
    assert_int_not_equal(i.handle, old);
    expect_trap(s, "tex.1d.v4.u32.f32 {%r0, %r1, %r2, %r3}, [%t, {%x0}];", i.handle, words, bad,
                "plain memory");
    put_image(s, &i);
}

/* As text again, for profiles. */
static void test_text(void **state) {
    session *s = *state;
    vm_module *m = load_with(s, head, "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%x0, %x1}];");
    bool found = false;
    for (uint32_t i = 0; i < m->insn_count; i++) {
        char *text = vm_module_disassemble(m, i);
        found |= strcmp(text, "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%x0, %x1}];") == 0;
        vm_insn_info info;
        vm_module_info(m, i, &info);
        if (strncmp(text, "tex", 3) == 0)
            assert_true(info.is_load && info.use_count == 3 && info.def_count == 4);
        free(text);
    }
    assert_true(found);
    vm_module_free(m);
}

/* Runs last. */
static void test_every_row(void **state) {
    static const uint8_t shapes[] = {PTX_S_TEX, PTX_S_TLD4, PTX_S_TXQ, PTX_S_ISTYPEP};
    check_every_row(*state, shapes, sizeof shapes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filters),        cmocka_unit_test(test_wrap_is_clamp),
        cmocka_unit_test(test_integer_border), cmocka_unit_test(test_weights),
        cmocka_unit_test(test_types),          cmocka_unit_test(test_linear_memory),
        cmocka_unit_test(test_gather),         cmocka_unit_test(test_cubes),
        cmocka_unit_test(test_questions),      cmocka_unit_test(test_variables),
        cmocka_unit_test(test_samplers),       cmocka_unit_test(test_cube_without_faces),
        cmocka_unit_test(test_parameter),      cmocka_unit_test(test_traps),
        cmocka_unit_test(test_text),           cmocka_unit_test(test_every_row),
    };
    return cmocka_run_group_tests(tests, session_open, session_close);
}
