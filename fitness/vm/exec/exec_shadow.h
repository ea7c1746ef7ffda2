/* Shadow of written bytes: detects uninitialised reads, and writes outside the output buffers.
 *
 * Valgrind keeps such shadow memory for programs on a CPU (Nethercote and Seward, "How to Shadow
 * Every Byte of Memory Used by a Program", VEE 2007). Shared and global memory have one shadow
 * entry a 4-byte word for the last write, and the low four bits of the entry say which bytes were
 * ever written (vm_memory.h shows the entry). Local memory has one bit a byte.
 *
 * An access is judged once for the warp where its addresses form a pattern (uniform, contiguous,
 * one word or vector a lane): `look_at_writes` combines the entries with vector instructions.
 * Other accesses, and all failing ones, are judged lane by lane, so that a trap names the lane. */

typedef struct race_planes {
    uint32_t *writes, *reads;
} race_planes;

static inline race_planes planes_of(const vm_warp *w, uint8_t space) {
    if (space == VM_SPACE_SHARED)
        return (race_planes){w->block->shared_writes, w->block->shared_reads};
    return (race_planes){w->state->memory->writes, w->state->memory->reads};
}

static inline unsigned words_of(const vm_access *x) {
    return x->bytes < 4 ? 1 : x->bytes / 4;
}

/* The bits of a shadow entry for the bytes of one lane, in the word of offset `at`. */
static inline uint32_t bytes_bits(const vm_access *x, uint64_t at) {
    return x->bytes < 4 ? ((1u << x->bytes) - 1) << (at & 3) : VM_RACE_WRITTEN;
}

/* The words of one group whose lanes access `each` words. */
static inline unsigned group_words(const vm_access *x) {
    return x->group == UNIFORM ? words_of(x) : x->lanes * words_of(x);
}

static vm_buffer_kind lane_kind(const vm_warp *w, const vm_access *x, unsigned i) {
    if (!x->lane_kinds)
        return x->kind;
    const vm_alloc *a =
        vm_memory_find(w->state->memory, VM_GLOBAL_BASE + lane_offset(x, i), x->bytes);
    return a ? a->kind : VM_BUFFER_IN;
}

static inline bool kind_needs_init(vm_buffer_kind kind) {
    return kind == VM_BUFFER_OUT || kind == VM_BUFFER_SCRATCH;
}

/* ---- reads */

static bool lane_written(const vm_warp *w, const vm_access *x, unsigned i) {
    uint64_t at = lane_offset(x, i);
    if (x->space == VM_SPACE_LOCAL) {
        uint64_t bit = at + i * w->local_capacity;
        uint64_t want = low_mask(x->bytes) << (bit & 63);
        return (w->local_written[bit >> 6] & want) == want;
    }
    const uint32_t *writes = planes_of(w, x->space).writes + at / 4;
    uint32_t want = bytes_bits(x, at), have = VM_RACE_WRITTEN;
    for (unsigned k = 0; k < words_of(x); k++)
        have &= writes[k];
    return (have & want) == want;
}

static __attribute__((noinline)) bool check_lanes_initialised(vm_warp *w, const ptx_insn *ip,
                                                              const vm_access *x, uint32_t mask) {
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        if (x->space == VM_SPACE_GLOBAL && !kind_needs_init(lane_kind(w, x, i)))
            continue;
        if (lane_written(w, x, i))
            continue;
        uint64_t address = x->addr[i] + (uint64_t)ip->imm;
        if (x->space == VM_SPACE_LOCAL && ptx_op_get(ip->row)->shape == PTX_S_LD) {
            if (w->state->undefined_code)
                continue;
            return vm_undefined_begin(w, ip, i, address) && false;
        }
        if (x->space == VM_SPACE_SHARED && w->check_races) {
            vm_trap_defer(w, ip, i, address, lane_offset(x, i), x->bytes);
            return !w->state->trapped;
        }
        vm_trap_raise(w, ip, VM_TRAP_UNINITIALISED, i, &address, VM_UNINITIALISED, x->bytes);
        return false;
    }
    return true;
}

static ALWAYS_INLINE bool needs_init(const vm_warp *w, const vm_access *x) {
    if (!w->check_init || x->space == VM_SPACE_CONST || x->space == VM_SPACE_PARAM)
        return false;
    return x->space != VM_SPACE_GLOBAL || x->lane_kinds || kind_needs_init(x->kind);
}

/* Shadow entries combined: the newest stamp, and the written bits that all entries have.
 * look_at_row combines n entries in a row. */
typedef struct row_state {
    uint32_t newest, written;
} row_state;
static ALWAYS_INLINE void look_at_row(row_state *s, const uint32_t *writes, unsigned n) {
    uint32_t newest = s->newest, written = s->written;
    VECTORS for (unsigned j = 0; j < n; j++) {
        newest = writes[j] > newest ? writes[j] : newest;
        written &= writes[j];
    }
    *s = (row_state){newest, written};
}

/* Combines entries for one word a lane. Each lane's address gives the distance from `base`. */
static ALWAYS_INLINE void look_at_words(row_state *s, const uint8_t *base, const uint64_t *addr) {
    uint32_t newest = s->newest, written = s->written;
    LANES {
        uint32_t e = LOAD_AS(uint32_t, base + addr[i]);
        newest = e > newest ? e : newest;
        written &= e;
    }
    *s = (row_state){newest, written};
}

/* The same for 8 or 16 bytes a lane. */
static ALWAYS_INLINE void look_at_vectors(row_state *s, const uint8_t *base, const uint64_t *addr,
                                          unsigned bytes) {
    words4 newest = {0}, written = ~newest;
    for (unsigned i = 0; i < 32; i += 2) {
        const uint8_t *p = base + addr[i], *q = base + addr[i + 1];
        words4 e = bytes == 16 ? words_at(p) : pairs_at(p, q), later = (words4)(e > newest);
        newest = (e & later) | (newest & ~later);
        written &= e;
        if (bytes != 16)
            continue;
        e = words_at(q);
        later = (words4)(e > newest);
        newest = (e & later) | (newest & ~later);
        written &= e;
    }
    for (unsigned k = 0; k < 4; k++) {
        s->newest = newest[k] > s->newest ? newest[k] : s->newest;
        s->written &= written[k];
    }
}

/* Combines the entries of an access of whole words. False: the access has none of the patterns. */
static inline bool look_at_writes(const vm_warp *w, const vm_access *x, uint32_t mask,
                                  row_state *s) {
    const uint32_t *writes = planes_of(w, x->space).writes;
    if (x->how == UNIFORM)
        look_at_row(s, writes + x->lo / 4, words_of(x));
    else if (x->how == CONTIGUOUS)
        look_at_row(s, writes + x->lo / 4, 32 * words_of(x));
    else if (x->lanes == 1 && x->bytes > 4)
        look_at_vectors(s, (const uint8_t *)writes + x->bias, x->addr, x->bytes);
    else if (mask == VM_FULL && x->bytes == 4 && x->lanes <= 1)
        look_at_words(s, (const uint8_t *)writes + x->bias, x->addr);
    else if (x->lanes)
        for (unsigned i = 0; i < 32; i += x->lanes)
            look_at_row(s, writes + lane_offset(x, i) / 4, group_words(x));
    else
        return false;
    return true;
}

/* The written bits of any access of whole words, combined. */
static inline void look_at_lanes(const vm_warp *w, const vm_access *x, uint32_t mask,
                                 row_state *s) {
    const uint32_t *writes = planes_of(w, x->space).writes;
    if (x->bytes == 4) {
        uint32_t written = s->written; /* the newest stamp is not needed */
        for (uint32_t left = mask; left; left &= left - 1)
            written &= writes[lane_offset(x, (unsigned)__builtin_ctz(left)) / 4];
        s->written = written;
        return;
    }
    for (uint32_t left = mask; left; left &= left - 1)
        look_at_row(s, writes + lane_offset(x, (unsigned)__builtin_ctz(left)) / 4, words_of(x));
}

/* Whether all bytes of the access were written. Called before a read. */
static inline bool check_initialised(vm_warp *w, const ptx_insn *ip, const vm_access *x,
                                     uint32_t mask) {
    if (!needs_init(w, x))
        return true;
    row_state s = {0, VM_RACE_WRITTEN};
    if (x->space != VM_SPACE_LOCAL && x->bytes >= 4 && !x->lane_kinds) {
        if (!look_at_writes(w, x, mask, &s))
            look_at_lanes(w, x, mask, &s);
        if (s.written == VM_RACE_WRITTEN)
            return true;
    }
    return check_lanes_initialised(w, ip, x, mask);
}

/* ---- writes */

static __attribute__((noinline)) bool refuse_write(vm_warp *w, const ptx_insn *ip,
                                                   const vm_access *x, uint32_t mask) {
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        if (lane_kind(w, x, i) != VM_BUFFER_IN)
            continue;
        uint64_t address = x->addr[i] + (uint64_t)ip->imm;
        vm_trap_raise(w, ip, VM_TRAP_READ_ONLY_WRITE, i, &address,
                      "a write of %u bytes to a buffer that is no output", x->bytes);
        return false;
    }
    return true;
}

static inline void mark_dirty(const vm_warp *w, const vm_access *x, uint32_t mask) {
    vm_memory *m = w->state->memory;
    if (x->how != SCATTERED || (x->hi - 1) >> VM_PAGE_SHIFT == x->lo >> VM_PAGE_SHIFT) {
        uint64_t page = x->lo >> VM_PAGE_SHIFT;
        if (__builtin_expect(!m->dirty[page] || !m->dirty[(x->hi - 1) >> VM_PAGE_SHIFT], 0))
            vm_memory_mark_dirty(m, x->lo, x->hi - x->lo);
        return;
    }
    for (uint32_t left = mask; left; left &= left - 1) {
        uint64_t at = lane_offset(x, (unsigned)__builtin_ctz(left));
        if (!m->dirty[at >> VM_PAGE_SHIFT])
            vm_memory_mark_dirty(m, at, x->bytes);
    }
}

static bool keeps_promises(vm_warp *w, const ptx_insn *ip, const vm_access *x, uint32_t mask);

/* Whether the lanes may write to their addresses. Marks the pages as dirty. */
static inline bool allow_write(vm_warp *w, const ptx_insn *ip, const vm_access *x, uint32_t mask) {
    if (x->space == VM_SPACE_LOCAL)
        return true;
    w->state->last_change = w->state->result->counters.thread_instructions;
    if (x->space != VM_SPACE_GLOBAL)
        return true;
    if (__builtin_expect(w->check_init && (x->lane_kinds || x->kind == VM_BUFFER_IN), 0) &&
        !refuse_write(w, ip, x, mask))
        return false;
    if (__builtin_expect(w->state->races->promised, 0) && !keeps_promises(w, ip, x, mask))
        return false;
    mark_dirty(w, x, mask);
    return true;
}

static void mark_local(const vm_warp *w, const vm_access *x, uint32_t mask) {
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint64_t at = lane_offset(x, i) + i * w->local_capacity;
        w->local_written[at >> 6] |= low_mask(x->bytes) << (at & 63);
    }
}

static inline void mark_row(uint32_t *writes, unsigned n) {
    VECTORS for (unsigned j = 0; j < n; j++) writes[j] |= VM_RACE_WRITTEN;
}

static inline void mark_written(const vm_warp *w, const vm_access *x, uint32_t mask) {
    if (x->space == VM_SPACE_LOCAL) {
        mark_local(w, x, mask);
        return;
    }
    uint32_t *writes = planes_of(w, x->space).writes;
    if (x->how != SCATTERED && x->bytes >= 4) {
        mark_row(writes + x->lo / 4, (unsigned)(x->hi - x->lo) / 4);
        return;
    }
    if (x->bytes == 4) {
        for (uint32_t left = mask; left; left &= left - 1)
            writes[lane_offset(x, (unsigned)__builtin_ctz(left)) / 4] |= VM_RACE_WRITTEN;
        return;
    }
    for (uint32_t left = mask; left; left &= left - 1) {
        uint64_t at = lane_offset(x, (unsigned)__builtin_ctz(left));
        for (unsigned k = 0; k < words_of(x); k++)
            writes[at / 4 + k] |= bytes_bits(x, at);
    }
}

/* Whether the lanes may write to their addresses. Marks the bytes as written and the pages as
 * dirty. The bytes of shared and local memory are marked only if reads are checked. */
static inline bool note_write(vm_warp *w, const ptx_insn *ip, const vm_access *x, uint32_t mask) {
    if (!allow_write(w, ip, x, mask))
        return false;
    if (w->check_init || x->space == VM_SPACE_GLOBAL)
        mark_written(w, x, mask);
    return true;
}
