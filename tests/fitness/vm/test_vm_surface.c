/* Surfaces: loads, stores and reductions of every row of ptx_ops.def with its types, in and outside
 * their bounds, what traps, and textures that the host asks for in error. */
#include "fitness/vm/vm_jobs.h"
#include "tests/fitness/vm/texture_rig.h"

/* ---- surfaces */

typedef struct surface_row {
    const char *geometry, *coordinates;
    unsigned dimensions;
    bool layered;
} surface_row;

static const surface_row surfaces[] = {
    {"1d", "{%c0}", 1, false},
    {"2d", "{%c0, %c1}", 2, false},
    {"3d", "{%c0, %c1, %c2, %c2}", 3, false},
    {"a1d", "{%c2, %c0}", 1, true},
    {"a2d", "{%c2, %c0, %c1, %c1}", 2, true},
};

static image make_surface(session *s, const surface_row *row, ev_type channel, unsigned channels) {
    vm_texture t = {.width = 8,
                    .height = row->dimensions > 1 ? 5 : 0,
                    .depth = row->dimensions > 2 ? 3 : 0,
                    .layers = row->layered ? 3 : 0,
                    .channel = channel,
                    .channels = (uint8_t)channels,
                    .surface = true};
    return make_image(s, t, 2);
}

/* Where an access of `bytes` begins; NULL: outside. */
static uint8_t *place(const image *i, const surface_row *row, const int32_t words[4],
                      unsigned bytes, bool clamps) {
    const vm_texture *t = &i->t;
    int64_t most[3] = {(int64_t)t->width * (int64_t)ev_type_bytes(t->channel) * t->channels - bytes,
                       row->dimensions > 1 ? t->height - 1 : INT32_MAX,
                       row->dimensions > 2 ? t->depth - 1 : INT32_MAX};
    if (row->layered)
        most[2] = t->layers - 1;
    int64_t at[3] = {words[0], row->dimensions > 1 ? words[1] : 0,
                     row->dimensions > 2 || row->layered ? words[2] : 0};
    for (unsigned d = 0; d < 3; d++) {
        if (!clamps && (at[d] < 0 || at[d] > most[d]))
            return NULL;
        at[d] = at[d] < 0 ? 0 : at[d];
        at[d] = at[d] > most[d] ? most[d] : at[d];
    }
    return i->host + at[2] * (int64_t)t->slice_bytes + at[1] * (int64_t)t->row_bytes + at[0];
}

/* Coordinates, some outside; the first is a multiple of `bytes`. No two lanes have the same. */
static void draw_coordinates(session *s, const surface_row *row, unsigned bytes, bool inside,
                             int32_t words[LANES][4]) {
    unsigned columns = 128 / bytes;
    for (unsigned k = 0; k < LANES; k++) {
        words[k][0] = (int32_t)(draw(s, inside ? columns : columns + 2) * bytes) -
                      (inside ? 0 : (int32_t)bytes);
        words[k][1] = (int32_t)draw(s, inside ? 5 : 8) - (inside ? 0 : 2);
        words[k][2] = (int32_t)draw(s, inside || row->layered ? 3 : 6) - (inside ? 0 : 1);
        if (row->layered && words[k][2] < 0)
            words[k][2] = 0;
        words[k][3] = (int32_t)(0x01020304u * (k + 1));
    }
}

typedef struct access_type {
    const char *name, *values; /* of the values, for a load and a store */
    unsigned bytes;
    const char *after, *before;
} access_type;

static const access_type accesses[] = {
    {"b8", "{%h0}", 1, "cvt.u32.u16 %r0, %h0;", "cvt.u16.u32 %h0, %c3;"},
    {"b16", "{%h0}", 2, "cvt.u32.u16 %r0, %h0;", "cvt.u16.u32 %h0, %c3;"},
    {"b32", "{%r0}", 4, "", "mov.b32 %r0, %c3;"},
    {"b32", "%f0", 4, "mov.b32 %r0, %f0;", "mov.b32 %f0, %c3;"},
    {"b64", "{%d0}", 8, "mov.b64 {%r0, %r1}, %d0;", "mov.b64 %d0, {%c3, %c3};"},
    {"v2.b8", "{%r0, %r1}", 2, "", "mov.b32 %r0, %c3; shr.u32 %r1, %c3, 8;"},
    {"v2.b32", "{%r0, %r1}", 8, "", "mov.b32 %r0, %c3; mov.b32 %r1, %c3;"},
    {"v2.b64", "{%d0, %d1}", 16, "mov.b64 {%r0, %r1}, %d0; mov.b64 {%r2, %r3}, %d1;",
     "mov.b64 %d0, {%c3, %c3}; mov.b64 %d1, {%c3, %c3};"},
    {"cg.v4.b32", "{%r0, %r1, %r2, %r3}", 16, "",
     "mov.b32 %r0, %c3; mov.b32 %r1, %c3; mov.b32 %r2, %c3; mov.b32 %r3, %c3;"},
};

static void check_loads(session *s, const surface_row *row, const access_type *a, bool clamps) {
    image i = make_surface(s, row, EV_U32, 4);
    int32_t words[LANES][4];
    uint32_t out[LANES][4];
    char line[300];
    draw_coordinates(s, row, a->bytes, false, words);
    snprintf(line, sizeof line, "suld.b.%s.%s.%s %s, [%%t, %s]; %s", row->geometry, a->name,
             clamps ? "clamp" : "zero", a->values, row->coordinates, a->after);
    run(s, line, i.handle, words, out);
    for (unsigned k = 0; k < LANES; k++) {
        const uint8_t *at = place(&i, row, words[k], a->bytes, clamps);
        uint8_t want[16] = {0}, got[16] = {0};
        memcpy(got, out[k], a->bytes);
        if (strcmp(a->name, "v2.b8") == 0)
            got[1] = (uint8_t)out[k][1];
        if (at)
            memcpy(want, at, a->bytes);
        if (memcmp(got, want, a->bytes) != 0)
            fail_msg("%s: lane %u at %d, %d, %d", line, k, words[k][0], words[k][1], words[k][2]);
    }
    put_image(s, &i);
}

/* One lane writes, since lanes might meet. */
static void check_stores(session *s, const surface_row *row, const access_type *a, bool zero) {
    image i = make_surface(s, row, EV_U32, 4);
    int32_t words[LANES][4];
    uint32_t out[LANES][4];
    char line[600];
    uint64_t all = vm_memory_bytes(s->memory, i.t.address);
    draw_coordinates(s, row, a->bytes, !zero, words);
    for (unsigned k = 1; k < LANES; k++)
        memcpy(words[k], words[0], sizeof words[0]);
    snprintf(line, sizeof line, "%s sust.b.%s.%s.%s [%%t, %s], %s;", a->before, row->geometry,
             a->name, zero ? "zero" : "trap", row->coordinates, a->values);
    uint8_t *want = malloc(all), value[16];
    assert_non_null(want);
    memcpy(want, i.host, all);
    for (unsigned k = 0; k < 16; k += 4)
        memcpy(value + k, &words[0][3], 4);
    uint8_t *at = place(&i, row, words[0], a->bytes, false);
    if (at)
        memcpy(want + (at - i.host), value, a->bytes);
    run(s, line, i.handle, words, out);
    assert_memory_equal(i.host, want, all);
    free(want);
    put_image(s, &i);
}

static void test_surfaces(void **state) {
    session *s = *state;
    for (size_t g = 0; g < sizeof surfaces / sizeof *surfaces; g++)
        for (size_t k = 0; k < sizeof accesses / sizeof *accesses; k++)
            for (unsigned mode = 0; mode < 2; mode++) {
                check_loads(s, &surfaces[g], &accesses[k], mode);
                check_stores(s, &surfaces[g], &accesses[k], mode);
            }
}

/* By element: converted to the surface's format. */
static void test_formatted(void **state) {
    session *s = *state;
    image i = make_surface(s, &surfaces[1], EV_F16, 2);
    uint32_t out[LANES][4], words[LANES][4];
    for (unsigned k = 0; k < LANES; k++) {
        words[k][0] = k % 8;
        words[k][1] = k / 8;
        float v = (float)k * 1.5f;
        memcpy(&words[k][2], &v, 4);
    }
    run(s, "sust.p.2d.v2.b32.trap [%t, {%c0, %c1}], {%c2, %x2};", i.handle, words, out);
    for (unsigned k = 0; k < LANES; k++)
        for (unsigned c = 0; c < 2; c++)
            assert_true(element(&i, words[k][0], words[k][1], 0, c) == k * 1.5);
    put_image(s, &i);
    i = make_surface(s, &surfaces[1], EV_U8, 4);
    run(s, "sust.p.2d.v4.b32.trap [%t, {%c0, %c1}], {%c0, %c1, 258, 9};", i.handle, words, out);
    for (unsigned k = 0; k < LANES; k++)
        for (unsigned c = 0; c < 4; c++)
            assert_int_equal(element(&i, k % 8, k / 8, 0, c),
                             ((uint32_t[]){k % 8, k / 8, 2, 9})[c]);
    put_image(s, &i);
}

typedef struct reduction {
    const char *line;
    uint64_t before, after; /* of 32 lanes with the values 100 + lane */
    unsigned bytes;
} reduction;

static void test_reductions(void **state) {
    session *s = *state;
    static const reduction rows[] = {
        {"sured.b.add.1d.u32.trap [%t, {16}], %c3;", 5, 5 + 3200 + 496, 4},
        {"sured.b.add.1d.s32.trap [%t, {16}], %c3;", 0xffffffff, 3200 + 495, 4},
        {"cvt.u64.u32 %d0, %c3; sured.b.add.1d.u64.trap [%t, {16}], %d0;", 0xffffffff,
         0xffffffffu + 3200ull + 496, 8},
        {"sured.b.min.1d.u32.trap [%t, {16}], %c3;", 500, 100, 4},
        {"sured.b.min.1d.s32.trap [%t, {16}], %c3;", 0xffffffff, 0xffffffff, 4},
        {"cvt.u64.u32 %d0, %c3; sured.b.min.1d.u64.trap [%t, {16}], %d0;", 1ull << 40, 100, 8},
        {"cvt.u64.u32 %d0, %c3; sured.b.min.1d.s64.trap [%t, {16}], %d0;", UINT64_MAX, UINT64_MAX,
         8},
        {"sured.b.max.1d.u32.trap [%t, {16}], %c3;", 7, 131, 4},
        {"sured.b.max.1d.s32.trap [%t, {16}], %c3;", 0xffffffff, 131, 4},
        {"cvt.u64.u32 %d0, %c3; sured.b.max.1d.u64.trap [%t, {16}], %d0;", UINT64_MAX, UINT64_MAX,
         8},
        {"cvt.u64.u32 %d0, %c3; sured.b.max.1d.s64.trap [%t, {16}], %d0;", UINT64_MAX, 131, 8},
        {"sured.b.and.1d.b32.trap [%t, {16}], %c3;", 0xffffffff, 0, 4},
        {"sured.b.or.1d.b32.zero [%t, {16}], %c3;", 0x80000000, 0x800000ff, 4},
        {"sured.b.or.1d.b32.zero [%t, {-16}], %c3;", 3, 3, 4},
    };
    uint32_t words[LANES][4] = {{0}};
    for (unsigned k = 0; k < LANES; k++)
        words[k][3] = 100 + k;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        image i = make_surface(s, &surfaces[0], EV_U32, 4);
        params p = {.handle = i.handle};
        memcpy(buffer(s, LANES * 16, VM_BUFFER_IN, &p.in), words, sizeof words);
        (void)buffer(s, LANES * 16, VM_BUFFER_OUT, &p.out);
        memcpy(i.host + 16, &rows[r].before, 8);
        vm_module *m = load_with(s, head, rows[r].line);
        rig_run_well(s->memory, m, &p, rows[r].line);
        vm_module_free(m);
        if (memcmp(i.host + 16, &rows[r].after, rows[r].bytes) != 0)
            fail_msg("%s", rows[r].line);
        put_image(s, &i);
    }
}

static void test_questions(void **state) {
    session *s = *state;
    vm_texture t = {.width = 9, .channel = EV_F16, .channels = 2, .surface = true};
    image i = make_image(s, t, 0);
    assert_int_equal(ask(s, head, "suq.width.b32 %r0, [%t];", i.handle), 9);
    assert_int_equal(ask(s, head, "suq.channel_data_type.b32 %r0, [%t];", i.handle), 0x10dd);
    assert_int_equal(ask(s, head, "suq.memory_layout.b32 %r0, [%t];", i.handle), 0);
    assert_int_equal(ask(s, head, "istypep.surfref %p, %t; selp.u32 %r0, 1, 0, %p;", i.handle), 1);
    assert_int_equal(ask(s, head, "istypep.texref %p, %t; selp.u32 %r0, 1, 0, %p;", i.handle), 0);
    assert_int_equal(ask(s, head, "istypep.texref %p, %t; selp.u32 %r0, 1, 0, %p;", 77), 0);
    put_image(s, &i);
}

/* ---- jobs */

/* Each block copies a row of the texture to the surface. `shift`: from the row behind its own. */
static bool run_jobs(session *s, uint64_t texture, uint64_t surface, bool shift, bool *spread) {
    vm_module *m =
        rig_load_text(".version 8.5\n.target sm_90\n.address_size 64\n"
                      ".visible .entry k(.param .u64 t, .param .u64 s, .param .u32 shift) {\n"
                      ".reg .b64 %t, %s; .reg .b32 %x, %y, %z, %r<4>;\n"
                      "ld.param.u64 %t, [t]; ld.param.u64 %s, [s]; ld.param.u32 %z, [shift];\n"
                      "mov.u32 %x, %tid.x; mov.u32 %y, %ctaid.x; add.u32 %z, %y, %z;\n"
                      "tex.2d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [%t, {%x, %z}]; shl.b32 %x, %x, 2;\n"
                      "sust.b.2d.b32.trap [%s, {%x, %y}], %r0;\nret;\n}\n");
    struct {
        uint64_t texture, surface;
        uint32_t shift;
    } p = {texture, surface, shift};
    const vm_launch launch = {.module = m,
                              .entry = vm_module_find(m, "k"),
                              .grid = {16, 1, 1},
                              .block = {LANES, 1, 1},
                              .params = &p};
    vm_result r;
    ev_error err;
    assert_int_equal(vm_run_by_jobs(s->memory, &launch, 4, &r, spread, &err), EV_OK);
    vm_module_free(m);
    return r.ok;
}

/* Blocks that share nothing are spread. Where one block's texture is another's surface, the result
 * is that of the blocks in their order. */
static void test_jobs(void **state) {
    session *s = *state;
    const vm_texture t = {.width = LANES, .height = 16, .channel = EV_U32, .channels = 1};
    image from = make_image(s, t, 0);
    vm_texture other = t;
    other.surface = true;
    image to = make_image(s, other, 0);
    bool spread = false;
    assert_true(run_jobs(s, from.handle, to.handle, false, &spread));
    assert_true(spread);
    assert_memory_equal(from.host, to.host, LANES * 16 * 4);
    other.address = from.t.address;
    other.row_bytes = from.t.row_bytes;
    ev_error err;
    uint64_t same;
    assert_int_equal(vm_texture_new(s->memory, &other, &same, &err), EV_OK);
    assert_true(run_jobs(s, from.handle, same, true, &spread));
    assert_memory_equal(from.host, to.host + LANES * 4, LANES * 15 * 4);
    vm_memory_clear(s->memory);
}

/* ---- traps */

static void test_surface_traps(void **state) {
    session *s = *state;
    int32_t words[LANES][4] = {{0}};
    image i = make_surface(s, &surfaces[1], EV_U32, 1);
    expect_trap(s, TEX1, i.handle, words, VM_TRAP_BAD_TEXTURE, "a surface where a texture");
    words[9][0] = 32;
    expect_trap(s, "suld.b.2d.b32.trap %r0, [%t, {%c0, %c1}];", i.handle, words,
                VM_TRAP_OUT_OF_BOUNDS,
                "coordinates (32, 0) outside a surface of 8 x 5, of elements of 4 bytes");
    expect_trap(s, "sust.b.2d.b32.trap [%t, {%c0, %c1}], 1;", i.handle, words,
                VM_TRAP_OUT_OF_BOUNDS, "thread (9, 0, 0)");
    words[9][0] = 2;
    expect_trap(s, "suld.b.2d.b32.trap %r0, [%t, {%c0, %c1}];", i.handle, words, VM_TRAP_MISALIGNED,
                "an access of 4 bytes");
    expect_trap(s, "sust.b.2d.b32.trap [%t, {0, 0}], %i;", i.handle, words, VM_TRAP_RACE_GLOBAL,
                "different values");
    put_image(s, &i);
}

/* Elements that the launch writes, and elements that nobody wrote. */
static void test_shadow(void **state) {
    session *s = *state;
    uint32_t words[LANES][4] = {{0}};
    ev_error err = {0};
    vm_texture t = {.width = 64, .channel = EV_U32, .channels = 1};
    image i = make_image(s, t, 0);
    char line[300];
    snprintf(line, sizeof line, "mov.u64 %%d0, %llu; st.global.u32 [%%d0], 5;\n%s",
             (unsigned long long)i.t.address, TEX1);
    expect_trap(s, line, i.handle, words, VM_TRAP_READ_ONLY_PATH, "(a texture) of what warp 0");
    snprintf(line, sizeof line, "%s bar.sync 0; mov.u64 %%d0, %llu;\nst.global.u32 [%%d0], 5;",
             TEX1, (unsigned long long)i.t.address);
    expect_trap(s, line, i.handle, words, VM_TRAP_READ_ONLY_PATH, "a texture) in this launch");
    put_image(s, &i);
    (void)buffer(s, 256, VM_BUFFER_SCRATCH, &t.address);
    uint64_t handle;
    assert_int_equal(vm_texture_new(s->memory, &t, &handle, &err), EV_OK);
    expect_trap(s, TEX1, handle, words, VM_TRAP_UNINITIALISED, "nothing has written");
    t.surface = true;
    assert_int_equal(vm_texture_new(s->memory, &t, &handle, &err), EV_OK);
    expect_trap(s, "suld.b.1d.b32.trap %r0, [%t, {%c0}];", handle, words, VM_TRAP_UNINITIALISED,
                "nothing has written");
    (void)buffer(s, 256, VM_BUFFER_IN, &t.address);
    assert_int_equal(vm_texture_new(s->memory, &t, &handle, &err), EV_OK);
    expect_trap(s, "sust.b.1d.b32.trap [%t, {%c0}], 1;", handle, words, VM_TRAP_READ_ONLY_WRITE,
                "no output");
    vm_memory_clear(s->memory);
}

/* What the host asks for in error. */
static void test_bad_textures(void **state) {
    session *s = *state;
    ev_error err = {0};
    uint64_t handle, at;
    (void)buffer(s, 1000, VM_BUFFER_INOUT, &at);
    const vm_texture good = {.address = at,
                             .width = 10,
                             .height = 10,
                             .row_bytes = 40,
                             .channel = EV_F32,
                             .channels = 1};
    assert_int_equal(vm_texture_new(s->memory, &good, &handle, &err), EV_OK);
    vm_texture bad[9];
    for (unsigned k = 0; k < 9; k++)
        bad[k] = good;
    bad[0].channel = EV_F64;
    bad[1].channels = 3;
    bad[2].width = 0;
    bad[3].row_bytes = 39;
    bad[4].row_bytes = 36;
    bad[5].height = 30;
    bad[6].address += 2;
    bad[7].address += 1 << 20;
    bad[8].cube = true, bad[8].layers = 5;
    for (unsigned k = 0; k < 9; k++)
        if (vm_texture_new(s->memory, &bad[k], &handle, &err) != EV_BAD)
            fail_msg("texture %u was made", k);
    assert_false(vm_texture_release(s->memory, 3));
    vm_memory_clear(s->memory);
}

/* Runs last. */
static void test_every_row(void **state) {
    static const uint8_t shapes[] = {PTX_S_SULD, PTX_S_SUST, PTX_S_SUSTP, PTX_S_SURED, PTX_S_SUQ};
    check_every_row(*state, shapes, sizeof shapes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_surfaces),      cmocka_unit_test(test_formatted),
        cmocka_unit_test(test_reductions),    cmocka_unit_test(test_questions),
        cmocka_unit_test(test_surface_traps), cmocka_unit_test(test_shadow),
        cmocka_unit_test(test_bad_textures),  cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_every_row),
    };
    return cmocka_run_group_tests(tests, session_open, session_close);
}
