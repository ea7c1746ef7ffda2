#include "evoke_cuda.h"
/* Four channels along time, a sensor a thread; the last one is smoothed. Callers work in place. */
extern "C" __global__ void soa(const float *a, const float *b, const float *c, const float *d, const float *e,
                               float *p, float *q, float *r, float *s, int sensors, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= sensors) return;
    for (int j = 1; j < n; j++) {
        int at = j * sensors + i;
        p[at] = 2.0f * a[at];
        q[at] = a[at] + b[at];
        r[at] = b[at] * c[at];
        s[at] = d[at] + 0.5f * e[at] + 0.25f * e[at - sensors];
    }
}
