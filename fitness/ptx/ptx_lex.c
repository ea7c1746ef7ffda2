/* The lexer of PTX: comments, names, numbers in all of PTX's forms, strings. */
#include "fitness/ptx/ptx_lex.h"

#include <stdlib.h>
#include <string.h>

enum { DIGIT = 1, NAME_START = 2, BLANK = 4 };

static const uint8_t classes[256] = {
    ['0' ... '9'] = DIGIT,
    ['a' ... 'z'] = NAME_START,
    ['A' ... 'Z'] = NAME_START,
    ['_'] = NAME_START,
    ['$'] = NAME_START,
    ['%'] = NAME_START,
    [' '] = BLANK,
    ['\t'] = BLANK,
    ['\r'] = BLANK,
    ['\f'] = BLANK,
    ['\v'] = BLANK,
};

static bool is_a(char c, unsigned any) {
    return (classes[(unsigned char)c] & any) != 0;
}

static bool is_digit(char c) {
    return is_a(c, DIGIT);
}

static bool is_name_start(char c) {
    return is_a(c, NAME_START);
}

static bool is_name(char c) {
    return is_a(c, NAME_START | DIGIT);
}

/* Characters of a directive's name that stand here: one of a word, or the two of "::". */
static size_t directive_step(const char *at) {
    if (is_name(*at))
        return 1;
    return at[0] == ':' && at[1] == ':' ? 2 : 0;
}

static void skip_block_comment(ptx_lexer *lex) {
    const char *p = lex->pos + 2;
    while (p < lex->end && !(p[0] == '*' && p + 1 < lex->end && p[1] == '/')) {
        if (*p++ == '\n') {
            lex->line++;
            lex->line_start = p;
        }
    }
    lex->pos = p < lex->end ? p + 2 : lex->end;
}

/* Behind the text stands a NUL, which is no blank. */
static void skip_space(ptx_lexer *lex) {
    for (;;) {
        const char *p = lex->pos;
        while (is_a(*p, BLANK))
            p++;
        lex->pos = p;
        if (*p == '\n') {
            lex->line++;
            lex->line_start = ++lex->pos;
        } else if (*p == '/' && p[1] == '/') {
            while (lex->pos < lex->end && *lex->pos != '\n')
                lex->pos++;
        } else if (*p == '/' && p[1] == '*') {
            skip_block_comment(lex);
        } else {
            return;
        }
    }
}

static unsigned digit_value(char c) {
    if (is_digit(c))
        return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f')
        return (unsigned)(c - 'a') + 10;
    if (c >= 'A' && c <= 'F')
        return (unsigned)(c - 'A') + 10;
    return 99;
}

/* Digits in `base` from p; false when there is none or the value needs more than 64 bits. */
static bool read_digits(const char **p, unsigned base, uint64_t *out) {
    const char *start = *p;
    uint64_t value = 0;
    bool fits = true;
    for (; digit_value(**p) < base; (*p)++) {
        unsigned digit = digit_value(**p);
        if (value > (UINT64_MAX - digit) / base)
            fits = false;
        value = value * base + digit;
    }
    *out = value;
    return fits && *p > start;
}

static void read_hex_float(ptx_lexer *lex, ptx_token *t, unsigned digits) {
    const char *p = lex->pos + 2;
    const char *start = p;
    bool ok = read_digits(&p, 16, &t->value) && p - start == digits;
    if (!ok)
        t->kind = PTX_K_BAD;
    else if (digits == 8)
        t->kind = PTX_K_F32;
    else
        t->kind = PTX_K_F64;
    lex->pos = p;
}

/* A decimal number with point or exponent; strtod stops at the NUL at the latest. */
static void read_decimal_float(ptx_lexer *lex, ptx_token *t) {
    char *end = NULL;
    double value = strtod(lex->pos, &end);
    memcpy(&t->value, &value, sizeof value);
    t->kind = PTX_K_F64;
    lex->pos = end;
}

static bool looks_float(const char *p) {
    while (is_digit(*p))
        p++;
    return (*p == '.' && is_digit(p[1])) || (*p == '.' && !is_name_start(p[1])) ||
           ((*p == 'e' || *p == 'E') && (is_digit(p[1]) || p[1] == '-' || p[1] == '+'));
}

static void read_number(ptx_lexer *lex, ptx_token *t) {
    const char *p = lex->pos;
    if (p[0] == '0' && (p[1] == 'f' || p[1] == 'F')) {
        read_hex_float(lex, t, 8);
        return;
    }
    if (p[0] == '0' && (p[1] == 'd' || p[1] == 'D')) {
        read_hex_float(lex, t, 16);
        return;
    }
    if (looks_float(p)) {
        read_decimal_float(lex, t);
        return;
    }
    bool ok;
    if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
        p += 2;
        ok = read_digits(&p, 16, &t->value);
    } else if (p[0] == '0' && (p[1] == 'b' || p[1] == 'B')) {
        p += 2;
        ok = read_digits(&p, 2, &t->value);
    } else {
        ok = read_digits(&p, p[0] == '0' ? 8 : 10, &t->value);
    }
    if (*p == 'U')
        p++;
    t->kind = ok && !is_name(*p) ? PTX_K_INT : PTX_K_BAD;
    while (is_name(*p))
        p++;
    lex->pos = p;
}

static void read_name(ptx_lexer *lex) {
    const char *p = lex->pos;
    bool special = *p == '%';
    while (is_name(*p))
        p++;
    if (special && p[0] == '.' && p[1] >= 'w' && p[1] <= 'z' && !is_name(p[2]))
        p += 2;
    lex->pos = p;
}

static void read_string(ptx_lexer *lex, ptx_token *t) {
    const char *p = lex->pos + 1;
    while (p < lex->end && *p != '"' && *p != '\n')
        p += *p == '\\' && p + 1 < lex->end ? 2 : 1;
    bool closed = p < lex->end && *p == '"';
    t->kind = closed ? PTX_K_STRING : PTX_K_BAD;
    if (closed)
        lex->pos = p + 1;
    else if (p > lex->end)
        lex->pos = lex->end;
    else
        lex->pos = p;
}

void ptx_lex_next(ptx_lexer *lex) {
    skip_space(lex);
    ptx_token *t = &lex->token;
    *t = (ptx_token){.kind = PTX_K_END, .at = lex->pos, .line = lex->line};
    if (lex->pos >= lex->end)
        return;
    char c = *lex->pos;
    if (is_name_start(c)) {
        t->kind = PTX_K_IDENT;
        read_name(lex);
    } else if (is_digit(c)) {
        read_number(lex, t);
    } else if (c == '.' && is_name_start(lex->pos[1])) {
        t->kind = PTX_K_DIRECTIVE;
        lex->pos++;
        for (size_t step; (step = directive_step(lex->pos)) > 0;)
            lex->pos += step;
    } else if (c == '"') {
        read_string(lex, t);
    } else {
        t->kind = PTX_K_PUNCT;
        lex->pos++;
    }
    t->length = (uint32_t)(lex->pos - t->at);
}

void ptx_lex_start(ptx_lexer *lex, const char *text, size_t bytes) {
    *lex = (ptx_lexer){.pos = text, .end = text + bytes, .line_start = text, .line = 1};
    ptx_lex_next(lex);
}

void ptx_lex_extend_mnemonic(ptx_lexer *lex) {
    const char *p = lex->pos;
    while (is_name(*p) || (*p == '.' && is_name(p[1])) ||
           (p[0] == ':' && p[1] == ':' && is_name(p[2])))
        p += *p == ':' ? 2 : 1;
    lex->pos = p;
    lex->token.length = (uint32_t)(p - lex->token.at);
}

bool ptx_lex_is_word(const ptx_lexer *lex, const char *word) {
    size_t length = strlen(word);
    return lex->token.length == length && memcmp(lex->token.at, word, length) == 0;
}
