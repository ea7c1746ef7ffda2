/* The corpus: the table of generators, the seeds of the splits, and the filling of typed buffers.
 */
#include "corpora/corpus.h"

#include "base/hash.h"
#include "base/type_range.h"
#include "corpora/generators.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK 1024 /* elements made at a time, in double */

/* ---- splits and seeds ---- */

static const char *const SPLITS[CORPUS_SPLIT_COUNT] = {"search", "held-out", "adversarial"};

const char *corpus_split_name(corpus_split split) {
    assert((unsigned)split < CORPUS_SPLIT_COUNT);
    return SPLITS[split];
}

bool corpus_split_find(const char *name, corpus_split *out) {
    for (int i = 0; i < CORPUS_SPLIT_COUNT; i++) {
        if (strcmp(SPLITS[i], name) == 0) {
            *out = (corpus_split)i;
            return true;
        }
    }
    return false;
}

/* FNV-1a over the text and its NUL, so that ("ab", "c") and ("a", "bc") differ. */
static uint64_t hash_text(uint64_t hash, const char *text) {
    for (;; text++) {
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
        if (*text == '\0')
            return ev_mix64(hash);
    }
}

uint64_t corpus_seed(corpus_split split, const char *task, const char *case_name,
                     const char *argument, uint32_t fresh) {
    assert((unsigned)split < CORPUS_SPLIT_COUNT);
    uint64_t hash = hash_text(0xcbf29ce484222325u, task);
    hash = hash_text(hash, case_name);
    hash = hash_text(hash, argument);
    hash = ev_mix64(hash ^ fresh);
    return (uint64_t)(split + 1) << 62 | hash >> 2;
}

/* ---- the table ---- */

#define P(name, otherwise, low, high, doc) {name, otherwise, low, high, doc}
#define COUNT(...) (sizeof((const corpus_parameter[]){__VA_ARGS__}) / sizeof(corpus_parameter))

static const corpus_generator GENERATORS[] = {
#define CORPUS_GENERATOR(name, begin, check, doc, ...)                                             \
    {#name, doc, COUNT(__VA_ARGS__), {__VA_ARGS__}},
#include "corpora/generators.def"
#undef CORPUS_GENERATOR
};

/* The indices of a draw are distinct, so they need as many neurons. */
static ev_status check_distinct(const corpus_request *request, ev_error *err) {
    double length = (double)request->length, each = request->values[1];
    double draw = each > 0 && each < length ? each : length;
    if (draw <= request->values[0])
        return EV_OK;
    return ev_fail(err, EV_BAD,
                   "generator %s: %.17g indices cannot be distinct among %.17g neurons; make the "
                   "buffer shorter or \"of\" larger",
                   request->generator->name, draw, request->values[0]);
}

static ev_status check_float(const corpus_request *request, ev_error *err) {
    if (ev_type_is_float(request->type))
        return EV_OK;
    return ev_fail(err, EV_BAD, "generator %s: type %s has no subnormal numbers; use a float",
                   request->generator->name, ev_type_name(request->type));
}

/* The largest and the smallest power of two that every element keeps within the type. */
static ev_status check_large(const corpus_request *request, ev_error *err) {
    ev_type type = request->type;
    int most = ev_type_is_float(type) ? ev_type_most_exponent(type) - 1 : INT_MAX;
    if (request->values[0] <= most)
        return EV_OK;
    return ev_fail(err, EV_BAD,
                   "generator %s: exponent is %g, and the largest %s is %.9g; give an exponent of "
                   "at most %d",
                   request->generator->name, request->values[0], ev_type_name(type),
                   ev_type_largest(type), most);
}

static ev_status check_tiny(const corpus_request *request, ev_error *err) {
    ev_type type = request->type;
    int most = ev_type_is_float(type) ? -ilogb(ev_type_ulp(type, 0)) : INT_MAX;
    if (request->values[0] <= most)
        return EV_OK;
    return ev_fail(err, EV_BAD,
                   "generator %s: exponent is %g, and the smallest %s above 0 is 2^-%d; give an "
                   "exponent of at most %d",
                   request->generator->name, request->values[0], ev_type_name(type), most, most);
}

typedef struct generator_code {
    corpus_begin_fn *begin;                                           /* NULL: nothing to prepare */
    ev_status (*check)(const corpus_request *request, ev_error *err); /* NULL: takes all */
    corpus_chunk_fn *chunk;
} generator_code;

static const generator_code CODE[] = {
#define CORPUS_GENERATOR(name, begin, check, doc, ...) {begin, check, name##_chunk},
#include "corpora/generators.def"
#undef CORPUS_GENERATOR
};

#define GENERATOR_COUNT (sizeof GENERATORS / sizeof GENERATORS[0])

size_t corpus_generator_count(void) {
    return GENERATOR_COUNT;
}

const corpus_generator *corpus_generator_at(size_t index) {
    assert(index < GENERATOR_COUNT);
    return &GENERATORS[index];
}

const corpus_generator *corpus_generator_find(const char *name) {
    for (size_t i = 0; i < GENERATOR_COUNT; i++) {
        if (strcmp(GENERATORS[i].name, name) == 0)
            return &GENERATORS[i];
    }
    return NULL;
}

const corpus_generator *corpus_generator_file(void) {
    static const corpus_generator file = {.name = "file", .doc = "the contents of a file"};
    return &file;
}

static const generator_code *code_of(const corpus_generator *generator) {
    assert(generator >= GENERATORS && generator < GENERATORS + GENERATOR_COUNT);
    return &CODE[generator - GENERATORS];
}

/* ---- requests ---- */

ev_status corpus_request_check(const corpus_request *request, ev_error *err) {
    const corpus_generator *generator = request->generator;
    if (request->file != NULL)
        return recorded_check(request->file->path, request->type, request->length, err);
    for (size_t i = 0; i < generator->parameter_count; i++) {
        const corpus_parameter *p = &generator->parameters[i];
        double value = request->values[i];
        if (!(value >= p->low && value <= p->high))
            return ev_fail(err, EV_BAD, "generator %s: %s is %.17g; it must be in [%.17g, %.17g]",
                           generator->name, p->name, value, p->low, p->high);
    }
    const generator_code *code = code_of(generator);
    return code->check != NULL ? code->check(request, err) : EV_OK;
}

/* ---- filling ---- */

static void store(ev_type type, const double *values, size_t count, void *out, uint64_t at) {
    if (type == EV_F32) {
        float *to = (float *)out + at;
        for (size_t i = 0; i < count; i++)
            to[i] = (float)values[i];
        return;
    }
    for (size_t i = 0; i < count; i++)
        ev_type_set(type, out, (size_t)at + i, values[i]);
}

/* Refuses a number that the type holds as an infinity: data that a task asked for would be others.
 * Integers take their nearest value. */
static ev_status check_fit(const corpus_request *request, const double *values, size_t count,
                           uint64_t first, ev_error *err) {
    if (!ev_type_is_float(request->type))
        return EV_OK;
    double largest = ev_type_largest(request->type);
    double beyond = largest + ev_type_ulp(request->type, largest) / 2; /* is rounded up */
    for (size_t i = 0; i < count; i++) {
        if (fabs(values[i]) >= beyond)
            return ev_fail(err, EV_BAD,
                           "generator %s: element %llu is %.9g, and the largest %s is %.9g; lower "
                           "its parameters",
                           request->generator->name, (unsigned long long)(first + i), values[i],
                           ev_type_name(request->type), largest);
    }
    return EV_OK;
}

ev_status corpus_fill(const corpus_request *request, uint64_t first, uint64_t count, void *out,
                      ev_error *err) {
    assert(first <= request->length && count <= request->length - first);
    EV_TRY(corpus_request_check(request, err));
    if (request->file != NULL)
        return recorded_fill(request->file, request->type, request->length, first, count, out, err);
    const generator_code *code = code_of(request->generator);
    void *state = NULL;
    if (code->begin != NULL)
        EV_TRY(code->begin(request, &state, err));
    double values[CHUNK];
    ev_status status = EV_OK;
    for (uint64_t done = 0; status == EV_OK && done < count; done += CHUNK) {
        size_t run = count - done < CHUNK ? (size_t)(count - done) : CHUNK;
        code->chunk(request, state, first + done, run, values);
        status = check_fit(request, values, run, first + done, err);
        store(request->type, values, run, out, done);
    }
    free(state);
    return status;
}
