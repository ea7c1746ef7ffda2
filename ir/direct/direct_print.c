/* The text of the body: instructions, and the copies and branches at the ends of blocks.
 * direct_module.c prints the text around the body.
 *
 * The copies of an edge happen at the same time. `put_moves` puts them in sequence: a copy is
 * printed once no other copy still reads its target, and a cycle is broken with a temporary
 * register (parallel-copy sequentialisation; Boissinot and others, "Revisiting Out-of-SSA
 * Translation", CGO 2009). Copies stand where only their edge passes: before the branch if the
 * other way does not need the old values, else on the way that is not taken, or in a block of
 * their own. */
#include "ir/direct/direct_internal.h"

#include <string.h>

/* ---- a line -----------------------------------------------------------------------------------
 */

/* A buffer for one line. Appending each piece to the growing text would cost more than most pieces.
 */
typedef struct line {
    ev_str *out;
    size_t length;
    char text[1024];
} line;

static void flush(line *l) {
    ev_str_append_n(l->out, l->text, l->length);
    l->length = 0;
}

static void put_n(line *l, const char *text, size_t length) {
    if (length > sizeof l->text - l->length) {
        flush(l);
        if (length > sizeof l->text) {
            ev_str_append_n(l->out, text, length);
            return;
        }
    }
    memcpy(l->text + l->length, text, length);
    l->length += length;
}

static void put(line *l, const char *text) {
    put_n(l, text, strlen(text));
}

static void put_number(line *l, uint64_t value) {
    char digits[24];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + value % 10);
    while (value /= 10);
    put_n(l, digits + at, sizeof digits - at);
}

static void put_integer(line *l, int64_t value) {
    if (value < 0)
        put_n(l, "-", 1);
    put_number(l, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static void put_hex(line *l, uint64_t bits, int digits) {
    char text[16];
    for (int i = digits; i-- > 0; bits >>= 4)
        text[i] = "0123456789ABCDEF"[bits & 15];
    put_n(l, text, (size_t)digits);
}

/* ---- operands ---------------------------------------------------------------------------------
 */

static const char *const prefixes[] = {"%p", "%rs", "%r", "%rd", "%f", "%fd"};

static void put_register(ir_direct *d, line *l, uint32_t reg) {
    const direct_register *of = &d->registers.items[direct_class_of(d, reg)];
    put(l, prefixes[of->cls]);
    put_number(l, of->number);
}

static void put_operand(ir_direct *d, line *l, const direct_operand *operand) {
    if (operand->kind == DIRECT_REG) {
        put_register(d, l, operand->reg);
    } else if (operand->kind == DIRECT_SYMBOL) {
        put(l, d->symbols.items[operand->reg].name);
    } else if (operand->cls == DIRECT_F) {
        put(l, "0f");
        put_hex(l, (uint64_t)operand->imm, 8);
    } else if (operand->cls == DIRECT_FD) {
        put(l, "0d");
        put_hex(l, (uint64_t)operand->imm, 16);
    } else {
        put_integer(l, operand->imm);
    }
}

static void put_address(ir_direct *d, line *l, const direct_operand *operand) {
    put(l, "[");
    put_operand(d, l, operand);
    if (operand->imm != 0) {
        put(l, "+");
        put_integer(l, operand->imm);
    }
    put(l, "]");
}

/* Prints several operands in braces. */
static void put_group(ir_direct *d, line *l, const direct_operand *operands, unsigned count) {
    if (count > 1)
        put(l, "{");
    for (unsigned i = 0; i < count; i++) {
        if (i > 0)
            put(l, ", ");
        put_operand(d, l, &operands[i]);
    }
    if (count > 1)
        put(l, "}");
}

static void put_list(ir_direct *d, line *l, const direct_operand *operands, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        put(l, ", ");
        put_operand(d, l, &operands[i]);
    }
}

/* ---- instructions -----------------------------------------------------------------------------
 */

static void put_plain(ir_direct *d, line *l, const direct_insn *insn, const direct_operand *at) {
    if (insn->results == 0 && insn->sources > 0) {
        put_operand(d, l, at);
        put_list(d, l, at + 1, insn->sources - 1u);
        return;
    }
    put_group(d, l, at, insn->results);
    put_list(d, l, at + insn->results, insn->sources);
}

/* A factor or sum of one register has braces as well. */
static void put_matrix(ir_direct *d, line *l, const direct_operand *operands, unsigned count) {
    put(l, count == 1 ? "{" : "");
    put_group(d, l, operands, count);
    put(l, count == 1 ? "}" : "");
}

static void put_product(ir_direct *d, line *l, const direct_insn *insn) {
    const direct_operand *sums = &d->operands.items[insn->first];
    const direct_operand *a = sums + insn->results, *b = a + insn->rows, *c = b + insn->columns;
    put_matrix(d, l, sums, insn->results);
    put(l, ", ");
    put_matrix(d, l, a, insn->rows);
    put(l, ", ");
    put_matrix(d, l, b, insn->columns);
    put(l, ", ");
    put_matrix(d, l, c, insn->sources - insn->rows - (unsigned)insn->columns);
}

static void put_insn(ir_direct *d, line *l, const direct_insn *insn) {
    const direct_operand *at = &d->operands.items[insn->first];
    const direct_operand *source = at + insn->results;
    bool special = insn->shape == DIRECT_PLAIN && insn->results == 1 && insn->sources == 0;
    put(l, "\t");
    put(l, special ? "mov.u32" : insn->op);
    if (insn->results + insn->sources > 0)
        put(l, " \t");
    switch (insn->shape) {
    case DIRECT_PLAIN:
        put_plain(d, l, insn, at);
        if (special) {
            put(l, ", ");
            put(l, insn->op);
        }
        break;
    case DIRECT_PACK:
        put_operand(d, l, at);
        put(l, ", ");
        put_group(d, l, source, insn->sources);
        break;
    case DIRECT_LOAD:
        put_group(d, l, at, insn->results);
        put(l, ", ");
        put_address(d, l, source);
        put_list(d, l, source + 1, insn->sources - 1u);
        break;
    case DIRECT_STORE:
        put_address(d, l, source);
        put(l, ", ");
        put_group(d, l, source + 1, insn->sources - 1u);
        break;
    case DIRECT_MATRIX_STORE:
        put_address(d, l, source);
        put(l, ", ");
        put_group(d, l, source + 1, insn->sources - 2u);
        put_list(d, l, source + insn->sources - 1, 1);
        break;
    case DIRECT_PRODUCT:
        put_product(d, l, insn);
        break;
    case DIRECT_COPY:
        put_address(d, l, source);
        put(l, ", ");
        put_address(d, l, source + 1);
        put_list(d, l, source + 2, insn->sources - 2u);
        break;
    case DIRECT_PAIR:
        put_operand(d, l, at);
        put(l, "|");
        put_operand(d, l, at + 1);
        put_list(d, l, source, insn->sources);
        break;
    default:
        put_operand(d, l, at);
        put(l, ", [");
        put(l, d->name);
        put(l, "_param_");
        put_integer(l, source->imm);
        put(l, "]");
    }
    put(l, ";\n");
}

/* ---- copies -----------------------------------------------------------------------------------
 */

typedef struct move {
    uint32_t to;         /* class */
    direct_operand from; /* for a register: its class */
} move;

static void put_move(ir_direct *d, line *l, direct_class cls, const move *m) {
    static const char *const moves[] = {"\tmov.pred \t", "\tmov.b16 \t", "\tmov.u32 \t",
                                        "\tmov.u64 \t",  "\tmov.f32 \t", "\tmov.f64 \t"};
    put(l, moves[cls]);
    put_register(d, l, m->to);
    put(l, ", ");
    put_operand(d, l, &m->from);
    put(l, ";\n");
}

static bool is_from(const move *m, uint32_t reg) {
    return m->from.kind == DIRECT_REG && m->from.reg == reg;
}

/* The copies of an edge between different registers, in the arena. */
static move *moves_of(ir_direct *d, const direct_edge *edge, uint32_t *count) {
    move *moves = EV_NEW_ARRAY(d->arena, move, edge->count + 1);
    *count = 0;
    for (uint32_t c = edge->first; moves && c < edge->first + edge->count; c++) {
        const direct_copy *copy = &d->copies.items[c];
        move m = {.to = direct_class_of(d, copy->phi), .from = copy->from};
        if (!d->registers.items[copy->phi].needed)
            continue;
        if (m.from.kind == DIRECT_REG)
            m.from.reg = direct_class_of(d, m.from.reg);
        if (!is_from(&m, m.to))
            moves[(*count)++] = m;
    }
    if (!moves)
        direct_no_memory(d);
    return moves;
}

/* Finds a move whose target no other move still reads. `count`: all wait for each other. */
static uint32_t find_free(const move *moves, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t k = 0;
        while (k < count && (k == i || !is_from(&moves[k], moves[i].to)))
            k++;
        if (k == count)
            return i;
    }
    return count;
}

/* Puts parallel copies in sequence: a copy that overwrites nothing still to be read comes first; a
 * cycle is broken by way of a spare register. */
static void put_moves(ir_direct *d, line *l, const direct_edge *edge) {
    uint32_t count;
    move *moves = moves_of(d, edge, &count);
    while (count > 0 && d->status == EV_OK) {
        uint32_t i = find_free(moves, count);
        if (i == count) {
            uint32_t held = moves[0].to, cls = d->registers.items[held].cls;
            direct_operand from = {.kind = DIRECT_REG, .cls = (uint8_t)cls, .reg = held};
            put_move(d, l, cls, &(move){.to = d->spare[cls], .from = from});
            for (uint32_t k = 0; k < count; k++)
                if (is_from(&moves[k], held))
                    moves[k].from.reg = d->spare[cls];
            i = 0;
        }
        put_move(d, l, d->registers.items[moves[i].to].cls, &moves[i]);
        moves[i] = moves[--count];
    }
}

static bool has_moves(ir_direct *d, const direct_edge *edge) {
    uint32_t count = 0;
    if (edge->count > 0)
        moves_of(d, edge, &count);
    return count > 0;
}

/* ---- ends of blocks ---------------------------------------------------------------------------
 */

static void put_label(ir_direct *d, line *l, uint32_t block) {
    put(l, "$L__BB0_");
    put_number(l, d->blocks[block].place);
}

static void put_stub(line *l, uint32_t stub) {
    put(l, "$L__EDGE_");
    put_number(l, stub);
}

static void put_guard(ir_direct *d, line *l, bool negated, const direct_operand *condition) {
    put(l, negated ? "\t@!" : "\t@");
    put_operand(d, l, condition);
    put(l, " bra \t");
}

static void put_guarded(ir_direct *d, line *l, bool negated, const direct_operand *condition,
                        uint32_t to) {
    put_guard(d, l, negated, condition);
    put_label(d, l, to);
    put(l, ";\n");
}

static void put_jump(ir_direct *d, line *l, uint32_t from, uint32_t to, bool falls) {
    if (falls && d->blocks[to].place == d->blocks[from].place + 1)
        return;
    put(l, "\tbra.uni \t");
    put_label(d, l, to);
    put(l, ";\n");
}

static bool class_is_live(ir_direct *d, uint32_t reg, uint32_t block) {
    uint32_t r = reg;
    do {
        if (direct_live_into(d, r, block))
            return true;
        r = d->ring[r];
    } while (r != reg);
    return false;
}

/* Whether an edge reads the register in a copy, also in one that needs no instruction. */
static bool edge_reads(ir_direct *d, const direct_edge *edge, uint32_t reg) {
    for (uint32_t c = edge->first; c < edge->first + edge->count; c++) {
        const direct_copy *copy = &d->copies.items[c];
        if (copy->from.kind == DIRECT_REG && d->registers.items[copy->phi].needed &&
            direct_class_of(d, copy->from.reg) == reg)
            return true;
    }
    return false;
}

/* Whether an edge's copies may be made before the branch, on the way to `other` too. */
static bool may_go_before(ir_direct *d, const direct_block *block, const direct_edge *edge,
                          const direct_edge *other) {
    uint32_t count;
    move *moves = moves_of(d, edge, &count);
    for (uint32_t i = 0; i < count && d->status == EV_OK; i++) {
        uint32_t to = moves[i].to;
        if (class_is_live(d, to, other->to) || edge_reads(d, other, to) ||
            direct_class_of(d, block->condition.reg) == to)
            return false;
    }
    return d->status == EV_OK;
}

/* Copies of an edge stand where only that edge comes by: on the way that the branch does not take,
 * if there is but one with copies. */
static void put_branch(ir_direct *d, line *l, uint32_t b) {
    const direct_block *block = &d->blocks[b];
    const direct_edge *yes = &d->edges.items[block->edge], *no = yes + 1;
    bool copies_yes = has_moves(d, yes), copies_no = has_moves(d, no);
    if (copies_yes && may_go_before(d, block, yes, no)) {
        put_moves(d, l, yes);
        copies_yes = false;
    }
    if (!copies_yes && copies_no && may_go_before(d, block, no, yes) && !has_moves(d, yes)) {
        put_moves(d, l, no);
        copies_no = false;
    }
    bool near_yes = d->blocks[yes->to].place == block->place + 1;
    if (copies_yes && copies_no) {
        uint32_t stub = d->stubs++;
        put_guard(d, l, false, &block->condition);
        put_stub(l, stub);
        put(l, ";\n");
        put_moves(d, l, no);
        put_jump(d, l, b, no->to, false);
        put_stub(l, stub);
        put(l, ":\n");
        put_moves(d, l, yes);
        put_jump(d, l, b, yes->to, true);
        return;
    }
    bool negated = copies_yes || (near_yes && !copies_no);
    const direct_edge *taken = negated ? no : yes, *last = negated ? yes : no;
    put_guarded(d, l, negated, &block->condition, taken->to);
    if (copies_yes || copies_no)
        put_moves(d, l, last);
    put_jump(d, l, b, last->to, true);
}

static const direct_edge *edge_to(const ir_direct *d, const direct_block *block,
                                  LLVMBasicBlockRef to) {
    uint32_t rank = ir_map_get(&d->block_map, to), e = 0;
    while (d->edges.items[block->edge + e].to != rank)
        e++;
    return &d->edges.items[block->edge + e];
}

static void put_switch(ir_direct *d, line *l, uint32_t b) {
    const direct_block *block = &d->blocks[b];
    unsigned cases = LLVMGetNumSuccessors(block->last) - 1;
    uint32_t first_stub = d->stubs;
    d->stubs += block->edges;
    for (unsigned i = 0; i < cases; i++) {
        const direct_edge *edge = edge_to(d, block, LLVMGetSuccessor(block->last, i + 1));
        uint32_t at = (uint32_t)(edge - &d->edges.items[block->edge]);
        if (at == 0)
            continue; /* the default edge */
        put_guard(d, l, false, &d->operands.items[block->test + i]);
        if (has_moves(d, edge))
            put_stub(l, first_stub + at);
        else
            put_label(d, l, edge->to);
        put(l, ";\n");
    }
    const direct_edge *other = &d->edges.items[block->edge];
    put_moves(d, l, other);
    put_jump(d, l, b, other->to, false);
    for (uint32_t e = 1; e < block->edges; e++) {
        if (!has_moves(d, other + e))
            continue;
        put_stub(l, first_stub + e);
        put(l, ":\n");
        put_moves(d, l, other + e);
        put_jump(d, l, b, other[e].to, false);
    }
}

static void put_end(ir_direct *d, line *l, uint32_t b) {
    const direct_block *block = &d->blocks[b];
    LLVMOpcode opcode = LLVMGetInstructionOpcode(block->last);
    if (opcode == LLVMRet || opcode == LLVMUnreachable) {
        put(l, opcode == LLVMRet ? "\tret;\n" : "\texit;\n");
    } else if (block->edges == 1) {
        put_moves(d, l, &d->edges.items[block->edge]);
        put_jump(d, l, b, d->edges.items[block->edge].to, true);
    } else if (opcode == LLVMSwitch) {
        put_switch(d, l, b);
    } else {
        put_branch(d, l, b);
    }
}

/* ---- the body ---------------------------------------------------------------------------------
 */

static void number_registers(ir_direct *d) {
    for (uint32_t r = 0; r < d->registers.count; r++) {
        if (!d->registers.items[r].needed)
            continue;
        direct_register *of = &d->registers.items[direct_class_of(d, r)];
        if (of->number == 0)
            of->number = ++d->numbers[of->cls];
    }
    for (unsigned c = 0; c < DIRECT_CLASS_COUNT; c++) {
        d->spare[c] = direct_new(d, c, 0).reg;
        d->registers.items[d->spare[c]].number = ++d->numbers[c];
    }
}

void direct_print(ir_direct *d, ev_str *out) {
    number_registers(d);
    direct_print_head(d, out);
    line l = {.out = out};
    for (uint32_t i = 0; i < d->block_count; i++) {
        uint32_t b = d->order[i];
        if (i > 0) {
            put_label(d, &l, b);
            put(&l, ":\n");
        }
        for (uint32_t k = d->blocks[b].first; k < d->blocks[b].end; k++)
            if (d->insns.items[k].needed)
                put_insn(d, &l, &d->insns.items[k]);
        put_end(d, &l, b);
    }
    put(&l, "}\n");
    flush(&l);
    if (d->status == EV_OK)
        d->status = ev_str_status(out, d->err);
}
