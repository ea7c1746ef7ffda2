/* Handlers of textures and surfaces: what a warp's lanes read and write, as accesses to global
 * memory.
 *
 * Lanes of one handle go together. A fetch is up to eight accesses of one element a lane, the
 * corners of the linear filter. They pass the checks of a load through the read-only path: a
 * texture must not be written by its launch. Two corners side by side count as one request, of the
 * sectors of both. A corner outside of a border mode's texture reads nothing, and an element that
 * is several corners of a lane, as at the border of a clamped texture, is read once. A surface's
 * access is one load or store. vm_texel.c has the arithmetic of a lane. */

/* The lanes of `mask` with the same value as the first lane. */
static uint32_t same_handle(const uint64_t *handles, uint32_t mask) {
    uint32_t same = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        same |= (uint32_t)(handles[i] == handles[__builtin_ctz(mask)]) << i;
    }
    return same;
}

static bool bad_texture(vm_warp *w, const ptx_insn *ip, uint32_t mask, uint64_t handle,
                        const char *why) {
    unsigned lane = (unsigned)__builtin_ctz(mask);
    if (why)
        vm_trap_raise(w, ip, VM_TRAP_BAD_TEXTURE, lane, NULL, "%s", why);
    else
        vm_trap_raise(w, ip, VM_TRAP_BAD_TEXTURE, lane, NULL,
                      "%#llx is no texture, sampler or surface of this device",
                      (unsigned long long)handle);
    stop_trap(w);
    return false;
}

/* A sampler of its own; b of a reduction is its operand. */
static bool has_sampler(const ptx_insn *ip) {
    uint8_t shape = ptx_op_get(ip->row)->shape;
    return ip->b != PTX_NONE && (shape == PTX_S_TEX || shape == PTX_S_TLD4);
}

/* Finds what the lanes of `mask` name, and checks it against the instruction. */
static bool bind_texture(vm_warp *w, const ptx_insn *ip, const uint8_t *regs, uint32_t mask,
                         vm_bound *b) {
    unsigned lane = (unsigned)__builtin_ctz(mask);
    uint64_t handle = CSLOT(uint64_t, ip->a)[lane];
    if (!vm_texture_find(w->state, handle, b))
        return bad_texture(w, ip, mask, handle, NULL);
    const char *why = vm_texture_refuses(ip, b->texture);
    if (why)
        return bad_texture(w, ip, mask, handle, why);
    if (!has_sampler(ip))
        return true;
    handle = CSLOT(uint64_t, ip->b)[lane];
    if (!vm_sampler_find(w->state, handle, &b->sampler))
        return bad_texture(w, ip, mask, handle, NULL);
    vm_sampler_settle(b->texture, &b->sampler);
    return true;
}

/* The lanes of the first lane's texture and sampler. */
static uint32_t bound_together(const ptx_insn *ip, const uint8_t *regs, uint32_t mask) {
    uint32_t same = same_handle(CSLOT(uint64_t, ip->a), mask);
    return has_sampler(ip) ? same_handle(CSLOT(uint64_t, ip->b), same) : same;
}

/* A lane's coordinates and offsets. */
static void texture_words(const vm_warp *w, const ptx_insn *ip, const uint8_t *regs, unsigned lane,
                          uint32_t words[PTX_AT_COUNT]) {
    const uint32_t *slots = w->state->module->fragments + ip->target;
    for (unsigned k = 0; k < PTX_AT_COUNT; k++)
        words[k] = slots[k] == PTX_NONE ? 0 : CSLOT(uint32_t, slots[k])[lane];
}

/* ---- fetches */

typedef struct fetching {
    vm_bound bound;
    vm_footprint prints[32];
    uint8_t texels[32][VM_TEXELS][16];
    bool counted; /* the observer has an event of this instruction */
} fetching;

/* The two corners of a row of the filter's elements, which count as one request. */
typedef struct corner_pair {
    uint64_t at[2][32];
    uint32_t reading[2]; /* lanes whose corner is an element that no earlier corner of theirs is: at
                            a border, the nearest element is several corners */
} corner_pair;

/* Whether an earlier corner of the lane is the same element. */
static bool is_repeated(const vm_footprint *print, unsigned k) {
    bool is = false;
    for (unsigned i = 0; i < k; i++)
        is |= (print->inside >> i & 1) && print->address[i] == print->address[k];
    return is;
}

static vm_access corner_access(const fetching *f, const uint64_t *at) {
    return (vm_access){.addr = at,
                       .bias = -VM_GLOBAL_BASE,
                       .bytes = vm_texture_bytes(f->bound.texture),
                       .space = VM_SPACE_GLOBAL};
}

/* Reads corner k of the lanes that have it. */
static bool fetch_corner(vm_warp *w, const ptx_insn *ip, uint32_t mask, unsigned k, fetching *f,
                         corner_pair *pair) {
    uint64_t *at = pair->at[k % 2];
    uint32_t inside = 0, fresh = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        bool has = f->prints[i].count > k && (f->prints[i].inside >> k & 1);
        at[i] = f->prints[i].address[k];
        inside |= (uint32_t)has << i;
        fresh |= (uint32_t)(has && !is_repeated(&f->prints[i], k)) << i;
    }
    pair->reading[k % 2] = fresh;
    if (!inside)
        return true;
    vm_access x = corner_access(f, at);
    if (!locate(w, ip, &x, inside))
        return false;
    if (!promise_constant(w, ip, &x, inside) || !check_load(w, ip, &x, inside)) {
        stop_trap(w);
        return false;
    }
    if (k % 2 == 1 && fresh && w->tracked && !w->ranked)
        track_access(w, ip, &x, fresh, false);
    for (uint32_t left = inside; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        memcpy(f->texels[i][k], lane_host(w, &x, i), x.bytes);
    }
    return true;
}

/* Sectors of the second corners of the lanes of `mask` that are none of the `known` ones. */
static unsigned list_further(const corner_pair *pair, uint32_t mask, const uint64_t *known,
                             unsigned count, uint64_t *out) {
    unsigned n = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint64_t sector = pair->at[1][__builtin_ctz(left)] / 32;
        bool is_known = false;
        for (unsigned i = 0; i < count && !is_known; i++)
            is_known = known[i] == sector;
        for (unsigned i = 0; i < n && !is_known; i++)
            is_known = out[i] == sector;
        if (!is_known)
            out[n++] = sector;
    }
    return n;
}

/* Tells the observer of further sectors of the event that was put last; of too many, by a second
 * event. */
static void observe_further(vm_warp *w, const ptx_insn *ip, uint32_t mask, const uint64_t *sectors,
                            unsigned count, bool is_second) {
    vm_state *s = w->state;
    if (is_second) {
        w->event_pc = pc_of(w, ip);
        vm_event_room(w);
        (void)vm_event_put(w, pc_of(w, ip), mask, 0, 1);
    }
    vm_event *e = &s->events[s->event_count - 1];
    memcpy(s->sectors + s->sector_count, sectors, count * sizeof *sectors);
    s->sector_count += count;
    e->sectors = (uint16_t)(e->sectors + count);
    e->lines = (uint16_t)count_lines(s->sectors + e->first_sector, e->sectors);
}

/* Counts a pair as one request of the sectors of both corners. A request has at most
 * VM_EVENT_SECTORS; the rest is a second one. */
static bool count_pair(vm_warp *w, const ptx_insn *ip, const corner_pair *pair, fetching *f) {
    vm_counters *c = &w->state->result->counters;
    uint32_t any = pair->reading[0] | pair->reading[1], both = pair->reading[0] & pair->reading[1];
    uint64_t at[32] = {0}, known[VM_EVENT_SECTORS], further[32];
    if (!any)
        return true;
    for (uint32_t left = any; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        at[i] = pair->at[pair->reading[0] >> i & 1 ? 0 : 1][i];
    }
    vm_access x = corner_access(f, at);
    if (!locate(w, ip, &x, any))
        return false;
    if (f->counted) /* a further request of the same instruction */
        w->event_pc = pc_of(w, ip);
    count_access(w, ip, &x, any, false);
    f->counted = true;
    unsigned first = both ? list_sectors(&x, any, known) : 0;
    unsigned more = list_further(pair, both, known, first, further);
    bool is_second = first + more > VM_EVENT_SECTORS;
    c->global_load_requests += is_second;
    c->global_load_sectors += more;
    c->global_load_bytes += (uint64_t)__builtin_popcount(both) * x.bytes;
    if (more && w->observed && !w->state->poll)
        observe_further(w, ip, both, further, more, is_second);
    return true;
}

static bool fetch_lanes(vm_warp *w, const ptx_insn *ip, uint8_t *regs, uint32_t mask, fetching *f) {
    uint32_t words[PTX_AT_COUNT], out[4];
    if (!bind_texture(w, ip, regs, mask, &f->bound))
        return false;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        texture_words(w, ip, regs, i, words);
        vm_texture_place_lane(ip, &f->bound, words, &f->prints[i]);
    }
    for (unsigned k = 0; k < VM_TEXELS; k += 2) {
        corner_pair pair;
        if (!fetch_corner(w, ip, mask, k, f, &pair) ||
            !fetch_corner(w, ip, mask, k + 1, f, &pair) || !count_pair(w, ip, &pair, f))
            return false;
    }
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        vm_texture_blend(ip, &f->bound, &f->prints[i], (const uint8_t(*)[16])f->texels[i], out);
        for (unsigned k = 0; k < ip->count; k++)
            SLOT(uint32_t, ip->v[k])[i] = out[k];
    }
    return true;
}

/* Every element is resident. */
static __attribute__((noinline)) bool fetch(vm_warp *w, const ptx_insn *ip, uint8_t *regs,
                                            uint32_t mask) {
    fetching f;
    f.counted = false;
    for (uint32_t left = mask, same; left; left &= ~same) {
        same = bound_together(ip, regs, left);
        if (!fetch_lanes(w, ip, regs, same, &f))
            return false;
    }
    if (!f.counted && w->observed)
        vm_event_push(w, pc_of(w, ip), mask);
    if (ip->d2 != PTX_NONE)
        put_predicate(regs, ip->d2, mask, mask);
    return true;
}
HANDLER(TEX) {
    if (!fetch(w, ip, regs, mask))
        return NULL;
    NEXT;
}
HANDLER(TLD4) {
    if (!fetch(w, ip, regs, mask))
        return NULL;
    NEXT;
}

/* ---- surfaces */

static void outside_surface(vm_warp *w, const ptx_insn *ip, unsigned lane, const vm_texture *t,
                            const uint32_t *words) {
    char at[80] = "", size[80];
    unsigned uses = ptx_geometry_uses(ip->op);
    for (unsigned k = 0; k < uses; k++)
        snprintf(at + strlen(at), sizeof at - strlen(at), "%s%d", k ? ", " : "", (int)words[k]);
    snprintf(size, sizeof size, "%u", t->width);
    const uint32_t more[] = {t->height, t->depth};
    for (unsigned k = 0; k < 2; k++)
        if (more[k])
            snprintf(size + strlen(size), sizeof size - strlen(size), " x %u", more[k]);
    if (t->layers)
        snprintf(size + strlen(size), sizeof size - strlen(size), " x %u layers", t->layers);
    vm_trap_raise(w, ip, VM_TRAP_OUT_OF_BOUNDS, lane, NULL,
                  "coordinates (%s) outside a surface of %s, of elements of %u bytes", at, size,
                  vm_texture_bytes(t));
}

/* Fills in the addresses of an access to a surface. *reached: the lanes that make it; the others
 * are outside, where nothing happens. */
static bool place_surface(vm_warp *w, const ptx_insn *ip, const uint8_t *regs, uint32_t mask,
                          const vm_bound *b, unsigned bytes, uint64_t at[32], uint32_t *reached) {
    uint32_t words[PTX_AT_COUNT];
    *reached = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        bool outside;
        texture_words(w, ip, regs, i, words);
        if (vm_surface_place(ip, b->texture, bytes, words, &at[i], &outside)) {
            *reached |= 1u << i;
        } else if (outside) {
            outside_surface(w, ip, i, b->texture, words);
            stop_trap(w);
            return false;
        }
    }
    return true;
}

static vm_access surface_access(const uint64_t *at, unsigned bytes) {
    return (vm_access){
        .addr = at, .bias = -VM_GLOBAL_BASE, .bytes = bytes, .space = VM_SPACE_GLOBAL};
}

static void count_surface(vm_warp *w, const ptx_insn *ip, const vm_access *x, uint32_t reached,
                          bool store, bool *counted) {
    if (*counted)
        w->event_pc = pc_of(w, ip);
    count_access(w, ip, x, reached, store);
    *counted = true;
}

static bool load_surface(vm_warp *w, const ptx_insn *ip, uint8_t *regs, uint32_t mask,
                         bool *counted) {
    uint64_t at[32] = {0};
    uint32_t reached;
    vm_bound b;
    vm_access x = surface_access(at, (unsigned)ip->bytes * ip->count);
    if (!bind_texture(w, ip, regs, mask, &b) ||
        !place_surface(w, ip, regs, mask, &b, x.bytes, at, &reached))
        return false;
    if (reached && !locate(w, ip, &x, reached))
        return false;
    if (reached && !check_load(w, ip, &x, reached)) {
        stop_trap(w);
        return false;
    }
    if (reached)
        count_surface(w, ip, &x, reached, false, counted);
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        const uint8_t *p = reached >> i & 1 ? lane_host(w, &x, i) : NULL;
        for (unsigned k = 0; k < ip->count; k++) {
            uint64_t v = p ? load_element(p + (size_t)k * ip->bytes, ip->bytes, false) : 0;
            if (ip->wide)
                SLOT(uint64_t, ip->v[k])[i] = v;
            else
                SLOT(uint32_t, ip->v[k])[i] = (uint32_t)v;
        }
    }
    return true;
}

static void store_lane(const ptx_insn *ip, const uint8_t *regs, unsigned lane, uint8_t *to) {
    for (unsigned k = 0; k < ip->count; k++)
        store_element(to + (size_t)k * ip->bytes, ip->bytes,
                      ip->wide ? CSLOT(uint64_t, ip->v[k])[lane] : CSLOT(uint32_t, ip->v[k])[lane]);
}

static void store_formatted(const ptx_insn *ip, const uint8_t *regs, unsigned lane,
                            const vm_texture *t, uint8_t *to) {
    uint32_t words[4];
    for (unsigned k = 0; k < ip->count; k++)
        words[k] = CSLOT(uint32_t, ip->v[k])[lane];
    vm_surface_format(t, words, ip->count, to);
}

static bool store_surface(vm_warp *w, const ptx_insn *ip, uint8_t *regs, uint32_t mask,
                          bool *counted) {
    uint64_t at[32] = {0};
    uint32_t reached;
    vm_bound b;
    bool formatted = ptx_op_get(ip->row)->shape == PTX_S_SUSTP;
    if (!bind_texture(w, ip, regs, mask, &b))
        return false;
    unsigned bytes = formatted ? vm_texture_bytes(b.texture) : (unsigned)ip->bytes * ip->count;
    vm_access x = surface_access(at, bytes);
    if (!place_surface(w, ip, regs, mask, &b, bytes, at, &reached))
        return false;
    if (!reached)
        return true;
    if (!locate(w, ip, &x, reached))
        return false;
    if (!check_store(w, ip, regs, &x, reached)) {
        stop_trap(w);
        return false;
    }
    count_surface(w, ip, &x, reached, true, counted);
    for (uint32_t left = reached; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        if (formatted)
            store_formatted(ip, regs, i, b.texture, lane_host(w, &x, i));
        else
            store_lane(ip, regs, i, lane_host(w, &x, i));
    }
    return true;
}

/* Lanes of one old value after another, as atomics are. */
static void reduce_one(uint8_t *at, const ptx_insn *ip, uint8_t *regs, unsigned lane,
                       bool give_old) {
    bool wide = ip->bytes == 8, is_signed = ip->flags & PTX_F_SIGNED;
    uint64_t old = load_element(at, ip->bytes, is_signed);
    uint64_t c = wide ? CSLOT(uint64_t, ip->b)[lane] : CSLOT(uint32_t, ip->b)[lane];
    if (!wide && is_signed)
        c = (uint64_t)(int64_t)(int32_t)c;
    bool less = is_signed ? (int64_t)old < (int64_t)c : old < c;
    (void)give_old;
    switch (ip->row) {
    case PTX_OP_SURED_ADD:
        old += c;
        break;
    case PTX_OP_SURED_MIN:
        old = less ? old : c;
        break;
    case PTX_OP_SURED_MAX:
        old = less ? c : old;
        break;
    case PTX_OP_SURED_AND:
        old &= c;
        break;
    default:
        old |= c;
        break;
    }
    store_element(at, ip->bytes, old);
}

static bool reduce_surface(vm_warp *w, const ptx_insn *ip, uint8_t *regs, uint32_t mask,
                           bool *counted) {
    uint64_t at[32] = {0};
    uint32_t reached;
    vm_bound b;
    vm_access x = surface_access(at, ip->bytes);
    if (!bind_texture(w, ip, regs, mask, &b) ||
        !place_surface(w, ip, regs, mask, &b, x.bytes, at, &reached))
        return false;
    if (!reached)
        return true;
    if (*counted)
        w->event_pc = pc_of(w, ip);
    *counted = true;
    return atomic_on(w, ip, regs, reached, &x, reduce_one, false);
}

typedef bool (*surface_fn)(vm_warp *w, const ptx_insn *ip, uint8_t *regs, uint32_t mask,
                           bool *counted);
static __attribute__((noinline)) bool each_surface(vm_warp *w, const ptx_insn *ip, uint8_t *regs,
                                                   uint32_t mask, surface_fn access) {
    bool counted = false;
    for (uint32_t left = mask, same; left; left &= ~same) {
        same = bound_together(ip, regs, left);
        if (!access(w, ip, regs, same, &counted))
            return false;
    }
    if (!counted && w->observed)
        vm_event_push(w, pc_of(w, ip), mask);
    return true;
}
HANDLER(SULD) {
    if (!each_surface(w, ip, regs, mask, load_surface))
        return NULL;
    NEXT;
}
HANDLER(SUST) {
    if (!each_surface(w, ip, regs, mask, store_surface))
        return NULL;
    NEXT;
}
HANDLER(SUSTP) {
    if (!each_surface(w, ip, regs, mask, store_surface))
        return NULL;
    NEXT;
}
HANDLER(SURED) {
    if (!each_surface(w, ip, regs, mask, reduce_surface))
        return NULL;
    NEXT;
}

/* ---- questions */

static bool answer_lanes(vm_warp *w, const ptx_insn *ip, uint8_t *regs, uint32_t mask) {
    unsigned lane = (unsigned)__builtin_ctz(mask);
    uint64_t handle = CSLOT(uint64_t, ip->a)[lane];
    bool surface = ptx_op_get(ip->row)->shape == PTX_S_SUQ;
    bool of_sampler = ip->bool_op >= PTX_M_Q_UNNORMALIZED && ip->bool_op <= PTX_M_Q_MODE_2;
    vm_bound b = {0};
    bool found = of_sampler && vm_sampler_find(w->state, handle, &b.sampler);
    if (!found && !vm_texture_find(w->state, handle, &b))
        return bad_texture(w, ip, mask, handle, NULL);
    if (b.texture && b.texture->surface != surface)
        return bad_texture(w, ip, mask, handle,
                           surface ? "a texture where a surface is needed"
                                   : "a surface where a texture is needed");
    uint32_t value = vm_texture_query(ip->bool_op, &b);
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        bool beyond = ip->row == PTX_OP_TXQ_LEVEL && CSLOT(uint32_t, ip->b)[i] != 0;
        SLOT(uint32_t, ip->d)[i] = beyond ? 0 : value;
    }
    return true;
}
static __attribute__((noinline)) bool answer(vm_warp *w, const ptx_insn *ip, uint8_t *regs,
                                             uint32_t mask) {
    for (uint32_t left = mask, same; left; left &= ~same) {
        same = same_handle(CSLOT(uint64_t, ip->a), left);
        if (!answer_lanes(w, ip, regs, same))
            return false;
    }
    return true;
}
HANDLER(TXQ) {
    if (!answer(w, ip, regs, mask))
        return NULL;
    NEXT;
}
HANDLER(SUQ) {
    if (!answer(w, ip, regs, mask))
        return NULL;
    NEXT;
}
HANDLER(ISTYPEP) {
    uint32_t yes = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint64_t handle = CSLOT(uint64_t, ip->a)[i];
        vm_bound b = {0};
        vm_sampler s;
        bool is = ip->bool_op == PTX_M_OPAQUE_SAMPLERREF
                      ? vm_sampler_find(w->state, handle, &s)
                      : vm_texture_find(w->state, handle, &b) &&
                            b.texture->surface == (ip->bool_op == PTX_M_OPAQUE_SURFREF);
        yes |= (uint32_t)is << i;
    }
    put_predicate(regs, ip->d, yes, mask);
    NEXT;
}
