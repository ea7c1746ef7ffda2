/* Video instructions (PTX ISA, "Video Instructions"), a lane at a time. Selectors pick bytes,
 * halves or words of the sources; these combine to a signed number of 34 bits, which is saturated,
 * meets c in a second operation, and is put where the destination's selector says. */

static int64_t video_pick(uint32_t word, unsigned first, unsigned bits, bool is_signed) {
    uint64_t part = word >> first & low_mask(bits);
    bool minus = is_signed && part >> (bits - 1);
    return minus ? (int64_t)part - (INT64_C(1) << bits) : (int64_t)part;
}

static int64_t video_shift(const ptx_insn *ip, int64_t a, int64_t b) {
    unsigned most = b > 32 ? 32 : (unsigned)b;
    unsigned n = ip->bool_op == PTX_M_WRAP ? (unsigned)b & 31 : most;
    if (ip->row == PTX_OP_VSHR)
        return a >> n;
    return (int64_t)((uint64_t)a << n << 30) >> 30; /* of 34 bits */
}

static int64_t video_combined(const ptx_insn *ip, int64_t a, int64_t b) {
    switch (ip->row) {
    case PTX_OP_VADD:
    case PTX_OP_VADD2:
    case PTX_OP_VADD4:
        return a + b;
    case PTX_OP_VSUB:
    case PTX_OP_VSUB2:
    case PTX_OP_VSUB4:
        return a - b;
    case PTX_OP_VAVRG2:
    case PTX_OP_VAVRG4:
        return (a + b + (a + b >= 0)) >> 1;
    case PTX_OP_VABSDIFF:
    case PTX_OP_VABSDIFF2:
    case PTX_OP_VABSDIFF4:
        return a < b ? b - a : a - b;
    case PTX_OP_VMIN:
    case PTX_OP_VMIN2:
    case PTX_OP_VMIN4:
        return a < b ? a : b;
    case PTX_OP_VMAX:
    case PTX_OP_VMAX2:
    case PTX_OP_VMAX4:
        return a > b ? a : b;
    case PTX_OP_VSHL:
    case PTX_OP_VSHR:
        return video_shift(ip, a, b);
    default: /* both are exact */
        return rare_compare(ip->bool_op, (double)a, (double)b);
    }
}

/* The result's type says whether c, and what it meets, have a sign. */
static int64_t video_second(const ptx_insn *ip, int64_t v, uint32_t word) {
    bool is_signed = ip->t == PTX_T_s32;
    int64_t c = is_signed ? (int64_t)(int32_t)word : (int64_t)word;
    bool less = is_signed ? v < c : (uint64_t)v < (uint64_t)c;
    switch (ip->rnd) {
    case PTX_M_SECOND_ADD:
        return v + c;
    case PTX_M_SECOND_MIN:
        return less ? v : c;
    case PTX_M_SECOND_MAX:
        return less ? c : v;
    default:
        return v;
    }
}

HANDLER(VIDEO) {
    const uint32_t *pa = CSLOT(uint32_t, ip->a), *pb = CSLOT(uint32_t, ip->b);
    const uint32_t *pc = ip->c == PTX_NONE ? pa : CSLOT(uint32_t, ip->c); /* else not looked at */
    bool sa = ip->u == PTX_T_s32, sb = ip->op == PTX_M_PARTS_S32, sd = ip->t == PTX_T_s32;
    unsigned first = ip->v[0] & 0xff, bits = ip->v[0] >> 8;
    uint32_t place = (uint32_t)low_mask(bits) << first, *out = OUT(uint32_t);
    for (unsigned i = 0; i < 32; i++) {
        int64_t a = video_pick(pa[i], ip->v[1] & 0xff, ip->v[1] >> 8, sa);
        int64_t b = video_pick(pb[i], ip->v[2] & 0xff, ip->v[2] >> 8, sb);
        int64_t v = video_combined(ip, a, b);
        v = video_second(ip, ip->sat ? rare_clamp(v, bits, sd) : v, pc[i]);
        out[i] = ((uint32_t)v << first & place) | (pc[i] & ~place);
    }
    FINISH(u32);
}

/* (a * b + c + po) >> scale. A sign of the product, or of c, is its complement and 1. */
HANDLER(VMAD) {
    const uint32_t *pa = CSLOT(uint32_t, ip->a), *pb = CSLOT(uint32_t, ip->b);
    const uint32_t *pc = CSLOT(uint32_t, ip->c);
    bool sa = ip->u == PTX_T_s32, sb = ip->op == PTX_M_PARTS_S32;
    bool product = ip->v[3] & PTX_VIDEO_PRODUCT, summand = ip->v[3] & PTX_VIDEO_SUMMAND;
    bool is_signed = sa || sb || product || summand;
    unsigned scale = ip->rnd == PTX_M_SHR7 ? 7 : 0;
    scale = ip->rnd == PTX_M_SHR15 ? 15 : scale;
    uint32_t *out = OUT(uint32_t);
    for (unsigned i = 0; i < 32; i++) {
        __int128 v = (__int128)video_pick(pa[i], ip->v[1] & 0xff, ip->v[1] >> 8, sa) *
                     video_pick(pb[i], ip->v[2] & 0xff, ip->v[2] >> 8, sb);
        uint32_t c = summand ? ~pc[i] : pc[i];
        v = product ? ~v : v;
        v += (is_signed ? (int64_t)(int32_t)c : (int64_t)c) + (ip->v[3] != 0);
        v >>= scale;
        __int128 least = is_signed ? INT32_MIN : 0, most = is_signed ? INT32_MAX : UINT32_MAX;
        if (ip->sat && v < least)
            v = least;
        else if (ip->sat && v > most)
            v = most;
        out[i] = (uint32_t)v;
    }
    FINISH(u32);
}

/* All parts of a word. With .add their sum and c, else c where the mask leaves a part out. */
HANDLER(PARTS) {
    const uint32_t *pa = CSLOT(uint32_t, ip->a), *pb = CSLOT(uint32_t, ip->b);
    const uint32_t *pc = CSLOT(uint32_t, ip->c);
    unsigned bits = ip->bytes * 8u; /* of a part */
    bool sa = ip->u == PTX_T_s32, sb = ip->op == PTX_M_PARTS_S32, sd = ip->t == PTX_T_s32;
    uint32_t part = (uint32_t)low_mask(bits), *out = OUT(uint32_t);
    for (unsigned i = 0; i < 32; i++) {
        uint32_t word = pc[i], sum = pc[i];
        uint64_t both = pa[i] | (uint64_t)pb[i] << 32;
        for (unsigned k = 0; k < 32 / bits; k++) {
            if (!(ip->v[0] >> k & 1))
                continue;
            unsigned at = (ip->v[1] >> (4 * k) & 15) * bits;
            unsigned bt = (ip->v[2] >> (4 * k) & 15) * bits;
            int64_t v = video_combined(ip, video_pick((uint32_t)(both >> at), 0, bits, sa),
                                       video_pick((uint32_t)(both >> bt), 0, bits, sb));
            v = ip->sat ? rare_clamp(v, bits, sd) : v;
            sum += (uint32_t)v;
            word = (word & ~(part << (k * bits))) | ((uint32_t)v & part) << (k * bits);
        }
        out[i] = ip->rnd != PTX_M_NONE ? sum : word;
    }
    FINISH(u32);
}
