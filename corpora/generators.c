/* The generators whose elements stand alone: each is a function of the seed and its place. */
#include "corpora/generators.h"

#include "corpora/random.h"

#include <math.h>
#include <stdlib.h>

/* Streams of one seed that must not meet. */
enum { STREAM_CHANNEL = 1, STREAM_NOISE = 2, STREAM_PLACE = 3 };

static uint64_t stream_of(uint64_t seed, uint64_t stream) {
    return random_mix(~seed, stream);
}

static double sign_of(uint64_t bits) {
    return bits & 1 ? -1.0 : 1.0;
}

void uniform_chunk(const corpus_request *request, void *state, uint64_t first, size_t count,
                   double *out) {
    (void)state;
    double low = request->values[0], width = request->values[1] - low;
    uint64_t repeat = (uint64_t)request->values[2];
    uint64_t at = repeat ? first % repeat : first;
    for (size_t i = 0; i < count; i++) {
        out[i] = low + width * random_unit(random_mix(request->seed, at));
        if (++at == repeat)
            at = 0;
    }
}

void normal_chunk(const corpus_request *request, void *state, uint64_t first, size_t count,
                  double *out) {
    (void)state;
    double mean = request->values[0], sigma = request->values[1];
    for (size_t i = 0; i < count; i++)
        out[i] = mean + sigma * random_normal(random_mix(request->seed, first + i));
}

static void fill_same(double value, size_t count, double *out) {
    for (size_t i = 0; i < count; i++)
        out[i] = value;
}

void constant_chunk(const corpus_request *request, void *state, uint64_t first, size_t count,
                    double *out) {
    (void)state;
    (void)first;
    fill_same(request->values[0], count, out);
}

void zeros_chunk(const corpus_request *request, void *state, uint64_t first, size_t count,
                 double *out) {
    (void)request;
    (void)state;
    (void)first;
    fill_same(0.0, count, out);
}

void ones_chunk(const corpus_request *request, void *state, uint64_t first, size_t count,
                double *out) {
    (void)request;
    (void)state;
    (void)first;
    fill_same(1.0, count, out);
}

void weights_chunk(const corpus_request *request, void *state, uint64_t first, size_t count,
                   double *out) {
    (void)state;
    double sigma = request->values[1] / sqrt(request->values[0]);
    uint64_t repeat = (uint64_t)request->values[2];
    uint64_t at = repeat ? first % repeat : first;
    for (size_t i = 0; i < count; i++) {
        out[i] = sigma * random_normal(random_mix(request->seed, at));
        if (++at == repeat)
            at = 0;
    }
}

ev_status gradient_begin(const corpus_request *request, void **state, ev_error *err) {
    size_t channels = (size_t)request->values[2];
    double spread = request->values[1];
    uint64_t seed = stream_of(request->seed, STREAM_CHANNEL);
    double *scales = malloc(channels * sizeof *scales);
    if (scales == NULL)
        return ev_fail_memory(err, channels * sizeof *scales);
    for (size_t c = 0; c < channels; c++) {
        double normal = random_normal(random_mix(seed, c));
        scales[c] = request->values[0] * random_exp(spread * normal - spread * spread / 2);
    }
    *state = scales;
    return EV_OK;
}

void gradient_chunk(const corpus_request *request, void *state, uint64_t first, size_t count,
                    double *out) {
    const double *scales = state;
    uint64_t channels = (uint64_t)request->values[2], channel = first % channels;
    uint64_t places = stream_of(request->seed, STREAM_PLACE);
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = random_mix(request->seed, first + i);
        double size = -random_log(random_unit(bits)) * 0.70710678118654752;
        bool live = request->values[3] >= 1 ||
                    random_unit(random_mix(places, (first + i) / channels)) < request->values[3];
        out[i] = live ? sign_of(bits) * size * scales[channel] : 0;
        if (++channel == channels)
            channel = 0;
    }
}

void rank_gradient_chunk(const corpus_request *request, void *state, uint64_t first, size_t count,
                         double *out) {
    (void)state;
    uint64_t length = (uint64_t)request->values[0], at = first % length;
    double scale = request->values[1], noise = request->values[2];
    uint64_t own = stream_of(request->seed, STREAM_NOISE);
    for (size_t i = 0; i < count; i++) {
        double shared = random_normal(random_mix(request->seed, at));
        out[i] = scale * (shared + noise * random_normal(random_mix(own, first + i)));
        if (++at == length)
            at = 0;
    }
}

/* Selection sampling (Knuth, The Art of Computer Programming, vol. 2, 3.4.2, algorithm S): each
 * neuron is kept with probability (still wanted) / (still to come), which ends at exactly k. */
static void draw_kept(uint64_t seed, uint64_t draw, uint64_t all, uint64_t wanted, uint32_t *kept) {
    for (uint64_t j = 0, n = 0; n < wanted; j++) {
        uint64_t bits = random_mix(seed, draw * all + j) >> 32; /* all is below 2^32 */
        if ((bits * (all - j)) >> 32 < wanted - n)
            kept[n++] = (uint32_t)j;
    }
}

static void copy_indices(const uint32_t *all, uint64_t first, size_t count, double *out) {
    for (size_t i = 0; i < count; i++)
        out[i] = all[first + i];
}

ev_status dropout_indices_begin(const corpus_request *request, void **state, ev_error *err) {
    uint64_t all = (uint64_t)request->values[0], wanted = request->length;
    uint64_t each = request->values[1] > 0 ? (uint64_t)request->values[1] : wanted;
    uint32_t *kept = malloc((wanted + 1) * sizeof *kept);
    if (kept == NULL)
        return ev_fail_memory(err, (wanted + 1) * sizeof *kept);
    for (uint64_t first = 0, draw = 0; first < wanted; first += each, draw++) {
        uint64_t left = wanted - first;
        draw_kept(request->seed, draw, all, left < each ? left : each, kept + first);
    }
    *state = kept;
    return EV_OK;
}

void dropout_indices_chunk(const corpus_request *request, void *state, uint64_t first, size_t count,
                           double *out) {
    (void)request;
    copy_indices(state, first, count, out);
}

/* A row's part of the entries; 0: the row is empty. */
static double row_weight(const corpus_request *request, uint64_t row) {
    double spread = request->values[1];
    uint64_t places = stream_of(request->seed, STREAM_PLACE);
    if (random_unit(random_mix(places, row)) < request->values[2])
        return 0;
    return random_exp(spread * random_normal(random_mix(request->seed, row)));
}

/* The rows are as long as their weights want, rounded where a row ends. If all rows are empty, the
 * last one has the entries. */
ev_status row_offsets_begin(const corpus_request *request, void **state, ev_error *err) {
    uint64_t length = request->length;
    double of = request->values[0], all = 0, sum = 0;
    uint32_t *ends = calloc(length + 1, sizeof *ends);
    if (ends == NULL)
        return ev_fail_memory(err, (length + 1) * sizeof *ends);
    for (uint64_t row = 1; row < length; row++)
        all += row_weight(request, row - 1);
    for (uint64_t row = 1; row < length && all > 0; row++) {
        sum += row_weight(request, row - 1);
        ends[row] = (uint32_t)floor(of * (sum / all));
    }
    if (length > 1)
        ends[length - 1] = (uint32_t)of;
    *state = ends;
    return EV_OK;
}

void row_offsets_chunk(const corpus_request *request, void *state, uint64_t first, size_t count,
                       double *out) {
    (void)request;
    copy_indices(state, first, count, out);
}

void alternating_chunk(const corpus_request *request, void *state, uint64_t first, size_t count,
                       double *out) {
    (void)state;
    double magnitude = request->values[0], jitter = request->values[1];
    for (size_t i = 0; i < count; i++) {
        double size =
            magnitude * (1.0 - jitter * random_unit(random_mix(request->seed, first + i)));
        out[i] = (first + i) & 1 ? -size : size;
    }
}

static void fill_power(const corpus_request *request, int exponent, uint64_t first, size_t count,
                       double *out) {
    double power = ldexp(1.0, exponent);
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = random_mix(request->seed, first + i);
        double size = 1.0 + (double)(int64_t)(bits >> 42) * 0x1p-22; /* exact in every f32 */
        out[i] = sign_of(bits) * power * size;
    }
}

void large_chunk(const corpus_request *request, void *state, uint64_t first, size_t count,
                 double *out) {
    (void)state;
    fill_power(request, (int)request->values[0], first, count, out);
}

void tiny_chunk(const corpus_request *request, void *state, uint64_t first, size_t count,
                double *out) {
    (void)state;
    fill_power(request, -(int)request->values[0], first, count, out);
}

/* Fraction bits and smallest subnormal's exponent of a float type. */
static int denormal_bits(ev_type type, int *least) {
    switch (type) {
    case EV_F16:
        *least = -24;
        return 10;
    case EV_BF16:
        *least = -133;
        return 7;
    case EV_F64:
        *least = -1074;
        return 52;
    default:
        *least = -149;
        return 23;
    }
}

void denormal_chunk(const corpus_request *request, void *state, uint64_t first, size_t count,
                    double *out) {
    (void)state;
    int least = 0;
    int fraction = denormal_bits(request->type, &least);
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = random_mix(request->seed, first + i);
        uint64_t steps = bits >> (64 - fraction);
        out[i] = sign_of(bits) * ldexp((double)(steps ? steps : 1), least);
    }
}

void one_hot_chunk(const corpus_request *request, void *state, uint64_t first, size_t count,
                   double *out) {
    (void)state;
    uint64_t period = (uint64_t)request->values[0];
    uint64_t seed = stream_of(request->seed, STREAM_PLACE);
    for (size_t i = 0; i < count; i++) {
        uint64_t stretch = (first + i) / period;
        out[i] = (first + i) % period == random_mix(seed, stretch) % period ? 1.0 : 0.0;
    }
}
