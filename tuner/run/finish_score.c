/* Finish, trials: genomes on the search cases, each scored once. */
#include "tuner/run/finish_inside.h"

#include "base/json.h"

#include <stdlib.h>
#include <string.h>

/* Those of the genomes that have no time yet, with where they stand. */
typedef struct unscored {
    json_t **genomes;
    char **keys;
    size_t *at, count;
} unscored;

static void unscored_free(unscored *u) {
    for (size_t i = 0; u->keys && i < u->count; i++)
        free(u->keys[i]);
    free(u->keys);
    free(u->genomes);
    free(u->at);
}

/* Fills in the times that are known. */
static ev_status find_unscored(const finish *f, json_t *const *genomes, size_t count, double *ns,
                               unscored *u, ev_error *err) {
    *u = (unscored){.genomes = calloc(count + 1, sizeof(json_t *)),
                    .keys = calloc(count + 1, sizeof(char *)),
                    .at = calloc(count + 1, sizeof *u->at)};
    if (!u->genomes || !u->keys || !u->at)
        return ev_fail_memory(err, (count + 1) * sizeof *u->at);
    for (size_t i = 0; i < count; i++) {
        char *key = ev_json_print(genomes[i], true);
        if (!key)
            return ev_fail_memory(err, 0);
        const json_t *known = json_object_get(f->scored, key);
        if (known) {
            ns[i] = json_real_value(json_array_get(known, 0));
            free(key);
            continue;
        }
        u->genomes[u->count] = genomes[i];
        u->keys[u->count] = key;
        u->at[u->count++] = i;
    }
    return EV_OK;
}

static ev_status score_unscored(finish *f, const unscored *u, double *ns, ev_error *err) {
    trial *trials = calloc(u->count + 1, sizeof *trials);
    if (!trials)
        return ev_fail_memory(err, (u->count + 1) * sizeof *trials);
    ev_status status = course_score(f->c, u->genomes, u->count, trials, err);
    for (size_t i = 0; status == EV_OK && i < u->count; i++) {
        ns[u->at[i]] = trials[i].passed ? trials[i].ns : 0;
        json_t *row = json_pack("[f,s]", ns[u->at[i]], trials[i].ptx_sha256);
        if (json_object_set_new(f->scored, u->keys[i], row) != 0)
            status = ev_fail_memory(err, 0);
    }
    free(trials);
    return status;
}

ev_status finish_score(void *context, json_t *const *genomes, size_t count, double *ns,
                       ev_error *err) {
    finish *f = context;
    unscored u;
    ev_status status = find_unscored(f, genomes, count, ns, &u, err);
    if (status == EV_OK && u.count > 0)
        status = score_unscored(f, &u, ns, err);
    unscored_free(&u);
    return status;
}

double finish_reference(const finish *f, const json_t *genome) {
    const char *start = ev_json_text(genome, "start", "");
    for (size_t i = 0; i < f->c->start_count; i++) {
        double ns = search_start_ns(f->c->search, i);
        if (strcmp(f->c->starts[i].start->name, start) == 0 && ns > 0)
            return ns;
    }
    return f->c->baseline_ns;
}
