/* The tables of PTX as data: rows, types, modifiers, special registers, and look-ups by name. */
#include "fitness/ptx/ptx.h"
#include "fitness/ptx/ptx_lists.h"

#include <string.h>

#define BIT(T, dummy) | (1u << PTX_T_##T)

const ptx_op ptx_ops[PTX_OP_COUNT] = {
#define VM_PIPE_FLOAT PTX_PIPE_FLOAT
#define VM_PIPE_CONV PTX_PIPE_CONV
#define VM_PIPE_MEMORY PTX_PIPE_MEMORY
#define PTX_OP(id, name, format, types, types2, pattern, pipe, ptx, sm, shape, handlers, expr)     \
    [PTX_OP_##id] = {name,                                                                         \
                     format,                                                                       \
                     pattern,                                                                      \
                     #expr,                                                                        \
                     0 PTX_LIST_##types(BIT, 0),                                                   \
                     0 PTX_LIST_##types2(BIT, 0),                                                  \
                     VM_PIPE_##pipe,                                                               \
                     {ptx, sm},                                                                    \
                     PTX_S_##shape},
#include "fitness/ptx/ptx_ops.def"
#undef PTX_OP
};

const uint8_t ptx_shape_traits[] = {
#define PTX_SHAPE(id, traits) traits,
#include "fitness/ptx/ptx_shapes.def"
#undef PTX_SHAPE
};

const ptx_type_row ptx_types[PTX_T_COUNT] = {
#define PTX_TYPE(id, bits, kind) {#id, bits, #kind[0]},
#include "fitness/ptx/ptx_types.def"
#undef PTX_TYPE
};

typedef struct mod_row {
    const char *text;
    ptx_group group;
} mod_row;

static const mod_row mods[PTX_M_COUNT] = {
    [PTX_M_NONE] = {"", PTX_G_COUNT},
#define PTX_MOD(group, id, text) [PTX_M_##id] = {text, PTX_G_##group},
#include "fitness/ptx/ptx_mods.def"
#undef PTX_MOD
};

/* Each modifier names its group again: the last one stands. */
#pragma GCC diagnostic push
#ifdef __clang__
#pragma GCC diagnostic ignored "-Winitializer-overrides"
#else
#pragma GCC diagnostic ignored "-Woverride-init"
#endif
static const char *const group_names[PTX_G_COUNT] = {
#define PTX_MOD(group, id, text) [PTX_G_##group] = #group,
#include "fitness/ptx/ptx_mods.def"
#undef PTX_MOD
};
#pragma GCC diagnostic pop

typedef struct sreg_row {
    const char *text;
    uint8_t bits;
    bool dynamic;
    ptx_need need;
} sreg_row;

static const sreg_row sregs[PTX_SR_COUNT] = {
#define PTX_SREG(id, text, bits, dynamic, ptx, sm) {text, bits, dynamic, {ptx, sm}},
#include "fitness/ptx/ptx_sregs.def"
#undef PTX_SREG
};

static bool equal(const char *name, const char *text, size_t length) {
    return *name == *text && strncmp(name, text, length) == 0 && name[length] == 0;
}

const char *ptx_mod_text(ptx_mod m) {
    return mods[m].text;
}
ptx_group ptx_mod_group(ptx_mod m) {
    return mods[m].group;
}
const char *ptx_group_name(ptx_group g) {
    return group_names[g];
}
const char *ptx_sreg_text(ptx_sreg s) {
    return sregs[s].text;
}
unsigned ptx_sreg_bits(ptx_sreg s) {
    return sregs[s].bits;
}
bool ptx_sreg_dynamic(ptx_sreg s) {
    return sregs[s].dynamic;
}
ptx_need ptx_sreg_need(ptx_sreg s) {
    return sregs[s].need;
}

ptx_type ptx_type_find(const char *text, size_t length) {
    for (unsigned t = PTX_T_none + 1; t < PTX_T_COUNT; t++)
        if (equal(ptx_types[t].name, text, length))
            return (ptx_type)t;
    return PTX_T_none;
}

bool ptx_group_find(const char *text, size_t length, ptx_group *out) {
    for (unsigned g = 0; g < PTX_G_COUNT; g++)
        if (equal(group_names[g], text, length)) {
            *out = (ptx_group)g;
            return true;
        }
    return false;
}

ptx_mod ptx_mod_next(ptx_mod after, const char *text, size_t length) {
    for (unsigned m = (unsigned)after + 1; m < PTX_M_COUNT; m++)
        if (mods[m].text[0] == *text && equal(mods[m].text, text, length))
            return (ptx_mod)m;
    return PTX_M_NONE;
}

ptx_mod ptx_mod_find(ptx_group group, const char *text, size_t length) {
    ptx_mod m = PTX_M_NONE;
    do
        m = ptx_mod_next(m, text, length);
    while (m && mods[m].group != group);
    return m;
}

bool ptx_sreg_find(const char *text, size_t length, ptx_sreg *out) {
    for (unsigned s = 0; s < PTX_SR_COUNT; s++)
        if (equal(sregs[s].text, text, length)) {
            *out = (ptx_sreg)s;
            return true;
        }
    return false;
}
