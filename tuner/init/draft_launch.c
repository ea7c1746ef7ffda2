/* The launch of a draft: as the source's <<<>>> has it, or guessed from the kernel: the axes that
 * it reads, the bounds that it compares its indices with. */
#include "tuner/init/draft.h"

#include <stdlib.h>
#include <string.h>

/* ---- macros of the block -----------------------------------------------------------------------
 */

static bool is_block_name(const char *name) {
    static const char *const words[] = {"BLOCK", "THREAD", "TILE", "BDIM", "TPB", "BS"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strstr(name, words[i]) != NULL)
            return true;
    }
    return false;
}

static void find_macros(draft *d) {
    const cuda_text *t = d->t;
    for (size_t i = 0; i < t->macro_count && d->macro_count < DRAFT_MACROS; i++) {
        const cuda_macro *m = &t->macros[i];
        char *end;
        long value = strtol(m->value, &end, 10);
        bool is_number = end > m->value && *end == '\0' && value >= 4 && value <= 1024;
        if (m->has_params || !is_number || !is_block_name(m->name) ||
            cuda_text_macro(t, m->name) != m)
            continue;
        d->macros[d->macro_count++] = (draft_macro){m->name, value};
    }
}

bool draft_uses(const char *expression, const char *name) {
    return expression != NULL && expr_uses(expression, name);
}

/* Keeps the macros that the block's size uses. */
static void keep_used_macros(draft *d) {
    size_t kept = 0;
    for (size_t i = 0; i < d->macro_count; i++) {
        bool used = false;
        for (int k = 0; k < 3; k++)
            used |= draft_uses(d->block[k], d->macros[i].name) ||
                    draft_uses(d->grid[k], d->macros[i].name);
        used |= draft_uses(d->shared, d->macros[i].name);
        if (used)
            d->macros[kept++] = d->macros[i];
    }
    d->macro_count = kept;
}

const char *draft_without_macros(const draft *d, const char *expression) {
    ev_str out = EV_STR_EMPTY;
    for (const char *at = expression; *at != '\0';) {
        size_t length =
            strspn(at, "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
        const draft_macro *found = NULL;
        for (size_t i = 0; i < d->macro_count; i++) {
            if (strlen(d->macros[i].name) == length && strncmp(d->macros[i].name, at, length) == 0)
                found = &d->macros[i];
        }
        length = length > 0 ? length : 1;
        if (found != NULL)
            ev_str_printf(&out, "%lld", (long long)found->value);
        else
            ev_str_append_n(&out, at, length);
        at += length;
    }
    const char *kept = ev_arena_strdup(d->t->arena, ev_str_text(&out));
    ev_str_free(&out);
    return kept;
}

void draft_drop_macros(draft *d) {
    for (int i = 0; i < 3; i++) {
        d->grid[i] = d->grid[i] != NULL ? draft_without_macros(d, d->grid[i]) : NULL;
        d->block[i] = d->block[i] != NULL ? draft_without_macros(d, d->block[i]) : NULL;
    }
    d->shared = d->shared != NULL ? draft_without_macros(d, d->shared) : NULL;
    for (size_t i = 0; i < d->macro_count; i++)
        draft_note(d, "%s is not tunable here: the length of a buffer depends on it",
                   d->macros[i].name);
    d->macro_count = 0;
}

/* ---- a guess -----------------------------------------------------------------------------------
 */

/* Whether the kernel reads NAME.AXIS, or another part of the source that it may call. */
static bool reads(const draft *d, const char *name, char axis) {
    const cuda_text *t = d->t;
    char text[2] = {axis, '\0'};
    for (size_t i = d->kernel->body.first; i + 2 < d->kernel->body.end; i++) {
        if (cuda_token_is(t, i, name) && cuda_token_is(t, i + 1, ".") &&
            cuda_token_is(t, i + 2, text))
            return true;
    }
    return false;
}

/* "BX" of blockIdx.x * BX: a macro or a constant; NULL: there is none, as with blockDim. */
static const char *factor_of(draft *d, char axis) {
    const cuda_text *t = d->t;
    char text[2] = {axis, '\0'};
    for (size_t i = d->kernel->body.first; i + 4 < d->kernel->body.end; i++) {
        if (!cuda_token_is(t, i, "blockIdx") || !cuda_token_is(t, i + 2, text) ||
            !cuda_token_is(t, i + 3, "*") || cuda_token_is(t, i + 4, "blockDim"))
            continue;
        const char *factor = draft_expression(d, (cuda_range){i + 4, i + 5}, 0);
        bool is_kept = false;
        for (size_t k = 0; factor != NULL && k < d->macro_count; k++)
            is_kept |= strcmp(factor, d->macros[k].name) == 0;
        if (is_kept || (factor != NULL && strtol(factor, NULL, 10) > 0))
            return factor;
    }
    return NULL;
}

static const char *guess_block(draft *d, int axes) {
    static const char *const sizes[3] = {"256", "16", "8"};
    const cuda_text *t = d->t;
    for (size_t i = 0; i < d->macro_count; i++) {
        bool fits = axes == 1 || d->macros[i].value <= 32;
        for (size_t k = d->kernel->body.first; fits && k < d->kernel->body.end; k++) {
            if (cuda_token_is(t, k, d->macros[i].name))
                return d->macros[i].name;
        }
    }
    cuda_range bound[2];
    if (axes == 1 && cuda_range_split(t, d->kernel->bounds, bound, 2) > 0) {
        const char *most = draft_expression(d, bound[0], 0);
        if (most != NULL)
            return most;
    }
    return sizes[axes - 1];
}

/* The variable that is made of blockIdx.AXIS: "i" in int i = blockIdx.x * blockDim.x + threadIdx.x;
 * *per_thread: of threadIdx, too. NULL: none. */
static const char *index_of(const draft *d, char axis, bool *per_thread) {
    const cuda_text *t = d->t;
    char text[2] = {axis, '\0'};
    for (size_t i = d->kernel->body.first + 1; i + 2 < d->kernel->body.end; i++) {
        if (!cuda_token_is(t, i, "blockIdx") || !cuda_token_is(t, i + 2, text))
            continue;
        size_t begin = i, end = i;
        while (begin > d->kernel->body.first && !cuda_token_is(t, begin, "=") &&
               !cuda_token_is(t, begin, ";") && !cuda_token_is(t, begin, "{"))
            begin--;
        while (end < d->kernel->body.end && !cuda_token_is(t, end, ";"))
            end++;
        if (!cuda_token_is(t, begin, "=") || t->tokens[begin - 1].kind != CUDA_TOKEN_NAME)
            continue;
        *per_thread = false;
        for (size_t k = begin; k < end; k++)
            *per_thread |= cuda_token_is(t, k, "threadIdx");
        return cuda_token_text(t, begin - 1);
    }
    return NULL;
}

/* The bound of an index: "n" of i < n and of i >= n; NULL: none. */
static const char *bound_of(draft *d, const char *index) {
    const cuda_text *t = d->t;
    for (size_t i = d->kernel->body.first; i + 2 < d->kernel->body.end; i++) {
        bool compares = cuda_token_is(t, i + 1, "<") || cuda_token_is(t, i + 1, ">=");
        if (!cuda_token_is(t, i, index) || !compares)
            continue;
        size_t end = i + 2;
        while (end < d->kernel->body.end && !cuda_token_is(t, end, ")") &&
               !cuda_token_is(t, end, "&&") && !cuda_token_is(t, end, "||") &&
               !cuda_token_is(t, end, ";") && !cuda_token_is(t, end, "?"))
            end = t->tokens[end].match != 0 ? t->tokens[end].match + 1 : end + 1;
        const char *bound = draft_expression(d, (cuda_range){i + 2, end}, 0);
        if (bound != NULL)
            return bound;
    }
    return NULL;
}

static void guess_grid(draft *d, int axis) {
    static const char *const names[3] = {"blocks", "blocks_y", "blocks_z"};
    bool per_thread = true;
    const char *index = index_of(d, (char)('x' + axis), &per_thread);
    const char *bound = index != NULL ? bound_of(d, index) : NULL;
    if (bound == NULL) {
        draft_add_size(d, names[axis], false, DRAFT_UNKNOWN);
        d->grid[axis] = names[axis];
        draft_note(d,
                   "the number of blocks in %c is a name of the shape, \"%s\": no bound of it was "
                   "found in %s",
                   'x' + axis, names[axis], d->kernel->name);
        return;
    }
    d->grid[axis] = per_thread ? ev_arena_printf(d->t->arena, "ceil_div(%s, %s)", bound,
                                                 d->block[axis] != NULL ? d->block[axis] : "1")
                               : bound;
}

static void guess(draft *d) {
    int axes = 1, grids = 1;
    d->launch = NULL;
    for (int i = 1; i < 3; i++) {
        axes = reads(d, "threadIdx", (char)('x' + i)) ? i + 1 : axes;
        grids = reads(d, "blockIdx", (char)('x' + i)) ? i + 1 : grids;
    }
    for (int i = 0; i < 3; i++)
        d->block[i] = d->grid[i] = NULL;
    const char *block = guess_block(d, axes);
    for (int i = 0; i < axes; i++) {
        const char *factor = factor_of(d, (char)('x' + i));
        d->block[i] = factor != NULL ? factor : block;
    }
    for (int i = 0; i < grids; i++)
        guess_grid(d, i);
}

/* ---- the source's launch -----------------------------------------------------------------------
 */

static bool has_dynamic_shared(const draft *d) {
    const cuda_text *t = d->t;
    for (size_t i = 0; i + 1 < t->token_count; i++) {
        if (cuda_token_is(t, i, "extern") && cuda_token_is(t, i + 1, "__shared__"))
            return true;
    }
    return false;
}

/* Bytes of dynamic shared memory: sizeof(float) is a number for draft_expression. */
static const char *shared_of(draft *d) {
    if (d->launch == NULL || d->launch->config_count < 3)
        return NULL;
    const char *text = cuda_range_text(d->t, d->launch->config[2]);
    if (text == NULL || strcmp(text, "0") == 0)
        return NULL;
    return draft_expression(d, d->launch->config[2], 0);
}

void draft_find_launch(draft *d) {
    size_t sizes = d->size_count;
    find_macros(d);
    d->reading = DRAFT_BLOCK;
    bool found = d->launch != NULL && draft_dimensions(d, d->launch->config[1], d->block, 0);
    d->reading = DRAFT_GRID;
    found = found && draft_dimensions(d, d->launch->config[0], d->grid, 0);
    d->reading = DRAFT_ELSE;
    if (!found && d->launch != NULL)
        draft_note(d, "the launch in line %u is not understood: grid and block are guesses",
                   d->t->tokens[d->launch->token].line);
    else if (!found)
        draft_note(d, "the source has no launch of %s: grid and block are guesses",
                   d->kernel->name);
    if (!found) {
        d->size_count = sizes;
        guess(d);
    }
    d->shared = shared_of(d);
    if (d->shared == NULL && has_dynamic_shared(d)) {
        const char *threads = d->block[0] != NULL ? d->block[0] : "1";
        d->shared = ev_arena_printf(d->t->arena, "16 * %s", threads);
        draft_note(d, "the bytes of dynamic shared memory (\"shared\") are guessed");
    }
    keep_used_macros(d);
}
