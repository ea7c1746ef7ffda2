/* Compiling: from a .cu to LLVM bitcode, by clang-19.
 *
 * nvcc includes cuda_runtime.h before a source, and compiles its host functions as well. Here
 * evoke_cuda.h is included first, unless the source does so, and host functions are cut out
 * (base/source/device_part.h). A source of which nothing is cut is compiled as the file that it is,
 * any other from clang's standard input, with a line marker of its name.
 *
 * With a CUDA toolkit (EV_CUDA_PATH) clang includes the toolkit's own headers in their place,
 * as it does by itself, and links the functions of its libdevice. A source that brings evoke_cuda.h
 * is compiled without the toolkit. */
#include "base/child.h"
#include "base/file.h"
#include "base/proc.h"
#include "base/source/device_part.h"
#include "ir/internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CLANG_SECONDS 120

/* What clang gets to compile. */
typedef struct unit {
    char *text; /* the source */
    ev_str cut; /* its device part, behind a line marker */
    bool is_cut;
    bool wants_header;   /* evoke_cuda.h is to be included first */
    const char *toolkit; /* folder of a CUDA toolkit; NULL: none */
    bool is_lean;        /* it uses no mathematics in double precision */
} unit;

static bool defines(const cuda_text *t, const char *name) {
    for (size_t i = 0; i < t->macro_count; i++) {
        if (strcmp(t->macros[i].name, name) == 0)
            return true;
    }
    return false;
}

static bool includes(const cuda_text *t, const char *file) {
    for (size_t i = 0; i < t->include_count; i++) {
        if (strcmp(t->includes[i].file, file) == 0)
            return true;
    }
    return false;
}

/* A source that defines CUDA's words itself brings all that it needs. */
static bool wants_header(const cuda_text *t) {
    return !includes(t, "evoke_cuda.h") && !defines(t, "__global__") && !defines(t, "__device__");
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The word begins and ends at `at`. */
static bool has_word(const char *text, const char *word) {
    size_t length = strlen(word);
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        if ((at == text || !is_letter(at[-1])) && !is_letter(at[length]))
            return true;
    }
    return false;
}

/* Headers of Evoke's own use none of the names, but for curand_kernel.h; others may. */
static bool includes_others(const ir_source *source, const cuda_text *t) {
    for (size_t i = 0; i < t->include_count; i++) {
        const char *file = t->includes[i].file;
        ev_str own = EV_STR_EMPTY;
        ev_str_printf(&own, "%s/cuda/%s", source->include, file);
        bool known = strcmp(file, "evoke_cuda.h") == 0 || ev_path_exists(ev_str_text(&own));
        ev_str_free(&own);
        if (!known)
            return true;
    }
    return false;
}

/* No name of ir/math_names.def is in the source. A name that a macro pastes together is then
 * refused by clang, as any name that nothing declares. */
static bool is_lean(const ir_source *source, const char *text, const cuda_text *t) {
    static const char *const names[] = {
#define NAME(name) #name,
#include "ir/math_names.def"
#undef NAME
    };
    if (source->include == NULL || includes_others(source, t) || includes(t, "curand_kernel.h"))
        return false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (has_word(text, names[i]))
            return false;
    }
    return true;
}

static ev_status cut_host(const ir_source *source, const cuda_text *t, unit *u, ev_error *err) {
    const char **names = calloc(source->macro_count + 1, sizeof(char *));
    if (names == NULL)
        return ev_fail_memory(err, source->macro_count * sizeof(char *));
    for (size_t i = 0; i < source->macro_count; i++)
        names[i] = source->macros[i].name;
    ev_str_printf(&u->cut, "# 1 \"%s\"\n", source->path);
    ev_status status = cuda_device_part(t, names, source->macro_count, u->toolkit != NULL, &u->cut,
                                        &u->is_cut, err);
    free(names);
    return status;
}

/* Whether the source itself has "template __global__ void scale<float, 4>(...)": a second one would
 * be an error. Blanks do not count. */
static bool makes_instance(const cuda_text *t, const char *instance) {
    for (size_t i = 0; i + 1 < t->token_count; i++) {
        if (!cuda_token_is(t, i, "template") || cuda_token_is(t, i + 1, "<"))
            continue;
        size_t end = i;
        while (end < t->token_count && !cuda_token_is(t, end, "(") && !cuda_token_is(t, end, ";"))
            end++;
        for (size_t k = i + 1; k < end; k++) {
            size_t from = t->tokens[k].begin, to = t->tokens[end - 1].end;
            if (ir_same_instance(t->text + from, to - from, instance, strlen(instance)))
                return true;
        }
    }
    return false;
}

/* Appends the instance of a template that is the entry. */
static void add_instance(const ir_source *source, const cuda_text *t, unit *u) {
    if (source->instance == NULL || makes_instance(t, source->instance))
        return;
    ev_str_printf(&u->cut,
                  "\n# 1 \"the entry %s\"\n"
                  "template __global__ decltype(%s) %s;\n",
                  source->instance, source->instance, source->instance);
    u->is_cut = true;
}

static ev_status read_unit(const ir_source *source, unit *u, ev_error *err) {
    size_t bytes = 0;
    cuda_text *t = NULL;
    EV_TRY(ev_file_read(source->path, &u->text, &bytes, err));
    EV_TRY(cuda_text_read(u->text, bytes, &t, err));
    u->wants_header = source->include != NULL && wants_header(t);
    const char *toolkit = getenv(EV_CUDA_PATH);
    u->toolkit = u->wants_header && toolkit != NULL && *toolkit != '\0' ? toolkit : NULL;
    u->is_lean = is_lean(source, u->text, t);
    ev_status status = cut_host(source, t, u, err);
    add_instance(source, t, u);
    cuda_text_free(t);
    return status;
}

static void free_unit(unit *u) {
    free(u->text);
    ev_str_free(&u->cut);
}

enum { CLANG_FIXED = 32 };

/* Evoke's headers in place of CUDA's; how many arguments. */
static size_t own_headers(const ir_source *source, const unit *u, ev_arena *arena,
                          const char **argv) {
    size_t n = 0;
    argv[n++] = "-nocudainc";
    argv[n++] = "-nocudalib";
    if (source->include) {
        argv[n++] = "-I";
        argv[n++] = source->include;
        argv[n++] = "-I";
        argv[n++] = ev_arena_printf(arena, "%s/cuda", source->include);
    }
    if (u->is_lean)
        argv[n++] = "-DEVOKE_CUDA_LEAN";
    if (u->wants_header) {
        argv[n++] = "-include";
        argv[n++] = "evoke_cuda.h";
    }
    return n;
}

/* The toolkit's: cub, thrust and cuda::std are in a folder of their own since CUDA 13. */
static size_t toolkit_headers(const ir_source *source, const unit *u, ev_arena *arena,
                              const char **argv) {
    size_t n = 0;
    argv[n++] = ev_arena_printf(arena, "--cuda-path=%s", u->toolkit);
    argv[n++] = "-isystem";
    argv[n++] = ev_arena_printf(arena, "%s/toolkit", source->include);
    argv[n++] = "-isystem";
    argv[n++] = ev_arena_printf(arena, "%s/include/cccl", u->toolkit);
    return n;
}

/* Fills argv (CLANG_FIXED + macro_count entries) with texts in `arena`. */
static bool clang_command(const ir_source *source, const unit *u, ev_arena *arena,
                          const char **argv) {
    size_t n = 0;
    const char *const fixed[] = {"clang-19",
                                 "-x",
                                 "cuda",
                                 "--cuda-device-only",
                                 "-O3",
                                 "-Xclang",
                                 "-disable-llvm-passes",
                                 "-gline-tables-only",
                                 "-emit-llvm",
                                 "-c",
                                 "-fno-color-diagnostics",
                                 "-w",
                                 "-Wno-unknown-cuda-version",
                                 "-o",
                                 "-"};
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        argv[n++] = fixed[i];
    argv[n++] = ev_arena_printf(arena, "--cuda-gpu-arch=sm_%d", source->sm);
    argv[n++] = ev_arena_printf(arena, "--cuda-feature=+ptx%d", ir_ptx_version(source->sm));
    n += u->toolkit != NULL ? toolkit_headers(source, u, arena, argv + n)
                            : own_headers(source, u, arena, argv + n);
    if (u->is_cut) {
        char *folder = ev_path_dir(source->path);
        argv[n++] = "-iquote";
        argv[n++] = ev_arena_strdup(arena, folder != NULL ? folder : ".");
        free(folder);
    }
    for (size_t i = 0; i < source->macro_count; i++)
        argv[n++] = ev_arena_printf(arena, "-D%s=%" PRId64, source->macros[i].name,
                                    source->macros[i].value);
    argv[n++] = u->is_cut ? "-" : source->path;
    argv[n] = NULL;
    return !ev_arena_failed(arena);
}

/* What clang says of a name or header that CUDA may have and Evoke's headers have not. */
static bool may_be_of_toolkit(const char *words) {
    return strstr(words, "file not found") != NULL ||
           strstr(words, "undeclared identifier") != NULL ||
           strstr(words, "is not supported: Evoke") != NULL;
}

static ev_status fail_compile(const ir_source *source, const unit *u, const char *words,
                              ev_error *err) {
    ev_str text = EV_STR_EMPTY;
    ev_str_printf(&text, "%s does not compile; clang-19 says:\n%s", source->path, words);
    if (u->toolkit == NULL && may_be_of_toolkit(words))
        ev_str_append(&text, "Evoke's own headers stand in for CUDA's and lack some names; with a "
                             "CUDA toolkit, --cuda-path DIR takes the toolkit's\n");
    ev_status status = ev_str_status(&text, err);
    if (status == EV_OK)
        status = ev_fail_long(err, EV_BAD, ev_str_text(&text));
    ev_str_free(&text);
    return status;
}

static ev_status run_clang(const ir_source *source, const unit *u, const char **argv,
                           ev_str *bitcode, ev_error *err) {
    ev_proc_result result;
    EV_TRY(
        ev_proc_judge(argv, u->is_cut ? ev_str_text(&u->cut) : NULL, CLANG_SECONDS, &result, err));
    ev_status status;
    if (result.timed_out)
        status = ev_fail(err, EV_BAD, "%s: clang-19 did not end within %d seconds", source->path,
                         CLANG_SECONDS);
    else if (result.exit_code != 0)
        status = fail_compile(source, u, ev_str_text(&result.err), err);
    else
        status = ev_str_status(&result.out, err);
    if (status == EV_OK)
        ev_str_append_n(bitcode, result.out.data, result.out.length);
    ev_proc_result_free(&result);
    return status == EV_OK ? ev_str_status(bitcode, err) : status;
}

bool ir_is_compiled(const ir_source *source) {
    size_t length = strlen(source->path);
    return length >= 3 && strcmp(source->path + length - 3, ".cu") == 0;
}

static ev_status compile_unit(const ir_source *source, const unit *u, ev_str *bitcode,
                              ev_error *err) {
    ev_arena *arena = ev_arena_new();
    if (!arena)
        return ev_fail_memory(err, 1);
    const char **argv = EV_NEW_ARRAY(arena, const char *, CLANG_FIXED + source->macro_count);
    ev_status status = argv && clang_command(source, u, arena, argv)
                           ? run_clang(source, u, argv, bitcode, err)
                           : ev_fail_memory(err, 1);
    ev_arena_free(arena);
    return status;
}

ev_status ir_compile(const ir_source *source, ev_str *bitcode, ev_error *err) {
    assert(ir_is_compiled(source));
    /* clang reports a missing file as well, but in several lines. */
    if (!ev_path_exists(source->path))
        return ev_fail(err, EV_BAD, "%s: no such file", source->path);
    unit u = {.cut = EV_STR_EMPTY};
    ev_status status = read_unit(source, &u, err);
    if (status == EV_OK)
        status = compile_unit(source, &u, bitcode, err);
    free_unit(&u);
    return status;
}
