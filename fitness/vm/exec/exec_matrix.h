/* Handlers that move matrices: ldmatrix, stmatrix, movmatrix, wmma.load and wmma.store.
 *
 * A matrix in memory is a list of pieces of 4 to 16 bytes. For ldmatrix and stmatrix the pieces are
 * rows of 8 x 8 matrices, and each lane gives the address of one. For wmma the pieces are parts of
 * the matrix's rows or columns, and all lanes give the same address. Up to 32 pieces form an access
 * like any other, with piece i in the place of lane i. The same functions check bounds, alignment,
 * initialised bytes and races, and count sectors and bank passes. So the lane in a race report of a
 * wmma access is the number of a piece; the ISA does not say which lane touches which element.
 * These instructions do not order memory (ISA: weak accesses). */

typedef struct matrix_access {
    vm_access x; /* the first member: each_space passes a pointer to it */
    uint8_t *tile;
    bool store;
    bool shared_only;
} matrix_access;

static __attribute__((noinline)) bool wrong_space(vm_warp *w, const ptx_insn *ip,
                                                  const vm_access *x, uint32_t mask) {
    unsigned lane = (unsigned)__builtin_ctz(mask);
    uint64_t address = x->addr[lane] + (uint64_t)ip->imm;
    vm_trap_raise(w, ip, VM_TRAP_OUT_OF_BOUNDS, lane, &address,
                  "'%s' at a generic address that is in neither of the spaces it may use",
                  ptx_op_get(ip->row)->name);
    stop_trap(w);
    return false;
}

/* Checks the pieces of `mask`, then moves them one after another to or from the tile. */
static bool move_pieces(vm_warp *w, const ptx_insn *ip, uint8_t *regs, uint32_t mask,
                        vm_access *x) {
    const matrix_access *m = (const matrix_access *)(const void *)x;
    if (x->space != VM_SPACE_SHARED && (m->shared_only || x->space != VM_SPACE_GLOBAL))
        return wrong_space(w, ip, x, mask);
    if (!locate(w, ip, x, mask))
        return false;
    if (m->store ? !check_store(w, ip, regs, x, mask) : !check_load(w, ip, x, mask)) {
        stop_trap(w);
        return false;
    }
    count_access(w, ip, x, mask, m->store);
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint8_t *host = lane_host(w, x, i), *tile = m->tile + (size_t)i * x->bytes;
        uint8_t *to = m->store ? host : tile, *from = m->store ? tile : host;
        if (x->bytes == 16)
            memcpy(to, from, 16);
        else
            memcpy(to, from, x->bytes);
    }
    return true;
}

static inline bool access_pieces(vm_warp *w, const ptx_insn *ip, uint8_t *regs, uint32_t mask,
                                 matrix_access *m) {
    if (ip->space == VM_SPACE_GENERIC)
        return each_space(w, ip, regs, mask, &m->x, move_pieces);
    m->x.space = ip->space;
    m->x.bias = (uint64_t)ip->imm - space_origin(ip->space);
    return move_pieces(w, ip, regs, mask, &m->x);
}

/* ---- 8 x 8 matrices of 16-bit elements: lane i holds the elements 2 (i % 4) and 2 (i % 4) + 1 of
 * row i / 4, so that a register is the matrix in row-major order */

HANDLER(LDMATRIX) {
    WHOLE_WARP;
    uint64_t space[32];
    uint8_t rows[4][128], turned[128];
    matrix_access m = {.x = {.addr = addresses(ip, regs, space), .bytes = 16},
                       .tile = rows[0],
                       .shared_only = true};
    if (!access_pieces(w, ip, regs, (uint32_t)low_mask(8 * ip->c), &m))
        return NULL;
    const uint32_t *slots = fragment(w, ip, 0);
    for (unsigned k = 0; k < ip->c; k++) {
        bool turn = ip->target & PTX_TENSOR_COL;
        if (turn)
            transpose8(turned, rows[k]);
        memcpy(regs + slots[k], turn ? turned : rows[k], 128);
    }
    NEXT;
}
HANDLER(STMATRIX) {
    WHOLE_WARP;
    uint64_t space[32];
    uint8_t rows[4][128], turned[128];
    const uint32_t *slots = fragment(w, ip, 1);
    for (unsigned k = 0; k < ip->c; k++) {
        memcpy(turned, regs + slots[k], 128);
        if (ip->target & PTX_TENSOR_COL)
            transpose8(rows[k], turned);
        else
            memcpy(rows[k], turned, 128);
    }
    matrix_access m = {.x = {.addr = addresses(ip, regs, space), .bytes = 16},
                       .tile = rows[0],
                       .store = true,
                       .shared_only = true};
    if (!access_pieces(w, ip, regs, (uint32_t)low_mask(8 * ip->c), &m))
        return NULL;
    NEXT;
}
HANDLER(MOVMATRIX) {
    WHOLE_WARP;
    uint8_t from[128], to[128];
    memcpy(from, regs + ip->a, 128);
    transpose8(to, from);
    memcpy(regs + ip->d, to, 128);
    NEXT;
}

/* ---- wmma.load and wmma.store */

/* A matrix of `rows` x `columns` elements. In memory: `lines` rows or columns of `line_bytes` each.
 */
typedef struct wmma_matrix {
    char which; /* 'A', 'B' or 'C'; D counts as C */
    bool by_columns;
    unsigned rows, columns, bits;
    unsigned lines, line_bytes, piece;
    unsigned registers; /* registers of the fragment without repetitions */
    unsigned align;     /* alignment of the address in bytes */
} wmma_matrix;

/* The alignment that is checked. The ISA wants each row or column at a multiple of the fragment's
 * bytes. The CUDA C++ guide, whose functions compile to these instructions, wants the matrix at
 * such a multiple (at most 32), but its rows only 16 bytes apart. Programs legal under either must
 * run, so the guide's rule is used. */
static wmma_matrix describe_matrix(const ptx_insn *ip) {
    ptx_tile s = ptx_tile_of((ptx_mod)ip->op);
    wmma_matrix x = {.by_columns = ip->target & PTX_TENSOR_COL,
                     .bits = ptx_type_bits((ptx_type)ip->t)};
    x.which = ip->target & PTX_TENSOR_B ? 'B' : 'C';
    if (ip->target & PTX_TENSOR_A)
        x.which = 'A';
    x.rows = x.which == 'B' ? s.k : s.m;
    x.columns = x.which == 'A' ? s.k : s.n;
    x.lines = x.by_columns ? x.columns : x.rows;
    x.line_bytes = (x.by_columns ? x.rows : x.columns) * x.bits / 8;
    unsigned lane_bits = x.bits == 64 ? 64 : 32;
    x.registers = x.rows * x.columns * x.bits / 32 / lane_bits;
    x.align = ip->c * lane_bits / 8;
    x.piece = x.align < 16 ? x.align : 16;
    return x;
}

/* The row and column of element p of register r of a lane. */
static inline void element_place(const wmma_matrix *x, unsigned r, unsigned lane, unsigned p,
                                 unsigned *row, unsigned *column) {
    unsigned each = x->bits >= 32 ? 1 : 32 / x->bits, width = 4 * each;
    unsigned group = lane / 4, along = lane % 4 * each + p;
    if (x->which == 'A') {
        *row = r % (x->rows / 8) * 8 + group;
        *column = r / (x->rows / 8) * width + along;
    } else if (x->which == 'B') {
        *row = r % (x->rows / width) * width + along;
        *column = r / (x->rows / width) * 8 + group;
    } else {
        unsigned core = x->bits == 16 ? r : r / 2;
        *row = core % (x->rows / 8) * 8 + group;
        *column = core / (x->rows / 8) * 8 + lane % 4 * 2 + (x->bits == 16 ? p : r % 2);
    }
}

/* The index of an element in the tile, whose lines stand one after another. */
static inline unsigned element_number(const wmma_matrix *x, unsigned r, unsigned lane, unsigned p) {
    unsigned row, column;
    element_place(x, r, lane, p, &row, &column);
    return x->by_columns ? column * x->rows + row : row * x->columns + column;
}

/* Moves each element between its register and the tile. Elements narrower than a byte are packed in
 * the tile as in the register, in whole words. */
static inline void move_elements(const wmma_matrix *x, uint8_t *regs, const uint32_t *slots,
                                 uint8_t *tile, bool to_tile) {
    unsigned bytes = x->bits < 8 ? 4 : x->bits / 8, each = bytes >= 4 ? 1 : 4 / bytes;
    for (unsigned r = 0; r < x->registers; r++)
        for (unsigned lane = 0; lane < 32; lane++)
            for (unsigned p = 0; p < each; p++) {
                unsigned at = element_number(x, r, lane, p) * x->bits / 8;
                uint8_t *reg =
                    regs + slots[r] + (size_t)lane * (bytes == 8 ? 8 : 4) + (size_t)p * bytes;
                memcpy(to_tile ? tile + at : reg, to_tile ? reg : tile + at, bytes);
            }
}

/* Checks that all lanes give the address and the stride of lane 0. */
static bool check_uniform(vm_warp *w, const ptx_insn *ip, const uint8_t *regs,
                          const uint64_t *addr) {
    for (unsigned i = 1; i < 32; i++) {
        bool stride = ip->b == PTX_NONE || CSLOT(uint32_t, ip->b)[i] == *CSLOT(uint32_t, ip->b);
        if (addr[i] == addr[0] && stride)
            continue;
        vm_trap_raise(w, ip, VM_TRAP_ILLEGAL_INSTRUCTION, i, NULL,
                      "lane %u gives another %s than lane 0; expected the same in all lanes", i,
                      stride ? "address" : "stride");
        stop_trap(w);
        return false;
    }
    return true;
}

static bool check_matrix_address(vm_warp *w, const ptx_insn *ip, const wmma_matrix *x,
                                 uint64_t address, uint64_t stride) {
    bool base = !(address & (x->align - 1));
    if (base && !(stride & (x->piece - 1)))
        return true;
    vm_trap_raise(w, ip, VM_TRAP_MISALIGNED, 0, &address,
                  "%s that is no multiple of %u bytes; the fragment needs it",
                  base ? "a stride" : "an address", base ? x->piece : x->align);
    stop_trap(w);
    return false;
}

/* Moves all pieces, 32 at a time, between memory and the tile. */
static bool move_matrix(vm_warp *w, const ptx_insn *ip, uint8_t *regs, const wmma_matrix *x,
                        uint8_t *tile, bool store) {
    uint64_t space[32], piece[32];
    const uint64_t *addr = addresses(ip, regs, space);
    uint64_t stride = x->line_bytes;
    if (ip->b != PTX_NONE)
        stride = (uint64_t)*CSLOT(uint32_t, ip->b) * x->bits / 8;
    if (!check_uniform(w, ip, regs, addr) ||
        !check_matrix_address(w, ip, x, addr[0] + (uint64_t)ip->imm, stride))
        return false;
    unsigned in_line = x->line_bytes / x->piece, count = x->lines * in_line;
    for (unsigned first = 0; first < count; first += 32) {
        unsigned n = count - first < 32 ? count - first : 32;
        for (unsigned i = 0; i < 32; i++) {
            unsigned at = first + (i < n ? i : 0);
            piece[i] = addr[0] + at / in_line * stride + (uint64_t)(at % in_line) * x->piece;
        }
        matrix_access m = {.x = {.addr = piece, .bytes = x->piece},
                           .tile = tile + (size_t)first * x->piece,
                           .store = store};
        if (first) /* a further request of the same instruction */
            w->event_pc = pc_of(w, ip);
        if (!access_pieces(w, ip, regs, (uint32_t)low_mask(n), &m))
            return false;
    }
    return true;
}

HANDLER(WMMA_LOAD) {
    WHOLE_WARP;
    wmma_matrix x = describe_matrix(ip);
    const uint32_t *slots = fragment(w, ip, 0);
    uint8_t tile[1024];
    if (!move_matrix(w, ip, regs, &x, tile, false))
        return NULL;
    move_elements(&x, regs, slots, tile, false);
    for (unsigned r = x.registers; r < ip->c; r++)
        memcpy(regs + slots[r], regs + slots[r % x.registers], 128);
    NEXT;
}
HANDLER(WMMA_STORE) {
    WHOLE_WARP;
    wmma_matrix x = describe_matrix(ip);
    uint8_t tile[1024];
    move_elements(&x, regs, fragment(w, ip, 1), tile, true);
    if (!move_matrix(w, ip, regs, &x, tile, true))
        return NULL;
    NEXT;
}
