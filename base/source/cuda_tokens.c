/* Tokens of CUDA C: the lexer, and the matching of brackets. */
#include "base/source/cuda_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct lexer {
    const char *text;
    size_t bytes, at;
    uint32_t line;
    bool line_begins; /* nothing but blanks since the line's begin */
    bool in_launch;   /* behind <<<, so >>> is one token */
} lexer;

static char peek(const lexer *l, size_t ahead) {
    return l->at + ahead < l->bytes ? l->text[l->at + ahead] : '\0';
}

static void step(lexer *l) {
    if (l->text[l->at] == '\n') {
        l->line++;
        l->line_begins = true;
    }
    l->at++;
}

/* Behind the end of a comment that begins here. */
static void skip_comment(lexer *l) {
    bool is_line = peek(l, 1) == '/';
    l->at += 2;
    while (l->at < l->bytes) {
        if (is_line && peek(l, 0) == '\n')
            return;
        if (!is_line && peek(l, 0) == '*' && peek(l, 1) == '/') {
            l->at += 2;
            return;
        }
        step(l);
    }
}

static bool at_comment(const lexer *l) {
    return peek(l, 0) == '/' && (peek(l, 1) == '/' || peek(l, 1) == '*');
}

static void skip_blanks(lexer *l) {
    while (l->at < l->bytes) {
        if (at_comment(l))
            skip_comment(l);
        else if (isspace((unsigned char)peek(l, 0)) || (peek(l, 0) == '\\' && peek(l, 1) == '\n'))
            step(l);
        else
            return;
    }
}

static void read_directive(lexer *l) {
    while (l->at < l->bytes && peek(l, 0) != '\n') {
        if (peek(l, 0) == '/' && peek(l, 1) == '*') {
            skip_comment(l);
        } else if (peek(l, 0) == '/' && peek(l, 1) == '/') {
            while (l->at < l->bytes && peek(l, 0) != '\n')
                l->at++;
        } else {
            if (peek(l, 0) == '\\' && peek(l, 1) == '\n')
                step(l);
            step(l);
        }
    }
}

static void read_quoted(lexer *l, char quote) {
    step(l);
    while (l->at < l->bytes && peek(l, 0) != quote && peek(l, 0) != '\n') {
        if (peek(l, 0) == '\\' && l->at + 1 < l->bytes)
            step(l);
        step(l);
    }
    if (peek(l, 0) == quote)
        step(l);
}

/* R"tag( ... )tag" */
static void read_raw(lexer *l) {
    size_t tag = l->at + 2, open = tag;
    while (open < l->bytes && l->text[open] != '(' && open - tag < 16)
        open++;
    while (l->at < l->bytes) {
        size_t length = open - tag;
        if (peek(l, 0) == ')' && l->at + length + 1 < l->bytes && l->at > open &&
            memcmp(l->text + l->at + 1, l->text + tag, length) == 0 &&
            l->text[l->at + 1 + length] == '"') {
            l->at += length + 2;
            return;
        }
        step(l);
    }
}

static bool is_name_char(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

static void read_mark(lexer *l) {
    static const char *const longer[] = {
        "<<<", "::", "->", "&&", "||", "==", "!=", "<=", ">=", "<<", "++", "--"};
    if (l->in_launch && strncmp(l->text + l->at, ">>>", 3) == 0) {
        l->in_launch = false;
        l->at += 3;
        return;
    }
    for (size_t i = 0; i < sizeof longer / sizeof longer[0]; i++) {
        if (strncmp(l->text + l->at, longer[i], strlen(longer[i])) == 0) {
            l->in_launch = l->in_launch || i == 0;
            l->at += strlen(longer[i]);
            return;
        }
    }
    l->at++;
}

static cuda_token_kind read_token(lexer *l) {
    char c = peek(l, 0);
    bool begins = l->line_begins;
    l->line_begins = false;
    if (c == '#' && begins) {
        read_directive(l);
        return CUDA_TOKEN_DIRECTIVE;
    }
    if (c == 'R' && peek(l, 1) == '"') {
        read_raw(l);
        return CUDA_TOKEN_TEXT;
    }
    if (c == '"' || c == '\'') {
        read_quoted(l, c);
        return CUDA_TOKEN_TEXT;
    }
    if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)peek(l, 1)))) {
        while (is_name_char(peek(l, 0)) || peek(l, 0) == '.' ||
               (peek(l, 0) == '\'' && is_name_char(peek(l, 1))) ||
               ((peek(l, 0) == '+' || peek(l, 0) == '-') &&
                strchr("eEpP", l->text[l->at - 1]) != NULL))
            l->at++;
        return CUDA_TOKEN_NUMBER;
    }
    if (is_name_char(c)) {
        while (is_name_char(peek(l, 0)))
            l->at++;
        return CUDA_TOKEN_NAME;
    }
    read_mark(l);
    return CUDA_TOKEN_MARK;
}

/* Reads all tokens, into `tokens` unless it is NULL. Returns how many there are. */
static size_t read_all(const cuda_text *t, cuda_token *tokens) {
    lexer l = {.text = t->text, .bytes = t->bytes, .line = 1, .line_begins = true};
    size_t count = 0;
    for (skip_blanks(&l); l.at < l.bytes; skip_blanks(&l)) {
        cuda_token token = {.begin = l.at, .line = l.line};
        token.kind = read_token(&l);
        token.end = l.at;
        if (tokens != NULL)
            tokens[count] = token;
        count++;
    }
    if (tokens != NULL)
        tokens[count] = (cuda_token){.kind = CUDA_TOKEN_END, .begin = l.at, .end = l.at};
    return count;
}

/* ')' for '(' and so on; 0: no opening bracket. */
static char closing(const cuda_text *t, const cuda_token *token) {
    if (token->kind != CUDA_TOKEN_MARK || token->end - token->begin != 1)
        return '\0';
    switch (t->text[token->begin]) {
    case '(':
        return ')';
    case '[':
        return ']';
    case '{':
        return '}';
    default:
        return '\0';
    }
}

static bool is_closing(const cuda_text *t, const cuda_token *token) {
    return token->kind == CUDA_TOKEN_MARK && token->end - token->begin == 1 &&
           strchr(")]}", t->text[token->begin]) != NULL;
}

/* Sets `match`. false: a bracket has no match. */
static bool match_brackets(const cuda_text *t, cuda_token *tokens, size_t *open) {
    size_t depth = 0, launch = SIZE_MAX;
    for (size_t i = 0; i < t->token_count; i++) {
        if (closing(t, &tokens[i]) != '\0') {
            open[depth++] = i;
        } else if (is_closing(t, &tokens[i])) {
            if (depth == 0 || closing(t, &tokens[open[depth - 1]]) != t->text[tokens[i].begin])
                return false;
            tokens[open[--depth]].match = i;
        } else if (cuda_token_is(t, i, "<<<")) {
            launch = i;
        } else if (cuda_token_is(t, i, ">>>") && launch != SIZE_MAX) {
            tokens[launch].match = i;
            launch = SIZE_MAX;
        }
    }
    return depth == 0;
}

ev_status cuda_tokens_read(cuda_text *t, ev_error *err) {
    t->token_count = read_all(t, NULL);
    cuda_token *tokens = EV_NEW_ARRAY(t->arena, cuda_token, t->token_count + 1);
    size_t *open = EV_NEW_ARRAY(t->arena, size_t, t->token_count + 1);
    if (tokens == NULL || open == NULL)
        return ev_fail_memory(err, t->token_count * sizeof *tokens);
    read_all(t, tokens);
    t->tokens = tokens;
    t->is_balanced = match_brackets(t, tokens, open);
    return EV_OK;
}
