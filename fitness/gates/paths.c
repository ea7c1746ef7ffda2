/* Paths: which blocks of a timed case are run in place of the whole grid.
 *
 * A timed run executes a few blocks and lets each stand for a share of the grid. A sample at fixed
 * places misleads where the work lies elsewhere: in a step of Gaussian elimination most blocks find
 * nothing to do. So a first pass without model and checks runs blocks at random places, and counts
 * the warp instructions of each and the sectors that it writes (its path length), until their mean
 * is known well or all blocks have run. Three kinds of grid follow:
 *
 * - even: the blocks at the fixed places have the mean length, and none is much longer. They are
 * the sample.
 * - uneven: the blocks are sorted by length into strata. The sample has a block of each, or two of
 *   the stratum with the most work and of the longest. The size of its stratum is a block's weight.
 * - waits: blocks wait for others, or the work of a block depends on which block comes last. A
 *   sample says nothing, so all blocks run.
 *
 * The pass runs the start at the candidate's macros, with the structural edits up to the last one
 * that divides the work of blocks (candidate.division), never the candidate: so all variants whose
 * blocks do the same work are timed on the same blocks, whichever is judged first. The result is
 * kept by case, start, macros and division. Where the start's blocks are alike at a case, the pass
 * at the first timed case decides for that case, too. A candidate whose start is not at hand is its
 * own subject. */
#include "fitness/gates/fitness_impl.h"
#include "fitness/gates/sample.h"

#include "base/divisor.h"
#include "base/str.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Blocks of the first batch, at random places; fewer where the start's blocks are alike. Each
 * further batch is twice as large. */
#define BATCH_FIRST 8
#define BATCH_FIRST_ALIKE 3
/* A pass ends with fewer blocks than these only after so many thread instructions. */
#define BLOCKS_LEAST 32
#define SPEND_ENOUGH UINT64_C(50000000)
/* Thread instructions that a pass spends at least, if there are blocks left: idle blocks are cheap,
 * and a few of them say nothing of the others. */
#define SPEND_LEAST UINT64_C(2000000)
/* Thread instructions after which a pass ends, however much the lengths differ. */
#define SPEND_MOST UINT64_C(1000000000)
/* Limit of a run of the whole grid, in thread instructions. */
#define WHOLE_FUEL UINT64_C(4000000000)
/* The mean is known well if its standard error is below this share of it. Where the start's blocks
 * are alike, the pass only asks whether structural edits made some of them much shorter or longer.
 */
#define MEAN_ERROR 0.02
#define MEAN_ERROR_ALIKE 0.05
/* The fixed places are good if their mean length is off by no more than this share. */
#define PLACES_ERROR 0.1
/* A grid whose lengths have a standard deviation below this share of the mean is even at other
 * macros as well. */
#define EVEN_SPREAD 0.25
/* The largest share of the last blocks of rows, columns and layers in a grid for which the pass of
 * the first timed case decides. */
#define LAST_SHARE 0.25
/* Lengths of one stratum differ by no more than this factor, or more if there were too many. */
#define STRATUM_FACTOR 1.2
#define STRATA_MOST 5
/* A block's length depends on the order of blocks if it differs by more than this many warp
 * instructions and this share of the mean. */
#define ORDER_LEAST 16
#define ORDER_SHARE 0.01
#define OTHER_ORDER 20240307u

_Static_assert(FIT_PATHS_MOST >= STRATA_MOST + 2, "two strata may have two blocks");

typedef struct path {
    uint32_t block;
    uint64_t length; /* of vm_launch.paths */
} path;

/* A pass under way. */
typedef struct walk {
    fitness *f;
    fit_case *c;
    const candidate *who;
    device_kernel *kernel; /* of the subject */
    device_launch launch;  /* the candidate's, without sample */
    uint64_t blocks;       /* of the grid */
    path *known;
    size_t count, room;
    size_t places, fixed; /* the first so many are the sample at fixed places; with the middle block
                             of the grid, whose index is */
    size_t middle;
    double *weights;     /* of the places: how many blocks of the grid each stands for */
    double mean, spread; /* of the others; spread: standard deviation */
    uint64_t spent;      /* thread instructions */
    bool start_is_alike; /* the subject's start has an even grid of like blocks at this case */
} walk;

/* ---- running blocks ---- */

static ev_status run_blocks(walk *w, const uint32_t *sample, size_t count, uint64_t seed,
                            uint64_t *paths, device_outcome *out, ev_error *err) {
    device_launch l = w->launch;
    l.sample = sample;
    l.sample_count = count;
    l.schedule_seed = seed;
    l.paths = paths;
    uint64_t most =
        fit_fuel_of_blocks(device_description(w->f->d), w->c, w->who, count > 0 ? count : w->blocks,
                           w->start_is_alike ? w->blocks : 0);
    l.fuel = l.fuel < most ? l.fuel : most;
    EV_TRY(device_reset(w->f->d, FIT_POISON, err));
    EV_TRY(fit_case_fill(w->f, w->c, w->kernel, err));
    EV_TRY(device_run(w->f->d, w->kernel, &l, out, err));
    w->spent += out->counters.thread_instructions;
    return EV_OK;
}

static bool make_room(walk *w, size_t more) {
    if (w->count + more <= w->room)
        return true;
    size_t room = (w->count + more) * 2;
    path *bigger = realloc(w->known, room * sizeof *bigger);
    if (bigger == NULL)
        return false;
    w->known = bigger;
    w->room = room;
    return true;
}

/* Runs the blocks and adds their lengths. *ok: none of them trapped. */
static ev_status measure_blocks(walk *w, const uint32_t *sample, size_t count, bool *ok,
                                ev_error *err) {
    uint64_t *paths = calloc(count + 1, sizeof *paths);
    device_outcome out;
    if (paths == NULL || !make_room(w, count)) {
        free(paths);
        return ev_fail_memory(err, count * sizeof *paths);
    }
    ev_status status = run_blocks(w, sample, count, 0, paths, &out, err);
    *ok = status == EV_OK && out.ok;
    for (size_t i = 0; *ok && i < count; i++)
        w->known[w->count++] = (path){sample[i], paths[i]};
    free(paths);
    return status;
}

static int compare_u32(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* An order of the grid's blocks: (i * step + start) mod blocks. */
typedef struct walk_order {
    uint64_t step, start, next;
} walk_order;

static walk_order order_of(uint64_t blocks) {
    walk_order o = {.step = ev_mix64(blocks) % blocks, .start = ev_mix64(blocks + 1) % blocks};
    while (o.step == 0 || ev_divisor(o.step, blocks) != 1)
        o.step = o.step % blocks + 1;
    return o;
}

static bool is_fixed(const walk *w, uint32_t block) {
    for (size_t i = 0; i < w->fixed; i++) {
        if (w->known[i].block == block)
            return true;
    }
    return false;
}

/* The next blocks of the order, ascending; returns their number. */
static size_t next_batch(const walk *w, walk_order *o, size_t most, uint32_t *sample) {
    size_t count = 0;
    for (; count < most && o->next < w->blocks; o->next++) {
        uint32_t block = (uint32_t)(((unsigned __int128)o->next * o->step + o->start) % w->blocks);
        if (!is_fixed(w, block))
            sample[count++] = block;
    }
    qsort(sample, count, sizeof *sample, compare_u32);
    return count;
}

static bool knows_all(const walk *w) {
    return w->count == w->blocks;
}

/* Mean and standard deviation of the lengths: of all blocks, or of those at random places. */
static void sum_up(walk *w) {
    size_t first = knows_all(w) ? 0 : w->fixed;
    double n = (double)(w->count - first), sum = 0, squares = 0;
    for (size_t i = first; i < w->count; i++)
        sum += (double)w->known[i].length;
    w->mean = n > 0 ? sum / n : 0;
    for (size_t i = first; i < w->count; i++)
        squares += pow((double)w->known[i].length - w->mean, 2);
    w->spread = n > 1 ? sqrt(squares / (n - 1)) : 0;
}

/* The mean length at the fixed places, weighted as the model weights them. */
static double mean_at_places(const walk *w) {
    double sum = 0;
    for (size_t i = 0; i < w->places; i++)
        sum += w->weights[i] * (double)w->known[i].length;
    return sum / (double)w->blocks;
}

static bool is_near(double length, double mean) {
    return fabs(length - mean) <= PLACES_ERROR * mean;
}

/* The longest path of those that stand for others. */
static uint64_t longest_place(const walk *w) {
    uint64_t longest = 0;
    for (size_t i = 0; i < w->places; i++) {
        if (w->weights[i] > 1 && w->known[i].length > longest)
            longest = w->known[i].length;
    }
    return longest;
}

/* Few blocks with work among many without hardly move the mean: so none may be much longer than
 * those at the fixed places. */
static bool places_are_good(const walk *w) {
    double most = STRATUM_FACTOR * (double)longest_place(w);
    bool good = is_near(mean_at_places(w), w->mean);
    good = good && is_near((double)w->known[w->middle].length, w->mean);
    for (size_t i = w->fixed; good && i < w->count; i++)
        good = (double)w->known[i].length <= most;
    return good;
}

/* A structural edit that keeps the meaning divides the start's work anew. Where all blocks of the
 * start do the same, the places and few others show that the parts are equal as well; parts that
 * are not make the mean inexact, or differ from the places. */
static bool knows_enough(const walk *w) {
    double n = (double)(w->count - w->fixed);
    double error = w->start_is_alike ? MEAN_ERROR_ALIKE : MEAN_ERROR;
    bool is_exact = n > 0 && w->spread / sqrt(n) <= error * w->mean;
    bool wants_many = n < BLOCKS_LEAST && !w->start_is_alike;
    bool is_long = w->spent >= (wants_many ? SPEND_ENOUGH : SPEND_LEAST);
    bool is_doubtful = n < BATCH_FIRST && !places_are_good(w);
    return knows_all(w) || w->spent >= SPEND_MOST || (is_exact && is_long && !is_doubtful);
}

/* No more blocks than the pass can pay for, if they are like those that have run; at least one. */
static size_t affordable(const walk *w, size_t batch) {
    double a_block = (double)w->spent / (double)w->count;
    double left = w->spent < SPEND_MOST ? (double)(SPEND_MOST - w->spent) : 0;
    return (double)batch * a_block <= left ? batch : (size_t)fmax(1, left / a_block);
}

/* Batch after batch at random places. */
static ev_status measure_others(walk *w, bool *ok, ev_error *err) {
    walk_order order = order_of(w->blocks);
    size_t batch = w->start_is_alike ? BATCH_FIRST_ALIKE : BATCH_FIRST;
    ev_status status = EV_OK;
    for (bool done = knows_all(w); status == EV_OK && *ok && !done; batch *= 2) {
        uint32_t *sample = malloc(batch * sizeof *sample);
        if (sample == NULL)
            return ev_fail_memory(err, batch * sizeof *sample);
        size_t count = next_batch(w, &order, affordable(w, batch), sample);
        if (count > 0)
            status = measure_blocks(w, sample, count, ok, err);
        free(sample);
        sum_up(w);
        done = count == 0 || knows_enough(w);
    }
    return status;
}

/* ---- grids that wait ---- */

static bool differ(const uint64_t *a, const uint64_t *b, uint64_t count) {
    double sum = 0, most = 0;
    for (uint64_t i = 0; i < count; i++) {
        sum += (double)a[i];
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
    }
    return most > ORDER_LEAST && most > ORDER_SHARE * sum / (double)count;
}

/* Runs the whole grid in two orders of its blocks. */
static ev_status compare_orders(walk *w, uint64_t *first, uint64_t *second, bool *waits,
                                ev_error *err) {
    device_outcome out, other;
    w->launch.fuel = WHOLE_FUEL;
    EV_TRY(run_blocks(w, NULL, 0, 0, first, &out, err));
    if (!out.ok) /* wrong, or too long to be run whole */
        return EV_OK;
    EV_TRY(fit_case_restore(w->f, w->c, NULL, 0, err));
    EV_TRY(run_blocks(w, NULL, 0, OTHER_ORDER, second, &other, err));
    EV_TRY(fit_case_restore(w->f, w->c, NULL, 0, err));
    *waits = out.waits || other.waits || !other.ok || differ(first, second, w->blocks);
    return EV_OK;
}

static ev_status find_waits(walk *w, bool *waits, ev_error *err) {
    if (!device_kernel_may_wait(w->kernel))
        return EV_OK;
    uint64_t *paths = calloc(2 * w->blocks, sizeof *paths);
    if (paths == NULL)
        return ev_fail_memory(err, 2 * w->blocks * sizeof *paths);
    ev_status status = compare_orders(w, paths, paths + w->blocks, waits, err);
    free(paths);
    w->spent = 0;
    return status;
}

/* ---- strata ---- */

static int compare_paths(const void *a, const void *b) {
    const path *x = a, *y = b;
    if (x->length != y->length)
        return x->length < y->length ? -1 : 1;
    return x->block < y->block ? -1 : x->block > y->block;
}

/* Cuts the sorted paths where a length exceeds the stratum's least by the factor. Returns the
 * number of strata; ends[i]: the end of stratum i, if there is room for it. */
static size_t cut(const path *known, size_t count, double factor, size_t *ends) {
    size_t strata = 0, first = 0;
    for (size_t i = 1; i <= count; i++) {
        if (i < count && (double)known[i].length <= factor * (double)known[first].length)
            continue;
        if (strata < STRATA_MOST)
            ends[strata] = i;
        strata++;
        first = i;
    }
    return strata;
}

static double sum_of(const path *known, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)known[i].length;
    return sum;
}

/* The path whose length is nearest to the mean; among equals the one in their middle. */
static size_t middle_of(const path *known, size_t count) {
    double mean = sum_of(known, count) / (double)count;
    size_t at = 0;
    for (size_t i = 1; i < count; i++) {
        if (fabs((double)known[i].length - mean) < fabs((double)known[at].length - mean))
            at = i;
    }
    size_t end = at;
    while (end + 1 < count && known[end + 1].length == known[at].length)
        end++;
    return (at + end) / 2;
}

static void add_block(fit_paths *p, const path *block, double weight) {
    p->blocks[p->count] = block->block;
    p->weights[p->count++] = weight;
    p->share += (double)block->length;
}

/* One block of the stratum, or two of one that counts for more; and one other, if there is. */
static void add_stratum(fit_paths *p, const path *known, size_t count, double scale,
                        bool counts_more) {
    size_t at = middle_of(known, count);
    size_t second = at + 1 < count ? at + 1 : at - 1;
    bool has_two = counts_more && count >= 2;
    double weight = (double)count * scale / (has_two ? 2 : 1);
    add_block(p, &known[at], weight);
    if (has_two)
        add_block(p, &known[second], weight);
    size_t other = count / 3;
    bool taken = other == at || (has_two && other == second);
    p->others[p->other_count++] = known[taken ? count - 1 : other].block;
}

static void sort_sample(fit_paths *p) {
    for (size_t i = 1; i < p->count; i++) {
        for (size_t k = i; k > 0 && p->blocks[k] < p->blocks[k - 1]; k--) {
            uint32_t block = p->blocks[k];
            double weight = p->weights[k];
            p->blocks[k] = p->blocks[k - 1];
            p->weights[k] = p->weights[k - 1];
            p->blocks[k - 1] = block;
            p->weights[k - 1] = weight;
        }
    }
    qsort(p->others, p->other_count, sizeof *p->others, compare_u32);
}

/* The paths are sorted. */
static void make_strata(const walk *w, fit_paths *p) {
    size_t ends[STRATA_MOST], strata = 0, most = 0;
    double factor = STRATUM_FACTOR;
    while ((strata = cut(w->known, w->count, factor, ends)) > STRATA_MOST)
        factor *= STRATUM_FACTOR;
    double heaviest = -1, scale = (double)w->blocks / (double)w->count;
    for (size_t i = 0; i < strata; i++) {
        size_t first = i > 0 ? ends[i - 1] : 0;
        double work = sum_of(w->known + first, ends[i] - first);
        most = work > heaviest ? i : most;
        heaviest = fmax(heaviest, work);
    }
    for (size_t i = 0; i < strata; i++) {
        size_t first = i > 0 ? ends[i - 1] : 0;
        add_stratum(p, w->known + first, ends[i] - first, scale, i == most || i + 1 == strata);
    }
    double all = sum_of(w->known, w->count) * scale;
    p->share = all > 0 ? p->share / all : (double)p->count / (double)w->blocks;
    sort_sample(p);
}

/* ---- the fixed places ---- */

/* The sample of about that many blocks, then the middle block, which fast code runs alone. */
static ev_status measure_places(walk *w, size_t limit, bool *ok, ev_error *err) {
    uint32_t *sample = malloc((limit + 1) * sizeof *sample), middle = 0;
    w->weights = malloc((limit + 1) * sizeof *w->weights);
    if (sample == NULL || w->weights == NULL) {
        free(sample);
        return ev_fail_memory(err, (limit + 1) * sizeof *sample);
    }
    double all;
    size_t inner;
    size_t count = sample_grid(w->launch.grid, limit, sample, w->weights, &inner);
    (void)sample_grid(w->launch.grid, 1, &middle, &all, &inner);
    ev_status status = measure_blocks(w, sample, count, ok, err);
    w->places = w->middle = count;
    for (size_t i = 0; i < count; i++)
        w->middle = sample[i] == middle ? i : w->middle;
    if (status == EV_OK && *ok && w->middle == count)
        status = measure_blocks(w, &middle, 1, ok, err);
    free(sample);
    w->fixed = w->count;
    return status;
}

/* Whether few paths are shorter than most, and none is much longer. The paths are sorted. */
static bool are_alike(const walk *w) {
    size_t middle = w->count / 2;
    double median = (double)w->known[middle].length;
    double longest = (double)w->known[w->count - 1].length;
    return w->spread <= EVEN_SPREAD * w->mean && longest <= STRATUM_FACTOR * median;
}

/* ---- the pass ---- */

/* What the subject writes in the sampled blocks, or in all of a grid that waits. */
static ev_status count_written(walk *w, fit_paths *p, ev_error *err) {
    device_outcome out;
    w->launch.notes_stores = true;
    const uint32_t *sample = p->count > 0 ? p->blocks : NULL;
    EV_TRY(run_blocks(w, sample, p->count, 0, NULL, &out, err));
    EV_TRY(fit_count_written(w->f, w->c, &p->written, err));
    return fit_case_restore(w->f, w->c, NULL, 0, err);
}

static ev_status walk_grid(walk *w, size_t limit, fit_paths *p, ev_error *err) {
    bool ok = true, waits = false;
    EV_TRY(find_waits(w, &waits, err));
    if (waits) {
        p->grid = FITNESS_GRID_WAITS;
        return count_written(w, p, err);
    }
    w->launch.fuel = WHOLE_FUEL;
    EV_TRY(measure_places(w, limit, &ok, err));
    if (ok)
        EV_TRY(measure_others(w, &ok, err));
    EV_TRY(fit_case_restore(w->f, w->c, NULL, 0, err));
    if (!ok) /* wrong: the gates will say so */
        return EV_OK;
    sum_up(w);
    bool good = places_are_good(w);
    qsort(w->known, w->count, sizeof *w->known, compare_paths);
    p->is_alike = good && are_alike(w);
    if (good)
        return EV_OK;
    p->grid = FITNESS_GRID_UNEVEN;
    make_strata(w, p);
    return count_written(w, p, err);
}

/* ---- whose paths ---- */

/* "hand\nBLOCK=64", or of another subject the hash of its code, with the number of the step under
 * way; malloc'ed, NULL: out of memory. */
static char *key_of(const fit_case *c, const candidate *who, size_t macro_count, bool own) {
    ev_str key = EV_STR_EMPTY;
    ev_str_append(&key, who->start->name);
    for (size_t i = 0; i < macro_count; i++)
        ev_str_printf(&key, "\n%s=%" PRId64, who->macros[i].name, who->macros[i].value.whole);
    if (who->division != NULL)
        ev_str_printf(&key, "\n\n%s", who->division);
    if (own)
        ev_str_printf(&key, "\n%s", ev_sha256_of(who->ptx, who->ptx_bytes).hex);
    if (c->now.step != NULL)
        ev_str_printf(&key, "\n#%zu", c->now.index);
    return ev_str_take(&key);
}

static fit_paths *find(const fitness *f, const fit_case *c, const char *key) {
    for (size_t i = 0; i < f->path_count; i++) {
        if (f->paths[i]->at == c && strcmp(f->paths[i]->key, key) == 0)
            return f->paths[i];
    }
    return NULL;
}

/* Whether a candidate's grid at a case is known to be even, with blocks that are alike. */
static ev_status is_alike_at(const fitness *f, const fit_case *c, const candidate *who,
                             size_t macro_count, bool *alike, ev_error *err) {
    char *key = key_of(c, who, macro_count, false);
    if (key == NULL)
        return ev_fail_memory(err, 0);
    const fit_paths *p = find(f, c, key);
    *alike = p != NULL && p->grid == FITNESS_GRID_EVEN && p->is_alike;
    free(key);
    return EV_OK;
}

/* Whether the grid is even at the start's default macros, and its blocks are alike. Such a grid is
 * even at other macros, too, but not with structural edits: some of its blocks may have work for a
 * part of their threads. Only for cases of the search, whose default starts are all known before
 * any candidate. */
static ev_status is_alike_by_default(const fitness *f, const fit_case *c, const candidate *who,
                                     bool *alike, ev_error *err) {
    candidate plain = {.start = who->start};
    *alike = false;
    return c->at->split == CORPUS_SEARCH ? is_alike_at(f, c, &plain, 0, alike, err) : EV_OK;
}

/* The task's first timed case of the search, once it has run; NULL: not yet. */
static const fit_case *first_timed(const fitness *f) {
    for (size_t i = 0; i < f->t->case_count; i++) {
        const task_case *at = &f->t->cases[i];
        if (at->use != TASK_TIME || at->split != CORPUS_SEARCH)
            continue;
        for (size_t k = 0; k < f->case_count; k++) {
            if (f->cases[k]->at == at)
                return f->cases[k];
        }
        return NULL;
    }
    return NULL;
}

/* Whether few blocks are the last ones of a row, a column or a layer, whose work is cut off where a
 * size is no multiple of what a block does. */
static bool has_few_last(const uint32_t grid[3]) {
    double inner = 1;
    for (int d = 0; d < 3; d++)
        inner *= grid[d] > 1 ? 1 - 1.0 / grid[d] : 1;
    return 1 - inner <= LAST_SHARE;
}

/* Whether a skeleton of a start whose blocks are alike at this case has blocks that are alike at
 * the first timed case, which each candidate runs first: so they are alike here, but for the last
 * ones. */
static ev_status is_alike_at_first(const fitness *f, const fit_case *c, const candidate *who,
                                   const uint32_t grid[3], bool *alike, ev_error *err) {
    const fit_case *first = first_timed(f);
    *alike = false;
    if (first == NULL || first == c || c->now.step != NULL || !has_few_last(grid))
        return EV_OK;
    return is_alike_at(f, first, who, who->macro_count, alike, err);
}

/* Whether two candidates have one start, the same macros and the start's division of the work. */
static bool same_division(const candidate *a, const candidate *b) {
    bool same = a->start == b->start && a->macro_count == b->macro_count && a->division == NULL &&
                b->division == NULL;
    for (size_t i = 0; same && i < a->macro_count; i++)
        same = strcmp(a->macros[i].name, b->macros[i].name) == 0 &&
               a->macros[i].value.whole == b->macros[i].value.whole;
    return same;
}

/* Where the code comes from that the pass runs. */
typedef enum subject_source { BY_ITSELF, BY_BASELINE, BY_START } subject_source;

static subject_source source_of(const fitness *f, const candidate *who) {
    if (who->is_unmodified)
        return BY_ITSELF;
    if (same_division(who, &f->baseline))
        return BY_BASELINE;
    return who->divided != NULL ? BY_START : BY_ITSELF;
}

static ev_status walk_with(walk *w, size_t limit, fit_paths *p, ev_error *err) {
    ev_status status = walk_grid(w, limit, p, err);
    free(w->known);
    free(w->weights);
    w->known = NULL;
    w->weights = NULL;
    return status;
}

/* The kernel of the launch under way, of a plan's. */
static device_kernel *kernel_under_way(const fit_case *c, device_kernel *of) {
    return c->now.step != NULL ? device_kernel_of(of, c->now.step->launch) : of;
}

/* Builds and loads the start. A start that does not build or load has no paths: even. */
static ev_status walk_start(walk *w, const candidate *who, size_t limit, fit_paths *p,
                            ev_error *err) {
    ev_str ptx = EV_STR_EMPTY;
    device_kernel *kernel = NULL;
    ev_error why = {.status = EV_OK};
    ev_status status = who->divided(who->unmodified_context, &ptx, err);
    ev_status loaded = EV_BAD;
    if (status == EV_OK && ptx.length > 0)
        loaded = device_load_plan(w->f->d, ev_str_text(&ptx), ptx.length, who->plan, &kernel, &why);
    if (loaded == EV_INFRA)
        status = ev_fail(err, EV_INFRA, "%s", why.text);
    if (loaded == EV_OK) {
        w->kernel = kernel_under_way(w->c, kernel);
        status = walk_with(w, limit, p, err);
    }
    device_unload(kernel);
    ev_str_free(&ptx);
    return status;
}

static ev_status keep(fitness *f, fit_paths *p, ev_error *err) {
    fit_paths **more = realloc(f->paths, (f->path_count + 1) * sizeof(*more));
    if (more == NULL)
        return ev_fail_memory(err, (f->path_count + 1) * sizeof(*more));
    f->paths = more;
    f->paths[f->path_count++] = p;
    return EV_OK;
}

/* `alike`: see is_alike_by_default. */
static ev_status make(fitness *f, fit_case *c, const fit_trial *trial, const device_launch *launch,
                      size_t limit, bool alike, fit_paths *p, ev_error *err) {
    walk w = {.f = f,
              .c = c,
              .who = trial->who,
              .start_is_alike = alike,
              .kernel = trial->kernel,
              .launch = *launch,
              .blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2]};
    w.launch.checks = VM_CHECK_NONE;
    w.launch.jobs = 0;
    w.launch.notes_stores = false;
    w.launch.executions = NULL;
    w.launch.stalls = NULL;
    w.launch.sites = NULL;
    switch (source_of(f, trial->who)) {
    case BY_START:
        return walk_start(&w, trial->who, limit, p, err);
    case BY_BASELINE:
        w.kernel = kernel_under_way(c, f->baseline_kernel);
        break;
    case BY_ITSELF:
        break;
    }
    return walk_with(&w, limit, p, err);
}

/* Takes `key` over. */
static ev_status add(fitness *f, fit_case *c, const fit_trial *trial, const device_launch *launch,
                     size_t limit, bool alike, char *key, const fit_paths **out, ev_error *err) {
    fit_paths *p = calloc(1, sizeof *p);
    if (p == NULL) {
        free(key);
        return ev_fail_memory(err, sizeof *p);
    }
    p->key = key;
    p->at = c;
    ev_status status = make(f, c, trial, launch, limit, alike, p, err);
    if (status == EV_OK)
        status = keep(f, p, err);
    if (status != EV_OK) {
        free(key);
        free(p);
        return status;
    }
    *out = p;
    return EV_OK;
}

ev_status fit_paths_get(fitness *f, fit_case *c, const fit_trial *trial,
                        const device_launch *launch, size_t limit, const fit_paths **out,
                        ev_error *err) {
    static const fit_paths even = {.grid = FITNESS_GRID_EVEN};
    const candidate *who = trial->who;
    bool alike = false;
    *out = &even;
    EV_TRY(is_alike_by_default(f, c, who, &alike, err));
    if (alike && who->division == NULL)
        return EV_OK;
    bool own = source_of(f, who) == BY_ITSELF && !who->is_unmodified, known_alike = false;
    if (alike && !own)
        EV_TRY(is_alike_at_first(f, c, who, launch->grid, &known_alike, err));
    if (known_alike)
        return EV_OK;
    char *key = key_of(c, who, who->macro_count, own);
    if (key == NULL)
        return ev_fail_memory(err, 0);
    const fit_paths *known = find(f, c, key);
    if (known == NULL)
        return add(f, c, trial, launch, limit, alike, key, out, err);
    free(key);
    *out = known;
    return EV_OK;
}

const char *fitness_grid_name(fitness_grid grid) {
    switch (grid) {
    case FITNESS_GRID_EVEN:
        return "even";
    case FITNESS_GRID_UNEVEN:
        return "uneven";
    case FITNESS_GRID_WAITS:
        break;
    }
    return "waits";
}

void fit_paths_free(fitness *f) {
    for (size_t i = 0; i < f->path_count; i++) {
        free(f->paths[i]->key);
        free(f->paths[i]);
    }
    free(f->paths);
    f->paths = NULL;
    f->path_count = 0;
}
