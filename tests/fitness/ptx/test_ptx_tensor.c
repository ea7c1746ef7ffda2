/* Matrix instructions against plain triple loops: fragments as the figures of the PTX ISA place
 * their elements ("Matrix Fragments for mma.m16n8k16" and so on), every row of the table with every
 * type, edge values among the elements. What moves matrices, traps or is refused:
 * test_ptx_matrix.c. */
#include "fitness/ptx/ptx_load.h"
#include "fitness/vm/vm.h"
#include "tests/fitness/ptx/tensor_product.h"
#include "tests/fitness/vm/shared_rig.h"

#include <fenv.h>
#include <math.h>

/* ---- running */

static uint8_t *buffer(session *s, uint64_t bytes, vm_buffer_kind use, uint64_t *address) {
    ev_error err = {0};
    if (vm_memory_alloc(s->memory, bytes, use, "buffer", address, &err) != EV_OK)
        fail_msg("%s", err.text);
    return vm_memory_host(s->memory, *address);
}

static vm_module *load(session *s, const char *text) {
    vm_module *m = rig_load_text(text);
    for (uint32_t i = 0; i < m->insn_count; i++)
        s->seen[m->code[i].row][m->code[i].t][m->code[i].u] = 1;
    return m;
}

/* ---- mma: fragments as in the figures */

/* Elements of one lane: of a, of b, of an accumulator. */
static unsigned lane_elements(unsigned rows, unsigned columns, bool quads) {
    return rows * columns / (quads ? 8 : 32);
}

static void place_quads(const form *f, char which, bool col, unsigned lane, unsigned i,
                        unsigned *row, unsigned *column) {
    unsigned half = lane < 16 ? 0 : 4;
    kind k = which == 'c' ? f->c : f->d;
    if (which == 'a') {
        *row = (col ? i % 4 : lane % 4) + half;
        *column = col ? lane % 4 : i;
    } else if (which == 'b') {
        *row = col ? i : lane % 4;
        *column = (col ? lane % 4 : i) + half;
    } else if (k == F16) {
        *row = lane % 4 + half;
        *column = i;
    } else {
        *row = (lane & 1) + (i & 2) + half;
        *column = (i & 4) + (lane & 2) + (i & 1);
    }
}

static void place_a(const form *f, unsigned lane, unsigned i, unsigned *row, unsigned *column) {
    unsigned group = lane >> 2, in_group = lane % 4;
    switch (kind_bits[f->a]) {
    case 16: /* m16n8k8, m16n8k16 */
        *row = i < 2 || (4 <= i && i < 6) ? group : group + 8;
        *column = i < 4 ? in_group * 2 + (i & 1) : in_group * 2 + (i & 1) + 8;
        return;
    case 32:
    case 64: /* m8n8k4, m16n8k4, m16n8k8, m16n8k16 */
        *row = f->m == 8 || i % 2 == 0 ? group : group + 8;
        *column = f->m == 8 ? in_group : (i / 2) * 4 + in_group;
        return;
    case 8: /* m8n8k16, m16n8k16, m16n8k32 */
        *row = i < 4 || (8 <= i && i < 12) ? group : group + 8;
        *column = i < 8 ? in_group * 4 + (i & 3) : in_group * 4 + (i & 3) + 16;
        return;
    case 4: /* m8n8k32, m16n8k32, m16n8k64 */
        *row = i < 8 || (16 <= i && i < 24) ? group : group + 8;
        *column = i < 16 ? in_group * 8 + (i & 7) : in_group * 8 + (i & 7) + 32;
        return;
    default: /* m8n8k128, m16n8k128, m16n8k256 */
        *row = i < 32 || (64 <= i && i < 96) ? group : group + 8;
        *column = i < 64 ? in_group * 32 + (i & 31) : in_group * 32 + (i & 31) + 128;
    }
}

static void place_b(const form *f, unsigned lane, unsigned i, unsigned *row, unsigned *column) {
    unsigned in_group = lane % 4;
    *column = lane >> 2;
    switch (kind_bits[f->b]) {
    case 16:
        *row = i < 2 ? in_group * 2 + (i & 1) : in_group * 2 + (i & 1) + 8;
        return;
    case 32:
    case 64:
        *row = in_group + i * 4;
        return;
    case 8:
        *row = i < 4 ? in_group * 4 + (i & 3) : in_group * 4 + (i & 3) + 16;
        return;
    case 4:
        *row = i < 8 ? in_group * 8 + (i & 7) : in_group * 8 + (i & 7) + 32;
        return;
    default:
        *row = i < 32 ? in_group * 32 + (i & 31) : in_group * 32 + (i & 31) + 128;
    }
}

static void place_c(unsigned lane, unsigned i, unsigned *row, unsigned *column) {
    *row = i < 2 ? lane >> 2 : (lane >> 2) + 8;
    *column = lane % 4 * 2 + (i & 1);
}

typedef struct operand {
    char which;
    kind k;
    bool col;
    unsigned elements, registers; /* of a lane */
    size_t first;                 /* register in the buffer */
} operand;

static void place(const form *f, const operand *o, unsigned lane, unsigned i, unsigned *row,
                  unsigned *column) {
    if (f->quads)
        place_quads(f, o->which, o->col, lane, i, row, column);
    else if (o->which == 'a')
        place_a(f, lane, i, row, column);
    else if (o->which == 'b')
        place_b(f, lane, i, row, column);
    else
        place_c(lane, i, row, column);
}

static operand make_operand(const form *f, char which, kind k, unsigned rows, unsigned columns,
                            size_t *first) {
    operand o = {.which = which, .k = k, .first = *first};
    o.elements = lane_elements(rows, columns, f->quads);
    unsigned bits = k == F64 ? 64 : 32;
    o.registers = o.elements * kind_bits[k] / bits;
    *first += o.registers;
    return o;
}

/* 64 bits a register in the buffers; `at` is the lane's first. */
static void put_bits(uint64_t *at, const operand *o, unsigned i, uint64_t bits) {
    unsigned each = o->k == F64 ? 1 : 32 / kind_bits[o->k];
    at[o->first + i / each] |= bits << i % each * kind_bits[o->k];
}
static uint64_t get_bits(const uint64_t *at, const operand *o, unsigned i) {
    if (o->k == F64)
        return at[o->first + i];
    unsigned bits = kind_bits[o->k], each = 32 / bits;
    return at[o->first + i / each] >> i % each * bits &
           (bits == 32 ? UINT32_MAX : (1u << bits) - 1);
}

static void put_list(FILE *f, const operand *o) {
    fputc('{', f);
    for (unsigned r = 0; r < o->registers; r++)
        fprintf(f, "%s%%%c%u", r ? "," : "", o->which, r);
    fputc('}', f);
}

/* Registers of `o` loaded from %in or stored to %out. */
static void put_moves(FILE *f, const operand *o, bool is_load) {
    unsigned bits = o->k == F64 ? 64 : 32;
    for (unsigned r = 0; r < o->registers; r++) {
        size_t at = (o->first + r) * 8;
        if (is_load)
            fprintf(f, "ld.global.b%u %%%c%u, [%%in+%zu];\n", bits, o->which, r, at);
        else
            fprintf(f, "st.global.b%u [%%out+%zu], %%%c%u;\n", bits, at, o->which, r);
    }
}

static const char header[] = ".version 8.5\n.target sm_90\n.address_size 64\n";

static char *mma_text(const form *f, const operand o[4], size_t in_slots, size_t out_slots) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    assert_non_null(file);
    fprintf(file,
            "%s.visible .entry k(.param .u64 input, .param .u64 output) {\n"
            ".reg .b64 %%in, %%out; .reg .b32 %%t;\nmov.u32 %%t, %%tid.x;\n"
            "ld.param.u64 %%in, [input]; mad.wide.u32 %%in, %%t, %zu, %%in;\n"
            "ld.param.u64 %%out, [output]; mad.wide.u32 %%out, %%t, %zu, %%out;\n",
            header, in_slots * 8, out_slots * 8);
    for (unsigned i = 0; i < 4; i++) {
        fprintf(file, ".reg .b%d %%%c<8>;\n", o[i].k == F64 ? 64 : 32, o[i].which);
        if (i)
            put_moves(file, &o[i], true);
    }
    fprintf(file, "%s ", f->text);
    for (unsigned i = 0; i < 4; i++) {
        fputs(i ? ", " : "", file);
        put_list(file, &o[i]);
    }
    fputs(";\n", file);
    put_moves(file, &o[0], false);
    fputs("ret;\n}\n", file);
    fclose(file);
    return text;
}

/* Random elements of an operand into the lanes' registers and into its matrix. Of four products at
 * once, product `quad` alone is looked at: the lanes of which lane / 4 % 4 is the number. */
static void fill(session *s, const operand *o, int trial, unsigned columns, value *matrix,
                 uint64_t *in, size_t in_slots, unsigned quad) {
    for (unsigned lane = 0; lane < 32; lane++)
        for (unsigned i = 0; i < o->elements; i++) {
            unsigned row, column;
            place(&s->p->f, o, lane, i, &row, &column);
            uint64_t bits = draw_bits(s, o->k, trial);
            if (!s->p->f.quads || lane / 4 % 4 == quad)
                matrix[row * columns + column] = value_of(o->k, bits);
            put_bits(in + lane * in_slots, o, i, bits);
        }
}

/* One instruction, one kind of values, every executor: right, and the same bits. */
static void try_mma(session *s, vm_module *m, const operand o[4], size_t in_slots, size_t out_slots,
                    int trial) {
    problem *p = s->p;
    uint64_t params[2];
    unsigned quad = draw(s, 4);
    vm_memory_clear(s->memory);
    uint64_t *in = (uint64_t *)(void *)buffer(s, 32ul * 8 * in_slots, VM_BUFFER_IN, &params[0]);
    uint64_t *out =
        (uint64_t *)(void *)buffer(s, 32ul * 8 * out_slots, VM_BUFFER_INOUT, &params[1]);
    memset(in, 0, 32ul * 8 * in_slots);
    fill(s, &o[1], trial, p->f.k, p->a, in, in_slots, quad);
    fill(s, &o[2], trial, p->f.n, p->b, in, in_slots, quad);
    fill(s, &o[3], trial, p->f.n, p->c, in, in_slots, quad);
    multiply(p);
    uint64_t first[32 * 8] = {0};
    for (unsigned isa = 0; isa < VM_ISA_COUNT; isa++) {
        if (!vm_isa_supported(isa))
            continue;
        memset(out, 0, 32ul * 8 * out_slots);
        vm_module_set_isa(m, isa);
        rig_run_well(s->memory, m, params, p->f.text);
        for (unsigned lane = 0; lane < 32; lane++)
            for (unsigned i = 0; i < o[0].elements; i++) {
                unsigned row, column;
                place(&p->f, &o[0], lane, i, &row, &column);
                if (!p->f.quads || lane / 4 % 4 == quad)
                    check(s, p, row, column, get_bits(out + lane * out_slots, &o[0], i), p->f.text);
            }
        if (isa == 0)
            memcpy(first, out, 32ul * 8 * out_slots);
        assert_memory_equal(first, out, 32ul * 8 * out_slots);
    }
}

static void test_form(session *s, const form *f) {
    problem *p = s->p;
    p->f = *f;
    size_t in_slots = 0, out_slots = 0;
    operand o[4];
    o[0] = make_operand(f, 'd', f->d, f->m, f->n, &out_slots);
    o[1] = make_operand(f, 'a', f->a, f->m, f->k, &in_slots);
    o[2] = make_operand(f, 'b', f->b, f->k, f->n, &in_slots);
    o[3] = make_operand(f, 'c', f->c, f->m, f->n, &in_slots);
    o[1].col = strstr(f->text, ".m8n8k4.col") != NULL;
    o[2].col = strstr(f->text, "col.f") != NULL;
    char *text = mma_text(f, o, in_slots, out_slots);
    vm_module *m = load(s, text);
    for (int trial = 0; trial < TRIALS; trial++)
        try_mma(s, m, o, in_slots, out_slots, trial);
    vm_module_free(m);
    free(text);
}

#define MMA "mma.sync.aligned."
/* Types are of a, b, c, d. */
#define FORM(text_, m_, n_, k_, a_, b_, c_, d_, ...)                                               \
    {.text = (text_),                                                                              \
     .m = (m_),                                                                                    \
     .n = (n_),                                                                                    \
     .k = (k_),                                                                                    \
     .a = (a_),                                                                                    \
     .b = (b_),                                                                                    \
     .c = (c_),                                                                                    \
     .d = (d_),                                                                                    \
     __VA_ARGS__}

static void test_mma_floats(void **state) {
    static const form forms[] = {
        FORM(MMA "m16n8k8.row.col.f16.f16.f16.f16", 16, 8, 8, F16, F16, F16, F16),
        FORM(MMA "m16n8k8.row.col.f32.f16.f16.f32", 16, 8, 8, F16, F16, F32, F32),
        FORM(MMA "m16n8k16.row.col.f16.f16.f16.f16", 16, 8, 16, F16, F16, F16, F16),
        FORM(MMA "m16n8k16.row.col.f32.f16.f16.f32", 16, 8, 16, F16, F16, F32, F32),
        FORM(MMA "m16n8k8.row.col.f32.bf16.bf16.f32", 16, 8, 8, BF16, BF16, F32, F32),
        FORM(MMA "m16n8k16.row.col.f32.bf16.bf16.f32", 16, 8, 16, BF16, BF16, F32, F32),
        FORM(MMA "m16n8k4.row.col.f32.tf32.tf32.f32", 16, 8, 4, TF32, TF32, F32, F32),
        FORM(MMA "m16n8k8.row.col.f32.tf32.tf32.f32", 16, 8, 8, TF32, TF32, F32, F32),
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        test_form(*state, &forms[i]);
}

static void test_mma_quads(void **state) {
    static const char *const types[] = {"f16.f16.f16.f16", "f32.f16.f16.f16", "f32.f16.f16.f32"};
    for (unsigned i = 0; i < 12; i++) {
        char text[80];
        snprintf(text, sizeof text, MMA "m8n8k4.%s.%s.%s", i & 1 ? "row" : "col",
                 i & 2 ? "row" : "col", types[i / 4]);
        form f = {text,         8, 8, 4, F16, F16, i / 4 == 2 ? F32 : F16, i / 4 ? F32 : F16,
                  .quads = true};
        test_form(*state, &f);
    }
}

static void test_mma_f64(void **state) {
    static const struct {
        unsigned m, k;
    } tiles[] = {{8, 4}, {16, 4}, {16, 8}, {16, 16}};
    static const struct {
        const char *text;
        int mode;
    } modes[] = {{"", FE_TONEAREST},
                 {".rn", FE_TONEAREST},
                 {".rz", FE_TOWARDZERO},
                 {".rm", FE_DOWNWARD},
                 {".rp", FE_UPWARD}};
    for (unsigned t = 0; t < 4; t++)
        for (unsigned i = 0; i < 5; i++) {
            char text[80];
            snprintf(text, sizeof text, MMA "m%un8k%u.row.col%s.f64.f64.f64.f64", tiles[t].m,
                     tiles[t].k, modes[i].text);
            form f = {
                text, tiles[t].m, 8, tiles[t].k, F64, F64, F64, F64, .rounding = modes[i].mode};
            test_form(*state, &f);
        }
}

static void test_mma_integers(void **state) {
    static const struct {
        unsigned m, k;
        kind first;
    } tiles[] = {{8, 16, U8}, {16, 16, U8}, {16, 32, U8}, {8, 32, U4}, {16, 32, U4}, {16, 64, U4}};
    for (unsigned t = 0; t < 6; t++)
        for (unsigned i = 0; i < 8; i++) {
            kind a = tiles[t].first + (i & 1), b = tiles[t].first + (i >> 1 & 1);
            char text[80];
            snprintf(text, sizeof text, MMA "m%un8k%u.row.col%s.s32.%s.%s.s32", tiles[t].m,
                     tiles[t].k, i & 4 ? ".satfinite" : "", kind_names[a], kind_names[b]);
            form f = {text, tiles[t].m, 8, tiles[t].k, a, b, S32, S32, .sat = i & 4};
            test_form(*state, &f);
        }
}

static void test_mma_bits(void **state) {
    static const struct {
        unsigned m, k;
    } tiles[] = {{8, 128}, {16, 128}, {16, 256}};
    for (unsigned t = 0; t < 3; t++)
        for (unsigned i = 0; i < 2; i++) {
            char text[80];
            snprintf(text, sizeof text, MMA "m%un8k%u.row.col.s32.b1.b1.s32.%s.popc", tiles[t].m,
                     tiles[t].k, i ? "xor" : "and");
            form f = {text, tiles[t].m, 8, tiles[t].k, B1, B1, S32, S32, .xor = i};
            test_form(*state, &f);
        }
}

/* ---- wmma: matrices in memory before and afterwards */

/* A matrix with its rows or columns `stride` elements apart. */
typedef struct stored {
    kind k;
    unsigned rows, columns, stride;
    bool col;
    uint8_t *host;
    uint64_t address;
} stored;

static stored store_matrix(session *s, kind k, unsigned rows, unsigned columns, bool col,
                           unsigned pad) {
    stored x = {.k = k, .rows = rows, .columns = columns, .col = col};
    x.stride = (col ? rows : columns) + pad * 128 / kind_bits[k];
    uint64_t bytes = (uint64_t)x.stride * (col ? columns : rows) * kind_bits[k] / 8;
    x.host = buffer(s, bytes, VM_BUFFER_INOUT, &x.address);
    memset(x.host, 0, bytes);
    return x;
}

static uint64_t stored_bits(const stored *x, unsigned row, unsigned column) {
    size_t at = (x->col ? (size_t)column * x->stride + row : (size_t)row * x->stride + column) *
                kind_bits[x->k];
    uint64_t v = 0;
    memcpy(&v, x->host + at / 8, kind_bits[x->k] < 8 ? 1 : kind_bits[x->k] / 8);
    return kind_bits[x->k] < 8 ? v >> at % 8 & ((1u << kind_bits[x->k]) - 1) : v;
}

static void store_random(session *s, stored *x, int trial, value *matrix) {
    for (unsigned row = 0; row < x->rows; row++)
        for (unsigned column = 0; column < x->columns; column++) {
            size_t at =
                (x->col ? (size_t)column * x->stride + row : (size_t)row * x->stride + column) *
                kind_bits[x->k];
            uint64_t bits = draw_bits(s, x->k, trial);
            matrix[row * x->columns + column] = value_of(x->k, bits);
            if (kind_bits[x->k] < 8)
                x->host[at / 8] |= (uint8_t)(bits << at % 8);
            else
                memcpy(x->host + at / 8, &bits, kind_bits[x->k] / 8);
        }
}

typedef struct wmma_case {
    form f;
    const char *tile, *space;
    bool col[4];  /* of d, a, b, c */
    unsigned pad; /* 16 bytes each, between rows or columns */
} wmma_case;

static const char *layout_name(bool col) {
    return col ? "col" : "row";
}

static unsigned fragment_registers(const form *f, char which) {
    if ((which == 'a' || which == 'b') && f->a == F16)
        return 8;
    kind k = f->d;
    if (which == 'a')
        k = f->a;
    else if (which == 'b')
        k = f->b;
    else if (which == 'c')
        k = f->c;
    unsigned elements;
    if (which == 'a')
        elements = f->m * f->k;
    else if (which == 'b')
        elements = f->k * f->n;
    else
        elements = f->m * f->n;
    return elements * kind_bits[k] / 32 / (k == F64 ? 64 : 32);
}

static char *wmma_text(const wmma_case *c, const stored x[4]) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    assert_non_null(file);
    fprintf(file,
            "%s.visible .entry k(.param .u64 d, .param .u64 a, .param .u64 b, .param .u64 c) "
            "{\n.reg .b64 %%p<4>;\n",
            header);
    operand o[4];
    for (unsigned i = 0; i < 4; i++) {
        o[i] = (operand){
            .which = "dabc"[i], .k = x[i].k, .registers = fragment_registers(&c->f, "dabc"[i])};
        fprintf(file, ".reg .b%d %%%c<8>;\nld.param.u64 %%p%u, [%c];\n", x[i].k == F64 ? 64 : 32,
                o[i].which, i, o[i].which);
    }
    for (unsigned i = 1; i < 4; i++) {
        fprintf(file, "wmma.load.%c.sync.aligned.%s.%s%s.%s ", o[i].which, layout_name(x[i].col),
                c->tile, c->space, kind_names[x[i].k]);
        put_list(file, &o[i]);
        fprintf(file, c->pad ? ", [%%p%u], %u;\n" : ", [%%p%u];\n", i, x[i].stride);
    }
    fprintf(file, c->f.text, layout_name(x[1].col), layout_name(x[2].col), c->tile);
    for (unsigned i = 0; i < 4; i++) {
        fputs(i ? ", " : " ", file);
        put_list(file, &o[i]);
    }
    fprintf(file, ";\nwmma.store.d.sync.aligned.%s.%s%s.%s [%%p0], ", layout_name(x[0].col),
            c->tile, c->space, kind_names[x[0].k]);
    put_list(file, &o[0]);
    fprintf(file, c->pad ? ", %u;\nret;\n}\n" : ";\nret;\n}\n", x[0].stride);
    fclose(file);
    return text;
}

static void test_wmma_case(session *s, const wmma_case *c, int trial) {
    const form *f = &c->f;
    problem *p = s->p;
    p->f = *f;
    vm_memory_clear(s->memory);
    stored x[4] = {store_matrix(s, f->d, f->m, f->n, c->col[0], c->pad),
                   store_matrix(s, f->a, f->m, f->k, c->col[1], c->pad),
                   store_matrix(s, f->b, f->k, f->n, c->col[2], c->pad),
                   store_matrix(s, f->c, f->m, f->n, c->col[3], c->pad)};
    store_random(s, &x[1], trial, p->a);
    store_random(s, &x[2], trial, p->b);
    store_random(s, &x[3], trial, p->c);
    multiply(p);
    char *text = wmma_text(c, x);
    vm_module *m = load(s, text);
    uint64_t params[4] = {x[0].address, x[1].address, x[2].address, x[3].address};
    for (unsigned isa = 0; isa < VM_ISA_COUNT; isa++) {
        if (!vm_isa_supported(isa))
            continue;
        vm_module_set_isa(m, isa);
        rig_run_well(s->memory, m, params, text);
        for (unsigned i = 0; i < f->m; i++)
            for (unsigned j = 0; j < f->n; j++)
                check(s, p, i, j, stored_bits(&x[0], i, j), text);
    }
    vm_module_free(m);
    free(text);
}

/* All layouts that the instruction has, dense and with rows apart, in both spaces' spellings. */
static void test_wmma(session *s, form f, bool one_layout) {
    char tile[32];
    snprintf(tile, sizeof tile, "m%un%uk%u", f.m, f.n, f.k);
    for (unsigned i = 0; i < 16; i++) {
        wmma_case c = {.f = f,
                       .tile = tile,
                       .space = i % 3 ? ".global" : "",
                       .col = {i & 1, i & 2, i & 4, i & 8},
                       .pad = i % 5};
        if (one_layout) {
            c.col[1] = false;
            c.col[2] = true;
        }
        test_wmma_case(s, &c, (int)(i % TRIALS));
    }
}

#define WMMA "wmma.mma.sync.aligned.%s.%s.%s."

static void test_wmma_floats(void **state) {
    static const struct {
        unsigned m, n;
    } tiles[] = {{16, 16}, {32, 8}, {8, 32}};
    for (unsigned t = 0; t < 3; t++) {
        unsigned m = tiles[t].m, n = tiles[t].n;
        test_wmma(*state, (form)FORM(WMMA "f16.f16", m, n, 16, F16, F16, F16, F16), false);
        test_wmma(*state, (form)FORM(WMMA "f16.f32", m, n, 16, F16, F16, F32, F16), false);
        test_wmma(*state, (form)FORM(WMMA "f32.f16", m, n, 16, F16, F16, F16, F32), false);
        test_wmma(*state, (form)FORM(WMMA "f32.f32", m, n, 16, F16, F16, F32, F32), false);
        test_wmma(*state, (form)FORM(WMMA "f32.bf16.bf16.f32", m, n, 16, BF16, BF16, F32, F32),
                  false);
    }
    test_wmma(*state, (form)FORM(WMMA "f32.tf32.tf32.f32", 16, 16, 8, TF32, TF32, F32, F32), false);
    test_wmma(*state, (form)FORM(WMMA "f64.f64.f64.f64", 8, 8, 4, F64, F64, F64, F64), false);
    test_wmma(*state,
              (form)FORM(WMMA "rz.f64.f64.f64.f64", 8, 8, 4, F64, F64, F64, F64,
                         .rounding = FE_TOWARDZERO),
              false);
}

static void test_wmma_integers(void **state) {
    static const struct {
        unsigned m, n;
    } tiles[] = {{16, 16}, {32, 8}, {8, 32}};
    for (unsigned t = 0; t < 3; t++) {
        unsigned m = tiles[t].m, n = tiles[t].n;
        test_wmma(*state, (form)FORM(WMMA "s32.u8.u8.s32", m, n, 16, U8, U8, S32, S32), false);
        test_wmma(
            *state,
            (form)FORM(WMMA "s32.s8.s8.s32.satfinite", m, n, 16, S8, S8, S32, S32, .sat = true),
            false);
    }
    test_wmma(*state,
              (form)FORM(WMMA "s32.u4.u4.s32.satfinite", 8, 8, 32, U4, U4, S32, S32, .sat = true),
              true);
    test_wmma(*state, (form)FORM(WMMA "s32.s4.s4.s32", 8, 8, 32, S4, S4, S32, S32), true);
    test_wmma(*state,
              (form)FORM("wmma.mma.xor.popc.sync.aligned.%s.%s.%s.s32.b1.b1.s32", 8, 8, 128, B1, B1,
                         S32, S32, .xor = true),
              true);
    test_wmma(*state,
              (form)FORM("wmma.mma.and.popc.sync.aligned.%s.%s.%s.s32.b1.b1.s32", 8, 8, 128, B1, B1,
                         S32, S32),
              true);
}

/* Runs last: each row of these shapes ran with each of its types. */
static void test_every_row(void **state) {
    const session *s = *state;
    unsigned missing = 0;
    for (unsigned row = 0; row < PTX_OP_COUNT; row++) {
        const ptx_op *op = ptx_op_get(row);
        bool moves = op->shape == PTX_S_LDMATRIX || op->shape == PTX_S_STMATRIX;
        if (!ptx_shape_has(op->shape, PTX_SHAPE_TENSOR) || moves) /* those: test_ptx_matrix.c */
            continue;
        for (unsigned t = 0; t < PTX_T_COUNT; t++)
            for (unsigned u = 0; u < PTX_T_COUNT; u++) {
                if (!(op->types >> t & 1) || !(op->types2 >> u & 1) || s->seen[row][t][u])
                    continue;
                missing++;
                print_error("%s %s: nothing ran with .%s.%s\n", op->name, op->format,
                            ptx_type_name((ptx_type)t), ptx_type_name((ptx_type)u));
            }
    }
    print_message("%u elements compared\n", s->compared);
    assert_int_equal(missing, 0);
}

static int session_open(void **state) {
    session *s = calloc(1, sizeof *s);
    *state = s;
    ev_error err = {0};
    return !s || !(s->p = calloc(1, sizeof *s->p)) ||
           vm_memory_new(1u << 24, &s->memory, &err) != EV_OK;
}

static int session_close(void **state) {
    session *s = *state;
    vm_memory_free(s->memory);
    free(s->p);
    free(s);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mma_floats),    cmocka_unit_test(test_mma_quads),
        cmocka_unit_test(test_mma_f64),       cmocka_unit_test(test_mma_integers),
        cmocka_unit_test(test_mma_bits),      cmocka_unit_test(test_wmma_floats),
        cmocka_unit_test(test_wmma_integers), cmocka_unit_test(test_every_row),
    };
    return cmocka_run_group_tests(tests, session_open, session_close);
}
