/* Goldens of the instruction table as data: reads tests/fitness/ptx/goldens_*.txt.
 *
 *   # comment                            to the end of the line
 *   module TEXT                          PTX at module scope, for the rest of the row
 *   head TEXT                            .version and .target for the rest of the row
 *   row ID                               a row of ptx_ops.def; what follows must execute it
 *   INSTRUCTION; INSTRUCTION ...         PTX; `\` at the end continues it on the next line
 *       a=7fffffff b=00000001 -> d=80000000 ; a=... -> d=...
 *
 * Indented lines hold the cases of the instructions above them. Left of the arrow are registers
 * before, right of it registers afterwards, %a for `a`. Bits are hexadecimal; their number of
 * digits names the register: 1 a predicate, 4 .b16, 8 .b32, 16 .b64. Cases of single values run
 * together, one a lane. A case with a list [..] has a launch of its own, one value a lane (a single
 * value is everybody's). In lists V*3 is V three times, V..W counts from V up to W.
 *
 * Expected values may also be: nanf16 nanbf16 nan32 nan64 (any NaN), - (never stored: the lane has
 * ended), V|W (either), V~2 (up to 2 units in the last place away), name~=[..] (in any order).
 *
 * Beside registers: m=[..] fills the buffer whose address is %m (2 digits: a byte) and, on the
 * right, is what it holds afterwards (without it: what it held before); grid=2,1,1 block=4,2,1
 * dynamic=64 shape the launch; trap=NAME on the right: the launch ends so; ptxas=NAME on the right:
 * NVIDIA's assembler is known to break the PTX ISA here (golden_faults.def), so a GPU may differ.
 * Free for use are %t0..%t7 (32 bits), %h0..%h3 (16), %w0..%w7 (64), %z0..%z3 (predicates). The
 * entry's parameter `bytes` is an array of the 16 bytes f0 f1 .. ff. */
#ifndef TESTS_FITNESS_PTX_GOLDEN_PARSE_H
#define TESTS_FITNESS_PTX_GOLDEN_PARSE_H

#include "base/arena.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GOLDEN_OPERANDS 12
#define GOLDEN_EITHER 4
#define GOLDEN_LANES 1024

typedef enum golden_kind {
    GOLDEN_EXACT,
    GOLDEN_UNWRITTEN,
    GOLDEN_NAN_F16,
    GOLDEN_NAN_BF16,
    GOLDEN_NAN_32,
    GOLDEN_NAN_64,
} golden_kind;

typedef struct golden_value {
    golden_kind kind;
    uint8_t bits; /* width: 1, 8, 16, 32 or 64 */
    uint8_t count;
    uint64_t either[GOLDEN_EITHER];
    uint64_t ulps;
} golden_value;

typedef struct golden_operand {
    const char *name;
    bool any_order;
    size_t count;
    golden_value *values;
} golden_operand;

/* A known fault of NVIDIA's assembler: golden_faults.def. */
typedef struct golden_fault {
    const char *name, *reason;
    bool guarded_only;
} golden_fault;

typedef struct golden_case {
    unsigned line;
    golden_operand in[GOLDEN_OPERANDS], out[GOLDEN_OPERANDS];
    size_t in_count, out_count;
    golden_operand memory, memory_after; /* count 0: none */
    uint32_t grid[3], block[3], dynamic;
    bool shaped;               /* needs a launch of its own */
    const char *trap;          /* NULL: none */
    const golden_fault *fault; /* of NVIDIA's assembler; NULL: none is known */
} golden_case;

typedef struct golden_insn {
    unsigned line;
    const char *row;
    const char *head; /* NULL: the usual one */
    const char *module_text;
    const char *text;
    golden_case *cases;
    size_t case_count;
} golden_insn;

typedef struct golden_file {
    golden_insn *insns;
    size_t count;
} golden_file;

/* A line that does not have the form above is EV_BAD with its number. Everything lives in `arena`.
 */
ev_status golden_read(const char *path, ev_arena *arena, golden_file *out,
                      ev_error *err) EV_CHECKED;

/* The instructions in a kernel of their own, `k(.param .u64 m)`, which looks at no result: what
 * broken text starts from. To be freed. */
ev_str golden_module(const golden_insn *insn);

#endif
