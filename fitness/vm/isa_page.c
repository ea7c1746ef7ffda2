/* The tables of PTX as a page to read: every instruction, modifier, special register and trap that
 * the machine has, and what it has not. */
#include "fitness/ptx/ptx_load.h"
#include "fitness/vm/isa.h"

#include <stdio.h>
#include <string.h>

/* ---- rows */

static const char *const pipe_names[] = {
#define VM_PIPE(id, name, throughput, latency, meaning) name,
#include "fitness/ptx/pipes.def"
#undef VM_PIPE
};

static const char *pipe_name(uint8_t pipe) {
    if (pipe == PTX_PIPE_FLOAT)
        return "fp16, fp32 or fp64";
    if (pipe == PTX_PIPE_CONV)
        return "cvt or cvt64";
    if (pipe == PTX_PIPE_MEMORY)
        return "by space";
    return pipe_names[pipe];
}

static void print_types(char *out, size_t size, uint32_t types) {
    size_t used = 0;
    *out = 0;
    for (unsigned t = 1; t < PTX_T_COUNT; t++)
        if (types >> t & 1 && used < size)
            used += (size_t)snprintf(out + used, size - used, "%s%s", used ? " " : "",
                                     ptx_type_name((ptx_type)t));
}

/* "rnd? .lo T" as "{.<rnd>}.lo.T". */
static void print_form(char *out, size_t size, const ptx_op *op) {
    size_t used = (size_t)snprintf(out, size, "%s", op->name);
    const char *item = op->format;
    while (*item && used < size) {
        size_t length = strcspn(item, " ");
        bool optional = item[length - 1] == '?';
        size_t bare = length - optional;
        bool group = *item != '.' && bare > 1;
        const char *before = group ? ".<" : ".";
        used += (size_t)snprintf(out + used, size - used, "%s%s%.*s%s%s", optional ? "{" : "",
                                 *item == '.' ? "" : before, (int)bare, item, group ? ">" : "",
                                 optional ? "}" : "");
        item += length + (item[length] == ' ');
    }
}

static bool of_a_text(unsigned row) {
    return *ptx_op_get(row)->name != '(';
}

bool vm_isa_row_get(size_t index, vm_isa_row *out) {
    for (unsigned row = 0; row < PTX_OP_COUNT; row++) {
        if (!of_a_text(row) || index-- > 0)
            continue;
        const ptx_op *op = ptx_op_get(row);
        *out = (vm_isa_row){.name = op->name,
                            .version = op->need.version,
                            .sm = op->need.sm,
                            .pipe = pipe_name(op->pipe),
                            .meaning = op->meaning};
        print_form(out->form, sizeof out->form, op);
        ptx_pattern_text(op->pattern, out->operands, sizeof out->operands);
        print_types(out->types, sizeof out->types, op->types);
        print_types(out->types2, sizeof out->types2, op->types2);
        return true;
    }
    return false;
}

/* ---- the page */

/* A cell; bars would end it. */
static void cell(ev_str *s, const char *text, bool code) {
    ev_str_append(s, code && *text ? "| `" : "| ");
    for (; *text; text++) {
        if (*text == '|')
            ev_str_char(s, '\\');
        ev_str_char(s, *text);
        if (text[1] == 0 && code)
            ev_str_char(s, '`');
    }
    ev_str_char(s, ' ');
}

static void title(ev_str *s, const char *heading, const char *words, const char *columns) {
    ev_str_printf(s, "\n## %s\n\n%s\n\n|", heading, words);
    unsigned count = 1;
    for (const char *c = columns; *c; c++)
        count += *c == '|';
    ev_str_printf(s, " %s |\n", columns);
    while (count--)
        ev_str_append(s, "|---");
    ev_str_append(s, "|\n");
}

static void need_cells(ev_str *s, int version, int sm) {
    ev_str_printf(s, "| %d.%d | %d |\n", version / 10, version % 10, sm);
}

static void print_rows(ev_str *s) {
    title(
        s, "Instructions",
        "Braces hold optional parts. `.T` and `.U` are one of the types in their columns, "
        "`.<name>` is one of a group of [modifiers](#modifiers). Brackets hold optional operands, "
        "except around addresses. The executor is compiled from the meaning: `a`, `b`, `c` are "
        "the operands, `old` is the previous content of memory.",
        "form | operands | T | U | pipe | meaning | PTX | sm");
    vm_isa_row row;
    for (size_t i = 0; vm_isa_row_get(i, &row); i++) {
        cell(s, row.form, true);
        cell(s, row.operands, true);
        cell(s, row.types, false);
        cell(s, row.types2, false);
        cell(s, row.pipe, false);
        cell(s, row.meaning, true);
        need_cells(s, row.version, row.sm);
    }
}

static void print_since(ev_str *s) {
    title(s, "Forms that came later",
          "Some dot-parts need a later version than the row of their instruction. A part after ! "
          "must be absent; * is every instruction.",
          "instruction | parts | PTX | sm");
    ptx_since_rule rule;
    for (size_t i = 0; ptx_since_get(i, &rule); i++) {
        cell(s, rule.names, true);
        cell(s, rule.parts, true);
        need_cells(s, rule.need.version, rule.need.sm);
    }
}

static void print_never(ev_str *s) {
    title(
        s, "Forms that PTX has not",
        "The forms above spell these too; the loader refuses what all the parts hold of, and those "
        "behind ! do not. `<rnd>` is any of a group, `T:US` a type of these kinds: U and S "
        "integers, "
        "B bits, F and H floats, X two halves, P predicates.",
        "instruction | parts | in their place");
    ptx_never_rule rule;
    for (size_t i = 0; ptx_never_get(i, &rule); i++) {
        cell(s, rule.names, true);
        cell(s, rule.parts, true);
        cell(s, rule.expected, false);
        ev_str_append(s, "|\n");
    }
}

static void print_order(ev_str *s) {
    title(
        s, "Orders of parts that are refused",
        "Dot-parts may stand in any order, as for the assembler, but for these: the parts that a "
        "form above has first stay there, and parts of one list keep their order. `<type>` is any "
        "type.",
        "instruction | place | parts");
    ptx_order_rule rule;
    for (size_t i = 0; ptx_order_get(i, &rule); i++) {
        cell(s, rule.names, true);
        cell(s, rule.kind, false);
        cell(s, rule.parts, true);
        ev_str_append(s, "|\n");
    }
}

static void print_modifiers(ev_str *s) {
    title(s, "Modifiers", "The groups that the forms name, and their members.", "group | members");
    for (unsigned g = 0; g < PTX_G_COUNT; g++) {
        ev_str_printf(s, "| `.<%s>` |", ptx_group_name((ptx_group)g));
        for (unsigned m = 1; m < PTX_M_COUNT; m++)
            if (ptx_mod_group((ptx_mod)m) == (ptx_group)g)
                ev_str_printf(s, " `.%s`", ptx_mod_text((ptx_mod)m));
        ev_str_append(s, " |\n");
    }
}

static void print_registers(ev_str *s) {
    title(s, "Special registers", "Blocks are clusters of their own.",
          "register | bits | PTX | sm");
    for (unsigned r = 0; r < PTX_SR_COUNT; r++) {
        ptx_need need = ptx_sreg_need((ptx_sreg)r);
        cell(s, ptx_sreg_text((ptx_sreg)r), true);
        ev_str_printf(s, "| %u ", ptx_sreg_bits((ptx_sreg)r));
        need_cells(s, need.version, need.sm);
    }
}

static void print_small_tables(ev_str *s) {
    title(s, "System functions", "A module may call these functions without defining them.",
          "function | meaning");
#define PTX_SYSTEM(id, name, ret, args, meaning) ev_str_append(s, "| `" name "` | " meaning " |\n");
#include "fitness/ptx/ptx_system.def"
#undef PTX_SYSTEM
    title(s, "Traps",
          "Reasons for which the virtual machine stops a kernel. A trap names the line of the PTX "
          "and of the source, block, thread, address, the nearest allocation and the offset.",
          "trap | meaning");
#define VM_TRAP(id, name, meaning) ev_str_append(s, "| `" name "` | " meaning " |\n");
#include "fitness/vm/traps.def"
#undef VM_TRAP
    title(s, "Pipes", "The unit that executes an instruction; the timing model counts by pipes.",
          "pipe | what it executes");
#define VM_PIPE(id, name, throughput, latency, meaning)                                            \
    ev_str_append(s, "| " name " | " meaning " |\n");
#include "fitness/ptx/pipes.def"
#undef VM_PIPE
}

static void print_textures(ev_str *s) {
    ev_str_append(
        s,
        "\n## Textures and surfaces\n\n"
        "A kernel names a texture or surface by a handle of 64 bits, or by a `.texref` or "
        "`.surfref` "
        "variable that holds one; `texmode_independent` takes samplers of their own. "
        "`evoke run --arg tex:...` and the stand-in's driver calls make handles. A number that is "
        "none traps (`bad-texture`), as does an instruction of another geometry or type.\n\n"
        "- The nearest element of a coordinate x is floor(x). The linear filter weighs the "
        "elements "
        "floor(x - 0.5) and the next by the fraction of x - 0.5, rounded to 8 bits; dimensions "
        "multiply. The sum is exact but for one rounding to the type of the result; CUDA's guide "
        "does "
        "not say how a GPU rounds it.\n"
        "- Wrap and mirror need normalised coordinates; without them both are clamp. Outside of "
        "plain "
        "memory (`tex1Dfetch`) lie zeros. Layers are clamped. A channel that an element lacks is "
        "0, "
        "the fourth is 1. Cubes are not filtered across their edges.\n"
        "- Each texture has one level, which is that of every `.level` and `.grad`. All elements "
        "are "
        "resident.\n"
        "- A fetch is checked as a load through the read-only path: the launch must not write the "
        "element. An array stands in memory row by row.\n"
        "- Outside a surface, `.trap` traps (`out-of-bounds`), `.clamp` takes the nearest access "
        "inside, `.zero` reads zeros and drops stores. `sust.p` keeps the low bits of integers.\n"
        "- `txq` and `suq` answer types and orders with OpenCL's numbers, address modes with "
        "CUDA's, "
        "and filters with 0 (nearest) and 1 (linear).\n"
        "- The timing model counts a fetch as a load of the touched sectors, a request for each "
        "row of the filter's elements. An element outside a border is not read, and one that is "
        "several corners of the filter, as at the end of a clamped texture, is read once.\n");
}

static void print_video(ev_str *s) {
    ev_str_append(
        s,
        "\n## Video instructions\n\n"
        "`.sel` behind `a` and `b` chooses a byte (`.b0` to `.b3`) or a half (`.h0`, `.h1`) of a "
        "word; `.sel` behind `d` puts the result there into `c`. The intermediate result is a "
        "signed number of 34 bits; `.sat` clamps it to the type and place of `d`, and `.add`, "
        "`.min` and `.max` take `c` in. Without a sign in `.T`, `.min` and `.max` take a result "
        "below 0 for a large one.\n\n"
        "With 2 and 4, places of `a` and `b` are counted together, from the lowest part of `a` "
        "(0) to the highest of `b` (3 or 7), as in `.h32` and `.b7654`; `.sel` behind `d` is a "
        "mask such as `.h1` or `.b320`, and `c` has the other parts. `.add` adds the parts of "
        "the mask to `c`.\n");
}

static void print_absent(ev_str *s) {
    title(s, "Not supported",
          "The loader refuses these, with line and column. `*` is any instruction, or at the end "
          "any ending of a function's name.",
          "name | what it is | in its place");
    ptx_absent row;
    for (size_t i = 0; ptx_absent_get(i, &row); i++) {
        cell(s, row.name, true);
        cell(s, row.what, false);
        cell(s, row.cure, false);
        ev_str_append(s, "|\n");
    }
}

void vm_isa_print_markdown(ev_str *s) {
    ev_str_append(s,
                  "# The instructions of the virtual machine\n\nThis file is printed by `evoke isa "
                  "--markdown` from the tables in `fitness/ptx/*.def` that the loader and the "
                  "executor are made of; a test compares them. PTX and sm are the first version of "
                  "PTX and the first target that support a row. Words such as `ptx_bfe` are "
                  "functions of `fitness/vm/exec/exec_math.h`.\n");
    print_rows(s);
    print_since(s);
    print_never(s);
    print_order(s);
    print_modifiers(s);
    print_registers(s);
    print_small_tables(s);
    print_textures(s);
    print_video(s);
    print_absent(s);
}
