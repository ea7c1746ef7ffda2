/* The built-in oracles against the plainest code in long double, on every check case of their
 * tasks, and by ranges. */
#include "tests/kernels/task_inputs.h"

#include <math.h>

typedef long double real;

/* What element `at` of the output should be. */
typedef real reference(const task_inputs *in, const char *output, uint64_t at);

/* Of any float type. */
static real element(const task_inputs *in, const char *name, uint64_t at) {
    return (real)evoke_element(&in->arguments[task_inputs_index(in, name)], at);
}

static real number(const task_inputs *in, const char *name) {
    return (real)in->arguments[task_inputs_index(in, name)].value;
}

static real bp_reference(const task_inputs *in, const char *output, uint64_t at) {
    (void)output;
    uint64_t N = whole(in, "N"), K = whole(in, "K");
    real sum = 0;
    for (uint64_t k = 0; k < K; k++)
        sum += element(in, "dY", at / N * K + k) * element(in, "W", k * N + at % N);
    return element(in, "X", at) > 0 ? sum : 0;
}

static real rows_reference(const task_inputs *in, const char *output, uint64_t at) {
    (void)output;
    uint64_t N = whole(in, "N"), K = whole(in, "K");
    real sum = 0;
    for (uint64_t k = 0; k < K; k++)
        sum += element(in, "dY", at / N * K + k) * element(in, "W", k * N + at % N);
    return sum;
}

static real weight_reference(const task_inputs *in, const char *output, uint64_t at) {
    (void)output;
    uint64_t C = whole(in, "channels"), O = whole(in, "outputs"), F = whole(in, "filter");
    uint64_t S = whole(in, "side"), P = S + F - 1, images = whole(in, "M") / S / S;
    uint64_t c = at % C, s = at / C % F, r = at / C / F % F, o = at / C / F / F % O;
    uint64_t part = at / C / F / F / O;
    real sum = 0;
    for (uint64_t n = 0; n < images; n++) {
        for (uint64_t y = 0; y < S; y++) {
            for (uint64_t x = 0; x < S; x++) {
                uint64_t pixel = (n * S + y) * S + x;
                if (pixel / whole(in, "part") == part)
                    sum += element(in, "dY", pixel * O + o) *
                           element(in, "X", ((n * P + y + r) * P + x + s) * C + c);
            }
        }
    }
    return sum;
}

static real lstm_gate(const task_inputs *in, uint64_t b, uint64_t row) {
    uint64_t H = whole(in, "H"), k = whole(in, "k");
    const int *kept = in->arguments[task_inputs_index(in, "kept")].data;
    real sum = 0;
    for (uint64_t n = 0; n < k; n++)
        sum += element(in, "X", b * H + (uint64_t)kept[n]) *
               element(in, "W", row * H + (uint64_t)kept[n]);
    sum = sum * number(in, "scale") + element(in, "G", b * 4 * H + row);
    return row / H == 2 ? tanhl(sum) : 1 / (1 + expl(-sum));
}

static real lstm_reference(const task_inputs *in, const char *output, uint64_t at) {
    uint64_t H = whole(in, "H");
    if (strcmp(output, "gates") == 0)
        return lstm_gate(in, at / (4 * H), at % (4 * H));
    uint64_t b = at / H, j = at % H;
    real c = lstm_gate(in, b, H + j) * element(in, "C", at) +
             lstm_gate(in, b, j) * lstm_gate(in, b, 2 * H + j);
    return strcmp(output, "C_out") == 0 ? c : lstm_gate(in, b, 3 * H + j) * tanhl(c);
}

/* All steps of a sequence at a case: gates, then cells, then outputs. */
typedef struct lstm_steps {
    const task_case *c;
    real gates[16384], cells[4096], outputs[4096];
} lstm_steps;

static void lstm_run(const task_inputs *in, lstm_steps *s) {
    uint64_t B = whole(in, "B"), H = whole(in, "H"), k = whole(in, "k");
    uint64_t units = in->arguments[task_inputs_index(in, "H_out")].count;
    const int *kept = in->arguments[task_inputs_index(in, "kept")].data;
    assert_true(units <= sizeof s->cells / sizeof s->cells[0]);
    for (uint64_t at = 0; at < units; at++) { /* at: step, sequence, unit */
        uint64_t t = at / (B * H), b = at / H % B, j = at % H;
        for (uint64_t gate = 0; gate < 4; gate++) {
            uint64_t row = (gate * H + j) * H;
            real sum = 0;
            for (uint64_t n = 0; n < k; n++)
                sum += element(in, "X", at - j + (uint64_t)kept[t * k + n]) *
                       element(in, "W", row + (uint64_t)kept[t * k + n]);
            sum = sum * number(in, "scale") + element(in, "bias", gate * H + j);
            for (uint64_t n = 0; n < H; n++)
                sum += element(in, "U", row + n) *
                       (t > 0 ? s->outputs[at - j - B * H + n] : element(in, "H_in", b * H + n));
            s->gates[4 * (at - j) + gate * H + j] = gate == 2 ? tanhl(sum) : 1 / (1 + expl(-sum));
        }
        const real *gates = &s->gates[4 * (at - j) + j];
        real before = t > 0 ? s->cells[at - B * H] : element(in, "C_in", b * H + j);
        s->cells[at] = gates[H] * before + gates[0] * gates[2 * H];
        s->outputs[at] = gates[3 * H] * tanhl(s->cells[at]);
    }
    s->c = in->c;
}

static real lstm_sequence_reference(const task_inputs *in, const char *output, uint64_t at) {
    static lstm_steps steps; /* of the case that was asked for last */
    if (steps.c != in->c)
        lstm_run(in, &steps);
    if (strcmp(output, "gates") == 0)
        return steps.gates[at];
    return strcmp(output, "C_out") == 0 ? steps.cells[at] : steps.outputs[at];
}

static bool is_kept(const task_inputs *in, uint64_t h) {
    const int *kept = in->arguments[task_inputs_index(in, "kept")].data;
    bool found = false;
    for (uint64_t n = 0; n < whole(in, "k"); n++)
        found = found || (uint64_t)kept[n] == h;
    return found;
}

static real lstm_data_reference(const task_inputs *in, const char *output, uint64_t at) {
    (void)output;
    uint64_t H = whole(in, "H"), b = at / H, h = at % H;
    real sum = 0;
    for (uint64_t j = 0; j < 4 * H; j++)
        sum += element(in, "dG", b * 4 * H + j) * element(in, "W", j * H + h);
    return is_kept(in, h) ? sum * number(in, "scale") : 0;
}

static real lstm_weight_reference(const task_inputs *in, const char *output, uint64_t at) {
    (void)output;
    uint64_t H = whole(in, "H"), j = at / H, h = at % H;
    real sum = 0;
    for (uint64_t b = 0; b < whole(in, "B"); b++)
        sum += element(in, "dG", b * 4 * H + j) * element(in, "X", b * H + h);
    return (real)floats(in, "dW")[at] + (is_kept(in, h) ? sum * number(in, "scale") : 0);
}

/* The sum over the ranks; what the launch's half of the stage, and the flags, hold after it. */
static real oneshot_reference(const task_inputs *in, const char *output, uint64_t at) {
    uint64_t n = whole(in, "n"), ranks = whole(in, "ranks"), epoch = whole(in, "epoch");
    uint64_t pitch = (n + 3) / 4 * 4, half = at % (2 * pitch) / pitch, i = at % pitch;
    real sum = 0;
    if (strcmp(output, "flags") == 0)
        return (real)epoch;
    if (strcmp(output, "stage") == 0)
        return (real)(half == epoch % 2 && i < n ? floats(in, "input")[at / (2 * pitch) * n + i]
                                                 : floats(in, "stage")[at]);
    for (uint64_t rank = 0; rank < ranks; rank++)
        sum += (real)floats(in, "input")[rank * n + at % n];
    return sum;
}

/* A slice starts at the rank of its number, and each rank passes it on to the next. */
static real ring_reference(const task_inputs *in, const char *output, uint64_t at) {
    uint64_t n = whole(in, "n"), ranks = whole(in, "ranks"), fours = (n + 3) / 4;
    uint64_t slice = ((n + ranks - 1) / ranks + 3) / 4 * 4, rank = at / (4 * fours);
    bool is_inbox = strcmp(output, "inbox") == 0;
    uint64_t i = is_inbox ? at % (4 * fours) : at % n, from = i / slice;
    real sum = 0;
    if (strcmp(output, "flags") == 0)
        return (real)(whole(in, "epoch") * 2 * (ranks - 1));
    if (is_inbox && (i >= n || from == rank))
        return (real)floats(in, "inbox")[at];
    for (uint64_t k = 0; k < ranks && (!is_inbox || from != rank); k++, from = (from + 1) % ranks)
        sum += (real)floats(in, "input")[from * n + i];
    return sum;
}

static real pointwise_gate(const task_inputs *in, uint64_t b, uint64_t row) {
    uint64_t H = whole(in, "H"), at = b * 4 * H + row;
    real x = (real)floats(in, "Z")[at] + (real)floats(in, "R")[at] + (real)floats(in, "bias")[row];
    return row / H == 2 ? tanhl(x) : 1 / (1 + expl(-x));
}

static real pointwise_reference(const task_inputs *in, const char *output, uint64_t at) {
    uint64_t H = whole(in, "H"), b = at / H, j = at % H;
    if (strcmp(output, "gates") == 0)
        return pointwise_gate(in, at / (4 * H), at % (4 * H));
    real c = pointwise_gate(in, b, H + j) * (real)floats(in, "C")[at] +
             pointwise_gate(in, b, j) * pointwise_gate(in, b, 2 * H + j);
    return strcmp(output, "C_out") == 0 ? c : pointwise_gate(in, b, 3 * H + j) * tanhl(c);
}

static real backward_reference(const task_inputs *in, const char *output, uint64_t at) {
    uint64_t H = whole(in, "H");
    bool is_cell = strcmp(output, "dC_in") == 0;
    uint64_t b = is_cell ? at / H : at / (4 * H), j = at % H;
    const float *gates = floats(in, "gates") + b * 4 * H + j;
    real i = (real)gates[0], f = (real)gates[H], g = (real)gates[2 * H], o = (real)gates[3 * H];
    real t = tanhl((real)floats(in, "C_out")[b * H + j]), dh = (real)floats(in, "dH")[b * H + j];
    real dc = (real)floats(in, "dC")[b * H + j] + dh * o * (1 - t * t);
    const real d[4] = {dc * g * i * (1 - i), dc * (real)floats(in, "C")[b * H + j] * f * (1 - f),
                       dc * i * (1 - g * g), dh * t * o * (1 - o)};
    return is_cell ? dc * f : d[at / H % 4];
}

static real conv_reference(const task_inputs *in, const char *output, uint64_t at) {
    (void)output;
    uint64_t C = whole(in, "channels"), O = whole(in, "outputs");
    uint64_t H = whole(in, "height"), W = whole(in, "width");
    uint64_t x = at % (W - 4), y = at / (W - 4) % (H - 4), o = at / (W - 4) / (H - 4) % O;
    uint64_t n = at / (W - 4) / (H - 4) / O;
    real sum = 0;
    for (uint64_t c = 0; c < C; c++) {
        for (uint64_t i = 0; i < 25; i++)
            sum += (real)floats(in, "F")[(o * C + c) * 25 + i] *
                   (real)floats(in, "X")[((n * C + c) * H + y + i / 5) * W + x + i % 5];
    }
    return sum;
}

static real conv_data_reference(const task_inputs *in, const char *output, uint64_t at) {
    (void)output;
    uint64_t C = whole(in, "channels"), O = whole(in, "outputs");
    uint64_t H = whole(in, "height"), W = whole(in, "width");
    uint64_t x = at % W, y = at / W % H, c = at / W / H % C, n = at / W / H / C;
    real sum = 0;
    for (uint64_t o = 0; o < O; o++) {
        for (uint64_t i = 0; i < 25; i++) {
            uint64_t row = y - i / 5, column = x - i % 5; /* wrapped around below 0 */
            if (row < H - 4 && column < W - 4)
                sum += (real)floats(in, "F")[(o * C + c) * 25 + i] *
                       (real)floats(in, "dY")[((n * O + o) * (H - 4) + row) * (W - 4) + column];
        }
    }
    return sum;
}

/* By the inputs: X[n, c, y, x] meets dY[n, o, y - i, x - j]. */
static real conv_filter_reference(const task_inputs *in, const char *output, uint64_t at) {
    (void)output;
    uint64_t C = whole(in, "channels"), O = whole(in, "outputs"), N = whole(in, "images");
    uint64_t H = whole(in, "height"), W = whole(in, "width");
    uint64_t j = at % 5, i = at / 5 % 5, c = at / 25 % C, o = at / 25 / C;
    real sum = 0;
    for (uint64_t k = 0; k < N * H * W; k++) {
        uint64_t n = k / W / H, row = k / W % H - i, column = k % W - j; /* wrapped below 0 */
        if (row < H - 4 && column < W - 4)
            sum += (real)floats(in, "X")[(n * C + c) * H * W + k % (H * W)] *
                   (real)floats(in, "dY")[((n * O + o) * (H - 4) + row) * (W - 4) + column];
    }
    return sum;
}

/* By diagonals of a block: w[d] meets x[s] where the output is s + d, around the end. */
static real circulant_reference(const task_inputs *in, const char *output, uint64_t at) {
    (void)output;
    uint64_t p = whole(in, "p"), q = whole(in, "q"), k = whole(in, "k");
    uint64_t r = at % k, i = at / k % p, b = at / k / p;
    real sum = 0;
    for (uint64_t j = 0; j < q; j++) {
        for (uint64_t d = 0; d < k; d++)
            sum += (real)floats(in, "w")[(i * q + j) * k + d] *
                   (real)floats(in, "x")[(b * q + j) * k + (r + k - d) % k];
    }
    return sum;
}

/* By diagonals, too: w[d] met dY[s + d] on the way forward. */
static real circulant_data_reference(const task_inputs *in, const char *output, uint64_t at) {
    (void)output;
    uint64_t p = whole(in, "p"), q = whole(in, "q"), k = whole(in, "k");
    uint64_t s = at % k, j = at / k % q, b = at / k / q;
    real sum = 0;
    for (uint64_t i = 0; i < p; i++) {
        for (uint64_t d = 0; d < k; d++)
            sum += (real)floats(in, "w")[(i * q + j) * k + d] *
                   (real)floats(in, "dY")[(b * p + i) * k + (s + d) % k];
    }
    return sum;
}

/* By outputs: dY[r] met w[d] where the input was r - d, around the end. */
static real circulant_weight_reference(const task_inputs *in, const char *output, uint64_t at) {
    (void)output;
    uint64_t batch = whole(in, "batch"), p = whole(in, "p"), q = whole(in, "q"), k = whole(in, "k");
    uint64_t d = at % k, j = at / k % q, i = at / k / q;
    real sum = 0;
    for (uint64_t b = 0; b < batch; b++) {
        for (uint64_t r = 0; r < k; r++)
            sum += (real)floats(in, "dY")[(b * p + i) * k + r] *
                   (real)floats(in, "x")[(b * q + j) * k + (r + k - d) % k];
    }
    return sum;
}

static real adam_reference(const task_inputs *in, const char *output, uint64_t at) {
    uint64_t n = whole(in, "n"), ranks = whole(in, "ranks"), i = at % n;
    real g = 0, b1 = number(in, "beta1"), b2 = number(in, "beta2");
    for (uint64_t r = 0; r < ranks; r++)
        g += (real)floats(in, "gradient")[r * n + i] / (real)ranks;
    real m = b1 * (real)floats(in, "m")[i] + (1 - b1) * g;
    real v = b2 * (real)floats(in, "v")[i] + (1 - b2) * g * g;
    if (strcmp(output, "m") == 0 || strcmp(output, "v") == 0)
        return output[0] == 'm' ? m : v;
    real root = sqrtl(v / number(in, "correction2"));
    return (real)floats(in, "parameter")[i] -
           number(in, "rate") * m / number(in, "correction1") / (root + number(in, "epsilon"));
}

static real sgd_reference(const task_inputs *in, const char *output, uint64_t at) {
    uint64_t n = whole(in, "n"), ranks = whole(in, "ranks"), i = at % n;
    real g = 0, p = (real)floats(in, "parameter")[i];
    for (uint64_t r = 0; r < ranks; r++)
        g += (real)floats(in, "gradient")[r * n + i] / (real)ranks;
    real v = number(in, "momentum") * (real)floats(in, "v")[i] + g + number(in, "decay") * p;
    return output[0] == 'v' ? v : p - number(in, "rate") * v;
}

static uint64_t shard_of(const task_inputs *in) {
    uint64_t n = whole(in, "n"), ranks = whole(in, "ranks");
    return ((n + ranks - 1) / ranks + 3) / 4 * 4;
}

/* What all fused collectives leave in flags and stages, and behind the last parameter; true: it is
 * such an element. */
static bool left_behind(const task_inputs *in, const char *output, uint64_t at, real *value) {
    uint64_t n = whole(in, "n"), ranks = whole(in, "ranks"), shard = shard_of(in), i = at % shard;
    bool is_stage = strcmp(output, "stage") == 0, is_flag = strcmp(output, "flags") == 0;
    bool is_moment = strcmp(output, "m") == 0 || strcmp(output, "v") == 0;
    if (is_flag)
        *value = (real)(2 * whole(in, "epoch"));
    if (is_stage) {
        uint64_t from = at / shard % ranks, owner = at / shard / ranks;
        bool is_sent = from != owner && owner * shard + i < n;
        *value = (real)(is_sent ? floats(in, "gradient")[from * n + owner * shard + i]
                                : floats(in, "stage")[at]);
    }
    if (is_moment && at >= n)
        *value = (real)floats(in, output)[at];
    return is_flag || is_stage || (is_moment && at >= n);
}

/* Decoupled decay: the parameter shrinks by rate * decay beside Adam's step. */
static real fused_reference(const task_inputs *in, const char *output, uint64_t at) {
    real next = 0;
    if (left_behind(in, output, at, &next))
        return next;
    next = adam_reference(in, output, at);
    if (strcmp(output, "parameter") == 0)
        next -= number(in, "rate") * number(in, "decay") *
                (real)floats(in, "parameter")[at % whole(in, "n")];
    return next;
}

/* Every rank has the moments of all parameters. */
static real then_adam_reference(const task_inputs *in, const char *output, uint64_t at) {
    bool is_moment = strcmp(output, "m") == 0 || strcmp(output, "v") == 0;
    return is_moment ? adam_reference(in, output, at) : fused_reference(in, output, at);
}

static real fused_sgd_reference(const task_inputs *in, const char *output, uint64_t at) {
    real next = 0;
    return left_behind(in, output, at, &next) ? next : sgd_reference(in, output, at);
}

static real then_sgd_reference(const task_inputs *in, const char *output, uint64_t at) {
    return strcmp(output, "v") == 0 ? sgd_reference(in, output, at)
                                    : fused_sgd_reference(in, output, at);
}

/* LAMB takes Adam's step with decoupled decay, at the trust ratio times the rate. */
static real update_reference(const task_inputs *in, uint64_t i) {
    real old = (real)floats(in, "parameter")[i];
    return (old - fused_reference(in, "parameter", i)) / number(in, "rate");
}

static real squares_reference(const task_inputs *in, uint64_t first, uint64_t end, bool updates) {
    real sum = 0;
    for (uint64_t i = first; i < end && i < whole(in, "n"); i++) {
        real x = updates ? update_reference(in, i) : (real)floats(in, "parameter")[i];
        sum += x * x;
    }
    return sum;
}

static real trust_reference(const task_inputs *in) {
    static const task_case *of;
    static real trust;
    if (of == in->c)
        return trust;
    of = in->c;
    real old = squares_reference(in, 0, UINT64_MAX, false);
    real update = squares_reference(in, 0, UINT64_MAX, true);
    return trust = old > 0 && update > 0 ? sqrtl(old / update) : 1;
}

static real lamb_reference(const task_inputs *in, const char *output, uint64_t at) {
    uint64_t shard = shard_of(in), pieces = (shard + 1023) / 1024, ranks = whole(in, "ranks");
    real next = 0;
    if (left_behind(in, output, at, &next))
        return next;
    if (strcmp(output, "norm_flags") == 0 || strcmp(output, "ticket") == 0)
        return output[0] == 't' ? 0 : (real)whole(in, "epoch");
    if (strcmp(output, "norms") == 0)
        return squares_reference(in, at / 2 % ranks * shard, (at / 2 % ranks + 1) * shard,
                                 at % 2 == 1);
    if (strcmp(output, "partial") == 0) {
        uint64_t begin = at / 2 / pieces * shard, first = begin + at / 2 % pieces * 1024;
        uint64_t end = first + 1024 < begin + shard ? first + 1024 : begin + shard;
        return squares_reference(in, first, end, at % 2 == 1);
    }
    if (strcmp(output, "parameter") != 0)
        return adam_reference(in, output, at);
    uint64_t i = at % whole(in, "n");
    return (real)floats(in, "parameter")[i] -
           number(in, "rate") * trust_reference(in) * update_reference(in, i);
}

static real then_lamb_reference(const task_inputs *in, const char *output, uint64_t at) {
    bool is_moment = strcmp(output, "m") == 0 || strcmp(output, "v") == 0;
    return is_moment ? adam_reference(in, output, at) : lamb_reference(in, output, at);
}

/* The corrections that the kernel gets are 1 - beta^step: checked here, as both sides above take
 * them as given. */
static void check_corrections(const task_inputs *in) {
    expr_scope shape = {in->c->shape, in->c->shape_count};
    real step = (real)expr_scope_find(&shape, "step")->value.real;
    assert_true(fabsl(number(in, "correction1") - (1 - powl(0.9L, step))) < 1e-7L);
    assert_true(fabsl(number(in, "correction2") - (1 - powl(0.999L, step))) < 1e-7L);
}

static void check_output(const task_inputs *in, size_t output, reference *ref) {
    uint64_t count = in->arguments[output].count;
    double *value = calloc(count, sizeof *value), *scale = calloc(count, sizeof *scale);
    assert_true(value != NULL && scale != NULL);
    task_inputs_ask(in, output, 0, count, value, scale);
    for (uint64_t i = 0; i < count; i++) {
        real want = ref(in, in->arguments[output].name, i);
        assert_true(scale[i] >= 0 && scale[i] * (1 + 1e-9) >= fabs(value[i]));
        if (!(fabsl((real)value[i] - want) <= 1e-14L * (real)scale[i]))
            fail_msg("%s, %s[%llu]: %.17g, not %.17Lg", in->c->name, in->arguments[output].name,
                     (unsigned long long)i, value[i], want);
    }
    for (uint64_t first = 0, step = 1; first < count; first += step, step = step * 5 % 97 + 1) {
        double part[100] = {0}, part_scale[100] = {0};
        uint64_t run = step < count - first ? step : count - first;
        task_inputs_ask(in, output, first, run, part, part_scale);
        assert_memory_equal(part, value + first, run * sizeof *part);
        assert_memory_equal(part_scale, scale + first, run * sizeof *part);
    }
    free(value);
    free(scale);
}

static void check_task(const char *name, reference *ref) {
    task *t = NULL;
    ev_error err = {EV_OK, ""};
    OK_OR_FAIL(task_open(name, &t, &err));
    assert_int_equal(t->oracle_kind, TASK_ORACLE_BUILT_IN);
    size_t checked = 0;
    for (size_t i = 0; i < t->case_count; i++) {
        if (t->cases[i].use == TASK_TIME)
            continue;
        task_inputs in = task_inputs_make(t, &t->cases[i]);
        if (strcmp(name, "ar_adam") == 0 || strcmp(name, "ar_fused_adam") == 0 ||
            strcmp(name, "ar_fused_lamb") == 0 || strcmp(name, "ar_then_adam") == 0 ||
            strcmp(name, "ar_then_lamb") == 0)
            check_corrections(&in);
        for (size_t a = 0; a < t->argument_count; a++) {
            if (t->arguments[a].kind == TASK_OUT || t->arguments[a].kind == TASK_INOUT) {
                check_output(&in, a, ref);
                checked++;
            }
        }
        task_inputs_free(&in);
    }
    assert_true(checked >= 6);
    task_free(t);
}

static void test_bp_data_masked(void **state) {
    (void)state;
    check_task("bp_data_masked", bp_reference);
    check_task("bp_data_masked_bf16", bp_reference);
}

static void test_bp_data_input_sparse(void **state) {
    (void)state;
    check_task("bp_data_input_sparse", rows_reference);
    check_task("bp_data_input_sparse_bf16", rows_reference);
}

static void test_bp_weight_sparse(void **state) {
    (void)state;
    check_task("bp_weight_sparse", weight_reference);
    check_task("bp_weight_sparse_bf16", weight_reference);
}

static void test_sd_lstm_fp(void **state) {
    (void)state;
    check_task("sd_lstm_fp", lstm_reference);
    check_task("sd_lstm_fp_f16", lstm_reference);
}

static void test_sd_lstm_seq(void **state) {
    (void)state;
    check_task("sd_lstm_seq", lstm_sequence_reference);
}

static void test_lstm_gradients(void **state) {
    (void)state;
    check_task("sd_lstm_bp_data", lstm_data_reference);
    check_task("sd_lstm_bp_data_f16", lstm_data_reference);
    check_task("sd_lstm_bp_weight", lstm_weight_reference);
    check_task("sd_lstm_bp_weight_f16", lstm_weight_reference);
}

static void test_lstm_gates(void **state) {
    (void)state;
    check_task("lstm_gates_fp", pointwise_reference);
    check_task("lstm_gates_bp", backward_reference);
}

static void test_fft_conv2d(void **state) {
    (void)state;
    check_task("fft_conv2d", conv_reference);
    check_task("fft_conv2d_cached", conv_reference);
    check_task("fft_conv2d_bp_data", conv_data_reference);
    check_task("fft_conv2d_bp_filter", conv_filter_reference);
}

static void test_block_circulant(void **state) {
    (void)state;
    check_task("bc_fp", circulant_reference);
    check_task("bc_bp_data", circulant_data_reference);
    check_task("bc_bp_weight", circulant_weight_reference);
}

static void test_ar_adam(void **state) {
    (void)state;
    check_task("ar_adam", adam_reference);
    check_task("ar_sgd_momentum", sgd_reference);
}

static void test_ranks(void **state) {
    (void)state;
    check_task("ar_oneshot", oneshot_reference);
    check_task("ar_ring", ring_reference);
    check_task("ar_fused_adam", fused_reference);
    check_task("ar_then_adam", then_adam_reference);
    check_task("ar_fused_sgd", fused_sgd_reference);
    check_task("ar_fused_lamb", lamb_reference);
    check_task("ar_then_sgd", then_sgd_reference);
    check_task("ar_then_lamb", then_lamb_reference);
}

/* Where the mask is off, the answer is exactly zero; where it is on, it is not. */
static void test_mask_is_exact(void **state) {
    (void)state;
    task *t = NULL;
    ev_error err = {EV_OK, ""};
    OK_OR_FAIL(task_open("bp_data_masked", &t, &err));
    task_inputs in = task_inputs_make(t, task_find_case(t, "odd-d30"));
    size_t output = task_inputs_index(&in, "dX");
    uint64_t count = in.arguments[output].count, live = 0;
    double *value = calloc(count, sizeof *value), *scale = calloc(count, sizeof *scale);
    task_inputs_ask(&in, output, 0, count, value, scale);
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(value[i] != 0, floats(&in, "X")[i] > 0);
        live += value[i] != 0;
    }
    assert_true(live > count / 8 && live < count / 2);
    free(value);
    free(scale);
    task_inputs_free(&in);
    task_free(t);
}

/* An oracle that is not given its arguments answers so, and does not guess. */
/* The array is malloc'ed by task_inputs_make. */
static float *changeable(const task_inputs *in, const char *name) {
    return (float *)(uintptr_t)floats(in, name);
}

/* Fills the inputs of sd_lstm_fp so that the terms of each sum cancel, but for G. */
static void fill_cancelling(const task_inputs *in, uint64_t H, uint64_t B) {
    float *x = changeable(in, "X"), *w = changeable(in, "W");
    const int *kept = in->arguments[task_inputs_index(in, "kept")].data;
    for (uint64_t i = 0; i < B * H; i++)
        x[i] = 0;
    for (uint64_t i = 0; i < 4 * H * H; i++)
        w[i] = 1;
    for (uint64_t b = 0; b < B; b++) {
        x[b * H + (uint64_t)kept[0]] = 1 << 21;
        x[b * H + (uint64_t)kept[1]] = -(1 << 21);
    }
}

/* Sums that are off by 8 units of their size, where terms cancel, make outputs that are off by no
 * more than 8 units of their scale. */
static void test_scale_where_terms_cancel(void **state) {
    (void)state;
    static const char *const outputs[] = {"gates", "C_out", "H_out"};
    enum { MOST = 4096 };
    static double value[MOST], scale[MOST], moved[MOST], unused[MOST];
    task *t = NULL;
    ev_error err = {EV_OK, ""};
    OK_OR_FAIL(task_open("sd_lstm_fp", &t, &err));
    task_inputs in = task_inputs_make(t, task_find_case(t, "smoke"));
    uint64_t H = whole(&in, "H"), B = whole(&in, "B");
    fill_cancelling(&in, H, B);
    double unit = 8 * ldexp(1, -24) * sqrt((double)whole(&in, "k"));
    double size = 2 * (double)number(&in, "scale") * (1 << 21);
    float *g = changeable(&in, "G");
    for (size_t o = 0; o < sizeof outputs / sizeof outputs[0]; o++) {
        size_t output = task_inputs_index(&in, outputs[o]);
        uint64_t count = in.arguments[output].count;
        double most = 0;
        assert_in_range(count, 1, MOST);
        for (uint64_t i = 0; i < B * 4 * H; i++)
            g[i] = (float)(i % 17) - 8;
        task_inputs_ask(&in, output, 0, count, value, scale);
        for (uint64_t i = 0; i < B * 4 * H; i++)
            g[i] += (float)(0.99 * (i % 2 == 0 ? unit : -unit) * size);
        task_inputs_ask(&in, output, 0, count, moved, unused);
        for (uint64_t i = 0; i < count; i++) {
            assert_true(fabs(moved[i] - value[i]) <= unit * scale[i]);
            most = fmax(most, fabs(moved[i] - value[i]) / (unit * scale[i]));
        }
        assert_true(most > 0.02); /* the bound is not idle */
    }
    task_inputs_free(&in);
    task_free(t);
}

/* Sums of every step that are off by at most 8 units of their size make outputs that are off by no
 * more than 8 units of their scale, which grows from step to step. */
static void test_scale_of_a_sequence(void **state) {
    (void)state;
    enum { MOST = 8192 };
    static double value[MOST], scale[MOST], moved[MOST], unused[MOST];
    task *t = NULL;
    ev_error err = {EV_OK, ""};
    OK_OR_FAIL(task_open("sd_lstm_seq", &t, &err));
    task_inputs in = task_inputs_make(t, task_find_case(t, "h34-p50-t4"));
    uint64_t H = whole(&in, "H"), step = whole(&in, "B") * H;
    double unit = 8 * ldexp(1, -24) * sqrt((double)(whole(&in, "k") + H));
    size_t output = task_inputs_index(&in, "C_out");
    uint64_t count = in.arguments[output].count;
    double most = 0, sum[4] = {0};
    float *bias = changeable(&in, "bias");
    assert_in_range(count, 4 * step, MOST);
    for (uint64_t i = 0; i < 4 * H; i++)
        bias[i] = i / H == 1 ? 20 : 1024; /* f forgets nothing; the others are saturated, but g */
    for (uint64_t i = 2 * H; i < 3 * H; i++)
        bias[i] = (float)(i % 5) / 4 - 0.5F;
    task_inputs_ask(&in, output, 0, count, value, scale);
    for (uint64_t i = 2 * H; i < 3 * H; i++)
        bias[i] += (float)(unit * (i % 2 == 0 ? 1 : -1)); /* a sum's size is over 1 */
    task_inputs_ask(&in, output, 0, count, moved, unused);
    for (uint64_t i = 0; i < count; i++) {
        assert_true(fabs(moved[i] - value[i]) <= unit * scale[i]);
        most = fmax(most, fabs(moved[i] - value[i]) / (unit * scale[i]));
        sum[i / step] += scale[i];
    }
    assert_true(most > 0.02); /* the bound is not idle */
    for (int i = 1; i < 4; i++)
        assert_true(sum[i] > sum[i - 1]);
    task_inputs_free(&in);
    task_free(t);
}

static void test_missing_arguments(void **state) {
    (void)state;
    static const char *const names[] = {"bp_data_masked",
                                        "bp_data_input_sparse",
                                        "bp_weight_sparse",
                                        "sd_lstm_fp",
                                        "sd_lstm_bp_data",
                                        "sd_lstm_bp_weight",
                                        "lstm_gates_fp",
                                        "lstm_gates_bp",
                                        "fft_conv2d",
                                        "fft_conv2d_bp_data",
                                        "ar_adam",
                                        "ar_sgd_momentum",
                                        "bc_fp",
                                        "bc_bp_data",
                                        "bc_bp_weight",
                                        "ar_oneshot",
                                        "ar_ring",
                                        "ar_fused_adam",
                                        "sd_lstm_fp_f16",
                                        "sd_lstm_seq",
                                        "ar_fused_sgd",
                                        "ar_fused_lamb",
                                        "ar_then_adam",
                                        "ar_then_sgd",
                                        "ar_then_lamb",
                                        "fft_conv2d_bp_filter",
                                        "sd_lstm_bp_data_f16",
                                        "sd_lstm_bp_weight_f16"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        task *t = NULL;
        ev_error err = {EV_OK, ""};
        OK_OR_FAIL(task_open(names[i], &t, &err));
        task_inputs in = task_inputs_make(t, task_find_case(t, "smoke"));
        double value = 0, scale = 0;
        evoke_oracle_call call = {.arguments = in.arguments,
                                  .argument_count = 1,
                                  .count = 1,
                                  .value = &value,
                                  .scale = &scale};
        assert_int_not_equal(t->oracle(&call), 0);
        task_inputs_free(&in);
        task_free(t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bp_data_input_sparse),
        cmocka_unit_test(test_bp_weight_sparse),
        cmocka_unit_test(test_bp_data_masked),
        cmocka_unit_test(test_sd_lstm_fp),
        cmocka_unit_test(test_sd_lstm_seq),
        cmocka_unit_test(test_lstm_gradients),
        cmocka_unit_test(test_lstm_gates),
        cmocka_unit_test(test_fft_conv2d),
        cmocka_unit_test(test_block_circulant),
        cmocka_unit_test(test_ar_adam),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_mask_is_exact),
        cmocka_unit_test(test_scale_where_terms_cancel),
        cmocka_unit_test(test_scale_of_a_sequence),
        cmocka_unit_test(test_missing_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
