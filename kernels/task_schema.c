/* The key tables of task.json, and their printing for the docs. */
#include "kernels/task_private.h"

#include <math.h>

static const ev_json_key TASK_KEYS[] = {
    {"name", EV_JSON_STRING, true, "the task's name; a shipped task's folder has the same"},
    {"family", EV_JSON_STRING, true, "the kernel family it belongs to"},
    {"doc", EV_JSON_STRING, true, "what it computes, in a sentence"},
    {"arguments", EV_JSON_ARRAY, true, "the kernel's arguments, in its order"},
    {"ranks", EV_JSON_ANY, false,
     "GPUs that one launch runs on, 2 to 8, an expression of the shape's names; when absent, one "
     "GPU. With it, counts are of one rank, each rank has its own buffers and the same launch, and "
     "generators and oracles see the ranks' parts of a buffer one behind the other"},
    {"barriers", EV_JSON_ARRAY, false,
     "of a task with ranks: \"before\" if every caller has a barrier of all ranks before the "
     "launch, "
     "so a kernel may read what peers have without a flag from them; \"after\" if every caller has "
     "one behind it, so a kernel may end before its peers have written to its buffers; when "
     "absent, "
     "neither (docs/ranks.md)"},
    {"symbols", EV_JSON_ARRAY, false,
     "variables in constant or global memory (__constant__, __device__) that the host fills before "
     "a "
     "launch"},
    {"alias", EV_JSON_ARRAY, false,
     "names of buffers of one type and length: callers may pass one buffer for an in and an out or "
     "inout of them. [] says that no arguments overlap; when absent, gate 6 tries all such "
     "pairs that the source does not declare as __restrict__"},
    {"starts", EV_JSON_ARRAY, true, "where a search may begin; the first is the baseline"},
    {"oracle", EV_JSON_STRING, true,
     "the trusted answer: a built-in oracle's name, \"baseline\" (the first start, unchanged), or "
     "the path of a C source that defines `evoke_oracle` (see kernels/evoke_oracle.h)"},
    {"tolerance", EV_JSON_OBJECT, true, "how far an output may be from the oracle's"},
    {"work", EV_JSON_OBJECT, false,
     "what any kernel for this task has to move and to compute: the floor of its times"},
    {"cases", EV_JSON_ARRAY, true,
     "shapes to check and time at; the search split needs a smoke, a check and a time case, and "
     "evoke tune a held-out time case"},
};

static const ev_json_key ARGUMENT_KEYS[] = {
    {"name", EV_JSON_STRING, true, "its name; a scalar's is known to later expressions"},
    {"kind", EV_JSON_STRING, true,
     "in, out, inout (buffers), scalar, or struct, rank, peers (see below)"},
    {"type", EV_JSON_STRING, true, "element type: u8 s8 u16 s16 u32 s32 u64 s64 f16 bf16 f32 f64"},
    {"doc", EV_JSON_STRING, false, "what it is"},
    {"count", EV_JSON_ANY, false, "buffers, which need it: number of elements, an expression"},
    {"value", EV_JSON_ANY, false,
     "scalars: an expression; when absent, the shape's value of its name"},
    {"data", EV_JSON_OBJECT, false,
     "in and inout, which need it: {\"generator\": NAME, PARAMETER: EXPRESSION, ...}, see the "
     "generators below; "
     "or "
     "{\"file\": PATH}, a .npy file or raw elements, in the task's folder"},
    {"align", EV_JSON_INTEGER, false,
     "buffers: the alignment of its address in bytes that every launch grants: a power of two, at "
     "least the element's size, at most 256; 16 when absent"},
    {"initial", EV_JSON_STRING, false,
     "inout: \"constant\" is a promise that every caller begins with the constant that \"data\" "
     "makes (zeros, ones, constant), as the bins of a histogram; without it the gates also try "
     "other "
     "contents"},
    {"zero_where", EV_JSON_STRING, false,
     "out: an input of the same length; where that is 0, the output must be exactly 0"},
    {"domain", EV_JSON_OBJECT, false,
     "in, inout and scalar: the values that every caller keeps within; gate 6 tries others of "
     "them"},
    {"pitch", EV_JSON_OBJECT, false,
     "out and inout: rows with padding behind them, which no kernel writes"},
    {"tolerance", EV_JSON_OBJECT, false,
     "out and inout: how far this output may be from the oracle's, in place of the task's "
     "tolerance; {\"relative_l2\": X, \"max_abs\": Y}, see below"},
    {"by_rank", EV_JSON_BOOL, false,
     "out and inout, of a task with ranks: the contents differ by rank; when absent, they must "
     "agree "
     "bit for bit on all ranks"},
    {"offset", EV_JSON_INTEGER, false,
     "fields of a struct: bytes from its begin, at or behind the end of the field before; when "
     "absent, as C places it"},
};

static const ev_json_key STRUCT_KEYS[] = {
    {"name", EV_JSON_STRING, true, "its name; expressions know a scalar field as NAME.FIELD"},
    {"kind", EV_JSON_STRING, true, "struct"},
    {"doc", EV_JSON_STRING, false, "what it is"},
    {"fields", EV_JSON_ARRAY, true,
     "arguments as above, in their order: scalars, and buffers whose address the struct has; a "
     "scalar without \"value\" is the shape's value of the field's name"},
    {"bytes", EV_JSON_INTEGER, false,
     "size of the struct; when absent, the end of the last field, rounded up as C does"},
};

static const ev_json_key BUFFER_KEYS[] = {
    {"name", EV_JSON_STRING, true, "its name"},
    {"kind", EV_JSON_STRING, true, "in, out or inout"},
    {"doc", EV_JSON_STRING, false, "what it is"},
    {"count", EV_JSON_ANY, true, "number of structs, an expression"},
    {"fields", EV_JSON_ARRAY, true, "the members of a struct, in their order (see below)"},
    {"stride", EV_JSON_INTEGER, false,
     "bytes from a struct to the next; when absent, the end of the last field, rounded up as C "
     "does"},
    {"data", EV_JSON_OBJECT, false,
     "in and inout: {\"file\": PATH}, all bytes of the structs; when absent, each field has data "
     "of its own, and the bytes between the fields are zero"},
    {"align", EV_JSON_INTEGER, false, "as of another buffer"},
    {"offset", EV_JSON_INTEGER, false, "of a buffer whose address a struct has, as above"},
};

static const ev_json_key MEMBER_KEYS[] = {
    {"name", EV_JSON_STRING, true,
     "its name in a struct, such as \"mass\", \"box.low\" or \"corner[2].id\"; oracles and "
     "cases[].data know it as BUFFER.FIELD"},
    {"type", EV_JSON_STRING, true,
     "type of its numbers, as of an argument; with x2, x3 or x4 behind it (f32x4) a vector"},
    {"doc", EV_JSON_STRING, false, "what it is"},
    {"count", EV_JSON_INTEGER, false, "of an array: its numbers or vectors; 1"},
    {"offset", EV_JSON_INTEGER, false,
     "bytes from the struct's begin, at or behind the end of the field before; when absent, as C "
     "places it"},
    {"data", EV_JSON_OBJECT, false, "in and inout: the generator of its numbers"},
    {"initial", EV_JSON_STRING, false, "inout: as of another argument"},
    {"domain", EV_JSON_OBJECT, false, "in and inout: as of another argument"},
    {"tolerance", EV_JSON_OBJECT, false,
     "out and inout: how far this field may be from the oracle's, as of another argument"},
};

static const ev_json_key OWN_KEYS[] = {
    {"relative_l2", EV_JSON_NUMBER, false, "as of the task; needed of floats"},
    {"max_abs", EV_JSON_NUMBER, false,
     "largest error, at most; 0: off, and whole numbers must be exact"},
};

static const ev_json_key PITCH_KEYS[] = {
    {"row", EV_JSON_ANY, true, "elements of a row, an expression"},
    {"stride", EV_JSON_ANY, true,
     "elements from the begin of a row to that of the next, an expression"},
};

#define FIELD_OFFSET                                                                               \
    {"offset", EV_JSON_INTEGER, false,                                                             \
     "fields of a struct: bytes from its begin; when absent, as C places it"}

static const ev_json_key RANK_KEYS[] = {
    {"name", EV_JSON_STRING, true, "its name; expressions do not know it"},
    {"kind", EV_JSON_STRING, true, "rank"},
    {"type", EV_JSON_STRING, true, "u32 s32 u64 s64"},
    {"doc", EV_JSON_STRING, false, "what it is"},
    FIELD_OFFSET,
};

static const ev_json_key PEERS_KEYS[] = {
    {"name", EV_JSON_STRING, true, "its name"},
    {"kind", EV_JSON_STRING, true, "peers"},
    {"of", EV_JSON_STRING, true, "a buffer among the arguments"},
    {"doc", EV_JSON_STRING, false, "what it is"},
    FIELD_OFFSET,
};

static const ev_json_key DOMAIN_KEYS[] = {
    {"min", EV_JSON_ANY, false,
     "the least value, an expression; no number is less, and none is NaN. Integer buffers: the "
     "least that their generator makes when absent"},
    {"max", EV_JSON_ANY, false, "the largest value, an expression; as \"min\""},
    {"finite", EV_JSON_BOOL, false, "floats: neither NaN nor an infinity"},
    {"positive", EV_JSON_BOOL, false, "all are above 0"},
    {"sorted", EV_JSON_BOOL, false, "buffers: ascending, equal neighbours allowed"},
    {"permutation", EV_JSON_BOOL, false,
     "integer buffers: each of 0 to count - 1 once; no other key beside it"},
    {"distinct", EV_JSON_BOOL, false, "buffers: no two elements are equal"},
};

static const ev_json_key SYMBOL_KEYS[] = {
    {"name", EV_JSON_STRING, true, "its name in the source"},
    {"type", EV_JSON_STRING, true, "element type, as of an argument"},
    {"doc", EV_JSON_STRING, false, "what it is"},
    {"count", EV_JSON_ANY, true,
     "number of elements that the host fills, an expression; the rest of the variable is zero"},
    {"data", EV_JSON_OBJECT, true, "as of an argument"},
    {"domain", EV_JSON_OBJECT, false, "as of an argument"},
};

static const ev_json_key START_KEYS[] = {
    {"name", EV_JSON_STRING, true, "\"textbook\", \"hand\", ..."},
    {"doc", EV_JSON_STRING, false, "how it goes about it"},
    {"source", EV_JSON_STRING, true, "a .cu, .ll or .bc file, relative to the task file"},
    {"entry", EV_JSON_STRING, false,
     "the kernel's name in it, with template arguments where it is a template (scale<float, 4>); "
     "the task's name when absent"},
    {"grid", EV_JSON_ANY, false,
     "blocks: an expression, or an array of up to three; needed unless there are steps"},
    {"block", EV_JSON_ANY, false,
     "threads a block: an expression, or an array of up to three; needed unless there are steps"},
    {"shared", EV_JSON_ANY, false, "dynamic shared memory a block in bytes, an expression; 0"},
    {"steps", EV_JSON_ARRAY, false,
     "in place of entry, grid, block and shared: the launches, in order (see below)"},
    {"scratch", EV_JSON_ARRAY, false, "of a start with steps: its buffers beside the arguments"},
    {"macros", EV_JSON_ARRAY, false, "tunable macros of a .cu"},
    {"reference", EV_JSON_BOOL, false,
     "true: to compare with, such as an expert's kernel: checked, and timed beside the others, and "
     "no search begins there; not of the first; false"},
    {"assume", EV_JSON_ARRAY, false,
     "lines of the source, from 1: an arm of their branches, selects, compares, minima and maxima "
     "that no case takes is one that no caller takes"},
};

static const ev_json_key STEP_KEYS[] = {
    {"entry", EV_JSON_STRING, true, "the kernel's name in the start's source"},
    {"grid", EV_JSON_ANY, true, "blocks, as of a start"},
    {"block", EV_JSON_ANY, true, "threads a block, as of a start"},
    {"shared", EV_JSON_ANY, false, "dynamic shared memory a block, as of a start; 0"},
    {"arguments", EV_JSON_ARRAY, false,
     "the kernel's parameters in their order: names of arguments and scratch buffers, or values of "
     "the launch's own (see below); when absent, the task's arguments"},
};

static const ev_json_key GIVEN_KEYS[] = {
    {"type", EV_JSON_STRING, true, "its type, as of an argument"},
    {"value", EV_JSON_ANY, true,
     "an expression of the shape, the scalars, the macros and the counter"},
};

static const ev_json_key LOOP_KEYS[] = {
    {"repeat", EV_JSON_ANY, true, "how many turns there are, an expression; 0 is fine"},
    {"counter", EV_JSON_STRING, false,
     "the name by which expressions of its steps know the turn, from 0"},
    {"swap", EV_JSON_ARRAY, false,
     "pairs of buffers, [[\"a\", \"b\"], ...]: at the end of each turn the two names stand for "
     "each "
     "other's buffers, also behind the last turn"},
    {"steps", EV_JSON_ARRAY, true, "the launches of a turn, in order"},
};

static const ev_json_key SCRATCH_PEERS_KEYS[] = {
    {"name", EV_JSON_STRING, true, "its name, in the arguments of steps"},
    {"kind", EV_JSON_STRING, true, "peers"},
    {"of", EV_JSON_STRING, true, "a scratch buffer before it"},
    {"doc", EV_JSON_STRING, false, "what it is"},
};

static const ev_json_key SCRATCH_KEYS[] = {
    {"name", EV_JSON_STRING, true, "its name, in the arguments of steps"},
    {"type", EV_JSON_STRING, true, "element type, as of an argument"},
    {"count", EV_JSON_ANY, true, "number of elements, an expression, which may use macros"},
    {"doc", EV_JSON_STRING, false, "what it is"},
};

static const ev_json_key MACRO_KEYS[] = {
    {"name", EV_JSON_STRING, true,
     "the macro; the compiler always gets its value (-DNAME=VALUE), which takes the place of a "
     "#define of the source"},
    {"doc", EV_JSON_STRING, false, "what it sets"},
    {"default", EV_JSON_INTEGER, true, "the value of the unmodified start"},
    {"values", EV_JSON_ARRAY, true, "the values the search may give it, the default among them"},
};

static const ev_json_key CASE_KEYS[] = {
    {"name", EV_JSON_STRING, true, "its name, unique in the task"},
    {"split", EV_JSON_STRING, true, "search, held-out or adversarial"},
    {"use", EV_JSON_STRING, true,
     "smoke (the smallest, for safety), check (every block and element), or time (a sample of "
     "blocks at full shape)"},
    {"shape", EV_JSON_ANY, true,
     "an object of numbers, which may have \"from\": NAME of a shape below and add to it or "
     "override it; or that NAME alone"},
    {"data", EV_JSON_OBJECT, false,
     "inputs that are made otherwise in this case: {ARGUMENT OR SYMBOL: {\"generator\": ...}, "
     "...}, or {\"file\": PATH}"},
    {"inputs", EV_JSON_OBJECT, false,
     "smoke and check: what the case is run with beside its shape and data, as evoke check "
     "--stress "
     "prints it"},
    {"weight", EV_JSON_NUMBER, false,
     "time: how much the case counts in a portfolio (evoke tune --shapes), such as its number of "
     "launches; above 0; 1"},
};

static const ev_json_key INPUTS_KEYS[] = {
    {"fresh", EV_JSON_INTEGER, false, "number of the inputs: another number, other inputs; 0"},
    {"variation", EV_JSON_STRING, false,
     "other data for the floating-point inputs and scalars, made from the task's own; the case is "
     "run with its plain data, too:"
#define VARIATION(id, name, words, is_benign, aliases) " " name " (" words ")"
#include "kernels/variations.def"
#undef VARIATION
    },
    {"power", EV_JSON_INTEGER, false,
     "of scaled: the inputs times two to this power, -20 to 20; 0: another power for each input; "
     "of decimal: 0 for decimals, or the number of the floating-point scalar, from 1; of aliased "
     "and "
     "aliased-small: the number of the pair of arguments, from 0"},
    {"schedule", EV_JSON_INTEGER, false,
     "seed of the order of blocks and warps on the virtual machine; 0: the natural order"},
};

static const ev_json_key TOLERANCE_KEYS[] = {
    {"relative_l2", EV_JSON_NUMBER, true,
     "L2 norm of the error over that of the oracle's answer, at most"},
    {"scaled_max", EV_JSON_NUMBER, false,
     "largest error / (u sqrt(depth) scale), at most, where the oracle gives a scale (the sum of "
     "the terms' sizes) and u is the type's unit roundoff; 0: off"},
    {"max_abs", EV_JSON_NUMBER, false,
     "largest error, at most; 0: off, and outputs of whole numbers must be exact (with an oracle "
     "in C, which answers in doubles, those beyond 2^53 are held against the start on varied "
     "data)"},
    {"baseline_factor", EV_JSON_NUMBER, false,
     "no worse than this many times the baseline's own error; 0: off"},
    {"depth", EV_JSON_ANY, false, "terms summed up for one element, an expression; 1"},
};

static const ev_json_key WORK_KEYS[] = {
    {"doc", EV_JSON_STRING, false, "how it is derived"},
    {"bytes", EV_JSON_ANY, true,
     "bytes that must come from DRAM or go there, an expression: each input that is needed once, "
     "each output once; of a task with ranks, those of one rank"},
    {"link_bytes", EV_JSON_ANY, false,
     "of a task with ranks: bytes that must cross the links of one rank, in the direction that has "
     "more of them, an expression; 0"},
#define UNIT(id, key, peak, words) {key, EV_JSON_ANY, false, words "; an expression; 0"},
#include "kernels/units.def"
#undef UNIT
};

#define TABLE(id, title, doc)                                                                      \
    const task_table TASK_TABLE_##id = {title, doc, id##_KEYS,                                     \
                                        sizeof id##_KEYS / sizeof id##_KEYS[0]}

TABLE(TASK, "The task", "The document is one object.");
TABLE(ARGUMENT, "arguments[]", "");
TABLE(STRUCT, "arguments[] of kind struct",
      "A struct that the kernel takes by value. Its fields are arguments of their own.");
TABLE(BUFFER, "arguments[] with structs in a buffer",
      "A buffer whose elements are structs with members of several types.");
TABLE(MEMBER, "arguments[].fields[] of a buffer",
      "A member of the structs in a buffer. Numbers of a float type are compared by the tolerance, "
      "each field by itself; whole numbers exactly. Bytes between the fields are not compared.");
TABLE(
    OWN, "arguments[].tolerance",
    "In place of the task's tolerance, for this output or field. An output of whole numbers has "
    "`max_abs` alone. What the task's tolerance says beside these two counts for the output, too: "
    "`scaled_max`, and of floats `baseline_factor`.");
TABLE(RANK, "arguments[] of kind rank",
      "Of a task with ranks: a scalar with the number of the rank, from 0.");
TABLE(PEERS, "arguments[] of kind peers",
      "Of a task with ranks: a table in memory with the address of a buffer at each rank.");
TABLE(DOMAIN, "arguments[].domain", "Absent: any value, and NaN and infinities of floats.");
TABLE(PITCH, "arguments[].pitch", "");
TABLE(SYMBOL, "symbols[]", "");
TABLE(START, "starts[]", "");
TABLE(STEP, "starts[].steps[]",
      "A launch. All run on one memory, each when the one before has ended; of a task with ranks, "
      "when that rank's one before has (ranks.md).");
TABLE(GIVEN, "starts[].steps[].arguments[] of its own", "A scalar of this launch alone.");
TABLE(LOOP, "starts[].steps[] that repeat",
      "Steps that run again and again; none of them repeats itself.");
TABLE(SCRATCH, "starts[].scratch[]",
      "A buffer for the launches alone. It begins uninitialised; what a launch reads of it, an "
      "earlier one wrote.");
TABLE(SCRATCH_PEERS, "starts[].scratch[] of kind peers",
      "Of a task with ranks: a table in memory with the address of a scratch buffer at each rank.");
TABLE(MACRO, "starts[].macros[]", "");
TABLE(CASE, "cases[]", "");
TABLE(INPUTS, "cases[].inputs", "");
TABLE(TOLERANCE, "tolerance", "");
TABLE(WORK, "work", "Absent: the task has no floor.");

static const char *kind_name(ev_json_kind kind) {
    switch (kind) {
    case EV_JSON_STRING:
        return "text";
    case EV_JSON_INTEGER:
        return "integer";
    case EV_JSON_NUMBER:
        return "number";
    case EV_JSON_BOOL:
        return "true or false";
    case EV_JSON_ARRAY:
        return "array";
    case EV_JSON_OBJECT:
        return "object";
    case EV_JSON_ANY:
        break;
    }
    return "see meaning";
}

static void print_table(const task_table *table, ev_str *out) {
    ev_str_printf(out, "## %s\n\n", table->title);
    if (table->doc[0])
        ev_str_printf(out, "%s\n\n", table->doc);
    ev_str_append(out, "| key | kind | needed | meaning |\n|---|---|---|---|\n");
    for (size_t i = 0; i < table->count; i++) {
        const ev_json_key *key = &table->keys[i];
        ev_str_printf(out, "| `%s` | %s | %s | %s |\n", key->name, kind_name(key->kind),
                      key->required ? "yes" : "no", key->doc);
    }
    ev_str_char(out, '\n');
}

static void print_generators(ev_str *out) {
    ev_str_append(out, "## Generators\n\nParameters are expressions; defaults in brackets.\n\n"
                       "| generator | makes | parameters |\n|---|---|---|\n");
    for (size_t i = 0; i < corpus_generator_count(); i++) {
        const corpus_generator *g = corpus_generator_at(i);
        ev_str_printf(out, "| `%s` | %s | ", g->name, g->doc);
        for (size_t p = 0; p < g->parameter_count; p++) {
            const corpus_parameter *q = &g->parameters[p];
            ev_str_printf(out, "%s`%s`: %s", p ? "; " : "", q->name, q->doc);
            if (!isnan(q->otherwise))
                ev_str_printf(out, " [%g]", q->otherwise);
        }
        ev_str_append(out, " |\n");
    }
    ev_str_char(out, '\n');
}

static void print_shapes(ev_str *out) {
    ev_str_append(out, "## Shapes\n\n| name | values | from |\n|---|---|---|\n");
    for (size_t i = 0; i < corpus_shape_count(); i++) {
        const corpus_shape *s = corpus_shape_at(i);
        ev_str_printf(out, "| `%s` | ", s->name);
        for (size_t k = 0; k < s->count; k++)
            ev_str_printf(out, "%s%s %lld", k ? ", " : "", s->keys[k], (long long)s->values[k]);
        ev_str_printf(out, " | %s |\n", s->paper);
    }
}

void task_print_schema(ev_str *out) {
    static const task_table *const tables[] = {
        &TASK_TABLE_TASK,          &TASK_TABLE_ARGUMENT, &TASK_TABLE_STRUCT, &TASK_TABLE_BUFFER,
        &TASK_TABLE_MEMBER,        &TASK_TABLE_OWN,      &TASK_TABLE_RANK,   &TASK_TABLE_PEERS,
        &TASK_TABLE_DOMAIN,        &TASK_TABLE_PITCH,    &TASK_TABLE_SYMBOL, &TASK_TABLE_START,
        &TASK_TABLE_STEP,          &TASK_TABLE_GIVEN,    &TASK_TABLE_LOOP,   &TASK_TABLE_SCRATCH,
        &TASK_TABLE_SCRATCH_PEERS, &TASK_TABLE_MACRO,    &TASK_TABLE_CASE,   &TASK_TABLE_INPUTS,
        &TASK_TABLE_TOLERANCE,     &TASK_TABLE_WORK,
    };
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        print_table(tables[i], out);
    print_generators(out);
    print_shapes(out);
}
