/* Bases: a small cache of base modules; the one not asked for longest goes first. */
#include "tuner/bases.h"

#include "base/file.h"
#include "base/str.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    char *key;
    ir_base *base;   /* NULL: it does not compile */
    char *complaint; /* then: why */
    uint64_t used;
} entry;

struct bases {
    const task *t;
    int sm;
    char *include;
    size_t limit, count;
    uint64_t clock;
    entry *entries;
};

ev_status bases_new(const task *t, int sm, size_t limit, bases **out, ev_error *err) {
    assert(limit > 0);
    bases *b = calloc(1, sizeof *b);
    char *home = ev_path_home();
    if (!b || !home) {
        free(b);
        free(home);
        return ev_fail(err, EV_INFRA,
                       "the folder kernels/ was not found; set EVOKE_HOME to where Evoke lies");
    }
    *b = (bases){.t = t, .sm = sm, .limit = limit};
    b->include = ev_path_join(home, "kernels/include");
    b->entries = calloc(limit, sizeof *b->entries);
    free(home);
    if (!b->include || !b->entries) {
        bases_free(b);
        return ev_fail_memory(err, limit * sizeof *b->entries);
    }
    *out = b;
    return EV_OK;
}

static void entry_clear(entry *e) {
    free(e->key);
    free(e->complaint);
    ir_base_free(e->base);
    *e = (entry){0};
}

void bases_free(bases *b) {
    if (!b)
        return;
    for (size_t i = 0; i < b->count; i++)
        entry_clear(&b->entries[i]);
    free(b->entries);
    free(b->include);
    free(b);
}

static char *key_of(const ir_genome *genome) {
    ev_str key = EV_STR_EMPTY;
    ev_str_append(&key, ir_genome_start(genome));
    for (size_t i = 0; i < ir_genome_macro_count(genome); i++)
        ev_str_printf(&key, "\n%s=%" PRId64, ir_genome_macro_name(genome, i),
                      ir_genome_macro_value(genome, i));
    char *text = ev_str_take(&key);
    ev_str_free(&key);
    return text;
}

static ev_status load(const bases *b, const ir_genome *genome, ir_base **out, ev_error *err) {
    const task_start *start = task_find_start(b->t, ir_genome_start(genome));
    if (!start)
        return ev_fail(err, EV_BAD, "the task %s has no start '%s'", b->t->name,
                       ir_genome_start(genome));
    size_t count = ir_genome_macro_count(genome);
    ir_macro *macros = calloc(count + 1, sizeof *macros);
    if (!macros)
        return ev_fail_memory(err, (count + 1) * sizeof *macros);
    for (size_t i = 0; i < count; i++)
        macros[i] = (ir_macro){ir_genome_macro_name(genome, i), ir_genome_macro_value(genome, i)};
    ir_source source = {.path = start->source,
                        .entry = start->entry,
                        .include = b->include,
                        .macros = macros,
                        .macro_count = count,
                        .sm = b->sm};
    ev_status status = ir_base_load(&source, out, err);
    free(macros);
    return status;
}

static entry *find(bases *b, const char *key) {
    for (size_t i = 0; i < b->count; i++) {
        if (strcmp(b->entries[i].key, key) == 0)
            return &b->entries[i];
    }
    return NULL;
}

/* A free entry; when all are taken, the one not used longest is given up. */
static entry *make_room(bases *b) {
    if (b->count < b->limit)
        return &b->entries[b->count++];
    entry *oldest = &b->entries[0];
    for (size_t i = 1; i < b->count; i++) {
        if (b->entries[i].used < oldest->used)
            oldest = &b->entries[i];
    }
    entry_clear(oldest);
    return oldest;
}

/* Takes `key` over. What does not compile is remembered too: asking again would cost as much. */
static ev_status add(bases *b, char *key, const ir_genome *genome, entry **out, ev_error *err) {
    ir_base *base = NULL;
    ev_status status = load(b, genome, &base, err);
    char *complaint = status == EV_BAD && err ? strdup(err->text) : NULL;
    if (status == EV_INFRA || (status == EV_BAD && !complaint)) {
        free(key);
        return status;
    }
    entry *e = make_room(b);
    *e = (entry){.key = key, .base = base, .complaint = complaint};
    *out = e;
    return EV_OK;
}

ev_status bases_get(bases *b, const ir_genome *genome, const ir_base **out, ev_error *err) {
    char *key = key_of(genome);
    if (!key)
        return ev_fail_memory(err, 0);
    entry *e = find(b, key);
    if (e)
        free(key);
    else
        EV_TRY(add(b, key, genome, &e, err));
    e->used = ++b->clock;
    if (!e->base)
        return ev_fail(err, EV_BAD, "%s", e->complaint);
    *out = e->base;
    return EV_OK;
}
