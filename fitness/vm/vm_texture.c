/* Textures and surfaces of a memory: the list of handles, and what instructions may use. */
#include "fitness/vm/vm_texture.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

/* A handle is the index of its place, below bits that hash when it was made: a number that a kernel
 * made up, or that was released, is none. */
#define INDEX_BITS 20
#define HANDLE_MARK (UINT64_C(1) << 63)

static uint64_t handle_of(uint32_t index, uint32_t serial) {
    uint64_t hash = ev_mix64(serial + UINT64_C(0x7e87e1));
    return HANDLE_MARK | (hash & ~(HANDLE_MARK | ((UINT64_C(1) << INDEX_BITS) - 1))) | index;
}

static vm_texture_place *place_of(const vm_memory *m, uint64_t handle) {
    uint64_t index = handle & ((UINT64_C(1) << INDEX_BITS) - 1);
    bool known = handle && index < m->texture_count && m->textures[index].handle == handle;
    return known ? &m->textures[index] : NULL;
}

const vm_texture *vm_texture_get(const vm_memory *m, uint64_t handle) {
    const vm_texture_place *p = place_of(m, handle);
    return p ? &p->texture : NULL;
}

bool vm_texture_release(vm_memory *m, uint64_t handle) {
    vm_texture_place *p = place_of(m, handle);
    if (p)
        p->handle = 0;
    return p != NULL;
}

/* ---- making one */

static uint64_t at_least(uint64_t n) {
    return n ? n : 1;
}

static ev_status check_format(const vm_texture *t, ev_error *err) {
    bool known = t->channel == EV_U8 || t->channel == EV_S8 || t->channel == EV_U16 ||
                 t->channel == EV_S16 || t->channel == EV_U32 || t->channel == EV_S32 ||
                 t->channel == EV_F16 || t->channel == EV_F32;
    if (!known)
        return ev_fail(err, EV_BAD, "a texture of .%s: give u8, s8, u16, s16, u32, s32, f16 or f32",
                       ev_type_name(t->channel));
    if (t->channels != 1 && t->channels != 2 && t->channels != 4)
        return ev_fail(err, EV_BAD, "a texture of %u channels: give 1, 2 or 4", t->channels);
    return EV_OK;
}

static ev_status check_shape(const vm_memory *m, const vm_texture *t, ev_error *err) {
    unsigned bytes = vm_texture_bytes(t);
    uint64_t slices = at_least(t->depth) * at_least(t->layers), rows = at_least(t->height);
    uint64_t row = (uint64_t)t->width * bytes;
    if (!t->width || (t->cube && (!t->layers || t->layers % 6 || t->width != t->height)) ||
        (t->depth && t->layers))
        return ev_fail(err, EV_BAD,
                       "a texture of %u x %u x %u elements and %u layers: give at "
                       "least one element, and a square and 6 faces of a cube",
                       t->width, t->height, t->depth, t->layers);
    if (t->address % bytes || t->row_bytes % bytes || t->slice_bytes % bytes ||
        (t->height && t->row_bytes < row) || (slices > 1 && t->slice_bytes < row))
        return ev_fail(err, EV_BAD,
                       "a texture whose rows of %llu bytes are %llu bytes apart: give a "
                       "multiple of the %u bytes of an element, and no less",
                       (unsigned long long)row, (unsigned long long)t->row_bytes, bytes);
    uint64_t most = UINT64_C(1) << 42;
    bool fits = t->row_bytes < most / rows && t->slice_bytes < most / slices;
    uint64_t span = fits ? (slices - 1) * t->slice_bytes + (rows - 1) * t->row_bytes + row : 0;
    if (!fits || !vm_memory_find(m, t->address, span))
        return ev_fail(err, EV_BAD, "a texture of %llu bytes at %#llx: give a buffer that holds it",
                       (unsigned long long)span, (unsigned long long)t->address);
    return EV_OK;
}

void vm_sampler_settle(const vm_texture *t, vm_sampler *s) {
    bool stays = t->channel != EV_F16 && t->channel != EV_F32 && !t->as_float;
    s->linear = s->linear && !stays && !t->linear;
    if (t->linear)
        memset(s->border, 0, sizeof s->border);
    for (unsigned i = 0; i < 3; i++) {
        bool repeats = s->modes[i] == PTX_ADDRESS_WRAP || s->modes[i] == PTX_ADDRESS_MIRROR;
        if (repeats && !s->normalised)
            s->modes[i] = PTX_ADDRESS_CLAMP;
    }
}

static void settle(vm_texture *t) {
    bool integer = t->channel != EV_F16 && t->channel != EV_F32;
    t->as_float = t->as_float && integer && ev_type_bytes(t->channel) < 4;
    vm_sampler_settle(t, &t->sampler);
}

static uint32_t free_place(const vm_memory *m) {
    for (uint32_t i = 0; i < m->texture_count; i++)
        if (!m->textures[i].handle)
            return i;
    return m->texture_count;
}

ev_status vm_texture_new(vm_memory *m, const vm_texture *texture, uint64_t *handle, ev_error *err) {
    EV_TRY(check_format(texture, err));
    EV_TRY(check_shape(m, texture, err));
    uint32_t at = free_place(m);
    if (at >> INDEX_BITS)
        return ev_fail(err, EV_BAD, "%u textures: release some", at);
    if (at == m->texture_capacity) {
        uint32_t wanted = at ? at * 2 : 16;
        vm_texture_place *bigger = realloc(m->textures, wanted * sizeof *bigger);
        if (!bigger)
            return ev_fail_memory(err, wanted * sizeof *bigger);
        m->textures = bigger;
        m->texture_capacity = wanted;
    }
    m->textures[at] =
        (vm_texture_place){.handle = handle_of(at, ++m->texture_serial), .texture = *texture};
    settle(&m->textures[at].texture);
    if (at == m->texture_count)
        m->texture_count++;
    *handle = m->textures[at].handle;
    return EV_OK;
}

/* ---- what a kernel's number names */

/* The contents of an opaque variable at an address; 0: there is none. */
static uint64_t variable_at(const vm_state *s, uint64_t address) {
    const vm_module *m = s->module;
    uint64_t offset = address - s->globals, value;
    if (offset >= m->global_bytes)
        return 0;
    for (const ptx_var *v = m->variables; v; v = v->next)
        if (v->opaque && v->space == VM_SPACE_GLOBAL && offset >= v->offset &&
            offset - v->offset < v->bytes && (offset - v->offset) % sizeof value == 0) {
            memcpy(&value, s->memory->arena + (address - VM_GLOBAL_BASE), sizeof value);
            return value;
        }
    return 0;
}

static bool sampler_of(uint64_t state, vm_sampler *out) {
    uint64_t bits = state ^ PTX_SAMPLER_TAG;
    if (bits >> (PTX_SAMPLER_MODES + 6))
        return false;
    *out = (vm_sampler){.linear = bits & PTX_SAMPLER_LINEAR,
                        .normalised = !(bits & PTX_SAMPLER_UNNORMALIZED)};
    for (unsigned i = 0; i < 3; i++)
        out->modes[i] = bits >> (PTX_SAMPLER_MODES + 2 * i) & 3;
    return true;
}

bool vm_sampler_find(const vm_state *s, uint64_t value, vm_sampler *out) {
    return sampler_of(value, out) || sampler_of(variable_at(s, value), out);
}

bool vm_texture_find(const vm_state *s, uint64_t value, vm_bound *out) {
    const vm_texture_place *p = place_of(s->memory, value);
    if (!p)
        p = place_of(s->memory, variable_at(s, value));
    if (p)
        *out = (vm_bound){.texture = &p->texture, .sampler = p->texture.sampler};
    return p != NULL;
}

static bool fits_geometry(uint8_t geometry, const vm_texture *t) {
    bool flat = !t->depth && !t->layers;
    switch (geometry) {
    case PTX_M_G1D:
        return flat && !t->height;
    case PTX_M_G2D:
        return flat && t->height;
    case PTX_M_G3D:
        return t->depth != 0;
    case PTX_M_GA1D:
        return t->layers && !t->height;
    case PTX_M_GA2D: /* surfaces count the faces of cubes */
        return t->layers && t->height && (!t->cube || t->surface);
    case PTX_M_GCUBE:
        return t->cube && t->layers == 6;
    default:
        return t->cube;
    }
}

/* Whether elements of the texture become results of a type. */
static bool fits_type(const ptx_insn *ip, const vm_texture *t) {
    bool floats = t->channel == EV_F16 || t->channel == EV_F32 || t->as_float;
    bool wanted = ip->t != PTX_T_u32 && ip->t != PTX_T_s32;
    return floats == wanted;
}

const char *vm_texture_refuses(const ptx_insn *ip, const vm_texture *t) {
    uint8_t shape = ptx_op_get(ip->row)->shape;
    bool fetch = shape == PTX_S_TEX || shape == PTX_S_TLD4;
    if (fetch == t->surface)
        return fetch ? "a surface where a texture is needed"
                     : "a texture where a surface is needed";
    if (!fits_geometry(ip->op, t))
        return "a texture or surface of another geometry than the instruction's";
    if (fetch && !fits_type(ip, t))
        return "a fetch of floats from integers, or of integers from floats";
    if (fetch && t->linear && ip->u != PTX_T_s32)
        return "a fetch by floats from plain memory, which integers read (tex1Dfetch)";
    return NULL;
}
