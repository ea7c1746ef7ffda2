/* Kernels of the forms of tensor.def: their text, and values that no order of summing rounds. */
#include "tests/gpu/tensor.h"

#include "base/hash.h"

#include <stdio.h>
#include <string.h>

#define SLOT 8           /* bytes of a register in memory */
#define ROW_BITS 256     /* a row or column of a wmma matrix begins at a multiple of 32 bytes */
#define MATRIX_BYTES 512 /* four 8 x 8 matrices of halves: 16 bytes a lane */

typedef struct registers_form {
    const char *a_type;
    int a, b;
    const char *c_type;
    int c;
    char values;
    int sm;
    const char *text;
} registers_form;

typedef struct wmma_form {
    const char *tile;
    int m, n, k;
    const char *type;
    int bits, a, b;
    const char *c_type;
    int c;
    const char *d_type;
    int d, layouts;
    const char *op, *types;
    char values;
    int sm;
} wmma_form;

typedef struct move_form {
    int sm;
    const char *text;
} move_form;

static const registers_form REGISTERS[] = {
#define TENSOR(a_type, a, b, c_type, c, values, sm, text)                                          \
    {a_type, a, b, c_type, c, values, sm, text},
#include "tests/gpu/tensor.def"
};

static const wmma_form WMMAS[] = {
#define WMMA(tile, m, n, k, type, bits, a, b, c_type, c, d_type, d, layouts, op, types, values,    \
             sm)                                                                                   \
    {tile, m, n, k, type, bits, a, b, c_type, c, d_type, d, layouts, op, types, values, sm},
#include "tests/gpu/tensor.def"
};

static const move_form MOVES[] = {
#define MATRIX(sm, text) {sm, text},
#include "tests/gpu/tensor.def"
};

#define COUNT_OF(list) (sizeof(list) / sizeof(list)[0])

/* ---- values: small multiples of 1/4 ---- */

static uint64_t float_bits(uint64_t random) {
    float value = (float)(int)(random % 17) / 4 - 2;
    uint32_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t double_bits(uint64_t random) {
    double value = (double)(int)(random % 17) / 4 - 2;
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Halves of 0, 0.25, 0.5, 1, 1.5 and 2, of either sign. */
static uint64_t half_bits(uint64_t random) {
    static const uint16_t halves[] = {0, 0x3400, 0x3800, 0x3c00, 0x3e00, 0x4000};
    return halves[random % 6] | (random >> 8 & 1) << 15;
}

/* A register, or a word of memory. */
static uint64_t factor_bits(char kind, uint64_t random) {
    switch (kind) {
    case 'h':
        return half_bits(random) | half_bits(random >> 20) << 16;
    case 'g':
        return float_bits(random) >> 16 | (float_bits(random >> 20) & 0xffff0000u);
    case 't':
        return float_bits(random);
    case 'd':
        return double_bits(random);
    default: /* integers of any width */
        return random & UINT32_MAX;
    }
}

static uint64_t sum_bits(const char *type, char values, uint64_t random) {
    if (strcmp(type, "f64") == 0)
        return double_bits(random);
    if (strcmp(type, "f32") == 0)
        return float_bits(random);
    return values == 'h' ? half_bits(random) | half_bits(random >> 20) << 16
                         : (uint64_t)((uint32_t)(random % 4096) - 2048u);
}

static size_t bits_of(const char *type) {
    if (strcmp(type, "f64") == 0)
        return 64;
    if (strcmp(type, "f16") == 0)
        return 16;
    return 32;
}

/* ---- text ---- */

static void put_head(tensor_kernel *k) {
    ev_str_printf(&k->ptx,
                  ".version 8.0\n.target sm_%d\n.address_size 64\n"
                  ".visible .entry tensor(.param .u64 input, .param .u64 output)\n{\n"
                  ".reg .b32 %%lane;\n.reg .b64 %%in, %%out;\nmov.u32 %%lane, %%tid.x;\n"
                  "ld.param.u64 %%in, [input];\nld.param.u64 %%out, [output];\n",
                  k->sm);
}

/* Each lane's part of the input and of the output. */
static void put_own_parts(tensor_kernel *k, int in, int out) {
    ev_str_printf(&k->ptx,
                  "mad.wide.u32 %%in, %%lane, %d, %%in;\nmad.wide.u32 %%out, %%lane, %d, %%out;\n",
                  in, out);
}

static void put_list(ev_str *ptx, char name, int count) {
    ev_str_char(ptx, '{');
    for (int i = 0; i < count; i++)
        ev_str_printf(ptx, "%s%%%c%d", i > 0 ? ", " : "", name, i);
    ev_str_char(ptx, '}');
}

static void put_registers(ev_str *ptx, char name, const char *type, int count) {
    ev_str_printf(ptx, ".reg .%s %%%c<%d>;\n", type, name, count);
}

static void put_loads(ev_str *ptx, char name, const char *type, int count, int *slot) {
    put_registers(ptx, name, type, count);
    for (int i = 0; i < count; i++)
        ev_str_printf(ptx, "ld.global.%s %%%c%d, [%%in+%d];\n", type, name, i, (*slot)++ * SLOT);
}

static void put_stores(ev_str *ptx, char name, const char *type, int count) {
    for (int i = 0; i < count; i++)
        ev_str_printf(ptx, "st.global.%s [%%out+%d], %%%c%d;\n", type, i * SLOT, name, i);
}

/* ---- on registers ---- */

static void make_registers(const registers_form *f, tensor_kernel *k) {
    int slot = 0, slots = f->a + f->b + f->c;
    k->sm = f->sm;
    (void)snprintf(k->name, sizeof k->name, "%s", f->text);
    put_head(k);
    put_own_parts(k, slots * SLOT, f->c * SLOT);
    put_registers(&k->ptx, 'd', f->c_type, f->c);
    put_loads(&k->ptx, 'a', f->a_type, f->a, &slot);
    put_loads(&k->ptx, 'b', f->a_type, f->b, &slot);
    put_loads(&k->ptx, 'c', f->c_type, f->c, &slot);
    ev_str_printf(&k->ptx, "%s ", f->text);
    const char names[] = "dabc";
    const int counts[] = {f->c, f->a, f->b, f->c};
    for (int i = 0; i < 4; i++) {
        put_list(&k->ptx, names[i], counts[i]);
        ev_str_append(&k->ptx, i < 3 ? ", " : ";\n");
    }
    put_stores(&k->ptx, 'd', f->c_type, f->c);
    k->in = (size_t)(TENSOR_LANES * SLOT * slots);
    k->out = (size_t)(TENSOR_LANES * SLOT * f->c);
    for (int i = 0; i < TENSOR_LANES * slots; i++) {
        uint64_t random = ev_mix64((uint64_t)i + 1);
        k->input[i] = i % slots < f->a + f->b ? factor_bits(f->values, random)
                                              : sum_bits(f->c_type, f->values, random);
    }
}

/* ---- wmma ---- */

/* A matrix in memory: `lines` rows or columns, each of `length` elements and what fills it up. */
typedef struct plane {
    size_t lines, stride, bytes; /* stride: elements */
} plane;

static plane plane_of(int lines, int length, size_t bits) {
    size_t line_bits = ((size_t)length * bits + ROW_BITS - 1) / ROW_BITS * ROW_BITS;
    return (plane){
        .lines = (size_t)lines, .stride = line_bits / bits, .bytes = (size_t)lines * line_bits / 8};
}

static const char *register_type(const char *type) {
    if (strcmp(type, "f64") == 0)
        return "f64";
    if (strcmp(type, "f32") == 0)
        return "f32";
    if (strcmp(type, "s32") == 0)
        return "s32";
    return "b32";
}

static void put_wmma_load(const wmma_form *f, ev_str *ptx, char name, const char *layout,
                          const char *type, int count, size_t offset, const plane *p) {
    put_registers(ptx, name, register_type(type), count);
    ev_str_printf(ptx, "add.u64 %%at, %%in, %zu;\nwmma.load.%c.sync.aligned.%s.%s.global.%s ",
                  offset, name, layout, f->tile, type);
    put_list(ptx, name, count);
    ev_str_printf(ptx, ", [%%at], %zu;\n", p->stride);
}

static void put_wmma(const wmma_form *f, ev_str *ptx, const char *what) {
    put_registers(ptx, 'd', register_type(f->d_type), f->d);
    ev_str_printf(ptx, "%s ", what);
    const char names[] = "dabc";
    const int counts[] = {f->d, f->a, f->b, f->c};
    for (int i = 0; i < 4; i++) {
        put_list(ptx, names[i], counts[i]);
        ev_str_append(ptx, i < 3 ? ", " : ";\n");
    }
}

static void fill_plane(uint64_t *input, size_t offset, size_t bytes, size_t word, char kind,
                       const char *sum_type, char values) {
    for (size_t at = 0; at < bytes; at += word) {
        uint64_t random = ev_mix64(offset + at + 1);
        uint64_t bits =
            sum_type != NULL ? sum_bits(sum_type, values, random) : factor_bits(kind, random);
        memcpy((char *)input + offset + at, &bits, word);
    }
}

/* `layout`: bit 0: a is .col; bit 1: b is .row. */
static void make_wmma(const wmma_form *f, int layout, tensor_kernel *k) {
    const char *a_layout = layout & 1 ? "col" : "row", *b_layout = layout & 2 ? "row" : "col";
    size_t factor = (size_t)f->bits, c_bits = bits_of(f->c_type);
    plane a = layout & 1 ? plane_of(f->k, f->m, factor) : plane_of(f->m, f->k, factor);
    plane b = layout & 2 ? plane_of(f->k, f->n, factor) : plane_of(f->n, f->k, factor);
    plane c = plane_of(f->m, f->n, c_bits), d = plane_of(f->m, f->n, bits_of(f->d_type));
    size_t b_at = a.bytes, c_at = b_at + b.bytes;
    k->sm = f->sm;
    (void)snprintf(k->name, sizeof k->name, "wmma.mma%s.sync.aligned.%s.%s.%s%s", f->op, a_layout,
                   b_layout, f->tile, f->types);
    put_head(k);
    ev_str_append(&k->ptx, ".reg .b64 %at;\n");
    put_wmma_load(f, &k->ptx, 'a', a_layout, f->type, f->a, 0, &a);
    put_wmma_load(f, &k->ptx, 'b', b_layout, f->type, f->b, b_at, &b);
    put_wmma_load(f, &k->ptx, 'c', "row", f->c_type, f->c, c_at, &c);
    put_wmma(f, &k->ptx, k->name);
    ev_str_printf(&k->ptx, "wmma.store.d.sync.aligned.row.%s.global.%s [%%out], ", f->tile,
                  f->d_type);
    put_list(&k->ptx, 'd', f->d);
    ev_str_printf(&k->ptx, ", %zu;\n", d.stride);
    k->in = c_at + c.bytes;
    k->out = d.bytes;
    size_t word = factor == 64 ? 8 : 4;
    fill_plane(k->input, 0, c_at, word, f->values, NULL, f->values);
    fill_plane(k->input, c_at, c.bytes, c_bits == 64 ? 8 : 4, f->values, f->c_type, f->values);
}

/* ---- moves ---- */

static int registers_moved(const char *text) {
    const char *x = strstr(text, ".x");
    return x != NULL ? x[2] - '0' : 1;
}

/* Rows of 16 bytes, a lane's each: to shared memory, and from there by the instruction. What a
 * store does not reach holds the row's offset: where `rows` stands is each device's own affair. */
static void put_move(const move_form *f, ev_str *ptx, int count) {
    bool stores = strncmp(f->text, "st", 2) == 0;
    ev_str_append(ptx, ".shared .align 16 .b8 rows[512];\n.reg .b32 %row;\n.reg .b32 %at;\n"
                       ".reg .b32 %v<4>;\nshl.b32 %at, %lane, 4;\n"
                       "mov.u32 %row, rows;\nadd.u32 %row, %at, %row;\n"
                       "ld.global.v4.b32 {%v0, %v1, %v2, %v3}, [%in];\n");
    put_registers(ptx, 'd', "b32", 4);
    for (int i = 0; i < 4; i++)
        ev_str_printf(ptx, "mov.b32 %%d%d, %s%d;\n", i, stores ? "%v" : "", stores ? i : 0);
    ev_str_printf(ptx, "st.shared.v4.b32 [%%row], {%s};\nbar.sync 0;\n%s ",
                  stores ? "%at, %at, %at, %at" : "%v0, %v1, %v2, %v3", f->text);
    if (stores)
        ev_str_append(ptx, "[%row], ");
    put_list(ptx, 'd', count);
    ev_str_append(ptx, stores ? ";\nbar.sync 0;\nld.shared.v4.b32 {%d0, %d1, %d2, %d3}, [%row];\n"
                              : ", [%row];\n");
}

static void make_move(const move_form *f, tensor_kernel *k) {
    k->sm = f->sm;
    (void)snprintf(k->name, sizeof k->name, "%s", f->text);
    put_head(k);
    put_own_parts(k, 16, 16);
    if (strncmp(f->text, "mov", 3) == 0)
        ev_str_printf(&k->ptx,
                      ".reg .b32 %%v<2>;\n.reg .b32 %%d<4>;\nld.global.b32 %%v0, [%%in];\n"
                      "%s %%d0, %%v0;\nmov.b32 %%d1, 0;\nmov.b32 %%d2, 0;\nmov.b32 %%d3, 0;\n",
                      f->text);
    else
        put_move(f, &k->ptx, registers_moved(f->text));
    ev_str_append(&k->ptx, "st.global.v4.b32 [%out], {%d0, %d1, %d2, %d3};\n");
    k->in = k->out = MATRIX_BYTES;
    for (size_t i = 0; i < MATRIX_BYTES / 8; i++)
        k->input[i] = ev_mix64(i + 1);
}

/* ---- all ---- */

static size_t wmma_count(void) {
    size_t count = 0;
    for (size_t i = 0; i < COUNT_OF(WMMAS); i++)
        count += (size_t)WMMAS[i].layouts;
    return count;
}

size_t tensor_count(void) {
    return COUNT_OF(REGISTERS) + wmma_count() + COUNT_OF(MOVES);
}

static void make(size_t index, tensor_kernel *k) {
    if (index < COUNT_OF(REGISTERS)) {
        make_registers(&REGISTERS[index], k);
        return;
    }
    index -= COUNT_OF(REGISTERS);
    for (size_t i = 0; i < COUNT_OF(WMMAS); i++) {
        if (index < (size_t)WMMAS[i].layouts) {
            make_wmma(&WMMAS[i], (int)index, k);
            return;
        }
        index -= (size_t)WMMAS[i].layouts;
    }
    make_move(&MOVES[index], k);
}

void tensor_make(size_t index, tensor_kernel *k) {
    memset(k, 0, sizeof *k);
    ev_error ignored;
    make(index, k);
    ev_str_append(&k->ptx, "ret;\n}\n");
    (void)vm_text_lower(k->ptx.data, k->ptx.length, &ignored); /* the device says why not */
}
