/* Sums that go through a loop inside of another one; a row of the output a thread, grid m / 4, block
 * 4. A part of kernels.cu. */

#define OWN                                                                                        \
    int own = blockIdx.x * 4 + threadIdx.x;                                                        \
    if (own >= m)                                                                                  \
    return

/* Two nests, of which the second uses what the first one summed up. */
extern "C" __global__ void nest_twice(PARAMETERS) {
    OWN;
    float sum = 0, squares = 0;
    for (int i = 0; i < m; i++)
        for (int k = 0; k < n; k++)
            sum += x[i * n + k] * w[(own + k) % n];
    for (int i = 0; i < m; i++)
        for (int k = 0; k < n; k++)
            squares += x[i * n + k] - sum;
    y[own] = sum + 3 * squares;
}

/* Several sums with starts of their own, a greatest value, a condition inside; the inner loop's
 * bound depends on the outer turn, and both count otherwise than by one. */
extern "C" __global__ void nest_several(PARAMETERS) {
    OWN;
    float sum = w[own % 3] + 1, most = -1;
    int count = own, least = 1000;
    for (int i = m - 1; i >= 0; i--)
        for (int k = i % 5; k < n; k += 2) {
            if (x[i * n + k] > 3)
                count += k;
            sum -= x[i * n + k];
            most = fmaxf(most, x[i * n + k] + w[k]);
            least = min(least, (int)w[k] + i);
        }
    y[own] = sum + most + 3 * (float)(count + least);
}

/* The outer loop adds as well. */
extern "C" __global__ void nest_beside(PARAMETERS) {
    OWN;
    float sum = 0;
    for (int i = 0; i < m; i++) {
        for (int k = 0; k < n; k++)
            sum += x[i * n + k];
        sum += w[i % n];
    }
    y[own] = sum;
}

/* The inner loop runs under a condition. */
extern "C" __global__ void nest_some(PARAMETERS) {
    OWN;
    float sum = 0;
    for (int i = 0; i < m; i++)
        if (w[i % n] > 3)
            for (int k = 0; k < n; k++)
                sum += x[i * n + k];
    y[own] = sum;
}

/* A sum of squares of the rows' sums. */
extern "C" __global__ void nest_squares(PARAMETERS) {
    OWN;
    float squares = 0;
    for (int i = 0; i < m; i++) {
        float sum = 0;
        for (int k = 0; k < n; k++)
            sum += x[i * n + k];
        squares += sum * sum;
    }
    y[own] = squares;
}

/* Each turn of the outer loop uses the sum so far. */
extern "C" __global__ void nest_runs(PARAMETERS) {
    OWN;
    float sum = 0, last = 0;
    for (int i = 0; i < m; i++) {
        for (int k = 0; k < n; k++)
            sum += x[i * n + k];
        last += sum * w[i % n];
    }
    y[own] = last;
}

/* The inner loop uses it. */
extern "C" __global__ void nest_uses(PARAMETERS) {
    OWN;
    float sum = 0, other = 0;
    for (int i = 0; i < m; i++)
        for (int k = 0; k < n; k++) {
            other += sum * w[k];
            sum += x[i * n + k];
        }
    y[own] = other;
}

/* Three deep, and a nest with two loops inside. */
extern "C" __global__ void nest_deep(PARAMETERS) {
    OWN;
    float sum = 0, other = 0;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < n; k++)
                sum += x[i * n + k] * w[(j + k) % n];
    for (int i = 0; i < m; i++) {
        for (int k = 0; k < n; k++)
            other += x[i * n + k];
        for (int k = 0; k < own; k++)
            other += w[k % n];
    }
    y[own] = sum + other;
}

/* The two sums change places in each turn of the outer loop. */
extern "C" __global__ void nest_turns(PARAMETERS) {
    OWN;
    float a = 0, b = 1;
    for (int i = 0; i < m; i++) {
        float now = b;
        for (int k = 0; k < n; k++)
            now += x[i * n + k];
        b = a;
        a = now;
    }
    y[own] = a + 3 * b;
}

/* The turns write. */
extern "C" __global__ void nest_writes(PARAMETERS) {
    OWN;
    for (int i = 0; i < m; i += m)
        for (int k = 0; k < n; k++)
            y[own * n + k] = x[own * n + k] + w[k];
}
#undef OWN
