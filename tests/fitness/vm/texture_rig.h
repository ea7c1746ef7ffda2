/* Textures and surfaces for tests: images of random elements, and a kernel with one line that
 * differs, on every executor. */
#ifndef TESTS_FITNESS_VM_TEXTURE_RIG_H
#define TESTS_FITNESS_VM_TEXTURE_RIG_H

#include "tests/fitness/vm/shared_rig.h"

#include <math.h>

#define LANES ((size_t)32)

typedef struct session {
    vm_memory *memory;
    bool seen[PTX_OP_COUNT][PTX_T_COUNT][PTX_T_COUNT];
    uint64_t random;
} session;

static const char head[] = ".version 8.5\n.target sm_90\n.address_size 64\n";

/* `k(handle, in, out)`: a lane reads four words from `in` to %c0..%c3 (%x0..%x3 as floats), runs
 * the line, and writes %r0..%r3. */
static const char kernel[] =
    "%s.visible .entry k(.param .u64 handle, .param .u64 in, .param .u64 out) {\n"
    ".reg .b64 %%t, %%in, %%out, %%d<4>; .reg .b32 %%r<4>, %%c<4>, %%i; .reg .f32 %%f<4>, %%x<4>;\n"
    ".reg .b16 %%h<4>; .reg .pred %%p, %%even;\n"
    "ld.param.u64 %%t, [handle]; ld.param.u64 %%in, [in]; ld.param.u64 %%out, [out];\n"
    "mov.u32 %%i, %%tid.x; mad.wide.u32 %%in, %%i, 16, %%in; mad.wide.u32 %%out, %%i, 16, %%out;\n"
    "ld.global.v4.u32 {%%c0, %%c1, %%c2, %%c3}, [%%in];\n"
    "mov.b32 %%x0, %%c0; mov.b32 %%x1, %%c1; mov.b32 %%x2, %%c2; mov.b32 %%x3, %%c3;\n"
    "and.b32 %%r0, %%i, 1; setp.eq.u32 %%even, %%r0, 0;\n"
    "mov.b32 %%r0, 7; mov.b32 %%r1, 7; mov.b32 %%r2, 7; mov.b32 %%r3, 7;\n"
    "%s\n"
    "st.global.v4.u32 [%%out], {%%r0, %%r1, %%r2, %%r3};\nret;\n}\n";
#define FLOATS "mov.b32 %r0, %f0; mov.b32 %r1, %f1; mov.b32 %r2, %f2; mov.b32 %r3, %f3;"
#define HALVES                                                                                     \
    "cvt.u32.u16 %r0, %h0; cvt.u32.u16 %r1, %h1; cvt.u32.u16 %r2, %h2; cvt.u32.u16 %r3, %h3;"

typedef struct params {
    uint64_t handle, in, out;
} params;

/* ---- running */

static inline uint32_t draw(session *s, uint32_t below) {
    s->random = s->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(s->random >> 33) % below;
}

static inline void *buffer(session *s, uint64_t bytes, vm_buffer_kind kind, uint64_t *address) {
    ev_error err = {0};
    if (vm_memory_alloc(s->memory, bytes, kind, "buffer", address, &err) != EV_OK)
        fail_msg("%s", err.text);
    return vm_memory_host(s->memory, *address);
}

static inline vm_module *load_with(session *s, const char *before, const char *line) {
    char text[8192];
    int n = snprintf(text, sizeof text, kernel, before, line);
    assert_true(n > 0 && (size_t)n < sizeof text);
    vm_module *m = rig_load_text(text);
    for (uint32_t i = 0; i < m->insn_count; i++)
        s->seen[m->code[i].row][m->code[i].t][m->code[i].u] = true;
    return m;
}

/* Runs the line with the lanes' words, on every executor; results to out[LANES][4]. */
static inline void run_with(session *s, const char *before, const char *line, uint64_t handle,
                            const void *words, uint32_t out[LANES][4]) {
    params p = {.handle = handle};
    memcpy(buffer(s, LANES * 16, VM_BUFFER_IN, &p.in), words, LANES * 16);
    const uint32_t *got = buffer(s, LANES * 16, VM_BUFFER_OUT, &p.out);
    vm_module *m = load_with(s, before, line);
    for (unsigned isa = 0; isa < VM_ISA_COUNT; isa++) {
        if (!vm_isa_supported(isa))
            continue;
        vm_module_set_isa(m, isa);
        rig_run_well(s->memory, m, &p, line);
        if (isa)
            assert_memory_equal(out, got, LANES * 16);
        memcpy(out, got, LANES * 16);
    }
    vm_module_free(m);
    assert_true(vm_memory_release(s->memory, p.in) && vm_memory_release(s->memory, p.out));
}

static inline void run(session *s, const char *line, uint64_t handle, const void *words,
                       uint32_t out[LANES][4]) {
    run_with(s, head, line, handle, words, out);
}

static inline vm_result run_to_trap(session *s, const char *line, uint64_t handle,
                                    const void *words) {
    params p = {.handle = handle};
    memcpy(buffer(s, LANES * 16, VM_BUFFER_IN, &p.in), words, LANES * 16);
    (void)buffer(s, LANES * 16, VM_BUFFER_OUT, &p.out);
    vm_module *m = load_with(s, head, line);
    vm_result r = rig_launch(s->memory, m, LANES, &p, 0);
    vm_module_free(m);
    return r;
}

static inline void expect_trap(session *s, const char *line, uint64_t handle, const void *words,
                               vm_trap_kind kind, const char *why) {
    vm_result r = run_to_trap(s, line, handle, words);
    if (r.ok || r.trap.kind != kind || !strstr(r.trap.message, why))
        fail_msg("%s: expected %s (%s), got %s", line, vm_trap_name(kind), why,
                 r.ok ? "no trap" : r.trap.message);
}

/* ---- textures: rows stand `pad` elements further apart than they are long */

typedef struct image {
    vm_texture t;
    uint64_t handle;
    uint8_t *host;
} image;

static inline image make_image(session *s, vm_texture t, unsigned pad) {
    ev_error err = {0};
    unsigned bytes = (unsigned)ev_type_bytes(t.channel) * t.channels;
    unsigned rows = t.height ? t.height : 1, slices = t.depth ? t.depth : 1;
    slices = t.layers ? t.layers : slices;
    t.row_bytes = (uint64_t)(t.width + pad) * bytes;
    t.slice_bytes = t.row_bytes * (rows + pad);
    image i = {.host = buffer(s, t.slice_bytes * slices, VM_BUFFER_INOUT, &t.address)};
    for (uint64_t k = 0; k < t.slice_bytes * slices; k++)
        i.host[k] = (uint8_t)draw(s, t.channel == EV_F16 || t.channel == EV_F32 ? 60 : 256);
    if (vm_texture_new(s->memory, &t, &i.handle, &err) != EV_OK)
        fail_msg("%s", err.text);
    i.t = t;
    return i;
}

static inline void put_image(session *s, const image *i) {
    assert_true(vm_texture_release(s->memory, i->handle));
    assert_true(vm_memory_release(s->memory, i->t.address));
}

static inline uint32_t ask(session *s, const char *before, const char *line, uint64_t handle) {
    uint32_t words[LANES][4] = {{0}}, out[LANES][4];
    run_with(s, before, line, handle, words, out);
    return out[LANES - 1][0];
}

/* Channel c of an element as a double. */
static inline double element(const image *i, int64_t x, int64_t y, int64_t z, unsigned c) {
    const vm_texture *t = &i->t;
    size_t bytes = ev_type_bytes(t->channel) * t->channels;
    const uint8_t *at =
        i->host + (uint64_t)z * t->slice_bytes + (uint64_t)y * t->row_bytes + (uint64_t)x * bytes;
    if (c >= t->channels)
        return c == 3;
    double v = ev_type_get(t->channel, at, c);
    if (t->as_float)
        switch (t->channel) {
        case EV_U8:
            return v / 255;
        case EV_U16:
            return v / 65535;
        case EV_S8:
            return fmax(v / 127, -1);
        default:
            return fmax(v / 32767, -1);
        }
    return v;
}

/* Each row of these shapes was executed with each of its types. */
static inline void check_every_row(const session *s, const uint8_t *shapes, size_t count) {
    unsigned missing = 0;
    for (unsigned row = 0; row < PTX_OP_COUNT; row++) {
        const ptx_op *op = ptx_op_get(row);
        bool asked = memchr(shapes, op->shape, count) != NULL;
        for (unsigned t = 0; t < PTX_T_COUNT && asked; t++)
            for (unsigned u = 0; u < PTX_T_COUNT; u++) {
                if (!(op->types >> t & 1) || !(op->types2 >> u & 1) || s->seen[row][t][u])
                    continue;
                missing++;
                print_error("%s (%s) was not executed for .%s.%s\n", op->name, op->format,
                            ptx_type_name((ptx_type)t), ptx_type_name((ptx_type)u));
            }
    }
    assert_int_equal(missing, 0);
}

#define TEX1 "tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [%t, {%c0}];"

static inline int session_open(void **state) {
    session *s = calloc(1, sizeof *s);
    ev_error err = {0};
    *state = s;
    return !s || vm_memory_new(1u << 24, &s->memory, &err) != EV_OK;
}

static inline int session_close(void **state) {
    session *s = *state;
    vm_memory_free(s->memory);
    free(s);
    return 0;
}

#endif
