/* What the length of a draft's buffer may be: products of the sizes, of what a launch makes of
 * them, and of numbers that the kernel has, as 9 of a filter of 3 by 3. */
#include "tuner/init/draft.h"

#include <stdlib.h>
#include <string.h>

enum { FACTORS = 12, NUMBERS = 4, LEAST_NUMBER = 5, MOST_NUMBER = 65536 };

typedef struct lengths {
    const draft *d;
    const char *factors[FACTORS]; /* the sizes, then the launch's */
    size_t count, sizes;
    long numbers[NUMBERS]; /* of the kernel's text */
    size_t number_count;
    void (*add)(void *context, const char *expression);
    void *context;
} lengths;

static void list_factors(lengths *l) {
    const draft *d = l->d;
    ev_arena *arena = d->t->arena;
    for (size_t i = 0; i < d->size_count && l->count < FACTORS; i++)
        l->factors[l->count++] = d->sizes[i].name;
    l->sizes = l->count;
    for (int i = 0; i < 3 && d->grid[i] != NULL && l->count < FACTORS; i++)
        l->factors[l->count++] = ev_arena_printf(arena, "(%s)", d->grid[i]);
    for (int i = 0; i < 3 && d->block[i] != NULL && l->count < FACTORS; i++)
        l->factors[l->count++] = ev_arena_printf(arena, "(%s)", d->block[i]);
}

/* Smaller numbers are factors in any case. */
static void list_numbers(lengths *l) {
    const cuda_text *t = l->d->t;
    cuda_range body = l->d->kernel->body;
    for (size_t i = body.first; i < body.end && l->number_count < NUMBERS; i++) {
        if (t->tokens[i].kind != CUDA_TOKEN_NUMBER)
            continue;
        const char *text = cuda_token_text(t, i);
        char *end = NULL;
        long value = text != NULL ? strtol(text, &end, 0) : 0;
        bool is_whole = end != NULL && end[strspn(end, "uUlL")] == '\0';
        bool is_new = value >= LEAST_NUMBER && value <= MOST_NUMBER && is_whole;
        for (size_t k = 0; k < l->number_count; k++)
            is_new &= l->numbers[k] != value;
        if (is_new)
            l->numbers[l->number_count++] = value;
    }
}

static void add_pairs(const lengths *l) {
    ev_arena *arena = l->d->t->arena;
    const char *const *f = l->factors;
    for (size_t a = 0; a < l->count; a++)
        l->add(l->context, f[a]);
    for (size_t a = 0; a < l->count; a++)
        for (size_t b = a; b < l->count; b++)
            l->add(l->context, ev_arena_printf(arena, "%s * %s", f[a], f[b]));
}

static void add_sums(const lengths *l) {
    ev_arena *arena = l->d->t->arena;
    const char *const *f = l->factors;
    for (size_t a = 0; a < l->count; a++) {
        l->add(l->context, ev_arena_printf(arena, "%s + 1", f[a]));
        l->add(l->context, ev_arena_printf(arena, "2 * %s", f[a]));
        l->add(l->context, ev_arena_printf(arena, "2 * %s + 1", f[a]));
        l->add(l->context, ev_arena_printf(arena, "3 * %s", f[a]));
        l->add(l->context, ev_arena_printf(arena, "4 * %s", f[a]));
        for (size_t b = 0; b < l->sizes && a < l->sizes; b++) {
            l->add(l->context, ev_arena_printf(arena, "%s + %s", f[a], f[b]));
            l->add(l->context, ev_arena_printf(arena, "%s + %s - 1", f[a], f[b]));
        }
    }
    for (size_t a = 0; a < l->sizes; a++)
        l->add(l->context, ev_arena_printf(arena, "(2 * %s + 1) * (2 * %s + 1)", f[a], f[a]));
}

/* A number for each of a size, or of a pair of sizes. */
static void add_numbered(const lengths *l) {
    ev_arena *arena = l->d->t->arena;
    const char *const *f = l->factors;
    for (size_t n = 0; n < l->number_count; n++) {
        l->add(l->context, ev_arena_printf(arena, "%ld", l->numbers[n]));
        for (size_t a = 0; a < l->sizes; a++) {
            l->add(l->context, ev_arena_printf(arena, "%ld * %s", l->numbers[n], f[a]));
            for (size_t b = a + 1; b < l->sizes; b++)
                l->add(l->context,
                       ev_arena_printf(arena, "%ld * %s * %s", l->numbers[n], f[a], f[b]));
        }
    }
}

/* Three factors, and four sizes: the planes of a batch of images. */
static void add_products(const lengths *l) {
    ev_arena *arena = l->d->t->arena;
    const char *const *f = l->factors;
    for (size_t a = 0; a < l->count; a++)
        for (size_t b = a; b < l->count; b++)
            for (size_t c = b; c < l->count; c++)
                l->add(l->context, ev_arena_printf(arena, "%s * %s * %s", f[a], f[b], f[c]));
    for (size_t a = 0; a < l->sizes; a++)
        for (size_t b = a + 1; b < l->sizes; b++)
            for (size_t c = b + 1; c < l->sizes; c++)
                for (size_t e = c + 1; e < l->sizes; e++)
                    l->add(l->context,
                           ev_arena_printf(arena, "%s * %s * %s * %s", f[a], f[b], f[c], f[e]));
}

void draft_lengths(const draft *d, void (*add)(void *context, const char *expression),
                   void *context) {
    lengths l = {.d = d, .add = add, .context = context};
    list_factors(&l);
    list_numbers(&l);
    add(context, "1");
    add_pairs(&l);
    add_sums(&l);
    add_numbered(&l);
    add_products(&l);
    for (size_t a = 4; a <= MOST_NUMBER; a *= 2)
        add(context, ev_arena_printf(d->t->arena, "%zu", a));
}
