/* CUDA's error functions, gamma functions and remainders in double precision. Included by
 * evoke_cuda.h behind evoke_cuda_math_double.h, whose head says how to read it. */
#ifndef KERNELS_INCLUDE_EVOKE_CUDA_MATH_SPECIAL_H
#define KERNELS_INCLUDE_EVOKE_CUDA_MATH_SPECIAL_H

/* ---- error functions ---------------------------------------------------------------------------
 */

/* erfc(a) for a >= 0: exp(-a^2) (1 + 2a) exp(a^2) erfc(a) / (1 + 2a), where the middle part is a
 * polynomial in (a - 4) / (a + 4) (Shepherd and Laframboise, "Chebyshev approximation of
 * (1 + 2x) exp(x^2) erfc x", 1981). */
EVOKE_FN double evoke_erfc_positive(double a) {
    a = a > 28.0 ? 28.0 : a;
    double t = (a - 4.0) / (a + 4.0);
    double p = EVOKE_D25(
        t, 1.2329951186255526, -0.13962111684056228, 0.015379652102619974, 0.06809705425466839,
        -0.10103906603631811, 0.09373283499911264, -0.06633036581186058, 0.037167515526338006,
        -0.01619773406293477, 0.005031970069102256, -0.0007577732435942576, -0.0001992571524726518,
        0.00015062142608651945, -2.4397731143023292e-05, -1.1221135665965907e-05,
        5.70657829924074e-06, 2.9173425573089733e-07, -8.210647933297337e-07, 7.771943241086912e-08,
        1.0631817593818149e-07, -2.0725802488181963e-08, -1.2338731403798444e-08,
        3.2323973445082033e-09, 9.297625263709659e-10, -2.764120233734578e-10);
    evoke_dd square = evoke_product(-a, a);
    int n;
    evoke_dd e = evoke_exp_parts(square, &n);
    double v = p / __builtin_fma(2.0, a, 1.0);
    return evoke_scale(__builtin_fma(v, e.lo, v * e.hi), n);
}
/* erf(x) for |x| < 1: x + x p(x^2). */
EVOKE_FN double evoke_erf_near(double x) {
    double z = x * x;
    return __builtin_fma(x,
                         EVOKE_D13(z, 0.1283791670955126, -0.3761263890318375, 0.11283791670954879,
                                   -0.026866170645076792, 0.0052239776248180145,
                                   -0.000854832698083379, 0.0001205533111164271,
                                   -1.4925595266831182e-05, 1.6461000484121368e-06,
                                   -1.6350312701054695e-07, 1.4659775274047436e-08,
                                   -1.1372848856791674e-09, 5.957176147748911e-11),
                         x);
}
EVOKE_FN double erfc(double x) {
    if (__builtin_fabs(x) < 0.5)
        return 1.0 - evoke_erf_near(x);
    double v = evoke_erfc_positive(__builtin_fabs(x));
    return x < 0.0 ? 2.0 - v : v;
}
EVOKE_FN double erf(double x) {
    if (__builtin_fabs(x) < 1.0)
        return evoke_erf_near(x);
    return __builtin_copysign(1.0 - evoke_erfc_positive(__builtin_fabs(x)), x);
}
/* Giles, "Approximating the erfinv function", 2010: x p(w) with w = -log(1 - x^2), in three pieces.
 */
EVOKE_FN double erfinv(double x) {
    if (x == 0.0)
        return x;
    if (__builtin_fabs(x) <= 0.5) { /* x + x p(x^2) */
        double z = x * x;
        return __builtin_fma(
            x,
            EVOKE_D15(z, -0.11377307454724199, 0.23201366653465413, 0.12755617530570315,
                      0.0865521292292127, 0.06495961850081922, 0.051731254206879476,
                      0.042837384875337906, 0.03645508815312888, 0.03181328872213812,
                      0.026965869444275724, 0.030926683556297813, -0.0015180991341034852,
                      0.08735877922389054, -0.09659612543622659, 0.12013988506575551),
            x);
    }
    double w = -log((1.0 - x) * (1.0 + x));
    if (w < 6.25) {
        double t = w - 3.125;
        return x * EVOKE_D23(t, 1.6536545626831027, 0.2401581824255897, -0.006033670871427011,
                             -0.0007407025341669402, 0.0001867342080212427, -1.3882523361276876e-05,
                             -1.3654691796592068e-06, 4.2347877672780653e-07,
                             -2.907038666019143e-08, -4.112633104297614e-09, 1.0512202440121784e-09,
                             -5.4154417754696635e-11, -1.2977505202014966e-11,
                             2.6335724924608484e-12, -8.106594456438496e-14, -4.0554139746886e-14,
                             6.581955305929239e-15, 2.166994626283574e-17, -1.290702354613073e-16,
                             1.1125794759379464e-17, 1.1027771591500033e-18,
                             -1.6787330615256773e-19, -2.362369698566107e-22);
    }
    if (w == __builtin_inf())
        return __builtin_copysign(w, x);
    double s = __builtin_sqrt(w);
    if (w < 16.0) {
        double t = s - 3.25;
        return x * EVOKE_D19(t, 3.0838856104922208, 1.0052589676941592, 0.0053709145535581985,
                             -0.0037512085075638536, 0.0024914420976198813, -0.0016882755561681802,
                             0.0009532893521118177, -0.00035503751863069763, 2.4031363245440546e-05,
                             6.828484052292924e-05, -4.731952918337189e-05, 1.2475343474376931e-05,
                             2.9273722115986924e-06, -4.013946398190292e-06, 1.4958263152984917e-06,
                             1.832399988132858e-08, -2.6860975725571463e-07, 9.071950571029922e-08,
                             -3.831039946072411e-10);
    }
    double t = s - 5.0;
    return x * EVOKE_D17(t, 4.849906401408585, 1.010300464864534, -0.00013871931846279347,
                         -0.00021503011928692775, 7.599527970149839e-05, -1.9681778211470945e-05,
                         4.526041176109241e-06, -9.929824362731265e-07, 2.2908899336184043e-07,
                         -6.771217033066743e-08, 2.896863203807144e-08, -1.496052609384343e-08,
                         7.827098893355556e-09, -3.788651325903228e-09, 1.3779954356215018e-09,
                         -2.5590674310304177e-10, 5.1805705472647786e-12);
}

/* ---- gamma functions ---------------------------------------------------------------------------
 */

/* lgamma(1 + z) for z in [-0.35, 0.5]. */
EVOKE_FN double evoke_lgamma_one(double z) {
    return z * EVOKE_D25(z, -0.5772156649015329, 0.8224670334241132, -0.4006856343865305,
                         0.27058080842777804, -0.20738555102893844, 0.16955717699881984,
                         -0.14404989673954288, 0.12550966938142685, -0.11133426749425789,
                         0.10009946559799582, -0.09095396689777835, 0.08335356492822808,
                         -0.07693339949795024, 0.07143886244218031, -0.06666093562591237,
                         0.06242022913686161, -0.05882690266286652, 0.05623707851870781,
                         -0.0532650506918133, 0.04678322886068168, -0.041590458986775714,
                         0.05106008125306686, -0.06614322310920126, 0.05361803655229575,
                         -0.01838486276560304);
}
/* lgamma(2 + z) for z in [-0.65, 1]. */
EVOKE_FN double evoke_lgamma_two(double z) {
    return z * EVOKE_D24(z, 0.42278433509846713, 0.3224670334241132, -0.06735230105319817,
                         0.0205808084277865, -0.007385551028669478, 0.0028905103306537576,
                         -0.0011927539117828987, 0.000509669526560507, -0.0002231547582982512,
                         9.945749221089919e-05, -4.492622647521214e-05, 2.0507349562674415e-05,
                         -9.439622872578148e-06, 4.374328371598384e-06, -2.038415610838999e-06,
                         9.562925225570314e-07, -4.518683338869927e-07, 2.1129798847080476e-07,
                         -9.572961156330596e-08, 4.591583675686636e-08, -2.651031526404707e-08,
                         1.4615717414036065e-08, -5.249514987464703e-09, 8.34836960170409e-10);
}
/* lgamma(x) for x >= 8 by Stirling's series (Abramowitz and Stegun 6.1.40); infinite where it
 * overflows. */
EVOKE_FN evoke_dd evoke_stirling(double x) {
    evoke_dd head = evoke_times({x - 0.5, 0.0}, evoke_log_full(x));
    double y = 1.0 / x, z = y * y;
    double tail = y * EVOKE_D8(z, 0.08333333333333333, -0.0027777777777776747, 0.000793650793511728,
                               -0.0005952380234290776, 0.0008417325267947927,
                               -0.0019149659115403873, 0.006208136739721902, -0.020855820385832984);
    if (!(head.hi < __builtin_inf()))
        return {__builtin_inf(), 0.0};
    evoke_dd v = evoke_sum(head.hi, -x), w = evoke_sum(v.hi, 0.9189385332046728);
    return evoke_sum(w.hi, w.lo + (v.lo + (head.lo + (tail - 3.8782941580672414e-17))));
}
EVOKE_FN double evoke_lgamma_positive(double x) {
    if (x < 0.65) /* lgamma(1 + x) - log(x) */
        return (x < 0.5 ? evoke_lgamma_one(x) : evoke_lgamma_two(x - 1.0)) - log(x);
    if (x < 1.35)
        return evoke_lgamma_one(x - 1.0) + 0.0; /* of 1 not -0 */
    if (x < 8.0) {
        double product = 1.0;
        while (x > 3.0) {
            x -= 1.0;
            product *= x;
        }
        double v = evoke_lgamma_two(x - 2.0);
        return product > 1.0 ? v + log(product) : v;
    }
    evoke_dd v = evoke_stirling(x);
    return v.hi + v.lo;
}
EVOKE_FN double lgamma(double x) {
    if (x != x)
        return x;
    double a = __builtin_fabs(x);
    if (a == __builtin_inf())
        return a;
    if (x > 0.0)
        return evoke_lgamma_positive(x);
    if (__builtin_trunc(x) == x)
        return __builtin_inf();
    if (a < 0.35)
        return evoke_lgamma_one(x) - log(a);
    /* The reflection: gamma(-a) gamma(a) a sin(pi a) = -pi. */
    return log(3.141592653589793 / (a * __builtin_fabs(sinpi(a)))) - evoke_lgamma_positive(a);
}
/* gamma(x) for |x| > 8 by exp of Stirling's series; of x < 0 by the reflection. */
EVOKE_FN double evoke_gamma_far(double x) {
    double a = __builtin_fabs(x);
    evoke_dd l = evoke_stirling(evoke_clamp(a, 8.0, 190.0));
    double factor = 1.0;
    if (x < 0.0) {
        l = {-l.hi, -l.lo};
        factor = -3.141592653589793 / (a * sinpi(a));
    }
    int n;
    evoke_dd v = evoke_exp_parts(l, &n);
    double low = factor * v.lo;
    return evoke_scale(__builtin_fma(factor, v.hi, low), n);
}
EVOKE_FN double tgamma(double x) {
    if (!(__builtin_fabs(x) <= 8.0)) {
        if (x == __builtin_inf() || x > 180.0)
            return __builtin_inf();
        if (x != x || (x < 0.0 && __builtin_trunc(x) == x))
            return __builtin_nan("");
        return evoke_gamma_far(x);
    }
    if (x < 0.0 && __builtin_trunc(x) == x)
        return __builtin_nan("");
    /* gamma(x + 1) = x gamma(x), to [1, 2]. */
    double under = 1.0, over = 1.0;
    while (x < 1.0) {
        under *= x;
        x += 1.0;
    }
    while (x > 2.0) {
        x -= 1.0;
        over *= x;
    }
    double z = x - 1.5;
    double p = EVOKE_D21(z, 0.886226925452758, 0.03233839744888971, 0.41481345368829803,
                         -0.10729480456614723, 0.1446453590455382, -0.07752305218148352,
                         0.05861030373826222, -0.03800194021620148, 0.025837609563324853,
                         -0.017222342525916555, 0.011522448333793223, -0.0076915105615126215,
                         0.005132509636561143, -0.003412353024444057, 0.002275623422978031,
                         -0.0015744956633606366, 0.0010497782677845737, -0.0005184266868537098,
                         0.0003456356817004486, -0.000553046454361314, 0.00036870126236298277);
    return p * over / under;
}

/* ---- remainders --------------------------------------------------------------------------------
 */

/* |bits| as a whole number with its top bit at 52, times a power of two; of zero, some number. */
EVOKE_FN unsigned long long evoke_whole_part_d(unsigned long long bits, int *exponent) {
    unsigned long long part = bits & 0xfffffffffffffULL;
    *exponent = (int)(bits >> 52);
    if (*exponent > 0)
        return part | 0x10000000000000ULL;
    int up = __builtin_clzll(part | 1) - 11;
    *exponent = 1 - up;
    return part << up;
}
/* a modulo b for a > b > 0, by long division, a bit a step. */
static __device__ __noinline__ EVOKE_PURE double evoke_fmod_far(double a, double b) {
    int of_a, of_b;
    unsigned long long x = evoke_whole_part_d((unsigned long long)__double_as_longlong(a), &of_a);
    unsigned long long y = evoke_whole_part_d((unsigned long long)__double_as_longlong(b), &of_b);
    for (; of_a > of_b; of_a--) {
        x = x >= y ? x - y : x;
        x <<= 1;
    }
    x = x >= y ? x - y : x;
    if (x == 0)
        return 0.0;
    int up = __builtin_clzll(x) - 11, exponent = of_b - up;
    x <<= up;
    if (exponent > 0)
        return __longlong_as_double(((long long)exponent << 52) |
                                    (long long)(x & 0xfffffffffffffULL));
    return __longlong_as_double((long long)(x >> (1 - exponent)));
}
/* The remainder of a / b with the sign of a: exact. A quotient below 2^53 takes one division: of a
 * rounded quotient the fma gives the exact rest, which is negative where it was rounded up. */
EVOKE_FN double fmod(double a, double b) {
    double x = __builtin_fabs(a), y = __builtin_fabs(b);
    if (!(x < __builtin_inf()) || !(y > 0.0))
        return __builtin_nan("");
    if (x < y || y == __builtin_inf())
        return a;
    double q = x / y, r;
    if (q < 0x1p53 && y > 0x1p-900) {
        r = __builtin_fma(-__builtin_trunc(q), y, x);
        r = r < 0.0 ? r + y : r;
    } else {
        r = evoke_fmod_far(x, y);
    }
    return __builtin_copysign(r, a);
}
/* The rest with the quotient rounded to the nearest, of two equally near the even one: exact. */
EVOKE_FN double remainder(double a, double b) {
    double y = __builtin_fabs(b);
    if (!(__builtin_fabs(a) < __builtin_inf()) || !(y > 0.0))
        return __builtin_nan("");
    double x = __builtin_fabs(y < 0x1p1023 ? fmod(a, 2.0 * y) : a);
    if (y < 0x1p-1000) { /* the half of y may not be a number */
        if (x + x > y) {
            x -= y;
            x = x + x >= y ? x - y : x;
        }
    } else if (x > 0.5 * y) {
        x -= y;
        x = x >= 0.5 * y ? x - y : x;
    }
    return __double_as_longlong(a) < 0 ? -x : x;
}

/* ---- in single precision ------------------------------------------------------------------------
 */

/* The gamma functions of floats are computed in double precision. */
EVOKE_FN float lgammaf(float x) {
    return (float)lgamma((double)x);
}
EVOKE_FN float tgammaf(float x) {
    return (float)tgamma((double)x);
}

#endif
