/* Smooth random fields: what activations and images look like.
 *
 * A field is value noise: normal numbers at the corners of a lattice of `cell` pixels, bilinear
 * between them. Divided by the root of the sum of its squared weights, every pixel is standard
 * normal by itself, so that a bias sets the density of a ReLU's output exactly. The corners of the
 * two lattice rows around the current pixel row are kept, so that a normal number is drawn once per
 * cell and not once per pixel. */
#include "corpora/generators.h"

#include "corpora/random.h"

#include <math.h>
#include <stdlib.h>

/* ---- relu_mask ---- */

typedef struct mask_row {
    uint64_t at;   /* lattice row + 1; 0: nothing here yet */
    double *value; /* [columns][channels] */
} mask_row;

typedef struct relu_mask {
    size_t channels, width, cell, columns;
    double *bias; /* a channel: -infinity: dead; +infinity: always on */
    mask_row rows[2];
} relu_mask;

typedef struct channel_rank {
    uint64_t draw;
    size_t channel;
} channel_rank;

static int compare_ranks(const void *a, const void *b) {
    const channel_rank *x = a, *y = b;
    if (x->draw != y->draw)
        return x->draw < y->draw ? -1 : 1;
    return x->channel < y->channel ? -1 : x->channel > y->channel;
}

/* Channels in random order: the first are dead, and the density of the others rises evenly around
 * their mean, by up to a half either way, so that the mean of all is the density asked for. */
static void set_biases(const corpus_request *request, relu_mask *mask, channel_rank *ranks) {
    size_t channels = mask->channels;
    double density = request->values[0];
    for (size_t c = 0; c < channels; c++)
        ranks[c] = (channel_rank){random_mix(~request->seed, c), c};
    qsort(ranks, channels, sizeof *ranks, compare_ranks);
    double dead_most = floor((double)channels * (1.0 - density));
    size_t dead = (size_t)fmin(floor((double)channels * request->values[4]), dead_most);
    size_t live = channels - dead;
    double mean = live ? fmin(1.0, density * (double)channels / (double)live) : 0.0;
    double spread = mean > 0 ? fmin(0.5, 1.0 / mean - 1.0) : 0.0;
    for (size_t n = 0; n < channels; n++) {
        double place = n < dead ? 0.0 : (2.0 * (double)(n - dead) + 1.0) / (double)live - 1.0;
        double own = n < dead ? 0.0 : mean * (1.0 + spread * place);
        if (own <= 0.0)
            mask->bias[ranks[n].channel] = -INFINITY;
        else if (own >= 1.0)
            mask->bias[ranks[n].channel] = INFINITY;
        else
            mask->bias[ranks[n].channel] = random_normal_quantile(own);
    }
}

/* One block of memory, so that free() gives all of it back. */
ev_status relu_mask_begin(const corpus_request *request, void **state, ev_error *err) {
    size_t channels = (size_t)request->values[1], width = (size_t)request->values[2];
    size_t cell = (size_t)request->values[3], columns = (width - 1) / cell + 2;
    size_t doubles = channels + 2 * columns * channels;
    relu_mask *mask = malloc(sizeof *mask + doubles * sizeof(double));
    channel_rank *ranks = malloc(channels * sizeof *ranks);
    if (mask == NULL || ranks == NULL) {
        free(mask);
        free(ranks);
        return ev_fail_memory(err, sizeof *mask + doubles * sizeof(double));
    }
    double *memory = (double *)(mask + 1);
    *mask = (relu_mask){.channels = channels, .width = width, .cell = cell, .columns = columns};
    mask->bias = memory;
    mask->rows[0].value = memory + channels;
    mask->rows[1].value = memory + channels + columns * channels;
    set_biases(request, mask, ranks);
    free(ranks);
    *state = mask;
    return EV_OK;
}

static const double *mask_lattice_row(relu_mask *mask, uint64_t seed, uint64_t row) {
    mask_row *slot = &mask->rows[row & 1];
    if (slot->at != row + 1) {
        size_t count = mask->columns * mask->channels;
        uint64_t row_seed = random_mix(seed, row);
        for (size_t i = 0; i < count; i++)
            slot->value[i] = random_normal(random_mix(row_seed, i));
        slot->at = row + 1;
    }
    return slot->value;
}

static double activation(double field, double bias, double scale) {
    if (bias == INFINITY)
        return scale * (fabs(field) + 0x1p-20);
    double value = field + bias;
    return value > 0.0 ? scale * value : 0.0;
}

/* Channels [from, to) of one pixel. */
static void mask_pixel(relu_mask *mask, const corpus_request *request, uint64_t pixel, size_t from,
                       size_t to, double *out) {
    size_t x = pixel % mask->width, channels = mask->channels;
    uint64_t y = pixel / mask->width;
    const double *above = mask_lattice_row(mask, request->seed, y / mask->cell);
    const double *below = mask_lattice_row(mask, request->seed, y / mask->cell + 1);
    double fx = (double)(x % mask->cell) / (double)mask->cell;
    double fy = (double)(y % mask->cell) / (double)mask->cell;
    double a = (1 - fx) * (1 - fy), b = fx * (1 - fy), c = (1 - fx) * fy, d = fx * fy;
    double norm = 1.0 / sqrt(a * a + b * b + c * c + d * d);
    const double *left = above + x / mask->cell * channels;
    const double *low = below + x / mask->cell * channels;
    for (size_t k = from; k < to; k++) {
        double field = a * left[k] + b * left[k + channels] + c * low[k] + d * low[k + channels];
        out[k - from] = activation(field * norm, mask->bias[k], request->values[5]);
    }
}

void relu_mask_chunk(const corpus_request *request, void *state, uint64_t first, size_t count,
                     double *out) {
    relu_mask *mask = state;
    for (size_t done = 0; done < count;) {
        size_t from = (first + done) % mask->channels;
        size_t run = mask->channels - from;
        if (run > count - done)
            run = count - done;
        mask_pixel(mask, request, (first + done) / mask->channels, from, from + run, out + done);
        done += run;
    }
}

/* ---- image ---- */

#define OCTAVES 5 /* cells of 32, 16, 8, 4, 2 pixels */
#define EDGE_REACH 8

typedef struct image {
    size_t height, width;
    uint64_t at;     /* image row + 1 that `row` holds; 0: none */
    double *row;     /* [width] */
    double *lattice; /* [width / 2 + 3], one lattice row, taken between two */
} image;

ev_status image_begin(const corpus_request *request, void **state, ev_error *err) {
    size_t height = (size_t)request->values[0], width = (size_t)request->values[1];
    size_t bytes = sizeof(image) + (width + width / 2 + 3) * sizeof(double);
    image *made = malloc(bytes);
    if (made == NULL)
        return ev_fail_memory(err, bytes);
    *made = (image){.height = height, .width = width, .row = (double *)(made + 1)};
    made->lattice = made->row + width;
    *state = made;
    return EV_OK;
}

/* Adds one octave: amplitude in proportion to the cell, which makes the spectrum fall as 1/f. */
static void add_octave(image *made, uint64_t seed, uint64_t y, size_t cell) {
    uint64_t above = random_mix(seed, y / cell), below = random_mix(seed, y / cell + 1);
    double fy = (double)(y % cell) / (double)cell;
    size_t columns = (made->width - 1) / cell + 2;
    for (size_t i = 0; i < columns; i++)
        made->lattice[i] = (1 - fy) * random_normal(random_mix(above, i)) +
                           fy * random_normal(random_mix(below, i));
    double size = (double)cell / 64.0;
    for (size_t x = 0; x < made->width; x++) {
        double fx = (double)(x % cell) / (double)cell;
        const double *corner = made->lattice + x / cell;
        made->row[x] += size * ((1 - fx) * corner[0] + fx * corner[1]);
    }
}

/* Adds one edge: a step across a straight line through a random pixel, in a random direction. */
static void add_edge(image *made, uint64_t seed, uint64_t y) {
    int64_t dx = (int64_t)(random_mix(seed, 0) % (2 * EDGE_REACH + 1)) - EDGE_REACH;
    int64_t dy = (int64_t)(random_mix(seed, 1) % (2 * EDGE_REACH + 1)) - EDGE_REACH;
    int64_t x0 = (int64_t)(random_mix(seed, 2) % made->width);
    int64_t y0 = (int64_t)(random_mix(seed, 3) % made->height);
    double step = 2.0 * random_unit(random_mix(seed, 4)) - 1.0;
    int64_t side = dy * ((int64_t)y - y0);
    for (size_t x = 0; x < made->width; x++)
        made->row[x] += dx * ((int64_t)x - x0) + side > 0 ? step : 0.0;
}

static void make_image_row(image *made, const corpus_request *request, uint64_t row) {
    uint64_t plane = row / made->height, y = row % made->height;
    uint64_t seed = random_mix(request->seed, plane);
    for (size_t x = 0; x < made->width; x++)
        made->row[x] = 0.0;
    for (unsigned octave = 0; octave < OCTAVES; octave++)
        add_octave(made, random_mix(seed, octave), y, (size_t)32 >> octave);
    for (unsigned edge = 0; edge < (unsigned)request->values[2]; edge++)
        add_edge(made, random_mix(~seed, edge), y);
    for (size_t x = 0; x < made->width; x++)
        made->row[x] *= request->values[3];
    made->at = row + 1;
}

void image_chunk(const corpus_request *request, void *state, uint64_t first, size_t count,
                 double *out) {
    image *made = state;
    for (size_t i = 0; i < count; i++) {
        uint64_t row = (first + i) / made->width;
        if (made->at != row + 1)
            make_image_row(made, request, row);
        out[i] = made->row[(first + i) % made->width];
    }
}
