/* CUDA C source text: its tokens, functions, macros and launches, found without a compiler.
 *
 * The reader knows the shape of C++ (brackets, declarations, bodies), not its meaning: no macro is
 * expanded and no type is known. clang remains the judge of the device code. A cuda_text owns a
 * copy of the text and all that it points to; token numbers count from 0. */
#ifndef BASE_SOURCE_CUDA_TEXT_H
#define BASE_SOURCE_CUDA_TEXT_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum cuda_token_kind {
    CUDA_TOKEN_END,
    CUDA_TOKEN_NAME,
    CUDA_TOKEN_NUMBER,
    CUDA_TOKEN_TEXT, /* a string or a character */
    CUDA_TOKEN_MARK, /* punctuation: one character, or one of << <<< >>> :: -> && || == != <= >= */
    CUDA_TOKEN_DIRECTIVE, /* of the preprocessor, a whole logical line */
} cuda_token_kind;

typedef struct cuda_token {
    cuda_token_kind kind;
    size_t begin, end; /* in the text, in bytes */
    uint32_t line;     /* from 1 */
    size_t match;      /* of ( [ { and <<<: the number of its closing token; else 0 */
} cuda_token;

/* Tokens [first, end). */
typedef struct cuda_range {
    size_t first, end;
} cuda_range;

/* A function with its name and parameters. */
typedef struct cuda_function {
    const char *name;
    const char *space; /* "a::b::" of its namespaces; "" for none */
    bool is_kernel;    /* __global__ */
    bool is_device;    /* __device__, or constexpr, or of a macro that says so */
    bool in_class;
    bool is_variable;  /* may as well be a variable with arguments: dim3 grid(8, 8); */
    cuda_range whole;  /* with its template header and body */
    cuda_range types;  /* template parameters without < >; empty: no template */
    cuda_range params; /* without ( ) */
    cuda_range body;   /* with { }; empty: a prototype */
    cuda_range bounds; /* of __launch_bounds__, without ( ); empty: none */
} cuda_function;

/* #define NAME VALUE */
typedef struct cuda_macro {
    const char *name;
    const char *value; /* trimmed; "" for none */
    bool has_params;
    size_t token;
} cuda_macro;

/* #include <FILE> or "FILE" */
typedef struct cuda_include {
    const char *file;
    bool is_quoted;
    size_t token;
} cuda_include;

/* kernel<types><<<grid, block, shared, stream>>>(arguments) */
typedef struct cuda_launch {
    const char *kernel;
    cuda_range types; /* without < >; empty: none */
    cuda_range config[4];
    size_t config_count;
    cuda_range arguments; /* without ( ) */
    size_t token;
    const struct cuda_function *within; /* NULL: none */
} cuda_launch;

typedef struct cuda_text {
    const char *text;
    size_t bytes;
    const cuda_token *tokens; /* the last is CUDA_TOKEN_END */
    size_t token_count;       /* without the last */
    bool is_balanced; /* each bracket has its match; if not, functions and launches are left out */
    const cuda_function *functions;
    size_t function_count;
    const cuda_macro *macros;
    size_t macro_count;
    const cuda_include *includes;
    size_t include_count;
    const cuda_launch *launches;
    size_t launch_count;
    ev_arena *arena;
} cuda_text;

/* EV_INFRA: out of memory. Any text can be read. */
ev_status cuda_text_read(const char *text, size_t bytes, cuda_text **out, ev_error *err) EV_CHECKED;
void cuda_text_free(cuda_text *t); /* NULL is fine */

/* Whether token `at` has this spelling. */
bool cuda_token_is(const cuda_text *t, size_t at, const char *spelling);
/* The text of a range with single blanks between tokens that stand apart; from the arena; NULL:
 * out of memory, and the arena is failed. */
const char *cuda_range_text(const cuda_text *t, cuda_range range);
const char *cuda_token_text(const cuda_text *t, size_t at);
/* Splits a range at its commas that stand outside all brackets, < > included. Returns how many
 * parts there are, of which the first `most` are in `parts`; 0 for an empty range. */
size_t cuda_range_split(const cuda_text *t, cuda_range range, cuda_range *parts, size_t most);
/* The macro of that name without parameters that comes first; NULL: none. */
const cuda_macro *cuda_text_macro(const cuda_text *t, const char *name);

/* ---- for the files of this unit ---- */

/* Fills in tokens, token_count and is_balanced. */
ev_status cuda_tokens_read(cuda_text *t, ev_error *err) EV_CHECKED;

#endif
