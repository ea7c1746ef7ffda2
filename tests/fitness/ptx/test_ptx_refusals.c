/* Every message of the loader, provoked by a malformed text: line, column, what was found and what
 * was expected. The messages are also read out of the loader's sources: one that no row here
 * provokes fails. */
#include "base/file.h"
#include "fitness/vm/vm.h"

#include <ctype.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NEWER ".version 9.0\n.target sm_90\n.address_size 64\n"
#define HEAD ".version 8.5\n.target sm_90\n.address_size 64\n"
#define OPEN                                                                                       \
    ".visible .entry k(.param .u64 p)\n{\n.reg .pred %p<4>; .reg .b16 %h<4>;\n.reg .b32 %r<4>;\n"  \
    ".reg .f32 %f<4>; .reg .b64 %rd<4>;\n"
#define KERNEL HEAD OPEN
#define OLD ".version 5.0\n.target sm_52\n.address_size 64\n" OPEN
#define SEPARATE                                                                                   \
    ".version 8.5\n.target sm_90, texmode_independent\n.address_size 64\n.global .texref t;\n"
#define FUNCTIONS                                                                                  \
    HEAD ".func (.param .u32 r) f(.param .u32 a);\n.func g(.param .u32 a[2]);\n"                   \
         ".extern .func outside();\n" OPEN

/* In the text `~` marks the place that must be named, `#` stands for `times` times `unit`, and `$`
 * in the unit for their number from 0. The message is whole, save for the place before it. */
typedef struct refusal {
    const char *text, *message, *unit;
    unsigned times;
} refusal;

static const refusal refusals[] = {
    /* the head */
    {"~", "found the end of the text; expected a module that begins with .version and .target",
     NULL, 0},
    {"~.entry k()\n{\n}", "found '.entry'; expected .version and .target before all else", NULL, 0},
    {".version 8.5\n~",
     "found the end of the text; expected a module that begins with .version and .target", NULL, 0},
    {".version ~2.3", "found '2.3'; expected a version from 3.0 to 9.9, such as 8.5", NULL, 0},
    {".version ~8", "found '8'; expected a version from 3.0 to 9.9, such as 8.5", NULL, 0},
    {".version 8.5\n.target ~sm_10",
     "found 'sm_10'; expected a target from sm_20 to sm_121, such as sm_90 or sm_90a", NULL, 0},
    {".version 8.5\n.target ~42", "found '42'; expected a target such as sm_90", NULL, 0},
    {".version 8.5\n.target sm_90, ~fast", "found 'fast'; expected a target such as sm_90", NULL,
     0},
    {".target ~sm_80", "found 'sm_80'; expected .version before .target", NULL, 0},
    {".version 7.8\n.target ~sm_90a", "'sm_90a' needs .version 8.0 or higher; the module says 7.8",
     NULL, 0},
    {HEAD ".address_size ~32\n", "found '32'; expected 64 (32-bit addresses are not supported)",
     NULL, 0},
    {HEAD ".file 1 ~name\n", "found 'name'; expected a file name", NULL, 0},
    {HEAD ".section .debug_str\n{\n.b8 1, 2~", "found the end of the text; expected '}'", NULL, 0},
    {HEAD "~.frob\n",
     "found '.frob'; expected a directive that the machine has: .entry, .func, .global, .const, "
     ".shared, .version, .target, .address_size, .file, .section",
     NULL, 0},
    {HEAD "~)\n",
     "found ')'; expected a directive that the machine has: .entry, .func, .global, .const, "
     ".shared, .version, .target, .address_size, .file, .section",
     NULL, 0},
    {HEAD "~\377\n",
     "found byte 0xff; expected a directive that the machine has: .entry, .func, .global, .const, "
     ".shared, .version, .target, .address_size, .file, .section",
     NULL, 0},
    {HEAD "~\"open\n",
     "found the malformed '\"open'; expected a directive that the machine has: .entry, .func, "
     ".global, .const, .shared, .version, .target, .address_size, .file, .section",
     NULL, 0},
    /* variables */
    {HEAD
     ".entry ~k()\n{\n.shared .align 4 .b8 a[32768];\n.shared .align 4 .b8 b[16388];\nret;\n}\n",
     "found 49156 bytes of static shared memory in 'k'; expected at most 49152 (the launch sizes "
     "an .extern array)",
     NULL, 0},
    {HEAD ".global .align ~3 .u32 x;\n", "found '3'; expected a power of two up to 4096", NULL, 0},
    {HEAD ".global ~.q32 x;\n", "found '.q32'; expected a type", NULL, 0},
    {HEAD ".global .u32 x[~-1];\n", "found '-'; expected a number of elements up to 2^28", NULL, 0},
    {HEAD ".global .u8 x[65536][~65536];\n", "found '65536'; expected at most 2^28 elements in all",
     NULL, 0},
    {HEAD ".global .u32 ~5;\n", "found '5'; expected a name", NULL, 0},
    {HEAD ".global .pred ~x;\n", "found a variable of type .pred; expected a type with bytes", NULL,
     0},
    {HEAD ".global .u64 ~x[100000000];\n",
     "found a variable of 800000000 bytes; expected at most 2^28", NULL, 0},
    {HEAD ".global .u32 x[1] = {1, ~2};\n",
     "found more values for 'x'; expected at most 4 bytes of them", NULL, 0},
    {HEAD ".global .u64 x = ~nothing;\n",
     "found 'nothing'; expected a value or the name of a variable or function", NULL, 0},
    {HEAD ".global .u32 y;\n.global .u32 x = ~y;\n",
     "found 'y'; expected a number: only a type of 64 bits holds an address", NULL, 0},
    {HEAD ".global .u32 y;\n.global .u32 x = 0xff00~(y);\n",
     "found '('; expected a mask of one byte, in a variable of bytes", NULL, 0},
    {HEAD ".global .u32 x = ~;\n", "found ';'; expected an initial value", NULL, 0},
    {HEAD ".global .u32 x = #~1;\n", "found '1'; expected at most 17 nested braces", "{", 18},
    {HEAD ".shared .u32 x ~= 1;\n",
     "found '='; expected ';': a .shared variable has no initial value", NULL, 0},
    {HEAD ".global .u32 x = 1 ~2;\n", "found '2'; expected ';'", NULL, 0},
    {KERNEL ".local .b8 x[268435456]; .local .b8 ~y[268435456];\n}\n",
     "found 'y' of 268435456 bytes; expected at most 2^28 bytes of local memory", NULL, 0},
    {HEAD ".extern .global .u32 ~x;\n",
     "found an extern variable 'x'; expected one defined in this module", NULL, 0},
    {HEAD ".global .attribute(~.frob) .u32 x;\n", "found '.frob'; expected .managed or .unified",
     NULL, 0},
    {NEWER ".global .attribute(.unified(1 ~2)) .u32 x;\n", "found '2'; expected ','", NULL, 0},
    {HEAD ".global .u32 x;\n.global .u32 ~x;\n",
     "found a second declaration of 'x'; expected a new name", NULL, 0},
    /* functions */
    {HEAD ".visible .entry ~(.param .u32 x)\n{\n}\n", "found '('; expected the name of a function",
     NULL, 0},
    {HEAD ".entry k()\n{\nret;\n}\n.entry ~k()\n{\n}\n",
     "found a second 'k'; expected one definition", NULL, 0},
    {HEAD ".entry k() .maxntid ~2097152\n{\n}\n", "found '2097152'; expected a number up to 2^20",
     NULL, 0},
    {HEAD ".entry k() ~.frob\n{\n}\n",
     "found '.frob'; expected '{', ';' or a performance directive", NULL, 0},
    {HEAD ".entry k() ~ret;\n", "found 'ret'; expected '{' or ';'", NULL, 0},
    {HEAD ".func f(.param .u32 x);\n.func ~f(.param .u64 x)\n{\nret;\n}\n",
     "found another list of parameters or results of 'f'; expected those of its declaration", NULL,
     0},
    {HEAD ".entry ~k(.reg .u32 x)\n{\nret;\n}\n",
     "found a .reg parameter of an entry; expected .param", NULL, 0},
    {HEAD ".func f(~.u32 x)\n{\n}\n", "found '.u32'; expected .param or .reg", NULL, 0},
    {HEAD ".func f(.reg .pred ~p)\n{\n}\n", "found 'p'; expected a parameter with bytes", NULL, 0},
    {HEAD ".func f(.reg .u32 ~7)\n{\n}\n", "found '7'; expected the name of a register", NULL, 0},
    {HEAD ".func f(.param .b8 x[]~)\n{\n}\n",
     "found ')'; expected a parameter of known size (functions of any number of arguments are not "
     "supported)",
     NULL, 0},
    {HEAD ".func f(.param .b8 ~x[70000])\n{\nret;\n}\n",
     "found 'x' of 70000 bytes; expected a parameter of at most 64 KiB", NULL, 0},
    {KERNEL "ret;\n~", "found the end of the text; expected '}'", NULL, 0},
    /* registers, labels, blocks */
    {KERNEL ".reg .b32 ~7;\n}\n", "found '7'; expected a register name", NULL, 0},
    {KERNEL ".reg .b32 %q<~99999999>;\n}\n",
     "found '99999999'; expected a number of registers up to 2^20", NULL, 0},
    {KERNEL "~.frob\n}\n",
     "found '.frob'; expected .reg, .local, .shared, .param, .loc, .pragma or an instruction", NULL,
     0},
    {KERNEL "L: ret;\n~L: ret;\n}\n", "found a second declaration of 'L'; expected a new name",
     NULL, 0},
    {KERNEL "bra ~nowhere;\n}\n", "found 'nowhere'; expected a label of this function", NULL, 0},
    {KERNEL "#~{", "found blocks nested too deep; expected at most 63", "{", 62},
    {KERNEL "@~%r1 bra L;\nL: ret;\n}\n", "found '%r1'; expected a predicate register after '@'",
     NULL, 0},
    {KERNEL ".loc 1 ~x 2\n}\n", "found 'x'; expected an integer", NULL, 0},
    {KERNEL ".reg .b32 %q<70000>;\n#not.b32 ~%q65535, %q0;\n}\n",
     "found more than 65535 registers; expected a smaller module", "not.b32 %q$, %q$;\n", 65535},
    {KERNEL "#{ .param .b8 ~z[65536];\n}\n",
     "found 'z' of 65536 bytes; expected at most 64 MiB of registers and parameters",
     "{ .param .b8 z[65536];\n", 32},
    /* instructions */
    {KERNEL "~17;\n}\n", "found '17'; expected an instruction", NULL, 0},
    {KERNEL "~wgmma.fence.sync.aligned;\n}\n",
     "found 'wgmma.fence.sync.aligned': a matrix product of four warps (sm_90a), which this "
     "machine does not have; expected mma.sync, and a .target without the letter a",
     NULL, 0},
    {KERNEL ".reg .v2 ~.pred v;\n}\n", "found '.pred'; expected a type with bytes for a vector",
     NULL, 0},
    {KERNEL ".reg .v2 .b32 v;\nmov.b32 v~.z, 1;\n}\n",
     "found '.z'; expected a part of a vector of 2", NULL, 0},
    {FUNCTIONS "{\n.param .u32 q;\n@%p1 ld.param.u32 %r1, ~[q];\n}\n}\n",
     "found 'q' in an instruction with a guard; expected none for a value of a call", NULL, 0},
    {KERNEL "~mul.u32.lo %r1, %r2, %r3;\nret;\n}\n",
     "found 'mul.u32.lo'; expected its parts as in 'mul.lo.u32'", NULL, 0},
    {KERNEL "~frobnicate.u32 %r1, %r2;\nret;\n}\n",
     "found 'frobnicate.u32'; expected an instruction that the machine has", NULL, 0},
    {KERNEL "add#.~x;\n}\n", "found more than 16 parts; expected an instruction", ".x", 15},
    {KERNEL "~setp.lt %p1, %r1, %r2;\n}\n",
     "found 'setp.lt'; expected it to go on with .ftz, .u16, .u32, .u64, .s16, .s32, .s64, .b16, "
     ".b32, .b64, .f16, .bf16, .f32, .f64, .and, .or, .xor, "
     ".f16x2, .bf16x2",
     NULL, 0},
    {KERNEL "add.~u8 %r1, %r2, %r3;\n}\n",
     "found '.u8' in 'add.u8'; expected .u16, .u32, .u64, .s16, .s32, .s64, .u16x2, .s16x2, .sat, "
     ".cc, .rn, .rz, .rm, .rp, .rna, .ftz, .f32, .f64, .f16, .bf16, .f16x2, .bf16x2",
     NULL, 0},
    {KERNEL "add.~frn.f32 %f1, %f2, %f3;\n}\n",
     "found '.frn' in 'add.frn.f32'; expected .u16, .u32, .u64, .s16, .s32, .s64, .u16x2, .s16x2, "
     ".sat, .cc, .rn, .rz, .rm, .rp, .rna, .ftz, .f32, .f64, .f16, .bf16, .f16x2, .bf16x2",
     NULL, 0},
    {KERNEL "add.u32.~u32 %r1, %r2, %r3;\n}\n",
     "found '.u32' in 'add.u32.u32'; expected no more parts", NULL, 0},
    {KERNEL "~add.u32 %r1, %r2;\n}\n", "found 2 operands of 'add.u32'; expected d, a, b", NULL, 0},
    {KERNEL "~add.ftz.f64 %rd1, %rd2, %rd3;\n}\n",
     "found .ftz in 'add.ftz.f64'; expected it with a type .f32, .f16 or .bf16", NULL, 0},
    {KERNEL "~setp.eq.f16 %p1|%p2, %h1, %h2;\n}\n",
     "found two predicates of 'setp.eq.f16'; expected one of a half format", NULL, 0},
    {KERNEL "~setp.geu.s32 %p1, %r1, %r2;\n}\n",
     "found 'setp.geu.s32'; expected a comparison and a space that this type and instruction can "
     "have",
     NULL, 0},
    {KERNEL "~st.const.u32 [%rd1], %r2;\n}\n",
     "found 'st.const.u32'; expected a comparison and a space that this type and instruction can "
     "have",
     NULL, 0},
    {OLD "~bar.warp.sync -1;\nret;\n}\n",
     "'bar.warp.sync' needs .version 6.0 or higher; the module says 5.0", NULL, 0},
    {OLD "~add.f16 %h1, %h2, %h3;\nret;\n}\n",
     "'add.f16' needs .target sm_53 or higher; the module says sm_52", NULL, 0},
    {OLD "~ld.acquire.sys.u32 %r1, [%rd1];\nret;\n}\n",
     "'ld.acquire.sys.u32' needs .target sm_70 or higher; the module says sm_52", NULL, 0},
    {KERNEL "~shfl.up.b32 %r1, %r2, 1, 0;\n}\n",
     "'shfl.up.b32' needs a target below sm_70 or a .version below 6.4; use shfl.sync.up.b32 with "
     "a member mask",
     NULL, 0},
    {KERNEL "mov.u32 %r1, ~%r9;\n}\n", "found '%r9'; expected a declared register", NULL, 0},
    {HEAD ".global .u32 x;\n" OPEN "mov.u64 %rd1, x~[0];\n}\n",
     "found an index of 'x'; expected one of an array", NULL, 0},
    /* operands */
    {KERNEL "mov.u32 %r1, ~0x;\n}\n", "found the malformed '0x'; expected an operand", NULL, 0},
    {KERNEL "mov.u32 %r1, ~;\n}\n", "found ';'; expected an operand", NULL, 0},
    {KERNEL "mov.u32 %r1 ~%r2;\n}\n", "found '%r2'; expected ';'", NULL, 0},
    {KERNEL "ld.global.u32 %r1, [~x];\n}\n", "found 'x'; expected a register or a variable", NULL,
     0},
    {KERNEL "ld.global.u32 %r1, [~];\n}\n", "found ']'; expected an integer", NULL, 0},
    {KERNEL "ld.global.u32 %r1, [%rd1~;\n}\n", "found ';'; expected ']'", NULL, 0},
    {KERNEL "mov.b64 {%r1, %r2, %r3, %r1, %r1, %r1, %r1, %r1, ~%r1}, %rd1;\n}\n",
     "found '%r1'; expected '}' after eight elements", NULL, 0},
    {KERNEL "mov.b64 {~{%r1}, %r2}, %rd1;\n}\n", "found '{'; expected an element", NULL, 0},
    {KERNEL "setp.eq.and.u32 %p1, %r1, %r2, !~5;\n}\n", "found '5'; expected a predicate after '!'",
     NULL, 0},
    {KERNEL "add.u32 %r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1, ~%r1;\n}\n",
     "found '%r1'; expected ';': no instruction has so many operands", NULL, 0},
    {KERNEL "add.u32 %r1, %r2, ~%rd3;\n}\n",
     "found %rd3 of 64 bits; expected a register of 32 bits", NULL, 0},
    {KERNEL "add.f32 %f1, %f2, ~3;\n}\n", "found an integer; expected a floating-point number",
     NULL, 0},
    {KERNEL "add.u32 %r1, %r2, ~1.5;\n}\n",
     "found a floating-point number; expected one of 32 bits", NULL, 0},
    {KERNEL ".local .b32 x;\nadd.u64 %rd1, %rd2, ~x;\n}\n",
     "found the address of 'x'; expected it in a mov", NULL, 0},
    {KERNEL "add.u32 %r1, %r2, ~[%r3];\n}\n",
     "found '[%r3]'; expected a register or number of type u32", NULL, 0},
    {KERNEL "selp.b32 %r1, %r2, %r3, ~%r1;\n}\n", "found '%r1'; expected a predicate", NULL, 0},
    {KERNEL "add.u32 ~5, %r2, %r3;\n}\n", "found '5'; expected a destination register", NULL, 0},
    {KERNEL "ld.global.v2.u32 ~{%r1}, [%rd1];\n}\n", "found 1 elements; expected 2", NULL, 0},
    {KERNEL "ld.global.v2.u32 {%r1, ~5}, [%rd1];\n}\n",
     "found '5'; expected a destination register", NULL, 0},
    {KERNEL "ld.global.v2.u32 {%r1, ~%rd2}, [%rd1];\n}\n",
     "found registers of two widths; expected one", NULL, 0},
    {KERNEL "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r1, ~5}, {%r1, %r2}, {%r3}, {%r1, "
            "%r2};\n}\n",
     "found '5'; expected a destination register", NULL, 0},
    {KERNEL
     "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r1, %r2}, ~{%r1}, {%r3}, {%r1, %r2};\n}\n",
     "found 1 elements; expected 2 in { }", NULL, 0},
    {KERNEL "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r1, %r2}, {%r1, %r2}, ~%r3, {%r1, "
            "%r2};\n}\n",
     "found 1 elements without { }; expected 1 in { }", NULL, 0},
    {KERNEL
     "~wmma.load.a.sync.row.m16n16k16.f16 {%r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1}, [%rd1];\n}\n",
     "found wmma without .aligned; expected it since version 6.3", NULL, 0},
    {KERNEL "~wmma.load.a.sync.aligned.col.m8n8k32.s4 {%r1}, [%rd1];\n}\n",
     "found the layout .col for elements of .s4; expected .row", NULL, 0},
    {KERNEL "~wmma.load.a.sync.aligned.row.m16n16k16.local.f16 {%r1, %r1, %r1, %r1, %r1, %r1, %r1, "
            "%r1}, [%rd1];\n}\n",
     "found another space; expected .global or .shared", NULL, 0},
    {KERNEL "~ldmatrix.sync.aligned.m8n8.x1.global.b16 {%r1}, [%rd1];\n}\n",
     "found another space; expected .shared", NULL, 0},
    {KERNEL "ld.param.u64 %rd1, ~[p+8];\n}\n",
     "found offset 8 in 'p'; expected an access inside its 8 bytes", NULL, 0},
    {KERNEL "ld.param.u32 %r1, ~[p+2];\n}\n",
     "found offset 2 in 'p' for an access of 4 bytes; expected a parameter and an offset that are "
     "aligned to it",
     NULL, 0},
    {KERNEL "ld.global.u32 %r1, ~%rd1;\n}\n", "found '%rd1'; expected an address in [ ]", NULL, 0},
    {KERNEL ".shared .u32 x;\nld.global.u32 %r1, ~[x];\n}\n",
     "found 'x'; expected a variable of the same space", NULL, 0},
    {KERNEL "st.param.u32 ~[%rd1], %r1;\n}\n",
     "found an address in a register; expected [parameter]", NULL, 0},
    {KERNEL "ld.param.u32 %r1, ~[8];\n}\n", "found a number as the address; expected [parameter]",
     NULL, 0},
    {KERNEL "ld.global.u32 %r1, ~[%p1];\n}\n", "found a register of 1 bits; expected 32 or 64",
     NULL, 0},
    {KERNEL "bra ~%r1;\n}\n", "found '%r1'; expected a label", NULL, 0},
    {KERNEL "L: brx.idx %r1, ~L;\n}\n", "found 'L'; expected the name of .branchtargets", NULL, 0},
    {KERNEL "lop3.b32 %r1, %r2, %r3, %r1, ~%r2;\n}\n", "found '%r2'; expected an integer constant",
     NULL, 0},
    {KERNEL "cp.async.ca.shared.global [%r1], ~%rd1, 4;\n}\n",
     "found '%rd1'; expected an address in [ ]", NULL, 0},
    {KERNEL ".shared .u32 x;\ncp.async.ca.shared.global [%r1], ~[x], 4;\n}\n",
     "found 'x'; expected a .global variable", NULL, 0},
    {KERNEL "cp.async.ca.shared.global [%r1], ~[%rd1+4294967296], 4;\n}\n",
     "found an offset beyond 2^31; expected a smaller one", NULL, 0},
    {KERNEL "cp.async.cg.shared.global [%r1], [%rd1], ~8;\n}\n",
     "found '8'; expected 16, the only size of .cg", NULL, 0},
    {KERNEL "cp.async.ca.shared.global [%r1], [%rd1], ~5;\n}\n",
     "found '5'; expected 4, 8 or 16 bytes", NULL, 0},
    {KERNEL "cp.async.ca.shared.global [%r1], [%rd1], 4, ~8;\n}\n",
     "found 8 bytes to read; expected at most 4", NULL, 0},
    {KERNEL "mov.b32 ~{%r1, %r2, %r3}, %r1;\n}\n",
     "found a vector; expected a mov of .b32 or .b64 with two or four elements on one side", NULL,
     0},
    {KERNEL "mov.u32 %r1, ~%clock64;\n}\n", "found a special register of 64 bits; expected 32",
     NULL, 0},
    {KERNEL "setp.eq.u32 %p1, %r1|~%r2, %r2;\n}\n", "found other operands; expected p[|q], a, b",
     NULL, 0},
    {KERNEL "ret.~frob;\n}\n", "found '.frob' in 'ret.frob'; expected .uni, no more parts", NULL,
     0},
    {KERNEL "shfl.sync.idx.b32 %r1, %r2, 1, 31, -1, ~5;\n}\n",
     "found one operand too many; expected d[|p], a, b, c, e", NULL, 0},
    /* calls and tables */
    {KERNEL "x: .callprototype ~5;\n}\n", "found '5'; expected '_'", NULL, 0},
    {KERNEL "x: .callprototype _ () ~.frob;\n}\n",
     "found '.frob'; expected ';', .noreturn or .abi_preserve", NULL, 0},
    {KERNEL "x: .branchtargets ~5;\n}\n", "found '5'; expected a list of names, at most 65536",
     NULL, 0},
    {KERNEL "x: .calltargets ~nobody;\n}\n",
     "found 'nobody'; expected the name of a declared function", NULL, 0},
    {HEAD ".alias ~a, b;\n", "found 'a'; expected the name of a declared function", NULL, 0},
    {HEAD ".func a();\n.func b();\n.alias a, ~b;\n", "found 'b'; expected a function with a body",
     NULL, 0},
    {HEAD ".func a()\n{\nret;\n}\n.alias ~a, a;\n", "found 'a'; expected a function without a body",
     NULL, 0},
    {HEAD ".func a(.param .u32 x);\n.func b()\n{\nret;\n}\n.alias a, ~b;\n",
     "found 'b'; expected a function of the same parameters and results", NULL, 0},
    {KERNEL "call (#~%r1), f;\n}\n", "found '%r1'; expected at most 64 values", "%r1, ", 64},
    {KERNEL "call.uni ~nobody, (p);\n}\n",
     "found 'nobody'; expected a declared function or a register of 64 bits", NULL, 0},
    {KERNEL "call ~k;\n}\n", "found 'k'; expected a function that is no entry", NULL, 0},
    {FUNCTIONS "call (%r1), f, (~p);\nret;\n}\n",
     "found 'p'; expected a .param variable of this function of 4 bytes for 'a', a register or a "
     "number",
     NULL, 0},
    {FUNCTIONS "call (~5), f, (%r1);\nret;\n}\n",
     "found '5'; expected a .param variable of this function of 4 bytes for 'r' or a register",
     NULL, 0},
    {FUNCTIONS "call g, (~%rd1);\nret;\n}\n",
     "found '%rd1'; expected a .param variable of this function of 8 bytes for 'a'", NULL, 0},
    {FUNCTIONS "call (%r1), f, (~%rd1);\nret;\n}\n",
     "found %rd1 of 64 bits for 'a'; expected a register of 32 bits", NULL, 0},
    {FUNCTIONS "call ~f, (%r1);\nret;\n}\n",
     "found a call of 'f' with 0 results and 1 arguments; expected 1 and 1", NULL, 0},
    {FUNCTIONS "call (%r1) ~f, (%r1);\nret;\n}\n", "found 'f'; expected ','", NULL, 0},
    {FUNCTIONS "call (%r1), f, (%r1), ~x;\nret;\n}\n", "found 'x'; expected ';'", NULL, 0},
    {FUNCTIONS "call (%r1), %rd1, (%r1), ~x;\nret;\n}\n",
     "found 'x'; expected the name of a .callprototype or of .calltargets", NULL, 0},
    {FUNCTIONS "call ~outside, ();\nret;\n}\n",
     "found a call of 'outside', which has no body; expected a function of this module", NULL, 0},
    {HEAD "~add.u32 %r1, %r1, %r1;\n",
     "found 'add'; expected a directive that the machine has: .entry, .func, .global, .const, "
     ".shared, .version, .target, .address_size, .file, .section",
     NULL, 0},
    /* textures and surfaces */
    {KERNEL "tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, ~[%rd0];\n",
     "found '[%rd0]'; expected [texture or surface, {coordinates}]", NULL, 0},
    {KERNEL "tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%rd0, ~4];\n",
     "found no register; expected one, or coordinates in { }", NULL, 0},
    {KERNEL "tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, ~[%rd0+8, {%r0}];\n",
     "found an address; expected a texture or surface alone", NULL, 0},
    {KERNEL "tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [~%r0, {%r0}];\n",
     "found %r0 of 32 bits; expected a register of 64 bits", NULL, 0},
    {KERNEL "tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, ~[%rd0, {%r0, %r1}];\n",
     "found 2 coordinates; expected 1", NULL, 0},
    {KERNEL "tex.3d.v4.f32.f32 {%f0, %f1, %f2, %f3}, ~[%rd0, {%f0, %f1, %f2}];\n",
     "found 3 coordinates; expected 4", NULL, 0},
    {KERNEL "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd0, {~%rd0, %rd1}];\n",
     "found %rd0 of 64 bits; expected a register of 32 bits", NULL, 0},
    {KERNEL "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, ~[%rd0, %rd0, {%f0, %f1}];\n",
     "found '[%rd0, %rd0, {%f0, %f1}]'; expected [texture or surface, {coordinates}]", NULL, 0},
    {KERNEL "tex.2d.v2.~f32.f32 {%f0, %f1}, [%rd0, {%f0, %f1}];\n",
     "found '.f32' in 'tex.2d.v2.f32.f32'; expected .f16x2", NULL, 0},
    {KERNEL "tex.2d.v4.~b32.f32 {%f0, %f1, %f2, %f3}, [%rd0, {%f0, %f1}];\n",
     "found '.b32' in 'tex.2d.v4.b32.f32'; expected .u32, .s32, .f16, .f32", NULL, 0},
    {KERNEL "~tex.cube.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%rd0, {%r0, %r1, %r2, %r3}];\n",
     "found 'tex.cube.v4.f32.s32'; expected coordinates of .f32", NULL, 0},
    {KERNEL "~tex.2dms.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%rd0, {%r0, %r1, %r2, %r3}];\n",
     "found 'tex.2dms.v4.f32.s32': a texture of several samples an element, which this machine "
     "does not have; expected .2d, and a texture of one sample",
     NULL, 0},
    {KERNEL "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd0, {%f0, %f1}], ~%f2;\n",
     "found a depth to compare with, which this machine does not have; expected tex without it, "
     "and a setp",
     NULL, 0},
    {KERNEL "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd0, {%f0, %f1}], {1, 2}, ~%f2;\n",
     "found a depth to compare with, which this machine does not have; expected tex without it, "
     "and a setp",
     NULL, 0},
    {KERNEL "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd0, {%f0, %f1}], ~{1};\n",
     "found '{1}'; expected 2 offsets in { }, and none for a cube", NULL, 0},
    {KERNEL "tex.grad.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd0, {%f0, %f1}], ~{%f0}, {%f1};\n",
     "found '{%f0}'; expected a gradient of 2 elements in { }", NULL, 0},
    {KERNEL "tex.grad.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd0, {%f0, %f1}], ~%f0, %f1;\n",
     "found '%f0'; expected a gradient of 2 elements in { }", NULL, 0},
    {KERNEL "~tld4.r.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd0, {%f0}];\n",
     "found 'tld4.r.1d.v4.f32.f32'; expected .2d, .a2d, .cube or .acube", NULL, 0},
    {KERNEL "tld4.r.2d.v4.f32.~s32 {%f0, %f1, %f2, %f3}, [%rd0, {%r0, %r1}];\n",
     "found '.s32' in 'tld4.r.2d.v4.f32.s32'; expected .f32", NULL, 0},
    {KERNEL "txq.force_unnormalized_coords.b32 %r0, ~[%rd0];\n",
     "found a question about a sampler; expected it with texmode_independent in .target", NULL, 0},
    {KERNEL "~txq.memory_layout.b32 %r0, [%rd0];\n",
     "found 'txq.memory_layout.b32'; expected suq for this question", NULL, 0},
    {KERNEL "~txq.level.array_size.b32 %r0, [%rd0], 0;\n",
     "found 'txq.level.array_size.b32'; expected .width, .height or .depth with .level", NULL, 0},
    {KERNEL "~suq.filter_mode.b32 %r0, [%rd0];\n",
     "found 'suq.filter_mode.b32'; expected txq for this question", NULL, 0},
    {KERNEL "~suld.b.1d.b32 %r0, [%rd0, {%r0}];\n",
     "found 'suld.b.1d.b32'; expected it to go on with .trap, .clamp, .zero", NULL, 0},
    {KERNEL "suld.b.1d.~u32.trap %r0, [%rd0, {%r0}];\n",
     "found '.u32' in 'suld.b.1d.u32.trap'; expected .ca, .cg, .cs, .lu, .cv, .wb, .wt, .v2, .v4, "
     ".b8, .b16, .b32, .b64",
     NULL, 0},
    {KERNEL "~suld.b.1d.v4.b64.trap {%rd0, %rd1, %rd2, %rd3}, [%rd0, {%r0}];\n",
     "found 'suld.b.1d.v4.b64.trap'; expected at most 16 bytes", NULL, 0},
    {KERNEL "~suld.b.2d.wb.b32.trap %r0, [%rd0, {%r0, %r1}];\n",
     "found 'suld.b.2d.wb.b32.trap'; expected .ca, .cg, .cs or .cv", NULL, 0},
    {KERNEL "~suld.b.cube.b32.trap %r0, [%rd0, {%r0, %r1, %r2, %r3}];\n",
     "found 'suld.b.cube.b32.trap'; expected .1d, .2d, .3d, .a1d or .a2d", NULL, 0},
    {KERNEL "suld.b.1d.b32.trap %r0, [%rd0, {~%rd0}];\n",
     "found %rd0 of 64 bits; expected a register of 32 bits", NULL, 0},
    {KERNEL "~sust.b.1d.ca.b32.trap [%rd0, {%r0}], %r0;\n",
     "found 'sust.b.1d.ca.b32.trap'; expected .wb, .cg, .cs or .wt", NULL, 0},
    {KERNEL "sust.p.2d.~b64.trap [%rd0, {%r0, %r1}], %rd0;\n",
     "found '.b64' in 'sust.p.2d.b64.trap'; expected .ca, .cg, .cs, .lu, .cv, .wb, .wt, .v2, .v4, "
     ".b32",
     NULL, 0},
    {KERNEL "~sured.p.add.2d.b32.trap [%rd0, {%r0, %r1}], %r0;\n",
     "found 'sured.p.add.2d.b32.trap': a reduction by elements of a surface, which this machine "
     "does not have; expected sured.b, with the first coordinate in bytes",
     NULL, 0},
    {KERNEL "~sured.b.add.a2d.u32.trap [%rd0, {%r0, %r1, %r2, %r3}], %r0;\n",
     "found 'sured.b.add.a2d.u32.trap'; expected .1d, .2d or .3d", NULL, 0},
    {KERNEL "sured.b.or.1d.~b64.trap [%rd0, {%r0}], %rd0;\n",
     "found '.b64' in 'sured.b.or.1d.b64.trap'; expected .b32", NULL, 0},
    {HEAD ".global ~.samplerref s;\n",
     "found '.samplerref'; expected texmode_independent in .target for a sampler of its own", NULL,
     0},
    {HEAD ".const ~.texref t;\n",
     "found '.texref'; expected a type with bytes: textures, samplers and surfaces are .global",
     NULL, 0},
    {HEAD ".global .texref t ~= {width = 3};\n",
     "found '='; expected ';': what is bound to a texture or surface tells its state", NULL, 0},
    {SEPARATE ".global .samplerref s = {filter_mode = ~cubic};\n",
     "found 'cubic'; expected nearest or linear", NULL, 0},
    {SEPARATE ".global .samplerref s = {addr_mode_1 = ~2};\n",
     "found '2'; expected wrap, mirror, clamp_ogl, clamp_to_edge or clamp_to_border", NULL, 0},
    {SEPARATE ".global .samplerref s = {~addr_mode_3 = wrap};\n",
     "found 'addr_mode_3'; expected filter_mode, force_unnormalized_coords or addr_mode_0, "
     "addr_mode_1, addr_mode_2",
     NULL, 0},
    {SEPARATE ".global .samplerref s = {force_unnormalized_coords = ~linear};\n",
     "found 'linear'; expected an integer", NULL, 0},
    {SEPARATE OPEN "tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, ~[%rd0, {%f0}];\n",
     "found '[%rd0, {%f0}]'; expected [texture, sampler, {coordinates}]", NULL, 0},
    {SEPARATE OPEN "tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd0, ~t, {%f0}];\n",
     "found 't'; expected a .samplerref variable or a register of 64 bits", NULL, 0},
    {SEPARATE OPEN "suld.b.1d.b32.trap %r0, [~t, {%r0}];\n",
     "found 't'; expected a .surfref variable or a register of 64 bits", NULL, 0},
    {SEPARATE OPEN "tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd0, %rd1, %rd2~, {%f0}];\n",
     "found ','; expected ']'", NULL, 0},
    {SEPARATE OPEN "tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd0, ~[%rd1]];\n",
     "found '['; expected coordinates in { }", NULL, 0},
    {SEPARATE OPEN
     "tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd0, {%f0, %f0, %f0, %f0, %f0, %f0, %f0, ~%f0}];\n",
     "found too many coordinates; expected at most four", NULL, 0},
    /* video instructions */
    {KERNEL "vadd.u32.u32.u32.sat %r0~.b4, %r1, %r2, %r3;\n",
     "found '.b4'; expected .b0, .b1, .b2, .b3, .h0 or .h1", NULL, 0},
    {KERNEL "vadd.u32.u32.u32.add %r0, %r1, %r2, %r3~.b0;\n",
     "found a selector; expected none here", NULL, 0},
    {KERNEL "vadd.u32.u32.u32 %r0, ~-%r1, %r2;\n", "found a sign; expected none here", NULL, 0},
    {KERNEL "vadd.u32.u32.u32.min %r0~.b1, %r1, %r2, %r3;\n",
     "found '.b1' and a second operation; expected one of them", NULL, 0},
    {KERNEL "~vadd.u32.u32.u32.min %r0, %r1, %r2;\n",
     "found three operands; expected c as the fourth", NULL, 0},
    {KERNEL "vadd2.u32.u32.u32 %r0, %r1, %r2, ~5;\n", "found '5'; expected a register", NULL, 0},
    {KERNEL "~vmad.u32.u32.u32.po %r0, -%r1, %r2, %r3;\n",
     "found .po and a sign; expected one of them", NULL, 0},
    {KERNEL "~vmad.s32.u32.u32 %r0, -%r1, %r2, -%r3;\n",
     "found signs of the product and of the summand; expected one", NULL, 0},
    {KERNEL "txq.width.b32 %r0, ~%rd0;\n", "found '%rd0'; expected [texture, sampler or surface]",
     NULL, 0},
    {KERNEL "tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd0, ~];\n",
     "found ']'; expected an operand", NULL, 0},
};

enum { REFUSALS = sizeof refusals / sizeof *refusals };

static char *expand(const refusal *r) {
    size_t unit = r->unit ? strlen(r->unit) + 16 : 0;
    char *text = calloc(1, strlen(r->text) + r->times * unit + 1), *out = text;
    assert_non_null(text);
    for (const char *p = r->text; *p; p++)
        if (*p != '#')
            *out++ = *p;
        else
            for (unsigned i = 0; i < r->times; i++)
                for (const char *u = r->unit; u && *u; u++)
                    if (*u == '$')
                        out += sprintf(out, "%u", i);
                    else
                        *out++ = *u;
    return text;
}

static void place_of_mark(char *text, char *place, size_t size) {
    char *mark = strchr(text, '~');
    assert_non_null(mark);
    unsigned line = 1, column = 1;
    for (const char *p = text; p < mark; p++) {
        column = *p == '\n' ? 1 : column + 1;
        line += *p == '\n';
    }
    memmove(mark, mark + 1, strlen(mark));
    snprintf(place, size, "t.ptx:%u:%u: ", line, column);
}

static void test_each_message(void **state) {
    (void)state;
    for (size_t i = 0; i < REFUSALS; i++) {
        const refusal *r = &refusals[i];
        char wanted[1000], *text = expand(r);
        place_of_mark(text, wanted, sizeof wanted);
        strncat(wanted, r->message, sizeof wanted - strlen(wanted) - 1);
        vm_module *m = NULL;
        ev_error err = {0};
        assert_int_equal(vm_module_load(text, strlen(text), "t.ptx", &m, &err), EV_BAD);
        assert_null(m);
        assert_string_equal(err.text, wanted);
        if (!strstr(err.text, "expected") && !strstr(err.text, "needs"))
            fail_msg("says not what was expected: %s", err.text);
        free(text);
    }
}

/* ---- the messages of the sources */

/* Whether the words between the conversions of `format` stand in the message, in their order. */
static bool says(const char *message, const char *format) {
    while (*format) {
        char words[400];
        size_t n = 0;
        while (*format && *format != '%')
            words[n++] = *format++;
        words[n] = 0;
        message = strstr(message, words);
        if (!message)
            return false;
        message += n;
        if (*format == '%')
            format += strcspn(format + 1, "diouxXcsp") + 2;
    }
    return true;
}

static bool provoked(const char *format) {
    for (size_t i = 0; i < REFUSALS; i++)
        if (says(refusals[i].message, format))
            return true;
    return false;
}

/* Reads the string literals that stand side by side at *p, up to `size` bytes. */
static void read_literals(const char **p, char *out, size_t size) {
    size_t n = 0;
    while (**p == '"') {
        for (++*p; **p && **p != '"'; ++*p) {
            *p += **p == '\\';
            assert_true(n + 1 < size);
            out[n++] = **p;
        }
        ++*p;
        while (isspace((unsigned char)**p))
            ++*p;
    }
    out[n] = 0;
}

/* The literals of a call that begins at its '('; how many there are. */
static unsigned check_call(const char *file, const char *p) {
    unsigned count = 0;
    int depth = 0;
    do {
        if (*p == '"') {
            char text[400];
            read_literals(&p, text, sizeof text);
            count++;
            if (!provoked(text))
                fail_msg("%s: no row of this test provokes \"%s\"", file, text);
            continue;
        }
        if (*p == '\'') /* a character: '(' counts for nothing */
            p += p[1] == '\\' ? 3 : 2;
        depth += (*p == '(') - (*p == ')');
        p++;
    } while (*p && depth);
    return count;
}

static void test_all_are_there(void **state) {
    (void)state;
    glob_t files;
    assert_int_equal(glob("fitness/ptx/ptx_*.c", 0, NULL, &files), 0);
    unsigned messages = 0;
    for (size_t i = 0; i < files.gl_pathc; i++) {
        char *text = NULL;
        size_t bytes;
        ev_error err = {0};
        assert_int_equal(ev_file_read(files.gl_pathv[i], &text, &bytes, &err), EV_OK);
        for (const char *p = strstr(text, "ptx_fail_"); p; p = strstr(p + 1, "ptx_fail_"))
            messages += check_call(files.gl_pathv[i], strchr(p, '('));
        free(text);
    }
    globfree(&files);
    assert_true(messages > 100);
}

static void test_the_test(void **state) {
    (void)state;
    assert_true(says("found 'x' of 3 bits; expected 4", "found '%.*s' of %u bits"));
    assert_true(says("found 8; expected 4", "found %lld; expected %zu"));
    assert_false(says("found 8; expected 4", "expected %u; found"));
    assert_false(provoked("found a message that no text provokes"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_message),
        cmocka_unit_test(test_all_are_there),
        cmocka_unit_test(test_the_test),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
