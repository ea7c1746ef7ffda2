/* Writes the kernels of the micro-benchmarks as PTX. */
#include "fitness/device/calibrate/calibrate_impl.h"

#include "fitness/vm/vm.h"

#include <string.h>

enum {
#define PROBE_SHAPE(id, threads, chip, chains, doc) SHAPE_##id,
#include "fitness/device/calibrate/probes.def"
    SHAPE_COUNT
};

const probe_shape calibrate_shapes[] = {
#define PROBE_SHAPE(id, threads, chip, chains, doc) {threads, chip, chains},
#include "fitness/device/calibrate/probes.def"
};

_Static_assert(sizeof calibrate_shapes / sizeof calibrate_shapes[0] == SHAPE_COUNT,
               "one row a shape");

const probe calibrate_probes[] = {
#define PROBE(id, key, figure, shape, values, results, beside, beside_results, sm, step, code,     \
              doc)                                                                                 \
    {#id,                                                                                          \
     GPU_##key,                                                                                    \
     FIGURE_##figure,                                                                              \
     &calibrate_shapes[SHAPE_##shape],                                                             \
     values,                                                                                       \
     results,                                                                                      \
     #beside,                                                                                      \
     beside_results,                                                                               \
     sm,                                                                                           \
     step,                                                                                         \
     code,                                                                                         \
     doc},
#include "fitness/device/calibrate/probes.def"
};

_Static_assert(sizeof calibrate_probes / sizeof calibrate_probes[0] == PROBE_COUNT,
               "one row a probe");

typedef struct value_row {
    char letter;
    const char *declare, *begin, *end;
} value_row;

static const value_row VALUES[] = {
#define PROBE_VALUE(letter, declare, begin, end) {letter, declare, begin, end},
#include "fitness/device/calibrate/values.def"
#undef PROBE_VALUE
};

bool calibrate_has_value(const probe *p, char value) {
    return strchr(p->values, value) != NULL;
}

/* ---- text ---- */

/* Appends `text` with $ as the chain's number and CHAINS as how many there are. */
static void put(ev_str *ptx, const char *text, const probe *p, uint32_t chain) {
    static const char many[] = "CHAINS";
    for (const char *at = text; *at != '\0';) {
        size_t plain = strcspn(at, "$C");
        ev_str_append_n(ptx, at, plain);
        at += plain;
        if (*at == '$') {
            ev_str_printf(ptx, "%u", chain);
            at++;
        } else if (strncmp(at, many, sizeof many - 1) == 0) {
            ev_str_printf(ptx, "%u", p->shape->chains);
            at += sizeof many - 1;
        } else if (*at != '\0') {
            ev_str_char(ptx, *at++);
        }
    }
}

typedef enum value_part { PART_DECLARE, PART_BEGIN, PART_END } value_part;

static const char *part_of(const value_row *v, value_part part) {
    if (part == PART_DECLARE)
        return v->declare;
    if (part == PART_BEGIN)
        return v->begin;
    return v->end;
}

/* One part of each kind of values that the probe has, for each chain. */
static void put_values(ev_str *ptx, const probe *p, value_part part) {
    for (size_t i = 0; i < sizeof VALUES / sizeof VALUES[0]; i++) {
        if (!calibrate_has_value(p, VALUES[i].letter))
            continue;
        for (uint32_t chain = 0; chain < p->shape->chains; chain++)
            put(ptx, part_of(&VALUES[i], part), p, chain);
    }
}

static const char PARAMS[] =
    ".param .u64 cells, .param .u64 out, .param .u64 stride, .param .u32 trips, "
    ".param .u32 groups,\n.param .u32 ia, .param .u32 ib, .param .u32 ic, .param .u32 id, "
    ".param .f32 fa, .param .f32 fb,\n.param .f64 da, .param .f64 db, .param .u32 ha, "
    ".param .u32 hb";

static const char REGISTERS[] =
    ".reg .b32 %thread, %threads, %block, %blocks, %cell, %groups, %trips, %sum, %tmp, %ticks;\n"
    ".reg .b32 %ia, %ib, %ic, %id, %ha, %hb;\n.reg .f32 %fa, %fb;\n.reg .f64 %da, %db;\n"
    ".reg .b64 %cells, %out, %stride, %long, %start, %stop;\n.reg .pred %again;\n";

static const char PROLOGUE[] =
    "ld.param.u64 %cells, [cells];\nld.param.u64 %out, [out];\nld.param.u64 %stride, [stride];\n"
    "ld.param.u32 %trips, [trips];\nld.param.u32 %groups, [groups];\n"
    "ld.param.u32 %ia, [ia];\nld.param.u32 %ib, [ib];\nld.param.u32 %ic, [ic];\n"
    "ld.param.u32 %id, [id];\nld.param.f32 %fa, [fa];\nld.param.f32 %fb, [fb];\n"
    "ld.param.f64 %da, [da];\nld.param.f64 %db, [db];\nld.param.u32 %ha, [ha];\n"
    "ld.param.u32 %hb, [hb];\n"
    "mov.u32 %thread, %tid.x;\nmov.u32 %threads, %ntid.x;\nmov.u32 %block, %ctaid.x;\n"
    "mov.u32 %blocks, %nctaid.x;\nrem.u32 %cell, %block, %groups;\nmov.u32 %sum, 0;\n";

static const char EPILOGUE[] =
    "mad.lo.u32 %tmp, %block, %threads, %thread;\nmad.wide.u32 %out, %tmp, 8, %out;\n"
    "st.global.v2.u32 [%out], {%sum, %ticks};\nret;\n}\n";

static void put_loop(ev_str *ptx, const probe *p, int length) {
    bool counts = p->figure == FIGURE_MHZ;
    ev_str_append(ptx, counts ? "mov.u64 %start, %clock64;\n" : "");
    ev_str_append(ptx, "LOOP:\n.pragma \"nounroll\";\n");
    for (int i = 0; i < length; i++) {
        for (uint32_t chain = 0; chain < p->shape->chains; chain++) {
            put(ptx, p->step, p, chain);
            ev_str_char(ptx, '\n');
        }
    }
    ev_str_append(ptx, "sub.s32 %trips, %trips, 1;\nsetp.ne.s32 %again, %trips, 0;\n"
                       "@%again bra LOOP;\n");
    ev_str_append(ptx, counts ? "mov.u64 %stop, %clock64;\nsub.s64 %stop, %stop, %start;\n"
                                "cvt.u32.u64 %ticks, %stop;\n"
                              : "mov.u32 %ticks, 0;\n");
}

static void put_kernel(const probe *p, int length, ev_str *ptx) {
    ev_str_printf(ptx,
                  ".version 7.0\n.target sm_%d\n.address_size 64\n.visible .entry probe(%s)\n{\n",
                  p->sm, PARAMS);
    if (p->step[0] == '\0') {
        ev_str_append(ptx, "ret;\n}\n");
        return;
    }
    ev_str_append(ptx, REGISTERS);
    if (calibrate_has_value(p, 's') || calibrate_has_value(p, 't'))
        ev_str_printf(ptx, ".shared .align 16 .b8 room[%d];\n", PROBE_SHARED_BYTES);
    put_values(ptx, p, PART_DECLARE);
    ev_str_append(ptx, PROLOGUE);
    put_values(ptx, p, PART_BEGIN);
    put_loop(ptx, p, length);
    put_values(ptx, p, PART_END);
    ev_str_append(ptx, EPILOGUE);
}

ev_status calibrate_kernel(const probe *p, int length, ev_str *ptx, ev_error *err) {
    put_kernel(p, length, ptx);
    EV_TRY(ev_str_status(ptx, err));
    return vm_text_lower(ptx->data, ptx->length, err);
}
