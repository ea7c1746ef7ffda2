/* Tokens of PTX text. The text must end in a NUL. */
#ifndef FITNESS_PTX_PTX_LEX_H
#define FITNESS_PTX_PTX_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ptx_token_kind {
    PTX_K_END,
    PTX_K_IDENT,     /* name, %register, special register with its .x */
    PTX_K_DIRECTIVE, /* .name, the dot included */
    PTX_K_INT,
    PTX_K_F32, /* 0f: value holds the bits */
    PTX_K_F64, /* 0d or decimal: value holds the bits of the double */
    PTX_K_STRING,
    PTX_K_PUNCT,
    PTX_K_BAD,
} ptx_token_kind;

typedef struct ptx_token {
    ptx_token_kind kind;
    const char *at;
    uint32_t length;
    uint32_t line;
    uint64_t value;
} ptx_token;

typedef struct ptx_lexer {
    const char *pos, *end;
    const char *line_start; /* of the line that `pos` is in */
    uint32_t line;
    ptx_token token; /* the current one */
} ptx_lexer;

void ptx_lex_start(ptx_lexer *lex, const char *text, size_t bytes);
void ptx_lex_next(ptx_lexer *lex);
/* Extends the current token, an identifier, to a whole mnemonic: "ld.global.v4.f32", with any
 * "a::b".
 */
void ptx_lex_extend_mnemonic(ptx_lexer *lex);
static inline bool ptx_lex_is(const ptx_lexer *lex, char punct) {
    return lex->token.kind == PTX_K_PUNCT && *lex->token.at == punct;
}
bool ptx_lex_is_word(const ptx_lexer *lex, const char *word);

#endif
