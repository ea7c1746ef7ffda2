/* Moves the bytes of an access between memory and registers. */

#define LOAD_AS(type, p) (*(const type *)(const void *)(p))
#define STORE_AS(type, p, v) (*(type *)(void *)(p) = (type)(v))

/* A vector of four words. */
typedef uint32_t words4 __attribute__((vector_size(16), aligned(4), may_alias));

static ALWAYS_INLINE words4 words_at(const void *p) {
    return *(const words4 *)p;
}
static ALWAYS_INLINE words4 pairs_at(const void *p, const void *q) {
    typedef uint64_t pairs2 __attribute__((vector_size(16)));
    return (words4)(pairs2){LOAD_AS(uint64_t, p), LOAD_AS(uint64_t, q)};
}

/* Transposes a 4 x 4 square of words. */
static ALWAYS_INLINE void turn_square(words4 *v) {
    words4 a = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5);
    words4 b = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5);
    words4 c = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7);
    words4 d = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
    v[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
    v[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
    v[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
    v[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
}

static inline uint64_t load_element(const uint8_t *p, unsigned bytes, bool is_signed) {
    switch (bytes) {
    case 1:
        return is_signed ? (uint64_t)(int64_t)(int8_t)*p : *p;
    case 2:
        return is_signed ? (uint64_t)(int64_t)LOAD_AS(int16_t, p) : LOAD_AS(uint16_t, p);
    case 4:
        return is_signed ? (uint64_t)(int64_t)LOAD_AS(int32_t, p) : LOAD_AS(uint32_t, p);
    default:
        return LOAD_AS(uint64_t, p);
    }
}
static inline void store_element(uint8_t *p, unsigned bytes, uint64_t v) {
    switch (bytes) {
    case 1:
        *p = (uint8_t)v;
        return;
    case 2:
        STORE_AS(uint16_t, p, v);
        return;
    case 4:
        STORE_AS(uint32_t, p, v);
        return;
    default:
        STORE_AS(uint64_t, p, v);
    }
}

static __attribute__((noinline)) void load_lanes(const vm_warp *w, const ptx_insn *ip,
                                                 uint8_t *regs, const vm_access *x, uint32_t mask) {
    bool is_signed = ip->flags & PTX_F_SIGNED;
    if (ip->bytes == 4 && ip->count == 1 && !ip->wide && x->space != VM_SPACE_LOCAL) {
        uint32_t *d = SLOT(uint32_t, ip->v[0]);
        for (uint32_t left = mask; left; left &= left - 1) {
            unsigned i = (unsigned)__builtin_ctz(left);
            d[i] = LOAD_AS(uint32_t, x->host + lane_offset(x, i));
        }
        return;
    }
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        const uint8_t *p = lane_host(w, x, i);
        for (unsigned k = 0; k < ip->count; k++, p += ip->bytes) {
            uint64_t v = load_element(p, ip->bytes, is_signed);
            if (ip->wide)
                SLOT(uint64_t, ip->v[k])[i] = v;
            else
                SLOT(uint32_t, ip->v[k])[i] = (uint32_t)v;
        }
    }
}

/* Loads element k for groups of n lanes, a constant. Contiguous groups have one element a lane. */
static ALWAYS_INLINE void load_groups(const ptx_insn *ip, uint8_t *regs, const vm_access *x,
                                      unsigned n, unsigned k) {
    for (unsigned g = 0; g < 32; g += n) {
        const uint8_t *from = x->host + lane_offset(x, g) + (size_t)k * ip->bytes;
        uint8_t *to = regs + ip->v[k] + (size_t)g * ip->bytes;
        if (x->group == CONTIGUOUS) {
            memcpy(to, from, 4ul * n);
            if (ip->bytes == 8)
                memcpy(to + 4ul * n, from + 4ul * n, 4ul * n);
        } else if (ip->bytes == 4) {
            uint32_t v = LOAD_AS(uint32_t, from);
            for (unsigned i = 0; i < n; i++)
                ((uint32_t *)(void *)to)[i] = v;
        } else {
            uint64_t v = LOAD_AS(uint64_t, from);
            for (unsigned i = 0; i < n; i++)
                ((uint64_t *)(void *)to)[i] = v;
        }
    }
}

static __attribute__((noinline)) void load_groups_of_16(const ptx_insn *ip, uint8_t *regs,
                                                        const vm_access *x) {
    for (unsigned k = 0; k < ip->count; k++)
        load_groups(ip, regs, x, 16, k);
}
static __attribute__((noinline)) void load_groups_of_8(const ptx_insn *ip, uint8_t *regs,
                                                       const vm_access *x) {
    for (unsigned k = 0; k < ip->count; k++)
        load_groups(ip, regs, x, 8, k);
}

/* Elements of 1 or 2 bytes, contiguous over a whole warp. */
static __attribute__((noinline)) void load_small(const ptx_insn *ip, uint8_t *regs,
                                                 const uint8_t *from) {
    uint32_t *d = SLOT(uint32_t, ip->v[0]);
    const uint16_t *halves = (const uint16_t *)(const void *)from;
    bool is_signed = ip->flags & PTX_F_SIGNED;
    if (ip->bytes == 1 && is_signed)
        LANES d[i] = (uint32_t)(int8_t)from[i];
    else if (ip->bytes == 1)
        LANES d[i] = from[i];
    else if (is_signed)
        LANES d[i] = (uint32_t)(int16_t)halves[i];
    else
        LANES d[i] = halves[i];
}

/* Two or four elements of 4 bytes a lane, for a whole warp: one square of four lanes at a time. */
static __attribute__((noinline)) void load_words(const ptx_insn *ip, uint8_t *regs,
                                                 const vm_access *x) {
    const uint8_t *host = x->host + x->bias;
    for (unsigned i = 0; i < 32; i += 4) {
        const uint64_t *at = x->addr + i;
        words4 v[4];
        if (ip->count == 4) {
            for (unsigned j = 0; j < 4; j++)
                v[j] = words_at(host + at[j]);
            turn_square(v);
        } else {
            words4 a = pairs_at(host + at[0], host + at[1]);
            words4 b = pairs_at(host + at[2], host + at[3]);
            v[0] = __builtin_shufflevector(a, b, 0, 2, 4, 6);
            v[1] = __builtin_shufflevector(a, b, 1, 3, 5, 7);
        }
        for (unsigned k = 0; k < ip->count; k++)
            *(words4 *)(void *)(regs + ip->v[k] + 4ul * i) = v[k];
    }
}

/* The same for stores. Lanes store in ascending order. */
static __attribute__((noinline)) void store_words(const ptx_insn *ip, const uint8_t *regs,
                                                  const vm_access *x) {
    uint8_t *host = x->host + x->bias;
    for (unsigned i = 0; i < 32; i += 4) {
        words4 v[4];
        for (unsigned k = 0; k < 4; k++)
            v[k] = words_at(regs + ip->v[k < ip->count ? k : 0] + 4ul * i);
        turn_square(v);
        for (unsigned j = 0; j < 4; j++)
            memcpy(host + x->addr[i + j], &v[j], ip->count == 4 ? 16 : 8);
    }
}

/* Whether an element but the last goes into the register that has the addresses: the paths that
 * load element by element would read an address behind it. Only elements of 8 bytes go into
 * registers of that width. */
static inline bool loads_over_addresses(const ptx_insn *ip, const uint8_t *regs,
                                        const vm_access *x) {
    for (unsigned k = 0; k + 1 < ip->count; k++)
        if ((const void *)x->addr == (const void *)(regs + ip->v[k]))
            return true;
    return false;
}

static ALWAYS_INLINE void load_data(const vm_warp *w, const ptx_insn *ip, uint8_t *regs,
                                    const vm_access *x, uint32_t mask) {
    const uint8_t *base = x->host + x->lo;
    if (mask == VM_FULL && x->how == CONTIGUOUS && ip->bytes < 4 && ip->count == 1 && !ip->wide &&
        x->space != VM_SPACE_LOCAL) {
        load_small(ip, regs, base);
        return;
    }
    if (mask != VM_FULL || x->space == VM_SPACE_LOCAL || ip->bytes < 4 ||
        (ip->bytes == 4) == ip->wide ||
        (ip->count > 1 && ip->wide && loads_over_addresses(ip, regs, x))) {
        load_lanes(w, ip, regs, x, mask);
        return;
    }
    unsigned count = ip->count;
    if (x->lanes >= 8 && (x->group == UNIFORM || count == 1)) {
        if (x->lanes == 16)
            load_groups_of_16(ip, regs, x);
        else
            load_groups_of_8(ip, regs, x);
        return;
    }
    if (ip->bytes == 4 && x->how != UNIFORM && (count == 2 || count == 4)) {
        load_words(ip, regs, x);
        return;
    }
    for (unsigned k = 0; k < count; k++) {
        if (ip->bytes == 4) {
            uint32_t *d = SLOT(uint32_t, ip->v[k]);
            if (x->how == UNIFORM) {
                uint32_t v = LOAD_AS(uint32_t, base + 4ul * k);
                LANES d[i] = v;
            } else if (x->how == CONTIGUOUS && count == 1) {
                memcpy(d, base, 128);
            } else {
                const uint8_t *host = x->host + x->bias + 4ul * k;
                const uint64_t *addr = x->addr;
                LANES d[i] = LOAD_AS(uint32_t, host + addr[i]);
            }
        } else {
            uint64_t *d = SLOT(uint64_t, ip->v[k]);
            if (x->how == UNIFORM) {
                uint64_t v = LOAD_AS(uint64_t, base + 8ul * k);
                LANES d[i] = v;
            } else if (x->how == CONTIGUOUS && count == 1) {
                memcpy(d, base, 256);
            } else {
                for (unsigned i = 0; i < 32; i++)
                    d[i] = LOAD_AS(uint64_t, x->host + lane_offset(x, i) + 8ul * k);
            }
        }
    }
}

static ALWAYS_INLINE void store_data(const vm_warp *w, const ptx_insn *ip, const uint8_t *regs,
                                     const vm_access *x, uint32_t mask) {
    if (mask == VM_FULL && x->how == CONTIGUOUS && ip->count == 1 && x->space != VM_SPACE_LOCAL &&
        ip->bytes >= 4 && (ip->bytes == 8) == ip->wide) {
        memcpy(x->host + x->lo, regs + ip->v[0], ip->bytes == 4 ? 128 : 256);
        return;
    }
    if (x->lanes >= 8 && x->group == CONTIGUOUS && ip->count == 1 && (ip->bytes == 8) == ip->wide) {
        size_t each = (size_t)x->lanes * ip->bytes;
        for (unsigned g = 0; g < 32; g += x->lanes)
            memcpy(x->host + lane_offset(x, g), regs + ip->v[0] + (size_t)g * ip->bytes, each);
        return;
    }
    if (mask == VM_FULL && ip->bytes == 4 && (ip->count == 2 || ip->count == 4) && !ip->wide &&
        x->space != VM_SPACE_LOCAL) {
        store_words(ip, regs, x);
        return;
    }
    if (ip->bytes == 4 && ip->count == 1 && !ip->wide && x->space != VM_SPACE_LOCAL) {
        const uint32_t *d = CSLOT(uint32_t, ip->v[0]);
        for (uint32_t left = mask; left; left &= left - 1) {
            unsigned i = (unsigned)__builtin_ctz(left);
            STORE_AS(uint32_t, x->host + lane_offset(x, i), d[i]);
        }
        return;
    }
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint8_t *p = lane_host(w, x, i);
        for (unsigned k = 0; k < ip->count; k++, p += ip->bytes)
            store_element(p, ip->bytes,
                          ip->wide ? CSLOT(uint64_t, ip->v[k])[i] : CSLOT(uint32_t, ip->v[k])[i]);
    }
}
