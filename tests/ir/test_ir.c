/* Loading and building, and what they refuse. */
#include "tests/ir/ir_rig.h"

/* ---- loading ----------------------------------------------------------------------------------
 */

static size_t count_of(const ir_build *made, const char *word) {
    size_t bytes = 0, count = 0;
    const char *ptx = ir_build_ptx(made, &bytes), *end = ptx + bytes;
    while ((ptx = memmem(ptx, (size_t)(end - ptx), word, strlen(word)))) {
        count++;
        ptx++;
    }
    return count;
}

/* An optimised base is unrolled before the edits and code is generated from it as it is; the rolled
 * one is unrolled by the pipeline after them, the light one too: without an edit all come to the
 * same loads. */
static void an_optimised_base_is_edited_after_the_passes(void **state) {
    (void)state;
    static const char text[] =
        "extern \"C\" __attribute__((global)) void sum(float *out, const float *in, int n) {\n"
        "  float s = 0;\n  for (int i = 0; i < n; i++) s += in[i * 3];\n  *out = s;\n}\n";
    char *path = write_file("sum.cu", text);
    ir_source source = {.path = path, .entry = "sum", .include = "kernels/include", .sm = 90};
    ir_genome *plain = genome_of(""), *late = genome_of(""), *light = genome_of("");
    ir_genome_set_optimised(late, true);
    assert_true(ir_genome_make_light(light) && ir_genome_make_light(light));
    assert_int_equal(ir_genome_edit_count(light), 1);
    ir_base *rolled = load(&source);
    source.optimised = true;
    ir_base *optimised = load(&source);
    assert_true(ir_base_insn_count(optimised) > 2 * ir_base_insn_count(rolled));
    ir_build *a = build(rolled, plain), *b = build(optimised, late), *c = build(rolled, light);
    assert_true(count_of(a, "ld.global") > 2);
    assert_int_equal(count_of(b, "ld.global"), count_of(a, "ld.global"));
    assert_int_equal(count_of(c, "ld.global"), count_of(a, "ld.global"));
    ir_build_free(c);
    ir_genome_free(light);
    ir_build_free(a);
    ir_build_free(b);
    ir_base_free(rolled);
    ir_base_free(optimised);
    ir_genome_free(plain);
    ir_genome_free(late);
    free(path);
}

static void bad_sources_are_refused(void **state) {
    (void)state;
    static const char kernels[] =
        "__attribute__((global)) void one() {}\n"
        "extern \"C\" __attribute__((global)) void two(int *x) { *x = 1; }\n";
    static const struct {
        const char *name, *text, *entry;
        int sm;
        const char *message;
    } rows[] = {
        {"absent.cu", NULL, "k", 90, "no such file"},
        {"kernel.txt", "x", "k", 90, "ends in .cu, .ll or .bc"},
        {"typo.cu", "__attribute__((device)) int f() { return nothing; }\n", "k", 90,
         "use of undeclared identifier 'nothing'"},
        {"two.cu", kernels, "three", 90, "no kernel \"three\"; it has: one, two"},
        {"syntax.ll", "define void @k( {\n", "k", 90, "syntax.ll:2:1: error: expected type"},
        {"order.ll",
         "define ptx_kernel void @k(ptr %p) {\n  store i32 %b, ptr %p\n  %b = add i32 1, 2\n"
         "  ret void\n}\n",
         "k", 90, "does not verify: Instruction does not dominate all uses"},
        {"host.ll", "define void @k() {\n  ret void\n}\n", "k", 90,
         "no kernel \"k\"; it has: none"},
        {"garbage.bc", "not bitcode", "k", 90, "bitcode"},
        {"twice.cu",
         "template <int N> __attribute__((global)) void k(int *x) { *x = N; }\n"
         "template __attribute__((global)) void k<1>(int *);\n"
         "template __attribute__((global)) void k<2>(int *);\n",
         "k", 90,
         "more than one kernel is named \"k\"; give one of these as \"entry\": k<1>, k<2>"},
        {"two.cu", kernels, "two", 12, "sm_12: not one of"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *path = rows[i].text ? write_file(rows[i].name, rows[i].text)
                                  : ev_path_join(folder, rows[i].name);
        ir_source source = {.path = path, .entry = rows[i].entry, .sm = rows[i].sm};
        ir_base *base = NULL;
        ev_error err;
        assert_int_equal(ir_base_load(&source, &base, &err), EV_BAD);
        assert_null(base);
        if (!strstr(err.text, rows[i].message))
            fail_msg("%s says: %s", rows[i].name, err.text);
        free(path);
    }
}

static void macros_reach_the_source(void **state) {
    (void)state;
    char *path = write_file("macro.cu", "extern \"C\" __attribute__((global)) void k(int *x) {\n"
                                        "  *x = VALUE;\n}\n");
    ir_macro macro = {"VALUE", -4711};
    ir_source source = {.path = path, .entry = "k", .sm = 70, .macros = &macro, .macro_count = 1};
    ir_base *base = load(&source);
    char *text = ir_base_insn_text(base, 0);
    assert_non_null(strstr(text, "store i32 -4711"));
    assert_int_equal(ir_base_insn_line(base, 0), 2);
    free(text);
    ir_base_free(base);
    free(path);
}

/* A source as nvcc compiles it: host code, CUDA's headers and C++'s, names that are mangled. Device
 * code alone is compiled, floats stay floats, and lines are those of the file. */
static void host_code_is_left_out(void **state) {
    (void)state;
    static const char text[] =
        "#include <cuda_runtime.h>\n"
        "#include <cmath>\n#include <cstdio>\n#include <cublas_v2.h>\n#include <vector>\n"
        "#define SCALE 3\n"
        "static cublasHandle_t handle(int n) { return cublasCreate(n); }\n"
        "template <typename T> __global__ void many(T *y) { y[threadIdx.x] = 1; }\n"
        "namespace a { __global__ void add(const float *x, float *y, int n) {\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    if (i < n) y[i] = sqrt(x[i]) + std::sqrt(x[i]) * SCALE + fmax(x[i], 1.0f) +\n"
        "        std::exp(x[i]) + abs(x[i]) + floor(x[i]) + fma(x[i], 2.0f, 1.0f) +\n"
        "        std::max(x[i], 2.0f) + max(x[i], 0.5f) + log(x[i]);\n"
        "} }\n"
        "int main() {\n    std::vector<float> v;\n    dim3 grid((9 + 1) / 2, 1);\n"
        "    a::add<<<grid, 32>>>(v.data(), nullptr, nothing);\n    return printf(\"done\");\n}\n"
        "template __global__ void many<double>(double *);\n";
    char *path = write_file("app.cu", text);
    ir_macro macro = {"SCALE", 5};
    ir_source source = {.path = path,
                        .entry = "add",
                        .include = "kernels/include",
                        .sm = 90,
                        .macros = &macro,
                        .macro_count = 1};
    ir_base *base = load(&source);
    ir_genome *none = genome_of("");
    ir_build *made = build(base, none);
    assert_int_equal(count_of(made, ".entry add("), 1);
    assert_int_equal(count_of(made, "sqrt.rn.f32"), 1);
    assert_int_equal(count_of(made, "f64"), 0);
    assert_true(count_of(made, "0f40A00000") > 0); /* 5, not 3 */
    assert_int_equal(ir_base_insn_line(base, 0), 10);
    ir_build_free(made);
    ir_base_free(base);
    source.entry = "many";
    base = load(&source);
    made = build(base, none);
    assert_int_equal(count_of(made, "st.global.u64") + count_of(made, "st.global.f64"), 1);
    ir_build_free(made);
    ir_base_free(base);
    ir_genome_free(none);
    free(path);
}

static uint32_t find_insn(const ir_base *base, const char *part) {
    for (uint32_t i = 0; i < ir_base_insn_count(base); i++) {
        char *text = ir_base_insn_text(base, i);
        bool found = strstr(text, part) != NULL;
        free(text);
        if (found)
            return i;
    }
    fail_msg("no instruction with %s", part);
    return 0;
}

/* Calls of functions of the included header have the line of the kernel that calls them. */
static void lines_are_those_of_the_source(void **state) {
    (void)state;
    ir_base *base = load(&everything);
    static const struct {
        const char *insn, *source;
    } rows[] = {{"@llvm.nvvm.barrier0", "__syncthreads"},
                {"@llvm.nvvm.vote.ballot", "__ballot_sync"},
                {"@llvm.nvvm.membar.sys", "__threadfence_system"}};
    char *text;
    size_t bytes;
    ev_error err;
    assert_int_equal(ev_file_read(everything.path, &text, &bytes, &err), EV_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t line = ir_base_insn_line(base, find_insn(base, rows[i].insn));
        const char *at = text;
        for (uint32_t skip = 1; skip < line; skip++)
            at = strchr(at, '\n') + 1;
        const char *found = strstr(at, rows[i].source);
        assert_non_null(found);
        assert_true(found < strchr(at, '\n'));
    }
    free(text);
    ir_base_free(base);
}

/* Names of values, other kernels and debug info leave no trace in the canonical IR. */
static void equal_code_has_equal_hashes(void **state) {
    (void)state;
    static const char *const texts[] = {
        "define ptx_kernel void @k(ptr %p) {\nin:\n  %a = load i32, ptr %p\n  %b = add i32 %a, 1\n"
        "  store i32 %b, ptr %p\n  ret void\n}\n",
        "define ptx_kernel void @k(ptr %0) {\n  %2 = load i32, ptr %0\n  %3 = add i32 %2, 1\n"
        "  store i32 %3, ptr %0\n  ret void\n}\ndefine void @other() {\n  ret void\n}\n",
        "define ptx_kernel void @k(ptr %p) {\n  %a = load i32, ptr %p\n  %b = add i32 %a, 2\n"
        "  store i32 %b, ptr %p\n  ret void\n}\n"};
    ev_sha256 sha[3];
    for (int i = 0; i < 3; i++) {
        char *path = write_file("hash.ll", texts[i]);
        ir_source source = {.path = path, .entry = "k", .sm = 90};
        ir_base *base = load(&source);
        assert_int_equal(ir_base_insn_count(base), 4);
        sha[i] = ir_base_sha256(base);
        ir_base_free(base);
        free(path);
    }
    assert_true(ev_sha256_equal(&sha[0], &sha[1]));
    assert_false(ev_sha256_equal(&sha[0], &sha[2]));
}

/* ---- building ---------------------------------------------------------------------------------
 */

static void ptx_is_for_the_target_and_has_no_lines(void **state) {
    (void)state;
    /* sm_75 has shapes of mma.sync that PTX 6.3 does not know. */
    static const struct {
        int sm;
        const char *version;
    } targets[] = {{60, ".version 6.3"}, {70, ".version 6.3"}, {75, ".version 6.5"},
                   {80, ".version 7.0"}, {89, ".version 7.8"}, {90, ".version 7.8"}};
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        ir_source source = everything;
        source.sm = targets[i].sm;
        ir_base *base = load(&source);
        ir_genome *genome = ir_genome_new("textbook");
        ir_build *made = build(base, genome);
        size_t bytes;
        const char *ptx = ir_build_ptx(made, &bytes);
        char target[32];
        snprintf(target, sizeof target, ".target sm_%d", targets[i].sm);
        assert_int_equal(strlen(ptx), bytes);
        assert_non_null(strstr(ptx, targets[i].version));
        assert_non_null(strstr(ptx, target));
        assert_non_null(strstr(ptx, ".visible .entry everything("));
        assert_null(strstr(ptx, ".loc"));
        assert_null(strstr(ptx, ".file"));
        ir_build_free(made);
        ir_genome_free(genome);
        ir_base_free(base);
    }
}

enum { GENOMES = 12 };

typedef struct digest {
    ev_sha256 genome, ir, ptx;
} digest;

/* From an own base, the genomes in the given direction. */
static void digest_all(bool backwards, digest out[GENOMES]) {
    ir_base *base = load(&everything);
    for (int i = 0; i < GENOMES; i++) {
        int at = backwards ? GENOMES - 1 - i : i;
        ir_genome *genome = mutated(base, (uint64_t)at, 8);
        json_t *json = ir_genome_to_json(genome);
        ir_genome *read = NULL;
        ev_error err;
        assert_int_equal(ir_genome_from_json(json, &read, &err), EV_OK);
        ir_build *made = build(base, read);
        out[at] =
            (digest){ir_genome_sha256(genome), ir_build_ir_sha256(made), ir_build_ptx_sha256(made)};
        ir_build_free(made);
        json_decref(json);
        ir_genome_free(read);
        ir_genome_free(genome);
    }
    ir_base_free(base);
}

/* What was built before, and in which process, must not show. */
static void replay_is_the_same_in_every_process(void **state) {
    (void)state;
    digest mine[GENOMES], theirs[GENOMES];
    memset(mine, 0, sizeof mine);
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        digest_all(true, mine);
        ssize_t wrote = write(pipes[1], mine, sizeof mine);
        _exit(wrote == (ssize_t)sizeof mine ? 0 : 1);
    }
    close(pipes[1]);
    char *to = (char *)theirs;
    for (ssize_t got;
         (got = read(pipes[0], to, sizeof theirs - (size_t)(to - (char *)theirs))) > 0;)
        to += got;
    close(pipes[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_ptr_equal(to, (char *)(theirs + GENOMES));
    digest_all(false, mine);
    for (int i = 0; i < GENOMES; i++) {
        assert_string_equal(mine[i].genome.hex, theirs[i].genome.hex);
        assert_string_equal(mine[i].ir.hex, theirs[i].ir.hex);
        assert_string_equal(mine[i].ptx.hex, theirs[i].ptx.hex);
    }
}

static void hashes_tell_code_from_code(void **state) {
    (void)state;
    ir_base *base = load(&everything);
    ir_genome *genomes[] = {genome_of(""), genome_of("{\"kind\":\"pipeline\",\"option\":0}"),
                            genome_of("{\"kind\":\"max-registers\",\"option\":40}")};
    ev_sha256 ir[3], ptx[3];
    for (int i = 0; i < 3; i++) {
        ir_build *made = build(base, genomes[i]);
        ir[i] = ir_build_ir_sha256(made);
        ptx[i] = ir_build_ptx_sha256(made);
        ir_build_free(made);
        ir_genome_free(genomes[i]);
    }
    assert_true(ev_sha256_equal(&ir[0], &ir[1]));
    assert_true(ev_sha256_equal(&ptx[0], &ptx[1]));
    assert_false(ev_sha256_equal(&ir[0], &ir[2]));
    assert_false(ev_sha256_equal(&ptx[0], &ptx[2]));
    ir_base_free(base);
}

/* LLVM numbers call sites across all modules of a process, and PTX shows the numbers. */
static void calls_are_numbered_by_module(void **state) {
    (void)state;
    char *path = write_file("calls.cu", "#include \"evoke_cuda.h\"\n"
                                        "extern \"C\" __global__ void k(float *x) {\n"
                                        "    x[0] = sinf(x[1]);\n"
                                        "    x[2] = cosf(x[3]);\n"
                                        "}\n");
    ir_source source = everything;
    source.path = path;
    source.entry = "k";
    ir_base *base = load(&source);
    ir_genome *none = genome_of("");
    size_t bytes[2];
    const char *text[2];
    ir_build *built[2];
    for (int i = 0; i < 2; i++) {
        built[i] = build(base, none);
        text[i] = ir_build_ptx(built[i], &bytes[i]);
    }
    assert_non_null(strstr(text[0], "// callseq 0, 0"));
    assert_non_null(strstr(text[0], "// callseq 1, 0"));
    assert_int_equal(bytes[0], strlen(text[0]));
    assert_string_equal(text[0], text[1]);
    ev_sha256 one = ir_build_ptx_sha256(built[0]), other = ir_build_ptx_sha256(built[1]);
    assert_true(ev_sha256_equal(&one, &other));
    for (int i = 0; i < 2; i++)
        ir_build_free(built[i]);
    ir_genome_free(none);
    ir_base_free(base);
    free(path);
}

static ir_build *sketched(const ir_base *base, const ir_genome *genome) {
    ev_error err;
    ir_build *made = NULL;
    bool covered = false;
    assert_int_equal(ir_build_new(base, genome, &made, &err), EV_OK);
    for (int stage = IR_STAGE_EDIT; stage <= IR_STAGE_OPTIMISE; stage++)
        assert_int_equal(ir_build_run(made, (ir_stage)stage, &err), EV_OK);
    assert_int_equal(ir_build_sketch(made, &covered, &err), EV_OK);
    assert_true(covered);
    return made;
}

/* The two pipelines find nothing to do here, and code is generated at two levels: one hash would
 * say that the PTX is the same. */
static void the_level_of_code_generation_tells_equal_ir_apart(void **state) {
    (void)state;
    ir_source source = everything;
    source.path = "examples/rmsnorm/rmsnorm.cu";
    source.entry = "rmsnorm";
    ir_base *base = load(&source);
    ir_genome *full = genome_of(""),
              *light = genome_of("{\"kind\":\"pipeline\",\"option\":11}"); /* FOLDING */
    ir_build *a = build(base, full), *b = build(base, light);
    ev_sha256 x = ir_build_ir_sha256(a), y = ir_build_ir_sha256(b);
    assert_false(ev_sha256_equal(&x, &y));
    x = ir_build_ptx_sha256(a), y = ir_build_ptx_sha256(b);
    assert_false(ev_sha256_equal(&x, &y));
    ir_build_free(a);
    ir_build_free(b);
    /* Their sketches are the same text, which does not show that LLVM's code is another. */
    a = sketched(base, full), b = sketched(base, light);
    size_t bytes[2];
    const char *text[2] = {ir_build_sketch_ptx(a, &bytes[0]), ir_build_sketch_ptx(b, &bytes[1])};
    assert_true(bytes[0] > 200 && bytes[0] == bytes[1] && memcmp(text[0], text[1], bytes[0]) == 0);
    x = ir_build_sketch_sha256(a), y = ir_build_sketch_sha256(b);
    assert_false(ev_sha256_equal(&x, &y));
    y = ir_build_salt(a, x);
    assert_true(ev_sha256_equal(&x, &y));
    y = ir_build_salt(b, x);
    assert_false(ev_sha256_equal(&x, &y));
    ir_build_free(a);
    ir_build_free(b);
    ir_genome_free(full);
    ir_genome_free(light);
    ir_base_free(base);
}

/* Sums of guarded stores, unrolled: by the back end's sinking, and by InstCombine's, the
 * multiply-adds went behind the guards and left the loads, all alive, above. */
static void sums_stay_above_the_guards_of_their_stores(void **state) {
    (void)state;
    char *path = write_file("guards.cu", "#include \"evoke_cuda.h\"\n"
                                         "extern \"C\" __global__ void k(float *a, int n) {\n"
                                         "    __shared__ float s[1024];\n"
                                         "    int t = threadIdx.x;\n"
                                         "    s[t] = a[t];\n"
                                         "    __syncthreads();\n"
                                         "    float x = 0, y = 0;\n"
                                         "#pragma unroll\n"
                                         "    for (int i = 0; i < 8; i++) {\n"
                                         "        x += s[t + i] * s[i];\n"
                                         "        y += s[t + i + 64] * s[i];\n"
                                         "    }\n"
                                         "    if (t < n)\n"
                                         "        a[t] = x;\n"
                                         "    if (t + 64 < n)\n"
                                         "        a[t + 64] = y;\n"
                                         "}\n");
    ir_source source = {.path = path, .entry = "k", .include = "kernels/include", .sm = 80};
    ir_base *base = load(&source);
    ir_genome *genome = ir_genome_new("textbook");
    ir_build *made = build(base, genome);
    size_t bytes;
    const char *ptx = ir_build_ptx(made, &bytes);
    const char *barrier = strstr(ptx, "bar.sync"), *sum = barrier;
    const char *guard = barrier ? strstr(barrier, "bra") : NULL;
    assert_non_null(guard);
    for (int i = 0; i < 16; i++) {
        sum = strstr(sum + 1, "fma.rn.f32");
        assert_true(sum != NULL && sum < guard);
    }
    ir_build_free(made);
    ir_genome_free(genome);
    ir_base_free(base);
    free(path);
}

/* A wide store beside single ones of the same values: LLVM's sinking made most of both sides one
 * store each, behind them. */
static void a_wide_store_stays_wide_beside_narrow_ones(void **state) {
    (void)state;
    char *path =
        write_file("wide.cu", "#include \"evoke_cuda.h\"\n"
                              "extern \"C\" __global__ void k(float *y, int n, float a) {\n"
                              "    int i = threadIdx.x * 4;\n"
                              "    float4 v = {a, a + 1, a + 2, a + 3};\n"
                              "    if (n % 4 == 0) {\n"
                              "        *(float4 *)(y + i) = v;\n"
                              "    } else {\n"
                              "        y[i] = v.x;\n"
                              "        y[i + 1] = v.y;\n"
                              "        y[i + 2] = v.z;\n"
                              "        y[i + 3] = v.w;\n"
                              "    }\n"
                              "}\n");
    ir_source source = {.path = path, .entry = "k", .include = "kernels/include", .sm = 80};
    ir_base *base = load(&source);
    ir_genome *genome = ir_genome_new("textbook");
    ir_build *made = build(base, genome);
    size_t bytes;
    assert_non_null(strstr(ir_build_ptx(made, &bytes), "st.global.v4.f32"));
    ir_build_free(made);
    ir_genome_free(genome);
    ir_base_free(base);
    free(path);
}

static void edits_that_do_not_fit_are_named(void **state) {
    (void)state;
    static const struct {
        const char *edits, *message;
    } rows[] = {
        {"{\"kind\":\"delete\"}", "edit 0 (delete): \"at\" is missing"},
        {"{\"kind\":\"delete\",\"at\":\"i99\"}", "there is no instruction i99"},
        {"{\"kind\":\"delete\",\"at\":\"i1\"}", "a terminator or PHI"},
        {"{\"kind\":\"delete\",\"at\":\"t0000000000000001.0\"}", "there is no instruction t0"},
        {"{\"kind\":\"delete\",\"at\":\"i2\"},{\"kind\":\"move\",\"at\":\"i2\",\"to\":\"i4\"}",
         "edit 1 (move): \"at\": there is no instruction i2"},
        {"{\"kind\":\"move\",\"at\":\"i2\",\"to\":\"i1\"}", "\"to\" is a PHI"},
        {"{\"kind\":\"swap\",\"at\":\"i2\",\"to\":\"i2\"}", "\"at\" itself"},
        {"{\"kind\":\"copy\",\"at\":\"i2\",\"to\":\"i3\",\"use\":[\"i4\",1]}", "\"use\""},
        {"{\"kind\":\"operand\",\"at\":\"i3\",\"operand\":7,\"value\":1}", "\"operand\""},
        {"{\"kind\":\"operand\",\"at\":\"i3\",\"operand\":1,\"value\":\"a0\"}", "another type"},
        {"{\"kind\":\"operand\",\"at\":\"i3\",\"operand\":1,\"value\":\"i5\"}", "not dominate"},
        {"{\"kind\":\"operand\",\"at\":\"i3\",\"operand\":1,\"value\":\"a9\"}", "\"value\""},
        {"{\"kind\":\"constant\",\"at\":\"i3\",\"operand\":1,\"value\":\"a1\"}", "no number"},
        {"{\"kind\":\"drop-barrier\",\"at\":\"i4\"}", "no barrier"},
        {"{\"kind\":\"drop-store\",\"at\":\"i2\"}", "no store"},
        {"{\"kind\":\"forward-value\",\"at\":\"i3\",\"value\":\"i5\"}", "come before"},
        {"{\"kind\":\"cache-policy\",\"at\":\"i4\",\"option\":0}", "\"option\""},
        {"{\"kind\":\"widen\",\"at\":\"i4\",\"option\":2}", "adjacent"},
        {"{\"kind\":\"align\",\"at\":\"i4\",\"option\":12}", "power of two"},
        {"{\"kind\":\"align-argument\",\"value\":\"a1\"}", "no pointer argument"},
        {"{\"kind\":\"fast-math\",\"at\":\"i3\",\"option\":1}", "floating-point"},
        {"{\"kind\":\"approx-math\",\"at\":\"i3\",\"option\":0}", "approximate"},
        {"{\"kind\":\"narrow\",\"at\":\"i3\"}", "double"},
        {"{\"kind\":\"no-wrap\",\"at\":\"i3\",\"option\":3}", "\"option\""},
        {"{\"kind\":\"force-condition\",\"at\":\"i3\",\"option\":1}", "condition"},
        {"{\"kind\":\"branch-to-select\",\"at\":\"i7\"}", "join"},
        {"{\"kind\":\"select-to-branch\",\"at\":\"i7\",\"option\":0}", "select"},
        {"{\"kind\":\"unroll\",\"at\":\"i0\",\"option\":4}", "closes a loop"},
        {"{\"kind\":\"hoist\",\"at\":\"i2\"}", "loop"},
        {"{\"kind\":\"sink\",\"at\":\"i2\"}", "one other block"},
        {"{\"kind\":\"max-threads\",\"option\":4096}", "from 1 to 1024"},
        {"{\"kind\":\"min-blocks\",\"option\":2}", "block size"},
        {"{\"kind\":\"max-registers\",\"option\":4}", "from 16 to 255"},
        {"{\"kind\":\"pipeline\",\"option\":99}", "\"option\""},
    };
    ir_base *base = load_text(loop, 90);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ir_genome *genome = genome_of(rows[i].edits);
        ir_build *made = NULL;
        ir_stage stage;
        ev_error err;
        assert_int_equal(build_all(base, genome, &made, &stage, &err), EV_BAD);
        assert_int_equal(stage, IR_STAGE_EDIT);
        if (!strstr(err.text, rows[i].message) || !strstr(err.text, "edit "))
            fail_msg("%s says: %s", rows[i].edits, err.text);
        ir_genome_free(genome);
    }
    ir_base_free(base);
}

static void check_diff(const ir_base *base, const char *edits, const char *line) {
    ir_genome *genome = genome_of(edits);
    ev_str diff = EV_STR_EMPTY;
    ev_error err;
    if (ir_diff(base, genome, &diff, &err) != EV_OK)
        fail_msg("%s", err.text);
    if (!strstr(ev_str_text(&diff), line))
        fail_msg("no \"%s\" in:\n%s", line, ev_str_text(&diff));
    ev_str_free(&diff);
    ir_genome_free(genome);
}

/* Where the stored value is not there, not of the type or not dominating, the nearest one is taken:
 * an instruction before an argument, an argument before zero. */
static void missing_repairs_fall_back(void **state) {
    (void)state;
    ir_base *base = load_text(loop, 90);
    check_diff(base, "{\"kind\":\"delete\",\"at\":\"i3\",\"repairs\":[[\"i4\",0,\"a1\"]]}",
               "+  store i32 %a1, ptr %a0");
    check_diff(base, "{\"kind\":\"delete\",\"at\":\"i3\"}", "+  store i32 %i2, ptr %a0");
    check_diff(base, "{\"kind\":\"delete\",\"at\":\"i3\",\"repairs\":[[\"i4\",0,\"i5\"]]}",
               "+  store i32 %i2, ptr %a0");
    check_diff(base, "{\"kind\":\"delete\",\"at\":\"i3\",\"repairs\":[[\"i4\",0,\"a0\"]]}",
               "+  store i32 %i2, ptr %a0");
    check_diff(base, "{\"kind\":\"delete\",\"at\":\"i3\",\"repairs\":[[\"i4\",0,5]]}",
               "+  store i32 5, ptr %a0");
    check_diff(base, "{\"kind\":\"delete\",\"at\":\"i6\"}", "+  br i1 false, label %b1");
    ir_base_free(base);
}

/* Addresses that share a variable index are adjacent where the index's add cannot wrap. */
static void adjacent_accesses_are_found_behind_indices(void **state) {
    (void)state;
    static const char text[] =
        "define ptx_kernel void @k(ptr %%x, ptr %%y, i32 %%n) {\n"
        "  %%m = add%s i32 %%n, 1\n"
        "  %%i = sext i32 %%n to i64\n"
        "  %%j = sext i32 %%m to i64\n"
        "  %%p = getelementptr [8 x [4 x float]], ptr %%x, i64 0, i64 %%i, i64 2\n"
        "  %%q = getelementptr [4 x float], ptr %%x, i64 %%j, i64 -1\n"
        "  %%a = load float, ptr %%p\n"
        "  %%b = load float, ptr %%q\n"
        "  %%s = fadd float %%a, %%b\n"
        "  store float %%s, ptr %%y\n  ret void\n}\n";
    static const char *const flags[] = {" nsw", ""};
    for (int i = 0; i < 2; i++) {
        char printed[1024];
        snprintf(printed, sizeof printed, text, flags[i]);
        ir_base *base = load_text(printed, 90);
        size_t sites[IR_EDIT_COUNT];
        ir_base_sites(base, sites);
        assert_int_equal(sites[IR_EDIT_WIDEN], i == 0);
        if (i == 0)
            check_diff(base, "{\"kind\":\"widen\",\"at\":\"i5\",\"option\":2}",
                       "+  %e0.0 = load <2 x float>, ptr %i3, align 8");
        ir_base_free(base);
    }
}

/* ---- what LLVM would not survive --------------------------------------------------------------
 */

static void fatal_ir_is_refused_at_verify(void **state) {
    (void)state;
    static const struct {
        const char *declaration, *body, *message;
    } rows[] = {
        {"", "fence acq_rel", "fence"},
        {"", "%a = load atomic i32, ptr %p acquire, align 4", "atomic load"},
        {"", "store atomic i32 1, ptr %p release, align 4", "atomic store"},
        {"declare float @llvm.sin.f32(float)", "%a = call afn float @llvm.sin.f32(float %x)",
         "sin"},
        {"declare float @llvm.pow.f32(float, float)",
         "%a = call float @llvm.pow.f32(float %x, float %x)", "llvm.pow"},
        {"declare float @llvm.exp2.f32(float)", "%a = call fast float @llvm.exp2.f32(float %x)",
         "llvm.exp2"},
        {"declare double @llvm.log2.f64(double)", "%a = call double @llvm.log2.f64(double 3.0)",
         "llvm.log2"},
        {"declare float @llvm.tanh.f32(float)", "%a = call float @llvm.tanh.f32(float %x)",
         "llvm.tanh"},
        {"declare void @llvm.nvvm.bar.sync(i32)", "call void @llvm.nvvm.bar.sync(i32 %n)",
         "bar.sync"},
        {"", "indirectbr ptr %p, [label %out]\nout:", "indirectbr"},
    };
    ir_genome *none = ir_genome_new("textbook");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ev_str text = EV_STR_EMPTY;
        ev_str_printf(&text,
                      "%s\ndefine ptx_kernel void @k(ptr %%p, float %%x, i32 %%n) {\n%s\n"
                      "  ret void\n}\n",
                      rows[i].declaration, rows[i].body);
        ir_base *base = load_text(ev_str_text(&text), 90);
        ir_build *made = NULL;
        ir_stage stage;
        ev_error err;
        assert_int_equal(build_all(base, none, &made, &stage, &err), EV_BAD);
        assert_int_equal(stage, IR_STAGE_VERIFY);
        if (!strstr(err.text, rows[i].message))
            fail_msg("%s says: %s", rows[i].body, err.text);
        ir_base_free(base);
        ev_str_free(&text);
    }
    ir_genome_free(none);
}

static void leave_with_a_number(const char *reason) {
    _exit(strstr(reason, "select") ? 42 : 43);
}

/* An instruction that this target does not have: LLVM ends the process, and its words come first.
 */
static void the_fatal_handler_gets_the_last_words(void **state) {
    (void)state;
    static const char text[] = "declare i32 @llvm.nvvm.redux.sync.add(i32, i32)\n"
                               "define ptx_kernel void @k(ptr %p, i32 %n) {\n"
                               "  %a = call i32 @llvm.nvvm.redux.sync.add(i32 %n, i32 -1)\n"
                               "  store i32 %a, ptr %p\n  ret void\n}\n";
    pid_t child = fork();
    if (child == 0) {
        ir_set_fatal_handler(leave_with_a_number);
        ir_base *base = load_text(text, 70);
        ir_genome *none = ir_genome_new("textbook");
        ir_build_free(build(base, none));
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_optimised_base_is_edited_after_the_passes),
        cmocka_unit_test(bad_sources_are_refused),
        cmocka_unit_test(macros_reach_the_source),
        cmocka_unit_test(host_code_is_left_out),
        cmocka_unit_test(lines_are_those_of_the_source),
        cmocka_unit_test(equal_code_has_equal_hashes),
        cmocka_unit_test(ptx_is_for_the_target_and_has_no_lines),
        cmocka_unit_test(replay_is_the_same_in_every_process),
        cmocka_unit_test(hashes_tell_code_from_code),
        cmocka_unit_test(calls_are_numbered_by_module),
        cmocka_unit_test(the_level_of_code_generation_tells_equal_ir_apart),
        cmocka_unit_test(sums_stay_above_the_guards_of_their_stores),
        cmocka_unit_test(a_wide_store_stays_wide_beside_narrow_ones),
        cmocka_unit_test(edits_that_do_not_fit_are_named),
        cmocka_unit_test(missing_repairs_fall_back),
        cmocka_unit_test(adjacent_accesses_are_found_behind_indices),
        cmocka_unit_test(fatal_ir_is_refused_at_verify),
        cmocka_unit_test(the_fatal_handler_gets_the_last_words),
    };
    return cmocka_run_group_tests(tests, ir_rig_begin, ir_rig_end);
}
