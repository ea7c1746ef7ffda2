/* Check, manifest: each value of a manifest that can be known another way is computed again and
 * compared: from the task, from the genome, from the PTX, from the GPU's description. */
#include "tuner/check/manifest.h"

#include "base/ptx/versions.h"
#include "base/str.h"
#include "bundle/bundle.h"
#include "fitness/device/cuda/ptxas.h"
#include "fitness/device/device.h"
#include "ir/ir.h"
#include "tuner/check/verdict.h"
#include "tuner/run/shipped.h"
#include "tuner/worker/variant.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MOST 1024 /* of a block, on any GPU */

typedef struct manifest_check {
    const bundle_kernel *k;
    const task *t;
    json_t *lies;
    ev_error *err;
    /* of the variant at hand */
    const bundle_variant *v;
    const task_start *start;
    bundle_variant expected; /* what its genome makes of the start: plan, macros, alignments */
    ev_arena *arena;
} manifest_check;

EV_PRINTF(3, 4)
static void lie(manifest_check *m, const char *case_name, const char *format, ...) {
    char reason[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:s}", "kernel", m->k->name, "role", "manifest",
                            "start", m->v != NULL ? m->v->start : "-", "split", "-", "case",
                            case_name != NULL ? case_name : "-");
    check_mark(row, CHECK_DRIFT, reason);
    (void)json_array_append_new(m->lies, row);
}

static void expect_text(manifest_check *m, const char *what, const char *said, const char *want) {
    if (strcmp(said, want) != 0)
        lie(m, NULL, "%s is \"%.200s\", and should be \"%.200s\"", what, said, want);
}

/* As expect_text; NULL: not there. */
static void expect_given(manifest_check *m, const char *what, const char *said, const char *want) {
    expect_text(m, what, said != NULL ? said : "", want != NULL ? want : "");
}

static void expect_number(manifest_check *m, const char *what, double said, double want) {
    if (said != want)
        lie(m, NULL, "%s is %.17g, and should be %.17g", what, said, want);
}

/* ---- the kernel, by the task ---- */

static void check_argument(manifest_check *m, const bundle_argument *said, const task_argument *a) {
    const bundle_argument want = shipped_argument(m->t, a);
    uint32_t align = said->align != 0 ? said->align : BUNDLE_ALIGN;
    expect_text(m, "the name of an argument", said->name, a->name);
    expect_text(m, "the kind of an argument", said->kind, want.kind);
    expect_text(m, "the type of an argument", said->type, ev_type_name(a->type));
    expect_text(m, "the expression of an argument", said->expression, want.expression);
    expect_given(m, "the buffer of a table (of)", said->of, want.of);
    expect_given(m, "before of an argument", said->before, want.before);
    expect_number(m, "by_rank of an argument", said->by_rank, want.by_rank);
    if (a->kind != TASK_SCALAR)
        expect_number(m, "the align of an argument", align, a->align);
    expect_number(m, "whether an argument is a field", said->is_field, a->is_field);
    expect_number(m, "the offset of a field", said->offset, a->offset);
    expect_number(m, "the bytes of a struct", said->struct_bytes, a->parameter_bytes);
}

static void check_ranks(manifest_check *m) {
    const bundle_ranks *said = m->k->ranks;
    if ((said != NULL) != (m->t->ranks != NULL)) {
        lie(m, NULL, "the task has %s ranks, and the kernel %s", m->t->ranks != NULL ? "its" : "no",
            said != NULL ? "has" : "has none");
        return;
    }
    if (said == NULL)
        return;
    expect_text(m, "ranks.count", said->count, m->t->ranks);
    expect_number(m, "a barrier before launches", said->begins_together, m->t->begins_together);
    expect_number(m, "a barrier after launches", said->ends_together, m->t->ends_together);
}

static void check_task(manifest_check *m) {
    expect_text(m, "kernel", m->k->name, m->t->name);
    expect_text(m, "family", m->k->family, m->t->family);
    expect_text(m, "doc", m->k->doc, m->t->doc);
    expect_number(m, "the number of arguments", (double)m->k->argument_count,
                  (double)m->t->argument_count);
    for (size_t i = 0; i < m->k->argument_count && i < m->t->argument_count; i++)
        check_argument(m, &m->k->arguments[i], &m->t->arguments[i]);
    check_ranks(m);
    expect_number(m, "the number of symbols", (double)m->k->symbol_count,
                  (double)m->t->symbol_count);
    for (size_t i = 0; i < m->k->symbol_count && i < m->t->symbol_count; i++) {
        expect_text(m, "the name of a symbol", m->k->symbols[i].name, m->t->symbols[i].name);
        expect_text(m, "the type of a symbol", m->k->symbols[i].type,
                    ev_type_name(m->t->symbols[i].type));
        expect_text(m, "the count of a symbol", m->k->symbols[i].count, m->t->symbols[i].count);
    }
}

/* ---- launch rules, at every case ---- */

static ev_status wanted_launches(manifest_check *m, const task_case *c, task_steps *out,
                                 ev_error *why) {
    expr_name macros[64];
    size_t count = m->expected.macro_count;
    if (count > sizeof macros / sizeof macros[0])
        return ev_fail(why, EV_BAD, "there are too many macros");
    for (size_t i = 0; i < count; i++)
        macros[i] = (expr_name){m->expected.macros[i].name,
                                expr_of_whole((int64_t)m->expected.macros[i].value)};
    return task_steps_of(m->t, m->start, m->expected.plan, macros, count, c, out, why);
}

/* `of`: "" of a single launch, else "launch 2 of 3, kernel `k`: ". */
static void compare_launch(manifest_check *m, const char *case_name, const char *of,
                           const launch_geometry *said, const launch_geometry *want) {
    static const char axes[] = "xyz";
    for (int i = 0; i < 3; i++) {
        if (said->grid[i] != want->grid[i])
            lie(m, case_name, "%sgrid.%c is %u blocks, and should be %u", of, axes[i],
                said->grid[i], want->grid[i]);
        if (said->block[i] != want->block[i])
            lie(m, case_name, "%sblock.%c is %u threads, and should be %u", of, axes[i],
                said->block[i], want->block[i]);
    }
    if (said->shared_bytes != want->shared_bytes)
        lie(m, case_name, "%sshared is %u bytes, and should be %u", of, said->shared_bytes,
            want->shared_bytes);
}

static void compare_all(manifest_check *m, const char *case_name, const task_steps *want,
                        const launch_geometry *said, size_t count) {
    bool is_plain = launch_plan_is_plain(m->expected.plan);
    if (count != want->count)
        lie(m, case_name, "there are %zu launches, and should be %zu", count, want->count);
    for (size_t i = 0; i < count && count == want->count; i++) {
        char name[160], of[170] = "";
        task_step_name(m->expected.plan, want, i, name, sizeof name);
        if (!is_plain)
            (void)snprintf(of, sizeof of, "%s: ", name);
        compare_launch(m, case_name, of, &said[i], &want->all[i].at);
    }
}

/* Raises *shared to the dynamic shared memory that the case should have. */
static void compare_launches(manifest_check *m, const bundle_case *by, const task_case *c,
                             uint32_t *shared) {
    launch_geometry *said = NULL;
    task_steps want;
    size_t count = 0;
    ev_error why = {0};
    if (wanted_launches(m, c, &want, &why) != EV_OK)
        return; /* a finding about the task, which the cases tell */
    for (size_t i = 0; i < want.count; i++)
        *shared = want.all[i].at.shared_bytes > *shared ? want.all[i].at.shared_bytes : *shared;
    if (bundle_launches_at(m->k, m->v, by, &said, &count, &why) == EV_OK)
        compare_all(m, c->name, &want, said, count);
    else
        lie(m, c->name, "the launch cannot be evaluated: %s", why.text);
    free(said);
    task_steps_free(&want);
}

/* What the launches of several take and exchange is compared as text: sizes alone do not show it.
 */
static ev_status compare_steps(manifest_check *m) {
    launch_plan plans[2] = {*m->v->plan, *m->expected.plan};
    ev_sha256 hashes[2];
    if (launch_plan_is_plain(&plans[0]) && launch_plan_is_plain(&plans[1]))
        return EV_OK;
    for (size_t i = 0; i < 2; i++) {
        plans[i].range_count = 0;
        EV_TRY(launch_plan_sha256(&plans[i], &hashes[i], m->err));
    }
    if (!ev_sha256_equal(&hashes[0], &hashes[1]))
        lie(m, NULL, "the steps or scratch buffers are not those of the start %s", m->start->name);
    return EV_OK;
}

/* ---- cases ---- */

static void check_shape(manifest_check *m, const bundle_case *said, const task_case *c) {
    if (said->shape_count != c->shape_count)
        lie(m, said->name, "the shape has %zu numbers, and should have %zu", said->shape_count,
            c->shape_count);
    for (size_t i = 0; i < said->shape_count; i++) {
        const bundle_number *n = &said->shape[i];
        const expr_name *want = expr_scope_find(&(expr_scope){c->shape, c->shape_count}, n->name);
        if (want == NULL)
            lie(m, said->name, "the task's shape has no '%s'", n->name);
        else if (n->value != want->value.real || n->is_real != want->value.is_real)
            lie(m, said->name, "%s of the shape is %.17g, and should be %.17g", n->name, n->value,
                want->value.real);
    }
}

static void check_cases(manifest_check *m) {
    double worst = 0;
    uint32_t shared = 0;
    for (size_t i = 0; i < m->v->case_count; i++) {
        const bundle_case *said = &m->v->cases[i];
        const task_case *c = task_find_case(m->t, said->name);
        worst = fmax(worst, said->error);
        if (c == NULL) {
            lie(m, said->name, "the task has no such case");
            continue;
        }
        expect_text(m, "the split of a case", said->split, corpus_split_name(c->split));
        check_shape(m, said, c);
        compare_launches(m, said, c, &shared);
    }
    expect_number(m, "dynamic_shared_bytes", m->v->dynamic_shared_bytes, shared);
    if (worst > m->v->error)
        lie(m, NULL, "error is %.3g, and a case has %.3g", m->v->error, worst);
    if (m->v->error > m->v->tolerance)
        lie(m, NULL, "error is %.3g, over the tolerance of %.3g", m->v->error, m->v->tolerance);
    expect_number(m, "tolerance", m->v->tolerance, task_relative_l2(m->t));
}

static void check_range(manifest_check *m, const launch_range *said) {
    size_t index = 0, count = m->v->cases[0].shape_count;
    while (index < count && strcmp(m->v->cases[0].shape[index].name, said->name) != 0)
        index++;
    if (index == count) {
        lie(m, NULL, "there is a range of '%s', which the cases do not have", said->name);
        return;
    }
    launch_range want = bundle_range(m->v, index);
    expect_number(m, "low of a range", said->low, want.low);
    expect_number(m, "high of a range", said->high, want.high);
    expect_number(m, "multiple of a range", (double)said->multiple, (double)want.multiple);
}

static void check_ranges(manifest_check *m) {
    const launch_plan *plan = m->v->plan;
    size_t count = m->v->case_count > 0 ? m->v->cases[0].shape_count : 0;
    expect_number(m, "the number of ranges", (double)plan->range_count, (double)count);
    for (size_t i = 0; i < plan->range_count && count > 0; i++)
        check_range(m, &plan->ranges[i]);
}

/* ---- what the genome makes ---- */

static void check_macros(manifest_check *m) {
    expect_number(m, "the number of macros", (double)m->v->macro_count,
                  (double)m->expected.macro_count);
    for (size_t i = 0; i < m->v->macro_count; i++) {
        const bundle_number *said = &m->v->macros[i];
        bool is_known = false;
        for (size_t k = 0; k < m->expected.macro_count; k++) {
            const bundle_number *want = &m->expected.macros[k];
            if (strcmp(want->name, said->name) != 0)
                continue;
            is_known = true;
            expect_number(m, said->name, said->value, want->value);
        }
        if (!is_known)
            lie(m, NULL, "the start has no macro '%s'", said->name);
    }
}

static uint32_t said_alignment(const bundle_variant *v, const char *name) {
    for (size_t i = 0; i < v->alignment_count; i++) {
        if (strcmp(v->alignments[i].argument, name) == 0)
            return v->alignments[i].bytes;
    }
    return 0;
}

static void check_alignments(manifest_check *m, const ir_genome *genome) {
    uint64_t aligned = task_bits_of_main(m->t, m->start, ir_genome_aligned(genome));
    for (size_t i = 0; i < m->t->argument_count && i < 64; i++) {
        const task_argument *a = &m->t->arguments[i];
        bool needs =
            (aligned >> i & 1) != 0 && a->kind != TASK_SCALAR && a->align < IR_ARGUMENT_ALIGN;
        uint32_t want = needs ? IR_ARGUMENT_ALIGN : 0, said = said_alignment(m->v, a->name);
        if (said != want)
            lie(m, NULL, "alignments: %s needs %u bytes beyond its own, and %u are said", a->name,
                want, said);
    }
}

static void check_meaning(manifest_check *m) {
    const bundle_variant *v = m->v;
    size_t bold = 0;
    for (size_t i = 0; i < v->edit_count; i++) {
        if (strstr(v->edits[i], IR_BOLD_MARK) == NULL)
            continue;
        if (bold >= v->change_count || strcmp(v->changes[bold], v->edits[i]) != 0)
            lie(m, NULL, "changes lack an edit that changes the meaning: %s", v->edits[i]);
        bold++;
    }
    if (bold != v->change_count)
        lie(m, NULL, "changes are %zu, and %zu edits change the meaning", v->change_count, bold);
}

#define MOST_KNOBS 8 /* launch bounds, registers, pass pipeline and the like, in words */

/* The words name every edit, and macros and knobs that differ from their defaults. */
static void check_edits(manifest_check *m, const ir_genome *genome) {
    size_t edits = ir_genome_edit_count(genome);
    size_t most = edits + ir_genome_macro_count(genome) + MOST_KNOBS;
    if (m->v->edit_count < edits || m->v->edit_count > most)
        lie(m, NULL, "provenance.edits has %zu lines, and the genome has %zu edits",
            m->v->edit_count, edits);
}

static ev_status check_genome(manifest_check *m) {
    ir_genome *genome = NULL;
    ev_error why = {0};
    if (variant_genome(m->v->genome, "the genome in the bundle", &genome, &why) != EV_OK) {
        lie(m, NULL, "%s", why.text);
        return EV_OK;
    }
    expect_text(m, "genome_sha256", m->v->genome_sha256, ir_genome_sha256(genome).hex);
    expect_text(m, "start", m->v->start, ir_genome_start(genome));
    check_edits(m, genome);
    check_alignments(m, genome);
    ev_status status = shipped_set_launch(m->arena, m->start, genome, &m->expected, &why);
    ir_genome_free(genome);
    if (status == EV_INFRA)
        return ev_fail(m->err, status, "%s", why.text);
    if (status != EV_OK) {
        lie(m, NULL, "the genome does not fit the start: %s", why.text);
        return EV_OK;
    }
    expect_text(m, "entry", launch_plan_entry(m->v->plan), launch_plan_entry(m->expected.plan));
    check_macros(m);
    check_cases(m);
    return compare_steps(m);
}

/* ---- the GPU and the PTX ---- */

/* The kernel's own bound. A driver says how many threads it would launch: that many at most, and
 * THREADS_MOST where the kernel has no bound. */
static void check_threads(manifest_check *m, uint32_t own) {
    uint32_t said = m->v->max_threads, most = own > 0 ? own : THREADS_MOST;
    bool is_by_driver = said > 0 && said <= most && said % 32 == 0; /* whole warps */
    if (said != own && !is_by_driver)
        lie(m, NULL, "max_threads is %u, and should be %u", said, own);
}

static void check_resources(manifest_check *m, device *d) {
    device_kernel *kernel = NULL;
    ev_error why = {0};
    if (device_load_plan(d, m->v->ptx, m->v->ptx_bytes, m->v->plan, &kernel, &why) != EV_OK) {
        lie(m, NULL, "the PTX cannot be loaded: %s", why.text);
        return;
    }
    device_resources r = device_kernel_resources(kernel);
    if (m->v->modelled)
        expect_number(m, "registers", m->v->registers, r.registers);
    expect_number(m, "shared_bytes", m->v->shared_bytes, r.shared_bytes);
    if (m->v->modelled)
        expect_number(m, "local_bytes", m->v->local_bytes, r.local_bytes);
    check_threads(m, r.max_threads);
    device_unload(kernel);
}

/* Who waits for a peer is read off the PTX. */
static void check_resident(manifest_check *m, device *d) {
    bundle_variant want = {.ptx = m->v->ptx, .ptx_bytes = m->v->ptx_bytes, .plan = m->v->plan};
    ev_error why = {0};
    if (shipped_set_resident(m->arena, m->t, d, &want, &why) != EV_OK)
        return; /* check_resources tells why */
    for (size_t i = 0; i < want.resident_count; i++) {
        if (!bundle_is_resident(m->v, want.resident[i]))
            lie(m, NULL, "resident lacks %s, whose blocks may wait for a peer's", want.resident[i]);
    }
    expect_number(m, "the number of resident kernels", (double)m->v->resident_count,
                  (double)want.resident_count);
}

/* gpu.sm is what the PTX was made for: the GPU's own capability, or an older one. */
static void check_target(manifest_check *m) {
    const char *target = strstr(m->v->ptx, ".target sm_");
    uint32_t sm = 0;
    if (ev_text_u32(target, ".target sm_", &sm) == NULL)
        lie(m, NULL, "the PTX names no target");
    else
        expect_number(m, "gpu.sm", m->v->sm, sm);
}

/* The reader held the manifest against the PTX, so the PTX version is right. */
static void check_driver(manifest_check *m) {
    const ev_ptx_row *row = m->v->ptx_version > 0 ? ev_ptx_needs(m->v->ptx_version) : NULL;
    expect_number(m, "least_cuda x 1000", m->v->least_cuda, row != NULL ? row->cuda : 0);
    expect_number(m, "least_driver", m->v->least_driver, row != NULL ? row->branch : 0);
}

/* The name of the description, or the driver's, which has a name of the GPU as words of it. A
 * driver that models its times adds that to the name. */
static void check_gpu_name(manifest_check *m, const char *name, const bundle_variant *want) {
    size_t length = strlen(name);
    bool is_known =
        strncmp(m->v->gpu_name, name, length) == 0 &&
        (m->v->gpu_name[length] == '\0' || strcmp(m->v->gpu_name + length, " (modelled)") == 0);
    for (size_t i = 0; i < want->driver_name_count && !is_known; i++)
        is_known = strncmp(m->v->gpu_name, "NVIDIA ", 7) == 0 &&
                   strcmp(m->v->gpu_name + 7, want->driver_names[i]) == 0;
    if (!is_known)
        expect_text(m, "gpu.name", m->v->gpu_name, name);
}

/* Times by Evoke's own model have neither spread nor clock nor driver; those of a driver that
 * models its times may. */
static void check_modelled(manifest_check *m) {
    const char *mark = strstr(m->v->gpu_name, " (modelled)");
    json_t *versions = json_loads(m->v->versions, 0, NULL);
    bool has_driver = json_object_get(versions, "driver") != NULL;
    json_decref(versions);
    if (!m->v->modelled || mark != NULL)
        return;
    if (has_driver)
        lie(m, NULL, "provenance.versions has a driver, and the virtual machine has none");
    for (size_t i = 0; i < m->v->case_count; i++) {
        const bundle_case *c = &m->v->cases[i];
        bool is_exact = c->low_ns == c->ns && c->ns == c->high_ns;
        bool is_base_exact = c->baseline_low_ns == 0 || (c->baseline_low_ns == c->baseline_ns &&
                                                         c->baseline_ns == c->baseline_high_ns);
        if (!is_exact || !is_base_exact)
            lie(m, NULL, "case %s: a modelled time has no spread", c->name);
    }
}

/* A GPU without a description is taken on trust. */
static ev_status check_gpu(manifest_check *m) {
    char id[160];
    device *d = NULL;
    bundle_variant want = {0};
    (void)snprintf(id, sizeof id, "vm:%.120s", m->v->gpu_id);
    if (device_open(id, &d, NULL) != EV_OK)
        return EV_OK;
    const device_properties *p = device_properties_of(d);
    ev_status status = shipped_set_gpu(m->arena, d, &want, m->err);
    check_modelled(m);
    if (status == EV_OK && m->v->modelled)
        check_gpu_name(m, p->name, &want);
    if (m->v->modelled && m->v->sm_mhz > 0)
        lie(m, NULL, "gpu.sm_mhz is %g, and modelled times have no clock", m->v->sm_mhz);
    if (status == EV_OK && m->v->sm > p->sm)
        lie(m, NULL, "gpu.sm is %d, and the GPU has %d", m->v->sm, p->sm);
    if (status == EV_OK) {
        expect_number(m, "gpu.sms", m->v->sms, want.sms);
        if (m->v->driver_name_count > want.driver_name_count)
            lie(m, NULL, "gpu.driver_names has a name that drivers do not give");
        for (size_t i = 0; i < m->v->driver_name_count && i < want.driver_name_count; i++)
            expect_text(m, "gpu.driver_names", m->v->driver_names[i], want.driver_names[i]);
        check_resources(m, d);
        check_resident(m, d);
    }
    device_close(d);
    return status;
}

/* ---- machine code ---- */

/* An assembler of the recorded version makes the same code of the PTX. Without it, the code is
 * taken on trust, as its registers are. */
static ev_status check_cubin(manifest_check *m, const bundle_cubin *c) {
    ptxas_code code;
    bool found = false;
    uint32_t sm = 0;
    const char *entry = launch_plan_entry(m->v->plan);
    if (ev_text_u32(c->arch, "sm_", &sm) == NULL || sm != (uint32_t)m->v->sm) {
        lie(m, NULL, "there is machine code for %s, and the PTX is for sm_%d", c->arch, m->v->sm);
        return EV_OK;
    }
    EV_TRY(ptxas_assemble(m->v->ptx, entry, (int)sm, &found, &code, m->err));
    if (found && strcmp(code.version, c->assembler) == 0) {
        ev_sha256 own = ev_sha256_of(ev_str_text(&code.cubin), code.cubin.length);
        expect_text(m, "sha256 of machine code", c->sha256.hex, own.hex);
        expect_number(m, "registers of machine code", c->registers, code.registers);
        expect_number(m, "spill_bytes", c->spill_bytes, code.spill_bytes);
    }
    ev_str_free(&code.cubin);
    return EV_OK;
}

static ev_status check_cubins(manifest_check *m) {
    for (size_t i = 0; i < m->v->cubin_count; i++)
        EV_TRY(check_cubin(m, &m->v->cubins[i]));
    return EV_OK;
}

/* ---- variants ---- */

static ev_status check_variant(manifest_check *m, const bundle_variant *v) {
    m->v = v;
    m->start = task_find_start(m->t, v->start);
    m->expected = (bundle_variant){0};
    if (m->start == NULL) {
        lie(m, NULL, "the task has no start '%s'", v->start);
        return EV_OK;
    }
    EV_TRY(check_genome(m));
    check_ranges(m);
    check_meaning(m);
    check_target(m);
    check_driver(m);
    EV_TRY(check_cubins(m));
    return check_gpu(m);
}

static ev_status check_variants(manifest_check *m, const bundle_variant *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        EV_TRY(check_variant(m, &list[i]));
    m->v = NULL;
    return EV_OK;
}

ev_status check_manifest(const bundle_kernel *k, const task *t, json_t *lies, ev_error *err) {
    manifest_check m = {.k = k, .t = t, .lies = lies, .err = err, .arena = ev_arena_new()};
    if (m.arena == NULL)
        return ev_fail_memory(err, 1);
    check_task(&m);
    ev_status status = check_variants(&m, k->variants, k->variant_count);
    if (status == EV_OK)
        status = check_variants(&m, k->starts, k->start_count);
    if (status == EV_OK)
        status = check_variants(&m, k->baselines, k->baseline_count);
    ev_arena_free(m.arena);
    return status;
}
