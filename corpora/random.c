/* Exponential and normal quantile for the generators, without the C library's, whose last bits
 * differ between versions. */
#include "corpora/random.h"

#include <math.h>

double random_exp(double x) {
    double n = rint(x * 1.4426950408889634);
    double r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
    double sum = 1.0;
    for (int k = 13; k > 0; k--)
        sum = 1.0 + sum * r / k;
    uint64_t bits = (uint64_t)((int64_t)n + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return sum * power;
}

/* By the inverse error function of M. Giles, "Approximating the erfinv function" (GPU Computing
 * Gems, Jade Edition, 2011), single precision form. */
double random_normal_quantile(double p) {
    double x = 2.0 * p - 1.0;
    double w = -random_log(4.0 * p * (1.0 - p));
    double y;
    if (w < 5.0) {
        w -= 2.5;
        y = 2.81022636e-08;
        y = 3.43273939e-07 + y * w;
        y = -3.5233877e-06 + y * w;
        y = -4.39150654e-06 + y * w;
        y = 0.00021858087 + y * w;
        y = -0.00125372503 + y * w;
        y = -0.00417768164 + y * w;
        y = 0.246640727 + y * w;
        y = 1.50140941 + y * w;
    } else {
        w = sqrt(w) - 3.0;
        y = -0.000200214257;
        y = 0.000100950558 + y * w;
        y = 0.00134934322 + y * w;
        y = -0.00367342844 + y * w;
        y = 0.00573950773 + y * w;
        y = -0.0076224613 + y * w;
        y = 0.00943887047 + y * w;
        y = 1.00167406 + y * w;
        y = 2.83297682 + y * w;
    }
    return 1.4142135623730951 * y * x;
}
