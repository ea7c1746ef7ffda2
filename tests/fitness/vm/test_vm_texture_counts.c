/* What fetches of textures count: requests, sectors and bytes, at borders and inside, worked out by
 * hand. The observer is told the same. */
#include "tests/fitness/vm/texture_rig.h"

#define WIDTH 1024 /* elements of 4 bytes: 8 to a sector */

typedef struct seen {
    const vm_module *module;
    uint64_t requests, sectors;
    unsigned most; /* sectors of one event */
} seen;

static void on_batch(void *context, const vm_batch *batch) {
    seen *s = context;
    for (size_t i = 0; i < batch->count; i++) {
        const vm_event *e = &batch->events[i];
        vm_insn_info info;
        vm_module_info(s->module, e->pc + e->count - 1, &info);
        if (strncmp(info.name, "tex.", 4) != 0 || e->sectors == 0)
            continue;
        s->requests++;
        s->sectors += e->sectors;
        s->most = e->sectors > s->most ? e->sectors : s->most;
        for (unsigned a = 0; a < e->sectors; a++)
            for (unsigned b = 0; b < a; b++)
                assert_true(batch->sectors[e->first_sector + a] !=
                            batch->sectors[e->first_sector + b]);
    }
}

/* Beside the fetch, the kernel of texture_rig.h loads 16 bytes a lane. */
#define OTHER_BYTES (LANES * 16)
#define OTHER_SECTORS (OTHER_BYTES / 32)

static vm_counters count(session *s, const image *i, const char *line, const void *words,
                         unsigned isa, seen *told) {
    params p = {.handle = i->handle};
    ev_error err;
    vm_result r;
    memcpy(buffer(s, LANES * 16, VM_BUFFER_IN, &p.in), words, LANES * 16);
    (void)buffer(s, LANES * 16, VM_BUFFER_OUT, &p.out);
    vm_module *m = load_with(s, head, line);
    vm_module_set_isa(m, isa);
    *told = (seen){.module = m};
    vm_observer observer = {.context = told, .batch = on_batch};
    vm_launch launch = {.module = m,
                        .entry = vm_module_find(m, "k"),
                        .grid = {1, 1, 1},
                        .block = {LANES, 1, 1},
                        .params = &p,
                        .checks = VM_CHECK_ALL,
                        .observer = &observer};
    assert_int_equal(vm_run(s->memory, &launch, &r, &err), EV_OK);
    if (!r.ok)
        fail_msg("%s: %s", line, r.trap.message);
    vm_result plain = rig_launch(s->memory, m, LANES, &p, 0);
    assert_memory_equal(&plain.counters, &r.counters, sizeof plain.counters);
    vm_module_free(m);
    assert_true(vm_memory_release(s->memory, p.in) && vm_memory_release(s->memory, p.out));
    return r.counters;
}

typedef struct row {
    const char *what;
    uint8_t mode;
    bool linear, normalised;
    float x, x_step, y; /* of lane i: x + i * x_step */
    unsigned requests, sectors, bytes;
} row;

/* A lane at element k reads k - 1 and k at the coordinate k, and k alone without a filter. Rows
 * stand WIDTH elements apart, at multiples of a sector. */
static void check_rows(session *s, const row *rows, size_t n, const char *line, bool is_flat) {
    for (size_t k = 0; k < n; k++) {
        const row *r = &rows[k];
        vm_texture t = {.width = WIDTH,
                        .height = is_flat ? 16 : 0,
                        .channel = EV_F32,
                        .channels = 1,
                        .sampler = {.linear = r->linear,
                                    .normalised = r->normalised,
                                    .modes = {r->mode, r->mode, r->mode}}};
        image i = make_image(s, t, 0);
        float words[LANES][4] = {{0}};
        for (unsigned lane = 0; lane < LANES; lane++) {
            words[lane][0] = r->x + (float)lane * r->x_step;
            words[lane][1] = r->y;
        }
        for (unsigned isa = 0; isa < VM_ISA_COUNT; isa++) {
            seen told;
            if (!vm_isa_supported(isa))
                continue;
            vm_counters c = count(s, &i, line, words, isa, &told);
            uint64_t requests = c.global_load_requests - 1;
            uint64_t sectors = c.global_load_sectors - OTHER_SECTORS;
            uint64_t bytes = c.global_load_bytes - OTHER_BYTES;
            if (requests != r->requests || sectors != r->sectors || bytes != r->bytes)
                fail_msg("%s: %u requests, %u sectors, %u bytes, not %u, %u, %u", r->what,
                         (unsigned)requests, (unsigned)sectors, (unsigned)bytes, r->requests,
                         r->sectors, r->bytes);
            assert_int_equal(told.requests, r->requests);
            assert_int_equal(told.sectors, r->sectors);
            assert_true(told.most <= 40);
        }
        put_image(s, &i);
    }
}

static void a_row_of_elements(void **state) {
    const uint8_t clamp = PTX_ADDRESS_CLAMP, border = PTX_ADDRESS_BORDER;
    static const char line[] = "tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%x0}];" FLOATS;
    const row rows[] = {
        {"nearest", clamp, false, false, 8.5f, 1, 0, 1, 4, 128},
        {"nearest, one element", clamp, false, false, 8.5f, 0, 0, 1, 1, 128},
        /* elements 7 to 39: sectors 0 to 4 */
        {"linear", clamp, true, false, 8, 1, 0, 1, 5, 256},
        /* elements 8 to 40, each lane's two in one sector but for those at its end */
        {"linear, aligned", clamp, true, false, 9, 1, 0, 1, 5, 256},
        /* each lane's two elements are in two sectors, shared with no other lane */
        {"linear, far apart", clamp, true, false, 8, 16, 0, 2, 64, 256},
        /* 7 and 8, 31 and 32, ...: the lanes' firsts and seconds are 4 sectors apart */
        {"linear, every third sector", clamp, true, false, 8, 24, 0, 2, 64, 256},
        /* both corners are element 0, which is read once */
        {"clamped, before the first", clamp, true, false, 0, 0, 0, 1, 1, 128},
        {"clamped, far before the first", clamp, true, false, -99, 1, 0, 1, 1, 128},
        {"clamped, behind the last", clamp, true, false, WIDTH + 9, 1, 0, 1, 1, 128},
        /* lane 0 has one corner in the texture, its second; lane 31 has 30 and 31 */
        {"border, begin", border, true, false, 0, 1, 0, 1, 4, 63 * 4},
        {"border, begin alone", border, true, false, 0, 0, 0, 1, 1, 128},
        /* corners 1023 and 1024: the first alone */
        {"border, end alone", border, true, false, WIDTH, 0, 0, 1, 1, 128},
        {"border, outside", border, true, false, -50, 1, 0, 0, 0, 0},
        {"border, nearest, half outside", border, false, false, -15.5f, 1, 0, 1, 2, 64},
        /* corners 1023 and 0 */
        {"wrapped", PTX_ADDRESS_WRAP, true, true, 0, 0, 0, 1, 2, 256},
        /* the mirror image of element 0 beside it */
        {"mirrored", PTX_ADDRESS_MIRROR, true, true, 0, 0, 0, 1, 1, 128},
    };
    check_rows(*state, rows, sizeof rows / sizeof *rows, line, false);
}

static void rows_of_the_filter(void **state) {
    const uint8_t clamp = PTX_ADDRESS_CLAMP, border = PTX_ADDRESS_BORDER;
    static const char line[] = "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%x0, %x1}];" FLOATS;
    const row rows[] = {
        {"inside", clamp, true, false, 9, 1, 5, 2, 10, 512},
        /* both rows are row 0, which is read once */
        {"clamped above", clamp, true, false, 9, 1, 0, 1, 5, 256},
        {"clamped below", clamp, true, false, 9, 1, 16, 1, 5, 256},
        {"clamped corner", clamp, true, false, -5, 0, -5, 1, 1, 128},
        /* one of the rows is outside */
        {"border above", border, true, false, 9, 1, 0, 1, 5, 256},
        {"border below", border, true, false, 9, 1, 16, 1, 5, 256},
        {"border corner", border, true, false, 0, 0, 0, 1, 1, 128},
        {"border outside", border, true, false, 9, 1, -3, 0, 0, 0},
    };
    check_rows(*state, rows, sizeof rows / sizeof *rows, line, true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_of_elements),
        cmocka_unit_test(rows_of_the_filter),
    };
    return cmocka_run_group_tests(tests, session_open, session_close);
}
