/* Runs each form of tensor.def on two devices and compares the registers bit for bit. */
#include "tests/gpu/tensor.h"

#include "base/hash.h"
#include "base/str.h"

#include <string.h>

#define LANES 32
#define SLOT 8
#define MOST 16 /* registers of all operands */

typedef struct form {
    const char *a_type;
    int a, b;
    const char *c_type;
    int c;
    char values;
    int sm;
    const char *text;
} form;

static const form FORMS[] = {
#define TENSOR(a_type, a, b, c_type, c, values, sm, text)                                          \
    {a_type, a, b, c_type, c, values, sm, text},
#include "tests/gpu/tensor.def"
#undef TENSOR
};

/* ---- the kernel ---- */

static void put_list(ev_str *ptx, char name, int count) {
    ev_str_char(ptx, '{');
    for (int i = 0; i < count; i++)
        ev_str_printf(ptx, "%s%%%c%d", i > 0 ? ", " : "", name, i);
    ev_str_char(ptx, '}');
}

static void put_loads(ev_str *ptx, char name, const char *type, int count, int *slot) {
    ev_str_printf(ptx, ".reg .%s %%%c<%d>;\n", type, name, count);
    for (int i = 0; i < count; i++)
        ev_str_printf(ptx, "ld.global.%s %%%c%d, [%%in+%d];\n", type, name, i, (*slot)++ * SLOT);
}

static void put_kernel(const form *f, ev_str *ptx) {
    int slot = 0, slots = f->a + f->b + f->c;
    ev_str_printf(ptx,
                  ".version 8.0\n.target sm_%d\n.address_size 64\n"
                  ".visible .entry tensor(.param .u64 input, .param .u64 output)\n{\n"
                  ".reg .b32 %%lane;\n.reg .b64 %%in, %%out;\n.reg .%s %%d<%d>;\n"
                  "mov.u32 %%lane, %%tid.x;\nld.param.u64 %%in, [input];\n"
                  "mad.wide.u32 %%in, %%lane, %d, %%in;\nld.param.u64 %%out, [output];\n"
                  "mad.wide.u32 %%out, %%lane, %d, %%out;\n",
                  f->sm, f->c_type, f->c, slots * SLOT, f->c * SLOT);
    put_loads(ptx, 'a', f->a_type, f->a, &slot);
    put_loads(ptx, 'b', f->a_type, f->b, &slot);
    put_loads(ptx, 'c', f->c_type, f->c, &slot);
    ev_str_printf(ptx, "%s ", f->text);
    const char names[] = "dabc";
    const int counts[] = {f->c, f->a, f->b, f->c};
    for (int i = 0; i < 4; i++) {
        put_list(ptx, names[i], counts[i]);
        ev_str_append(ptx, i < 3 ? ", " : ";\n");
    }
    for (int i = 0; i < f->c; i++)
        ev_str_printf(ptx, "st.global.%s [%%out+%d], %%d%d;\n", f->c_type, i * SLOT, i);
    ev_str_append(ptx, "ret;\n}\n");
}

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

static uint64_t sum_bits(const form *f, uint64_t random) {
    if (strcmp(f->c_type, "f64") == 0)
        return double_bits(random);
    if (strcmp(f->c_type, "f32") == 0)
        return float_bits(random);
    return f->values == 'h' ? half_bits(random) | half_bits(random >> 20) << 16
                            : (uint64_t)((uint32_t)(random % 4096) - 2048u);
}

static void fill(const form *f, uint64_t *to) {
    int slots = f->a + f->b + f->c;
    for (int i = 0; i < LANES * slots; i++) {
        uint64_t random = ev_mix64((uint64_t)i + 1);
        to[i] = i % slots < f->a + f->b ? factor_bits(f->values, random) : sum_bits(f, random);
    }
}

/* ---- running ---- */

static ev_status run(device *d, const form *f, uint64_t *result, ev_error *err) {
    uint64_t values[LANES * MOST], params[2];
    size_t in = (size_t)(LANES * SLOT) * (size_t)(f->a + f->b + f->c);
    size_t out = (size_t)(LANES * SLOT) * (size_t)f->c;
    device_buffer input = 0, output = 0;
    device_kernel *k = NULL;
    device_outcome ended;
    ev_str ptx = EV_STR_EMPTY;
    put_kernel(f, &ptx);
    fill(f, values);
    device_clear(d);
    ev_status status = device_alloc(d, in, VM_BUFFER_IN, "input", &input, err);
    if (status == EV_OK)
        status = device_alloc(d, out, VM_BUFFER_INOUT, "output", &output, err);
    if (status == EV_OK)
        status = device_write(d, input, 0, values, in, err);
    memset(result, 0, out);
    if (status == EV_OK)
        status = device_write(d, output, 0, result, out, err);
    if (status == EV_OK)
        status = device_load(d, ev_str_text(&ptx), ptx.length, "tensor", &k, err);
    ev_str_free(&ptx);
    if (status == EV_OK) {
        params[0] = device_address(d, input);
        params[1] = device_address(d, output);
        device_launch l = {.grid = {1, 1, 1}, .block = {LANES, 1, 1}, .params = params};
        status = device_run(d, k, &l, &ended, err);
    }
    device_unload(k);
    if (status == EV_OK && !ended.ok)
        status = ev_fail(err, EV_BAD, "%s", ended.fault.message);
    return status == EV_OK ? device_read(d, output, 0, result, out, err) : status;
}

static ev_status compare(device *d, device *vm, const form *f, json_t *all, ev_error *err) {
    uint64_t here[LANES * MOST], there[LANES * MOST];
    EV_TRY(run(vm, f, there, err));
    ev_error why = {0};
    ev_status status = run(d, f, here, &why);
    if (status == EV_INFRA) {
        *err = why;
        return status;
    }
    size_t bytes = (size_t)(LANES * SLOT) * (size_t)f->c;
    const char *list = status != EV_OK                   ? "refused"
                       : memcmp(here, there, bytes) != 0 ? "differed"
                                                         : NULL;
    if (list != NULL)
        (void)json_array_append_new(json_object_get(all, list), json_string(f->text));
    return EV_OK;
}

json_t *tensor_compare(device *d, device *vm, ev_error *err) {
    json_t *all = json_pack("{s:i, s:[], s:[]}", "forms", 0, "differed", "refused");
    int forms = 0;
    for (size_t i = 0; i < sizeof FORMS / sizeof FORMS[0]; i++) {
        if (FORMS[i].sm > device_properties_of(d)->sm)
            continue;
        if (compare(d, vm, &FORMS[i], all, err) != EV_OK) {
            json_decref(all);
            return NULL;
        }
        forms++;
    }
    (void)json_object_set_new(all, "forms", json_integer(forms));
    return all;
}
