/* Pressure: list scheduling for few live registers (Goodman and Hsu, "Code Scheduling and Register
 * Allocation in Large Basic Blocks", 1988: the half that saves registers).
 *
 * A block is cut into segments at barriers, at accesses that an earlier one of the segment may
 * collide with, and at second definitions, so that only true dependences by register are left in a
 * segment. Of the instructions whose operands are there,
 * `order_segment` takes, in this order:
 *   FREES  its result needs no more words than the operands that end with it, or it hurries;
 *   FEEDS  all that waits for its result waits for nothing else, so that the result can end soon;
 *   REST   any other.
 * Among equals it takes the first of the text. So a load that several sums share is taken when the
 * last of these sums gets to it.
 *
 * `alone` of a register or an instruction is the XOR of those that are left: of a single one, its
 * number. */
#include "fitness/model/registers.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

enum { FREES, FEEDS, REST, CLASSES };

typedef struct reg {
    uint32_t uses, alone; /* instructions of the block, not placed, that read it */
    uint32_t seen;        /* number of the last segment that names it */
    uint32_t maker;       /* in the segment */
    uint32_t readers;     /* in the segment: the first link */
} reg;

typedef struct place {
    uint32_t waits, alone; /* operands that are not there, and their makers */
    uint32_t blocked;      /* readers of its results that wait for another one as well */
    int32_t growth;        /* words that it adds */
    uint8_t class;         /* CLASSES: it waits, or is placed */
} place;

typedef struct link {
    uint32_t reader, next;
} link;

struct model_pressure {
    const uint8_t *words;
    const pressure_step *steps;
    const uint64_t *live;
    reg *regs;
    place *places;
    link *links;
    uint64_t *ready[CLASSES]; /* bit sets of places, from the segment's first on */
    uint32_t link_count, segment;
    uint32_t first, end; /* of the segment */
};

void model_pressure_free(model_pressure *p) {
    if (p == NULL)
        return;
    free(p->regs);
    free(p->places);
    free(p->links);
    free(p->ready[0]);
    free(p);
}

model_pressure *model_pressure_new(uint32_t count, uint32_t operands, uint32_t registers,
                                   const uint8_t *words) {
    model_pressure *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    size_t set = (size_t)count / 64 + 1;
    p->words = words;
    p->regs = calloc((size_t)registers + 1, sizeof *p->regs);
    p->places = calloc((size_t)count + 1, sizeof *p->places);
    p->links = calloc((size_t)operands + 1, sizeof *p->links);
    p->ready[0] = calloc(set * CLASSES, sizeof **p->ready);
    if (p->regs == NULL || p->places == NULL || p->links == NULL || p->ready[0] == NULL) {
        model_pressure_free(p);
        return NULL;
    }
    for (int c = 1; c < CLASSES; c++)
        p->ready[c] = p->ready[0] + set * (size_t)c;
    return p;
}

/* Whether use `u` names a register that an earlier use named. */
static bool is_repeated(const pressure_step *step, unsigned u) {
    for (unsigned i = 0; i < u; i++) {
        if (step->operands[i] == step->operands[u])
            return true;
    }
    return false;
}

static bool is_live(const model_pressure *p, uint32_t r) {
    return p->live[r / 64] >> (r % 64) & 1;
}

static void count_uses(model_pressure *p, uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end; i++) {
        const pressure_step *step = &p->steps[i];
        for (unsigned k = 0; k < (unsigned)step->use_count + step->def_count; k++)
            p->regs[step->operands[k]].uses = p->regs[step->operands[k]].alone = 0;
    }
    for (uint32_t i = first; i < end; i++) {
        const pressure_step *step = &p->steps[i];
        for (unsigned u = 0; u < step->use_count; u++) {
            if (is_repeated(step, u))
                continue;
            p->regs[step->operands[u]].uses++;
            p->regs[step->operands[u]].alone ^= i;
        }
    }
}

/* ---- a segment ---- */

static reg *seen_in(model_pressure *p, uint32_t r) {
    reg *to = &p->regs[r];
    if (to->seen != p->segment) {
        to->seen = p->segment;
        to->maker = to->readers = NONE;
    }
    return to;
}

static bool redefines(const model_pressure *p, const pressure_step *step) {
    for (unsigned d = 0; d < step->def_count; d++) {
        if (p->regs[step->operands[step->use_count + d]].seen == p->segment)
            return true;
    }
    return false;
}

static void add_place(model_pressure *p, uint32_t i) {
    const pressure_step *step = &p->steps[i];
    place *at = &p->places[i];
    *at = (place){.class = CLASSES};
    for (unsigned u = 0; u < step->use_count; u++) {
        uint16_t r = step->operands[u];
        if (is_repeated(step, u))
            continue;
        reg *from = seen_in(p, r);
        at->growth -= from->uses == 1 && !is_live(p, r) ? p->words[r] : 0;
        if (from->maker == NONE)
            continue;
        at->waits++;
        at->alone ^= from->maker;
        p->links[p->link_count] = (link){i, from->readers};
        from->readers = p->link_count++;
    }
    for (unsigned d = 0; d < step->def_count; d++) {
        uint16_t r = step->operands[step->use_count + d];
        seen_in(p, r)->maker = i;
        at->growth += p->words[r];
    }
}

/* The segment from `first` on; its end. */
static uint32_t add_segment(model_pressure *p, uint32_t first, uint32_t end) {
    p->segment++;
    p->link_count = 0;
    p->first = first;
    uint32_t i = first;
    uint8_t reads = 0, writes = 0;
    do {
        reads |= p->steps[i].reads;
        writes |= p->steps[i].writes;
        add_place(p, i++);
    } while (i < end && !p->steps[i - 1].cuts && !p->steps[i].cuts &&
             (p->steps[i].reads & writes) == 0 && (p->steps[i].writes & reads) == 0 &&
             !redefines(p, &p->steps[i]));
    p->end = i;
    return i;
}

/* Puts a place that waits for nothing into its class, which may have changed. */
static void classify(model_pressure *p, uint32_t i) {
    place *at = &p->places[i];
    int class = at->blocked == 0 ? FEEDS : REST;
    if (at->growth <= 0 || p->steps[i].hurries)
        class = FREES;
    uint32_t bit = i - p->first;
    if (at->class == class)
        return;
    if (at->class < CLASSES)
        p->ready[at->class][bit / 64] &= ~(UINT64_C(1) << (bit % 64));
    at->class = (uint8_t)class;
    p->ready[class][bit / 64] |= UINT64_C(1) << (bit % 64);
}

static void find_blocked(model_pressure *p) {
    for (uint32_t i = p->first; i < p->end; i++) {
        const pressure_step *step = &p->steps[i];
        for (unsigned d = 0; d < step->def_count; d++) {
            uint32_t l = p->regs[step->operands[step->use_count + d]].readers;
            for (; l != NONE; l = p->links[l].next)
                p->places[i].blocked += p->places[p->links[l].reader].waits > 1;
        }
    }
    for (uint32_t i = p->first; i < p->end; i++) {
        if (p->places[i].waits == 0)
            classify(p, i);
    }
}

/* ---- placing ---- */

static uint32_t take(model_pressure *p) {
    uint32_t words = (p->end - p->first + 63) / 64;
    for (int c = 0; c < CLASSES; c++) {
        for (uint32_t w = 0; w < words; w++) {
            if (p->ready[c][w] == 0)
                continue;
            uint32_t i = p->first + w * 64 + (uint32_t)__builtin_ctzll(p->ready[c][w]);
            p->ready[c][w] &= p->ready[c][w] - 1;
            p->places[i].class = CLASSES;
            return i;
        }
    }
    return NONE;
}

static void change(model_pressure *p, uint32_t i) {
    if (p->places[i].class < CLASSES)
        classify(p, i);
}

/* The last reader of a register frees it. */
static void end_use(model_pressure *p, uint32_t i, uint16_t r) {
    reg *from = &p->regs[r];
    from->uses--;
    from->alone ^= i;
    if (from->uses != 1 || is_live(p, r) || from->alone < p->first || from->alone >= p->end)
        return;
    p->places[from->alone].growth -= p->words[r];
    change(p, from->alone);
}

static void give(model_pressure *p, uint32_t i, uint32_t reader) {
    place *to = &p->places[reader];
    to->waits--;
    to->alone ^= i;
    if (to->waits == 0) {
        classify(p, reader);
    } else if (to->waits == 1 && p->places[to->alone].blocked > 0) {
        p->places[to->alone].blocked--;
        change(p, to->alone);
    }
}

static void put(model_pressure *p, uint32_t i) {
    const pressure_step *step = &p->steps[i];
    for (unsigned u = 0; u < step->use_count; u++) {
        if (!is_repeated(step, u))
            end_use(p, i, step->operands[u]);
    }
    for (unsigned d = 0; d < step->def_count; d++) {
        uint32_t l = p->regs[step->operands[step->use_count + d]].readers;
        for (; l != NONE; l = p->links[l].next)
            give(p, i, p->links[l].reader);
    }
}

void model_pressure_order(model_pressure *p, const pressure_step *steps, uint32_t first,
                          uint32_t end, const uint64_t *live, uint32_t *order) {
    p->steps = steps;
    p->live = live;
    count_uses(p, first, end);
    for (uint32_t at = first; at < end;) {
        uint32_t behind = add_segment(p, at, end);
        find_blocked(p);
        while (at < behind) {
            uint32_t i = take(p);
            order[at++] = i;
            put(p, i);
        }
    }
}
