/* Declarations of CUDA C: functions, macros, includes and launches among the tokens.
 *
 * read_scope walks the declarations of a file, a namespace or a class. Within one declaration,
 * read_item looks at the tokens outside all brackets: the last group in parentheses behind a name
 * holds the parameters, and a brace behind it opens the body. */
#include "base/source/cuda_text.h"

#include "base/str.h"

#include <ctype.h>
#include <string.h>

bool cuda_token_is(const cuda_text *t, size_t at, const char *spelling) {
    if (at >= t->token_count)
        return false;
    const cuda_token *token = &t->tokens[at];
    size_t length = strlen(spelling);
    return token->end - token->begin == length &&
           memcmp(t->text + token->begin, spelling, length) == 0;
}

static bool is_one_of(const cuda_text *t, size_t at, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (cuda_token_is(t, at, words[i]))
            return true;
    }
    return false;
}

#define IS_ONE_OF(t, at, words) is_one_of(t, at, words, sizeof(words) / sizeof(words)[0])

const char *cuda_token_text(const cuda_text *t, size_t at) {
    const cuda_token *token = &t->tokens[at];
    return ev_arena_strndup(t->arena, t->text + token->begin, token->end - token->begin);
}

const char *cuda_range_text(const cuda_text *t, cuda_range range) {
    ev_str text = EV_STR_EMPTY;
    for (size_t i = range.first; i < range.end; i++) {
        const cuda_token *token = &t->tokens[i];
        if (token->kind == CUDA_TOKEN_DIRECTIVE)
            continue;
        bool apart = i > range.first && t->tokens[i - 1].end < token->begin;
        ev_str_append(&text, apart ? " " : "");
        ev_str_append_n(&text, t->text + token->begin, token->end - token->begin);
    }
    const char *kept = ev_arena_strdup(t->arena, ev_str_text(&text));
    ev_str_free(&text);
    return kept;
}

/* The token behind a group of < > that opens at `at`; `at` if it does not close before `end`. */
static size_t behind_angles(const cuda_text *t, size_t at, size_t end) {
    size_t depth = 0;
    for (size_t i = at; i < end; i++) {
        if (t->tokens[i].match != 0)
            i = t->tokens[i].match;
        else if (cuda_token_is(t, i, "<"))
            depth++;
        else if (cuda_token_is(t, i, ">") && --depth == 0)
            return i + 1;
        else if (cuda_token_is(t, i, ";"))
            break;
    }
    return at;
}

size_t cuda_range_split(const cuda_text *t, cuda_range range, cuda_range *parts, size_t most) {
    size_t count = 0, begin = range.first;
    if (range.end <= range.first)
        return 0;
    for (size_t i = range.first; i <= range.end; i++) {
        if (i == range.end || cuda_token_is(t, i, ",")) {
            if (count < most)
                parts[count] = (cuda_range){begin, i};
            count++;
            begin = i + 1;
        } else if (t->tokens[i].match != 0 && t->tokens[i].match < range.end) {
            i = t->tokens[i].match;
        } else if (cuda_token_is(t, i, "<") && i > range.first &&
                   t->tokens[i - 1].kind == CUDA_TOKEN_NAME) {
            size_t behind = behind_angles(t, i, range.end);
            i = behind > i ? behind - 1 : i;
        }
    }
    return count;
}

const cuda_macro *cuda_text_macro(const cuda_text *t, const char *name) {
    for (size_t i = 0; i < t->macro_count; i++) {
        if (!t->macros[i].has_params && strcmp(t->macros[i].name, name) == 0)
            return &t->macros[i];
    }
    return NULL;
}

/* ---- directives --------------------------------------------------------------------------------
 */

static const char *skip_spaces(const char *at) {
    while (*at == ' ' || *at == '\t')
        at++;
    return at;
}

/* Without comments behind it and blanks around it. */
static const char *trimmed(const cuda_text *t, const char *begin) {
    size_t length = strcspn(begin, "\n");
    const char *comment = strstr(begin, "//"), *other = strstr(begin, "/*");
    if (comment != NULL && (size_t)(comment - begin) < length)
        length = (size_t)(comment - begin);
    if (other != NULL && (size_t)(other - begin) < length)
        length = (size_t)(other - begin);
    while (length > 0 && isspace((unsigned char)begin[length - 1]))
        length--;
    return ev_arena_strndup(t->arena, begin, length);
}

static void read_define(cuda_text *t, cuda_macro *macros, size_t token, const char *at) {
    size_t length = 0;
    while (isalnum((unsigned char)at[length]) || at[length] == '_')
        length++;
    bool has_params = at[length] == '(';
    const char *value = at + length;
    if (has_params) {
        const char *close = strchr(value, ')');
        value = close != NULL ? close + 1 : value;
    }
    macros[t->macro_count++] = (cuda_macro){.name = ev_arena_strndup(t->arena, at, length),
                                            .value = trimmed(t, skip_spaces(value)),
                                            .has_params = has_params,
                                            .token = token};
}

static void read_include(cuda_text *t, cuda_include *includes, size_t token, const char *at) {
    if (*at != '<' && *at != '"')
        return;
    size_t length = strcspn(at + 1, *at == '<' ? ">\n" : "\"\n");
    includes[t->include_count++] =
        (cuda_include){.file = ev_arena_strndup(t->arena, at + 1, length),
                       .is_quoted = *at == '"',
                       .token = token};
}

static bool read_directives(cuda_text *t) {
    size_t count = 0;
    for (size_t i = 0; i < t->token_count; i++)
        count += t->tokens[i].kind == CUDA_TOKEN_DIRECTIVE;
    cuda_macro *macros = EV_NEW_ARRAY(t->arena, cuda_macro, count + 1);
    cuda_include *includes = EV_NEW_ARRAY(t->arena, cuda_include, count + 1);
    if (macros == NULL || includes == NULL)
        return false;
    t->macros = macros;
    t->includes = includes;
    for (size_t i = 0; i < t->token_count; i++) {
        if (t->tokens[i].kind != CUDA_TOKEN_DIRECTIVE)
            continue;
        const char *word = skip_spaces(t->text + t->tokens[i].begin + 1);
        if (strncmp(word, "define", 6) == 0)
            read_define(t, macros, i, skip_spaces(word + 6));
        else if (strncmp(word, "include", 7) == 0)
            read_include(t, includes, i, skip_spaces(word + 7));
    }
    return !ev_arena_failed(t->arena);
}

/* ---- functions ---------------------------------------------------------------------------------
 */

typedef struct reader {
    cuda_text *t;
    cuda_function *functions;
    size_t room;
} reader;

/* What was seen of a declaration up to a token. */
typedef struct item {
    cuda_function f;
    bool is_type, is_namespace, is_assigned,
        has_members; /* members: of a constructor, behind ':' */
    bool has_params;
    size_t named; /* the token behind "namespace" */
} item;

/* Whether the lines of a macro have the word, or the name of another macro that has it. */
static bool macro_says(const cuda_text *t, size_t macro, const char *word, unsigned depth) {
    const char *text = cuda_token_text(t, t->macros[macro].token);
    if (text == NULL || strstr(text, word) != NULL)
        return text != NULL;
    for (size_t i = 0; i < t->macro_count && depth > 0; i++) {
        if (i != macro && strstr(text, t->macros[i].name) != NULL &&
            macro_says(t, i, word, depth - 1))
            return true;
    }
    return false;
}

/* A macro may stand for __global__ or __device__, or for a function's whole head. */
static bool says(const cuda_text *t, size_t at, const char *word) {
    enum { DEEPEST = 3 };
    if (cuda_token_is(t, at, word))
        return true;
    if (t->tokens[at].kind != CUDA_TOKEN_NAME)
        return false;
    for (size_t i = 0; i < t->macro_count; i++) {
        if (cuda_token_is(t, at, t->macros[i].name) && macro_says(t, i, word, DEEPEST))
            return true;
    }
    return false;
}

static void read_word(const cuda_text *t, size_t at, item *it) {
    static const char *const types[] = {"struct", "class", "union", "enum"};
    it->f.is_kernel |= says(t, at, "__global__");
    it->f.is_device |= says(t, at, "__device__") || says(t, at, "constexpr");
    it->is_type |= IS_ONE_OF(t, at, types);
    if (cuda_token_is(t, at, "namespace")) {
        it->is_namespace = true;
        it->named = at + 1;
    }
}

/* __attribute__((global)) is what __global__ stands for in clang. */
static void read_attribute(const cuda_text *t, cuda_range group, item *it) {
    for (size_t i = group.first; i < group.end; i++) {
        it->f.is_kernel |= cuda_token_is(t, i, "global");
        it->f.is_device |= cuda_token_is(t, i, "device");
    }
}

/* A group in parentheses that opens at `at`. */
static void read_group(const cuda_text *t, size_t first, size_t at, item *it) {
    static const char *const others[] = {"alignas",  "__align__",     "__declspec",
                                         "decltype", "noexcept",      "throw",
                                         "sizeof",   "static_assert", "__cluster_dims__",
                                         "requires", "__maxnreg__",   "_Static_assert"};
    if (at == first || t->tokens[at - 1].kind != CUDA_TOKEN_NAME || it->is_assigned ||
        it->has_members)
        return;
    cuda_range group = {at + 1, t->tokens[at].match};
    if (cuda_token_is(t, at - 1, "__launch_bounds__")) {
        it->f.bounds = group;
    } else if (cuda_token_is(t, at - 1, "__attribute__")) {
        read_attribute(t, group, it);
    } else if (!IS_ONE_OF(t, at - 1, others)) {
        it->f.name = cuda_token_text(t, at - 1);
        it->f.params = group;
        it->has_params = true;
    }
}

static void add_function(reader *r, const item *it, size_t first, size_t end) {
    if (r->t->function_count == r->room)
        return;
    cuda_function *f = &r->functions[r->t->function_count++];
    *f = it->f;
    f->whole = (cuda_range){first, end};
}

static void read_scope(reader *r, cuda_range range, const char *space, bool in_class);

/* A brace at `at` outside all other brackets. Returns whether the declaration ends behind it. */
static bool read_brace(reader *r, size_t first, size_t at, item *it, const char *space) {
    const cuda_text *t = r->t;
    size_t close = t->tokens[at].match;
    cuda_range inside = {at + 1, close};
    bool is_extern = t->tokens[at - (at > 0)].kind == CUDA_TOKEN_TEXT;
    if ((it->is_namespace || is_extern) && !it->has_params) {
        const char *inner = space;
        if (it->is_namespace && it->named < at && t->tokens[it->named].kind == CUDA_TOKEN_NAME)
            inner = ev_arena_printf(t->arena, "%s%s::", space, cuda_token_text(t, it->named));
        read_scope(r, inside, inner, false);
        return true;
    }
    if (it->is_type && !it->has_params) {
        read_scope(r, inside, space, true);
        return false;
    }
    bool is_member = it->has_members && at > first && t->tokens[at - 1].kind == CUDA_TOKEN_NAME;
    if (!it->has_params || it->is_assigned || is_member)
        return false;
    it->f.body = (cuda_range){at, close + 1};
    add_function(r, it, first, close + 1);
    return true;
}

/* Reads the declaration that begins at `first`; returns the token behind it. */
static size_t read_item(reader *r, size_t first, size_t end, const char *space, bool in_class) {
    const cuda_text *t = r->t;
    item it = {.f = {.space = space, .in_class = in_class}};
    size_t at = first;
    if (cuda_token_is(t, at, "template")) {
        size_t behind = behind_angles(t, at + 1, end);
        if (behind > at + 1)
            it.f.types = (cuda_range){at + 2, behind - 1};
        at = behind > at + 1 ? behind : at + 1;
    }
    for (; at < end; at++) {
        if (cuda_token_is(t, at, ";")) {
            it.f.is_variable = !it.f.is_kernel && !it.f.is_device;
            if (it.has_params && !it.is_assigned)
                add_function(r, &it, first, at + 1);
            return at + 1;
        }
        if (cuda_token_is(t, at, "(")) {
            read_group(t, first, at, &it);
        } else if (cuda_token_is(t, at, "{")) {
            if (read_brace(r, first, at, &it, space))
                return t->tokens[at].match + 1;
        } else if (cuda_token_is(t, at, "=") && !cuda_token_is(t, at - 1, "operator")) {
            it.is_assigned = true;
        } else if (cuda_token_is(t, at, ":") && it.has_params) {
            it.has_members = true;
        } else if (t->tokens[at].kind == CUDA_TOKEN_NAME) {
            read_word(t, at, &it);
        }
        if (t->tokens[at].match != 0)
            at = t->tokens[at].match;
    }
    return end;
}

static void read_scope(reader *r, cuda_range range, const char *space, bool in_class) {
    static const char *const access[] = {"public", "private", "protected"};
    for (size_t at = range.first; at < range.end;) {
        if (r->t->tokens[at].kind == CUDA_TOKEN_DIRECTIVE || cuda_token_is(r->t, at, ";"))
            at++;
        else if (in_class && IS_ONE_OF(r->t, at, access) && cuda_token_is(r->t, at + 1, ":"))
            at += 2;
        else
            at = read_item(r, at, range.end, space, in_class);
    }
}

static bool read_functions(cuda_text *t) {
    reader r = {.t = t, .room = t->token_count / 3 + 1};
    r.functions = EV_NEW_ARRAY(t->arena, cuda_function, r.room);
    if (r.functions == NULL)
        return false;
    t->functions = r.functions;
    read_scope(&r, (cuda_range){0, t->token_count}, "", false);
    return !ev_arena_failed(t->arena);
}

/* ---- launches ----------------------------------------------------------------------------------
 */

/* The "<" that the ">" at `close` ends; SIZE_MAX: none. */
static size_t open_angle(const cuda_text *t, size_t close) {
    size_t depth = 0;
    for (size_t i = close + 1; i-- > 0;) {
        if (cuda_token_is(t, i, ">"))
            depth++;
        else if (cuda_token_is(t, i, "<") && --depth == 0)
            return i;
        else if (cuda_token_is(t, i, ";"))
            break;
    }
    return SIZE_MAX;
}

static const cuda_function *function_around(const cuda_text *t, size_t at) {
    for (size_t i = 0; i < t->function_count; i++) {
        const cuda_function *f = &t->functions[i];
        if (at >= f->body.first && at < f->body.end)
            return f;
    }
    return NULL;
}

static void read_launch(cuda_text *t, cuda_launch *launches, size_t at) {
    cuda_launch launch = {.token = at, .within = function_around(t, at)};
    size_t close = t->tokens[at].match, name = at - 1;
    if (cuda_token_is(t, name, ">")) {
        size_t open = open_angle(t, name);
        if (open == SIZE_MAX || open == 0)
            return;
        launch.types = (cuda_range){open + 1, name};
        name = open - 1;
    }
    if (t->tokens[name].kind != CUDA_TOKEN_NAME || !cuda_token_is(t, close + 1, "("))
        return;
    launch.kernel = cuda_token_text(t, name);
    launch.config_count = cuda_range_split(t, (cuda_range){at + 1, close}, launch.config, 4);
    launch.arguments = (cuda_range){close + 2, t->tokens[close + 1].match};
    if (launch.config_count >= 2 && launch.config_count <= 4)
        launches[t->launch_count++] = launch;
}

static bool read_launches(cuda_text *t) {
    size_t count = 0;
    for (size_t i = 1; i < t->token_count; i++)
        count += cuda_token_is(t, i, "<<<");
    cuda_launch *launches = EV_NEW_ARRAY(t->arena, cuda_launch, count + 1);
    if (launches == NULL)
        return false;
    t->launches = launches;
    for (size_t i = 1; i < t->token_count; i++) {
        if (cuda_token_is(t, i, "<<<") && t->tokens[i].match != 0)
            read_launch(t, launches, i);
    }
    return !ev_arena_failed(t->arena);
}

/* ---- reading -----------------------------------------------------------------------------------
 */

static ev_status read_all(cuda_text *t, ev_error *err) {
    EV_TRY(cuda_tokens_read(t, err));
    bool ok = read_directives(t);
    if (ok && t->is_balanced)
        ok = read_functions(t) && read_launches(t);
    return ok ? EV_OK : ev_fail_memory(err, t->bytes);
}

ev_status cuda_text_read(const char *text, size_t bytes, cuda_text **out, ev_error *err) {
    ev_arena *arena = ev_arena_new();
    cuda_text *t = arena != NULL ? EV_NEW(arena, cuda_text) : NULL;
    if (t == NULL) {
        ev_arena_free(arena);
        return ev_fail_memory(err, sizeof *t);
    }
    t->arena = arena;
    t->text = ev_arena_strndup(arena, text, bytes);
    t->bytes = t->text != NULL ? strlen(t->text) : 0;
    ev_status status = t->text != NULL ? read_all(t, err) : ev_fail_memory(err, bytes);
    if (status != EV_OK) {
        cuda_text_free(t);
        return status;
    }
    *out = t;
    return EV_OK;
}

void cuda_text_free(cuda_text *t) {
    if (t != NULL)
        ev_arena_free(t->arena);
}
