/* Plans of goldens: the module's text, the launches and their values. */
#include "tests/fitness/ptx/golden_plan.h"

#include "fitness/vm/vm.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USUAL_TARGET ".target sm_90"
#define UNTOUCHED 0xa5a5a5a5a5a5a5a4u /* what registers hold that a case gives no value */

/* ---- what a lane holds before and afterwards */

static const golden_operand *find_operand(const golden_operand *list, size_t count,
                                          const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

const golden_case *golden_case_of(const golden_plan *p, size_t lane) {
    return p->by_case ? &p->first[p->guarded ? lane / 2 : lane] : p->first;
}

const golden_fault *golden_fault_of(const golden_plan *p, size_t lane) {
    const golden_fault *fault = golden_case_of(p, lane)->fault;
    return fault && fault->guarded_only && !p->guarded ? NULL : fault;
}

const golden_value *golden_value_of(const golden_plan *p, const golden_slot *s, size_t lane,
                                    bool after) {
    const golden_case *c = golden_case_of(p, lane);
    const golden_operand *o = after ? find_operand(c->out, c->out_count, s->name)
                                    : find_operand(c->in, c->in_count, s->name);
    if (!o)
        return NULL;
    return &o->values[o->count == 1 ? 0 : lane];
}

uint64_t golden_mask(unsigned bits) {
    return bits >= 64 ? UINT64_MAX : (1ull << bits) - 1;
}

uint64_t golden_bits_before(const golden_plan *p, const golden_slot *s, size_t lane) {
    const golden_value *v = golden_value_of(p, s, lane, false);
    return (v ? v->either[0] : UNTOUCHED) & golden_mask(s->bits);
}

static bool is_nan(uint64_t bits, golden_kind kind) {
    static const struct {
        uint64_t magnitude, infinity;
    } formats[] = {
        [GOLDEN_NAN_F16] = {0x7fff, 0x7c00},
        [GOLDEN_NAN_BF16] = {0x7fff, 0x7f80},
        [GOLDEN_NAN_32] = {0x7fffffff, 0x7f800000},
        [GOLDEN_NAN_64] = {0x7fffffffffffffff, 0x7ff0000000000000},
    };
    return (bits & formats[kind].magnitude) > formats[kind].infinity;
}

bool golden_value_fits(const golden_value *v, uint64_t got) {
    if (v->kind == GOLDEN_UNWRITTEN)
        return false;
    if (v->kind != GOLDEN_EXACT)
        return is_nan(got, v->kind);
    for (unsigned i = 0; i < v->count; i++) {
        uint64_t far = got > v->either[i] ? got - v->either[i] : v->either[i] - got;
        if (far <= v->ulps)
            return true;
    }
    return false;
}

/* ---- the module of an instruction */

static void add_slots(golden_plan *p, const golden_operand *list, size_t count, bool after) {
    for (size_t i = 0; i < count; i++) {
        golden_slot *s = NULL;
        for (size_t k = 0; k < p->slot_count; k++)
            if (strcmp(p->slots[k].name, list[i].name) == 0)
                s = &p->slots[k];
        if (!s) {
            assert(p->slot_count < GOLDEN_REGISTERS);
            s = &p->slots[p->slot_count++];
            *s = (golden_slot){.name = list[i].name};
        }
        for (size_t k = 0; k < list[i].count && !s->bits; k++)
            s->bits = list[i].values[k].bits;
        *(after ? &s->out : &s->in) = &list[i];
    }
}

static const char *type_of(unsigned bits) {
    if (bits == 1)
        return "pred";
    if (bits == 16)
        return "b16";
    if (bits == 32)
        return "b32";
    return "b64";
}

static void put_registers(FILE *f, const golden_plan *p) {
    fputs(".reg .pred %guard, %z<4>; .reg .b16 %h<4>; .reg .b32 %t<8>, %x<16>, %lane;\n"
          ".reg .b64 %w<8>, %in, %out, %m;\n",
          f);
    for (size_t i = 0; i < p->slot_count; i++)
        fprintf(f, ".reg .%s %%%s;\n", type_of(p->slots[i].bits), p->slots[i].name);
}

/* The number of the thread in the grid, blocks in order, from its coordinates. */
static void put_lane(FILE *f) {
    static const char *const names[] = {"tid.x",   "tid.y",    "tid.z",    "ntid.x",
                                        "ntid.y",  "ntid.z",   "ctaid.x",  "ctaid.y",
                                        "ctaid.z", "nctaid.x", "nctaid.y", "nctaid.z"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        fprintf(f, "mov.u32 %%x%zu, %%%s;\n", i, names[i]);
    fputs("mad.lo.u32 %lane, %x8, %x10, %x7;\n"
          "mad.lo.u32 %lane, %lane, %x9, %x6;\n"
          "mad.lo.u32 %lane, %lane, %x5, %x2;\n"
          "mad.lo.u32 %lane, %lane, %x4, %x1;\n"
          "mad.lo.u32 %lane, %lane, %x3, %x0;\n",
          f);
}

static void put_loads(FILE *f, const golden_plan *p) {
    fprintf(f,
            "ld.param.u64 %%m, [memory];\nld.param.u64 %%in, [input];\n"
            "mad.wide.u32 %%in, %%lane, %zu, %%in;\nld.param.u64 %%out, [output];\n"
            "mad.wide.u32 %%out, %%lane, %zu, %%out;\n",
            p->slot_count * GOLDEN_SLOT, p->slot_count * GOLDEN_SLOT);
    for (size_t i = 0; i < p->slot_count; i++) {
        const golden_slot *s = &p->slots[i];
        if (s->bits == 1)
            fprintf(f, "ld.global.b32 %%x0, [%%in+%zu];\nsetp.ne.b32 %%%s, %%x0, 0;\n",
                    i * GOLDEN_SLOT, s->name);
        else
            fprintf(f, "ld.global.b%u %%%s, [%%in+%zu];\n", s->bits, s->name, i * GOLDEN_SLOT);
    }
    fputs("and.b32 %x0, %lane, 1;\nsetp.eq.b32 %guard, %x0, 0;\n", f);
}

static void put_stores(FILE *f, const golden_plan *p) {
    for (size_t i = 0; i < p->slot_count; i++) {
        const golden_slot *s = &p->slots[i];
        if (s->bits == 1)
            fprintf(f, "selp.b32 %%x0, 1, 0, %%%s;\nst.global.b32 [%%out+%zu], %%x0;\n", s->name,
                    i * GOLDEN_SLOT);
        else
            fprintf(f, "st.global.b%u [%%out+%zu], %%%s;\n", s->bits, i * GOLDEN_SLOT, s->name);
    }
}

char *golden_plan_text(const golden_plan *p) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    assert(f != NULL);
    const char *body = p->insn->text;
    bool complete = body[strlen(body) - 1] == ':' || body[0] == '{';
    fprintf(f, "%s\n.address_size 64\n%s",
            p->insn->head ? p->insn->head : ".version 8.5 " USUAL_TARGET, p->insn->module_text);
    fputs(".visible .entry golden(.param .u64 input, .param .u64 output, .param .u64 memory, "
          ".param .align 8 .b8 bytes[16])\n{\n",
          f);
    put_registers(f, p);
    put_lane(f);
    put_loads(f, p);
    fprintf(f, "/* the golden */ %s%s%s\n", p->guarded ? "@%guard " : "", body,
            complete ? "" : ";");
    put_stores(f, p);
    fputs("ret;\n}\n", f);
    fclose(f);
    return text;
}

char *golden_plan_text_for(const golden_plan *p, int sm) {
    char *text = golden_plan_text(p), *at = strstr(text, USUAL_TARGET);
    ev_error ignored;
    if (at && sm < 90 && at < strstr(text, ".visible"))
        memcpy(at + strlen(".target sm_"), (char[]){(char)('0' + sm / 10), (char)('0' + sm % 10)},
               2);
    (void)vm_text_lower(text, strlen(text), &ignored); /* the device says why it is refused */
    return text;
}

/* ---- a launch */

size_t golden_memory_bytes(const golden_operand *o) {
    size_t bytes = 0;
    for (size_t i = 0; i < o->count; i++)
        bytes += o->values[i].bits / 8u;
    return bytes;
}

/* Little-endian, as the device has it. */
void golden_memory_fill(const golden_operand *o, uint8_t *to) {
    for (size_t i = 0; i < o->count; i++) {
        memcpy(to, &o->values[i].either[0], o->values[i].bits / 8u);
        to += o->values[i].bits / 8u;
    }
}

void golden_plan_fill(const golden_plan *p, uint8_t *to) {
    for (size_t lane = 0; lane < p->lanes; lane++)
        for (size_t i = 0; i < p->slot_count; i++) {
            uint64_t v = golden_bits_before(p, &p->slots[i], lane);
            memcpy(to + (lane * p->slot_count + i) * GOLDEN_SLOT, &v, GOLDEN_SLOT);
        }
}

size_t golden_plan_bytes(const golden_plan *p) {
    return p->lanes * p->slot_count * GOLDEN_SLOT;
}

void golden_plan_shape(const golden_plan *p, uint32_t grid[3], uint32_t block[3]) {
    const golden_case *c = p->first;
    size_t blocks = (size_t)c->grid[0] * c->grid[1] * c->grid[2];
    memcpy(grid, c->grid, sizeof c->grid);
    memcpy(block, c->block, sizeof c->block);
    if (!c->block[0])
        block[0] = (uint32_t)(p->lanes / blocks);
}

golden_params golden_plan_params(uint64_t input, uint64_t output, uint64_t memory) {
    golden_params params = {.input = input, .output = output, .memory = memory};
    for (unsigned i = 0; i < sizeof params.bytes; i++)
        params.bytes[i] = (uint8_t)(0xf0 + i);
    return params;
}

/* ---- an instruction's plans */

static size_t lanes_of(const golden_case *c) {
    size_t lanes =
        (size_t)c->block[0] * c->block[1] * c->block[2] * c->grid[0] * c->grid[1] * c->grid[2];
    for (size_t i = 0; i < c->in_count + c->out_count && !c->block[0]; i++) {
        const golden_operand *o = i < c->in_count ? &c->in[i] : &c->out[i - c->in_count];
        if (o->count > lanes)
            lanes = o->count;
    }
    return lanes ? lanes : 1;
}

/* Every list must have a value a lane, and every value the width of its register. */
static bool plan_is_sound(const golden_plan *p) {
    for (size_t n = 0; n < p->cases; n++) {
        const golden_case *c = &p->first[n];
        for (size_t i = 0; i < c->in_count + c->out_count; i++) {
            const golden_operand *o = i < c->in_count ? &c->in[i] : &c->out[i - c->in_count];
            const golden_slot *s = NULL;
            for (size_t k = 0; k < p->slot_count; k++)
                if (strcmp(p->slots[k].name, o->name) == 0)
                    s = &p->slots[k];
            if (!s || (o->count != 1 && o->count != p->lanes))
                return false;
            for (size_t k = 0; k < o->count; k++)
                if (o->values[k].kind != GOLDEN_UNWRITTEN && o->values[k].bits != s->bits)
                    return false;
        }
    }
    return true;
}

static void make_plans(const golden_insn *insn, size_t from, size_t count, golden_plan_fn *each,
                       void *context) {
    golden_plan p = {.insn = insn, .first = &insn->cases[from], .cases = count};
    p.by_case = !p.first->shaped;
    p.lanes = p.by_case ? count : lanes_of(p.first);
    add_slots(&p, p.first->in, p.first->in_count, false);
    add_slots(&p, p.first->out, p.first->out_count, true);
    bool is_sound = p.lanes <= GOLDEN_LANES && plan_is_sound(&p);
    each(context, &p, is_sound);
    if (is_sound && p.by_case && !strpbrk(insn->text, ";@:{")) {
        p.guarded = true;
        p.lanes *= 2;
        each(context, &p, true);
    }
}

void golden_each_plan(const golden_insn *insn, golden_plan_fn *each, void *context) {
    size_t from = 0;
    while (from < insn->case_count) {
        size_t count = 1;
        while (!insn->cases[from].shaped && from + count < insn->case_count &&
               !insn->cases[from + count].shaped && count < GOLDEN_LANES / 2)
            count++;
        make_plans(insn, from, count, each, context);
        from += count;
    }
}
