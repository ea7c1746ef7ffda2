/* The direct emitter against LLVM: every shipped start, and small modules with an instruction or a
 * flow of their own; both texts run in the virtual machine, and the outputs are the same bits. */
#include "ir/ir.h"
#include "tests/kernels/task_run.h"

/* ---- the shipped starts -----------------------------------------------------------------------
 */

static vm_module *load(const char *ptx, size_t bytes, const char *name) {
    ev_error err = {EV_OK, ""};
    vm_module *module = NULL;
    OK_OR_FAIL(vm_module_load(ptx, bytes, name, &module, &err));
    return module;
}

/* NULL: the emitter refuses the module; `refusal` says why. */
static vm_module *direct_module(ir_build *build, ev_error *refusal) {
    ev_error err = {EV_OK, ""};
    size_t bytes;
    bool covered;
    OK_OR_FAIL(ir_build_sketch(build, &covered, &err));
    if (!covered) {
        *refusal = err;
        return NULL;
    }
    const char *ptx = ir_build_sketch_ptx(build, &bytes);
    return load(ptx, bytes, "direct");
}

static void run_stages(ir_build *build, ir_stage from, ir_stage to) {
    ev_error err = {EV_OK, ""};
    for (ir_stage stage = from; stage <= to; stage++)
        OK_OR_FAIL(ir_build_run(build, stage, &err));
}

typedef struct modules {
    vm_module *early, *direct, *llvm; /* early: direct, before the passes */
} modules;

static modules build_start(const task_start *start) {
    ev_error err = {EV_OK, ""};
    ir_source source = {.path = start->source,
                        .entry = launch_plan_entry(start->plan),
                        .include = "kernels/include",
                        .plan = task_start_has_steps(start) ? start->plan : NULL, /* all kernels */
                        .sm = 90};
    ir_base *base;
    ir_build *build;
    OK_OR_FAIL(ir_base_load(&source, &base, &err));
    ir_genome *genome = ir_genome_new(start->name);
    assert_non_null(genome);
    assert_true(ir_genome_make_light(genome));
    OK_OR_FAIL(ir_build_new(base, genome, &build, &err));
    run_stages(build, IR_STAGE_EDIT, IR_STAGE_VERIFY);
    ev_error refusal = {EV_OK, ""};
    modules m = {.early = direct_module(build, &refusal)};
    run_stages(build, IR_STAGE_OPTIMISE, IR_STAGE_OPTIMISE);
    m.direct = direct_module(build, &refusal);
    run_stages(build, IR_STAGE_EMIT, IR_STAGE_EMIT);
    size_t bytes;
    const char *ptx = ir_build_ptx(build, &bytes);
    m.llvm = load(ptx, bytes, "LLVM's");
    /* Only kernels with inline assembly, which LLVM emits, and starts of several kernels may be
     * refused. */
    bool is_refused = m.early == NULL || m.direct == NULL;
    if (is_refused && strstr(ptx, "inline asm") == NULL && !task_start_has_steps(start))
        fail_msg("%s: %s", start->name, refusal.text);
    ir_build_free(build);
    ir_genome_free(genome);
    ir_base_free(base);
    return m;
}

static void check_case(const task *t, const task_start *start, const modules *m,
                       const task_case *c) {
    task_inputs in = task_inputs_make(t, c);
    task_run direct = task_run_make(&in, start, m->direct, 0),
             llvm = task_run_make(&in, start, m->llvm, 0);
    task_run early = task_run_make(&in, start, m->early, 0);
    char says[200];
    if (!direct.result.ok || !llvm.result.ok || !early.result.ok)
        fail_msg("%s, %s, %s: %s", t->name, start->name, c->name,
                 !direct.result.ok ? direct.result.trap.message
                 : !llvm.result.ok ? llvm.result.trap.message
                                   : early.result.trap.message);
    task_run_compare(&in, &direct, &llvm, says, sizeof says);
    if (says[0])
        fail_msg("%s, %s: %s", t->name, start->name, says);
    task_run_free(&direct);
    task_run_free(&llvm);
    task_run_free(&early);
    task_inputs_free(&in);
}

/* The small cases of the search. The others have other data for the same instructions, and the rows
 * below compare the instructions one by one. */
static bool is_run(const task_case *c) {
    return c->split == CORPUS_SEARCH && c->use != TASK_TIME;
}

static void check_task(const char *name) {
    task *t = NULL;
    ev_error err = {EV_OK, ""};
    OK_OR_FAIL(task_open(name, &t, &err));
    for (size_t s = 0; s < t->start_count; s++) {
        modules m = build_start(&t->starts[s]);
        for (size_t c = 0; c < t->case_count && m.early != NULL && m.direct != NULL; c++) {
            if (is_run(&t->cases[c]))
                check_case(t, &t->starts[s], &m, &t->cases[c]);
        }
        vm_module_free(m.early);
        vm_module_free(m.direct);
        vm_module_free(m.llvm);
    }
    task_free(t);
}

static void test_shipped(void **state) {
    (void)state;
    each_shipped_task(check_task);
}

static void test_examples(void **state) {
    (void)state;
    check_task("examples/rmsnorm/task.json");
    check_task("examples/softmax/task.json");
    check_task("examples/matmul/task.json");
    check_task("examples/rownorm/task.json");
    check_task("examples/conv2d/task.json");
}

/* ---- a row each -------------------------------------------------------------------------------
 */

enum { THREADS = 64, WORDS = 4 * THREADS };

static const char head[] =
    "target triple = \"nvptx64-nvidia-cuda\"\n"
    "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n%s"
    "define ptx_kernel void @k(ptr %%in, ptr %%fin, ptr %%out) {\nentry:\n"
    "%%t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n%%t64 = zext i32 %%t to i64\n"
    "%%px = getelementptr inbounds [4 x i32], ptr %%in, i64 %%t64\n"
    "%%py = getelementptr inbounds i32, ptr %%px, i64 1\n"
    "%%pz = getelementptr inbounds i32, ptr %%px, i64 2\n"
    "%%pf = getelementptr inbounds [4 x float], ptr %%fin, i64 %%t64\n"
    "%%pg = getelementptr inbounds float, ptr %%pf, i64 1\n"
    "%%ph = getelementptr inbounds float, ptr %%pf, i64 2\n"
    "%%po = getelementptr inbounds [4 x i32], ptr %%out, i64 %%t64\n"
    "%%x = load i32, ptr %%px, align 4\n%%y = load i32, ptr %%py, align 4\n"
    "%%z = load i32, ptr %%pz, align 4\n%%f = load float, ptr %%pf, align 4\n"
    "%%g = load float, ptr %%pg, align 4\n%%h = load float, ptr %%ph, align 4\n"
    "%%X1 = sext i32 %%x to i64\n%%X = mul i64 %%X1, 4294967311\n"
    "%%Y1 = zext i32 %%y to i64\n%%Y2 = shl i64 %%Y1, 7\n%%Y = xor i64 %%Y2, %%X1\n"
    "%%s = trunc i32 %%x to i16\n%%u = trunc i32 %%y to i16\n"
    "%%a = trunc i32 %%x to i8\n%%b = trunc i32 %%y to i8\n"
    "%%F1 = fpext float %%f to double\n%%F = fmul double %%F1, 0x3FF0000000000001\n"
    "%%G = fpext float %%g to double\n"
    "%sstore %s %%r, ptr %%po, align 16\nret void\n}\n";

static ir_base *row_base(const char *type, const char *body, const char *declarations) {
    ev_error err = {EV_OK, ""};
    char path[] = "/tmp/evoke-direct-XXXXXX.ll";
    int fd = mkstemps(path, 3);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    assert_non_null(file);
    assert_true(fprintf(file, head, declarations, body, type) > 0);
    assert_int_equal(fclose(file), 0);
    ir_source source = {.path = path, .entry = "k", .sm = 90};
    ir_base *base = NULL;
    ev_status status = ir_base_load(&source, &base, &err);
    assert_int_equal(remove(path), 0);
    if (status != EV_OK)
        fail_msg("%s\n%s", body, err.text);
    return base;
}

/* Ordinary numbers beside the edges, the same in each run. */
static void fill_words(uint32_t *ints, float *reals) {
    static const uint32_t odd[] = {0, 1, 0xffffffff, 0x80000000, 0x7fffffff, 0x80, 0x8000, 7};
    static const float edges[] = {0.0f, -0.0f, 1.0f, -1.5f, 1e-40f, 3e38f, 0.5f, 2.5f};
    ev_pcg rng = ev_pcg_child(1, 2, 3, 4);
    for (uint32_t i = 0; i < WORDS; i++) {
        uint32_t drawn = ev_pcg_next(&rng);
        if (i % 4 == 3)
            ints[i] = 0;
        else if (drawn % 3)
            ints[i] = drawn;
        else
            ints[i] = odd[drawn / 3 % 8];
        reals[i] = drawn % 5 ? (float)(int32_t)drawn * 0x1p-24f : edges[drawn / 5 % 8];
        reals[i] = i % 4 == 3 ? 0 : reals[i];
    }
}

static void run_row(const char *name, const vm_module *module, uint32_t out[WORDS]) {
    ev_error err = {EV_OK, ""};
    vm_memory *memory;
    uint64_t addresses[3];
    OK_OR_FAIL(vm_memory_new(1 << 20, &memory, &err));
    for (int i = 0; i < 3; i++)
        OK_OR_FAIL(vm_memory_alloc(memory, (uint64_t)WORDS * 4,
                                   i < 2 ? VM_BUFFER_IN : VM_BUFFER_INOUT, "b", &addresses[i],
                                   &err));
    fill_words((uint32_t *)vm_memory_host(memory, addresses[0]),
               (float *)vm_memory_host(memory, addresses[1]));
    memset(vm_memory_host(memory, addresses[2]), 0, (size_t)WORDS * 4);
    vm_launch launch = {.module = module,
                        .entry = vm_module_find(module, "k"),
                        .grid = {1, 1, 1},
                        .block = {THREADS, 1, 1},
                        .params = addresses};
    vm_result result;
    OK_OR_FAIL(vm_run(memory, &launch, &result, &err));
    if (!result.ok)
        fail_msg("%s: %s", name, result.trap.message);
    memcpy(out, vm_memory_host(memory, addresses[2]), (size_t)WORDS * 4);
    vm_memory_free(memory);
}

static void check_row(const char *name, const char *type, const char *body,
                      const char *declarations) {
    ev_error err = {EV_OK, ""};
    ir_base *base = row_base(type, body, declarations);
    ir_genome *genome = ir_genome_new("k");
    ir_build *build;
    assert_true(genome != NULL && ir_genome_make_light(genome));
    OK_OR_FAIL(ir_build_new(base, genome, &build, &err));
    run_stages(build, IR_STAGE_EDIT, IR_STAGE_VERIFY);
    vm_module *texts[3] = {direct_module(build, &err)};
    run_stages(build, IR_STAGE_OPTIMISE, IR_STAGE_OPTIMISE);
    texts[1] = direct_module(build, &err);
    if (texts[0] == NULL || texts[1] == NULL)
        fail_msg("%s: %s", name, err.text);
    run_stages(build, IR_STAGE_EMIT, IR_STAGE_EMIT);
    size_t bytes;
    const char *ptx = ir_build_ptx(build, &bytes);
    texts[2] = load(ptx, bytes, name);
    uint32_t out[3][WORDS];
    for (int i = 0; i < 3; i++)
        run_row(name, texts[i], out[i]);
    for (uint32_t i = 0; i < WORDS; i++)
        if (out[0][i] != out[2][i] || out[1][i] != out[2][i])
            fail_msg("%s, word %u: %08x before the passes, %08x after them, LLVM %08x", name, i,
                     out[0][i], out[1][i], out[2][i]);
    for (int i = 0; i < 3; i++)
        vm_module_free(texts[i]);
    ir_build_free(build);
    ir_genome_free(genome);
    ir_base_free(base);
}

static void test_rows(void **state) {
    (void)state;
#define DIRECT_ROW(name, type, body, declarations) check_row(name, type, body, declarations);
#include "tests/ir/direct_rows.def"
#undef DIRECT_ROW
}

/* ---- what is refused --------------------------------------------------------------------------
 */

static void check_refused(const char *type, const char *body, const char *declarations,
                          const char *says) {
    ev_error err = {EV_OK, ""};
    ir_base *base = row_base(type, body, declarations);
    ir_genome *genome = ir_genome_new("k");
    ir_build *build;
    assert_non_null(genome);
    OK_OR_FAIL(ir_build_new(base, genome, &build, &err));
    run_stages(build, IR_STAGE_EDIT, IR_STAGE_VERIFY);
    bool covered;
    OK_OR_FAIL(ir_build_sketch(build, &covered, &err));
    if (covered || strstr(err.text, says) == NULL)
        fail_msg("%s: covered %d, \"%s\"", body, covered, err.text);
    ir_build_free(build);
    ir_genome_free(genome);
    ir_base_free(base);
}

static void test_refusals(void **state) {
    (void)state;
    check_refused("float", "%r = frem float %f, %g\n", "", "frem");
    check_refused("i128", "%r = zext i32 %x to i128\n", "", "i128");
    check_refused("i32", "%r = load atomic i32, ptr %px monotonic, align 4\n", "", "atomic load");
    check_refused("i32", "%r = load i32, ptr %px, align 1\n", "", "less than its type's alignment");
    check_refused("i32", "%l = alloca i32\nstore volatile i32 %x, ptr %l\n%r = add i32 %x, 1\n", "",
                  "alloca");
    check_refused("float", "%r = call float @llvm.nvvm.add.rz.f(float %f, float %g)\n",
                  "declare float @llvm.nvvm.add.rz.f(float, float)\n", "a call");
    check_refused("bfloat", "%j = fptrunc float %f to bfloat\n%r = fadd bfloat %j, %j\n", "",
                  "arithmetic of bfloat");
    check_refused("float",
                  "%v = call {<2 x half>, <2 x half>, <2 x half>, <2 x half>} "
                  "@llvm.nvvm.wmma.m16n16k16.load.c.row.stride.f16.p0(ptr %px, i32 16)\n"
                  "%r = fadd float %f, %g\n",
                  "declare {<2 x half>, <2 x half>, <2 x half>, <2 x half>} "
                  "@llvm.nvvm.wmma.m16n16k16.load.c.row.stride.f16.p0(ptr, i32)\n",
                  "a load of this matrix");
    check_refused("float", "%r = fdiv arcp float %f, 3.0\n", "", "by a constant");
    check_refused("float",
                  "%k = call float @llvm.nvvm.sqrt.approx.f(float %f)\n%j = fdiv float 1.0, %k\n"
                  "%r = fsub float %g, %j\n",
                  "declare float @llvm.nvvm.sqrt.approx.f(float)\n", "reciprocal of a root");
    check_refused("float",
                  "%k = fmul contract float %f, %g\n%p = icmp slt i32 %x, %y\n"
                  "br i1 %p, label %a1, label %b1\na1:\nstore volatile float %k, ptr %po, align 4\n"
                  "br label %b1\nb1:\n%l = fmul contract float %g, %f\n"
                  "%r = fadd contract float %l, %h\n",
                  "", "computed twice");
    check_refused("float",
                  "%k = fmul contract float %f, %g\n%l = fmul float %g, %f\n"
                  "%s1 = fadd contract float %k, %h\n%r = fmul float %s1, %l\n",
                  "", "computed twice");
    check_refused("float",
                  "%e = fmul contract float %f, %h\n%k = fmul contract float %e, %g\n"
                  "%l = fmul contract float %g, %e\n%s1 = fadd contract float %k, %h\n"
                  "%r = fmul float %s1, %l\n",
                  "", "computed twice");
    check_refused("float", "%k = fdiv arcp float %f, %f\n%r = fadd float %k, %g\n", "",
                  "by itself");
    check_refused("float",
                  "%d = fmul float %f, %h\n%k = fdiv arcp float %f, %d\n"
                  "%j = fdiv arcp float %g, %d\n%r = fadd float %k, %j\n",
                  "", "one divisor");
    check_refused("float",
                  "%k = fdiv arcp float %f, %h\n%j = fdiv arcp float %g, %h\n"
                  "%r = fadd reassoc float %k, %j\n",
                  "", "one divisor");
    check_refused("float",
                  "%k = call float @llvm.sqrt.f32(float %f)\n%r = fdiv fast float %f, %k\n",
                  "declare float @llvm.sqrt.f32(float)\n", "dividend's root");
    check_refused("float",
                  "%k = fdiv arcp contract float %f, %h\n%j = fdiv arcp contract float %g, %h\n"
                  "%r = fadd contract float %k, %j\n",
                  "", "two products");
    check_refused("float",
                  "%q = fmul float %f, %f\n%k = fmul reassoc nsz float %f, %g\n"
                  "%j = fmul reassoc nsz float %k, %f\n%r = fadd float %j, %q\n",
                  "", "reassociation allowed");
    check_refused("float",
                  "%q = fmul float %f, %h\n%k = fmul reassoc nsz float %f, %g\n"
                  "%j = fmul reassoc nsz float %k, %h\n%r = fadd float %j, %q\n",
                  "", "reassociation allowed");
    check_refused("float",
                  "%q = fmul float %h, 0.25\n%k = fmul reassoc nsz float %f, 0.25\n"
                  "%j = fmul reassoc nsz float %k, %h\n%r = fadd float %j, %q\n",
                  "", "reassociation allowed");
    check_refused("i32",
                  "%v = insertelement <2 x i32> undef, i32 %x, i32 %t\n"
                  "%r = extractelement <2 x i32> %v, i32 0\n",
                  "", "no known place");
}

/* LLVM moves what stands in a short conditional block up before it chooses. */
static void test_moves(void **state) {
    (void)state;
#define BRANCH "%p = icmp slt i32 %x, %y\nbr i1 %p, label %a1, label %b1\na1:\n"
#define JOINED "store volatile float %j, ptr %po, align 4\nbr label %b1\nb1:\n%r = fneg float %f\n"
    check_refused("float",
                  "%k = fmul contract float %f, %g\n" BRANCH
                  "%j = fadd contract float %k, %h\n" JOINED,
                  "", "together with a product");
    check_refused("float",
                  BRANCH "%k = fmul contract float %f, %g\n%l = load float, ptr %ph, align 4\n"
                         "%j = fadd contract float %k, %l\n" JOINED,
                  "", "together with a product");
    check_refused("float",
                  "%k = fdiv arcp float %f, %h\n" BRANCH "%j = fdiv arcp float %g, %h\n" JOINED, "",
                  "bring together");
    check_refused("float",
                  "%k = call float @llvm.nvvm.sqrt.approx.f(float %f)\n" BRANCH
                  "%j = fdiv float 1.0, %k\n" JOINED,
                  "declare float @llvm.nvvm.sqrt.approx.f(float)\n", "a root");
#undef BRANCH
#undef JOINED
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shipped), cmocka_unit_test(test_examples),
        cmocka_unit_test(test_rows),    cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
