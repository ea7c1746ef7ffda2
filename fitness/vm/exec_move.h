/* Moving the bytes of an access between memory and registers. */

#define LOAD_AS(type, p) (*(const type *)(const void *)(p))
#define STORE_AS(type, p, v) (*(type *)(void *)(p) = (type)(v))

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

static void load_lanes(const vm_warp *w, const ptx_insn *ip, uint8_t *regs, const vm_access *x,
                       uint32_t mask) {
    bool is_signed = ip->flags & PTX_F_SIGNED;
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

/* Element k of groups of n lanes; contiguous ones have one element a lane. */
static inline void load_groups(const ptx_insn *ip, uint8_t *regs, const vm_access *x, unsigned n,
                               unsigned k) {
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

/* Elements of 1 or 2 bytes by a whole warp, side by side. */
static inline void load_small(const ptx_insn *ip, uint8_t *regs, const uint8_t *from) {
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

static inline void load_data(const vm_warp *w, const ptx_insn *ip, uint8_t *regs,
                             const vm_access *x, uint32_t mask) {
    const uint8_t *base = x->host + x->lo;
    if (mask == VM_FULL && x->how == CONTIGUOUS && ip->bytes < 4 && ip->count == 1 && !ip->wide &&
        x->space != VM_SPACE_LOCAL) {
        load_small(ip, regs, base);
        return;
    }
    if (mask != VM_FULL || x->space == VM_SPACE_LOCAL || ip->bytes < 4 ||
        (ip->bytes == 4) == ip->wide) {
        load_lanes(w, ip, regs, x, mask);
        return;
    }
    unsigned count = ip->count;
    if (x->lanes >= 8 && (x->group == UNIFORM || count == 1)) {
        for (unsigned k = 0; k < count; k++)
            if (x->lanes == 16)
                load_groups(ip, regs, x, 16, k);
            else
                load_groups(ip, regs, x, 8, k);
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

static inline void store_data(const vm_warp *w, const ptx_insn *ip, const uint8_t *regs,
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
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint8_t *p = lane_host(w, x, i);
        for (unsigned k = 0; k < ip->count; k++, p += ip->bytes)
            store_element(p, ip->bytes,
                          ip->wide ? CSLOT(uint64_t, ip->v[k])[i] : CSLOT(uint32_t, ip->v[k])[i]);
    }
}
