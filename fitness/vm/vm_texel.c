/* Fetches of one lane: from coordinates to elements and their weights, and from elements to
 * results.
 *
 * CUDA C++ Programming Guide, Texture Fetching. A coordinate in elements, x, has the nearest
 * element floor(x). The linear filter reads the elements i = floor(x - 0.5) and i + 1 with the
 * weights 1 - a and a, where a is the fraction of x - 0.5, rounded to 8 bits, so that 1 is among
 * its values. Several dimensions multiply their weights. The guide leaves open how a GPU rounds the
 * sum; here the sum is exact but for its one rounding to the type of the result. */
#include "fitness/vm/vm_texture.h"

#include <math.h>
#include <string.h>

/* ---- coordinates */

/* One or two elements along a dimension. */
typedef struct along {
    unsigned count;
    int64_t index[2];
    bool inside[2];
    double weight[2];
} along;

static int64_t remainder_of(int64_t i, int64_t n) {
    return (i % n + n) % n;
}

/* Element i of a dimension, by the address mode. */
static void put_index(along *a, unsigned k, int64_t i, uint32_t extent, uint8_t mode) {
    int64_t n = extent, last = n - 1;
    a->inside[k] = mode != PTX_ADDRESS_BORDER || (i >= 0 && i < n);
    if (mode == PTX_ADDRESS_WRAP) {
        i = remainder_of(i, n);
    } else if (mode == PTX_ADDRESS_MIRROR) {
        i = remainder_of(i, 2 * n);
        i = i < n ? i : 2 * n - 1 - i;
    } else {
        i = i < 0 ? 0 : i;
        i = i > last ? last : i;
    }
    a->index[k] = i;
}

static void put_nearest(along *a, int64_t i, uint32_t extent, uint8_t mode) {
    a->count = 1;
    a->weight[0] = 1;
    put_index(a, 0, i, extent, mode);
}

/* `at` counts elements; of repeated coordinates it is in the first repetition. */
static void put_along(along *a, double at, int64_t offset, uint32_t extent, uint8_t mode,
                      bool linear) {
    const double most = 1 << 30;
    at = at > -most ? at : -most;
    at = at < most ? at : most;
    if (!linear) {
        put_nearest(a, (int64_t)floor(at) + offset, extent, mode);
        return;
    }
    double low = floor(at - 0.5);
    double fraction = floor((at - 0.5 - low) * 256 + 0.5) / 256;
    a->count = 2;
    for (unsigned k = 0; k < 2; k++) {
        a->weight[k] = k ? fraction : 1 - fraction;
        put_index(a, k, (int64_t)low + k + offset, extent, mode);
    }
}

/* A float coordinate in elements. Repetitions are taken off first, so that no size is too great. */
static double in_elements(const vm_sampler *s, double x, uint32_t extent, uint8_t mode) {
    x = x == x ? x : 0;
    if (!s->normalised)
        return x;
    if (mode == PTX_ADDRESS_WRAP)
        x -= floor(x);
    else if (mode == PTX_ADDRESS_MIRROR)
        x -= 2 * floor(x / 2);
    return (x == x ? x : 0) * extent; /* a wrapped infinity is a NaN here, and counts as 0 */
}

static double float_of(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

/* A fetch of one lane while it is placed. */
typedef struct placing {
    const ptx_insn *ip;
    const vm_texture *t;
    vm_sampler s;
    bool linear;
    const uint32_t *offsets;
} placing;

static void place_along(const placing *p, unsigned dimension, uint32_t word, uint32_t extent,
                        along *a) {
    uint8_t mode = p->t->linear ? PTX_ADDRESS_BORDER : p->s.modes[dimension];
    int64_t offset = (int32_t)p->offsets[dimension];
    if (p->ip->u == PTX_T_s32) {
        bool repeats = mode == PTX_ADDRESS_WRAP || mode == PTX_ADDRESS_MIRROR;
        put_nearest(a, (int32_t)word + offset, extent, repeats ? PTX_ADDRESS_CLAMP : mode);
        return;
    }
    double at = in_elements(&p->s, float_of(word), extent, mode);
    put_along(a, at, offset, extent, mode, p->linear);
}

/* The face that a direction meets, and the coordinates on it (guide, Cubemap Textures). */
static unsigned face_of(const uint32_t *words, double *s, double *t) {
    double x = float_of(words[0]), y = float_of(words[1]), z = float_of(words[2]);
    double ax = fabs(x), ay = fabs(y), az = fabs(z), major;
    unsigned face;
    if (az >= ax && az >= ay) {
        face = signbit(z) ? 5 : 4;
        *s = signbit(z) ? -x : x;
        *t = -y;
        major = az;
    } else if (ay >= ax) {
        face = signbit(y) ? 3 : 2;
        *s = x;
        *t = signbit(y) ? -z : z;
        major = ay;
    } else {
        face = signbit(x) ? 1 : 0;
        *s = signbit(x) ? z : -z;
        *t = -y;
        major = ax;
    }
    *s = (*s / major + 1) / 2;
    *t = (*t / major + 1) / 2;
    return face;
}

/* Up to three dimensions multiply. */
static void multiply(const vm_texture *t, const along *x, const along *y, const along *z,
                     uint64_t slice, vm_footprint *out) {
    unsigned bytes = vm_texture_bytes(t);
    *out = (vm_footprint){.count = x->count * y->count * z->count};
    for (unsigned i = 0; i < out->count; i++) {
        unsigned a = i % x->count, b = i / x->count % y->count, c = i / x->count / y->count;
        out->weight[i] = x->weight[a] * y->weight[b] * z->weight[c];
        bool inside = x->inside[a] && y->inside[b] && z->inside[c];
        out->inside |= (uint32_t)inside << i;
        out->address[i] = t->address + (uint64_t)x->index[a] * bytes +
                          (uint64_t)y->index[b] * t->row_bytes +
                          ((uint64_t)z->index[c] + slice) * t->slice_bytes;
    }
}

static uint64_t layer_of(uint32_t layer, uint32_t layers) {
    return layer < layers ? layer : layers - 1;
}

static void place_cube(const placing *p, const uint32_t *words, vm_footprint *out) {
    bool layered = p->ip->op == PTX_M_GACUBE;
    along x, y, one = {.count = 1, .inside = {true}, .weight = {1}};
    double s, t;
    unsigned face = face_of(words + layered, &s, &t);
    uint64_t layer = layered ? layer_of(words[0], p->t->layers / 6) : 0;
    put_along(&x, in_elements(&p->s, s, p->t->width, PTX_ADDRESS_CLAMP), 0, p->t->width,
              PTX_ADDRESS_CLAMP, p->linear);
    put_along(&y, in_elements(&p->s, t, p->t->width, PTX_ADDRESS_CLAMP), 0, p->t->width,
              PTX_ADDRESS_CLAMP, p->linear);
    multiply(p->t, &x, &y, &one, layer * 6 + face, out);
}

void vm_texture_place_lane(const ptx_insn *ip, const vm_bound *b, const uint32_t *words,
                           vm_footprint *out) {
    bool gather = ptx_op_get(ip->row)->shape == PTX_S_TLD4;
    placing p = {.ip = ip,
                 .t = b->texture,
                 .s = b->sampler,
                 .linear = gather || b->sampler.linear,
                 .offsets = words + PTX_AT_OFFSETS};
    if (ip->op == PTX_M_GCUBE || ip->op == PTX_M_GACUBE) {
        p.s.normalised = true;
        place_cube(&p, words, out);
        return;
    }
    bool layered = ip->op == PTX_M_GA1D || ip->op == PTX_M_GA2D;
    along x, y = {.count = 1, .inside = {true}, .weight = {1}}, z = y;
    const uint32_t *at = words + layered;
    place_along(&p, 0, at[0], p.t->width, &x);
    if (p.t->height)
        place_along(&p, 1, at[1], p.t->height, &y);
    if (p.t->depth)
        place_along(&p, 2, at[2], p.t->depth, &z);
    multiply(p.t, &x, &y, &z, layered ? layer_of(words[0], p.t->layers) : 0, out);
}

/* ---- results */

/* Channels that an element lacks: none of a colour, and opaque. */
static double absent_channel(unsigned c) {
    return c == 3 ? 1 : 0;
}

static double channel_of(const vm_texture *t, const uint8_t *texel, unsigned c) {
    if (c >= t->channels)
        return absent_channel(c);
    double v = ev_type_get(t->channel, texel, c);
    if (!t->as_float)
        return v;
    unsigned bits = (unsigned)ev_type_bytes(t->channel) * 8;
    bool is_signed = t->channel == EV_S8 || t->channel == EV_S16;
    double most = is_signed ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
    v /= most;
    return v < -1 ? -1 : v;
}

static uint32_t put_value(ptx_type type, double v) {
    uint32_t bits = 0;
    if (type == PTX_T_f32)
        ev_type_set(EV_F32, &bits, 0, v);
    else if (type == PTX_T_f16 || type == PTX_T_f16x2)
        ev_type_set(EV_F16, &bits, 0, v);
    else
        bits = fabs(v) < 0x1p62 ? (uint32_t)(int64_t)v : 0; /* a border may be any float */
    return bits;
}

static uint32_t value_of(const ptx_insn *ip, const vm_bound *b, const uint8_t *texel, bool inside,
                         unsigned c) {
    const vm_texture *t = b->texture;
    if (inside && t->channel == EV_F32 && ip->t == PTX_T_f32 && c < t->channels) {
        uint32_t bits; /* a NaN keeps its bits */
        memcpy(&bits, texel + sizeof bits * c, sizeof bits);
        return bits;
    }
    double v = inside ? channel_of(t, texel, c) : (double)b->sampler.border[c];
    return put_value((ptx_type)ip->t, v);
}

static uint32_t filtered(const ptx_insn *ip, const vm_bound *b, const vm_footprint *f,
                         const uint8_t texels[VM_TEXELS][16], unsigned c) {
    double sum = 0;
    for (unsigned i = 0; i < f->count; i++) {
        bool inside = f->inside >> i & 1;
        double v = inside ? channel_of(b->texture, texels[i], c) : (double)b->sampler.border[c];
        sum += f->weight[i] > 0 ? f->weight[i] * v : 0;
    }
    return put_value((ptx_type)ip->t, sum);
}

void vm_texture_blend(const ptx_insn *ip, const vm_bound *b, const vm_footprint *f,
                      const uint8_t texels[VM_TEXELS][16], uint32_t out[4]) {
    static const unsigned around[] = {2, 3, 1, 0}; /* from the lower left, counter-clockwise */
    bool gather = ptx_op_get(ip->row)->shape == PTX_S_TLD4;
    for (unsigned k = 0; k < 4; k++) {
        unsigned i = around[k], c = gather ? (unsigned)ip->bool_op - PTX_M_COMP_R : k;
        if (gather)
            out[k] = value_of(ip, b, texels[i], f->inside >> i & 1, c);
        else if (f->count == 1)
            out[k] = value_of(ip, b, texels[0], f->inside & 1, c);
        else
            out[k] = filtered(ip, b, f, texels, c);
    }
    if (ip->t == PTX_T_f16x2) {
        out[0] |= out[1] << 16;
        out[1] = out[2] | out[3] << 16;
    }
}

/* ---- surfaces */

/* Index i of n places, by the mode outside; false: the access is not made. */
static bool put_edge(uint8_t edge, int64_t n, int64_t *i, bool *outside) {
    if (*i >= 0 && *i < n)
        return true;
    *outside = edge == PTX_M_EDGE_TRAP || n <= 0;
    if (*outside || edge == PTX_M_EDGE_ZERO)
        return false;
    *i = *i < 0 ? 0 : n - 1;
    return true;
}

bool vm_surface_place(const ptx_insn *ip, const vm_texture *t, unsigned bytes,
                      const uint32_t *words, uint64_t *address, bool *outside) {
    bool layered = ip->op == PTX_M_GA1D || ip->op == PTX_M_GA2D;
    const uint32_t *at = words + layered;
    bool scaled = ptx_op_get(ip->row)->shape == PTX_S_SUSTP;
    int64_t x = (int32_t)at[0], y = 0, z = 0, row = (int64_t)t->width * vm_texture_bytes(t);
    int64_t places = (row - bytes) / bytes * bytes + 1; /* of a first byte; the last is aligned */
    *outside = false;
    x *= scaled ? bytes : 1;
    if (!put_edge(ip->rnd, row < bytes ? 0 : places, &x, outside))
        return false;
    if (t->height) {
        y = (int32_t)at[1];
        if (!put_edge(ip->rnd, t->height, &y, outside))
            return false;
    }
    if (t->depth || layered) {
        z = layered ? (int64_t)words[0] : (int32_t)at[2];
        if (!put_edge(ip->rnd, layered ? t->layers : t->depth, &z, outside))
            return false;
    }
    *address = t->address + (uint64_t)x + (uint64_t)y * t->row_bytes + (uint64_t)z * t->slice_bytes;
    return true;
}

/* What a store does not give is zero; integers keep their low bits. */
void vm_surface_format(const vm_texture *t, const uint32_t *words, unsigned count, uint8_t *out) {
    unsigned bytes = (unsigned)ev_type_bytes(t->channel);
    for (unsigned c = 0; c < t->channels; c++) {
        uint32_t word = c < count ? words[c] : 0;
        if (t->channel == EV_F16)
            ev_type_set(EV_F16, out, c, float_of(word));
        else
            memcpy(out + (size_t)c * bytes, &word, bytes); /* little-endian */
    }
}

/* ---- questions */

/* The numbers are those of OpenCL, as PTX has them. */
static uint32_t data_type_of(const vm_texture *t) {
    switch (t->channel) {
    case EV_U8:
        return t->as_float ? 0x10d2 : 0x10da;
    case EV_S8:
        return t->as_float ? 0x10d0 : 0x10d7;
    case EV_U16:
        return t->as_float ? 0x10d3 : 0x10db;
    case EV_S16:
        return t->as_float ? 0x10d1 : 0x10d8;
    case EV_U32:
        return 0x10dc;
    case EV_S32:
        return 0x10d9;
    case EV_F16:
        return 0x10dd;
    default:
        return 0x10de;
    }
}

static uint32_t order_of(const vm_texture *t) {
    if (t->channels == 1)
        return 0x10b0;
    return t->channels == 2 ? 0x10b2 : 0x10b5;
}

uint32_t vm_texture_query(uint8_t query, const vm_bound *b) {
    const vm_texture *t = b->texture;
    switch (query) {
    case PTX_M_Q_WIDTH:
        return t->width;
    case PTX_M_Q_HEIGHT:
        return t->height;
    case PTX_M_Q_DEPTH:
        return t->depth;
    case PTX_M_Q_DATA_TYPE:
        return data_type_of(t);
    case PTX_M_Q_ORDER:
        return order_of(t);
    case PTX_M_Q_NORMALIZED:
        return b->sampler.normalised;
    case PTX_M_Q_LAYERS:
        return t->cube ? t->layers / 6 : t->layers;
    case PTX_M_Q_LEVELS:
    case PTX_M_Q_SAMPLES:
        return 1;
    case PTX_M_Q_UNNORMALIZED:
        return !b->sampler.normalised;
    case PTX_M_Q_FILTER:
        return b->sampler.linear;
    case PTX_M_Q_LAYOUT:
        return t->linear;
    default:
        return b->sampler.modes[query - PTX_M_Q_MODE_0];
    }
}
