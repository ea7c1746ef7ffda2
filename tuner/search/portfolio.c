/* Portfolio: reads the shapes, and chooses the members.
 *
 * The choice is the p-median problem with the untuned kernel as a free member. Greedy steps add the
 * candidate that saves most, and exchanges then replace one member by another while that saves
 * (Teitz and Bart, "Heuristic Methods for Estimating the Generalized Vertex Median of a Weighted
 * Graph", 1968). Two members are also tried against all pairs of the candidates that are fastest at
 * some shape, since an exchange of one is blind to a pair of specialists. */
#include "tuner/search/portfolio.h"

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- shapes ---- */

static ev_status fail_name(const task *t, const char *name, const char *why, ev_error *err) {
    ev_str names = EV_STR_EMPTY;
    for (size_t i = 0; i < t->case_count; i++) {
        if (t->cases[i].split == CORPUS_SEARCH && t->cases[i].use == TASK_TIME)
            ev_str_printf(&names, "%s%s", names.length > 0 ? ", " : "", t->cases[i].name);
    }
    ev_status status =
        ev_fail(err, EV_BAD, "--shapes: '%s' %s; the search times %s of task %s", name, why,
                names.length > 0 ? ev_str_text(&names) : "no case", t->name);
    ev_str_free(&names);
    return status;
}

static ev_status add_shape(const task *t, const char *name, double weight, portfolio_shapes *out,
                           ev_error *err) {
    const task_case *at = task_find_case(t, name);
    if (at == NULL)
        return fail_name(t, name, "is no case of the task", err);
    if (at->split != CORPUS_SEARCH || at->use != TASK_TIME)
        return fail_name(t, name, "is no timed case of the split \"search\"", err);
    for (size_t i = 0; i < out->count; i++) {
        if (out->at[i] == at)
            return fail_name(t, name, "is named twice", err);
    }
    if (out->count == PORTFOLIO_SHAPES)
        return ev_fail(err, EV_BAD, "--shapes: there are more than %d shapes", PORTFOLIO_SHAPES);
    out->at[out->count] = at;
    out->weights[out->count++] = weight > 0 ? weight : at->weight;
    return EV_OK;
}

static ev_status read_names(const char *text, const task *t, portfolio_shapes *out, ev_error *err) {
    while (*text != '\0') {
        char name[96];
        size_t length = strcspn(text, ",");
        if (length == 0 || length >= sizeof name)
            return ev_fail(err, EV_BAD,
                           "--shapes: '%.80s' has no name of a case; give names with commas "
                           "between, or a JSON file {\"CASE\": WEIGHT, ...}",
                           text);
        memcpy(name, text, length);
        name[length] = '\0';
        EV_TRY(add_shape(t, name, 0, out, err));
        text += length + (text[length] == ',');
    }
    return EV_OK;
}

static ev_status read_object(const ev_json *doc, const task *t, portfolio_shapes *out,
                             ev_error *err) {
    const char *name = NULL;
    json_t *weight = NULL;
    if (!json_is_object(doc->root) || json_object_size(doc->root) == 0)
        return ev_json_fail(doc, "", err,
                            "the shapes are an object of weights, {\"CASE\": WEIGHT, ...}");
    json_object_foreach(doc->root, name, weight) {
        double value = json_is_number(weight) ? json_number_value(weight) : 0;
        if (!(value > 0))
            return ev_json_fail(doc, name, err, "a weight is a number above 0");
        EV_TRY(add_shape(t, name, value, out, err));
    }
    return EV_OK;
}

/* A name of a case has no slash; a file may be there under any name. */
static bool is_file(const char *text) {
    size_t length = strlen(text);
    bool ends = length > 5 && strcmp(text + length - 5, ".json") == 0;
    return ends || strchr(text, '/') != NULL || ev_path_exists(text);
}

ev_status portfolio_read_shapes(const char *text, const task *t, portfolio_shapes *out,
                                ev_error *err) {
    *out = (portfolio_shapes){.count = 0};
    if (text[0] == '\0')
        return ev_fail(err, EV_BAD, "--shapes names no case");
    if (!is_file(text))
        return read_names(text, t, out, err);
    ev_json *doc = NULL;
    EV_TRY(ev_json_load(text, &doc, err));
    ev_status status = read_object(doc, t, out, err);
    ev_json_free(doc);
    return status;
}

/* ---- the choice ---- */

static double time_at(const portfolio_problem *p, size_t member, size_t shape) {
    double ns = p->list[member].ns[shape];
    return ns > 0 ? ns : INFINITY;
}

double portfolio_cost(const portfolio_problem *p, const size_t *members, size_t count) {
    double sum = 0;
    for (size_t s = 0; s < p->shapes; s++) {
        double ns = p->base_ns[s];
        for (size_t i = 0; i < count; i++)
            ns = fmin(ns, time_at(p, members[i], s));
        sum += p->weights[s] * ns;
    }
    return sum;
}

/* The best candidate for one place among the members; p->count: none lowers *cost. */
static size_t best_at(const portfolio_problem *p, size_t *members, size_t count, size_t place,
                      double *cost) {
    size_t best = p->count, before = members[place];
    for (size_t i = 0; i < p->count; i++) {
        if (p->list[i].is_out)
            continue;
        members[place] = i;
        double now = portfolio_cost(p, members, count);
        bool is_equal = now == *cost && best < p->count;
        if (now < *cost || (is_equal && p->list[i].edits < p->list[best].edits)) {
            *cost = now;
            best = i;
        }
    }
    members[place] = before;
    return best;
}

/* Exchanges one member for another until nothing is gained. */
static void exchange(const portfolio_problem *p, size_t *members, size_t count, double *cost) {
    bool changed = count > 1;
    while (changed) {
        changed = false;
        for (size_t place = 0; place < count; place++) {
            size_t best = best_at(p, members, count, place, cost);
            changed = changed || best < p->count;
            members[place] = best < p->count ? best : members[place];
        }
    }
}

/* The fastest candidate at a shape; p->count: none is faster than the base. */
static size_t fastest_at(const portfolio_problem *p, size_t shape) {
    size_t best = p->count;
    double least = p->base_ns[shape];
    for (size_t i = 0; i < p->count; i++) {
        double now = p->list[i].is_out ? INFINITY : time_at(p, i, shape);
        bool is_equal = now == least && best < p->count;
        if (now < least || (is_equal && p->list[i].edits < p->list[best].edits)) {
            least = now;
            best = i;
        }
    }
    return best;
}

/* Replaces two members by the specialists of two shapes, where that saves. */
static bool exchange_pairs(const portfolio_problem *p, size_t *members, size_t count,
                           double *cost) {
    bool changed = false;
    for (size_t s = 0; s + 1 < p->shapes && count > 1; s++) {
        for (size_t other = s + 1; other < p->shapes; other++) {
            size_t first = fastest_at(p, s), second = fastest_at(p, other);
            for (size_t i = 0; i + 1 < count && first < p->count && second < p->count; i++) {
                for (size_t k = i + 1; k < count; k++) {
                    size_t was[2] = {members[i], members[k]};
                    members[i] = first;
                    members[k] = second;
                    double now = portfolio_cost(p, members, count);
                    bool gains = now < *cost;
                    changed = changed || gains;
                    *cost = gains ? now : *cost;
                    members[i] = gains ? first : was[0];
                    members[k] = gains ? second : was[1];
                }
            }
        }
    }
    return changed;
}

/* Takes out members that save nothing beside the others. Returns how many are left. */
static size_t drop_idle(const portfolio_problem *p, size_t *members, size_t count) {
    double cost = portfolio_cost(p, members, count);
    for (size_t i = count; i-- > 0;) {
        size_t one = members[i];
        memmove(&members[i], &members[i + 1], (count - i - 1) * sizeof *members);
        if (portfolio_cost(p, members, count - 1) <= cost) {
            count--;
            continue;
        }
        memmove(&members[i + 1], &members[i], (count - i - 1) * sizeof *members);
        members[i] = one;
    }
    return count;
}

/* Brings the member that saves most alone to the front. */
static void order(const portfolio_problem *p, size_t *members, size_t count) {
    size_t best = 0;
    for (size_t i = 1; i < count; i++) {
        double now = portfolio_cost(p, &members[i], 1),
               least = portfolio_cost(p, &members[best], 1);
        if (now < least || (now == least && members[i] < members[best]))
            best = i;
    }
    if (best > 0) {
        size_t first = members[best];
        memmove(&members[1], members, best * sizeof *members);
        members[0] = first;
    }
}

size_t portfolio_choose(const portfolio_problem *p, size_t *members) {
    size_t chosen[PORTFOLIO_MOST] = {0}, count = 0;
    double cost = portfolio_cost(p, NULL, 0);
    while (count < p->most && count < PORTFOLIO_MOST) {
        size_t trial[PORTFOLIO_MOST];
        double now = cost;
        memcpy(trial, chosen, sizeof trial);
        size_t best = best_at(p, trial, count + 1, count, &now);
        if (best == p->count)
            break;
        trial[count] = best;
        exchange(p, trial, count + 1, &now);
        while (exchange_pairs(p, trial, count + 1, &now))
            exchange(p, trial, count + 1, &now);
        if (now > cost * (1 - p->least_gain))
            break;
        memcpy(chosen, trial, sizeof trial);
        cost = now;
        count++;
    }
    count = drop_idle(p, chosen, count);
    order(p, chosen, count);
    memcpy(members, chosen, count * sizeof *members);
    return count;
}
