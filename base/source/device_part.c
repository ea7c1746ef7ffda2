/* The device part of a CUDA C source: host functions, the #defines that the compiler's command line
 * replaces, and the #includes of host libraries become blanks. */
#include "base/source/device_part.h"

#include <stdlib.h>
#include <string.h>

/* Headers of libraries that run on the host. A name that ends in "/" stands for a folder. */
static const char *const HOST_HEADERS[] = {
    "cublas.h",
    "cublas_v2.h",
    "cublasLt.h",
    "cufft.h",
    "cufftXt.h",
    "curand.h",
    "cusparse.h",
    "cusolverDn.h",
    "cusolverSp.h",
    "cudnn.h",
    "nccl.h",
    "nvToolsExt.h",
    "nvtx3/",
    "cuda_profiler_api.h",
    "cudaProfiler.h",
    "nvml.h",
    "helper_cuda.h",
    "helper_functions.h",
    "helper_timer.h",
    "helper_string.h",
    "helper_image.h",
    "exception.h",
    "omp.h",
    "mpi.h",
    "thrust/",
    "opencv2/",
    "boost/",
    "sys/",
    "unistd.h",
    "getopt.h",
    "cuda_gl_interop.h",
    "GL/",
};

/* Of these folders, what device code uses too; a CUDA toolkit has them. */
static const char *const TOOLKIT_HEADERS[] = {
    "thrust/complex.h", "thrust/tuple.h",   "thrust/pair.h",
    "thrust/random.h",  "thrust/random/",   "thrust/functional.h",
    "thrust/swap.h",    "thrust/extrema.h", "thrust/execution_policy.h",
};

static bool is_listed(const char *file, const char *const *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(list[i]);
        bool is_folder = list[i][length - 1] == '/';
        if (is_folder ? strncmp(file, list[i], length) == 0 : strcmp(file, list[i]) == 0)
            return true;
    }
    return false;
}

bool cuda_is_host_header(const char *file, bool has_toolkit) {
    if (has_toolkit &&
        is_listed(file, TOOLKIT_HEADERS, sizeof TOOLKIT_HEADERS / sizeof TOOLKIT_HEADERS[0]))
        return false;
    return is_listed(file, HOST_HEADERS, sizeof HOST_HEADERS / sizeof HOST_HEADERS[0]);
}

static void blank(char *text, size_t begin, size_t end) {
    for (size_t i = begin; i < end; i++) {
        if (text[i] != '\n')
            text[i] = ' ';
    }
}

/* Blanks tokens [first, end) and what is between them, but no directives: macros and conditions are
 * of the file, not of the function in which they stand. */
static void blank_tokens(const cuda_text *t, size_t first, size_t end, char *text) {
    for (size_t i = first; i < end; i++) {
        if (t->tokens[i].kind == CUDA_TOKEN_DIRECTIVE)
            continue;
        bool goes_on = i + 1 < end && t->tokens[i + 1].kind != CUDA_TOKEN_DIRECTIVE;
        blank(text, t->tokens[i].begin, goes_on ? t->tokens[i + 1].begin : t->tokens[i].end);
    }
}

static bool is_in_capitals(const char *word) {
    size_t length = strlen(word);
    return length > 2 && strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == length;
}

/* A head without a type is a macro's, and so may be a word in capitals. What such a macro of
 * another file stands for is not known, so the function stays. */
static bool may_be_of_macro(const cuda_text *t, const cuda_function *f) {
    size_t name = f->params.first >= 2 ? f->params.first - 2 : 0;
    bool other_files = false;
    if (name == f->whole.first && !f->in_class)
        return strcmp(f->name, "main") != 0;
    for (size_t i = 0; i < t->include_count; i++)
        other_files = other_files || t->includes[i].is_quoted;
    for (size_t i = f->whole.first; i < name && other_files; i++) {
        const char *word = t->tokens[i].kind == CUDA_TOKEN_NAME ? cuda_token_text(t, i) : NULL;
        if (word != NULL && is_in_capitals(word) && cuda_text_macro(t, word) == NULL)
            return true;
    }
    return false;
}

static bool cut_function(const cuda_text *t, const cuda_function *f, char *text) {
    bool is_host = !f->is_kernel && !f->is_device && f->body.end > f->body.first;
    if (!is_host || may_be_of_macro(t, f))
        return false;
    if (f->in_class)
        blank_tokens(t, f->body.first + 1, f->body.end - 1, text);
    else
        blank_tokens(t, f->whole.first, f->whole.end, text);
    return true;
}

/* Whether the #define stands behind an #ifndef of its name, which is enough. */
static bool is_guarded(const cuda_text *t, const cuda_macro *m) {
    if (m->token == 0 || t->tokens[m->token - 1].kind != CUDA_TOKEN_DIRECTIVE)
        return false;
    const char *before = cuda_token_text(t, m->token - 1);
    const char *at = before != NULL ? strstr(before, "ifndef") : NULL;
    return at != NULL && strstr(at, m->name) != NULL;
}

static bool cut_macro(const cuda_text *t, const cuda_macro *m, const char *const *macros,
                      size_t macro_count, char *text) {
    for (size_t i = 0; i < macro_count && !m->has_params; i++) {
        if (strcmp(macros[i], m->name) == 0 && !is_guarded(t, m)) {
            blank(text, t->tokens[m->token].begin, t->tokens[m->token].end);
            return true;
        }
    }
    return false;
}

ev_status cuda_device_part(const cuda_text *t, const char *const *macros, size_t macro_count,
                           bool has_toolkit, ev_str *out, bool *changed, ev_error *err) {
    char *text = malloc(t->bytes + 1);
    if (text == NULL)
        return ev_fail_memory(err, t->bytes + 1);
    memcpy(text, t->text, t->bytes + 1);
    *changed = false;
    for (size_t i = 0; i < t->function_count; i++)
        *changed |= cut_function(t, &t->functions[i], text);
    for (size_t i = 0; i < t->macro_count; i++)
        *changed |= cut_macro(t, &t->macros[i], macros, macro_count, text);
    for (size_t i = 0; i < t->include_count; i++) {
        const cuda_include *include = &t->includes[i];
        if (!cuda_is_host_header(include->file, has_toolkit))
            continue;
        blank(text, t->tokens[include->token].begin, t->tokens[include->token].end);
        *changed = true;
    }
    ev_str_append_n(out, text, t->bytes);
    free(text);
    return ev_str_status(out, err);
}
