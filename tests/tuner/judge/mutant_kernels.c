/* The kernels that are mutated: the four shipped starts, four of the judged ones, and two with
 * floats. The judge's shapes lie within the ranges of each task's cases, and belong to none of
 * them. */
#include "tests/tuner/judge/mutants.h"

#define W(name, value)                                                                             \
    {                                                                                              \
        (name), {                                                                                  \
            .whole = (value), .real = (value)                                                      \
        }                                                                                          \
    }
#define R(name, value)                                                                             \
    {                                                                                              \
        (name), {                                                                                  \
            .is_real = true, .real = (value)                                                       \
        }                                                                                          \
    }
#define ADAM(n, ranks, step) {W("n", n), W("ranks", ranks), W("step", step)}
#define LSTM(b, h, k) {W("B", b), W("H", h), W("k", k), W("x_sigma", 1), W("g_sigma", 1)}
#define FFT(i, c, o, h, w)                                                                         \
    {W("images", i), W("channels", c), W("outputs", o), W("height", h), W("width", w)}
#define MASKED(i, s, in, out, t)                                                                   \
    {W("images", i), W("side", s), W("cin", in), W("cout", out), W("taps", t), R("density", 0.5)}
#define N(n) {W("n", n)}

const mutant_kernel mutant_kernels[] = {
    {"ar_adam", "hand", "textbook", NULL, {ADAM(37, 2, 4), ADAM(611, 5, 50), ADAM(2050, 8, 2)}},
    {"sd_lstm_fp", "hand", "textbook", NULL, {LSTM(2, 19, 7), LSTM(7, 40, 40), LSTM(21, 33, 12)}},
    {"fft_conv2d", "hand", "textbook", NULL, {FFT(1, 2, 3, 8, 17), FFT(2, 1, 9, 29, 6)}},
    {"bp_data_masked", "hand", "textbook", NULL, {MASKED(1, 2, 65, 2, 9), MASKED(1, 7, 130, 3, 1)}},
    {JUDGED_FOLDER "sentinel.json", "plain", NULL, &judged_kernels[0], {N(133), N(640)}},
    {JUDGED_FOLDER "saturate.json", "plain", NULL, &judged_kernels[1], {N(133), N(640)}},
    {JUDGED_FOLDER "clamp.json", "plain", NULL, &judged_kernels[2], {N(133), N(640)}},
    {JUDGED_FOLDER "head.json", "plain", NULL, &judged_kernels[3], {N(133), N(640)}},
    {JUDGED_FOLDER "ties.json", "plain", NULL, &judged_kernels[4], {N(133), N(640)}},
    {JUDGED_FOLDER "once.json", "plain", NULL, &judged_kernels[5], {N(133), N(640)}},
    {JUDGED_FOLDER "wrap.json", "plain", NULL, &judged_kernels[6], {N(133), N(640)}},
    {JUDGED_FOLDER "shift.json", "plain", NULL, &judged_kernels[7], {N(133), N(640)}},
    {JUDGED_FOLDER "divide.json", "plain", NULL, &judged_kernels[8], {N(133), N(640)}},
    {JUDGED_FOLDER "scan.json", "plain", NULL, &judged_kernels[9], {N(133), N(640)}},
    {JUDGED_FOLDER "blend.json", "plain", NULL, NULL, {N(133), N(640)}},
    {JUDGED_FOLDER "moments.json", "plain", NULL, NULL, {N(144), N(640)}},
};
const size_t mutant_kernel_count = sizeof mutant_kernels / sizeof mutant_kernels[0];
