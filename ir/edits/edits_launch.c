/* Knobs: launch bounds as nvvm.annotations of the kernel, and the pass pipeline. A genome has at
 * most one knob of each kind.
 *
 * NVPTX turns the annotations maxntid, minctasm and maxnreg into the directives .maxntid,
 * .minnctapersm and .maxnreg, which bound the registers that ptxas gives a thread (PTX ISA,
 * "Performance-Tuning Directives"). The directive .minnctapersm needs .maxntid and excludes
 * .maxnreg. The pipeline knob leaves the module unchanged: the build reads it from the genome. */
#include "ir/internal.h"

#include <string.h>

static void any_site(const ir_work *w, ir_sites *sites) {
    (void)w;
    ir_sites_add(sites, IR_NONE, 0);
}

static uint32_t block_threads(const ir_base *base) {
    return base->block[0] * base->block[1] * base->block[2];
}

static void block_site(const ir_work *w, ir_sites *sites) {
    if (block_threads(w->base) > 0)
        any_site(w, sites);
}

/* ---- annotations ------------------------------------------------------------------------------
 */

static bool has_annotation(const ir_work *w, const char *name) {
    return ir_annotation(w->module, w->base->entry, name) > 0;
}

static void annotate(const ir_work *w, const char *name, uint32_t value) {
    ir_annotate(w->module, w->base->entry, name, value);
}

static void draw_option(ir_edit *edit, int64_t option) {
    edit->has_option = true;
    edit->option = option;
}

static ev_status need_option(const ir_edit *edit, int64_t low, int64_t high, ev_error *err) {
    if (!edit->has_option || edit->option < low || edit->option > high)
        return ev_fail(err, EV_BAD, "\"option\" is missing or not from %lld to %lld",
                       (long long)low, (long long)high);
    return EV_OK;
}

/* ---- threads a block --------------------------------------------------------------------------
 */

/* The edit stores the number, so that the genome has the same meaning without the task. */
static bool draw_max_threads(ir_work *w, ir_site site, ev_pcg *rng, ir_edit *edit) {
    (void)site;
    (void)rng;
    draw_option(edit, block_threads(w->base));
    return !has_annotation(w, "maxntidx");
}

static void annotate_threads(ir_work *w, uint32_t threads) {
    bool known = block_threads(w->base) == threads;
    annotate(w, "maxntidx", known ? w->base->block[0] : threads);
    annotate(w, "maxntidy", known ? w->base->block[1] : 1);
    annotate(w, "maxntidz", known ? w->base->block[2] : 1);
}

static ev_status apply_max_threads(ir_work *w, const ir_edit *edit, ev_error *err) {
    EV_TRY(need_option(edit, 1, 1024, err));
    if (block_threads(w->base) == 0)
        return ev_fail(err, EV_BAD, "launches have blocks of several sizes");
    if (block_threads(w->base) > (uint32_t)edit->option)
        return ev_fail(err, EV_BAD, "launches have %u threads a block, more than the %lld told",
                       block_threads(w->base), (long long)edit->option);
    annotate_threads(w, (uint32_t)edit->option);
    return EV_OK;
}

static void describe_max_threads(const ir_work *w, const ir_edit *edit, ev_str *out) {
    (void)w;
    ev_str_printf(out, "tells the compiler that a block has %lld threads", (long long)edit->option);
}

const ir_rule ir_rule_MAX_THREADS = {block_site, draw_max_threads, apply_max_threads,
                                     describe_max_threads};

/* ---- blocks an SM -----------------------------------------------------------------------------
 */

static bool draw_min_blocks(ir_work *w, ir_site site, ev_pcg *rng, ir_edit *edit) {
    (void)site;
    uint32_t most = 2048 / block_threads(w->base);
    if (most == 0 || has_annotation(w, "maxnreg"))
        return false;
    draw_option(edit, 1 + ev_pcg_below(rng, most < 32 ? most : 32));
    return true;
}

/* PTX ISA: .minnctapersm needs .maxntid and excludes .maxnreg. */
static ev_status need_min_blocks(const ir_work *w, const ir_edit *edit, ev_error *err) {
    EV_TRY(need_option(edit, 1, 32, err));
    if (has_annotation(w, "maxnreg"))
        return ev_fail(err, EV_BAD, "the kernel limits its registers, which excludes min-blocks");
    if (!has_annotation(w, "maxntidx") && block_threads(w->base) == 0)
        return ev_fail(err, EV_BAD, "min-blocks needs a block size that all launches have");
    return EV_OK;
}

static ev_status apply_min_blocks(ir_work *w, const ir_edit *edit, ev_error *err) {
    EV_TRY(need_min_blocks(w, edit, err));
    if (!has_annotation(w, "maxntidx"))
        annotate_threads(w, block_threads(w->base));
    annotate(w, "minctasm", (uint32_t)edit->option);
    return EV_OK;
}

static void describe_min_blocks(const ir_work *w, const ir_edit *edit, ev_str *out) {
    (void)w;
    ev_str_printf(out, "asks for registers such that %lld blocks fit an SM",
                  (long long)edit->option);
}

const ir_rule ir_rule_MIN_BLOCKS = {block_site, draw_min_blocks, apply_min_blocks,
                                    describe_min_blocks};

/* ---- registers a thread -----------------------------------------------------------------------
 */

static bool draw_max_registers(ir_work *w, ir_site site, ev_pcg *rng, ir_edit *edit) {
    static const int64_t steps[] = {24, 32, 40, 48, 56, 64, 72, 80, 96, 128, 168, 255};
    (void)site;
    draw_option(edit, steps[ev_pcg_below(rng, sizeof steps / sizeof steps[0])]);
    return !has_annotation(w, "minctasm");
}

static ev_status need_max_registers(const ir_work *w, const ir_edit *edit, ev_error *err) {
    EV_TRY(need_option(edit, 16, 255, err));
    if (has_annotation(w, "minctasm"))
        return ev_fail(err, EV_BAD,
                       "the kernel asks for blocks an SM, which excludes max-registers");
    return EV_OK;
}

static ev_status apply_max_registers(ir_work *w, const ir_edit *edit, ev_error *err) {
    EV_TRY(need_max_registers(w, edit, err));
    annotate(w, "maxnreg", (uint32_t)edit->option);
    return EV_OK;
}

static void describe_max_registers(const ir_work *w, const ir_edit *edit, ev_str *out) {
    (void)w;
    ev_str_printf(out, "limits a thread to %lld registers", (long long)edit->option);
}

const ir_rule ir_rule_MAX_REGISTERS = {any_site, draw_max_registers, apply_max_registers,
                                       describe_max_registers};

bool ir_knob_fits(const ir_work *w, const ir_edit *edit) {
    if (edit->kind == IR_EDIT_MIN_BLOCKS)
        return need_min_blocks(w, edit, NULL) == EV_OK;
    return edit->kind == IR_EDIT_MAX_REGISTERS && need_max_registers(w, edit, NULL) == EV_OK;
}

/* ---- pipeline ---------------------------------------------------------------------------------
 */

enum {
#define IR_PIPELINE(id, codegen, use, says, first, rest) PIPELINE_##id,
#include "ir/pipelines.def"
#undef IR_PIPELINE
    PIPELINES
};

enum { KEPT, DRAWN };

static const struct {
    const char *says;
    ir_passes passes;
    LLVMCodeGenOptLevel codegen;
    bool is_drawn;
} pipelines[PIPELINES] = {
#define IR_PIPELINE(id, codegen, use, says, first, rest)                                           \
    {says, {first, rest}, LLVMCodeGenLevel##codegen, use == DRAWN},
#include "ir/pipelines.def"
#undef IR_PIPELINE
};

/* The index of the genome's pipeline; PIPELINES: none. */
static int64_t named_pipeline(const ir_genome *genome) {
    for (size_t i = 0; i < ir_genome_edit_count(genome); i++) {
        const ir_edit *edit = ir_genome_edit(genome, i);
        if (edit->kind == IR_EDIT_PIPELINE && edit->option >= 0 && edit->option < PIPELINES)
            return edit->option;
    }
    return PIPELINES;
}

ir_passes ir_passes_of(const ir_genome *genome) {
    int64_t named = named_pipeline(genome);
    if (named < PIPELINES)
        return pipelines[named].passes;
    return ir_genome_is_optimised(genome) ? (ir_passes){0} : pipelines[0].passes;
}

LLVMTargetMachineRef ir_machine_of(const ir_base *base, const ir_genome *genome) {
    int64_t named = named_pipeline(genome);
    bool light = named < PIPELINES && pipelines[named].codegen == LLVMCodeGenLevelDefault;
    return light ? base->light_machine : base->machine;
}

bool ir_genome_make_light(ir_genome *genome) {
    ir_edit edit = {.kind = IR_EDIT_PIPELINE};
    draw_option(&edit, PIPELINE_LIGHT);
    if (ir_edit_seal(&edit) && ir_genome_append(genome, edit))
        return true;
    ir_edit_clear(&edit);
    return false;
}

static bool draw_pipeline(ir_work *w, ir_site site, ev_pcg *rng, ir_edit *edit) {
    (void)w;
    (void)site;
    do
        draw_option(edit, ev_pcg_below(rng, PIPELINES));
    while (!pipelines[edit->option].is_drawn);
    return true;
}

/* Leaves the module unchanged: the build reads the pipeline from the genome. */
static ev_status apply_pipeline(ir_work *w, const ir_edit *edit, ev_error *err) {
    (void)w;
    return need_option(edit, 0, PIPELINES - 1, err);
}

static void describe_pipeline(const ir_work *w, const ir_edit *edit, ev_str *out) {
    (void)w;
    bool known = edit->option >= 0 && edit->option < PIPELINES;
    ev_str_printf(out, "optimises with %s",
                  known ? pipelines[edit->option].says : "unknown passes");
}

const ir_rule ir_rule_PIPELINE = {any_site, draw_pipeline, apply_pipeline, describe_pipeline};
